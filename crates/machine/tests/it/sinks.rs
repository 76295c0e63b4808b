//! Forms of untrusted text (`plain`), and the answer as a sink.

use crate::counterexamples::{ok, run};
use core_ir::{AnswerSink, Data, Globals, LabelSpec, LatticeKind, Plain, Principal, Principals};
use diagnostics::FileId;
use machine::{Config, Failure, Machine, Output, Part, Request, Response};
use syntax::lam::{Options, parse};

const PUBLIC: LabelSpec = LabelSpec::BOTTOM;
const UNTRUSTED: LabelSpec = LabelSpec::Axes { untrusted: true, secret: false };
const SECRET: LabelSpec = LabelSpec::Axes { untrusted: false, secret: true };

/// A tool that takes untrusted text without links.
const MAIL: &str = "tool mail(to: Str, body: Str @ untrusted) -> Str @ [] write control [\"U\"] plain {body: \"no-links\"}\n";

fn answer(bound: LabelSpec, plain: Option<Plain>) -> Config {
    Config { answer: AnswerSink { bound, plain }, ..Config::default() }
}

/// Runs a program whose tools answer `ok`.
fn end(text: &str, config: Config) -> Result<String, Failure> {
    let parsed = parse(FileId(0), text, &Globals::none(), Options::PROGRAM);
    let code = parsed.code.unwrap_or_else(|| panic!("{text}: {:?}", parsed.diagnostics));
    let mut machine = Machine::new(code.into(), None, config);
    loop {
        match machine.poll() {
            Output::Request(id, request) => machine.handle(id, ok(&request)),
            Output::Done(result) => return result.map(|v| machine.reify(&v).to_string()),
            Output::Working => {}
            Output::Waiting => panic!("every request was answered"),
        }
    }
}

/// Number of calls that were made, and the end.
fn calls(text: &str, config: Config) -> (usize, String) {
    let (_, all) = run(text, config, &LabelSpec::TOP, ok);
    (all.requests.len(), all.end.expect("everything is seen"))
}

#[test]
fn plain_refuses_links_in_untrusted_text_alone() {
    let call = |body: &str| format!("{MAIL}tool[mail] {{to: \"bob\", body: {body}}}");
    let made = |body: &str| calls(&call(body), Config::default()).0 == 1;
    assert!(made("[\"U\"]: \"the total is 98.70\""));
    assert!(!made("[\"U\"]: \"see https://evil.example\""));
    assert!(!made("[\"U\"]: \"write to eve@evil.example\""));
    // What the program says itself is looked at by nobody.
    assert!(made("\"see https://ours.example\""));
    let refused = end(&call("[\"U\"]: \"see https://evil.example/x\""), Config::default()).unwrap_err();
    assert_eq!(refused.code.as_str(), "policy");
    assert_eq!(
        refused.message,
        "`mail`: the argument `body` is untrusted and has a link that is not in the request: \
         `https://evil.example/x`"
    );
}

#[test]
fn plain_admits_tokens_of_a_trusted_request() {
    let call = format!("{MAIL}tool[mail] {{to: \"bob\", body: [\"U\"]: \"see https://ours.example, ok?\"}}");
    let request = |text: &str, input| Config { request: Some(text.into()), input, ..Config::default() };
    assert_eq!(calls(&call, request("mail bob https://ours.example", PUBLIC)).0, 1);
    assert_eq!(calls(&call, request("mail bob https://ours.example/x", PUBLIC)).0, 0);
    // The request of somebody who is not trusted admits nothing, and a secret one would be told of.
    assert_eq!(calls(&call, request("mail bob https://ours.example", UNTRUSTED)).0, 0);
    assert_eq!(calls(&call, request("mail bob https://ours.example", SECRET)).0, 0);
}

