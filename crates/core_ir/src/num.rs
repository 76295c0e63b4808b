//! Exact rational numbers, with a fast path for machine integers.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// No numerator or denominator has more bits; an operation that would make one fails. Keeps a
/// hostile `1e999999999` or a runaway squaring loop within bounded memory.
const MAX_BITS: u64 = 1 << 16;

/// Decimal exponents beyond this are refused before any power is computed.
const MAX_EXPONENT: i64 = 19_000;

/// An exact rational number.
///
/// # Examples
/// ```
/// use core_ir::Num;
/// let third = Num::from(1).div(&Num::from(3)).unwrap();
/// assert_eq!(third.mul(&Num::from(3)).unwrap(), Num::from(1));
/// assert_eq!("2.50".parse::<Num>().unwrap().to_string(), "2.5");
/// assert_eq!(third.to_string(), "1/3");
/// ```
#[derive(Clone, Debug)]
pub struct Num(Repr);

// INVARIANT: `Big` holds a reduced fraction that is not an integer within `i64`, so equal numbers
// have equal representations.
#[derive(Clone, Debug)]
enum Repr {
    Int(i64),
    Big(Arc<BigRational>),
}

/// Reason why an arithmetic operation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumError {
    /// The divisor was zero.
    DivisionByZero,
    /// The result needs more than 65,536 bits.
    TooLarge,
    /// The text is not a number.
    NotANumber,
}

impl fmt::Display for NumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NumError::DivisionByZero => "division by zero",
            NumError::TooLarge => "number too large",
            NumError::NotANumber => "not a number",
        })
    }
}

impl std::error::Error for NumError {}

impl Num {
    /// Zero.
    pub const ZERO: Num = Num(Repr::Int(0));
    /// One.
    pub const ONE: Num = Num(Repr::Int(1));

    fn checked(r: BigRational) -> Result<Num, NumError> {
        if r.is_integer()
            && let Some(i) = r.numer().to_i64()
        {
            return Ok(Num(Repr::Int(i)));
        }
        if r.numer().bits() > MAX_BITS || r.denom().bits() > MAX_BITS {
            return Err(NumError::TooLarge);
        }
        Ok(Num(Repr::Big(Arc::new(r))))
    }

    fn big(&self) -> BigRational {
        match &self.0 {
            Repr::Int(i) => BigRational::from_integer(BigInt::from(*i)),
            Repr::Big(r) => (**r).clone(),
        }
    }

    #[inline]
    fn combine(
        &self,
        other: &Num,
        fast: fn(i64, i64) -> Option<i64>,
        slow: fn(BigRational, BigRational) -> BigRational,
    ) -> Result<Num, NumError> {
        if let (Repr::Int(a), Repr::Int(b)) = (&self.0, &other.0)
            && let Some(c) = fast(*a, *b)
        {
            return Ok(Num(Repr::Int(c)));
        }
        self.combine_big(other, slow)
    }

    #[cold]
    #[inline(never)]
    fn combine_big(
        &self,
        other: &Num,
        with: fn(BigRational, BigRational) -> BigRational,
    ) -> Result<Num, NumError> {
        Num::checked(with(self.big(), other.big()))
    }

    /// Sum.
    ///
    /// # Errors
    /// [`NumError::TooLarge`].
    #[inline]
    pub fn add(&self, other: &Num) -> Result<Num, NumError> {
        self.combine(other, i64::checked_add, |a, b| a + b)
    }

    /// Difference.
    ///
    /// # Errors
    /// [`NumError::TooLarge`].
    #[inline]
    pub fn sub(&self, other: &Num) -> Result<Num, NumError> {
        self.combine(other, i64::checked_sub, |a, b| a - b)
    }

    /// Product.
    ///
    /// # Errors
    /// [`NumError::TooLarge`].
    #[inline]
    pub fn mul(&self, other: &Num) -> Result<Num, NumError> {
        self.combine(other, i64::checked_mul, |a, b| a * b)
    }

    /// Exact quotient.
    ///
    /// # Errors
    /// [`NumError::DivisionByZero`], [`NumError::TooLarge`].
    pub fn div(&self, other: &Num) -> Result<Num, NumError> {
        if other.is_zero() {
            return Err(NumError::DivisionByZero);
        }
        self.combine(other, Num::quotient, |a, b| a / b)
    }

