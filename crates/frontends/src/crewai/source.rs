//! Sources of agents and tasks: a configuration, code, or code that refers to a configuration.

use super::{Definition, definitions};
use crate::langgraph::Functions;
use crate::py::{self, Given, field};
use core_ir::ToolDecl;
use diagnostics::{Diagnostic, FileId, Span};
use frontend_kit::conversation::{CallEffect, Choice};
use frontend_kit::doc::{Entry, Node};
use frontend_kit::emit::{self, Template, clip, codes, near, parts, undecided, value_span, wrong_kind};
use frontend_kit::kit::Kit;
use frontend_kit::project::{File, Project};
use python::{Object, ObjectId, PyKind, Value, World};

use super::code::{is_agent, sanitized};

/// An agent or a task.
#[derive(Clone, Copy)]
pub(super) enum CrewItem<'r> {
    /// An object of Python, perhaps with an entry of a configuration.
    Made(ObjectId),
    /// An entry of a configuration by itself.
    Entry(Definition<'r>),
}

impl PartialEq for CrewItem<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (CrewItem::Made(a), CrewItem::Made(b)) => a == b,
            (CrewItem::Entry(a), CrewItem::Entry(b)) => a.span == b.span,
            _ => false,
        }
    }
}

/// Configuration entry of an agent or task.
#[derive(Clone, Copy)]
enum Config<'r> {
    Yaml(Node<'r>),
    Dict(&'r [(Value, Value)]),
}

/// A value that is written in code, or in a configuration.
pub(super) enum Setting<'r> {
    Code(Given<'r>),
    Yaml(Entry<'r>),
}

impl Setting<'_> {
    pub fn at(&self) -> Span {
        match self {
            Setting::Code(g) => g.value.span,
            Setting::Yaml(e) => value_span(e),
        }
    }
}

/// Reads agents and tasks. The world is empty for configurations by themselves.
pub(super) struct CrewReader<'r, 'w> {
    pub world: &'r World<'w>,
    pub project: &'r Project,
    /// The functions of the project that look at what tasks give.
    pub functions: &'r Functions,
}

impl<'r> CrewReader<'r, '_> {
    /// The place of its definition.
    pub fn definition(&self, thing: CrewItem<'r>) -> Span {
        match thing {
            CrewItem::Made(id) => self.world.object(id).span,
            CrewItem::Entry(d) => d.span,
        }
    }

    /// Returns the place at which a missing setting would be added.
    pub fn head(&self, thing: CrewItem<'r>) -> Span {
        match thing {
            CrewItem::Made(id) => self.world.object(id).span,
            CrewItem::Entry(d) => d.node.head(),
        }
    }

    /// The entry of a configuration that `config=self.agents_config["name"]` names.
    fn config(&self, id: ObjectId) -> Option<Config<'r>> {
        let given = field(self.world.object(id), None, "config")?;
        if let Some(entries) = self.world.entries(given.value) {
            return Some(Config::Dict(entries));
        }
        let (name, path, from) = self.reference(given.value)?;
        let file = self.file(from, &path)?;
        let root = file.documents.iter().map(|d| d.root());
        let mut found = root.flat_map(|r| {
            let inner = ["agents", "tasks"].iter().filter_map(move |k| r.get(k)).flat_map(definitions);
            definitions(r).into_iter().chain(inner.collect::<Vec<_>>())
        });
        found.find(|d| d.name == name).map(|d| Config::Yaml(d.node))
    }

    /// The name of the entry, the path of the configuration and the file from which it is named.
    pub fn reference(&self, value: &Value) -> Option<(String, String, FileId)> {
        let (_, item) = self.world.object_of(value)?;
        if !item.callee.ends_with("_config[]") {
            return None;
        }
        let name = self.world.str(&item.args.first()?.value)?.to_string();
        let base = self.world.object(item.base?);
        let path = self.world.str(&base.args.first()?.value)?.to_string();
        Some((name, path, base.span.file))
    }

    fn file(&self, from: FileId, path: &str) -> Option<&'r File> {
        let module = self.project.files.iter().find(|f| f.id == from)?;
        self.project.beside(module, path)
    }

    /// Returns true for an item of a list in a configuration.
    pub fn is_listed(&self, thing: CrewItem<'r>) -> bool {
        matches!(thing, CrewItem::Entry(Definition { listed: true, .. }))
    }

    /// Returns the value of a key.
    pub fn get(&self, thing: CrewItem<'r>, key: &str) -> Option<Setting<'r>> {
        let id = match thing {
            CrewItem::Made(id) => id,
            CrewItem::Entry(d) => return d.node.entry(key).filter(|e| !e.value.is_null()).map(Setting::Yaml),
        };
        let object: &'r Object = self.world.object(id);
        if let Some(given) = field(object, None, key).filter(|g| !g.value.is_none()) {
            return Some(Setting::Code(given));
        }
        match self.config(id)? {
            Config::Yaml(node) => node.entry(key).filter(|e| !e.value.is_null()).map(Setting::Yaml),
            Config::Dict(entries) => {
                let (_, value) = entries.iter().find(|(k, _)| k.as_str() == Some(key))?;
                Some(Setting::Code(Given { value, at: value.span }))
            }
        }
    }

    /// Returns true if part of the definition is in a missing configuration, or in unknown arguments.
    pub fn is_hidden(&self, thing: CrewItem<'r>) -> bool {
        let CrewItem::Made(id) = thing else { return false };
        let object = self.world.object(id);
        object.open.is_some() || field(object, None, "config").is_some() && self.config(id).is_none()
    }

    /// Returns true if one of some keys has a value that isn't blank.
    pub fn has_some(&self, thing: CrewItem<'r>, keys: &[&str]) -> bool {
        keys.iter().any(|k| match self.get(thing, k) {
            Some(Setting::Code(_)) => true,
            Some(Setting::Yaml(entry)) => entry.value.text().is_none_or(|t| !t.trim().is_empty()),
            None => false,
        }) || self.is_hidden(thing)
    }

    /// Adds the text under a key.
    pub fn fill(&self, kit: &mut Kit<'_>, template: &mut Template, thing: CrewItem<'r>, key: &str) {
        match self.get(thing, key) {
            Some(Setting::Code(given)) => py::fill(kit, self.world, given.value, template, parts),
            Some(Setting::Yaml(entry)) => match entry.value.text() {
                Some(text) => kit.fill(template, text, value_span(&entry), parts),
                None => kit.out.push(wrong_kind(&entry, "text")),
            },
            None => {
                if self.is_hidden(thing) {
                    let unknown = kit.unknown(&format!("`{key}`"), self.head(thing));
                    template.term(unknown);
                }
            }
        }
    }

    /// The text under a key, without what is not known of it.
    pub fn known_text(&self, thing: CrewItem<'r>, key: &str) -> Option<String> {
        match self.get(thing, key)? {
            Setting::Code(given) => py::label(self.world, given.value),
            Setting::Yaml(entry) => entry.value.text().map(str::to_string),
        }
    }

    /// The length of the texts under some keys.
    pub fn size(&self, thing: CrewItem<'r>, keys: &[&str]) -> usize {
        keys.iter().filter_map(|k| self.known_text(thing, k)).map(|t| t.len()).sum()
    }

    /// Returns true if a flag is set.
    pub fn flag(&self, thing: CrewItem<'r>, key: &str) -> bool {
        match self.get(thing, key) {
            Some(Setting::Code(given)) => {
                matches!(self.world.resolve_env(given.value).kind, PyKind::Bool(true))
            }
            Some(Setting::Yaml(entry)) => entry.value.as_bool() == Some(true),
            None => false,
        }
    }

    /// Returns the value of a key unless it is switched off.
    pub fn switched_on(&self, thing: CrewItem<'r>, key: &str) -> Option<Setting<'r>> {
        self.get(thing, key).filter(|w| self.is_on(w))
    }

    /// Returns true unless a value is `False`, `None` or an empty list.
    pub fn is_on(&self, written: &Setting<'_>) -> bool {
        match written {
            Setting::Code(given) => match self.world.resolve_env(given.value).kind {
                PyKind::Bool(on) => on,
                PyKind::None => false,
                _ => self.world.items(given.value).is_none_or(|items| !items.is_empty()),
            },
            Setting::Yaml(entry) => {
                let value = entry.value;
                !value.is_null()
                    && value.as_bool() != Some(false)
                    && !(value.is_sequence() && value.items().next().is_none())
            }
        }
    }

    /// Returns the name of an agent in its crew.
    pub fn agent_name(&self, thing: CrewItem<'r>) -> String {
        let id = match thing {
            CrewItem::Made(id) => id,
            CrewItem::Entry(d) => return d.name.to_string(),
        };
        let object = self.world.object(id);
        let entry = field(object, None, "config").and_then(|g| self.reference(g.value)).map(|(n, ..)| n);
        let method = || object.within.map(|f| self.world.function(f)).filter(|f| f.class.is_some());
        entry
            .or_else(|| method().filter(|f| &*f.name != "__init__").map(|f| f.name.to_string()))
            .or_else(|| self.known_text(thing, "role").map(|r| r.trim().to_string()))
            .unwrap_or_else(|| "agent".into())
    }

    /// The items of a list in code.
    pub fn list(&self, kit: &mut Kit<'_>, id: ObjectId, key: &str) -> Vec<Value> {
        let Some(given) = field(self.world.object(id), None, key) else { return Vec::new() };
        self.items(kit, given, key)
    }

    fn items(&self, kit: &mut Kit<'_>, given: Given<'_>, key: &str) -> Vec<Value> {
        let open = match self.world.resolve_env(given.value).kind {
            PyKind::List(list) => self.world.list(list).open,
            PyKind::None => None,
            _ => Some(given.at),
        };
        if let Some(at) = open {
            let message =
                format!("some of the `{key}` are not known: {}", self.world.unknown_reason(given.value));
            kit.out.push(undecided(codes::NOT_COMPILED, message, at));
        }
        match key {
            "tools" => py::tool_list(self.world, given.value),
            _ => self.world.items(given.value).map_or(Vec::new(), <[Value]>::to_vec),
        }
    }

    /// The agent that a value is.
    pub fn agent_of(&self, value: &Value) -> Option<CrewItem<'r>> {
        self.world
            .object_of(value)
            .map(|(id, _)| id)
            .filter(|id| is_agent(self.world, *id))
            .map(CrewItem::Made)
    }

    /// Reports what is not compiled, and a configuration that is not found.
    pub fn report(
        &self,
        kit: &mut Kit<'_>,
        thing: CrewItem<'r>,
        used: &'static [&'static str],
        unused: &[emit::Unused],
        what: &str,
    ) {
        let id = match thing {
            CrewItem::Made(id) => id,
            CrewItem::Entry(d) => return emit::report_keys(d.node, used, unused, what, kit.out),
        };
        let object = self.world.object(id);
        py::report(object, used, unused, what, kit.out);
        match self.config(id) {
            Some(Config::Yaml(node)) => emit::report_keys(node, used, unused, what, kit.out),
            Some(Config::Dict(_)) => {}
            None => {
                let Some(given) = field(object, None, "config") else { return };
                let d = match self.reference(given.value) {
                    // What could not be read may have the entry; the file itself is reported.
                    Some((_, path, from))
                        if self.file(from, &path).is_some_and(|f| f.documents.is_empty()) =>
                    {
                        let message = format!("the configuration `{}` can't be read", clip(&path));
                        undecided(codes::UNDEFINED, message, given.at)
                    }
                    Some((name, path, from)) if self.file(from, &path).is_some() => {
                        let message = format!("`{}` has no entry `{}`", clip(&path), clip(&name));
                        let d = Diagnostic::error(codes::UNDEFINED, message, given.at);
                        match self.file(from, &path).and_then(|file| instead(file, &name, kit.out)) {
                            Some(help) => d.help(help),
                            None => d,
                        }
                    }
                    Some((_, path, _)) => undecided(
                        codes::UNDEFINED,
                        format!("the configuration `{}` is not at hand", clip(&path)),
                        given.at,
                    ),
                    None => {
                        let message = format!(
                            "the configuration is not known: {}",
                            self.world.unknown_reason(given.value)
                        );
                        undecided(codes::NOT_COMPILED, message, given.at)
                    }
                };
                kit.out.push(d);
            }
        }
    }

    /// The tools under `tools`, with what becomes of their results; none if there is no such key.
    pub fn tools(&self, kit: &mut Kit<'_>, thing: CrewItem<'r>) -> Option<Vec<Choice>> {
        let given = match self.get(thing, "tools")? {
            Setting::Yaml(entry) => {
                let names = emit::names(&entry, kit.out);
                let choice = |decl| Choice::new(decl, CallEffect::Call);
                let decls = names.into_iter().map(|(n, at)| ToolDecl::unknown(n.into(), at.span()));
                return Some(decls.map(choice).collect());
            }
            Setting::Code(given) => given,
        };
        let mut out = Vec::new();
        for value in self.items(kit, given, "tools") {
            let decl = self.tool(&value).unwrap_or_else(|| {
                py::unknown_tool(kit, self.world, &value);
                let name = py::outside(&value).unwrap_or_else(|| format!("unknown_{}", out.len() + 1));
                ToolDecl::unknown(name.into(), value.span)
            });
            if value.maybe && !py::is_rest(&value) {
                let message = format!(
                    "the agent may not have the tool `{}`; it is assumed to have it",
                    clip(&decl.name)
                );
                kit.out.push(undecided(codes::NOT_COMPILED, message, value.span));
            }
            let does = if self.answers(&value) { CallEffect::FinishNow } else { CallEffect::Call };
            out.push(Choice::new(decl, does));
        }
        Some(out)
    }

    /// Returns true if the result of a tool is the agent's answer: `result_as_answer`.
    fn answers(&self, tool: &Value) -> bool {
        const KEY: &str = "result_as_answer";
        let said = match py::function_of(tool) {
            Some(f) => py::decorator_arg(self.world, f, &["tool"], None, KEY),
            None => self
                .world
                .object_of(tool)
                .and_then(|(_, o)| field(o, None, KEY).map(|g| g.value).or_else(|| o.attr(KEY))),
        };
        said.is_some_and(|v| matches!(self.world.resolve_env(v).kind, PyKind::Bool(true)))
    }

    /// The function that `tool(f)` or `tool("name")(f)` makes a tool of, and the name that it gives.
    fn made_of(&self, id: ObjectId) -> Option<(python::FunctionId, Option<&str>)> {
        let object = self.world.object(id);
        let maker = match object.base {
            Some(base) if object.short() == "__call__" => self.world.object(base),
            Some(_) => return None,
            None => object,
        };
        let is_tool =
            maker.package().starts_with("crewai") && maker.short() == "tool" && maker.base.is_none();
        let function = py::function_of(&object.args.first().filter(|_| is_tool)?.value)?;
        let name = maker.args.first().and_then(|a| self.world.str(&a.value));
        Some((function, name))
    }

    /// The declaration of a tool, with the name that models see.
    fn tool(&self, value: &Value) -> Option<ToolDecl> {
        let hidden = |_: &World<'_>, _: &Value| false;
        if let Some(f) = py::function_of(value) {
            let name =
                py::decorator_arg(self.world, f, &["tool"], Some(0), "name").and_then(|v| self.world.str(v));
            let function = self.world.function(f);
            let name = name.map_or_else(|| function.name.to_string(), str::to_string);
            return Some(py::signature(self.world, f, &sanitized(&name), function.name_span, hidden));
        }
        let at = value.span;
        match &self.world.resolve_env(value).kind {
            PyKind::Object(id) if self.made_of(*id).is_some() => {
                let (f, named) = self.made_of(*id)?;
                let function = self.world.function(f);
                let name = named.map_or_else(|| function.name.to_string(), str::to_string);
                Some(py::signature(self.world, f, &sanitized(&name), function.name_span, hidden))
            }
            PyKind::Object(id) => {
                let object = self.world.object(*id);
                let text =
                    |key| field(object, None, key).and_then(|g| self.world.str(g.value)).map(str::to_string);
                let class = object.class.map(|c| self.world.class(c).name.to_string());
                let name = sanitized(&text("name").or(class).unwrap_or_else(|| object.short().to_string()));
                let run = object.class.and_then(|c| self.world.class_lookup(c, "_run"));
                let mut decl = match run.as_ref().and_then(|(v, _)| py::function_of(v)) {
                    Some(f) => py::signature(self.world, f, &name, at, hidden),
                    None => ToolDecl::unknown(name.as_str().into(), at),
                };
                decl.description = text("description").map(core_ir::Name::from).or(decl.description);
                decl.handler = object.class.and_then(|c| {
                    let class = self.world.class(c);
                    py::handler(self.world, class.module, &class.name)
                });
                Some(decl)
            }
            PyKind::Class(id) => Some(ToolDecl::unknown(sanitized(&self.world.class(*id).name).into(), at)),
            PyKind::Str(name) => Some(ToolDecl::unknown((&**name).into(), at)),
            _ => None,
        }
    }
}

/// Returns a hint for a missing entry: one below the top level of its file, or one with a similar name.
fn instead(file: &File, name: &str, out: &[Diagnostic]) -> Option<String> {
    let tops = || file.documents.iter().flat_map(|d| definitions(d.root()));
    let below =
        tops().find(|top| definitions(top.node).iter().any(|d| d.name == name && d.node.is_mapping()));
    if let Some(top) = below {
        return Some(format!("it is below `{}`: CrewAI looks for entries at the top level", clip(top.name)));
    }
    let near = near(name, tops().map(|d| d.name).collect::<Vec<&str>>(), out)?;
    Some(format!("did you mean `{near}`?"))
}
