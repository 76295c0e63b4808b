//! JSON as data of a type: the inverse of [`Data::to_json`].

use crate::{Data, DataError, Name, Type};
use serde_json::Value as Json;
use std::sync::Arc;

impl Type {
    /// Reads JSON with this type in mind: where a pair is expected a list of two is one; where a tag is
    /// expected a string is one without payload and an object with one field one with payload. What does not
    /// fit is read as it is, so that [`Type::check`] can say what is wrong with it.
    ///
    /// # Errors
    /// Nesting or numbers beyond the limits of [`Data::from_json`].
    ///
    /// # Examples
    /// ```
    /// use core_ir::{Data, Type};
    /// let t = Type::Variant([("done".into(), Type::Null), ("next".into(), Type::Num)].into());
    /// let d = t.read(&serde_json::json!({"next": 2})).unwrap();
    /// assert_eq!(t.check(&d), Ok(()));
    /// assert_eq!(d.to_json(), serde_json::json!({"next": 2}));
    /// ```
    pub fn read(&self, json: &Json) -> Result<Data, DataError> {
        // Bounds the depth of what is read below, for all types at once.
        let plain = Data::from_json(json)?;
        Ok(if self.is_plain() { plain } else { self.shape(plain) })
    }

    /// Reads an input: applies [`Type::read`] and [`Type::check`], and rejects unknown fields. A value may
    /// have more fields than its type (see [`Type::check`]), but an input from outside may not, as the
    /// schemas say: an unknown field is probably a typo.
    ///
    /// # Errors
    /// It is no data of the type, or has a field that the type does not have.
    ///
    /// # Examples
    /// ```
    /// use core_ir::Type;
    /// let t = Type::record([("topic".into(), Type::Str), ("depth".into(), Type::option(Type::Num))]);
    /// assert!(t.read_input(&serde_json::json!({"topic": "tea"})).is_ok());
    /// let e = t.read_input(&serde_json::json!({"topic": "tea", "dept": 2})).unwrap_err();
    /// assert_eq!(&*e.message, "$.dept: there is no such field");
    /// assert_eq!(e.help.as_deref(), Some("did you mean `depth`?"));
    /// ```
    pub fn read_input(&self, json: &Json) -> Result<Data, InputMismatch> {
        let data = self.read(json).map_err(|e| InputMismatch { message: e.to_string(), help: None })?;
        // First: a field that is missing is mostly one that has another name.
        self.no_stranger(&data, "$")?;
        match self.check(&data) {
            Ok(()) => Ok(data),
            Err((path, cause)) => Err(InputMismatch { message: format!("{path}: {cause}"), help: None }),
        }
    }

    /// Checks that no record of the data has a field that its type lacks. Other mismatches are left to
    /// [`Type::check`].
    fn no_stranger(&self, data: &Data, path: &str) -> Result<(), InputMismatch> {
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || match (self, data) {
            (Type::Option(t), d) => t.no_stranger(d, path),
            (Type::Refined(r), d) => r.0.no_stranger(d, path),
            (Type::Rec(r), d) => r.unfold().no_stranger(d, path),
            (Type::List(t), Data::List(items)) => {
                items.iter().enumerate().try_for_each(|(i, d)| t.no_stranger(d, &format!("{path}[{i}]")))
            }
            (Type::Pair(t), Data::Pair(d)) => {
                t.0.no_stranger(&d.0, &format!("{path}.fst"))?;
                t.1.no_stranger(&d.1, &format!("{path}.snd"))
            }
            (Type::Variant(tags), Data::Tag(name, payload)) => match tags.iter().find(|(n, _)| n == name) {
                Some((_, t)) => t.no_stranger(payload, &format!("{path}`{name}")),
                None => Ok(()),
            },
            (Type::Record(types), Data::Record(fields)) => fields.iter().try_for_each(|(name, d)| {
                let known = types.iter().find(|(n, _)| n == name);
                let (_, t) = known.ok_or_else(|| unknown(name, types, path))?;
                t.no_stranger(d, &format!("{path}.{name}"))
            }),
            (Type::Map(of), Data::Record(fields)) => fields.iter().try_for_each(|(name, d)| {
                let key = Json::from(diagnostics::clip(name));
                of.1.no_stranger(d, &format!("{path}[{key}]"))
            }),
            _ => Ok(()),
        })
    }

    /// Returns true if data of this type is read without looking at the type.
    fn is_plain(&self) -> bool {
        match self {
            Type::Dyn | Type::Str | Type::Num | Type::Bool | Type::Null | Type::Enum(_) | Type::Fun(_) => {
                true
            }
            Type::Var(_) => true,
            Type::Rec(r) => r.bodies().iter().all(|(_, body)| body.is_plain()),
            Type::List(t) | Type::Option(t) => stacker::maybe_grow(32 * 1024, 1024 * 1024, || t.is_plain()),
            Type::Record(fields) => {
                stacker::maybe_grow(32 * 1024, 1024 * 1024, || fields.iter().all(|(_, t)| t.is_plain()))
            }
            Type::Map(of) => stacker::maybe_grow(32 * 1024, 1024 * 1024, || of.1.is_plain()),
            Type::Refined(r) => stacker::maybe_grow(32 * 1024, 1024 * 1024, || r.0.is_plain()),
            Type::Variant(_) | Type::Pair(_) => false,
        }
    }

    /// The data with pairs and tags where the type has them.
    fn shape(&self, data: Data) -> Data {
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || match (self, data) {
            (Type::List(t), Data::List(items)) => Data::list(items.iter().map(|d| t.shape(d.clone()))),
            (Type::Option(_), Data::Null) => Data::Null,
            (Type::Option(t), d) => t.shape(d),
            (Type::Refined(r), d) => r.0.shape(d),
            (Type::Rec(r), d) => r.unfold().shape(d),
            (Type::Record(types), Data::Record(fields)) => Data::record(fields.iter().map(|(name, d)| {
                let shaped = match types.iter().find(|(n, _)| n == name) {
                    Some((_, t)) => t.shape(d.clone()),
                    None => d.clone(),
                };
                (name.clone(), shaped)
            })),
            (Type::Map(of), Data::Record(fields)) => {
                Data::record(fields.iter().map(|(name, d)| (name.clone(), of.1.shape(d.clone()))))
            }
            (Type::Pair(t), Data::List(items)) if items.len() == 2 => {
                Data::Pair(Arc::new((t.0.shape(items[0].clone()), t.1.shape(items[1].clone()))))
            }
            (Type::Variant(tags), d) => {
                let known = |name: &Name| tags.iter().find(|(n, _)| n == name);
                match &d {
                    Data::Str(s) => match known(&Name::from(&**s)) {
                        Some((n, _)) => Data::Tag(n.clone(), Arc::new(Data::Null)),
                        None => d,
                    },
                    Data::Record(fields) if fields.len() == 1 => match known(&fields[0].0) {
                        Some((n, t)) => Data::Tag(n.clone(), Arc::new(t.shape(fields[0].1.clone()))),
                        None => d,
                    },
                    _ => d,
                }
            }
            (_, d) => d,
        })
    }
}

