//! Callers: who reaches a server, what each may do, and how its input and its view are labeled.
//!
//! Entry points: [`Callers::of`] reads `[callers.NAME]` and `[serve]` of `entail.toml`; [`Callers::by_token`]
//! and [`Callers::by_name`] tell who asks.
//!
//! Invariant: a caller that approves is known by the hash of its token alone, which neither the settings nor
//! the environment of the server reveal.
//! Invariant: no caller both starts runs and approves calls.

use core_ir::{Data, LabelSpec, Num};
use policy::{LABEL_WORDS, label_words};
use runtime::{Environment, Limits, Secret};
use serde::{Deserialize, Deserializer};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Name of the user of this machine who calls a server without a credential.
pub const LOCAL: &str = "local";
/// Name of the caller with the token of `--token-env`.
pub const TOKEN: &str = "token";
/// Name of the client of `entail mcp`.
pub const MCP: &str = "mcp";

/// The most characters of a caller's name.
const MAX_NAME: usize = 64;

/// `[serve]` of `entail.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServeEntry {
    /// The header in which a proxy on this machine states the name of a client that it has verified (mutual
    /// TLS).
    pub client_name_header: Option<String>,
    /// Seconds within which the head of a request has to arrive; 15 without it.
    pub head_timeout: Option<f64>,
    /// Seconds within which the body of a request has to arrive; 30 without it.
    pub body_timeout: Option<f64>,
}

impl ServeEntry {
    /// Times within which the head and the body of a request have to arrive.
    ///
    /// # Errors
    /// A number that is no time, in words for people.
    pub fn timeouts(&self) -> Result<(Duration, Duration), String> {
        let time = |key: &str, given: Option<f64>, usual: f64| {
            crate::limits::seconds(key, given.unwrap_or(usual))
                .map_err(|why| format!("`[serve]` is wrong: {why}"))
        };
        Ok((time("head_timeout", self.head_timeout, 15.0)?, time("body_timeout", self.body_timeout, 30.0)?))
    }
}

/// One `[callers.NAME]` of `entail.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CallerEntry {
    /// SHA-256 of its bearer token as 64 hexadecimal digits.
    token_sha256: Option<String>,
    /// The variable that holds its bearer token.
    token_env: Option<String>,
    /// Its name in the header of `[serve]`.
    client_name: Option<String>,
    /// Its roles; `start` and `watch` if absent.
    roles: Option<Vec<Role>>,
    /// Label of its input; `untrusted` without it.
    input: Option<LabelEntry>,
    /// The most that it is shown; `untrusted` without it.
    clearance: Option<LabelEntry>,
    /// Limits on its use of the server.
    limits: CallerLimits,
}

/// A label in words, or a label of the lattice.
#[derive(Clone, Debug)]
struct LabelEntry(LabelSpec);

impl<'de> Deserialize<'de> for LabelEntry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<LabelEntry, D::Error> {
        use serde::de::Error;
        let json = serde_json::Value::deserialize(from)?;
        let Some(text) = json.as_str() else {
            let data = Data::from_json(&json).map_err(|e| D::Error::custom(format!("not a label: {e}")))?;
            return Ok(LabelEntry(LabelSpec::Exact(data)));
        };
        match label_words(text) {
            (Some(spec), unknown) if unknown.is_empty() => Ok(LabelEntry(spec)),
            _ => {
                let words = LABEL_WORDS.join("`, `");
                Err(D::Error::custom(format!("`{text}` is not a label: use the words `{words}`")))
            }
        }
    }
}

/// The label of a text: words, or a label of the lattice as JSON.
///
/// # Errors
/// It is none.
pub fn clearance(text: &str) -> Result<LabelSpec, String> {
    let json = match text.starts_with(['[', '{']) {
        true => serde_json::from_str(text).map_err(|e| format!("the label is not JSON: {e}"))?,
        false => serde_json::Value::from(text),
    };
    LabelEntry::deserialize(json).map(|entry| entry.0).map_err(|e| e.to_string())
}

/// Role of a caller: the actions that it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Starts, resumes and cancels runs of its own.
    Start,
    /// Sees how runs of its own stand and what happens in them.
    Watch,
    /// Sees and answers questions whether a tool may be called, of all runs.
    Approve,
    /// Reads how many runs and requests there were, of all callers together.
    Metrics,
}

impl Role {
    /// The word of the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Start => "start",
            Role::Watch => "watch",
            Role::Approve => "approve",
            Role::Metrics => "metrics",
        }
    }
}

