//! Runs whose answers an engine keeps: an engine in memory loses the process at every event, and the next
//! attempt asks for the same steps.

use crate::support::program::{AT, call, decl, machine as machine_of, par};
use core_ir::{Builder, Data, EffectClass, Name, Num, Term, TermId, Type};
use machine::{Config, ErrorCode, Machine, RequestId};
use runtime::{
    Approvers, CancellationToken, Engine, EngineEvent, EngineRun, EngineStep, Environment, Event, Handlers,
    Limits, Models, RunReport, Scripted, StepKind, Tools, Unfinished,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The engine's storage, which survives an attempt.
#[derive(Debug, Default)]
struct Kept {
    /// Names of the steps, in the order in which they were entered.
    commands: Vec<String>,
    /// Events that were told, in their order.
    told: Vec<Told>,
    /// Steps that are durably begun.
    begun: HashSet<usize>,
}

#[derive(Clone, Debug)]
enum Told {
    Answered(usize, String),
    Reached(i64),
}

/// An attempt that dies after a number of events.
#[derive(Debug)]
struct Attempt {
    kept: Arc<Mutex<Kept>>,
    created: i64,
    /// Events after which the process is lost.
    left: usize,
    over: CancellationToken,
    random: u64,
    entered: usize,
    steps: BTreeMap<usize, (RequestId, StepKind)>,
    started: HashSet<usize>,
    /// Records that are on their way.
    proposed: Vec<(usize, String)>,
    cursor: usize,
    timer: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Attempt {
    fn random(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 33).unwrap()
    }

    fn event(&mut self, told: &Told) -> Option<EngineEvent> {
        match told {
            Told::Reached(at) => Some(EngineEvent::Reached(*at)),
            // One that was given up is not told of.
            Told::Answered(step, record) => {
                let (id, _) = self.steps.remove(step)?;
                Some(EngineEvent::Answered { id, record: record.clone() })
            }
        }
    }
}

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

impl Engine for Attempt {
    fn run(&self) -> &str {
        "run"
    }

    fn scope(&self) -> &str {
        "scope"
    }

    fn created(&self) -> i64 {
        self.created
    }

    fn enter(&mut self, id: RequestId, step: EngineStep) {
        let mut kept = self.kept.lock().unwrap();
        match kept.commands.get(self.entered) {
            Some(before) => assert_eq!(*before, step.name, "the order of the steps differs"),
            None => kept.commands.push(step.name),
        }
        self.steps.insert(self.entered, (id, step.kind));
        self.entered += 1;
    }

    fn keep(&mut self, id: RequestId, record: String) {
        let step = self.steps.iter().find(|(_, (of, _))| *of == id).map(|(step, _)| *step);
        self.proposed.extend(step.map(|step| (step, record)));
    }

    fn forget(&mut self, id: RequestId) {
        self.steps.retain(|_, (of, _)| *of != id);
    }

    fn poll(&mut self, due: Option<i64>, cx: &mut Context<'_>) -> Poll<EngineEvent> {
        loop {
            if self.left == 0 {
                self.over.cancel();
                return Poll::Pending;
            }
            let told = self.kept.lock().unwrap().told.get(self.cursor).cloned();
            if let Some(told) = told {
                self.cursor += 1;
                match self.event(&told) {
                    Some(event) => return Poll::Ready(event),
                    None => continue,
                }
            }
            // All that was told is told again, so new things begin.
            let steps: Vec<(usize, RequestId, StepKind)> =
                self.steps.iter().map(|(step, (id, kind))| (*step, *id, *kind)).collect();
            let waiting: Vec<_> = steps.iter().filter(|(step, ..)| !self.started.contains(step)).collect();
            if !waiting.is_empty() {
                let (step, id, kind) = *waiting[self.random() % waiting.len()];
                self.left -= 1;
                self.started.insert(step);
                let again = kind == StepKind::Once && !self.kept.lock().unwrap().begun.insert(step);
                return Poll::Ready(EngineEvent::Begin { id, again });
            }
            if !self.proposed.is_empty() {
                self.left -= 1;
                let at = self.random() % self.proposed.len();
                let (step, record) = self.proposed.swap_remove(at);
                self.kept.lock().unwrap().told.push(Told::Answered(step, record));
                continue;
            }
            let Some(due) = due else { return Poll::Pending };
            if now() < due {
                let wait = Duration::from_millis((due - now()).cast_unsigned());
                let timer = self.timer.insert(Box::pin(tokio::time::sleep(wait)));
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
            self.left -= 1;
            self.kept.lock().unwrap().told.push(Told::Reached(due));
        }
    }
}

/// Calls by tool and argument.
type Calls = Arc<Mutex<HashMap<String, usize>>>;

/// Tools that take a moment: `step` gives its argument, `nap` sleeps for as many milliseconds.
fn handlers(calls: &Calls) -> Handlers {
    let counted = |name: &'static str, calls: Calls| {
        let turn = Arc::new(AtomicU64::new(0));
        Arc::new(move |args: Vec<(Name, Data)>| {
            let Some((_, Data::Num(n))) = args.first().cloned() else { panic!("a number") };
            *calls.lock().unwrap().entry(format!("{name} {n}")).or_default() += 1;
            let wait = match name {
                "nap" => n.to_i64().unwrap().cast_unsigned(),
                _ => turn.fetch_add(7, Ordering::SeqCst) % 4,
            };
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(wait)).await;
                Ok(Data::Num(n))
            }) as runtime::BoxFuture<Result<Data, String>>
        })
    };
    let mut tools = Tools::new(&Environment::default());
    for name in ["step", "nap"] {
        tools = tools.with_custom(name, counted(name, calls.clone()));
    }
    Handlers { tools, ..Handlers::new(Models::only(Arc::new(Scripted::parse("[]").unwrap()))) }
}

