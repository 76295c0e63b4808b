//! Iterations, loops and the variables that they and the conversation keep.
//!
//! | source | term |
//! |---|---|
//! | `iteration` | `fix` over the items of a list, one after the other; if each gives a list, these become one unless `flatten_output` is off |
//! | `loop` | `mem` of its variables around `fix[loop_count]`; after each round the break conditions and `loop-end` say whether it was the last |
//! | `assigner` | `remember` of a key of the conversation or of a loop around |
//!
//! Source: langgenius/dify, `api/core/workflow/nodes/iteration`, `loop` and `variable_assigner`.

use super::{DifyLowering, Flow, failure, loop_key, outer_name, outputs};
use crate::defaults;
use core_ir::{Data, IfSugar, KeyDecl, LabelSpec, Name, Num, Prim, StoreDecl, Term, TermId, Type};
use diagnostics::{Diagnostic, Span};
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, codes, undecided};
use frontend_kit::graph::Env;
use frontend_kit::kit::Kit;
use std::collections::HashMap;

impl<'d> DifyLowering<'_, '_, 'd> {
    /// Builds the record of outer values that the nodes inside an iteration or a loop read.
    fn outer(&self, kit: &mut Kit<'_>, env: &Env, at: Span) -> TermId {
        let mut fields: Vec<(Name, TermId)> = Vec::new();
        for node in &env.order {
            let value = env.read(kit, *node, &[], Data::Null, at);
            fields.push((outer_name(self.here[*node].0), value));
        }
        kit.b.add(Term::Record(fields), at)
    }

    /// The nodes inside as a function of `{item, index}`.
    fn inner(&self, kit: &mut Kit<'_>, node: usize, env: &Env, at: Span) -> TermId {
        let inside = Some(self.here[node].0);
        let handed = env.order.iter().map(|n| self.here[*n].0).collect();
        let (nodes, graph) = (self.flow.nodes, self.flow.graph);
        let kept = self.flow.kept.clone();
        let mut flow = Flow { nodes, graph, kept, inside, index: HashMap::new(), handed };
        let term = flow.lower(kit, at);
        // The parameter is a record here, not a text.
        match kit.b.term(term).clone() {
            Term::Abs(abs) => kit.b.abs("x", None, abs.body, at),
            _ => term,
        }
    }

