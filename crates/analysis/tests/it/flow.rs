//! Flow analysis of whole programs.

use analysis::flow::{Cause, FlowReport, Options, Sink, Verdict, analyze, findings};
use core_ir::LatticeKind;
use diagnostics::Sources;
use std::sync::Arc;

fn lam(text: &str, options: &Options) -> FlowReport {
    let mut sources = Sources::new();
    let file = sources.add("a.lam", text);
    let parsed = agentlang::calculus::compile(file, text);
    let code = parsed.code.unwrap_or_else(|| panic!("{text}: {:?}", parsed.diagnostics));
    analyze(&Arc::new(code), options)
}

fn agent(text: &str) -> FlowReport {
    let mut sources = Sources::new();
    let file = sources.add("a.agent", text);
    let (module, found) = agentlang::check(file, text);
    let module = module.unwrap_or_else(|| panic!("{found:?}"));
    let entry = module.default_entry().expect("an entry");
    let code = module.lower(entry).expect("code");
    analyze(&Arc::new(code), &Options { applied: true, ..Options::default() })
}

/// The verdicts of the calls of a tool, in the order of the places.
fn verdicts(report: &FlowReport, tool: &str) -> Vec<Verdict> {
    let of = |s: &Sink| matches!(s, Sink::Tool(n) if &**n == tool);
    report.sites.iter().filter(|s| of(&s.sink)).map(|s| s.verdict).collect()
}

#[test]
fn an_agent_that_reads_the_web_may_search_again_and_cannot_send() {
    let report = agent(
        "tool web_search(query: String) -> String reads untrusted { builtin \"x\" }\n\
         tool send_mail(to: String) -> String writes requires trusted { builtin \"y\" }\n\
         agent helper { model: \"m\", tools: [web_search, send_mail], max_steps: 5 }\n\
         task help(question: String) -> String by agent { prompt \"{question}\" }\n\
         pipeline main(question: String) -> String { let a = run help with { question: question } by helper; return a; }",
    );
    assert_eq!(verdicts(&report, "web_search"), [Verdict::Always]);
    // The first step may send; once something was read, none may.
    assert_eq!(verdicts(&report, "send_mail"), [Verdict::Depends]);
    // What was received decides what is sent to the same conversation: that is always allowed.
    for site in &report.sites {
        if matches!(site.sink, Sink::Send | Sink::Model(_)) {
            assert_eq!(site.verdict, Verdict::Always, "{site:?}");
        }
    }
    let mail = report.sites.iter().find(|s| s.sink == Sink::Tool("send_mail".into())).unwrap();
    let sources = &mail.checks[0].sources;
    assert!(sources.iter().any(|s| s.origin.cause == Cause::Tool("web_search".into())), "{sources:?}");
}

/// More tools than origins that are told apart: the rounds used to go on until the analysis gave up.
#[test]
fn an_agent_with_eighty_tools_is_analyzed() {
    let reads = (0..80)
        .map(|i| format!("tool read{i}(query: String) -> String reads untrusted {{ builtin \"r{i}\" }}\n"));
    let names: Vec<String> = (0..80).map(|i| format!("read{i}")).collect();
    let report = agent(&format!(
        "{}tool send_mail(to: String) -> String writes requires trusted {{ builtin \"y\" }}\n\
         agent helper {{ model: \"m\", tools: [{}, send_mail], max_steps: 5 }}\n\
         task help(question: String) -> String by agent {{ prompt \"{{question}}\" }}\n\
         pipeline main(question: String) -> String {{ let a = run help with {{ question: question }} by helper; return a; }}",
        reads.collect::<String>(),
        names.join(", "),
    ));
    assert_eq!(report.gave_up, None);
    assert_eq!(verdicts(&report, "read79"), [Verdict::Always]);
    assert_eq!(verdicts(&report, "send_mail"), [Verdict::Depends]);
    let mail = report.sites.iter().find(|s| s.sink == Sink::Tool("send_mail".into())).unwrap();
    assert!(mail.checks[0].sources.iter().any(|s| s.origin.cause == Cause::Many), "{mail:?}");
}

