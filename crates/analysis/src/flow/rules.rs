//! Rules of tools without effect: those that no call meets, and those that no call passes.
//!
//! Entry point: [`idle_rules`].
//!
//! The rules of a declaration are looked at in turn: the bounds, the sets of what a bound refuses, the forms
//! of untrusted texts, the patterns, the readers, the function. So a rule has no effect if the lattice says
//! that no argument which gets that far concerns it.
//!
//! To have no effect means that the same calls are made, asked about and refused without the rule. The label
//! of a refusal may be lower without it: who may choose out of a set may bring a refusal about.
//!
//! Invariant: what is reported holds for every run. What the lattice and the types don't decide is not
//! reported: the label of a label function, a type that isn't known, a text that a pattern may have.
//!
//! Source: `docs/calculus.md` §5, §10.

use super::sinks::{bound_of, set_label};
use super::{Options, codes};
use core_ir::{
    ASK_VERDICT, Among, AmongSource, AnswerSink, Approve, Code, Data, Label, Lattice, Name, Pattern, Term,
    TermId, ToolDecl, Type, among,
};
use diagnostics::{Diagnostic, Span};

/// The key of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleKey {
    /// A set that arguments are chosen from, by its position among those of the tool.
    Among(usize),
    /// The form of untrusted text.
    Plain,
    /// The pattern of an argument.
    Pattern,
    /// A parameter that only completes calls.
    Completes,
    /// The readers of an argument.
    Readers,
    /// The number of calls that untrusted data decides.
    AtMost,
    /// The calls that a person is asked about.
    Approve,
    /// The function that decides calls.
    Allow,
}

impl RuleKey {
    /// The key as policies and declarations have it.
    pub fn name(self) -> &'static str {
        match self {
            RuleKey::Among(_) => "among",
            RuleKey::Plain => "plain",
            RuleKey::Pattern => "pattern",
            RuleKey::Completes => "completes",
            RuleKey::Readers => "readers",
            RuleKey::AtMost => "at_most",
            RuleKey::Approve => "approve",
            RuleKey::Allow => "allow",
        }
    }
}

/// The reason why a rule has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdleReason {
    /// The bound admits untrusted data already.
    Admitted(Data),
    /// The bound refuses all untrusted data first.
    Refused(Data),
    /// A person decides every call, whatever its arguments come from.
    AlwaysAsks,
    /// The bounds admit all untrusted data, so nothing is left to ask.
    NeverAsks,
    /// The label of the result covers what the rule leaves out of it.
    Covered(Data),
    /// The bound admits public data alone, which everybody may read.
    Public(Data),
    /// The function allows every call.
    Allows,
    /// No value has the form.
    NoMatch,
    /// No value of the type has the form.
    NoMatchOfType(Type),
    /// No value of the set has the type of the parameter.
    OtherType(Type),
    /// No value of the set has the pattern of the parameter.
    NoneMatches,
    /// Not one call.
    Zero,
    /// The function allows no call.
    Refuses,
}

impl IdleReason {
    /// Returns true if the rule refuses whatever meets it; false if nothing meets it.
    pub fn admits_nothing(&self) -> bool {
        matches!(
            self,
            IdleReason::NoMatch
                | IdleReason::NoMatchOfType(_)
                | IdleReason::OtherType(_)
                | IdleReason::NoneMatches
                | IdleReason::Zero
                | IdleReason::Refuses
        )
    }

    fn describe(&self) -> String {
        match self {
            IdleReason::Admitted(bound) => {
                format!("the bound {} admits untrusted data already", bound.to_json())
            }
            IdleReason::Refused(bound) => {
                format!("the bound {} refuses untrusted data first", bound.to_json())
            }
            IdleReason::AlwaysAsks => "a person is asked about every call".into(),
            IdleReason::NeverAsks => "the bounds refuse no untrusted data, so nobody is asked".into(),
            IdleReason::Covered(label) => {
                format!("the label {} of the result covers that of the argument", label.to_json())
            }
            IdleReason::Public(bound) => {
                format!("the bound {} admits public data only, which everybody may read", bound.to_json())
            }
            IdleReason::Allows => "the function allows every call".into(),
            IdleReason::NoMatch => "no text matches".into(),
            IdleReason::NoMatchOfType(ty) => format!("no value of the type `{ty}` matches"),
            IdleReason::OtherType(ty) => format!("no value of it has the type `{ty}` of the parameter"),
            IdleReason::NoneMatches => "no value of it matches the pattern of the parameter".into(),
            IdleReason::Zero => "it is 0".into(),
            IdleReason::Refuses => "the function allows no call".into(),
        }
    }

