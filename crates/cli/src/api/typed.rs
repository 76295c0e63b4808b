//! Pipelines with types of Rust.

use super::fit::{misfit, type_of};
use super::{Error, Pipeline, World};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::marker::PhantomData;

/// A pipeline that takes an `I` and gives an `O`, both compared with the program's own types when it was made
/// ([`Pipeline::typed`]).
///
/// # Examples
/// ```
/// use entail::{JsonSchema, Program};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, JsonSchema)]
/// struct Topic { topic: String }
/// #[derive(Deserialize, JsonSchema)]
/// struct Found { title: String }
/// #[derive(Deserialize, JsonSchema)]
/// struct Counted { title: u32 }
///
/// let program = Program::from_source(r#"
///     agent librarian { tools: [], prompt: "You know books." }
///     task title_of(topic: String) -> String by agent { prompt "A title about {topic}" }
///     pipeline main(topic: String) -> Obj{title: String} {
///         let title = run title_of with { topic: topic } by librarian;
///         return { title: title };
///     }
/// "#).unwrap();
/// assert!(program.main().unwrap().typed::<Topic, Found>().is_ok());
/// let error = program.main().unwrap().typed::<Topic, Counted>().unwrap_err();
/// assert_eq!(error.message, "`main` gives what `Counted` is not: `title` is Str, not Num");
/// ```
pub struct Typed<'p, I, O> {
    pipeline: &'p Pipeline,
    types: PhantomData<fn(I) -> O>,
}

impl<I, O> Clone for Typed<'_, I, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I, O> Copy for Typed<'_, I, O> {}

impl<I, O> fmt::Debug for Typed<'_, I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Typed").field(&self.pipeline.name()).finish()
    }
}

impl<'p, I, O> Typed<'p, I, O>
where
    I: Serialize + JsonSchema,
    O: DeserializeOwned + JsonSchema,
{
    pub(super) fn of(pipeline: &'p Pipeline) -> Result<Typed<'p, I, O>, Error> {
        let name = pipeline.name();
        let takes = pipeline.input().cloned().unwrap_or(core_ir::Type::Null);
        if let Some(why) = misfit(&type_of::<I>(true), &takes) {
            let message = format!("`{}` is not what `{name}` takes: {why}", I::schema_name());
            return Err(Error::new("type", message));
        }
        if let Some(why) = misfit(pipeline.output(), &type_of::<O>(false)) {
            let message = format!("`{name}` gives what `{}` is not: {why}", O::schema_name());
            return Err(Error::new("type", message));
        }
        Ok(Typed { pipeline, types: PhantomData })
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &'p Pipeline {
        self.pipeline
    }

    /// Runs it.
    ///
    /// # Errors
    /// The errors of [`Pipeline::run`].
    pub async fn run(&self, input: &I, world: &World) -> Result<O, Error> {
        self.pipeline.run(input, world).await
    }
}
