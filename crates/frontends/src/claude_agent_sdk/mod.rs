//! The Claude Agent SDK, in Python: what `ClaudeAgentOptions(…)` sets up and `query(…)` runs.
//!
//! | source | term |
//! |---|---|
//! | `ClaudeAgentOptions(system_prompt=…)` | a conversation: `fresh (send[system] p; send x; fix[max_turns] …)` |
//! | nothing about tools | the tools of Claude Code |
//! | `tools=[…]`, `disallowed_tools=[…]` | fewer of them |
//! | `allowed_tools`, `permission_mode`, `can_use_tool`, hooks | the calls that a person allows: [`permissions`] |
//! | `create_sdk_mcp_server(…)` with `@tool` | tools `mcp__server__tool` with their schemas |
//! | other `mcp_servers` | the tools of it that are allowed by name, and one for all others |
//! | `agents={name: AgentDefinition(…)}` | agents that are asked and answer |
//! | `max_turns=n` | the bound; none if it does not say |
//!
//! An agent is what options set up. `query(…)` and `ClaudeSDKClient(…)` without options have an agent of the
//! framework's defaults.
//!
//! Entry point: [`ClaudeAgentSdk`].
//!
//! Source: claude-agent-sdk 0.2.189: `types.py`, `query.py`, `client.py`, `__init__.py`.

mod names;
mod permissions;

use crate::agent_host::{self, AgentHost, Note, Offer};
use crate::defaults;
use crate::py::{self, Given, field};
use core_ir::{Approve, LabelSpec, ModelParams, Name, TermId, ToolDecl, ToolParam};
use diagnostics::Span;
use frontend_kit::emit::{LoopBound, Template, Unused, clip};
use frontend_kit::kit::{Kit, Units, plain};
use frontend_kit::outline::ToolRole;
use frontend_kit::project::{CodeFacts, Compiled, Facts, File, Frontend, Project, Words};
use frontend_kit::servers;
use frontend_kit::shape::why;
use permissions::{Decisions, Needs, Permissions, TASK, Texts, is_options, is_sdk};
use python::{Object, ObjectId, PyKind, Value, World};
use std::collections::HashMap;

/// The front end.
pub struct ClaudeAgentSdk;

/// The package, and its first name.
const PACKAGES: &[&str] = &["claude_agent_sdk", "claude_code_sdk"];

const OPTION_KEYS: &[&str] = &[
    "agents",
    "allowed_tools",
    "can_use_tool",
    "disallowed_tools",
    "hooks",
    "max_turns",
    "mcp_servers",
    "model",
    "permission_mode",
    "system_prompt",
    "append_system_prompt",
    "tools",
];
const OPTION_UNUSED: &[Unused] = &[
    ("add_dirs", "it widens the folders that the tools reach"),
    ("betas", why::NOT_YET),
    ("cli_path", why::RUNTIME),
    ("client_app", why::SHOWN),
    ("continue_conversation", why::NOT_YET),
    ("cwd", "it is the folder that the tools reach"),
    ("debug_stderr", why::RUNTIME),
    ("effort", why::NOT_YET),
    ("enable_file_checkpointing", why::RUNTIME),
    ("env", why::RUNTIME),
    ("extra_args", "they are arguments of the command, which may set anything"),
    ("fallback_model", "it is asked where the model fails"),
    ("fork_session", why::RUNTIME),
    ("forward_subagent_text", why::SHOWN),
    ("include_hook_events", why::SHOWN),
    ("include_partial_messages", why::SHOWN),
    ("load_timeout_ms", why::RUNTIME),
    ("max_budget_usd", "it stops a run at a cost in dollars, which is no bound of requests"),
    ("max_buffer_size", why::RUNTIME),
    ("max_thinking_tokens", why::NOT_YET),
    ("output_format", why::NOT_YET),
    ("permission_prompt_tool_name", "a tool decides about the calls that no rule allows"),
    ("plugins", "they may bring tools and hooks"),
    ("resume", why::NOT_YET),
    ("resume_drops_turn", why::RUNTIME),
    ("resume_session_at", why::RUNTIME),
    ("sandbox", "it confines commands"),
    ("session_id", why::RUNTIME),
    ("session_store", why::RUNTIME),
    ("session_store_flush", why::RUNTIME),
    ("setting_sources", "files of settings may allow and refuse more"),
    ("settings", "files of settings may allow and refuse more"),
    ("skills", "they are texts that the model may read"),
    ("stderr", why::RUNTIME),
    ("strict_mcp_config", why::RUNTIME),
    ("task_budget", why::NOT_YET),
    ("thinking", why::NOT_YET),
    ("user", why::SHOWN),
    ("verbatim_prompts", why::NOT_YET),
];
const AGENT_KEYS: &[&str] = &["description", "disallowedTools", "maxTurns", "model", "prompt", "tools"];
const AGENT_UNUSED: &[Unused] = &[
    ("background", why::RUNTIME),
    ("effort", why::NOT_YET),
    ("initialPrompt", why::NOT_YET),
    ("mcpServers", why::NOT_YET),
    ("memory", why::NOT_YET),
    ("permissionMode", why::NOT_YET),
    ("skills", why::NOT_YET),
];
/// The model of a definition that names none of its own.
const INHERITS: &str = "inherit";

