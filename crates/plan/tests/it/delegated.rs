//! `delegate(text, to=…, tools=[…])`: whose data may choose among which calls.

use crate::generate::Rng;
use crate::run::AT;
use core_ir::{Code, Data, EffectClass, LabelSpec, ToolDecl, ToolParam, Type};
use diagnostics::FileId;
use machine::{Call, Config, Machine, Output, Reply, Response};
use plan::{Delegate, World, codes};
use policy::Policy;
use serde_json::{Value, json};
use std::sync::Arc;

const POLICY: &str = r#"
lattice = "sources-readers"
[principals]
alice = { email = "alice@example.org" }
web = { host = "web.example" }
[tools.mail]
effect = "read"
control = "any"
result = { sources = ["alice"], readers = "*" }
[tools.web]
effect = "read"
control = "any"
arguments = "any"
result = { sources = ["web"], readers = "*" }
[tools.contacts]
effect = "read"
result = "trusted"
[tools.event]
effect = "write"
result = "trusted"
[tools.pay]
effect = "write"
result = "trusted"
bounds = { note = "untrusted" }
plain = { note = "no-links" }
[[delegate]]
to = { source = "alice@example.org" }
tools = ["event", "pay", "web"]
among = { to = "tools.contacts()" }
at_most = 2
[[delegate]]
to = "untrusted"
tools = ["event", "pay"]
among = { to = "tools.contacts()" }
at_most = 2
"#;

/// `mail()` is by alice and `web(page)` by anyone. `event(title)` and `pay(to, n, note)` want trusted data.
fn world() -> (World, Policy) {
    let policy = Policy::parse(FileId(1), POLICY).unwrap();
    let tool = |name: &str, params: &[(&str, Type)], result, effect| {
        let param = |(n, ty): &(&str, Type)| ToolParam {
            name: (*n).into(),
            ty: ty.clone(),
            bound: LabelSpec::BOTTOM,
            default: None,
        };
        let params = params.iter().map(param).collect();
        Arc::new(ToolDecl { params, result, effect, ..ToolDecl::unknown(name.into(), AT) })
    };
    let tools = vec![
        tool("mail", &[], Type::Str, EffectClass::Read),
        tool("web", &[("page", Type::Str)], Type::Str, EffectClass::Read),
        tool("contacts", &[], Type::list(Type::Str), EffectClass::Read),
        tool("event", &[("title", Type::Str)], Type::Str, EffectClass::Write),
        tool(
            "pay",
            &[("to", Type::Str), ("n", Type::Num), ("note", Type::option(Type::Str))],
            Type::Str,
            EffectClass::Write,
        ),
    ];
    let label = |t: &Arc<ToolDecl>| Some((t.name.clone(), policy.result_of(&t.name, &[])?));
    let results = tools.iter().filter_map(label).collect();
    let delegate =
        |d: &policy::Delegate| Delegate { to: d.to.clone(), tools: d.tools.clone(), at_most: d.at_most };
    let delegates = policy.delegates().iter().map(delegate).collect();
    let people = policy.people.clone();
    (World { tools, results, delegates, people, lattice: policy.lattice, ..World::default() }, policy)
}

fn code(text: &str) -> Arc<Code> {
    let (world, policy) = world();
    let (code, found) = plan::compile(FileId(0), "p.plan.py", text.into(), &world);
    let mut code = code.unwrap_or_else(|| panic!("{text}: {found:?}"));
    assert_eq!(policy.apply(&mut code), [], "{text}");
    Arc::new(code)
}

#[derive(Debug)]
struct Ran {
    end: Result<Value, String>,
    /// Calls that write, by the name of the tool of the world, and prompts.
    calls: Vec<(String, Value)>,
    prompts: Vec<String>,
    /// Requests that the observer sees, and what they see of the end.
    seen: Vec<String>,
    silent: bool,
}

