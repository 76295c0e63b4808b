//! `str`, `repr` and format specifications.

use super::numbers::{half_even, number, power, whole};
use super::{
    ClassKind, Moment, PyError, PyResult, View, class, dates, objects, pair, raise, type_error, unicode,
    value_error, view,
};
use crate::{Data, Num};

/// `str(x)`.
pub(super) fn str(d: &Data) -> String {
    match view(d) {
        View::Str(s) => s.to_string(),
        View::Exception(_, message) => message.to_string(),
        View::Moment(m) => dates::str(m),
        View::Object(class, ClassKind::Enum | ClassKind::StrEnum, fields) => {
            if objects::shown_as_value(fields) {
                d.field("value").map_or_else(String::new, str)
            } else {
                format!("{class}.{}", d.field("name").and_then(Data::as_str).unwrap_or(""))
            }
        }
        View::Object(_, ClassKind::Model, fields) => {
            let all: Vec<String> = objects::own(fields).map(|(n, v)| format!("{n}={}", repr(v))).collect();
            all.join(" ")
        }
        _ => repr(d),
    }
}

/// `repr(x)`.
pub fn repr(d: &Data) -> String {
    let list = |items: &[Data]| items.iter().map(repr).collect::<Vec<_>>().join(", ");
    stacker::maybe_grow(64 << 10, 1 << 20, || match view(d) {
        View::None => "None".into(),
        View::Bool(b) => if b { "True" } else { "False" }.into(),
        View::Num(n) => num(n),
        View::Str(s) => quoted(s),
        View::List(items) => format!("[{}]", list(items)),
        View::Tuple([one]) => format!("({},)", repr(one)),
        View::Tuple(items) => format!("({})", list(items)),
        View::Set([]) => "set()".into(),
        View::Set(items) => format!("{{{}}}", list(items)),
        View::Record(fields) => {
            let all: Vec<String> =
                fields.iter().map(|(n, v)| format!("{}: {}", quoted(n), repr(v))).collect();
            format!("{{{}}}", all.join(", "))
        }
        View::Dict(items) => {
            let all: Vec<String> =
                items.iter().filter_map(pair).map(|(k, v)| format!("{}: {}", repr(&k), repr(&v))).collect();
            format!("{{{}}}", all.join(", "))
        }
        // The message of a `KeyError` is what `repr` shows of the key.
        View::Exception(class @ "KeyError", message) | View::Exception(class, message @ "") => {
            format!("{class}({message})")
        }
        View::Exception(class, message) => format!("{class}({})", quoted(message)),
        View::Counter(inner) => {
            if super::truth(inner) {
                let sorted = super::methods::most_common(inner).unwrap_or_default();
                let all: Vec<String> =
                    sorted.iter().map(|(k, v)| format!("{}: {}", repr(k), repr(v))).collect();
                format!("Counter({{{}}})", all.join(", "))
            } else {
                "Counter()".into()
            }
        }
        View::Default(factory, inner) => format!("defaultdict(<class '{factory}'>, {})", repr(inner)),
        View::Object(class, ClassKind::Enum | ClassKind::StrEnum, _) => {
            let name = d.field("name").and_then(Data::as_str).unwrap_or("");
            format!("<{class}.{name}: {}>", d.field("value").map_or_else(String::new, repr))
        }
        View::Object(class, _, fields) => {
            let all: Vec<String> = objects::own(fields).map(|(n, v)| format!("{n}={}", repr(v))).collect();
            format!("{class}({})", all.join(", "))
        }
        View::Moment(m) => dates::repr(m),
        View::Match(m) => {
            let of =
                |name| super::regexes::method(m, name, &[], &[]).map_or_else(|_| String::new(), |d| repr(&d));
            format!("<re.Match object; span={}, match={}>", of("span"), of("group"))
        }
        View::Pattern(text) => format!("re.compile({})", quoted(text)),
        View::Other => d.to_json().to_string(),
    })
}

fn quoted(s: &str) -> String {
    let quote = if s.contains('\'') && !s.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(s.len() + 2);
    out.push(quote);
    for c in s.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if unicode::printable(c) => out.push(c),
            c => out.push_str(&match c as u32 {
                n @ ..=0xff => format!("\\x{n:02x}"),
                n @ ..=0xffff => format!("\\u{n:04x}"),
                n => format!("\\U{n:08x}"),
            }),
        }
    }
    out.push(quote);
    out
}

