//! The functions of the language that can be called inside expressions.

use core_ir::{Prim, Type};

/// How a function is carried out.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    /// By a primitive of the calculus.
    Prim(Prim),
    /// By an operation of the primitive `py` of this name.
    Named(&'static str),
    /// By terms that look at the keys of a map.
    OfMap(MapOperation),
}

/// An operation on a map that no primitive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MapOperation {
    /// The value of a key, or null or another value if the map lacks it.
    Get,
    /// The values, in the order of their keys.
    Values,
    /// Records of the keys and values.
    Items,
}

use Operation::Named;

/// A function of the language.
pub(super) struct Function {
    /// Its name.
    pub(super) name: &'static str,
    /// Its signature, for messages.
    pub(super) signature: &'static str,
    /// The operation that carries it out.
    pub(super) operation: Operation,
    /// The type of its result for the types of its arguments, if it takes them.
    pub(super) ty: fn(&[Type]) -> Option<Type>,
}

/// The function of the language for a name of another language.
pub(super) fn known_as(name: &str) -> Option<&'static str> {
    Some(match name {
        "len" | "size" | "count_of" => "length",
        "push" | "add" => "append",
        "includes" | "indexOf" => "contains",
        "has_key" | "contains_key" | "containsKey" | "hasOwnProperty" => "has",
        "entries" | "to_pairs" => "items",
        "put" | "insert" => "set",
        "delete" => "remove",
        "getOrDefault" | "get_or" | "get_or_default" => "get",
        "startsWith" | "startswith" => "starts_with",
        "endsWith" | "endswith" => "ends_with",
        "toUpperCase" | "uppercase" => "upper",
        "toLowerCase" | "lowercase" => "lower",
        "strip" => "trim",
        "reduce" => "fold",
        "sorted" => "sort",
        "reversed" => "reverse",
        "groupBy" => "group_by",
        "sortBy" | "orderBy" => "sort_by",
        "replaceAll" => "replace",
        "padStart" | "rjust" | "zfill" => "pad_start",
        "padEnd" | "ljust" => "pad_end",
        "toFixed" => "fixed",
        "flat" => "flatten",
        "some" => "any",
        "every" => "all",
        "distinct" | "uniq" => "unique",
        "str" | "toString" => "to_string",
        "int" | "float" | "parseInt" | "parseFloat" => "to_number",
        "substring" | "substr" => "slice",
        _ => return None,
    })
}

/// The remedy for a function of another language that has no counterpart.
pub(super) fn instead_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "not" => "`not` is written `!`",
        "getattr" => "a field is read with `.name`; one that may be missing has the type `Option[…]`",
        "print" | "println" | "log" | "debug" => "nothing is printed: a pipeline returns its result",
        "isinstance" | "type" | "typeof" | "instanceof" => {
            "types are known before the run; look at a case with `match`"
        }
        "enumerate" => "write `zip(range(0, length(xs)), xs)`: a list of `{ first, second }`",
        "forEach" | "for_each" => "write `for x in xs { … }`",
        "format" | "sprintf" | "concat" => "write the values into a text: `f\"… {x} …\"`",
        "pow" | "sqrt" | "exp" => "there are only exact numbers: multiply, or use `fold` over a `range`",
        "is_empty" | "isEmpty" | "empty" => "write `length(xs) == 0`",
        "first" | "head" => "write `xs[0]`, or `xs.find(x => true)` for a list that may be empty",
        "last" => "write `xs[length(xs) - 1]`",
        "pop" | "shift" => "no function changes its list: `slice` and `filter` give a new one",
        "input" | "argv" => "inputs are the parameters of a pipeline",
        "open" | "read" | "fetch" | "request" | "requests" => "what is outside is reached by a `tool`",
        "sleep" | "wait" => "a call waits by itself, and `timeout n` says how long",
        "parse" | "loads" | "dumps" | "stringify" => {
            "a task or tool returns values of its type, so no JSON has to be read; `to_string(x)` shows a value"
        }
        "dict" => "a map is written `{ \"key\": value }`, and a record `{ field: value }`",
        "list" | "tuple" => "a list is written `[…]`, and a record `{ field: value }`",
        "range_inclusive" | "rangeTo" => "write `range(from, to + 1)`",
        "now" | "today" | "random" | "uuid" => {
            "a function only computes: this is a `tool` with `builtin` or a handler"
        }
        _ => return None,
    })
}

