//! Models by name: which of them may answer a call, and what each of them may see.

use crate::{ModelParams, Name, Vendor};
use std::collections::BTreeMap;

/// A model that may answer a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The name under which the program or the settings ask for it; empty for a default that is not known.
    pub name: Name,
    /// Other names of the same model: the one that its endpoint knows, with and without the provider.
    pub aliases: Vec<Name>,
}

impl Candidate {
    /// A model without other names than what its prefix says.
    ///
    /// # Examples
    /// ```
    /// let names = core_ir::Candidate::named("openai/gpt-4o").aliases;
    /// assert_eq!(names, vec![core_ir::Name::from("gpt-4o")]);
    /// ```
    pub fn named(name: &str) -> Candidate {
        let bare = Vendor::of_prefix(name).map(|(_, rest)| rest.into());
        Candidate { name: name.into(), aliases: bare.into_iter().collect() }
    }

    /// All names, the first one first.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        std::iter::once(&self.name).chain(&self.aliases)
    }
}

/// Clearances of models, that is, what they may see: one value for each name that a policy lists, and one for
/// all others.
///
/// # Examples
/// ```
/// use core_ir::{Candidate, Clearances};
/// let clearances = Clearances { default: 1, named: vec![("local".into(), 3), ("gpt".into(), 0)] };
/// let of = |model: &Candidate| clearances.of(model).copied().collect::<Vec<_>>();
/// assert_eq!(of(&Candidate::named("local")), [3]);
/// assert_eq!(of(&Candidate::named("other")), [1]);
/// // Another name for a listed model gives it no more: all clearances that are listed for its names hold.
/// assert_eq!(of(&Candidate { name: "local".into(), aliases: vec!["gpt".into()] }), [3, 0]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clearances<L> {
    /// For models of which no name is listed.
    pub default: L,
    /// For the models of these names.
    pub named: Vec<(Name, L)>,
}

impl<L> Clearances<L> {
    /// The clearances of a model, all of which hold; at least one.
    pub fn of<'a>(&'a self, model: &'a Candidate) -> impl Iterator<Item = &'a L> {
        let listed = || self.named.iter().filter(|(n, _)| model.names().any(|m| m == n)).map(|(_, l)| l);
        listed().chain(listed().next().is_none().then_some(&self.default))
    }

    /// Maps the labels.
    pub fn map<M>(&self, mut f: impl FnMut(&L) -> M) -> Clearances<M> {
        Clearances {
            default: f(&self.default),
            named: self.named.iter().map(|(n, l)| (n.clone(), f(l))).collect(),
        }
    }
}

/// An entry of the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelRoute {
    /// Other names of the model.
    pub aliases: Vec<Name>,
    /// Models that are called in turn if this one fails.
    pub fallback: Vec<Name>,
}

/// Which models may answer which calls: the part of the settings that analyses and runs share.
///
/// # Examples
/// ```
/// use core_ir::{ModelParams, ModelRoutes};
/// let mut routes = ModelRoutes { default: vec!["fast".into()], ..ModelRoutes::default() };
/// routes.entries.entry("fast".into()).or_default().fallback.push("tiny".into());
/// let named = ModelParams { model: Some("wise".into()), ..ModelParams::default() };
/// let names = |p| routes.candidates(p).into_iter().map(|c| c.name.to_string()).collect::<Vec<_>>();
/// assert_eq!(names(None), ["fast", "tiny"]);
/// assert_eq!(names(Some(&named)), ["wise"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelRoutes {
    /// The model of all calls, whatever they name; its entry's fallback follows it.
    pub forced: Option<Name>,
    /// The models of calls that name none; none if they are not known.
    pub default: Vec<Name>,
    /// The entries by name.
    pub entries: BTreeMap<Name, ModelRoute>,
}

impl ModelRoutes {
    /// The models that may answer a call with these parameters, the first one first; at least one. An entry's
    /// fallback follows the entry, and is not followed further.
    pub fn candidates(&self, params: Option<&ModelParams>) -> Vec<Candidate> {
        let mut names: Vec<&str> = match (&self.forced, params.and_then(|p| p.model.as_deref())) {
            (Some(forced), _) => vec![forced],
            (None, Some(name)) => vec![name],
            (None, None) if self.default.is_empty() => vec![""],
            (None, None) => self.default.iter().map(|n| &**n).collect(),
        };
        if self.forced.is_none() {
            names.extend(params.into_iter().flat_map(ModelParams::fallbacks));
        }
        let mut all: Vec<Candidate> = Vec::new();
        for name in names {
            let fallback = self.entries.get(name).into_iter().flat_map(|e| &e.fallback);
            for name in std::iter::once(name).chain(fallback.map(|n| &**n)) {
                if !all.iter().any(|c| &*c.name == name) {
                    all.push(self.candidate(name));
                }
            }
        }
        all
    }

    fn candidate(&self, name: &str) -> Candidate {
        match self.entries.get(name) {
            Some(entry) => Candidate { name: name.into(), aliases: entry.aliases.clone() },
            None => Candidate::named(name),
        }
    }
}
