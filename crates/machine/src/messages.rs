//! The messages of conversations, shared by requests and by branches.
//!
//! Entry points: [`Messages`], which requests have; [`Growing`], to which a run adds; [`Derived`], results
//! that somebody else computed of them.
//!
//! Invariant: messages never change, and each is kept once, however many requests and conversations have it.
//! So a conversation takes memory and time in proportion to its length, whoever keeps its requests.

use core_ir::{Data, Name, Role};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Role of the speaker.
    pub role: Role,
    /// The text.
    pub content: Arc<str>,
    /// The tool call that an assistant's message consists of. The next message with role tool is its result.
    pub call: Option<Arc<(Name, Data)>>,
}

/// Messages from the first one of a conversation on. A copy takes constant time.
///
/// # Examples
/// ```
/// use core_ir::Role;
/// use machine::{Message, Messages};
/// let say = |text: &str| Message { role: Role::User, content: text.into(), call: None };
/// let first = Messages::from(vec![say("a"), say("b")]);
/// let more = first.with([say("c")]);
/// assert_eq!((first.len(), more.len(), &*more.last().unwrap().content), (2, 3, "c"));
/// assert_eq!(more.shared_with(&first), 2);
/// let texts: Vec<&str> = more.iter().map(|m| &*m.content).collect();
/// assert_eq!(texts, ["a", "b", "c"]);
/// ```
#[derive(Clone, Default)]
pub struct Messages(Option<Arc<Part>>);

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Messages that were said since an earlier request, or since the conversation was copied.
#[derive(Debug)]
struct Part {
    before: Messages,
    own: Box<[Message]>,
    size: Size,
}

/// Sums over the messages of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of messages.
    pub messages: usize,
    /// Number of messages that are calls of tools.
    pub calls: usize,
    /// Number of messages with role tool: results of calls.
    pub results: usize,
    /// Bytes of their texts, and of the names of the tools that they call.
    pub bytes: usize,
}

impl Size {
    fn and(mut self, message: &Message) -> Size {
        self.messages += 1;
        self.results += usize::from(message.role == Role::Tool);
        self.bytes = self.bytes.saturating_add(message.content.len());
        if let Some(call) = &message.call {
            self.calls += 1;
            self.bytes = self.bytes.saturating_add(call.0.len());
        }
        self
    }
}

impl Drop for Part {
    /// One after the other: a run may have one for each of its steps.
    fn drop(&mut self) {
        let mut next = self.before.0.take();
        while let Some(mut part) = next.and_then(Arc::into_inner) {
            next = part.before.0.take();
        }
    }
}

impl Messages {
    /// Number of messages.
    pub fn len(&self) -> usize {
        self.size().messages
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Sums over the messages, in constant time.
    pub fn size(&self) -> Size {
        self.0.as_ref().map_or(Size::default(), |part| part.size)
    }

    /// The last message.
    pub fn last(&self) -> Option<&Message> {
        // INVARIANT: a part has at least one message.
        self.0.as_ref().and_then(|part| part.own.last())
    }

    /// The messages, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Message> {
        self.skip(0)
    }

    /// The messages but the first ones, oldest first. Takes time for those that it gives alone.
    pub fn skip(&self, count: usize) -> impl DoubleEndedIterator<Item = &Message> {
        let mut parts: Vec<&[Message]> = Vec::new();
        for part in self.parts() {
            let before = part.before.len();
            parts.push(&part.own[count.saturating_sub(before).min(part.own.len())..]);
            if before <= count {
                break;
            }
        }
        parts.reverse();
        parts.into_iter().flatten()
    }

    /// The messages, newest first. Takes time for those that are looked at alone.
    pub fn newest_first(&self) -> impl Iterator<Item = &Message> {
        self.parts().flat_map(|part| part.own.iter().rev())
    }

    /// The parts, the last one first.
    fn parts(&self) -> impl Iterator<Item = &Arc<Part>> {
        std::iter::successors(self.0.as_ref(), |part| part.before.0.as_ref())
    }

    /// These messages and further ones.
    #[must_use]
    pub fn with(&self, more: impl IntoIterator<Item = Message>) -> Messages {
        let own: Box<[Message]> = more.into_iter().collect();
        if own.is_empty() {
            return self.clone();
        }
        let size = own.iter().fold(self.size(), Size::and);
        Messages(Some(Arc::new(Part { before: self.clone(), own, size })))
    }

