//! The parts of a program that are no terms: types, predicates, literals of data, model parameters,
//! declarations of tools and stores.

use super::codes;
use super::lexer::{Bracket, Tok};
use super::parser::Parser;
use core_ir::print::{DEFAULT_REPAIR, default_flow};
use core_ir::{
    Among, Approve, Comparison, Data, Delegated, Effect, EffectClass, EffectRow, EnumType, Includes, KeyDecl,
    LabelSpec, MAX_DATA_DEPTH, Measure, ModelParams, Name, Pattern, Plain, Pred, RecType, ResultParts,
    Schema, StoreDecl, StoreId, ToolDecl, ToolId, ToolParam, Type,
};
use diagnostics::{Diagnostic, nearest};
use std::collections::BTreeSet;
use std::sync::Arc;

const TYPE_NAMES: &[&str] =
    &["Str", "Num", "Bool", "Null", "Dyn", "List", "Option", "Map", "Rec", "Var", "Enum"];

impl Parser<'_> {
    // Types.

    pub(super) fn ty(&mut self) -> Type {
        self.deeper(
            |_| Type::Dyn,
            |p| {
                let left = p.pair_type();
                if p.eat(Tok::Arrow) {
                    return Type::fun(left, EffectRow::pure(), p.ty());
                }
                if p.tok() != Tok::Minus {
                    return left;
                }
                p.tight_after();
                p.bump();
                let row = p.effects();
                p.tight_before();
                if !p.eat(Tok::Greater) {
                    p.expected("`>`");
                }
                Type::fun(left, row, p.ty())
            },
        )
    }

    fn effects(&mut self) -> EffectRow {
        let mut any = false;
        let mut set = BTreeSet::new();
        if self.open(Bracket::Square) {
            self.comma_list(Bracket::Square, |p| {
                let word = p.word();
                let mut named = |make: fn(Name) -> Effect| {
                    p.bump();
                    let mut name = Name::from("");
                    p.tight_before();
                    if p.open(Bracket::Round) {
                        if p.tok() != Tok::Close(Bracket::Round) {
                            name = p.name("a name").unwrap_or(name);
                        }
                        p.close(Bracket::Round);
                    }
                    set.insert(make(name));
                };
                match word {
                    "llm" => named(Effect::Llm),
                    "tool" => named(Effect::Tool),
                    "state" => named(Effect::State),
                    "sample" => {
                        p.bump();
                        set.insert(Effect::Sample);
                    }
                    "conversation" => {
                        p.bump();
                        set.insert(Effect::Conversation);
                    }
                    "any" => {
                        p.bump();
                        any = true;
                    }
                    "pure" => {
                        p.bump();
                    }
                    _ => p.expected("an effect: `llm(…)`, `tool(…)`, `state(…)`, `sample`, `conversation`"),
                }
            });
        }
        if any { EffectRow::Any } else { EffectRow::Only(set) }
    }

    fn pair_type(&mut self) -> Type {
        let mut left = self.atom_type();
        while self.eat(Tok::Star) {
            let right = self.atom_type();
            left = Type::Pair(Arc::new((left, right)));
        }
        left
    }

    fn atom_type(&mut self) -> Type {
        self.deeper(|_| Type::Dyn, Self::atom_type_form)
    }

    fn atom_type_form(&mut self) -> Type {
        let simple = match self.word() {
            "Str" => Type::Str,
            "Num" => Type::Num,
            "Bool" => Type::Bool,
            "Null" => Type::Null,
            "Dyn" => Type::Dyn,
            "List" => {
                self.bump();
                return Type::list(self.atom_type());
            }
            "Option" => {
                self.bump();
                return Type::option(self.atom_type());
            }
            "Var" => {
                self.bump();
                return Type::Var(self.name("the name of a recursive type").unwrap_or_else(|| "".into()));
            }
            "Rec" => {
                self.bump();
                let at = self.start();
                let name = self.name("the name of a recursive type").unwrap_or_else(|| "".into());
                let mut bodies: Vec<(Name, Type)> = Vec::new();
                if self.open(Bracket::Curly) {
                    self.comma_list(Bracket::Curly, |p| {
                        if let Some(body) = p.typed_name(&bodies) {
                            bodies.push(body);
                        }
                    });
                }
                return match RecType::new(name, bodies.into()) {
                    Some(r) => Type::Rec(Arc::new(r)),
                    None => {
                        self.no_recursive_type(at);
                        Type::Dyn
                    }
                };
            }
            "Map" => {
                self.bump();
                let key = self.atom_type();
                return Type::map(key, self.atom_type());
            }
            "Enum" => {
                self.bump();
                let name = self.name("the name of the enumeration").unwrap_or_else(|| "".into());
                let (mut variants, mut descriptions) = (Vec::new(), Vec::new());
                self.tight_before();
                if self.open(Bracket::Round) {
                    self.comma_list(Bracket::Round, |p| {
                        let at = p.start();
                        if let Some(v) = p.name("a variant") {
                            p.distinct(&variants, &v, at);
                            variants.push(v);
                            let is_described = matches!(p.tok(), Tok::Str(_));
                            descriptions.push(is_described.then(|| p.text("a description")));
                        }
                    });
                }
                return Type::Enum(Arc::new(EnumType::new(name, variants).described(descriptions)));
            }
            _ => return self.structured_type(),
        };
        self.bump();
        simple
    }

    fn structured_type(&mut self) -> Type {
        match self.tok() {
            Tok::Open(Bracket::Round) => {
                self.open(Bracket::Round);
                let t = self.ty();
                self.close(Bracket::Round);
                t
            }
            Tok::Open(Bracket::Curly) => {
                self.open(Bracket::Curly);
                let record = self.tok() == Tok::Close(Bracket::Curly)
                    || (matches!(self.tok(), Tok::Word | Tok::Str(_)) && self.next_is(Tok::Colon));
                if record {
                    let mut fields: Vec<(Name, Type)> = Vec::new();
                    self.comma_list(Bracket::Curly, |p| {
                        if let Some(field) = p.typed_name(&fields) {
                            fields.push(field);
                        }
                    });
                    return Type::record(fields);
                }
                let base = self.ty();
                if !self.eat(Tok::Bar) {
                    self.expected_with(
                        "`|`",
                        "`{Str | length > 3}` is a refined type, `{name: Str}` a record",
                    );
                }
                let pred = self.pred();
                self.close(Bracket::Curly);
                Type::Refined(Arc::new((base, pred)))
            }
            Tok::Less => {
                self.tight_after();
                self.bump();
                let mut tags: Vec<(Name, Type)> = Vec::new();
                while !self.eat_greater() {
                    match self.typed_name(&tags) {
                        Some(tag) => tags.push(tag),
                        None => break,
                    }
                    if !self.eat(Tok::Comma) {
                        if !self.eat_greater() {
                            self.expected("`>` or `,`");
                        }
                        break;
                    }
                }
                Type::Variant(tags.into())
            }
            _ => {
                let near = nearest(self.word(), TYPE_NAMES.iter().copied());
                let help = near.map_or(String::new(), |n| format!("did you mean `{n}`?"));
                self.expected_with("a type", &help);
                // A misspelled name is one mistake.
                if !self.word().is_empty() && !core_ir::print::KEYWORDS.contains(&self.word()) {
                    self.bump();
                }
                Type::Dyn
            }
        }
    }

    /// A `>`, also as the first half of `>>`.
    fn eat_greater(&mut self) -> bool {
        if matches!(self.tok(), Tok::Greater | Tok::Compose) {
            self.tight_before();
        }
        if self.tok() == Tok::Compose && !self.source_of_current().starts_with('≫') {
            self.split_compose();
            return true;
        }
        self.eat(Tok::Greater)
    }

    fn typed_name(&mut self, seen: &[(Name, Type)]) -> Option<(Name, Type)> {
        let at = self.start();
        let name = self.name("a name")?;
        if seen.iter().any(|(n, _)| *n == name) {
            self.twice(&name, at);
        }
        if !self.eat(Tok::Colon) {
            self.expected("`:`");
        }
        Some((name, self.ty()))
    }

    // Predicates.

    pub(super) fn pred(&mut self) -> Pred {
        self.deeper(
            |_| Pred::True,
            |p| {
                let mut left = p.pred_and();
                while p.eat(Tok::Or) {
                    let right = p.pred_and();
                    left = Pred::Or(Arc::new((left, right)));
                }
                left
            },
        )
    }

    fn pred_and(&mut self) -> Pred {
        let mut left = self.pred_atom();
        while self.eat(Tok::And) {
            let right = self.pred_atom();
            left = Pred::And(Arc::new((left, right)));
        }
        left
    }

    fn pred_atom(&mut self) -> Pred {
        self.deeper(|_| Pred::True, Self::pred_form)
    }

    fn pred_form(&mut self) -> Pred {
        match self.tok() {
            Tok::Not => {
                self.tight_after();
                self.bump();
                return Pred::Not(Arc::new(self.pred_atom()));
            }
            Tok::Dot => {
                self.loose_dot();
                self.tight_after();
                self.bump();
                let name = self.name("the name of a field").unwrap_or_else(|| "".into());
                return Pred::Field(name, Arc::new(self.pred_atom()));
            }
            Tok::Open(Bracket::Round) => {
                self.open(Bracket::Round);
                let p = self.pred();
                self.close(Bracket::Round);
                return p;
            }
            _ => {}
        }
        let measure = match self.word() {
            "any" => {
                self.bump();
                return Pred::True;
            }
            "every" => {
                self.bump();
                return Pred::Every(Arc::new(self.pred_atom()));
            }
            "some" => {
                self.bump();
                return Pred::Some(Arc::new(self.pred_atom()));
            }
            "schema" => {
                self.bump();
                let at = self.start();
                let source = self.data();
                return match Schema::new(&source) {
                    Ok(schema) => Pred::Schema(Arc::new(schema)),
                    Err(why) => {
                        let span = self.span(at);
                        self.error(codes::SCHEMA, format!("this is not a valid JSON Schema: {why}"), span);
                        Pred::True
                    }
                };
            }
            "matches" => {
                self.bump();
                return Pred::Matches(Arc::from(&*self.text("a regular expression, a string")));
            }
            "contains" => {
                self.bump();
                return Pred::Contains(Arc::from(&*self.text("a string")));
            }
            "in" => {
                self.bump();
                let mut items = Vec::new();
                if self.open(Bracket::Square) {
                    self.comma_list(Bracket::Square, |p| items.push(p.data()));
                }
                return Pred::OneOf(items.into());
            }
            "length" => Measure::Length,
            "words" => Measure::Words,
            "value" => Measure::Value,
            _ => {
                self.expected_with(
                    "a predicate",
                    "such as `length >= 3`, `matches '^a'`, `in [1, 2]`, `.field P`, `every P`, `some P`, `schema {…}`, `any`",
                );
                return Pred::True;
            }
        };
        self.bump();
        let comparison = match self.tok() {
            Tok::Less => Comparison::Lt,
            Tok::LessEq => Comparison::Le,
            Tok::Greater => Comparison::Gt,
            Tok::GreaterEq => Comparison::Ge,
            Tok::EqEq => Comparison::Eq,
            Tok::NotEq => Comparison::Ne,
            _ => {
                self.expected("a comparison");
                return Pred::True;
            }
        };
        self.bump();
        Pred::Compare(measure, comparison, self.number())
    }

    // Data.

    pub(super) fn data(&mut self) -> Data {
        self.data_at(0)
    }

    fn data_at(&mut self, depth: usize) -> Data {
        if depth > MAX_DATA_DEPTH {
            let span = self.span(self.start());
            self.error(codes::DEPTH, format!("data nested deeper than {MAX_DATA_DEPTH} levels"), span);
            self.give_up();
            return Data::Null;
        }
        self.deeper(|_| Data::Null, |p| p.data_form(depth))
    }

    fn data_form(&mut self, depth: usize) -> Data {
        match self.tok() {
            Tok::Num | Tok::Minus => Data::Num(self.number()),
            Tok::Str(s) => {
                self.bump();
                Data::str(self.string(s))
            }
            Tok::StrOpen(_) => {
                self.no_holes();
                Data::Null
            }
            Tok::Open(Bracket::Square) => {
                self.open(Bracket::Square);
                let mut items = Vec::new();
                self.comma_list(Bracket::Square, |p| items.push(p.data_at(depth + 1)));
                Data::list(items)
            }
            Tok::Open(Bracket::Curly) => self.data_record(depth),
            Tok::Open(bracket @ (Bracket::Round | Bracket::Angle)) => {
                self.open(bracket);
                let a = self.data_at(depth + 1);
                let out = if self.eat(Tok::Comma) {
                    let b = self.data_at(depth + 1);
                    Data::Pair(Arc::new((a, b)))
                } else {
                    a
                };
                self.close(bracket);
                out
            }
            Tok::Backtick => {
                let name = self.tag_name().unwrap_or_else(|| "".into());
                let starts =
                    matches!(self.tok(), Tok::Num | Tok::Minus | Tok::Str(_) | Tok::Open(_) | Tok::Backtick)
                        || matches!(self.word(), "true" | "false" | "null");
                let payload =
                    if starts && !self.starts_item() { self.data_at(depth + 1) } else { Data::Null };
                Data::Tag(name, Arc::new(payload))
            }
            _ => {
                let out = match self.word() {
                    "null" => Data::Null,
                    "true" => Data::Bool(true),
                    "false" => Data::Bool(false),
                    _ => {
                        self.expected(
                            "a literal: a number, a string, a list, a record, `true`, `false` or `null`",
                        );
                        return Data::Null;
                    }
                };
                self.bump();
                out
            }
        }
    }

    fn data_record(&mut self, depth: usize) -> Data {
        let mut fields: Vec<(Name, Data)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        if self.open(Bracket::Curly) {
            self.comma_list(Bracket::Curly, |p| {
                let at = p.start();
                let Some(name) = p.name("the name of a field") else { return };
                if !seen.insert(name.clone()) {
                    p.twice(&name, at);
                }
                if !p.eat(Tok::Colon) {
                    p.expected("`:`");
                }
                let value = p.data_at(depth + 1);
                fields.push((name, value));
            });
        }
        Data::record(fields)
    }

    // Model parameters.

    pub(super) fn params(&mut self) -> Arc<ModelParams> {
        let mut out = ModelParams::default();
        let mut repair = None;
        let mut seen: Vec<Name> = Vec::new();
        if self.open(Bracket::Curly) {
            self.comma_list(Bracket::Curly, |p| {
                let at = p.start();
                let Some(key) = p.name("the name of a parameter") else { return };
                p.distinct(&seen, &key, at);
                seen.push(key.clone());
                if !p.eat(Tok::Colon) {
                    p.expected("`:`");
                }
                match &*key {
                    "model" => out.model = Some(p.text("the name of a model, a string")),
                    "temperature" => out.temperature = Some(p.number()),
                    "max_tokens" => out.max_tokens = Some(p.whole()),
                    "result" => out.result = Some(p.ty()),
                    "repair" => repair = Some(p.count()),
                    "waiting" => {
                        out.waiting = p.eat_word("true");
                        if !out.waiting && !p.eat_word("false") {
                            p.expected("`true` or `false`");
                        }
                    }
                    "purpose" => out.purpose = Some(p.text("a string")),
                    "tools" => {
                        p.allowed_here(p.options.tools, "tools");
                        if p.open(Bracket::Square) {
                            p.comma_list(Bracket::Square, |p| out.tools.extend(p.tool_name()));
                        }
                    }
                    "extra" => {
                        let all = p.data_record(0);
                        if let Data::Record(fields) = all {
                            out.extra.extend(fields.iter().cloned());
                        }
                    }
                    _ => {
                        let value = p.data();
                        out.extra.push((key, value));
                    }
                }
            });
        }
        let default = if out.result.is_some() { DEFAULT_REPAIR } else { 0 };
        out.repair = repair.unwrap_or(default);
        Arc::new(out)
    }

    fn allowed_here(&mut self, allowed: bool, what: &str) {
        if !allowed {
            let span = self.span(self.start());
            self.error(codes::GENERATED, format!("generated code may not contain `{what}`"), span);
        }
    }

    /// The tool of a name; declares an unknown one with a warning.
    pub(super) fn tool_name(&mut self) -> Option<ToolId> {
        let at = self.start();
        let name = self.name("the name of a tool")?;
        if let Some((id, _)) = self.tools.get(&name) {
            return Some(*id);
        }
        let span = self.span(at);
        let mut d = Diagnostic::warn(codes::TOOL, format!("the tool `{name}` is not declared"), span);
        d = match nearest(&name, self.tools.keys().map(|n| &**n)) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.help(format!("declare it first: `tool {name}(input: Str) -> Str read`")),
        };
        self.report(d);
        let id = self.b.tool(ToolDecl::unknown(name.clone(), span));
        self.tools.insert(name, (id, false));
        Some(id)
    }

    // Declarations.

    /// A label: the words `trusted`, `untrusted`, `secret`, or a literal.
    fn label(&mut self) -> LabelSpec {
        let (mut untrusted, mut secret) = (false, false);
        let mut words = false;
        while !(words && self.starts_item()) {
            match self.word() {
                "trusted" | "public" => {}
                "untrusted" => untrusted = true,
                "secret" => secret = true,
                _ => break,
            }
            words = true;
            self.bump();
        }
        if words {
            return LabelSpec::Axes { untrusted, secret };
        }
        self.eat_word("const");
        match self.tok() {
            Tok::Word if !matches!(self.word(), "true" | "false" | "null") => {
                self.expected_with(
                    "a label",
                    "`trusted`, `untrusted`, `secret`, or a literal such as `[\"U\"]`",
                );
                LabelSpec::BOTTOM
            }
            _ => LabelSpec::Exact(self.data()),
        }
    }

    fn label_after_at(&mut self) -> Option<LabelSpec> {
        if self.eat(Tok::At) { Some(self.label()) } else { None }
    }

    pub(super) fn tool_decl(&mut self) {
        let start = self.start();
        self.allowed(self.options.tools);
        self.bump();
        let at = self.start();
        let Some(name) = self.name("the name of the tool") else { return };
        let name_span = self.span(at);
        let mut params: Vec<(Name, Type, Option<LabelSpec>)> = Vec::new();
        self.tight_before();
        if self.open(Bracket::Round) {
            self.comma_list(Bracket::Round, |p| {
                let at = p.start();
                let Some(name) = p.name("the name of a parameter") else { return };
                if params.iter().any(|(n, ..)| *n == name) {
                    p.twice(&name, at);
                }
                let ty = if p.eat(Tok::Colon) { p.ty() } else { Type::Dyn };
                let bound = p.label_after_at();
                params.push((name, ty, bound));
            });
        }
        let result = if self.eat(Tok::Arrow) { self.ty() } else { Type::Dyn };
        let label = self.label_after_at();
        let mut effect = EffectClass::Write;
        let mut control = None;
        let mut description = None;
        let mut handler = None;
        let mut approve = Approve::Never;
        let mut parts = ResultParts::default();
        let mut delegated = None;
        let mut confirms = false;
        let mut among = Vec::new();
        let mut plain = Vec::new();
        let mut includes = Box::default();
        let mut pattern = Box::default();
        let mut completes = Box::default();
        let mut at_most = None;
        let mut policy = None;
        while !self.starts_item() {
            match (self.tok(), self.word()) {
                (_, "pure") => effect = EffectClass::Pure,
                (_, "read" | "reads") => effect = EffectClass::Read,
                (_, "write" | "writes") => effect = EffectClass::Write,
                (_, "control") => {
                    self.bump();
                    control = Some(self.label());
                    continue;
                }
                (_, "by") => {
                    self.bump();
                    handler = Some(self.data());
                    continue;
                }
                (_, "approve") => {
                    approve = Approve::Always;
                    self.bump();
                    if self.word() == "if_refused" {
                        approve = Approve::IfRefused;
                        self.bump();
                    }
                    continue;
                }
                (_, "fields") => {
                    self.bump();
                    parts = self.result_parts();
                    continue;
                }
                (_, "delegated") => {
                    self.bump();
                    delegated = self.delegated();
                    continue;
                }
                (_, "confirm") => confirms = true,
                (_, "among") => {
                    self.bump();
                    among = self.among();
                    continue;
                }
                (_, "plain") => {
                    self.bump();
                    plain = self.plain();
                    continue;
                }
                (_, "pattern") => {
                    self.bump();
                    pattern = self.patterns();
                    continue;
                }
                (_, "completes") => {
                    self.bump();
                    completes = self.completes();
                    continue;
                }
                (_, "includes") => {
                    self.bump();
                    includes = self.includes();
                    continue;
                }
                (_, "at_most") => {
                    self.bump();
                    at_most = Some(self.whole());
                    continue;
                }
                (_, "policy") => {
                    self.bump();
                    policy = self.closed();
                    continue;
                }
                (Tok::Str(_) | Tok::StrOpen(_), _) => {
                    description = Some(self.text("a description"));
                    continue;
                }
                _ => break,
            }
            self.bump();
        }
        let (bound_default, label_default) = default_flow(effect);
        let span = self.span(start);
        let decl = ToolDecl {
            name: name.clone(),
            params: params
                .into_iter()
                .map(|(name, ty, bound)| ToolParam {
                    name,
                    ty,
                    bound: bound.unwrap_or_else(|| bound_default.clone()),
                    default: None,
                })
                .collect(),
            result,
            effect,
            control: control.unwrap_or(bound_default),
            label: label.unwrap_or(label_default),
            parts,
            description,
            handler,
            approve,
            delegated,
            confirms,
            among: among.into(),
            plain: plain.into(),
            pattern,
            completes,
            includes,
            at_most,
            policy,
            span,
        };
        match self.tools.get(&name) {
            None => {
                let id = self.b.tool(decl);
                self.tools.insert(name, (id, true));
            }
            Some((_, true)) => {
                self.error(codes::DUPLICATE, format!("the tool `{name}` is declared twice"), name_span);
            }
            Some((_, false)) => {
                let message = format!("the tool `{name}` is declared after its first use");
                self.report(
                    Diagnostic::error(codes::DUPLICATE, message, name_span).help("move the declaration up"),
                );
            }
        }
    }

    /// The labels of parts of a result, as data.
    fn result_parts(&mut self) -> ResultParts {
        let start = self.start();
        let parts = ResultParts::from_data(&self.data());
        if parts.is_none() {
            let message =
                "`fields` takes a list such as `[{path: \"[].body\", untrusted: true, secret: false}]`";
            let span = self.span(start);
            self.error(codes::SYNTAX, message.to_string(), span);
        }
        parts.unwrap_or_default()
    }

    /// The sets of a tool, as data.
    fn among(&mut self) -> Vec<Among> {
        let start = self.start();
        let sets = self.data();
        let sets = match &sets {
            Data::List(sets) => sets.iter().map(Among::from_data).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        if sets.is_none() {
            let message = "`among` takes a list such as `[{tool: \"contacts\", params: {to: [\"email\"]}}]`";
            let span = self.span(start);
            self.error(codes::SYNTAX, message.to_string(), span);
        }
        sets.unwrap_or_default()
    }

    fn delegated(&mut self) -> Option<Arc<Delegated>> {
        let start = self.start();
        let delegated = Delegated::from_data(&self.data());
        if delegated.is_none() {
            let message = "`delegated` takes a record such as `{tool: \"pay\", to: [\"alice\"]}`";
            let span = self.span(start);
            self.error(codes::SYNTAX, message.to_string(), span);
        }
        delegated.map(Arc::new)
    }

    fn plain(&mut self) -> Vec<(Name, Plain)> {
        let start = self.start();
        let forms = match self.data() {
            Data::Record(forms) => forms
                .iter()
                .map(|(name, form)| match form {
                    Data::Str(form) => Some((name.clone(), Plain::named(form)?)),
                    _ => None,
                })
                .collect::<Option<Vec<_>>>(),
            _ => None,
        };
        if forms.is_none() {
            let message = "`plain` takes a record such as `{body: \"no-links\"}`";
            let span = self.span(start);
            self.error(codes::SYNTAX, message.to_string(), span);
        }
        forms.unwrap_or_default()
    }

    fn patterns(&mut self) -> Box<[(Name, Pattern)]> {
        let start = self.start();
        let patterns = core_ir::patterns_from_data(&self.data());
        if patterns.is_none() {
            let span = self.span(start);
            let message = "`pattern` takes a record of expressions such as `{code: \"[0-9]{6}\"}`";
            self.error(codes::SYNTAX, message.into(), span);
        }
        patterns.unwrap_or_default()
    }

    fn completes(&mut self) -> Box<[Name]> {
        let start = self.start();
        let names = match self.data() {
            Data::List(names) => names.iter().map(|n| Some(Name::from(n.as_str()?))).collect::<Option<_>>(),
            _ => None,
        };
        if names.is_none() {
            let span = self.span(start);
            self.error(codes::SYNTAX, "`completes` takes a list such as `[\"code\"]`".into(), span);
        }
        names.unwrap_or_default()
    }

    fn includes(&mut self) -> Includes {
        let start = self.start();
        let includes = core_ir::includes_from_data(&self.data());
        if includes.is_none() {
            let span = self.span(start);
            self.error(codes::SYNTAX, "`includes` takes a record such as `{body: [\"to\"]}`".into(), span);
        }
        includes.unwrap_or_default()
    }

    pub(super) fn store_decl(&mut self) {
        self.allowed(self.options.stores);
        let start = self.start();
        self.bump();
        let at = self.start();
        let Some(name) = self.name("the name of the store") else { return };
        let name_span = self.span(at);
        let id = self.store_body(name.clone(), start);
        // Declarations that say the same are one store. Others are refused when the code is finished.
        if let Some(first) = self.stores.get(&name) {
            if self.b.store_decl(*first).difference(self.b.store_decl(id)).is_some() {
                return;
            }
            self.report(
                Diagnostic::info(
                    codes::DUPLICATE,
                    format!("the store `{name}` is declared twice"),
                    name_span,
                )
                .help("both say the same, so they are one store: remove one"),
            );
            return;
        }
        self.stores.insert(name, id);
    }

    /// `{key: Type @ label = initial, …} capacity n ttl n backend "b"`.
    fn store_body(&mut self, name: Name, start: u32) -> StoreId {
        let mut keys: Vec<KeyDecl> = Vec::new();
        if self.open(Bracket::Curly) {
            self.comma_list(Bracket::Curly, |p| {
                let at = p.start();
                let Some(name) = p.name("the name of a key") else { return };
                if keys.iter().any(|k| k.name == name) {
                    p.twice(&name, at);
                }
                let ty = if p.eat(Tok::Colon) { p.ty() } else { Type::Dyn };
                let label = p.label_after_at().unwrap_or(LabelSpec::BOTTOM);
                let initial = if p.eat(Tok::Equals) { Some(p.data()) } else { None };
                keys.push(KeyDecl { name, ty, label, initial });
            });
        }
        let (mut capacity, mut ttl, mut backend) = (None, None, None);
        while !self.starts_item() {
            match self.word() {
                "capacity" => {
                    self.bump();
                    capacity = Some(self.whole());
                }
                "ttl" => {
                    self.bump();
                    ttl = Some(self.whole());
                }
                "backend" => {
                    self.bump();
                    backend = Some(self.text("the name of a backend, a string"));
                }
                _ => break,
            }
        }
        let span = self.span(start);
        self.declared_stores += 1;
        self.b.store(StoreDecl { name, keys, capacity, ttl, backend, span })
    }

    /// The store of a `mem`: a name, `store[2]`, or the keys themselves.
    pub(super) fn store_use(&mut self) -> StoreId {
        let start = self.start();
        if self.tok() == Tok::Open(Bracket::Curly) {
            // Each is a store of its own, so none gets the name of another one.
            let name = loop {
                self.unnamed_stores += 1;
                let name = match self.unnamed_stores {
                    1 => Name::from("memory"),
                    n => Name::from(format!("memory{n}")),
                };
                if !self.stores.contains_key(&name) {
                    break name;
                }
            };
            return self.store_body(name, start);
        }
        if self.is_word("store") {
            self.bump();
            self.open_tight();
            let n = self.whole();
            self.close(Bracket::Square);
            if n < u64::from(self.declared_stores) {
                return StoreId(n as u32);
            }
            let span = self.span(start);
            self.error(codes::STORE, format!("there is no store number {n}"), span);
        } else if let Some(name) = self.name("a store: its name, or `{key: Type, …}`") {
            if let Some(id) = self.stores.get(&name) {
                return *id;
            }
            let span = self.span(start);
            let mut d = Diagnostic::error(codes::STORE, format!("the store `{name}` is not declared"), span);
            d = match nearest(&name, self.stores.keys().map(|n| &**n)) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.help(format!("declare it first: `store {name} {{key: Str}}`")),
            };
            self.report(d);
        }
        // A placeholder; the code is not finished after an error.
        let span = self.span(start);
        let (name, keys) = (Name::from("memory"), Vec::new());
        self.b.store(StoreDecl { name, keys, capacity: None, ttl: None, backend: None, span })
    }
}
