//! Code as JSON: the form in which other programs read and write it.
//!
//! Entry points: [`to_json`], [`from_json`]. The format is described in `docs/exchange.md`; a change that
//! readers of an older version would misread raises [`VERSION`].
//!
//! Invariant: the JSON is at most as deep as a literal or type in it; terms stand in a flat list,
//! children before parents. What is read is built anew through [`Builder`], so it is resolved and checked
//! like what a front end makes.

use crate::{
    Abs, AbsSugar, Among, Approve, Bound, BoundOrigin, Branch, BuildError, Builder, Catches, Code,
    Comparison, Data, Delegated, Effect, EffectClass, EffectRow, EnumType, Globals, IfSugar, Includes,
    KeyDecl, LabelSpec, LetSugar, MAX_DATA_DEPTH, Measure, ModelParams, Name, Num, Pattern, Plain, Pred,
    Prim, RecType, Recv, ResultParts, Role, Schema, Slot, StoreDecl, StoreId, Term, TermId, ToolDecl, ToolId,
    ToolParam, Type,
};
use diagnostics::{FileId, Sources, Span, clip};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The version of the format that [`to_json`] writes and [`from_json`] reads.
pub const VERSION: u64 = 1;

/// Whole numbers up to this are JSON numbers; all others are texts, because many readers of JSON round.
const SAFE_INTEGER: u64 = 1 << 53;

/// Program read from the exchange format.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The code. Its spans name files by their position in `files`.
    pub code: Code,
    /// The paths of the files that the spans point into.
    pub files: Vec<String>,
}

/// Reason why JSON is not valid code, with its place (a path such as `$.terms[3].body`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeError {
    /// Path in the JSON.
    pub path: String,
    /// Description of the error.
    pub message: String,
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl std::error::Error for ExchangeError {}

/// The code as JSON. Paths of files are taken from `sources`.
///
/// # Examples
/// ```
/// use core_ir::{Builder, Globals, exchange};
/// use diagnostics::Sources;
/// let mut sources = Sources::new();
/// let file = sources.add("one.lam", "1");
/// let mut b = Builder::new();
/// let one = b.lit(core_ir::Num::ONE, sources.span(file, 0, 1));
/// let code = b.finish(one, &Globals::none()).unwrap();
/// let json = exchange::to_json(&code, &sources);
/// assert_eq!(json["terms"][0], serde_json::json!({"op": "lit", "value": 1, "at": [0, 0, 1]}));
/// let back = exchange::from_json(&json, &Globals::none()).unwrap();
/// assert!(back.code == code && back.files == ["one.lam"]);
/// ```
pub fn to_json(code: &Code, sources: &Sources) -> Value {
    let mut w = ExchangeWriter { sources, files: Vec::new(), known: HashMap::new() };
    let terms = w.terms(code);
    let tools: Vec<Value> = code.tools.iter().map(|t| w.tool(t)).collect();
    let stores: Vec<Value> = code.stores.iter().map(|s| w.store(s)).collect();
    json!({
        "format": "entail-core", "version": VERSION, "files": w.files,
        "tools": tools, "stores": stores, "root": terms.len().saturating_sub(1), "terms": terms,
    })
}

/// The terms that stand in the list, children first, and where each stands: the inner terms of sugar are
/// left out, since reading the sugar makes them again.
fn visible(code: &Code) -> (Vec<TermId>, HashMap<TermId, usize>) {
    let mut order = Vec::new();
    let mut work = vec![(code.root(), false)];
    while let Some((id, done)) = work.pop() {
        if done {
            order.push(id);
        } else {
            work.push((id, true));
            work.extend(children(code, id).into_iter().rev().map(|c| (c, false)));
        }
    }
    let shown = order.iter().enumerate().map(|(i, id)| (*id, i)).collect();
    (order, shown)
}

/// The terms that a term refers to in its JSON.
fn children(code: &Code, id: TermId) -> Vec<TermId> {
    match sugar(code, id) {
        Some(Sugar::Compose(stages)) => stages,
        Some(Sugar::ParPair(a, b)) => vec![a, b],
        Some(Sugar::Ask(e)) => vec![e],
        None => code.term(id).children(),
    }
}

enum Sugar {
    Compose(Vec<TermId>),
    ParPair(TermId, TermId),
    Ask(TermId),
}

fn sugar(code: &Code, id: TermId) -> Option<Sugar> {
    match code.term(id) {
        Term::Abs(Abs { sugar: AbsSugar::Compose, .. }) => code.stages(id).map(Sugar::Compose),
        Term::Abs(Abs { sugar: AbsSugar::ParPair, .. }) => {
            code.par_pair(id).map(|(a, b)| Sugar::ParPair(a, b))
        }
        Term::Let { bindings, sugar: LetSugar::Ask, .. } => match code.term(bindings.first()?.1) {
            Term::Send(Role::User, e) => Some(Sugar::Ask(*e)),
            _ => None,
        },
        _ => None,
    }
}

// Writing.

struct ExchangeWriter<'a> {
    sources: &'a Sources,
    files: Vec<String>,
    known: HashMap<FileId, usize>,
}