/// The label of a set is that of the field that it names, and of what the field is in.
#[test]
fn a_set_of_a_field_has_the_label_of_the_field() {
    let end = |path: &str, result: Data, value: &str| {
        let rule = |path: &str| format!("{{path: \"{path}\", untrusted: true, secret: false}}");
        let text = format!(
            "tool profile() -> {{email: Str, bio: Str, tags: List Str}} @ [] read fields [{}, {}]\n\
             tool fill(value: Str) -> Str @ [] write among [{{tool: \"profile\", params: {{value: ['{path}']}}}}]\n\
             tool[fill] {{value: [\"U\"]: \"{value}\"}}",
            rule("bio"),
            rule("tags[]")
        );
        let answer = |request: &Request| match &request.call {
            machine::Call::Tool { tool, .. } if &*tool.name == "profile" => {
                Response::Tool(Ok(result.clone()))
            }
            _ => ok(request),
        };
        let (_, all) = run(&text, Config::default(), &LabelSpec::TOP, answer);
        all.end.expect("everything is seen")
    };
    let profile = |bio: Data| {
        let tags = Data::list([Data::str("eve")]);
        Data::record([("email".into(), Data::str("me")), ("bio".into(), bio), ("tags".into(), tags)])
    };
    let whole = || profile(Data::str("eve"));
    assert_eq!(end("email", whole(), "me"), "[\"U\"]:\"ok\"");
    assert_eq!(end("email", whole(), "eve"), "flow");
    // What is in the value counts, and `{*}` is every field.
    for path in ["bio", "tags", "{*}"] {
        assert_eq!(end(path, whole(), "eve"), "flow", "{path}");
    }
    assert_eq!(end("{keys}", whole(), "bio"), "[\"U\"]:\"ok\"");
    // That another part has not its type is for nobody to know who sees this one alone.
    assert_eq!(end("email", profile(Data::Null), "me"), "[\"U\"]:\"ok\"");
    assert_eq!(end("email", Data::record([("email".into(), Data::Null)]), "me"), "flow");
}

/// Untrusted data chooses what is below a place, at a site of the request, or one of the stated values.
#[test]
fn untrusted_data_chooses_out_of_what_is_stated() {
    let end = |source: &str, value: &str, config: Config| {
        let text = format!(
            "tool open(url: Str) -> Str @ [] write among [{{{source}, params: {{url: []}}}}]\n\
             tool[open] {{url: [\"U\"]: {value}}}"
        );
        calls(&text, config).1
    };
    let made = "[\"U\"]:\"ok\"";
    let below = |value: &str| end("below: \"/downloads/\"", value, Config::default());
    // A literal beginning needs no label of its own: the whole text is looked at.
    assert_eq!(below("prim[format](\"/downloads/\", \"bill.pdf\")"), made);
    assert_eq!(below("\"/downloads/../etc/passwd\""), "flow");
    assert_eq!(below("[\"S\"]: \"/downloads/a\""), "flow");
    let stated = |value: &str| end("values: [\"a\", \"b\"]", value, Config::default());
    assert_eq!((&*stated("\"b\""), &*stated("\"c\"")), (made, "flow"));
    let site = |value: &str, input: LabelSpec| {
        let request = Some("buy it at https://shop.example/offers".into());
        end("sites: true", value, Config { request, input, ..Config::default() })
    };
    assert_eq!(site("\"https://shop.example/cart\"", PUBLIC), made);
    assert_eq!(site("\"https://ads.example/cart\"", PUBLIC), "flow");
    // The whole label of the request counts.
    assert_eq!(site("\"https://shop.example/cart\"", UNTRUSTED), "flow");
    assert_eq!(site("\"https://shop.example/cart\"", SECRET), "flow");
}

/// The result of a call that succeeds doesn't depend on the code, and a failure does.
#[test]
fn an_argument_that_completes_a_call_is_not_in_its_result() {
    const ORDER: &str = "tool order(id: Str @ untrusted, code: Str @ untrusted) -> Str @ [] write completes [\"code\"] \
                         pattern {code: '[0-9]{4}'}\n";
    let end = |args: &str, answer: fn(&Request) -> Response| {
        let text = format!("{ORDER}try[[]] tool[order] {args} catch refusal e. e.code");
        run(&text, Config::default(), &LabelSpec::TOP, answer).1.end.expect("everything is seen")
    };
    let failed = |_: &Request| Response::Tool(Err("no".into()));
    let code = "{id: \"a\", code: [\"U\"]: \"1234\"}";
    assert_eq!(end(code, ok), "\"ok\"");
    // The handler may not know of the code, so the run ends.
    assert_eq!(end(code, failed), "tool");
    assert_eq!(end(code, |_| Response::Tool(Ok(Data::Null))), "type");
    // Other arguments count as always.
    assert_eq!(end("{id: [\"U\"]: \"a\", code: \"1234\"}", ok), "[\"U\"]:\"ok\"");
    assert_eq!(end("([\"U\"]: {id: \"a\", code: \"1234\"})", ok), "[\"U\"]:\"ok\"");
    // All of it matches.
    for wrong in ["12345", "1234 x", ""] {
        assert_eq!(end(&code.replace("1234", wrong), ok), "policy", "{wrong}");
    }
    assert_eq!(end("{id: \"a\", code: \"as the program says\"}", ok), "\"ok\"");
}

