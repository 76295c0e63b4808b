//! Keys, and how they are kept out of everything that is shown.
//!
//! Whoever writes the input of a program can include a list of words. If every word that is a secret were
//! replaced, the rest of the list would reveal the secret to the program, to models and to public tools. So
//! only unguessable secrets are replaced everywhere ([`is_guessable`]). Guessable ones are replaced only in
//! records, which no program reads: [`Redactor::for_records`].
//!
//! Invariant: which of the candidates in a text is a guessable secret shows in no value, conversation,
//! request or event.
//! Invariant: a secret is also found where it was written as base64 (by itself or within something longer, as
//! in `Authorization: Basic`; a character or two at its ends may stay), for an address, or as a string of
//! JSON within a text. Whoever means to hide it otherwise can: a tool that has it may do with it what it
//! likes.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use core_ir::{Data, Name};
use machine::{Derived, Messages};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Replacement for a secret.
const REDACTED: &str = "[redacted]";

/// Shorter texts are not searched for: replacing every `a` in a message would hide nothing and
/// destroy the message.
const MIN_SECRET_LEN: usize = 6;

/// Minimum number of matching base64 characters, too many for a coincidence.
const MIN_ENCODED_LEN: usize = 8;

/// A text that is never shown: `Debug` prints `[redacted]`, and there is no `Display`.
///
/// # Examples
/// ```
/// let key = runs::Secret::new("sk-123456");
/// assert_eq!(format!("{key:?}"), "[redacted]");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Keeps `text` secret. White space at its ends (a line break of the file it came from) is dropped.
    pub fn new(text: impl AsRef<str>) -> Secret {
        Secret(text.as_ref().trim().into())
    }

    /// The text, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// Bits of guessing that make a secret safe from lists of words: 2⁸⁰ candidates fill no page.
const UNGUESSABLE: f64 = 80.0;

/// Returns whether a list of candidates may contain a secret: whether it looks like words, names, dates and
/// numbers, and not like the key of a generator. Letters of one word count as one choice among 16,000, digits
/// in a row as at most 20 bits, and other characters as nothing.
fn is_guessable(text: &str) -> bool {
    const LETTER: f64 = 4.7;
    const WORD: f64 = 14.0;
    const DIGIT: f64 = 3.3;
    const NUMBER: f64 = 20.0;
    let class = |c: char| (c.is_alphabetic(), c.is_ascii_digit());
    let (mut bits, mut length, mut before) = (0.0, 0u32, '\0');
    let of = |c: char, length: u32| match class(c) {
        (true, _) => (LETTER * f64::from(length)).min(WORD),
        (_, true) => (DIGIT * f64::from(length)).min(NUMBER),
        _ => 0.0,
    };
    for c in text.chars() {
        let ends = class(c) != class(before) || (before.is_lowercase() && c.is_uppercase());
        if ends {
            bits += of(before, length);
            length = 0;
        }
        (length, before) = (length.saturating_add(1), c);
    }
    bits + of(before, length) < UNGUESSABLE
}

/// Replaces known unguessable secrets in texts, see `docs/security.md`. Cheap to clone; without secrets it
/// does nothing.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    known: Option<Arc<KnownSecrets>>,
    /// All secrets, guessable ones too.
    all: Option<Arc<KnownSecrets>>,
}

struct KnownSecrets {
    /// Every way in which each secret may be written; what contains another one is first.
    forms: Vec<Secret>,
    /// Looks for all of them at once; nothing if there are too many for that.
    search: Option<AhoCorasick>,
    /// Conversations that were searched, without secrets.
    conversations: Mutex<Derived<Messages>>,
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl KnownSecrets {
    /// Returns the searched forms of these secrets; `None` if there are none.
    fn of(secrets: Vec<Secret>) -> Option<Arc<KnownSecrets>> {
        let mut forms: Vec<Secret> = secrets.into_iter().flat_map(forms).collect();
        // A secret that contains another one is replaced first.
        forms.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.0.cmp(&b.0)));
        forms.dedup();
        if forms.is_empty() {
            return None;
        }
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(forms.iter().map(|s| &*s.0));
        Some(Arc::new(KnownSecrets { forms, search: search.ok(), conversations: Mutex::default() }))
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|b| [b >> 4, b & 15]).map(|d| char::from(DIGITS[usize::from(d)])).collect()
}

