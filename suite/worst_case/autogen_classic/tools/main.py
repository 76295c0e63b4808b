"""Functions that the assistant asks for and the user carries out; one of them asks a model."""
from typing import Annotated

from autogen import AssistantAgent, ConversableAgent, register_function
from openai import OpenAI

config = {"config_list": [{"model": "gpt-4o-mini"}], "cache_seed": None}


def translate(text: Annotated[str, "the text"]) -> str:
    reply = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": text}])
    return reply.choices[0].message.content


assistant = AssistantAgent("assistant", llm_config=config)
user = ConversableAgent("user", llm_config=False, human_input_mode="NEVER", code_execution_config=False)
register_function(translate, caller=assistant, executor=user, description="Translates a text.")
user.initiate_chat(assistant, message="Good morning", max_turns=3)
