//! Words of the surface language.
//!
//! Entry points: [`TABLE`], [`all`] and [`about`] for editors, [`is`], [`is_reserved`] and [`words`] for the
//! parser.
//!
//! Invariant: this table is the only list of keywords. The parser recovers by it, editors complete from it,
//! and the highlighting of editors is generated from it.

/// Place of a word in the grammar. Most words are names everywhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Begins a declaration.
    Item,
    /// Begins a step of a workflow.
    Step,
    /// Begins a statement.
    Statement,
    /// Continues a statement that another word begins.
    Part,
    /// Begins an expression.
    Expression,
    /// Begins a clause of a call: how it is carried out.
    Clause,
    /// Continues an expression, a clause or a step.
    Link,
    /// Names a field of an agent.
    Field,
    /// Begins the body of a task or tool.
    Body,
    /// Says what a tool, task or parameter does with labels.
    Flow,
    /// Begins a rule of a policy.
    Rule,
    /// Names a type.
    Type,
    /// Is a constant.
    Constant,
}

/// A word in one of its roles.
#[derive(Clone, Copy, Debug)]
pub struct Keyword {
    /// The word.
    pub word: &'static str,
    /// Syntactic role.
    pub role: Role,
    /// Explanation in editors. Empty where the word explains itself.
    pub about: &'static str,
    /// True if it can't be a name.
    pub is_reserved: bool,
}

const fn row(word: &'static str, role: Role, about: &'static str) -> Keyword {
    Keyword { word, role, about, is_reserved: false }
}

/// A row of a word that can't be a name.
const fn reserved(word: &'static str, role: Role, about: &'static str) -> Keyword {
    Keyword { is_reserved: true, ..row(word, role, about) }
}

