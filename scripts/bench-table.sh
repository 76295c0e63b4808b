#!/usr/bin/env bash
# Runs the benchmarks and prints their medians beside the figures of seed 000, Table 6, and of the package it describes.
#
#   scripts/bench-table.sh            prints the tables
#   scripts/bench-table.sh --save     also stores them as the baseline, in the places for them in docs/benchmarks.md
#   scripts/bench-table.sh --inside   Table 6 alone, as operations inside one run; may be followed by --save
#
# Takes a few minutes, and a machine that does nothing else.
set -euo pipefail
# A benchmark that fails ends the script, in `$(…)` too.
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

only_inside=false save=false
for option; do
  case "$option" in
  --inside) only_inside=true ;;
  --save) save=true ;;
  *) echo "unknown option: $option" >&2 && exit 2 ;;
  esac
done

if $only_inside; then
  output=$(echo 'crate machine' && cargo bench --quiet -p machine --bench machine -- x1000)
else
  output=$(for crate in machine lint syntax; do
    echo "crate $crate"
    cargo bench --quiet -p "$crate"
  done)
fi

# divan prints a line for each benchmark and, below it, one for each argument:
#   ├─ rules                        │               │
#   │  ├─ agents.yaml  1.2 µs       │ 9.4 µs        │ 1.3 µs        │ 1.4 µs  │ 100     │ 400
# The median is the third of the figures.
medians=$(awk '
  /^crate / { crate = $2; next }
  /^(├─|╰─) / || /^(│  |   )(├─|╰─) / {
    nested = /^(│  |   )/
    line = $0
    sub(/^(│  |   )?(├─|╰─) /, "", line)
    cells = split(line, cell, "│")
    split(cell[1], word, /[ \t]+/)
    name = word[1]
    if (!nested) group = name
    median = cell[3]
    gsub(/^[ \t]+|[ \t]+$/, "", median)
    if (cells >= 4 && median != "") print crate "." (nested ? group "." name : name) "\t" median
  }' <<<"$output")

median() {
  awk -F'\t' -v key="$1" '$1 == key { print $2; found = 1 } END { if (!found) print "not measured" }' <<<"$medians"
}

row() { printf '| %-36s | %14s | %12s |\n' "$1" "$(median "$2")" "$3"; }

table() {
  printf '| %-36s | %14s | %12s |\n' 'what' 'Entail' "Table 6"
  printf '|%s|%s:|%s:|\n' '--------------------------------------' '---------------' '-------------'
  row 'tool call' machine.tool_call '2.0 µs'
  row 'composition of three functions' machine.compose_three '4.9 µs'
  row 'composition of three tools' machine.compose_three_tools '–'
  row '`if`' machine.if_branch '4.6 µs'
  row 'pair (`f \| g`)' machine.pair '3.4 µs'
  row 'loop of five (`fix[5]`)' machine.loop_of_five '11.2 µs'
  row 'store, three keys' machine.store_of_three_keys '2.4 µs'
  row '`guard`' machine.guard '2.4 µs'
  row 'entry in the conversation (`send`)' machine.send '0.9 µs'
  row 'compile a config (`listing1.yaml`)' lint.lower.listing1.yaml '1300 µs'
  row 'lint a compiled config (`listing1`)' lint.rules.listing1.yaml '5.0 µs'
  row 'lint a file, from bytes (`listing1`)' lint.file.listing1.yaml '–'
  row 'run of a literal' machine.empty_run '–'
  row 'function call' machine.function_call '–'
  row 'typed model call (`llm`)' machine.model_call '–'
  row 'factorial of 20' machine.factorial_of_20 '–'
  row 'sum to 10,000, by recursion' machine.sum_to_10_000 '–'
  row 'parse 100 KiB of `.lam`' syntax.parse_kib.100 '–'
  row 'print 100 KiB of `.lam`' syntax.print_100_kib '–'
}

# What one operation takes inside a run, beside the seed's figure and the one that was measured of the package it describes: both in
# µs, as said in docs/benchmarks.md.
inside() {
  printf '| %-42s | %8s | %8s | %12s | %10s | %12s |\n' operation Entail "Table 6" "times faster" "lambdagent" "times faster"
  printf '|---|---:|---:|---:|---:|---:|\n'
  while IFS=';' read -r name bench paper peer; do
    median "machine.${bench}_x1000" | awk -v name="$name" -v paper="$paper" -v peer="$peer" '
      function times(theirs, ours) { return theirs == "–" || ours == "" ? "–" : sprintf("%.0f", theirs * 1000 / ours) }
      function shown(us) { return us == "–" ? us : us " µs" }
      {
        # The thousand of them: µs are ns of one.
        ours = $2 == "µs" ? $1 : $2 == "ms" ? $1 * 1000 : $2 == "ns" ? $1 / 1000 : ""
        printf "| %-42s | %8s | %8s | %12s | %10s | %12s |\n", name, ours == "" ? "not measured" : sprintf("%.0f ns", ours), shown(paper), times(paper, ours), shown(peer), times(peer, ours)
      }'
  done <<'ROWS'
a literal in the list;literal;–;–
function call;function_call;–;–
tool call, with the request and its answer;tool_call;2.0;8.4
composition of three functions;compose_three;4.9;22.9
`if`;if_branch;4.6;9.3
pair (`f \| g`);pair;3.4;15.9
loop of five (`fix[5]`);loop_of_five;11.2;38
store, three requests;store_of_three_keys;2.4;18
`guard`;guard;2.4;17
entry in the conversation (`send`);send;0.9;2.5
ROWS
}

operations=$(inside)
whole=""
if ! $only_inside; then
  whole=$(table)
  printf '%s\n\nInside one run:\n\n' "$whole"
fi
echo "$operations"

if $save && [[ "$whole$operations" == *"not measured"* ]]; then
  echo "not saved: a row was not measured" >&2
  exit 1
fi
if $save; then
  cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -1)
  about="Machine: ${cpu:-unknown}, $(nproc 2>/dev/null || echo '?') cores. $(rustc --version)."
  # Only what stands between the marks is written anew.
  ABOUT="$about" WHOLE="$whole" INSIDE="$operations" python3 - docs/benchmarks.md <<'PYTHON'
import os, re, sys

path = sys.argv[1]
text = open(path).read()
for name, new in [("whole", os.environ["WHOLE"]), ("inside", os.environ["INSIDE"])]:
    if not new:
        continue
    if name == "whole":
        new = os.environ["ABOUT"] + "\n\n" + new
    begin, end = f"<!-- measured: {name} -->", f"<!-- end: {name} -->"
    text, found = re.subn(f"{begin}.*?{end}", lambda _: f"{begin}\n\n{new}\n\n{end}", text, flags=re.S)
    if found != 1:
        sys.exit(f"{path} has no place for `{name}`")
open(path, "w").write(text)
PYTHON
fi