/// Everything but letters, digits and `-._~` as `%XX`.
pub fn percent_encoded(text: &str) -> String {
    let mut out = String::new();
    for b in text.bytes() {
        if b.is_ascii_alphanumeric() || b"-._~".contains(&b) {
            out.push(char::from(b));
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
    }
    out
}

/// Returns the spellings of a secret.
fn forms(secret: Secret) -> Vec<Secret> {
    let text = &*secret.0;
    let mut out: Vec<String> = Vec::new();
    let json = Json::from(text).to_string();
    out.extend(json.get(1..json.len().saturating_sub(1)).map(String::from));
    let address = percent_encoded(text);
    out.push(address.to_ascii_lowercase());
    out.push(address);
    // Three bytes are four characters, so the preceding text shifts the encoding by one of three offsets.
    // Characters that depend on the neighbors are left out.
    for (before, first) in [(0, 0), (1, 2), (2, 3)] {
        let bytes = [&[0; 2][..before], text.as_bytes()].concat();
        let encoded = STANDARD_NO_PAD.encode(&bytes);
        let whole = encoded.get(first..bytes.len() * 8 / 6).unwrap_or_default();
        if whole.len() >= MIN_ENCODED_LEN {
            out.push(whole.replace('+', "-").replace('/', "_"));
            out.push(whole.into());
        }
    }
    out.retain(|form| form != text);
    out.into_iter().map(|form| Secret(form.into())).chain([secret.clone()]).collect()
}

impl Redactor {
    /// Looks for these. Secrets of less than six bytes are ignored.
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Redactor {
        let all: Vec<Secret> = secrets.into_iter().filter(|s| s.0.len() >= MIN_SECRET_LEN).collect();
        let strong: Vec<Secret> = all.iter().filter(|s| !is_guessable(&s.0)).cloned().collect();
        let same = strong.len() == all.len();
        let known = KnownSecrets::of(strong);
        Redactor { all: if same { known.clone() } else { KnownSecrets::of(all) }, known }
    }

    /// Returns a redactor that also replaces guessable secrets, for traces, logs, telemetry and journals,
    /// which are for the operator. Its output must never get back into a run, nor to anyone who may choose
    /// the run's input.
    #[must_use]
    pub fn for_records(&self) -> Redactor {
        Redactor { known: self.all.clone(), all: self.all.clone() }
    }

    /// Returns whether the texts or names of a JSON value contain a secret.
    pub fn finds(&self, value: &Json) -> bool {
        // As in `json`, the depth is bounded.
        match value {
            Json::String(s) => matches!(self.text(s), Cow::Owned(_)),
            Json::Array(items) => items.iter().any(|i| self.finds(i)),
            Json::Object(fields) => {
                fields.iter().any(|(n, v)| matches!(self.text(n), Cow::Owned(_)) || self.finds(v))
            }
            _ => false,
        }
    }

    /// Returns true if there are no secrets to search for.
    pub fn is_idle(&self) -> bool {
        self.known.is_none()
    }

    /// The conversations that were searched before; `None` if there are no secrets to search for.
    pub(crate) fn conversations(&self) -> Option<MutexGuard<'_, Derived<Messages>>> {
        // What is remembered is whole at all times, also where somebody panicked.
        let conversations = &self.known.as_ref()?.conversations;
        Some(conversations.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The text without secrets.
    ///
    /// # Examples
    /// ```
    /// use runs::{Redactor, Secret};
    /// let r = Redactor::new([Secret::new("sk-4fT9zQ2LwX7cV5bN8mK3rJ6hP1"), Secret::new("sunshine")]);
    /// assert_eq!(r.text("bad key sk-4fT9zQ2LwX7cV5bN8mK3rJ6hP1"), "bad key [redacted]");
    /// assert_eq!(r.text("moonlight sunshine"), "moonlight sunshine");
    /// assert_eq!(r.for_records().text("moonlight sunshine"), "moonlight [redacted]");
    /// ```
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(known) = &self.known else { return Cow::Borrowed(text) };
        if let Some(search) = &known.search {
            if !search.is_match(text) {
                return Cow::Borrowed(text);
            }
            let mut out = String::with_capacity(text.len());
            search.replace_all_with(text, &mut out, |_, _, out| {
                out.push_str(REDACTED);
                true
            });
            return Cow::Owned(out);
        }
        let mut out = Cow::Borrowed(text);
        for secret in &known.forms {
            if out.contains(&*secret.0) {
                out = Cow::Owned(out.replace(&*secret.0, REDACTED));
            }
        }
        out
    }

    /// The text without secrets.
    pub fn owned(&self, text: String) -> String {
        match self.text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => clean,
        }
    }

    /// The text without secrets, the same allocation if there was none.
    pub fn shared(&self, text: &Arc<str>) -> Arc<str> {
        match self.text(text) {
            Cow::Borrowed(_) => text.clone(),
            Cow::Owned(clean) => clean.into(),
        }
    }

    /// The data without secrets in its texts and names.
    pub fn data(&self, data: &Data) -> Data {
        if self.is_idle() {
            return data.clone();
        }
        let name = |n: &Name| Name::from(&*self.text(n));
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || match data {
            Data::Null | Data::Bool(_) | Data::Num(_) => data.clone(),
            Data::Str(s) => Data::Str(self.shared(s)),
            Data::List(items) => Data::list(items.iter().map(|d| self.data(d))),
            Data::Record(fields) => Data::record(fields.iter().map(|(n, d)| (name(n), self.data(d)))),
            Data::Pair(p) => Data::Pair(Arc::new((self.data(&p.0), self.data(&p.1)))),
            Data::Tag(n, payload) => Data::Tag(name(n), Arc::new(self.data(payload))),
        })
    }

    /// Removes secrets from the texts and names of a JSON value. Parsing undoes escapes, so a secret
    /// that was written `sk\u002d123456` is found too.
    pub fn json(&self, value: &mut Json) {
        if self.is_idle() {
            return;
        }
        // The parser bounds the depth of what it accepts, so this recursion is bounded.
        match value {
            Json::String(s) => *s = self.owned(std::mem::take(s)),
            Json::Array(items) => items.iter_mut().for_each(|i| self.json(i)),
            Json::Object(fields) => {
                let old = std::mem::take(fields);
                for (name, mut part) in old {
                    self.json(&mut part);
                    fields.insert(self.owned(name), part);
                }
            }
            _ => {}
        }
    }
}

