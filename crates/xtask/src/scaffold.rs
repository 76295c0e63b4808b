//! New rules of lint and new front ends: everything but what only their authors know.
//!
//! Entry points: [`rule`] and [`front_end`] return the files to write; `cargo xtask new-rule` and
//! `cargo xtask new-frontend` write them. Of a rule the check and the page are left to edit, of a front end
//! its source, its page and a configuration of the suite.

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
    let text = |path| text_of(files, path);
    // Modules, rules and links are sorted by their codes.
    let registry = inserted(text(REGISTRY)?, "mod ", &format!("mod {module};"))?;
    let registry = inserted(&registry, "    &", &format!("    &{module}::RULE,"))?;
    let link = format!("  - [{code} {name}](rules/{code}-{name}.md)");
    // Two characters: names of front ends begin with the same letter.
    let summary = inserted(text(SUMMARY)?, &format!("  - [{}", &code[..2]), &link)?;
    Ok(vec![
        File::new(&format!("crates/lint/src/rules/{module}.rs"), &source(code, name, &page)),
        File::new(&page, &self::page(code, name)),
        File { path: REGISTRY.into(), text: registry },
        File { path: SUMMARY.into(), text: summary },
    ])
}

const FRONT_ENDS: &str = "crates/frontends/src/registry.rs";
const MODULES: &str = "crates/frontends/src/lib.rs";

/// Returns the new and the changed files for a front end that reads YAML: its source, its page, a
/// configuration in the suite, the modules, the registry and the summary.
///
/// # Errors
/// A name of another form, or one that exists already.
pub fn front_end(files: &[File], name: &str) -> Result<Vec<File>, String> {
    let is_name = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if !is_name || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err(format!("`{name}` is no name of a front end: expected a module in lower case"));
    }
    let folder = format!("crates/frontends/src/{name}/mod.rs");
    if files.iter().any(|f| f.path == folder) {
        return Err(format!("there is a front end `{name}`"));
    }
    let text = |path| text_of(files, path);
    let ty: String = name.split('_').map(capital).collect();
    let modules = inserted(text(MODULES)?, "mod ", &format!("mod {name};"))?;
    // Before those that recognize files of no framework in particular.
    let registry = text(FRONT_ENDS)?;
    let before = "    &generic::MultiAgent";
    let at = registry.find(before).ok_or_else(|| format!("{FRONT_ENDS}: no line begins with `{before}`"))?;
    let line = format!("    &crate::{name}::{ty},\n");
    let registry = format!("{}{line}{}", &registry[..at], &registry[at..]);
    let link = format!("  - [{ty}](frontends/{name}.md)");
    let summary = inserted(text(SUMMARY)?, "  - [Agents of no framework]", &link)?;
    let example = format!("kind: {name}\nname: helper\nmodel: small\ninstructions: You help.\n");
    Ok(vec![
        File::new(&folder, &FRONT_END.replace("NAME", name).replace("TYPE", &ty)),
        File::new(&format!("docs/frontends/{name}.md"), &front_end_page(name, &ty)),
        File::new(&format!("suite/frontends/{name}/agent.yaml"), &example),
        File { path: MODULES.into(), text: modules },
        File { path: FRONT_ENDS.into(), text: registry },
        File { path: SUMMARY.into(), text: summary },
    ])
}

fn text_of<'f>(files: &'f [File], path: &str) -> Result<&'f str, String> {
    let file = files.iter().find(|f| f.path == path);
    file.map(|f| f.text.as_str()).ok_or_else(|| format!("there is no `{path}`"))
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

fn front_end_page(name: &str, title: &str) -> String {
    format!(
        "# {title}\n\nThe name of this front end in findings and statistics is `{name}`.\n\nTODO: which files it reads.\n\n\
         ## An example\n\n```yaml\n{{{{#include ../../suite/frontends/{name}/agent.yaml}}}}\n```\n\n\
         Findings and the term:\n\n```text\n{{{{#include ../../suite/frontends/{name}/agent.yaml.expected}}}}\n```\n"
    )
}

/// Source of a front end for one agent a file, with the fields that most formats have.
const FRONT_END: &str = r#"//! TYPE: TODO, which files these are.
//!
//! Source: TODO, the document or program that defines the format.

use frontend_kit::emit::LoopBound;
use frontend_kit::kit::{Units, mark, plain};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{self, Given, Shape, by_name};

/// The front end.
pub struct TYPE;

/// Bound of a loop whose configuration states none.
fn no_limit(_: &frontend_kit::Versions) -> LoopBound {
    LoopBound::unknown("TYPE documents no limit")
}

const SHAPE: Shape = Shape {
    what: "a TYPE agent",
    name: &["name"],
    prompt: &["instructions"],
    model: &["model"],
    tools: &["tools"],
    end: None,
    bound: &["max_steps"],
    also: &["kind"],
    unused: &[],
    split: plain,
    default: no_limit,
};

impl Frontend for TYPE {
    fn name(&self) -> &'static str {
        "NAME"
    }

    fn detect(&self, file: &File) -> u8 {
        if mark::any(file, |root| mark::is(root, "kind", "NAME")) { 90 } else { 0 }
    }

    fn fields(&self) -> Vec<&'static str> {
        SHAPE.fields()
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let words = Words { prompt: "state the task of the agent: `instructions`", ..Words::default() };
        let facts = Facts { words, ..Facts::default() };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let name = root.get("name").and_then(|n| n.text()).unwrap_or("agent");
            units.add(name, UnitKind::Agent, root.head(), |kit| {
                if let Err(term) = kit.open(name, root.span(), root.head(), 0) {
                    return term;
                }
                let given = Given { called: Some(name), ..Given::default() };
                let term = shape::agent_with(kit, root, &SHAPE, given, Vec::new(), &by_name);
                kit.close();
                term
            });
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no agent is defined")
    }
}
"#;

/// Inserts a line among those that begin with a prefix, before the first one that is greater, or after the
/// last.
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
    docs: page!("../../../../{page}"),
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
                "- [Rules](rules/README.md)\n  - [L001 a](rules/L001-a.md)\n  - [S001 b](rules/S001-b.md)\n  - [Langflow](frontends/langflow.md)\n",
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
    fn a_front_end_is_registered_before_the_generic_ones() {
        let mut files = repository();
        files.push(File::new(MODULES, "mod adk;\nmod n8n;\n"));
        files.push(File::new(FRONT_ENDS, "    &adk::Adk,\n    &generic::MultiAgent,\n"));
        files[1].text.push_str("  - [Agents of no framework](frontends/generic.md)\n");
        let made = front_end(&files, "my_kit").unwrap_or_default();
        let text = |path: &str| made.iter().find(|f| f.path == path).map_or("", |f| f.text.as_str());
        assert_eq!(text(MODULES), "mod adk;\nmod my_kit;\nmod n8n;\n");
        assert!(text(FRONT_ENDS).contains("&adk::Adk,\n    &crate::my_kit::MyKit,\n"));
        assert!(text(SUMMARY).contains("[MyKit](frontends/my_kit.md)"));
        assert!(text("crates/frontends/src/my_kit/mod.rs").contains("pub struct MyKit;"));
        assert!(text("suite/frontends/my_kit/agent.yaml").starts_with("kind: my_kit\n"));
        assert!(front_end(&files, "My-Kit").is_err());
    }

    #[test]
    fn codes_and_names_are_checked() {
        for (code, name) in [("L1", "a"), ("X001", "a"), ("L002", "A b"), ("L002", ""), ("L001", "other")] {
            assert!(rule(&repository(), code, name).is_err(), "{code} {name}");
        }
    }
}
