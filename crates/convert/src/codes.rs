//! Explanations of the findings of conversions, for `entail explain`.

use diagnostics::Explanation;

/// The target has no words for something.
pub const CANNOT: &str = "X001";
/// The target says something in words of ours.
pub const OURS: &str = "X002";

/// Each with a program that cannot be converted to Open Agent Spec and one that can, in `.lam`.
pub const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        code: CANNOT,
        title: "the target cannot say this",
        text: "`entail convert` writes a program only if it compiles to the same term again. What stands at this place has no words in \
               the target: a bound of a certain kind, a setting of a model, a part that is not known. Nothing is left out in silence, \
               so nothing is written. `--to lam` can say everything.",
        wrong: "\\x: Str. llm \"a\" {model: \"m\", max_tokens: 5} (llm \"b\" {model: \"m\"} \"begin\")",
        right: "llm \"a\" {model: \"m\", max_tokens: 5} >> llm \"b\" {model: \"m\"}",
    },
    Explanation {
        code: OURS,
        title: "only Entail reads this part",
        text: "The target has no words of its own for this, and a place for additions of others, where it stands now. Entail reads it \
               again; another runtime will ignore it, and its agents may run longer or otherwise than this program says.",
        wrong: "tool f(input: Dyn) -> Dyn write\nfix[5] (\\self. \\x: Str. let t = llm \"a\" {model: \"m\", tools: [f], purpose: \"a\"} x in \
                case t of {f a => let o = tool[f] a in self \"{x}\\n[f] {o}\", final a => a})",
        right: "llm \"a\" {model: \"m\"}",
    },
];
