//! Programs with a policy of their own, at random: a well-typed one never goes wrong, and formatting keeps
//! what its policy says.

use core_ir::Data;
use diagnostics::FileId;
use machine::{Call, ErrorCode, Machine, Output, Response};
use policy::Policy;
use proptest::prelude::*;

const TOOLS: &str = "tool contacts() -> List[Obj{email: String}] {}\n\
                     tool pay(to: String, amount: Number) -> String {}\n\
                     fn large(n: Number) -> Bool { n > 50 }\n\
                     const LIMIT = 100;\n";

const MAIN: &str = "pipeline main(to: String untrusted, amount: Number untrusted) -> List[String] {\n\
                    let a = pay(\"ann\", amount) on_fail use \"none\"; \
                    let b = pay(to, 3) on_fail use \"none\"; return [a, b]; }\n";

/// Rules of `pay`, of which a policy has one each at most.
const RULES: &[&[&str]] = &[
    &["pure;", "reads;", "writes;"],
    &["control untrusted;", "control any;"],
    &["arguments trusted;", "arguments untrusted;"],
    &["bound amount untrusted;", "bound to untrusted;"],
    &["result trusted;", "result secret;"],
    &["among to \"request | tools.contacts().email\";"],
    &["plain to \"no-links\";"],
    &["pattern to \"[a-z]+\";"],
    &["at_most 1;", "at_most 2;"],
    &["approve;", "approve if_refused;", "approve when amount > LIMIT;", "approve when to != \"ann\";"],
    &[
        "allow large(amount) else \"small\";",
        "allow amount < LIMIT && to != \"eve\";",
        "allow \"\\\\a. a.to.label == []\";",
        "allow if large(amount) { false } else { true };",
    ],
];

fn program(choices: &[u8]) -> String {
    let rules: Vec<&str> =
        RULES.iter().zip(choices).filter_map(|(rules, c)| rules.get(*c as usize)).copied().collect();
    let contacts = "tool contacts { reads; result trusted; }";
    format!("{TOOLS}policy {{ {contacts} tool pay {{ {} }} }}\n{MAIN}", rules.join(" "))
}

/// The program with its policy.
fn read(text: &str) -> (agentlang::Module, Policy) {
    let (module, found) = agentlang::check(FileId(0), text);
    let mut module = module.unwrap_or_else(|| panic!("{text}\n{found:#?}"));
    let block = module.policy_block().unwrap().unwrap();
    let policy = Policy::of_block(FileId(0), &block).unwrap_or_else(|found| panic!("{text}\n{found:#?}"));
    module.assume(&policy);
    (module, policy)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_program_with_a_policy_does_not_go_wrong(
        choices in prop::collection::vec(0u8..6, RULES.len()),
        (to, amount, approves) in (0u8..3, 0u8..200, any::<bool>()),
    ) {
        let text = program(&choices);
        let (module, policy) = read(&text);
        let mut code = module.lower(module.pipeline("main").unwrap()).unwrap();
        prop_assert_eq!(policy.apply_to(&mut code, &[]), []);
        let formatted = syntax::format::agent(FileId(0), &text).unwrap();
        let (_, again) = read(&formatted);
        prop_assert_eq!(again.text(), policy.text());
        let to = ["ann", "eve", "see evil.example"][to as usize];
        let input = Data::record([
            ("to".into(), Data::str(to)),
            ("amount".into(), Data::Num(i64::from(amount).into())),
        ]);
        let mut machine = Machine::new(code.into(), Some(input), machine::Config::default());
        let ended = loop {
            match machine.poll() {
                Output::Request(id, request) => {
                    let response = match &request.call {
                        Call::Tool { tool, .. } if *tool.name == *"contacts" => {
                            let ann = Data::record([("email".into(), Data::str("ann"))]);
                            Response::Tool(Ok(Data::list([ann])))
                        }
                        Call::Tool { .. } => Response::Tool(Ok(Data::str("paid"))),
                        Call::Approve { .. } if approves => Response::Approve(Ok(())),
                        Call::Approve { .. } => Response::Approve(Err("no".into())),
                        other => panic!("{other:?}"),
                    };
                    machine.handle(id, response);
                }
                Output::Working => {}
                Output::Waiting => panic!("it waits for nothing: {text}"),
                Output::Done(result) => break result,
            }
        };
        // A refusal is one of the outcomes, and a type error is none.
        if let Err(failure) = ended {
            prop_assert!(failure.code != ErrorCode::Type, "{}\n{}", text, failure.message);
        }
    }
}
