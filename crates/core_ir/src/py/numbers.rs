//! Numbers, and the operators on two values.

use super::{
    PyError, PyResult, View, class, format, raise, seq, truth, type_error, unsupported, value_error, view,
};
use crate::{Data, Num, NumError};

impl From<NumError> for PyError {
    fn from(e: NumError) -> PyError {
        match e {
            NumError::DivisionByZero => PyError::Raise("ZeroDivisionError", "division by zero".into()),
            NumError::TooLarge => PyError::Raise("OverflowError", "number too large".into()),
            NumError::NotANumber => PyError::Raise("ValueError", "not a number".into()),
        }
    }
}

/// Returns true for an integer.
pub(super) fn whole(n: &Num) -> bool {
    n.to_i64().is_some() || n.floor() == *n
}

/// The number that a value is in arithmetic; truth values are 0 and 1.
pub(super) fn number(d: &Data) -> Option<Num> {
    match view(d) {
        View::Bool(b) => Some(Num::from(i64::from(b))),
        View::Num(n) => Some(n.clone()),
        _ => None,
    }
}

/// An integer operand.
pub(super) fn integer(d: &Data) -> PyResult<Num> {
    match number(d) {
        Some(n) if whole(&n) => Ok(n),
        _ => type_error(format!("'{}' object cannot be interpreted as an integer", class(d))),
    }
}

/// An integer operand within the machine's range.
pub(super) fn small(d: &Data) -> PyResult<i64> {
    integer(d)?.to_i64().map_or_else(|| raise("OverflowError", "number too large"), Ok)
}

/// An integer operand where CPython converts it to an `int` of C.
pub(super) fn c_int(d: &Data) -> PyResult<i64> {
    let n = integer(d)?.to_i64().filter(|n| i32::try_from(*n).is_ok());
    n.map_or_else(|| raise("OverflowError", "Python int too large to convert to C int"), Ok)
}

/// Rounds toward zero.
pub(super) fn trunc(n: &Num) -> Num {
    if *n < Num::ZERO { n.neg().floor().neg() } else { n.floor() }
}

/// Rounds to the nearest integer, ties to even.
pub(super) fn half_even(n: &Num) -> PyResult<Num> {
    let floor = n.floor();
    let rest = n.sub(&floor)?.mul(&Num::from(2))?;
    let odd = !floor.rem(&Num::from(2))?.is_zero();
    Ok(if rest > Num::ONE || (rest == Num::ONE && odd) { floor.add(&Num::ONE)? } else { floor })
}

/// `base` to an integer power.
pub(super) fn power(base: &Num, exponent: i64) -> PyResult<Num> {
    let mut result = Num::ONE;
    let mut square = base.clone();
    let mut n = exponent.unsigned_abs();
    while n > 0 {
        if n & 1 == 1 {
            result = result.mul(&square)?;
        }
        n >>= 1;
        if n > 0 {
            square = square.mul(&square)?;
        }
    }
    Ok(if exponent < 0 { Num::ONE.div(&result)? } else { result })
}

fn pow(a: &Num, b: &Num) -> PyResult<Num> {
    if !whole(b) {
        if *a < Num::ZERO {
            return unsupported("a negative number to a fractional power is complex");
        }
        let root = a.to_f64().powf(b.to_f64());
        return Ok(format!("{root:e}").parse::<Num>()?);
    }
    let unit = *a == Num::ONE || a.is_zero() || *a == Num::from(-1);
    match b.to_i64() {
        Some(n) if unit || n.unsigned_abs() <= 1 << 16 => power(a, n),
        _ => raise("OverflowError", "number too large"),
    }
}

/// `pow(a, b, m)`: the power modulo an integer.
pub(super) fn pow_mod(a: &Data, b: &Data, m: &Data) -> PyResult {
    let all = [a, b, m].map(|d| number(d).filter(whole));
    let [Some(a), Some(b), Some(m)] = all else {
        return type_error("pow() 3rd argument not allowed unless all arguments are integers");
    };
    if m.is_zero() {
        return value_error("pow() 3rd argument cannot be 0");
    }
    let modulo = |x: &Num| -> PyResult<Num> { Ok(x.sub(&m.mul(&floor_div(x, &m)?)?)?) };
    let mut n = match b.to_i64() {
        Some(n) if n < 0 => return unsupported("a negative power modulo a number"),
        Some(n) => n,
        None => return raise("OverflowError", "number too large"),
    };
    let (mut result, mut square) = (modulo(&Num::ONE)?, modulo(&a)?);
    while n > 0 {
        if n & 1 == 1 {
            result = modulo(&result.mul(&square)?)?;
        }
        n >>= 1;
        if n > 0 {
            square = modulo(&square.mul(&square)?)?;
        }
    }
    Ok(Data::Num(result))
}

