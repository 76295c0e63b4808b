//! Types of the surface language: names to types, and types to the words of the language.

use super::codes;
use super::files::Files;
use super::generics;
use super::predicate;
use super::scopes::{Scopes, declared_name};
use core_ir::{Comparison, Data, EnumType, FORMATS, Measure, Name, Pred, RecType, Type};
use diagnostics::{Diagnostic, Span, nearest};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use syntax::agent::ast::{self, Expr, ExprKind, TypeExpr, TypeKind};

/// Maximum number of parts of a type written out in full. Aliases of aliases grow exponentially, and so
/// would the work of comparing them.
const MAX_PARTS: u64 = 10_000;

/// Names that are types by themselves.
const BUILT_IN: &[&str] = &["String", "Number", "Bool", "List", "Option", "Obj"];

/// The type of data whose shape only the run shows, unless the program declares another one of this name.
const ANY: &str = "Any";

/// The declared types of a program.
#[derive(Debug, Default)]
pub(super) struct Types {
    named: HashMap<String, (Type, u64)>,
    /// Each variant, by the set of names of its file, with its enum and the place of its declaration.
    variants: HashMap<(usize, String), (Arc<EnumType>, Span)>,
    /// The cases of sum types.
    pub(super) cases: HashMap<String, CaseDecl>,
    /// The names of the cases with each tag. Files with names of their own may have the same.
    tags: HashMap<Name, Vec<String>>,
}

/// A case of a sum type.
#[derive(Clone, Debug)]
pub(super) struct CaseDecl {
    /// Its tag: the name that it has in its file.
    pub(super) tag: Name,
    /// Type of which it is a case.
    pub(super) sum: Type,
    /// The name of that type.
    pub(super) of: String,
    /// A record of its fields, or `Null` if it has none.
    pub(super) payload: Type,
    pub(super) span: Span,
}

impl CaseDecl {
    /// Its fields with their types.
    pub(super) fn fields(&self) -> &[(Name, Type)] {
        match &self.payload {
            Type::Record(fields) => fields,
            _ => &[],
        }
    }

    /// The type of one of its fields.
    pub(super) fn field(&self, name: &str) -> Option<&Type> {
        self.fields().iter().find(|(n, _)| **n == *name).map(|(_, t)| t)
    }

    /// How a value of the case is written.
    pub(super) fn written(&self, name: &str) -> String {
        match self.fields() {
            [] => name.to_string(),
            fields => {
                let fields: Vec<String> = fields.iter().map(|(n, _)| format!("{n}: …")).collect();
                format!("{name} {{ {} }}", fields.join(", "))
            }
        }
    }
}

