//! Paths that a program goes by itself: its own steps fetch, ask a model, and act.

use crate::audit_tools::audit;
use serde_json::Value;

/// The paths of a project as `source → sink`, by the last parts of the names.
fn paths(files: &[(&str, &str)]) -> Vec<String> {
    let last_part = |v: &Value| v.as_str().unwrap().rsplit('.').next().unwrap().to_string();
    let programs = audit(files);
    let paths = programs.iter().flat_map(|p| p["paths"].as_array().unwrap());
    let mut all: Vec<String> = paths
        .map(|p| format!("{} → {}", last_part(&p["source"]["name"]), last_part(&p["sink"]["name"])))
        .collect();
    all.sort();
    all
}

fn check(files: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(paths(files), expected, "{files:#?}");
}

const MAIL: &str = "import imaplib
import smtplib

class Box:
    def __init__(self):
        self.imap = imaplib.IMAP4_SSL('h')

    def newest(self):
        _, data = self.imap.fetch('1', '(RFC822)')
        return [{'id': '1', 'from': 'x', 'body': data[0][1].decode()}]

    def trash(self, uid):
        self.imap.store(uid, '+FLAGS', 'Deleted')

    def mail(self, to, text):
        with smtplib.SMTP('h') as s:
            s.sendmail('me@example.org', to, text)
";

/// A graph with nodes in a class of their own; `{write}` and `{send}` are the bodies of two nodes.
fn graph(write: &str, send: &str, edges: &str) -> String {
    format!(
        "from langgraph.graph import END, START, StateGraph
from langchain_openai import ChatOpenAI
from box import Box

class Nodes:
    def __init__(self):
        self.box = Box()
        self.llm = ChatOpenAI(model='gpt-4o')

    def read(self, state):
        return {{'mails': self.box.newest(), 'seen': 1}}

    def write(self, state):
        {write}

    def send(self, state):
        {send}
        return {{'done': True}}

nodes = Nodes()
graph = StateGraph(dict)
graph.add_node('read', nodes.read)
graph.add_node('write', nodes.write)
graph.add_node('send', nodes.send)
graph.add_edge(START, 'read')
graph.add_edge('read', 'write')
{edges}
app = graph.compile()
app.invoke({{}})
"
    )
}

const EDGES: &str = "graph.add_edge('write', 'send')\ngraph.add_edge('send', END)";

#[test]
fn nodes_of_a_graph_fetch_and_send() {
    let write = "mail = state['mails'][0]\n        \
                 return {'answer': self.llm.invoke('Reply: ' + mail['body']).content}";
    let send = "self.box.mail('bo@example.org' + state['to'], state['answer'])";
    check(&[("box.py", MAIL), ("m.py", &graph(write, send, EDGES))], &["fetch → sendmail"]);
    // A part of the state that no model has made, and one that nobody has written.
    for other in ["state['mails'][0]['body']", "str(state['seen'])", "state['other']", "'Hello.'"] {
        let send = format!("self.box.mail(state['to'], {other})");
        check(&[("box.py", MAIL), ("m.py", &graph(write, &send, EDGES))], &[]);
    }
    // A prompt that holds nothing of the mail.
    let unread = "return {'answer': self.llm.invoke('Write a letter.').content}";
    check(&[("box.py", MAIL), ("m.py", &graph(unread, send, EDGES))], &[]);
}

#[test]
fn an_answer_decides_what_is_deleted() {
    let write = "mail = state['mails'][0]\n        \
                 return {'action': self.llm.invoke('Keep or delete: ' + mail['body']).content}";
    let send = "if state['action'] == 'delete':\n            self.box.trash(state['mails'][0]['id'])";
    check(&[("box.py", MAIL), ("m.py", &graph(write, send, EDGES))], &["fetch → store"]);
    // It is deleted whatever the model says.
    let always = "print(state['action'])\n        self.box.trash(state['mails'][0]['id'])";
    check(&[("box.py", MAIL), ("m.py", &graph(write, always, EDGES))], &[]);
    // That there is an answer says nothing.
    let any = "if state['action']:\n            self.box.trash(state['mails'][0]['id'])";
    check(&[("box.py", MAIL), ("m.py", &graph(write, any, EDGES))], &[]);
}