/// The remedy for a module of another language.
pub(super) fn module(name: &str) -> Option<&'static str> {
    Some(match name {
        "Math" | "math" => "functions stand alone: `round(n)`, `abs(n)`, `max(a, b)`",
        "JSON" | "json" => {
            "a task or tool returns values of its type, so no JSON has to be read; `to_string(x)` shows a value"
        }
        "Promise" | "asyncio" => "calls at the same time stand in `parallel { let a = …; let b = …; } join;`",
        "re" | "RegExp" => "a `guard` and a type with `where` say `matches(x, \"…\")`",
        "Object" | "Array" | "String" | "Number" | "Date" | "datetime" | "os" | "sys" | "random"
        | "console" | "self" | "this" => {
            "there are no modules and objects: functions stand alone, as `length(xs)` or `xs.length()`"
        }
        _ => return None,
    })
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
        signature: "length(String | List[T] | Map[K, V]) -> Number",
        operation: Operation::Prim(Prim::Length),
        ty: |t| match t {
            [Type::List(_) | Type::Map(_)] => Some(Type::Num),
            [t] if is(t, &Type::Str) => Some(Type::Num),
            _ => None,
        },
    },
    Function {
        name: "lower",
        signature: "lower(String) -> String",
        operation: Operation::Prim(Prim::Lower),
        ty: string_to_string,
    },
    Function {
        name: "upper",
        signature: "upper(String) -> String",
        operation: Operation::Prim(Prim::Upper),
        ty: string_to_string,
    },
    Function {
        name: "trim",
        signature: "trim(String) -> String",
        operation: Operation::Prim(Prim::Trim),
        ty: string_to_string,
    },
    Function {
        name: "split",
        signature: "split(String, String) -> List[String]",
        operation: Operation::Prim(Prim::Split),
        ty: |t| all_strings(t, 2).then(|| Type::list(Type::Str)),
    },
    Function {
        name: "join",
        signature: "join(List[String], String) -> String",
        operation: Operation::Prim(Prim::Join),
        ty: |t| match t {
            [items, by] if is(items, &Type::list(Type::Str)) && is(by, &Type::Str) => Some(Type::Str),
            _ => None,
        },
    },
    Function {
        name: "contains",
        signature: "contains(String, String) -> Bool, contains(List[T], T) -> Bool",
        operation: Operation::Prim(Prim::Contains),
        ty: |t| match t {
            [Type::List(items), item] => (is(item, items) || is(items, item)).then_some(Type::Bool),
            t => all_strings(t, 2).then_some(Type::Bool),
        },
    },
    Function {
        name: "append",
        signature: "append(List[T], T) -> List[T]",
        operation: Operation::Prim(Prim::Append),
        ty: |t| match t {
            [Type::List(items), item] => super::types::join(items, item).map(Type::list),
            _ => None,
        },
    },
    Function {
        name: "slice",
        signature: "slice(String, Number, Number) -> String, slice(List[T], Number, Number) -> List[T]",
        operation: Operation::Prim(Prim::Slice),
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
        operation: Operation::Prim(Prim::Range),
        ty: |t| matches!(t, [Type::Num, Type::Num]).then(|| Type::list(Type::Num)),
    },
    Function {
        name: "to_string",
        signature: "to_string(any) -> String",
        operation: Operation::Prim(Prim::ToStr),
        ty: |t| (t.len() == 1).then_some(Type::Str),
    },
    Function {
        name: "to_number",
        signature: "to_number(String) -> Number",
        operation: Operation::Prim(Prim::ToNum),
        ty: |t| all_strings(t, 1).then_some(Type::Num),
    },
    Function {
        name: "sort",
        signature: "sort(List[String | Number | Bool]) -> List[…]",
        operation: Named("agent.sort"),
        ty: |t| match t {
            [Type::List(item)] if is_ordered(item) => Some(t[0].clone()),
            _ => None,
        },
    },
    Function {
        name: "reverse",
        signature: "reverse(List[T]) -> List[T], reverse(String) -> String",
        operation: Named("agent.reverse"),
        ty: list_or_text,
    },
    Function {
        name: "unique",
        signature: "unique(List[T]) -> List[T]",
        operation: Named("agent.unique"),
        ty: |t| match t {
            [Type::List(_)] => Some(t[0].clone()),
            _ => None,
        },
    },
    Function {
        name: "flatten",
        signature: "flatten(List[List[T]]) -> List[T]",
        operation: Named("agent.flatten"),
        ty: |t| match t {
            [Type::List(inner)] if matches!(**inner, Type::List(_) | Type::Dyn) => Some(match &**inner {
                Type::List(_) => (**inner).clone(),
                _ => Type::list(Type::Dyn),
            }),
            _ => None,
        },
    },
    Function {
        name: "zip",
        signature: "zip(List[A], List[B]) -> List[Obj{first: A, second: B}]",
        operation: Named("agent.zip"),
        ty: |t| match t {
            [Type::List(a), Type::List(b)] => Some(Type::list(Type::record([
                ("first".into(), (**a).clone()),
                ("second".into(), (**b).clone()),
            ]))),
            _ => None,
        },
    },
    Function {
        name: "sum",
        signature: "sum(List[Number]) -> Number",
        operation: Named("agent.sum"),
        ty: |t| match t {
            [items] if matches!(items, Type::List(_)) && is(items, &Type::list(Type::Num)) => Some(Type::Num),
            _ => None,
        },
    },
    Function {
        name: "min",
        signature: "min(List[Number | String]) -> Option[…], min(Number, Number) -> Number",
        operation: Named("agent.min"),
        ty: extreme,
    },
    Function {
        name: "max",
        signature: "max(List[Number | String]) -> Option[…], max(Number, Number) -> Number",
        operation: Named("agent.max"),
        ty: extreme,
    },
    Function {
        name: "keys",
        signature: "keys(Map[K, V]) -> List[K]",
        operation: Operation::Prim(Prim::Keys),
        ty: |t| match t {
            [Type::Map(of)] => Some(Type::list(of.0.clone())),
            _ => None,
        },
    },
    Function {
        name: "values",
        signature: "values(Map[K, V]) -> List[V]",
        operation: Operation::OfMap(MapOperation::Values),
        ty: |t| match t {
            [Type::Map(of)] => Some(Type::list(of.1.clone())),
            _ => None,
        },
    },
    Function {
        name: "items",
        signature: "items(Map[K, V]) -> List[Obj{key: K, value: V}]",
        operation: Operation::OfMap(MapOperation::Items),
        ty: |t| match t {
            [Type::Map(of)] => {
                let fields = [("key".into(), of.0.clone()), ("value".into(), of.1.clone())];
                Some(Type::list(Type::record(fields)))
            }
            _ => None,
        },
    },
    Function {
        name: "get",
        signature: "get(Map[K, V], K) -> Option[V], get(Map[K, V], K, V) -> V",
        operation: Operation::OfMap(MapOperation::Get),
        ty: |t| match t {
            [Type::Map(of), key] if is(key, &Type::Str) => Some(looked_up(&of.1)),
            [Type::Map(of), key, other] if is(key, &Type::Str) => super::types::join(&of.1, other),
            _ => None,
        },
    },
    Function {
        name: "has",
        signature: "has(Map[K, V], K) -> Bool",
        operation: Operation::Prim(Prim::Has),
        ty: |t| match t {
            [Type::Map(_), key] => is(key, &Type::Str).then_some(Type::Bool),
            _ => None,
        },
    },
    Function {
        name: "set",
        signature: "set(Map[K, V], K, V) -> Map[K, V]",
        operation: Named("agent.set"),
        ty: |t| match t {
            [Type::Map(of), key, value] if is(key, &Type::Str) => {
                let join = super::types::join;
                Some(Type::map(join(&of.0, key)?, join(&of.1, value)?))
            }
            _ => None,
        },
    },
    Function {
        name: "remove",
        signature: "remove(Map[K, V], K) -> Map[K, V]",
        operation: Named("agent.remove"),
        ty: |t| match t {
            [Type::Map(_), key] => is(key, &Type::Str).then(|| t[0].clone()),
            _ => None,
        },
    },
    Function {
        name: "merge",
        signature: "merge(Map[K, V], Map[K, V]) -> Map[K, V]",
        operation: Named("agent.merge"),
        ty: |t| match t {
            [Type::Map(_), Type::Map(_)] => super::types::join(&t[0], &t[1]),
            _ => None,
        },
    },
    Function {
        name: "starts_with",
        signature: "starts_with(String, String) -> Bool",
        operation: Named("agent.starts_with"),
        ty: |t| all_strings(t, 2).then_some(Type::Bool),
    },
    Function {
        name: "ends_with",
        signature: "ends_with(String, String) -> Bool",
        operation: Named("agent.ends_with"),
        ty: |t| all_strings(t, 2).then_some(Type::Bool),
    },
    Function {
        name: "replace",
        signature: "replace(String, String, String) -> String",
        operation: Named("agent.replace"),
        ty: |t| all_strings(t, 3).then_some(Type::Str),
    },
    Function {
        name: "pad_start",
        signature: "pad_start(String, Number) -> String, pad_start(String, Number, String) -> String",
        operation: Named("agent.pad_start"),
        ty: padded,
    },
    Function {
        name: "pad_end",
        signature: "pad_end(String, Number) -> String, pad_end(String, Number, String) -> String",
        operation: Named("agent.pad_end"),
        ty: padded,
    },
    Function {
        name: "add_days",
        signature: "add_days(Date, Number) -> Date",
        operation: Named("agent.add_days"),
        ty: |t| match t {
            [day, n] => (is(day, &Type::Str) && is(n, &Type::Num)).then_some(Type::Str),
            _ => None,
        },
    },
    Function {
        name: "days_between",
        signature: "days_between(Date, Date) -> Number",
        operation: Named("agent.days_between"),
        ty: |t| all_strings(t, 2).then_some(Type::Num),
    },
    Function {
        name: "seconds",
        signature: "seconds(Duration) -> Number",
        operation: Named("agent.seconds"),
        ty: |t| all_strings(t, 1).then_some(Type::Num),
    },
    Function {
        name: "round",
        signature: "round(Number) -> Number, round(Number, Number) -> Number",
        operation: Named("agent.round"),
        ty: |t| ((1..=2).contains(&t.len()) && t.iter().all(|t| is(t, &Type::Num))).then_some(Type::Num),
    },
    Function {
        name: "floor",
        signature: "floor(Number) -> Number",
        operation: Named("agent.floor"),
        ty: number_to_number,
    },
    Function {
        name: "ceil",
        signature: "ceil(Number) -> Number",
        operation: Named("agent.ceil"),
        ty: number_to_number,
    },
    Function {
        name: "abs",
        signature: "abs(Number) -> Number",
        operation: Named("agent.abs"),
        ty: number_to_number,
    },
    Function {
        name: "fixed",
        signature: "fixed(Number, Number) -> String",
        operation: Named("agent.fixed"),
        ty: |t| (t.len() == 2 && t.iter().all(|t| is(t, &Type::Num))).then_some(Type::Str),
    },
];

