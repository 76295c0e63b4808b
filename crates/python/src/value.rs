//! Values of evaluated expressions.
//!
//! Values with parts are numbers into tables of the [`World`](crate::World): two names for one list see each
//! other's changes, cycles cost nothing, and dropping is flat.

use diagnostics::Span;
use ruff_python_ast::{Expr, Stmt};
use std::sync::Arc;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            /// Component that made it.
            pub(crate) component: u32,
            pub(crate) index: u32,
        }
    )*};
}

ids! {
    /// Number of a [`List`].
    ListId,
    /// Number of a [`Dict`].
    DictId,
    /// Number of a text with holes.
    TextId,
    /// Number of an [`Object`].
    ObjectId,
    /// Number of a [`Function`].
    FunctionId,
    /// Number of a [`Class`].
    ClassId,
    /// Number of an [`Env`].
    EnvId,
    /// Number of the names of a module, a function that is called or a class.
    ScopeId,
}

/// A value and the place that made it.
#[derive(Clone, Debug)]
pub struct Value {
    /// Kind and content.
    pub kind: PyKind,
    /// The expression that made it: for a constant that was assigned to a name, the constant.
    pub span: Span,
    /// In a list or among arguments: it is there only under a condition that is not decided.
    pub maybe: bool,
    /// It is the default of a parameter or a field that is not given: a caller that is not seen may give
    /// another.
    pub is_default: bool,
}

/// Kinds of values.
#[derive(Clone, Debug)]
pub enum PyKind {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// A whole number that fits.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Str(Arc<str>),
    /// A text with parts that are not known.
    Text(TextId),
    /// A list, tuple or set.
    List(ListId),
    /// A dictionary.
    Dict(DictId),
    /// The result of a call of something outside the project, or an instance of one of its classes.
    Object(ObjectId),
    /// An attribute of an object that is not known, such as `result.final_output` or a method before it is
    /// called.
    Member(ObjectId, Arc<str>),
    /// A method of an instance of one of the project's classes.
    Bound(ObjectId, FunctionId),
    /// A method of a text, list or dictionary, before it is called.
    Method(Box<Value>, Arc<str>),
    /// A function of the project.
    Function(FunctionId),
    /// A class of the project.
    Class(ClassId),
    /// A module of the project, by its number in [`Sources`](crate::Sources).
    Module(usize),
    /// Something outside the project, by its qualified name: `crewai.Agent`, `builtins.str`.
    External(Arc<str>),
    /// A value from the environment.
    Env(EnvId),
    /// One of several values, depending on something that is not decided.
    Either(ListId),
    /// Not known, and why.
    Unknown(Arc<str>),
}

impl Value {
    /// A value at a place.
    pub fn new(kind: PyKind, span: Span) -> Value {
        Value { kind, span, maybe: false, is_default: false }
    }

    /// Makes an unknown value with its reason.
    pub fn unknown(why: impl Into<Arc<str>>, span: Span) -> Value {
        Value::new(PyKind::Unknown(why.into()), span)
    }

    /// The text, if it is known.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            PyKind::Str(s) => Some(s),
            _ => None,
        }
    }

    /// Returns true for `None`.
    pub fn is_none(&self) -> bool {
        matches!(self.kind, PyKind::None)
    }
}

/// A part of a text that is not wholly known.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Text.
    Text(Arc<str>),
    /// A value whose text is not known, and the expression as it is written.
    Hole(Value, Arc<str>),
}

/// Kind of a sequence or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// `[…]`.
    List,
    /// `(…)`.
    Tuple,
    /// `{…}`.
    Set,
}

/// A list.
#[derive(Clone, Debug)]
pub struct List {
    /// Its items as far as they are known.
    pub items: Vec<Value>,
    /// List, tuple or set.
    pub kind: ListKind,
    /// Place at which unknown items were added. There may be more items.
    pub open: Option<Span>,
}

/// A dictionary.
#[derive(Clone, Debug, Default)]
pub struct Dict {
    /// Keys with values, in order.
    pub entries: Vec<(Value, Value)>,
    /// Place at which unknown entries were added. There may be more entries.
    pub open: Option<Span>,
}