/// The message of a division by zero, of an integer or not.
pub(super) fn by_zero(op: &str, whole: bool) -> Option<&'static str> {
    Some(match (op, whole) {
        ("div", true) => "division by zero",
        ("div", false) => "float division by zero",
        ("floordiv" | "divmod", true) => "integer division or modulo by zero",
        ("floordiv", false) => "float floor division by zero",
        ("mod", true) => "integer modulo by zero",
        ("mod", false) => "float modulo",
        ("divmod", false) => "float divmod()",
        _ => return None,
    })
}

/// The largest integer not above the quotient.
pub(super) fn floor_div(a: &Num, b: &Num) -> PyResult<Num> {
    Ok(a.div(b)?.floor())
}

pub(super) fn binary(op: &str, a: &Data, b: &Data, limit: usize) -> PyResult {
    if op == "add_to" && matches!(view(a), View::List(_)) {
        let mut items = super::iterate(a)?;
        items.extend(super::iterate(b)?);
        return Ok(Data::list(items));
    }
    let op = if op == "add_to" { "add" } else { op };
    // A member of a `StrEnum` is a text.
    let text = |d: &Data| match view(d) {
        View::Object(_, super::ClassKind::StrEnum, _) => super::objects::member(d).cloned(),
        _ => None,
    };
    let (x, y) = (text(a), text(b));
    let (a, b) = (x.as_ref().unwrap_or(a), y.as_ref().unwrap_or(b));
    if let Some(result) = super::dates::binary(op, a, b) {
        return result;
    }
    if [a, b].iter().any(|d| matches!(view(d), View::Counter(_) | View::Default(..))) {
        return unsupported("an operator on a `Counter` or `defaultdict`: use `dict(c)`");
    }
    if let (Some(x), Some(y)) = (number(a), number(b)) {
        let both = matches!((view(a), view(b)), (View::Bool(_), View::Bool(_)));
        if y.is_zero()
            && let Some(message) = by_zero(op, whole(&x))
        {
            return raise("ZeroDivisionError", message);
        }
        return Ok(Data::Num(match op {
            "add" => x.add(&y)?,
            "sub" => x.sub(&y)?,
            "mul" => x.mul(&y)?,
            "div" => x.div(&y)?,
            "floordiv" => floor_div(&x, &y)?,
            "mod" => x.rem(&y)?,
            "pow" => {
                if x.is_zero() && y < Num::ZERO {
                    return raise("ZeroDivisionError", "0.0 cannot be raised to a negative power");
                }
                pow(&x, &y)?
            }
            "and" | "or" | "xor" => {
                let (p, q) = (integer(a)?, integer(b)?);
                let r = match op {
                    "and" => p.bit_and(&q)?,
                    "or" => p.bit_or(&q)?,
                    _ => p.bit_xor(&q)?,
                };
                return Ok(if both { Data::Bool(!r.is_zero()) } else { Data::Num(r) });
            }
            _ => return Err(PyError::Unknown),
        }));
    }
    let wrong = || {
        let sign = match op {
            "add" => "+",
            "sub" => "-",
            "mul" => "*",
            "div" => "/",
            "floordiv" => "//",
            "mod" => "%",
            "pow" => "** or pow()",
            "and" => "&",
            "or" => "|",
            _ => "^",
        };
        type_error(format!("unsupported operand type(s) for {sign}: '{}' and '{}'", class(a), class(b)))
    };
    let room = |n: usize| if n > limit { Err(PyError::Limit) } else { Ok(()) };
    match (op, view(a), view(b)) {
        ("add", View::Str(x), View::Str(y)) => {
            room(x.len() + y.len())?;
            Ok(Data::str(format!("{x}{y}")))
        }
        ("add", View::List(x), View::List(y)) => Ok(Data::list(x.iter().chain(y).cloned())),
        ("add", View::Tuple(x), View::Tuple(y)) => Ok(super::tuple(x.iter().chain(y).cloned().collect())),
        ("mul", View::Str(_) | View::List(_) | View::Tuple(_), _) if number(b).is_some() => {
            times(a, b, &room)
        }
        ("mul", _, View::Str(_) | View::List(_) | View::Tuple(_)) if number(a).is_some() => {
            times(b, a, &room)
        }
        ("and" | "or" | "xor" | "sub", View::Set(x), View::Set(y)) => seq::combine(op, x, y),
        ("or", View::Record(_) | View::Dict(_), View::Record(_) | View::Dict(_)) => {
            let mut out = super::pairs(a).unwrap_or_default();
            for (k, v) in super::pairs(b).unwrap_or_default() {
                super::put(&mut out, k, v);
            }
            Ok(super::dict(out))
        }
        ("mod", View::Str(_), _) => unsupported("`%` does not format text: use an f-string"),
        _ => wrong(),
    }
}

