//! Sets of releases of one package.

use std::cmp::Ordering;

/// A set of releases, as numbers in the order of versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Releases(Vec<(u16, u16)>);

impl Releases {
    /// The releases from one number up to another, which is not among them.
    pub fn range(from: u16, to: u16) -> Releases {
        Releases(if from < to { vec![(from, to)] } else { Vec::new() })
    }

    /// One release.
    pub fn one(number: u16) -> Releases {
        Releases::range(number, number.saturating_add(1))
    }

    /// Adds a range behind those that are there.
    pub(crate) fn push(&mut self, from: u16, to: u16) {
        if from < to {
            self.0.push((from, to));
        }
    }

    /// Returns true if no release is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first and the last release of the set.
    pub fn ends(&self) -> Option<(u16, u16)> {
        Some((self.0.first()?.0, self.0.last()?.1.saturating_sub(1)))
    }

    /// Returns true if some release is in both sets.
    pub fn meets(&self, other: &Releases) -> bool {
        self.0.iter().any(|(a, b)| other.0.iter().any(|(c, d)| a.max(c) < b.min(d)))
    }
}

/// The order of two versions: numbers first, then what makes one a pre-release.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let numbers = |v: &str| {
        let mut out: Vec<u64> = Vec::new();
        for part in v.split('.') {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            let Ok(n) = digits.parse() else { break };
            out.push(n);
            if digits.len() < part.len() {
                break;
            }
        }
        while out.last() == Some(&0) {
            out.pop();
        }
        out
    };
    let rank = |v: &str| {
        let v = v.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        if v.is_empty() {
            1
        } else if v.starts_with("post") {
            2
        } else {
            0
        }
    };
    numbers(a).cmp(&numbers(b)).then(rank(a).cmp(&rank(b)))
}
