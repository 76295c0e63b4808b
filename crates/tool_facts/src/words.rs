//! Effects as far as the words of a name or a description tell. The weakest evidence.
//!
//! Names that are products, or verbs with one meaning, are listed here; any other name says nothing.

use crate::effect::Effect;
use crate::fact::{Confidence, Evidence, Fact, Knowledge, ToolFacts};
use diagnostics::Span;

/// Names with what they do; a name matches if it has these words in this order, one after the other.
const NAMES: &[(&[&str], &[Effect])] = {
    use Effect::*;
    &[
        (&["duckduckgo"], &[PublicRead]),
        (&["brave", "search"], &[PublicRead]),
        (&["tavily"], &[PublicRead]),
        (&["serper"], &[PublicRead]),
        (&["web", "search"], &[PublicRead]),
        (&["search", "web"], &[PublicRead]),
        (&["google", "search"], &[PublicRead]),
        (&["scrape", "website"], &[PublicRead]),
        (&["scrape", "web"], &[PublicRead]),
        (&["scrape", "page"], &[PublicRead]),
        (&["scrape", "url"], &[PublicRead]),
        (&["search", "twitter"], &[PublicRead]),
        (&["search", "tweets"], &[PublicRead]),
        (&["search", "reddit"], &[PublicRead]),
        (&["firecrawl"], &[PublicRead]),
        (&["playwright"], &[PublicRead, AddressRequest]),
        (&["puppeteer"], &[PublicRead, AddressRequest]),
        (&["fetch"], &[PublicRead, AddressRequest]),
        (&["web", "fetch"], &[PublicRead, AddressRequest]),
        (&["http", "request"], &[PublicRead, AddressRequest, ServiceWrite]),
        (&["filesystem"], &[FileRead, FileWrite]),
        (&["read", "file"], &[FileRead]),
        (&["file", "read"], &[FileRead]),
        (&["write", "file"], &[FileWrite]),
        (&["file", "write"], &[FileWrite]),
        (&["delete", "file"], &[FileWrite]),
        (&["postgres"], &[DatabaseRead]),
        (&["query", "database"], &[DatabaseRead]),
        (&["read", "email"], &[MailRead]),
        (&["list", "emails"], &[MailRead]),
        (&["read", "inbox"], &[MailRead]),
        (&["send", "email"], &[MailSend]),
        (&["send", "mail"], &[MailSend]),
        (&["email", "send"], &[MailSend]),
        (&["send", "message"], &[MessageSend]),
        (&["slack", "post", "message"], &[MessageSend]),
        (&["post", "tweet"], &[Publish]),
        (&["reply", "tweet"], &[Publish]),
        (&["quote", "tweet"], &[Publish]),
        (&["delete", "tweet"], &[AccountWrite]),
        (&["like", "tweet"], &[AccountWrite]),
        (&["retweet"], &[Publish]),
        (&["post", "comment"], &[Publish]),
        (&["create", "issue"], &[Publish]),
        (&["create", "pull", "request"], &[Publish]),
        (&["publish", "post"], &[Publish]),
        (&["create", "post"], &[Publish]),
        (&["delete", "email"], &[AccountWrite]),
        (&["reply", "email"], &[MailSend]),
        (&["draft", "email"], &[AccountWrite]),
        (&["create", "event"], &[AccountWrite]),
        (&["create", "calendar", "event"], &[AccountWrite]),
        (&["create", "meeting"], &[AccountWrite, MailSend]),
        (&["create", "google", "meeting"], &[AccountWrite, MailSend]),
        (&["schedule", "meeting"], &[AccountWrite, MailSend]),
        (&["book", "meeting"], &[AccountWrite, MailSend]),
        (&["book", "flight"], &[Payment]),
        (&["book", "hotel"], &[Payment]),
        (&["place", "order"], &[Payment]),
        (&["shell"], &[Process]),
        (&["bash"], &[Process]),
        (&["execute", "command"], &[Process]),
        (&["transfer", "money"], &[Payment]),
        (&["make", "payment"], &[Payment]),
    ]
};

