//! The guard between a client and one server of the Model Context Protocol.

use crate::message::{self as msg, PARSE_ERROR};
use crate::note::Note;
use crate::session::Session;
use crate::upstream::{Action, Step, Trust, Upstream};
use serde_json::Value;

/// The guard of one server in one session.
pub struct Proxy<T> {
    session: Session,
    server: Upstream<T>,
    told_policy: bool,
}

impl<T: Trust> Proxy<T> {
    /// A guard of a session that has not begun. One that observes refuses nothing and says what it would
    /// have refused.
    pub fn new(mut session: Session, trust: T, observe: bool) -> Proxy<T> {
        let server = Upstream::new("", trust, observe, &mut session);
        Proxy { session, server, told_policy: false }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Takes note of what the user asks for ([`Session::user_asks`]).
    pub fn user_asks(&mut self, text: &str) {
        self.session.user_asks(text);
    }

    /// The user has begun a new conversation ([`crate::Gateway::begin_again`]).
    pub fn begin_again(&mut self) -> Vec<Action> {
        let from = self.session.label();
        self.session = self.session.fresh();
        let mut actions = self.step(|server, step| server.begin_again(step));
        actions.push(Action::Note(Note::Fresh { from, to: self.session.label() }));
        actions
    }

    /// Nothing is known of what the conversation has read: its label is the highest from now on.
    pub fn assume_highest(&mut self, by: &str) {
        self.session.assume_highest(by);
    }

    /// Takes a line of the client.
    pub fn from_client(&mut self, line: &str) -> Vec<Action> {
        match serde_json::from_str(line) {
            Ok(message) => self.step(|server, step| server.client_says(message, step)),
            Err(e) => not_json(&e),
        }
    }

    /// Takes a line of the server.
    pub fn from_server(&mut self, line: &str) -> Vec<Action> {
        match serde_json::from_str(line) {
            Ok(message) => self.step(|server, step| server.server_says(message, step)),
            Err(e) => {
                vec![Action::Note(Note::Invalid { by_server: true, why: format!("it is no JSON: {e}") })]
            }
        }
    }

    /// Takes the answer of a quarantined model ([`Action::Ask`]).
    pub fn quarantine_said(&mut self, number: u64, said: Result<core_ir::Data, String>) -> Vec<Action> {
        self.step(|server, step| server.inquiry_answered(number, said, step))
    }

    /// The server is gone: every request that it has fails.
    pub fn server_gone(&mut self, how: &str) -> Vec<Action> {
        self.server.server_gone(how)
    }

    /// Returns whether nobody waits for the server.
    pub fn is_idle(&self) -> bool {
        self.server.is_idle()
    }

    fn step(&mut self, act: impl FnOnce(&mut Upstream<T>, &mut Step<'_>)) -> Vec<Action> {
        let mut step = Step { session: &mut self.session, actions: Vec::new() };
        act(&mut self.server, &mut step);
        let mut actions = step.actions;
        actions.extend(policy_problem(&self.session, &mut self.told_policy).map(Action::Note));
        actions
    }
}

/// The answer to a line of the client that is no JSON.
pub(crate) fn not_json(e: &serde_json::Error) -> Vec<Action> {
    let why = format!("it is no JSON: {e}");
    vec![
        Action::ToClient(msg::error(&Value::Null, PARSE_ERROR, &why)),
        Action::Note(Note::Invalid { by_server: false, why }),
    ]
}

/// The problem of the policy with the tools of the session, told once.
pub(crate) fn policy_problem(session: &Session, told: &mut bool) -> Option<Note> {
    let found = session.problems().first().filter(|_| !*told)?;
    *told = true;
    let help = found.help.first().map_or(String::new(), |h| format!(" ({h})"));
    Some(Note::Policy(format!("{}{help}", found.message)))
}
