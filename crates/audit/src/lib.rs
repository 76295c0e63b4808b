//! The audit: attack paths of the programs of a project, without a word of its user.
//!
//! Entry point: [`Audit::project`], with the files of a project. Configurations, programs in Python and lists
//! of MCP servers are compiled, what their tools do is inferred (crate `tool_facts`), and the flow analysis
//! says which text of outsiders reaches which action. A list of servers is a program: one conversation with
//! all their tools.
//!
//! Invariant: what reaches what is decided by [`analysis::flow`] alone within the conversations of agents,
//! and by [`tool_facts::Steps`] in the code around them.
//! Invariant: a tool of which nothing is known is on no path, and is counted.

pub mod codes;
mod fill;
mod paths;
mod picture;

pub use paths::{AttackPath, PathKind, Step, Trigger};
pub use tool_facts::OfferedTool;

use core_ir::ToolDecl;
use diagnostics::{Diagnostic, FileId, Level, Sources, Span};
use frontend_kit::doc::Limits;
use frontend_kit::emit::LoopBound;
use frontend_kit::kit::{Action, Agent, Units};
use frontend_kit::{
    Facts, File, Frontend, Modules, Project, Recognized, Unit, UnitKind, Versions, modules, servers,
};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use tool_facts::registry::{self, Server};
use tool_facts::{
    Acted, Confidence, Effect, Evidence, Fact, Handed, Knowledge, OwnPath, Reader, Role, ServerDef, Steps,
    ToolFacts,
};

/// Servers of one list that are analyzed together.
const MAX_SERVERS: usize = 200;
/// Paths that are kept of one program; the others are counted.
const MAX_PATHS: usize = 10_000;
/// Packages of frameworks that no front end reads, with the names of the frameworks.
const NOT_READ: &[(&str, &str)] =
    &[("agno", "Agno"), ("dspy", "DSPy"), ("haystack", "Haystack"), ("strands", "Strands Agents")];
/// Modules whose own steps are followed.
const MAX_MODULES: usize = 600;
/// Name of the framework of a program that uses none which a front end reads.
const PYTHON: &str = "python";
/// Names that a finding lists of further sources or calls.
const MAX_NAMES: usize = 8;

/// A tool with what is known of it.
#[derive(Clone, Debug)]
pub struct AuditedTool {
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub params: Vec<String>,
    /// Place that defines it.
    pub span: Span,
    /// The server that it is of, if the program is a list of servers, or the toolkit that it represents.
    pub server: Option<String>,
    /// Names of the tools of the server that it represents: those with the same effects.
    pub members: Vec<String>,
    /// Facts about it.
    pub facts: ToolFacts,
    /// True if a person allows each call.
    pub approved: bool,
    /// True if the program itself says what it does: a handoff, a tool of a language with signatures.
    pub declared: bool,
}

/// A program: an agent, a crew, or a list of servers.
#[derive(Debug)]
pub struct AuditedProgram {
    /// The file, in the sources.
    pub file: FileId,
    /// Name of the front end.
    pub framework: &'static str,
    /// Its name in the file.
    pub name: String,
    /// Its tools.
    pub tools: Vec<AuditedTool>,
    /// Its attack paths, the worst first.
    pub paths: Vec<AttackPath>,
    /// Number of paths that are left out of `paths`, none of which is worse than those in it.
    pub more_paths: usize,
    /// Tools on which a path would end, if a person did not allow each call.
    pub approved: Vec<String>,
    /// Place and reason where the flow analysis gave up.
    pub gave_up: Option<(Span, &'static str)>,
    /// Parts that the front end could not read, with their places.
    pub unread: Vec<(String, Span)>,
}

impl AuditedProgram {
    /// Adds paths, and keeps the worst ones.
    fn add_paths(&mut self, paths: Vec<AttackPath>) {
        self.paths.extend(paths);
        self.paths.sort_by_key(|p| (std::cmp::Reverse((p.kind, p.confidence())), p.sink.span, p.source.span));
        self.more_paths += self.paths.len().saturating_sub(MAX_PATHS);
        self.paths.truncate(MAX_PATHS);
    }
}

/// Result of an audit.
#[derive(Debug, Default)]
pub struct Audit {
    /// The files.
    pub sources: Sources,
    /// The programs, in the order of the files.
    pub programs: Vec<AuditedProgram>,
    /// Frameworks that no front end reads, with the number of files that use each.
    pub not_read: BTreeMap<&'static str, usize>,
    /// Number of modules that ask models by themselves, without a framework that a front end reads.
    pub plain_modules: usize,
    /// Offers of the servers that were asked.
    offers: Offers,
    /// The program that has each path, by the ends of the path.
    seen: HashMap<PathKey, (usize, String)>,
}

/// Offers of servers, by the path of the list and the name of the server in it.
pub type Offers = HashMap<(String, String), Vec<OfferedTool>>;

/// The parts by which two paths are the same: the gain, and the names and places of both ends.
type PathKey = ((PathKind, String, String), Span, Span);

fn is_at(path: &AttackPath, key: &PathKey) -> bool {
    let ((kind, source, sink), source_at, sink_at) = key;
    (path.kind, path.source.span, path.sink.span) == (*kind, *source_at, *sink_at)
        && (&path.source.name, &path.sink.name) == (source, sink)
}

/// A file that is compiled, with what is known of its tools.
struct Prepared {
    file: FileId,
    framework: &'static str,
    asks_user: bool,
    shares_session: bool,
    triggers: Vec<Trigger>,
    unread: Vec<(String, Span)>,
    programs: Vec<Program>,
}

impl Prepared {
    fn talk(&self) -> paths::Conversation {
        paths::Conversation { asked: self.asks_user, shared: self.shares_session }
    }
}

struct Program {
    unit: Unit,
    tools: Vec<AuditedTool>,
    /// Places of the objects that it is made of.
    parts: HashSet<Span>,
}

/// A file of a project.
#[derive(Clone, Debug)]
pub struct GivenFile {
    /// Its path.
    pub path: String,
    /// Its text.
    pub text: Arc<str>,
    /// True if its programs are audited; others are there to be referred to.
    pub is_main: bool,
}

impl Audit {
    /// An audit to which projects are added; these servers of lists were asked what they offer.
    pub fn with_offers(offers: Offers) -> Audit {
        Audit { offers, ..Audit::default() }
    }

