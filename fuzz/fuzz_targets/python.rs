//! Any text as a module of Python: evaluation ends within its limits.
#![no_main]

use diagnostics::FileId;
use libfuzzer_sys::fuzz_target;
use python::{Limits, Sources, World};

fuzz_target!(|text: &str| {
    let mut sources = Sources::new();
    let main = sources.add(FileId(0), "main.py", text.into());
    let mut world = World::new(&sources, Limits { steps: 50_000, ..Limits::default() });
    world.run(main);
    world.explore(main);
});
