//! Explanations of errors in policy files.

pub use diagnostics::Explanation;

/// No TOML.
pub const SYNTAX: &str = "S201";
/// A key that policies do not have.
pub const UNKNOWN_KEY: &str = "S202";
/// A value that the key does not take.
pub const WRONG_VALUE: &str = "S203";
/// A tool, parameter or principal that there is not.
pub const UNKNOWN_NAME: &str = "S204";

/// A policy function that is none.
pub const FUNCTION: &str = "S205";

/// A policy of a name where it can't be.
pub const MISPLACED: &str = "S206";

/// A label of a part that a tool's result can't have.
pub const PART: &str = "S207";
/// A delegation that is incomplete, or that no `[[delegate]]` admits.
pub const DELEGATION: &str = "S208";

/// A block of a program that the policy file contradicts.
pub const CONTRADICTION: &str = "S209";

/// A rule that is about nothing.
pub const UNUSED: &str = "S210";

/// A rule that another one replaces.
pub const REPLACED: &str = "S211";

/// A policy function that goes wrong on the arguments of its tool.
pub const WRONG_FUNCTION: &str = "S212";

/// A policy of a name that no policy file has. Its explanation is among those of the surface language.
pub const UNKNOWN: &str = "A086";

/// Every code of policy files, in order. The examples are policy files for a program with the tool
/// `send_mail(to, body)`, which says `policy outgoing`, and of its parameter `to`, `policy people`. Those of
/// [`CONTRADICTION`] are programs.
pub const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        code: SYNTAX,
        title: "policy file that is not TOML",
        text: "A policy file is TOML of at most one MiB. Nothing of it is applied before all of it can be read.",
        wrong: "[tools.send_mail\neffect = \"write\"",
        right: "[tools.send_mail]\neffect = \"write\"",
    },
    Explanation {
        code: UNKNOWN_KEY,
        title: "key that a policy does not have",
        text: "At the top there are `lattice`, `generated_endorse`, `principals`, `places`, `policies`, `tools`, `unknown_tools`, \
               `models`, `output` and `delegate`; for a tool or a policy of a name `effect`, `control`, `arguments`, `bounds`, `among`, `result`, `fields`, `readers`, `approve`, `plain`, `at_most`, `filter`, `handle` and `allow`; for a model \
               `clearance`, and for `output` also `bound` and `plain`. A slip must \
               not become a hole, so nothing is ignored.",
        wrong: "[tools.send_mail]\nefect = \"write\"",
        right: "[tools.send_mail]\neffect = \"write\"",
    },
    Explanation {
        code: WRONG_VALUE,
        title: "value that the key does not take",
        text: "Effects are `pure`, `read` and `write`. Labels are words out of `trusted`, `untrusted`, `public`, `secret` \
               and `any`, or a label of the lattice: `[\"U\", \"S\"]`, or `{ sources = […], readers = […] }`. As a bound, a \
               label is the most that may pass.",
        wrong: "[tools.send_mail]\neffect = \"send\"",
        right: "[tools.send_mail]\neffect = \"write\"\nbounds = { to = \"trusted\", body = \"secret\" }",
    },
    Explanation {
        code: UNKNOWN_NAME,
        title: "tool, parameter or principal that there is not",
        text: "The name is so near to one of the program that it is most likely a slip, or it names a parameter that the \
               tool does not have, or a principal that `principals` does not list. A policy may name tools of other \
               programs; those are passed over.",
        wrong: "[tools.send_mial]\neffect = \"write\"",
        right: "[tools.send_mail]\neffect = \"write\"",
    },
    Explanation {
        code: FUNCTION,
        title: "policy function that is none",
        text: "`allow` holds a function in the calculus. Before each call it is given a record with, for each argument, its \
               `value` and its `label`, and gives `true`, `false`, a text that says why not, or `` `ask ``, which leaves the \
               call to a person. So does `approve = { when = … }`, which gives a truth value. It asks nothing of the \
               world, declares no tool and reclassifies nothing. For programs in `.agent`, which have no prelude, it uses \
               operators and `prim[…](…)` only.",
        wrong: "[tools.send_mail]\nallow = 'a.to.value'",
        right: "[tools.send_mail]\nallow = '\\a. a.to.value == \"alice@example.org\"'",
    },
    Explanation {
        code: MISPLACED,
        title: "policy of a name that does not fit where it is named",
        text: "A policy that a program names at a parameter is about what is given as this parameter: it has `arguments`, \
               `approve` and `allow`, and its function is given the `value` and the `label` of the argument. What a tool \
               does, who decides, and what it returns belongs to a policy that is named at the tool. Several policies of \
               one tool all hold, so only one of them may give the same bound.",
        wrong: "[policies.outgoing]\n[policies.people]\neffect = \"read\"",
        right: "[policies.outgoing]\neffect = \"write\"\n[policies.people]\nallow = '\\v. v.value != \"all@example.org\"'",
    },
    Explanation {
        code: PART,
        title: "label of a part that the result does not have",
        text: "`fields` and `readers` label parts of what a tool returns, by their paths: `[]` is the items of a list, a name \
               is a field of a record, and `{*}` is all fields that no other path names. The type of the result must have \
               such parts. A label may depend on another field of the same record (`@sender`), and not on itself, also not \
               by way of other fields.",
        wrong: "[tools.send_mail]\nfields = { \"[].id\" = \"trusted\" }",
        right: "[tools.mystery]\nfields = { \"[].id\" = \"trusted\" }",
    },
    Explanation {
        code: DELEGATION,
        title: "delegation that is incomplete or not admitted",
        text: "A plan lets the data of somebody choose among calls (`delegate` in a plan). The policy has to say whose data \
               may choose, among which tools, and how many calls: a table `[[delegate]]` with `to`, `tools` and `at_most`. \
               Nothing is called before it does. The same sources have one table.",
        wrong: "[[delegate]]\nto = \"untrusted\"\ntools = [\"send_mail\"]",
        right: "[[delegate]]\nto = \"untrusted\"\ntools = [\"send_mail\"]\nat_most = 1",
    },
    Explanation {
        code: CONTRADICTION,
        title: "rule of a program that another one contradicts",
        text: "The block `policy { … }` of a program says each thing once, and has the lattice of the policy file if both name \
               one: labels mean one thing in a run. Other rules may stand in both; that of the file applies. This \
               example is a program.",
        wrong: "tool pay(amount: Number) -> String {}\npolicy { tool pay { at_most 1; at_most 2; } }",
        right: "tool pay(amount: Number) -> String {}\npolicy { tool pay { at_most 1; } }",
    },
    Explanation {
        code: UNUSED,
        title: "rule that is about nothing",
        text: "`entail policy check` compares a policy with the programs and servers that it is given. No tool has the name \
               of this table, no program names this policy, or what is delegated is the tool of no program. Where not all tools \
               are known (a server that nobody asked), nothing is said of names.",
        wrong: "[tools.book_flight]\neffect = \"write\"",
        right: "[tools.send_mail]\neffect = \"write\"",
    },
    Explanation {
        code: REPLACED,
        title: "rule that another one replaces",
        text: "What is applied later says the same part of the tool's declaration, for every call. The bounds of single \
               parameters stand above `arguments`, the table of a tool above the policies that a program names of it, the policy \
               file above the block of a program.",
        wrong: "[tools.send_mail]\narguments = \"trusted\"\nbounds = { to = \"trusted\", body = \"untrusted\" }",
        right: "[tools.send_mail]\narguments = \"trusted\"\nbounds = { body = \"untrusted\" }",
    },
    Explanation {
        code: WRONG_FUNCTION,
        title: "policy function that goes wrong on what it is given",
        text: "The function is given a record with a field for each parameter of the tool, and in it `value` and `label`. Here \
               it uses one that the tool doesn't have, or a value as another type than the parameter has. A call that gets \
               there is refused with an error of types. What `value` is where the type of a parameter isn't known is not \
               reported.",
        wrong: "[tools.send_mail]\nallow = '\\a. a.too.value == \"alice@example.org\"'",
        right: "[tools.send_mail]\nallow = '\\a. a.to.value == \"alice@example.org\"'",
    },
];
