//! L019: a prompt speaks of a tool that the agent does not have.

use crate::{Check, Context, Rule, below};
use core_ir::{Code, Data, ModelParams, Recv, Role, Term, TermId};
use diagnostics::{Diagnostic, Level};
use std::sync::Arc;

pub(super) static RULE: Rule = Rule {
    code: "L019",
    name: "ungiven-tool",
    level: Level::Info,
    meaning: "the prompt of `llm p θ` names a tool that is not in θ: a model that follows it calls a tool that no branch handles",
    docs: page!("../../../../docs/rules/L019-ungiven-tool.md"),
    check: Check::Term(check),
};

/// Maximum number of bytes searched in a prompt. What follows is more often an example or a document than
/// instructions.
const MAX_TEXT_BYTES: usize = 64 << 10;

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    for (_, term) in code.iter() {
        let (prompt, params) = match term {
            Term::Llm(prompt, params) => (prompt, params),
            Term::Fresh(conversation) => match instructed(code, *conversation) {
                Some(found) => found,
                None => continue,
            },
            _ => continue,
        };
        let given: Vec<&str> = params.tools.iter().map(|t| &*code.tool(*t).name).collect();
        // A server or toolset offers tools of other names.
        let opaque = params
            .tools
            .iter()
            .any(|t| code.tool(*t).handler.as_ref().is_some_and(|h| h.field("mcp").is_some()));
        if given.is_empty() || opaque {
            continue;
        }
        let mut named: Vec<String> = Vec::new();
        for id in below(code, *prompt) {
            if let Term::Lit(Data::Str(text)) = code.term(id) {
                let end = (0..=MAX_TEXT_BYTES.min(text.len()))
                    .rev()
                    .find(|i| text.is_char_boundary(*i))
                    .unwrap_or(0);
                named_tools(&text[..end], &mut named);
            }
        }
        // A prompt that calls its tools by other names (titles, kinds) is no evidence.
        let used = |name: &str| given.iter().any(|g| same(g, name));
        if !named.iter().any(|n| used(n)) {
            continue;
        }
        for name in named.iter().filter(|n| !used(n)) {
            let message = format!(
                "the prompt mentions the tool `{}`, which this agent does not have",
                diagnostics::clip(name)
            );
            let given =
                given.iter().take(6).map(|g| format!("`{}`", diagnostics::clip(g))).collect::<Vec<_>>();
            let d = rule.finding(message, code.span(*prompt)).about(name.as_str());
            out.push(d.help(format!(
                "give the agent that tool, or remove it from the prompt; the agent has {}",
                given.join(", ")
            )));
        }
    }
}

/// Returns the only system message of a conversation and the parameters of its only model call.
fn instructed(code: &Code, conversation: TermId) -> Option<(&TermId, &Arc<ModelParams>)> {
    let (mut prompt, mut asked) = (None, None);
    let mut left = vec![conversation];
    while let Some(id) = left.pop() {
        let term = code.term(id);
        match term {
            // Those within it are told something else.
            Term::Fresh(_) => continue,
            Term::Send(Role::System, own) if prompt.replace(own).is_some() => return None,
            Term::Recv(Recv::Data(params)) if !params.waiting && asked.replace(params).is_some() => {
                return None;
            }
            _ => {}
        }
        left.extend(term.children());
    }
    prompt.zip(asked)
}

/// Returns true if a tool is meant by a name: `Search-Web`, `search_web` and `server/search_web` are one.
fn same(tool: &str, name: &str) -> bool {
    let plain = |s: &str| -> String {
        s.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
    };
    let (tool, name) = (plain(tool), plain(name));
    tool.ends_with(&name) || name.ends_with(&tool)
}

/// Words in backticks that are called a tool: `` `search_web` tool ``, ``tool `search_web` ``.
fn named_tools(text: &str, out: &mut Vec<String>) {
    let parts: Vec<&str> = text.split('`').collect();
    for (i, word) in parts.iter().enumerate().skip(1).step_by(2) {
        let Some(after) = parts.get(i + 1) else { break };
        let name = word.strip_suffix("()").unwrap_or(word);
        let looks = name.contains('_')
            && name.len() <= 64
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
            && !name.starts_with(|c: char| c.is_ascii_digit());
        let before = parts[i - 1].trim_end();
        let says = after.starts_with(" tool")
            || after.starts_with(" function")
            || before.ends_with(" tool")
            || before.ends_with("the function");
        if looks && says && !out.iter().any(|n| n == name) && out.len() < 50 {
            out.push(name.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_called_a_tool_is_one() {
        let mut out = Vec::new();
        named_tools(
            "Use the `search_web` tool, then tool `read_page`; put it in `out_dir` and call `done()`.",
            &mut out,
        );
        assert_eq!(out, ["search_web", "read_page"]);
        assert!(same("files/read-page", "read_page") && !same("write_page", "read_page"));
    }
}
