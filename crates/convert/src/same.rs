//! Whether two terms mean the same.
//!
//! Equality up to the laws of the calculus (`optimise::equivalent`), after what is no part of the meaning has been taken out.

use core_ir::{
    Branch, Builder, Code, Data, Globals, IfSugar, ModelParams, Name, Prim, Recv, Term, TermId, ToolId, Type,
};
use optimise::{Verdict, equivalent};
use std::collections::HashMap;
use std::sync::Arc;

/// Whether a unit of a front end is written again as another one.
pub(crate) fn as_unit(code: &Arc<Code>, again: &Arc<Code>) -> bool {
    let keep = Names { purposes: purposes(code), agents: true, origins: true };
    let (Some(a), Some(b)) = (copy(code, &keep), copy(again, &keep)) else { return false };
    matches!(equivalent(&a, &b), Verdict::Equal(_))
}

/// Whether a unit is written again as the pipeline of a program, whose input and result are checked.
pub(crate) fn as_pipeline(code: &Arc<Code>, again: &Code) -> bool {
    let keep = Names { purposes: false, agents: false, origins: false };
    let (Some(a), Some(b)) = (wrapped(code, &keep, again), copy(again, &keep)) else { return false };
    matches!(equivalent(&a, &b), Verdict::Equal(_))
}

/// Whether every question of the term says what it is for.
fn purposes(code: &Code) -> bool {
    code.iter().all(|(_, t)| match t {
        Term::Llm(_, p) => p.purpose.is_some(),
        Term::Recv(Recv::Data(p)) => p.purpose.is_some(),
        _ => true,
    })
}

/// Which names of questions count.
struct Names {
    purposes: bool,
    agents: bool,
    /// And where bounds come from.
    origins: bool,
}

impl Names {
    fn params(&self, p: &ModelParams) -> ModelParams {
        let mut out = p.clone();
        if !self.purposes {
            out.purpose = None;
        }
        if !self.agents {
            out.extra.retain(|(n, _)| &**n != "agent");
        }
        // A text is the reply as it is, and nothing is wrong with it.
        if matches!(out.result, None | Some(Type::Str)) {
            (out.result, out.repair) = (None, 0);
        }
        out
    }
}

/// The term in one form: functions that are defined first stand where they are used, choices between texts are written with `if`.
fn copy(code: &Code, names: &Names) -> Option<Code> {
    let mut c = Copy::new(code, names);
    let root = c.term(code.root());
    if c.left == 0 { None } else { c.b.finish(root, &Globals::none()).ok() }
}

/// The term as the pipeline that `again` is: a function of a record, which is checked, as is its result.
fn wrapped(code: &Code, names: &Names, again: &Code) -> Option<Code> {
    let (input, output) = checks(again)?;
    let at = code.span(code.root());
    let mut c = Copy { lists: true, ..Copy::new(code, names) };
    let checked = {
        let raw = c.b.var("$in", at);
        c.b.add(Term::Check(input.0, input.1.clone(), raw), at)
    };
    let Type::Record(fields) = &input.1 else { return None };
    let mut bindings: Vec<(Name, TermId)> = vec![("$in".into(), checked)];
    for (field, _) in fields.iter() {
        let all = c.b.var("$in", at);
        bindings.push((name_of(field), c.b.add(Term::Field(all, field.clone()), at)));
    }
    let mut function = code.root();
    let body = match code.term(function) {
        Term::Abs(abs) if matches!(abs.ty, Some(Type::Record(_))) => {
            c.record = Some(abs.param.clone());
            function = abs.body;
            c.term(function)
        }
        _ if fields.is_empty() => c.term(function),
        _ => {
            let [(only, _)] = &fields[..] else { return None };
            let of = c.b.var(name_of(only), at);
            let function = c.term(function);
            c.b.app(function, of, at)
        }
    };
    let body = c.b.let_in(bindings, body, at);
    let body = c.b.add(Term::Check(output.0, output.1, body), at);
    let root = c.b.abs("$in", None, body, at);
    if c.left == 0 { None } else { c.b.finish(root, &Globals::none()).ok() }
}

fn name_of(field: &Name) -> Name {
    format!("$in.{field}").into()
}

type Demand = (Name, Type);

/// The checks of the input and the result of a pipeline.
fn checks(code: &Code) -> Option<(Demand, Demand)> {
    let mut root = code.root();
    while let Term::Let { body, .. } = code.term(root) {
        root = *body;
    }
    let Term::Abs(abs) = code.term(root) else { return None };
    let Term::Check(name, ty, body) = code.term(abs.body) else { return None };
    let Term::Let { bindings, .. } = code.term(*body) else { return None };
    let Term::Check(input, of, _) = code.term(bindings.first()?.1) else { return None };
    Some(((input.clone(), of.clone()), (name.clone(), ty.clone())))
}

/// Larger terms are not compared.
const MOST_TERMS: usize = 100_000;

