//! Runnables as `langchain_core.load.dumps` writes them.
//!
//! | class | term |
//! |---|---|
//! | `RunnableSequence` | stage after stage |
//! | `RunnableParallel` | `par [e1, e2]`, named |
//! | `RunnableAssign`, `RunnablePick`, `RunnablePassthrough` | named values |
//! | `ChatPromptTemplate`, `PromptTemplate`, … | messages, `{name}` being an input or what a stage before gave |
//! | a model; `RunnableBinding` of one | `llm p θ`, or what is said and `recv[θ]` |
//! | `RunnableWithFallbacks` | `try e catch e` |
//! | `RunnableBranch` | `if`; its conditions are code, so they are unknown |
//! | a retriever, a tool | a tool |
//! | `not_implemented` | unknown: what is not in the file |

use super::prompt::{Model, bind, model};
use super::value::{Flow, StageInput};
use super::{LangChainReader, MAX_DEPTH};
use core_ir::{Data, IfSugar, Num, Prim, Term, TermId, ToolDecl, Type};
use diagnostics::{Diagnostic, Span};
use frontend_kit::doc::Node;
use frontend_kit::emit::{self, Unused, clip, codes, undecided};
use frontend_kit::kit;
use frontend_kit::shape::why;

/// An object that was dumped.
#[derive(Clone, Copy)]
pub(super) struct Dump<'d> {
    pub node: Node<'d>,
    /// Its class, without the modules.
    pub class: &'d str,
    /// Constructor arguments. `None` for objects that can't be serialized.
    pub fields: Option<Node<'d>>,
    /// The text that Python shows for it.
    shown: Option<&'d str>,
}

impl<'d> Dump<'d> {
    pub fn of(node: Node<'d>) -> Option<Dump<'d>> {
        if !is_dumped(node) {
            return None;
        }
        let class = node.get("id")?.items().last()?.as_str()?;
        let made = node.get("type").and_then(|t| t.as_str()) == Some("constructor");
        let fields = node.get("kwargs").filter(|k| made && k.is_mapping());
        Some(Dump { node, class, fields, shown: node.get("repr").and_then(|r| r.as_str()) })
    }

    pub fn field(self, key: &str) -> Option<Node<'d>> {
        self.fields?.get(key).filter(|n| !n.is_null())
    }

    /// Returns true if it can be invoked. Messages, documents and parsers are data.
    pub fn runs(self) -> bool {
        self.is_prompt()
            || self.is_model()
            || self.class.starts_with("Runnable")
            || self.class.ends_with("Chain")
    }

    fn is_prompt(self) -> bool {
        matches!(
            self.class,
            "PromptTemplate" | "ChatPromptTemplate" | "StructuredPrompt" | "FewShotPromptTemplate"
        )
    }

    fn is_model(self) -> bool {
        let data = ["Message", "Prompt", "Chunk", "Generation", "History", "Template", "Result"];
        let Some(id) = self.node.get("id") else { return false };
        let of_models = |n: Node<'_>| {
            n.as_str().is_some_and(|m| {
                matches!(m, "chat_models" | "llms" | "language_models") || m.contains("chat_models")
            })
        };
        (self.class.starts_with("Chat") || id.items().any(of_models))
            && !data.iter().any(|d| self.class.contains(d))
    }
}

/// Returns true if a node is a serialized object.
pub(super) fn is_dumped(node: Node<'_>) -> bool {
    node.get("lc").is_some_and(|n| n.as_u64().is_some())
        && node.get("id").is_some_and(|n| n.is_sequence())
        && node
            .get("type")
            .and_then(|t| t.as_str())
            .is_some_and(|t| matches!(t, "constructor" | "not_implemented"))
}