/// The key under which something that is not known stands among the entries that are, where it was spread: no
/// text is this key.
pub(crate) const SPREAD: &str = "**";

impl Dict {
    /// Returns true if a key marks an unknown mapping that was spread (`**other`).
    pub(crate) fn is_spread(key: &Value) -> bool {
        matches!(&key.kind, PyKind::External(name) if &**name == SPREAD)
    }

    /// Returns true if an unknown mapping was spread among the entries.
    pub(crate) fn has_spread(&self) -> bool {
        self.entries.iter().any(|(k, _)| Dict::is_spread(k))
    }
}

/// A value from the environment.
#[derive(Clone, Debug)]
pub struct Env {
    /// The variable's name, if it is known.
    pub name: Option<Arc<str>>,
    /// Value if the variable isn't set.
    pub default: Option<Value>,
}

/// An argument of a call.
#[derive(Clone, Debug)]
pub struct Arg {
    /// The keyword; none for an argument by position.
    pub name: Option<Arc<str>>,
    /// Its value.
    pub value: Value,
    /// The argument as it stands in the call: for `max_iter=N` all of that, though the value's place is
    /// elsewhere.
    pub span: Span,
}

/// A method that was called on an object.
#[derive(Clone, Debug)]
pub struct Method {
    /// Its name.
    pub name: Arc<str>,
    /// The object that represents its result, with the arguments.
    pub result: ObjectId,
}

/// The result of a call of something outside the project, or an instance of a class of the project.
#[derive(Clone, Debug)]
pub struct Object {
    /// Qualified name of the callee: `crewai.Agent`. For a method of an object, its callee, a dot and the
    /// method's name. For an item, the callee and `[]`.
    pub callee: Arc<str>,
    /// The class of the project that it is an instance of.
    pub class: Option<ClassId>,
    /// By position first, then by keyword, both in order.
    pub args: Vec<Arg>,
    /// Place of unknown arguments: `*args`, `**kwargs`.
    pub open: Option<Span>,
    /// The call.
    pub span: Span,
    /// For a method's result, the object that the method is of.
    pub base: Option<ObjectId>,
    /// Methods called on it, in order.
    pub calls: Vec<Method>,
    /// Attributes that were assigned, in order; the last of a name holds.
    pub attrs: Vec<(Arc<str>, Value)>,
    /// Made under a condition that is not decided.
    pub maybe: bool,
    /// True if it is made in an iteration that represents others of a loop, or in a function that calls
    /// itself. The number of times is unknown.
    pub repeated: bool,
    /// Maximal number of times that it is made where loops around it have a limit; 1 otherwise.
    pub times: u64,
    /// The sides of undecided `if` statements that it was made on: the place of each, and the number of the
    /// side.
    pub sides: Vec<(Span, usize)>,
    /// Made in a function that nothing calls as far as can be seen.
    pub explored: bool,
    /// The function of the project in which the call stands.
    pub within: Option<FunctionId>,
}

impl Object {
    /// The argument of a keyword.
    pub fn arg(&self, name: &str) -> Option<&Arg> {
        self.args.iter().find(|a| a.name.as_deref() == Some(name))
    }

    /// The argument by position, or else of a keyword.
    pub fn arg_at(&self, position: usize, name: &str) -> Option<&Arg> {
        self.args.iter().filter(|a| a.name.is_none()).nth(position).or_else(|| self.arg(name))
    }

    /// Returns whether at most one of two objects is made: they are on different sides of an `if`.
    pub fn excludes(&self, other: &Object) -> bool {
        self.sides.iter().any(|(at, side)| other.sides.iter().any(|(a, s)| a == at && s != side))
    }

    /// The last part of what was called: `Agent` of `crewai.Agent`.
    pub fn short(&self) -> &str {
        self.callee.rsplit('.').next().unwrap_or(&self.callee)
    }

    /// The package that what was called is of: `crewai` of `crewai.agent.Agent`.
    pub fn package(&self) -> &str {
        self.callee.split('.').next().unwrap_or(&self.callee)
    }

