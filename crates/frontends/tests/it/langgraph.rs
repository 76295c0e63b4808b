//! LangGraph from Python: limits, and what hostile modules do.

use diagnostics::FileId;
use frontend_kit::doc::Limits;
use frontend_kit::{Compiled, File, Project, Recognized, Versions};
use frontends::recognize;
use proptest::prelude::*;

const HEAD: &str = "import operator
from typing import Annotated, TypedDict
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, create_react_agent, tools_condition
from langgraph.types import Command, Send
llm = ChatOpenAI(model='m')
def tool(n: int) -> str: 'A tool.'
class S(TypedDict):
    a: str
    b: Annotated[list, operator.add]
";

fn compiled_with(text: &str, versions: &Versions) -> Compiled {
    let text: std::sync::Arc<str> = format!("{HEAD}{text}").into();
    let file = File::read(FileId(0), "main.py", &text, &Limits::default());
    let Recognized::Frontend(frontend) = recognize(&file) else { panic!("not recognized") };
    frontend.lower(&Project { files: vec![file], versions: versions.clone(), modules: None }, 0)
}

fn compiled(text: &str) -> Compiled {
    compiled_with(text, &Versions::default())
}

fn term(text: &str) -> String {
    let compiled = compiled(text);
    assert_eq!(compiled.units.len(), 1, "{:?}", compiled.diagnostics);
    core_ir::print_code(&compiled.units[0].code)
}

const LOOP: &str =
    "def think(s: MessagesState): return {'messages': [llm.bind_tools([tool]).invoke(s['messages'])]}
g = StateGraph(MessagesState)
g.add_node('think', think)
g.add_node('tools', ToolNode([tool]))
g.add_edge(START, 'think')
g.add_conditional_edges('think', tools_condition)
g.add_edge('tools', 'think')
app = g.compile()
";

#[test]
fn the_limit_counts_steps_and_the_last_one_fails() {
    // Of n steps the last is never a success: with 5, think tools think tools think, and the last reply is
    // refused.
    let odd = term(&format!("{LOOP}app.invoke({{'messages': []}}, {{'recursion_limit': 5}})\n"));
    assert!(odd.contains("fix[2]"), "{odd}");
    // Further calls of a reply are received without asking.
    assert_eq!(odd.matches("recv").count() - odd.matches("waiting: true").count(), 2, "{odd}");
    assert_eq!(odd.matches("tool[tool] a").count(), 1, "{odd}");
    let even = term(&format!("{LOOP}app.invoke({{'messages': []}}, {{'recursion_limit': 4}})\n"));
    assert!(even.contains("fix[1]"), "{even}");
    assert_eq!(even.matches("tool[tool] a").count(), 2, "{even}");
    assert!(even.contains("Recursion limit of 4 reached"), "{even}");
}

#[test]
fn the_limit_is_the_default_of_the_version() {
    for (version, turns) in [("0.6.1", "fix[12 "), ("1.0.8", "fix[4999 "), ("1.1.4", "fix[5003 ")] {
        let mut versions = Versions::default();
        versions.read("requirements.txt", &format!("langgraph=={version}\n"));
        let compiled = compiled_with(LOOP, &versions);
        let text = core_ir::print_code(&compiled.units[0].code);
        assert!(text.contains(turns) && text.contains(version), "{version}: {text}");
    }
}

#[test]
fn a_chain_of_nodes_has_no_loop() {
    let text = "def one(s): return {'a': llm.invoke('x').content}
def two(s): return {'b': [s['a']]}
g = StateGraph(S).add_sequence([one, two])
g.add_edge(START, 'one')
app = g.compile()
";
    let term = term(text);
    assert!(!term.contains("fix"), "{term}");
    // More steps than the limit allows are not nested: the run fails on its way.
    let short = compiled(&format!("{text}app.invoke({{'a': 'x'}}, {{'recursion_limit': 2}})\n"));
    let short = core_ir::print_code(&short.units[0].code);
    assert!(short.contains("fix[1]") && short.contains("Recursion limit of 2"), "{short}");
}

