//! The surface language.
//!
//! A function of a text or of a record of inputs becomes a pipeline; each call of a model a task by an agent;
//! each call of a tool with a signature a call of that tool. What comes first in the term is the first
//! statement.

mod agents;
mod words;

use crate::cannot;
use crate::text_loop::text_loop;
use core_ir::{
    Branch, Code, Data, EnumType, IfSugar, Name, Prim, Term, TermId, ToolDecl, ToolId, ToolParam, Type,
};
use diagnostics::{Diagnostic, Span, clip};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;
use syntax::agent::keywords::{Role, TABLE};
use words::{escaped, is_name, number, text};

/// Words that can't be names, or would be hard to read as one.
fn hard_names() -> impl Iterator<Item = &'static str> {
    let hard =
        |role| !matches!(role, Role::Link | Role::Field | Role::Body | Role::Flow | Role::Rule | Role::Type);
    TABLE.iter().filter(move |k| hard(k.role)).map(|k| k.word)
}

/// More calls are not written.
const MAX_CALLS: usize = 10_000;

/// Writes tools as declarations. What the language can't say of a type is wider there: a text in place of an
/// enumeration, anything in place of a record. A tool that can't be declared is a finding.
pub(crate) fn declarations(code: &Code, tools: &[(ToolId, ToolDecl)]) -> (String, Vec<Diagnostic>) {
    let mut w = writer(code);
    for (id, decl) in tools {
        // A comment above a declaration has one line.
        let about = decl.description.as_deref().map(|d| d.split_whitespace().collect::<Vec<_>>().join(" "));
        let about = about.filter(|d| !d.is_empty()).map(Name::from);
        let exact = ToolDecl { description: about, ..decl.clone() };
        let (found, used, enums) = (w.found.len(), w.used.clone(), w.enums.len());
        if w.tool(*id, &exact).is_some() {
            continue;
        }
        w.found.truncate(found);
        w.enums.truncate(enums);
        w.used = used;
        let params = exact.params.iter().map(|p| ToolParam { ty: wider(&p.ty), ..p.clone() }).collect();
        w.tool(*id, &ToolDecl { params, result: wider(&exact.result), ..exact });
    }
    let mut out = String::new();
    out.extend(w.enums.iter().map(|e| enumeration(e)));
    for decl in &w.decls {
        let _ = writeln!(out, "{decl}");
    }
    (out, w.found)
}

/// The declaration of an enumeration. A comment above a variant, its description, has one line.
fn enumeration(e: &EnumType) -> String {
    if !e.is_described() {
        return format!("enum {} {{ {} }}\n", e.name, e.variants.join(", "));
    }
    let mut out = format!("enum {} {{\n", e.name);
    for (variant, description) in e.described_variants() {
        let words: Vec<&str> = description.map_or(Vec::new(), |d| d.split_whitespace().collect());
        if !words.is_empty() {
            let _ = writeln!(out, "    -- {}", words.join(" "));
        }
        let _ = writeln!(out, "    {variant},");
    }
    out + "}\n"
}

/// A type that every declaration can name, of at least the same values.
fn wider(ty: &Type) -> Type {
    match ty {
        Type::Enum(_) => Type::Str,
        Type::Refined(r) => wider(&r.0),
        Type::List(item) => Type::list(wider(item)),
        Type::Option(item) => match wider(item) {
            ty @ (Type::Option(_) | Type::Dyn) => ty,
            ty => Type::option(ty),
        },
        Type::Str | Type::Num | Type::Bool => ty.clone(),
        _ => Type::Dyn,
    }
}

fn writer(code: &Code) -> Writer<'_> {
    let functions = agentlang::function_names().map(str::to_string);
    Writer {
        code,
        found: Vec::new(),
        used: hard_names().map(str::to_string).chain(functions).collect(),
        types: analysis::types::check_steps(code).1.into_iter().collect(),
        known: HashMap::new(),
        enums: Vec::new(),
        agents: Vec::new(),
        tools: HashMap::new(),
        decls: Vec::new(),
        pipelines: Vec::new(),
        scope: Vec::new(),
        lines: Vec::new(),
        depth: 1,
        left: MAX_CALLS,
    }
}

