//! Expressions.

use super::{Function, Lower, Val};
use crate::codes;
use crate::scope::{Taint, Ty, UNIQUE};
use core_ir::{Data, IfSugar, Name, Num, Person, Prim, Term, TermId};
use diagnostics::{Span, clip, nearest};
use ruff_python_ast::{
    BoolOp, CmpOp, ConversionFlag, Expr, FStringPart, InterpolatedStringElement, Number, Operator, UnaryOp,
};
use std::rc::Rc;

/// Builtin functions of plans.
pub(crate) const BUILTINS: &[&str] = &[
    "abs",
    "all",
    "any",
    "bin",
    "bool",
    "chr",
    "dict",
    "divmod",
    "enumerate",
    "float",
    "format",
    "frozenset",
    "hex",
    "int",
    "isinstance",
    "len",
    "list",
    "max",
    "min",
    "oct",
    "ord",
    "pow",
    "print",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "sorted",
    "str",
    "sum",
    "tuple",
    "zip",
];

/// Keywords of Python, and names beside [`BUILTINS`] that plans have without an import.
const WORDS: &str = "False None True and as assert async await break class continue def del elif else except finally \
                     for from global if import in is lambda nonlocal not or pass raise return try while with yield \
                     ask confirm delegate next principals";

/// Returns true for a name that no tool can have.
pub(crate) fn is_reserved(name: &str) -> bool {
    BUILTINS.contains(&name) || WORDS.split_ascii_whitespace().any(|word| word == name)
}

/// The values of principals in a plan.
const PRINCIPALS: &str = "principals";

pub(crate) fn operator(op: Operator) -> Option<&'static str> {
    Some(match op {
        Operator::Add => "add",
        Operator::Sub => "sub",
        Operator::Mult => "mul",
        Operator::Div => "div",
        Operator::FloorDiv => "floordiv",
        Operator::Mod => "mod",
        Operator::Pow => "pow",
        Operator::BitAnd => "and",
        Operator::BitOr => "or",
        Operator::BitXor => "xor",
        _ => return None,
    })
}

impl<'a> Lower<'a> {
    pub(crate) fn expr(&mut self, e: &'a Expr) -> Val {
        stacker::maybe_grow(256 << 10, 2 << 20, || self.expr_inner(e))
    }

