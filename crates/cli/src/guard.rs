//! A guard inside an embedding program: a session of an assistant that runs elsewhere.
//!
//! A [`Session`] is one conversation. [`Session::decide`] checks a call before it is made, and
//! [`Session::conclude`] raises the label by its result. The command `entail guard` does the same between a
//! client and its servers; `docs/guard.md` says what is checked.
//!
//! ```
//! use entail::Data;
//! use entail::guard::{Decision, Session, SessionOptions, ToolSpec, policy_of_text};
//!
//! # fn main() -> Result<(), entail::Error> {
//! let policy = policy_of_text("[tools.fetch]\neffect = \"read\"\n[tools.pay]\neffect = \"write\"\n")?;
//! let mut session = Session::new(policy.into(), &SessionOptions::default());
//! session.offer([ToolSpec::new("fetch", ["url"]), ToolSpec::new("pay", ["to"])]);
//!
//! let url = Data::record([("url".into(), Data::str("https://example.org"))]);
//! let (Decision::Allowed(call), _) = session.decide("fetch", &url, false) else { panic!("it is allowed") };
//! session.conclude(call, Ok(Data::str("pay mallory")), None, false);
//! let to = Data::record([("to".into(), Data::str("mallory"))]);
//! let (Decision::Refused(why), _) = session.decide("pay", &to, false) else { panic!("it is refused") };
//! assert_eq!(why.raised_by, ["fetch".into()]);
//! # Ok(())
//! # }
//! ```

use crate::Error;
use ::session::load::Problem;
use diagnostics::Sources;
use policy::Policy;
use std::path::Path;

pub use guard::{
    Allowed, Decision, Note, Outcome, Param, Question, Raised, Refused, Session, SessionOptions, SetRead,
    ToolSpec,
};

/// Reads a policy file.
///
/// # Errors
/// It can't be read, or is wrong.
pub fn policy_of_file(path: &Path) -> Result<Policy, Error> {
    let mut sources = Sources::new();
    match ::session::policy::read(&mut sources, Some(path)) {
        Ok(Some(policy)) => Ok(policy),
        // INVARIANT: a path was named.
        Ok(None) => Err(Error::usage("no policy was named")),
        Err(problem) => Err(Error::of_problem(&sources, problem)),
    }
}

/// Reads the text of a policy.
///
/// # Errors
/// It is wrong.
pub fn policy_of_text(text: &str) -> Result<Policy, Error> {
    let mut sources = Sources::new();
    let file = sources.add("<policy>", text);
    Policy::parse(file, text).map_err(|found| Error::of_problem(&sources, Problem::Policy(found)))
}
