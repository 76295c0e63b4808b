//! Parts of the book that are computed: indexes of rules, front ends and diagnostics, exit statuses, crates.
//!
//! A page holds a generated part between the lines `<!-- generated: NAME -->` and `<!-- end -->`. Everything
//! else on the page is written by hand.

use crate::{File, markdown};
use std::collections::{BTreeMap, BTreeSet};

/// Pages with generated parts: the page, the name of the part, and how it is computed.
type Part = (&'static str, &'static str, fn(&[File]) -> String);

const PARTS: &[Part] = &[
    ("docs/rules/README.md", "rules", rules),
    ("docs/frontends/README.md", "front ends", front_ends),
    ("docs/exit-codes.md", "exit statuses", exit_statuses),
    ("docs/architecture.md", "crates", crates),
    ("docs/support.md", "support", support),
    ("docs/providers.md", "providers", providers),
    ("docs/language/programs.md", "lines", programs),
    ("docs/language/programs.md", "mistakes", mistakes),
];

/// Page of the diagnostics, which is computed from what `entail explain --format json` prints.
pub const DIAGNOSTICS: &str = "docs/diagnostics.md";

/// Returns the pages whose generated parts are not current, each with its new text.
pub fn pages(files: &[File]) -> Vec<File> {
    let mut out: Vec<File> = Vec::new();
    for (path, name, compute) in PARTS {
        let Some(file) = files.iter().find(|f| f.path == *path) else { continue };
        // A page may have several parts.
        let known = out.iter_mut().find(|f| f.path == *path);
        let text = known.as_ref().map_or(&file.text, |f| &f.text);
        let Some(text) = replaced(text, name, &compute(files)).filter(|new| new != text) else { continue };
        match known {
            Some(page) => page.text = text,
            None => out.push(File { path: file.path.clone(), text }),
        }
    }
    out
}

/// Returns the pages that are not current or have no place for their part, each with a message.
pub fn outdated(files: &[File]) -> Vec<(String, String)> {
    let stale = pages(files).into_iter().map(|f| (f.path, "run `cargo xtask generate`".to_string()));
    let has_no_place = |path: &str, name: &str| {
        files.iter().any(|f| f.path == path && !f.text.contains(&format!("<!-- generated: {name} -->")))
    };
    let lost = PARTS.iter().filter(|(path, name, _)| has_no_place(path, name));
    let lost =
        lost.map(|(path, name, _)| (path.to_string(), format!("no part `<!-- generated: {name} -->`")));
    stale.chain(lost).collect()
}

/// Replaces the generated part of a page; `None` if the page has no place for it.
pub fn replaced(page: &str, name: &str, part: &str) -> Option<String> {
    let begin = format!("<!-- generated: {name} -->\n");
    let start = page.find(&begin)? + begin.len();
    let end = start + page[start..].find("<!-- end -->")?;
    Some(format!("{}\n{}\n\n{}", &page[..start], part.trim_end(), &page[end..]))
}

/// Returns the pages of a folder of `docs/`, without its index, sorted by path.
fn pages_of<'f>(files: &'f [File], folder: &str) -> Vec<&'f File> {
    let is_page = |f: &&File| {
        f.path
            .strip_prefix(folder)
            .is_some_and(|rest| !rest.contains('/') && rest != "README.md" && rest.ends_with(".md"))
    };
    files.iter().filter(is_page).collect()
}

