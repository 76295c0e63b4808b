//! Judges uses of a package that are written on standard input, one a line: `import MODULE NAME`,
//! `call NAME POSITIONAL KEYWORD,KEYWORD` and `member CLASS NAME`. The argument is the requirement:
//! `langgraph==1.0.2`. Prints the faults of each line, `-` for none. `scripts/framework-tables --verify` asks
//! it.

#![allow(clippy::disallowed_methods)]

use framework_api::{Api, Arguments, Fault, FaultKind, Requirement};
use std::io::{BufRead, Write};

fn main() -> std::io::Result<()> {
    let requirement = std::env::args().nth(1).unwrap_or_default();
    let (package, version) = requirement.split_once("==").unwrap_or((&requirement, ""));
    let api = Api::new(|p| (p == package).then(|| Requirement::Releases(format!("=={version}"))));
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let faults: Vec<Fault> = match words[..] {
            ["import", module, name] => api.import(module, Some(name)).into_iter().collect(),
            ["member", class, name] => api.member(class, name, None),
            ["call", name, positional, ref keywords @ ..] => {
                let keywords = keywords.iter().flat_map(|k| k.split(',')).filter(|k| !k.is_empty()).collect();
                let arguments =
                    Arguments { positional: positional.parse().ok(), keywords, more_keywords: false };
                api.name(name, Some(&arguments))
            }
            _ => Vec::new(),
        };
        let kinds: Vec<String> = faults.iter().map(kind).filter(|k| !k.is_empty()).collect();
        writeln!(out, "{}", if kinds.is_empty() { "-".to_string() } else { kinds.join(" ") })?;
    }
    Ok(())
}

fn kind(fault: &Fault) -> String {
    match &fault.kind {
        FaultKind::NoModule => "module".into(),
        FaultKind::NoName { name, .. } => format!("name:{name}"),
        FaultKind::UnknownArgument { name, .. } => format!("argument:{name}"),
        FaultKind::MissingArguments { names, .. } => format!("missing:{}", names.join("+")),
        FaultKind::TooManyArguments { takes, .. } => format!("positional:{takes}"),
        FaultKind::Deprecated { .. } => String::new(),
    }
}
