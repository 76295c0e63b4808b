//! Permissions of an agent of the Claude Agent SDK: which tools it has, and which calls wait for somebody's
//! word.
//!
//! A call is carried out if a rule of `allowed_tools` matches it, if the permission mode lets it pass, if a
//! hook or `can_use_tool` may allow it, or if the tool needs no permission. Any other call is refused: there
//! is nobody to ask. So the model sees more tools than `allowed_tools` names, and some of them work.
//!
//! Entry point: [`Permissions::of`].
//!
//! Source: claude-agent-sdk 0.2.189 and the Claude Code that it brings, observed against a scripted model.

use crate::py::{self, field};
use core_ir::{Approve, LabelSpec, Name, ToolDecl, ToolParam, Type};
use diagnostics::Span;
use python::{FunctionId, Object, PyKind, Value, World};
use std::collections::{HashMap, HashSet};

/// Permission that a tool needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// None within the working directory.
    Nothing,
    /// Permission to change files, which `acceptEdits` gives.
    Edits,
    /// Permission for each call.
    Permission,
}

/// A tool that Claude Code brings.
pub(super) struct Builtin {
    /// Name by which the model calls it.
    pub name: &'static str,
    /// Its parameters, as far as an agent needs them.
    pub params: &'static [&'static str],
    /// Permission that it needs.
    pub needs: Needs,
    /// The requests to models that it makes by itself.
    pub asks: Option<&'static str>,
}

const fn builtin(name: &'static str, params: &'static [&'static str], needs: Needs) -> Builtin {
    Builtin { name, params, needs, asks: None }
}

const fn asking(builtin: Builtin, asks: &'static str) -> Builtin {
    Builtin { asks: Some(asks), ..builtin }
}

/// The tools that an agent has if nothing says less, without those that touch nothing but the session.
pub(super) const BUILTIN: &[Builtin] = &[
    builtin("Read", &["file_path"], Needs::Nothing),
    builtin("Glob", &["pattern"], Needs::Nothing),
    builtin("Grep", &["pattern"], Needs::Nothing),
    asking(
        builtin(TASK, &["description", "prompt", "subagent_type"], Needs::Nothing),
        "`Task` starts agents whose turns `max_turns` does not count",
    ),
    asking(builtin("Skill", &["skill"], Needs::Permission), "`Skill` may start an agent of its own"),
    asking(builtin("Bash", &["command"], Needs::Permission), "`Bash` may have a model judge the command"),
    builtin("Write", &["file_path", "content"], Needs::Edits),
    builtin("Edit", &["file_path", "old_string", "new_string"], Needs::Edits),
    builtin("NotebookEdit", &["notebook_path", "new_source"], Needs::Edits),
    asking(
        builtin("WebFetch", &["url", "prompt"], Needs::Permission),
        "`WebFetch` has a model read each page",
    ),
    asking(builtin("WebSearch", &["query"], Needs::Permission), "`WebSearch` has a model search"),
];
/// The tool that starts another agent, and its later name.
pub(super) const TASK: &str = "Task";
const TASK_TOO: &str = "Agent";
/// Further tools of Claude Code over its versions: names that are no mistakes.
const OTHERS: &[&str] = &[
    TASK_TOO,
    "AskUserQuestion",
    "BashOutput",
    "CronCreate",
    "CronDelete",
    "CronList",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "KillBash",
    "KillShell",
    "LS",
    "LSP",
    "ListAgents",
    "ListMcpResources",
    "ListMcpResourcesTool",
    "Monitor",
    "MultiEdit",
    "NotebookRead",
    "PowerShell",
    "ReadMcpResource",
    "ReadMcpResourceTool",
    "ReportFindings",
    "ScheduleWakeup",
    "SendMessage",
    "SlashCommand",
    "StructuredOutput",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "Workflow",
];

/// The names of all tools of Claude Code.
pub(super) fn known() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|b| b.name).chain(OTHERS.iter().copied())
}

/// Commands that read and print, with whatever arguments. A rule allows one command, not several that are
/// joined.
const READS: &[&str] = &[
    "cat",
    "date",
    "echo",
    "git diff",
    "git log",
    "git show",
    "git status",
    "grep",
    "head",
    "jq",
    "ls",
    "pwd",
    "rg",
    "tail",
    "tree",
    "wc",
    "which",
];

