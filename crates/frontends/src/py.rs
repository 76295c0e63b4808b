//! Lowering of Python values that front ends share: terms, types, bounds and settings.

use crate::model_requests::Uncounted;
use core_ir::{
    Bound, BoundOrigin, Data, EffectClass, LabelSpec, ModelParams, Name, Num, Term, TermId, ToolDecl,
    ToolParam, Type,
};
use diagnostics::{Diagnostic, Span};
use frontend_kit::emit::{LoopBound, Template, Unused, clip, codes, undecided};
use frontend_kit::kit::{Kit, Splitter, Units};
use frontend_kit::project::{File, Project, UnitKind, modules};
use python::{
    Arg, Framework, FunctionId, Limits, Object, ObjectId, ParamKind, Piece, PyKind, Sources, Value, World,
};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Returns true if a module imports one of these packages.
pub(crate) fn imports(file: &File, packages: &[&str]) -> bool {
    file.python.as_ref().is_some_and(|m| m.imports(packages))
}

/// Returns true if something that a module calls or subclasses has a name that passes the test: see
/// [`python::Source::makes`].
pub(crate) fn makes(file: &File, test: impl Fn(&str) -> bool) -> bool {
    file.python.as_ref().is_some_and(|m| m.makes(test))
}

/// Returns true if a name ends with one of these: `AssistantAgent` with `Agent`.
pub(crate) fn ends_with(name: &str, ends: &[&str]) -> bool {
    ends.iter().any(|end| name.ends_with(end))
}

/// Evaluates a module of a project, what it imports, and what nothing calls in it. `f` is given what was
/// made, and what is to be said of it.
pub(crate) fn evaluated<R>(
    project: &Project,
    file: &File,
    limits: Limits,
    framework: Option<&'static dyn Framework>,
    f: impl FnOnce(World<'_>, Vec<Diagnostic>) -> R,
) -> R {
    let Some(source) = &file.python else {
        let nothing = Sources::new();
        return f(World::new(&nothing, limits), Vec::new());
    };
    let modules = project.modules.clone().unwrap_or_else(|| modules(&project.files));
    modules.among(source.clone(), limits, framework, |world, _| {
        let mut found = Vec::new();
        if let Some((span, message)) = source.syntax_error() {
            found.push(Diagnostic::error(
                frontend_kit::doc::codes::SYNTAX,
                format!("this is not valid Python: {message}"),
                span,
            ));
        }
        if let Some(at) = world.exceeded() {
            let message = match world.is_exhausted() {
                true => {
                    "the module exceeds the evaluation limit; objects that it builds after this are not known"
                }
                false => {
                    "an imported module exceeds the evaluation limit; objects that it builds are not known"
                }
            };
            // A place in another file is no place of a finding of this one.
            let start = Span { file: file.id, start: 0, end: 0 };
            let at = if at.file == file.id { at } else { start };
            found.push(undecided(codes::TOO_MUCH, message, at));
        }
        f(world, found)
    })
}

/// Returns a field of an object: assigned later, or given by keyword or position.
pub(crate) fn field<'w>(object: &'w Object, position: Option<usize>, name: &str) -> Option<Given<'w>> {
    if let Some(value) = object.attr(name) {
        return Some(Given { value, at: value.span });
    }
    let arg = match position {
        Some(position) => object.arg_at(position, name),
        None => object.arg(name),
    };
    arg.map(|Arg { value, span, .. }| Given { value, at: *span })
}

/// A value and the place that gives it.
#[derive(Clone, Copy)]
pub(crate) struct Given<'w> {
    pub value: &'w Value,
    pub at: Span,
}

/// Reports the arguments of a call that are not read: those of the framework with the reason, others as
/// unknown.
pub(crate) fn report(
    object: &Object,
    used: &[&str],
    unused: &[Unused],
    what: &str,
    out: &mut Vec<Diagnostic>,
) {
    for arg in &object.args {
        let Some(name) = &arg.name else { continue };
        if used.contains(&&**name) || arg.value.is_none() {
            continue;
        }
        let d = match unused.iter().find(|(k, _)| *k == &**name) {
            Some((_, why)) => {
                Diagnostic::info(codes::UNUSED_KEY, format!("`{}` is left out: {why}", clip(name)), arg.span)
            }
            None => Diagnostic::info(
                codes::UNKNOWN_KEY,
                format!("`{}` is not an argument of {what}", clip(name)),
                arg.span,
            ),
        };
        out.push(d);
    }
    if let Some(at) = object.open {
        let message = format!("arguments of {what} that are not known");
        out.push(undecided(codes::NOT_COMPILED, message, at));
    }
}