enum Declaration<'a> {
    Alias(&'a ast::Alias),
    Enum(&'a ast::Enum),
    Sum(&'a ast::Sum),
}

impl<'a> Declaration<'a> {
    fn name(&self) -> &'a ast::Name {
        match self {
            Declaration::Alias(a) => &a.name,
            Declaration::Enum(e) => &e.name,
            Declaration::Sum(s) => &s.name,
        }
    }

    /// The types that it mentions, and the place that a message about all of them points to.
    fn parts(&self) -> Option<(Vec<&'a TypeExpr>, Span)> {
        match self {
            Declaration::Alias(a) => Some((vec![&a.ty], a.ty.span)),
            Declaration::Sum(s) => {
                Some((s.cases.iter().flat_map(|c| &c.fields).map(|f| &f.ty).collect(), s.name.span))
            }
            Declaration::Enum(_) => None,
        }
    }
}

impl Types {
    /// Collects the aliases and enums of a program and resolves them.
    pub(super) fn collect(program: &ast::Program, files: &Files, out: &mut Vec<Diagnostic>) -> Types {
        let mut types = Types::default();
        let mut declared: HashMap<&str, Declaration<'_>> = HashMap::new();
        let mut order = Vec::new();
        for item in &program.items {
            let declaration = match item {
                ast::Item::Alias(a) => Declaration::Alias(a),
                ast::Item::Enum(e) => Declaration::Enum(e),
                ast::Item::Sum(s) => Declaration::Sum(s),
                _ => continue,
            };
            let name = declaration.name();
            if BUILT_IN.contains(&&*name.text) {
                out.push(
                    Diagnostic::error(
                        codes::BUILT_IN_TYPE,
                        format!("`{}` is a type of the language", name.text),
                        name.span,
                    )
                    .help("choose another name"),
                );
            } else if let Some(first) = declared.get(&*name.text) {
                out.push(super::check::duplicate("type", name, first.name().span));
            } else {
                order.push(&*name.text);
                declared.insert(&name.text, declaration);
            }
        }
        for name in &order {
            if let Some(Declaration::Enum(e)) = declared.get(name) {
                types.add_enum(e, files, out);
            }
        }
        types.resolve_all(&declared, order, files.scopes(), out);
        types
    }

    /// Resolves the declared types in the order of their use.
    fn resolve_all(
        &mut self,
        declared: &HashMap<&str, Declaration<'_>>,
        order: Vec<&str>,
        scopes: &Scopes,
        out: &mut Vec<Diagnostic>,
    ) {
        let types = self;
        for group in groups(declared, &order) {
            if let [name] = group[..]
                && !mentions(declared, name).any(|other| other == name)
            {
                let resolved = types.declaration(&declared[name], declared, scopes, out);
                types.named.insert(name.to_string(), resolved);
                continue;
            }
            types.recursive(&group, declared, scopes, out);
        }
    }

    /// The type of an alias or a sum.
    fn declaration(
        &mut self,
        of: &Declaration<'_>,
        declared: &HashMap<&str, Declaration<'_>>,
        scopes: &Scopes,
        out: &mut Vec<Diagnostic>,
    ) -> (Type, u64) {
        match of {
            Declaration::Sum(s) => self.add_sum(s, &|name| declared.contains_key(name), scopes, out),
            Declaration::Alias(a) => self.resolve(&a.ty, &HashSet::new(), out),
            Declaration::Enum(_) => (Type::Dyn, 1),
        }
    }

    /// Types that mention each other.
    fn recursive(
        &mut self,
        group: &[&str],
        declared: &HashMap<&str, Declaration<'_>>,
        scopes: &Scopes,
        out: &mut Vec<Diagnostic>,
    ) {
        if let Some((name, help)) = endless(group, declared) {
            let mut cycle = vec![name];
            while let Some(next) = mentions(declared, cycle[cycle.len() - 1])
                .find(|n| group.contains(&&**n))
                .and_then(|n| group.iter().find(|g| ***g == *n))
            {
                let seen = cycle.contains(next);
                cycle.push(next);
                if seen {
                    break;
                }
            }
            let place = declared[name].parts().map_or(declared[name].name().span, |(_, place)| place);
            out.push(
                Diagnostic::error(
                    codes::ALIAS_CIRCLE,
                    format!("`{name}` is defined by itself: {}", cycle.join(" → ")),
                    place,
                )
                .remark(declared[name].name().span, "declared here")
                .help(help),
            );
            for name in group {
                self.named.insert((*name).to_string(), (Type::Dyn, 1));
            }
            return;
        }
        for name in group {
            self.named.insert((*name).to_string(), (Type::Var((*name).into()), 1));
        }
        let mut parts = 0u64;
        let bodies: Vec<(Name, Type)> = group
            .iter()
            .map(|name| {
                let (body, n) = self.declaration(&declared[name], declared, scopes, out);
                parts = parts.saturating_add(n);
                (Name::from(*name), body)
            })
            .collect();
        let bodies: Arc<[(Name, Type)]> = bodies.into();
        for name in group {
            let ty = match RecType::new((*name).into(), bodies.clone()) {
                Some(r) if parts <= MAX_PARTS => Type::Rec(Arc::new(r)),
                // A mistake in a body, or its size, was reported.
                _ => Type::Dyn,
            };
            if let Type::Variant(all) = ty.unfolded() {
                for case in self.cases.values_mut().filter(|c| c.of == **name) {
                    if let Some((_, payload)) = all.iter().find(|(n, _)| *n == case.tag) {
                        (case.sum, case.payload) = (ty.clone(), payload.clone());
                    }
                }
            }
            self.named.insert((*name).to_string(), (ty, 1));
        }
    }

    fn add_enum(&mut self, e: &ast::Enum, files: &Files, out: &mut Vec<Diagnostic>) {
        let (mut variants, mut descriptions): (Vec<Name>, Vec<Option<Name>>) = (Vec::new(), Vec::new());
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for v in &e.variants {
            if let Some(first) = seen.get(&*v.text) {
                out.push(super::check::duplicate("variant", v, *first));
            } else {
                seen.insert(&v.text, v.span);
                variants.push(v.text.as_str().into());
                descriptions.push(files.comment_above(v.span));
            }
        }
        if variants.is_empty() {
            out.push(
                Diagnostic::error(codes::EMPTY_ENUM, format!("`{}` has no variants", e.name.text), e.span)
                    .help("an enum needs at least one variant: `enum Tone { warm, cold }`"),
            );
            self.named.insert(e.name.text.clone(), (Type::Dyn, 1));
            return;
        }
        let ty = Arc::new(EnumType::new(e.name.text.as_str(), variants).described(descriptions));
        let group = files.scopes().group(e.span.file);
        for v in &e.variants {
            match self.variants.get(&(group, v.text.clone())) {
                Some((other, place)) if other.name != ty.name => out.push(
                    Diagnostic::error(
                        codes::SHARED_VARIANT,
                        format!("`{}` is a variant of `{}` already", v.text, other.name),
                        v.span,
                    )
                    .remark(*place, "declared here first")
                    .help(
                        "a string that is a variant has the type of its enum, so two enums may not share one",
                    ),
                ),
                Some(_) => {}
                None => {
                    self.variants.insert((group, v.text.clone()), (ty.clone(), v.span));
                }
            }
        }
        self.named.insert(e.name.text.clone(), (Type::Enum(ty), 1));
    }

    /// The type of a sum, whose cases become known.
    fn add_sum(
        &mut self,
        sum: &ast::Sum,
        is_type: &dyn Fn(&str) -> bool,
        scopes: &Scopes,
        out: &mut Vec<Diagnostic>,
    ) -> (Type, u64) {
        let mut cases: Vec<(Name, Type)> = Vec::new();
        let mut places: Vec<&ast::Name> = Vec::new();
        let mut parts = 1u64;
        for case in &sum.cases {
            let name = &case.name;
            let tag = declared_name(&name.text);
            if let Some(at) = cases.iter().position(|(n, _)| **n == *tag) {
                out.push(super::check::duplicate("case", name, places[at].span));
                continue;
            }
            if let Some(d) = self.bad_case(sum, case, is_type, scopes) {
                out.push(d);
                continue;
            }
            let mut fields: Vec<(Name, Type)> = Vec::new();
            for (i, field) in case.fields.iter().enumerate() {
                if let Some(first) = case.fields[..i].iter().find(|f| f.name.text == field.name.text) {
                    out.push(super::check::duplicate("field", &field.name, first.name.span));
                    continue;
                }
                let (t, n) = self.resolve(&field.ty, &HashSet::new(), out);
                parts = parts.saturating_add(n);
                fields.push((field.name.text.as_str().into(), t));
            }
            parts = parts.saturating_add(1);
            let payload = if fields.is_empty() { Type::Null } else { Type::record(fields) };
            cases.push((tag.into(), payload));
            places.push(name);
        }
        if cases.is_empty() || parts > MAX_PARTS {
            if parts > MAX_PARTS {
                out.push(huge(sum.span));
            }
            return (Type::Dyn, 1);
        }
        let ty = Type::Variant(cases.iter().cloned().collect());
        for ((tag, payload), name) in cases.into_iter().zip(places) {
            let (of, span) = (sum.name.text.clone(), name.span);
            self.tags.entry(tag.clone()).or_default().push(name.text.clone());
            self.cases.insert(name.text.clone(), CaseDecl { tag, sum: ty.clone(), of, payload, span });
        }
        (ty, parts)
    }

    /// The report of a name that a case can not have.
    fn bad_case(
        &self,
        sum: &ast::Sum,
        case: &ast::Case,
        is_type: &dyn Fn(&str) -> bool,
        scopes: &Scopes,
    ) -> Option<Diagnostic> {
        let name = &case.name;
        let bad = |message: String| Diagnostic::error(codes::BAD_CASE, message, name.span);
        if BUILT_IN.contains(&&*name.text) || name.text == ANY {
            return Some(bad(format!("`{}` is a type, and a case has a name of its own", name.text)).help(
                "a value of one of several types is a type with cases: `type Id = Numeric { value: Number } | Text { value: String };`",
            ));
        }
        if is_type(&name.text) && case.fields.is_empty() {
            return Some(
                bad(format!("`{}` is a type, and a case has a name of its own", name.text))
                    .help(format!("put the type into a field: `A{0} {{ value: {0} }}`", name.text)),
            );
        }
        let tag = declared_name(&name.text);
        if !tag.starts_with(char::is_uppercase) {
            let mut chars = tag.chars();
            let upper: String = chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect();
            let d = bad(format!("the case `{}` must begin with a capital letter", name.text));
            let d = match upper.starts_with(char::is_uppercase) {
                true => super::check::suggest(d, &upper),
                false => d,
            };
            return Some(match sum.cases.iter().all(|c| c.fields.is_empty()) {
                true => d.help(format!(
                    "or write an enum, whose variants are texts: `enum {} {{ … }}`",
                    sum.name.text
                )),
                false => d,
            });
        }
        let shared = |what: &str, of: &str, place: Span| {
            Diagnostic::error(
                codes::SHARED_VARIANT,
                format!("`{}` is a {what} of `{of}` already", name.text),
                name.span,
            )
            .remark(place, "declared here first")
            .help("cases are written without their type, so two types may not share one")
        };
        if let Some(other) = self.cases.get(&name.text) {
            return Some(shared("case", &other.of, other.span));
        }
        let variant = self.variant(scopes.group(name.span.file), tag);
        variant.map(|(e, place)| shared("variant", &e.name, *place))
    }

    /// The enum of a variant that the files of a group declare.
    pub(super) fn variant(&self, group: usize, name: &str) -> Option<&(Arc<EnumType>, Span)> {
        self.variants.get(&(group, name.to_string()))
    }

    /// The case with this tag of a type that has these cases.
    pub(super) fn case_of(&self, all: &[(Name, Type)], tag: &str) -> Option<(&str, &CaseDecl)> {
        let names = self.tags.get(tag)?;
        let is_it = |c: &CaseDecl| matches!(c.sum.unfolded(), Type::Variant(cases) if *cases == *all);
        match &names[..] {
            [only] => Some((only, self.cases.get(only)?)),
            _ => names.iter().find_map(|n| Some((n.as_str(), self.cases.get(n).filter(|c| is_it(c))?))),
        }
    }

    /// A case with this tag, whatever its type.
    pub(super) fn tagged(&self, tag: &str) -> Option<&CaseDecl> {
        self.cases.get(self.tags.get(tag)?.first()?)
    }

    /// Returns whether this is the name of a sum type.
    pub(super) fn is_sum(&self, name: &str) -> bool {
        self.named.get(name).is_some_and(|(t, _)| matches!(t.unfolded(), Type::Variant(_)))
    }

    /// Returns whether this is the name of a type of the language or the program, or of a case.
    pub(super) fn is_taken(&self, name: &str) -> bool {
        BUILT_IN.contains(&name)
            || name == ANY
            || self.named.contains_key(name)
            || self.cases.contains_key(name)
    }

    /// Returns whether this is the name of an enum.
    pub(super) fn is_enum(&self, name: &str) -> bool {
        matches!(self.named.get(name), Some((Type::Enum(e), _)) if !e.is_literal())
    }

    /// Resolves a written type. An unknown type is reported and becomes `Dyn`.
    pub(super) fn ty(&self, written: &TypeExpr, out: &mut Vec<Diagnostic>) -> Type {
        self.resolve(written, &HashSet::new(), out).0
    }

    /// Resolves a type that is written in a `fn`, where these names are types that a call decides.
    pub(super) fn ty_in(
        &self,
        written: &TypeExpr,
        generics: &HashSet<String>,
        out: &mut Vec<Diagnostic>,
    ) -> Type {
        self.resolve(written, generics, out).0
    }

    fn resolve(
        &self,
        written: &TypeExpr,
        generics: &HashSet<String>,
        out: &mut Vec<Diagnostic>,
    ) -> (Type, u64) {
        let (ty, parts) = stacker::maybe_grow(64 << 10, 1 << 20, || match &written.kind {
            TypeKind::Error => (Type::Dyn, 1),
            TypeKind::Name(name) if generics.contains(name) => (generics::opaque(name), 1),
            TypeKind::Name(name) => match (&**name, self.named.get(name)) {
                ("String", _) => (Type::Str, 1),
                ("Number", _) => (Type::Num, 1),
                ("Bool", _) => (Type::Bool, 1),
                (_, Some(found)) => found.clone(),
                // A program may have a type of this name of its own.
                (ANY, None) => (Type::Dyn, 1),
                (name, None) if let Some(ty) = standard(name) => (ty, 2),
                (_, None) => {
                    out.push(self.unknown(name, written.span));
                    (Type::Dyn, 1)
                }
            },
            TypeKind::List(inner) => {
                let (t, n) = self.resolve(inner, generics, out);
                (Type::list(t), n + 1)
            }
            TypeKind::Map(of) => {
                let (key, n) = self.resolve(&of.0, generics, out);
                let (value, m) = self.resolve(&of.1, generics, out);
                let key = map_key(key, of.0.span, out);
                (Type::map(key, value), n.saturating_add(m).saturating_add(1))
            }
            TypeKind::Option(inner) => {
                let (t, n) = self.resolve(inner, generics, out);
                (Type::option(t), n + 1)
            }
            TypeKind::Obj(fields) => {
                let mut all: Vec<(Name, Type)> = Vec::new();
                let mut parts = 1u64;
                for (i, field) in fields.iter().enumerate() {
                    if let Some(first) = fields[..i].iter().find(|f| f.name.text == field.name.text) {
                        out.push(super::check::duplicate("field", &field.name, first.name.span));
                        continue;
                    }
                    let (t, n) = self.resolve(&field.ty, generics, out);
                    parts = parts.saturating_add(n);
                    all.push((field.name.text.as_str().into(), t));
                }
                (Type::record(all), parts)
            }
            TypeKind::Literals(values) => (literals(values, written.span, out), values.len() as u64),
            TypeKind::Where(of, condition) => {
                let (t, n) = self.resolve(of, generics, out);
                (self.refined(t, of.span, condition, out), n + 1)
            }
        });
        if parts > MAX_PARTS {
            out.push(huge(written.span));
            return (Type::Dyn, 1);
        }
        (ty, parts)
    }

    /// The values of a type of which a condition holds.
    fn refined(&self, base: Type, at: Span, condition: &Expr, out: &mut Vec<Diagnostic>) -> Type {
        let pred = match predicate::of(IT, condition) {
            Ok(pred) => pred,
            Err(span) => {
                out.push(
                    Diagnostic::error(codes::BAD_REFINEMENT, "this can't be decided about a value alone", span)
                        .help(
                            "a condition after `where` is about `it`: it compares `it`, a field of it, `length(it)` or \
                             `words(it)` with a constant, or says `contains`, `matches`, `schema`, `every` or `some` of it, \
                             with `&&`, `||` and `!`",
                        ),
                );
                return base;
            }
        };
        let inner = plain(&base);
        if inner == Type::Dyn {
            return base;
        }
        if let Some(why) = unsuitable(&pred, &inner) {
            let d = Diagnostic::error(codes::BAD_REFINEMENT, why, condition.span)
                .remark(at, format!("the values are of type {}", show(&inner)));
            out.push(d.help("say something that can hold of such a value, as `it >= 0` of a number"));
            return base;
        }
        Type::Refined(Arc::new((base, pred)))
    }

    fn unknown(&self, name: &str, span: Span) -> Diagnostic {
        let d = Diagnostic::error(codes::UNKNOWN_TYPE, format!("there is no type `{name}`"), span);
        let built_in = BUILT_IN.iter().copied().chain(names_of_standard());
        let candidates = self.named.keys().map(String::as_str).chain(built_in);
        match (name, nearest(name, candidates)) {
            ("string" | "str" | "Str" | "Text", _) => super::check::suggest(d, "String"),
            ("int" | "integer" | "Integer", _) => super::check::suggest(d, INT),
            ("decimal" | "money" | "Money" | "currency" | "Currency", _) => super::check::suggest(d, DECIMAL),
            ("number" | "float" | "Float" | "Num", _) => super::check::suggest(d, "Number"),
            ("void" | "None" | "unit" | "Unit" | "undefined" | "never", _) => {
                d.help("every pipeline, task and tool returns a value: a `String` or a `Bool`, for example")
            }
            ("any" | "unknown" | "object" | "Object" | "JSON" | "Json", _) => {
                d.help("a record with known fields is `Obj{ name: Type }`, and data of any shape is `Any`")
            }
            ("dict" | "Dict" | "Map" | "map" | "HashMap" | "Mapping" | "Record", _) => d.help(
                "a map is written `Map[String, Type]`, a record with known fields `Obj{ name: Type }`, and data of any \
                 shape is `Any`",
            ),
            ("list" | "array" | "Array", _) => d.help("a list is written `List[Type]`"),
            ("bool" | "boolean" | "Boolean", _) => super::check::suggest(d, "Bool"),
            (_, Some(near)) => super::check::suggest(d, near),
            _ => d.help(format!("declare it: `type {name} = …;` or `enum {name} {{ … }}`")),
        }
    }
}

/// Names of types that a program may declare itself.
fn names_of_standard<'a>() -> impl Iterator<Item = &'a str> {
    FORMATS.iter().map(|f| f.name).chain([ANY, INT, DECIMAL])
}

/// Name of the type of whole numbers.
const INT: &str = "Int";

/// Name of the type of numbers with a finite decimal notation.
const DECIMAL: &str = "Decimal";

/// A type with a condition that has a name, unless the program declares another one of this name.
fn standard(name: &str) -> Option<Type> {
    let number = match name {
        INT => Some(Pred::integer()),
        DECIMAL => Some(Pred::decimal()),
        _ => None,
    };
    if let Some(pred) = number {
        return Some(Type::Refined(Arc::new((Type::Num, pred))));
    }
    let pattern = core_ir::Format::named(name)?.pattern;
    Some(Type::Refined(Arc::new((Type::Str, Pred::Matches(pattern.into())))))
}

/// The name of a type with a condition, if it is one of the language.
fn standard_name(base: &Type, pred: &Pred) -> Option<&'static str> {
    match (base, pred) {
        (Type::Str, Pred::Matches(pattern)) => core_ir::Format::of(pattern).map(|f| f.name),
        (Type::Num, Pred::Schema(_)) if *pred == Pred::integer() => Some(INT),
        (Type::Num, Pred::Schema(_)) if *pred == Pred::decimal() => Some(DECIMAL),
        _ => None,
    }
}

