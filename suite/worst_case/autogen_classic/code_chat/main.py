"""An assistant that writes code and a proxy that runs it, five times."""
from autogen import AssistantAgent, UserProxyAgent

config = {"config_list": [{"model": "gpt-4o-mini"}], "cache_seed": None}
assistant = AssistantAgent("assistant", llm_config=config)
user_proxy = UserProxyAgent(
    "user_proxy",
    human_input_mode="NEVER",
    max_consecutive_auto_reply=4,
    is_termination_msg=lambda x: x.get("content", "").rstrip().endswith("TERMINATE"),
    code_execution_config=False,
)
for task in ["Plot a chart", "Save it"]:
    user_proxy.initiate_chat(assistant, message=task, clear_history=False)
