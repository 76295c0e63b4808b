//! JSON as data of a type: the inverse of [`Data::to_json`].

use crate::{Data, DataError, Name, Type};
use serde_json::Value as Json;
use std::sync::Arc;

impl Type {
    /// Reads JSON with this type in mind: where a pair is expected a list of two is one; where a tag is
    /// expected a string is one without payload and an object with one field one with payload. What does not fit is
    /// read as it is, so that [`Type::check`] can say what is wrong with it.
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

    /// Whether data of this type is read without looking at the type.
    fn is_plain(&self) -> bool {
        match self {
            Type::Dyn | Type::Str | Type::Num | Type::Bool | Type::Null | Type::Enum(_) | Type::Fun(_) => {
                true
            }
            Type::List(t) | Type::Option(t) => stacker::maybe_grow(32 * 1024, 1024 * 1024, || t.is_plain()),
            Type::Record(fields) => {
                stacker::maybe_grow(32 * 1024, 1024 * 1024, || fields.iter().all(|(_, t)| t.is_plain()))
            }
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
            (Type::Record(types), Data::Record(fields)) => Data::record(fields.iter().map(|(name, d)| {
                let shaped = match types.iter().find(|(n, _)| n == name) {
                    Some((_, t)) => t.shape(d.clone()),
                    None => d.clone(),
                };
                (name.clone(), shaped)
            })),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
    fn what_does_not_fit_is_left_for_the_check() {
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
