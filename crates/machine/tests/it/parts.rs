//! Labels of parts of a tool's result: the rule of `docs/calculus.md` §10, and its counterexamples.

use core_ir::{Data, Globals, LabelSpec, LatticeKind, Principal, Principals};
use diagnostics::FileId;
use machine::{Call, Config, Failure, Machine, Output, Response};
use serde_json::{Value as Json, json};
use syntax::lam::{Options, parse};

/// A run of a program whose tools give these answers.
fn run(text: &str, config: Config, answer: impl Fn(&str) -> Response) -> (Machine, Result<String, Failure>) {
    let parsed = parse(FileId(0), text, &Globals::none(), Options::PROGRAM);
    let code = parsed.code.unwrap_or_else(|| panic!("{text}: {:?}", parsed.diagnostics));
    let mut machine = Machine::new(code.into(), None, config);
    loop {
        match machine.poll() {
            Output::Request(id, request) => {
                let Call::Tool { tool, .. } = &request.call else { panic!("no tool was asked") };
                let response = answer(&tool.name);
                machine.handle(id, response);
            }
            Output::Done(result) => {
                let result = result.map(|v| machine.reify(&v).to_string());
                return (machine, result);
            }
            Output::Working => {}
            Output::Waiting => panic!("every request was answered"),
        }
    }
}

fn data(json: Json) -> Data {
    Data::from_json(&json).expect("data")
}

fn ok(json: Json) -> impl Fn(&str) -> Response {
    move |_| Response::Tool(Ok(data(json.clone())))
}

/// The principals of these addresses; the first is trusted.
fn known() -> Principals {
    let mut known = Principals::default();
    for (value, name, trusted) in [("me@x", "me", true), ("a@x", "alice", false), ("b@x", "bob", false)] {
        known.values.insert(value.into(), Principal { name: name.into(), trusted });
    }
    known
}

/// A call of a tool whose result has these labels; `at` follows it.
fn labeled(fields: &str, at: &str, config: Config, answer: impl Fn(&str) -> Response) -> String {
    let text = format!("tool read() -> Dyn @ [] read fields {fields}\n(tool[read] {{}}){at}");
    run(&text, config, answer).1.unwrap_or_else(|e| panic!("{text}: {e:?}"))
}

const U: &str = "untrusted: true, secret: false";
const S: &str = "untrusted: false, secret: true";
const NONE: &str = "untrusted: false, secret: false";

fn rule(path: &str, rest: &str) -> String {
    format!("[{{path: '{path}', {rest}}}]")
}

