//! A replay as the interpreter that is extracted from the proofs reads it.
//!
//! The interpreter runs branches one after another, so answers stand in the order of the requests' places. It
//! keeps stores itself, and is told only whether an entry was there. What replies as code parse to is told as
//! well: the parser is no part of the calculus.

use crate::replay::{End, Replay, Step};
use core_ir::{Code, Data, Globals, LabelSpec, LatticeKind, Name, Role, StoreDecl, Term, among, exchange};
use diagnostics::Sources;
use machine::{Call, Config, Reply, Response};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A construct that the interpreter does not cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncovered {
    /// Number of the step, if one has it.
    pub step: Option<u64>,
    /// Its name, in a few words.
    pub construct: String,
}

/// A replay for the interpreter.
#[derive(Clone, Debug)]
pub struct Case {
    /// The input of the interpreter: see `docs/verify.md`.
    pub input: Value,
    /// Number of requests, from the first one in the order of places, whose answers it is given.
    pub answers: usize,
    /// True if the run is compared up to its first unanswered request alone.
    pub is_open: bool,
}

/// Levels of evaluation within each other: more would exhaust the stack of the interpreter's process.
const DEPTH: u64 = 100_000;

impl Case {
    /// Writes a replay of a program, which was run on this input with this configuration.
    ///
    /// # Errors
    /// What keeps the interpreter from running it.
    pub fn of(
        code: &Code,
        input: Option<&Data>,
        config: &Config,
        replay: &Replay,
    ) -> Result<Case, Uncovered> {
        let whole = |construct: String| Uncovered { step: None, construct };
        if config.lattice != LatticeKind::TwoAxis {
            let name = LatticeKind::ALL.iter().find(|(_, kind)| *kind == config.lattice);
            return Err(whole(format!("the lattice `{}`", name.map_or("?", |(name, _)| name))));
        }
        if config.answer != core_ir::AnswerSink::default() {
            return Err(whole("a bound or a form of the run's answer".into()));
        }
        if code.tools.iter().any(|t| t.policy_may_ask()) {
            return Err(whole("a policy function that leaves calls to a person".into()));
        }
        if !config.counted.is_empty() {
            return Err(whole("calls of earlier programs that count".into()));
        }
        let mut program = exchange::to_json(code, &Sources::new());
        if let Some(input) = input {
            apply(&mut program, input, &config.input)?;
        }
        let mut stores = Entries::of(code);
        let mut answers = Vec::new();
        for step in &replay.steps {
            let Some(response) = &step.response else { break };
            answers.push(stores.answer(step, response, config)?);
        }
        let given = answers.len();
        let prelude = prelude(code.globals(), &program, &answers).map_err(whole)?;
        let request = config.request.as_ref().map(|text| Data::Str(text.clone()));
        let request = request.as_ref().or(input).map(|request| {
            let tokens: Value = among::tokens(request).iter().map(exchange::data_json).collect();
            json!({"label": exchange::label_json(&config.input), "tokens": tokens})
        });
        // Where several clearances are, the models were compared with them in the replay.
        let clearance = if config.clearances.is_empty() { &config.clearance } else { &LabelSpec::TOP };
        let mut case = json!({
            "cut": true, "fuel": DEPTH, "program": program, "answers": answers, "prelude": prelude,
            "endorse": config.generated_endorse, "declassify": config.generated_endorse,
            "clearance": exchange::label_json(clearance),
        });
        if let Some(request) = request {
            case["request"] = request;
        }
        let is_open = !matches!(replay.end, End::Ended(_)) || given < replay.steps.len();
        Ok(Case { input: case, answers: given, is_open })
    }
}

/// Applies a program to an input of a label.
fn apply(program: &mut Value, input: &Data, label: &LabelSpec) -> Result<(), Uncovered> {
    let root = program["root"].clone();
    let Some(terms) = program["terms"].as_array_mut() else { return Ok(()) };
    let mut add = |term: Value| {
        terms.push(term);
        terms.len() - 1
    };
    let mut argument = add(json!({"op": "lit", "value": exchange::data_json(input)}));
    if *label != LabelSpec::BOTTOM {
        let label = match label {
            LabelSpec::Exact(label) => exchange::data_json(label),
            LabelSpec::Axes { untrusted, secret } => [(*untrusted, "U"), (*secret, "S")]
                .into_iter()
                .filter(|(on, _)| *on)
                .map(|(_, l)| l)
                .collect(),
        };
        let label = add(json!({"op": "lit", "value": label}));
        argument = add(json!({"op": "relabel", "of": [label, argument]}));
    }
    let whole = add(json!({"op": "app", "of": [root, argument]}));
    program["root"] = whole.into();
    Ok(())
}

