//! Tools that are functions of Python, in processes of their own. The frameworks are small ones of ours with
//! the shapes of the real ones; `scripts/python` calls tools of the real ones.
#![cfg(unix)]

use crate::program;
use std::path::Path;
use std::process::Command;

/// Tools of each kind.
const TOOLS: &str = r#"
import asyncio, os, subprocess, sys, time

print("printed while it is imported")
CALLS = 0


def count(text: str) -> int:
    global CALLS
    CALLS += 1
    print("printed by the function")
    subprocess.run(["echo", "printed by a process"])
    return len(text) + 100 * CALLS


async def later(text: str, times: int = 2) -> str:
    await asyncio.sleep(0)
    return text * times


def secrets(text):
    return f"{os.environ.get('PLAIN')} {os.environ.get('SOME_TOKEN')} {os.environ.get('OTHER_TOKEN')}"


def broken(text):
    raise ValueError("no such text")


def gone(text):
    print("last words", file=sys.stderr, flush=True)
    os._exit(3)


def slow(text):
    subprocess.Popen(["sleep", "600"])
    time.sleep(600)


def large(text):
    return "x" * 5_000_000


def no_data(text):
    return float("nan")


def reads(text):
    return sys.stdin.read() + "nothing"


def key(text):
    return os.environ.get("ENTAIL_IDEMPOTENCY_KEY", "none")


def meet(text):
    """Waits for another call of itself."""
    open("met." + text, "w").close()
    while len([f for f in os.listdir() if f.startswith("met.")]) < 2:
        time.sleep(0.01)
    return text


class Search:
    name = "Web Search"

    def _run(self, text: str) -> str:
        return "found " + text


class Stored:
    """As LangChain's tools are."""

    name, func, coroutine, args_schema = "stored", len, None, None

    def invoke(self, args):
        return {"got": args}

    async def ainvoke(self, args):
        raise RuntimeError("not here")


class Function:
    """As those of the OpenAI Agents SDK are."""

    name = "renamed"
    params_json_schema = {"properties": {"text": {}, "limit": {"default": 1}}}

    async def on_invoke_tool(self, context, text):
        return "invoked with " + text


stored, function = Stored(), Function()
"#;

