//! Compresses the tables for the binary. A browser loads them when it needs them: a module of WebAssembly has
//! their names alone.

#![allow(clippy::disallowed_methods)]

use std::{env, fs, path::Path};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=tables");
    let out = env::var("OUT_DIR")?;
    let embedded = env::var("CARGO_CFG_TARGET_FAMILY")? != "wasm";
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir("tables")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".txt").map(String::from));
    }
    names.sort();
    let mut list = format!("pub(crate) static SOURCES: [Source; {}] = [\n", names.len());
    for name in names {
        let text = fs::read(format!("tables/{name}.txt"))?;
        let mut embed = String::from("None");
        if embedded {
            let path = Path::new(&out).join(format!("{name}.z"));
            fs::write(&path, miniz_oxide::deflate::compress_to_vec(&text, 9))?;
            embed = format!("Some(include_bytes!({path:?}))");
        }
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
        list.push_str(&format!("    Source::new({name:?}, &{roots:?}, {embed}),\n"));
    }
    list.push_str("];\n");
    fs::write(Path::new(&out).join("tables.rs"), list)?;
    Ok(())
}
