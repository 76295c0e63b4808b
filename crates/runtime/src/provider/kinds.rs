//! The table of providers: one row each, by the name that `provider` of `[models.NAME]` has.
//!
//! Entry points: [`KINDS`] and [`find`].

use super::Provider;
use super::embedded::Embedded;
use super::recorded::RecordedFile;
use super::remote::{
    ANTHROPIC, AZURE, BEDROCK, GEMINI, LLAMA_CPP, OLLAMA, OPENAI, OPENAI_RESPONSES, VERTEX, VLLM,
};
use super::scripted::ScriptFile;
use crate::{ConfigError, Environment, ModelEntry, PriceList, Redactor};
use std::path::Path;
use std::sync::Arc;

/// Every provider. The first is that of entries that name none.
pub(crate) const KINDS: [&dyn ProviderKind; 13] = [
    &OPENAI,
    &OPENAI_RESPONSES,
    &AZURE,
    &ANTHROPIC,
    &BEDROCK,
    &GEMINI,
    &VERTEX,
    &OLLAMA,
    &LLAMA_CPP,
    &VLLM,
    &Embedded,
    &ScriptFile,
    &RecordedFile,
];

/// A kind of models: what one provider makes of an entry of the settings.
pub(crate) trait ProviderKind: Sync {
    /// Its name in the settings.
    fn name(&self) -> &'static str;

    /// Returns whether its models cost nothing unless a price is given.
    fn is_free(&self) -> bool;

    /// An address that always wants a key.
    fn own_address(&self) -> Option<&'static str> {
        None
    }

    /// The model that a name means by itself, where the settings have no entry for it.
    fn claims<'n>(&self, _name: &'n str, _environment: &Environment) -> Option<&'n str> {
        None
    }

    /// Makes a model.
    ///
    /// # Errors
    /// The entry can't be used, or something is missing that it needs.
    fn make(&self, wanted: &ModelSpec<'_>) -> Result<Arc<dyn Provider>, ConfigError>;
}

/// A model of the settings that is to be made.
#[derive(Clone, Copy)]
pub(crate) struct ModelSpec<'a> {
    /// Its name in programs.
    pub(crate) name: &'a str,
    /// Its entry.
    pub(crate) entry: &'a ModelEntry,
    /// The file of the entry, from the working directory.
    pub(crate) file: Option<&'a Path>,
    /// Variables.
    pub(crate) environment: &'a Environment,
    /// Secrets to remove from what is shown.
    pub(crate) redactor: &'a Redactor,
    /// Prices at the addresses of vendors.
    pub(crate) prices: &'a PriceList,
}

impl ModelSpec<'_> {
    /// Returns whether an address always wants a key.
    pub(crate) fn wants_key(&self, base: &str) -> bool {
        KINDS.iter().any(|k| k.own_address() == Some(base))
    }

    /// An error about the entry.
    pub(crate) fn wrong(&self, why: &str) -> ConfigError {
        ConfigError::new(format!("model `{}`: {why}", self.name))
    }
}

/// The provider of an entry, which may name none.
pub(crate) fn find(name: Option<&str>) -> Option<&'static dyn ProviderKind> {
    match name {
        None => Some(&OPENAI),
        Some(name) => KINDS.into_iter().find(|k| k.name() == name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every provider has a row in the table of the book, and the table has no others.
    #[test]
    fn the_table_of_the_book_has_every_provider() {
        let rows =
            include_str!("../../data/providers.tsv").lines().map(|line| line.split('\t').collect::<Vec<_>>());
        let rows: Vec<Vec<&str>> = rows.collect();
        let names: Vec<&str> = rows.iter().skip(1).map(|row| row[0]).collect();
        assert_eq!(names, KINDS.map(|kind| kind.name()));
        assert!(rows.iter().all(|row| row.len() == rows[0].len() && row.iter().all(|cell| !cell.is_empty())));
    }
}
