"""Two assistants with limits of their own, and a summary by a model."""
from autogen import ConversableAgent

config = {"config_list": [{"model": "gpt-4o-mini"}], "cache_seed": None}
cathy = ConversableAgent("cathy", system_message="You are Cathy.", llm_config=config, human_input_mode="NEVER")
joe = ConversableAgent(
    "joe", system_message="You are Joe.", llm_config=config, human_input_mode="NEVER", max_consecutive_auto_reply=2
)
result = joe.initiate_chat(
    cathy, message="Tell me a joke.", max_turns=3, summary_method="reflection_with_llm", summary_prompt="Sum up."
)
print(result.summary)
