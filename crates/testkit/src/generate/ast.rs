//! The trees that programs are generated as.

use core_ir::{Bound, Catches, Data, Num, Pred, Prim, Role, Type};
use std::fmt;

/// A term: a former and its subterms. Where there are too few of them, `null` represents the rest.
#[derive(Clone, PartialEq)]
pub struct Ast {
    /// The former.
    pub op: Op,
    /// Its subterms, in the order of `core_ir::Term`.
    pub kids: Vec<Ast>,
}

/// A former with what it needs besides subterms. Small numbers are names, tags, variables (counted from the
/// innermost), keys, tools, models or stores; each is taken modulo how many there are.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // Each is the former of `core_ir::Term` of its name.
pub enum Op {
    Var(u8),
    Global(u8),
    Lit(Data),
    /// The fields' names.
    Record(Vec<u8>),
    /// The tool, and the fields' names. They are names of parameters mostly.
    Args(u8, Vec<u8>),
    List,
    Lam,
    App,
    Let,
    Field(u8),
    Index,
    With(u8),
    Prim(Prim),
    Pair,
    Fst,
    Snd,
    Tag(u8),
    If,
    And,
    Or,
    /// The branches, each with whether it binds the payload, and whether there is a `_`.
    Case(Vec<(u8, bool)>, bool),
    Classify(Vec<u8>),
    Fix(Bound),
    Guard(Pred, u32),
    Mem(u8),
    Recall(u8),
    Remember(u8),
    Choose(Num),
    Llm(u8),
    Tool(u8),
    Send(Role),
    RecvCode,
    RecvData(u8),
    Ask,
    Fork,
    Fresh,
    Clear,
    Relabel,
    Test,
    Assert,
    Endorse,
    Declassify,
    /// Label, body, handler.
    Try(Catches),
    Fail,
    Within(Num),
    Par(Option<u32>),
    Each(Option<u32>),
    Check(Type),
    Unknown,
    Compose,
    ParPair,
}

impl Ast {
    /// A tree.
    pub fn new(op: Op, kids: impl IntoIterator<Item = Ast>) -> Ast {
        Ast { op, kids: kids.into_iter().collect() }
    }

    /// A literal.
    pub fn lit(data: impl Into<Data>) -> Ast {
        Ast::new(Op::Lit(data.into()), [])
    }

    /// A variable.
    pub fn var(index: u8) -> Ast {
        Ast::new(Op::Var(index), [])
    }

    /// Returns the number of formers.
    pub fn size(&self) -> usize {
        1 + self.kids.iter().map(Ast::size).sum::<usize>()
    }

    /// Returns true if some former in it is such.
    pub fn any(&self, such: &dyn Fn(&Op) -> bool) -> bool {
        such(&self.op) || self.kids.iter().any(|k| k.any(such))
    }

    /// The candidate of a number among the trees that are one step smaller. If there are fewer, `n` is
    /// decreased by how many there are.
    pub fn smaller(&self, n: &mut usize) -> Option<Ast> {
        let mut here = |candidate: &dyn Fn() -> Ast| -> Option<Ast> {
            match n.checked_sub(1) {
                Some(less) => {
                    *n = less;
                    None
                }
                None => Some(candidate()),
            }
        };
        // Nothing at all, or a part instead of the whole: the largest steps come first.
        let null = Ast::lit(Data::Null);
        if !self.kids.is_empty() || !matches!(self.op, Op::Lit(Data::Null)) {
            if let Some(a) = here(&|| null.clone()) {
                return Some(a);
            }
            for kid in &self.kids {
                if let Some(a) = here(&|| kid.clone()) {
                    return Some(a);
                }
            }
        }
        // Fewer parts.
        if matches!(
            self.op,
            Op::List | Op::Prim(Prim::Format) | Op::Par(_) | Op::Compose | Op::Record(_) | Op::Args(..)
        ) {
            for i in 0..self.kids.len() {
                if let Some(a) = here(&|| {
                    let mut a = self.clone();
                    a.kids.remove(i);
                    if let Op::Record(names) | Op::Args(_, names) = &mut a.op
                        && i < names.len()
                    {
                        names.remove(i);
                    }
                    a
                }) {
                    return Some(a);
                }
            }
        }
        // A simpler former.
        for op in self.op.simpler() {
            if let Some(a) = here(&|| Ast { op: op.clone(), kids: self.kids.clone() }) {
                return Some(a);
            }
        }
        // A smaller part.
        for (i, kid) in self.kids.iter().enumerate() {
            if let Some(k) = kid.smaller(n) {
                let mut a = self.clone();
                a.kids[i] = k;
                return Some(a);
            }
        }
        None
    }
}

impl Op {
    /// The same former with simpler attributes; each chain of them ends.
    fn simpler(&self) -> Vec<Op> {
        let zero = Data::Num(Num::ZERO);
        match self {
            Op::Var(n) if *n > 0 => vec![Op::Var(n - 1)],
            Op::Lit(Data::List(items)) => (0..items.len())
                .map(|i| {
                    let mut rest = items.to_vec();
                    rest.remove(i);
                    Op::Lit(Data::list(rest))
                })
                .collect(),
            Op::Lit(d) if *d != Data::Null && *d != zero => vec![Op::Lit(zero)],
            Op::Fix(Bound::Infinite) => vec![Op::Fix(Bound::Finite(2))],
            Op::Fix(Bound::Finite(n)) if *n > 0 => vec![Op::Fix(Bound::Finite(n - 1))],
            Op::Guard(p, n) if *n > 0 => vec![Op::Guard(p.clone(), n - 1)],
            Op::Case(tags, _) if !tags.is_empty() => vec![Op::Case(tags[1..].to_vec(), true)],
            Op::Try(Catches::NotTimeout) => vec![Op::Try(Catches::All)],
            Op::Par(Some(_)) => vec![Op::Par(None)],
            Op::Each(Some(_)) => vec![Op::Each(None)],
            Op::Check(t) if *t != Type::Dyn => vec![Op::Check(Type::Dyn)],
            _ => Vec::new(),
        }
    }
}

/// As an S-expression, short enough to be read in a failed test.
impl fmt::Debug for Ast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = match &self.op {
            Op::Lit(d) => return write!(f, "{}", d.to_json()),
            Op::Var(n) => return write!(f, "v{n}"),
            Op::Prim(p) => p.name().to_string(),
            Op::Check(t) => format!("Check[{t}]"),
            Op::Guard(p, n) => format!("Guard[{p}; {n}]"),
            op => format!("{op:?}"),
        };
        if self.kids.is_empty() {
            return f.write_str(&head);
        }
        write!(f, "({head}")?;
        for kid in &self.kids {
            write!(f, " {kid:?}")?;
        }
        f.write_str(")")
    }
}
