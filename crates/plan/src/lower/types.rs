//! Types that a plan names: classes, annotations, and the types of `ask`.
//!
//! Source: `docs/language/plans.md`.

use super::Lower;
use crate::scope::Ty;
use core_ir::{Comparison, Data, EnumType, Measure, Name, Num, Pred, Type};
use diagnostics::Span;
use ruff_python_ast::{Expr, ExprCall, Number, Operator, Stmt, StmtClassDef, UnaryOp};
use std::rc::Rc;
use std::sync::Arc;

/// Bounds of a field by their names.
type Bounds = Vec<(Name, Num)>;

/// Nesting of a type at most.
const MAX_TYPE_DEPTH: usize = 20;
/// Help for a class that is none of a plan.
const CLASS_HELP: &str = "a class names the fields of a type: `@dataclass` before it, or `BaseModel`, `TypedDict` or \
                          `Enum` as its base, and lines such as `total: float`; it has no methods";

/// A type as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Any,
    None,
    Str,
    Int,
    Float,
    Bool,
    List(Box<Shape>),
    Set(Box<Shape>),
    /// Without parts: a tuple of any length.
    Tuple(Vec<Shape>),
    Dict,
    Option(Box<Shape>),
    Union(Vec<Shape>),
    Literal(Vec<Data>),
    /// A class of the module `datetime`.
    Moment(&'static str),
    Class(String),
    /// With the bounds of a `Field`.
    Bounded(Box<Shape>, Vec<(Name, Num)>),
}

/// Kind of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassKind {
    Dataclass,
    Model,
    TypedDict,
    Enum,
    /// `str` and `Enum`.
    StrMixin,
    StrEnum,
}

#[derive(Clone, Debug)]
pub(crate) struct ClassField {
    pub(crate) name: Name,
    pub(crate) shape: Shape,
    pub(crate) default: Option<Data>,
}

/// A class of the plan.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) name: String,
    pub(crate) kind: ClassKind,
    pub(crate) fields: Vec<ClassField>,
    /// Members of an enumeration.
    pub(crate) members: Vec<Data>,
}

impl Class {
    pub(crate) fn is_enum(&self) -> bool {
        matches!(self.kind, ClassKind::Enum | ClassKind::StrMixin | ClassKind::StrEnum)
    }

    /// The tag of its objects; nothing for a dictionary.
    pub(crate) fn tag(&self) -> Data {
        let kind = match self.kind {
            ClassKind::Dataclass => "data",
            ClassKind::Model => "model",
            ClassKind::TypedDict => return Data::Null,
            ClassKind::Enum => "enum",
            ClassKind::StrMixin => "str enum",
            ClassKind::StrEnum => "StrEnum",
        };
        Data::Tag(self.name.as_str().into(), Data::str(kind).into())
    }

    /// A member of an enumeration by its name.
    pub(crate) fn member(&self, name: &str) -> Option<&Data> {
        self.members.iter().find(|m| m.field("name").and_then(Data::as_str) == Some(name))
    }
}

impl<'a> Lower<'a> {
    /// A class of the plan, unless a variable has its name.
    pub(crate) fn class_named(&self, name: &str) -> Option<&Class> {
        if self.lookup(name).is_some() { None } else { self.classes.get(name) }
    }