/// The roles of a caller whose entry names none.
fn usual_roles(name: &str) -> Vec<Role> {
    let mut roles = vec![Role::Start, Role::Watch];
    if name == LOCAL {
        roles.push(Role::Metrics);
    }
    roles
}

/// Limits of a caller. `None` means no limit.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CallerLimits {
    /// Runs that have begun and not ended.
    pub runs: Option<usize>,
    /// Runs begun within a minute.
    pub runs_per_minute: Option<usize>,
    /// Calls of models in a run.
    calls: Option<u64>,
    /// Calls of tools in a run.
    tool_calls: Option<u64>,
    /// Tokens of prompts and replies in a run.
    tokens: Option<u64>,
    /// US dollars of a run.
    usd: Option<f64>,
    /// Seconds of a run.
    timeout: Option<f64>,
    /// Calls of models in a day.
    pub calls_per_day: Option<u64>,
    /// Tokens of prompts and replies in a day.
    pub tokens_per_day: Option<u64>,
    /// US dollars in a day.
    usd_per_day: Option<f64>,
}

/// A principal that reaches the server.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Its name in the settings.
    pub name: String,
    roles: Vec<Role>,
    /// Label of its input.
    pub input: LabelSpec,
    /// The most that it is shown.
    pub clearance: LabelSpec,
    /// Limits on its use of the server.
    pub limits: CallerLimits,
    /// Limits of each of its own runs.
    per_run: Limits,
    /// US dollars in a day.
    pub usd_per_day: Option<Num>,
}

impl Caller {
    /// Returns whether a limit holds for a day.
    pub fn has_daily_limits(&self) -> bool {
        let CallerLimits { calls_per_day, tokens_per_day, .. } = &self.limits;
        calls_per_day.is_some() || tokens_per_day.is_some() || self.usd_per_day.is_some()
    }

    fn of(name: &str, entry: &CallerEntry) -> Result<Caller, String> {
        const USUAL: LabelSpec = LabelSpec::Axes { untrusted: true, secret: false };
        let limits = entry.limits.clone();
        let money = |what: &str, x: Option<f64>| {
            // The shortest decimal that denotes the float is what was written.
            x.map(|x| crate::limits::money(what, &x.to_string())).transpose()
        };
        let per_run = Limits {
            max_model_calls: limits.calls,
            max_tool_calls: limits.tool_calls,
            max_tokens: limits.tokens,
            max_usd: money("usd", limits.usd)?,
            timeout: limits.timeout.map(|s| crate::limits::seconds("timeout", s)).transpose()?,
            ..Limits::default()
        };
        let usd_per_day = money("usd_per_day", limits.usd_per_day)?;
        let label = |entry: &Option<LabelEntry>| entry.as_ref().map_or(USUAL, |l| l.0.clone());
        Ok(Caller {
            name: name.to_string(),
            roles: entry.roles.clone().unwrap_or_else(|| usual_roles(name)),
            input: label(&entry.input),
            clearance: label(&entry.clearance),
            limits,
            per_run,
            usd_per_day,
        })
    }

    /// Returns whether it has a role.
    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// The stricter of the server's limits and its own.
    pub fn limits_of_run(&self, server: &Limits) -> Limits {
        fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
            a.into_iter().chain(b).min()
        }
        let own = self.per_run.clone();
        Limits {
            max_model_calls: least(own.max_model_calls, server.max_model_calls),
            max_tool_calls: least(own.max_tool_calls, server.max_tool_calls),
            max_tokens: least(own.max_tokens, server.max_tokens),
            max_usd: least(own.max_usd, server.max_usd.clone()),
            timeout: least(own.timeout, server.timeout),
            in_flight: server.in_flight,
        }
    }
}

/// Everybody who may reach a server.
#[derive(Clone, Debug, Default)]
pub struct Callers {
    by_token: Vec<([u8; 32], Arc<Caller>)>,
    by_name: Vec<(String, Arc<Caller>)>,
    /// The header that states names.
    pub header: Option<String>,
    /// The user of this machine.
    pub local: Option<Arc<Caller>>,
    /// Names of callers whose tokens can be guessed, each with the reason.
    guessable: BTreeMap<String, &'static str>,
}

