//! The rules of expressions.

use super::env::{Binding, Entry, Fields, is_place};
use super::{Checker, duplicate, suggest};
use crate::codes;
use crate::decls::CallableKind;
use crate::functions::{self, Function};
use crate::generics;
use crate::predicate;
use crate::types::{alike, base, certain, fits, join, numbers, plain, show, unconditional, why_not};
use core_ir::{Data, Num, Pred, Type};
use diagnostics::{Applicability, Diagnostic, Fix, Span, nearest};
use syntax::agent::ast::{self, BinaryOp, Expr, ExprKind, UnaryOp};

/// The text of an expression that can stand in the hole of a text: a name, or fields of one.
pub(super) fn plain_text(e: &Expr) -> Option<String> {
    match &e.kind {
        ExprKind::Var(name) => Some(name.clone()),
        ExprKind::Number(n) => Some(n.clone()),
        ExprKind::Field(base, name) => Some(format!("{}.{}", plain_text(base)?, name.text)),
        _ => None,
    }
}

/// Returns true for a word that other languages have for the rest of the cases.
pub(super) fn is_rest(word: &str) -> bool {
    matches!(word, "default" | "else" | "otherwise" | "others" | "rest")
}

pub(super) fn not_a_variant(s: &str, span: Span, t: &core_ir::EnumType) -> Diagnostic {
    let message = match t.is_literal() {
        true => format!("`{s}` is not one of {}", show(&Type::Enum(std::sync::Arc::new(t.clone())))),
        false => format!("`{s}` is not a variant of `{}`", t.name),
    };
    let d = Diagnostic::error(codes::NOT_A_VARIANT, message, span);
    match nearest(s, t.variants.iter().map(|v| &**v)) {
        _ if is_rest(s) => d.help("write `_ => …` for all others"),
        Some(near) => {
            // A literal has quotes around the name, a case of a `match` has not.
            let quotes = if (span.end - span.start) as usize > s.len() { "\"" } else { "" };
            let d = suggest(d, &format!("{quotes}{near}{quotes}"));
            Diagnostic { help: vec![format!("did you mean `{near}`?")], ..d }
        }
        None if t.is_literal() => d.help("write one of these, or add it to the type"),
        None => d.help(format!(
            "its variants are {}",
            t.variants.iter().take(20).map(|v| format!("`{v}`")).collect::<Vec<_>>().join(", ")
        )),
    }
}

fn misfit(found: &Type, want: &Type, at: Span) -> Diagnostic {
    let message = format!("expected {}, found {}", show(want), show(found));
    let d = Diagnostic::error(codes::MISMATCH, message, at);
    match why_not(found, want) {
        Some(why) => d.label(why),
        None => d,
    }
}

/// The type of a value of which the fields are known, with the options of `want` that it lacks. Their paths
/// are added to `paths`. `path` leads to the value.
fn with_absent(
    known: &Fields,
    found: &Type,
    want: &Type,
    path: &mut Vec<core_ir::Name>,
    paths: &mut Vec<Vec<core_ir::Name>>,
) -> Type {
    let (Fields::These(all), Type::Record(has), Some(Type::Record(want))) =
        (known, found, present(Some(want)))
    else {
        return found.clone();
    };
    let mut own: Vec<(core_ir::Name, Type)> = Vec::new();
    for (name, ty) in has.iter() {
        let inner = all.iter().find(|(n, _)| **n == **name);
        let wanted = want.iter().find(|(n, _)| n == name);
        path.push(name.clone());
        let whole = match (inner, wanted) {
            (Some((_, inner)), Some((_, wanted))) => with_absent(inner, ty, wanted, path, paths),
            _ => ty.clone(),
        };
        path.pop();
        own.push((name.clone(), whole));
    }
    for (name, ty) in want.iter() {
        let is_known = all.iter().any(|(n, _)| **n == **name) || has.iter().any(|(n, _)| n == name);
        if matches!(ty, Type::Option(_)) && !is_known {
            paths.push(path.iter().chain([name]).cloned().collect());
            own.push((name.clone(), ty.clone()));
        }
    }
    Type::record(own)
}

