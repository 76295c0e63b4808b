//! Values that the code around a configuration supplies: seed 000, Experiment C.
//!
//! Entry points: [`ProjectCode::new`] takes a project's Python modules and environment files,
//! [`ProjectCode::judge`] goes through the findings of one of its configurations.
//!
//! A finding that reports something missing is reviewed:
//!
//! | the code | the finding |
//! |---|---|
//! | makes this agent and supplies what is missing | level info, with the place |
//! | makes this agent and does not supply it | stays, with the place |
//! | makes this agent with arguments that are not known (`**options`) | level unknown, with the place |
//! | loads this file and supplies it somewhere | level info, with the place |
//! | loads this file, and what it makes of it is not seen | level unknown, with the place |
//! | does not load this file | stays |
//!
//! Invariant: pure. Nothing is executed or opened.
//! Invariant: a finding about something that is there (a bound of 0, a key in the file) is not touched.

use diagnostics::{Diagnostic, FileId, Level, Span};
use python::{CALLED, Limits, RUN_BY_TOOL, Source, Sources, Value, World};
use std::sync::{Arc, OnceLock};

/// The code around configurations.
#[derive(Debug, Default)]
pub struct ProjectCode {
    sources: Sources,
    /// Path and text of environment files.
    environment: Vec<(String, Arc<str>)>,
    calls: OnceLock<Vec<Call>>,
}

/// A call that may make an agent, a model or a run.
#[derive(Clone, Debug)]
struct Call {
    module: usize,
    /// Keys of the items that its arguments read.
    keys: Vec<String>,
    line: usize,
    /// Keywords with what is given.
    keywords: Vec<(Arc<str>, SuppliedValue)>,
    /// Attributes that are assigned later.
    attributes: Vec<Arc<str>>,
    /// True if it has arguments that are not known.
    open: bool,
    /// The function around it.
    within: Option<Arc<str>>,
}

/// Argument of a call for a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SuppliedValue {
    /// `None`.
    Nothing,
    /// Value of a configuration under the same name: `entry["system_message"]`.
    TheSame,
    /// Anything else.
    Something,
}

/// Parts that may be missing, with the names under which code supplies it.
struct MissingPart {
    what: &'static str,
    keywords: &'static [&'static str],
    /// Parts of names of environment variables that supply it.
    variables: &'static [&'static str],
}

const PROMPT: MissingPart = MissingPart {
    what: "the instructions",
    keywords: &[
        "system_prompt",
        "system_message",
        "instructions",
        "instruction",
        "prompt",
        "prompt_template",
        "system_template",
        "backstory",
        "role",
    ],
    variables: &["SYSTEM_PROMPT"],
};

const MODEL: MissingPart = MissingPart {
    what: "the model",
    keywords: &[
        "llm",
        "model",
        "model_name",
        "llm_config",
        "model_client",
        "chat_model",
        "model_id",
        "deployment_name",
    ],
    variables: &["MODEL_NAME", "LLM_MODEL", "OPENAI_MODEL", "MODEL", "DEPLOYMENT_NAME"],
};

const BOUND: MissingPart = MissingPart {
    what: "the bound",
    keywords: &[
        "max_iter",
        "max_iterations",
        "max_turns",
        "max_round",
        "max_rounds",
        "max_steps",
        "recursion_limit",
        "max_llm_calls",
        "max_consecutive_auto_reply",
        "max_execution_time",
    ],
    variables: &["RECURSION_LIMIT", "MAX_ITER", "MAX_TURNS", "MAX_STEPS"],
};

const END: MissingPart = MissingPart {
    what: "what ends it",
    keywords: &[
        "is_termination_msg",
        "termination_condition",
        "max_turns",
        "max_round",
        "max_rounds",
        "max_iter",
    ],
    variables: &[],
};

/// Returns the part that a finding reports as missing, if it does.
fn missing(d: &Diagnostic) -> Option<&'static MissingPart> {
    match d.code {
        "L001" => Some(&PROMPT),
        "L002" => Some(&MODEL),
        "L004a" | "L004b" | "L021" => Some(&END),
        "L017" => Some(&BOUND),
        _ => None,
    }
}

/// Maximum number of modules read in one project.
pub const MAX_MODULES: usize = 400;
/// Maximum number of bytes of modules read.
pub const MAX_BYTES: usize = 6 << 20;