fn project(settings: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "lib/tools.py", TOOLS);
    write(dir.path(), "entail.toml", settings);
    dir
}

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Status, standard output, standard error.
fn entail(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = program::entail(dir, args);
    command
        .env("XDG_CACHE_HOME", dir.join("cache"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PLAIN", "plain")
        .env("SOME_TOKEN", "some")
        .env("OTHER_TOKEN", "other")
        .env_remove("VIRTUAL_ENV");
    program::ran(&mut command)
}

/// Calls the tool `t` once with the text `ab`.
fn call(handler: &str, result: &str) -> (i32, String, String) {
    let dir = project(&format!("[handlers]\nt = {handler}\n"));
    call_in(dir.path(), "text: String", "{ text: text }", result)
}

fn call_in(dir: &Path, params: &str, args: &str, result: &str) -> (i32, String, String) {
    let program = format!(
        "tool t({params}) -> {result} writes {{}}\n\
         pipeline main(text: String) -> {result} {{ let out = run t with {args}; return out; }}\n"
    );
    write(dir, "main.agent", &program);
    entail(dir, &["run", "-q", "main.agent", "ab"])
}

#[track_caller]
fn gives(handler: &str, result: &str, expected: &str) {
    let (status, out, err) = call(handler, result);
    assert_eq!((status, out.trim()), (0, expected), "{handler}: {err}");
}

#[track_caller]
fn fails(handler: &str, why: &str) {
    let (status, out, err) = call(handler, "String");
    assert_eq!(status, 1, "{handler}: {out}");
    assert!(err.contains(why), "{handler}: {err}");
}

#[test]
fn functions_and_tools_of_frameworks_are_called() {
    for (name, result, expected) in [
        ("count", "Number", "102"),
        ("later", "String", "\"abab\""),
        ("Search", "String", "\"found ab\""),
        ("web_search", "String", "\"found ab\""),
        ("renamed", "String", r#""invoked with {\"text\": \"ab\"}""#),
        ("reads", "String", "\"nothing\""),
    ] {
        gives(&format!("{{ python = \"lib/tools.py:{name}\" }}"), result, expected);
    }
    gives(
        "{ python = [\"lib/tools.py\", \"stored\"] }",
        "Obj{got: Obj{text: String}}",
        "{\n  \"got\": {\n    \"text\": \"ab\"\n  }\n}",
    );
    // A module of the standard library is one, too.
    gives("{ python = \"posixpath:basename\" }", "String", "\"ab\"");
}

#[test]
fn secrets_are_withheld_and_writes_have_keys() {
    gives("{ python = \"lib/tools.py:secrets\", env = [\"SOME_TOKEN\"] }", "String", "\"plain some None\"");
    let (_, out, err) = call("{ python = \"lib/tools.py:key\" }", "String");
    assert!(out.len() > 10 && out.trim() != "\"none\"", "{out}{err}");
}

#[test]
fn errors_have_source_locations() {
    fails("{ python = \"lib/tools.py:broken\" }", "failed: ValueError: no such text (lib/tools.py:26)");
    fails("{ python = \"lib/tools.py:gone\" }", "ended its process; its output: `");
    fails("{ python = \"lib/tools.py:gone\" }", "last words");
    fails("{ python = \"lib/tools.py:large\" }", "was killed: it gave more than 4194304 bytes");
    fails("{ python = \"lib/tools.py:no_data\" }", "its result is not data");
    fails("{ python = \"lib/tools.py:nobody\" }", "the module has no `nobody`");
    fails("{ python = \"lib/none.py:count\" }", "not found");
    fails("{ python = \"lib/tools.py\" }", "such as `tools.py:search`");
    fails("{ python = \"lib/tools.py:slow\", timeout = 0.5 }", "took longer than 0.5 s");
}

#[test]
fn a_module_stays_for_the_run_and_no_longer() {
    let dir = project("[handlers]\nt = { python = \"lib/tools.py:count\" }\n");
    let program = "tool t(text: String) -> Number {}\n\
        pipeline main(text: String) -> List[Number] { let a = run t with { text: text }; let b = run t with { text: text }; return [a, b]; }\n";
    write(dir.path(), "main.agent", program);
    let (status, out, err) = entail(dir.path(), &["run", "-q", "--format", "json", "main.agent", "ab"]);
    assert_eq!(status, 0, "{err}");
    assert!(out.contains("\"result\":[102,202]"), "{out}");
    // Nothing is left when the run has ended.
    let own = dir.path().display().to_string();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&line).contains(&own), "{}", String::from_utf8_lossy(&line));
    }
}

