//! Classes whose instances are data.

use super::hints::{Referent, is_typing, literal, option};
use super::{DataClass, Hint, Instances, Reason, RecordField, SignatureReader};
use diagnostics::{Span, clip};
use ruff_python_ast::{Arguments, Expr, ExprCall, Stmt, StmtClassDef};
use ruff_text_size::Ranged;
use std::collections::HashMap;

/// Classes that the functions of one module mention.
const MAX_CLASSES: usize = 1_000;
/// Classes from which another one derives, each from the next.
const MAX_BASES: usize = 20;
/// Fields of a class, or members of an `Enum`.
const MAX_FIELDS: usize = 1_000;

/// The classes that were met, in the order in which they were.
#[derive(Default)]
pub(super) struct Classes<'a> {
    all: Vec<(usize, &'a StmtClassDef, Kind)>,
    numbers: HashMap<Span, usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Enum,
    Dataclass,
    Pydantic,
    TypedDict,
}

/// Fields as a class and its bases state them.
#[derive(Default)]
struct Fields {
    all: Vec<RecordField>,
    not_given: Option<Reason>,
}

impl<'a> SignatureReader<'a> {
    /// The number of a class. Its fields are read later.
    pub(super) fn class_number(&mut self, module: usize, class: &'a StmtClassDef) -> Result<usize, Reason> {
        let span = self.span(module, class.name.range);
        if let Some(number) = self.classes.numbers.get(&span) {
            return Ok(*number);
        }
        let kind = self.kind(module, class, 0)?;
        if self.classes.all.len() >= MAX_CLASSES {
            let why = format!("it mentions more than {MAX_CLASSES} classes");
            return Err(Reason { why, help: "state a type of fewer parts".into(), at: span });
        }
        let number = self.classes.all.len();
        self.classes.all.push((module, class, kind));
        self.classes.numbers.insert(span, number);
        Ok(number)
    }

    /// Reads the classes that were met, and those that they mention.
    pub(super) fn read_classes(&mut self) -> Vec<DataClass> {
        let mut out = Vec::new();
        while let Some((module, class, kind)) = self.classes.all.get(out.len()).copied() {
            let read = match kind {
                Kind::Enum => self.members(module, class),
                _ => self
                    .fields(module, class, kind, 0)
                    .map(|f| Instances::Records { fields: f.all, not_given: f.not_given }),
            };
            let instances = read.unwrap_or_else(Instances::Unknown);
            let span = self.span(module, class.name.range);
            out.push(DataClass { name: class.name.id.to_string(), instances, span });
        }
        out
    }

    fn unclear(&self, module: usize, at: impl Ranged, class: &StmtClassDef, why: &str) -> Reason {
        Reason {
            why: format!("the class `{}` {why}", clip(class.name.id.as_str())),
            help: "state a dataclass, a `TypedDict` or a model of Pydantic with fields of plain types".into(),
            at: self.span(module, at),
        }
    }

    fn kind(&mut self, module: usize, class: &'a StmtClassDef, depth: usize) -> Result<Kind, Reason> {
        let unknown = "is neither an `Enum`, a `TypedDict`, a dataclass nor a model of Pydantic";
        let no = |r: &Self, why: &str| Err(r.unclear(module, class.name.range, class, why));
        if depth > MAX_BASES {
            return no(self, "has too many bases");
        }
        if class.type_params.is_some() {
            return no(self, "has parameters");
        }
        let mut kind = None;
        for decorator in &class.decorator_list {
            let (callee, arguments) = match &decorator.expression {
                Expr::Call(call) => (&*call.func, Some(&call.arguments)),
                other => (other, None),
            };
            let name = self.qualified(module, callee);
            match name.as_deref() {
                Some("dataclasses.dataclass" | "pydantic.dataclasses.dataclass")
                    if kind.is_none() && arguments.is_none_or(keeps_init) =>
                {
                    kind = Some(Kind::Dataclass);
                }
                Some("typing.final" | "enum.unique") => {}
                _ => return no(self, "has a decorator that may change it"),
            }
        }
        let arguments = class.arguments.as_deref();
        let mut bases = Vec::new();
        for base in arguments.map_or(&[][..], |a| &a.args) {
            let of = match self.referent(module, base, 0) {
                Referent::Class(of, def) => Some(self.kind(of, def, depth + 1)?),
                Referent::External(name) => match name.as_str() {
                    "builtins.object" | "abc.ABC" => continue,
                    "enum.Enum" | "enum.IntEnum" | "enum.StrEnum" => Some(Kind::Enum),
                    // `class Level(str, Enum)`
                    "builtins.str" | "builtins.int" => continue,
                    "pydantic.BaseModel" | "pydantic.main.BaseModel" => Some(Kind::Pydantic),
                    _ if is_typing(&name, "TypedDict") => Some(Kind::TypedDict),
                    _ => None,
                },
                _ => None,
            };
            match of {
                Some(of) => bases.push(of),
                None => return no(self, unknown),
            }
        }
        match (kind, &bases[..]) {
            (Some(kind), []) => Ok(kind),
            (Some(Kind::Dataclass), [Kind::Dataclass]) => Ok(Kind::Dataclass),
            // What derives from a dataclass and is none has the fields of that one.
            (None, [one]) if *one != Kind::Dataclass => Ok(*one),
            _ => no(self, unknown),
        }
    }

