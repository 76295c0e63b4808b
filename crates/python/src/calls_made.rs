//! The calls that a function makes, through the functions of the project that it calls.
//!
//! Entry points: [`World::calls_of`] and [`World::calls_of_method`]. The body is evaluated with unknown
//! arguments, as [`World::explore`] does, and what is made on the way is kept.

use crate::eval::World;
use crate::value::*;
use diagnostics::Span;
use std::sync::Arc;

/// The calls that the evaluation of a function makes.
#[derive(Clone, Debug, Default)]
pub struct CallsMade {
    /// Calls of what is outside the project, and instances of its classes, in order.
    pub objects: Vec<ObjectId>,
    /// Calls of values that are not known, with the last name that is written, if there is one.
    pub unresolved: Vec<(Option<Arc<str>>, Span)>,
    /// True if the evaluation was given up before the end.
    pub cut: bool,
}

/// Steps of the evaluation of one function.
const MAX_STEPS: usize = 60_000;
/// Calls of unknown values that are kept.
const MAX_UNRESOLVED: usize = 256;

impl<'a> World<'a> {
    /// Evaluates a function with unknown arguments and returns the calls that it makes, those of the
    /// project's functions that it calls included.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// use python::{Limits, Sources, World};
    /// let mut sources = Sources::new();
    /// let text = "import requests\ndef get(u):\n    return requests.get(u)\ndef f(x):\n    return get(x)\n";
    /// let main = sources.add(FileId(0), "m.py", text.into());
    /// let mut world = World::new(&sources, Limits::default());
    /// world.run(main);
    /// let f = world.functions().find(|(_, f)| &*f.name == "f").unwrap().0;
    /// let made = world.calls_of(f);
    /// assert_eq!(&*world.object(made.objects[0]).callee, "requests.get");
    /// ```
    pub fn calls_of(&mut self, function: FunctionId) -> CallsMade {
        self.watched(|w| {
            let span = w.function(function).span;
            let args = w.any_arguments(function);
            w.call_body(function, None, args, Some(span), span);
        })
    }

    /// Makes an instance of a class with unknown arguments, calls a method of it, and returns the calls that
    /// this makes; `None` if the class has no such method.
    pub fn calls_of_method(&mut self, class: ClassId, method: &str) -> Option<CallsMade> {
        let (value, _) = self.class_lookup(class, method)?;
        let PyKind::Function(function) = value.kind else { return None };
        let span = self.function(function).span;
        Some(self.watched(|w| {
            let this = w.instance(class, Vec::new(), Some(span), span);
            let args = w.any_arguments(function);
            w.call_body(function, Some(this), args, Some(span), span);
        }))
    }

    /// Calls a method of an instance with unknown arguments, and returns the calls that this makes.
    pub fn calls_of_bound(&mut self, this: ObjectId, method: FunctionId) -> CallsMade {
        let span = self.function(method).span;
        self.watched(|w| {
            let args = w.any_arguments(method);
            w.call_body(method, Some(this), args, Some(span), span);
        })
    }

    /// An unknown value for each parameter with a default: whoever calls may give something else, so nothing
    /// that depends on the default is decided. A parameter without one is unknown anyway.
    fn any_arguments(&self, function: FunctionId) -> Vec<Arg> {
        let any = |p: &Param| Arg {
            name: Some(p.name.clone()),
            value: Value::unknown(format!("parameter `{}`", p.name), p.span),
            span: p.span,
        };
        let named = |p: &&Param| matches!(p.kind, ParamKind::Plain | ParamKind::Keyword);
        self.function(function).params.iter().filter(named).filter(|p| p.default.is_some()).map(any).collect()
    }

    fn watched(&mut self, run: impl FnOnce(&mut Self)) -> CallsMade {
        let first = self.own_objects(0).count();
        let exploring = std::mem::replace(&mut self.exploring, true);
        let before = self.unresolved.replace(Vec::new());
        // A budget of its own: that of the module may be used up.
        let (steps, stop, limit) = (self.steps, self.stop, self.limits.steps);
        self.limits.steps = steps.saturating_add(MAX_STEPS);
        self.stop = self.limits.steps;
        run(self);
        let cut = self.is_exhausted();
        (self.steps, self.stop, self.limits.steps) = (steps, stop, limit);
        let unresolved = std::mem::replace(&mut self.unresolved, before).unwrap_or_default();
        self.exploring = exploring;
        let objects =
            self.own_objects(first).map(|(id, _)| id).filter(|id| !self.is_discarded(*id)).collect();
        CallsMade { objects, unresolved, cut }
    }

    /// Notes the call of an unknown value while calls are watched.
    pub(crate) fn note_unresolved(&mut self, name: Option<&str>, span: Span) {
        if let Some(list) = &mut self.unresolved
            && list.len() < MAX_UNRESOLVED
        {
            list.push((name.map(Arc::from), span));
        }
    }
}