fn title(page: &str) -> &str {
    markdown::headings(page).first().map_or("", |(_, title)| title)
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Tables of the rules, one for each theme, in the order of the first code of a theme.
fn rules(files: &[File]) -> String {
    let mut themes: Vec<(String, String)> = Vec::new();
    for page in pages_of(files, "docs/rules/") {
        let (code, name) = title(&page.text).split_once(": ").unwrap_or_default();
        let line = page.text.lines().find_map(|l| l.strip_prefix("Level: ")).unwrap_or("");
        let (level, theme) = line.split_once(" · Theme: ").unwrap_or_default();
        let does = markdown::first_sentence(markdown::section(&page.text, "What it does").unwrap_or(""));
        let does = does.strip_prefix("Finds ").unwrap_or(&does);
        let file = name_of(&page.path);
        let row = format!("| [{code}]({file}) | {name} | {level} | {does} |\n");
        let theme = theme.trim_end_matches('.').to_string();
        match themes.iter_mut().find(|(t, _)| *t == theme) {
            Some((_, rows)) => rows.push_str(&row),
            None => themes.push((theme, row)),
        }
    }
    let table = |(theme, rows): (String, String)| {
        let mut head: String = theme.chars().take(1).flat_map(char::to_uppercase).collect();
        head.extend(theme.chars().skip(1));
        format!("## {head}\n\n| code | name | level | finds |\n|---|---|---|---|\n{rows}")
    };
    themes.into_iter().map(table).collect::<Vec<_>>().join("\n")
}

/// Table of the front ends: title, names in findings, first sentence.
fn front_ends(files: &[File]) -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    for page in pages_of(files, "docs/frontends/") {
        let body = page.text.split_once("\n\n").map_or("", |(_, body)| body);
        let (names, rest) = body.split_once("\n\n").unwrap_or((body, ""));
        let names: Vec<String> = names
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|n| !n.contains('.'))
            .map(|n| format!("`{n}`"))
            .collect();
        let title = title(&page.text);
        let row = format!(
            "| [{title}]({}) | {} | {} |\n",
            name_of(&page.path),
            names.join(", "),
            markdown::first_sentence(rest).replace('|', "\\|")
        );
        rows.push((title.to_lowercase(), row));
    }
    rows.sort();
    let rows: String = rows.into_iter().map(|(_, row)| row).collect();
    format!("| framework | name in findings | reads |\n|---|---|---|\n{rows}")
}

/// Table of the providers, out of the data file that a test of the runtime compares with its table.
fn providers(files: &[File]) -> String {
    table_of(files, "crates/runtime/data/providers.tsv", |name| format!("`{name}`"))
}

/// Table of the mistakes that the checkers find, as `scripts/programs --mistakes` has measured it.
fn mistakes(files: &[File]) -> String {
    table_of(files, "examples/programs/mistakes.tsv", str::to_string)
}

/// Table of a file with tabs between cells; `first` writes the first cell of a row.
fn table_of(files: &[File], path: &str, first: fn(&str) -> String) -> String {
    let data = files.iter().find(|f| f.path == path);
    let mut out = String::new();
    for (n, line) in data.map_or("", |f| &f.text).lines().enumerate() {
        let mut cells: Vec<String> = line.split('\t').map(|cell| cell.replace('|', "\\|")).collect();
        if let Some(name) = cells.first_mut().filter(|_| n > 0) {
            *name = first(name);
        }
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
        if n == 0 {
            out.push_str(&format!("|{}\n", "---|".repeat(cells.len())));
        }
    }
    out
}

/// Folder of the programs that are compared with frameworks.
const PROGRAMS: &str = "examples/programs/";

/// Table of the lines of each program in the language and in the frameworks.
fn programs(files: &[File]) -> String {
    let columns = ["program", "what it does", "Entail", "of it policy", "BAML", "LangGraph", "pydantic-ai"];
    let mut out = format!("| {} |\n{}|\n", columns.join(" | "), "|---".repeat(columns.len()));
    let mut sums = [0usize; 5];
    for program in files.iter().filter(|f| f.path.starts_with(PROGRAMS) && f.path.ends_with(".agent")) {
        let Some(stem) = program.path.strip_suffix(".agent") else { continue };
        let name = name_of(stem);
        let lines = |suffixes: &[&str]| -> usize {
            let parts = suffixes.iter().filter_map(|s| {
                let path = format!("{stem}{s}");
                files.iter().find(|f| f.path == path)
            });
            parts.map(code_lines).sum()
        };
        let counts = [
            lines(&[".agent"]),
            policy_lines(program),
            lines(&[".baml", "_baml.py"]),
            lines(&["_langgraph.py"]),
            lines(&["_pydantic_ai.py"]),
        ];
        let cells = counts.map(|n| if n == 0 { String::new() } else { n.to_string() }).join(" | ");
        out.push_str(&format!("| `{name}` | {} | {cells} |\n", heading_of(program)));
        sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
    }
    let sums = sums.map(|n| n.to_string()).join(" | ");
    out.push_str(&format!("| all | | {sums} |\n"));
    out
}

