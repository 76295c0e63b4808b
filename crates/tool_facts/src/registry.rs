//! The registry: what is documented of the tools of frameworks and of MCP servers.
//!
//! Entry points: [`server`] finds a server by what starts it, [`tool`] a framework's tool by its class,
//! function or type, [`trigger`] what starts a workflow.
//!
//! Invariant: each entry has the address of its source and the date at which it was read.

use crate::effect::Effect;
use crate::written::{self, Entry};
use std::collections::HashMap;
use std::sync::OnceLock;

/// An entry about tools of a framework, or about triggers.
#[derive(Debug)]
struct WrittenTools {
    framework: String,
    source: String,
    date: String,
    names: Vec<String>,
    called: Vec<String>,
    operation: Option<String>,
    effects: Vec<String>,
}

struct WrittenFrameworks {
    tools: Vec<WrittenTools>,
    triggers: Vec<WrittenTools>,
}

struct WrittenServer {
    name: String,
    matches: Vec<String>,
    source: String,
    date: String,
    reads: Vec<String>,
    writes: Vec<String>,
    read_tools: Vec<String>,
    write_tools: Vec<String>,
    tools: Vec<WrittenServerTools>,
}

struct WrittenServerTools {
    names: Vec<String>,
    effects: Vec<String>,
}

impl WrittenTools {
    fn read(entry: &mut Entry) -> Result<WrittenTools, String> {
        Ok(WrittenTools {
            framework: entry.text("framework")?,
            source: entry.text("source")?,
            date: entry.text("date")?,
            names: entry.texts("names")?,
            called: entry.optional_texts("called")?.unwrap_or_default(),
            operation: entry.optional_text("operation")?,
            effects: entry.texts("effects")?,
        })
    }
}

impl WrittenFrameworks {
    fn read() -> Result<WrittenFrameworks, String> {
        written::read(include_str!("../data/frameworks.toml"), |file| {
            Ok(WrittenFrameworks {
                tools: file.entries("tools", WrittenTools::read)?,
                triggers: file.entries("triggers", WrittenTools::read)?,
            })
        })
    }
}

impl WrittenServer {
    /// Reads a server. One that names no source is in the catalog, which was read at `date`.
    fn read(entry: &mut Entry, catalog: &str, date: &str) -> Result<WrittenServer, String> {
        let name = entry.text("name")?;
        let (source, date) = match (entry.optional_text("source")?, entry.optional_text("date")?) {
            (Some(source), Some(date)) => (source, date),
            (None, None) => (format!("{catalog}{name}"), date.to_string()),
            _ => return Err(format!("{name}: `source` without `date`, or the reverse")),
        };
        let mut list = |key| Ok::<_, String>(entry.optional_texts(key)?.unwrap_or_default());
        let (reads, writes) = (list("reads")?, list("writes")?);
        let (read_tools, write_tools) = (list("read_tools")?, list("write_tools")?);
        Ok(WrittenServer {
            name,
            matches: entry.texts("match")?,
            source,
            date,
            reads,
            writes,
            read_tools,
            write_tools,
            tools: entry.entries("tools", |e| {
                Ok(WrittenServerTools { names: e.texts("names")?, effects: e.texts("effects")? })
            })?,
        })
    }
}

/// Reads the servers.
fn written_servers() -> Result<Vec<WrittenServer>, String> {
    written::read(include_str!("../data/servers.toml"), |file| {
        let (catalog, date) = (file.text("source")?, file.text("date")?);
        file.entries("server", |entry| WrittenServer::read(entry, &catalog, &date))
    })
}

/// A documented tool or trigger of a framework.
#[derive(Debug)]
pub struct Documented {
    /// The framework.
    pub framework: String,
    /// Its effects; none if it only computes.
    pub effects: Vec<Effect>,
    /// Address of what documents it.
    pub source: String,
    /// Date at which it was read.
    pub date: String,
    /// The operation that it carries out where none is chosen.
    pub operation: Option<String>,
}