/// Writes a term; without an error among what is found the text is whole.
pub(crate) fn write(code: &Code, name: &str) -> (String, Vec<Diagnostic>) {
    let mut w = writer(code);
    let pipeline = w.pipeline(name);
    let mut out = String::new();
    out.extend(w.enums.iter().map(|e| enumeration(e)));
    for agent in &w.agents {
        let _ = writeln!(out, "{}agent {} {{ {} }}", agent.about, agent.name, agent.fields);
    }
    for decl in &w.decls {
        let _ = writeln!(out, "{decl}");
    }
    if !out.is_empty() {
        out.push('\n');
    }
    for pipeline in w.pipelines {
        out += &pipeline;
        out.push('\n');
    }
    (out + &pipeline, w.found)
}

/// An agent of the program.
struct Agent {
    name: String,
    fields: String,
    /// The comment above it, which models are shown.
    about: String,
}

/// Meaning of a term's variable in the program.
#[derive(Clone)]
enum Means {
    /// This variable.
    Name(String),
    /// The record of the inputs, whose fields are these.
    Inputs(Vec<(Name, String)>),
    /// A function that is written where it is called.
    Function(TermId),
}

struct Writer<'c> {
    code: &'c Code,
    found: Vec<Diagnostic>,
    used: HashSet<String>,
    enums: Vec<Arc<EnumType>>,
    agents: Vec<Agent>,
    tools: HashMap<ToolId, String>,
    decls: Vec<String>,
    /// Pipelines that the last one calls.
    pipelines: Vec<String>,
    /// The types of terms, as far as they are known.
    types: HashMap<TermId, Type>,
    /// The types of variables of the program.
    known: HashMap<String, Type>,
    scope: Vec<(Name, Means)>,
    /// The statements of the block that is being written.
    lines: Vec<String>,
    depth: usize,
    /// Remaining number of calls: each one writes out its function.
    left: usize,
}