const SEQUENCE_KEYS: &[&str] = &["first", "middle", "last", "name", "steps"];
const WRAPPED_UNUSED: &[Unused] = &[
    ("config", why::RUNTIME),
    ("config_factories", why::CODE),
    ("custom_input_type", why::RUNTIME),
    ("custom_output_type", why::RUNTIME),
    ("name", why::SHOWN),
    ("max_attempt_number", "a stage is tried once"),
    ("retry_exception_types", "a stage is tried once"),
    ("wait_exponential_jitter", "a stage is tried once"),
    ("exponential_jitter_params", "a stage is tried once"),
];

impl<'d> LangChainReader<'d> {
    /// Lowers a runnable applied to its input.
    pub fn dumped(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        given: StageInput<'d>,
        depth: usize,
    ) -> StageInput<'d> {
        let head = node.head();
        if depth > MAX_DEPTH || !flow.kit.budget.take(16, head, flow.kit.out) {
            return left_out(flow, "a stage beyond the limit", head);
        }
        let Some(dump) = Dump::of(node) else {
            // `{"a": …}` within a sequence is a parallel step.
            return match node.is_mapping() {
                true => self.together(flow, node, given, depth),
                false => left_out(flow, "a stage that is not a runnable", head),
            };
        };
        if dump.is_prompt() {
            return match self.prompt(flow, node, "prompt") {
                Some(prompt) => StageInput::asked(prompt, given),
                None => left_out(flow, "a prompt", head),
            };
        }
        if let Some(model) = self.model(flow, node, depth) {
            return flow.ask(given, model, head);
        }
        let Some(fields) = dump.fields else { return self.undumped(flow, dump, given) };
        match dump.class {
            "RunnableSequence" => {
                emit::report_keys(fields, SEQUENCE_KEYS, &[], "a sequence", flow.kit.out);
                let middle = fields.get("middle").or_else(|| fields.get("steps"));
                let stages = fields
                    .get("first")
                    .into_iter()
                    .chain(middle.into_iter().flat_map(|m| m.items()))
                    .chain(fields.get("last"));
                let mut given = given;
                for stage in stages {
                    given = self.dumped(flow, stage, given, depth + 1);
                }
                given
            }
            "RunnableParallel" | "RunnableMap" => match fields.get("steps__").or_else(|| fields.get("steps"))
            {
                Some(steps) => self.together(flow, steps, given, depth),
                None => left_out(flow, "steps at the same time", head),
            },
            "RunnableAssign" => {
                let Some(mapper) = fields.get("mapper") else {
                    return left_out(flow, "the assigned values", head);
                };
                let more = self.dumped(flow, mapper, given.clone(), depth + 1);
                let ((mut fields, inputs), (more, _)) = (given.named(), more.named());
                fields.extend(more);
                StageInput::Named(fields, inputs)
            }
            "RunnablePick" => match fields.get("keys").and_then(|k| k.as_str()) {
                Some(key) => self.pick(flow, &given, key, head),
                None => given,
            },
            "RunnablePassthrough" => given,
            "RunnableBinding"
            | "RunnableRetry"
            | "RunnableConfigurableFields"
            | "RunnableConfigurableAlternatives"
            | "RunnableWithMessageHistory" => {
                let (used, inner): (&[&'static str], _) =
                    (&["bound", "default", "kwargs"], fields.get("bound").or_else(|| fields.get("default")));
                emit::report_keys(fields, used, WRAPPED_UNUSED, "a runnable with settings", flow.kit.out);
                match inner {
                    Some(inner) => self.dumped(flow, inner, given, depth + 1),
                    None => left_out(flow, "what has settings", head),
                }
            }
            "RunnableEach" => {
                let Some(bound) = fields.get("bound") else {
                    return left_out(flow, "the function applied to each item", head);
                };
                let items = flow.text(&given, head);
                let items = flow.kit.b.add(Term::Prim(Prim::FromJson, vec![items]), head);
                let (each, lets) =
                    flow.aside(|flow| self.dumped(flow, bound, StageInput::Data("item".into()), depth + 1));
                let each = flow.answered(each, head);
                let body = flow.text(&each, head);
                let body = flow.within(lets, body);
                let function = flow.kit.b.abs("item", None, body, head);
                let all = flow.kit.b.add(Term::Each(None, function, items), head);
                StageInput::Data(flow.bind("all", all))
            }
            "RunnableWithFallbacks" => self.fallbacks(flow, fields, given, depth),
            "RunnableBranch" => self.branches(flow, fields, given, depth),
            "LLMChain" => {
                let Some(prompt) = fields.get("prompt") else {
                    return left_out(flow, "the prompt of a chain", head);
                };
                let asked = self.dumped(flow, prompt, given, depth + 1);
                match fields.get("llm") {
                    Some(model) => self.dumped(flow, model, asked, depth + 1),
                    None => flow.answered(asked, head),
                }
            }
            class if is_parser(class) => self.parsed(flow, class, given, head),
            class
                if class.contains("Retriever")
                    || class.ends_with("Tool")
                    || class.ends_with("VectorStore") =>
            {
                let name = fields.get("name").and_then(|n| n.as_str()).unwrap_or(class);
                outside(flow, name, &given, head)
            }
            class => left_out(flow, &format!("`{class}`"), head),
        }
    }

    /// Lowers an object that Python couldn't serialize.
    fn undumped(self, flow: &mut Flow<'_, '_>, dump: Dump<'d>, given: StageInput<'d>) -> StageInput<'d> {
        let at = dump.node.head();
        let shown = dump.shown.unwrap_or("");
        // `itemgetter('question')` is the only function that shows what it does.
        if let Some(rest) = shown.split_once("itemgetter(").map(|(_, r)| r)
            && let Some(key) = rest.split(['\'', '"']).nth(1)
        {
            return self.pick(flow, &given, key, at);
        }
        // Parsers that are not dumped have nothing that matters but their class.
        if is_parser(dump.class) {
            return self.parsed(flow, dump.class, given, at);
        }
        let class = [dump.class, shown].iter().any(|t| t.contains("Retriever"));
        if class {
            return outside(flow, "retriever", &given, at);
        }
        left_out(flow, &format!("`{}`, which could not be dumped", clip(dump.class)), at)
    }