impl Frontend for ClaudeAgentSdk {
    fn name(&self) -> &'static str {
        "claude_agent_sdk"
    }

    fn run_methods(&self) -> &'static [&'static str] {
        &["query", "ClaudeSDKClient.query", "ClaudeSDKClient.connect"]
    }

    fn detect(&self, file: &File) -> u8 {
        const MAKES: &[&str] = &["ClaudeAgentOptions", "ClaudeCodeOptions", "ClaudeSDKClient", "query"];
        let ours = |name: &str| is_sdk(name.split('.').next().unwrap_or(name));
        let makes = || py::makes(file, |name| ours(name) && py::ends_with(name, MAKES));
        if py::imports(file, PACKAGES) && makes() { 79 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("Claude Code asks the model of its settings, or its own default"),
            ends_loops: Some("the Claude Agent SDK ends a run at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `system_prompt=`",
                model: "name one: `model=`",
                bound: "state it: `max_turns=`",
                stated: Some(&["max_turns"]),
                ..Words::default()
            },
            code: CodeFacts { run_limit: Some("max_turns"), ..CodeFacts::default() },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        py::evaluated(project, file, python::Limits::default(), None, |mut world, found| {
            units.compiled.diagnostics.extend(found);
            let decisions = permissions::decisions(&mut world);
            agent_host::units(units, file, &Host::new(&world, project, decisions))
        })
    }
}

/// Reason why an agent has the options that it has.
#[derive(Clone, Copy)]
enum Options<'v> {
    /// They are made here.
    Made(ObjectId),
    /// There are none: the defaults.
    Default,
    /// They are not known.
    Unknown(&'v Value),
    /// They may be among arguments that are not known.
    Open(Span),
}

/// A run, or a client, with each of the options that it may have.
fn options_of<'v>(world: &'v World<'_>, object: &'v Object) -> Vec<Options<'v>> {
    let position = (object.short() == "ClaudeSDKClient").then_some(0);
    let Some(given) = field(object, position, "options") else {
        return vec![object.open.map_or(Options::Default, Options::Open)];
    };
    let value = world.resolve_env(given.value);
    let one = |value: &'v Value| match value.kind {
        PyKind::None => Options::Default,
        PyKind::Object(id) if is_options(world.object(id)) => Options::Made(id),
        _ => Options::Unknown(value),
    };
    match value.kind {
        PyKind::Either(id) => world.list(id).items.iter().map(one).collect(),
        _ => vec![one(value)],
    }
}

