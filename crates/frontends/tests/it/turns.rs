//! Loops, exceptions and shared values of Python: a bound that is too small, or a call that is left out,
//! would be a false claim.

use diagnostics::FileId;
use frontend_kit::doc::Limits;
use frontend_kit::{File, Project, Recognized, Versions};
use frontends::recognize;

const HEAD: &str = "from typing import TypedDict
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
llm = ChatOpenAI(model='m')
class S(TypedDict):
    a: str
    b: list
";
const TAIL: &str = "
g = StateGraph(S)
g.add_node('one', one)
g.add_edge(START, 'one')
g.add_edge('one', END)
app = g.compile()
";

fn lowered(text: &str) -> String {
    let text: std::sync::Arc<str> = text.into();
    let file = File::read(FileId(0), "main.py", &text, &Limits::default());
    let Recognized::Frontend(frontend) = recognize(&file) else { panic!("not recognized") };
    let compiled =
        frontend.lower(&Project { files: vec![file], versions: Versions::default(), modules: None }, 0);
    assert_eq!(compiled.units.len(), 1, "{:?}", compiled.diagnostics);
    core_ir::print_code(&compiled.units[0].code)
}

fn term(text: &str) -> String {
    lowered(&format!("{HEAD}{text}{TAIL}"))
}

/// Functions whose calls nobody can count: each says so.
#[track_caller]
fn has_no_bound(programs: &[&str]) {
    for program in programs {
        let term = term(program);
        assert!(term.contains("unknown"), "{program}\n{term}");
    }
}

fn asked(term: &str) -> usize {
    term.matches("llm ").count()
}

#[test]
fn a_helper_changes_what_a_loop_looks_at() {
    has_no_bound(&[
        "def ready(d): d['on'] = True
def one(s):
    d = {'on': False}
    for x in s['b']:
        if d['on']:
            llm.invoke(x)
        ready(d)
    return {'a': ''}",
        "class A:
    def __init__(self): self.todo = ['a']
    def more(self, x): self.todo.append(x)
    def run(self, s):
        while s['a']:
            self.more('z')
        for y in self.todo:
            llm.invoke(y)
        return {'a': ''}
one = A().run",
        "class A:
    def __init__(self): self.on = False
    def turn(self): self.on = True
    def run(self, s):
        for x in s['b']:
            if self.on:
                llm.invoke(x)
            self.turn()
        return {'a': ''}
one = A().run",
        "left = 0
def turn():
    global left
    left = 3
def one(s):
    while s['a']:
        if left:
            llm.invoke('x')
        turn()
    return {'a': ''}",
        "class C:
    n = 0
def turn(): C.n += 1
def one(s):
    for x in s['b']:
        turn()
        if C.n > 2:
            llm.invoke(x)
    return {'a': ''}",
    ]);
}

#[test]
fn requests_in_a_loop_condition_repeat_each_turn() {
    has_no_bound(&[
        "def one(s):
    while (r := llm.invoke(s['a']).content) != 'ok':
        print(r)
    return {'a': r}",
        "def again(q): return llm.invoke(q).content != 'ok'
def one(s):
    while again(s['a']):
        pass
    return {'a': ''}",
        "def one(s):
    for r in iter(lambda: llm.invoke('x').content, 'stop'):
        print(r)
    return {'a': ''}",
    ]);
}

