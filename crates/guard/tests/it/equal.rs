//! A session decides as the machine does on the whole program: the loop of an agent with these tools.

use crate::{Event, Says, TOOLS, answer, next_call, policy, says, session, step};
use core_ir::{
    Bound, Branch, Builder, Code, Data, Globals, LabelSpec, ModelParams, Name, Recv, Role, Term, ToolDecl,
    ToolParam, Type,
};
use diagnostics::{FileId, Span};
use machine::{Call, Config, Failure, Machine, Output, Reply, Response};
use policy::Policy;
use proptest::prelude::*;
use std::sync::Arc;

/// `(fix[∞] λself. λu. let t = recv[θ] in let r = case t of {f a ⇒ tool[f] a, …} in let _ = send r in self
/// null) null`.
fn agent(policy: &Policy) -> Code {
    let at = Span { file: FileId(0), start: 0, end: 0 };
    let mut b = Builder::new();
    let mut branches = Vec::new();
    let mut tools = Vec::new();
    for name in TOOLS {
        let param =
            |n: &str| ToolParam { name: n.into(), ty: Type::Dyn, bound: LabelSpec::BOTTOM, default: None };
        let params = vec![param("to"), param("body")];
        let id = b.tool(ToolDecl { params, ..ToolDecl::unknown(name.into(), at) });
        tools.push(id);
        let (function, args) = (b.add(Term::Tool(id), at), b.var("a", at));
        let body = b.app(function, args, at);
        branches.push(Branch { tag: name.into(), binder: Some("a".into()), body });
    }
    let params = ModelParams { tools, ..ModelParams::default() };
    let reply = b.add(Term::Recv(Recv::Data(Arc::new(params))), at);
    let scrutinee = b.var("t", at);
    let called = b.add(Term::Case { scrutinee, branches, default: None }, at);
    let result = b.var("r", at);
    let said = b.add(Term::Send(Role::Tool, result), at);
    let (this, null) = (b.var("self", at), b.lit(Data::Null, at));
    let again = b.app(this, null, at);
    let bindings = vec![("t".into(), reply), ("r".into(), called), ("_".into(), said)];
    let body = b.let_in(bindings, again, at);
    let body = b.abs("u", None, body, at);
    let body = b.abs("self", None, body, at);
    let fix = b.add(Term::Fix { bound: Bound::Infinite, body, origin: None }, at);
    let null = b.lit(Data::Null, at);
    let root = b.app(fix, null, at);
    let mut code = b.finish(root, &Globals::none()).unwrap();
    assert!(policy.apply(&mut code).is_empty());
    code
}

/// The run of the program with the same model and world, until it ends or has had this number of replies.
fn whole_run(
    policy: &Policy,
    says: &[Says],
    seed: u64,
    most: usize,
) -> (Vec<Event>, Vec<String>, Option<Failure>) {
    let config = Config {
        lattice: policy.lattice,
        principals: policy.principals.clone(),
        clearance: policy.clearance.clone(),
        request: Some("".into()),
        ..Config::default()
    };
    let mut machine = Machine::new(agent(policy).into(), None, config);
    let (mut events, mut labels, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        match machine.poll() {
            Output::Working => {}
            Output::Waiting => panic!("every request is answered"),
            Output::Done(result) => return (events, labels, result.err()),
            Output::Request(id, request) => {
                let response = match request.call {
                    Call::Model { .. } => {
                        labels.push(machine.lattice().show(request.channel));
                        if labels.len() > most {
                            return (events, labels, None);
                        }
                        let (name, args) = next_call(seed, &shown);
                        Response::Model(Ok(Reply::ToolCall { name: Name::from(name), args }))
                    }
                    Call::Tool { tool, args } => {
                        let args = Data::record(args);
                        let name = TOOLS.into_iter().find(|t| *t == &*tool.name).unwrap();
                        let result = answer(says, name, &args, &|_| false, 0);
                        if let Ok(data) = &result {
                            shown.push(data.to_json().to_string());
                        }
                        events.push(Event::Called(name, args));
                        Response::Tool(result)
                    }
                    Call::Approve { .. } => Response::Unattended,
                    other => panic!("{other:?}"),
                };
                machine.handle(id, response);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Up to the first error, which ends the program and not the session.
    #[test]
    fn a_session_decides_as_the_whole_program_does(says in prop::collection::vec(says(), 4), seed: u64) {
        let policy = policy(&says, 3);
        let (calls, labels, failure) = whole_run(&policy, &says, seed, 24);
        let mut session = session(&policy);
        let (mut called, mut seen, mut shown) = (Vec::new(), Vec::new(), Vec::new());
        let mut refused = None;
        for _ in 0..24 {
            seen.push(session.label());
            let mut failed = None;
            let mut world = |tool: &str, args: &Data| {
                let result = answer(&says, tool, args, &|_| false, 0);
                failed = result.as_ref().err().cloned();
                result
            };
            let (event, said) = step(&mut session, next_call(seed, &shown), &mut world);
            match event {
                Event::Called(..) => called.push(event),
                Event::Refused(why) => failed = Some(why),
            }
            if failed.is_some() {
                refused = failed;
                break;
            }
            shown.push(said);
        }
        prop_assert_eq!(&called, &calls);
        prop_assert_eq!(&seen[..], &labels[..seen.len()]);
        match (&refused, &failure) {
            (Some(why), Some(failure)) => {
                prop_assert!(failure.message.ends_with(why.as_str()), "{} / {}", why, failure.message);
            }
            (a, b) => prop_assert_eq!(a.is_some(), b.is_some()),
        }
    }
}
