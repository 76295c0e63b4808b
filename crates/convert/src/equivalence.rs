//! Equivalence of terms.
//!
//! Equality up to the laws of the calculus (`optimize::equivalent`), after what is no part of the meaning has
//! been taken out.

use crate::diff::{self, Difference};
use core_ir::{
    Branch, Builder, Code, Data, Globals, IfSugar, ModelParams, Name, Prim, Recv, Term, TermId, ToolId, Type,
};
use optimize::{Verdict, equivalent};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Checks that a front end's unit is equivalent to its reparsed conversion. Otherwise returns the difference
/// and its place.
pub(crate) fn as_unit(code: &Arc<Code>, again: &Arc<Code>) -> Result<(), Difference> {
    let keep = Names { purposes: purposes(code), agents: true, origins: true };
    compare(code, copy(code, &keep), copy(again, &keep))
}

/// Checks that a unit is equivalent to its conversion to a pipeline, whose input and result are checked.
pub(crate) fn as_pipeline(code: &Arc<Code>, again: &Code) -> Result<(), Difference> {
    let keep = Names { purposes: false, agents: false, origins: false };
    compare(code, wrapped(code, &keep, again), copy(again, &keep))
}

fn compare(code: &Code, a: Option<Code>, b: Option<Code>) -> Result<(), Difference> {
    let (Some(a), Some(b)) = (a, b) else {
        let what = format!("it is too large to be compared, with more than {MAX_TERMS} terms");
        return Err(Difference { what, at: code.span(code.root()) });
    };
    match equivalent(&a, &b) {
        Verdict::Equal(_) => Ok(()),
        Verdict::Unknown => Err(diff::first(&a, &b)),
    }
}

/// Returns true if every question of the term says what it is for.
fn purposes(code: &Code) -> bool {
    code.iter().all(|(_, t)| match t {
        Term::Llm(_, p) => p.purpose.is_some(),
        Term::Recv(Recv::Data(p)) => p.purpose.is_some(),
        _ => true,
    })
}

/// Names of requests that must agree.
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
        // Settings are a record.
        out.extra.sort_by(|(n, _), (m, _)| n.cmp(m));
        // A text is the reply as it is, and nothing is wrong with it.
        if matches!(out.result, None | Some(Type::Str)) {
            (out.result, out.repair) = (None, 0);
        }
        out
    }
}

/// The term in one form: functions that are defined first stand where they are used, choices between texts
/// are written with `if`.
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
const MAX_TERMS: usize = 100_000;

struct Copy<'c> {
    code: &'c Code,
    b: Builder,
    names: &'c Names,
    tools: Vec<ToolId>,
    /// Definitions that are put where they are used.
    inline: HashMap<Name, TermId>,
    /// The parameter whose fields are names.
    record: Option<Name>,
    /// Remaining number of terms that may be copied: each use of a function copies it.
    left: usize,
    /// True if the list of parallel results is made of them one by one, as a pipeline does.
    lists: bool,
    /// The types of terms, as far as they are known.
    types: HashMap<TermId, Type>,
    /// Parameters of functions that are applied to a record where they are used, with the variables that its
    /// fields are.
    given: HashMap<Name, HashMap<Name, Name>>,
    /// Parameters that say their types.
    annotated: HashMap<Name, Type>,
}