/// A function that takes a function.
pub(super) struct Higher {
    /// Its name.
    pub(super) name: &'static str,
    /// Its signature, for messages.
    pub(super) signature: &'static str,
}

/// All functions that take a function, which is their last argument.
pub(super) const HIGHER: &[Higher] = &[
    Higher { name: "map", signature: "map(List[T], x => U) -> List[U]" },
    Higher { name: "filter", signature: "filter(List[T], x => Bool) -> List[T]" },
    Higher { name: "sort_by", signature: "sort_by(List[T], x => key) -> List[T]" },
    Higher { name: "group_by", signature: "group_by(List[T], x => K) -> List[Obj{key: K, items: List[T]}]" },
    Higher { name: "find", signature: "find(List[T], x => Bool) -> Option[T]" },
    Higher { name: "any", signature: "any(List[T], x => Bool) -> Bool" },
    Higher { name: "all", signature: "all(List[T], x => Bool) -> Bool" },
    Higher { name: "count", signature: "count(List[T], x => Bool) -> Number" },
    Higher { name: "fold", signature: "fold(List[T], start, (so_far, x) => next) -> type of start" },
];

/// The function of a name that takes a function.
pub(super) fn higher(name: &str) -> Option<&'static Higher> {
    HIGHER.iter().find(|f| f.name == name)
}

