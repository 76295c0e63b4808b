//! The repository is tidy, and its generated pages are current.

use xtask::{read_repository, root, tidy};

#[test]
fn the_repository_is_tidy() {
    let files = read_repository(&root()).expect("the repository can be read");
    let report = tidy::check(&files, xtask::EXCEPTIONS, &|path| root().join(path).exists());
    let shown: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "{} untidy places:\n{}", shown.len(), shown.join("\n"));
}
