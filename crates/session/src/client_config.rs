//! Files in which assistants and editors list their servers, and how a guard is put in front of all of them.
//!
//! [`install`] moves the list into a file of its own, which the guard reads, and puts the guard in its place.
//! [`uninstall`] puts it back. Texts are cut and joined, so comments, order and layout stay. Each edit is
//! read again and compared with what it should say.
//!
//! Source: the documentation of each client on its servers (`Client::source`).

use crate::server_list::{self, named_servers};
use frontend_kit::doc::{self, Format, Limits, Node};
use runtime::{Environment, Secret};
use serde_json::{Map, Value, json};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the guard in the list of a client.
const ENTRY: &str = "entail";

/// A client with a file of servers.
#[derive(Debug)]
pub struct Client {
    /// Its name for the command line.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The file of a project, below its folder.
    project: Option<&'static str>,
    /// The file of a user, below the home directory: on macOS, on Windows and elsewhere.
    user: [Option<&'static str>; 3],
    /// The variable that names the folder of the user's file.
    folder: Option<&'static str>,
    /// Keys on the way to the list.
    list: &'static [&'static str],
    /// Where that is written down.
    pub source: &'static str,
}

const fn everywhere(file: &'static str) -> [Option<&'static str>; 3] {
    [Some(file), Some(file), Some(file)]
}

/// The clients that are known.
pub const CLIENTS: [Client; 8] = [
    Client {
        name: "claude-code",
        title: "Claude Code",
        project: Some(".mcp.json"),
        user: everywhere(".claude.json"),
        folder: None,
        list: &["mcpServers"],
        source: "code.claude.com/docs/en/mcp",
    },
    Client {
        name: "claude-desktop",
        title: "Claude Desktop",
        project: None,
        user: [
            Some("Library/Application Support/Claude/claude_desktop_config.json"),
            Some("AppData/Roaming/Claude/claude_desktop_config.json"),
            Some(".config/Claude/claude_desktop_config.json"),
        ],
        folder: None,
        list: &["mcpServers"],
        source: "modelcontextprotocol.io/docs/develop/connect-local-servers",
    },
    Client {
        name: "cursor",
        title: "Cursor",
        project: Some(".cursor/mcp.json"),
        user: everywhere(".cursor/mcp.json"),
        folder: None,
        list: &["mcpServers"],
        source: "cursor.com/docs/mcp",
    },
    Client {
        name: "vscode",
        title: "VS Code",
        project: Some(".vscode/mcp.json"),
        user: [
            Some("Library/Application Support/Code/User/mcp.json"),
            Some("AppData/Roaming/Code/User/mcp.json"),
            Some(".config/Code/User/mcp.json"),
        ],
        folder: None,
        list: &["servers"],
        source: "code.visualstudio.com/docs/agents/reference/mcp-configuration",
    },
    Client {
        name: "windsurf",
        title: "Windsurf",
        project: None,
        user: everywhere(".codeium/windsurf/mcp_config.json"),
        folder: None,
        list: &["mcpServers"],
        source: "docs.windsurf.com/windsurf/cascade/mcp",
    },
    Client {
        name: "zed",
        title: "Zed",
        project: Some(".zed/settings.json"),
        user: [
            Some(".config/zed/settings.json"),
            Some("AppData/Roaming/Zed/settings.json"),
            Some(".config/zed/settings.json"),
        ],
        folder: None,
        list: &["context_servers"],
        source: "zed.dev/docs/ai/mcp",
    },
    Client {
        name: "codex",
        title: "Codex",
        project: Some(".codex/config.toml"),
        user: everywhere(".codex/config.toml"),
        folder: Some("CODEX_HOME"),
        list: &["mcp_servers"],
        source: "developers.openai.com/codex/mcp",
    },
    Client {
        name: "gemini",
        title: "Gemini CLI",
        project: Some(".gemini/settings.json"),
        user: everywhere(".gemini/settings.json"),
        folder: None,
        list: &["mcpServers"],
        source: "geminicli.com/docs/tools/mcp-server",
    },
];

