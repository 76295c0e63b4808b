//! Rules of a policy that are about nothing of some programs, and rules that another rule of it replaces.
//!
//! Entry points: [`Policy::check`], and [`Policy::place`] for findings of others about a tool's rules.
//!
//! Invariant: what is reported holds whatever a run does. Where the tools of a program aren't all known,
//! nothing is said of names.

use super::{Policy, PolicyUse, Signature, codes};
use crate::program::Rule;
use core_ir::{Name, ToolDecl};
use diagnostics::{Diagnostic, Span, clip, nearest};
use std::sync::Arc;

/// The tools that a policy is compared with.
#[derive(Clone, Copy, Debug)]
pub struct PolicyScope<'a> {
    /// The tools, with or without the policy in them.
    pub tools: &'a [Arc<ToolDecl>],
    /// The places where programs name policies.
    pub uses: &'a [PolicyUse],
    /// True if there are no other tools.
    pub is_complete: bool,
}

impl PolicyScope<'_> {
    fn tool(&self, name: &str) -> Option<&ToolDecl> {
        self.tools.iter().find(|t| **t.called() == *name).map(|t| &**t)
    }
}

impl Policy {
    /// Returns what is about nothing in the scope (`S210`), and what another rule replaces every time
    /// (`S211`), in the order of the text.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// use policy::{Policy, PolicyScope};
    /// let policy = Policy::parse(FileId(0), "[tools.send]\neffect = \"write\"\n").unwrap();
    /// let found = policy.check(PolicyScope { tools: &[], uses: &[], is_complete: true });
    /// assert_eq!(found[0].code, "S210");
    /// assert_eq!(policy.check(PolicyScope { tools: &[], uses: &[], is_complete: false }), []);
    /// ```
    pub fn check(&self, scope: PolicyScope<'_>) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        if scope.is_complete {
            self.unused(scope, &mut found);
        }
        self.set_aside(scope, &mut found);
        self.replaced_names(scope, &mut found);
        for table in &self.tools {
            if let Some(decl) = scope.tool(&table.name) {
                found.extend(covered_arguments(&table.says, decl));
            }
        }
        diagnostics::sort(&mut found);
        found.dedup();
        found
    }

    /// The place of a tool's rule that applies: in the file, in a policy that the program names, or in its
    /// block.
    pub fn place(&self, tool: &str, uses: &[PolicyUse], key: &str, param: Option<&str>) -> Option<Span> {
        let of = |says: &Signature| {
            // A bound that leads below a place is a set, too.
            let is_it = |rule: &&Rule| {
                let key_is = rule.key == key || (key == "among" && rule.key == "bounds");
                key_is && (rule.param.is_none() || param.is_none() || rule.param.as_deref() == param)
            };
            let all = says.rules();
            let exact = all.iter().find(|r| r.key == key && r.param.as_deref() == param);
            exact.or_else(|| all.iter().find(is_it)).map(|rule| rule.span)
        };
        let of_file = self.tools.iter().filter(|t| *t.name == *tool).map(|t| &t.says);
        let named = uses.iter().filter(|u| *u.tool == *tool).filter_map(|u| self.says(u));
        let own = self.own.iter().filter(|t| *t.name == *tool).map(|t| &t.says);
        of_file.chain(named).chain(&self.unknown).chain(own).find_map(of)
    }

    /// Tables and names that are about nothing.
    fn unused(&self, scope: PolicyScope<'_>, found: &mut Vec<Diagnostic>) {
        let names = || scope.tools.iter().map(|t| &**t.called());
        let missing = |tool: &str, at: Span, what: String| {
            let d = Diagnostic::warn(codes::UNUSED, what, at);
            match nearest(tool, names()) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.help("remove it, or name the programs and servers that it is about"),
            }
        };
        // What guards say of messages of the protocol is about no tool.
        let is_method = |name: &str| name.starts_with("mcp:") || name.contains("__mcp:");
        for table in self.tools.iter().filter(|t| scope.tool(&t.name).is_none() && !is_method(&t.name)) {
            let what = format!("no tool has the name `{}`", clip(&table.name));
            found.push(missing(&table.name, table.span, what));
        }
        for named in self.named.iter().filter(|n| !scope.uses.iter().any(|u| *u.policy == **n.name())) {
            let message = format!("no program names the policy `{}`", clip(named.name()));
            let d = Diagnostic::warn(codes::UNUSED, message, named.span());
            let used = scope.uses.iter().map(|u| u.policy.as_str());
            found.push(match nearest(named.name(), used) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.help("write `policy NAME` at a tool or a parameter, or remove it"),
            });
        }
        for (name, at) in self.delegates.iter().flat_map(|d| d.tools.iter().map(move |t| (t, d.span))) {
            if scope.tool(name).is_none() {
                found.push(missing(
                    name,
                    at,
                    format!("this delegates the tool `{}`, which no program has", clip(name)),
                ));
            }
        }
    }

    /// Rules of the program that the policy file sets aside.
    fn set_aside(&self, scope: PolicyScope<'_>, found: &mut Vec<Diagnostic>) {
        for rule in self.rules(scope.tools, scope.uses) {
            if rule.author == crate::Author::SetAside {
                let message = format!(
                    "`{}` of `{}` has no effect: the policy file has the last word",
                    rule.rule(),
                    rule.tool
                );
                let d = Diagnostic::info(codes::REPLACED, message, rule.span);
                found.push(d.help("remove it, or let the file leave it open"));
            }
        }
    }

    /// Rules of policies with a name that the table of the tool replaces wherever they are named.
    fn replaced_names(&self, scope: PolicyScope<'_>, found: &mut Vec<Diagnostic>) {
        for named in &self.named {
            let uses: Vec<&PolicyUse> = scope.uses.iter().filter(|u| *u.policy == **named.name()).collect();
            let Some(decls) = uses.iter().map(|u| scope.tool(&u.tool)).collect::<Option<Vec<_>>>() else {
                continue;
            };
            if uses.is_empty() || uses.iter().any(|u| u.param.is_some()) {
                continue;
            }
            for rule in named.says().rules() {
                let by = |decl: &ToolDecl| {
                    let table = self.tools.iter().find(|t| *t.name == **decl.called())?;
                    let fills = named.says().only(&rule).fills(decl);
                    let later = table.says.fills(decl);
                    (!fills.is_empty() && fills.is_subset(&later)).then_some(table.span)
                };
                let tables: Option<Vec<Span>> = decls.iter().map(|decl| by(decl)).collect();
                if let Some(first) = tables.and_then(|all| all.first().copied()) {
                    let message = format!(
                        "`{}` of the policy `{}` has no effect: the tables of its tools say it",
                        rule.key,
                        named.name()
                    );
                    let d = Diagnostic::warn(codes::REPLACED, message, rule.span);
                    found.push(d.remark(first, "said here").help("let one of the two say it"));
                }
            }
        }
    }
}

/// `arguments` of a tool each of whose parameters has a bound of its own.
fn covered_arguments(says: &Signature, decl: &ToolDecl) -> Option<Diagnostic> {
    says.arguments.as_ref()?;
    let has_bound = |name: &Name| says.bounds.iter().any(|(n, ..)| n == name);
    if decl.is_unknown() || decl.params.is_empty() || !decl.params.iter().all(|p| has_bound(&p.name)) {
        return None;
    }
    let at = says.keys.iter().find(|(key, _)| key == "arguments").map(|(_, span)| *span)?;
    let message = format!("`arguments` of `{}` has no effect: `bounds` names each parameter", decl.name);
    Some(Diagnostic::warn(codes::REPLACED, message, at).help("remove it, or the bounds that say the same"))
}
