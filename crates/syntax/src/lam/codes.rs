//! Explanations of the diagnostics of the `.lam` parser.

pub use diagnostics::Explanation;

/// Something else was expected.
pub const SYNTAX: &str = "C001";
/// A string that does not end, or a bad escape.
pub const STRING: &str = "C002";
/// A character that no term contains.
pub const CHARACTER: &str = "C003";
/// A number that is none, or that is out of range.
pub const NUMBER: &str = "C004";
/// Nested too deep.
pub const DEPTH: &str = "C005";
/// Text too long.
pub const LENGTH: &str = "C006";
/// A variable that nothing binds.
pub const UNBOUND: &str = "C007";
/// A key that no enclosing store has.
pub const KEY: &str = "C008";
/// A tool that is not declared.
pub const TOOL: &str = "C009";
/// A store that is not declared.
pub const STORE: &str = "C010";
/// A name given twice.
pub const DUPLICATE: &str = "C011";
/// Unknown primitive, or wrong number of operands.
pub const PRIM: &str = "C012";
/// A form that generated code must not contain.
pub const GENERATED: &str = "C013";
/// `:=` without a field on its left.
pub const UPDATE: &str = "C014";
/// A program that ends without a term.
pub const NO_TERM: &str = "C015";
/// A prelude definition that is no function.
pub const PRELUDE: &str = "C016";
/// A policy of a tool that asks the world.
pub const POLICY: &str = "C017";
/// Data that is no JSON Schema.
pub const SCHEMA: &str = "C018";