    fn expr_inner(&mut self, e: &'a Expr) -> Val {
        let at = self.at(e);
        if self.too_large(at) {
            let none = self.lit(Data::Null, at);
            return self.val(none, Ty::Any, Taint::NONE);
        }
        match e {
            Expr::Name(n) => self.name(n.id.as_str(), at),
            Expr::NoneLiteral(_) => self.constant(Data::Null, Ty::Null, at),
            Expr::BooleanLiteral(b) => self.constant(Data::Bool(b.value), Ty::Bool, at),
            Expr::StringLiteral(s) => self.constant(Data::str(s.value.to_str()), Ty::Str, at),
            Expr::NumberLiteral(n) => self.number_literal(&n.value, at),
            Expr::FString(f) => {
                let mut taint = Taint::NONE;
                let mut parts = Vec::new();
                for part in &f.value {
                    match part {
                        FStringPart::Literal(l) => {
                            let text: &str = &l.value;
                            parts.push(self.lit(Data::str(text), at));
                        }
                        FStringPart::FString(s) => {
                            for element in &s.elements {
                                let (term, t) = self.element(element, at);
                                parts.push(term);
                                taint = taint.join(t);
                            }
                        }
                    }
                }
                let term = self.add(Term::Prim(Prim::Format, parts), at);
                self.val(term, Ty::Str, taint)
            }
            Expr::BinOp(b) => {
                let (x, y) = (self.expr(&b.left), self.expr(&b.right));
                let Some(op) = operator(b.op) else {
                    return self.refuse(
                        at,
                        "this operator is not part of the plan language",
                        "use arithmetic",
                    );
                };
                if matches!((&*b.left, b.op), (Expr::StringLiteral(_) | Expr::FString(_), Operator::Mod)) {
                    return self.refuse(
                        at,
                        "`%` on text is not part of the plan language",
                        "write an f-string",
                    );
                }
                self.binary(op, x, y, at)
            }
            Expr::UnaryOp(u) => {
                let v = self.expr(&u.operand);
                match u.op {
                    UnaryOp::Not => {
                        let term = match v.ty {
                            Ty::Bool => self.add(Term::Prim(Prim::Not, vec![v.term]), at),
                            _ => self.total("not", vec![v.term], at),
                        };
                        self.val(term, Ty::Bool, v.taint)
                    }
                    UnaryOp::USub if v.ty == Ty::Num => {
                        let term = self.add(Term::Prim(Prim::Neg, vec![v.term]), at);
                        self.val(term, Ty::Num, v.taint)
                    }
                    UnaryOp::USub | UnaryOp::UAdd | UnaryOp::Invert => {
                        let op = match u.op {
                            UnaryOp::USub => "neg",
                            UnaryOp::UAdd => "pos",
                            _ => "invert",
                        };
                        let term = self.py(op, vec![v.term], v.taint, at);
                        // A duration has a sign, too.
                        let number = op == "invert" || matches!(v.ty, Ty::Num | Ty::Bool);
                        self.val(term, if number { Ty::Num } else { Ty::Any }, v.taint)
                    }
                }
            }
            Expr::BoolOp(b) => self.logic(b.op, &b.values, at),
            Expr::Compare(c) => self.comparison(&c.left, &c.ops, &c.comparators, at),
            Expr::If(c) => {
                let test = self.expr(&c.test);
                let condition = self.truth(&test, at);
                let pc = self.pc;
                self.pc = pc.join(test.taint);
                let (a, b) = (self.expr(&c.body), self.expr(&c.orelse));
                self.pc = pc;
                let term = self.choose(condition, a.term, b.term, at);
                self.either(term, a, b, test.taint)
            }
            Expr::List(l) if l.elts.iter().any(|e| matches!(e, Expr::Starred(_))) => self.joined(&l.elts, at),
            Expr::List(l) => {
                let (terms, tys, taint, unique) = self.elements(&l.elts);
                let term = self.add(Term::List(terms), at);
                let item = tys.into_iter().reduce(|a, b| a.join(&b)).unwrap_or(Ty::Any);
                Val { unique, ..self.val(term, Ty::List(Rc::new(item)), taint) }
            }
            Expr::Tuple(t) if t.elts.iter().any(|e| matches!(e, Expr::Starred(_))) => {
                let list = self.joined(&t.elts, at);
                let term = self.py("tuple", vec![list.term], list.taint, at);
                Val { unique: 1, ..self.val(term, Ty::Tuple, list.taint) }
            }
            Expr::Tuple(t) => {
                let (terms, _, taint, unique) = self.elements(&t.elts);
                let list = self.add(Term::List(terms), at);
                // A tag of a list keeps the labels of its parts.
                let term = self.add(Term::Tag("tuple".into(), Some(list)), at);
                Val { unique, ..self.val(term, Ty::Tuple, taint) }
            }
            Expr::Set(s) => {
                let (terms, _, taint, unique) = self.elements(&s.elts);
                let list = self.add(Term::List(terms), at);
                let term = self.py("set", vec![list], taint, at);
                Val { unique, ..self.val(term, Ty::Set, taint) }
            }
            Expr::Dict(d) => self.dict(d, at),
            Expr::Subscript(s) => {
                let of = self.expr(&s.value);
                if let Expr::Slice(slice) = &*s.slice {
                    let mut taint = of.taint;
                    let mut args = vec![of.term];
                    for bound in [&slice.lower, &slice.upper, &slice.step] {
                        let term = match bound {
                            Some(e) => {
                                let v = self.expr(e);
                                taint = taint.join(v.taint);
                                v.term
                            }
                            None => self.lit(Data::Null, at),
                        };
                        args.push(term);
                    }
                    self.share_parts(&of);
                    let term = self.py("slice", args, taint, at);
                    let ty = match &of.ty {
                        Ty::Str => Ty::Str,
                        Ty::List(item) => Ty::List(item.clone()),
                        Ty::Tuple => Ty::Tuple,
                        _ => Ty::Any,
                    };
                    let unique = if of.roots.is_empty() { of.unique } else { 1 };
                    return Val { unique, ..self.val(term, ty, taint) };
                }
                self.item(of, &s.slice, at)
            }
            Expr::Attribute(a) => self.attribute(a, at),
            Expr::Call(c) => self.call(c, at),
            Expr::ListComp(c) => self.list_comprehension(&c.elt, &c.generators, at),
            Expr::SetComp(c) => self.set_comprehension(&c.elt, &c.generators, at),
            Expr::DictComp(c) => match &c.key {
                Some(key) => self.dict_comprehension(key, &c.value, &c.generators, at),
                None => self.refuse(at, "`**` in a comprehension", "write `{k: v for …}`"),
            },
            Expr::Generator(c) => self.refuse(
                self.at_range(c.range),
                "a generator is not a value in the plan language",
                "write a list comprehension: `[… for … in …]`",
            ),
            Expr::Lambda(l) => {
                let id = self.functions.len();
                let frame = self.frame;
                self.functions.push(Function::Lambda(l, frame));
                if l.parameters
                    .as_ref()
                    .is_some_and(|p| p.iter_non_variadic_params().any(|p| p.default.is_some()))
                {
                    return self.refuse(at, "a default argument of `lambda`", "write `def`");
                }
                let term = self.lit(Data::Null, at);
                Val { function: Some(id), ..self.val(term, Ty::Any, Taint::NONE) }
            }
            Expr::Named(_) => {
                self.refuse(at, "`:=` is not part of the plan language", "assign in a statement before")
            }
            Expr::Starred(_) => self.refuse(
                at,
                "`*` is not part of the plan language here",
                "name the items, or join lists with `+`",
            ),
            Expr::Await(_) => {
                self.refuse(at, "`await` is not part of the plan language", "call the tool directly")
            }
            Expr::Yield(_) | Expr::YieldFrom(_) => {
                self.refuse(at, "`yield` is not part of the plan language", "return a list")
            }
            _ => self.refuse(
                at,
                "this expression is not part of the plan language",
                "write it with calls and operators",
            ),
        }
    }

