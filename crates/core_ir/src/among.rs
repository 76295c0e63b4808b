//! Sets of values that untrusted data may choose an argument from: `among` of a tool.
//!
//! Entry points: [`Among`], an entry of a declaration; [`tokens`], the set that a request states.
//!
//! Invariant: equality is that of data. No text is trimmed, folded or searched for.
//!
//! Source: `docs/calculus.md` §10, bounded endorsement.

use crate::{Data, Name, Num, PartLabel, PathStep, Region, ResultParts, Type};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

/// The longest list that is an argument out of a set.
pub const MAX_CHOSEN_ITEMS: usize = 1_000;

/// Source of a set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AmongSource {
    /// The tokens of the run's input ([`tokens`]).
    Request,
    /// The addresses at the sites that tokens of the run's input name ([`Region::sites`]).
    Sites,
    /// The result of a tool that is called once, before the first step of the run.
    Tool(Name),
    /// The paths or addresses below a place.
    Below(Region),
    /// Values that the policy states.
    Values(Box<[Data]>),
}

/// Number of values that an argument could have been chosen from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetSize {
    /// A number of values. Of a list, each item is one of them.
    Values(usize),
    /// Any path or address below these places.
    Below(Vec<Region>),
}

/// A step from an item of a set to the values in it. Lists on the way represent their items.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SetStep {
    /// `name`: the field of a record.
    Field(Name),
    /// `{*}`: each field of a record.
    Values,
    /// `{keys}`: the keys of a record, as texts. Nothing follows it.
    Keys,
}

impl SetStep {
    /// Reads a step; `None` if the text is none.
    ///
    /// # Examples
    /// ```
    /// use core_ir::SetStep;
    /// assert_eq!(SetStep::parse("email"), Some(SetStep::Field("email".into())));
    /// assert_eq!(SetStep::parse("{*}"), Some(SetStep::Values));
    /// assert_eq!(SetStep::parse("\"{*}\""), Some(SetStep::Field("{*}".into())));
    /// assert_eq!(SetStep::parse(""), None);
    /// ```
    pub fn parse(text: &str) -> Option<SetStep> {
        match text {
            "" => None,
            "{*}" => Some(SetStep::Values),
            "{keys}" => Some(SetStep::Keys),
            quoted if quoted.starts_with('"') => {
                serde_json::from_str::<String>(quoted).ok().map(|name| SetStep::Field(name.into()))
            }
            name => Some(SetStep::Field(name.into())),
        }
    }
}

impl fmt::Display for SetStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetStep::Values => f.write_str("{*}"),
            SetStep::Keys => f.write_str("{keys}"),
            SetStep::Field(name) if name.is_empty() || name.starts_with(['{', '"']) => {
                write!(f, "{}", serde_json::Value::from(&**name))
            }
            SetStep::Field(name) => f.write_str(name),
        }
    }
}

/// A set of arguments: for one parameter, or for several that are chosen together.
///
/// # Examples
/// ```
/// use core_ir::{Among, AmongSource, Data, SetSize, SetStep, Type};
/// // The address of a contact.
/// let contacts = AmongSource::Tool("contacts".into());
/// let email = vec![SetStep::Field("email".into())];
/// let among = Among { source: contacts, params: vec![("to".into(), email)] };
/// let bob = Data::record([("email".into(), Data::str("bob@example.org"))]);
/// let items = [bob];
/// let bob = Data::str("bob@example.org");
/// assert_eq!(among.choices(&items, &Type::Dyn, &[&bob]), Some(SetSize::Values(1)));
/// let eve = Data::str("eve@example.org");
/// assert_eq!(among.choices(&items, &Type::Dyn, &[&eve]), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Among {
    /// Source of the set.
    pub source: AmongSource,
    /// The parameters, at least one, each with the steps that lead to its value in an item.
    pub params: Vec<(Name, Vec<SetStep>)>,
}

impl Among {
    /// The entry as data: `{tool: NAME, params: {PARAMETER: [STEP, …], …}}`. Other sources have
    /// `sites: true`, `below: PLACE` or `values: […]` instead of `tool`, and the request has none of them.
    pub fn to_data(&self) -> Data {
        let path = |path: &[SetStep]| Data::list(path.iter().map(|s| Data::str(s.to_string())));
        let params = Data::record(self.params.iter().map(|(n, p)| (n.clone(), path(p))));
        let source = match &self.source {
            AmongSource::Request => None,
            AmongSource::Sites => Some(("sites".into(), Data::Bool(true))),
            AmongSource::Tool(name) => Some(("tool".into(), Data::str(&**name))),
            AmongSource::Below(region) => Some(("below".into(), Data::str(region.to_string()))),
            AmongSource::Values(values) => Some(("values".into(), Data::list(values.iter().cloned()))),
        };
        Data::record(source.into_iter().chain([("params".into(), params)]))
    }

