//! The machine against the interpreter that the proofs are about, extracted from Coq.
//!
//! Its answers on the cases in `proofs/Extract/cases`, and on a choice of generated programs, are stored, so
//! that part needs nothing. Where `make -C proofs interpreter` has built the interpreter, generated programs
//! are compared as well; how many: `ORACLE_CASES`, 2,000 if not said. Of those `ORACLE_STORE=1` stores the
//! ones with something of which the stored ones have not two.
//!
//! What is left out is counted by its reason and printed; docs/proofs.md says why each is. Texts of errors
//! are each one's own, so programs do not look at them.

use crate::common::{FUEL, config, out_of_fuel};
use core_ir::{Code, Data, Globals, LabelSpec, LatticeKind, Name, Num, Pred, Recv, Term, among, exchange};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use testkit::drive::{self, Order, ParseWith};
use testkit::generate::{Ast, Op, Program, Script, Style, prelude, programs};
use testkit::outcome::{Outcome, Tree, TreeNode};
use testkit::secrets;
use testkit::world::{Answer, Call, World};

/// Cases that are not compared, each with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    ("prelude", "its prelude is its own, given as programs"),
    ("decode_repaired", "the case says how a reply decodes; the machine decodes by type"),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proofs/Extract")
}

/// Reads a case's program; the cases leave out what parameters of models may leave empty.
fn code(json: &Value) -> Arc<Code> {
    let mut json = json.clone();
    for term in json["terms"].as_array_mut().into_iter().flatten() {
        if term.get("at").is_none() {
            term["at"] = json!([0, 0, 0]);
        }
        if let Some(params) = term.get_mut("params").and_then(Value::as_object_mut) {
            for (field, empty) in [("tools", json!([])), ("repair", json!(0)), ("extra", json!([]))] {
                params.entry(field).or_insert(empty);
            }
        }
    }
    let json = &json;
    match exchange::from_json(json, &Globals::none()) {
        Ok(read) => Arc::new(read.code),
        Err(e) => panic!("{e:?}"),
    }
}

/// A value as the interpreter prints it. What a function captured is counted differently there, and not
/// compared.
fn tree(t: &Tree) -> Value {
    let mut o = json!({"label": t.label.to_json()});
    let (key, value) = match &t.node {
        TreeNode::Scalar(d) => ("scalar", exchange::data_json(d)),
        TreeNode::List(items) => ("list", items.iter().map(tree).collect()),
        TreeNode::Record(fields) => ("record", fields.iter().map(|(n, v)| json!([**n, tree(v)])).collect()),
        // The proofs do not name the tool.
        TreeNode::Args(_, fields) => ("args", fields.iter().map(|(n, v)| json!([**n, tree(v)])).collect()),
        TreeNode::Pair(p) => ("pair", json!([tree(&p.0), tree(&p.1)])),
        TreeNode::Tag(n, v) => {
            o["payload"] = json!([tree(v)]);
            ("tag", json!(**n))
        }
        TreeNode::Function(_) => ("function", Value::Null),
    };
    o[key] = value;
    o
}

/// The interpreter's answer without what is not compared: the wording of errors, captured labels, the numbers
/// of stores. Names are compared apart.
fn comparable(mut v: Value) -> Value {
    fn walk(v: &mut Value) {
        match v {
            Value::Object(fields) => {
                if let Some(error) = fields.get_mut("error").and_then(Value::as_object_mut) {
                    error.remove("message");
                }
                if let Some(f) = fields.get_mut("function") {
                    *f = Value::Null;
                }
                fields.remove("names");
                // An empty prompt of `llm` is a message there, and none in the machine.
                for key in ["model", "conversation"] {
                    if let Some(Value::Array(messages)) = fields.get_mut(key) {
                        messages.retain(|m| *m != json!(["system", ""]));
                    }
                }
                for key in ["recall", "remember"] {
                    if let Some(Value::String(name)) = fields.get_mut(key) {
                        *name = name.rsplit('.').next().unwrap_or("").to_string();
                    }
                }
                fields.values_mut().for_each(walk);
            }
            Value::Array(items) => items.iter_mut().for_each(walk),
            _ => {}
        }
    }
    walk(&mut v);
    if let Some(value) = v["result"].get_mut("value") {
        as_read(value, &[]);
    }
    v
}

