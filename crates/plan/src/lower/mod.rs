//! Plans to core terms.

mod asks;
mod calls;
mod confirms;
mod delegates;
mod exprs;
mod library;
mod loops;
mod objects;
mod planned;
mod stmts;
mod tries;
mod types;

pub(crate) use exprs::is_reserved;
pub(crate) use tries::{KNOWN_CLASSES, known_class};

use crate::scope::{Frame, Frames, Known, Taint, Ty, UNIQUE, add};
use crate::{World, codes, names};
use core_ir::{
    Branch, BuildError, Builder, Code, Data, Globals, IfSugar, LabelSpec, Lattice, Name, Num, Prim, Term,
    TermId,
};
use diagnostics::{Diagnostic, Hint, Span, nearest};
use python::Source;
use ruff_python_ast::{ExprCall, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Terms of a plan at most, before functions are expanded no further.
const MAX_TERMS: usize = 400_000;
/// Functions that call each other at most.
const MAX_CALLS: usize = 20;
/// Loops inside each other at most.
pub(crate) const MAX_LOOPS: usize = 6;

/// The value of an expression.
#[derive(Clone)]
pub(crate) struct Val {
    pub(crate) term: TermId,
    pub(crate) ty: Ty,
    pub(crate) taint: Taint,
    pub(crate) unique: u8,
    /// Variables that the value may be part of: frame, name and depth.
    pub(crate) roots: Vec<(usize, String, u8)>,
    pub(crate) function: Option<usize>,
}

/// Which exceptions become signals instead of errors of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Catching {
    No,
    Errors,
    /// Also refusals, because a handler names `PolicyError`.
    Refusals,
}

