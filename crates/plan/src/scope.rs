//! Facts about variables before the run: type, label and owner.

use core_ir::{LabelSpec, Lattice, Name, Type};
use std::collections::BTreeMap;
use std::rc::Rc;

/// An upper bound of a label, known before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Taint {
    pub(crate) untrusted: bool,
    pub(crate) secret: bool,
}

impl Taint {
    pub(crate) const NONE: Taint = Taint { untrusted: false, secret: false };

    #[must_use]
    pub(crate) fn join(self, other: Taint) -> Taint {
        Taint { untrusted: self.untrusted || other.untrusted, secret: self.secret || other.secret }
    }

    /// Returns an upper bound on a label of this lattice.
    pub(crate) fn covering(lattice: &mut Lattice, spec: &LabelSpec) -> Taint {
        let axes = |untrusted, secret| LabelSpec::Axes { untrusted, secret };
        let [trusted, public] = [axes(false, true), axes(true, false)].map(|m| lattice.resolve(&m));
        match (spec, lattice.resolve(spec), trusted, public) {
            (LabelSpec::Axes { untrusted, secret }, ..) => Taint { untrusted: *untrusted, secret: *secret },
            (_, Some(label), Some(trusted), Some(public)) => {
                Taint { untrusted: !lattice.flows(label, trusted), secret: !lattice.flows(label, public) }
            }
            _ => Taint { untrusted: true, secret: true },
        }
    }
}

/// Type of a value, as far as it is known before the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ty {
    Any,
    Null,
    Bool,
    Num,
    Str,
    List(Rc<Ty>),
    Tuple,
    Set,
    /// A dictionary; with the fields that it has for certain, if it is a record.
    Dict(Option<Rc<[(Name, Ty)]>>),
    /// An object of a class of the plan, with its fields.
    Object(Rc<str>, Rc<[(Name, Ty)]>),
    /// A value that cannot be mutated and is no JSON: a date, a member of an `Enum`, a match.
    Atom,
}

impl Ty {
    /// Returns true for values that cannot be mutated.
    pub(crate) fn scalar(&self) -> bool {
        matches!(self, Ty::Null | Ty::Bool | Ty::Num | Ty::Str | Ty::Atom)
    }

    /// Returns true for values that are data for a tool without conversion.
    pub(crate) fn plain(&self) -> bool {
        match self {
            Ty::Null | Ty::Bool | Ty::Num | Ty::Str => true,
            Ty::List(item) => item.plain(),
            Ty::Dict(Some(fields)) => fields.iter().all(|(_, t)| t.plain()),
            _ => false,
        }
    }

    pub(crate) fn join(&self, other: &Ty) -> Ty {
        match (self, other) {
            (a, b) if a == b => a.clone(),
            (Ty::List(a), Ty::List(b)) => Ty::List(Rc::new(a.join(b))),
            (Ty::Dict(_), Ty::Dict(_)) => Ty::Dict(None),
            _ => Ty::Any,
        }
    }

    pub(crate) fn of(ty: &Type) -> Ty {
        match ty {
            Type::Str | Type::Enum(_) => Ty::Str,
            Type::Num => Ty::Num,
            Type::Bool => Ty::Bool,
            Type::Null => Ty::Null,
            Type::List(item) => Ty::List(Rc::new(Ty::of(item))),
            Type::Record(fields) => {
                Ty::Dict(Some(fields.iter().map(|(n, t)| (n.clone(), Ty::of(t))).collect()))
            }
            Type::Refined(r) => Ty::of(&r.0),
            _ => Ty::Any,
        }
    }
}

/// Number of levels of a value that nothing else refers to: all of them.
pub(crate) const UNIQUE: u8 = 9;

/// Facts about a variable.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    /// The name in the core.
    pub(crate) core: Name,
    pub(crate) ty: Ty,
    pub(crate) taint: Taint,
    /// Levels from the top that no other variable or structure refers to.
    pub(crate) unique: u8,
    /// True if some way here does not bind it.
    pub(crate) maybe_unbound: bool,
    /// The function that it is, if it is one.
    pub(crate) function: Option<usize>,
    /// True for the exception of an `except` clause.
    pub(crate) exception: bool,
}

impl Known {
    fn join(&self, other: &Known) -> Known {
        Known {
            core: self.core.clone(),
            ty: self.ty.join(&other.ty),
            taint: self.taint.join(other.taint),
            unique: self.unique.min(other.unique),
            maybe_unbound: self.maybe_unbound || other.maybe_unbound || self.function != other.function,
            function: if self.function == other.function { self.function } else { None },
            exception: self.exception && other.exception,
        }
    }
}

/// The variables of a function, comprehension or the plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) vars: BTreeMap<String, Known>,
    /// Names that are local, whether they are bound yet or not.
    pub(crate) locals: Rc<[String]>,
    /// The frame around it; `None` for the plan.
    pub(crate) parent: Option<usize>,
    /// Prefix of the names of its variables in the core.
    pub(crate) prefix: Rc<str>,
    /// True for a function, whose outer variables must not be mutated.
    pub(crate) closed: bool,
    /// Variables that one place binds.
    pub(crate) once: Rc<[String]>,
}

pub(crate) type Frames = Vec<Frame>;

/// Joins what is known on two ways.
pub(crate) fn join(a: &Frames, b: &Frames) -> Frames {
    a.iter()
        .zip(b)
        .map(|(x, y)| {
            let mut vars = BTreeMap::new();
            for (name, known) in &x.vars {
                let known = match y.vars.get(name) {
                    Some(other) => known.join(other),
                    None => Known { maybe_unbound: true, ..known.clone() },
                };
                vars.insert(name.clone(), known);
            }
            for (name, known) in &y.vars {
                if !x.vars.contains_key(name) {
                    vars.insert(name.clone(), Known { maybe_unbound: true, ..known.clone() });
                }
            }
            Frame { vars, ..x.clone() }
        })
        .collect()
}

/// Joins another way into those so far.
pub(crate) fn add(to: &mut Option<Frames>, frames: &Frames) {
    *to = Some(match to.take() {
        Some(so_far) => join(&so_far, frames),
        None => frames.clone(),
    });
}