/// Offers a tool whose calls are carried out.
fn offer(decl: ToolDecl, approve: Option<Approve>, out: &mut Vec<Offer>) {
    if let Some(approve) = approve {
        out.push(Offer::Tool(ToolDecl { approve, ..decl }, ToolRole::Program));
    }
}

/// Returns true for a call of `query(…)` or of the client's class.
fn is_runner(object: &Object) -> bool {
    object.base.is_none()
        && object.class.is_none()
        && is_sdk(object.package())
        && matches!(object.short(), "query" | "ClaudeSDKClient")
}

/// A server of tools that options name.
struct Server<'v> {
    /// Its key in `mcp_servers`, or its name in a list.
    key: &'v str,
    /// The prefix of the names of its tools.
    prefix: String,
    at: Span,
    /// Value of the key; none for a server of a list.
    value: Option<&'v Value>,
}

impl<'v> Server<'v> {
    fn new(key: &'v str, at: Span, value: Option<&'v Value>) -> Server<'v> {
        let is_named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let name: String = key.chars().map(|c| if is_named(c) { c } else { '_' }).collect();
        Server { key, prefix: format!("mcp__{name}"), at, value }
    }
}

struct Host<'r, 'w> {
    world: &'r World<'w>,
    project: &'r Project,
    decisions: Decisions,
    /// The options that each [definition](agents) stands in.
    parents: HashMap<ObjectId, ObjectId>,
}

/// The definitions of further agents in options, by their names.
fn agents<'v>(world: &'v World<'_>, options: &'v Object) -> Vec<(&'v str, ObjectId, Span)> {
    let given = field(options, None, "agents").and_then(|g| world.entries(g.value));
    let named = given.unwrap_or(&[]).iter().filter_map(|(key, value)| {
        let (id, object) = world.object_of(value)?;
        (object.short() == "AgentDefinition").then_some((key.as_str()?, id, value.span))
    });
    named.collect()
}

impl<'r, 'w> Host<'r, 'w> {
    fn new(world: &'r World<'w>, project: &'r Project, decisions: Decisions) -> Host<'r, 'w> {
        let mut parents = HashMap::new();
        for (id, object) in world.objects().filter(|(_, o)| is_options(o)) {
            for (_, agent, _) in agents(world, object) {
                parents.entry(agent).or_insert(id);
            }
        }
        Host { world, project, decisions, parents }
    }

