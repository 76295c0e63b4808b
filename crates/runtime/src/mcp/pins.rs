//! Which tools of servers were approved, as they were then, which modules of Python, and prices of models.

use serde::Deserialize;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Contents of `entail.lock`: for each approved server, its tools with hashes of everything that a program or
/// a model is told about them (name, description, schemas). Servers that are not listed are not checked.
///
/// # Examples
/// ```
/// let text = "version = 1\n[tools.library]\nsearch = \"9f86d081\"\n";
/// let pins = runtime::Pins::parse(text).unwrap();
/// assert!(pins.knows("library") && !pins.knows("other"));
/// assert_eq!(runtime::Pins::parse(&pins.to_toml()).unwrap(), pins);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    version: u32,
    #[serde(default)]
    tools: BTreeMap<String, BTreeMap<String, Pin>>,
    #[serde(default)]
    python: BTreeMap<String, ModulePin>,
    #[serde(default)]
    models: BTreeMap<String, ModelPin>,
    /// Versions that servers stated when their tools were approved.
    #[serde(default)]
    servers: BTreeMap<String, String>,
}

/// Price of a model when it was locked, in US dollars for a million tokens, as decimals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPin {
    /// Of the prompt; `None` if it was not known.
    pub input: Option<String>,
    /// Of the reply; `None` if it was not known.
    pub output: Option<String>,
    /// Of the part of the prompt that the provider's cache had, if that has a price of its own.
    pub cached: Option<String>,
    /// Of the part of the prompt that was written to the cache.
    pub cache_write: Option<String>,
    /// The day from which the price holds.
    pub date: Option<String>,
    /// Page, contract or file that the price is from.
    pub source: Option<String>,
}

impl ModelPin {
    /// Returns whether the price is the same, whatever its date and source.
    pub fn has_price_of(&self, other: &ModelPin) -> bool {
        fn price(of: &ModelPin) -> [Option<&str>; 4] {
            [&of.input, &of.output, &of.cached, &of.cache_write].map(Option::as_deref)
        }
        price(self) == price(other)
    }
}

impl std::fmt::Display for ModelPin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Some(input), Some(output)) = (&self.input, &self.output) else {
            return f.write_str("an unknown price");
        };
        if input == "0" && output == "0" {
            return f.write_str("nothing");
        }
        write!(f, "${input} for a million tokens of prompt and ${output} of reply")?;
        for (part, price) in [("cached", &self.cached), ("written to the cache", &self.cache_write)] {
            if let Some(price) = price {
                write!(f, " (${price} if {part})")?;
            }
        }
        Ok(())
    }
}

/// A module of Python whose functions are tools, as it was when it was locked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModulePin {
    /// Hash of the module and of each module of its project that it imports, by path relative to the lock.
    pub files: BTreeMap<String, String>,
    /// Its declarations in the language: signatures of tools, and types.
    #[serde(default)]
    pub declared: BTreeMap<String, String>,
}

impl ModulePin {
    /// Compares the files with those in the folder of the lock.
    ///
    /// # Errors
    /// The path of the first file that has changed or is not there.
    pub fn verify(&self, folder: &Path) -> Result<(), String> {
        let is_same = |(path, hash): &(&String, &String)| {
            std::fs::read(folder.join(path)).is_ok_and(|bytes| file_hash(&bytes) == **hash)
        };
        match self.files.iter().find(|file| !is_same(file)) {
            Some((path, _)) => Err(path.clone()),
            None => Ok(()),
        }
    }
}

/// Hash of a file, as a lock has it.
pub fn file_hash(bytes: &[u8]) -> String {
    runs::hex(&Sha256::digest(bytes))
}

impl Default for Pins {
    fn default() -> Pins {
        Pins {
            version: VERSION,
            tools: BTreeMap::new(),
            python: BTreeMap::new(),
            models: BTreeMap::new(),
            servers: BTreeMap::new(),
        }
    }
}

/// Version of the file that is written. Version 1 has one hash for each tool, version 2 no parameters,
/// version 3 no definitions, version 4 neither modules of Python nor models.
const VERSION: u32 = 5;

/// Approved parts of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Pin {
    /// The hash of all of it.
    Whole(String),
    /// A hash of each part.
    Parts(ToolHashes),
}

