//! Metamorphic tests: changes of a file that mean nothing change no finding and no compiled term.
//!
//! The changes: comments, layout (indentation, blank lines, flow and block style), quoting, the order of keys
//! in YAML; comments, layout, `entail fmt` and the names of local variables in `.agent`; comments, layout,
//! aliases of imports, the names of local variables and a function in a module of its own in Python. A
//! finding is compared by its code, its level, its message and its place, which moves along with the text.
//!
//! `ENTAIL_CORPUS=FOLDER cargo test -p ide --test it metamorphic::` also tests the first 200 configurations
//! and the first 200 modules of a folder (`ENTAIL_CASES` sets the number).

mod agent;
mod config;
mod python;
mod yaml;

use std::path::{Path, PathBuf};

/// The files of some folders with one of these extensions, in order.
fn files(folders: &[PathBuf], extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = folders.to_vec();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            open.extend(entries.map(|e| e.unwrap().path()));
        } else if path.extension().and_then(|e| e.to_str()).is_some_and(|e| extensions.contains(&e)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The folders of this project that have programs and configurations.
fn own_folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    ["suite", "examples"].map(|folder| root.join(folder)).to_vec()
}

/// A text with insertions, each a byte offset and what is inserted there; in order of the offsets.
fn inserted(text: &str, insertions: &[(usize, String)]) -> String {
    let mut out = String::new();
    let mut from = 0;
    for (at, what) in insertions {
        out.push_str(&text[from..*at]);
        out.push_str(what);
        from = *at;
    }
    out + &text[from..]
}

/// The insertions that leave a text equal by `same`, of which each is tried by itself where some do not.
fn harmless(text: &str, insertions: &[(usize, String)], same: &dyn Fn(&str) -> bool) -> Vec<(usize, String)> {
    if insertions.is_empty() || same(&inserted(text, insertions)) {
        return insertions.to_vec();
    }
    if insertions.len() == 1 {
        return Vec::new();
    }
    let (left, right) = insertions.split_at(insertions.len() / 2);
    [harmless(text, left, same), harmless(text, right, same)].concat()
}

/// The lines of two lists that only one of them has, for a message.
fn difference(before: &[String], after: &[String]) -> String {
    let only = |a: &[String], b: &[String], sign: &str| {
        let mut left = b.to_vec();
        let mut out = String::new();
        for line in a {
            match left.iter().position(|l| l == line) {
                Some(i) => drop(left.remove(i)),
                None => out += &format!("  {sign} {line}\n"),
            }
        }
        out
    };
    only(before, after, "-") + &only(after, before, "+")
}
