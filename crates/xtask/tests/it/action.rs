//! The GitHub action installs a command that can lint.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use xtask::root;

/// The shell script of a step of the action.
fn script(step: &str) -> String {
    let action = std::fs::read_to_string(root().join("action.yml")).expect("the action");
    let (_, step) = action.split_once(&format!("- name: {step}\n")).expect("the step");
    let (before, script) = step.split_once("run: |\n").expect("a script");
    let indent = before.lines().last().map_or(0, str::len) + 2;
    script
        .lines()
        .take_while(|line| line.len() - line.trim_start().len() >= indent)
        .fold(String::new(), |text, line| text + line + "\n")
}

/// The features of the command with the parts that each of them turns on.
fn features() -> BTreeMap<String, Vec<String>> {
    let manifest = std::fs::read_to_string(root().join("crates/cli/Cargo.toml")).expect("the manifest");
    let (_, features) = manifest.split_once("[features]\n").expect("features");
    let lines =
        features.lines().take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#'));
    let parts = |list: &str| list.split('"').skip(1).step_by(2).map(str::to_string).collect();
    lines
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, list)| (name.to_string(), parts(list)))
        .collect()
}

/// The step once installed a command without front ends, which refuses to lint.
#[test]
fn the_action_installs_a_command_that_lints() {
    let folder = std::env::temp_dir().join(format!("entail-action-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let cargo = folder.join("cargo");
    std::fs::write(&cargo, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").expect("a program");
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).expect("a program");
    // Nothing else is on the path, so there is no `entail`.
    let out = Command::new("/bin/sh")
        .args(["-ec", &script("Install entail")])
        .env("PATH", &folder)
        .env("ENTAIL_SOURCE", "source")
        .output()
        .expect("a shell");
    std::fs::remove_dir_all(&folder).expect("the folder is removed");
    let said = String::from_utf8(out.stdout).expect("text");
    let arguments: Vec<&str> = said.lines().collect();
    assert!(out.status.success() && arguments.first() == Some(&"install"), "{said}");
    let after = |option: &str| {
        let at = arguments.iter().position(|argument| *argument == option);
        at.and_then(|at| arguments.get(at + 1)).copied()
    };
    assert_eq!(after("--path"), Some("source/crates/cli"));
    let known = features();
    let mut chosen: Vec<&str> = after("--features").unwrap_or_default().split(',').collect();
    if !arguments.contains(&"--no-default-features") {
        chosen.push("default");
    }
    let mut all = BTreeSet::new();
    while let Some(feature) = chosen.pop() {
        if all.insert(feature) {
            chosen.extend(known.get(feature).into_iter().flatten().map(String::as_str));
        }
    }
    assert!(all.contains("dep:lint"), "{all:?}");
}
