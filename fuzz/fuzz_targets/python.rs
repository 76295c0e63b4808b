//! Any text as a module of Python: evaluation ends within its limits, and so does what its functions compute
//! of something unknown.
#![no_main]

use diagnostics::FileId;
use libfuzzer_sys::fuzz_target;
use python::{Arg, PyKind, Limits, Sources, Value, World};

fuzz_target!(|text: &str| {
    let mut sources = Sources::new();
    let main = sources.add(FileId(0), "main.py", text.into());
    let mut world = World::new(&sources, Limits { steps: 50_000, ..Limits::default() });
    world.run(main);
    world.explore(main);
    let functions: Vec<Value> =
        world.functions().take(8).map(|(id, f)| Value::new(PyKind::Function(id), f.span)).collect();
    for function in functions {
        let state = world.new_call("State", Vec::new(), function.span);
        let args = vec![Arg { name: None, span: function.span, value: state }];
        world.trace(&function, args);
    }
});
