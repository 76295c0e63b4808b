//! Conditions of `guard` as decidable predicates.

use core_ir::{Comparison, Data, Measure, Num, Pred, Schema};
use diagnostics::Span;
use std::sync::Arc;
use syntax::agent::ast::{BinaryOp, Expr, ExprKind, UnaryOp};

/// Path from the guarded value to a part of it: the names of the fields.
type Path<'a> = Vec<&'a str>;

/// The predicate on the variable `subject` that a condition states.
///
/// # Errors
/// The part of the condition that is not about the subject and constants alone.
pub(super) fn of(subject: &str, e: &Expr) -> Result<Pred, Span> {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
        ExprKind::Paren(inner) => of(subject, inner),
        ExprKind::Bool(true) => Ok(Pred::True),
        ExprKind::Bool(false) => Ok(Pred::Not(Arc::new(Pred::True))),
        ExprKind::Unary(UnaryOp::Not, inner) => Ok(Pred::Not(Arc::new(of(subject, inner)?))),
        ExprKind::Binary(BinaryOp::And, _, a, b) => {
            Ok(Pred::And(Arc::new((of(subject, a)?, of(subject, b)?))))
        }
        ExprKind::Binary(BinaryOp::Or, _, a, b) => Ok(Pred::Or(Arc::new((of(subject, a)?, of(subject, b)?)))),
        ExprKind::Binary(op, _, a, b) => {
            let comparison = comparison(*op).ok_or(e.span)?;
            match (constant(a), constant(b)) {
                (None, Some(c)) => compare(subject, a, comparison, c),
                (Some(c), None) => compare(subject, b, mirrored(comparison), c),
                _ => Err(e.span),
            }
        }
        ExprKind::Call(name, args) if name.text == "contains" => match &args[..] {
            [value, part] => {
                let path = path(subject, value).ok_or(value.span)?;
                match constant(part) {
                    Some(Data::Str(s)) => Ok(at(path, Pred::Contains(s))),
                    _ => Err(part.span),
                }
            }
            _ => Err(e.span),
        },
        ExprKind::Call(name, args) => match (name.text.as_str(), &args[..], e.quantified()) {
            ("matches", [value, pattern], _) => {
                let path = path(subject, value).ok_or(value.span)?;
                match constant(pattern) {
                    Some(Data::Str(s)) => Pred::matching(&s).map(|p| at(path, p)).ok_or(pattern.span),
                    _ => Err(pattern.span),
                }
            }
            ("schema", [value, text], _) => {
                let path = path(subject, value).ok_or(value.span)?;
                Ok(at(path, Pred::Schema(Arc::new(schema(text).map_err(|_| text.span)?))))
            }
            (_, _, Some((every, item, list, condition))) => {
                let path = path(subject, list).ok_or(list.span)?;
                let p = Arc::new(of(&item.text, condition)?);
                Ok(at(path, if every { Pred::Every(p) } else { Pred::Some(p) }))
            }
            _ => Err(e.span),
        },
        // A field that is a Bool.
        ExprKind::Var(_) | ExprKind::Field(..) => {
            let path = path(subject, e).ok_or(e.span)?;
            Ok(at(path, Pred::OneOf([Data::Bool(true)].into())))
        }
        ExprKind::Error => Ok(Pred::True),
        _ => Err(e.span),
    })
}

/// Predicates that only guards may use, with their signatures.
const TESTS: [(&str, &str); 5] = [
    ("matches", "matches(String, \"regular expression\") -> Bool"),
    ("words", "words(String) -> Number"),
    ("schema", "schema(any, \"a JSON Schema\") -> Bool"),
    ("every", "every(name, List[T], condition on the name) -> Bool"),
    ("some", "some(name, List[T], condition on the name) -> Bool"),
];

/// The signature of a test of this name that only guards know.
pub(super) fn test(name: &str) -> Option<&'static str> {
    TESTS.iter().find(|(n, _)| *n == name).map(|(_, signature)| *signature)
}

/// The names of those tests.
pub(super) fn tests() -> impl Iterator<Item = &'static str> {
    TESTS.iter().map(|(n, _)| *n)
}

