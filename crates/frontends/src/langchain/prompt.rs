//! Prompts and models, saved or dumped.

use super::LangChainReader;
use super::dumped::Dump;
use super::value::Flow;
use core_ir::{LabelSpec, ModelParams, Name, Role, ToolDecl, ToolParam, Type};
use diagnostics::{Diagnostic, Span};
use frontend_kit::doc::Node;
use frontend_kit::emit::{self, Part, Unused, braces, clip, codes, undecided, value_span};
use frontend_kit::kit::{self, Kit, SETTINGS, double, first_text};
use frontend_kit::shape::why;

/// Syntax of a template's variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// `{name}`.
    Braces,
    /// `{{ name }}`: mustache, Jinja.
    Double,
}

impl Format {
    /// The parts of a text.
    pub fn split(self, text: &str) -> Vec<braces::Piece> {
        match self {
            Format::Braces => braces::split(text),
            Format::Double => double(text)
                .into_iter()
                .map(|p| match p {
                    Part::Text(t) => braces::Piece::Text(t.to_string()),
                    Part::Hole(n) => braces::Piece::Name(n.to_string()),
                })
                .collect(),
        }
    }
}

/// Content of a message.
#[derive(Clone)]
pub(super) enum MessageContent {
    /// A text with variables.
    Template(String, Format),
    /// A text.
    Literal(String),
    /// Messages that are given under a name.
    Placeholder(String),
    /// Unknown, with the reason.
    Unknown(String),
}

/// A message of a prompt.
#[derive(Clone)]
pub(super) struct Message {
    pub role: Role,
    pub said: MessageContent,
    pub at: Span,
}

/// A prompt.
#[derive(Clone)]
pub(super) struct Prompt<'d> {
    pub messages: Vec<Message>,
    /// Variables that the prompt itself gives a value.
    pub partial: Vec<(&'d str, &'d str)>,
}

impl Prompt<'_> {
    /// The variables that are to be given, each once.
    pub fn variables(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for message in &self.messages {
            let names: Vec<String> = match &message.said {
                MessageContent::Template(text, format) => format
                    .split(text)
                    .into_iter()
                    .filter_map(|p| match p {
                        braces::Piece::Name(n) => Some(n),
                        braces::Piece::Text(_) => None,
                    })
                    .collect(),
                MessageContent::Placeholder(name) => vec![name.clone()],
                MessageContent::Literal(_) | MessageContent::Unknown(_) => Vec::new(),
            };
            for name in names {
                if !out.contains(&name) && !self.partial.iter().any(|(n, _)| *n == name) {
                    out.push(name);
                }
            }
        }
        out
    }
}

/// A model with what it is offered.
pub(super) struct Model {
    pub params: ModelParams,
    /// The names of its tools.
    pub tools: Vec<Name>,
    pub at: Span,
}

/// Kinds of saved prompts.
const PROMPTS: &[&str] = &["prompt", "few_shot", "chat"];

const PROMPT_KEYS: &[&str] = &[
    "_type",
    "input_variables",
    "template",
    "template_path",
    "template_format",
    "messages",
    "partial_variables",
    "examples",
    "example_prompt",
    "example_prompt_path",
    "prefix",
    "prefix_path",
    "suffix",
    "suffix_path",
    "example_separator",
    "name",
    "optional_variables",
];
const PROMPT_UNUSED: &[Unused] = &[
    ("output_parser", "the reply is the result as it is"),
    ("input_types", "the input is a text"),
    ("validate_template", why::RUNTIME),
    ("metadata", why::RUNTIME),
    ("tags", why::RUNTIME),
    ("lc_attributes", why::RUNTIME),
    ("example_selector", "it chooses examples while it runs"),
    ("schema_", why::NOT_YET),
    ("structured_output_kwargs", why::NOT_YET),
    ("additional_kwargs", why::RUNTIME),
];

/// Returns true if the root of a file is a saved prompt.
pub(super) fn is_saved_prompt(node: Node<'_>) -> bool {
    let kind = node.get("_type").and_then(|t| t.as_str());
    let template =
        ["template", "template_path"].iter().any(|k| node.get(k).is_some_and(|t| t.as_str().is_some()));
    match kind {
        Some("prompt") => template,
        Some("few_shot") => node.get("example_prompt").is_some() || node.get("example_prompt_path").is_some(),
        Some("chat") => node.get("messages").is_some_and(|m| m.is_sequence()),
        // Without `_type` it is a prompt, too; its variables tell it apart.
        None => template && node.get("input_variables").is_some_and(|v| v.is_sequence()),
        Some(_) => false,
    }
}