/// Removes secrets from a text that comes in pieces: what may be the beginning of one is held back until more
/// has come.
#[derive(Debug, Default)]
pub struct RedactedStream {
    held: String,
}

impl RedactedStream {
    /// Adds a piece of text and returns the text that can be shown now.
    pub fn push(&mut self, redactor: &Redactor, piece: &str) -> String {
        self.held.push_str(piece);
        let mut text = redactor.owned(std::mem::take(&mut self.held));
        let begins = |s: &Secret| {
            let most = s.0.len().saturating_sub(1).min(text.len());
            (1..=most).rev().find(|n| text.ends_with(s.0.get(..*n).unwrap_or("\0")))
        };
        let forms = redactor.known.iter().flat_map(|known| &known.forms);
        let keep = forms.filter_map(begins).max().unwrap_or(0);
        self.held = text.split_off(text.len() - keep);
        text
    }

    /// Returns the text held back so far.
    pub fn end(self, redactor: &Redactor) -> String {
        redactor.owned(self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_pieces_never_shows() {
        let r = Redactor::new([Secret::new("sk-plänted"), Secret::new("planned-ahead")]).for_records();
        let text = "a sk-plänted b sk-pl sk-sk-plänted planned-aheasplanned-ahead plan";
        let chars: Vec<char> = text.chars().collect();
        for size in 1..12 {
            let (mut stream, mut out) = (RedactedStream::default(), String::new());
            for piece in chars.chunks(size) {
                out += &stream.push(&r, &piece.iter().collect::<String>());
                assert!(!out.contains("sk-plä") || !out.contains("sk-plänt"), "{out}");
            }
            out += &stream.end(&r);
            assert_eq!(out, r.text(text), "{size}");
        }
    }

    #[test]
    fn a_secret_is_found_however_it_is_written() {
        let secret = "pä\"ss/w+rd?>~0123";
        let r = Redactor::new([Secret::new(secret), Secret::new("other-secret")]).for_records();
        let encode = |text: &str| STANDARD_NO_PAD.encode(text);
        for before in ["", "u", "us", "use", "user:"] {
            for after in ["", "1", "12", "123"] {
                let code = encode(&format!("{before}{secret}{after}"));
                for code in [code.replace('+', "-").replace('/', "_"), code] {
                    let shown = r.text(&format!("Basic {code}==")).into_owned();
                    // All but what its neighbors have a part in.
                    let left = shown.replace("Basic ", "").replace("==", "").replace("[redacted]", "");
                    let neighbors = (before.len() + after.len()).div_ceil(3) * 4 + 8;
                    assert!(shown.contains("[redacted]") && left.len() <= neighbors, "{code}: {shown}");
                }
            }
        }
        let address = percent_encoded(secret);
        let json = Json::from(secret).to_string();
        for text in
            [format!("?k={address}&x"), format!("?k={}&x", address.to_lowercase()), format!("\\{json}")]
        {
            let shown = r.text(&text).into_owned();
            assert!(shown.contains("[redacted]") && !shown.contains("0123"), "{shown}");
        }
        assert!(!format!("{r:?}").contains("0123"), "{r:?}");
        assert_eq!(r.text("nothing of it"), "nothing of it");
    }

    #[test]
    fn words_of_common_lists_are_guessable() {
        for text in [
            "sunshine",
            "hunter22",
            "Tr0ub4dor&3",
            "correct-horse-battery-staple",
            "MyD0gIsCalledR3x!2023",
            "P@ssw0rd2024!Company",
            "12345678901234567890123456789012",
            "postgres://admin:admin@db:5432/shop",
            "",
        ] {
            assert!(is_guessable(text), "{text}");
        }
        for text in [
            "9f86d081884c7d659a2feaa0c55ad015",
            "550e8400-e29b-41d4-a716-446655440000",
            "sk-proj-4fT9zQ2LwX7cV5bN8mK3rJ6hP1sD",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
        ] {
            assert!(!is_guessable(text), "{text}");
        }
    }

    #[test]
    fn a_list_of_words_is_the_same_whichever_of_them_is_a_password() {
        let page = "sunshine moonlight hunter22 c3Vuc2hpbmUhIQ== letmein1";
        let views = ["sunshine", "moonlight", "hunter22", "letmein1", "none of them"].map(|password| {
            let r = Redactor::new([Secret::new(password)]);
            let mut json = Json::from(page);
            r.json(&mut json);
            (r.text(page).into_owned(), r.data(&Data::str(page)), json)
        });
        assert!(views.iter().all(|v| *v == views[0]), "{views:?}");
    }

    #[test]
    fn secrets_are_replaced_wherever_they_stand() {
        let secrets = ["sk-planted", "sk-planted-long", "a"].map(Secret::new);
        let r = Redactor::new(secrets).for_records();
        assert_eq!(r.text("x sk-planted-long y sk-planted a"), "x [redacted] y [redacted] a");
        let mut j = serde_json::json!({"sk-planted": ["k=sk-planted", 1]});
        r.json(&mut j);
        assert_eq!(j, serde_json::json!({"[redacted]": ["k=[redacted]", 1]}));
        let d = Data::list([Data::Tag("t".into(), Arc::new(Data::str("sk-planted")))]);
        assert_eq!(r.data(&d), Data::list([Data::Tag("t".into(), Arc::new(Data::str("[redacted]")))]));
    }
}
