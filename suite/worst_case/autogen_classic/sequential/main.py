"""Chats in a row, each with a summary for the next."""
from autogen import ConversableAgent

config = {"config_list": [{"model": "gpt-4o-mini"}], "cache_seed": None}
student = ConversableAgent("Student", llm_config=config, human_input_mode="NEVER")
adder = ConversableAgent("Adder", llm_config=config, human_input_mode="NEVER")
doubler = ConversableAgent("Doubler", llm_config=config, human_input_mode="NEVER")
results = student.initiate_chats(
    [
        {"recipient": adder, "message": "14", "max_turns": 2, "summary_method": "last_msg"},
        {"recipient": doubler, "message": "Numbers:", "max_turns": 2, "summary_method": "reflection_with_llm"},
    ]
)
print(results[-1].summary)
