//! A rule that has no effect has none: a session without it decides the same calls alike.

use analysis::flow::{Options, RuleKey, idle_rules};
use core_ir::Data;
use diagnostics::FileId;
use guard::{Decision, Session, SessionOptions, ToolSpec};
use policy::Policy;
use proptest::prelude::*;
use std::fmt::Write as _;

/// Keys of the tool's table, each with values that it may have. The last of `approve` asks nobody.
const KEYS: [(&str, &[&str]); 5] = [
    ("effect", &["\"read\"", "\"write\"", "\"pure\""]),
    ("control", &["\"trusted\"", "\"untrusted\"", "\"secret\"", "\"any\""]),
    ("result", &["\"trusted\"", "\"untrusted\"", "\"any\""]),
    ("at_most", &["1", "2", "3"]),
    ("approve", &["true", "\"if-refused\"", "false"]),
];

/// Keys with a value for each parameter.
const OF_PARAMETERS: [(&str, &[&str]); 4] = [
    ("bounds", &["\"trusted\"", "\"untrusted\"", "\"secret\"", "\"any\""]),
    ("among", &["\"principals.{*}.email\"", "\"request\"", "\"absent | principals.bob.email\""]),
    ("plain", &["\"no-links\""]),
    ("pattern", &["\"[a-z@.]+\"", "\"[0-9]+\"", "\"x[a&&b]\""]),
];

const PARAMETERS: [&str; 2] = ["to", "body"];

/// A rule of the tool: its key, the parameter that it is about, and its value.
type Rule = (&'static str, Option<&'static str>, &'static str);

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let of_call = prop::collection::vec(prop::option::of(any::<prop::sample::Index>()), KEYS.len());
    let of_parameters = prop::collection::vec(
        prop::option::of(any::<prop::sample::Index>()),
        OF_PARAMETERS.len() * PARAMETERS.len(),
    );
    (of_call, of_parameters).prop_map(|(of_call, of_parameters)| {
        let mut out: Vec<Rule> = Vec::new();
        for ((key, values), index) in KEYS.iter().zip(of_call) {
            out.extend(index.map(|index| (*key, None, *index.get(values))));
        }
        for (n, index) in of_parameters.into_iter().enumerate() {
            let (key, values) = OF_PARAMETERS[n / PARAMETERS.len()];
            out.extend(index.map(|index| (key, Some(PARAMETERS[n % PARAMETERS.len()]), *index.get(values))));
        }
        out
    })
}

fn policy(rules: &[Rule]) -> Policy {
    let mut text = String::from(
        "[principals]\nbob = { email = \"bob@example.org\" }\n[tools.fetch]\neffect = \"read\"\n\
         [tools.vault]\neffect = \"read\"\nresult = \"secret\"\ncontrol = \"any\"\n[tools.send]\n",
    );
    for (key, _, value) in rules.iter().filter(|(_, param, _)| param.is_none()) {
        writeln!(text, "{key} = {value}").unwrap();
    }
    for (key, _) in OF_PARAMETERS {
        let of_key = rules.iter().filter(|(k, param, _)| *k == key && param.is_some());
        let all: Vec<String> =
            of_key.map(|(_, param, value)| format!("{} = {value}", param.unwrap_or_default())).collect();
        if !all.is_empty() {
            writeln!(text, "{key} = {{ {} }}", all.join(", ")).unwrap();
        }
    }
    Policy::parse(FileId(0), &text).unwrap_or_else(|e| panic!("{text}\n{e:?}"))
}

fn session(rules: &[Rule]) -> Session {
    let mut session = Session::new(policy(rules).into(), &SessionOptions::default());
    session.offer([
        ToolSpec::new("fetch", []),
        ToolSpec::new("vault", []),
        ToolSpec::new("send", ["to", "body"]),
    ]);
    session
}

/// The decisions about a sequence of calls, with the label after each.
fn decided(rules: &[Rule], calls: &[(u8, u8, u8)]) -> Vec<(&'static str, String)> {
    const TEXTS: [&str; 5] = ["bob@example.org", "eve@example.org", "123", "see www.evil.example", "hello"];
    let mut session = session(rules);
    let mut out = Vec::new();
    for (tool, to, body) in calls {
        let text = |n: u8| Data::str(TEXTS[n as usize % TEXTS.len()]);
        let (name, args) = match tool % 4 {
            0 => ("fetch", Data::record([])),
            1 => ("vault", Data::record([])),
            _ => ("send", Data::record([("to".into(), text(*to)), ("body".into(), text(*body))])),
        };
        let mut what = "made";
        let mut decision = session.call(name, &args);
        if let Decision::Asks(question) = decision {
            what = "asked";
            decision = session.answer(question, Ok(()));
        }
        match decision {
            Decision::Allowed(allowed) => drop(session.finish(allowed, Ok(Data::str("x")), None)),
            Decision::Refused(_) => what = "refused",
            Decision::Asks(_) | Decision::Reads(_) => unreachable!("no set is read, and nobody asks twice"),
        }
        out.push((what, session.label()));
    }
    out
}

/// Returns whether the same calls are made, asked about and refused. A set that admits nothing still lets
/// anyone bring about a refusal, whose label then differs: what follows is another conversation.
fn is_alike(rules: &[Rule], without: &[Rule], calls: &[(u8, u8, u8)]) -> bool {
    for (one, other) in decided(rules, calls).into_iter().zip(decided(without, calls)) {
        if one.0 != other.0 {
            return false;
        }
        if one.1 != other.1 {
            return one.0 == "refused";
        }
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn without_a_rule_that_has_no_effect_everything_is_decided_alike(
        rules in rules(),
        calls in prop::collection::vec((0..4u8, 0..5u8, 0..5u8), 10),
    ) {
        let (code, named) = session(&rules).declared().unwrap();
        let options = Options { lattice: named.lattice, principals: named.principals.clone(), ..Options::default() };
        for idle in idle_rules(&code, &options) {
            let is_it = |rule: &Rule| rule.0 == idle.rule.name() && (rule.1.is_none() || rule.1 == idle.param.as_deref());
            let without: Vec<Rule> = rules.iter().filter(|rule| !is_it(rule)).copied().collect();
            // A set of two parts is one rule here and two there.
            let parts = code.tools.iter().flat_map(|t| &t.among).filter(|a| Some(&a.params[0].0) == idle.param.as_ref());
            let is_part = matches!(idle.rule, RuleKey::Among(_)) && parts.count() > 1;
            if idle.tool.as_deref() == Some("send") && !idle.why.admits_nothing() && !is_part {
                prop_assert!(without.len() < rules.len(), "{:?} of {:?}", idle, rules);
                prop_assert!(is_alike(&rules, &without, &calls), "{:?}", idle);
            }
            // What admits nothing refuses whatever meets it: no call is made because of it.
            if matches!((idle.rule, &idle.why), (RuleKey::Among(_), why) if why.admits_nothing()) && !is_part {
                prop_assert!(is_alike(&rules, &without, &calls), "{:?}", idle);
            }
        }
    }
}

/// The property above says something: rules without effect are found.
#[test]
fn rules_without_effect_are_common_among_rules_at_random() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut found = 0;
    for _ in 0..200 {
        let rules = rules().new_tree(&mut runner).unwrap().current();
        let (code, _) = session(&rules).declared().unwrap();
        found += usize::from(!idle_rules(&code, &Options::default()).is_empty());
    }
    assert!((40..200).contains(&found), "{found}");
}
