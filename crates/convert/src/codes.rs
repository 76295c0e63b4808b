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
        title: "the output format cannot express this part",
        text: "`entail convert` writes a program only if it compiles to the same term again. The output format has no \
               notation for this part: a certain bound, a setting of a model, an unknown part. Nothing is left out \
               silently, so nothing is written. `--to lam` can express every program.",
        wrong: "\\x: Str. llm \"a\" {model: \"m\", max_tokens: 5} (llm \"b\" {model: \"m\"} \"begin\")",
        right: "llm \"a\" {model: \"m\", max_tokens: 5} >> llm \"b\" {model: \"m\"}",
    },
    Explanation {
        code: OURS,
        title: "only Entail reads this part",
        text: "The output format has no field for this part, so it is written as an extension. Entail reads it again. \
               Another runtime ignores it, and its agents may run longer than this program or behave in another way.",
        wrong: "tool f(input: Dyn) -> Dyn write\nfix[5] (\\self. \\x: Str. let t = llm \"a\" {model: \"m\", tools: [f], purpose: \"a\"} x in \
                case t of {f a => let o = tool[f] a in self \"{x}\\n[f] {o}\", final a => a})",
        right: "llm \"a\" {model: \"m\"}",
    },
];
