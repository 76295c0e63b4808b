//! Rules of `tool` that look right and leak, each named like its counterexample in the proofs
//! (`proofs/Thm/Examples.v`, `docs/proofs.md`): two worlds that differ in what an observer must not know look
//! alike to them. And what a set of `among` admits where the driver answers late, or labels its answer.

use core_ir::{Data, Globals, LabelSpec, LatticeKind, Principal, SetSize};
use diagnostics::FileId;
use machine::{Call, Choice, Config, Machine, Output, Request, Response};
use syntax::lam::{Options, parse};

const PUBLIC: LabelSpec = LabelSpec::BOTTOM;
const UNTRUSTED: LabelSpec = LabelSpec::Axes { untrusted: true, secret: false };

/// A course of a run.
#[derive(Debug, PartialEq)]
pub struct Seen {
    /// The requests, in order.
    pub requests: Vec<String>,
    /// The result, or the error.
    pub end: Option<String>,
    choices: Vec<Choice>,
}

/// Runs a program; what one observer sees of it, and what the operator does.
pub fn run(
    text: &str,
    config: Config,
    observer: &LabelSpec,
    answer: impl Fn(&Request) -> Response,
) -> (Seen, Seen) {
    let parsed = parse(FileId(0), text, &Globals::none(), Options::PROGRAM);
    let code = parsed.code.unwrap_or_else(|| panic!("{text}: {:?}", parsed.diagnostics));
    let mut machine = Machine::new(code.into(), None, config);
    let empty = || Seen { requests: Vec::new(), end: None, choices: Vec::new() };
    let (mut theirs, mut all) = (empty(), empty());
    loop {
        let mut lattice = machine.lattice().clone();
        let sees = lattice.resolve(observer).expect("a label of the lattice");
        match machine.poll() {
            Output::Request(id, request) => {
                let what = match &request.call {
                    Call::Tool { tool, args } => format!("{} {args:?}", tool.name),
                    Call::Approve { tool, args, .. } => format!("approve {} {args:?}", tool.name),
                    other => panic!("not asked here: {other:?}"),
                };
                if lattice.flows(request.channel, sees) {
                    theirs.requests.push(what.clone());
                }
                all.requests.push(what);
                all.choices.extend(request.choices.iter().cloned());
                let response = answer(&request);
                machine.handle(id, response);
            }
            Output::Done(result) => {
                let (end, label) = match result {
                    Ok(value) => (machine.reify(&value).to_string(), machine.deep_label(&value)),
                    Err(f) => (f.code.as_str().to_string(), f.label),
                };
                theirs.end = machine.lattice().flows(label, sees).then(|| end.clone());
                all.end = Some(end);
                return (theirs, all);
            }
            Output::Working => {}
            Output::Waiting => panic!("every request was answered"),
        }
    }
}

pub fn ok(_: &Request) -> Response {
    Response::Tool(Ok(Data::str("ok")))
}

/// Two worlds of a program, in which `SECRET` is another truth value: an observer sees the same of them,
/// though they differ.
fn alike(text: &str, observer: &LabelSpec) -> Seen {
    let world = |secret: &str| run(&text.replace("SECRET", secret), Config::default(), observer, ok);
    let ((one, all), (other, others)) = (world("true"), world("false"));
    assert_ne!(all, others, "the worlds are to differ: {text}");
    assert_eq!(one, other, "{text}");
    one
}

#[test]
fn c0_planned_data_forges() {
    let text = "tool pay(to: Str, n: Num) -> Str @ [] write control [\"U\"]\n\
                tool inbox() -> {to: Str, n: Num} @ [\"U\"] read\ntool[pay] (tool[inbox] {})";
    let mail = Data::record([("to".into(), Data::str("eve")), ("n".into(), Data::Num(9999.into()))]);
    let (_, all) = run(text, Config::default(), &PUBLIC, |_| Response::Tool(Ok(mail.clone())));
    assert_eq!((all.requests, all.end.as_deref()), (vec!["inbox []".to_string()], Some("flow")));
}

#[test]
fn c1_control_refusal_at_pc_leaks() {
    alike(
        "tool f(a: Num @ [\"S\"], b: Num @ [\"S\"]) -> Str @ [] write control [\"S\"]\n\
         try[[]] (tool[f] (if ([\"S\"]: SECRET) then args[f]{a: 1, b: 2} else [\"U\", \"S\"]: {a: 1, b: 2})) catch m. \"caught\"",
        &PUBLIC,
    );
}

