//! Small programs, made directly.

use core_ir::{
    Builder, Catches, Code, Data, Globals, LabelSpec, ModelParams, Name, Term, TermId, ToolDecl, ToolParam,
    Type,
};
use diagnostics::{FileId, Span};
use machine::{Config, Machine};
use std::sync::Arc;

pub const AT: Span = Span { file: FileId(0), start: 0, end: 0 };

pub fn code(make: impl FnOnce(&mut Builder) -> TermId) -> Arc<Code> {
    let mut b = Builder::new();
    let root = make(&mut b);
    Arc::new(b.finish(root, &Globals::none()).unwrap())
}

pub fn machine(make: impl FnOnce(&mut Builder) -> TermId) -> Machine {
    Machine::new(code(make), None, Config::default())
}

/// `llm "" {…} text`
pub fn ask(b: &mut Builder, text: &str, params: ModelParams) -> TermId {
    let prompt = b.lit("", AT);
    let f = b.add(Term::Llm(prompt, Arc::new(params)), AT);
    let x = b.lit(text, AT);
    b.app(f, x, AT)
}

/// `par[bound] [branch 0, …]`
pub fn par(
    b: &mut Builder,
    bound: Option<u32>,
    n: usize,
    mut branch: impl FnMut(&mut Builder, usize) -> TermId,
) -> TermId {
    let branches = (0..n).map(|i| branch(b, i)).collect();
    b.add(Term::Par(bound, branches), AT)
}

/// `try e catch x. x`
pub fn caught(b: &mut Builder, e: TermId) -> TermId {
    let label = b.lit(Data::list([]), AT);
    let handler = b.var("x", AT);
    b.add(Term::Try { label, body: e, catches: Catches::All, name: "x".into(), handler }, AT)
}

/// A tool whose arguments and results have no labels of interest.
pub fn decl(name: &str, params: &[(&str, Type)], result: Type, handler: Option<Data>) -> ToolDecl {
    let param = |(n, t): &(&str, Type)| ToolParam {
        name: (*n).into(),
        ty: t.clone(),
        bound: LabelSpec::TOP,
        default: None,
    };
    ToolDecl {
        params: params.iter().map(param).collect(),
        result,
        control: LabelSpec::TOP,
        label: LabelSpec::BOTTOM,
        handler,
        ..ToolDecl::unknown(name.into(), AT)
    }
}

/// `tool[f] {…}`
pub fn call(b: &mut Builder, tool: ToolDecl, args: Vec<(Name, Data)>) -> TermId {
    let id = b.tool(tool);
    let f = b.add(Term::Tool(id), AT);
    let x = b.lit(Data::record(args), AT);
    b.app(f, x, AT)
}

/// `{exec: […]}`
pub fn exec(words: &[&str]) -> Data {
    Data::record([("exec".into(), Data::list(words.iter().map(|w| Data::str(*w))))])
}
