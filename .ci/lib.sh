# What the scripts of `.ci` and `scripts` share: the folder that they run in, and `need`.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"
# A fresh clone is built once: intermediate results would only cost time and space.
[ -z "${CI:-}" ] || export CARGO_INCREMENTAL=0

tools="$PWD/target/tools"
export PATH="$PATH:$tools/bin"

# Installs Debian packages.
debian() {
    if ! have apt-get; then
        echo "please install the programs of the Debian packages \`$*\`" >&2
        exit 1
    fi
    local sudo=()
    [ "$(id -u)" = 0 ] || sudo=(sudo)
    echo "installing $*"
    "${sudo[@]}" apt-get update -qq
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null
}

# Installs a Rust program: the wheel that `.ci/tools.txt` pins, or from source where this platform has none.
rust_tool() { # name, version
    need python
    [ -x "$tools/bin/python3" ] || python3 -m venv "$tools"
    grep -A9 "toolchain-$1==" .ci/tools.txt | sed '/[^\\]$/q' >"$tools/$1.txt"
    local options=(--quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes)
    "$tools/bin/pip" install "${options[@]}" -r "$tools/$1.txt" ||
        cargo install --quiet --locked --root "$tools" "$1@$2"
}

# Builds the command as the tests of the workspace do, which were built before if all steps run: the package alone
# has other features of its dependencies, and all of them would be compiled again.
command_of_tests() {
    cargo test --quiet --workspace --no-run
    export NO_BUILD=1
}

# The folder that cargo builds into.
target_directory() {
    cargo metadata --format-version 1 --no-deps | python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])'
}

# Fails if the pages that are parts of the command are not committed as they were just made.
pages_are_committed() {
    [ -z "$(git status --porcelain crates/cli/assets crates/serve/assets web/assets.txt)" ] && return
    echo "the pages in crates/*/assets or web/assets.txt are not what web/src gives: run node web/assets.mjs and commit them" >&2
    exit 1
}

# Succeeds if all of these programs are on the path.
have() {
    local name
    for name in "$@"; do command -v "$name" >/dev/null || return 1; done
}

# The folder of the programs of a Postgres server.
postgres_bin() {
    if have initdb; then
        # The other programs are beside it, and not beside a link to it.
        dirname "$(readlink -f "$(command -v initdb)")"
    else
        find /usr/lib/postgresql -name bin -type d 2>/dev/null | sort -V | tail -n 1
    fi
}

# Makes sure that each of these is here: need cc python …
need() {
    local name
    for name in "$@"; do
        case $name in
        cc) have cc || debian gcc libc6-dev ;;
        c++) have c++ || debian g++ ;;
        python) python3 -c 'import ensurepip, pip' 2>/dev/null || debian python3 python3-pip python3-venv ;;
        # Debian keeps its programs in a folder of their version.
        postgres) [ -x "$(postgres_bin)/initdb" ] || debian postgresql ;;
        redis) have redis-server || debian redis-server ;;
        # Restate's server, for tests of runs on an engine.
        restate)
            need node
            local package
            package=@restatedev/restate-server-$(node -p 'process.platform + "-" + process.arch')
            npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$tools/restate" "$package@1.7.12"
            export ENTAIL_RESTATE_SERVER="$tools/restate/node_modules/$package/bin/restate-server"
            ;;
        model)
            # A build without front ends is enough, unless there is one already.
            local entail=("${CARGO_TARGET_DIR:-target}/debug/entail")
            [ -x "${entail[0]}" ] || entail=(cargo demo)
            "${entail[@]}" model list | grep -q smollm2-135m-instruct || "${entail[@]}" model pull
            ;;
        node) have node npm || debian nodejs npm ;;
        # What Debian calls Chromium installs a package of another kind on Ubuntu, whose runners have Chrome.
        chromium)
            if ! have chromium && have google-chrome; then
                export CHROMIUM=${CHROMIUM:-$(command -v google-chrome)}
            fi
            [ -n "${CHROMIUM:-}" ] || have chromium || debian chromium
            ;;
        coq) have coqc ocamlopt make || debian coq ocaml-nox make ;;
        rustfmt) cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt ;;
        clippy) cargo clippy --version >/dev/null 2>&1 || rustup component add clippy ;;
        cargo-deny) have cargo-deny || rust_tool cargo-deny 0.20.2 ;;
        cargo-fuzz) have cargo-fuzz || rust_tool cargo-fuzz 0.13.2 ;;
        # Without optimization it compiles in half the time and is fast enough.
        tree-sitter) have tree-sitter || cargo install --quiet --locked --debug --root "$tools" tree-sitter-cli@0.27.1 ;;
        *) echo "need: unknown program \`$name\`" >&2 && exit 2 ;;
        esac
    done
}