impl ProjectCode {
    /// The modules (path and text) and environment files of a project.
    pub fn new(
        modules: impl IntoIterator<Item = (String, Arc<str>)>,
        environment: impl IntoIterator<Item = (String, Arc<str>)>,
    ) -> ProjectCode {
        let mut sources = Sources::new();
        let mut bytes = 0usize;
        for (i, (path, text)) in modules.into_iter().take(MAX_MODULES).enumerate() {
            bytes = bytes.saturating_add(text.len());
            if bytes > MAX_BYTES {
                break;
            }
            // INVARIANT: there are at most `MAX_MODULES`.
            sources.add(FileId(i as u32), &path, text);
        }
        ProjectCode { sources, environment: environment.into_iter().collect(), calls: OnceLock::new() }
    }

    /// Returns true if the project has no code.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.environment.is_empty()
    }

    /// Returns true if any of the findings would be reviewed.
    pub fn concerns(findings: &[Diagnostic]) -> bool {
        findings.iter().any(|d| missing(d).is_some())
    }

    /// Looks at the findings of the configuration of a path again; the path is one like those of the modules.
    ///
    /// # Examples
    /// ```
    /// use lint::{Config, Outcome, ProjectCode, lint_bytes};
    /// use diagnostics::{FileId, Level};
    /// let yaml = "writer:\n  role: r\n  goal: g\n  backstory: b\n  llm: m\n  tools: [search]\n";
    /// let code = "from crewai import Agent\nimport yaml\n\
    ///             c = yaml.safe_load(open('agents.yaml'))\na = Agent(config=c['writer'], max_iter=5)\n";
    /// let (yaml, config) = (yaml.as_bytes(), Config { most_default_rounds: 0, ..Config::default() });
    /// let linted = lint_bytes(frontends::recognize, "agents.yaml", FileId(0), yaml, &config);
    /// let Outcome::Checked { mut findings, .. } = linted.outcome else { unreachable!() };
    /// assert_eq!((findings[0].code, findings[0].level), ("L017", Level::Warn));
    /// ProjectCode::new([("crew.py".into(), code.into())], []).judge("agents.yaml", &mut findings);
    /// assert_eq!(findings[0].level, Level::Info);
    /// assert_eq!(findings[0].help.last().unwrap(), "`crew.py:4` supplies the bound");
    /// ```
    pub fn judge(&self, path: &str, findings: &mut [Diagnostic]) {
        if self.is_empty() || !ProjectCode::concerns(findings) {
            return;
        }
        let path = path.replace('\\', "/");
        let name = path.rsplit('/').next().unwrap_or(&path);
        let loads: Vec<usize> = (0..self.sources.len()).filter(|m| self.loads(*m, &path)).collect();
        let calls = self.calls.get_or_init(|| calls(&self.sources));
        for d in findings.iter_mut().filter(|d| d.level > Level::Info) {
            let Some(part) = missing(d) else { continue };
            match self.verdict(part, d.agent.as_deref().unwrap_or(""), name, &loads, calls) {
                Verdict::Supplied(place) => {
                    d.level = Level::Info;
                    d.help.push(format!("`{place}` supplies {}", part.what));
                }
                Verdict::Set(place, name) => {
                    d.level = Level::Info;
                    d.help.push(format!("`{place}` (`{name}`) supplies {}", part.what));
                }
                Verdict::Unknown(place, why) => {
                    d.level = Level::Unknown;
                    d.help.push(format!("`{place}` {why}"));
                }
                Verdict::Absent(Some(place)) => {
                    d.help.push(format!("`{place}` does not supply {} either", part.what));
                }
                Verdict::Absent(None) => {}
            }
        }
    }

    fn verdict(
        &self,
        part: &MissingPart,
        agent: &str,
        file: &str,
        loads: &[usize],
        calls: &[Call],
    ) -> Verdict {
        let place = |c: &Call| self.place(c.module, c.line);
        let supplies = |c: &&Call| {
            c.keywords
                .iter()
                .any(|(k, gives)| *gives == SuppliedValue::Something && part.keywords.contains(&&**k))
                || c.attributes.iter().any(|a| part.keywords.contains(&&**a))
        };
        // The calls that are handed this agent's entry.
        let own: Vec<&Call> = calls.iter().filter(|c| c.is_of(agent)).collect();
        if let Some(call) = own.iter().copied().find(|c| supplies(c)) {
            return Verdict::Supplied(place(call));
        }
        if let Some(call) = own.iter().find(|c| c.open) {
            return Verdict::Unknown(place(call), "passes arguments that are not known here".into());
        }
        if let Some((path, line, name)) = self.variable(part) {
            return Verdict::Set(format!("{path}:{line}"), name);
        }
        if let Some(call) = own.first() {
            return Verdict::Absent(Some(place(call)));
        }
        // Nobody is seen to make just this agent: what is made where its file is loaded?
        let there = |c: &&Call| loads.contains(&c.module);
        if let Some(call) = calls.iter().filter(there).find(supplies) {
            return Verdict::Supplied(place(call));
        }
        match loads.first() {
            Some(module) => {
                let line = self.mention(*module, file).unwrap_or(1);
                Verdict::Unknown(
                    self.place(*module, line),
                    "loads this file: what it makes of it is not seen".into(),
                )
            }
            None => Verdict::Absent(None),
        }
    }

    /// Returns true if a module may load a file: it lies in a folder around the file, below it or beside its
    /// folder, and a string in it names the file. A module beside the folder must name the folder too, since
    /// names such as `root_agent.yaml` recur in every agent. Tests are ignored: they load files that programs
    /// do not.
    fn loads(&self, module: usize, file: &str) -> bool {
        let Some(source) = self.sources.get(module) else { return false };
        let folder = |path: &str| path.rsplit_once('/').map_or(String::new(), |(f, _)| format!("{f}/"));
        let (own, around) = (folder(&source.path), folder(file));
        let above = folder(around.trim_end_matches('/'));
        let is_test = source.path.split('/').any(|p| p == "tests" || p == "test" || p.starts_with("test_"));
        let name = file.rsplit('/').next().unwrap_or(file);
        if is_test || !source.path.starts_with(&above) && !file.starts_with(&own) {
            return false;
        }
        let parent = around.trim_end_matches('/').rsplit('/').next().unwrap_or("");
        let beside = !file.starts_with(&own) && !source.path.starts_with(&around);
        self.mention(module, name).is_some() && (!beside || names_folder(source, parent))
    }

    /// The line on which a module names a file in a text.
    fn mention(&self, module: usize, name: &str) -> Option<usize> {
        let source = self.sources.get(module)?;
        let names = |text: &str| text.rsplit(['/', '\\']).next() == Some(name);
        let at = text_where(source, name, names)?;
        Some(line_of(&source.text, at.start as usize))
    }

    /// An environment file that sets a variable which supplies a part.
    fn variable(&self, part: &MissingPart) -> Option<(&str, usize, String)> {
        for (path, text) in &self.environment {
            for (i, line) in text.lines().enumerate() {
                let Some((name, value)) = line.split_once('=') else { continue };
                let name = name.trim().trim_start_matches("export ").trim();
                let ends = |v: &str| name == v || name.ends_with(&format!("_{v}"));
                if !value.trim().is_empty()
                    && !name.starts_with('#')
                    && part.variables.iter().any(|v| ends(v))
                {
                    return Some((path, i + 1, name.to_string()));
                }
            }
        }
        None
    }

    fn place(&self, module: usize, line: usize) -> String {
        let path = self.sources.get(module).map_or("", |s| &*s.path);
        format!("{path}:{line}")
    }
}

