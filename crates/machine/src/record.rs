//! Fields of records.
//!
//! Entry point: [`Fields`], the fields in the order in which they were written. Those of a large record are
//! found by name in logarithmic time.
//!
//! Invariant: the index has each position once, in the order of the names there; fields of one name, which
//! only ill-formed code has, are in the order in which they stand.

use crate::value::Value;
use core_ir::Name;
use std::ops::Deref;
use std::sync::Arc;

/// The most fields that are searched from the front.
const SHORT: usize = 24;

/// The fields of a record.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    all: Vec<(Name, Value)>,
    /// Positions in the order of the names, of a large record.
    index: Option<Arc<[u32]>>,
}

impl Fields {
    /// No fields.
    pub(crate) const NONE: Fields = Fields { all: Vec::new(), index: None };

    /// The position of a field.
    fn position(&self, name: &str) -> Option<usize> {
        let Some(index) = &self.index else { return self.all.iter().position(|(n, _)| **n == *name) };
        let at = index.partition_point(|i| *self.all[*i as usize].0 < *name);
        index.get(at).map(|i| *i as usize).filter(|i| *self.all[*i].0 == *name)
    }

    /// The value of a field.
    #[inline]
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.position(name).map(|at| &self.all[at].1)
    }

    /// The fields with one that has another value, or is there as well.
    pub(crate) fn with(&self, name: &Name, value: Value) -> Fields {
        let mut all = self.all.clone();
        match self.position(name) {
            Some(at) => {
                all[at].1 = value;
                Fields { all, index: self.index.clone() }
            }
            None => {
                all.push((name.clone(), value));
                all.into()
            }
        }
    }

    /// Fields of the same names with other values, as far as there are some.
    pub(crate) fn try_map<E>(&self, mut value: impl FnMut(&Value) -> Result<Value, E>) -> Result<Fields, E> {
        let all = self.all.iter().map(|(n, v)| Ok((n.clone(), value(v)?))).collect::<Result<_, E>>()?;
        Ok(Fields { all, index: self.index.clone() })
    }

    /// The values, to be taken out.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.all.iter_mut().map(|(_, v)| v)
    }
}

impl Deref for Fields {
    type Target = [(Name, Value)];
    fn deref(&self) -> &[(Name, Value)] {
        &self.all
    }
}

impl From<Vec<(Name, Value)>> for Fields {
    fn from(all: Vec<(Name, Value)>) -> Fields {
        // INVARIANT: a record has fewer fields than terms or bytes of a text made it, which are counted in 32
        // bits. One that had more would be searched from the front.
        let index = u32::try_from(all.len()).ok().filter(|count| *count as usize > SHORT).map(|count| {
            let mut index: Vec<u32> = (0..count).collect();
            index.sort_by(|a, b| all[*a as usize].0.cmp(&all[*b as usize].0));
            index.into()
        });
        Fields { all, index }
    }
}

impl FromIterator<(Name, Value)> for Fields {
    fn from_iter<I: IntoIterator<Item = (Name, Value)>>(fields: I) -> Fields {
        fields.into_iter().collect::<Vec<_>>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Kind;
    use core_ir::{Label, Num};

    fn number(n: usize) -> Value {
        Value::new(Label::BOTTOM, Kind::Num(Num::from(n as i64)))
    }

    fn shown(value: Option<&Value>) -> Option<i64> {
        match value.map(|v| &v.kind) {
            Some(Kind::Num(n)) => n.to_i64(),
            _ => None,
        }
    }

    /// Names that don't stand in their order.
    fn name(n: usize) -> Name {
        format!("f{}", n * 7_919 % 1_009).into()
    }

    #[test]
    fn a_field_is_found_in_records_of_every_size() {
        for count in [0, 1, SHORT - 1, SHORT, SHORT + 1, 1_000] {
            let fields: Fields = (0..count).map(|n| (name(n), number(n))).collect();
            assert_eq!(fields.index.is_some(), count > SHORT);
            for n in 0..count {
                assert_eq!(shown(fields.get(&name(n))), Some(n as i64), "{n} of {count}");
            }
            for absent in ["", "f", "f1010", "zz"] {
                assert!(fields.get(absent).is_none(), "{absent} of {count}");
            }
            let more = fields.with(&"more".into(), number(5_000));
            assert_eq!((more.len(), shown(more.get("more"))), (count + 1, Some(5_000)));
            if count > 0 {
                let other = more.with(&name(count / 2), number(6_000));
                assert_eq!((other.len(), shown(other.get(&name(count / 2)))), (count + 1, Some(6_000)));
                assert_eq!(shown(more.get(&name(count / 2))), Some((count / 2) as i64));
                assert!(other.iter().map(|(n, _)| n).eq(more.iter().map(|(n, _)| n)), "the order stays");
            }
        }
    }

    /// Only ill-formed code has two fields of one name. The first one counts, as in small records.
    #[test]
    fn of_two_fields_with_one_name_the_first_is_found() {
        for count in [1, 100] {
            let fields: Fields =
                (0..count).chain(0..count).enumerate().map(|(i, n)| (name(n), number(i))).collect();
            for n in 0..count {
                assert_eq!(shown(fields.get(&name(n))), Some(n as i64));
            }
        }
    }
}
