//! Plans in two worlds: what an observer sees must not depend on what it may not see.
//!
//! Tools: `read()` is untrusted, `vault()` secret, `known()` neither; each gives what the world says.
//! `post(x)` takes trusted, public data where such data decides; `keep(x)` may be secret; `note(x)`
//! takes everything. `pay(to, n, text)` wants trusted `to` and `n`; untrusted data may decide whether it
//! happens. `ask` is answered by the world, too.

use crate::run::AT;
use core_ir::{Code, Data, EffectClass, Label, LabelSpec, Lattice, ToolDecl, ToolParam, Type};
use diagnostics::{Diagnostic, FileId};
use machine::{Call, Config, ErrorCode, Machine, Output, Reified, ReifiedKind, Reply, Response};
use plan::World;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const UNTRUSTED: LabelSpec = LabelSpec::Axes { untrusted: true, secret: false };
pub const SECRET: LabelSpec = LabelSpec::Axes { untrusted: false, secret: true };

/// An observer: a label, and the tools whose answers it may not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observer {
    /// Sees all trusted data, also secret data.
    Trusted,
    /// Sees all public data, also untrusted data.
    Public,
    /// Sees trusted, public data alone.
    Both,
    /// With sources and readers: sees what comes from Bob alone or is trusted, and what Bob may read.
    Bob,
}

impl Observer {
    pub const ALL: [Observer; 3] = [Observer::Trusted, Observer::Public, Observer::Both];
    /// The observers of the lattice `sources-readers`.
    pub const OF_SETS: [Observer; 4] = [Observer::Trusted, Observer::Public, Observer::Both, Observer::Bob];

    fn spec(self) -> LabelSpec {
        match self {
            Observer::Trusted => SECRET,
            Observer::Public => UNTRUSTED,
            Observer::Both => LabelSpec::BOTTOM,
            Observer::Bob => {
                let bob = || Data::list([Data::str("bob")]);
                LabelSpec::Exact(Data::record([("sources".into(), bob()), ("readers".into(), bob())]))
            }
        }
    }

    /// Returns true for a tool whose answers it may not see.
    pub fn hides(self, tool: &str) -> bool {
        match tool {
            "read" => self != Observer::Public,
            "vault" => self != Observer::Trusted,
            _ => false,
        }
    }
}

/// The tools that plans of these tests may call.
pub fn world() -> World {
    let param = |n: &str, ty: Type, bound: &LabelSpec| ToolParam {
        name: n.into(),
        ty,
        bound: bound.clone(),
        default: None,
    };
    let any = || Type::option(Type::Dyn);
    let source = |name: &str, label: &LabelSpec| ToolDecl {
        params: Vec::new(),
        effect: EffectClass::Read,
        control: LabelSpec::TOP,
        label: label.clone(),
        result: Type::Dyn,
        ..ToolDecl::unknown(name.into(), AT)
    };
    let sink = |name: &str, params: Vec<ToolParam>, control: &LabelSpec, label: &LabelSpec| ToolDecl {
        params,
        effect: EffectClass::Write,
        control: control.clone(),
        label: label.clone(),
        result: Type::Dyn,
        ..ToolDecl::unknown(name.into(), AT)
    };
    let free = |name: &str, params: &[&str]| crate::run::tool(name, params, LabelSpec::BOTTOM);
    let text = param("text", any(), &UNTRUSTED);
    let pay =
        vec![param("to", Type::Str, &LabelSpec::BOTTOM), param("n", Type::Num, &LabelSpec::BOTTOM), text];
    let some = |name: &str, control: &LabelSpec| ToolDecl {
        at_most: Some(2),
        ..sink(name, vec![param("x", any(), control)], control, control)
    };
    let tools = vec![
        source("read", &UNTRUSTED),
        source("vault", &SECRET),
        source("known", &LabelSpec::BOTTOM),
        sink("post", vec![param("x", any(), &LabelSpec::BOTTOM)], &LabelSpec::BOTTOM, &LabelSpec::BOTTOM),
        sink("keep", vec![param("x", any(), &SECRET)], &SECRET, &SECRET),
        sink("note", vec![param("x", any(), &LabelSpec::TOP)], &LabelSpec::TOP, &LabelSpec::TOP),
        sink("pay", pay, &UNTRUSTED, &UNTRUSTED),
        some("few", &UNTRUSTED),
        ToolDecl {
            approve: core_ir::Approve::IfRefused,
            ..sink(
                "sign",
                vec![param("x", any(), &LabelSpec::BOTTOM)],
                &LabelSpec::BOTTOM,
                &LabelSpec::BOTTOM,
            )
        },
    ];
    let mut tools: Vec<Arc<ToolDecl>> = tools.into_iter().map(Arc::new).collect();
    tools.extend([
        free("echo", &["x"]),
        free("add", &["a", "b"]),
        free("fail", &["x"]),
        free("items", &["n"]),
    ]);
    World { tools, ..World::default() }
}