impl Client {
    /// The client of a name.
    ///
    /// # Errors
    /// None is called so, in words for people.
    pub fn named(name: &str) -> Result<&'static Client, String> {
        CLIENTS.iter().find(|c| c.name == name).ok_or_else(|| {
            let all: Vec<&str> = CLIENTS.iter().map(|c| c.name).collect();
            let near = diagnostics::nearest(name, all.iter().copied());
            let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            format!("no client `{}` is known{near} (there is: {})", diagnostics::clip(name), all.join(", "))
        })
    }

    /// The file of a project.
    pub fn project_file(&self, folder: &Path) -> Option<PathBuf> {
        self.project.map(|file| folder.join(file))
    }

    /// The file of the user.
    pub fn user_file(&self, environment: &Environment) -> Option<PathBuf> {
        let at = if cfg!(target_os = "macos") {
            0
        } else if cfg!(windows) {
            1
        } else {
            2
        };
        let file = Path::new(self.user[at]?);
        if let Some(folder) = self.folder.and_then(|name| environment.get(name)) {
            return Some(Path::new(folder).join(file.file_name()?));
        }
        let home = environment.get(if cfg!(windows) { "USERPROFILE" } else { "HOME" })?;
        Some(Path::new(home).join(file))
    }

    /// Values of variables and headers in a text of servers, which must not be shown.
    pub fn secrets(&self, text: &str) -> Vec<Secret> {
        let Ok(root) = self.parse(text) else { return Vec::new() };
        let lists = self.entries(&root).into_iter().chain(named_servers(&root));
        let servers = lists.flat_map(Map::values);
        let pairs = servers.flat_map(|server| {
            ["env", "headers", "http_headers"].into_iter().filter_map(|key| server[key].as_object())
        });
        let values = pairs.flat_map(Map::values).filter_map(Value::as_str).flat_map(str::split_whitespace);
        // What names a variable is no secret.
        values.filter(|value| value.len() >= 6 && !value.contains('$')).map(Secret::new).collect()
    }

    fn is_toml(&self) -> bool {
        self.name == "codex"
    }

    /// The list in a file that was read.
    fn entries<'v>(&self, root: &'v Value) -> Option<&'v Map<String, Value>> {
        self.list.iter().try_fold(root, |at, key| at.get(key))?.as_object()
    }

    fn parse(&self, text: &str) -> Result<Value, String> {
        server_list::parse_text(text, self.is_toml())
    }
}

/// The file to which the servers of a client's file are moved: beside it.
pub fn servers_file(config: &Path) -> PathBuf {
    let stem = config.file_stem().map_or_else(Default::default, |s| s.to_string_lossy().into_owned());
    let end = config.extension().map_or_else(|| "json".into(), |e| e.to_string_lossy().into_owned());
    config.with_file_name(format!("{stem}.entail.{end}"))
}

/// New texts of two files.
#[derive(Debug, PartialEq, Eq)]
pub struct Edited {
    /// The text of the client's file.
    pub config: String,
    /// The text of the file with its servers.
    pub servers: String,
}

/// Returns whether a guard stands in front of the servers of a file.
pub fn is_installed(client: &Client, text: &str) -> bool {
    let Ok(root) = client.parse(text) else { return false };
    client.entries(&root).and_then(|list| list.get(ENTRY)).is_some_and(is_guard)
}

fn is_guard(entry: &Value) -> bool {
    let has = |word: &str| entry["args"].as_array().is_some_and(|args| args.iter().any(|a| a == word));
    has("guard") && has("--mcp-config")
}