    /// Number of messages at the front that these have in common with others, as far as that shows without a
    /// look at texts: one conversation goes on where the other one ended, or both where a third one did.
    pub fn shared_with(&self, other: &Messages) -> usize {
        let (mut a, mut b) = (self, other);
        loop {
            match (&a.0, &b.0) {
                (Some(x), Some(y)) if Arc::ptr_eq(x, y) => return x.size.messages,
                (Some(x), Some(y)) if x.size.messages >= y.size.messages => a = &x.before,
                (Some(_), Some(y)) => b = &y.before,
                _ => return 0,
            }
        }
    }
}

impl Messages {
    /// Number of messages at the front that are equal to those of others.
    pub fn equal_at_front(&self, other: &Messages) -> usize {
        let shared = self.shared_with(other);
        shared + self.skip(shared).zip(other.skip(shared)).take_while(|(a, b)| a == b).count()
    }
}

impl PartialEq for Messages {
    fn eq(&self, other: &Messages) -> bool {
        self.size() == other.size() && self.equal_at_front(other) == self.len()
    }
}

impl Eq for Messages {}

impl From<Vec<Message>> for Messages {
    fn from(messages: Vec<Message>) -> Messages {
        Messages::default().with(messages)
    }
}

impl FromIterator<Message> for Messages {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Messages {
        Messages::default().with(messages)
    }
}

/// The most conversations of which a [`Derived`] remembers something; more than most programs have at once.
const MAX_DERIVED: usize = 1_024;

/// Results that are computed of conversations one message after the other: a hash, a copy without secrets.
/// They are remembered, so that of a conversation that goes on only what is new is looked at.
///
/// # Examples
/// ```
/// use core_ir::Role;
/// use machine::{Derived, Message, Messages};
/// let say = |text: &str| Message { role: Role::User, content: text.into(), call: None };
/// let (mut longest, mut seen) = (Derived::default(), 0);
/// let mut of = |messages: &Messages| {
///     longest.of(messages, 0, |most: usize, own| {
///         seen += own.len();
///         own.iter().map(|m| m.content.len()).fold(most, usize::max)
///     })
/// };
/// let first = Messages::from(vec![say("a"), say("bbb")]);
/// assert_eq!((of(&first), of(&first.with([say("cc")]))), (3, 3));
/// assert_eq!(seen, 3);
/// ```
#[derive(Debug)]
pub struct Derived<T> {
    /// By the address of the last part. It is kept, so that no other part has it; what it holds isn't.
    known: HashMap<usize, (Weak<Part>, T)>,
    /// The keys, the oldest first.
    order: VecDeque<usize>,
}

