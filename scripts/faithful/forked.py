"""Loads a framework once and runs each program in a child process of its own.

    forked.py RUNNER MODULE…

Reads jobs from standard input, a JSON object a line: `program`, `args`, `env`, `cwd`, `out` and `err` (files), `seconds`.
Answers each with `{"pid": …}` when it starts and `{"code": …}` when it has ended.
"""

import importlib
import json
import os
import runpy
import signal
import sys
import warnings


def child(job):
    os.setsid()
    signal.alarm(job["seconds"])
    for target, stream in ((job["out"], 1), (job["err"], 2)):
        os.dup2(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(job["cwd"])
    os.environ.update(job["env"])
    sys.path.insert(0, os.path.dirname(job["program"]))
    sys.argv = [runner, job["program"], *job.get("args", [])]
    code = 0
    try:
        runpy.run_path(runner, run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


runner, modules = sys.argv[1], sys.argv[2:]
warnings.simplefilter("ignore")
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for module in modules:
    importlib.import_module(module)
for line in sys.stdin:
    job = json.loads(line)
    pid = os.fork()
    if pid == 0:
        child(job)
    print(json.dumps({"pid": pid}), file=answers, flush=True)
    _, status = os.waitpid(pid, 0)
    print(json.dumps({"code": os.waitstatus_to_exitcode(status)}), file=answers, flush=True)
