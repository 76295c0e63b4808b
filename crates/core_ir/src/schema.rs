//! JSON Schema as a predicate on data.
//!
//! Entry point: [`Schema::new`], then [`Schema::check`]. The keywords are those of JSON Schema 2020-12 that
//! say something of one value by itself; patterns are regular expressions as in [`Pred::Matches`]. `$ref` may
//! name the document (`#`) and what stands under `$defs` or `definitions`. Keywords that only describe
//! (`title`, `format`, …) say nothing; any other keyword is refused, so that nothing is believed to be
//! checked that is not.
//!
//! Invariant: a check takes a bounded number of steps; a value for which they do not suffice does not satisfy
//! the schema.
//! Invariant: what satisfies a schema satisfies its [`Schema::necessary`] condition, and the other way round
//! if that is exact.

use crate::pred::same;
use crate::{Comparison, Data, MAX_DATA_DEPTH, Measure, Name, Num, Plain, Pred};
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A JSON Schema. Two are equal if they are the same document.
#[derive(Clone)]
pub struct Schema {
    source: Data,
    root: Arc<Node>,
    defs: Arc<HashMap<Name, Node>>,
    necessary: Pred,
    exact: bool,
}

impl PartialEq for Schema {
    fn eq(&self, other: &Schema) -> bool {
        self.source == other.source
    }
}

impl Eq for Schema {}

impl Hash for Schema {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.source.hash(state);
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.source, f)
    }
}

/// One schema of a document.
#[derive(Default)]
struct Node {
    /// `false`: nothing satisfies it.
    never: bool,
    rules: Vec<Rule>,
}