/// A name as both versions of the tool that starts agents have it.
fn same(name: &str) -> &str {
    if name == TASK_TOO { TASK } else { name }
}

impl Builtin {
    /// Its declaration.
    pub fn decl(&self, at: Span) -> ToolDecl {
        let mut decl = ToolDecl::unknown(self.name.into(), at);
        let param = |p: &&str| ToolParam {
            name: Name::from(*p),
            ty: Type::Str,
            bound: LabelSpec::BOTTOM,
            default: None,
        };
        decl.params = self.params.iter().map(param).collect();
        decl.result = Type::Str;
        decl
    }
}

/// A rule of `allowed_tools` or `disallowed_tools`: `Bash`, `Bash(git:*)`, `mcp__files__read`.
#[derive(Clone)]
pub(super) struct Rule {
    /// The name of a tool or server, perhaps with a wildcard at its end.
    pub name: String,
    /// The part in parentheses.
    calls: Option<String>,
    /// Its place.
    pub at: Span,
}

impl Rule {
    pub fn of(text: &str, at: Span) -> Rule {
        let text = text.trim();
        let (name, calls) = match text.split_once('(') {
            Some((name, rest)) => (name, Some(rest.trim_end_matches(')').trim().to_string())),
            None => (text, None),
        };
        Rule { name: name.trim().to_string(), calls, at }
    }

    /// Returns true if calls of a tool match that do more than read, and whose arguments are not all written
    /// in the rule.
    fn matches(&self, tool: &str) -> bool {
        let is_open = |calls: &str| calls.is_empty() || calls.contains(['*', ':']);
        let only_reads = |calls: &str| {
            READS.iter().any(|r| calls.strip_prefix(r).is_some_and(|rest| rest.starts_with([':', ' '])))
        };
        self.calls.as_deref().is_none_or(|c| is_open(c) && !only_reads(c)) && self.names(tool)
    }

    /// Returns true if all calls of a tool match.
    fn matches_all(&self, tool: &str) -> bool {
        matches!(self.calls.as_deref(), None | Some("" | "*")) && self.names(tool)
    }

    fn names(&self, tool: &str) -> bool {
        let (rule, tool) = (same(&self.name), same(tool));
        match (rule.strip_suffix('*'), tool.strip_prefix(rule)) {
            // A wildcard alone is no rule.
            (Some(prefix), _) => prefix.starts_with("mcp__") && tool.starts_with(prefix),
            // The name of a server is that of all its tools.
            (None, Some(rest)) => rest.is_empty() || rule.starts_with("mcp__") && rest.starts_with("__"),
            (None, None) => false,
        }
    }
}

/// A list of texts.
#[derive(Clone, Default)]
pub(super) struct Texts {
    /// The known texts, each with its place.
    pub known: Vec<(String, Span)>,
    /// Place and reason of what is not known.
    pub rest: Option<(String, Span)>,
}

impl Texts {
    /// The texts that a value lists.
    pub fn of(world: &World<'_>, value: &Value) -> Texts {
        let mut out = Texts::default();
        let listed = world.resolve_env(value);
        if matches!(listed.kind, PyKind::None) {
            return out;
        }
        for item in py::tool_list(world, value) {
            match world.str(&item) {
                Some(text) => out.known.push((text.to_string(), item.span)),
                None => out.rest = Some((world.unknown_reason(&item).to_string(), item.span)),
            }
        }
        out
    }

    fn rules(&self) -> Vec<Rule> {
        self.known.iter().map(|(text, at)| Rule::of(text, *at)).collect()
    }
}

/// Decisions of code about the calls of tools.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Decides {
    /// It refuses them.
    Refuses,
    /// A person is asked.
    Asks,
    /// It may allow them without asking anybody.
    Allows,
}