impl Writer<'_> {
    fn cannot(&mut self, what: impl Into<String>, at: Span) -> Option<String> {
        self.found.push(cannot(format!("an `.agent` program cannot express {}", what.into()), at));
        None
    }

    /// A name that nothing else has.
    fn name(&mut self, like: &str) -> String {
        let mut stem: String = like
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
            .take(40)
            .collect();
        stem = stem.trim_matches('_').to_string();
        if stem.is_empty() || stem.starts_with(|c: char| c.is_ascii_digit()) {
            stem = format!("v{stem}");
        }
        let mut name = stem.clone();
        let mut n = 1;
        while !self.used.insert(name.clone()) {
            n += 1;
            name = format!("{stem}_{n}");
        }
        name
    }

    fn line(&mut self, text: &str) {
        self.lines.push(format!("{}{text}", "    ".repeat(self.depth)));
    }

    fn pipeline(&mut self, name: &str) -> String {
        let code = self.code;
        let root = code.root();
        let at = code.span(root);
        let (params, given, body) = match code.term(root) {
            Term::Abs(abs) if matches!(abs.ty, Some(Type::Record(_))) => {
                let fields = match &abs.ty {
                    Some(Type::Record(fields)) => fields.to_vec(),
                    _ => Vec::new(),
                };
                let mut names = Vec::new();
                let mut params = Vec::new();
                for (field, ty) in &fields {
                    // A word of the language is a name where it stands.
                    let free = is_name(field)
                        && (hard_names().any(|w| *w == **field) || self.used.insert(field.to_string()));
                    let own = if free { field.to_string() } else { self.name(field) };
                    if own != **field {
                        self.cannot(format!("an input named `{}`", clip(field)), at);
                    }
                    self.known.insert(own.clone(), ty.clone());
                    let ty = self.ty(ty, at).unwrap_or_default();
                    params.push(format!("{own}: {ty}"));
                    names.push((field.clone(), own));
                }
                self.scope.push((abs.param.clone(), Means::Inputs(names)));
                (params, None, self.value(abs.body))
            }
            _ if self.is_function(root) => {
                let x = self.name("input");
                self.known.insert(x.clone(), Type::Str);
                (vec![format!("{x}: String")], Some(Type::Str), self.call(root, x, at))
            }
            // It takes nothing.
            _ => (Vec::new(), None, self.value(root)),
        };
        // The types of a term that cannot be written need not be known.
        let result = match self.found.is_empty() {
            true => self.result(given.as_ref()).unwrap_or(Type::Dyn),
            false => Type::Dyn,
        };
        let result = self.ty(&result, at);
        let pipeline = self.name(name);
        let mut out =
            format!("pipeline {pipeline}({}) -> {} {{\n", params.join(", "), result.unwrap_or_default());
        for line in &self.lines {
            let _ = writeln!(out, "{line}");
        }
        let _ = writeln!(out, "    return {};\n}}", body.unwrap_or_default());
        out
    }

    fn is_function(&self, id: TermId) -> bool {
        match self.code.term(id) {
            Term::Let { body, .. } => self.is_function(*body),
            Term::Abs(_) | Term::Llm(..) | Term::Fix { .. } | Term::Tool(_) => true,
            Term::Guard { term, .. } | Term::Mem(_, term) => self.is_function(*term),
            _ => false,
        }
    }

    /// The type of the result: of the function applied to such an input, or of the function's own.
    fn result(&mut self, input: Option<&Type>) -> Option<Type> {
        let typing = analysis::types::check(self.code, input);
        let ty = match (input, typing.result, typing.ty) {
            (Some(_), Some(result), _) => result,
            (Some(_), None, _) => return None,
            (None, _, Type::Fun(f)) => f.2.clone(),
            (None, _, ty) => ty,
        };
        Some(ty)
    }

    fn ty(&mut self, ty: &Type, at: Span) -> Option<String> {
        Some(match ty {
            Type::Str => "String".into(),
            Type::Num => "Number".into(),
            Type::Bool => "Bool".into(),
            Type::Dyn => "Any".into(),
            Type::List(item) => format!("List[{}]", self.ty(item, at)?),
            Type::Option(item) => format!("Option[{}]", self.ty(item, at)?),
            Type::Map(of) => format!("Map[{}, {}]", self.ty(&of.0, at)?, self.ty(&of.1, at)?),
            Type::Record(fields) => {
                let mut out = Vec::new();
                for (name, ty) in fields.iter() {
                    let Some(name) = field_name(name) else {
                        return self.cannot(format!("a field named `{}`", clip(name)), at);
                    };
                    out.push(format!("{name}: {}", self.ty(ty, at)?));
                }
                format!("Obj{{{}}}", out.join(", "))
            }
            Type::Enum(e) => {
                if self.enums.contains(e) {
                    return Some(e.name.to_string());
                }
                let taken = |v: &Name| !is_name(v) || self.enums.iter().any(|e| e.variants.contains(v));
                if !is_name(&e.name) || e.variants.iter().any(taken) || !self.used.insert(e.name.to_string())
                {
                    return self.cannot(format!("the enumeration `{}`", clip(&e.name)), at);
                }
                self.enums.push(e.clone());
                e.name.to_string()
            }
            other => return self.cannot(format!("the type {other}"), at),
        })
    }

    // ----- calls -----

    /// A function applied to a value that is written already.
    fn call(&mut self, f: TermId, x: String, at: Span) -> Option<String> {
        stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, || self.call_inner(f, x, at))
    }

    fn call_inner(&mut self, f: TermId, x: String, at: Span) -> Option<String> {
        let code = self.code;
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return self.cannot(format!("more than {MAX_CALLS} calls"), at);
        }
        if let Some(stages) = code.stages(f) {
            return stages.into_iter().try_fold(x, |x, stage| self.call(stage, x, at));
        }
        if code.par_pair(f).is_some() {
            return self.cannot("a pair", code.span(f));
        }
        match code.term(f) {
            Term::Llm(prompt, params) => self.question(*prompt, params, x, code.span(f)),
            Term::Abs(abs) => {
                self.scope.push((abs.param.clone(), Means::Name(x)));
                let out = self.value(abs.body);
                self.scope.pop();
                out
            }
            Term::Var(name, _) => match self.means(name) {
                Some(Means::Function(f)) => self.call(f, x, at),
                _ => self.cannot("a function as a value", code.span(f)),
            },
            Term::Let { bindings, body, .. } => {
                let before = self.scope.len();
                for (name, value) in bindings {
                    self.bind(name, *value)?;
                }
                let out = self.call(*body, x, at);
                self.scope.truncate(before);
                out
            }
            Term::Tool(id) => {
                let decl = code.tool(*id).clone();
                let [only] = &decl.params[..] else {
                    return self.cannot("a tool call whose arguments are one computed value", at);
                };
                let args = format!("{}: {x}", only.name);
                let tool = self.tool(*id, &decl)?;
                self.run(&tool, &args, "", Some(&tool), decl.result.clone())
            }
            Term::Unknown(why) => self.cannot(format!("an unknown part: {}", clip(why)), code.span(f)),
            Term::Fix { .. } => match text_loop(code, f) {
                Some(found) => self.loop_on_text(&found, x, code.span(f)),
                None => self.cannot("a loop other than the tool loop of an agent", code.span(f)),
            },
            Term::Mem(..) => self.cannot("memory", code.span(f)),
            Term::Guard { .. } => self.cannot("a guard around a function", code.span(f)),
            _ => self.cannot("a function of this kind", code.span(f)),
        }
    }

    /// `let v = run … with {…} …;`
    fn run(
        &mut self,
        target: &str,
        args: &str,
        clauses: &str,
        like: Option<&str>,
        ty: Type,
    ) -> Option<String> {
        let v = self.name(&format!("{}_said", like.unwrap_or(target)));
        self.line(&format!("let {v} = run {target} with {{ {args} }}{clauses};"));
        self.known.insert(v.clone(), ty);
        Some(v)
    }

    // ----- values -----

    fn means(&self, name: &Name) -> Option<Means> {
        self.scope.iter().rev().find(|(n, _)| n == name).map(|(_, m)| m.clone())
    }

    /// A definition, which holds until the scope is cut back.
    fn bind(&mut self, name: &Name, value: TermId) -> Option<()> {
        let means = match self.code.term(value) {
            Term::Abs(_) | Term::Llm(..) | Term::Tool(_) | Term::Fix { .. } => Means::Function(value),
            _ => {
                let ty = self.types.get(&value).cloned().unwrap_or(Type::Dyn);
                let value = self.value(value)?;
                if self.used.contains(&value) {
                    // It has a name already.
                    Means::Name(value)
                } else {
                    let own = self.name(name.trim_start_matches('$'));
                    self.line(&format!("let {own} = {value};"));
                    self.known.insert(own.clone(), ty);
                    Means::Name(own)
                }
            }
        };
        self.scope.push((name.clone(), means));
        Some(())
    }

    /// A term as an expression; what it asks for is a statement before.
    fn value(&mut self, id: TermId) -> Option<String> {
        stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, || self.value_inner(id))
    }

    fn value_inner(&mut self, id: TermId) -> Option<String> {
        let code = self.code;
        let at = code.span(id);
        match code.term(id) {
            Term::Var(name, _) => match self.means(name) {
                Some(Means::Name(name)) => Some(name),
                Some(Means::Inputs(fields)) => {
                    let all: Vec<String> = fields.iter().map(|(f, n)| format!("{f}: {n}")).collect();
                    Some(format!("{{ {} }}", all.join(", ")))
                }
                _ => self.cannot("a function as a value", at),
            },
            Term::Lit(data) => self.data(data, at),
            Term::Record(fields) => {
                let mut out = Vec::new();
                for (name, value) in fields {
                    let Some(name) = field_name(name) else {
                        return self.cannot(format!("a field named `{}`", clip(name)), at);
                    };
                    out.push(format!("{name}: {}", self.value(*value)?));
                }
                Some(format!("{{ {} }}", out.join(", ")))
            }
            Term::Args(..) => self.cannot("the arguments of a planned call", at),
            Term::List(items) => {
                let items: Option<Vec<String>> = items.iter().map(|e| self.value(*e)).collect();
                Some(format!("[{}]", items?.join(", ")))
            }
            Term::Field(of, field) => {
                if let Term::Var(name, _) = code.term(*of)
                    && let Some(Means::Inputs(fields)) = self.means(name)
                {
                    let own = fields.iter().find(|(f, _)| f == field).map(|(_, n)| n.clone());
                    return own
                        .or_else(|| self.cannot(format!("the undeclared input `{}`", clip(field)), at));
                }
                let Some(name) = field_name(field) else {
                    return self.cannot(format!("a field named `{}`", clip(field)), at);
                };
                Some(format!("{}.{name}", self.value(*of)?))
            }
            Term::Index(of, index) => {
                let of = self.value(*of)?;
                Some(format!("{of}[{}]", self.value(*index)?))
            }
            Term::Prim(prim, args) => self.prim(*prim, args, at),
            Term::App(f, x) => {
                if let Term::Tool(tool) = code.term(*f)
                    && let Term::Record(fields) = code.term(*x)
                {
                    let decl = code.tool(*tool).clone();
                    let mut args = Vec::new();
                    for (name, value) in fields {
                        args.push(format!("{name}: {}", self.value(*value)?));
                    }
                    let tool = self.tool(*tool, &decl)?;
                    return self.run(&tool, &args.join(", "), "", Some(&tool), decl.result.clone());
                }
                let x = self.value(*x)?;
                self.call(*f, x, at)
            }
            Term::Let { bindings, body, .. } => {
                let before = self.scope.len();
                for (name, value) in bindings {
                    self.bind(name, *value)?;
                }
                let out = self.value(*body);
                self.scope.truncate(before);
                out
            }
            Term::If(c, a, b, sugar) => self.choice(*c, *a, *b, *sugar),
            Term::Case { scrutinee, branches, default: Some(default) }
                if branches.iter().all(|b| b.binder.is_none()) =>
            {
                self.cases(*scrutinee, branches, *default)
            }
            Term::Par(most, branches) => self.parallel(*most, branches, at),
            Term::Unknown(why) => self.cannot(format!("an unknown part: {}", clip(why)), at),
            Term::Case { scrutinee, .. } if matches!(code.term(*scrutinee), Term::Unknown(_)) => {
                self.value(*scrutinee)
            }
            Term::Case { .. } | Term::Classify(..) => self.cannot("a router that fails on other replies", at),
            Term::Pair(..) | Term::Fst(_) | Term::Snd(_) => self.cannot("a pair", at),
            Term::Mem(..) | Term::Recall(..) | Term::Remember(..) => self.cannot("memory", at),
            Term::Send(..) | Term::Recv(_) | Term::Fork(_) | Term::Fresh(_) | Term::Clear => {
                self.cannot("an explicit conversation", at)
            }
            Term::Guard { .. } => self.cannot("this guard", at),
            Term::Choose(..) => self.cannot("a random choice", at),
            Term::Try { .. } | Term::Fail(_) | Term::Within(..) => self.cannot("this error handling", at),
            Term::Relabel(..)
            | Term::Test(..)
            | Term::Assert(..)
            | Term::Endorse(..)
            | Term::Declassify(..) => self.cannot("a label", at),
            Term::Check(..) => self.cannot("a type check", at),
            Term::Abs(_) | Term::Llm(..) | Term::Tool(_) | Term::Fix { .. } => {
                self.cannot("a function as a value", at)
            }
            Term::Tag(..) => self.cannot("a tag", at),
            Term::With(..) => self.cannot("a record update", at),
            Term::Each(..) => self.cannot("a function for each item of a list", at),
        }
    }

    fn prim(&mut self, prim: Prim, args: &[TermId], at: Span) -> Option<String> {
        if prim == Prim::Format {
            return self.format(args);
        }
        // Functions of `.agent` itself. That numbers are decimals in texts is said by no function.
        if let (Prim::Py, Some((Term::Lit(Data::Str(name)), rest))) =
            (prim, args.split_first().map(|(name, rest)| (self.code.term(*name), rest)))
            && let Some(function) = name.strip_prefix("agent.")
        {
            let rest: Vec<String> = rest.iter().map(|a| self.value(*a)).collect::<Option<_>>()?;
            return match (function, &rest[..]) {
                ("shown", [value]) => Some(format!("to_string({value})")),
                // These take the list of what a function gave.
                ("filter" | "sort_by" | "group_by", _) => {
                    self.cannot("a function for each item of a list", at)
                }
                _ => Some(format!("{function}({})", rest.join(", "))),
            };
        }
        let args: Vec<String> = args.iter().map(|a| self.value(*a)).collect::<Option<_>>()?;
        let binary = |op: &str| Some(format!("({} {op} {})", args.first()?, args.get(1)?));
        match prim {
            Prim::Neg => Some(format!("(-{})", args.first()?)),
            Prim::Not => Some(format!("(!{})", args.first()?)),
            Prim::Add => binary("+"),
            Prim::Sub => binary("-"),
            Prim::Mul => binary("*"),
            Prim::Div => binary("/"),
            Prim::Rem => binary("%"),
            Prim::Eq => binary("=="),
            Prim::Ne => binary("!="),
            Prim::Lt => binary("<"),
            Prim::Le => binary("<="),
            Prim::Gt => binary(">"),
            Prim::Ge => binary(">="),
            Prim::IsNull => Some(format!("({} == null)", args.first()?)),
            Prim::Length
            | Prim::Lower
            | Prim::Upper
            | Prim::Trim
            | Prim::Split
            | Prim::Join
            | Prim::Contains
            | Prim::Append
            | Prim::Slice
            | Prim::Range => Some(format!("{}({})", prim.name(), args.join(", "))),
            Prim::ToStr => Some(format!("to_string({})", args.join(", "))),
            Prim::ToNum => Some(format!("to_number({})", args.join(", "))),
            _ => self.cannot(format!("`prim[{}]`", prim.name()), at),
        }
    }

    /// A text with holes.
    fn format(&mut self, parts: &[TermId]) -> Option<String> {
        let mut out = String::from("f\"");
        for part in parts {
            match self.code.term(*part) {
                Term::Lit(Data::Str(s)) => out.push_str(&escaped(s).replace('{', "{{").replace('}', "}}")),
                _ => {
                    // A number in a hole is shown as a decimal anyway.
                    let part = match self.code.term(*part) {
                        Term::Prim(Prim::Py, operands) => match operands[..] {
                            [name, value] if *self.code.term(name) == Term::Lit(Data::str("agent.shown")) => {
                                value
                            }
                            _ => *part,
                        },
                        _ => *part,
                    };
                    let value = self.value(part)?;
                    // A hole holds a name or a part of one.
                    let simple = value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
                    let value = match simple {
                        true => value,
                        false => {
                            let own = self.name("part");
                            self.line(&format!("let {own} = {value};"));
                            own
                        }
                    };
                    let _ = write!(out, "{{{value}}}");
                }
            }
        }
        out.push('"');
        Some(out)
    }

    /// The statements of a block that binds `out`.
    fn block(&mut self, out: &str, value: impl FnOnce(&mut Self) -> Option<String>) -> Option<()> {
        self.depth += 1;
        let value = value(self);
        if let Some(value) = &value {
            self.line(&format!("let {out} = {value};"));
        }
        self.depth -= 1;
        value.map(|_| ())
    }

    fn choice(&mut self, c: TermId, a: TermId, b: TermId, sugar: IfSugar) -> Option<String> {
        let c = self.value(c)?;
        let op = match sugar {
            IfSugar::And => Some((a, "&&")),
            IfSugar::Or => Some((b, "||")),
            IfSugar::Plain => None,
        };
        if let Some((other, op)) = op {
            let before = self.lines.len();
            let other_text = self.value(other)?;
            if self.lines.len() > before {
                return self
                    .cannot("a condition that makes a call only if it is needed", self.code.span(other));
            }
            return Some(format!("({c} {op} {other_text})"));
        }
        let out = self.name("chosen");
        self.line(&format!("if {c} {{"));
        self.block(&out, |w| w.value(a))?;
        self.line("} else {");
        self.block(&out, |w| w.value(b))?;
        self.line("}");
        Some(out)
    }

    /// A choice between texts.
    fn cases(&mut self, scrutinee: TermId, branches: &[Branch], default: TermId) -> Option<String> {
        let is_text = match self.code.term(scrutinee) {
            Term::Prim(Prim::Trim, _) => true,
            // The reason is what it depends on.
            Term::Unknown(_) => return self.value(scrutinee),
            _ => matches!(self.types.get(&scrutinee), Some(Type::Str)),
        };
        if !is_text {
            return self.cannot("a `case` on tags", self.code.span(scrutinee));
        }
        let value = self.value(scrutinee)?;
        let word = self.name("word");
        self.line(&format!("let {word} = {value};"));
        let out = self.name("chosen");
        let depth = self.depth;
        for branch in branches {
            self.line(&format!("if {word} == {} {{", text(&branch.tag)));
            self.block(&out, |w| w.value(branch.body))?;
            self.line("} else {");
            self.depth += 1;
        }
        let value = self.value(default)?;
        self.line(&format!("let {out} = {value};"));
        while self.depth > depth {
            self.depth -= 1;
            self.line("}");
        }
        Some(out)
    }

    /// Calls at the same time. What is no call by itself becomes a pipeline that is called.
    fn parallel(&mut self, most: Option<u32>, branches: &[TermId], at: Span) -> Option<String> {
        if branches.is_empty() {
            return self.cannot("an empty parallel composition", at);
        }
        // A part is written twice if it becomes a pipeline, and so are those within it.
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return self.cannot(format!("more than {MAX_CALLS} calls"), at);
        }
        let mut calls = Vec::new();
        let mut names = Vec::new();
        for branch in branches {
            let outer = std::mem::take(&mut self.lines);
            let kept = (
                self.decls.len(),
                self.agents.len(),
                self.pipelines.len(),
                self.enums.len(),
                self.tools.clone(),
            );
            self.depth += 1;
            let value = self.value(*branch);
            self.depth -= 1;
            let mut lines = std::mem::replace(&mut self.lines, outer);
            let value = value?;
            // One call each, and nothing else, may stand there.
            let is_call = lines.len() == 1 && lines[0].contains(&format!("let {value} = run "));
            if is_call {
                calls.append(&mut lines);
                names.push(value);
                continue;
            }
            self.decls.truncate(kept.0);
            self.agents.truncate(kept.1);
            self.pipelines.truncate(kept.2);
            self.enums.truncate(kept.3);
            self.tools = kept.4;
            let (target, args, ty) = self.part(*branch)?;
            let outer = std::mem::take(&mut self.lines);
            self.depth += 1;
            let value = self.run(&target, &args, "", None, ty);
            self.depth -= 1;
            calls.append(&mut std::mem::replace(&mut self.lines, outer));
            names.push(value?);
        }
        let most = most.map_or(String::new(), |n| format!(" max_concurrency {n}"));
        self.line(&format!("parallel{most} {{"));
        self.lines.extend(calls);
        self.line("} join;");
        Some(format!("[{}]", names.join(", ")))
    }

    /// A term as a pipeline of the variables that it reads: its name, the arguments of a call, and the type
    /// of its result.
    fn part(&mut self, id: TermId) -> Option<(String, String, Type)> {
        let at = self.code.span(id);
        let ty = self.types.get(&id).cloned().unwrap_or(Type::Dyn);
        let mut read: Vec<String> = Vec::new();
        self.reads(id, &mut Vec::new(), &mut read);
        let mut params = Vec::new();
        for name in &read {
            let ty = self.known.get(name).cloned().unwrap_or(Type::Dyn);
            params.push(format!("{name}: {}", self.ty(&ty, at)?));
        }
        let args: Vec<String> = read.iter().map(|n| format!("{n}: {n}")).collect();
        let name = self.sub_pipeline("part", &params, &ty, at, |w| w.value(id))?;
        Some((name, args.join(", "), ty))
    }

    /// A pipeline beside this one, whose parameters are written already.
    fn sub_pipeline(
        &mut self,
        like: &str,
        params: &[String],
        result: &Type,
        at: Span,
        body: impl FnOnce(&mut Self) -> Option<String>,
    ) -> Option<String> {
        let result = self.ty(result, at)?;
        let name = self.name(like);
        let outer = std::mem::take(&mut self.lines);
        let depth = std::mem::replace(&mut self.depth, 1);
        let value = body(self);
        self.depth = depth;
        let lines = std::mem::replace(&mut self.lines, outer);
        let mut out = format!("pipeline {name}({}) -> {result} {{\n", params.join(", "));
        for line in &lines {
            let _ = writeln!(out, "{line}");
        }
        let _ = writeln!(out, "    return {};\n}}", value?);
        self.pipelines.push(out);
        Some(name)
    }

    /// The variables of the program that a term reads, in order. An expression that a variable replaced gets
    /// a name first.
    fn reads(&mut self, id: TermId, bound: &mut Vec<Name>, out: &mut Vec<String>) {
        stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, || {
            let code = self.code;
            let term = code.term(id);
            if let Term::Var(name, _) = term {
                if bound.contains(name) {
                    return;
                }
                match self.means(name) {
                    Some(Means::Name(value)) => {
                        let value = match is_name(&value) {
                            true => value,
                            false => {
                                let own = self.name(name.trim_start_matches('$'));
                                self.line(&format!("let {own} = {value};"));
                                self.scope.push((name.clone(), Means::Name(own.clone())));
                                own
                            }
                        };
                        if !out.contains(&value) {
                            out.push(value);
                        }
                    }
                    Some(Means::Inputs(fields)) => {
                        for (_, own) in fields {
                            if !out.contains(&own) {
                                out.push(own);
                            }
                        }
                    }
                    Some(Means::Function(f)) => {
                        // It is closed over what stood before it.
                        let inner = std::mem::take(bound);
                        self.left = self.left.saturating_sub(1);
                        if self.left > 0 {
                            self.reads(f, bound, out);
                        }
                        *bound = inner;
                    }
                    None => {}
                }
                return;
            }
            if let Term::Field(of, field) = term
                && let Term::Var(name, _) = code.term(*of)
                && !bound.contains(name)
                && let Some(Means::Inputs(fields)) = self.means(name)
            {
                let own = fields.iter().find(|(f, _)| f == field).map(|(_, n)| n.clone());
                out.extend(own.filter(|own| !out.contains(own)));
                return;
            }
            let before = bound.len();
            match term {
                Term::Abs(abs) => bound.push(abs.param.clone()),
                Term::Let { bindings, body, .. } => {
                    for (name, value) in bindings {
                        self.reads(*value, bound, out);
                        bound.push(name.clone());
                    }
                    self.reads(*body, bound, out);
                    bound.truncate(before);
                    return;
                }
                Term::Case { scrutinee, branches, default } => {
                    self.reads(*scrutinee, bound, out);
                    for branch in branches {
                        bound.extend(branch.binder.clone());
                        self.reads(branch.body, bound, out);
                        bound.truncate(before);
                    }
                    if let Some(default) = default {
                        self.reads(*default, bound, out);
                    }
                    return;
                }
                Term::Try { label, body, name, handler, .. } => {
                    self.reads(*label, bound, out);
                    self.reads(*body, bound, out);
                    bound.push(name.clone());
                    self.reads(*handler, bound, out);
                    bound.truncate(before);
                    return;
                }
                _ => {}
            }
            for child in term.children() {
                self.reads(child, bound, out);
            }
            bound.truncate(before);
        });
    }

    fn data(&mut self, data: &Data, at: Span) -> Option<String> {
        Some(match data {
            Data::Null => "null".into(),
            Data::Bool(b) => b.to_string(),
            Data::Num(n) => number(n),
            Data::Str(s) => text(s),
            Data::List(items) => {
                let items: Option<Vec<String>> = items.iter().map(|d| self.data(d, at)).collect();
                format!("[{}]", items?.join(", "))
            }
            Data::Record(fields) => {
                let mut out = Vec::new();
                for (name, value) in fields.iter() {
                    if !is_name(name) {
                        return self.cannot(format!("a field named `{}`", clip(name)), at);
                    }
                    out.push(format!("{name}: {}", self.data(value, at)?));
                }
                format!("{{ {} }}", out.join(", "))
            }
            _ => return self.cannot("a pair or a tag", at),
        })
    }
}

/// Returns the name of a field in the program. Fields of records that a front end makes for itself begin with
/// `$`.
pub(crate) fn field_name(name: &str) -> Option<&str> {
    let own = name.strip_prefix('$').unwrap_or(name);
    is_name(own).then_some(own)
}