#[test]
fn steps_run_what_is_due() {
    // `late` follows one node and two steps of others: without a join it runs twice.
    let text = "def f(s): return {'b': ['x']}
g = StateGraph(S)
for n in ['a1', 'a2', 'b1', 'late']: g.add_node(n, f)
g.add_edge(START, 'a1'); g.add_edge(START, 'b1')
g.add_edge('a1', 'a2'); g.add_edge('a2', 'late'); g.add_edge('b1', 'late')
app = g.compile()
";
    // a1+b1, then a2+late, then late.
    assert_eq!(term(text).matches("par [").count(), 2, "{}", term(text));
    let joined = text
        .replace("g.add_edge('a2', 'late'); g.add_edge('b1', 'late')", "g.add_edge(['a2', 'b1'], 'late')");
    assert_eq!(term(&joined).matches("par [").count(), 1, "{}", term(&joined));
}

#[test]
fn keys_are_looked_after() {
    let text = "def f(s): return {'a': s['a']}
def g2(s): return {'a': 'y'}
g = StateGraph(S)
g.add_node('f', f); g.add_node('g', g2)
g.add_edge(START, 'f'); g.add_edge(START, 'g')
app = g.compile()
app.invoke({'b': []})
";
    let outline = &compiled(text).units[0].outline;
    assert_eq!(outline.clashes.len(), 1, "{outline:?}");
    assert_eq!(outline.unwritten.len(), 0, "{outline:?}");
    let alone = text.replace("return {'a': s['a']}", "return {'b': [s['a']]}").replace("{'a': 'y'}", "{}");
    let outline = &compiled(&alone).units[0].outline;
    assert_eq!((outline.clashes.len(), outline.unwritten.len()), (0, 1), "{outline:?}");
}

#[test]
fn hostile_modules_end() {
    let node = |body: &str| {
        format!(
            "def f(s):\n{body}\ng = StateGraph(S)\ng.add_node('f', f)\ng.add_edge(START, 'f')\napp = g.compile()\n"
        )
    };
    let elifs: String =
        (0..3000).map(|i| format!("    elif s['a'] == '{i}': return {{'a': '{i}'}}\n")).collect();
    compiled(&node(&format!("    if s['b']: return {{}}\n{elifs}")));
    let sums = "(".repeat(800) + "s['a']" + &" + s['a'])".repeat(800);
    compiled(&node(&format!("    return {{'a': {sums}}}")));
    let nots = "not ".repeat(2000);
    compiled(&node(&format!("    return {{'a': {nots}s['a']}}")));
    // Many routers at once, and many nodes that all lead to all.
    let mut graph =
        String::from("def r(s): return s['a']\ndef f(s): return {'b': ['x']}\ng = StateGraph(S)\n");
    for i in 0..40 {
        graph.push_str(&format!(
            "g.add_node('n{i}', f)\ng.add_edge(START, 'n{i}')\ng.add_conditional_edges('n{i}', r)\n"
        ));
    }
    compiled(&format!("{graph}app = g.compile()\n"));
    let many: String =
        (0..2000).map(|i| format!("g.add_node('n{i}', f)\ng.add_edge('n{}', 'n{i}')\n", i - 1)).collect();
    compiled(&format!(
        "def f(s): return {{'b': ['x']}}\ng = StateGraph(S)\ng.add_edge(START, 'n0')\n{many}app = g.compile()\n"
    ));
    // A graph within itself, an agent within itself.
    compiled(
        "def f(s): return app.invoke(s)\ng = StateGraph(S)\ng.add_node('f', f)\ng.add_edge(START, 'f')\napp = g.compile()\n",
    );
    compiled(
        "a = create_react_agent(llm, [])\ndef f(s): return {'a': a.invoke({'messages': [a.invoke({})]})}\ng = StateGraph(S)\ng.add_node('f', f)\ng.add_node('g', g)\n",
    );
}

/// A graph of the conversation with one node of this body.
fn talk(body: &str) -> String {
    let node: String = body.lines().map(|l| format!("    {l}\n")).collect();
    term(&format!(
        "from langchain_core.messages import *
other = ChatOpenAI(model='other')
def talk(s: MessagesState):
{node}g = StateGraph(MessagesState)
g.add_node('talk', talk)
g.add_edge(START, 'talk')
g.compile()
"
    ))
}