/// Decisions of callbacks, by the function and the tool. The name of a tool that is none of Claude Code is
/// empty.
pub(super) type Decisions = HashMap<(FunctionId, &'static str), Decides>;

/// Evaluates the callbacks that decide about calls.
pub(super) fn decisions(world: &mut World<'_>) -> Decisions {
    let mut out = Decisions::new();
    let options: Vec<Object> = world.objects().map(|(_, o)| o).filter(|o| is_options(o)).cloned().collect();
    for object in options {
        if let Some(function) = field(&object, None, "can_use_tool").map(|g| g.value.clone()) {
            decide(world, &function, &mut out, false);
        }
        for hook in hooks(world, &object) {
            decide(world, &hook.code, &mut out, true);
        }
    }
    out
}

fn decide(world: &mut World<'_>, function: &Value, out: &mut Decisions, is_hook: bool) {
    let Some(id) = py::function_of(function) else { return };
    if out.contains_key(&(id, "")) {
        return;
    }
    let asks = asks_person(world, id);
    for tool in BUILTIN.iter().filter(|b| b.needs != Needs::Nothing).map(|b| b.name).chain([""]) {
        let span = function.span;
        let unknown = |what: &str| Value::unknown(what, span);
        let name = match tool {
            "" => unknown("the name of a tool"),
            name => Value::new(PyKind::Str(name.into()), span),
        };
        let args = match is_hook {
            true => {
                let entries = vec![("tool_name", name), ("tool_input", unknown("what the tool is given"))];
                vec![world.new_dict(entries, span), unknown("a number"), unknown("the context")]
            }
            false => vec![name, unknown("what the tool is given"), unknown("the context")],
        };
        let args = args.into_iter().map(|value| python::Arg { name: None, value, span }).collect();
        let given = world.call(function, args);
        let decided = match decided(world, &given, is_hook) {
            Decides::Allows if asks => Decides::Asks,
            other => other,
        };
        out.insert((id, tool), decided);
    }
}

/// The decision that a value is: of several, the one that allows the most.
fn decided(world: &World<'_>, value: &Value, is_hook: bool) -> Decides {
    const MAX_VALUES: usize = 100;
    let mut out = Decides::Refuses;
    let mut todo = vec![value.clone()];
    for _ in 0..MAX_VALUES {
        let Some(value) = todo.pop() else { return out };
        match &world.resolve_env(&value).kind {
            PyKind::Either(id) => todo.extend(world.list(*id).items.iter().cloned()),
            PyKind::Object(id) if world.object(*id).short() == "PermissionResultDeny" => {}
            PyKind::Dict(id) => {
                let of = |value: &Value, key: &str| {
                    let mut entries = world.entries(value).unwrap_or(&[]).iter();
                    entries.find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v.clone())
                };
                let inner = of(&value, "hookSpecificOutput");
                let says = [
                    inner.as_ref().and_then(|v| of(v, "permissionDecision")),
                    of(&value, "behavior"),
                    of(&value, "decision"),
                ];
                let says: Vec<&str> = says.iter().flatten().filter_map(|v| world.str(v)).collect();
                let is_open = world.dict(*id).open.is_some();
                match says[..] {
                    ["deny" | "block", ..] => {}
                    ["ask", ..] => out = Decides::Asks,
                    // A hook that says nothing leaves the decision to the rules.
                    [] if is_hook && !is_open => out = Decides::Asks,
                    _ => return Decides::Allows,
                }
            }
            PyKind::None if is_hook => out = Decides::Asks,
            _ => return Decides::Allows,
        }
    }
    Decides::Allows
}

/// Returns true if a function asks a person: it reads a line, or waits for an answer.
fn asks_person(world: &mut World<'_>, function: FunctionId) -> bool {
    const ASKS: &[&str] =
        &["ask", "confirm", "create_future", "Future", "input", "prompt", "prompt_async", "wait_for"];
    const PARTS: &[&str] = &["approv", "confirm", "permission"];
    let is_asking = |name: &str| {
        let last = name.rsplit('.').next().unwrap_or(name);
        ASKS.contains(&last) || PARTS.iter().any(|part| last.to_ascii_lowercase().contains(part))
    };
    let made = world.calls_of(function);
    let is_input =
        |v: &Value| matches!(&v.kind, PyKind::External(n) if matches!(&**n, "builtins.input" | "input"));
    made.objects
        .iter()
        .map(|id| world.object(*id))
        .any(|o| !is_sdk(o.package()) && (is_asking(&o.callee) || o.args.iter().any(|a| is_input(&a.value))))
        || made.unresolved.iter().any(|(name, _)| name.as_deref().is_some_and(is_asking))
}

/// A hook that runs before a tool is used.
struct Hook {
    /// Its code.
    code: Value,
    /// The pattern of the names of tools that it runs for; none for all.
    matcher: Option<String>,
}

