"""A chat whose summary is made by a model."""
from autogen import ConversableAgent

config = {"config_list": [{"model": "gpt-4o-mini"}], "cache_seed": None}
one = ConversableAgent("one", llm_config=config, human_input_mode="NEVER")
two = ConversableAgent("two", llm_config=config, human_input_mode="NEVER")
result = one.initiate_chat(two, message="Tell a joke", max_turns=2, summary_method="reflection_with_llm")
print(result.summary)
