//! Data sets and samples of tests: rows from texts of any kind, and formatting.

use agentlang::{Module, Row};
use core_ir::Data;
use diagnostics::{Diagnostic, FileId};
use proptest::prelude::*;

const CASE: &str = "type Case = Obj{ticket: String, team: Option[String]};\n";

fn module(text: &str) -> Module {
    let (module, found) = agentlang::check(FileId(0), text);
    module.unwrap_or_else(|| panic!("{text}\n{found:#?}"))
}

/// The rows that a text gives to a test with these clauses.
fn rows(clauses: &str, text: &str) -> Result<Vec<Row>, Vec<Diagnostic>> {
    let module = module(&format!("{CASE}test \"t\" {clauses} {{ assert 1 == 1; }}"));
    let entry = &module.entries()[0];
    module.data_set(entry).unwrap().rows(FileId(1), text)
}

fn messages(clauses: &str, text: &str) -> Vec<String> {
    rows(clauses, text).unwrap_err().into_iter().map(|d| d.message).collect()
}

const TYPED: &str = "for each row: Case of \"c.jsonl\"";
const UNTYPED: &str = "for each row of \"c.jsonl\"";

#[test]
fn rows_have_numbers_and_lines() {
    let text = "{\"ticket\": \"a\"}\r\n\n  {\"ticket\": \"b\", \"team\": \"x\"}";
    let found = rows(TYPED, text).unwrap();
    let at: Vec<_> = found
        .iter()
        .map(|r| (r.number, &text[r.span.start as usize..r.span.end as usize], r.input.to_json()))
        .collect();
    assert_eq!(at[0].0, 1);
    assert_eq!((at[1].0, at[1].1), (2, "{\"ticket\": \"b\", \"team\": \"x\"}"));
    assert_eq!(at[1].2, serde_json::json!({"row": {"ticket": "b", "team": "x"}}));
}

