//! Plain data: what crosses the border between the machine and the world.

use crate::Num;
use serde_json::Value as Json;
use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A name: of a variable, field, tag, tool or model. Cheap to clone; compares by text, by address first.
#[derive(Clone, Eq, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl std::hash::Hash for Name {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl From<&str> for Name {
    fn from(s: &str) -> Name {
        Name(s.into())
    }
}

impl From<String> for Name {
    fn from(s: String) -> Name {
        Name(s.into())
    }
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Data nested deeper than this cannot enter or leave the machine.
pub const MAX_DATA_DEPTH: usize = 500;

/// Label-free data: JSON plus pairs and tags.
///
/// INVARIANT: nested at most [`MAX_DATA_DEPTH`] deep where it was made by [`Data::from_json`] or by
/// the machine, so recursion over it is bounded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Data {
    /// `null`, also the result of an expression that has none (`{}` prints as a record).
    Null,
    /// A truth value.
    Bool(bool),
    /// An exact number.
    Num(Num),
    /// Text.
    Str(Arc<str>),
    /// A sequence.
    List(Arc<[Data]>),
    /// An object: names are distinct and in the order they were written.
    Record(Arc<[(Name, Data)]>),
    /// A pair.
    Pair(Arc<(Data, Data)>),
    /// A tag with a payload (`Null` where it has none).
    Tag(Name, Arc<Data>),
}

/// Reason why JSON is not [`Data`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataError {
    /// Nested deeper than [`MAX_DATA_DEPTH`].
    TooDeep,
    /// A number that is too large to be kept exactly.
    TooLarge,
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataError::TooDeep => write!(f, "data nested deeper than {MAX_DATA_DEPTH} levels"),
            DataError::TooLarge => f.write_str("number too large"),
        }
    }
}

impl std::error::Error for DataError {}

impl Data {
    /// Text as data.
    pub fn str(text: impl Into<Arc<str>>) -> Data {
        Data::Str(text.into())
    }

    /// A list.
    pub fn list(items: impl IntoIterator<Item = Data>) -> Data {
        Data::List(items.into_iter().collect())
    }

    /// A record. The names must be distinct.
    pub fn record(fields: impl IntoIterator<Item = (Name, Data)>) -> Data {
        Data::Record(fields.into_iter().collect())
    }

    /// A field of a record, if this is a record that has it.
    pub fn field(&self, name: &str) -> Option<&Data> {
        match self {
            Data::Record(fields) => fields.iter().find(|(n, _)| &**n == name).map(|(_, d)| d),
            _ => None,
        }
    }

    /// The text, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Data::Str(s) => Some(s),
            _ => None,
        }
    }

    /// Returns the kind of the data with an article, for messages: `a string`, `null`, …
    pub fn kind(&self) -> &'static str {
        match self {
            Data::Null => "null",
            Data::Bool(_) => "a boolean",
            Data::Num(_) => "a number",
            Data::Str(_) => "a string",
            Data::List(_) => "a list",
            Data::Record(_) => "a record",
            Data::Pair(_) => "a pair",
            Data::Tag(..) => "a tag",
        }
    }

    /// JSON as data. Numbers stay exact.
    ///
    /// # Errors
    /// Nesting or numbers beyond the limits.
    pub fn from_json(json: &Json) -> Result<Data, DataError> {
        fn go(json: &Json, depth: usize) -> Result<Data, DataError> {
            if depth > MAX_DATA_DEPTH {
                return Err(DataError::TooDeep);
            }
            stacker::maybe_grow(32 * 1024, 1024 * 1024, || {
                Ok(match json {
                    Json::Null => Data::Null,
                    Json::Bool(b) => Data::Bool(*b),
                    Json::Number(n) => {
                        // Exponents may carry a plus sign, which our notation does not have.
                        let text = n.to_string().replace("e+", "e").replace("E+", "e");
                        Data::Num(text.parse().map_err(|_| DataError::TooLarge)?)
                    }
                    Json::String(s) => Data::str(s.as_str()),
                    Json::Array(items) => {
                        Data::List(items.iter().map(|i| go(i, depth + 1)).collect::<Result<_, _>>()?)
                    }
                    Json::Object(fields) => Data::Record(
                        fields
                            .iter()
                            .map(|(n, d)| Ok((Name::from(n.as_str()), go(d, depth + 1)?)))
                            .collect::<Result<_, _>>()?,
                    ),
                })
            })
        }
        go(json, 0)
    }

    /// As JSON: a pair is a list of two; a tag without payload is its name, one with a payload an
    /// object with that one field. Numbers that no decimal shows exactly are rounded (see [`Num::to_json`]).
    pub fn to_json(&self) -> Json {
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || match self {
            Data::Null => Json::Null,
            Data::Bool(b) => Json::Bool(*b),
            Data::Num(n) => n.to_json(),
            Data::Str(s) => Json::String(s.to_string()),
            Data::List(items) => Json::Array(items.iter().map(Data::to_json).collect()),
            Data::Record(fields) => {
                Json::Object(fields.iter().map(|(n, d)| (n.to_string(), d.to_json())).collect())
            }
            Data::Pair(p) => Json::Array(vec![p.0.to_json(), p.1.to_json()]),
            Data::Tag(name, payload) if **payload == Data::Null => Json::String(name.to_string()),
            Data::Tag(name, payload) => {
                Json::Object([(name.to_string(), payload.to_json())].into_iter().collect())
            }
        })
    }
}

impl From<bool> for Data {
    fn from(b: bool) -> Data {
        Data::Bool(b)
    }
}

impl From<Num> for Data {
    fn from(n: Num) -> Data {
        Data::Num(n)
    }
}

impl From<&str> for Data {
    fn from(s: &str) -> Data {
        Data::str(s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back() {
        let j: Json = serde_json::from_str(r#"{"a":[1,2.50,-3e2,null,true],"b":{"c":"x"}}"#).unwrap();
        let d = Data::from_json(&j).unwrap();
        assert_eq!(d.to_json().to_string(), r#"{"a":[1,2.5,-300,null,true],"b":{"c":"x"}}"#);
    }

    #[test]
    fn limits_are_errors() {
        let mut j = Json::Null;
        for _ in 0..MAX_DATA_DEPTH + 1 {
            j = Json::Array(vec![j]);
        }
        assert_eq!(Data::from_json(&j), Err(DataError::TooDeep));
        let big: Json = serde_json::from_str("1e99999").unwrap();
        assert_eq!(Data::from_json(&big), Err(DataError::TooLarge));
        let fine: Json = serde_json::from_str("1e+2").unwrap();
        assert_eq!(Data::from_json(&fine), Ok(Data::Num(Num::from(100))));
    }
}
