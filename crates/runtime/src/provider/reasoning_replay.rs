//! Replies of models in the encoding of their protocol, kept where a later request must repeat them
//! unchanged.
//!
//! A model that thinks before it calls a tool is sent its thoughts back with the results. They are signed:
//! whatever is told otherwise is refused. A conversation of the machine has the calls alone, so the words are
//! kept beside it, in the memory of the run and with the answer in its journal.
//!
//! Entry points: [`VerbatimReplies`] of a run, [`VerbatimReply`] of a question.
//!
//! Invariant: words are repeated only behind the conversation that they answered, and where the calls follow
//! that they made. So they tell a model nothing that it was not told then.
//! Invariant: at most [`MAX_REPLIES`] answers are kept, the latest.

use crate::journal::{ConversationLinks, Link};
use core_ir::{Data, Name};
use machine::{Message, Messages, Reply};
use serde_json::Value as Json;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Answers of a run whose words are kept; a conversation of more turns with a model that thinks loses the
/// oldest thoughts.
const MAX_REPLIES: usize = 4096;

/// An answer of a model in a conversation, in the words of its protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct VerbatimReply {
    /// The index of the message of its first call.
    pub at: usize,
    /// Number of its calls in the conversation: each is a message, followed by its result.
    pub calls: usize,
    /// The words.
    pub words: Arc<Json>,
    /// Length of the words as text.
    pub bytes: usize,
}

/// The words of a run's answers.
#[derive(Debug, Default)]
pub(crate) struct VerbatimReplies {
    links: Mutex<ConversationLinks>,
    /// By the conversation that they answered; there may be several where it was asked with several times.
    answers: HashMap<Link, Vec<Answer>>,
    order: VecDeque<Link>,
}

#[derive(Debug)]
struct Answer {
    calls: Vec<(Name, Data)>,
    words: Arc<Json>,
    bytes: usize,
}

impl VerbatimReplies {
    /// Keeps an answer to a conversation.
    pub(crate) fn keep(&mut self, asked: &Messages, reply: &Reply, words: Arc<Json>) {
        let calls = match reply {
            Reply::Text(_) => return,
            Reply::ToolCall { name, args } => vec![(name.clone(), args.clone())],
            Reply::ToolCalls(calls) => calls.clone(),
        };
        let link = self.links.get_mut().unwrap_or_else(PoisonError::into_inner).end(asked);
        let bytes = words.to_string().len();
        self.answers.entry(link).or_default().push(Answer { calls, words, bytes });
        self.order.push_back(link);
        if self.order.len() > MAX_REPLIES
            && let Some(oldest) = self.order.pop_front()
            && let Some(answers) = self.answers.get_mut(&oldest)
        {
            answers.remove(0);
            if answers.is_empty() {
                self.answers.remove(&oldest);
            }
        }
    }

    /// The answers in a conversation whose words are known, in their order.
    pub(crate) fn of(&self, messages: &Messages) -> Arc<[VerbatimReply]> {
        if self.answers.is_empty() {
            return Arc::default();
        }
        // The link before each message. A cache is whole at all times, also where somebody panicked.
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner).before_each(messages);
        let messages: Vec<&Message> = messages.iter().collect();
        let begins = |i: usize| {
            let call = messages[i].call.as_ref()?;
            let answers = self.answers.get(links.get(i)?)?;
            // Of several that are alike, the last.
            answers.iter().rev().find(|a| a.calls.first() == Some(&**call))
        };
        let mut out: Vec<VerbatimReply> = Vec::new();
        let mut i = 0;
        while i < messages.len() {
            let Some(answer) = begins(i) else {
                i += 1;
                continue;
            };
            // A call and its result take two messages.
            let is_there = |n: usize, call: &(Name, Data)| {
                let at = i + 2 * n;
                let is_it = messages.get(at).and_then(|m| m.call.as_deref()) == Some(call);
                is_it && at + 1 < messages.len() && (n == 0 || begins(at).is_none())
            };
            let calls = answer.calls.iter().enumerate().take_while(|(n, call)| is_there(*n, call)).count();
            if calls > 0 {
                let (words, bytes) = (answer.words.clone(), answer.bytes);
                out.push(VerbatimReply { at: i, calls, words, bytes });
            }
            i += 2 * calls.max(1);
        }
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::Role;
    use serde_json::json;

    fn said(role: Role, text: &str) -> Message {
        Message { role, content: text.into(), call: None }
    }

    fn call(name: &str) -> (Name, Data) {
        (name.into(), Data::record([]))
    }

    /// The messages of calls, each with its result.
    fn calls(names: &[&str]) -> Vec<Message> {
        let both = |n: &&str| {
            [
                Message { call: Some(Arc::new(call(n))), ..said(Role::Assistant, "{}") },
                said(Role::User, "done"),
            ]
        };
        names.iter().flat_map(both).collect()
    }

    fn places(kept: &VerbatimReplies, messages: &[Message]) -> Vec<(usize, usize, String)> {
        kept.of(&messages.to_vec().into()).iter().map(|s| (s.at, s.calls, s.words.to_string())).collect()
    }

    #[test]
    fn words_are_repeated_where_they_were_said_and_nowhere_else() {
        let mut kept = VerbatimReplies::default();
        let begin = vec![said(Role::User, "go")];
        let several = Reply::ToolCalls(vec![call("a"), call("b"), call("c")]);
        kept.keep(&begin.clone().into(), &several, Arc::new(json!(1)));
        let first = [begin.clone(), calls(&["a", "b"])].concat();
        let one = Reply::ToolCall { name: "d".into(), args: Data::record([]) };
        kept.keep(&first.clone().into(), &one, Arc::new(json!(2)));
        // The third call of the first answer was not made.
        let all = [first.clone(), calls(&["d"])].concat();
        let want = vec![(1, 2, "1".to_string()), (5, 1, "2".to_string())];
        assert_eq!(places(&kept, &all), want);
        // A call that has no result yet is not told.
        assert_eq!(places(&kept, &all[..all.len() - 1]), want[..1]);
        // Behind another conversation, or with another call, they are not known.
        let elsewhere = [vec![said(Role::User, "gone")], calls(&["a", "b"])].concat();
        assert_eq!(places(&kept, &elsewhere), []);
        assert_eq!(places(&kept, &[begin.clone(), calls(&["b"])].concat()), []);
        // Words that another answer contains too belong to that answer.
        let after = [begin.clone(), calls(&["a"])].concat();
        kept.keep(
            &after.into(),
            &Reply::ToolCall { name: "b".into(), args: Data::record([]) },
            Arc::new(json!(3)),
        );
        assert_eq!(places(&kept, &first), vec![(1, 1, "1".to_string()), (3, 1, "3".to_string())]);
        assert!(VerbatimReplies::default().of(&all.into()).is_empty());
    }

    #[test]
    fn the_latest_are_kept() {
        let mut kept = VerbatimReplies::default();
        let asked = |i: usize| vec![said(Role::User, &i.to_string())];
        for i in 0..=MAX_REPLIES {
            kept.keep(&asked(i).into(), &Reply::ToolCalls(vec![call("a")]), Arc::new(json!(i)));
        }
        let of = |i: usize| places(&kept, &[asked(i), calls(&["a"])].concat()).len();
        assert_eq!((of(0), of(1), of(MAX_REPLIES), kept.answers.len()), (0, 1, 1, MAX_REPLIES));
    }
}