impl Hook {
    /// Returns whether it runs for a tool: `None` if that is not decided.
    fn runs_for(&self, tool: &str) -> Option<bool> {
        let Some(matcher) = self.matcher.as_deref().filter(|m| !matches!(*m, "" | "*")) else {
            return Some(true);
        };
        if matcher.split('|').any(|name| same(name.trim()) == same(tool)) {
            return Some(true);
        }
        let is_plain = matcher.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '|' | ' '));
        is_plain.then_some(false)
    }
}

/// The hooks that run before a tool is used.
fn hooks(world: &World<'_>, options: &Object) -> Vec<Hook> {
    let Some(given) = field(options, None, "hooks") else { return Vec::new() };
    let entries = world.entries(given.value).unwrap_or(&[]).iter();
    let before = entries.filter(|(key, _)| key.as_str() == Some("PreToolUse"));
    let mut out = Vec::new();
    for value in before.filter_map(|(_, list)| world.items(list)).flatten() {
        let Some((_, made)) = world.object_of(value) else { continue };
        let matcher = field(made, Some(0), "matcher").filter(|g| !g.value.is_none());
        let matcher = matcher.map(|g| world.str(g.value).unwrap_or(".*").to_string());
        let code = field(made, Some(1), "hooks").and_then(|g| world.items(g.value));
        let code = code.unwrap_or(&[]).iter().cloned();
        out.extend(code.map(|code| Hook { code, matcher: matcher.clone() }));
    }
    out
}

/// Returns true for the packages of the SDK.
pub(super) fn is_sdk(package: &str) -> bool {
    super::PACKAGES.contains(&package)
}

/// Returns true for the options of an agent.
pub(super) fn is_options(object: &Object) -> bool {
    object.base.is_none()
        && is_sdk(object.package())
        && matches!(object.short(), "ClaudeAgentOptions" | "ClaudeCodeOptions")
}

/// Tools that an agent has, and who allows their calls.
pub(super) struct Permissions<'r> {
    /// Names of the tools of Claude Code that it has; all of them if nothing says less.
    tools: Option<Texts>,
    allowed: Vec<Rule>,
    refused: Vec<Rule>,
    mode: Mode,
    /// True if a model decides about calls.
    pub judged: bool,
    /// Reason and place of what is not known of the rules.
    pub unknown: Option<(String, Span)>,
    decisions: &'r Decisions,
    /// The code that decides where no rule does.
    callback: Option<Option<FunctionId>>,
    hooks: Vec<Hook>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The rules decide, or else the code that is asked.
    Rules,
    /// Edits are allowed.
    Edits,
    /// Everything is allowed.
    All,
}

/// The modes of permission.
pub(super) const MODES: &[&str] = &["default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"];