impl Callers {
    /// The callers of a server, with the token of `--token-env` if that is set.
    ///
    /// # Errors
    /// An entry contradicts itself or another one; in words for people.
    pub fn of(
        entries: &BTreeMap<String, CallerEntry>,
        serve: &ServeEntry,
        environment: &Environment,
        token: Option<&Secret>,
    ) -> Result<Callers, String> {
        let mut all = Callers { header: serve.client_name_header.clone(), ..Callers::default() };
        let mut starts = false;
        for (name, entry) in entries {
            let wrong = |why: String| format!("`[callers.{name}]` is wrong: {why}");
            check(name, entry, serve).map_err(wrong)?;
            if matches!(name.as_str(), LOCAL | TOKEN | MCP) {
                continue;
            }
            let caller = Arc::new(Caller::of(name, entry).map_err(wrong)?);
            starts |= caller.has(Role::Start) || caller.has(Role::Watch) && !caller.has(Role::Approve);
            if let Some(hash) = &entry.token_sha256 {
                let hash = unhex(hash).ok_or_else(|| {
                    wrong(
                        "`token_sha256` is not 64 hexadecimal digits; `entail serve --new-token` makes one"
                            .into(),
                    )
                })?;
                let words = COMMON.into_iter().chain([name.as_str()]);
                if words.map(hash_of).any(|common| common == hash) {
                    all.guessable.insert(name.clone(), COMMON_WORD);
                }
                all.add_token(hash, caller.clone()).map_err(wrong)?;
            }
            if let Some(variable) = &entry.token_env {
                let token = environment.secret(variable);
                let token = token.ok_or_else(|| wrong(format!("the variable `{variable}` is not set")))?;
                if let Some(why) = guessable(token.expose(), name) {
                    all.guessable.insert(name.clone(), why);
                }
                all.add_token(hash_of(token.expose()), caller.clone()).map_err(wrong)?;
            }
            if let Some(name) = &entry.client_name {
                if all.by_name.iter().any(|(known, _)| known == name) {
                    return Err(wrong(format!("another caller has the name `{name}`")));
                }
                all.by_name.push((name.clone(), caller.clone()));
            }
        }
        if let Some(token) = token {
            starts = true;
            let hash = hash_of(token.expose());
            // An entry may name the same variable, and says more.
            if !all.by_token.iter().any(|(known, _)| *known == hash) {
                if let Some(why) = guessable(token.expose(), TOKEN) {
                    all.guessable.insert(TOKEN.into(), why);
                }
                all.add_token(hash, Arc::new(Callers::reserved(entries, TOKEN)?))?;
            }
        }
        if entries.contains_key(LOCAL) || (!starts && all.header.is_none()) {
            all.local = Some(Arc::new(Callers::reserved(entries, LOCAL)?));
        }
        Ok(all)
    }

    /// One caller, which needs no credential.
    pub fn only(caller: Arc<Caller>) -> Callers {
        Callers { local: Some(caller), ..Callers::default() }
    }

    /// A caller that needs no entry.
    ///
    /// # Errors
    /// Its entry is wrong.
    pub fn reserved(entries: &BTreeMap<String, CallerEntry>, name: &str) -> Result<Caller, String> {
        let entry = entries.get(name).cloned().unwrap_or_default();
        Caller::of(name, &entry).map_err(|why| format!("`[callers.{name}]` is wrong: {why}"))
    }

    fn add_token(&mut self, hash: [u8; 32], caller: Arc<Caller>) -> Result<(), String> {
        if let Some((_, other)) = self.by_token.iter().find(|(known, _)| *known == hash) {
            return Err(format!("`{}` has the same token", other.name));
        }
        self.by_token.push((hash, caller));
        Ok(())
    }

    /// Callers whose tokens can be guessed, each with the reason. Of a token that is known by its hash, only
    /// common words can be told.
    pub fn guessable(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.guessable.iter().map(|(name, why)| (name.as_str(), *why))
    }

    /// Returns whether a limit holds for a day.
    pub fn have_daily_limits(&self) -> bool {
        self.all().any(|caller| caller.has_daily_limits())
    }

    /// Returns whether a caller must have a credential: no caller is known without one.
    pub fn wants_credential(&self) -> bool {
        self.local.is_none()
    }

    /// Returns whether any caller is known by a token or a stated name.
    pub fn has_credentials(&self) -> bool {
        !self.by_token.is_empty() || !self.by_name.is_empty()
    }

    /// Caller of a token. Takes the same time whatever the token is.
    pub fn by_token(&self, token: &str) -> Option<Arc<Caller>> {
        let hash = hash_of(token);
        let same = |known: &[u8; 32]| known.iter().zip(hash).fold(0, |d, (a, b)| d | (a ^ b)) == 0;
        let mut found = None;
        for (known, caller) in &self.by_token {
            if same(known) {
                found = Some(caller.clone());
            }
        }
        found
    }