    /// The lists of servers that were audited.
    pub fn lists(&self) -> Vec<String> {
        let lists = self.programs.iter().filter(|p| p.framework == "mcp");
        let mut paths: Vec<String> =
            lists.filter_map(|p| self.sources.get(p.file)).map(|s| s.path.to_string()).collect();
        paths.dedup();
        paths
    }

    /// Audits the programs of a project, beside those of projects before. `versions` are those of the
    /// packages that a file uses.
    pub fn project(&mut self, given: Vec<GivenFile>, versions: impl Fn(&str) -> Versions) {
        let limits = Limits::default();
        let mut files: Vec<(File, bool)> = Vec::new();
        for GivenFile { path, text, is_main } in given {
            let id = self.sources.add(&*path, text.clone());
            files.push((File::read(id, &path, &text, &limits), is_main));
        }
        let loaded: Vec<File> = files.iter().map(|(f, _)| f.clone()).collect();
        let shared = modules(&loaded);
        let lists: Vec<ServerDef> = loaded.iter().flat_map(|f| defined(f, &Versions::default())).collect();
        let frontends = frontends_of(&loaded, &shared);
        let mut prepared: Vec<Prepared> = Vec::new();
        let by_itself = loaded.iter().filter(|f| !frontends.contains_key(&f.id) && asks_models(f));
        let by_itself: HashSet<FileId> = by_itself.map(|f| f.id).collect();
        let begins = |f: &&File| frontends.contains_key(&f.id) || by_itself.contains(&f.id);
        let (with_steps, all) = modules_with_steps(loaded.iter().filter(begins), &shared);
        let is_plain =
            |(f, main): &&(File, bool)| *main && by_itself.contains(&f.id) && not_read(f).is_none();
        self.plain_modules += files.iter().filter(is_plain).count();
        let mut steps = Steps::of(with_steps.iter().copied());
        for (index, (file, main)) in files.iter().enumerate() {
            let frontend = frontends.get(&file.id).copied().filter(|_| *main);
            let Some(frontend) = frontend else {
                if let Some(name) = not_read(file).filter(|_| *main) {
                    *self.not_read.entry(name).or_default() += 1;
                }
                // A module that the programs import.
                if with_steps.contains(&file.id) {
                    let (files, versions) = (vec![file.clone()], Versions::default());
                    let project = Project { files, versions, modules: Some(shared.clone()) };
                    Reader::new(&project, 0, PYTHON, &[]).read_steps(&mut steps, &[]);
                }
                continue;
            };
            let versions = versions(&file.path);
            let mut own = vec![file.clone()];
            let others = loaded.iter().enumerate().filter(|(i, _)| *i != index).map(|(_, f)| f.clone());
            // A list may start a server that the project has itself.
            let refers = frontend.names_modules() || frontend.names_files() || frontend.name() == "mcp";
            if file.python.is_some() || refers {
                own.extend(others);
            }
            let project = Project { files: own, versions, modules: Some(shared.clone()) };
            prepared.extend(prepare(&project, frontend, &lists, &self.offers, &mut steps));
        }
        let (handed, cut) = steps.handed();
        let answers = answers(&prepared, &handed);
        let first = self.programs.len();
        prepared.into_iter().for_each(|p| self.search(p, &handed, &answers));
        // Paths that end alike have one finding.
        let mut ends: HashMap<Span, usize> = HashMap::new();
        let mut found: BTreeMap<usize, Vec<AttackPath>> = BTreeMap::new();
        for own in &handed.own {
            let alike = ends.get(&own.sink_at).copied();
            if let Some((program, path)) = self.own_path(own, alike, first, &frontends) {
                ends.insert(own.sink_at, program);
                found.entry(program).or_default().push(path);
            }
        }
        found.into_iter().for_each(|(program, paths)| self.programs[program].add_paths(paths));
        if (cut || !all)
            && let Some(program) = self.programs.get_mut(first)
        {
            let at = Span { file: program.file, start: 0, end: 0 };
            program.unread.push(("some of what the program does by itself: it is too large".into(), at));
        }
    }