pub fn compile(text: &str) -> Result<Code, Vec<Diagnostic>> {
    match plan::compile(FileId(0), "p.plan.py", text.into(), &world()) {
        (Some(code), _) => Ok(code),
        (None, found) => Err(found),
    }
}

/// Answers of the tools and the model of a world: `{"error": text}`, `{"late": true}`, or a value; of a list
/// under `each`, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Answers(pub BTreeMap<String, Value>);

impl Answers {
    fn of(&self, tool: &str, call: usize) -> Option<&Value> {
        match self.0.get(tool)? {
            Value::Object(o) if o.contains_key("each") => {
                let all = o["each"].as_array()?;
                all.get(call.min(all.len().checked_sub(1)?))
            }
            value => Some(value),
        }
    }
}

/// A run: each request with its channel, and how it ended.
pub struct Ran {
    requests: Vec<(Label, Value)>,
    end: Result<Reified, (Label, ErrorCode, String)>,
    lattice: Lattice,
}

/// The part of a run that an observer sees. The end is `None` if it is hidden.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub trace: Vec<Value>,
    pub end: Option<Value>,
}

impl Seen {
    /// Returns true if nothing tells two runs apart. One that ends of what is hidden may have seen less.
    pub fn agrees(&self, other: &Seen) -> bool {
        match (&self.end, &other.end) {
            (Some(a), Some(b)) => a == b && self.trace == other.trace,
            _ => {
                let hidden = |a: &Seen, b: &Seen| a.end.is_none() && b.trace.starts_with(&a.trace);
                hidden(self, other) || hidden(other, self)
            }
        }
    }
}

impl Ran {
    pub fn seen(&mut self, observer: Observer) -> Seen {
        let Some(level) = self.lattice.resolve(&observer.spec()) else { unreachable!("a label") };
        let lattice = &mut self.lattice;
        let trace = self.requests.iter().filter(|(l, _)| lattice.flows(*l, level));
        let trace = trace.map(|(_, v)| v.clone()).collect();
        let end = match &self.end {
            Ok(value) => Some(shown(value, lattice, level)).filter(|v| *v != json!("hidden")),
            Err((label, code, message)) if lattice.flows(*label, level) => {
                Some(json!({"error": code.as_str(), "message": message}))
            }
            Err(_) => None,
        };
        Seen { trace, end }
    }

    /// All requests with the names of the tools, whoever sees them.
    pub fn all_calls(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.requests.iter().filter_map(|(_, v)| Some((v[0].as_str()?, v)))
    }

    /// All calls of a tool, whoever sees them.
    pub fn calls(&self, tool: &str) -> Vec<&Value> {
        self.requests.iter().map(|(_, v)| v).filter(|v| v[0] == tool).collect()
    }
}

/// A value as an observer of this level sees it.
fn shown(value: &Reified, lattice: &mut Lattice, level: Label) -> Value {
    let label = lattice.label_of(&value.label).expect("a label of the run");
    if !lattice.flows(label, level) {
        return json!("hidden");
    }
    match &value.kind {
        ReifiedKind::List(items) => items.iter().map(|i| shown(i, lattice, level)).collect(),
        ReifiedKind::Record(fields) => {
            Value::Object(fields.iter().map(|(n, v)| (n.to_string(), shown(v, lattice, level))).collect())
        }
        ReifiedKind::Scalar(data) => data.to_json(),
        _ => value.data().map_or(json!("function"), |d| d.to_json()),
    }
}

