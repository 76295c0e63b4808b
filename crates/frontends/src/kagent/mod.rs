//! kagent: Kubernetes resources of `kagent.dev`.
//!
//! | source | term |
//! |---|---|
//! | `kind: Agent` with `declarative` | `llm p θ`, or a loop if it has tools; a `ModelConfig` beside it names the model |
//! | tools of type `Agent` | helpers that are asked and answer |
//! | `workflow.sequential`, `parallel`, `loop` | `>>`, `par`, `fix[maxIterations]` |
//! | `byo` | unknown: it is an image |
//!
//! Source: kagent-dev/kagent, `go/api/v1alpha2/agent_types.go`.

use crate::defaults;
use core_ir::TermId;
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, Unused, codes, value_span};
use frontend_kit::kit::{Action, Kit, Units, mark, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{self, Given, Shape, why};

/// The front end.
pub struct Kagent;

const SHAPE: Shape = Shape {
    what: "a kagent agent",
    name: &["name"],
    prompt: &["systemMessage", "systemPrompt"],
    model: &["modelConfig"],
    tools: &[],
    end: None,
    bound: &[],
    also: &["tools", "systemMessageFrom", "subagents", "modelConfigRef"],
    unused: &[
        ("description", why::SHOWN),
        ("stream", why::RUNTIME),
        ("deployment", why::RUNTIME),
        ("a2aConfig", why::SHOWN),
        ("memory", why::NOT_YET),
        ("context", why::NOT_YET),
        ("skills", why::NOT_YET),
        ("executeCodeBlocks", why::NOT_YET),
        ("promptTemplate", why::NOT_YET),
        ("runtime", why::RUNTIME),
        ("type", "its siblings say the same"),
        ("replicas", why::RUNTIME),
    ],
    split: frontend_kit::kit::plain,
    default: |v| defaults::bound(&defaults::ADK_CALLS, v),
};

const SPEC_UNUSED: &[Unused] = &[
    ("description", why::SHOWN),
    ("allowedNamespaces", why::RUNTIME),
    ("skills", why::NOT_YET),
    ("sandbox", why::RUNTIME),
    ("platform", why::RUNTIME),
    ("serviceAccountName", why::RUNTIME),
];

fn is_agent(root: Node<'_>) -> bool {
    mark::starts(root, "apiVersion", "kagent.dev/")
        && root.get("kind").and_then(|k| k.text()).is_some_and(|k| k.ends_with("Agent"))
}

fn name_of<'d>(root: Node<'d>) -> &'d str {
    root.at(&["metadata", "name"]).and_then(|n| n.text()).unwrap_or("agent")
}

impl Frontend for Kagent {
    fn name(&self) -> &'static str {
        "kagent"
    }

    fn detect(&self, file: &File) -> u8 {
        if mark::any(file, |r| mark::starts(r, "apiVersion", "kagent.dev/")) { 98 } else { 0 }
    }

    fn fields(&self) -> Vec<&'static str> {
        SHAPE.fields()
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("kagent asks the model of its `default-model-config`"),
            ends_loops: Some("kagent ends the loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `spec.declarative.systemMessage`",
                bound: "kagent has no key for it: limit the requests at the provider of the model",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()).filter(|r| is_agent(*r)) {
            let kind =
                if root.at(&["spec", "workflow"]).is_some() { UnitKind::Crew } else { UnitKind::Agent };
            units.add(name_of(root), kind, root.head(), |kit| agent(kit, file, root));
        }
        units.done(
            file.documents.first().map(|d| d.root().head()),
            "no document is an agent; models, tool servers and settings are read where an agent names them",
        )
    }
}

/// A resource of the file.
fn resource<'d>(file: &'d File, kind: fn(&str) -> bool, name: &str) -> Option<Node<'d>> {
    // A reference may name the namespace too.
    let name = name.rsplit('/').next().unwrap_or(name);
    let of_kind = |r: &Node<'d>| r.get("kind").and_then(|k| k.text()).is_some_and(kind);
    file.documents.iter().map(|d| d.root()).find(|r| of_kind(r) && name_of(*r) == name)
}

fn referred(kit: &mut Kit<'_>, file: &File, name: &str, at: diagnostics::Span) -> TermId {
    match resource(file, |k| k.ends_with("Agent"), name) {
        Some(found) => agent(kit, file, found),
        None => kit.unknown(&format!("the agent {name}, which is another resource"), at),
    }
}

