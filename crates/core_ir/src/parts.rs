//! Labels of parts of a tool's result: `fields` of a tool.
//!
//! Entry points: [`ResultParts`], the rules of a declaration; [`ResultParts::root`], which walks them beside
//! a value.
//!
//! Invariant: at most one rule is about a part, so what a rule says does not depend on their order.
//! Invariant: a part is in its containers. A rule never lowers what a container has.
//!
//! Source: `docs/calculus.md` §10, parts of a result.

use crate::{Data, LabelSpec, Name, Type};
use std::fmt;
use std::fmt::Write as _;

/// The most steps of a path.
pub const MAX_PATH_STEPS: usize = 32;

/// A step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathStep {
    /// `name`: the field of a record.
    Field(Name),
    /// `{*}`: a field of a record that no rule names here.
    Values,
    /// `[]`: an item of a list.
    Items,
}

/// A path to parts of a result: `[].body`, `{*}.title`. The empty path is the result itself.
///
/// `{keys}` is which keys a record has, which is known to whoever may see the record, so `people{keys}` is
/// the path `people`.
///
/// # Examples
/// ```
/// use core_ir::{PartPath, PathStep};
/// let path = PartPath::parse("[].body").unwrap();
/// assert_eq!(path.steps(), [PathStep::Items, PathStep::Field("body".into())]);
/// assert_eq!(path.to_string(), "[].body");
/// assert_eq!(PartPath::parse("people{keys}"), PartPath::parse("people"));
/// assert!(PartPath::parse("[]body").is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartPath(Box<[PathStep]>);

impl PartPath {
    /// The path of these steps, if they aren't too many.
    pub fn new(steps: impl IntoIterator<Item = PathStep>) -> Option<PartPath> {
        let steps: Box<[PathStep]> = steps.into_iter().collect();
        (steps.len() <= MAX_PATH_STEPS).then_some(PartPath(steps))
    }

    /// The steps.
    pub fn steps(&self) -> &[PathStep] {
        &self.0
    }

    /// Reads a path; `None` if the text is none.
    pub fn parse(text: &str) -> Option<PartPath> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let dot = rest.strip_prefix('.').filter(|_| !steps.is_empty());
            if dot.unwrap_or(rest) == "{keys}" {
                break;
            }
            (rest, steps) = if let Some(after) = rest.strip_prefix("[]") {
                (after, pushed(steps, PathStep::Items))
            } else if let Some(after) = dot.unwrap_or(rest).strip_prefix("{*}") {
                (after, pushed(steps, PathStep::Values))
            } else {
                // A name stands at the beginning or after a point.
                let name = if steps.is_empty() { rest } else { dot? };
                let (name, after) = field_name(name)?;
                (after, pushed(steps, PathStep::Field(name)))
            };
        }
        PartPath::new(steps)
    }

    /// The path to the record that the last step leads from, if it leads to a field.
    pub fn record(&self) -> Option<PartPath> {
        match self.0.split_last() {
            Some((PathStep::Field(_) | PathStep::Values, before)) => Some(PartPath(before.into())),
            _ => None,
        }
    }

    /// Checks that data of a type may have such a part.
    ///
    /// # Errors
    /// The index of the first step that leads nowhere.
    pub fn fits(&self, ty: &Type) -> Result<(), usize> {
        let mut types = vec![ty];
        for (i, step) in self.0.iter().enumerate() {
            types = types.into_iter().flat_map(|t| parts_of(t, step)).collect();
            if types.is_empty() {
                return Err(i);
            }
        }
        Ok(())
    }
}

fn pushed(mut steps: Vec<PathStep>, step: PathStep) -> Vec<PathStep> {
    steps.push(step);
    steps
}

/// The types that a step leads to; none if it leads nowhere.
fn parts_of<'t>(mut ty: &'t Type, step: &PathStep) -> Vec<&'t Type> {
    loop {
        return match (ty, step) {
            (Type::Option(inner), _) => {
                ty = inner;
                continue;
            }
            (Type::Refined(inner), _) => {
                ty = &inner.0;
                continue;
            }
            (Type::Dyn, _) => vec![ty],
            (Type::List(item), PathStep::Items) => vec![item],
            (Type::Record(fields), PathStep::Field(name)) => {
                fields.iter().filter(|(n, _)| n == name).map(|(_, t)| t).collect()
            }
            // There may be further fields than the type has.
            (Type::Record(fields), PathStep::Values) if fields.is_empty() => vec![&Type::Dyn],
            (Type::Record(fields), PathStep::Values) => fields.iter().map(|(_, t)| t).collect(),
            _ => Vec::new(),
        };
    }
}