impl ExchangeWriter<'_> {
    fn at(&mut self, span: Span) -> Value {
        let file = *self.known.entry(span.file).or_insert_with(|| {
            self.files.push(self.sources.get(span.file).map_or(String::new(), |s| s.path.clone()));
            self.files.len() - 1
        });
        json!([file, span.start, span.end])
    }

    fn terms(&mut self, code: &Code) -> Vec<Value> {
        let (order, shown) = visible(code);
        order.iter().map(|id| self.term(code, *id, &shown)).collect()
    }

    fn term(&mut self, code: &Code, id: TermId, shown: &HashMap<TermId, usize>) -> Value {
        // Every term that is referred to is shown.
        let r = |id: &TermId| json!(shown.get(id).copied().unwrap_or(usize::MAX));
        let rs = |ids: &[TermId]| Value::Array(ids.iter().map(r).collect());
        let two = |op: &str, a: &TermId, b: &TermId| json!({"op": op, "of": [r(a), r(b)]});
        let one = |op: &str, e: &TermId| json!({"op": op, "of": [r(e)]});
        let mut out = match sugar(code, id) {
            Some(Sugar::Compose(stages)) => json!({"op": "compose", "of": rs(&stages)}),
            Some(Sugar::ParPair(a, b)) => two("par_pair", &a, &b),
            Some(Sugar::Ask(e)) => one("ask", &e),
            None => match code.term(id) {
                Term::Var(name, _) => json!({"op": "var", "name": **name}),
                Term::Lit(data) => json!({"op": "lit", "value": data_json(data)}),
                Term::Record(fields) => {
                    let fields: Vec<Value> = fields.iter().map(|(n, e)| json!([**n, r(e)])).collect();
                    json!({"op": "record", "fields": fields})
                }
                Term::Args(tool, fields) => {
                    let fields: Vec<Value> = fields.iter().map(|(n, e)| json!([**n, r(e)])).collect();
                    json!({"op": "args", "tool": tool.0, "fields": fields})
                }
                Term::List(items) => json!({"op": "list", "of": rs(items)}),
                Term::Abs(abs) => {
                    let mut o = json!({"op": "abs", "param": *abs.param, "body": r(&abs.body)});
                    if let Some(ty) = &abs.ty {
                        o["type"] = type_json(ty);
                    }
                    o
                }
                Term::App(f, x) => two("app", f, x),
                Term::Let { bindings, body, .. } => {
                    let bindings: Vec<Value> = bindings.iter().map(|(n, e)| json!([**n, r(e)])).collect();
                    json!({"op": "let", "bindings": bindings, "body": r(body)})
                }
                Term::Field(e, n) => json!({"op": "field", "of": [r(e)], "name": **n}),
                Term::Index(e, i) => two("index", e, i),
                Term::With(e, n, v) => json!({"op": "with", "of": [r(e), r(v)], "name": **n}),
                Term::Prim(p, es) => json!({"op": "prim", "prim": p.name(), "of": rs(es)}),
                Term::Pair(a, b) => two("pair", a, b),
                Term::Fst(e) => one("fst", e),
                Term::Snd(e) => one("snd", e),
                Term::Tag(n, None) => json!({"op": "tag", "name": **n}),
                Term::Tag(n, Some(e)) => json!({"op": "tag", "name": **n, "of": [r(e)]}),
                Term::If(c, a, b, sugar) => {
                    let mut o = json!({"op": "if", "of": [r(c), r(a), r(b)]});
                    match sugar {
                        IfSugar::Plain => {}
                        IfSugar::And => o["sugar"] = "and".into(),
                        IfSugar::Or => o["sugar"] = "or".into(),
                    }
                    o
                }
                Term::Case { scrutinee, branches, default } => {
                    let branches: Vec<Value> = branches
                        .iter()
                        .map(|b| {
                            let mut o = json!({"tag": *b.tag, "body": r(&b.body)});
                            if let Some(x) = &b.binder {
                                o["binder"] = Value::from(&**x);
                            }
                            o
                        })
                        .collect();
                    let mut o = json!({"op": "case", "of": [r(scrutinee)], "branches": branches});
                    if let Some(e) = default {
                        o["default"] = r(e);
                    }
                    o
                }
                Term::Classify(tags, e) => json!({"op": "classify", "tags": names_json(tags), "of": [r(e)]}),
                Term::Fix { bound, origin, body } => {
                    let bound = match bound {
                        Bound::Finite(n) => whole_json(*n),
                        Bound::Infinite => "inf".into(),
                    };
                    let mut o = json!({"op": "fix", "bound": bound, "of": [r(body)]});
                    if let Some(origin) = origin {
                        o["origin"] = Value::from(origin.to_string());
                    }
                    o
                }
                Term::Guard { term, pred, retry } => {
                    json!({"op": "guard", "of": [r(term)], "pred": pred_json(pred), "retry": retry})
                }
                Term::Mem(store, e) => json!({"op": "mem", "store": store.0, "of": [r(e)]}),
                Term::Recall(k, _) => json!({"op": "recall", "key": **k}),
                Term::Remember(k, _, e) => json!({"op": "remember", "key": **k, "of": [r(e)]}),
                Term::Choose(p, a, b) => json!({"op": "choose", "p": num_json(p), "of": [r(a), r(b)]}),
                Term::Llm(e, p) => json!({"op": "llm", "of": [r(e)], "params": params_json(p)}),
                Term::Tool(t) => json!({"op": "tool", "tool": t.0}),
                Term::Send(role, e) => json!({"op": "send", "role": role.as_str(), "of": [r(e)]}),
                Term::Recv(Recv::Code) => json!({"op": "recv"}),
                Term::Recv(Recv::Data(p)) => json!({"op": "recv", "params": params_json(p)}),
                Term::Fork(e) => one("fork", e),
                Term::Fresh(e) => one("fresh", e),
                Term::Clear => json!({"op": "clear"}),
                Term::Relabel(a, b) => two("relabel", a, b),
                Term::Test(a, b) => two("test", a, b),
                Term::Assert(a, b) => two("assert", a, b),
                Term::Endorse(a, b) => two("endorse", a, b),
                Term::Declassify(a, b) => two("declassify", a, b),
                Term::Try { label, body, catches, name, handler } => {
                    let op = match catches {
                        Catches::All => "try",
                        Catches::NotTimeout => "try_not_timeout",
                        Catches::NotPermanent => "try_not_permanent",
                        Catches::Transient => "try_transient",
                        Catches::Error => "try_error",
                        Catches::Refusal => "try_refusal",
                    };
                    json!({"op": op, "of": [r(label), r(body), r(handler)], "name": **name})
                }
                Term::Fail(e) => one("fail", e),
                Term::Within(n, e) => json!({"op": "within", "seconds": num_json(n), "of": [r(e)]}),
                Term::Par(n, es) => {
                    let mut o = json!({"op": "par", "of": rs(es)});
                    if let Some(n) = n {
                        o["most"] = (*n).into();
                    }
                    o
                }
                Term::Each(n, f, list) => {
                    let mut o = json!({"op": "each", "of": [r(f), r(list)]});
                    if let Some(n) = n {
                        o["most"] = (*n).into();
                    }
                    o
                }
                Term::Check(n, t, e) => {
                    json!({"op": "check", "name": **n, "type": type_json(t), "of": [r(e)]})
                }
                Term::Unknown(why) => json!({"op": "unknown", "reason": **why}),
            },
        };
        out["at"] = self.at(code.span(id));
        out
    }

    fn tool(&mut self, t: &ToolDecl) -> Value {
        let params: Vec<Value> = t
            .params
            .iter()
            .map(|p| {
                let mut o = json!({"name": *p.name, "type": type_json(&p.ty), "bound": label_json(&p.bound)});
                if let Some(d) = &p.default {
                    o["default"] = data_json(d);
                }
                o
            })
            .collect();
        let mut o = json!({
            "name": *t.name, "params": params, "result": type_json(&t.result),
            "effect": effect_word(t.effect), "control": label_json(&t.control), "label": label_json(&t.label),
        });
        if !t.parts.is_empty() {
            o["fields"] = data_json(&t.parts.to_data());
        }
        if let Some(d) = &t.description {
            o["description"] = Value::from(&**d);
        }
        if let Some(h) = &t.handler {
            o["handler"] = data_json(h);
        }
        match t.approve {
            Approve::Never => {}
            Approve::IfRefused => o["approve"] = "if-refused".into(),
            Approve::Always => o["approve"] = true.into(),
        }
        if let Some(delegated) = &t.delegated {
            o["delegated"] = data_json(&delegated.to_data());
        }
        if t.confirms {
            o["confirm"] = true.into();
        }
        if !t.among.is_empty() {
            o["among"] = t.among.iter().map(|a| data_json(&a.to_data())).collect();
        }
        if !t.plain.is_empty() {
            o["plain"] = t.plain.iter().map(|(n, p)| (n.to_string(), Value::from(p.as_str()))).collect();
        }
        if !t.pattern.is_empty() {
            let patterns = t.pattern.iter().map(|(n, p)| (n.clone(), Data::str(p.as_str())));
            o["pattern"] = data_json(&Data::record(patterns));
        }
        if !t.completes.is_empty() {
            o["completes"] = t.completes.iter().map(|n| Value::from(&**n)).collect();
        }
        if !t.includes.is_empty() {
            let names = |all: &[Name]| Data::list(all.iter().map(|n| Data::str(&**n)));
            let includes = t.includes.iter().map(|(n, who)| (n.clone(), names(who)));
            o["includes"] = data_json(&Data::record(includes));
        }
        if let Some(most) = t.at_most {
            o["at_most"] = whole_json(most);
        }
        if let Some(policy) = &t.policy {
            let terms = self.terms(policy);
            o["policy"] = json!({"root": terms.len().saturating_sub(1), "terms": terms});
        }
        o["at"] = self.at(t.span);
        o
    }

    fn store(&mut self, s: &StoreDecl) -> Value {
        let keys: Vec<Value> = s
            .keys
            .iter()
            .map(|k| {
                let mut o = json!({"name": *k.name, "type": type_json(&k.ty), "label": label_json(&k.label)});
                if let Some(d) = &k.initial {
                    o["initial"] = data_json(d);
                }
                o
            })
            .collect();
        let mut o = json!({"name": *s.name, "keys": keys});
        if let Some(n) = s.capacity {
            o["capacity"] = whole_json(n);
        }
        if let Some(n) = s.ttl {
            o["ttl"] = whole_json(n);
        }
        if let Some(b) = &s.backend {
            o["backend"] = Value::from(&**b);
        }
        o["at"] = self.at(s.span);
        o
    }
}

