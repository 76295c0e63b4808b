//! Lists of several servers, merged into one.

use crate::message as msg;
use crate::upstream::{MAX_LIST, MAX_PAGES};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// A list that servers have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct List {
    pub(super) method: &'static str,
    /// The capability of servers that have it.
    pub(super) capability: &'static str,
    /// The field of the result.
    pub(super) field: &'static str,
    /// The field by which an item is known.
    pub(super) key: &'static str,
}

pub(super) const TOOLS: List =
    List { method: "tools/list", capability: "tools", field: "tools", key: "name" };
pub(super) const PROMPTS: List =
    List { method: "prompts/list", capability: "prompts", field: "prompts", key: "name" };
pub(super) const RESOURCES: List =
    List { method: "resources/list", capability: "resources", field: "resources", key: "uri" };
pub(super) const TEMPLATES: List = List {
    method: "resources/templates/list",
    capability: "resources",
    field: "resourceTemplates",
    key: "uriTemplate",
};

/// The lists by method.
pub(super) const LISTS: [&List; 4] = [&TOOLS, &PROMPTS, &RESOURCES, &TEMPLATES];

/// One request of the client that several servers answer.
#[derive(Debug)]
pub(super) struct Gather {
    /// The client's number.
    pub(super) id: Value,
    /// The list; without one the answers say nothing.
    pub(super) list: Option<&'static List>,
    /// Answers of the servers so far.
    pub(super) parts: BTreeMap<usize, Part>,
    /// When it is answered with what is there.
    pub(super) until: Duration,
}

/// Answers of one server.
#[derive(Debug, Default)]
pub(super) struct Part {
    items: Vec<Value>,
    bytes: usize,
    pages: usize,
    pub(super) is_done: bool,
    /// True if there was more than is taken.
    pub(super) is_cut: bool,
}

impl Part {
    /// Takes a page; gives the cursor of the next one. `share` is how many bytes of the list are this
    /// server's.
    pub(super) fn take(&mut self, result: &mut Value, list: &List, share: usize) -> Option<String> {
        self.pages += 1;
        let items = result[list.field].as_array_mut().map(std::mem::take).unwrap_or_default();
        for item in items {
            self.bytes = self.bytes.saturating_add(msg::size(&item));
            if self.bytes > share {
                self.is_cut = true;
                return None;
            }
            self.items.push(item);
        }
        let cursor = result["nextCursor"].as_str()?;
        if self.pages >= MAX_PAGES {
            self.is_cut = true;
            return None;
        }
        Some(cursor.into())
    }
}

/// Bytes of a merged list that each of several servers may have.
pub(super) fn share(servers: usize) -> usize {
    MAX_LIST / servers.max(1)
}

impl Gather {
    /// A request that these servers answer.
    pub(super) fn new(
        id: Value,
        list: Option<&'static List>,
        servers: impl IntoIterator<Item = usize>,
        until: Duration,
    ) -> Gather {
        let parts = servers.into_iter().map(|server| (server, Part::default())).collect();
        Gather { id, list, parts, until }
    }

    /// Returns whether all servers have answered.
    pub(super) fn is_done(&self) -> bool {
        self.parts.values().all(|part| part.is_done)
    }

    /// The answer: what `keep` makes of the items, in the order of the servers.
    pub(super) fn answer(self, mut keep: impl FnMut(usize, Value) -> Option<Value>) -> Value {
        let result = match self.list {
            None => json!({}),
            Some(list) => {
                let items = self.parts.into_iter().flat_map(|(server, part)| {
                    part.items.into_iter().map(move |item| (server, item)).collect::<Vec<_>>()
                });
                let items: Vec<Value> = items.filter_map(|(server, item)| keep(server, item)).collect();
                json!({ list.field: items })
            }
        };
        json!({"jsonrpc": "2.0", "id": self.id, "result": result})
    }
}