enum Verdict {
    Supplied(String),
    /// By a variable of the environment.
    Set(String, String),
    Unknown(String, String),
    Absent(Option<String>),
}

impl Call {
    /// Returns true if the call receives the entry of an agent: `config=self.agents_config['writer']`, or a
    /// call in the method `writer` of a crew.
    fn is_of(&self, agent: &str) -> bool {
        if agent.is_empty() {
            return false;
        }
        let keyed = self.keys.iter().any(|k| k == agent);
        let configured = self.keywords.iter().any(|(k, _)| &**k == "config") || self.open;
        keyed || self.within.as_deref() == Some(agent) && configured
    }
}

/// The calls of a project's modules that have keywords.
fn calls(sources: &Sources) -> Vec<Call> {
    let mut world = World::new(sources, Limits::default());
    for module in 0..sources.len() {
        world.run(module);
        world.explore(module);
    }
    let mut all = Vec::new();
    for (_, o) in world.objects() {
        let keywords: Vec<(Arc<str>, SuppliedValue)> = o
            .args
            .iter()
            .filter_map(|a| {
                let name = a.name.clone()?;
                let gives = match world.resolve_env(&a.value).is_none() {
                    true => SuppliedValue::Nothing,
                    false if passes_on(sources, &a.value, &name) => SuppliedValue::TheSame,
                    false => SuppliedValue::Something,
                };
                Some((name, gives))
            })
            .collect();
        if keywords.is_empty() && o.open.is_none() && o.attrs.is_empty() {
            continue;
        }
        let Some(module) = sources.of_file(o.span.file) else { continue };
        let Some(source) = sources.get(module) else { continue };
        // A decorated function or class is at its definition.
        if !source.is_call(o.span) {
            continue;
        }
        all.push(Call {
            module,
            keys: source.keyed_reads(o.span).map(|r| r.key.clone()).collect(),
            line: line_of(&source.text, o.span.start as usize),
            keywords,
            attributes: o.attrs.iter().filter(|(_, v)| !v.is_none()).map(|(n, _)| n.clone()).collect(),
            open: o.open.is_some(),
            within: o.within.map(|f| world.function(f).name.clone()),
        });
    }
    all
}