/// The type of the keys of a map, which are texts in JSON.
fn map_key(key: Type, at: Span, out: &mut Vec<Diagnostic>) -> Type {
    if key.is_subtype(&Type::Str) {
        return if key == Type::Dyn { Type::Str } else { key };
    }
    let d =
        Diagnostic::error(codes::BAD_KEY, format!("the keys of a map are texts, found {}", show(&key)), at);
    out.push(match plain(&key) {
        Type::Num => d.help("write `Map[String, …]`, and the number as a text: `m[to_string(n)]`"),
        Type::Option(_) => d.help("a key is never null: write the type inside of the option"),
        _ => d.help("write `Map[String, …]`; an enum, a `Date` and other types of texts are keys, too"),
    });
    Type::Str
}

/// The name of a value in a condition after `where`.
const IT: &str = "it";

/// The type of some strings, or of some numbers.
fn literals(values: &[Expr], span: Span, out: &mut Vec<Diagnostic>) -> Type {
    let (mut texts, mut numbers): (Vec<Name>, Vec<Data>) = (Vec::new(), Vec::new());
    let mut places: HashMap<Data, Span> = HashMap::new();
    for e in values {
        let Some(value) = predicate::constant(e) else { continue };
        if let Some(first) = places.get(&value) {
            let name = ast::Name { text: shown_data(&value), span: e.span };
            out.push(super::check::duplicate("value", &name, *first));
            continue;
        }
        places.insert(value.clone(), e.span);
        match (&e.kind, value) {
            (ExprKind::Str(text), _) => texts.push(text.as_str().into()),
            (_, number) => numbers.push(number),
        }
    }
    match (texts.is_empty(), numbers.is_empty()) {
        (false, true) => Type::Enum(Arc::new(EnumType::literals(texts))),
        (true, false) => Type::Refined(Arc::new((Type::Num, Pred::OneOf(numbers.into())))),
        (true, true) => Type::Dyn,
        (false, false) => {
            out.push(
                Diagnostic::error(
                    codes::BAD_REFINEMENT,
                    "a type has either strings or numbers as its values",
                    span,
                )
                .help("write all values as strings, or make it a type with cases"),
            );
            Type::Dyn
        }
    }
}

