"""Before 0.4: a talk of two with tools, one of two with models, and a group."""
import autogen
from autogen import AssistantAgent, ConversableAgent, GroupChat, GroupChatManager, UserProxyAgent, register_function

config = {"config_list": [{"model": "gpt-4o", "api_key": "none"}], "temperature": 0}


def is_over(message):
    return message.get("content", "") and message["content"].rstrip().endswith("TERMINATE")


helper = AssistantAgent("helper", system_message="Help.", llm_config=config)
user = UserProxyAgent(
    "user",
    human_input_mode="NEVER",
    max_consecutive_auto_reply=4,
    is_termination_msg=is_over,
    code_execution_config=False,
    default_auto_reply="Go on.",
)


@user.register_for_execution()
@helper.register_for_llm(description="Looks up a word.")
def look_up(word: str) -> str:
    return word


def count(text: str) -> int:
    """Counts the words."""
    return len(text.split())


register_function(count, caller=helper, executor=user, name="count_words", description="Counts words.")
user.initiate_chat(helper, message="How many words?")

left = ConversableAgent("left", system_message="You are left.", llm_config=config, human_input_mode="NEVER")
right = ConversableAgent("right", system_message="You are right.", llm_config=config, human_input_mode="NEVER", is_termination_msg=lambda m: "BYE" in m["content"])
left.initiate_chat(right, message="Hello", max_turns=2)

boss = UserProxyAgent("boss", code_execution_config=False)
group = GroupChat(agents=[boss, helper, left], messages=[], max_round=6, speaker_selection_method="auto")
manager = GroupChatManager(groupchat=group, llm_config={"model": "gpt-4o-mini"})
boss.initiate_chat(manager, message="Begin.")