/// The fields that a record lacks, as they are written; nothing if it lacks none.
fn missing_fields(has: &[(core_ir::Name, Type)], want: &[(core_ir::Name, Type)]) -> Option<String> {
    let lacks = want.iter().filter(|(n, _)| !has.iter().any(|(m, _)| m == n));
    let all: Vec<String> = lacks.take(5).map(|(n, t)| format!("`{n}: …` of type {}", show(t))).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Type of a value that is there where `want` is declared.
fn present(want: Option<&Type>) -> Option<&Type> {
    match want {
        Some(Type::Option(t)) => Some(t.unrefined()),
        other => other.map(Type::unrefined),
    }
}

/// Returns true if the type says more of a value, if there is one, than what kind of value it is.
fn has_condition(want: &Type) -> bool {
    match want {
        Type::Refined(_) => true,
        Type::Option(t) => has_condition(t),
        _ => false,
    }
}

impl Checker<'_> {
    /// Checks that an expression may stand where `want` is asked for.
    ///
    /// Returns its type.
    pub(super) fn expect(&mut self, e: &Expr, want: &Type, because: Option<(Span, String)>) -> Type {
        let mut found = self.typed(e, Some(want));
        // A string that is written in the value of a variable is one of the literals of a type.
        if !fits(&found, want)
            && let Some(literal) = self.literal_type(e, &found).filter(|t| fits(t, want))
        {
            found = literal;
        }
        // A field that it is certain not to have is null where an option is declared.
        if !fits(&found, want) {
            let mut paths = Vec::new();
            let whole = with_absent(&self.fields_of_value(e), &found, want, &mut Vec::new(), &mut paths);
            if fits(&whole, want) {
                found = whole;
                self.facts.absent.insert(e.span, paths);
            }
        }
        // What only a caller knows no run can check, but a condition it can.
        let is_unknown = generics::mentions(want, &self.generics) && !certain(&found, &plain(want));
        if fits(&found, want) && !is_unknown {
            let constant = if has_condition(want) { predicate::constant(e) } else { None };
            return match constant.map(|value| want.check(&value)) {
                Some(Ok(())) => want.clone(),
                Some(Err((_, why))) => {
                    let message = format!("this is no {}", show(want));
                    let mut d = Diagnostic::error(codes::NOT_IN_TYPE, message, e.span).label(why);
                    if let Some((span, text)) = because {
                        d = d.remark(span, text);
                    }
                    self.report(d.help("write a value of which the condition holds, or change the type"));
                    want.clone()
                }
                None => found,
            };
        }
        let mut d = misfit(&found, want, e.span);
        if let Some((span, text)) = because {
            d = d.remark(span, text);
        }
        d = match (&found, want) {
            _ if generics::mentions(want, &self.generics) => d.help(
                "each call decides what this type is: only values that the arguments have can be given",
            ),
            (Type::Str, Type::Enum(t)) if t.is_literal() => d.help(format!(
                "a String may be anything; say what it is where it comes from: `let x: {} = …;`",
                show(want)
            )),
            (Type::Str, Type::Enum(t)) => d.help(format!(
                "a String may be anything; only {} are sure to be a `{}`",
                t.variants.iter().map(|v| format!("`\"{v}\"`")).collect::<Vec<_>>().join(", "),
                t.name
            )),
            (Type::Option(_), _) => {
                d.help("look inside the option with `if let x = …`, or give another value: `x ?? …`")
            }
            (Type::Null, _) => d.help("only an `Option[…]` can be null"),
            (_, Type::Variant(cases)) => self.meant_case(d, e, cases),
            (_, Type::Str) => d.help("write it into a string: `f\"{…}\"`"),
            (_, Type::List(_)) if !matches!(found, Type::List(_)) => {
                d.help("a list of one item is written `[…]`")
            }
            (_, Type::Bool) => d.help("compare it: `… == …`"),
            (Type::Record(has), Type::Record(fields)) if let Some(missing) = missing_fields(has, fields) => {
                d.help(format!("add {missing}"))
            }
            _ => d.help(format!("give a value of type {}", show(want))),
        };
        // Holes hold no quotes, so only what has none can be moved into one.
        if let (Type::Num | Type::Bool, Type::Str, Some(text)) = (&found, want, plain_text(e)) {
            d = d.fix(Fix {
                span: e.span,
                replacement: format!("f\"{{{text}}}\""),
                applicability: Applicability::Unsafe,
            });
        }
        self.report(d);
        found
    }

    /// The type of a value with the strings that are written in it, such as `Obj{level: "low"}` for
    /// `{ level: "low" }`. `found` is its type without them.
    pub(super) fn literal_type(&self, e: &Expr, found: &Type) -> Option<Type> {
        let ty = stacker::maybe_grow(64 << 10, 1 << 20, || self.with_literals(e, found));
        (ty != *found).then_some(ty)
    }

    fn with_literals(&self, e: &Expr, found: &Type) -> Type {
        let of = |e: &Expr, found: &Type| self.literal_type(e, found).unwrap_or_else(|| found.clone());
        let field = |fields: &[(core_ir::Name, Type)], name: &str| {
            fields.iter().find(|(n, _)| **n == *name).map(|(_, t)| t.clone())
        };
        match (&e.kind, found) {
            (ExprKind::Str(s), Type::Str) => {
                Type::Enum(std::sync::Arc::new(core_ir::EnumType::literals(vec![s.as_str().into()])))
            }
            (ExprKind::Paren(inner), _) => of(inner, found),
            (ExprKind::Var(_), _) => match self.binding_of(e) {
                Some(b) if b.ty == *found => b.precise().clone(),
                _ => found.clone(),
            },
            (ExprKind::Field(base, name), _) => {
                let mut of_name = found;
                let inner = self.binding_of(base).map(Binding::precise);
                if let Some(Type::Record(fields)) = inner {
                    of_name = fields.iter().find(|(n, _)| **n == *name.text).map_or(found, |(_, t)| t);
                }
                of_name.clone()
            }
            (ExprKind::Record(entries) | ExprKind::Map(entries), Type::Map(types)) if !entries.is_empty() => {
                let all = entries.iter().map(|(_, e)| of(e, &types.1));
                let value = all.map(Some).reduce(|a, b| join(&a?, &b?)).flatten();
                value.map_or_else(|| found.clone(), |value| Type::map(types.0.clone(), value))
            }
            (ExprKind::Record(fields), Type::Record(types)) => Type::record(types.iter().map(|(n, t)| {
                let value = fields.iter().find(|(m, _)| *m.text == **n);
                (n.clone(), value.map_or_else(|| t.clone(), |(_, e)| of(e, t)))
            })),
            (ExprKind::Update(base, fields), Type::Record(types)) => {
                let before = self.binding_of(base).map(Binding::precise);
                Type::record(types.iter().map(|(n, t)| {
                    let value = fields.iter().find(|(m, _)| *m.text == **n);
                    let kept = || match &before {
                        Some(Type::Record(all)) => field(all, n).unwrap_or_else(|| t.clone()),
                        _ => t.clone(),
                    };
                    (n.clone(), value.map_or_else(kept, |(_, e)| of(e, t)))
                }))
            }
            (ExprKind::List(items), Type::List(item)) if !items.is_empty() => {
                let all = items.iter().map(|e| of(e, item));
                all.map(Some)
                    .reduce(|a, b| join(&a?, &b?))
                    .flatten()
                    .map_or_else(|| found.clone(), Type::list)
            }
            (ExprKind::If(None, _, a, b), _) => {
                join(&of(a, found), &of(b, found)).unwrap_or_else(|| found.clone())
            }
            (ExprKind::Match(_, arms), _) => {
                let all = arms.iter().map(|arm| of(&arm.value, found));
                all.map(Some).reduce(|a, b| join(&a?, &b?)).flatten().unwrap_or_else(|| found.clone())
            }
            (ExprKind::Block(lets, value), _) if lets.is_empty() => of(value, found),
            // What is bound in it is no longer known.
            (ExprKind::Block(..), _) => found.clone(),
            (ExprKind::Call(name, args), _) if is_part_of_first(&name.text) => {
                args.first().map_or_else(|| found.clone(), |list| of(list, found))
            }
            (ExprKind::Endorse(_, values, other), Type::Str) => {
                let all = values.iter().chain(other.as_deref()).map(|e| of(e, &Type::Str));
                all.map(Some).reduce(|a, b| join(&a?, &b?)).flatten().unwrap_or_else(|| found.clone())
            }
            _ => found.clone(),
        }
    }

    /// The binding of a variable.
    fn binding_of(&self, e: &Expr) -> Option<&Binding> {
        match &e.kind {
            ExprKind::Var(name) => match self.env.get(name)? {
                Entry::Bound(b) => Some(b),
                _ => None,
            },
            _ => None,
        }
    }

    /// Keeps the strings that are written in the value of a variable.
    pub(super) fn bind_literal(&mut self, name: &ast::Name, literal: Option<Type>) {
        if let (Some(_), Some(Entry::Bound(b))) = (&literal, self.env.get(&name.text)) {
            let entry = Entry::Bound(Binding { literal, ..b.clone() });
            self.env.set(&name.text, Some(entry));
        }
    }

    /// Keeps which fields the value of a variable has.
    pub(super) fn bind_fields(&mut self, name: &ast::Name, fields: Fields) {
        if let (Fields::These(_), Some(Entry::Bound(b))) = (&fields, self.env.get(&name.text)) {
            let entry = Entry::Bound(Binding { fields, ..b.clone() });
            self.env.set(&name.text, Some(entry));
        }
    }

    /// The fields that the text of an expression says that its value has.
    pub(super) fn fields_of_value(&self, e: &Expr) -> Fields {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
            ExprKind::Record(fields) => {
                let all = fields.iter().map(|(name, e)| (name.text.clone(), self.fields_of_value(e)));
                Fields::These(all.collect())
            }
            ExprKind::Paren(inner) => self.fields_of_value(inner),
            ExprKind::Var(_) => self.binding_of(e).map_or(Fields::Some, |b| b.fields.clone()),
            _ => Fields::Some,
        })
    }

    /// The declared type of a variable, whose value must fit it.
    fn annotation(&mut self, name: &ast::Name, written: &ast::TypeExpr) -> Type {
        let want = self.decls.types.ty_in(written, &self.generics, self.out);
        // A part of type `Any` fits statically; what it really is shows in the run.
        if want != Type::Dyn {
            self.facts.checked.insert(name.span, want.clone());
        }
        want
    }

    /// `let name: type = e;`
    pub(super) fn annotated(&mut self, name: &ast::Name, written: &ast::TypeExpr, e: &Expr) -> Type {
        let want = self.annotation(name, written);
        self.expect(e, &want, Some((written.span, "the declared type".to_string())));
        want
    }

    /// `let name: type = call(…);`
    pub(super) fn annotated_call(&mut self, run: &ast::Run, written: &ast::TypeExpr, found: &Type) -> Type {
        let want = self.annotation(&run.name, written);
        if !fits(found, &want) {
            let d = misfit(found, &want, run.target.span).remark(written.span, "the declared type");
            self.report(d.help(format!("declare it as {}, or leave the type out", show(found))));
        }
        want
    }

    /// The type of an expression. `want` is what its place asks for; it decides what an empty list is a
    /// list of, and makes messages precise. Whether the type fits is the caller's question.
    pub(super) fn expr(&mut self, e: &Expr, want: Option<&Type>) -> Type {
        // Of a recursive type it is the body, which says what the value is made of.
        base(unconditional(&base(unconditional(&self.typed(e, want)))))
    }

    /// The type of an expression with the conditions of declared types. Only what asks whether a value is
    /// certain to have a type looks at these: a variable has none, since it may be bound anew.
    pub(super) fn typed(&mut self, e: &Expr, want: Option<&Type>) -> Type {
        let want = want.filter(|t| numbers(t).is_some()).or_else(|| want.map(Type::unrefined));
        // Literals are looked at with the body of a recursive type.
        let body = match want {
            Some(Type::Rec(r)) => Some(r.unfold()),
            Some(Type::Option(t)) => match t.unrefined() {
                Type::Rec(r) => Some(Type::option(r.unfold())),
                _ => None,
            },
            _ => None,
        };
        let want = body.as_ref().or(want);
        stacker::maybe_grow(64 << 10, 1 << 20, || self.expr_inner(e, want))
    }

    pub(super) fn expr_inner(&mut self, e: &Expr, want: Option<&Type>) -> Type {
        match &e.kind {
            ExprKind::Str(s) => self.string(s, e.span, want),
            ExprKind::Number(n) => {
                if n.parse::<Num>().is_err() {
                    self.report(
                        Diagnostic::error(codes::HUGE_NUMBER, "this number is too large", e.span)
                            .help("write one of fewer digits"),
                    );
                }
                if let (Some(want), Ok(n)) = (want.filter(|t| numbers(t).is_some()), n.parse())
                    && want.admits(&Data::Num(n))
                {
                    return want.clone();
                }
                Type::Num
            }
            ExprKind::Bool(_) => Type::Bool,
            ExprKind::Null => Type::Null,
            ExprKind::Var(name) => {
                if let Some(want) = want {
                    self.used_as(name, want);
                }
                self.variable(name, e.span)
            }
            ExprKind::Field(base, name) => {
                let ty = self.expr(base, None);
                self.field(e, base, ty, name)
            }
            ExprKind::OptionalField(base, name) => self.optional_field(e, base, name),
            ExprKind::Index(base, index) => {
                let base_ty = self.expr(base, None);
                if let Type::Map(of) = &base_ty {
                    self.facts.lookups.insert(e.span);
                    self.map_key(index, &of.0);
                    return functions::looked_up(&of.1);
                }
                self.index(base, index, &base_ty);
                match base_ty {
                    Type::List(t) => (*t).clone(),
                    Type::Str | Type::Enum(_) => Type::Str,
                    Type::Dyn => Type::Dyn,
                    other => {
                        self.report(
                            Diagnostic::error(
                                codes::NOT_INDEXABLE,
                                "only a list or a string has an index",
                                base.span,
                            )
                            .label(format!("this is {}", show(&other)))
                            .help(match other {
                                Type::Record(_) => "the fields of a record are reached with `.name`",
                                Type::Option(_) => "look inside the option with `if let x = …`",
                                _ => "use the value itself",
                            }),
                        );
                        Type::Dyn
                    }
                }
            }
            ExprKind::Record(fields) | ExprKind::Map(fields) if let Some(Type::Map(of)) = present(want) => {
                self.map(fields, Some(of))
            }
            ExprKind::Map(fields) => match present(want) {
                Some(Type::Record(_)) => {
                    self.quoted_field(fields);
                    self.whole_record(fields, e.span, want)
                }
                _ => self.map(fields, None),
            },
            ExprKind::Record(fields) => self.whole_record(fields, e.span, want),
            ExprKind::Construct(name, fields) => self.construct(name, fields, e.span),
            ExprKind::Update(of, fields) => self.update(of, fields, want),
            ExprKind::Lambda(params, body) => self.stray_function(e.span, params, body),
            ExprKind::If(bound, condition, then, other) => {
                self.if_value(bound.as_ref(), condition, then, other, want)
            }
            ExprKind::Match(of, arms) => self.match_value(e.span, of, arms, want),
            ExprKind::Block(lets, value) => {
                let mark = self.env.mark();
                for l in lets {
                    let ty = match &l.ty {
                        Some(written) => self.annotated(&l.name, written, &l.value),
                        None => self.bound_value(&l.name, &l.value, None),
                    };
                    self.facts.variables.push((l.name.span, ty.clone()));
                    let literal = self.literal_type(&l.value, &ty);
                    let fields = self.fields_of_value(&l.value);
                    self.bind(&l.name, ty);
                    self.bind_literal(&l.name, literal);
                    self.bind_fields(&l.name, fields);
                }
                let ty = self.expr(value, want);
                self.env.undo(mark);
                ty
            }
            ExprKind::List(items) => self.list(e, items, want),
            ExprKind::Template(t) => {
                self.template(t);
                Type::Str
            }
            ExprKind::Paren(inner) => self.expr(inner, want),
            ExprKind::Unary(UnaryOp::Not, inner) => {
                self.operand("!", inner, &Type::Bool);
                Type::Bool
            }
            ExprKind::Unary(UnaryOp::Neg, inner) => {
                self.operand("-", inner, &Type::Num);
                Type::Num
            }
            ExprKind::Binary(op, op_span, a, b) => self.binary(*op, *op_span, a, b),
            ExprKind::Call(name, args) if self.decls.function(&name.text).is_some() => {
                self.call_function(name, args, e.span)
            }
            ExprKind::Call(name, args) => match (functions::named(&name.text), functions::higher(&name.text))
            {
                (Some(f), _) => self.call(f, name, args, e.span),
                (_, Some(f)) => self.higher(f, name, args, e.span, want),
                _ => match predicate::test(&name.text).filter(|_| self.in_guard) {
                    Some(signature) => self.test(signature, name, args, e),
                    None => self.call_in_expression(name, args),
                },
            },
            ExprKind::Quarantine(prompt, ty) => {
                if let Some(pure) = self.pure {
                    self.not_pure(pure, "`quarantine`, which asks a model,", e.span);
                }
                self.expect(prompt, &Type::Str, None);
                self.decls.types.ty(ty, self.out)
            }
            ExprKind::Endorse(value, values, other) => self.endorse(e.span, value, values, other.as_deref()),
            ExprKind::Error => Type::Dyn,
        }
    }

    /// The index of an item.
    fn index(&mut self, base: &Expr, index: &Expr, of: &Type) {
        if let (Type::Record(fields), ExprKind::Str(name)) = (of, &index.kind)
            && fields.iter().any(|(n, _)| **n == **name)
        {
            // The place of the list is reported.
            return;
        }
        self.expect(index, &Type::Num, Some((base.span, "an index counts from 0".to_string())));
        if let Some(Data::Num(n)) = predicate::constant(index)
            && n < Num::ZERO
        {
            let list = plain_text(base).unwrap_or_else(|| "xs".into());
            self.report(
                Diagnostic::error(codes::NOT_INDEXABLE, "there is no item before the first", index.span)
                    .help(format!("an index counts from 0; the last item is `{list}[length({list}) - 1]`")),
            );
        }
    }

    /// `endorse value in [constant, …] else constant`: the result is one of the constants.
    pub(super) fn endorse(&mut self, at: Span, value: &Expr, values: &[Expr], other: Option<&Expr>) -> Type {
        if let Some(pure) = self.pure {
            self.not_pure(pure, "`endorse`, which makes a value trusted,", at);
        }
        let ty = self.expr(value, None);
        let kind = [Type::Str, Type::Num, Type::Bool].into_iter().find(|t| ty.is_subtype(t));
        if kind.is_none() {
            self.report(
                Diagnostic::error(
                    codes::MISMATCH,
                    format!("only a String, a Number or a Bool can be endorsed, found {}", show(&ty)),
                    value.span,
                )
                .help("endorse the part of it that is needed"),
            );
        }
        if values.is_empty() {
            self.report(
                Diagnostic::error(codes::BAD_SETTING, "nothing is permitted", at)
                    .help("write the values that may be trusted between `[` and `]`"),
            );
        }
        let mut result: Option<Type> = None;
        for (e, is_other) in values.iter().map(|v| (v, false)).chain(other.map(|o| (o, true))) {
            let found = self.expr(e, None);
            if predicate::constant(e).is_none() && !matches!(e.kind, ExprKind::Error) {
                self.report(
                    Diagnostic::error(codes::NOT_CONSTANT, "what may be endorsed must be a constant", e.span)
                        .help(
                            "write a string, a number, `true` or `false`: a permitted value becomes trusted",
                        ),
                );
                continue;
            }
            if found == Type::Null && is_other {
                result = result.map(Type::option);
                continue;
            }
            if let Some(kind) = kind.as_ref().filter(|k| !found.is_subtype(k)) {
                self.report(
                    Diagnostic::error(
                        codes::MISMATCH,
                        format!("expected {}, found {}", show(kind), show(&found)),
                        e.span,
                    )
                    .remark(value.span, format!("this is {}", show(&ty)))
                    .help("the permitted values must have the type of the endorsed value"),
                );
                continue;
            }
            result = match result {
                None => Some(found),
                Some(t) => join(&t, &found),
            };
        }
        result.unwrap_or(Type::Dyn)
    }

    /// Enum typing: a string that is a variant has the type of its enum.
    pub(super) fn string(&mut self, s: &str, span: Span, want: Option<&Type>) -> Type {
        let literals = match present(want) {
            Some(Type::Enum(t)) if t.is_literal() => Some(t),
            _ => None,
        };
        if let Some(t) = literals.filter(|t| t.variants.iter().any(|v| **v == *s)) {
            return Type::Enum(t.clone());
        }
        // Files with names of their own have variants of their own.
        if let Some(Type::Enum(t)) = present(want)
            && t.variants.iter().any(|v| **v == *s)
        {
            return Type::Enum(t.clone());
        }
        if let Some((found, _)) = self.decls.types.variant(self.scopes.group(span.file), s) {
            return Type::Enum(found.clone());
        }
        let wanted = match want {
            Some(Type::Enum(t)) => Some(t),
            _ => literals,
        };
        if let Some(t) = wanted {
            let d = not_a_variant(s, span, t);
            self.report(d);
            return Type::Enum(t.clone());
        }
        self.braces_of_text(s, span, false);
        Type::Str
    }

    /// Warns of the name of a variable in braces that are text: in a plain string, or doubled beside holes.
    pub(super) fn braces_of_text(&mut self, text: &str, span: Span, doubled: bool) {
        let known = |inside: &&str| {
            let name = inside.split('.').next().unwrap_or("");
            matches!(self.env.get(name), Some(Entry::Bound(_)))
        };
        if doubled {
            let mut holes = text.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0.trim()));
            let Some(name) = holes.find(known) else { return };
            let message = format!("`{{{{{name}}}}}` is the text `{{{name}}}`, and no value");
            let d = Diagnostic::warn(codes::TEXT_BRACES, message, span);
            return self.report(d.help(format!("one brace opens a hole: `{{{name}}}`")));
        }
        let Some(name) = braced(text).find(known) else { return };
        let at = Span { end: span.start, ..span };
        self.report(
            Diagnostic::warn(codes::TEXT_BRACES, format!("`{{{name}}}` is text in a plain string"), span)
                .help("write `f` before the string to put the value there: `f\"…\"`")
                .fix(Fix { span: at, replacement: "f".into(), applicability: Applicability::Unsafe }),
        );
    }

    pub(super) fn variable(&mut self, name: &str, span: Span) -> Type {
        let d = match self.env.get(name) {
            Some(Entry::Bound(b)) => {
                let ty = b.whole.as_ref().filter(|_| self.wide).unwrap_or(&b.ty).clone();
                if b.whole.is_some() && !self.wide {
                    self.facts.narrowed.insert(span, ty.clone());
                }
                let id = b.id;
                self.reads.insert(id, span);
                return ty;
            }
            Some(Entry::OneWay { bound, construct }) => {
                let d =
                    Diagnostic::error(codes::MAYBE_UNBOUND, format!("`{name}` may have no value here"), span)
                        .remark(*bound, format!("bound here, but not on every path through {construct}"));
                d.help("bind it on every path, or before")
            }
            Some(Entry::Types { first, second }) => Diagnostic::error(
                codes::MAYBE_UNBOUND,
                format!("`{name}` may have one of two types here"),
                span,
            )
            .remark(first.0, format!("a {} here", show(&first.1)))
            .remark(second.0, format!("a {} here", show(&second.1)))
            .help("give it the same type on every path, or use two names"),
            None => match self.plain_case(name, span) {
                Some(ty) => return ty,
                None => self.unknown_variable(name, span),
            },
        };
        self.report(d);
        // Reported once; what follows from it is not worth another message.
        self.bindings += 1;
        let binding = Binding {
            id: self.bindings,
            ty: Type::Dyn,
            span,
            whole: None,
            literal: None,
            fields: Fields::Some,
        };
        self.env.set(name, Some(Entry::Bound(binding)));
        Type::Dyn
    }

    pub(super) fn unknown_variable(&self, name: &str, span: Span) -> Diagnostic {
        let d = Diagnostic::error(codes::UNKNOWN_VARIABLE, format!("there is no variable `{name}`"), span);
        let bound = self
            .env
            .names
            .iter()
            .filter(|(n, e)| !is_place(n) && matches!(e, Entry::Bound(b) if b.ty != Type::Dyn));
        let mut names: Vec<&str> = bound.map(|(n, _)| n.as_str()).collect();
        names.sort_unstable();
        match constant(name).or_else(|| nearest(name, names)) {
            _ if self.decls.types.is_sum(name) => d.help("a case is written without its type"),
            _ if self.decls.types.is_enum(name) => {
                d.help("a variant is written as a string, without its enum: `\"low\"`")
            }
            _ if self.decls.agents.contains_key(name) => {
                d.help(format!("`{name}` is an agent, which carries out tasks: `let x = task(…) by {name};`"))
            }
            _ if functions::module(name).is_some() => d.help(functions::module(name).unwrap_or_default()),
            Some(near) => suggest(d, near),
            None if self.decls.callable(name).is_some() => {
                d.help(format!("`{name}` is called in a statement of its own: `let x = {name}(…);`"))
            }
            None if self.decls.types.variant(self.scopes.group(span.file), name).is_some() => {
                d.help(format!("the variants of an enum are written as strings: `\"{name}\"`"))
            }
            None => d.help(format!("bind it first: `let {name} = …;`")),
        }
    }

    /// Field access.
    pub(super) fn field(&mut self, e: &Expr, base: &Expr, ty: Type, name: &ast::Name) -> Type {
        match &ty {
            Type::Dyn => Type::Dyn,
            Type::Record(fields) => {
                if let Some((_, t)) = fields.iter().find(|(n, _)| **n == *name.text) {
                    if matches!(t, Type::Option(_)) {
                        self.facts.optional_fields.insert(e.span);
                        return self.narrowed(e).unwrap_or_else(|| t.clone());
                    }
                    return t.clone();
                }
                let d = Diagnostic::error(
                    codes::NO_SUCH_FIELD,
                    format!("there is no field `{}` in {}", name.text, show(&ty)),
                    name.span,
                );
                let d = match nearest(&name.text, fields.iter().map(|(n, _)| &**n)) {
                    Some(near) => suggest(d, near),
                    None if fields.is_empty() => d.help("it has no fields"),
                    None => {
                        let names: Vec<String> =
                            fields.iter().take(20).map(|(n, _)| format!("`{n}`")).collect();
                        d.help(format!("its fields are {}", names.join(", ")))
                    }
                };
                self.report(d);
                Type::Dyn
            }
            other => {
                let d = Diagnostic::error(
                    codes::NO_SUCH_FIELD,
                    format!("only a record has fields; this is {}", show(other)),
                    name.span,
                )
                .remark(base.span, format!("of type {}", show(other)));
                let function = Some(&*name.text)
                    .filter(|n| functions::function_names().any(|f| f == *n))
                    .or_else(|| functions::known_as(&name.text));
                self.report(match other {
                    Type::Option(_) => d
                        .help("look inside the option with `if let x = …`, or after `if … != null`")
                        .help(format!("`?.{}` is null where the option is", name.text)),
                    Type::Variant(cases) => d.help(self.by_match(cases, &name.text)),
                    Type::List(_) | Type::Map(_) | Type::Str | Type::Num if function.is_some() => {
                        d.help(format!("a function is called: `.{}()`", function.unwrap_or_default()))
                    }
                    Type::List(_) => d.help("an item of a list is reached with `[0]`"),
                    Type::Map(_) => d.help(format!(
                        "the value of a key is `m[\"{}\"]`; the fields of a record are written without quotes",
                        name.text
                    )),
                    _ => d.help(format!("remove `.{}`", name.text)),
                });
                Type::Dyn
            }
        }
    }

    /// Object literal.
    pub(super) fn record(&mut self, fields: &[(ast::Name, Expr)], want: Option<&Type>) -> Type {
        let mut all: Vec<(core_ir::Name, Type)> = Vec::new();
        for (i, (name, e)) in fields.iter().enumerate() {
            if let Some((first, _)) = fields[..i].iter().find(|(n, _)| n.text == name.text) {
                let d = duplicate("key", name, first.span);
                self.report(d);
                self.expr(e, None);
                continue;
            }
            let wanted = match present(want) {
                Some(Type::Record(want)) => want.iter().find(|(n, _)| **n == *name.text).map(|(_, t)| t),
                _ => None,
            };
            let ty = match wanted {
                Some(t) => {
                    let found = self.expect(e, t, None);
                    // What does not fit at all was reported.
                    if certain(&found, t) || !fits(&found, t) { t.clone() } else { found }
                }
                // Where the record goes to, the run looks at the type of the items.
                None if is_empty(e) => Type::list(Type::Dyn),
                None => self.typed(e, None),
            };
            all.push((name.text.as_str().into(), ty));
        }
        Type::record(all)
    }

    /// A record whose fields are all written here. One that may be absent may be left out: absent it is null.
    fn whole_record(&mut self, fields: &[(ast::Name, Expr)], at: Span, want: Option<&Type>) -> Type {
        let found = self.record(fields, want);
        let (Type::Record(has), Some(Type::Record(known))) = (&found, present(want)) else { return found };
        for (name, _) in fields.iter().filter(|_| !known.is_empty()) {
            if !known.iter().any(|(n, _)| **n == *name.text) {
                self.extra_field(name, known);
            }
        }
        let left_out =
            known.iter().filter(|(n, t)| matches!(t, Type::Option(_)) && !has.iter().any(|(m, _)| m == n));
        let paths: Vec<_> = left_out.clone().map(|(n, _)| vec![n.clone()]).collect();
        let whole = Type::record(has.iter().chain(left_out).cloned().collect::<Vec<_>>());
        if !paths.is_empty() {
            self.facts.absent.insert(at, paths);
        }
        whole
    }

    /// Warns of a field that the type that is declared for the record does not have.
    fn extra_field(&mut self, name: &ast::Name, known: &[(core_ir::Name, Type)]) {
        let message = format!("there is no field `{}` in {}", name.text, show(&Type::record(known.to_vec())));
        let d = Diagnostic::warn(codes::EXTRA_FIELD, message, name.span);
        self.report(match nearest(&name.text, known.iter().map(|(n, _)| &**n)) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.help("remove it, or add it to the type: here nobody can read it"),
        });
    }

    /// The key of a map that is looked up.
    fn map_key(&mut self, key: &Expr, want: &Type) {
        let found = self.expr(key, Some(want).filter(|t| matches!(base((*t).clone()), Type::Enum(_))));
        if found.is_subtype(&Type::Str) {
            return;
        }
        let d = Diagnostic::error(
            codes::MISMATCH,
            format!("expected a key, {}, found {}", show(want), show(&found)),
            key.span,
        );
        self.report(match found {
            Type::Num => d.help("a number becomes a key with `to_string(n)`; `values(m)` is a list"),
            Type::Option(_) => d.help("look inside the option with `if let x = …`"),
            _ => d.help("the keys of a map are texts"),
        });
    }

    /// A field of a record is written like the key of a map.
    fn quoted_field(&mut self, fields: &[(ast::Name, Expr)]) {
        let quoted = |n: &ast::Name| (n.span.end - n.span.start) as usize > n.text.len();
        let Some((name, _)) = fields.iter().find(|(n, _)| quoted(n)) else { return };
        self.report(
            Diagnostic::error("A010", "expected a key, found a string", name.span)
                .help("the fields of a record are written without quotes"),
        );
    }

    /// Map literal: `{ "key": value }`, and `{ key: value }` where a map is expected.
    fn map(&mut self, entries: &[(ast::Name, Expr)], want: Option<&(Type, Type)>) -> Type {
        let (mut keys, mut values): (Option<Type>, Option<(Type, Span)>) = (None, None);
        for (i, (name, e)) in entries.iter().enumerate() {
            if let Some((first, _)) = entries[..i].iter().find(|(n, _)| n.text == name.text) {
                let d = duplicate("key", name, first.span);
                self.report(d);
            }
            if let Some((key, value)) = want {
                self.written_key(name, key);
                let found = self.expect(e, value, None);
                let found = if certain(&found, value) || !fits(&found, value) { value } else { &found };
                values = Some(match values {
                    None => (found.clone(), e.span),
                    // What some value may not have is checked where the map goes to.
                    Some((all, first)) => (join(&all, found).unwrap_or(Type::Dyn), first),
                });
                continue;
            }
            let key = self.string(&name.text, name.span, None);
            keys = Some(keys.map_or(key.clone(), |k| join(&k, &key).unwrap_or(Type::Str)));
            let found = self.typed(e, values.as_ref().map(|(t, _)| t).filter(|_| is_empty(e)));
            values = Some(match values {
                None => (found, e.span),
                Some((all, first)) => {
                    match join(&all, &found) {
                        Some(both) => (both, first),
                        None => {
                            self.report(
                            Diagnostic::error(
                                codes::MIXED_LIST,
                                format!("the values of a map have one type; this is {}", show(&found)),
                                e.span,
                            )
                            .remark(first, format!("a {} here", show(&all)))
                            .help("the fields of a record, whose values may differ, are written without quotes"),
                        );
                            (Type::Dyn, first)
                        }
                    }
                }
            });
        }
        match want {
            Some((key, value)) => Type::map(key.clone(), values.map_or_else(|| value.clone(), |(t, _)| t)),
            None => Type::map(keys.unwrap_or(Type::Str), values.map_or(Type::Dyn, |(t, _)| t)),
        }
    }

    /// A key of a map literal, which its type must admit.
    fn written_key(&mut self, name: &ast::Name, key: &Type) {
        match base(key.clone()) {
            Type::Enum(e) if !e.variants.iter().any(|v| **v == *name.text) => {
                let d = not_a_variant(&name.text, name.span, &e);
                self.report(d);
            }
            _ => {
                if let Err((_, why)) = key.check(&Data::str(&*name.text)) {
                    let message = format!("this is no {}", show(key));
                    let d = Diagnostic::error(codes::NOT_IN_TYPE, message, name.span).label(why);
                    self.report(d.help("write a key of which the condition holds, or change the type"));
                }
            }
        }
    }

    /// List literal: all items of the same type.
    pub(super) fn list(&mut self, e: &Expr, items: &[Expr], want: Option<&Type>) -> Type {
        let want = match present(want) {
            Some(Type::List(t)) => Some(&**t),
            _ => None,
        };
        if let Some(t) = want {
            let (mut all, mut but_for_conditions) = (true, true);
            let without = plain(t);
            for item in items {
                let found = self.expect(item, t, None);
                if !fits(&found, t) {
                    continue;
                }
                all &= certain(&found, t);
                but_for_conditions &= certain(&found, &without);
            }
            // A type that some item may not have is checked where the list goes to.
            return Type::list(match (all, but_for_conditions) {
                (true, _) => t.clone(),
                (_, true) => without,
                _ => Type::Dyn,
            });
        }
        let mut all: Option<(Type, Span)> = None;
        // Empty lists among the items are lists of what the others are lists of.
        let (empty, others): (Vec<&Expr>, Vec<&Expr>) = items.iter().partition(|i| has_empty(i));
        for item in others.into_iter().chain(empty) {
            let known = all.as_ref().map(|(t, _)| t.clone()).filter(|_| has_empty(item));
            let ty = self.expr(item, known.as_ref());
            all = match all {
                None => Some((ty, item.span)),
                Some((t, first)) => match join(&t, &ty) {
                    Some(both) => Some((both, first)),
                    None => {
                        self.report(
                            Diagnostic::error(
                                codes::MIXED_LIST,
                                format!("the items of a list have one type; this is {}", show(&ty)),
                                item.span,
                            )
                            .remark(first, format!("a {} here", show(&t)))
                            .help("use a record for values of different types"),
                        );
                        Some((Type::Dyn, first))
                    }
                },
            };
        }
        match all {
            Some((t, _)) => Type::list(t),
            None => {
                self.report(
                    Diagnostic::error(codes::EMPTY_LIST, "the item type of this list is not known", e.span)
                        .help("declare its type: `let xs: List[…] = [];`"),
                );
                Type::list(Type::Dyn)
            }
        }
    }

    pub(super) fn operand(&mut self, op: &str, e: &Expr, want: &Type) {
        let ty = self.expr(e, None);
        if !ty.is_subtype(want) {
            let d = Diagnostic::error(
                codes::BAD_OPERAND,
                format!("`{op}` works on a {}, found {}", show(want), show(&ty)),
                e.span,
            );
            self.report(d.help(match (&ty, want) {
                (Type::Option(_), _) => "look inside the option with `if let x = …`",
                (Type::Str, Type::Num) => "read the number with `to_number(…)`",
                (_, Type::Bool) => "compare it: `… == …`",
                _ => "use a number here",
            }));
        }
    }

    pub(super) fn binary(&mut self, op: BinaryOp, op_span: Span, a: &Expr, b: &Expr) -> Type {
        match op {
            BinaryOp::Or | BinaryOp::And => {
                self.operand(op.as_str(), a, &Type::Bool);
                let mark = self.env.mark();
                self.assume(a, op == BinaryOp::And);
                self.operand(op.as_str(), b, &Type::Bool);
                self.env.undo(mark);
                Type::Bool
            }
            BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => {
                self.facts.divides |= op == BinaryOp::Div;
                self.operand(op.as_str(), a, &Type::Num);
                self.operand(op.as_str(), b, &Type::Num);
                Type::Num
            }
            BinaryOp::Coalesce => self.coalesced(op_span, a, b),
            // Addition.
            BinaryOp::Add => self.alike(op, op_span, a, b),
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                self.alike(op, op_span, a, b);
                Type::Bool
            }
            // Equality, inequality.
            BinaryOp::Eq | BinaryOp::Ne => {
                let (ta, tb) = self.both(a, b);
                if comparable(&ta, &tb) || !self.comparable_whole(a, b) {
                    self.compared(op, op_span, (a, &ta), (b, &tb));
                }
                Type::Bool
            }
        }
    }

    /// The types of two expressions of one type. An empty list is one of what the other is a list of.
    pub(super) fn both(&mut self, a: &Expr, b: &Expr) -> (Type, Type) {
        if is_empty(a) {
            let tb = self.expr(b, None);
            return (self.expr(a, Some(&tb)), tb);
        }
        let ta = self.expr(a, None);
        let tb = self.expr(b, Some(&ta).filter(|_| is_empty(b)));
        (ta, tb)
    }

    /// `a ?? b`: the inside of the option, or else the other value.
    fn coalesced(&mut self, op_span: Span, a: &Expr, b: &Expr) -> Type {
        let inside = match self.whole(a) {
            Type::Option(t) => (*t).clone(),
            Type::Dyn => Type::Dyn,
            other => {
                self.expr(b, Some(&other));
                self.report(
                    Diagnostic::error(codes::NOT_AN_OPTION, "`??` needs an option before it", op_span)
                        .remark(a.span, format!("this is {}", show(&other)))
                        .help(match &a.kind {
                            ExprKind::Call(name, _)
                                if name.text == "to_number" && self.decls.function("to_number").is_none() =>
                            {
                                "`to_number` ends the run if there is no number; `parse_number` of `std:numbers` gives an option: `parse_number(text) ?? 0`"
                            }
                            _ => "only a value of type `Option[…]` can be absent; remove `??` and what follows it",
                        }),
                );
                return other;
            }
        };
        // An enum and another text are a text, so a variant is not asked for.
        let want = Some(&inside).filter(|t| !matches!(t, Type::Enum(_)) || is_one_of(b, t));
        let found = self.expr(b, want);
        join(&inside, &found).unwrap_or_else(|| {
            let d = misfit(&found, &inside, b.span).remark(a.span, "what stands here instead of null");
            self.report(d.help(format!("give a value of type {}", show(&inside))));
            inside
        })
    }

    /// `+` and the order: two strings or two numbers.
    pub(super) fn alike(&mut self, op: BinaryOp, op_span: Span, a: &Expr, b: &Expr) -> Type {
        let (ta, tb) = self.both(a, b);
        if op == BinaryOp::Add {
            self.argument_used_as(Some(a), || tb.clone());
            self.argument_used_as(Some(b), || ta.clone());
        }
        if let (BinaryOp::Add, Type::List(x), Type::List(y)) = (op, &ta, &tb)
            && let Some(item) = join(x, y)
        {
            return Type::list(item);
        }
        for t in [Type::Str, Type::Num] {
            // `Dyn` fits everything, so the other operand decides.
            let decisive = if ta == Type::Dyn { &tb } else { &ta };
            if decisive.is_subtype(&t) && ta.is_subtype(&t) && tb.is_subtype(&t) {
                return if *decisive == Type::Dyn { Type::Dyn } else { t };
            }
        }
        let one = |t: &Type| t.is_subtype(&Type::Str) || t.is_subtype(&Type::Num);
        let mut d = Diagnostic::error(
            codes::BAD_OPERAND,
            format!(
                "`{}` works on two strings{} two numbers, found {} and {}",
                op.as_str(),
                if op == BinaryOp::Add { ", two lists or" } else { " or" },
                show(&ta),
                show(&tb)
            ),
            op_span,
        )
        .remark(a.span, show(&ta))
        .remark(b.span, show(&tb));
        if op == BinaryOp::Add && one(&ta) && one(&tb) {
            d = d.help("write the number into a string: `f\"… {x} …\"`");
        } else if matches!(ta, Type::Option(_)) || matches!(tb, Type::Option(_)) {
            d = d.help("look inside the option with `if let x = …`, or give another value: `x ?? …`");
        } else {
            d = d.help("compare and add fields or items that are strings or numbers");
        }
        self.report(d);
        Type::Dyn
    }

    pub(super) fn compared(
        &mut self,
        op: BinaryOp,
        op_span: Span,
        (a, ta): (&Expr, &Type),
        (b, tb): (&Expr, &Type),
    ) {
        if !comparable(ta, tb) {
            let mut d = Diagnostic::error(
                codes::NOT_COMPARABLE,
                format!("`{}` can't compare {} with {}", op.as_str(), show(ta), show(tb)),
                op_span,
            )
            .remark(a.span, show(ta))
            .remark(b.span, show(tb));
            if matches!(ta, Type::Option(_)) || matches!(tb, Type::Option(_)) {
                d = d.help("an option can be compared with `null`; look inside it with `if let x = …`");
            } else {
                d = d.help("compare values of one type; `to_string(…)` and `to_number(…)` convert");
            }
            self.report(d);
            return;
        }
        for ((e, t), other) in [((a, ta), tb), ((b, tb), ta)] {
            let mut e = e;
            while let ExprKind::Paren(inner) = &e.kind {
                e = inner;
            }
            if let (ExprKind::Str(s), Type::Str, Some(variants)) = (&e.kind, t, variants_of(other))
                && !variants.variants.iter().any(|v| **v == **s)
            {
                let mut d = not_a_variant(s, e.span, variants);
                d.level = diagnostics::Level::Warn;
                d.code = codes::NEVER_EQUAL;
                let of = show(&Type::Enum(variants.clone()));
                d.message = format!(
                    "no {} is `{s}`, so this is always {}",
                    if variants.is_literal() { of } else { format!("`{of}`") },
                    op == BinaryOp::Ne
                );
                self.report(d);
            }
        }
    }

    pub(super) fn call(&mut self, f: &Function, name: &ast::Name, args: &[Expr], span: Span) -> Type {
        let mut types: Vec<Type> = Vec::new();
        for arg in args {
            // An item of a list is of the type of the others.
            let item = match (f.name, &types[..]) {
                ("append" | "contains", [Type::List(item)]) => Some((**item).clone()),
                ("set" | "get" | "has" | "remove", [Type::Map(of)]) => Some(of.0.clone()),
                ("set" | "get", [Type::Map(of), _]) => Some(of.1.clone()),
                _ => None,
            };
            let found = self.expr(arg, item.as_ref().filter(|t| is_one_of(arg, t)));
            types.push(match item {
                Some(item) if !found.is_subtype(&item) => {
                    self.literal_type(arg, &found).filter(|t| t.is_subtype(&item)).unwrap_or(found)
                }
                _ => found,
            });
        }
        if f.name == "to_string"
            && let ([arg], [ty]) = (args, &types[..])
            && super::holds_numbers(ty)
        {
            self.facts.numbers.insert(arg.span);
        }
        match (f.name, &types[..]) {
            ("append", [_, item]) => self.argument_used_as(args.first(), || Type::list(item.clone())),
            ("set", [_, key, value]) => {
                self.argument_used_as(args.first(), || Type::map(key.clone(), value.clone()));
            }
            ("merge", [one, other]) => {
                self.argument_used_as(args.first(), || other.clone());
                self.argument_used_as(args.get(1), || one.clone());
            }
            _ => {}
        }
        self.applied_built_in(f, &name.text, &types, span)
    }

    /// Type of a call of a built-in function, by its name in the program and the types of its arguments.
    pub(super) fn applied_built_in(&mut self, f: &Function, name: &str, types: &[Type], span: Span) -> Type {
        match (f.ty)(types) {
            Some(ty) => ty,
            None if types.contains(&Type::Dyn) => Type::Dyn,
            None => {
                let shown: Vec<String> = types.iter().map(show).collect();
                let message = format!("`{name}` can't be called with ({})", shown.join(", "));
                let d = Diagnostic::error(codes::BAD_CALL, message, span);
                // A task, tool or pipeline of the same name is meant.
                if let Some(s) = self.decls.callable(name) {
                    let message =
                        format!("{} `{name}` can't be called inside an expression", s.kind.as_str());
                    self.report(
                        Diagnostic::error(codes::CALL_IN_EXPRESSION, message, span)
                            .remark(s.name.span, "declared here")
                            .help(format!("call it in a statement of its own: `let x = {name}(…);`")),
                    );
                    return Type::Dyn;
                }
                let inside: Vec<Type> = types
                    .iter()
                    .map(|t| match t {
                        Type::Option(inner) => (**inner).clone(),
                        other => other.clone(),
                    })
                    .collect();
                let fits_inside = (f.ty)(&inside).is_some();
                self.report(match (f.name, types) {
                    _ if fits_inside => {
                        d.help("look inside the option with `if let x = …`, or give another value: `x ?? …`")
                    }
                    ("range", [_]) => d.help("write `range(0, n)` to count from 0"),
                    ("has", [Type::List(_) | Type::Str, _]) => d.help("write `contains(…)`"),
                    ("remove", [Type::List(_), ..]) => {
                        d.help("no function changes its list: `slice` and `filter` give a new one")
                    }
                    ("get", [Type::Record(fields), ..]) if !fields.is_empty() => d.help(
                        "a field is read with `.name`; one that may be missing has the type `Option[…]`",
                    ),
                    ("set", [Type::List(_)]) => d.help("items without repetitions are `unique(xs)`"),
                    ("set" | "get" | "has" | "keys" | "merge", [Type::Record(fields), ..])
                        if fields.is_empty() =>
                    {
                        d.help("say what `{}` is: `let m: Map[String, …] = {};`")
                    }
                    ("contains", [Type::Map(_), _]) => d.help("write `has(m, key)`"),
                    _ => d.help(format!("its signature is `{}`", f.signature)),
                });
                Type::Dyn
            }
        }
    }

    /// A test that only guards know.
    fn test(&mut self, signature: &str, name: &ast::Name, args: &[Expr], e: &Expr) -> Type {
        if let Some((_, item, list, condition)) = e.quantified() {
            let ty = self.items(list);
            let mark = self.env.mark();
            self.bind(&item, ty);
            self.condition(condition);
            self.env.undo(mark);
            return Type::Bool;
        }
        let mut wrong = None;
        match (name.text.as_str(), args) {
            ("words", [text]) => {
                self.expect(text, &Type::Str, None);
                return Type::Num;
            }
            ("matches", [text, pattern]) => {
                self.expect(text, &Type::Str, None);
                self.expect(pattern, &Type::Str, None);
                if let Some(Data::Str(s)) = predicate::constant(pattern)
                    && Pred::matching(&s).is_none()
                {
                    wrong = Some((
                        pattern.span,
                        "this is not a valid regular expression, or it is too large".to_string(),
                    ));
                }
            }
            ("schema", [value, text]) => {
                self.expr(value, None);
                self.expect(text, &Type::Str, None);
                if let Err(why) = predicate::schema(text) {
                    wrong = Some((text.span, format!("this is not a valid JSON Schema: {why}")));
                }
            }
            _ => {
                self.report(
                    Diagnostic::error(
                        codes::BAD_CALL,
                        format!("`{}` is not said like that", name.text),
                        e.span,
                    )
                    .help(format!("its signature is `{signature}`")),
                );
            }
        }
        if let Some((span, why)) = wrong {
            self.report(
                Diagnostic::error(codes::NOT_A_PREDICATE, why, span)
                    .help(format!("its signature is `{signature}`")),
            );
        }
        Type::Bool
    }

    /// Checks the arguments of a call of something that there is not. Returns whether it is the method of an
    /// unknown variable, of which nothing more is reported.
    pub(super) fn is_of_unknown<'e>(
        &mut self,
        name: &ast::Name,
        args: impl IntoIterator<Item = &'e Expr>,
    ) -> bool {
        let mut of_unknown = false;
        for (i, e) in args.into_iter().enumerate() {
            let known = self.out.len();
            self.expr(e, None);
            let is_receiver = i == 0 && matches!(e.kind, ExprKind::Var(_)) && e.span.start < name.span.start;
            of_unknown |= is_receiver && self.out.len() > known;
        }
        of_unknown
    }

    pub(super) fn call_in_expression(&mut self, name: &ast::Name, args: &[Expr]) -> Type {
        if self.is_of_unknown(name, args) {
            return Type::Dyn;
        }
        let d = match self.decls.callable(&name.text) {
            Some(s) => Diagnostic::error(
                codes::CALL_IN_EXPRESSION,
                format!("{} `{}` can't be called inside an expression", s.kind.as_str(), name.text),
                name.span,
            )
            .remark(s.name.span, "declared here")
            .help(format!("call it in a statement of its own: `let x = {}(…);`", name.text)),
            None => {
                let d = Diagnostic::error(
                    codes::UNKNOWN_FUNCTION,
                    format!("there is no function `{}`", name.text),
                    name.span,
                );
                let guards = if self.in_guard { predicate::tests().collect() } else { Vec::new() };
                let case = self.decls.types.cases.get(&name.text);
                let own = self.decls.callables.values().filter(|s| s.kind == CallableKind::Function);
                let own = own.map(|s| s.name.text.as_str());
                match functions::known_as(&name.text)
                    .or_else(|| nearest(&name.text, own.chain(functions::function_names()).chain(guards)))
                {
                    _ if case.is_some() => {
                        let written = case.map(|c| c.written(&name.text)).unwrap_or_default();
                        d.help(format!("a value of this case is written `{written}`"))
                    }
                    _ if functions::instead_of(&name.text).is_some() => {
                        d.help(functions::instead_of(&name.text).unwrap_or_default())
                    }
                    _ if predicate::test(&name.text).is_some() => {
                        d.help(format!("`{}` can be said in the condition of a `guard` only", name.text))
                    }
                    Some(near) => suggest(d, near),
                    None => d.help(format!("declare it: `fn {}(x: Type) -> Type {{ … }}`", name.text)),
                }
            }
        };
        self.report(d);
        Type::Dyn
    }
}