/// Hashes of what a server says of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolHashes {
    /// Of the description.
    pub description: String,
    /// Of the JSON Schema of the arguments.
    pub input: String,
    /// Of the JSON Schema of the result, or of its absence.
    pub output: String,
    /// The parameters that the schema names, each with whether a call must give it; `None` if the tool was
    /// approved before they were written down. Their hash is that of the schema.
    #[serde(default)]
    pub parameters: Option<BTreeMap<String, bool>>,
    /// The approved definition as JSON: `description`, `input` and `output`; `None` if the tool was
    /// approved before
    /// this was written down.
    #[serde(default)]
    pub definition: Option<String>,
}

/// See [`ToolHashes::definition`].
#[derive(Deserialize)]
struct Definition {
    description: String,
    input: Json,
    #[serde(default)]
    output: Option<Json>,
}

/// State of a tool, as its server offers it now, beside its approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinState {
    /// It is as it was approved.
    Approved,
    /// Nothing of its server was approved.
    NotApproved,
    /// It was not there when its server was approved.
    New,
    /// It has changed since: these parts of it, as far as they are known.
    Changed(Vec<&'static str>),
}

impl PinState {
    /// The reason why a tool of an approved server is refused; `None` if it isn't.
    pub fn refusal(&self) -> Option<String> {
        match self {
            PinState::Approved | PinState::NotApproved => None,
            PinState::New => Some("it was not there when the server was approved".into()),
            PinState::Changed(parts) if parts.is_empty() => {
                Some("it has changed since it was approved".into())
            }
            PinState::Changed(parts) => {
                Some(format!("it has changed since it was approved: {}", parts.join(", ")))
            }
        }
    }
}

/// A tool that was approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovedTool<'p> {
    /// Its name.
    pub name: &'p str,
    /// Its parameters, each with whether a call must give it.
    pub parameters: Option<&'p BTreeMap<String, bool>>,
}

/// Describes a mistake in a text of TOML, with its line unless that is longer than lines of people are.
pub fn toml_problem(text: &str, e: &toml::de::Error) -> String {
    const MAX_LINE: usize = 300;
    let at = e.span().map_or(0, |span| span.start.min(text.len()));
    let before = text.get(..at).unwrap_or_default();
    let column = before.len() - before.rfind('\n').map_or(0, |n| n + 1);
    let rest = text.get(at..).unwrap_or_default();
    let length = column + rest.find('\n').unwrap_or(rest.len());
    if length <= MAX_LINE {
        return e.to_string().trim_end().to_string();
    }
    format!("line {}, column {}: {}", before.matches('\n').count() + 1, column + 1, e.message())
}