    /// Reads [`Among::to_data`].
    ///
    /// # Examples
    /// ```
    /// use core_ir::{Among, AmongSource};
    /// let among = Among { source: AmongSource::Request, params: vec![("to".into(), Vec::new())] };
    /// assert_eq!(Among::from_data(&among.to_data()), Some(among));
    /// ```
    pub fn from_data(data: &Data) -> Option<Among> {
        let Data::Record(fields) = data else { return None };
        let named = ["tool", "sites", "below", "values"];
        let named = named.into_iter().find_map(|name| Some((name, data.field(name)?)));
        let source = match named {
            None => AmongSource::Request,
            Some(("tool", Data::Str(name))) => AmongSource::Tool(Name::from(&**name)),
            Some(("sites", Data::Bool(true))) => AmongSource::Sites,
            Some(("below", Data::Str(place))) => AmongSource::Below(Region::new(place).ok()?),
            Some(("values", Data::List(values))) => AmongSource::Values(values.iter().cloned().collect()),
            Some(_) => return None,
        };
        let known = 1 + usize::from(source != AmongSource::Request);
        let Some(Data::Record(params)) = data.field("params") else { return None };
        let path = |data: &Data| match data {
            Data::List(steps) => steps.iter().map(step).collect::<Option<Vec<SetStep>>>(),
            _ => None,
        };
        let params = params.iter().map(|(n, p)| Some((n.clone(), path(p)?))).collect::<Option<Vec<_>>>()?;
        (fields.len() == known && !params.is_empty()).then_some(Among { source, params })
    }

    /// Returns the number of choices that the arguments are one of, if they are in the set. `items` are those
    /// of the source: tokens of the request, items of a result. `args` are in the order of
    /// [`Among::params`]. Several parameters are chosen by one item.
    ///
    /// A list is in a set if it is an element, or if it has between one and [`MAX_CHOSEN_ITEMS`] items and
    /// each is an element.
    ///
    /// `result` is the type of what the items were read from. A value that has not the type that it has there
    /// is no element.
    pub fn choices(&self, items: &[Data], result: &Type, args: &[&Data]) -> Option<SetSize> {
        debug_assert_eq!(self.params.len(), args.len());
        let regions = match &self.source {
            AmongSource::Sites => {
                let mut sites: Vec<Region> = Vec::new();
                let found = items.iter().filter_map(Data::as_str).flat_map(Region::sites);
                found.for_each(|site| {
                    if !sites.contains(&site) {
                        sites.push(site);
                    }
                });
                sites
            }
            AmongSource::Below(region) => vec![region.clone()],
            AmongSource::Request | AmongSource::Tool(_) | AmongSource::Values(_) => {
                return self.values(items, result, args).map(SetSize::Values);
            }
        };
        // INVARIANT: such a source is one of single parameters, without a path.
        let [arg] = args else { return None };
        let is_in = |text: &Data| text.as_str().is_some_and(|t| regions.iter().any(|r| r.has(t)));
        let all = match arg {
            Data::List(items) if (1..=MAX_CHOSEN_ITEMS).contains(&items.len()) => items.iter().all(is_in),
            one => is_in(one),
        };
        all.then_some(SetSize::Below(regions))
    }

    fn values(&self, items: &[Data], result: &Type, args: &[&Data]) -> Option<usize> {
        let [(_, path)] = &self.params[..] else {
            let matches = |item: &&Data| {
                self.params.iter().zip(args).all(|((_, path), arg)| {
                    let mut values = HashSet::new();
                    add_values(item, path, result, &mut values);
                    is_among(arg, &values)
                })
            };
            return items.iter().find(matches).map(|_| items.len());
        };
        let mut values = HashSet::new();
        items.iter().for_each(|item| add_values(item, path, result, &mut values));
        let [arg] = args else { return None };
        is_among(arg, &values).then_some(values.len())
    }

