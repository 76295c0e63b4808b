//! `entail lint` as projects live with it: reports, settings, suppressions, baselines, repairs.

use crate::program;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Warns L004b (at the tools) and gives the rest of the rules nothing to say.
const AGENT: &str = "agentId: a\ntype: react\nmodel: m\nsystemPrompt: p\nreact: {maxSteps: 5}\nmcp:\n  localTools: [search]\n";

fn lint(dir: &Path, args: &[&str]) -> (i32, String, String) {
    program::ran(&mut program::entail(dir, &[&["lint"], args].concat()))
}

fn codes(dir: &Path, args: &[&str]) -> Vec<String> {
    let (_, out, err) = lint(dir, &[&["--format", "json"], args].concat());
    assert!(err.is_empty(), "{err}");
    let code = |l: &str| serde_json::from_str::<Value>(l).unwrap()["code"].as_str().unwrap().to_string();
    out.lines().map(code).collect()
}

/// As those of cargo and ruff do.
#[test]
fn commands_take_the_working_directory_without_an_argument() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.yaml"), AGENT).unwrap();
    let without = |command: &str| program::ran(&mut program::entail(dir.path(), &[command]));
    let with = |command: &str| program::ran(&mut program::entail(dir.path(), &[command, "."]));
    for command in ["lint", "check", "cost", "test", "fmt", "audit"] {
        assert_eq!(without(command), with(command), "{command}");
    }
    assert!(without("lint").1.contains("L004b"));
}

#[test]
fn directory_lint_skips_non_agent_files() {
    let dir = tempfile::tempdir().unwrap();
    let chart = "{{- if .Values.on }}\napiVersion: v1\nkind: Service\n{{- end }}\n";
    std::fs::write(dir.path().join("service.yaml"), chart).unwrap();
    std::fs::write(dir.path().join("audit.yaml"), "rules: a: b\n").unwrap();
    std::fs::write(dir.path().join("Dockerfile.agent"), "FROM scratch\n# 5xx\n").unwrap();
    assert_eq!(codes(dir.path(), &["."]), Vec::<String>::new());
    // A file that is named, or that has words of an agent, is.
    assert_eq!(codes(dir.path(), &["service.yaml"]), ["D005"]);
    std::fs::write(dir.path().join("audit.yaml"), "system_prompt: a: b\n").unwrap();
    assert_eq!(codes(dir.path(), &["."]), ["D002"]);
}

#[test]
fn sarif_is_valid() {
    let dir = tempfile::tempdir().unwrap();
    let bad =
        AGENT.replace("systemPrompt: p", "systemPrompt: ''").replace("{maxSteps: 5}", "{maxSteps: \"${N}\"}");
    std::fs::write(dir.path().join("a b.yaml"), bad).unwrap();
    std::fs::write(dir.path().join("broken.yaml"), "agentId: [\n").unwrap();
    let (status, out, _) = lint(dir.path(), &["--format", "sarif", "--level", "info", "."]);
    assert_eq!(status, 1);
    let log: Value = serde_json::from_str(&out).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let has = |code: &str| results.iter().any(|r| r["ruleId"] == code);
    assert!(has("L001") && has("L017") && has("D002"), "{out}");
    // The schema of the standard comes with a crate that is fetched for this test and never built.
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let of_schema = |p: &&Value| p["name"] == "serde-sarif";
    let package = metadata["packages"].as_array().unwrap().iter().find(of_schema).unwrap();
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    let schema = std::fs::read_to_string(manifest.with_file_name("src").join("schema.json")).unwrap();
    let mut schema: Value = serde_json::from_str(&schema).unwrap();
    // A pattern of the published schema is no regular expression; it is about a field that is not written
    // here.
    for of in ["run", "toolComponent"] {
        let language = schema.pointer_mut(&format!("/definitions/{of}/properties/language")).unwrap();
        language.as_object_mut().unwrap().remove("pattern");
    }
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&log).map(|e| format!("{} at {}", e, e.instance_path())).collect();
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn github_and_markdown() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.yaml"), AGENT).unwrap();
    let (status, out, _) = lint(dir.path(), &["--format", "github", "a.yaml"]);
    assert_eq!(status, 0);
    assert!(
        out.starts_with("::warning title=L004b,file=a.yaml,line=7,endLine=7,col=15,endColumn=23::"),
        "{out}"
    );
    let (_, out, _) = lint(dir.path(), &["--format", "markdown", "a.yaml"]);
    assert!(out.contains("| warn | L004b | a.yaml:7 |"), "{out}");
}

#[test]
fn formats_of_reports_are_for_findings_only() {
    let out =
        Command::new(env!("CARGO_BIN_EXE_entail")).args(["version", "--format", "sarif"]).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
}