/// Returns true if two values can be equal: they are of one type, texts, or one of them may be absent.
pub(super) fn comparable(a: &Type, b: &Type) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        alike(a, b)
            || match (a, b) {
                (Type::Refined(r), t) | (t, Type::Refined(r)) => comparable(&r.0, t),
                (Type::Rec(_), Type::Rec(_)) => false,
                (Type::Rec(_), Type::Option(_)) | (Type::Option(_), Type::Rec(_)) => match (a, b) {
                    (Type::Option(x), t) | (t, Type::Option(x)) => comparable(x, t),
                    _ => false,
                },
                (Type::Rec(_), _) | (_, Type::Rec(_)) => comparable(&a.unfolded(), &b.unfolded()),
                (Type::Null, Type::Option(_)) | (Type::Option(_), Type::Null) => true,
                (Type::Enum(x), Type::Enum(y)) => {
                    (x.is_literal() || y.is_literal()) && x.variants.iter().any(|v| y.variants.contains(v))
                }
                (Type::Enum(_), Type::Str) | (Type::Str, Type::Enum(_)) => true,
                (Type::Option(x), Type::Option(y)) | (Type::List(x), Type::List(y)) => comparable(x, y),
                (Type::Option(x), t) | (t, Type::Option(x)) => comparable(x, t),
                (Type::Map(x), Type::Map(y)) => comparable(&x.0, &y.0) && comparable(&x.1, &y.1),
                (Type::Record(x), Type::Record(y)) => {
                    x.len() == y.len()
                        && x.iter().all(|(n, t)| y.iter().any(|(m, u)| n == m && comparable(t, u)))
                }
                _ => false,
            }
    })
}

