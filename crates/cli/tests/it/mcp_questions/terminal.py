"""Runs a command at a terminal of its own and types each line when its text is there."""

import json
import os
import pty
import sys

typed, command = json.loads(sys.argv[1]), sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execvp(command[0], command)
seen = whole = b""
while True:
    if typed and typed[0][0].encode() in seen:
        os.write(terminal, typed.pop(0)[1].encode())
        seen = b""
    try:
        read = os.read(terminal, 4096)
    except OSError:
        break
    if not read:
        break
    seen, whole = seen + read, whole + read
sys.stdout.buffer.write(whole)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
