//! The public functions of a module of Python as declarations of the language `.agent`, which
//! `use python "tools.py";` imports.
//!
//! Entry point: [`tool_module`].
//!
//! Invariant: nothing is run, and no type is narrower than the annotation. What the language can't say of a
//! result is `Any`. A function of which it can't say what a parameter takes is withheld.
//! Invariant: every tool writes, and what it returns is untrusted, until a policy says otherwise.

use diagnostics::{FileId, Span};
use python::{DataClass, Hint, HintedFunction, Instances, Reason, Signatures, Sources};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;
use syntax::agent::keywords::{Role, is_reserved, words};
use syntax::agent::spelling::{comment, is_name, string, tool_of};

/// Parts of a type with those of the classes that it mentions. One with more is not declared.
const MAX_PARTS: usize = 2_000;

/// The functions of a module as tools.
#[derive(Clone, Debug, Default)]
pub struct ToolModule {
    /// The declarations.
    pub text: String,
    /// The functions that can't be declared, each with the reason.
    pub withheld: Vec<(String, Reason)>,
    /// The tools and types that it declares.
    pub declared: Vec<Declared>,
}

/// A tool, or the type of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// Its signature, `(text: String) -> Bool`, or its type.
    pub signature: String,
    /// Place of what it declares, in the module or in one that it imports.
    pub at: Span,
}

/// Declares the public functions of a module. `path` is that of the module for whoever calls them.
///
/// # Errors
/// The module is not valid Python; the reason for a message.
///
/// # Examples
/// ```
/// use diagnostics::FileId;
/// let text = "def refund(order: str, amount: float = 1) -> bool:\n    \"\"\"Refunds an order.\"\"\"\n";
/// let mut sources = python::Sources::new();
/// let module = sources.add(FileId(0), "shop/tools.py", text.into());
/// let tools = frontends::tool_module(&sources, module, "shop/tools.py").unwrap();
/// let tool = "-- Refunds an order.\ntool refund(order: String, amount: Option[Number] = null) -> Bool as \
///     \"tools__refund\" writes untrusted { python \"shop/tools.py\" \"refund\" }\n";
/// assert!(tools.text.ends_with(tool));
/// ```
pub fn tool_module(sources: &Sources, module: usize, path: &str) -> Result<ToolModule, String> {
    let Some(source) = sources.get(module) else { return Err("no such module".into()) };
    if let Some((at, message)) = source.syntax_error() {
        let line = source.text.get(..at.start as usize).map_or(1, |t| t.matches('\n').count() + 1);
        return Err(format!("it is not valid Python: {message} (line {line})"));
    }
    let signatures = sources.signatures(module);
    Ok(Writer::new(&signatures, path).module(&signatures))
}

/// Modules that one module imports, itself or through others, at most.
const MAX_MODULES: usize = 500;

/// A module with the modules of its project that it imports, directly or through others. `read` gives the
/// text of the file at a path, if there is one in the project.
///
/// # Examples
/// ```
/// use diagnostics::FileId;
/// let read = |path: &str| (path == "app/models.py").then(|| (FileId(1), "x = 1\n".into()));
/// let (sources, main) =
///     frontends::with_imports(FileId(0), "app/tools.py", "import json, models\n".into(), read);
/// assert_eq!((sources.len(), main), (2, 0));
/// ```
pub fn with_imports(
    file: FileId,
    path: &str,
    text: Arc<str>,
    mut read: impl FnMut(&str) -> Option<(FileId, Arc<str>)>,
) -> (Sources, usize) {
    let mut sources = Sources::new();
    let main = sources.add(file, path, text);
    let mut absent = HashSet::new();
    let mut module = main;
    while module < sources.len() {
        for places in sources.sought(module) {
            for path in places {
                if sources.by_path(&path).is_some() {
                    break;
                }
                if sources.len() >= MAX_MODULES || absent.contains(&path) {
                    continue;
                }
                match read(&path) {
                    Some((file, text)) => {
                        sources.add(file, &path, text);
                        break;
                    }
                    None => drop(absent.insert(path)),
                }
            }
        }
        module += 1;
    }
    (sources, main)
}

/// Where a value goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Argument,
    Result,
}

/// A class as a type.
struct ClassType {
    name: String,
    /// The reason why the language has no such type.
    unknown: Option<Reason>,
    /// The reason why no argument can be of it.
    not_given: Option<Reason>,
}

struct Writer<'s> {
    classes: &'s [DataClass],
    types: Vec<ClassType>,
    path: &'s str,
}