    /// The rules about parts of a tool's result that say how the set is labeled: those about what its values
    /// are in, about the values, and about what is in them.
    ///
    /// # Examples
    /// ```
    /// use core_ir::{Among, AmongSource, LabelSpec, PartLabel, PartPath, ResultParts, SetStep};
    /// let rule = |path: &str| PartLabel::stated(PartPath::parse(path).unwrap(), LabelSpec::TOP);
    /// let parts = ResultParts::new(["[]", "[].email", "[].note", "[]{*}"].map(rule));
    /// let email = vec![SetStep::Field("email".into())];
    /// let contacts = AmongSource::Tool("contacts".into());
    /// let among = Among { source: contacts, params: vec![("to".into(), email)] };
    /// let paths: Vec<String> = among.rules(&parts).iter().map(|r| r.path.to_string()).collect();
    /// // The rule that names the field is more precise than the one about all fields.
    /// assert_eq!(paths, ["[]", "[].email"]);
    /// ```
    pub fn rules<'p>(&self, parts: &'p ResultParts) -> Vec<&'p PartLabel> {
        let mut found = Vec::new();
        for (_, path) in &self.params {
            // Where lists are, on the ways that are told apart: the first rule about one is the most precise.
            let mut decided: HashSet<Vec<bool>> = HashSet::new();
            for rule in parts.iter() {
                let steps = rule.path.steps();
                let alone = match leads(steps, path) {
                    None => continue,
                    Some(alone) => alone,
                };
                let lists = steps.iter().map(|s| *s == PathStep::Items).collect();
                if !alone || decided.insert(lists) {
                    found.push(rule);
                }
            }
        }
        found
    }
}

/// Returns whether a path of a rule is about what the values of a set are in, about them, or about what is in
/// them. True if it is about one part on the way, false if it may be about one of several.
fn leads(steps: &[PathStep], path: &[SetStep]) -> Option<bool> {
    let (mut rest, mut alone) = (path, true);
    for step in steps {
        match (step, rest) {
            (PathStep::Items, _) => {}
            (_, []) => alone = false,
            (PathStep::Field(n), [SetStep::Field(m), after @ ..]) if n == m => rest = after,
            (PathStep::Values, [SetStep::Field(_), after @ ..]) => rest = after,
            (_, [SetStep::Values, after @ ..]) => (rest, alone) = (after, false),
            _ => return None,
        }
    }
    Some(alone)
}

fn step(data: &Data) -> Option<SetStep> {
    match data {
        Data::Str(step) => SetStep::parse(step),
        _ => None,
    }
}

/// The type that a path leads to in data of a type, lists on the way and at its end left out; `Dyn` if it
/// isn't known.
///
/// # Errors
/// The index of the first step that leads nowhere.
pub fn type_at<'t>(mut ty: &'t Type, path: &[SetStep]) -> Result<&'t Type, usize> {
    let mut at = 0;
    loop {
        ty = match (ty, path.get(at)) {
            (Type::Option(inner) | Type::List(inner), _) => inner,
            (Type::Refined(inner), Some(_)) => &inner.0,
            (Type::Record(fields), Some(step)) => {
                let field = match step {
                    SetStep::Field(name) => match fields.iter().find(|(n, _)| n == name) {
                        Some((_, ty)) => ty,
                        None => return Err(at),
                    },
                    SetStep::Keys => return Ok(&Type::Str),
                    SetStep::Values => return Ok(&Type::Dyn),
                };
                at += 1;
                field
            }
            (Type::Dyn, Some(_)) | (_, None) => return Ok(ty),
            (_, Some(_)) => return Err(at),
        };
    }
}

/// The items of a set: those of a list; anything else is one.
pub fn items(data: &Data) -> &[Data] {
    match data {
        Data::List(items) => items,
        Data::Null => &[],
        one => std::slice::from_ref(one),
    }
}

/// Adds the values that a path leads to. Lists on the way, and at its end, represent their items.
fn add_values<'d>(data: &'d Data, path: &[SetStep], result: &Type, out: &mut HashSet<Cow<'d, Data>>) {
    // Where the path is one that the type doesn't have, what is there is of no known type.
    let ty = type_at(result, path).unwrap_or(&Type::Dyn);
    // Data is at most `MAX_DATA_DEPTH` deep, so the work list is no longer than the data is large.
    let mut rest = vec![(data, path)];
    while let Some((data, path)) = rest.pop() {
        match (data, path) {
            (Data::List(items), _) => rest.extend(items.iter().map(|item| (item, path))),
            (one, []) if ty.check(one).is_ok() => {
                out.insert(Cow::Borrowed(one));
            }
            (_, []) => {}
            (record, [SetStep::Field(name), path @ ..]) => {
                rest.extend(record.field(name).map(|field| (field, path)));
            }
            (Data::Record(fields), [SetStep::Values, path @ ..]) => {
                rest.extend(fields.iter().map(|(_, field)| (field, path)));
            }
            (Data::Record(fields), [SetStep::Keys, ..]) => {
                out.extend(fields.iter().map(|(name, _)| Cow::Owned(Data::str(&**name))));
            }
            _ => {}
        }
    }
}

