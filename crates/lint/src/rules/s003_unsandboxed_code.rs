//! S003: what a model writes is run without a fence.

use crate::{Check, FileContext, Rule, replace};
use diagnostics::{Applicability, Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "S003",
    name: "unsandboxed-code",
    level: Level::Warn,
    meaning: "a reply of a model is evaluated outside of the calculus, with every right of the process: no bound and no policy holds for it",
    docs: page!("../../../../docs/rules/S003-unsandboxed-code.md"),
    check: Check::File(check),
};

/// Executors that run code in this process, or in one with the same rights.
const EXECUTORS: &[&str] =
    &["LocalCommandLineCodeExecutor", "UnsafeLocalCodeExecutor", "PythonREPLTool", "PythonAstREPLTool"];

fn check(rule: &Rule, context: &FileContext<'_>, out: &mut Vec<Diagnostic>) {
    context.texts(&mut |key, text, span| {
        let unfenced = match key {
            "code_execution_mode" => text == "unsafe",
            "use_docker" => matches!(text, "false" | "False"),
            "provider" => text.ends_with(".LocalCommandLineCodeExecutor"),
            "allow_dangerous_code" => text == "True",
            python::CALLED => EXECUTORS.contains(&text),
            _ => false,
        };
        if key == python::RUN_BY_TOOL {
            let what = if matches!(text, "exec" | "eval") { "code" } else { "a command" };
            let message = format!("this tool runs {what} from a model without a sandbox: `{text}`");
            let d = rule.finding(message, span).about(text);
            out.push(
                d.help("run it in a container, allow only what is listed, or let a person approve the call"),
            );
        }
        if unfenced {
            let d = rule.finding("code from a model runs here without a sandbox", span);
            let fenced = match key {
                "code_execution_mode" => Some("safe"),
                "use_docker" => Some(if text == "False" { "True" } else { "true" }),
                _ => None,
            };
            let mut d = d.help("run it in a container, or give the agent tools with signatures instead");
            d.fix = fenced.and_then(|by| replace(text, span, 0..text.len(), by, Applicability::Unsafe));
            out.push(d);
        }
    });
    for server in &context.servers {
        for (tool, at) in server.unasked.iter().filter(|(tool, _)| is_shell(tool)) {
            let message =
                format!("`{}` runs commands or code from a model without approval", diagnostics::clip(tool));
            out.push(
                rule.finding(message, *at)
                    .about(*tool)
                    .help("remove it from the tools that are approved automatically"),
            );
        }
    }
}

/// Returns true if the name of a tool says that it runs commands or code: `execute_command`, `runShell`,
/// `bash`.
fn is_shell(tool: &str) -> bool {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in tool.chars() {
        if !c.is_ascii_alphanumeric()
            || c.is_ascii_uppercase() && !before.is_ascii_uppercase()
            || words.is_empty()
        {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_ascii_alphanumeric()) {
            word.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    words.retain(|w| !w.is_empty());
    let runs = |two: &[String]| {
        let what = ["command", "commands", "code", "script", "python", "javascript"];
        matches!(two[0].as_str(), "execute" | "exec" | "run" | "eval") && what.contains(&two[1].as_str())
    };
    words.iter().any(|w| matches!(w.as_str(), "shell" | "bash" | "powershell")) || words.windows(2).any(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_that_run_what_they_are_given() {
        for shell in
            ["execute_command", "run_commands", "runShell", "bash", "ExecuteCode", "run-python", "shell_exec"]
        {
            assert!(is_shell(shell), "{shell}");
        }
        for other in [
            "search",
            "run_query",
            "list_commands",
            "execute",
            "read_code",
            "run_tests",
            "execute_resource_command",
            "*",
            "",
        ] {
            assert!(!is_shell(other), "{other}");
        }
    }
}
