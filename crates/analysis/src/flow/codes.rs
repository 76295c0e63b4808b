//! Codes of the flow analysis, each with its explanation.
//!
//! The examples are `.lam` programs, and tests: each wrong one gives its code, each right one does not.

pub use diagnostics::Explanation;

/// A call that is refused every time.
pub const NEVER: &str = "S101";
/// A call that may be refused.
pub const DEPENDS: &str = "S102";
/// Untrusted input, private data and an outward channel come together.
pub const TRIFECTA: &str = "S103";
/// An `endorse` or `declassify` that lowers nothing.
pub const UNNECESSARY: &str = "S104";
/// An `endorse` or `declassify` that has no effect.
pub const INERT: &str = "S105";
/// A `try` that an error may pass.
pub const PASSED: &str = "S106";
/// A program that is too large for the analysis.
pub const GAVE_UP: &str = "S107";
/// A set of `among` that admits nothing.
pub const IDLE_SET: &str = "S108";

/// A label of a part that what it is in covers.
pub const COVERED: &str = "S109";

/// A rule of a tool that no call meets.
pub const UNMET: &str = "S110";

/// A rule of a tool that no call passes.
pub const ADMITS_NOTHING: &str = "S111";

/// Every code of the flow analysis, in order.
pub const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        code: NEVER,
        title: "call that is refused every time",
        text: "Whatever the run does, the label that reaches this call does not flow to the bound of the tool, \
               model or key, so the machine refuses it every time it is reached. Either the call is a mistake, or \
               the policy is stricter than was meant, or a value has to be endorsed (its integrity) or declassified \
               (its secrecy) before: at a place where a person or a check vouches for it.",
        wrong: "tool search(query: Str) -> Str read\ntool pay(account: Str) -> Str write\ntool[pay] {account: tool[search] 'the account of the landlord'}",
        right: "tool search(query: Str) -> Str read\ntool pay(account: Str) -> Str write\nlet found = tool[search] 'the account of the landlord'\ntool[pay] {account: 'GB29 NWBK'}",
    },
    Explanation {
        code: DEPENDS,
        title: "call that may be refused",
        text: "Some runs may bring a label here that does not flow to the bound; the machine decides during the \
               run. The finding lists where such labels come from. It is for information: nothing is wrong with a \
               program that is refused when it has read something untrusted.",
        wrong: "tool search(query: Str) -> Str read\ntool pay(account: Str) -> Str write\ntool[pay] {account: choose 0.5 'GB29 NWBK' (tool[search] 'account')}",
        right: "tool pay(account: Str) -> Str write\ntool[pay] {account: choose 0.5 'GB29 NWBK' 'DE89 3704'}",
    },
    Explanation {
        code: TRIFECTA,
        title: "untrusted input, private data and an outward channel together",
        text: "What decides this call, or what it is given, may come from anyone and may hold private data, and the \
               call can be seen from outside: whoever writes the untrusted part can have the private part sent to \
               them (the lethal trifecta). The finding names the three places. Take one away: read the untrusted text \
               in a conversation of its own and keep only a typed answer (`quarantine`, bounded endorsement), keep \
               private data out of that conversation, or give the tool a bound that refuses one of the two.",
        wrong: "tool inbox() -> Str @ [\"S\"] read\ntool web(url: Str) -> Str read\ntool mail(body: Str @ untrusted secret) -> Str write control untrusted secret\nlet page = tool[web] 'https://example.org'\ntool[mail] {body: \"{page} {tool[inbox] {}}\"}",
        right: "tool inbox() -> Str @ [\"S\"] read\ntool mail(body: Str @ secret) -> Str write\ntool[mail] {body: tool[inbox] {}}",
    },
    Explanation {
        code: UNNECESSARY,
        title: "reclassification that lowers nothing",
        text: "`endorse` raises the integrity of a value and `declassify` lowers its secrecy. Whatever reaches this \
               one has at most the label that it is given here. Each reclassification is a hole that has to be argued \
               for; remove those that are not needed.",
        wrong: "endorse [] 'a constant'",
        right: "tool search(query: Str) -> Str read\nendorse [] (tool[search] 'x')",
    },
    Explanation {
        code: INERT,
        title: "reclassification without effect",
        text: "The place where it stands is itself decided by untrusted (for `declassify`: secret) data, so its result \
               is labeled like before: whoever decides that something is endorsed must be trusted. Move it to where \
               the program counter is trusted.",
        wrong: "tool search(query: Str) -> Str read\nlet found = tool[search] 'x'\nif found == 'yes' then endorse [] found else 'no'",
        right: "tool search(query: Str) -> Str read\nlet found = endorse [] (tool[search] 'x')\nif found == 'yes' then found else 'no'",
    },
    Explanation {
        code: PASSED,
        title: "`try` that an error may pass",
        text: "A `try` catches errors whose label flows to its own, so that catching one tells nobody more than they \
               may know. The body may fail with a label that does not; such an error passes and may end the run. Give \
               the `try` the label that the finding shows; its result is labeled accordingly.",
        wrong: "tool search(query: Str) -> Str read\ntry[[]] tool[search] 'x' catch m. 'nothing'",
        right: "tool search(query: Str) -> Str read\ntry[[\"U\"]] tool[search] 'x' catch m. 'nothing'",
    },
    Explanation {
        code: GAVE_UP,
        title: "program that is too large for the flow analysis",
        text: "The analysis follows every call with every label that may reach it. Of this program there were too \
               many, or calls in each other too deeply; nothing is claimed about it. The machine checks every flow \
               while it runs, whatever is known before.",
        wrong: "",
        right: "1 + 1",
    },
    Explanation {
        code: IDLE_SET,
        title: "set that admits nothing",
        text: "Arguments out of a set of `among` are admitted only if the whole label of the set flows to the bound of \
               the parameter: a set that an attacker can write to would let them choose freely, and one that is private \
               would show what is in it by what is refused. This set has a label that does not, or is read from a tool \
               that can't be called before the first step. Every argument that the bound refuses is refused still.",
        wrong: "tool found() -> List Str read\ntool mail(to: Str) -> Str write among [{tool: \"found\", params: {to: []}}]\ntool[mail] {to: 'bob'}",
        right: "tool contacts() -> List Str @ [] read\ntool mail(to: Str) -> Str write among [{tool: \"contacts\", params: {to: []}}]\ntool[mail] {to: 'bob'}",
    },
    Explanation {
        code: COVERED,
        title: "label of a part that has no effect",
        text: "What is read out of a list or a record has the label of the list or record, too. A label of `fields` below that \
               has no effect. If an attacker can add items to a list, their number and places are untrusted, and so is \
               every part of every item. If nobody else can, give the result as a whole the lower label and the higher \
               one to the parts that others write.",
        wrong: "tool mails() -> List {id: Str, body: Str} read fields [{path: '[].id', untrusted: false, secret: false}]\ntool[mails] {}",
        right: "tool mails() -> List {id: Str, body: Str} @ [] read fields [{path: '[].body', untrusted: true, secret: false}]\ntool[mails] {}",
    },
    Explanation {
        code: UNMET,
        title: "rule that has no effect",
        text: "No call of the tool meets this rule, whatever its arguments and their labels are. A set (`among`) is looked at \
               where the bound refuses an argument for its integrity alone, and not where a person is asked about every call. \
               `plain` is about untrusted text, `pattern` and `completes` about what isn't both trusted and public, `at_most` \
               about calls that untrusted data decides, `includes` about what isn't public: where the bounds refuse that first, \
               nothing is left. `approve = \"if-refused\"` asks nobody where the bounds refuse no integrity. \
               `entail policy check` reports it.",
        wrong: "tool pay(to: Str) -> Str write at_most 2\ntool[pay] {to: 'bob'}",
        right: "tool pay(to: Str) -> Str write control untrusted at_most 2\ntool[pay] {to: 'bob'}",
    },
    Explanation {
        code: ADMITS_NOTHING,
        title: "rule that admits nothing",
        text: "What meets this rule is refused every time. A pattern matches no text, or no value of the parameter's type; no \
               value of a set has the type or the pattern of the parameter; no call may be made that untrusted data decides \
               (`at_most` 0); or a function allows no call. If that is meant, a bound says it more plainly. What only the run \
               can decide is not reported. `entail policy check` reports it.",
        wrong: "tool pay(to: Str) -> Str read pattern {to: '[a&&b]'}\ntool[pay] {to: 'bob'}",
        right: "tool pay(to: Str) -> Str read pattern {to: '[a-z]+'}\ntool[pay] {to: 'bob'}",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{Options, analyze, findings, idle_rules};
    use diagnostics::Sources;
    use std::sync::Arc;

    fn said(text: &str) -> Vec<&'static str> {
        let mut sources = Sources::new();
        let file = sources.add("a.lam", text);
        let parsed = agentlang::calculus::compile(file, text);
        let code = parsed.code.unwrap_or_else(|| panic!("{text}: {:?}", parsed.diagnostics));
        let rules = idle_rules(&code, &Options::default());
        let report = analyze(&Arc::new(code), &Options::default());
        let rules = rules.iter().map(|r| r.finding(r.span).code);
        findings(&report).iter().map(|d| d.code).chain(rules).collect()
    }

    #[test]
    fn each_wrong_example_gives_its_code_and_each_right_one_does_not() {
        for e in EXPLANATIONS {
            assert!(e.wrong.is_empty() || said(e.wrong).contains(&e.code), "{}: {:?}", e.code, said(e.wrong));
            assert!(!said(e.right).contains(&e.code), "{}: {:?}", e.code, said(e.right));
        }
    }
}