    /// A path that a program goes by itself, and the program that has it: that of the paths that end `alike`,
    /// or the one in whose file a model is asked, or that acts. None if the path is known or is none.
    fn own_path(
        &mut self,
        own: &OwnPath,
        alike: Option<usize>,
        first: usize,
        frontends: &HashMap<FileId, &'static dyn Frontend>,
    ) -> Option<(usize, AttackPath)> {
        let kind = if own.sink_fact.effect.has(Role::Runs) { PathKind::Runs } else { PathKind::Acts };
        // Whoever writes a message may decide the answer to it.
        if kind == PathKind::Acts
            && own.sink_fact.effect == Effect::MessageSend
            && own.source_fact.effect == Effect::MessageRead
        {
            return None;
        }
        let key = ((kind, own.source.clone(), own.sink.clone()), own.source_at, own.sink_at);
        if self.seen.contains_key(&key) {
            return None;
        }
        let step = |name: &str, span: Span, fact: &Fact| Step {
            name: name.to_string(),
            tools: Vec::new(),
            params: Vec::new(),
            span,
            fact: fact.clone(),
            agent: None,
        };
        let path = AttackPath {
            kind,
            source: step(&own.source, own.source_at, &own.source_fact),
            private: None,
            sink: step(&own.sink, own.sink_at, &own.sink_fact),
            models: own.models.clone(),
            test: own.test,
            asked: false,
            also_in: Vec::new(),
        };
        let places = own.models.last().copied().into_iter().chain([own.sink_at, own.source_at]);
        let places: Vec<FileId> = places.map(|s| s.file).collect();
        let of_file =
            |file: &FileId| Some(first + self.programs.iter().skip(first).position(|p| p.file == *file)?);
        let index = match alike.or_else(|| places.iter().find_map(of_file)) {
            Some(index) => index,
            None => {
                let file = own.sink_at.file;
                let stem = |path: &str| path.rsplit(['/', '\\']).next().unwrap_or(path).replace(".py", "");
                self.programs.push(AuditedProgram {
                    file,
                    framework: frontends.get(&file).map_or(PYTHON, |f| f.name()),
                    name: self.sources.get(file).map(|s| stem(&s.path)).unwrap_or_default(),
                    tools: Vec::new(),
                    paths: Vec::new(),
                    more_paths: 0,
                    approved: Vec::new(),
                    gave_up: None,
                    unread: Vec::new(),
                });
                self.programs.len() - 1
            }
        };
        self.seen.insert(key, (index, self.programs[index].name.clone()));
        Some((index, path))
    }

    /// Searches the programs of a file for paths. `handed` is what modules hand to agents, and what they do
    /// with answers; `answers` are the sources of the answers of other agents.
    fn search(&mut self, prepared: Prepared, handed: &Handed, answers: &HashMap<Span, Vec<Step>>) {
        let Prepared { file, framework, triggers, unread, programs, .. } = &prepared;
        let (file, framework, talk) = (*file, *framework, prepared.talk());
        for Program { unit, tools, parts } in programs {
            let mut triggers = triggers.clone();
            let mut add = |trigger: Trigger| match triggers.iter_mut().find(|t| t.span == trigger.span) {
                Some(known) => known.in_instructions |= trigger.in_instructions,
                None => triggers.push(trigger),
            };
            let is_given = |agents: &HashSet<Span>, made: bool| match made {
                true => agents.iter().any(|a| parts.contains(a)),
                false => agents.contains(&unit.span),
            };
            for text in handed.fed.iter().filter(|t| is_given(&t.agents, t.made)) {
                let (name, fact) = (text.name.clone(), text.fact.clone());
                add(Trigger { name, span: text.span, fact, in_instructions: text.made });
            }
            let others = handed.passed.iter().filter(|p| !p.from.contains(&unit.span));
            for passed in others.filter(|p| is_given(&p.to, p.made)) {
                let mut from: Vec<&Span> = passed.from.iter().filter(|s| answers.contains_key(s)).collect();
                from.sort_unstable();
                for step in from.into_iter().flat_map(|s| &answers[s]) {
                    let (name, fact) = (step.name.clone(), step.fact.clone());
                    add(Trigger { name, span: step.span, fact, in_instructions: passed.made });
                }
            }
            let mut acted: Vec<&Acted> =
                handed.acted.iter().filter(|a| a.agents.contains(&unit.span)).collect();
            acted.dedup_by_key(|a| a.span);
            let found = paths::search(unit, tools, &triggers, &acted, talk);
            let mut own: Vec<AttackPath> = Vec::new();
            for path in found.paths {
                let key = (path.kind, path.source.name.clone(), path.sink.name.clone());
                let key = (key, path.source.span, path.sink.span);
                match self.seen.get(&key) {
                    // The same tools of another program.
                    Some((program, name)) => {
                        let known = self.programs.get_mut(*program);
                        let known = known.and_then(|p| p.paths.iter_mut().find(|p| is_at(p, &key)));
                        if let Some(known) =
                            known.filter(|k| *name != unit.name && !k.also_in.contains(&unit.name))
                        {
                            known.also_in.push(unit.name.clone());
                        }
                    }
                    None => {
                        self.seen.insert(key, (self.programs.len(), unit.name.clone()));
                        own.push(path);
                    }
                }
            }
            let mut program = AuditedProgram {
                file,
                framework,
                name: unit.name.clone(),
                tools: tools.clone(),
                paths: Vec::new(),
                more_paths: 0,
                approved: found.approved.iter().map(ToString::to_string).collect(),
                gave_up: found.gave_up,
                unread: unread.clone(),
            };
            program.add_paths(own);
            self.programs.push(program);
        }
    }

