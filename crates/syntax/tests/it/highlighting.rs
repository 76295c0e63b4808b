//! The grammars of editors name the words of the languages, all of them and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use syntax::agent::keywords::{Role, TABLE};

/// Root folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// Folder of the tree-sitter grammar of a language.
fn grammar(language: &str) -> PathBuf {
    root().join("editors").join(format!("tree-sitter-{language}"))
}

/// Words of the tree-sitter grammar that are no keywords elsewhere.
const ONLY_AFTER_EXPECT: [&str; 4] = ["call", "no", "refused", "snapshot"];

/// The texts between quotes of one kind that are words.
fn quoted_words(text: &str, quote: char) -> BTreeSet<String> {
    let is_word = |t: &&str| !t.is_empty() && t.chars().all(|c| c == '_' || c.is_ascii_alphabetic());
    text.lines()
        .filter(|l| !l.trim_start().starts_with(['/', ';', '*']))
        .flat_map(|l| {
            l.split(quote).skip(1).step_by(2).filter(is_word).map(str::to_string).collect::<Vec<_>>()
        })
        .collect()
}

/// The words that a grammar shows in each of its colors.
fn colors(file: &str) -> Vec<(String, BTreeSet<String>)> {
    let path = format!("{}/../../editors/vscode/syntaxes/{file}", env!("CARGO_MANIFEST_DIR"));
    let grammar: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut out = Vec::new();
    for pattern in grammar["patterns"].as_array().unwrap() {
        let (Some(name), Some(words)) = (pattern["name"].as_str(), pattern["match"].as_str()) else {
            continue;
        };
        let Some(words) = words.strip_prefix("\\b(").and_then(|w| w.strip_suffix(")\\b")) else { continue };
        out.push((name.to_string(), words.split('|').map(str::to_string).collect()));
    }
    out
}

/// The color of a role; words that only stand where a name would have none.
fn color(word: &str, role: Role) -> Option<&'static str> {
    Some(match role {
        // It has one color, also where it names a policy.
        Role::Item if word == "policy" => "storage.modifier",
        Role::Item | Role::Step => "storage.type",
        Role::Statement if word == "let" => "storage.type",
        Role::Statement | Role::Part => "keyword.control",
        Role::Expression | Role::Clause | Role::Link | Role::Body => "keyword.other",
        Role::Flow => "storage.modifier",
        Role::Type => "support.type",
        Role::Constant => "constant.language",
        Role::Field | Role::Rule => return None,
    })
}

#[test]
fn the_grammar_of_agent_files_has_the_words_of_the_table() {
    let colors = colors("agent.tmLanguage.json");
    assert_eq!(colors.len(), 6, "{colors:?}");
    for (name, words) in colors {
        let table = TABLE.iter().filter(|k| color(k.word, k.role) == Some(&name));
        let table: BTreeSet<String> = table.map(|k| k.word.to_string()).collect();
        let line = table.iter().map(String::as_str).collect::<Vec<_>>().join("|");
        assert_eq!(words, table, "{name}: \\\\b({line})\\\\b");
    }
}

#[test]
fn the_grammar_of_lam_files_has_the_words_of_the_calculus() {
    let colors = colors("lam.tmLanguage.json");
    // Words that may be variables, or are parts of a form.
    let others = ["fix", "inf", "relabel", "quarantine", "pure", "read", "write", "by"];
    let known: BTreeSet<String> =
        core_ir::print::KEYWORDS.iter().chain(&others).map(|w| w.to_string()).collect();
    let shown: BTreeSet<String> = colors.iter().flat_map(|(_, words)| words.clone()).collect();
    assert_eq!(shown, known);
    assert_eq!(
        shown.len(),
        colors.iter().map(|(_, words)| words.len()).sum::<usize>(),
        "a word has one color"
    );
}

#[test]
fn the_tree_sitter_grammar_has_the_words_of_the_table() {
    let text = fs::read_to_string(grammar("agent").join("grammar.js")).unwrap();
    let table = TABLE.iter().map(|k| k.word).chain(ONLY_AFTER_EXPECT);
    assert_eq!(quoted_words(&text, '\''), table.map(str::to_string).collect());
}

#[test]
fn the_tree_sitter_queries_color_the_words_of_the_table() {
    let text = fs::read_to_string(grammar("agent").join("queries/highlights.scm")).unwrap();
    // Lists of words in brackets, each with the color after it.
    let mut shown: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for list in text.split("\n[").skip(1) {
        let (words, rest) = list.split_once(']').unwrap();
        let color = rest.split_whitespace().next().unwrap();
        shown.entry(color).or_default().extend(quoted_words(words, '"'));
    }
    shown.retain(|_, words| !words.is_empty());
    let mut expected: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for keyword in TABLE {
        let Some(color) = color(keyword.word, keyword.role) else { continue };
        let capture = match color {
            "storage.type" => "@keyword.storage.type",
            "storage.modifier" => "@keyword.storage.modifier",
            "keyword.control" => "@keyword.control",
            "support.type" => "@type.builtin",
            "constant.language" => "@constant.builtin",
            _ => "@keyword",
        };
        expected.entry(capture).or_default().insert(keyword.word.into());
    }
    expected.entry("@keyword").or_default().extend(ONLY_AFTER_EXPECT.map(str::to_string));
    assert_eq!(shown, expected);
}

