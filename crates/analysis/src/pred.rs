//! Consequences of the predicates of guards and refinement types.
//!
//! Entry points: [`implies`] for subtyping of refinements, [`possible`] for guards that can never hold.
//!
//! `p` implies `q` if nothing satisfies `p && !q`. The analysis brings that into disjunctive form and
//! examines each conjunction for each kind of data: intervals for lengths, words and values, finite sets,
//! contained texts, the items of lists and the fields of records. These show a conjunction impossible, or an
//! example that satisfies it shows it possible.
//!
//! Invariant: `Yes` and `No` are facts; what neither the rules nor the examples decide (most of what regular
//! expressions say) is `Unknown`.

use crate::range::{Range, negated};
use core_ir::{Data, Measure, Name, Num, Pred, Type};
use std::sync::Arc;

/// Answer to a question about predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is so.
    Yes,
    /// It is not so.
    No,
    /// Undecided.
    Unknown,
}

/// Returns `Yes` if every value that satisfies `p` satisfies `q`.
///
/// # Examples
/// ```
/// use analysis::pred::{Answer, implies};
/// use core_ir::{Comparison, Measure, Num, Pred};
/// let length = |c, n: i64| Pred::Compare(Measure::Length, c, Num::from(n));
/// assert_eq!(implies(&length(Comparison::Ge, 3), &length(Comparison::Gt, 0)), Answer::Yes);
/// assert_eq!(implies(&length(Comparison::Gt, 0), &length(Comparison::Ge, 3)), Answer::No);
/// ```
pub fn implies(p: &Pred, q: &Pred) -> Answer {
    if p == q || *q == Pred::True {
        return Answer::Yes;
    }
    match satisfiable(&[(p, true), (q, false)], &KINDS, 0) {
        Answer::Yes => Answer::No,
        Answer::No => Answer::Yes,
        Answer::Unknown => Answer::Unknown,
    }
}

/// Returns `Yes` if a value of the type satisfies the predicate.
///
/// # Examples
/// ```
/// use analysis::pred::{Answer, possible};
/// use core_ir::{Comparison, Measure, Num, Pred, Type};
/// let small = Pred::Compare(Measure::Value, Comparison::Lt, Num::from(10));
/// assert_eq!(possible(&small, &Type::Num), Answer::Yes);
/// assert_eq!(possible(&small, &Type::Str), Answer::No);
/// ```
pub fn possible(p: &Pred, ty: &Type) -> Answer {
    let (kinds, known): (Vec<DataKind>, Option<Pred>) = match ty {
        Type::Dyn | Type::Fun(_) | Type::Rec(_) | Type::Var(_) => (KINDS.to_vec(), None),
        Type::Str => (vec![DataKind::Str], None),
        Type::Num => (vec![DataKind::Num], None),
        Type::Bool => (vec![DataKind::Bool], None),
        Type::Null => (vec![DataKind::Null], None),
        Type::List(_) => (vec![DataKind::List], None),
        Type::Record(_) | Type::Map(_) => (vec![DataKind::Record], None),
        Type::Pair(_) | Type::Variant(_) => (vec![DataKind::Other], None),
        Type::Enum(e) => {
            (vec![DataKind::Str], Some(Pred::OneOf(e.variants.iter().map(|v| Data::str(&**v)).collect())))
        }
        Type::Option(t) => {
            return match (possible(p, &Type::Null), possible(p, t)) {
                (Answer::Yes, _) | (_, Answer::Yes) => Answer::Yes,
                (Answer::No, Answer::No) => Answer::No,
                _ => Answer::Unknown,
            };
        }
        Type::Refined(r) => return possible(&Pred::And(Arc::new((r.1.clone(), p.clone()))), &r.0),
    };
    let mut parts = vec![(p, true)];
    parts.extend(known.as_ref().map(|k| (k, true)));
    satisfiable(&parts, &kinds, 0)
}

/// The kinds of data that predicates tell apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DataKind {
    Null,
    Bool,
    Num,
    Str,
    List,
    Record,
    /// Pairs and tags.
    Other,
}

const KINDS: [DataKind; 7] = [
    DataKind::Null,
    DataKind::Bool,
    DataKind::Num,
    DataKind::Str,
    DataKind::List,
    DataKind::Record,
    DataKind::Other,
];

