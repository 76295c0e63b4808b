//! What frameworks of Rust take for an agent, as `scripts/peers/common.py` measures it for those of Python and
//! `crates/runtime/examples/load.rs` for Entail: a loop of ten steps, each one call of a model and one of a tool (an async function), with a
//! fake model that answers at once; and the memory of an agent that waits for its model. One process, one thread.
//!
//!     peers FRAMEWORK steps
//!     peers FRAMEWORK waiting AGENTS CALLS

mod autoagents;
mod rig;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

const STEPS: usize = 10;
const ANSWER: &str = "found";

/// The model's behavior: `calls` calls of the tool `look`, then it waits if it is to, then it answers.
pub struct Plan {
    calls: usize,
    go: Option<watch::Sender<bool>>,
    waiting: AtomicUsize,
}

impl Plan {
    fn new(calls: usize, waits: bool) -> Arc<Plan> {
        Arc::new(Plan { calls, go: waits.then(|| watch::Sender::new(false)), waiting: AtomicUsize::new(0) })
    }

    /// Returns true if the model calls the tool after `done` results.
    pub fn is_call(&self, done: usize) -> bool {
        done < self.calls
    }

    pub async fn before_answer(&self) {
        if let Some(go) = &self.go {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            go.subscribe().wait_for(|go| *go).await.unwrap();
        }
    }
}

/// One run, which gives its answer.
pub type Run = Pin<Box<dyn Future<Output = String> + Send>>;

/// Makes runs of what all of them have in common.
pub type Runs = Box<dyn Fn() -> Run>;

/// Bytes of memory that this process has.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// Processor time of this process.
fn processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

async fn waiting(make: fn(Arc<Plan>) -> Runs, agents: usize, calls: usize) -> f64 {
    // What the first run loads is not what an agent takes.
    assert_eq!(make(Plan::new(1, false))().await, ANSWER);
    let plan = Plan::new(calls, true);
    let one = make(plan.clone());
    let before = memory();
    let runs: Vec<_> = (0..agents).map(|_| tokio::spawn(one())).collect();
    while plan.waiting.load(Ordering::Relaxed) < agents {
        assert!(!runs.iter().any(|run| run.is_finished()), "a run ended too early");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let each = (memory() - before) as f64 / agents as f64 / 1024.0;
    plan.go.as_ref().unwrap().send_replace(true);
    for run in runs {
        assert_eq!(run.await.unwrap(), ANSWER);
    }
    each
}

/// Microseconds of processor time for a step: the median of the runs that fit in the time, without the first two.
async fn steps(make: fn(Arc<Plan>) -> Runs) -> f64 {
    let one = make(Plan::new(STEPS, false));
    let (mut took, begun) = (Vec::new(), Instant::now());
    while took.len() < 7 || begun.elapsed() < Duration::from_secs(8) {
        let before = processor();
        assert_eq!(tokio::spawn(one()).await.unwrap(), ANSWER);
        took.push(processor() - before);
    }
    took.drain(..2);
    took.sort_unstable();
    took[took.len() / 2].as_secs_f64() / STEPS as f64 * 1e6
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let make = match args.first() {
        Some(&"rig") => rig::make,
        Some(&"autoagents") => autoagents::make,
        _ => panic!("a framework: rig or autoagents"),
    };
    match args[1..] {
        ["steps", ..] => println!("{:.0}", steps(make).await),
        ["waiting", agents, calls] => {
            println!("{:.1}", waiting(make, agents.parse().unwrap(), calls.parse().unwrap()).await);
        }
        _ => panic!("what to measure: steps, or waiting AGENTS CALLS"),
    }
}