/// Every code that the reader of `.lam` reports, in order.
pub const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        code: SYNTAX,
        title: "unexpected token",
        text: "The text stops being a term here: an operand, a bracket or a word of the form is missing, or \
               something stands where nothing can follow. Reading goes on after the next bracket or the next \
               definition, so later findings in the same text are real.",
        wrong: "let double = \\x. x + in double 2",
        right: "let double = \\x. x + x in double 2",
    },
    Explanation {
        code: STRING,
        title: "string that does not end, or a bad escape",
        text: "Interpolated strings stand in `\"…\"`: `{e}` inserts a value, `\\{` is a brace, `\\n`, `\\t`, \
               `\\\"`, `\\\\` and `\\u{…}` are as usual. Raw strings stand in `'…'` and have no escapes at all.",
        wrong: r#""C:\data""#,
        right: r"'C:\data'",
    },
    Explanation {
        code: CHARACTER,
        title: "character that belongs to no term",
        text: "Outside strings and comments only names, numbers and operators may stand. Typographic quotes \
               are the usual cause.",
        wrong: "length “word”",
        right: "(\\s. prim[length](s)) \"word\"",
    },
    Explanation {
        code: NUMBER,
        title: "not a number, or out of range",
        text: "Numbers are exact: `12`, `0.5`, `2e-3`. Names begin with a letter. A probability lies between 0 \
               and 1. Bounds and counts are whole and fit into 64 bits; numbers of tens of thousands of digits are refused.",
        wrong: "choose 1.5 'heads' 'tails'",
        right: "choose 0.5 'heads' 'tails'",
    },
    Explanation {
        code: DEPTH,
        title: "nested too deep",
        text: "Terms may be nested 1,000 levels deep and data 500. Definitions one after the other, stages \
               of `>>` and items of a list do not nest, however many there are; long chains of `+` do.",
        wrong: "",
        right: "!!true",
    },
    Explanation {
        code: LENGTH,
        title: "text too long",
        text: "A program of more than 16 MiB is refused. Move data out of the program.",
        wrong: "",
        right: "1",
    },
    Explanation {
        code: UNBOUND,
        title: "unknown variable",
        text: "Nothing around this place binds the name: no `\\x.`, no `let x =`, no branch, no `catch x.`, \
               and the prelude has no such definition. `let` is not recursive; use `fix`.",
        wrong: "let fact = \\n. if n == 0 then 1 else n * fact (n - 1) in fact 5",
        right: "let fact = fix[10] (\\self. \\n. if n == 0 then 1 else n * self (n - 1)) in fact 5",
    },
    Explanation {
        code: KEY,
        title: "key of no store",
        text: "`recall k` and `remember k e` must stand inside a `mem` whose store declares the key, in the \
               same text: keys are resolved before the run.",
        wrong: "remember seen true",
        right: "mem (remember seen true) {seen: Bool}",
    },
    Explanation {
        code: TOOL,
        title: "tool without a declaration",
        text: "Nothing is known of the tool, so the careful assumption holds: anything in, anything out, it may \
               change the world, its arguments must be trusted and public, and its result is untrusted. Declare it \
               before its first use.",
        wrong: "tool[search] 'weather'",
        right: "tool search(query: Str) -> List Str read\ntool[search] 'weather'",
    },
    Explanation {
        code: STORE,
        title: "store without a declaration",
        text: "`mem e name` needs `store name {key: Type, …}` before it; or write the keys in place: \
               `mem e {key: Type, …}`.",
        wrong: "mem (recall topic) notes",
        right: "store notes {topic: Str}\nmem (recall topic) notes",
    },
    Explanation {
        code: DUPLICATE,
        title: "name given twice",
        text: "Fields of a record, branches of a `case`, tags of a `classify`, parameters of a tool, keys of a \
               store, tools and stores have distinct names. A store may be declared again with the same words, which is one \
               store; with other words it is an error, because its name is its identity.",
        wrong: "{a: 1, a: 2}",
        right: "{a: 1, b: 2}",
    },
    Explanation {
        code: PRIM,
        title: "unknown primitive or wrong number of operands",
        text: "`prim[name](e, …)` names one of the primitives of the calculus and gives each of its operands. \
               Most are easier to reach through the operators and the functions of the prelude.",
        wrong: "prim[sub](1)",
        right: "prim[sub](1, 2)",
    },
    Explanation {
        code: GENERATED,
        title: "not allowed in generated code",
        text: "A reply of a model that is run as code may not contain `endorse` or `declassify`, unless the \
               run's policy allows it, nor `tool[…]`, `args[…]{…}` or `mem`, nor declare or offer tools and stores: otherwise whoever can \
               write to the conversation could lower labels, act, or change what others remember. The program that asked can do it with the value it gets.",
        wrong: "endorse [] (1 + 1)",
        right: "1 + 1",
    },
    Explanation {
        code: UPDATE,
        title: "update of what is not a field",
        text: "`e.f := v` gives the record `e` with its field `f` set to `v`. The left side must end in a field.",
        wrong: "let r = {n: 1} in r := 2",
        right: "let r = {n: 1} in r.n := 2",
    },
    Explanation {
        code: NO_TERM,
        title: "program without a term",
        text: "A program is a number of declarations and definitions and then the term to evaluate. This one ends \
               after a definition, or is empty.",
        wrong: "let double = \\x. x + x",
        right: "let double = \\x. x + x\ndouble 2",
    },
    Explanation {
        code: PRELUDE,
        title: "definition of a prelude that is no function",
        text: "A prelude consists of definitions `let f = \\x. …`, which may refer to each other in any order; \
               nothing is evaluated before the program runs.",
        wrong: "let three = 1 + 2",
        right: "let three = \\_. 1 + 2",
    },
    Explanation {
        code: POLICY,
        title: "policy that asks models, tools or stores",
        text: "A policy decides from the arguments of a call and their labels whether the call may be made, before \
               anything happens. It may compute and use the functions of the prelude, but not those that ask a model.",
        wrong: "tool pay(to: Str) -> Null write policy (\\a. (llm \"ok?\") a.to.value)\ntool[pay] \"Ann\"",
        right: "tool pay(to: Str) -> Null write policy (\\a. a.to.value == \"Ann\")\ntool[pay] \"Ann\"",
    },
    Explanation {
        code: SCHEMA,
        title: "not a JSON Schema",
        text: "`schema {…}` is a predicate that a JSON Schema (2020-12) states. A keyword that is not known here is an \
               error, because it would be believed to be checked. `$ref` may name `#` and what is under `$defs`.",
        wrong: "guard 1 schema {type: \"int\"}",
        right: "guard 1 schema {type: \"integer\"}",
    },
];

/// The explanation of a code of this language.
pub fn explain(code: &str) -> Option<&'static Explanation> {
    EXPLANATIONS.iter().find(|e| e.code.eq_ignore_ascii_case(code))
}