/// Predicates with whether they must hold.
type Parts<'p> = Vec<(&'p Pred, bool)>;

/// Maximum numbers of conjunctions and of nested quantifiers.
const MAX_CONJUNCTIONS: usize = 128;
const MAX_DEPTH: u32 = 6;

/// Decides whether a value of one of these kinds satisfies all parts.
fn satisfiable(parts: &[(&Pred, bool)], kinds: &[DataKind], depth: u32) -> Answer {
    if depth > MAX_DEPTH {
        return Answer::Unknown;
    }
    let mut all: Vec<Parts<'_>> = vec![Vec::new()];
    for (p, holds) in parts {
        if !spread(p, *holds, &mut all) {
            return Answer::Unknown;
        }
    }
    let mut answer = Answer::No;
    for conjunction in &all {
        for kind in kinds {
            match conjunct(conjunction, *kind, depth) {
                Answer::Yes => return Answer::Yes,
                Answer::Unknown => answer = Answer::Unknown,
                Answer::No => {}
            }
        }
    }
    answer
}

/// Adds a part to each conjunction, taking apart what is no atom; false if there are too many.
fn spread<'p>(p: &'p Pred, holds: bool, all: &mut Vec<Parts<'p>>) -> bool {
    stacker::maybe_grow(32 * 1024, 1024 * 1024, || match (p, holds) {
        (Pred::True, true) => true,
        (Pred::True, false) => {
            all.clear();
            true
        }
        (Pred::Not(p), _) => spread(p, !holds, all),
        (Pred::Schema(schema), _) if schema.necessary().1 => spread(schema.necessary().0, holds, all),
        (Pred::Schema(schema), true) => {
            for parts in all.iter_mut() {
                parts.push((p, true));
            }
            spread(schema.necessary().0, true, all)
        }
        (Pred::And(p), true) | (Pred::Or(p), false) => spread(&p.0, holds, all) && spread(&p.1, holds, all),
        (Pred::And(p), false) | (Pred::Or(p), true) => {
            let mut other = all.clone();
            let fine = spread(&p.0, holds, all) && spread(&p.1, holds, &mut other);
            all.append(&mut other);
            fine && all.len() <= MAX_CONJUNCTIONS
        }
        _ => {
            for parts in all.iter_mut() {
                parts.push((p, holds));
            }
            true
        }
    })
}

/// Decides whether a value of a kind satisfies all these atoms.
fn conjunct(parts: &Parts<'_>, kind: DataKind, depth: u32) -> Answer {
    let fits = |d: &Data| parts.iter().all(|(p, holds)| p.holds(d).is_ok() == *holds);
    let exactly = |candidates: &[Data]| {
        let some = candidates.iter().any(|d| kind_of(d) == kind && fits(d));
        if some { Answer::Yes } else { Answer::No }
    };
    // A finite set decides.
    for (p, holds) in parts {
        if let (Pred::OneOf(items), true) = (p, holds) {
            return exactly(items);
        }
    }
    match kind {
        DataKind::Null => return exactly(&[Data::Null]),
        DataKind::Bool => return exactly(&[Data::Bool(true), Data::Bool(false)]),
        _ => {}
    }
    // An atom about another kind does not hold.
    let about = |p: &Pred| match p {
        Pred::Compare(Measure::Length, ..) => {
            matches!(kind, DataKind::Str | DataKind::List | DataKind::Record)
        }
        Pred::Compare(Measure::Words, ..) | Pred::Matches(_) | Pred::Contains(_) => kind == DataKind::Str,
        Pred::Compare(Measure::Value, ..) => kind == DataKind::Num,
        Pred::Field(..) => kind == DataKind::Record,
        Pred::Every(_) | Pred::Some(_) => kind == DataKind::List,
        _ => true,
    };
    if parts.iter().any(|(p, holds)| *holds && !about(p)) {
        return Answer::No;
    }
    let parts: Parts<'_> = parts.iter().filter(|(p, _)| about(p)).copied().collect();
    // A pattern, text or set that must hold and must not.
    for (i, (p, holds)) in parts.iter().enumerate() {
        if parts[i + 1..].iter().any(|(q, other)| p == q && holds != other) {
            return Answer::No;
        }
    }
    let length = interval(&parts, Measure::Length);
    let refuted = match kind {
        DataKind::Num => interval(&parts, Measure::Value).is_empty(false),
        DataKind::Str => no_text(&parts, &length),
        DataKind::List => no_list(&parts, &length, depth),
        DataKind::Record => no_record(&parts, &length, depth),
        _ => false,
    };
    if refuted {
        return Answer::No;
    }
    if examples(&parts, kind, &length, depth).iter().any(fits) { Answer::Yes } else { Answer::Unknown }
}

