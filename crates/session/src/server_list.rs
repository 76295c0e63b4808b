//! The servers that the list of an assistant or an editor names, ready to be started: `.mcp.json`,
//! `claude_desktop_config.json`, `.cursor/mcp.json`, `.vscode/mcp.json`, the settings of Zed and Gemini CLI,
//! and the `config.toml` of Codex.
//!
//! Entry point: [`read`].
//!
//! Invariant: no value of a variable or a header is in a message or in `Debug`.
//!
//! Source: "Connect Claude Code to tools via MCP" (code.claude.com) for `${VAR}` and `${VAR:-default}`; "MCP
//! configuration reference" (code.visualstudio.com) and cursor.com for `${env:VAR}` and `${workspaceFolder}`;
//! "MCP servers with Gemini CLI" for `$VAR` and `httpUrl`; "Model Context Protocol" (developers.openai.com)
//! for `mcp_servers`.

use crate::error::SettingsError;
use crate::load::read_kept;
use diagnostics::clip;
use frontend_kit::doc::{self, Format, Limits, Node, NodeKind};
use runtime::{Environment, Secret};
use serde_json::{Map, Number, Value};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The most servers of a list.
const MAX_SERVERS: usize = 64;

/// Keys under which clients keep the mapping of names to servers.
const LISTS: [&[&str]; 6] = [
    &["mcpServers"],
    &["servers"],
    &["mcp", "servers"],
    &["context_servers"],
    &["amp.mcpServers"],
    &["mcp_servers"],
];

/// A list of servers.
#[derive(Debug, Default)]
pub struct ServerList {
    /// Servers that can be started.
    pub servers: Vec<ListedServer>,
    /// Servers that can't be started, with the reasons.
    pub unusable: Vec<(String, String)>,
}

/// A server of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedServer {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub launch: Launch,
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
pub enum Launch {
    /// A process that speaks on its standard input and output.
    Process {
        /// The program and its arguments.
        command: Vec<OsString>,
        /// Variables that it gets beside those of this process.
        env: Vec<(String, String)>,
        /// The folder that it runs in.
        folder: Option<PathBuf>,
    },
    /// An address that speaks streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Headers of each request.
        headers: Vec<(String, String)>,
    },
}

impl std::fmt::Debug for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Launch::Process { command, .. } => f.debug_tuple("Process").field(&command.first()).finish(),
            Launch::Http { .. } => f.write_str("Http"),
        }
    }
}

impl ListedServer {
    /// Values that must not be shown: those of its variables and headers, as far as they are no plain words.
    pub fn secrets(&self) -> impl Iterator<Item = Secret> {
        let pairs = match &self.launch {
            Launch::Process { env, .. } => env,
            Launch::Http { headers, .. } => headers,
        };
        // `Bearer KEY`: the key alone is one, too.
        let values = pairs.iter().flat_map(|(_, value)| value.split_whitespace());
        values.filter(|value| value.len() >= 8).map(Secret::new)
    }
}

/// Reads a list. `folder` is the folder of the client.
///
/// # Errors
/// The file can't be read or lists no servers, in words for people.
pub fn read(path: &Path, folder: &Path, environment: &Environment) -> Result<ServerList, SettingsError> {
    let shown = path.display();
    let text = read_kept(path).map_err(|e| SettingsError::unreadable(path, &e))?;
    let root = parse_text(&text, path.extension().is_some_and(|e| e == "toml"))
        .map_err(|why| format!("`{shown}` can't be read: {why}"))?;
    let variables = Variables { path, environment };
    let mut list = ServerList::default();
    // What is listed for the folder alone has precedence.
    let project = root.get("projects").and_then(|p| p.get(&*folder.to_string_lossy()));
    let mut is_list = false;
    for entries in project.and_then(named_servers).into_iter().chain(named_servers(&root)) {
        is_list = true;
        for (name, entry) in entries {
            let is_known = |n: &str| n == name;
            if list.servers.iter().any(|s| is_known(&s.name))
                || list.unusable.iter().any(|(n, _)| is_known(n))
            {
                continue;
            }
            if entry["disabled"] == true || entry["enabled"] == false {
                continue;
            }
            if list.servers.len() + list.unusable.len() >= MAX_SERVERS {
                return Err(format!("`{shown}` lists more than {MAX_SERVERS} servers").into());
            }
            match variables.launch(entry) {
                Ok(launch) => list.servers.push(ListedServer { name: name.clone(), launch }),
                Err(why) => list.unusable.push((name.clone(), why)),
            }
        }
    }
    if !is_list {
        let keys = "`mcpServers`, `servers`, `context_servers` and `mcp_servers`";
        return Err(SettingsError::new(format!("`{shown}` lists no servers: it has none of {keys}"))
            .with_help(Some("name the list of a client, such as `.mcp.json`".into())));
    }
    Ok(list)
}

