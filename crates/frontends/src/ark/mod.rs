//! Ark (Agents at Scale): Kubernetes resources of `ark.mckinsey.com`.
//!
//! | source | term |
//! |---|---|
//! | `kind: Agent` | `llm p θ`, or a loop if it has tools |
//! | `kind: Team`, `sequential` | `e1 >> … >> en` |
//! | `round-robin`, `selector`, `graph` | turns of the members, bounded by `maxTurns` |
//! | `kind: Query` | its first target on its input |
//!
//! Source: mckinsey/agents-at-scale-ark, `ark/api/v1alpha1`.

use core_ir::{ModelParams, TermId};
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, codes, value_span};
use frontend_kit::kit::{Kit, Team, Turns, Units, mark, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{self, Given, Shape, why};
use std::sync::Arc;

/// The front end.
pub struct Ark;

const SHAPE: Shape = Shape {
    what: "an Ark agent",
    name: &["name"],
    prompt: &["prompt"],
    model: &["modelRef"],
    tools: &["tools"],
    end: Some(TERMINATE),
    bound: &[],
    also: &[],
    unused: &[
        ("description", why::SHOWN),
        ("parameters", "their values are put into the prompt when it runs"),
        ("executionEngine", why::RUNTIME),
        ("outputSchema", why::NOT_YET),
        ("overrides", why::RUNTIME),
    ],
    split: frontend_kit::kit::plain,
    default: |_| LoopBound::unknown("Ark documents no limit for an agent"),
};

/// The built-in tool that ends the group chat of a team.
const TERMINATE: &str = "terminate";

fn name_of<'d>(root: Node<'d>) -> &'d str {
    root.at(&["metadata", "name"]).and_then(|n| n.text()).unwrap_or("")
}

fn kind_of<'d>(root: Node<'d>) -> &'d str {
    root.get("kind").and_then(|k| k.text()).unwrap_or("")
}

impl Frontend for Ark {
    fn name(&self) -> &'static str {
        "ark_crd"
    }

    fn detect(&self, file: &File) -> u8 {
        if mark::any(file, |r| mark::starts(r, "apiVersion", "ark.mckinsey.com/")) { 98 } else { 0 }
    }

    fn fields(&self) -> Vec<&'static str> {
        SHAPE.fields()
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("Ark asks the model called `default`"),
            ends_loops: Some("Ark ends the loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `spec.prompt`",
                model: "name one: `spec.modelRef`",
                bound: "state it: `spec.maxTurns`",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let kind = match kind_of(root) {
                "Agent" => UnitKind::Agent,
                "Team" | "Query" => UnitKind::Crew,
                _ => continue,
            };
            units.add(name_of(root), kind, root.head(), |kit| resource(kit, file, root));
        }
        units.done(
            file.documents.first().map(|d| d.root().head()),
            "no document is an agent, a team or a query; models, tools and settings are read where one of these names them",
        )
    }
}

fn named(kit: &mut Kit<'_>, file: &File, kind: &str, name: &str, at: diagnostics::Span) -> TermId {
    let kind = kind.to_ascii_lowercase();
    let found = file
        .documents
        .iter()
        .map(|d| d.root())
        .find(|r| name_of(*r) == name && kind_of(*r).to_ascii_lowercase() == kind);
    match found {
        Some(root) => resource(kit, file, root),
        None => kit.unknown(&format!("the {kind} {name}, which is another resource"), at),
    }
}

fn resource(kit: &mut Kit<'_>, file: &File, root: Node<'_>) -> TermId {
    let (name, head) = (name_of(root), root.head());
    if let Err(term) = kit.open(name, root.span(), head, size(root.span())) {
        return term;
    }
    let spec = root.get("spec").unwrap_or(root);
    let term = match kind_of(root) {
        "Agent" => {
            let given = Given { called: Some(name), ..Given::default() };
            let resolve = |name: &str| {
                let all = file.documents.iter().map(|d| d.root());
                let model = all.into_iter().find(|r| kind_of(*r) == "Model" && name_of(*r) == name)?;
                model.get("spec")
            };
            shape::agent_with(kit, spec, &SHAPE, given, Vec::new(), &resolve)
        }
        "Query" => {
            frontend_kit::emit::report_keys(
                spec,
                &["input", "targets", "target"],
                &[
                    ("memory", why::NOT_YET),
                    ("parameters", why::NOT_YET),
                    ("serviceAccount", why::RUNTIME),
                    ("sessionId", why::RUNTIME),
                    ("type", why::RUNTIME),
                    ("ttl", why::RUNTIME),
                    ("timeout", why::RUNTIME),
                ],
                "an Ark query",
                kit.out,
            );
            query(kit, file, spec, head)
        }
        _ => team(kit, file, spec, head),
    };
    kit.close();
    term
}