    /// `fix (λself. λs. …)` over the items of a list.
    pub(super) fn iteration(&mut self, kit: &mut Kit<'_>, node: usize, env: &Env, at: Span) -> TermId {
        if kit.is_open(at) {
            return kit.unknown("an iteration within itself", at);
        }
        let name = self.data(node).get("title").and_then(|t| t.text()).unwrap_or("iteration").to_string();
        if let Err(term) = kit.open(&name, at, at, 0) {
            return term;
        }
        let data = self.data(node);
        let list = self.selected(kit, data.get("iterator_selector"), env, Data::list(Vec::new()), at);
        let outer = self.outer(kit, env, at);
        let body = self.inner(kit, node, env, at);
        let field = |kit: &mut Kit<'_>, name: &str| {
            let s = kit.b.var("$s", at);
            kit.b.add(Term::Field(s, name.into()), at)
        };
        let (items, index) = (field(kit, "items"), field(kit, "index"));
        let item = kit.b.add(Term::Index(items, index), at);
        let index = field(kit, "index");
        let given = kit.b.add(Term::Record(vec![("item".into(), item), ("index".into(), index)]), at);
        let one = kit.b.app(body, given, at);
        let out = field(kit, "out");
        let mode = data.get("error_handle_mode").and_then(|m| m.text()).unwrap_or("");
        let out = match mode {
            // Lists of the items become one; what failed adds nothing to it.
            _ if self.flattens(kit, data) => {
                let more = match mode {
                    "continue-on-error" | "remove-abnormal-output" => {
                        let nothing = kit.b.add(Term::List(Vec::new()), at);
                        failure::caught(kit, one, nothing, at)
                    }
                    _ => one,
                };
                kit.b.add(Term::Prim(Prim::Add, vec![out, more]), at)
            }
            // What failed is null.
            "continue-on-error" => {
                let nothing = kit.b.lit(Data::Null, at);
                let one = failure::caught(kit, one, nothing, at);
                kit.b.add(Term::Prim(Prim::Append, vec![out, one]), at)
            }
            // What failed is left out.
            "remove-abnormal-output" => {
                let (some, none) =
                    (kit.b.add(Term::List(vec![one]), at), kit.b.add(Term::List(Vec::new()), at));
                let some = failure::caught(kit, some, none, at);
                kit.b.add(Term::Prim(Prim::Add, vec![out, some]), at)
            }
            _ => kit.b.add(Term::Prim(Prim::Append, vec![out, one]), at),
        };
        let (index, step) = (field(kit, "index"), kit.b.lit(Num::from(1), at));
        let next = kit.b.add(Term::Prim(Prim::Add, vec![index, step]), at);
        let items = field(kit, "items");
        let state = vec![("items".into(), items), ("index".into(), next), ("out".into(), out)];
        let state = kit.b.add(Term::Record(state), at);
        let this = kit.b.var("self", at);
        let again = kit.b.app(this, state, at);
        let (index, items, done) = (field(kit, "index"), field(kit, "items"), kit.b.var("$s", at));
        let length = kit.b.add(Term::Prim(Prim::Length, vec![items]), at);
        let test = kit.b.add(Term::Prim(Prim::Lt, vec![index, length]), at);
        let turn = kit.b.add(Term::If(test, again, done, IfSugar::Plain), at);
        let bound = LoopBound::unknown("the iteration runs as often as its list has items");
        let first = {
            let (zero, none) = (kit.b.lit(Num::ZERO, at), kit.b.add(Term::List(Vec::new()), at));
            kit.b.add(
                Term::Record(vec![("items".into(), list), ("index".into(), zero), ("out".into(), none)]),
                at,
            )
        };
        let run = self.fix(kit, turn, bound, first, at);
        let output = kit.b.add(Term::Field(run, "out".into()), at);
        let record = kit.b.add(Term::Record(vec![("output".into(), output)]), at);
        kit.close();
        kit.b.let_in(vec![("$outer".into(), outer)], record, at)
    }

    /// Returns true if the lists that the items of an iteration return are flattened, the default of
    /// `flatten_output`.
    fn flattens(&self, kit: &mut Kit<'_>, data: Node<'d>) -> bool {
        let wanted = data.entry("flatten_output");
        if wanted.is_some_and(|e| e.value.as_bool() == Some(false)) {
            return false;
        }
        let mut path =
            data.get("output_selector").into_iter().flat_map(|s| s.items()).filter_map(|s| s.text());
        let (id, part) = (path.next().unwrap_or(""), path.next().unwrap_or(""));
        let from = self.flow.nodes.iter().find(|(n, _)| *n == id).and_then(|(_, n)| n.get("data"));
        // A part of a part is no list of the node's own.
        let known = from.filter(|_| path.next().is_none()).and_then(|d| outputs::is_list(d, part));
        if let (None, Some(entry)) = (known, wanted) {
            let message = "`flatten_output` is left out: whether the items give lists is known when it runs";
            kit.out.push(Diagnostic::info(codes::UNUSED_KEY, message, entry.key.span()));
        }
        known == Some(true)
    }

    fn fix(&self, kit: &mut Kit<'_>, turn: TermId, bound: LoopBound, first: TermId, at: Span) -> TermId {
        let step = kit.b.abs("$s", None, turn, at);
        let body = kit.b.abs("self", None, step, at);
        let place = bound.span.unwrap_or(at);
        let fix = kit.fix(bound, body, place);
        kit.b.app(fix, first, at)
    }

    /// `mem σ (… fix[loop_count] (λself. λ$s. …))`: the loop's variables are the keys of the store.
    pub(super) fn repetition(&mut self, kit: &mut Kit<'_>, node: usize, env: &Env, at: Span) -> TermId {
        let data = self.data(node);
        let id = self.here[node].0;
        let name = data.get("title").and_then(|t| t.text()).unwrap_or("loop").to_string();
        if let Err(term) = kit.open(&name, at, at, 0) {
            return term;
        }
        let mut before: Vec<(Name, TermId)> = Vec::new();
        let mut keys: Vec<KeyDecl> = Vec::new();
        let mut fields: Vec<(Name, TermId)> = Vec::new();
        for v in data.get("loop_variables").into_iter().flat_map(|v| v.items()) {
            let Some(label) = v.get("label").and_then(|l| l.text()) else { continue };
            let key = loop_key(id, label);
            if keys.iter().any(|k| k.name == key) {
                continue;
            }
            let constant = v.get("value_type").and_then(|t| t.text()) == Some("constant");
            let value = v.get("value");
            let term = if constant {
                let typed = v.get("var_type").and_then(|t| t.text()).unwrap_or("");
                let data = value.and_then(|v| constant_of(v, typed)).unwrap_or(Data::Null);
                kit.b.lit(data, at)
            } else {
                self.selected(kit, value, env, Data::Null, at)
            };
            let label_of = LabelSpec::Axes { untrusted: true, secret: false };
            keys.push(KeyDecl { name: key.clone(), ty: Type::Dyn, label: label_of, initial: None });
            before.push(("_".into(), kit.b.add(Term::Remember(key.clone(), None, term), at)));
            fields.push((label.into(), kit.b.add(Term::Recall(key, None), at)));
        }
        let outer = self.outer(kit, env, at);
        let body = self.inner(kit, node, env, at);
        let round = kit.b.var("$s", at);
        let given = kit.b.add(Term::Record(vec![("index".into(), round)]), at);
        // Whether it was the last round.
        let last = kit.b.app(body, given, at);
        let (now, one) = (kit.b.var("$s", at), kit.b.lit(Num::ONE, at));
        let next = kit.b.add(Term::Prim(Prim::Add, vec![now, one]), at);
        let (this, done) = (kit.b.var("self", at), kit.b.var("$next", at));
        let state = kit.b.var("$next", at);
        let again = kit.b.app(this, state, at);
        let tail = kit.b.add(Term::If(last, done, again, IfSugar::Plain), at);
        let turn = kit.b.let_in(vec![("$next".into(), next)], tail, at);
        let bound = defaults::bound(&defaults::DIFY_LOOPS, kit.versions)
            .or_written(data.entry("loop_count"), kit.out);
        let zero = kit.b.lit(Num::ZERO, at);
        let ran = self.fix(kit, turn, bound, zero, at);
        fields.push(("loop_round".into(), kit.b.var("$rounds", at)));
        let record = kit.b.add(Term::Record(fields), at);
        before.push(("$outer".into(), outer));
        before.push(("$rounds".into(), ran));
        let term = kit.b.let_in(before, record, at);
        kit.close();
        if keys.is_empty() {
            return term;
        }
        let store = StoreDecl {
            name: format!("loop {id}").into(),
            keys,
            capacity: None,
            ttl: None,
            backend: None,
            span: at,
        };
        let store = kit.b.store(store);
        kit.b.add(Term::Mem(store, term), at)
    }

    /// Tests for the last round of the enclosing loop: `loop-end` was reached, or the break conditions hold.
    pub(super) fn was_last(&self, kit: &mut Kit<'_>, of: Node<'d>, env: &Env, at: Span) -> TermId {
        let data = of.get("data").unwrap_or(of);
        let mut test = match data.get("break_conditions").filter(|b| b.items().len() > 0) {
            Some(_) => self.conditions(kit, data, "break_conditions", env, at),
            None => kit.b.lit(Data::Bool(false), at),
        };
        for node in 0..self.here.len() {
            if self.data(node).get("type").and_then(|t| t.text()) == Some("loop-end") {
                let end = env.read(kit, node, &[], Data::Null, at);
                let missing = kit.b.add(Term::Prim(Prim::IsNull, vec![end]), at);
                let reached = kit.b.add(Term::Prim(Prim::Not, vec![missing]), at);
                let yes = kit.b.lit(Data::Bool(true), at);
                test = kit.b.add(Term::If(reached, yes, test, IfSugar::Or), at);
            }
        }
        test
    }

    pub(super) fn assign(&mut self, kit: &mut Kit<'_>, data: Node<'d>, env: &Env, at: Span) -> TermId {
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        let old = data.get("assigned_variable_selector").map(|s| (s, data));
        let items = data.get("items").into_iter().flat_map(|i| i.items());
        let new = items.filter_map(|i| Some((i.get("variable_selector")?, i)));
        for (selector, item) in old.into_iter().chain(new) {
            let path: Vec<&str> = selector.items().filter_map(|s| s.text()).collect();
            let key: Name = match path[..] {
                ["conversation", key] => key.into(),
                [id, label] if self.is_loop_around(id) => loop_key(id, label),
                _ => {
                    let why = "only variables of the conversation and of the loop around can be assigned";
                    kit.out.push(undecided(codes::NOT_COMPILED, why, item.head()));
                    continue;
                }
            };
            let mode =
                ["operation", "write_mode"].iter().find_map(|k| item.get(k)?.text()).unwrap_or("over-write");
            let constant = item.get("input_type").and_then(|t| t.text()) == Some("constant");
            let source = item.get("input_variable_selector").or_else(|| item.get("value"));
            let recall = |kit: &mut Kit<'_>| kit.b.add(Term::Recall(key.clone(), None), at);
            let value = match source {
                _ if mode == "clear" => {
                    let held = recall(kit);
                    cleared(kit, held, at)
                }
                Some(s) if s.is_sequence() && !constant && mode != "set" => {
                    self.selected(kit, Some(s), env, Data::Null, at)
                }
                Some(s) => kit.b.lit(frontend_kit::emit::data(s, &mut 400).unwrap_or(Data::Null), at),
                None => kit.b.lit(Data::Null, at),
            };
            let prim = match mode {
                "append" => Some(Prim::Append),
                "+=" | "extend" => Some(Prim::Add),
                "-=" => Some(Prim::Sub),
                "*=" => Some(Prim::Mul),
                "/=" => Some(Prim::Div),
                _ => None,
            };
            let value = match (prim, mode) {
                (Some(prim), _) => {
                    let before = recall(kit);
                    kit.b.add(Term::Prim(prim, vec![before, value]), at)
                }
                (None, "remove-first" | "remove-last") => {
                    let held = recall(kit);
                    shortened(kit, held, mode == "remove-first", at)
                }
                (None, "over-write" | "overwrite" | "set" | "clear") => value,
                (None, other) => {
                    let what = format!("the operation `{}` of an assigner", diagnostics::clip(other));
                    kit.undecided(codes::NOT_COMPILED, what, item.head())
                }
            };
            bindings.push(("_".into(), kit.b.add(Term::Remember(key, None, value), at)));
        }
        if bindings.is_empty() && data.get("items").is_none() && old.is_none() {
            self.assigned_otherwise(kit, data, at, &mut bindings);
        }
        let unit = kit.b.add(Term::Record(Vec::new()), at);
        if bindings.is_empty() { unit } else { kit.b.let_in(bindings, unit, at) }
    }

    /// An assigner that is not written as Dify writes them: what it names is given something, if it does
    /// anything.
    fn assigned_otherwise(
        &self,
        kit: &mut Kit<'_>,
        data: Node<'d>,
        at: Span,
        bindings: &mut Vec<(Name, TermId)>,
    ) {
        for node in data.descendants().take(200) {
            let Some(selector) = node.get("variable_selector") else { continue };
            let path: Vec<&str> = selector.items().filter_map(|s| s.text()).collect();
            let ["conversation", key] = path[..] else { continue };
            if !self.flow.kept.contains(key) {
                continue;
            }
            let why = "whether this assigns anything is not known: Dify reads `items` or `assigned_variable_selector`";
            let value = kit.undecided(codes::NOT_COMPILED, why.into(), selector.head());
            bindings.push(("_".into(), kit.b.add(Term::Remember(key.into(), None, value), at)));
        }
    }

    /// Returns true if a node is a loop around this one, at any depth.
    pub(super) fn is_loop_around(&self, id: &str) -> bool {
        let mut inside = self.flow.inside;
        // No deeper than there are nodes.
        for _ in 0..self.flow.nodes.len() {
            let Some(now) = inside else { return false };
            let Some((_, n)) = self.flow.nodes.iter().find(|(i, _)| *i == now) else { return false };
            let is_loop = n.at(&["data", "type"]).and_then(|t| t.text()) == Some("loop");
            if now == id {
                return is_loop;
            }
            inside = super::around(*n);
        }
        false
    }
}

