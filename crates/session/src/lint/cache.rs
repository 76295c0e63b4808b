//! Cache of lint results, keyed by content: an unchanged file is not linted again.
//!
//! Entry point: [`Cache::open`], [`Cache::get`], [`Cache::put`], [`Cache::save`].
//!
//! One file for each set of settings, in `entail/lint` of the user's cache directory. A first line with a
//! checksum of the rest, then an entry a line: the key, and the report as JSON. The key is a hash of the
//! file's name and bytes, of what else counts for its findings, and of the program that linted it.
//!
//! Invariant: a cache changes how long a run takes and nothing else. What is damaged, from another version or
//! not understood is linted again.
//! Invariant: several runs may share it. It is replaced as a whole; of two that write, the later wins.

use diagnostics::{Applicability, Diagnostic, FileId, Fix, Level, Remark, Span};
use frontend_kit::doc::{Limits, decode};
use lint::{Outcome, Report, Skip, codes, rule};
use runtime::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The name of the file's format.
const FORMAT: &str = "entail-lint-cache 1";
/// A cache larger than this is begun anew with what the run used.
const MAX_BYTES: usize = 32 << 20;

/// A key: the beginning of a SHA-256.
pub type Key = [u8; 16];

/// The reports of earlier runs with the same settings.
pub struct Cache {
    /// Path of the cache; `None` if nothing is kept.
    path: Option<PathBuf>,
    /// The file as it was read.
    text: String,
    /// Position of each key's report in the cache.
    known: HashMap<Key, std::ops::Range<usize>>,
    /// Results of this run.
    new: Mutex<Vec<(Key, String)>>,
    /// The keys of this run.
    used: Mutex<Vec<Key>>,
    /// Key of the program version.
    program: Vec<u8>,
}

impl Cache {
    /// The cache of a set of settings. Without a directory for it, or if `off`, one that keeps nothing.
    pub fn open(settings: &str, off: bool) -> Cache {
        let path = (!off).then(directory).flatten();
        let program = program();
        let path = path.map(|d| d.join(format!("{}.cache", hex(&key_of(&[&program, settings.as_bytes()])))));
        let mut cache = Cache {
            path,
            text: String::new(),
            known: HashMap::new(),
            new: Mutex::default(),
            used: Mutex::default(),
            program,
        };
        if let Some(text) = cache.path.as_deref().and_then(read_whole) {
            cache.text = text;
            cache.index();
        }
        cache
    }

    /// Forgets everything, of all settings.
    pub fn clear() {
        if let Some(directory) = directory() {
            // A file that can't be removed is no worse than before.
            let _ = std::fs::remove_dir_all(directory);
        }
    }

    /// The key of a file, and of what else its findings depend on.
    pub fn key(&self, path: &Path, bytes: &[u8], more: &[u8]) -> Key {
        let name = path.file_name().map(|n| n.as_encoded_bytes()).unwrap_or_default();
        key_of(&[&self.program, name, bytes, more])
    }

    /// Returns true if the cache is enabled.
    pub fn is_on(&self) -> bool {
        self.path.is_some()
    }

    fn index(&mut self) {
        let Some((head, body)) = self.text.split_once('\n') else { return };
        let sum = key_of(&[body.as_bytes()]);
        if head != format!("{FORMAT} {}", hex(&sum)) {
            return;
        }
        let mut at = head.len() + 1;
        for line in body.split_inclusive('\n') {
            if let Some((key, _)) = line.split_once(' ').and_then(|(k, rest)| Some((unhex(k)?, rest))) {
                self.known.insert(key, at + 33..at + line.trim_end_matches('\n').len());
            }
            at += line.len();
        }
    }

    /// The report of a key, if it is known. The bytes are those that the key was made of.
    pub fn get(&self, key: &Key, bytes: &[u8]) -> Option<Report> {
        let entry = self.text.get(self.known.get(key)?.clone())?;
        let kept: CachedReport = serde_json::from_str(entry).ok()?;
        let report = kept.report(bytes)?;
        if let Ok(mut used) = self.used.lock() {
            used.push(*key);
        }
        Some(report)
    }

