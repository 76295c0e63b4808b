//! Types as they are reported: what the solver found out, as types of the calculus.

use super::*;

/// Parts of one reported type.
const MAX_REPORTED_PARTS: u32 = 2_000;
/// Levels of one reported type.
const MAX_DEPTH: u32 = 24;

/// Types as they are reported: variables replaced by the join of what flows into them.
struct Report<'a> {
    solver: &'a Solver,
    open: HashSet<T>,
    left: u32,
    sets: Option<&'a [crate::types::effects::Set]>,
}

impl Report<'_> {
    /// Returns the type of the lower bounds of `t`; `None` if there are none.
    fn below(&mut self, t: T, depth: u32) -> Option<Type> {
        if depth > MAX_DEPTH || self.left == 0 {
            return Some(Type::Dyn);
        }
        self.left -= 1;
        let part = |r: &mut Self, t: T| r.below(t, depth + 1).unwrap_or_else(nothing);
        Some(match self.solver.node(t) {
            Node::Var => {
                if !self.open.insert(t) {
                    return Some(Type::Dyn);
                }
                let mut all: Option<Type> = None;
                if let Some(bounds) = self.solver.bounds.get(&t) {
                    for (lower, _) in &bounds.lower {
                        // A variable that only feeds itself adds nothing.
                        if self.open.contains(lower) {
                            continue;
                        }
                        let Some(ty) = self.below(*lower, depth) else { continue };
                        all = Some(match all {
                            None => ty,
                            Some(before) => join(before, ty),
                        });
                        if all == Some(Type::Dyn) {
                            break;
                        }
                    }
                }
                self.open.remove(&t);
                return all;
            }
            Node::Dyn | Node::Use(_) => Type::Dyn,
            Node::Str | Node::Lit(Data::Str(_)) => Type::Str,
            Node::Num | Node::Lit(_) => Type::Num,
            Node::Bool => Type::Bool,
            Node::Null => Type::Null,
            Node::List(t) => Type::list(part(self, *t)),
            Node::Tuple(ts) => {
                let items = ts.clone();
                let mut all: Option<Type> = None;
                for t in items.iter() {
                    let ty = part(self, *t);
                    all = Some(match all {
                        None => ty,
                        Some(before) => join(before, ty),
                    });
                    if all == Some(Type::Dyn) {
                        break;
                    }
                }
                Type::list(all.unwrap_or_else(nothing))
            }
            Node::Option(t) => match part(self, *t) {
                t @ (Type::Option(_) | Type::Null) => t,
                t => Type::option(t),
            },
            Node::Pair(a, b) => Type::Pair(Arc::new((part(self, *a), part(self, *b)))),
            Node::Record { fields, .. } | Node::Args { fields, .. } => {
                let fields = fields.clone();
                Type::Record(fields.iter().map(|f| (f.name.clone(), part(self, f.ty))).collect())
            }
            Node::Enum(e) => Type::Enum(e.clone()),
            Node::Variant(tags) => {
                let tags = tags.clone();
                Type::Variant(tags.iter().map(|(n, t)| (n.clone(), part(self, *t))).collect())
            }
            Node::Fun(a, e, b) => {
                let (a, e, b) = (*a, *e, *b);
                let param = self.above(a, depth + 1).unwrap_or(Type::Dyn);
                let row = match self.sets {
                    Some(sets) => {
                        sets.get(e.0 as usize).map_or(EffectRow::Any, |s| self.solver.effects.row(s))
                    }
                    None => EffectRow::pure(),
                };
                Type::fun(param, row, part(self, b))
            }
            Node::Refined(t, p) => Type::Refined(Arc::new((part(self, *t), (**p).clone()))),
        })
    }

    /// Returns the type of the upper bounds of `t`, that is, of its uses; `None` if they are unknown.
    fn above(&mut self, t: T, depth: u32) -> Option<Type> {
        if depth > MAX_DEPTH || self.left == 0 {
            return None;
        }
        self.left -= 1;
        match self.solver.node(t) {
            Node::Var => {
                // Variables that flow into one another may be a long chain, which is not gone down by
                // recursion.
                let (mut found, mut todo, mut opened) = (None, vec![t], Vec::new());
                while let Some(next) = todo.pop() {
                    if !matches!(self.solver.node(next), Node::Var) {
                        match (self.above(next, depth), &found) {
                            (Some(ty), None) => found = Some(ty),
                            // It is used in two ways; the more special one is nearer to the truth.
                            (Some(ty), Some(before)) if ty != *before && ty.is_subtype(before) => {
                                found = Some(ty);
                            }
                            _ => {}
                        }
                    } else if self.left > 0 && self.open.insert(next) {
                        self.left -= 1;
                        opened.push(next);
                        let bounds = self.solver.bounds.get(&next);
                        todo.extend(bounds.into_iter().flat_map(|b| b.upper.iter().rev()).map(|(t, _)| *t));
                    }
                }
                for var in opened {
                    self.open.remove(&var);
                }
                found
            }
            Node::Use(how) => match &**how {
                Use::Args { params, .. } => {
                    let params = params.clone();
                    match &params[..] {
                        [only] => self.above(only.ty, depth + 1),
                        all => Some(Type::record(
                            all.iter()
                                .map(|p| (p.name.clone(), self.below(p.ty, depth + 1).unwrap_or(Type::Dyn))),
                        )),
                    }
                }
                Use::Field { name, result } => {
                    let (name, result) = (name.clone(), *result);
                    let ty = self.above(result, depth + 1).unwrap_or(Type::Dyn);
                    Some(Type::record([(name, ty)]))
                }
                _ => None,
            },
            Node::Dyn => None,
            Node::Fun(a, _, b) => {
                let (a, b) = (*a, *b);
                let param = self.below(a, depth + 1).unwrap_or(Type::Dyn);
                let result = self.above(b, depth + 1).unwrap_or(Type::Dyn);
                Some(Type::fun(param, EffectRow::Any, result))
            }
            Node::List(t) => {
                let t = *t;
                Some(Type::list(self.above(t, depth + 1).unwrap_or(Type::Dyn)))
            }
            Node::Option(t) => {
                let t = *t;
                Some(Type::option(self.above(t, depth + 1).unwrap_or(Type::Dyn)))
            }
            _ => self.below(t, depth),
        }
    }
}