/// Returns true if a value reads the item under the keyword's own name, without a default for a missing item.
fn passes_on(sources: &Sources, value: &Value, name: &str) -> bool {
    let Some(source) = sources.of_file(value.span.file).and_then(|m| sources.get(m)) else { return false };
    let mut reads = source.keyed_reads(value.span);
    reads.any(|r| r.is_subscript && r.key == name && r.span.end == value.span.end)
}

/// Returns true if a text of a module names a folder, as the whole text or as a component of a path.
fn names_folder(source: &Source, folder: &str) -> bool {
    let names = |text: &str| text.split(['/', '\\']).any(|part| part == folder);
    !folder.is_empty() && text_where(source, folder, names).is_some()
}

/// Place of the first text of a module that passes a test, which needs a word.
fn text_where(source: &Source, word: &str, test: impl Fn(&str) -> bool) -> Option<Span> {
    // Most modules don't have the word at all, and need not be parsed.
    if !source.text.contains(word) {
        return None;
    }
    let mut found = None;
    source.texts(&mut |key, text, span| {
        if found.is_none() && !matches!(key, CALLED | RUN_BY_TOOL) && test(text) {
            found = Some(span);
        }
    });
    found
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|b| *b == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Outcome, lint_bytes};

    const CREW: &str = "writer:\n  role: r\n  goal: g\n  backstory: b\n  llm: m\n  tools: [search]\n";

    fn judged(
        code: &[(&str, &str)],
        env: &[(&str, &str)],
        yaml: &str,
        name: &str,
    ) -> Vec<(&'static str, Level, String)> {
        let config = Config { level: Level::Info, most_default_rounds: 0, ..Config::default() };
        let report = lint_bytes(frontends::recognize, name, FileId(0), yaml.as_bytes(), &config);
        let Outcome::Checked { mut findings, .. } = report.outcome else { panic!("not checked") };
        let files = |all: &[(&str, &str)]| -> Vec<(String, Arc<str>)> {
            all.iter().map(|(p, t)| (p.to_string(), Arc::from(*t))).collect()
        };
        ProjectCode::new(files(code), files(env)).judge(name, &mut findings);
        findings.into_iter().map(|d| (d.code, d.level, d.help.last().cloned().unwrap_or_default())).collect()
    }

    fn crew(body: &str) -> Vec<(&'static str, Level, String)> {
        let code = format!(
            "from crewai import Agent\nfrom crewai.project import CrewBase, agent\n@CrewBase\nclass C:\n    agents_config = 'config/agents.yaml'\n    @agent\n    def writer(self):\n        {body}\n"
        );
        judged(&[("src/crew.py", &code)], &[], CREW, "src/config/agents.yaml")
    }

    #[test]
    fn a_bound_in_the_code_is_told_from_none_and_from_one_that_is_not_seen() {
        let (code, level, help) =
            crew("return Agent(config=self.agents_config['writer'], max_iter=5)")[0].clone();
        assert_eq!((code, level, &*help), ("L017", Level::Info, "`src/crew.py:8` supplies the bound"));
        let (_, level, help) =
            crew("return Agent(config=self.agents_config['writer'], verbose=True)")[0].clone();
        assert_eq!((level, &*help), (Level::Warn, "`src/crew.py:8` does not supply the bound either"));
        let (_, level, help) =
            crew("return Agent(config=self.agents_config['writer'], max_iter=None)")[0].clone();
        assert_eq!((level, &*help), (Level::Warn, "`src/crew.py:8` does not supply the bound either"));
        let (_, level, help) =
            crew("return Agent(config=self.agents_config['writer'], **self.more())")[0].clone();
        assert_eq!(
            (level, &*help),
            (Level::Unknown, "`src/crew.py:8` passes arguments that are not known here")
        );
    }

    #[test]
    fn code_that_hands_on_what_a_configuration_says_supplies_nothing() {
        let (_, level, help) =
            crew("return Agent(config=self.agents_config['writer'], max_iter=options['max_iter'])")[0]
                .clone();
        assert_eq!((level, &*help), (Level::Warn, "`src/crew.py:8` does not supply the bound either"));
        let (_, level, _) =
            crew("return Agent(config=self.agents_config['writer'], max_iter=options.get('max_iter', 5))")[0]
                .clone();
        assert_eq!(level, Level::Info);
    }

    #[test]
    fn code_that_loads_the_file_some_other_way_leaves_it_open() {
        let loads = "import yaml\nconf = yaml.safe_load(open('agents.yaml'))\nbuild(conf)\n";
        let (_, level, help) = judged(&[("main.py", loads)], &[], CREW, "agents.yaml")[0].clone();
        assert_eq!(
            (level, &*help),
            (Level::Unknown, "`main.py:2` loads this file: what it makes of it is not seen")
        );
        // Another file of a longer name is not this one.
        let other = loads.replace("agents.yaml", "my_agents.yaml");
        assert_eq!(judged(&[("main.py", &other)], &[], CREW, "agents.yaml")[0].1, Level::Warn);
        // Somebody else's bound, where the file is not loaded.
        let elsewhere = "from crewai import Agent\na = Agent(role='r', max_iter=3)\n";
        assert_eq!(judged(&[("other.py", elsewhere)], &[], CREW, "agents.yaml")[0].1, Level::Warn);
    }

    #[test]
    fn a_name_that_every_agent_has_says_nothing_about_a_module_beside() {
        let loads = "conf = load(open('agents.yaml'))\n";
        let level =
            |module: &str, text: &str| judged(&[(module, text)], &[], CREW, "samples/one/agents.yaml")[0].1;
        assert_eq!(level("samples/one/main.py", loads), Level::Unknown);
        assert_eq!(level("samples/main.py", loads), Level::Unknown);
        assert_eq!(level("samples/one/sub/main.py", loads), Level::Unknown);
        assert_eq!(level("samples/other/main.py", loads), Level::Warn);
        assert_eq!(level("samples/other/main.py", "load(open('../one/agents.yaml'))\n"), Level::Unknown);
        let joined = "load(here / 'one' / 'agents.yaml')\n";
        assert_eq!(level("samples/other/main.py", joined), Level::Unknown);
    }

    const NO_MODEL: &str = "agentId: a\ntype: simple\nsystemPrompt: Say hello.\n";

    #[test]
    fn environment_files_supply_models() {
        let found = |env: &str| judged(&[], &[(".env", env)], NO_MODEL, "a.yaml")[0].clone();
        let (code, level, help) = found("# models\nOPENAI_MODEL_NAME=small\n");
        assert_eq!(
            (code, level, &*help),
            ("L002", Level::Info, "`.env:2` (`OPENAI_MODEL_NAME`) supplies the model")
        );
        assert_eq!(found("OPENAI_MODEL_NAME=\nOPENAI_API_KEY=x\n#MODEL=m").1, Level::Error);
    }

    #[test]
    fn l003_ignores_bounds_in_code() {
        let yaml = "agentId: a\ntype: react\nmodel: m\nsystemPrompt: p\nreact: {maxSteps: 0}\nmcp: {localTools: [terminate]}\n";
        let code = "import yaml\nc = open('a.yaml')\nrun(c, max_steps=5)\n";
        assert_eq!(judged(&[("main.py", code)], &[], yaml, "a.yaml")[0].1, Level::Error);
    }
}