    /// Returns the entry of a name.
    fn pick(self, flow: &mut Flow<'_, '_>, given: &StageInput<'d>, key: &str, at: Span) -> StageInput<'d> {
        if let StageInput::Named(fields, _) = given
            && let Some((_, value)) = fields.iter().rev().find(|(n, _)| n == key)
        {
            return value.clone();
        }
        if matches!(given, StageInput::Inputs | StageInput::Named(_, true)) {
            return StageInput::Input(key.to_string());
        }
        let value = flow.variable(given, key, false, at);
        StageInput::Text(flow.bind(&slug(key), value))
    }

    /// Named runnables on the same input.
    fn together(
        self,
        flow: &mut Flow<'_, '_>,
        steps: Node<'d>,
        given: StageInput<'d>,
        depth: usize,
    ) -> StageInput<'d> {
        let mut sides = Vec::new();
        for entry in steps.entries() {
            let (side, lets) = flow.aside(|flow| self.dumped(flow, entry.value, given.clone(), depth + 1));
            sides.push((entry.name().to_string(), side, lets, entry.key.span()));
        }
        let busy = sides.iter().filter(|(_, _, lets, _)| !lets.is_empty()).count();
        let mut fields = Vec::new();
        let mut par: Vec<TermId> = Vec::new();
        let mut waiting: Vec<(usize, String, Span)> = Vec::new();
        for (name, side, lets, at) in sides {
            if lets.is_empty() || busy < 2 {
                flow.rejoin(lets);
                fields.push((name, side));
                continue;
            }
            let text = flow.text(&side, at);
            par.push(flow.within(lets, text));
            waiting.push((fields.len(), name.clone(), at));
            fields.push((name, StageInput::Inputs));
        }
        if !par.is_empty() {
            let at = steps.head();
            let all = flow.kit.b.add(Term::Par(None, par), at);
            let all = flow.bind("all", all);
            for (i, (place, name, at)) in waiting.into_iter().enumerate() {
                let list = flow.kit.b.var(all.clone(), at);
                let index = flow.kit.b.lit(Num::from(i as i64), at);
                let item = flow.kit.b.add(Term::Index(list, index), at);
                let value = flow.bind(&slug(&name), item);
                fields[place].1 = StageInput::Text(value);
            }
        }
        StageInput::Named(fields, false)
    }