#[test]
fn functions_keep_their_calls_apart() {
    let report = lam(
        "tool web(q: Str) -> Str read\ntool put(x: Str) -> Str write\n\
         let twice = \\f. \\x. f (f x)\n\
         let a = tool[put] (id 'constant')\n\
         let b = twice id (tool[web] 'q')\n\
         tool[put] (twice id 'constant')",
        &Options::default(),
    );
    assert_eq!(verdicts(&report, "put"), [Verdict::Always, Verdict::Always]);
    assert_eq!(verdicts(&report, "web"), [Verdict::Always]);
}

#[test]
fn prelude_recursion_terminates() {
    let report = lam(
        "tool web(q: Str) -> Str read\ntool put(x: List Str) -> Str write\n\
         let _ = tool[put] {x: map (\\x. x) ['a', 'b']}\n\
         let _ = tool[put] {x: map (\\x. tool[web] x) ['a', 'b']}\n\
         fix (\\again. \\n. if n == 0 then 'done' else again (n - 1)) 5",
        &Options::default(),
    );
    // The elements depend on what was read: never allowed if there are any, and the empty list is allowed.
    assert_eq!(verdicts(&report, "put")[0], Verdict::Always);
    assert_ne!(verdicts(&report, "put")[1], Verdict::Always);
    assert!(report.gave_up.is_none() && report.result.is_some());
}

#[test]
fn generated_code_is_unknown_and_may_call_what_it_is_given() {
    let text = "tool put(x: Str) -> Str write\n\
         let f = \\x. tool[put] {x: x}\n\
         let r = @'write a function'\n\
         r.[1] f";
    let report = lam(text, &Options::default());
    assert_eq!(verdicts(&report, "put"), [Verdict::Depends]);
    let result = report.result.expect("a result");
    assert_eq!(result.to_json().to_string(), "[\"U\",\"S\"]");
}

#[test]
fn a_model_may_see_what_its_clearance_says() {
    let clearance = Some(core_ir::LabelSpec::Axes { untrusted: true, secret: false });
    let options = Options { clearance, ..Options::default() };
    let said = lam("(llm '' {}) (['S']: 'x')", &options);
    assert_eq!(said.sites[0].verdict, Verdict::Never);
    let said = lam("(llm '' {}) (['U']: 'x')", &options);
    assert_eq!(said.sites[0].verdict, Verdict::Always);
}

#[test]
fn labels_of_the_third_lattice_are_compared_as_well() {
    let options = Options { lattice: LatticeKind::SourcesReaders, ..Options::default() };
    let text = |readers: &str| {
        format!(
            "tool share(x: Str @ {{readers: ['alice']}}) -> Str write control {{readers: ['alice']}}\n\
             tool[share] ({{readers: {readers}}}: 'x')"
        )
    };
    assert_eq!(verdicts(&lam(&text("['alice', 'bob']"), &options), "share"), [Verdict::Always]);
    assert_eq!(verdicts(&lam(&text("['bob']"), &options), "share"), [Verdict::Never]);
}

#[test]
fn dependencies_of_a_call_are_listed_with_their_places() {
    let text = "tool web(q: Str) -> Str read\ntool put(x: Str) -> Str write\n\
                tool[put] (choose 0.5 'a' (tool[web] 'b'))";
    let mut sources = Sources::new();
    let file = sources.add("a.lam", text);
    let code = agentlang::calculus::compile(file, text).code.unwrap();
    let report = analyze(&Arc::new(code), &Options::default());
    let found = findings(&report);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].code, "S102");
    assert_eq!(sources.place(found[0].remarks[0].span), "a.lam:3:28");
    assert!(found[0].remarks[0].text.contains("the result of the tool `web`"), "{found:?}");
    let lines = analysis::flow::to_text(&report, &sources);
    assert_eq!(lines[0], "a.lam:3:1: the tool `put`: depends");
}

