//! Properties and cases of characters, as the methods of `str` have them.

use regex::Regex;
use std::sync::LazyLock;

/// Digits that are no decimal ones, such as `²`.
const DIGITS: &str = "\u{b2}\u{b3}\u{b9}\u{1369}-\u{1371}\u{19da}\u{2070}\u{2074}-\u{2079}\u{2080}-\u{2089}\
    \u{2460}-\u{2468}\u{2474}-\u{247c}\u{2488}-\u{2490}\u{24ea}\u{24f5}-\u{24fd}\u{24ff}\u{2776}-\u{277e}\
    \u{2780}-\u{2788}\u{278a}-\u{2792}\u{10a40}-\u{10a43}\u{10e60}-\u{10e68}\u{11052}-\u{1105a}\
    \u{1f100}-\u{1f10a}";

/// Letters that are numbers, such as `三`.
const NUMBERS: &str = "\u{3405}\u{3483}\u{382a}\u{3b4d}\u{4e00}\u{4e03}\u{4e07}\u{4e09}\u{4e5d}\u{4e8c}\
    \u{4e94}\u{4e96}\u{4ebf}-\u{4ec0}\u{4edf}\u{4ee8}\u{4f0d}\u{4f70}\u{5104}\u{5146}\u{5169}\u{516b}\u{516d}\
    \u{5341}\u{5343}-\u{5345}\u{534c}\u{53c1}-\u{53c4}\u{56db}\u{58f1}\u{58f9}\u{5e7a}\u{5efe}-\u{5eff}\
    \u{5f0c}-\u{5f0e}\u{5f10}\u{62fe}\u{634c}\u{67d2}\u{6f06}\u{7396}\u{767e}\u{8086}\u{842c}\u{8cae}\u{8cb3}\
    \u{8d30}\u{9621}\u{9646}\u{964c}\u{9678}\u{96f6}\u{f96b}\u{f973}\u{f978}\u{f9b2}\u{f9d1}\u{f9d3}\u{f9fd}\
    \u{20001}\u{20064}\u{200e2}\u{20121}\u{2092a}\u{20983}\u{2098c}\u{2099c}\u{20aea}\u{20afd}\u{20b19}\
    \u{22390}\u{22998}\u{23b1b}\u{2626d}\u{2f890}";

fn pattern(text: &str) -> Regex {
    // INVARIANT: the patterns below are constants, and a test compiles each.
    Regex::new(text).unwrap()
}

static ALPHA: LazyLock<Regex> = LazyLock::new(|| pattern(r"\A\p{L}+\z"));
static ALNUM: LazyLock<Regex> = LazyLock::new(|| pattern(r"\A[\p{L}\p{N}]+\z"));
static DECIMAL: LazyLock<Regex> = LazyLock::new(|| pattern(r"\A\p{Nd}+\z"));
static DIGIT: LazyLock<Regex> = LazyLock::new(|| pattern(&format!(r"\A[\p{{Nd}}{DIGITS}]+\z")));
static NUMERIC: LazyLock<Regex> = LazyLock::new(|| pattern(&format!(r"\A[\p{{N}}{NUMBERS}]+\z")));
static IDENTIFIER: LazyLock<Regex> = LazyLock::new(|| pattern(r"\A[\p{XID_Start}_]\p{XID_Continue}*\z"));
static HIDDEN: LazyLock<Regex> = LazyLock::new(|| pattern(r"\A[\p{C}\p{Z}]\z"));

/// The methods of `str` that test each character; `None` for another name.
pub(super) fn is(name: &str, s: &str) -> Option<bool> {
    Some(match name {
        "isalpha" => ALPHA.is_match(s),
        "isalnum" => ALNUM.is_match(s),
        "isdecimal" => DECIMAL.is_match(s),
        "isdigit" => DIGIT.is_match(s),
        "isnumeric" => NUMERIC.is_match(s),
        "isidentifier" => IDENTIFIER.is_match(s),
        "isupper" => s.chars().any(char::is_uppercase) && !s.chars().any(|c| c.is_lowercase() || is_title(c)),
        "islower" => s.chars().any(char::is_lowercase) && !s.chars().any(|c| c.is_uppercase() || is_title(c)),
        "istitle" => {
            let (mut inside, mut any) = (false, false);
            for c in s.chars() {
                let (upper, lower) = (c.is_uppercase() || is_title(c), c.is_lowercase());
                if upper && inside || lower && !inside {
                    return Some(false);
                }
                inside = upper || lower;
                any |= inside;
            }
            any
        }
        _ => return None,
    })
}

/// The value of a decimal digit of any script.
fn decimal(c: char) -> Option<u32> {
    let is_decimal = |c: u32| {
        let c = char::from_u32(c)?;
        (c.is_ascii_digit() || !c.is_ascii() && DECIMAL.is_match(c.encode_utf8(&mut [0; 4]))).then_some(())
    };
    let c = u32::from(c);
    is_decimal(c)?;
    // Digits stand together, from zero to nine, and the zero of the next ten may follow.
    let before = (1..50).take_while(|n| c.checked_sub(*n).and_then(is_decimal).is_some()).count();
    u32::try_from(before % 10).ok()
}

/// The text of a number with ASCII digits and without blanks around it.
pub(super) fn number_text(s: &str) -> String {
    let digit = |c: char| decimal(c).and_then(|n| char::from_digit(n, 10)).unwrap_or(c);
    s.trim().chars().map(digit).collect()
}

/// True if `repr` shows the character as it is.
pub(super) fn printable(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\0'..='\u{a0}' => false,
        c => !HIDDEN.is_match(c.encode_utf8(&mut [0; 4])),
    }
}