#[test]
fn a_part_has_the_label_of_its_container_and_its_own() {
    let mails = json!([{"id": "1", "body": {"text": "hi"}}, {"id": "2", "body": null, "cc": []}]);
    let fields = format!("[{{path: '[].body', {U}}}]");
    assert_eq!(
        labeled(&fields, "", Config::default(), ok(mails.clone())),
        r#"[{id: "1", body: ["U"]:{text: ["U"]:"hi"}}, {id: "2", body: ["U"]:null, cc: []}]"#
    );
    assert_eq!(labeled(&fields, ".[0].id", Config::default(), ok(mails.clone())), "\"1\"");
    assert_eq!(labeled(&fields, ".[0].body.text", Config::default(), ok(mails.clone())), r#"["U"]:"hi""#);
    // A label below that of the container has no effect.
    let fields = format!("[{{path: '[]', {U}}}, {{path: '[].id', {NONE}}}]");
    assert_eq!(labeled(&fields, ".[0].id", Config::default(), ok(mails)), r#"["U"]:"1""#);
    // What the tool states is about all of it.
    let stated =
        |_: &str| Response::LabeledTool(Ok(data(json!({"a": 1}))), LabelSpec::Exact(data(json!(["S"]))));
    assert_eq!(labeled(&rule("a", U), "", Config::default(), stated), r#"["S"]:{a: ["U","S"]:1}"#);
}

#[test]
fn arguments_are_in_every_part() {
    let text = format!(
        "tool read(q: Dyn @ untrusted secret) -> Dyn @ [] read fields {}\ntool[read] {{q: [\"S\"]: 1}}",
        rule("a", U)
    );
    let (_, result) = run(&text, Config::default(), ok(json!({"a": 1, "b": 2})));
    assert_eq!(result.unwrap(), r#"["S"]:{a: ["U","S"]:1, b: ["S"]:2}"#);
}

#[test]
fn a_rule_that_names_a_field_counts_before_one_about_all() {
    let fields = format!(
        "[{{path: '{{*}}', {U}}}, {{path: 'a', {NONE}}}, {{path: '{{*}}.x', {S}}}, {{path: 'a.y', {S}}}]"
    );
    assert_eq!(
        labeled(&fields, "", Config::default(), ok(json!({"a": {"x": 1, "y": 2, "z": 3}, "b": {"x": 1}}))),
        r#"{a: {x: ["S"]:1, y: ["S"]:2, z: 3}, b: ["U"]:{x: ["U","S"]:1}}"#
    );
}

#[test]
fn a_result_of_another_form_has_the_labels_that_lead_to_it() {
    let fields = format!("[{{path: '[].body', {U}}}, {{path: '[]', {S}}}]");
    for (answer, expected) in [
        (json!([]), "[]"),
        (json!({"body": 1}), "{body: 1}"),
        (json!("x"), "\"x\""),
        (json!([[{"body": 1}], 2]), r#"[["S"]:[["S"]:{body: ["S"]:1}], ["S"]:2]"#),
    ] {
        assert_eq!(labeled(&fields, "", Config::default(), ok(answer)), expected);
    }
}

#[test]
fn a_field_names_the_sources_of_another() {
    let fields = rule("[].body", &format!("{NONE}, source: [\"@from\"]"));
    let label = |from: Json| {
        let config = Config { principals: known(), ..Config::default() };
        labeled(&fields, ".[0].body", config, ok(json!([{"from": from, "body": 1}])))
    };
    assert_eq!(label(json!("me@x")), "1");
    assert_eq!(label(json!(["me@x", "me@x"])), "1");
    for untrusted in
        [json!("a@x"), json!(["me@x", "a@x"]), json!("eve@x"), json!("me"), json!(null), json!([]), json!(3)]
    {
        assert_eq!(label(untrusted.clone()), r#"["U"]:1"#, "{untrusted}");
    }
    // Nothing says whose it is.
    let config = Config { principals: known(), ..Config::default() };
    assert_eq!(labeled(&fields, ".[0].body", config, ok(json!([{"body": 1}]))), r#"["U","S"]:1"#);
    let config = Config { lattice: LatticeKind::SourcesReaders, principals: known(), ..Config::default() };
    let text = format!("tool read() -> Dyn @ trusted read fields {fields}\n(tool[read] {{}}).[0].body");
    let by = |from: Json| run(&text, config.clone(), ok(json!([{"from": from, "body": 1}]))).1.unwrap();
    assert_eq!(by(json!("a@x")), r#"{"sources":["alice"],"readers":"*"}:1"#);
    assert_eq!(by(json!(["a@x", "b@x", "me@x"])), r#"{"sources":["alice","bob"],"readers":"*"}:1"#);
    assert_eq!(by(json!("eve@x")), r#"{"sources":"*","readers":"*"}:1"#);
}

#[test]
fn fields_name_the_readers_of_the_others() {
    let fields = rule("[]{*}", &format!("{NONE}, readers: [\"@to\", \"@from\"]"));
    let config = Config { lattice: LatticeKind::SourcesReaders, principals: known(), ..Config::default() };
    let text = format!("tool read() -> Dyn @ trusted read fields {fields}\n(tool[read] {{}}).[0]");
    let by =
        |to: Json| run(&text, config.clone(), ok(json!([{"from": "me@x", "body": 1, "to": to}]))).1.unwrap();
    assert_eq!(
        by(json!(["a@x", "eve@x"])),
        r#"{from: "me@x", body: {"sources":[],"readers":["alice","me"]}:1, to: ["a@x", "eve@x"]}"#
    );
    assert_eq!(by(json!([])), r#"{from: "me@x", body: {"sources":[],"readers":["me"]}:1, to: []}"#);
    // In a lattice without readers everything that has some is secret.
    let config = Config { principals: known(), ..Config::default() };
    let two = labeled(&fields, ".[0].body", config, ok(json!([{"from": "me@x", "body": 1, "to": "a@x"}])));
    assert_eq!(two, r#"["S"]:1"#);
}

#[test]
fn a_label_that_depends_on_itself_is_top() {
    let fields = format!(
        "[{{path: 'a', {NONE}, source: [\"@b\"]}}, {{path: 'b', {NONE}, source: [\"@a\"]}}, \
         {{path: 'c', {NONE}, source: [\"@c\"]}}, {{path: 'd', {NONE}, source: [\"@e\"]}}, {{path: 'e', {NONE}}}]"
    );
    let config = Config { principals: known(), ..Config::default() };
    assert_eq!(
        labeled(&fields, "", config, ok(json!({"d": 1, "e": "me@x", "a": "me@x", "b": "me@x", "c": "me@x"}))),
        r#"{d: 1, e: "me@x", a: ["U","S"]:"me@x", b: ["U","S"]:"me@x", c: ["U","S"]:"me@x"}"#
    );
}

#[test]
fn the_type_of_a_result_is_a_fact_about_all_its_parts() {
    let text = |rest: &str| format!("tool read() -> List {{id: Str}} @ [] read {rest}\ntool[read] {{}}");
    let fields = format!("fields {}", rule("[].id", U));
    let error = |text: String, answer: Json| {
        let (machine, result) = run(&text, Config::default(), ok(answer));
        let e = result.unwrap_err();
        (e.code.as_str(), machine.lattice().show(e.label))
    };
    let named = |(code, label): (&'static str, String)| format!("{code} {label}");
    assert_eq!(named(error(text(&fields), json!([{"id": 1}]))), r#"type ["U"]"#);
    // There is no part with a label of its own.
    assert_eq!(named(error(text(&fields), json!([3]))), "type []");
    assert_eq!(named(error(text(""), json!([{"id": 1}]))), "type []");
}

#[test]
fn a_failure_may_quote_every_part() {
    let failed = |fields: &str| {
        let text = format!("tool read() -> Dyn @ [] read fields {fields}\ntool[read] {{}}");
        let (machine, result) = run(&text, Config::default(), |_| Response::Tool(Err("no".into())));
        machine.lattice().show(result.unwrap_err().label)
    };
    assert_eq!(failed("[]"), "[]");
    assert_eq!(failed(&rule("[].id", U)), r#"["U"]"#);
    assert_eq!(failed(&rule("[].id", &format!("{NONE}, source: [\"@a\"]"))), r#"["U","S"]"#);
}

#[test]
fn a_set_has_the_labels_of_the_parts_that_it_is_read_from() {
    let text = |fields: &str| {
        format!(
            "tool book() -> List {{name: Str, email: Str}} @ [] read fields {fields}\n\
             tool mail(to: Str) -> Str @ [] write among [{{tool: \"book\", params: {{to: [\"email\"]}}}}]\n\
             tool[mail] {{to: [\"U\"]: \"b\"}}"
        )
    };
    let book = ok(json!([{"name": "bob", "email": "b"}]));
    let answer = |name: &str| match name {
        "book" => book(name),
        _ => Response::Tool(Ok(Data::str("sent"))),
    };
    assert!(run(&text("[]"), Config::default(), answer).1.is_ok());
    // What another part is labeled says nothing of this one.
    assert!(run(&text(&rule("[].name", U)), Config::default(), answer).1.is_ok());
    for path in ["[].email", "[]", "[]{*}"] {
        let refused = run(&text(&rule(path, U)), Config::default(), answer).1.unwrap_err();
        assert_eq!(refused.code.as_str(), "flow", "{path}");
    }
}

#[test]
fn an_argument_names_the_place_of_a_result() {
    let text = |path: &str| {
        format!(
            "tool read(path: Dyn @ untrusted secret) -> Dyn @ [] read \
             fields [{{path: '', {NONE}, source: [\"$path\"]}}, {{path: 'a', {S}}}]\n\
             tool[read] {{path: {path}}}"
        )
    };
    let mut principals = Principals::default();
    let secret = LabelSpec::Axes { untrusted: false, secret: true };
    principals.places.add("/home/me/**", LabelSpec::BOTTOM).unwrap();
    principals.places.add("/home/me/keys/**", secret).unwrap();
    let config = Config { principals, ..Config::default() };
    let read = |path: &str| run(&text(path), config.clone(), ok(json!({"a": 1}))).1.unwrap();
    assert_eq!(read("'/home/me/x'"), r#"{a: ["S"]:1}"#);
    assert_eq!(read("'/home/me/keys/x'"), r#"["S"]:{a: ["S"]:1}"#);
    assert_eq!(read("['/home/me/x', '/home/me/keys/x']"), r#"["S"]:{a: ["S"]:1}"#);
    // At no place, or at none that is certain: from anyone, and as secret as any place.
    for other in ["'/etc/x'", "'/home/me/../x'", "[]", "3", "null", "['/home/me/x', 3]"] {
        assert_eq!(read(other), r#"["U","S"]:{a: ["U","S"]:1}"#, "{other}");
    }
    // A failure has the labels that are stated, and that of the place.
    let failed = |path: &str| {
        let (machine, result) = run(&text(path), config.clone(), |_| Response::Tool(Err("no".into())));
        machine.lattice().show(result.unwrap_err().label)
    };
    assert_eq!(failed("'/home/me/x'"), r#"["S"]"#);
    assert_eq!(failed("'/etc/x'"), r#"["U","S"]"#);
}

#[test]
fn how_many_items_there_are_is_known_to_whoever_sees_the_list() {
    let fields = format!("[{{path: '[].body', {U}}}, {{path: '[]', {NONE}}}]");
    let of = |expression: &str| {
        let text = format!(
            "tool read() -> Dyn @ [] read fields {fields}\nlet mails = tool[read] {{}} in {expression}"
        );
        run(&text, Config::default(), ok(json!([{"id": 1, "body": "x"}, {"id": 2}]))).1.unwrap()
    };
    assert_eq!(of("prim[length](mails)"), "2");
    assert_eq!(of("prim[keys](mails.[0])"), r#"["id", "body"]"#);
    assert_eq!(of("prim[has](mails.[0], 'body')"), "true");
    assert_eq!(of("prim[has]([\"S\"]: mails.[0], 'id')"), r#"["S"]:true"#);
    assert_eq!(of("prim[py]('b.len', [mails], {})"), "`ok 2");
    assert_eq!(of("prim[py]('iter', mails)"), r#"`ok [{id: 1, body: ["U"]:"x"}, {id: 2}]"#);
    assert_eq!(of("prim[py]('iter', mails.[0])"), r#"`ok ["id", "body"]"#);
    assert_eq!(of("prim[py]('index', mails, -1)"), "`ok {id: 2}");
    assert_eq!(of("prim[py]('index', mails.[0], 'id')"), "`ok 1");
    assert_eq!(of("prim[py]('index', mails, [\"S\"]: 1)"), r#"["S"]:`ok {id: 2}"#);
    assert_eq!(of("prim[py]('attribute', mails.[0], 'body')"), r#"`ok ["U"]:"x""#);
    // That there is none is known to the same.
    assert!(of("prim[py]('index', mails, 7)").starts_with("`raise {class: \"IndexError\""));
    assert!(of("prim[py]('index', mails.[0], 'cc')").starts_with("`raise {class: \"KeyError\""));
    // Everything else looks at all of it.
    assert_eq!(of("prim[py]('eq', mails, mails)"), r#"["U"]:true"#);
    assert_eq!(of("prim[length]('abc')"), "3");
}