/// A number as Python shows it: a whole one as an `int`, another as the nearest `float`.
pub(super) fn num(n: &Num) -> String {
    if whole(n) {
        return n.to_string();
    }
    let shortest = format!("{:e}", n.to_f64());
    let Some((mantissa, exponent)) = shortest.split_once('e') else { return shortest };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(m) => ("-", m),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    if !(-4..16).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let direction = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}{point}{rest}e{direction}{:02}", exponent.abs());
    }
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize));
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        return format!("{sign}{digits}{}.0", "0".repeat(whole - digits.len()));
    }
    format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
}

/// The digits of `|n|` with `places` after the point.
fn fixed(n: &Num, places: i64) -> PyResult<String> {
    let magnitude = if *n < Num::ZERO { n.neg() } else { n.clone() };
    let scaled = half_even(&magnitude.mul(&power(&Num::from(10), places)?)?)?;
    let digits = format!("{:0>width$}", scaled.to_string(), width = places as usize + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places as usize);
    Ok(if places == 0 { whole.into() } else { format!("{whole}.{fraction}") })
}

/// `|n|` as digits `d.ddd` of `places` after the point, and the exponent.
fn scientific(n: &Num, places: i64) -> PyResult<(String, i64)> {
    let magnitude = if *n < Num::ZERO { n.neg() } else { n.clone() };
    if magnitude.is_zero() {
        return Ok((fixed(&magnitude, places)?, 0));
    }
    let ten = Num::from(10);
    let mut exponent = magnitude.to_f64().log10().floor();
    if !exponent.is_finite() {
        exponent = 0.0;
    }
    let mut exponent = exponent as i64;
    for _ in 0..8 {
        let mantissa = magnitude.div(&power(&ten, exponent)?)?;
        if mantissa >= ten {
            exponent += 1;
        } else if mantissa < Num::ONE {
            exponent -= 1;
        } else {
            let text = fixed(&mantissa, places)?;
            // Rounding may have carried: `9.99` is `1.0e1`.
            return Ok(match text.starts_with("10") {
                true => (fixed(&Num::ONE, places)?, exponent + 1),
                false => (text, exponent),
            });
        }
    }
    raise("OverflowError", "number too large")
}

fn general(n: &Num, precision: i64, keep: bool) -> PyResult<String> {
    let precision = precision.max(1);
    let (mantissa, exponent) = scientific(n, precision - 1)?;
    if (-4..precision).contains(&exponent) {
        return Ok(trimmed(fixed(n, precision - 1 - exponent)?, keep));
    }
    Ok(format!("{}{}", trimmed(mantissa, keep), exponent_text(exponent)))
}

/// As `g`, with a digit after the point wherever there is no exponent.
fn untyped(n: &Num, precision: i64, keep: bool) -> PyResult<String> {
    let precision = precision.max(1);
    let (mantissa, exponent) = scientific(n, precision - 1)?;
    if (-4..precision - 1).contains(&exponent) {
        let text = trimmed(fixed(n, precision - 1 - exponent)?, keep);
        return Ok(if text.contains('.') { text } else { text + ".0" });
    }
    Ok(format!("{}{}", trimmed(mantissa, keep), exponent_text(exponent)))
}

/// A mantissa without zeros at its end; with a point in any case where the form is the alternate one.
fn trimmed(text: String, keep: bool) -> String {
    match (keep, text.contains('.')) {
        (true, true) | (false, false) => text,
        (true, false) => text + ".",
        (false, true) => text.trim_end_matches('0').trim_end_matches('.').to_string(),
    }
}

