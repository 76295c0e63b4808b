//! `scripts/bench-table.sh` measures benchmarks that are there, and stops where one fails.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use xtask::root;

/// The text of the script.
fn script() -> String {
    std::fs::read_to_string(root().join("scripts/bench-table.sh")).expect("the script")
}

/// The sources of the benchmarks of a crate.
fn benches(of: &str) -> String {
    let folder = root().join("crates").join(of).join("benches");
    let files = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    files.map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("a text")).collect()
}

/// The table once named a crate that was gone: its rows said "not measured", and `--save` kept that.
#[test]
fn the_benchmarks_of_the_table_exist() {
    let script = script();
    let (_, crates) = script.split_once("for crate in ").expect("a loop over crates");
    let crates: BTreeSet<&str> = crates.split(';').next().unwrap_or_default().split_whitespace().collect();
    let mut rows = 0;
    for row in script.lines().filter_map(|line| line.trim().strip_prefix("row '")) {
        let (_, key) = row.split_once("' ").expect("a name");
        let mut key = key.split_whitespace().next().unwrap_or_default().split('.');
        let (of, bench) = (key.next().unwrap_or_default(), key.next().unwrap_or_default());
        assert!(crates.contains(of), "{row}: the benchmarks of `{of}` are not run");
        assert!(benches(of).contains(&format!("fn {bench}(")), "{row}: there is no `{bench}` in `{of}`");
        rows += 1;
    }
    let inside = script.split("<<'ROWS'\n").nth(1).and_then(|rest| rest.split("\nROWS").next());
    for row in inside.expect("the rows of Table 6").lines() {
        let bench = row.split(';').nth(1).expect("a benchmark");
        let called = [format!("fn {bench}_x1000("), format!("{bench}_x1000")];
        assert!(called.iter().any(|name| benches("machine").contains(name)), "{row}");
        rows += 1;
    }
    assert!(rows > 20, "{rows} rows");
}

/// A failure inside of `$(…)` once went on to a table of rows that were not measured.
#[test]
fn a_benchmark_that_fails_ends_the_script() {
    let dir = std::env::temp_dir().join(format!("entail-bench-table-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let cargo = dir.join("cargo");
    std::fs::write(&cargo, "#!/bin/sh\ncase \"$*\" in *lint*) exit 101;; esac\n").expect("a file");
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::iter::once(dir.clone()).chain(std::env::split_paths(&path));
    let ran = Command::new("bash")
        .arg(root().join("scripts/bench-table.sh"))
        .env("PATH", std::env::join_paths(dirs).expect("a path"))
        .output()
        .expect("bash");
    std::fs::remove_dir_all(&dir).expect("the folder");
    assert!(!ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "");
}