    /// The values of an `Enum`.
    fn members(&mut self, module: usize, class: &'a StmtClassDef) -> Result<Instances, Reason> {
        let (mut texts, mut numbers) = (Vec::new(), Vec::new());
        let values = |why| self.unclear(module, class.name.range, class, why);
        for statement in &class.body {
            let (target, value) = match statement {
                Stmt::Assign(assign) => (&assign.targets[..], &assign.value),
                Stmt::FunctionDef(def) if !def.name.id.as_str().starts_with("__") => {
                    if matches!(def.name.id.as_str(), "_missing_" | "_generate_next_value_") {
                        return Err(values("computes its values"));
                    }
                    continue;
                }
                Stmt::FunctionDef(def) if matches!(def.name.id.as_str(), "__str__" | "__repr__") => continue,
                Stmt::Pass(_) | Stmt::Expr(_) => continue,
                _ => return Err(values("has members whose values are not written")),
            };
            let [Expr::Name(name)] = target else {
                return Err(values("has members whose values are not written"));
            };
            if name.id.as_str().starts_with('_') {
                return Err(values("computes its values"));
            }
            match literal(value) {
                Some(Hint::Texts(text)) => texts.extend(text),
                Some(Hint::Numbers(number)) => numbers.extend(number),
                _ => return Err(values("has members whose values are not written")),
            }
        }
        if texts.len() + numbers.len() > MAX_FIELDS {
            return Err(values("has too many members"));
        }
        let once = |all: Vec<String>| {
            let mut seen = std::collections::HashSet::new();
            all.into_iter().filter(|t| seen.insert(t.clone())).collect::<Vec<_>>()
        };
        match (texts.is_empty(), numbers.is_empty()) {
            (false, true) => Ok(Instances::Texts(once(texts))),
            (true, false) => {
                numbers.sort_unstable();
                numbers.dedup();
                Ok(Instances::Numbers(numbers))
            }
            _ => Err(values("has no members, or members of several types")),
        }
    }

