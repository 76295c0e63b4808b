//! A policy file with what is inferred of tools, each guessed line with its evidence.

use super::AuditedTool;
use diagnostics::{Sources, toml_key};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tool_facts::{Effect, Fact, Knowledge, Role};

const HEAD: &str = "\
# What the tools do, as far as `entail audit` could infer it. Each guessed line names
# its evidence. Read the lines, correct what is wrong, and remove the word `guessed`.
";

const UNKNOWN: &str = "\
# Nothing is known of this tool. Remove the `#` before the line that is true.
# effect = \"pure\"     # only computes from what it is given
# effect = \"read\"     # only looks things up; its results stay untrusted
# effect = \"write\"    # changes the world; untrusted data must not decide it
";

/// Lines about a server or toolkit that represents tools whose names are not known. A table with its name
/// would be about none of them.
const UNLISTED: &str = "\
# Its tools are not known: each has a table of its own, such as `[tools.NAME]`. For a server of a list,
# `entail guard --approve --mcp-config FILE` shows the names.
";

/// The policy file for these tools.
pub(super) fn policy(tools: &[&AuditedTool], sources: &Sources) -> String {
    let mut out = HEAD.to_string();
    // Tools of one name are one tool to a policy: the one of which most is known speaks for them.
    let mut by_name: BTreeMap<&str, &AuditedTool> = BTreeMap::new();
    let named = tools.iter().filter(|t| !t.declared).flat_map(|t| {
        let members = t.members.iter().map(move |m| (m.as_str(), *t));
        members.chain(t.members.is_empty().then_some((t.name.as_str(), *t)))
    });
    for (name, tool) in named {
        let known = by_name.entry(name).or_insert(tool);
        if (tool.facts.facts.len(), tool.facts.knowledge) > (known.facts.facts.len(), known.facts.knowledge) {
            *known = tool;
        }
    }
    for (name, tool) in &by_name {
        let place = plain(&sources.place(tool.span));
        let is_unlisted = tool.facts.knowledge == Knowledge::Unknown && tool.server.as_deref() == Some(*name);
        // Writing to a string cannot fail.
        let _ = match is_unlisted {
            true => write!(out, "\n# {}: {place}\n{UNLISTED}", plain(name)),
            false => write!(out, "\n[tools.{}]  # {place}\n{}", toml_key(name), lines(tool, sources)),
        };
    }
    out
}

/// A line break in a name would end the comment that it is in.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn lines(tool: &AuditedTool, sources: &Sources) -> String {
    let facts = &tool.facts;
    if facts.knowledge == Knowledge::Unknown {
        return UNKNOWN.to_string();
    }
    let mut out = String::new();
    let mut line = |text: &str, why: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{text}  # guessed: {}", plain(why));
    };
    let because = |fact: &Fact| fact.evidence.describe(sources);
    let role = |role| facts.role(role);
    if facts.facts.is_empty() {
        line("effect = \"pure\"", "no call in its body does anything outside");
        return out;
    }
    match role(Role::Acts) {
        Some(fact) => {
            line("effect = \"write\"", &because(fact));
            if role(Role::Outward).is_none() {
                // Nobody else sees what it is given.
                line("control = \"secret\"", "nobody outside sees what it is given");
                line("arguments = \"secret\"", "nobody outside sees what it is given");
            }
        }
        None => {
            let fact = role(Role::Outward).or(role(Role::Untrusted)).or(role(Role::Private));
            let why = fact.or(facts.facts.first()).map(because).unwrap_or_default();
            line("effect = \"read\"", &why);
            if role(Role::Outward).is_none() && !facts.has(Effect::PublicRead) {
                line("arguments = \"any\"", "nobody outside sees what it is given");
                line("control = \"any\"", "nobody outside sees what it is given");
            }
        }
    }
    let (untrusted, private) = (role(Role::Untrusted), role(Role::Private));
    let label = match (untrusted.is_some(), private.is_some()) {
        (true, true) => "untrusted secret",
        (true, false) => "untrusted",
        (false, true) => "secret",
        (false, false) => "trusted",
    };
    let why = match (untrusted, private) {
        (Some(a), Some(b)) if a.effect != b.effect => format!("{}; {}", because(a), because(b)),
        (Some(fact), _) | (None, Some(fact)) => because(fact),
        (None, None) => "nothing that others write comes back".into(),
    };
    line(&format!("result = \"{label}\""), &why);
    if facts.knowledge == Knowledge::Partly {
        out.push_str("# not all of its effects are known\n");
    }
    if tool.approved {
        out.push_str("approve = true\n");
    } else if role(Role::Acts).is_some() {
        out.push_str("# approve = \"if-refused\"  # or a person allows what the bounds refuse\n");
    }
    out
}
