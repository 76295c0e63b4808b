//! Forms that untrusted text must have at a sink: `plain` of a tool's parameter and of the answer.
//!
//! Entry point: [`Plain::refused`]. The rules are about data alone: no label, network or clock is consulted.
//!
//! Invariant: linear in the text. What is matched is the text with its spellings folded ([`folded`]); what is
//! admitted from a request is compared as it is.
//!
//! Source: `docs/calculus.md` §10, plain text; `docs/policies.md`.

use crate::among::trimmed;
use crate::{Data, LabelSpec, Name};
use regex::{Regex, RegexBuilder};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::LazyLock;

/// Form that untrusted text must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Plain {
    /// No link, address, handle, phone or account number, unless it is a token of the request.
    NoLinks,
}

/// A closed form of a text or number: all of it matches a regular expression.
///
/// # Examples
/// ```
/// use core_ir::{Data, Pattern};
/// let code = Pattern::new("[0-9]{6}").unwrap();
/// assert!(code.matches(&Data::str("123456")) && !code.matches(&Data::str("123456, and pay eve")));
/// assert!(Pattern::new("(").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Pattern {
    text: Name,
    regex: Regex,
}

impl Pattern {
    /// The pattern that an expression says.
    ///
    /// # Errors
    /// The expression is none, or too large.
    pub fn new(text: &str) -> Result<Pattern, String> {
        let read = |text: &str| RegexBuilder::new(text).size_limit(MAX_PATTERN_BYTES).build();
        // By itself first, so that no bracket in it closes the one around it.
        let all = read(text).and_then(|_| read(&format!(r"\A(?:{text})\z")));
        let regex = all.map_err(|e| e.to_string().lines().last().unwrap_or_default().trim().to_string())?;
        Ok(Pattern { text: text.into(), regex })
    }

    /// The expression.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if it is known that no text has the form. It is not looked for whether an assertion, such
    /// as `^` in the middle, can ever hold.
    ///
    /// # Examples
    /// ```
    /// use core_ir::Pattern;
    /// assert!(Pattern::new("x[a&&b]").unwrap().matches_no_text());
    /// assert!(!Pattern::new("").unwrap().matches_no_text());
    /// ```
    pub fn matches_no_text(&self) -> bool {
        regex_syntax::parse(&self.text).is_ok_and(|hir| hir.properties().minimum_len().is_none())
    }

    /// Returns whether data has the form. `null` has: there is nothing.
    pub fn matches(&self, data: &Data) -> bool {
        match data {
            Data::Null => true,
            Data::Str(text) => self.regex.is_match(text),
            Data::Num(n) => self.regex.is_match(&n.to_string()),
            _ => false,
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

/// The largest program of a pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 16;

/// Kind of what leads out of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkKind {
    /// A URL, or the name or number of a host.
    Url,
    /// Markup of a link: Markdown or HTML.
    Markup,
    /// An e-mail address.
    Email,
    /// A handle such as `@name`.
    Handle,
    /// A phone or account number.
    Number,
    /// A long word of letters and digits: an account, key or address of a wallet.
    Identifier,
}

impl LinkKind {
    /// The kind with its article.
    pub fn describe(self) -> &'static str {
        match self {
            LinkKind::Url => "a link",
            LinkKind::Markup => "markup of a link",
            LinkKind::Email => "an e-mail address",
            LinkKind::Handle => "a handle",
            LinkKind::Number => "a phone or account number",
            LinkKind::Identifier => "an account number or key",
        }
    }
}

/// Part of a text that leads out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The kind.
    pub kind: LinkKind,
    /// The part, with its spelling folded.
    pub text: String,
}

/// Rules for the answer of a run, which is a sink like a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerSink {
    /// The highest label that the answer may have.
    pub bound: LabelSpec,
    /// Form of the answer, as far as it is untrusted.
    pub plain: Option<Plain>,
}

impl Default for AnswerSink {
    /// Everything is admitted.
    fn default() -> AnswerSink {
        AnswerSink { bound: LabelSpec::TOP, plain: None }
    }
}

impl Plain {
    /// All forms.
    pub const ALL: [Plain; 1] = [Plain::NoLinks];

