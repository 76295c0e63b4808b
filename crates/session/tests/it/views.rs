//! A caller's view of a run depends on nothing above its clearance. The tests compare pairs of runs on inputs
//! that the caller must not distinguish, carried out by the runtime and seen through [`session::view::View`].
//!
//! `VIEW_PAIRS` says how many pairs are run (4,000 if not said), `VIEW_FROM` the number of the first.

use core_ir::{Data, LabelSpec, Lattice};
use machine::Reply;
use runtime::{
    Answer, Approver, CancellationToken, CustomTool, Event, Finish, Handlers, Journal, JournalPlace, Limits,
    ModelCall, ModelError, Models, POLICY_TEXT, Price, Progress, Provider, RunIdentity, RunReport, Tokens,
    Work,
};
use serde_json::{Value as Json, json};
use session::bound::Pricing;
use session::events::{Detail, event_json};
use session::kept::{self, KeptRun, Reader};
use session::view::{View, withheld};
use std::sync::{Arc, Mutex};
use testkit::generate::{Program, Script};
use testkit::secrets::{Pair, pair};
use testkit::world::{self, Call, World};

/// A world whose answers depend on nothing but what it is asked.
struct Answering(Arc<Program>);

impl Answering {
    fn answer(&self, call: &Call) -> world::Answer {
        Script::new(&self.0).forgetful().answer(call)
    }
}

impl Provider for Answering {
    fn name(&self) -> &str {
        "generated"
    }

    fn stands_in(&self) -> bool {
        true
    }

    fn price(&self) -> Option<Price> {
        None
    }

    fn may_block(&self) -> bool {
        false
    }

    fn ask(self: Arc<Self>, call: ModelCall, _: Progress) -> Work<Answer> {
        let messages: Vec<_> = call.messages.iter().map(|m| (m.role, m.content.to_string())).collect();
        let input = messages.iter().map(|m| m.1.len()).sum::<usize>() as u64;
        let tools = call.tools.iter().map(|t| t.name.clone()).collect();
        let result = match self.answer(&Call::Model { messages, params: call.params.clone(), tools }) {
            world::Answer::Text(text) => Ok(Reply::Text(text)),
            world::Answer::ToolCall(name, args) => Ok(Reply::ToolCall { name, args }),
            world::Answer::ToolCalls(calls) => Ok(Reply::ToolCalls(calls)),
            failed => Err(ModelError::new(format!("{failed:?}"))),
        };
        let output = format!("{result:?}").len() as u64;
        Work::Now(Answer {
            result,
            tokens: Tokens::new(input, output),
            finish: Finish::Stop,
            by: None,
            words: None,
        })
    }
}

/// The handlers of one of the two runs. They keep what the program's stores hold during the run. A tool whose
/// results are labeled above the secrets is a part of the secret: it answers otherwise in the other run.
fn handlers(pair: &Pair, program: &Arc<Program>, which: usize) -> Handlers {
    let world = Arc::new(Answering(program.clone()));
    let other = Program { seed: program.seed ^ which as u64, ..(**program).clone() };
    let secret_world = Arc::new(Answering(Arc::new(other)));
    let mut lattice = Lattice::new(program.lattice);
    let secret = lattice.label_of(&pair.secret).unwrap();
    let mut handlers = Handlers::new(Models::only(world.clone()));
    for tool in &program.tools {
        let label = lattice.resolve(&tool.label).unwrap();
        let world = if lattice.flows(secret, label) { &secret_world } else { &world };
        let (world, name) = (world.clone(), tool.name.clone());
        let does: CustomTool = Arc::new(move |args| {
            let answer = match world.answer(&Call::Tool { name: name.clone(), args }) {
                world::Answer::Data(data) | world::Answer::Labeled(data, _) => Ok(data),
                failed => Err(format!("{failed:?}")),
            };
            Box::pin(async { answer })
        });
        handlers.tools = handlers.tools.with_custom(tool.name.clone(), does);
    }
    handlers.approver = Some(Approver::new(move |approval| {
        let args = approval.args.into_iter().map(|a| (a.name, a.value)).collect();
        let verdict = match world.answer(&Call::Approve { name: approval.tool, args }) {
            world::Answer::Approved(verdict) => verdict,
            other => Err(format!("{other:?}")),
        };
        Box::pin(async { verdict })
    }));
    handlers.run = Some("run".into());
    handlers.seed = program.seed;
    handlers
}