impl<T> Default for Derived<T> {
    fn default() -> Derived<T> {
        Derived { known: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T: Clone> Derived<T> {
    /// Returns the result for a conversation: `next` computes it from that for the messages before, and from
    /// some further ones.
    pub fn of(&mut self, messages: &Messages, empty: T, mut next: impl FnMut(T, &[Message]) -> T) -> T {
        let mut value = empty;
        let mut new = Vec::new();
        for part in messages.parts() {
            if let Some((_, known)) = self.known.get(&(Arc::as_ptr(part) as usize)) {
                value = known.clone();
                break;
            }
            new.push(part);
        }
        for part in new.into_iter().rev() {
            value = next(value, &part.own);
            self.keep(part, value.clone());
        }
        value
    }

    fn keep(&mut self, part: &Arc<Part>, value: T) {
        if self.known.len() >= MAX_DERIVED {
            // Of conversations that nobody has any more, nothing is asked again.
            self.known.retain(|_, (part, _)| part.strong_count() > 0);
            self.order.retain(|key| self.known.contains_key(key));
            while self.known.len() > MAX_DERIVED / 2
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
        }
        let key = Arc::as_ptr(part) as usize;
        self.known.insert(key, (Arc::downgrade(part), value));
        self.order.push_back(key);
    }

    /// Nothing is known.
    pub fn forget(&mut self) {
        *self = Derived::default();
    }
}

/// The messages of a conversation of a run: those that are shared with requests and other conversations, and
/// later ones. To say something costs no counting of shares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Growing {
    shared: Messages,
    own: Vec<Message>,
}

impl Growing {
    pub(crate) fn push(&mut self, message: Message) {
        self.own.push(message);
    }

    /// All of them, for a request or for another conversation that goes on from here.
    pub(crate) fn share(&mut self) -> Messages {
        if !self.own.is_empty() {
            self.shared = self.shared.with(self.own.drain(..));
        }
        self.shared.clone()
    }

    /// A copy that continues by itself.
    pub(crate) fn copy(&mut self) -> Growing {
        Growing { shared: self.share(), own: Vec::new() }
    }

    /// Gives back room that is not needed now.
    pub(crate) fn fit(&mut self) {
        if self.own.is_empty() {
            self.own = Vec::new();
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Message> {
        self.shared.iter().chain(&self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &Arc<str>) -> Message {
        Message { role: Role::User, content: text.clone(), call: None }
    }

    fn numbered(n: usize) -> Message {
        message(&n.to_string().into())
    }

    /// Branches inside of branches once had a copy of every message each.
    #[test]
    fn a_message_is_kept_once_however_often_its_conversation_is_copied() {
        let text: Arc<str> = "first".into();
        let mut messages = Growing::default();
        messages.push(message(&text));
        let mut kept = Vec::new();
        for n in 0..100_000 {
            let mut copy = messages.copy();
            copy.push(numbered(n));
            kept.push(std::mem::replace(&mut messages, copy));
        }
        assert_eq!(Arc::strong_count(&text), 2);
        let sent: Vec<Message> = messages.share().iter().cloned().collect();
        assert_eq!((sent.len(), &*sent[0].content, &*sent[100_000].content), (100_001, "first", "99999"));
        drop(kept);
    }

    /// A trace keeps the requests of a conversation, which must not copy it for each.
    #[test]
    fn a_message_is_kept_once_however_many_requests_are_kept() {
        let text: Arc<str> = "first".into();
        let mut messages = Growing::default();
        messages.push(message(&text));
        let requests: Vec<Messages> = (0..1_000)
            .map(|n| {
                messages.push(numbered(n));
                messages.share()
            })
            .collect();
        assert_eq!(Arc::strong_count(&text), 2);
        for (n, request) in requests.iter().enumerate() {
            assert_eq!(
                (request.len(), request.size().bytes),
                (n + 2, request.iter().map(|m| m.content.len()).sum())
            );
            assert_eq!(request.last().map(|m| m.content.to_string()), Some(n.to_string()));
        }
        assert_eq!(
            (requests[999].shared_with(&requests[10]), requests[10].shared_with(&requests[999])),
            (12, 12)
        );
        // What a later one adds is found without a look at the rest.
        assert!(requests[999].skip(1_000).eq(&[numbered(999)]));
    }

    #[test]
    fn a_copy_and_what_it_was_copied_from_go_on_by_themselves() {
        let texts: [Arc<str>; 3] = ["a".into(), "b".into(), "c".into()];
        let mut one = Growing::default();
        one.push(message(&texts[0]));
        let mut other = one.copy();
        one.push(message(&texts[1]));
        other.push(message(&texts[2]));
        let said = |m: &Growing| m.iter().map(|m| m.content.to_string()).collect::<Vec<_>>();
        assert_eq!((said(&one), said(&other)), (vec!["a".into(), "b".into()], vec!["a".into(), "c".into()]));
        let (one, other) = (one.share(), other.share());
        assert_eq!((one.shared_with(&other), one == other), (1, false));
    }

    /// Each message is looked at once, in a conversation that goes on and in those that branch off.
    #[test]
    fn derived_values_of_a_conversation_look_at_new_messages_alone() {
        let mut derived = Derived::default();
        let mut looked_at = 0;
        let mut of = |messages: &Messages| {
            derived.of(messages, String::new(), |text, own| {
                looked_at += own.len();
                own.iter().fold(text, |text, m| text + &m.content)
            })
        };
        let mut all = Messages::default();
        assert_eq!(of(&all), "");
        for n in 0..9 {
            all = all.with([numbered(n)]);
            assert_eq!(of(&all), (0..=n).map(|n| n.to_string()).collect::<String>());
            assert!(of(&all.with([numbered(0)])).ends_with('0'));
        }
        assert_eq!(looked_at, 18);
        // However long it is, little is remembered.
        let mut derived = Derived::default();
        for n in 0..5_000 {
            all = all.with([numbered(n)]);
            assert_eq!(derived.of(&all, 0, |count, own| count + own.len()), all.len());
            assert!(derived.known.len() <= MAX_DERIVED && derived.order.len() == derived.known.len());
        }
    }

    #[test]
    fn messages_are_equal_however_they_are_shared() {
        let all: Vec<Message> = (0..5).map(numbered).collect();
        let one = Messages::from(all.clone());
        let other = Messages::from(all[..2].to_vec()).with(all[2..].to_vec());
        assert_eq!((one.shared_with(&other), one == other), (0, true));
        assert!(one.iter().rev().eq(all.iter().rev()) && other.skip(1).eq(&all[1..]));
        assert!(other.skip(3).eq(&all[3..]) && other.skip(9).count() == 0);
        assert_ne!(one, Messages::from(all[..4].to_vec()));
        assert_eq!(one.with([]).len(), 5);
    }
}
