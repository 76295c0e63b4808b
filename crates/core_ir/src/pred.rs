//! The decidable predicates of `guard` and of refinement types.

use crate::schema::DECIMAL;
use crate::{Data, Name, Num, Plain, Schema};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// Quantity of a value that a comparison measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Characters of a text, items of a list, fields of a record.
    Length,
    /// Words of a text (separated by white space).
    Words,
    /// The number itself.
    Value,
}

/// Operator of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `==`
    Eq,
    /// `!=`
    Ne,
}

impl Comparison {
    /// Returns true if `a ⋈ b`.
    pub fn holds(self, a: &Num, b: &Num) -> bool {
        match self {
            Comparison::Lt => a < b,
            Comparison::Le => a <= b,
            Comparison::Gt => a > b,
            Comparison::Ge => a >= b,
            Comparison::Eq => a == b,
            Comparison::Ne => a != b,
        }
    }

    /// The operator as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Comparison::Lt => "<",
            Comparison::Le => "<=",
            Comparison::Gt => ">",
            Comparison::Ge => ">=",
            Comparison::Eq => "==",
            Comparison::Ne => "!=",
        }
    }
}

/// A decidable predicate on data. Source: seed 000 Definition 3.1 (`P`), T-Guard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pred {
    /// Always true (`any`).
    True,
    /// `length >= 3`, `words == 3`, `value < 10`.
    Compare(Measure, Comparison, Num),
    /// `matches "regex"`: the whole text or a part of it (anchor with `^…$`). Linear time.
    Matches(Arc<str>),
    /// `contains "text"`.
    Contains(Arc<str>),
    /// `in ["a", "b"]`: equal to one of these.
    OneOf(Arc<[Data]>),
    /// `.field P`: the field exists and satisfies `P`.
    Field(Name, Arc<Pred>),
    /// `every P`: each item of the list.
    Every(Arc<Pred>),
    /// `some P`: at least one item of the list.
    Some(Arc<Pred>),
    /// `schema {…}`: what a JSON Schema admits.
    Schema(Arc<Schema>),
    /// `P && Q`.
    And(Arc<(Pred, Pred)>),
    /// `P || Q`.
    Or(Arc<(Pred, Pred)>),
    /// `!P`.
    Not(Arc<Pred>),
}

/// A compiled regular expression may take this many bytes; larger ones are refused.
const REGEX_SIZE: usize = 1 << 20;

impl Pred {
    /// `matches "…"`, if that is a regular expression (without look-around and references back, and not too
    /// large).
    pub fn matching(pattern: &str) -> Option<Pred> {
        regex(pattern).map(|_| Pred::Matches(pattern.into()))
    }

    /// Numbers without a fraction.
    ///
    /// # Examples
    /// ```
    /// use core_ir::{Data, Pred};
    /// assert!(Pred::integer().holds(&Data::Num(3.into())).is_ok());
    /// assert!(Pred::integer().holds(&Data::Num("3.5".parse().unwrap())).is_err());
    /// ```
    pub fn integer() -> Pred {
        Pred::of_schema([("type".into(), Data::str("integer"))])
    }

    /// A number with a finite decimal notation, as JSON Schema says it: a `number` of the `format` `decimal`.
    ///
    /// # Examples
    /// ```
    /// use core_ir::{Data, Num, Pred};
    /// assert!(Pred::decimal().holds(&Data::Num("12.50".parse().unwrap())).is_ok());
    /// let third = Num::ONE.div(&Num::from(3)).unwrap();
    /// assert!(Pred::decimal().holds(&Data::Num(third)).is_err());
    /// ```
    pub fn decimal() -> Pred {
        Pred::of_schema([("type".into(), Data::str("number")), ("format".into(), Data::str(DECIMAL))])
    }

    fn of_schema<const N: usize>(source: [(Name, Data); N]) -> Pred {
        // INVARIANT: the documents above are schemas, as their examples show.
        Schema::new(&Data::record(source)).map_or(Pred::True, |schema| Pred::Schema(Arc::new(schema)))
    }

    /// Decides the predicate.
    ///
    /// # Errors
    /// The reason for its failure, as a phrase that can be shown to a person or fed back to a model:
    /// `length is 2, expected >= 3`.
    ///
    /// # Examples
    /// ```
    /// use core_ir::{Comparison, Data, Measure, Num, Pred};
    /// let three_words = Pred::Compare(Measure::Words, Comparison::Eq, Num::from(3));
    /// assert_eq!(three_words.holds(&Data::str("a b c")), Ok(()));
    /// assert_eq!(three_words.holds(&Data::str("a b")), Err("words is 2, expected == 3".to_string()));
    /// ```
    pub fn holds(&self, data: &Data) -> Result<(), String> {
        self.holds_counting(data, &mut 0)
    }