async fn run(pair: &Pair, program: &Arc<Program>, which: usize) -> (Vec<Event>, RunReport) {
    let input = Some(pair.inputs[which].clone());
    let machine = machine::Machine::new(pair.program.code(), input, pair.config(program));
    let mut events = Vec::new();
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let report =
        runtime::run(machine, &handlers(pair, program, which), &limits, &cancel, &mut |e| events.push(e))
            .await;
    (events, report)
}

/// Returns the view of a caller with a clearance: the events without their times, and the outcome.
fn shown(
    pair: &Pair,
    program: &Arc<Program>,
    clearance: &Data,
    run: &(Vec<Event>, RunReport),
) -> (Vec<Json>, Json) {
    let mut view = View::new(&pair.config(program), &[&LabelSpec::Exact(clearance.clone())]);
    let mut events = Vec::new();
    for event in &run.0 {
        let Some(mut json) = view.event(event).and_then(|e| event_json(&e, Detail::Content)) else {
            continue;
        };
        json.as_object_mut().unwrap().remove("ms");
        events.push(json);
    }
    let outcome = match view.outcome(&run.1) {
        None => withheld(&run.1.run),
        Some(report) => {
            let ended = match &report.result {
                Ok(value) => value.to_string(),
                Err(f) => format!("{}: {}", f.code.as_str(), f.message),
            };
            json!({
                "ended": ended,
                "failed": report.result.is_err(),
                "label": report.label.to_json(),
                "usage": format!("{:?}", report.usage),
            })
        }
    };
    (events, outcome)
}

fn number(variable: &str, usually: u64) -> u64 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(usually)
}

#[tokio::test]
async fn views_of_two_worlds_are_the_same() {
    let (pairs, from) = (number("VIEW_PAIRS", 4_000), number("VIEW_FROM", 0));
    let (mut compared, mut events, mut withheld_events, mut ended) = (0, 0, 0, 0);
    for seed in from..from + pairs {
        let pair = pair(seed);
        // Branches ask as they come: a caller may see their order.
        if pair.program.is_parallel() {
            continue;
        }
        let program = Arc::new(pair.program.clone());
        let runs = [run(&pair, &program, 0).await, run(&pair, &program, 1).await];
        for clearance in pair.observers() {
            let [(a, one), (b, other)] = [&runs[0], &runs[1]].map(|r| shown(&pair, &program, &clearance, r));
            let hidden = withheld("run");
            // A run whose end is withheld may stop anywhere, but until then the caller has seen the same.
            let same = match (one == hidden, other == hidden) {
                (false, false) => a == b && one == other,
                (one, other) => one && b.starts_with(&a) || other && a.starts_with(&b),
            };
            assert!(
                same,
                "pair {seed} leaks to {}: {}\n{one}\n{}\n{other}\n{pair:?}",
                clearance.to_json(),
                Json::from(a),
                Json::from(b)
            );
            compared += 1;
            events += a.len();
            withheld_events += runs[0].0.len() - a.len() + usize::from(one == hidden);
            ended += usize::from(one != hidden && other != hidden);
        }
    }
    eprintln!(
        "{compared} views of {pairs} pairs: {events} events shown, {withheld_events} withheld, {ended} outcomes shown twice"
    );
    assert!(compared > 0 && events > 0 && withheld_events > 0 && ended > compared / 4);
}

