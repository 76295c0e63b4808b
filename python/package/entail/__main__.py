"""The command line: `entail` and `python -m entail`."""

import signal
import sys

from entail import _entail


def main() -> int:
    """What the program `entail` does; the result is its exit status."""
    # Ctrl-C is the command line's own affair: Python would only note it and wait for native code to end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _entail.command_line([sys.executable, "-m", "entail"], ["entail", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
