//! Output compiles to the same term again: the fixtures of all front ends, and programs of each kind.

use convert::{Target, codes, convert};
use core_ir::Code;
use diagnostics::{Diagnostic, FileId, Level};
use frontend_kit::doc::Limits;
use frontend_kit::{File, Project};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn suite() -> Vec<PathBuf> {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/frontends")];
    let mut out = Vec::new();
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()) {
            match entry.is_dir() {
                true => open.push(entry),
                false => out.push(entry),
            }
        }
    }
    out.retain(|p| File::is_read(&p.display().to_string()));
    out.sort();
    out
}

/// The units of a file, with the others of its folder beside it.
fn units(path: &Path) -> Vec<(String, Arc<Code>)> {
    let read = |p: &Path| {
        let text: Arc<str> = std::fs::read_to_string(p).unwrap().into();
        File::read(FileId(0), &p.display().to_string(), &text, &Limits::default())
    };
    let beside = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().path());
    let mut beside: Vec<PathBuf> =
        beside.filter(|p| p != path && p.is_file() && File::is_read(&p.display().to_string())).collect();
    beside.sort();
    let files = std::iter::once(read(path)).chain(beside.iter().map(|p| read(p))).collect();
    let compiled = frontends::compile(&Project { files, ..Project::default() }, 0);
    let units = compiled.map(|c| c.units).unwrap_or_default();
    units.into_iter().map(|u| (u.name, u.code)).collect()
}

#[test]
fn every_fixture_is_written_or_told_why_not() {
    let mut written = [0usize; 3];
    let mut all = 0;
    for path in suite() {
        for (name, code) in units(&path) {
            all += 1;
            for (i, (word, target)) in Target::ALL.into_iter().enumerate() {
                let converted = convert(&code, &name, target);
                let errors: Vec<&Diagnostic> =
                    converted.found.iter().filter(|d| d.level == Level::Error).collect();
                // A text, or at least one reason, never both.
                assert_ne!(converted.text.is_some(), !errors.is_empty(), "{} {name} {word}", path.display());
                assert!(errors.iter().all(|d| d.code == codes::CANNOT && !d.help.is_empty()), "{errors:?}");
                written[i] += usize::from(converted.text.is_some());
            }
            // The calculus can say everything, if each tool has a name of its own.
            let mut names: Vec<&str> = code.tools.iter().map(|t| &*t.name).collect();
            names.sort();
            let unique = names.windows(2).all(|pair| pair[0] != pair[1]);
            assert_eq!(
                convert(&code, &name, Target::Lam).text.is_some(),
                unique,
                "{} {name}",
                path.display()
            );
        }
    }
    let [agent, spec, lam] = written;
    assert!(lam + 2 > all && all > 70 && agent > 10 && spec > 20, "{written:?} of {all}");
}

fn lam(text: &str) -> Arc<Code> {
    let parsed = agentlang::calculus::compile(FileId(0), text);
    assert!(parsed.code.is_some(), "{text}: {:?}", parsed.diagnostics);
    Arc::new(parsed.code.unwrap())
}

fn written(text: &str, target: Target) -> String {
    let converted = convert(&lam(text), "desk", target);
    converted.text.unwrap_or_else(|| panic!("{text}: {:?}", converted.found))
}

fn lacks(text: &str, target: Target) -> String {
    let converted = convert(&lam(text), "desk", target);
    assert_eq!(converted.text, None, "{text}");
    let first = converted.found.iter().find(|d| d.level == Level::Error).expect("a reason");
    first.message.clone()
}

const SORT: &str = r#"llm "You sort mail." {model: "m", purpose: "sort"}"#;
const ANSWER: &str = r#"llm "You answer \"politely\"." {model: "m", temperature: 0.5, purpose: "answer"}"#;
const LOOP: &str = "tool find(input: Dyn) -> Dyn write \"Finds.\"\ntool see(input: Dyn) -> Dyn write by {mcp: \"eyes\"}\n\
    fix[7 \"as we say\"] (\\self. \\x: Str. let t = llm \"p\" {model: \"m\", top_p: 1, tools: [find, see], purpose: \"a\"} x in\n\
    case t of {find a => let o = tool[find] a in self \"{x}\\n[find] {o}\", see a => let o = tool[see] a in self \"{x}\\n[see] {o}\", final a => a})";

