//! Facts about the tools of a compiled file.

use crate::body;
use crate::effect::{Effect, Role};
use crate::fact::{Confidence, Evidence, Fact, Knowledge, ToolFacts};
use crate::registry::{self, Documented, Server};
use crate::words;
use core_ir::{Data, ToolDecl};
use diagnostics::Span;
use frontend_kit::doc::Node;
use frontend_kit::{File, Project, modules};
use python::{FunctionId, Limits, ObjectId, PyKind, Value, World};

/// A server of tools that a list defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerDef {
    /// Its name in the list.
    pub name: String,
    /// Words of the command that starts it, and its address.
    pub words: Vec<String>,
    /// Its definition.
    pub span: Span,
}

/// Reads facts about the tools of one file of a project.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'p> {
    project: &'p Project,
    main: usize,
    framework: &'static str,
    servers: &'p [ServerDef],
}

/// Values of a call that are searched for words of a command, and their nesting.
const MAX_WORDS: (usize, u32) = (200, 6);

/// Values of one function that are evaluated.
const MAX_VALUES: usize = 4;

/// Classes of tools that represent a server.
const SERVERS: &[&str] = &[
    "HostedMCPTool",
    "MCPStdioTool",
    "MCPStreamableHTTPTool",
    "MCPToolset",
    "MCPWebsocketTool",
    "McpToolset",
];

/// Methods by which toolkits give their tools.
const MAKERS: &[&str] = &["get_tools", "get_tools_async", "to_tool_list"];