/// Words that have a meaning in one place of a `.lam` program and are names elsewhere.
const WORDS_OF_LAM: &[&str] = &[
    "among",
    "any",
    "approve",
    "args",
    "assistant",
    "at_most",
    "backend",
    "Bool",
    "by",
    "capacity",
    "completes",
    "confirm",
    "contains",
    "control",
    "conversation",
    "delegated",
    "Dyn",
    "Enum",
    "error",
    "every",
    "fields",
    "fix",
    "if_refused",
    "includes",
    "inf",
    "length",
    "List",
    "Map",
    "matches",
    "not",
    "Null",
    "Num",
    "Option",
    "pattern",
    "permanent",
    "plain",
    "policy",
    "public",
    "pure",
    "read",
    "reads",
    "Rec",
    "refusal",
    "result",
    "retry",
    "sample",
    "schema",
    "secret",
    "some",
    "state",
    "Str",
    "system",
    "timeout",
    "tools",
    "transient",
    "trusted",
    "ttl",
    "untrusted",
    "user",
    "value",
    "Var",
    "words",
    "write",
    "writes",
];

#[test]
fn the_tree_sitter_grammar_of_lam_has_the_words_of_the_parser() {
    let text = fs::read_to_string(grammar("lam").join("grammar.js")).unwrap();
    let known: BTreeSet<String> =
        core_ir::print::KEYWORDS.iter().chain(WORDS_OF_LAM).map(|w| w.to_string()).collect();
    assert_eq!(quoted_words(&text, '\''), known);
    // The parser reads each of them.
    let folder = root().join("crates/syntax/src/lam");
    let roles = [core_ir::Role::System, core_ir::Role::User, core_ir::Role::Assistant].map(|r| r.as_str());
    let parser =
        ["parser.rs", "decls.rs"].map(|name| fs::read_to_string(folder.join(name)).unwrap()).concat();
    let unread: Vec<&&str> =
        WORDS_OF_LAM.iter().filter(|w| !roles.contains(w) && !parser.contains(&format!("\"{w}\""))).collect();
    assert!(unread.is_empty(), "{unread:?}");
}

#[test]
fn the_tree_sitter_queries_of_lam_color_every_word() {
    let words = quoted_words(&fs::read_to_string(grammar("lam").join("grammar.js")).unwrap(), '\'');
    let queries = fs::read_to_string(grammar("lam").join("queries/highlights.scm")).unwrap();
    let mut shown = quoted_words(&queries, '"');
    // A form that is one word, and the keys of a model's settings.
    assert!(queries.contains("(clear) @") && queries.contains("(key) @"));
    shown.extend(["clear", "result", "tools"].map(String::from));
    assert_eq!(shown, words);
}

/// The programs of a file in the suite: of each case what stands before its answers and its result, with what
/// all cases share.
fn cases(text: &str) -> Vec<String> {
    let is_result = |line: &&str| ["= ", "! ", "> ", "calls "].iter().any(|begin| line.starts_with(begin));
    if text.contains("\n=== ") {
        let cases = text.split("\n=== ").skip(1).filter_map(|case| case.split_once('\n'));
        return cases.map(|(_, rest)| rest.split("\n--- ").next().unwrap_or(rest).to_string()).collect();
    }
    let mut cases = text.split("\n--- ");
    let shared = cases.next().unwrap_or_default();
    let programs = cases.filter_map(|case| case.split_once('\n')).map(|(_, rest)| {
        let lines: Vec<&str> = rest.lines().take_while(|l| !is_result(l)).collect();
        format!("{shared}\n{}\n", lines.join("\n"))
    });
    let programs: Vec<String> = programs.collect();
    if programs.is_empty() { vec![text.to_string()] } else { programs }
}

/// Terms of the suite, the examples and the pages of the book, and the prelude.
fn terms() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["suite", "examples", "docs", "crates"] {
        for path in files_below(root().join(folder)) {
            match path.extension().and_then(|e| e.to_str()) {
                Some("lam") => found.extend(cases(&fs::read_to_string(path).unwrap())),
                Some("md") => {
                    let page = fs::read_to_string(path).unwrap();
                    let blocks =
                        page.split("\n```lam\n").skip(1).filter_map(|b| Some(b.split_once("\n```")?.0));
                    found.extend(blocks.flat_map(|b| b.split("\n# =\n")).map(String::from));
                }
                _ => {}
            }
        }
    }
    found
}

/// The files below a folder, in order.
fn files_below(folder: PathBuf) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder]);
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        entries.sort();
        let (more, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.into_iter().partition(|p| p.is_dir());
        folders.extend(more);
        found.extend(files);
    }
    found
}

