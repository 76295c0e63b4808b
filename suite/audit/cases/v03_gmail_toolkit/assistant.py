"""Reads and answers the mail of its user."""
from langchain_community.agent_toolkits import GmailToolkit
from langchain_community.tools.gmail.utils import build_resource_service, get_gmail_credentials
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent

credentials = get_gmail_credentials(token_file="token.json", scopes=["https://mail.google.com/"])
toolkit = GmailToolkit(api_resource=build_resource_service(credentials=credentials))
agent = create_react_agent(ChatOpenAI(model="gpt-4o"), toolkit.get_tools(), prompt="You look after my mail.")

if __name__ == "__main__":
    print(agent.invoke({"messages": [("user", "What did I get today?")]}, {"recursion_limit": 20}))
