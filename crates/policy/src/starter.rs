//! A policy file to begin with.
//!
//! Entry point: [`starter`].
//!
//! Invariant: as it is written it changes nothing: what it offers stands in comments, and the careful default
//! is stated first. Only a person knows what a tool does, so nothing is guessed from its name.

use core_ir::{EffectClass, ToolDecl};
use diagnostics::toml_key;
use std::fmt::Write as _;

/// The policy file for the tools of a program and the policies that it names, each with its place; `program`
/// names it in the head of the file.
///
/// # Examples
/// ```
/// use core_ir::ToolDecl;
/// use diagnostics::{FileId, Span};
/// let search = ToolDecl::unknown("web search".into(), Span { file: FileId(0), start: 0, end: 0 });
/// let text = policy::starter("crew.yaml", &[(&search, "crew.yaml:3".into())], &[]);
/// assert!(text.contains("[tools.\"web search\"]  # crew.yaml:3"));
/// assert!(policy::Policy::parse(FileId(0), &text).is_ok());
/// ```
pub fn starter(program: &str, tools: &[(&ToolDecl, String)], policies: &[(&str, String)]) -> String {
    // A line break in a name would end the comment that it is in.
    let plain =
        |text: &str| -> String { text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect() };
    let (unknown, known): (Vec<_>, Vec<_>) = tools.iter().partition(|(t, _)| t.is_unspecified());
    let mut out = format!("# What the tools of {} do.\n", plain(program));
    if !unknown.is_empty() {
        out.push_str(UNDECIDED);
    }
    for (tool, place) in &unknown {
        // Writing to a string cannot fail.
        let _ = write!(out, "\n[tools.{}]  # {}\n{CHOICES}", toml_key(&tool.name), plain(place));
    }
    if !known.is_empty() {
        out.push_str("\n# What the program says itself of its other tools; a table here replaces it.\n");
    }
    for (tool, place) in &known {
        let effect = match tool.effect {
            EffectClass::Pure => "pure",
            EffectClass::Read => "read",
            EffectClass::Write => "write",
        };
        let approve = if tool.approve.may_ask() { ", approve = true" } else { "" };
        let _ = writeln!(
            out,
            "# [tools.{}]  # {}: effect = \"{effect}\"{approve}",
            toml_key(&tool.name),
            plain(place)
        );
    }
    if !policies.is_empty() {
        out.push_str(NAMED);
    }
    for (name, place) in policies {
        let _ = write!(out, "\n# [policies.{}]  # {}\n{DEMANDS}", toml_key(name), plain(place));
    }
    out
}

const NAMED: &str = "\
\n# What the policies demand that the program names. Without its table the program
# does not run: remove the `#` before the name and before what is demanded.
";

const DEMANDS: &str = "\
# approve = true                # a person allows each call
# allow = '\\called. true'      # or a function does: a text says why not
";

const UNDECIDED: &str = "\
#
# Nothing says what the tools below do. So Entail assumes that each of them
# changes the world and returns untrusted data. Untrusted data must not decide
# such a call. For each tool, remove the `#` before the one line that is true.
# Then `entail check --show flow` shows which calls are allowed.
";

const CHOICES: &str = "\
# effect = \"pure\"     # only computes from what it is given
# effect = \"read\"     # only looks things up; its results stay untrusted
# effect = \"write\"    # changes the world; untrusted data must not decide it
# approve = true      # with \"write\": or a person allows the single call
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;
    use core_ir::{LabelSpec, ToolParam, Type};
    use diagnostics::{FileId, Span};

    const AT: Span = Span { file: FileId(0), start: 0, end: 0 };

    #[test]
    fn it_is_a_policy_and_says_nothing_until_somebody_does() {
        let (sum, odd) =
            (ToolDecl::unknown("sum".into(), AT), ToolDecl::unknown("a\n[models]\"b".into(), AT));
        let known = ToolDecl { effect: EffectClass::Read, ..ToolDecl::unknown("look".into(), AT) };
        // What a function of Python takes is known, and not what it does.
        let param = ToolParam { name: "text".into(), ty: Type::Str, bound: LabelSpec::BOTTOM, default: None };
        let typed = ToolDecl { params: vec![param], ..ToolDecl::unknown("typed".into(), AT) };
        let text = starter("crew.py", &[(&typed, "tools.py:3".into())], &[]);
        assert!(text.contains("[tools.typed]  # tools.py:3\n# effect = \"pure\""), "{text}");
        let tools = [(&sum, "a.yaml:1".to_string()), (&odd, "a\nb:2".into()), (&known, "c:3".into())];
        let text = starter("my\nprogram", &tools, &[("spending", "`pay`, a:1\n[x]".into())]);
        let policy = Policy::parse(FileId(0), &text).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
        assert_eq!(policy.tool_names().collect::<Vec<_>>(), ["a\n[models]\"b", "sum"]);
        assert!(!policy.knows("sum") && !policy.knows("look"), "{text}");
        assert!(text.lines().all(|l| l.len() <= 80), "{text}");
        // Each line that is offered is one that a policy may have.
        for line in ["effect = \"pure\"", "effect = \"read\"", "effect = \"write\"", "approve = true"] {
            let chosen = text.replacen(&format!("# {line}"), line, 1);
            let policy = Policy::parse(FileId(0), &chosen).unwrap_or_else(|e| panic!("{chosen}\n{e:?}"));
            assert_eq!(policy.knows("sum"), line.starts_with("effect"), "{chosen}");
        }
        // A policy that nobody has decided is not there, so the program that names it does not run.
        assert_eq!(policy.policy_names().count(), 0, "{text}");
        let demands = text.split("# [policies.").nth(1).unwrap();
        for line in DEMANDS.lines() {
            let chosen = demands.replacen(line, line.trim_start_matches("# "), 1);
            let policy = Policy::parse(FileId(0), &format!("[policies.{chosen}"));
            let policy = policy.unwrap_or_else(|e| panic!("{chosen}\n{e:?}"));
            assert_eq!(policy.policy_names().collect::<Vec<_>>(), ["spending"]);
        }
    }
}