/// A text as a term: what is not known of it are unknown terms in it.
pub(crate) fn text(kit: &mut Kit<'_>, world: &World<'_>, value: &Value, split: Splitter) -> TermId {
    let mut template = Template::new(value.span);
    fill(kit, world, value, &mut template, split);
    let text = template.build(&mut kit.b);
    written(kit, value, text)
}

/// Notes that a text is written where its value is. A caller that is not seen may give another than a
/// default.
pub(crate) fn written(kit: &mut Kit<'_>, value: &Value, text: TermId) -> TermId {
    if matches!(value.kind, PyKind::Str(_)) {
        kit.written(text, !value.is_default);
    }
    text
}

/// Returns true if a module calls something of one of these names, by the last part of the name.
pub(crate) fn calls_one(file: &File, names: &[&str]) -> bool {
    let mut found = false;
    if let Some(module) = &file.python {
        module.texts(&mut |key, name, _| found |= key == python::CALLED && names.contains(&name));
    }
    found
}

/// Adds a text to a template.
pub(crate) fn fill(
    kit: &mut Kit<'_>,
    world: &World<'_>,
    value: &Value,
    template: &mut Template,
    split: Splitter,
) {
    let Some(pieces) = world.text_of(value) else {
        let why = world.unknown_reason(value);
        let unknown = kit.unknown(&why, value.span);
        template.term(unknown);
        return;
    };
    for piece in pieces {
        match piece {
            Piece::Text(t) => kit.fill(template, &t, value.span, split),
            Piece::Hole(hole, written) => {
                let hole = match ambient(kit, world, &hole) {
                    Some(asked) => asked,
                    None => kit.unknown(&written, value.span),
                };
                template.term(hole);
            }
        }
    }
}

/// Modules whose results depend on the time, on chance or on the environment.
const AMBIENT: &[&str] = &["datetime", "time", "random", "uuid", "secrets", "platform", "getpass", "socket"];

/// A call of the kind that [`AMBIENT`] lists: a tool that is named after it, which changes nothing and is
/// trusted.
pub(crate) fn ambient(kit: &mut Kit<'_>, world: &World<'_>, value: &Value) -> Option<TermId> {
    let (_, object) = world.object_of(value)?;
    if object.class.is_some() || !AMBIENT.contains(&object.package()) || object.callee.contains("[]") {
        return None;
    }
    let at = value.span;
    let mut words: Vec<&str> = object.callee.split('.').collect();
    words.dedup();
    let mut decl = ToolDecl::unknown(words.join("_").as_str().into(), at);
    let mut fields: Vec<(Name, TermId)> = Vec::new();
    for (i, arg) in object.args.iter().enumerate() {
        let own: Name = match (&arg.name, i) {
            (Some(name), _) => Name::from(&**name),
            (None, 0) => "input".into(),
            (None, i) => format!("arg{}", i + 1).into(),
        };
        if let Some(data) = data(world, &arg.value)
            && !fields.iter().any(|(n, _)| *n == own)
        {
            let data = kit.b.lit(data, at);
            fields.push((own, data));
        }
    }
    let param = |(n, _): &(Name, TermId)| ToolParam {
        name: n.clone(),
        ty: Type::Dyn,
        bound: LabelSpec::TOP,
        default: None,
    };
    decl.params = fields.iter().map(param).collect();
    decl.effect = EffectClass::Read;
    decl.control = LabelSpec::TOP;
    decl.label = LabelSpec::BOTTOM;
    let id = kit.declared(decl);
    let tool = kit.b.add(Term::Tool(id), at);
    let args = kit.b.add(Term::Record(fields), at);
    Some(kit.b.app(tool, args, at))
}

/// Returns a lower bound of a text's length in bytes, for the budget.
pub(crate) fn length(world: &World<'_>, value: &Value) -> usize {
    world
        .text_of(value)
        .map_or(0, |pieces| pieces.iter().map(|p| if let Piece::Text(t) = p { t.len() } else { 0 }).sum())
}

/// A name: a known text; or the same without what is not known.
pub(crate) fn label(world: &World<'_>, value: &Value) -> Option<String> {
    let pieces = world.text_of(value)?;
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(t) => out.push_str(&t),
            Piece::Hole(_, written) => {
                out.push('{');
                out.push_str(&clip(&written));
                out.push('}');
            }
        }
    }
    Some(out)
}

