//! Load test: cost of very many agents.
//! `cargo run --release -p runtime --no-default-features --example load [AGENTS]`.
//!
//! Prints a table, with the figures of other systems on such a machine that were measured earlier
//! (`scripts/bench-peers` measures more of them in one run with this): the memory of an agent that waits for
//! a model, and the time of a loop of ten steps, each one call of a model and one of a tool, with a model
//! that answers at once. Everything is the real thing, from the checked program to the report of the run;
//! only the model is not there.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // It measures and prints; what can't go on may end it.

use core_ir::{Code, Data, Num, Role};
use diagnostics::FileId;
use machine::{Config, Machine, Reply};
use runtime::{
    Answer, CancellationToken, CustomTool, Environment, Handlers, Limits, ModelCall, Models, Price, Progress,
    Provider, Tokens, Tools, Work,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const PROGRAM: &str = r#"
tool look(q: String) -> String reads {}
agent seeker { tools: [look], prompt: "You look things up.", max_steps: 50 }
task find(q: String) -> String by agent { prompt "find {q}" }
pipeline main(q: String) -> String { let a = run find with { q: q } by seeker; return a; }
"#;

/// Steps of a loop: calls of the model with one of the tool each. A last call of the model gives the answer.
const STEPS: usize = 10;

/// Calls the tool `calls` times and then answers, or first waits until it is let go.
struct Model {
    calls: usize,
    waits: Option<CancellationToken>,
    waiting: AtomicUsize,
}

impl Provider for Model {
    fn name(&self) -> &str {
        "instant"
    }

    fn price(&self) -> Option<Price> {
        Some(Price::FREE)
    }

    fn ask(self: Arc<Self>, call: ModelCall, _: Progress) -> Work<Answer> {
        let done = call.messages.iter().filter(|m| m.role == Role::Tool).count();
        let reply = if done < self.calls {
            let args = Data::record([("q".into(), Data::str("it"))]);
            Reply::ToolCall { name: "look".into(), args }
        } else {
            Reply::Text("found".into())
        };
        let answer = |reply| Answer::new(Ok(reply), Tokens::new(100, 10));
        match &self.waits {
            Some(waits) if done == self.calls => {
                self.waiting.fetch_add(1, Ordering::Relaxed);
                let waits = waits.clone();
                // A waiting agent is small: what is shared belongs to the model, not to the agent.
                Work::Later(Box::pin(async move {
                    waits.cancelled_owned().await;
                    answer(Reply::Text("found".into()))
                }))
            }
            _ => Work::Now(answer(reply)),
        }
    }
}

fn program() -> Arc<Code> {
    let (module, found) = agentlang::check(FileId(0), PROGRAM);
    let module = module.unwrap_or_else(|| panic!("{found:?}"));
    Arc::new(module.lower(module.default_entry().unwrap()).unwrap())
}

fn handlers(model: &Arc<Model>, tool: &str) -> Handlers {
    let tools = Tools::new(&Environment::default());
    let tools = match tool {
        "builtin" => {
            let handler = Data::record([("builtin".into(), Data::str("text.upper"))]);
            tools.with_handler("look", handler)
        }
        _ => {
            let look: CustomTool = Arc::new(|args| Box::pin(async move { Ok(args[0].1.clone()) }));
            tools.with_custom("look", look)
        }
    };
    Handlers { tools, ..Handlers::new(Models::only(model.clone())) }
}

/// State shared by all runs of a service.
struct Service {
    code: Arc<Code>,
    config: Arc<Config>,
    handlers: Handlers,
    limits: Limits,
    cancel: CancellationToken,
}

impl Service {
    fn new(model: &Arc<Model>, tool: &str) -> Arc<Service> {
        Arc::new(Service {
            code: program(),
            config: Arc::default(),
            handlers: handlers(model, tool),
            limits: Limits::default(),
            cancel: CancellationToken::new(),
        })
    }
}

async fn one(service: Arc<Service>) {
    let input = Some(Data::record([("q".into(), Data::str("it"))]));
    let machine = Machine::new(service.code.clone(), input, service.config.clone());
    let mut nobody = |_| {};
    // Not bound to a name before it is awaited: this future would have room for it twice.
    let report =
        runtime::run(machine, &service.handlers, &service.limits, &service.cancel, &mut nobody).await;
    assert_eq!(report.result.unwrap().data(), Some(Data::str("found")));
    assert_eq!(report.usage.usd, Some(Num::ZERO));
}

/// Bytes of memory that this process has.
fn memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches(" kB").trim().parse::<usize>().ok()? * 1024)
}