    fn fields(
        &mut self,
        module: usize,
        class: &'a StmtClassDef,
        kind: Kind,
        depth: usize,
    ) -> Result<Fields, Reason> {
        let mut fields = Fields::default();
        let arguments = class.arguments.as_deref();
        for base in arguments.map_or(&[][..], |a| &a.args) {
            if let Referent::Class(of, def) = self.referent(module, base, 0)
                && depth < MAX_BASES
            {
                fields = self.fields(of, def, kind, depth + 1)?;
            }
        }
        let mut is_total = true;
        for keyword in arguments.map_or(&[][..], |a| &a.keywords) {
            let name = keyword.arg.as_ref().map_or("", |n| n.id.as_str());
            match (kind, name, &keyword.value) {
                (Kind::TypedDict, "total", Expr::BooleanLiteral(b)) => is_total = b.value,
                (Kind::Pydantic, name, _) if PLAIN_SETTINGS.contains(&name) => {}
                _ => {
                    return Err(self.unclear(
                        module,
                        keyword.range,
                        class,
                        "has settings that may change it",
                    ));
                }
            }
        }
        for statement in &class.body {
            match statement {
                Stmt::AnnAssign(assign) => {
                    let Expr::Name(name) = &*assign.target else { continue };
                    let name = name.id.as_str();
                    if kind == Kind::Pydantic && name.starts_with('_') {
                        continue;
                    }
                    if name == "model_config" {
                        return Err(self.unclear(
                            module,
                            assign.range,
                            class,
                            "has settings that may change it",
                        ));
                    }
                    let value = assign.value.as_deref();
                    let Some(field) = self.field(
                        module,
                        class,
                        kind,
                        (name, &assign.annotation, value, is_total),
                        &mut fields.not_given,
                    )?
                    else {
                        continue;
                    };
                    match fields.all.iter_mut().find(|f| f.name == field.name) {
                        Some(known) => *known = field,
                        None => fields.all.push(field),
                    }
                    if fields.all.len() > MAX_FIELDS {
                        return Err(self.unclear(module, class.name.range, class, "has too many fields"));
                    }
                }
                Stmt::FunctionDef(def) => self.method(module, class, kind, def, &mut fields)?,
                Stmt::Assign(assign) => match &assign.targets[..] {
                    [Expr::Name(name)] if kind == Kind::Pydantic && name.id.as_str() == "model_config" => {
                        let is_plain = match &*assign.value {
                            Expr::Call(call) => call.arguments.args.is_empty() && has_plain_settings(call),
                            _ => false,
                        };
                        if !is_plain {
                            let why = "has settings that may change it";
                            return Err(self.unclear(module, assign.range, class, why));
                        }
                    }
                    // A field of a base gets another default.
                    [Expr::Name(name)] if fields.all.iter().any(|f| f.name == name.id.as_str()) => {
                        let why = "changes a field of its base";
                        return Err(self.unclear(module, assign.range, class, why));
                    }
                    _ => {}
                },
                Stmt::Pass(_) | Stmt::Expr(_) => {}
                other => {
                    let why = "has a body of more than fields and methods";
                    return Err(self.unclear(module, other.range(), class, why));
                }
            }
        }
        Ok(fields)
    }

    /// A method may change what a class takes, or how it is written as data.
    fn method(
        &mut self,
        module: usize,
        class: &StmtClassDef,
        kind: Kind,
        def: &'a ruff_python_ast::StmtFunctionDef,
        fields: &mut Fields,
    ) -> Result<(), Reason> {
        let name = def.name.id.as_str();
        if kind == Kind::Pydantic {
            let mut decorators = def.decorator_list.iter().map(|d| match &d.expression {
                Expr::Call(call) => &*call.func,
                other => other,
            });
            let serializes = decorators.any(|d| {
                self.qualified(module, d).is_some_and(|name| {
                    matches!(name.as_str(), "pydantic.field_serializer" | "pydantic.model_serializer")
                })
            });
            if serializes || matches!(name, "model_dump" | "dict" | "json") {
                return Err(self.unclear(
                    module,
                    def.name.range,
                    class,
                    "says itself how it is written as data",
                ));
            }
        }
        if matches!(name, "__init__" | "__new__") {
            let reason = self.unclear(module, def.name.range, class, "says itself what it takes");
            fields.not_given.get_or_insert(reason);
        }
        Ok(())
    }

