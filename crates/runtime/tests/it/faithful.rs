//! The faithfulness tests of seed 000 §7.4 on a real model: `suite/lam/faithful/embedded.lam`, on the
//! embedded one.
//!
//! A file is a title, definitions that all its cases share, and cases: `--- name`, a program, and `= value`
//! or `! error` for the right result. Two things are told apart. A run is **faithful** if it is what the
//! semantics gives for the replies that came: the naive evaluator is given the same replies, and must ask the
//! same and end the same; no bound is exceeded. That must hold for every case, whatever a model says. A
//! result is **right** if it is the stated one. That is a matter of the model, so it is counted and printed,
//! and no test. Nothing depends on time.
//!
//! Where the model is not installed nothing is run, and that is said.
#![cfg(feature = "local")]

use core_ir::{AnswerSink, Code, LabelSpec, LatticeKind};
use diagnostics::Sources;
use machine::{Message, Reply};
use runtime::{Environment, ModelCall, ModelSettings, Models, Progress, Provider, Work};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use testkit::drive::{self, Order};
use testkit::naive;
use testkit::world::{Answer, Call, World};

struct Case {
    name: String,
    program: String,
    right: Result<String, String>,
}

fn cases_of(text: &str) -> Vec<Case> {
    let mut parts = text.split("\n--- ");
    let shared = parts.next().unwrap_or_default();
    parts
        .map(|part| {
            let (name, rest) = part.split_once('\n').unwrap();
            let mut case =
                Case { name: name.into(), program: format!("{shared}\n"), right: Err("nothing".into()) };
            for line in rest.lines() {
                if let Some(value) = line.strip_prefix("= ") {
                    case.right = Ok(value.into());
                } else if let Some(code) = line.strip_prefix("! ") {
                    case.right = Err(code.into());
                } else {
                    case.program.push_str(line);
                    case.program.push('\n');
                }
            }
            case
        })
        .collect()
}

/// A real model, whose replies are kept.
struct Real<'a> {
    model: &'a Arc<dyn Provider>,
    runtime: &'a tokio::runtime::Runtime,
    replies: Vec<Answer>,
}

impl World for Real<'_> {
    fn answer(&mut self, call: &Call) -> Answer {
        let Call::Model { messages, params, .. } = call else { panic!("only models are asked: {call:?}") };
        let message = |(role, content): &(core_ir::Role, String)| Message {
            role: *role,
            content: content.as_str().into(),
            call: None,
        };
        let call = ModelCall {
            messages: messages.iter().map(message).collect(),
            params: params.clone(),
            tools: Vec::new(),
            max_output: None,
            attempt: 0,
            place: Arc::default(),
            said: Arc::default(),
        };
        let answer = match self.model.clone().ask(call, Progress::none()) {
            Work::Now(answer) => answer,
            Work::Later(answer) => self.runtime.block_on(answer),
        };
        let answer = match answer.result {
            Ok(Reply::Text(text)) => Answer::Text(text),
            Ok(other) => panic!("no tool was offered: {other:?}"),
            Err(e) => Answer::Failed(e.to_string()),
        };
        self.replies.push(answer.clone());
        answer
    }
}

/// The replies that came, in order.
struct Again(VecDeque<Answer>);

impl World for Again {
    fn answer(&mut self, _: &Call) -> Answer {
        self.0.pop_front().unwrap_or(Answer::Failed("nothing is left to say".into()))
    }
}

fn compile(program: &str) -> Arc<Code> {
    let mut sources = Sources::new();
    let file = sources.add("case.lam", program);
    let compiled = agentlang::calculus::compile(file, program);
    Arc::new(compiled.code.unwrap_or_else(|| panic!("{program}\n{:?}", compiled.diagnostics)))
}

#[test]
fn the_embedded_model_is_asked_as_the_semantics_says() {
    let model = match Models::new(ModelSettings::default(), Environment::default()) {
        Ok(models) => match models.resolve(Some("local")) {
            Ok(model) => model,
            Err(_) => return eprintln!("SKIPPED: the embedded model is not installed"),
        },
        Err(_) => return eprintln!("SKIPPED: the embedded model is not installed"),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/lam/faithful/embedded.lam");
    let cases = cases_of(&std::fs::read_to_string(path).unwrap());
    assert!(cases.len() >= 40);
    let (mut right, mut unfaithful) = (0, Vec::new());
    for case in &cases {
        let code = compile(&case.program);
        let mut real = Real { model: &model, runtime: &runtime, replies: Vec::new() };
        let machine = drive::run(&code, None, machine::Config::default(), &mut real, Order::AtOnce);
        let mut again = Again(real.replies.iter().cloned().collect());
        let config = naive::Config {
            lattice: LatticeKind::default(),
            principals: core_ir::Principals::default(),
            fuel: 100_000,
            max_text: 1 << 16,
            clearance: LabelSpec::TOP,
            generated_endorse: false,
            parser: &|_| Err("no code is received".into()),
            answer: AnswerSink::default(),
        };
        let predicted = naive::run(&code, None, &config, &mut again);
        let found = machine.result.as_ref().map(ToString::to_string).map_err(|e| e.code.to_string());
        let expected = predicted.result.as_ref().map(ToString::to_string).map_err(|e| e.code.to_string());
        if found != expected || machine.requests != predicted.requests || !again.0.is_empty() {
            unfaithful.push(format!("{}: {found:?}, predicted {expected:?}", case.name));
        }
        let most = analysis::cost::bound(&code, false).model_calls.most;
        if most.is_none_or(|most| real.replies.len() as u64 > most) {
            unfaithful.push(format!("{}: {} calls of {most:?}", case.name, real.replies.len()));
        }
        let is_right = found == case.right;
        right += usize::from(is_right);
        let verdict = if is_right { "right" } else { "wrong" };
        println!("{verdict}  {}: {}", case.name, found.unwrap_or_else(|e| format!("error `{e}`")));
    }
    println!(
        "{right} of {} right on the embedded model; faithful: {}",
        cases.len(),
        cases.len() - unfaithful.len()
    );
    assert!(unfaithful.is_empty(), "{}", unfaithful.join("\n"));
}
