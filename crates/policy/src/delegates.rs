//! `[[delegate]]`: whose data may choose among which calls, in the blocks of plans that say so.
//!
//! A plan that delegates has tools of its own for the block ([`core_ir::Delegated`]). They have the rules of
//! the tool that they call, and beyond its bounds they admit the sources of the table.
//!
//! Invariant: without a table a delegated tool is an error.
//! Invariant: secrecy is what the tool's own bounds say. A delegation is about who decides.

use super::{Policy, PolicyReader, Value, codes, sets};
use crate::tree::Node;
use core_ir::{Among, Code, Delegated, LabelSpec, Lattice, LatticeKind, Name, ToolDecl};
use diagnostics::{Diagnostic, Span, clip};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most calls of one block.
const MAX_CALLS: u64 = 100;

/// Whose data may choose calls.
#[derive(Clone, Debug)]
pub struct Delegate {
    /// The sources, by name; sorted.
    pub to: Box<[Name]>,
    /// The tools whose calls they may choose.
    pub tools: Vec<Name>,
    /// Maximum number of calls of a block, and of each tool in a run.
    pub at_most: u64,
    /// The label that their data has at most.
    label: LabelSpec,
    /// The sets that parameters are chosen from; a parameter without one is chosen freely.
    among: Vec<sets::SetRule>,
    /// Place of the table.
    pub(super) span: Span,
}

impl PolicyReader {
    pub(super) fn delegates(&mut self, value: &Value, policy: &mut Policy) {
        const KEYS: &[&str] = &["to", "tools", "among", "at_most"];
        let Node::List(tables) = value.get_ref() else {
            self.wrong(value, "tables such as `[[delegate]]`");
            return;
        };
        for table in tables.iter() {
            let span = table.span();
            let Some(keys) = self.table(table, "a table with `to`, `tools` and `at_most`") else { continue };
            let (mut to, mut tools, mut among, mut at_most) = (None, None, Vec::new(), None);
            for (key, value) in keys.iter() {
                match &**key.get_ref() {
                    "to" => to = self.sources_of(value),
                    "tools" => tools = Some(self.names(value).into_iter().collect::<Vec<_>>()),
                    "among" => among = self.among(value),
                    "at_most" => {
                        at_most = self.count(value);
                        if at_most.is_some_and(|n| n > MAX_CALLS) {
                            self.wrong(value, &format!("at most {MAX_CALLS} calls"));
                        }
                    }
                    other => self.unknown_key(other, key.span(), KEYS),
                }
            }
            let missing = [("to", to.is_none()), ("tools", tools.is_none()), ("at_most", at_most.is_none())];
            match (to, tools, at_most) {
                (Some((to, _)), ..) if policy.delegates.iter().any(|d| d.to == to) => {
                    let message = format!("`{}` has two tables `[[delegate]]`", clip(&to.join(", ")));
                    let d = Diagnostic::error(codes::DELEGATION, message, span);
                    self.found.push(d.help(
                        "write one table with all of the `tools`, whose calls `at_most` counts together",
                    ));
                }
                (Some((to, label)), Some(tools), Some(at_most)) => {
                    policy.delegates.push(Delegate { to, tools, at_most, label, among, span });
                }
                _ => {
                    let names = missing.iter().filter(|m| m.1 && keys.get(m.0).is_none());
                    for (name, _) in names {
                        let message = format!("`[[delegate]]` needs `{name}`");
                        let d = Diagnostic::error(codes::DELEGATION, message, span);
                        self.found.push(d.help(
                            "write whose data may choose, among which tools, and how many calls: `to`, `tools`, `at_most`",
                        ));
                    }
                }
            }
        }
    }