/// The enumeration of which a value is, if it is there.
fn variants_of(ty: &Type) -> Option<&std::sync::Arc<core_ir::EnumType>> {
    match ty {
        Type::Enum(e) => Some(e),
        Type::Option(t) => variants_of(t),
        _ => None,
    }
}

/// Returns true for `[]` and `{}`, also as the value of a block: what would be in it, another value says.
pub(super) fn is_empty(e: &Expr) -> bool {
    let mut e = e;
    loop {
        match &e.kind {
            ExprKind::Paren(inner) | ExprKind::Block(_, inner) => e = inner,
            ExprKind::List(items) => return items.is_empty(),
            ExprKind::Record(fields) => return fields.is_empty(),
            _ => return false,
        }
    }
}

/// Returns true for a function whose result has items of its first argument.
fn is_part_of_first(name: &str) -> bool {
    matches!(name, "slice" | "reverse" | "unique" | "filter" | "sort_by" | "sort")
}

/// Returns true for a string that is one of the literals of a type, and for `[]` where the type is a list.
pub(super) fn is_one_of(e: &Expr, ty: &Type) -> bool {
    match (&e.kind, ty) {
        (ExprKind::Paren(inner), t) => is_one_of(inner, t),
        (_, Type::Option(t)) => is_one_of(e, t),
        (ExprKind::Str(s), Type::Enum(t)) => t.variants.iter().any(|v| **v == **s),
        (ExprKind::List(items), Type::List(_)) => items.is_empty(),
        (ExprKind::Record(fields), Type::Map(_)) => fields.is_empty(),
        _ => false,
    }
}

/// Returns true for `[]`, and for a record with such a field: what its items are, another value says.
fn has_empty(e: &Expr) -> bool {
    is_empty(e) || matches!(&e.kind, ExprKind::Record(fields) if fields.iter().any(|(_, e)| has_empty(e)))
}

/// Returns the counterpart of another language's constant.
fn constant(name: &str) -> Option<&'static str> {
    match name {
        "True" | "TRUE" => Some("true"),
        "False" | "FALSE" => Some("false"),
        "None" | "nil" | "Null" | "NULL" | "undefined" => Some("null"),
        _ => None,
    }
}

/// Returns the names in braces that look like a variable, or a field of one.
fn braced(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let (inside, _) = rest.split_once('}')?;
        let name = |part: &str| {
            part.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && part.chars().all(|c| c.is_alphanumeric() || c == '_')
        };
        inside.split('.').all(name).then_some(inside)
    })
}
