//! Types and effects of core terms.
//!
//! Entry point: [`check`]. Types are inferred: a parameter need not be annotated. What cannot be known before
//! a run (a reply that is run as code, JSON that a program parses, an undeclared tool) is `Dyn`: it fits
//! everywhere, and the places where it is used as something known are listed in [`Typing::dynamic`], because
//! only the run decides there.
//!
//! A closed function that a `let` binds, and a definition of the prelude, is polymorphic. After a test such
//! as `is_null x`, `x == null`, `has r "f"` or `is_str x` a variable has the narrower type in each branch.
//!
//! Invariant: pure and total; no input makes it recurse without bound or take more than a fixed amount of
//! work.
//! Invariant: if nothing is an error and nothing dynamic, no run meets a value of the wrong kind: the errors
//! that remain are those that §4.7 allows (guard, classify, tool, model, policy, decode, an index or number
//! out of range).
//! Invariant: what is unknown is never an error.
//!
//! Source: `docs/calculus.md` §4; seed 000 §3.2, §3.3, Theorems 5.1 to 5.3, §9 (TE rules).

pub mod codes;
mod effects;
mod infer;
mod solve;
#[cfg(test)]
mod tests;

use core_ir::{Code, EffectRow, TermId, Type};
use diagnostics::{Diagnostic, FileId, Span};
use infer::{Env, Infer, ParBranches};
use solve::Mistake;
use std::collections::HashSet;

/// A place with what happens there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Why {
    span: Span,
    what: &'static str,
    /// If it is a call, where its argument stands.
    argument: Span,
}

impl Why {
    const NONE: Why = Why::new(Span { file: FileId(u32::MAX), start: 0, end: 0 }, "");

    const fn new(span: Span, what: &'static str) -> Why {
        Why { span, what, argument: span }
    }
}

/// Result of type checking a program.
#[derive(Clone, Debug)]
pub struct Typing {
    /// The type of the term's value; `Dyn` if it is not known, or if it never has one.
    pub ty: Type,
    /// The type of what applying it to the input gives, if it was to be applied.
    pub result: Option<Type>,
    /// Effects of evaluating the term and of applying its value.
    pub effects: EffectRow,
    /// Places where something of unknown type is used as something known, in the order of the text.
    pub dynamic: Vec<Span>,
    /// True if the whole program was checked. Otherwise it is too large, and no result is complete.
    pub complete: bool,
    /// Diagnostics in the order of their places.
    pub diagnostics: Vec<Diagnostic>,
}

impl Typing {
    /// Returns true if every use provably fits: there is no error, and no check is left to the run.
    pub fn is_static(&self) -> bool {
        self.complete && self.dynamic.is_empty() && !diagnostics::has_errors(&self.diagnostics)
    }
}

/// Types and effects of a term; if `input` is given, also of applying the term's value to an input of that
/// type.
///
/// # Examples
/// ```
/// use core_ir::{Builder, Globals, Prim, Term};
/// use diagnostics::{FileId, Span};
/// let at = Span { file: FileId(0), start: 0, end: 0 };
/// let mut b = Builder::new();
/// let (x, one) = (b.var("x", at), b.lit(core_ir::Num::ONE, at));
/// let sum = b.add(Term::Prim(Prim::Add, vec![x, one]), at);
/// let f = b.abs("x", None, sum, at);
/// let code = b.finish(f, &Globals::none()).unwrap();
/// assert_eq!(analysis::types::check(&code, None).ty.to_string(), "Num -> Num");
/// ```
pub fn check(code: &Code, input: Option<&Type>) -> Typing {
    checked(code, input, false).0
}

/// Also returns the types of subterms in the order of visits: the value of such a subterm has its type. Left
/// out are types that are partly unknown or contain a function, and subterms of functions used at several
/// types.
///
/// Tests of preservation use it: at each step they check the value just computed.
pub fn check_steps(code: &Code) -> (Typing, Vec<(TermId, Type)>) {
    checked(code, None, true)
}