#[test]
fn c2_argument_refusal_at_bound_leaks() {
    let text = "tool f(a: Num, b: Num) -> Str @ [] write control [\"S\"]\n\
                let one = args[f]{a: 1, b: 2} in\nlet two = args[f]{a: 1, b: [\"S\"]: 2} in\n\
                try[[]] (tool[f] (if ([\"S\"]: SECRET) then one else two)) catch m. \"caught\"";
    alike(text, &PUBLIC);
}

#[test]
fn c3_bare_or_record_leaks() {
    // Both are admitted, so nothing differs: a refusal of one would be at a public label.
    let text = "tool f(a: Dyn @ [\"S\"]) -> Str @ [] write control []\nlet planned = args[f]{a: \"x\"} in\n\
                try[[]] (tool[f] (if ([\"S\"]: SECRET) then \"x\" else planned)) catch m. \"caught\"";
    for secret in ["true", "false"] {
        let (theirs, all) = run(&text.replace("SECRET", secret), Config::default(), &PUBLIC, ok);
        assert_eq!((theirs.end, all.requests.len()), (None, 1), "{secret}");
    }
}

#[test]
fn c4_policy_of_parts_leaks() {
    alike(
        "tool f(x: Bool) -> Str @ [] write control [\"S\"] policy (\\a. a.x.value)\n\
         let yes = args[f]{x: true} in let no = args[f]{x: false} in\n\
         try[[]] (tool[f] (if ([\"S\"]: SECRET) then no else yes)) catch m. \"caught\"",
        &PUBLIC,
    );
}

#[test]
fn c5_a_missing_part_counts_as_the_record() {
    let text = "tool pay(to: Str, note: Option Str) -> Str @ [] write control [\"U\"]\n\
                tool[pay] ([\"U\"]: args[pay]{to: \"bob\"})";
    let (_, all) = run(text, Config::default(), &PUBLIC, ok);
    assert_eq!((all.requests.len(), all.end.as_deref()), (0, Some("flow")));
}

#[test]
fn c6_count_at_pc_leaks() {
    let text = "tool f(x: Num @ [\"S\"]) -> Str @ [] write control [\"U\", \"S\"] at_most 1\nlet a = args[f]{x: 1} in\n\
                let _ = if ([\"U\", \"S\"]: SECRET) then tool[f] a else \"no\" in\n\
                let _ = try[[\"U\"]] (tool[f] ([\"U\"]: a)) catch m. \"caught\" in 1";
    let world = |secret: &str| run(&text.replace("SECRET", secret), Config::default(), &UNTRUSTED, ok);
    let ((one, all), (other, _)) = (world("true"), world("false"));
    // One of them stops, silently for who does not see the calls: the error is not theirs to catch.
    assert_eq!((all.end.as_deref(), one.end.as_deref()), (Some("budget"), None));
    assert_eq!((one.requests, other.end.as_deref()), (other.requests, Some("1")));
}

/// Untrusted data chose the record. Approval compares no integrity, so with its labels of arguments nobody
/// would be asked.
#[test]
fn c7_asked_if_refused() {
    let text = "tool pay(to: Str) -> Str @ [] write control [] approve if_refused\n\
                let a = args[pay]{to: \"ann\"} in tool[pay] ([\"U\"]: a)";
    let (_, all) = run(text, Config::default(), &PUBLIC, |_| Response::Approve(Err("no".into())));
    assert_eq!(all.requests.len(), 1);
    assert!(all.requests[0].starts_with("approve pay"), "{all:?}");
}

const MAIL: &str = "tool book() -> List Str @ LABEL read\n\
                    tool mail(to: Str) -> Str @ [] write among [{tool: \"book\", params: {to: []}}]\n\
                    tool[mail] {to: [\"U\"]: \"bob\"}";

/// Answers the read of the address book with this, and everything else with a text.
fn book(found: Response) -> impl Fn(&Request) -> Response {
    move |request| match &request.call {
        Call::Tool { tool, .. } if &*tool.name == "book" => found.clone(),
        _ => Response::Tool(Ok(Data::str("ok"))),
    }
}

fn names(names: &[&str]) -> Data {
    Data::list(names.iter().map(|n| Data::str(*n)))
}

#[test]
fn c8_secret_set_leaks() {
    let text = MAIL.replace("LABEL", "[\"S\"]");
    let world =
        |found: &[&str]| run(&text, Config::default(), &PUBLIC, book(Response::Tool(Ok(names(found))))).0;
    assert_eq!(world(&["bob"]), world(&["ann"]));
    // With a public one the call happens, and depends on the set.
    let text = MAIL.replace("LABEL", "[]");
    let calls = |found: &[&str]| {
        run(&text, Config::default(), &PUBLIC, book(Response::Tool(Ok(names(found))))).1.requests.len()
    };
    assert_eq!((calls(&["bob"]), calls(&["ann"])), (2, 1));
}

