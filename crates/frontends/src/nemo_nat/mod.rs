//! NVIDIA NeMo Agent Toolkit: `workflow`, `functions`, `function_groups`, `llms`.
//!
//! | source | term |
//! |---|---|
//! | `react_agent`, `tool_calling_agent`, `rewoo_agent`, … | a loop around a model; `tool_names` are tools |
//! | a tool that is an agent of `functions` | a helper that is asked and answers |
//! | `sequential_executor` | its tools one after the other |
//! | `router_agent` | a model names the branch |
//! | `chat_completion` | one oracle |
//! | any other `_type` | a tool: it is code that a package registers |
//!
//! Source: NVIDIA/NeMo-Agent-Toolkit, `src/nat/agent`, `src/nat/control_flow`.

use crate::defaults;
use core_ir::{Branch, Name, Term, TermId, Type};
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, Unused, report_keys, value_span};
use frontend_kit::kit::{Action, Agent, Kit, Units, first, first_text, mark, size};
use frontend_kit::outline::{LeftoverKind, LeftoverState};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{model_of, why};
use frontend_kit::turn::Carried;
use std::sync::Arc;

/// The front end.
pub struct NemoNat;

const TOP: &[&str] = &["workflow", "functions", "function_groups", "llms"];
const TOP_UNUSED: &[Unused] = &[
    ("general", why::RUNTIME),
    ("eval", "it configures the evaluation of the workflow, not the workflow"),
    ("embedders", why::RUNTIME),
    ("retrievers", why::RUNTIME),
    ("memory", why::NOT_YET),
    ("object_stores", why::RUNTIME),
    ("authentication", why::RUNTIME),
    ("ttc_strategies", why::NOT_YET),
    ("optimizer", "it configures the search for parameters, not the workflow"),
    ("middleware", why::NOT_YET),
    ("guardrails", why::NOT_YET),
    ("trainers", why::RUNTIME),
    ("trainer_adapters", why::RUNTIME),
    ("trajectory_builders", why::RUNTIME),
    ("finetuning", why::RUNTIME),
    ("intermediate_steps", why::RUNTIME),
    ("description", why::SHOWN),
];

const USED: &[&str] = &[
    "_type",
    "llm_name",
    "llm",
    "tool_names",
    "tools",
    "nat_tools",
    "tool_list",
    "branches",
    "system_prompt",
    "prompt",
    "additional_instructions",
    "max_tool_calls",
    "max_iterations",
    "max_iter",
    "recursion_limit",
    "description",
    "name",
    "inner_agent_name",
    "augmented_fn",
    "wrapped_agent",
    "react_agent_fn",
];
const UNUSED: &[Unused] = &[
    ("verbose", why::RUNTIME),
    ("detailed_logs", why::RUNTIME),
    ("parse_agent_response_max_retries", "replies are decoded by the runtime, with its own repairs"),
    ("retry_agent_response_parsing_errors", "replies are decoded by the runtime, with its own repairs"),
    ("retry_parsing_errors", "replies are decoded by the runtime, with its own repairs"),
    ("handle_parsing_errors", "replies are decoded by the runtime, with its own repairs"),
    ("max_retries", "replies are decoded by the runtime, with its own repairs"),
    ("handle_tool_errors", "a failing tool is an error"),
    ("pass_tool_call_errors_to_agent", "a failing tool is an error"),
    ("tool_call_max_retries", why::NOT_YET),
    ("max_history", why::NOT_YET),
    ("use_openai_api", why::RUNTIME),
    ("optimizable_params", "it configures the search for parameters"),
    ("middleware", why::NOT_YET),
    ("guardrails", why::NOT_YET),
    ("return_intermediate_steps", why::RUNTIME),
];

