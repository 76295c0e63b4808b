//! Programs of `suite/agent` and their expectations.
//!
//! A group of lines is the expected run of a pipeline or test. It begins with `// Run: pipeline {…input…}` or
//! `// Run: test name`. The world of the run follows, in the order in which it is asked: `// Model: reply`,
//! `// Model calls tool: {…}`, `// Tool name: result`, `// Tool name {…arguments…}: result`,
//! `// Tool name fails: message`, `// Recall key: value` (or `nothing`), `// Remember key: value`; before the
//! answer of a model, `// System: text` says what its first message is; instead of an answer,
//! `// Late: request` for one that comes too late for the innermost time limit of the request, `request`
//! being `model` or the name of a tool; then `// Result: …`, with its label behind ` @ ` if it has one, or
//! `// Fails: code message` with the beginning of the message. Tests without such a group pass in a world
//! that is never asked. `NAME.policy.toml` beside `NAME.agent` is the policy of its runs.

use agentlang::{Entry, EntryKind, codes};
use core_ir::{Data, Name};
use diagnostics::{Diagnostic, FileId, Sources};
use machine::Reply;
use policy::Policy;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

/// Files by path, on disk or in one text that says `-- name.agent` where each of them begins.
#[derive(Default)]
pub struct Files {
    pub sources: Sources,
    pub known: HashMap<String, FileId>,
    pub texts: HashMap<String, String>,
}

impl Files {
    /// The first file of a text, and the others to be imported.
    pub fn split(text: &str) -> (Files, String) {
        let mut files = Files::default();
        let mut parts: Vec<(String, String)> = Vec::new();
        for line in text.lines() {
            let is_file = |l: &&str| (l.ends_with(".agent") || l.ends_with(".py")) && !l.contains(' ');
            match line.strip_prefix("-- ").filter(is_file) {
                Some(name) => parts.push((name.to_string(), String::new())),
                None => {
                    if parts.is_empty() {
                        return (files, text.to_string());
                    }
                    let (_, part) = parts.last_mut().unwrap();
                    part.push_str(line);
                    part.push('\n');
                }
            }
        }
        let first = parts.first().cloned();
        files.texts.extend(parts);
        match first {
            Some((name, text)) => {
                let id = files.sources.add(name.as_str(), text.as_str());
                files.known.insert(name, id);
                (files, text)
            }
            None => (files, text.to_string()),
        }
    }
}

impl agentlang::Loader for Files {
    fn load(&mut self, from: FileId, path: &str) -> Result<(FileId, std::sync::Arc<str>), String> {
        let folder = Path::new(&self.sources.get(from).unwrap().path).parent().unwrap().to_path_buf();
        let name = folder.join(path).display().to_string();
        if let Some(id) = self.known.get(&name) {
            return Ok((*id, self.sources.get(*id).unwrap().text.clone()));
        }
        let text = match self.texts.get(&name) {
            Some(text) => text.clone(),
            None => std::fs::read_to_string(&name).map_err(|_| "no such file".to_string())?,
        };
        let id = self.sources.add(name.as_str(), text.as_str());
        self.known.insert(name, id);
        Ok((id, text.into()))
    }

    /// The file of this name in `servers`, which a lock would give.
    fn server(
        &mut self,
        from: FileId,
        name: &str,
    ) -> Result<(FileId, std::sync::Arc<str>), agentlang::NotImported> {
        let why = |_| agentlang::NotImported {
            why: format!("`entail.lock` has no server `{name}`"),
            help: format!("`entail lock {name}`"),
        };
        self.load(from, &format!("servers/{name}.agent")).map_err(why)
    }

    fn python(
        &mut self,
        from: FileId,
        path: &str,
    ) -> Result<agentlang::PythonModule, agentlang::NotImported> {
        let because = |why| agentlang::NotImported { why, help: "repair the module".into() };
        let (id, text) = self.load(from, path).map_err(because)?;
        let name = self.sources.get(id).unwrap().path.clone();
        let (modules, main) = frontends::with_imports(id, &name, text, |path| self.load(from, path).ok());
        let tools = frontends::tool_module(&modules, main, path).map_err(because)?;
        let withheld = tools.withheld.into_iter().map(|(name, reason)| agentlang::WithheldFunction {
            name,
            why: reason.why,
            help: reason.help,
            at: reason.at,
        });
        let text: std::sync::Arc<str> = tools.text.into();
        let declared = format!("python:{name}");
        let file = match self.known.get(&declared) {
            Some(file) => *file,
            None => self.sources.add(declared.as_str(), text.clone()),
        };
        self.known.insert(declared, file);
        Ok(agentlang::PythonModule { file, text, withheld: withheld.collect() })
    }