/// The bound that an argument states.
pub(crate) fn bound(world: &World<'_>, given: Option<Given<'_>>, default: LoopBound) -> LoopBound {
    let Some(Given { value, at }) = given else { return default };
    let settled = world.resolve_env(value);
    let from_environment = !std::ptr::eq(settled, value);
    match &settled.kind {
        PyKind::Int(n) if *n >= 0 => {
            let n = u64::try_from(*n).unwrap_or(0);
            let origin = from_environment.then(|| BoundOrigin::fallback(&world.unknown_reason(value), n));
            LoopBound { origin, ..LoopBound::written(Bound::Finite(n), Some(at)) }
        }
        PyKind::None => LoopBound { span: Some(at), ..LoopBound::none("the limit is switched off") },
        _ => LoopBound { span: Some(at), ..LoopBound::unknown(&world.unknown_reason(value)) },
    }
}

/// A value as data, as far as it is known.
pub(crate) fn data(world: &World<'_>, value: &Value) -> Option<Data> {
    data_within(world, value, &mut 400, 0)
}

fn data_within(world: &World<'_>, value: &Value, budget: &mut usize, depth: usize) -> Option<Data> {
    *budget = budget.checked_sub(1)?;
    if depth > 32 {
        return None;
    }
    let value = world.resolve_env(value);
    Some(match &value.kind {
        PyKind::None => Data::Null,
        PyKind::Bool(b) => Data::Bool(*b),
        PyKind::Int(n) => Data::Num(Num::from(*n)),
        PyKind::Float(_) => Data::Num(number(value)?),
        PyKind::Str(s) => Data::str(s.clone()),
        PyKind::List(id) => {
            let items = world.list(*id).items.iter().map(|v| data_within(world, v, budget, depth + 1));
            Data::list(items.collect::<Option<Vec<_>>>()?)
        }
        PyKind::Dict(id) => {
            let mut fields: Vec<(Name, Data)> = Vec::new();
            for (k, v) in &world.dict(*id).entries {
                let name = Name::from(k.as_str()?);
                let data = data_within(world, v, budget, depth + 1)?;
                fields.retain(|(n, _)| *n != name);
                fields.push((name, data));
            }
            Data::record(fields)
        }
        _ => return None,
    })
}

/// A number.
pub(crate) fn number(value: &Value) -> Option<Num> {
    match value.kind {
        PyKind::Int(n) => Some(Num::from(n)),
        PyKind::Float(f) if f.is_finite() => f.to_string().parse().ok(),
        _ => None,
    }
}

/// Adds a parameter of the model, unless it is a secret.
pub(crate) fn setting(
    world: &World<'_>,
    name: &str,
    given: Given<'_>,
    params: &mut ModelParams,
    out: &mut Vec<Diagnostic>,
) {
    let lower = name.to_ascii_lowercase();
    let secret = ["api_key", "apikey", "secret", "password", "access_key"].iter().any(|s| lower.contains(s));
    let value = world.resolve_env(given.value);
    if secret {
        let message = format!("`{}` is left out: keys come from the environment", clip(name));
        out.push(Diagnostic::info(codes::UNUSED_KEY, message, given.at));
        return;
    }
    let whole = |v: &Value| match v.kind {
        PyKind::Int(n) => u64::try_from(n).ok(),
        _ => None,
    };
    match name {
        _ if value.is_none() => {}
        "temperature" => params.temperature = number(value).or(params.temperature.take()),
        "max_tokens" | "max_output_tokens" | "max_completion_tokens" => {
            params.max_tokens = whole(value).or(params.max_tokens);
        }
        _ => match data(world, value) {
            Some(data) if !params.extra.iter().any(|(n, _)| &**n == name) => {
                params.extra.push((Name::from(name), data));
            }
            Some(_) => {}
            None => {
                let message = format!(
                    "`{}` is left out: {} is not a constant",
                    clip(name),
                    world.unknown_reason(value)
                );
                out.push(Diagnostic::info(codes::UNUSED_KEY, message, given.at));
            }
        },
    }
}

/// Reads a model: a name, or an object that is made with one.
pub(crate) fn model(
    world: &World<'_>,
    given: Option<Given<'_>>,
    params: &mut ModelParams,
    kit: &mut Kit<'_>,
) -> Option<Span> {
    const NAMES: &[&str] = &["model", "model_name", "model_id", "deployment_name", "azure_deployment"];
    let Given { value, at } = given?;
    let settled = world.resolve_env(value);
    match &settled.kind {
        PyKind::None => return None,
        PyKind::Str(name) => params.model = Some(name.trim()).filter(|n| !n.is_empty()).map(Name::from),
        PyKind::Object(id) => {
            let object = world.object(*id);
            let named = NAMES.iter().find_map(|n| field(object, None, n));
            let named = named.or_else(|| field(object, Some(0), "model"));
            let name = named.and_then(|g| world.str(g.value));
            params.model = name.map(|n| Name::from(n.trim()));
            for arg in &object.args {
                if let Some(name) = arg.name.as_deref().filter(|n| !NAMES.contains(n)) {
                    setting(world, name, Given { value: &arg.value, at: arg.span }, params, kit.out);
                }
            }
            if params.model.is_none() {
                kit.unknown_model(format!("which model `{}` is", object.callee), at);
            }
        }
        _ => {
            kit.unknown_model(format!("the model is not known: {}", world.unknown_reason(value)), at);
        }
    }
    Some(at)
}