fn checked(code: &Code, input: Option<&Type>, keep: bool) -> (Typing, Vec<(TermId, Type)>) {
    let mut infer = Infer::new(code);
    infer.steps = keep.then(Vec::new);
    let root = code.root();
    let eff = infer.s.effects.node();
    let t = infer.infer(code, root, &mut Env::empty(), eff);
    let result = input.map(|ty| {
        let at = code.span(root);
        let x = infer.s.declared(ty);
        infer.apply(t, x, eff, at, at, at)
    });
    let sets = infer.s.effects.solve();
    let source = code.span(root).file;
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let pars = std::mem::take(&mut infer.pars);
    if let Some(sets) = &sets {
        for (small, big, why) in &infer.s.effects.bounds {
            let (small, big) = (&sets[small.0 as usize], &sets[big.0 as usize]);
            if !infer.s.effects.allowed(small, big) {
                let (may, allowed) = (infer.s.effects.row(small), infer.s.effects.row(big));
                let message = format!("this may do: {may}; declared is: {allowed}");
                infer.s.mistakes.push(Mistake {
                    code: codes::EFFECTS,
                    message,
                    at: *why,
                    from: *why,
                    help: Some("a declared effect is an upper bound; declare all that happens".into()),
                });
            }
        }
        for ParBranches { at, branches } in &pars {
            let branches: Vec<&effects::Set> = branches.iter().map(|b| &sets[b.0 as usize]).collect();
            if let Some((key, i, j)) = infer.s.effects.conflict(&branches) {
                let at = Why::new(*at, "");
                let message = format!(
                    "branches {} and {} of this `par` use the key `{key}`, and one of them writes it",
                    i + 1,
                    j + 1
                );
                let help = "let the branches return values, and remember them after the `par`";
                let help = Some(help.to_string());
                infer.s.mistakes.push(Mistake { code: codes::PAR_STATE, message, at, from: at, help });
            }
        }
    }
    let mistakes = infer.s.found();
    // Errors caused by another error are not reported.
    let wrong: HashSet<Span> = mistakes.iter().map(|m| m.at.span).collect();
    for m in mistakes {
        if m.from.span != m.at.span && wrong.contains(&m.from.span) {
            continue;
        }
        if let Some(d) = diagnostic(m, source, code.span(root), &mut seen) {
            found.push(d);
        }
    }
    diagnostics::sort(&mut found);
    let mut dynamic: Vec<Span> = infer.s.dynamic.iter().map(|w| w.span).collect();
    dynamic.sort();
    dynamic.dedup();
    let report = |t| match &sets {
        Some(sets) => infer.s.reported_with(t, sets).unwrap_or(Type::Dyn),
        None => infer.s.reported(t).unwrap_or(Type::Dyn),
    };
    let effects = match &sets {
        Some(sets) => infer.s.effects.row(&sets[eff.0 as usize]),
        None => EffectRow::Any,
    };
    let steps = infer.steps.take().unwrap_or_default().into_iter();
    let steps = steps
        .filter_map(|(id, t)| Some((id, infer.s.reported(t)?)))
        .filter(|(_, ty)| !infer::contains(ty, &|t| matches!(t, Type::Fun(_) | Type::Dyn)))
        .collect();
    let typing = Typing {
        ty: report(t),
        result: result.map(report),
        effects,
        dynamic,
        complete: infer.s.fuel > 0 && sets.is_some(),
        diagnostics: found,
    };
    (typing, steps)
}

/// A mistake at a place of the program itself: where the value is used, or, if that is in the prelude, where
/// it comes from. One for each place and code.
fn diagnostic(
    m: Mistake,
    source: FileId,
    root: Span,
    seen: &mut HashSet<(&'static str, Span)>,
) -> Option<Diagnostic> {
    // The prelude and generated code are in files that users can't see; imported files belong to the program.
    let own = |w: &Why| w.span.file == source || w.span.file.0 < u32::MAX - 8;
    let (at, other) = match (own(&m.at), own(&m.from)) {
        (true, true) => (m.at, Some(m.from)),
        (true, false) => (m.at, None),
        (false, true) => (m.from, None),
        (false, false) => (Why::new(root, ""), None),
    };
    if !seen.insert((m.code, at.span)) {
        return None;
    }
    let mut d = Diagnostic::error(m.code, m.message, at.span).label(at.what);
    if let Some(other) = other.filter(|o| o.span != at.span) {
        d = d
            .remark(other.span, if other.what.is_empty() { "the value comes from here" } else { other.what });
    }
    if let Some(help) = m.help {
        d = d.help(help);
    }
    Some(d)
}
