//! Codes of the type checker, each with its explanation.

use diagnostics::Explanation;

/// A value of one type where another is needed.
pub const MISMATCH: &str = "T001";
/// Application of a value that is not a function.
pub const NOT_A_FUNCTION: &str = "T002";
/// A field or item that is not there.
pub const NO_FIELD: &str = "T003";
/// `null` where a value is needed.
pub const NULLABLE: &str = "T004";
/// A `case` that does not cover what may come.
pub const NOT_EXHAUSTIVE: &str = "T005";
/// A key of a store that holds, or begins with, something it cannot.
pub const KEY: &str = "T006";
/// More effects than declared.
pub const EFFECTS: &str = "T007";
/// Parallel branches that write what another uses.
pub const PAR_STATE: &str = "T008";
/// A value that is not known to satisfy a predicate.
pub const REFINEMENT: &str = "T009";
/// A guard that nothing satisfies.
pub const IMPOSSIBLE_GUARD: &str = "T010";
/// A function where data is needed.
pub const FUNCTION_AS_DATA: &str = "T011";
/// Arguments that a tool does not take.
pub const ARGUMENTS: &str = "T012";

/// Every code of the type checker, in order. The examples are `.lam` programs.
pub const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        code: MISMATCH,
        title: "a value of the wrong type",
        text: "An operand, condition, argument or item is of a type that does not fit its use. Types are inferred; the \
               place is where the value is used, and a remark says where it comes from.",
        wrong: "1 + \"one\"",
        right: "1 + prim[to_num](\"1\")",
    },
    Explanation {
        code: NOT_A_FUNCTION,
        title: "a value that is not a function is applied",
        text: "Only functions can be applied: `\\x. e`, `fix[n] e`, `llm p {…}`, `tool[f]`, compositions of them, and \
               functions under a guard. A function of one parameter that is given two arguments applies its result.",
        wrong: "let n = 3 in n 4",
        right: "let n = \\x. x in n 4",
    },
    Explanation {
        code: NO_FIELD,
        title: "a field or item that is not there",
        text: "The record is known, and has no such field; or the list is known, and is too short.",
        wrong: "{name: \"Ada\"}.nme",
        right: "{name: \"Ada\"}.name",
    },
    Explanation {
        code: NULLABLE,
        title: "something that may be null is used as if it were not",
        text: "What `recall` gives, or a field of type `Option`, may be null. In the branches of a test such as \
               `is_null x`, `x == null` or `x != null` the variable has the narrower type.",
        wrong: "mem (1 + recall count) {count: Num}",
        right: "mem (let n = recall count in if n == null then 1 else 1 + n) {count: Num}",
    },
    Explanation {
        code: NOT_EXHAUSTIVE,
        title: "a case that does not cover what may come",
        text: "Every tag that may arrive needs a branch, or `_` takes the rest. A string that is not known may be \
               anything; `classify[…]` makes it one of the tags, or fails.",
        wrong: "\\s. case prim[lower](s) of {yes => 1, no => 0}",
        right: "\\s. case classify[yes, no] prim[lower](s) of {yes => 1, no => 0}",
    },
    Explanation {
        code: KEY,
        title: "a key that cannot hold what it is declared to hold",
        text: "Stores hold data. A function in a store could reach itself through it, and run for ever without a `fix`; \
               so no key has a function type. What a key holds at first must be of its type.",
        wrong: "mem 1 {callback: Str -> Str}",
        right: "mem 1 {callback: Str}",
    },
    Explanation {
        code: EFFECTS,
        title: "more effects than are declared",
        text: "The effects on an arrow, `Str -[llm(m)]> Str`, are an upper bound of what applying the function may do; \
               `Str -> Str` is a function that does nothing. The function given here may do more.",
        wrong: "(\\f: Str -> Str. f \"x\") (llm \"Translate.\" {model: \"m\"})",
        right: "(\\f: Str -[llm(m)]> Str. f \"x\") (llm \"Translate.\" {model: \"m\"})",
    },
    Explanation {
        code: PAR_STATE,
        title: "parallel branches with conflicting state",
        text: "The requests of parallel branches are unordered. If one branch writes a key that another reads or \
               writes, the result depends on which is faster. Two branches that only read do not conflict, nor do those \
               of `par[1]`, which run one after another.",
        wrong: "mem (par [remember n 1, recall n]) {n: Num}",
        right: "mem (par [recall n, recall n]) {n: Num}",
    },
    Explanation {
        code: REFINEMENT,
        title: "a value that is not known to satisfy a predicate",
        text: "A parameter of a refined type takes only values that are known to satisfy the predicate: results of a \
               guard whose predicate implies it, and literals that satisfy it.",
        wrong: "\\x: Str. (\\y: {Str | length > 0}. y) x",
        right: "\\x: Str. (\\y: {Str | length > 0}. y) (guard x length >= 3)",
    },
    Explanation {
        code: IMPOSSIBLE_GUARD,
        title: "a guard that can never hold",
        text: "No value of the type satisfies the predicate: its parts contradict each other, or it measures what the \
               type does not have. Every run that gets here fails, after all retries.",
        wrong: "\\x: Str. guard x length > 5 && length < 3",
        right: "\\x: Str. guard x length > 3 && length < 5",
    },
    Explanation {
        code: FUNCTION_AS_DATA,
        title: "a function where data is needed",
        text: "Functions cannot be compared, remembered, handed to a tool or written as JSON.",
        wrong: "(\\x. x) == 1",
        right: "(\\x. x) 1 == 1",
    },
    Explanation {
        code: ARGUMENTS,
        title: "arguments that a tool does not take",
        text: "A tool takes a record with a field for each of its parameters and no others; parameters of type \
               `Option` may be left out. A tool with one parameter takes the bare value as well.",
        wrong: "tool add(a: Num, b: Num) -> Num pure\ntool[add] {a: 1}",
        right: "tool add(a: Num, b: Num) -> Num pure\ntool[add] {a: 1, b: 2}",
    },
];