    /// Caller of the name that a proxy states.
    pub fn by_name(&self, name: &str) -> Option<Arc<Caller>> {
        self.by_name.iter().find(|(known, _)| known == name).map(|(_, caller)| caller.clone())
    }

    /// All of them, each once.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Caller>> {
        let tokens = self.by_token.iter().map(|(_, caller)| caller);
        tokens.chain(self.by_name.iter().map(|(_, caller)| caller)).chain(&self.local)
    }
}

/// Checks an entry by itself and returns its mistake, if it has one.
fn check(name: &str, entry: &CallerEntry, serve: &ServeEntry) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
        return Err(format!("a name has at most {MAX_NAME} letters, digits and characters out of `-_.@`"));
    }
    let has = entry.token_sha256.is_some() || entry.token_env.is_some() || entry.client_name.is_some();
    let reserved = matches!(name, LOCAL | TOKEN | MCP);
    if reserved && has {
        return Err("this name is for a caller without an entry of its credential".into());
    }
    if !reserved && !has {
        return Err("it has no credential: `token_sha256`, `token_env` or `client_name`".into());
    }
    if entry.client_name.is_some() && serve.client_name_header.is_none() {
        return Err("`client_name` needs `client_name_header` under `[serve]`".into());
    }
    if name == LOCAL && serve.client_name_header.is_some() {
        return Err("behind a proxy everybody would be the user of this machine".into());
    }
    let roles = entry.roles.as_deref().unwrap_or_default();
    if roles.contains(&Role::Approve) {
        if roles.contains(&Role::Start) {
            return Err(
                "a caller that starts runs does not approve their calls: make another one with `roles = [\"approve\"]`".into(),
            );
        }
        if reserved || entry.token_env.is_some() || entry.client_name.is_some() {
            return Err(
                "a caller that approves is known by `token_sha256` alone, so that nothing that a tool can read is its token"
                    .into(),
            );
        }
    }
    Ok(())
}

/// The fewest bytes of a token that is not guessed.
const MIN_TOKEN: usize = 16;

const COMMON_WORD: &str = "it is a common word";

/// Tokens that an attacker tries first.
const COMMON: [&str; 20] = [
    "111111", "123456", "12345678", "admin", "bearer", "changeme", "default", "demo", "dev", "entail",
    "example", "guest", "hello", "letmein", "password", "qwerty", "secret", "test", "token", "user",
];

/// Returns why a token can be guessed, if it can.
fn guessable(token: &str, name: &str) -> Option<&'static str> {
    let word = token.trim_end_matches(|c: char| !c.is_ascii_alphabetic()).to_ascii_lowercase();
    let distinct: BTreeSet<u8> = token.bytes().collect();
    if COMMON.contains(&&*token.to_ascii_lowercase()) || COMMON.contains(&&*word) || token == name {
        Some(COMMON_WORD)
    } else if token.len() < MIN_TOKEN {
        Some("it has fewer than 16 bytes")
    } else if distinct.len() < 6 {
        Some("it has fewer than 6 different characters")
    } else {
        None
    }
}

