"""A conversation of two models with a number of turns."""
from autogen import ConversableAgent

config = {"config_list": [{"model": "gpt-4o", "api_key": "none"}], "cache_seed": None}
ann = ConversableAgent("ann", system_message="You are Ann.", llm_config=config, human_input_mode="NEVER")
bob = ConversableAgent("bob", system_message="You are Bob.", llm_config=config, human_input_mode="NEVER")

if __name__ == "__main__":
    print(ann.initiate_chat(bob, message="Hello Bob", max_turns=3, silent=True).chat_history[-1]["content"])
