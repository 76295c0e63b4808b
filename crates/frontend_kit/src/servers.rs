//! Servers of tools that a configuration lists: what starts them, where they are, and which of their tools
//! are called without asking anybody.

use crate::doc::{Entry, Node};
use crate::emit::value_span;
use crate::kit::mark;
use crate::project::File;
use crate::versions::Versions;
use diagnostics::Span;

/// A server of tools that a configuration lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server<'d> {
    /// Name in the list.
    pub name: &'d str,
    /// Its definition, name included.
    pub span: Span,
    /// The package that is fetched to start it, if a registry decides which version that is.
    pub unpinned: Option<(&'d str, Span)>,
    /// Address, if it isn't a local process.
    pub address: Option<(&'d str, Span)>,
    /// Tools of it that are called without asking anybody.
    pub unasked: Vec<(&'d str, Span)>,
    /// Words of the command that starts it.
    pub command: Vec<&'d str>,
}

/// Servers are not looked at beyond these.
const MAX_SERVERS: usize = 1_000;

/// The servers that a file lists.
pub fn servers<'d>(file: &'d File, versions: &Versions) -> Vec<Server<'d>> {
    let roots = file.documents.iter().take(8).map(|d| d.root());
    let entries = roots.filter_map(list).flat_map(|l| l.entries());
    let started = |e: &Entry<'_>| is_server(e.value) && !is_off(e.value);
    entries.take(MAX_SERVERS).filter(started).map(|e| server(&e, versions)).collect()
}

const ADDRESS: &[&str] = &["url", "serverUrl", "httpUrl"];

/// Returns true if a document is only a list of servers.
pub fn is_server_list(root: Node<'_>) -> bool {
    list(root).is_some_and(|l| l.entries().take(20).all(|e| is_server(e.value)))
}

/// Keys under which clients keep the mapping: most of them, VS Code in its settings, Zed, Amp, Codex.
const LISTS: &[&[&str]] =
    &[&["mcpServers"], &["mcp", "servers"], &["context_servers"], &["amp.mcpServers"], &["mcp_servers"]];

/// The mapping of names to servers.
fn list(root: Node<'_>) -> Option<Node<'_>> {
    let sure = |l: &Node<'_>| l.is_mapping() && l.entries().take(20).all(|e| is_server(e.value));
    let named = LISTS.iter().find_map(|path| root.at(path).filter(Node::is_mapping));
    // `servers` alone may be anything: each has to say how it is started, or that it is one of MCP.
    named.or_else(|| root.get("servers").filter(|l| sure(l) && l.entries().all(|e| is_typed(e.value))))
}

fn is_server(node: Node<'_>) -> bool {
    let says = |key: &str| mark::text(node, key).is_some();
    node.is_mapping() && (says("command") || ADDRESS.iter().any(|a| says(a)))
}

/// Returns true if the client does not start the server.
fn is_off(node: Node<'_>) -> bool {
    let says = |key: &str, value: bool| node.get(key).and_then(|n| n.as_bool()) == Some(value);
    says("disabled", true) || says("enabled", false)
}

fn is_typed(node: Node<'_>) -> bool {
    let remote = ["http", "sse", "streamable-http", "streamableHttp"];
    mark::text(node, "command").is_some() || mark::text(node, "type").is_some_and(|t| remote.contains(&t))
}

fn server<'d>(entry: &Entry<'d>, versions: &Versions) -> Server<'d> {
    let node = entry.value;
    let texts = |key: &str| node.get(key).into_iter().flat_map(|l| l.items()).take(MAX_SERVERS);
    let said = |n: Node<'d>| Some((n.as_str()?, n.span()));
    let mut command: Vec<(&str, Span)> = node.get("command").and_then(said).into_iter().collect();
    command.extend(texts("args").filter_map(said));
    let address =
        ADDRESS.iter().find_map(|a| node.entry(a)).and_then(|e| Some((e.value.as_str()?, e.value.span())));
    Server {
        name: entry.key.text().unwrap_or_default(),
        span: Span { start: entry.key.span().start, ..value_span(entry) },
        unpinned: fetched(&command, versions),
        address: address.or_else(|| bridged(&command)),
        command: command.iter().map(|(word, _)| *word).collect(),
        unasked: texts("autoApprove").chain(texts("alwaysAllow")).filter_map(said).collect(),
    }
}

/// The name of a program without its folder and extension.
fn program(command: &str) -> &str {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    [".cmd", ".exe"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

/// The address that `mcp-remote` connects to.
fn bridged<'d>(command: &[(&'d str, Span)]) -> Option<(&'d str, Span)> {
    let is_bridge = |word: &str| word == "mcp-remote" || word.starts_with("mcp-remote@");
    let at = command.iter().position(|(word, _)| is_bridge(program(word)))?;
    command[at + 1..].iter().find(|(word, _)| word.contains("://")).copied()
}

/// The package that a command fetches, if nothing written says which version of it.
fn fetched<'d>(command: &[(&'d str, Span)], versions: &Versions) -> Option<(&'d str, Span)> {
    let mut words = command;
    // `cmd /c npx …`: how programs of npm are started on Windows.
    if let [(shell, _), (flag, _), rest @ ..] = words
        && program(shell) == "cmd"
        && flag.eq_ignore_ascii_case("/c")
    {
        words = rest;
    }
    let ((first, _), mut rest) = words.split_first()?;
    let starts = |rest: &[(&str, Span)], with: &[&str]| {
        rest.len() >= with.len() && rest.iter().zip(with).all(|((word, _), w)| word == w)
    };
    let (python, skipped) = match program(first) {
        "npx" | "bunx" => (false, 0),
        "pnpm" if starts(rest, &["dlx"]) => (false, 1),
        "yarn" if starts(rest, &["dlx"]) => (false, 1),
        "bun" if starts(rest, &["x"]) => (false, 1),
        "npm" if starts(rest, &["exec"]) || starts(rest, &["x"]) => (false, 1),
        "uvx" => (true, 0),
        "uv" if starts(rest, &["tool", "run"]) => (true, 2),
        "pipx" if starts(rest, &["run"]) => (true, 1),
        _ => return None,
    };
    rest = &rest[skipped..];
    let (package, at) = requested(rest, python)?;
    let pinned = if python {
        python_version(package)?
    } else {
        // What the project depends on is taken from its `node_modules`, in the version of its lock file.
        npm_version(package)? || bare(package) == package && versions.of(package).is_some()
    };
    (!pinned).then_some((package, at))
}