    fn get(&self, id: ObjectId, name: &str) -> Option<Given<'_>> {
        field(self.world.object(id), None, name).filter(|g| !g.value.is_none())
    }

    fn is_definition(&self, id: ObjectId) -> bool {
        self.parents.contains_key(&id)
    }

    /// The options that an agent has.
    fn options(&self, id: ObjectId) -> Options<'_> {
        let object = self.world.object(id);
        if let Some(parent) = self.parents.get(&id) {
            return Options::Made(*parent);
        }
        if is_options(object) {
            return Options::Made(id);
        }
        let all = options_of(self.world, object);
        let other = all.into_iter().find(|o| !matches!(o, Options::Made(_)));
        other.unwrap_or(Options::Default)
    }

    fn permissions(&self, id: ObjectId) -> Permissions<'_> {
        let options = match self.options(id) {
            Options::Made(id) => Some(self.world.object(id)),
            _ => None,
        };
        Permissions::of(self.world, options, &self.decisions)
    }

    /// A place for what an agent has without its being written: the name of what makes the agent.
    fn made_at(&self, id: ObjectId) -> Span {
        let object = self.world.object(id);
        let length = u32::try_from(object.short().len()).unwrap_or(0);
        Span { end: object.span.start.saturating_add(length).min(object.span.end), ..object.span }
    }

    /// The servers that options name, and what is said where they are not known.
    fn servers(&self, id: ObjectId) -> (Vec<Server<'_>>, Option<(String, Span)>) {
        let Some(given) = self.get(id, "mcp_servers") else { return (Vec::new(), None) };
        let value = self.world.resolve_env(given.value);
        let PyKind::Dict(dict) = value.kind else {
            // A file, or `Path(…)` of one.
            let made = self.world.object_of(value).and_then(|(_, o)| o.args.first()).map(|a| &a.value);
            let Some(path) = self.world.str(made.unwrap_or(value)) else {
                let why = format!("the servers: {}", self.world.unknown_reason(value));
                return (Vec::new(), Some((why, value.span)));
            };
            let path = path.trim_start_matches("./");
            let is_it =
                |f: &&File| !path.is_empty() && *f.path == *path || f.path.ends_with(&format!("/{path}"));
            let Some(list) = self.project.files.iter().find(is_it) else {
                return (Vec::new(), Some((format!("the servers that `{}` lists", clip(path)), value.span)));
            };
            let listed = servers(list, &self.project.versions);
            return (listed.iter().map(|s| Server::new(s.name, s.span, None)).collect(), None);
        };
        let dict = self.world.dict(dict);
        let mut rest = dict.open.map(|at| ("servers that are not known".to_string(), at));
        let mut out = Vec::new();
        for (key, value) in &dict.entries {
            match self.world.str(key) {
                Some(key) => out.push(Server::new(key, value.span, Some(value))),
                None => rest = Some(("a server whose name is not known".into(), key.span)),
            }
        }
        (out, rest)
    }

    /// The call that makes a server which runs in the process.
    fn own_server(&self, server: &Server<'_>) -> Option<&Object> {
        let value = server.value?;
        let value = match self.world.entries(value) {
            // `{"type": "sdk", "name": …, "instance": …}`
            Some(entries) => &entries.iter().find(|(k, _)| k.as_str() == Some("instance"))?.1,
            None => value,
        };
        let (_, object) = self.world.object_of(value)?;
        (object.short() == "create_sdk_mcp_server" && is_sdk(object.package())).then_some(object)
    }

    /// The name that a server in the process gives itself, which names no tool.
    fn own_name(&self, server: &Server<'_>) -> Option<&str> {
        field(self.own_server(server)?, Some(0), "name").and_then(|g| self.world.str(g.value))
    }

    /// The tools of a server that runs in the process, each with its name; a flag says if these are all.
    fn own_tools(&self, server: &Server<'_>) -> Option<(Vec<(String, &Value)>, bool)> {
        let object = self.own_server(server)?;
        let Some(given) = field(object, Some(2), "tools") else { return Some((Vec::new(), true)) };
        let Some(items) = self.world.items(given.value) else { return Some((Vec::new(), false)) };
        let is_whole = match self.world.resolve_env(given.value).kind {
            PyKind::List(list) => self.world.list(list).open.is_none(),
            _ => false,
        };
        let named: Vec<(String, &Value)> =
            items.iter().filter_map(|v| Some((self.tool_name(v)?, v))).collect();
        let is_whole = is_whole && named.len() == items.len();
        Some((named, is_whole))
    }

    /// An argument of `@tool(…)` or `SdkMcpTool(…)`.
    fn of_tool<'v>(&'v self, value: &'v Value, position: usize, name: &str) -> Option<Given<'v>> {
        let object = match py::function_of(value) {
            Some(function) => {
                let decorator = self.world.decorator(function, &["tool"])?;
                self.world.object_of(decorator)?.1
            }
            None => {
                let (_, object) = self.world.object_of(value)?;
                // `tool(…)(f)`.
                object.base.map_or(object, |base| self.world.object(base))
            }
        };
        field(object, Some(position), name)
    }

    fn tool_name(&self, value: &Value) -> Option<String> {
        self.of_tool(value, 0, "name").and_then(|g| self.world.str(g.value)).map(str::to_string)
    }

    /// The declaration of a tool that runs in the process.
    fn own_tool(&self, value: &Value, name: &str) -> ToolDecl {
        let world = self.world;
        let function = py::function_of(value).or_else(|| {
            let (_, object) = world.object_of(value)?;
            py::wrapped(object)
        });
        let at = function.map_or(value.span, |f| world.function(f).name_span);
        let mut decl = ToolDecl::unknown(name.into(), at);
        decl.description =
            self.of_tool(value, 1, "description").and_then(|g| world.str(g.value)).map(Name::from);
        decl.params =
            self.of_tool(value, 2, "input_schema").map(|g| self.schema(g.value)).unwrap_or_default();
        decl
    }

    /// The parameters that a schema says: names with types, the fields of a class, or JSON Schema.
    fn schema(&self, value: &Value) -> Vec<ToolParam> {
        let world = self.world;
        let param = |name: &str, ty| ToolParam {
            name: Name::from(name),
            ty,
            bound: LabelSpec::BOTTOM,
            default: None,
        };
        if let PyKind::Class(class) = value.kind {
            let fields = world.class(class).fields.iter();
            return fields.map(|f| param(&f.name, core_ir::Type::Dyn)).collect();
        }
        let entries = world.entries(value).unwrap_or(&[]);
        let of = |key: &str| entries.iter().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v);
        let properties = of("properties").filter(|_| of("type").is_some());
        let entries = properties.map_or(entries, |p| world.entries(p).unwrap_or(&[]));
        let is_json = properties.is_some();
        let named = entries.iter().filter_map(|(key, ty)| {
            let ty = if is_json { core_ir::Type::Dyn } else { py::type_of(world, ty) };
            Some(param(world.str(key)?, ty))
        });
        named.collect()
    }

    /// The tools of the servers that options name.
    fn of_servers(&self, id: ObjectId, permissions: &Permissions<'_>, notes: &mut Vec<Note>) -> Vec<Offer> {
        let mut out = Vec::new();
        let (servers, rest) = self.servers(id);
        for server in &servers {
            if permissions.refuses(&server.prefix) {
                continue;
            }
            if let Some((tools, is_whole)) = self.own_tools(server) {
                for (name, value) in tools {
                    let called = format!("{}__{name}", server.prefix);
                    let allowed = permissions.approve(&called, Needs::Permission);
                    let allowed = allowed.filter(|_| !permissions.refuses(&called));
                    offer(self.own_tool(value, &called), allowed, &mut out);
                }
                if !is_whole {
                    let message = format!("not all tools of the server `{}` are known", server.key);
                    notes.push(Note { message, at: server.at, uncounted: true });
                }
                continue;
            }
            let all = match permissions.allows_all(&server.prefix) {
                true => Some(Approve::Never),
                false => permissions.approve(&format!("{}__*", server.prefix), Needs::Permission),
            };
            if all != Some(Approve::Never) {
                for tool in permissions.named(&server.prefix) {
                    let called = format!("{}__{tool}", server.prefix);
                    // It is where the server is, whose words say what it does.
                    let mut decl = ToolDecl::unknown(called.as_str().into(), server.at);
                    decl.handler = Some(agent_host::of_server(server.key));
                    let allowed = Some(Approve::Never).filter(|_| !permissions.refuses(&called));
                    offer(decl, allowed, &mut out);
                }
            }
            if all.is_some() {
                offer(agent_host::server(&server.prefix, server.key, server.at, notes), all, &mut out);
            }
        }
        // Servers that files list: those of the project's settings, or of a file that is not at hand.
        let mut places: HashMap<&str, Span> = HashMap::new();
        for (called, at) in permissions.of_servers() {
            let is_of = |s: &Server<'_>| called == s.prefix || called.starts_with(&format!("{}__", s.prefix));
            let own = called.strip_prefix("mcp__").and_then(|rest| rest.split("__").next());
            if let Some(own) = own.filter(|_| !servers.iter().any(is_of)) {
                let called = called.trim_end_matches('*').trim_end_matches("__");
                // The tools of a server have one place.
                let mut decl = ToolDecl::unknown(called.into(), *places.entry(own).or_insert(at));
                decl.handler = Some(agent_host::of_server(own));
                offer(decl, Some(Approve::Never).filter(|_| !permissions.refuses(called)), &mut out);
            }
        }
        if let Some((message, at)) = rest {
            notes.push(Note { message, at, uncounted: false });
            let all = permissions.approve("mcp__*", Needs::Permission);
            offer(ToolDecl::unknown("mcp".into(), at), all, &mut out);
        }
        out
    }

    /// Returns the tools that the definition of an agent names; all of the options' if it names none.
    fn kept(&self, id: ObjectId, offers: Vec<Offer>, notes: &mut Vec<Note>) -> Vec<Offer> {
        let texts = |name: &str| self.get(id, name).map(|g| Texts::of(self.world, g.value));
        let (only, without) = (texts("tools"), texts("disallowedTools").unwrap_or_default());
        if let Some((why, at)) = only.as_ref().and_then(|t| t.rest.clone()) {
            let message = format!("a tool that is not known: {why}");
            notes.push(Note { message, at, uncounted: false });
        }
        let names = |texts: &Texts, name: &str| {
            texts.known.iter().any(|(t, _)| {
                t == name || name.strip_prefix(t.as_str()).is_some_and(|rest| rest.starts_with("__"))
            })
        };
        let keeps = |offer: &Offer| {
            let Offer::Tool(decl, _) = offer else { return false };
            // The server of a tool that is named stays as a whole.
            let of_server = |t: &Texts| {
                decl.handler.is_some()
                    && t.known.iter().any(|(n, _)| n.starts_with(&format!("{}__", decl.name)))
            };
            only.as_ref().is_none_or(|t| t.rest.is_some() || names(t, &decl.name) || of_server(t))
                && !names(&without, &decl.name)
        };
        offers.into_iter().filter(keeps).collect()
    }

    fn is_bounded(&self, id: ObjectId) -> bool {
        let name = if self.is_definition(id) { "maxTurns" } else { "max_turns" };
        self.get(id, name).is_some()
    }
}

