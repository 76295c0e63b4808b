//! Names that somebody else knows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// Length of a name at most. The longest has 88 characters.
const MAX_NAME_BYTES: usize = 128;

/// Names that are waited for at most.
const MAX_LACKING: usize = 10_000;

#[derive(Debug)]
struct Names {
    known: BTreeMap<String, Option<char>>,
    lacking: BTreeSet<String>,
}

static NAMES: Mutex<Names> = Mutex::new(Names { known: BTreeMap::new(), lacking: BTreeSet::new() });

/// Returns the character of a name, in upper or lower case; `None` if there is none. Of a name that has not
/// been supplied it returns the replacement character, and [`lacking`] lists the name.
pub fn character(name: &str) -> Option<char> {
    let may_be_one = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'-');
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(may_be_one) {
        return None;
    }
    let name = name.to_ascii_uppercase();
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.known.get(&name) {
        return *known;
    }
    if names.lacking.len() < MAX_LACKING {
        names.lacking.insert(name);
    }
    Some(char::REPLACEMENT_CHARACTER)
}

/// The names that were asked for and have not been supplied.
pub fn lacking() -> Vec<String> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.lacking.iter().cloned().collect()
}

/// Says which character has a name that is lacking; `None` if there is none. Returns false if nobody asked.
pub fn supply(name: &str, character: Option<char>) -> bool {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let asked = names.lacking.remove(name);
    if asked {
        names.known.insert(name.to_string(), character);
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_asked_for_and_answered_once_it_is_supplied() {
        assert_eq!(character("honeybee"), Some(char::REPLACEMENT_CHARACTER));
        assert_eq!(character("NO SUCH-NAME 1"), Some(char::REPLACEMENT_CHARACTER));
        assert_eq!(lacking(), ["HONEYBEE", "NO SUCH-NAME 1"]);
        for name in lacking() {
            let real = real::character(&name);
            assert!(supply(&name, real));
        }
        assert_eq!((character("Honeybee"), character("NO SUCH-NAME 1")), (Some('🐝'), None));
        assert_eq!(lacking(), [""; 0]);
        assert!(!supply("WASP", None));
        for no_name in ["", "a\nb", "é", "<a>", &"A".repeat(MAX_NAME_BYTES + 1)] {
            assert_eq!((character(no_name), real::character(no_name)), (None, None), "{no_name}");
        }
        assert!(lacking().is_empty());
    }
}