    fn help(&self) -> &'static str {
        match self {
            IdleReason::Admitted(_) => "lower the bound of the parameter, or remove the set",
            IdleReason::Refused(_) => "raise the bound that refuses, or remove the rule",
            IdleReason::AlwaysAsks => "write `approve = \"if-refused\"`, or remove the set",
            IdleReason::NeverAsks => {
                "lower the bounds, or write `approve = true` if a person shall decide each call"
            }
            IdleReason::Covered(_) => "lower the label of the result, or remove the rule",
            IdleReason::Public(_) => "raise the secrecy of the bound, or remove the rule",
            IdleReason::Allows => "remove the function",
            IdleReason::NoMatch | IdleReason::NoMatchOfType(_) => {
                "correct the pattern; to refuse untrusted data write `bounds`"
            }
            IdleReason::OtherType(_) => "take the values from where they have the type of the parameter",
            IdleReason::NoneMatches => "correct the pattern or the set",
            IdleReason::Zero => "write `control = \"trusted\"` if untrusted data may decide no call",
            IdleReason::Refuses => "correct the function, or leave the tool out",
        }
    }
}

/// A rule of a tool without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleRule {
    /// The tool; `None` for the answer of the run.
    pub tool: Option<Name>,
    /// The rule.
    pub rule: RuleKey,
    /// The parameter that it is about, if it is about one.
    pub param: Option<Name>,
    /// Why it has no effect.
    pub why: IdleReason,
    /// Place of the tool.
    pub span: Span,
}

impl IdleRule {
    /// The finding, at this place.
    pub fn finding(&self, at: Span) -> Diagnostic {
        let key = self.rule.name();
        let of = match (&self.param, &self.tool) {
            (Some(param), Some(tool)) => format!("`{key}` of the parameter `{param}` of `{tool}`"),
            (None, Some(tool)) => format!("`{key}` of `{tool}`"),
            (_, None) => format!("`{key}` of the answer"),
        };
        let (code, what) = match self.why.admits_nothing() {
            true => (codes::ADMITS_NOTHING, "admits nothing"),
            false => (codes::UNMET, "has no effect"),
        };
        let message = format!("{of} {what}: {}", self.why.describe());
        Diagnostic::warn(code, message, at).help(self.why.help())
    }
}

/// The rules of a program's tools and of its answer that have no effect, as its declarations say them.
pub fn idle_rules(code: &Code, options: &Options) -> Vec<IdleRule> {
    let mut lattice = Lattice::with_principals(options.lattice, &options.principals);
    let mut found = Vec::new();
    for decl in &code.tools {
        // The rules of a delegated tool are those of the tool that it calls, and of the delegation.
        if decl.delegated.is_none() && !decl.confirms {
            let mut rules = ToolRules { code, decl, lattice: &mut lattice, out: &mut found };
            rules.look();
        }
    }
    found.extend(answer(&options.answer, &mut lattice, code));
    found
}

/// The form of the answer, if no untrusted answer gets that far.
fn answer(sink: &AnswerSink, lattice: &mut Lattice, code: &Code) -> Option<IdleRule> {
    sink.plain?;
    let bound = lattice.resolve(&sink.bound)?;
    let why = IdleReason::Refused(lattice.data_of(bound));
    let span = code.answer_span();
    is_closed(lattice, bound).then_some(IdleRule { tool: None, rule: RuleKey::Plain, param: None, why, span })
}

/// Returns whether a bound admits data of any integrity.
fn is_open(lattice: &mut Lattice, bound: Label) -> bool {
    let top = lattice.top();
    let anyone = lattice.reclassify(top, bound);
    lattice.flows(anyone, bound)
}

/// Returns whether a bound admits trusted data alone.
fn is_closed(lattice: &mut Lattice, bound: Label) -> bool {
    lattice.reclassify(bound, Label::BOTTOM) == Label::BOTTOM
}

/// The rules of one tool.
struct ToolRules<'a> {
    code: &'a Code,
    decl: &'a ToolDecl,
    lattice: &'a mut Lattice,
    out: &'a mut Vec<IdleRule>,
}