impl<'w> AgentHost<'w> for Host<'_, 'w> {
    fn world(&self) -> &World<'w> {
        self.world
    }

    fn is_agent(&self, id: ObjectId) -> bool {
        let object = self.world.object(id);
        is_options(object)
            || is_runner(object)
                && options_of(self.world, object).iter().any(|o| !matches!(o, Options::Made(_)))
    }

    fn name(&self, id: ObjectId) -> String {
        let object = self.world.object(id);
        if let Some(parent) = self.parents.get(&id) {
            let all = agents(self.world, self.world.object(*parent));
            if let Some((name, ..)) = all.iter().find(|(_, agent, _)| *agent == id) {
                return (*name).to_string();
            }
        }
        // The variable of the module, or the function that sets it up.
        let module = self.world.sources().of_file(object.span.file);
        let globals = module.map(|m| self.world.globals(m)).unwrap_or_default();
        let variable = globals.iter().find(|(_, v)| matches!(v.kind, PyKind::Object(o) if o == id));
        let within = object.within.map(|f| {
            let f = self.world.function(f);
            f.class.map_or(&f.name, |class| &self.world.class(class).name).to_string()
        });
        variable.map(|(n, _)| (*n).to_string()).or(within).unwrap_or_else(|| "claude".into())
    }

    fn offers(&self, id: ObjectId, notes: &mut Vec<Note>) -> Vec<Offer> {
        let options = match self.options(id) {
            Options::Unknown(value) => {
                let message = format!("the options are not known: {}", self.world.unknown_reason(value));
                notes.push(Note { message, at: value.span, uncounted: true });
                return Vec::new();
            }
            Options::Open(at) => {
                let message = "arguments that are not known, perhaps the options".to_string();
                notes.push(Note { message, at, uncounted: true });
                return Vec::new();
            }
            Options::Made(options) => Some(options),
            Options::Default => None,
        };
        let permissions = self.permissions(id);
        let at = self.made_at(options.unwrap_or(id));
        let builtin = permissions.builtin(at);
        let mut out: Vec<Offer> = Vec::new();
        for (tool, at) in &builtin {
            offer(tool.decl(*at), permissions.approve(tool.name, tool.needs), &mut out);
        }
        if let Some((why, at)) = permissions.rest() {
            let message = format!("a tool that is not known: {why}");
            notes.push(Note { message, at: *at, uncounted: true });
        }
        if let Some(options) = options {
            out.extend(self.of_servers(options, &permissions, notes));
        }
        // A model that is refused each call asks again, so its calls are turns too.
        let listed = options.and_then(|options| {
            let servers = self.servers(options).0;
            servers.into_iter().find(|s| !permissions.refuses(&s.prefix))
        });
        let of_server = listed.map(|s| ToolDecl::unknown(s.prefix.as_str().into(), s.at));
        let all = builtin.iter().map(|(tool, at)| tool.decl(*at)).chain(of_server);
        let refused =
            all.map(|decl| Offer::Tool(ToolDecl { approve: Approve::Always, ..decl }, ToolRole::Program));
        let mut refused: Vec<Offer> = refused.collect();
        if let Some((why, at)) = &permissions.unknown {
            let message = format!("calls that are allowed by what is not known: {why}");
            notes.push(Note { message, at: *at, uncounted: true });
        }
        if self.is_definition(id) {
            refused = self.kept(id, refused, &mut Vec::new());
            out = self.kept(id, out, notes);
        } else if builtin.iter().any(|(tool, _)| tool.name == TASK)
            && let Some(options) = options
        {
            for (name, agent, at) in agents(self.world, self.world.object(options)) {
                let description = self.get(agent, "description").and_then(|g| self.world.str(g.value));
                out.push(Offer::Agent(agent_host::asked(name, "prompt", description, at), agent));
            }
            if let Some(given) = self.get(options, "agents")
                && self.world.entries(given.value).map(<[_]>::len)
                    != Some(agents(self.world, self.world.object(options)).len())
            {
                let message = "agents that are not known".to_string();
                notes.push(Note { message, at: given.at, uncounted: true });
            }
        }
        if out.is_empty() {
            out.extend(refused.into_iter().next());
        }
        // A tool that asks models is not counted by the turns.
        if self.is_bounded(id) {
            let mut asking = out.iter().filter_map(|offer| match offer {
                Offer::Tool(decl, _) => permissions::BUILTIN.iter().find(|b| *b.name == *decl.name),
                _ => None,
            });
            let judged = permissions.judged.then_some("a model judges each call");
            if let Some(why) = asking.find_map(|b| b.asks).or(judged) {
                notes.push(Note { message: why.to_string(), at, uncounted: true });
            }
        }
        out
    }

    fn length(&self, id: ObjectId) -> usize {
        let texts = ["prompt", "system_prompt"].iter().filter_map(|key| self.get(id, key));
        texts.map(|g| py::length(self.world, g.value)).sum()
    }

    fn prompt(&self, kit: &mut Kit<'_>, id: ObjectId) -> TermId {
        let key = if self.is_definition(id) { "prompt" } else { "system_prompt" };
        let own = "the instructions that Claude Code gives its agents";
        let Some(given) = self.get(id, key) else {
            return kit.unknown(own, self.world.object(id).span);
        };
        let Some(entries) = self.world.entries(given.value) else {
            return py::text(kit, self.world, given.value, plain);
        };
        let of = |key: &str| entries.iter().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v);
        if let Some(text) = of("prompt") {
            return py::text(kit, self.world, text, plain);
        }
        if of("path").is_some() {
            return kit.unknown("the text of a file", given.at);
        }
        let mut template = Template::new(given.at);
        let preset = kit.unknown(own, given.at);
        template.term(preset);
        if let Some(text) = of("append") {
            template.text("\n\n");
            py::fill(kit, self.world, text, &mut template, plain);
        }
        template.build(&mut kit.b)
    }

    fn params(&self, kit: &mut Kit<'_>, id: ObjectId) -> (ModelParams, Option<Span>) {
        let object = self.world.object(id);
        let mut params = ModelParams { purpose: Some(Name::from(self.name(id))), ..ModelParams::default() };
        if self.is_definition(id) {
            py::report(object, AGENT_KEYS, AGENT_UNUSED, "an agent's definition", kit.out);
        } else if is_options(object) {
            py::report(object, OPTION_KEYS, OPTION_UNUSED, "the options", kit.out);
            names::check(self, kit, id);
        } else {
            return (params, None);
        }
        let own = self.get(id, "model").filter(|g| self.world.str(g.value) != Some(INHERITS));
        let parent = self.parents.get(&id).and_then(|p| self.get(*p, "model"));
        let at = py::model(self.world, own.or(parent), &mut params, kit);
        (params, at)
    }

    fn tools_at(&self, id: ObjectId) -> Option<Span> {
        ["tools", "allowed_tools"].iter().find_map(|key| self.get(id, key)).map(|g| g.at)
    }

    fn told_apart(&self, id: ObjectId) -> Option<Value> {
        field(self.world.object(id), None, "allowed_tools").map(|g| g.value.clone())
    }

    fn bound(&self, kit: &Kit<'_>, id: ObjectId) -> LoopBound {
        let default = defaults::bound(&defaults::CLAUDE_AGENT_TURNS, kit.versions);
        match self.options(id) {
            Options::Unknown(value) => LoopBound::unknown(&self.world.unknown_reason(value)),
            Options::Open(_) => LoopBound::unknown("arguments that are not known"),
            _ if self.is_definition(id) => py::bound(self.world, self.get(id, "maxTurns"), default),
            _ if self.world.object(id).open.is_some() && self.get(id, "max_turns").is_none() => {
                LoopBound::unknown("arguments that are not known")
            }
            _ => py::bound(self.world, self.get(id, "max_turns"), default),
        }
    }

    fn over(&self) -> (&'static str, bool) {
        ("the maximal number of turns is reached", false)
    }

    fn repeated(&self, kit: &mut Kit<'_>, id: ObjectId, term: TermId) -> TermId {
        let at = self.world.object(id).span;
        // Without tools there is one request, of a text.
        if !self.is_bounded(id) || self.offers(id, &mut Vec::new()).is_empty() {
            return term;
        }
        kit.repeated(term, 2, "before each turn, a request may compact the conversation", at)
    }

    fn is_run(&self, method: &str) -> bool {
        method == "query"
    }

    /// Runs of options: `query(options=…)`, and what a client with them is asked.
    fn repeats(&self, id: ObjectId) -> Option<py::Runs> {
        let has = |object: &Object| {
            options_of(self.world, object).iter().any(|o| matches!(o, Options::Made(made) if *made == id))
        };
        let (mut runs, mut asked) = (Vec::new(), Vec::new());
        let runners = self.world.objects().filter(|(_, o)| is_runner(o));
        for (other, object) in runners.filter(|(other, o)| *other == id || has(o)) {
            let calls = object.calls.iter().filter(|c| {
                let call = self.world.object(c.result);
                &*c.name == "query" || &*c.name == "connect" && !call.args.is_empty()
            });
            match object.short() {
                "query" => runs.push(other),
                _ => asked.extend(calls.map(|c| c.result)),
            }
        }
        // What a client is asked goes on in one conversation.
        let resumed = py::resumed(py::repeats(self.world, &asked));
        runs.extend(asked);
        match resumed {
            Some(py::Runs::Unknown(..)) => resumed,
            _ => py::repeats(self.world, &runs),
        }
    }
}
