//! Types of the calculus and the subtype relation.

use crate::{Data, EffectRow, Name, Pred};
use diagnostics::clip;
use serde_json::Value as Json;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A declared enumeration. Its values are strings.
///
/// Invariant: descriptions of variants are told to models and decide nothing else. Two enumerations that
/// differ in them alone are equal.
/// Invariant: one without a name is the type of some literals, `"low" | "high"`. It is a supertype of every
/// enumeration of some of its values.
#[derive(Clone, Debug)]
pub struct EnumType {
    /// The declared name; empty for a type of literals.
    pub name: Name,
    /// The variants in the order of their declaration; never empty, no duplicates.
    pub variants: Vec<Name>,
    /// Descriptions of the first variants, `None` for one without. Shorter than `variants` where the last
    /// ones have none.
    descriptions: Vec<Option<Name>>,
}

impl EnumType {
    /// Creates an enumeration whose variants have no descriptions.
    pub fn new(name: impl Into<Name>, variants: Vec<Name>) -> EnumType {
        EnumType { name: name.into(), variants, descriptions: Vec::new() }
    }

    /// Creates the type of these literals. Their order is that in which they were written, and decides
    /// nothing.
    pub fn literals(values: Vec<Name>) -> EnumType {
        EnumType::new("", values)
    }

    /// Returns true for a type of literals, which has no name.
    pub fn is_literal(&self) -> bool {
        self.name.is_empty()
    }

    /// Returns true if each value of this enumeration is one of `other`.
    fn is_within(&self, other: &EnumType) -> bool {
        self.variants.iter().all(|v| other.variants.contains(v))
    }

    /// The enumeration with descriptions of its variants, in their order. Blank ones count as none.
    #[must_use]
    pub fn described(self, descriptions: impl IntoIterator<Item = Option<Name>>) -> EnumType {
        let descriptions = descriptions.into_iter().map(|d| d.filter(|d| !d.trim().is_empty()));
        EnumType { descriptions: descriptions.take(self.variants.len()).collect(), ..self }
    }

    /// Returns the variants with their descriptions.
    pub fn described_variants(&self) -> impl Iterator<Item = (&Name, Option<&Name>)> {
        let descriptions = self.descriptions.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        self.variants.iter().zip(descriptions)
    }

    /// Returns true if some variant has a description.
    pub fn is_described(&self) -> bool {
        self.descriptions.iter().any(Option::is_some)
    }
}

impl PartialEq for EnumType {
    fn eq(&self, other: &EnumType) -> bool {
        self.name == other.name && self.variants == other.variants
    }
}

impl Eq for EnumType {}

impl Hash for EnumType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.variants.hash(state);
    }
}

/// One of some types that mention each other.
///
/// Invariant: each body is a list, map, record, variant or pair, so that a value is looked at before a type
/// is met again. Each [`Type::Var`] in a body, outside of other recursive types, names one of the bodies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecType {
    name: Name,
    bodies: Arc<[(Name, Type)]>,
}