fn names_json(names: &[Name]) -> Value {
    Value::Array(names.iter().map(|n| Value::from(&**n)).collect())
}

fn whole_json(n: u64) -> Value {
    if n <= SAFE_INTEGER { n.into() } else { n.to_string().into() }
}

/// A small whole number as it is, any other as text: `"0.1"`, `"1/3"`.
fn num_json(n: &Num) -> Value {
    match n.to_i64() {
        Some(i) if i.unsigned_abs() <= SAFE_INTEGER => i.into(),
        _ => n.to_string().into(),
    }
}

/// Data: what JSON can say without doubt is said plainly; the rest is an object with one field that begins
/// with `$`.
pub fn data_json(data: &Data) -> Value {
    stacker::maybe_grow(32 * 1024, 1024 * 1024, || match data {
        Data::Null => Value::Null,
        Data::Bool(b) => (*b).into(),
        Data::Num(n) => match num_json(n) {
            Value::String(text) => json!({"$num": text}),
            plain => plain,
        },
        Data::Str(s) => Value::from(&**s),
        Data::List(items) => Value::Array(items.iter().map(data_json).collect()),
        Data::Record(fields) => {
            let plain = fields.iter().all(|(n, _)| !n.starts_with('$'));
            if plain {
                Value::Object(fields.iter().map(|(n, d)| (n.to_string(), data_json(d))).collect())
            } else {
                let fields: Vec<Value> = fields.iter().map(|(n, d)| json!([**n, data_json(d)])).collect();
                json!({"$record": fields})
            }
        }
        Data::Pair(p) => json!({"$pair": [data_json(&p.0), data_json(&p.1)]}),
        Data::Tag(n, d) => json!({"$tag": [**n, data_json(d)]}),
    })
}

fn fields_json(fields: &[(Name, Type)]) -> Value {
    Value::Array(fields.iter().map(|(n, t)| json!([**n, type_json(t)])).collect())
}

fn type_json(t: &Type) -> Value {
    stacker::maybe_grow(32 * 1024, 1024 * 1024, || match t {
        Type::Dyn => "Dyn".into(),
        Type::Str => "Str".into(),
        Type::Num => "Num".into(),
        Type::Bool => "Bool".into(),
        Type::Null => "Null".into(),
        Type::List(t) => json!({"list": type_json(t)}),
        Type::Option(t) => json!({"option": type_json(t)}),
        Type::Record(fields) => json!({"record": fields_json(fields)}),
        Type::Enum(e) if e.is_described() => {
            let described = e.described_variants();
            let described = described.filter_map(|(v, d)| Some((v.to_string(), Value::from(&**d?))));
            json!({"enum": [*e.name, names_json(&e.variants), Value::Object(described.collect())]})
        }
        Type::Enum(e) => json!({"enum": [*e.name, names_json(&e.variants)]}),
        Type::Variant(tags) => json!({"variant": fields_json(tags)}),
        Type::Pair(p) => json!({"pair": [type_json(&p.0), type_json(&p.1)]}),
        Type::Map(p) => json!({"map": [type_json(&p.0), type_json(&p.1)]}),
        Type::Fun(f) => json!({"function": [type_json(&f.0), row_json(&f.1), type_json(&f.2)]}),
        Type::Rec(r) => json!({"rec": [**r.name(), fields_json(r.bodies())]}),
        Type::Var(name) => json!({"var": **name}),
        Type::Refined(r) => json!({"refined": [type_json(&r.0), pred_json(&r.1)]}),
    })
}

fn row_json(row: &EffectRow) -> Value {
    match row {
        EffectRow::Any => "any".into(),
        EffectRow::Only(set) => Value::Array(
            set.iter()
                .map(|e| match e {
                    Effect::Llm(n) => json!({"llm": **n}),
                    Effect::Tool(n) => json!({"tool": **n}),
                    Effect::State(n) => json!({"state": **n}),
                    Effect::Sample => "sample".into(),
                    Effect::Conversation => "conversation".into(),
                })
                .collect(),
        ),
    }
}

fn pred_json(p: &Pred) -> Value {
    stacker::maybe_grow(32 * 1024, 1024 * 1024, || match p {
        Pred::True => "any".into(),
        Pred::Compare(m, c, n) => json!({"compare": [m.as_str(), c.as_str(), num_json(n)]}),
        Pred::Matches(s) => json!({"matches": **s}),
        Pred::Contains(s) => json!({"contains": **s}),
        Pred::OneOf(items) => json!({"in": items.iter().map(data_json).collect::<Vec<_>>()}),
        Pred::Field(n, p) => json!({"field": [**n, pred_json(p)]}),
        Pred::Every(p) => json!({"every": pred_json(p)}),
        Pred::Some(p) => json!({"some": pred_json(p)}),
        Pred::Schema(s) => json!({"schema": data_json(s.source())}),
        Pred::And(p) => json!({"and": [pred_json(&p.0), pred_json(&p.1)]}),
        Pred::Or(p) => json!({"or": [pred_json(&p.0), pred_json(&p.1)]}),
        Pred::Not(p) => json!({"not": pred_json(p)}),
    })
}

/// A label in the exchange format.
pub fn label_json(l: &LabelSpec) -> Value {
    match l {
        LabelSpec::Axes { untrusted, secret } => json!({"untrusted": untrusted, "secret": secret}),
        LabelSpec::Exact(data) => json!({"exact": data_json(data)}),
    }
}

fn effect_word(e: EffectClass) -> &'static str {
    match e {
        EffectClass::Pure => "pure",
        EffectClass::Read => "read",
        EffectClass::Write => "write",
    }
}

fn params_json(p: &ModelParams) -> Value {
    let mut o = Map::new();
    if let Some(m) = &p.model {
        o.insert("model".into(), Value::from(&**m));
    }
    if let Some(t) = &p.temperature {
        o.insert("temperature".into(), num_json(t));
    }
    if let Some(n) = p.max_tokens {
        o.insert("max_tokens".into(), whole_json(n));
    }
    if let Some(t) = &p.result {
        o.insert("result".into(), type_json(t));
    }
    o.insert("repair".into(), p.repair.into());
    o.insert("tools".into(), p.tools.iter().map(|t| t.0).collect());
    if p.waiting {
        o.insert("waiting".into(), true.into());
    }
    if let Some(s) = &p.purpose {
        o.insert("purpose".into(), Value::from(&**s));
    }
    o.insert("extra".into(), p.extra.iter().map(|(n, d)| json!([**n, data_json(d)])).collect());
    Value::Object(o)
}

// Reading.