impl<'r> Permissions<'r> {
    /// The permissions that options give; those of the framework without options.
    pub fn of(world: &World<'_>, options: Option<&Object>, decisions: &'r Decisions) -> Permissions<'r> {
        let mut out = Permissions {
            tools: None,
            allowed: Vec::new(),
            refused: Vec::new(),
            mode: Mode::Rules,
            judged: false,
            unknown: None,
            decisions,
            callback: None,
            hooks: Vec::new(),
        };
        let Some(object) = options else { return out };
        let given = |name: &str| field(object, None, name).filter(|g| !g.value.is_none());
        let texts = |name: &str| given(name).map(|g| Texts::of(world, g.value));
        // A dictionary names all tools.
        let is_list = |name: &str| given(name).is_some_and(|g| world.entries(g.value).is_none());
        out.tools = texts("tools").filter(|_| is_list("tools"));
        let allowed = texts("allowed_tools").unwrap_or_default();
        let mode = given("permission_mode").map(|g| (world.str(g.value), g.value));
        (out.mode, out.unknown) = match mode {
            Some((Some("bypassPermissions" | "auto"), _)) => (Mode::All, None),
            Some((Some("acceptEdits"), _)) => (Mode::Edits, None),
            Some((None, value)) => (Mode::Rules, Some((world.unknown_reason(value).to_string(), value.span))),
            _ => {
                let open = object.open.map(|at| ("arguments that are not known".to_string(), at));
                (Mode::Rules, allowed.rest.clone().or(open))
            }
        };
        out.judged = matches!(mode, Some((Some("auto"), _)));
        out.allowed = allowed.rules();
        out.refused = texts("disallowed_tools").map(|t| t.rules()).unwrap_or_default();
        // Nobody is asked in this mode.
        let asks = !matches!(mode, Some((Some("dontAsk"), _)));
        let callback = given("can_use_tool").filter(|_| asks);
        out.callback = callback.map(|g| py::function_of(g.value));
        let code = callback.filter(|_| out.callback == Some(None));
        out.unknown = out.unknown.or(code.map(|g| (world.unknown_reason(g.value).to_string(), g.at)));
        out.hooks = hooks(world, object);
        out
    }

    /// The tools of Claude Code that the agent has, each with its place: where it is listed, or `at`.
    pub fn builtin(&self, at: Span) -> Vec<(&'static Builtin, Span)> {
        let mut seen: HashSet<&str> = HashSet::new();
        let listed = |b: &Builtin| match &self.tools {
            None => Some(at),
            Some(texts) => texts.known.iter().find(|(name, _)| same(name) == b.name).map(|(_, at)| *at),
        };
        let has = |b: &&Builtin| !self.refused.iter().any(|r| r.matches_all(b.name));
        let all = BUILTIN.iter().filter(has).filter_map(|b| Some((b, listed(b)?)));
        all.map(|(b, at)| {
            // The rule that allows a tool is where its reader looks for it.
            let rule = self.allowed.iter().find(|r| r.matches(b.name));
            (b, rule.map_or(at, |r| r.at))
        })
        .filter(|(b, _)| seen.insert(b.name))
        .collect()
    }

    /// The place that lists the tools, if they are not all known.
    pub fn rest(&self) -> Option<&(String, Span)> {
        self.tools.as_ref().and_then(|t| t.rest.as_ref())
    }

    /// Returns whether a person has to allow the calls of a tool; `None` if they are refused.
    pub fn approve(&self, tool: &str, needs: Needs) -> Option<Approve> {
        if needs == Needs::Nothing {
            return Some(Approve::Never);
        }
        let known = BUILTIN.iter().find(|b| b.name == tool).map_or("", |b| b.name);
        let decides = |f: Option<FunctionId>| {
            // Code that is not known may ask or allow.
            f.and_then(|f| self.decisions.get(&(f, known)).copied()).unwrap_or(Decides::Asks)
        };
        let by_hook = |sure: bool| {
            let runs = move |h: &&Hook| h.runs_for(tool).unwrap_or(!sure);
            self.hooks.iter().filter(runs).map(|h| decides(py::function_of(&h.code)))
        };
        if by_hook(true).any(|d| d == Decides::Refuses) {
            return None;
        }
        let by_mode = self.mode == Mode::All || self.mode == Mode::Edits && needs == Needs::Edits;
        let by_rule = self.allowed.iter().any(|r| r.matches(tool));
        if by_mode || by_rule || by_hook(false).any(|d| d == Decides::Allows) {
            return Some(Approve::Never);
        }
        match self.callback.map(decides) {
            Some(Decides::Allows) => Some(Approve::Never),
            Some(Decides::Asks) => Some(Approve::Always),
            Some(Decides::Refuses) | None => None,
        }
    }

    /// Returns true if no call of a tool is carried out: it is taken from the model.
    pub fn refuses(&self, tool: &str) -> bool {
        self.refused.iter().any(|r| r.matches_all(tool))
    }

    /// The tools of a server that rules name, each once.
    pub fn named(&self, server: &str) -> Vec<&str> {
        let mut out: Vec<&str> = Vec::new();
        for rule in &self.allowed {
            let tool = rule.name.strip_prefix(server).and_then(|rest| rest.strip_prefix("__"));
            out.extend(tool.filter(|t| !t.is_empty() && !t.contains('*') && !out.contains(t)));
        }
        out
    }

    /// The tools of servers that rules allow, each with its place.
    pub fn of_servers(&self) -> impl Iterator<Item = (&str, Span)> {
        self.allowed.iter().filter(|r| r.name.starts_with("mcp__")).map(|r| (r.name.as_str(), r.at))
    }

    /// Returns true if a rule allows all tools of a server.
    pub fn allows_all(&self, server: &str) -> bool {
        let some = |r: &Rule| r.name.strip_prefix(server).is_some_and(|rest| rest.ends_with('*'));
        self.allowed.iter().any(some)
            || self.approve(&format!("{server}__*"), Needs::Permission) == Some(Approve::Never)
    }

    /// The rules of both lists.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.allowed.iter().chain(&self.refused)
    }
}
