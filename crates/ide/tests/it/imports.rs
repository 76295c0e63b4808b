//! Names of imported files: definitions, references, renaming, hover, completion and signatures.

use crate::files::{self, at};
use ide::Workspace;

const LIB: &str = "enum Level { low, high }\n\
    task classify(ticket: String) -> Level {}\n\
    const MOST = 3;\n\
    pipeline own(x: String) -> Level { let l = classify(x); return l; }\n";
const MAIN: &str = "use \"lib.agent\" as lib;\n\
    use \"lib.agent\" { MOST as most, classify };\n\
    task own(x: String) -> Bool {}\n\
    pipeline p(x: String) -> lib.Level {\n    let a = lib.classify(x);\n    let b = classify(x);\n    \
    let c = own(x);\n    let n = lib.MOST + most;\n    return a;\n}\n";

fn workspace(main: &str) -> Workspace {
    files::workspace(&[("lib.agent", LIB)], main)
}

#[test]
fn a_program_with_imported_names_has_no_findings() {
    assert_eq!(workspace(MAIN).findings("main.agent"), []);
}

#[test]
fn definitions_are_in_the_imported_file() {
    let w = workspace(MAIN);
    let cases = [
        (at(MAIN, "classify(", 0), "classify"),
        (at(MAIN, "classify(", 1), "classify"),
        (at(MAIN, "classify }", 0), "classify"),
        (at(MAIN, "Level", 0), "Level"),
        (at(MAIN, "MOST +", 0), "MOST"),
        (at(MAIN, "MOST as", 0), "MOST"),
    ];
    for (offset, name) in cases {
        let found = w.definition("main.agent", offset);
        let shown: Vec<_> = found.iter().map(|l| (l.path.as_str(), &l.text[l.range.clone()])).collect();
        assert_eq!(shown, [("lib.agent", name)], "{name} at {offset}");
    }
    // The file's own task is another one than that of the imported file.
    let found = w.definition("main.agent", at(MAIN, "own(x)", 0));
    assert_eq!(found.iter().map(|l| l.path.as_str()).collect::<Vec<_>>(), ["main.agent"]);
}

#[test]
fn renaming_follows_imports() {
    let w = workspace(MAIN);
    let renamed = |offset: usize| {
        let mut all = Vec::new();
        for file in w.rename("main.agent", offset, "sorted").unwrap() {
            let mut text = file.text.to_string();
            let mut edits = file.edits.clone();
            edits.sort_by_key(|e| std::cmp::Reverse(e.range.start));
            edits.into_iter().for_each(|e| text.replace_range(e.range, &e.text));
            all.push((file.path, text));
        }
        all
    };
    let both = |main: String, lib: String| vec![("main.agent".to_string(), main), ("lib.agent".into(), lib)];
    let call = at(MAIN, "classify(", 0);
    assert_eq!(renamed(call), both(MAIN.replace("classify", "sorted"), LIB.replace("classify", "sorted")));
    // The name of an import, and a name that only this file has.
    let alias = renamed(at(MAIN, "lib.c", 0));
    assert_eq!(alias.len(), 1);
    assert!(alias[0].1.contains("as sorted;") && alias[0].1.contains("sorted.classify(x)"), "{alias:?}");
    let local = renamed(at(MAIN, "most,", 0));
    assert_eq!(local, [("main.agent".to_string(), MAIN.replace("most", "sorted"))]);
}

#[test]
fn hover_shows_the_declaration_of_the_imported_file() {
    let hover = workspace(MAIN).hover("main.agent", at(MAIN, "classify(", 0)).unwrap();
    assert_eq!(hover.markdown, "```agent\ntask classify(ticket: String) -> Level\n```");
}

#[test]
fn completion_names_what_the_imported_file_declares() {
    let text = MAIN.replace("let n = lib.MOST + most;", "let n = lib.");
    let labels = |offset| -> Vec<String> {
        workspace(&text).completion("main.agent", offset).into_iter().map(|c| c.label).collect()
    };
    assert_eq!(labels(text.find("let n = lib.").unwrap() + 12), ["Level", "classify", "MOST", "own"]);
    assert_eq!(labels(at(&text, "classify }", 0)), ["Level", "classify", "MOST", "own"]);
}

#[test]
fn signatures_of_an_imported_task_have_all_parameters() {
    let found = workspace(MAIN).signatures("main.agent", MAIN.find("classify(x").unwrap() + 9);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].label.as_str(), found[0].active), ("classify(ticket: String) -> Level", Some(0)));
}