    /// Decides the predicate like [`Pred::holds`]. Adds one to `steps` for each item, each sixteen bytes of
    /// text and each sixteen names that are looked at.
    ///
    /// # Errors
    /// The errors of [`Pred::holds`].
    pub fn holds_counting(&self, data: &Data, steps: &mut u64) -> Result<(), String> {
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || self.decide(data, steps))
    }

    /// Returns the remark sent to a model when a guard retries: the reason of the refusal and, if it is data,
    /// the refused `value`. Never longer than [`Pred::REMARK_BYTES`].
    ///
    /// # Examples
    /// ```
    /// use core_ir::{Comparison, Data, Measure, Num, Pred};
    /// let three_words = Pred::Compare(Measure::Words, Comparison::Eq, Num::from(3));
    /// let value = Data::str("a b");
    /// let reason = three_words.holds(&value).unwrap_err();
    /// assert_eq!(
    ///     three_words.remark(&reason, Some(&value)),
    ///     "The last result was refused: words is 2, expected == 3.\nIt was: a b\nTry again."
    /// );
    /// ```
    pub fn remark(&self, reason: &str, value: Option<&Data>) -> String {
        let Some(value) = value else {
            return format!("{} it is not data.\nTry again.", Pred::REMARK);
        };
        let shown = match value {
            Data::Str(s) => first(s, 200),
            other => first(&other.to_json().to_string(), 200),
        };
        format!("{} {}.\nIt was: {shown}\nTry again.", Pred::REMARK, first(reason, 300))
    }

    /// Prefix of every remark.
    pub const REMARK: &str = "The last result was refused:";
    /// The most bytes of a remark: 300 characters of the reason and 200 of the result, four bytes each, and
    /// what stands between.
    pub const REMARK_BYTES: u64 = 2_100;

    fn decide(&self, data: &Data, steps: &mut u64) -> Result<(), String> {
        *steps += match (self, data) {
            (Pred::Compare(..) | Pred::Contains(_), Data::Str(s)) => s.len() as u64 / 16,
            // It is looked at by a machine as large as the pattern.
            (Pred::Matches(pattern), Data::Str(s)) => (s.len() + pattern.len()) as u64,
            (Pred::OneOf(items), _) => items.iter().map(Plain::cost).sum(),
            (Pred::Field(..), Data::Record(fields)) => fields.len() as u64 / 16,
            (Pred::Every(_) | Pred::Some(_), Data::List(items)) => items.len() as u64,
            _ => 0,
        };
        match self {
            Pred::True => Ok(()),
            Pred::Compare(measure, comparison, limit) => {
                let found = match (measure, data) {
                    (Measure::Length, Data::Str(s)) => Num::from(s.chars().count() as i64),
                    (Measure::Length, Data::List(l)) => Num::from(l.len() as i64),
                    (Measure::Length, Data::Record(r)) => Num::from(r.len() as i64),
                    (Measure::Words, Data::Str(s)) => Num::from(s.split_whitespace().count() as i64),
                    (Measure::Value, Data::Num(n)) => n.clone(),
                    _ => return Err(format!("{} has no {}", data.kind(), measure.as_str())),
                };
                if comparison.holds(&found, limit) {
                    Ok(())
                } else {
                    Err(format!("{} is {found}, expected {} {limit}", measure.as_str(), comparison.as_str()))
                }
            }
            Pred::Matches(pattern) => {
                let Data::Str(s) = data else { return Err(format!("{} is not text", data.kind())) };
                match regex(pattern) {
                    Some(r) if r.is_match(s) => Ok(()),
                    Some(_) => Err(match crate::Format::of(pattern) {
                        Some(format) => {
                            format!("expected {}, found `{}`", format.in_words, diagnostics::clip(s))
                        }
                        None => format!("does not match `{pattern}`"),
                    }),
                    None => Err(format!("`{pattern}` is not a usable regular expression")),
                }
            }
            Pred::Contains(part) => match data {
                Data::Str(s) if s.contains(&**part) => Ok(()),
                Data::Str(_) => Err(format!("does not contain `{part}`")),
                _ => Err(format!("{} is not text", data.kind())),
            },
            Pred::OneOf(items) => {
                if items.iter().any(|item| same(item, data)) {
                    Ok(())
                } else {
                    let shown: Vec<String> = items.iter().map(|i| i.to_json().to_string()).collect();
                    Err(format!("is not one of {}", shown.join(", ")))
                }
            }
            Pred::Field(name, p) => match data.field(name) {
                Some(d) => p.holds_counting(d, steps).map_err(|e| format!("{name}: {e}")),
                None => Err(format!("has no field `{name}`")),
            },
            Pred::Every(p) => match data {
                Data::List(items) => items
                    .iter()
                    .enumerate()
                    .try_for_each(|(i, d)| p.holds_counting(d, steps).map_err(|e| format!("item {i}: {e}"))),
                _ => Err(format!("{} is not a list", data.kind())),
            },
            Pred::Some(p) => {
                let Data::List(items) = data else { return Err(format!("{} is not a list", data.kind())) };
                let mut why = None;
                for (i, d) in items.iter().enumerate() {
                    match p.holds_counting(d, steps) {
                        Ok(()) => return Ok(()),
                        Err(e) => why = why.or(Some(format!("no item is as expected; item {i}: {e}"))),
                    }
                }
                Err(why.unwrap_or_else(|| "the list is empty".into()))
            }
            Pred::Schema(schema) => schema.check_counting(data, steps),
            Pred::And(p) => p.0.holds_counting(data, steps).and_then(|()| p.1.holds_counting(data, steps)),
            Pred::Or(p) => {
                p.0.holds_counting(data, steps)
                    .or_else(|a| p.1.holds_counting(data, steps).map_err(|b| format!("{a}, and {b}")))
            }
            Pred::Not(p) => match p.holds_counting(data, steps) {
                Ok(()) => Err(format!("expected not: {p}")),
                Err(_) => Ok(()),
            },
        }
    }
}