#[test]
fn instructions_stand_before_the_conversation() {
    let said = talk(
        "other.invoke(s['messages'])\nreturn {'messages': [llm.invoke([SystemMessage('A')] + s['messages'] + [HumanMessage('B')])]}",
    );
    let places = ["fresh (let _ = send[system] \"A\"", "of: $s.messages", "send \"B\"", "recv"];
    let places: Vec<Option<usize>> = places.iter().map(|p| said.rfind(p)).collect();
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{places:?} {said}");
}

#[test]
fn a_test_for_instructions_is_decided_where_nothing_adds_any() {
    for test in [
        "not any(isinstance(m, SystemMessage) for m in m0)",
        "not m0 or not isinstance(m0[0], SystemMessage)",
        "m0[0].type != 'system'",
    ] {
        let said = talk(&format!(
            "m0 = s['messages']\nif {test}:\n    m0 = [SystemMessage('A')] + m0\nreturn {{'messages': [llm.invoke(m0)]}}"
        ));
        assert!(said.contains("send[system] \"A\"") && !said.contains("if "), "{test}: {said}");
    }
    // Of a node that adds instructions nobody knows.
    let said = talk(
        "m0 = s['messages']\nif not isinstance(m0[0], SystemMessage):\n    m0 = [SystemMessage('A')] + m0\nreturn {'messages': [SystemMessage('B'), llm.invoke(m0)]}",
    );
    assert!(said.contains("if "), "{said}");
}

#[test]
fn calls_under_a_test_are_made_on_its_side() {
    let said =
        talk("m = llm if len(s['messages']) > 3 else other\nreturn {'messages': [m.invoke(s['messages'])]}");
    assert_eq!(said.matches("recv").count(), 2, "{said}");
    assert!(
        said.contains("model: \"m\"") && said.contains("model: \"other\"") && !said.contains("unknown"),
        "{said}"
    );
    let said = talk(
        "said = [HumanMessage('A')]\nif len(s['messages']) > 3:\n    said.append(HumanMessage('B'))\nreturn {'messages': [llm.invoke(said)]}",
    );
    assert!(
        said.contains("fresh (let _ = send \"A\" in let _ = send \"B\"") && said.contains("llm \"\""),
        "{said}"
    );
}

#[test]
fn raise_lowers_to_fail() {
    let said = talk(
        "if len(s['messages']) > 9:\n    raise ValueError('long')\nr = llm.invoke('A')\nreturn {'messages': [r.content]}",
    );
    assert!(said.contains("fail \"an exception is raised\"") && !said.contains("unknown"), "{said}");
}

#[test]
fn parts_of_the_conversation_are_messages() {
    for of in
        ["s['messages'][-2:]", "[s['messages'][-1]]", "[HumanMessage(m.content) for m in s['messages']]"]
    {
        let said = talk(&format!("return {{'messages': [llm.invoke({of})]}}"));
        assert!(said.contains("send[assistant]") && !said.contains("unknown"), "{of}: {said}");
    }
}

#[test]
fn missing_fields_of_messages_are_unknown() {
    let said =
        talk("n = sum(bool(m.tool_calls) for m in s['messages'])\nreturn {'messages': [llm.invoke(f'{n}')]}");
    assert!(
        said.contains("unknown \"`tool_calls` of a message\"") && !said.contains(".tool_calls"),
        "{said}"
    );
}

#[test]
fn messages_are_taken_out_of_the_conversation() {
    for (of, kept) in [
        ("[RemoveMessage(id=m.id) for m in s['messages'][:-2]]", true),
        ("RemoveMessage(id=s['messages'][0].id)", true),
        ("[RemoveMessage(id='__remove_all__'), HumanMessage('A')]", false),
    ] {
        let said = talk(&format!("llm.invoke(s['messages'])\nreturn {{'messages': {of}}}"));
        assert!(said.contains("clear") && !said.contains("unknown"), "{of}: {said}");
        assert_eq!(said.contains("prim[slice]"), kept, "{of}: {said}");
    }
}

