//! Agents that Python builds, on the command line: modules and folders as arguments.

use crate::program;
use std::path::Path;

const HELPERS: &str = "from agents import Agent\n\n\
    clerk = Agent(name=\"clerk\", instructions=\"You know the prices.\", model=\"m\")\n";
const MAIN: &str = "from agents import Agent, Runner\nfrom helpers import clerk\n\n\
    desk = Agent(name=\"desk\", instructions=\"You greet.\", model=\"m\", handoffs=[clerk])\n\n\
    print(Runner.run_sync(desk, \"hello\", max_turns=3).final_output)\n";
const SCRIPT: &str = "[{\"tool\": \"transfer_to_clerk\", \"args\": {}}, \"Two euros.\"]";

/// A project of two modules, and one that has nothing to do with agents.
fn project() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("pyproject.toml", "[project]\nname = \"desk\"\n"),
        ("helpers.py", HELPERS),
        ("main.py", MAIN),
        ("plain.py", "print('no agents here')\n"),
        ("script.json", SCRIPT),
    ] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

/// Status, standard output, standard error.
fn entail(dir: &Path, args: &[&str]) -> (i32, String, String) {
    program::ran(program::entail(dir, args).env("XDG_CACHE_HOME", dir.join("cache")))
}

#[test]
fn a_module_and_its_folder_are_checked_bounded_and_run() {
    let dir = project();
    for path in ["main.py", "."] {
        let (status, out, err) = entail(dir.path(), &["check", path]);
        assert_eq!(status, 0, "{path}: {out}{err}");
        let (status, out, err) = entail(dir.path(), &["cost", "--format", "json", path]);
        assert_eq!(status, 0, "{path}: {out}{err}");
        // The turns that are written bound the replies, whoever speaks.
        let cost: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
        assert_eq!(cost["modelCalls"]["most"], 3, "{path}: {out}");
        let (status, out, err) = entail(dir.path(), &["run", "--script", "script.json", path, "hello"]);
        assert_eq!(status, 0, "{path}: {out}{err}");
        // The agent that takes over is of another module.
        assert!(out.contains("Two euros."), "{path}: {out}{err}");
        assert!(err.contains("2 model calls (bound: 3)"), "{path}: {err}");
    }
}

#[test]
fn a_module_without_agents_is_no_program() {
    let dir = project();
    let (status, _, err) = entail(dir.path(), &["check", "plain.py"]);
    assert!(status != 0 && err.contains("plain.py"), "{err}");
    let empty = tempfile::tempdir().unwrap();
    std::fs::write(empty.path().join("plain.py"), "print('no agents here')\n").unwrap();
    let (status, _, err) = entail(empty.path(), &["check", "."]);
    assert!(status == 2 && err.contains("nothing to check there"), "{err}");
    let (status, _, err) = entail(empty.path(), &["cost", "."]);
    assert!(status == 2 && err.contains("holds no configuration of a known framework"), "{err}");
}

