//! Idempotency keys: a request that is repeated under its key begins no second run.
//!
//! Entry point: [`Service::start_once`].
//!
//! Invariant: a key belongs to its caller and identifies one request: the pipeline and the bytes of the body.

use super::{Arc, PoisonError, Refused, Service, StartOptions, Started};
use runtime::Journal;
use serde_json::Value;
use session::callers::Caller;
use std::collections::{HashMap, VecDeque};

/// Keys that are remembered where there is no journal.
const REMEMBERED: usize = 10_000;

/// A key of a request.
#[derive(Clone, Copy)]
pub(crate) struct Key<'a> {
    /// The caller's name for it.
    pub(crate) name: &'a str,
    /// Hash of the request.
    pub(crate) digest: &'a str,
}

impl Key<'_> {
    /// The start of a request whose key has this run, with the digest of its request.
    fn start_of(self, (run, digest): (String, String)) -> KeyedStart {
        if digest == self.digest { KeyedStart::Known(run) } else { KeyedStart::Another }
    }
}

/// Result of a request that has a key.
pub(crate) enum KeyedStart {
    /// It has begun a run.
    Begun(Started),
    /// It was made before, and began this run.
    Known(String),
    /// The key identifies another request.
    Another,
}

/// The keys that are known without a journal: by caller and name, the digest and the run.
#[derive(Default)]
pub(super) struct Keys {
    known: HashMap<(String, String), (String, String)>,
    order: VecDeque<(String, String)>,
}

impl Keys {
    fn insert(&mut self, place: (String, String), digest: &str, run: &str) {
        self.known.insert(place.clone(), (digest.to_string(), run.to_string()));
        self.order.push_back(place);
        while self.order.len() > REMEMBERED {
            if let Some(old) = self.order.pop_front() {
                self.known.remove(&old);
            }
        }
    }
}

impl Service {
    /// Begins a run, unless the caller has begun it before under this key.
    pub(crate) fn start_once(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        name: &str,
        input: &Value,
        key: Key<'_>,
        how: StartOptions<'_>,
    ) -> Result<KeyedStart, Refused> {
        // Held until the key is known: of two requests at once one begins the run.
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (caller.name.clone(), key.name.to_string());
        let known = match self.journal() {
            None => keys.known.get(&place).map(|(digest, run)| (run.clone(), digest.clone())),
            Some(_) => self.run_of_key(caller, key)?,
        };
        match known.map(|known| key.start_of(known)) {
            Some(start) => Ok(start),
            None => {
                let started = match self.start(caller, name, input, StartOptions { key: Some(key), ..how }) {
                    // A server of another host may have begun it in the meantime.
                    Err(Refused::Journal(why)) => {
                        return self.key_in_journal(caller, key)?.ok_or(Refused::Journal(why));
                    }
                    started => started?,
                };
                if self.journal().is_none() {
                    keys.insert(place, key.digest, &started.run);
                }
                Ok(KeyedStart::Begun(started))
            }
        }
    }

    /// The run that the journal knows under a key, and the digest of its request.
    fn run_of_key(&self, caller: &Caller, key: Key<'_>) -> Result<Option<(String, String)>, Refused> {
        let Some(place) = self.journal() else { return Ok(None) };
        let known = Journal::existing(place).and_then(|journal| journal.run_of_key(&caller.name, key.name));
        known.map_err(|e| Refused::Journal(e.message))
    }

    fn key_in_journal(&self, caller: &Caller, key: Key<'_>) -> Result<Option<KeyedStart>, Refused> {
        Ok(self.run_of_key(caller, key)?.map(|known| key.start_of(known)))
    }
}