/// Words of a description with what they say. Each is an order to the model that has one meaning.
const DESCRIPTIONS: &[(&[&str], &[Effect])] = {
    use Effect::*;
    &[
        (&["search", "the", "web"], &[PublicRead]),
        (&["search", "the", "internet"], &[PublicRead]),
        (&["fetch", "a", "web", "page"], &[PublicRead, AddressRequest]),
        (&["fetches", "a", "url"], &[PublicRead, AddressRequest]),
        (&["send", "an", "email"], &[MailSend]),
        (&["sends", "an", "email"], &[MailSend]),
        (&["read", "emails"], &[MailRead]),
        (&["execute", "a", "shell", "command"], &[Process]),
        (&["run", "a", "shell", "command"], &[Process]),
        (&["execute", "python", "code"], &[Code]),
        (&["run", "python", "code"], &[Code]),
        (&["query", "the", "database"], &[DatabaseRead]),
        (&["execute", "a", "sql", "query"], &[DatabaseRead, DatabaseWrite]),
        (&["transfer", "money"], &[Payment]),
    ]
};

/// Longer descriptions are not searched to their end.
const MAX_DESCRIPTION_LEN: usize = 4_000;

/// Returns what the words of a tool's name say; nothing for an unknown one.
///
/// # Examples
/// ```
/// use diagnostics::{FileId, Span};
/// let at = Span { file: FileId(0), start: 0, end: 0 };
/// assert!(tool_facts::by_name("spreadsheet_filed", at).facts.is_empty());
/// ```
pub fn by_name(name: &str, span: Span) -> ToolFacts {
    let evidence = |words: String| Evidence::Name { words: words.into(), span };
    guessed(NAMES, &words(name, 200), evidence)
}

/// Returns what the words of a description say.
pub(crate) fn by_description(description: &str, span: Span) -> ToolFacts {
    let evidence = |words: String| Evidence::Description { words: words.into(), span };
    guessed(DESCRIPTIONS, &words(description, MAX_DESCRIPTION_LEN), evidence)
}

fn guessed(
    table: &[(&[&str], &[Effect])],
    words: &[String],
    evidence: impl Fn(String) -> Evidence,
) -> ToolFacts {
    let mut facts = Vec::new();
    for (pattern, effects) in table {
        if words.windows(pattern.len()).any(|w| w == *pattern) {
            facts.extend(effects.iter().map(|effect| Fact {
                effect: *effect,
                evidence: evidence(pattern.join(" ")),
                confidence: Confidence::Guessed,
            }));
        }
    }
    let knowledge = if facts.is_empty() { Knowledge::Unknown } else { Knowledge::Partly };
    ToolFacts::of(facts, knowledge)
}

/// Verbs at the start of tool names whose effect on others can't be undone.
const ACTS: &[&str] = &[
    "send", "pay", "transfer", "charge", "refund", "purchase", "buy", "order", "book", "post", "publish",
    "tweet", "deploy", "delete", "create",
];

/// Returns true if a tool changes the world by its name: `send_email`, `createOrder`.
pub fn acts(name: &str) -> bool {
    let words = words(name.rsplit(['/', '.', ':']).next().unwrap_or(name), 200);
    words.len() > 1 && words.first().is_some_and(|w| ACTS.contains(&w.as_str()))
}

/// The words of a name in lower case: `SlackPostMessage`, `slack-post_message` and `slack post message` have
/// the same.
pub(crate) fn words(name: &str, most: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    let mut lower = false;
    for c in name.chars().take(most) {
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
    use diagnostics::FileId;

    const AT: Span = Span { file: FileId(0), start: 0, end: 0 };

    fn effects(facts: &ToolFacts) -> Vec<Effect> {
        facts.facts.iter().map(|f| f.effect).collect()
    }

    #[test]
    fn names_are_read_as_words() {
        assert_eq!(words("SlackPostMessage", 200), ["slack", "post", "message"]);
        assert_eq!(effects(&by_name("slack_post-message", AT)), [Effect::MessageSend]);
        assert_eq!(effects(&by_name("read_file", AT)), [Effect::FileRead]);
        assert_eq!(effects(&by_name("spreadsheet_filed", AT)), []);
        assert!(
            acts("send_email") && acts("crm/createOrder") && !acts("sender") && !acts("email_send_status")
        );
    }

    #[test]
    fn descriptions_are_read_as_words() {
        assert_eq!(effects(&by_description("Sends an email to a customer.", AT)), [Effect::MailSend]);
        assert_eq!(effects(&by_description("Says whether to send an emailed note", AT)), []);
    }
}