fn is_among(arg: &Data, values: &HashSet<Cow<'_, Data>>) -> bool {
    match arg {
        Data::List(items) if (1..=MAX_CHOSEN_ITEMS).contains(&items.len()) => {
            values.contains(arg) || items.iter().all(|item| values.contains(item))
        }
        _ => values.contains(arg),
    }
}

/// The whole tokens of a request: its numbers, its addresses, and the texts between quotation marks.
///
/// A word ends at white space; brackets and punctuation around it don't count. A word of digits, perhaps with
/// a sign, a currency sign, separated thousands and a fraction, is a number. An address is a word that no
/// ordinary word looks like: it has a digit, or one of `@ # _ / : . + =` inside. Of other data than text,
/// numbers are tokens, and so is each text in it that is one.
///
/// # Examples
/// ```
/// use core_ir::{Data, Num, among::tokens};
/// let found = tokens(&Data::str("Pay $1,500 to bob@example.org for \"the roof\", please."));
/// assert!(found.contains(&Data::Num(Num::from(1500))));
/// assert!(found.contains(&Data::str("bob@example.org")));
/// assert!(found.contains(&Data::str("the roof")));
/// assert!(!found.contains(&Data::Num(Num::from(150))));
/// assert!(!found.contains(&Data::str("please")));
/// ```
pub fn tokens(request: &Data) -> Vec<Data> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let mut add = |token: Data| {
        if seen.insert(token.clone()) {
            found.push(token);
        }
    };
    let mut rest = vec![request];
    while let Some(data) = rest.pop() {
        match data {
            Data::Str(text) => {
                quoted(text).for_each(|text| add(Data::str(text)));
                for word in text.split_whitespace() {
                    if let Some(number) = number(word) {
                        add(Data::Num(number));
                    }
                    let word = trimmed(word);
                    if is_address(word) {
                        add(Data::str(word));
                    }
                }
            }
            Data::Num(_) => add(data.clone()),
            Data::List(items) => rest.extend(items.iter().rev()),
            Data::Record(fields) => rest.extend(fields.iter().rev().map(|(_, d)| d)),
            Data::Pair(both) => rest.extend([&both.1, &both.0]),
            Data::Tag(_, payload) => rest.push(payload),
            Data::Null | Data::Bool(_) => {}
        }
    }
    found
}

/// Pairs of quotation marks.
const QUOTES: [(char, char); 6] = [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('‘', '’'), ('«', '»')];

/// The texts between quotation marks that begin and end a word. They don't overlap.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let mut from = 0;
    // Kinds that nothing further on closes: each of them would look to the end again.
    let mut unclosed = [false; QUOTES.len()];
    std::iter::from_fn(move || {
        let kind =
            |c: char, unclosed: &[bool]| QUOTES.iter().position(|q| q.0 == c).filter(|k| !unclosed[*k]);
        while let Some((at, kind, open)) =
            text[from..].char_indices().find_map(|(i, c)| Some((from + i, kind(c, &unclosed)?, c)))
        {
            let start = at + open.len_utf8();
            from = start;
            let close = QUOTES[kind].1;
            if !is_edge(text[..at].chars().next_back()) {
                continue;
            }
            let ends = |(i, c): &(usize, char)| {
                *c == close && is_edge(text[start + i + c.len_utf8()..].chars().next())
            };
            match text[start..].char_indices().find(ends) {
                Some((end, _)) if end > 0 => {
                    from = start + end + close.len_utf8();
                    return Some(&text[start..start + end]);
                }
                Some(_) => {}
                None => unclosed[kind] = true,
            }
        }
        None
    })
}

/// A word without brackets, quotation marks and punctuation around it.
pub(crate) fn trimmed(word: &str) -> &str {
    let outer = |c: char| "()[]{}<>,;!?\"'`“”‘’«»".contains(c);
    word.trim_matches(outer).trim_end_matches(|c: char| outer(c) || ".:".contains(c))
}