#[test]
fn settings_decide_levels_by_code_and_by_path() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("old")).unwrap();
    std::fs::write(dir.path().join("a.yaml"), AGENT).unwrap();
    std::fs::write(dir.path().join("old/b.yaml"), AGENT).unwrap();
    let settings = "[lint]\nlevels = { L004b = \"error\" }\n[[lint.paths]]\nmatch = [\"old/**\"]\nlevels = { L004 = \"off\" }\n";
    std::fs::write(dir.path().join("entail.toml"), settings).unwrap();
    assert_eq!(codes(dir.path(), &["."]), ["L004b"]);
    assert_eq!(lint(dir.path(), &["a.yaml"]).0, 1);
    assert_eq!(lint(dir.path(), &["old"]).0, 0);
    // Paths are relative to the settings, wherever the command is run.
    assert_eq!(lint(&dir.path().join("old"), &["b.yaml"]).0, 0);
    std::fs::write(dir.path().join("entail.toml"), "[lint]\nignore = [\"L999\"]\n").unwrap();
    let (status, _, err) = lint(dir.path(), &["."]);
    assert!(status == 2 && err.contains("unknown rule `L999`"), "{err}");
}

#[test]
fn a_baseline_hides_what_it_lists_and_nothing_new() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.yaml");
    std::fs::write(&file, AGENT).unwrap();
    let (status, _, err) = lint(dir.path(), &["--baseline", "known.json", "."]);
    assert!(status == 2 && err.contains("--write-baseline"), "{err}");
    assert_eq!(lint(dir.path(), &["--baseline", "known.json", "--write-baseline", "."]).0, 0);
    assert_eq!(codes(dir.path(), &["--baseline", "known.json", "."]), Vec::<String>::new());
    // Lines move, and something new comes in.
    std::fs::write(&file, format!("# moved\n{}", AGENT.replace("systemPrompt: p", "systemPrompt: ''")))
        .unwrap();
    assert_eq!(codes(dir.path(), &["--baseline", "known.json", "."]), ["L001"]);
}

#[test]
fn repairs_keep_everything_else() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.yaml");
    let text = AGENT
        .replace("model: m", "model: 'm'   # entail: ignore[L002] is set")
        .replace("[search]", "[search] # entail: ignore[L004] is enough\n# the end");
    std::fs::write(&file, format!("\u{feff}{text}")).unwrap();
    assert_eq!(codes(dir.path(), &["."]), ["I001"]);
    let (status, out, _) = lint(dir.path(), &["--fix", "--diff", "a.yaml"]);
    assert_eq!(status, 0);
    assert!(out.contains("-model: 'm'   # entail: ignore[L002] is set\n+model: 'm'\n"), "{out}");
    assert!(std::fs::read_to_string(&file).unwrap().contains("ignore[L002]"), "a diff changes nothing");
    let (_, _, err) = lint(dir.path(), &["--fix", "a.yaml"]);
    assert!(err.contains("1 finding repaired"), "{err}");
    let expected = text.replace("   # entail: ignore[L002] is set", "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("\u{feff}{expected}"));
}

#[test]
fn programs_are_linted_as_they_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let program = "agent writer { tools: [] }\ntask t() -> String by agent {}\npipeline p() -> String { let x = t() by writr; return x; }\n";
    std::fs::write(dir.path().join("p.agent"), program).unwrap();
    std::fs::write(dir.path().join("t.lam"), "\\x. y").unwrap();
    assert_eq!(codes(dir.path(), &["p.agent"]), ["A033"]);
    assert!(!codes(dir.path(), &["t.lam"]).is_empty());
    assert!(codes(dir.path(), &["."]).len() > codes(dir.path(), &["p.agent"]).len());
    let (status, _, _) = lint(dir.path(), &["--unsafe-fixes", "p.agent"]);
    assert_eq!(status, 0);
    let after = std::fs::read_to_string(dir.path().join("p.agent")).unwrap();
    assert_eq!(after, program.replace("writr", "writer"));
}

#[test]
fn the_version_of_a_lock_file_decides_over_a_default() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(".git")).unwrap();
    let crew = "writer:\n  role: r\n  goal: g\n  backstory: b\n  llm: m\n  tools: [search]\n";
    std::fs::write(dir.path().join("agents.yaml"), crew).unwrap();
    let json = ["--format", "json", "--level", "info", "agents.yaml"];
    let said = |args: &[&str]| lint(dir.path(), &[&json, args].concat()).1;
    assert!(said(&[]).contains("CrewAI 0.102 and later, 25 steps"), "{}", said(&[]));
    std::fs::write(dir.path().join("requirements.txt"), "crewai==0.86.0\n").unwrap();
    assert!(said(&[]).contains("CrewAI 0.86.0, 20 steps"), "{}", said(&[]));
    assert!(said(&["--no-python"]).contains("0.102 and later"), "{}", said(&["--no-python"]));
    std::fs::write(dir.path().join("entail.toml"), "[lint]\nversions = { crewai = \"0.30.11\" }\n").unwrap();
    assert!(said(&[]).contains("CrewAI 0.30.11, 25 steps"), "{}", said(&[]));
}

