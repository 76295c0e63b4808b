//! Sessions of generated assistants under generated policies.

#[allow(clippy::disallowed_methods, reason = "the guide is read")]
mod attacks;
#[allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the suite is read, and the table printed"
)]
mod benign;
mod drive;
mod equal;
mod gateway;
mod handles;
mod idle;
mod memory;
mod noninterference;
mod proxy;
mod rules;

use core_ir::Data;
use diagnostics::FileId;
use guard::{Decision, Outcome, Session, SessionOptions, ToolSpec};
use policy::Policy;
use proptest::prelude::*;
use std::sync::Arc;

/// The tools of generated sessions.
const TOOLS: [&str; 4] = ["alpha", "beta", "gamma", "delta"];

/// The labels of the two-axis lattice in the words of a policy.
const WORDS: [&str; 4] = ["trusted", "untrusted", "secret", "any"];

/// Table of a tool in a generated policy: indices into [`WORDS`].
#[derive(Clone, Debug)]
struct Says {
    control: usize,
    to: usize,
    body: usize,
    result: usize,
    /// Label of the field `body` of its result, if it has one of its own.
    part: Option<usize>,
    approve: usize,
    at_most: Option<u8>,
}

fn says() -> impl Strategy<Value = Says> {
    let label = || prop_oneof![2 => Just(0usize), 2 => 0..4usize, 2 => Just(3usize)];
    let part = prop::option::weighted(0.3, 0..4usize);
    let (approve, at_most) =
        (prop_oneof![6 => Just(0usize), 1 => 1..3usize], prop::option::weighted(0.1, 1..4u8));
    (label(), label(), label(), prop_oneof![Just(0usize), 0..4usize], part, approve, at_most).prop_map(
        |(control, to, body, result, part, approve, at_most)| {
            // A part is not below what it is in.
            let part = part.map(|p| p | result);
            Says { control, to, body, result, part, approve, at_most }
        },
    )
}

fn policy(all: &[Says], clearance: usize) -> Arc<Policy> {
    let mut text = format!("[models.\"*\"]\nclearance = \"{}\"\n", WORDS[clearance]);
    for (name, s) in TOOLS.iter().zip(all) {
        let word = |i: usize| WORDS[i];
        text += &format!(
            "[tools.{name}]\neffect = \"write\"\ncontrol = \"{}\"\nbounds = {{ to = \"{}\", body = \"{}\" }}\nresult = \"{}\"\n",
            word(s.control),
            word(s.to),
            word(s.body),
            word(s.result)
        );
        if let Some(part) = s.part {
            text += &format!("fields = {{ body = \"{}\" }}\n", word(part));
        }
        text += ["", "approve = true\n", "approve = \"if-refused\"\n"][s.approve];
        if let Some(most) = s.at_most {
            text += &format!("at_most = {most}\n");
        }
    }
    Policy::parse(FileId(0), &text).unwrap_or_else(|e| panic!("{text}\n{e:?}")).into()
}

fn session(policy: &Arc<Policy>) -> Session {
    let mut session = Session::new(policy.clone(), &SessionOptions::default());
    session.offer(TOOLS.map(|name| ToolSpec::new(name, ["to", "body"])));
    assert!(session.problems().is_empty(), "{:?}", session.problems());
    session
}

/// A number from a text, the same every time.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

/// The next call of a model that has seen this: any function of it will do.
fn next_call(seed: u64, seen: &[String]) -> (&'static str, Data) {
    let h = hash(&format!("{seed}|{}", seen.join("|")));
    let tool = TOOLS[(h % 4) as usize];
    let text = |n: u64| Data::str(format!("{:x}", (h >> n) & 0xff));
    (tool, Data::record([("to".into(), text(8)), ("body".into(), text(16))]))
}

/// The answer of a world: `hidden` is what only its secret or untrusted results depend on.
fn answer(
    says: &[Says],
    tool: &str,
    args: &Data,
    high: &dyn Fn(usize) -> bool,
    hidden: u64,
) -> Result<Data, String> {
    let at = TOOLS.iter().position(|t| *t == tool).unwrap();
    let s = &says[at];
    let h = |salt: u64| hash(&format!("{tool}{}{salt}", args.to_json()));
    let whole = if high(s.result) { h(hidden) } else { h(0) };
    let body = if high(s.part.unwrap_or(s.result)) { h(hidden + 1) } else { h(1) };
    match whole % 8 {
        // A failure may quote all parts.
        0 => Err(format!("failed: {whole:x} {body:x}")),
        _ => Ok(Data::record([
            ("id".into(), Data::str(format!("{whole:x}"))),
            ("body".into(), Data::str(format!("{body:x}"))),
        ])),
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
enum Event {
    /// The tool was called.
    Called(&'static str, Data),
    /// It was not.
    Refused(String),
}

/// One step of a session: what happened, and what the client is shown.
fn step(
    session: &mut Session,
    (tool, args): (&'static str, Data),
    world: &mut dyn FnMut(&str, &Data) -> Result<Data, String>,
) -> (Event, String) {
    let mut decision = session.call(tool, &args);
    if let Decision::Asks(question) = decision {
        decision = session.unattended(question);
    }
    match decision {
        Decision::Allowed(allowed) => {
            let result = world(tool, &args);
            let shown = match &result {
                Ok(data) => data.to_json().to_string(),
                Err(why) => why.clone(),
            };
            let shown = match session.finish(allowed, result, None) {
                Outcome::Delivered => shown,
                Outcome::Withheld(refused) => format!("withheld: {}", refused.message),
            };
            (Event::Called(tool, args), shown)
        }
        Decision::Refused(refused) => (Event::Refused(refused.message.clone()), refused.to_string()),
        Decision::Asks(_) | Decision::Reads(_) => panic!("asked again"),
    }
}