enum Rule {
    Kinds(Vec<SchemaType>),
    OneOf(Arc<[Data]>),
    Ref(Name),
    All(Vec<Node>),
    Any(Vec<Node>),
    ExactlyOne(Vec<Node>),
    Not(Box<Node>),
    If(Box<[Node; 3]>),
    /// Numbers: a comparison; a divisor.
    Value(Comparison, Num),
    MultipleOf(Num),
    /// Numbers that have a finite decimal notation.
    Decimal,
    /// Characters, items or fields.
    Count(SchemaType, Comparison, Num),
    Pattern(Arc<str>),
    Prefix(Vec<Node>),
    /// All items after a number of first ones.
    Items(usize, Box<Node>),
    /// Minimum and maximum number of matching items.
    Contains(Box<Node>, u64, Option<u64>),
    Unique,
    Property(Name, Node),
    PatternProperty(Arc<str>, Node),
    /// All fields but these, and those that match these patterns.
    Others {
        names: Vec<Name>,
        patterns: Vec<Arc<str>>,
        rule: Box<Node>,
    },
    Names(Box<Node>),
    Required(Name),
    /// If the first field is present, the others must be, too.
    Dependent(Name, Vec<Name>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SchemaType {
    Null,
    Bool,
    Num,
    Integer,
    Str,
    List,
    Record,
}

impl SchemaType {
    const ALL: [(&'static str, SchemaType); 7] = [
        ("null", SchemaType::Null),
        ("boolean", SchemaType::Bool),
        ("number", SchemaType::Num),
        ("integer", SchemaType::Integer),
        ("string", SchemaType::Str),
        ("array", SchemaType::List),
        ("object", SchemaType::Record),
    ];

    fn admits(self, data: &Data) -> bool {
        match (self, data) {
            (SchemaType::Integer, Data::Num(n)) => n.floor() == *n,
            (SchemaType::Null, Data::Null)
            | (SchemaType::Bool, Data::Bool(_))
            | (SchemaType::Num, Data::Num(_))
            | (SchemaType::Str, Data::Str(_))
            | (SchemaType::List, Data::List(_))
            | (SchemaType::Record, Data::Record(_)) => true,
            _ => false,
        }
    }

    fn name(self) -> &'static str {
        SchemaType::ALL.iter().find(|(_, k)| *k == self).map_or("", |(n, _)| n)
    }

    /// Returns the predicate that holds of exactly the values of this kind. For an integer, it holds of
    /// exactly the integers among numbers.
    fn pred(self) -> Pred {
        let length = Pred::Compare(Measure::Length, Comparison::Ge, Num::ZERO);
        let any = |p: Pred| Arc::new(p);
        match self {
            SchemaType::Null => Pred::OneOf([Data::Null].into()),
            SchemaType::Bool => Pred::OneOf([Data::Bool(true), Data::Bool(false)].into()),
            SchemaType::Num | SchemaType::Integer => or(
                Pred::Compare(Measure::Value, Comparison::Ge, Num::ZERO),
                Pred::Compare(Measure::Value, Comparison::Lt, Num::ZERO),
            ),
            SchemaType::Str => Pred::Contains("".into()),
            SchemaType::List => Pred::Every(any(Pred::True)),
            SchemaType::Record => {
                and(length, and(not(Pred::Contains("".into())), not(Pred::Every(any(Pred::True)))))
            }
        }
    }
}

/// The `format` of numbers with a finite decimal notation. Other formats say nothing of a value.
pub(crate) const DECIMAL: &str = "decimal";

/// Keywords that say nothing of a value.
const ANNOTATIONS: [&str; 16] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "example",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "contentEncoding",
    "contentMediaType",
];

/// Steps of one check.
const MAX_STEPS: u32 = 100_000;
/// Definitions followed into each other, and schemas within each other.
const MAX_NESTING: usize = 200;

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// Where in the document, as a JSON pointer, something is no schema, and why.
    ///
    /// # Examples
    /// ```
    /// use core_ir::{Data, Schema};
    /// let read = |text: &str| Data::from_json(&serde_json::from_str(text).unwrap()).unwrap();
    /// let schema = Schema::new(&read(r#"{"type": "array", "items": {"type": "integer"}}"#)).unwrap();
    /// assert_eq!(schema.check(&read("[1, 2]")), Ok(()));
    /// assert_eq!(schema.check(&read("[1, 2.5]")), Err("item 1: 2.5 is no integer".into()));
    /// assert!(Schema::new(&read(r#"{"unevaluatedItems": false}"#)).is_err());
    /// ```
    pub fn new(source: &Data) -> Result<Schema, String> {
        let mut defs = HashMap::new();
        for group in ["$defs", "definitions"] {
            let Some(found) = source.field(group) else { continue };
            let Data::Record(fields) = found else { return Err(format!("/{group}: not an object")) };
            for (name, schema) in fields.iter() {
                let place = format!("/{group}/{name}");
                defs.insert(Name::from(format!("#{place}")), node(schema, &place, 0)?);
            }
        }
        let root = node(source, "", 0)?;
        let mut refs = Vec::new();
        references(&root, &mut refs);
        defs.values().for_each(|n| references(n, &mut refs));
        if let Some(missing) = refs.iter().find(|n| &****n != "#" && !defs.contains_key(**n)) {
            return Err(format!("`$ref` names `{missing}`, which is not there"));
        }
        let (necessary, exact) = condition(&root);
        Ok(Schema { source: source.clone(), root: Arc::new(root), defs: Arc::new(defs), necessary, exact })
    }

    /// The document.
    pub fn source(&self) -> &Data {
        &self.source
    }

    /// A condition that everything that satisfies the schema satisfies, and whether it is the schema itself.
    pub fn necessary(&self) -> (&Pred, bool) {
        (&self.necessary, self.exact)
    }

    /// Decides whether data satisfies the schema. A pair or a tag is of no JSON type.
    ///
    /// # Errors
    /// Where and why it does not.
    pub fn check(&self, data: &Data) -> Result<(), String> {
        self.check_counting(data, &mut 0)
    }

    /// Decides like [`Schema::check`]. Adds what is looked at to `steps`.
    ///
    /// # Errors
    /// The errors of [`Schema::check`].
    pub fn check_counting(&self, data: &Data, steps: &mut u64) -> Result<(), String> {
        let run = SchemaCheck { root: &self.root, defs: &self.defs, steps: Cell::new(MAX_STEPS) };
        let checked = run.node(&self.root, data, 0);
        // A rule looks at the whole text or at the names of all fields.
        *steps += u64::from(MAX_STEPS - run.steps.get()) + Plain::cost(data);
        checked
    }
}

fn and(a: Pred, b: Pred) -> Pred {
    match (a, b) {
        (Pred::True, p) | (p, Pred::True) => p,
        (a, b) => Pred::And(Arc::new((a, b))),
    }
}