fn kind_of(d: &Data) -> DataKind {
    match d {
        Data::Null => DataKind::Null,
        Data::Bool(_) => DataKind::Bool,
        Data::Num(_) => DataKind::Num,
        Data::Str(_) => DataKind::Str,
        Data::List(_) => DataKind::List,
        Data::Record(_) => DataKind::Record,
        Data::Pair(_) | Data::Tag(..) => DataKind::Other,
    }
}

fn interval(parts: &Parts<'_>, measure: Measure) -> Range {
    let mut r = Range::default();
    for (p, holds) in parts {
        let Pred::Compare(m, c, n) = p else { continue };
        if *m != measure {
            continue;
        }
        r.compare(if *holds { *c } else { negated(*c) }, n);
    }
    r
}

fn no_text(parts: &Parts<'_>, length: &Range) -> bool {
    let words = interval(parts, Measure::Words);
    if length.is_empty(true) || words.is_empty(true) {
        return true;
    }
    let contained: Vec<&str> = texts(parts, true);
    let absent: Vec<&str> = texts(parts, false);
    if contained.iter().any(|s| absent.iter().any(|t| s.contains(t))) {
        return true;
    }
    // The words, or the required text, take at least this number of characters.
    let spread = words.first().saturating_mul(2).saturating_sub(1);
    let longest = contained.iter().map(|s| s.chars().count() as u64).max().unwrap_or(0);
    let most = match length.last() {
        None => return false,
        Some(most) => most.unwrap_or(0),
    };
    if most < spread.max(longest) {
        return true;
    }
    // Only the empty text is left.
    most == 0 && !parts.iter().all(|(p, holds)| p.holds(&Data::str("")).is_ok() == *holds)
}

fn texts<'p>(parts: &Parts<'p>, sign: bool) -> Vec<&'p str> {
    parts
        .iter()
        .filter_map(|(p, holds)| match p {
            Pred::Contains(s) if *holds == sign => Some(&**s),
            _ => None,
        })
        .collect()
}

/// Splits off the predicates on list items: those of every item, and those that some item must satisfy.
fn quantified<'p>(parts: &Parts<'p>) -> (Parts<'p>, Parts<'p>) {
    let mut every = Vec::new();
    let mut some = Vec::new();
    for (p, holds) in parts {
        match (p, holds) {
            (Pred::Every(p), true) => every.push((&**p, true)),
            (Pred::Every(p), false) => some.push((&**p, false)),
            (Pred::Some(p), true) => some.push((&**p, true)),
            (Pred::Some(p), false) => every.push((&**p, false)),
            _ => {}
        }
    }
    (every, some)
}

fn no_list(parts: &Parts<'_>, length: &Range, depth: u32) -> bool {
    let (every, some) = quantified(parts);
    let impossible = |one: Option<(&Pred, bool)>| {
        let mut item: Parts<'_> = every.clone();
        item.extend(one);
        satisfiable(&item, &KINDS, depth + 1) == Answer::No
    };
    length.is_empty(true)
        || !some.is_empty() && length.last() == Some(Some(0))
        || some.iter().any(|p| impossible(Some(*p)))
        || length.first() > 0 && !every.is_empty() && impossible(None)
}