/// Runs a plan in a world: the mail, and the choices of the model, which end in `done`.
fn run(text: &str, mail: &str, choices: &[Value], observer: &LabelSpec) -> Ran {
    let (_, policy) = world();
    let config = Config { lattice: policy.lattice, ..Config::default() };
    let mut machine = Machine::new(code(text), None, config);
    let (mut calls, mut prompts, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    let mut choices = choices.iter();
    loop {
        match machine.poll() {
            Output::Request(id, request) => {
                let mut lattice = machine.lattice().clone();
                let sees = lattice.resolve(observer).unwrap();
                if lattice.flows(request.channel, sees) {
                    seen.push(match &request.call {
                        Call::Tool { tool, args } => format!("{} {args:?}", tool.name),
                        Call::Model { messages, .. } => format!("{messages:?}"),
                        other => format!("{other:?}"),
                    });
                }
                let response = match &request.call {
                    Call::Model { messages, tools, .. } => {
                        // The model has no tools: it names a call.
                        assert!(tools.is_empty());
                        prompts.push(messages.last().unwrap().content.to_string());
                        // A model is a function of what it reads: it chooses by the mail alone.
                        let reads = messages.iter().any(|m| m.content.contains(mail));
                        let choice = if reads { choices.next().cloned() } else { None };
                        let choice = choice.unwrap_or(json!({"call": "done"}));
                        Response::Model(Ok(Reply::Text(choice.to_string())))
                    }
                    Call::Tool { tool, args } => Response::Tool(Ok(match &**tool.called() {
                        "mail" => Data::str(mail),
                        "web" => Data::str("buy now"),
                        "contacts" => Data::list([Data::str("bob"), Data::str("carol")]),
                        name => {
                            let args: Value = args.iter().map(|(_, d)| d.to_json()).collect();
                            calls.push((name.to_string(), args));
                            Data::str("ok")
                        }
                    })),
                    other => panic!("{other:?}"),
                };
                machine.handle(id, response);
            }
            Output::Working => {}
            Output::Waiting => panic!("every request was answered"),
            Output::Done(result) => {
                let label = result.as_ref().map(|v| machine.deep_label(v)).unwrap_or_else(|f| f.label);
                let mut lattice = machine.lattice().clone();
                let sees = lattice.resolve(observer).unwrap();
                let silent = !lattice.flows(label, sees);
                let end = result.map(|v| machine.reify(&v).data().unwrap().to_json());
                let end = end.map_err(|f| f.code.as_str().to_string());
                if !silent {
                    seen.push(format!("{end:?}"));
                }
                return Ran { end, calls, prompts, seen, silent };
            }
        }
    }
}

fn event(title: &str) -> Value {
    json!({"call": "event", "event": {"title": title}})
}

fn pay(to: &str, n: i64) -> Value {
    json!({"call": "pay", "pay": {"to": to, "n": n}})
}

const BLOCK: &str = "t = mail()\ndone = delegate(t, to=\"alice\", tools=[event, pay])\nlen(done)";

fn calls(text: &str, choices: &[Value]) -> (Vec<(String, Value)>, Result<Value, String>) {
    let ran = run(text, "please", choices, &LabelSpec::TOP);
    (ran.calls, ran.end)
}

#[test]
fn the_delegated_text_chooses_among_the_offered_calls() {
    let (made, end) = calls(BLOCK, &[event("lunch"), pay("bob", 5)]);
    let expected = [("event".to_string(), json!(["lunch"])), ("pay".into(), json!(["bob", 5, null]))];
    assert_eq!((made, end), (expected.to_vec(), Ok(json!(2))));
    assert_eq!(calls(BLOCK, &[]).1, Ok(json!(0)));
    // `null` is no choice.
    assert_eq!(calls(BLOCK, &[Value::Null]).1, Ok(json!(0)));
}

/// An address names a principal, in the policy and in the plan.
#[test]
fn a_value_names_the_source() {
    let text = "delegate(mail(), to='alice@example.org', tools=[event])\nprint('done')";
    assert_eq!(calls(text, &[event("lunch")]).0.len(), 1);
    assert_eq!(calls(&text.replace("@example.org", ""), &[event("lunch")]).0.len(), 1);
}

#[test]
fn the_next_choice_sees_the_results() {
    let ran = run(BLOCK, "please", &[event("lunch")], &LabelSpec::TOP);
    assert_eq!(ran.prompts.len(), 2);
    assert!(ran.prompts[0].starts_with("please\n\nCalls so far: []"), "{:?}", ran.prompts[0]);
    assert!(ran.prompts[1].contains("\"result\":\"ok\""), "{:?}", ran.prompts[1]);
}

#[test]
fn a_block_makes_as_many_calls_as_the_policy_says() {
    let many = [event("a"), event("b"), event("c")];
    assert_eq!(calls(BLOCK, &many).0.len(), 2);
    // Two blocks share what there is.
    let twice = format!("{BLOCK}\ndelegate(t, to='alice', tools=[event])");
    let (made, end) = calls(&twice, &many);
    assert_eq!((made.len(), end), (2, Err("budget".into())));
}

#[test]
fn the_sets_and_forms_of_the_policy_hold_for_each_call() {
    assert_eq!(calls(BLOCK, &[pay("eve", 5)]), (vec![], Err("flow".into())));
    let noted = |note: &str| json!({"call": "pay", "pay": {"to": "bob", "n": 5, "note": note}});
    assert_eq!(calls(BLOCK, &[noted("for lunch")]).0.len(), 1);
    assert_eq!(calls(BLOCK, &[noted("see evil.example")]), (vec![], Err("policy".into())));
}

#[test]
fn a_text_of_somebody_else_ends_the_block_before_the_model_is_asked() {
    for mixed in ["web(page='x')", "mail() + web(page='x')", "f'{mail()} {web(page=\"x\")}'"] {
        let text = format!("delegate({mixed}, to='alice', tools=[event])");
        let ran = run(&text, "please", &[event("lunch")], &LabelSpec::TOP);
        assert_eq!((ran.calls.len(), ran.prompts.len(), ran.end), (0, 0, Err("flow".into())), "{mixed}");
    }
    // A condition that somebody else decides, too.
    let text = "t = mail()\nif 'buy' in web(page='x'):\n    delegate(t, to='alice', tools=[event])";
    assert_eq!(calls(text, &[event("lunch")]).0.len(), 0);
    // And the result of a call of the block.
    let read = json!({"call": "web", "web": {"page": "x"}});
    let text = "delegate(mail(), to='alice', tools=[event, web])";
    let ran = run(text, "please", &[read, event("lunch")], &LabelSpec::TOP);
    assert_eq!((ran.calls.len(), ran.prompts.len(), ran.end), (0, 1, Err("flow".into())));
}

#[test]
fn a_refusal_in_the_block_is_a_policy_error() {
    let text = "t = mail()\ntry:\n    delegate(t, to='untrusted', tools=[pay])\nexcept PolicyError:\n    print('refused')";
    assert_eq!(calls(text, &[pay("eve", 5)]).1, Ok(json!("refused")));
}

#[test]
fn outside_of_the_block_the_tools_are_as_strict_as_before() {
    let (_, end) = calls("event(title=mail())", &[]);
    assert_eq!(end, Err("flow".into()));
    let text = format!("{BLOCK}\nevent(title=t)");
    assert_eq!(calls(&text, &[event("a")]), (vec![("event".into(), json!(["a"]))], Err("flow".into())));
}

/// In a `try` the block runs at the label of its sources, and so do its refusals and failures.
#[test]
fn a_block_of_certain_sources_may_stand_in_a_try() {
    let text = |by: &str| {
        format!(
            "t = {by}\nmade = []\ntry:\n    made = delegate(t, to='alice', tools=[event])\n\
             except PolicyError:\n    print('refused')\nprint(len(made))"
        )
    };
    let (made, end) = calls(&text("mail()"), &[event("lunch")]);
    assert_eq!((made.len(), end), (1, Ok(json!("1"))));
    let (made, end) = calls(&text("web(page='x')"), &[event("lunch")]);
    assert_eq!((made.len(), end), (0, Ok(json!("refused\n0"))));
    // What is more than the block in the statement, and what others say, would not be caught.
    let (world, _) = world();
    for wrong in [
        "try:\n    delegate(mail(), to='alice', tools=[event])\nexcept ToolError:\n    pass",
        "t = mail()\ntry:\n    n = len(delegate(t, to='alice', tools=[event]))\nexcept ToolError:\n    pass",
        "t = mail()\ntry:\n    x = delegate(t, to='alice', tools=[web])\nexcept ToolError:\n    pass",
        "t = mail()\ntry:\n    web(page='y')\n    delegate(t, to='alice', tools=[event])\nexcept ToolError:\n    pass",
    ] {
        let (_, found) = plan::compile(FileId(0), "p.plan.py", wrong.into(), &world);
        assert!(found.iter().any(|d| d.code == codes::SUBSET), "{wrong}: {found:?}");
    }
}

#[test]
fn undelegated_calls_are_refused_before_the_run() {
    let (world, _) = world();
    let found = |text: &str| plan::compile(FileId(0), "p.plan.py", text.into(), &world).1;
    for (text, code) in [
        ("delegate(mail(), to='bob', tools=[event])", codes::DELEGATION),
        ("delegate(mail(), to='alice', tools=[mail])", codes::DELEGATION),
        ("delegate(mail(), to=['alice', 'bob'], tools=[event])", codes::DELEGATION),
        ("delegate(mail(), to='alice', tools=[])", codes::ARGUMENTS),
        ("delegate(mail(), to='alice', tools=[event, event])", codes::ARGUMENTS),
        ("delegate(mail(), to='alice', tools=[evnt])", codes::ARGUMENTS),
        ("delegate(mail(), to=mail(), tools=[event])", codes::ARGUMENTS),
        ("delegate(mail())", codes::ARGUMENTS),
        ("try:\n    delegate(mail(), to='alice', tools=[event])\nexcept ToolError:\n    pass", codes::SUBSET),
        ("delegate(mail(), to='alice', tools=event)", codes::ARGUMENTS),
    ] {
        assert!(found(text).iter().any(|d| d.code == code), "{text}: {:?}", found(text));
    }
    // A policy that says nothing refuses the term, too.
    let mut code = Code::clone(&code(BLOCK));
    let silent = Policy::parse(FileId(1), "lattice = \"sources-readers\"\n").unwrap();
    assert!(silent.apply(&mut code).iter().any(|d| d.code == policy::codes::DELEGATION));
}

#[test]
fn static_flow_knows_the_bounds_of_the_block() {
    use analysis::flow::{Options, Verdict, analyze};
    let verdicts = |text: &str| {
        let (_, policy) = world();
        let options = Options { lattice: policy.lattice, ..Options::default() };
        let report = analyze(&code(text), &options);
        assert!(report.gave_up.is_none());
        report.sites.iter().map(|s| (s.sink.name().unwrap_or("").to_string(), s.verdict)).collect::<Vec<_>>()
    };
    let found = verdicts("delegate(mail(), to='alice', tools=[event])");
    assert!(!found.iter().any(|(_, v)| *v == Verdict::Never), "{found:?}");
    let found = verdicts("delegate(web(page='x'), to='alice', tools=[event])");
    assert!(found.contains(&("delegate to alice".into(), Verdict::Never)), "{found:?}");
}

/// A random plan that delegates, with calls around it.
fn delegating(rng: &mut Rng) -> String {
    let mut out = String::from("t = mail()\nw = web(page='x')\nn = 0\nwho = 'bob'\n");
    let mut delegates = 0;
    for i in 0..2 + rng.below(5) {
        let line = match rng.below(12) {
            0 => "event(title='plan')".to_string(),
            1 => "n += len(t)".into(),
            2 => "pay(to=who, n=3)".into(),
            3 => format!("if 'a' in {}:\n    n += 1", ["t", "w", "who"][rng.below(3)]),
            4 => "for c in w:\n    n += 1".into(),
            5 => "try:\n    event(title=t)\nexcept PolicyError:\n    n += 1".into(),
            6 => "web(page='y')".into(),
            7 => format!("w = web(page={})", ["t", "'z'", "w"][rng.below(3)]),
            _ if delegates < 2 => {
                delegates += 1;
                let text = ["t", "t", "t + who", "who", "t + w"][rng.below(5)];
                let caught = rng.below(4) == 0;
                let tools =
                    ["event", "event, pay", "pay", "event, web"][rng.below(if caught { 3 } else { 4 })];
                let to = if caught { "untrusted" } else { "alice" };
                let call = format!("d{i} = delegate({text}, to='{to}', tools=[{tools}])");
                match if caught { 0 } else { 1 + rng.below(3) } {
                    0 => format!("d{i} = []\ntry:\n    {call}\nexcept PolicyError:\n    n += 2"),
                    1 => format!("d{i} = []\nif 'e' in t:\n    {call}\nn += len(d{i})"),
                    _ => call,
                }
            }
            _ => "event(title=who)".into(),
        };
        out.push_str(&line);
        out.push('\n');
    }
    out.push_str(["print(n)", "print(w)", "print(who)"][rng.below(3)]);
    out
}

fn some_choices(rng: &mut Rng) -> Vec<Value> {
    let one = |rng: &mut Rng| match rng.below(6) {
        0 => event("x"),
        1 => event("evil"),
        2 => pay("bob", 5),
        3 => pay("eve", 9),
        4 => json!({"call": "web", "web": {"page": "q"}}),
        _ => json!({"call": "done"}),
    };
    (0..rng.below(5)).map(|_| one(rng)).collect()
}

#[test]
fn who_does_not_see_the_delegated_text_sees_nothing_of_the_block() {
    let web = Data::record([
        ("sources".into(), Data::list([Data::str("web")])),
        ("readers".into(), Data::str("*")),
    ]);
    let observers = [LabelSpec::BOTTOM, LabelSpec::Exact(web)];
    let (mut differ, mut blocks) = (0, 0);
    for seed in 0..1_500 {
        let mut rng = Rng::new(seed);
        let text = delegating(&mut rng);
        let worlds = [("please", some_choices(&mut rng)), ("an other mail", some_choices(&mut rng))];
        for observer in &observers {
            let [one, other] = worlds.each_ref().map(|(mail, choices)| run(&text, mail, choices, observer));
            differ += usize::from(one.calls != other.calls);
            blocks += usize::from(!one.prompts.is_empty());
            let alike = match (one.silent, other.silent) {
                (false, false) => one.seen == other.seen,
                // A run that stops silently has shown a beginning of the other.
                (true, true) => one.seen.starts_with(&other.seen) || other.seen.starts_with(&one.seen),
                (true, false) => other.seen.starts_with(&one.seen),
                (false, true) => one.seen.starts_with(&other.seen),
            };
            assert!(alike, "{seed}:\n{text}\n{one:?}\n{other:?}");
        }
    }
    assert!(differ > 200 && blocks > 500, "{differ} {blocks}");
}