/// First sentence of the comment that a program begins with, behind its colon.
fn heading_of(program: &File) -> String {
    let comment = program.text.lines().map_while(|l| l.strip_prefix("-- "));
    let text = comment.collect::<Vec<_>>().join(" ");
    let sentence = markdown::first_sentence(&text);
    let said = sentence.split_once(": ").map_or(sentence.clone(), |(_, said)| said.to_string());
    said.trim_end_matches('.').to_string()
}

/// Lines of the policy blocks of a program.
fn policy_lines(file: &File) -> usize {
    let (mut count, mut is_inside) = (0, false);
    for line in file.text.lines() {
        is_inside |= line.starts_with("policy {");
        count += usize::from(is_inside && !line.trim().is_empty());
        is_inside &= line != "}";
    }
    count
}

/// Lines that are not blank, without the comment or doc string at the beginning and without tests.
fn code_lines(file: &File) -> usize {
    let (is_agent, is_python) = (file.path.ends_with(".agent"), file.path.ends_with(".py"));
    let is_heading = |l: &str| match is_python {
        true => l.starts_with("\"\"\""),
        false => l.starts_with("-- ") || l.starts_with("//"),
    };
    let (mut count, mut in_test) = (0, false);
    for line in file.text.lines().skip_while(|l| is_heading(l)) {
        in_test |= is_agent && line.starts_with("test ");
        count += usize::from(!in_test && !line.trim().is_empty());
        in_test &= line != "}";
    }
    count
}

/// Variants of an enum with their doc comments, from the file that declares it.
fn variants(files: &[File], name: &str) -> Vec<(String, String)> {
    let head = format!("pub enum {name} {{");
    let Some(body) = files.iter().filter(|f| f.path.ends_with(".rs")).find_map(|f| f.text.split_once(&head))
    else {
        return Vec::new();
    };
    let (mut out, mut doc) = (Vec::new(), String::new());
    for line in body.1.lines().map(str::trim).take_while(|l| *l != "}") {
        if let Some(text) = line.strip_prefix("///") {
            doc.push_str(text);
        } else if let Some(variant) = line.strip_suffix(',').filter(|v| v.chars().all(char::is_alphanumeric))
        {
            out.push((variant.to_string(), std::mem::take(&mut doc).trim().to_string()));
        }
    }
    out
}

/// Table of the exit statuses, from the documentation of `enum Exit`: `Meaning: status.`
fn exit_statuses(files: &[File]) -> String {
    let mut out = "| status | meaning |\n|---|---|\n".to_string();
    for (_, doc) in variants(files, "Exit") {
        let (meaning, status) = doc.split_once(": ").unwrap_or((&doc, ""));
        let status = status.trim_end_matches('.');
        out.push_str(&match status.split_once("; ") {
            Some((first, other)) => format!("| {first} | {meaning} ({other}) |\n"),
            None => format!("| {status} | {meaning} |\n"),
        });
    }
    out
}

/// Returns the names that an enum's variants have in JSON: `ErrorCode::Flow => "flow"`.
pub fn names_of_enum(files: &[File], name: &str) -> Vec<String> {
    let declares = |f: &&File| f.text.contains(&format!("pub enum {name} {{"));
    let Some(file) = files.iter().find(declares) else { return Vec::new() };
    let arms = file.text.lines().filter_map(|l| l.trim().strip_prefix(&format!("{name}::")));
    arms.filter_map(|arm| arm.split_once(" => \"")?.1.split_once('"')).map(|(n, _)| n.to_string()).collect()
}

