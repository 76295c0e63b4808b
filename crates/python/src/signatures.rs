//! Signatures of the public functions of a module, as its annotations state them.
//!
//! Entry point: [`Sources::signatures`].
//!
//! Invariant: nothing is evaluated. A name has a meaning only if the module binds it once and under no
//! condition; of several definitions without a condition the last one holds.
//! Invariant: what is not certain is [`Hint::Other`], with the reason and its place.
//! Invariant: any text ends. Nested annotations, aliases of aliases and the number of classes are limited.

mod bindings;
mod classes;
mod hints;

use crate::Sources;
use crate::stmt::documentation;
use crate::uses::with_stack;
use bindings::{Binding, Bindings, CONDITIONAL};
use classes::Classes;
use diagnostics::Span;
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, Stmt, StmtFunctionDef};
use std::collections::HashMap;

/// A type as an annotation states it.
#[derive(Clone, Debug, PartialEq)]
pub enum Hint {
    /// `str`.
    Str,
    /// `int`.
    Int,
    /// `float`, or `int | float`.
    Float,
    /// `bool`.
    Bool,
    /// `None`.
    None,
    /// `datetime.date`.
    Date,
    /// `Any` or `object`, or no annotation of a result.
    Any,
    /// A list, set, or tuple of any length.
    List(Box<Hint>),
    /// Anything that can be iterated over, which need not be a list.
    Iterable(Box<Hint>),
    /// A tuple of as many parts.
    Tuple(Vec<Hint>),
    /// A dictionary.
    Dict(Box<Hint>, Box<Hint>),
    /// `T | None`.
    Option(Box<Hint>),
    /// Some texts.
    Texts(Vec<String>),
    /// Some whole numbers.
    Numbers(Vec<i64>),
    /// A class, by its number in [`Signatures::classes`].
    Class(usize),
    /// Anything else.
    Other(Reason),
}

/// Reason why an annotation, a class or a function can't be described, its remedy and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The reason, for a message: ``the type `bytes` is not known``.
    pub why: String,
    /// The remedy.
    pub help: String,
    /// The place.
    pub at: Span,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct HintedParam {
    /// Its name.
    pub name: String,
    /// Its type; `None` if it has no annotation.
    pub hint: Option<Hint>,
    /// True if a call may leave it out.
    pub is_optional: bool,
    /// Its place.
    pub span: Span,
}

/// A class whose instances are data.
#[derive(Clone, Debug, PartialEq)]
pub struct DataClass {
    /// Its name.
    pub name: String,
    /// Its instances.
    pub instances: Instances,
    /// Place of its name.
    pub span: Span,
}

/// See [`DataClass`].
#[derive(Clone, Debug, PartialEq)]
pub enum Instances {
    /// Instances of a dataclass, a `TypedDict` or a model of Pydantic.
    Records {
        /// The fields.
        fields: Vec<RecordField>,
        /// Reason why no caller can make one out of a record.
        not_given: Option<Reason>,
    },
    /// Members of an `Enum` of texts.
    Texts(Vec<String>),
    /// Members of an `Enum` of whole numbers.
    Numbers(Vec<i64>),
    /// The reason why that is not known.
    Unknown(Reason),
}

/// A field of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordField {
    /// Its name.
    pub name: String,
    /// Its type. It is an option if the field may be absent or is `None` by default.
    pub hint: Hint,
}

/// A function of a module.
#[derive(Clone, Debug, PartialEq)]
pub struct HintedFunction {
    /// The name that the module has for it.
    pub name: String,
    /// Its parameters.
    pub params: Vec<HintedParam>,
    /// Type of its result.
    pub returns: Hint,
    /// Its documentation.
    pub doc: Option<String>,
    /// Reason why no one can call it with these parameters by name.
    pub not_called: Option<Reason>,
    /// Place of its name.
    pub span: Span,
}

/// The public functions of a module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signatures {
    /// The functions, in the order of the text.
    pub functions: Vec<HintedFunction>,
    /// The classes that they mention.
    pub classes: Vec<DataClass>,
}

