//! Built-in tools that reach outside of this process, each within what its handler allows: files under a
//! root, and addresses of named hosts.
//!
//! Invariant: no path leads out of the root, neither by `..` nor by a link, even one that is created during
//! the call. Paths are not checked before they are opened; they are opened beneath the open root (`openat2`
//! with `RESOLVE_BENEATH` where available).
//! Invariant: nothing is read that is no regular file.
//! Invariant: a fetch goes to allowed hosts only, and follows no redirect.

use super::{ToolError, ToolLimits, http};
use crate::{ConfigError, ConfigErrorKind, web};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use core_ir::{Data, Name, Num};
use diagnostics::clip_to as clip;
use regex::RegexBuilder;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The tools with what each does.
pub(super) const CONFINED: &[(&str, &str)] = &[
    ("file.read", "the text of a file (path) under `root`"),
    ("file.list", "the paths of the files under a directory (path) under `root`"),
    (
        "file.grep",
        "the lines that match a regular expression (pattern, path), each with `path`, `line` and `text`",
    ),
    ("file.write", "replaces the text of a file (path, text) under `root`"),
    ("http.fetch", "the text at an address (url) whose host is in `allow`"),
];

/// Maximum numbers of files read and of lines returned.
const MAX_FILES: usize = 10_000;
const MAX_LINES: usize = 1_000;

#[derive(Clone, Debug)]
pub(super) enum Confined {
    Files { act: FileOp, root: PathBuf },
    Fetch { allow: Arc<[String]>, timeout: Option<Duration> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileOp {
    Read,
    List,
    Grep,
    Write,
}

impl Confined {
    /// Returns the tool of a name with the handler's settings; `None` if there is no such tool.
    pub(super) fn read(
        name: &str,
        handler: &Data,
        timeout: Option<Duration>,
    ) -> Option<Result<Confined, String>> {
        let act = match name {
            "file.read" => FileOp::Read,
            "file.list" => FileOp::List,
            "file.grep" => FileOp::Grep,
            "file.write" => FileOp::Write,
            "http.fetch" => {
                let hosts = match handler.field("allow") {
                    Some(Data::List(items)) => {
                        items.iter().map(|d| d.as_str().map(str::to_lowercase)).collect()
                    }
                    _ => None,
                };
                let missing = "`http.fetch` needs `allow`, a list of hosts such as \"example.com\" or \"*.example.com\"";
                return Some(match hosts {
                    Some(hosts) => Ok(Confined::Fetch { allow: hosts, timeout }),
                    None => Err(missing.into()),
                });
            }
            _ => return None,
        };
        Some(match handler.field("root").and_then(Data::as_str) {
            Some(root) => Ok(Confined::Files { act, root: root.into() }),
            None => Err(format!("`{name}` needs `root`, the directory that it does not leave")),
        })
    }

    pub(super) async fn call(
        self,
        args: Vec<(Name, Data)>,
        limits: ToolLimits,
        clients: Arc<http::Clients>,
    ) -> Result<Data, ToolError> {
        self.check()?;
        match self {
            Confined::Files { act, root } => {
                let limit = limits.timeout;
                let work = tokio::task::spawn_blocking(move || files(act, &root, &args, &limits));
                match tokio::time::timeout(limit, work).await {
                    Ok(done) => Ok(done.map_err(|_| "it crashed".to_string())??),
                    Err(_) => Err(ToolError::Late(format!("no result within {} s", limit.as_secs_f64()))),
                }
            }
            Confined::Fetch { allow, timeout } => {
                let limit = timeout.unwrap_or(limits.timeout);
                let done = tokio::time::timeout(limit, fetch(&allow, &args, &limits, &clients)).await;
                let late = || ToolError::Late(format!("no answer within {} s", limit.as_secs_f64()));
                Ok(done.map_err(|_| late())??)
            }
        }
    }

    /// Looks for the root.
    ///
    /// # Errors
    /// It is not there.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        match self {
            Confined::Files { root, .. } if !root.is_dir() => {
                let message =
                    format!("its root `{}` is not a directory", clip(&root.display().to_string(), 200));
                let error = ConfigError::new(message).with_help("make the directory, or correct `root`");
                Err(error.of_kind(ConfigErrorKind::NotInstalled))
            }
            _ => Ok(()),
        }
    }
}