/// Reads JSON with comments, or TOML.
pub(crate) fn parse_text(text: &str, is_toml: bool) -> Result<Value, String> {
    if is_toml {
        return toml::from_str(text).map_err(|e| at(text, e.span().map_or(0, |s| s.start), e.message()));
    }
    let loaded = doc::load(diagnostics::FileId(0), &text.into(), Some(Format::Json), &Limits::default());
    if let Some(found) = loaded.diagnostics.iter().find(|d| d.level == diagnostics::Level::Error) {
        let start = found.span.map_or(0, |span| span.start as usize);
        return Err(at(text, start, &found.message));
    }
    Ok(loaded.documents.first().map_or(Value::Null, |d| value(d.root())))
}

/// A mistake with its place in a text.
fn at(text: &str, start: usize, message: &str) -> String {
    let before = text.get(..start.min(text.len())).unwrap_or_default();
    let column = before.len() - before.rfind('\n').map_or(0, |n| n + 1) + 1;
    format!("line {}, column {column}: {message}", before.matches('\n').count() + 1)
}

/// A node as JSON. The reader bounds its depth.
fn value(node: Node<'_>) -> Value {
    match node.kind() {
        NodeKind::Null => Value::Null,
        NodeKind::Bool => node.as_bool().map_or(Value::Null, Value::Bool),
        NodeKind::Number => {
            let number = node.number().and_then(|n| n.parse::<Number>().ok());
            number.map_or(Value::Null, Value::Number)
        }
        NodeKind::String => Value::String(node.as_str().unwrap_or_default().into()),
        NodeKind::Sequence => Value::Array(node.items().map(value).collect()),
        NodeKind::Mapping => {
            let fields: Map<String, Value> =
                node.entries().map(|e| (e.name().to_string(), value(e.value))).collect();
            Value::Object(fields)
        }
    }
}

/// The mapping of names to servers.
pub(crate) fn named_servers(root: &Value) -> Option<&Map<String, Value>> {
    LISTS.iter().find_map(|path| path.iter().try_fold(root, |at, key| at.get(key))?.as_object())
}

/// Values of the variables in a list.
struct Variables<'a> {
    path: &'a Path,
    environment: &'a Environment,
}