/// The fields that must be there, with what is said of each.
fn fields<'p>(parts: &Parts<'p>) -> Vec<(&'p Name, Parts<'p>)> {
    let mut out: Vec<(&Name, Parts<'_>)> = Vec::new();
    for (p, holds) in parts {
        if let (Pred::Field(name, inner), true) = (p, holds) {
            match out.iter_mut().find(|(n, _)| *n == name) {
                Some((_, all)) => all.push((inner, true)),
                None => out.push((name, vec![(inner, true)])),
            }
        }
    }
    for (p, holds) in parts {
        if let (Pred::Field(name, inner), false) = (p, holds)
            && let Some((_, all)) = out.iter_mut().find(|(n, _)| *n == name)
        {
            all.push((inner, false));
        }
    }
    out
}

fn no_record(parts: &Parts<'_>, length: &Range, depth: u32) -> bool {
    let fields = fields(parts);
    length.is_empty(true)
        || matches!(length.last(), Some(most) if most.unwrap_or(0) < fields.len() as u64)
        || fields.iter().any(|(_, all)| satisfiable(all, &KINDS, depth + 1) == Answer::No)
}

/// Values that are likely to satisfy what is said.
fn examples(parts: &Parts<'_>, kind: DataKind, length: &Range, depth: u32) -> Vec<Data> {
    /// Longer examples are not made.
    const MAX_EXAMPLE_LEN: u64 = 2_000;
    match kind {
        DataKind::Num => {
            let range = interval(parts, Measure::Value);
            let mut out = vec![Num::ZERO, Num::ONE];
            let small = Num::ONE.div(&Num::from(7)).unwrap_or(Num::ONE);
            for (n, _) in range.low.iter().chain(&range.high) {
                for d in [Num::ZERO, Num::ONE, small.clone()] {
                    out.extend(n.add(&d));
                    out.extend(n.sub(&d));
                }
            }
            if let (Some((l, _)), Some((h, _))) = (&range.low, &range.high) {
                let third = l.add(l).and_then(|x| x.add(h)).and_then(|x| x.div(&Num::from(3)));
                let middle = l.add(h).and_then(|x| x.div(&Num::from(2)));
                out.extend(third.into_iter().chain(middle));
            }
            out.into_iter().map(Data::Num).collect()
        }
        DataKind::Str => {
            let words = interval(parts, Measure::Words);
            let contained = texts(parts, true);
            let mut out = Vec::new();
            for (seed, separator) in [("", ""), ("x", " "), ("Q", " "), ("7", "-")] {
                let mut text = contained.join(separator);
                text.push_str(seed);
                for extra in 0..3 {
                    let mut t = text.clone();
                    let wanted = words.first() + extra;
                    while (t.split_whitespace().count() as u64) < wanted.min(MAX_EXAMPLE_LEN) {
                        t.push_str(if t.is_empty() { "z" } else { " z" });
                    }
                    for more in 0..3 {
                        let n = (length.first() + more).min(MAX_EXAMPLE_LEN);
                        let mut long = t.clone();
                        let have = long.chars().count() as u64;
                        if have < n {
                            long.push_str(&"y".repeat((n - have) as usize));
                        }
                        out.push(Data::str(long));
                    }
                    out.push(Data::str(t));
                }
                if let Some(Some(most)) = length.last() {
                    out.push(Data::str(" ".repeat(most.min(MAX_EXAMPLE_LEN) as usize)));
                }
            }
            out
        }
        DataKind::List => {
            let (every, some) = quantified(parts);
            let mut items = Vec::new();
            for p in &some {
                let mut all = every.clone();
                all.push(*p);
                match example(&all, depth + 1) {
                    Some(d) => items.push(d),
                    None => return Vec::new(),
                }
            }
            let filler = example(&every, depth + 1);
            (0..3)
                .filter_map(|more| {
                    let mut items = items.clone();
                    let n = (length.first() + more).min(MAX_EXAMPLE_LEN) as usize;
                    while items.len() < n {
                        items.push(filler.clone()?);
                    }
                    Some(Data::list(items))
                })
                .collect()
        }
        DataKind::Record => {
            let mut made = Vec::new();
            for (name, all) in fields(parts) {
                match example(&all, depth + 1) {
                    Some(d) => made.push((name.clone(), d)),
                    None => return Vec::new(),
                }
            }
            (0..3)
                .map(|more| {
                    let mut fields = made.clone();
                    let n = (length.first() + more).min(MAX_EXAMPLE_LEN) as usize;
                    while fields.len() < n {
                        fields.push((Name::from(format!("·{}", fields.len())), Data::Null));
                    }
                    Data::record(fields)
                })
                .collect()
        }
        DataKind::Other => vec![Data::Pair(Arc::new((Data::Null, Data::Str("·".into()))))],
        DataKind::Null | DataKind::Bool => Vec::new(),
    }
}

/// Returns a value that satisfies all parts, if one is found.
fn example(parts: &Parts<'_>, depth: u32) -> Option<Data> {
    if depth > MAX_DEPTH {
        return None;
    }
    let fits = |d: &Data| parts.iter().all(|(p, holds)| p.holds(d).is_ok() == *holds);
    let mut all: Vec<Parts<'_>> = vec![Vec::new()];
    for (p, holds) in parts {
        if !spread(p, *holds, &mut all) {
            return None;
        }
    }
    for conjunction in &all {
        for (p, holds) in conjunction {
            if let (Pred::OneOf(items), true) = (p, holds)
                && let Some(d) = items.iter().find(|d| fits(d))
            {
                return Some(d.clone());
            }
        }
        let length = interval(conjunction, Measure::Length);
        for kind in KINDS {
            let mut some = examples(conjunction, kind, &length, depth + 1);
            some.extend([Data::Null, Data::Bool(true), Data::Bool(false)]);
            if let Some(d) = some.into_iter().find(fits) {
                return Some(d);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::Comparison;

    fn c(m: Measure, c: Comparison, n: i64) -> Pred {
        Pred::Compare(m, c, Num::from(n))
    }

    fn and(a: Pred, b: Pred) -> Pred {
        Pred::And(Arc::new((a, b)))
    }

    fn not(p: Pred) -> Pred {
        Pred::Not(Arc::new(p))
    }

    use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
    use Measure::{Length, Value, Words};

    #[test]
    fn intervals_imply_wider_ones() {
        assert_eq!(implies(&c(Length, Ge, 3), &c(Length, Gt, 2)), Answer::Yes);
        assert_eq!(implies(&c(Length, Gt, 2), &c(Length, Ge, 3)), Answer::Yes);
        assert_eq!(implies(&c(Value, Gt, 2), &c(Value, Ge, 3)), Answer::No);
        assert_eq!(implies(&c(Value, Eq, 5), &and(c(Value, Gt, 0), c(Value, Lt, 10))), Answer::Yes);
        assert_eq!(implies(&c(Length, Eq, 5), &c(Length, Ne, 4)), Answer::Yes);
        assert_eq!(implies(&c(Words, Ge, 3), &c(Length, Ge, 5)), Answer::Yes);
        assert_eq!(implies(&c(Words, Ge, 3), &c(Length, Ge, 6)), Answer::No);
    }

    #[test]
    fn sets_texts_items_and_fields() {
        let set = |items: &[&str]| Pred::OneOf(items.iter().map(|s| Data::str(*s)).collect());
        assert_eq!(implies(&set(&["a", "b"]), &set(&["b", "c", "a"])), Answer::Yes);
        assert_eq!(implies(&set(&["a", "bb"]), &c(Length, Eq, 1)), Answer::No);
        let has = |s: &str| Pred::Contains(s.into());
        assert_eq!(implies(&has("xyz"), &has("y")), Answer::Yes);
        assert_eq!(implies(&not(has("y")), &not(has("xyz"))), Answer::Yes);
        assert_eq!(implies(&has("y"), &has("xyz")), Answer::No);
        let every = |p: Pred| Pred::Every(Arc::new(p));
        assert_eq!(implies(&every(c(Value, Gt, 3)), &every(c(Value, Gt, 2))), Answer::Yes);
        assert_eq!(implies(&every(c(Value, Gt, 2)), &every(c(Value, Gt, 3))), Answer::No);
        let some = |p: Pred| Pred::Some(Arc::new(p));
        assert_eq!(implies(&some(c(Value, Gt, 3)), &some(c(Value, Gt, 2))), Answer::Yes);
        assert_eq!(implies(&some(c(Value, Gt, 2)), &some(c(Value, Gt, 3))), Answer::No);
        assert_eq!(implies(&some(c(Value, Gt, 2)), &c(Length, Ge, 1)), Answer::Yes);
        assert_eq!(implies(&and(every(set(&["a"])), c(Length, Gt, 0)), &some(set(&["a"]))), Answer::Yes);
        assert_eq!(implies(&every(set(&["a"])), &some(set(&["a"]))), Answer::No);
        assert_eq!(possible(&and(some(set(&["b"])), every(set(&["a"]))), &Type::Dyn), Answer::No);
        let field = |p: Pred| Pred::Field("a".into(), Arc::new(p));
        assert_eq!(implies(&field(c(Value, Gt, 3)), &field(c(Value, Gt, 2))), Answer::Yes);
        assert_eq!(implies(&field(c(Value, Gt, 2)), &field(c(Value, Gt, 3))), Answer::No);
    }

    #[test]
    fn schemas_are_what_they_say_as_far_as_predicates_can() {
        let schema = |text: &str| {
            let json = serde_json::from_str(text).unwrap();
            Pred::Schema(Arc::new(core_ir::Schema::new(&Data::from_json(&json).unwrap()).unwrap()))
        };
        let short = schema(r#"{"type": "string", "minLength": 1, "maxLength": 5}"#);
        assert_eq!(implies(&short, &c(Length, Le, 9)), Answer::Yes);
        assert_eq!(implies(&c(Length, Eq, 3), &short), Answer::No);
        assert_eq!(implies(&and(Pred::Contains("x".into()), c(Length, Eq, 3)), &short), Answer::Yes);
        let list = schema(r#"{"type": "array", "items": {"type": "number", "minimum": 2}, "minItems": 1}"#);
        assert_eq!(implies(&list, &Pred::Every(Arc::new(c(Value, Gt, 1)))), Answer::Yes);
        assert_eq!(implies(&list, &Pred::Some(Arc::new(c(Value, Gt, 1)))), Answer::Yes);
        assert_eq!(possible(&list, &Type::Str), Answer::No);
        let record = schema(r#"{"type": "object", "required": ["a"], "properties": {"a": {"const": 1}}}"#);
        let field = |n: i64| Pred::Field("a".into(), Arc::new(Pred::OneOf([Data::Num(Num::from(n))].into())));
        assert_eq!(implies(&record, &field(1)), Answer::Yes);
        assert_eq!(implies(&field(1), &record), Answer::Yes);
        assert_eq!(possible(&and(record, field(2)), &Type::Dyn), Answer::No);
        // Parts that predicates cannot express leave only a necessary condition.
        let whole = schema(r#"{"type": "integer", "minimum": 3}"#);
        assert_eq!(implies(&whole, &c(Value, Gt, 2)), Answer::Yes);
        assert_eq!(implies(&whole, &whole), Answer::Yes);
        assert_eq!(implies(&c(Value, Ge, 3), &whole), Answer::No);
        assert_eq!(possible(&and(whole, c(Value, Lt, 3)), &Type::Num), Answer::No);
    }

    #[test]
    fn patterns_are_unknown_unless_they_are_the_same() {
        let m = |s: &str| Pred::Matches(s.into());
        assert_eq!(implies(&m("^a$"), &m("^a$")), Answer::Yes);
        assert_eq!(implies(&m("^a$"), &c(Length, Eq, 1)), Answer::Unknown);
        assert_eq!(implies(&and(m("^a$"), c(Length, Eq, 1)), &m("^a$")), Answer::Yes);
        assert_eq!(implies(&c(Length, Ge, 1), &m("^a$")), Answer::No);
    }

    #[test]
    fn contradictions_are_found() {
        assert_eq!(possible(&and(c(Length, Gt, 5), c(Length, Lt, 3)), &Type::Str), Answer::No);
        assert_eq!(possible(&and(c(Length, Gt, 2), c(Length, Lt, 3)), &Type::Str), Answer::No);
        assert_eq!(possible(&and(c(Value, Gt, 2), c(Value, Lt, 3)), &Type::Num), Answer::Yes);
        assert_eq!(possible(&and(c(Words, Eq, 4), c(Length, Le, 6)), &Type::Str), Answer::No);
        assert_eq!(possible(&c(Length, Lt, 0), &Type::Dyn), Answer::No);
        assert_eq!(possible(&c(Value, Gt, 0), &Type::Str), Answer::No);
        assert_eq!(possible(&not(c(Value, Gt, 0)), &Type::Str), Answer::Yes);
        assert_eq!(possible(&not(Pred::True), &Type::Dyn), Answer::No);
        assert_eq!(possible(&Pred::Matches("^[0-9]+$".into()), &Type::Str), Answer::Yes);
    }
}