/// Every keyword, by role. A word with two roles has two rows.
pub const TABLE: &[Keyword] = &[
    row("use", Role::Item, "makes the declarations of another file part of the program"),
    row("const", Role::Item, "declares a value that has a name in all of the program"),
    row("type", Role::Item, "declares an abbreviation of a type"),
    row("enum", Role::Item, "declares a type by its variants, which are written as strings"),
    row(
        "agent",
        Role::Item,
        "declares an agent, which carries out tasks: `tools`, `helpers`, `handoffs`, `model`, `prompt`, `max_steps`, `memory`, `budget`",
    ),
    row("tool", Role::Item, "declares a tool, which agents and pipelines may call"),
    row("task", Role::Item, "declares work with a typed result, by an agent or by a handler"),
    row("pipeline", Role::Item, "declares a program: statements that end with `return`"),
    row("fn", Role::Item, "declares a function that computes: it calls no task, tool or model"),
    row("workflow", Role::Item, "declares stages and reviews, which become a pipeline"),
    row("test", Role::Item, "declares a test, which `entail test` runs"),
    row("policy", Role::Item, "says what tools do, and what may reach them and models"),
    row("stage", Role::Step, "a step of a workflow: an agent does a task"),
    row("review", Role::Step, "an agent checks a version, another revises it, at most `max_rounds` times"),
    reserved("let", Role::Statement, ""),
    reserved("if", Role::Statement, ""),
    reserved("while", Role::Statement, "repeats as long as a condition holds; `max n` bounds it"),
    reserved("break", Role::Statement, ""),
    reserved("continue", Role::Statement, ""),
    reserved("try", Role::Statement, "runs `catch` with the message if something inside fails"),
    reserved("assert", Role::Statement, "fails the run, or is caught by `try`, unless the condition holds"),
    reserved("return", Role::Statement, "ends the pipeline with a value"),
    reserved(
        "parallel",
        Role::Statement,
        "makes calls at the same time; `parallel for` runs rounds at the same time",
    ),
    row("for", Role::Statement, "runs a round for each item of a list"),
    row("match", Role::Statement, "has a case for each variant of an enum, or `_`"),
    row("guard", Role::Statement, "checks a condition on a value; `retry n` makes the value again"),
    row("mock", Role::Statement, "in a test: the result of a tool, which is not called"),
    row("attack", Role::Statement, "in a test: a text that is injected into the results of a tool"),
    row(
        "expect",
        Role::Statement,
        "in a test: `call`, `no call` or `refused`, and a tool; or `snapshot` and a value",
    ),
    reserved("else", Role::Part, ""),
    row("in", Role::Part, ""),
    reserved("catch", Role::Part, ""),
    row("ensure", Role::Part, "a block after `try` that runs whether or not that has failed"),
    row("join", Role::Part, "waits for all calls of a `parallel`"),
    row(
        "where",
        Role::Part,
        "the condition of a `guard`, or what holds of the values of a type, called `it`",
    ),
    row("fails", Role::Part, ""),
    row("run", Role::Expression, "calls a task or pipeline with named arguments"),
    row("endorse", Role::Expression, "gives the value only if it is one of the constants, and trusts it"),
    row("quarantine", Role::Expression, "asks a model that sees nothing else, and gives a value of a type"),
    row("by", Role::Clause, "names the agent that carries out the task"),
    row("retries", Role::Clause, "bounds how often a failed call is repeated; a timeout is not"),
    row("timeout", Role::Clause, "the seconds that each attempt has; then the work is canceled"),
    row("on_fail", Role::Clause, "`abort`, or `use` of another value, if all attempts fail"),
    row("with", Role::Link, ""),
    row("retry", Role::Link, ""),
    row("abort", Role::Link, ""),
    row("max", Role::Link, "bounds the rounds of a `while`, which then ends without an error"),
    row("max_concurrency", Role::Link, "bounds how many calls are open at a time"),
    row("max_rounds", Role::Link, ""),
    row("does", Role::Link, ""),
    row("checks", Role::Link, ""),
    row("revise", Role::Link, ""),
    row("using", Role::Link, ""),
    row("as", Role::Link, ""),
    row("each", Role::Link, "in a test: `for each row of \"cases.jsonl\"` runs it for each row of the file"),
    row("of", Role::Link, ""),
    row("samples", Role::Link, "repeats a test: `samples 20 pass >= 0.9` is the rate that must pass"),
    row("pass", Role::Link, ""),
    row("when", Role::Link, "the calls that a person is asked about"),
    row("model", Role::Field, ""),
    row("tools", Role::Field, ""),
    row("prompt", Role::Field, ""),
    row("max_steps", Role::Field, ""),
    row("temperature", Role::Field, ""),
    row("max_tokens", Role::Field, ""),
    row("settings", Role::Field, "options for a model's server beside the fields that the language has"),
    row("helpers", Role::Field, "agents or pipelines that an agent may ask"),
    row("handoffs", Role::Field, "agents or pipelines that may take over from an agent"),
    row("final_tools", Role::Field, "those of an agent's tools whose result is the answer"),
    row(
        "talk",
        Role::Field,
        "`conversation`, or `text`: each step sends one new text with everything said so far",
    ),
    row("memory", Role::Field, ""),
    row("budget", Role::Field, ""),
    row("system", Role::Body, "instructions of an agent for one task"),
    row("examples", Role::Body, "values that a model is shown: `[{ input: { … }, output: … }]`"),
    row("prompt", Role::Body, ""),
    row("exec", Role::Body, ""),
    row("builtin", Role::Body, ""),
    row("http", Role::Body, ""),
    row("mcp", Role::Body, ""),
    row("python", Role::Body, ""),
    row("pure", Role::Flow, ""),
    row("reads", Role::Flow, "looks at the world: the result is untrusted"),
    row(
        "writes",
        Role::Flow,
        "changes the world: takes only trusted, public data unless it says what it `requires`",
    ),
    row("untrusted", Role::Flow, "labels data that may come from anyone"),
    row("secret", Role::Flow, "labels data that not everybody may see"),
    row("trusted", Role::Flow, ""),
    row("public", Role::Flow, ""),
    row("requires", Role::Flow, "`trusted` or `public`: refuses other data"),
    row("policy", Role::Flow, "takes the bounds from `[policies.NAME]` of the policy file"),
    row(
        "lattice",
        Role::Rule,
        "the labels of the run: `levels`, or `\"sources-readers\"` and the like in quotes",
    ),
    row(
        "principal",
        Role::Rule,
        "names somebody by values: `principal alice { email: \"alice@example.org\" };`",
    ),
    row("readers", Role::Rule, "those who may be in labels, or those who may read a part of a result"),
    row("sources", Role::Rule, "those of whom data may come"),
    row("place", Role::Rule, "the label of what is at a path or an address"),
    row("model", Role::Rule, "what a model may see: `model \"*\" untrusted;`"),
    row("unknown_tools", Role::Rule, "the rules of tools of which only the name is known"),
    row("output", Role::Rule, "what the answer may depend on, and who is shown it"),
    row("control", Role::Rule, "what may decide whether the tool is called"),
    row("arguments", Role::Rule, "what may be in any argument"),
    row("bound", Role::Rule, "what may be in an argument, or in the answer"),
    row("below", Role::Rule, "a place below which untrusted text may lead"),
    row("result", Role::Rule, "the label of what the tool returns, or of a part of it"),
    row("among", Role::Rule, "the sets that untrusted data may choose an argument from"),
    row("plain", Role::Rule, "the form of untrusted text in an argument"),
    row("pattern", Role::Rule, "what an argument must match"),
    row("completes", Role::Rule, "an argument that the result does not depend on"),
    row(
        "approve",
        Role::Rule,
        "asks a person before a call: each, `if_refused`, or `when` a condition holds",
    ),
    row("at_most", Role::Rule, "calls of a run that untrusted data may decide"),
    row("allow", Role::Rule, "a condition that each call must meet; `else` says why one is refused"),
    row("clearance", Role::Rule, "what whoever is shown the answer may see"),
    row("String", Role::Type, "a text"),
    row("Number", Role::Type, "an exact number"),
    row("Bool", Role::Type, "`true` or `false`"),
    row("List", Role::Type, "`List[T]`"),
    row("Option", Role::Type, "`Option[T]`: perhaps `null`"),
    row("Map", Role::Type, "`Map[String, T]`: values by their keys"),
    row("Obj", Role::Type, "`Obj{name: T, …}`: a record"),
    row("Any", Role::Type, "data whose shape only the run shows"),
    row("Int", Role::Type, "a whole number"),
    row("Decimal", Role::Type, "a number with a finite decimal notation, such as a sum of money"),
    row("Date", Role::Type, "a day such as `2026-01-31`"),
    row("Time", Role::Type, "a time of day such as `09:30`"),
    row("Duration", Role::Type, "a duration such as `PT1H30M`"),
    row("Url", Role::Type, "an address of `http` or `https`"),
    row("Email", Role::Type, "an address such as `ada@example.org`"),
    reserved("true", Role::Constant, ""),
    reserved("false", Role::Constant, ""),
    reserved("null", Role::Constant, ""),
];