/// The entries of the stores, as far as the run itself wrote them.
struct Entries {
    kept: HashMap<(Name, Name), Data>,
}

impl Entries {
    fn of(code: &Code) -> Entries {
        let keys = code.stores.iter().flat_map(|s| s.keys.iter().map(|k| (s.name.clone(), k)));
        let kept = keys.filter_map(|(store, k)| Some(((store, k.name.clone()), k.initial.clone()?)));
        Entries { kept: kept.collect() }
    }

    /// An answer as the interpreter takes it.
    fn answer(&mut self, step: &Step, response: &Response, config: &Config) -> Result<Value, Uncovered> {
        let uncovered = |construct: &str| Err(Uncovered { step: step.step, construct: construct.into() });
        let of_store = matches!(step.call, Call::Recall { .. } | Call::Remember { .. });
        let at = |store: &StoreDecl, key: u32| (store.name.clone(), runs::key_name(store, key));
        Ok(match (&step.call, response) {
            (_, Response::Late(_)) if of_store => json!({"store_late": true}),
            (_, Response::Late(_)) => json!({"late": true}),
            (_, Response::Recall(Err(why)) | Response::Remember(Err(why))) => json!({"store_failed": why}),
            (Call::Recall { store, key }, Response::Recall(Ok(found))) => {
                if found.is_some() && self.kept.get(&at(store, *key)) != found.as_ref() {
                    return uncovered("an entry of a store that another run wrote");
                }
                json!({"found": found.is_some()})
            }
            (Call::Remember { store, key, value }, Response::Remember(Ok(()))) => {
                self.kept.insert(at(store, *key), value.clone());
                json!({"kept": null})
            }
            (_, Response::Approve(Ok(()))) => json!({"approved": true}),
            (_, Response::Approve(Err(why)) | Response::Tool(Err(why)) | Response::Model(Err(why))) => {
                json!({"failed": why})
            }
            // A tool that is late fails as any other: the interpreter doesn't tell codes apart.
            (_, Response::ToolTimeout(why)) => json!({"failed": why}),
            (_, Response::Unattended) => json!({"failed": machine::NOBODY}),
            (_, Response::Sample(drawn)) => json!({"drawn": drawn}),
            (_, Response::Tool(Ok(data))) => json!({"data": exchange::data_json(data)}),
            (_, Response::LabeledTool(Ok(data), label)) => {
                json!({"data": exchange::data_json(data), "label": exchange::label_json(label)})
            }
            (_, Response::Edited { .. }) => return uncovered("an approval with other arguments"),
            (_, Response::LabeledTool(Err(_), _)) => return uncovered("a failure that a tool labels"),
            (_, Response::Permanent(_)) => return uncovered("a permanent failure of a model"),
            (_, Response::Uncleared(_)) => return uncovered("a conversation that no model may see"),
            (_, Response::Stop(_)) => return uncovered("an end from outside"),
            (Call::Model { params: None, .. }, Response::Model(Ok(Reply::Text(text)))) => {
                let parsed = config.parser.as_ref().map(|parser| parser.parse(text));
                match parsed.unwrap_or_else(|| Err("nothing reads code here".into())) {
                    Ok(code) => json!({"text": text, "code": exchange::to_json(&code, &Sources::new())}),
                    Err(why) => json!({"text": text, "refused": why}),
                }
            }
            (_, Response::Model(Ok(Reply::Text(text)))) => json!({"text": text}),
            (_, Response::Model(Ok(Reply::ToolCall { name, args }))) => {
                json!({"text": args.to_json().to_string(), "call": **name, "args": exchange::data_json(args)})
            }
            (_, Response::Model(Ok(Reply::ToolCalls(calls)))) => {
                let call = |(name, args): &(Name, Data)| {
                    json!([**name, args.to_json().to_string(), exchange::data_json(args)])
                };
                json!({"calls": calls.iter().map(call).collect::<Value>()})
            }
            (_, Response::Recall(_) | Response::Remember(_)) => {
                return uncovered("an answer of another kind");
            }
        })
    }
}

