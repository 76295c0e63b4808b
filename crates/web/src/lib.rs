//! The interface of the playground: a question in JSON, an answer in JSON.
//!
//! Entry point: [`answer`]. Built for `wasm32-unknown-unknown`, a page calls it through the exports of `abi`.
//!
//! Invariant: nothing is checked, explained or drawn here; what is said comes from the crates that the
//! command line stands on. Tests compare both.
//! Invariant: no file, clock or network. An answer depends on its question alone, and on which tables of
//! frameworks the page has supplied.
//! Invariant: places are in UTF-16 code units, as browsers count them.

#[cfg(target_family = "wasm")]
#[allow(unsafe_code, reason = "an export by name counts as unsafe; there is no other unsafe code")]
mod abi;
mod check;
mod editor;
mod places;
mod run;

use serde::Deserialize;
use serde_json::{Value, json};

/// A document, and the policy file that applies to it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    /// Its name; the extension says which language it is in.
    path: String,
    text: String,
    /// The text of a policy file.
    #[serde(default)]
    policy: Option<String>,
}

/// A question of the page.
#[derive(Debug, Deserialize)]
#[serde(tag = "query", rename_all = "camelCase")]
enum Query {
    /// Findings, and what each entry point entails.
    Check {
        #[serde(flatten)]
        document: Document,
    },
    /// The picture of an entry point.
    Picture {
        #[serde(flatten)]
        document: Document,
        entry: String,
    },
    /// The attack paths of a configuration or a program in Python.
    Audit {
        #[serde(flatten)]
        document: Document,
    },
    /// A run of an entry point on scripted answers.
    #[serde(rename_all = "camelCase")]
    Run {
        #[serde(flatten)]
        document: Document,
        entry: String,
        /// The input: JSON, or any text for an entry point that takes a text.
        input: Option<String>,
        /// The script: the JSON of `entail run --script`.
        script: String,
        /// Seconds since 1970 for tools that tell the time.
        now: u64,
    },
    /// An explanation of what stands at a place.
    Hover {
        #[serde(flatten)]
        document: Document,
        at: usize,
    },
    /// Texts that may stand at a place.
    Complete {
        #[serde(flatten)]
        document: Document,
        at: usize,
    },
    /// The document laid out.
    Format {
        #[serde(flatten)]
        document: Document,
    },
}

/// Answers a question. A question that can't be read has an answer with `error`.
///
/// # Examples
/// ```
/// let question = r#"{"query": "check", "path": "p.agent", "text": "pipeline p() -> String { return 1; }"}"#;
/// let answer: serde_json::Value = serde_json::from_str(&web::answer(question)).unwrap();
/// assert_eq!(answer["findings"][0]["code"], "A050");
/// ```
pub fn answer(question: &str) -> String {
    let answer = match serde_json::from_str(question) {
        Ok(Query::Check { document }) => check::check(&document),
        Ok(Query::Picture { document, entry }) => check::picture(&document, &entry),
        Ok(Query::Audit { document }) => check::audit(&document),
        Ok(Query::Run { document, entry, input, script, now }) => {
            run::run(&document, &run::Spec { entry, input, script, now })
        }
        Ok(Query::Hover { document, at }) => editor::hover(&document, at),
        Ok(Query::Complete { document, at }) => editor::complete(&document, at),
        Ok(Query::Format { document }) => editor::format(&document),
        Err(e) => json!({"error": format!("the question can't be read: {e}")}),
    };
    Value::to_string(&answer)
}