impl<'p> Reader<'p> {
    /// For file number `main` of a project that a front end of this name compiled. `servers` are those that
    /// the lists of the project define.
    pub fn new(
        project: &'p Project,
        main: usize,
        framework: &'static str,
        servers: &'p [ServerDef],
    ) -> Reader<'p> {
        Reader { project, main, framework, servers }
    }

    /// Returns the facts about each of the tools.
    pub fn facts(&self, tools: &[&ToolDecl]) -> Vec<ToolFacts> {
        let Some(file) = self.project.files.get(self.main) else {
            return tools.iter().map(|_| ToolFacts::unknown()).collect();
        };
        let Some(source) = &file.python else {
            return tools.iter().map(|t| self.completed(t, self.of_document(file, t))).collect();
        };
        let modules = self.project.modules.clone().unwrap_or_else(|| modules(&self.project.files));
        modules.among(source.clone(), Limits::default(), None, |mut world, _| {
            tools.iter().map(|t| self.completed(t, self.of_module(&mut world, t))).collect()
        })
    }

    /// Adds what the words of the name and the description say, where not all is known.
    fn completed(&self, tool: &ToolDecl, found: Option<ToolFacts>) -> ToolFacts {
        let mut facts = found.unwrap_or_else(ToolFacts::unknown);
        // What a service does that is sent something only its name can tell.
        if registry::is_read(&tool.name) == Some(true) {
            facts.asks_only();
        }
        if facts.knowledge == Knowledge::Known {
            return facts;
        }
        if let Some(known) = registry::called(&tool.name)
            && facts.facts.is_empty()
            && tool.handler.is_none()
        {
            return documented(&tool.name, known, tool.span);
        }
        let by_description = tool.description.as_deref().map(|d| words::by_description(d, tool.span));
        for guess in [Some(words::by_name(&tool.name, tool.span)), by_description].into_iter().flatten() {
            if facts.knowledge == Knowledge::Unknown && guess.knowledge > Knowledge::Unknown {
                facts.knowledge = Knowledge::Partly;
            }
            guess.facts.into_iter().for_each(|f| facts.add(f));
        }
        facts
    }

    /// Facts about a tool of a module of Python.
    fn of_module(&self, world: &mut World<'_>, tool: &ToolDecl) -> Option<ToolFacts> {
        let object =
            world.objects().find(|(_, o)| o.span == tool.span && o.class.is_none()).map(|(id, _)| id);
        if let Some(server) = mcp_server(tool) {
            let words = object.map(|id| strings(world, id)).unwrap_or_default();
            return self.of_server(tool, server, &words);
        }
        if let Some((path, name)) = python_handler(tool) {
            let module = world.sources().by_path(path);
            let function = world.functions().find(|(_, f)| {
                f.class.is_none()
                    && &*f.name == name
                    && module.is_none_or(|m| m == f.module)
                    && !f.qualified.contains('<')
            });
            if let Some(function) = function.map(|(id, _)| id) {
                return Some(body::of_function(world, function));
            }
            let class =
                world.classes().find(|(_, c)| &*c.name == name && module.is_none_or(|m| m == c.module));
            if let Some(class) = class.map(|(id, _)| id) {
                return body::of_class(world, class);
            }
        }
        // A function that is written in another is a value for each call of that one.
        let values: Vec<FunctionId> =
            world.functions().filter(|(_, f)| f.name_span == tool.span).map(|(id, _)| id).collect();
        if let Some(facts) = of_functions(world, values) {
            return Some(facts);
        }
        let class = world.objects().find(|(_, o)| o.span == tool.span && o.class.is_some());
        if let Some(class) = class.and_then(|(_, o)| o.class) {
            return body::of_class(world, class);
        }
        let id = object?;
        let object = world.object(id);
        // `GmailToolkit(…).get_tools()`, perhaps among the arguments of the agent that has the place.
        if let Some(base) = toolkit(world, id) {
            let kit = world.object(base);
            let known = registry::tool(&kit.callee)?;
            let facts = documented(kit.short(), known, tool.span);
            return Some(ToolFacts { toolkit: Some(kit.short().into()), ..facts });
        }
        if let Some(known) = registry::tool(&object.callee) {
            return Some(documented(object.short(), known, tool.span));
        }
        // `FunctionTool(func=read)`.
        let given = object.args.iter().find_map(|a| match a.value.kind {
            PyKind::Function(function) => Some(function),
            _ => None,
        });
        if let Some(function) = given {
            return Some(body::of_function(world, function));
        }
        // A server that the provider of the model asks: `HostedMCPTool(tool_config={"server_url": …})`.
        if !SERVERS.contains(&object.short()) {
            return None;
        }
        let words = strings(world, id);
        let addresses: Vec<&str> = words.iter().map(String::as_str).collect();
        let known = registry::server("", &addresses)?;
        Some(ToolFacts::of_server(known, None, tool.span))
    }

    /// Facts about a tool of a configuration.
    fn of_document(&self, file: &File, tool: &ToolDecl) -> Option<ToolFacts> {
        // What is listed by its name is defined under it.
        let defined = file
            .documents
            .iter()
            .flat_map(|d| d.root().descendants())
            .filter_map(|n| n.get(&tool.name))
            .find(|n| n.is_mapping() && TYPES.iter().any(|k| n.get(k).is_some()));
        let around = node_at(file, tool.span);
        for node in defined.into_iter().chain(around) {
            for text in TYPES.iter().filter_map(|key| node.get(key)?.as_str()) {
                let own = format!("{}:{text}", self.framework);
                if let Some(known) = registry::tool(&own).or_else(|| registry::tool(text)) {
                    let facts = documented(text, known, tool.span);
                    return Some(limited(facts, node, known.operation.as_deref()));
                }
            }
        }
        let own = format!("{}:{}", self.framework, tool.name);
        if let Some(known) = registry::tool(&own) {
            return Some(documented(&tool.name, known, tool.span));
        }
        if let Some(server) = mcp_server(tool) {
            // The place of a listed server begins at its name, so the list itself is what is around it.
            let own = around.map(|n| n.get(server).filter(|own| own.is_mapping()).unwrap_or(n));
            let words: Vec<String> = own
                .map(|n| {
                    n.descendants().filter_map(|d| d.as_str()).take(MAX_WORDS.0).map(str::to_string).collect()
                })
                .unwrap_or_default();
            return self.of_server(tool, server, &words);
        }
        None
    }

    /// Facts about a tool of a server: what the registry says of the server that these words, or those of a
    /// list, start.
    fn of_server(&self, tool: &ToolDecl, name: &str, words: &[String]) -> Option<ToolFacts> {
        let listed = self.servers.iter().find(|s| s.name == name);
        let all: Vec<&str> =
            words.iter().chain(listed.iter().flat_map(|s| &s.words)).map(String::as_str).collect();
        let known = registry::server(name, &all)?;
        let one = (*tool.name != *name).then_some(&*tool.name);
        Some(ToolFacts::of_server(known, one, listed.map_or(tool.span, |s| s.span)))
    }
}