/// The name at the beginning of a text, and what follows it.
fn field_name(text: &str) -> Option<(Name, &str)> {
    if text.starts_with('"') {
        let mut texts = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let name = texts.next()?.ok()?;
        return Some((name.into(), &text[texts.byte_offset()..]));
    }
    let end = text.find(['.', '[', '{', '"']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (!name.is_empty() && !name.contains([']', '}', '@', '$', '+'])).then(|| (name.into(), rest))
}

impl fmt::Display for PartPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Items => f.write_str("[]")?,
                PathStep::Values => f.write_str("{*}")?,
                PathStep::Field(name) => {
                    if i > 0 {
                        f.write_char('.')?;
                    }
                    match field_name(name) {
                        Some((plain, "")) if plain == *name => f.write_str(name)?,
                        _ => write!(f, "{}", serde_json::Value::from(&**name))?,
                    }
                }
            }
        }
        Ok(())
    }
}

/// A value that names a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LabelName {
    /// `@field`: a field of the same record, whose text names a principal.
    Field(Name),
    /// `$argument`: an argument of the call, whose text names a place.
    Argument(Name),
}

impl LabelName {
    /// Reads `@field` or `$argument`.
    pub fn parse(text: &str) -> Option<LabelName> {
        match (text.strip_prefix('@'), text.strip_prefix('$')) {
            (Some(field), _) if !field.is_empty() => Some(LabelName::Field(field.into())),
            (_, Some(argument)) if !argument.is_empty() => Some(LabelName::Argument(argument.into())),
            _ => None,
        }
    }
}

impl fmt::Display for LabelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabelName::Field(name) => write!(f, "@{name}"),
            LabelName::Argument(name) => write!(f, "${name}"),
        }
    }
}

/// A rule: the label of the parts at a path.
///
/// The label of such a part is at least that of what it is in, the one that is stated here, and what the
/// named values say. Of a path that ends in `{*}` the fields that it names are excepted from what they say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartLabel {
    /// The parts.
    pub path: PartPath,
    /// The label that is stated.
    pub label: LabelSpec,
    /// Values that name sources. Each of them raises the label.
    pub source: Box<[LabelName]>,
    /// Values that name readers. All of those that they name may read it.
    pub readers: Box<[LabelName]>,
}

impl PartLabel {
    /// A stated label.
    pub fn stated(path: PartPath, label: LabelSpec) -> PartLabel {
        PartLabel { path, label, source: Box::default(), readers: Box::default() }
    }

    /// Returns true if a field names the label, so that it is known only when the result is.
    pub fn names_fields(&self) -> bool {
        self.source.iter().chain(&self.readers).any(|n| matches!(n, LabelName::Field(_)))
    }

    /// Returns true if no value names the label.
    pub fn is_stated(&self) -> bool {
        self.source.is_empty() && self.readers.is_empty()
    }

    /// The fields of the same record that name the label of a field of this name.
    pub fn fields<'a>(&'a self, own: &'a Name) -> impl Iterator<Item = &'a Name> {
        let all = || {
            self.source.iter().chain(&self.readers).filter_map(|n| match n {
                LabelName::Field(name) => Some(name),
                LabelName::Argument(_) => None,
            })
        };
        let excepted = self.excepts(own);
        all().filter(move |_| !excepted)
    }

    /// Returns whether a field of a record is excepted from what is named: it names the label of the others.
    pub fn excepts(&self, own: &Name) -> bool {
        let names = |n: &LabelName| *n == LabelName::Field(own.clone());
        self.path.steps().last() == Some(&PathStep::Values)
            && self.source.iter().chain(&self.readers).any(names)
    }