/// A report without a line would say that nothing is called.
#[test]
fn a_run_that_ends_at_what_is_not_known_says_so() {
    let text = "tool put(x: Str) -> Str write\nlet begin = unknown 'what begins the run' in tool[put] begin";
    let mut sources = Sources::new();
    let file = sources.add("a.lam", text);
    let code = Arc::new(agentlang::calculus::compile(file, text).code.unwrap());
    let lines = |options: &Options| analysis::flow::to_text(&analyze(&code, options), &sources);
    let ends = "a.lam:2:13: not known before the run: what begins the run; what follows is not analyzed";
    assert_eq!(lines(&Options::default()), [ends]);
    let passing = Options { passes_unknown: true, ..Options::default() };
    assert!(lines(&passing).iter().any(|l| l.contains("the tool `put`")), "{:?}", lines(&passing));
}

#[test]
fn a_constant_that_was_endorsed_keeps_the_labels_inside() {
    for text in ["[endorse [] (['U'] : ['S'])]", "{f: endorse [] (['U'] : {g: 'S'})}"] {
        let result = lam(text, &Options::default()).result.expect("a result");
        assert_eq!(result.to_json().to_string(), "[\"U\"]", "{text}");
    }
}

/// Of a tool that a policy speaks of something is known: that it changes the world, for one.
#[test]
fn policy_declares_effects_of_tool() {
    let text = "tool[send] (['U']: 'x')";
    let help = |known: Vec<core_ir::Name>| {
        let found = findings(&lam(&text.replace('\'', "\""), &Options { known, ..Options::default() }));
        let never = found.iter().find(|d| d.code == "S101").unwrap_or_else(|| panic!("{found:?}"));
        never.help.join("\n")
    };
    let unknown = help(Vec::new());
    assert!(
        unknown.contains("no policy says what `send` does, so it is assumed to change the world"),
        "{unknown}"
    );
    let known = help(vec!["send".into()]);
    assert!(!known.contains("nothing is known") && known.contains("a higher bound in the policy"), "{known}");
}

/// No term lies between the unfoldings of `fix (λself. self)`: the analysis ran out of stack, which ended the
/// process.
#[test]
fn a_fixpoint_that_is_its_own_step_is_unknown() {
    for bound in ["0", "1", "3", "inf"] {
        for functional in
            ["\\self. self", "guard (\\self. self) any retry 2", "\\self. id self", "fix[2] (\\self. self)"]
        {
            let report = lam(&format!("(fix[{bound}] ({functional})) 1"), &Options::default());
            assert!(report.gave_up.is_some() || report.result.is_some(), "fix[{bound}] ({functional})");
        }
    }
    assert!(lam("(fix[3] (\\self. self)) 1", &Options::default()).gave_up.is_some());
}

/// Guards around guards are applied one inside the other, without a term between them.
#[test]
fn many_guards_around_a_function_need_no_stack() {
    let guards = 400;
    let text = format!("({}\\x. x{}) 1", "guard (".repeat(guards), ") any retry 0".repeat(guards));
    let report = lam(&text, &Options::default());
    assert!(report.gave_up.is_none() && report.result.is_some(), "{:?}", report.gave_up);
}

/// Each function holds the one before; whether a conversation's mark is in the last is asked when one is
/// opened.
#[test]
fn functions_that_hold_functions_need_no_stack() {
    let count = 20_000;
    let mut text = String::from("let f0 = \\x. x\n");
    for i in 1..count {
        text += &format!("let f{i} = \\x. f{} x\n", i - 1);
    }
    let report = lam(&format!("{text}in fresh 1"), &Options::default());
    assert!(report.gave_up.is_none() && report.result.is_some(), "{:?}", report.gave_up);
}

/// A guarded function is called where it is applied, and again by its guard: each is a place of the tool's
/// call.
#[test]
fn a_second_call_of_a_guard_is_a_place_of_its_own() {
    let text = "tool double(x: Num) -> Num read\n(guard tool[double] value < 1 retry 1) 2";
    let report = lam(text, &Options::default());
    let places: Vec<&str> =
        report.sites.iter().map(|s| &text[s.span.start as usize..s.span.end as usize]).collect();
    assert_eq!(places.len(), 2, "{places:?}");
    assert!(places.contains(&"guard tool[double] value < 1 retry 1"), "{places:?}");
    assert!(places.contains(&"(guard tool[double] value < 1 retry 1) 2"), "{places:?}");
}

