"""A limit of consecutive automatic replies."""
from autogen import AssistantAgent, UserProxyAgent

config = {"config_list": [{"model": "gpt-4o", "api_key": "none"}], "cache_seed": None}
helper = AssistantAgent("helper", system_message="Help.", llm_config=config)
user = UserProxyAgent("user", human_input_mode="NEVER", max_consecutive_auto_reply=1, code_execution_config=False, default_auto_reply="More.")

if __name__ == "__main__":
    print(user.initiate_chat(helper, message="Count", silent=True).chat_history[-1]["content"])
