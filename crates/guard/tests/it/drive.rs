//! Operations that drivers share: keeping and joining sessions, results of earlier ones, observing.

use crate::{Event, TOOLS, answer, next_call, policy, says, session, step};
use core_ir::Data;
use diagnostics::FileId;
use guard::{Decision, Note, Outcome, Session, SessionOptions, ToolSpec};
use policy::Policy;
use proptest::prelude::*;
use serde_json::json;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Between any two calls, also where calls are counted.
    #[test]
    fn a_session_that_was_saved_and_joined_goes_on_as_before(
        says in prop::collection::vec(says(), 4),
        seed: u64,
        moves: [bool; 24],
    ) {
        let policy = policy(&says, 3);
        let (mut here, mut moved) = (session(&policy), session(&policy));
        let mut shown = [Vec::new(), Vec::new()];
        for is_moved in moves {
            if is_moved {
                let saved = moved.save();
                moved = moved.fresh();
                prop_assert_eq!(moved.label(), "[]");
                moved.join(&saved).unwrap();
            }
            let mut events = Vec::new();
            for (session, shown) in [&mut here, &mut moved].into_iter().zip(&mut shown) {
                let mut world = |tool: &str, args: &Data| answer(&says, tool, args, &|_| false, 0);
                let (event, said) = step(session, next_call(seed, shown), &mut world);
                shown.push(said);
                events.push(event);
            }
            prop_assert_eq!(&events[0], &events[1]);
            prop_assert_eq!(here.label(), moved.label());
            prop_assert_eq!(here.raised(), moved.raised());
        }
    }

    /// A session that is only told of the calls of another one, with their tools declared or not, is labeled
    /// at least as high.
    #[test]
    fn results_that_were_seen_count_as_their_tool_at_most(
        says in prop::collection::vec(says(), 4),
        seed: u64,
        declared: bool,
    ) {
        let policy = policy(&says, 3);
        let mut here = session(&policy);
        let mut told = Session::new(policy.clone(), &SessionOptions::default());
        if declared {
            told = here.fresh();
        }
        let mut shown = Vec::new();
        for _ in 0..12 {
            let mut world = |tool: &str, args: &Data| answer(&says, tool, args, &|_| false, 0);
            let (event, said) = step(&mut here, next_call(seed, &shown), &mut world);
            shown.push(said);
            match event {
                Event::Called(tool, args) => told.seen(tool, &args),
                // An error has the bound that it names: it is no result.
                Event::Refused(_) => break,
            }
            let alone = told.label();
            let mut both = told.clone();
            both.join(&here.save()).unwrap();
            prop_assert_eq!(both.label(), alone);
        }
    }
}

const POLICY: &str = r#"
[tools.fetch]
effect = "read"
[tools.contacts]
effect = "read"
result = "trusted"
[tools.vault]
effect = "read"
result = "secret"
[tools.send]
effect = "write"
control = "untrusted"
among = { to = "tools.contacts()" }
"#;

fn mail() -> Session {
    let policy = Policy::parse(FileId(0), POLICY).unwrap();
    let mut session = Session::new(policy.into(), &SessionOptions::default());
    let tools = [("fetch", "url"), ("send", "to")].map(|(name, param)| ToolSpec::new(name, [param]));
    session.offer(tools);
    session.offer([ToolSpec::new("contacts", []), ToolSpec::new("vault", [])]);
    session
}

fn to(name: &str) -> Data {
    Data::record([("to".into(), Data::str(name))])
}

/// A set is read on the way, and what it refuses is passed on as well.
#[test]
fn a_session_that_observes_makes_a_call_that_a_set_refuses() {
    let mut session = mail();
    session.seen("fetch", &Data::record([("url".into(), Data::str("x"))]));
    for round in 0..2 {
        let (mut decision, mut note) = session.decide("send", &to("mallory"), true);
        if let Decision::Reads(read) = decision {
            assert_eq!((&**read.set(), &**read.tool(), round), ("contacts", "send", 0));
            let contacts = Ok(Data::list([Data::str("bob")]));
            (decision, note) = session.decide_after(read, contacts, None, &to("mallory"), true);
        }
        assert!(matches!(note, Some(Note::WouldRefuse(_))), "{note:?}");
        let Decision::Allowed(call) = decision else { panic!("{decision:?}") };
        assert_eq!(session.conclude(call, Ok(Data::Null), None, true).0, Outcome::Delivered);
    }
    let (decision, note) = session.decide("send", &to("bob"), true);
    assert!(matches!((decision, note), (Decision::Allowed(_), None)));
}

#[test]
fn a_tool_that_was_never_declared_counts_as_the_policy_says_or_as_unknown() {
    let policy: std::sync::Arc<Policy> = Policy::parse(FileId(0), POLICY).unwrap().into();
    let label = |tool: &str, args: Data| {
        let mut session = Session::new(policy.clone(), &SessionOptions::default());
        session.seen(tool, &args);
        session.label()
    };
    assert_eq!(label("contacts", Data::record([])), "[]");
    assert_eq!(label("vault", Data::Null), r#"["S"]"#);
    assert_eq!(label("browse", to("x")), r#"["U"]"#);
    // The policy bounds a parameter that this call doesn't have: then the call is unknown as well.
    let bounded = "[tools.vault]\neffect = \"read\"\nresult = \"secret\"\nbounds = { door = \"trusted\" }\n";
    let mut session =
        Session::new(Policy::parse(FileId(0), bounded).unwrap().into(), &SessionOptions::default());
    session.seen("vault", &Data::record([]));
    assert_eq!(session.label(), r#"["U","S"]"#);
}

#[test]
fn a_text_that_no_session_saved_is_not_joined() {
    let mut session = mail();
    for wrong in [
        json!(null),
        json!({"label": ["U"]}),
        json!({"label": "?", "raised": [], "counted": {}}),
        json!({"label": ["U"], "raised": [1], "counted": {}}),
        json!({"label": ["U"], "raised": [], "counted": {"send": -1}}),
    ] {
        assert!(session.join(&wrong).is_err(), "{wrong}");
        assert_eq!(session.label(), "[]");
    }
    for tool in TOOLS {
        assert!(!session.knows(tool));
    }
}

/// A value under a key may be anyone's where nobody keeps its label.
#[test]
fn a_session_that_forgets_trusts_nothing_that_a_tool_remembers() {
    let text = "[tools.recall]\neffect = \"read\"\nresult = \"trusted\"\nreads = \"key\"\n";
    for (forgets, label) in [(false, "[]"), (true, r#"["U","S"]"#)] {
        let policy = Policy::parse(FileId(0), text).unwrap();
        let options = SessionOptions { forgets, ..SessionOptions::default() };
        let mut session = Session::new(policy.into(), &options);
        session.offer([ToolSpec::new("recall", ["key"])]);
        let key = Data::record([("key".into(), Data::str("a"))]);
        let (Decision::Allowed(call), _) = session.decide("recall", &key, false) else { panic!("refused") };
        session.conclude(call, Ok(Data::str("pay mallory")), None, false);
        assert_eq!(session.label(), label);
    }
}