/// The words of a role, in the order of the table.
pub fn words(role: Role) -> impl Iterator<Item = &'static str> + Clone {
    TABLE.iter().filter(move |k| k.role == role).map(|k| k.word)
}

/// Returns whether a word has a role.
///
/// # Examples
/// ```
/// use syntax::agent::keywords::{Role, is};
/// assert!(is("pipeline", Role::Item) && !is("pipeline", Role::Statement));
/// ```
pub fn is(word: &str, role: Role) -> bool {
    words(role).any(|w| w == word)
}

/// Returns the remedy for a word of another policy language, or a key of the policy file, that begins no
/// rule.
///
/// # Examples
/// ```
/// use syntax::agent::keywords::instead_of_rule;
/// assert!(instead_of_rule("deny").is_some_and(|help| help.contains("allow")));
/// assert_eq!(instead_of_rule("allow"), None);
/// ```
pub fn instead_of_rule(word: &str) -> Option<&'static str> {
    Some(match word {
        "deny" | "forbid" | "refuse" | "reject" | "block" => {
            "say what must hold of each call: `allow amount <= 1500 else \"too much\";`"
        }
        "require" | "requires" | "permit" | "condition" => "write `allow amount <= 1500 else \"too much\";`",
        "ask" | "confirm" | "approval" | "review" | "human" => {
            "write `approve;` or `approve when amount > 50;`"
        }
        "bounds" => "each argument has a rule of its own: `bound body secret;`",
        "effect" => "the effect is a rule by itself: `reads;`, `writes;` or `pure;`",
        "fields" => "write `result \"[].id\" trusted;`",
        "limit" | "max_calls" | "times" | "rate" => "write `at_most 3;`",
        _ => return None,
    })
}

/// Returns whether a word can't be a name.
///
/// # Examples
/// ```
/// use syntax::agent::keywords::is_reserved;
/// assert!(is_reserved("let") && !is_reserved("agent"));
/// ```
pub fn is_reserved(word: &str) -> bool {
    TABLE.iter().any(|k| k.is_reserved && k.word == word)
}

/// Every word once, in the order of the table.
pub fn all() -> impl Iterator<Item = &'static str> + Clone {
    let first = |(i, k): &(usize, &Keyword)| !TABLE[..*i].iter().any(|o| o.word == k.word);
    TABLE.iter().enumerate().filter(first).map(|(_, k)| k.word)
}

/// Returns the explanation of a word in editors, if there is one.
pub fn about(word: &str) -> Option<&'static str> {
    TABLE.iter().find(|k| k.word == word && !k.about.is_empty()).map(|k| k.about)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_says_something_else() {
        for (i, k) in TABLE.iter().enumerate() {
            assert!(!TABLE[..i].iter().any(|o| o.word == k.word && o.role == k.role), "{k:?}");
        }
    }

    /// A word that the parser asks for has a row.
    #[test]
    fn the_parser_asks_for_no_other_word() {
        // Words of places where names stand, which no editor shows: units of bounds, methods, fields of
        // fields, and words of other languages.
        let others = ["unlimited", "approve", "no", "call", "refused", "snapshot", "lambda", "finally"];
        let parser = include_str!("parser.rs");
        let mut asked = Vec::new();
        for call in ["at_word(\"", "eat_word(\"", "expect_word(\""] {
            asked.extend(parser.split(call).skip(1).filter_map(|rest| rest.split('"').next()));
        }
        assert!(asked.len() > 40);
        for word in asked {
            let known = TABLE.iter().any(|k| k.word == word) || others.contains(&word);
            assert!(known, "`{word}` is not in the table");
        }
    }
}
