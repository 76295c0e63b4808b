//! Formatting keeps the meaning and the comments, and is idempotent.
//!
//! `ENTAIL_CASES=100000` sets how many programs are generated.

use crate::common::agent_text;
use core_ir::print::{Style, print_with};
use core_ir::{Code, Globals};
use diagnostics::FileId;
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use syntax::{agent, format, lam};

const FILE: FileId = FileId(0);

/// The tree of a program, without places, and its comments.
fn tree(text: &str) -> Option<(String, Vec<String>)> {
    let (program, found) = agent::parse(FILE, text);
    if diagnostics::has_errors(&found) {
        return None;
    }
    let shown = format!("{:?}", program.items);
    let mut items = String::new();
    let mut rest = shown.as_str();
    while let Some(at) = rest.find("Span { file") {
        items.push_str(&rest[..at]);
        rest = rest[at..].split_once('}').map_or("", |(_, after)| after);
    }
    items.push_str(rest);
    let comments = program.comments.iter();
    let comments = comments.map(|c| text[c.span.start as usize..c.span.end as usize].trim_end().to_string());
    Some((items, comments.collect()))
}

fn check_agent(text: &str) -> Result<String, String> {
    let before = tree(text).ok_or_else(|| format!("does not parse:\n{text}"))?;
    let once = format::agent(FILE, text).map_err(|e| format!("{e:#?}"))?;
    let after = tree(&once).ok_or_else(|| format!("the formatted text does not parse:\n{once}"))?;
    if before != after {
        let (a, b) = (format!("{before:?}"), format!("{after:?}"));
        let at = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count().saturating_sub(100);
        let [a, b] = [a, b].map(|t| t.chars().skip(at.saturating_sub(20)).take(300).collect::<String>());
        return Err(format!(
            "another program:\n{text}\n--- formatted\n{once}\n--- before\n{a}\n--- after\n{b}"
        ));
    }
    let twice = format::agent(FILE, &once).map_err(|e| format!("{e:#?}"))?;
    if once != twice {
        return Err(format!("not stable:\n{text}\n--- once\n{once}\n--- twice\n{twice}"));
    }
    laid_out(&once)?;
    Ok(once)
}

/// No tabs or spaces at the ends of lines, no two empty lines, one line break at the end. Strings of several
/// lines are left out of account.
fn laid_out(text: &str) -> Result<(), String> {
    if text.contains("\"\"\"") || text.contains("'\n") {
        return Ok(());
    }
    let bad = text.lines().any(|l| l.ends_with([' ', '\t'])) || text.contains("\n\n\n");
    if bad || !(text.is_empty() || text.ends_with('\n')) || text.ends_with("\n\n") {
        return Err(format!("badly laid out:\n{text}"));
    }
    Ok(())
}

fn read(text: &str) -> Result<Code, String> {
    // Names of the prelude are unbound here, which does not concern the formatter; so they are made bound.
    let parsed = lam::parse(FILE, text, &Globals::none(), lam::Options::PROGRAM);
    parsed.code.ok_or_else(|| format!("{:#?}\n{text}", parsed.diagnostics))
}

fn comments_of_lam(text: &str) -> Vec<String> {
    // Good enough for texts without `#` in strings.
    text.lines().filter_map(|l| l.split_once('#')).map(|(_, c)| c.trim_end().to_string()).collect()
}

fn check_lam(text: &str) -> Result<String, String> {
    let before = read(text)?;
    let once = format::lam(FILE, text).map_err(|e| format!("{e:#?}"))?;
    let after = read(&once).map_err(|e| format!("{e}\n--- from\n{text}"))?;
    if before != after {
        return Err(format!("another program:\n{text}\n--- formatted\n{once}"));
    }
    let twice = format::lam(FILE, &once).map_err(|e| format!("{e:#?}"))?;
    if once != twice {
        return Err(format!("not stable:\n{text}\n--- once\n{once}\n--- twice\n{twice}"));
    }
    Ok(once)
}

fn files(extension: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("suite"), root.join("examples")];
    let mut out = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

