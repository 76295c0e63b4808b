# Builds the wheel of the Python package into $target/wheels, with the programs of $target/python-venv on the path.
# Sourced in the root; leaves the sourcing script if maturin, mypy and pytest can't be installed.
# shellcheck shell=bash
target=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])')
venv="$target/python-venv"
if ! "$venv/bin/python" -c 'import maturin, mypy, pytest' 2>/dev/null; then
    if ! python3 -m venv "$venv" || ! "$venv/bin/pip" install --quiet 'maturin==1.16.0' 'mypy==2.4.1' 'pytest==9.2.0'; then
        echo "skipped: maturin, mypy and pytest could not be installed from PyPI (no network, or no python3-venv)" >&2
        exit 0
    fi
fi
export PATH="$venv/bin:$PATH" PYTHONDONTWRITEBYTECODE=1
rm -rf "$target/wheels"
maturin build --quiet --profile dev --manifest-path python/Cargo.toml --out "$target/wheels"
