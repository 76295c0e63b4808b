//! Noninterference of generated plans under a policy with everything that a policy can say of a tool.

use crate::generate::{Rng, policed};
use crate::run::AT;
use crate::worlds::{FUEL, Observer, Ran, drive, tool_answer};
use core_ir::{Code, Data, EffectClass, LabelSpec, ToolDecl, ToolParam, Type};
use diagnostics::FileId;
use machine::{Call, Config, Reply, Response};
use plan::{Delegate, World};
use policy::Policy;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

const POLICY: &str = r#"
[principals]
me = { email = "me@post.example", trusted = true }
bob = { email = "bob@post.example" }
[places]
"/home/**" = "trusted"
"/home/keys/**" = "trusted secret"
"/in/**" = "untrusted"
[tools.read]
effect = "read"
[tools.vault]
effect = "read"
result = "trusted secret"
[tools.known]
effect = "read"
result = "trusted"
[tools.book]
effect = "read"
result = "trusted"
[tools.mails]
effect = "read"
result = "trusted"
fields = { "[].body" = "untrusted", "[].subject" = { source = "@from" }, "[].pin" = "trusted secret" }
[tools.drafts]
effect = "read"
result = "trusted"
readers = { "[].text" = "@to" }
[tools.file]
effect = "read"
arguments = "any"
control = "any"
result = "trusted"
fields = { "" = { source = "$path" } }
[tools.post]
effect = "write"
result = "trusted"
[tools.keep]
control = "secret"
arguments = "secret"
result = "secret"
[tools.note]
control = "any"
arguments = "any"
result = "any"
[tools.pay]
effect = "write"
control = "untrusted"
bounds = { to = "trusted", n = "trusted", text = "untrusted" }
among = { to = "request | tools.book().email" }
plain = { text = "no-links" }
[tools.save]
effect = "write"
control = "untrusted"
bounds = { path = "under:/downloads/", text = "untrusted" }
[tools.visit]
effect = "write"
control = "untrusted"
result = "trusted"
among = { url = "below(request) | under:https://docs.example/" }
[tools.share]
effect = "write"
control = "untrusted"
among = { who = "principals.{*}.email", folder = "tools.pages().{keys}" }
[tools.pages]
effect = "read"
result = "trusted"
fields = { "{*}.title" = "untrusted", "{*}.pin" = "trusted secret" }
[tools.code]
effect = "write"
control = "untrusted"
result = "trusted"
bounds = { otp = "untrusted" }
completes = ["otp"]
pattern = { otp = "[0-9]{1,3}" }
[tools.pair]
effect = "write"
control = "untrusted"
among = [{ to = "tools.book().email", iban = "tools.book().iban" }]
[tools.few]
effect = "write"
control = "untrusted"
arguments = "untrusted"
at_most = 2
[tools.sign]
effect = "write"
result = "trusted"
approve = "if-refused"
[[delegate]]
to = "untrusted"
tools = ["few", "pay", "pair"]
among = { to = "tools.book().email" }
at_most = 2
"#;

/// For two plans of four.
const SETS: &str = "lattice = \"sources-readers\"\n";
/// Bound and form of the answer, for every other plan.
const OUTPUT: &str = "[output]\nbound = \"untrusted\"\nplain = \"no-links\"\n";
const REQUEST: &str = "Pay 2 to ann@post.example, read /home/a, and look at https://shop.example/offers";
/// Values that a person confirms.
const CONFIRMED: [&str; 4] = ["2", "3", "\"bob@post.example\"", "{\"a\":2,\"b\":[2]}"];
/// A text that untrusted parts have as an address.
const MARK: &str = "mark";
const MALLORY: &str = "mallory@post.example";
/// Places that untrusted parts name, too: none of them is below a place of the policy.
const PLACES: [&str; 6] = [
    "https://mallory.example/x",
    "https://shop.example@mallory.example/",
    "https://shop.example.mallory.example/offers",
    "/downloads/../mallory",
    "/downloads//mallory/../../mallory",
    "//mallory.example/downloads/a",
];

