//! Explanations of the diagnostics of documents and front ends, for `entail explain`.
//!
//! The examples are tests: each wrong one gives its code, each right one does not.

use crate::doc::codes as doc;
use crate::emit::codes as emit;
use diagnostics::Explanation;

/// Remedy of a diagnostic of these codes that names none of its own, if it has one.
///
/// # Examples
/// ```
/// use frontend_kit::codes::remedy;
/// assert_eq!(remedy("F004"), Some("define it, or correct the name"));
/// assert_eq!(remedy("L001"), None);
/// ```
pub fn remedy(code: &str) -> Option<&'static str> {
    Some(match code {
        doc::NOT_TEXT => "save the file as UTF-8",
        doc::SYNTAX => "correct the syntax: what follows is not checked until then",
        doc::LIMIT => "move data out of the configuration",
        doc::DUPLICATE_KEY => "remove one of the two",
        doc::TEMPLATE => "lint what the template renders to",
        doc::ALIAS => "define the anchor, or write the value out",
        doc::TRAILING => "remove what follows the value",
        doc::INCLUDE => "lint the file that it becomes when it is loaded",
        emit::WRONG_KIND => "give it a value of the kind that the framework takes",
        emit::UNKNOWN_KEY => "correct the name, or remove it",
        emit::UNDEFINED => "define it, or correct the name",
        emit::TOO_MUCH => "split it into smaller parts",
        emit::UNKNOWN_TYPE => "name a type that exists",
        emit::DUPLICATE => "rename one of the two",
        _ => return None,
    })
}