impl Pins {
    /// Reads the file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Pins, String> {
        let pins: Pins = toml::from_str(text).map_err(|e| toml_problem(text, &e))?;
        match pins.version {
            1..=VERSION => Ok(Pins { version: VERSION, ..pins }),
            other => Err(format!("it has version {other}, not {VERSION}")),
        }
    }

    /// The file.
    pub fn to_toml(&self) -> String {
        let mut out = format!(
            "# Tools as they were when somebody approved them. `entail lock` writes this.\nversion = {VERSION}\n"
        );
        // A basic string of TOML is written as one of JSON; control characters that differ are in no name.
        let quoted = |t: &str| Json::from(t).to_string();
        for (server, tools) in &self.tools {
            // Writing to a string cannot fail.
            let _ = write!(out, "\n[tools.{}]\n", quoted(server));
            for (name, pin) in tools {
                let pin = match pin {
                    Pin::Whole(hash) => quoted(hash),
                    Pin::Parts(ToolHashes { description, input, output, parameters, definition }) => {
                        let each = |(name, is_required): (&String, &bool)| {
                            format!("{} = {is_required}", quoted(name))
                        };
                        let parameters = parameters.as_ref().map_or(String::new(), |all| {
                            format!(
                                ", parameters = {{ {} }}",
                                all.iter().map(each).collect::<Vec<_>>().join(", ")
                            )
                        });
                        let definition = definition.as_ref();
                        let definition =
                            definition.map_or(String::new(), |d| format!(", definition = {}", quoted(d)));
                        format!(
                            "{{ description = {}, input = {}, output = {}{parameters}{definition} }}",
                            quoted(description),
                            quoted(input),
                            quoted(output)
                        )
                    }
                };
                let _ = writeln!(out, "{} = {pin}", quoted(name));
            }
        }
        if !self.servers.is_empty() {
            out.push_str("\n[servers]\n");
            for (server, version) in &self.servers {
                let _ = writeln!(out, "{} = {}", quoted(server), quoted(version));
            }
        }
        for (model, pin) in &self.models {
            let _ = write!(out, "\n[models.{}]\n", quoted(model));
            let ModelPin { input, output, cached, cache_write, date, source } = pin;
            let parts = [
                ("input", input),
                ("output", output),
                ("cached", cached),
                ("cache_write", cache_write),
                ("date", date),
                ("source", source),
            ];
            for (name, text) in parts {
                if let Some(text) = text {
                    let _ = writeln!(out, "{name} = {}", quoted(text));
                }
            }
        }
        for (path, ModulePin { files, declared }) in &self.python {
            for (table, entries) in [("files", files), ("declared", declared)] {
                let _ = write!(out, "\n[python.{}.{table}]\n", quoted(path));
                for (name, text) in entries {
                    let _ = writeln!(out, "{} = {}", quoted(name), quoted(text));
                }
            }
        }
        out
    }

    /// Returns true if the server was approved.
    pub fn knows(&self, server: &str) -> bool {
        self.tools.contains_key(server)
    }

    /// The locked modules of Python, by path relative to the lock.
    pub fn modules(&self) -> &BTreeMap<String, ModulePin> {
        &self.python
    }

    /// The locked models.
    pub fn models(&self) -> &BTreeMap<String, ModelPin> {
        &self.models
    }

    /// Locks the price of a model.
    pub fn lock_model(&mut self, name: &str, model: ModelPin) {
        self.models.insert(name.to_string(), model);
    }

    /// The version that a server stated when its tools were approved.
    pub fn version_of(&self, server: &str) -> Option<&str> {
        self.servers.get(server).map(String::as_str)
    }

    /// Locks the version of a server; `None` if it states none.
    pub fn lock_version(&mut self, server: &str, version: Option<&str>) {
        match version {
            Some(version) => drop(self.servers.insert(server.to_string(), version.to_string())),
            None => drop(self.servers.remove(server)),
        }
    }

    /// Locks a module of Python.
    pub fn lock_module(&mut self, path: &str, module: ModulePin) {
        self.python.insert(path.to_string(), module);
    }

    /// The approved tools of a server, each with its parameters and whether a call must give them, as far as
    /// they are known; `None` if the server was not approved.
    pub fn tools_of(&self, server: &str) -> Option<impl Iterator<Item = ApprovedTool<'_>>> {
        let parameters = |pin| match pin {
            &Pin::Parts(ToolHashes { parameters: Some(ref all), .. }) => Some(all),
            _ => None,
        };
        let tools = self.tools.get(server)?;
        Some(tools.iter().map(move |(name, pin)| ApprovedTool { name, parameters: parameters(pin) }))
    }

    /// The approved tools of a server as they were then; `None` if they were approved before their
    /// definitions
    /// were written down, or not at all.
    ///
    /// # Errors
    /// A definition is not the one of its hashes.
    pub fn definitions(&self, server: &str) -> Option<Result<Vec<ServerTool>, String>> {
        let tools = self.tools.get(server)?;
        let mut all = Vec::new();
        for (name, pin) in tools {
            let Pin::Parts(hashes @ ToolHashes { definition: Some(definition), .. }) = pin else {
                return None;
            };
            let read = serde_json::from_str::<Definition>(definition);
            let tool = read.ok().map(|d| ServerTool::new(name, &d.description, d.input, d.output));
            match tool.filter(|t| t.hashes().fits(hashes)) {
                Some(tool) => all.push(tool),
                None => return Some(Err(format!("the definition of `{name}` is not that of its hashes"))),
            }
        }
        Some(Ok(all))
    }

    /// Compares a tool as its server offers it now with what was approved.
    pub fn state(&self, server: &str, tool: &ServerTool) -> PinState {
        let Some(tools) = self.tools.get(server) else { return PinState::NotApproved };
        let changed = match tools.get(&tool.name) {
            None => return PinState::New,
            Some(Pin::Whole(hash)) if *hash == tool.hash => return PinState::Approved,
            Some(Pin::Whole(_)) => Vec::new(),
            Some(Pin::Parts(was)) => {
                let now = tool.hashes();
                let parts = [
                    ("its description", was.description != now.description),
                    ("its arguments", was.input != now.input),
                    ("its result", was.output != now.output),
                ];
                let changed: Vec<&'static str> =
                    parts.into_iter().filter_map(|(part, changed)| changed.then_some(part)).collect();
                if changed.is_empty() {
                    return PinState::Approved;
                }
                changed
            }
        };
        PinState::Changed(changed)
    }

    /// Approves exactly these tools of a server.
    pub fn approve<'a>(&mut self, server: &str, tools: impl IntoIterator<Item = &'a ServerTool>) {
        let pin = |tool: &ServerTool| (tool.name.clone(), Pin::Parts(tool.hashes()));
        self.tools.insert(server.to_string(), tools.into_iter().map(pin).collect());
    }
}

