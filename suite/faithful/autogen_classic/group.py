"""A round-robin group chat."""
from autogen import AssistantAgent, GroupChat, GroupChatManager, UserProxyAgent

config = {"config_list": [{"model": "gpt-4o", "api_key": "none"}], "cache_seed": None}
boss = UserProxyAgent("boss", human_input_mode="NEVER", code_execution_config=False, default_auto_reply="Next.")
ann = AssistantAgent("ann", system_message="You are Ann.", llm_config=config)
bob = AssistantAgent("bob", system_message="You are Bob.", llm_config=config)
group = GroupChat(agents=[boss, ann, bob], messages=[], max_round=6, speaker_selection_method="round_robin")
manager = GroupChatManager(groupchat=group, llm_config=config)

if __name__ == "__main__":
    print(boss.initiate_chat(manager, message="Count", silent=True).chat_history[-1]["content"])