/// Documented starts of the programs of a file: triggers of workflows, and agents that bring in text by
/// themselves. Each has its name, its place and the facts about it.
pub fn triggers(file: &File) -> Vec<(String, Span, ToolFacts)> {
    let mut out = Vec::new();
    let uses = file.python.as_ref().map(|module| module.uses().names).unwrap_or_default();
    for used in uses.iter().filter(|u| u.call.is_some()) {
        let python::Target::Name(name) = &used.target else { continue };
        let Some(known) = registry::trigger(name) else { continue };
        let short = name.rsplit('.').next().unwrap_or(name).to_string();
        out.push((short, used.span, documented(name, known, used.span)));
    }
    let nodes = file.documents.iter().flat_map(|d| d.root().descendants()).filter(|n| n.is_mapping());
    for node in nodes {
        let Some(kind) = node.get("type").and_then(|t| t.as_str()) else { continue };
        let Some(known) = registry::trigger(kind) else { continue };
        let name = node.get("name").and_then(|n| n.as_str()).unwrap_or(kind).to_string();
        out.push((name, node.head(), documented(kind, known, node.head())));
    }
    out
}

impl ToolFacts {
    /// Facts about a tool of a documented server, or about all of them together.
    pub fn of_server(server: &'static Server, tool: Option<&str>, span: Span) -> ToolFacts {
        let (effects, named) = match tool {
            Some(tool) => server.effects_of(tool),
            None => (server.effects(), !server.tools.is_empty()),
        };
        let entry = match tool {
            Some(tool) => format!("{} of {}", tool, server.name),
            None => server.name.clone(),
        };
        let (confidence, knowledge) = match named {
            true => (Confidence::Sure, Knowledge::Known),
            false => (Confidence::Likely, Knowledge::Partly),
        };
        ToolFacts::of(registered(&entry, &server.source, &server.date, span, &effects, confidence), knowledge)
    }

    /// Returns true if the tool has an effect.
    pub fn has(&self, effect: Effect) -> bool {
        self.facts.iter().any(|f| f.effect == effect)
    }
}

/// Effects of the values of one function, the last ones of many.
fn of_functions(world: &mut World<'_>, mut values: Vec<FunctionId>) -> Option<ToolFacts> {
    values.reverse();
    let mut each = values.into_iter().take(MAX_VALUES);
    let mut facts = body::of_function(world, each.next()?);
    for function in each {
        facts.join(body::of_function(world, function));
    }
    Some(facts)
}

fn documented(name: &str, known: &'static Documented, span: Span) -> ToolFacts {
    let entry = format!("{name} of {}", known.framework);
    let facts = registered(&entry, &known.source, &known.date, span, &known.effects, Confidence::Sure);
    ToolFacts::of(facts, Knowledge::Known)
}

/// Effects that an entry of the registry documents.
fn registered(
    entry: &str,
    source: &'static str,
    date: &'static str,
    span: Span,
    effects: &[Effect],
    confidence: Confidence,
) -> Vec<Fact> {
    let evidence = Evidence::Registry { entry: entry.into(), source, date, span };
    effects.iter().map(|effect| Fact { effect: *effect, evidence: evidence.clone(), confidence }).collect()
}

/// The server that a tool is of, as its handler says.
fn mcp_server(tool: &ToolDecl) -> Option<&str> {
    let Data::Record(fields) = tool.handler.as_ref()? else { return None };
    fields.iter().find(|(n, _)| &**n == "mcp").and_then(|(_, v)| v.as_str())
}

/// The module and the name of the function or class that a tool is, as its handler says.
fn python_handler(tool: &ToolDecl) -> Option<(&str, &str)> {
    let Data::Record(fields) = tool.handler.as_ref()? else { return None };
    let (_, words) = fields.iter().find(|(n, _)| &**n == "python")?;
    let Data::List(words) = words else { return None };
    match &words[..] {
        [path, name] => Some((path.as_str()?, name.as_str()?)),
        _ => None,
    }
}

/// Keys of a configuration under which the type of a tool stands.
const TYPES: &[&str] = &["_type", "type", "class", "class_name", "provider"];

/// Parameters of nodes that name who gets a message.
const RECIPIENTS: &[&str] = &["sendTo", "toEmail", "toRecipients", "chatId"];

