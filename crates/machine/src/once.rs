//! Things that are written once, to where they belong.
//!
//! Entry points: [`push`], [`shared`]. Both have room first and make what belongs there then, of pieces that are at hand. A processor that copies sixteen
//! bytes which were just written one by one waits until they have left its store buffer: that takes about as long as all the rest of a small
//! operation, and each move of a value from one place to another would be such a copy.
//!
//! Invariant: what they do is what `Vec::push` and `Arc::new` do.

use std::sync::Arc;

/// Writes a value to the end of these.
#[inline(always)]
pub(crate) fn push<T>(to: &mut Vec<T>, make: impl FnOnce() -> T) {
    let mut make = Some(make);
    to.extend((0..1).map(|_| made(&mut make)));
}

/// What is made of a range is made without an `Option` around it.
#[inline(always)]
fn made<T>(make: &mut Option<impl FnOnce() -> T>) -> T {
    match make.take() {
        Some(make) => make(),
        None => unreachable!("it is made once"),
    }
}

/// A piece of memory that is shared and counted. An array, since it is arrays that the standard library makes in place.
pub(crate) type Shared<T> = Arc<[T; 1]>;

/// Makes something that is shared with nobody yet.
#[inline(always)]
pub(crate) fn shared<T>(make: impl FnOnce() -> T) -> Shared<T> {
    let mut make = Some(make);
    let one: Arc<[T]> = (0..1).map(|_| made(&mut make)).collect();
    match one.try_into() {
        Ok(one) => one,
        Err(_) => unreachable!("there is one"),
    }
}