/// Returns the package that `npx` or `uvx` fetches. `None` if unknown options precede it.
fn requested<'d>(words: &[(&'d str, Span)], python: bool) -> Option<(&'d str, Span)> {
    const ALONE: &[&str] =
        &["-y", "--yes", "-q", "--quiet", "--silent", "--refresh", "--isolated", "--no-cache", "--bun", "--"];
    const TAKE_ONE: &[&str] =
        &["--python", "--with", "--index-url", "--registry", "--directory", "--env-file"];
    let names: &[&str] = if python { &["--from", "--spec"] } else { &["--package", "-p"] };
    // The package that an option names counts, wherever the option stands before the program.
    let mut rest = words.iter();
    while let Some((word, at)) = rest.next() {
        let (option, value) = word.split_once('=').map_or((*word, None), |(o, v)| (o, Some(v)));
        if !word.starts_with('-') {
            return Some((word, *at));
        } else if names.contains(&option) {
            return value.map(|v| (v, *at)).or_else(|| rest.next().copied());
        } else if TAKE_ONE.contains(&option) || python && option == "-p" {
            if value.is_none() {
                rest.next()?;
            }
        } else if !ALONE.contains(&option) {
            return None;
        }
    }
    None
}

/// The name of a package of npm, without its version.
fn bare(package: &str) -> &str {
    let scope = package.find('/').filter(|_| package.starts_with('@')).unwrap_or(0);
    package[scope..].find('@').map_or(package, |i| &package[..scope + i])
}

/// Returns true for a pinned version: `1.2.3` or a range, but not `latest`.
fn is_version(text: &str) -> bool {
    text.trim_start_matches(['^', '~', '=', '>', '<', ' ', 'v']).starts_with(|c: char| c.is_ascii_digit())
}

/// Returns whether a package of npm has a pinned version. `None` for anything but a package of a registry.
fn npm_version(package: &str) -> Option<bool> {
    if package.contains(['$', '{', '<', ':', '\\']) || package.starts_with(['.', '/', '~']) {
        return None;
    }
    let name = bare(package);
    Some(package[name.len()..].strip_prefix('@').is_some_and(is_version))
}

/// The same for a package of PyPI or of a repository: `name==1.2`, `name@1.2`, `git+https://host/name@revision`.
fn python_version(package: &str) -> Option<bool> {
    if let Some(source) = package.strip_prefix("git+") {
        let name = source.rsplit('/').next().unwrap_or(source);
        return Some(name.contains('@'));
    }
    if package.contains(['$', '{', '/', '\\', ':'])
        || package.starts_with(['.', '~'])
        || package.ends_with(".whl")
    {
        return None;
    }
    let end = package.find(['=', '>', '<', '~', '!', '@', ' ']).unwrap_or(package.len());
    let version = package[end..].trim_start_matches(['=', '>', '<', '~', '!', '@', ' ']);
    Some(is_version(version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostics::FileId;

    fn unpinned(command: &str) -> Option<&str> {
        let at = Span { file: FileId(0), start: 0, end: 0 };
        let words: Vec<(&str, Span)> = command.split(' ').map(|w| (w, at)).collect();
        let mut versions = Versions::default();
        versions.read("package.json", "{\n\"devDependencies\": {\n\"@acme/kept\": \"1.2.0\"\n}\n}");
        fetched(&words, &versions).map(|(package, _)| package)
    }

    #[test]
    fn unpinned_packages_of_commands_are_found() {
        for (command, package) in [
            ("npx -y @acme/files /srv", "@acme/files"),
            ("npx files@latest", "files@latest"),
            ("npx @acme/kept@latest", "@acme/kept@latest"),
            ("/usr/bin/npx.cmd --package=files files-server", "files"),
            ("cmd /c npx -y files", "files"),
            ("cmd /C npx -y files", "files"),
            ("bunx files", "files"),
            ("pnpm dlx files", "files"),
            ("uvx mcp-server-time --local-timezone=UTC", "mcp-server-time"),
            ("uvx --python 3.12 --from files[all] files-server", "files[all]"),
            (
                "uvx --from git+https://code.example.org/acme/files files",
                "git+https://code.example.org/acme/files",
            ),
            ("uv tool run files@latest", "files@latest"),
            ("pipx run files", "files"),
        ] {
            assert_eq!(unpinned(command), Some(package), "{command}");
        }
        for command in [
            "npx -y @acme/files@1.2.3 /srv",
            "npx -y files@^2",
            "npx -y @acme/kept",
            "npx -y ./server.js",
            "npx -y ${package}",
            "npx --unheard-of files",
            "npx",
            "uvx mcp-server-time==2025.1",
            "uvx mcp-server-time@2025.1",
            "uvx files>=2",
            "uvx --from git+https://code.example.org/acme/files@5d2c1 files",
            "uvx --from ./server files",
            "uv run server.py",
            "uv --directory /srv run server.py",
            "node server.js",
            "pnpm start",
            "é",
        ] {
            assert_eq!(unpinned(command), None, "{command}");
        }
    }
}