    /// Keeps a report.
    pub fn put(&self, key: Key, report: &Report) {
        // A format without a front end costs nothing, and its name lives only there.
        let cheap = matches!(report.outcome, Outcome::Skipped(Skip::Unsupported(_) | Skip::OtherKind));
        if !self.is_on() || cheap {
            return;
        }
        if let Ok(text) = serde_json::to_string(&CachedReport::of(report))
            && let Ok(mut new) = self.new.lock()
        {
            new.push((key, text));
        }
    }

    /// Writes it back, if there is anything new. A cache that can't be written is no reason to fail.
    pub fn save(&self) {
        let (Some(path), Ok(new), Ok(used)) = (&self.path, self.new.lock(), self.used.lock()) else { return };
        if new.is_empty() {
            return;
        }
        let old: Vec<(Key, &str)> = match self.text.len() < MAX_BYTES {
            true => self.known.iter().filter_map(|(k, r)| Some((*k, self.text.get(r.clone())?))).collect(),
            false => {
                used.iter().filter_map(|k| Some((*k, self.text.get(self.known.get(k)?.clone())?))).collect()
            }
        };
        let mut body = String::new();
        let all = old.into_iter().chain(new.iter().map(|(k, t)| (*k, t.as_str())));
        for (key, entry) in all {
            body.push_str(&hex(&key));
            body.push(' ');
            body.push_str(entry);
            body.push('\n');
        }
        let text = format!("{FORMAT} {}\n{body}", hex(&key_of(&[body.as_bytes()])));
        if let Some(directory) = path.parent()
            && std::fs::create_dir_all(directory).is_ok()
        {
            forget_old(directory);
            // Not written through to the disk: what is torn by a crash fails the checksum.
            let new = tempfile::Builder::new().prefix(".lint-").tempfile_in(directory);
            if let Ok(mut new) = new
                && new.write_all(text.as_bytes()).is_ok()
            {
                let _ = new.persist(path);
            }
        }
    }
}

/// Removes caches of settings and programs that have not been in use for long.
fn forget_old(directory: &Path) {
    const LONG: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 3600);
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
        if age.is_some_and(|a| a > LONG) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A file as text, if it is there, is one, and is not absurdly large.
fn read_whole(path: &Path) -> Option<String> {
    let length = std::fs::metadata(path).ok()?.len();
    if length > 4 * MAX_BYTES as u64 {
        return None;
    }
    std::fs::read_to_string(path).ok()
}

/// `entail/lint` in the user's cache directory.
fn directory() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let base =
        set("XDG_CACHE_HOME").filter(|p| p.is_absolute()).or_else(|| Some(set("HOME")?.join(".cache")));
    Some(base.or_else(|| set("LOCALAPPDATA"))?.join("entail").join("lint"))
}

/// Returns the identity of this program: its version and, in development, its build.
fn program() -> Vec<u8> {
    let mut all = env!("CARGO_PKG_VERSION").as_bytes().to_vec();
    if let Ok(built) = crate::program::own_file().and_then(std::fs::metadata) {
        all.extend(built.len().to_le_bytes());
        let since = built.modified().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
        all.extend(since.map_or(0, |d| d.as_nanos()).to_le_bytes());
    }
    all
}

/// The hash of some parts; where one ends and the next begins counts.
pub fn key_of(parts: &[&[u8]]) -> Key {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut key = Key::default();
    key.copy_from_slice(&hash.finalize()[..16]);
    key
}

fn unhex(text: &str) -> Option<Key> {
    let mut key = Key::default();
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    for (i, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok()?;
    }
    Some(key)
}

/// A report as it is written.
#[derive(Serialize, Deserialize)]
enum CachedReport {
    #[serde(rename = "s")]
    Skipped(String),
    #[serde(rename = "u")]
    Unreadable(Vec<Finding>),
    #[serde(rename = "c")]
    Checked {
        f: String,
        u: usize,
        s: usize,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        t: bool,
        d: Vec<Finding>,
    },
}