/// The numbers that are the values of a type of literals.
pub(super) fn numbers(ty: &Type) -> Option<&[Data]> {
    match ty {
        Type::Refined(r) => match &**r {
            (Type::Num, Pred::OneOf(items)) => Some(items),
            _ => None,
        },
        _ => None,
    }
}

/// The type without conditions, and without literal numbers.
pub(super) fn plain(ty: &Type) -> Type {
    without(ty, &|_| true)
}

/// The type without conditions. Those that a type of literal numbers has stay.
pub(super) fn unconditional(ty: &Type) -> Type {
    without(ty, &|t| numbers(t).is_none())
}

/// The type without those refinements of which `drops` is true.
fn without(ty: &Type, drops: &dyn Fn(&Type) -> bool) -> Type {
    let all = |parts: &[(Name, Type)]| -> Vec<(Name, Type)> {
        parts.iter().map(|(n, t)| (n.clone(), without(t, drops))).collect()
    };
    stacker::maybe_grow(64 << 10, 1 << 20, || match ty {
        Type::Refined(r) if drops(ty) => without(&r.0, drops),
        Type::List(t) => Type::list(without(t, drops)),
        Type::Option(t) => Type::option(without(t, drops)),
        Type::Map(of) => Type::map(without(&of.0, drops), without(&of.1, drops)),
        Type::Record(fields) => Type::record(all(fields)),
        Type::Variant(cases) => Type::Variant(all(cases).into()),
        other => other.clone(),
    })
}