/// A documented server of tools.
#[derive(Debug)]
pub struct Server {
    /// Its name in the registry.
    pub name: String,
    /// Packages, images and addresses that start or reach it.
    pub matches: Vec<String>,
    /// Address of what documents it.
    pub source: String,
    /// Date at which it was read.
    pub date: String,
    /// Effects of tools that look things up.
    pub reads: Vec<Effect>,
    /// Effects of tools that change something.
    pub writes: Vec<Effect>,
    /// Tools that are named, each with its effects.
    pub tools: Vec<(String, Vec<Effect>)>,
}

impl Server {
    /// Returns the effects of a tool of the server; the flag is true if the tool is named. A tool that is not
    /// named is told by its verb.
    ///
    /// # Examples
    /// ```
    /// use tool_facts::{Effect, registry};
    /// let words = ["npx", "-y", "@modelcontextprotocol/server-filesystem"];
    /// let server = registry::server("files", &words).unwrap();
    /// assert_eq!(server.effects_of("write_file"), (vec![Effect::FileWrite], true));
    /// ```
    pub fn effects_of(&self, tool: &str) -> (Vec<Effect>, bool) {
        if let Some((_, effects)) = self.tools.iter().find(|(name, _)| name == tool) {
            return (effects.clone(), true);
        }
        match is_read(tool) {
            Some(true) => (self.reads.clone(), false),
            Some(false) => (self.writes.clone(), false),
            None => (self.effects(), false),
        }
    }

    /// Returns the effects of all tools together.
    pub fn effects(&self) -> Vec<Effect> {
        let named = self.tools.iter().flat_map(|(_, effects)| effects);
        let mut all: Vec<Effect> = self.reads.iter().chain(&self.writes).chain(named).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

struct Registry {
    servers: Vec<Server>,
    tools: HashMap<String, Documented>,
    called: HashMap<String, String>,
    triggers: HashMap<String, Documented>,
}

/// Returns the effects of names; names that are none are left out (a test shows that there are none).
pub(crate) fn effects(names: &[String]) -> Vec<Effect> {
    names.iter().filter_map(|n| Effect::of_name(n)).collect()
}

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        // INVARIANT: the data is part of the program and well-formed (test below).
        let frameworks = WrittenFrameworks::read().expect("the registry is well-formed");
        let servers = written_servers().expect("the registry is well-formed");
        let mut called = HashMap::new();
        let mut documented = |all: Vec<WrittenTools>| {
            let mut out = HashMap::new();
            for w in all {
                if let Some(first) = w.names.first() {
                    called.extend(w.called.iter().map(|c| (c.clone(), first.clone())));
                }
                for name in &w.names {
                    let (framework, source, date) = (w.framework.clone(), w.source.clone(), w.date.clone());
                    let (effects, operation) = (effects(&w.effects), w.operation.clone());
                    out.insert(name.clone(), Documented { framework, effects, source, date, operation });
                }
            }
            out
        };
        let (tools, triggers) = (documented(frameworks.tools), documented(frameworks.triggers));
        let server = |w: WrittenServer| {
            let (reads, writes) = (effects(&w.reads), effects(&w.writes));
            let mut tools: Vec<(String, Vec<Effect>)> = Vec::new();
            tools.extend(w.read_tools.into_iter().map(|t| (t, reads.clone())));
            tools.extend(w.write_tools.into_iter().map(|t| (t, writes.clone())));
            for other in w.tools {
                let own = effects(&other.effects);
                tools.extend(other.names.into_iter().map(|t| (t, own.clone())));
            }
            Server { name: w.name, matches: w.matches, source: w.source, date: w.date, reads, writes, tools }
        };
        Registry { servers: servers.into_iter().map(server).collect(), tools, called, triggers }
    })
}

/// Returns all servers.
pub fn servers() -> &'static [Server] {
    &registry().servers
}