/// Reason why an input doesn't have its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputMismatch {
    /// The problem, with its place.
    pub message: String,
    /// The remedy, where it is more than to give what the type says.
    pub help: Option<String>,
}

impl std::fmt::Display for InputMismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.help {
            Some(help) => write!(f, "{} (help: {help})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for InputMismatch {}

fn unknown(name: &str, types: &[(Name, Type)], path: &str) -> InputMismatch {
    let names = || types.iter().map(|(n, _)| &**n);
    let help = match diagnostics::nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if types.is_empty() => "leave it out: there are no fields".into(),
        None => format!("leave it out: there is `{}`", names().collect::<Vec<_>>().join("`, `")),
    };
    InputMismatch {
        message: format!("{path}.{}: there is no such field", diagnostics::clip(name)),
        help: Some(help),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_input_has_no_field_that_its_type_does_not_know() {
        let order = Type::record([("id".into(), Type::Num), ("note".into(), Type::option(Type::Str))]);
        let by = Type::Variant([("card".into(), order.clone()), ("cash".into(), Type::Null)].into());
        let t = Type::record([
            ("orders".into(), Type::list(order.clone())),
            ("by".into(), Type::option(by)),
            ("more".into(), Type::Dyn),
            ("both".into(), Type::option(Type::Pair(Arc::new((Type::Num, order))))),
        ]);
        let wrong = |j: Json| t.read_input(&j).unwrap_err().to_string();
        let fine = json!({"orders": [{"id": 1}], "by": {"card": {"id": 2}}, "more": {"any": {"thing": 1}}});
        assert!(t.read_input(&fine).is_ok());
        assert_eq!(
            wrong(json!({"orders": [{"id": 1}, {"id": 2, "nota": "x"}], "more": 1})),
            "$.orders[1].nota: there is no such field (help: did you mean `note`?)"
        );
        assert_eq!(
            wrong(json!({"orders": [], "by": {"card": {"id": 1, "cvc": 3}}, "more": 1})),
            "$.by`card.cvc: there is no such field (help: leave it out: there is `id`, `note`)"
        );
        assert_eq!(
            wrong(json!({"orders": [], "both": [1, {"id": 1, "odd": 3}], "more": 1})),
            "$.both.snd.odd: there is no such field (help: leave it out: there is `id`, `note`)"
        );
        // A slip is said to be one, and not that the right name is missing.
        assert_eq!(
            wrong(json!({"order": []})),
            "$.order: there is no such field (help: did you mean `orders`?)"
        );
        assert_eq!(wrong(json!({"orders": []})), "$.more: missing, expected anything");
        let none = Type::record([]).read_input(&json!({"x": 1})).unwrap_err();
        assert_eq!(none.help.as_deref(), Some("leave it out: there are no fields"));
    }

    #[test]
    fn pairs_and_tags_are_read_where_the_type_has_them() {
        let tag = Type::Variant([("a".into(), Type::Null), ("b".into(), Type::Str)].into());
        let t = Type::list(Type::Pair(Arc::new((tag, Type::option(Type::list(Type::Num))))));
        let j = json!([["a", null], [{"b": "x"}, [1]]]);
        let d = t.read(&j).unwrap();
        assert_eq!(t.check(&d), Ok(()));
        assert_eq!(d.to_json(), j);
    }

    #[test]
    fn misfits_are_left_for_the_check() {
        let t = Type::Pair(Arc::new((Type::Num, Type::Num)));
        let (path, cause) = t.check(&t.read(&json!([1, 2, 3])).unwrap()).unwrap_err();
        assert_eq!((path.as_str(), cause.as_str()), ("$", "expected a pair, found a list"));
        let t = Type::Variant([("a".into(), Type::Null)].into());
        assert!(t.check(&t.read(&json!("b")).unwrap()).is_err());
        let mut deep = json!(1);
        for _ in 0..600 {
            deep = json!([deep]);
        }
        assert_eq!(t.read(&deep), Err(DataError::TooDeep));
    }
}
