//! Microsoft Agent Framework: declarative YAML (`kind: Prompt` agents, `kind: Workflow`, `AdaptiveDialog`)
//! and Python (`code.rs`).
//!
//! | source | term |
//! |---|---|
//! | `Prompt` | `llm p θ`, or a loop if it has tools |
//! | actions | one after the other; each hands on what was said |
//! | `InvokeAzureAgent`, tools, requests, questions | a tool of that name: who answers is not in the file |
//! | `AnswerQuestionWithAI` | an oracle |
//! | `ConditionGroup`, `If` | a decision; conditions are Power Fx, hence unknown |
//! | `Foreach`, `GotoAction` | edges back: a cycle |
//!
//! Source: microsoft/agent-framework, `declarative-agents`, `workflow-samples`; the function-invoking
//! client's `MaximumIterationsPerRequest` 40.

mod code;

use crate::defaults;
use core_ir::{ModelParams, Term};
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, clip, value_span};
use frontend_kit::flow::{Flow, FlowNode};
use frontend_kit::kit::{Units, first_text, mark, setting, size};
use frontend_kit::project::{CodeFacts, Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{self, Given, Shape, by_name, why};
use std::sync::Arc;

/// The front end.
pub struct MsDeclarative;

const SHAPE: Shape = Shape {
    what: "a declarative agent",
    name: &["name", "id"],
    prompt: &["instructions"],
    model: &["model"],
    tools: &["tools"],
    end: None,
    bound: &[],
    also: &["kind", "additionalInstructions"],
    unused: &[
        ("description", why::SHOWN),
        ("displayName", why::SHOWN),
        ("outputSchema", why::NOT_YET),
        ("inputSchema", why::NOT_YET),
        ("template", why::NOT_YET),
        ("metadata", why::SHOWN),
    ],
    split: frontend_kit::kit::plain,
    default: |v| defaults::bound(&defaults::MAF_CALLS, v),
};

fn is_workflow(r: Node<'_>) -> bool {
    mark::is(r, "kind", "Workflow") && mark::has(r, "trigger") || mark::is(r, "kind", "AdaptiveDialog")
}

impl Frontend for MsDeclarative {
    fn name(&self) -> &'static str {
        "ms_declarative"
    }

    fn detect(&self, file: &File) -> u8 {
        if file.python.is_some() {
            return code::detect(file);
        }
        let prompt = |r: Node<'_>| {
            matches!(mark::text(r, "kind"), Some("Prompt" | "PromptAgent" | "GptComponentMetadata"))
                && mark::has(r, "instructions")
        };
        if mark::any(file, |r| is_workflow(r) || prompt(r)) { 93 } else { 0 }
    }

    fn fields(&self) -> Vec<&'static str> {
        SHAPE.fields()
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("the client decides on the model"),
            ends_loops: Some("the framework ends the loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `instructions`",
                bound: "state it where the client is made: `function_invocation_configuration={\"max_iterations\": n}`",
                ..Words::default()
            },
            chats: true,
            code: CodeFacts { speakers_end: true, edges_elsewhere: true, ..CodeFacts::default() },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        if file.python.is_some() {
            return code::lower(units, project, file);
        }
        for root in file.documents.iter().map(|d| d.root()) {
            if is_workflow(root) {
                let dialog = root.get("trigger").or_else(|| root.get("beginDialog")).unwrap_or(root);
                let name = dialog.get("id").and_then(|i| i.text()).unwrap_or("workflow");
                units.add(name, UnitKind::Crew, root.head(), |kit| {
                    let mut lower = DeclarativeLowering { nodes: Vec::new(), edges: Vec::new() };
                    lower.block(dialog.get("actions"), None, "action");
                    if lower.nodes.is_empty() {
                        return kit.identity(root.head());
                    }
                    let limit = root.entry("maxTurns");
                    let bound = LoopBound::unknown("the actions go back as often as their conditions say")
                        .or_written(limit, kit.out);
                    let start = lower.nodes.first().map(|n| n.id.clone()).into_iter().collect();
                    Flow {
                        nodes: lower.nodes,
                        edges: lower.edges,
                        start,
                        triggers: false,
                        bound,
                        at: root.head(),
                    }
                    .lower(kit)
                });
            } else if root.get("instructions").is_some() {
                let name = SHAPE.name_of(root).unwrap_or("agent");
                units.add(name, UnitKind::Agent, root.head(), |kit| {
                    if let Err(term) = kit.open(name, root.span(), root.head(), size(root.span())) {
                        return term;
                    }
                    let mut given = Given { called: Some(name), ..Given::default() };
                    for e in root.at(&["model", "options"]).into_iter().flat_map(|o| o.entries()) {
                        setting(&e, &mut given.params, kit.out);
                    }
                    let term = shape::agent_with(kit, root, &SHAPE, given, Vec::new(), &by_name);
                    kit.close();
                    term
                });
            }
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no agent and no workflow is defined")
    }
}

struct DeclarativeLowering<'d> {
    nodes: Vec<FlowNode<'d>>,
    edges: Vec<(String, String, Option<String>)>,
}

/// Actions within actions at most.
const MAX_DEPTH: usize = 60;