fn is_address(word: &str) -> bool {
    let inner = word.char_indices().any(|(i, c)| {
        "@#_/:.+=".contains(c) && (i > 0 || "@#/".contains(c)) && i + c.len_utf8() < word.len()
    });
    inner || word.contains(|c: char| c.is_ascii_digit())
}

/// The number that a word is as a whole.
fn number(word: &str) -> Option<Num> {
    let word = trimmed(word).trim_matches(|c: char| "$€£¥".contains(c));
    let (negative, digits) = match word.strip_prefix('-') {
        Some(rest) => (true, rest.trim_start_matches(|c: char| "$€£¥".contains(c))),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    };
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let is_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    let grouped = rest.is_empty() || (first.len() <= 3 && rest.iter().all(|g| g.len() == 3));
    if !grouped || !is_digits(first) || !rest.iter().all(|g| is_digits(g)) || !fraction.is_none_or(is_digits)
    {
        return None;
    }
    let sign = if negative { "-" } else { "" };
    let fraction = fraction.map_or(String::new(), |f| format!(".{f}"));
    format!("{sign}{first}{}{fraction}", rest.concat()).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(request: &str) -> Vec<String> {
        let text = |d: Data| match d {
            Data::Str(s) => s.to_string(),
            Data::Num(n) => n.to_string(),
            _ => unreachable!("a token is a text or a number"),
        };
        tokens(&Data::str(request)).into_iter().map(text).collect()
    }

    #[test]
    fn tokens_are_whole() {
        assert_eq!(texts("pay 1500 to GB29NWBK"), ["1500", "1500", "GB29NWBK"]);
        assert_eq!(
            texts("(see https://a.example/b?c=1), @bob: #general."),
            ["https://a.example/b?c=1", "@bob", "#general"]
        );
        assert_eq!(texts("send it to all my friends."), [""; 0]);
        assert_eq!(texts("read bill-december.txt, then stop."), ["bill-december.txt"]);
        assert_eq!(
            texts("-12.50 1,5 $3,000.25 €7 12a"),
            ["-12.5", "-12.50", "1,5", "3000.25", "$3,000.25", "7", "€7", "12a"]
        );
    }

    #[test]
    fn quoted_texts_begin_and_end_words() {
        assert_eq!(texts("call it \"my list\" and ‘that one’"), ["my list", "that one"]);
        assert_eq!(texts("don't say it isn't so"), [""; 0]);
        assert_eq!(texts("an \"open end"), [""; 0]);
        // Many opening marks that nothing closes take no time in the square of their number.
        assert_eq!(texts(&" \"a".repeat(100_000)).len(), 0);
        assert_eq!(texts(&" «a".repeat(100_000)).len(), 0);
        assert_eq!(texts(&" \"a «a".repeat(100_000)).len(), 0);
    }

    #[test]
    fn several_parameters_are_chosen_by_one_item() {
        let item = |to: &str, n: i64| {
            Data::record([("iban".into(), Data::str(to)), ("total".into(), Data::Num(Num::from(n)))])
        };
        let bills = [item("A1", 5), item("B2", 9000)];
        let field = |name: &str| vec![SetStep::Field(name.into())];
        let params = vec![("to".into(), field("iban")), ("amount".into(), field("total"))];
        let among = Among { source: AmongSource::Tool("bills".into()), params };
        let n = |n: i64| Data::Num(Num::from(n));
        assert_eq!(among.choices(&bills, &Type::Dyn, &[&Data::str("A1"), &n(5)]), Some(SetSize::Values(2)));
        assert_eq!(among.choices(&bills, &Type::Dyn, &[&Data::str("A1"), &n(9000)]), None);
    }

    #[test]
    fn a_list_is_chosen_item_by_item() {
        let among = Among { source: AmongSource::Request, params: vec![("to".into(), Vec::new())] };
        let set = [Data::str("a"), Data::str("b")];
        let list = |items: &[&str]| Data::list(items.iter().map(|s| Data::str(*s)));
        assert_eq!(among.choices(&set, &Type::Dyn, &[&list(&["b", "a"])]), Some(SetSize::Values(2)));
        assert_eq!(among.choices(&set, &Type::Dyn, &[&list(&["b", "c"])]), None);
        assert_eq!(among.choices(&set, &Type::Dyn, &[&list(&[])]), None);
        let long = vec!["a"; MAX_CHOSEN_ITEMS + 1];
        assert_eq!(among.choices(&set, &Type::Dyn, &[&list(&long)]), None);
    }
}