/// The type without a condition about the value as a whole, and without the name of a recursive type.
pub(super) fn base(mut ty: Type) -> Type {
    loop {
        ty = match &ty {
            Type::Refined(r) => r.0.clone(),
            // A body is none, nor has it a condition as a whole.
            Type::Rec(r) => return r.unfold(),
            _ => return ty,
        };
    }
}

/// Returns the most items that a list, or keys that a map, of this type has, if the type says so.
pub(super) fn most_items(ty: &Type) -> Option<u64> {
    let most = |pred: &Pred| match pred {
        Pred::Compare(Measure::Length, Comparison::Le | Comparison::Eq, n) => n.floor().to_usize(),
        Pred::Compare(Measure::Length, Comparison::Lt, n) if n.floor() == *n => {
            n.to_usize().and_then(|n| n.checked_sub(1))
        }
        Pred::Compare(Measure::Length, Comparison::Lt, n) => n.floor().to_usize(),
        _ => None,
    };
    let (mut ty, mut least) = (ty, None);
    while let Type::Refined(r) = ty {
        let mut work = vec![&r.1];
        while let Some(pred) = work.pop() {
            match pred {
                Pred::And(p) => work.extend([&p.0, &p.1]),
                pred => least = [least, most(pred).map(|n| n as u64)].into_iter().flatten().min(),
            }
        }
        ty = &r.0;
    }
    least.filter(|_| matches!(ty, Type::List(_) | Type::Map(_)))
}

/// Reason why a condition can hold of no value of a type.
fn unsuitable(pred: &Pred, ty: &Type) -> Option<String> {
    let wrong = |what: &str| Some(format!("{what}, found {}", show(ty)));
    stacker::maybe_grow(64 << 10, 1 << 20, || match (pred, ty) {
        (_, Type::Dyn) | (Pred::True | Pred::Schema(_), _) => None,
        (_, Type::Option(_)) => Some("a condition about a value that may be null".to_string()),
        (Pred::Compare(Measure::Value, ..), t) if *t != Type::Num => {
            wrong("only a Number can be compared like that")
        }
        (Pred::Compare(Measure::Length, ..), t)
            if !matches!(t, Type::Str | Type::Enum(_) | Type::List(_) | Type::Map(_)) =>
        {
            wrong("only a String, a list or a map has a length")
        }
        (Pred::Compare(Measure::Words, ..) | Pred::Matches(_) | Pred::Contains(_), t)
            if !t.is_subtype(&Type::Str) =>
        {
            wrong("this is about a String")
        }
        (Pred::OneOf(items), t) => {
            let odd = items.iter().find(|d| !t.admits(d))?;
            wrong(&format!("`{}` is no value of the type", shown_data(odd)))
        }
        (Pred::Field(name, p), Type::Record(fields)) => match fields.iter().find(|(n, _)| n == name) {
            Some((_, t)) => unsuitable(p, t),
            None => wrong(&format!("there is no field `{name}`")),
        },
        (Pred::Field(..), _) => wrong("only a record has fields"),
        (Pred::Every(p) | Pred::Some(p), Type::List(t)) => unsuitable(p, t),
        (Pred::Every(_) | Pred::Some(_), _) => wrong("only a list has items"),
        (Pred::And(p) | Pred::Or(p), t) => unsuitable(&p.0, t).or_else(|| unsuitable(&p.1, t)),
        (Pred::Not(p), t) => unsuitable(p, t),
        _ => None,
    })
}

fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_string()).to_string()
}

/// A constant as it is written.
pub(super) fn shown_data(data: &Data) -> String {
    match data {
        Data::Num(n) => n.to_string(),
        other => other.to_json().to_string(),
    }
}

/// Writes a condition about `of` in the words of the surface language.
fn condition(pred: &Pred, of: &str, inside: bool, out: &mut String) {
    let both = |p: &(Pred, Pred), op: &str, out: &mut String| {
        out.push_str(if inside { "(" } else { "" });
        condition(&p.0, of, true, out);
        out.push_str(op);
        condition(&p.1, of, true, out);
        out.push_str(if inside { ")" } else { "" });
    };
    stacker::maybe_grow(64 << 10, 1 << 20, || match pred {
        Pred::True => out.push_str("true"),
        Pred::Compare(Measure::Value, c, n) => out.push_str(&format!("{of} {} {n}", c.as_str())),
        Pred::Compare(m, c, n) => out.push_str(&format!("{}({of}) {} {n}", m.as_str(), c.as_str())),
        Pred::Matches(p) => out.push_str(&format!("matches({of}, {})", quoted(p))),
        Pred::Contains(p) => out.push_str(&format!("contains({of}, {})", quoted(p))),
        Pred::OneOf(items) => {
            let items: Vec<String> = items.iter().map(|d| format!("{of} == {}", shown_data(d))).collect();
            out.push_str(&items.join(" || "));
        }
        Pred::Field(name, p) => condition(p, &format!("{of}.{name}"), inside, out),
        Pred::Every(p) | Pred::Some(p) => {
            out.push_str(if matches!(pred, Pred::Every(_)) { "every" } else { "some" });
            out.push_str(&format!("(x, {of}, "));
            condition(p, "x", false, out);
            out.push(')');
        }
        Pred::Schema(s) => {
            let text = s.source().to_json().to_string();
            out.push_str(&format!("schema({of}, {})", quoted(&text)));
        }
        Pred::And(p) => both(p, " && ", out),
        Pred::Or(p) => both(p, " || ", out),
        Pred::Not(p) => {
            out.push_str("!(");
            condition(p, of, false, out);
            out.push(')');
        }
    });
}

fn huge(span: Span) -> Diagnostic {
    Diagnostic::error(codes::HUGE_TYPE, format!("a type of more than {MAX_PARTS} parts"), span)
        .help("aliases are written out in full; make the type smaller")
}

/// The declared types that a declared type mentions.
fn mentions<'d>(
    declared: &'d HashMap<&str, Declaration<'_>>,
    name: &str,
) -> impl Iterator<Item = String> + 'd {
    let parts = declared.get(name).and_then(Declaration::parts).map(|(parts, _)| parts).unwrap_or_default();
    names_in(&parts).into_iter().filter(|n| declared.get(&**n).is_some_and(|d| d.parts().is_some()))
}

/// The declared types but enums in groups that mention each other, each behind those that it mentions
/// (Tarjan's strongly connected components). An explicit stack, since aliases may form a long chain.
fn groups<'d>(declared: &HashMap<&'d str, Declaration<'_>>, order: &[&'d str]) -> Vec<Vec<&'d str>> {
    let mut index: HashMap<&str, (usize, usize)> = HashMap::new();
    let (mut path, mut on_path): (Vec<&'d str>, HashSet<&str>) = (Vec::new(), HashSet::new());
    let mut out = Vec::new();
    for root in order.iter().filter(|n| declared[**n].parts().is_some()) {
        if index.contains_key(root) {
            continue;
        }
        let mut work: Vec<(&'d str, Vec<&'d str>)> = Vec::new();
        let mut next = Some(*root);
        loop {
            if let Some(name) = next.take() {
                let n = index.len();
                index.insert(name, (n, n));
                path.push(name);
                on_path.insert(name);
                let others = mentions(declared, name);
                work.push((
                    name,
                    others.filter_map(|n| declared.get_key_value(&*n)).map(|(n, _)| *n).collect(),
                ));
            }
            let Some((name, others)) = work.last_mut() else { break };
            let name = *name;
            if let Some(other) = others.pop() {
                match index.get(other) {
                    None => next = Some(other),
                    Some((_, low)) if on_path.contains(other) => {
                        let low = *low;
                        if let Some(own) = index.get_mut(name) {
                            own.1 = own.1.min(low);
                        }
                    }
                    Some(_) => {}
                }
                continue;
            }
            work.pop();
            let (n, low) = index[name];
            if let Some((parent, _)) = work.last()
                && let Some(own) = index.get_mut(parent)
            {
                own.1 = own.1.min(low);
            }
            if n == low {
                let from = path.iter().position(|p| *p == name).unwrap_or(0);
                let mut group: Vec<&'d str> = path.split_off(from);
                // The first of them in the text is the one that a message is about.
                group.sort_by_key(|n| declared[n].name().span.start);
                group.iter().for_each(|n| {
                    on_path.remove(n);
                });
                out.push(group);
            }
        }
    }
    out
}

