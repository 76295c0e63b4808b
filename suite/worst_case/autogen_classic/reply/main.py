"""A reply function of the project, which asks a model."""
from autogen import ConversableAgent
from openai import OpenAI

config = {"config_list": [{"model": "gpt-4o-mini"}], "cache_seed": None}
one = ConversableAgent("one", llm_config=False, human_input_mode="NEVER")
two = ConversableAgent("two", llm_config=config, human_input_mode="NEVER")


def reply(recipient, messages=None, sender=None, config=None):
    answer = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": "go on"}])
    return True, answer.choices[0].message.content


one.register_reply([ConversableAgent, None], reply)
one.initiate_chat(two, message="Hello", max_turns=3)
