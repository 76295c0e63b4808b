#!/usr/bin/env bash
# Runs the benchmarks and prints their medians beside the figures of seed 000, Table 6.
#
#   scripts/bench-table.sh            prints the table
#   scripts/bench-table.sh --save     also stores it as the baseline, docs/benchmarks.md
#
# Takes a few minutes, and a machine that does nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."

output=$(for crate in machine check syntax; do
  echo "crate $crate"
  cargo bench --quiet -p "$crate"
done)

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
  row 'compile a config (`listing1.yaml`)' check.lower.listing1.yaml '1300 µs'
  row 'lint a compiled config (`listing1`)' check.rules.listing1.yaml '5.0 µs'
  row 'lint a file, from bytes (`listing1`)' check.file.listing1.yaml '–'
  row 'run of a literal' machine.empty_run '–'
  row 'function call' machine.function_call '–'
  row 'typed model call (`llm`)' machine.model_call '–'
  row 'factorial of 20' machine.factorial_of_20 '–'
  row 'sum to 10,000, by recursion' machine.sum_to_10_000 '–'
  row 'parse 100 KiB of `.lam`' syntax.parse_kib.100 '–'
  row 'print 100 KiB of `.lam`' syntax.print_100_kib '–'
}

shown=$(table)
echo "$shown"

if [ "${1:-}" = --save ]; then
  cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -1)
  {
    echo '# Benchmarks'
    echo
    echo 'Medians as `scripts/bench-table.sh --save` measured them, the baseline that later runs are compared with. Each line of the'
    echo 'machine is a whole run: a fresh machine, the term evaluated with its labels, the request answered at once, the result.'
    echo 'Table 6 of seed 000 gives the overhead of its Python wrappers for the same operations, without labels. Compiling and'
    echo 'linting start from a document in memory; the line "from bytes" includes reading it.'
    echo
    echo "Machine: ${cpu:-unknown}, $(nproc 2>/dev/null || echo '?') cores. $(rustc --version)."
    echo
    echo "$shown"
  } >docs/benchmarks.md
fi