/// Every code of [`crate::doc`] and of the front ends, in order.
pub const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        code: doc::NOT_TEXT,
        title: "not a text in UTF-8",
        text: "The file holds bytes that are no UTF-8 text: it is binary, or in another encoding such as UTF-16 or Latin-1. \
               Save it as UTF-8.",
        wrong: "agentId: a\u{0}",
        right: "agentId: a",
    },
    Explanation {
        code: doc::SYNTAX,
        title: "neither YAML nor JSON, or no Python",
        text: "The text stops being YAML (or JSON, or Python, as its name says) at this place. What stands before it is still read.",
        wrong: "agentId: [a",
        right: "agentId: a",
    },
    Explanation {
        code: doc::LIMIT,
        title: "a file that is too large or nested too deep",
        text: "Configurations are read up to 8 MiB and up to a fixed depth, so that a hostile file costs little. Move data out of the configuration.",
        wrong: "",
        right: "agentId: a",
    },
    Explanation {
        code: doc::DUPLICATE_KEY,
        title: "one key twice in one mapping",
        text: "Loaders keep the first or the last silently, depending on the loader. The finding is at the last one, which is used here. Remove the others.",
        wrong: "agentId: a\nagentId: b",
        right: "agentId: a",
    },
    Explanation {
        code: doc::TEMPLATE,
        title: "a template",
        text: "The file has to be rendered (Helm, Jinja) before it is a configuration. Lint what the template renders to.",
        wrong: "{{- range .Values.agents }}\nagentId: {{ .name }}\n{{- end }}",
        right: "agentId: a",
    },
    Explanation {
        code: doc::ALIAS,
        title: "an anchor, alias or merge key that means nothing",
        text: "`<<` merges a mapping, or a list of mappings, into the one it stands in; an alias must not contain itself.",
        wrong: "<<: 5\nagentId: a",
        right: "agentId: &somebody a\nname: *somebody",
    },
    Explanation {
        code: doc::TRAILING,
        title: "text after the end of a JSON value",
        text: "A JSON file is one value. What follows it is not read.",
        wrong: "{\"agentId\": \"a\"} {\"agentId\": \"b\"}",
        right: "{\"agentId\": \"a\"}",
    },
    Explanation {
        code: doc::INCLUDE,
        title: "an included file that is not read",
        text: "The configuration names another file for inclusion. Files are linted one by one, so what it holds is not known here.",
        wrong: "<<: !include base.yaml\nagentId: a",
        right: "agentId: a",
    },
    Explanation {
        code: emit::WRONG_KIND,
        title: "a value of the wrong kind",
        text: "The key takes a value of another kind: a number where a text stands, a list where one name is meant.",
        wrong: "agentId: a\ntype: react\nmodel: m\nsystemPrompt: p\nreact: {maxSteps: many}",
        right: "agentId: a\ntype: react\nmodel: m\nsystemPrompt: p\nreact: {maxSteps: 20}",
    },
    Explanation {
        code: emit::UNKNOWN_KEY,
        title: "a key that the framework does not have",
        text: "The framework ignores the key or refuses it; it is most likely a slip of the pen.",
        wrong: "agentId: a\ntype: simple\nmodel: m\nsystemPromt: p",
        right: "agentId: a\ntype: simple\nmodel: m\nsystemPrompt: p",
    },
    Explanation {
        code: emit::UNUSED_KEY,
        title: "a key without a counterpart in the term",
        text: "The framework has the key, but nothing in the core term corresponds to it; what it does there does not happen here.",
        wrong: "researcher:\n  role: r\n  goal: g\n  backstory: b\n  verbose: true",
        right: "researcher:\n  role: r\n  goal: g\n  backstory: b",
    },
    Explanation {
        code: emit::UNDEFINED,
        title: "a name that nothing defines",
        text: "An agent, task or part is referred to and not defined in these files.",
        wrong: "agentId: a\ntype: chain\nagents: [b]",
        right: "agentId: a\ntype: simple\nmodel: m\nsystemPrompt: p",
    },
    Explanation {
        code: emit::TOO_MUCH,
        title: "agents within one another without end, or too many",
        text: "An agent contains itself, the configuration describes more than can be compiled, or a module of Python computes more than is followed: what it builds beyond that is not known.",
        wrong: "",
        right: "agentId: a\ntype: simple\nmodel: m\nsystemPrompt: p",
    },
    Explanation {
        code: emit::UNKNOWN_TYPE,
        title: "an agent type that does not exist",
        text: "The types are `simple`, `react`, `chain`, `router` and `parallel`.",
        wrong: "agentId: a\ntype: reactive\nmodel: m\nsystemPrompt: p",
        right: "agentId: a\ntype: react\nmodel: m\nsystemPrompt: p",
    },
    Explanation {
        code: emit::DUPLICATE,
        title: "a name that is given twice",
        text: "Tools, agents and routes are told apart by their names; the second one is left out. Two memories of one name that differ are refused: \
               a store has one declaration.",
        wrong: "agentId: a\ntype: react\nmodel: m\nsystemPrompt: p\nmcp: {localTools: [sum, sum]}",
        right: "agentId: a\ntype: react\nmodel: m\nsystemPrompt: p\nmcp: {localTools: [sum, terminate]}",
    },
    Explanation {
        code: emit::NOTHING,
        title: "a file that defines nothing that runs",
        text: "The file is of a format that is known, but no agent, task or workflow is in it: settings, models or tool servers only. \
               They are read where another file names them.",
        wrong: "apiVersion: kagent.dev/v1alpha2\nkind: ModelConfig\nmetadata: {name: fast}\nspec: {model: small}",
        right: "apiVersion: kagent.dev/v1alpha2\nkind: Agent\nmetadata: {name: a}\nspec: {declarative: {systemMessage: p}}",
    },
    Explanation {
        code: emit::NOT_COMPILED,
        title: "a construct that is not compiled",
        text: "The framework has this construct and the core term has an unknown part in its place, with its span: code in another \
               language, an image, or something that is not compiled yet. Everything around it is compiled and checked.",
        wrong: "agent_class: shop.agents.PriceAgent\nname: prices",
        right: "name: prices\nmodel: small\ninstruction: Say the price.",
    },
];
