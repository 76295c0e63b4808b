//! MetaGPT's `config2.yaml`: which model its roles ask.
//!
//! The roles themselves are Python. A role that the file gives a model is an agent with unknown instructions;
//! a file that only names a model defines nothing that runs.
//!
//! Source: FoundationAgents/MetaGPT, `metagpt/config2.py`.

use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, report_keys};
use frontend_kit::kit::{Agent, Units, mark, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{model_node, why};

/// The front end.
pub struct MetaGpt;

const UNUSED: &[frontend_kit::emit::Unused] = &[
    ("embedding", why::RUNTIME),
    ("repair_llm_output", why::RUNTIME),
    ("proxy", why::RUNTIME),
    ("search", why::RUNTIME),
    ("browser", why::RUNTIME),
    ("mermaid", why::RUNTIME),
    ("redis", why::RUNTIME),
    ("s3", why::RUNTIME),
    ("exp_pool", why::RUNTIME),
    ("role_zero", why::RUNTIME),
    ("azure_tts_subscription_key", why::RUNTIME),
    ("workspace", why::RUNTIME),
    ("models", "no role here asks them"),
];

impl Frontend for MetaGpt {
    fn name(&self) -> &'static str {
        "metagpt"
    }

    fn detect(&self, file: &File) -> u8 {
        let sure = |r: Node<'_>| {
            r.at(&["llm", "api_type"]).is_some()
                || r.get("models")
                    .is_some_and(|m| m.entries().take(9).any(|e| mark::has(e.value, "api_type")))
        };
        if mark::any(file, sure) { 75 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("MetaGPT asks the model under `llm`"),
            ends_loops: None,
            words: Words::default(),
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            report_keys(
                root,
                &["llm", "roles"],
                UNUSED,
                "a MetaGPT configuration",
                &mut units.compiled.diagnostics,
            );
            for role in root.get("roles").into_iter().flat_map(|r| r.items()) {
                let Some(name) = role.get("role").and_then(|n| n.text()) else { continue };
                units.add(name, UnitKind::Agent, role.head(), |kit| {
                    if let Err(term) = kit.open(name, role.span(), role.head(), size(role.span())) {
                        return term;
                    }
                    let prompt =
                        kit.unknown(&format!("the instructions of {name}, which are Python"), role.head());
                    let model = role.entry("llm").or_else(|| root.entry("llm"));
                    let params = model.map_or(core_ir::ModelParams::default(), |e| model_node(kit, e.value));
                    let model_at = model.map(|e| e.key.span());
                    let bound = LoopBound::none("");
                    let agent = Agent {
                        name,
                        head: role.head(),
                        prompt,
                        params,
                        model_at,
                        actions: Vec::new(),
                        actions_at: None,
                        bound,
                    };
                    let term = kit.agent(agent);
                    kit.close();
                    term
                });
            }
        }
        units.done(
            file.documents.first().map(|d| d.root().head()),
            "the file names models; MetaGPT's roles are Python",
        )
    }
}
