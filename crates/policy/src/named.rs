//! `[policies.NAME]`: what a program refers to with `policy NAME` at a tool, a task or one of their
//! parameters.
//!
//! Invariant: all policies that are named of one tool hold together: a call is made if each of their
//! functions allows it, and no two of them may give the same bound.
//! Invariant: what no policy says stays as the program declares it.

use super::{Policy, PolicyReader, Signature, Value, codes};
use crate::program::Slot;
use core_ir::{Approve, Name, ToolDecl};
use diagnostics::{Applicability, Diagnostic, Fix, Span, nearest};
use std::collections::BTreeSet;

/// A place where a tool or task names a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyUse {
    /// The tool, by the name that it has in terms.
    pub tool: String,
    /// The parameter that it is about; `None` for the call as a whole.
    pub param: Option<String>,
    /// The policy's name.
    pub policy: String,
    /// Place of the reference.
    pub span: Span,
}

impl PolicyUse {
    /// Returns the error that no policy has this name. `known` are the names of the policy file, if there is
    /// one.
    pub fn unknown(&self, known: Option<&mut dyn Iterator<Item = &str>>) -> Diagnostic {
        let d = Diagnostic::error(codes::UNKNOWN, format!("there is no policy `{}`", self.policy), self.span);
        let lines = format!("[policies.{}]", self.policy);
        match known {
            None => d.help(format!(
                "name a policy file that has `{lines}` with `--policy`, or as `policy` in entail.toml"
            )),
            Some(known) => match nearest(&self.policy, known) {
                Some(near) => d.help(format!("did you mean `{near}`?")).fix(Fix {
                    span: self.span,
                    replacement: near.to_string(),
                    applicability: Applicability::Unsafe,
                }),
                None => d.help(format!("add `{lines}` to the policy file")),
            },
        }
    }
}

/// Keys of a policy at a parameter.
const OF_PARAMETER: &[&str] = &["arguments", "approve", "allow"];

#[derive(Clone, Debug)]
pub(super) struct NamedPolicy {
    name: Name,
    span: Span,
    says: Signature,
}

impl NamedPolicy {
    pub(super) fn says(&self) -> &Signature {
        &self.says
    }

    pub(super) fn name(&self) -> &Name {
        &self.name
    }

    pub(super) fn span(&self) -> Span {
        self.span
    }
}

impl PolicyReader {
    pub(super) fn named(&mut self, value: &Value, policy: &mut Policy) {
        let Some(table) = self.table(value, "a table with a table for each policy") else { return };
        for (key, value) in table.iter() {
            let span = key.span();
            let says = self.signature(value);
            policy.named.push(NamedPolicy { name: key.get_ref().to_string().into(), span, says });
        }
    }
}

impl Policy {
    /// The names that programs can refer to.
    pub fn policy_names(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(|p| &*p.name)
    }

    /// Returns errors in a program's references to policies: an unknown name (`A086`), or a policy that
    /// doesn't fit there (`S206`).
    pub fn check_named(&self, uses: &[PolicyUse]) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (i, u) in uses.iter().enumerate() {
            let Some(named) = self.of(u) else {
                found.push(u.unknown(Some(&mut self.policy_names())));
                continue;
            };
            let keys = &named.says.keys;
            let misfit = keys.iter().find(|(k, _)| u.param.is_some() && !OF_PARAMETER.contains(&k.as_str()));
            if let Some((key, at)) = misfit {
                let message = format!(
                    "the policy `{}` says `{key}`, which is about a call, and is named at a parameter",
                    named.name
                );
                let d = Diagnostic::error(codes::MISPLACED, message, u.span).remark(*at, "said here");
                found.push(
                    d.help(format!("name it after the result type of `{}`, or remove the key", u.tool)),
                );
                continue;
            }
            for earlier in uses[..i].iter().filter(|e| e.tool == u.tool && e.param == u.param) {
                let Some(other) = self.of(earlier) else { continue };
                let twice = keys.iter().find(|(k, _)| {
                    // Functions and questions add up.
                    !matches!(k.as_str(), "allow" | "approve") && other.says.keys.iter().any(|(o, _)| o == k)
                });
                if let Some((key, at)) = twice {
                    let message = format!(
                        "the policies `{}` and `{}` of `{}` both say `{key}`",
                        other.name, named.name, u.tool
                    );
                    let d = Diagnostic::error(codes::MISPLACED, message, u.span).remark(*at, "said here");
                    let d = d.remark(other.span, "and in this policy");
                    found.push(d.help("let one of the two say it"));
                }
            }
        }
        found
    }

    /// Puts the policies that a program names of a tool into its declaration. Returns what they say, each
    /// with its parameter, for their functions, and the slots that they have filled.
    pub(super) fn put_named<'a>(
        &'a self,
        decl: &mut ToolDecl,
        uses: &'a [PolicyUse],
        found: &mut Vec<Diagnostic>,
    ) -> (Vec<(&'a PolicyUse, &'a Signature)>, BTreeSet<Slot>) {
        let of_tool: Vec<(&PolicyUse, &Signature)> =
            uses.iter().filter(|u| *u.tool == *decl.name).filter_map(|u| Some((u, self.says(u)?))).collect();
        let mut filled = BTreeSet::new();
        if of_tool.is_empty() {
            return (of_tool, filled);
        }
        // Bounds of the call as a whole first: those of a parameter are more precise.
        let (whole, parts): (Vec<_>, Vec<_>) = of_tool.iter().partition(|(u, _)| u.param.is_none());
        // The strictest counts.
        let approve = of_tool.iter().filter_map(|(_, says)| says.approve).fold(decl.approve, Approve::max);
        for (_, says) in &whole {
            filled.extend(says.put(decl, found));
        }
        for (u, says) in &parts {
            let param = decl.params.iter_mut().find(|p| Some(&*p.name) == u.param.as_deref());
            if let (Some(param), Some(bound)) = (param, &says.arguments) {
                param.bound = bound.clone();
                filled.insert(Slot::Argument(param.name.clone()));
            }
        }
        decl.approve = approve;
        filled.remove(&Slot::Approve);
        (of_tool, filled)
    }

    /// Returns the rules for whole calls of the tool under the names in the program.
    pub(super) fn whole<'a>(
        &'a self,
        tool: &'a str,
        uses: &'a [PolicyUse],
    ) -> impl Iterator<Item = &'a Signature> {
        let whole = uses.iter().filter(move |u| *u.tool == *tool && u.param.is_none());
        whole.filter_map(|u| self.says(u))
    }

    pub(super) fn says(&self, u: &PolicyUse) -> Option<&Signature> {
        self.of(u).map(|p| &p.says)
    }

    fn of(&self, u: &PolicyUse) -> Option<&NamedPolicy> {
        self.named.iter().find(|p| *p.name == *u.policy)
    }
}