/// The tools, and the policy that says the rest of them.
fn world(policy: &Policy) -> World {
    let tool = |name: &str, params: &[(&str, Type)], result: Type, effect| {
        let param = |(n, ty): &(&str, Type)| ToolParam {
            name: (*n).into(),
            ty: ty.clone(),
            bound: LabelSpec::BOTTOM,
            default: None,
        };
        let params = params.iter().map(param).collect();
        Arc::new(ToolDecl { params, result, effect, ..ToolDecl::unknown(name.into(), AT) })
    };
    let any = || Type::option(Type::Dyn);
    let read = |name: &str, params: &[(&str, Type)], result| tool(name, params, result, EffectClass::Read);
    let write = |name: &str, params: &[(&str, Type)]| tool(name, params, Type::Dyn, EffectClass::Write);
    let person = Type::record([("email".into(), Type::Str), ("iban".into(), Type::Str)]);
    let mut tools = vec![
        read("read", &[], Type::Dyn),
        read("vault", &[], Type::Dyn),
        read("known", &[], Type::Dyn),
        read("book", &[], Type::list(person)),
        read("mails", &[], Type::Dyn),
        read("drafts", &[], Type::Dyn),
        read("file", &[("path", any())], Type::Dyn),
        write("post", &[("x", any())]),
        write("keep", &[("x", any())]),
        write("note", &[("x", any())]),
        write("pay", &[("to", Type::Str), ("n", Type::Num), ("text", Type::option(Type::Str))]),
        write("pair", &[("to", Type::Str), ("iban", Type::Str)]),
        write("save", &[("path", Type::Str), ("text", Type::option(Type::Str))]),
        write("visit", &[("url", Type::Str)]),
        write("share", &[("who", Type::Str), ("folder", Type::Str)]),
        read("pages", &[], Type::Dyn),
        write("code", &[("otp", Type::Str)]),
        write("few", &[("x", any())]),
        write("sign", &[("x", any())]),
    ];
    let free = |name: &str, params: &[&str]| crate::run::tool(name, params, LabelSpec::BOTTOM);
    tools.extend([
        free("echo", &["x"]),
        free("add", &["a", "b"]),
        free("fail", &["x"]),
        free("items", &["n"]),
    ]);
    let label = |t: &Arc<ToolDecl>| Some((t.name.clone(), policy.result_of(&t.name, &[])?));
    let results = tools.iter().filter_map(label).collect();
    let delegate =
        |d: &policy::Delegate| Delegate { to: d.to.clone(), tools: d.tools.clone(), at_most: d.at_most };
    let delegates = policy.delegates().iter().map(delegate).collect();
    World { tools, results, delegates, lattice: policy.lattice, ..World::default() }
}

fn compile(text: &str, policy: &Policy, world: &World) -> Option<Arc<Code>> {
    let (code, found) = plan::compile(FileId(0), "p.plan.py", text.into(), world);
    assert!(code.is_some() || found.iter().all(|d| d.code.starts_with('P')), "{text}\n{found:?}");
    let mut code = code?;
    let wrong = policy.apply(&mut code);
    assert!(wrong.is_empty(), "{text}\n{wrong:?}");
    Some(Arc::new(code))
}

/// Answers of each tool; those of `file` by path.
type Answers = BTreeMap<String, Value>;

/// A value out of many of every type: mostly numbers, because plans compute with them.
fn value(rng: &mut Rng) -> Value {
    let all = [
        json!(null),
        json!(true),
        json!(""),
        json!("u"),
        json!(MARK),
        json!("bob@post.example"),
        json!("carol@post.example"),
        json!([1, 2]),
        json!({"a": 1}),
        json!("/home/keys/k"),
        json!("/downloads/a.txt"),
        json!("https://shop.example/cart"),
        json!("b/c"),
        json!("12"),
    ];
    if rng.below(100) < 60 { json!(rng.below(5) as i64 - 1) } else { all[rng.below(all.len())].clone() }
}

/// Two worlds that the observer must not tell apart.
fn worlds(rng: &mut Rng, observer: Observer) -> [Answers; 2] {
    let (untrusted, secret) = (observer != Observer::Public, observer != Observer::Trusted);
    let sees_bob = observer == Observer::Bob;
    // A pair of values: two where the part is hidden. Only untrusted ones name `MALLORY`.
    let place = PLACES[rng.below(PLACES.len())];
    let marked = |v: Value| match v.as_str() {
        Some(MARK) => json!(MALLORY),
        Some("u") => json!(place),
        _ => v,
    };
    let pair = |rng: &mut Rng, hidden: bool| {
        let one = value(rng);
        [one.clone(), if hidden { value(rng) } else { one }]
    };
    let mut both = [Answers::new(), Answers::new()];
    let put = |both: &mut [Answers; 2], name: &str, pair: [Value; 2]| {
        for (world, value) in both.iter_mut().zip(pair) {
            world.insert(name.into(), value);
        }
    };
    for (name, hidden) in [
        ("read", untrusted),
        ("vault", secret),
        ("known", false),
        ("/home/a", false),
        ("/home/keys/k", secret),
        ("/in", untrusted),
        // At no place: untrusted, and as secret as the most secret place.
        ("/", true),
    ] {
        let mut values = pair(rng, hidden);
        if ["read", "/in", "/"].contains(&name) {
            values = values.map(marked);
        }
        put(&mut both, name, values);
    }
    let mut mails = [Vec::new(), Vec::new()];
    for _ in 0..1 + rng.below(3) {
        let from = ["me@post.example", "bob@post.example", "eve@post.example"][rng.below(3)];
        // Where the field is absent, the parts that name it are untrusted and secret.
        let absent = rng.below(20) == 0;
        let body = pair(rng, untrusted).map(marked);
        let is_seen = from == "me@post.example" || sees_bob && from == "bob@post.example";
        let subject = pair(rng, absent || untrusted && !is_seen);
        let pin = pair(rng, secret);
        for (i, mails) in mails.iter_mut().enumerate() {
            let mut mail = json!({"body": body[i], "subject": subject[i], "pin": pin[i]});
            if !absent {
                mail["from"] = json!(from);
            }
            mails.push(mail);
        }
    }
    put(&mut both, "mails", mails.map(Value::from));
    let titles = pair(rng, untrusted).map(marked);
    let pins = pair(rng, secret);
    let pages =
        [0, 1].map(|i| json!({"home": {"title": titles[i], "pin": pins[i]}, "news": {"title": titles[i]}}));
    put(&mut both, "pages", pages);
    let text = pair(rng, secret && !sees_bob);
    put(&mut both, "drafts", text.map(|t| json!([{"to": "bob@post.example", "text": t.to_string()}])));
    let book = json!([
        {"email": "bob@post.example", "iban": "DE12"},
        {"email": "carol@post.example", "iban": "DE34"},
    ]);
    put(&mut both, "book", [book.clone(), book]);
    both
}