    pub(crate) fn constant(&mut self, data: Data, ty: Ty, at: Span) -> Val {
        let term = self.lit(data, at);
        self.val(term, ty, Taint::NONE)
    }

    fn number_literal(&mut self, n: &Number, at: Span) -> Val {
        let written = self.source.text.get(at.start as usize..at.end as usize).unwrap_or("").replace('_', "");
        let number: Option<Num> = match n {
            Number::Complex { .. } => {
                return self.refuse(
                    at,
                    "complex numbers are not part of the plan language",
                    "use real numbers",
                );
            }
            Number::Int(i) => i.as_i64().map(Num::from).or_else(|| written.parse().ok()),
            Number::Float(f) => {
                let text = written.to_ascii_lowercase().replace("e+", "e");
                let text = if text.starts_with('.') { format!("0{text}") } else { text };
                let text = match text.split_once('e') {
                    Some((m, e)) => format!("{}e{e}", m.strip_suffix('.').unwrap_or(m)),
                    None => text.strip_suffix('.').unwrap_or(&text).to_string(),
                };
                text.parse().ok().or_else(|| format!("{f:e}").parse().ok())
            }
        };
        match number {
            Some(n) => self.constant(Data::Num(n), Ty::Num, at),
            None => self.refuse(at, "a number that is too large", "numbers have at most 65,536 bits"),
        }
    }

    /// A variable, function or tool by its name.
    fn name(&mut self, name: &str, at: Span) -> Val {
        if self.lookup(name).is_some() {
            return self.read_variable(name, at);
        }
        let function = if self.classes.contains_key(name) {
            Function::Class(name.into())
        } else if self.tools.contains_key(name) {
            Function::Tool(name.into())
        } else if BUILTINS.contains(&name) {
            Function::Builtin(name.into())
        } else if name == PRINCIPALS && !self.world.people.is_empty() {
            return self.policy_value(principals(&self.world.people), at);
        } else {
            return self.unknown_name(name, at);
        };
        let id = self.functions.len();
        self.functions.push(function);
        let term = self.lit(Data::Null, at);
        Val { function: Some(id), ..self.val(term, Ty::Any, Taint::NONE) }
    }

    /// A value that the policy states.
    fn policy_value(&mut self, data: Data, at: Span) -> Val {
        let ty = stated_type(&data);
        self.constant(data, ty, at)
    }