    /// All tools, each once.
    pub fn tools(&self) -> Vec<&AuditedTool> {
        let mut seen = HashSet::new();
        let all = self.programs.iter().flat_map(|p| &p.tools);
        all.filter(|t| seen.insert((t.name.clone(), t.span))).collect()
    }

    /// Number of attack paths.
    pub fn path_count(&self) -> usize {
        self.programs.iter().map(|p| p.paths.len() + p.more_paths).sum()
    }

    /// Tools of which nothing is known.
    pub fn unknown(&self) -> Vec<&AuditedTool> {
        let mut all = self.tools();
        all.retain(|t| !t.declared && t.facts.knowledge == Knowledge::Unknown);
        all
    }

    /// Tools of which not all is known: there may be paths through them that are not found.
    pub fn partly_known(&self) -> Vec<&AuditedTool> {
        let mut all = self.tools();
        all.retain(|t| !t.declared && t.facts.knowledge == Knowledge::Partly);
        all
    }

    /// A policy file with what is inferred of the tools, each guessed line with its evidence.
    pub fn policy(&self) -> String {
        fill::policy(&self.tools(), &self.sources)
    }

    /// Counts of what was found, of which `found` is shown, and of what is not known.
    pub fn summary(&self, found: &[Diagnostic]) -> String {
        let findings = found.iter().filter(|d| d.code != codes::UNKNOWN).count();
        let tools = self.tools();
        let known = tools.len() - self.unknown().len();
        let approved: usize = self.programs.iter().map(|p| p.approved.len()).sum();
        let asked = self.programs.iter().flat_map(|p| &p.paths).filter(|p| p.asked).count();
        let mut line = format!(
            "{} in {} with {}",
            plural(self.path_count() - asked, "attack path"),
            plural(self.programs.len(), "program"),
            plural(tools.len(), "tool"),
        );
        if findings > 0 && findings + asked != self.path_count() {
            line.push_str(&format!(" ({})", plural(findings, "finding")));
        }
        if asked > 0 {
            line.push_str(&format!("; {} more where the user is asked before each call", asked));
        }
        if approved > 0 {
            line.push_str(&format!("; {} approved by a person call by call", plural(approved, "tool")));
        }
        if known < tools.len() {
            line.push_str(&format!("; nothing is known of {}", plural(tools.len() - known, "tool")));
        }
        let partly = self.partly_known().len();
        if partly > 0 {
            line.push_str(&format!("; of {} not all is known", plural(partly, "tool")));
        }
        let gave_up = self.programs.iter().filter(|p| p.gave_up.is_some()).count();
        if gave_up > 0 {
            line.push_str(&format!("; {} too large for the analysis", plural(gave_up, "program")));
        }
        let unread = self.programs.iter().filter(|p| !p.unread.is_empty()).count();
        if unread > 0 {
            line.push_str(&format!("; parts of {} not read", plural(unread, "program")));
        }
        line
    }

    /// The attack paths as a picture.
    pub fn picture(&self) -> core_ir::draw::Picture {
        picture::draw(self)
    }

    /// The findings: a diagnostic for the paths that end alike, and for what is not known.
    pub fn findings(&self) -> Vec<Diagnostic> {
        let mut out = Vec::new();
        for program in &self.programs {
            for alike in alike(&program.paths) {
                out.push(self.finding(program, &alike));
            }
            if let Some((span, why)) = program.gave_up {
                let message = format!("the flow analysis of `{}` gave up here: {why}", program.name);
                let mut d = Diagnostic::new(Level::Unknown, codes::UNKNOWN, message, span);
                d.framework = Some(program.framework);
                out.push(d.help("nothing is claimed about this program"));
            }
        }
        for tool in self.unknown() {
            let message = format!("nothing is known of the tool `{}`", diagnostics::clip(&tool.name));
            let mut d =
                Diagnostic::new(Level::Unknown, codes::UNKNOWN, message, tool.span).about(&*tool.name);
            for (call, span) in tool.facts.unknown_calls.iter().take(4) {
                d = d.remark(*span, format!("it is not known what `{}` does", diagnostics::clip(call)));
            }
            out.push(d.help("say what it does in a policy file; paths through it are not found"));
        }
        out
    }

