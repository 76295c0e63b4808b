"""Runs a command at a terminal of its own, and types a line after each text that is awaited: typed.py JSON."""

import json
import os
import pty
import sys

command, typed = json.loads(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], command)
shown, seen = b"", b""
for awaited, text in typed:
    while awaited.encode() not in seen:
        seen += os.read(terminal, 4096)
    shown, seen = shown + seen, b""
    os.write(terminal, text.encode())
while True:
    try:
        more = os.read(terminal, 4096)
    except OSError:
        break
    if not more:
        break
    seen += more
sys.stdout.write((shown + seen).decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
