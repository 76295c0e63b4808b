//! Stand-in for the crate `python` in a build without the feature `python`: of a module nothing is known but
//! its text.

use diagnostics::FileId;
use std::sync::Arc;

/// A module that is not read.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its text.
    pub text: Arc<str>,
}

impl Source {
    /// Keeps the text.
    pub fn new(_: FileId, _: &str, text: Arc<str>) -> Source {
        Source { text }
    }

    /// Returns false: what the module calls is not known.
    pub fn calls(&self, _: &[&str]) -> bool {
        false
    }
}

/// The modules of a project, which are not read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources;

impl Sources {
    /// No modules.
    pub fn new() -> Sources {
        Sources
    }

    /// Keeps nothing of the module.
    pub fn push(&mut self, _: Arc<Source>) {}
}

/// Values that modules define, which are not known.
#[derive(Clone, Copy, Debug)]
pub struct Modules;

impl Modules {
    /// Evaluates nothing.
    pub fn new(_: Sources) -> Modules {
        Modules
    }
}