/// Reads what [`to_json`] wrote. Global variables are looked up in `globals` by name.
///
/// # Errors
/// Everything that is wrong, at most a hundred findings.
pub fn from_json(json: &Value, globals: &Arc<Globals>) -> Result<Imported, Vec<ExchangeError>> {
    let mut reader = ExchangeReader {
        globals: globals.clone(),
        b: Builder::new(),
        files: 0,
        tools: 0,
        stores: 0,
        errors: Vec::new(),
    };
    let root = reader.all(json);
    if !reader.errors.is_empty() {
        reader.errors.truncate(100);
        return Err(reader.errors);
    }
    let Some((root, files, at)) = root else { return Err(reader.errors) };
    reader.b.finish(root, globals).map(|code| Imported { code, files }).map_err(|errors| {
        let place = |span: Span| {
            let i = at.iter().position(|s| *s == span);
            i.map_or("$.terms".into(), |i| format!("$.terms[{i}]"))
        };
        let say = |e| {
            let (message, span) = refusal(e);
            ExchangeError { path: place(span), message }
        };
        errors.into_iter().take(100).map(say).collect()
    })
}

fn refusal(e: BuildError) -> (String, Span) {
    match e {
        BuildError::Unbound(n, s) => (format!("unknown variable `{n}`"), s),
        BuildError::UnknownKey(n, s) => (format!("no enclosing store has the key `{n}`"), s),
        BuildError::TooDeep(s) => ("nested too deep".into(), s),
        BuildError::Shared(s) => ("a term is used twice".into(), s),
        BuildError::NotAFunction(n, s) => (format!("`{n}` is not a function"), s),
        BuildError::Policy(n, s) => (format!("the policy of `{n}` asks models, tools or stores"), s),
        BuildError::Stores(conflict) => (conflict.to_string(), conflict.second),
    }
}

/// Reads what [`data_json`] wrote.
///
/// # Errors
/// The first thing that is wrong.
///
/// # Examples
/// ```
/// use core_ir::{Data, exchange};
/// let d = Data::list([Data::Num("1/3".parse().unwrap()), Data::str("x")]);
/// assert_eq!(exchange::data_from_json(&exchange::data_json(&d)), Ok(d));
/// ```
pub fn data_from_json(json: &Value) -> Result<Data, ExchangeError> {
    let mut reader = ExchangeReader {
        b: Builder::new(),
        files: 0,
        tools: 0,
        stores: 0,
        globals: Globals::none(),
        errors: Vec::new(),
    };
    let read = reader.data(&JsonPlace { value: json, up: None, step: Step::Root }, 0);
    read.ok_or_else(|| {
        let unknown = ExchangeError { path: "$".into(), message: "no data".into() };
        reader.errors.into_iter().next().unwrap_or(unknown)
    })
}

/// A part of the JSON with its path, or `None` after an error that was noted.
type Read<T> = Option<T>;

struct ExchangeReader {
    globals: Arc<Globals>,
    b: Builder,
    files: usize,
    tools: usize,
    stores: usize,
    errors: Vec<ExchangeError>,
}

/// A value and how it was reached. The path is only spelled out for an error.
#[derive(Clone, Copy)]
struct JsonPlace<'a> {
    value: &'a Value,
    up: Option<&'a JsonPlace<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Item(usize),
}

impl<'a> JsonPlace<'a> {
    fn field(&'a self, name: &'a str) -> Option<JsonPlace<'a>> {
        Some(JsonPlace { value: self.value.get(name)?, up: Some(self), step: Step::Field(name) })
    }

    fn path(&self) -> String {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(place) = at {
            steps.push(place.step);
            at = place.up;
        }
        steps
            .into_iter()
            .rev()
            .map(|s| match s {
                Step::Root => "$".to_string(),
                Step::Field(n) => format!(".{n}"),
                Step::Item(i) => format!("[{i}]"),
            })
            .collect()
    }
}

impl ExchangeReader {
    fn wrong<T>(&mut self, place: &JsonPlace, message: impl Into<String>) -> Read<T> {
        if self.errors.len() < 100 {
            self.errors.push(ExchangeError { path: place.path(), message: message.into() });
        }
        None
    }