/// Returns the server that words of a command or an address start or reach; or else the one of this name.
///
/// # Examples
/// ```
/// use tool_facts::registry;
/// let found = |words: &[&str]| registry::server("x", words).map(|s| s.name.as_str());
/// assert_eq!(found(&["uvx", "mcp-server-fetch==2025.4.7"]), Some("fetch"));
/// assert_eq!(found(&["docker", "run", "ghcr.io/github/github-mcp-server:1"]), Some("github-official"));
/// assert_eq!(found(&["https://mcp.linear.app/mcp"]), Some("linear"));
/// assert_eq!(found(&["npx", "@tavily-ai/tavily-mcp@latest"]), Some("tavily"));
/// assert_eq!(found(&["node", "server.js"]), None);
/// assert_eq!(registry::server("Playwright", &[]).map(|s| s.name.as_str()), Some("playwright"));
/// ```
pub fn server(name: &str, words: &[&str]) -> Option<&'static Server> {
    let servers = &registry().servers;
    // Modules of Python have underscores for the hyphens of their packages, and packages have no case.
    let plain = |n: &str| n.to_ascii_lowercase().replace('_', "-");
    let by_word = words.iter().map(|w| plain(w)).find_map(|word| {
        let starts = |s: &&Server| s.matches.iter().any(|known| is_start(&word, known));
        servers.iter().find(starts)
    });
    let own = plain(name);
    let short = own.strip_suffix("-mcp").or(own.strip_suffix("-server")).unwrap_or(&own);
    let bare = short.strip_suffix("-mcp").unwrap_or(short).to_string();
    by_word.or_else(|| {
        let named = |n: &str| servers.iter().find(|s| plain(&s.name) == n);
        named(&own).or_else(|| named(&bare)).or_else(|| servers.iter().find(|s| s.matches.contains(&own)))
    })
}

/// Returns true if a word of a command, or an address, is that of a known package, image or server.
fn is_start(word: &str, known: &str) -> bool {
    let host = |address: &str| address.split(['/', '?', ':']).next().unwrap_or(address).to_string();
    // A server has several addresses at its host.
    if let Some((_, address)) = word.split_once("://")
        && host(known).split('.').any(|part| part == "mcp")
        && host(address) == host(known)
    {
        return true;
    }
    // The value of an option, as `--from=PACKAGE`.
    let word = word.strip_prefix("--").and_then(|o| o.split_once('=')).map_or(word, |(_, value)| value);
    let word = word.split_once("://").map_or(word, |(_, rest)| rest);
    let word = word.rsplit_once("docker:").map_or(word, |(_, rest)| rest);
    let word = word.strip_prefix("docker.io/").unwrap_or(word);
    let repository = ["github.com/", "github:", "git@github.com:", "git@github.com/"];
    let repository = repository.iter().find_map(|at| word.strip_prefix(at));
    let word = repository.unwrap_or(word);
    let exact = |w: &str| {
        w.strip_prefix(known).is_some_and(|rest| {
            let rest = rest.strip_prefix(".git").unwrap_or(rest);
            rest.is_empty() || rest.starts_with([':', '@', '=', '/', '?', '[', '>', '<', '~', '!', '#'])
        })
    };
    let is_path = word.starts_with(['/', '.', '~']) || word.get(1..).is_some_and(|w| w.starts_with(":\\"));
    // A package of a scope, or a repository, may have the name of another, as `@tavily-ai/tavily-mcp`.
    if !is_path && !word.starts_with('@') && repository.is_none() {
        return exact(word);
    }
    let mut parts = word.trim_end_matches('/').rsplit(['/', '\\']);
    // A folder that the server was put into, as `/opt/whatsapp-mcp/whatsapp-mcp-server`, or its program.
    let is_program = is_path && [".js", ".mjs", ".cjs", ".ts", ".py"].iter().any(|end| word.ends_with(end));
    exact(word) || if is_program { parts.any(exact) } else { parts.next().is_some_and(exact) }
}

/// Returns what is documented of a tool by the qualified name of its class or function, or by its type.
///
/// # Examples
/// ```
/// use tool_facts::{Effect, registry};
/// let tool = registry::tool("crewai_tools.ScrapeWebsiteTool").unwrap();
/// assert_eq!(tool.framework, "crewai");
/// assert!(registry::tool("acme.ScrapeWebsite").is_none());
/// ```
pub fn tool(name: &str) -> Option<&'static Documented> {
    let registry = registry();
    let name = name.trim_end_matches("[]");
    let last = name.rsplit('.').next().unwrap_or(name);
    // Classes have names of their own; functions and types count in full.
    let is_class = last.starts_with(|c: char| c.is_ascii_uppercase());
    registry.tools.get(name).or_else(|| registry.tools.get(last).filter(|_| is_class)).or_else(|| {
        let head = name.split('.').next().unwrap_or(name);
        registry.tools.get(&format!("{head}.{last}")).filter(|_| is_class)
    })
}