fn machine(program: &str) -> Machine {
    let (module, found) = agentlang::check(AT.file, program);
    let module = module.unwrap_or_else(|| panic!("{found:?}"));
    let code = Arc::new(module.lower(module.default_entry().unwrap()).unwrap());
    Machine::new(code, Some(Data::record([])), Config::default())
}

/// Runs a program in attempts, each of which is lost after another number of events. Returns the report of
/// the last one, and the number of attempts.
async fn survived(
    program: impl Fn() -> Machine,
    calls: &Calls,
    lost_after: impl Fn(usize) -> usize,
) -> (RunReport, usize) {
    let (kept, created) = (Arc::new(Mutex::new(Kept::default())), now());
    for attempt in 0..500 {
        let over = CancellationToken::new();
        let engine = Attempt {
            kept: kept.clone(),
            created,
            left: lost_after(attempt),
            over: over.clone(),
            random: 0x9E37_79B9_7F4A_7C15 ^ ((attempt as u64 + 1) << 20),
            entered: 0,
            steps: BTreeMap::new(),
            started: HashSet::new(),
            proposed: Vec::new(),
            cursor: 0,
            timer: None,
        };
        let mut handlers = handlers(calls);
        handlers.engine = Some(EngineRun {
            engine: Arc::new(Mutex::new(engine)),
            approvers: Approvers::default(),
            lifetime: Duration::from_secs(60),
            unfinished: Unfinished::Retry,
        });
        let (limits, cancel) = (Limits::default(), CancellationToken::new());
        let mut events = |_: Event| {};
        let run = runtime::run(program(), &handlers, &limits, &cancel, &mut events);
        tokio::select! {
            report = run => return (report, attempt + 1),
            () = over.cancelled() => {}
        }
    }
    panic!("it does not end");
}

fn result(report: &RunReport) -> String {
    report.result.as_ref().unwrap().data().unwrap().to_json().to_string()
}

/// `tool[step] {n}`, of a tool that writes.
fn step(b: &mut Builder, n: i64) -> TermId {
    let tool = decl("step", &[("n", Type::Num)], Type::Num, None);
    assert_eq!(tool.effect, EffectClass::Write);
    call(b, tool, vec![("n".into(), Data::Num(Num::from(n)))])
}

/// Three branches, each with two steps one after the other, and two beside each other.
fn branches() -> Machine {
    machine_of(|b| {
        let all = par(b, None, 3, |b, i| {
            let n = 10 * (i as i64 + 1);
            let items = vec![step(b, n), step(b, n + 1), par(b, None, 2, |b, k| step(b, n + 2 + k as i64))];
            b.add(Term::List(items), AT)
        });
        let last = step(b, 50);
        b.add(Term::List(vec![all, last]), AT)
    })
}

#[tokio::test]
async fn attempts_enter_the_same_steps_wherever_one_is_lost() {
    let expected = "[[[10,11,[12,13]],[20,21,[22,23]],[30,31,[32,33]]],50]";
    let calls = Calls::default();
    let (report, attempts) = survived(branches, &calls, |_| usize::MAX).await;
    assert_eq!((result(&report).as_str(), attempts), (expected, 1));
    assert!(calls.lock().unwrap().len() == 13 && calls.lock().unwrap().values().all(|n| *n == 1));
    for (seed, most) in [(0, 1), (1, 3), (2, 7), (3, 12), (4, 20)] {
        let calls = Calls::default();
        let (report, attempts) = survived(branches, &calls, |n| 1 + (n * 5 + seed) % most + n / 3).await;
        assert_eq!(result(&report), expected);
        assert_eq!(report.usage.tool_calls, 13);
        assert!(attempts > 2, "{attempts}");
    }
}

#[tokio::test]
async fn a_call_that_was_answered_is_not_made_again() {
    let program = "tool step(n: Number) -> Number writes {}\npipeline main() -> List[Number] {\n  \
                   let a = run step with { n: 1 };\n  let b = run step with { n: 2 };\n  return [a, b];\n}\n";
    let calls = Calls::default();
    // Begin, answer, and the process is lost; then the same for the second call.
    let (report, attempts) = survived(|| machine(program), &calls, |_| 2).await;
    assert_eq!((result(&report).as_str(), attempts), ("[1,2]", 3));
    assert!(calls.lock().unwrap().values().all(|n| *n == 1), "{calls:?}");
}

#[tokio::test]
async fn limits_of_time_are_those_of_the_run() {
    let program = "tool nap(n: Number) -> Number {}\npipeline main() -> Number {\n  \
                   let a = run nap with { n: 10 } timeout 5;\n  let b = run nap with { n: 60000 } timeout 0.2;\n  \
                   return a + b;\n}\n";
    for lost_after in [usize::MAX, 1, 2, 3] {
        let calls = Calls::default();
        // The call that is late is begun once at most in each attempt, and ends the run with the same error.
        let (report, _) =
            survived(|| machine(program), &calls, |n| if n < 6 { lost_after } else { usize::MAX }).await;
        let failure = report.result.unwrap_err();
        assert_eq!(failure.code, ErrorCode::Timeout, "{failure:?}");
    }
}
