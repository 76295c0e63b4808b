//! Which tools of servers were approved, as they were then.

use serde::Deserialize;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Contents of `entail.lock`: for each approved server, its tools with a hash of everything that a program or
/// a model is told about them (name, description, schemas). Servers that are not listed are not checked.
///
/// # Examples
/// ```
/// let pins = runtime::Pins::parse("version = 1\n[tools.library]\nsearch = \"9f86d081\"\n").unwrap();
/// assert_eq!(pins.hash("library", "search"), Some("9f86d081"));
/// assert!(pins.knows("library") && !pins.knows("other"));
/// assert_eq!(runtime::Pins::parse(&pins.to_toml()).unwrap(), pins);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    version: u32,
    #[serde(default)]
    tools: BTreeMap<String, BTreeMap<String, String>>,
}

impl Default for Pins {
    fn default() -> Pins {
        Pins { version: VERSION, tools: BTreeMap::new() }
    }
}

const VERSION: u32 = 1;

impl Pins {
    /// Reads the file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Pins, String> {
        let pins: Pins = toml::from_str(text).map_err(|e| e.to_string().trim_end().to_string())?;
        match pins.version {
            VERSION => Ok(pins),
            other => Err(format!("it has version {other}, not {VERSION}")),
        }
    }

    /// The file.
    pub fn to_toml(&self) -> String {
        let mut out = format!(
            "# Tools of MCP servers as they were when somebody approved them. `entail tools --approve` writes this.\nversion = {VERSION}\n"
        );
        // A basic string of TOML is written as one of JSON; control characters that differ are in no name.
        let quoted = |t: &str| Json::from(t).to_string();
        for (server, tools) in &self.tools {
            // Writing to a string cannot fail.
            let _ = write!(out, "\n[tools.{}]\n", quoted(server));
            for (name, hash) in tools {
                let _ = writeln!(out, "{} = {}", quoted(name), quoted(hash));
            }
        }
        out
    }

    /// Returns true if the server was approved.
    pub fn knows(&self, server: &str) -> bool {
        self.tools.contains_key(server)
    }

    /// The hash of a tool when it was approved.
    pub fn hash(&self, server: &str, tool: &str) -> Option<&str> {
        self.tools.get(server)?.get(tool).map(String::as_str)
    }

    /// Approves exactly these tools of a server: names and hashes.
    pub fn approve(&mut self, server: &str, tools: impl IntoIterator<Item = (String, String)>) {
        self.tools.insert(server.to_string(), tools.into_iter().collect());
    }
}

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerTool {
    /// Its name.
    pub name: String,
    /// Description sent by the server. People must judge it; it is the server's claim.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input: Json,
    /// A hash of all of it.
    pub hash: String,
}

/// A hash of what a program or a model is told of a tool; the order of fields does not matter.
pub(super) fn hash(name: &str, description: &str, input: &Json, output: Option<&Json>) -> String {
    let mut text = String::new();
    for part in [&Json::from(name), &Json::from(description), input, output.unwrap_or(&Json::Null)] {
        canonical(part, &mut text);
        text.push('\n');
    }
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

/// JSON with the fields of objects in the order of their names. What a parser has read is not nested too deep
/// for this.
fn canonical(json: &Json, out: &mut String) {
    match json {
        Json::Object(fields) => {
            let sorted: BTreeMap<&String, &Json> = fields.iter().collect();
            out.push('{');
            for (name, value) in sorted {
                out.push_str(&Json::from(name.as_str()).to_string());
                out.push(':');
                canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Json::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_hash_depends_on_everything_but_the_order_of_fields() {
        let a = json!({"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}});
        let b = json!({"properties": {"n": {"type": "integer"}, "q": {"type": "string"}}, "type": "object"});
        assert_eq!(hash("t", "d", &a, None), hash("t", "d", &b, None));
        let others = [
            hash("u", "d", &a, None),
            hash("t", "e", &a, None),
            hash("t", "d", &json!({}), None),
            hash("t", "d", &a, Some(&b)),
        ];
        assert!(others.iter().all(|h| *h != hash("t", "d", &a, None)));
    }
}