/// Returns what is documented of a tool that models call by a name, in any framework.
pub fn called(name: &str) -> Option<&'static Documented> {
    let registry = registry();
    registry.tools.get(registry.called.get(name)?)
}

/// Returns what is documented of a trigger, or of an agent that brings text in, by its type or class.
pub fn trigger(name: &str) -> Option<&'static Documented> {
    let triggers = &registry().triggers;
    let last = name.rsplit('.').next().unwrap_or(name);
    let class = Some(last).filter(|l| l.starts_with(|c: char| c.is_ascii_uppercase()));
    triggers.get(name).or_else(|| triggers.get(class?))
}

/// Number of documented servers, and of names of frameworks' tools.
pub fn counts() -> (usize, usize) {
    (registry().servers.len(), registry().tools.len())
}

/// Verbs of names of tools and methods.
const READS: &[&str] = &[
    "get",
    "list",
    "search",
    "read",
    "fetch",
    "query",
    "find",
    "describe",
    "retrieve",
    "lookup",
    "look",
    "show",
    "view",
    "check",
    "count",
    "download",
    "browse",
    "scan",
    "inspect",
    "explain",
    "analyze",
    "validate",
    "select",
    "history",
    "iter",
    "head",
    "exists",
    "load",
    "open",
    "scrape",
    "crawl",
    "extract",
    "parse",
    "summarize",
    "translate",
    "classify",
];
const WRITES: &[&str] = &[
    "create",
    "update",
    "delete",
    "send",
    "add",
    "post",
    "put",
    "set",
    "remove",
    "write",
    "move",
    "cancel",
    "insert",
    "append",
    "upload",
    "execute",
    "run",
    "assign",
    "close",
    "merge",
    "deploy",
    "enable",
    "disable",
    "refund",
    "pay",
    "place",
    "modify",
    "publish",
    "invite",
    "archive",
    "edit",
    "drop",
    "start",
    "stop",
    "restart",
    "apply",
    "patch",
    "reply",
    "forward",
    "upsert",
    "push",
    "commit",
    "transfer",
    "invoke",
    "replace",
    "copy",
    "trash",
    "untrash",
    "unsubscribe",
    "approve",
    "revoke",
    "mark",
];

/// Returns whether a name begins with a verb of looking up (`true`) or of changing (`false`); a word before
/// the verb names the service.
pub(crate) fn is_read(name: &str) -> Option<bool> {
    crate::words::words(name, 100).iter().take(3).find_map(|word| {
        if READS.contains(&&**word) {
            Some(true)
        } else if WRITES.contains(&&**word) {
            Some(false)
        } else {
            None
        }
    })
}