/// Types within one another.
const MAX_TYPE_DEPTH: usize = 12;

/// The type that an annotation says; anything for what is not known here.
pub(crate) fn type_of(world: &World<'_>, annotation: &Value) -> Type {
    type_within(world, annotation, 0)
}

fn type_within(world: &World<'_>, annotation: &Value, depth: usize) -> Type {
    if depth > MAX_TYPE_DEPTH {
        return Type::Dyn;
    }
    let inner = |v: &Value| type_within(world, v, depth + 1);
    match &annotation.kind {
        PyKind::None => Type::Null,
        PyKind::External(name) => match name.rsplit('.').next().unwrap_or(name) {
            "str" => Type::Str,
            "int" | "float" => Type::Num,
            "bool" => Type::Bool,
            "list" | "List" => Type::list(Type::Dyn),
            _ => Type::Dyn,
        },
        PyKind::Str(name) => match &**name {
            "str" => Type::Str,
            "int" | "float" => Type::Num,
            "bool" => Type::Bool,
            _ => Type::Dyn,
        },
        PyKind::Class(id) => {
            let is_enum = world.derives(*id, |n| n.ends_with("Enum"));
            let class = world.class(*id);
            if is_enum {
                let variants: Vec<Name> =
                    class.attrs.iter().filter_map(|(_, v)| v.as_str().map(Name::from)).collect();
                return enumeration(&class.name, variants);
            }
            let fields = world.fields(*id);
            if fields.is_empty() {
                return Type::Dyn;
            }
            Type::record(fields.iter().map(|f| (Name::from(&*f.name), inner(&f.annotation))))
        }
        PyKind::Object(id) => {
            let object = world.object(*id);
            let args: Vec<&Value> = object.args.iter().map(|a| &a.value).collect();
            let name = object.callee.trim_end_matches("[]");
            match (name.rsplit('.').next().unwrap_or(name), &args[..]) {
                ("|" | "Union", parts) => {
                    let some: Vec<&Value> = parts.iter().filter(|v| !v.is_none()).copied().collect();
                    match &some[..] {
                        [one] if some.len() < parts.len() => Type::option(inner(one)),
                        [one] => inner(one),
                        _ => Type::Dyn,
                    }
                }
                ("Optional", [one]) => Type::option(inner(one)),
                ("list" | "List" | "Sequence" | "Iterable", [one]) => Type::list(inner(one)),
                ("Annotated", [one, ..]) => inner(one),
                ("Literal", parts) => {
                    enumeration("Literal", parts.iter().filter_map(|v| v.as_str().map(Name::from)).collect())
                }
                _ => Type::Dyn,
            }
        }
        _ => Type::Dyn,
    }
}

fn enumeration(name: &str, mut variants: Vec<Name>) -> Type {
    let mut seen = std::collections::HashSet::new();
    variants.retain(|v| seen.insert(v.clone()));
    if variants.is_empty() {
        return Type::Dyn;
    }
    Type::Enum(Arc::new(core_ir::EnumType::new(name, variants)))
}

