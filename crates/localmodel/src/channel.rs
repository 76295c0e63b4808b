//! The noisy channel: an option is chosen by how likely it makes the input, not by how likely the input makes
//! the option.
//!
//! A small model is poor at naming a category, but tells well how a text of a category reads. So it is asked
//! to write a text of each category in turn, and the category is chosen under which the given text is
//! likeliest. The words of the question are those of the task: its instructions, what the input is called,
//! the name of the field or enumeration, the option and its description.
//!
//! Source: Min et al., "Noisy Channel Language Model Prompting for Few-Shot Text Classification", 2022, §3.

use crate::engine::Request;
use crate::tokens::{Message, Role};

/// Options beyond which the input is not scored under each.
pub(crate) const MAX_OPTIONS: usize = 16;

/// Leading tokens of the input that are scored.
pub(crate) const MAX_INPUT: usize = 256;

/// Tokens of a question. With [`MAX_OPTIONS`] and [`MAX_INPUT`] it bounds the cost of a choice.
pub(crate) const MAX_QUESTION: usize = 512;

/// Bytes of instructions that a question repeats. Longer ones are left out.
const MAX_INSTRUCTIONS: usize = 600;

/// Characters of the word that says what the input is.
const MAX_NAME: usize = 32;

/// One of the values that may follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    /// JSON text that remains to be written.
    pub(crate) rest: String,
    /// The value in words, if it has any.
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
}

/// Input of a task.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Input<'r> {
    /// Word for it, such as `ticket`.
    name: String,
    pub(crate) text: &'r str,
}

/// The input of a request: its only user message, after the instructions that end with a blank line. A
/// request with earlier answers has none, since its last message says nothing without them.
pub(crate) fn input(request: &Request) -> Option<Input<'_>> {
    let mut users = request.messages.iter().filter(|m| m.role == Role::User);
    let (Some(message), None) = (users.next(), users.next()) else { return None };
    if request.messages.iter().any(|m| m.role == Role::Assistant) {
        return None;
    }
    let text = message.content.split_once("\n\n").map_or(&*message.content, |(_, rest)| rest).trim();
    let (name, text) = match text.split_once(':') {
        Some((name, rest)) if is_name(name) && (rest.is_empty() || rest.starts_with(char::is_whitespace)) => {
            (in_words(name), rest.trim())
        }
        _ => (String::from("message"), text),
    };
    (!text.is_empty()).then_some(Input { name, text })
}

fn is_name(text: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-' || c == ' ';
    !text.is_empty() && text.len() <= MAX_NAME && text.chars().all(is_word) && text.split(' ').count() <= 3
}

/// A name of a program in words: `dueDate` and `due_date` are `due date`.
pub(crate) fn in_words(name: &str) -> String {
    let mut out = String::new();
    let mut after_lower = false;
    for c in name.chars() {
        if c == '_' {
            out.push(' ');
        } else if c.is_uppercase() {
            if after_lower {
                out.push(' ');
            }
            out.extend(c.to_lowercase());
        } else {
            out.push(c);
        }
        after_lower = c.is_lowercase() || c.is_numeric();
    }
    out
}

/// The conversation at whose end the input would be the answer, if `choice` were right. None for a choice
/// without a name.
pub(crate) fn question(
    request: &Request,
    input: &Input<'_>,
    field: &str,
    choice: &Choice,
) -> Option<Vec<Message>> {
    let name = choice.name.as_deref()?;
    let instructions = || request.messages.iter().filter(|m| m.role == Role::System);
    let is_short = instructions().map(|m| m.content.len()).sum::<usize>() <= MAX_INSTRUCTIONS;
    let mut messages: Vec<Message> = instructions().filter(|_| is_short).cloned().collect();
    let article = if input.name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    let option = match &choice.description {
        Some(description) => format!("{name} ({description})"),
        None => name.to_owned(),
    };
    messages.push(Message::user(format!("Write {article} {} of this {field}: {option}.", input.name)));
    Some(messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(messages: Vec<Message>) -> Request {
        Request::new(messages)
    }

    #[test]
    fn the_input_stands_behind_instructions() {
        for (content, name, text) in [
            ("Give its category.\n\nTicket: It is broken: help!", "ticket", "It is broken: help!"),
            (
                "Carry out the task `classify`.\n\nsupportTicket:\nIt is broken.",
                "support ticket",
                "It is broken.",
            ),
            ("It is broken.", "message", "It is broken."),
            ("Read this.\n\nOne.\n\nTwo.", "message", "One.\n\nTwo."),
            ("See https://example.org", "message", "See https://example.org"),
            ("I tell you once more: stop", "message", "I tell you once more: stop"),
        ] {
            let request = request(vec![Message::system("Help."), Message::user(content)]);
            assert_eq!(input(&request), Some(Input { name: name.into(), text }), "{content}");
        }
        for content in ["", "Give its category.\n\nTicket: "] {
            assert_eq!(input(&request(vec![Message::user(content)])), None, "{content}");
        }
    }

    #[test]
    fn a_conversation_has_no_input() {
        let (ask, answer) = (Message::user("Ticket: broken"), Message::assistant("Which one?"));
        assert_eq!(input(&request(vec![ask.clone(), answer])), None);
        assert_eq!(input(&request(vec![ask.clone(), ask])), None);
        assert_eq!(input(&request(vec![Message::system("Only instructions.")])), None);
    }

    #[test]
    fn the_question_is_made_of_the_words_of_the_task() {
        let request = request(vec![Message::system("You sort mail."), Message::user("E-mail: Buy now!")]);
        let input = input(&request).unwrap();
        let choice = |name: Option<&str>, description: Option<&str>| Choice {
            rest: String::new(),
            name: name.map(str::to_owned),
            description: description.map(str::to_owned),
        };
        let asked = |choice| question(&request, &input, "kind", &choice).map(|m| m[1].content.clone());
        assert_eq!(
            asked(choice(Some("spam"), Some("advertising"))).as_deref(),
            Some("Write an e-mail of this kind: spam (advertising).")
        );
        assert_eq!(
            asked(choice(Some("other"), None)).as_deref(),
            Some("Write an e-mail of this kind: other.")
        );
        assert_eq!(asked(choice(None, None)), None);
    }
}
