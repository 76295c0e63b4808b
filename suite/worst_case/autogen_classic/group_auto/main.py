"""A group whose manager picks the speaker, with retries for its choice."""
from autogen import ConversableAgent, GroupChat, GroupChatManager

config = {"config_list": [{"model": "gpt-4o-mini"}], "cache_seed": None}
agents = [
    ConversableAgent(name, llm_config=config, human_input_mode="NEVER", description=f"The {name}.")
    for name in ("Adder", "Multiplier", "Writer")
]
group_chat = GroupChat(
    agents=agents, messages=[], max_round=4, max_retries_for_selecting_speaker=1, speaker_selection_method="auto"
)
manager = GroupChatManager(groupchat=group_chat, llm_config=config)
agents[0].initiate_chat(manager, message="My number is 3.", summary_method="reflection_with_llm")
