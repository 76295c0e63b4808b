"""A conversation of two with a termination message."""
from autogen import AssistantAgent, UserProxyAgent

config = {"config_list": [{"model": "gpt-4o", "api_key": "none"}], "temperature": 0, "cache_seed": None}
helper = AssistantAgent("helper", system_message="Help. Say TERMINATE at the end.", llm_config=config)
user = UserProxyAgent(
    "user",
    human_input_mode="NEVER",
    is_termination_msg=lambda m: (m.get("content") or "").rstrip().endswith("TERMINATE"),
    code_execution_config=False,
    default_auto_reply="Go on.",
)

if __name__ == "__main__":
    print(user.initiate_chat(helper, message="Count", silent=True).chat_history[-1]["content"])