#[test]
fn calls_that_overlap_do_not_wait_for_one_another() {
    let dir = project("[handlers]\nt = { python = \"lib/tools.py:meet\" }\n");
    let program = "tool t(text: String) -> String {}\n\
        pipeline main(names: List[String]) -> List[String] {\n\
        parallel for name in names { let out = run t with { text: name }; }\n return out; }\n";
    write(dir.path(), "main.agent", program);
    let (status, out, err) =
        entail(dir.path(), &["run", "-q", "--format", "json", "main.agent", r#"{"names": ["a", "b"]}"#]);
    assert_eq!(status, 0, "{err}");
    assert!(out.contains(r#""result":["a","b"]"#), "{out}");
}

#[test]
fn null_option_takes_python_default() {
    let dir = project("[handlers]\nt = { python = \"lib/tools.py:later\" }\n");
    let (status, out, err) =
        call_in(dir.path(), "text: String, times: Option[Number]", "{ text: text, times: null }", "String");
    assert_eq!((status, out.trim()), (0, "\"abab\""), "{err}");
}

const CREW: &str = r#"
from crewai import Agent, Crew, Task
from crewai.tools import tool


@tool("Letter Count")
def count(text: str) -> int:
    """Counts letters."""
    return len(text)


clerk = Agent(role="Clerk", goal="Count", backstory="You count.", llm="m", tools=[count])
job = Task(description="Count the letters of bees.", expected_output="A number.", agent=clerk)
crew = Crew(agents=[clerk], tasks=[job])
"#;

/// As much of CrewAI as the module needs to be imported.
const CREWAI: &str = "class Agent:\n    def __init__(self, **_): pass\nTask = Agent\n\
    class Crew(Agent):\n    def kickoff(self): raise SystemError('an agent was run')\n";
const CREWAI_TOOLS: &str = "class Tool:\n    def __init__(self, name, func): self.name, self.func = name, func\n\
    def tool(name):\n    return lambda f: Tool(name, f)\n";

fn crew(more: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "crewai/__init__.py", CREWAI);
    write(dir.path(), "crewai/tools.py", CREWAI_TOOLS);
    write(dir.path(), "crew.py", &format!("{CREW}{more}"));
    write(
        dir.path(),
        "script.json",
        r#"[{"tool": "letter_count", "args": {"text": "bees"}}, "There are 4."]"#,
    );
    dir
}

const RUN: [&str; 5] = ["run", "--script", "script.json", "crew.py", "x"];

#[test]
fn the_functions_of_a_project_are_run_only_with_consent() {
    let dir = crew("\nif __name__ == \"__main__\":\n    crew.kickoff()\n");
    let (status, out, err) = entail(dir.path(), &RUN);
    assert_eq!(status, 1, "{out}");
    assert!(
        err.contains("the tool `letter_count` is `count` of `crew.py`, which runs only with consent"),
        "{err}"
    );
    let (_, out, _) = entail(dir.path(), &["tools", "crew.py"]);
    assert!(out.contains("cannot be called: the tool `letter_count` is `count` of `crew.py`"), "{out}");

    let consent = [&RUN[..], &["--python-tools"]].concat();
    let (status, out, err) = entail(dir.path(), &consent);
    assert_eq!((status, out.trim()), (0, "\"There are 4.\""), "{err}");
    assert!(err.contains("1 tool call"), "{err}");

    write(dir.path(), "entail.toml", "[python]\ntools = true\n");
    let (status, _, err) = entail(dir.path(), &RUN);
    assert_eq!(status, 0, "{err}");
    let (status, out, _) = entail(dir.path(), &["tools", "crew.py"]);
    assert!(status == 0 && !out.contains("cannot be called"), "{out}");
}

#[test]
fn a_module_that_runs_its_agents_when_it_is_imported_is_refused() {
    let dir = crew("\ntry:\n    crew.kickoff()\nexcept Exception:\n    pass\n");
    let (status, _, err) = entail(dir.path(), &[&RUN[..], &["--python-tools"]].concat());
    assert_eq!(status, 1);
    assert!(err.contains("the module starts `Crew.kickoff` when it is imported"), "{err}");
}

#[test]
fn the_interpreter_is_that_of_the_project() {
    let dir = project("[handlers]\nt = { python = \"lib/tools.py:count\" }\n");
    // The nearest environment of the module.
    write(dir.path(), ".venv/bin/python", "#!/bin/sh\necho 'this interpreter was asked' >&2\nexit 1\n");
    let make =
        Command::new("chmod").args(["+x", ".venv/bin/python"]).current_dir(dir.path()).status().unwrap();
    assert!(make.success());
    let (status, _, err) = call_in(dir.path(), "text: String", "{ text: text }", "Number");
    assert_eq!(status, 1);
    assert!(err.contains("this interpreter was asked"), "{err}");
    // What the settings name comes before it.
    write(
        dir.path(),
        "entail.toml",
        "[python]\ninterpreter = \"python3\"\n[handlers]\nt = { python = \"lib/tools.py:count\" }\n",
    );
    let (status, _, err) = call_in(dir.path(), "text: String", "{ text: text }", "Number");
    assert_eq!(status, 0, "{err}");
    write(
        dir.path(),
        "entail.toml",
        "[python]\ninterpreter = \"bin/nothing\"\n[handlers]\nt = { python = \"lib/tools.py:count\" }\n",
    );
    let (_, _, err) = call_in(dir.path(), "text: String", "{ text: text }", "Number");
    assert!(err.contains("error[E001]") && err.contains("bin/nothing`"), "{err}");
}
