//! Which server a resource belongs to.

use serde_json::Value;
use std::collections::HashMap;

/// The most addresses that are remembered.
const MAX_ADDRESSES: usize = 20_000;
/// Bytes of an address that is remembered.
const MAX_ADDRESS: usize = 4096;

/// Resources and templates by server, as servers have named them. Who names one first has it.
#[derive(Debug, Default)]
pub(super) struct Owners {
    exact: HashMap<String, usize>,
    /// Beginnings of templates, up to the first variable.
    templates: Vec<(String, usize)>,
}

impl Owners {
    /// Takes note of a resource. Says whether it is that server's.
    pub(super) fn add(&mut self, uri: &str, server: usize) -> bool {
        if let Some(owner) = self.exact.get(uri) {
            return *owner == server;
        }
        if self.exact.len() < MAX_ADDRESSES && uri.len() <= MAX_ADDRESS {
            self.exact.insert(uri.into(), server);
        }
        true
    }

    /// Takes note of a template of resources. Says whether it is that server's.
    pub(super) fn add_template(&mut self, template: &str, server: usize) -> bool {
        let is_own = self.add(template, server);
        let start = template.split('{').next().unwrap_or_default().to_string();
        if is_own && !start.is_empty() && start.len() <= MAX_ADDRESS && self.templates.len() < MAX_ADDRESSES {
            let entry = (start, server);
            if !self.templates.contains(&entry) {
                self.templates.push(entry);
            }
        }
        is_own
    }

    /// Takes note of the resources that the result of a call names.
    pub(super) fn add_links(&mut self, result: &Value, server: usize) {
        for block in result["content"].as_array().into_iter().flatten() {
            for uri in [&block["uri"], &block["resource"]["uri"]] {
                if let Some(uri) = uri.as_str() {
                    self.add(uri, server);
                }
            }
        }
    }

    /// The server that named a resource, or the one with the longest template that fits.
    pub(super) fn owner(&self, uri: &str) -> Option<usize> {
        self.exact.get(uri).copied().or_else(|| {
            let fitting = self.templates.iter().filter(|(start, _)| uri.starts_with(start.as_str()));
            fitting.max_by_key(|(start, _)| start.len()).map(|(_, server)| *server)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn who_names_a_resource_first_has_it() {
        let mut owners = Owners::default();
        assert!(owners.add("note://1", 0) && owners.add("note://1", 0) && !owners.add("note://1", 1));
        assert!(owners.add_template("file:///{path}", 1) && owners.add_template("file:///notes/{n}", 2));
        owners.add_links(
            &json!({"content": [{"type": "resource_link", "uri": "db://x"}, {"resource": {"uri": "db://y"}}]}),
            3,
        );
        let all = ["note://1", "file:///etc/x", "file:///notes/7", "db://x", "db://y", "other://"];
        assert_eq!(all.map(|uri| owners.owner(uri)), [Some(0), Some(1), Some(2), Some(3), Some(3), None]);
    }
}