fn or(a: Pred, b: Pred) -> Pred {
    Pred::Or(Arc::new((a, b)))
}

fn not(p: Pred) -> Pred {
    Pred::Not(Arc::new(p))
}

/// `kind ⇒ p`.
fn where_kind(kind: SchemaType, p: Pred) -> Pred {
    or(not(kind.pred()), p)
}

/// A necessary condition of a schema, and whether it is exact.
fn condition(n: &Node) -> (Pred, bool) {
    if n.never {
        return (not(Pred::True), true);
    }
    // With one kind, what is said of other kinds is nothing.
    let only = n.rules.iter().find_map(|r| match r {
        Rule::Kinds(kinds) if kinds.len() == 1 => Some(kinds[0]),
        _ => None,
    });
    let said = |kind: SchemaType, p: Pred| if only == Some(kind) { p } else { where_kind(kind, p) };
    let (mut all, mut exact) = (Pred::True, true);
    for rule in &n.rules {
        let (p, fully) = match rule {
            Rule::Kinds(kinds) => {
                let p = kinds.iter().map(|k| k.pred()).reduce(or).unwrap_or_else(|| not(Pred::True));
                (p, !kinds.contains(&SchemaType::Integer))
            }
            Rule::OneOf(items) => (Pred::OneOf(items.clone()), true),
            Rule::All(nodes) => {
                nodes.iter().map(condition).fold((Pred::True, true), |(a, x), (b, y)| (and(a, b), x && y))
            }
            Rule::Any(nodes) => {
                let parts: Vec<_> = nodes.iter().map(condition).collect();
                let fully = parts.iter().all(|(_, x)| *x);
                (parts.into_iter().map(|(p, _)| p).reduce(or).unwrap_or_else(|| not(Pred::True)), fully)
            }
            Rule::ExactlyOne(nodes) => {
                let p = nodes.iter().map(|n| condition(n).0).reduce(or);
                (p.unwrap_or_else(|| not(Pred::True)), false)
            }
            // Only what is exact may be negated.
            Rule::Not(inner) => match condition(inner) {
                (p, true) => (not(p), true),
                _ => (Pred::True, false),
            },
            Rule::If(parts) => match (condition(&parts[0]), condition(&parts[1]), condition(&parts[2])) {
                ((c, true), (a, x), (b, y)) => (or(and(c.clone(), a), and(not(c), b)), x && y),
                _ => (Pred::True, false),
            },
            Rule::Value(c, n) => {
                let kind =
                    if only == Some(SchemaType::Integer) { SchemaType::Integer } else { SchemaType::Num };
                (said(kind, Pred::Compare(Measure::Value, *c, n.clone())), true)
            }
            Rule::Count(kind, c, n) => (said(*kind, Pred::Compare(Measure::Length, *c, n.clone())), true),
            Rule::Pattern(r) => (said(SchemaType::Str, Pred::Matches(r.clone())), true),
            Rule::Items(0, node) => {
                let (p, fully) = condition(node);
                (said(SchemaType::List, Pred::Every(Arc::new(p))), fully)
            }
            Rule::Contains(node, 1, None) => {
                let (p, fully) = condition(node);
                (said(SchemaType::List, Pred::Some(Arc::new(p))), fully)
            }
            Rule::Property(name, node) => {
                let (p, fully) = condition(node);
                let there = Pred::Field(name.clone(), Arc::new(Pred::True));
                let fits = Pred::Field(name.clone(), Arc::new(p));
                let required = n.rules.iter().any(|r| matches!(r, Rule::Required(n) if n == name));
                (said(SchemaType::Record, if required { fits } else { or(not(there), fits) }), fully)
            }
            Rule::Required(name) => {
                (said(SchemaType::Record, Pred::Field(name.clone(), Arc::new(Pred::True))), true)
            }
            _ => (Pred::True, false),
        };
        all = and(all, p);
        exact &= fully;
    }
    (all, exact)
}

fn references<'n>(n: &'n Node, out: &mut Vec<&'n Name>) {
    for rule in &n.rules {
        match rule {
            Rule::Ref(name) => out.push(name),
            Rule::All(ns) | Rule::Any(ns) | Rule::ExactlyOne(ns) | Rule::Prefix(ns) => {
                ns.iter().for_each(|n| references(n, out));
            }
            Rule::Not(n) | Rule::Items(_, n) | Rule::Contains(n, ..) | Rule::Names(n) => references(n, out),
            Rule::Others { rule, .. } => references(rule, out),
            Rule::If(ns) => ns.iter().for_each(|n| references(n, out)),
            Rule::Property(_, n) | Rule::PatternProperty(_, n) => references(n, out),
            _ => {}
        }
    }
}

