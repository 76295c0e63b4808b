//! Every file of `tests/fixtures` has the findings that its marks state, and no others.
//!
//! A fixture is a file, or a folder of files that belong together. Fixtures are in a folder for each rule.
//! The comment `expect: L017 warn 5-12` at the end of a line states a finding that begins on the line: its
//! code, its level and its columns, the end excluded. `5-+2:3` ends in column 3 two lines below. Commas
//! separate several findings. Where no comment can stand at the end of a line, `expect 12: …` on a line of
//! its own names the line.
//!
//! `UPDATE_EXPECTED=1 cargo test -p lint --test it fixtures::files` writes the marks anew. For a rule without
//! fixtures it writes the examples of the rule's page as the first ones.

use diagnostics::{Diagnostic, FileId, Level, Span};
use frontend_kit::doc::Limits;
use frontend_kit::{File, Outline, Project, Unit, UnitKind, Versions};
use lint::{Config, Language, Outcome, RULES, lint_among, lint_programs};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The findings of a file by line, each as `CODE level columns`, in order.
type Findings = BTreeMap<usize, Vec<String>>;

/// The files of a fixture: paths as lint sees them, and texts.
type Files = Vec<(String, String)>;

/// Files with pinned versions, which are not linted themselves.
const PINS: &str = "requirements.txt";

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths
}

/// A fixture: its rule, the folder that its paths start from, and its files.
struct Fixture {
    rule: String,
    root: PathBuf,
    files: Files,
}

fn fixtures() -> Vec<Fixture> {
    fn read(root: &Path, path: &Path, files: &mut Files) {
        if path.is_dir() {
            sorted(path).iter().for_each(|p| read(root, p, files));
        } else {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            files.push((name, std::fs::read_to_string(path).unwrap()));
        }
    }
    let mut all = Vec::new();
    for folder in sorted(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")) {
        let rule = folder.file_name().unwrap().to_string_lossy().into_owned();
        for entry in sorted(&folder) {
            let root = if entry.is_dir() { entry.clone() } else { folder.clone() };
            let mut files = Vec::new();
            read(&root, &entry, &mut files);
            all.push(Fixture { rule: rule.clone(), root, files });
        }
    }
    all
}

/// Line and column of a byte, both from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line = before.rfind('\n').map_or(0, |i| i + 1);
    (1 + before.matches('\n').count(), 1 + before[line..].chars().count())
}

fn unit(name: &str, code: core_ir::Code, span: Span) -> Unit {
    let outline = Outline::default();
    Unit { name: name.into(), kind: UnitKind::Agent, code: Arc::new(code), span, agents: Vec::new(), outline }
}

/// The findings in a file among the others; none of a file that lint skips.
fn reported(files: &Files, index: usize) -> Vec<Diagnostic> {
    let (path, text) = &files[index];
    let id = FileId(0);
    // Excuses are told from defaults that are small: every default is a warning without an excuse.
    let config = Config { level: Level::Info, most_default_rounds: 0, ..Config::default() };
    if path.ends_with(".lam") {
        let parsed = agentlang::calculus::compile(id, text);
        let all = Span { file: id, start: 0, end: text.len() as u32 };
        let code = parsed.code.unwrap_or_else(|| panic!("{path}: {:?}", parsed.diagnostics));
        lint_programs(Language::Lam, vec![unit("main", code, all)], &config)
    } else if path.ends_with(".agent") {
        let (module, errors) = agentlang::check(id, text);
        let module = module.unwrap_or_else(|| panic!("{path}: {errors:?}"));
        let lowered =
            module.entries().iter().filter_map(|e| Some(unit(&e.name, module.lower(e).ok()?, e.span)));
        lint_programs(Language::Agent, lowered.collect(), &config)
    } else {
        let around = |_| {
            let others = files.iter().enumerate().filter(|(i, (p, _))| *i != index && File::is_read(p));
            let read = |((_, (path, text)), id): ((usize, &(String, String)), u32)| {
                File::read(FileId(id), path, &Arc::from(text.as_str()), &Limits::default())
            };
            let mut versions = Versions::default();
            files.iter().filter(|(p, _)| p == PINS).for_each(|(p, text)| versions.read(p, text));
            Project { files: others.zip(1..).map(read).collect(), versions, ..Project::default() }
        };
        match lint_among(frontends::recognize, path, id, text.as_bytes(), around, &config).outcome {
            Outcome::Checked { findings, .. } | Outcome::Unreadable(findings) => findings,
            Outcome::Skipped(_) => Vec::new(),
        }
    }
}

/// The findings in a file by line.
fn findings(files: &Files, index: usize) -> Findings {
    let text = &files[index].1;
    let mut lines = Findings::new();
    for d in reported(files, index) {
        let span = d.span.expect("findings of a file have a place");
        let (line, from) = place(text, span.start as usize);
        let to = match place(text, span.end as usize) {
            (end, to) if end == line => to.to_string(),
            (end, to) => format!("+{}:{to}", end - line),
        };
        lines.entry(line).or_default().push(format!("{} {} {from}-{to}", d.code, d.level.as_str()));
    }
    lines
}

/// The beginning of a comment in the language of a file.
fn comment(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("json") => "//",
        Some("agent") => "--",
        _ => "#",
    }
}

