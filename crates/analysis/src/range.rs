//! Ranges of numbers: what comparisons say of a value or a length.

use core_ir::{Comparison, Num};

/// End of a range, and whether the range is without it.
type End = (Num, bool);

/// Range that comparisons state: its ends, and points that are excluded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Range {
    pub(crate) low: Option<End>,
    pub(crate) high: Option<End>,
    pub(crate) not: Vec<Num>,
}

impl Range {
    pub(crate) fn at_least(&mut self, n: &Num, strict: bool) {
        let tighter = self.low.as_ref().is_none_or(|(m, s)| n > m || n == m && strict && !s);
        if tighter {
            self.low = Some((n.clone(), strict));
        }
    }

    pub(crate) fn at_most(&mut self, n: &Num, strict: bool) {
        let tighter = self.high.as_ref().is_none_or(|(m, s)| n < m || n == m && strict && !s);
        if tighter {
            self.high = Some((n.clone(), strict));
        }
    }

    /// The least natural number in it, excluded points aside.
    pub(crate) fn first(&self) -> u64 {
        match &self.low {
            Some((n, _)) if *n < Num::ZERO => 0,
            Some((n, strict)) => {
                let up = ceil(n);
                up + u64::from(*strict && Num::from(up as i64) == *n)
            }
            None => 0,
        }
    }

    /// The greatest natural number in it; `None` if there is no end, `Some(None)` if there is no such number.
    pub(crate) fn last(&self) -> Option<Option<u64>> {
        let (n, strict) = self.high.as_ref()?;
        if *n < Num::ZERO || *n == Num::ZERO && *strict {
            return Some(None);
        }
        let up = ceil(n);
        let whole = Num::from(up as i64) == *n;
        let last = if whole && !strict { up } else { up.saturating_sub(1) };
        Some(Some(last))
    }

    pub(crate) fn is_empty(&self, natural: bool) -> bool {
        if natural {
            let first = self.first();
            return match self.last() {
                None => false,
                Some(None) => true,
                Some(Some(last)) => {
                    // All numbers between are excluded.
                    let gone = |n: u64| self.not.contains(&Num::from(n as i64));
                    first > last || last - first < self.not.len() as u64 && (first..=last).all(gone)
                }
            };
        }
        match (&self.low, &self.high) {
            (Some((l, a)), Some((h, b))) => l > h || l == h && (*a || *b || self.not.contains(l)),
            _ => false,
        }
    }

    /// This number alone.
    pub(crate) fn exactly(n: &Num) -> Range {
        let end = Some((n.clone(), false));
        Range { low: end.clone(), high: end, not: Vec::new() }
    }

    /// The numbers that are not negative.
    pub(crate) fn natural() -> Range {
        Range { low: Some((Num::ZERO, false)), ..Range::default() }
    }

    /// Returns true if it says nothing.
    pub(crate) fn is_any(&self) -> bool {
        self.low.is_none() && self.high.is_none() && self.not.is_empty()
    }

    /// Restricts it to the numbers of which a comparison holds.
    pub(crate) fn compare(&mut self, c: Comparison, n: &Num) {
        match c {
            Comparison::Gt => self.at_least(n, true),
            Comparison::Ge => self.at_least(n, false),
            Comparison::Lt => self.at_most(n, true),
            Comparison::Le => self.at_most(n, false),
            Comparison::Eq => {
                self.at_least(n, false);
                self.at_most(n, false);
            }
            Comparison::Ne => self.not.push(n.clone()),
        }
    }

    /// Restricts it to the numbers between the ends of another.
    pub(crate) fn meet(&mut self, other: &Range) {
        if let Some((n, strict)) = &other.low {
            self.at_least(n, *strict);
        }
        if let Some((n, strict)) = &other.high {
            self.at_most(n, *strict);
        }
    }

    /// The whole numbers in it: its ends are whole, and in it.
    pub(crate) fn whole(self) -> Range {
        // The greatest whole number below an end.
        let below = |(n, strict): &End| match *strict && n.floor() == *n {
            true => n.sub(&Num::ONE).ok(),
            false => Some(n.floor()),
        };
        let above = |(n, strict): &End| Some(below(&(n.neg(), *strict))?.neg());
        let end = |n: Option<Num>| n.map(|n| (n, false));
        Range {
            low: end(self.low.as_ref().and_then(above)),
            high: end(self.high.as_ref().and_then(below)),
            not: self.not,
        }
    }

    /// The numbers between the ends of both.
    pub(crate) fn hull(&self, other: &Range) -> Range {
        let end = |a: &Option<End>, b: &Option<End>, further: fn(&Num, &Num) -> bool| match (a, b) {
            (Some((n, s)), Some((m, t))) if n == m => Some((n.clone(), *s && *t)),
            (Some(a), Some(b)) => Some(if further(&a.0, &b.0) { a.clone() } else { b.clone() }),
            _ => None,
        };
        let low = end(&self.low, &other.low, |a, b| a < b);
        Range { low, high: end(&self.high, &other.high, |a, b| a > b), not: Vec::new() }
    }

    /// The sums of a number of each.
    pub(crate) fn plus(&self, other: &Range) -> Range {
        let end = |a: &Option<End>, b: &Option<End>| {
            let ((n, s), (m, t)) = (a.as_ref()?, b.as_ref()?);
            Some((n.add(m).ok()?, *s || *t))
        };
        Range { low: end(&self.low, &other.low), high: end(&self.high, &other.high), not: Vec::new() }
    }

    /// The negations of its numbers.
    pub(crate) fn negated(&self) -> Range {
        let end = |e: &Option<End>| e.as_ref().map(|(n, strict)| (n.neg(), *strict));
        Range { low: end(&self.high), high: end(&self.low), not: Vec::new() }
    }

    /// The differences of a number of each.
    pub(crate) fn minus(&self, other: &Range) -> Range {
        self.plus(&other.negated())
    }

    /// Decides whether each number is less than each of another range; `None` if some are and some are not.
    pub(crate) fn is_less(&self, other: &Range) -> Option<bool> {
        match (&self.high, &other.low) {
            (Some((h, s)), Some((l, t))) if h < l || h == l && (*s || *t) => return Some(true),
            _ => {}
        }
        match (&self.low, &other.high) {
            (Some((l, _)), Some((h, _))) if l >= h => Some(false),
            _ => None,
        }
    }
}

/// The comparison that holds where another does not.
pub(crate) fn negated(c: Comparison) -> Comparison {
    match c {
        Comparison::Lt => Comparison::Ge,
        Comparison::Le => Comparison::Gt,
        Comparison::Gt => Comparison::Le,
        Comparison::Ge => Comparison::Lt,
        Comparison::Eq => Comparison::Ne,
        Comparison::Ne => Comparison::Eq,
    }
}

/// The least natural number that is not less than a number which is not negative.
fn ceil(n: &Num) -> u64 {
    let whole = n.floor();
    match whole.to_i64().and_then(|n| u64::try_from(n).ok()) {
        Some(up) if whole == *n => up,
        Some(up) => up.saturating_add(1),
        // Beyond what is counted.
        None => i64::MAX as u64,
    }
}
