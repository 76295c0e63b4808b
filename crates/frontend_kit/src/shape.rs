//! Agents that are one mapping: what the keys are called is all that tells such formats apart.

use crate::doc::{Entry, Node};
use crate::emit::{self, LoopBound, Unused, codes, value_span};
use crate::kit::{Action, ActionKind, Agent, Kit, SETTINGS, Splitter, first, first_text, settings, tools_of};
use crate::versions::Versions;
use core_ir::{ModelParams, Name, TermId, Type};
use diagnostics::Span;

/// Keys of an agent's settings in a format.
pub struct Shape {
    /// Term for messages: `an agent of Goose`.
    pub what: &'static str,
    /// Keys of its name, the first that is there counts; likewise below.
    pub name: &'static [&'static str],
    /// Keys of its instructions.
    pub prompt: &'static [&'static str],
    /// Keys of its model.
    pub model: &'static [&'static str],
    /// Keys of its tools; all count.
    pub tools: &'static [&'static str],
    /// The tool that ends the group chat around the agent, if there is one.
    pub end: Option<&'static str>,
    /// Keys of the bound of its loop.
    pub bound: &'static [&'static str],
    /// Keys that the front end reads by itself.
    pub also: &'static [&'static str],
    /// Keys that have no counterpart in the term, and why.
    pub unused: &'static [Unused],
    /// Syntax of placeholders in the instructions.
    pub split: Splitter,
    /// The bound if none is written.
    pub default: fn(&Versions) -> LoopBound,
}

impl Shape {
    /// The keys that count.
    pub fn fields(&self) -> Vec<&'static str> {
        let lists = [self.name, self.prompt, self.model, self.tools, self.bound, self.also];
        lists.iter().flat_map(|l| l.iter().copied()).collect()
    }

    /// The name of an agent, by the first of the name keys that has one.
    pub fn name_of<'d>(&self, node: Node<'d>) -> Option<&'d str> {
        first_text(node, self.name).map(|(t, _)| t)
    }
}

/// Resolver for names of models that the file defines.
pub type Resolve<'r, 'd> = &'r dyn Fn(&str) -> Option<Node<'d>>;

/// Names represent themselves.
pub fn by_name<'d>(_: &str) -> Option<Node<'d>> {
    None
}

/// Keys under which a mapping may name a model.
pub const MODEL_NAMES: &[&str] =
    &["model", "model_name", "modelName", "name", "id", "model_id", "deployment_name"];

/// The parameters of a model that an entry names or describes, with the place that names it.
pub fn model_of<'d>(
    kit: &mut Kit<'_>,
    entry: Option<Entry<'d>>,
    resolve: Resolve<'_, 'd>,
) -> (ModelParams, Option<Span>) {
    let Some(entry) = entry else { return (ModelParams::default(), None) };
    if let Some(name) = entry.value.text()
        && let Some(defined) = resolve(name.trim())
        && defined.is_mapping()
    {
        let mut params = model_node(kit, defined);
        if params.model.is_none() {
            params.model = Some(Name::from(name.trim()));
        }
        return (params, Some(value_span(&entry)));
    }
    if entry.value.is_mapping() {
        let params = model_node(kit, entry.value);
        let at = first(entry.value, MODEL_NAMES).map_or(entry.key.span(), |e| value_span(&e));
        return (params, Some(at));
    }
    emit::model(Some(entry), MODEL_NAMES, kit.out)
}

/// The parameters of a model that a mapping describes.
pub fn model_node(kit: &mut Kit<'_>, node: Node<'_>) -> ModelParams {
    let mut params = ModelParams::default();
    let named = first_text(node, MODEL_NAMES);
    params.model = named.map(|(t, _)| Name::from(t.trim()));
    for e in node.entries() {
        if !MODEL_NAMES.contains(&e.name()) {
            secretless(&e, &mut params, kit);
        }
    }
    params
}

/// Adds a parameter, unless it is a secret: keys are the environment's business.
fn secretless(entry: &Entry<'_>, params: &mut ModelParams, kit: &mut Kit<'_>) {
    let key = entry.name().to_ascii_lowercase();
    let secret = ["api_key", "apikey", "secret", "token_key", "password", "access_key"]
        .iter()
        .any(|s| key.contains(s))
        || key == "token";
    if secret {
        let why = "keys come from the environment";
        kit.out.push(diagnostics::Diagnostic::info(
            codes::UNUSED_KEY,
            format!("`{}` is left out: {why}", diagnostics::clip(entry.name())),
            entry.key.span(),
        ));
    } else {
        crate::kit::setting(entry, params, kit.out);
    }
}