    /// Exact quotient of machine integers, if it is one.
    #[inline]
    pub fn quotient(a: i64, b: i64) -> Option<i64> {
        if a.checked_rem(b)? == 0 { a.checked_div(b) } else { None }
    }

    /// Remainder of the division rounded down: `a - b * floor(a / b)`, with the sign of `b`.
    ///
    /// # Errors
    /// [`NumError::DivisionByZero`], [`NumError::TooLarge`].
    pub fn rem(&self, other: &Num) -> Result<Num, NumError> {
        if other.is_zero() {
            return Err(NumError::DivisionByZero);
        }
        self.combine(other, Num::remainder, |a, b| {
            let q = (&a / &b).floor();
            a - b * q
        })
    }

    /// Remainder of the division of machine integers, rounded down; none by zero.
    #[inline]
    pub fn remainder(a: i64, b: i64) -> Option<i64> {
        match b {
            0 => None,
            // `mod_floor` overflows for `i64::MIN mod -1`.
            -1 => Some(0),
            b => Some(a.mod_floor(&b)),
        }
    }

    fn bitwise(
        &self,
        other: &Num,
        fast: fn(i64, i64) -> i64,
        slow: fn(&BigInt, &BigInt) -> BigInt,
    ) -> Result<Num, NumError> {
        if let (Repr::Int(a), Repr::Int(b)) = (&self.0, &other.0) {
            return Ok(Num(Repr::Int(fast(*a, *b))));
        }
        let (a, b) = (self.big(), other.big());
        if !a.is_integer() || !b.is_integer() {
            return Err(NumError::NotANumber);
        }
        Num::checked(BigRational::from_integer(slow(a.numer(), b.numer())))
    }

    /// Bitwise "and" of two integers in two's complement without end.
    ///
    /// # Errors
    /// [`NumError::NotANumber`] if one is no integer.
    pub fn bit_and(&self, other: &Num) -> Result<Num, NumError> {
        self.bitwise(other, |a, b| a & b, |a, b| a & b)
    }

    /// Bitwise "or" of two integers in two's complement without end.
    ///
    /// # Errors
    /// [`NumError::NotANumber`] if one is no integer.
    pub fn bit_or(&self, other: &Num) -> Result<Num, NumError> {
        self.bitwise(other, |a, b| a | b, |a, b| a | b)
    }

    /// Bitwise "exclusive or" of two integers in two's complement without end.
    ///
    /// # Errors
    /// [`NumError::NotANumber`] if one is no integer.
    pub fn bit_xor(&self, other: &Num) -> Result<Num, NumError> {
        self.bitwise(other, |a, b| a ^ b, |a, b| a ^ b)
    }

    /// The digits of an integer in a base from 2 to 36, in lower case.
    ///
    /// # Errors
    /// [`NumError::NotANumber`] if it is no integer, or the base is another.
    ///
    /// # Examples
    /// ```
    /// use core_ir::Num;
    /// assert_eq!("18446744073709551616".parse::<Num>().unwrap().to_radix(16).unwrap(), "10000000000000000");
    /// ```
    pub fn to_radix(&self, base: u32) -> Result<String, NumError> {
        let big = self.big();
        if big.is_integer() && (2..=36).contains(&base) {
            Ok(big.numer().to_str_radix(base))
        } else {
            Err(NumError::NotANumber)
        }
    }

    /// The negation.
    pub fn neg(&self) -> Num {
        match &self.0 {
            Repr::Int(i) if *i != i64::MIN => Num(Repr::Int(-i)),
            // The bit count of a negation is that of the number, up to the boundary of `i64`.
            _ => Num::checked(-self.big()).unwrap_or_else(|_| self.clone()),
        }
    }

    /// Returns true if the number is zero.
    pub fn is_zero(&self) -> bool {
        matches!(self.0, Repr::Int(0))
    }

    /// The number as a machine integer, if it is one.
    #[inline]
    pub fn to_i64(&self) -> Option<i64> {
        match &self.0 {
            Repr::Int(i) => Some(*i),
            Repr::Big(_) => None,
        }
    }

    /// The number as an index or count, if it is a non-negative machine integer.
    pub fn to_usize(&self) -> Option<usize> {
        self.to_i64().and_then(|i| usize::try_from(i).ok())
    }

    /// Returns the number of bits of the longer of numerator and denominator.
    ///
    /// # Examples
    /// ```
    /// use core_ir::Num;
    /// assert_eq!(Num::from(1).div(&Num::from(1024)).unwrap().bits(), 11);
    /// ```
    pub fn bits(&self) -> u64 {
        match &self.0 {
            Repr::Int(i) => u64::from(u64::BITS - i.unsigned_abs().leading_zeros()),
            Repr::Big(r) => r.numer().bits().max(r.denom().bits()),
        }
    }

