//! New rules of lint: everything but the check and the page, which are the two files to edit.
//!
//! Entry point: [`rule`] returns the files to write; `cargo xtask new-rule` writes them.

use crate::File;

const REGISTRY: &str = "crates/lint/src/rules/mod.rs";
const SUMMARY: &str = "docs/SUMMARY.md";

/// Returns the new and the changed files for a rule: its source, its page, the registry and the summary.
///
/// # Errors
/// A code or name of another form, or one that exists already.
pub fn rule(files: &[File], code: &str, name: &str) -> Result<Vec<File>, String> {
    let digits = code.strip_prefix(['L', 'S']).unwrap_or("");
    if digits.len() != 3 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("`{code}` is no code of a rule: expected `L` or `S` and three digits"));
    }
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') {
        return Err(format!("`{name}` is no name of a rule: expected words in lower case with hyphens"));
    }
    if files.iter().any(|f| f.path.starts_with(&format!("docs/rules/{code}-"))) {
        return Err(format!("there is a rule `{code}`"));
    }
    let module = format!("{}_{}", code.to_lowercase(), name.replace('-', "_"));
    let page = format!("docs/rules/{code}-{name}.md");
    let text = |path: &str| {
        let file = files.iter().find(|f| f.path == path);
        file.map(|f| f.text.as_str()).ok_or_else(|| format!("there is no `{path}`"))
    };
    // Modules, rules and links are sorted by their codes.
    let registry = inserted(text(REGISTRY)?, "mod ", &format!("mod {module};"))?;
    let registry = inserted(&registry, "    &", &format!("    &{module}::RULE,"))?;
    let link = format!("  - [{code} {name}](rules/{code}-{name}.md)");
    let summary = inserted(text(SUMMARY)?, &format!("  - [{}", &code[..1]), &link)?;
    Ok(vec![
        File::new(&format!("crates/lint/src/rules/{module}.rs"), &source(code, name, &page)),
        File::new(&page, &self::page(code, name)),
        File { path: REGISTRY.into(), text: registry },
        File { path: SUMMARY.into(), text: summary },
    ])
}

/// Inserts a line among those that begin with a prefix, before the first one that is greater, or after the last.
fn inserted(text: &str, prefix: &str, line: &str) -> Result<String, String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let alike: Vec<usize> = (0..lines.len()).filter(|i| lines[*i].starts_with(prefix)).collect();
    let greater = alike.iter().copied().find(|i| lines[*i] > line);
    let at = greater.or(alike.last().map(|last| last + 1));
    lines.insert(at.ok_or_else(|| format!("no line begins with `{prefix}`"))?, line);
    Ok(lines.join("\n") + "\n")
}

fn source(code: &str, name: &str, page: &str) -> String {
    format!(
        r#"//! {code}: TODO, the defect in a few words.

use crate::{{Check, Context, Rule}};
use diagnostics::{{Diagnostic, Level}};

pub(super) static RULE: Rule = Rule {{
    code: "{code}",
    name: "{name}",
    level: Level::Warn,
    meaning: "TODO: the defect in one line of semantics",
    docs: include_str!("../../../../{page}"),
    check: Check::Term(check),
}};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {{
    let code = context.code();
    for (id, _term) in code.iter() {{
        let is_defect = false;
        if is_defect {{
            out.push(rule.finding("TODO: the problem", code.span(id)).help("TODO: the change that solves it"));
        }}
    }}
}}
"#
    )
}

fn page(code: &str, name: &str) -> String {
    let example =
        "```yaml\nagentId: helper\ntype: simple\nmodel: {name: small}\nsystemPrompt: You help.\n```";
    format!(
        "# {code}: {name}\n\nLevel: warn · Theme: TODO\n\n## What it does\n\nFinds TODO.\n\n**Semantics.** TODO.\n\n\
         ## Why it matters\n\nTODO.\n\n## Example\n\n{example}\n\n## Fix\n\n{example}\n\n## Known limits\n\nTODO.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> Vec<File> {
        vec![
            File::new(
                REGISTRY,
                "mod l001_a;\nmod l003_c;\n\nconst R: &[&Rule] = &[\n    &l001_a::RULE,\n];\n",
            ),
            File::new(
                SUMMARY,
                "- [Rules](rules/README.md)\n  - [L001 a](rules/L001-a.md)\n  - [S001 b](rules/S001-b.md)\n",
            ),
            File::new("docs/rules/L001-a.md", ""),
        ]
    }

    #[test]
    fn a_rule_is_registered_where_it_belongs() {
        let made = rule(&repository(), "L002", "two-words").unwrap_or_default();
        let text = |path: &str| made.iter().find(|f| f.path == path).map_or("", |f| f.text.as_str());
        let modules = "mod l001_a;\nmod l002_two_words;\nmod l003_c;\n";
        assert!(text(REGISTRY).starts_with(modules), "{}", text(REGISTRY));
        assert!(text(REGISTRY).contains("    &l001_a::RULE,\n    &l002_two_words::RULE,\n];"));
        assert!(text(SUMMARY).contains("a.md)\n  - [L002 two-words](rules/L002-two-words.md)\n  - [S001"));
        assert!(text("crates/lint/src/rules/l002_two_words.rs").contains("docs/rules/L002-two-words.md"));
        assert!(text("docs/rules/L002-two-words.md").starts_with("# L002: two-words\n"));
    }

    #[test]
    fn codes_and_names_are_checked() {
        for (code, name) in [("L1", "a"), ("X001", "a"), ("L002", "A b"), ("L002", ""), ("L001", "other")] {
            assert!(rule(&repository(), code, name).is_err(), "{code} {name}");
        }
    }
}