impl<'d> DeclarativeLowering<'d> {
    /// Adds a list of actions, the last of which leads to `after`. Gives the first action's id.
    fn block(&mut self, actions: Option<Node<'d>>, after: Option<&str>, path: &str) -> Option<String> {
        let items: Vec<Node<'d>> = actions.into_iter().flat_map(|a| a.items()).collect();
        if items.is_empty() || path.matches('.').count() > MAX_DEPTH {
            return after.map(str::to_string);
        }
        let ids: Vec<String> = items
            .iter()
            .enumerate()
            .map(|(i, a)| {
                a.get("id").and_then(|i| i.text()).map_or(format!("{path}.{}", i + 1), str::to_string)
            })
            .collect();
        for (i, action) in items.iter().enumerate() {
            let next = ids.get(i + 1).map(String::as_str).or(after);
            self.action(*action, &ids[i], next, &format!("{path}.{}", i + 1));
        }
        ids.first().cloned()
    }

    fn link(&mut self, from: &str, to: Option<&str>, when: Option<&str>) {
        if let Some(to) = to {
            self.edges.push((from.to_string(), to.to_string(), when.map(str::to_string)));
        }
    }

    fn action(&mut self, action: Node<'d>, id: &str, next: Option<&str>, path: &str) {
        let at = action.head();
        let kind = action.get("kind").and_then(|k| k.text()).unwrap_or("");
        let called = move |keys: &[&str]| keys.iter().find_map(|k| action.get(k)?.text()).map(str::to_string);
        match kind {
            "ConditionGroup" | "If" => {
                // The node itself comes first, so that the first node of the list is where the whole begins.
                let which = format!("which condition of {id} holds (Power Fx)");
                self.nodes.push(FlowNode::pass(id, id, at).undecided(which));
                let mut branches: Vec<Option<Node<'d>>> = action
                    .get("conditions")
                    .into_iter()
                    .flat_map(|c| c.items())
                    .map(|c| c.get("actions"))
                    .collect();
                if kind == "If" {
                    branches.push(action.get("actions").or_else(|| action.get("then")));
                }
                for (i, actions) in branches.into_iter().enumerate() {
                    let first = self.block(actions, next, &format!("{path}.{}", i + 1));
                    self.link(id, first.as_deref(), Some(&i.to_string()));
                }
                let other = action.get("elseActions").or_else(|| action.get("else"));
                let first = self.block(other, next, &format!("{path}.else"));
                self.link(id, first.as_deref(), None);
            }
            "Foreach" => {
                let which = format!("whether {id} has another item");
                self.nodes.push(FlowNode::pass(id, id, at).undecided(which));
                let first = self.block(action.get("actions"), Some(id), path);
                self.link(id, first.as_deref().filter(|f| *f != id), Some("item"));
                self.link(id, next, None);
            }
            "GotoAction" => {
                self.nodes.push(FlowNode::pass(id, id, at));
                self.link(id, action.get("actionId").and_then(|a| a.text()), None);
            }
            "EndConversation" | "EndWorkflow" | "EndDialog" | "CancelAllDialogs" => {
                self.nodes.push(FlowNode::pass(id, id, at));
            }
            _ => {
                let node = match kind {
                    "AnswerQuestionWithAI" => FlowNode::new(id, id, at, move |kit, x| {
                        let (text, place) = first_text(action, &["additionalInstructions"])
                            .map_or(("Answer the question.", at), |(t, e)| (t, value_span(&e)));
                        let prompt = kit.text(text, place);
                        let params = ModelParams {
                            purpose: called(&["id"]).map(|i| i.as_str().into()),
                            ..ModelParams::default()
                        };
                        let oracle = kit.b.add(Term::Llm(prompt, Arc::new(params)), at);
                        kit.b.app(oracle, x, at)
                    }),
                    "InvokeAzureAgent" => {
                        let name = action.at(&["agent", "name"]).and_then(|n| n.text()).unwrap_or(id);
                        FlowNode::tool(id, name, at)
                    }
                    "InvokeMcpTool" | "InvokeFunctionTool" => {
                        let name = called(&["toolName", "functionName"]).unwrap_or_else(|| id.to_string());
                        FlowNode::tool(id, name, at)
                    }
                    "SendActivity"
                    | "SendMessage"
                    | "SetVariable"
                    | "SetTextVariable"
                    | "SetMultipleVariables"
                    | "ResetVariable"
                    | "ClearAllVariables"
                    | "ParseValue"
                    | "EditTable"
                    | "EditTableV2"
                    | "CreateConversation"
                    | "BreakLoop"
                    | "ContinueLoop" => FlowNode::pass(id, id, at),
                    "Question"
                    | "RequestExternalInput"
                    | "HttpRequestAction"
                    | "BeginDialog"
                    | "AddConversationMessage"
                    | "CopyConversationMessages"
                    | "RetrieveConversationMessage"
                    | "RetrieveConversationMessages" => FlowNode::tool(id, kind, at),
                    other => {
                        FlowNode::unknown(id, id, format!("an action of the kind `{}`", clip(other)), at)
                    }
                };
                self.nodes.push(node);
                self.link(id, next, None);
            }
        }
    }
}
