"""Two agents before 0.4, at most four turns."""
from autogen import AssistantAgent, UserProxyAgent

config = {"config_list": [{"model": "gpt-4o-mini"}], "cache_seed": None}
assistant = AssistantAgent("assistant", llm_config=config)
user = UserProxyAgent("user", human_input_mode="NEVER", code_execution_config=False, llm_config=False)
user.initiate_chat(assistant, message="Write a poem", max_turns=4)