impl<'s> Writer<'s> {
    fn new(signatures: &'s Signatures, path: &'s str) -> Writer<'s> {
        let classes = &signatures.classes[..];
        let mut taken: HashSet<String> = words(Role::Type)
            .chain(["Any", "Date", "Int", "Map", "Number", "Obj", "String"])
            .map(String::from)
            .collect();
        let mut types = Vec::new();
        for class in classes {
            let mut name = class.name.clone();
            while is_reserved(&name) || !taken.insert(name.clone()) {
                name.push('_');
            }
            let unknown = unknown(class);
            types.push(ClassType { name, unknown, not_given: None });
        }
        let mut writer = Writer { classes, types, path };
        writer.exclude_endless();
        writer.exclude_large();
        writer.find_not_given();
        writer
    }

    /// Classes whose values contain another value of the class, without an end, are no types.
    fn exclude_endless(&mut self) {
        let mut ends: Vec<bool> = self.types.iter().map(|t| t.unknown.is_some()).collect();
        loop {
            let before = ends.iter().filter(|e| **e).count();
            for (i, class) in self.classes.iter().enumerate() {
                let Instances::Records { fields, .. } = &class.instances else {
                    ends[i] = true;
                    continue;
                };
                ends[i] |= fields.iter().all(|f| match &f.hint {
                    Hint::Class(other) => ends.get(*other).copied().unwrap_or(true),
                    Hint::Tuple(parts) => !parts.iter().any(|p| matches!(p, Hint::Class(c) if !ends[*c])),
                    _ => true,
                });
            }
            if ends.iter().filter(|e| **e).count() == before {
                break;
            }
        }
        for i in (0..ends.len()).filter(|i| !ends[*i]) {
            self.exclude(i, "contains itself without an end", "make the field `Optional`");
        }
    }

    fn exclude(&mut self, class: usize, why: &str, help: &str) {
        let DataClass { name, span, .. } = &self.classes[class];
        let reason = Reason {
            why: format!("the class `{}` {why}", diagnostics::clip(name)),
            help: help.into(),
            at: *span,
        };
        self.types[class].unknown.get_or_insert(reason);
    }

    fn exclude_large(&mut self) {
        let mut sizes = vec![None; self.classes.len()];
        for class in 0..self.classes.len() {
            if self.class_size(class, &mut sizes, 0) > MAX_PARTS {
                self.exclude(class, "has too many parts", "state a type of fewer parts");
            }
        }
    }

    /// Number of parts of a class with those that it mentions.
    fn class_size(&self, class: usize, sizes: &mut Vec<Option<usize>>, depth: usize) -> usize {
        const MAX_DEPTH: usize = 64;
        if depth > MAX_DEPTH {
            return MAX_PARTS + 1;
        }
        if let Some(Some(size)) = sizes.get(class) {
            return *size;
        }
        // Where it is met again, it is mentioned by its name.
        sizes[class] = Some(1);
        let size = match &self.classes[class].instances {
            _ if self.types[class].unknown.is_some() => 1,
            Instances::Records { fields, .. } => {
                fields.iter().fold(1usize, |n, f| n.saturating_add(self.hint_size(&f.hint, sizes, depth + 1)))
            }
            Instances::Texts(all) => all.len(),
            Instances::Numbers(all) => all.len(),
            Instances::Unknown(_) => 1,
        };
        sizes[class] = Some(size);
        size
    }

    fn hint_size(&self, hint: &Hint, sizes: &mut Vec<Option<usize>>, depth: usize) -> usize {
        match hint {
            Hint::List(of) | Hint::Iterable(of) | Hint::Option(of) => {
                self.hint_size(of, sizes, depth).saturating_add(1)
            }
            Hint::Dict(key, value) => {
                self.hint_size(key, sizes, depth).saturating_add(self.hint_size(value, sizes, depth))
            }
            Hint::Tuple(parts) => {
                parts.iter().fold(1usize, |n, p| n.saturating_add(self.hint_size(p, sizes, depth)))
            }
            Hint::Texts(all) => all.len(),
            Hint::Numbers(all) => all.len(),
            Hint::Class(class) => self.class_size(*class, sizes, depth),
            _ => 1,
        }
    }

    /// Finds the classes of which no argument can be: their own fields, or those that they mention, say too
    /// little.
    fn find_not_given(&mut self) {
        let mut mentioned_by: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut todo = Vec::new();
        for (i, class) in self.classes.iter().enumerate() {
            let mut reason = self.types[i].unknown.clone();
            if let Instances::Records { fields, not_given } = &class.instances {
                reason = reason.or_else(|| not_given.clone());
                for field in fields {
                    let mut mentioned = Vec::new();
                    let own = self.unsaid(&field.hint, &mut mentioned);
                    mentioned.into_iter().for_each(|m| mentioned_by.entry(m).or_default().push(i));
                    let of = diagnostics::clip(&class.name);
                    reason = reason.or(own.map(|u| Reason {
                        why: format!("the field `{}` of `{of}`: {}", diagnostics::clip(&field.name), u.why),
                        ..u.at(class.span)
                    }));
                }
            }
            if let Some(reason) = reason {
                self.types[i].not_given = Some(reason);
                todo.push(i);
            }
        }
        while let Some(class) = todo.pop() {
            let reason = self.types[class].not_given.clone();
            for by in mentioned_by.get(&class).into_iter().flatten() {
                if self.types[*by].not_given.is_none() {
                    self.types[*by].not_given = reason.clone();
                    todo.push(*by);
                }
            }
        }
    }

    fn module(&self, signatures: &Signatures) -> ToolModule {
        let mut out = ToolModule::default();
        let mut tools = String::new();
        let mut names = HashSet::new();
        let mut used = HashSet::new();
        for function in &signatures.functions {
            match self.tool(function, &mut names, &mut used) {
                Ok((declared, text)) => {
                    tools.push_str(&text);
                    out.declared.push(declared);
                }
                Err(reason) => out.withheld.push((function.name.clone(), *reason)),
            }
        }
        out.text = format!("-- Functions of the module `{}`.\n", comment(self.path));
        let mut todo: Vec<usize> = used.iter().copied().collect();
        while let Some(class) = todo.pop() {
            if let Instances::Records { fields, .. } = &self.classes[class].instances {
                for field in fields {
                    let mut mentioned = Vec::new();
                    _ = self.unsaid(&field.hint, &mut mentioned);
                    let new = mentioned.into_iter().filter(|m| self.types[*m].unknown.is_none());
                    todo.extend(new.filter(|m| used.insert(*m)).collect::<Vec<_>>());
                }
            }
        }
        for (i, class) in (0..self.classes.len()).filter(|i| used.contains(i)).enumerate() {
            let (name, signature) = (self.types[class].name.clone(), self.body(class));
            // Writing to a string cannot fail.
            _ = writeln!(out.text, "{}type {name} = {signature};", if i == 0 { "\n" } else { "" });
            out.declared.push(Declared { name, signature, at: self.classes[class].span });
        }
        out.text.push_str(&tools);
        out
    }

    /// The type of a class.
    fn body(&self, class: usize) -> String {
        match &self.classes[class].instances {
            Instances::Records { fields, .. } => {
                let field = |f: &python::RecordField| format!("{}: {}", f.name, self.result(&f.hint));
                format!("Obj{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
            }
            Instances::Texts(all) => texts(all),
            Instances::Numbers(all) => numbers(all),
            Instances::Unknown(_) => "Any".into(),
        }
    }

    fn tool(
        &self,
        function: &HintedFunction,
        names: &mut HashSet<String>,
        used: &mut HashSet<usize>,
    ) -> Result<(Declared, String), Box<Reason>> {
        if let Some(reason) = &function.not_called {
            return Err(Box::new(reason.clone()));
        }
        let reason = |why: String, help: &str, at| Box::new(Reason { why, help: help.into(), at });
        let mut name = function.name.clone();
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            let why = "its name has characters that no name of a tool has".to_string();
            return Err(reason(why, "define a function with a plain name that calls it", function.span));
        }
        while is_reserved(&name) || name == "final" || !names.insert(name.clone()) {
            name.push('_');
        }
        let mut params = Vec::new();
        let mut mentioned = Vec::new();
        // Those that a call must give come first.
        let (given, optional): (Vec<_>, Vec<_>) = function.params.iter().partition(|p| !p.is_optional);
        for p in given.into_iter().chain(optional) {
            let shown = diagnostics::clip(&p.name);
            if !is_name(&p.name) {
                if p.is_optional {
                    continue;
                }
                let why = format!("`{shown}` can't be the name of a parameter");
                return Err(reason(why, "give it another name", p.span));
            }
            let Some(hint) = &p.hint else {
                let help = format!("state its type: `{shown}: str`");
                return Err(reason(format!("its parameter `{shown}` has no annotation"), &help, p.span));
            };
            let ty = self
                .argument(hint, &mut mentioned)
                .map_err(|u| reason(format!("its parameter `{shown}`: {}", u.why), &u.help, p.span))?;
            params.push(match (p.is_optional, hint) {
                (true, Hint::Option(_)) => format!("{}: {ty} = null", p.name),
                (true, _) => format!("{}: Option[{ty}] = null", p.name),
                (false, _) => format!("{}: {ty}", p.name),
            });
        }
        _ = self.unsaid(&function.returns, &mut mentioned);
        used.extend(mentioned.into_iter().filter(|m| self.types[*m].unknown.is_none()));
        let signature = format!("({}) -> {}", params.join(", "), self.result(&function.returns));
        let mut out = String::from("\n");
        let about = function.doc.as_deref().map(|d| comment(crate::py::summary(d)));
        // Writing to a string cannot fail.
        if let Some(about) = about.filter(|d| !d.is_empty()) {
            _ = writeln!(out, "-- {about}");
        }
        _ = writeln!(
            out,
            "tool {name}{signature} as {} writes untrusted {{ python {} {} }}",
            string(&tool_of(stem(self.path), &name)),
            string(self.path),
            string(&function.name)
        );
        Ok((Declared { name, signature, at: function.span }, out))
    }

    /// The type of an argument.
    fn argument(&self, hint: &Hint, mentioned: &mut Vec<usize>) -> Result<String, Unsaid> {
        let mut classes = Vec::new();
        if let Some(unsaid) = self.unsaid(hint, &mut classes) {
            return Err(unsaid);
        }
        if let Some(Reason { why, help, .. }) = classes.iter().find_map(|c| self.types[*c].not_given.clone())
        {
            return Err(Unsaid { why, help });
        }
        mentioned.extend(classes);
        let mut parts = MAX_PARTS;
        Ok(self.written(hint, Direction::Argument, &mut parts).unwrap_or_else(|| "Any".into()))
    }

    /// The type of a result.
    fn result(&self, hint: &Hint) -> String {
        let mut parts = MAX_PARTS;
        self.written(hint, Direction::Result, &mut parts).unwrap_or_else(|| "Any".into())
    }

    /// A type as the language writes it; none if it has too many parts. It is as deep as annotations are.
    fn written(&self, hint: &Hint, to: Direction, left: &mut usize) -> Option<String> {
        *left = left.checked_sub(1)?;
        Some(match hint {
            Hint::Str => "String".into(),
            Hint::Int => "Int".into(),
            Hint::Float => "Number".into(),
            Hint::Bool => "Bool".into(),
            Hint::Date => "Date".into(),
            Hint::None | Hint::Any | Hint::Other(_) => "Any".into(),
            Hint::Iterable(_) if to == Direction::Result => "Any".into(),
            Hint::List(of) | Hint::Iterable(of) => format!("List[{}]", self.written(of, to, left)?),
            Hint::Tuple(parts) => {
                let of = match parts.split_first() {
                    Some((first, rest)) if rest.iter().all(|p| p == first) => {
                        self.written(first, to, left)?
                    }
                    _ => "Any".into(),
                };
                format!("List[{of}] where length(it) == {}", parts.len())
            }
            Hint::Dict(key, value) => {
                let key = match &**key {
                    Hint::Texts(_) => self.written(key, to, left)?,
                    Hint::Class(c) if self.is_texts(*c) => self.types[*c].name.clone(),
                    // JSON has no other keys.
                    _ => "String".into(),
                };
                format!("Map[{key}, {}]", self.written(value, to, left)?)
            }
            Hint::Option(of) => format!("Option[{}]", self.written(of, to, left)?),
            Hint::Texts(all) => {
                *left = left.checked_sub(all.len())?;
                texts(all)
            }
            Hint::Numbers(all) => {
                *left = left.checked_sub(all.len())?;
                numbers(all)
            }
            Hint::Class(class) => match &self.types[*class] {
                ClassType { unknown: None, name, .. } => name.clone(),
                _ => "Any".into(),
            },
        })
    }

    /// The reason why no argument can be of a type, apart from those of the classes that it mentions.
    fn unsaid(&self, hint: &Hint, mentioned: &mut Vec<usize>) -> Option<Unsaid> {
        let no = |why: &str, help: &str| Some(Unsaid { why: why.into(), help: help.into() });
        match hint {
            Hint::Other(reason) => no(&reason.why, &reason.help),
            Hint::None => no("it is always `None`", "remove it"),
            Hint::List(of) | Hint::Iterable(of) | Hint::Option(of) => self.unsaid(of, mentioned),
            Hint::Tuple(parts) => {
                let found = parts.iter().fold(None, |found, p| found.or(self.unsaid(p, mentioned)));
                let differ = parts.windows(2).any(|pair| pair[0] != pair[1]);
                let tuple = || no("its type is a tuple of several types", "use a dataclass");
                found.or_else(|| if differ { tuple() } else { None })
            }
            Hint::Dict(key, value) => {
                let is_text = match &**key {
                    Hint::Str | Hint::Any | Hint::Texts(_) => true,
                    Hint::Class(c) => self.is_texts(*c),
                    _ => false,
                };
                if let Hint::Class(c) = &**key {
                    mentioned.push(*c);
                }
                let found = self.unsaid(value, mentioned);
                match is_text {
                    true => found,
                    false => no("the keys of its dictionary are no texts", "use `dict[str, …]`"),
                }
            }
            Hint::Class(class) => {
                mentioned.push(*class);
                None
            }
            _ => None,
        }
    }

    fn is_texts(&self, class: usize) -> bool {
        matches!(self.classes[class].instances, Instances::Texts(_)) && self.types[class].unknown.is_none()
    }
}

