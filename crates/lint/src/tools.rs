//! Facts about the tools of a compiled file, looked up when a rule first asks.

use core_ir::ToolDecl;
use diagnostics::Span;
use frontend_kit::{Compiled, Project};
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use tool_facts::{Reader, ToolFacts, by_name};

/// Facts about the tools of a compiled file, by name and place.
pub(crate) struct KnownTools<'a> {
    compiled: &'a Compiled,
    /// The file's project; without it, names tell all that is known.
    project: Option<&'a Project>,
    facts: OnceCell<HashMap<(Span, String), ToolFacts>>,
}

impl<'a> KnownTools<'a> {
    pub fn new(compiled: &'a Compiled, project: Option<&'a Project>) -> KnownTools<'a> {
        KnownTools { compiled, project, facts: OnceCell::new() }
    }

    /// Returns what is known of a tool.
    pub fn of(&self, tool: &ToolDecl) -> ToolFacts {
        let Some(project) = self.project else { return by_name(&tool.name, tool.span) };
        let facts = self.facts.get_or_init(|| {
            let mut decls: BTreeMap<(Span, String), &ToolDecl> = BTreeMap::new();
            for tool in self.compiled.units.iter().flat_map(|u| &u.code.tools) {
                decls.entry((tool.span, tool.name.to_string())).or_insert(tool);
            }
            let all: Vec<&ToolDecl> = decls.values().copied().collect();
            let facts = Reader::new(project, 0, self.compiled.framework, &[]).facts(&all);
            decls.into_keys().zip(facts).collect()
        });
        let known = facts.get(&(tool.span, tool.name.to_string()));
        known.cloned().unwrap_or_else(|| by_name(&tool.name, tool.span))
    }
}
