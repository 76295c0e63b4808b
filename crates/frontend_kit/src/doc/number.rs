//! Numbers as they are written, read exactly and only when asked.

/// A decimal number: `±digits × 10^exponent`, without leading or trailing zeros in `digits` (which
/// is empty for zero).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    pub negative: bool,
    pub digits: String,
    pub exponent: i64,
}

/// Exponents beyond this are not taken as numbers: `1e999999999` is a request for a gigabyte.
const MAX_EXPONENT: i64 = 400;

/// Returns true if a plain YAML scalar is a number: YAML 1.2's core schema, plus digits grouped by `_` as in
/// YAML 1.1, which most Python programs read.
pub(super) fn is_yaml_number(text: &str) -> bool {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(body, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    if let Some(hex) = body.strip_prefix("0x") {
        return !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit());
    }
    if let Some(octal) = body.strip_prefix("0o") {
        return !octal.is_empty() && octal.bytes().all(|b| (b'0'..=b'7').contains(&b));
    }
    decimal_parts(body).is_some()
}

/// Whole digits, fraction digits and exponent of an unsigned decimal.
fn decimal_parts(body: &str) -> Option<(&str, &str, Option<&str>)> {
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(i) => (&body[..i], Some(&body[i + 1..])),
        None => (body, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let grouped = |s: &str| s.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    // `_1` and `1_` are words.
    let starts = whole.bytes().next().is_none_or(|b| b.is_ascii_digit());
    let ends = whole.bytes().last().is_none_or(|b| b.is_ascii_digit());
    let plain = fraction.bytes().all(|b| b.is_ascii_digit());
    let some_digit = !whole.is_empty() || !fraction.is_empty();
    if !(grouped(whole) && starts && ends && plain && some_digit) {
        return None;
    }
    if let Some(e) = exponent {
        let e = e.strip_prefix(['-', '+']).unwrap_or(e);
        if e.is_empty() || !e.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
    }
    Some((whole, fraction, exponent))
}

/// The exact value; `None` for infinities, NaN and absurd exponents.
pub(super) fn decimal(text: &str) -> Option<Decimal> {
    let negative = text.starts_with('-');
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    let radix = |digits: &str, radix: u32| {
        let n = u128::from_str_radix(digits, radix).ok()?;
        Some(normal(negative, n.to_string(), 0))
    };
    if let Some(hex) = body.strip_prefix("0x") {
        return radix(hex, 16);
    }
    if let Some(octal) = body.strip_prefix("0o") {
        return radix(octal, 8);
    }
    let (whole, fraction, exponent) = decimal_parts(body)?;
    let exponent = match exponent {
        Some(e) => e.parse::<i64>().ok().filter(|e| e.abs() <= MAX_EXPONENT)?,
        None => 0,
    };
    let digits: String = whole.chars().filter(|c| *c != '_').chain(fraction.chars()).collect();
    Some(normal(negative, digits, exponent - fraction.len() as i64))
}

fn normal(negative: bool, digits: String, mut exponent: i64) -> Decimal {
    let digits = digits.trim_start_matches('0');
    let short = digits.trim_end_matches('0');
    exponent += (digits.len() - short.len()) as i64;
    if short.is_empty() {
        return Decimal { negative: false, digits: String::new(), exponent: 0 };
    }
    Decimal { negative, digits: short.to_string(), exponent }
}

impl Decimal {
    /// The exact number, if it is not too large for one.
    pub fn to_num(&self) -> Option<core_ir::Num> {
        if self.digits.is_empty() {
            return Some(core_ir::Num::ZERO);
        }
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{}e{}", self.digits, self.exponent).parse().ok()
    }

    /// The value if it is a whole number from zero to `u64::MAX`.
    pub fn as_u64(&self) -> Option<u64> {
        if self.negative || self.exponent < 0 || self.exponent > 20 {
            return None;
        }
        if self.digits.is_empty() {
            return Some(0);
        }
        let base: u64 = self.digits.parse().ok()?;
        base.checked_mul(10u64.checked_pow(u32::try_from(self.exponent).ok()?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_syntax() {
        for yes in [
            "0", "-1", "+3", "1.5", ".5", "1.", "1e3", "1E-3", "0x1F", "0o17", "1_000", ".inf", "-.inf",
            ".nan",
        ] {
            assert!(is_yaml_number(yes), "{yes}");
        }
        for no in ["", "-", ".", "e3", "1e", "1.2.3", "0x", "0o9", "_1", "1_", "1:30", "v1", "١"] {
            assert!(!is_yaml_number(no), "{no}");
        }
    }

    #[test]
    fn whole_numbers_are_exact() {
        let u = |t: &str| decimal(t).and_then(|d| d.as_u64());
        assert_eq!(u("20"), Some(20));
        assert_eq!(u("20.0"), Some(20));
        assert_eq!(u("2e1"), Some(20));
        assert_eq!(u("200e-1"), Some(20));
        assert_eq!(u("0"), Some(0));
        assert_eq!(u("-0.0"), Some(0));
        assert_eq!(u("0x14"), Some(20));
        assert_eq!(u("18446744073709551615"), Some(u64::MAX));
        assert_eq!(u("18446744073709551616"), None);
        assert_eq!(decimal("-0.70").and_then(|d| d.to_num()), "-7/10".parse().ok());
        assert_eq!(decimal("0x10").and_then(|d| d.to_num()), Some(16.into()));
        assert_eq!(decimal("1_0.50e1").and_then(|d| d.to_num()), Some(105.into()));
        assert_eq!(u("-1"), None);
        assert_eq!(u("0.5"), None);
        assert_eq!(u("1e999999999"), None);
        assert_eq!(u(".inf"), None);
    }
}
