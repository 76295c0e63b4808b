"""Runs a program of AutoGen before 0.4; what it says beside its result is left out."""

import contextlib
import io
import logging
import runpy
import sys
import warnings

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
said = io.StringIO()
with contextlib.redirect_stdout(said):
    runpy.run_path(sys.argv[1], run_name="__main__")
lines = said.getvalue().strip().splitlines()
print(lines[-1] if lines else "")