#[test]
#[ignore = "needs the tree-sitter CLI: `.ci/run grammar`"]
fn tree_sitter_reads_the_terms_that_the_parser_accepts() {
    let is_accepted = |text: &str| syntax::lam::items(diagnostics::FileId(0), text).is_ok();
    let accepted: Vec<String> = terms().into_iter().filter(|t| is_accepted(t)).collect();
    assert!(accepted.len() > 500, "{}", accepted.len());
    let (ok, report) = tree_sitter("lam", "terms", &accepted);
    assert!(ok, "{report}");
    let words: Vec<&str> = core_ir::print::KEYWORDS.iter().chain(WORDS_OF_LAM).copied().collect();
    let short = accepted.iter().filter(|t| t.len() < 1_500);
    let variants: Vec<String> = short.flat_map(|t| variants(t, &words)).collect();
    let (accepted, refused): (Vec<String>, Vec<String>) = variants.into_iter().partition(|t| is_accepted(t));
    assert!(accepted.len() > 5_000, "{}", accepted.len());
    let (ok, report) = tree_sitter("lam", "term_variants", &accepted);
    assert!(ok, "{report}");
    // Errors end no run.
    let (ok, _) = tree_sitter("lam", "refused_terms", &refused.into_iter().step_by(20).collect::<Vec<_>>());
    assert!(!ok);
}

/// Programs of the suite, the examples and the pages of the book.
fn programs() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["suite", "examples", "docs"] {
        for path in files_below(root().join(folder)) {
            match path.extension().and_then(|e| e.to_str()) {
                Some("agent") => found.push(fs::read_to_string(path).unwrap()),
                Some("md") => {
                    let page = fs::read_to_string(path).unwrap();
                    let blocks = page.split("\n```agent\n").skip(1);
                    found.extend(blocks.filter_map(|b| Some(b.split_once("\n```")?.0.to_string())));
                }
                _ => {}
            }
        }
    }
    found
}

fn is_accepted(text: &str) -> bool {
    let file = diagnostics::Sources::new().add("p.agent", text);
    !diagnostics::has_errors(&syntax::agent::parse(file, text).1)
}

/// The program with one token replaced by a word, removed, or replaced by a value: each token in turn.
fn variants(text: &str, words_of_language: &[&str]) -> Vec<String> {
    let is_part = |c: char| c == '_' || c.is_alphanumeric();
    let mut words: Vec<(usize, usize)> = Vec::new();
    let mut characters = text.char_indices().peekable();
    while let Some((start, c)) = characters.next() {
        let mut end = start + c.len_utf8();
        while is_part(c) && characters.peek().is_some_and(|(_, next)| is_part(*next)) {
            end = characters.next().map_or(end, |(at, next)| at + next.len_utf8());
        }
        if !c.is_whitespace() {
            words.push((start, end));
        }
    }
    let mut other = words_of_language.iter().copied().cycle();
    let mut by = || [other.next(), Some(""), other.next(), Some("\"s\""), Some("{a: [1.5]}")];
    let mut out = Vec::new();
    for (i, (start, end)) in words.into_iter().enumerate() {
        let by = by()[i % 5].unwrap_or_default();
        out.push(format!("{}{by}{}", &text[..start], &text[end..]));
    }
    out
}

/// Parses texts of a language with the tree-sitter CLI and returns whether it found no error, and its report.
fn tree_sitter(language: &str, name: &str, texts: &[String]) -> (bool, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let mut paths = String::new();
    for (i, text) in texts.iter().enumerate() {
        let path = folder.join(format!("{i}.{language}"));
        fs::write(&path, text).unwrap();
        paths += &format!("{}\n", path.display());
    }
    let list = folder.join("paths");
    fs::write(&list, paths).unwrap();
    let mut command = Command::new("tree-sitter");
    let ran = command
        .args(["parse", "--quiet", "--paths"])
        .arg(&list)
        .current_dir(grammar(language))
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    // 1 says that there are errors; anything else that it did not run, or was killed.
    assert!(matches!(ran.status.code(), Some(0 | 1)) && !report.contains("panicked"), "{report}");
    (ran.status.success(), report)
}

#[test]
#[ignore = "needs the tree-sitter CLI: `.ci/run grammar`"]
fn tree_sitter_reads_the_programs_that_the_parser_accepts() {
    let (accepted, refused): (Vec<String>, Vec<String>) =
        programs().into_iter().partition(|p| is_accepted(p));
    assert!(accepted.len() > 90 && !refused.is_empty(), "{} {}", accepted.len(), refused.len());
    let (ok, report) = tree_sitter("agent", "accepted", &accepted);
    assert!(ok, "{report}");
    let words: Vec<&str> = TABLE.iter().map(|k| k.word).collect();
    let of_accepted: Vec<String> = accepted.iter().flat_map(|p| variants(p, &words)).collect();
    let (accepted, more): (Vec<String>, Vec<String>) = of_accepted.into_iter().partition(|p| is_accepted(p));
    assert!(accepted.len() > 5_000, "{}", accepted.len());
    let (ok, report) = tree_sitter("agent", "variants", &accepted);
    assert!(ok, "{report}");
    // Errors end no run.
    let sample: Vec<String> = more.into_iter().step_by(20).chain(refused).collect();
    let (ok, _) = tree_sitter("agent", "refused", &sample);
    assert!(!ok);
}
