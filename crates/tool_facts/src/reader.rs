//! Facts about the tools of a compiled file.

use crate::body;
use crate::effect::{Effect, Role};
use crate::fact::{Confidence, Evidence, Fact, Knowledge, ToolFacts};
use crate::registry::{self, Documented, Server};
use crate::steps::{self, Steps};
use crate::words;
use core_ir::{Data, ToolDecl};
use diagnostics::Span;
use frontend_kit::doc::Node;
use frontend_kit::{File, Modules, Project, modules};
use python::{ClassId, FunctionId, Limits, ObjectId, Piece, PyKind, Value, World};
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

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
#[derive(Clone, Debug)]
pub struct Reader<'p> {
    project: &'p Project,
    main: usize,
    framework: &'static str,
    servers: &'p [ServerDef],
    /// Modules that are servers, by the numbers of their files, with their ports.
    listening: OnceCell<Vec<(usize, Vec<u16>)>>,
}

/// Longer names are not split to their end.
const MAX_NAME: usize = 200;

/// Values of a call that are searched for words of a command, and their nesting.
const MAX_WORDS: (usize, u32) = (200, 6);

/// Servers of a project that are looked at.
const MAX_SERVERS: usize = 40;

/// Calls and values that a call is followed to.
const MAX_PROVENANCE: usize = 200;

