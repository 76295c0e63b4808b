//! The exports that a page calls: the question is written to [`input`], [`answer`] answers it, and the answer
//! is read at [`output`].
//!
//! Invariant: one thread. A page that calls `answer` while another call is under way gets an empty answer.

use std::sync::{Mutex, PoisonError};

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
    let answer = crate::answer(&String::from_utf8_lossy(&question));
    let mut output = OUTPUT.lock().unwrap_or_else(PoisonError::into_inner);
    *output = answer;
    output.len()
}

/// Address of the answer, until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.lock().unwrap_or_else(PoisonError::into_inner).as_ptr()
}