/// A type of a group that has no value that ends, or no body to be looked at, with the remedy.
fn endless<'g>(
    group: &[&'g str],
    declared: &HashMap<&str, Declaration<'_>>,
) -> Option<(&'g str, &'static str)> {
    let mut ends: HashSet<&str> = HashSet::new();
    let of_type = |ty: &TypeExpr, ends: &HashSet<&str>| {
        let mut work = vec![ty];
        while let Some(t) = work.pop() {
            match &t.kind {
                TypeKind::Name(n) if group.contains(&&**n) && !ends.contains(&**n) => return false,
                TypeKind::Obj(fields) => work.extend(fields.iter().map(|f| &f.ty)),
                TypeKind::Where(t, _) => work.push(t),
                // An empty list or map, and null, have nothing inside.
                _ => {}
            }
        }
        true
    };
    let mut before = usize::MAX;
    while ends.len() != before {
        before = ends.len();
        for name in group {
            let has_end = match &declared[name] {
                Declaration::Alias(a) => of_type(&a.ty, &ends),
                Declaration::Sum(s) => s.cases.iter().any(|c| c.fields.iter().all(|f| of_type(&f.ty, &ends))),
                Declaration::Enum(_) => true,
            };
            if has_end {
                ends.insert(name);
            }
        }
    }
    if let Some(name) = group.iter().find(|n| !ends.contains(**n)) {
        let help = match &declared[name] {
            Declaration::Alias(a) if matches!(a.ty.kind, TypeKind::Name(_)) => {
                "a type alias is an abbreviation; it can't mention itself"
            }
            _ => "no value of it would end: put the inner one into an `Option[…]` or a `List[…]`",
        };
        return Some((name, help));
    }
    let bare = |d: &Declaration<'_>| match d {
        Declaration::Alias(a) => {
            !matches!(a.ty.kind, TypeKind::Obj(_) | TypeKind::List(_) | TypeKind::Map(_))
        }
        _ => false,
    };
    let name = group.iter().find(|n| bare(&declared[**n]))?;
    Some((name, "a type that mentions itself is an `Obj{…}`, a `List[…]`, a `Map[…]`, or has cases"))
}

/// The names that written types mention.
fn names_in(written: &[&TypeExpr]) -> Vec<String> {
    let mut out = Vec::new();
    let mut work = written.to_vec();
    while let Some(t) = work.pop() {
        match &t.kind {
            TypeKind::Name(n) => out.push(n.clone()),
            TypeKind::List(t) | TypeKind::Option(t) => work.push(t),
            TypeKind::Map(of) => work.extend([&of.0, &of.1]),
            TypeKind::Obj(fields) => work.extend(fields.iter().map(|f| &f.ty)),
            TypeKind::Where(t, _) => work.push(t),
            TypeKind::Literals(_) | TypeKind::Error => {}
        }
    }
    out
}

/// A type in the words of the surface language, shortened if it is long.
pub(super) fn show(ty: &Type) -> String {
    const MAX_SHOWN_LEN: usize = 120;
    let mut out = String::new();
    write(ty, &mut out, MAX_SHOWN_LEN);
    if out.chars().count() > MAX_SHOWN_LEN {
        out = out.chars().take(MAX_SHOWN_LEN).chain(['…']).collect();
    }
    out
}

fn write(ty: &Type, out: &mut String, longest: usize) {
    // A byte is never more than a character, so nothing that would be shown is left out.
    if out.len() > 4 * longest {
        return;
    }
    stacker::maybe_grow(64 << 10, 1 << 20, || match ty {
        Type::Str => out.push_str("String"),
        Type::Num => out.push_str("Number"),
        Type::Bool => out.push_str("Bool"),
        Type::Null => out.push_str("null"),
        Type::List(t) => {
            out.push_str("List[");
            write(t, out, longest);
            out.push(']');
        }
        Type::Option(t) => {
            out.push_str("Option[");
            write(t, out, longest);
            out.push(']');
        }
        Type::Map(of) => {
            out.push_str("Map[");
            write(&of.0, out, longest);
            out.push_str(", ");
            write(&of.1, out, longest);
            out.push(']');
        }
        Type::Record(fields) => {
            out.push_str("Obj{");
            for (i, (name, t)) in fields.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                out.push_str(name);
                out.push_str(": ");
                write(t, out, longest);
            }
            out.push('}');
        }
        Type::Enum(e) if e.is_literal() => {
            for (i, v) in e.variants.iter().enumerate() {
                out.push_str(if i > 0 { " | " } else { "" });
                out.push_str(&quoted(v));
            }
        }
        Type::Enum(e) => out.push_str(&e.name),
        Type::Refined(r) => match numbers(ty) {
            Some(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(shown_data).collect();
                out.push_str(&numbers.join(" | "));
            }
            None if standard_name(&r.0, &r.1).is_some() => {
                out.push_str(standard_name(&r.0, &r.1).unwrap_or_default());
            }
            None => {
                write(&r.0, out, longest);
                out.push_str(" where ");
                condition(&r.1, IT, false, out);
            }
        },
        // `Dyn` also represents a type that could not be read, about which nothing more is said.
        Type::Dyn => out.push_str(ANY),
        Type::Rec(r) => out.push_str(r.name()),
        Type::Var(name) => out.push_str(name),
        Type::Variant(cases) => {
            for (i, (name, _)) in cases.iter().enumerate() {
                out.push_str(if i > 0 { " | " } else { "" });
                out.push_str(name);
            }
        }
        // The surface language has no other types.
        Type::Pair(_) | Type::Fun(_) => out.push('_'),
    });
}

/// Returns true if a value of type `actual` may stand where `wanted` is declared: a subtype, and a value
/// that is there where one may be absent.
pub(super) fn fits(actual: &Type, wanted: &Type) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || match (actual, wanted) {
        _ if actual.is_subtype(wanted) => true,
        // What a condition after `where` says is checked where the value arrives.
        (Type::Refined(a), w) => fits(&a.0, w),
        (a, Type::Refined(w)) => fits(a, &w.0),
        (Type::Rec(_), Type::Rec(_)) => false,
        (Type::Option(a), Type::Option(w)) => fits(a, w),
        (_, Type::Option(w)) => fits(actual, w),
        (Type::Rec(_), _) | (_, Type::Rec(_)) => fits(&actual.unfolded(), &wanted.unfolded()),
        (Type::List(a), Type::List(w)) => fits(a, w),
        (Type::Map(a), Type::Map(w)) => fits(&a.0, &w.0) && fits(&a.1, &w.1),
        (Type::Record(a), Type::Record(w)) => {
            w.iter().all(|(name, want)| a.iter().any(|(n, have)| n == name && fits(have, want)))
        }
        (Type::Variant(a), Type::Variant(w)) => {
            a.iter().all(|(name, have)| w.iter().any(|(n, want)| n == name && fits(have, want)))
        }
        _ => false,
    })
}

