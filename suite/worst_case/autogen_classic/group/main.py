"""A group with a manager who chooses."""
from autogen import AssistantAgent, GroupChat, GroupChatManager, UserProxyAgent

config = {"config_list": [{"model": "gpt-4o-mini"}], "cache_seed": None}
coder = AssistantAgent("coder", llm_config=config)
tester = AssistantAgent("tester", llm_config=config)
user = UserProxyAgent("user", human_input_mode="NEVER", code_execution_config=False)
group = GroupChat([user, coder, tester], messages=[], max_round=5)
manager = GroupChatManager(groupchat=group, llm_config=config)
user.initiate_chat(manager, message="Build it")