    /// The nearest floating-point number (infinite if out of range).
    pub fn to_f64(&self) -> f64 {
        match &self.0 {
            Repr::Int(i) => *i as f64,
            Repr::Big(r) => r.to_f64().unwrap_or(f64::INFINITY),
        }
    }

    /// The largest integer not above.
    pub fn floor(&self) -> Num {
        match &self.0 {
            Repr::Int(_) => self.clone(),
            // Rounding never needs more bits than the fraction had, plus a carry within the limit's slack.
            Repr::Big(r) => Num::checked(r.floor()).unwrap_or_else(|_| self.clone()),
        }
    }

    /// The number as JSON: exact where a decimal can be, otherwise to 17 significant digits.
    pub fn to_json(&self) -> serde_json::Value {
        let text = match self.decimal() {
            Some(d) => d,
            None => format!("{:e}", self.to_f64()),
        };
        // Both forms are JSON numbers; a value outside the range of `f64` has a decimal form only if
        // it terminates, and is printed as text otherwise.
        serde_json::from_str(&text).unwrap_or_else(|_| serde_json::Value::String(self.to_string()))
    }

    /// Returns true if the number has a decimal notation that ends after at most a few thousand digits.
    ///
    /// # Examples
    /// ```
    /// use core_ir::Num;
    /// let [one, three, eight] = [1, 3, 8].map(Num::from);
    /// assert!(one.div(&eight).unwrap().is_decimal() && !one.div(&three).unwrap().is_decimal());
    /// ```
    pub fn is_decimal(&self) -> bool {
        matches!(self.0, Repr::Int(_)) || self.decimal().is_some()
    }

    /// Decimal notation if the expansion terminates (and is not longer than a few thousand digits).
    fn decimal(&self) -> Option<String> {
        let r = match &self.0 {
            Repr::Int(i) => return Some(i.to_string()),
            Repr::Big(r) => r,
        };
        if r.is_integer() {
            return Some(r.numer().to_string());
        }
        let (mut twos, mut fives, mut rest) = (0u32, 0u32, r.denom().clone());
        let (two, five) = (BigInt::from(2), BigInt::from(5));
        while (&rest % &two).is_zero() {
            rest /= &two;
            twos += 1;
        }
        while (&rest % &five).is_zero() {
            rest /= &five;
            fives += 1;
        }
        let places = twos.max(fives);
        if !rest.is_one() || places > 4_000 {
            return None;
        }
        let scaled = (r.numer() * BigInt::from(10).pow(places)) / r.denom();
        let digits = format!("{:0>width$}", scaled.abs().to_string(), width = places as usize + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places as usize);
        Some(format!("{}{whole}.{fraction}", if r.is_negative() { "-" } else { "" }))
    }
}

impl From<i64> for Num {
    #[inline]
    fn from(i: i64) -> Num {
        Num(Repr::Int(i))
    }
}

impl PartialEq for Num {
    #[inline]
    fn eq(&self, other: &Num) -> bool {
        match (&self.0, &other.0) {
            (Repr::Int(a), Repr::Int(b)) => a == b,
            (Repr::Big(a), Repr::Big(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Num {}

impl std::hash::Hash for Num {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match &self.0 {
            Repr::Int(i) => i.hash(state),
            Repr::Big(r) => r.hash(state),
        }
    }
}

impl PartialOrd for Num {
    fn partial_cmp(&self, other: &Num) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Num {
    #[inline]
    fn cmp(&self, other: &Num) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Int(a), Repr::Int(b)) => a.cmp(b),
            _ => self.big().cmp(&other.big()),
        }
    }
}

impl fmt::Display for Num {
    /// `12`, `-0.5`, or `1/3` where no decimal is exact.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.decimal(), &self.0) {
            (Some(d), _) => f.write_str(&d),
            (None, Repr::Big(r)) => write!(f, "{}/{}", r.numer(), r.denom()),
            (None, Repr::Int(i)) => write!(f, "{i}"),
        }
    }
}

impl std::str::FromStr for Num {
    type Err = NumError;