#[test]
fn lines_of_the_help_about_an_unknown_tool_are_a_policy() {
    for name in ["search", "web search", "a\"b\\c", ""] {
        let help = analysis::flow::of_unknown(name);
        let parts: Vec<&str> = help.split("\n\n").filter(|part| part.starts_with("[tools.")).collect();
        assert_eq!(parts.len(), 2, "{help}");
        for lines in parts {
            let policy = policy::Policy::parse(diagnostics::FileId(0), lines).unwrap();
            assert_eq!(policy.tool_names().collect::<Vec<_>>(), [name]);
        }
    }
}

/// Untrusted data decides whether a planned call happens, not with what. A record in its place has the label
/// of the branch that it is read in, and the arguments of another tool are refused whatever their label is.
#[test]
fn a_planned_call_is_admitted_where_a_record_is_not() {
    let program = |args: &str, tool: &str| {
        let text = format!(
            "tool mail() -> Str read\n\
             tool pay(to: Str, n: Num) -> Str write control untrusted\n\
             tool move(to: Str, n: Num) -> Str write control untrusted\n\
             let bill = {args} in\n\
             let m = tool[mail] {{}} in\n\
             if m == \"pay\" then tool[{tool}] bill else \"nothing\""
        );
        verdicts(&lam(&text, &Options::default()), tool)
    };
    assert_eq!(program("args[pay]{to: \"bob\", n: 5}", "pay"), [Verdict::Always]);
    assert_eq!(program("{to: \"bob\", n: 5}", "pay"), [Verdict::Never]);
    assert_eq!(program("args[pay]{to: tool[mail] {}, n: 5}", "pay"), [Verdict::Never]);
    // A part that is missing counts as chosen by the data.
    assert_eq!(program("args[pay]{to: \"bob\"}", "pay"), [Verdict::Never]);
    // One of two that were planned.
    let either = "let m = tool[mail] {} in let a = args[pay]{to: \"ann\", n: 1} in if m == \"a\" then a else args[pay]{to: \"bob\", n: 2}";
    assert_eq!(program(&format!("({either})"), "pay"), [Verdict::Depends]);
    // The bounds admit it, the type does not.
    assert_eq!(program("args[pay]{to: \"bob\", n: 5}", "move"), [Verdict::Always]);
}

#[test]
fn a_set_may_admit_what_a_bound_refuses() {
    let program = |set: &str, arg: &str| {
        let text = format!(
            "tool mail() -> Str read\ntool contacts() -> List Str @ {set} read\n\
             tool pay(to: Str) -> Str write among [{{tool: \"contacts\", params: {{to: []}}}}]\n\
             tool[pay] {{to: {arg}}}"
        );
        lam(&text, &Options::default())
    };
    let found = |set: &str, arg: &str| verdicts(&program(set, arg), "pay");
    assert_eq!(found("trusted", "'bob'"), [Verdict::Always]);
    assert_eq!(found("trusted", "tool[mail] {}"), [Verdict::Depends]);
    assert_eq!(found("trusted", "['U', 'S']: 'bob'"), [Verdict::Never]);
    assert_eq!(found("untrusted", "tool[mail] {}"), [Verdict::Never]);
    assert_eq!(found("secret", "tool[mail] {}"), [Verdict::Never]);
    assert_eq!(program("trusted", "'bob'").idle_sets, []);
    assert_eq!(program("secret", "'bob'").idle_sets.len(), 1);
    // The read is a sink that every run reaches.
    assert_eq!(verdicts(&program("trusted", "'bob'"), "contacts"), [Verdict::Always]);
}