/// Reads one schema.
fn node(source: &Data, place: &str, depth: usize) -> Result<Node, String> {
    let wrong = |what: &str| Err(format!("{place}: {what}"));
    if depth > MAX_NESTING {
        return wrong("nested too deep");
    }
    let fields = match source {
        Data::Bool(holds) => return Ok(Node { never: !holds, rules: Vec::new() }),
        Data::Record(fields) => fields,
        _ => return wrong("a schema is an object or a boolean"),
    };
    let sub = |key: &str, d: &Data| node(d, &format!("{place}/{key}"), depth + 1);
    let subs = |key: &str, d: &Data| match d {
        Data::List(items) => items
            .iter()
            .enumerate()
            .map(|(i, d)| sub(&format!("{key}/{i}"), d))
            .collect::<Result<Vec<_>, _>>(),
        _ => Err(format!("{place}/{key}: expected a list of schemas")),
    };
    let text = |key: &str, d: &Data| match d {
        Data::Str(s) => Ok(s.clone()),
        _ => Err(format!("{place}/{key}: expected a string")),
    };
    let pattern = |key: &str, s: &Arc<str>| match crate::pred::regex(s) {
        Some(_) => Ok(s.clone()),
        None => Err(format!("{place}/{key}: `{s}` is not a usable regular expression")),
    };
    let texts = |key: &str, d: &Data| match d {
        Data::List(items) => items.iter().map(|d| text(key, d).map(|s| Name::from(&*s))).collect(),
        _ => Err(format!("{place}/{key}: expected a list of strings")),
    };
    let number = |key: &str, d: &Data| match d {
        Data::Num(n) => Ok(n.clone()),
        _ => Err(format!("{place}/{key}: expected a number")),
    };
    let count = |key: &str, d: &Data| {
        match d {
            Data::Num(n) => n.to_usize().map(|n| n as u64).ok_or(()),
            _ => Err(()),
        }
        .map_err(|()| format!("{place}/{key}: expected a natural number"))
    };
    let named = |key: &str, d: &Data| match d {
        Data::Record(fields) => fields
            .iter()
            .map(|(n, d)| Ok((n.clone(), sub(&format!("{key}/{n}"), d)?)))
            .collect::<Result<Vec<_>, String>>(),
        _ => Err(format!("{place}/{key}: expected an object of schemas")),
    };
    let field = |name: &str| fields.iter().find(|(n, _)| &**n == name).map(|(_, d)| d);
    let mut rules = Vec::new();
    for (key, d) in fields.iter() {
        use Comparison::{Ge, Gt, Le, Lt};
        let key: &str = key;
        let counted =
            |kind, c| count(key, d).map(|_| number(key, d)).and_then(|n| n).map(|n| Rule::Count(kind, c, n));
        rules.push(match key {
            "type" => {
                let names = if let Data::Str(s) = d { vec![Name::from(&**s)] } else { texts(key, d)? };
                let kinds =
                    names.iter().map(|name| match SchemaType::ALL.iter().find(|(n, _)| *n == &**name) {
                        Some((_, kind)) => Ok(*kind),
                        None => Err(format!("{place}/type: unknown type `{name}`")),
                    });
                Rule::Kinds(kinds.collect::<Result<_, _>>()?)
            }
            "enum" => match d {
                Data::List(items) => Rule::OneOf(items.clone()),
                _ => return wrong("`enum` must be a list"),
            },
            "const" => Rule::OneOf([d.clone()].into()),
            "$ref" => Rule::Ref(Name::from(&*text(key, d)?)),
            "allOf" => Rule::All(subs(key, d)?),
            "anyOf" => Rule::Any(subs(key, d)?),
            "oneOf" => Rule::ExactlyOne(subs(key, d)?),
            "not" => Rule::Not(Box::new(sub(key, d)?)),
            "if" => {
                let part = |name: &str| field(name).map_or_else(|| Ok(Node::default()), |d| sub(name, d));
                Rule::If(Box::new([sub(key, d)?, part("then")?, part("else")?]))
            }
            "minimum" => Rule::Value(Ge, number(key, d)?),
            "maximum" => Rule::Value(Le, number(key, d)?),
            "exclusiveMinimum" => Rule::Value(Gt, number(key, d)?),
            "exclusiveMaximum" => Rule::Value(Lt, number(key, d)?),
            "multipleOf" => match number(key, d)? {
                n if n > Num::ZERO => Rule::MultipleOf(n),
                _ => return wrong("`multipleOf` must be greater than 0"),
            },
            // Every number of JSON is a decimal, so this says more only of those that a program has computed.
            "format" if *d == Data::str(DECIMAL) => Rule::Decimal,
            "minLength" => counted(SchemaType::Str, Ge)?,
            "maxLength" => counted(SchemaType::Str, Le)?,
            "minItems" => counted(SchemaType::List, Ge)?,
            "maxItems" => counted(SchemaType::List, Le)?,
            "minProperties" => counted(SchemaType::Record, Ge)?,
            "maxProperties" => counted(SchemaType::Record, Le)?,
            "pattern" => Rule::Pattern(pattern(key, &text(key, d)?)?),
            "prefixItems" => Rule::Prefix(subs(key, d)?),
            "items" => {
                let first = match field("prefixItems") {
                    Some(Data::List(items)) => items.len(),
                    _ => 0,
                };
                Rule::Items(first, Box::new(sub(key, d)?))
            }
            "contains" => {
                let least = field("minContains").map_or(Ok(1), |d| count("minContains", d))?;
                let most = field("maxContains").map(|d| count("maxContains", d)).transpose()?;
                Rule::Contains(Box::new(sub(key, d)?), least, most)
            }
            "uniqueItems" => match d {
                Data::Bool(true) => Rule::Unique,
                Data::Bool(false) => continue,
                _ => return wrong("`uniqueItems` must be a boolean"),
            },
            "properties" => {
                rules.extend(named(key, d)?.into_iter().map(|(n, s)| Rule::Property(n, s)));
                continue;
            }
            "patternProperties" => {
                for (n, s) in named(key, d)? {
                    rules.push(Rule::PatternProperty(pattern(key, &Arc::from(&*n))?, s));
                }
                continue;
            }
            "additionalProperties" => {
                let keys = |name: &str| match field(name) {
                    Some(Data::Record(fields)) => fields.iter().map(|(n, _)| n.clone()).collect(),
                    _ => Vec::new(),
                };
                let patterns = keys("patternProperties").iter().map(|n| Arc::from(&**n)).collect();
                let rule = Box::new(sub(key, d)?);
                Rule::Others { names: keys("properties"), patterns, rule }
            }
            "propertyNames" => Rule::Names(Box::new(sub(key, d)?)),
            "required" => {
                rules.extend(texts(key, d)?.into_iter().map(Rule::Required));
                continue;
            }
            "dependentRequired" => match d {
                Data::Record(fields) => {
                    for (n, d) in fields.iter() {
                        rules.push(Rule::Dependent(n.clone(), texts(key, d)?));
                    }
                    continue;
                }
                _ => return wrong("`dependentRequired` must be an object of lists of strings"),
            },
            "then" | "else" if field("if").is_some() => continue,
            "then" | "else" => continue,
            "minContains" | "maxContains" => {
                count(key, d)?;
                continue;
            }
            _ if ANNOTATIONS.contains(&key) => continue,
            _ => return wrong(&format!("the keyword `{key}` is not known here")),
        });
    }
    Ok(Node { never: false, rules })
}