    /// The value that was last assigned to an attribute.
    pub fn attr(&self, name: &str) -> Option<&Value> {
        self.attrs.iter().rev().find(|(n, _)| &**n == name).map(|(_, v)| v)
    }
}

/// Way of passing a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// By position or keyword.
    Plain,
    /// By keyword only.
    Keyword,
    /// `*args`.
    Rest,
    /// `**kwargs`.
    Keywords,
}

/// A parameter of a function.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its name.
    pub name: Arc<str>,
    /// Its annotation, evaluated: `list[str]` is an object with the callee `builtins.list[]`, `A | B` one
    /// with the callee `|`.
    pub annotation: Option<Value>,
    /// Default value.
    pub default: Option<Value>,
    /// Way of passing it.
    pub kind: ParamKind,
    /// Span of the field.
    pub span: Span,
}

/// Body of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<'a> {
    Block(&'a [Stmt]),
    Expr(&'a Expr),
}

/// A function of the project.
#[derive(Clone, Debug)]
pub struct Function<'a> {
    /// Its name; `<lambda>` for none.
    pub name: Arc<str>,
    /// The module, the class and its name, with dots.
    pub qualified: Arc<str>,
    /// Its parameters, `self` included.
    pub params: Arc<[Param]>,
    /// The annotation of its result.
    pub returns: Option<Value>,
    /// Its documentation.
    pub doc: Option<Arc<str>>,
    /// Its decorators, from top to bottom.
    pub decorators: Arc<[Value]>,
    /// All of it.
    pub span: Span,
    /// Its name, or the word `lambda`.
    pub name_span: Span,
    /// True for `async def`.
    pub is_async: bool,
    /// The class that it is a method of.
    pub class: Option<ClassId>,
    /// The module that it stands in.
    pub module: usize,
    pub(crate) body: Body<'a>,
    pub(crate) closure: ScopeId,
    /// The names of its parameters, for its scope.
    pub(crate) names: Arc<[&'a str]>,
    pub(crate) entered: bool,
    /// The calls of it that the evaluation follows from its start; those of exploration do not count. A call
    /// in a loop with a limit counts as often.
    pub called: u64,
    /// True if one of these calls is made an unknown number of times.
    pub repeated: bool,
}

impl<'a> Function<'a> {
    /// The statements of its body; none for a lambda.
    pub fn body(&self) -> &'a [Stmt] {
        match self.body {
            Body::Block(body) => body,
            Body::Expr(_) => &[],
        }
    }

    /// The expression that a lambda gives.
    pub fn lambda(&self) -> Option<&'a Expr> {
        match self.body {
            Body::Block(_) => None,
            Body::Expr(expr) => Some(expr),
        }
    }

    /// Its parameters without the one that methods take first.
    pub fn own_params(&self) -> &[Param] {
        let first = usize::from(
            self.class.is_some() && self.params.first().is_some_and(|p| matches!(&*p.name, "self" | "cls")),
        );
        &self.params[first..]
    }
}

/// An annotated name in a class.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: Arc<str>,
    /// Its annotation, evaluated.
    pub annotation: Value,
    /// Default value.
    pub default: Option<Value>,
    /// Span of the field.
    pub span: Span,
}

/// A class of the project.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its name.
    pub name: Arc<str>,
    /// The module and its name, with dots.
    pub qualified: Arc<str>,
    /// Base classes.
    pub bases: Vec<Value>,
    /// Keywords beside the bases.
    pub keywords: Vec<Arg>,
    /// Its decorators.
    pub decorators: Vec<Value>,
    /// Attributes and methods that the class body defines, in order.
    pub attrs: Vec<(Arc<str>, Value)>,
    /// Annotated names, in order.
    pub fields: Vec<Field>,
    /// Its documentation.
    pub doc: Option<Arc<str>>,
    /// All of it.
    pub span: Span,
    /// Its name.
    pub name_span: Span,
    /// The module that it stands in.
    pub module: usize,
}

impl Class {
    /// Returns the class's own attribute of a name.
    pub fn attr(&self, name: &str) -> Option<&Value> {
        self.attrs.iter().rev().find(|(n, _)| &**n == name).map(|(_, v)| v)
    }
}