/// A function of the plan.
#[derive(Clone)]
pub(crate) enum Function<'a> {
    Def(&'a StmtFunctionDef, usize),
    Lambda(&'a ruff_python_ast::ExprLambda, usize),
    Builtin(String),
    Tool(String),
    /// A class of the plan, which makes objects.
    Class(String),
    /// A method of a value under a name, with the label of the value.
    Method(Name, String, Taint),
    /// `str.lower`: the class and the method.
    Unbound(&'static str, String),
    /// A function of a module.
    Module(String),
}

/// A block under construction: which variables its record has, and what was known where it ends.
pub(crate) struct Cx {
    pub(crate) outs: Rc<[String]>,
    /// True if the record says how the block is left.
    pub(crate) signal: bool,
    pub(crate) next: Option<Frames>,
    /// Where `continue` leaves it for the next round of the loop around.
    pub(crate) again: Option<Frames>,
    /// Where it is left by `break`, `return` or an exception.
    pub(crate) other: Option<Frames>,
    /// Label of the decisions by which the block is left.
    pub(crate) taint: Taint,
}

impl Cx {
    pub(crate) fn new(outs: Rc<[String]>, signal: bool) -> Cx {
        Cx { outs, signal, next: None, again: None, other: None, taint: Taint::NONE }
    }

    /// Returns the facts that hold wherever the block is left before its end.
    pub(crate) fn left(&self) -> Option<Frames> {
        let mut left = self.other.clone();
        if let Some(again) = &self.again {
            add(&mut left, again);
        }
        left
    }
}

/// Continuation of the last statement of a block.
#[derive(Clone)]
pub(crate) enum Tail {
    Next,
    /// The end of `finally`: how the statement before it was left, and whether perhaps by `continue`.
    Resume {
        of: Name,
        continues: bool,
    },
}

pub(crate) struct Lower<'a> {
    pub(crate) b: Builder,
    pub(crate) source: &'a Source,
    pub(crate) world: &'a World,
    pub(crate) lattice: Lattice,
    pub(crate) frames: Frames,
    /// The frame in which statements run.
    pub(crate) frame: usize,
    pub(crate) functions: Vec<Function<'a>>,
    /// Functions under expansion.
    pub(crate) active: Vec<usize>,
    pub(crate) pc: Taint,
    /// Labels of what can fail since this was last reset.
    pub(crate) err: Taint,
    pub(crate) fails: bool,
    /// The label of the errors of a statement, if it is known exactly.
    pub(crate) of_errors: Option<LabelSpec>,
    /// The call that is all of the statement.
    pub(crate) alone: Option<&'a ExprCall>,
    pub(crate) catching: Catching,
    /// The exceptions of the handlers around, innermost last.
    pub(crate) handled: Vec<Name>,
    pub(crate) found: Vec<Diagnostic>,
    pub(crate) tools: BTreeMap<String, core_ir::ToolId>,
    /// Tools of the language's own, by name, as far as they are used.
    pub(crate) own_tools: BTreeMap<Name, core_ir::ToolId>,
    pub(crate) imports: BTreeMap<String, String>,
    pub(crate) instances: usize,
    pub(crate) terms: usize,
    pub(crate) loops: usize,
    /// Collections under iteration, by the names of their variables.
    pub(crate) iterated: Vec<String>,
    /// Statements around, innermost last: places for the arguments of planned calls.
    pub(crate) places: Vec<planned::Place<'a>>,
    /// Calls of functions of the plan that are being expanded, each with the number of frames around it.
    pub(crate) sites: Vec<(usize, Span)>,
    /// Classes of the plan.
    pub(crate) classes: BTreeMap<String, types::Class>,
    /// Classes of exceptions of the plan, with that which each extends.
    pub(crate) exceptions: BTreeMap<String, String>,
    /// True if the plan asks for the time.
    pub(crate) asks_time: bool,
    /// Values of names that are bound in one place.
    pub(crate) bound_once: BTreeMap<Name, TermId>,
    /// Lists that loops go over, by the names of the loops' states, in the order of the loops.
    pub(crate) loop_lists: BTreeMap<Name, (usize, Name)>,
    /// Calls whose arguments stay where they are.
    pub(crate) unmoved: Vec<planned::Unmoved>,
}

pub(crate) fn plan(source: &Source, world: &World) -> (Option<Code>, Vec<Diagnostic>, Vec<Hint>) {
    let mut b = Builder::new();
    let mut tools = BTreeMap::new();
    for tool in &world.tools {
        tools.insert(tool.name.to_string(), b.tool((**tool).clone()));
    }
    let body = source.body();
    let locals: Rc<[String]> = names::assigned(body).into_iter().collect();
    let once = names::assigned_once(body).into_iter().collect();
    let frame = Frame { vars: BTreeMap::new(), locals, parent: None, prefix: "".into(), closed: false, once };
    let mut lower = Lower {
        b,
        source,
        world,
        lattice: Lattice::new(world.lattice),
        frames: vec![frame],
        frame: 0,
        functions: Vec::new(),
        active: Vec::new(),
        pc: Taint::NONE,
        err: Taint::NONE,
        fails: false,
        of_errors: None,
        alone: None,
        catching: Catching::No,
        handled: Vec::new(),
        found: Vec::new(),
        tools,
        own_tools: BTreeMap::new(),
        imports: BTreeMap::new(),
        instances: 0,
        terms: 0,
        loops: 0,
        iterated: Vec::new(),
        places: Vec::new(),
        sites: Vec::new(),
        classes: BTreeMap::new(),
        exceptions: BTreeMap::new(),
        asks_time: false,
        bound_once: BTreeMap::new(),
        loop_lists: BTreeMap::new(),
        unmoved: Vec::new(),
    };
    let root = lower.whole(body);
    let hints = lower.unmoved.iter().map(|u| u.hint(source)).collect();
    let Lower { b, mut found, .. } = lower;
    diagnostics::sort(&mut found);
    found.dedup_by(|a, b| a.code == b.code && a.span == b.span);
    // What follows from its size says nothing more.
    if let Some(large) = found.iter().find(|d| d.code == codes::TOO_LARGE).cloned() {
        found = vec![large];
    }
    if diagnostics::has_errors(&found) {
        return (None, found, hints);
    }
    match b.finish(root, &Globals::none()) {
        Ok(code) => (Some(code), found, hints),
        Err(errors) => {
            for e in errors.into_iter().take(1) {
                found.push(match e {
                    BuildError::TooDeep(span) => {
                        Diagnostic::error(codes::TOO_LARGE, "plan nested too deep", span)
                            .help("divide the block into functions or several statements")
                    }
                    BuildError::Policy(name, span) => Diagnostic::error(
                        codes::ARGUMENTS,
                        format!("policy of `{name}` cannot be used"),
                        span,
                    ),
                    other => Diagnostic::error(
                        codes::SUBSET,
                        format!("plan cannot be lowered: {other:?}"),
                        crate::nowhere(source.id),
                    ),
                });
            }
            (None, found, hints)
        }
    }
}

impl<'a> Lower<'a> {
    pub(crate) fn at(&self, node: &impl Ranged) -> Span {
        self.source.span(node.range())
    }

    pub(crate) fn at_range(&self, range: TextRange) -> Span {
        self.source.span(range)
    }

    // ── diagnostics ──

    pub(crate) fn refuse(&mut self, span: Span, what: impl Into<String>, help: impl Into<String>) -> Val {
        self.error(codes::SUBSET, span, what, help)
    }

    pub(crate) fn error(
        &mut self,
        code: &'static str,
        span: Span,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Val {
        self.found.push(Diagnostic::error(code, what, span).help(help));
        let term = self.lit(Data::Null, span);
        self.val(term, Ty::Any, Taint::NONE)
    }

    // ── terms ──

    pub(crate) fn add(&mut self, term: Term, at: Span) -> TermId {
        self.terms += 1;
        self.b.add(term, at)
    }

    pub(crate) fn lit(&mut self, data: impl Into<Data>, at: Span) -> TermId {
        self.add(Term::Lit(data.into()), at)
    }

    /// A placeholder of which no type is known: nothing reads it.
    pub(crate) fn placeholder(&mut self, data: Data, at: Span) -> TermId {
        let term = self.lit(data, at);
        self.total("json", vec![term], at)
    }

    /// The value of a variable that is not bound.
    pub(crate) fn unbound(&mut self, at: Span) -> TermId {
        self.placeholder(Data::Tag("unbound".into(), Data::Null.into()), at)
    }

    pub(crate) fn var(&mut self, name: &Name, at: Span) -> TermId {
        self.terms += 1;
        self.b.var(name.clone(), at)
    }

    pub(crate) fn fresh(&mut self, stem: &str) -> Name {
        self.b.fresh(stem)
    }

    pub(crate) fn field(&mut self, of: &Name, field: &str, at: Span) -> TermId {
        let of = self.var(of, at);
        self.add(Term::Field(of, field.into()), at)
    }

    pub(crate) fn val(&self, term: TermId, ty: Ty, taint: Taint) -> Val {
        Val { term, ty, taint, unique: UNIQUE, roots: Vec::new(), function: None }
    }

    /// An operation that always has a result.
    pub(crate) fn total(&mut self, op: &str, args: Vec<TermId>, at: Span) -> TermId {
        let name = self.lit(Data::str(op), at);
        let all = std::iter::once(name).chain(args).collect();
        self.add(Term::Prim(Prim::Py, all), at)
    }

    /// An operation that may raise: `case py(…) of {ok v ⇒ v, raise e ⇒ fail e}`.
    pub(crate) fn py(&mut self, op: &str, args: Vec<TermId>, taint: Taint, at: Span) -> TermId {
        let result = self.total(op, args, at);
        self.may_fail(taint);
        let (ok, raised) = (Name::from("$ok"), Name::from("$raised"));
        let value = self.var(&ok, at);
        let error = self.var(&raised, at);
        let failed = self.add(Term::Fail(error), at);
        let branches = vec![
            Branch { tag: "ok".into(), binder: Some(ok), body: value },
            Branch { tag: "raise".into(), binder: Some(raised), body: failed },
        ];
        self.add(Term::Case { scrutinee: result, branches, default: None }, at)
    }

    pub(crate) fn may_fail(&mut self, taint: Taint) {
        self.fails = true;
        self.err = self.err.join(taint).join(self.pc);
    }

    pub(crate) fn exception(&mut self, class: &str, message: TermId, at: Span) -> TermId {
        let class = self.lit(Data::str(class), at);
        self.add(Term::Record(vec![("class".into(), class), ("message".into(), message)]), at)
    }

    /// `fail {class, message}` for a message that is known.
    pub(crate) fn fail(&mut self, class: &str, message: &str, taint: Taint, at: Span) -> TermId {
        let message = self.lit(Data::str(message), at);
        let e = self.exception(class, message, at);
        self.may_fail(taint);
        self.add(Term::Fail(e), at)
    }

    pub(crate) fn choose(&mut self, condition: TermId, then: TermId, other: TermId, at: Span) -> TermId {
        self.add(Term::If(condition, then, other, IfSugar::Plain), at)
    }

    /// The truth value of a value.
    pub(crate) fn truth(&mut self, v: &Val, at: Span) -> TermId {
        match v.ty {
            Ty::Bool => v.term,
            _ => self.total("truth", vec![v.term], at),
        }
    }

    pub(crate) fn label(&mut self, taint: Taint, at: Span) -> TermId {
        let spec = LabelSpec::Axes { untrusted: taint.untrusted, secret: taint.secret };
        let data = match self.lattice.resolve(&spec) {
            Some(label) => self.lattice.data_of(label),
            None => Data::list([]),
        };
        self.lit(data, at)
    }

    pub(crate) fn number(&mut self, n: i64, at: Span) -> TermId {
        self.lit(Num::from(n), at)
    }

    // ── variables ──

    /// The frame and what is known of a variable.
    pub(crate) fn lookup(&self, name: &str) -> Option<(usize, &Known)> {
        let mut at = Some(self.frame);
        while let Some(i) = at {
            let frame = &self.frames[i];
            if let Some(known) = frame.vars.get(name) {
                return Some((i, known));
            }
            if frame.locals.iter().any(|l| l == name) && frame.parent.is_some() {
                return None;
            }
            at = frame.parent;
        }
        None
    }

    pub(crate) fn core_name(&self, name: &str) -> Name {
        let prefix = &self.frames[self.frame].prefix;
        if prefix.is_empty() { name.into() } else { format!("${prefix}{name}").into() }
    }

    /// Makes a value part of a variable or structure. Returns the levels of it that nothing else refers to.
    pub(crate) fn store(&mut self, v: &Val) -> u8 {
        if v.ty.scalar() || v.roots.is_empty() {
            return if v.ty.scalar() { UNIQUE } else { v.unique };
        }
        for (frame, name, depth) in &v.roots {
            if let Some(known) = self.frames[*frame].vars.get_mut(name) {
                known.unique = known.unique.min(*depth);
            }
        }
        0
    }

    /// Binds a variable of this frame; the term of the value is bound by the caller.
    pub(crate) fn bind(&mut self, name: &str, v: &Val) -> Name {
        let unique = self.store(v);
        let core = self.core_name(name);
        let known = Known {
            core: core.clone(),
            ty: v.ty.clone(),
            taint: v.taint.join(self.pc),
            unique,
            maybe_unbound: false,
            function: v.function,
            exception: false,
        };
        let frame = self.frame;
        self.frames[frame].vars.insert(name.into(), known);
        core
    }

    pub(crate) fn unknown_name(&mut self, name: &str, at: Span) -> Val {
        let known = self.frames.iter().flat_map(|f| f.vars.keys().map(String::as_str));
        let all: Vec<&str> = known
            .chain(self.tools.keys().map(String::as_str))
            .chain(exprs::BUILTINS.iter().copied())
            .collect();
        let help = match nearest(name, all.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if self.tools.is_empty() => "declare tools in `tools.agent` beside the plan".into(),
            None => format!("tools: {}", self.tools.keys().cloned().collect::<Vec<_>>().join(", ")),
        };
        self.error(codes::UNKNOWN_NAME, at, format!("name `{name}` is not defined"), help)
    }

    // ── blocks ──

    /// The record that a block gives where it ends.
    pub(crate) fn pack(&mut self, cx: &mut Cx, kind: &str, value: Option<TermId>, at: Span) -> TermId {
        let mut fields = Vec::new();
        if cx.signal {
            let kind = self.lit(Data::str(kind), at);
            let value = match value {
                Some(v) => v,
                None => self.placeholder(Data::Null, at),
            };
            fields.push((Name::from("$k"), kind));
            fields.push((Name::from("$v"), value));
        }
        self.outs(&cx.outs.clone(), &mut fields, at);
        cx.taint = cx.taint.join(self.pc);
        let frames = self.tainted(&cx.outs);
        add(
            match kind {
                "next" => &mut cx.next,
                "continue" => &mut cx.again,
                _ => &mut cx.other,
            },
            &frames,
        );
        self.add(Term::Record(fields), at)
    }

    /// Leaves a block as the record `$s` says; perhaps by `continue`.
    pub(crate) fn propagate(&mut self, cx: &mut Cx, s: &Name, continues: bool, at: Span) -> TermId {
        let kind = self.field(s, "$k", at);
        let value = self.field(s, "$v", at);
        let mut fields = vec![(Name::from("$k"), kind), (Name::from("$v"), value)];
        self.outs(&cx.outs.clone(), &mut fields, at);
        cx.taint = cx.taint.join(self.pc);
        let frames = self.tainted(&cx.outs);
        add(&mut cx.other, &frames);
        if continues {
            add(&mut cx.again, &frames);
        }
        self.add(Term::Record(fields), at)
    }

    fn outs(&mut self, outs: &Rc<[String]>, fields: &mut Vec<(Name, TermId)>, at: Span) {
        for name in outs.iter() {
            let known = self.frames[self.frame].vars.get(name).filter(|k| k.function.is_none());
            let term = match known.map(|k| k.core.clone()) {
                Some(core) => self.var(&core, at),
                None => self.unbound(at),
            };
            fields.push((name.as_str().into(), term));
        }
    }

    /// Facts about the variables; those in the record of the block have the label of the program counter.
    fn tainted(&self, outs: &Rc<[String]>) -> Frames {
        let mut frames = self.frames.clone();
        if self.pc != Taint::NONE {
            let frame = self.frame;
            for name in outs.iter() {
                if let Some(known) = frames[frame].vars.get_mut(name) {
                    known.taint = known.taint.join(self.pc);
                }
            }
        }
        frames
    }

    /// Bindings of the variables of a record.
    pub(crate) fn unpack(&mut self, outs: &Rc<[String]>, from: &Name, at: Span) -> Vec<(Name, TermId)> {
        let mut bindings = Vec::new();
        for name in outs.iter() {
            let core = match self.frames[self.frame].vars.get(name) {
                Some(k) if k.function.is_none() => k.core.clone(),
                _ => continue,
            };
            let field = self.field(from, name, at);
            bindings.push((core, field));
        }
        bindings
    }

    fn whole(&mut self, body: &'a [Stmt]) -> TermId {
        let at = Span { end: self.source.text.len() as u32, ..crate::nowhere(self.source.id) };
        let printed = names::assigned(body).contains(names::PRINTED);
        let mut cx = Cx::new([names::PRINTED.to_string()].into(), true);
        if !printed {
            cx.outs = [].into();
        }
        let mut first = Vec::new();
        if printed {
            let none = self.lit(Data::list([]), at);
            let v = self.val(none, Ty::List(Rc::new(Ty::Str)), Taint::NONE);
            first.push((self.bind(names::PRINTED, &v), none));
        }
        let term = self.seq(body, &mut cx, &Tail::Next);
        // The answer stands where the plan ends.
        let whole = at;
        let at = body.last().map_or(at, |last| self.at(last));
        let s = self.fresh("end");
        let value = self.field(&s, "$v", at);
        let mut answer = self.total("json", vec![value], at);
        if printed {
            let v = self.field(&s, "$v", at);
            let none = self.add(Term::Prim(Prim::IsNull, vec![v]), at);
            let lines = self.field(&s, names::PRINTED, at);
            let newline = self.lit(Data::str("\n"), at);
            let text = self.add(Term::Prim(Prim::Join, vec![lines, newline]), at);
            answer = self.choose(none, text, answer, at);
        }
        first.push((s, term));
        if self.asks_time {
            let time = self.time(at);
            first.insert(0, (library::NOW.into(), time));
        }
        self.b.let_in(first, answer, whole)
    }

    /// Returns true if the plan has become too large; says so once.
    pub(crate) fn too_large(&mut self, at: Span) -> bool {
        if self.terms < MAX_TERMS {
            return false;
        }
        if !self.found.iter().any(|d| d.code == codes::TOO_LARGE) {
            self.error(
                codes::TOO_LARGE,
                at,
                "plan too large",
                "call fewer functions inside of functions and loops",
            );
        }
        true
    }
}
