//! Codes of the audit, each with its explanation.

use diagnostics::Explanation;

/// A path on which outsiders run commands or code.
pub const RUNS: &str = "S301";
/// A path on which outsiders get private data.
pub const LEAKS: &str = "S302";
/// A path on which outsiders decide an action.
pub const ACTS: &str = "S303";
/// A program of which not all is known.
pub const UNKNOWN: &str = "S304";

/// Every code of the audit, in order.
pub const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        code: RUNS,
        title: "attack path: outsiders run commands or code",
        text: "Text that anyone may have written reaches a model, and this model, or one that gets its answer, calls a \
               tool that runs commands or code. Whoever writes the text can have the tool run what they want, with \
               the rights of the process. Let a person approve each call, run the tool in a sandbox without secrets \
               and network, or read the text in a conversation of its own and keep only a typed answer. `entail \
               explain S103` shows the last.",
        wrong: "",
        right: "",
    },
    Explanation {
        code: LEAKS,
        title: "attack path: outsiders get private data",
        text: "Text that anyone may have written and data that is not for everyone reach the same model, or models \
               that hand off to each other, and a tool shows others what it is given. Whoever writes the text can \
               have the data sent to them. Take one of the three away, or let a person approve what goes out.",
        wrong: "",
        right: "",
    },
    Explanation {
        code: ACTS,
        title: "attack path: outsiders decide an action",
        text: "Text that anyone may have written reaches a model that calls a tool which changes something: mail in \
               the user's name, files, a database, payments. Whoever writes the text can decide the call and its \
               arguments. Let a person approve the calls, or give the tool bounds in a policy: `entail audit \
               --policy-out` writes one.",
        wrong: "",
        right: "",
    },
    Explanation {
        code: UNKNOWN,
        title: "tool or program of which not all is known",
        text: "Nothing says what this tool does, or the analysis of the program was given up. Paths through it are not \
               found. Say what the tool does in a policy file, and check the program with `entail check --show flow \
               --policy`.",
        wrong: "",
        right: "",
    },
];
