//! S001: a secret in a configuration.

use crate::{Check, FileContext, Rule};
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "S001",
    name: "secret-in-config",
    level: Level::Error,
    meaning: "a key is a literal of the program: whoever reads the file, a log or a trace of it has the key",
    docs: page!("../../../../docs/rules/S001-secret-in-config.md"),
    check: Check::File(check),
};

fn check(rule: &Rule, context: &FileContext<'_>, out: &mut Vec<Diagnostic>) {
    // An argument is named by the option before it: `["--api-key", "8e3a…"]`.
    let mut option: Option<String> = None;
    context.texts(&mut |key, text, span| {
        let before = option.take().filter(|_| is_command(key));
        let named = || {
            let (name, value) = match text.split_once('=') {
                Some((name, value)) if is_command(key) && name.starts_with('-') => (name, value),
                _ => (before.as_deref().unwrap_or(key), text),
            };
            named(name, value) || authorizes(name, value)
        };
        let like_a_key = || (named() || in_query(text)).then_some("a value that looks like a key");
        let kind = issued(text).or_else(like_a_key).or_else(|| in_authority(text).then_some("a password"));
        if let Some(kind) = kind {
            let mut d = rule.finding(format!("this file contains {kind}"), span).about(kind);
            // Whoever reads the report need not be allowed to read the key.
            d.hide_source = true;
            out.push(d.help("revoke it, and name an environment variable instead: `${NAME}`"));
        }
        option = (is_command(key) && text.starts_with('-')).then(|| text.to_string());
    });
}

/// Returns true if a key names the words of a command.
fn is_command(key: &str) -> bool {
    matches!(key, "args" | "command" | "cmd")
}

/// Returns true if a text is a credential of a header: `Authorization: Bearer 8e3a…`, either the header's
/// value or the whole line after `--header`.
fn authorizes(name: &str, text: &str) -> bool {
    let (name, value) = match text.split_once(':') {
        Some((name, value)) => (name, value.trim()),
        None => (name, text),
    };
    if named(name, value) {
        return true;
    }
    let name = name.to_ascii_lowercase();
    let schemes = ["Bearer ", "bearer ", "Basic ", "token ", "Token "];
    let value = schemes.iter().find_map(|s| value.strip_prefix(s)).unwrap_or(value);
    (name.ends_with("authorization") || name.ends_with("cookie"))
        && value.len() >= 20
        && value.bytes().all(|b| b.is_ascii_graphic())
        && is_random(value)
}

/// Returns true if a URL has a random-looking password for a host that is not local:
/// `postgresql://user:8e3a…@db.example.org/data`.
fn in_authority(text: &str) -> bool {
    const MIN_PASSWORD_LEN: usize = 12;
    text.match_indices("://").any(|(at, _)| {
        let rest = &text[at + 3..];
        let authority = &rest[..rest.find(['/', '?', '#', ' ', '"', '\'']).unwrap_or(rest.len())];
        let Some((user, host)) = authority.rsplit_once('@') else { return false };
        let Some((_, password)) = user.split_once(':') else { return false };
        password.len() >= MIN_PASSWORD_LEN
            && is_random(password)
            && !password.to_ascii_lowercase().contains("pass")
            && !super::s002_plain_http::is_near(super::s002_plain_http::host(host))
    })
}

/// Prefixes of keys that identify their issuer, with the minimum number of characters that follow.
const ISSUED: &[(&str, usize, &str)] = &[
    ("sk-ant-", 32, "a key of Anthropic"),
    ("sk-proj-", 32, "a key of OpenAI"),
    ("sk-or-v1-", 32, "a key of OpenRouter"),
    ("sk-", 32, "a key of OpenAI or a compatible service"),
    ("ghp_", 36, "a token of GitHub"),
    ("gho_", 36, "a token of GitHub"),
    ("github_pat_", 50, "a token of GitHub"),
    ("glpat-", 20, "a token of GitLab"),
    ("xoxb-", 24, "a token of Slack"),
    ("xoxp-", 24, "a token of Slack"),
    ("AKIA", 16, "a key of AWS"),
    ("AIza", 35, "a key of Google"),
    ("hf_", 30, "a token of Hugging Face"),
    ("gsk_", 40, "a key of Groq"),
    ("pplx-", 40, "a key of Perplexity"),
    ("r8_", 36, "a token of Replicate"),
    ("tvly-", 24, "a key of Tavily"),
    ("lsv2_pt_", 30, "a key of LangSmith"),
];

/// Length of the shortest key of [`ISSUED`]. Nearly all words are shorter, so this filter decides the speed
/// of the rule.
const MIN_KEY_LEN: usize = {
    let (mut shortest, mut i) = (usize::MAX, 0);
    while i < ISSUED.len() {
        let length = ISSUED[i].0.len() + ISSUED[i].1;
        shortest = if length < shortest { length } else { shortest };
        i += 1;
    }
    shortest
};

/// Issuer of the key in a text, if there is one.
fn issued(text: &str) -> Option<&'static str> {
    if has_private_key(text) {
        return Some("a private key");
    }
    long_words(text).find_map(|word| {
        let (prefix, least, what) = ISSUED.iter().find(|(prefix, ..)| word.starts_with(prefix))?;
        let rest = word.strip_prefix(prefix)?;
        (rest.len() >= *least && is_random(rest)).then_some(*what)
    })
}

