"""Parallel function calls, carried out by the other agent."""
from typing import Annotated

from autogen import AssistantAgent, UserProxyAgent

config = {"config_list": [{"model": "gpt-4o", "api_key": "none"}], "cache_seed": None}
helper = AssistantAgent("helper", system_message="Help.", llm_config=config)
user = UserProxyAgent("user", human_input_mode="NEVER", code_execution_config=False, is_termination_msg=lambda m: "DONE" in str(m.get("content")))


@user.register_for_execution()
@helper.register_for_llm(description="Adds two numbers.")
def add(a: Annotated[int, "the first"], b: Annotated[int, "the second"]) -> int:
    return a + b


if __name__ == "__main__":
    print(user.initiate_chat(helper, message="1 + 2 and 3 + 4", silent=True).chat_history[-1]["content"])