/// The reason why the language can't say what an argument is, and the remedy.
struct Unsaid {
    why: String,
    help: String,
}

impl Unsaid {
    fn at(self, at: Span) -> Reason {
        Reason { why: self.why, help: self.help, at }
    }
}

fn unknown(class: &DataClass) -> Option<Reason> {
    let reason = |why: String| {
        Some(Reason { why, help: "state a type with plain names and values".into(), at: class.span })
    };
    let name = diagnostics::clip(&class.name);
    if !is_plain(&class.name) {
        return reason(format!("`{name}` can't be the name of a type"));
    }
    match &class.instances {
        Instances::Unknown(reason) => Some(reason.clone()),
        Instances::Records { fields, .. } => match fields.iter().find(|f| !is_name(&f.name)) {
            Some(field) => reason(format!(
                "the field `{}` of `{name}` can't have this name",
                diagnostics::clip(&field.name)
            )),
            None => None,
        },
        Instances::Texts(_) | Instances::Numbers(_) => None,
    }
}

/// Returns whether a name of Python has the characters of a name of the language.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn texts(all: &[String]) -> String {
    all.iter().map(|t| string(t)).collect::<Vec<_>>().join(" | ")
}

/// Some numbers as a type.
fn numbers(all: &[i64]) -> String {
    match all.iter().all(|n| *n >= 0) {
        true => all.iter().map(i64::to_string).collect::<Vec<_>>().join(" | "),
        // Literals have no sign.
        false => "Int".into(),
    }
}