/// A model is a function of what it reads, here of its hash.
fn model(call: &Call) -> Value {
    let Call::Model { messages, params, attempt, .. } = call else { unreachable!("a model") };
    let mut hasher = DefaultHasher::new();
    for m in messages.iter() {
        m.content.hash(&mut hasher);
    }
    attempt.hash(&mut hasher);
    // It obeys a text that names somebody.
    let obeys = messages.iter().any(|m| m.content.contains(MALLORY));
    let who = if obeys { MALLORY } else { "carol@post.example" };
    let mut rng = Rng::new(hasher.finish());
    let result = params.as_ref().and_then(|p| p.result.clone());
    let all = match result.map(|t| t.to_string()) {
        Some(t) if t.contains("call") => vec![
            json!({"call": "few", "few": {"x": rng.below(3)}}),
            json!({"call": "pay", "pay": {"to": "carol@post.example", "n": rng.below(3)}}),
            json!({"call": "pay", "pay": {"to": who, "n": 9, "text": if obeys { "mallory.example" } else { "" }}}),
            json!({"call": "pair", "pair": {"to": "bob@post.example", "iban": "DE34"}}),
            json!({"call": "pair", "pair": {"to": "bob@post.example", "iban": "DE12"}}),
            json!({"call": "done"}),
        ],
        Some(t) if t.contains("Bool") => vec![json!(true), json!(false), json!(null)],
        Some(t) if t.contains("Num") && !t.contains('{') => vec![json!(1), json!(2), json!(null), json!("x")],
        Some(t) if t.contains('{') => vec![json!({"n": 2, "to": who}), json!({"n": 1}), json!(null)],
        _ => vec![json!("a"), json!("bb"), json!(null), json!(who)],
    };
    all[rng.below(all.len())].clone()
}

/// A run, and what a person was asked to confirm, with the answers.
fn run(code: &Arc<Code>, policy: &Policy, answers: &Answers) -> (Ran, Vec<Value>) {
    let config = Config {
        fuel: FUEL,
        lattice: policy.lattice,
        principals: policy.principals.clone(),
        request: Some(REQUEST.into()),
        answer: policy.answer.clone(),
        ..Config::default()
    };
    let mut confirmed = Vec::new();
    let ran = drive(code, config, &mut |call| match call {
        Call::Tool { tool, args } => match &**tool.called() {
            name @ ("echo" | "add" | "fail" | "items") => Response::Tool(crate::run::answer(name, args)),
            "file" => {
                let path = args[0].1.as_str().unwrap_or("");
                let place = match path {
                    _ if path.contains("..") => "/",
                    "/home/a" | "/home/keys/k" => path,
                    _ if path.starts_with("/in/") => "/in",
                    _ => "/",
                };
                // A file says nothing of a trusted place that is not there.
                if path.starts_with("/home/") && place == "/" && !path.contains("..") {
                    return Response::Tool(Err("no such file".into()));
                }
                tool_answer(&answers[place])
            }
            name => answers.get(name).map_or(Response::Tool(Ok(Data::Null)), tool_answer),
        },
        Call::Approve { tool, args, .. } if tool.confirms => {
            let shown = args[0].1.to_json();
            let approved = CONFIRMED.contains(&shown.to_string().as_str());
            // Which values are vouched for is told to whoever sees trusted data.
            confirmed.push(if approved { shown } else { json!("refused") });
            Response::Approve(if approved { Ok(()) } else { Err("no".into()) })
        }
        Call::Approve { args, .. } => {
            // So is which calls are.
            confirmed.push(args.iter().map(|(_, d)| d.to_json()).collect());
            Response::Approve(Ok(()))
        }
        Call::Model { .. } => Response::Model(Ok(Reply::Text(model(call).to_string()))),
        other => panic!("{other:?}"),
    });
    (ran, confirmed)
}

