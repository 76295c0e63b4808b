//! Further plans after errors: what planners are told, in pairs of worlds, and which requests are repeated.
//!
//! Tools: `read(id)` gives untrusted data and `vault()` secret data; `known(id)` gives trusted, public data.
//! `pay(to, n)` wants a trusted recipient, `n` may be untrusted up to 100. `note(text)` takes everything and
//! `few()` at most one call that untrusted data decides, `twice()` two. `sign(x)` wants an approval,
//! `one_more(x)` both. `agree()` wants an approval and gives untrusted data.

use core_ir::{Approve, Data, EffectClass, LabelSpec, ToolDecl, ToolParam, Type};
use diagnostics::{FileId, Sources, Span};
use machine::{Machine, Reply};
use runtime::{
    Answer, Approver, CancellationToken, CustomTool, Handlers, Limits, ModelCall, ModelError, Models,
    Progress, Provider, Work,
};
use serde_json::{Value, json};
use session::load::Options;
use session::machine_config;
use session::planning::{PlanOptions, Planning, Step, Toolset};
use session::preflight::Gate;
use session::replanning::Replanning;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const AT: Span = Span { file: FileId(0), start: 0, end: 0 };
const UNTRUSTED: LabelSpec = LabelSpec::Axes { untrusted: true, secret: false };
const SECRET: LabelSpec = LabelSpec::Axes { untrusted: false, secret: true };

/// A model whose replies are those of the tool `model` of a world.
struct Replies {
    answers: Vec<Value>,
    seen: Arc<Mutex<Seen>>,
}

impl Provider for Replies {
    fn name(&self) -> &str {
        "replies"
    }

    fn price(&self) -> Option<runtime::Price> {
        Some(runtime::Price::FREE)
    }

    fn ask(self: Arc<Self>, _: ModelCall, _: Progress) -> Work<Answer> {
        let mut seen = self.seen.lock().unwrap();
        let reply = self.answers.get(seen.models.min(self.answers.len().saturating_sub(1)));
        seen.models += 1;
        Work::Now(match reply {
            Some(reply) if reply.get("error").is_none() => {
                Answer::new(Ok(Reply::Text(reply.to_string())), runtime::Tokens::default())
            }
            _ => Answer::failed(ModelError::new("no model")),
        })
    }
}

fn tools() -> Vec<ToolDecl> {
    let param = |name: &str, bound: &LabelSpec| ToolParam {
        name: name.into(),
        ty: Type::option(Type::Dyn),
        bound: bound.clone(),
        default: None,
    };
    let reads = |name: &str, params: &[&str], label: &LabelSpec| ToolDecl {
        params: params.iter().map(|p| param(p, &LabelSpec::TOP)).collect(),
        effect: EffectClass::Read,
        control: LabelSpec::TOP,
        label: label.clone(),
        ..ToolDecl::unknown(name.into(), AT)
    };
    let writes = |name: &str, params: &[(&str, &LabelSpec)], control: &LabelSpec| ToolDecl {
        params: params.iter().map(|(p, bound)| param(p, bound)).collect(),
        control: control.clone(),
        label: LabelSpec::BOTTOM,
        ..ToolDecl::unknown(name.into(), AT)
    };
    vec![
        reads("read", &["id"], &UNTRUSTED),
        reads("vault", &[], &SECRET),
        reads("known", &["id"], &LabelSpec::BOTTOM),
        writes("pay", &[("to", &LabelSpec::BOTTOM), ("n", &UNTRUSTED)], &LabelSpec::BOTTOM),
        writes("note", &[("text", &LabelSpec::TOP)], &LabelSpec::TOP),
        ToolDecl { at_most: Some(1), ..writes("few", &[], &UNTRUSTED) },
        ToolDecl { at_most: Some(2), ..writes("twice", &[], &UNTRUSTED) },
        ToolDecl {
            at_most: Some(1),
            approve: Approve::Always,
            ..writes("one_more", &[("x", &UNTRUSTED)], &UNTRUSTED)
        },
        ToolDecl {
            approve: Approve::Always,
            ..writes("sign", &[("x", &LabelSpec::BOTTOM)], &LabelSpec::BOTTOM)
        },
        ToolDecl { approve: Approve::Always, label: UNTRUSTED, ..writes("agree", &[], &LabelSpec::BOTTOM) },
    ]
}