impl RecType {
    /// The type `name` of some types that mention each other as [`Type::Var`]; none if they break the
    /// invariant.
    pub fn new(name: Name, bodies: Arc<[(Name, Type)]>) -> Option<RecType> {
        let is_one = |n: &Name| bodies.iter().any(|(m, _)| m == n);
        let is_sound = |body: &Type| {
            let constructs = matches!(
                body,
                Type::List(_) | Type::Map(_) | Type::Record(_) | Type::Variant(_) | Type::Pair(_)
            );
            constructs && body.variables_are(&is_one)
        };
        let all = is_one(&name) && bodies.iter().all(|(_, body)| is_sound(body));
        all.then_some(RecType { name, bodies })
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// All of the types that mention each other, with their bodies.
    pub fn bodies(&self) -> &Arc<[(Name, Type)]> {
        &self.bodies
    }

    /// The body, in which a [`Type::Var`] is one of the types of [`RecType::bodies`].
    fn body(&self) -> &Type {
        // INVARIANT: the name is one of the bodies.
        self.bodies.iter().find(|(n, _)| *n == self.name).map_or(&Type::Dyn, |(_, body)| body)
    }

    /// Another one of the types that mention each other.
    fn sibling(&self, name: &Name) -> Type {
        Type::Rec(Arc::new(RecType { name: name.clone(), bodies: self.bodies.clone() }))
    }

    /// The body, with closed types in place of variables.
    ///
    /// # Examples
    /// ```
    /// use core_ir::{RecType, Type};
    /// let body = Type::record([("replies".into(), Type::list(Type::Var("Comment".into())))]);
    /// let comment = RecType::new("Comment".into(), [("Comment".into(), body)].into()).unwrap();
    /// let replies = Type::list(Type::Rec(comment.clone().into()));
    /// assert_eq!(comment.unfold(), Type::record([("replies".into(), replies)]));
    /// ```
    pub fn unfold(&self) -> Type {
        self.body().closed(&|name| self.sibling(name))
    }
}

/// A type. Source: `docs/calculus.md` §4; seed 000 Definition 3.3; seed 004 §1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Not known before the run; consistent with every type and checked where it is used.
    Dyn,
    /// Text.
    Str,
    /// An exact rational number.
    Num,
    /// `true` or `false`.
    Bool,
    /// Only `null`.
    Null,
    /// A sequence.
    List(Arc<Type>),
    /// A value or `null`.
    Option(Arc<Type>),
    /// An object with at least these fields.
    Record(Arc<[(Name, Type)]>),
    /// An object with any fields: each name is of the first type, a subtype of `Str`, and each value of the
    /// second.
    Map(Arc<(Type, Type)>),
    /// One of the declared strings.
    Enum(Arc<EnumType>),
    /// A tag with a payload; a tag without payload has payload type `Null`.
    Variant(Arc<[(Name, Type)]>),
    /// A pair.
    Pair(Arc<(Type, Type)>),
    /// A function with what applying it may do.
    Fun(Arc<(Type, EffectRow, Type)>),
    /// The values of the base type that satisfy the predicate.
    Refined(Arc<(Type, Pred)>),
    /// A type that mentions itself.
    Rec(Arc<RecType>),
    /// In the body of a recursive type: it, or one that it mentions and that mentions it.
    Var(Name),
}

impl Type {
    /// The type without the predicates that its values satisfy as a whole.
    ///
    /// # Examples
    /// ```
    /// use core_ir::{Pred, Type};
    /// let whole = Type::Refined(std::sync::Arc::new((Type::Num, Pred::integer())));
    /// assert_eq!(*whole.unrefined(), Type::Num);
    /// ```
    pub fn unrefined(&self) -> &Type {
        let mut ty = self;
        while let Type::Refined(r) = ty {
            ty = &r.0;
        }
        ty
    }

    /// `List τ`.
    pub fn list(item: Type) -> Type {
        Type::List(Arc::new(item))
    }

    /// `Option τ`.
    pub fn option(item: Type) -> Type {
        Type::Option(Arc::new(item))
    }

    /// `{f: τ, …}`.
    pub fn record(fields: impl IntoIterator<Item = (Name, Type)>) -> Type {
        Type::Record(fields.into_iter().collect())
    }

    /// `Map τ τ'`.
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    /// `τ →ε τ'`.
    pub fn fun(param: Type, effects: EffectRow, result: Type) -> Type {
        Type::Fun(Arc::new((param, effects, result)))
    }

