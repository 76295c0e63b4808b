//! Idempotency keys: the number that names a call of a tool that writes is the same when the call is
//! repeated, differs from those of other calls, and tells no more than the call itself (`docs/calculus.md`
//! §10; `proofs/Thm/Keys.v`).

use core_ir::Data;
use machine::{Answers, Args, Asked, Call, Config, Machine, Output, Response};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

const TOOLS: &str = "tool pay(n: Num) -> Null write control []
tool hide(n: Num @ [\"S\"]) -> Null @ [\"S\"] write control [\"S\"]
tool tell(n: Num @ [\"S\"]) -> Str @ [] write control [\"S\"]
tool look(n: Num @ [\"U\", \"S\"]) -> Null @ [] read control [\"U\", \"S\"]
";

/// Answers some calls where they stand, and notes the numbers of all.
#[derive(Default)]
struct World {
    in_place: bool,
    calls: BTreeMap<String, Vec<Option<u64>>>,
}

impl World {
    fn note(&mut self, tool: &core_ir::ToolDecl, args: String, number: Option<u64>) {
        self.calls.entry(format!("{} {args}", tool.name)).or_default().push(number);
    }
}

impl Answers for World {
    fn tool(
        &mut self,
        asked: &Asked<'_>,
        tool: &Arc<core_ir::ToolDecl>,
        args: Args<'_>,
    ) -> Option<Result<Data, String>> {
        self.in_place.then(|| {
            self.note(tool, format!("{:?}", args.to_vec()), asked.call_id(tool));
            Ok(Data::Null)
        })
    }
}

/// The numbers of the calls of each tool with the same arguments.
fn calls(text: &str, in_place: bool) -> BTreeMap<String, Vec<Option<u64>>> {
    let code = crate::common::lam(&format!("{TOOLS}{text}"));
    let mut machine = Machine::new(code, None, Config::default());
    let mut world = World { in_place, ..World::default() };
    loop {
        match machine.poll_with(&mut world) {
            Output::Request(id, request) => {
                let Call::Tool { tool, args } = &request.call else { panic!("{:?}", request.call) };
                world.note(tool, format!("{args:?}"), request.call_id);
                machine.handle(id, Response::Tool(Ok(Data::Null)));
            }
            Output::Working => {}
            Output::Waiting => panic!("everything was answered"),
            Output::Done(Ok(_)) => {
                // Branches may ask in another order.
                world.calls.values_mut().for_each(|numbers| numbers.sort());
                return world.calls;
            }
            Output::Done(Err(e)) => panic!("{text}: {}", e.message),
        }
    }
}

fn public(text: &str) -> Vec<(String, Vec<Option<u64>>)> {
    let [one, other] = [true, false].map(|in_place| calls(text, in_place));
    assert_eq!(one, other, "{text}: answered in place or not");
    one.into_iter().filter(|(name, _)| name.starts_with("pay")).collect()
}

/// The secret decides the number of secret calls, their program counter, and whether they are in branches.
#[test]
fn the_number_of_secret_calls_does_not_show_in_the_keys_of_public_ones() {
    let secret = |calls: &str| {
        [
            format!("let _ = [\"S\"]: {calls} in tool[pay] 1"),
            format!("let _ = [\"S\"]: {calls} in [tool[pay] 1, tool[pay] 1]"),
            format!("par [let _ = [\"S\"]: {calls} in tool[pay] 1, tool[pay] 2]"),
            format!("let _ = [\"S\"]: {calls} in par [tool[pay] 1, tool[pay] 1]"),
            format!(
                "let _ = [\"S\"]: {calls} in each (\\n. let _ = [\"S\"]: {calls} in tool[pay] n) [1, 2, 1]"
            ),
        ]
    };
    let worlds = ["null", "tool[hide] 1", "[tool[hide] 1, tool[hide] 2]", "par [tool[hide] 1, tool[hide] 1]"];
    let [none, others @ ..] = worlds.map(secret);
    for other in others {
        for (one, other) in none.iter().zip(&other) {
            assert_eq!(public(one), public(other), "{one}\n{other}");
        }
    }
}

#[test]
fn calls_of_one_tool_have_different_keys() {
    for program in [
        "[tool[pay] 1, tool[pay] 1, tool[look] 1, tool[pay] 1]",
        "par [tool[pay] 1, [tool[pay] 1, tool[pay] 1], par [tool[pay] 1, tool[pay] 1]]",
        "[par [tool[pay] 1, tool[pay] 1], par [tool[pay] 1, tool[pay] 1], each (\\n. tool[pay] n) [1, 1, 1]]",
    ] {
        let all: Vec<Option<u64>> = public(program).into_iter().flat_map(|(_, numbers)| numbers).collect();
        assert!(all.len() >= 3 && all.iter().all(Option::is_some), "{program}");
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{program}: {all:?}");
    }
    assert!(calls("tool[look] 1", false).values().all(|numbers| numbers == &[None]));
}

/// A tool is given its key and may answer by it, so the key of a call depends on no more than the answer may:
/// a public answer on a secret channel does not tell how many secret calls there were.
#[test]
fn a_tool_that_answers_by_its_key_tells_nothing() {
    let answers = |text: &str| {
        let code = crate::common::lam(&format!("{TOOLS}{text}"));
        let mut machine = Machine::new(code, None, Config::default());
        loop {
            match machine.poll() {
                Output::Request(id, request) => {
                    let number = request.call_id.unwrap();
                    let answer = match &request.call {
                        Call::Tool { tool, .. } if *tool.name == *"tell" => {
                            Data::Str(format!("{number:x}").into())
                        }
                        Call::Tool { .. } => Data::Null,
                        other => panic!("{other:?}"),
                    };
                    machine.handle(id, Response::Tool(Ok(answer)));
                }
                Output::Working => {}
                Output::Waiting => panic!("everything was answered"),
                Output::Done(result) => break format!("{:?}", machine.reify(&result.unwrap())),
            }
        }
    };
    for program in [
        "let _ = [\"S\"]: CALLS in tool[tell] 1",
        "let _ = [\"S\"]: CALLS in [tool[tell] 1, tool[tell] 2]",
        "let _ = [\"S\"]: CALLS in par [tool[tell] 1, tool[tell] 2]",
        "each (\\n. let _ = [\"S\"]: CALLS in tool[tell] n) [1, 2]",
    ] {
        let in_world = |calls: &str| answers(&program.replace("CALLS", calls));
        let none = in_world("null");
        for calls in ["tool[hide] 1", "tool[tell] 1", "[tool[hide] 1, tool[tell] 2]"] {
            assert_eq!(in_world(calls), none, "{program} with {calls}");
        }
    }
}
