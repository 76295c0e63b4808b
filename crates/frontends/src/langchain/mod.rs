//! LangChain as configuration: what `chain.save`, `prompt.save` and `agent.save` write (`_type: llm_chain`),
//! and what `langchain_core.load.dumps` writes (`{"lc": 1, "type": "constructor", …}`).
//!
//! | part | what it reads |
//! |---|---|
//! | [`saved`] | chains and agents with `_type` |
//! | [`documents`] | chains that read documents |
//! | [`dumped`] | runnables with `lc` |
//! | [`prompt`] | prompts and models of both |
//! | [`value`] | what goes from one stage to the next |
//!
//! What Python builds is read by [`crate::langgraph`].
//!
//! Invariant: bounded. A stage counts each time it is compiled, and stages are within one another up to
//! [`MAX_DEPTH`].
//!
//! Source: langchain 0.3 `chains/loading.py`, `agents/loading.py`, `chains/combine_documents/`,
//! `chains/api/base.py`, `chains/llm_checker/base.py`; langchain-core 0.3 and 1.7 `prompts/loading.py`,
//! `load/serializable.py`, `load/dump.py`.

mod documents;
mod dumped;
mod prompt;
mod saved;
mod value;

use core_ir::{TermId, Type};
use frontend_kit::doc::Node;
use frontend_kit::emit::{codes, undecided};
use frontend_kit::kit::{Kit, Units, mark, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use value::{Flow, StageInput};

/// The front end.
pub struct LangChain;

/// Stages within one another.
const MAX_DEPTH: usize = 24;

impl Frontend for LangChain {
    fn name(&self) -> &'static str {
        "langchain"
    }

    fn names_files(&self) -> bool {
        true
    }

    fn detect(&self, file: &File) -> u8 {
        if file.python.is_some() {
            return 0;
        }
        let dumped =
            mark::any(file, |r| dumped::is_dumped(r) || r.get("manifest").is_some_and(dumped::is_dumped));
        let kind = |test: fn(&str) -> bool| {
            mark::any(file, |r| r.get("_type").and_then(|t| t.as_str()).is_some_and(test))
        };
        match () {
            () if dumped => 96,
            () if kind(|t| saved::CHAINS.contains(&t) || saved::AGENTS.contains(&t)) => 92,
            () if mark::any(file, prompt::is_saved_prompt) => 84,
            () => 0,
        }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some(
                "LangChain's model classes have their own defaults, and a file saved without a model gets that of the code that loads it",
            ),
            ends_loops: Some("LangChain ends an agent's loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the model is to do: `prompt`",
                model: "name one: `model_name`",
                round: "state it in code: `AgentExecutor(max_iterations=…)`",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let parts: Vec<Node<'_>> = if root.is_sequence() { root.items().collect() } else { vec![root] };
            for node in parts {
                let node = node.get("manifest").filter(|m| dumped::is_dumped(*m)).unwrap_or(node);
                let Some((name, kind)) = runs(node) else { continue };
                let reader = LangChainReader { project, file };
                units.add(&name, kind, node.head(), |kit| reader.unit(kit, node, &name));
            }
        }
        units.done(
            file.documents.first().map(|d| d.root().head()),
            "no chain, agent or prompt is in this file",
        )
    }
}

/// Returns the name and the kind of a node that can be run.
fn runs(node: Node<'_>) -> Option<(String, UnitKind)> {
    let name = |n: &str| n.trim().to_string();
    if let Some(dump) = dumped::Dump::of(node) {
        let given = dump.field("name").and_then(|n| n.as_str()).or_else(|| node.get("name")?.as_str());
        return dump.runs().then(|| (name(given.unwrap_or(dump.class)), UnitKind::Agent));
    }
    let kind = node.get("_type").and_then(|t| t.as_str());
    match kind {
        Some(t) if saved::CHAINS.contains(&t) || saved::AGENTS.contains(&t) => {
            Some((name(t), UnitKind::Agent))
        }
        _ if prompt::is_saved_prompt(node) => Some((name(kind.unwrap_or("prompt")), UnitKind::Agent)),
        _ => None,
    }
}

/// Reads the parts of a file.
#[derive(Clone, Copy)]
struct LangChainReader<'d> {
    project: &'d Project,
    file: &'d File,
}

impl<'d> LangChainReader<'d> {
    fn unit(self, kit: &mut Kit<'_>, node: Node<'d>, name: &str) -> TermId {
        let head = node.head();
        if let Err(unknown) = kit.open(name, node.span(), head, size(node.span())) {
            return unknown;
        }
        let mut flow = Flow::new(kit, head);
        let given = match () {
            () if dumped::is_dumped(node) => self.dumped(&mut flow, node, StageInput::Inputs, 0),
            () if prompt::is_saved_prompt(node) => self
                .prompt(&mut flow, node, "prompt")
                .map_or(StageInput::Inputs, |p| StageInput::asked(p, StageInput::Inputs)),
            () => self.saved(&mut flow, node, StageInput::Inputs, 0),
        };
        // A prompt by itself is what somebody asks a model.
        let given = flow.answered(given, head);
        let term = flow.done(given, head);
        kit.close();
        kit.b.abs("x", Some(Type::Str), term, head)
    }

    /// Returns the node under a key, or the root of the file that `key_path` names.
    fn part(self, kit: &mut Kit<'_>, node: Node<'d>, key: &str) -> Option<Node<'d>> {
        if let Some(found) = node.get(key).filter(|n| !n.is_null()) {
            return Some(found);
        }
        let entry = node.entry(&format!("{key}_path")).filter(|e| !e.value.is_null())?;
        let path = entry.value.text().unwrap_or("");
        let other = self.project.beside(self.file, path).and_then(|f| Some(f.documents.first()?.root()));
        if other.is_none() {
            let message = format!("the file `{}` is not at hand", frontend_kit::emit::clip(path));
            kit.out.push(undecided(codes::UNDEFINED, message, entry.value.span()));
        }
        other
    }
}