/// The targets asked at the same time with the query's input.
fn query(kit: &mut Kit<'_>, file: &File, spec: Node<'_>, head: diagnostics::Span) -> TermId {
    let items = spec.get("targets").into_iter().flat_map(|t| t.items()).chain(spec.get("target"));
    let mut sides = Vec::new();
    for item in items {
        let (kind, name) = (item.get("type").and_then(|k| k.text()), item.get("name").and_then(|n| n.text()));
        sides.push(named(kit, file, kind.unwrap_or("agent"), name.unwrap_or(""), item.head()));
    }
    if sides.is_empty() {
        return kit.unknown("the target of this query", head);
    }
    let all = kit.together(sides, None, head);
    let Some(entry) = spec.entry("input") else { return all };
    let at = value_span(&entry);
    let input = match entry.value.text() {
        Some(text) => kit.text(text, at),
        None => kit.unknown("the query's input, which is not a text", at),
    };
    let run = kit.b.app(all, input, head);
    kit.b.abs("x", Some(core_ir::Type::Str), run, head)
}

fn team(kit: &mut Kit<'_>, file: &File, spec: Node<'_>, head: diagnostics::Span) -> TermId {
    frontend_kit::emit::report_keys(
        spec,
        &["members", "strategy", "maxTurns", "selector", "loops"],
        &[("description", why::SHOWN), ("graph", "members are compiled in their order")],
        "an Ark team",
        kit.out,
    );
    let mut members = Vec::new();
    let mut ends = false;
    for item in spec.get("members").into_iter().flat_map(|m| m.items()) {
        let name = item.text().or_else(|| item.get("name")?.text()).unwrap_or("");
        let kind = item.get("type").and_then(|k| k.text()).unwrap_or("agent");
        let terminate = |r: Node<'_>| {
            let tools = r.at(&["spec", "tools"]).into_iter().flat_map(|t| t.items());
            tools.into_iter().any(|t| t.get("name").and_then(|n| n.text()) == Some(TERMINATE))
        };
        ends |= file.documents.iter().map(|d| d.root()).any(|r| name_of(r) == name && terminate(r));
        members.push((name.to_string(), named(kit, file, kind, name, item.head())));
    }
    let at = spec.entry("strategy").map_or(head, |e| value_span(&e));
    let strategy = spec.get("strategy").and_then(|s| s.text()).unwrap_or("sequential");
    let turns = spec.entry("maxTurns");
    let bound = LoopBound::none("an Ark team without `maxTurns`").or_written(turns, kit.out);
    // Turns are counted by member.
    let rounds = |bound: LoopBound| match bound.bound {
        core_ir::Bound::Finite(n) => {
            let bound_of = n.div_ceil(members.len().max(1) as u64);
            LoopBound { bound: core_ir::Bound::Finite(bound_of), ..bound }
        }
        core_ir::Bound::Infinite => bound,
    };
    let bound = if strategy == "selector" { bound } else { rounds(bound) };
    match strategy {
        "sequential" if spec.get("loops").and_then(|l| l.as_bool()) != Some(true) => {
            let stages = members.into_iter().map(|(_, t)| t).collect();
            kit.sequence(stages, at)
        }
        "graph" => {
            // The edges of Ark's graphs form a chain.
            let order: Vec<&str> = chain(spec);
            let mut stages = Vec::new();
            for name in order {
                match members.iter().position(|(n, _)| n == name) {
                    Some(i) => stages.push(members.remove(i).1),
                    None => stages.push(kit.unknown(&format!("the member {name}"), at)),
                }
            }
            kit.sequence(stages, at)
        }
        "sequential" | "round-robin" => kit.team(Team {
            members,
            turns: Turns::RoundRobin,
            stops: Vec::new(),
            decided: None,
            ends,
            bound,
            at,
        }),
        "selector" => {
            let selector = spec.get("selector");
            let prompt = selector.and_then(|s| s.entry("selectorPrompt").or_else(|| s.entry("prompt")));
            let prompt_at = prompt.map_or(at, |e| value_span(&e));
            let text = match prompt.and_then(|e| e.value.text()) {
                Some(text) => text.to_string(),
                None => {
                    let names: Vec<&str> = members.iter().map(|(n, _)| n.as_str()).collect();
                    format!(
                        "Select the member to speak next, one of: {}. Reply with the name only.",
                        names.join(", ")
                    )
                }
            };
            let prompt = kit.text(&text, prompt_at);
            let oracle = kit.b.add(
                core_ir::Term::Llm(
                    prompt,
                    Arc::new(ModelParams { purpose: Some("selector".into()), ..ModelParams::default() }),
                ),
                prompt_at,
            );
            kit.team(Team {
                members,
                turns: Turns::Chosen(oracle),
                stops: Vec::new(),
                decided: None,
                ends,
                bound,
                at,
            })
        }
        other => {
            let why = format!("the team strategy `{}`", diagnostics::clip(other));
            kit.undecided(codes::NOT_COMPILED, why, at)
        }
    }
}

/// The members along the edges, each once.
fn chain<'d>(spec: Node<'d>) -> Vec<&'d str> {
    let edges: Vec<(&str, &str)> = spec
        .at(&["graph", "edges"])
        .into_iter()
        .flat_map(|e| e.items())
        .filter_map(|e| Some((e.get("from")?.text()?, e.get("to")?.text()?)))
        .collect();
    let start = edges.iter().find(|(from, _)| edges.iter().all(|(_, to)| to != from)).map(|(from, _)| *from);
    let mut order: Vec<&str> = start.into_iter().collect();
    while let Some(last) = order.last() {
        match edges.iter().find(|(from, to)| from == last && !order.contains(to)) {
            Some((_, to)) => order.push(to),
            None => break,
        }
    }
    order
}