/// The signature of a tool that a function is. Parameters that a framework fills in itself are left out by
/// `hidden`.
pub(crate) fn signature(
    world: &World<'_>,
    function: FunctionId,
    name: &str,
    at: Span,
    hidden: impl Fn(&World<'_>, &Value) -> bool,
) -> ToolDecl {
    let f = world.function(function);
    let mut decl = ToolDecl::unknown(name.into(), at);
    decl.description = f.doc.as_deref().map(|d| Name::from(summary(d)));
    decl.params = f
        .own_params()
        .iter()
        .filter(|p| matches!(p.kind, ParamKind::Plain | ParamKind::Keyword))
        .filter(|p| p.annotation.as_ref().is_none_or(|a| !hidden(world, a)))
        .map(|p| {
            let ty = p.annotation.as_ref().map_or(Type::Dyn, |a| type_of(world, a));
            let ty = match (&p.default, ty) {
                (Some(_), Type::Dyn) => Type::Dyn,
                (Some(_), ty @ Type::Option(_)) => ty,
                (Some(_), ty) => Type::option(ty),
                (None, ty) => ty,
            };
            // An argument that is left out is `null`. The type doesn't say so here.
            let default = (p.default.is_some() && ty == Type::Dyn).then_some(Data::Null);
            ToolParam { name: Name::from(&*p.name), ty, bound: LabelSpec::BOTTOM, default }
        })
        .collect();
    if matches!(&f.returns, Some(v) if matches!(&v.kind, PyKind::External(n) if &**n == "builtins.str")) {
        decl.result = Type::Str;
    }
    // What stands in a class or in another function can't be called from outside.
    let of_module = world.sources().get(f.module).is_some_and(|m| {
        f.class.is_none()
            && f.qualified
                .strip_suffix(&*f.name)
                .is_some_and(|q| q.strip_suffix('.') == Some(m.module_name()))
    });
    if of_module {
        decl.handler = handler(world, f.module, &f.name);
    }
    decl
}

/// Returns the handler that lets the runtime call a function, or a class of tools, of a module.
pub(crate) fn handler(world: &World<'_>, module: usize, name: &str) -> Option<Data> {
    let path = &world.sources().get(module)?.path;
    let words = [Data::str(path.as_str()), Data::str(name)];
    Some(Data::record([(Name::from("python"), Data::list(words))]))
}

/// Returns a docstring up to its list of parameters.
pub(crate) fn summary(doc: &str) -> &str {
    let stops = [
        "\nArgs:",
        "\n    Args:",
        "\nParameters",
        "\n    Parameters",
        "\nReturns:",
        "\n    Returns:",
        "\n:param",
    ];
    let end = stops.iter().filter_map(|s| doc.find(s)).min().unwrap_or(doc.len());
    doc[..end].trim()
}

/// The function that a value is, through a decorator or a call that makes a tool of it.
pub(crate) fn function_of(value: &Value) -> Option<FunctionId> {
    match &value.kind {
        PyKind::Function(id) | PyKind::Bound(_, id) => Some(*id),
        _ => None,
    }
}

/// The function that an object wraps: the only one among its arguments, as in `FunctionTool(f)` and
/// `FunctionTool.from_defaults(name="f", func=f)`.
pub(crate) fn wrapped(object: &Object) -> Option<FunctionId> {
    let mut functions = object.args.iter().filter_map(|arg| function_of(&arg.value));
    let first = functions.next()?;
    functions.next().is_none().then_some(first)
}

/// Values that a list of tools is made of, and lists within one another.
const MAX_LISTED: (usize, usize) = (1_000, 12);

/// Calls whose items are those of an argument: copies, selections and concatenations.
const SAME_ITEMS: &[&str] =
    &["+", "builtins.filter", "builtins.list", "builtins.set", "builtins.sorted", "builtins.tuple"];

/// The tools that a value lists: items of a list, of each of several lists that it may be, and of lists that
/// it is joined of. A call outside the project that gives tools, such as `toolkit.get_tools()`, represents
/// them, and so does an unknown value at the place where a list takes in what is not known.
pub(crate) fn tool_list(world: &World<'_>, value: &Value) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    let mut alternatives = false;
    // The last is looked at first.
    let mut todo: Vec<(Value, bool, usize)> = vec![(value.clone(), true, 0)];
    for _ in 0..MAX_LISTED.0 {
        let Some((value, is_list, depth)) = todo.pop() else { break };
        let settled = world.resolve_env(&value);
        let maybe = value.maybe || settled.maybe;
        let part =
            |v: &Value, is_list: bool| (Value { maybe: maybe || v.maybe, ..v.clone() }, is_list, depth + 1);
        match &settled.kind {
            _ if depth > MAX_LISTED.1 => out.push(value),
            PyKind::None => {}
            PyKind::List(id) => {
                let list = world.list(*id);
                todo.extend(list.open.map(|at| (unlisted(world, at), false, depth + 1)));
                todo.extend(list.items.iter().rev().map(|v| part(v, false)));
            }
            PyKind::Either(id) => {
                alternatives = true;
                let all = world.list(*id).items.iter().rev();
                todo.extend(all.map(|v| {
                    let (v, ..) = part(v, is_list);
                    (Value { maybe: true, ..v }, is_list, depth + 1)
                }));
            }
            PyKind::Unknown(_) if is_list => out.push(Value { maybe: true, ..value }),
            PyKind::Dict(id) if is_list => {
                let dict = world.dict(*id);
                todo.extend(dict.open.map(|at| (unlisted(world, at), false, depth + 1)));
                todo.extend(dict.entries.iter().rev().map(|(_, v)| part(v, false)));
            }
            PyKind::Object(id) => {
                let object = world.object(*id);
                // What was added later: `tools.append(run)`.
                for call in object.calls.iter().rev() {
                    let args = world.object(call.result).args.iter().rev();
                    match &*call.name {
                        "append" => todo.extend(args.map(|a| part(&a.value, false))),
                        "extend" => todo.extend(args.map(|a| part(&a.value, true))),
                        _ => {}
                    }
                }
                match SAME_ITEMS.contains(&&*object.callee) && object.base.is_none() {
                    true => {
                        // The first argument of `filter` decides what is left.
                        let first = usize::from(&*object.callee == "builtins.filter");
                        todo.extend(object.args.iter().skip(first).rev().map(|a| part(&a.value, true)));
                    }
                    false => out.push(value),
                }
            }
            _ => out.push(value),
        }
    }
    if alternatives { each_once(world, out) } else { out }
}

/// Tools of which those that several alternatives have are one.
pub(crate) fn each_once(world: &World<'_>, tools: Vec<Value>) -> Vec<Value> {
    let mut once: Vec<Value> = Vec::new();
    for value in tools {
        let again = |known: &Value| known.maybe && value.maybe && is_same_tool(world, known, &value);
        if !once.iter().any(again) {
            once.push(value);
        }
    }
    once
}

/// Returns true if it is only known when a program runs whether an agent has a tool: all that it is given are
/// unknown, or each is added under a condition. `tools` are those that the value lists.
pub(crate) fn are_tools_of_run(world: &World<'_>, value: &Value, tools: &[Value]) -> bool {
    let all_maybe = match &world.resolve_env(value).kind {
        PyKind::List(list) => world.list(*list).items.iter().all(|item| item.maybe),
        _ => false,
    };
    !tools.is_empty() && (all_maybe || tools.iter().all(|t| matches!(t.kind, PyKind::Unknown(_))))
}

/// Returns true if two values are the same tool, or are made by calls that do the same.
fn is_same_tool(world: &World<'_>, one: &Value, other: &Value) -> bool {
    if let (Some(a), Some(b)) = (function_of(one), function_of(other)) {
        return a == b || world.function(a).name == world.function(b).name;
    }
    let (Some((id, a)), Some((other, b))) = (world.object_of(one), world.object_of(other)) else {
        return false;
    };
    let is_same_arg = |(x, y): (&python::Arg, &python::Arg)| {
        let text = world.str(&x.value);
        x.name == y.name && (text.is_some() && text == world.str(&y.value) || x.value.span == y.value.span)
    };
    let calls = a.callee == b.callee && a.class == b.class && a.base == b.base && a.calls.is_empty();
    id == other || calls && a.args.len() == b.args.len() && a.args.iter().zip(&b.args).all(is_same_arg)
}

/// Returns true if a class of the project is a model whose method computes the replies itself, without a call
/// that could reach a model. `is_model` tells the base classes of models.
pub(crate) fn replies_itself(
    world: &World<'_>,
    class: python::ClassId,
    method: &str,
    is_model: impl Fn(&str) -> bool,
) -> bool {
    const MAKES: &[&str] = &[
        "AIMessage",
        "AIMessageChunk",
        "AssertionError",
        "ChatGeneration",
        "ChatResult",
        "Content",
        "FunctionCall",
        "IndexError",
        "LlmResponse",
        "Part",
        "RuntimeError",
        "ValueError",
        "all",
        "any",
        "append",
        "endswith",
        "format",
        "get",
        "getattr",
        "isinstance",
        "iter",
        "join",
        "len",
        "lower",
        "model_copy",
        "next",
        "pop",
        "reversed",
        "split",
        "startswith",
        "str",
        "strip",
        "upper",
    ];
    let Some((value, _)) = world.class_lookup(class, method) else { return false };
    let PyKind::Function(id) = value.kind else { return false };
    let found = crate::scan::scan(world.function(id).body());
    let makes = |call: &ruff_python_ast::ExprCall| match &*call.func {
        ruff_python_ast::Expr::Name(n) => MAKES.contains(&n.id.as_str()),
        ruff_python_ast::Expr::Attribute(a) => MAKES.contains(&a.attr.as_str()),
        _ => false,
    };
    world.derives(class, is_model) && found.calls.iter().all(|c| makes(c))
}

/// Agents of one expression that are told apart by their tools.
const MAX_DISTINCT: usize = 8;

/// Agents without repetitions: of those that one expression makes, the ones with different tools. An agent
/// without some of the tools of another one is made of what is not known, or of a part of it.
///
/// If one expression of the file makes too many, a unit of which nothing is known represents the rest.
pub(crate) fn distinct<'v>(
    units: &mut Units,
    (world, file): (&'v World<'_>, &File),
    ids: impl IntoIterator<Item = ObjectId>,
    tools: impl Fn(ObjectId) -> Option<&'v Value>,
) -> HashSet<ObjectId> {
    let mut by_place: BTreeMap<Span, Vec<(ObjectId, HashSet<Span>)>> = BTreeMap::new();
    let mut rest: BTreeMap<Span, ObjectId> = BTreeMap::new();
    for id in ids {
        let known = |v: &Value| match v.kind {
            PyKind::Function(f) | PyKind::Bound(_, f) => Some(world.function(f).name_span),
            PyKind::Unknown(_) => None,
            _ => Some(v.span),
        };
        let listed = tools(id).map(|v| tool_list(world, v)).unwrap_or_default();
        let listed: HashSet<Span> = listed.iter().filter_map(known).collect();
        let span = world.object(id).span;
        let others = by_place.entry(span).or_default();
        if others.iter().any(|(_, other)| listed.is_subset(other)) {
            continue;
        }
        others.retain(|(_, other)| !other.is_subset(&listed));
        match others.len() < MAX_DISTINCT {
            true => others.push((id, listed)),
            false => drop(rest.entry(span).or_insert(id)),
        }
    }
    for (span, id) in rest {
        if made_here(world, id, file) {
            let why = format!("more than {MAX_DISTINCT} agents with different tools are made here");
            units.add("other agents", UnitKind::Agent, span, |kit| {
                kit.undecided(codes::NOT_COMPILED, why, span)
            });
        }
    }
    by_place.into_values().flatten().map(|(id, _)| id).collect()
}