#[test]
fn agent_programs_of_the_suite_keep_their_meaning() {
    let mut formatted = 0;
    for path in files("agent") {
        let text = std::fs::read_to_string(&path).unwrap();
        if tree(&text).is_none() {
            assert!(format::agent(FILE, &text).is_err(), "{}", path.display());
            continue;
        }
        formatted += 1;
        check_agent(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    assert!(formatted > 20);
}

/// The programs of a file: one, or those of the cases of `suite/lam`, which are no program together.
fn programs_of_lam(text: &str) -> Vec<String> {
    let kept = |case: &str| case.lines().skip(1).filter(|l| !l.starts_with("--- ")).fold(String::new(), line);
    fn line(text: String, l: &str) -> String {
        text + l + "\n"
    }
    match text.split("=== ").skip(1).map(kept).collect::<Vec<_>>() {
        none if none.is_empty() => vec![text.to_string()],
        cases => cases,
    }
}

#[test]
fn programs_of_the_calculus_keep_their_comments() {
    let (mut formatted, mut refused) = (0, 0);
    for path in files("lam") {
        for text in programs_of_lam(&std::fs::read_to_string(&path).unwrap()) {
            let name = path.display();
            // Some show how a wrong program is refused.
            let Ok(once) = format::lam(FILE, &text) else {
                refused += 1;
                assert!(read(&text).is_err(), "{name}: {text}");
                continue;
            };
            formatted += 1;
            assert_eq!(format::lam(FILE, &once).unwrap(), once, "{name}");
            assert_eq!(comments_of_lam(&once), comments_of_lam(&text), "{name}");
        }
    }
    assert!(formatted > 50 && refused < formatted / 10, "{formatted} formatted, {refused} refused");
}

/// With a space before it, a bracket may be an argument.
#[test]
fn a_bracket_belongs_to_the_word_before_it_or_not() {
    for (text, formatted) in [
        ("each[4] f xs", "each[4] f xs"),
        ("each [g] xs", "each [g] xs"),
        ("each[4](f)[1]", "each[4] (f) [1]"),
        ("send[user]x; send [x]", "send[user] x;\nsend [x]"),
        ("fix[3] f; fix [3]", "fix[3] f;\nfix [3]"),
        ("par[2] [a, b]; par[a]; par [2] [a]", "par[2] [a, b];\npar [a];\npar [2] [a]"),
        ("a ⊕[0.3] b; a ⊕ [b]", "a ⊕[0.3] b;\na ⊕ [b]"),
        (
            "within [2] x; check [Num] x; try [[]] x catch e. e",
            "within[2] x;\ncheck[Num] x;\ntry[[]] x catch e. e",
        ),
        // Words are names behind a dot.
        ("x.check [1]; x.try [a]", "x.check [1];\nx.try [a]"),
        ("f[1]; f.[1]", "f [1];\nf.[1]"),
    ] {
        let bound: String = "abfgx".chars().map(|c| format!("let {c} = 0;\n")).collect();
        let parsed = |t: &str| read(&format!("{bound}let fix = 0;\nlet xs = 0;\n{t}")).unwrap();
        let once = format::lam(FILE, text).unwrap_or_else(|e| panic!("{text}: {e:#?}"));
        assert_eq!(once, format!("{formatted}\n"));
        assert!(parsed(text) == parsed(&once), "{text}");
    }
}

#[test]
fn the_style_of_the_calculus() {
    let once = check_lam(
        r#"# first
# second



let f = \x. (
 let y = x . a in y)  
let name = 'N'; let long = \ request . if request == "a rather long text, so that it fits no line" then
  {first: [1,2,3], second: request} else f "{name} is {request}"
send[system]   name ;send [name]

mem (remember  count ( -1 ) ) {count:Num@["S"]=0,} # end"#,
    )
    .unwrap();
    assert_eq!(
        once,
        r#"# first
# second

let f = \x. (
  let y = x.a in y
)
let name = 'N';
let long = \request.
  if request == "a rather long text, so that it fits no line"
  then {first: [1, 2, 3], second: request}
  else f "{name} is {request}"
send[system] name;
send [name]

mem (remember count (-1)) {count: Num @ ["S"] = 0} # end
"#
    );
}

#[test]
fn the_style_of_programs() {
    let once = check_agent(
        r#"-- about it


enum Tone{warm,cold};
tool find( q:String untrusted )->List[Obj{url:String,rank:Number}]reads untrusted{mcp "s" "find"}
pipeline p(a:Number)->Number{ -- starts
  let x=run work with{n:a,} by w   retries 2 on_fail use{ok:false, why:"because it took longer than anybody could have expected"};


  if !(x.n==-1)&&a<2{return [x . n,2][0];}else if a==3{}
  let y = quarantine("a {x}")as String; // why
  -- last
}
test "t"{assert 1==1 ,"m";}"#,
    )
    .unwrap();
    assert_eq!(
        once,
        r#"-- about it

enum Tone { warm, cold }
tool find(q: String untrusted) -> List[Obj{url: String, rank: Number}] reads untrusted {
    mcp "s" "find"
}

pipeline p(a: Number) -> Number { -- starts
    let x = run work with { n: a }
        by w
        retries 2
        on_fail use { ok: false, why: "because it took longer than anybody could have expected" };

    if !(x.n == -1) && a < 2 {
        return [x.n, 2][0];
    } else if a == 3 {}
    let y = quarantine("a {x}") as String; // why
    -- last
}

test "t" {
    assert 1 == 1, "m";
}
"#
    );
}

fn cases() -> u32 {
    std::env::var("ENTAIL_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2000)
}

/// Puts a comment at the end of some lines and breaks some lines where a space stands.
fn disturb(text: &str, choices: &[u8]) -> String {
    let mut choices = choices.iter().cycle();
    let mut out = String::new();
    for (n, line) in text.lines().enumerate() {
        out.push_str(line);
        match choices.next() {
            Some(0..40) => out.push_str(&format!(" # c{n}")),
            Some(40..60) => out.push_str(&format!("\n      # own {n}\n")),
            Some(60..80) => out.push_str("\n\n\n"),
            _ => {}
        }
        out.push('\n');
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_agent_programs_keep_their_meaning(choices in prop::collection::vec(any::<u8>(), 0..600)) {
        let text = agent_text::program(&choices);
        check_agent(&text).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn generated_terms_keep_their_meaning(choices in prop::collection::vec(any::<u8>(), 1..400)) {
        let code = crate::common::code(&choices);
        for style in [Style::TEXT, Style::LINE, Style { unicode: true, width: Some(1) }] {
            let text = print_with(&code, style).text;
            let once = check_lam(&text).map_err(TestCaseError::fail)?;
            prop_assert!(read(&once).map_err(TestCaseError::fail)? == code);
            check_lam(&disturb(&text, &choices)).map_err(TestCaseError::fail)?;
        }
    }

    #[test]
    fn any_text_is_formatted_or_refused(text in "\\PC{0,200}") {
        let _ = format::agent(FILE, &text);
        let _ = format::lam(FILE, &text);
    }
}