impl Frontend for NemoNat {
    fn name(&self) -> &'static str {
        "nemo_nat"
    }

    fn detect(&self, file: &File) -> u8 {
        if mark::any(file, |r| r.at(&["workflow", "_type"]).is_some()) { 94 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: None,
            ends_loops: Some("the agent ends the loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `system_prompt`",
                model: "name one: `llm_name`, an entry of `llms`",
                bound: "state it: `max_tool_calls` of a ReAct agent, `max_iterations` of one that calls tools",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let Some(entry) = root.entry("workflow") else { continue };
            report_keys(root, TOP, TOP_UNUSED, "a NeMo Agent Toolkit file", &mut units.compiled.diagnostics);
            units.add("workflow", UnitKind::Agent, entry.key.span(), |kit| {
                unused(kit, root);
                function(kit, root, "workflow", entry.value, entry.key.span())
            });
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no workflow is defined")
    }
}

/// Functions whose name stands nowhere else in the file. A file that names a `base` is part of another, and
/// one with a front end of its own may serve its functions by name.
fn unused(kit: &mut Kit<'_>, root: Node<'_>) {
    let serves = root.at(&["general", "front_end"]).is_some() || root.get("base").is_some();
    let mut mentioned: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
    for text in root.descendants().filter_map(|n| n.text()) {
        *mentioned.entry(text).or_default() += 1;
    }
    for f in root.get("functions").into_iter().flat_map(|f| f.entries()) {
        // Its own key is one mention.
        if !serves && !f.merged && mentioned.get(f.name()).is_none_or(|n| *n < 2) {
            kit.outline.leftover(LeftoverKind::Tool, f.name(), f.key.span(), LeftoverState::Unreached);
        }
    }
}

/// Kind of a function in the file, which determines its term.
enum FunctionKind {
    /// A loop around a model that is offered tools.
    Agent,
    /// One call of a model.
    Oracle,
    /// Its tools one after the other.
    Sequence,
    /// A model names the branch.
    Router,
    /// Another function of the file does the work.
    Around,
    /// Code of a package.
    Code,
}

fn kind_of(node: Node<'_>) -> FunctionKind {
    let name = node.get("_type").and_then(|t| t.text()).unwrap_or("");
    let name = name.rsplit('/').next().unwrap_or(name);
    match name {
        _ if own_agent(node) => FunctionKind::Agent,
        "sequential_executor" => FunctionKind::Sequence,
        "router_agent" => FunctionKind::Router,
        "chat_completion" => FunctionKind::Oracle,
        "reasoning_agent"
        | "auto_memory_agent"
        | "self_evaluating_agent_with_feedback"
        | "retry_react_agent" => FunctionKind::Around,
        // An agent of a package: what its loop does is not in the file, but it asks this model and is given
        // these tools.
        _ if ["tool_names", "nat_tools"].iter().any(|k| node.get(k).is_some())
            && model_key(node).is_some() =>
        {
            FunctionKind::Agent
        }
        _ => FunctionKind::Code,
    }
}

/// Returns which calls of a reply an agent executes. Agents with tool calling execute all; the others parse
/// one action from a text.
fn carried(node: Node<'_>) -> Carried {
    let name = node.get("_type").and_then(|t| t.text()).unwrap_or("");
    match name.contains("tool_calling") || name.contains("responses_api") {
        true => Carried::All,
        false => Carried::First,
    }
}

fn own_agent(node: Node<'_>) -> bool {
    let name = node.get("_type").and_then(|t| t.text()).unwrap_or("");
    matches!(
        name.rsplit('/').next().unwrap_or(name),
        "react_agent"
            | "tool_calling_agent"
            | "per_user_react_agent"
            | "per_user_tool_calling_agent"
            | "responses_api_agent"
    )
}

fn model_key<'d>(node: Node<'d>) -> Option<frontend_kit::doc::Entry<'d>> {
    first(node, &["llm_name", "llm"])
}

/// The function of a name, if the file defines it.
fn defined<'d>(root: Node<'d>, name: &str) -> Option<(Node<'d>, diagnostics::Span)> {
    let entry = root.get("functions")?.entry(name)?;
    Some((entry.value, entry.key.span()))
}

/// `Str → Str`.
fn function(kit: &mut Kit<'_>, root: Node<'_>, name: &str, node: Node<'_>, at: diagnostics::Span) -> TermId {
    if let Err(term) = kit.open(name, node.span(), at, size(node.span())) {
        return term;
    }
    let kind = kind_of(node);
    if !matches!(kind, FunctionKind::Code) {
        report_keys(node, USED, UNUSED, "a function of the toolkit", kit.out);
    }
    let term = match kind {
        FunctionKind::Agent => agent(kit, root, name, node, at),
        FunctionKind::Oracle => {
            let prompt = prompt(kit, node, at);
            let (mut params, model_at) = model(kit, root, node);
            params.purpose = Some(name.into());
            kit.b.add(Term::Llm(prompt, Arc::new(params)), model_at.unwrap_or(at))
        }
        FunctionKind::Sequence => {
            let entry = first(node, &["tool_list", "tool_names"]);
            let names = entry.map_or(Vec::new(), |e| frontend_kit::emit::names(&e, kit.out));
            let stages = names.into_iter().map(|(n, item)| stage(kit, root, n, item.span())).collect();
            kit.sequence(stages, at)
        }
        FunctionKind::Router => router(kit, root, node, at),
        FunctionKind::Around => {
            // What is added around the other function (reasoning, memory, judging) is not compiled.
            let entry = first(node, &["inner_agent_name", "augmented_fn", "wrapped_agent", "react_agent_fn"]);
            match entry.and_then(|e| Some((e.value.text()?, e))) {
                Some((inner, e)) => {
                    let what = node.get("_type").and_then(|t| t.text()).unwrap_or("");
                    kit.out.push(diagnostics::Diagnostic::info(
                        frontend_kit::emit::codes::NOT_COMPILED,
                        format!("what `{what}` adds around `{}` is not compiled", diagnostics::clip(inner)),
                        value_span(&e),
                    ));
                    stage(kit, root, inner, value_span(&e))
                }
                None => kit.unknown("the function around which this one is", at),
            }
        }
        FunctionKind::Code => code(kit, name, at),
    };
    kit.close();
    term
}