/// The value that a list takes in at a place: the result of the call there, or something that is not known.
fn unlisted(world: &World<'_>, at: Span) -> Value {
    match world.last_made_at(at, |object| object.class.is_none()) {
        Some(id) => Value::new(PyKind::Object(id), at),
        None => Value { maybe: true, ..Value::unknown("tools that are not known", at) },
    }
}

/// Returns true for a value that represents the tools of a list that are not known. Whoever reads the list
/// has said so.
pub(crate) fn is_rest(value: &Value) -> bool {
    value.maybe && matches!(value.kind, PyKind::Unknown(_))
}

/// Says that a tool is not known. One of another package asks no model; nothing is known of any other.
pub(crate) fn unknown_tool(kit: &mut Kit<'_>, world: &World<'_>, value: &Value) {
    if is_rest(value) {
        return;
    }
    let message = format!("a tool that is not known: {}", world.unknown_reason(value));
    match outside(value) {
        Some(_) => kit.out.push(undecided(codes::NOT_COMPILED, message, value.span)),
        None => kit.left_out(message, value.span),
    }
}

/// The argument of a decorator that is called with arguments.
pub(crate) fn decorator_arg<'w>(
    world: &'w World<'_>,
    function: FunctionId,
    decorators: &[&str],
    position: Option<usize>,
    name: &str,
) -> Option<&'w Value> {
    let (_, object) = world.object_of(world.decorator(function, decorators)?)?;
    field(object, position, name).map(|g| g.value)
}