    /// Notes the type or exception of a class without methods.
    pub(crate) fn class(&mut self, s: &'a StmtClassDef, at: Span) {
        let last = |e: &Expr| match e {
            Expr::Name(n) => n.id.to_string(),
            Expr::Attribute(a) => a.attr.to_string(),
            _ => String::new(),
        };
        let top = self.source.body().iter().any(|b| matches!(b, Stmt::ClassDef(c) if std::ptr::eq(c, s)));
        let bases: Vec<String> =
            s.arguments.as_ref().map_or_else(Vec::new, |a| a.args.iter().map(last).collect());
        let options = s.arguments.as_ref().is_some_and(|a| !a.keywords.is_empty());
        let decorators: Vec<(String, bool)> = s
            .decorator_list
            .iter()
            .map(|d| match &d.expression {
                Expr::Call(c) => (last(&c.func), !c.arguments.is_empty()),
                e => (last(e), false),
            })
            .collect();
        let bases: Vec<&str> = bases.iter().map(String::as_str).collect();
        if let ([base], true) = (&bases[..], top && decorators.is_empty() && !options)
            && self.is_exception(base)
        {
            let empty = s.body.iter().all(|b| {
                matches!(b, Stmt::Pass(_))
                    || matches!(b, Stmt::Expr(e) if e.value.is_string_literal_expr() || e.value.is_ellipsis_literal_expr())
            });
            if !empty {
                self.refuse(at, "a class of exceptions with a body", "write `pass` as its body");
            }
            self.exceptions.insert(s.name.to_string(), (*base).to_string());
            return;
        }
        let kind = match (&decorators[..], &bases[..]) {
            ([(name, false)], []) if name == "dataclass" => ClassKind::Dataclass,
            ([], ["BaseModel"]) => ClassKind::Model,
            ([], ["TypedDict"]) => ClassKind::TypedDict,
            ([], ["Enum"]) => ClassKind::Enum,
            ([], ["str", "Enum"]) => ClassKind::StrMixin,
            ([], ["StrEnum"]) => ClassKind::StrEnum,
            _ => {
                self.refuse(at, "this `class` is not part of the plan language", CLASS_HELP);
                return;
            }
        };
        if !top || options {
            let help = if top { CLASS_HELP } else { "put the class at the top level of the plan" };
            self.refuse(at, "this `class` is not part of the plan language", help);
            return;
        }
        let mut class = Class { name: s.name.to_string(), kind, fields: Vec::new(), members: Vec::new() };
        for stmt in &s.body {
            let at = self.at(stmt);
            match stmt {
                Stmt::Pass(_) => {}
                Stmt::Expr(e) if e.value.is_string_literal_expr() || e.value.is_ellipsis_literal_expr() => {}
                Stmt::Assign(a) if class.is_enum() => {
                    let value = self.constant_of(&a.value);
                    let (Some(value), [Expr::Name(name)]) = (value, &a.targets[..]) else {
                        self.refuse(at, "this member of an enumeration", "write `NAME = \"value\"`");
                        return;
                    };
                    if !matches!(value, Data::Str(_) | Data::Num(_))
                        || class.kind != ClassKind::Enum && !matches!(value, Data::Str(_))
                    {
                        self.refuse(at, "this member of an enumeration", "its value is a string or a number");
                        return;
                    }
                    let twice = class.members.iter().any(|m| {
                        m.field("value") == Some(&value)
                            || m.field("name").and_then(Data::as_str) == Some(name.id.as_str())
                    });
                    if twice {
                        self.refuse(at, "two members with one name or value", "remove one of them");
                        return;
                    }
                    class.members.push(Data::record([
                        (core_ir::py::CLASS.into(), class.tag()),
                        ("name".into(), Data::str(name.id.as_str())),
                        ("value".into(), value),
                    ]));
                }
                Stmt::AnnAssign(f) if !class.is_enum() => {
                    let Expr::Name(name) = &*f.target else {
                        self.refuse(at, "this field of a class", CLASS_HELP);
                        return;
                    };
                    let Some(mut shape) = self.shape(&f.annotation, 0) else {
                        let at = self.at(&*f.annotation);
                        let help = "use `str`, `int`, `float`, `bool`, `list[T]`, `Literal[…]`, `Optional[T]`, `date`, \
                                    `datetime`, an `Enum` or a class";
                        self.refuse(at, "this type of a field", help);
                        return;
                    };
                    let default = match &f.value {
                        None => None,
                        Some(v) => match self.field_default(v, kind) {
                            Some((default, bounds)) => {
                                if !bounds.is_empty() {
                                    shape = Shape::Bounded(Box::new(shape), bounds);
                                }
                                default
                            }
                            None => {
                                let help = match kind {
                                    ClassKind::Dataclass => {
                                        "a default is a literal, or `field(default_factory=list)`"
                                    }
                                    _ => {
                                        "a default is a literal, or `Field(default=…, ge=…, le=…, max_length=…)`"
                                    }
                                };
                                self.refuse(at, "this default of a field", help);
                                return;
                            }
                        },
                    };
                    let name: Name = name.id.as_str().into();
                    if class.fields.iter().any(|f| f.name == name) {
                        self.refuse(at, format!("field `{name}` is there twice"), "remove one of them");
                        return;
                    }
                    if kind == ClassKind::Dataclass
                        && default.is_none()
                        && class.fields.iter().any(|f| f.default.is_some())
                    {
                        let what = format!("field `{name}` has no default, and one before it has");
                        self.refuse(at, what, "put the fields with defaults last");
                        return;
                    }
                    class.fields.push(ClassField { name, shape, default });
                }
                _ => {
                    self.refuse(at, "a class with more than fields", CLASS_HELP);
                    return;
                }
            }
        }
        if class.is_enum() && class.members.is_empty() {
            self.refuse(at, "an enumeration without members", "write `NAME = \"value\"` into it");
            return;
        }
        self.classes.insert(s.name.to_string(), class);
    }