/// Table of the crates with the crates of the workspace that each depends on.
fn crates(files: &[File]) -> String {
    let manifests = files.iter().filter(|f| f.path.starts_with("crates/") && f.path.ends_with("/Cargo.toml"));
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in manifests {
        let name = file.text.lines().find_map(|l| l.strip_prefix("name = ")).unwrap_or("").trim_matches('"');
        let section = file.text.split("\n[dependencies]\n").nth(1).unwrap_or("");
        let lines = section.lines().take_while(|l| !l.starts_with('['));
        let names = lines.filter_map(|l| l.split(['.', ' ', '=']).next());
        all.insert(name.to_string(), names.filter(|n| !n.is_empty()).map(str::to_string).collect());
    }
    let names: Vec<String> = all.keys().cloned().collect();
    let mut out = "| crate | depends on |\n|---|---|\n".to_string();
    for (name, needs) in &all {
        let ours: Vec<String> =
            needs.iter().filter(|n| names.contains(n)).map(|n| format!("`{n}`")).collect();
        let ours = if ours.is_empty() { "no other crate".to_string() } else { ours.join(", ") };
        out.push_str(&format!("| `{name}` | {ours} |\n"));
    }
    out
}

/// Folders of `suite/faithful` with the names of their frameworks, in the order of the page.
const COMPARED: [(&str, &str); 6] = [
    ("langgraph", "LangGraph and LangChain"),
    ("langchain", "LangChain's saved chains"),
    ("crewai", "CrewAI"),
    ("openai_agents", "OpenAI Agents SDK"),
    ("autogen", "AutoGen 0.4 and later"),
    ("autogen_classic", "AutoGen before 0.4"),
];

/// Tables of the constructs that are compared with their frameworks, and of the unknown parts in the suite.
fn support(files: &[File]) -> String {
    let mut out = String::new();
    for (folder, title) in COMPARED {
        out.push_str(&format!("## {title}\n\n| construct | result |\n|---|---|\n"));
        for program in files.iter().filter(|f| f.path.starts_with(&format!("suite/faithful/{folder}/"))) {
            let Some(what) = description(program) else { continue };
            let script = program.path.rsplit_once('.').map_or("", |(stem, _)| stem);
            let script = files.iter().find(|f| f.path.strip_suffix(".json") == Some(script));
            let value = script.and_then(|s| serde_json::from_str::<serde_json::Value>(&s.text).ok());
            let result = match value.as_ref().and_then(|v| v["known"].as_str()) {
                Some(difference) => format!("approximate: {difference}"),
                None => "exact".to_string(),
            };
            out.push_str(&format!("| {} | {result} |\n", what.replace('|', "\\|")));
        }
        out.push('\n');
    }
    out.push_str("## Unknown parts in the suite\n\n| front end | reason |\n|---|---|\n");
    for (name, reasons) in unknown_parts(files) {
        for reason in reasons {
            out.push_str(&format!("| `{name}` | {} |\n", reason.replace('|', "\\|")));
        }
    }
    out
}

/// Description of a program of `suite/faithful`: its doc string, or the comment on its first line.
fn description(program: &File) -> Option<String> {
    let text = match program.path.rsplit('.').next()? {
        "py" => program.text.strip_prefix("\"\"\"")?.split("\"\"\"").next()?,
        "yaml" => program.text.strip_prefix("# ")?.lines().next()?,
        _ => return None,
    };
    Some(text.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches('.').to_string())
}

/// Reasons of the `unknown` terms that the front ends make of the suite, by folder.
fn unknown_parts(files: &[File]) -> BTreeMap<String, BTreeSet<String>> {
    let mut out: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files.iter().filter(|f| f.path.ends_with(".expected")) {
        let folder = file.path.split('/').nth(2).unwrap_or_default();
        for part in file.text.split("unknown \"").skip(1) {
            let reason = part.split('"').next().unwrap_or_default();
            out.entry(folder.to_string()).or_default().insert(reason.trim_end_matches('\\').to_string());
        }
    }
    out
}