    /// The model that a runnable is, with what is bound to it.
    fn model(self, flow: &mut Flow<'_, '_>, node: Node<'d>, depth: usize) -> Option<Model> {
        let mut bound: Vec<Node<'d>> = Vec::new();
        let mut node = node;
        for _ in depth..MAX_DEPTH {
            let dump = Dump::of(node)?;
            if dump.is_model() {
                let mut model = match dump.fields {
                    Some(fields) => model(flow.kit, fields, "chain"),
                    None => {
                        let message = format!("the settings of `{}` could not be dumped", clip(dump.class));
                        flow.kit.out.push(undecided(codes::NOT_COMPILED, message, node.head()));
                        model(
                            flow.kit,
                            node.get("kwargs").unwrap_or(node).get("kwargs").unwrap_or(node),
                            "chain",
                        )
                    }
                };
                for given in bound.into_iter().rev() {
                    bind(flow.kit, &mut model, given);
                }
                return Some(model);
            }
            if !matches!(dump.class, "RunnableBinding" | "RunnableRetry" | "RunnableConfigurableFields") {
                return None;
            }
            bound.extend(dump.field("kwargs"));
            node = dump.field("bound").or_else(|| dump.field("default"))?;
        }
        None
    }

    /// The text of one of several sides, with what only that side computes.
    fn side(
        self,
        flow: &mut Flow<'_, '_>,
        side: Node<'d>,
        given: StageInput<'d>,
        depth: usize,
        at: Span,
    ) -> TermId {
        let (value, lets) = flow.aside(|flow| {
            let value = self.dumped(flow, side, given, depth + 1);
            flow.answered(value, at)
        });
        let text = flow.text(&value, at);
        flow.within(lets, text)
    }