/// A constant, which is written as a text where it is a list or a record.
pub(super) fn constant_of(value: Node<'_>, typed: &str) -> Option<Data> {
    let read = frontend_kit::emit::data(value, &mut 400)?;
    match (&read, typed) {
        (Data::Str(s), typed)
            if typed.starts_with("array") || matches!(typed, "object" | "number" | "boolean") =>
        {
            let parsed =
                serde_json::from_str::<serde_json::Value>(s).ok().and_then(|v| Data::from_json(&v).ok());
            Some(parsed.unwrap_or(read))
        }
        _ => Some(read),
    }
}

/// Nothing of the kind that a value is.
fn cleared(kit: &mut Kit<'_>, held: TermId, at: Span) -> TermId {
    let var = |kit: &mut Kit<'_>| kit.b.var("$held", at);
    // Of a list and a record the beginning tells which it is.
    let of = var(kit);
    let shown = kit.b.add(Term::Prim(Prim::ToJson, vec![of]), at);
    let brace = kit.text("{", at);
    let parts = kit.b.add(Term::Prim(Prim::Split, vec![shown, brace]), at);
    let zero = kit.b.lit(Num::ZERO, at);
    let first = kit.b.add(Term::Index(parts, zero), at);
    let nothing = kit.text("", at);
    let record = kit.b.add(Term::Prim(Prim::Eq, vec![first, nothing]), at);
    let (fields, items) = (kit.b.add(Term::Record(Vec::new()), at), kit.b.add(Term::List(Vec::new()), at));
    let mut out = kit.b.add(Term::If(record, fields, items, IfSugar::Plain), at);
    for (prim, nothing) in [
        (Prim::IsNull, Data::Null),
        (Prim::IsNum, Data::Num(Num::ZERO)),
        (Prim::IsBool, Data::Bool(false)),
        (Prim::IsStr, Data::str("")),
    ] {
        let of = var(kit);
        let test = kit.b.add(Term::Prim(prim, vec![of]), at);
        let nothing = kit.b.lit(nothing, at);
        out = kit.b.add(Term::If(test, nothing, out, IfSugar::Plain), at);
    }
    kit.b.let_in(vec![("$held".into(), held)], out, at)
}

/// A list without its first or last item.
fn shortened(kit: &mut Kit<'_>, held: TermId, first: bool, at: Span) -> TermId {
    let var = |kit: &mut Kit<'_>| kit.b.var("$held", at);
    let (of, count) = (var(kit), var(kit));
    let length = kit.b.add(Term::Prim(Prim::Length, vec![count]), at);
    let one = kit.b.lit(Num::ONE, at);
    let (from, to) = match first {
        true => (one, length),
        false => (kit.b.lit(Num::ZERO, at), kit.b.add(Term::Prim(Prim::Sub, vec![length, one]), at)),
    };
    let rest = kit.b.add(Term::Prim(Prim::Slice, vec![of, from, to]), at);
    let count = var(kit);
    let length = kit.b.add(Term::Prim(Prim::Length, vec![count]), at);
    let zero = kit.b.lit(Num::ZERO, at);
    let some = kit.b.add(Term::Prim(Prim::Gt, vec![length, zero]), at);
    let none = kit.b.add(Term::List(Vec::new()), at);
    let out = kit.b.add(Term::If(some, rest, none, IfSugar::Plain), at);
    kit.b.let_in(vec![("$held".into(), held)], out, at)
}
