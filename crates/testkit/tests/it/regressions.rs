//! Regressions of the machine and the rules, each found by a generated program and then shrunk.

use crate::common::outcome;
use core_ir::Data;
use testkit::world::Answer;

fn says(text: &str) -> [Answer; 1] {
    [Answer::Text(text.into())]
}

/// The machine ran whatever the parser let through.
#[test]
fn generated_code_may_not_endorse() {
    let seen = outcome("(recv).[0]", &says("endorse [] null"));
    assert_eq!(seen, "false; []:[assistant endorse [] null]; model@[]");
}

/// The machine raised `no_branch` although there was a `_`.
#[test]
fn a_case_with_default_is_total() {
    assert_eq!(outcome("case null of {_ => 1}", &[]), "1");
}

/// Replies were read as JSON without looking at the type, so pairs and tags never fitted.
#[test]
fn a_reply_may_be_a_pair() {
    let seen = outcome("recv {result: Num * Num}", &says("[1, 2]"));
    assert_eq!(seen, "(1, 2); []:[assistant [1, 2]]; model@[]");
}

/// The rules said that nothing is sent for an empty prompt: its label was lost.
#[test]
fn an_empty_prompt_keeps_its_label() {
    let seen = outcome("llm ([\"S\"]: '') {} 'x'", &says("hi"));
    assert_eq!(seen, "[\"S\"]:\"hi\"; model@[\"S\"]");
}

/// The rules did not say what becomes of an optional argument that is missing.
#[test]
fn a_missing_optional_argument_is_null() {
    let seen =
        outcome("tool t(a: Option Num, b: Num) -> Num pure\ntool[t] {b: 2}", &[Answer::Data(Data::Null)]);
    assert_eq!(seen, "error type []; t(a=null,b=2)@[\"U\",\"S\"]");
}

/// An argument that was missing was not checked: whether a call was refused told whether there is one.
#[test]
fn that_an_argument_is_missing_is_as_secret_as_the_record() {
    let seen = outcome(
        "tool t(a: Option Num @ trusted, b: Option Num @ trusted) -> Num pure control untrusted secret\n\
         let s = const [\"S\"]: true in tool[t] (if s then {} else {a: 1})",
        &[Answer::Data(Data::Null)],
    );
    // Whether it is refused is a fact about the record, so the refusal is as secret.
    assert_eq!(seen, "error flow [\"S\"]");
}