    /// Returns true if each variable satisfies `known`. Those of a recursive type inside are its own.
    fn variables_are(&self, known: &dyn Fn(&Name) -> bool) -> bool {
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || match self {
            Type::Var(name) => known(name),
            Type::Dyn | Type::Str | Type::Num | Type::Bool | Type::Null | Type::Enum(_) | Type::Rec(_) => {
                true
            }
            Type::List(t) | Type::Option(t) => t.variables_are(known),
            Type::Record(parts) | Type::Variant(parts) => parts.iter().all(|(_, t)| t.variables_are(known)),
            Type::Map(p) | Type::Pair(p) => p.0.variables_are(known) && p.1.variables_are(known),
            Type::Fun(f) => f.0.variables_are(known) && f.2.variables_are(known),
            Type::Refined(r) => r.0.variables_are(known),
        })
    }

    /// The type with what `of` gives in place of each variable.
    fn closed(&self, of: &dyn Fn(&Name) -> Type) -> Type {
        let all = |parts: &[(Name, Type)]| parts.iter().map(|(n, t)| (n.clone(), t.closed(of))).collect();
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || match self {
            Type::Var(name) => of(name),
            Type::Dyn | Type::Str | Type::Num | Type::Bool | Type::Null | Type::Enum(_) | Type::Rec(_) => {
                self.clone()
            }
            Type::List(t) => Type::list(t.closed(of)),
            Type::Option(t) => Type::option(t.closed(of)),
            Type::Record(parts) => Type::Record(all(parts)),
            Type::Variant(parts) => Type::Variant(all(parts)),
            Type::Map(p) => Type::map(p.0.closed(of), p.1.closed(of)),
            Type::Pair(p) => Type::Pair(Arc::new((p.0.closed(of), p.1.closed(of)))),
            Type::Fun(f) => Type::fun(f.0.closed(of), f.1.clone(), f.2.closed(of)),
            Type::Refined(r) => Type::Refined(Arc::new((r.0.closed(of), r.1.clone()))),
        })
    }

    /// Returns true if some value of the type is, or contains, a record.
    pub fn may_hold_records(&self) -> bool {
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || match self {
            Type::Dyn | Type::Record(_) | Type::Map(_) => true,
            Type::Str | Type::Num | Type::Bool | Type::Null | Type::Enum(_) | Type::Fun(_) | Type::Var(_) => {
                false
            }
            Type::Rec(r) => r.bodies.iter().any(|(_, t)| t.may_hold_records()),
            Type::List(t) | Type::Option(t) => t.may_hold_records(),
            Type::Variant(tags) => tags.iter().any(|(_, t)| t.may_hold_records()),
            Type::Pair(p) => p.0.may_hold_records() || p.1.may_hold_records(),
            Type::Refined(r) => r.0.may_hold_records(),
        })
    }

    /// Returns true if a value of `self` may be used where `expected` is required ("actual is assignable to
    /// expected"). `Dyn` on either side is accepted; the machine checks it at run time.
    ///
    /// Source: seed 004 §2 Subtyping; `docs/calculus.md` §4 (refinements, functions).
    ///
    /// # Examples
    /// ```
    /// use core_ir::Type;
    /// assert!(Type::Null.is_subtype(&Type::option(Type::Str)));
    /// assert!(!Type::option(Type::Str).is_subtype(&Type::Str));
    /// ```
    pub fn is_subtype(&self, expected: &Type) -> bool {
        self.is_within(expected, &mut Vec::new())
    }

    /// The type with the body of a recursive type in its place.
    pub fn unfolded(&self) -> Type {
        match self {
            Type::Rec(r) => r.unfold(),
            other => other.clone(),
        }
    }

    /// `assumed` has the pairs with a recursive type that are being compared. Such a pair that is met again
    /// holds if nothing else speaks against it. There are finitely many, since unfolding makes no new types.
    fn is_within(&self, expected: &Type, assumed: &mut Vec<(Type, Type)>) -> bool {
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || self.is_subtype_inner(expected, assumed))
    }

    fn is_subtype_inner(&self, expected: &Type, assumed: &mut Vec<(Type, Type)>) -> bool {
        if self == expected {
            return true;
        }
        if let (Type::Rec(_), other) | (other, Type::Rec(_)) = (self, expected)
            && *other != Type::Dyn
        {
            let pair = (self.clone(), expected.clone());
            if assumed.contains(&pair) {
                return true;
            }
            assumed.push(pair);
            return self.unfolded().is_within(&expected.unfolded(), assumed);
        }
        match (self, expected) {
            (Type::Dyn, _) | (_, Type::Dyn) => true,
            (Type::Refined(r), Type::Refined(e)) if r.1 == e.1 => r.0.is_within(&e.0, assumed),
            (Type::Refined(r), e) => r.0.is_within(e, assumed),
            (Type::Enum(_), Type::Str) => true,
            (Type::Enum(a), Type::Enum(e)) => e.is_literal() && a.is_within(e),
            (Type::List(a), Type::List(e)) => a.is_within(e, assumed),
            (Type::Null, Type::Option(_)) => true,
            (Type::Option(a), Type::Option(e)) => a.is_within(e, assumed),
            (Type::Record(a), Type::Record(e)) => e
                .iter()
                .all(|(name, want)| a.iter().any(|(n, have)| n == name && have.is_within(want, assumed))),
            (Type::Variant(a), Type::Variant(e)) => a
                .iter()
                .all(|(name, have)| e.iter().any(|(n, want)| n == name && have.is_within(want, assumed))),
            (Type::Pair(a), Type::Pair(e)) | (Type::Map(a), Type::Map(e)) => {
                a.0.is_within(&e.0, assumed) && a.1.is_within(&e.1, assumed)
            }
            (Type::Fun(a), Type::Fun(e)) => {
                e.0.is_within(&a.0, assumed) && a.1.within(&e.1) && a.2.is_within(&e.2, assumed)
            }
            _ => false,
        }
    }

    /// Checks that `data` is of this type; on failure says where (a path such as `$.items[2].url`) and why.
    /// Extra record fields are accepted. Functions are not data, so no data has a function type.
    ///
    /// # Errors
    /// The path and the cause of the first mismatch, in the order of the type.
    ///
    /// # Examples
    /// ```
    /// use core_ir::{Data, Type};
    /// let t = Type::list(Type::Num);
    /// let d = Data::from_json(&serde_json::json!([1, "x"])).unwrap();
    /// assert_eq!(t.check(&d), Err(("$[1]".to_string(), "expected a number, found a string".to_string())));
    /// ```
    #[inline]
    pub fn check(&self, data: &Data) -> Result<(), (String, String)> {
        self.check_counting(data, &mut 0)
    }

    /// Checks like [`Type::check`]. Adds one to `steps` for each part, and for each sixteen names and bytes
    /// of text that are looked at.
    ///
    /// # Errors
    /// The errors of [`Type::check`].
    #[inline]
    pub fn check_counting(&self, data: &Data, steps: &mut u64) -> Result<(), (String, String)> {
        if self.is_plainly_of(data) { Ok(()) } else { self.check_all(data, steps) }
    }

    /// Returns true if data has the type.
    #[inline]
    pub fn admits(&self, data: &Data) -> bool {
        self.check(data).is_ok()
    }

    /// Returns true if the data's type is evident without visiting its parts.
    #[inline]
    fn is_plainly_of(&self, data: &Data) -> bool {
        matches!(
            (self, data),
            (Type::Dyn, _)
                | (Type::Str, Data::Str(_))
                | (Type::Num, Data::Num(_))
                | (Type::Bool, Data::Bool(_))
        )
    }

    fn check_all(&self, data: &Data, steps: &mut u64) -> Result<(), (String, String)> {
        let mut path = Vec::new();
        self.check_at(data, None, &mut path, steps).map_err(|cause| {
            let mut text = String::from("$");
            for step in path {
                text.push_str(&match step {
                    DataStep::Item(i) => format!("[{i}]"),
                    DataStep::Field(name) => format!(".{name}"),
                    DataStep::Key(key) => format!("[{}]", Json::from(clip(key))),
                    DataStep::Payload(tag) => format!("`{tag}"),
                });
            }
            (text, cause)
        })
    }

    /// Describes data of this type with an article. For messages about data, which name no type because each
    /// language spells types differently.
    ///
    /// # Examples
    /// ```
    /// use core_ir::Type;
    /// assert_eq!(Type::option(Type::list(Type::Num)).in_words(), "a list or null");
    /// ```
    pub fn in_words(&self) -> String {
        let names =
            |names: &mut dyn Iterator<Item = &Name>| names.map(|n| clip(n)).collect::<Vec<_>>().join(", ");
        match self {
            Type::Dyn => "anything".into(),
            Type::Str => "a string".into(),
            Type::Num => "a number".into(),
            Type::Bool => "a boolean".into(),
            Type::Null => "null".into(),
            Type::List(_) => "a list".into(),
            Type::Option(t) => match &**t {
                t @ (Type::Option(_) | Type::Null) => t.in_words(),
                t => format!("{} or null", t.in_words()),
            },
            Type::Record(_) => "a record".into(),
            Type::Map(_) => "a map".into(),
            Type::Enum(e) => format!("one of {}", names(&mut e.variants.iter())),
            Type::Variant(tags) => format!("a tag, one of {}", names(&mut tags.iter().map(|(n, _)| n))),
            Type::Pair(_) => "a pair".into(),
            Type::Fun(_) => "a function".into(),
            Type::Refined(r) => r.0.in_words(),
            Type::Rec(r) => r.body().in_words(),
            Type::Var(name) => format!("a `{}`", clip(name)),
        }
    }

    /// Checks a part of the data, one step further down the path.
    fn check_part<'t>(
        &'t self,
        step: DataStep<'t>,
        data: &'t Data,
        around: Option<&'t RecType>,
        path: &mut Vec<DataStep<'t>>,
        steps: &mut u64,
    ) -> Result<(), String> {
        *steps += 1;
        path.push(step);
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || self.check_at(data, around, path, steps))?;
        path.pop();
        Ok(())
    }

    /// On failure `path` is left at the place of the mismatch. Variables are of the recursive type `around`.
    fn check_at<'t>(
        &'t self,
        data: &'t Data,
        around: Option<&'t RecType>,
        path: &mut Vec<DataStep<'t>>,
        steps: &mut u64,
    ) -> Result<(), String> {
        let wrong = || Err(format!("expected {}, found {}", self.in_words(), data.kind()));
        match (self, data) {
            (Type::Dyn, _)
            | (Type::Str, Data::Str(_))
            | (Type::Num, Data::Num(_))
            | (Type::Bool, Data::Bool(_))
            | (Type::Null | Type::Option(_), Data::Null) => Ok(()),
            (Type::Rec(r), d) => r.body().check_at(d, Some(r), path, steps),
            (Type::Var(name), d) => match around.and_then(|r| r.bodies.iter().find(|(n, _)| n == name)) {
                Some((_, body)) => body.check_at(d, around, path, steps),
                None => wrong(),
            },
            (Type::Option(t), d) => t.check_at(d, around, path, steps),
            (Type::Enum(e), Data::Str(s)) => {
                *steps += e.variants.len() as u64 / 16;
                if e.variants.iter().any(|v| **v == **s) {
                    Ok(())
                } else {
                    let names: Vec<&str> = e.variants.iter().map(|v| &**v).collect();
                    Err(format!("expected one of {}, found `{}`", names.join(", "), clip(s)))
                }
            }
            (Type::List(t), Data::List(items)) => items
                .iter()
                .enumerate()
                .try_for_each(|(i, d)| t.check_part(DataStep::Item(i), d, around, path, steps)),
            (Type::Record(fields), Data::Record(found)) => fields.iter().try_for_each(|(name, t)| {
                let at = found.iter().position(|(n, _)| n == name);
                *steps += at.unwrap_or(found.len()) as u64 / 16;
                match (at, t) {
                    (Some(at), t) => t.check_part(DataStep::Field(name), &found[at].1, around, path, steps),
                    (None, Type::Option(_)) => Ok(()),
                    (None, t) => {
                        path.push(DataStep::Field(name));
                        Err(format!("missing, expected {}", t.in_words()))
                    }
                }
            }),
            (Type::Map(of), Data::Record(found)) => found.iter().try_for_each(|(name, d)| {
                if of.0 != Type::Str
                    && let Err((_, why)) = of.0.check_counting(&Data::str(&**name), steps)
                {
                    path.push(DataStep::Key(name));
                    return Err(format!("a key that can't be one: {why}"));
                }
                of.1.check_part(DataStep::Key(name), d, around, path, steps)
            }),
            (Type::Variant(tags), Data::Tag(name, payload)) => {
                *steps += tags.len() as u64 / 16;
                match tags.iter().find(|(n, _)| n == name) {
                    Some((name, t)) => t.check_part(DataStep::Payload(name), payload, around, path, steps),
                    None => Err(format!("expected {}, found the tag `{name}`", self.in_words())),
                }
            }
            (Type::Pair(t), Data::Pair(d)) => {
                t.0.check_part(DataStep::Field("fst"), &d.0, around, path, steps)?;
                t.1.check_part(DataStep::Field("snd"), &d.1, around, path, steps)
            }
            (Type::Refined(r), d) => {
                r.0.check_at(d, around, path, steps)?;
                r.1.holds_counting(d, steps)
            }
            _ => wrong(),
        }
    }
}

