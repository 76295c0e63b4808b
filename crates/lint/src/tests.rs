use super::*;
use core_ir::{Builder, Catches, Data, Globals, ModelParams, Term, TermId, ToolDecl};
use diagnostics::{FileId, Sources};
use frontend_kit::{Facts, UnitKind};
use proptest::prelude::*;
use std::sync::Arc;

/// Of every level, and every default of a framework is a warning.
fn everything() -> Config {
    Config { level: Level::Info, most_default_rounds: 0, ..Config::default() }
}

fn findings(text: &str, config: &Config) -> Vec<Diagnostic> {
    match lint_bytes(frontends::recognize, "example.yaml", FileId(0), text.as_bytes(), config).outcome {
        Outcome::Checked { findings, .. } => findings,
        other => panic!("not compiled: {other:?}\n{text}"),
    }
}

/// `code level text-at-the-place` of each finding of a rule.
fn found(text: &str) -> Vec<String> {
    let mut sources = Sources::new();
    sources.add("example.yaml", text);
    let show = |d: &Diagnostic| format!("{} {} {}", d.code, d.level.as_str(), sources.text(d.span.unwrap()));
    findings(text, &everything()).iter().filter(|d| d.code.starts_with('L')).map(show).collect()
}

/// An example of a rule's page: the name of its file, its text, and what its fence says after the language.
struct Example<'d> {
    file: &'static str,
    text: &'d str,
    mark: &'d str,
}

/// The examples in YAML and Python of a section.
fn examples<'d>(docs: &'d str, heading: &str) -> Vec<Example<'d>> {
    let section = docs.split("\n## ").find(|s| s.starts_with(heading)).unwrap_or("");
    let blocks = section.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    let example = |(info, text): (&'d str, &'d str)| {
        let (language, mark) = info.split_once(' ').unwrap_or((info, ""));
        let file = match language {
            "yaml" => "example.yaml",
            "python" => "main.py",
            other => panic!("an example in `{other}`"),
        };
        Example { file, text, mark }
    };
    blocks.map(example).collect()
}