    /// The default of a field and its bounds.
    fn field_default(&self, e: &Expr, kind: ClassKind) -> Option<(Option<Data>, Bounds)> {
        let Expr::Call(call) = e else {
            let data = self.constant_of(e)?;
            let mutable = matches!(data, Data::List(_) | Data::Record(_)) && self.member_of(e).is_none();
            return (kind != ClassKind::Dataclass || !mutable).then_some((Some(data), Vec::new()));
        };
        let (Expr::Name(_) | Expr::Attribute(_)) = &*call.func else { return None };
        let mut default = None;
        match &call.arguments.args[..] {
            [] => {}
            [e] if e.is_ellipsis_literal_expr() => {}
            [e] => default = Some(self.constant_of(e)?),
            _ => return None,
        }
        let mut bounds = Vec::new();
        for k in &call.arguments.keywords {
            match k.arg.as_ref()?.as_str() {
                "default" if k.value.is_ellipsis_literal_expr() => {}
                "default" => default = Some(self.constant_of(&k.value)?),
                "default_factory" => {
                    let Expr::Name(n) = &k.value else { return None };
                    default = Some(match n.id.as_str() {
                        "list" => Data::list([]),
                        "dict" => Data::record([]),
                        "str" => Data::str(""),
                        _ => return None,
                    });
                }
                name @ ("ge" | "gt" | "le" | "lt" | "min_length" | "max_length") => {
                    let Data::Num(n) = self.constant_of(&k.value)? else { return None };
                    bounds.push((Name::from(name), n));
                }
                "description" | "title" | "examples" | "alias" | "repr" | "compare" => {}
                _ => return None,
            }
        }
        Some((default, bounds))
    }

    /// A member of an enumeration that an expression names.
    fn member_of(&self, e: &Expr) -> Option<&Data> {
        let Expr::Attribute(a) = e else { return None };
        let Expr::Name(n) = &*a.value else { return None };
        self.class_named(n.id.as_str())?.member(a.attr.as_str())
    }

    /// The value of a literal.
    fn constant_of(&self, e: &Expr) -> Option<Data> {
        Some(match e {
            Expr::NoneLiteral(_) => Data::Null,
            Expr::BooleanLiteral(b) => Data::Bool(b.value),
            Expr::StringLiteral(s) => Data::str(s.value.to_str()),
            Expr::NumberLiteral(n) => Data::Num(match &n.value {
                Number::Int(i) => Num::from(i.as_i64()?),
                Number::Float(f) => format!("{f:e}").parse().ok()?,
                Number::Complex { .. } => return None,
            }),
            Expr::UnaryOp(u) if u.op == UnaryOp::USub => match self.constant_of(&u.operand)? {
                Data::Num(n) => Data::Num(n.neg()),
                _ => return None,
            },
            Expr::List(l) => {
                Data::list(l.elts.iter().map(|e| self.constant_of(e)).collect::<Option<Vec<_>>>()?)
            }
            Expr::Dict(d) if d.items.is_empty() => Data::record([]),
            e => self.member_of(e)?.clone(),
        })
    }