/// Moves the servers of a client's file into one of their own, and puts the guard, started by these words, in
/// their place. `servers` is the text of that file, if the guard is there already: what was listed since then
/// is moved, too.
///
/// # Errors
/// The file lists no servers, or can't be edited safely, in words for people.
pub fn install(
    client: &Client,
    text: &str,
    servers: Option<&str>,
    words: &[String],
) -> Result<Edited, String> {
    let before = match servers.filter(|_| is_installed(client, text)) {
        Some(servers) => uninstall(client, text, servers)?,
        None => text.to_string(),
    };
    let root = client.parse(&before)?;
    let list = client.entries(&root).filter(|list| !list.is_empty());
    let Some(list) = list else {
        return Err(format!("it lists no servers under `{}`", client.list.join(".")));
    };
    if list.contains_key(ENTRY) {
        return Err(format!("it lists a server `{ENTRY}`, which is the guard's name: rename it"));
    }
    let (program, args) = words.split_first().ok_or("the guard has no command")?;
    let edited = match client.is_toml() {
        true => install_toml(&before, program, args),
        false => install_json(client, &before, program, args)?,
    };
    let after = client.parse(&edited.config).map_err(|_| unsafe_edit(client))?;
    let moved =
        server_list::parse_text(&edited.servers, client.is_toml()).map_err(|_| unsafe_edit(client))?;
    let guard = json!({"command": program, "args": args});
    let is_right = without_list(client, &after) == without_list(client, &root)
        && client.entries(&after).is_some_and(|l| l.len() == 1 && l.get(ENTRY) == Some(&guard))
        && named_servers(&moved) == Some(list);
    if is_right { Ok(edited) } else { Err(unsafe_edit(client)) }
}

/// Puts the servers back into a client's file. Servers that were listed since then stay.
///
/// # Errors
/// The guard is not there, or the file can't be edited safely, in words for people.
pub fn uninstall(client: &Client, text: &str, servers: &str) -> Result<String, String> {
    let root = client.parse(text)?;
    if !is_installed(client, text) {
        return Err("no guard stands in front of its servers".into());
    }
    let moved = server_list::parse_text(servers, client.is_toml())?;
    let Some(moved) = named_servers(&moved) else {
        return Err("the file with its servers lists none".into());
    };
    let mut wanted = client.entries(&root).cloned().unwrap_or_default();
    wanted.remove(ENTRY);
    for (name, server) in moved {
        if wanted.insert(name.clone(), server.clone()).is_some() {
            let name = diagnostics::clip(name);
            return Err(format!(
                "the server `{name}` was listed again after the guard was installed: remove one of them"
            ));
        }
    }
    let config = match client.is_toml() {
        true => uninstall_toml(text, servers),
        false => uninstall_json(client, text, servers)?,
    };
    let after = client.parse(&config).map_err(|_| unsafe_edit(client))?;
    let is_right = without_list(client, &after) == without_list(client, &root)
        && client.entries(&after).is_some_and(|list| *list == wanted);
    if is_right { Ok(config) } else { Err(unsafe_edit(client)) }
}

fn unsafe_edit(client: &Client) -> String {
    format!(
        "it can't be edited without changing something else: write the `{}` by hand",
        client.list.join(".")
    )
}

/// The rest of a file.
fn without_list(client: &Client, root: &Value) -> Value {
    let mut rest = root.clone();
    let Some((last, way)) = client.list.split_last() else { return rest };
    let holder = way.iter().try_fold(&mut rest, |at, key| at.get_mut(key));
    if let Some(fields) = holder.and_then(Value::as_object_mut) {
        fields.remove(*last);
    }
    rest
}

// JSON with comments.

/// A mapping in a text: its range, braces included, and those of its entries, keys included.
struct Mapping {
    all: Range<usize>,
    entries: Vec<(String, Range<usize>)>,
}

fn mapping(text: &str, list: &[&str]) -> Result<Mapping, String> {
    let text: Arc<str> = text.into();
    let loaded = doc::load(diagnostics::FileId(0), &text, Some(Format::Json), &Limits::default());
    let root = loaded.documents.first().ok_or("it is empty")?.root();
    let node = root.at(list).ok_or("it lists no servers")?;
    let range = |node: Node<'_>| node.span().start as usize..node.span().end as usize;
    let all = range(node);
    if !(text.get(all.clone()).is_some_and(|t| t.starts_with('{') && t.ends_with('}'))) {
        return Err("its list of servers is no object".into());
    }
    let entries = node.entries().map(|e| (e.name().to_string(), range(e.key).start..range(e.value).end));
    // A key in quotes begins with them.
    let quoted = |r: Range<usize>| match text[..r.start].ends_with('"') {
        true => r.start - 1..r.end,
        false => r,
    };
    let value_end = |r: Range<usize>| match text[r.end..].starts_with('"') {
        true => r.start..r.end + 1,
        false => r,
    };
    Ok(Mapping { all, entries: entries.map(|(name, r)| (name, value_end(quoted(r)))).collect() })
}