/// Returns the name of something outside the project: `search` of `tools.web.search`.
pub(crate) fn outside(value: &Value) -> Option<String> {
    match &value.kind {
        PyKind::External(name) => name.rsplit('.').next().filter(|n| !n.is_empty()).map(str::to_string),
        _ => None,
    }
}

/// Returns true if an object was made in a file.
pub(crate) fn made_in(object: &Object, file: &File) -> bool {
    object.span.file == file.id
}

/// Returns true if an object was made in a file, or by a function of another module that something of the
/// file is given to: `make(tools=[search])`, with the tools of this file.
pub(crate) fn made_here(world: &World<'_>, id: ObjectId, file: &File) -> bool {
    let object = world.object(id);
    made_in(object, file) || object.within.is_some() && world.is_own(id) && is_given(world, object, file)
}

/// Returns true if a function, a class or an object of a file is among the arguments of a call.
fn is_given(world: &World<'_>, object: &Object, file: &File) -> bool {
    const MAX_VALUES: usize = 200;
    let mut todo: Vec<&Value> = object.args.iter().map(|a| &a.value).collect();
    for _ in 0..MAX_VALUES {
        let Some(value) = todo.pop() else { break };
        let span = match &value.kind {
            PyKind::Function(f) | PyKind::Bound(_, f) => world.function(*f).span,
            PyKind::Class(c) => world.class(*c).span,
            PyKind::Object(id) => world.object(*id).span,
            // A list that is written here, of what is imported.
            PyKind::List(_) if value.span.file == file.id => return true,
            PyKind::List(id) | PyKind::Either(id) => {
                todo.extend(&world.list(*id).items);
                continue;
            }
            PyKind::Dict(id) => {
                todo.extend(world.dict(*id).entries.iter().map(|(_, v)| v));
                continue;
            }
            _ => continue,
        };
        if span.file == file.id {
            return true;
        }
    }
    false
}