/// `ENTAIL_PAIRS` is the number of plans; each has a pair of worlds for each of the observers.
#[test]
fn nothing_is_told_under_a_policy_with_parts_places_sets_forms_confirmations_and_delegation() {
    let number =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (count, first) = (number("ENTAIL_PAIRS", 300), number("ENTAIL_PAIRS_FROM", 0));
    let texts = [("", ""), ("", OUTPUT), (SETS, ""), (SETS, OUTPUT)];
    let policies = texts
        .map(|(lattice, output)| Policy::parse(FileId(1), &format!("{lattice}{POLICY}{output}")).unwrap());
    let declared = policies.each_ref().map(world);
    let (mut plans, mut pairs, mut differ, mut both_ended, mut skipped) = (0u64, 0u64, 0u64, 0u64, 0u64);
    let mut called: BTreeMap<String, u64> = BTreeMap::new();
    for seed in first + 1..=first + count {
        let text = policed(seed);
        let which = (seed % 4) as usize;
        let Some(code) = compile(&text, &policies[which], &declared[which]) else { continue };
        plans += 1;
        let mut rng = Rng::new(seed ^ 0x0907);
        let observers = if which < 2 { &Observer::ALL[..] } else { &Observer::OF_SETS };
        for &observer in observers {
            let worlds = worlds(&mut rng, observer);
            let mut ran = worlds.each_ref().map(|w| run(&code, &policies[which], w));
            pairs += 1;
            for (name, call) in ran.iter().flat_map(|(r, _)| r.all_calls()) {
                *called.entry(name.to_string()).or_default() += 1;
                check_call(name, call, &text);
            }
            // A person who vouches for other values tells that they are others.
            if observer != Observer::Public && ran[0].1 != ran[1].1 {
                skipped += 1;
                continue;
            }
            let seen = ran.each_mut().map(|r| r.0.seen(observer));
            assert!(
                seen[0].agrees(&seen[1]),
                "plan {seed}, {observer:?}\n{text}\nworlds: {worlds:?}\nseen: {:?}\n      {:?}",
                seen[0],
                seen[1]
            );
            both_ended += u64::from(seen.iter().all(|s| s.end.is_some()));
            let calls = |name: &str| ran[0].0.calls(name) != ran[1].0.calls(name);
            differ += u64::from(
                ["note", "pay", "few", "pair", "keep", "save", "visit", "share", "code"]
                    .iter()
                    .any(|n| calls(n)),
            );
        }
    }
    println!(
        "{plans} plans, {pairs} pairs: {both_ended} ended visibly in both worlds, in {differ} the calls differed, \
         {skipped} with other confirmations; calls: {called:?}"
    );
    // A test that sees nothing differ tests nothing.
    assert!(pairs * 2 > count && differ * 100 > pairs && both_ended * 20 > pairs && skipped * 5 < pairs);
    if count >= 300 {
        for name in [
            "pay", "pair", "few", "sign", "post", "keep", "note", "file", "mails", "ask", "approve", "save",
            "visit", "share", "code", "pages",
        ] {
            assert!(called.contains_key(name), "no run calls {name}: {called:?}");
        }
    }
}

/// Whatever the world gives, a payment goes to nobody whom only untrusted data names, and its text leads
/// nowhere.
fn check_call(name: &str, call: &Value, text: &str) {
    // Below a place everything may stand.
    let is_below = |places: &[&str]| {
        let place = call[1][0].as_str().unwrap_or("");
        places.iter().any(|p| place.starts_with(p)) && !place.contains("..")
    };
    let names_mallory = |part: &Value| part.to_string().contains("mallory");
    let told = match name {
        "visit" if is_below(&["https://shop.example/", "https://docs.example/"]) => false,
        "save" if is_below(&["/downloads/"]) => false,
        // A text that has no link or address may be untrusted.
        "pay" => {
            let text = call[1].to_string();
            names_mallory(&call[1][0]) || text.contains("mallory@") || text.contains("mallory.example")
        }
        "save" => names_mallory(&call[1][0]),
        // Trusted codes need no form.
        "pair" | "post" | "visit" | "share" | "code" => names_mallory(&call[1]),
        _ => false,
    };
    assert!(!told, "{text}\n{call}");
}