fn install_json(client: &Client, text: &str, program: &str, args: &[String]) -> Result<Edited, String> {
    let Mapping { all, .. } = mapping(text, client.list)?;
    let inner = &text[all.start + 1..all.end - 1];
    let args: Vec<String> = args.iter().map(|a| Value::from(a.as_str()).to_string()).collect();
    let entry =
        format!("\"{ENTRY}\": {{\"command\": {}, \"args\": [{}]}}", Value::from(program), args.join(", "));
    let new = match inner.rfind('\n') {
        Some(at) => {
            let indent = &inner[at + 1..];
            // What stands before the closing brace is its indentation, if it is nothing else.
            let indent = if indent.trim().is_empty() { indent } else { "" };
            format!("\n{indent}  {entry}\n{indent}")
        }
        None => entry,
    };
    let config = format!("{}{new}{}", &text[..all.start + 1], &text[all.end - 1..]);
    Ok(Edited { config, servers: format!("{{\"mcpServers\": {{{inner}}}}}\n") })
}

fn uninstall_json(client: &Client, text: &str, servers: &str) -> Result<String, String> {
    let now = mapping(text, client.list)?;
    let then = mapping(servers, &["mcpServers"])?;
    let own = now.entries.iter().find(|(name, _)| name == ENTRY).map(|(_, range)| range.clone());
    let own = own.ok_or("no guard stands in front of its servers")?;
    let rest = [now.all.start + 1..own.start, own.end..now.all.end - 1].map(|r| text[r].trim());
    // Nothing else is there: all is as it was.
    if rest.iter().all(|r| r.is_empty() || *r == ",") {
        let inner = &servers[then.all.start + 1..then.all.end - 1];
        return Ok(format!("{}{inner}{}", &text[..now.all.start + 1], &text[now.all.end - 1..]));
    }
    let end = then.entries.iter().map(|(_, range)| range.end).max().unwrap_or(then.all.start + 1);
    let inner = servers[then.all.start + 1..end].trim_start();
    Ok(format!("{}{inner}{}", &text[..own.start], &text[own.end..]))
}

// TOML, by lines. What looks like a table within a text of several lines is noticed when the edit is read.

/// The ranges of tables of servers, each with the comments right above it, and its name.
fn tables(text: &str) -> Vec<(Range<usize>, String)> {
    let mut out: Vec<(Range<usize>, String)> = Vec::new();
    let (mut at, mut comments, mut open) = (0, None, false);
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if trimmed.starts_with('[') {
            let start = comments.take().unwrap_or(at);
            if open && let Some((range, _)) = out.last_mut() {
                range.end = start;
            }
            open = false;
            if let Some(name) = server_of(trimmed) {
                out.push((start..text.len(), name));
                open = true;
            }
        } else if trimmed.starts_with('#') {
            comments = comments.or(Some(at));
        } else {
            comments = None;
        }
        at += line.len();
    }
    out
}

/// The server of a header such as `[mcp_servers.NAME.env]`; empty for all.
fn server_of(header: &str) -> Option<String> {
    let key = header.trim_start_matches('[').trim_start();
    let rest = ["mcp_servers", "\"mcp_servers\"", "'mcp_servers'"]
        .iter()
        .find_map(|k| key.strip_prefix(k))?
        .trim_start();
    if rest.starts_with(']') {
        return Some(String::new());
    }
    let name = rest.strip_prefix('.')?.trim_start();
    let end = match name.chars().next()? {
        quote @ ('"' | '\'') => 1 + name[1..].find(quote)? + 1,
        _ => name.find(['.', ']', ' ', '\t']).unwrap_or(name.len()),
    };
    Some(name[..end].trim_matches(['"', '\'']).to_string())
}