    /// The finding about paths that end alike: the first one in full, the others by their names.
    fn finding(&self, program: &AuditedProgram, alike: &Alike<'_>) -> Diagnostic {
        let path = alike.first;
        let (code, level) = rank(path);
        let mut d = Diagnostic::new(level, code, sentence(alike), path.sink.span)
            .label(path.sink.fact.effect.describe())
            .about(format!("{} {}", path.source.name, path.sink.name));
        d.framework = Some(program.framework);
        d.agent = path.sink.agent.clone().or_else(|| Some(program.name.clone()));
        let add = |d: Diagnostic, step: &Step, what: &str| {
            let place = step.fact.evidence.span();
            match step.span == path.sink.span && place == step.span {
                true => d,
                false => d.remark(place, format!("{what}: {}, {}", shown(step), self.because(step))),
            }
        };
        d = add(d, &path.source, "text of outsiders comes in");
        d = path.private.iter().fold(d, |d, step| add(d, step, "private data comes in"));
        d = path.models.iter().fold(d, |d, at| d.remark(*at, "a model is asked here"));
        d = path.test.iter().fold(d, |d, at| d.remark(*at, "its answer decides here"));
        d = add(d, &path.sink, "the call");
        let also_in: Vec<String> =
            path.also_in.iter().map(|name| format!("`{}`", diagnostics::clip(name))).collect();
        let more = [("also from", &alike.sources), ("also by", &alike.sinks), ("also in", &also_in)];
        for (what, names) in more {
            if !names.is_empty() {
                d = d.help(format!("{what} {}", listed(names)));
            }
        }
        d.help(match path.kind {
            PathKind::Runs => "let a person approve each call, or run it in a sandbox without secrets and network",
            PathKind::Leaks => {
                "take one of the three away: the text of outsiders, the private data, or the way out; or let a person approve what goes out"
            }
            PathKind::Acts => "let a person approve the calls, or bound the tool in a policy (`--policy-out`)",
        })
    }

    fn because(&self, step: &Step) -> String {
        match &step.fact.evidence {
            Evidence::Call { callee, .. } => {
                format!("which {}: it calls `{}`", step.fact.effect.describe(), diagnostics::clip(callee))
            }
            other => format!("which {}: {}", step.fact.effect.describe(), other.describe(&self.sources)),
        }
    }
}

/// Compiles the first file of a project, and looks at what its tools do.
fn prepare(
    project: &Project,
    frontend: &'static dyn Frontend,
    lists: &[ServerDef],
    offers: &Offers,
    steps: &mut Steps,
) -> Option<Prepared> {
    let file = project.files.first()?;
    let mut own = defined(file, &project.versions);
    let left_out = own.len().saturating_sub(MAX_SERVERS);
    own.truncate(MAX_SERVERS);
    let listed: Vec<ListedServer<'_>> = match frontend.name() {
        "mcp" => {
            let offer = |def: &ServerDef| offers.get(&(file.path.to_string(), def.name.clone()));
            own.iter().map(|def| ListedServer::of(def, offer(def).map_or(&[][..], Vec::as_slice))).collect()
        }
        _ => Vec::new(),
    };
    let compiled = match listed.is_empty() {
        true => frontend.lower(project, 0),
        false => conversation(project, &listed),
    };
    let unread = |d: &Diagnostic| d.level == Level::Unknown && d.span.is_some_and(|s| s.file == file.id);
    let unread: Vec<(String, Span)> = compiled
        .diagnostics
        .iter()
        .filter(|d| unread(d))
        .filter_map(|d| Some((d.message.clone(), d.span?)))
        .chain(own.last().filter(|_| left_out > 0).map(|s| (format!("{left_out} more servers"), s.span)))
        .collect();
    // Each tool is looked at once, however many units have it.
    let mut decls: BTreeMap<(Span, String), &ToolDecl> = BTreeMap::new();
    for tool in compiled.units.iter().flat_map(|u| &u.code.tools) {
        decls.entry((tool.span, tool.name.to_string())).or_insert(tool);
    }
    let asked: Vec<&ToolDecl> = decls.values().copied().collect();
    let reader = Reader::new(project, 0, compiled.framework, lists);
    let facts = reader.facts(&asked);
    let mut known: HashMap<(Span, String), ToolFacts> = decls.into_keys().zip(facts).collect();
    for server in &listed {
        server.add_facts(&mut known);
    }
    let places: Vec<Span> = compiled.units.iter().map(|u| u.span).collect();
    let parts = reader.read_steps(steps, &places);
    let audited = |t: &ToolDecl| {
        let facts = known.get(&(t.span, t.name.to_string())).cloned();
        let server = listed.iter().find(|s| s.def.span == t.span);
        let toolkit = facts.as_ref().and_then(|f| f.toolkit.as_ref()).map(ToString::to_string);
        AuditedTool {
            name: t.name.to_string(),
            params: t.params.iter().map(|p| p.name.to_string()).collect(),
            span: t.span,
            members: server.map(|s| s.members(&t.name)).unwrap_or_default(),
            server: server.map(|s| s.def.name.clone()).or(toolkit),
            facts: facts.unwrap_or_else(ToolFacts::unknown),
            approved: t.approve == core_ir::Approve::Always,
            declared: !ToolDecl { approve: core_ir::Approve::Never, ..t.clone() }.is_unspecified(),
        }
    };
    let programs = compiled.units.into_iter().zip(parts).map(|(unit, parts)| {
        let tools = unit.code.tools.iter().map(|t| audited(t)).collect();
        Program { unit, tools, parts }
    });
    Some(Prepared {
        file: file.id,
        framework: compiled.framework,
        asks_user: compiled.facts.asks_user,
        shares_session: compiled.facts.shares_session,
        triggers: triggers(file),
        unread,
        programs: programs.collect(),
    })
}