/// An agent that asks another one and a function, hands off, and has a tool whose result is the answer.
const OTHERS: &str = "tool cook(input: Str) -> Str pure \"Cooks.\"\ntool \"ask-me\"(input: Str) -> Str pure\ntool bill(input: Str) -> Str pure\ntool done(input: Dyn) -> Dyn write\n\
    fix[inf] (\\self. \\x: Str. let t = llm \"p\" {model: \"m\", tools: [cook, \"ask-me\", bill, done], purpose: \"a\"} x in case t of {\
    cook a => let o = fix[3] (\\self. \\x: Str. let t = llm \"c\" {model: \"m\", tools: [done], purpose: \"cook\"} x in case t of {done a => let o = tool[done] a in self \"{x}\\n[done] {o}\", final a => a}) a.input in self \"{x}\\n[cook] {o}\",\
    \"ask-me\" a => let o = (\\x: Str. llm \"q\" {model: \"m\"} \"{x}!\") a.input in self \"{x}\\n[ask-me] {o}\",\
    bill => llm \"b\" {model: \"m\"} x,\
    done a => prim[to_str](tool[done] a),\
    final a => a})";

#[test]
fn agents_groups_and_flows_are_agent_spec() {
    let text = written(SORT, Target::AgentSpec);
    assert!(text.contains("\"component_type\": \"Agent\"") && text.contains("You sort mail."), "{text}");
    let text = written(LOOP, Target::AgentSpec);
    for part in
        ["\"max_steps\": 7", "\"max_steps_from\": \"as we say\"", "MCPTool", "\"Finds.\"", "\"top_p\": 1"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let found = convert(&lam(LOOP), "a", Target::AgentSpec).found;
    assert!(found.iter().any(|d| d.code == codes::OURS), "{found:?}");
    let flow = written(&format!("{SORT} >> {ANSWER} >> {SORT}"), Target::AgentSpec);
    assert!(flow.contains("\"Flow\"") && flow.matches("AgentNode").count() == 3, "{flow}");
    let asks = "tool cook(input: Str) -> Str pure\n\
        fix[inf \"not known: Agent Spec has no place for it\"] (\\self. \\x: Str. let t = llm \"p\" {model: \"m\", tools: [cook], purpose: \"a\"} x in \
        case t of {cook a => let o = llm \"q\" {model: \"m\", purpose: \"cook\"} a.input in self \"{x}\\n[cook] {o}\", final a => a})";
    assert!(written(asks, Target::AgentSpec).contains("ManagerWorkers"));
    let over = "tool cook(input: Str) -> Str pure\n\
        fix[inf \"not known: Agent Spec has no place for it\"] (\\self. \\x: Str. let t = llm \"p\" {model: \"m\", tools: [cook], purpose: \"a\"} x in \
        case t of {cook => llm \"q\" {model: \"m\", purpose: \"cook\"} x, final a => a})";
    assert!(written(over, Target::AgentSpec).contains("Swarm"));
    let inputs = "\\inputs: {input: Str, who: Str}. (llm \"Greet {inputs.who}.\" {model: \"m\", purpose: \"a\"}) inputs.input";
    assert!(written(inputs, Target::AgentSpec).contains("Greet {{who}}."));
}

#[test]
fn agentspec_export_reports_unsupported_terms() {
    for (text, what) in [
        (r#"llm 'a {{b}}' {model: "m"}"#, "the program would change when written as"),
        (r#"llm "a" {model: "m", result: Num}"#, "the type of a reply"),
        (r#"guard (llm "a" {model: "m"}) length > 3"#, "a guard"),
        (r#"\x: Str. llm "a" {model: "m"} "begin""#, "a computed text"),
        (r#"\x: Str. unknown "the prompt" x"#, "an unknown part: the prompt"),
        (r#"llm "a" {model: "m"} | llm "b" {model: "m"}"#, "parallel parts"),
        (
            "tool f(n: Num) -> Num pure\n\\x: Str. prim[to_str](tool[f] x)",
            "all of the declaration of the tool `f`",
        ),
    ] {
        let said = lacks(text, Target::AgentSpec);
        assert!(said.contains(what), "{text}: {said}");
    }
}

#[test]
fn calls_choices_and_data_are_surface_programs() {
    for text in [
        SORT.to_string(),
        format!("{SORT} >> {ANSWER} >> {SORT}"),
        format!("\\x: Str. case prim[trim]({SORT} x) of {{bill => {ANSWER} x, mail => \"none\", _ => {SORT} \"{{x}} {{x}}\"}}"),
        format!("\\inputs: {{who: Str, n: Num}}. {SORT} \"For {{inputs.who}}, \\{{n}} {{inputs.n + 1}}\""),
        format!("\\x: Str. par [{SORT} x, {ANSWER} x]"),
        "tool now(zone: Str) -> Str read \"The time.\"\n\\x: Str. tool[now] {zone: x}".to_string(),
        r#"\x: Str. (llm "Count." {model: "m", result: {n: Num, kind: Enum Kind(big, small)}, purpose: "count"} x).n"#.into(),
        r#"{a: [1, 2.5], c: null == null, b: "x\ny" + "\\"}"#.to_string(),
        LOOP.to_string(),
        r#"llm "a" {model: "m", max_tokens: 5, top_p: 1, "x-y": [{a: true}], fallback: ["n"]}"#.into(),
        r#"\x: Str. llm "a \{b} {x} {x}" {model: "m"} x"#.into(),
        r#"\inputs: {who: Str, n: Num, input: Str}. llm "For {inputs.who} and {inputs.n}." {model: "m"} inputs.input"#.into(),
        "tool f(input: Dyn) -> Dyn write by {mcp: \"eyes\"}\ntool \"g-h\"(input: Dyn) -> Dyn read by {exec: [\"see\", '{input}']}\n\\x: Str. par [prim[to_str](tool[f] x), tool[\"g-h\"] {input: x}]".into(),
        OTHERS.to_string(),
    ] {
        let program = written(&text, Target::Agent);
        let (_, found) = agentlang::check(FileId(0), &program);
        assert!(found.iter().all(|d| d.level < Level::Warn), "{program}\n{found:?}");
    }
}

#[test]
fn descriptions_of_variants_are_comments() {
    let text = r#"\x: Str. llm "Sort." {model: "m", result: Enum Size(big "over\na meter", small), purpose: "sort"} x"#;
    let program = written(text, Target::Agent);
    assert!(program.contains("enum Size {\n    -- over a meter\n    big,\n    small,\n}\n"), "{program}");
    let plain = text.replace(r#" "over\na meter""#, "");
    assert!(written(&plain, Target::Agent).contains("enum Size { big, small }\n"));
}

#[test]
fn agent_export_reports_unsupported_terms() {
    for (text, what) in [
        (
            r#"fix[3] (\self. \x: Str. if prim[contains](x, "end") then x else self (llm "a" {model: "m"} x))"#,
            "a loop other than",
        ),
        (r#"llm "a" {model: "m"} | llm "b" {model: "m"}"#, "a pair"),
        (r#"llm "a" {model: "m", budget: 1}"#, "the model setting `budget` in addition to its own field"),
        (
            r#"\x: Str. llm (unknown "the prompt in a file") {model: "m"} x"#,
            "an unknown part: the prompt in a file",
        ),
        (r#"llm "a" {model: "m", result: Num, repair: 1}"#, "1 repairs of a malformed reply"),
        (r#"\x: Str. ["U"]: x"#, "a label"),
        (r#"\x: Str. choose 0.5 x "a""#, "a random choice"),
    ] {
        let said = lacks(text, Target::Agent);
        assert!(said.contains(what), "{text}: {said}");
    }
}

/// A conversion that changes the meaning is reported with the difference and its place.
#[test]
fn a_difference_has_a_place_and_a_name() {
    let text = "llm 'a {{b}}' {model: \"m\"}";
    let converted = convert(&lam(text), "desk", Target::AgentSpec);
    let first = converted.found.iter().find(|d| d.level == Level::Error).expect("a reason");
    assert!(first.message.contains("the program would change when written as"), "{first:?}");
    let at = first.span.expect("a place");
    assert!((at.end as usize) <= text.len() && at.end > at.start && !first.help.is_empty(), "{first:?}");
}

/// Each explained code has an example that gives it and one that does not.
#[test]
fn the_examples_of_the_codes_are_right() {
    for e in codes::EXPLANATIONS {
        let gives =
            |text: &str| convert(&lam(text), "a", Target::AgentSpec).found.iter().any(|d| d.code == e.code);
        assert!(gives(e.wrong) && !gives(e.right), "{}", e.code);
    }
}

/// Functions that are written where they are called do not make a small program a large one.
#[test]
fn functions_within_functions_end_in_time() {
    let text = (0..40).fold("x".to_string(), |body, i| {
        let f = format!("$f{i}");
        format!("let {f} = \\x: Str. {body} in {f} ({f} x)")
    });
    let code = lam(&format!("\\x: Str. {text}"));
    for (_, target) in Target::ALL {
        let converted = convert(&code, "deep", target);
        assert_eq!(converted.text.is_some(), target == Target::Lam);
    }
}

/// Agents that carry out all calls of a reply, and those that take one action at a time, are written as what
/// they are: what is written is the same term, or nothing is.
#[test]
fn agents_that_loop_over_a_text_say_how_many_calls_a_turn_has() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/frontends");
    let first = |path: &str, target| {
        let (name, code) = units(&suite.join(path)).remove(0);
        convert(&code, &name, target).text.unwrap_or_else(|| panic!("{path}"))
    };
    for path in ["generic/agent.yaml", "solace/agent.yaml", "agentspec/agent.json"] {
        assert!(first(path, Target::Agent).contains("talk: text"), "{path}");
        assert!(!first(path, Target::AgentSpec).contains("\"calls\""), "{path}");
    }
    for path in ["swe_agent/default.yaml", "nemo_nat/react.yaml"] {
        assert!(first(path, Target::Agent).contains("talk: actions"), "{path}");
    }
    assert!(written(LOOP, Target::AgentSpec).contains("\"calls\": \"first\""));
    // An agent hands off, answers by a tool or asks others after the other calls.
    let text = "tool find(input: Dyn) -> Dyn write\ntool bill(input: Str) -> Str pure\ntool done(input: Dyn) -> Dyn write\n\
        fix[4] (\\self. \\x: Str. let r = fresh (let _ = send[system] \"p\" in let _ = send x in fix[inf \"a reply may hold any number of calls\"] (\\more. \\t. case t.reply of {\
        find a => let o = tool[find] a in more {reply: recv {model: \"m\", tools: [find, done, bill], waiting: true}, said: \"{t.said}\\n[find] {o}\"},\
        done a => let o = prim[to_str](tool[done] a) in let _ = more {reply: recv {model: \"m\", tools: [find, done, bill], waiting: true}, said: t.said} in {next: `done, said: o},\
        bill => let o = more {reply: recv {model: \"m\", tools: [find, done, bill], waiting: true}, said: t.said} in {next: `bill, said: o.said},\
        final a => {next: `final, said: a}, none => {next: `none, said: t.said}\
        }) {reply: recv {model: \"m\", tools: [find, done, bill], purpose: \"a\"}, said: x}) in \
        case r.next of {done => r.said, bill => llm \"b\" {model: \"m\"} r.said, final => r.said, none => self r.said})";
    let written = written(text, Target::Agent);
    for part in ["talk: text", "final_tools: [done]", "handoffs: ["] {
        assert!(written.contains(part), "{part}: {written}");
    }
    // A call that forgets what was said before is no such agent.
    let other = text.replace("said: \"{t.said}\\n[find] {o}\"", "said: \"{o}\"");
    assert!(lacks(&other, Target::Agent).contains("a loop other than the tool loop of an agent"));
}