const POLICY: &str = "[tools.pay]\nallow = '\\a. a.n.value <= 100 || \"too much\"'\n";

/// A world: the answers of each tool, one after the other and the last one for ever. `{"error": text}` is a
/// failure, and `{"late": true}` comes too late.
#[derive(Clone, Default)]
struct World(BTreeMap<&'static str, Vec<Value>>);

impl World {
    fn with(mut self, tool: &'static str, answers: Value) -> World {
        let Value::Array(all) = answers else { panic!("a list of answers") };
        self.0.insert(tool, all);
        self
    }
}

/// Events of one request.
#[derive(Debug, Default)]
struct Seen {
    prompts: Vec<String>,
    /// Calls that reached the world.
    calls: Vec<String>,
    /// Requests that reached the model.
    models: usize,
    questions: usize,
    outcome: Option<Result<Value, String>>,
    json: Value,
    bits: f64,
}

impl Seen {
    fn count(&self, tool: &str) -> usize {
        self.calls.iter().filter(|c| c.starts_with(&format!("{tool}("))).count()
    }

    /// The end of the last prompt: what is told after an error.
    fn told(&self) -> &str {
        let last = self.prompts.last().map_or("", String::as_str);
        last.split_once("ended with an error").map_or("", |(_, told)| told)
    }
}

/// The rule for approvals: `Ok`, or the reason against.
type Says = fn() -> Result<(), String>;

struct How {
    errors: u32,
    approver: Option<Says>,
    limits: Limits,
    /// Limit of the steps of all runs together, if it is not the default.
    fuel: Option<u64>,
}

impl Default for How {
    fn default() -> How {
        How { errors: 1, approver: None, limits: Limits::default(), fuel: None }
    }
}

/// Fulfills a request with these plans, each after an error of the one before.
fn fulfill(plans: &[&str], world: &World, how: How) -> Seen {
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let mut custom = runtime::Tools::new(&runtime::Environment::default());
    for tool in tools() {
        let name = tool.name.to_string();
        let (log, answers) = (seen.clone(), world.0.get(&*name).cloned().unwrap_or_default());
        let given = Arc::new(Mutex::new(0));
        let act: CustomTool = Arc::new(move |args| {
            let args: Vec<String> = args.iter().map(|(_, d)| d.to_json().to_string()).collect();
            log.lock().unwrap().calls.push(format!("{name}({})", args.join(", ")));
            let mut n = given.lock().unwrap();
            let answer =
                answers.get((*n).min(answers.len().saturating_sub(1))).cloned().unwrap_or(json!("ok"));
            *n += 1;
            Box::pin(async move {
                if answer.get("late").is_some() {
                    tokio::time::sleep(Duration::from_secs(600)).await;
                }
                match answer.get("error").and_then(Value::as_str) {
                    Some(why) => Err(why.to_string()),
                    None => Data::from_json(&answer).map_err(|e| e.to_string()),
                }
            })
        });
        custom = custom.with_custom(tool.name.clone(), act);
    }
    let mut sources = Sources::new();
    let mut toolset = Toolset::read(&mut sources, &Options::default()).unwrap();
    toolset.set_policy(&mut sources, POLICY).unwrap();
    tools().into_iter().for_each(|t| toolset.add(Arc::new(t)).unwrap());
    let answers = world.0.get("model").cloned().unwrap_or_default();
    let mut handlers = Handlers::new(Models::only(Arc::new(Replies { answers, seen: seen.clone() })));
    handlers.tools = custom;
    let asked = seen.clone();
    handlers.approver = how.approver.map(|says| {
        Approver::new(move |_| {
            asked.lock().unwrap().questions += 1;
            Box::pin(async move { says() })
        })
    });
    let options = PlanOptions { replan: 0, ..PlanOptions::default() };
    let mut planning = Planning::new(sources, toolset, "the request".into(), options);
    let stores = runtime::Stores::new();
    let (tools, routes) = (handlers.tools.clone(), Default::default());
    let gate = Gate { tools: &tools, stores: &stores, routes: &routes, refusals: true };
    let config = machine_config(None, planning.policy());
    let mut replanning = Replanning::new(how.errors, &config);
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut prompt = planning.prompt();
    for plan in plans {
        seen.lock().unwrap().prompts.push(prompt);
        let Step::Done(draft) = planning.reply(plan, &gate) else { panic!("no further plan before the run") };
        let (outline, code) = (draft.outline(), draft.outcome.unwrap().runnable().unwrap().code.clone());
        let mut config = machine_config(None, planning.policy());
        config.request = Some("the request".into());
        config.fuel = how.fuel.unwrap_or(config.fuel);
        let follows = replanning.follows();
        if let Some(follows) = &follows {
            follows.history.lock().unwrap().carry_into(&mut config);
        }
        let handlers = Handlers { history: follows.map(|f| f.history), ..handlers.clone() };
        let limits = replanning.limits(&how.limits);
        let cancel = CancellationToken::new();
        let machine = Machine::new(code, None, config);
        let report = rt.block_on(runtime::run(machine, &handlers, &limits, &cancel, &mut |_| {}));
        let outcome = report.result.as_ref().map(|v| v.data().unwrap().to_json());
        seen.lock().unwrap().outcome = Some(outcome.map_err(|f| f.code.as_str().to_string()));
        match replanning.after(&outline.unwrap(), &report) {
            Some(told) => prompt = planning.after_error(told.ended.clone()),
            None => break,
        }
    }
    drop(handlers);
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    replanning.add_to(&mut seen.json);
    seen.bits = replanning.bits();
    seen
}

fn after_error(plans: &[&str], world: &World) -> Seen {
    fulfill(plans, world, How::default())
}

#[test]
fn nothing_is_told_and_nothing_follows_unless_it_is_asked_for() {
    let plan = "text = read('a')\nprint(int(text))";
    for answer in ["x", "7"] {
        let world = World::default().with("read", json!([answer]));
        let seen = fulfill(&[plan, "print('again')"], &world, How { errors: 0, ..How::default() });
        assert_eq!((seen.prompts.len(), seen.bits, seen.json), (1, 0.0, Value::Null));
    }
}

#[test]
fn a_new_plan_is_told_the_class_and_the_line_and_reuses_what_was_read() {
    let world = World::default().with("read", json!(["ATTACK", "another"]));
    let seen = after_error(&["text = read('a')\nprint(int(text))", "print(len(read('a')))"], &world);
    assert_eq!(seen.outcome, Some(Ok(json!("6"))));
    assert_eq!(seen.calls, ["read(\"a\")"]);
    assert!(seen.told().contains("line 2: ValueError\n"), "{}", seen.told());
    assert!(!seen.prompts.iter().any(|p| p.contains("ATTACK")), "{:?}", seen.prompts);
    assert_eq!(seen.json["replans"][0]["code"], "ValueError");
    assert_eq!((&seen.json["replans"][0]["line"], &seen.json["bits"]), (&json!(2), &json!(seen.bits)));
    // One of 46 codes and 3 places, or nothing.
    assert_eq!(seen.bits, (46.0f64 * 3.0 + 1.0).log2());
}

/// The prompts of a request in each of these worlds. They are the same without further plans; with one, they
/// differ in no more than was counted.
fn pairs(plan: &str, worlds: &[World], approver: Option<Says>) -> BTreeSet<Vec<String>> {
    let run = |errors, world: &World| {
        fulfill(&[plan, "print('again')"], world, How { errors, approver, ..How::default() })
    };
    let off: BTreeSet<Vec<String>> = worlds.iter().map(|w| run(0, w).prompts).collect();
    assert_eq!(off.len(), 1);
    let seen: Vec<Seen> = worlds.iter().map(|w| run(1, w)).collect();
    let most = seen.iter().map(|s| s.bits).fold(0.0, f64::max);
    // The prompt after an error is a function of what is counted.
    let mut after: BTreeMap<String, &str> = BTreeMap::new();
    for s in seen.iter().filter(|s| s.prompts.len() == 2) {
        let mut told = s.json["replans"][0].clone();
        told["run"] = Value::Null;
        assert_eq!(*after.entry(told.to_string()).or_insert(&s.prompts[1]), s.prompts[1]);
    }
    let prompts: BTreeSet<Vec<String>> = seen.into_iter().map(|s| s.prompts).collect();
    assert!((prompts.len() as f64).log2() <= most, "{} prompts, {most} bits", prompts.len());
    for text in ["ATTACK", "planted"] {
        assert!(!prompts.iter().flatten().any(|p| p.contains(text)), "{prompts:?}");
    }
    prompts
}

fn reading(answers: &[Value]) -> Vec<World> {
    answers.iter().map(|a| World::default().with("read", json!([a]))).collect()
}

#[test]
fn class_and_place_of_an_exception_are_all_that_differs() {
    let plan = "text = read('a')\nn = int(text)\nxs = [1, 2]\nprint(xs[n])";
    let worlds = reading(&[json!("1"), json!("ATTACK"), json!("planted"), json!("7"), json!("-9")]);
    // It went well, `ValueError` in line 2, `IndexError` in line 4.
    assert_eq!(pairs(plan, &worlds, None).len(), 3);
    // A class of the plan, and one that a text names, are in no list.
    let plan = "class Mine(ValueError):\n    pass\nif 'x' in read('a'):\n    raise Mine(read('a'))\nraise ValueError('own')";
    let prompts = pairs(plan, &reading(&[json!("x ATTACK"), json!("y")]), None);
    assert_eq!(prompts.len(), 2);
    assert!(prompts.iter().flatten().any(|p| p.contains("line 4: Exception\n")), "{prompts:?}");
}

#[test]
fn the_text_of_a_tool_that_fails_or_is_late_is_not_told() {
    let late = "no answer within 3 s ATTACK";
    let worlds = reading(&[json!({"error": "ATTACK"}), json!({"error": "planted"}), json!({"error": late})]);
    let prompts = pairs("text = read('a')\nprint(text)", &worlds, None);
    assert_eq!(prompts.len(), 1);
    assert!(prompts.iter().flatten().any(|p| p.contains("line 1: tool\n")));
    // What is late as an exception of the plan is one class of the list.
    let plan = "if 'late' in read('a'):\n    raise TimeoutError('own')\nprint('in time')";
    assert_eq!(pairs(plan, &reading(&[json!("late"), json!("no")]), None).len(), 2);
}

#[test]
fn a_refused_policy_is_a_code_and_a_line() {
    let plan = "n = int(read('a'))\npay('bob', n)\nprint('paid')";
    let prompts = pairs(plan, &reading(&[json!("5"), json!("101"), json!("999999")]), None);
    assert_eq!(prompts.len(), 2);
    assert!(prompts.iter().flatten().any(|p| p.contains("line 2: policy\n")), "{prompts:?}");
}

#[test]
fn a_person_who_refuses_is_quoted_by_nobody_and_not_asked_again() {
    let no: Says = || Err("ATTACK planted".into());
    let plan = "x = read('a')\nsign(x)";
    let prompts = pairs(plan, &reading(&[json!("1"), json!("2")]), Some(no));
    assert_eq!(prompts.len(), 1);
    assert!(prompts.iter().flatten().any(|p| p.contains("line 2: refused\n")), "{prompts:?}");
    let how = How { approver: Some(no), ..How::default() };
    let seen = fulfill(&[plan, plan], &World::default().with("read", json!(["1"])), how);
    assert_eq!((seen.questions, seen.count("sign"), seen.prompts.len()), (1, 0, 2));
}

#[test]
fn calls_before_an_error_are_told_once_and_counted() {
    // How many payments there were before the error, untrusted data decides.
    let plan = "items = read('a').split()\nfor item in ['1', '2', '3']:\n    pay('bob', 5)\n    if item in items:\n        raise ValueError('own')\nprint('done')";
    let worlds = reading(&[json!("1"), json!("2"), json!("3"), json!("none")]);
    let prompts = pairs(plan, &worlds, None);
    assert_eq!(prompts.len(), 2);
    let told = "Calls that were made before: `pay` in line 3.";
    assert!(prompts.iter().flatten().any(|p| p.contains(told)), "{prompts:?}");
    // Whether there was any is a bit of its own.
    let plan = "n = read('a')\nfor item in ['1', '2']:\n    if item == n:\n        raise ValueError('x')\n    note('sent')\nprint('done')";
    let worlds = reading(&[json!("1"), json!("2"), json!("3")]);
    let seen: Vec<Seen> = worlds.iter().map(|w| after_error(&[plan, "print(1)"], w)).collect();
    assert_eq!(seen.iter().map(|s| s.count("note")).collect::<Vec<_>>(), [0, 1, 2]);
    let told = seen.iter().map(|s| s.told().contains("`note` in line 5")).collect::<Vec<_>>();
    assert_eq!(told, [false, true, false]);
    assert_eq!(seen.iter().map(|s| s.bits).collect::<Vec<_>>(), [seen[0].bits, seen[0].bits, 0.0]);
    assert_eq!(seen[0].bits, (46.0f64 * 7.0 + 1.0).log2() + 1.0);
    // Of a call under a condition that was read, and of one with a text that was read, nothing is told.
    for call in ["if 'x' in a:\n    note('sent')", "note(a)"] {
        let plan = format!("a = read('a')\n{call}\nraise ValueError('x')");
        let seen = after_error(&[&plan, "print(1)"], &World::default().with("read", json!(["x"])));
        assert_eq!((seen.count("note"), seen.told().contains("made before")), (1, false), "{}", seen.told());
    }
}

#[test]
fn an_error_that_is_trusted_and_public_costs_nothing() {
    let plan = "pay('bob', 5)\nprint(int(known('a')))";
    let world = World::default().with("known", json!(["planted"]));
    let seen = after_error(&[plan, "print('again')"], &world);
    assert_eq!((seen.bits, seen.prompts.len()), (0.0, 2));
    assert!(seen.told().contains("line 2: ValueError\nCalls that were made before: `pay` in line 1."));
    assert!(!seen.told().contains("planted"));
}

#[test]
fn a_secret_error_is_the_end() {
    // Also one that only a secret condition decides, and one that is untrusted as well.
    for plan in [
        "print(int(vault()))",
        "if 'x' in vault():\n    raise ValueError('x')\nprint(1)",
        "print(int(read('a') + vault()))",
    ] {
        let worlds =
            ["x", "7"].map(|v| World::default().with("vault", json!([v])).with("read", json!(["1"])));
        let seen = worlds.each_ref().map(|w| after_error(&[plan, "print('again')"], w));
        assert_eq!(seen.each_ref().map(|s| (s.prompts.len(), s.bits)), [(1, 0.0), (1, 0.0)], "{plan}");
        assert!(seen[0].outcome.as_ref().is_some_and(Result::is_err), "{plan}");
    }
}

#[test]
fn an_end_that_comes_from_outside_is_the_end() {
    let plan = "a = read('a')\nb = read('b')\nprint(int(a))";
    let limits = Limits { max_tool_calls: Some(1), ..Limits::default() };
    let seen = fulfill(&[plan, "print(1)"], &World::default(), How { limits, ..How::default() });
    assert_eq!((seen.prompts.len(), seen.outcome), (1, Some(Err("budget".into()))));
    let limits = Limits { timeout: Some(Duration::from_millis(20)), ..Limits::default() };
    let late = World::default().with("read", json!([{"late": true}]));
    let seen = fulfill(&[plan, "print(1)"], &late, How { limits, ..How::default() });
    assert_eq!((seen.prompts.len(), seen.outcome), (1, Some(Err("cancelled".into()))));
}

#[test]
fn runs_together_have_the_limits_of_one() {
    // Counts of calls that untrusted data decides.
    let plan = "if 'x' in read('a'):\n    few()\nraise ValueError('x')";
    let world = World::default().with("read", json!(["x"]));
    let seen = after_error(&[plan, "if 'x' in read('a'):\n    few()\n    few()\nprint(1)"], &world);
    assert_eq!((seen.count("few"), seen.outcome), (1, Some(Err("budget".into()))));
    // Limits.
    let limits = Limits { max_tool_calls: Some(3), ..Limits::default() };
    let plans =
        ["a = read('a')\nb = read('b')\nraise ValueError('x')", "read('a')\nread('c')\nread('d')\nprint(1)"];
    let seen = fulfill(&plans, &World::default(), How { limits, ..How::default() });
    assert_eq!(seen.calls, ["read(\"a\")", "read(\"b\")", "read(\"c\")"]);
    assert_eq!(seen.outcome, Some(Err("budget".into())));
    // Steps of the machine.
    let sums = "x = 0\nfor i in range(200):\n    x += i\n";
    let (fails, ends) = (format!("{sums}raise ValueError('x')"), format!("{sums}print(x)"));
    let with = |plans: &[&str], fuel| {
        fulfill(plans, &World::default(), How { fuel: Some(fuel), ..How::default() }).outcome
    };
    let enough = (8..40).map(|n| 1u64 << n).find(|fuel| matches!(with(&[&ends], *fuel), Some(Ok(_))));
    let fuel = enough.expect("a number of steps that suffices");
    assert_eq!(with(&[&fails, &ends], fuel * 4), Some(Ok(json!("19900"))));
    assert_eq!(with(&[&fails, &ends], fuel), Some(Err("fuel".into())));
    // Plans: at most one further plan was asked for.
    let bad = "print(int(read('a')))";
    assert_eq!(after_error(&[bad, bad, bad], &World::default()).prompts.len(), 2);
}

#[test]
fn a_call_that_was_made_is_not_made_again() {
    let plan = "pay('bob', 5)\nprint(int(read('a')))";
    let seen =
        after_error(&[plan, "pay('bob', 5)\npay('bob', 6)\npay('bob', 5)\nprint(1)"], &World::default());
    // The second payment of 5 is another one.
    assert_eq!(seen.calls, ["pay(\"bob\", 5)", "read(\"a\")", "pay(\"bob\", 6)", "pay(\"bob\", 5)"]);
    // Neither is its approval asked for again; another one is.
    let yes: Says = || Ok(());
    let how = How { approver: Some(yes), ..How::default() };
    let plan = "sign(read('a'))\nraise ValueError('x')";
    let seen =
        fulfill(&[plan, "sign(read('a'))\nsign('other')\nsign(read('b'))\nprint(1)"], &World::default(), how);
    assert_eq!((seen.count("sign"), seen.questions, seen.outcome), (3, 3, Some(Ok(json!("1")))));
    // The approval of a call that failed is none of the call that is made again.
    let world = World::default().with("sign", json!([{"error": "no"}, "ok"]));
    let how = How { approver: Some(yes), ..How::default() };
    let seen = fulfill(&["sign('a')", "sign('a')\nprint(1)"], &world, how);
    assert_eq!((seen.count("sign"), seen.questions, seen.outcome), (2, 2, Some(Ok(json!("1")))));
}

#[test]
fn a_question_that_untrusted_data_decided_is_asked_again_without_it() {
    // In one world it was asked under an untrusted condition. The new plan asks it under none.
    let no: Says = || Err("no".into());
    let plan = "if 'x' in read('a'):\n    agree()\nraise ValueError('x')";
    let questions = ["x", "z"].map(|answer| {
        let world = World::default().with("read", json!([answer]));
        fulfill(&[plan, "agree()"], &world, How { approver: Some(no), ..How::default() }).questions
    });
    assert_eq!(questions, [2, 1]);
    // Under the same condition it is not asked again.
    let world = World::default().with("read", json!(["x"]));
    let how = How { approver: Some(no), ..How::default() };
    assert_eq!(fulfill(&[plan, plan], &world, how).questions, 1);
}

#[test]
fn a_call_that_is_not_made_again_counts_no_second_time() {
    let world = World::default().with("read", json!(["x"]));
    let plan = "if 'x' in read('a'):\n    few()\nraise ValueError('x')";
    let again = "if 'x' in read('a'):\n    few()\nprint(1)";
    let seen = after_error(&[plan, again], &world);
    assert_eq!((seen.count("few"), seen.outcome), (1, Some(Ok(json!("1")))));
    // There is room for what the first plan has left.
    let plan_of_one = "if 'x' in read('a'):\n    twice()\nraise ValueError('x')";
    let two = "if 'x' in read('a'):\n    twice()\n    twice()\nprint(1)";
    let seen = after_error(&[plan_of_one, two], &world);
    assert_eq!((seen.count("twice"), seen.outcome), (2, Some(Ok(json!("1")))));
    // As often as there are further plans.
    let how = How { errors: 2, ..How::default() };
    let seen = fulfill(&[plan, plan, again], &world, how);
    assert_eq!((seen.count("few"), seen.prompts.len(), seen.outcome), (1, 3, Some(Ok(json!("1")))));
    // An approval of such a call is not asked for again, and of no further call.
    let yes: Says = || Ok(());
    let plan = "if 'x' in read('a'):\n    one_more('y')\nraise ValueError('x')";
    for (next, questions, calls, ends) in [
        ("if 'x' in read('a'):\n    one_more('y')\nprint(1)", 1, 1, Ok(json!("1"))),
        ("if 'x' in read('a'):\n    one_more('y')\n    one_more('z')\nprint(1)", 1, 1, Err("budget".into())),
        // One that trusted data decides.
        ("one_more('z')\nprint(1)", 2, 2, Ok(json!("1"))),
    ] {
        let seen = fulfill(&[plan, next], &world, How { approver: Some(yes), ..How::default() });
        assert_eq!((seen.questions, seen.count("one_more"), seen.outcome), (questions, calls, Some(ends)));
    }
}

#[test]
fn a_model_is_not_asked_the_same_again() {
    let world = World::default().with("read", json!(["ATTACK"])).with("model", json!([7, 8, 9]));
    let plan = "n = ask(f'number: {read(\"a\")}', int)\nraise ValueError('x')";
    let seen = after_error(&[plan, "n = ask(f'number: {read(\"a\")}', int)\nprint(n)"], &world);
    assert_eq!((seen.models, seen.outcome), (1, Some(Ok(json!("7")))));
    // Another prompt or type is another question, and each answer is used once.
    let all = "print(ask(f'number: {read(\"a\")}', int), ask(f'number: {read(\"a\")}', int), ask('no', int))";
    let seen = after_error(&[plan, all], &world);
    assert_eq!((seen.models, seen.outcome), (3, Some(Ok(json!("7 8 9")))));
    let typed = "print(ask(f'number: {read(\"a\")}', float))";
    assert_eq!(after_error(&[plan, typed], &world).models, 2, "a number may have a fraction");
    let typed = "print(ask(f'number: {read(\"a\")}', bool))";
    assert_eq!(after_error(&[plan, typed], &world.clone().with("model", json!([7, true]))).models, 2);
    // A model that failed is asked again.
    let world = world.with("model", json!([{"error": "no"}, 8]));
    let seen = after_error(&["print(ask('no', int))", "print(ask('no', int))"], &world);
    assert_eq!((seen.models, seen.outcome), (2, Some(Ok(json!("8")))));
    // One that was asked under a secret condition is asked again without it.
    let plan = "if 'x' in vault():\n    n = ask('a', int)\nraise ValueError('x')";
    let worlds = ["x", "y"].map(|v| World::default().with("vault", json!([v])).with("model", json!([7])));
    let seen = worlds.each_ref().map(|w| after_error(&[plan, "print(ask('a', int))"], w));
    assert_eq!(seen.each_ref().map(|s| s.models), [2, 1]);
    assert_eq!(seen[0].prompts, seen[1].prompts);
}

#[test]
fn reads_before_a_write_are_repeated() {
    let plan = "a = read('a')\nc = known('c')\npay('bob', 5)\nb = read('b')\nraise ValueError('x')";
    let seen = after_error(&[plan, "read('a')\nread('b')\nknown('c')\nprint(1)"], &World::default());
    // By its signature `known` does not depend on a payment: the channel of that is untrusted.
    assert_eq!((seen.count("read"), seen.count("known"), seen.count("pay")), (3, 1, 1));
    assert_eq!(seen.calls.last().map(String::as_str), Some("read(\"a\")"));
    // Each answer is used once: a second request in the new plan is another one.
    let plan = "a = known('a')\nraise ValueError('x')";
    assert_eq!(after_error(&[plan, "known('a')\nknown('a')\nprint(1)"], &World::default()).count("known"), 2);
    // A call that failed is made again.
    let world = World::default().with("read", json!([{"error": "ATTACK"}, "7"]));
    let seen = after_error(&["print(read('a'))", "print(read('a'))"], &world);
    assert_eq!((seen.count("read"), seen.outcome), (2, Some(Ok(json!("7")))));
}

#[test]
fn a_secret_decision_to_read_shows_nowhere_else() {
    // In one world it was read under a secret condition. The new plan reads it under none.
    let plan = "if 'x' in vault():\n    a = known('a')\nraise ValueError('x')";
    let worlds =
        ["x", "y"].map(|v| World::default().with("vault", json!([v])).with("known", json!(["1", "1"])));
    let after = "a = known('a')\npay('bob', int(a))\nprint(a)";
    let seen = worlds.each_ref().map(|w| after_error(&[plan, after], w));
    assert_eq!(seen.each_ref().map(|s| s.count("known")), [2, 1]);
    assert_eq!(seen[0].outcome, seen[1].outcome);
    assert_eq!(seen[0].prompts, seen[1].prompts);
    assert_eq!(seen.each_ref().map(|s| s.count("pay")), [1, 1]);
    // Where the new plan reads it under the same condition, the answer is reused.
    let again = "if 'x' in vault():\n    a = known('a')\nprint(1)";
    assert_eq!(after_error(&[plan, again], &worlds[0]).count("known"), 1);
}
