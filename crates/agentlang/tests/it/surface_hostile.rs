//! Programs that nobody would write: they end in diagnostics, in bounded time and stack, and what is
//! accepted has a term without gaps.

use core_ir::Term;
use diagnostics::Sources;
use proptest::prelude::*;
use std::path::Path;

/// Checks and, if accepted, lowers. Gives the codes of what was found, or an empty list.
fn codes(text: &str) -> Vec<&'static str> {
    let mut sources = Sources::new();
    let file = sources.add("t.agent", text);
    let (module, found) = agentlang::check(file, text);
    let mut codes: Vec<&'static str> = found.iter().map(|d| d.code).collect();
    let Some(module) = module else {
        assert!(diagnostics::has_errors(&found));
        return codes;
    };
    for entry in module.entries() {
        match module.lower(entry) {
            Ok(code) => {
                let gaps = code.iter().filter(|(_, t)| matches!(t, Term::Unknown(_))).count();
                assert_eq!(gaps, 0, "accepted, but not lowered whole: {text}");
            }
            Err(found) => {
                assert!(found.iter().all(|d| d.code == "A081"), "{found:?}\n{text}");
                codes.extend(found.iter().map(|d| d.code));
            }
        }
    }
    codes
}

fn suite() -> Vec<String> {
    fn walk(folder: &Path, out: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|e| e == "agent") {
                out.push(std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut out = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/agent"), &mut out);
    out.sort();
    out
}

#[test]
fn depth_and_size_have_limits() {
    let many = |n: usize, f: &dyn Fn(usize) -> String| (0..n).map(f).collect::<String>();
    let wrap =
        |body: String| format!("pipeline p(n: Number, o: Option[Number]) -> Number {{ {body} return n; }}");
    // Deep, but below the limits.
    let nested = format!("{}{}", "if n == 1 { ".repeat(200), "}".repeat(200));
    assert!(codes(&wrap(nested)).is_empty());
    let loops = format!("{}{}", "while n == 1 { ".repeat(100), "}".repeat(100));
    assert!(codes(&wrap(loops)).is_empty());
    let tries = format!("{}{}", "try { ".repeat(200), "} catch m { }".repeat(200));
    assert!(codes(&wrap(tries)).is_empty());
    let sum = (0..200).map(|_| "1").collect::<Vec<_>>().join(" + ");
    assert!(codes(&wrap(format!("let x = {sum};"))).is_empty());
    // Many early returns do not nest.
    let returns = |n| wrap(many(n, &|i| format!("if n == {i} {{ return {i}; }}\n")));
    assert!(codes(&returns(5_000)).is_empty());
    // A long chain of pipelines, and of aliases.
    let chain = many(300, &|i| {
        format!(
            "pipeline p{i}(x: A{i}) -> A{i} {{ let y = p{}(x); return y; }}\ntype A{i} = A{};\n",
            i + 1,
            i + 1
        )
    });
    let end = "pipeline p300(x: Number) -> Number { return x; }\ntype A300 = Number;";
    assert!(codes(&format!("{chain}{end}")).is_empty());
    // Types that double.
    let types = many(60, &|i| format!("type T{} = Obj{{a: T{i}, b: T{i}}};\n", i + 1));
    assert!(codes(&format!("type T0 = String;\n{types}task t(x: T60) -> T60 {{}}")).contains(&"A024"));
    // A cycle of many pipelines.
    let cycle =
        many(500, &|i| format!("pipeline p{i}() -> Number {{ let y = p{}(); return y; }}\n", (i + 1) % 500));
    assert_eq!(codes(&cycle), ["A080"]);
    // Variants shared by the cases of nested matches are lowered once.
    let matches = (0..40).fold(String::new(), |inner, i| {
        format!("match t {{ a | b => {{ {inner} let x{i} = 1; }} c => {{ let x{i} = 2; }} }}")
    });
    let text = format!("enum T {{ a, b, c }}\npipeline p(t: T) -> Number {{ {matches} return 1; }}");
    assert!(codes(&text).is_empty());
}

/// Returns the number of parts in a program's terms.
fn parts(text: &str) -> usize {
    let mut sources = Sources::new();
    let file = sources.add("t.agent", text);
    let (module, found) = agentlang::check(file, text);
    let module = module.unwrap_or_else(|| panic!("{found:?}"));
    module.entries().iter().map(|e| module.lower(e).unwrap().iter().count()).sum()
}

/// Terms grow as their programs do; `cargo bench -p agentlang` has the time.
#[test]
fn terms_grow_with_programs() {
    let one = |i: usize| {
        format!(
            "task t{i}(text: String, n: Number) -> Obj{{label: String, score: Number}} {{}}\n\
             pipeline p{i}(text: String, n: Number) -> Obj{{label: String, score: Number}} {{\n\
             \x20   let a = run t{i} with {{ text: text, n: n }} retries 2;\n\
             \x20   let b = t{i}(a.label + \"x\", a.score + 1);\n\
             \x20   if a.score == b.score {{\n        let best = a;\n    }} else {{\n        let best = b;\n    }}\n\
             \x20   while best.score != n max 5 {{\n        let best = t{i}(best.label, best.score);\n    }}\n\
             \x20   parallel {{ let c = t{i}(text, 1); let d = t{i}(text, 2); }} join;\n\
             \x20   try {{ let e = t{i}(c.label, d.score); return e; }} catch m {{ assert m != \"\"; }}\n\
             \x20   return {{ label: best.label, score: c.score + d.score }};\n}}\n\n"
        )
    };
    // A program of 10,000 lines.
    let text: String = (0..640).map(one).collect();
    assert!(text.lines().count() > 9_900);
    assert_eq!(parts(&text), 640 * parts(&one(0)));
    // One pipeline with very many statements, branches and variables.
    let many = |n: usize| {
        let body: String =
            (0..n).map(|i| format!("let x{i} = n + {i};\nif n == {i} {{ let x{i} = 1; }}\n")).collect();
        parts(&format!("pipeline p(n: Number) -> Number {{ {body} return x0; }}"))
    };
    let (few, more, most) = (many(10), many(11), many(3_000));
    assert_eq!(most, few + (3_000 - 10) * (more - few));
    // And one that may be left anywhere.
    let exits = |n: usize| {
        let body: String =
            (0..n).map(|i| format!("if n == {i} {{ return {i}; }}\nlet n = n + 1;\n")).collect();
        parts(&format!("pipeline p(n: Number) -> Number {{ {body} return n; }}"))
    };
    assert!(exits(4_000) < 3 * exits(2_000), "{} {}", exits(2_000), exits(4_000));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Lines of good and bad programs, left out, doubled and mixed.
    #[test]
    fn mixed_programs_are_survived(
        picks in prop::collection::vec((0usize..1000, 0usize..1000, 1usize..12), 1..8),
    ) {
        let all = suite();
        let mut text = String::new();
        for (program, line, length) in picks {
            let lines: Vec<&str> = all[program % all.len()].lines().collect();
            let from = line % lines.len();
            for l in &lines[from..(from + length).min(lines.len())] {
                text.push_str(l);
                text.push('\n');
            }
        }
        codes(&text);
    }

    /// Whole programs with a piece removed or doubled.
    #[test]
    fn damaged_programs_are_survived(program in 0usize..1000, at in 0usize..4000, length in 0usize..60, double: bool) {
        let all = suite();
        let mut text: Vec<char> = all[program % all.len()].chars().collect();
        let from = at % text.len();
        let to = (from + length).min(text.len());
        let piece: Vec<char> = text[from..to].to_vec();
        if double {
            text.splice(to..to, piece);
        } else {
            text.drain(from..to);
        }
        codes(&text.into_iter().collect::<String>());
    }
}

/// Imports that no one would write: many files in a row and in a cycle, many aliases of one, and names that
/// are words of the language.
#[test]
fn imports_of_many_files_and_names() {
    let codes_of = |text: &str| -> Vec<&'static str> {
        let mut codes: Vec<_> = crate::suite::found_in(text).2.iter().map(|d| d.code).collect();
        codes.dedup();
        codes
    };
    // A chain of files, each behind a name of the one before.
    let file =
        |i: usize| format!("-- f{i}.agent\nuse \"f{}.agent\" as next;\nconst N = next.N + {i};\n", i + 1);
    let chain: String = (0..400).map(file).collect();
    assert_eq!(codes_of(&format!("{chain}-- f400.agent\nconst N = 1;\n")), [""; 0]);
    // The last one imports the first.
    assert!(codes_of(&format!("{chain}-- f400.agent\nuse \"f0.agent\" {{ N }};\n")).contains(&"A084"));
    // A file that imports itself, and two that take each other's names.
    assert!(codes_of("-- a.agent\nuse \"a.agent\" as a;\nconst N = 1;\n").contains(&"A084"));
    let both = "-- a.agent\nuse \"b.agent\" { B };\nconst A = B;\n-- b.agent\nuse \"a.agent\" { A };\nconst B = A;\n";
    assert!(codes_of(both).contains(&"A084"));
    // Many imports of one large file.
    let lib: String = (0..3_000).map(|i| format!("const C{i} = {i};\n")).collect();
    let taken: String = (0..3_000).map(|i| format!("C{i} as D{i}, ")).collect();
    let used: String = (0..3_000)
        .map(|i| format!(" + D{i}"))
        .collect::<Vec<_>>()
        .chunks(100)
        .enumerate()
        .map(|(i, c)| format!("const S{i} = 0{};\n", c.concat()))
        .collect();
    assert_eq!(
        codes_of(&format!("-- a.agent\nuse \"b.agent\" {{ {taken} }};\n{used}-- b.agent\n{lib}")),
        [""; 0]
    );
    // Of a file that is not there, only that is said.
    let gone = "-- a.agent\nuse \"gone.agent\" as gone;\nuse \"gone.agent\" { N, t, T };\nconst M = gone.N + N;\n\
        pipeline p(x: T, y: gone.T) -> Number { let a = gone.t(x); let b = t(x) by gone.a; return gone.f(a, y); }\n";
    assert_eq!(codes_of(gone), ["A085"]);
    // Words of the language that may be names, and words that may not.
    let words = "-- a.agent\nuse \"b.agent\" as run;\nuse \"b.agent\" { match as by };\n\
        pipeline p(x: String) -> String { let a = run.match(x); let b = by(a); return b; }\n\
        -- b.agent\ntask match(x: String) -> String {}\n";
    assert_eq!(codes_of(words), [""; 0]);
    assert_eq!(codes_of("-- a.agent\nuse \"b.agent\" as let;\n-- b.agent\nconst N = 1;\n")[0], "A013");
    // Neither is a half of an import.
    for half in [
        "use \"b.agent\" as",
        "use \"b.agent\" {",
        "use \"b.agent\" { as }",
        "use \"b.agent\" {};",
        "use \"b.agent\" as a { N };",
    ] {
        assert!(!codes_of(&format!("-- a.agent\n{half}\n-- b.agent\nconst N = 1;\n")).is_empty(), "{half}");
    }
}

/// A file that two others import is one of the program, with one set of names.
#[test]
fn a_shared_file_has_one_meaning() {
    let text = "-- a.agent\nuse \"types.agent\";\nuse \"lib.agent\" as lib;\n\
        pipeline p(level: Level) -> Level { return lib.up(level); }\n\
        -- lib.agent\nuse \"types.agent\";\nfn up(level: Level) -> Level { let up = level; return up; }\nfn helper() -> Number { 1 }\n\
        -- types.agent\nenum Level { low, high }\n";
    assert!(crate::suite::found_in(text).2.is_empty());
    // The names of `lib.agent` are not among those of the other files.
    let other = text.replace("return lib.up(level)", "let n = helper(); return level");
    let found = crate::suite::found_in(&other).2;
    assert_eq!(found.iter().map(|d| d.code).collect::<Vec<_>>(), ["A113", "A032"]);
    // A tool of each of two files has a handler of its own name.
    let tools = "-- a.agent\nuse \"b.agent\" as b;\ntool find(x: String) -> String reads {}\n\
        pipeline p(x: String) -> String { let y = find(x); let z = b.find(y); return z; }\n\
        -- b.agent\ntool find(x: String) -> String reads {}\n";
    let found = crate::suite::found_in(tools).2;
    assert_eq!(
        found.iter().map(|d| (d.code, d.help[0].as_str())).collect::<Vec<_>>(),
        [(
            "A028",
            "their handlers would be ambiguous; give one another name after its result type: `as \"other_find\"`"
        )]
    );
    let renamed = tools.replace(
        "-- b.agent\ntool find(x: String) -> String",
        "-- b.agent\ntool find(x: String) -> String as \"find_b\"",
    );
    let (_, module, found) = crate::suite::found_in(&renamed);
    assert!(found.is_empty(), "{found:?}");
    let mut names: Vec<String> = module.unwrap().tools().iter().map(|t| t.name.to_string()).collect();
    names.sort();
    assert_eq!(names, ["find", "find_b"]);
}
