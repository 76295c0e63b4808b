//! The module that the playground asks for characters: a name is written to [`input`], and [`character`]
//! returns its character.

#![allow(unsafe_code, reason = "an export by name counts as unsafe; there is no other unsafe code")]

use std::sync::{Mutex, PoisonError};

static INPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Makes room for a name of this length, and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn input(bytes: usize) -> *const u8 {
    let mut input = INPUT.lock().unwrap_or_else(PoisonError::into_inner);
    input.clear();
    input.resize(bytes, 0);
    input.as_ptr()
}

/// The number of the character with the name; -1 if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn character() -> i32 {
    let input = INPUT.lock().unwrap_or_else(PoisonError::into_inner);
    let name = std::str::from_utf8(&input).unwrap_or_default();
    real::character(name).map_or(-1, |c| u32::from(c) as i32)
}