fn exponent_text(exponent: i64) -> String {
    format!("e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

struct Spec {
    fill: char,
    align: Option<char>,
    /// True if the alignment was written, and is not that of a zero before the width.
    aligned: bool,
    sign: char,
    /// True if a sign is written, also `-`.
    signed: bool,
    alternate: bool,
    width: usize,
    group: Option<char>,
    precision: Option<i64>,
    kind: Option<char>,
}

fn spec(text: &str) -> PyResult<Spec> {
    let wrong = || value_error(format!("Invalid format specifier '{text}'"));
    let chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    let mut spec = Spec {
        fill: ' ',
        align: None,
        aligned: false,
        sign: '-',
        signed: false,
        alternate: false,
        width: 0,
        group: None,
        precision: None,
        kind: None,
    };
    let is_align = |c: char| matches!(c, '<' | '>' | '^' | '=');
    let mut filled = false;
    match chars[..] {
        [fill, align, ..] if is_align(align) => {
            (spec.fill, spec.align, filled) = (fill, Some(align), true);
            at = 2;
        }
        [align, ..] if is_align(align) => {
            spec.align = Some(align);
            at = 1;
        }
        _ => {}
    }
    let next = |at: &mut usize, accepts: &dyn Fn(char) -> bool| {
        let found = chars.get(*at).copied().filter(|c| accepts(*c));
        *at += usize::from(found.is_some());
        found
    };
    spec.aligned = spec.align.is_some();
    if let Some(sign) = next(&mut at, &|c| matches!(c, '+' | '-' | ' ')) {
        (spec.sign, spec.signed) = (sign, true);
    }
    spec.alternate = next(&mut at, &|c| c == '#').is_some();
    // Beside a fill of its own, the zero is a digit of the width.
    if !filled && next(&mut at, &|c| c == '0').is_some() {
        (spec.fill, spec.align) = ('0', spec.align.or(Some('=')));
    }
    let digits = |at: &mut usize| {
        let mut out = String::new();
        while let Some(d) = next(at, &|c| c.is_ascii_digit()) {
            out.push(d);
        }
        out
    };
    let width = digits(&mut at);
    if !width.is_empty() {
        spec.width = width.parse().map_err(|_| PyError::Limit)?;
    }
    spec.group = next(&mut at, &|c| matches!(c, ',' | '_'));
    if next(&mut at, &|c| c == '.').is_some() {
        let precision = digits(&mut at);
        if precision.is_empty() {
            return value_error("Format specifier missing precision");
        }
        spec.precision = Some(precision.parse().map_err(|_| PyError::Limit)?);
    }
    spec.kind = next(&mut at, &|_| true);
    if at < chars.len() {
        return wrong();
    }
    if spec.precision.is_some_and(|p| p > 2000) {
        return raise("ValueError", "Too many decimal digits in format string");
    }
    Ok(spec)
}

fn pad(text: &str, spec: &Spec, default: char, limit: usize) -> PyResult<String> {
    let length = text.chars().count();
    if spec.width > limit {
        return Err(PyError::Limit);
    }
    let missing = spec.width.saturating_sub(length);
    let fill = |n: usize| spec.fill.to_string().repeat(n);
    Ok(match spec.align.unwrap_or(default) {
        '<' => format!("{text}{}", fill(missing)),
        '^' => format!("{}{text}{}", fill(missing / 2), fill(missing - missing / 2)),
        _ => format!("{}{text}", fill(missing)),
    })
}

fn grouped(digits: &str, by: char, size: usize) -> String {
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(size) {
            out.push(by);
        }
        out.push(c);
    }
    out
}

/// `format(x, spec)`.
pub(super) fn format(d: &Data, text: &str, limit: usize) -> PyResult<String> {
    if text.is_empty() {
        return Ok(str(d));
    }
    if let View::Moment(m @ (Moment::Date(_) | Moment::DateTime(..) | Moment::Time(_))) = view(d) {
        return dates::strftime(m, text);
    }
    if let View::Object(_, ClassKind::Enum | ClassKind::StrEnum, _) = view(d) {
        return format(&Data::str(str(d)), text, limit);
    }
    let spec = spec(text)?;
    let unknown =
        |k: char| value_error(format!("Unknown format code '{k}' for object of type '{}'", class(d)));
    let n = match view(d) {
        View::Str(s) => {
            if !matches!(spec.kind, None | Some('s')) {
                return unknown(spec.kind.unwrap_or('s'));
            }
            // `0` before the width asks for `=`, which strings do not have.
            if spec.align == Some('=') && spec.aligned {
                return value_error("'=' alignment not allowed in string format specifier");
            }
            if spec.signed {
                return value_error("Sign not allowed in string format specifier");
            }
            if spec.alternate {
                return value_error("Alternate form (#) not allowed in string format specifier");
            }
            if let Some(group) = spec.group {
                return value_error(format!("Cannot specify '{group}' with 's'."));
            }
            let cut: String = match spec.precision {
                Some(p) => s.chars().take(p as usize).collect(),
                None => s.into(),
            };
            let spec = Spec { align: spec.align.map(|a| if a == '=' { '<' } else { a }), ..spec };
            return pad(&cut, &spec, '<', limit);
        }
        View::Bool(_) if spec.kind.is_none() && spec.precision.is_none() => number(d).unwrap_or(Num::ZERO),
        View::Bool(_) | View::Num(_) => number(d).unwrap_or(Num::ZERO),
        _ => {
            return type_error(format!("unsupported format string passed to {}.__format__", class(d)));
        }
    };
    let negative = n < Num::ZERO;
    let magnitude = if negative { n.neg() } else { n.clone() };
    let integer = whole(&n);
    let mut suffix = String::new();
    let mut prefix = "";
    let mut size = 3;
    if let (Some(by), Some(k)) = (spec.group, spec.kind)
        && (matches!(k, 'c' | 'n' | 's') || by == ',' && matches!(k, 'b' | 'o' | 'x' | 'X'))
    {
        return value_error(format!("Cannot specify '{by}' with '{k}'."));
    }
    if spec.kind == Some('c') && (spec.signed || spec.alternate) {
        return value_error("Sign and alternate form (#) not allowed with integer format specifier 'c'");
    }
    // In the locale of plans a fraction is written alike.
    let kind = if spec.kind == Some('n') && !integer { Some('g') } else { spec.kind };
    let mut body = match kind {
        None if integer && spec.precision.is_some() => {
            return value_error("Precision not allowed in integer format specifier");
        }
        None if integer => magnitude.to_string(),
        None => match spec.precision {
            Some(p) => untyped(&magnitude, p, spec.alternate)?,
            None => num(&magnitude),
        },
        Some(k @ ('d' | 'n' | 'b' | 'o' | 'x' | 'X' | 'c')) => {
            if !integer {
                return unknown(k);
            }
            if spec.precision.is_some() {
                return value_error("Precision not allowed in integer format specifier");
            }
            match k {
                'd' | 'n' => magnitude.to_string(),
                'c' => {
                    let c = n.to_i64().and_then(|i| u32::try_from(i).ok()).and_then(char::from_u32);
                    match c {
                        Some(c) => return pad(&c.to_string(), &spec, '<', limit),
                        None => return raise("OverflowError", "%c arg not in range(0x110000)"),
                    }
                }
                _ => {
                    size = 4;
                    let (digits, sign) = match k {
                        'b' => (magnitude.to_radix(2)?, "0b"),
                        'o' => (magnitude.to_radix(8)?, "0o"),
                        'x' => (magnitude.to_radix(16)?, "0x"),
                        _ => (magnitude.to_radix(16)?.to_uppercase(), "0X"),
                    };
                    if spec.alternate {
                        prefix = sign;
                    }
                    digits
                }
            }
        }
        Some('f' | 'F') => fixed(&magnitude, spec.precision.unwrap_or(6))?,
        Some('%') => {
            suffix.push('%');
            fixed(&magnitude.mul(&Num::from(100))?, spec.precision.unwrap_or(6))?
        }
        Some(k @ ('e' | 'E')) => {
            let (mantissa, exponent) = scientific(&magnitude, spec.precision.unwrap_or(6))?;
            let text = exponent_text(exponent);
            suffix = if k == 'E' { text.to_uppercase() } else { text };
            mantissa
        }
        Some('g') => general(&magnitude, spec.precision.unwrap_or(6), spec.alternate)?,
        Some('G') => general(&magnitude, spec.precision.unwrap_or(6), spec.alternate)?.to_uppercase(),
        Some(k) => return unknown(k),
    };
    if spec.alternate && matches!(spec.kind, Some('f' | 'F' | 'e' | 'E' | '%')) && !body.contains('.') {
        body.push('.');
    }
    let sign = match (negative, spec.sign) {
        (true, _) => "-",
        (false, '+') => "+",
        (false, ' ') => " ",
        _ => "",
    };
    // `e` is a digit there.
    let is_hexadecimal = matches!(kind, Some('x' | 'X'));
    let (mut digits, rest) = match body.find(['.', 'e', 'E']).filter(|_| !is_hexadecimal) {
        Some(at) => (body[..at].to_string(), body[at..].to_string()),
        None => (body.clone(), String::new()),
    };
    let around = sign.len() + prefix.len() + rest.chars().count() + suffix.len();
    if let Some(by) = spec.group {
        if spec.fill == '0' && spec.align == Some('=') {
            // Zeros are grouped, too.
            while around + grouped(&digits, by, size).len() < spec.width {
                digits.insert(0, '0');
                if digits.len() > limit {
                    return Err(PyError::Limit);
                }
            }
            let text = grouped(&digits, by, size);
            // A separator never comes first.
            digits = text;
        } else {
            digits = grouped(&digits, by, size);
        }
    }
    body = format!("{digits}{rest}{suffix}");
    if spec.align == Some('=') {
        let length = sign.len() + prefix.len() + body.chars().count();
        if spec.width > limit {
            return Err(PyError::Limit);
        }
        let fill = spec.fill.to_string().repeat(spec.width.saturating_sub(length));
        return Ok(format!("{sign}{prefix}{fill}{body}"));
    }
    pad(&format!("{sign}{prefix}{body}"), &spec, '>', limit)
}