struct SchemaCheck<'s> {
    root: &'s Node,
    defs: &'s HashMap<Name, Node>,
    steps: Cell<u32>,
}

impl SchemaCheck<'_> {
    fn node(&self, n: &Node, data: &Data, depth: usize) -> Result<(), String> {
        if depth > MAX_DATA_DEPTH + MAX_NESTING {
            return Err("nested too deep for this schema".into());
        }
        if n.never {
            return Err("nothing may be here".into());
        }
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || {
            n.rules.iter().try_for_each(|r| self.rule(r, data, depth))
        })
    }

    fn fits(&self, n: &Node, data: &Data, depth: usize) -> bool {
        self.node(n, data, depth + 1).is_ok()
    }

    fn rule(&self, rule: &Rule, data: &Data, depth: usize) -> Result<(), String> {
        let Some(left) = self.steps.get().checked_sub(1) else {
            return Err("too large for this schema".into());
        };
        self.steps.set(left);
        let at = |place: String| move |e: String| format!("{place}: {e}");
        match (rule, data) {
            (Rule::Kinds(kinds), _) => {
                if kinds.iter().any(|k| k.admits(data)) {
                    return Ok(());
                }
                let names: Vec<&str> = kinds.iter().map(|k| k.name()).collect();
                let article = |names: &str| format!("{} is no {names}", brief(data));
                Err(article(&names.join(" or ")))
            }
            (Rule::OneOf(items), _) => {
                if items.iter().any(|item| same(item, data)) {
                    return Ok(());
                }
                let shown: Vec<String> = items.iter().map(|i| i.to_json().to_string()).collect();
                Err(format!("is not one of {}", shown.join(", ")))
            }
            (Rule::Ref(name), _) => match self.defs.get(name) {
                Some(n) => self.node(n, data, depth + 1),
                None => self.node(self.root, data, depth + 1),
            },
            (Rule::All(ns), _) => ns.iter().try_for_each(|n| self.node(n, data, depth + 1)),
            (Rule::Any(ns), _) => {
                let mut why = String::new();
                for n in ns {
                    match self.node(n, data, depth + 1) {
                        Ok(()) => return Ok(()),
                        Err(e) if why.is_empty() => why = e,
                        Err(e) => why = format!("{why}, and {e}"),
                    }
                }
                Err(why)
            }
            (Rule::ExactlyOne(ns), _) => match ns.iter().filter(|n| self.fits(n, data, depth)).count() {
                1 => Ok(()),
                0 => Err("matches none of the alternatives".into()),
                n => Err(format!("fits {n} of the alternatives, expected one")),
            },
            (Rule::Not(n), _) => match self.fits(n, data, depth) {
                true => Err("fits what it must not".into()),
                false => Ok(()),
            },
            (Rule::If(parts), _) => {
                let which = if self.fits(&parts[0], data, depth) { 1 } else { 2 };
                self.node(&parts[which], data, depth + 1)
            }
            (Rule::Value(c, n), Data::Num(x)) if !c.holds(x, n) => {
                Err(format!("value is {x}, expected {} {n}", c.as_str()))
            }
            (Rule::MultipleOf(n), Data::Num(x)) => match x.div(n) {
                Ok(q) if q.floor() == q => Ok(()),
                _ => Err(format!("{x} is not a multiple of {n}")),
            },
            (Rule::Decimal, Data::Num(x)) if !x.is_decimal() => {
                Err(format!("{x} is not a decimal number such as 12.5; round it first"))
            }
            (Rule::Count(kind, c, n), _) => {
                let found = match (kind, data) {
                    (SchemaType::Str, Data::Str(s)) => s.chars().count(),
                    (SchemaType::List, Data::List(l)) => l.len(),
                    (SchemaType::Record, Data::Record(r)) => r.len(),
                    _ => return Ok(()),
                };
                match c.holds(&Num::from(found as i64), n) {
                    true => Ok(()),
                    false => Err(format!("length is {found}, expected {} {n}", c.as_str())),
                }
            }
            (Rule::Pattern(r), Data::Str(s)) => match matches(r, s) {
                true => Ok(()),
                false => Err(format!("does not match `{r}`")),
            },
            (Rule::Prefix(ns), Data::List(items)) => ns
                .iter()
                .zip(items.iter())
                .enumerate()
                .try_for_each(|(i, (n, d))| self.node(n, d, depth + 1).map_err(at(format!("item {i}")))),
            (Rule::Items(first, n), Data::List(items)) => items
                .iter()
                .enumerate()
                .skip(*first)
                .try_for_each(|(i, d)| self.node(n, d, depth + 1).map_err(at(format!("item {i}")))),
            (Rule::Contains(n, least, most), Data::List(items)) => {
                let found = items.iter().filter(|d| self.fits(n, d, depth)).count() as u64;
                if found >= *least && most.is_none_or(|m| found <= m) {
                    return Ok(());
                }
                let wanted = match most {
                    Some(m) => format!("{least} to {m}"),
                    None => format!("at least {least}"),
                };
                Err(format!("{found} items match `contains`, expected {wanted}"))
            }
            (Rule::Unique, Data::List(items)) => {
                for (i, d) in items.iter().enumerate() {
                    // Each comparison counts, for there are quadratically many.
                    let left = self.steps.get().checked_sub(i as u32).ok_or("too large for this schema")?;
                    self.steps.set(left);
                    if let Some(j) = items[..i].iter().position(|e| same(e, d)) {
                        return Err(format!("items {j} and {i} are equal"));
                    }
                }
                Ok(())
            }
            (Rule::Property(name, n), Data::Record(_)) => match data.field(name) {
                Some(d) => self.node(n, d, depth + 1).map_err(at(name.to_string())),
                None => Ok(()),
            },
            (Rule::PatternProperty(r, n), Data::Record(fields)) => fields
                .iter()
                .filter(|(name, _)| matches(r, name))
                .try_for_each(|(name, d)| self.node(n, d, depth + 1).map_err(at(name.to_string()))),
            (Rule::Others { names, patterns, rule }, Data::Record(fields)) => fields
                .iter()
                .filter(|(name, _)| !names.contains(name) && !patterns.iter().any(|r| matches(r, name)))
                .try_for_each(|(name, d)| match rule.never {
                    true => Err(format!("the field `{name}` is not expected")),
                    false => self.node(rule, d, depth + 1).map_err(at(name.to_string())),
                }),
            (Rule::Names(n), Data::Record(fields)) => fields.iter().try_for_each(|(name, _)| {
                self.node(n, &Data::str(&**name), depth + 1).map_err(at(format!("the name `{name}`")))
            }),
            (Rule::Required(name), Data::Record(_)) if data.field(name).is_none() => {
                Err(format!("has no field `{name}`"))
            }
            (Rule::Dependent(name, others), Data::Record(_)) if data.field(name).is_some() => {
                match others.iter().find(|n| data.field(n).is_none()) {
                    Some(missing) => Err(format!("has `{name}`, but no field `{missing}`")),
                    None => Ok(()),
                }
            }
            // Keywords about another kind are ignored.
            _ => Ok(()),
        }
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    crate::pred::regex(pattern).is_some_and(|r| r.is_match(text))
}