/// Joins the label of each container to those of its parts, as reading does: what no program can tell is not
/// compared.
fn as_read(v: &mut Value, outer: &[Value]) {
    let own = v["label"].as_array().cloned().unwrap_or_default();
    let label: Vec<Value> =
        ["U", "S"].into_iter().map(Value::from).filter(|l| own.contains(l) || outer.contains(l)).collect();
    v["label"] = Value::Array(label.clone());
    for key in ["list", "pair", "payload"] {
        for part in v.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            as_read(part, &label);
        }
    }
    for field in v.get_mut("record").and_then(Value::as_array_mut).into_iter().flatten() {
        as_read(&mut field[1], &label);
    }
}

fn shown(outcome: &Outcome) -> Value {
    // How it is worded why a guard refused a result is each one's own.
    let messages = |ms: &[(core_ir::Role, String)]| -> Value {
        let said = ms.iter().map(|(r, t)| (r, if t.starts_with(Pred::REMARK) { Pred::REMARK } else { t }));
        said.map(|(r, t)| json!([r.as_str(), t])).collect()
    };
    let result = match &outcome.result {
        Ok(t) => json!({"value": tree(t)}),
        // In the proofs that is no error, but the end of the run, and has no label.
        Err(e) if e.code == "budget" => json!({"stopped": "at_most"}),
        Err(e) => json!({"error": {"label": e.label.to_json()}}),
    };
    let trace: Vec<Value> = outcome
        .requests
        .iter()
        .zip(&outcome.limits)
        .map(|((call, channel), limits)| {
            let mut o = match call {
                Call::Model { messages: ms, .. } => json!({"model": messages(ms)}),
                Call::Tool { name, args } => {
                    json!({"tool": **name, "args": args.iter().map(|(_, d)| exchange::data_json(d)).collect::<Vec<_>>()})
                }
                Call::Approve { name, args } => {
                    json!({"approve": **name, "args": args.iter().map(|(_, d)| exchange::data_json(d)).collect::<Vec<_>>()})
                }
                Call::Sample { probability } => {
                    json!({"sample": exchange::data_json(&Data::Num(probability.clone()))})
                }
                Call::Recall { key, .. } => json!({"recall": **key}),
                Call::Remember { key, value, .. } => {
                    json!({"remember": **key, "value": exchange::data_json(value)})
                }
            };
            o["channel"] = channel.to_json();
            if !limits.is_empty() {
                o["within"] = limits.iter().map(|n| exchange::data_json(&Data::Num(n.clone()))).collect();
            }
            o
        })
        .collect();
    json!({
        "result": result, "conversation_label": outcome.conversation_label.to_json(),
        "conversation": messages(&outcome.conversation), "trace": trace,
    })
}

/// The numbers that draws and time limits are named by, with what they must be a function of: the
/// interpreter's names, which say nothing but the label and how many there were before it at that label, in
/// the branch, and the way to that.
#[derive(Default)]
struct Names {
    numbers: HashMap<String, u64>,
    /// Draws and limits apart.
    names: [HashMap<u64, String>; 2],
}

impl Names {
    fn check(&mut self, answer: &Value, named: &[Vec<u64>]) -> Result<(), String> {
        for (event, numbers) in answer["trace"].as_array().into_iter().flatten().zip(named) {
            let names = event["names"].as_array().map_or(&[][..], Vec::as_slice);
            if names.len() != numbers.len() {
                return Err(format!("{} names, but {numbers:?}", names.len()));
            }
            for (name, number) in names.iter().filter_map(Value::as_str).zip(numbers) {
                let before = *self.numbers.entry(name.into()).or_insert(*number);
                let of = usize::from(name.rsplit('/').next().is_some_and(|own| own.starts_with("draw")));
                let other = self.names[of].entry(*number).or_insert_with(|| name.into());
                if before != *number || other != name {
                    return Err(format!("`{name}` is {number}, but was {before}, or `{other}` was"));
                }
            }
        }
        Ok(())
    }
}