impl ToolRules<'_> {
    fn found(&mut self, rule: RuleKey, param: Option<&Name>, why: IdleReason) {
        let (tool, span) = (Some(self.decl.name.clone()), self.decl.span);
        self.out.push(IdleRule { tool, rule, param: param.cloned(), why, span });
    }

    fn bound(&mut self, param: &Name) -> Label {
        bound_of(self.lattice, self.decl, param)
    }

    fn ty(&self, param: &Name) -> &Type {
        self.decl.params.iter().find(|p| p.name == *param).map_or(&Type::Dyn, |p| &p.ty)
    }

    fn pattern(&self, param: &Name) -> Option<&Pattern> {
        self.decl.pattern.iter().find(|(name, _)| name == param).map(|(_, pattern)| pattern)
    }

    fn look(&mut self) {
        let decl = self.decl;
        for (at, among) in decl.among.iter().enumerate() {
            if let Some((param, why)) = self.set(among) {
                self.found(RuleKey::Among(at), Some(&param), why);
            }
        }
        for (param, _) in &decl.plain {
            // With approval the text is looked at, or asked about anyway.
            let bound = self.bound(param);
            if decl.approve == Approve::Never && is_closed(self.lattice, bound) {
                let why = IdleReason::Refused(self.lattice.data_of(bound));
                self.found(RuleKey::Plain, Some(param), why);
            }
        }
        for (param, pattern) in &decl.pattern {
            let most = self.most(param);
            let ty = self.ty(param);
            let why = if most == Label::BOTTOM {
                let bound = self.bound(param);
                Some(IdleReason::Refused(self.lattice.data_of(bound)))
            } else if pattern.matches_no_text() {
                Some(IdleReason::NoMatch)
            } else if matches_no_value(pattern, ty) {
                Some(IdleReason::NoMatchOfType(ty.clone()))
            } else {
                None
            };
            if let Some(why) = why {
                self.found(RuleKey::Pattern, Some(param), why);
            }
        }
        // A label of a part that an argument names is another one if the argument only completes the call.
        for param in decl.completes.iter().filter(|_| decl.parts.is_empty()) {
            let most = self.most(param);
            let result = self.lattice.resolve(&decl.label);
            if let Some(result) = result.filter(|result| self.lattice.flows(most, *result)) {
                let why = match most {
                    Label::BOTTOM => IdleReason::Refused(self.lattice.data_of(most)),
                    _ => IdleReason::Covered(self.lattice.data_of(result)),
                };
                self.found(RuleKey::Completes, Some(param), why);
            }
        }
        for (param, _) in &decl.includes {
            let bound = self.bound(param);
            if self.lattice.reclassify(Label::BOTTOM, bound) == Label::BOTTOM {
                let why = IdleReason::Public(self.lattice.data_of(bound));
                self.found(RuleKey::Readers, Some(param), why);
            }
        }
        self.number();
        self.questions();
        if let Some(policy) = &decl.policy {
            match verdicts(policy) {
                Some(Verdicts { allows: true, refuses: false, asks: false }) => {
                    self.found(RuleKey::Allow, None, IdleReason::Allows);
                }
                Some(Verdicts { allows: false, refuses: true, asks: false }) => {
                    self.found(RuleKey::Allow, None, IdleReason::Refuses);
                }
                _ => {}
            }
        }
    }

    /// The highest label of an argument that the bounds and sets let pass.
    fn most(&mut self, param: &Name) -> Label {
        let bound = self.bound(param);
        let is_chosen = || self.decl.among.iter().any(|a| a.params.iter().any(|(name, _)| name == param));
        match self.decl.approve.may_ask() || is_chosen() {
            true => {
                let top = self.lattice.top();
                self.lattice.reclassify(top, bound)
            }
            false => bound,
        }
    }

    /// Why a set admits nothing, or is never looked at; with the parameter. A label that does not flow to the
    /// bound is reported as `S108`.
    fn set(&mut self, among: &Among) -> Option<(Name, IdleReason)> {
        let first = among.params.first()?.0.clone();
        if self.decl.approve == Approve::Always {
            return Some((first, IdleReason::AlwaysAsks));
        }
        let mut bounds = Vec::with_capacity(among.params.len());
        for (param, _) in &among.params {
            let bound = self.bound(param);
            bounds.push(bound);
        }
        if bounds.iter().all(|bound| is_open(self.lattice, *bound)) {
            let bound = bounds.first().copied().unwrap_or_default();
            return Some((first, IdleReason::Admitted(self.lattice.data_of(bound))));
        }
        // Its label says so already.
        let label = set_label(self.lattice, self.code, among)?;
        if bounds.iter().any(|bound| !self.lattice.flows(label, *bound)) {
            return None;
        }
        among.params.iter().find_map(|(param, path)| {
            let ty = self.ty(param);
            let item = item_type(ty);
            let of_type = |value: &&Data| ty.admits(value) || item.admits(value);
            let values: Option<Vec<&Data>> = match &among.source {
                AmongSource::Values(values) => Some(values.iter().filter(of_type).collect()),
                _ => None,
            };
            let fits = match &among.source {
                // A guard fills the set of the request later.
                AmongSource::Values(all) => all.is_empty() || values.as_ref().is_some_and(|v| !v.is_empty()),
                AmongSource::Request => may_share(item, &Type::Str) || may_share(item, &Type::Num),
                AmongSource::Sites | AmongSource::Below(_) => may_share(item, &Type::Str),
                AmongSource::Tool(name) => {
                    let result = self.code.set_read(name).map_or(&Type::Dyn, |read| &read.result);
                    let found = among::type_at(result, path).unwrap_or(&Type::Dyn);
                    may_share(item, found) || may_share(ty, found)
                }
            };
            if !fits {
                return Some((param.clone(), IdleReason::OtherType(ty.clone())));
            }
            // Whatever a set admits is not trusted, so its pattern is looked at. A list has none.
            let pattern = self.pattern(param)?;
            let values = values.filter(|values| !values.is_empty())?;
            (!values.iter().any(|value| pattern.matches(value)))
                .then(|| (param.clone(), IdleReason::NoneMatches))
        })
    }

    /// `at_most`: the calls that untrusted data decides.
    fn number(&mut self) {
        let decl = self.decl;
        let Some(most) = decl.at_most else { return };
        let control = self.lattice.resolve(&decl.control).unwrap_or_default();
        // The label of the arguments as a whole is in that of each of them.
        let is_trusted = !decl.approve.may_ask()
            && is_closed(self.lattice, control)
            && decl.params.iter().any(|p| {
                let most = self.most(&p.name);
                is_closed(self.lattice, most)
            });
        if is_trusted {
            let why = IdleReason::Refused(self.lattice.data_of(control));
            self.found(RuleKey::AtMost, None, why);
        } else if most == 0 {
            self.found(RuleKey::AtMost, None, IdleReason::Zero);
        }
    }

    /// `approve = "if-refused"` of a tool that refuses nothing for its integrity.
    fn questions(&mut self) {
        let decl = self.decl;
        if decl.approve != Approve::IfRefused || !decl.plain.is_empty() {
            return;
        }
        let control = self.lattice.resolve(&decl.control).unwrap_or_default();
        let mut is_open_for = |bound: Label| is_open(self.lattice, bound);
        if !is_open_for(control) {
            return;
        }
        let is_open = decl.params.iter().all(|p| {
            let bound = bound_of(self.lattice, decl, &p.name);
            is_open(self.lattice, bound)
        });
        if is_open {
            self.found(RuleKey::Approve, None, IdleReason::NeverAsks);
        }
    }
}