/// Bytes for each of `agents` that wait for a model after `calls` steps; all of them get their answer in the
/// end.
async fn waiting(agents: usize, calls: usize) -> Option<usize> {
    let go = CancellationToken::new();
    let model = Arc::new(Model { calls, waits: Some(go.clone()), waiting: AtomicUsize::new(0) });
    let service = Service::new(&model, "builtin");
    let before = memory();
    let runs: Vec<_> = (0..agents).map(|_| tokio::spawn(one(service.clone()))).collect();
    while model.waiting.load(Ordering::Relaxed) < agents {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let each = memory().zip(before).map(|(now, before)| now.saturating_sub(before) / agents);
    go.cancel();
    for run in runs {
        run.await.unwrap();
    }
    each
}

/// Returns the processor time of this thread in seconds, or the elapsed time where the system doesn't report
/// it.
fn processor_time(begun: Instant) -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = stat.and_then(|s| s.split_whitespace().next()?.parse::<f64>().ok());
    nanos.map_or_else(|| begun.elapsed().as_secs_f64(), |n| n / 1e9)
}

/// Loops of ten steps in a second of one processor: the median of several rounds.
async fn loops(tool: &str) -> f64 {
    const RUNS: usize = 2_000;
    let model = Arc::new(Model { calls: STEPS, waits: None, waiting: AtomicUsize::new(0) });
    let service = Service::new(&model, tool);
    let (start, mut rounds) = (Instant::now(), Vec::new());
    for _ in 0..7 {
        let begun = processor_time(start);
        for _ in 0..RUNS {
            one(service.clone()).await;
        }
        rounds.push(RUNS as f64 / (processor_time(start) - begun));
    }
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

/// Other systems: name, KiB of a waiting agent, after ten steps, µs of a step. `scripts/bench-peers` measures
/// those that can be had.
const OTHERS: &[(&str, &str, &str, &str)] =
    &[("lambdagent 0.1.0 (Python), earlier", "17.6, and a thread", "–", "145–420")];

fn main() {
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|n| n.parse().ok()).collect();
    let here = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if let [agents, calls] = given[..] {
        println!("{}", here().block_on(waiting(agents, calls)).unwrap_or(0));
        return;
    }
    let agents = given.first().copied().unwrap_or(100_000);
    // Each in a process of its own, so that none gets memory that another one has given back.
    let apart = |calls: usize| {
        let program = std::env::current_exe().unwrap();
        let ran = std::process::Command::new(program).args([agents.to_string(), calls.to_string()]).output();
        let ran = ran.unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().trim().parse::<usize>().ok().filter(|n| *n > 0)
    };
    let (first, later) = (apart(0), apart(STEPS));
    let (custom, builtin) = (here().block_on(loops("custom")), here().block_on(loops("builtin")));
    let kib = |bytes: Option<usize>| bytes.map_or("unknown".into(), |b| format!("{:.1}", b as f64 / 1024.0));
    let micros = 1e6 / custom / STEPS as f64;
    println!("| system | KiB for an agent that waits | after {STEPS} steps | µs of a step |");
    println!("|---|---:|---:|---:|");
    println!("| **Entail** | **{}** | **{}** | **{micros:.1}** |", kib(first), kib(later));
    for (name, waits, later, step) in OTHERS {
        println!("| {name} | {waits} | {later} | {step} |");
    }
    println!();
    println!(
        "{agents} agents waited for a model at once, and as many after {STEPS} steps; all got their answer."
    );
    println!(
        "{custom:.0} loops of {STEPS} steps a second of one processor with a tool that is an async function,"
    );
    println!("{builtin:.0} with a built-in one.");
}