/// A set that were asked for at first use would tell of the branch that uses it.
#[test]
fn a_set_is_read_whatever_a_secret_decides() {
    let text = "tool book() -> List Str @ [] read\n\
                tool mail(to: Str @ [\"S\"]) -> Str @ [] write control [\"S\"] among [{tool: \"book\", params: {to: []}}]\n\
                let _ = if ([\"S\"]: SECRET) then tool[mail] {to: [\"U\"]: \"bob\"} else \"no\" in 1";
    let world = |secret: &str| {
        run(
            &text.replace("SECRET", secret),
            Config::default(),
            &UNTRUSTED,
            book(Response::Tool(Ok(names(&["bob"])))),
        )
    };
    let ((one, all), (other, others)) = (world("true"), world("false"));
    assert_eq!(one, other);
    assert_eq!((one.requests.len(), all.requests.len(), others.requests.len()), (1, 2, 1));
}

#[test]
fn a_set_without_a_trusted_answer_admits_nothing() {
    let text = MAIL.replace("LABEL", "[]");
    let calls = |found: Response| {
        let (_, all) = run(&text, Config::default(), &PUBLIC, book(found));
        (all.requests.len(), all.end.expect("an end"))
    };
    let good = names(&["bob"]);
    assert_eq!(calls(Response::LabeledTool(Ok(good.clone()), PUBLIC)).0, 2);
    for wrong in [
        Response::Tool(Err("no network".into())),
        Response::Late(0),
        Response::Recall(Ok(Some(good.clone()))),
        Response::Tool(Ok(Data::str("bob"))),
        Response::LabeledTool(Ok(good.clone()), UNTRUSTED),
        Response::LabeledTool(Ok(good), LabelSpec::TOP),
    ] {
        assert_eq!(calls(wrong.clone()), (1, "flow".to_string()), "{wrong:?}");
    }
}

#[test]
fn a_request_admits_its_whole_tokens() {
    let text = |to: &str, n: &str| {
        format!(
            "tool pay(to: Str, n: Num) -> Str @ [] write among [{{params: {{to: []}}}}, {{params: {{n: []}}}}]\n\
             tool[pay] {{to: [\"U\"]: \"{to}\", n: [\"U\"]: {n}}}"
        )
    };
    let request = |input| Config {
        request: Some("pay 1500 to bob@example.org and 20 to 'Ann Lee'".into()),
        input,
        ..Config::default()
    };
    let calls = |to, n| run(&text(to, n), request(PUBLIC), &PUBLIC, ok).1.requests.len();
    assert_eq!((calls("bob@example.org", "1500"), calls("Ann Lee", "20")), (1, 1));
    for (to, n) in [("bob", "1500"), ("Ann", "20"), ("bob@example.org", "150"), ("bob@example.org", "2")] {
        assert_eq!(calls(to, n), 0, "{to} {n}");
    }
    let (_, all) = run(&text("Ann Lee", "20"), request(PUBLIC), &PUBLIC, ok);
    let choice = |param: &str, of| Choice { params: vec![param.into()], of: SetSize::Values(of) };
    // The text in quotation marks, the address, and the numbers as they are written.
    assert_eq!(all.choices, [choice("to", 4), choice("n", 2)]);
    // The request of somebody who is not trusted admits nothing.
    assert_eq!(run(&text("Ann Lee", "20"), request(UNTRUSTED), &PUBLIC, ok).1.requests.len(), 0);
}

/// The sender is secret, and so is the label of the text, for every sender.
#[test]
fn c9_stamp_without_own_label_leaks() {
    let text = "tool read() -> Dyn @ [] read fields [{path: 'from', untrusted: false, secret: true}, \
                {path: 'body', untrusted: false, secret: false, source: [\"@from\"]}]\n\
                [] ? (tool[read] {}).body";
    let world = |from: &str| {
        let mut config = Config::default();
        for (value, trusted) in [("me@x", true), ("a@x", false)] {
            config.principals.values.insert(value.into(), Principal { name: value.into(), trusted });
        }
        let mail = Data::record([("from".into(), Data::str(from)), ("body".into(), Data::str("hi"))]);
        run(text, config, &PUBLIC, |_| Response::Tool(Ok(mail.clone()))).0
    };
    assert_eq!(world("me@x"), world("a@x"));
    assert_eq!(world("me@x").end.as_deref(), Some("false"));
}