#[test]
fn a_conditional_edge_decides_what_runs() {
    let write = "mail = state['mails'][0]\n        \
                 return {'kind': self.llm.invoke('Which kind: ' + mail['body']).content}";
    let send = "self.box.trash(state['mails'][0]['id'])";
    let edges = "graph.add_conditional_edges('write', lambda s: 'send' if s['kind'] == 'spam' else END, \
                 {'send': 'send', END: END})\ngraph.add_edge('send', END)";
    check(&[("box.py", MAIL), ("m.py", &graph(write, send, edges))], &["fetch → store"]);
    // The number of mails is not the model's.
    let edges = edges.replace("s['kind'] == 'spam'", "len(s['mails']) > 1");
    check(&[("box.py", MAIL), ("m.py", &graph(write, send, &edges))], &[]);
}

#[test]
fn plain_functions_around_a_call_of_a_model() {
    let text = |ask: &str, send: &str| {
        format!(
            "import sys
import requests
import smtplib
from openai import OpenAI

client = OpenAI()

def ask(prompt):
    reply = client.chat.completions.create(model='gpt-4o', messages=[{{'role': 'user', 'content': prompt}}])
    return reply.choices[0].message.content

def page(url):
    return requests.get(url, timeout=5).text

def send(to, text):
    with smtplib.SMTP('h') as s:
        s.sendmail('me@example.org', to, text)

def main(url, to):
    text = page(url)
    summary = ask({ask})
    send(to, {send})

main(*sys.argv[1:])
"
        )
    };
    check(&[("m.py", &text("f'Sum up: {text}'", "summary"))], &["get → sendmail"]);
    check(&[("m.py", &text("'Write a poem.'", "summary"))], &[]);
    check(&[("m.py", &text("f'Sum up: {text}'", "ask('Write a poem.')"))], &[]);
    check(&[("m.py", &text("f'Sum up: {text}'", "text"))], &[]);
}

#[test]
fn models_are_asked_in_many_ways() {
    let text = |head: &str, ask: &str| {
        format!(
            "import os\nimport requests\n{head}\n\ndef run(url):\n    page = requests.get(url).text\n    \
             answer = {ask}\n    os.system(str(answer))\n"
        )
    };
    for (head, ask) in [
        ("import openai", "openai.ChatCompletion.create(model='g', messages=[{'content': page}])"),
        (
            "import anthropic\nclient = anthropic.Anthropic()",
            "client.messages.create(model='c', messages=[{'content': page}]).content[0].text",
        ),
        ("import litellm", "litellm.completion(model='g', messages=[{'content': page}])"),
        (
            "import google.generativeai as genai\nmodel = genai.GenerativeModel('g')",
            "model.generate_content(page).text",
        ),
        ("import ollama", "ollama.chat(model='l', messages=[{'content': page}])['message']['content']"),
        (
            "import openai",
            "requests.post('https://openrouter.ai/api/v1/chat/completions', json={'messages': page}).json()",
        ),
        ("from pydantic_ai import Agent\nagent = Agent('openai:gpt-4o')", "agent.run_sync(page).output"),
        ("from langchain_openai import ChatOpenAI", "ChatOpenAI(model='g').invoke(page).content"),
    ] {
        check(&[("m.py", &text(head, ask))], &["get → system"]);
    }
    check(&[("m.py", &text("import openai", "page[:10]"))], &[]);
}