    /// A part of such a value; `None` for a part of any other value.
    fn stated_part(&mut self, of: &Val, name: &str, at: Span) -> Option<Val> {
        let (Ty::Dict(Some(_)), Term::Lit(Data::Record(fields))) = (&of.ty, self.b.term(of.term)) else {
            return None;
        };
        if let Some((_, part)) = fields.iter().find(|(n, _)| **n == *name) {
            let part = part.clone();
            return Some(self.policy_value(part, at));
        }
        let known: Vec<String> = fields.iter().map(|(n, _)| n.to_string()).collect();
        let help = match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there is: {}", known.join(", ")),
        };
        let what = format!("the principals of the policy have no `{}`", clip(name));
        Some(self.error(codes::UNKNOWN_NAME, at, what, help))
    }

    /// Reads a variable that is known.
    pub(crate) fn read_variable(&mut self, name: &str, at: Span) -> Val {
        let Some((frame, known)) = self.lookup(name) else { return self.unknown_name(name, at) };
        let known = known.clone();
        if known.function.is_some() {
            if known.maybe_unbound {
                return self.refuse(
                    at,
                    format!("`{name}` is a function only on some ways"),
                    "define it before",
                );
            }
            let term = self.lit(Data::Null, at);
            return Val { function: known.function, ..self.val(term, Ty::Any, Taint::NONE) };
        }
        let mut term = self.var(&known.core, at);
        let taint = known.taint;
        if known.maybe_unbound {
            let unbound = self.total("is_unbound", vec![term], at);
            // A variable of this function is unbound; another one is a name that is not there.
            let local = frame == self.frame && self.frames[frame].closed;
            let (class, message) = if local {
                let message =
                    format!("cannot access local variable '{name}' where it is not associated with a value");
                ("UnboundLocalError", message)
            } else {
                ("NameError", format!("name '{name}' is not defined"))
            };
            let failed = self.fail(class, &message, taint, at);
            let again = self.var(&known.core, at);
            term = self.choose(unbound, failed, again, at);
        }
        let roots = if known.ty.scalar() { Vec::new() } else { vec![(frame, name.to_string(), 0)] };
        Val { term, ty: known.ty, taint, unique: UNIQUE, roots, function: None }
    }

    /// One of two values.
    fn either(&mut self, term: TermId, a: Val, b: Val, decided: Taint) -> Val {
        if a.function.is_some() || b.function.is_some() {
            let at = self.b.span(term);
            return self.refuse(
                at,
                "a function that is chosen at run time",
                "call one or the other with `if`",
            );
        }
        let mut roots = a.roots;
        roots.extend(b.roots);
        Val {
            term,
            ty: a.ty.join(&b.ty),
            taint: a.taint.join(b.taint).join(decided),
            unique: a.unique.min(b.unique),
            roots,
            function: None,
        }
    }

    fn logic(&mut self, op: BoolOp, values: &'a [Expr], at: Span) -> Val {
        let Some((first, rest)) = values.split_first() else {
            return self.constant(Data::Null, Ty::Null, at);
        };
        let a = self.expr(first);
        if rest.is_empty() {
            return a;
        }
        let pc = self.pc;
        self.pc = pc.join(a.taint);
        let b = self.logic(op, rest, at);
        self.pc = pc;
        let decided = a.taint;
        if (&a.ty, &b.ty) == (&Ty::Bool, &Ty::Bool) {
            let (then, other, sugar) = match op {
                BoolOp::And => (b.term, self.lit(Data::Bool(false), at), IfSugar::And),
                BoolOp::Or => (self.lit(Data::Bool(true), at), b.term, IfSugar::Or),
            };
            let term = self.add(Term::If(a.term, then, other, sugar), at);
            return self.val(term, Ty::Bool, decided.join(b.taint));
        }
        let name = self.fresh("left");
        let left = self.var(&name, at);
        let test = Val { term: left, ..a.clone() };
        let holds = self.truth(&test, at);
        let again = self.var(&name, at);
        let chosen = match op {
            BoolOp::And => self.choose(holds, b.term, again, at),
            BoolOp::Or => self.choose(holds, again, b.term, at),
        };
        let term = self.b.let_in(vec![(name, a.term)], chosen, at);
        self.either(term, a, b, decided)
    }

    fn comparison(&mut self, left: &'a Expr, ops: &[CmpOp], others: &'a [Expr], at: Span) -> Val {
        let a = self.expr(left);
        self.compare_chain(a, ops, others, at)
    }

    fn compare_chain(&mut self, a: Val, ops: &[CmpOp], others: &'a [Expr], at: Span) -> Val {
        let (Some((op, more)), Some((other, others))) = (ops.split_first(), others.split_first()) else {
            return a;
        };
        let b = self.expr(other);
        if more.is_empty() {
            return self.compare(a, *op, b, at);
        }
        // The value in the middle is evaluated once.
        let (first, middle) = (self.fresh("left"), self.fresh("middle"));
        let bindings = vec![(first.clone(), a.term), (middle.clone(), b.term)];
        let (x, y) = (self.var(&first, at), self.var(&middle, at));
        let (x, y) = (Val { term: x, ..a }, Val { term: y, ..b.clone() });
        let holds = self.compare(x, *op, y, at);
        let pc = self.pc;
        self.pc = pc.join(holds.taint);
        let again = self.var(&middle, at);
        let rest = self.compare_chain(Val { term: again, ..b }, more, others, at);
        self.pc = pc;
        let no = self.lit(Data::Bool(false), at);
        let both = self.add(Term::If(holds.term, rest.term, no, IfSugar::And), at);
        let term = self.b.let_in(bindings, both, at);
        self.val(term, Ty::Bool, holds.taint.join(rest.taint))
    }

    fn compare(&mut self, a: Val, op: CmpOp, b: Val, at: Span) -> Val {
        let taint = a.taint.join(b.taint);
        if a.function.is_some() || b.function.is_some() {
            return self.refuse(at, "a comparison of functions", "compare their results");
        }
        let numbers = matches!((&a.ty, &b.ty), (Ty::Num, Ty::Num) | (Ty::Str, Ty::Str));
        let prim = match op {
            CmpOp::Eq => Prim::Eq,
            CmpOp::NotEq => Prim::Ne,
            CmpOp::Lt => Prim::Lt,
            CmpOp::LtE => Prim::Le,
            CmpOp::Gt => Prim::Gt,
            CmpOp::GtE => Prim::Ge,
            CmpOp::In | CmpOp::NotIn => {
                let held = self.py("in", vec![a.term, b.term], taint, at);
                let term =
                    if op == CmpOp::In { held } else { self.add(Term::Prim(Prim::Not, vec![held]), at) };
                return self.val(term, Ty::Bool, taint);
            }
            CmpOp::Is | CmpOp::IsNot => {
                // There is one object for each member of an enumeration.
                let member = |t: TermId| matches!(self.b.term(t), Term::Lit(Data::Record(f)) if f.iter().any(|(n, _)| &**n == core_ir::py::CLASS));
                if member(a.term) || member(b.term) {
                    let of = if op == CmpOp::Is { "eq" } else { "ne" };
                    // A string that equals a member of a `StrEnum` is another object.
                    if a.ty == Ty::Atom && b.ty == Ty::Atom {
                        let term = self.total(of, vec![a.term, b.term], at);
                        return self.val(term, Ty::Bool, taint);
                    }
                }
                let singleton = |v: &Val| matches!(v.ty, Ty::Null | Ty::Bool);
                if !singleton(&a) && !singleton(&b) {
                    return self.refuse(
                        at,
                        "`is` compares identities, which plans do not have",
                        "write `==`",
                    );
                }
                // `None`, `True` and `False` are the only values of their kinds; `1 is True` is false.
                let term = self.add(Term::Prim(Prim::Eq, vec![a.term, b.term]), at);
                let term =
                    if op == CmpOp::Is { term } else { self.add(Term::Prim(Prim::Not, vec![term]), at) };
                return self.val(term, Ty::Bool, taint);
            }
        };
        if numbers {
            let term = self.add(Term::Prim(prim, vec![a.term, b.term]), at);
            return self.val(term, Ty::Bool, taint);
        }
        let term = match op {
            CmpOp::Eq => self.total("eq", vec![a.term, b.term], at),
            CmpOp::NotEq => self.total("ne", vec![a.term, b.term], at),
            _ => self.py(prim.name(), vec![a.term, b.term], taint, at),
        };
        self.val(term, Ty::Bool, taint)
    }

    pub(crate) fn binary(&mut self, op: &str, a: Val, b: Val, at: Span) -> Val {
        if a.function.is_some() || b.function.is_some() {
            return self.refuse(at, "an operator on a function", "call the function");
        }
        let taint = a.taint.join(b.taint);
        let prim = match (op, &a.ty, &b.ty) {
            ("add", Ty::Num, Ty::Num) => Some((Prim::Add, Ty::Num)),
            ("sub", Ty::Num, Ty::Num) => Some((Prim::Sub, Ty::Num)),
            ("mul", Ty::Num, Ty::Num) => Some((Prim::Mul, Ty::Num)),
            ("add", Ty::Str, Ty::Str) => Some((Prim::Add, Ty::Str)),
            _ => None,
        };
        if let Some((prim, ty)) = prim {
            // A number or text may become too large.
            self.may_fail(taint);
            let term = self.add(Term::Prim(prim, vec![a.term, b.term]), at);
            return self.val(term, ty, taint);
        }
        let ty = match (op, &a.ty, &b.ty) {
            (_, Ty::Num, Ty::Num) => Ty::Num,
            ("add", Ty::List(x), Ty::List(y)) => Ty::List(Rc::new(x.join(y))),
            ("add", Ty::Tuple, Ty::Tuple) => Ty::Tuple,
            ("mul", Ty::Str, _) | ("mul", _, Ty::Str) => Ty::Str,
            _ => Ty::Any,
        };
        self.share_parts(&a);
        self.share_parts(&b);
        // A list that is repeated has each part several times.
        let unique = match op {
            "mul" if has_scalars(&a.ty) || has_scalars(&b.ty) => UNIQUE,
            "mul" => 1,
            _ if a.roots.is_empty() && b.roots.is_empty() => a.unique.min(b.unique),
            _ => 1,
        };
        let term = self.py(op, vec![a.term, b.term], taint, at);
        Val { unique, ..self.val(term, ty, taint) }
    }

    /// Notes that the parts of a value become parts of another one, too.
    pub(crate) fn share_parts(&mut self, v: &Val) {
        if v.ty.scalar() || has_scalars(&v.ty) {
            return;
        }
        for (frame, name, depth) in &v.roots {
            if let Some(known) = self.frames[*frame].vars.get_mut(name) {
                known.unique = known.unique.min(depth.saturating_add(1));
            }
        }
    }

    fn elements(&mut self, elts: &'a [Expr]) -> (Vec<TermId>, Vec<Ty>, Taint, u8) {
        let (mut terms, mut tys, mut taint, mut unique) = (Vec::new(), Vec::new(), Taint::NONE, UNIQUE);
        for e in elts {
            let v = self.argument(e);
            taint = taint.join(v.taint);
            unique = unique.min(self.store(&v).saturating_add(1));
            terms.push(v.term);
            tys.push(v.ty);
        }
        (terms, tys, taint, unique.min(UNIQUE))
    }

    fn dict(&mut self, d: &'a ruff_python_ast::ExprDict, at: Span) -> Val {
        let literal = |e: &Option<Expr>| match e {
            Some(Expr::StringLiteral(s)) => Some(s.value.to_str().to_string()),
            _ => None,
        };
        let keys: Option<Vec<String>> = d.items.iter().map(|i| literal(&i.key)).collect();
        let (mut taint, mut unique) = (Taint::NONE, UNIQUE);
        if let Some(keys) = keys.filter(|k| {
            let mut seen = std::collections::BTreeSet::new();
            k.iter().all(|k| seen.insert(k.clone()))
        }) {
            let (mut fields, mut tys) = (Vec::new(), Vec::new());
            for (key, item) in keys.into_iter().zip(&d.items) {
                let v = self.argument(&item.value);
                taint = taint.join(v.taint);
                unique = unique.min(self.store(&v).saturating_add(1));
                fields.push((Name::from(key.as_str()), v.term));
                tys.push((Name::from(key), v.ty));
            }
            let term = self.add(Term::Record(fields), at);
            let ty = Ty::Dict(Some(tys.into()));
            return Val { unique: unique.min(UNIQUE), ..self.val(term, ty, taint) };
        }
        // Keys and values in turn. A `**` comes after the entries before it are put in.
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        let mut pending: Vec<(Name, Name)> = Vec::new();
        let first = self.add(Term::Record(Vec::new()), at);
        let mut so_far = self.fresh("dict");
        bindings.push((so_far.clone(), first));
        let flush = |l: &mut Self,
                     pending: &mut Vec<(Name, Name)>,
                     so_far: &mut Name,
                     bindings: &mut Vec<(Name, TermId)>,
                     taint: Taint| {
            for (key, value) in pending.drain(..) {
                let args = vec![l.var(so_far, at), l.var(&key, at), l.var(&value, at)];
                let term = l.py("put", args, taint, at);
                *so_far = l.fresh("dict");
                bindings.push((so_far.clone(), term));
            }
        };
        for item in &d.items {
            let key = match &item.key {
                Some(key) => {
                    let v = self.argument(key);
                    taint = taint.join(v.taint);
                    let name = self.fresh("key");
                    bindings.push((name.clone(), v.term));
                    Some(name)
                }
                None => {
                    flush(self, &mut pending, &mut so_far, &mut bindings, taint);
                    None
                }
            };
            let v = self.argument(&item.value);
            taint = taint.join(v.taint);
            if let Some(key) = key {
                unique = unique.min(self.store(&v).saturating_add(1));
                let name = self.fresh("value");
                bindings.push((name.clone(), v.term));
                pending.push((key, name));
            } else {
                self.share_parts(&v);
                unique = unique.min(if v.roots.is_empty() { v.unique } else { 1 });
                let before = self.var(&so_far, at);
                let term = self.py("or", vec![before, v.term], taint, at);
                so_far = self.fresh("dict");
                bindings.push((so_far.clone(), term));
            }
        }
        flush(self, &mut pending, &mut so_far, &mut bindings, taint);
        let acc = self.var(&so_far, at);
        let term = self.b.let_in(bindings, acc, at);
        Val { unique: unique.min(UNIQUE), ..self.val(term, Ty::Dict(None), taint) }
    }

    /// `of[key]`.
    fn item(&mut self, of: Val, key: &'a Expr, at: Span) -> Val {
        if let Some(members) = self.members(&of) {
            let members = self.lit(members, at);
            let key = self.argument(key);
            let term = self.py("member_named", vec![members, key.term], key.taint, at);
            return self.val(term, Ty::Atom, key.taint);
        }
        if let Expr::StringLiteral(s) = key
            && let Some(part) = self.stated_part(&of, s.value.to_str(), at)
        {
            return part;
        }
        let roots: Vec<_> = of.roots.iter().map(|(f, n, d)| (*f, n.clone(), d.saturating_add(1))).collect();
        let unique = if of.unique < UNIQUE { of.unique.saturating_sub(1) } else { UNIQUE };
        // A field that the record has for certain: its own label remains.
        if let (Ty::Dict(Some(fields)), Expr::StringLiteral(s)) = (&of.ty, key)
            && let Some((name, ty)) = fields.iter().find(|(n, _)| **n == *s.value.to_str())
        {
            let (name, ty) = (name.clone(), ty.clone());
            let term = self.add(Term::Field(of.term, name), at);
            return Val { term, ty, taint: of.taint, unique, roots, function: None };
        }
        let key = self.expr(key);
        let taint = of.taint.join(key.taint);
        let term = self.py("index", vec![of.term, key.term], taint, at);
        let ty = match &of.ty {
            Ty::Str => Ty::Str,
            Ty::List(item) => (**item).clone(),
            _ => Ty::Any,
        };
        Val { term, ty, taint, unique, roots, function: None }
    }

    fn attribute(&mut self, a: &'a ruff_python_ast::ExprAttribute, at: Span) -> Val {
        let name = a.attr.as_str();
        // At run time nothing says what a class of the plan extends.
        if name == "args"
            && self.extends_key_error()
            && matches!(&*a.value, Expr::Name(n) if self.lookup(n.id.as_str()).is_some_and(|(_, k)| k.exception))
        {
            return self.refuse(at, "`args` where a class extends `KeyError`", "use `str(e)`");
        }
        if let Some(full) = self.module_path(&Expr::Attribute(a.clone())) {
            return match full.as_str() {
                "math.pi" => self.constant(Data::Num(number("3.141592653589793")), Ty::Num, at),
                "math.e" => self.constant(Data::Num(number("2.718281828459045")), Ty::Num, at),
                "datetime.timezone.utc" | "datetime.UTC" => {
                    let utc = Data::Tag("timezone".into(), Data::Num(Num::ZERO).into());
                    self.constant(utc, Ty::Atom, at)
                }
                "math.inf" | "math.nan" => self.refuse(
                    at,
                    "infinity and NaN are not part of the plan language",
                    "begin with `None`, or use `min(…)` and `max(…)` of a list",
                ),
                _ => self.refuse(at, format!("`{full}` as a value"), "call the function"),
            };
        }
        if name.starts_with("__") {
            return self.refuse(
                at,
                "names with `__` are not part of the plan language",
                "use functions and methods",
            );
        }
        if let Expr::Name(n) = &*a.value
            && let Some(class) = self.class_named(n.id.as_str())
        {
            if let Some(member) = class.member(name).cloned() {
                return self.constant(member, Ty::Atom, at);
            }
            let members: Vec<String> =
                class.members.iter().filter_map(|m| Some(m.field("name")?.as_str()?.to_string())).collect();
            let help = match nearest(name, members.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None if members.is_empty() => "make an object of the class and read its field".into(),
                None => format!("members: {}", members.join(", ")),
            };
            return self.error(
                codes::UNKNOWN_NAME,
                at,
                format!("`{}` has no member `{name}`", n.id.as_str()),
                help,
            );
        }
        let of = self.expr(&a.value);
        if let Some(part) = self.stated_part(&of, name, at) {
            return part;
        }
        if let Ty::Dict(Some(fields)) | Ty::Object(_, fields) = &of.ty
            && let Some((field, ty)) = fields.iter().find(|(n, _)| **n == *name)
        {
            let (field, ty) = (field.clone(), ty.clone());
            let roots = of.roots.iter().map(|(f, n, d)| (*f, n.clone(), d.saturating_add(1))).collect();
            let term = self.add(Term::Field(of.term, field), at);
            let unique = if of.unique < UNIQUE { of.unique.saturating_sub(1) } else { UNIQUE };
            return Val { term, ty, taint: of.taint, unique, roots, function: None };
        }
        let key = self.lit(Data::str(name), at);
        let roots = of.roots.iter().map(|(f, n, d)| (*f, n.clone(), d.saturating_add(1))).collect();
        let unique = if of.unique < UNIQUE { of.unique.saturating_sub(1) } else { UNIQUE };
        let term = self.py("attribute", vec![of.term, key], of.taint, at);
        Val { term, ty: Ty::Any, taint: of.taint, unique, roots, function: None }
    }

    /// `math.floor`: the full name of a member of an imported module.
    pub(crate) fn module_path(&self, e: &Expr) -> Option<String> {
        match e {
            Expr::Name(n) if self.lookup(n.id.as_str()).is_none() => self.imports.get(n.id.as_str()).cloned(),
            Expr::Attribute(a) => Some(format!("{}.{}", self.module_path(&a.value)?, a.attr)),
            _ => None,
        }
    }

    fn element(&mut self, element: &'a InterpolatedStringElement, at: Span) -> (TermId, Taint) {
        match element {
            InterpolatedStringElement::Literal(l) => {
                let text: &str = &l.value;
                (self.lit(Data::str(text), at), Taint::NONE)
            }
            InterpolatedStringElement::Interpolation(i) => {
                let v = self.argument(&i.expression);
                let mut taint = v.taint;
                let mut value = v;
                // `{x=}` shows `x=` and the representation.
                let debug = i.debug_text.as_ref().map(|d| {
                    let inner = self.at(&*i.expression);
                    let written =
                        self.source.text.get(inner.start as usize..inner.end as usize).unwrap_or("");
                    format!("{}{written}{}", d.leading(), d.trailing())
                });
                let repr = i.conversion == ConversionFlag::Repr
                    || debug.is_some() && i.conversion == ConversionFlag::None && i.format_spec.is_none();
                match i.conversion {
                    ConversionFlag::Ascii => {
                        let v = self.refuse(at, "`!a` is not part of the plan language", "write `!r`");
                        return (v.term, taint);
                    }
                    _ if repr => {
                        let term = self.call_builtin_total("b.repr", value.term, at);
                        value = self.val(term, Ty::Str, taint);
                    }
                    ConversionFlag::Str => {
                        let term = self.text(value, at);
                        value = self.val(term, Ty::Str, taint);
                    }
                    _ => {}
                }
                let mut term = match &i.format_spec {
                    None => self.text(value, at),
                    Some(spec) => {
                        let mut parts = Vec::new();
                        for e in &spec.elements {
                            let (term, t) = self.element(e, at);
                            parts.push(term);
                            taint = taint.join(t);
                        }
                        let spec = self.add(Term::Prim(Prim::Format, parts), at);
                        self.py("format", vec![value.term, spec], taint, at)
                    }
                };
                if let Some(text) = debug {
                    let text = self.lit(Data::str(text), at);
                    term = self.add(Term::Prim(Prim::Format, vec![text, term]), at);
                }
                (term, taint)
            }
        }
    }

    fn call_builtin_total(&mut self, op: &str, arg: TermId, at: Span) -> TermId {
        let args = self.add(Term::List(vec![arg]), at);
        let named = self.add(Term::Record(Vec::new()), at);
        self.total(op, vec![args, named], at)
    }

    /// `str(v)`.
    pub(crate) fn text(&mut self, v: Val, at: Span) -> TermId {
        if v.ty == Ty::Str {
            return v.term;
        }
        self.call_builtin_total("b.str", v.term, at)
    }

    /// An expression whose value must be data.
    pub(crate) fn argument(&mut self, e: &'a Expr) -> Val {
        let v = self.expr(e);
        let v = self.enumerated(v, e);
        if v.function.is_some() {
            let at = self.at(e);
            return self.refuse(at, "a function as a value", "call it, or pass it as `key=`");
        }
        v
    }

    /// The items that a loop visits, as a list.
    pub(crate) fn items_of(&mut self, v: Val, at: Span) -> Val {
        if let Some(members) = self.members(&v) {
            let term = self.lit(members, at);
            return self.val(term, Ty::List(Rc::new(Ty::Atom)), Taint::NONE);
        }
        if v.function.is_some() {
            return self.refuse(at, "a loop over a function", "call it");
        }
        match (&v.ty, self.b.term(v.term)) {
            (Ty::List(_), _) => v,
            // A tuple that is written has its items at once.
            (Ty::Tuple, Term::Tag(tag, Some(list))) if &**tag == "tuple" => {
                let unique = if v.roots.is_empty() { v.unique } else { 1 };
                Val { term: *list, ty: Ty::List(Rc::new(Ty::Any)), unique, ..v }
            }
            _ => {
                let ty = if v.ty == Ty::Str { Ty::Str } else { Ty::Any };
                let term = self.py("iter", vec![v.term], v.taint, at);
                let unique = if v.roots.is_empty() { v.unique } else { 1 };
                Val {
                    term,
                    ty: Ty::List(Rc::new(ty)),
                    taint: v.taint,
                    unique,
                    roots: v.roots,
                    function: None,
                }
            }
        }
    }
}

