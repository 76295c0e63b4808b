//! The calls that a function makes, through the functions of the project that it calls.
//!
//! Entry points: [`World::calls_of`] and [`World::calls_of_method`]. The body is evaluated with unknown
//! arguments, as [`World::explore`] does, and what is made on the way is kept.

use crate::eval::World;
use crate::value::*;
use diagnostics::Span;
use std::collections::HashSet;
use std::sync::Arc;

/// The calls that the evaluation of a function makes.
#[derive(Clone, Debug, Default)]
pub struct CallsMade {
    /// Calls of what is outside the project, and instances of its classes, in order.
    pub objects: Vec<ObjectId>,
    /// Calls of values that are not known, with the names of attributes that lead to them, if there are any:
    /// `users.messages.send`.
    pub unresolved: Vec<(Option<Arc<str>>, Span)>,
    /// True if the evaluation was given up before the end. Then the calls include those of all statements,
    /// each visited once.
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
        self.watched(function, |w, args| {
            let span = w.function(function).span;
            w.call_body(function, None, args, Some(span), span);
        })
    }

    /// Makes an instance of a class with unknown arguments, calls a method of it, and returns the calls that
    /// this makes; `None` if the class has no such method.
    pub fn calls_of_method(&mut self, class: ClassId, method: &str) -> Option<CallsMade> {
        let (value, _) = self.class_lookup(class, method)?;
        let PyKind::Function(function) = value.kind else { return None };
        let span = self.function(function).span;
        Some(self.watched(function, |w, args| {
            let this = w.instance(class, Vec::new(), Some(span), span);
            w.call_body(function, Some(this), args, Some(span), span);
        }))
    }

    /// Calls a method of an instance with unknown arguments, and returns the calls that this makes.
    pub fn calls_of_bound(&mut self, this: ObjectId, method: FunctionId) -> CallsMade {
        let span = self.function(method).span;
        self.watched(method, |w, args| {
            w.call_body(method, Some(this), args, Some(span), span);
        })
    }

    /// An unknown value for each parameter with a default: whoever calls may give something else, so nothing
    /// that depends on the default is decided. A parameter without one is unknown anyway. Where an annotation
    /// names a client or dependencies that a framework passes in, it is an instance of that.
    fn any_arguments(&mut self, function: FunctionId) -> Vec<Arg> {
        let params = self.function(function).own_params().to_vec();
        let mut out = Vec::new();
        for p in params.iter().filter(|p| matches!(p.kind, ParamKind::Plain | ParamKind::Keyword)) {
            let passed = p.annotation.as_ref().and_then(|a| self.passed_in(a, p.span, 0));
            if passed.is_none() && p.default.is_none() {
                continue;
            }
            let value = passed.unwrap_or_else(|| Value::unknown(format!("parameter `{}`", p.name), p.span));
            out.push(Arg { name: Some(p.name.clone()), value, span: p.span });
        }
        out
    }

    /// An instance of the class that an annotation names, if it is no data: `httpx.AsyncClient`, or a class
    /// of the project with fields of that kind. `RunContext[Deps]` holds an instance of `Deps`.
    fn passed_in(&mut self, annotation: &Value, span: Span, depth: usize) -> Option<Value> {
        const MAX_DEPTH: usize = 4;
        if depth > MAX_DEPTH || !self.step(1, span) {
            return None;
        }
        match &annotation.kind {
            PyKind::External(name) if is_service(name) => Some(Value::new(
                PyKind::Object(self.new_object(name.clone(), Vec::new(), None, span, None)),
                span,
            )),
            PyKind::Class(class) => {
                let class = *class;
                // What a model fills in is data.
                if self.derives(class, |n| {
                    n.ends_with("BaseModel") || n.ends_with("TypedDict") || n.ends_with("Enum")
                }) {
                    return None;
                }
                let fields = self.fields(class);
                let id = self.instance(class, Vec::new(), Some(span), span);
                for field in fields {
                    if let Some(value) = self.passed_in(&field.annotation, field.span, depth + 1) {
                        self.object_mut(id).attrs.push((field.name, value));
                    }
                }
                Some(Value::new(PyKind::Object(id), span))
            }
            PyKind::Object(id) => {
                let object = self.object(*id);
                let name = object.callee.trim_end_matches("[]");
                let short = name.rsplit('.').next().unwrap_or(name);
                let args: Vec<Value> = object.args.iter().map(|a| a.value.clone()).collect();
                match short {
                    "|" | "Union" | "Optional" => {
                        let mut some = args.iter().filter(|a| !a.is_none());
                        let one = some.next().filter(|_| some.next().is_none())?;
                        self.passed_in(one, span, depth + 1)
                    }
                    "Annotated" => self.passed_in(args.first()?, span, depth + 1),
                    _ if is_service(name) => {
                        let callee: Arc<str> = name.into();
                        let held = args.first().and_then(|a| self.passed_in(a, span, depth + 1));
                        let id = self.new_object(callee, Vec::new(), None, span, None);
                        for attribute in HOLDERS.iter().filter(|_| held.is_some()) {
                            let held = held.clone().unwrap_or_else(|| Value::unknown("nothing", span));
                            self.object_mut(id).attrs.push(((*attribute).into(), held));
                        }
                        Some(Value::new(PyKind::Object(id), span))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn watched(&mut self, function: FunctionId, run: impl Fn(&mut Self, Vec<Arg>)) -> CallsMade {
        let exploring = std::mem::replace(&mut self.exploring, true);
        // A budget of its own: that of the module may be used up.
        let (steps, stop, limit) = (self.steps, self.stop, self.limits.steps);
        self.limits.steps = steps.saturating_add(MAX_STEPS);
        self.stop = self.limits.steps;
        // What is passed in is made by nobody here.
        let args = self.any_arguments(function);
        let first = self.own_objects(0).count();
        let before = self.unresolved.replace(Vec::new());
        let gave_up = std::mem::replace(&mut self.gave_up, false);
        run(self, args.clone());
        let cut = self.is_exhausted() || self.gave_up;
        self.gave_up = gave_up;
        if cut {
            // The rest of the body makes calls, too.
            self.limits.steps = self.steps.saturating_add(MAX_STEPS);
            self.stop = self.limits.steps;
            let in_order = self.in_order.replace(HashSet::new());
            run(self, args);
            self.in_order = in_order;
        }
        (self.steps, self.stop, self.limits.steps) = (steps, stop, limit);
        let unresolved = std::mem::replace(&mut self.unresolved, before).unwrap_or_default();
        self.exploring = exploring;
        let objects =
            self.own_objects(first).map(|(id, _)| id).filter(|id| !self.is_discarded(*id)).collect();
        CallsMade { objects, unresolved, cut }
    }

    /// Notes the call of an unknown value while calls are watched.
    pub(crate) fn note_unresolved(&mut self, name: Option<String>, span: Span) {
        if let Some(list) = &mut self.unresolved
            && list.len() < MAX_UNRESOLVED
        {
            list.push((name.map(Arc::from), span));
        }
    }
}

/// Attributes by which a context holds what a program passes to its tools.
const HOLDERS: &[&str] = &["deps", "context"];

/// Packages whose classes hold data.
const DATA: &[&str] = &[
    "abc",
    "builtins",
    "collections",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "io",
    "numpy",
    "pandas",
    "pathlib",
    "pydantic",
    "types",
    "typing",
    "typing_extensions",
    "uuid",
];

/// Returns true for the qualified name of a class outside the project whose instances are no data.
fn is_service(name: &str) -> bool {
    let package = name.split('.').next().unwrap_or(name);
    let short = name.rsplit('.').next().unwrap_or(name);
    !DATA.contains(&package) && short.starts_with(|c: char| c.is_ascii_uppercase())
}
