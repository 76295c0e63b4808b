//! A plan with scripted tools: its answer, its calls, and the class of its error.

use core_ir::{Data, EffectClass, LabelSpec, Num, ToolDecl, ToolParam, Type};
use diagnostics::{Diagnostic, FileId, Span};
use machine::{Call, Config, ErrorCode, Machine, Output, Response};
use plan::World;
use serde_json::{Value, json};
use std::sync::Arc;

pub const AT: Span = Span { file: FileId(0), start: 0, end: 0 };

/// The time of every run: 2025-11-24 16:00 UTC.
pub const NOW: i64 = 1_764_000_000;

/// A tool with these parameters, all of any type, which anybody may call.
pub fn tool(name: &str, params: &[&str], label: LabelSpec) -> Arc<ToolDecl> {
    let params = params.iter().map(|p| ToolParam {
        name: (*p).into(),
        ty: Type::option(Type::Dyn),
        bound: LabelSpec::TOP,
        default: None,
    });
    Arc::new(ToolDecl {
        params: params.collect(),
        effect: EffectClass::Read,
        control: LabelSpec::TOP,
        label,
        ..ToolDecl::unknown(name.into(), AT)
    })
}

/// The scripted tools, whose results have this label.
pub fn world(label: &LabelSpec) -> World {
    let of = |name, params: &[&str]| tool(name, params, label.clone());
    World {
        tools: vec![of("echo", &["x"]), of("add", &["a", "b"]), of("fail", &["x"]), of("items", &["n"])],
        ..World::default()
    }
}

/// The answer of a scripted tool.
pub fn answer(name: &str, args: &[(core_ir::Name, Data)]) -> Result<Data, String> {
    let arg = |i: usize| args.get(i).map_or(Data::Null, |(_, d)| d.clone());
    match name {
        "echo" => Ok(arg(0)),
        "add" => match (arg(0), arg(1)) {
            (Data::Num(a), Data::Num(b)) => Ok(Data::Num(a.add(&b).unwrap())),
            _ => Err("no numbers".into()),
        },
        "items" => match arg(0) {
            Data::Num(n) if n >= Num::ZERO && n.to_usize().is_some_and(|n| n < 10) => {
                let item = |i: usize| {
                    Data::record([
                        ("id".into(), Data::Num(Num::from(i as i64))),
                        ("name".into(), Data::str(format!("n{i}"))),
                    ])
                };
                Ok(Data::list((0..n.to_usize().unwrap_or(0)).map(item)))
            }
            _ => Err("a bad number".into()),
        },
        _ => Err("it failed".into()),
    }
}

/// The end of a run: the answer, or the class of the exception; and the calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    pub result: Result<Value, String>,
    pub trace: Vec<Value>,
}

pub fn compile(text: &str) -> Result<core_ir::Code, Vec<Diagnostic>> {
    compile_for(text, &LabelSpec::BOTTOM)
}

pub fn compile_for(text: &str, label: &LabelSpec) -> Result<core_ir::Code, Vec<Diagnostic>> {
    match plan::compile(FileId(0), "p.plan.py", text.into(), &world(label)) {
        (Some(code), _) => Ok(code),
        (None, found) => Err(found),
    }
}

pub fn run(code: core_ir::Code) -> Ended {
    let mut trace = Vec::new();
    let config = Config { fuel: 20_000_000, ..Config::default() };
    let mut machine = Machine::new(Arc::new(code), None, config);
    let result = loop {
        match machine.poll() {
            Output::Request(id, request) => {
                let Call::Tool { tool, args } = &request.call else { panic!("{:?}", request.call) };
                if &*tool.name == "clock" {
                    machine.handle(id, Response::Tool(Ok(Data::Num(NOW.into()))));
                    continue;
                }
                let shown: Vec<Value> = args.iter().map(|(_, d)| d.to_json()).collect();
                trace.push(json!([&*tool.name, shown]));
                let response = Response::Tool(answer(&tool.name, args));
                machine.handle(id, response);
            }
            Output::Working => {}
            Output::Waiting => panic!("every request was answered"),
            Output::Done(result) => break result,
        }
    };
    let result = match result {
        Ok(value) => Ok(machine.reify(&value).data().unwrap().to_json()),
        Err(f) if f.code == ErrorCode::Fail => {
            Err(core_ir::py::uncaught(&f.message).map_or(f.message, |e| e.0))
        }
        Err(f) if f.code == ErrorCode::Tool => Err("ToolError".into()),
        Err(f) => Err(format!("{}: {}", f.code.as_str(), f.message)),
    };
    Ended { result, trace }
}