/// The type of the items of a parameter that takes a list, and of the parameter otherwise.
fn item_type(mut ty: &Type) -> &Type {
    while let Type::Option(inner) | Type::List(inner) = ty {
        ty = inner;
    }
    ty
}

/// Returns whether some value may be of both types. It is so where that isn't known.
fn may_share(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Fun(_) | Type::Var(_), _) | (_, Type::Dyn | Type::Fun(_) | Type::Var(_)) => true,
        (Type::Rec(_), Type::Rec(_)) => true,
        (Type::Rec(r), other) | (other, Type::Rec(r)) => may_share(&r.unfold(), other),
        (Type::Option(inner), other) | (other, Type::Option(inner)) => {
            matches!(other, Type::Null | Type::Option(_)) || may_share(inner, other)
        }
        (Type::Refined(r), other) | (other, Type::Refined(r)) => may_share(&r.0, other),
        (Type::Enum(a), Type::Enum(b)) => a.variants.iter().any(|v| b.variants.contains(v)),
        (Type::Enum(_) | Type::Str, Type::Enum(_) | Type::Str) => true,
        (Type::Record(_) | Type::Map(_), Type::Record(_) | Type::Map(_)) => true,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

/// Returns whether no value of a type has a form that some text has. `null` has each form.
fn matches_no_value(pattern: &Pattern, ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::List(_) | Type::Record(_) | Type::Map(_) | Type::Variant(_) | Type::Pair(_) => {
            true
        }
        Type::Enum(of) => !of.variants.iter().any(|v| pattern.matches(&Data::str(&**v))),
        Type::Refined(r) => matches_no_value(pattern, &r.0),
        Type::Rec(r) => matches_no_value(pattern, &r.unfold()),
        Type::Dyn | Type::Str | Type::Num | Type::Null | Type::Option(_) | Type::Fun(_) | Type::Var(_) => {
            false
        }
    }
}

