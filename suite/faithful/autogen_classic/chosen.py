"""A group chat in which a model chooses the speaker."""
from autogen import AssistantAgent, GroupChat, GroupChatManager

config = {"config_list": [{"model": "gpt-4o", "api_key": "none"}], "cache_seed": None}
ann = AssistantAgent("ann", system_message="You are Ann.", description="Counts.", llm_config=config)
bob = AssistantAgent("bob", system_message="You are Bob.", description="Shouts.", llm_config=config)
cleo = AssistantAgent("cleo", system_message="You are Cleo.", llm_config=config)
group = GroupChat(agents=[ann, bob, cleo], messages=[], max_round=4)
manager = GroupChatManager(groupchat=group, llm_config=config)

if __name__ == "__main__":
    print(ann.initiate_chat(manager, message="Count", silent=True).chat_history[-1]["content"])
