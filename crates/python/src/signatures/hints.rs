//! Annotations as types.

use super::bindings::Binding;
use super::{Hint, MAX_HOPS, Reason, SignatureReader};
use diagnostics::{Span, clip};
use ruff_python_ast::{Expr, Number, Operator, StmtClassDef, UnaryOp};
use ruff_text_size::Ranged;

/// Levels of an annotation.
const MAX_DEPTH: usize = 40;
/// Bytes of an annotation in quotes.
const MAX_QUOTED: usize = 2_000;
/// Parts of a `Union` or `Literal`.
const MAX_PARTS: usize = 1_000;

/// Place of an annotation.
#[derive(Clone, Copy)]
struct Context {
    module: usize,
    /// Place of the annotation, if its text stands in quotes.
    quoted: Option<Span>,
    depth: usize,
}

impl Context {
    fn inner(self) -> Context {
        Context { depth: self.depth + 1, ..self }
    }
}

/// Meaning of a name in an annotation.
pub(super) enum Referent<'a> {
    /// A name of another package, qualified.
    External(String),
    Class(usize, &'a StmtClassDef),
    /// A name for this expression of a module.
    Alias(usize, &'a Expr),
    /// A module of the project.
    Module(usize),
    Unknown,
}

const UNCERTAIN: &str = "state a type that Entail reads: `str`, `int`, `float`, `bool`, `list[…]`, \
                         `dict[str, …]`, `Optional[…]`, `Literal[…]`, an `Enum`, a `TypedDict`, a dataclass \
                         or a model of Pydantic";

impl<'a> SignatureReader<'a> {
    /// The type that an annotation of a module states.
    pub(super) fn hint(&mut self, module: usize, annotation: &Expr) -> Hint {
        self.hint_within(annotation, Context { module, quoted: None, depth: 0 })
    }

    fn other(&self, expr: &Expr, at: Context, why: String) -> Hint {
        let place = at.quoted.unwrap_or_else(|| self.span(at.module, expr.range()));
        Hint::Other(Reason { why, help: UNCERTAIN.into(), at: place })
    }

    /// The text of an annotation.
    fn shown(&self, expr: &Expr, at: Context) -> String {
        let span = at.quoted.unwrap_or_else(|| self.span(at.module, expr.range()));
        let text =
            self.sources.get(at.module).and_then(|s| s.text.get(span.start as usize..span.end as usize));
        clip(text.unwrap_or("it")).to_string()
    }

    fn hint_within(&mut self, expr: &Expr, at: Context) -> Hint {
        if at.depth > MAX_DEPTH {
            return self.other(expr, at, "its type is nested too deeply".into());
        }
        match expr {
            Expr::NoneLiteral(_) => Hint::None,
            Expr::StringLiteral(text) if at.quoted.is_none() => {
                let text = text.value.to_str();
                let parsed =
                    (text.len() <= MAX_QUOTED).then(|| ruff_python_parser::parse_expression(text.trim()));
                match parsed {
                    Some(Ok(parsed)) => {
                        let quoted = Some(self.span(at.module, expr.range()));
                        self.hint_within(parsed.expr(), Context { quoted, ..at.inner() })
                    }
                    _ => self.other(expr, at, format!("the type {} can't be read", self.shown(expr, at))),
                }
            }
            Expr::BinOp(op) if op.op == Operator::BitOr => {
                let mut parts = Vec::new();
                let mut rest = expr;
                while let Expr::BinOp(op) = rest
                    && op.op == Operator::BitOr
                    && parts.len() < MAX_PARTS
                {
                    parts.push(&*op.right);
                    rest = &op.left;
                }
                parts.push(rest);
                parts.reverse();
                self.union(expr, &parts, at)
            }
            Expr::Name(_) | Expr::Attribute(_) => match self.referent(at.module, expr, 0) {
                Referent::External(name) => self.plain(expr, &name, at),
                Referent::Class(module, class) => self.class(expr, module, class, at),
                Referent::Alias(module, value) => {
                    self.hint_within(value, Context { module, quoted: None, depth: at.depth + 1 })
                }
                Referent::Module(_) | Referent::Unknown => {
                    self.other(expr, at, format!("the type `{}` is not known", self.shown(expr, at)))
                }
            },
            Expr::Subscript(subscript) => {
                let args = match &*subscript.slice {
                    Expr::Tuple(tuple) => tuple.elts.iter().collect(),
                    one => vec![one],
                };
                match self.referent(at.module, &subscript.value, 0) {
                    Referent::External(name) => self.generic(expr, &name, &args, at),
                    _ => self.other(expr, at, format!("the type `{}` is not known", self.shown(expr, at))),
                }
            }
            // `NewType("Id", str)` is what it is made of.
            Expr::Call(call)
                if matches!(self.referent(at.module, &call.func, 0),
                    Referent::External(name) if is_typing(&name, "NewType"))
                    && call.arguments.args.len() == 2 =>
            {
                self.hint_within(&call.arguments.args[1], at.inner())
            }
            _ => self.other(expr, at, format!("`{}` is no type that Entail reads", self.shown(expr, at))),
        }
    }

    /// A type without arguments.
    fn plain(&self, expr: &Expr, name: &str, at: Context) -> Hint {
        let list = || Hint::List(Box::new(Hint::Any));
        match name {
            "builtins.str" | "typing.Text" => Hint::Str,
            "builtins.int" => Hint::Int,
            "builtins.float" => Hint::Float,
            "builtins.bool" => Hint::Bool,
            "builtins.object" => Hint::Any,
            "datetime.date" => Hint::Date,
            "builtins.dict" => Hint::Dict(Box::new(Hint::Str), Box::new(Hint::Any)),
            "builtins.list" | "builtins.set" | "builtins.frozenset" | "builtins.tuple" => list(),
            _ if is_typing(name, "Any") => Hint::Any,
            _ if ["Dict", "Mapping", "MutableMapping"].iter().any(|n| is_typing(name, n)) => {
                Hint::Dict(Box::new(Hint::Str), Box::new(Hint::Any))
            }
            _ if LISTS.iter().any(|n| is_typing(name, n)) || is_typing(name, "Tuple") => list(),
            _ if is_typing(name, "Iterable") => Hint::Iterable(Box::new(Hint::Any)),
            _ => self.other(expr, at, format!("the type `{}` is not known", self.shown(expr, at))),
        }
    }

    /// A type with arguments.
    fn generic(&mut self, expr: &Expr, name: &str, args: &[&Expr], at: Context) -> Hint {
        let is = |names: &[&str]| names.iter().any(|n| is_typing(name, n));
        let is_list = matches!(name, "builtins.list" | "builtins.set" | "builtins.frozenset");
        match args {
            [one] if is_list || is(LISTS) => Hint::List(Box::new(self.hint_within(one, at.inner()))),
            [one] if is(&["Iterable"]) => Hint::Iterable(Box::new(self.hint_within(one, at.inner()))),
            [one, Expr::EllipsisLiteral(_)] if name == "builtins.tuple" || is(&["Tuple"]) => {
                Hint::List(Box::new(self.hint_within(one, at.inner())))
            }
            parts if (name == "builtins.tuple" || is(&["Tuple"])) && parts.len() <= MAX_PARTS => {
                Hint::Tuple(parts.iter().map(|p| self.hint_within(p, at.inner())).collect())
            }
            [key, value] if name == "builtins.dict" || is(&["Dict", "Mapping", "MutableMapping"]) => {
                let key = self.hint_within(key, at.inner());
                Hint::Dict(Box::new(key), Box::new(self.hint_within(value, at.inner())))
            }
            [one] if is(&["Optional"]) => option(self.hint_within(one, at.inner())),
            parts if is(&["Union"]) => self.union(expr, parts, at),
            [one, ..] if is(&["Annotated"]) => self.hint_within(one, at.inner()),
            [one] if is(&["Final", "Required", "ReadOnly"]) => self.hint_within(one, at.inner()),
            parts if is(&["Literal"]) => self.literals(expr, parts, at),
            _ => self.other(expr, at, format!("`{}` is no type that Entail reads", self.shown(expr, at))),
        }
    }

    fn union(&mut self, expr: &Expr, parts: &[&Expr], at: Context) -> Hint {
        if parts.len() > MAX_PARTS {
            return self.other(expr, at, "its type has too many parts".into());
        }
        let mut is_optional = false;
        let mut whole: Option<Hint> = None;
        for part in parts {
            let hint = match self.hint_within(part, at.inner()) {
                Hint::None => {
                    is_optional = true;
                    continue;
                }
                Hint::Option(inner) => {
                    is_optional = true;
                    *inner
                }
                other => other,
            };
            whole = match whole {
                None => Some(hint),
                Some(so_far) => match joined(so_far, hint) {
                    Some(both) => Some(both),
                    None => {
                        let why = format!("`{}` is one of several types", self.shown(expr, at));
                        return self.other(expr, at, why);
                    }
                },
            };
        }
        match (whole, is_optional) {
            (None, _) => Hint::None,
            (Some(hint), true) => option(hint),
            (Some(hint), false) => hint,
        }
    }

    fn literals(&mut self, expr: &Expr, parts: &[&Expr], at: Context) -> Hint {
        let mut whole: Option<Hint> = None;
        let mut is_optional = false;
        for part in parts.iter().take(MAX_PARTS) {
            let hint = match literal(part) {
                Some(Hint::None) => {
                    is_optional = true;
                    continue;
                }
                Some(hint) => hint,
                None => return self.other(expr, at, format!("`{}` is not text alone", self.shown(expr, at))),
            };
            whole = match whole {
                None => Some(hint),
                Some(so_far) => match joined(so_far, hint) {
                    Some(both) => Some(both),
                    None => {
                        return self.other(
                            expr,
                            at,
                            format!("`{}` is of several types", self.shown(expr, at)),
                        );
                    }
                },
            };
        }
        match whole {
            Some(hint) if parts.len() <= MAX_PARTS => {
                if is_optional {
                    option(hint)
                } else {
                    hint
                }
            }
            _ => self.other(expr, at, format!("`{}` is no type that Entail reads", self.shown(expr, at))),
        }
    }

    fn class(&mut self, expr: &Expr, module: usize, class: &'a StmtClassDef, at: Context) -> Hint {
        match self.class_number(module, class) {
            Ok(number) => Hint::Class(number),
            Err(reason) => {
                let place = at.quoted.unwrap_or_else(|| self.span(at.module, expr.range()));
                Hint::Other(Reason { at: place, ..reason })
            }
        }
    }

    /// The qualified name of something outside of the project.
    pub(super) fn qualified(&mut self, module: usize, expr: &Expr) -> Option<String> {
        match self.referent(module, expr, 0) {
            Referent::External(name) => Some(name),
            _ => None,
        }
    }

    /// The meaning of a name, or of a name of a module.
    pub(super) fn referent(&mut self, module: usize, expr: &Expr, hops: usize) -> Referent<'a> {
        match expr {
            Expr::Name(name) => self.named_referent(module, name.id.as_str(), hops),
            Expr::Attribute(attribute) if hops < MAX_HOPS => {
                let name = attribute.attr.id.as_str();
                match self.referent(module, &attribute.value, hops + 1) {
                    Referent::External(of) => Referent::External(format!("{of}.{name}")),
                    Referent::Module(of) => self.member(of, name, hops + 1),
                    _ => Referent::Unknown,
                }
            }
            _ => Referent::Unknown,
        }
    }

    fn member(&mut self, module: usize, name: &str, hops: usize) -> Referent<'a> {
        match self.binding(module, name) {
            Some(_) => self.named_referent(module, name, hops),
            None => {
                // A module of a package.
                self.sources.import(module, 1, name).map_or(Referent::Unknown, Referent::Module)
            }
        }
    }

    fn named_referent(&mut self, module: usize, name: &str, hops: usize) -> Referent<'a> {
        if hops > MAX_HOPS {
            return Referent::Unknown;
        }
        let Some((of, binding)) = self.binding(module, name) else {
            let is_builtin = BUILTINS.contains(&name);
            return if is_builtin {
                Referent::External(format!("builtins.{name}"))
            } else {
                self.starred(module, name)
            };
        };
        match binding {
            Binding::Class(class) => Referent::Class(of, class),
            Binding::Alias(value) => match value {
                // Another name for the same.
                Expr::Name(other) if other.id.as_str() != name => {
                    self.named_referent(of, other.id.as_str(), hops + 1)
                }
                value => Referent::Alias(of, value),
            },
            Binding::Import { level, module: from, name: None } => {
                match self.sources.import(of, level, &from) {
                    Some(found) => Referent::Module(found),
                    None => Referent::External(from),
                }
            }
            Binding::Import { level, module: from, name: Some(imported) } => {
                match self.sources.import(of, level, &from) {
                    Some(found) => self.member(found, &imported, hops + 1),
                    None => {
                        let full =
                            if from.is_empty() { imported.clone() } else { format!("{from}.{imported}") };
                        match self.sources.import(of, level, &full) {
                            Some(found) => Referent::Module(found),
                            None if level == 0 => Referent::External(full),
                            None => Referent::Unknown,
                        }
                    }
                }
            }
            Binding::Function(_) | Binding::Uncertain { .. } => Referent::Unknown,
        }
    }

    /// A name that nothing binds but perhaps `from typing import *`.
    fn starred(&mut self, module: usize, name: &str) -> Referent<'a> {
        let stars = self.bindings(module).stars.clone();
        let typing = stars.iter().any(|s| s.level == 0 && s.is_certain && s.module == "typing");
        if typing { Referent::External(format!("typing.{name}")) } else { Referent::Unknown }
    }
}