/// Each principal that `to` names must be a reader of the body.
#[test]
fn recipients_are_among_the_readers() {
    let end = |lattice: LatticeKind, label: &str, to: &str| {
        let mut principals = Principals::default();
        for name in ["alice", "bob"] {
            let principal = Principal { name: name.into(), trusted: false };
            principals.values.insert(format!("{name}@x").into(), principal);
        }
        let text = format!(
            "tool mail(to: Dyn, body: Str @ secret) -> Str @ [] write includes {{body: [\"to\"]}}\n\
             tool[mail] {{to: {to}, body: {label}\"text\"}}"
        );
        calls(&text, Config { lattice, principals, ..Config::default() })
    };
    let sent = |readers: &str, to: &str| {
        let label = format!("{{sources: [], readers: {readers}}}: ");
        let (calls, end) = end(LatticeKind::SourcesReaders, &label, to);
        assert!(calls == 1 || end == "policy", "{end}");
        calls == 1
    };
    assert!(sent("[\"alice\"]", "\"alice@x\""));
    assert!(sent("[\"alice\", \"bob\"]", "[\"alice@x\", \"bob@x\"]"));
    assert!(sent("[\"alice\"]", "[]") && sent("[\"alice\"]", "null"));
    assert!(!sent("[\"alice\"]", "\"bob@x\"") && !sent("[\"alice\"]", "[\"alice@x\", \"bob@x\"]"));
    // Whom nobody knows is told what is public.
    assert!(!sent("[\"alice\"]", "\"eve@x\"") && !sent("[\"alice\"]", "\"alice\"") && !sent("[]", "7"));
    assert!(sent("\"*\"", "\"eve@x\""));
    // In a lattice without readers nobody may read what is secret.
    assert_eq!(end(LatticeKind::TwoAxis, "[\"S\"]: ", "\"alice@x\""), (0, "policy".into()));
    assert_eq!(end(LatticeKind::TwoAxis, "", "\"alice@x\"").0, 1);
}

/// A text that is not plain is asked about like what a bound refuses; a set that admits it lets it pass.
#[test]
fn a_text_that_is_not_plain_is_asked_about_if_refused() {
    let made = |approve: &str, body: &str| {
        let text = format!(
            "tool links() -> List Str @ [] read\n\
             tool mail(body: Str @ untrusted) -> Str @ [] write plain {{body: \"no-links\"}} {approve}\n\
             tool open(url: Str) -> Str @ [] write among [{{tool: \"links\", params: {{url: []}}}}] plain {{url: \"no-links\"}} {approve}\n\
             {body}"
        );
        let answer = |request: &Request| match &request.call {
            machine::Call::Tool { tool, .. } if &*tool.name == "links" => {
                Response::Tool(Ok(Data::list([Data::str("https://ours.example")])))
            }
            machine::Call::Approve { .. } => Response::Approve(Ok(())),
            _ => ok(request),
        };
        let (_, all) = run(&text, Config::default(), &LabelSpec::TOP, answer);
        let asked = all.requests.iter().filter(|r| r.starts_with("approve")).count();
        (asked, all.end.expect("everything is seen"))
    };
    let link = "tool[mail] {body: [\"U\"]: \"see https://evil.example\"}";
    assert_eq!(made("approve if_refused", link), (1, "[\"U\"]:\"ok\"".into()));
    assert_eq!(made("approve", link), (0, "policy".into()));
    let harmless = "tool[mail] {body: [\"U\"]: \"the total is 98.70\"}";
    assert_eq!(made("approve if_refused", harmless), (0, "[\"U\"]:\"ok\"".into()));
    // What is out of a set has been chosen from what is vouched for.
    let ours = "tool[open] {url: [\"U\"]: \"https://ours.example\"}";
    assert_eq!(made("approve if_refused", ours), (0, "[\"U\"]:\"ok\"".into()));
    assert_eq!(made("approve if_refused", &ours.replace("ours", "evil")).0, 1);
}

#[test]
fn plain_looks_at_a_planned_call_as_at_another() {
    let planned = |body: &str| {
        format!(
            "{MAIL}let a = args[mail]{{to: \"bob\", body: {body}}} in if [\"U\"]: true then tool[mail] a else null"
        )
    };
    // The literal of the plan is trusted, although untrusted data decides that it is sent.
    assert_eq!(calls(&planned("\"https://ours.example\""), Config::default()).0, 1);
    assert_eq!(calls(&planned("[\"U\"]: \"https://evil.example\""), Config::default()), (0, "policy".into()));
}