/// The facts about a node of a workflow, as its operation, its statement and its address limit them.
fn limited(mut facts: ToolFacts, node: Node<'_>, usual: Option<&str>) -> ToolFacts {
    let said = |key: &str| node.at(&["parameters", key]).and_then(|v| v.as_str());
    // What is executed may do either.
    let usual = match said("resource") {
        None | Some("message") => usual,
        // Other resources are looked at where nothing else is chosen.
        Some(_) => usual.map(|_| "get"),
    };
    let operation = said("operation").or(usual).filter(|o| !o.starts_with("execute"));
    if let Some(operation) = operation
        && let Some(reads) = registry::is_read(operation)
    {
        if facts.facts.iter().any(|f| f.effect.has(Role::Acts) != reads) {
            facts.facts.retain(|f| f.effect.has(Role::Acts) != reads);
        }
        // Labels and drafts are changed, and nothing is sent.
        if !reads && !registry::sends(operation) {
            facts
                .facts
                .iter_mut()
                .filter(|f| f.effect.has(Role::Outward))
                .for_each(|f| f.effect = Effect::AccountWrite);
        }
    }
    // Whoever is written out in the workflow is sent to, whatever the model says.
    if RECIPIENTS.iter().find_map(|key| said(key)).is_some_and(|to| !to.starts_with('=')) {
        let sending = |f: &&mut Fact| matches!(f.effect, Effect::MailSend | Effect::MessageSend);
        facts.facts.iter_mut().filter(sending).for_each(|f| f.effect = Effect::ServiceWrite);
    }
    let statement = said("query").map(|q| q.trim_start_matches('=').trim_start());
    if statement.is_some_and(|q| q.get(..6).is_some_and(|w| w.eq_ignore_ascii_case("select"))) {
        facts.facts.retain(|f| f.effect != Effect::DatabaseWrite);
    }
    if let (Some(url), Some(pattern)) = (said("url"), facts.facts.first().cloned()) {
        let sends = said("method").or(said("requestMethod")).is_some_and(|m| !m.eq_ignore_ascii_case("get"));
        let mut effects = match body::fixed_host(url.trim_start_matches('=')) {
            Some(host) if body::is_public(host) => vec![Effect::PublicRead],
            Some(_) => vec![Effect::ServiceRead],
            None => vec![Effect::PublicRead, Effect::AddressRequest],
        };
        effects.extend(sends.then_some(Effect::ServiceWrite));
        facts.facts = effects.into_iter().map(|effect| Fact { effect, ..pattern.clone() }).collect();
    }
    facts
}

/// The object whose tools a call gives, or one of the arguments of a call.
fn toolkit(world: &World<'_>, id: ObjectId) -> Option<ObjectId> {
    let kit = |id: ObjectId| {
        let object = world.object(id);
        object.base.filter(|b| MAKERS.contains(&object.short()) && world.object(*b).class.is_none())
    };
    let args = world.object(id).args.iter();
    kit(id).or_else(|| args.filter_map(|a| world.object_of(&a.value)).find_map(|(arg, _)| kit(arg)))
}

/// The innermost mapping of a file's documents around a place.
fn node_at(file: &File, at: Span) -> Option<Node<'_>> {
    let nodes = file.documents.iter().flat_map(|d| d.root().descendants());
    let around = |n: &Node<'_>| {
        let span = n.span();
        n.is_mapping() && span.file == at.file && span.start <= at.start && at.start < span.end
    };
    nodes.filter(around).min_by_key(|n| n.span().end - n.span().start)
}

/// The texts among the arguments of a call, at any depth.
fn strings(world: &World<'_>, id: ObjectId) -> Vec<String> {
    let mut out = Vec::new();
    let mut todo: Vec<(&Value, u32)> = world.object(id).args.iter().map(|a| (&a.value, 0)).collect();
    while let Some((value, depth)) = todo.pop() {
        if out.len() >= MAX_WORDS.0 || depth > MAX_WORDS.1 {
            continue;
        }
        let value = world.resolve_env(value);
        match &value.kind {
            PyKind::Str(text) => out.push(text.to_string()),
            PyKind::List(id) => todo.extend(world.list(*id).items.iter().map(|v| (v, depth + 1))),
            PyKind::Dict(id) => todo.extend(world.dict(*id).entries.iter().map(|(_, v)| (v, depth + 1))),
            PyKind::Object(id) => todo.extend(world.object(*id).args.iter().map(|a| (&a.value, depth + 1))),
            _ => {}
        }
    }
    out
}