    fn to_data(&self) -> Data {
        let names = |names: &[LabelName]| Data::list(names.iter().map(|n| Data::str(n.to_string())));
        let mut fields = vec![("path".into(), Data::str(self.path.to_string()))];
        match &self.label {
            LabelSpec::Axes { untrusted, secret } => {
                fields.push(("untrusted".into(), Data::Bool(*untrusted)));
                fields.push(("secret".into(), Data::Bool(*secret)));
            }
            LabelSpec::Exact(data) => fields.push(("exact".into(), data.clone())),
        }
        for (key, values) in [("source", &self.source), ("readers", &self.readers)] {
            if !values.is_empty() {
                fields.push((key.into(), names(values)));
            }
        }
        Data::record(fields)
    }

    fn from_data(data: &Data) -> Option<PartLabel> {
        let Data::Record(fields) = data else { return None };
        let mut known = 1;
        let mut field = |name: &str| data.field(name).inspect(|_| known += 1);
        let label = match field("exact") {
            Some(data) => LabelSpec::Exact(data.clone()),
            None => match (field("untrusted")?, field("secret")?) {
                (Data::Bool(untrusted), Data::Bool(secret)) => {
                    LabelSpec::Axes { untrusted: *untrusted, secret: *secret }
                }
                _ => return None,
            },
        };
        let mut names = |key: &str| match field(key) {
            None => Some(Box::default()),
            Some(Data::List(names)) => names.iter().map(|n| LabelName::parse(n.as_str()?)).collect(),
            Some(_) => None,
        };
        let (source, readers) = (names("source")?, names("readers")?);
        let path = PartPath::parse(data.field("path")?.as_str()?)?;
        (fields.len() == known).then_some(PartLabel { path, label, source, readers })
    }
}

/// The labels of parts of a tool's result. Without rules, the result has one label.
///
/// # Examples
/// ```
/// use core_ir::{LabelSpec, PartLabel, PartPath, ResultParts};
/// let rule = |path: &str, label| PartLabel::stated(PartPath::parse(path).unwrap(), label);
/// let untrusted = LabelSpec::Axes { untrusted: true, secret: false };
/// let parts = ResultParts::new([rule("[].{*}", untrusted), rule("[].id", LabelSpec::BOTTOM)]);
/// let item = parts.root().items();
/// assert_eq!(item.field(&"id".into()).rule().unwrap().label, LabelSpec::BOTTOM);
/// // A rule that names a field is more precise than one about all.
/// assert_ne!(item.field(&"body".into()).rule().unwrap().label, LabelSpec::BOTTOM);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResultParts(Box<[PartLabel]>);

impl ResultParts {
    /// The rules, of which the last one about a path counts.
    pub fn new(rules: impl IntoIterator<Item = PartLabel>) -> ResultParts {
        let mut all: Vec<PartLabel> = Vec::new();
        for rule in rules {
            match all.iter_mut().find(|r| r.path == rule.path) {
                Some(old) => *old = rule,
                None => all.push(rule),
            }
        }
        // The most precise first: `PathStep::Field` is before `PathStep::Values`.
        all.sort_by(|a, b| a.path.cmp(&b.path));
        ResultParts(all.into())
    }

    /// The rules that only state a label for a part, each with the labels of what the part is in, as far as
    /// rules are about it. `None` is a label that is known in a run only.
    pub fn stated(&self) -> impl Iterator<Item = (&PartLabel, Vec<Option<&LabelSpec>>)> {
        fn label(rule: &PartLabel) -> Option<&LabelSpec> {
            rule.is_stated().then_some(&rule.label)
        }
        self.0.iter().filter(|r| !r.path.steps().is_empty() && label(r).is_some()).map(|rule| {
            let mut at = self.root();
            let mut containers = Vec::new();
            for step in rule.path.steps() {
                containers.extend(at.rule().map(label));
                at = match step {
                    PathStep::Items => at.items(),
                    PathStep::Values => at.others(),
                    PathStep::Field(name) => at.field(name),
                };
            }
            (rule, containers)
        })
    }

    /// Returns true if the result has one label.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rules, those of a named field before those of all fields.
    pub fn iter(&self) -> impl Iterator<Item = &PartLabel> {
        self.0.iter()
    }

