//! `entail explain`: what a diagnostic means.

use crate::args::ExplainArgs;
use crate::ui::{Exit, Ui};
use diagnostics::Explanation;
use serde_json::json;

/// A code with its title and its page.
struct Page {
    code: &'static str,
    title: &'static str,
    text: String,
}

fn page(e: &Explanation) -> Page {
    let mut text = e.text.to_string();
    for (head, example) in [("Wrong", e.wrong), ("Right", e.right)] {
        if !example.is_empty() {
            let indented: Vec<String> = example.lines().map(|l| format!("    {l}")).collect();
            text.push_str(&format!("\n\n{head}:\n\n{}", indented.join("\n")));
        }
    }
    Page { code: e.code, title: e.title, text }
}

/// Every code that any part of the toolchain reports.
fn pages() -> Vec<Page> {
    let lists: &[&[Explanation]] = &[
        agentlang::codes::ALL,
        syntax::lam::codes::EXPLANATIONS,
        frontend_kit::codes::EXPLANATIONS,
        analysis::types::codes::EXPLANATIONS,
        analysis::flow::codes::EXPLANATIONS,
        #[cfg(feature = "plans")]
        plan::codes::EXPLANATIONS,
        policy::codes::EXPLANATIONS,
        #[cfg(feature = "frameworks")]
        convert::codes::EXPLANATIONS,
        session::preflight::codes::EXPLANATIONS,
        #[cfg(feature = "frameworks")]
        lint::EXPLANATIONS,
        #[cfg(feature = "frameworks")]
        session::audit::codes::EXPLANATIONS,
    ];
    let explanations = lists.iter().flat_map(|list| list.iter()).map(page);
    #[cfg(feature = "frameworks")]
    let explanations = explanations.chain(lint::RULES.iter().map(|r| Page {
        code: r.code,
        title: r.name,
        text: r.docs.to_string(),
    }));
    explanations.collect()
}

/// Runs the command.
pub fn explain(ui: &Ui, args: &ExplainArgs) -> Exit {
    let pages = pages();
    let Some(code) = &args.code else {
        for p in &pages {
            if ui.is_json() {
                ui.result(&json!({"code": p.code, "title": p.title}).to_string());
            } else {
                ui.result(&format!("{:<6} {}", p.code, p.title));
            }
        }
        return Exit::Done;
    };
    let Some(p) = pages.iter().find(|p| p.code.eq_ignore_ascii_case(code)) else {
        let near = diagnostics::nearest(code, pages.iter().map(|p| p.code));
        let help = near.map_or("`entail explain` lists all codes".into(), |n| format!("did you mean `{n}`?"));
        return ui.usage(&format!("unknown diagnostic `{code}`"), Some(&help));
    };
    if ui.is_json() {
        ui.result(&json!({"code": p.code, "title": p.title, "text": p.text}).to_string());
    } else {
        ui.result(&format!("{}: {}\n\n{}", p.code, p.title, p.text.trim_end()));
    }
    Exit::Done
}