/// A step of the path to a part of data.
#[derive(Clone, Copy)]
enum DataStep<'t> {
    Item(usize),
    Field(&'t str),
    Key(&'t str),
    Payload(&'t str),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name = {text: τ, replies: List name}`
    fn thread(name: &str, text: Type) -> Type {
        let replies = Type::list(Type::Var(name.into()));
        let body = Type::record([("text".into(), text), ("replies".into(), replies)]);
        Type::Rec(Arc::new(RecType::new(name.into(), [(name.into(), body)].into()).unwrap()))
    }

    #[test]
    fn recursive_types_are_compared_by_what_they_are_made_of() {
        let (a, b) = (thread("A", Type::Str), thread("B", Type::Str));
        assert!(a != b && a.is_subtype(&b) && b.is_subtype(&a));
        assert!(a.is_subtype(&a.unfolded()) && a.unfolded().is_subtype(&b));
        let numbers = thread("A", Type::Num);
        assert!(!a.is_subtype(&numbers) && !numbers.unfolded().is_subtype(&a));
        let e = Type::Enum(Arc::new(EnumType::new("E", vec!["a".into()])));
        assert!(thread("C", e.clone()).is_subtype(&a) && !a.is_subtype(&thread("C", e)));
        // One that is met only within itself.
        assert!(RecType::new("A".into(), [("A".into(), Type::Var("A".into()))].into()).is_none());
        assert!(RecType::new("A".into(), [("A".into(), Type::list(Type::Var("B".into())))].into()).is_none());
    }

    #[test]
    fn a_recursive_type_is_checked_as_deep_as_the_data() {
        let ty = thread("A", Type::Str);
        let of = |text: &str| Data::from_json(&serde_json::from_str(text).unwrap()).unwrap();
        let deep = r#"{"text": "a", "replies": [{"text": "b", "replies": [{"text": 1, "replies": []}]}]}"#;
        assert_eq!(ty.check(&of(&deep.replace('1', "\"c\""))), Ok(()));
        assert_eq!(
            ty.check(&of(deep)),
            Err(("$.replies[0].replies[0].text".into(), "expected a string, found a number".into()))
        );
        assert_eq!(ty.check(&of(r#"{"text": "a", "replies": [1]}"#)).unwrap_err().0, "$.replies[0]");
    }

    #[test]
    fn a_map_is_checked_key_by_key() {
        let e = Type::Enum(Arc::new(EnumType::new("E", vec!["a".into(), "b".into()])));
        let ty = Type::map(e.clone(), Type::Num);
        let of = |text: &str| Data::from_json(&serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(ty.check(&of(r#"{"a": 1}"#)), Ok(()));
        let wrong = |text: &str| ty.check(&of(text)).unwrap_err();
        assert_eq!(wrong(r#"{"a": "x"}"#).0, r#"$["a"]"#);
        assert_eq!(
            wrong(r#"{"c": 1}"#),
            (r#"$["c"]"#.into(), "a key that can't be one: expected one of a, b, found `c`".into())
        );
        assert_eq!(wrong("[]").1, "expected a map, found a list");
        assert!(
            ty.is_subtype(&Type::map(Type::Str, Type::Num))
                && !Type::map(Type::Str, Type::Num).is_subtype(&ty)
        );
    }

    fn name(s: &str) -> Name {
        Name::from(s)
    }

    #[test]
    fn subtyping_follows_the_seed() {
        let e = Type::Enum(Arc::new(EnumType::new("E", vec![name("a")])));
        assert!(e.is_subtype(&Type::Str) && !Type::Str.is_subtype(&e));
        let literals = |values: &[&str]| {
            Type::Enum(Arc::new(EnumType::literals(values.iter().map(|v| name(v)).collect())))
        };
        let (two, swapped) = (literals(&["a", "b"]), literals(&["b", "a"]));
        assert!(e.is_subtype(&two) && literals(&["b"]).is_subtype(&two) && two.is_subtype(&swapped));
        assert!(
            !two.is_subtype(&literals(&["a"])) && !two.is_subtype(&e) && !literals(&["a"]).is_subtype(&e)
        );
        assert!(Type::list(e.clone()).is_subtype(&Type::list(Type::Str)));
        let wide = Type::record([(name("x"), e), (name("y"), Type::Num)]);
        let narrow = Type::record([(name("x"), Type::Str)]);
        assert!(wide.is_subtype(&narrow) && !narrow.is_subtype(&wide));
        assert!(Type::Null.is_subtype(&Type::option(Type::Num)));
        let f = |a: Type, b: Type| Type::fun(a, EffectRow::pure(), b);
        assert!(f(narrow.clone(), wide.clone()).is_subtype(&f(wide.clone(), narrow.clone())));
        assert!(!f(wide, Type::Num).is_subtype(&f(narrow, Type::Num)));
    }

    #[test]
    fn a_mismatch_is_reported_with_its_path() {
        let t = Type::record([(
            name("sources"),
            Type::list(Type::record([(name("url"), Type::Str), (name("note"), Type::option(Type::Str))])),
        )]);
        let ok = serde_json::json!({"sources": [{"url": "u", "extra": 1}]});
        assert_eq!(t.check(&Data::from_json(&ok).unwrap()), Ok(()));
        let bad = serde_json::json!({"sources": [{"url": "u"}, {"url": "v"}, {"note": null}]});
        let (path, cause) = t.check(&Data::from_json(&bad).unwrap()).unwrap_err();
        assert_eq!((path.as_str(), cause.as_str()), ("$.sources[2].url", "missing, expected a string"));
    }
}