    /// `to`: sources by name, or `untrusted` for everybody.
    fn sources_of(&mut self, value: &Value) -> Option<(Box<[Name]>, LabelSpec)> {
        const EXAMPLE: &str =
            "`{ source = \"alice@example.org\" }`, `{ sources = [\"a\", \"b\"] }` or `\"untrusted\"`";
        let names = match value.get_ref() {
            Node::Text(word) if **word == *"untrusted" => {
                let to = [Name::from("untrusted")];
                let label = Delegated::label(&to);
                return Some((to.into(), label));
            }
            Node::Table(table) if table.len() == 1 => {
                let (key, names) = table.iter().next()?;
                match (&**key.get_ref(), names.get_ref()) {
                    ("source", Node::Text(name)) => [Name::from(&**name)].into(),
                    ("sources", Node::List(_)) => self.names(names),
                    _ => Default::default(),
                }
            }
            _ => Default::default(),
        };
        if names.is_empty() {
            self.wrong(value, EXAMPLE);
            return None;
        }
        // A value such as an address names a principal.
        let named = |n: Name| self.principals.values.get(&n).map_or(n, |principal| principal.name.clone());
        let names: BTreeSet<Name> = names.into_iter().map(named).collect();
        if self.lattice.kind() != LatticeKind::SourcesReaders {
            let message = "sources are labels of the lattice `sources-readers`";
            let d = Diagnostic::error(codes::WRONG_VALUE, message, value.span());
            self.found.push(d.help("write `lattice = \"sources-readers\"`, or `to = \"untrusted\"`"));
            return None;
        }
        if let Some(known) = &self.principals.sources
            && let Some(name) = names.iter().find(|n| !known.contains(*n))
        {
            let message = format!("`{}` is none of the sources among the principals", clip(name));
            let d = Diagnostic::error(codes::UNKNOWN_NAME, message, value.span());
            self.found.push(d.help("add it to `principals.sources`"));
            return None;
        }
        let to: Box<[Name]> = names.into_iter().collect();
        let label = Delegated::label(&to);
        Some((to, label))
    }
}

impl Policy {
    /// Whose data may choose calls in blocks of plans.
    pub fn delegates(&self) -> &[Delegate] {
        &self.delegates
    }

    /// Gives the delegated tools of a program the bounds that the tables say.
    pub(super) fn delegate(&self, code: &mut Code, found: &mut Vec<Diagnostic>) {
        let mut lattice = Lattice::with_principals(self.lattice, &self.principals);
        for decl in &mut code.tools {
            let Some(delegated) = decl.delegated.clone() else { continue };
            let rule = self
                .delegates
                .iter()
                .find(|d| d.to == delegated.to && (decl.confirms || d.tools.contains(&delegated.tool)));
            let Some(rule) = rule else {
                found.push(undelegated(decl, &delegated.to));
                continue;
            };
            rule.put(Arc::make_mut(decl), &mut lattice);
        }
    }
}

/// The report of a delegation that no table admits.
fn undelegated(decl: &ToolDecl, to: &[Name]) -> Diagnostic {
    let message =
        format!("the policy lets nothing of `{}` choose calls of `{}`", to.join(", "), decl.called());
    Diagnostic::error(codes::DELEGATION, message, decl.span)
        .help("add `[[delegate]]` with these sources (`to`), this tool (`tools`) and `at_most` to the policy, or call it in the plan itself")
}

impl Delegate {
    /// Raises the bounds of a tool by the sources.
    fn put(&self, decl: &mut ToolDecl, lattice: &mut Lattice) {
        let mut raised = |bound: &LabelSpec| {
            let own = lattice.resolve(bound).unwrap_or_default();
            let theirs = lattice.resolve(&self.label).unwrap_or_default();
            let both = lattice.join(own, theirs);
            LabelSpec::Exact(lattice.data_of(both))
        };
        if decl.confirms {
            // The texts that they may choose by, as secret as the block takes them.
            for param in &mut decl.params {
                param.bound = raised(&param.bound);
            }
            return;
        }
        decl.control = raised(&decl.control);
        let sets: Vec<Among> = self.among.iter().map(|(among, _)| among.clone()).collect();
        let has = |among: &Among, name: &Name| among.params.iter().any(|(n, _)| n == name);
        for param in &mut decl.params {
            if !sets.iter().any(|among| has(among, &param.name)) {
                param.bound = raised(&param.bound);
            }
        }
        // A set is for the tools that have its parameters, and replaces those of the tool.
        let names: Vec<Name> = decl.params.iter().map(|p| p.name.clone()).collect();
        let fits = |among: &&Among| among.params.iter().all(|(n, _)| names.contains(n));
        let own = decl.among.iter().filter(|a| !a.params.iter().any(|(n, _)| sets.iter().any(|s| has(s, n))));
        decl.among = own.chain(sets.iter().filter(fits)).cloned().collect();
        decl.at_most = Some(decl.at_most.map_or(self.at_most, |most| most.min(self.at_most)));
    }
}