impl Sources {
    /// The signatures of the public functions of a module: those that `__all__` names, or else those that it
    /// defines with a name that does not begin with `_`.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// use python::Hint;
    /// let text = "def add(a: int, b: 'float' = 1) -> list[str]: ...\n";
    /// let mut sources = python::Sources::new();
    /// let module = sources.add(FileId(0), "m.py", text.into());
    /// let add = sources.signatures(module).functions.remove(0);
    /// assert_eq!(add.params[1].hint, Some(Hint::Float));
    /// assert!(add.params[1].is_optional);
    /// assert_eq!(add.returns, Hint::List(Box::new(Hint::Str)));
    /// ```
    pub fn signatures(&self, module: usize) -> Signatures {
        let mut reader =
            SignatureReader { sources: self, bindings: HashMap::new(), classes: Classes::default() };
        let functions = reader.functions(module);
        let classes = reader.read_classes();
        Signatures { functions, classes }
    }
}

/// Maximum number of imports and aliases between a name and its meaning.
const MAX_HOPS: usize = 16;

/// Reads signatures, and the modules that they lead to.
struct SignatureReader<'a> {
    sources: &'a Sources,
    bindings: HashMap<usize, Bindings<'a>>,
    classes: Classes<'a>,
}

/// A function among the names of a module.
enum Named<'a> {
    Function(usize, &'a StmtFunctionDef),
    /// It may be one.
    Uncertain(Reason),
}