#[test]
fn plain_lets_pass_what_a_set_admits() {
    let text = |value: &str| {
        format!(
            "tool links() -> List Str @ [] read\n\
             tool open(url: Str) -> Str @ [] write among [{{tool: \"links\", params: {{url: []}}}}] plain {{url: \"no-links\"}}\n\
             tool[open] {{url: [\"U\"]: \"{value}\"}}"
        )
    };
    let set = |request: &Request| match &request.call {
        machine::Call::Tool { tool, .. } if &*tool.name == "links" => {
            Response::Tool(Ok(Data::list([Data::str("https://ours.example")])))
        }
        _ => ok(request),
    };
    let ends = |value: &str| run(&text(value), Config::default(), &LabelSpec::TOP, set).1.end;
    assert_eq!(ends("https://ours.example").as_deref(), Some("[\"U\"]:\"ok\""));
    assert_eq!(ends("https://evil.example").as_deref(), Some("flow"));
}

#[test]
fn a_verdict_of_plain_has_the_label_of_its_argument() {
    // A handler that may know what is untrusted catches it, another does not.
    let caught = |label: &str| {
        end(
            &format!(
                "{MAIL}try[{label}] (tool[mail] {{to: \"bob\", body: [\"U\"]: \"@eve\"}}) catch refusal m. m.code"
            ),
            Config::default(),
        )
    };
    assert_eq!(caught("[\"U\"]").unwrap(), "[\"U\"]:\"refused\"");
    assert_eq!(caught("[]").unwrap_err().code.as_str(), "policy");
    let refused = caught("[]").unwrap_err();
    let machine = Machine::new(
        parse(FileId(0), "1", &Globals::none(), Options::PROGRAM).code.unwrap().into(),
        None,
        Config::default(),
    );
    assert_eq!(machine.lattice().show(refused.label), "[\"U\"]");
}

#[test]
fn an_answer_above_its_bound_is_refused() {
    let program = "let a = 1 in [\"S\"]: \"salary\"";
    assert_eq!(end(program, answer(SECRET, None)).unwrap(), "[\"S\"]:\"salary\"");
    let refused = end(program, answer(UNTRUSTED, None)).unwrap_err();
    assert_eq!(
        (refused.code.as_str(), &*refused.message),
        ("flow", "the answer must be labeled [\"U\"] at most")
    );
    let refusal = refused.refusal.as_ref().unwrap();
    assert_eq!((&refusal.part, refusal.name.as_ref()), (&Part::Answer, None));
    // The place is that of the answer.
    assert_eq!(refused.span.start as usize, program.find('[').unwrap());
    // What is inside counts.
    assert_eq!(end("{a: [\"S\"]: 1}", answer(UNTRUSTED, None)).unwrap_err().code.as_str(), "flow");
    assert!(end("{a: [\"U\"]: 1}", answer(UNTRUSTED, None)).is_ok());
}

#[test]
fn an_untrusted_answer_is_plain() {
    let plain = || answer(UNTRUSTED, Some(Plain::NoLinks));
    assert!(end("[\"U\"]: \"the total is 98.70\"", plain()).is_ok());
    assert!(end("\"https://ours.example\"", plain()).is_ok());
    let refused = end("{a: [\"U\"]: [\"see evil.example\"]}", plain()).unwrap_err();
    assert_eq!(refused.code.as_str(), "policy");
    // The message is an answer, too.
    assert!(!refused.message.contains("evil"), "{}", refused.message);
    // A function shows nothing that can be looked at.
    assert_eq!(end("[\"U\"]: (\\x. x)", plain()).unwrap_err().code.as_str(), "policy");
    let request = Config { request: Some("look at evil.example".into()), ..plain() };
    assert!(end("[\"U\"]: \"see evil.example\"", request).is_ok());
}

#[test]
fn the_message_of_an_error_is_an_answer() {
    let fails = "fail ([\"U\"]: \"go to evil.example\")";
    assert!(end(fails, Config::default()).unwrap_err().message.contains("evil"));
    for config in [answer(PUBLIC, None), answer(UNTRUSTED, Some(Plain::NoLinks))] {
        let failed = end(fails, config).unwrap_err();
        assert_eq!(failed.code.as_str(), "fail");
        assert!(!failed.message.contains("evil"), "{}", failed.message);
    }
    let failed = end("fail ([\"U\"]: \"no bill\")", answer(UNTRUSTED, Some(Plain::NoLinks))).unwrap_err();
    assert!(failed.message.contains("no bill"));
}