/// A graph whose default bound is large, and a tool of it that is not known.
const GRAPH: &str = "from langgraph.prebuilt import create_react_agent\nfrom elsewhere import look, more\n\
                     app = create_react_agent('openai:m', [look, *more()], prompt='p')\napp.invoke({'messages': []})\n";

#[test]
fn output_says_each_cause_once_and_counts_what_is_not_decided() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(".git")).unwrap();
    std::fs::create_dir(dir.path().join("tests")).unwrap();
    for name in ["a.py", "b.py", "c.py", "tests/test_a.py", "tests/test_b.py"] {
        std::fs::write(dir.path().join(name), GRAPH).unwrap();
    }
    let (status, out, err) = lint(dir.path(), &["."]);
    assert_eq!(status, 0, "{err}");
    // The finding is written in full for the first file, on a line for each other one, and not for tests.
    let lines: Vec<&str> = out.lines().collect();
    let full = lines.iter().filter(|l| l.starts_with("warning[L017]: the bound of this loop")).count();
    let brief: Vec<&&str> = lines.iter().filter(|l| l.starts_with("warning[L017]: ")).skip(1).collect();
    assert_eq!((full, brief.len()), (1, 2), "{out}");
    assert!(brief[0].starts_with("warning[L017]: b.py:3:7: ") && brief[1].contains("c.py:3:7: "), "{out}");
    let summary = lines.iter().position(|l| l.starts_with("not decided")).expect("a summary");
    let counted: Vec<&str> =
        lines[summary + 1..].iter().map(|l| l.split(" unknown").next().unwrap()).collect();
    let of_file = |name: &str| counted.iter().filter(|l| l.starts_with(&format!("  {name}: "))).count();
    assert_eq!((of_file("a.py"), of_file("b.py"), of_file("c.py")), (1, 1, 1), "{out}");
    assert!(counted.iter().any(|l| l.starts_with("  2 tests: ")) && !out.contains("test_a.py"), "{out}");
    // Each of them with `-v`, and for programs.
    let (_, all, _) = lint(dir.path(), &["-v", "."]);
    assert!(all.contains("tests/test_a.py: ") && all.matches(" --> ").count() == 3, "{all}");
    let json = codes(dir.path(), &["."]);
    let (_, sarif, _) = lint(dir.path(), &["--format", "sarif", "."]);
    let log: Value = serde_json::from_str(&sarif).unwrap();
    assert_eq!(log["runs"][0]["results"].as_array().unwrap().len(), json.len());
    assert_eq!(json.iter().filter(|c| *c == "L017").count(), 3);
    let unknown = |text: &str| text.matches("\"level\":\"unknown\"").count();
    let (_, each, _) = lint(dir.path(), &["--format", "json", "."]);
    assert!(unknown(&each) >= 5, "{each}");
}

#[test]
fn many_files_with_unknown_parts_are_few_lines() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(".git")).unwrap();
    for n in 0..40 {
        std::fs::write(dir.path().join(format!("a{n}.py")), GRAPH).unwrap();
    }
    let (_, out, _) = lint(dir.path(), &["."]);
    assert!(out.contains("  20 further files: "), "{out}");
    assert!(out.lines().count() < 80, "{out}");
}

#[test]
fn templates_of_modules_are_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let text = "from crewai import Agent, Crew\n\nclass {{crew_name}}():\n    agent = Agent(role='r')\n";
    std::fs::write(dir.path().join("crew.py"), text).unwrap();
    let (status, out, err) = lint(dir.path(), &["crew.py"]);
    assert_eq!((status, &*out), (0, ""), "{err}");
    assert!(err.contains("`crew.py` is skipped: a template of a module"), "{err}");
}

#[test]
fn lists_of_servers_are_found_where_clients_keep_them() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join(".cursor/tree");
    let list = r#"{"mcpServers": {"a": {"command": "npx", "args": ["-y", "a"]}}}"#;
    let agent = AGENT.replace("systemPrompt: p", "systemPrompt: ''");
    for (path, text) in [
        (".mcp.json", list),
        (".cursor/mcp.json", list),
        (".vscode/mcp.json", list),
        (".gemini/settings.json", list),
        (".cursor/agent.yaml", &agent),
        (".other/mcp.json", list),
        (".hidden.yaml", &agent),
    ] {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    assert_eq!(codes(&root, &["."]), ["S006"; 4]);
    let whole = root.display().to_string();
    assert_eq!(codes(dir.path(), &[&whole]), ["S006"; 4]);
}