/// Number of times that a program runs an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// At most this many; the place of the last run.
    AtMost(u64, Span),
    /// Not known, for the reason given.
    Unknown(String, Span),
}

/// Says in a term how often it is run, and why calls beside those of the term are made, if any.
pub(crate) fn counted(
    kit: &mut Kit<'_>,
    term: TermId,
    runs: Option<Runs>,
    beside: impl FnOnce() -> Option<Uncounted>,
) -> TermId {
    let beside = match runs {
        Some(Runs::Unknown(ref why, at)) => Some((why.clone(), at)),
        _ => beside(),
    };
    match (beside, runs) {
        (Some((why, at)), _) => kit.uncounted(term, &why, at),
        (None, Some(Runs::AtMost(n @ 2.., at))) => kit.repeated(term, n, "it is run more than once", at),
        (None, _) => term,
    }
}

/// The same where a run goes on from the state that the one before left: what the term says holds for the
/// first run alone.
pub(crate) fn resumed(runs: Option<Runs>) -> Option<Runs> {
    runs.map(|runs| match runs {
        Runs::AtMost(2.., at) => {
            Runs::Unknown("it is run again, from the state that the run before left".into(), at)
        }
        other => other,
    })
}

/// Number of times that a program runs an object, of the calls that run it, by their objects. `None` if there
/// is no call.
pub(crate) fn repeats(world: &World<'_>, runs: &[ObjectId]) -> Option<Runs> {
    repeats_of(world, runs, |_| 1)
}

/// The same where a call runs it several times.
pub(crate) fn repeats_of(
    world: &World<'_>,
    runs: &[ObjectId],
    times: impl Fn(&ObjectId) -> u64,
) -> Option<Runs> {
    const MAX_CALLERS: usize = 400;
    let runs: Vec<(&Object, u64)> = runs.iter().map(|id| (world.object(*id), times(id))).collect();
    let last = runs.last()?.0.span;
    if let Some((run, _)) = runs.iter().find(|(o, _)| o.repeated) {
        return Some(Runs::Unknown("it runs again an unknown number of times".into(), run.span));
    }
    if runs.len() > MAX_CALLERS {
        return Some(Runs::Unknown("it is run in too many places".into(), last));
    }
    // What nothing calls is begun by somebody, one function at a time.
    type Begun<'a> = ((bool, Option<FunctionId>), Vec<(&'a Object, u64)>);
    let mut begun: Vec<Begun> = Vec::new();
    for run in runs {
        let by = (run.0.explored, run.0.within.filter(|_| run.0.explored));
        match begun.iter_mut().find(|(function, _)| *function == by) {
            Some((_, of)) => of.push(run),
            None => begun.push((by, vec![run])),
        }
    }
    let most = begun.iter().map(|(_, of)| together(of)).max().unwrap_or(1);
    Some(Runs::AtMost(most, last))
}

/// The most of some runs that one evaluation makes. Runs on different sides of an `if` exclude each other.
fn together(runs: &[(&Object, u64)]) -> u64 {
    let mut groups: Vec<Vec<(&Object, u64)>> = Vec::new();
    for run in runs {
        // A group holds runs of which at most one is made.
        match groups.iter_mut().find(|g| g.iter().all(|(o, _)| o.excludes(run.0))) {
            Some(group) => group.push(*run),
            None => groups.push(vec![*run]),
        }
    }
    let most = |g: &Vec<(&Object, u64)>| g.iter().map(|(o, n)| o.times.saturating_mul(*n)).max();
    groups.iter().map(|g| most(g).unwrap_or(0)).fold(0, u64::saturating_add)
}

/// The objects that something outside the project made under a name, in the order of the source.
pub(crate) fn made_by<'w>(
    world: &'w World<'_>,
    test: impl Fn(&Object) -> bool + 'w,
) -> impl Iterator<Item = (ObjectId, &'w Object)> {
    world.objects().filter(move |(_, o)| test(o))
}