/// Number of regular expressions that a thread keeps compiled. A predicate about the items of a list needs
/// few.
const KEPT_REGEXES: usize = 8;

thread_local! {
    /// The regular expressions that were compiled last, the oldest first.
    static COMPILED: RefCell<VecDeque<(String, Option<Rc<regex::Regex>>)>> = const { RefCell::new(VecDeque::new()) };
}

/// Compiles a regular expression, unless that was done lately; `None` if it is invalid or too large.
pub(crate) fn regex(pattern: &str) -> Option<Rc<regex::Regex>> {
    COMPILED.with_borrow_mut(|kept| {
        if let Some((_, compiled)) = kept.iter().find(|(text, _)| text == pattern) {
            return compiled.clone();
        }
        let compiled = regex::RegexBuilder::new(pattern).size_limit(REGEX_SIZE).build().ok().map(Rc::new);
        if kept.len() == KEPT_REGEXES {
            kept.pop_front();
        }
        kept.push_back((pattern.to_string(), compiled.clone()));
        compiled
    })
}

/// The first characters of a text, with a mark if there are more.
fn first(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// Equality of data as `==` of the calculus has it: the order of a record's fields does not count.
pub(crate) fn same(a: &Data, b: &Data) -> bool {
    stacker::maybe_grow(32 * 1024, 1024 * 1024, || match (a, b) {
        (Data::List(x), Data::List(y)) => {
            x.len() == y.len() && x.iter().zip(y.iter()).all(|(a, b)| same(a, b))
        }
        (Data::Record(x), Data::Record(y)) => {
            x.len() == y.len() && x.iter().all(|(n, a)| field_of(y, n).is_some_and(|b| same(a, b)))
        }
        (Data::Pair(x), Data::Pair(y)) => same(&x.0, &y.0) && same(&x.1, &y.1),
        (Data::Tag(m, x), Data::Tag(n, y)) => m == n && same(x, y),
        _ => a == b,
    })
}

fn field_of<'a>(fields: &'a [(Name, Data)], name: &Name) -> Option<&'a Data> {
    fields.iter().find(|(n, _)| n == name).map(|(_, d)| d)
}

impl Measure {
    /// The name as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Measure::Length => "length",
            Measure::Words => "words",
            Measure::Value => "value",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_fields_does_not_count() {
        let record = |names: [&str; 2]| Data::record(names.map(|n| (n.into(), Data::str(n))));
        let p = Pred::OneOf([record(["a", "b"])].into());
        assert_eq!(p.holds(&record(["b", "a"])), Ok(()));
        assert!(p.holds(&record(["a", "c"])).is_err());
    }

    #[test]
    fn a_failure_says_why() {
        let list = Data::list([Data::Num(Num::from(1)), Data::Num(Num::from(20))]);
        let p = Pred::Every(Arc::new(Pred::Compare(Measure::Value, Comparison::Lt, Num::from(10))));
        assert_eq!(p.holds(&list), Err("item 1: value is 20, expected < 10".into()));
        assert_eq!(Pred::Not(Arc::new(p)).holds(&list), Ok(()));
        assert!(Pred::Matches("(".into()).holds(&Data::str("x")).is_err());
        assert!(Pred::Matches("(a{1000}){1000}{1000}".into()).holds(&Data::str("x")).is_err());
    }

    /// The playground does without some tables of Unicode, and the command once did, too.
    #[test]
    #[cfg(not(target_family = "wasm"))]
    fn patterns_know_all_properties_of_unicode() {
        for pattern in [r"^\p{Age=3.0}+$", r"^\p{Word_Break=ALetter}+$", r"^\p{Greek}+$"] {
            assert_eq!(Pred::Matches(pattern.into()).holds(&Data::str("λ")), Ok(()), "{pattern}");
        }
    }
}