fn times(of: &Data, count: &Data, room: &dyn Fn(usize) -> PyResult<()>) -> PyResult {
    let Some(n) = number(count).filter(whole) else {
        return type_error(format!("can't multiply sequence by non-int of type '{}'", class(count)));
    };
    let n = if n < Num::ZERO { 0 } else { n.to_usize().ok_or(PyError::Limit)? };
    match view(of) {
        View::Str(s) => {
            room(s.len().saturating_mul(n))?;
            Ok(Data::str(s.repeat(n)))
        }
        View::List(items) | View::Tuple(items) => {
            room(items.len().saturating_mul(n).saturating_mul(16))?;
            let all: Vec<Data> = (0..n).flat_map(|_| items.iter().cloned()).collect();
            Ok(if matches!(view(of), View::Tuple(_)) { super::tuple(all) } else { Data::list(all) })
        }
        _ => Err(PyError::Unknown),
    }
}

pub(super) fn unary(op: &str, a: &Data) -> PyResult {
    if let View::Moment(m) = view(a)
        && let Some(result) = super::dates::unary(op, m)
    {
        return result;
    }
    match (op, number(a)) {
        ("neg", Some(n)) => Ok(Data::Num(n.neg())),
        ("pos", Some(n)) => Ok(Data::Num(n)),
        ("invert", Some(n)) if whole(&n) => Ok(Data::Num(n.neg().sub(&Num::ONE)?)),
        ("neg" | "pos" | "invert", _) => {
            let sign = match op {
                "neg" => "-",
                "pos" => "+",
                _ => "~",
            };
            type_error(format!("bad operand type for unary {sign}: '{}'", class(a)))
        }
        _ => Err(PyError::Unknown),
    }
}

/// `int(x)`.
pub(super) fn int(d: &Data) -> PyResult {
    match view(d) {
        View::Bool(_) | View::Num(_) => Ok(Data::Num(trunc(&number(d).unwrap_or(Num::ZERO)))),
        View::Str(s) => {
            let wrong =
                || value_error(format!("invalid literal for int() with base 10: {}", format::repr(d)));
            let digits = super::unicode::number_text(s);
            let body = digits.strip_prefix(['+', '-']).unwrap_or(&digits);
            let fine = !body.is_empty()
                && body.bytes().all(|b| b.is_ascii_digit() || b == b'_')
                && !body.starts_with('_')
                && !body.ends_with('_')
                && !body.contains("__");
            if !fine {
                return wrong();
            }
            let number: Num = body.replace('_', "").parse()?;
            Ok(Data::Num(if digits.starts_with('-') { number.neg() } else { number }))
        }
        _ => type_error(format!(
            "int() argument must be a string, a bytes-like object or a real number, not '{}'",
            class(d)
        )),
    }
}

