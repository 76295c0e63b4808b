//! The cost of starting a tool, without and with the supervisor that ends its descendants, compared within
//! one run: `cargo run -p runtime --example tool_start [CALLS]`.
//!
//! A call starts `true` in a run of its own; both kinds take turns, so that a busy machine slows both.
#![allow(clippy::print_stdout, reason = "an example prints what it measures")]

use core_ir::{Builder, Data, EffectClass, Globals, LabelSpec, Term, ToolDecl, Type};
use diagnostics::{FileId, Span};
use machine::{Config, Machine};
use runtime::{CancellationToken, Environment, Handlers, Limits, Models, Scripted, Tools};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Calls in a turn.
const TURN: u32 = 20;

fn main() -> ExitCode {
    let mut args = std::env::args();
    let first = args.nth(1).unwrap_or_default();
    if first == "supervised" || first.starts_with("__") {
        // As the program `entail` does: this process supervises its tools, or is a supervisor.
        if let Some(status) = runtime::supervise(std::env::args_os()) {
            return ExitCode::from(status);
        }
    }
    if matches!(first.as_str(), "supervised" | "plain") {
        println!("{}", turn().map_or(0, |time| time.as_micros()));
        return ExitCode::SUCCESS;
    }
    let calls = first.parse().unwrap_or(200u32);
    let mut all = [Vec::new(), Vec::new()];
    for _ in 0..calls.div_ceil(TURN) {
        for (kind, times) in ["plain", "supervised"].into_iter().zip(&mut all) {
            let me = std::env::current_exe().unwrap_or_default();
            let out = Command::new(me).arg(kind).output().map(|out| out.stdout).unwrap_or_default();
            let micros: u64 = String::from_utf8_lossy(&out).trim().parse().unwrap_or(0);
            times.push(micros as f64 / 1000.0 / f64::from(TURN));
        }
    }
    for (what, times) in ["without a supervisor", "with a supervisor"].into_iter().zip(&mut all) {
        times.sort_by(f64::total_cmp);
        let median = times.get(times.len() / 2).copied().unwrap_or(0.0);
        let least = times.first().copied().unwrap_or(0.0);
        println!(
            "{what:<22} {median:.2} ms a call (median of {} turns of {TURN}; least {least:.2})",
            times.len()
        );
    }
    ExitCode::SUCCESS
}

/// The time of a turn of calls, after one that is not counted.
fn turn() -> Option<Duration> {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().ok()?;
    let models = Models::only(Arc::new(Scripted::parse("[]").ok()?));
    let tools = Tools::new(&Environment::default());
    let handlers = Handlers { tools, ..Handlers::new(models) };
    let code = Arc::new(program()?);
    let call = || {
        let machine = Machine::new(code.clone(), None, Config::default());
        let (limits, cancel) = (Limits::default(), CancellationToken::new());
        tokio.block_on(runtime::run(machine, &handlers, &limits, &cancel, &mut |_| {})).result.ok()
    };
    call()?;
    let begun = Instant::now();
    for _ in 0..TURN {
        call()?;
    }
    Some(begun.elapsed())
}

/// `tool[t] {}` where `t` is `true`.
fn program() -> Option<core_ir::Code> {
    let at = Span { file: FileId(0), start: 0, end: 0 };
    let mut b = Builder::new();
    let tool = b.tool(ToolDecl {
        effect: EffectClass::Read,
        result: Type::Str,
        control: LabelSpec::TOP,
        handler: Some(Data::record([("exec".into(), Data::list([Data::str("true")]))])),
        ..ToolDecl::unknown("t".into(), at)
    });
    let function = b.add(Term::Tool(tool), at);
    let nothing = b.lit(Data::record([]), at);
    let root = b.app(function, nothing, at);
    b.finish(root, &Globals::none()).ok()
}