#[test]
fn steps_of_a_flow_and_of_a_workflow() {
    let flow = "import requests
import tweepy
from crewai import LLM
from crewai.flow.flow import Flow, listen, start

class News(Flow):
    @start()
    def fetch(self):
        return requests.get('https://news.ycombinator.com/').text

    @listen(fetch)
    def write(self, page):
        self.state['post'] = LLM(model='gpt-4o').call('A post about: ' + page)

    @listen(write)
    def publish(self):
        tweepy.Client('k').create_tweet(text=self.state['post'])

News().kickoff()
";
    check(&[("m.py", flow)], &["get → create_tweet"]);
    check(&[("m.py", &flow.replace("self.state['post'])", "self.state['topic'])"))], &[]);
    let workflow = "import requests
import tweepy
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step
from llama_index.llms.openai import OpenAI

class Page(Event):
    text: str

class Post(Event):
    text: str

class News(Workflow):
    llm = OpenAI(model='gpt-4o')

    @step
    async def fetch(self, ev: StartEvent) -> Page:
        return Page(text=requests.get('https://news.ycombinator.com/').text)

    @step
    async def write(self, ev: Page) -> Post:
        return Post(text=str(await self.llm.acomplete('A post about: ' + ev.text)))

    @step
    async def publish(self, ev: Post) -> StopEvent:
        tweepy.Client('k').create_tweet(text=ev.text)
        return StopEvent(result='done')
";
    check(&[("m.py", workflow)], &["get → create_tweet"]);
    let executors = "import requests
import tweepy
from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler
from agent_framework.openai import OpenAIChatClient

class Fetch(Executor):
    @handler
    async def go(self, url: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(requests.get('https://news.ycombinator.com/').text)

class Write(Executor):
    def __init__(self, id):
        super().__init__(id=id)
        self.agent = OpenAIChatClient().create_agent(instructions='You write posts.')

    @handler
    async def go(self, page: str, ctx: WorkflowContext[str]) -> None:
        answer = await self.agent.run(page)
        await ctx.send_message(answer.text)

class Publish(Executor):
    @handler
    async def go(self, post: str, ctx: WorkflowContext[None, str]) -> None:
        tweepy.Client('k').create_tweet(text=post)

fetch, write, publish = Fetch(id='f'), Write('w'), Publish(id='p')
workflow = WorkflowBuilder().set_start_executor(fetch).add_edge(fetch, write).add_edge(write, publish).build()
";
    check(&[("m.py", executors)], &["get → create_tweet"]);
}

/// The answer of the agent that reads is the input of the agent that acts.
#[test]
fn an_answer_goes_to_the_next_agent() {
    let text = |given: &str| {
        format!(
            "import subprocess
import requests
from agents import Agent, Runner, function_tool

@function_tool
def page(url: str) -> str:
    return requests.get(url).text

@function_tool
def run(command: str) -> str:
    return str(subprocess.run(command, shell=True))

reader = Agent(name='reader', model='gpt-4.1', instructions='Read.', tools=[page])
doer = Agent(name='doer', model='gpt-4.1', instructions='Do.', tools=[run])

def main(task):
    found = Runner.run_sync(reader, task).final_output
    print(found)
    return Runner.run_sync(doer, {given}).final_output

main(input())
"
        )
    };
    check(&[("m.py", &text("f'Use this: {found}'"))], &["page → run"]);
    check(&[("m.py", &text("task"))], &[]);
}

/// A program's own files and tables are its purpose, but not which file, and not which statement.
#[test]
fn an_answer_that_selects_a_file_or_a_statement() {
    let text = |act: &str| {
        format!(
            "import sqlite3\nimport requests\nfrom openai import OpenAI\n\ndef run(url):\n    \
             page = requests.get(url).text\n    answer = OpenAI().responses.create(model='g', input=page).output_text\n    \
             db = sqlite3.connect('a.db')\n    {act}\n"
        )
    };
    check(&[("m.py", &text("open(answer, 'w').write('x')"))], &["get → open"]);
    check(&[("m.py", &text("db.execute(answer)"))], &["get → execute"]);
    check(&[("m.py", &text("open('log.txt', 'w').write(answer)"))], &[]);
    check(&[("m.py", &text("db.execute('INSERT INTO a VALUES (?)', (answer,))"))], &[]);
    let record = "from supabase import create_client\n    create_client('u', 'k').table('a').insert({'a': answer}).execute()";
    check(&[("m.py", &text(record))], &[]);
}

/// Arguments by keyword that are handed on keep their names. An answer that only selects from a list of the
/// program is not handed on.
#[test]
fn arguments_and_selections_are_told_apart() {
    let text = |act: &str| {
        format!(
            "import os\nimport smtplib\nimport requests\nfrom openai import OpenAI\n\nALLOWED = {{'a', 'b'}}\n\n\
             def shell(command=None, note=None):\n    os.system(command)\n\n\
             def tool(name, **given):\n    return shell(**given)\n\n\
             def main(url):\n    page = requests.get(url).text\n    \
             answer = OpenAI().responses.create(model='g', input=page).output_text\n    \
             words = answer.split()\n    {act}\n"
        )
    };
    check(&[("m.py", &text("tool('shell', command=answer)"))], &["get → system"]);
    check(&[("m.py", &text("tool('shell', command='ls', note=answer)"))], &[]);
    check(&[("m.py", &text("os.system(' '.join(w for w in words))"))], &["get → system"]);
    check(&[("m.py", &text("os.system(' '.join(w for w in words if w in ALLOWED))"))], &[]);
    check(&[("m.py", &text("os.system(' '.join(set(words) & ALLOWED))"))], &[]);
}

/// Files that the program names are followed; other folders have other files.
#[test]
fn text_goes_through_a_file() {
    let write = |folder: &str| {
        let text = "import json\nimport requests\nfrom openai import OpenAI\n\ndef main(url):\n    \
             page = requests.get(url).text\n    \
             posts = OpenAI().responses.create(model='g', input=page).output_text\n    \
             with open('queue.json', 'w') as f:\n        json.dump({'posts': posts}, f)\n";
        (format!("{folder}write.py"), text.to_string())
    };
    let send = "import json\nimport tweepy\nfrom openai import OpenAI\n\ndef main():\n    with open('queue.json') as f:\n        \
                queue = json.load(f)\n    tweepy.Client('k').create_tweet(text=queue['posts'])\n";
    for (folder, expected) in [("", &["get → create_tweet"][..]), ("other/", &[])] {
        let (name, text) = write(folder);
        check(&[(&name, &text), ("send.py", send)], expected);
    }
}

/// The event that started a workflow of GitHub is text of anyone.
#[test]
fn events_of_github_are_sources() {
    let text = |body: &str| {
        format!(
            "import json\nimport os\nimport subprocess\nfrom openai import OpenAI\n\ndef main():\n    {body}\n    \
             answer = OpenAI().responses.create(model='g', input=text).output_text\n    \
             subprocess.run(['gh', 'issue', 'comment', '1', '--body', answer])\n\nmain()\n"
        )
    };
    let event = "text = json.load(open(os.environ['GITHUB_EVENT_PATH']))['issue']['body']";
    check(&[("m.py", &text(event))], &["GITHUB_EVENT_PATH → run"]);
    check(&[("m.py", &text("text = os.environ['ISSUE_BODY']"))], &["ISSUE_BODY → run"]);
    check(&[("m.py", &text("text = os.environ['TOPIC']"))], &[]);
}

/// A project with thousands of functions that call each other ends in time, and so does one whose values go
/// everywhere.
#[test]
fn large_programs_end() {
    let mut text = String::from(
        "import os\nimport requests\nfrom openai import OpenAI\n\nclient = OpenAI()\nstate = {}\n",
    );
    for i in 0..3_000 {
        text.push_str(&format!(
            "\ndef f{i}(a, b):\n    state['k{i}'] = a\n    return f{}(b, state) + f{}(a, state['k{}'])\n",
            (i * 7 + 1) % 3_000,
            (i * 13 + 5) % 3_000,
            (i * 3) % 3_000
        ));
    }
    text.push_str(
        "\npage = requests.get('https://example.org/' + input()).text\n\
         os.system(client.responses.create(model='g', input=f0(page, page)).output_text)\n",
    );
    let found = paths(&[("m.py", &text)]);
    assert!(found.len() <= 1, "{found:?}");
}
