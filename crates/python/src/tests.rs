use crate::*;
use diagnostics::{FileId, Span};
use proptest::prelude::*;
use std::collections::HashSet;

fn sources(files: &[(&str, &str)]) -> Sources {
    let mut sources = Sources::new();
    for (i, (path, text)) in files.iter().enumerate() {
        sources.add(FileId(i as u32), path, (*text).into());
    }
    sources
}

/// Returns an argument of each `Agent(…)` that the first module makes, as text.
fn agents(files: &[(&str, &str)], argument: &str) -> Vec<String> {
    let sources = sources(files);
    let mut world = World::new(&sources, Limits::default());
    world.run(0);
    world.explore(0);
    let found = world.objects().filter(|(_, o)| o.short() == "Agent");
    found.map(|(_, o)| o.arg(argument).map_or("-".into(), |a| show(&world, &a.value, 0))).collect()
}

fn show(world: &World<'_>, value: &Value, depth: usize) -> String {
    if depth > 6 {
        return "…".into();
    }
    let all =
        |items: &[Value]| items.iter().map(|v| show(world, v, depth + 1)).collect::<Vec<_>>().join(", ");
    let text = match &value.kind {
        PyKind::None => "None".into(),
        PyKind::Bool(b) => b.to_string(),
        PyKind::Int(n) => n.to_string(),
        PyKind::Float(f) => f.to_string(),
        PyKind::Str(s) => s.to_string(),
        PyKind::Text(id) => {
            let part = |p: &Piece| match p {
                Piece::Text(t) => t.to_string(),
                Piece::Hole(_, written) => format!("<{written}>"),
            };
            world.pieces(*id).iter().map(part).collect()
        }
        PyKind::List(id) => {
            let list = world.list(*id);
            format!("[{}{}]", all(&list.items), if list.open.is_some() { ", …" } else { "" })
        }
        PyKind::Dict(id) => {
            let entries = world.dict(*id).entries.iter();
            let entries =
                entries.map(|(k, v)| format!("{}: {}", show(world, k, depth + 1), show(world, v, depth + 1)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        PyKind::Object(id) => format!("{}(…)", world.object(*id).callee),
        PyKind::Member(id, name) => format!("{}.{name}", world.object(*id).callee),
        PyKind::Env(id) => {
            let env = world.env(*id);
            let default = env.default.as_ref().map_or("?".into(), |d| show(world, d, depth + 1));
            format!("${}={default}", env.name.as_deref().unwrap_or("?"))
        }
        PyKind::Either(id) => format!("either({})", all(&world.list(*id).items)),
        PyKind::Unknown(why) => format!("unknown: {why}"),
        PyKind::External(name) => name.to_string(),
        _ => world.name_of(value).map_or("?".into(), |n| n.to_string()),
    };
    if value.maybe { format!("{text}?") } else { text }
}

fn name_of(text: &str) -> Vec<String> {
    agents(&[("main.py", &format!("from agents import Agent\nimport os\n{text}"))], "name")
}

#[test]
fn literals_reach_the_argument() {
    let cases: &[(&str, &str)] = &[
        ("Agent(name='a')", "a"),
        ("N = 'a'\nM = N\nAgent(name=M)", "a"),
        ("N = 'a' + 'b'\nAgent(name=f'{N}-{1 + 2}')", "ab-3"),
        ("def f(x): return x\nAgent(name=f'<{f(y)}>')", "<<f(y)>>"),
        ("Agent(name='a {} {x} {{y}}'.format(1, x='b'))", "a 1 b {y}"),
        ("Agent(name='%s is %d' % ('a', 2))", "a is 2"),
        ("Agent(name=', '.join(['a', 'b']))", "a, b"),
        ("Agent(name='  A b '.strip().lower().replace('b', 'c'))", "a c"),
        ("import textwrap\nAgent(name=textwrap.dedent('''\\\n    a\n      b\n''').strip())", "a\n  b"),
        ("Agent(name=os.getenv('X', 'd'))", "$X=d"),
        ("Agent(name=os.environ['X'])", "$X=?"),
        ("Agent(name=os.getenv('X') or 'd')", "$X=d"),
        ("Agent(name=int(os.getenv('N', '7')))", "$N=7"),
        ("kw = {'name': 'a'}\nkw['name'] = 'b'\nAgent(**kw)", "b"),
        ("Agent(**dict(name='a'))", "a"),
        ("class C:\n  n = 'a'\nAgent(name=C.n)", "a"),
        (
            "class C:\n  def __init__(self, n='z'):\n    self.n = n\n  @property\n  def m(self): return self.n + '!'\nAgent(name=C('a').m)",
            "a!",
        ),
        (
            "from dataclasses import dataclass, field\n@dataclass\nclass C:\n  n: str\n  m: list = field(default_factory=list)\nAgent(name=C('a').n)",
            "a",
        ),
        (
            "from pydantic_settings import BaseSettings\nclass S(BaseSettings):\n  model: str = 'gpt'\nAgent(name=S().model)",
            "$MODEL=gpt",
        ),
        ("from enum import Enum\nclass E(Enum):\n  A = 'x'\nAgent(name=E.A.value)", "x"),
        ("def make(n, *, p='x'):\n  return Agent(name=n + p)\nmake('a')", "ax"),
        ("make = lambda n: Agent(name=n)\nmake('a')", "a"),
        ("Agent(name='a' if True else 'b')", "a"),
        ("Agent(name='a' if os.path.exists('x') else 'b')", "either(a, b)"),
        ("if os.path.exists('x'):\n  n = 'a'\nelse:\n  n = 'b'\nAgent(name=n)", "either(a, b)"),
        ("if 1 > 2:\n  n = 'a'\nelif 2 > 1:\n  n = 'c'\nelse:\n  n = 'b'\nAgent(name=n)", "c"),
        ("try:\n  n = 'a'\nexcept Exception:\n  n = 'b'\nAgent(name=n)", "a"),
        ("from typing import TYPE_CHECKING\nn = 'a'\nif TYPE_CHECKING:\n  n = 'b'\nAgent(name=n)", "a"),
        ("t = ['a']\na = Agent(name=t)\nt.append('b')", "[a, b]"),
        ("t = ['a']\nif os.path.exists('x'):\n  t.append('b')\nAgent(name=t)", "[a, b?]"),
        ("t = ['a'] + [*('b', 'c')]\nt += ['d']\nAgent(name=t)", "[a, b, c, d]"),
        ("Agent(name=[x.upper() for x in ['a', 'b'] if x != 'b'])", "[A]"),
        ("Agent(name={k: v for k, v in [('a', 1)]})", "{a: 1}"),
        ("Agent(name=[f'{i}{x}' for i, x in enumerate(['a', 'b'])])", "[0a, 1b]"),
        ("import missing\nAgent(name=[x for x in missing.all()])", "[, …]"),
        ("x, (y, z) = 'a', ('b', 'c')\nAgent(name=z)", "c"),
        ("(n := 'a')\nAgent(name=n)", "a"),
        ("n = 'a'\ndef f():\n  global n\n  n = 'b'\nf()\nAgent(name=n)", "b"),
        ("Agent(name=nowhere)", "unknown: `nowhere`, which is not defined before"),
        ("from x import *\nAgent(name=thing)", "x.thing"),
        ("def f(n): return f(n)\nAgent(name=f(1))", "unknown: the result of a recursive call of `f`"),
        ("async def main():\n  return 'a'\nimport asyncio\nAgent(name=asyncio.run(main()))", "a"),
        ("d = {'a': {'b': 'c'}}\nAgent(name=d['a']['b'] + d.get('x', 'y'))", "cy"),
        // A method of the class is given the class.
        (
            "class A:\n  def __init__(self, n): self.n = n\n  @classmethod\n  def make(cls, n): return cls(n + 'x')\nAgent(name=A.make('a').n + A('b').make('c').n)",
            "axcx",
        ),
        (
            "class A:\n  n = 'a'\n  @classmethod\n  def make(cls): return cls.n\nclass B(A):\n  n = 'b'\nAgent(name=B.make())",
            "b",
        ),
        (
            "from functools import partial\ndef f(a, b, *, c): return a + b + c\ng = partial(f, 'a', c='x')\nAgent(name=g('b', c='y'))",
            "aby",
        ),
        ("import asyncio\ndef f(a): return a\nAgent(name=asyncio.run(asyncio.to_thread(f, 'a')))", "a"),
        (
            "p, m = 'openai/gpt/4'.split('/', maxsplit=1)\nAgent(name=m + 'a.b.c'.rsplit('.', 1)[0])",
            "gpt/4a.b",
        ),
        ("Agent(name='a:b:c'.partition(':')[2] + 'x'.rpartition(':')[2] + 'a-b'.split('-', -1)[1])", "b:cxb"),
        // What is not known may be given in place of a default.
        (
            "from dataclasses import dataclass\nimport missing\n@dataclass\nclass S:\n  m: str = 'gpt'\nAgent(name=S(**missing.all()).m)",
            "$m=gpt",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(name_of(text), [*expected], "{text}");
    }
}

#[test]
fn loops_over_what_is_known_are_unrolled() {
    assert_eq!(name_of("for n in ('a', 'b'):\n  if n == 'b': break\n  Agent(name=n)"), ["a"]);
    let found = "m = None\nfor n in ('a', 'b'):\n  if is_there(n):\n    m = n\n    break\n";
    let either = ["either(None, a, b)"];
    assert_eq!(name_of(&format!("{found}Agent(name=m)")), either);
    assert_eq!(name_of(&format!("{found}if not m:\n  raise Missing()\nAgent(name=m)")), either);
    assert_eq!(name_of("for i in range(3):\n  Agent(name=i)"), ["0", "1", "2"]);
    let unknown = name_of("for n in os.listdir():\n  Agent(name=n)");
    assert_eq!(unknown, ["unknown: an element of os.listdir()"]);
}

#[test]
fn imports_lead_through_the_project() {
    let files = [
        (
            "app/main.py",
            "from .parts.names import NAME, make\nfrom app.parts import other as o\nimport app.parts.names as n\nmake(NAME + o.X + n.NAME)",
        ),
        ("app/parts/__init__.py", ""),
        ("app/parts/names.py", "from agents import Agent\nNAME = 'a'\ndef make(n): return Agent(name=n)\n"),
        ("app/parts/other.py", "X = 'b'\nif __name__ == '__main__':\n  X = 'c'\n"),
    ];
    assert_eq!(agents(&files, "name"), ["aba"]);
}

#[test]
fn a_folder_of_the_same_name_does_not_hide_a_package() {
    let files = [
        ("main.py", "from agents import Agent\nAgent(name='a')"),
        ("agents/__init__.py", "from .x import y"),
    ];
    assert_eq!(agents(&files, "name"), ["a"]);
}

#[test]
fn functions_that_nothing_calls_are_entered_with_unknown_arguments() {
    let text = "def build(n, k='d'):\n  return Agent(name=n + k)\n";
    let sources = sources(&[("main.py", &format!("from agents import Agent\n{text}"))]);
    let mut world = World::new(&sources, Limits::default());
    world.run(0);
    assert_eq!(world.objects().filter(|(_, o)| o.short() == "Agent").count(), 0);
    world.explore(0);
    let (_, agent) = world.objects().find(|(_, o)| o.short() == "Agent").unwrap();
    assert!(agent.explored);
    assert_eq!(show(&world, &agent.args[0].value, 0), "<parameter `n`>d");
}

#[test]
fn methods_of_objects_are_kept_in_order_and_chains_lead_to_their_root() {
    let text = "from langgraph.graph import StateGraph, END\ng = StateGraph(dict)\ng.add_node('a', f).add_node('b', f)\ng.add_edge('a', 'b')\napp = g.compile()\n";
    let sources = sources(&[("main.py", text)]);
    let mut world = World::new(&sources, Limits::default());
    world.run(0);
    let (graph, _) = world.objects().find(|(_, o)| o.short() == "StateGraph").unwrap();
    let names: Vec<&str> = world.method_chain(graph).iter().map(|(m, _)| &*m.name).collect();
    assert_eq!(names, ["add_node", "add_node", "add_edge", "compile"]);
}

#[test]
fn attributes_that_are_set_later_count() {
    let text = "from agents import Agent\na = Agent(name='a', handoffs=[])\nb = Agent(name='b')\na.handoffs.append(b)\nb.handoffs = [a]\n";
    let sources = sources(&[("main.py", text)]);
    let mut world = World::new(&sources, Limits::default());
    world.run(0);
    let a = world.global(0, "a").unwrap();
    let b = world.global(0, "b").unwrap();
    let (of_a, of_b) = (world.get(&a, "handoffs"), world.get(&b, "handoffs"));
    assert_eq!(world.items(&of_a).unwrap().len(), 1);
    assert_eq!(world.items(&of_b).unwrap().len(), 1);
}

#[test]
fn tools_have_parameters_types_and_documentation() {
    let text = "from agents import function_tool\n@function_tool\ndef add(a: int, b: list[str] = None) -> str:\n  \"\"\"Adds.\"\"\"\n";
    let sources = sources(&[("main.py", text)]);
    let mut world = World::new(&sources, Limits::default());
    world.run(0);
    let (id, f) = world.functions().next().unwrap();
    assert_eq!((f.doc.as_deref(), f.params.len()), (Some("Adds."), 2));
    assert!(world.decorated(id, &["function_tool"]));
    assert_eq!(show(&world, f.params[0].annotation.as_ref().unwrap(), 0), "builtins.int");
    assert_eq!(show(&world, f.params[1].annotation.as_ref().unwrap(), 0), "builtins.list[](…)");
}

#[test]
fn an_argument_knows_where_it_stands_and_where_its_value_does() {
    let text = "from agents import Agent\nN = 'abc'\na = Agent(name=N)\n";
    let sources = sources(&[("main.py", text)]);
    let mut world = World::new(&sources, Limits::default());
    world.run(0);
    let (_, agent) = world.objects().next().unwrap();
    let arg = agent.arg("name").unwrap();
    let cut = |s: diagnostics::Span| &text[s.start as usize..s.end as usize];
    assert_eq!((cut(arg.span), cut(arg.value.span), cut(agent.span)), ("name=N", "'abc'", "Agent(name=N)"));
}

#[test]
fn nesting_does_not_need_the_stack() {
    let n = 20_000;
    let deep = [
        format!("x = {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("x = {}1{}", "[".repeat(n), "]".repeat(n)),
        format!("x = {}1", "not ".repeat(n)),
        format!("x = {}1", "-".repeat(n)),
        format!("x = 1{}", " + 1".repeat(n)),
        format!("x = 'a'{}", " + 'a'".repeat(n)),
        format!("x = a{}", ".b".repeat(n)),
        format!("x = a{}", "()".repeat(n)),
        format!("x = a{}", "[0]".repeat(n)),
        format!("x = {}1", "lambda: ".repeat(n)),
        format!("x = {}1", "1 if a else ".repeat(n)),
        format!("x = 2{}", " ** 2".repeat(n)),
        format!("x = {}1", "(y := ".repeat(n)),
        format!("x = {}a{}", "f(".repeat(n), ")".repeat(n)),
        format!("x: {}a{}", "list[".repeat(n), "]".repeat(n)),
        (0..1000).map(|i| format!("{}if a:\n", " ".repeat(i))).collect::<String>()
            + &" ".repeat(1000)
            + "x = 1\n",
        format!("match a:\n  case {}x{}: pass\n", "[".repeat(n), "]".repeat(n)),
        "{".repeat(n),
    ];
    for text in &deep {
        let sources = sources(&[("main.py", text)]);
        let mut world = World::new(&sources, Limits::default());
        world.run(0);
        world.explore(0);
    }
}

#[test]
fn unbounded_growth_is_abandoned() {
    let hostile = [
        "x = 'a'\nfor i in range(1000):\n  x = x + x\n",
        "x = ['a']\nfor i in range(1000):\n  x = x + x\n",
        "x = ['a']\nfor i in range(1000):\n  x.extend(x)\n",
        "def f():\n  f(); f(); f()\nf()\n",
        "def f(n):\n  g(n); g(n)\ndef g(n):\n  h(n); h(n)\ndef h(n):\n  f(n); f(n)\nf(1)\n",
        "for a in range(1000):\n  for b in range(1000):\n    for c in range(1000):\n      Agent()\n",
        "x = [[] for a in range(999) for b in range(999) for c in range(999)]\n",
        "d = {}\nfor i in range(999):\n  d[i] = d\n  for k in d:\n    for j in d: pass\n",
        "x = 'a' * 999999999999\ny = '%s' * 99999 % 'a'\n",
        "class A(A): pass\nclass B(B):\n  x = B.y\nB().z\n",
        "import main\nfrom main import *\nfrom . import main\nmain.main.main.x\n",
        "def f(*a, **k): return f(*a, *a, **k)\nf(1, 2, x=3)\n",
    ];
    for text in hostile {
        let sources = sources(&[("main.py", text)]);
        let mut world = World::new(&sources, Limits::default());
        world.run(0);
        world.explore(0);
    }
}

/// A module outside the project isn't searched for in every folder: modules of a large project import much,
/// and each is evaluated anew for every module that imports it.
#[test]
fn imports_from_outside_the_project_are_not_searched_for() {
    let searches = |text: &str| {
        let sources =
            sources(&[("a/b/c/d/main.py", text), ("a/b/tools.py", "N = 1\n"), ("a/kit/__init__.py", "")]);
        let before = crate::sources::SEARCHES.get();
        let mut world = World::new(&sources, Limits::default());
        world.run(0);
        crate::sources::SEARCHES.get() - before
    };
    let outside: String = (0..50).map(|i| format!("import p{i}.q\nfrom r{i} import x, y, z\n")).collect();
    assert_eq!(searches(&outside), 0);
    assert!(searches("from tools import N\n") > 0);
    assert!(searches("from kit import N\n") > 0);
}

#[test]
fn modules_and_packages_are_found_by_the_last_part_of_their_names() {
    let files = [
        (
            "app/main.py",
            "from agents import Agent\nimport kit.deep\nfrom kit import deep as d, A\nfrom . import beside\nfrom .beside import B\nfrom .. import top\n\
             from kit.__init__ import A as again\n\
             Agent(x=kit.deep.D)\nAgent(x=d.D)\nAgent(x=A)\nAgent(x=beside.B)\nAgent(x=B)\nAgent(x=top.T)\nAgent(x=again)\n",
        ),
        ("app/beside.py", "B = 'b'\n"),
        ("kit/__init__.py", "A = 'a'\n"),
        ("kit/deep.py", "D = 'd'\n"),
        ("top.py", "T = 't'\n"),
    ];
    assert_eq!(agents(&files, "x"), ["d", "d", "a", "b", "b", "t", "a"]);
}

#[test]
fn a_syntax_error_has_a_place_and_what_can_be_read_is() {
    let text = "from agents import Agent\nAgent(name='a')\nx = (\n";
    let sources = sources(&[("main.py", text)]);
    let (span, message) = sources.get(0).unwrap().syntax_error().unwrap();
    assert!(span.start as usize >= text.find("x =").unwrap(), "{message}");
    assert_eq!(agents(&[("main.py", text)], "name"), ["a"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever is written, evaluation ends without a panic.
    #[test]
    fn any_words_end(words in proptest::collection::vec(prop::sample::select(WORDS), 0..60)) {
        let text = words.concat();
        let sources = sources(&[("main.py", &text), ("b.py", "from main import *\nX = 'é'\n")]);
        let mut world = World::new(&sources, Limits { steps: 20_000, ..Limits::default() });
        world.run(0);
        world.explore(0);
        for (_, object) in world.objects() {
            for arg in &object.args {
                world.text_of(&arg.value);
                world.unknown_reason(&arg.value);
            }
        }
    }
}

const WORDS: &[&str] = &[
    "x",
    "y",
    "self",
    "é",
    " = ",
    "\n",
    "\n  ",
    "\n    ",
    "def f(x, *a, **k):",
    "class C(B):",
    "return ",
    "for x in ",
    ":",
    "if ",
    "else",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ", ",
    ".",
    "'a'",
    "f'{x}é'",
    "f'{x!r:>{y}}'",
    "1",
    "-",
    " + ",
    "lambda x: ",
    "*",
    "**",
    "import b",
    "from b import *",
    "from . import b",
    "with x as y:",
    "try:",
    "except E as e:",
    "finally:",
    "yield ",
    "await ",
    "x.append(y)",
    "x.format(y)",
    "'{}{'",
    ".format(1)",
    ".join([x])",
    "'%s%'",
    " % x",
    "range(3)",
    "dict(x=1)",
    "zip(x, y)",
    "os.getenv('A', 'b')",
    "@x\n",
    "global x",
    "del x",
    "match x:\n  case [y, *z]:\n    ",
    " or ",
    " and ",
    " not ",
    " in ",
    " == ",
    "super().__init__(x=1)",
    "C()",
    "C.x",
    "f(1, x=2)",
    "x[0]",
    "x[y] = 1",
    "x.y = 1",
    "while x:",
    "break",
    "continue",
    "raise x",
    "None",
    "True",
    "\\",
    "#",
    "'''",
    "\t",
    "\r",
    "\0",
    "async ",
    ":=",
    "...",
];

/// Returns the symbolic result of a function of unknown arguments, as text.
fn traced(text: &str) -> String {
    let mut sources = Sources::new();
    let main = sources.add(FileId(0), "main.py", text.into());
    let mut world = World::new(&sources, Limits::default());
    world.run(main);
    let function = world.global(main, "f").unwrap();
    let span = function.span;
    let state = world.new_call("State", Vec::new(), span);
    let trace = world.trace(&function, vec![Arg { name: None, value: state, span }]);
    let calls: Vec<String> = trace
        .objects
        .iter()
        .filter(|id| world.object(**id).callee.ends_with("ask"))
        .map(|id| {
            format!(
                "{} under {}",
                shown_value(&world, &Value::new(PyKind::Object(*id), span)),
                world.path(*id).len()
            )
        })
        .collect();
    format!("{} | {}", shown_value(&world, &trace.value), calls.join(", "))
}

fn shown_value(world: &World<'_>, value: &Value) -> String {
    match &value.kind {
        PyKind::Object(id) => {
            let object = world.object(*id);
            let args: Vec<String> = object.args.iter().map(|a| shown_value(world, &a.value)).collect();
            if args.is_empty() {
                object.callee.to_string()
            } else {
                format!("{}({})", object.callee, args.join(" "))
            }
        }
        PyKind::Member(id, name) => {
            format!("{}.{name}", shown_value(world, &Value::new(PyKind::Object(*id), value.span)))
        }
        PyKind::Str(s) => format!("'{s}'"),
        PyKind::Int(n) => n.to_string(),
        PyKind::None => "None".into(),
        PyKind::Dict(id) => {
            let entries = world.dict(*id).entries.iter();
            let shown = entries.map(|(k, v)| format!("{}: {}", shown_value(world, k), shown_value(world, v)));
            format!("{{{}}}", shown.collect::<Vec<_>>().join(", "))
        }
        PyKind::List(id) => {
            let items: Vec<String> = world.list(*id).items.iter().map(|v| shown_value(world, v)).collect();
            format!("[{}]", items.join(" "))
        }
        PyKind::External(name) => name.to_string(),
        other => format!("{other:?}").chars().take(12).collect(),
    }
}

#[test]
fn a_traced_function_keeps_its_tests() {
    let early = "def f(s):\n    if s['n'] > 3:\n        return 'a'\n    if not s.ok:\n        return 'b'\n    return 'c'\n";
    assert_eq!(traced(early), "if(>(State[]('n') 3) 'a' if(not(State.ok) 'b' 'c')) | ");
    let chain = "def f(s):\n    if s.a: x = 1\n    elif s.b: x = 2\n    else: x = 3\n    return {'x': x}\n";
    assert_eq!(traced(chain), "{'x': if(State.a 1 if(State.b 2 3))} | ");
    let helper = "def g(v):\n    if v: return 'yes'\n    return 'no'\ndef f(s):\n    return g(s.a) if s.b else g(s.c)\n";
    assert_eq!(traced(helper), "if(State.b if(State.a 'yes' 'no') if(State.c 'yes' 'no')) | ");
    let cases = "def f(s):\n    match s.kind:\n        case 'a' | 'b': return 1\n        case _: return 2\n";
    assert_eq!(traced(cases), "if(or(==(State.kind 'a') ==(State.kind 'b')) 1 2) | ");
}

#[test]
fn a_traced_function_keeps_what_it_computes() {
    let text = "import m\ndef f(s):\n    r = m.ask(s['q'])\n    if r.ok:\n        m.ask('more')\n    return [r.text.strip(), *s['all'], len(s['all'][-2:])]\n";
    let want = "[*]([m.ask.text.strip] State[]('all') [builtins.len(State[][](slice(-2 None None)))]) | m.ask(State[]('q')) under 0, m.ask('more') under 1";
    assert_eq!(traced(text).replace("m.ask(State[]('q')).text", "m.ask.text"), want);
    let each = "def f(s):\n    return [x['a'] for x in s['xs'] if x]\n";
    assert_eq!(
        traced(each),
        "[for](State[]('xs') element(State[]('xs')) element[]('a') element(State[]('xs'))) | "
    );
    let conditional_append = "def f(s):\n    xs = ['a']\n    if s['p']:\n        xs.append('b')\n    if s['q']:\n        xs.append('c')\n    else:\n        xs.append('d')\n    xs.append('e')\n    for y in s['ys']:\n        xs.append(y)\n    return xs\n";
    let want = "[*]([*]([*](if(State[]('p') ['a' 'b'] ['a']) if(State[]('q') ['c'] ['d'])) ['e']) [for](State[]('ys') element(State[]('ys')) element(State[]('ys')))) | ";
    assert_eq!(traced(conditional_append), want);
    // A list that others hold is changed itself.
    let given = "def g(xs, s):\n    if s['p']:\n        xs.append('b')\ndef f(s):\n    xs = ['a']\n    g(xs, s)\n    return xs\n";
    assert_eq!(traced(given), "['a' 'b'] | ");
    let loop_as_comprehension = "import m\nasync def f(s):\n    out = []\n    for x in s['xs']:\n        y = x['a']\n        out.append(m.ask(y))\n    return out\n";
    assert_eq!(
        traced(loop_as_comprehension),
        "[for](State[]('xs') element(State[]('xs')) m.ask(element[]('a'))) | m.ask(element[]('a')) under 1"
    );
    let spread = "def f(s):\n    if s['a']:\n        return {**s, 'm': 1}\n    d = {'x': 1}\n    if s['b']:\n        return {**d, 'm': 2}\n    return {}\n";
    assert_eq!(
        traced(spread),
        "if(State[]('a') {**: State, 'm': 1} if(State[]('b') {'x': 1, 'm': 2} {})) | "
    );
    let got = "def f(s):\n    d = {**s, 'm': 1}\n    return d.get('m', 0), d.get('n', 2), d['k'], 'm' in d, 'n' in d, len(d)\n";
    let got = traced(got);
    assert!(got.starts_with("[1 State.get('n' 2) State[]('k') "), "{got}");
    assert!(!got.contains("Bool(false"), "{got}");
    let over =
        "def f(s):\n    d = {'m': 1, **s}\n    d['m'] = 2\n    return d, d['m'], {'n': 3, **s}.get('n')\n";
    assert_eq!(traced(over), "[{'m': 1, **: State, 'm': 2} 2 State.get('n' 3)] | ");
    let under = "def f(s):\n    d = {**s, 'm': 1}\n    if s['a']:\n        d['m'] = 2\n        if s['b']: d['n'] = 3\n    return d\n";
    let want = "{**: State, 'm': if(State[]('a') 2 1), 'n': if(State[]('a') if(State[]('b') 3 State.get('n' None)) State.get('n' None))} | ";
    assert_eq!(traced(under), want);
    let set = "def f(s):\n    s['n'] = 1\n    return s['n'], {**s, 'm': 2}\n";
    assert_eq!(traced(set), "[1 {**: State, 'm': 2}] | ");
}

#[test]
fn tracing_ends_on_anything() {
    let deep = format!("def f(s):\n{}    return 1\n", "    if s.a: x = s.b\n".repeat(300));
    assert!(traced(&deep).starts_with('1'));
    let returns: String =
        (0..60).map(|i| format!("    if s.a{i} and s.b:\n        if s.c: return {i}\n")).collect();
    let _ = traced(&format!("def f(s):\n{returns}    return 0\n"));
    let nest = format!("def f(s):\n    return {}2{}\n", "(1 if s.a else ".repeat(200), ")".repeat(200));
    assert!(traced(&nest).starts_with("if("));
    let _ = traced("def f(s):\n    while s.x:\n        s = f(s)\n    return f(f(s))\n");
}

/// Evaluates a module whose cost would grow with a product of its sizes, or without end. Says whether that
/// was too much.
fn too_much(text: &str) -> bool {
    let sources = sources(&[
        ("main.py", text),
        ("b.py", "from main import *\nfrom c import x\n"),
        ("c.py", "import b\nx = b.x\n"),
    ]);
    let mut world = World::new(&sources, Limits { steps: 50_000, ..Limits::default() });
    world.run(0);
    world.explore(0);
    world.exceeded().is_some()
}

#[test]
fn copies_and_scans_cost_steps() {
    let repeat = |n: usize, f: &dyn Fn(usize) -> String| (0..n).map(f).collect::<String>();
    let names = repeat(2_000, &|i| format!("n{i} = {i}\n"));
    let elifs = repeat(2_000, &|i| format!("elif x.y{i}: m{i} = 1\n"));
    assert!(too_much(&format!("import x\n{names}if x.a: pass\n{elifs}")));
    let excepts = repeat(2_000, &|i| format!("except E{i}: pass\n"));
    assert!(too_much(&format!("{names}try: pass\n{excepts}")));
    let cases = repeat(2_000, &|i| format!("    case {i}: pass\n"));
    assert!(too_much(&format!("import x\n{names}match x.a:\n{cases}")));
    let set = repeat(4_000, &|i| format!("d['k{i}'] = {i}\n"));
    assert!(too_much(&format!("d = {{}}\n{set}")));
    let attributes = repeat(4_000, &|i| format!("c.a{i} = {i}\nx = c.a0\n"));
    assert!(too_much(&format!("class C: pass\nc = C()\n{attributes}")));
    let looked = repeat(2_000, &|_| "n = len(x)\nb = 'z' in x\n".into());
    assert!(too_much(&format!("x = [{}]\n{looked}", "'a', ".repeat(10_000))));
    let fields = repeat(200, &|i| format!("    f{i}: int = {i}\n"));
    assert!(too_much(&format!("class C:\n{fields}{}", "C()\n".repeat(400))));
}

#[test]
fn unbounded_growth_terminates() {
    let calls: String =
        (1..40).map(|i| format!("def f{i}(): return f{}() + f{}()\n", i - 1, i - 1)).collect();
    assert!(too_much(&format!("def f0(): return 1\n{calls}f39()\n")));
    assert!(too_much(&format!("s = 'x'\n{}", "s = f'{s}{s}'\n".repeat(60))));
    assert!(too_much(&format!("import m\ns = 'x'\n{}", "s = f'{s}{s}{m.x}'\n".repeat(60))));
    assert!(too_much(&format!("x = [1]\n{}", "x = x + x\n".repeat(40))));
    assert!(too_much(&format!("x = [1]\n{}", "x = [*x, *x]\n".repeat(40))));
    assert!(!too_much("x = [1] * 10 ** 9\ny = 'a' * 10 ** 12\nz = 2 ** 10 ** 9\n"));
    let make = "from m import A\ndef f(x):\n    return A(g(x), g(x))\ndef g(x):\n    return [f(x), f(x)]\n";
    assert!(!too_much(&format!("{make}f(1)\n")));
    assert!(!too_much("import b\nfrom c import x\n"));
    let nest = |head: &str, n: usize| {
        (0..n).map(|i| format!("{}{head}\n", " ".repeat(i))).collect::<String>() + &" ".repeat(n) + "pass\n"
    };
    assert!(!too_much(&format!("import x\n{}", nest("if x.a:", 90))));
    let tries = nest("try:", 90)
        + &(0..90).rev().map(|i| format!("{}except E: x = 1\n", " ".repeat(i))).collect::<String>();
    assert!(!too_much(&tries));
    let matches: String =
        (0..45).map(|i| format!("{0}match x.a:\n{0} case {i}:\n", " ".repeat(2 * i))).collect();
    assert!(!too_much(&format!("import x\n{matches}{}pass\n", " ".repeat(90))));
}

/// Returns the value of `x` in a module, as text.
fn named(text: &str) -> String {
    let sources = sources(&[("main.py", text)]);
    let mut world = World::new(&sources, Limits::default());
    world.run(0);
    let value = world.global(0, "x").unwrap();
    shown_value(&world, &value)
}

#[test]
fn common_expressions_are_decided() {
    let cases = [
        ("a = ['p', 'q', 'r']\nx = [a[1:], a[:-1], a[5:], 'héllo'[1:3]]\n", "[['q' 'r'] ['p' 'q'] [] 'él']"),
        ("a, *b, c = [1, 2, 3, 4]\nd, *e = [5]\nx = [a, b, c, d, e]\n", "[1 [2 3] 4 5 []]"),
        (
            "from enum import Enum\nclass E(Enum):\n    A = 'p'\n    B = 'q'\nx = [E['A'].value, E('q').name, [e.value for e in E]]\n",
            "['p' 'B' ['p' 'q']]",
        ),
        ("from enum import Enum\nclass E(str, Enum):\n    A = 'p'\nx = [E.A, E.A.value]\n", "['p' 'p']"),
        ("from typing import TypedDict\nclass T(TypedDict):\n    a: str\nx = T(a='v')['a']\n", "'v'"),
        (
            "from typing import NamedTuple\nclass T(NamedTuple):\n    a: str\n    b: int = 2\nt = T('v')\nx = [t.a, t.b]\n",
            "['v' 2]",
        ),
        ("m = 'b'\nmatch m:\n    case 'a': x = 1\n    case 'b' | 'c': x = 2\n    case _: x = 3\n", "2"),
        ("match 'z':\n    case 'a': x = 1\n    case other: x = other\n", "'z'"),
        (
            "x = [max(1, 2), min([3, 1]), sum([1, 2]), abs(-1), len('é'), 7 % 3, [0] * 2]\n",
            "[2 1 3 1 1 1 [0 0]]",
        ),
        ("x = 1 if any([0, 'a']) and not all([1, '']) else 2\n", "1"),
        (
            "from functools import partial\ndef f(a, b, c=1): return [a, b, c]\nx = partial(f, 1, c=3)(2)\n",
            "[1 2 3]",
        ),
        (
            "d = {'a': 1}\nx = [dict(**d, b=2), {**d, 'c': 3}, d | {'e': 4}]\n",
            "[{'a': 1, 'b': 2} {'a': 1, 'c': 3} {'a': 1, 'e': 4}]",
        ),
        ("if (n := 3) > 2:\n    x = n\nif __name__ == '__main__':\n    x = x + 1\n", "4"),
        (
            "x = [max(-3, -5), min([2]), len({'a', 'b', 'c'}), [1, 2] * 0, [1] * -1, 'abc'[-2:None]]\n",
            "[-3 2 3 [] [] 'bc']",
        ),
        (
            "x = ['\\x1f a\\n'.strip(), ' a\\x1cb '.split(), 'a\\r\\nb'.splitlines()]\n",
            "['a' ['a' 'b'] ['a' 'b']]",
        ),
        (
            "from enum import Enum\nclass E(Enum):\n    A = 'p'\n    B = 'p'\nx = [e.name for e in E]\n",
            "['A']",
        ),
    ];
    for (text, want) in cases {
        assert_eq!(named(text), want, "{text}");
    }
}

#[test]
fn uncertain_expressions_are_not_decided() {
    let cases = [
        "import m\nmatch m.x:\n    case 'a': x = 1\n    case _: x = 2\n",
        "import m\nmatch 'a':\n    case 'a' if m.x: x = 1\n    case _: x = 2\n",
        "import m\nmatch 'a':\n    case m.A: x = 1\n    case _: x = 2\n",
        "import os\nx = 1 if os.getenv('A', 'Yes').lower() == 'yes' else 2\n",
        "import os\nx = 1 if os.getenv('A', 'Yes').startswith('Y') else 2\n",
        "import m\nx = 1 if any([0, m.x]) else 2\n",
    ];
    for text in cases {
        assert!(named(text).starts_with("Either"), "{text} {}", named(text));
    }
    for text in [
        "import m\nx = ['a', m.x][m.y:]\n",
        "import m\na = [1]\na.sort()\nx = a[1:]\n",
        "import m\nx = max(1, m.x)\n",
    ] {
        assert!(
            !named(text).starts_with(['\'', '1']) && !named(text).starts_with("[]"),
            "{text} {}",
            named(text)
        );
    }
}

/// Results computed from the environment depend on the environment, too: its value may differ at run time.
#[test]
fn values_from_the_environment_depend_on_it() {
    let cases = [
        ("Agent(name=os.getenv('A', 'X').lower())", "$A=x"),
        ("Agent(name=os.getenv('A', 'yes') .startswith('y'))", "$A=true"),
        ("Agent(name=os.getenv('A', 'a/b').split('/')[1])", "$A=b"),
        ("Agent(name=os.getenv('A', 'abc')[1:])", "$A=bc"),
        ("Agent(name=int(os.getenv('N', '3')) + 1)", "$N=4"),
        ("Agent(name=max(1, int(os.getenv('N', '3'))))", "$N=3"),
        ("Agent(name=len(os.getenv('A', 'a b').split()))", "$A=2"),
        ("Agent(name='a' if os.getenv('A', 'X').lower() == 'x' else 'b')", "either(a, b)"),
        ("Agent(name='a' if os.getenv('A', 'a,b').split(',')[0] == 'a' else 'b')", "either(a, b)"),
        ("Agent(name='a' if 'x' in os.getenv('A', 'x').split(',') else 'b')", "either(a, b)"),
        ("Agent(name='a' if os.getenv('A', '') else 'b')", "either(a, b)"),
    ];
    for (text, expected) in cases {
        assert_eq!(name_of(text), [expected], "{text}");
    }
}

/// Python's answer differs from the nearest guess, or from run to run.
#[test]
fn expressions_that_python_decides_differently_are_unknown() {
    let cases = [
        // `True == 1`, and a set has no order and holds nothing twice.
        "match True:\n    case 1: x = 1\n    case _: x = 2\n",
        "x = len({1, 1})\n",
        "x = sum({2, True, 2})\n",
        "x = list({'b', 'a'})[0]\n",
        "a, b = {'p', 'q'}\nx = a\n",
        "x = {'a', 'b'}[0]\n",
        "from enum import Enum, auto\nclass E(Enum):\n    A = 'a'\n    B = auto()\nx = [e.value for e in E][0]\n",
        "from enum import Enum\nclass E(Enum):\n    A = 'a'\n    def __new__(cls, v): pass\nx = len(E)\n",
        "x = 'stra\u{df}e'.title()\n",
        "x = 'a\\x0bb'.splitlines()[0]\n",
        "x = '%d' % True\n",
        "x = max('ab')\n",
        "x = [1, 2, 3][::2][0]\n",
        "x = 'abc'[::-1]\n",
    ];
    for text in cases {
        let shown = named(text);
        let decided = shown.starts_with(|c: char| c == '\'' || c == '[' || c.is_ascii_digit());
        assert!(!decided, "{text} {shown}");
    }
}

/// Nothing large is made before it is known to be within the limits, and the rest of the module is looked at.
#[test]
fn large_values_are_unknown_before_they_are_made() {
    let text = "a = [1] * 10 ** 9\nb = [1, 2] * 9223372036854775807\nc = 'a' * 10 ** 12\nx = 7\n";
    assert!(!too_much(text));
    assert_eq!(named(text), "7");
    let lists = |text: &str| {
        let sources = sources(&[("main.py", text)]);
        let mut world = World::new(&sources, Limits::default());
        world.run(0);
        world.own.lists.iter().map(|l| l.items.len()).sum::<usize>()
    };
    // A text of 16 MB in as many pieces.
    for take in ["t.split(',')", "t.split()", "t.splitlines()", "'{}'.join([t, t]).format()"] {
        let made = lists(&format!("t = ',\\n ' * 3000000\nx = {take}\n"));
        assert!(made < 1_000, "{take}: {made}");
    }
    // Reading a long text again and again costs steps.
    let again =
        |take: &str| too_much(&format!("t = 'a' * 15000000\nfor i in range(1000):\n    x = {take}\n"));
    for take in ["len(t)", "t[:1]", "t.startswith('b')", "t == t", "'b' in t"] {
        assert!(again(take), "{take}");
    }
}

/// Repeated copies of something large cost as many steps as it has items, so that nothing grows with the
/// product of both.
#[test]
fn large_collections_cost_steps() {
    let many = |n: usize, of: &str| {
        let text = format!(
            "import m\ndef g(*a): pass\nfrom functools import partial\na = list(range(1000))\np = partial(g, *a)\n{}",
            format!("{of}\n").repeat(n)
        );
        let sources = sources(&[("main.py", &text)]);
        let mut world = World::new(&sources, Limits { steps: 100_000, ..Limits::default() });
        world.run(0);
        let items: usize = world.own.lists.iter().map(|l| l.items.len()).sum();
        let args: usize = world.own.objects.iter().map(|o| o.args.len()).sum();
        (items + args, world.exceeded().is_some())
    };
    for of in [
        "x = range(1000)",
        "b, *c = a",
        "p()",
        "m.f(*a)",
        "x = list(enumerate(a))",
        "x = a[1:]",
        "x = a * 1",
        "x = [*a]",
    ] {
        let (items, exceeded) = many(2_000, of);
        assert!(exceeded && items < 400_000, "{of} {items}");
    }
}

#[test]
fn classes_with_many_bases_are_looked_at_in_part() {
    let classes: String = (0..3_000).map(|i| format!("class B{i}: x{i} = {i}\n")).collect();
    let bases: String = (0..3_000).map(|i| format!("B{i}, ")).collect();
    let text = format!("{classes}class C({bases}): pass\n{}x = C.x1\n", "C.nothing\n".repeat(3_000));
    assert_eq!(named(&text), "1");
}

/// One turn of a loop that is not unrolled represents all: what a turn changes may be anything at the begin
/// of another one.
#[test]
fn variables_that_a_loop_changes_are_unknown_in_it() {
    assert_eq!(
        name_of(
            "n = 0\nwhile True:\n  n += 1\n  if n == 1: Agent(name='a')\n  elif n == 2: Agent(name='b')\n"
        ),
        ["a", "b"]
    );
    assert_eq!(
        name_of(
            "first = True\nfor x in os.listdir():\n  if first: Agent(name='a')\n  else: Agent(name='b')\n  first = False\n"
        ),
        ["a", "b"]
    );
    let after = name_of("n = 0\nfor x in os.listdir():\n  n = n + 1\nAgent(name=n)\n");
    assert!(after[0].contains("unknown"), "{after:?}");
    // What is assigned before it is read is what it is.
    assert_eq!(name_of("n = 0\nwhile True:\n  n = 5\n  Agent(name=n)\n"), ["5"]);
    assert_eq!(name_of("n = 0\nfor x in ['a', 'b']:\n  n += 1\nAgent(name=n)\n"), ["2"]);
}

/// Number of times that the call `run()` of a module is made: `None` if it has no known limit.
fn times_of_run(body: &str) -> Option<u64> {
    let text = format!("from agents import run\n{body}");
    let sources = sources(&[("main.py", &text)]);
    let mut world = World::new(&sources, Limits::default());
    world.run(0);
    let runs: Vec<_> = world.objects().filter(|(_, o)| o.short() == "run").map(|(_, o)| o).collect();
    assert!(!runs.is_empty(), "{body}");
    (!runs.iter().any(|o| o.repeated)).then(|| runs.iter().map(|o| o.times).sum())
}

#[test]
fn loops_with_a_counter_have_a_limit() {
    for (body, times) in [
        ("n = 0\nwhile n < 3:\n  run()\n  n += 1\n", Some(3)),
        ("n = 1\nwhile x and n <= 3:\n  n += 1\n  run()\n", Some(3)),
        ("n = 0\nwhile True:\n  run()\n  n += 1\n  if n >= 3:\n    break\n", Some(4)),
        ("n = 0\nwhile n < 3:\n  try:\n    run()\n    break\n  except E:\n    n += 1\n", Some(3)),
        ("n = 0\nwhile n < 3:\n  if x:\n    n += 1\n  run()\n", None),
        ("n = 0\nwhile n < 3:\n  run()\n  if x:\n    continue\n  n += 1\n", None),
        ("n = 0\nwhile n < 3:\n  run()\n  n += 1\n  n = 0\n", None),
        ("n = 0\nm = 3\nwhile n < m:\n  run()\n  n += 1\n  m += 1\n", None),
        ("n = 0\nwhile n < 3:\n  try:\n    run()\n    n += 1\n  except E:\n    pass\n", None),
        ("while x:\n  run()\n", None),
        ("for i in range(3):\n  try:\n    run()\n    break\n  except E:\n    pass\n", Some(3)),
        ("for i in range(3):\n  run()\n", Some(3)),
    ] {
        assert_eq!(times_of_run(body), times, "{body}");
    }
}

#[test]
fn retries_of_a_decorator_count() {
    let retry = |given: &str| {
        format!("from tenacity import retry, stop_after_attempt\n@retry({given})\ndef f():\n  run()\nf()\n")
    };
    assert_eq!(times_of_run(&retry("stop=stop_after_attempt(4)")), Some(4));
    assert_eq!(times_of_run(&retry("")), None);
}

#[test]
fn the_last_object_of_a_place_is_found_as_if_all_were_looked_through() {
    let main = "from tools import make, Kit\nimport lib\n\ndef again(x):\n    return lib.tool(x)\n\n\
                kit = Kit()\nfor n in range(4):\n    a = again(n)\n    b = make(n)\n    c = Kit()\n\n\
                while unknown():\n    d = lib.tool(1)\n";
    let tools = "import lib\nclass Kit:\n    def __init__(self):\n        self.x = lib.tool(0)\n\
                 def make(x):\n    return lib.tool(x)\nfirst = make(7)\n";
    let sources = sources(&[("main.py", main), ("tools.py", tools)]);
    let mut world = World::new(&sources, Limits::default());
    let mut compared = 0;
    // Also while objects are still made.
    for step in 0..2 {
        match step {
            0 => world.run(0),
            _ => world.explore(0),
        }
        let places: HashSet<Span> = world.objects().map(|(_, o)| o.span).collect();
        for at in places {
            for has_class in [true, false] {
                let is = |o: &Object| o.class.is_some() == has_class;
                let all = world.objects().filter(|(_, o)| o.span == at && is(o));
                assert_eq!(world.last_made_at(at, is), all.last().map(|(id, _)| id), "{at:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn calls_beyond_the_budget_of_a_body_are_found() {
    // Each function calls the next one twice.
    let functions: String =
        (0..20).map(|i| format!("def g{i}(x):\n    g{n}(x)\n    return g{n}(x)\n", n = i + 1)).collect();
    let source = format!(
        "import shutil\n{functions}def g20(x):\n    return x\ndef f(a, path):\n    for x in a:\n        g0(x)\n    \
         if a:\n        return path\n    try:\n        with open(path) as file:\n            shutil.rmtree(path)\n    \
         except OSError as e:\n        match a:\n            case [b]:\n                shutil.move(b, path)\n"
    );
    let mut sources = Sources::new();
    let main = sources.add(FileId(0), "m.py", source.into());
    let mut world = World::new(&sources, Limits::default());
    world.run(main);
    let f = world.functions().find(|(_, f)| &*f.name == "f").unwrap().0;
    let made = world.calls_of(f);
    assert!(made.cut, "the body is no longer too large for this test");
    let callees: Vec<String> = made.objects.iter().map(|o| world.object(*o).callee.to_string()).collect();
    for name in ["builtins.open", "shutil.rmtree", "shutil.move"] {
        assert!(callees.iter().any(|c| c == name), "{name} is not in {callees:?}");
    }
}