/// The definitions of the prelude that a program and replies as code refer to, each after those that it
/// refers to itself. One that refers to itself is a fixed point: the interpreter's definitions are closed.
fn prelude(globals: &Arc<Globals>, program: &Value, answers: &[Value]) -> Result<Value, String> {
    let mut wanted = BTreeSet::new();
    let names = |wanted: &mut BTreeSet<String>, program: &Value| {
        for term in program["terms"].as_array().into_iter().flatten().filter(|t| t["op"] == "var") {
            let name = term["name"].as_str().unwrap_or_default();
            if globals.index(name).is_some() {
                wanted.insert(name.to_string());
            }
        }
    };
    names(&mut wanted, program);
    for tool in program["tools"].as_array().into_iter().flatten() {
        names(&mut wanted, &tool["policy"]);
    }
    for answer in answers {
        names(&mut wanted, &answer["code"]);
    }
    let Some((definitions, _)) = globals.get(0) else { return Ok(json!([])) };
    let all = exchange::to_json(definitions, &Sources::new());
    let root = all["root"].as_u64().and_then(|root| usize::try_from(root).ok()).unwrap_or_default();
    let fields = all["terms"][root]["fields"].as_array().cloned().unwrap_or_default();
    let mut done = Vec::new();
    let mut under_way = Vec::new();
    for name in wanted {
        define(&name, &all, &fields, &mut under_way, &mut done)?;
    }
    Ok(done.into_iter().map(|(name, program)| json!([name, program])).collect())
}

/// Adds a definition, after those that it refers to.
fn define(
    name: &str,
    all: &Value,
    fields: &[Value],
    under_way: &mut Vec<String>,
    done: &mut Vec<(String, Value)>,
) -> Result<(), String> {
    if done.iter().any(|(known, _)| known == name) {
        return Ok(());
    }
    if under_way.iter().any(|known| known == name) {
        return Err(format!("definitions that refer to each other: `{name}`"));
    }
    let Some(position) = fields.iter().find(|f| f[0] == name).and_then(|f| f[1].as_u64()) else {
        return Ok(());
    };
    under_way.push(name.to_string());
    let (mut terms, mut root) = part(&all["terms"], position);
    let mut is_recursive = false;
    for term in terms.iter().filter(|t| t["op"] == "var") {
        let other = term["name"].as_str().unwrap_or_default();
        if other == name {
            is_recursive = true;
        } else {
            define(other, all, fields, under_way, done)?;
        }
    }
    if is_recursive {
        terms.push(json!({"op": "abs", "param": name, "body": root}));
        terms.push(json!({"op": "fix", "bound": "inf", "of": [terms.len() - 1]}));
        root = terms.len() - 1;
    }
    under_way.pop();
    done.push((name.to_string(), json!({"tools": [], "stores": [], "terms": terms, "root": root})));
    Ok(())
}

/// The terms below a position, with that one last. Numbers in them are their places in this list.
fn part(terms: &Value, root: u64) -> (Vec<Value>, usize) {
    let all = terms.as_array().map_or(&[][..], Vec::as_slice);
    let mut wanted = BTreeSet::from([usize::try_from(root).unwrap_or_default()]);
    // Children stand before their parents.
    for at in (0..all.len()).rev() {
        if wanted.contains(&at) {
            each_child(&mut all[at].clone(), &mut |child| {
                wanted.insert(*child);
            });
        }
    }
    let places: HashMap<usize, usize> = wanted.iter().enumerate().map(|(new, old)| (*old, new)).collect();
    let renumbered = wanted.iter().filter_map(|old| {
        let mut term = all.get(*old)?.clone();
        each_child(&mut term, &mut |child| *child = places.get(child).copied().unwrap_or(*child));
        Some(term)
    });
    let terms: Vec<Value> = renumbered.collect();
    let last = terms.len().saturating_sub(1);
    (terms, last)
}

/// Visits the numbers of the terms in a term.
fn each_child(term: &mut Value, visit: &mut dyn FnMut(&mut usize)) {
    let mut number = |value: &mut Value| {
        if let Some(mut child) = value.as_u64().and_then(|n| usize::try_from(n).ok()) {
            visit(&mut child);
            *value = child.into();
        }
    };
    let Value::Object(fields) = term else { return };
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("of", Value::Array(items)) => items.iter_mut().for_each(&mut number),
            ("fields" | "bindings", Value::Array(pairs)) => {
                pairs.iter_mut().filter_map(|pair| pair.get_mut(1)).for_each(&mut number);
            }
            ("branches", Value::Array(branches)) => {
                branches.iter_mut().filter_map(|b| b.get_mut("body")).for_each(&mut number);
            }
            ("body" | "default", value) => number(value),
            _ => {}
        }
    }
}

/// The beginning of the message after a reply that did not decode; the rest is worded by the machine.
pub(crate) const REPAIR: &str = "That reply cannot be used";

/// Returns a message as it is compared: of some, the wording is nobody's business.
pub(crate) fn worded(role: Role, content: &str) -> &str {
    let fixed = [REPAIR, core_ir::Pred::REMARK];
    let own = fixed.into_iter().find(|own| role == Role::User && content.starts_with(own));
    own.unwrap_or(content)
}

/// Returns whether a term catches errors.
pub(crate) fn catches(code: &Code) -> bool {
    code.iter().any(|(_, term)| matches!(term, Term::Try { .. }))
}