#[test]
fn nobody_is_asked_where_nothing_is_refused() {
    let program = |arg: &str| {
        let text = format!(
            "tool mail() -> Str read\ntool pay(to: Str) -> Str write approve if_refused\ntool[pay] {{to: {arg}}}"
        );
        let report = lam(&text, &Options::default());
        report.sites.iter().find(|s| s.sink.name() == Some("pay")).map(|s| (s.verdict, s.asks.is_some()))
    };
    assert_eq!(program("'bob'"), Some((Verdict::Always, false)));
    assert_eq!(program("tool[mail] {}"), Some((Verdict::Depends, true)));
    assert_eq!(program("['S']: 'bob'"), Some((Verdict::Never, true)));
    // A count that may be used up is nothing that a person decides.
    let text = "tool pay(to: Str) -> Str write approve if_refused at_most 3\ntool[pay] {to: 'bob'}";
    let report = lam(text, &Options::default());
    let site = report.sites.iter().find(|s| s.sink.name() == Some("pay")).expect("a site");
    assert_eq!((site.verdict, site.asks), (Verdict::Depends, None));
}

/// Nobody is asked, so the value has the labels of what was looked at.
#[test]
fn a_confirmed_value_that_nobody_was_asked_about_keeps_its_labels() {
    let result = |tool: &str, arg: &str| {
        let text = format!(
            "tool mail() -> Str read\ntool contacts() -> List Str @ trusted read\n\
             tool ok(value: Str @ secret) -> Str @ [] pure control ['U', 'S'] approve if_refused confirm {tool}\n\
             tool[ok] {{value: {arg}}}"
        );
        let result = lam(&text, &Options::default()).result.expect("a result");
        result.to_json().to_string()
    };
    assert_eq!(result("", "'bob'"), "[]");
    assert_eq!(result("", "tool[mail] {}"), "[]");
    // The verdict of the policy is a part of the label.
    assert!(result("policy (\\a. ['U']: true)", "'bob'").contains('U'));
    // An argument out of a set is untrusted as before.
    let among = "among [{tool: 'contacts', params: {value: []}}]";
    assert_eq!(result(among, "tool[mail] {}"), "[\"U\"]");
}

#[test]
fn an_argument_that_completes_a_call_is_not_in_the_label_of_its_result() {
    let result = |args: &str| {
        let text = format!(
            "tool mail() -> Str read\n\
             tool order(id: Str @ untrusted, code: Str @ untrusted) -> Str @ [] write completes ['code']\n\
             let code = tool[mail] {{}} in tool[order] {args}"
        );
        let report = lam(&text, &Options::default());
        let label = |l: &Option<core_ir::Data>| l.as_ref().expect("a label").to_json().to_string();
        (label(&report.result), label(&report.error))
    };
    assert_eq!(result("{id: 'a', code: code}"), ("[]".into(), "[\"U\"]".into()));
    assert_eq!(result("{id: code, code: '1'}"), ("[\"U\"]".into(), "[\"U\"]".into()));
}

/// A generated program with such a policy returned what the analysis called trusted.
#[test]
fn a_policy_that_reads_an_argument_that_completes_a_call_labels_the_result() {
    let result = |policy: &str| {
        let text = format!(
            "tool mail() -> Str read\n\
             tool order(code: Str @ untrusted) -> Str @ [] write control ['U'] completes ['code'] policy {policy}\n\
             let code = tool[mail] {{}} in tool[order] {{code: code}}"
        );
        let result = lam(&text, &Options::default()).result.expect("a result");
        result.to_json().to_string()
    };
    assert_eq!(result("(\\a. a.code.value == '7')"), "[\"U\"]");
}

#[test]
fn the_label_of_a_refused_argument_covers_what_its_set_compared() {
    // An error of the call passes a `try` that covers the bound alone.
    let program = |label: &str, among: &str| {
        let text = format!(
            "tool mail() -> Str read\ntool bills() -> List {{to: Str, n: Num}} @ trusted read\n\
             tool pay(to: Str, n: Num @ secret) -> Str @ [] write {among}\n\
             let m = tool[mail] {{}} in try[{label}] tool[pay] {{to: m, n: 1}} catch e. 'no'"
        );
        !lam(&text, &Options::default()).passed.is_empty()
    };
    let among = "among [{tool: 'bills', params: {to: ['to'], n: ['n']}}]";
    assert!(program("['U']", among));
    assert!(!program("['U', 'S']", among));
}

