"""Runs a program of Pydantic AI."""

import runpy
import sys
import warnings

warnings.simplefilter("ignore")
runpy.run_path(sys.argv[1], run_name="__main__")