/// SHA-256 of a token.
pub fn hash_of(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut out = [0; 32];
    for (i, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use runtime::hex;

    #[derive(Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    struct File {
        callers: BTreeMap<String, CallerEntry>,
        serve: ServeEntry,
    }

    fn callers(text: &str, token: Option<&str>) -> Result<Callers, String> {
        let file: File = toml::from_str(text).map_err(|e| e.message().to_string())?;
        let environment = Environment::new([("A_TOKEN", "planted-a")]);
        Callers::of(&file.callers, &file.serve, &environment, token.map(Secret::new).as_ref())
    }

    fn entry(keys: &str) -> String {
        format!("[callers.a]\n{keys}")
    }

    #[test]
    fn a_caller_is_known_by_its_credential() {
        let hash = hex(&hash_of("planted-b"));
        let text = format!(
            "[serve]\nclient_name_header = \"x-client\"\n[callers.a]\ntoken_env = \"A_TOKEN\"\n\
             [callers.b]\ntoken_sha256 = \"{hash}\"\nroles = [\"approve\"]\nclearance = \"any\"\n\
             [callers.c]\nclient_name = \"c.example\"\ninput = [\"U\", \"S\"]\n"
        );
        let all = callers(&text, Some("planted-t")).unwrap();
        let name = |token: &str| all.by_token(token).map(|c| c.name.clone());
        assert_eq!(name("planted-a").as_deref(), Some("a"));
        assert_eq!(name("planted-b").as_deref(), Some("b"));
        assert_eq!(name("planted-t").as_deref(), Some(TOKEN));
        assert_eq!((name(&hash), name("")), (None, None));
        let b = all.by_token("planted-b").unwrap();
        assert!(b.has(Role::Approve) && !b.has(Role::Start) && b.clearance == LabelSpec::TOP);
        let c = all.by_name("c.example").unwrap();
        assert_eq!(c.input, LabelSpec::Exact(Data::list([Data::str("U"), Data::str("S")])));
        assert!(all.local.is_none() && all.wants_credential());
    }

    #[test]
    fn the_local_user_needs_no_credential_until_somebody_else_starts_runs() {
        assert!(callers("", None).unwrap().local.is_some());
        assert!(callers("", Some("planted-t")).unwrap().local.is_none());
        let approver = entry(&format!("token_sha256 = \"{}\"\nroles = [\"approve\"]", hex(&hash_of("x"))));
        assert!(callers(&approver, None).unwrap().local.is_some());
        assert!(callers(&entry("token_env = \"A_TOKEN\""), None).unwrap().local.is_none());
        assert!(callers("[serve]\nclient_name_header = \"x-client\"\n", None).unwrap().local.is_none());
        assert!(
            callers("[callers.local]\nclearance = \"any\"\n", Some("planted-t")).unwrap().local.is_some()
        );
    }

    #[test]
    fn invalid_caller_entries_are_rejected() {
        let hash = hex(&hash_of("x"));
        for (text, why) in [
            (entry("roles = [\"start\"]"), "it has no credential"),
            (entry("token_sha256 = \"12\""), "64 hexadecimal digits"),
            (entry(&format!("token_sha256 = \"{hash}\"\nroles = [\"start\", \"approve\"]")), "starts runs"),
            (entry("token_env = \"A_TOKEN\"\nroles = [\"approve\"]"), "`token_sha256` alone"),
            (entry("token_env = \"NONE\""), "`NONE` is not set"),
            (entry("client_name = \"x\""), "`client_name_header`"),
            (entry("token_env = \"A_TOKEN\"\nclearance = \"secrt\""), "`secrt` is not a label"),
            ("[callers.local]\nroles = [\"approve\"]\n".into(), "`token_sha256` alone"),
            ("[callers.local]\ntoken_env = \"A_TOKEN\"\n".into(), "this name is for"),
            ("[serve]\nclient_name_header = \"x\"\n[callers.local]\n".into(), "behind a proxy"),
            ("[callers.\"a b\"]\ntoken_env = \"A_TOKEN\"\n".into(), "letters, digits"),
            (
                "[callers.a]\ntoken_env = \"A_TOKEN\"\n[callers.b]\ntoken_env = \"A_TOKEN\"\n".into(),
                "same token",
            ),
        ] {
            let said = callers(&text, None).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn tokens_that_can_be_guessed_are_named() {
        let of = |token: &str| guessable(token, "ann");
        for token in
            ["secret", "Password123", "ann", "short", "aaaaaaaaaaaaaaaaaaaaaaaa", "test!", "0123456789abcde"]
        {
            assert!(of(token).is_some(), "{token}");
        }
        assert_eq!(of("entail-5f3a9c01d2e84b76"), None);
        let hashed = |token: &str| {
            let text = entry(&format!("token_sha256 = \"{}\"", hex(&hash_of(token))));
            callers(&text, None).unwrap().guessable().map(|(n, _)| n.to_string()).collect::<Vec<_>>()
        };
        assert_eq!((hashed("test"), hashed("a")), (vec!["a".to_string()], vec!["a".to_string()]));
        assert!(hashed("entail-5f3a9c01d2e84b76").is_empty());
        let read = callers(&entry("token_env = \"A_TOKEN\""), Some("hunter2")).unwrap();
        assert_eq!(read.guessable().map(|(n, _)| n).collect::<Vec<_>>(), ["a", TOKEN]);
    }

    #[test]
    fn the_stricter_limit_holds() {
        let text = entry("token_env = \"A_TOKEN\"\nlimits = { calls = 3, usd = 0.1, timeout = 60 }");
        let caller = callers(&text, None).unwrap().by_token("planted-a").unwrap();
        let server = Limits { max_model_calls: Some(2), max_tokens: Some(9), ..Limits::default() };
        let both = caller.limits_of_run(&server);
        assert_eq!((both.max_model_calls, both.max_tokens), (Some(2), Some(9)));
        assert_eq!(both.max_usd, Some("0.1".parse().unwrap()));
        assert_eq!(both.timeout, Some(Duration::from_secs(60)));
    }
}
