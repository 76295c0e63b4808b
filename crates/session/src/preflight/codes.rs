//! Mistakes in what a program is run with, with an explanation each.

use diagnostics::Explanation;

/// A tool whose handler is missing or can't be used.
pub const HANDLER: &str = "E001";
/// A model that can't be used.
pub const MODEL: &str = "E002";
/// A store whose backend is not configured.
pub const STORE: &str = "E003";
/// A setting of `entail.toml` that can't be used.
pub const SETTING: &str = "E004";

/// Every code of this part, in order.
pub const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        code: HANDLER,
        title: "tool without a usable handler",
        text: "The handler of a tool, in its body or in `[handlers]` of entail.toml, can't be used: an unknown \
               built-in tool, a brace that is not closed or names no parameter, an MCP server that the settings lack, \
               a file that is not there. No `try` and no `on_fail` catches this at run time: the run ends with the \
               error `configuration`. An empty body is left to the host: `entail check` says so and goes on, while \
               `run` and `serve` need a handler for it.",
        wrong: "tool shout(text: String) -> String pure { builtin \"text.uper\" }",
        right: "tool shout(text: String) -> String pure { builtin \"text.upper\" }",
    },
    Explanation {
        code: MODEL,
        title: "model that can't be used",
        text: "A call names a model whose entry in entail.toml is wrong: an unknown provider, a price below zero, \
               a script that can't be read. A key that is not set is no error of `entail check`, which runs where \
               there are no keys.",
        wrong: "",
        right: "",
    },
    Explanation {
        code: STORE,
        title: "store whose backend is not configured",
        text: "A memory names a backend for which entail.toml has no `[stores.NAME]`. Add one with `sqlite` or \
               `redis`, or leave the backend out to keep the store in the process.",
        wrong: "",
        right: "",
    },
    Explanation {
        code: SETTING,
        title: "setting that can't be used",
        text: "An entry of entail.toml is wrong, whether the program uses it or not: a model with an unknown provider, \
               an MCP server with neither `command` nor `url`.",
        wrong: "",
        right: "",
    },
];