/// A function that a package registers: what it does is not in the file, that it is called is.
fn code(kit: &mut Kit<'_>, name: &str, at: diagnostics::Span) -> TermId {
    let id = kit.tool(name, at, false, None, None);
    let tool = kit.b.add(Term::Tool(id), at);
    let result = kit.on_x(tool, at);
    let text = kit.b.add(Term::Prim(core_ir::Prim::ToStr, vec![result]), at);
    kit.b.abs("x", Some(Type::Str), text, at)
}

/// The function of a name as a function of text.
fn stage(kit: &mut Kit<'_>, root: Node<'_>, name: &str, at: diagnostics::Span) -> TermId {
    match defined(root, name) {
        Some((node, place)) => function(kit, root, name, node, place),
        None => code(kit, name, at),
    }
}

fn model(
    kit: &mut Kit<'_>,
    root: Node<'_>,
    node: Node<'_>,
) -> (core_ir::ModelParams, Option<diagnostics::Span>) {
    let resolve = |name: &str| root.at(&["llms", name]);
    let (mut params, at) = model_of(kit, model_key(node), &resolve);
    params.extra.retain(|(k, _)| &**k != "_type");
    (params, at)
}

fn prompt(kit: &mut Kit<'_>, node: Node<'_>, at: diagnostics::Span) -> TermId {
    let more = node.get("additional_instructions").and_then(|t| t.text()).unwrap_or("");
    match first_text(node, &["system_prompt", "prompt"]) {
        Some((text, entry)) => {
            let place = value_span(&entry);
            let joined = if more.is_empty() { text.to_string() } else { format!("{text} {more}") };
            kit.text(&joined, place)
        }
        // The toolkit's own; what is added by the file stands after it.
        None => {
            let text =
                format!("Answer the following questions as best you can with the tools you have. {more}");
            kit.text(text.trim(), at)
        }
    }
}

fn agent(kit: &mut Kit<'_>, root: Node<'_>, name: &str, node: Node<'_>, at: diagnostics::Span) -> TermId {
    let prompt = prompt(kit, node, at);
    let (params, model_at) = model(kit, root, node);
    let entry = first(node, &["tool_names", "nat_tools", "tools"]);
    let mut actions = Vec::new();
    for (tool, item) in entry.map_or(Vec::new(), |e| frontend_kit::emit::names(&e, kit.out)) {
        let place = item.span();
        match defined(root, tool) {
            Some((inner, span))
                if !matches!(kind_of(inner), FunctionKind::Code) && !kit.is_open(inner.span()) =>
            {
                let term = function(kit, root, tool, inner, span);
                actions.push(Action::ask(tool, term, place));
            }
            _ => actions.push(Action::tool(tool, place)),
        }
    }
    let written = first(node, &["max_tool_calls", "max_iterations", "max_iter"]);
    let unwritten = match own_agent(node) {
        true => defaults::bound(&defaults::NAT_CALLS, kit.versions),
        false => {
            let kind = node.get("_type").and_then(|t| t.text()).unwrap_or("");
            let why = format!("the bound of `{}` is in the code that registers it", diagnostics::clip(kind));
            LoopBound::unknown(&why)
        }
    };
    let mut bound: LoopBound = unwritten.or_written(written, kit.out);
    // Tool calls are counted there, turns here: after the last call the model is asked for the answer.
    if let core_ir::Bound::Finite(calls) = bound.bound {
        bound.bound = core_ir::Bound::Finite(calls.saturating_add(1));
    }
    let actions_at = entry.map(|e| value_span(&e));
    let agent = Agent { name, head: at, prompt, params, model_at, actions, actions_at, bound };
    kit.agent_with_request(agent, carried(node), None)
}

fn router(kit: &mut Kit<'_>, root: Node<'_>, node: Node<'_>, at: diagnostics::Span) -> TermId {
    let entry = node.entry("branches");
    let names = entry.map_or(Vec::new(), |e| frontend_kit::emit::names(&e, kit.out));
    let listed: Vec<&str> = names.iter().map(|(n, _)| *n).collect();
    let text = format!(
        "Choose the branch that fits the request, one of: {}. Reply with its name.",
        listed.join(", ")
    );
    let prompt = kit.text(&text, at);
    let (mut params, model_at) = model(kit, root, node);
    params.purpose = Some("router".into());
    let oracle = kit.b.add(Term::Llm(prompt, Arc::new(params)), model_at.unwrap_or(at));
    let reply = kit.on_x(oracle, at);
    let mut tags: Vec<Name> = Vec::new();
    let mut branches = Vec::new();
    for (name, item) in names {
        if tags.iter().any(|t| &**t == name) {
            continue;
        }
        tags.push(name.into());
        let term = stage(kit, root, name, item.span());
        let body = kit.on_x(term, item.span());
        branches.push(Branch { tag: name.into(), binder: None, body });
    }
    if branches.is_empty() {
        return kit.unknown("a router without branches", at);
    }
    let scrutinee = kit.b.add(Term::Classify(tags, reply), at);
    let case = kit.b.add(Term::Case { scrutinee, branches, default: None }, at);
    kit.b.abs("x", Some(Type::Str), case, at)
}
