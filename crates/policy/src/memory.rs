//! `writes` and `reads`: what a tool keeps, and what it gives back later. Whoever applies the policy and
//! keeps labels of what was written says so ([`Policy::keeping`]). For others the result of a tool that reads
//! is whatever anybody wrote.

use super::{Policy, PolicyReader, Signature, Value, no_parameter};
use crate::tree::Node;
use core_ir::{Data, Name, ToolDecl};
use diagnostics::Diagnostic;
use std::collections::BTreeMap;

/// The most keys that one call names. A call that names more concerns all keys.
const MAX_KEYS: usize = 1_000;
/// Bytes of a key. A longer one concerns all keys.
const MAX_KEY: usize = 4_096;

/// Part of a server's memory that a call concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryKey {
    /// All of it: `"*"`.
    All,
    /// The keys that an argument names, by the path to it. Lists on the way represent their items.
    Argument(Vec<Name>),
}

/// Keys that a tool writes and reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Keys that it writes.
    pub writes: Option<MemoryKey>,
    /// Keys that it reads.
    pub reads: Option<MemoryKey>,
}

impl MemoryKey {
    /// The keys that a call with these arguments names; `None` is all.
    ///
    /// # Examples
    /// ```
    /// use core_ir::Data;
    /// use policy::MemoryKey;
    /// let key = MemoryKey::Argument(vec!["notes".into(), "name".into()]);
    /// let note = |name: &str| Data::record([("name".into(), Data::str(name))]);
    /// let args = Data::record([("notes".into(), Data::list([note("a"), note("b")]))]);
    /// assert_eq!(key.keys(&args), Some(vec!["a".into(), "b".into()]));
    /// assert_eq!(key.keys(&Data::record([])), None);
    /// ```
    pub fn keys(&self, args: &Data) -> Option<Vec<String>> {
        let MemoryKey::Argument(path) = self else { return None };
        let mut at = vec![args];
        for name in path {
            let mut next = Vec::new();
            for data in at {
                match data.field(name)? {
                    Data::List(items) => next.extend(items.iter()),
                    one => next.push(one),
                }
            }
            if next.len() > MAX_KEYS {
                return None;
            }
            at = next;
        }
        let text = |data: &Data| match data {
            Data::Str(text) if text.len() <= MAX_KEY => Some(text.to_string()),
            _ => None,
        };
        at.into_iter().map(text).collect::<Option<Vec<_>>>().filter(|keys| !keys.is_empty())
    }
}

impl PolicyReader {
    /// The value of `writes` or `reads`.
    pub(super) fn memory_key(&mut self, value: &Value) -> Option<MemoryKey> {
        let text = match value.get_ref() {
            Node::Text(text) => text.trim(),
            _ => "",
        };
        if text == "*" {
            return Some(MemoryKey::All);
        }
        let path: Vec<Name> = text.split('.').map(Name::from).collect();
        if path.iter().any(|name| name.is_empty()) {
            self.wrong(
                value,
                "the argument that names what is kept, such as \"key\" or \"notes.name\", or \"*\"",
            );
            return None;
        }
        Some(MemoryKey::Argument(path))
    }
}

impl Signature {
    /// Reports keys that no argument of the tool names.
    pub(super) fn check_memory(&self, memory: &Memory, decl: &ToolDecl, found: &mut Vec<Diagnostic>) {
        for (name, key) in [("writes", &memory.writes), ("reads", &memory.reads)] {
            if let Some(MemoryKey::Argument(path)) = key
                && let Some(first) = path.first()
                && !decl.params.iter().any(|p| p.name == *first)
            {
                let span = self.keys.iter().find(|(k, _)| k == name).map_or(decl.span, |(_, span)| *span);
                found.push(no_parameter(decl, first, span, decl.is_unknown()));
            }
        }
    }
}

impl Policy {
    /// The policy for whoever keeps the labels of what tools write, and joins them to what tools read.
    #[must_use]
    pub fn keeping(&self) -> Policy {
        let mut out = self.clone();
        let mut memory = BTreeMap::new();
        for tool in &mut out.tools {
            let said = std::mem::take(&mut tool.says.memory);
            if said != Memory::default() {
                memory.insert(tool.name.clone(), said);
            }
        }
        out.memory = memory;
        out
    }

    /// Returns whether some tool writes or reads what is kept.
    pub fn has_memory(&self) -> bool {
        self.tools.iter().any(|t| t.says.memory != Memory::default()) || !self.memory.is_empty()
    }

    /// Keys that a tool writes and reads, in a policy that is [kept](Policy::keeping).
    pub fn memory(&self, tool: &str) -> Option<&Memory> {
        self.memory.get(tool)
    }
}
