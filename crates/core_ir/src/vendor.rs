//! Vendors of models, as far as the names of their models tell.
//!
//! Entry points: [`Vendor::of_prefix`] and [`Vendor::of_model`]. The provider table of the runtime,
//! clearances and telemetry read this one.

/// A vendor of models.
#[derive(Debug, PartialEq, Eq)]
pub struct Vendor {
    /// Its name, which frameworks write before those of its models: `openai/gpt-4o`.
    pub name: &'static str,
    /// Beginnings of the names of its models.
    pub families: &'static [&'static str],
    /// Its name in OpenTelemetry's conventions for generative AI.
    pub telemetry: &'static str,
    /// True if its name before that of a model is no part of the model's name.
    pub is_prefix: bool,
}

/// OpenAI.
pub static OPENAI: Vendor =
    Vendor { name: "openai", families: &["gpt-", "o1", "o3", "o4"], telemetry: "openai", is_prefix: true };

/// Anthropic.
pub static ANTHROPIC: Vendor =
    Vendor { name: "anthropic", families: &["claude-"], telemetry: "anthropic", is_prefix: true };

/// Ollama, which serves models of others.
pub static OLLAMA: Vendor = Vendor { name: "ollama", families: &[], telemetry: "_OTHER", is_prefix: true };

/// Google.
pub static GOOGLE: Vendor =
    Vendor { name: "google", families: &["gemini"], telemetry: "gcp.gemini", is_prefix: false };

static VENDORS: [&Vendor; 4] = [&OPENAI, &ANTHROPIC, &OLLAMA, &GOOGLE];

impl Vendor {
    /// Returns the vendor whose name stands before that of a model, and the rest.
    ///
    /// # Examples
    /// ```
    /// use core_ir::vendor::{OPENAI, Vendor};
    /// assert_eq!(Vendor::of_prefix("openai/gpt-4o"), Some((&OPENAI, "gpt-4o")));
    /// assert_eq!(Vendor::of_prefix("meta/llama"), None);
    /// ```
    pub fn of_prefix(model: &str) -> Option<(&'static Vendor, &str)> {
        let (prefix, rest) = model.split_once('/')?;
        let vendor = VENDORS.into_iter().find(|v| v.is_prefix && v.name == prefix)?;
        Some((vendor, rest))
    }

    /// Returns the vendor that makes a model, by the beginning of its name.
    ///
    /// # Examples
    /// ```
    /// use core_ir::vendor::{ANTHROPIC, Vendor};
    /// assert_eq!(Vendor::of_model("claude-sonnet-4"), Some(&ANTHROPIC));
    /// ```
    pub fn of_model(model: &str) -> Option<&'static Vendor> {
        VENDORS.into_iter().find(|v| v.makes(model))
    }

    /// Returns whether a model is one of this vendor's, by the beginning of its name.
    pub fn makes(&self, model: &str) -> bool {
        self.families.iter().any(|beginning| model.starts_with(beginning))
    }
}