    /// The type that an annotation names.
    pub(crate) fn shape(&self, e: &Expr, depth: usize) -> Option<Shape> {
        if depth > MAX_TYPE_DEPTH {
            return None;
        }
        let part = |e: &Expr| self.shape(e, depth + 1).map(Box::new);
        let option = |inner: Box<Shape>| match *inner {
            Shape::Option(_) => *inner,
            _ => Shape::Option(inner),
        };
        let named = |name: &str| -> Option<Shape> {
            Some(match name {
                "str" | "EmailStr" | "AnyUrl" | "HttpUrl" => Shape::Str,
                "int" => Shape::Int,
                "float" => Shape::Float,
                "bool" => Shape::Bool,
                "list" | "List" | "Sequence" | "Iterable" => Shape::List(Box::new(Shape::Any)),
                "set" | "Set" => Shape::Set(Box::new(Shape::Any)),
                "tuple" | "Tuple" => Shape::Tuple(Vec::new()),
                "dict" | "Dict" | "Mapping" => Shape::Dict,
                "Any" | "object" => Shape::Any,
                "date" => Shape::Moment("date"),
                "datetime" | "NaiveDatetime" | "AwareDatetime" => Shape::Moment("datetime"),
                "time" => Shape::Moment("time"),
                "timedelta" => Shape::Moment("timedelta"),
                _ => return None,
            })
        };
        match e {
            Expr::Name(n) => match n.id.as_str() {
                name if self.class_named(name).is_some() => Some(Shape::Class(name.into())),
                name => named(name),
            },
            Expr::Attribute(a) => named(a.attr.as_str()),
            // A quoted annotation.
            Expr::StringLiteral(s) => match s.value.to_str() {
                name if self.class_named(name).is_some() => Some(Shape::Class(name.into())),
                name => named(name),
            },
            Expr::NoneLiteral(_) => Some(Shape::None),
            Expr::BinOp(b) if b.op == Operator::BitOr => match (*part(&b.left)?, *part(&b.right)?) {
                (Shape::None, Shape::None) => Some(Shape::None),
                (Shape::None, s) | (s, Shape::None) => Some(option(Box::new(s))),
                (a, b) => Some(Shape::Union(vec![a, b])),
            },
            Expr::Subscript(s) => {
                let former = match &*s.value {
                    Expr::Name(n) => n.id.as_str(),
                    Expr::Attribute(a) => a.attr.as_str(),
                    _ => return None,
                };
                let parts = match &*s.slice {
                    Expr::Tuple(t) => &t.elts[..],
                    e => std::slice::from_ref(e),
                };
                match (former, parts) {
                    ("list" | "List" | "Sequence" | "Iterable", [item]) => Some(Shape::List(part(item)?)),
                    ("set" | "Set", [item]) => Some(Shape::Set(part(item)?)),
                    ("Optional", [inner]) => Some(option(part(inner)?)),
                    ("Union", all) => {
                        let mut shapes = Vec::new();
                        let mut none = false;
                        for e in all {
                            match *part(e)? {
                                Shape::None => none = true,
                                s => shapes.push(s),
                            }
                        }
                        let one = if shapes.len() == 1 { shapes.pop()? } else { Shape::Union(shapes) };
                        Some(if none { option(Box::new(one)) } else { one })
                    }
                    ("tuple" | "Tuple", all) => {
                        if all.iter().any(Expr::is_ellipsis_literal_expr) {
                            return Some(Shape::Tuple(Vec::new()));
                        }
                        Some(Shape::Tuple(all.iter().map(|e| part(e).map(|p| *p)).collect::<Option<_>>()?))
                    }
                    ("dict" | "Dict" | "Mapping" | "defaultdict" | "Counter", _) => Some(Shape::Dict),
                    ("Literal", all) => {
                        let mut values: Vec<Data> = Vec::new();
                        for e in all {
                            let value = self.constant_of(e)?;
                            if !values.contains(&value) {
                                values.push(value);
                            }
                        }
                        Some(Shape::Literal(values))
                    }
                    ("Annotated", [inner, more @ ..]) => {
                        let inner = part(inner)?;
                        let mut bounds = Vec::new();
                        for e in more {
                            if matches!(e, Expr::Call(_)) {
                                bounds.extend(self.field_default(e, ClassKind::Model)?.1);
                            }
                        }
                        Some(if bounds.is_empty() { *inner } else { Shape::Bounded(inner, bounds) })
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The type of an answer; `None` for what no answer can be.
    pub(crate) fn answer_type(&self, shape: &Shape) -> Option<Type> {
        Some(match shape {
            Shape::Any | Shape::Dict => Type::Dyn,
            Shape::None => Type::Null,
            Shape::Str | Shape::Moment("date" | "datetime" | "time") => Type::Str,
            Shape::Int => Type::Refined(Arc::new((Type::Num, Pred::integer()))),
            Shape::Float => Type::Num,
            Shape::Bool => Type::Bool,
            Shape::List(item) => Type::list(self.answer_type(item)?),
            Shape::Option(inner) => optional(self.answer_type(inner)?),
            Shape::Literal(values) => variants(values.iter())?,
            Shape::Bounded(inner, bounds) => {
                let ty = self.answer_type(inner)?;
                bounds.iter().fold(ty, |ty, (name, n)| Type::Refined(Arc::new((ty, predicate(name, n)))))
            }
            Shape::Class(name) => {
                let class = self.classes.get(name)?;
                if class.is_enum() {
                    return variants(class.members.iter().filter_map(|m| m.field("value")));
                }
                let mut fields: Vec<(Name, Type)> = Vec::new();
                for f in &class.fields {
                    let ty = self.answer_type(&f.shape)?;
                    fields.push((f.name.clone(), if f.default.is_some() { optional(ty) } else { ty }));
                }
                Type::record(fields)
            }
            Shape::Set(_) | Shape::Tuple(_) | Shape::Union(_) | Shape::Moment(_) => return None,
        })
    }

    /// Returns true if an answer is not yet a value of its type: an object, a member or a date.
    pub(crate) fn is_made(&self, shape: &Shape) -> bool {
        match shape {
            Shape::List(inner) | Shape::Option(inner) | Shape::Bounded(inner, _) => self.is_made(inner),
            Shape::Moment(_) => true,
            Shape::Class(name) => self.classes.get(name).is_some_and(|c| {
                c.kind != ClassKind::TypedDict
                    || c.fields.iter().any(|f| f.default.is_some() || self.is_made(&f.shape))
            }),
            _ => false,
        }
    }

    /// A type as data, for the operations on types.
    pub(crate) fn shape_data(&self, shape: &Shape) -> Data {
        let of = |name: &str, parts: Vec<Data>| Data::list(std::iter::once(Data::str(name)).chain(parts));
        match shape {
            Shape::Any => Data::str("any"),
            Shape::None => Data::str("none"),
            Shape::Str => Data::str("str"),
            Shape::Int => Data::str("int"),
            Shape::Float => Data::str("float"),
            Shape::Bool => Data::str("bool"),
            Shape::Dict => Data::str("dict"),
            Shape::Moment(name) => Data::str(*name),
            Shape::List(item) => of("list", vec![self.shape_data(item)]),
            Shape::Set(item) => of("set", vec![self.shape_data(item)]),
            Shape::Tuple(parts) => of("tuple", parts.iter().map(|p| self.shape_data(p)).collect()),
            Shape::Option(inner) => of("option", vec![self.shape_data(inner)]),
            Shape::Union(all) => of("union", all.iter().map(|s| self.shape_data(s)).collect()),
            Shape::Literal(values) => of("literal", values.clone()),
            Shape::Bounded(inner, _) => self.shape_data(inner),
            Shape::Class(name) => match self.classes.get(name) {
                Some(c) if c.is_enum() => of("enum", vec![Data::list(c.members.iter().cloned())]),
                Some(c) => {
                    let types = c.fields.iter().map(|f| (f.name.clone(), self.shape_data(&f.shape)));
                    let defaults = c.fields.iter().filter_map(|f| Some((f.name.clone(), f.default.clone()?)));
                    of("class", vec![c.tag(), Data::record(types), Data::record(defaults)])
                }
                None => Data::str("any"),
            },
        }
    }

    /// Facts about a value of a type.
    pub(crate) fn shape_ty(&self, shape: &Shape) -> Ty {
        match shape {
            Shape::Str => Ty::Str,
            Shape::Int | Shape::Float => Ty::Num,
            Shape::Bool => Ty::Bool,
            Shape::None => Ty::Null,
            Shape::List(item) => Ty::List(Rc::new(self.shape_ty(item))),
            Shape::Set(_) => Ty::Set,
            Shape::Tuple(_) => Ty::Tuple,
            Shape::Dict => Ty::Dict(None),
            Shape::Moment(_) => Ty::Atom,
            Shape::Bounded(inner, _) => self.shape_ty(inner),
            Shape::Literal(values) if values.iter().all(|v| matches!(v, Data::Str(_))) => Ty::Str,
            Shape::Class(name) => match self.classes.get(name) {
                Some(c) if c.is_enum() => Ty::Atom,
                Some(c) => {
                    let fields = c.fields.iter().map(|f| (f.name.clone(), self.shape_ty(&f.shape))).collect();
                    match c.kind {
                        ClassKind::TypedDict => Ty::Dict(Some(fields)),
                        _ => Ty::Object(name.as_str().into(), fields),
                    }
                }
                None => Ty::Any,
            },
            _ => Ty::Any,
        }
    }

    /// A type as it is written, for messages.
    pub(crate) fn shown(&self, e: &Expr) -> String {
        let at = self.at(e);
        self.source.text.get(at.start as usize..at.end as usize).unwrap_or("").to_string()
    }

    /// Bounds of fields that a model checks.
    pub(crate) fn bounds_of(shape: &Shape) -> Option<Data> {
        let Shape::Bounded(_, bounds) = shape else { return None };
        Some(Data::record(bounds.iter().map(|(n, v)| (n.clone(), Data::Num(v.clone())))))
    }
}

/// A type whose values may be absent; one that is so already is as it is.
pub(crate) fn optional(ty: Type) -> Type {
    match ty {
        Type::Option(_) => ty,
        ty => Type::option(ty),
    }
}

/// A type with these texts as its values.
fn variants<'d>(values: impl Iterator<Item = &'d Data>) -> Option<Type> {
    let variants: Option<Vec<Name>> = values.map(|d| d.as_str().map(Name::from)).collect();
    Some(Type::Enum(Arc::new(EnumType::new("Literal", variants?))))
}

/// A bound of a `Field`.
fn predicate(name: &str, n: &Num) -> Pred {
    let (measure, comparison) = match name {
        "ge" => (Measure::Value, Comparison::Ge),
        "gt" => (Measure::Value, Comparison::Gt),
        "le" => (Measure::Value, Comparison::Le),
        "lt" => (Measure::Value, Comparison::Lt),
        "min_length" => (Measure::Length, Comparison::Ge),
        _ => (Measure::Length, Comparison::Le),
    };
    Pred::Compare(measure, comparison, n.clone())
}

/// The arguments of a call as pairs of name and expression, without `*` and `**`.
pub(crate) fn keyword<'e>(c: &'e ExprCall, name: &str) -> Option<&'e Expr> {
    c.arguments.keywords.iter().find(|k| k.arg.as_ref().is_some_and(|a| a.as_str() == name)).map(|k| &k.value)
}