/// `int(text, base)`.
pub(super) fn int_of_base(d: &Data, base: &Data) -> PyResult {
    let base = small(base)?;
    let Data::Str(s) = d else { return type_error("int() can't convert non-string with explicit base") };
    if base != 0 && !(2..=36).contains(&base) {
        return value_error("int() base must be >= 2 and <= 36, or 0");
    }
    let wrong = || value_error(format!("invalid literal for int() with base {base}: {}", format::repr(d)));
    let text = super::unicode::number_text(s).to_ascii_lowercase();
    let (negative, body) = match text.strip_prefix(['+', '-']) {
        Some(body) => (text.starts_with('-'), body),
        None => (false, text.as_str()),
    };
    let prefixed = [("0x", 16), ("0o", 8), ("0b", 2)]
        .into_iter()
        .find_map(|(p, b)| (base == 0 || base == b).then(|| Some((body.strip_prefix(p)?, b)))?);
    let guessed = base == 0;
    let (digits, base) = prefixed.unwrap_or((body, if base == 0 { 10 } else { base }));
    let digits = if prefixed.is_some() { digits.strip_prefix('_').unwrap_or(digits) } else { digits };
    let fine =
        !digits.is_empty() && !digits.starts_with('_') && !digits.ends_with('_') && !digits.contains("__");
    // As in a program, a decimal number has no zeros before it: `0012` might be meant as octal.
    let octal = guessed && prefixed.is_none() && digits.starts_with('0');
    if !fine || octal && digits.bytes().any(|b| !matches!(b, b'0' | b'_')) {
        return wrong();
    }
    let scale = Num::from(base);
    let mut total = Num::ZERO;
    for c in digits.chars().filter(|c| *c != '_') {
        let Some(digit) = c.to_digit(base as u32) else { return wrong() };
        total = total.mul(&scale)?.add(&Num::from(i64::from(digit)))?;
    }
    Ok(Data::Num(if negative { total.neg() } else { total }))
}

/// `float(x)`.
pub(super) fn float(d: &Data) -> PyResult {
    match view(d) {
        View::Bool(_) | View::Num(_) => Ok(Data::Num(number(d).unwrap_or(Num::ZERO))),
        View::Str(s) => {
            let text = super::unicode::number_text(s).to_ascii_lowercase();
            let (negative, body) = match text.strip_prefix(['+', '-']) {
                Some(body) => (text.starts_with('-'), body),
                None => (false, text.as_str()),
            };
            // An underscore stands between two digits.
            let digit = |c: Option<&u8>| c.is_some_and(u8::is_ascii_digit);
            let bytes = body.as_bytes();
            let between =
                |i: usize| digit(i.checked_sub(1).and_then(|i| bytes.get(i))) && digit(bytes.get(i + 1));
            let fine = bytes.iter().enumerate().all(|(i, c)| *c != b'_' || between(i));
            let joined = if fine { body.replace('_', "") } else { body.to_string() };
            let body = joined.as_str();
            if matches!(body, "inf" | "infinity" | "nan") {
                return unsupported("numbers are exact: there is no infinity and no NaN");
            }
            // `.5` and `5.` are numbers for Python.
            let (mantissa, exponent) = match body.split_once('e') {
                Some((m, e)) => (m, format!("e{}", e.strip_prefix('+').unwrap_or(e))),
                None => (body, String::new()),
            };
            let mut mantissa = mantissa.trim_end_matches('.').to_string();
            if body.split('e').next().is_some_and(|m| m.ends_with("..") || m == ".") {
                mantissa.clear();
            }
            if mantissa.starts_with('.') {
                mantissa.insert(0, '0');
            }
            match format!("{mantissa}{exponent}").parse::<Num>() {
                Ok(n) if !mantissa.contains('/') => Ok(Data::Num(if negative { n.neg() } else { n })),
                Err(NumError::TooLarge) => raise("OverflowError", "number too large"),
                _ => value_error(format!("could not convert string to float: {}", format::repr(d))),
            }
        }
        _ => type_error(format!("float() argument must be a string or a real number, not '{}'", class(d))),
    }
}

/// `round(x[, digits])`.
pub(super) fn round(d: &Data, digits: Option<&Data>) -> PyResult {
    let Some(n) = number(d) else {
        return type_error(format!("type {} doesn't define __round__ method", class(d)));
    };
    let places = match digits {
        None | Some(Data::Null) => return Ok(Data::Num(half_even(&n)?)),
        Some(d) => small(d)?,
    };
    if places.abs() > 1000 {
        return if places > 0 { Ok(Data::Num(n)) } else { Ok(Data::Num(Num::ZERO)) };
    }
    let scale = power(&Num::from(10), places)?;
    Ok(Data::Num(half_even(&n.mul(&scale)?)?.div(&scale)?))
}

/// `bool(x)`.
pub(super) fn boolean(d: &Data) -> Data {
    Data::Bool(truth(d))
}
