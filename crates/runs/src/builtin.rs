//! Tools that only compute.

use core_ir::{Data, Name, Num};

/// The built-in tools with what each does. Arguments are taken in the order of the parameters, whatever their
/// names.
pub const BUILTINS: &[(&str, &str)] = &[
    ("clock.now", "the time in UTC, as text such as 2026-01-31T09:30:00Z"),
    ("clock.unix", "the time as whole seconds since the beginning of 1970"),
    (
        "json.query",
        "the value at a JSON Pointer such as /items/0/name in JSON data or text; null if there is none",
    ),
    ("math.eval", "the exact value of an arithmetic expression such as (1 + 2) * 3 / 4"),
    ("text.length", "how many characters a text has"),
    ("text.lower", "a text in lower case"),
    ("text.trim", "a text without white space at its ends"),
    ("text.upper", "a text in upper case"),
];

#[derive(Debug, Clone, Copy)]
enum BuiltinOp {
    Now,
    Unix,
    Query,
    Eval,
    Length,
    Lower,
    Trim,
    Upper,
}

/// A built-in tool.
#[derive(Debug)]
pub struct Builtin {
    name: &'static str,
    act: BuiltinOp,
}

impl Builtin {
    /// The built-in tool of a name.
    pub fn named(name: &str) -> Option<Builtin> {
        use BuiltinOp::*;
        // In the order of `BUILTINS`.
        const ACTS: [BuiltinOp; BUILTINS.len()] = [Now, Unix, Query, Eval, Length, Lower, Trim, Upper];
        let ((name, _), act) = BUILTINS.iter().zip(ACTS).find(|((n, _), _)| *n == name)?;
        Some(Builtin { name, act })
    }

    /// Carries a call out. `now` is the time in seconds since 1970.
    ///
    /// # Errors
    /// The arguments don't fit, or have no result.
    pub fn call(&self, args: &[(Name, Data)], now: u64) -> Result<Data, String> {
        let text = || match args {
            [(_, Data::Str(s))] => Ok(s.to_string()),
            [(_, other)] => Err(format!("`{}` takes a string, not {}", self.name, other.kind())),
            _ => Err(format!("`{}` takes one argument, not {}", self.name, args.len())),
        };
        Ok(match self.act {
            BuiltinOp::Now => Data::str(utc(now)),
            BuiltinOp::Unix => Data::Num(Num::from(i64::try_from(now).unwrap_or(i64::MAX))),
            BuiltinOp::Query => {
                let [(_, json), (_, Data::Str(place))] = args else {
                    return Err("`json.query` takes JSON and a JSON Pointer".into());
                };
                let json = match json {
                    Data::Str(text) => {
                        serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?
                    }
                    data => data.to_json(),
                };
                let found = json.pointer(place).unwrap_or(&serde_json::Value::Null);
                Data::from_json(found).map_err(|e| e.to_string())?
            }
            BuiltinOp::Eval => match args {
                [(_, d @ (Data::Str(_) | Data::Num(_)))] => Data::Num(evaluate(&as_text(d))?),
                _ => Data::Num(evaluate(&text()?)?),
            },
            BuiltinOp::Length => {
                Data::Num(Num::from(i64::try_from(text()?.chars().count()).unwrap_or(i64::MAX)))
            }
            BuiltinOp::Lower => Data::str(text()?.to_lowercase()),
            BuiltinOp::Trim => Data::str(text()?.trim()),
            BuiltinOp::Upper => Data::str(text()?.to_uppercase()),
        })
    }
}

/// Seconds since 1970 as an RFC 3339 text.
pub fn utc(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have their leap day at the end; eras of 400 years all have 146,097 days.
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + carry;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

/// A text that is put into a hole: a string as it is, other data as JSON.
pub fn as_text(data: &Data) -> String {
    match data {
        Data::Str(s) => s.to_string(),
        other => other.to_json().to_string(),
    }
}

/// Expressions nested deeper are refused.
const MAX_NESTING: usize = 200;

/// `+ - * /`, unary minus, parentheses and decimal numbers; exact.
fn evaluate(text: &str) -> Result<Num, String> {
    let mut e = Expression { rest: text.trim_start(), depth: 0 };
    let value = e.sum()?;
    if e.rest.is_empty() {
        Ok(value)
    } else {
        Err(format!("`{}` is not expected there", diagnostics::clip_to(e.rest, 20)))
    }
}

struct Expression<'a> {
    rest: &'a str,
    depth: usize,
}

impl Expression<'_> {
    fn take(&mut self, symbols: &[char]) -> Option<char> {
        let c = self.rest.chars().next().filter(|c| symbols.contains(c))?;
        self.rest = self.rest[c.len_utf8()..].trim_start();
        Some(c)
    }

    fn sum(&mut self) -> Result<Num, String> {
        let mut left = self.product()?;
        while let Some(c) = self.take(&['+', '-']) {
            let right = self.product()?;
            left = if c == '+' { left.add(&right) } else { left.sub(&right) }.map_err(|e| e.to_string())?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Num, String> {
        let mut left = self.atom()?;
        while let Some(c) = self.take(&['*', '/']) {
            let right = self.atom()?;
            left = if c == '*' { left.mul(&right) } else { left.div(&right) }.map_err(|e| e.to_string())?;
        }
        Ok(left)
    }

    fn atom(&mut self) -> Result<Num, String> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(format!("the expression is nested deeper than {MAX_NESTING} levels"));
        }
        let value = if self.take(&['-']).is_some() {
            self.atom()?.neg()
        } else if self.take(&['(']).is_some() {
            let inner = self.sum()?;
            if self.take(&[')']).is_none() {
                return Err("a `)` is missing".into());
            }
            inner
        } else {
            let end = self.rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(end);
            if digits.is_empty() {
                let found = self.rest.chars().next().map_or("the end".to_string(), |c| format!("`{c}`"));
                return Err(format!("a number is expected instead of {found}"));
            }
            self.rest = rest.trim_start();
            digits
                .parse()
                .map_err(|e: core_ir::NumError| format!("`{}`: {e}", diagnostics::clip_to(digits, 20)))?
        };
        self.depth -= 1;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_exact() {
        let value = |t: &str| evaluate(t).map(|n| n.to_string());
        assert_eq!(value("(1 + 2) * 3 / 4"), Ok("2.25".into()));
        assert_eq!(value("1/3+1/3+1/3"), Ok("1".into()));
        assert_eq!(value("0.1 + 0.2 - -1"), Ok("1.3".into()));
        assert_eq!(value("1/0"), Err("division by zero".into()));
        assert_eq!(value("2 2"), Err("`2` is not expected there".into()));
        assert_eq!(value("2 * x"), Err("a number is expected instead of `x`".into()));
        assert!(value(&"(".repeat(100_000)).unwrap_err().contains("nested"));
        assert!(value(&"-".repeat(100_000)).unwrap_err().contains("nested"));
    }

    #[test]
    fn time_is_shown_in_utc() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(utc(4_107_542_399), "2100-02-28T23:59:59Z");
        assert_eq!(utc(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn every_builtin_is_known() {
        for (name, _) in BUILTINS {
            assert_eq!(Builtin::named(name).unwrap().name, *name);
        }
        assert!(Builtin::named("rm").is_none());
        let upper = Builtin::named("text.upper").unwrap();
        assert_eq!(upper.call(&[("whatever".into(), Data::str("straße"))], 0), Ok(Data::str("STRASSE")));
        assert!(upper.call(&[], 0).is_err());
    }
}
