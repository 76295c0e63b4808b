"""One agent reads the sites of companies, the other one writes letters and files."""
import os
import smtplib

from crewai import Agent, Crew, Process, Task
from crewai.tools import BaseTool
from crewai_tools import FileReadTool, FileWriterTool, ScrapeWebsiteTool


class Letter(BaseTool):
    name: str = "letter"
    description: str = "Sends a letter."

    def _run(self, to: str, text: str) -> str:
        with smtplib.SMTP_SSL(os.environ["MAIL_HOST"]) as server:
            server.sendmail("sales@example.org", to, text)
        return "sent"


reader = Agent(role="Reader", goal="Know companies.", backstory="Curious.", llm="gpt-4o", tools=[ScrapeWebsiteTool(), FileReadTool()])
writer = Agent(role="Writer", goal="Write letters.", backstory="Kind.", llm="gpt-4o", tools=[Letter(), FileWriterTool()])
read = Task(description="Read the site of {company}.", expected_output="Notes.", agent=reader)
write = Task(description="Write to them.", expected_output="A letter.", agent=writer, context=[read])
crew = Crew(agents=[reader, writer], tasks=[read, write], process=Process.sequential)

if __name__ == "__main__":
    crew.kickoff(inputs={"company": "Acme"})