struct Copy<'c> {
    code: &'c Code,
    b: Builder,
    names: &'c Names,
    tools: Vec<ToolId>,
    /// Definitions that are put where they are used.
    inline: HashMap<Name, TermId>,
    /// The parameter whose fields are names.
    record: Option<Name>,
    /// How many terms may still be copied: a function is copied with each use.
    left: usize,
    /// Whether the list of parallel results is made of them one by one, as a pipeline does.
    lists: bool,
}

impl<'c> Copy<'c> {
    fn new(code: &'c Code, names: &'c Names) -> Copy<'c> {
        let mut b = Builder::new();
        let tools = code.tools.iter().map(|t| b.tool((**t).clone())).collect();
        for store in &code.stores {
            b.store((**store).clone());
        }
        Copy { code, b, names, tools, inline: HashMap::new(), record: None, left: MOST_TERMS, lists: false }
    }

    fn term(&mut self, id: TermId) -> TermId {
        stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, || self.term_inner(id))
    }

    fn term_inner(&mut self, id: TermId) -> TermId {
        let (code, at) = (self.code, self.code.span(id));
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return self.b.lit(Data::Null, at);
        }
        match code.term(id) {
            Term::Var(name, _) if self.inline.contains_key(name) => {
                let function = self.inline[name];
                self.term(function)
            }
            // The functions of tasks, which have names of their own.
            Term::Let { bindings, body, .. }
                if bindings.iter().all(|(n, e)| n.starts_with('$') && self.is_closed_function(*e)) =>
            {
                for (name, function) in bindings {
                    self.inline.insert(name.clone(), *function);
                }
                self.term(*body)
            }
            Term::Field(of, field) if matches!((code.term(*of), &self.record), (Term::Var(n, _), Some(r)) if n == r) => {
                self.b.var(name_of(field), at)
            }
            Term::Par(most, branches) if self.lists => {
                let branches: Vec<TermId> = branches.iter().map(|b| self.term(*b)).collect();
                let (count, name) = (branches.len(), self.b.fresh("parallel"));
                let all = self.b.add(Term::Par(*most, branches), at);
                let parts = (0..count).map(|i| {
                    let (all, i) =
                        (self.b.var(name.clone(), at), self.b.lit(Data::Num((i as i64).into()), at));
                    self.b.add(Term::Index(all, i), at)
                });
                let parts = parts.collect();
                let list = self.b.add(Term::List(parts), at);
                self.b.let_in(vec![(name, all)], list, at)
            }
            // What a model is asked is written as a text anyway, in the same way.
            Term::App(f, x) if matches!(code.term(*f), Term::Llm(..)) => {
                let x = match code.term(*x) {
                    Term::Prim(Prim::Format, parts) if parts.len() == 1 => parts[0],
                    _ => *x,
                };
                let (f, x) = (self.term(*f), self.term(x));
                self.b.app(f, x, at)
            }
            Term::Case { scrutinee, branches, default: Some(default) }
                if matches!(code.term(*scrutinee), Term::Prim(Prim::Trim, _))
                    && branches.iter().all(|b| b.binder.is_none()) =>
            {
                let text = self.term(*scrutinee);
                let otherwise = self.term(*default);
                let chosen = self.b.fresh("chosen");
                let choice = branches.iter().rev().fold(otherwise, |otherwise, Branch { tag, body, .. }| {
                    let value = self.b.var(chosen.clone(), at);
                    let tag = self.b.lit(Data::str(&**tag), at);
                    let same = self.b.add(Term::Prim(Prim::Eq, vec![value, tag]), at);
                    let body = self.term(*body);
                    self.b.add(Term::If(same, body, otherwise, IfSugar::Plain), at)
                });
                self.b.let_in(vec![(chosen, text)], choice, at)
            }
            term => {
                let mut term = term.clone().map_children(&mut |c| self.term(c));
                self.put(&mut term);
                self.b.add(term, at)
            }
        }
    }

    fn put(&mut self, term: &mut Term) {
        match term {
            Term::Tool(id) => *id = self.tools[id.0 as usize],
            Term::Llm(_, p) => *p = Arc::new(self.named(p)),
            Term::Recv(Recv::Data(p)) => *p = Arc::new(self.named(p)),
            Term::Recall(_, key) | Term::Remember(_, key, _) => *key = None,
            Term::Abs(abs) => {
                abs.captures = Box::default();
                abs.ty = None;
            }
            Term::Fix { origin, .. } if !self.names.origins => *origin = None,
            _ => {}
        }
    }

    fn named(&self, p: &ModelParams) -> ModelParams {
        let mut out = self.names.params(p);
        out.tools = p.tools.iter().map(|t| self.tools[t.0 as usize]).collect();
        out
    }

    fn is_closed_function(&self, id: TermId) -> bool {
        matches!(self.code.term(id), Term::Abs(abs) if abs.captures.is_empty())
    }
}