impl<'c> Copy<'c> {
    fn new(code: &'c Code, names: &'c Names) -> Copy<'c> {
        let mut b = Builder::new();
        let tools = code.tools.iter().map(|t| b.tool((**t).clone())).collect();
        for store in &code.stores {
            b.store((**store).clone());
        }
        Copy {
            code,
            b,
            names,
            tools,
            inline: HashMap::new(),
            record: None,
            left: MAX_TERMS,
            lists: false,
            types: analysis::types::check_steps(code).1.into_iter().collect(),
            given: HashMap::new(),
            annotated: HashMap::new(),
        }
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
        if let Term::Field(of, field) = code.term(id)
            && let Term::Var(n, _) = code.term(*of)
            && let Some(own) = self.given.get(n).and_then(|fields| fields.get(field))
        {
            let own = own.clone();
            return self.b.var(own, at);
        }
        if let Term::App(f, x) = code.term(id) {
            if let Some(call) = self.pipeline_call(*f, *x).or_else(|| self.task_call(*f, *x)) {
                return call;
            }
            // A tool of one parameter takes its argument by itself or in a record.
            let plain = matches!(
                self.sure(*x),
                Some(Type::Str | Type::Num | Type::Bool | Type::List(_) | Type::Enum(_))
            );
            if let (true, Term::Tool(tool)) = (plain, code.term(*f))
                && let [only] = &code.tool(*tool).params[..]
            {
                let only = only.name.clone();
                let (f, x) = (self.term(*f), self.term(*x));
                let args = self.b.add(Term::Record(vec![(only, x)]), at);
                return self.b.app(f, args, at);
            }
        }
        match code.term(id) {
            Term::Var(name, _) if self.inline.contains_key(name) => {
                let function = self.inline[name];
                self.term(function)
            }
            // The functions of tasks, agents and pipelines, which have names of their own.
            Term::Let { bindings, body, .. }
                if bindings
                    .iter()
                    .enumerate()
                    .all(|(i, (n, e))| n.starts_with('$') && self.is_closed_function(*e, &bindings[..i])) =>
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
                if (matches!(code.term(*scrutinee), Term::Prim(Prim::Trim, _))
                    || matches!(self.types.get(scrutinee), Some(Type::Str)))
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
                let annotated = match term {
                    // Names of the surface lowering, which nothing else binds.
                    Term::Abs(abs) if abs.param.starts_with('$') => {
                        abs.ty.clone().map(|ty| (abs.param.clone(), ty))
                    }
                    _ => None,
                };
                let outer = annotated.clone().map(|(name, ty)| self.annotated.insert(name, ty));
                let mut term = term.clone().map_children(&mut |c| self.term(c));
                if let (Some((name, _)), Some(outer)) = (annotated, outer) {
                    match outer {
                        Some(outer) => self.annotated.insert(name, outer),
                        None => self.annotated.remove(&name),
                    };
                }
                if self.lists {
                    own_fields(&mut term);
                }
                self.put(&mut term);
                self.b.add(term, at)
            }
        }
    }

    fn put(&mut self, term: &mut Term) {
        match term {
            Term::Tool(id) | Term::Args(id, _) => *id = self.tools[id.0 as usize],
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

    /// Returns true for a function without free variables, except for functions that are inlined.
    fn is_closed_function(&self, id: TermId, before: &[(Name, TermId)]) -> bool {
        let code = self.code;
        match code.term(id) {
            Term::Abs(abs) if abs.captures.is_empty() => return true,
            Term::Abs(_) | Term::Fix { .. } | Term::Llm(..) => {}
            _ => return false,
        }
        let known = |n: &Name| self.inline.contains_key(n) || before.iter().any(|(b, _)| b == n);
        let mut open = vec![id];
        let mut bound: Vec<&Name> = Vec::new();
        let mut used: Vec<&Name> = Vec::new();
        while let Some(id) = open.pop() {
            let term = code.term(id);
            match term {
                Term::Var(name, _) => used.push(name),
                Term::Abs(abs) => bound.push(&abs.param),
                Term::Let { bindings, .. } => bound.extend(bindings.iter().map(|(n, _)| n)),
                Term::Case { branches, .. } => {
                    bound.extend(branches.iter().filter_map(|b| b.binder.as_ref()))
                }
                Term::Try { name, .. } => bound.push(name),
                _ => {}
            }
            open.extend(term.children());
        }
        // A name that is bound somewhere inside counts as bound everywhere: names of definitions are nobody
        // else's.
        let bound: HashSet<&Name> = bound.into_iter().collect();
        used.into_iter().all(|n| bound.contains(n) || known(n))
    }

    /// The call of a pipeline without the checks that cannot fail: what it is given, then what it does.
    fn pipeline_call(&mut self, f: TermId, x: TermId) -> Option<TermId> {
        let code = self.code;
        let Term::Var(name, _) = code.term(f) else { return None };
        let function = *self.inline.get(name)?;
        let Term::Record(given) = code.term(x) else { return None };
        let Term::Abs(abs) = code.term(function) else { return None };
        let Term::Check(result, result_ty, body) = code.term(abs.body) else { return None };
        let Term::Let { bindings, body: inner, sugar } = code.term(*body) else { return None };
        let ((input, checked), rest) = bindings.split_first()?;
        let Term::Check(what, Type::Record(fields), _) = code.term(*checked) else { return None };
        if given.len() != fields.len() || rest.len() < fields.len() {
            return None;
        }
        let at = code.span(x);
        let mut now: Vec<(Name, TermId)> = Vec::new();
        let mut held: HashMap<&Name, Name> = HashMap::new();
        for (field, value) in given {
            let (_, ty) = fields.iter().find(|(n, _)| n == field)?;
            let sure = self.sure(*value).is_some_and(|have| fits(&have, ty)) || *ty == Type::Dyn;
            let mut value = self.term(*value);
            if !sure {
                value = self.b.add(Term::Check(what.clone(), ty.clone(), value), at);
            }
            let own = self.b.fresh("given");
            held.insert(field, own.clone());
            now.push((own, value));
        }
        for (name, value) in rest {
            // `x = input.x`, or what else is bound first.
            let value = match code.term(*value) {
                Term::Field(of, field) if matches!(code.term(*of), Term::Var(n, _) if n == input) => {
                    let own = held.get(field)?.clone();
                    self.b.var(own, at)
                }
                _ => self.term(*value),
            };
            now.push((name.clone(), value));
        }
        let gives = match code.term(*inner) {
            Term::Var(name, _) => rest.iter().rev().find(|(n, _)| n == name).map_or(*inner, |(_, v)| *v),
            _ => *inner,
        };
        let sure = self.sure(gives).is_some_and(|have| fits(&have, result_ty)) || *result_ty == Type::Dyn;
        let body = self.term(*inner);
        let call = self.b.add(Term::Let { bindings: now, body, sugar: *sugar }, at);
        Some(match sure {
            true => call,
            false => self.b.add(Term::Check(result.clone(), result_ty.clone(), call), at),
        })
    }

    /// Returns true if a loop gives a text: it is given one, and its model answers with one.
    fn is_text_loop(&self, id: TermId) -> bool {
        crate::text_loop::text_loop(self.code, id).is_some()
    }

    /// The call of a task with its arguments by name: each is evaluated once, in order.
    fn task_call(&mut self, f: TermId, x: TermId) -> Option<TermId> {
        let code = self.code;
        let Term::Var(name, _) = code.term(f) else { return None };
        let function = *self.inline.get(name)?;
        let (Term::Record(given), Term::Abs(abs)) = (code.term(x), code.term(function)) else { return None };
        // Nothing but fields that are there may be asked of it.
        let known = |field: &Name| given.iter().any(|(n, _)| n == field);
        let mut open = vec![abs.body];
        while let Some(id) = open.pop() {
            match code.term(id) {
                Term::Field(of, field) if matches!(code.term(*of), Term::Var(n, _) if *n == abs.param) => {
                    known(field).then_some(())?;
                }
                Term::Var(n, _) if *n == abs.param => return None,
                term => open.extend(term.children()),
            }
        }
        let at = code.span(x);
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        let mut fields: HashMap<Name, Name> = HashMap::new();
        for (field, value) in given {
            let value = self.term(*value);
            let own = self.b.fresh("given");
            fields.insert(field.clone(), own.clone());
            bindings.push((own, value));
        }
        let outer = self.given.insert(abs.param.clone(), fields);
        let body = self.term(abs.body);
        match outer {
            Some(outer) => self.given.insert(abs.param.clone(), outer),
            None => self.given.remove(&abs.param),
        };
        Some(self.b.let_in(bindings, body, at))
    }

    /// The type that the value of a term certainly has, as far as that is known.
    fn sure(&self, id: TermId) -> Option<Type> {
        if let Some(known) = self.types.get(&id) {
            return Some(known.clone());
        }
        let code = self.code;
        // Along the bodies of definitions and functions that are applied at once: no deeper than a term is.
        match code.term(id) {
            Term::Lit(Data::Str(_))
            | Term::Prim(Prim::Format | Prim::ToStr | Prim::Trim | Prim::Join | Prim::ToJson, _) => {
                Some(Type::Str)
            }
            Term::Check(_, ty, _) => Some(ty.clone()),
            Term::Var(name, _) => self.annotated.get(name).cloned(),
            Term::Let { bindings, body, .. } => match code.term(*body) {
                Term::Var(name, _) => {
                    let (_, value) = bindings.iter().rev().find(|(n, _)| n == name)?;
                    self.sure(*value)
                }
                _ => self.sure(*body),
            },
            Term::App(f, _) => match code.term(*f) {
                Term::Var(name, _) => {
                    let function = *self.inline.get(name)?;
                    match code.term(function) {
                        Term::Abs(abs) => self.sure(abs.body),
                        _ => Some(Type::Str).filter(|_| self.is_text_loop(function)),
                    }
                }
                Term::Fix { .. } => Some(Type::Str).filter(|_| self.is_text_loop(*f)),
                Term::Llm(_, p) if p.tools.is_empty() => Some(p.result.clone().unwrap_or(Type::Str)),
                Term::Tool(tool) => Some(code.tool(*tool).result.clone()).filter(|t| *t != Type::Dyn),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Fields of records that a front end makes for itself begin with `$`, which no program says.
fn own_fields(term: &mut Term) {
    let renamed = |name: &mut Name| {
        if let Some(own) = name.strip_prefix('$') {
            *name = own.into();
        }
    };
    match term {
        Term::Record(fields) => fields.iter_mut().for_each(|(name, _)| renamed(name)),
        Term::Field(_, name) | Term::With(_, name, _) => renamed(name),
        _ => {}
    }
}

/// Returns true if every value of a type is of another one, whatever is not known of the first.
fn fits(have: &Type, want: &Type) -> bool {
    match (have, want) {
        (_, Type::Dyn) => true,
        (Type::Dyn, _) => false,
        (Type::List(have), Type::List(want)) | (Type::Option(have), Type::Option(want)) => fits(have, want),
        (Type::Record(have), Type::Record(want)) => {
            want.iter().all(|(n, want)| have.iter().any(|(m, have)| m == n && fits(have, want)))
        }
        (Type::Map(have), Type::Map(want)) => fits(&have.0, &want.0) && fits(&have.1, &want.1),
        (Type::Rec(_), _) | (_, Type::Rec(_)) => have == want,
        _ => have.is_subtype(want),
    }
}