/// A letter of title case, such as `ǅ`.
fn is_title(c: char) -> bool {
    matches!(c, '\u{1c5}' | '\u{1c8}' | '\u{1cb}' | '\u{1f2}' | '\u{1f88}'..='\u{1f8f}' | '\u{1f98}'..='\u{1f9f}'
        | '\u{1fa8}'..='\u{1faf}' | '\u{1fbc}' | '\u{1fcc}' | '\u{1ffc}')
}

fn cased(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase() || is_title(c)
}

/// A letter at the beginning of a word: `ß` is `Ss`.
fn title_of(c: char, out: &mut String) {
    match c {
        '\u{149}' => out.push_str("\u{2bc}N"),
        '\u{1c4}'..='\u{1c6}' => out.push('\u{1c5}'),
        '\u{1c7}'..='\u{1c9}' => out.push('\u{1c8}'),
        '\u{1ca}'..='\u{1cc}' => out.push('\u{1cb}'),
        '\u{1f1}'..='\u{1f3}' => out.push('\u{1f2}'),
        // Georgian letters have capitals for whole texts only.
        '\u{10d0}'..='\u{10fa}' | '\u{10fd}'..='\u{10ff}' => out.push(c),
        c if is_title(c) => out.push(c),
        c => {
            let mut upper = c.to_uppercase();
            let Some(first) = upper.next() else { return };
            let rest: String = upper.collect();
            // A letter with an iota below keeps it below.
            let below = matches!(c, '\u{1f80}'..='\u{1faf}' | '\u{1fb2}'..='\u{1fb4}' | '\u{1fb7}'
                | '\u{1fc2}'..='\u{1fc4}' | '\u{1fc7}' | '\u{1ff2}'..='\u{1ff4}' | '\u{1ff7}');
            match (below, c) {
                (true, '\u{1f80}'..='\u{1faf}') => {
                    out.extend(char::from_u32(u32::from(c) | 8));
                }
                (true, '\u{1fb3}') => out.push('\u{1fbc}'),
                (true, '\u{1fc3}') => out.push('\u{1fcc}'),
                (true, '\u{1ff3}') => out.push('\u{1ffc}'),
                (true, _) => {
                    out.push(first);
                    out.push_str(&rest.replace('\u{399}', "\u{345}"));
                }
                (false, _) => {
                    out.push(first);
                    out.push_str(&rest.to_lowercase());
                }
            }
        }
    }
}

/// Each character with what it is in lower case in this text: a sigma at the end of a word has a form of its
/// own.
fn with_lower(s: &str) -> impl Iterator<Item = (char, String)> {
    let lowered: Vec<char> = s.to_lowercase().chars().collect();
    let mut at = 0;
    s.chars().map(move |c| {
        let from = at;
        at += c.to_lowercase().count();
        (c, lowered.get(from..at).unwrap_or_default().iter().collect())
    })
}

/// `s.title()`
pub(super) fn title(s: &str) -> String {
    let (mut out, mut inside) = (String::with_capacity(s.len()), false);
    for (c, lower) in with_lower(s) {
        if inside {
            out.push_str(&lower);
        } else {
            title_of(c, &mut out);
        }
        inside = cased(c);
    }
    out
}

/// `s.capitalize()`
pub(super) fn capitalize(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    for (i, (c, lower)) in with_lower(s).enumerate() {
        if i == 0 {
            title_of(c, &mut out);
        } else {
            out.push_str(&lower);
        }
    }
    out
}

/// `s.swapcase()`
pub(super) fn swapcase(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    for (c, lower) in with_lower(s) {
        if c.is_uppercase() {
            out.push_str(&lower);
        } else if c.is_lowercase() {
            out.extend(c.to_uppercase());
        } else {
            out.push(c);
        }
    }
    out
}

/// `s.casefold()`
pub(super) fn casefold(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    for c in s.chars() {
        match c {
            // These fold to capitals, or to themselves.
            '\u{13a0}'..='\u{13f5}' | '\u{131}' => out.push(c),
            '\u{13f8}'..='\u{13fd}' | '\u{ab70}'..='\u{abbf}' => out.extend(c.to_uppercase()),
            c => {
                let lower = c.to_lowercase();
                out.extend(lower.flat_map(char::to_uppercase).flat_map(char::to_lowercase));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_one() {
        for name in ["isalpha", "isalnum", "isdecimal", "isdigit", "isnumeric", "isidentifier"] {
            assert_eq!(is(name, ""), Some(false), "{name}");
        }
        assert!(printable('é') && !printable('\u{200b}') && !printable('\u{ad}') && !printable('\u{3000}'));
    }

    #[test]
    fn cases_are_those_of_cpython() {
        assert_eq!(title("they're ǆungla 日本x ΟΔΟΣ ŉ ᾳ"), "They'Re ǅungla 日本X Οδος ʼN ᾼ");
        assert_eq!(capitalize("ßAΣ"), "Ssaς");
        assert_eq!(swapcase("ǅaΣß"), "ǅAσSS");
        assert_eq!(casefold("Straße ẞ ﬁ ς ı İ Ꭰ"), "strasse ss fi σ ı i\u{307} Ꭰ");
        for (text, alpha, digit, numeric) in [
            ("ⅷ", false, false, true),
            ("²", false, true, true),
            ("三", true, false, true),
            ("ⓐ", false, false, false),
        ] {
            let of = |name| is(name, text) == Some(true);
            assert_eq!((of("isalpha"), of("isdigit"), of("isnumeric")), (alpha, digit, numeric), "{text}");
        }
    }
}