/// Code and level of the finding about a path.
fn rank(path: &AttackPath) -> (&'static str, Level) {
    let (code, level) = match path.kind {
        PathKind::Runs => (codes::RUNS, Level::Error),
        PathKind::Leaks => (codes::LEAKS, Level::Error),
        PathKind::Acts => (codes::ACTS, Level::Warn),
    };
    let level = match path.confidence() {
        _ if path.asked => Level::Info,
        Confidence::Guessed => level.min(Level::Warn),
        _ => level,
    };
    (code, level)
}

/// Paths with the same end: calls of tools of one place, or of listed servers, by which outsiders gain the
/// same. They have one remedy.
struct Alike<'p> {
    first: &'p AttackPath,
    /// Further sources by their names.
    sources: Vec<String>,
    /// Further calls by their names.
    sinks: Vec<String>,
}

/// The paths in groups, each where its first path is.
fn alike(paths: &[AttackPath]) -> Vec<Alike<'_>> {
    let end = |path: &AttackPath| {
        let place = path.sink.tools.is_empty().then_some(path.sink.span);
        (paths::outcome(path.sink.fact.effect), place)
    };
    let mut found: HashMap<_, usize> = HashMap::new();
    let mut groups: Vec<Alike<'_>> = Vec::new();
    for path in paths {
        let key = (rank(path), path.asked, path.sink.agent.as_deref(), end(path));
        let index = *found.entry(key).or_insert(groups.len());
        let Some(group) = groups.get_mut(index) else {
            groups.push(Alike { first: path, sources: Vec::new(), sinks: Vec::new() });
            continue;
        };
        let Alike { first, sources, sinks } = group;
        for (step, of_first, more) in
            [(&path.source, &first.source, sources), (&path.sink, &first.sink, sinks)]
        {
            let name = shown(step);
            if name != shown(of_first) && !more.contains(&name) {
                more.push(name);
            }
        }
    }
    groups
}

/// `1 path`, `2 paths`.
fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// ` or 3 more`, if there are any.
fn or_more(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" or {} more", names.len()) }
}

/// The first names, and how many follow.
fn listed(names: &[String]) -> String {
    let shown = names.len().min(MAX_NAMES);
    let rest = match names.len() - shown {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{rest}", names[..shown].join(", "))
}

/// Paths that end alike as a sentence.
fn sentence(alike: &Alike<'_>) -> String {
    let path = alike.first;
    let (what, who) = paths::origin(path.source.fact.effect);
    let mut models: Vec<String> = Vec::new();
    for step in [Some(&path.source), path.private.as_ref(), Some(&path.sink)].into_iter().flatten() {
        let agent =
            step.agent.as_ref().map_or("model".into(), |a| format!("model of `{}`", diagnostics::clip(a)));
        if !models.contains(&agent) {
            models.push(agent);
        }
    }
    if models.len() > 1 {
        models.retain(|m| m != "model");
    }
    let who = match &path.source.fact.effect {
        effect
            if effect.has(Role::Untrusted)
                && path.source.agent.is_none()
                && path.source.params.is_empty() =>
        {
            who.replace("what it reads", "it")
        }
        _ => who.replace("it reads", &format!("{} reads", shown(&path.source))),
    };
    let gains = match &path.private {
        Some(private) => format!("get what {} reads", shown(private)),
        None => paths::outcome(path.sink.fact.effect).to_string(),
    };
    let asked = if path.asked { ", unless the user declines the call" } else { "" };
    format!(
        "{what} → {}{} → {} → {}{}: whoever {who} can {gains}{asked}",
        shown(&path.source),
        or_more(&alike.sources),
        models.join(" → "),
        called(&path.sink),
        or_more(&alike.sinks),
    )
}

/// A step by its name.
fn shown(step: &Step) -> String {
    match &step.tools[..] {
        [] => format!("`{}`", diagnostics::clip(&step.name)),
        // A server whose tools are not documented represents them.
        [one] if *one == step.name => format!("`{}`", diagnostics::clip(one)),
        [one] => format!("`{}` of `{}`", diagnostics::clip(one), diagnostics::clip(&step.name)),
        [one, rest @ ..] => {
            format!(
                "`{}` and {} more of `{}`",
                diagnostics::clip(one),
                rest.len(),
                diagnostics::clip(&step.name)
            )
        }
    }
}

/// A step with its first parameters.
fn called(step: &Step) -> String {
    let params = match &step.params[..] {
        [] => return shown(step),
        [input] if input == "input" => return shown(step),
        [first, second, _, ..] => format!("{first}, {second}, …"),
        all => all.join(", "),
    };
    match step.tools.is_empty() {
        true => format!("`{}({params})`", diagnostics::clip(&step.name)),
        false => shown(step),
    }
}

/// The front end that reads each file: its own, or for a module in Python that of the nearest module that it
/// imports, whose functions may make the agents.
fn frontends_of(files: &[File], modules: &Modules) -> HashMap<FileId, &'static dyn Frontend> {
    let own = |file: &File| match frontends::recognize(file) {
        Recognized::Frontend(frontend) => Some((file.id, frontend)),
        _ => None,
    };
    let mut found: HashMap<FileId, &'static dyn Frontend> = files.iter().filter_map(own).collect();
    let sources = modules.sources();
    let importers = importers(modules);
    let id = |module: usize| sources.get(module).map(|s| s.id);
    let is_read = |module: &usize| id(*module).is_some_and(|id| found.contains_key(&id));
    let mut todo: VecDeque<usize> = (0..sources.len()).filter(is_read).collect();
    while let Some(module) = todo.pop_front() {
        let Some(frontend) = id(module).and_then(|id| found.get(&id).copied()) else { continue };
        for importer in &importers[module] {
            if let Some(Entry::Vacant(entry)) = id(*importer).map(|id| found.entry(id)) {
                entry.insert(frontend);
                todo.push_back(*importer);
            }
        }
    }
    found
}