/// The arguments, all of them texts.
fn texts<const N: usize>(args: &[(Name, Data)], what: &str) -> Result<[String; N], String> {
    let texts: Option<Vec<String>> = args.iter().map(|(_, d)| d.as_str().map(String::from)).collect();
    let wrong = || format!("it takes {what}, {N} text{}", if N == 1 { "" } else { "s" });
    texts.and_then(|t| t.try_into().ok()).ok_or_else(wrong)
}

fn files(act: FileOp, root: &Path, args: &[(Name, Data)], limits: &ToolLimits) -> Result<Data, String> {
    let root = Dir::open_ambient_dir(root, ambient_authority())
        .map_err(|e| format!("the root `{}`: {e}", root.display()))?;
    match act {
        FileOp::Read => {
            let [path] = texts(args, "a path")?;
            Ok(Data::str(text_of(&root, &beneath(&path)?, limits.max_output)?))
        }
        FileOp::List => {
            let [path] = texts(args, "a path")?;
            let found = walk(&root, &beneath(&path)?)?;
            Ok(Data::list(found.iter().map(|p| Data::str(p.display().to_string()))))
        }
        FileOp::Grep => {
            let [pattern, path] = texts(args, "a regular expression and a path")?;
            let regex = RegexBuilder::new(&pattern).size_limit(1 << 20).build();
            let regex =
                regex.map_err(|_| format!("`{}` is not a regular expression", clip(&pattern, 100)))?;
            let mut out = Vec::new();
            for file in walk(&root, &beneath(&path)?)? {
                // Files that are too large or not text are skipped, as other programs of the name do.
                let Ok(text) = text_of(&root, &file, limits.max_output) else { continue };
                for (n, line) in text.lines().enumerate().filter(|(_, l)| regex.is_match(l)) {
                    let number = i64::try_from(n + 1).unwrap_or(i64::MAX);
                    out.push(Data::record([
                        ("path".into(), Data::str(file.display().to_string())),
                        ("line".into(), Data::Num(Num::from(number))),
                        ("text".into(), Data::str(clip(line, 500))),
                    ]));
                    if out.len() > MAX_LINES {
                        return Err(format!("more than {MAX_LINES} lines match"));
                    }
                }
            }
            Ok(Data::list(out))
        }
        FileOp::Write => {
            let [path, text] = texts(args, "a path and a text")?;
            let given = beneath(&path)?;
            let name = given.file_name().ok_or_else(|| format!("`{}` names no file", clip(&path, 100)))?;
            let parent = given.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            // Also if the folder is moved meanwhile, both names are in it.
            let folder = root.open_dir(parent).map_err(|e| why(parent, &e))?;
            if folder.symlink_metadata(name).is_ok_and(|m| m.is_dir()) {
                return Err(format!("`{}` is a directory", clip(&path, 100)));
            }
            // A link of that name is replaced, not followed; and the file is there whole or not at all.
            let new = format!(".{}.new", crate::new_run_id());
            let written = folder.write(&new, text).and_then(|()| folder.rename(&new, &folder, name));
            if written.is_err() {
                let _ = folder.remove_file(&new);
            }
            written.map_err(|e| why(&given, &e))?;
            Ok(Data::str(given.display().to_string()))
        }
    }
}

/// A path that goes down only, without detours.
fn beneath(path: &str) -> Result<PathBuf, String> {
    let mut out = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            _ => return Err(format!("`{}` is not a path within the root", clip(path, 100))),
        }
    }
    Ok(out)
}

fn why(path: &Path, e: &std::io::Error) -> String {
    let path = path.display().to_string();
    let path = clip(if path.is_empty() { "." } else { &path }, 100);
    match e.kind() {
        std::io::ErrorKind::NotFound => format!("`{path}` not found"),
        // A path out of a root has no error number of the operating system.
        std::io::ErrorKind::PermissionDenied if e.raw_os_error().is_none() => {
            format!("`{path}` leads out of the root")
        }
        _ => format!("`{path}`: {e}"),
    }
}