#[test]
fn functions_of_lists_that_python_has_built_in() {
    for of in [
        "sum(x for x in s['b'])",
        "sum(1 for x in s['b'])",
        "sum(x > 1 for x in s['b'])",
        "max(s['b'])",
        "next((x for x in s['b'] if x > 1), None)",
        "len(list(filter(None, s['b'])))",
        "', '.join(map(str, s['b']))",
        "' '.join(s['a'].split())",
        "s['a'].capitalize()",
    ] {
        let said = term(&format!(
            "def f(s: S): return {{'a': {of}}}\ng = StateGraph(S)\ng.add_node('f', f)\ng.add_edge(START, 'f')\ng.compile()\n"
        ));
        assert!(!said.contains("unknown"), "{of}: {said}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Lines of a program in any order, doubled, or left out, compile or complain.
    #[test]
    fn shuffled_modules_compile_or_complain(order in proptest::collection::vec(0usize..24, 0..40)) {
        let lines: Vec<&str> = "def f(s): return {'a': llm.invoke(s['a']).content}
def r(s): return 'f' if s['b'] else END
def m(s): return [Send('f', {'a': x}) for x in s['b']]
def c(s): return Command(goto=['f', 'c'], update={'b': [1]})
def w(s): s['a'] = s['b'][-1]; return s
g = StateGraph(S)
g = StateGraph(MessagesState)
g.add_node('f', f)
g.add_node(c)
g.add_node('w', w)
g.add_node('t', ToolNode([tool]))
g.add_node('x', create_react_agent(llm, [tool]))
g.add_edge(START, 'f')
g.add_edge('f', 'w')
g.add_edge('w', END)
g.add_edge(['f', 'w'], 'c')
g.add_conditional_edges('f', r)
g.add_conditional_edges(START, m, ['f'])
g.add_conditional_edges('c', tools_condition, {'tools': 't', END: END})
g.set_entry_point('c')
app = g.compile()
g.add_node('sub', app)
app.invoke({'a': 'x', 'b': [1]}, {'recursion_limit': 3})
(llm | llm | f)".lines().collect();
        let text: String = order.iter().map(|i| format!("{}\n", lines[*i])).collect();
        let text = format!("g = StateGraph(S)\n{text}");
        for unit in compiled(&text).units {
            let _ = core_ir::print_code(&unit.code);
        }
    }
}

/// A graph of one node, which this is.
fn node(body: &str) -> String {
    term(&format!(
        "from langchain_core.messages import AIMessage, HumanMessage\ndef one(s: S):\n{body}\ng = StateGraph(S)\ng.add_node('one', one)\ng.add_edge(START, 'one')\ng.add_edge('one', END)\napp = g.compile()\n"
    ))
}

#[test]
fn a_value_that_is_used_several_times_is_computed_once() {
    // Each turn of the loop, which is known, uses twice what the one before made: written out, the last would
    // represent 2^60 values.
    let words: Vec<String> = (0..60).map(|i| format!("'w{i}'")).collect();
    let text = node(&format!(
        "    a = s['a'].strip()
    for k in [{}]:
        if k in a:
            a = a + k + a
        else:
            a = a + '-'
    return {{'a': a}}",
        words.join(", ")
    ));
    assert!(!text.contains("unknown"), "{text}");
    assert!(text.contains("let $v"), "{text}");
    assert!(text.len() < 10_000, "{}", text.len());
}

const LONG: &str = ".strip().lower().replace('a', 'b').replace('c', 'd').replace('e', 'f')";

#[test]
fn node_evaluates_values_within_their_branch() {
    let text = node(&format!(
        "    if s['a'] == 'x':
        t = s['b'][0]{LONG}
        out = f\"{{t}} {{t}} {{t}} {{t}} {{t}} {{t}} {{t}} {{t}}\"
    else:
        out = 'none'
    return {{'a': out}}"
    ));
    let (test, first) = (text.find("if $s.a").unwrap(), text.find("$s.b.[0]").unwrap());
    assert!(test < first, "{text}");
    assert_eq!(text.matches("$s.b.[0]").count(), 1, "{text}");
    // So is an operand that another one may leave out.
    let text = node(&format!(
        "    u = s['a'] and s['b'][0]{LONG}
    v = s['a'] and s['b'][0]{LONG}
    return {{'a': f\"{{u}} {{u}} {{u}} {{u}} {{u}} {{u}} {{v}}\"}}"
    ));
    for (at, _) in text.match_indices("$s.b.[0]") {
        assert!(text[..at].contains("then"), "{text}");
    }
}

#[test]
fn a_value_has_its_name_after_the_calls_that_it_is_made_of() {
    let text = node(&format!(
        "    r = llm.invoke('first').content
    t = r{LONG}
    q = llm.invoke(f\"{{t}} {{t}} {{t}} {{t}} {{t}} {{t}} {{t}}\").content
    return {{'a': f\"{{t}} {{q}}\"}}"
    ));
    let (call, name) = (text.find("\"first\"").unwrap(), text.find("let $v").unwrap());
    assert!(call < name, "{text}");
    assert_eq!(text.matches("prim[lower]").count(), 1, "{text}");
}

#[test]
fn a_shared_condition_is_tested_once() {
    let text = node(&format!(
        "    t = s['a']{LONG}
    if 'z' in t{LONG} and t != 'q' and len(t) > 3:
        llm.invoke('first')
        llm.invoke('second')
        llm.invoke('third')
    llm.invoke('fourth')
    return {{'a': t}}"
    ));
    assert_eq!(text.matches("\"z\"").count(), 1, "{text}");
    for asked in ["first", "second", "third", "fourth"] {
        assert_eq!(text.matches(&format!("\"{asked}\"")).count(), 1, "{text}");
    }
}

#[test]
fn the_turns_of_a_loop_over_what_is_not_known_make_its_calls() {
    let text = node(
        "    for x in s['b']:
        if 'skip' in x:
            continue
        r = llm.invoke(f'about {x}').content
        print(llm.invoke(f'again {r}').content)
    return {'a': 'done'}",
    );
    assert!(!text.contains("unknown"), "{text}");
    assert!(text.contains("each (") && text.contains("\"about {$each"), "{text}");
    // One that may end before its last element, or whose turns change what others read, is not one turn after
    // the other.
    for last in ["if r == 'stop':\n            break", "s['a'] = r", "self.a = r"] {
        let text = node(&format!(
            "    for x in s['b']:
        r = llm.invoke(x).content
        {last}
    return {{'b': []}}"
        ));
        assert!(text.contains("unknown \"a call that is repeated"), "{text}");
    }
}

#[test]
fn a_loop_makes_calls_that_its_first_turn_does_not() {
    // The first turn finds 0 and an empty list, further ones do not: a bound that leaves these calls out
    // would be too small.
    for (begin, test, end) in [
        ("n = 0", "n > 0", "n = n + 1"),
        ("n = []", "n", "n.append(x)"),
        ("n = []", "len(n) > 2", "n += [x]"),
        ("n = {'k': 0}", "n['k'] > 1", "n['k'] += 1"),
        ("n = {}", "n.get('k')", "n[x] = 1"),
        ("n = {'l': []}", "n['l']", "n['l'].append(x)"),
    ] {
        for head in ["for x in s['b']", "while s['a'] != 'x'"] {
            let body = format!(
                "    x = 'k'
    {begin}
    {head}:
        if {test}:
            llm.invoke('later')
        {end}
    return {{'a': 'x'}}"
            );
            let text = node(&body);
            let is_there = text.contains("\"later\"") || text.contains("unknown \"a call that is repeated");
            assert!(is_there, "{body}\n{text}");
        }
    }
}

#[test]
fn a_reply_is_a_message_of_the_assistant() {
    let text = node(
        "    r = llm.invoke('first')
    kind = 'ai' if isinstance(r, AIMessage) else 'human' if isinstance(r, HumanMessage) else 'none'
    return {'a': f'{kind} {r.content}'}",
    );
    assert!(!text.contains("role"), "{text}");
}

#[test]
fn a_run_gives_no_key_that_only_a_node_reads() {
    let given = term(
        r#"
from typing import TypedDict
from langgraph.graph import StateGraph, START, END

class State(TypedDict):
    topic: str
    best: str

class Job(TypedDict):
    subject: str

def first(state: State):
    return {"best": state["topic"]}

def second(state: Job):
    return {"best": "b"}

builder = StateGraph(State)
builder.add_node("first", first)
builder.add_node("second", second)
builder.add_edge(START, "first")
builder.add_edge("first", "second")
builder.add_edge("second", END)
graph = builder.compile()
"#,
    );
    assert!(given.contains("{topic: $s.topic, best: $s.best}"), "{given}");
}

const NODES: &str = "def one(s): return {'a': llm.invoke('x').content}
def pick(s): return 'l' if s['a'] == 'x' else 'r'
g = StateGraph(S)
";

/// The calls of models in the term of a graph with these lines and a high limit. Each node is compiled once,
/// and not as a step of a loop.
fn calls(lines: &str) -> usize {
    let run = "app = g.compile()\napp.invoke({'a': ''}, {'recursion_limit': 100000})\n";
    let compiled = compiled(&format!("{NODES}{lines}{run}"));
    assert_eq!((compiled.units.len(), compiled.diagnostics.len()), (1, 0), "{:?}", compiled.diagnostics);
    let code = &compiled.units[0].code;
    let count = |such: fn(&core_ir::Term) -> bool| code.iter().filter(|(_, t)| such(t)).count();
    assert_eq!(count(|t| matches!(t, core_ir::Term::Fix { .. } | core_ir::Term::Unknown(_))), 0);
    count(|t| matches!(t, core_ir::Term::Llm(..)))
}

/// More than 300 sets of nodes that are due, one for each step.
#[test]
fn long_rows_of_nodes_are_bounded() {
    let mut row = String::from("g.add_edge(START, 'n0')\n");
    for i in 0..2_000 {
        row += &format!("g.add_node('n{i}', one)\n");
    }
    for i in 1..2_000 {
        row += &format!("g.add_edge('n{}', 'n{i}')\n", i - 1);
    }
    assert_eq!(calls(&row), 2_000);
}

#[test]
fn long_ladders_of_decisions_and_of_parallel_nodes_are_bounded() {
    let rungs = 400;
    let mut ladder = String::from("g.add_edge(START, 'a0')\n");
    let mut beside = ladder.clone();
    for i in 0..=rungs {
        for lines in [&mut ladder, &mut beside] {
            for node in ["a", "b", "c"] {
                *lines += &format!("g.add_node('{node}{i}', one)\n");
            }
        }
    }
    for i in 0..rungs {
        let next = i + 1;
        ladder += &format!("g.add_conditional_edges('a{i}', pick, {{'l': 'b{i}', 'r': 'c{i}'}})\n");
        ladder += &format!("g.add_edge('b{i}', 'a{next}')\ng.add_edge('c{i}', 'a{next}')\n");
        beside += &format!("g.add_edge('a{i}', 'b{i}')\ng.add_edge('a{i}', 'c{i}')\n");
        beside += &format!("g.add_edge(['b{i}', 'c{i}'], 'a{next}')\n");
    }
    // Of the last rung only the first node is reached.
    assert_eq!(calls(&ladder), 3 * rungs + 1);
    assert_eq!(calls(&beside), 3 * rungs + 1);
}

/// Eight rows beside each other, each of which may stay where it is: their places are independent.
#[test]
fn sets_of_due_nodes_that_explode_are_unknown() {
    let mut lines = String::new();
    for row in 0..8 {
        lines += &format!("g.add_edge(START, 'n{row}_0')\n");
        for i in 0..6 {
            lines += &format!("g.add_node('n{row}_{i}', one)\n");
        }
        for i in 0..5 {
            let to = format!("{{'l': 'n{row}_{i}', 'r': 'n{row}_{}'}}", i + 1);
            lines += &format!("g.add_conditional_edges('n{row}_{i}', pick, {to})\n");
        }
    }
    let compiled = compiled(&format!("{NODES}{lines}app = g.compile()\n"));
    let found: Vec<&str> = compiled.diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(found, [frontend_kit::emit::codes::TOO_MUCH], "{:?}", compiled.diagnostics);
    let text = core_ir::print_code(&compiled.units[0].code);
    assert!(text.contains("unknown") && text.contains("48 nodes"), "{text}");
}
