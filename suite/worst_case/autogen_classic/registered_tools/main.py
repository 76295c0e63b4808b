"""A tool that one agent proposes and another executes."""
from typing import Annotated

from autogen import ConversableAgent, register_function

config = {"config_list": [{"model": "gpt-4o-mini"}], "cache_seed": None}


def calculator(a: int, b: int, operator: Annotated[str, "operator"]) -> int:
    """Calculates."""
    return a + b


assistant = ConversableAgent("Assistant", llm_config=config)
user_proxy = ConversableAgent(
    "User",
    llm_config=False,
    is_termination_msg=lambda msg: msg.get("content") is not None and "TERMINATE" in msg["content"],
    human_input_mode="NEVER",
    max_consecutive_auto_reply=3,
)
register_function(calculator, caller=assistant, executor=user_proxy, name="calculator", description="Calculates.")
chat_result = user_proxy.initiate_chat(assistant, message="What is (44232 + 13312) - 3?")
