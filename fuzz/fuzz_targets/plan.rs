//! Any text as a plan: it is compiled or refused, and what is refused has a code. The tools are such that the
//! arguments of calls are moved out of branches.
#![no_main]

use core_ir::{LabelSpec, ToolDecl, ToolParam, Type};
use diagnostics::{FileId, Span, has_errors};
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};

static WORLD: LazyLock<plan::World> = LazyLock::new(|| {
    let at = Span { file: FileId(0), start: 0, end: 0 };
    let untrusted = LabelSpec::Axes { untrusted: true, secret: false };
    let param = |name: &str| ToolParam {
        name: name.into(),
        ty: Type::option(Type::Dyn),
        bound: LabelSpec::BOTTOM,
        default: None,
    };
    let read = ToolDecl { params: vec![param("a")], ..ToolDecl::unknown("read".into(), at) };
    let pay = ToolDecl {
        params: vec![param("to"), param("n")],
        control: untrusted,
        ..ToolDecl::unknown("pay".into(), at)
    };
    plan::World { tools: vec![Arc::new(read), Arc::new(pay)], ..plan::World::default() }
});

fuzz_target!(|text: &str| {
    let (code, found, _) = plan::compile_with_hints(FileId(0), "a.plan.py", text.into(), &WORLD);
    assert_eq!(code.is_none(), has_errors(&found));
    assert!(found.iter().all(|d| d.code.starts_with('P')));
});