#[derive(Serialize, Deserialize)]
struct Finding {
    c: String,
    l: u8,
    m: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<(u32, u32)>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    b: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    r: Vec<(u32, u32, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    h: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    f: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    a: Option<String>,
    /// Name or value that tells it from others of its code at its place.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    o: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    x: Option<(u32, u32, String, u8)>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    hide: bool,
}

const LEVELS: [Level; 4] = [Level::Info, Level::Unknown, Level::Warn, Level::Error];
const TRUST: [Applicability; 3] = [Applicability::DisplayOnly, Applicability::Unsafe, Applicability::Safe];
const SKIPS: [Skip; 4] = [Skip::OtherKind, Skip::Empty, Skip::NoAgent, Skip::Template];

fn index<T: PartialEq>(all: &[T], one: &T) -> u8 {
    all.iter().position(|a| a == one).unwrap_or(0) as u8
}

impl CachedReport {
    fn of(report: &Report) -> CachedReport {
        let all = |found: &[Diagnostic]| found.iter().map(Finding::of).collect();
        match &report.outcome {
            Outcome::Skipped(skip) => CachedReport::Skipped(skip.to_string()),
            Outcome::Unreadable(found) => CachedReport::Unreadable(all(found)),
            Outcome::Checked { framework, units, findings, silenced, test } => CachedReport::Checked {
                f: framework.to_string(),
                u: *units,
                s: *silenced,
                t: *test,
                d: all(findings),
            },
        }
    }

    fn report(self, bytes: &[u8]) -> Option<Report> {
        let all = |found: Vec<Finding>| {
            found.into_iter().map(Finding::diagnostic).collect::<Option<Vec<Diagnostic>>>()
        };
        // The text is needed to show places in it, and for nothing else.
        let mut text = None;
        let outcome = match self {
            CachedReport::Skipped(why) => Outcome::Skipped(*SKIPS.iter().find(|s| s.to_string() == why)?),
            CachedReport::Unreadable(found) => {
                text = decode(FileId(0), bytes, &Limits::default()).ok();
                Outcome::Unreadable(all(found)?)
            }
            CachedReport::Checked { f, u, s, t, d } => {
                if !d.is_empty() {
                    text = Some(decode(FileId(0), bytes, &Limits::default()).ok()?);
                }
                Outcome::Checked {
                    framework: framework(&f)?,
                    units: u,
                    findings: all(d)?,
                    silenced: s,
                    test: t,
                }
            }
        };
        Some(Report { text, outcome })
    }
}

/// The framework of a name. Findings refer to names that live as long as the program.
fn framework(name: &str) -> Option<&'static str> {
    frontends::FRONTENDS.iter().map(|f| f.name()).chain([lint::MODULE]).find(|n| *n == name)
}

/// The code that is written so.
fn code(written: &str) -> Option<&'static str> {
    static CODES: std::sync::OnceLock<Vec<&'static str>> = std::sync::OnceLock::new();
    let all = CODES.get_or_init(|| codes().iter().map(|c| c.code).collect());
    // INVARIANT: `codes` is in order.
    all.binary_search(&written).ok().map(|i| all[i])
}

impl Finding {
    fn of(d: &Diagnostic) -> Finding {
        let span = |s: Span| (s.start, s.end);
        Finding {
            c: d.code.to_string(),
            l: index(&LEVELS, &d.level),
            m: d.message.clone(),
            at: d.span.map(span),
            b: d.label.clone(),
            r: d.remarks.iter().map(|r| (r.span.start, r.span.end, r.text.clone())).collect(),
            h: d.help.clone(),
            f: d.framework.map(str::to_string),
            a: d.agent.clone(),
            o: d.about.clone(),
            x: d.fix
                .as_ref()
                .map(|f| (f.span.start, f.span.end, f.replacement.clone(), index(&TRUST, &f.applicability))),
            hide: d.hide_source,
        }
    }

