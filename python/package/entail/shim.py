"""Calls functions of a module that are tools, over standard input and output: `python -m entail.shim MODULE`.

`entail` brings this program along and starts it with the Python of a project, where this package need not be installed. Here it is for
those who drive it themselves; its source says how.
"""

import sys

from entail import _entail

if __name__ == "__main__":
    exec(compile(_entail.SHIM, "entail-shim", "exec"), {"__name__": "__main__", "__doc__": __doc__, "sys": sys})