    /// The rules about the result and its parts.
    pub fn root(&self) -> PartRules<'_> {
        PartRules { rules: self.0.iter().collect(), depth: 0 }
    }

    /// The rules as data.
    pub fn to_data(&self) -> Data {
        Data::list(self.0.iter().map(PartLabel::to_data))
    }

    /// Reads [`ResultParts::to_data`].
    ///
    /// # Examples
    /// ```
    /// use core_ir::{LabelSpec, PartLabel, PartPath, ResultParts};
    /// let path = PartPath::parse("\"odd name\"[].body").unwrap();
    /// let parts = ResultParts::new([PartLabel::stated(path, LabelSpec::TOP)]);
    /// assert_eq!(ResultParts::from_data(&parts.to_data()), Some(parts));
    /// ```
    pub fn from_data(data: &Data) -> Option<ResultParts> {
        let Data::List(rules) = data else { return None };
        Some(ResultParts::new(rules.iter().map(PartLabel::from_data).collect::<Option<Vec<_>>>()?))
    }

    /// A field whose label depends on itself, with the path of its rule, if there is one.
    pub fn cycle(&self) -> Option<(&PartLabel, Name)> {
        self.0.iter().find_map(|rule| {
            let Some(PathStep::Field(own)) = rule.path.steps().last() else { return None };
            let record = rule.path.record()?;
            let (mut seen, mut rest) = (vec![own], vec![(own, rule)]);
            while let Some((name, rule)) = rest.pop() {
                for on in rule.fields(name) {
                    if on == own {
                        return Some((rule, own.clone()));
                    }
                    if seen.contains(&on) {
                        continue;
                    }
                    seen.push(on);
                    // The rule about the field: the one that names it, or that of all fields.
                    let steps = |last| record.steps().iter().cloned().chain([last]);
                    let named = PartPath(steps(PathStep::Field(on.clone())).collect());
                    let all = PartPath(steps(PathStep::Values).collect());
                    let about = |path: &PartPath| self.0.iter().find(|r| r.path == *path);
                    rest.extend(about(&named).or_else(|| about(&all)).map(|r| (on, r)));
                }
            }
            None
        })
    }
}

/// The rules about a part of a result, and about its parts.
#[derive(Clone, Debug)]
pub struct PartRules<'p> {
    /// The rules whose paths begin with the way to the part, the most precise first.
    rules: Vec<&'p PartLabel>,
    /// Number of steps to the part.
    depth: usize,
}