/// The port of a server that states none, in the official SDK and FastMCP.
const DEFAULT_PORT: u16 = 8000;

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
        Reader { project, main, framework, servers, listening: OnceCell::new() }
    }

    /// Returns the facts about each of the tools.
    pub fn facts(&self, tools: &[&ToolDecl]) -> Vec<ToolFacts> {
        let Some(file) = self.project.files.get(self.main) else {
            return tools.iter().map(|_| ToolFacts::unknown()).collect();
        };
        let mut started: HashMap<usize, Option<ToolFacts>> = HashMap::new();
        let found: Vec<(Option<ToolFacts>, Vec<String>)> = match &file.python {
            None => tools.iter().map(|t| (self.of_document(file, t), self.command(file, t))).collect(),
            Some(source) => self.modules().among(source.clone(), Limits::default(), None, |mut world, _| {
                let words = |world: &World<'_>, t: &ToolDecl| {
                    let made = world.objects().filter(|(_, o)| o.span == t.span && o.class.is_none()).last();
                    let server = made.filter(|(id, _)| {
                        let all = provenance(world, *id);
                        mcp_server(t).is_some() || all.iter().any(|o| is_client(world.object(*o).short()))
                    });
                    let words = match server {
                        Some((id, _)) => strings(world, id),
                        // A server that a dictionary describes.
                        None if mcp_server(t).is_some() => written(world, t.span),
                        None => return Vec::new(),
                    };
                    self.with_files(words)
                };
                let of = |t: &&ToolDecl| {
                    let words = words(&world, t);
                    (self.of_module(&mut world, t, &words), words)
                };
                tools.iter().map(of).collect()
            }),
        };
        let each = tools.iter().zip(found);
        each.map(|(tool, (facts, words))| {
            // Servers that the project has itself.
            let mut all = facts;
            for file in self.own_servers(&words) {
                let own = started.entry(file).or_insert_with(|| self.own_server(file)).clone();
                match (&mut all, own) {
                    (Some(all), Some(own)) => {
                        let toolkit = all.toolkit.take().or(own.toolkit.clone());
                        all.join(own);
                        all.toolkit = toolkit;
                    }
                    (None, own) => all = own,
                    (Some(_), None) => {}
                }
            }
            self.completed(tool, all)
        })
        .collect()
    }

    fn modules(&self) -> Arc<Modules> {
        self.project.modules.clone().unwrap_or_else(|| modules(&self.project.files))
    }

    /// The words that start the server of a tool of a configuration.
    fn command(&self, file: &File, tool: &ToolDecl) -> Vec<String> {
        let Some(server) = mcp_server(tool) else { return Vec::new() };
        let listed = self.servers.iter().filter(|s| s.name == server).flat_map(|s| s.words.iter().cloned());
        let around = node_at(file, tool.span).and_then(|n| n.get(server));
        let texts = around.into_iter().flat_map(|n| n.descendants()).filter_map(|d| d.as_str());
        listed.chain(texts.map(str::to_string)).take(MAX_WORDS.0).collect()
    }

    /// Words that start or reach servers, with those of the files of the project that they name: the lists of
    /// servers, and settings that a program reads.
    fn with_files(&self, mut words: Vec<String>) -> Vec<String> {
        let named = |file: &&File| words.iter().any(|w| is_settings(w) && is_path_of(w, &file.path));
        let files: Vec<&File> = self.project.files.iter().filter(named).collect();
        for file in files {
            let nodes = || file.documents.iter().flat_map(|d| d.root().descendants());
            let starts = |n: &Node<'_>| n.get("command").is_some() || n.get("url").is_some();
            let started = nodes().filter(starts).flat_map(|n| n.descendants()).filter_map(|n| n.as_str());
            let addresses = nodes().filter_map(|n| n.as_str()).filter(|t| t.contains("://"));
            words.extend(started.chain(addresses).take(MAX_WORDS.0).map(str::to_string));
        }
        words
    }

    /// The modules of the project that are servers which these words start or reach: by their path, by their
    /// name after `-m`, or by the port that they listen on.
    fn own_servers(&self, words: &[String]) -> Vec<usize> {
        let mut out: Vec<usize> = Vec::new();
        let mut add = |index: usize| {
            if !out.contains(&index) && out.len() < MAX_SERVERS {
                out.push(index);
            }
        };
        for (i, word) in words.iter().enumerate() {
            let module = (i > 0 && words[i - 1] == "-m").then(|| word.replace('.', "/") + ".py");
            let Some(path) = module.or_else(|| word.ends_with(".py").then(|| word.clone())) else { continue };
            let files = || self.project.files.iter().enumerate().filter(|(_, f)| f.python.is_some());
            let mut exact = files().filter(|(_, f)| is_path_of(&path, &f.path));
            let last = path.rsplit(['/', '\\']).next().unwrap_or(&path);
            let mut named = files().filter(|(_, f)| is_path_of(last, &f.path));
            match (exact.next(), exact.next(), named.next(), named.next()) {
                (Some((one, _)), None, ..) | (None, _, Some((one, _)), None) => add(one),
                _ => {}
            }
        }
        let addresses: Vec<(&str, Option<u16>)> = words.iter().filter_map(|w| local_address(w)).collect();
        if addresses.is_empty() {
            return out;
        }
        for (host, port) in addresses {
            for (index, ports) in self.listening() {
                let path = self.project.files[*index].path.to_ascii_lowercase().replace('-', "_");
                let host = host.to_ascii_lowercase().replace('-', "_");
                let by_name = !is_loopback(&host) && path.split(['/', '.']).any(|part| part == host);
                if by_name || port.is_some_and(|p| ports.contains(&p)) {
                    add(*index);
                }
            }
        }
        out
    }

    /// The modules of the project that are servers, with the ports that they listen on.
    fn listening(&self) -> &[(usize, Vec<u16>)] {
        self.listening.get_or_init(|| {
            let servers = self.project.files.iter().enumerate().filter(|(_, f)| {
                f.python.as_ref().is_some_and(|m| m.imports(&["mcp", "fastmcp"])) && is_server_module(f)
            });
            let ports = |(index, file): (usize, &File)| {
                let source = file.python.clone()?;
                let ports = self.modules().among(source, Limits::default(), None, |world, _| {
                    let given = world.objects().filter(|(_, o)| o.span.file == file.id);
                    let mut ports: Vec<u16> = given
                        .filter_map(|(_, o)| o.arg("port"))
                        .filter_map(|a| match world.resolve_env(&a.value).kind {
                            PyKind::Int(n) => u16::try_from(n).ok(),
                            _ => None,
                        })
                        .collect();
                    if ports.is_empty() {
                        ports.push(DEFAULT_PORT);
                    }
                    ports
                });
                Some((index, ports))
            };
            servers.take(MAX_SERVERS).filter_map(ports).collect()
        })
    }

    /// Facts about all tools of a server in Python that a module of the project is, `@mcp.tool()`.
    fn own_server(&self, index: usize) -> Option<ToolFacts> {
        let file = self.project.files.get(index)?;
        let last = |p: &str| p.rsplit(['/', '\\']).next().unwrap_or(p).to_string();
        let source = file.python.clone()?;
        self.modules().among(source, Limits::default(), None, |mut world, _| {
            let is_tool = |d: &Value| {
                let name = world.name_of(d);
                name.is_some_and(|n| {
                    (n.starts_with("mcp.") || n.starts_with("fastmcp."))
                        && n.trim_end_matches("[]").ends_with(".tool")
                })
            };
            let mut places: HashSet<Span> = HashSet::new();
            let tools: Vec<FunctionId> = world
                .functions()
                .filter(|(_, f)| f.span.file == file.id && f.decorators.iter().any(is_tool))
                .filter(|(_, f)| places.insert(f.name_span))
                .map(|(id, _)| id)
                .collect();
            let mut each = tools.into_iter();
            let mut all = body::of_function(&mut world, each.next()?);
            for tool in each {
                all.join(body::of_function(&mut world, tool));
            }
            Some(ToolFacts { toolkit: Some(last(&file.path).as_str().into()), ..all })
        })
    }

    /// Reads the steps of the module, and returns for each of `units` the objects that it is made of, by
    /// their places. Nothing is read of a configuration.
    pub fn read_steps(&self, steps: &mut Steps, units: &[Span]) -> Vec<HashSet<Span>> {
        let nothing = || units.iter().map(|u| HashSet::from([*u])).collect();
        let Some(file) = self.project.files.get(self.main) else { return nothing() };
        let Some(source) = &file.python else { return nothing() };
        self.modules().among(source.clone(), Limits::default(), None, |world, _| {
            let parts = |unit: &Span| {
                let made = world.objects().filter(|(_, o)| o.span == *unit).map(|(id, _)| id);
                made.take(MAX_VALUES).flat_map(|id| steps::reached(&world, id)).chain([*unit]).collect()
            };
            let parts = units.iter().map(parts).collect();
            steps.read(&world, file.id);
            parts
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
        let brought = registry::tool(&format!("{}:{}", self.framework, tool.name));
        if let Some(known) = brought.or_else(|| registry::called(&tool.name))
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
            // A body that reads something says what the tool reads better than a verb does.
            let reads = |e: Effect| e.has(Role::Untrusted) || e.has(Role::Private) && !e.has(Role::Acts);
            let read =
                facts.facts.iter().any(|f| reads(f.effect) && matches!(f.evidence, Evidence::Call { .. }));
            let adds = |f: &Fact| !read || !(reads(f.effect) || f.effect == Effect::AddressRequest);
            guess.facts.into_iter().filter(adds).for_each(|f| facts.add(f));
        }
        facts
    }

    /// Facts about a tool of a module of Python.
    fn of_module(&self, world: &mut World<'_>, tool: &ToolDecl, words: &[String]) -> Option<ToolFacts> {
        // The last of several calls of a function is made with what is known.
        let object = world
            .objects()
            .filter(|(_, o)| o.span == tool.span && o.class.is_none())
            .last()
            .map(|(id, _)| id);
        if let Some(server) = mcp_server(tool) {
            return self.of_server(tool, server, words).or_else(|| of_client(words, server, tool.span));
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
                return body::of_class(world, class, None);
            }
        }
        // A function that is written in another is a value for each call of that one.
        let values: Vec<FunctionId> =
            world.functions().filter(|(_, f)| f.name_span == tool.span).map(|(id, _)| id).collect();
        if let Some(facts) = of_functions(world, values) {
            return Some(facts);
        }
        // Several classes of tools may be made at one place: `[make() for make in CLASSES]`.
        let made: Vec<(ObjectId, ClassId)> = world
            .objects()
            .filter(|(_, o)| o.span == tool.span)
            .filter_map(|(id, o)| Some((id, o.class?)))
            .collect();
        let named = made.iter().find(|(id, class)| is_named(world, *id, *class, &tool.name));
        if let Some((this, class)) = named.or(made.first()).copied() {
            return body::of_class(world, class, Some(this));
        }
        let id = object.or_else(|| in_function_around(world, tool.span))?;
        let object = world.object(id);
        // `GmailToolkit(…).get_tools()`.
        if let Some(base) = toolkit(world, id) {
            let kit = world.object(base);
            if is_client(kit.short()) {
                return of_client(words, kit.short(), tool.span);
            }
            if let Some((short, known)) = of_toolkit(&kit.callee) {
                let facts = documented(&short, known, tool.span);
                return Some(ToolFacts { toolkit: Some(short.as_str().into()), ..facts });
            }
        }
        if let Some(known) = registry::tool(&object.callee) {
            let facts = documented(object.short(), known, tool.span);
            return Some(match reach(world, id) {
                Reach::Nothing => confined(facts, &[Effect::ConfinedCode]),
                Reach::Network => {
                    let network = [Effect::ConfinedCode, Effect::PublicRead, Effect::AddressRequest];
                    confined(facts, &network)
                }
                Reach::Anything => facts,
            });
        }
        // `FunctionTool(func=read)`, `Tool(func=search.run)`, `LangchainTool(tool=WikipediaQueryRun())`.
        for given in object.args.clone() {
            match given.value.kind {
                PyKind::Function(function) | PyKind::Bound(_, function) => {
                    return Some(body::of_function(world, function));
                }
                PyKind::Member(on, ref method) => {
                    if let Some(facts) = body::of_member(world, on, method, given.value.span) {
                        return Some(facts);
                    }
                }
                PyKind::Object(id) => {
                    let inner = world.object(id);
                    if let Some(class) = inner.class {
                        if let Some(facts) = body::of_class(world, class, Some(id)) {
                            return Some(facts);
                        }
                    } else if let Some(known) = registry::tool(&inner.callee) {
                        return Some(documented(inner.short(), known, tool.span));
                    }
                }
                _ => {}
            }
        }
        let object = world.object(id);
        // A call of the program itself that is a part of the term.
        if let Some(facts) = body::of_call(world, id).filter(|f| !f.facts.is_empty()) {
            return Some(facts);
        }
        // A server that the provider of the model asks, `HostedMCPTool(tool_config={"server_url": …})`, or a
        // client.
        if SERVERS.contains(&object.short()) || is_client(object.short()) {
            let facts = of_client(words, object.short(), tool.span)?;
            return Some(ToolFacts { toolkit: None, ..facts });
        }
        if object.short() == "load_tools" {
            return loaded(world, id, tool.span);
        }
        // `toolset.get_tools(actions=[Action.GMAIL_SEND_EMAIL])`: tools of a catalog, by their names.
        if object.package().starts_with("composio")
            && let Some(facts) = selected(world, id, tool.span)
        {
            return Some(facts);
        }
        // The place of an agent is that of tools which its framework brings.
        if object.arg("tools").is_some() {
            return None;
        }
        // What comes from a client or a toolkit in some way: `load_mcp_tools(session)`, one of its tools.
        let from: Vec<ObjectId> = provenance(world, id);
        if let Some(client) = from.iter().map(|o| world.object(*o)).find(|o| is_client(o.short())) {
            return of_client(words, client.short(), tool.span);
        }
        from.iter().map(|o| world.object(*o)).filter(|o| o.class.is_none()).find_map(|o| {
            let (short, known) = of_toolkit(&o.callee)?;
            let facts = documented(&short, known, tool.span);
            Some(ToolFacts { toolkit: Some(short.as_str().into()), ..facts })
        })
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
                let known = registry::tool(&own).or_else(|| registry::tool(text));
                // A node of a workflow does what the tool of its name does.
                let step = text.starts_with("n8n-nodes-base.") && !text.ends_with("Tool");
                let known = known.or_else(|| registry::tool(&format!("{text}Tool")).filter(|_| step));
                if let Some(known) = known {
                    let facts = documented(text, known, tool.span);
                    let facts = limited(facts, node, known.operation.as_deref());
                    return Some(if step { of_step(facts, file, node) } else { facts });
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
        // Some clients put the server in front: `mcp__github__get_issue`.
        let own = tool.name.strip_prefix("mcp__").map_or(&*tool.name, |rest| {
            rest.strip_prefix(name).map_or(rest, |tool| tool.strip_prefix("__").unwrap_or(name))
        });
        let one = (own != name).then_some(own);
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
        if !is_open(node, kind) {
            continue;
        }
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

/// Returns true if an instance of a class of tools has a name: by what it is made with, or by its class.
fn is_named(world: &World<'_>, this: ObjectId, class: ClassId, name: &str) -> bool {
    let object = world.object(this);
    let set = object.attrs.iter().find(|(n, _)| &**n == "name").map(|(_, v)| v.clone());
    let own = set.or_else(|| object.arg("name").map(|a| a.value.clone()));
    let value = own.or_else(|| Some(world.class_lookup(class, "name")?.0));
    match value.as_ref().and_then(|v| world.str(v)) {
        Some(text) => text == name,
        None => *world.class(class).name == *name,
    }
}

/// The call at a place of a function that the program does not call before it runs: a node of a graph.
fn in_function_around(world: &mut World<'_>, at: Span) -> Option<ObjectId> {
    let around = |s: Span| s.file == at.file && s.start <= at.start && at.end <= s.end;
    let (function, _) =
        world.functions().filter(|(_, f)| around(f.span)).min_by_key(|(_, f)| f.span.end - f.span.start)?;
    let made = body::calls(world, function);
    made.objects.into_iter().rev().find(|id| {
        let object = world.object(*id);
        object.span == at && object.class.is_none()
    })
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

/// Modules that smolagents authorizes by itself, and others by which code reaches neither files nor the
/// network.
///
/// Source: smolagents 1.26.0: `utils.py`, `BASE_BUILTIN_MODULES`.
const CONFINED_MODULES: &[&str] = &[
    "base64",
    "bisect",
    "calendar",
    "cmath",
    "collections",
    "copy",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "json",
    "math",
    "operator",
    "queue",
    "random",
    "re",
    "secrets",
    "stat",
    "statistics",
    "string",
    "textwrap",
    "time",
    "typing",
    "unicodedata",
    "uuid",
    "zoneinfo",
];

/// Modules that reach the network and open no files.
const NETWORK_MODULES: &[&str] = &["httpx", "requests"];

/// Extent of what code reaches by the modules that it may import.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Nothing,
    Network,
    Anything,
}

/// Returns what the code of an interpreter of smolagents reaches; anything for any other call.
fn reach(world: &World<'_>, id: ObjectId) -> Reach {
    let object = world.object(id);
    let (imports, positional) = match object.short() {
        "CodeAgent" => ("additional_authorized_imports", 2),
        "PythonInterpreterTool" => ("authorized_imports", 0),
        _ => return Reach::Anything,
    };
    let given_later = || {
        let set = |name: &str| object.attr(name).is_some();
        set(imports) || set("authorized_imports") || set("python_executor")
    };
    let positions = object.args.iter().filter(|a| a.name.is_none()).count();
    if object.package() != "smolagents"
        || object.open.is_some()
        || positions > positional
        || object.arg("executor").is_some()
        || given_later()
    {
        return Reach::Anything;
    }
    let Some(given) = object.arg(imports) else { return Reach::Nothing };
    let value = world.resolve_env(&given.value);
    let list = match value.kind {
        PyKind::None => return Reach::Nothing,
        PyKind::List(list) if world.list(list).open.is_none() => world.list(list),
        _ => return Reach::Anything,
    };
    let of = |module: &Value| {
        let name = world.resolve_env(module).as_str().unwrap_or_default();
        match name.split('.').next().unwrap_or(name) {
            first if CONFINED_MODULES.contains(&first) => Reach::Nothing,
            first if NETWORK_MODULES.contains(&first) => Reach::Network,
            _ => Reach::Anything,
        }
    };
    list.items.iter().map(of).max().unwrap_or(Reach::Nothing)
}

/// The facts about a tool whose code has these effects.
fn confined(facts: ToolFacts, effects: &[Effect]) -> ToolFacts {
    let (code, others): (Vec<Fact>, Vec<Fact>) =
        facts.facts.into_iter().partition(|f| f.effect == Effect::Code);
    let mut out = ToolFacts { facts: others, ..facts };
    for fact in code {
        effects.iter().for_each(|effect| out.add(Fact { effect: *effect, ..fact.clone() }));
    }
    out
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
    let texts: Vec<&str> =
        node.get("parameters").into_iter().flat_map(|p| p.descendants()).filter_map(|n| n.as_str()).collect();
    // Whoever is invited gets what is in the invitation.
    let guests = node.at(&["parameters", "additionalFields", "attendees"]);
    let chosen =
        guests.is_some_and(|g| g.descendants().any(|n| n.as_str().is_some_and(|t| t.starts_with('='))));
    if chosen && let Some(pattern) = facts.facts.iter().find(|f| f.effect.has(Role::Acts)).cloned() {
        facts.facts.push(Fact { effect: Effect::MailSend, ..pattern });
    }
    // What is written out in full leaves nothing to decide but whether it happens.
    let decides = |t: &&str| t.starts_with('=') || t.contains('{') || t.contains("$fromAI");
    let content = ["message", "text", "body", "jsonBody", "content", "html", "command", "postContent"];
    if content.iter().any(|key| said(key).is_some_and(|t| !t.is_empty())) && !texts.iter().any(decides) {
        facts.facts.retain(|f| !f.effect.has(Role::Acts) && !f.effect.has(Role::Outward));
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

/// Returns true if anyone may start a workflow by a trigger of n8n: a chat that is published, a webhook that
/// asks for no password.
fn is_open(node: Node<'_>, kind: &str) -> bool {
    let said = |key: &str| node.at(&["parameters", key]);
    if kind.ends_with(".chatTrigger") {
        return said("public").and_then(|p| p.as_bool()) == Some(true);
    }
    said("authentication").and_then(|a| a.as_str()).is_none_or(|how| how == "none")
}

/// The facts about a node that is a step of a workflow and no tool of an agent. The workflow decides that it
/// is carried out, and what is done with an answer is its purpose: what counts is what a model's answer can
/// make it do to others.
fn of_step(mut facts: ToolFacts, file: &File, node: Node<'_>) -> ToolFacts {
    let name = node.get("name").and_then(|n| n.as_str()).unwrap_or("");
    let answers = after_model(file, name);
    let said = |key: &str| node.at(&["parameters", key]).and_then(|v| v.as_str());
    let asks_database = said("query").is_some_and(|q| q.starts_with('=') && q.contains("{{"));
    facts.facts.retain_mut(|fact| match fact.effect {
        Effect::MailSend | Effect::MessageSend => {
            fact.effect = Effect::Reply;
            answers
        }
        Effect::Process | Effect::Publish | Effect::Payment => answers,
        Effect::DatabaseWrite => answers && asks_database,
        effect => !effect.has(Role::Acts),
    });
    facts
}

/// Returns true if a step of a workflow of n8n follows one that asks a model.
fn after_model(file: &File, name: &str) -> bool {
    const MAX_STEPS: usize = 2_000;
    for root in file.documents.iter().map(|d| d.root()) {
        let asks = |name: &str| {
            let nodes = root.get("nodes").into_iter().flat_map(|n| n.items());
            let mut own = nodes.filter(|n| n.get("name").and_then(|n| n.as_str()) == Some(name));
            own.next()
                .and_then(|n| n.get("type")?.as_str())
                .is_some_and(|t| t.contains("n8n-nodes-langchain."))
        };
        let mut before: HashMap<&str, Vec<&str>> = HashMap::new();
        for from in root.get("connections").into_iter().flat_map(|c| c.entries()) {
            let Some(source) = from.key.text() else { continue };
            let outputs = from.value.get("main").into_iter().flat_map(|m| m.items());
            for to in outputs.flat_map(|o| o.items()).filter_map(|t| t.get("node")?.as_str()) {
                before.entry(to).or_default().push(source);
            }
        }
        let mut seen: HashSet<&str> = HashSet::from([name]);
        let mut todo = vec![name];
        for _ in 0..MAX_STEPS {
            let Some(at) = todo.pop() else { break };
            for from in before.get(at).into_iter().flatten() {
                if asks(from) {
                    return true;
                }
                if seen.insert(from) {
                    todo.push(from);
                }
            }
        }
    }
    false
}

/// Returns true for a class or function by which programs reach MCP servers: `MultiServerMCPClient`,
/// `BasicMCPClient`, `load_mcp_tools`, and the parameters that start one.
fn is_client(short: &str) -> bool {
    const PARAMETERS: &[&str] = &[
        "SseServerParams",
        "SseServerParameters",
        "StdioConnectionParams",
        "StdioServerParameters",
        "StdioServerParams",
        "StreamableHttpServerParams",
    ];
    let parts = crate::words::words(short, MAX_NAME);
    parts.iter().any(|w| w.starts_with("mcp") || w.ends_with("mcp")) || PARAMETERS.contains(&short)
}

/// The documented toolkit that a call is of: `GmailToolkit`, `PlayWrightBrowserToolkit.from_browser`.
fn of_toolkit(callee: &str) -> Option<(String, &'static Documented)> {
    const MAX_PARTS: usize = 3;
    let mut name = callee.trim_end_matches("[]");
    for _ in 0..MAX_PARTS {
        let short = name.rsplit('.').next().unwrap_or(name);
        if short.starts_with(|c: char| c.is_ascii_uppercase())
            && let Some(known) = registry::tool(name)
        {
            return Some((short.to_string(), known));
        }
        name = name.rsplit_once('.')?.0;
    }
    None
}

/// Facts about the tools that `load_tools(["terminal", …])` of LangChain gives by their names.
fn loaded(world: &World<'_>, id: ObjectId, span: Span) -> Option<ToolFacts> {
    let names = strings(world, id);
    let of_name =
        |name: &String| Some(documented(name, registry::tool(&format!("load_tools:{name}"))?, span));
    let all = names.iter().filter_map(of_name).reduce(ToolFacts::joined)?;
    Some(ToolFacts { toolkit: Some("load_tools".into()), ..all })
}

/// Facts about tools that are selected by their names, `Action.GMAIL_SEND_EMAIL` or `"GMAIL_SEND_EMAIL"`.
fn selected(world: &World<'_>, id: ObjectId, span: Span) -> Option<ToolFacts> {
    let mut names: Vec<String> = strings(world, id);
    for arg in &world.object(id).args {
        let all = world.items(&arg.value).unwrap_or(std::slice::from_ref(&arg.value));
        names.extend(all.iter().filter_map(|v| world.name_of(v)).map(|n| n.to_string()));
    }
    let of_name = |name: &String| words::by_name(name.rsplit('.').next().unwrap_or(name), span);
    let known = names.iter().map(of_name).filter(|facts| !facts.facts.is_empty());
    let all = known.reduce(ToolFacts::joined)?;
    Some(ToolFacts { toolkit: Some(world.object(id).package().into()), ..all })
}

/// Returns true if a text names a file that holds settings or a list of servers.
fn is_settings(text: &str) -> bool {
    [".json", ".yaml", ".yml"].iter().any(|end| text.ends_with(end))
}

/// Returns true if a path that a program names is the end of a file's path.
fn is_path_of(named: &str, path: &str) -> bool {
    let parts = |p: &str| -> Vec<String> {
        p.split(['/', '\\']).filter(|part| !matches!(*part, "" | "." | "..")).map(str::to_string).collect()
    };
    let (named, path) = (parts(named), parts(path));
    !named.is_empty() && path.ends_with(&named)
}

/// The host and the port of an address of this machine or of a service beside the program.
fn local_address(text: &str) -> Option<(&str, Option<u16>)> {
    let (scheme, rest) = text.split_once("://")?;
    if !matches!(scheme, "http" | "https" | "ws" | "wss") {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()),
        None => (authority, None),
    };
    (is_loopback(host) || !host.contains('.')).then_some((host, port))
}

fn is_loopback(host: &str) -> bool {
    matches!(host, "localhost" | "0.0.0.0" | "host.docker.internal") || host.starts_with("127.")
}

/// Returns true if a module makes a server of tools: it calls `FastMCP` or `Server`.
fn is_server_module(file: &File) -> bool {
    let mut found = false;
    if let Some(module) = &file.python {
        module.texts(&mut |key, name, _| {
            found |= key == python::CALLED && matches!(name, "FastMCP" | "Server")
        });
    }
    found
}

/// Facts about the tools of all servers that these words start or reach.
fn of_client(words: &[String], client: &str, span: Span) -> Option<ToolFacts> {
    let mut all: Option<ToolFacts> = None;
    let mut seen: HashSet<&str> = HashSet::new();
    // The name of an interpreter or a package manager is no server's.
    for server in words.iter().filter_map(|w| registry::server("", &[w])) {
        if !seen.insert(&server.name) {
            continue;
        }
        let facts = ToolFacts::of_server(server, None, span);
        match &mut all {
            None => all = Some(facts),
            Some(known) => known.join(facts),
        }
    }
    all.map(|facts| ToolFacts { toolkit: Some(client.into()), ..facts })
}

/// The object whose tools a call gives.
fn toolkit(world: &World<'_>, id: ObjectId) -> Option<ObjectId> {
    let object = world.object(id);
    object.base.filter(|b| MAKERS.contains(&object.short()) && world.object(*b).class.is_none())
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

/// The texts that a call is given, at any depth: among its arguments, those of the object that it is a method
/// of, and those of calls that it is given.
fn strings(world: &World<'_>, id: ObjectId) -> Vec<String> {
    let mut out = Vec::new();
    for at in provenance(world, id) {
        let args: Vec<&Value> = world.object(at).args.iter().map(|a| &a.value).collect();
        let mut todo: Vec<(Value, u32)> = args.into_iter().rev().map(|v| (v.clone(), 0)).collect();
        while let Some((value, depth)) = todo.pop() {
            if out.len() >= MAX_WORDS.0 || depth > MAX_WORDS.1 {
                continue;
            }
            let value = world.resolve_env(&value);
            match &value.kind {
                PyKind::Str(text) => out.push(text.to_string()),
                PyKind::Text(_) => {
                    for piece in world.text_of(value).unwrap_or_default() {
                        match piece {
                            Piece::Text(text) => out.push(text.to_string()),
                            Piece::Hole(hole, _) => todo.push((hole, depth + 1)),
                        }
                    }
                }
                PyKind::List(id) | PyKind::Either(id) => {
                    todo.extend(world.list(*id).items.iter().rev().map(|v| (v.clone(), depth + 1)));
                }
                PyKind::Dict(id) => {
                    todo.extend(world.dict(*id).entries.iter().rev().map(|(_, v)| (v.clone(), depth + 1)));
                }
                _ => {}
            }
        }
    }
    out
}

/// The texts that are written at a place.
fn written(world: &World<'_>, at: Span) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(source) = world.sources().of_file(at.file).and_then(|m| world.sources().get(m)) {
        source.texts(&mut |key, text, span| {
            let is_within = at.start <= span.start && span.end <= at.end;
            if is_within && key != python::CALLED && out.len() < MAX_WORDS.0 {
                out.push(text.to_string());
            }
        });
    }
    out
}

/// Calls that a call is made of: itself, the one that it is a method of, and those among the arguments.
fn provenance(world: &World<'_>, id: ObjectId) -> Vec<ObjectId> {
    let mut out: Vec<ObjectId> = vec![id];
    let mut at = 0;
    while let Some(next) = out.get(at).copied() {
        at += 1;
        let object = world.object(next);
        let mut todo: Vec<Value> =
            object.base.map(|b| Value::new(PyKind::Object(b), object.span)).into_iter().collect();
        todo.extend(object.args.iter().rev().map(|a| a.value.clone()));
        // An instance of the project's classes has what it keeps.
        todo.extend(object.attrs.iter().filter(|_| object.class.is_some()).map(|(_, v)| v.clone()));
        for _ in 0..MAX_PROVENANCE {
            let Some(value) = todo.pop() else { break };
            let value = world.resolve_env(&value).clone();
            match &value.kind {
                PyKind::Object(o) | PyKind::Member(o, _)
                    if out.len() < MAX_PROVENANCE && !out.contains(o) =>
                {
                    out.push(*o);
                }
                PyKind::Text(_) => {
                    let pieces = world.text_of(&value).unwrap_or_default();
                    todo.extend(pieces.into_iter().filter_map(|p| match p {
                        Piece::Hole(hole, _) => Some(hole),
                        Piece::Text(_) => None,
                    }));
                }
                PyKind::List(list) | PyKind::Either(list) => {
                    let list = world.list(*list);
                    todo.extend(list.items.iter().cloned());
                    todo.extend(list.open.and_then(|at| made_at(world, at)));
                }
                PyKind::Dict(dict) => {
                    let dict = world.dict(*dict);
                    todo.extend(dict.entries.iter().map(|(_, v)| v.clone()));
                    todo.extend(dict.open.and_then(|at| made_at(world, at)));
                }
                _ => {}
            }
        }
    }
    out
}

/// The result of the call at a place, which a container takes in without its items being known.
fn made_at(world: &World<'_>, at: Span) -> Option<Value> {
    let made = world.objects().filter(|(_, o)| o.span == at && o.class.is_none()).last();
    made.map(|(id, _)| Value::new(PyKind::Object(id), at))
}
