//! Attack paths of a program: which text of outsiders reaches which action.
//!
//! Reachability is decided by the flow analysis alone. The facts about tools are put into their
//! declarations as labels of results, and every bound is lifted, so that the analysis names for each call
//! every result that may decide it.

use super::AuditedTool;
use analysis::flow::{self, Cause, Sink};
use core_ir::{AnswerSink, Approve, Code, EffectClass, LabelSpec, Name, Recv, ResultParts, Term};
use diagnostics::Span;
use frontend_kit::Unit;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tool_facts::{Acted, Confidence, Effect, Fact, Role, ToolFacts};

/// Gain of an outsider by a path. The order is that of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathKind {
    /// An action with arguments of their choice.
    Acts,
    /// Private data.
    Leaks,
    /// Commands or code.
    Runs,
}

/// A tool, or what starts the program, on a path.
#[derive(Clone, Debug)]
pub struct Step {
    /// Name of the tool, the server or the trigger.
    pub name: String,
    /// Names of the tools that it represents, if it is a server.
    pub tools: Vec<String>,
    /// Its parameters.
    pub params: Vec<String>,
    /// Place that defines it.
    pub span: Span,
    /// The fact that counts.
    pub fact: Fact,
    /// The agent that has it, if it is known.
    pub agent: Option<String>,
}

/// Text of outsiders reaching an action.
#[derive(Clone, Debug)]
pub struct AttackPath {
    /// Gain of outsiders.
    pub kind: PathKind,
    /// The tool or trigger that brings in their text.
    pub source: Step,
    /// The tool that brings in private data, if it matters.
    pub private: Option<Step>,
    /// The tool that acts.
    pub sink: Step,
    /// Calls by which the program asks models by itself, in order.
    pub models: Vec<Span>,
    /// The test of an answer that decides the call, where the answer is not among its arguments.
    pub test: Option<Span>,
    /// True if the framework asks the user before each call, unless told otherwise.
    pub asked: bool,
    /// Other programs with the same path.
    pub also_in: Vec<String>,
}

impl AttackPath {
    /// The least confidence of the facts that the path rests on.
    pub fn confidence(&self) -> Confidence {
        let all = [Some(&self.source), Some(&self.sink), self.private.as_ref()];
        all.into_iter().flatten().map(|s| s.fact.confidence).min().unwrap_or(Confidence::Guessed)
    }
}

/// Start of a program with text of outsiders.
#[derive(Clone, Debug)]
pub struct Trigger {
    /// Its name.
    pub name: String,
    /// Place that defines it.
    pub span: Span,
    /// The fact about it.
    pub fact: Fact,
    /// True if the text is a part of what the models are told anyway, and not the input.
    pub in_instructions: bool,
}