/// The error of a policy has the label of its verdict, that of a form the label of its argument. Either may
/// be caught where an error that tells of all arguments passes.
#[test]
fn an_error_that_tells_of_a_part_of_a_call_may_be_caught() {
    let handled = |decl: &str| {
        let text = format!(
            "tool mail() -> Str read\ntool hidden() -> Str @ secret read\ntool caught() -> Str @ trusted write\n\
             tool order(to: Str @ untrusted, code: Str @ ['U', 'S']) -> Str write control ['U'] {decl}\n\
             let m = tool[mail] {{}} in let h = tool[hidden] {{}} in\n\
             try[['U']] tool[order] {{to: m, code: h}} catch e. tool[caught] {{}}"
        );
        !verdicts(&lam(&text, &Options::default()), "caught").is_empty()
    };
    assert!(!handled(""));
    for decl in [
        "policy (\\a. false)",
        "policy (\\a. 1)",
        "policy (\\a. fail 'x')",
        "policy (\\a. a.nothing)",
        "plain {to: 'no-links'}",
        "pattern {to: '[0-9]+'}",
    ] {
        assert!(handled(decl), "{decl}");
    }
}

/// The error ends the run, so that it tells whoever sees calls of the tool.
#[test]
fn used_up_calls_have_the_label_of_the_channel_and_pass_every_try() {
    let error = |call: &str| {
        let text = format!(
            "tool mail() -> Str read\n\
             tool order(to: Str @ ['U', 'S']) -> Str @ [] write at_most 1 control ['U', 'S']\n\
             let m = tool[mail] {{}} in {call}"
        );
        lam(&text, &Options::default()).error.map(|label| label.to_json().to_string())
    };
    assert_eq!(error("tool[order] {to: m}").as_deref(), Some("[\"U\"]"));
    let decided = "try[['U']] if m == 'a' then tool[order] {to: 'b'} else 'c' catch e. 'no'";
    assert_eq!(error(decided).as_deref(), Some("[\"U\",\"S\"]"));
}

/// Nobody is asked about it, because the label of the planned arguments is within the bound of the value.
#[test]
fn a_planned_confirmation_that_nobody_was_asked_about_keeps_the_label_of_its_record() {
    let text = "tool mail() -> Str read\n\
         tool ok(value: Str @ untrusted) -> Str @ [] pure control [] approve if_refused confirm\n\
         let m = tool[mail] {} in let p = args[ok] {value: 'x'} in\n\
         let q = if m == 'a' then p else p in tool[ok] q";
    let result = lam(text, &Options::default()).result.expect("a result");
    assert_eq!(result.to_json().to_string(), "[\"U\"]");
}

/// The only certain refusal of a term: what is said, and its help.
fn refused(text: &str) -> (String, String) {
    let found = findings(&lam(&text.replace('\'', "\""), &Options::default()));
    let mut never = found.into_iter().filter(|d| d.code == "S101");
    let (one, other) = (never.next().expect("a refusal"), never.next());
    assert_eq!(other, None);
    (one.message, one.help.join("\n"))
}

#[test]
fn a_refusal_by_the_label_of_a_try_names_the_try() {
    let tools =
        "tool mails() -> List {t: Str} @ [] read fields [{path: '[].t', untrusted: false, secret: true}]\n";
    let (_, help) = refused(&format!("{tools}try[['S']] tool[mails] {{}} catch m. []"));
    assert!(help.contains("without `try` and `retries`"), "{help}");
}

#[test]
fn a_constant_that_is_refused_for_its_branch_is_named_as_one() {
    let program = |to: &str| {
        format!(
            "tool feed() -> List Str read\ntool mail(to: Str, x: Str @ untrusted) -> Str write control untrusted\n\
             let xs = tool[feed] {{}}\nif xs == [] then 'none' else tool[mail] {{to: {to}, x: 'x'}}"
        )
    };
    let (message, help) = refused(&program("'a@b.org'"));
    assert!(message.contains("the argument `to` is a constant, but what decides"), "{message}");
    assert!(help.contains("`principals.NAME.email`"), "{help}");
    // One that the program labels itself is refused for that label, and so is what a tool gave.
    for to in ["(['U']: 'a')", "'{xs}'"] {
        let (message, _) = refused(&program(to));
        assert!(message.contains("the argument `to` may be labeled"), "{message}");
    }
}