    fn units(&mut self, from: FileId, path: &str) -> Result<Vec<frontend_kit::Unit>, String> {
        let here = Path::new(&self.sources.get(from).unwrap().path).parent().unwrap().join(path);
        // Of a folder, all files, the tasks of a crew first.
        let mut paths = vec![path.to_string()];
        if here.is_dir() {
            let files = std::fs::read_dir(&here).unwrap().map(|e| e.unwrap().file_name());
            paths = files.map(|f| format!("{path}/{}", f.display())).collect();
            paths.sort_by_key(|p| (!p.ends_with("tasks.yaml"), p.clone()));
        }
        let mut files = Vec::new();
        for path in paths {
            let (id, text) = self.load(from, &path)?;
            let name = self.sources.get(id).unwrap().path.clone();
            files.push(frontend_kit::File::read(id, &name, &text, &frontend_kit::doc::Limits::default()));
        }
        let frontend_kit::Recognized::Frontend(f) = frontends::recognize(&files[0]) else {
            return Err("no framework's".into());
        };
        Ok(f.lower(&frontend_kit::Project { files, ..Default::default() }, 0).units)
    }
}

pub fn found_in(text: &str) -> (Sources, Option<agentlang::Module>, Vec<Diagnostic>) {
    let (files, text) = Files::split(text);
    found_at("t.agent", &text, files)
}

pub fn found_at(
    path: &str,
    text: &str,
    mut files: Files,
) -> (Sources, Option<agentlang::Module>, Vec<Diagnostic>) {
    let file = match files.sources.next_id().0 {
        0 => files.sources.add(path, text),
        _ => FileId(0),
    };
    files.known.entry(path.to_string()).or_insert(file);
    let (mut module, mut found) = agentlang::check_files(file, text, &mut files);
    let mut sources = files.sources;
    if let Some(module) = &mut module {
        match policy_of(Path::new(path), module, &mut sources) {
            Ok(Some(policy)) => {
                module.assume(&policy);
                found.extend(policy.check_named(&module.policies()));
                // What does not fit the tools is found where the policy is put into a term.
                if let Some(Ok(mut code)) = module.entries().first().map(|e| module.lower(e)) {
                    found.extend(policy.apply_to(&mut code, &module.policies()));
                }
            }
            Ok(None) => {}
            Err(wrong) => found.extend(wrong),
        }
    }
    for d in &found {
        // Every finding can be printed, and has a registered code.
        assert!(!diagnostics::render::text(&sources, d, false).is_empty());
        let known = codes::explain(d.code).or(policy::codes::EXPLANATIONS.iter().find(|e| e.code == d.code));
        assert!(known.is_some(), "{} is not registered", d.code);
        assert!(d.span.is_some());
        let first = d.message.chars().next().unwrap();
        assert!(!first.is_uppercase() && !d.message.ends_with('.'), "{}", d.message);
    }
    (sources, module, found)
}

/// The policy for the program of a path: `NAME.policy.toml` beside `NAME.agent`, and the program's own.
pub fn policy_of(
    path: &Path,
    module: &agentlang::Module,
    sources: &mut Sources,
) -> Result<Option<Policy>, Vec<Diagnostic>> {
    let path = path.with_extension("policy.toml");
    let block = module.policy_block()?;
    let policy = match (std::fs::read_to_string(&path).ok(), block) {
        (None, None) => return Ok(None),
        (None, Some(block)) => Policy::of_block(FileId(0), &block),
        (Some(text), block) => {
            let file = sources.add(path.display().to_string(), text.as_str());
            match block {
                None => Policy::parse(file, &text),
                Some(block) => Policy::parse_with(file, &text, &block),
            }
        }
    };
    policy.map(Some)
}

/// The term of an entry point, under the policy beside the program if there is one, and the machine's
/// configuration.
pub fn under_policy(
    path: &Path,
    module: &agentlang::Module,
    entry: &Entry,
) -> (core_ir::Code, machine::Config) {
    let mut code = module.lower(entry).unwrap();
    let mut config = machine::Config::default();
    // Sources count their files from zero, which the program is.
    let mut sources = Sources::new();
    sources.add("", "");
    if let Some(policy) = policy_of(path, module, &mut sources).unwrap() {
        assert_eq!(policy.apply_to(&mut code, &module.policies()), []);
        config.lattice = policy.lattice;
        config.answer = policy.answer.clone();
    }
    (code, config)
}

/// The files of a folder with this extension, in order.
pub fn programs(folder: &Path, extension: &str, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            programs(&path, extension, out);
        } else if path.extension().is_some_and(|e| e == extension) {
            out.push(path);
        }
    }
}