#[test]
fn a_list_has_several_names() {
    // Both names are those of the list that is longer then.
    let two = term(
        "def one(s):
    a = ['x']
    b = a
    if s['a'] == 'more':
        b.append('y')
    for y in a:
        llm.invoke(y)
    return {'a': ''}",
    );
    assert!(two.contains("each"), "{two}");
    let any = term(
        "def one(s):
    a = ['x']
    b = a
    for x in s['b']:
        b.append(x)
    for y in a:
        llm.invoke(y)
    return {'a': ''}",
    );
    assert!(any.contains("each"), "{any}");
    has_no_bound(&["def one(s):
    todo = ['x']
    for y in todo:
        r = llm.invoke(y).content
        if r == 'more':
            todo.append(r)
    return {'a': ''}"]);
    // A list that a dictionary holds, too.
    let held = term(
        "def one(s):
    a = ['x']
    d = {'k': a}
    if s['a']:
        a.append('y')
    for z in d['k']:
        llm.invoke(z)
    return {'a': ''}",
    );
    assert_eq!(asked(&held), 2, "{held}");
}

#[test]
fn code_after_break_is_lowered() {
    for (turn, end) in [("break", "llm.invoke('end')"), ("continue", "llm.invoke('end')")] {
        let left = term(&format!(
            "def one(s):
    r = ''
    for i in range(3):
        r = llm.invoke(s['a']).content
        if r == 'ok':
            {turn}
        print(r)
    {end}
    return {{'a': r}}"
        ));
        assert!(!left.contains("fail"), "{left}");
        assert_eq!(asked(&left), 4, "{left}");
    }
    let other = term(
        "def one(s):
    for x in s['b']:
        if x == 'ok':
            break
    else:
        llm.invoke('none')
    return {'a': ''}",
    );
    assert!(other.contains("unknown"), "{other}");
}

#[test]
fn try_around_model_calls_lowers_to_unknown() {
    has_no_bound(&[
        "def one(s):
    try:
        return {'a': llm.invoke(s['a']).content}
    except Exception:
        pass
    return {'a': llm.invoke('again').content}",
        "def one(s):
    for i in range(3):
        try:
            return {'a': llm.invoke(s['a']).content}
        except Exception:
            continue
    return {'a': ''}",
        "def one(s):
    r = ''
    for i in range(3):
        try:
            r = llm.invoke(s['a']).content
            break
        except Exception:
            continue
    return {'a': r}",
        "def one(s):
    k = 1
    try:
        print(s['a'])
    except Exception:
        k = 5
    for i in range(k):
        llm.invoke('a')
    return {'a': ''}",
        "import contextlib
def one(s):
    with contextlib.suppress(Exception):
        return {'a': llm.invoke(s['a']).content}
    return {'a': llm.invoke('again').content}",
    ]);
}

#[test]
fn calls_of_every_kind_of_statement_are_there() {
    for (program, count) in [
        ("def one(s):\n    assert llm.invoke(s['a']).content == 'ok'\n    return {'a': ''}", 1),
        (
            "class C:
    def __enter__(self): llm.invoke('in')
    def __exit__(self, *e): llm.invoke('out')
def one(s):
    with C():
        llm.invoke('x')
    return {'a': ''}",
            3,
        ),
        (
            "def one(s):
    on = False
    def turn():
        nonlocal on
        on = True
    turn()
    if on:
        llm.invoke('x')
    return {'a': ''}",
            1,
        ),
        (
            "class C:
    def __init__(self): self.on = False
c = C()
def one(s):
    d = C()
    setattr(d, 'on', True)
    if d.on:
        llm.invoke('x')
    return {'a': ''}",
            1,
        ),
    ] {
        let term = term(program);
        assert_eq!(asked(&term), count, "{program}\n{term}");
    }
}

#[test]
fn a_decorator_calls_a_function_again() {
    let twice = "import functools
def twice(f):
    @functools.wraps(f)
    def inner(*a, **k):
        f(*a, **k)
        return f(*a, **k)
    return inner
@twice
def ask(q): return llm.invoke(q).content
def one(s): return {'a': ask(s['a'])}";
    assert_eq!(asked(&term(twice)), 2, "{}", term(twice));
    let node = "def twice(f):
    def inner(s):
        f(s)
        return f(s)
    return inner
@twice
def one(s): return {'a': llm.invoke(s['a']).content}";
    assert_eq!(asked(&term(node)), 2, "{}", term(node));
    has_no_bound(&["from tenacity import retry, stop_after_attempt
@retry(stop=stop_after_attempt(3))
def ask(q): return llm.invoke(q).content
def one(s): return {'a': ask(s['a'])}"]);
}

#[test]
fn state_left_by_an_earlier_run_is_unknown() {
    has_no_bound(&[
        "conf = {'on': False}
def one(s):
    if conf['on']:
        return {'a': llm.invoke('x').content}
    conf['on'] = True
    return {'a': ''}",
        "limit = 5
def down():
    global limit
    limit = 1
def one(s):
    for i in range(limit):
        llm.invoke('x')
    down()
    return {'a': ''}",
        "class A:
    def __init__(self): self.n = 0
    def run(self, s):
        self.n += 1
        if self.n > 2:
            return {'a': ''}
        return {'a': llm.invoke(s['a']).content}
one = A().run",
    ]);
    // What is made when it is first wanted is that.
    let lazy = term(
        "_llm = None
def get():
    global _llm
    if _llm is None:
        _llm = ChatOpenAI(model='late')
    return _llm
def one(s):
    return {'a': get().invoke(s['a']).content}",
    );
    assert!(lazy.contains("late") && !lazy.contains("unknown"), "{lazy}");
}

const FLOW: &str = "from crewai import Agent, Crew, LLM, Task
from crewai.flow.flow import Flow, listen, start
a = Agent(role='r', goal='g', backstory='b')
crew = Crew(agents=[a], tasks=[Task(description='d', expected_output='e', agent=a)])
llm = LLM(model='m')
class F(Flow):
";

#[test]
fn a_flow_says_how_often_it_starts_a_crew_or_that_it_is_not_known() {
    for body in [
        "        while self.state.n < 5:\n            crew.kickoff()",
        "        for x in self.state.items:\n            crew.kickoff()",
        "        return [crew.kickoff(inputs={'x': x}) for x in self.state.items]",
        "        return crew.kickoff_for_each(inputs=[{'a': 1}, {'a': 2}])",
        "        return llm.call('hi')",
        "        return a.kickoff('hi').raw",
    ] {
        let term = crewai(&format!("{FLOW}    @start()\n    def go(self):\n{body}\n"));
        assert!(term.contains("unknown"), "{body}\n{term}");
    }
    let helper = "    def ask(self): return crew.kickoff().raw\n    @start()\n    def go(self):\n        return self.ask()\n";
    let term = crewai(&format!("{FLOW}{helper}"));
    assert!(!term.contains("unknown"), "{term}");
    assert!(term.contains("\"d") || term.contains("recv") || term.contains("llm "), "{term}");
}

/// The unit that is the flow: the last one.
fn crewai(text: &str) -> String {
    let text: std::sync::Arc<str> = text.into();
    let file = File::read(FileId(0), "main.py", &text, &Limits::default());
    let Recognized::Frontend(frontend) = recognize(&file) else { panic!("not recognized") };
    let compiled =
        frontend.lower(&Project { files: vec![file], versions: Versions::default(), modules: None }, 0);
    let all: Vec<String> = compiled.units.iter().map(|u| core_ir::print_code(&u.code)).collect();
    all.join("\n")
}