impl Variables<'_> {
    fn launch(&self, entry: &Value) -> Result<Launch, String> {
        if entry.get("envFile").is_some() {
            return Err("its `envFile` is not read: put the variables into `env`".into());
        }
        if entry.get("headersHelper").is_some() {
            return Err("its `headersHelper` is not run: put the headers into `headers`".into());
        }
        // Zed once had the command as an object.
        let nested = entry.get("command").filter(|c| c.is_object());
        let process = nested.unwrap_or(entry);
        if let Some(program) = process.get(if nested.is_some() { "path" } else { "command" }) {
            let mut command = vec![OsString::from(self.text(program, "`command`")?)];
            for word in process["args"].as_array().into_iter().flatten() {
                command.push(self.text(word, "`args`")?.into());
            }
            let mut env = self.pairs(&process["env"], "`env`")?;
            for name in entry["env_vars"].as_array().into_iter().flatten() {
                let name = name.as_str().ok_or("its `env_vars` are not names")?;
                env.push((name.into(), self.variable(name, None)?));
            }
            let folder = match &entry["cwd"] {
                Value::Null => None,
                folder => Some(PathBuf::from(self.text(folder, "`cwd`")?)),
            };
            return Ok(Launch::Process { command, env, folder });
        }
        let Some(url) = ["httpUrl", "serverUrl", "url"].iter().find_map(|key| entry.get(key)) else {
            return Err("it has neither a `command` nor a `url`".into());
        };
        if entry["type"] == "sse" {
            return Err(
                "it speaks SSE, which streamable HTTP has replaced: `npx mcp-remote URL` translates".into()
            );
        }
        let mut headers = self.pairs(&entry["headers"], "`headers`")?;
        headers.extend(self.pairs(&entry["http_headers"], "`http_headers`")?);
        for (header, name) in entry["env_http_headers"].as_object().into_iter().flatten() {
            let name = name.as_str().ok_or("its `env_http_headers` are not names")?;
            headers.push((header.clone(), self.variable(name, None)?));
        }
        if let Some(name) = entry["bearer_token_env_var"].as_str() {
            headers.push(("Authorization".into(), format!("Bearer {}", self.variable(name, None)?)));
        }
        Ok(Launch::Http { url: self.text(url, "`url`")?, headers })
    }

    fn pairs(&self, fields: &Value, what: &str) -> Result<Vec<(String, String)>, String> {
        let fields = fields.as_object().into_iter().flatten();
        fields.map(|(name, value)| Ok((name.clone(), self.text(value, what)?))).collect()
    }

    /// A text with its variables replaced, once: their values are not looked at again.
    fn text(&self, value: &Value, what: &str) -> Result<String, String> {
        let text = match value {
            Value::String(text) => text.as_str(),
            Value::Number(_) | Value::Bool(_) => return Ok(value.to_string()),
            _ => return Err(format!("its {what} is not a text")),
        };
        let (mut out, mut rest) = (String::new(), text);
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(inner) = rest.strip_prefix('{')
                && let Some(end) = inner.find('}')
            {
                out.push_str(&self.named(&inner[..end])?);
                rest = &inner[end + 1..];
            } else if let Some(name) = self.plain_name(rest) {
                out.push_str(&self.variable(name, None)?);
                rest = &rest[name.len()..];
            } else {
                out.push('$');
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    /// The name after a `$`, in the settings of Gemini CLI.
    fn plain_name<'t>(&self, text: &'t str) -> Option<&'t str> {
        let is_gemini = self.path.parent().is_some_and(|p| p.ends_with(".gemini"));
        let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
        (is_gemini && end > 0 && !text.starts_with(|c: char| c.is_ascii_digit())).then(|| &text[..end])
    }

    /// The value of a variable in braces.
    fn named(&self, name: &str) -> Result<String, String> {
        let folder = |path: Option<&Path>| path.map(|p| p.to_string_lossy().into_owned());
        match name {
            "userHome" => self.variable("HOME", None).or_else(|_| self.variable("USERPROFILE", None)),
            "workspaceFolder" => {
                folder(self.workspace().as_deref()).ok_or_else(|| "the list is in no folder".into())
            }
            _ if name.starts_with("input:") => Err(format!(
                "the client asks for `${{{}}}`: name a variable of the environment instead, such as `${{env:NAME}}`",
                clip(name)
            )),
            _ => {
                let name = name.strip_prefix("env:").unwrap_or(name);
                match name.split_once(":-") {
                    Some((name, default)) => self.variable(name, Some(default)),
                    None => self.variable(name, None),
                }
            }
        }
    }

    fn variable(&self, name: &str, default: Option<&str>) -> Result<String, String> {
        match (self.environment.get(name), default) {
            (Some(value), _) | (None, Some(value)) => Ok(value.into()),
            (None, None) => Err(format!("the variable `{}` is not set", clip(name))),
        }
    }

    /// The folder of the project that the list is of.
    fn workspace(&self) -> Option<PathBuf> {
        let path = std::path::absolute(self.path).ok()?;
        let folder = path.parent()?;
        let is_hidden = folder.file_name()?.to_string_lossy().starts_with('.');
        Some(if is_hidden { folder.parent()? } else { folder }.to_path_buf())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(path: &str, text: &str) -> ServerList {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        let environment = Environment::new([("HOME", "/home/me"), ("KEY", "k-123"), ("HOST", "h.example")]);
        read(&path, Path::new("/work"), &environment).unwrap()
    }

    fn process(list: &ServerList, name: &str) -> (Vec<String>, Vec<(String, String)>) {
        match &list.servers.iter().find(|s| s.name == name).unwrap().launch {
            Launch::Process { command, env, .. } => {
                (command.iter().map(|w| w.to_string_lossy().into_owned()).collect(), env.clone())
            }
            Launch::Http { .. } => panic!("`{name}` is no process"),
        }
    }

    fn http(list: &ServerList, name: &str) -> (String, Vec<(String, String)>) {
        match &list.servers.iter().find(|s| s.name == name).unwrap().launch {
            Launch::Http { url, headers } => (url.clone(), headers.clone()),
            Launch::Process { .. } => panic!("`{name}` is a process"),
        }
    }

    fn pair(a: &str, b: &str) -> (String, String) {
        (a.into(), b.into())
    }

    #[test]
    fn variables_of_claude_code_are_expanded_once() {
        let list = read_as(
            ".mcp.json",
            r#"{
                // a comment, and a trailing comma
                "mcpServers": {
                    "files": {"command": "npx", "args": ["-y", "files", "${ROOT:-/srv}", "$KEY", "${KEY"], "env": {"TOKEN": "${KEY}"}},
                    "web": {"type": "http", "url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${KEY}"}},
                    "off": {"command": "x", "disabled": true},
                    "lost": {"command": "x", "env": {"A": "${MISSING}"}},
                    "old": {"type": "sse", "url": "https://h"},
                    "none": {},
                },
            }"#,
        );
        let (command, env) = process(&list, "files");
        assert_eq!(command, ["npx", "-y", "files", "/srv", "$KEY", "${KEY"]);
        assert_eq!(env, [pair("TOKEN", "k-123")]);
        assert_eq!(
            http(&list, "web"),
            ("https://h.example/mcp".into(), vec![pair("Authorization", "Bearer k-123")])
        );
        assert_eq!(list.servers.len(), 2);
        let why: Vec<&str> = list.unusable.iter().map(|(_, why)| why.as_str()).collect();
        assert!(why[0].contains("`MISSING` is not set") && why[1].contains("SSE"), "{why:?}");
        assert!(why[2].contains("neither a `command` nor a `url`"), "{why:?}");
        assert!(!format!("{list:?}").contains("k-123"), "{list:?}");
    }

    #[test]
    fn the_lists_of_other_clients_are_read() {
        let list = read_as(
            ".vscode/mcp.json",
            r#"{"servers": {"a": {"command": "a", "args": ["${workspaceFolder}", "${userHome}", "${env:KEY}"]},
                "b": {"command": "b", "args": ["${input:key}"]}}}"#,
        );
        let (command, _) = process(&list, "a");
        assert!(!command[1].ends_with(".vscode") && command[2..] == ["/home/me", "k-123"], "{command:?}");
        assert!(list.unusable[0].1.contains("${env:NAME}"), "{list:?}");
        let list = read_as(
            ".gemini/settings.json",
            r#"{"mcpServers": {"a": {"httpUrl": "https://$HOST/x", "url": "no"}}}"#,
        );
        assert_eq!(http(&list, "a").0, "https://h.example/x");
        let list = read_as(
            "settings.json",
            r#"{"context_servers": {"a": {"command": {"path": "z", "args": ["1"], "env": {"B": "2"}}}}}"#,
        );
        assert_eq!(process(&list, "a"), (vec!["z".into(), "1".into()], vec![pair("B", "2")]));
        let list = read_as(
            ".codex/config.toml",
            "[mcp_servers.a]\ncommand = \"c\"\nenv_vars = [\"KEY\"]\n[mcp_servers.b]\nurl = \"https://h\"\nbearer_token_env_var = \"KEY\"\n[mcp_servers.c]\ncommand = \"x\"\nenabled = false\n",
        );
        assert_eq!(process(&list, "a"), (vec!["c".into()], vec![pair("KEY", "k-123")]));
        assert_eq!(http(&list, "b").1, [pair("Authorization", "Bearer k-123")]);
        assert_eq!(list.servers.len(), 2);
    }

    #[test]
    fn servers_of_a_project_have_precedence() {
        let list = read_as(
            ".claude.json",
            r#"{"mcpServers": {"a": {"command": "user"}, "b": {"command": "user"}},
                "projects": {"/work": {"mcpServers": {"a": {"command": "project"}}}, "/other": {"mcpServers": {"c": {"command": "c"}}}}}"#,
        );
        assert_eq!(process(&list, "a").0, ["project"]);
        assert_eq!(process(&list, "b").0, ["user"]);
        assert_eq!(list.servers.len(), 2);
    }
}
