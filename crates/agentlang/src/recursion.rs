//! Pipelines that call themselves and count down while they do.
//!
//! A pipeline may call itself if one of its parameters is a Number that every such call gets with a constant
//! taken away, and if it is certain before each of these calls that the parameter is above a constant. Then
//! the chain of calls ends, and its length follows from the first argument alone.
//!
//! Invariant: what is accepted here ends, whatever models and tools answer.

use super::check::arguments_of;
use super::exits::{ExitTable, blocks_of};
use super::predicate::constant;
use core_ir::{Data, Num};
use diagnostics::Span;
use syntax::agent::ast::{self, Args, BinaryOp, Block, Expr, ExprKind, Run, Stmt, StmtKind, UnaryOp};

/// Decreasing parameter of a recursive pipeline.
#[derive(Clone, Debug)]
pub(super) struct Descent {
    /// The parameter.
    pub(super) param: String,
    /// Lower bound that holds before each recursive call.
    above: Above,
    /// The least that is taken away.
    step: Num,
}

/// Reason why a parameter does not bound the calls.
pub(super) struct Why {
    pub(super) span: Span,
    pub(super) text: String,
    /// Progress of the argument for this parameter. The most promising reason is reported.
    rank: u8,
}

/// A lower bound of the parameter, which it may or may not reach.
#[derive(Clone, Debug, PartialEq)]
struct Above {
    bound: Num,
    reached: bool,
}

impl Above {
    /// The one that says less.
    fn weaker(self, other: Above) -> Above {
        let less = (&other.bound, !other.reached) < (&self.bound, !self.reached);
        if less { other } else { self }
    }

    fn stronger(self, other: Above) -> Above {
        let more = (&other.bound, !other.reached) > (&self.bound, !self.reached);
        if more { other } else { self }
    }
}

fn both(a: Option<Above>, b: Option<Above>, which: fn(Above, Above) -> Above) -> Option<Above> {
    match (a, b) {
        (Some(a), Some(b)) => Some(which(a, b)),
        (a, b) => a.or(b),
    }
}

impl Descent {
    /// Returns the maximal number of nested calls, the first with this argument included.
    pub(super) fn calls(&self, first: &Num) -> Option<u64> {
        let room = first.sub(&self.above.bound).ok()?;
        if room < Num::ZERO || (room.is_zero() && !self.above.reached) {
            return Some(1);
        }
        // The arguments first, first - step, … that still are above the bound, and the one after them.
        let steps = room.div(&self.step).ok()?;
        let whole = steps.floor();
        let again = match steps == whole && !self.above.reached {
            true => whole,
            false => whole.add(&Num::from(1)).ok()?,
        };
        u64::try_from(again.add(&Num::from(1)).ok()?.to_i64()?).ok()
    }

    /// [`Descent::calls`] of a call in the program, if its argument is a constant.
    pub(super) fn calls_of(&self, run: &Run, params: &[super::decls::Param]) -> Option<u64> {
        match argument(run, &self.param, params).and_then(constant) {
            Some(Data::Num(n)) => self.calls(&n),
            _ => None,
        }
    }
}

/// Finds the decreasing parameter of a pipeline, or the reason why there is none.
///
/// # Errors
/// The most promising parameter's reason; none if no parameter is a Number.
pub(super) fn descent(
    p: &ast::Pipeline,
    params: &[super::decls::Param],
    exits: &ExitTable,
) -> Result<Descent, Option<Why>> {
    let mut best: Option<Why> = None;
    for param in params.iter().filter(|q| q.ty == core_ir::Type::Num) {
        let mut walk = Walk {
            pipeline: &p.name.text,
            param: &param.name.text,
            params,
            exits,
            above: None,
            step: None,
            why: None,
        };
        walk.block(&p.body, None);
        match (walk.why, walk.above, walk.step) {
            (None, Some(above), Some(step)) => {
                return Ok(Descent { param: param.name.text.clone(), above, step });
            }
            (Some(why), ..) if best.as_ref().is_none_or(|b| b.rank < why.rank) => best = Some(why),
            _ => {}
        }
    }
    Err(best)
}

fn argument<'a>(run: &'a Run, param: &str, params: &[super::decls::Param]) -> Option<&'a Expr> {
    match &run.args {
        Args::Named(args) => args.iter().find(|(n, _)| n.text == param).map(|(_, e)| e),
        Args::Positional(_) => {
            arguments_of(run).get(params.iter().position(|p| p.name.text == param)?).copied()
        }
    }
}

struct Walk<'a> {
    pipeline: &'a str,
    param: &'a str,
    params: &'a [super::decls::Param],
    exits: &'a ExitTable,
    /// Lower bound before all of the calls.
    above: Option<Above>,
    step: Option<Num>,
    why: Option<Why>,
}

