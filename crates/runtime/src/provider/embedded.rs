//! The provider `local`: models that run in this process.

#[cfg(feature = "local")]
use super::Local;
use super::Provider;
use super::kinds::{ModelSpec, ProviderKind};
use crate::{ConfigError, Environment};
use std::path::Path;
use std::sync::Arc;

/// The provider `local`.
pub(super) struct Embedded;

impl ProviderKind for Embedded {
    fn name(&self) -> &'static str {
        "local"
    }

    fn is_free(&self) -> bool {
        true
    }

    fn make(&self, wanted: &ModelSpec<'_>) -> Result<Arc<dyn Provider>, ConfigError> {
        match (wanted.file, &wanted.entry.model) {
            (Some(file), _) => local(Some(file), wanted.environment),
            (None, Some(model)) => {
                installed(model, wanted.environment).unwrap_or_else(|| Err(not_installed(model)))
            }
            (None, None) => local(None, wanted.environment),
        }
    }
}

fn not_installed(name: &str) -> ConfigError {
    ConfigError::new(format!("the local model `{name}` is not installed")).with_help(
        "list installed models with `entail model list`; add one with `entail model pull --from FILE`",
    )
}

#[cfg(feature = "local")]
fn store(environment: &Environment) -> Result<localmodel::store::Store, ConfigError> {
    match environment.get("ENTAIL_MODEL_DIR") {
        Some(dir) => Ok(localmodel::store::Store::at(dir)),
        None => localmodel::store::Store::from_env().map_err(|e| super::local_error(&e)),
    }
}

/// The local model of a file, or the default one.
#[cfg(feature = "local")]
pub(crate) fn local(
    file: Option<&Path>,
    environment: &Environment,
) -> Result<Arc<dyn Provider>, ConfigError> {
    let path = match file {
        Some(path) => path.to_path_buf(),
        None => store(environment)?.default_model().map_err(|e| super::local_error(&e))?,
    };
    Ok(Arc::new(Local::new(path)))
}

#[cfg(not(feature = "local"))]
pub(crate) fn local(_: Option<&Path>, _: &Environment) -> Result<Arc<dyn Provider>, ConfigError> {
    Err(ConfigError::new("this build has no local model")
        .with_help("name a model with `--model`, or build with the feature `local`"))
}

/// The model in the store of local models, if there is one of that name.
#[cfg(feature = "local")]
pub(crate) fn installed(
    name: &str,
    environment: &Environment,
) -> Option<Result<Arc<dyn Provider>, ConfigError>> {
    let path = store(environment).ok()?.find(name).ok()?;
    Some(local(Some(&path), environment))
}

#[cfg(not(feature = "local"))]
pub(crate) fn installed(_: &str, _: &Environment) -> Option<Result<Arc<dyn Provider>, ConfigError>> {
    None
}