/// Returns whether values of a type have an order that a reader expects.
pub(super) fn is_ordered(t: &Type) -> bool {
    match t {
        Type::Option(t) => is_ordered(t),
        t => [Type::Str, Type::Num, Type::Bool].iter().any(|o| is(t, o)),
    }
}

fn number_to_number(types: &[Type]) -> Option<Type> {
    matches!(types, [t] if is(t, &Type::Num)).then_some(Type::Num)
}

/// The type of the value of a key that a map may lack.
pub(super) fn looked_up(value: &Type) -> Type {
    match value {
        Type::Option(_) | Type::Null | Type::Dyn => value.clone(),
        value => Type::option(value.clone()),
    }
}

fn list_or_text(types: &[Type]) -> Option<Type> {
    match types {
        [Type::List(_)] => Some(types[0].clone()),
        [t] if *t != Type::Dyn => is(t, &Type::Str).then_some(Type::Str),
        _ => None,
    }
}

fn extreme(types: &[Type]) -> Option<Type> {
    match types {
        [Type::List(item)] if is_ordered(item) => Some(Type::option((**item).clone())),
        [a, b] if is(a, &Type::Num) && is(b, &Type::Num) => Some(Type::Num),
        _ => None,
    }
}

fn padded(types: &[Type]) -> Option<Type> {
    match types {
        [s, n, with @ ..] => (is(s, &Type::Str)
            && is(n, &Type::Num)
            && with.len() < 2
            && with.iter().all(|w| is(w, &Type::Str)))
        .then_some(Type::Str),
        _ => None,
    }
}

/// The names of the functions that can be called inside expressions, in the order of the documentation.
pub fn function_names<'a>() -> impl Iterator<Item = &'a str> {
    ALL.iter().map(|f| f.name).chain(HIGHER.iter().map(|f| f.name))
}

/// The signature of a function that can be called inside expressions: `name(types) -> type`, or several of
/// these with `, ` between them.
pub fn function_signature(name: &str) -> Option<&'static str> {
    named(name).map(|f| f.signature).or_else(|| higher(name).map(|f| f.signature))
}

/// The function of a name.
pub(super) fn named(name: &str) -> Option<&'static Function> {
    ALL.iter().find(|f| f.name == name)
}