/// Returns true if a value of type `actual` is certain to be a `wanted`, so that no run has to check it.
pub(super) fn certain(actual: &Type, wanted: &Type) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || match (actual, wanted) {
        (_, Type::Dyn) => true,
        (Type::Dyn, _) => false,
        (Type::Refined(a), Type::Refined(w)) if a.1 == w.1 => certain(&a.0, &w.0),
        (Type::Refined(a), w) if !matches!(w, Type::Option(_)) => certain(&a.0, w),
        (Type::Null, Type::Option(_)) => true,
        (Type::Option(a), Type::Option(w)) | (Type::List(a), Type::List(w)) => certain(a, w),
        (_, Type::Option(w)) => certain(actual, w),
        (Type::Rec(a), Type::Rec(w)) => a == w,
        (Type::Rec(_), _) | (_, Type::Rec(_)) => certain(&actual.unfolded(), &wanted.unfolded()),
        (Type::Map(a), Type::Map(w)) => certain(&a.0, &w.0) && certain(&a.1, &w.1),
        (Type::Record(a), Type::Record(w)) => {
            w.iter().all(|(name, want)| a.iter().any(|(n, have)| n == name && certain(have, want)))
        }
        (Type::Variant(a), Type::Variant(w)) => {
            a.iter().all(|(name, have)| w.iter().any(|(n, want)| n == name && certain(have, want)))
        }
        _ => actual.is_subtype(wanted),
    })
}

/// The type of a value that is of one of two types, if they differ only in what may be absent.
pub(super) fn optional(a: &Type, b: &Type) -> Option<Type> {
    stacker::maybe_grow(64 << 10, 1 << 20, || match (a, b) {
        _ if same(a, b) => Some(a.clone()),
        (Type::Refined(r), t) | (t, Type::Refined(r)) => optional(&r.0, t),
        (Type::Null, option @ Type::Option(_)) | (option @ Type::Option(_), Type::Null) => {
            Some(option.clone())
        }
        (Type::Enum(x), Type::Enum(y)) if x.is_literal() && y.is_literal() => join(a, b),
        (Type::Option(x), Type::Option(y)) => optional(x, y).map(Type::option),
        (Type::Option(x), y) | (y, Type::Option(x)) => optional(x, y).map(Type::option),
        (Type::Null, t) | (t, Type::Null) => Some(Type::option(t.clone())),
        (Type::List(x), Type::List(y)) => optional(x, y).map(Type::list),
        (Type::Map(x), Type::Map(y)) => Some(Type::map(optional(&x.0, &y.0)?, optional(&x.1, &y.1)?)),
        (Type::Record(x), Type::Record(y)) if x.len() == y.len() => {
            let fields = x.iter().map(|(n, t)| {
                let (_, u) = y.iter().find(|(m, _)| m == n)?;
                Some((n.clone(), optional(t, u)?))
            });
            Some(Type::record(fields.collect::<Option<Vec<_>>>()?))
        }
        _ => None,
    })
}

/// Returns true if two types are equivalent: each is a subtype of the other.
pub(super) fn same(a: &Type, b: &Type) -> bool {
    a == b || (a.is_subtype(b) && b.is_subtype(a))
}

/// Returns true if two types are equivalent, conditions after `where` aside.
pub(super) fn alike(a: &Type, b: &Type) -> bool {
    same(a, b) || same(&plain(a), &plain(b))
}

/// The first reason why `actual` can't stand where `expected` is asked for, if it is not plain from
/// the two types as a whole.
pub(super) fn why_not(actual: &Type, expected: &Type) -> Option<String> {
    match (actual, expected) {
        (Type::Record(a), Type::Record(e)) => {
            e.iter().find_map(|(name, want)| match a.iter().find(|(n, _)| n == name) {
                None => Some(format!("the field `{name}: {}` is missing", show(want))),
                Some((_, have)) if !fits(have, want) => Some(why_not(have, want).map_or_else(
                    || format!("the field `{name}` is {} instead of {}", show(have), show(want)),
                    |why| format!("in the field `{name}`: {why}"),
                )),
                Some(_) => None,
            })
        }
        (Type::List(a), Type::List(e)) => why_not(a, e).map(|why| format!("in the items: {why}")),
        (Type::Map(a), Type::Map(e)) => why_not(&a.1, &e.1).map(|why| format!("in the values: {why}")),
        (Type::Option(a), Type::Option(e)) => why_not(a, e),
        _ => None,
    }
}

/// A type that both may represent, if there is one.
pub(super) fn join(a: &Type, b: &Type) -> Option<Type> {
    match (a, b) {
        _ if a.is_subtype(b) => Some(b.clone()),
        _ if b.is_subtype(a) => Some(a.clone()),
        (Type::Refined(r), t) | (t, Type::Refined(r)) => join(&r.0, t),
        (Type::Enum(x), Type::Enum(y)) if x.is_literal() && y.is_literal() => {
            let more = y.variants.iter().filter(|v| !x.variants.contains(v));
            let all = x.variants.iter().chain(more).cloned().collect();
            Some(Type::Enum(Arc::new(EnumType::literals(all))))
        }
        (Type::Enum(_), Type::Enum(_)) => Some(Type::Str),
        (Type::Rec(_), Type::Rec(_)) => None,
        (Type::Null, t) | (t, Type::Null) => Some(Type::option(t.clone())),
        (Type::Option(x), y) | (y, Type::Option(x)) if matches!(y, Type::Rec(_)) => {
            join(x, y).map(Type::option)
        }
        (Type::Rec(_), _) | (_, Type::Rec(_)) => join(&a.unfolded(), &b.unfolded()),
        (Type::List(x), Type::List(y)) => join(x, y).map(Type::list),
        (Type::Map(x), Type::Map(y)) => Some(Type::map(join(&x.0, &y.0)?, join(&x.1, &y.1)?)),
        (Type::Option(x), Type::Option(y)) => join(x, y).map(Type::option),
        (Type::Option(x), y) | (y, Type::Option(x)) => join(x, y).map(Type::option),
        (Type::Record(x), Type::Record(y)) => {
            let shared = x.iter().filter_map(|(n, t)| {
                let (_, u) = y.iter().find(|(m, _)| m == n)?;
                Some((n.clone(), join(t, u)?))
            });
            Some(Type::record(shared.collect::<Vec<_>>()))
        }
        _ => None,
    }
}