/// Returns whether an operation gives what it is told to others: `send`, `replyToMessage`.
pub(crate) fn sends(operation: &str) -> bool {
    let sending = ["send", "reply", "forward", "post", "publish"];
    crate::words::words(operation, 100).first().is_some_and(|w| sending.contains(&w.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn is_date(text: &str) -> bool {
        let parts: Vec<&str> = text.split('-').collect();
        parts.len() == 3
            && text.len() == 10
            && parts.iter().all(|p| p.chars().all(|c| c.is_ascii_digit()))
            && ("2024".."2030").contains(&parts[0])
    }

    #[test]
    fn each_way_to_start_a_server_is_resolved() {
        for (command, expected) in [
            ("npx -y @modelcontextprotocol/server-filesystem@latest /srv", Some("filesystem")),
            (
                "npx --package=@modelcontextprotocol/server-filesystem mcp-server-filesystem",
                Some("filesystem"),
            ),
            ("bunx exa-mcp-server", Some("exa")),
            ("pnpm dlx exa-mcp-server@3", Some("exa")),
            ("uv tool run mcp-server-git==1.2", Some("git")),
            ("uvx --from mcp-server-git[all]>=1.2 mcp-server-git", Some("git")),
            ("uvx --from=mcp-server-git server", Some("git")),
            ("uvx MCP_Server_Git", Some("git")),
            ("uvx --from git+https://github.com/acme/whatsapp-mcp.git@v1 serve", Some("whatsapp")),
            ("uvx --from git+https://github.com/acme/whatsapp serve", None),
            ("npx -y github:acme/whatsapp-mcp#main", Some("whatsapp")),
            ("python -m mcp_server_git --repository .", Some("git")),
            ("uv --directory /opt/whatsapp-mcp/whatsapp-mcp-server run main.py", Some("whatsapp")),
            (r"uv --directory C:\me\whatsapp-mcp-server run main.py", Some("whatsapp")),
            ("node /opt/exa-mcp-server/build/index.js", Some("exa")),
            ("node /opt/exa-mcp-servers/build/index.js", None),
            ("node é/exa-mcp-server/build/index.js", None),
            ("docker run -i --rm -e KEY docker.io/mcp/git:1", Some("git")),
            ("docker run -v /home/me/exa-mcp-server/data:/data acme/tools", None),
            ("cmd /c npx -y exa-mcp-server", Some("exa")),
            ("npx -y mcp-remote@latest https://mcp.linear.app/sse --header X:1", Some("linear")),
            ("npx -y mcp-remote https://huggingface.co/mcp?login", Some("hugging-face")),
            ("npx -y mcp-remote https://mcp.acme.example/sse", None),
            ("npx -y exa-mcp-server-2", None),
            ("uvx --from git+https://github.com/oraios/serena serena start-mcp-server", Some("serena")),
            ("npx @gongrzhe/server-gmail-autoauth-mcp", Some("gmail")),
            ("uvx awslabs.aws-documentation-mcp-server@latest", Some("aws-documentation")),
        ] {
            let words: Vec<&str> = command.split(' ').collect();
            assert_eq!(server("x", &words).map(|s| s.name.as_str()), expected, "{command}");
        }
    }

    #[test]
    fn the_registry_is_well_formed() {
        let frameworks = WrittenFrameworks::read().unwrap();
        let servers = written_servers().unwrap();
        let known = |effects: &[String]| effects.iter().all(|e| Effect::of_name(e).is_some());
        let mut seen = HashSet::new();
        for t in frameworks.tools.iter().chain(&frameworks.triggers) {
            assert!(t.source.starts_with("https://") && is_date(&t.date), "{t:?}");
            assert!(!t.names.is_empty() && known(&t.effects), "{t:?}");
            for name in &t.names {
                assert!(seen.insert(name.clone()), "{name} stands twice");
            }
        }
        let named: HashSet<&str> = frameworks.tools.iter().map(|t| &*t.framework).collect();
        assert_eq!(named.len(), 14, "{named:?}");
        let (mut names, mut matches) = (HashSet::new(), HashSet::new());
        for s in &servers {
            assert!(s.source.starts_with("https://") && is_date(&s.date), "{}", s.name);
            assert!(known(&s.reads) && known(&s.writes), "{}", s.name);
            assert!(s.tools.iter().all(|t| known(&t.effects)), "{}", s.name);
            assert!(names.insert(s.name.to_ascii_lowercase()), "{} stands twice", s.name);
            for m in &s.matches {
                assert!(matches.insert(m.clone()) && !m.contains("://"), "{m} of {}", s.name);
                assert!(!m.contains(|c: char| c == '_' || c.is_ascii_uppercase()), "{m} of {}", s.name);
            }
            let all = s.read_tools.iter().chain(&s.write_tools).chain(s.tools.iter().flat_map(|t| &t.names));
            let mut tools = HashSet::new();
            assert!(all.clone().all(|t| tools.insert(t)), "a tool of {} stands twice", s.name);
            assert!(s.read_tools.is_empty() || !s.reads.is_empty(), "{}", s.name);
            assert!(s.write_tools.is_empty() || !s.writes.is_empty(), "{}", s.name);
        }
        assert!(servers.len() >= 200, "{}", servers.len());
        assert!(servers.is_sorted_by_key(|s| s.name.to_ascii_lowercase()));
        let of_catalog = &server("aks", &[]).unwrap().source;
        assert_eq!(of_catalog, "https://github.com/docker/mcp-registry/tree/818bf16/servers/aks");
    }
}
