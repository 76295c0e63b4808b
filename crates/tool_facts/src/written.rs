//! The data of this crate as it is written: files of TOML.
//!
//! Entry point: [`read`]. What reads a table takes its keys out one after the other.
//!
//! Invariant: a key that nothing takes is an error, as is a missing one, so the data says what it seems to.

use std::borrow::Cow;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A table, with the keys that are not yet read.
pub(crate) struct Entry(DeTable<'static>);

/// Reads a file.
///
/// # Errors
/// The file is not TOML, has a key of another kind than asked for, or one that is not asked for.
pub(crate) fn read<T>(
    text: &'static str,
    of: impl FnOnce(&mut Entry) -> Result<T, String>,
) -> Result<T, String> {
    let table = DeTable::parse(text).map_err(|e| e.to_string())?.into_inner();
    Entry(table).read(of)
}

/// The items of a list; `None` of another value.
fn items(value: DeValue<'static>) -> Option<impl Iterator<Item = DeValue<'static>>> {
    match value {
        DeValue::Array(items) => Some(items.into_iter().map(Spanned::into_inner)),
        _ => None,
    }
}

fn text(value: DeValue<'static>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(Cow::into_owned(text)),
        _ => None,
    }
}

impl Entry {
    fn read<T>(mut self, of: impl FnOnce(&mut Entry) -> Result<T, String>) -> Result<T, String> {
        let read = of(&mut self)?;
        match self.0.keys().next() {
            None => Ok(read),
            Some(key) => Err(format!("unknown key `{}`", key.get_ref())),
        }
    }

    /// The value of a key, read by `of`, which says `None` if the value is of another kind.
    fn take<T>(
        &mut self,
        key: &str,
        of: impl FnOnce(DeValue<'static>) -> Option<T>,
    ) -> Result<Option<T>, String> {
        match self.0.remove(key) {
            None => Ok(None),
            Some(value) => {
                of(value.into_inner()).map(Some).ok_or_else(|| format!("`{key}` is of another kind"))
            }
        }
    }

    /// A text.
    pub(crate) fn text(&mut self, key: &str) -> Result<String, String> {
        self.optional_text(key)?.ok_or_else(|| missing(key))
    }

    /// A text that may be missing.
    pub(crate) fn optional_text(&mut self, key: &str) -> Result<Option<String>, String> {
        self.take(key, text)
    }

    /// A list of texts.
    pub(crate) fn texts(&mut self, key: &str) -> Result<Vec<String>, String> {
        self.optional_texts(key)?.ok_or_else(|| missing(key))
    }

    /// A list of texts that may be missing.
    pub(crate) fn optional_texts(&mut self, key: &str) -> Result<Option<Vec<String>>, String> {
        self.take(key, |value| items(value)?.map(text).collect())
    }

    /// A list of tables, each read by `of`. Without it there are none.
    pub(crate) fn entries<T>(
        &mut self,
        key: &str,
        of: impl Fn(&mut Entry) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let table = |value| match value {
            DeValue::Table(table) => Some(Entry(table)),
            _ => None,
        };
        let tables: Option<Vec<Entry>> = self.take(key, |value| items(value)?.map(table).collect())?;
        let read = |entry: Entry| entry.read(&of).map_err(|e| format!("{key}: {e}"));
        tables.unwrap_or_default().into_iter().map(read).collect()
    }
}

fn missing(key: &str) -> String {
    format!("there is no `{key}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &'static str, expected: Result<&[&str], &str>) {
        let entry = |e: &mut Entry| Ok((e.text("name")?, e.optional_texts("of")?.unwrap_or_default()));
        let found = read(text, |file| file.entries("entry", entry));
        let names = found.as_ref().map(|all| all.iter().map(|(name, _)| &**name).collect::<Vec<_>>());
        assert_eq!(names.as_deref().map_err(|e| &***e), expected.as_ref().map(|e| &**e).map_err(|e| &**e));
    }

    #[test]
    fn unread_missing_and_mistyped_keys_are_errors() {
        check("[[entry]]\nname = 'a'\nof = ['x']\n[[entry]]\nname = 'b'", Ok(&["a", "b"]));
        check("", Ok(&[]));
        check("[[entry]]\nof = []", Err("entry: there is no `name`"));
        check("[[entry]]\nname = 1", Err("entry: `name` is of another kind"));
        check("[[entry]]\nname = 'a'\nof = ['x', 1]", Err("entry: `of` is of another kind"));
        check("[[entry]]\nname = 'a'\nkind = 'x'", Err("entry: unknown key `kind`"));
        check("entry = {}", Err("`entry` is of another kind"));
        check("[other]", Err("unknown key `other`"));
    }
}