    fn need<'a>(&mut self, place: &'a JsonPlace<'a>, name: &'a str) -> Read<JsonPlace<'a>> {
        match place.field(name) {
            Some(p) => Some(p),
            None => self.wrong(place, format!("the field `{name}` is missing")),
        }
    }

    fn text<'a>(&mut self, place: &JsonPlace<'a>) -> Read<&'a str> {
        match place.value.as_str() {
            Some(s) => Some(s),
            None => self.wrong(place, "expected a string"),
        }
    }

    fn name(&mut self, place: &JsonPlace) -> Read<Name> {
        self.text(place).map(Name::from)
    }

    fn named(&mut self, place: &JsonPlace, field: &str) -> Read<Name> {
        let p = self.need(place, field)?;
        self.name(&p)
    }

    /// An optional field; the outer `None` is an error.
    fn maybe<T>(
        &mut self,
        place: &JsonPlace,
        field: &str,
        read: impl FnOnce(&mut Self, &JsonPlace) -> Read<T>,
    ) -> Read<Option<T>> {
        match place.field(field) {
            Some(p) => read(self, &p).map(Some),
            None => Some(None),
        }
    }

    fn items<T>(
        &mut self,
        place: &JsonPlace,
        mut read: impl FnMut(&mut Self, &JsonPlace) -> Read<T>,
    ) -> Read<Vec<T>> {
        let Some(items) = place.value.as_array() else { return self.wrong(place, "expected a list") };
        let mut out = Vec::with_capacity(items.len());
        let mut failed = false;
        for (i, value) in items.iter().enumerate() {
            match read(self, &JsonPlace { value, up: Some(place), step: Step::Item(i) }) {
                Some(t) => out.push(t),
                None => failed = true,
            }
        }
        if failed { None } else { Some(out) }
    }

    /// The parts of a list of known length.
    fn parts<'a, const N: usize>(&mut self, place: &'a JsonPlace<'a>) -> Read<[JsonPlace<'a>; N]> {
        let parts: Option<[JsonPlace<'a>; N]> = place.value.as_array().and_then(|items| {
            let places: Vec<JsonPlace<'a>> = items
                .iter()
                .enumerate()
                .map(|(i, value)| JsonPlace { value, up: Some(place), step: Step::Item(i) })
                .collect();
            places.try_into().ok()
        });
        match parts {
            Some(parts) => Some(parts),
            None => self.wrong(place, format!("expected a list of {N}")),
        }
    }

    fn whole(&mut self, place: &JsonPlace) -> Read<u64> {
        let n = match place.value {
            Value::String(s) => s.parse().ok(),
            other => other.as_u64(),
        };
        match n {
            Some(n) => Some(n),
            None => self.wrong(place, "expected a whole number"),
        }
    }

    fn small(&mut self, place: &JsonPlace) -> Read<u32> {
        match self.whole(place).map(u32::try_from)? {
            Ok(n) => Some(n),
            Err(_) => self.wrong(place, "the number is out of range"),
        }
    }

    fn num(&mut self, place: &JsonPlace) -> Read<Num> {
        let text = match place.value {
            Value::String(s) => s.clone(),
            Value::Number(n) => n.to_string().replace("e+", "e").replace("E+", "e"),
            _ => return self.wrong(place, "expected a number"),
        };
        match text.parse() {
            Ok(n) => Some(n),
            Err(e) => self.wrong(place, format!("{e}")),
        }
    }

    /// A number below `end`, the number of the `what` that there are.
    fn index(&mut self, place: &JsonPlace, end: usize, what: &str) -> Read<u32> {
        let n = self.small(place)?;
        if (n as usize) < end { Some(n) } else { self.wrong(place, format!("unknown {what} {n}")) }
    }

    fn all(&mut self, json: &Value) -> Option<(TermId, Vec<String>, Vec<Span>)> {
        let root = JsonPlace { value: json, up: None, step: Step::Root };
        let format = self.need(&root, "format")?;
        if format.value != "entail-core" {
            return self.wrong(&format, "expected `entail-core`");
        }
        let version = self.need(&root, "version")?;
        if self.whole(&version)? != VERSION {
            return self.wrong(&version, format!("only version {VERSION} is known"));
        }
        let files = self.need(&root, "files")?;
        let files = self.items(&files, |r, p| r.text(p).map(str::to_string))?;
        self.files = files.len();
        let tools = self.need(&root, "tools")?;
        for tool in self.items(&tools, Self::tool)? {
            self.b.tool(tool);
            self.tools += 1;
        }
        let stores = self.need(&root, "stores")?;
        for store in self.items(&stores, Self::store)? {
            self.b.store(store);
            self.stores += 1;
        }
        let (root, at) = self.terms(&root)?;
        Some((root, files, at))
    }

    /// The terms below `terms`, and the one that is the root, with the place of each.
    fn terms(&mut self, root: &JsonPlace) -> Option<(TermId, Vec<Span>)> {
        let terms = self.need(root, "terms")?;
        let Some(list) = terms.value.as_array() else { return self.wrong(&terms, "expected a list") };
        let mut ids: Vec<TermId> = Vec::with_capacity(list.len());
        let mut at = Vec::with_capacity(list.len());
        for (i, value) in list.iter().enumerate() {
            let place = JsonPlace { value, up: Some(&terms), step: Step::Item(i) };
            // Later terms refer to this one by its number, so continue even if it is wrong.
            let id = match self.term(&place, &ids) {
                Some(id) => id,
                None if self.errors.len() >= 100 => return None,
                None => self.b.add(Term::Clear, Span { file: FileId(0), start: 0, end: 0 }),
            };
            at.push(self.b.span(id));
            ids.push(id);
        }
        let last = self.need(root, "root")?;
        let n = self.index(&last, ids.len(), "term")?;
        Some((ids[n as usize], at))
    }

    /// The policy of a tool: terms of their own, without tools and stores.
    fn policy(&mut self, place: &JsonPlace) -> Read<Arc<Code>> {
        let outer = (std::mem::take(&mut self.b), self.tools, self.stores);
        (self.tools, self.stores) = (0, 0);
        let read = self.terms(place);
        let inner = std::mem::replace(&mut self.b, outer.0);
        (self.tools, self.stores) = (outer.1, outer.2);
        match inner.finish(read?.0, &self.globals) {
            Ok(code) => Some(Arc::new(code)),
            Err(errors) => {
                let message = errors.into_iter().next().map_or_else(String::new, |e| refusal(e).0);
                self.wrong(place, message)
            }
        }
    }

    fn at(&mut self, place: &JsonPlace) -> Read<Span> {
        let at = self.need(place, "at")?;
        let [file, start, end] = self.parts::<3>(&at)?;
        let file = FileId(self.index(&file, self.files, "file")?);
        let (start, end) = (self.small(&start)?, self.small(&end)?);
        if start > end {
            return self.wrong(&at, "the place ends before it begins");
        }
        Some(Span { file, start, end })
    }

    fn term(&mut self, place: &JsonPlace, ids: &[TermId]) -> Read<TermId> {
        let at = self.at(place)?;
        let op_place = self.need(place, "op")?;
        let op = self.text(&op_place)?;
        let term_id =
            |r: &mut Self, p: &JsonPlace| Some(ids[r.index(p, ids.len(), "earlier term")? as usize]);
        let of = match place.field("of") {
            Some(p) => self.items(&p, term_id)?,
            None => Vec::new(),
        };
        let bound_pair = |r: &mut Self, p: &JsonPlace| {
            let [n, e] = r.parts::<2>(p)?;
            Some((r.name(&n)?, term_id(r, &e)?))
        };
        let field = |r: &mut Self, name: &str| {
            let p = r.need(place, name)?;
            term_id(r, &p)
        };
        let term = match (op, &of[..]) {
            ("compose", stages) => return Some(self.b.compose(stages.to_vec(), at)),
            ("par_pair", [a, b]) => return Some(self.b.par_pair(*a, *b, at)),
            ("ask", [e]) => return Some(self.b.ask(*e, at)),
            ("var", []) => Term::Var(self.named(place, "name")?, Slot::Local(u32::MAX)),
            ("lit", []) => {
                let p = self.need(place, "value")?;
                Term::Lit(self.data(&p, 0)?)
            }
            ("record", []) => {
                let p = self.need(place, "fields")?;
                let fields = self.items(&p, bound_pair)?;
                self.distinct(&p, fields.iter().map(|f| &f.0))?;
                Term::Record(fields)
            }
            ("args", []) => {
                let p = self.need(place, "tool")?;
                let tool = ToolId(self.index(&p, self.tools, "tool")?);
                let p = self.need(place, "fields")?;
                let fields = self.items(&p, bound_pair)?;
                self.distinct(&p, fields.iter().map(|f| &f.0))?;
                Term::Args(tool, fields)
            }
            ("list", items) => Term::List(items.to_vec()),
            ("abs", []) => {
                let param = self.named(place, "param")?;
                let ty = self.maybe(place, "type", |r, p| r.ty(p))?;
                let body = field(self, "body")?;
                return Some(self.b.abs(param, ty, body, at));
            }
            ("app", [f, x]) => Term::App(*f, *x),
            ("let", []) => {
                let p = self.need(place, "bindings")?;
                let bindings = self.items(&p, bound_pair)?;
                if bindings.is_empty() {
                    return self.wrong(&p, "unbound variable");
                }
                Term::Let { bindings, body: field(self, "body")?, sugar: LetSugar::Plain }
            }
            ("field", [e]) => Term::Field(*e, self.named(place, "name")?),
            ("index", [e, i]) => Term::Index(*e, *i),
            ("with", [e, v]) => Term::With(*e, self.named(place, "name")?, *v),
            ("prim", operands) => {
                let p = self.need(place, "prim")?;
                let name = self.text(&p)?;
                let Some(prim) = Prim::from_name(name) else {
                    return self.wrong(&p, format!("unknown primitive `{name}`"));
                };
                if prim.arity().is_some_and(|n| n != operands.len()) {
                    return self.wrong(place, format!("`{name}` does not take {} operands", operands.len()));
                }
                Term::Prim(prim, operands.to_vec())
            }
            ("pair", [a, b]) => Term::Pair(*a, *b),
            ("fst", [e]) => Term::Fst(*e),
            ("snd", [e]) => Term::Snd(*e),
            ("tag", []) => Term::Tag(self.named(place, "name")?, None),
            ("tag", [e]) => Term::Tag(self.named(place, "name")?, Some(*e)),
            ("if", [c, a, b]) => {
                let sugar = match place.value.get("sugar").and_then(Value::as_str) {
                    Some("and") => IfSugar::And,
                    Some("or") => IfSugar::Or,
                    _ => IfSugar::Plain,
                };
                Term::If(*c, *a, *b, sugar)
            }
            ("case", [scrutinee]) => {
                let p = self.need(place, "branches")?;
                let branches = self.items(&p, |r, p| {
                    let tag = r.named(p, "tag")?;
                    let binder = r.maybe(p, "binder", |r, p| r.name(p))?;
                    let body = r.need(p, "body")?;
                    Some(Branch { tag, binder, body: term_id(r, &body)? })
                })?;
                self.distinct(&p, branches.iter().map(|b| &b.tag))?;
                let default = self.maybe(place, "default", term_id)?;
                Term::Case { scrutinee: *scrutinee, branches, default }
            }
            ("classify", [e]) => {
                let p = self.need(place, "tags")?;
                let tags = self.items(&p, |r, p| r.name(p))?;
                self.distinct(&p, tags.iter())?;
                Term::Classify(tags, *e)
            }
            ("fix", [body]) => {
                let p = self.need(place, "bound")?;
                let bound = if p.value == "inf" { Bound::Infinite } else { Bound::Finite(self.whole(&p)?) };
                let origin =
                    self.maybe(place, "origin", |r, p| r.name(p))?.map(|text| BoundOrigin::from(&*text));
                Term::Fix { bound, origin, body: *body }
            }
            ("guard", [e]) => {
                let (p, n) = (self.need(place, "pred")?, self.need(place, "retry")?);
                Term::Guard { term: *e, pred: self.pred(&p)?, retry: self.small(&n)? }
            }
            ("mem", [e]) => {
                let p = self.need(place, "store")?;
                Term::Mem(StoreId(self.index(&p, self.stores, "store")?), *e)
            }
            ("recall", []) => Term::Recall(self.named(place, "key")?, None),
            ("remember", [e]) => Term::Remember(self.named(place, "key")?, None, *e),
            ("choose", [a, b]) => {
                let p = self.need(place, "p")?;
                let probability = self.num(&p)?;
                if probability < Num::ZERO || probability > Num::ONE {
                    return self.wrong(&p, "no probability");
                }
                Term::Choose(probability, *a, *b)
            }
            ("llm", [e]) => {
                let p = self.need(place, "params")?;
                Term::Llm(*e, self.params(&p)?)
            }
            ("tool", []) => {
                let p = self.need(place, "tool")?;
                Term::Tool(ToolId(self.index(&p, self.tools, "tool")?))
            }
            ("send", [e]) => {
                let p = self.need(place, "role")?;
                let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
                match roles.into_iter().find(|r| p.value == r.as_str()) {
                    Some(role) => Term::Send(role, *e),
                    None => return self.wrong(&p, "expected `system`, `user`, `assistant` or `tool`"),
                }
            }
            ("recv", []) => match self.maybe(place, "params", |r, p| r.params(p))? {
                Some(params) => Term::Recv(Recv::Data(params)),
                None => Term::Recv(Recv::Code),
            },
            ("fork", [e]) => Term::Fork(*e),
            ("fresh", [e]) => Term::Fresh(*e),
            ("clear", []) => Term::Clear,
            ("relabel", [a, b]) => Term::Relabel(*a, *b),
            ("test", [a, b]) => Term::Test(*a, *b),
            ("assert", [a, b]) => Term::Assert(*a, *b),
            ("endorse", [a, b]) => Term::Endorse(*a, *b),
            ("declassify", [a, b]) => Term::Declassify(*a, *b),
            (
                op @ ("try" | "try_not_timeout" | "try_not_permanent" | "try_transient" | "try_error"
                | "try_refusal"),
                [label, body, handler],
            ) => {
                let name = self.named(place, "name")?;
                let catches = match op {
                    "try_not_timeout" => Catches::NotTimeout,
                    "try_not_permanent" => Catches::NotPermanent,
                    "try_transient" => Catches::Transient,
                    "try_error" => Catches::Error,
                    "try_refusal" => Catches::Refusal,
                    _ => Catches::All,
                };
                Term::Try { label: *label, body: *body, catches, name, handler: *handler }
            }
            ("fail", [e]) => Term::Fail(*e),
            ("within", [e]) => {
                let p = self.need(place, "seconds")?;
                let seconds = self.num(&p)?;
                if seconds < Num::ZERO {
                    return self.wrong(&p, "no time is negative");
                }
                Term::Within(seconds, *e)
            }
            ("par", items) => Term::Par(self.maybe(place, "most", |r, p| r.small(p))?, items.to_vec()),
            ("each", [f, list]) => Term::Each(self.maybe(place, "most", |r, p| r.small(p))?, *f, *list),
            ("check", [e]) => {
                let p = self.need(place, "type")?;
                Term::Check(self.named(place, "name")?, self.ty(&p)?, *e)
            }
            ("unknown", []) => Term::Unknown(self.named(place, "reason")?),
            (op, of) => {
                let n = of.len();
                return self.wrong(&op_place, format!("unknown term `{op}` of {n} terms"));
            }
        };
        Some(self.b.add(term, at))
    }

    fn distinct<'n>(&mut self, place: &JsonPlace, names: impl Iterator<Item = &'n Name>) -> Read<()> {
        let mut seen = std::collections::HashSet::new();
        for n in names {
            if !seen.insert(n) {
                return self.wrong(place, format!("`{n}` is given twice"));
            }
        }
        Some(())
    }

    fn data(&mut self, place: &JsonPlace, depth: usize) -> Read<Data> {
        if depth > MAX_DATA_DEPTH {
            return self.wrong(place, "nested too deep");
        }
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || match place.value {
            Value::Null => Some(Data::Null),
            Value::Bool(b) => Some(Data::Bool(*b)),
            Value::Number(_) => self.num(place).map(Data::Num),
            Value::String(s) => Some(Data::str(s.as_str())),
            Value::Array(_) => self.items(place, |r, p| r.data(p, depth + 1)).map(Data::list),
            Value::Object(o) => match o.iter().next() {
                Some((key, value)) if key.starts_with('$') => {
                    let inner = JsonPlace { value, up: Some(place), step: Step::Field(key) };
                    if o.len() > 1 {
                        return self.wrong(place, format!("`{key}` must be the only field"));
                    }
                    match key.as_str() {
                        "$num" => self.num(&inner).map(Data::Num),
                        "$pair" => {
                            let [a, b] = self.parts::<2>(&inner)?;
                            let pair = (self.data(&a, depth + 1)?, self.data(&b, depth + 1)?);
                            Some(Data::Pair(Arc::new(pair)))
                        }
                        "$tag" => {
                            let [n, d] = self.parts::<2>(&inner)?;
                            Some(Data::Tag(self.name(&n)?, Arc::new(self.data(&d, depth + 1)?)))
                        }
                        "$record" => {
                            let fields = self.items(&inner, |r, p| {
                                let [n, d] = r.parts::<2>(p)?;
                                Some((r.name(&n)?, r.data(&d, depth + 1)?))
                            })?;
                            self.distinct(&inner, fields.iter().map(|f| &f.0))?;
                            Some(Data::record(fields))
                        }
                        _ => self.wrong(place, format!("unknown form of data `{key}`")),
                    }
                }
                _ => {
                    let mut fields = Vec::with_capacity(o.len());
                    for (name, value) in o {
                        let part = JsonPlace { value, up: Some(place), step: Step::Field(name) };
                        fields.push((Name::from(name.as_str()), self.data(&part, depth + 1)?));
                    }
                    Some(Data::record(fields))
                }
            },
        })
    }

    /// The only field of an object.
    fn single<'a>(&mut self, place: &'a JsonPlace<'a>) -> Read<(&'a str, JsonPlace<'a>)> {
        match place.value.as_object().and_then(|o| if o.len() == 1 { o.iter().next() } else { None }) {
            Some((key, value)) => Some((key, JsonPlace { value, up: Some(place), step: Step::Field(key) })),
            None => self.wrong(place, "expected an object with one field"),
        }
    }

    fn fields(&mut self, place: &JsonPlace) -> Read<Arc<[(Name, Type)]>> {
        let fields = self.items(place, |r, p| {
            let [n, t] = r.parts::<2>(p)?;
            Some((r.name(&n)?, r.ty(&t)?))
        })?;
        self.distinct(place, fields.iter().map(|f| &f.0))?;
        Some(fields.into())
    }

    /// The enumeration with the descriptions of an object, which has them by variant.
    fn variant_descriptions(&mut self, place: &JsonPlace, ty: EnumType) -> Read<EnumType> {
        let Some(described) = place.value.as_object() else {
            return self.wrong(place, "expected an object of descriptions");
        };
        if let Some(unknown) = described.keys().find(|name| !ty.variants.iter().any(|v| **v == ***name)) {
            return self.wrong(place, format!("`{}` is no variant of `{}`", clip(unknown), clip(&ty.name)));
        }
        let mut descriptions = Vec::with_capacity(ty.variants.len());
        for variant in &ty.variants {
            descriptions.push(self.maybe(place, variant, |r, p| r.name(p))?);
        }
        Some(ty.described(descriptions))
    }

    // The depth of types and predicates is that of the JSON, which its parser bounded or a program built.
    fn ty(&mut self, place: &JsonPlace) -> Read<Type> {
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || {
            if let Some(word) = place.value.as_str() {
                return Some(match word {
                    "Dyn" => Type::Dyn,
                    "Str" => Type::Str,
                    "Num" => Type::Num,
                    "Bool" => Type::Bool,
                    "Null" => Type::Null,
                    _ => return self.wrong(place, format!("unknown type `{word}`")),
                });
            }
            let (kind, p) = self.single(place)?;
            Some(match kind {
                "list" => Type::list(self.ty(&p)?),
                "option" => Type::option(self.ty(&p)?),
                "record" => Type::Record(self.fields(&p)?),
                "variant" => Type::Variant(self.fields(&p)?),
                "enum" => {
                    let is_described = p.value.as_array().is_some_and(|parts| parts.len() == 3);
                    let (n, v, d) = if is_described {
                        let [n, v, d] = self.parts::<3>(&p)?;
                        (n, v, Some(d))
                    } else {
                        let [n, v] = self.parts::<2>(&p)?;
                        (n, v, None)
                    };
                    let variants = self.items(&v, |r, p| r.name(p))?;
                    self.distinct(&v, variants.iter())?;
                    let ty = EnumType::new(self.name(&n)?, variants);
                    Type::Enum(Arc::new(match d {
                        Some(d) => self.variant_descriptions(&d, ty)?,
                        None => ty,
                    }))
                }
                "pair" => {
                    let [a, b] = self.parts::<2>(&p)?;
                    Type::Pair(Arc::new((self.ty(&a)?, self.ty(&b)?)))
                }
                "map" => {
                    let [key, value] = self.parts::<2>(&p)?;
                    Type::map(self.ty(&key)?, self.ty(&value)?)
                }
                "function" => {
                    let [a, e, b] = self.parts::<3>(&p)?;
                    Type::fun(self.ty(&a)?, self.row(&e)?, self.ty(&b)?)
                }
                "rec" => {
                    let [name, bodies] = self.parts::<2>(&p)?;
                    match RecType::new(self.name(&name)?, self.fields(&bodies)?) {
                        Some(r) => Type::Rec(Arc::new(r)),
                        None => return self.wrong(place, "this is no recursive type"),
                    }
                }
                "var" => Type::Var(self.name(&p)?),
                "refined" => {
                    let [t, q] = self.parts::<2>(&p)?;
                    Type::Refined(Arc::new((self.ty(&t)?, self.pred(&q)?)))
                }
                _ => return self.wrong(place, format!("unknown type `{kind}`")),
            })
        })
    }

    fn row(&mut self, place: &JsonPlace) -> Read<EffectRow> {
        if place.value == "any" {
            return Some(EffectRow::Any);
        }
        let effects = self.items(place, |r, p| match p.value.as_str() {
            Some("sample") => Some(Effect::Sample),
            Some("conversation") => Some(Effect::Conversation),
            Some(_) => r.wrong(p, "unknown effect"),
            None => {
                let (kind, inner) = r.single(p)?;
                let name = r.name(&inner)?;
                match kind {
                    "llm" => Some(Effect::Llm(name)),
                    "tool" => Some(Effect::Tool(name)),
                    "state" => Some(Effect::State(name)),
                    _ => r.wrong(p, "unknown effect"),
                }
            }
        })?;
        Some(EffectRow::Only(effects.into_iter().collect()))
    }

    fn pred(&mut self, place: &JsonPlace) -> Read<Pred> {
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || {
            if place.value == "any" {
                return Some(Pred::True);
            }
            let (kind, p) = self.single(place)?;
            Some(match kind {
                "compare" => {
                    let [m, c, n] = self.parts::<3>(&p)?;
                    let measures = [Measure::Length, Measure::Words, Measure::Value];
                    let comparisons = [
                        Comparison::Lt,
                        Comparison::Le,
                        Comparison::Gt,
                        Comparison::Ge,
                        Comparison::Eq,
                        Comparison::Ne,
                    ];
                    let measure = measures.into_iter().find(|x| m.value == x.as_str());
                    let comparison = comparisons.into_iter().find(|x| c.value == x.as_str());
                    match (measure, comparison) {
                        (Some(measure), Some(comparison)) => {
                            Pred::Compare(measure, comparison, self.num(&n)?)
                        }
                        _ => return self.wrong(&p, "unknown comparison"),
                    }
                }
                "matches" => Pred::Matches(self.text(&p)?.into()),
                "contains" => Pred::Contains(self.text(&p)?.into()),
                "in" => Pred::OneOf(self.items(&p, |r, p| r.data(p, 0))?.into()),
                "field" => {
                    let [n, q] = self.parts::<2>(&p)?;
                    Pred::Field(self.name(&n)?, Arc::new(self.pred(&q)?))
                }
                "every" => Pred::Every(Arc::new(self.pred(&p)?)),
                "some" => Pred::Some(Arc::new(self.pred(&p)?)),
                "schema" => match Schema::new(&self.data(&p, 0)?) {
                    Ok(schema) => Pred::Schema(Arc::new(schema)),
                    Err(why) => return self.wrong(&p, format!("no JSON Schema: {why}")),
                },
                "not" => Pred::Not(Arc::new(self.pred(&p)?)),
                "and" | "or" => {
                    let [a, b] = self.parts::<2>(&p)?;
                    let both = Arc::new((self.pred(&a)?, self.pred(&b)?));
                    if kind == "and" { Pred::And(both) } else { Pred::Or(both) }
                }
                _ => return self.wrong(place, format!("unknown predicate `{kind}`")),
            })
        })
    }

    fn label(&mut self, place: &JsonPlace) -> Read<LabelSpec> {
        if let Some(p) = place.field("exact") {
            return self.data(&p, 0).map(LabelSpec::Exact);
        }
        let axis = |name| place.value.get(name).and_then(Value::as_bool);
        match (axis("untrusted"), axis("secret")) {
            (Some(untrusted), Some(secret)) => Some(LabelSpec::Axes { untrusted, secret }),
            _ => self.wrong(place, "expected `exact`, or `untrusted` and `secret`"),
        }
    }

    fn labeled(&mut self, place: &JsonPlace, field: &str) -> Read<LabelSpec> {
        let p = self.need(place, field)?;
        self.label(&p)
    }

    fn typed(&mut self, place: &JsonPlace, field: &str) -> Read<Type> {
        let p = self.need(place, field)?;
        self.ty(&p)
    }

    fn tool(&mut self, place: &JsonPlace) -> Read<ToolDecl> {
        let p = self.need(place, "params")?;
        let params = self.items(&p, |r, p| {
            let (name, ty) = (r.named(p, "name")?, r.typed(p, "type")?);
            let default = r.maybe(p, "default", |r, p| r.data(p, 0))?;
            Some(ToolParam { name, ty, bound: r.labeled(p, "bound")?, default })
        })?;
        self.distinct(&p, params.iter().map(|p| &p.name))?;
        let e = self.need(place, "effect")?;
        let effects = [EffectClass::Pure, EffectClass::Read, EffectClass::Write];
        let Some(effect) = effects.into_iter().find(|x| e.value == effect_word(*x)) else {
            return self.wrong(&e, "expected `pure`, `read` or `write`");
        };
        Some(ToolDecl {
            name: self.named(place, "name")?,
            params,
            result: self.typed(place, "result")?,
            effect,
            control: self.labeled(place, "control")?,
            label: self.labeled(place, "label")?,
            parts: self.maybe(place, "fields", Self::result_parts)?.unwrap_or_default(),
            description: self.maybe(place, "description", |r, p| r.name(p))?,
            handler: self.maybe(place, "handler", |r, p| r.data(p, 0))?,
            approve: self.maybe(place, "approve", Self::approve)?.unwrap_or_default(),
            delegated: self.maybe(place, "delegated", Self::delegated)?,
            confirms: place.value.get("confirm") == Some(&Value::Bool(true)),
            among: self.maybe(place, "among", |r, p| r.items(p, Self::among))?.unwrap_or_default().into(),
            plain: self.maybe(place, "plain", Self::plain)?.unwrap_or_default(),
            pattern: self.maybe(place, "pattern", Self::pattern)?.unwrap_or_default(),
            completes: self
                .maybe(place, "completes", |r, p| r.items(p, Self::name))?
                .unwrap_or_default()
                .into(),
            includes: self.maybe(place, "includes", Self::includes)?.unwrap_or_default(),
            at_most: self.maybe(place, "at_most", |r, p| r.whole(p))?,
            policy: self.maybe(place, "policy", Self::policy)?,
            span: self.at(place)?,
        })
    }

    fn approve(&mut self, place: &JsonPlace) -> Read<Approve> {
        match &place.value {
            Value::Bool(true) => Some(Approve::Always),
            Value::Bool(false) => Some(Approve::Never),
            Value::String(s) if s == "if-refused" => Some(Approve::IfRefused),
            _ => self.wrong(place, "expected `true`, `false` or `\"if-refused\"`"),
        }
    }

    fn result_parts(&mut self, place: &JsonPlace) -> Read<ResultParts> {
        match ResultParts::from_data(&self.data(place, 0)?) {
            Some(parts) => Some(parts),
            None => self.wrong(
                place,
                "expected labels of parts such as [{\"path\": \"[].body\", \"untrusted\": true, \"secret\": false}]",
            ),
        }
    }

    fn among(&mut self, place: &JsonPlace) -> Read<Among> {
        match Among::from_data(&self.data(place, 0)?) {
            Some(among) => Some(among),
            None => {
                self.wrong(place, "expected a set such as {\"params\": {\"to\": []}, \"tool\": \"contacts\"}")
            }
        }
    }

    fn pattern(&mut self, place: &JsonPlace) -> Read<Box<[(Name, Pattern)]>> {
        match crate::term::patterns_from_data(&self.data(place, 0)?) {
            Some(patterns) => Some(patterns),
            None => self.wrong(place, "expected expressions such as {\"code\": \"[0-9]{6}\"}"),
        }
    }

    fn includes(&mut self, place: &JsonPlace) -> Read<Includes> {
        match crate::term::includes_from_data(&self.data(place, 0)?) {
            Some(includes) => Some(includes),
            None => self.wrong(place, "expected names of parameters such as {\"body\": [\"to\"]}"),
        }
    }

    fn delegated(&mut self, place: &JsonPlace) -> Read<Arc<Delegated>> {
        match Delegated::from_data(&self.data(place, 0)?) {
            Some(delegated) => Some(delegated.into()),
            None => self.wrong(place, "expected a mark such as {\"tool\": \"pay\", \"to\": [\"alice\"]}"),
        }
    }

    fn plain(&mut self, place: &JsonPlace) -> Read<Box<[(Name, Plain)]>> {
        let forms = place.value.as_object().and_then(|forms| {
            forms.iter().map(|(n, form)| Some((n.as_str().into(), Plain::named(form.as_str()?)?))).collect()
        });
        match forms {
            Some(forms) => Some(forms),
            None => self.wrong(place, "expected forms such as {\"body\": \"no-links\"}"),
        }
    }

    fn store(&mut self, place: &JsonPlace) -> Read<StoreDecl> {
        let p = self.need(place, "keys")?;
        let keys = self.items(&p, |r, p| {
            Some(KeyDecl {
                name: r.named(p, "name")?,
                ty: r.typed(p, "type")?,
                label: r.labeled(p, "label")?,
                initial: r.maybe(p, "initial", |r, p| r.data(p, 0))?,
            })
        })?;
        self.distinct(&p, keys.iter().map(|k| &k.name))?;
        Some(StoreDecl {
            name: self.named(place, "name")?,
            keys,
            capacity: self.maybe(place, "capacity", |r, p| r.whole(p))?,
            ttl: self.maybe(place, "ttl", |r, p| r.whole(p))?,
            backend: self.maybe(place, "backend", |r, p| r.name(p))?,
            span: self.at(place)?,
        })
    }

    fn params(&mut self, place: &JsonPlace) -> Read<Arc<ModelParams>> {
        let tools = self.need(place, "tools")?;
        let (repair, extra) = (self.need(place, "repair")?, self.need(place, "extra")?);
        Some(Arc::new(ModelParams {
            model: self.maybe(place, "model", |r, p| r.name(p))?,
            temperature: self.maybe(place, "temperature", |r, p| r.num(p))?,
            max_tokens: self.maybe(place, "max_tokens", |r, p| r.whole(p))?,
            result: self.maybe(place, "result", |r, p| r.ty(p))?,
            repair: self.small(&repair)?,
            tools: self.items(&tools, |r, p| r.index(p, r.tools, "tool").map(ToolId))?,
            waiting: place.value.get("waiting").is_some_and(|v| *v == Value::Bool(true)),
            purpose: self.maybe(place, "purpose", |r, p| r.name(p))?,
            extra: self.items(&extra, |r, p| {
                let [n, d] = r.parts::<2>(p)?;
                Some((r.name(&n)?, r.data(&d, 0)?))
            })?,
        }))
    }
}