impl<'d> LangChainReader<'d> {
    /// A prompt, saved or dumped; reports what is none.
    pub fn prompt(self, flow: &mut Flow<'_, '_>, node: Node<'d>, what: &str) -> Option<Prompt<'d>> {
        let kit = &mut *flow.kit;
        if !kit.budget.take(kit::size(node.span()), node.head(), kit.out) {
            return None;
        }
        let prompt = match Dump::of(node) {
            Some(dump) => self.dumped_prompt(kit, dump),
            None if node.is_mapping() => self.saved_prompt(kit, node),
            None => None,
        };
        if prompt.is_none() {
            let message = format!("the {what} is not compiled");
            kit.out.push(undecided(codes::NOT_COMPILED, message, node.head()));
        }
        prompt
    }

    fn saved_prompt(self, kit: &mut Kit<'_>, node: Node<'d>) -> Option<Prompt<'d>> {
        emit::report_keys(node, PROMPT_KEYS, PROMPT_UNUSED, "a prompt", kit.out);
        let partial = partial(node);
        let said = |said| Message { role: Role::User, said, at: node.head() };
        let messages = match node.get("_type").and_then(|t| t.as_str()).unwrap_or("prompt") {
            "few_shot" => vec![said(self.few_shot(kit, node)?)],
            // The loader takes the first message alone, as what the user says.
            "chat" => {
                let first = node.get("messages")?.items().next()?;
                let (text, entry) =
                    first_text(first.get("prompt").unwrap_or(first), &["template", "content"])?;
                vec![Message {
                    role: Role::User,
                    said: MessageContent::Template(text.to_string(), Format::Braces),
                    at: value_span(&entry),
                }]
            }
            kind if PROMPTS.contains(&kind) => vec![self.template(kit, node, "template", Role::User)?],
            _ => return None,
        };
        Some(Prompt { messages, partial })
    }

    /// A template of a node, or of the text file that it names.
    fn template(self, kit: &mut Kit<'_>, node: Node<'d>, key: &str, role: Role) -> Option<Message> {
        let format = match node.get("template_format").and_then(|f| f.as_str()) {
            Some("jinja2" | "mustache") => Format::Double,
            _ => Format::Braces,
        };
        if let Some(entry) = node.entry(key)
            && let Some(text) = entry.value.text()
        {
            let at = value_span(&entry);
            if format == Format::Double && (text.contains("{%") || text.contains("{{#")) {
                let message = "the statements of the template are not compiled and stay in the text";
                kit.out.push(undecided(codes::NOT_COMPILED, message, at));
            }
            return Some(Message { role, said: MessageContent::Template(text.to_string(), format), at });
        }
        let entry = node.entry(&format!("{key}_path"))?;
        let why = format!("the text of `{}`", clip(entry.value.text().unwrap_or("")));
        kit.out.push(undecided(codes::UNDEFINED, format!("{why} is not at hand"), value_span(&entry)));
        Some(Message { role, said: MessageContent::Unknown(why), at: value_span(&entry) })
    }