/// Returns the words of letters, digits, `-` and `_` that are long enough for a key. Most of a shorter word
/// is not read: a word with [`MIN_KEY_LEN`] characters from a position contains the last of them.
fn long_words(text: &str) -> impl Iterator<Item = &str> {
    let inside = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    let mut start = 0;
    std::iter::from_fn(move || {
        loop {
            let least = text.as_bytes().get(start..start + MIN_KEY_LEN)?;
            if let Some(i) = least.iter().rposition(|b| !inside(b)) {
                start += i + 1;
                continue;
            }
            let rest = &text.as_bytes()[start..];
            let length = rest.iter().position(|b| !inside(b)).unwrap_or(rest.len());
            let word = text.get(start..start + length);
            start += length + 1;
            return word;
        }
    })
}

/// Returns true if a text contains a private key: the first line and the body that follows, not just the
/// words or a pattern that finds them.
fn has_private_key(text: &str) -> bool {
    text.split("-----BEGIN ").skip(1).any(|after| {
        let Some((kind, key)) = after.split_once("PRIVATE KEY-----") else { return false };
        let one_line = kind.len() < 24 && kind.chars().all(|c| c.is_ascii_uppercase() || c == ' ');
        // Lines end with a line break, or where that is written in a string, with `\\n`.
        let key = key.replace("\\n", "").replace("\\r", "");
        let letters = key.chars().filter(|c| !c.is_whitespace());
        let drawn =
            letters.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=')).take(40);
        one_line && drawn.count() == 40
    })
}

/// Returns true if a key of a mapping names a secret and the text is one.
fn named(key: &str, text: &str) -> bool {
    if text.len() < 20 || !text.bytes().all(|b| b.is_ascii_graphic()) {
        return false;
    }
    let letters: String =
        key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let names = ["apikey", "apitoken", "accesstoken", "authtoken", "secretkey", "clientsecret", "password"];
    (names.iter().any(|n| letters.ends_with(n)) || is_variable(key)) && is_random(text)
}

/// Returns true if a key is named like an environment variable that holds a secret: `NOTION_TOKEN`. Names
/// marked as public are excluded.
fn is_variable(key: &str) -> bool {
    let shouted = key.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    let secret =
        ["_TOKEN", "_SECRET", "_PAT", "_ACCESS_KEY", "_PRIVATE_KEY"].iter().any(|end| key.ends_with(end));
    shouted && secret && !key.contains("PUBLIC")
}

/// Returns true if an address has a key among its parameters: `…?q=x&appid=8e3a…`.
fn in_query(text: &str) -> bool {
    const NAMES: &[&str] =
        &["key", "apikey", "api_key", "api-key", "appid", "token", "access_token", "auth_token"];
    const MIN_VALUE_LEN: usize = 24;
    if text.len() < MIN_VALUE_LEN || !text.contains('=') {
        return false;
    }
    text.split(['?', '&']).skip(1).any(|parameter| {
        let Some((name, value)) = parameter.split_once('=') else { return false };
        let inside = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        let value = &value[..value.bytes().take_while(|b| inside(*b)).count()];
        value.len() >= MIN_VALUE_LEN && NAMES.iter().any(|n| name.eq_ignore_ascii_case(n)) && is_random(value)
    })
}

