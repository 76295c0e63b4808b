//! Handlers of the requests of programs.

use super::Error;
use super::fit::{misfit, type_of};
use core_ir::{Code, Data, Name, Type};
use runtime::{Approver, Handlers, Limits, Models, Provider, Scripted};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use session::handlers;
use session::limits::limits_of;
use session::settings::Settings;
use session::tool_schemas::type_of_schema;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Handlers of the requests of programs, and the limits of runs.
#[derive(Clone, Debug)]
pub struct World {
    /// Models, tools, stores, approval, the seed of samples.
    pub handlers: Handlers,
    /// Limits of a run.
    pub limits: Limits,
    /// The most evaluation steps.
    pub fuel: Option<u64>,
    /// Types of the functions that implement tools: the record of arguments and the result.
    functions: BTreeMap<Name, (Type, Type)>,
}

impl World {
    /// With one model for every call; tools as their declarations say.
    ///
    /// # Examples
    /// A model of one's own:
    /// ```
    /// use entail::{Answer, ModelCall, Price, Progress, Provider, Reply, Tokens, Work, World};
    /// use std::sync::Arc;
    ///
    /// struct Echo;
    /// impl Provider for Echo {
    ///     fn name(&self) -> &str { "echo" }
    ///     fn price(&self) -> Option<Price> { Some(Price::FREE) }
    ///     fn ask(self: Arc<Self>, call: ModelCall, _: Progress) -> Work<Answer> {
    ///         let text = call.last_text().to_string();
    ///         Work::Now(Answer::new(Ok(Reply::Text(text)), Tokens::default()))
    ///     }
    /// }
    /// let world = World::new(Arc::new(Echo));
    /// ```
    pub fn new(model: Arc<dyn Provider>) -> World {
        World::with_models(Models::only(model))
    }

    /// With these models.
    pub fn with_models(models: Models) -> World {
        World::of(Handlers::new(models), Limits::default())
    }

    /// Creates the world of `entail.toml`: its models, handlers, servers, stores and limits.
    ///
    /// # Errors
    /// A setting can't be used.
    pub fn from_settings(settings: &Settings) -> Result<World, Error> {
        World::with_settings(settings, None)
    }

    /// Creates the world of [`World::from_settings`], with this model for every call: a name as after
    /// `--model`.
    ///
    /// # Errors
    /// A setting can't be used, or there is no such model.
    pub fn with_settings(settings: &Settings, model: Option<&str>) -> Result<World, Error> {
        let models = Models::new(settings.model_settings(model), settings.environment.clone())?;
        World::of_settings(settings, models)
    }

    /// Creates the world of [`World::from_settings`] with these models.
    ///
    /// # Errors
    /// A setting can't be used.
    pub fn of_settings(settings: &Settings, models: Models) -> Result<World, Error> {
        let mut handlers = handlers(models, settings, 0);
        handlers.stores = settings.fresh_stores();
        let limits = limits_of(&settings.limits)?;
        Ok(World::of(handlers, limits))
    }

    fn of(handlers: Handlers, limits: Limits) -> World {
        World { handlers, limits, fuel: None, functions: BTreeMap::new() }
    }

    /// With an async function for a tool: from its arguments as a record to its result, or to why it failed.
    /// The types of both are compared with the tool's declaration before a program runs; `serde_json::Value`
    /// fits everything. Work that blocks belongs into `tokio::task::spawn_blocking`, as in any async
    /// function.
    #[must_use]
    pub fn tool<A, R, E, F, Fut>(self, name: &str, act: F) -> World
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + JsonSchema,
        E: fmt::Display,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
    {
        let act = Arc::new(act);
        let custom: runtime::CustomTool = Arc::new(move |args| {
            let act = act.clone();
            Box::pin(async move {
                let args = serde_json::from_value(Data::record(args).to_json())
                    .map_err(|e| format!("the arguments are not what the tool takes: {e}"))?;
                let result = act(args).await.map_err(|e| e.to_string())?;
                let json =
                    serde_json::to_value(result).map_err(|e| format!("the result is not data: {e}"))?;
                Data::from_json(&json).map_err(|e| e.to_string())
            })
        });
        self.function(name, type_of::<A>(false), type_of::<R>(true), custom)
    }

    /// Adds a function for a tool whose arguments, as an object, and whose result are described by JSON
    /// Schemas. Without a schema, any value is accepted.
    #[must_use]
    pub fn tool_of_schemas(
        self,
        name: &str,
        takes: Option<&Value>,
        gives: Option<&Value>,
        act: runtime::CustomTool,
    ) -> World {
        let ty = |schema: Option<&Value>| schema.map_or(Type::Dyn, type_of_schema);
        self.function(name, ty(takes), ty(gives), act)
    }

    fn function(mut self, name: &str, takes: Type, gives: Type, act: runtime::CustomTool) -> World {
        self.functions.insert(name.into(), (takes, gives));
        self.handlers.tools = self.handlers.tools.with_custom(name, act);
        self
    }

    /// Within these limits.
    #[must_use]
    pub fn within(self, limits: Limits) -> World {
        World { limits, ..self }
    }

    /// Has replies told while they arrive: as [`Event::Text`](crate::Event::Text), of which
    /// [`Partials`](crate::Partials) makes typed partial values.
    #[must_use]
    pub fn streaming(mut self) -> World {
        self.handlers.stream = true;
        self
    }

    /// Sets the approver of calls of tools that need approval.
    #[must_use]
    pub fn approver(mut self, approver: Approver) -> World {
        self.handlers.approver = Some(approver);
        self
    }

    /// Checks that the functions have the types of their tools.
    pub(super) fn fits(&self, code: &Code) -> Result<(), Error> {
        for tool in &code.tools {
            let Some((takes, gives)) = self.functions.get(&tool.name) else { continue };
            let params = Type::record(tool.params.iter().map(|p| (p.name.clone(), p.ty.clone())));
            let wrong = |what: &str, why: String| {
                Error::new("type", format!("the function of the tool `{}` {what}: {why}", tool.name))
            };
            if let Some(why) = misfit(&params, takes) {
                return Err(wrong("takes other arguments than it is called with", why));
            }
            if let Some(why) = misfit(gives, &tool.result) {
                return Err(wrong("has another result type than its declaration", why));
            }
        }
        Ok(())
    }

    pub(super) fn can_answer(&self, code: &Code) -> Result<(), Error> {
        self.fits(code)?;
        for tool in &code.tools {
            self.handlers.tools.check(tool)?;
        }
        Ok(self.handlers.models.check(code)?)
    }
}

/// A model with replies that are written down beforehand; see [`Scripted`].
///
/// # Errors
/// The script is invalid.
pub fn scripted(script: &str) -> Result<Arc<dyn Provider>, Error> {
    Ok(Arc::new(Scripted::parse(script)?))
}
