"""Several chats one after the other."""
from autogen import ConversableAgent, initiate_chats

config = {"config_list": [{"model": "gpt-4o-mini"}], "cache_seed": None}
boss = ConversableAgent("boss", llm_config=False, human_input_mode="NEVER", default_auto_reply="go on")
writer = ConversableAgent("writer", llm_config=config, human_input_mode="NEVER")
editor = ConversableAgent("editor", llm_config=config, human_input_mode="NEVER")
initiate_chats(
    [
        {"sender": boss, "recipient": writer, "message": "Write", "max_turns": 2},
        {"sender": boss, "recipient": editor, "message": "Edit", "max_turns": 1},
    ]
)