fn agent(kit: &mut Kit<'_>, file: &File, root: Node<'_>) -> TermId {
    let (name, head) = (name_of(root), root.head());
    if let Err(term) = kit.open(name, root.span(), head, size(root.span())) {
        return term;
    }
    let spec = root.get("spec").unwrap_or(root);
    let term = if let Some(entry) = spec.entry("workflow") {
        workflow(kit, file, entry.value, value_span(&entry))
    } else if spec.get("byo").is_some() {
        let at = spec.entry("byo").map_or(head, |e| e.key.span());
        kit.undecided(codes::NOT_COMPILED, "this agent is an image, whose content is not known".into(), at)
    } else {
        // Version v1alpha1 has the agent in `spec` itself.
        let node = spec.get("declarative").unwrap_or(spec);
        if spec.get("declarative").is_some() {
            let known = ["type", "declarative", "workflow", "byo"];
            frontend_kit::emit::report_keys(spec, &known, SPEC_UNUSED, "a kagent `spec`", kit.out);
        }
        let mut actions = tools(kit, file, node);
        for sub in node.get("subagents").into_iter().flat_map(|s| s.items()) {
            let role = ["name", "role"].iter().find_map(|k| sub.get(k)?.text()).unwrap_or("subagent");
            let at = sub.head();
            let term = match sub.entry("workflow") {
                Some(e) => workflow(kit, file, e.value, value_span(&e)),
                None => referred(kit, file, role, at),
            };
            actions.push(Action::ask(role, term, at));
        }
        let prompt = node.entry("systemMessageFrom").map(|e| {
            let at = value_span(&e);
            kit.unknown("instructions in another resource", at)
        });
        let prompt = prompt.filter(|_| node.get("systemMessage").is_none());
        let resolve = |name: &str| {
            let config = resource(file, |k| k == "ModelConfig", name)?;
            config.get("spec")
        };
        let given = Given { called: Some(name), prompt, ..Given::default() };
        shape::agent_with(kit, node, &SHAPE, given, actions, &resolve)
    };
    kit.close();
    term
}

fn tools(kit: &mut Kit<'_>, file: &File, node: Node<'_>) -> Vec<Action> {
    let mut actions = Vec::new();
    for item in node.get("tools").into_iter().flat_map(|t| t.items()) {
        let at = item.head();
        if let Some(name) = item.at(&["agent", "name"]).or(item.at(&["agent", "ref"])).and_then(|n| n.text())
        {
            let term = referred(kit, file, name, at);
            actions.push(Action::ask(name, term, at));
            continue;
        }
        let server = item.get("mcpServer").unwrap_or(item);
        let name = ["name", "toolServer"].iter().find_map(|k| server.get(k)?.text()).unwrap_or("tools");
        let listed: Vec<&str> = match server.get("toolNames") {
            Some(names) => names.items().filter_map(|t| t.text()).collect(),
            None => Vec::new(),
        };
        if listed.is_empty() {
            actions.push(Action::mcp(name, name, at));
        }
        actions.extend(listed.into_iter().map(|tool| Action::mcp(tool, name, at)));
    }
    actions
}

fn workflow(kit: &mut Kit<'_>, file: &File, node: Node<'_>, at: diagnostics::Span) -> TermId {
    // Either `workflow: {sequential: {subAgents: […]}}`, or `workflow: {type: Loop, agents: […]}`.
    let keyed = node.entries().find(|e| e.value.is_mapping());
    let kind = node.get("type").and_then(|t| t.text()).or(keyed.as_ref().and_then(|e| e.key.text()));
    let body = keyed.map_or(node, |e| e.value);
    let list = ["subAgents", "agents"].iter().find_map(|k| body.get(k).or_else(|| node.get(k)));
    let mut parts = Vec::new();
    for item in list.into_iter().flat_map(|l| l.items()) {
        let name = item.text().or_else(|| item.get("name")?.text()).unwrap_or("");
        let at = item.head();
        // An agent may be written here in full.
        let inner = item.entry("workflow");
        let term = match inner {
            Some(e) => workflow(kit, file, e.value, value_span(&e)),
            None => referred(kit, file, name, at),
        };
        parts.push(term);
    }
    match kind.unwrap_or("").to_ascii_lowercase().as_str() {
        "parallel" => {
            let most = body.get("maxWorkers").and_then(|m| m.as_u64()).and_then(|m| u32::try_from(m).ok());
            kit.together(parts, most.filter(|m| *m > 0), at)
        }
        "loop" => {
            let body_term = kit.sequence(parts, at);
            let entry = ["maxIterations", "max_iterations"].iter().find_map(|k| body.entry(k));
            let bound = LoopBound::none("kagent's loop without `maxIterations`").or_written(entry, kit.out);
            kit.repeat(body_term, bound, true, at)
        }
        "sequential" => kit.sequence(parts, at),
        other => {
            let why = format!("a workflow of the kind `{}`", diagnostics::clip(other));
            kit.undecided(codes::NOT_COMPILED, why, at)
        }
    }
}