    /// Examples between a prefix and a suffix, as one template.
    fn few_shot(self, kit: &mut Kit<'_>, node: Node<'d>) -> Option<MessageContent> {
        let example = self.part(kit, node, "example_prompt")?;
        let shape = example.get("template").and_then(|t| t.as_str())?;
        let format = |n: Node<'_>| match n.get("template_format").and_then(|f| f.as_str()) {
            Some("jinja2" | "mustache") => Format::Double,
            _ => Format::Braces,
        };
        let (outer, inner) = (format(node), format(example));
        // Braces in an example are no variables of the whole.
        let quoted = |text: &str| match outer {
            Format::Braces => text.replace('{', "{{").replace('}', "}}"),
            Format::Double => text.to_string(),
        };
        let Some(examples) = node.get("examples").filter(|e| e.is_sequence()) else {
            return Some(MessageContent::Unknown("the examples of a prompt".into()));
        };
        let mut parts: Vec<String> = Vec::new();
        let affix =
            |key: &str| node.get(key).and_then(|t| t.as_str()).filter(|t| !t.is_empty()).map(str::to_string);
        parts.extend(affix("prefix"));
        for item in examples.items() {
            if !kit.budget.take_text(shape.len() + kit::size(item.span()), item.head(), kit.out) {
                return None;
            }
            let mut text = String::new();
            for piece in inner.split(shape) {
                match piece {
                    braces::Piece::Text(t) => text.push_str(&t),
                    braces::Piece::Name(n) => {
                        text.push_str(item.get(&n).and_then(|v| v.text()).unwrap_or(""))
                    }
                }
            }
            parts.push(quoted(&text));
        }
        parts.extend(affix("suffix"));
        let separator = node.get("example_separator").and_then(|s| s.as_str()).unwrap_or("\n\n");
        Some(MessageContent::Template(parts.join(separator), outer))
    }

    fn dumped_prompt(self, kit: &mut Kit<'_>, dump: Dump<'d>) -> Option<Prompt<'d>> {
        let fields = dump.fields?;
        match dump.class {
            "PromptTemplate" => {
                emit::report_keys(fields, PROMPT_KEYS, PROMPT_UNUSED, "a prompt", kit.out);
                let message = self.template(kit, fields, "template", Role::User)?;
                Some(Prompt { messages: vec![message], partial: partial(fields) })
            }
            "ChatPromptTemplate" | "StructuredPrompt" => {
                emit::report_keys(fields, PROMPT_KEYS, PROMPT_UNUSED, "a prompt", kit.out);
                let mut messages = Vec::new();
                for item in fields.get("messages")?.items().take(MAX_MESSAGES) {
                    match self.message(kit, item) {
                        Some(message) => messages.push(message),
                        None => {
                            let why = "a message that is not known";
                            kit.out.push(undecided(codes::NOT_COMPILED, why, item.head()));
                            messages.push(Message {
                                role: Role::User,
                                said: MessageContent::Unknown(why.into()),
                                at: item.head(),
                            });
                        }
                    }
                }
                Some(Prompt { messages, partial: partial(fields) })
            }
            "FewShotPromptTemplate" => {
                let said = self.few_shot(kit, fields)?;
                let messages = vec![Message { role: Role::User, said, at: fields.head() }];
                Some(Prompt { messages, partial: partial(fields) })
            }
            _ => None,
        }
    }

    fn message(self, kit: &mut Kit<'_>, node: Node<'d>) -> Option<Message> {
        let dump = Dump::of(node)?;
        let fields = dump.fields?;
        let role = match dump.class {
            c if c.starts_with("System") => Role::System,
            c if c.starts_with("Human") => Role::User,
            c if c.starts_with("AI") => Role::Assistant,
            c if c.starts_with("ChatMessage") => match fields.get("role").and_then(|r| r.as_str()) {
                Some("system") => Role::System,
                Some("assistant" | "ai") => Role::Assistant,
                _ => Role::User,
            },
            "MessagesPlaceholder" => {
                let (name, entry) = first_text(fields, &["variable_name"])?;
                return Some(Message {
                    role: Role::User,
                    said: MessageContent::Placeholder(name.to_string()),
                    at: value_span(&entry),
                });
            }
            _ => return None,
        };
        if let Some((text, entry)) = first_text(fields, &["content"]) {
            return Some(Message {
                role,
                said: MessageContent::Literal(text.to_string()),
                at: value_span(&entry),
            });
        }
        // Several parts are texts and pictures; the texts count.
        let prompt = fields.get("prompt")?;
        let inner = if prompt.is_sequence() { prompt.items().find_map(Dump::of)? } else { Dump::of(prompt)? };
        if prompt.is_sequence() && prompt.items().len() > 1 {
            let message = "of several parts of a message the first is compiled";
            kit.out.push(Diagnostic::info(codes::UNUSED_KEY, message, prompt.head()));
        }
        self.template(kit, inner.fields?, "template", role)
    }
}

/// Messages of a prompt at most.
const MAX_MESSAGES: usize = 2_000;

fn partial(node: Node<'_>) -> Vec<(&str, &str)> {
    let entries = node.get("partial_variables").into_iter().flat_map(|p| p.entries());
    entries.filter_map(|e| Some((e.key.text()?, e.value.text()?))).collect()
}

/// Keys that name a model.
const NAMES: &[&str] =
    &["model_name", "model", "model_id", "deployment_name", "azure_deployment", "engine", "repo_id"];

