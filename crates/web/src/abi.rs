//! The exports that a page calls: the question is written to [`input`], [`answer`] answers it, and the answer
//! is read at [`output`]. Tables of frameworks come from the page: [`lacking`] lists those that the answer
//! needed and that are not there, and [`supply`] takes one. So do names of characters.
//!
//! Invariant: one thread. A page that calls `answer` while another call is under way gets an empty answer.

use std::sync::{Mutex, PoisonError};
use unicode_names2::supplied;

static INPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static OUTPUT: Mutex<String> = Mutex::new(String::new());

/// Makes room for a question of this length, and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn input(bytes: usize) -> *const u8 {
    let mut input = INPUT.lock().unwrap_or_else(PoisonError::into_inner);
    input.clear();
    input.resize(bytes, 0);
    input.as_ptr()
}

/// Answers the question, and returns the number of bytes of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    let question = std::mem::take(&mut *INPUT.lock().unwrap_or_else(PoisonError::into_inner));
    put(crate::answer(&String::from_utf8_lossy(&question)))
}

/// Lists what is needed, a line each, and returns the number of bytes: `table PACKAGE` and `character NAME`.
#[unsafe(no_mangle)]
pub extern "C" fn lacking() -> usize {
    let tables = framework_api::lacking().map(|package| format!("table {package}"));
    let names = supplied::lacking().into_iter().map(|name| format!("character {name}"));
    put(tables.chain(names).collect::<Vec<_>>().join("\n"))
}

/// Takes what is needed: a line of [`lacking`], a line break, and the compressed table of the package or the
/// character with the name, if there is one. Returns 0 if it is damaged or of no use.
#[unsafe(no_mangle)]
pub extern "C" fn supply() -> u32 {
    let given = std::mem::take(&mut *INPUT.lock().unwrap_or_else(PoisonError::into_inner));
    let mut parts = given.splitn(2, |byte| *byte == b'\n');
    let (Some(what), Some(bytes)) = (parts.next(), parts.next()) else { return 0 };
    let what = String::from_utf8_lossy(what);
    let is_taken = match what.split_once(' ') {
        Some(("table", package)) => framework_api::supply(package, bytes).is_ok(),
        Some(("character", name)) => supplied::supply(name, String::from_utf8_lossy(bytes).chars().next()),
        _ => false,
    };
    is_taken.into()
}

fn put(text: String) -> usize {
    let mut output = OUTPUT.lock().unwrap_or_else(PoisonError::into_inner);
    *output = text;
    output.len()
}

/// Address of the answer, until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.lock().unwrap_or_else(PoisonError::into_inner).as_ptr()
}