impl<'a> SignatureReader<'a> {
    fn bindings(&mut self, module: usize) -> &Bindings<'a> {
        let sources = self.sources;
        self.bindings.entry(module).or_insert_with(|| {
            let body = sources.get(module).map_or(&[][..], |s| s.body());
            Bindings::of(body)
        })
    }

    /// The binding of a name in a module, and the module where that stands.
    fn binding(&mut self, module: usize, name: &str) -> Option<(usize, Binding<'a>)> {
        self.binding_within(module, name, 0)
    }

    fn binding_within(&mut self, module: usize, name: &str, hops: usize) -> Option<(usize, Binding<'a>)> {
        if hops > MAX_HOPS {
            return None;
        }
        let own = self.bindings(module).get(name).cloned();
        let stars = self.bindings(module).stars.clone();
        let mut found = own.map(|b| (b.at, module, b.binding));
        for star in stars {
            let Some(from) = self.sources.import(module, star.level, &star.module) else { continue };
            if name.starts_with('_') || from == module || found.as_ref().is_some_and(|(at, ..)| *at > star.at)
            {
                continue;
            }
            let Some((of, binding)) = self.binding_within(from, name, hops + 1) else { continue };
            found = Some(match star.is_certain {
                true => (star.at, of, binding),
                false => (
                    star.at,
                    module,
                    Binding::Uncertain { at: star.range, why: CONDITIONAL, is_function: true },
                ),
            });
        }
        found.map(|(_, of, binding)| (of, binding))
    }

    fn span(&self, module: usize, range: impl ruff_text_size::Ranged) -> Span {
        let nowhere = Span { file: diagnostics::FileId(0), start: 0, end: 0 };
        self.sources.get(module).map_or(nowhere, |s| s.span(range.range()))
    }

    fn functions(&mut self, module: usize) -> Vec<HintedFunction> {
        let names: Vec<&'a str> = self.bindings(module).public();
        let mut out = Vec::new();
        for name in names {
            match self.named(module, name) {
                Some(Named::Function(of, def)) => out.push(self.function(of, name, def)),
                Some(Named::Uncertain(reason)) => out.push(HintedFunction {
                    name: name.into(),
                    params: Vec::new(),
                    returns: Hint::Any,
                    doc: None,
                    span: reason.at,
                    not_called: Some(reason),
                }),
                None => {}
            }
        }
        out
    }

    /// The function of a name; none if it is something else.
    fn named(&mut self, module: usize, name: &str) -> Option<Named<'a>> {
        let (mut module, mut name) = (module, name.to_string());
        for _ in 0..MAX_HOPS {
            let (of, binding) = self.binding(module, &name)?;
            match binding {
                Binding::Function(def) => return Some(Named::Function(of, def)),
                Binding::Import { level, module: from, name: Some(imported) } => {
                    module = self.sources.import(of, level, &from)?;
                    name = imported;
                }
                Binding::Uncertain { at, why, is_function: true } => {
                    return Some(Named::Uncertain(Reason {
                        why: why.into(),
                        help: "define a function of another name, once and without a condition".into(),
                        at: self.span(of, at),
                    }));
                }
                _ => return None,
            }
        }
        None
    }

    fn function(&mut self, module: usize, name: &str, def: &'a StmtFunctionDef) -> HintedFunction {
        let mut not_called = self.uncallable(module, def);
        let mut params = Vec::new();
        let p = &def.parameters;
        for param in p.posonlyargs.iter().chain(&p.args).chain(&p.kwonlyargs) {
            let written = param.parameter.name.id.as_str();
            let span = self.span(module, param.parameter.range);
            let hint = param.parameter.annotation.as_deref().map(|a| self.hint(module, a));
            params.push(HintedParam {
                name: written.into(),
                hint,
                is_optional: param.default.is_some(),
                span,
            });
        }
        let rest = p.vararg.iter().map(|r| ("*", r)).chain(p.kwarg.iter().map(|r| ("**", r)));
        for (stars, rest) in rest {
            not_called.get_or_insert(Reason {
                why: format!("it takes any arguments, `{stars}{}`", diagnostics::clip(rest.name.id.as_str())),
                help: "define a function with named parameters that calls it".into(),
                at: self.span(module, rest.range),
            });
        }
        let returns = def.returns.as_deref().map_or(Hint::Any, |r| self.hint(module, r));
        HintedFunction {
            name: name.into(),
            params,
            returns,
            doc: documentation(&def.body).map(|d| d.to_string()),
            not_called,
            span: self.span(module, def.name.range),
        }
    }

    /// The reason why a function can't be called with its parameters by name, or gives something else.
    fn uncallable(&mut self, module: usize, def: &'a StmtFunctionDef) -> Option<Reason> {
        for decorator in &def.decorator_list {
            let callee = match &decorator.expression {
                Expr::Call(call) => &*call.func,
                other => other,
            };
            let known =
                self.qualified(module, callee).is_some_and(|name| TRANSPARENT.contains(&name.as_str()));
            if !known {
                return Some(Reason {
                    why: "its decorator may change what it takes and returns".into(),
                    help: "define a function without a decorator that calls it".into(),
                    at: self.span(module, decorator.range),
                });
            }
        }
        if let Some(param) = def.parameters.posonlyargs.first() {
            return Some(Reason {
                why: "it has a parameter that can't be given by name".into(),
                help: "remove the `/`".into(),
                at: self.span(module, param.parameter.range),
            });
        }
        let mut yields = Yields(false);
        def.body.iter().for_each(|s| yields.visit_stmt(s));
        yields.0.then(|| Reason {
            why: "it yields".into(),
            help: "return a list".into(),
            at: self.span(module, def.name.range),
        })
    }
}

/// Decorators that leave parameters and result as they are.
const TRANSPARENT: &[&str] = &[
    "functools.cache",
    "functools.lru_cache",
    "pydantic.validate_call",
    "typing.final",
    "typing_extensions.deprecated",
    "warnings.deprecated",
];

/// Finds a `yield` of a function itself.
struct Yields(bool);

impl<'a> SourceOrderVisitor<'a> for Yields {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if !self.0 && !matches!(statement, Stmt::FunctionDef(_) | Stmt::ClassDef(_)) {
            with_stack(|| walk_stmt(self, statement));
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Yield(_) | Expr::YieldFrom(_) => self.0 = true,
            Expr::Lambda(_) => {}
            _ if self.0 => {}
            _ => with_stack(|| walk_expr(self, expr)),
        }
    }
}