/// The type of a result is a fact about all of its parts.
#[test]
fn c9a_type_at_container_leaks() {
    let text = "tool read() -> {n: Num} @ [] read fields [{path: 'n', untrusted: false, secret: true}]\n\
                try[[]] (let _ = tool[read] {} in 1) catch m. 2";
    let world = |n: Data| {
        let answer = Data::record([("n".into(), n)]);
        run(text, Config::default(), &PUBLIC, |_| Response::Tool(Ok(answer.clone())))
    };
    let ((one, all), (other, others)) = (world(Data::Num(7.into())), world(Data::str("seven")));
    // One of them stops, silently for the public.
    assert_eq!((all.end.as_deref(), others.end.as_deref()), (Some("1"), Some("type")));
    assert_eq!((one.requests, other.end), (other.requests, None));
}

/// Which rule an operation of Python has must not depend on what a secret part is like: that it is the
/// arguments of a planned call.
#[test]
fn c11_form_of_a_part_leaks() {
    for operation in ["'index', all, 0", "'iter', all", "'attribute', {a: all.[0]}, 'a'"] {
        let text = format!(
            "tool f(a: Num) -> Str @ [] write control []\nlet planned = args[f]{{a: 1}} in\n\
             let all = [if ([\"S\"]: SECRET) then {{a: 2}} else planned] in\n[] ? prim[py]({operation})"
        );
        let world = |secret: &str| run(&text.replace("SECRET", secret), Config::default(), &PUBLIC, ok).0;
        assert_eq!(world("true"), world("false"), "{operation}");
        assert_eq!(world("true").end.as_deref(), Some("true"), "{operation}");
    }
}

/// Untrusted data chooses the tool, and the record was made for no tool, or for another one.
#[test]
fn c12_chosen_tool_forges() {
    let text = "tool pay(to: Str, n: Num) -> Str @ [] write control [\"U\"]\n\
                tool note(to: Str, n: Num) -> Str @ [] write control [\"U\"]\n\
                let record = {to: \"bob\", n: 9999} in\n\
                (if ([\"U\"]: SECRET) then tool[pay] else tool[note]) record";
    for untrusted in ["true", "false"] {
        let (_, all) = run(&text.replace("SECRET", untrusted), Config::default(), &PUBLIC, ok);
        assert_eq!((all.requests.len(), all.end.as_deref()), (0, Some("flow")), "{untrusted}");
    }
    // Arguments of a planned call are for the tool that they name.
    let planned = text.replace("{to: \"bob\", n: 9999}", "args[pay]{to: \"bob\", n: 9999}");
    let end = |untrusted| run(&planned.replace("SECRET", untrusted), Config::default(), &PUBLIC, ok).1.end;
    assert_eq!((end("true").as_deref(), end("false").as_deref()), (Some("[\"U\"]:\"ok\""), Some("type")));
}

/// Somebody is asked to confirm what is in no secret set: whoever sees the value would learn of the set.
#[test]
fn c13_asked_by_secret_set_leaks() {
    let text = "tool book() -> List Str @ [\"S\"] read\n\
                tool vouch(value: Dyn @ [\"S\"]) -> Dyn @ [] pure control [\"U\", \"S\"] approve if_refused confirm \
                among [{tool: \"book\", params: {value: []}}]\n\
                let v = tool[vouch] ([\"U\"]: \"bob\") in [\"U\"] ? v";
    let world = |found: &[&str]| {
        let found = names(found);
        run(text, Config::default(), &UNTRUSTED, |request| match &request.call {
            Call::Approve { .. } => Response::Approve(Ok(())),
            _ => Response::Tool(Ok(found.clone())),
        })
    };
    let ((one, all), (other, others)) = (world(&["bob"]), world(&["ann"]));
    assert_eq!((all.requests.len(), others.requests.len()), (1, 2));
    assert_eq!(one, other);
    assert_eq!(one.end.as_deref(), Some("[\"U\"]:false"));
}

/// A form looks at a code that only completes a call, or not: that depends on the label of the code. The
/// answer must not tell, by the label of the request, which is secret here.
#[test]
fn c14_told_of_code_leaks() {
    let text = "tool order(id: Str, code: Str @ [\"U\", \"S\"]) -> Str @ [] write completes [\"code\"] plain {code: \"no-links\"}\n\
                let code = if ([\"S\"]: SECRET) then ([\"U\"]: \"1234\") else \"1234\" in\n\
                [] ? (tool[order] {id: \"a\", code: code})";
    let config = || Config {
        request: Some("order https://shop.example/a".into()),
        input: LabelSpec::Axes { untrusted: false, secret: true },
        ..Config::default()
    };
    let world = |secret: &str| run(&text.replace("SECRET", secret), config(), &PUBLIC, ok).0;
    assert_eq!(world("true"), world("false"));
    assert_eq!(world("true").end.as_deref(), Some("true"));
}