/// Gives the stored answers in order and keeps stores itself.
struct Stored {
    answers: std::iter::Peekable<std::vec::IntoIter<Value>>,
    kept: HashMap<(Name, Name), Data>,
}

impl Stored {
    fn new(case: &Value, code: &Code) -> Stored {
        let answers = case["answers"].as_array().cloned().unwrap_or_default();
        let keys = code.stores.iter().flat_map(|s| s.keys.iter().map(|k| (s.name.clone(), k)));
        let kept = keys.filter_map(|(store, k)| Some(((store, k.name.clone()), k.initial.clone()?)));
        Stored { kept: kept.collect(), answers: answers.into_iter().peekable() }
    }

    /// Returns a store's error or expiry, if the case states one.
    fn of_store(&mut self) -> Option<Value> {
        let kinds = ["found", "kept", "store_failed", "store_late"];
        self.answers.next_if(|a| kinds.iter().any(|kind| a.get(kind).is_some()))
    }
}

impl World for Stored {
    fn answer(&mut self, call: &Call) -> Answer {
        if let Call::Recall { store, key } | Call::Remember { store, key, .. } = call {
            let said = self.of_store().unwrap_or_default();
            if let Some(why) = said.get("store_failed") {
                return Answer::Failed(why.as_str().unwrap_or("").to_string());
            }
            if said.get("store_late").is_some() {
                return Answer::Late(0);
            }
            let at = (store.clone(), key.clone());
            if let Call::Remember { value, .. } = call {
                self.kept.insert(at, value.clone());
                return Answer::Kept;
            }
            return match said.get("found") {
                Some(Value::Bool(false)) => Answer::Found(None),
                _ => Answer::Found(self.kept.get(&at).cloned()),
            };
        }
        let Some(answer) = self.answers.next() else { return Answer::Failed("no answer is left".into()) };
        let text = |v: &Value| v.as_str().unwrap_or("").to_string();
        let data = |v: &Value| exchange::data_from_json(v).unwrap();
        let called = |v: &Value| (Name::from(text(&v[0])), data(&v[2]));
        if answer.get("late").is_some() {
            Answer::Late(0)
        } else if let Some(calls) = answer.get("calls").and_then(Value::as_array) {
            Answer::ToolCalls(calls.iter().map(called).collect())
        } else if let Some(tool) = answer.get("call") {
            Answer::ToolCall(text(tool).into(), data(&answer["args"]))
        } else if let Some(said) = answer.get("text") {
            Answer::Text(text(said))
        } else if let Some(result) = answer.get("data") {
            match answer.get("label") {
                Some(label) => Answer::Labeled(data(result), label_of(label)),
                None => Answer::Data(data(result)),
            }
        } else if let Some(Value::Bool(b)) = answer.get("drawn") {
            Answer::Drawn(*b)
        } else {
            match call {
                Call::Approve { .. } if answer.get("approved").is_some() => Answer::Approved(Ok(())),
                Call::Approve { .. } => Answer::Approved(Err(text(&answer["failed"]))),
                _ => Answer::Failed(text(&answer["failed"])),
            }
        }
    }
}

/// Runs the machine on a case.
fn run_stored(case: &Value) -> (Outcome, drive::Named) {
    let program = code(&case["program"]);
    // A reply parses as the case says.
    let parsed: HashMap<String, Result<Arc<Code>, String>> = case["answers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|a| {
            let read = match (a.get("code"), a.get("refused")) {
                (Some(json), _) => Ok(code(json)),
                (None, why) => Err(why?.as_str()?.to_string()),
            };
            Some((a.get("text")?.as_str()?.to_string(), read))
        })
        .collect();
    let parser =
        move |text: &str| parsed.get(text).cloned().unwrap_or_else(|| Err("does not parse".to_string()));
    let config = machine::Config {
        parser: Some(Arc::new(ParseWith(parser))),
        generated_endorse: case["endorse"] == true,
        clearance: case.get("clearance").map_or(LabelSpec::TOP, label_of),
        request: case["request"]["text"].as_str().map(Into::into),
        input: case["request"].get("label").map_or(LabelSpec::BOTTOM, label_of),
        ..machine::Config::default()
    };
    let mut machine = machine::Machine::new(program.clone(), None, config);
    drive::run_named(&mut machine, &mut Stored::new(case, &program), Order::AtOnce)
}