/// The JSON Schema that stands in a text, or what is wrong with it.
pub(super) fn schema(text: &Expr) -> Result<Schema, String> {
    let Some(Data::Str(text)) = constant(text) else {
        return Err("it must be a string literal".to_string());
    };
    let json = serde_json::from_str(&text).map_err(|e| format!("it is not valid JSON: {e}"))?;
    Schema::new(&Data::from_json(&json).map_err(|e| e.to_string())?)
}

fn comparison(op: BinaryOp) -> Option<Comparison> {
    Some(match op {
        BinaryOp::Eq => Comparison::Eq,
        BinaryOp::Ne => Comparison::Ne,
        BinaryOp::Lt => Comparison::Lt,
        BinaryOp::Le => Comparison::Le,
        BinaryOp::Gt => Comparison::Gt,
        BinaryOp::Ge => Comparison::Ge,
        _ => return None,
    })
}

fn mirrored(c: Comparison) -> Comparison {
    match c {
        Comparison::Lt => Comparison::Gt,
        Comparison::Le => Comparison::Ge,
        Comparison::Gt => Comparison::Lt,
        Comparison::Ge => Comparison::Le,
        Comparison::Eq | Comparison::Ne => c,
    }
}

fn compare(subject: &str, e: &Expr, comparison: Comparison, constant: Data) -> Result<Pred, Span> {
    let mut value = e;
    while let ExprKind::Paren(inner) = &value.kind {
        value = inner;
    }
    if let (ExprKind::Call(name, args), Data::Num(n)) = (&value.kind, &constant)
        && let Some(measure) = match name.text.as_str() {
            "length" => Some(Measure::Length),
            "words" => Some(Measure::Words),
            _ => None,
        }
        && let [measured] = &args[..]
    {
        let path = path(subject, measured).ok_or(measured.span)?;
        return Ok(at(path, Pred::Compare(measure, comparison, n.clone())));
    }
    let path = path(subject, value).ok_or(value.span)?;
    match (comparison, constant) {
        (Comparison::Eq, c) => Ok(at(path, Pred::OneOf([c].into()))),
        (Comparison::Ne, c) => Ok(at(path, Pred::Not(Arc::new(Pred::OneOf([c].into()))))),
        (c, Data::Num(n)) => Ok(at(path, Pred::Compare(Measure::Value, c, n))),
        _ => Err(e.span),
    }
}

/// `p` about the part that the path leads to.
fn at(path: Path<'_>, p: Pred) -> Pred {
    path.into_iter().rev().fold(p, |p, field| Pred::Field(field.into(), Arc::new(p)))
}

/// The fields from the subject to the value of an expression, if it is a part of the subject.
fn path<'a>(subject: &str, e: &'a Expr) -> Option<Path<'a>> {
    let mut fields = Vec::new();
    let mut e = e;
    loop {
        match &e.kind {
            ExprKind::Paren(inner) => e = inner,
            ExprKind::Field(base, name) => {
                fields.push(name.text.as_str());
                e = base;
            }
            ExprKind::Var(x) if x == subject => {
                fields.reverse();
                return Some(fields);
            }
            _ => return None,
        }
    }
}

/// The whole number that a literal represents.
pub(super) fn count(e: &Expr) -> Option<u64> {
    match constant(e)? {
        Data::Num(n) => n.to_usize().map(|n| n as u64),
        _ => None,
    }
}

/// The constant that an expression is.
pub(super) fn constant(e: &Expr) -> Option<Data> {
    match &e.kind {
        ExprKind::Paren(inner) => constant(inner),
        ExprKind::Str(s) => Some(Data::str(s.as_str())),
        ExprKind::Number(n) => n.parse().ok().map(Data::Num),
        ExprKind::Bool(b) => Some(Data::Bool(*b)),
        ExprKind::Null => Some(Data::Null),
        ExprKind::Unary(UnaryOp::Neg, inner) => match constant(inner)? {
            Data::Num(n) => Some(Data::Num(Num::neg(&n))),
            _ => None,
        },
        _ => None,
    }
}
