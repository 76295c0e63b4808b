#!/bin/sh
# Builds every proof from nothing and checks what the theorems rest on.
# Installs Coq with apt-get when it is missing (needs root then).
# Fails on any unfinished proof, on any axiom, and if the extracted interpreter
# answers a stored case differently. `check.sh --bless` stores its answers.
set -eu
cd "$(dirname "$0")"

if ! command -v coqc >/dev/null 2>&1 || ! command -v ocamlopt >/dev/null 2>&1; then
    echo "check: installing coq"
    apt-get update -qq
    apt-get install -y -qq coq ocaml-nox make >/dev/null
fi
coqc --version | head -1

# Comments are removed first, so that prose may name these words.
unfinished=$(
    find . -name '*.v' | sort | while read -r file; do
        awk '
            { line = $0; out = ""
              while (length(line) > 0) {
                two = substr(line, 1, 2)
                if (two == "(*") { depth++; line = substr(line, 3) }
                else if (two == "*)" && depth > 0) { depth--; line = substr(line, 3) }
                else { if (depth == 0) out = out substr(line, 1, 1); line = substr(line, 2) }
              }
              if (out ~ /(^|[^A-Za-z_])(Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture|Abort|bypass_check|Unset Guard Checking)([^A-Za-z_]|$)/)
                print FILENAME ":" FNR ": " out
            }' "$file"
    done
)
if [ -n "$unfinished" ]; then
    echo "check: unfinished proofs or axioms:"
    echo "$unfinished"
    exit 1
fi

make clean >/dev/null
start=$(date +%s)
make -s
echo "check: built in $(( $(date +%s) - start )) s"

report=$(coqc -R . Entail Assumptions.v)
closed=$(printf '%s\n' "$report" | grep -c '^Closed under the global context$' || true)
asked=$(grep -c '^Print Assumptions' Assumptions.v)
if [ "$closed" -ne "$asked" ]; then
    printf '%s\n' "$report"
    echo "check: $closed of $asked theorems are closed"
    exit 1
fi
# The report has a line for each theorem, in the order of the file.
echo "check: what each theorem rests on:"
grep '^Print Assumptions' Assumptions.v | sed 's/^Print Assumptions \(.*\)\.$/\1/' | while read -r name; do
    echo "    $name: $(printf '%s\n' "$report" | head -1)"
    report=$(printf '%s\n' "$report" | tail -n +2)
done
echo "check: $asked theorems, none rests on an axiom"

# The extraction is committed, so that building the interpreter needs no Coq.
before=$(cat Extract/interp.ml Extract/interp.mli | cksum)
make -s extraction
if [ "$before" != "$(cat Extract/interp.ml Extract/interp.mli | cksum)" ]; then
    echo "check: Extract/interp.ml is not what Coq extracts; it is now: commit it"
    exit 1
fi
make -s interpreter
different=0
for case in Extract/cases/*.json; do
    stored="${case%.json}.out"
    answer=$(./Extract/entail-interpreter <"$case" 2>&1) || true
    if [ "${1:-}" = --bless ]; then
        printf '%s\n' "$answer" >"$stored"
    elif [ "$answer" != "$(cat "$stored" 2>/dev/null)" ]; then
        echo "check: $case: $answer"
        different=$((different + 1))
    fi
done
# Generated programs, a case on each line; crates/testkit/tests/it/oracle.rs chooses them (ORACLE_STORE).
./Extract/entail-interpreter --lines <Extract/generated.jsonl >Extract/generated.have
if [ "${1:-}" = --bless ]; then
    mv Extract/generated.have Extract/generated.out
elif ! cmp Extract/generated.have Extract/generated.out; then
    different=$((different + 1))
fi
rm -f Extract/generated.have
if [ "$different" -ne 0 ]; then
    echo "check: $different cases differ from what is stored"
    exit 1
fi
echo "check: $(ls Extract/cases/*.json | wc -l) cases and $(wc -l <Extract/generated.jsonl) generated programs agree"