/// The findings that a line states, and the line without the mark.
fn mark<'l>(path: &str, line: &'l str, number: usize) -> (&'l str, Option<(usize, Vec<String>)>) {
    let parsed = line.rsplit_once(&format!("{} expect", comment(path))).and_then(|(before, rest)| {
        let (at, found) = rest.split_once(": ")?;
        let at = if at.is_empty() { number } else { at.trim().parse().ok()? };
        Some((before.trim_end(), (at, found.split(", ").map(String::from).collect())))
    });
    parsed.map_or((line, None), |(before, stated)| (before, Some(stated)))
}

/// The findings that a text states.
fn expected(path: &str, text: &str) -> Findings {
    text.lines().zip(1..).filter_map(|(line, n)| mark(path, line, n).1).collect()
}

/// A text with its present marks: at the ends of lines where comments can stand there, else on lines of their
/// own at the end.
fn marked(files: &Files, index: usize) -> String {
    let (path, text) = &files[index];
    let lines = text.lines().zip(1..).map(|(line, n)| mark(path, line, n));
    let bare = lines.filter(|(bare, mark)| mark.is_none() || !bare.is_empty()).map(|(bare, _)| bare);
    let mut lines: Vec<String> = bare.map(String::from).collect();
    let joined = |lines: &[String]| lines.iter().map(|l| format!("{l}\n")).collect::<String>();
    let with = |text: String| -> Files {
        let mut files = files.clone();
        files[index].1 = text;
        files
    };
    let found = findings(&with(joined(&lines)), index);
    let mut below = Vec::new();
    for (line, of) in &found {
        let bare = std::mem::take(&mut lines[line - 1]);
        lines[line - 1] = format!("{bare}  {} expect: {}", comment(path), of.join(", "));
        let now = joined(&lines);
        if expected(path, &now).get(line) != Some(of) || findings(&with(now), index) != found {
            lines[line - 1] = bare;
            below.push(format!("{} expect {line}: {}", comment(path), of.join(", ")));
        }
    }
    lines.extend(below);
    joined(&lines)
}

/// Rules that lack a fixture in which they are reported (true) or are not (false).
fn missing() -> BTreeSet<(&'static str, bool)> {
    let mut missing: BTreeSet<_> = RULES.iter().flat_map(|r| [(r.code, true), (r.code, false)]).collect();
    for Fixture { rule, files, .. } in fixtures() {
        let prefix = format!("{rule} ");
        let stated = |(path, text): &(String, String)| expected(path, text).into_values().flatten().collect();
        let stated: Vec<String> = files.iter().flat_map(|f| -> Vec<String> { stated(f) }).collect();
        let is_reported = stated.iter().any(|f| f.starts_with(&prefix));
        missing.retain(|(code, reported)| *code != rule || *reported != is_reported);
    }
    missing
}

/// Writes the fixtures that rules lack: the examples of their pages.
fn seed() {
    for (code, is_reported) in missing() {
        let rule = lint::rule(code).unwrap();
        let (heading, end) = if is_reported { ("Example", "reported") } else { ("Fix", "quiet") };
        let section = rule.docs.split("\n## ").find(|s| s.starts_with(heading)).unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(code);
        std::fs::create_dir_all(&folder).unwrap();
        for block in section.split("```").skip(1).step_by(2) {
            let (info, text) = block.split_once('\n').unwrap();
            let kind = if info.starts_with("python") { "py" } else { "yaml" };
            let name = format!("{}_{end}.{kind}", rule.name.replace('-', "_"));
            std::fs::write(folder.join(name), text).unwrap();
        }
    }
}

#[test]
fn files_have_the_findings_of_their_marks() {
    let update = std::env::var_os("UPDATE_EXPECTED").is_some_and(|v| !v.is_empty());
    if update {
        seed();
    }
    let mut wrong = String::new();
    for Fixture { root, files, .. } in fixtures() {
        for (i, (name, text)) in files.iter().enumerate().filter(|(_, (name, _))| name != PINS) {
            if update {
                std::fs::write(root.join(name), marked(&files, i)).unwrap();
                continue;
            }
            let (found, stated) = (findings(&files, i), expected(name, text));
            if found != stated {
                let path = root.join(name);
                let _ = writeln!(wrong, "{}:\n  found    {found:?}\n  expected {stated:?}", path.display());
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn findings_of_level_warn_name_a_remedy() {
    let mut wrong = Vec::new();
    for Fixture { root, files, .. } in fixtures() {
        for (i, (name, _)) in files.iter().enumerate().filter(|(_, (name, _))| name != PINS) {
            for d in reported(&files, i).iter().filter(|d| d.level >= Level::Warn) {
                let place = root.join(name);
                if d.help.is_empty() {
                    wrong.push(format!("{}: {} {}", place.display(), d.code, d.message));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each rule is reported in one fixture of its folder at least, and not reported in another.
#[test]
fn each_rule_has_a_reported_and_a_quiet_fixture() {
    assert_eq!(missing(), BTreeSet::new());
}

#[test]
fn marks_state_codes_levels_and_columns() {
    let text =
        "a: 1  # expect: L017 warn 1-2, S001 error 4-+2:3\n# expect 7: L002 info 1-4\nb: 2 # expected\n";
    let stated = |line: usize, found: &[&str]| (line, found.iter().map(|f| f.to_string()).collect());
    let wanted: Findings =
        [stated(1, &["L017 warn 1-2", "S001 error 4-+2:3"]), stated(7, &["L002 info 1-4"])].into();
    assert_eq!(expected("a.yaml", text), wanted);
}