/// A server as it describes itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerOffer {
    /// Its version, if it states one.
    pub version: Option<String>,
    /// Its tools.
    pub tools: Vec<ServerTool>,
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
    /// The JSON Schema of its structured result, if it says one.
    pub output: Option<Json>,
    /// A hash of all of it.
    pub hash: String,
}

impl ServerTool {
    /// A tool as a server describes it.
    pub fn new(name: &str, description: &str, input: Json, output: Option<Json>) -> ServerTool {
        let hash = hash(name, description, &input, output.as_ref());
        ServerTool { name: name.into(), description: description.into(), input, output, hash }
    }

    /// All that its server says of it but the name.
    fn definition(&self) -> Json {
        let mut definition = serde_json::Map::new();
        definition.insert("description".into(), self.description.as_str().into());
        definition.insert("input".into(), self.input.clone());
        definition.extend(self.output.clone().map(|output| ("output".to_string(), output)));
        definition.into()
    }

    /// A hash of each part.
    fn hashes(&self) -> ToolHashes {
        let of = |part: &Json| digest(&[part]);
        let required = self.input["required"].as_array().map_or(&[][..], Vec::as_slice);
        let is_required = |name: &String| required.iter().any(|r| r.as_str() == Some(name));
        let names = self.input["properties"].as_object().into_iter().flat_map(|all| all.keys());
        ToolHashes {
            parameters: Some(names.map(|name| (name.clone(), is_required(name))).collect()),
            description: of(&Json::from(self.description.as_str())),
            input: of(&self.input),
            output: of(self.output.as_ref().unwrap_or(&Json::Null)),
            definition: Some(self.definition().to_string()),
        }
    }
}

impl ToolHashes {
    /// Returns true if these are hashes of the same parts.
    fn fits(&self, other: &ToolHashes) -> bool {
        (&self.description, &self.input, &self.output) == (&other.description, &other.input, &other.output)
    }
}

/// A hash of what a program or a model is told of a tool; the order of fields does not matter.
fn hash(name: &str, description: &str, input: &Json, output: Option<&Json>) -> String {
    digest(&[&Json::from(name), &Json::from(description), input, output.unwrap_or(&Json::Null)])
}

/// A hash of several parts.
fn digest(parts: &[&Json]) -> String {
    let mut text = String::new();
    for part in parts {
        canonical(part, &mut text);
        text.push('\n');
    }
    runs::hex(&Sha256::digest(text.as_bytes()))
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

    #[test]
    fn the_file_has_the_definitions_that_its_hashes_are_of() {
        let input = json!({"type": "object", "properties": {"q\"\u{7}": {"type": "string"}}});
        let tool = ServerTool::new("find", "Finds\nit \\ \u{2028}.", input, Some(json!({"type": "string"})));
        let mut pins = Pins::default();
        pins.approve("a", [&tool]);
        let read = Pins::parse(&pins.to_toml()).unwrap();
        assert_eq!(read, pins);
        assert_eq!(read.definitions("a"), Some(Ok(vec![tool])));
        assert_eq!(read.definitions("b"), None);
        // Nobody changes a definition without its hash.
        let forged = Pins::parse(&pins.to_toml().replace("Finds", "Sends")).unwrap();
        let why = "the definition of `find` is not that of its hashes".to_string();
        assert_eq!(forged.definitions("a"), Some(Err(why)));
        // Files that were written before there were definitions are read.
        let old = "version = 3\n[tools.a]\nfind = { description = \"0\", input = \"1\", output = \"2\" }\n";
        assert_eq!(Pins::parse(old).unwrap().definitions("a"), None);
    }
}