/// For each module those that import it.
fn importers(modules: &Modules) -> Vec<Vec<usize>> {
    let sources = modules.sources();
    let mut importers: Vec<Vec<usize>> = vec![Vec::new(); sources.len()];
    for module in 0..sources.len() {
        sources.imported(module).into_iter().for_each(|imported| importers[imported].push(module));
    }
    importers
}

/// The modules in Python whose steps are followed: those of programs, those that ask models by themselves,
/// their importers, and what all these import. False if there are more than are looked at.
fn modules_with_steps<'f>(
    programs: impl Iterator<Item = &'f File>,
    modules: &Modules,
) -> (HashSet<FileId>, bool) {
    let sources = modules.sources();
    let mut todo: VecDeque<usize> = programs.filter_map(|f| sources.of_file(f.id)).collect();
    let importers = importers(modules);
    let mut seen: HashSet<usize> = todo.iter().copied().collect();
    let mut by_import: Vec<usize> = todo.iter().copied().collect();
    while let Some(module) = by_import.pop() {
        let new = importers[module].iter().copied().filter(|m| seen.insert(*m));
        new.for_each(|m| {
            todo.push_back(m);
            by_import.push(m);
        });
    }
    let mut out = HashSet::new();
    while let Some(module) = todo.pop_front() {
        if out.len() >= MAX_MODULES {
            return (out, false);
        }
        out.extend(sources.get(module).map(|s| s.id));
        todo.extend(sources.imported(module).into_iter().filter(|m| seen.insert(*m)));
    }
    (out, true)
}

/// Returns true if a module imports a client of models or a framework.
fn asks_models(file: &File) -> bool {
    let packages = tool_facts::model_calls::PACKAGES;
    let modules = packages.iter().filter(|p| p.contains('.'));
    let Some(source) = &file.python else { return false };
    source.imports_family(packages)
        || modules.into_iter().any(|m| source.imports_module(m))
        || tool_facts::model_calls::mentions_model(source)
}

/// The sources of the answers of agents that are given to other agents, by the places of the agents.
fn answers(prepared: &[Prepared], handed: &Handed) -> HashMap<Span, Vec<Step>> {
    let mut out: HashMap<Span, Vec<Step>> = HashMap::new();
    for p in prepared {
        for Program { unit, tools, .. } in &p.programs {
            if handed.passed.iter().any(|passed| passed.from.contains(&unit.span)) {
                let found = paths::search(unit, tools, &[], &[], p.talk());
                out.entry(unit.span).or_default().extend(found.answer);
            }
        }
    }
    out
}

/// The framework that a module uses, if it is one that no front end reads.
fn not_read(file: &File) -> Option<&'static str> {
    let module = file.python.as_ref()?;
    NOT_READ.iter().find(|(package, _)| module.imports_family(&[package])).map(|(_, name)| *name)
}

/// The servers that a file defines.
fn defined(file: &File, versions: &Versions) -> Vec<ServerDef> {
    let words = |s: &frontend_kit::Server<'_>| {
        let address = s.address.map(|(a, _)| a.to_string());
        // A word may be a command of its own, as with `supergateway --stdio "npx …"`.
        s.command.iter().flat_map(|w| w.split_whitespace()).map(str::to_string).chain(address).collect()
    };
    let all = servers(file, versions);
    all.iter().map(|s| ServerDef { name: s.name.to_string(), words: words(s), span: s.span }).collect()
}

