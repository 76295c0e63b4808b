//! The functions of the language that can be called inside expressions.

use core_ir::{Prim, Type};

/// A function of the language.
pub(super) struct Function {
    /// Its name.
    pub(super) name: &'static str,
    /// Its signature, for messages.
    pub(super) signature: &'static str,
    /// The primitive that carries it out.
    pub(super) prim: Prim,
    /// The type of its result for the types of its arguments, if it takes them.
    pub(super) ty: fn(&[Type]) -> Option<Type>,
}

fn is(t: &Type, want: &Type) -> bool {
    t.is_subtype(want)
}

fn all_strings(types: &[Type], n: usize) -> bool {
    types.len() == n && types.iter().all(|t| is(t, &Type::Str))
}

fn string_to_string(types: &[Type]) -> Option<Type> {
    all_strings(types, 1).then_some(Type::Str)
}

/// All functions.
pub(super) const ALL: &[Function] = &[
    Function {
        name: "length",
        signature: "length(String | List[T]) -> Number",
        prim: Prim::Length,
        ty: |t| match t {
            [Type::List(_)] => Some(Type::Num),
            [t] if is(t, &Type::Str) => Some(Type::Num),
            _ => None,
        },
    },
    Function { name: "lower", signature: "lower(String) -> String", prim: Prim::Lower, ty: string_to_string },
    Function { name: "upper", signature: "upper(String) -> String", prim: Prim::Upper, ty: string_to_string },
    Function { name: "trim", signature: "trim(String) -> String", prim: Prim::Trim, ty: string_to_string },
    Function {
        name: "split",
        signature: "split(String, String) -> List[String]",
        prim: Prim::Split,
        ty: |t| all_strings(t, 2).then(|| Type::list(Type::Str)),
    },
    Function {
        name: "join",
        signature: "join(List[String], String) -> String",
        prim: Prim::Join,
        ty: |t| match t {
            [items, by] if is(items, &Type::list(Type::Str)) && is(by, &Type::Str) => Some(Type::Str),
            _ => None,
        },
    },
    Function {
        name: "contains",
        signature: "contains(String, String) -> Bool, contains(List[T], T) -> Bool",
        prim: Prim::Contains,
        ty: |t| match t {
            [Type::List(items), item] => (is(item, items) || is(items, item)).then_some(Type::Bool),
            t => all_strings(t, 2).then_some(Type::Bool),
        },
    },
    Function {
        name: "append",
        signature: "append(List[T], T) -> List[T]",
        prim: Prim::Append,
        ty: |t| match t {
            [Type::List(items), item] => super::types::join(items, item).map(Type::list),
            _ => None,
        },
    },
    Function {
        name: "slice",
        signature: "slice(String, Number, Number) -> String, slice(List[T], Number, Number) -> List[T]",
        prim: Prim::Slice,
        ty: |t| match t {
            [of, Type::Num, Type::Num] => match of {
                Type::List(_) => Some(of.clone()),
                t => is(t, &Type::Str).then_some(Type::Str),
            },
            _ => None,
        },
    },
    Function {
        name: "range",
        signature: "range(Number, Number) -> List[Number]",
        prim: Prim::Range,
        ty: |t| matches!(t, [Type::Num, Type::Num]).then(|| Type::list(Type::Num)),
    },
    Function {
        name: "to_string",
        signature: "to_string(any) -> String",
        prim: Prim::ToStr,
        ty: |t| (t.len() == 1).then_some(Type::Str),
    },
    Function {
        name: "to_number",
        signature: "to_number(String) -> Number",
        prim: Prim::ToNum,
        ty: |t| all_strings(t, 1).then_some(Type::Num),
    },
];

/// The names of the functions that can be called inside expressions, in the order of the documentation.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|f| f.name)
}

/// The function of a name.
pub(super) fn named(name: &str) -> Option<&'static Function> {
    ALL.iter().find(|f| f.name == name)
}

/// The names of all functions, for messages.
pub(super) fn list() -> String {
    ALL.iter().map(|f| format!("`{}`", f.name)).collect::<Vec<_>>().join(", ")
}
