//! Examples of a task: the model sees what it would be asked, and an answer that is read as the value.

use core_ir::{Data, Name};
use diagnostics::FileId;
use machine::{Call, Config, Machine, Output, Reply, Response};
use proptest::prelude::*;

/// A type with a value of it, both as they are written.
type Typed = (String, String);

/// A text of the language.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out + "\""
}

fn text() -> impl Strategy<Value = String> {
    let pieces = ["\"", "\\", "\n", "{x}", "[1", "Example output:\n", " ", "ä", "null", "a"];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..6).prop_map(|pieces| pieces.concat())
}

/// Types and values over the declarations of [`program`].
fn typed() -> impl Strategy<Value = Typed> {
    let written = |(ty, value): (&str, &str)| (ty.to_string(), value.to_string());
    let plain = [
        ("Bool", "true"),
        ("Level", "\"low\""),
        ("\"x\" | \"y\"", "\"y\""),
        ("1 | 2", "2"),
        ("Date", "\"2026-11-28\""),
        ("Verdict", "Accept"),
        ("Tree", "Node { of: [Leaf, Node { of: [] }] }"),
        ("Any", "{ a: [1, null] }"),
    ];
    let leaf = prop_oneof![
        prop::sample::select(plain.to_vec()).prop_map(written),
        text().prop_map(|t| ("String".into(), quoted(&t))),
        text().prop_map(|t| (
            "Verdict".into(),
            format!("Reject {{ reason: {}, level: \"high\" }}", quoted(&t))
        )),
        (-99_999i64..99_999).prop_map(|n| ("Int".into(), format!("{n}"))),
        (-99_999i64..99_999, 1u32..9).prop_map(|(n, k)| ("Number".into(), format!("{n} / {}", 10u32.pow(k)))),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), 0usize..3)
                .prop_map(|((ty, v), n)| { (format!("List[{ty}]"), format!("[{}]", vec![v; n].join(", "))) }),
            (inner.clone(), any::<bool>()).prop_map(|((ty, v), is_null)| match ty.starts_with("Option") {
                true => (ty, v),
                false => (format!("Option[{ty}]"), if is_null { "null".into() } else { v }),
            }),
            (inner.clone(), text()).prop_map(|((ty, v), key)| {
                (format!("Map[String, {ty}]"), format!("{{ {}: {v} }}", quoted(&key)))
            }),
            (inner.clone(), inner).prop_map(|((a, v), (b, w))| {
                (format!("Obj{{one: {a}, two: {b}}}"), format!("{{ two: {w}, one: {v} }}"))
            }),
        ]
    })
}

fn program((input, x): &Typed, (output, y): &Typed) -> String {
    format!(
        "enum Level {{ low, high }}\n\
         type Verdict = Accept | Reject {{ reason: String, level: Level }};\n\
         type Tree = Leaf | Node {{ of: List[Tree] }};\n\
         agent a {{ tools: [] }}\n\
         task t(x: {input}) -> {output} by agent {{\n\
             examples [{{ input: {{ x: {x} }}, output: {y} }}]\n\
             prompt \"About {{x}}.\"\n\
         }}\n\
         pipeline asked() -> {output} {{ let x: {input} = {x}; let y = run t with {{ x: x }} by a; return y; }}\n\
         pipeline meant() -> {output} {{ return {y}; }}\n"
    )
}

/// Runs a pipeline without parameters whose model answers what its messages make of it.
fn run(module: &agentlang::Module, name: &str, answer: &mut dyn FnMut(&str, &str) -> String) -> Data {
    let code = module.lower(module.pipeline(name).unwrap()).unwrap();
    let input = Data::record(std::iter::empty::<(Name, Data)>());
    let mut machine = Machine::new(code.into(), Some(input), Config::default());
    loop {
        match machine.poll() {
            Output::Request(id, request) => {
                let Call::Model { messages, .. } = &request.call else { panic!("{:?}", request.call) };
                let [system, asked] = &messages.iter().collect::<Vec<_>>()[..] else {
                    panic!("{messages:?}")
                };
                let reply = answer(&system.content, &asked.content);
                machine.handle(id, Response::Model(Ok(Reply::Text(reply))));
            }
            Output::Working => {}
            Output::Waiting => panic!("waits for nothing"),
            Output::Done(result) => return machine.reify(&result.unwrap()).data().unwrap(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn examples_are_read_as_the_values_that_they_are(input in typed(), output in typed()) {
        let text = program(&input, &output);
        let (module, found) = agentlang::check(FileId(0), &text);
        let module = module.unwrap_or_else(|| panic!("{found:#?}\n{text}"));
        let meant = run(&module, "meant", &mut |_, _| panic!("asks a model"));
        let mut asked_for = None;
        let answered = run(&module, "asked", &mut |system, asked| {
            let before = format!("Example input:\n{asked}\n\nExample output:\n");
            let shown = system.strip_prefix(&before).unwrap_or_else(|| panic!("{system}\n{before}\n{text}"));
            asked_for = Some(shown.to_string());
            shown.to_string()
        });
        prop_assert!(asked_for.is_some());
        prop_assert_eq!(answered, meant, "{:?}\n{}", asked_for, text);
    }
}