/// Returns the table of all diagnostics, from the lines that `entail explain --format json` prints.
///
/// # Errors
/// A line that is not an object with `code` and `title`.
pub fn diagnostics(lines: &str) -> Result<String, String> {
    let mut out = "| code | title |\n|---|---|\n".to_string();
    for line in lines.lines().filter(|l| !l.trim().is_empty()) {
        let value: serde_json::Value = serde_json::from_str(line).map_err(|e| format!("{e}: {line}"))?;
        let field = |name: &str| value[name].as_str().ok_or_else(|| format!("no `{name}`: {line}"));
        out.push_str(&format!("| `{}` | {} |\n", field("code")?, field("title")?.replace('|', "\\|")));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_replaced_and_the_rest_is_kept() {
        let page = "a\n<!-- generated: x -->\n\nold\n\n<!-- end -->\nb\n";
        let new = replaced(page, "x", "new\n").unwrap_or_default();
        assert_eq!(new, "a\n<!-- generated: x -->\n\nnew\n\n<!-- end -->\nb\n");
        assert_eq!(replaced(&new, "x", "new").as_deref(), Some(new.as_str()));
        assert_eq!(replaced(page, "y", "new"), None);
    }

    #[test]
    fn rules_are_listed_by_theme() {
        let page = |code: &str, theme: &str| {
            let text = format!(
                "# {code}: n\n\nLevel: warn · Theme: {theme}\n\n## What it does\n\nFinds a. More.\n\n## Fix\n"
            );
            File::new(&format!("docs/rules/{code}-n.md"), &text)
        };
        let index = File::new("docs/rules/README.md", "<!-- generated: rules -->\n<!-- end -->\n");
        let files = [page("L001", "prompts"), page("L002", "loops"), page("L003", "prompts"), index];
        let text = &pages(&files)[0].text;
        let at = |part: &str| text.find(part).unwrap_or(usize::MAX);
        assert!(at("| [L001](L001-n.md) | n | warn | a. |") < at("[L003]"), "{text}");
        assert!(at("[L003]") < at("## Loops") && at("## Loops") < at("[L002]"), "{text}");
        assert_eq!(outdated(&files).len(), 1);
    }

    #[test]
    fn statuses_and_names_come_from_the_code() {
        let code = "pub enum Exit {\n    /// Done: 0.\n    Done,\n    /// Canceled by Ctrl-C: 130; otherwise more.\n    Canceled,\n}\n\
                    pub enum ErrorCode {\n    A,\n}\nmatch self {\n    ErrorCode::A => \"a\",\n}\n";
        let files = [File::new("crates/a/src/lib.rs", code)];
        assert_eq!(names_of_enum(&files, "ErrorCode"), ["a"]);
        let table = exit_statuses(&files);
        assert!(table.ends_with("| 0 | Done |\n| 130 | Canceled by Ctrl-C (otherwise more) |\n"), "{table}");
    }

    #[test]
    fn the_support_matrix_lists_what_is_compared() {
        let files = [
            File::new("suite/faithful/crewai/a.py", "\"\"\"One task.\"\"\"\n"),
            File::new("suite/faithful/crewai/a.json", "{\"known\": \"words\"}"),
            File::new("suite/faithful/langchain/b.yaml", "# A chain.\n"),
            File::new("suite/frontends/oa/c.expected", "x unknown \"the agent `c`\"\n"),
        ];
        let table = support(&files);
        for row in ["| One task | approximate: words |", "| A chain | exact |", "| `oa` | the agent `c` |"] {
            assert!(table.contains(row), "{table}");
        }
    }

    #[test]
    fn lines_of_programs_are_those_without_heading_and_tests() {
        let agent = "-- Mail: it sorts mail. More.\n\n// Reads.\ntool t() -> String reads {}\npolicy {\n    tool t { reads; }\n}\n\ntest \"a\" {\n    assert true;\n}\n";
        let files = [
            File::new("examples/programs/mail/mail.agent", agent),
            File::new("examples/programs/mail/mail.baml", "// Mail.\n\nclass A {\n  b int\n}\n"),
            File::new("examples/programs/mail/mail_baml.py", "\"\"\"Mail.\"\"\"\n\nimport b\n"),
        ];
        let table = programs(&files);
        assert!(table.contains("| `mail` | it sorts mail | 5 | 3 | 4 |  |  |"), "{table}");
        assert!(table.ends_with("| all | | 5 | 3 | 4 | 0 | 0 |\n"), "{table}");
    }

    #[test]
    fn diagnostics_are_rows() {
        let line = "{\"code\":\"A001\",\"title\":\"a | b\"}\n";
        assert!(diagnostics(line).is_ok_and(|t| t.ends_with("| `A001` | a \\| b |\n")));
        assert!(diagnostics("{}").is_err());
    }
}