#[test]
fn wrong_rows_are_said_with_their_number() {
    for (text, message) in [
        ("", "`c.jsonl` has no rows"),
        ("\n \n", "`c.jsonl` has no rows"),
        ("{\"ticket\": 3}", "row 1: $.ticket: expected a string, found a number"),
        ("{\"tickt\": \"a\"}", "row 1: $.tickt: there is no such field"),
        ("{\"ticket\": \"a\"}\n[1]", "row 2: not an object"),
        ("{\"ticket\": \"a\"", "row 1: the object does not end on its line (column 14)"),
        ("{\"ticket\" \"a\"}", "row 1: malformed JSON (column 11)"),
        ("\u{0}", "row 1: malformed JSON (column 1)"),
    ] {
        assert_eq!(messages(TYPED, text), [message], "{text:?}");
    }
    let deep = format!("{{\"ticket\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(messages(UNTYPED, &deep).len(), 1);
    let nested = format!("{{\"ticket\": {}1{}}}", "[".repeat(120), "]".repeat(120));
    assert!(rows(UNTYPED, &nested).is_ok() || messages(UNTYPED, &nested).len() == 1);
    let long = format!("{{\"ticket\": \"{}\"}}", "a".repeat(1 << 20));
    assert_eq!(messages(TYPED, &long), ["row 1: longer than 1 MiB"]);
    // Many errors are counted.
    let many = rows(TYPED, &"[]\n".repeat(1_000)).unwrap_err();
    assert_eq!(many.len(), 5);
    assert!(many[4].help.iter().any(|h| h == "995 more rows are wrong"), "{:?}", many[4].help);
}

const TABLE: &str = "type Case = Obj{ticket: String, hours: Option[Number], urgent: Bool, tags: List[String], \
                     size: Size, day: Date};\nenum Size { small, large }\n";

/// The rows of a table for a type with fields of many types.
fn table(text: &str) -> Result<Vec<Row>, Vec<Diagnostic>> {
    let module = module(&format!("{TABLE}test \"t\" for each row: Case of \"c.csv\" {{ assert 1 == 1; }}"));
    let entry = &module.entries()[0];
    module.data_set(entry).unwrap().rows(FileId(1), text)
}

const HEADER: &str = "day,ticket,hours,urgent,tags,size\n";

#[test]
fn cells_are_read_by_the_types_of_their_fields() {
    let text = format!(
        "\u{feff}{HEADER}\r\n2026-01-31,\"a, \"\"b\"\"\n3\",1.50,true,\"[\"\"x\"\"]\",small\r\n\
                        2026-02-01,7,,false,[],large\r\n"
    );
    let rows = table(&text).unwrap();
    let inputs: Vec<_> = rows.iter().map(|r| r.input.to_json()).collect();
    assert_eq!(
        inputs,
        [
            serde_json::json!({"row": {"day": "2026-01-31", "ticket": "a, \"b\"\n3", "hours": 1.5,
                "urgent": true, "tags": ["x"], "size": "small"}}),
            serde_json::json!({"row": {"day": "2026-02-01", "ticket": "7", "hours": null, "urgent": false,
                "tags": [], "size": "large"}}),
        ]
    );
    let at = |r: &Row| text[r.span.start as usize..r.span.end as usize].to_string();
    assert_eq!((rows[1].number, at(&rows[1])), (2, "2026-02-01,7,,false,[],large".to_string()));
    // Without a type each cell is a text.
    let module = module("test \"t\" for each row of \"c.csv\" { assert 1 == 1; }");
    let untyped = module.data_set(&module.entries()[0]).unwrap().rows(FileId(1), "a,b\n1,\n").unwrap();
    assert_eq!(untyped[0].input.to_json(), serde_json::json!({"row": {"a": "1", "b": ""}}));
}

#[test]
fn wrong_tables_are_said() {
    let row = |cells: &str| format!("{HEADER}{cells}\n");
    for (text, message) in [
        (String::new(), "`c.csv` has no rows"),
        (HEADER.to_string(), "`c.csv` has no rows"),
        ("day,day\n".into(), "two columns are called `day`"),
        ("day,,size\n".into(), "a column has no name"),
        ("day,tickt\n".into(), "a row has no field `tickt`"),
        ("\"day\n".into(), "a quote is not closed"),
        ("ticket\nx\n".into(), "row 1: $.urgent: missing, expected a boolean"),
        (row("x,y"), "row 1: 2 cells, the first line has 6 cells"),
        (row("2026-01-31,\"a\"b,1,true,[],small"), "row 1: text follows a closing quote"),
        (row("2026-01-31,a,\"1,5\",true,[],small"), "row 1: $.hours: expected a number, found `1,5`"),
        (row("2026-01-31,a,1,yes,[],small"), "row 1: $.urgent: expected `true` or `false`, found `yes`"),
        (row("2026-01-31,a,1,true,x,small"), "row 1: $.tags: expected JSON, found `x`"),
        (row("2026-01-31,a,1,true,[],big"), "row 1: $.size: expected one of small, large, found `big`"),
    ] {
        let found: Vec<String> = table(&text).unwrap_err().into_iter().map(|d| d.message).collect();
        assert_eq!(found, [message], "{text:?}");
    }
    let found = table("day,tickt\n").unwrap_err();
    assert_eq!(found[0].help, ["did you mean `ticket`?"]);
}

#[test]
fn runs_are_bounded() {
    let text = "{\"ticket\": \"a\"}\n".repeat(10_000);
    assert_eq!(rows(TYPED, &text).unwrap().len(), 10_000);
    let more = format!("{text}{{\"ticket\": \"a\"}}");
    assert_eq!(messages(TYPED, &more), ["more than 10000 runs of one test"]);
    assert_eq!(
        messages(&format!("{TYPED} samples 2 pass >= 1"), &text),
        ["more than 10000 runs of one test"]
    );
}

#[test]
fn required_rates_are_exact() {
    for (clause, must_pass) in [
        ("samples 20 pass >= 0.9", 18),
        // As floating-point numbers, 0.07 times 100 is more than 7.
        ("samples 100 pass >= 0.07", 7),
        ("samples 3 pass >= 0.34", 2),
        ("samples 3 pass >= 1", 3),
        ("samples 10 pass >= 1e-9", 1),
    ] {
        let module = module(&format!("test \"t\" {clause} {{ assert 1 == 1; }}"));
        let samples = module.samples(&module.entries()[0]).unwrap();
        assert_eq!(samples.must_pass, must_pass, "{clause}");
    }
}

/// Checks that there are a few errors of rows, each with a remedy and a place in the program or in the text.
fn are_placed(found: &[Diagnostic], text: &str) -> Result<(), TestCaseError> {
    prop_assert!(!found.is_empty() && found.len() <= 5);
    for d in found {
        prop_assert!(d.code == "A094" && !d.help.is_empty());
        let at = d.span.unwrap();
        prop_assert!(at.file == FileId(0) || text.get(at.start as usize..at.end as usize).is_some());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any text gives rows or errors whose places are in it.
    #[test]
    fn any_text_gives_rows_or_errors(
        lines in prop::collection::vec("\\PC{0,20}|\\{\"ticket\": ?\"\\PC{0,8}\"\\}|[\\[\\]{}\",:0-9a-z\r\n ]{0,30}", 0..12),
        typed in any::<bool>(),
    ) {
        let text = lines.join("\n");
        let clauses = if typed { TYPED } else { UNTYPED };
        match rows(clauses, &text) {
            Ok(found) => {
                prop_assert!(!found.is_empty());
                for row in &found {
                    let line = &text[row.span.start as usize..row.span.end as usize];
                    prop_assert!(line.starts_with('{'), "{}", line);
                    prop_assert!(matches!(row.input, Data::Record(_)));
                }
            }
            Err(found) => are_placed(&found, &text)?,
        }
    }

    /// Any text below names of fields gives rows or errors whose places are in it.
    #[test]
    fn any_table_gives_rows_or_errors(
        cells in prop::collection::vec("\\PC{0,12}|\"\\PC{0,8}\"|[,\"0-9a-z\r\n ]{0,30}|true,\\[\\],small", 0..12),
        separator in prop::sample::select(vec![",", "\n", "\r\n"]),
    ) {
        let text = format!("{HEADER}{}", cells.join(separator));
        match table(&text) {
            Ok(found) => {
                for row in &found {
                    prop_assert!(text.get(row.span.start as usize..row.span.end as usize).is_some());
                    prop_assert!(matches!(row.input, Data::Record(_)));
                }
            }
            Err(found) => are_placed(&found, &text)?,
        }
    }

    /// A table gives the texts that were quoted for it.
    #[test]
    fn quoted_cells_give_their_texts(
        rows in prop::collection::vec(("[a-z,\"\r\n é]{0,6}", "[a-z,\"\r\n é]{0,6}"), 1..5),
    ) {
        let quoted = |s: &str| format!("\"{}\"", s.replace('"', "\"\""));
        let text: String = rows.iter().map(|(a, b)| format!("{},{}\r\n", quoted(a), quoted(b))).collect();
        let module = module("test \"t\" for each row of \"c.csv\" { assert 1 == 1; }");
        let found = module.data_set(&module.entries()[0]).unwrap().rows(FileId(1), &format!("a,b\n{text}")).unwrap();
        let found: Vec<_> = found.iter().map(|r| r.input.to_json()).collect();
        let expected: Vec<_> =
            rows.iter().map(|(a, b)| serde_json::json!({"row": {"a": a, "b": b}})).collect();
        prop_assert_eq!(found, expected);
    }

    /// Formatting keeps the clauses, and formats once.
    #[test]
    fn formatted_clauses_are_the_same(
        name in "[a-z]{1,6}",
        ty in prop::option::of(prop::sample::select(vec!["Case", "Any", "Obj{ticket:String}", "Obj{ ticket :List[Any] }"])),
        samples in prop::option::of((1u32..100, 1u32..=100)),
        space in prop::sample::select(vec![" ", "  ", "\n", "\n\n    ", " -- why\n"]),
    ) {
        prop_assume!(!syntax::agent::keywords::is_reserved(&name));
        let ty = ty.map_or(String::new(), |t| format!(":{space}{t}"));
        let samples = samples.map_or(String::new(), |(n, percent)| {
            let rate = f64::from(percent) / 100.0;
            format!("samples{space}{n}{space}pass{space}>={space}{rate}")
        });
        let text = format!(
            "{CASE}test \"t\" for{space}each{space}{name}{ty}{space}of{space}\"c.jsonl\"{space}{samples}{{ assert {name} == {name}; }}"
        );
        let before = module(&text);
        let formatted = syntax::format::agent(FileId(0), &text).unwrap();
        let after = module(&formatted);
        let of = |m: &Module| {
            let entry = &m.entries()[0];
            (entry.input.clone(), m.samples(entry), m.data_set(entry).unwrap().path)
        };
        prop_assert_eq!(of(&before), of(&after));
        prop_assert_eq!(syntax::format::agent(FileId(0), &formatted).unwrap(), formatted);
        let terms = [&before, &after].map(|m| m.lower(&m.entries()[0]).unwrap());
        prop_assert!(terms[0] == terms[1]);
    }
}