#[test]
fn modules_are_linted_like_configurations() {
    let dir = project();
    let (status, out, err) = entail(dir.path(), &["lint", "."]);
    assert_eq!((status, out.as_str()), (0, ""), "{err}");
    // A conversation: no instructions, no model, a temperature that no model takes.
    let bad = MAIN
        .replace("instructions=\"You greet.\", model=\"m\"", "model_settings=ModelSettings(temperature=9)")
        .replace("handoffs=[clerk]", "tools=[clerk.as_tool(\"ask\", \"Asks the clerk.\")]")
        .replace("Agent, Runner", "Agent, ModelSettings, Runner");
    std::fs::write(dir.path().join("main.py"), bad).unwrap();
    for path in ["main.py", "."] {
        // What code elsewhere may supply is unknown; the temperature is a warning.
        let (status, out, err) = entail(dir.path(), &["lint", "--level", "info", path]);
        assert_eq!(status, 0, "{path}: {out}{err}");
        for code in ["L001", "L002", "L009"] {
            assert!(out.contains(code), "{path}, {code}: {out}{err}");
        }
        assert!(out.contains("main.py:4") && !out.contains("helpers.py"), "{path}: {out}");
    }
    // What another module lacks is said about that module, once.
    std::fs::write(dir.path().join("main.py"), MAIN).unwrap();
    std::fs::write(dir.path().join("helpers.py"), HELPERS.replace("You know the prices.", "")).unwrap();
    let (status, out, err) = entail(dir.path(), &["lint", "main.py"]);
    assert_eq!((status, out.as_str()), (0, ""), "{err}");
    let (status, out, err) = entail(dir.path(), &["lint", "."]);
    assert!(status == 1 && out.matches("L001").count() == 1 && out.contains("helpers.py:3"), "{out}{err}");
    // A comment silences it, and `--no-python` leaves modules out.
    let (status, out, err) = entail(dir.path(), &["lint", "--no-python", "."]);
    assert_eq!((status, out.as_str()), (0, ""), "{err}");
    let silenced = HELPERS
        .replace("You know the prices.", "")
        .replace("model=\"m\")", "model=\"m\")  # entail: ignore[L001] said elsewhere");
    std::fs::write(dir.path().join("helpers.py"), silenced).unwrap();
    let (status, out, err) = entail(dir.path(), &["lint", "."]);
    assert_eq!((status, out.as_str()), (0, ""), "{err}");
}

#[test]
fn reports_of_modules_are_kept_as_long_as_their_project_is_the_same() {
    let dir = project();
    let bound = |dir: &Path| entail(dir, &["lint", "--level", "info", "main.py"]).1;
    std::fs::write(dir.path().join("limits.py"), "TURNS = 3\n").unwrap();
    let main = MAIN
        .replace("max_turns=3", "max_turns=TURNS")
        .replace("helpers import clerk", "helpers import clerk\nfrom limits import TURNS");
    std::fs::write(dir.path().join("main.py"), main).unwrap();
    let before = bound(dir.path());
    assert_eq!(before, bound(dir.path()));
    std::fs::write(dir.path().join("limits.py"), "TURNS = 0\n").unwrap();
    assert_ne!(before, bound(dir.path()), "the turns are of another module");
}

#[test]
fn imports_are_read_again_and_alike_on_any_number_of_threads() {
    let dir = project();
    let main = MAIN
        .replace("from helpers import clerk\n", "from helpers import clerk\nfrom limits import TURNS\n")
        .replace("=3", "=TURNS");
    std::fs::write(dir.path().join("main.py"), main).unwrap();
    // The limit stands in what an imported module imports.
    std::fs::write(dir.path().join("limits.py"), "from most import MOST as TURNS\n").unwrap();
    for (turns, status) in [("3", 0), ("0", 1), ("4", 0), ("0", 1)] {
        std::fs::write(dir.path().join("most.py"), format!("MOST = {turns}\n")).unwrap();
        for _ in 0..2 {
            let (got, out, err) = entail(dir.path(), &["lint", "."]);
            assert_eq!((got, out.contains("L003")), (status, status == 1), "{turns}: {out}{err}");
        }
    }
    // Many modules that import each other are linted on all cores: the report is the same each time.
    for i in 0..40 {
        let text = format!(
            "from agents import Agent\nimport m{}\nfrom most import MOST\na = Agent(name='a{i}', handoffs=[m{}.a], tools=m{}.TOOLS)\nTOOLS = [MOST]\n",
            (i * 7 + 1) % 40,
            (i + 1) % 40,
            (i * 3) % 40
        );
        std::fs::write(dir.path().join(format!("m{i}.py")), text).unwrap();
    }
    let report = || entail(dir.path(), &["lint", "--no-cache", "--format", "json", "."]).1;
    let first = report();
    assert!(first.lines().count() > 40, "{first}");
    for _ in 0..4 {
        assert_eq!(first, report());
    }
}