/// A label that an argument names must not tell of an argument that only completes the call.
#[test]
fn c15_place_of_code_leaks() {
    let text = "tool order(id: Str, code: Str @ [\"S\"]) -> {text: Str} @ [] write completes [\"code\"] \
                fields [{path: 'text', untrusted: false, secret: false, source: [\"$code\"]}]\n\
                let code = [\"S\"]: \"SECRET\" in\n[] ? (tool[order] {id: \"a\", code: code}).text";
    let world = |code: &str| {
        let mut config = Config::default();
        config.principals.places.add("/home/**", PUBLIC).expect("a place");
        let answer = |_: &Request| Response::Tool(Ok(Data::record([("text".into(), Data::str("ok"))])));
        run(&text.replace("SECRET", code), config, &PUBLIC, answer).0
    };
    assert_eq!(world("/home/a"), world("/elsewhere"));
    assert_eq!(world("/home/a").end.as_deref(), Some("false"));
}

/// No rule prevents this, and no statement covers it. Where branches race, a secret that decides about a
/// request moves the later ones of its branch, and a tool that answers by the order of requests tells of it.
/// Each branch by itself makes the same requests in both worlds (`proofs/Thm/Turns.v`).
#[test]
fn racing_branches_leak() {
    let text = "tool hide(n: Num @ [\"S\"]) -> Num @ [\"S\"] write control [\"S\"]\ntool publish(n: Num) -> Num @ [] write\n\
                par [let _ = if ([\"S\"]: SECRET) then tool[hide] {n: 0} else 0 in tool[publish] {n: 1}, tool[publish] {n: 2}]";
    // Requests are answered in their order, with the number of public ones before.
    let world = |secret: &str| {
        let parsed = parse(FileId(0), &text.replace("SECRET", secret), &Globals::none(), Options::PROGRAM);
        let mut machine = Machine::new(parsed.code.expect("a program").into(), None, Config::default());
        let (mut waiting, mut seen) = (std::collections::VecDeque::new(), Vec::new());
        loop {
            match machine.poll() {
                Output::Request(id, request) => {
                    let Call::Tool { tool, args } = &request.call else { panic!("a call") };
                    let before = i64::try_from(seen.len()).expect("few requests");
                    waiting.push_back((id, Data::Num(before.into())));
                    if &*tool.name == "publish" {
                        seen.push(format!("{:?}", args[0].1));
                    }
                }
                Output::Waiting => {
                    let (id, n) = waiting.pop_front().expect("a request waits");
                    machine.handle(id, Response::Tool(Ok(n)));
                }
                Output::Working => {}
                Output::Done(result) => {
                    let value = result.expect("a value");
                    seen.sort();
                    return (seen, machine.reify(&value).to_string());
                }
            }
        }
    };
    let ((requests, one), (others, other)) = (world("true"), world("false"));
    assert_eq!(requests, others);
    assert_eq!((one.as_str(), other.as_str()), ("[1, 0]", "[0, 1]"));
}

/// From the sets of a delegated tool only those may choose whose data chooses the call.
#[test]
fn only_delegated_sources_choose_from_the_sets_of_a_delegated_tool() {
    let calls = |source: &str, delegated: &str| {
        let text = format!(
            "tool book() -> List Str @ trusted read\n\
             tool pay1(to: Str @ trusted) -> Str @ trusted write control {{sources: [\"alice\"], readers: \"*\"}} \
             among [{{tool: \"book\", params: {{to: []}}}}] {delegated}\n\
             let to = {{sources: [\"{source}\"], readers: \"*\"}}: \"bob\" in tool[pay1] (args[pay1]{{to: to}})"
        );
        let config = Config { lattice: LatticeKind::SourcesReaders, ..Config::default() };
        let found = names(&["bob"]);
        let (_, all) = run(&text, config, &LabelSpec::TOP, |_| Response::Tool(Ok(found.clone())));
        all.requests.len()
    };
    let alice = "delegated {tool: \"pay\", to: [\"alice\"]}";
    assert_eq!((calls("alice", alice), calls("eve", alice)), (2, 1));
    // From those of another tool anybody may choose.
    assert_eq!((calls("alice", ""), calls("eve", "")), (2, 2));
}