/// Returns true if a text looks random: letters and digits mixed, few repetitions, no word that marks an
/// example.
fn is_random(text: &str) -> bool {
    const EXAMPLES: &[&str] = &[
        "your",
        "xxx",
        "example",
        "placeholder",
        "change",
        "dummy",
        "insert",
        "replace",
        "here",
        "test",
        "fake",
        "1234567",
        "abcdefg",
    ];
    let lower = text.to_ascii_lowercase();
    // `sk-prod-token-abc-456`, `SECRET_TOOL_OUTPUT_123`: words, not characters, were chosen.
    let parts: Vec<&str> = text.split(['-', '_', '.']).filter(|p| !p.is_empty()).collect();
    let is_word = |p: &&&str| {
        let of_case = |is: fn(&u8) -> bool| p.bytes().all(|b| is(&b));
        p.len() < 12 && (of_case(u8::is_ascii_lowercase) || of_case(u8::is_ascii_uppercase))
    };
    let words = parts.iter().filter(is_word).count();
    if parts.len() > 2 && words * 2 > parts.len() {
        return false;
    }
    let placeholder = text.contains(['$', '{', '<', '*']) || EXAMPLES.iter().any(|e| lower.contains(e));
    let mut counts = [0u32; 256];
    text.bytes().for_each(|b| counts[usize::from(b)] += 1);
    let distinct = counts.iter().filter(|c| **c > 0).count();
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let letters = text.bytes().filter(u8::is_ascii_alphabetic).count();
    !placeholder && digits >= 2 && letters >= 2 && distinct >= 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_all_that_are_long_enough() {
        let inside = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let least = "a".repeat(MIN_KEY_LEN);
        let texts = [
            String::new(),
            least.clone(),
            format!("{least} {least}"),
            format!("é{least}é-{least}ö"),
            format!(" {} {least}b {}", &least[1..], &least[1..]),
            format!("{} {least}_", "ab ".repeat(30)),
            format!("{}é{}", &least[1..], &least[1..]),
        ];
        for text in &texts {
            let each: Vec<&str> = text.split(|c| !inside(c)).filter(|w| w.len() >= MIN_KEY_LEN).collect();
            assert_eq!(long_words(text).collect::<Vec<_>>(), each, "{text}");
        }
    }

    #[test]
    fn s001_ignores_placeholders() {
        let key = "sk-proj-a8Zk29fLq0XbVn37RtYcWm51HdPe64GjUo";
        assert_eq!(issued(key), Some("a key of OpenAI"));
        assert_eq!(issued(&format!("Bearer {key}")), Some("a key of OpenAI"));
        for text in [
            "sk-your-key-here-0000000000000000000000",
            "${OPENAI_API_KEY}",
            "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "sk-abcdefghijklmnopqrstuvwxyz0192837465",
            "task-12345678901234567890123456789012345",
            "EMPTY",
        ] {
            assert_eq!(issued(text), None, "{text}");
            assert!(!named("api_key", text), "{text}");
        }
        assert!(named("azure_api_key", "8f14e45fceea167a5a36dedd4bea2543"));
        assert!(!named("api_token", "sk-prod-token-abc-456"));
        assert!(!named("_TOOL_OUTPUT_SECRET", "SENSITIVE_OUTPUT_SCHEMA_SECRET_4207"));
        assert!(named("_TOOL_OUTPUT_SECRET", "KJ4ZQX_8F14E45F_CEEA167A5A36"));
        assert!(in_query("https://api.example.net/w.json?key=8f14e45fceea167a5a36dedd4bea2543&q="));
        assert!(!in_query("https://api.example.net/w.json?key=YOUR_API_KEY_0123456789012345&q="));
        assert!(!in_query("https://api.example.net/list?page=8f14e45fceea167a5a36dedd4bea2543"));
        assert!(!in_query("https://api.example.net/list?key="));
        assert!(named("NOTION_TOKEN", "8f14e45fceea167a5a36dedd4bea2543"));
        assert!(!named("NEXT_PUBLIC_MAP_TOKEN", "8f14e45fceea167a5a36dedd4bea2543"));
        assert!(!named("token", "8f14e45fceea167a5a36dedd4bea2543"));
        assert!(!named("max_tokens_key_name", "8f14e45fceea167a5a36dedd4bea2543"));
        assert!(!named("api_key", "the key of the house is under the mat 12"));
    }

    #[test]
    fn headers_and_addresses_may_hold_keys() {
        let key = "8f14e45fceea167a5a36dedd4bea2543";
        for (name, text) in [
            ("Authorization", format!("Bearer {key}")),
            ("authorization", key.to_string()),
            ("--header", format!("Authorization: Bearer {key}")),
            ("--header", format!("X-API-Key:{key}")),
            ("Proxy-Authorization", format!("Basic {key}")),
        ] {
            assert!(authorizes(name, &text), "{name} {text}");
        }
        for (name, text) in [
            ("Authorization", "Bearer ${TOKEN_OF_THE_SERVER_12}".to_string()),
            ("Authorization", "Bearer your-token-here-0123456789".to_string()),
            ("Accept", format!("application/{key}")),
            ("--header", format!("X-Request-Id: {key}")),
        ] {
            assert!(!authorizes(name, &text), "{name} {text}");
        }
        assert!(in_authority("postgresql://u:npg_8f14e45fceea1@db.example.org:5432/data?sslmode=require"));
        for text in [
            "postgresql://postgres:postgres@localhost:5432/data",
            "postgresql://u:8f14e45fceea167a@localhost:5432/data",
            "postgresql://user:password@db.example.org/data",
            "postgresql://u:${PASSWORD_OF_1_DB_2}@db.example.org/data",
            "https://db.example.org/a:b@c",
            "://",
        ] {
            assert!(!in_authority(text), "{text}");
        }
    }

    #[test]
    fn a_private_key_is_more_than_its_first_line() {
        let lines = "MIIEpAIBAAKCAQEA7bq9Zk29fLq0XbVn37RtYcWm51HdPe64GjUo\nAb3xYcWm51HdPe64GjUo".to_string();
        for text in [
            format!("-----BEGIN RSA PRIVATE KEY-----\n{lines}\n-----END RSA PRIVATE KEY-----"),
            format!("key = -----BEGIN PRIVATE KEY-----\\n{}", lines.replace('\n', "\\n")),
        ] {
            assert_eq!(issued(&text), Some("a private key"), "{text}");
        }
        for text in [
            "look for `-----BEGIN (RSA|EC|DSA|OPENSSH) PRIVATE KEY-----` in string literals",
            "look for -----BEGIN RSA PRIVATE KEY----- and for tokens that begin with sk- in each file of the project",
            "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        ] {
            assert_eq!(issued(text), None, "{text}");
        }
    }
}
