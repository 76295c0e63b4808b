//! Functions of a Python module as tools: signatures out of annotations, defaults and docstrings. Nothing is
//! imported or run.
//!
//! Entry point: [`function_tools`].

use crate::py::{signature, type_of};
use core_ir::ToolDecl;
use diagnostics::FileId;
use python::{Limits, Sources, World};
use std::sync::Arc;

/// The public functions of a module, each as a tool with its handler. It is taken to change the world and to
/// give untrusted data.
///
/// A name that begins with `_` is not public, and neither is what stands in a class or in another function.
///
/// # Errors
/// The module is no Python.
///
/// # Examples
/// ```
/// use diagnostics::FileId;
/// let text = "def add(a: int, b: int = 1) -> int:\n    \"\"\"Adds.\"\"\"\n";
/// let tools = frontends::function_tools(FileId(0), "tools.py", text.into()).unwrap();
/// assert_eq!(tools[0].params[1].ty.to_string(), "Option Num");
/// assert_eq!(tools[0].description.as_deref(), Some("Adds."));
/// ```
pub fn function_tools(
    file: FileId,
    path: &str,
    text: Arc<str>,
) -> Result<Vec<ToolDecl>, Vec<diagnostics::Diagnostic>> {
    let mut sources = Sources::new();
    let module = sources.add(file, path, text);
    if let Some((span, message)) = sources.get(module).and_then(python::Source::syntax_error) {
        let message = format!("this is not valid Python: {message}");
        return Err(vec![diagnostics::Diagnostic::error(frontend_kit::doc::codes::SYNTAX, message, span)]);
    }
    let mut world = World::new(&sources, Limits::default());
    world.run(module);
    let mut tools: Vec<ToolDecl> = Vec::new();
    for (id, f) in world.functions() {
        if f.name.starts_with('_') || f.span.file != file {
            continue;
        }
        let mut decl = signature(&world, id, &f.name, f.name_span, |_, _| false);
        // Only what can be called from outside has a handler.
        if decl.handler.is_none() {
            continue;
        }
        if let Some(returns) = &f.returns {
            decl.result = type_of(&world, returns);
        }
        // The last definition of a name is the one that holds.
        tools.retain(|t| t.name != decl.name);
        tools.push(decl);
    }
    Ok(tools)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_of_any_type_may_be_left_out() {
        let text = "def f(a, b=5, c: 'list[str] | None' = None, d: int = 1):\n    return a\n";
        let tools = function_tools(FileId(0), "tools.py", text.into()).unwrap();
        let defaults: Vec<_> = tools[0].params.iter().map(|p| p.default.clone()).collect();
        let null = || Some(core_ir::Data::Null);
        // The type of the last one says so.
        assert_eq!(defaults, [None, null(), null(), None]);
    }
}