    /// Reads `12`, `-1.5`, `2e-3` or `1/3`.
    fn from_str(s: &str) -> Result<Num, NumError> {
        if let Ok(i) = s.parse::<i64>()
            && !s.starts_with('+')
        {
            return Ok(Num::from(i));
        }
        if let Some((a, b)) = s.split_once('/') {
            let whole = |t: &str| if t.contains('/') { Err(NumError::NotANumber) } else { t.parse::<Num>() };
            return whole(a)?.div(&whole(b)?);
        }
        let (mantissa, exponent) = match s.find(['e', 'E']) {
            Some(i) => (&s[..i], s[i + 1..].parse::<i64>().map_err(|_| exponent_error(&s[i + 1..]))?),
            None => (s, 0),
        };
        let (sign, digits) = match mantissa.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, mantissa),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty()
            || (digits.contains('.') && fraction.is_empty())
            || !all_digits(whole)
            || !all_digits(fraction)
        {
            return Err(NumError::NotANumber);
        }
        let scale = exponent.saturating_sub(fraction.len() as i64);
        if whole.len() + fraction.len() > MAX_EXPONENT as usize || scale.abs() > MAX_EXPONENT {
            return Err(NumError::TooLarge);
        }
        let all: BigInt = format!("{whole}{fraction}").parse().map_err(|_| NumError::NotANumber)?;
        let power = BigInt::from(10).pow(scale.unsigned_abs() as u32);
        let magnitude =
            if scale >= 0 { BigRational::from_integer(all * power) } else { BigRational::new(all, power) };
        Num::checked(if sign < 0 { -magnitude } else { magnitude })
    }
}

/// An exponent that is all digits but does not fit a machine integer is a number that is too large.
fn exponent_error(text: &str) -> NumError {
    let digits = text.trim_start_matches(['+', '-']);
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        NumError::TooLarge
    } else {
        NumError::NotANumber
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn n(s: &str) -> Num {
        s.parse().unwrap()
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(n("0.1").add(&n("0.2")).unwrap(), n("0.3"));
        assert_eq!(n("1e3"), Num::from(1000));
        assert_eq!(n("-2.50").to_string(), "-2.5");
        assert_eq!(n("0.05").to_string(), "0.05");
        assert_eq!(n("7").rem(&n("-3")).unwrap(), n("-2"));
        assert_eq!(Num::from(i64::MIN).rem(&Num::from(-1)).unwrap(), Num::ZERO);
        assert_eq!(Num::from(i64::MIN).neg().to_string(), "9223372036854775808");
        assert_eq!(n("9223372036854775808").neg(), Num::from(i64::MIN));
    }

    #[test]
    fn hostile_numbers_are_refused_quickly() {
        for s in ["1e999999999", "1e-999999999", "1e99999999999999999999"] {
            assert_eq!(s.parse::<Num>(), Err(NumError::TooLarge), "{s}");
        }
        for s in ["", "-", ".", "1.", ".5", "1e", "0x1", "1/2/3", "--1", "1e1.5", "+1", "NaN"] {
            assert_eq!(s.parse::<Num>(), Err(NumError::NotANumber), "{s}");
        }
        assert_eq!("1/0".parse::<Num>(), Err(NumError::DivisionByZero));
        let mut x = Num::from(3);
        let refused = (0..40).find_map(|_| match x.mul(&x.clone()) {
            Ok(y) => {
                x = y;
                None
            }
            Err(e) => Some(e),
        });
        assert_eq!(refused, Some(NumError::TooLarge));
    }

    proptest! {
        #[test]
        fn printing_and_reading_is_the_identity(a in any::<i64>(), b in 1..10_000i64) {
            let x = Num::from(a).div(&Num::from(b)).unwrap();
            prop_assert_eq!(x.to_string().parse::<Num>().unwrap(), x);
        }

        #[test]
        fn the_fast_path_agrees_with_the_slow_one(a in any::<i64>(), b in any::<i64>()) {
            let (x, y) = (Num::from(a), Num::from(b));
            prop_assert_eq!(x.add(&y).unwrap(), Num::checked(x.big() + y.big()).unwrap());
            prop_assert_eq!(x.mul(&y).unwrap(), Num::checked(x.big() * y.big()).unwrap());
            if b != 0 {
                let (q, r) = (x.div(&y).unwrap(), x.rem(&y).unwrap());
                prop_assert_eq!(&q, &Num::checked(x.big() / y.big()).unwrap());
                prop_assert_eq!(q.floor().mul(&y).unwrap().add(&r).unwrap(), x);
            }
        }
    }
}
