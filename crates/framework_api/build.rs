//! Compresses the tables for the binary.

#![allow(clippy::disallowed_methods)]

use std::{env, fs, path::Path};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=tables");
    let out = env::var("OUT_DIR")?;
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir("tables")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".txt").map(String::from));
    }
    names.sort();
    let mut list = String::from("&[\n");
    for name in names {
        let text = fs::read(format!("tables/{name}.txt"))?;
        let path = Path::new(&out).join(format!("{name}.z"));
        fs::write(&path, miniz_oxide::deflate::compress_to_vec(&text, 9))?;
        // The names at the top of its modules, so that most lookups need no table.
        let text = String::from_utf8(text)?;
        let mut roots: Vec<&str> = Vec::new();
        for module in text.lines().filter_map(|l| l.strip_prefix("module ")) {
            let root = if module.starts_with("google.") { "google.adk" } else { module };
            let root = if root == "google.adk" { root } else { root.split('.').next().unwrap_or(root) };
            if root != "google" && !roots.contains(&root) {
                roots.push(root);
            }
        }
        list.push_str(&format!("    ({name:?}, &{roots:?}, include_bytes!({path:?})),\n"));
    }
    list.push(']');
    fs::write(Path::new(&out).join("tables.rs"), list)?;
    Ok(())
}
