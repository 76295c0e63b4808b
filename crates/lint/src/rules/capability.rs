//! Capabilities of tools, as far as their names tell.
//!
//! Configurations name tools and say nothing about them. Names that are products or verbs with one meaning
//! are listed here; any other tool is unknown, and a rule that needs to know says nothing about it.

/// Data that a tool passes between the agent and the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capability {
    /// Brings in text that anybody may have written: web pages, mail, issues.
    Untrusted,
    /// Brings in what is not meant for everybody: files, mail boxes, databases.
    Private,
    /// Lets others see what it is given: messages, requests, publications.
    Outward,
}

use Capability::{Outward, Private, Untrusted};

/// Names with what they do; a name matches if it has these words in this order, one after the other.
const NAMES: &[(&[&str], &[Capability])] = &[
    (&["duckduckgo"], &[Untrusted]),
    (&["brave", "search"], &[Untrusted]),
    (&["tavily"], &[Untrusted]),
    (&["serper"], &[Untrusted]),
    (&["web", "search"], &[Untrusted]),
    (&["search", "web"], &[Untrusted]),
    (&["google", "search"], &[Untrusted]),
    (&["scrape", "website"], &[Untrusted]),
    (&["firecrawl"], &[Untrusted]),
    (&["playwright"], &[Untrusted, Outward]),
    (&["puppeteer"], &[Untrusted, Outward]),
    (&["fetch"], &[Untrusted, Outward]),
    (&["web", "fetch"], &[Untrusted, Outward]),
    (&["http", "request"], &[Untrusted, Outward]),
    (&["filesystem"], &[Private]),
    (&["read", "file"], &[Private]),
    (&["file", "read"], &[Private]),
    (&["postgres"], &[Private]),
    (&["query", "database"], &[Private]),
    (&["read", "email"], &[Untrusted, Private]),
    (&["list", "emails"], &[Untrusted, Private]),
    (&["read", "inbox"], &[Untrusted, Private]),
    (&["send", "email"], &[Outward]),
    (&["send", "mail"], &[Outward]),
    (&["email", "send"], &[Outward]),
    (&["send", "message"], &[Outward]),
    (&["slack", "post", "message"], &[Outward]),
    (&["post", "tweet"], &[Outward]),
    (&["shell"], &[Private, Outward]),
    (&["bash"], &[Private, Outward]),
    (&["execute", "command"], &[Private, Outward]),
];

/// Returns the capabilities of a tool of this name; nothing for an unknown one.
pub(crate) fn of(name: &str) -> Vec<Capability> {
    let words = words(name);
    let mut all = Vec::new();
    for (pattern, does) in NAMES {
        if words.windows(pattern.len()).any(|w| w == *pattern) {
            all.extend(does.iter().filter(|c| !all.contains(*c)).copied().collect::<Vec<_>>());
        }
    }
    all
}

/// Verbs at the start of tool names whose effect on others can't be undone.
const ACTS: &[&str] = &[
    "send", "pay", "transfer", "charge", "refund", "purchase", "buy", "order", "book", "post", "publish",
    "tweet", "deploy", "delete", "create",
];

/// Returns true if a tool changes the world by its name: `send_email`, `createOrder`.
pub(crate) fn acts(name: &str) -> bool {
    let words = words(name.rsplit(['/', '.', ':']).next().unwrap_or(name));
    words.len() > 1 && words.first().is_some_and(|w| ACTS.contains(&w.as_str()))
}

/// The words of a name in lower case: `SlackPostMessage`, `slack-post_message` and `slack post message` have
/// the same.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    let mut lower = false;
    for c in name.chars().take(200) {
        if !c.is_alphanumeric() {
            open = false;
            continue;
        }
        if !open || (lower && c.is_uppercase()) {
            words.push(String::new());
        }
        open = true;
        lower = c.is_lowercase();
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_words() {
        assert_eq!(words("SlackPostMessage"), ["slack", "post", "message"]);
        assert_eq!(of("slack_post-message"), [Outward]);
        assert_eq!(of("read_file"), [Private]);
        assert_eq!(of("spreadsheet_filed"), []);
        assert!(
            acts("send_email") && acts("crm/createOrder") && !acts("sender") && !acts("email_send_status")
        );
    }
}