fn brief(data: &Data) -> String {
    match data {
        Data::Str(_) | Data::List(_) | Data::Record(_) | Data::Pair(_) | Data::Tag(..) => data.kind().into(),
        other => other.to_json().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Data {
        Data::from_json(&serde_json::from_str(text).unwrap()).unwrap()
    }

    /// Each keyword accepts and rejects the values that JSON Schema says.
    #[test]
    fn keywords_mean_what_json_schema_says() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("true", &["1", "null"], &[]),
            ("false", &[], &["1", "null"]),
            ("{}", &["1", "[]"], &[]),
            (r#"{"type": "integer"}"#, &["1", "2.0"], &["1.5", "\"1\""]),
            (r#"{"type": ["string", "null"]}"#, &["\"\"", "null"], &["0"]),
            (r#"{"enum": [1, "a", {"b": 2, "c": 3}]}"#, &["1", "\"a\"", r#"{"c": 3, "b": 2}"#], &["2"]),
            (r#"{"const": null}"#, &["null"], &["0"]),
            (r#"{"minimum": 2, "exclusiveMaximum": 4}"#, &["2", "3.9", "\"x\""], &["1", "4"]),
            (r#"{"multipleOf": 0.1}"#, &["0.3", "7"], &["0.25"]),
            (r#"{"format": "decimal"}"#, &["0.3", "-7", "1e-3", "\"1/3\""], &[]),
            (r#"{"minLength": 2, "maxLength": 3}"#, &["\"éé\"", "5"], &["\"a\"", "\"abcd\""]),
            (r#"{"pattern": "^a+$"}"#, &["\"aa\"", "1"], &["\"ab\""]),
            (
                r#"{"prefixItems": [{"const": 1}], "items": {"type": "string"}}"#,
                &["[]", "[1, \"a\"]"],
                &["[2]", "[1, 2]"],
            ),
            (r#"{"items": false}"#, &["[]"], &["[1]"]),
            (r#"{"contains": {"minimum": 5}, "maxContains": 2}"#, &["[5]", "[6, 7]"], &["[]", "[5, 6, 7]"]),
            (r#"{"contains": {"minimum": 5}, "minContains": 0}"#, &["[]"], &[]),
            (r#"{"uniqueItems": true}"#, &["[1, 2]"], &["[1, 1.0]"]),
            (
                r#"{"required": ["a"], "properties": {"a": {"type": "number"}}}"#,
                &[r#"{"a": 1, "b": 2}"#, "3"],
                &["{}", r#"{"a": ""}"#],
            ),
            (
                r#"{"properties": {"a": {}}, "patternProperties": {"^x": {"type": "number"}}, "additionalProperties": false}"#,
                &[r#"{"a": 1, "x1": 2}"#],
                &[r#"{"b": 1}"#, r#"{"x1": "s"}"#],
            ),
            (r#"{"propertyNames": {"maxLength": 1}}"#, &[r#"{"a": 1}"#], &[r#"{"ab": 1}"#]),
            (r#"{"dependentRequired": {"a": ["b"]}}"#, &["{}", r#"{"a": 1, "b": 2}"#], &[r#"{"a": 1}"#]),
            (r#"{"minProperties": 1, "maxProperties": 1}"#, &[r#"{"a": 1}"#], &["{}", r#"{"a": 1, "b": 1}"#]),
            (r#"{"allOf": [{"minimum": 1}, {"maximum": 2}]}"#, &["1"], &["0", "3"]),
            (r#"{"anyOf": [{"const": 1}, {"const": 2}]}"#, &["1", "2"], &["3"]),
            (r#"{"oneOf": [{"minimum": 1}, {"maximum": 2}]}"#, &["0", "3"], &["1"]),
            (r#"{"not": {"type": "string"}}"#, &["1"], &["\"\""]),
            (
                r#"{"if": {"minimum": 10}, "then": {"multipleOf": 10}, "else": {"maximum": 5}}"#,
                &["20", "3"],
                &["25", "7"],
            ),
            (
                r##"{"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}"##,
                &["[[], [[]]]"],
                &["[[1]]"],
            ),
        ];
        for (schema, good, bad) in cases {
            let schema = Schema::new(&read(schema)).unwrap();
            let (necessary, exact) = schema.necessary();
            for (texts, want) in [(good, true), (bad, false)] {
                for text in texts.iter() {
                    let d = read(text);
                    assert_eq!(schema.check(&d).is_ok(), want, "{schema:?} {text}");
                    let holds = necessary.holds(&d).is_ok();
                    assert!(holds || !want, "necessary: {schema:?} {text} {necessary}");
                    assert!(!exact || holds == want, "exact: {schema:?} {text} {necessary}");
                }
            }
        }
    }

    #[test]
    fn invalid_schemas_are_rejected_with_location() {
        let cases = [
            (r#"{"properties": {"a": {"type": "text"}}}"#, "/properties/a/type: unknown type `text`"),
            (r#"{"items": [1]}"#, "/items: a schema is an object or a boolean"),
            (
                r#"{"unevaluatedProperties": false}"#,
                ": the keyword `unevaluatedProperties` is not known here",
            ),
            (r#"{"pattern": "("}"#, "/pattern: `(` is not a usable regular expression"),
            (r##"{"$ref": "#/$defs/a"}"##, "`$ref` names `#/$defs/a`, which is not there"),
            (r#"{"minLength": -1}"#, "/minLength: expected a natural number"),
        ];
        for (schema, why) in cases {
            assert_eq!(Schema::new(&read(schema)).map(|_| ()), Err(why.to_string()));
        }
    }

    #[test]
    fn hostile_schemas_end() {
        let round = Schema::new(&read(r##"{"$ref": "#"}"##)).unwrap();
        assert!(round.check(&Data::Null).is_err());
        let twice = r##"{"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}"##;
        let text = format!(r##"{{"$defs": {{"a": {twice}}}, "$ref": "#/$defs/a"}}"##);
        assert!(Schema::new(&read(&text)).unwrap().check(&Data::Null).is_err());
        let many = Data::list((0..100_000).map(|i| Data::Num(Num::from(i))));
        assert!(Schema::new(&read(r#"{"uniqueItems": true}"#)).unwrap().check(&many).is_err());
    }
}
