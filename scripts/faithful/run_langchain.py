"""Runs a saved chain of LangChain: a file of `chain.save`, or of `langchain_core.load.dumps`, with its input.

A saved `openai-chat` is the chat model of `langchain_openai`: the class that the library had for it speaks a protocol of before."""

import contextlib
import io
import json
import sys
import warnings

import yaml

warnings.simplefilter("ignore")

import langchain_community.llms.loading as loading
from langchain_classic.chains.loading import load_chain_from_config
from langchain_core.documents import Document
from langchain_core.load import load
from langchain_openai import ChatOpenAI

loading.get_type_to_cls_dict = lambda: {"openai-chat": lambda: ChatOpenAI}


def value(data):
    """Input as Python has it: documents are objects."""
    if isinstance(data, list):
        return [value(d) for d in data]
    return Document(**data) if isinstance(data, dict) and "page_content" in data else data


def shown(result):
    if hasattr(result, "content"):
        return result.content
    if isinstance(result, dict):
        return {k: shown(v) for k, v in result.items()}
    return result


# What a token is asks the network; nothing here is near any limit.
ChatOpenAI.get_num_tokens = lambda self, text: len(text)

path, given = sys.argv[1:3]
with open(path) as file:
    saved = yaml.safe_load(file)
try:
    given = {k: value(v) for k, v in json.loads(given).items()}
except (ValueError, AttributeError):
    pass
# What a chain says on its way is left out.
with contextlib.redirect_stdout(io.StringIO()):
    if "lc" in saved:
        result = shown(load(saved, allowed_objects="all").invoke(given))
    else:
        chain = load_chain_from_config(saved)
        if not isinstance(given, dict):
            given = {chain.input_keys[0]: given}
        out = chain.invoke(given)
        out = {k: out[k] for k in chain.output_keys}
        result = next(iter(out.values())) if len(out) == 1 else out
print(result if isinstance(result, str) else json.dumps(result))
