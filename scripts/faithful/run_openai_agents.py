"""Runs a program of the OpenAI Agents SDK on Chat Completions, without tracing."""

import runpy
import sys

import agents

agents.set_default_openai_api("chat_completions")
agents.set_tracing_disabled(True)
runpy.run_path(sys.argv[1], run_name="__main__")