/// The values of principals as a dictionary: by name, and by key if they have some. Several values under one
/// key are a list.
fn principals(people: &[Person]) -> Data {
    let texts = |of: &mut dyn Iterator<Item = &Person>| {
        let texts: Vec<Data> = of.map(|p| Data::str(&*p.value)).collect();
        if let [one] = &texts[..] { one.clone() } else { Data::list(texts) }
    };
    let distinct = |mut names: Vec<Name>| {
        names.sort();
        names.dedup();
        names
    };
    let of_name = |name: Name| {
        let of = || people.iter().filter(|p| p.name == name);
        let keys = distinct(of().filter_map(|p| p.key.clone()).collect());
        let values = match keys.is_empty() {
            true => texts(&mut of()),
            false => Data::record(keys.into_iter().map(|key| {
                let texts = texts(&mut of().filter(|p| p.key.as_ref() == Some(&key)));
                (key, texts)
            })),
        };
        (name, values)
    };
    Data::record(distinct(people.iter().map(|p| p.name.clone()).collect()).into_iter().map(of_name))
}

fn stated_type(data: &Data) -> Ty {
    match data {
        Data::Str(_) => Ty::Str,
        Data::List(_) => Ty::List(Rc::new(Ty::Str)),
        Data::Record(fields) => {
            Ty::Dict(Some(fields.iter().map(|(n, v)| (n.clone(), stated_type(v))).collect()))
        }
        _ => Ty::Any,
    }
}

/// Returns true for lists whose items cannot be mutated.
pub(crate) fn has_scalars(ty: &Ty) -> bool {
    matches!(ty, Ty::List(item) if item.scalar())
}

fn number(text: &str) -> Num {
    text.parse().unwrap_or(Num::ZERO)
}