/// Names the root as the library expects.
fn named(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn text_of(root: &Dir, path: &Path, most: usize) -> Result<String, String> {
    let wrong = |what: &str| format!("`{}`: {what}", clip(&path.display().to_string(), 100));
    let mut how = OpenOptions::new();
    how.read(true);
    // Opening a pipe would wait for a writer.
    #[cfg(unix)]
    cap_std::fs::OpenOptionsExt::custom_flags(&mut how, rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = root.open_with(named(path), &how).map_err(|e| why(path, &e))?;
    // Checks the opened file, not the one that has the name by now.
    if !file.metadata().map_err(|e| why(path, &e))?.is_file() {
        return Err(wrong("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|e| why(path, &e))?;
    if bytes.len() > most {
        return Err(wrong(&format!("it is larger than {most} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| wrong("it is not text"))
}

/// The files under a directory, or the file itself, as paths from the root in a stable order. Links are not
/// followed, but for the way to `from`.
fn walk(root: &Dir, from: &Path) -> Result<Vec<PathBuf>, String> {
    if root.metadata(named(from)).map_err(|e| why(from, &e))?.is_file() {
        return Ok(vec![from.to_path_buf()]);
    }
    let (mut open, mut out) = (vec![from.to_path_buf()], Vec::new());
    while let Some(folder) = open.pop() {
        let entries = root.read_dir(named(&folder)).map_err(|e| why(&folder, &e))?;
        for entry in entries.filter_map(Result::ok) {
            let path = folder.join(entry.file_name());
            match entry.file_type() {
                Ok(t) if t.is_dir() => open.push(path),
                Ok(t) if t.is_file() => out.push(path),
                _ => {}
            }
            if out.len() + open.len() > MAX_FILES {
                return Err(format!("there are more than {MAX_FILES} files"));
            }
        }
    }
    out.sort();
    Ok(out)
}

async fn fetch(
    allow: &[String],
    args: &[(Name, Data)],
    limits: &ToolLimits,
    clients: &http::Clients,
) -> Result<Data, String> {
    let [text] = texts(args, "an address")?;
    let url = web::url(&text, "the address").map_err(|e| e.message)?;
    let host = url.host_str().unwrap_or_default().to_lowercase();
    let fits = |rule: &String| match rule.strip_prefix("*.") {
        Some(domain) => host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')),
        None => host == *rule || url.port().is_some_and(|port| format!("{host}:{port}") == *rule),
    };
    if !allow.iter().any(fits) {
        return Err(format!(
            "the host `{}` is not allowed (help: `allow` of the handler names the hosts)",
            clip(&host, 100)
        ));
    }
    let place = format!("`{}`", web::shown(&url));
    let response =
        clients.of(&url)?.get(url).send().await.map_err(|e| format!("{place}: {}", web::cause(&e)))?;
    let status = response.status();
    if status.is_redirection() {
        return Err(format!("{place}: it leads elsewhere, and redirects are not followed"));
    }
    let bytes = web::body(response, limits.max_output).await.map_err(|e| match e {
        web::BodyError::TooLarge => format!("{place}: the answer is larger than {} bytes", limits.max_output),
        web::BodyError::Broken(e) => format!("{place}: {}", web::cause(&e)),
    })?;
    if !status.is_success() {
        return Err(format!("{place}: HTTP {}", status.as_u16()));
    }
    String::from_utf8(bytes).map(Data::str).map_err(|_| format!("{place}: the response is not text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(act: FileOp, root: &Path, args: &[&str]) -> Result<String, String> {
        let args: Vec<(Name, Data)> = args.iter().map(|a| ("x".into(), Data::str(*a))).collect();
        files(act, root, &args, &ToolLimits::default()).map(|d| d.to_json().to_string())
    }

    #[cfg(unix)]
    #[test]
    fn files_are_read_and_written_within_the_root_and_nowhere_else() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "planted").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(root.join("a.txt"), "one\ntwo\n").unwrap();
        std::fs::write(root.join("sub/b.txt"), "two too\n").unwrap();
        std::fs::write(root.join("no-text"), [0xff, 0xfe]).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("way-out")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), root.join("link")).unwrap();
        assert_eq!(
            call(FileOp::Read, &root, &["sub/../a.txt"]),
            Err("`sub/../a.txt` is not a path within the root".into())
        );
        assert_eq!(call(FileOp::Read, &root, &["./a.txt"]).unwrap(), r#""one\ntwo\n""#);
        assert_eq!(call(FileOp::List, &root, &["."]).unwrap(), r#"["a.txt","no-text","sub/b.txt"]"#);
        let found = call(FileOp::Grep, &root, &["^t.o", "."]).unwrap();
        assert_eq!(
            found,
            r#"[{"path":"a.txt","line":2,"text":"two"},{"path":"sub/b.txt","line":1,"text":"two too"}]"#
        );
        for path in ["../x", "/etc/passwd", "link", "way-out/secret", "none", "sub", "no-text"] {
            let e = call(FileOp::Read, &root, &[path]).unwrap_err();
            assert!(e.contains(path) && !e.contains("planted"), "{e}");
        }
        assert!(call(FileOp::Grep, &root, &["(", "."]).unwrap_err().contains("not a regular expression"));
        call(FileOp::Write, &root, &["sub/c.txt", "new"]).unwrap();
        assert_eq!(call(FileOp::Read, &root, &["sub/c.txt"]).unwrap(), r#""new""#);
        // A link is replaced, and what it led to stays as it was.
        call(FileOp::Write, &root, &["link", "mine"]).unwrap();
        assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "planted");
        for path in ["../x", "way-out/x", "/tmp/x", "sub", ""] {
            call(FileOp::Write, &root, &[path, "x"]).unwrap_err();
        }
        assert!(!outside.path().join("x").exists() && !dir.path().join("x").exists());
    }

    /// Somebody swaps a directory for a link that leads out, again and again, while files are read and
    /// written in it.
    #[cfg(unix)]
    #[test]
    fn a_link_that_appears_in_between_leads_nowhere() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("f"), "planted").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (inside, link) = (dir.path().join("inside"), dir.path().join("link"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(inside.join("f"), "mine").unwrap();
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        let way = dir.path().join("way");
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            s.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    for from in [&inside, &link] {
                        std::fs::rename(from, &way).unwrap();
                        std::fs::rename(&way, from).unwrap();
                    }
                }
            });
            let mut read = 0;
            for n in 0..20_000 {
                let got = call(FileOp::Read, dir.path(), &["way/f"]);
                assert_ne!(got.as_deref(), Ok("\"planted\""));
                read += usize::from(got.is_ok());
                let _ = call(FileOp::Write, dir.path(), &["way/new", "x"]);
                if read > 50 && n > 2_000 {
                    break;
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
        // A pipe without a writer is not waited for.
        assert!(
            std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap().success()
        );
        assert!(call(FileOp::Read, dir.path(), &["pipe"]).unwrap_err().contains("it is not a file"));
    }

    #[tokio::test]
    async fn a_fetch_goes_to_allowed_hosts_only() {
        let allow: Vec<String> = ["example.com", "*.example.org", "127.0.0.1:9"].map(String::from).into();
        for (url, want) in [
            ("http://evil.com/", "is not allowed"),
            ("http://notexample.org/", "is not allowed"),
            ("http://example.org/", "is not allowed"),
            ("http://example.com.evil.com/", "is not allowed"),
            ("http://127.0.0.1:10/", "is not allowed"),
            ("http://user@example.com/", "a user or a password"),
            ("file:///etc/passwd", "scheme"),
            // Allowed, but no server is there.
            ("http://127.0.0.1:9/", "no connection"),
        ] {
            let args = vec![("url".into(), Data::str(url))];
            let e =
                fetch(&allow, &args, &ToolLimits::default(), &http::Clients::default()).await.unwrap_err();
            assert!(e.contains(want), "{url}: {e}");
        }
    }
}