    /// The first that does not fail.
    fn fallbacks(
        self,
        flow: &mut Flow<'_, '_>,
        fields: Node<'d>,
        given: StageInput<'d>,
        depth: usize,
    ) -> StageInput<'d> {
        let at = fields.head();
        let sides = fields
            .get("runnable")
            .into_iter()
            .chain(fields.get("fallbacks").into_iter().flat_map(|f| f.items()));
        let mut terms: Vec<TermId> = Vec::new();
        for side in sides {
            terms.push(self.side(flow, side, given.clone(), depth, at));
        }
        let Some(mut term) = terms.pop() else { return left_out(flow, "alternatives", at) };
        for side in terms.into_iter().rev() {
            term = flow.or_else(side, term, at);
        }
        StageInput::Text(flow.bind("reply", term))
    }

    /// Branches with their conditions, and a default.
    fn branches(
        self,
        flow: &mut Flow<'_, '_>,
        fields: Node<'d>,
        given: StageInput<'d>,
        depth: usize,
    ) -> StageInput<'d> {
        let at = fields.head();
        let mut sides: Vec<(Option<Span>, Node<'d>)> = Vec::new();
        for pair in fields.get("branches").into_iter().flat_map(|b| b.items()) {
            let mut items = pair.items();
            if let (Some(test), Some(then)) = (items.next(), items.next()) {
                sides.push((Some(test.head()), then));
            }
        }
        sides.extend(fields.get("default").map(|d| (None, d)));
        let mut terms: Vec<(Option<Span>, TermId)> = Vec::new();
        for (test, side) in sides {
            terms.push((test, self.side(flow, side, given.clone(), depth, at)));
        }
        let Some((_, mut term)) = terms.pop() else { return left_out(flow, "branches", at) };
        for (test, side) in terms.into_iter().rev() {
            let place = test.unwrap_or(at);
            let test =
                flow.kit.undecided(codes::NOT_COMPILED, "the condition of a branch is code".into(), place);
            term = flow.kit.b.add(Term::If(test, side, term, IfSugar::Plain), at);
        }
        StageInput::Text(flow.bind("reply", term))
    }

    /// A reply as a parser reads it.
    fn parsed(self, flow: &mut Flow<'_, '_>, class: &str, given: StageInput<'d>, at: Span) -> StageInput<'d> {
        let given = flow.answered(given, at);
        match (class, &given) {
            ("StrOutputParser", _) => {
                let text = flow.text(&given, at);
                match given {
                    StageInput::Text(_) => given,
                    _ => StageInput::Text(flow.bind("text", text)),
                }
            }
            (_, StageInput::Calls(..)) => {
                // The arguments of the call that the reply makes.
                let text = flow.text(&given, at);
                let data = flow.kit.b.add(Term::Prim(Prim::FromJson, vec![text]), at);
                StageInput::Data(flow.bind("args", data))
            }
            ("JsonOutputParser" | "SimpleJsonOutputParser" | "PydanticOutputParser", _) => {
                let text = flow.text(&given, at);
                let data = flow.kit.b.add(Term::Prim(Prim::FromJson, vec![text]), at);
                StageInput::Data(flow.bind("data", data))
            }
            ("CommaSeparatedListOutputParser", _) => {
                let text = flow.text(&given, at);
                let comma = flow.kit.text(",", at);
                let list = flow.kit.b.add(Term::Prim(Prim::Split, vec![text, comma]), at);
                StageInput::Data(flow.bind("list", list))
            }
            _ => {
                let message =
                    format!("the parser `{}` is not compiled: the reply stays as it is", clip(class));
                flow.kit.out.push(Diagnostic::info(codes::UNUSED_KEY, message, at));
                given
            }
        }
    }
}

/// Returns true for the name of a parser class.
fn is_parser(class: &str) -> bool {
    ["OutputParser", "ToolsParser", "FunctionsParser"].iter().any(|end| class.ends_with(end))
}

/// A tool that is outside the file.
pub(super) fn outside<'d>(
    flow: &mut Flow<'_, '_>,
    name: &str,
    given: &StageInput<'d>,
    at: Span,
) -> StageInput<'d> {
    let mut decl = ToolDecl::unknown(slug(name).as_str().into(), at);
    decl.params = vec![core_ir::ToolParam {
        name: "query".into(),
        ty: Type::Str,
        bound: core_ir::LabelSpec::BOTTOM,
        default: None,
    }];
    let id = flow.kit.declared(decl);
    let query = flow.text(given, at);
    let args = flow.kit.b.add(Term::Record(vec![("query".into(), query)]), at);
    let tool = flow.kit.b.add(Term::Tool(id), at);
    let called = flow.kit.b.app(tool, args, at);
    StageInput::Data(flow.bind("found", called))
}

/// Makes an unknown value and reports it.
pub(super) fn left_out<'d>(flow: &mut Flow<'_, '_>, what: &str, at: Span) -> StageInput<'d> {
    let term = flow.kit.undecided(codes::NOT_COMPILED, format!("{what} is not compiled"), at);
    StageInput::Text(flow.bind("unknown", term))
}

/// A name as far as it is letters.
pub(super) fn slug(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars().take(40) {
        if c.is_ascii_uppercase() && out.ends_with(|p: char| p.is_ascii_lowercase()) {
            out.push('_');
        }
        out.push(if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    }
    let out = out.trim_matches('_').to_string();
    if out.is_empty() { "value".into() } else { out }
}

/// A constant as text, for what a chain is given by its file.
pub(super) fn constant(kit: &mut kit::Kit<'_>, node: Node<'_>) -> TermId {
    let text = node.text().unwrap_or("");
    kit.b.lit(Data::str(text), node.head())
}