    /// A field; none if it is none of the instances.
    fn field(
        &mut self,
        module: usize,
        class: &StmtClassDef,
        kind: Kind,
        (name, annotation, value, is_total): (&str, &'a Expr, Option<&'a Expr>, bool),
        not_given: &mut Option<Reason>,
    ) -> Result<Option<RecordField>, Reason> {
        let mut annotation = annotation;
        let mut may_be_absent = !is_total;
        if let Some(marker) = self.marker(module, annotation) {
            let marked = match annotation {
                Expr::Subscript(s) => Some(&*s.slice),
                _ => None,
            };
            match (marker.as_str(), marked) {
                ("ClassVar", _) | ("KW_ONLY", None) => return Ok(None),
                ("InitVar", _) => {
                    let reason = self.unclear(module, annotation.range(), class, "takes what is no field");
                    not_given.get_or_insert(reason);
                    return Ok(None);
                }
                ("NotRequired", Some(inner)) => {
                    may_be_absent = true;
                    annotation = inner;
                }
                ("Required", Some(inner)) => {
                    may_be_absent = false;
                    annotation = inner;
                }
                // What else is said of the type may change how it is read and written.
                ("Annotated", Some(Expr::Tuple(all))) if kind == Kind::Pydantic => {
                    let plain = all.elts.iter().skip(1).all(|e| match e {
                        Expr::StringLiteral(_) => true,
                        Expr::Call(call) => self.is_plain_field(module, call),
                        _ => false,
                    });
                    if !plain {
                        let why = format!("has a field `{}` that may be written otherwise", clip(name));
                        return Err(self.unclear(module, annotation.range(), class, &why));
                    }
                }
                _ => {}
            }
        }
        let mut is_none_by_default = false;
        match value {
            None => {}
            Some(Expr::NoneLiteral(_)) => is_none_by_default = true,
            Some(Expr::Call(call)) => {
                let callee = self.qualified(module, &call.func);
                let is_field = matches!(
                    callee.as_deref(),
                    Some("dataclasses.field" | "pydantic.Field" | "pydantic.fields.Field")
                );
                if is_field {
                    if !self.is_plain_field(module, call) {
                        let why = format!("has a field `{}` that may be written otherwise", clip(name));
                        return Err(self.unclear(module, call.range(), class, &why));
                    }
                    let given = |wanted: &str| {
                        call.arguments
                            .keywords
                            .iter()
                            .find(|k| k.arg.as_ref().is_some_and(|a| a.id.as_str() == wanted))
                    };
                    let default = given("default").map(|k| &k.value).or(call.arguments.args.first());
                    is_none_by_default = matches!(default, Some(Expr::NoneLiteral(_)));
                    if let Some(init) = given("init")
                        && !matches!(&init.value, Expr::BooleanLiteral(b) if b.value)
                    {
                        let reason =
                            self.unclear(module, call.range(), class, "has a field that it does not take");
                        not_given.get_or_insert(reason);
                    }
                }
            }
            Some(_) => {}
        }
        let hint = self.hint(module, annotation);
        let hint = if may_be_absent || is_none_by_default { option(hint) } else { hint };
        Ok(Some(RecordField { name: name.into(), hint }))
    }

    /// The name of a word of `typing` or `dataclasses` around the type of a field.
    fn marker(&mut self, module: usize, annotation: &Expr) -> Option<String> {
        let callee = match annotation {
            Expr::Subscript(s) => &*s.value,
            other => other,
        };
        let name = self.qualified(module, callee)?;
        let (of, last) = name.rsplit_once('.')?;
        matches!(of, "typing" | "typing_extensions" | "dataclasses").then(|| last.to_string())
    }

    /// Returns whether `Field(…)` says nothing of other names and ways of writing.
    fn is_plain_field(&mut self, module: usize, call: &ExprCall) -> bool {
        let callee = self.qualified(module, &call.func);
        let is_field = matches!(
            callee.as_deref(),
            Some(
                "dataclasses.field"
                    | "pydantic.Field"
                    | "pydantic.fields.Field"
                    | "pydantic.StringConstraints"
            )
        );
        let changes = |k: &ruff_python_ast::Keyword| {
            k.arg.as_ref().is_none_or(|name| {
                matches!(
                    name.id.as_str(),
                    "alias"
                        | "validation_alias"
                        | "serialization_alias"
                        | "exclude"
                        | "strict"
                        | "discriminator"
                )
            })
        };
        is_field && !call.arguments.keywords.iter().any(changes)
    }
}

/// Settings of a model that change neither names nor values.
const PLAIN_SETTINGS: &[&str] =
    &["extra", "frozen", "str_strip_whitespace", "validate_assignment", "title", "use_enum_values"];

fn has_plain_settings(call: &ExprCall) -> bool {
    let is_plain = |k: &ruff_python_ast::Keyword| {
        k.arg.as_ref().is_some_and(|name| PLAIN_SETTINGS.contains(&name.id.as_str()))
    };
    call.arguments.keywords.iter().all(is_plain)
}

/// Returns whether a dataclass takes its fields.
fn keeps_init(arguments: &Arguments) -> bool {
    let changes = |k: &ruff_python_ast::Keyword| k.arg.as_ref().is_none_or(|name| name.id.as_str() == "init");
    arguments.args.is_empty() && !arguments.keywords.iter().any(changes)
}