/// Runs one of the two worlds with a journal, and reads the run from there. `None` for a program that uses
/// functions of the generator, which are not those of the prelude.
async fn kept(pair: &Pair, program: &Arc<Program>, which: usize, place: &JournalPlace) -> Option<KeptRun> {
    let code = pair.program.code();
    let input = Some(pair.inputs[which].clone());
    let mut about = RunIdentity::new(
        "generated main",
        &code,
        input.clone(),
        json!({"seed": program.seed, POLICY_TEXT: null}),
    );
    about.kept = kept::program(&code, None, &diagnostics::Sources::new());
    let session = Journal::open(place).unwrap().begin(&about, &Default::default()).unwrap();
    let mut handlers = handlers(pair, program, which);
    let run = session.id().to_string();
    handlers.journal = Some(Arc::new(Mutex::new(session)));
    let machine = machine::Machine::new(code, input, pair.config(program));
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    runtime::run(machine, &handlers, &limits, &cancel, &mut |_| {}).await;
    drop(handlers);
    let mut kept = match KeptRun::open(place, &run) {
        Err(e) if e.message.contains("unknown variable") => return None,
        kept => kept.unwrap().unwrap(),
    };
    // Generated programs have no policy file, in which this would stand.
    let explain_flow = kept.config.explain_flow;
    kept.config = machine::Config { explain_flow, ..pair.config(program) };
    Some(kept)
}

/// Number of requests among the lines of a trace.
fn requests(lines: &[Json]) -> usize {
    lines.iter().filter(|line| line["event"] == "request").count()
}

/// A page for a reader has the same bytes for two runs that the reader must not distinguish: neither a secret
/// nor a length or a number of secrets is in it.
#[tokio::test]
async fn pages_for_a_reader_of_two_worlds_are_the_same() {
    let (pairs, from) = (number("PAGE_PAIRS", 150), number("VIEW_FROM", 0));
    let dir = tempfile::tempdir().unwrap();
    let place = JournalPlace::Directory(dir.path().join("j"));
    let (mut compared, mut lines, mut left_out, mut begun) = (0, 0, 0, 0);
    for seed in from..from + pairs {
        let pair = pair(seed);
        if pair.program.is_parallel() {
            continue;
        }
        let program = Arc::new(pair.program.clone());
        let runs = (kept(&pair, &program, 0, &place).await, kept(&pair, &program, 1, &place).await);
        let (Some(one), Some(other)) = runs else { continue };
        let runs = [one, other];
        let bound = Pricing::default().bound(&runs[0].code, true);
        let whole = runs[0].document(&place, &bound, None).unwrap().lines;
        let certain = runs[0].first_lines(&place, usize::MAX).unwrap();
        assert_eq!(requests(&certain), requests(&whole));
        for count in [1, 2, 5, usize::MAX] {
            let first = runs[0].first_lines(&place, count).unwrap();
            assert!(whole.starts_with(&first), "pair {seed}: {first:#?}\nare not the first of\n{whole:#?}");
            assert!(first.len() >= count.min(certain.len()), "pair {seed}: {} of {count}", first.len());
            begun += usize::from(first.len() < certain.len());
        }
        for clearance in pair.observers() {
            let reader = Reader { name: "reader".into(), clearance: LabelSpec::Exact(clearance.clone()) };
            let page = |run: &KeptRun| {
                let document = run.document(&place, &bound, Some(&reader)).unwrap();
                let mut about = document.about;
                // The name of a run is chance.
                about["run"] = Json::Null;
                let mut lines: Vec<String> = document.lines.iter().map(Json::to_string).collect();
                let end = lines.pop().unwrap();
                let is_withheld = document.lines.last().unwrap()["error"]["code"] == session::view::WITHHELD;
                (about.to_string(), lines, end, is_withheld)
            };
            let (a, b) = (page(&runs[0]), page(&runs[1]));
            assert_eq!(a.0, b.0);
            let same = match (a.3, b.3) {
                (false, false) => a.1 == b.1 && a.2 == b.2,
                (one, other) => one && b.1.starts_with(&a.1) || other && a.1.starts_with(&b.1),
            };
            assert!(same, "pair {seed} leaks to {}:\n{a:?}\n{b:?}\n{pair:?}", clearance.to_json());
            let all = requests(&whole);
            let shown = a.1.iter().filter(|line| line.starts_with(r#"{"event":"request""#)).count();
            compared += 1;
            lines += a.1.len();
            left_out += usize::from(shown < all);
        }
    }
    eprintln!("{compared} pages of {pairs} pairs: {lines} lines shown, {left_out} pages leave requests out");
    assert!(compared > 0 && lines > compared && left_out > 0 && left_out < compared && begun > 0);
}
