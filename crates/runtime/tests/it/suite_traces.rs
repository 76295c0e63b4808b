//! Programs of `suite/agent` write exactly the traces stored beside them.
//!
//! `NAME.N.trace.jsonl` is the trace of the `N`-th `// Run:` of `NAME.agent`. `BLESS=1` writes those that are
//! there anew, to be read before they are committed; an empty file asks for one.

#[path = "../../../agentlang/tests/it/suite/mod.rs"]
#[allow(dead_code, reason = "the checks of the folder are those of agentlang")]
mod suite;

use core_ir::Data;
use machine::{Config, Machine};
use runtime::trace::{Head, Recorder, TraceStream};
use runtime::{
    Answer, CancellationToken, Environment, Event, Handlers, Limits, ModelCall, Models, Price, Progress,
    Provider, Redactor, Tokens, Tools, Work,
};
use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use suite::{Files, Run, Turn, found_at, programs, runs};

/// Answers of the world, in the order of the requests.
#[derive(Clone)]
struct World(Arc<Mutex<VecDeque<Turn>>>);

impl World {
    /// Returns the next answer of a tool or of the model. The runs here make requests in the order of their
    /// lines.
    fn next(&self, asked: &str) -> Option<Turn> {
        let mut turns = self.0.lock().unwrap();
        turns.pop_front_if(|t| match t {
            Turn::Model(_) => asked == "model",
            Turn::Tool { name, .. } => name == asked,
            Turn::Late(what) => what == asked,
            _ => false,
        })
    }
}

impl Provider for World {
    fn name(&self) -> &str {
        "suite"
    }

    fn price(&self) -> Option<Price> {
        None
    }

    fn ask(self: Arc<Self>, call: ModelCall, _: Progress) -> Work<Answer> {
        match self.next("model") {
            Some(Turn::Model(reply)) => {
                let tokens = Tokens::new(call.messages.len() as u64, 1);
                Work::Now(Answer::new(Ok(reply), tokens))
            }
            Some(_) => Work::Later(Box::pin(std::future::pending())),
            None => panic!("the model is asked {:?}", call.messages),
        }
    }
}

/// The trace of a run, a line for each event.
async fn trace(path: &str, text: &str, run: &Run) -> String {
    let (sources, module, _) = found_at(path, text, Files::default());
    let module = module.unwrap();
    let code = module.lower(run.entry(&module).unwrap()).unwrap();
    let world = World(Arc::new(Mutex::new(run.turns.clone())));
    let mut tools = Tools::new(&Environment::default());
    for tool in &code.tools {
        let (name, world) = (tool.name.clone(), world.clone());
        tools = tools.with_custom(
            tool.name.clone(),
            Arc::new(move |args| {
                let turn = world.next(&name);
                let name = name.clone();
                Box::pin(async move {
                    match turn {
                        Some(Turn::Tool { result, args: wanted, .. }) => {
                            let args = Data::record(args).to_json();
                            assert!(wanted.is_none_or(|w| w == args), "`{name}` is called with {args}");
                            result
                        }
                        // The clock is paused: it goes on at once to the time limit of the request.
                        Some(_) => std::future::pending().await,
                        None => panic!("`{name}` is called with {args:?}"),
                    }
                })
            }),
        );
    }
    let handlers = Handlers { tools, ..Handlers::new(Models::only(Arc::new(world.clone()))) };
    let machine = Machine::new(code.into(), Some(run.input.clone()), Config::default());
    let head = Head { program: path.into(), entry: run.target.clone(), input: Some(run.input.clone()) };
    let mut recorder = Recorder::new();
    let records = Redactor::default();
    let (mut stream, first) = TraceStream::begin(&head, &records);
    let (mut streamed, mut answered) = (vec![first], 0);
    let cancel = CancellationToken::new();
    let mut note = |event: Event| {
        recorder.note(&event);
        streamed.extend(stream.note(&event, &sources, &records));
        answered += usize::from(matches!(event, Event::Answered { .. }));
        if !text.contains("parallel") && !text.contains("race") {
            // Where one request follows the other, each answer is told at once.
            let told = streamed.iter().filter(|l| l["event"] == "response").count();
            assert_eq!(told, answered, "{path}:{}", run.line);
        }
    };
    let report = runtime::run(machine, &handlers, &Limits::default(), &cancel, &mut note).await;
    assert!(world.0.lock().unwrap().is_empty(), "{path}:{}: not all is asked", run.line);
    let lines = recorder.lines(&head, &sources, &report);
    streamed.extend(stream.end(&sources, &report));
    assert_eq!(streamed, lines, "{path}:{}: a trace that is written while the run goes on", run.line);
    lines.iter().map(|l| format!("{l}\n")).collect()
}

#[tokio::test(start_paused = true)]
async fn programs_leave_the_traces_beside_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bless = std::env::var_os("BLESS").is_some();
    let mut all: Vec<PathBuf> = Vec::new();
    programs(&root.join("suite/agent"), "jsonl", &mut all);
    // The others are data sets of tests.
    all.retain(|file| file.to_string_lossy().ends_with(".trace.jsonl"));
    let (mut wrong, mut shown, mut phases) = (String::new(), BTreeSet::new(), BTreeSet::new());
    for file in all {
        let name = file.display().to_string();
        let named = name.strip_suffix(".trace.jsonl").and_then(|n| n.rsplit_once('.'));
        let (program, number) = named.unwrap_or_else(|| panic!("{name} has no number"));
        let (program, number) = (format!("{program}.agent"), number.parse::<usize>().unwrap());
        let text = std::fs::read_to_string(&program).unwrap();
        let runs = runs(&text);
        let run = runs.get(number - 1).unwrap_or_else(|| panic!("{name}: there are {} runs", runs.len()));
        let relative = Path::new(&program).strip_prefix(&root).unwrap().display().to_string();
        let found = trace(&relative, &text, run).await;
        let expected = std::fs::read_to_string(&file).unwrap();
        if bless {
            std::fs::write(&file, &found).unwrap();
        } else if found != expected {
            let at = found.lines().zip(expected.lines()).take_while(|(a, b)| a == b).count();
            let [f, e] = [&found, &expected].map(|t| t.lines().nth(at).unwrap_or("nothing").to_string());
            wrong += &format!("{name}:{}\nexpected {e}\n   found {f}\n", at + 1);
        }
        shown.insert(relative.split('/').nth(2).unwrap().to_string());
        phases.extend(
            runtime::trace::PHASES.into_iter().filter(|p| found.contains(&format!("\"phase\":\"{p}\""))),
        );
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    for construct in ["agents", "clauses", "parallel", "run", "tasks", "test", "try"] {
        assert!(shown.contains(construct), "no trace of `{construct}`");
    }
    assert_eq!(phases.len(), runtime::trace::PHASES.len());
}
