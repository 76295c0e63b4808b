//! LobeChat agents: one JSON file with `config.systemRole`.
//!
//! The agent is one oracle; `config.plugins` are its tools. Examples, opening messages and all that is shown
//! in the market have no counterpart. The chat's settings name the model where the file does not. A file with
//! what an agent says in another language, which has no `identifier`, is an agent of that title.
//!
//! Source: LobeChat's agent index, schema version 1.

use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, Unused, report_keys};
use frontend_kit::kit::{Units, mark, plain, setting};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{self, Given, Shape, by_name, why};

/// The front end.
pub struct LobeChat;

const FILE_KEYS: &[&str] = &["config", "identifier", "schemaVersion"];
const FILE_UNUSED: &[Unused] = &[
    ("author", why::SHOWN),
    ("createdAt", why::SHOWN),
    ("createAt", why::SHOWN),
    ("homepage", why::SHOWN),
    ("meta", why::SHOWN),
    ("summary", why::SHOWN),
    ("examples", "it shows what talking to the agent may look like"),
    ("knowledgeCount", why::SHOWN),
    ("pluginCount", why::SHOWN),
    ("tokenUsage", why::SHOWN),
    ("locale", why::SHOWN),
];

fn no_limit(_: &frontend_kit::Versions) -> LoopBound {
    LoopBound::unknown("LobeChat documents no limit")
}

const SHAPE: Shape = Shape {
    what: "a LobeChat agent's `config`",
    name: &[],
    prompt: &["systemRole"],
    model: &["model"],
    tools: &["plugins"],
    end: None,
    bound: &[],
    also: &["provider", "params"],
    unused: &[
        ("openingMessage", "it greets the user before the first message"),
        ("openingQuestions", "they are suggested to the user"),
        ("displayMode", why::SHOWN),
        ("enableHistoryCount", why::NOT_YET),
        ("historyCount", why::NOT_YET),
        ("enableCompressHistory", why::NOT_YET),
        ("inputTemplate", why::NOT_YET),
        ("chatConfig", why::NOT_YET),
        ("tts", why::RUNTIME),
        ("fewShots", why::NOT_YET),
    ],
    split: plain,
    default: no_limit,
};

/// An agent, or what it says in another language (`locales/NAME/index.zh-CN.json`), which has no identifier.
fn is_agent(root: Node<'_>) -> bool {
    let told = root.at(&["config", "systemRole"]).is_some();
    told && (mark::has(root, "identifier") || root.at(&["meta", "title"]).is_some())
}

impl Frontend for LobeChat {
    fn name(&self) -> &'static str {
        "lobechat"
    }

    fn detect(&self, file: &File) -> u8 {
        if mark::any(file, is_agent) { 96 } else { 0 }
    }

    fn fields(&self) -> Vec<&'static str> {
        SHAPE.fields()
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("LobeChat asks the model that the user has chosen for the chat"),
            ends_loops: Some("LobeChat ends the turn at the first reply that calls no plugin"),
            words: Words { prompt: "say what the agent is to do: `config.systemRole`", ..Words::default() },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let Some(config) = root.get("config") else { continue };
            let title = || root.at(&["meta", "title"])?.text();
            let name = root.get("identifier").and_then(|i| i.text()).or_else(title).unwrap_or("agent");
            report_keys(root, FILE_KEYS, FILE_UNUSED, "a LobeChat agent", &mut units.compiled.diagnostics);
            units.add(name, UnitKind::Agent, root.head(), |kit| {
                if let Err(term) = kit.open(name, root.span(), root.head(), 0) {
                    return term;
                }
                let mut given = Given { called: Some(name), ..Given::default() };
                for e in config.get("params").into_iter().flat_map(|p| p.entries()) {
                    setting(&e, &mut given.params, kit.out);
                }
                let term = shape::agent_with(kit, config, &SHAPE, given, Vec::new(), &by_name);
                kit.close();
                term
            });
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no agent is defined")
    }
}