impl<'p> PartRules<'p> {
    /// The rule about the part itself.
    pub fn rule(&self) -> Option<&'p PartLabel> {
        self.rules.iter().find(|r| r.path.steps().len() == self.depth).copied()
    }

    /// Number of steps to the part.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Rules about the part or about parts of it, the most precise first.
    pub fn iter(&self) -> impl Iterator<Item = &'p PartLabel> {
        self.rules.iter().copied()
    }

    /// Returns true if nothing is said of the part and its parts.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules about each item of the list that the part is.
    pub fn items(&self) -> PartRules<'p> {
        self.step(|step| *step == PathStep::Items)
    }

    /// The rules about a field of the record that the part is.
    pub fn field(&self, name: &Name) -> PartRules<'p> {
        self.step(|step| match step {
            PathStep::Field(n) => n == name,
            PathStep::Values => true,
            PathStep::Items => false,
        })
    }

    /// The rules about a field that no rule names here.
    pub fn others(&self) -> PartRules<'p> {
        self.step(|step| *step == PathStep::Values)
    }

    /// The fields that rules name here.
    pub fn named(&self) -> impl Iterator<Item = &'p Name> {
        let mut last = None;
        // Rules of one field are neighbors as far as they have the way here in common; others may repeat it.
        self.rules.iter().filter_map(move |r| match r.path.steps().get(self.depth) {
            Some(PathStep::Field(name)) if last != Some(name) => {
                last = Some(name);
                Some(name)
            }
            _ => None,
        })
    }

    fn step(&self, matches: impl Fn(&PathStep) -> bool) -> PartRules<'p> {
        let depth = self.depth;
        let rules = self.rules.iter().filter(|r| r.path.steps().get(depth).is_some_and(&matches));
        PartRules { rules: rules.copied().collect(), depth: depth + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> PartPath {
        PartPath::parse(text).unwrap_or_else(|| panic!("{text} is a path"))
    }

    fn rule(text: &str) -> PartLabel {
        PartLabel::stated(path(text), LabelSpec::BOTTOM)
    }

    fn names(names: &[&str]) -> Box<[LabelName]> {
        names.iter().map(|n| LabelName::parse(n).expect("a name of a label")).collect()
    }

    #[test]
    fn paths_are_read_and_written() {
        for text in ["", "[]", "[].body", "{*}", "{*}.title", "a.b[][].c", "a{*}[]", "\"a.b\".\"\""] {
            assert_eq!(path(text).to_string(), text);
        }
        assert_eq!(path("a.{*}"), path("a{*}"));
        assert_eq!(path("{keys}"), path(""));
        for wrong in ["[", "[]a", ".a", "a.", "a..b", "{keys}.a", "{x}", "a]", "@a", "\"a"] {
            assert_eq!(PartPath::parse(wrong), None, "{wrong}");
        }
        assert_eq!(PartPath::parse(&"[]".repeat(MAX_PATH_STEPS + 1)), None);
    }

    #[test]
    fn a_path_fits_a_type_that_has_such_parts() {
        let mail = Type::record([("id".into(), Type::Str), ("body".into(), Type::option(Type::Str))]);
        let mails = Type::option(Type::list(mail));
        assert_eq!(path("[].body").fits(&mails), Ok(()));
        assert_eq!(path("[]{*}").fits(&mails), Ok(()));
        assert_eq!(path("[].text").fits(&mails), Err(1));
        assert_eq!(path("id").fits(&mails), Err(0));
        assert_eq!(path("[].id.x").fits(&mails), Err(2));
        assert_eq!(path("a.b[]{*}").fits(&Type::Dyn), Ok(()));
    }

    #[test]
    fn a_rule_that_names_a_field_is_more_precise() {
        let parts = ResultParts::new([rule("{*}.a"), rule("x{*}"), rule("x.b"), rule("{*}")]);
        fn field<'p>(rules: &PartRules<'p>, name: &str) -> PartRules<'p> {
            rules.field(&name.into())
        }
        let found =
            |of: &str, part: &str| field(&field(&parts.root(), of), part).rule().map(|r| r.path.to_string());
        assert_eq!(found("x", "a").as_deref(), Some("x{*}"));
        assert_eq!(found("x", "b").as_deref(), Some("x.b"));
        assert_eq!(found("y", "a").as_deref(), Some("{*}.a"));
        assert_eq!(found("y", "b"), None);
        assert_eq!(field(&parts.root(), "x").rule().map(|r| r.path.to_string()).as_deref(), Some("{*}"));
    }

    #[test]
    fn a_label_that_depends_on_itself_is_found() {
        let by = |text: &str, on: &[&str]| PartLabel { source: names(on), ..rule(text) };
        let cycle = |rules: Vec<PartLabel>| ResultParts::new(rules).cycle().map(|(_, n)| n.to_string());
        assert_eq!(cycle(vec![by("[].a", &["@b"]), by("[].b", &["@c"]), rule("[].c")]), None);
        assert_eq!(cycle(vec![by("[].a", &["@b"]), by("[].b", &["@a"])]).as_deref(), Some("a"));
        assert_eq!(cycle(vec![by("a", &["@a"])]).as_deref(), Some("a"));
        // The fields that a rule about all of them names are excepted.
        assert_eq!(cycle(vec![by("[]{*}", &["@a", "@b"])]), None);
        assert_eq!(cycle(vec![by("[]{*}", &["@a"]), by("[].a", &["@b"])]).as_deref(), Some("a"));
        // Fields of other records have the same names.
        assert_eq!(cycle(vec![by("x.a", &["@b"]), by("y.b", &["@a"])]), None);
    }

    #[test]
    fn rules_are_data() {
        let parts = ResultParts::new([
            PartLabel { source: names(&["@from", "$path"]), readers: names(&["@to"]), ..rule("[].body") },
            PartLabel::stated(path("[]"), LabelSpec::Exact(Data::list([Data::str("U")]))),
        ]);
        assert_eq!(ResultParts::from_data(&parts.to_data()), Some(parts));
        let wrong = Data::list([Data::record([("path".into(), Data::str("a"))])]);
        assert_eq!(ResultParts::from_data(&wrong), None);
    }
}