fn install_toml(text: &str, program: &str, args: &[String]) -> Edited {
    let quoted = |t: &str| Value::from(t).to_string();
    let args: Vec<String> = args.iter().map(|a| quoted(a)).collect();
    let mut entry =
        format!("[mcp_servers.{ENTRY}]\ncommand = {}\nargs = [{}]\n", quoted(program), args.join(", "));
    let (mut config, mut servers, mut done) = (String::new(), String::new(), 0);
    for (number, (range, _)) in tables(text).into_iter().enumerate() {
        config.push_str(&text[done..range.start]);
        if number == 0 {
            if range.end < text.len() {
                entry.push('\n');
            }
            config.push_str(&entry);
        }
        servers.push_str(&text[range.clone()]);
        done = range.end;
    }
    config.push_str(&text[done..]);
    Edited { config, servers }
}

fn uninstall_toml(text: &str, servers: &str) -> String {
    let (mut config, mut done, mut is_back) = (String::new(), 0, false);
    for (range, name) in tables(text) {
        if name != ENTRY {
            continue;
        }
        config.push_str(&text[done..range.start]);
        if !is_back {
            config.push_str(servers);
            is_back = true;
            if range.end < text.len() && !config.ends_with('\n') {
                config.push('\n');
            }
        }
        done = range.end;
    }
    config.push_str(&text[done..]);
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Vec<String> {
        ["/bin/entail", "guard", "--policy", "/p/policy.toml", "--mcp-config", "/p/s.json"]
            .map(String::from)
            .to_vec()
    }

    /// Installs and uninstalls; gives the file in between.
    fn there_and_back(client: &str, text: &str) -> Edited {
        let client = Client::named(client).unwrap();
        let edited = install(client, text, None, &words()).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert!(is_installed(client, &edited.config) && !is_installed(client, text));
        assert_eq!(uninstall(client, &edited.config, &edited.servers).unwrap(), text, "{}", edited.config);
        // Once more changes nothing.
        let again = install(client, &edited.config, Some(&edited.servers), &words()).unwrap();
        assert_eq!(again, edited);
        edited
    }

    const COMMENTED: &str = r#"{
  // which model
  "model": "x", /* "mcpServers": {} */
  "mcpServers": {
    // reads pages
    "web": { "command": "uvx", "args": ["mcp-server-fetch"] }, // last
    "mail": {
      "url": "https://mail.example/mcp",
      "headers": { "Authorization": "Bearer ${KEY}" },
    },
    // the end
  },
  "other": [1, 2.50, "é\u0041"],
}
"#;

    #[test]
    fn comments_and_order_of_json_come_back_as_they_were() {
        let edited = there_and_back("claude-code", COMMENTED);
        assert!(edited.config.starts_with("{\n  // which model\n  \"model\": \"x\", /* \"mcpServers\": {} */\n  \"mcpServers\": {\n    \"entail\": {\"command\": \"/bin/entail\""), "{}", edited.config);
        assert!(
            edited.config.ends_with("\n  },\n  \"other\": [1, 2.50, \"é\\u0041\"],\n}\n"),
            "{}",
            edited.config
        );
        assert!(
            edited.servers.contains("// reads pages") && edited.servers.contains("${KEY}"),
            "{}",
            edited.servers
        );
        there_and_back("cursor", r#"{"mcpServers":{"a":{"command":"x"}}}"#);
        there_and_back(
            "vscode",
            "{\"inputs\": [], \"servers\": { \"a\": {\"type\": \"stdio\", \"command\": \"x\"}\n}}",
        );
        there_and_back(
            "zed",
            "// settings\n{\n\t\"context_servers\": {\n\t\t\"a\": {\"command\": \"x\"}\n\t}\n}",
        );
        there_and_back(
            "gemini",
            "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"a\": {\"httpUrl\": \"https://x\"}\r\n  }\r\n}\r\n",
        );
    }

    #[test]
    fn tables_of_toml_come_back_as_they_were() {
        let text = "model = \"x\" # which\n\n# pages\n[mcp_servers.web]\ncommand = \"uvx\"\n\n[mcp_servers.web.env]\nA = \"b\" # c\n\n# more\n[tools]\nx = 1\n";
        let edited = there_and_back("codex", text);
        assert!(
            edited.config.contains("\n[mcp_servers.entail]\ncommand = \"/bin/entail\"\n")
                && edited.config.ends_with("# more\n[tools]\nx = 1\n"),
            "{}",
            edited.config
        );
        assert!(edited.servers.starts_with("# pages\n[mcp_servers.web]"), "{}", edited.servers);
        there_and_back("codex", "[mcp_servers.\"my web\"]\ncommand = \"x\"");
        there_and_back("codex", "[ mcp_servers . web ]\nurl = 'https://x'\n");
        let codex = Client::named("codex").unwrap();
        // Tables that are apart come back together.
        let apart = "[mcp_servers.a]\ncommand = \"x\"\n[tools]\ny = 1\n[mcp_servers.b]\ncommand = \"z\"\n";
        let edited = install(codex, apart, None, &words()).unwrap();
        let back = uninstall(codex, &edited.config, &edited.servers).unwrap();
        assert_eq!(toml::from_str::<toml::Table>(&back), toml::from_str::<toml::Table>(apart));
        // What can't be cut is not.
        for text in [
            "mcp_servers = { a = { command = \"x\" } }\n",
            "mcp_servers.a.command = \"x\"\n",
            "[tools]\nx = \"\"\"\n[mcp_servers.q]\n\"\"\"\n[mcp_servers.a]\ncommand = \"x\"\n",
        ] {
            let why = install(codex, text, None, &words()).unwrap_err();
            assert!(why.contains("by hand"), "{text}: {why}");
        }
    }

    #[test]
    fn servers_that_were_added_stay_and_are_guarded_by_the_next_installation() {
        let client = Client::named("claude-code").unwrap();
        let edited = install(client, COMMENTED, None, &words()).unwrap();
        let more = edited.config.replacen("\"entail\"", "\"new\": {\"command\": \"n\"}, \"entail\"", 1);
        let back = uninstall(client, &more, &edited.servers).unwrap();
        let root = client.parse(&back).unwrap();
        let names: Vec<&String> = client.entries(&root).unwrap().keys().collect();
        assert_eq!(names, ["new", "web", "mail"]);
        assert!(back.contains("// reads pages"), "{back}");
        let again = install(client, &more, Some(&edited.servers), &words()).unwrap();
        assert!(again.servers.contains("\"new\"") && !again.config.contains("\"new\""), "{again:?}");
        let twice = more.replacen("\"new\"", "\"web\"", 1);
        assert!(uninstall(client, &twice, &edited.servers).unwrap_err().contains("`web` was listed again"));
    }

    #[test]
    fn files_that_list_nothing_or_are_no_json_are_errors() {
        let client = Client::named("cursor").unwrap();
        for (text, part) in [
            ("{}", "lists no servers"),
            ("{\"mcpServers\": {}}", "lists no servers"),
            ("{\"mcpServers\": []}", "lists no servers"),
            ("{\"mcpServers\": {\"entail\": {\"command\": \"x\"}}}", "the guard's name"),
            ("{\"mcpServers\": {", ""),
        ] {
            let why = install(client, text, None, &words()).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
            assert!(uninstall(client, text, "{}").is_err());
        }
        assert!(Client::named("curser").unwrap_err().contains("did you mean `cursor`?"));
    }

    #[test]
    fn files_are_where_the_clients_keep_them() {
        let environment = Environment::new([("HOME", "/h"), ("USERPROFILE", "/h"), ("CODEX_HOME", "/c")]);
        let user = |name: &str| Client::named(name).unwrap().user_file(&environment).unwrap();
        assert_eq!(user("codex"), Path::new("/c/config.toml"));
        assert_eq!(user("cursor"), Path::new("/h/.cursor/mcp.json"));
        let project = |name: &str| Client::named(name).unwrap().project_file(Path::new("/p"));
        assert_eq!(project("vscode"), Some("/p/.vscode/mcp.json".into()));
        assert_eq!(project("windsurf"), None);
        let files = [".mcp.json", ".codex/config.toml", "claude_desktop_config.json"]
            .map(|f| servers_file(Path::new(f)));
        assert_eq!(
            files,
            [".mcp.entail.json", ".codex/config.entail.toml", "claude_desktop_config.entail.json"]
                .map(PathBuf::from)
        );
    }
}