const MODEL_UNUSED: &[Unused] = &[
    ("n", "one reply is requested"),
    ("best_of", why::RUNTIME),
    ("request_timeout", why::RUNTIME),
    ("timeout", why::RUNTIME),
    ("default_request_timeout", why::RUNTIME),
    ("max_retries", why::RUNTIME),
    ("streaming", why::RUNTIME),
    ("stream_usage", why::RUNTIME),
    ("disable_streaming", why::RUNTIME),
    ("verbose", why::RUNTIME),
    ("cache", why::RUNTIME),
    ("callbacks", why::CODE),
    ("tags", why::RUNTIME),
    ("metadata", why::RUNTIME),
    ("logit_bias", why::NOT_YET),
    ("batch_size", why::RUNTIME),
    ("openai_api_key", KEYS),
    ("api_key", KEYS),
    ("anthropic_api_key", KEYS),
    ("openai_organization", why::RUNTIME),
    ("openai_api_base", why::RUNTIME),
    ("base_url", why::RUNTIME),
    ("openai_proxy", why::RUNTIME),
    ("openai_api_type", why::RUNTIME),
    ("openai_api_version", why::RUNTIME),
    ("azure_endpoint", why::RUNTIME),
    ("output_version", why::RUNTIME),
    ("profile", why::RUNTIME),
];
const KEYS: &str = "keys come from the environment";

/// The parameters of a model that a mapping describes.
pub(super) fn model(kit: &mut Kit<'_>, node: Node<'_>, purpose: &str) -> Model {
    let mut params = ModelParams { purpose: Some(purpose.into()), ..ModelParams::default() };
    let named = first_text(node, NAMES);
    params.model = named.as_ref().map(|(t, _)| Name::from(t.trim()));
    let at = named.map_or(node.head(), |(_, e)| value_span(&e));
    kit::settings(node, &mut params, kit.out);
    if let Some(more) = node.get("model_kwargs") {
        kit::settings(more, &mut params, kit.out);
    }
    let used: Vec<&'static str> =
        NAMES.iter().chain(SETTINGS).chain(&["_type", "model_kwargs"]).copied().collect();
    emit::report_keys(node, &used, MODEL_UNUSED, "a model", kit.out);
    Model { params, tools: Vec::new(), at }
}

/// Adds what `bind(…)` gives a model.
pub(super) fn bind(kit: &mut Kit<'_>, model: &mut Model, given: Node<'_>) {
    kit::settings(given, &mut model.params, kit.out);
    let lists = ["tools", "functions"].iter().filter_map(|k| given.get(k));
    for item in lists.flat_map(|l| l.items()) {
        let function = item.get("function").unwrap_or(item);
        let Some(name) =
            function.get("name").and_then(|n| n.as_str()).filter(|n| !n.is_empty() && *n != "final")
        else {
            let message = "a tool without a name is left out";
            kit.out.push(Diagnostic::warn(codes::WRONG_KIND, message, item.head()));
            continue;
        };
        if model.tools.iter().any(|t| **t == *name) || model.tools.len() >= emit::MAX_TOOLS {
            continue;
        }
        let mut decl = ToolDecl::unknown(name.into(), item.head());
        decl.description = function.get("description").and_then(|d| d.as_str()).map(Name::from);
        let schema = function.get("parameters").or_else(|| function.get("input_schema"));
        if let Some(properties) = schema.and_then(|s| s.get("properties")) {
            let required: Vec<&str> = schema
                .and_then(|s| s.get("required"))
                .into_iter()
                .flat_map(|r| r.items())
                .filter_map(|r| r.as_str())
                .collect();
            decl.params = properties
                .entries()
                .map(|e| {
                    let ty = match e.value.get("type").and_then(|t| t.as_str()) {
                        Some("string") => Type::Str,
                        Some("integer" | "number") => Type::Num,
                        Some("boolean") => Type::Bool,
                        Some("array") => Type::list(Type::Dyn),
                        _ => Type::Dyn,
                    };
                    let ty =
                        if required.contains(&e.name()) || ty == Type::Dyn { ty } else { Type::option(ty) };
                    ToolParam { name: e.name().into(), ty, bound: LabelSpec::BOTTOM, default: None }
                })
                .collect();
        }
        let id = kit.declared(decl);
        model.params.tools.push(id);
        model.tools.push(name.into());
    }
}