    /// The name in policies and programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Plain::NoLinks => "no-links",
        }
    }

    /// The form of a name.
    pub fn named(name: &str) -> Option<Plain> {
        Plain::ALL.into_iter().find(|p| p.as_str() == name)
    }

    /// Steps that it takes to look at the texts of the data.
    pub fn cost(data: &Data) -> u64 {
        let (mut cost, mut rest) = (0, vec![data]);
        while let Some(data) = rest.pop() {
            cost += 1;
            match data {
                Data::Null | Data::Bool(_) | Data::Num(_) => {}
                Data::Str(text) => cost += text.len() as u64 / 16,
                Data::List(items) => rest.extend(items.iter()),
                Data::Record(fields) => rest.extend(fields.iter().map(|(_, d)| d)),
                Data::Pair(both) => rest.extend([&both.0, &both.1]),
                Data::Tag(_, payload) => rest.push(payload),
            }
        }
        cost
    }

    /// The first part of the data that the form refuses. `request` are the tokens of the request
    /// ([`crate::among::tokens`]): words that are one of them pass.
    ///
    /// # Examples
    /// ```
    /// use core_ir::{Data, LinkKind, Plain};
    /// let text = Data::str("The total is on https://bank.example/pay");
    /// assert_eq!(Plain::NoLinks.refused(&text, &[]).unwrap().kind, LinkKind::Url);
    /// let asked = [Data::str("https://bank.example/pay")];
    /// assert_eq!(Plain::NoLinks.refused(&text, &asked), None);
    /// assert_eq!(Plain::NoLinks.refused(&Data::str("The total is 98.70."), &[]), None);
    /// ```
    pub fn refused(self, data: &Data, request: &[Data]) -> Option<Link> {
        let allowed: HashSet<&str> = request
            .iter()
            .filter_map(|token| match token {
                Data::Str(text) => Some(&**text),
                _ => None,
            })
            .collect();
        // Data is at most `MAX_DATA_DEPTH` deep, so the work list is no longer than the data is large.
        let mut rest = vec![data];
        while let Some(data) = rest.pop() {
            let found = match data {
                Data::Null | Data::Bool(_) => None,
                Data::Num(_) if request.contains(data) => None,
                Data::Num(n) => link(&n.to_string(), &allowed),
                Data::Str(text) => link(text, &allowed),
                Data::List(items) => {
                    rest.extend(items.iter().rev());
                    None
                }
                Data::Record(fields) => {
                    rest.extend(fields.iter().rev().map(|(_, d)| d));
                    fields.iter().find_map(|(name, _)| link(name, &allowed))
                }
                Data::Pair(both) => {
                    rest.extend([&both.1, &both.0]);
                    None
                }
                Data::Tag(tag, payload) => {
                    rest.push(payload);
                    link(tag, &allowed)
                }
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

/// The first link of a text, of the kinds in their order.
fn link(text: &str, allowed: &HashSet<&str>) -> Option<Link> {
    let text = folded(&without_tokens(text, allowed));
    let found = |kind, text: &str| Some(Link { kind, text: text.to_string() });
    let first = |all: &[(LinkKind, &LazyLock<Regex>)]| {
        all.iter().find_map(|(kind, regex)| found(*kind, regex.find(&text)?.as_str()))
    };
    first(&[
        (LinkKind::Url, &SCHEME),
        (LinkKind::Url, &URI),
        (LinkKind::Markup, &MARKDOWN),
        (LinkKind::Markup, &HTML),
        (LinkKind::Email, &EMAIL),
        (LinkKind::Handle, &HANDLE),
        (LinkKind::Url, &SLASHES),
        (LinkKind::Url, &ADDRESS),
        (LinkKind::Url, &SPELLED),
    ])
    .or_else(|| found(LinkKind::Url, DOTTED.find_iter(&text).find(|m| is_host(m.as_str()))?.as_str()))
    .or_else(|| {
        let is_mixed = |w: &str| {
            w.contains(|c: char| c.is_ascii_digit()) && w.contains(|c: char| c.is_ascii_alphabetic())
        };
        let word = WORD.find_iter(&text).map(|m| m.as_str()).find(|w| is_mixed(w));
        found(LinkKind::Identifier, word?)
    })
    .or_else(|| found(LinkKind::Number, &long_number(&text)?))
}

/// The text without the words that are tokens of the request.
fn without_tokens(text: &str, allowed: &HashSet<&str>) -> String {
    if allowed.is_empty() {
        return text.to_string();
    }
    if allowed.contains(text.trim()) {
        return String::new();
    }
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        match allowed.contains(trimmed(word)) {
            // What stands around a token must not become one word.
            true => out.push_str(" ; "),
            false => out.push_str(word),
        }
        out.push_str(&piece[word.len()..]);
    }
    out
}

fn regex(pattern: &str) -> Regex {
    // INVARIANT: the patterns are those below, all of which a test compiles.
    #[allow(clippy::unwrap_used)]
    Regex::new(pattern).unwrap()
}

/// `scheme://`, and spellings that a reader mends.
static SCHEME: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"[a-z][a-z0-9+.\-]*\s?:\s?[/\\]{2}\S*|\bh(?:tt|xx|\*\*|__)ps?\s*:\S*|\bhxxps?\b|\bxn--\S*")
});