/// Verdicts that a function may give.
#[derive(Clone, Copy, Default)]
struct Verdicts {
    allows: bool,
    refuses: bool,
    asks: bool,
}

/// The verdicts of a function, if all are written out; `None` if one is computed.
fn verdicts(policy: &Code) -> Option<Verdicts> {
    let Term::Abs(function) = policy.term(policy.root()) else { return None };
    let mut out = Verdicts::default();
    let mut rest: Vec<TermId> = vec![function.body];
    while let Some(term) = rest.pop() {
        match policy.term(term) {
            Term::Lit(Data::Bool(true)) => out.allows = true,
            Term::Lit(Data::Bool(false) | Data::Str(_)) => out.refuses = true,
            Term::Tag(tag, _) | Term::Lit(Data::Tag(tag, _)) if **tag == *ASK_VERDICT => out.asks = true,
            Term::If(_, yes, no, _) => rest.extend([*yes, *no]),
            Term::Let { body, .. } => rest.push(*body),
            Term::Case { branches, default, .. } => {
                rest.extend(branches.iter().map(|b| b.body).chain(*default));
            }
            _ => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostics::Sources;

    fn said(text: &str) -> Vec<(&'static str, String)> {
        let mut sources = Sources::new();
        let file = sources.add("a.lam", text);
        let parsed = agentlang::calculus::compile(file, text);
        let code = parsed.code.unwrap_or_else(|| panic!("{text}: {:?}", parsed.diagnostics));
        let found = idle_rules(&code, &Options::default());
        found.iter().map(|r| (r.finding(r.span).code, r.finding(r.span).message)).collect()
    }

    fn check(rules: &str, expected: &[(&str, &str)]) {
        let text = format!("tool pay(to: Str, n: Num) -> Str {rules}\ntool[pay] {{to: 'bob', n: 1}}");
        let found = said(&text);
        assert_eq!(found.len(), expected.len(), "{text}: {found:?}");
        for ((code, part), (got, message)) in expected.iter().zip(&found) {
            assert!(code == got && message.contains(part), "{text}: {found:?}");
        }
    }

    #[test]
    fn rules_that_the_bounds_leave_nothing_have_no_effect() {
        check("write", &[]);
        check("write plain {to: 'no-links'}", &[("S110", "refuses untrusted data first")]);
        check("write approve plain {to: 'no-links'}", &[]);
        check("write at_most 2", &[("S110", "`at_most` of `pay`")]);
        check("write control untrusted at_most 2", &[]);
        check("write pattern {to: '[a-z]+'}", &[("S110", "`pattern` of the parameter `to`")]);
        check("read pattern {to: '[a-z]+'}", &[]);
        check("write among [{params: {to: []}}]", &[]);
        check("read among [{params: {to: []}}]", &[("S110", "admits untrusted data already")]);
        check("write approve among [{params: {to: []}}]", &[("S110", "a person is asked about every call")]);
        check("read approve if_refused", &[("S110", "nobody is asked")]);
        check("write approve if_refused", &[]);
    }

    #[test]
    fn rules_that_nothing_passes_admit_nothing() {
        check("read pattern {to: '[a&&b]'}", &[("S111", "no text matches")]);
        check("read at_most 0", &[("S111", "it is 0")]);
        let set = |source: &str, param: &str| format!("write among [{{{source}params: {{{param}: []}}}}]");
        check(&set("below: '/downloads/', ", "n"), &[("S111", "type `Num`")]);
        check(&set("below: '/downloads/', ", "to"), &[]);
        check(&set("values: ['a', 'b'], ", "n"), &[("S111", "type `Num`")]);
        check(&set("values: ['a', 1], ", "n"), &[]);
        let with =
            |pattern: &str| format!("{} pattern {{to: '{pattern}'}}", set("values: ['a', 'b'], ", "to"));
        check(&with("[0-9]+"), &[("S111", "no value of it matches the pattern")]);
        check(&with("b|c"), &[]);
    }

    #[test]
    fn types_share_values_unless_it_is_known_that_they_do_not() {
        assert!(may_share(&Type::Dyn, &Type::Num) && may_share(&Type::Str, &Type::Str));
        assert!(!may_share(&Type::Str, &Type::Num) && !may_share(&Type::Bool, &Type::list(Type::Bool)));
        assert!(may_share(&Type::option(Type::Num), &Type::Num));
        assert!(!may_share(&Type::option(Type::Num), &Type::Str));
        assert!(may_share(&Type::option(Type::Num), &Type::option(Type::Str)));
    }
}