/// Facts about an agent from outside its mapping.
#[derive(Default)]
pub struct Given<'a> {
    /// Its name, if it stands elsewhere.
    pub called: Option<&'a str>,
    /// Its instructions, if they are made already.
    pub prompt: Option<TermId>,
    /// Parameters that stand elsewhere, such as under `params`.
    pub params: ModelParams,
    /// Place of the model's name, if it is outside.
    pub model_at: Option<Span>,
}

/// An agent that is one mapping, with what is known already. `more` are things it may do beside its tools.
pub fn agent_with<'d>(
    kit: &mut Kit<'_>,
    node: Node<'d>,
    shape: &Shape,
    given: Given<'_>,
    more: Vec<Action>,
    resolve: Resolve<'_, 'd>,
) -> TermId {
    let bound = (shape.default)(kit.versions).or_written(first(node, shape.bound), kit.out);
    agent_bounded(kit, node, shape, given, more, resolve, bound)
}

/// As [`agent_with`], with a bound that is read elsewhere.
pub fn agent_bounded<'d>(
    kit: &mut Kit<'_>,
    node: Node<'d>,
    shape: &Shape,
    given: Given<'_>,
    more: Vec<Action>,
    resolve: Resolve<'_, 'd>,
    bound: LoopBound,
) -> TermId {
    let head = node.head();
    report(kit, node, shape);
    let prompt = match (given.prompt, first_text(node, shape.prompt)) {
        (Some(prompt), _) => prompt,
        (None, Some((text, entry))) => kit.filled(text, value_span(&entry), shape.split),
        (None, None) => kit.text("", head),
    };
    let (named, model_at) = model_of(kit, first(node, shape.model), resolve);
    let mut params = given.params;
    params.model = named.model.or(params.model);
    params.temperature = named.temperature.or(params.temperature);
    params.max_tokens = named.max_tokens.or(params.max_tokens);
    params.extra.extend(named.extra);
    settings(node, &mut params, kit.out);
    let mut actions: Vec<Action> = Vec::new();
    let mut actions_at = None;
    for entry in shape.tools.iter().filter_map(|k| node.entry(k)) {
        actions_at = actions_at.or(Some(value_span(&entry)));
        actions.extend(tools_of(Some(entry), kit.out));
    }
    if let Some(end) = shape.end {
        for action in actions.iter_mut().filter(|h| h.name == end) {
            action.kind = ActionKind::End;
        }
    }
    actions.extend(more);
    let name = given.called.or_else(|| shape.name_of(node)).unwrap_or("");
    let model_at = model_at.or(given.model_at);
    kit.agent(Agent { name, head, prompt, params, model_at, actions, actions_at, bound })
}

/// Reports the keys that are not read.
fn report(kit: &mut Kit<'_>, node: Node<'_>, shape: &Shape) {
    let lists = [shape.name, shape.prompt, shape.model, shape.tools, shape.bound, shape.also, SETTINGS];
    let used: Vec<&'static str> = lists.iter().flat_map(|l| l.iter().copied()).collect();
    emit::report_keys(node, &used, shape.unused, shape.what, kit.out);
}

/// The type of what a JSON Schema describes, as far as there is one.
pub fn of_schema(schema: Node<'_>, depth: u32) -> Type {
    // Deeper ones are checked where their parts are used.
    if depth > 16 {
        return Type::Dyn;
    }
    match schema.get("type").and_then(|t| t.text()) {
        Some("string") => Type::Str,
        Some("number" | "integer") => Type::Num,
        Some("boolean") => Type::Bool,
        Some("array") => Type::list(schema.get("items").map_or(Type::Dyn, |i| of_schema(i, depth + 1))),
        Some("object") => {
            let required: Vec<&str> =
                schema.get("required").into_iter().flat_map(|r| r.items()).filter_map(|r| r.text()).collect();
            let mut fields: Vec<(Name, Type)> = Vec::new();
            for p in schema.get("properties").into_iter().flat_map(|p| p.entries()) {
                let ty = of_schema(p.value, depth + 1);
                let ty = if required.contains(&p.name()) { ty } else { Type::option(ty) };
                if fields.iter().all(|(n, _)| &**n != p.name()) {
                    fields.push((p.name().into(), ty));
                }
            }
            if fields.is_empty() { Type::Dyn } else { Type::record(fields) }
        }
        _ => Type::Dyn,
    }
}

/// Reasons why keys are left out.
pub mod why {
    /// Names, pictures, tags.
    pub const SHOWN: &str = "it changes nothing about what the agent does";
    /// Limits of time, logging, where it runs.
    pub const RUNTIME: &str = "it concerns how the framework runs, not what the agent does";
    /// Reason of parts that a later version may compile.
    pub const NOT_YET: &str = "it is not compiled yet";
    /// Code elsewhere.
    pub const CODE: &str = "it names code";
}
