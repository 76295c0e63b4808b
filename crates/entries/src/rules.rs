//! Rules of a policy that have no effect on some tools, that admit nothing, and that aren't decided.
//!
//! Entry point: [`check`].

use crate::policy::options;
use analysis::{flow, types};
use core_ir::{AmongSource, Code, ModelRoutes, Name, Term, ToolDecl, Type};
use diagnostics::{Diagnostic, Level, Span};
use policy::{Policy, PolicyScope, PolicyUse, codes};

/// A finding about a rule.
#[derive(Clone, Debug)]
pub struct RuleFinding {
    /// The tool that the rule is about; `None` if it is about no single one.
    pub tool: Option<Name>,
    /// The finding, at the place of the rule.
    pub finding: Diagnostic,
}

/// A rule of which nothing is known before a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided {
    /// The tool.
    pub tool: Name,
    /// The key of the rule.
    pub key: &'static str,
    /// The parameter that it is about, if it is about one.
    pub param: Option<Name>,
    /// Why nothing is known.
    pub why: &'static str,
    /// Place of the rule.
    pub span: Span,
}

/// Findings about the rules of a policy.
#[derive(Clone, Debug, Default)]
pub struct RuleReport {
    /// The findings.
    pub found: Vec<RuleFinding>,
    /// Rules of which nothing is known.
    pub undecided: Vec<Undecided>,
}

/// Compares the rules of a policy with the tools of a program, which has the policy in it and names policies
/// at `uses`. `is_complete` says that the program has all tools that the policy may be about.
pub fn check(policy: &Policy, code: &Code, uses: &[PolicyUse], is_complete: bool) -> RuleReport {
    let mut out = RuleReport::default();
    let scope = PolicyScope { tools: &code.tools, uses, is_complete };
    out.found.extend(policy.check(scope).into_iter().map(|finding| RuleFinding { tool: None, finding }));
    let options = options(Some(policy), ModelRoutes::default(), false);
    let (sets, parts) = flow::idle_labels(code, &options);
    let place = |decl: &ToolDecl, key: &str, param: Option<&str>| {
        policy.place(decl.called(), uses, key, param).unwrap_or(decl.span)
    };
    let find = |name: &Name| code.tools.iter().find(|t| t.name == *name);
    for set in &sets {
        let at = find(&set.tool).map_or(set.span, |decl| place(decl, "among", Some(&set.param)));
        out.found.push(RuleFinding { tool: Some(set.tool.clone()), finding: set.finding(at) });
    }
    for part in &parts {
        let at = find(&part.tool).map_or(part.span, |decl| place(decl, "fields", None));
        out.found.push(RuleFinding { tool: Some(part.tool.clone()), finding: part.finding(at) });
    }
    for rule in flow::idle_rules(code, &options) {
        let decl = rule.tool.as_ref().and_then(find);
        let at = match (decl, rule.rule) {
            (Some(decl), flow::RuleKey::Among(at)) => {
                decl.among.get(at).and_then(|among| policy.set_place(decl.called(), among))
            }
            _ => None,
        };
        let at = at.unwrap_or_else(|| {
            decl.map_or(rule.span, |decl| place(decl, rule.rule.name(), rule.param.as_deref()))
        });
        out.found.push(RuleFinding { tool: rule.tool.clone(), finding: rule.finding(at) });
    }
    for decl in code.tools.iter().filter(|t| t.delegated.is_none() && !t.confirms) {
        if let Some(finding) = wrong_function(decl, place(decl, "allow", None)) {
            out.found.push(RuleFinding { tool: Some(decl.name.clone()), finding });
        }
        undecided(code, decl, &place, &mut out.undecided);
    }
    out
}

/// Types of what a policy function does with what it is given. Where a value may be missing it is taken to be
/// there, so that what is reported goes wrong every time.
fn wrong_function(decl: &ToolDecl, at: Span) -> Option<Diagnostic> {
    let policy = decl.policy.as_ref()?;
    if decl.is_unknown() {
        return None;
    }
    let given = |ty: &Type| {
        let mut ty = ty;
        while let Type::Option(inner) = ty {
            ty = inner;
        }
        match ty {
            Type::Refined(base) => base.0.clone(),
            other => other.clone(),
        }
    };
    let field = |p: &core_ir::ToolParam| {
        let both = [("value".into(), given(&p.ty)), ("label".into(), Type::Dyn)];
        (p.name.clone(), Type::record(both))
    };
    let input = Type::record(decl.params.iter().map(field));
    let typing = types::check(policy, Some(&input));
    let first = typing.diagnostics.iter().find(|d| typing.complete && d.level == Level::Error)?;
    let message = format!("the policy function of `{}` goes wrong: {}", decl.name, first.message);
    let d = Diagnostic::warn(codes::WRONG_FUNCTION, message, at);
    let names: Vec<&str> = decl.params.iter().map(|p| &*p.name).collect();
    Some(d.help(format!("it is given a record of: {}", names.join(", "))))
}

/// Rules of a tool of which nothing is known before a run.
fn undecided(
    code: &Code,
    decl: &ToolDecl,
    place: &dyn Fn(&ToolDecl, &str, Option<&str>) -> Span,
    out: &mut Vec<Undecided>,
) {
    let mut add = |key: &'static str, param: Option<&Name>, why: &'static str| {
        let span = place(decl, key, param.map(|p| &**p));
        out.push(Undecided { tool: decl.name.clone(), key, param: param.cloned(), why, span });
    };
    for among in &decl.among {
        let Some((param, _)) = among.params.first() else { continue };
        let AmongSource::Tool(set) = &among.source else { continue };
        if code.set_read(set).is_some_and(|read| read.result == Type::Dyn) {
            add("among", Some(param), "the type of what its tool returns isn't known");
        }
    }
    for (param, _) in &decl.pattern {
        if decl.params.iter().any(|p| p.name == *param && p.ty == Type::Dyn) {
            add("pattern", Some(param), "the type of the parameter isn't known");
        }
    }
    if let Some(policy) = &decl.policy
        && !is_written_out(policy)
    {
        add("allow", None, "its verdict depends on the call");
    }
}

/// Returns whether a function gives the same verdict whatever it is given.
fn is_written_out(policy: &Code) -> bool {
    match policy.term(policy.root()) {
        Term::Abs(function) => matches!(policy.term(function.body), Term::Lit(_) | Term::Tag(..)),
        _ => false,
    }
}
