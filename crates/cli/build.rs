//! Which commit a release is built from. Other builds do not say: they would be built anew after each commit.
#![allow(clippy::print_stdout, reason = "this is how Cargo is told")]

use std::process::Command;

fn main() {
    const NAME: &str = "ENTAIL_COMMIT";
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={NAME}");
    let is_release = std::env::var("PROFILE").is_ok_and(|p| p == "release");
    // Whoever packages it knows better.
    if std::env::var_os(NAME).is_some() || !is_release {
        return;
    }
    let git = |args: &[&str]| {
        let out = Command::new("git").args(args).output().ok().filter(|o| o.status.success())?;
        String::from_utf8(out.stdout).ok().map(|text| text.trim().to_string())
    };
    // The log of HEAD grows with each commit and each change of branch. Without it the commit could be an old
    // one.
    let log = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]);
    if let (Some(log), Some(commit)) = (log, git(&["rev-parse", "--short=12", "HEAD"])) {
        println!("cargo::rerun-if-changed={log}");
        println!("cargo::rustc-env={NAME}={commit}");
    }
}
