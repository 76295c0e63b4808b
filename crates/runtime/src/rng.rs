//! Randomness that nobody has to foresee, such as that of waits.

use runs::SplitMix;
use std::hash::{BuildHasher, Hasher};

/// A generator that is seeded differently in each process.
pub(crate) fn arbitrary() -> SplitMix {
    SplitMix::new(std::hash::RandomState::new().build_hasher().finish())
}