/// The name of a module, out of its path.
fn stem(path: &str) -> &str {
    let path = path.strip_suffix(".py").unwrap_or(path);
    let path = path.strip_suffix("/__init__").unwrap_or(path);
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostics::Sources as Files;

    /// The declarations of a module that imports others. They are a program without findings.
    fn module_of(text: &str, others: &[(&str, &str)]) -> ToolModule {
        let mut files = Files::new();
        let mut sources = Sources::new();
        let module = sources.add(files.add("tools.py", text), "tools.py", text.into());
        for (path, text) in others {
            sources.add(files.add(*path, *text), path, (*text).into());
        }
        let tools = tool_module(&sources, module, "tools.py").unwrap();
        let (module, found) = agentlang::check(files.add("declared", tools.text.as_str()), &tools.text);
        assert!(module.is_some() && found.is_empty(), "{found:?}\n{}", tools.text);
        tools
    }

    /// The signature of the last function of a module, or the reason why it has none.
    fn signature(text: &str) -> String {
        let tools = module_of(text, &[]);
        match (tools.withheld.last(), tools.text.lines().filter_map(|l| l.strip_prefix("tool ")).next_back())
        {
            (Some((_, reason)), _) => format!("no: {}", reason.why),
            (None, Some(tool)) => tool.split(" as \"").next().unwrap().to_string(),
            (None, None) => "nothing".into(),
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(signature(text), expected, "{text}");
    }

    #[test]
    fn annotations_become_types() {
        let typing = "from typing import *\nimport typing as t\nfrom collections.abc import Sequence\n";
        let cases = [
            ("x: int", "x: Int"),
            ("x: float", "x: Number"),
            ("x: int | float", "x: Number"),
            ("x: bool", "x: Bool"),
            ("x: str", "x: String"),
            ("x: 'str'", "x: String"),
            ("x: object", "x: Any"),
            ("x: t.Any", "x: Any"),
            ("x: list", "x: List[Any]"),
            ("x: list[str]", "x: List[String]"),
            ("x: Sequence[List[int]]", "x: List[List[Int]]"),
            ("x: set[int]", "x: List[Int]"),
            ("x: tuple[int, ...]", "x: List[Int]"),
            ("x: tuple[float, float]", "x: List[Number] where length(it) == 2"),
            ("x: Iterable[str]", "x: List[String]"),
            ("x: dict", "x: Map[String, Any]"),
            ("x: Dict[str, bool]", "x: Map[String, Bool]"),
            ("x: dict[Literal['a', 'b'], int]", "x: Map[\"a\" | \"b\", Int]"),
            ("x: Optional[str]", "x: Option[String]"),
            ("x: 'str | None'", "x: Option[String]"),
            ("x: Union[str, None] = 'a'", "x: Option[String] = null"),
            ("x: str = 'a', *, y: int", "y: Int, x: Option[String] = null"),
            ("x: int = None", "x: Option[Int] = null"),
            ("x: Literal['a', 'b', None]", "x: Option[\"a\" | \"b\"]"),
            ("x: Literal['a'] | Literal['b']", "x: \"a\" | \"b\""),
            ("x: Literal[1, 2]", "x: 1 | 2"),
            ("x: Literal[-1, 1]", "x: Int"),
            ("x: Literal[True, False]", "x: Bool"),
            ("x: Literal['', '\\n\\\"']", "x: \"\" | \"\\n\\\"\""),
            ("x: Annotated[int, 'how many']", "x: Int"),
        ];
        for (params, expected) in cases {
            check(&format!("{typing}def f({params}) -> bool: ...\n"), &format!("f({expected}) -> Bool"));
        }
        let results = [
            ("None", "Any"),
            ("bytes", "Any"),
            ("list[bytes]", "List[Any]"),
            ("str | int", "Any"),
            ("tuple[int, str]", "List[Any] where length(it) == 2"),
            ("dict[int, str]", "Map[String, String]"),
            ("Iterable[str]", "Any"),
            ("Iterator[str]", "Any"),
            ("Nothing", "Any"),
        ];
        for (result, expected) in results {
            check(&format!("{typing}def f() -> {result}: ...\n"), &format!("f() -> {expected}"));
        }
        check("def f(): ...\n", "f() -> Any");
        check("async def f() -> int: ...\n", "f() -> Int");
        check("from datetime import date\ndef f(d: date) -> date: ...\n", "f(d: Date) -> Date");
        check("import datetime\ndef f() -> datetime.datetime: ...\n", "f() -> Any");
        check(
            "from typing import NewType\nId = NewType('Id', str)\ndef f(i: Id) -> Id: ...\n",
            "f(i: String) -> String",
        );
        check("type Ids = list[str]\ndef f(i: Ids): ...\n", "f(i: List[String]) -> Any");
    }

    #[test]
    fn functions_that_the_language_cannot_describe_are_withheld() {
        let cases = [
            ("def f(x): ...", "its parameter `x` has no annotation"),
            ("def f(x: bytes): ...", "its parameter `x`: the type `bytes` is not known"),
            ("def f(x: 'Later'): ...", "its parameter `x`: the type `'Later'` is not known"),
            ("def f(x: str | int): ...", "its parameter `x`: `str | int` is one of several types"),
            ("def f(x: dict[int, str]): ...", "its parameter `x`: the keys of its dictionary are no texts"),
            ("def f(x: tuple[int, str]): ...", "its parameter `x`: its type is a tuple of several types"),
            ("def f(x: None): ...", "its parameter `x`: it is always `None`"),
            ("def f(x: [str]): ...", "its parameter `x`: `[str]` is no type that Entail reads"),
            ("str = 5\ndef f(x: str): ...", "its parameter `x`: `5` is no type that Entail reads"),
            ("def f(*args: int): ...", "it takes any arguments, `*args`"),
            ("def f(x: int, **more: int): ...", "it takes any arguments, `**more`"),
            ("def f(x: int, /): ...", "it has a parameter that can't be given by name"),
            (
                "def f(if_: int, tool: int = 1, let: int = 2): ...\ndef g(let: int): ...",
                "`let` can't be the name of a parameter",
            ),
            (
                "import retry\n@retry.again\ndef f(): ...",
                "its decorator may change what it takes and returns",
            ),
            ("def f() -> list[int]:\n    for x in []:\n        yield x", "it yields"),
            ("if x:\n    def f(): ...", "it is defined under a condition"),
            ("def f(): ...\nif x:\n    f = 1", "it is defined under a condition"),
            ("def f(): ...\nf = wrap(f)", "its name is bound to something else later"),
            (
                "def f(): ...\ndef g() -> int:\n    global f\n    f = 1\ng = 2\ndel g",
                "it is defined under a condition",
            ),
            ("def f(): ...\ndef _g():\n    global f", "a function of its module binds its name"),
            ("def é(): ...", "its name has characters that no name of a tool has"),
            (
                "class A: ...\ndef f(x: A): ...",
                "its parameter `x`: the class `A` is neither an `Enum`, a `TypedDict`, a dataclass nor a model of Pydantic",
            ),
        ];
        for (text, why) in cases {
            check(&format!("{text}\n"), &format!("no: {why}"));
        }
    }

    #[test]
    fn only_public_functions_of_the_module_are_tools() {
        check("def _f(): ...\nclass C:\n    def f(self): ...\ndef g():\n    def h(): ...\n", "g() -> Any");
        check("class C:\n    def f(self): ...\nf = lambda: 1\nx = 5\n", "nothing");
        // The last definition holds.
        check("def f(x): ...\ndef f(x: int): ...\n", "f(x: Int) -> Any");
        check("__all__ = ['_f', 'x', 'none']\nx = 1\ndef g(): ...\ndef _f(): ...\n", "_f() -> Any");
        let tools = module_of(
            "from other import *\nfrom other import g as h\nfrom pkg.deep import run\n__all__ = ['f', 'h', 'run', 'gone']\n",
            &[("other.py", "def f(x: int): ...\ndef g(): ...\n"), ("pkg/deep.py", "def run(): ...\n")],
        );
        let names: Vec<&str> = tools.declared.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["f", "h", "run"]);
        check("import functools\n@functools.cache\ndef f(x: int) -> int: ...\n", "f(x: Int) -> Int");
        // Two words of the language, and a function that has one of these names.
        let tools = module_of("def test(): ...\ndef test_(): ...\ndef final(): ...\n", &[]);
        assert_eq!(tools.text.matches("\ntool ").count(), 3, "{}", tools.text);
    }

    #[test]
    fn classes_become_named_types() {
        let models = "from enum import Enum\nfrom pydantic import BaseModel, Field\n\
            class Level(str, Enum):\n    LOW = 'low'\n    HIGH = 'high'\n    def next(self): ...\n\
            class Base(BaseModel):\n    id: int = Field(gt=0)\n    _private: str = ''\n\
            class Ticket(Base):\n    title: str\n    level: Level = Level.LOW\n    note: str | None = None\n    \
            replies: 'list[Ticket]' = Field(default_factory=list)\n";
        let text = "from __future__ import annotations\nimport models\nfrom dataclasses import dataclass, field\n\
            from typing import TypedDict, NotRequired\n\
            @dataclass(frozen=True)\nclass Point:\n    x: float\n    y: float = 0.0\n    tag: str | None = field(default=None)\n\
            class Options(TypedDict, total=False):\n    page: int\n    size: NotRequired[int]\n\
            class Stars(__import__('enum').Enum):\n    ONE = 1\n\
            def find(where: Point, options: Options) -> list[models.Ticket]: ...\n\
            def put(ticket: models.Ticket) -> dict[models.Level, Point]: ...\n";
        let tools = module_of(text, &[("models.py", models)]);
        let types: Vec<&str> = tools.text.lines().filter(|l| l.starts_with("type ")).collect();
        assert_eq!(
            types,
            [
                "type Point = Obj{x: Number, y: Number, tag: Option[String]};",
                "type Options = Obj{page: Option[Int], size: Option[Int]};",
                "type Ticket = Obj{id: Int, title: String, level: Level, note: Option[String], replies: List[Ticket]};",
                "type Level = \"low\" | \"high\";",
            ]
        );
        assert!(
            tools.text.contains("tool find(where: Point, options: Options) -> List[Ticket] as"),
            "{}",
            tools.text
        );
        assert!(tools.text.contains("-> Map[Level, Point] as"), "{}", tools.text);
        assert!(tools.withheld.is_empty(), "{:?}", tools.withheld);
    }

    #[test]
    fn classes_that_say_more_are_no_arguments() {
        let dataclass = "from dataclasses import *\nimport dataclasses as d, enum, typing, pydantic\n";
        let cases = [
            ("@d.dataclass\nclass A:\n    x: d.InitVar[int]", "the class `A` takes what is no field"),
            (
                "@d.dataclass\nclass A:\n    x: int = d.field(init=False)",
                "the class `A` has a field that it does not take",
            ),
            (
                "@d.dataclass\nclass A:\n    def __init__(self): ...",
                "the class `A` says itself what it takes",
            ),
            ("@d.dataclass\nclass A:\n    x: bytes", "the field `x` of `A`: the type `bytes` is not known"),
            (
                "@d.dataclass\nclass B:\n    x: bytes\n@d.dataclass\nclass A:\n    b: B",
                "the field `x` of `B`: the type `bytes` is not known",
            ),
            ("@d.dataclass\nclass A:\n    a: 'A'", "the class `A` contains itself without an end"),
            (
                "@d.dataclass\nclass A:\n    b: 'B'\n@d.dataclass\nclass B:\n    a: A",
                "the class `A` contains itself without an end",
            ),
            (
                "@d.dataclass\nclass A:\n    tool: int\n    let: int",
                "the field `let` of `A` can't have this name",
            ),
            (
                "class A(pydantic.BaseModel):\n    x: int = pydantic.Field(alias='y')",
                "the class `A` has a field `x` that may be written otherwise",
            ),
            (
                "class A(pydantic.BaseModel):\n    model_config = pydantic.ConfigDict(alias_generator=f)",
                "the class `A` has settings that may change it",
            ),
            (
                "class A(pydantic.BaseModel):\n    @pydantic.model_serializer\n    def s(self): ...",
                "the class `A` says itself how it is written as data",
            ),
            (
                "class A(enum.Enum):\n    X = enum.auto()",
                "the class `A` has members whose values are not written",
            ),
            (
                "class A(enum.Enum):\n    X = 1\n    Y = 'y'",
                "the class `A` has no members, or members of several types",
            ),
            ("class A(enum.Enum): ...", "the class `A` has no members, or members of several types"),
            (
                "class A(enum.Flag):\n    X = 1",
                "the class `A` is neither an `Enum`, a `TypedDict`, a dataclass nor a model of Pydantic",
            ),
            ("class A[T](pydantic.BaseModel):\n    x: T", "the class `A` has parameters"),
            (
                "class A(typing.NamedTuple):\n    x: int",
                "the class `A` is neither an `Enum`, a `TypedDict`, a dataclass nor a model of Pydantic",
            ),
        ];
        for (class, why) in cases {
            check(
                &format!("{dataclass}{class}\ndef f(a: A): ...\n"),
                &format!("no: its parameter `a`: {why}"),
            );
            // A result of such a type is checked by nobody, and wrong for nobody.
            let result = module_of(&format!("{dataclass}{class}\ndef f() -> A: ...\n"), &[]);
            assert!(result.withheld.is_empty(), "{class}");
        }
    }

    #[test]
    fn hostile_modules_end() {
        let deep = format!("def f(x: {}int{}): ...\n", "list[".repeat(5_000), "]".repeat(5_000));
        assert!(signature(&deep).starts_with("no: its parameter `x`"), "{}", signature(&deep));
        let quoted =
            format!("def f(x: {}): ...\n", "'".to_string() + &"list[".repeat(300) + &"]".repeat(300) + "'");
        assert!(signature(&quoted).starts_with("no: its parameter `x`"));
        let wide = format!("def f(x: {}): ...\n", vec!["int"; 20_000].join(" | "));
        assert!(signature(&wide).starts_with("no: "));
        let chain: String =
            (0..3_000).map(|i| format!("@dataclass\nclass C{i}:\n    next: 'C{} | None'\n", i + 1)).collect();
        let chain = format!("from dataclasses import dataclass\n{chain}def f(x: C0) -> C0: ...\n");
        module_of(&chain, &[]);
        let doubled: String = (0..60)
            .map(|i| format!("class C{i}(TypedDict):\n    a: 'C{0}'\n    b: 'C{0}'\n", i + 1))
            .collect();
        let doubled = format!("from typing import TypedDict\n{doubled}class C60(TypedDict):\n    x: int\n");
        let large = signature(&format!("{doubled}def f(x: C0): ...\n"));
        assert_eq!(large, "no: its parameter `x`: the class `C0` has too many parts");
        let bases: String = (1..3_000).map(|i| format!("class C{i}(C{}): ...\n", i - 1)).collect();
        let bases = format!("from pydantic import BaseModel\nclass C0(BaseModel): ...\n{bases}");
        module_of(&format!("{bases}def f(x: C2999): ...\n"), &[]);
        for text in [
            "A = B\nB = A\ndef f(x: A): ...\n",
            "A = list['A']\ndef f(x: A): ...\n",
            "class A(A): ...\ndef f(x: A): ...\n",
            "from tools import f, A\n__all__ = ['f']\ndef g(x: A): ...\n",
            "from tools import *\ndef g(x: A): ...\n",
            "def f(x: 'def'): ...\n",
            "def f(x: ''): ...\n",
            "def f(x: 'a' 'b' | 'c'): ...\n",
            "def f(x: list[()], y: dict[()], z: tuple[()]): ...\n",
            "from typing import *\ndef f(x: Literal[()], y: Union[()], z: Optional[()]): ...\n",
            "\u{feff}def f(x: int): ...\n",
            "",
        ] {
            module_of(text, &[]);
        }
        let many: String = (0..10_000).map(|i| format!("def f{i}(x: int) -> str: ...\n")).collect();
        assert_eq!(module_of(&many, &[]).text.matches("\ntool ").count(), 10_000);
        let wrong = ["def f(x:\n", "class", "def f(): ...\n    x", "\0"];
        for text in wrong {
            let mut sources = Sources::new();
            let module = sources.add(diagnostics::FileId(0), "t.py", text.into());
            assert!(tool_module(&sources, module, "t.py").is_err(), "{text:?}");
        }
    }

    /// Pieces of modules. Many sequences of them are no Python.
    const PIECES: &[&str] = &[
        "def f(x: int",
        "def g(",
        "async def h(y: ",
        "class A(TypedDict):\n",
        "class B(Enum):\n",
        "class C(BaseModel):\n",
        "@dataclass\nclass D:\n",
        "    x: ",
        "    next: 'D | None' = None\n",
        "    LOW = 'low'\n",
        "    ONE = 1\n",
        "    let: int\n",
        "int",
        "'str'",
        "A",
        "B",
        "C",
        "D",
        "list[",
        "dict[B, ",
        "Optional[",
        "tuple[int, ",
        "Literal['a', \"b\\n\", 2]",
        "NotRequired[",
        "]",
        " | ",
        "None",
        " = None",
        ", ",
        ", *, z: str = 'a'",
        ", **more",
        ") -> ",
        "):\n    ...\n",
        ":\n    \"\"\"Does -- it.\n\n    Args: \"\"\"\n",
        "\n",
        "from typing import *\nfrom enum import Enum\nfrom dataclasses import *\nfrom pydantic import BaseModel\n",
        "from tools import *\n",
        "__all__ = ['f', 'A', 'let']\n",
        "D = ",
        "def let(): ...\n",
        "def \u{e9}(): ...\n",
        "if A:\n    def f(): ...\n",
    ];

    proptest::proptest! {
        #[test]
        fn any_module_is_declared_without_findings_or_is_no_python(
            pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..60),
        ) {
            let text = format!("{}{}", PIECES[35], pieces.concat());
            let mut sources = Sources::new();
            let module = sources.add(diagnostics::FileId(0), "tools.py", text.as_str().into());
            if let Ok(tools) = tool_module(&sources, module, "tools.py") {
                let (module, found) = agentlang::check(diagnostics::FileId(1), &tools.text);
                proptest::prop_assert!(module.is_some() && found.is_empty(), "{found:?}\n{}\n{text}", tools.text);
            }
        }
    }
}