/// Lists, in `typing` and in `collections.abc`.
const LISTS: &[&str] =
    &["List", "Sequence", "MutableSequence", "Collection", "Set", "MutableSet", "AbstractSet", "FrozenSet"];

/// Names of Python that nothing needs to bind.
const BUILTINS: &[&str] =
    &["bool", "dict", "float", "frozenset", "int", "list", "object", "property", "set", "str", "tuple"];

/// Returns whether a name is one of `typing`, or of the modules that have the same ones.
pub(super) fn is_typing(name: &str, wanted: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(module, last)| {
        last == wanted && matches!(module, "typing" | "typing_extensions" | "collections.abc")
    })
}

/// `T | None`.
pub(super) fn option(hint: Hint) -> Hint {
    match hint {
        Hint::None | Hint::Option(_) | Hint::Other(_) => hint,
        hint => Hint::Option(Box::new(hint)),
    }
}

/// The type of values of one of two types, if that is a type.
fn joined(a: Hint, b: Hint) -> Option<Hint> {
    Some(match (a, b) {
        (a, b) if a == b => a,
        (Hint::Any, _) | (_, Hint::Any) => Hint::Any,
        (Hint::Int, Hint::Float) | (Hint::Float, Hint::Int) => Hint::Float,
        (Hint::Str, Hint::Texts(_)) | (Hint::Texts(_), Hint::Str) => Hint::Str,
        (n @ (Hint::Int | Hint::Float), Hint::Numbers(_))
        | (Hint::Numbers(_), n @ (Hint::Int | Hint::Float)) => n,
        (Hint::Texts(mut a), Hint::Texts(b)) => {
            b.into_iter().for_each(|t| {
                if !a.contains(&t) {
                    a.push(t)
                }
            });
            Hint::Texts(a)
        }
        (Hint::Numbers(mut a), Hint::Numbers(b)) => {
            b.into_iter().for_each(|n| {
                if !a.contains(&n) {
                    a.push(n)
                }
            });
            Hint::Numbers(a)
        }
        _ => return None,
    })
}

/// A literal as a type of one value. Both values of `bool` are one type.
pub(super) fn literal(expr: &Expr) -> Option<Hint> {
    Some(match expr {
        Expr::NoneLiteral(_) => Hint::None,
        Expr::BooleanLiteral(_) => Hint::Bool,
        Expr::StringLiteral(text) => Hint::Texts(vec![text.value.to_str().into()]),
        Expr::NumberLiteral(_) => Hint::Numbers(vec![whole_number(expr)?]),
        Expr::UnaryOp(op) if op.op == UnaryOp::USub => {
            Hint::Numbers(vec![whole_number(&op.operand)?.checked_neg()?])
        }
        _ => return None,
    })
}

fn whole_number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::NumberLiteral(number) => match &number.value {
            Number::Int(n) => n.as_i64(),
            _ => None,
        },
        _ => None,
    }
}
