"""A critic in a nested chat, for each reply of the writer."""
from autogen import AssistantAgent, UserProxyAgent

config = {"config_list": [{"model": "gpt-4o-mini"}], "cache_seed": None}
writer = AssistantAgent("writer", llm_config=config)
critic = AssistantAgent("critic", llm_config=config)
user = UserProxyAgent("user", human_input_mode="NEVER", code_execution_config=False)


def reflect(recipient, messages, sender, config):
    return f"Criticize: {recipient.chat_messages_for_summary(sender)[-1]['content']}"


user.register_nested_chats(
    [{"recipient": critic, "message": reflect, "summary_method": "last_msg", "max_turns": 1}], trigger=writer
)
user.initiate_chat(writer, message="Write a post", max_turns=3, summary_method="last_msg")
