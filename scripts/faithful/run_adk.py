"""Runs a program of Google ADK."""

import logging
import runpy
import sys
import warnings

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
runpy.run_path(sys.argv[1], run_name="__main__")