/// URIs without slashes.
static URI: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"\b(?:mailto|tel|sms|callto|javascript|vbscript|magnet|bitcoin|ethereum|skype|whatsapp|facetime|",
        r"blob|geo|sips?|xmpp|irc|webcal|zoommtg|wss?|ldap|urn):[^\s]+|\bdata:[a-z0-9.+\-/]*[;,]\S*"
    ))
});

static MARKDOWN: LazyLock<Regex> = LazyLock::new(|| regex(r"\]\([^)]*\)?"));

static HTML: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"</?(?:a|img|iframe|script|link|form|object|embed|svg|video|audio|base|meta|area|input)",
        r"(?:[\s/>]|$)|\b(?:href|src|srcset|formaction)\s*="
    ))
});

static EMAIL: LazyLock<Regex> = LazyLock::new(|| regex(r"[\w.+\-]+@[\w.\-]+"));

static HANDLE: LazyLock<Regex> = LazyLock::new(|| regex(r"@\w+"));

/// Shares, and URLs that leave out the scheme.
static SLASHES: LazyLock<Regex> = LazyLock::new(|| regex(r"(?:^|[^\w:/\\])[/\\]{2}\w\S*"));

/// Hosts by number, and the own one.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b0x[0-9a-f]{8}|\blocalhost\s?[:/]|",
        r"\b(?:[0-9a-f]{1,4}:){5,7}[0-9a-f]{1,4}\b|\b[0-9a-f]{1,4}(?::[0-9a-f]{1,4})*::[0-9a-f]{1,4}\b"
    ))
});

/// A host whose dots are words, or stand apart.
static SPELLED: LazyLock<Regex> =
    LazyLock::new(|| regex(&format!(r"[\w\-]+(?:\s+dot\s+|\s+\.\s*)(?:{})\b", SPELLED_TLDS.join("|"))));

/// Words that dots join.
static DOTTED: LazyLock<Regex> = LazyLock::new(|| regex(r"[\w\-]+(?:\.[\w\-]+)+"));

static WORD: LazyLock<Regex> = LazyLock::new(|| regex(r"[a-z0-9]{20,}"));

static DIGITS: LazyLock<Regex> = LazyLock::new(|| regex(r"\+?[(\[]?\d(?:[ \t\-./()\[\]_~*]{0,3}\d)*"));

/// Dates in digits, and times of the day.
static DATE: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"\d{4}[\-/.]\d{1,2}[\-/.]\d{1,2}|\d{1,2}[\-/.]\d{1,2}[\-/.]\d{4}|",
        r"\d{1,2}[\-/.]\d{1,2}[\-/.]\d{2}|\d{1,2}:\d{2}(?::\d{2})?"
    ))
});