    fn diagnostic(self) -> Option<Diagnostic> {
        let span = |start, end| Span { file: FileId(0), start, end };
        let code = code(&self.c)?;
        let framework = match self.f {
            Some(f) => Some(framework(&f)?),
            None => None,
        };
        let fix = match self.x {
            Some((start, end, replacement, trust)) => Some(Fix {
                span: span(start, end),
                replacement,
                applicability: *TRUST.get(usize::from(trust))?,
            }),
            None => None,
        };
        Some(Diagnostic {
            code,
            level: *LEVELS.get(usize::from(self.l))?,
            message: self.m,
            span: self.at.map(|(s, e)| span(s, e)),
            label: self.b,
            remarks: self.r.into_iter().map(|(s, e, text)| Remark { span: span(s, e), text }).collect(),
            help: self.h,
            meaning: rule(code).map(|r| r.meaning),
            framework,
            agent: self.a,
            about: self.o,
            fix,
            hide_source: self.hide,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lint::{Config, lint_bytes};

    const TEXT: &str = "agentId: a\ntype: react\nsystemPrompt: ''\nreact: {maxSteps: 0}\ncolor: red\nmodel: {apiKey: 8f14e45fceea167a5a36dedd4bea2543} # entail: ignore[L003]\n";

    fn at(path: &Path) -> Cache {
        let mut cache = Cache::open("", true);
        cache.path = Some(path.to_path_buf());
        if let Some(text) = read_whole(path) {
            cache.text = text;
            cache.index();
        }
        cache
    }

    #[test]
    fn report_round_trips() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.cache");
        let config = Config { level: Level::Info, ..Config::default() };
        let examples: Vec<String> = lint::RULES.iter().map(|r| r.docs.to_string()).collect();
        let pages =
            examples.iter().flat_map(|d| d.split("```yaml\n").skip(1).filter_map(|s| s.split("```").next()));
        let texts: Vec<&str> = pages.chain([TEXT, "", "a: [1", "image: nginx"]).collect();
        let cache = at(&path);
        let linted: Vec<Report> = texts
            .iter()
            .map(|t| lint_bytes(frontends::recognize, "a.yaml", FileId(0), t.as_bytes(), &config))
            .collect();
        for (text, report) in texts.iter().zip(&linted) {
            let key = cache.key(Path::new("x/a.yaml"), text.as_bytes(), b"");
            assert!(cache.get(&key, text.as_bytes()).is_none());
            cache.put(key, report);
        }
        cache.save();
        let again = at(&path);
        for (text, report) in texts.iter().zip(&linted) {
            let key = again.key(Path::new("y/a.yaml"), text.as_bytes(), b"");
            let got = again.get(&key, text.as_bytes()).unwrap();
            assert_eq!(format!("{:?}", got.outcome), format!("{:?}", report.outcome));
            if let Outcome::Checked { findings, .. } = &report.outcome
                && !findings.is_empty()
            {
                assert_eq!(got.text, report.text);
            }
        }
        // Another name, other bytes and other settings are other keys.
        let key = again.key(Path::new("b.yaml"), TEXT.as_bytes(), b"");
        assert!(again.get(&key, TEXT.as_bytes()).is_none());
        let key = again.key(Path::new("a.yaml"), TEXT.as_bytes(), b"x");
        assert!(again.get(&key, TEXT.as_bytes()).is_none());
    }

    #[test]
    fn damaged_cache_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.cache");
        let cache = at(&path);
        let key = cache.key(Path::new("a.yaml"), TEXT.as_bytes(), b"");
        cache.put(
            key,
            &lint_bytes(frontends::recognize, "a.yaml", FileId(0), TEXT.as_bytes(), &Config::default()),
        );
        cache.save();
        let good = std::fs::read(&path).unwrap();
        assert!(at(&path).get(&key, TEXT.as_bytes()).is_some());
        for place in (0..good.len()).step_by(7) {
            let mut bad = good.clone();
            bad[place] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert!(at(&path).get(&key, TEXT.as_bytes()).is_none(), "{place}");
            std::fs::write(&path, &good[..place]).unwrap();
            assert!(at(&path).get(&key, TEXT.as_bytes()).is_none(), "{place}");
        }
    }
}