/// The `.agent` files of a folder.
pub fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    programs(folder, "agent", out);
}

/// The programs of a `.lam` file: one, or the cases of a file of `suite/lam`, whose README describes them.
pub fn cases(text: &str) -> Vec<String> {
    let program = |case: &str| {
        let lines = case.lines().skip(1).filter(|l| !l.starts_with("--- "));
        lines.map(|l| format!("{l}\n")).collect::<String>()
    };
    let cases: Vec<String> = text.split("=== ").skip(1).map(program).collect();
    if cases.is_empty() { vec![text.to_string()] } else { cases }
}

/// Scripted response.
#[derive(Debug, Clone)]
pub enum Turn {
    Model(Reply),
    Tool {
        name: String,
        args: Option<serde_json::Value>,
        result: Result<Data, String>,
    },
    Late(String),
    /// A person approves a call of a tool, or says why not.
    Approve(String, Result<(), String>),
    Recall(String, Option<Data>),
    Remember(String, serde_json::Value),
    /// Expected beginning of the next model call's system message.
    System(String),
}

/// A group of lines that says what a run does.
#[derive(Debug)]
pub struct Run {
    pub line: usize,
    pub target: String,
    pub input: Data,
    pub turns: VecDeque<Turn>,
    pub expected: Option<String>,
}

pub fn json(text: &str, line: usize) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("line {line}: {e} in {text}"))
}

pub fn data(text: &str, line: usize) -> Data {
    Data::from_json(&json(text, line)).unwrap()
}

pub fn runs(text: &str) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line_number = i + 1;
        let Some((word, rest)) = line.strip_prefix("// ").and_then(|l| l.split_once(' ')) else { continue };
        let rest = rest.trim();
        if word == "Run:" {
            let (target, input) = match rest.strip_prefix("test ") {
                Some(_) => (rest, "{}"),
                None => rest.split_once(' ').unwrap_or((rest, "{}")),
            };
            out.push(Run {
                line: line_number,
                target: target.to_string(),
                input: data(input, line_number),
                turns: VecDeque::new(),
                expected: None,
            });
            continue;
        }
        let Some(run) = out.last_mut() else { continue };
        match word {
            "Model:" => run.turns.push_back(Turn::Model(Reply::Text(rest.to_string()))),
            "Model" => {
                let (name, args) = rest.strip_prefix("calls ").unwrap().split_once(": ").unwrap();
                let args = data(args, line_number);
                run.turns.push_back(Turn::Model(Reply::ToolCall { name: Name::from(name), args }));
            }
            "Tool" => {
                let name = rest.split([' ', ':']).next().unwrap();
                let rest = &rest[name.len()..];
                let (args, result) = if let Some(message) = rest.strip_prefix(" fails: ") {
                    (None, Err(message.to_string()))
                } else if let Some(result) = rest.strip_prefix(": ") {
                    (None, Ok(data(result, line_number)))
                } else {
                    let mut values = serde_json::Deserializer::from_str(rest).into_iter();
                    let args: serde_json::Value = values.next().unwrap().unwrap();
                    let result = rest[values.byte_offset()..].strip_prefix(": ").unwrap();
                    (Some(args), Ok(data(result, line_number)))
                };
                run.turns.push_back(Turn::Tool { name: name.to_string(), args, result });
            }
            "System:" => run.turns.push_back(Turn::System(rest.replace("\\n", "\n"))),
            "Recall" => {
                let (key, value) = rest.split_once(": ").unwrap();
                let value = (value != "nothing").then(|| data(value, line_number));
                run.turns.push_back(Turn::Recall(key.to_string(), value));
            }
            "Remember" => {
                let (key, value) = rest.split_once(": ").unwrap();
                run.turns.push_back(Turn::Remember(key.to_string(), json(value, line_number)));
            }
            "Approve" => {
                let (name, answer) = rest.split_once(": ").unwrap();
                let answer = if answer == "yes" { Ok(()) } else { Err(answer.to_string()) };
                run.turns.push_back(Turn::Approve(name.to_string(), answer));
            }
            "Late:" => run.turns.push_back(Turn::Late(rest.to_string())),
            "Result:" | "Fails:" => run.expected = Some(format!("{word} {rest}")),
            _ => {}
        }
    }
    out
}

impl Run {
    /// The pipeline or test.
    pub fn entry<'a>(&self, module: &'a agentlang::Module) -> Option<&'a Entry> {
        match self.target.strip_prefix("test ") {
            Some(test) => module.entries().iter().find(|e| e.kind == EntryKind::Test && e.name == test),
            None => module.pipeline(&self.target),
        }
    }
}