/// Keeps what a program asked, and the answers.
struct Recorder<'a> {
    script: Script,
    asked: &'a mut Vec<(Call, Answer)>,
}

impl World for Recorder<'_> {
    fn answer(&mut self, call: &Call) -> Answer {
        self.answer_within(call, &[])
    }

    fn answer_within(&mut self, call: &Call, limits: &[Num]) -> Answer {
        let answer = self.script.answer_within(call, limits);
        self.asked.push((call.clone(), answer.clone()));
        answer
    }
}

fn label_of(json: &Value) -> LabelSpec {
    match json.get("exact") {
        Some(data) => LabelSpec::Exact(exchange::data_from_json(data).unwrap()),
        None => LabelSpec::Axes { untrusted: json["untrusted"] == true, secret: json["secret"] == true },
    }
}

fn label_json(label: &LabelSpec) -> Value {
    match label {
        LabelSpec::Axes { untrusted, secret } => json!({"untrusted": untrusted, "secret": secret}),
        LabelSpec::Exact(d) => json!({"exact": exchange::data_json(d)}),
    }
}

#[test]
fn the_stored_answers_of_the_extracted_interpreter_are_the_machines() {
    let (mut compared, mut names) = (0, Names::default());
    for entry in std::fs::read_dir(folder().join("cases")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.extension().is_none_or(|e| e != "json") || LEFT_OUT.iter().any(|(n, _)| *n == name) {
            continue;
        }
        let read = |p: &Path| serde_json::from_str::<Value>(&std::fs::read_to_string(p).unwrap()).unwrap();
        let (case, answer) = (read(&path), read(&path.with_extension("out")));
        let (outcome, named) = run_stored(&case);
        names.check(&answer, &named.names).unwrap();
        let (mut want, mut have) = (comparable(answer), comparable(shown(&outcome)));
        if name == "generated_endorse_refused" {
            // The wording of the refusal is each one's own.
            for v in [&mut want, &mut have] {
                v["result"]["value"]["list"][1]["scalar"] = Value::Null;
            }
        }
        assert_eq!(have, want, "{name}");
        compared += 1;
    }
    assert!(compared >= 20, "{compared}");
}