/// The type without values, while a type is put together.
fn nothing() -> Type {
    Type::Variant([].into())
}

/// Replaces empty parts by the unknown type.
fn tidy(ty: Type) -> Type {
    stacker::maybe_grow(32 * 1024, 1024 * 1024, || match ty {
        Type::Variant(tags) if tags.is_empty() => Type::Dyn,
        Type::Variant(tags) => {
            Type::Variant(tags.iter().map(|(n, t)| (n.clone(), tidy(t.clone()))).collect())
        }
        Type::Record(fields) => {
            Type::Record(fields.iter().map(|(n, t)| (n.clone(), tidy(t.clone()))).collect())
        }
        Type::List(t) => Type::list(tidy((*t).clone())),
        Type::Option(t) => Type::option(tidy((*t).clone())),
        Type::Pair(p) => Type::Pair(Arc::new((tidy(p.0.clone()), tidy(p.1.clone())))),
        Type::Fun(f) => Type::fun(tidy(f.0.clone()), f.1.clone(), tidy(f.2.clone())),
        Type::Refined(r) => Type::Refined(Arc::new((tidy(r.0.clone()), r.1.clone()))),
        ty => ty,
    })
}

/// A type that both are of, as narrow as the types of the calculus allow.
fn join(a: Type, b: Type) -> Type {
    if a == b {
        return a;
    }
    match (a, b) {
        (Type::Variant(tags), t) | (t, Type::Variant(tags)) if tags.is_empty() => t,
        (Type::Null, t) | (t, Type::Null) => match t {
            t @ (Type::Option(_) | Type::Dyn) => t,
            t => Type::option(t),
        },
        (Type::Option(x), Type::Option(y)) => Type::option(join((*x).clone(), (*y).clone())),
        (Type::Option(x), t) | (t, Type::Option(x)) => match join((*x).clone(), t) {
            Type::Dyn => Type::Dyn,
            t @ Type::Option(_) => t,
            t => Type::option(t),
        },
        (Type::Refined(r), t) | (t, Type::Refined(r)) => match t {
            Type::Refined(s) if r.1 == s.1 => {
                Type::Refined(Arc::new((join(r.0.clone(), s.0.clone()), r.1.clone())))
            }
            Type::Refined(s) => join(r.0.clone(), s.0.clone()),
            t => join(r.0.clone(), t),
        },
        (Type::Enum(_), Type::Enum(_) | Type::Str) | (Type::Str, Type::Enum(_)) => Type::Str,
        (Type::List(x), Type::List(y)) => Type::list(join((*x).clone(), (*y).clone())),
        (Type::Pair(x), Type::Pair(y)) => {
            Type::Pair(Arc::new((join(x.0.clone(), y.0.clone()), join(x.1.clone(), y.1.clone()))))
        }
        (Type::Record(x), Type::Record(y)) => Type::Record(
            x.iter()
                .filter_map(|(n, t)| {
                    let (_, u) = y.iter().find(|(m, _)| m == n)?;
                    Some((n.clone(), join(t.clone(), u.clone())))
                })
                .collect(),
        ),
        (Type::Variant(x), Type::Variant(y)) => {
            let mut tags: Vec<(Name, Type)> = x.to_vec();
            for (n, t) in y.iter() {
                match tags.iter_mut().find(|(m, _)| m == n) {
                    Some((_, u)) => *u = join(u.clone(), t.clone()),
                    None => tags.push((n.clone(), t.clone())),
                }
            }
            Type::Variant(tags.into())
        }
        (Type::Fun(x), Type::Fun(y)) => {
            let param = if x.0 == y.0 { x.0.clone() } else { Type::Dyn };
            Type::fun(param, x.1.union(&y.1), join(x.2.clone(), y.2.clone()))
        }
        _ => Type::Dyn,
    }
}

impl Solver {
    /// Returns the type of the values that reach `t`; `None` if none does.
    pub(in crate::types) fn reported(&self, t: T) -> Option<Type> {
        Report { solver: self, open: HashSet::new(), left: MAX_REPORTED_PARTS, sets: None }
            .below(t, 0)
            .map(tidy)
    }

    /// Returns the type of the values that reach `t`, with the effects of functions.
    pub(in crate::types) fn reported_with(&self, t: T, sets: &[crate::types::effects::Set]) -> Option<Type> {
        Report { solver: self, open: HashSet::new(), left: MAX_REPORTED_PARTS, sets: Some(sets) }
            .below(t, 0)
            .map(tidy)
    }
}