/// Brackets around a dot, colon or at sign, by which a link is made harmless or hidden.
static BRACKETED: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\s*[\[({<]\s*(\.|dot|@|at|:|://|/)\s*[\])}>]\s*"));

/// Digits of a phone or account number at least.
const MIN_DIGITS: usize = 7;

/// Ends of host names that are no English words, for spelled names.
const SPELLED_TLDS: [&str; 19] = [
    "com", "net", "org", "info", "biz", "edu", "gov", "mil", "io", "ai", "co", "uk", "de", "fr", "ru", "cn",
    "eu", "xyz", "tk",
];

/// Ends of file names that are no ends of host names.
const EXTENSIONS: [&str; 58] = [
    "pdf", "txt", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "csv", "tsv", "json", "xml", "yaml", "yml",
    "toml", "ini", "log", "jpg", "jpeg", "png", "gif", "bmp", "webp", "tif", "tiff", "mp3", "mp4", "wav",
    "avi", "mkv", "gz", "tar", "rar", "bak", "tmp", "html", "htm", "css", "js", "ts", "jsx", "tsx", "java",
    "cpp", "hpp", "sql", "ipynb", "tex", "odt", "ods", "odp", "rtf", "ics", "eml", "lock", "exe", "dll",
    "bin",
];

/// Domains of countries, two letters each.
const COUNTRIES: &str = "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs \
     bt bv bw by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et \
     eu fi fj fk fm fo fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im \
     in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me \
     mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph \
     pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sk sl sm sn so sr ss st su sv sx sy sz \
     tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw";

/// True if words joined by dots may be the name of a host.
///
/// Any ending of letters may be one, since new ones are sold every year. Endings of files are none, and
/// neither are single letters, as in `e.g.`.
fn is_host(name: &str) -> bool {
    let labels: Vec<&str> = name.split('.').collect();
    let ending = |label: &&str| -> Option<String> {
        let letters: String = label.chars().take_while(|c| c.is_alphabetic()).collect();
        let rest = &label[letters.len()..];
        (letters.chars().count() > 1 && !rest.starts_with(char::is_numeric)).then_some(letters)
    };
    let is_known =
        |end: &String| SPELLED_TLDS.contains(&&**end) || COUNTRIES.split_whitespace().any(|c| c == end);
    if labels.iter().skip(1).filter_map(ending).any(|end| is_known(&end)) {
        return true;
    }
    // `12.Dec` is no host.
    let has_name = labels[..labels.len() - 1].iter().any(|l| l.contains(char::is_alphabetic));
    labels.last().and_then(ending).is_some_and(|end| has_name && !EXTENSIONS.contains(&&*end))
}

/// A number with at least [`MIN_DIGITS`] digits that is neither a date nor a span of years.
fn long_number(text: &str) -> Option<String> {
    let text = without_dates(text);
    let is_year = |group: &str| group.len() == 4 && (group.starts_with("19") || group.starts_with("20"));
    DIGITS.find_iter(&text).map(|m| m.as_str()).find_map(|found| {
        let groups: Vec<&str> =
            found.split(|c: char| !c.is_ascii_digit()).filter(|group| !group.is_empty()).collect();
        let digits: usize = groups.iter().map(|g| g.len()).sum();
        let years = groups.len() == 2 && groups.iter().all(|g| is_year(g));
        (digits >= MIN_DIGITS && !years).then(|| found.to_string())
    })
}

fn without_dates(text: &str) -> String {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit() || "-/.:".contains(c));
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for found in DATE.find_iter(text) {
        let mut after = text[found.end()..].chars();
        let next = after.next();
        // A sign may end the sentence.
        let ends = !joins(next) || !after.next().is_some_and(|c| c.is_ascii_digit());
        let ends = ends && !next.is_some_and(|c| c.is_ascii_digit());
        if ends && !joins(text[..found.start()].chars().next_back()) && is_date(found.as_str()) {
            out.push_str(&text[from..found.start()]);
            out.push_str(" ; ");
            from = found.end();
        }
    }
    out.push_str(&text[from..]);
    out
}

/// True for a plausible date or time.
fn is_date(text: &str) -> bool {
    let numbers: Vec<u32> =
        text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    let (year, days) = match numbers[..] {
        [hour, ref rest @ ..] if text.contains(':') => return hour < 24 && rest.iter().all(|n| *n < 60),
        [year, a, b] if year > 31 => (year, [a, b]),
        [a, b, year] => (year, [a, b]),
        _ => return false,
    };
    let plausible = days.iter().all(|n| (1..=31).contains(n)) && days.iter().any(|n| *n <= 12);
    plausible && ((1900..2100).contains(&year) || year < 100)
}

/// The text as a reader or a program that follows links may take it: escapes decoded, characters that can't
/// be seen removed, variants of letters, digits and signs folded to ASCII, all in lower case.
fn folded(text: &str) -> String {
    // Twice: what is decoded may be an escape.
    let text = unescaped(&unescaped(text));
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().filter(|c| !is_invisible(*c)).map(folded_char).peekable();
    let mut before = None;
    while let Some(c) = chars.next() {
        // Bullets are dots inside of a word only.
        let inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let c = if BULLETS.contains(&c) && inside(before) && inside(chars.peek().copied()) { '.' } else { c };
        out.extend(c.to_lowercase());
        before = Some(c);
    }
    let sign = |found: &regex::Captures<'_>| match &found[1] {
        "dot" => ".".to_string(),
        "at" => "@".to_string(),
        sign => sign.to_string(),
    };
    BRACKETED.replace_all(&out, sign).into_owned()
}

/// Escapes of HTML, URLs and programs, decoded as far as they are of printable characters.
fn unescaped(text: &str) -> String {
    if !text.contains(['&', '%', '\\']) {
        return text.to_string();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['&', '%', '\\']) {
        out.push_str(&rest[..at]);
        let (c, length) = escape(&rest[at..]);
        match c {
            Some(c) => out.push(c),
            None => {
                let _ = write!(out, "{}", &rest[at..at + length]);
            }
        }
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    out
}

/// The character that an escape denotes, and its length; without one, the length of its first character.
fn escape(text: &str) -> (Option<char>, usize) {
    const NAMED: [(&str, char); 12] = [
        ("&period;", '.'),
        ("&commat;", '@'),
        ("&colon;", ':'),
        ("&sol;", '/'),
        ("&bsol;", '\\'),
        ("&amp;", '&'),
        ("&lpar;", '('),
        ("&rpar;", ')'),
        ("&lsqb;", '['),
        ("&rsqb;", ']'),
        ("&lt;", '<'),
        ("&gt;", '>'),
    ];
    let none = (None, 1);
    if let Some((name, c)) = NAMED.iter().find(|(name, _)| text.starts_with(name)) {
        return (Some(*c), name.len());
    }
    let code = |digits: &str, radix: u32| {
        let c = u32::from_str_radix(digits, radix).ok().and_then(char::from_u32)?;
        (!c.is_control()).then_some(c)
    };
    let bytes = text.as_bytes();
    let hex = |from: usize, most: usize| {
        bytes.iter().skip(from).take(most).take_while(|b| b.is_ascii_hexdigit()).count()
    };
    match bytes {
        [b'&', b'#', b'x' | b'X', ..] => {
            let n = hex(3, 6);
            let end = 3 + n;
            (code(&text[3..end], 16), end + usize::from(bytes.get(end) == Some(&b';')))
        }
        [b'&', b'#', ..] => {
            let n = bytes.iter().skip(2).take(7).take_while(|b| b.is_ascii_digit()).count();
            let end = 2 + n;
            (code(&text[2..end], 10), end + usize::from(bytes.get(end) == Some(&b';')))
        }
        [b'%', ..] if hex(1, 2) == 2 => match code(&text[1..3], 16) {
            Some(c) if c.is_ascii() => (Some(c), 3),
            _ => none,
        },
        [b'\\', b'u', ..] if hex(2, 4) == 4 => (code(&text[2..6], 16), 6),
        [b'\\', b'x', ..] if hex(2, 2) == 2 => (code(&text[2..4], 16), 4),
        _ => none,
    }
}

/// Characters that show nothing, and marks that are set above or around others.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(u32::from(c),
        0x00AD | 0x034F | 0x061C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
        | 0x202A..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB
        | 0x0300..=0x036F | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x20D0..=0x20FF
        | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF)
        || (c.is_control() && !c.is_whitespace())
}

/// Dots that are also set before the items of a list.
const BULLETS: [char; 6] = ['\u{2022}', '\u{30FB}', '\u{FF65}', '\u{00B7}', '\u{2219}', '\u{22C5}'];

/// The first digits of decimal systems.
const ZEROS: [u32; 36] = [
    0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0DE6,
    0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0,
    0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10,
];

/// A variant of an ASCII character as that character.
fn folded_char(c: char) -> char {
    let n = u32::from(c);
    if n < 0x80 {
        return c;
    }
    let letter = |first: char, offset: u32| char::from_u32(u32::from(first) + offset).unwrap_or(c);
    if let Some(zero) = ZEROS.iter().find(|zero| (**zero..**zero + 10).contains(&n)) {
        return letter('0', n - zero);
    }
    match n {
        0xFF01..=0xFF5E => letter('!', n - 0xFF01),
        // Mathematical letters and digits.
        0x1D400..=0x1D6A3 => letter('a', (n - 0x1D400) % 26),
        0x1D7CE..=0x1D7FF => letter('0', (n - 0x1D7CE) % 10),
        0x1FBF0..=0x1FBF9 => letter('0', n - 0x1FBF0),
        // Letters and digits that are encircled, in brackets or in squares.
        0x249C..=0x24B5 => letter('a', n - 0x249C),
        0x24B6..=0x24CF => letter('a', n - 0x24B6),
        0x24D0..=0x24E9 => letter('a', n - 0x24D0),
        0x1F130..=0x1F149 => letter('a', n - 0x1F130),
        0x1F150..=0x1F169 => letter('a', n - 0x1F150),
        0x1F170..=0x1F189 => letter('a', n - 0x1F170),
        0x1F1E6..=0x1F1FF => letter('a', n - 0x1F1E6),
        0x2460..=0x2468 => letter('1', n - 0x2460),
        0x2474..=0x247C => letter('1', n - 0x2474),
        0x2488..=0x2490 => letter('1', n - 0x2488),
        0x2776..=0x277E => letter('1', n - 0x2776),
        0x2780..=0x2788 => letter('1', n - 0x2780),
        0x278A..=0x2792 => letter('1', n - 0x278A),
        0x24EA | 0x24FF | 0x1F10B | 0x1F10C => '0',
        0x2080..=0x2089 => letter('0', n - 0x2080),
        0x2070 => '0',
        0x00B9 => '1',
        0x00B2 => '2',
        0x00B3 => '3',
        0x2074..=0x2079 => letter('4', n - 0x2074),
        0x2102 | 0x212D => 'c',
        0x210A => 'g',
        0x210B..=0x210E => 'h',
        0x2110 | 0x2111 | 0x2139 => 'i',
        0x2112 | 0x2113 => 'l',
        0x2115 => 'n',
        0x2119 => 'p',
        0x211A => 'q',
        0x211B..=0x211D => 'r',
        0x2124 | 0x2128 => 'z',
        0x212C => 'b',
        0x212F | 0x2130 => 'e',
        0x2131 => 'f',
        0x2133 => 'm',
        0x2134 => 'o',
        // Dots.
        0x3002 | 0xFF61 | 0x2024 | 0x2027 | 0x06D4 | 0xFE52 | 0xA4F8 | 0x0701 | 0x0702 => '.',
        0xFE6B => '@',
        0xFE55 | 0x02D0 | 0xA789 | 0x2236 | 0xFE13 | 0x05C3 => ':',
        0x2044 | 0x2215 | 0x29F8 | 0x2571 | 0x27CB | 0x3033 => '/',
        0x29F5 | 0x2216 | 0xFE68 => '\\',
        0x2010..=0x2015 | 0x2212 | 0xFE58 | 0xFE63 | 0x2043 => '-',
        0x3010 | 0x3014 | 0x2772 => '[',
        0x3011 | 0x3015 | 0x2773 => ']',
        _ if c.is_whitespace() => ' ',
        _ => c,
    }
}

#[cfg(test)]
mod tests;