/// `entail verify` compares texts but for the interpreter's own words, which its driver has to know.
#[test]
fn the_driver_knows_the_words_of_the_interpreter() {
    let read = |name: &str| std::fs::read_to_string(folder().join(name)).unwrap();
    let (interpreter, driver) = (read("interp.ml"), read("driver.ml"));
    let (_, known) = driver.split_once("let own_words = [").unwrap();
    let (known, _) = known.split_once("]\n").unwrap();
    let texts = interpreter.split('"').skip(1).step_by(2).filter(|text| text.contains(' '));
    let mut seen = 0;
    for text in texts {
        assert!(known.contains(&format!("\"{text}\"")), "own_words of driver.ml lacks {text:?}");
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}

/// The stored generated programs, and the answers to them.
fn generated() -> [PathBuf; 2] {
    ["generated.jsonl", "generated.out"].map(|name| folder().join(name))
}

#[test]
fn the_stored_answers_on_generated_programs_are_the_machines() {
    let [cases, answers] = generated().map(|path| std::fs::read_to_string(path).unwrap());
    assert_eq!(cases.lines().count(), answers.lines().count());
    let (mut formers, mut names) = (BTreeSet::new(), Names::default());
    for (number, (case, answer)) in cases.lines().zip(answers.lines()).enumerate() {
        let case: Value = serde_json::from_str(case).unwrap();
        let answer: Value = serde_json::from_str(answer).unwrap();
        let (outcome, named) = run_stored(&case);
        names.check(&answer, &named.names).unwrap();
        assert_eq!(comparable(shown(&outcome)), comparable(answer), "line {}: {case}", number + 1);
        formers.extend(features(&case).into_iter().filter(|f| f.starts_with("op ")));
    }
    assert!(formers.len() >= 45, "not every former is among them: {formers:?}");
}

/// Returns the features of a case: formers, rules of tools, and kinds of answers.
fn features(case: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for term in case["program"]["terms"].as_array().into_iter().flatten() {
        found.insert(format!("op {}", term["op"].as_str().unwrap_or("")));
    }
    for tool in case["program"]["tools"].as_array().into_iter().flatten() {
        for field in ["approve", "among", "at_most"].iter().filter(|f| tool.get(**f).is_some()) {
            found.insert(format!("tool {field}"));
        }
    }
    for answer in case["answers"].as_array().into_iter().flatten().filter_map(Value::as_object) {
        found.extend(answer.keys().map(|kind| format!("answer {kind}")));
    }
    found
}

/// Returns true if some code in a case has a variable of the prelude.
fn uses_prelude(v: &Value) -> bool {
    match v {
        Value::Object(o) => {
            let name = o.get("name").and_then(Value::as_str);
            o.get("op").is_some_and(|op| op == "var")
                && name.is_some_and(|name| prelude().names().iter().any(|n| **n == *name))
                || o.values().any(uses_prelude)
        }
        Value::Array(items) => items.iter().any(uses_prelude),
        _ => false,
    }
}

/// The programs that are worth being stored: with something of which there are not two yet.
#[derive(Default)]
struct Choice {
    seen: BTreeMap<String, u32>,
    lines: [String; 2],
}

impl Choice {
    /// The longest program that is stored.
    const MAX_PROGRAM_LEN: usize = 10_000;

    fn consider(&mut self, case: &Value, answer: &Value, as_it_came: &str) {
        let mut case = case.clone();
        // What the prelude is, the case would have to say.
        if let Some(fields) = case.as_object_mut() {
            fields.remove("prelude");
        }
        let mut found = features(&case);
        let end = answer["result"].as_object().and_then(|o| o.keys().next().cloned()).unwrap_or_default();
        found.extend(found.clone().into_iter().map(|f| format!("{f} ends in {end}")));
        let text = case.to_string();
        let new = found.iter().any(|f| self.seen.get(f).is_none_or(|n| *n < 2));
        if !new || text.len() > Choice::MAX_PROGRAM_LEN || uses_prelude(&case) {
            return;
        }
        for f in found {
            *self.seen.entry(f).or_default() += 1;
        }
        self.lines[0] += &format!("{text}\n");
        self.lines[1] += as_it_came;
    }
}

/// The extracted interpreter, which answers a case on each line.
struct Oracle {
    child: Child,
    say: ChildStdin,
    hear: BufReader<ChildStdout>,
    /// The last answer as it came.
    answer: String,
}

impl Oracle {
    fn start(binary: &Path) -> Oracle {
        let mut child = Command::new(binary)
            .arg("--lines")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (say, hear) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Oracle { child, say, hear: BufReader::new(hear), answer: String::new() }
    }

    /// Runs a program; what it uses that the interpreter does not translate, if it does.
    fn run(&mut self, input: &Value) -> Result<Value, String> {
        // In one piece: a value writes itself in many.
        self.say.write_all(format!("{input}\n").as_bytes()).unwrap();
        self.answer.clear();
        self.hear.read_line(&mut self.answer).unwrap();
        assert!(!self.answer.is_empty(), "the interpreter ended at {input}");
        let answer: Value = serde_json::from_str(&self.answer).unwrap();
        match answer.get("unsupported").and_then(Value::as_str) {
            Some(what) => Err(what.to_string()),
            None => Ok(answer),
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A reply as code, with one wording for all that is none.
fn parse(program: &Program, text: &str) -> Result<Arc<Code>, String> {
    program.parse(text).map_err(|_| "does not parse".to_string())
}

/// Returns the construct in code that a model may not write: `docs/calculus.md` §10, `recv` as code.
fn refused(program: &Program, code: &Code) -> Option<String> {
    let has = |such: &dyn Fn(&Term) -> bool| code.iter().any(|(_, term)| such(term));
    let what = if has(&|t| match t {
        Term::Tool(_) | Term::Args(..) => true,
        Term::Llm(_, params) | Term::Recv(Recv::Data(params)) => !params.tools.is_empty(),
        _ => false,
    }) {
        Some("tool")
    } else if has(&|t| matches!(t, Term::Mem(..))) {
        Some("mem")
    } else if program.generated_endorse {
        None
    } else if has(&|t| matches!(t, Term::Endorse(..))) {
        Some("endorse")
    } else if has(&|t| matches!(t, Term::Declassify(..))) {
        Some("declassify")
    } else {
        None
    };
    what.map(|what| format!("generated code may not contain `{what}`"))
}

/// The answers of a run, as the interpreter takes them.
fn recorded(program: &Program, asked: &[(Call, Answer)]) -> Vec<Value> {
    let sources = diagnostics::Sources::new();
    asked
        .iter()
        .map(|(call, answer)| match (call, answer) {
            (Call::Recall { .. } | Call::Remember { .. }, Answer::Failed(m)) => json!({"store_failed": m}),
            (Call::Recall { .. } | Call::Remember { .. }, Answer::Late(_)) => json!({"store_late": true}),
            (_, Answer::Failed(m) | Answer::Permanent(m) | Answer::ToolTimeout(m)) => json!({"failed": m}),
            (_, Answer::Late(_)) => json!({"late": true}),
            (Call::Model { params: None, .. }, Answer::Text(t)) => match parse(program, t) {
                Ok(code) => match refused(program, &code) {
                    None => json!({"text": t, "code": exchange::to_json(&code, &sources)}),
                    Some(why) => json!({"text": t, "refused": why}),
                },
                Err(_) => json!({"text": t}),
            },
            (_, Answer::Text(t)) => json!({"text": t}),
            (_, Answer::ToolCall(name, args)) => {
                json!({"text": args.to_json().to_string(), "call": **name, "args": exchange::data_json(args)})
            }
            (_, Answer::Data(d)) => json!({"data": exchange::data_json(d)}),
            (_, Answer::Drawn(b)) => json!({"drawn": b}),
            // An entry that has not the key's type; what the interpreter keeps always has it.
            (_, Answer::Found(Some(Data::Tag(tag, _)))) if **tag == *"odd" => {
                json!({"store_failed": "of another type"})
            }
            (_, Answer::Found(d)) => json!({"found": d.is_some()}),
            (_, Answer::Kept) => json!({"kept": null}),
            (_, Answer::ToolCalls(calls)) => {
                let call = |(name, args): &(Name, Data)| {
                    json!([**name, args.to_json().to_string(), exchange::data_json(args)])
                };
                json!({"calls": calls.iter().map(call).collect::<Vec<_>>()})
            }
            (_, Answer::Labeled(d, label)) => {
                json!({"data": exchange::data_json(d), "label": label_json(label)})
            }
            (_, Answer::Approved(Ok(()))) => json!({"approved": true}),
            (_, Answer::Approved(Err(why))) => json!({"failed": why}),
            // INVARIANT: these programs have none ([`program`]).
            (_, Answer::Edited(..)) => unreachable!("an approval with other arguments"),
        })
        .collect()
}

/// Text of the requests of generated programs. Their data has some of its tokens.
const REQUEST: &str = "pay 1 or 3 to 'a' or 'no', maybe \"two words\"";

/// A request, as the interpreter takes it.
fn request_json(label: &LabelSpec) -> Value {
    let tokens: Vec<Value> = among::tokens(&Data::str(REQUEST)).iter().map(exchange::data_json).collect();
    json!({"label": label_json(label), "text": REQUEST, "tokens": tokens})
}

/// The prelude of generated programs, with recursion by `fix[inf]`: the interpreter's prelude are closed
/// terms.
fn prelude_terms() -> Value {
    let count = |base: &str, other: &str| {
        format!(
            "fix[inf] (\\self. \\n. if n <= 0 then {base} else (\\n. if n <= 0 then {other} else self (n - 1)) (n - 1))"
        )
    };
    let sources = diagnostics::Sources::new();
    [
        ("id", "\\x. x".to_string()),
        ("twice", "\\f. \\x. f (f x)".to_string()),
        ("fix", "fix[inf] (\\self. \\f. \\x. f (\\y. self f y) x)".to_string()),
        ("even", count("true", "false")),
        ("odd", count("false", "true")),
    ]
    .map(|(name, text)| json!([name, exchange::to_json(&crate::common::lam(&text), &sources)]))
    .to_vec()
    .into()
}

/// Programs as the other tests have them, and such of secrets that are tested for noninterference: these
/// decide by labeled values.
fn program(number: u64, runner: &mut TestRunner) -> Program {
    let style = Style {
        in_order: true,
        lattice: Some(LatticeKind::TwoAxis),
        wild: [2, 2, 2, 20][number as usize % 4],
        typed: number % 8 == 4,
        // The proofs know one kind of `catch not`.
        permanent: false,
        // The proofs have no forms of text.
        plain: false,
        // Nor confirmations, nor approval with other arguments.
        confirm: false,
        edits: false,
        ..Style::default()
    };
    if number.is_multiple_of(2) {
        return programs(style).new_tree(runner).unwrap().current();
    }
    let pair = secrets::pair_like(number, |s| {
        let both = Style { given: s.given.clone(), deciding: s.deciding, size: s.size, ..style };
        *s = both;
    });
    let ast = Ast::new(Op::App, [pair.program.ast.clone(), Ast::lit(pair.inputs[0].clone())]);
    pair.program.with(ast)
}

#[test]
fn generated_programs_agree_with_the_extracted_interpreter() {
    let binary = folder().join("entail-interpreter");
    if !binary.exists() {
        eprintln!("SKIPPED: {} is not built; `make -C proofs interpreter` builds it", binary.display());
        return;
    }
    let wanted: u32 = std::env::var("ORACLE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2_000);
    let mut oracle = Oracle::start(&binary);
    let prelude = prelude_terms();
    let mut runner = TestRunner::deterministic();
    let (mut compared, mut tried) = (0, 0);
    let mut others: BTreeMap<String, u32> = BTreeMap::new();
    let mut choice = std::env::var("ORACLE_STORE").ok().map(|_| Choice::default());
    let mut names = Names::default();
    while compared < wanted && tried < wanted * 2 {
        tried += 1;
        let program = program(tried.into(), &mut runner);
        let mut asked = Vec::new();
        let mut world = Recorder { script: Script::new(&program), asked: &mut asked };
        let parser = program.clone();
        // Whoever is not trusted admits nothing, and nobody else a secret.
        let input = LabelSpec::Axes { untrusted: tried % 8 == 7, secret: tried % 8 == 5 };
        let config = machine::Config {
            parser: Some(Arc::new(ParseWith(move |text: &str| parse(&parser, text)))),
            request: Some(REQUEST.into()),
            input: input.clone(),
            ..config(&program, FUEL)
        };
        let mut machine = machine::Machine::new(program.code(), None, config);
        let (outcome, named) = drive::run_named(&mut machine, &mut world, Order::AtOnce);
        if out_of_fuel(&outcome) {
            *others.entry("out of fuel".into()).or_default() += 1;
            continue;
        }
        let sources = diagnostics::Sources::new();
        let input = json!({
            "program": exchange::to_json(&program.code(), &sources), "answers": recorded(&program, &asked),
            "endorse": program.generated_endorse, "declassify": program.generated_endorse, "prelude": prelude,
            "clearance": label_json(&program.clearance), "request": request_json(&input),
        });
        let want = match oracle.run(&input) {
            Ok(want) if want["result"] == "out of fuel" => Err("too deep".to_string()),
            other => other,
        };
        match want {
            Ok(want) => {
                compared += 1;
                if let Some(choice) = &mut choice {
                    choice.consider(&input, &want, &oracle.answer);
                }
                let answer = want.clone();
                let (want, have) = (comparable(want), comparable(shown(&outcome)));
                assert_eq!(have, want, "caught after {compared} programs: {input}\n{program:?}");
                if let Err(why) = names.check(&answer, &named.names) {
                    panic!("caught after {compared} programs: {why}: {input}\n{program:?}");
                }
            }
            Err(why) => *others.entry(why).or_default() += 1,
        }
    }
    assert!(
        compared == wanted,
        "only {compared} of {tried} programs are within what the interpreter translates: {others:#?}"
    );
    if let Some(choice) = choice {
        for (path, text) in generated().iter().zip(choice.lines) {
            std::fs::write(path, text).unwrap();
        }
    }
    eprintln!("{compared} programs compared; left out: {others:#?}");
}