/// Each *Example* has one finding of the rule, at the level that its fence states or at the rule's; each
/// *Fix* has none, and nothing else above info. A page has examples in YAML and in Python, or says
/// that the rule does not apply to configurations or to Python.
#[test]
fn the_page_of_each_rule_holds() {
    let config = Config { level: Level::Info, ..Config::default() };
    for rule in RULES {
        let title = format!("# {}: {}\n", rule.code, rule.name);
        assert!(rule.docs.starts_with(&title), "{}", rule.code);
        assert!(rule.docs.contains(&format!("Level: {} · ", rule.level.as_str())), "{}", rule.code);
        assert!(rule.docs.contains("**Semantics.**"), "{}", rule.code);
        let (wrong, right) = (examples(rule.docs, "Example"), examples(rule.docs, "Fix"));
        assert!(!wrong.is_empty() && !right.is_empty(), "{}", rule.code);
        let words = rule.docs.split_whitespace().collect::<Vec<_>>().join(" ");
        for (file, language) in [("main.py", "Python"), ("example.yaml", "configurations")] {
            let has = |of: &[Example<'_>]| of.iter().any(|e| e.file == file);
            let is_out = words.contains(&format!("does not apply to {language}"));
            assert_eq!((has(&wrong), has(&right)), (!is_out, !is_out), "{} and {language}", rule.code);
        }
        for Example { file, text, mark } in wrong {
            let level = mark.strip_prefix("level=").unwrap_or(rule.level.as_str());
            let all = tests_code::among_with(&[(file, text)], &config);
            let own: Vec<_> = all.iter().filter(|d| d.code == rule.code).collect();
            assert_eq!(own.len(), 1, "{} on\n{text}", rule.code);
            assert_eq!((own[0].level.as_str(), own[0].meaning), (level, Some(rule.meaning)), "{}", rule.code);
            assert!(!own[0].help.is_empty(), "{} on\n{text}", rule.code);
            // In a module a finding may be about no agent, such as a key in an argument of a client.
            assert!(file == "main.py" || own[0].agent.is_some(), "{} on\n{text}", rule.code);
            assert!(own[0].framework.is_some(), "{} on\n{text}", rule.code);
        }
        for Example { file, text, .. } in right {
            // A framework's own remarks are no business of the page.
            let all = tests_code::among_with(&[(file, text)], &config);
            let objections: Vec<_> =
                all.iter().filter(|d| d.code == rule.code || d.level > Level::Info).collect();
            assert!(objections.is_empty(), "{} on\n{text}\n{objections:#?}", rule.code);
        }
    }
}

#[test]
fn repairs_keep_quotes_and_comments() {
    for (before, after) in [
        (
            "agentId: a\nmodel: {name: m, baseUrl: 'http://m.example.org/v1'} # ours\nsystemPrompt: p\ntype: simple\n",
            "agentId: a\nmodel: {name: m, baseUrl: 'https://m.example.org/v1'} # ours\nsystemPrompt: p\ntype: simple\n",
        ),
        (
            "a: # one\n  role: r\n  goal: g\n  backstory: b\n  code_execution_mode: unsafe # two\n",
            "a: # one\n  role: r\n  goal: g\n  backstory: b\n  code_execution_mode: safe # two\n",
        ),
        (
            "a:\n  role: r\n  goal: g\n  backstory: b\n  code_execution_mode: \"unsafe\"\n",
            "a:\n  role: r\n  goal: g\n  backstory: b\n  code_execution_mode: \"safe\"\n",
        ),
    ] {
        let found = findings(before, &everything());
        let (text, n) = diagnostics::fix::apply(before, FileId(0), &found, Applicability::Unsafe);
        assert_eq!((text.as_str(), n), (after, 1), "{before}");
        assert_eq!(diagnostics::fix::apply(before, FileId(0), &found, Applicability::Safe).1, 0);
    }
}

/// The text after the repairs of a code that are at least so trustworthy, and how many those are.
fn repaired(text: &str, code: &str, least: Applicability) -> (String, usize) {
    let found: Vec<Diagnostic> =
        findings(text, &everything()).into_iter().filter(|d| d.code == code).collect();
    assert!(!found.is_empty(), "no {code} in\n{text}");
    diagnostics::fix::apply(text, FileId(0), &found, least)
}

#[test]
fn l003_fix_states_steps() {
    let text = LISTING.replace("{maxSteps: 20}", "\n  maxSteps: 0 # none");
    let (after, n) = repaired(&text, "L003", Applicability::Unsafe);
    assert_eq!((after, n), (text.replace("0 # none", "10 # none"), 1));
    assert_eq!(repaired(&text, "L003", Applicability::Safe).1, 0);
    // What is written in another way is left as it is.
    assert_eq!(
        repaired(&LISTING.replace("maxSteps: 20", "maxSteps: '0'"), "L003", Applicability::Unsafe).1,
        0
    );
}

#[test]
fn l004b_fix_adds_terminate() {
    for (tools, after) in [
        ("[]", "[terminate]"),
        ("[run]  # ours", "[run, terminate]  # ours"),
        ("[ 'run', \"look\", ]", "[ 'run', \"look\",terminate ]"),
        ("\n    # first\n    - run # why\n", "\n    # first\n    - run # why\n    - terminate\n"),
        ("\n  - run\n  - look\n# end\n", "\n  - run\n  - look\n  - terminate\n# end\n"),
    ] {
        let with = |tools: &str| {
            format!(
                "agentId: c\ntype: react\nmodel: m\nsystemPrompt: p\nreact: {{maxSteps: 9}}\nmcp:\n  localTools: {tools}"
            )
        };
        let (changed, n) = repaired(&with(tools), "L004b", Applicability::Unsafe);
        assert_eq!((changed.as_str(), n), (with(after).as_str(), 1));
        assert!(found(&changed).iter().all(|f| !f.starts_with("L004b")), "{changed}");
    }
}

/// A Dify workflow with an edge for an outcome that does not exist, and a node that nothing leads to.
const TALK: &str = "app: {mode: workflow, name: help}
kind: app
workflow:
  graph:
    nodes:
      - {id: s, data: {type: start, title: start, variables: []}}
      - id: c
        data:
          type: question-classifier
          title: topic
          model: {name: small}
          query_variable_selector: [sys, query]
          classes: # two
            - {id: '1', name: bills}
            - {id: '2', name: parcels}
      - {id: e, data: {type: end, title: end, outputs: []}}
      # nobody comes here
      - id: lost
        data: {type: end, title: lost, outputs: []}
    edges:
      - {source: s, sourceHandle: source, target: c}
      - {source: c, sourceHandle: '1', target: e}
      - {source: c, sourceHandle: '2', target: e} # both
      - {source: c, sourceHandle: '3', target: e}
";

#[test]
fn l007_fix_removes_edge() {
    let (after, n) = repaired(TALK, "L007", Applicability::Safe);
    assert_eq!((after, n), (TALK.replace("      - {source: c, sourceHandle: '3', target: e}\n", ""), 1));
    let flow = TALK.split("    edges:").next().unwrap().to_string()
        + "    edges: [{source: s, sourceHandle: source, target: c}, {source: c, sourceHandle: '9', target: e}, {source: c, target: e}]\n";
    let (after, n) = repaired(&flow, "L007", Applicability::Safe);
    assert_eq!((after, n), (flow.replace("{source: c, sourceHandle: '9', target: e}, ", ""), 1));
}

#[test]
fn l008_fix_is_display_only() {
    let found: Vec<Diagnostic> = findings(TALK, &everything());
    let lost = found.iter().find(|d| d.code == "L008").unwrap();
    let fix = lost.fix.as_ref().unwrap();
    assert_eq!(fix.applicability, Applicability::DisplayOnly);
    let (start, end) = (fix.span.start as usize, fix.span.end as usize);
    assert_eq!(&TALK[start..end], "      - id: lost\n        data: {type: end, title: lost, outputs: []}\n");
    let mut sources = Sources::new();
    sources.add("example.yaml", TALK);
    let shown = diagnostics::render::text(&sources, lost, false);
    assert!(shown.contains("suggested change") && shown.contains("- id: lost"), "{shown}");
    assert_eq!(repaired(TALK, "L008", Applicability::Unsafe).1, 0);
    // A class that no edge is for.
    let open = TALK.replace("      - {source: c, sourceHandle: '2', target: e} # both\n", "");
    let classes = findings(&open, &everything());
    let class = classes.iter().find(|d| d.code == "L007" && d.message.contains("`2`")).unwrap();
    let fix = class.fix.as_ref().unwrap();
    assert_eq!(
        (&open[fix.span.start as usize..fix.span.end as usize], fix.applicability),
        ("            - {id: '2', name: parcels}\n", Applicability::DisplayOnly)
    );
}

#[test]
fn findings_of_a_file_are_capped() {
    let key = "8f14e45fceea167a5a36dedd4bea2543";
    let mut text = String::from("agentId: a\ntype: simple\nmodel: m\nsystemPrompt: p\nmore:\n");
    for i in 0..2_000 {
        text.push_str(&format!("  - {{api_key: {key}, n: {i}}}\n"));
    }
    let found = findings(&text, &everything());
    let keys: Vec<_> = found.iter().filter(|d| d.code == "S001").collect();
    assert_eq!(keys.len(), 500);
    assert_eq!(keys[499].help.last().unwrap(), "1500 more findings of S001 in this file are left out");
}

#[test]
fn rules_are_in_order_and_found_by_code() {
    assert!(RULES.windows(2).all(|w| w[0].code < w[1].code));
    assert_eq!(rule("l004B").map(|r| r.name), Some("forced-truncation"));
    assert!(rule("L999").is_none());
}

const LISTING: &str = include_str!("../../../suite/frontends/lambda_yaml/listing1.yaml");

#[test]
fn levels_and_selection() {
    let text = LISTING.replace("localTools: [terminate]", "localTools: []\nshade: blue");
    let codes = |config: &Config| findings(&text, config).iter().map(|d| d.code).collect::<Vec<_>>();
    assert_eq!(codes(&everything()), ["L004b", "F002"]);
    assert_eq!(codes(&Config::default()), ["L004b"]);
    assert_eq!(codes(&Config { level: Level::Error, ..Config::default() }), Vec::<&str>::new());
    assert_eq!(codes(&Config { select: vec!["F".into()], ..everything() }), ["F002"]);
    assert_eq!(codes(&Config { ignore: vec!["L004".into()], ..everything() }), ["F002"]);
}

#[test]
fn lint_skips_files_of_other_kinds() {
    let skip = |path: &str, bytes: &[u8]| match lint_bytes(
        frontends::recognize,
        path,
        FileId(0),
        bytes,
        &Config::default(),
    )
    .outcome
    {
        Outcome::Skipped(s) => s.to_string(),
        Outcome::Unreadable(d) => format!("unreadable {}", d.first().map_or("", |d| d.code)),
        Outcome::Checked { findings, .. } => format!("checked {}", findings.len()),
    };
    assert_eq!(skip("a.toml", b"x"), "neither YAML, JSON nor Python");
    assert_eq!(skip("a.py", b""), "empty");
    assert_eq!(skip("a.py", b"x"), "no agent configuration");
    // Which module builds agents can't be told of one that is no text; most don't.
    assert_eq!(skip("a.py", b"\xff\xfe"), "no agent configuration");
    assert_eq!(skip("a.yaml", b"# nothing\n"), "empty");
    assert_eq!(skip("a.json", b""), "empty");
    assert_eq!(skip("a.yaml", b"image: nginx\n"), "no agent configuration");
    assert_eq!(skip("a.yml", b"graphs: {a: b}\ndependencies: [.]\n"), "no agent configuration");
    assert_eq!(skip("a.yaml", b"a: [1\n"), "unreadable D002");
    assert_eq!(skip("a.json", b"{]"), "unreadable D002");
    assert_eq!(skip("a.yaml", b"\xff\xfe"), "unreadable D001");
    assert_eq!(skip("a.yaml", &vec![b'a'; 9 << 20]), "unreadable D003");
    assert_eq!(skip("a.yaml", LISTING.as_bytes()), "checked 0");
    assert_eq!(skip("a.yaml", "[".repeat(100_000).as_bytes()), "unreadable D003");
    // A readable first document is linted though the second is broken.
    assert_eq!(skip("a.yaml", format!("{LISTING}---\n[").as_bytes()), "checked 1");
}

/// Terms by hand, for what no front end writes.
struct Terms(Builder);

impl Terms {
    const AT: Span = Span { file: FileId(0), start: 0, end: 0 };

    fn add(&mut self, term: Term) -> TermId {
        self.0.add(term, Self::AT)
    }

    fn var(&mut self, name: &str) -> TermId {
        self.0.var(name, Self::AT)
    }

    /// `self e`.
    fn again(&mut self, e: TermId) -> TermId {
        let f = self.var("self");
        self.0.app(f, e, Self::AT)
    }

    fn abs(&mut self, param: &str, body: TermId) -> TermId {
        self.0.abs(param, None, body, Self::AT)
    }

    fn yes(&mut self) -> TermId {
        self.0.lit(Data::Bool(true), Self::AT)
    }

    fn if_(&mut self, a: TermId, b: TermId) -> TermId {
        let c = self.yes();
        self.add(Term::If(c, a, b, core_ir::IfSugar::Plain))
    }
}

/// Returns true if `fix (λself. λx. body)` has no exit.
fn endless(body: impl FnOnce(&mut Terms) -> TermId) -> bool {
    let mut t = Terms(Builder::new());
    let body = body(&mut t);
    let f = t.abs("x", body);
    let f = t.abs("self", f);
    let fix = t.add(Term::Fix { bound: core_ir::Bound::Finite(3), origin: None, body: f });
    let code = t.0.finish(fix, &Globals::none()).unwrap();
    let loops = paths::loops(&code);
    loops.last().unwrap().exits.unwrap().is_empty()
}

#[test]
fn paths_through_a_body() {
    // λx. self x
    assert!(endless(|t| {
        let x = t.var("x");
        t.again(x)
    }));
    // λx. x
    assert!(!endless(|t| t.var("x")));
    // if true then self x else x; and with both branches recursive
    assert!(!endless(|t| {
        let (x, y) = (t.var("x"), t.var("x"));
        let a = t.again(x);
        t.if_(a, y)
    }));
    assert!(endless(|t| {
        let (x, y) = (t.var("x"), t.var("x"));
        let (a, b) = (t.again(x), t.again(y));
        t.if_(a, b)
    }));
    // The call is in the condition, in a let, in an argument, in a stage, in a branch of par.
    assert!(endless(|t| {
        let x = t.var("x");
        let c = t.again(x);
        let (a, b) = (t.var("x"), t.var("x"));
        t.add(Term::If(c, a, b, core_ir::IfSugar::Plain))
    }));
    assert!(endless(|t| {
        let x = t.var("x");
        let c = t.again(x);
        let y = t.var("y");
        t.0.let_in(vec![("y".into(), c)], y, Terms::AT)
    }));
    assert!(endless(|t| {
        let this = t.var("self");
        let tool = t.0.tool(ToolDecl::unknown("f".into(), Terms::AT));
        let tool = t.add(Term::Tool(tool));
        let stages = t.0.compose(vec![tool, this], Terms::AT);
        let x = t.var("x");
        t.0.app(stages, x, Terms::AT)
    }));
    assert!(endless(|t| {
        let (x, y) = (t.var("x"), t.var("x"));
        let a = t.again(x);
        t.add(Term::Par(None, vec![y, a]))
    }));
    // (λy. self y) x calls; a function that is merely made, or handed on, may not.
    assert!(endless(|t| {
        let y = t.var("y");
        let call = t.again(y);
        let f = t.abs("y", call);
        let x = t.var("x");
        t.0.app(f, x, Terms::AT)
    }));
    assert!(!endless(|t| {
        let y = t.var("y");
        let call = t.again(y);
        t.abs("y", call)
    }));
    assert!(!endless(|t| {
        let (f, this) = (t.var("x"), t.var("self"));
        t.0.app(f, this, Terms::AT)
    }));
    // A way that fails does not return; a handler may.
    assert!(endless(|t| {
        let (x, y) = (t.var("x"), t.var("x"));
        let (a, b) = (t.again(x), t.add(Term::Fail(y)));
        t.if_(a, b)
    }));
    assert!(!endless(|t| {
        let (l, x, m) = (t.yes(), t.var("x"), t.var("m"));
        let body = t.again(x);
        t.add(Term::Try { label: l, body, catches: Catches::All, name: "m".into(), handler: m })
    }));
    // An inner loop's self is not ours, its calls of ours are.
    assert!(!endless(|t| {
        let y = t.var("x");
        let call = t.again(y);
        let f = t.abs("x", call);
        let f = t.abs("self", f);
        let fix = t.add(Term::Fix { bound: core_ir::Bound::Finite(1), origin: None, body: f });
        let x = t.var("x");
        t.0.app(fix, x, Terms::AT)
    }));
    assert!(endless(|t| {
        let y = t.var("y");
        let call = t.again(y);
        let f = t.abs("y", call);
        let f = t.abs("inner", f);
        let fix = t.add(Term::Fix { bound: core_ir::Bound::Finite(1), origin: None, body: f });
        let x = t.var("x");
        t.0.app(fix, x, Terms::AT)
    }));
}

#[test]
fn deep_and_long_terms_are_walked() {
    assert!(endless(|t| {
        let x = t.var("x");
        let mut e = t.again(x);
        for _ in 0..900 {
            e = t.add(Term::Fork(e));
        }
        e
    }));
    assert!(endless(|t| {
        let mut stages = vec![t.var("self")];
        for _ in 0..50_000 {
            let y = t.var("y");
            stages.push(t.abs("y", y));
        }
        let f = t.0.compose(stages, Terms::AT);
        let x = t.var("x");
        t.0.app(f, x, Terms::AT)
    }));
}

#[test]
fn a_term_that_no_front_end_made_is_linted_too() {
    let mut b = Builder::new();
    let prompt = b.lit(Data::str(" "), Terms::AT);
    let oracle = b.add(Term::Llm(prompt, Arc::new(ModelParams::default())), Terms::AT);
    let code = Arc::new(b.finish(oracle, &Globals::none()).unwrap());
    let unit = Unit {
        name: "u".into(),
        kind: UnitKind::Agent,
        code,
        span: Terms::AT,
        agents: vec![],
        outline: frontend_kit::Outline::default(),
    };
    let facts = Facts { default_model: Some("somebody picks one"), ..Facts::default() };
    let compiled = Compiled { framework: "test", units: vec![unit], facts, diagnostics: vec![] };
    let codes: Vec<_> = lint(&compiled, &everything()).iter().map(|d| (d.code, d.level)).collect();
    assert_eq!(codes, [("L001", Level::Error), ("L002", Level::Info)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn any_damage_is_survived(
        which in 0..3usize,
        edits in proptest::collection::vec((any::<u16>(), proptest::collection::vec(any::<u8>(), 0..4), 0..6usize), 0..6),
        name in proptest::sample::select(vec!["a.yaml", "a.json", "a.yml", "a"]),
    ) {
        let seeds = [
            LISTING,
            include_str!("../../../suite/frontends/crewai/crew.yaml"),
            include_str!("../../../suite/frontends/crewai/agents.json"),
        ];
        let mut bytes = seeds[which].as_bytes().to_vec();
        for (place, insert, remove) in edits {
            let place = place as usize % (bytes.len() + 1);
            let end = (place + remove).min(bytes.len());
            bytes.splice(place..end, insert);
        }
        let report = lint_bytes(frontends::recognize, name, FileId(0), &bytes, &everything());
        let len = report.text.as_ref().map_or(bytes.len(), |t| t.len());
        let all = match &report.outcome {
            Outcome::Checked { findings, .. } => findings.clone(),
            Outcome::Unreadable(d) => {
                prop_assert!(!d.is_empty());
                d.clone()
            }
            Outcome::Skipped(_) => Vec::new(),
        };
        for d in all {
            let span = d.span.expect("a place");
            prop_assert!(span.start <= span.end && span.end as usize <= len, "{d:?}");
        }
    }
}

#[test]
fn the_explanations_of_suppressions_hold() {
    let config = Config { today: Day::parse("2026-11-22"), ..everything() };
    for e in EXPLANATIONS {
        let codes = |text: &str| findings(text, &config).iter().map(|d| d.code).collect::<Vec<_>>();
        assert!(codes(e.wrong).contains(&e.code), "{}: {:?}", e.code, codes(e.wrong));
        assert_eq!(codes(e.right), Vec::<&str>::new(), "{}", e.code);
    }
}

#[test]
fn levels_are_set_by_the_longest_beginning_and_unknown_stays_unknown() {
    let text = LISTING.replace("localTools: [terminate]", "localTools: []");
    let levels = |set: &[(&str, Level)], text: &str| {
        let levels = set.iter().map(|(c, l)| (c.to_string(), *l)).collect();
        findings(text, &Config { levels, ..everything() }).iter().map(|d| d.level).collect::<Vec<_>>()
    };
    assert_eq!(levels(&[("L004", Level::Info), ("L", Level::Error)], &text), [Level::Info]);
    assert_eq!(levels(&[("L004b", Level::Error)], &text), [Level::Error]);
    let unknown = LISTING.replace("{maxSteps: 20}", "{maxSteps: \"${STEPS}\"}");
    assert_eq!(levels(&[("L017", Level::Error)], &unknown), [Level::Unknown]);
}

#[test]
fn a_suppression_is_used_by_a_finding_that_is_not_shown() {
    let text =
        LISTING.replace("localTools: [terminate]", "localTools: [] # entail: ignore[L004] a demonstration");
    let select = Config { select: vec!["I".into(), "L003".into()], ..everything() };
    assert_eq!(findings(&text, &select), vec![]);
    let Outcome::Checked { silenced, .. } =
        lint_bytes(frontends::recognize, "a.yaml", FileId(0), text.as_bytes(), &everything()).outcome
    else {
        panic!("not compiled")
    };
    assert_eq!(silenced, 1);
}

#[test]
fn an_agent_of_a_package_has_not_the_toolkits_bound() {
    let text = |kind: &str| {
        format!(
            "llms:\n  fast: {{_type: nim, model_name: m}}\nworkflow:\n  _type: {kind}\n  llm_name: fast\n  tool_names: [clock]\n"
        )
    };
    let bounds = |kind: &str| {
        findings(&text(kind), &everything())
            .into_iter()
            .filter(|d| d.code == "L017")
            .map(|d| (d.level, d.message))
            .collect::<Vec<_>>()
    };
    for kind in ["react_agent", "tool_calling_agent"] {
        let found = bounds(kind);
        assert!(matches!(&found[..], [(Level::Warn, m)] if m.contains("15 tool calls")), "{kind}: {found:?}");
    }
    for kind in ["house_agent", "rewoo_agent"] {
        let found = bounds(kind);
        assert!(matches!(&found[..], [(Level::Unknown, m)] if m.contains(kind)), "{kind}: {found:?}");
    }
    let stated = format!("{}  max_iterations: 4\n", text("house_agent"));
    assert!(findings(&stated, &everything()).iter().all(|d| d.code != "L017"));
}

#[test]
fn the_framework_that_runs_the_agents_has_its_own_default() {
    let bound = |framework: &str| {
        let text = format!(
            "{framework}topic: tea\nroles:\n  taster:\n    role: Taster\n    goal: Taste.\n    backstory: b\n    tools: [kettle]\n    tasks:\n      taste: {{description: Taste it., expected_output: notes}}\n"
        );
        let found = findings(&text, &everything());
        let of = found.iter().find(|d| d.code == "L017").expect("a finding");
        (of.level, of.message.clone())
    };
    for (framework, level, said) in [
        ("", Level::Warn, "the default of PraisonAI, 20 iterations"),
        ("framework: praisonai\n", Level::Warn, "the default of PraisonAI, 20 iterations"),
        ("framework: crewai\n", Level::Warn, "PraisonAI's adapter of CrewAI, 15 iterations"),
        ("framework: autogen\n", Level::Unknown, "`autogen` runs the agents"),
    ] {
        let (found, message) = bound(framework);
        assert!(found == level && message.contains(said), "{framework}: {found:?} {message}");
    }
}

#[test]
fn a_selector_of_what_no_node_gives_is_missing_and_no_type_error() {
    let text = include_str!("../../../suite/frontends/dify/parts.yml");
    let missing = findings(text, &everything()).into_iter().filter(|d| d.code == "L024");
    let missing: Vec<String> = missing.map(|d| d.message).collect();
    let names = [
        "Visitor.shelf",
        "Summary.text.length",
        "gone.text",
        "Lend.reply",
        "Summary.structured_output.author",
    ];
    assert_eq!(missing, names.map(|n| format!("the placeholder `{n}` has no value")));
    for text in [text, include_str!("../../../suite/frontends/dify/webhook.yml")] {
        let id = FileId(0);
        let mut project = frontend_kit::Project::default();
        project.files.push(frontend_kit::File::read(
            id,
            "a.yml",
            &text.into(),
            &frontend_kit::doc::Limits::default(),
        ));
        let frontend_kit::Recognized::Frontend(found) = frontends::recognize(&project.files[0]) else {
            panic!()
        };
        for unit in &found.lower(&project, 0).units {
            let report = analysis::types::check(&unit.code, None);
            assert!(report.diagnostics.iter().all(|d| d.level != Level::Error), "{:?}", report.diagnostics);
        }
    }
}

/// A finding of another kind at the place of a request says nothing about its model.
#[test]
fn l002_reads_which_models_are_unknown_and_not_other_findings_there() {
    use core_ir::{Builder, Data, Globals, ModelParams, Term};
    let at = Span { file: FileId(0), start: 0, end: 1 };
    let mut b = Builder::new();
    let prompt = b.lit(Data::str("p"), at);
    let request = b.add(Term::Llm(prompt, Arc::new(ModelParams::default())), at);
    let code = b.finish(request, &Globals::none()).expect("a closed term");
    let asked = code.iter().find(|(_, t)| matches!(t, Term::Llm(..))).map(|(id, _)| id).expect("a request");
    let unit = frontend_kit::Unit {
        name: "main".into(),
        kind: frontend_kit::UnitKind::Agent,
        code: Arc::new(code),
        span: at,
        agents: Vec::new(),
        outline: frontend_kit::Outline::default(),
    };
    let other = Diagnostic::new(Level::Unknown, "F009", "some of the tools are not known", at);
    let mut compiled = Compiled {
        framework: "crewai",
        units: vec![unit],
        facts: Facts::default(),
        diagnostics: vec![other],
    };
    let missing = |c: &Compiled| lint(c, &Config::default()).iter().filter(|d| d.code == "L002").count();
    assert_eq!(missing(&compiled), 1);
    compiled.units[0].outline.unknown_models.insert(asked);
    assert_eq!(missing(&compiled), 0);
}