impl Walk<'_> {
    fn fail(&mut self, span: Span, rank: u8, text: String) {
        if self.why.is_none() {
            self.why = Some(Why { span, text, rank });
        }
    }

    fn binds(&mut self, name: &ast::Name) {
        if name.text == self.param {
            self.fail(name.span, 2, format!("`{}` means something else here", self.param));
        }
    }

    /// Goes through a block, before which this is certain.
    fn block(&mut self, block: &Block, known: Option<Above>) {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            let mut known = known;
            for stmt in &block.stmts {
                known = self.stmt(stmt, known);
            }
        });
    }

    fn stmt(&mut self, stmt: &Stmt, known: Option<Above>) -> Option<Above> {
        let with = |c: &Expr, holds: bool| both(known.clone(), self.certain(c, holds), Above::stronger);
        match &stmt.kind {
            StmtKind::If(c, then, other) => {
                let (holds, fails) = (with(c, true), with(c, false));
                self.block(then, holds.clone());
                if let Some(other) = other {
                    self.block(other, fails.clone());
                }
                let falls = |b: &Block| self.exits.block(b).falls;
                match (falls(then), other.as_ref().is_none_or(falls)) {
                    (false, _) => return fails,
                    (_, false) => return holds,
                    _ => {}
                }
            }
            StmtKind::While(c, _, body) => {
                let holds = with(c, true);
                self.block(body, holds);
            }
            StmtKind::Assert(c, _) => return with(c, true),
            StmtKind::Guard(name, c, _) if name.text == self.param => return with(c, true),
            StmtKind::Run(run) => {
                self.call(run, known.as_ref());
                self.binds(&run.name);
            }
            StmtKind::Parallel { runs, .. } => {
                for run in runs {
                    self.call(run, known.as_ref());
                    self.binds(&run.name);
                }
            }
            _ => {
                if let StmtKind::Let(name, ..)
                | StmtKind::IfLet(name, ..)
                | StmtKind::For(name, ..)
                | StmtKind::ParallelFor(name, ..)
                | StmtKind::Try(_, ast::Catch { name, .. }, _) = &stmt.kind
                {
                    self.binds(name);
                }
                if let StmtKind::Match(_, arms) = &stmt.kind {
                    arms.iter().flat_map(|a| &a.pattern.fields).for_each(|f| self.binds(&f.name));
                }
                for inner in blocks_of(stmt) {
                    self.block(inner, known.clone());
                }
            }
        }
        known
    }

    fn call(&mut self, run: &Run, known: Option<&Above>) {
        if run.target.text != self.pipeline {
            return;
        }
        // A missing argument has been reported.
        let Some(given) = argument(run, self.param, self.params) else { return };
        let Some(step) = self.step_of(given) else {
            let text = format!("this is not `{}` with a number taken away", self.param);
            return self.fail(given.span, 1, text);
        };
        let Some(known) = known else {
            let text = format!("nothing says before this call that `{}` is above some number", self.param);
            return self.fail(run.target.span, 3, text);
        };
        self.above = both(self.above.take(), Some(known.clone()), Above::weaker);
        self.step = Some(match self.step.take() {
            Some(least) if least <= step => least,
            _ => step,
        });
    }

    /// Returns the amount that an argument subtracts from the parameter.
    fn step_of(&self, e: &Expr) -> Option<Num> {
        match &e.kind {
            ExprKind::Paren(inner) => self.step_of(inner),
            ExprKind::Binary(BinaryOp::Sub, _, a, b) if self.is_param(a) => match constant(b) {
                Some(Data::Num(n)) if n > Num::ZERO => Some(n),
                _ => None,
            },
            _ => None,
        }
    }

    fn is_param(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Paren(inner) => self.is_param(inner),
            ExprKind::Var(name) => name == self.param,
            _ => false,
        }
    }

    /// Returns the lower bound on the parameter where a condition is true, or where it is false.
    fn certain(&self, c: &Expr, holds: bool) -> Option<Above> {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &c.kind {
            ExprKind::Paren(inner) => self.certain(inner, holds),
            ExprKind::Unary(UnaryOp::Not, inner) => self.certain(inner, !holds),
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), _, a, b) => {
                let (a, b) = (self.certain(a, holds), self.certain(b, holds));
                match (*op == BinaryOp::And) == holds {
                    true => both(a, b, Above::stronger),
                    false => a.zip(b).map(|(a, b)| a.weaker(b)),
                }
            }
            ExprKind::Binary(op, _, a, b) => {
                let (op, bound) = match (self.is_param(a), self.is_param(b)) {
                    (true, false) => (*op, constant(b)?),
                    (false, true) => (mirrored(*op), constant(a)?),
                    _ => return None,
                };
                let Data::Num(bound) = bound else { return None };
                let reached = match (op, holds) {
                    (BinaryOp::Gt, true) | (BinaryOp::Le, false) => false,
                    (BinaryOp::Ge | BinaryOp::Eq, true) | (BinaryOp::Lt | BinaryOp::Ne, false) => true,
                    _ => return None,
                };
                Some(Above { bound, reached })
            }
            _ => None,
        })
    }
}

fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_as_long_as_it_can_be_walked() {
        let num = |s: &str| s.parse::<Num>().unwrap();
        for (first, bound, reached, step, calls) in [
            ("5", "0", false, "1", 6),
            ("5", "1", true, "1", 6),
            ("5", "0", false, "2", 4),
            ("4", "0", false, "2", 3),
            ("4", "0", true, "2", 4),
            ("0", "0", false, "1", 1),
            ("0", "0", true, "1", 2),
            ("-3", "0", false, "1", 1),
            ("2.5", "0", false, "1", 4),
            ("1", "0", false, "0.25", 5),
        ] {
            let (first, step) = (num(first), num(step));
            let above = Above { bound: num(bound), reached };
            // By walking it.
            let (mut n, mut walked) = (first.clone(), 1);
            while n > above.bound || (above.reached && n == above.bound) {
                n = n.sub(&step).unwrap();
                walked += 1;
            }
            let descent = Descent { param: "n".into(), above, step };
            assert_eq!((descent.calls(&first), walked), (Some(calls), calls), "{descent:?} {first}");
        }
        let descent =
            Descent { param: "n".into(), above: Above { bound: Num::ZERO, reached: false }, step: num("1") };
        assert_eq!(descent.calls(&num("1e30")), None);
    }
}