/// Runs a plan in a world.
pub fn run(code: &Arc<Code>, answers: &Answers) -> Ran {
    let config = Config { fuel: FUEL, ..Config::default() };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    drive(code, config, &mut |call| {
        let (name, response) = match call {
            Call::Tool { tool, args } => {
                let name = tool.name.to_string();
                let call = *counts.get(&name).unwrap_or(&0);
                let response = match answers.of(&name, call) {
                    Some(v) => tool_answer(v),
                    None if matches!(&*name, "echo" | "add" | "fail" | "items") => {
                        Response::Tool(crate::run::answer(&name, args))
                    }
                    None => Response::Tool(Ok(Data::Null)),
                };
                (name, response)
            }
            Call::Approve { .. } => ("approve".into(), Response::Approve(Ok(()))),
            Call::Model { .. } => {
                let call = *counts.get("ask").unwrap_or(&0);
                let reply = answers.of("ask", call).cloned().unwrap_or(json!(3));
                ("ask".into(), Response::Model(Ok(Reply::Text(reply.to_string()))))
            }
            other => panic!("{other:?}"),
        };
        *counts.entry(name).or_default() += 1;
        response
    })
}

/// Steps of a run at most.
pub const FUEL: u64 = 200_000;

/// An answer of a tool in JSON.
pub fn tool_answer(v: &Value) -> Response {
    if v.get("late").is_some() {
        return Response::ToolTimeout("no result within 1 s".into());
    }
    Response::Tool(match v.get("error").and_then(Value::as_str) {
        Some(why) => Err(why.into()),
        None => Ok(Data::from_json(v).expect("data")),
    })
}

/// Runs a plan with these answers.
pub fn drive(code: &Arc<Code>, config: Config, answer: &mut dyn FnMut(&Call) -> Response) -> Ran {
    let mut machine = Machine::new(code.clone(), None, config);
    let mut requests = Vec::new();
    let end = loop {
        match machine.poll() {
            Output::Request(id, request) => {
                let json = |args: &[(core_ir::Name, Data)]| -> Vec<Value> {
                    args.iter().map(|(_, d)| d.to_json()).collect()
                };
                let shown = match &request.call {
                    Call::Tool { tool, args } => json!([&**tool.called(), json(args)]),
                    Call::Approve { tool, args, .. } => json!(["approve", &*tool.name, json(args)]),
                    _ => json!(["ask"]),
                };
                let response = answer(&request.call);
                requests.push((request.channel, shown));
                machine.handle(id, response);
            }
            Output::Working => {}
            Output::Waiting => panic!("every request was answered"),
            Output::Done(result) => break result,
        }
    };
    let end = match end {
        Ok(value) => Ok(machine.reify(&value)),
        Err(f) => Err((f.label, f.code, f.message)),
    };
    // The numbers of labels mean something in the lattice of the run alone.
    let lattice = machine.lattice().clone();
    Ran { requests, end, lattice }
}

/// Whoever is asked about a call learns apart from its arguments that untrusted data decided it.
#[test]
fn an_approver_learns_what_decided_a_call() {
    for (text, decided) in [
        ("sign(read())", false),
        ("if 'a' in read():\n    sign('x')", true),
        ("if 'a' in read():\n    sign(read().upper())", true),
    ] {
        let code = Arc::new(compile(text).expect(text));
        let mut asked = Vec::new();
        let config = Config { fuel: FUEL, ..Config::default() };
        let ran = drive(&code, config, &mut |call| match call {
            Call::Approve { control, .. } => {
                asked.push(*control != Label::BOTTOM);
                Response::Approve(Ok(()))
            }
            Call::Tool { .. } => tool_answer(&json!("an a")),
            other => panic!("{other:?}"),
        });
        assert_eq!((asked, ran.end.is_ok()), (vec![decided], true), "{text}: {:?}", ran.end);
    }
}