/// Result of searching a unit.
#[derive(Default)]
pub(super) struct Found {
    pub paths: Vec<AttackPath>,
    /// Sources of the text of outsiders in its answer.
    pub answer: Vec<Step>,
    /// Place and reason where the flow analysis gave up.
    pub gave_up: Option<(Span, &'static str)>,
    /// Calls with effects that a person allows each time.
    pub approved: Vec<Name>,
}

/// Facts about the conversations of a unit.
#[derive(Clone, Copy)]
pub(super) struct Conversation {
    /// True if the user is asked before each call.
    pub asked: bool,
    /// True if all its agents see in a later turn what one of them has read.
    pub shared: bool,
}

/// Searches a unit for attack paths. `acted` are the calls of the program that are given its answer.
pub(super) fn search(
    unit: &Unit,
    tools: &[AuditedTool],
    triggers: &[Trigger],
    acted: &[&Acted],
    Conversation { asked, shared }: Conversation,
) -> Found {
    let by_place: HashMap<(&str, Span), &AuditedTool> =
        tools.iter().map(|t| ((&*t.name, t.span), t)).collect();
    let of_code: HashMap<Name, &AuditedTool> = unit
        .code
        .tools
        .iter()
        .filter_map(|t| Some((t.name.clone(), *by_place.get(&(&*t.name, t.span))?)))
        .collect();
    let agents = offering(unit);
    let code = Arc::new(opened(&unit.code, |name| of_code.get(name).map(|t| &t.facts)));
    // A bound on the answer, so that what reaches it is named.
    let answer = AnswerSink { bound: LabelSpec::BOTTOM, plain: None };
    let options = flow::Options { applied: true, passes_unknown: true, answer, ..flow::Options::default() };
    let report = flow::analyze(&code, &options);
    let mut found = Found { gave_up: report.gave_up, ..Found::default() };
    // By the names of source and sink.
    let mut best: BTreeMap<(String, String), AttackPath> = BTreeMap::new();
    for site in &report.sites {
        let mut sinks: Vec<(ToolFacts, Step)> = Vec::new();
        match &site.sink {
            Sink::Tool(name) => {
                let Some(sink) = of_code.get(name) else { continue };
                if [Role::Acts, Role::Outward].iter().all(|r| sink.facts.role(*r).is_none()) {
                    continue;
                }
                if sink.approved {
                    if !found.approved.contains(name) {
                        found.approved.push(name.clone());
                    }
                    continue;
                }
                let fact = sink.facts.role(Role::Outward).or(sink.facts.role(Role::Acts));
                let Some(fact) = fact else { continue };
                sinks.push((sink.facts.clone(), step(&agents, sink, fact)));
            }
            Sink::Answer => sinks.extend(acted.iter().map(|act| {
                let step = Step {
                    name: act.name.clone(),
                    tools: Vec::new(),
                    params: Vec::new(),
                    span: act.span,
                    fact: act.fact.clone(),
                    agent: None,
                };
                (ToolFacts::of_fact(act.fact.clone()), step)
            })),
            _ => continue,
        }
        let origins = site.checks.iter().flat_map(|c| &c.sources).map(|s| &s.origin);
        let mut reaching: Vec<&AuditedTool> = Vec::new();
        let mut begun = false;
        for origin in origins {
            match &origin.cause {
                Cause::Tool(name) => {
                    let tool = of_code.get(name);
                    reaching.extend(tool.filter(|t| !reaching.iter().any(|r| std::ptr::eq(**t, *r))));
                }
                Cause::Input => begun = true,
                // More places than are told apart: any of the tools.
                Cause::Many => {
                    for tool in of_code.values() {
                        if !reaching.iter().any(|r| std::ptr::eq(*tool, *r)) {
                            reaching.push(tool);
                        }
                    }
                    begun = true;
                }
                _ => {}
            }
        }
        if shared && matches!(site.sink, Sink::Tool(_)) {
            for tool in of_code.values() {
                if !reaching.iter().any(|r| std::ptr::eq(*tool, *r)) {
                    reaching.push(tool);
                }
            }
        }
        reaching.sort_by_key(|t| (t.span, t.name.clone()));
        let private = reaching
            .iter()
            .filter_map(|t| Some((*t, t.facts.role(Role::Private)?)))
            .max_by_key(|(_, fact)| fact.confidence);
        let by_tools = reaching.iter().filter_map(|t| Some(step(&agents, t, t.facts.role(Role::Untrusted)?)));
        let by_triggers = triggers.iter().filter(|t| begun || t.in_instructions).map(|t| Step {
            name: t.name.clone(),
            tools: Vec::new(),
            params: Vec::new(),
            span: t.span,
            fact: t.fact.clone(),
            agent: None,
        });
        let sources: Vec<Step> = by_tools.chain(by_triggers).collect();
        if matches!(site.sink, Sink::Answer) {
            found.answer.extend(sources.iter().cloned());
        }
        for (facts, sink) in sinks {
            for source in &sources {
                let private = private.map(|(t, fact)| step(&agents, t, fact));
                let Some((kind, fact, private)) = gain(&facts, private) else { continue };
                // A tool that takes nothing is only called again.
                if kind == PathKind::Acts && sink.params.is_empty() && is_same(source, &sink) {
                    continue;
                }
                // Whoever writes a message may decide the answer to it.
                let answers = sink.agent.is_none() && fact.effect == Effect::MessageSend;
                if kind == PathKind::Acts && answers && source.fact.effect == Effect::MessageRead {
                    continue;
                }
                let sink = Step { fact: fact.clone(), ..sink.clone() };
                keep(
                    &mut best,
                    AttackPath {
                        kind,
                        sink,
                        source: source.clone(),
                        private,
                        models: Vec::new(),
                        test: None,
                        asked,
                        also_in: Vec::new(),
                    },
                );
            }
        }
    }
    found.paths = best.into_values().collect();
    found
}

/// Returns true if two steps are calls of one tool.
fn is_same(source: &Step, sink: &Step) -> bool {
    sink.agent.is_some() && (&source.name, source.span) == (&sink.name, sink.span)
}

/// Keeps the worst of the paths between two tools.
fn keep(best: &mut BTreeMap<(String, String), AttackPath>, path: AttackPath) {
    let key = (path.source.name.clone(), path.sink.name.clone());
    let Some(known) = best.get_mut(&key) else {
        best.insert(key, path);
        return;
    };
    let tools = |a: &Step, b: &Step| {
        let mut all: Vec<String> = a.tools.iter().chain(&b.tools).cloned().collect();
        all.sort();
        all.dedup();
        all
    };
    let (sources, sinks) = (tools(&known.source, &path.source), tools(&known.sink, &path.sink));
    if (path.kind, path.confidence()) > (known.kind, known.confidence()) {
        *known = path;
    }
    (known.source.tools, known.sink.tools) = (sources, sinks);
}

/// Returns the gain of outsiders who decide a call, with the fact that says so and the private data that
/// matters.
fn gain(sink: &ToolFacts, private: Option<Step>) -> Option<(PathKind, &Fact, Option<Step>)> {
    if let Some(fact) = sink.role(Role::Runs) {
        return Some((PathKind::Runs, fact, None));
    }
    if let (Some(fact), Some(private)) = (sink.role(Role::Outward), private) {
        return Some((PathKind::Leaks, fact, Some(private)));
    }
    Some((PathKind::Acts, sink.role(Role::Acts)?, None))
}

fn step(agents: &HashMap<Name, String>, tool: &AuditedTool, fact: &Fact) -> Step {
    let (name, tools) = match &tool.server {
        // The name of a tool that represents a toolkit is made up.
        Some(kit) if tool.facts.toolkit.is_some() => (kit.clone(), Vec::new()),
        Some(server) => (server.clone(), tool.members.clone()),
        None => (tool.name.to_string(), Vec::new()),
    };
    Step {
        name,
        tools,
        params: tool.params.clone(),
        span: tool.span,
        fact: fact.clone(),
        agent: agents.get(&Name::from(tool.name.as_str())).cloned(),
    }
}

/// The agent that is offered each tool, as far as it has a name: the first of several.
fn offering(unit: &Unit) -> HashMap<Name, String> {
    let mut agents: HashMap<Name, String> = HashMap::new();
    for (id, term) in unit.code.iter() {
        let (Term::Llm(_, params) | Term::Recv(Recv::Data(params))) = term else { continue };
        let defined = || unit.agent_at(unit.code.span(id)).map(|a| a.name.clone());
        let Some(agent) = params.purpose.as_ref().map(ToString::to_string).or_else(defined) else { continue };
        for tool in &params.tools {
            agents.entry(unit.code.tool(*tool).name.clone()).or_insert_with(|| agent.clone());
        }
    }
    agents
}

/// A program in which results have the labels that the facts say, and every call is admitted.
fn opened<'f>(code: &Code, facts: impl Fn(&Name) -> Option<&'f ToolFacts>) -> Code {
    let mut code = code.clone();
    for tool in &mut code.tools {
        let facts = facts(&tool.name);
        let has = |role| facts.is_some_and(|f| f.role(role).is_some());
        let (untrusted, secret) = (has(Role::Untrusted), has(Role::Private));
        let decl = Arc::make_mut(tool);
        decl.label = LabelSpec::Axes { untrusted, secret };
        decl.parts = ResultParts::default();
        decl.effect =
            if has(Role::Acts) || has(Role::Outward) { EffectClass::Write } else { EffectClass::Read };
        decl.control = LabelSpec::TOP;
        decl.params.iter_mut().for_each(|p| p.bound = LabelSpec::TOP);
        decl.approve = Approve::Never;
        (decl.among, decl.plain, decl.pattern) = (Box::default(), Box::default(), Box::default());
        (decl.includes, decl.policy, decl.at_most) = (Box::default(), None, None);
    }
    code
}

/// The effects by which outsiders put their text somewhere, as the beginning of a path.
pub(super) fn origin(effect: Effect) -> (&'static str, &'static str) {
    match effect {
        Effect::MailRead => ("a mail", "sends a mail"),
        Effect::MessageRead => ("a message", "sends a message"),
        _ => ("text of anyone", "writes what it reads"),
    }
}

/// Describes what outsiders can do by an effect.
pub(super) fn outcome(effect: Effect) -> &'static str {
    match effect {
        Effect::Process => "run commands",
        Effect::Code | Effect::ConfinedCode => "run code",
        Effect::MailSend => "send mail in the user's name",
        Effect::MessageSend => "send messages in the user's name",
        Effect::Publish => "publish in the user's name",
        Effect::Payment => "move money",
        Effect::FileWrite => "change files",
        Effect::DatabaseWrite => "change the database",
        Effect::AccountWrite => "change data of the account",
        Effect::ServiceWrite => "have the service do what they want",
        _ => "decide the call",
    }
}
