"""A manager in code, which asks an agent that searches and has tools of its own."""
from smolagents import CodeAgent, InferenceClientModel, Tool, ToolCallingAgent, VisitWebpageTool, WebSearchTool, tool


@tool
def word_count(text: str) -> int:
    """Counts words.

    Args:
        text: A text.
    """
    return len(text.split())


class Shout(Tool):
    name = "shout"
    description = "Makes a text loud."
    inputs = {"text": {"type": "string", "description": "A text."}}
    output_type = "string"

    def forward(self, text: str) -> str:
        return text.upper()


model = InferenceClientModel(model_id="Qwen/Qwen2.5-72B-Instruct")
searcher = ToolCallingAgent(
    tools=[WebSearchTool(), VisitWebpageTool(), word_count],
    model=model,
    max_steps=4,
    name="search_agent",
    description="Searches the web.",
)
manager = CodeAgent(
    tools=[Shout()],
    model=model,
    managed_agents=[searcher],
    additional_authorized_imports=["time"],
    instructions="Answer with one number.",
)
manager.run("How many people live in Leipzig?")