/// A server of a list, with what the registry says of it.
struct ListedServer<'s> {
    def: &'s ServerDef,
    known: Option<&'static Server>,
    /// Its own account of what it offers, if it was asked.
    offered: &'s [OfferedTool],
    /// Its tools, those with the same effects together: the first one represents them in the analysis. The
    /// server itself if none is documented.
    groups: Vec<Vec<String>>,
}

impl<'s> ListedServer<'s> {
    fn of(def: &'s ServerDef, offered: &'s [OfferedTool]) -> ListedServer<'s> {
        let words: Vec<&str> = def.words.iter().map(String::as_str).collect();
        let known = registry::server(&def.name, &words);
        let effects_of = |tool: &OfferedTool| match known.and_then(|k| documented(k, &tool.name)) {
            Some(effects) => effects.to_vec(),
            None => tool.facts(def.span).facts.iter().map(|fact| fact.effect).collect(),
        };
        // What it offers is all that it has.
        let all: Vec<(&str, Vec<Effect>)> = match offered.is_empty() {
            true => known.iter().flat_map(|k| &k.tools).map(|(n, e)| (n.as_str(), e.clone())).collect(),
            false => offered.iter().map(|tool| (tool.name.as_str(), effects_of(tool))).collect(),
        };
        let mut groups: Vec<(Vec<Effect>, Vec<String>)> = Vec::new();
        for (name, effects) in all {
            match groups.iter_mut().find(|(e, _)| *e == effects) {
                Some((_, names)) => names.push(name.into()),
                None => groups.push((effects, vec![name.into()])),
            }
        }
        let groups = match groups.is_empty() {
            true => vec![vec![def.name.clone()]],
            false => groups.into_iter().map(|(_, names)| names).collect(),
        };
        ListedServer { def, known, offered, groups }
    }

    /// The server's own name of a tool. The name of one that two servers have begins with that of its server.
    fn own_name<'n>(&self, tool: &'n str) -> &'n str {
        tool.strip_prefix(&format!("{}_", self.def.name)).unwrap_or(tool)
    }

    /// The tools that one of it represents.
    fn members(&self, tool: &str) -> Vec<String> {
        let own = self.own_name(tool);
        let group = self.groups.iter().find(|g| g.first().is_some_and(|first| first == own));
        group.cloned().unwrap_or_else(|| vec![tool.to_string()])
    }

    /// Replaces the facts about its tools by those of the registry, or by what the server says.
    fn add_facts(&self, known: &mut HashMap<(Span, String), ToolFacts>) {
        for ((span, name), facts) in known.iter_mut().filter(|((span, _), _)| *span == self.def.span) {
            let own = self.own_name(name);
            let offered = self.offered.iter().find(|tool| tool.name == own);
            let named = self.known.is_some_and(|known| documented(known, own).is_some());
            match (self.known, offered) {
                (Some(server), _) if named => *facts = ToolFacts::of_server(server, Some(own), *span),
                (_, Some(tool)) => *facts = tool.facts(*span),
                (Some(server), None) => *facts = ToolFacts::of_server(server, None, *span),
                (None, None) => {}
            }
        }
    }
}

/// The documented effects of a tool of a server.
fn documented<'s>(server: &'s Server, tool: &str) -> Option<&'s [Effect]> {
    server.tools.iter().find(|(name, _)| name == tool).map(|(_, effects)| effects.as_slice())
}

/// A list of servers as a program: one conversation with all their tools.
fn conversation(project: &Project, servers: &[ListedServer<'_>]) -> frontend_kit::Compiled {
    let mut units = Units::new("mcp", Facts::default(), project);
    let Some(at) = project.files.first().and_then(|f| f.documents.first()).map(|d| d.root().head()) else {
        return units.compiled;
    };
    units.add("assistant", UnitKind::Agent, at, |kit| {
        let prompt = kit.text("", at);
        let mut names: HashSet<String> = HashSet::new();
        let mut actions = Vec::new();
        for server in servers {
            let ServerDef { name: own, span, .. } = server.def;
            for tool in server.groups.iter().filter_map(|group| group.first()) {
                let is_new = names.insert(tool.clone());
                let name = if is_new { tool.clone() } else { format!("{own}_{tool}") };
                actions.push(Action::mcp(name, own, *span));
            }
        }
        kit.agent(Agent {
            name: "assistant",
            head: at,
            prompt,
            params: core_ir::ModelParams::default(),
            model_at: None,
            actions,
            actions_at: None,
            bound: LoopBound::none("a conversation goes on as long as its user wants"),
        })
    });
    units.compiled
}

/// Triggers that start the programs of a file with text of outsiders.
fn triggers(file: &File) -> Vec<Trigger> {
    let with = |(name, span, facts): (String, Span, ToolFacts)| {
        let fact = facts.role(Role::Untrusted)?.clone();
        Some(Trigger { name, span, fact, in_instructions: false })
    };
    tool_facts::triggers(file).into_iter().filter_map(with).collect()
}
