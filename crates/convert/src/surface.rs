//! The surface language.
//!
//! A function of a text or of a record of inputs becomes a pipeline; each call of a model a task by an agent; each call of a tool with a
//! signature a call of that tool. What comes first in the term is the first statement.

use crate::cannot;
use core_ir::{
    Branch, Code, Data, EffectClass, IfSugar, LabelSpec, ModelParams, Name, Num, Prim, Term, TermId,
    ToolDecl, ToolId, Type,
};
use diagnostics::{Diagnostic, Span, clip};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// Words that are no names in the surface language, and those that would be hard to read as one.
const RESERVED: &[&str] = &[
    "let",
    "if",
    "else",
    "while",
    "break",
    "continue",
    "try",
    "catch",
    "assert",
    "return",
    "parallel",
    "true",
    "false",
    "null",
    "for",
    "in",
    "match",
    "run",
    "with",
    "by",
    "guard",
    "endorse",
    "quarantine",
    "length",
    "lower",
    "upper",
    "trim",
    "split",
    "join",
    "contains",
    "append",
    "slice",
    "range",
    "to_string",
    "to_number",
    "agent",
    "task",
    "tool",
    "pipeline",
    "use",
    "type",
    "enum",
    "test",
    "workflow",
    "stage",
    "review",
];

/// More calls are not written.
const MOST_CALLS: usize = 10_000;

/// Writes a term; without an error among what is found the text is whole.
pub(crate) fn write(code: &Code, name: &str) -> (String, Vec<Diagnostic>) {
    let mut w = Writer {
        code,
        found: Vec::new(),
        used: RESERVED.iter().map(|w| w.to_string()).collect(),
        enums: Vec::new(),
        agents: Vec::new(),
        tools: HashMap::new(),
        decls: Vec::new(),
        scope: Vec::new(),
        lines: Vec::new(),
        depth: 1,
        left: MOST_CALLS,
    };
    let pipeline = w.pipeline(name);
    let mut out = String::new();
    for (name, variants) in &w.enums {
        let _ = writeln!(out, "enum {name} {{ {} }}", variants.join(", "));
    }
    for (name, fields) in &w.agents {
        let _ = writeln!(out, "agent {name} {{ {fields} }}");
    }
    for decl in &w.decls {
        let _ = writeln!(out, "{decl}");
    }
    if !out.is_empty() {
        out.push('\n');
    }
    (out + &pipeline, w.found)
}

/// What a variable of the term is in the program.
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
    enums: Vec<(String, Vec<String>)>,
    /// Agents by name, with what they are.
    agents: Vec<(String, String)>,
    tools: HashMap<ToolId, String>,
    decls: Vec<String>,
    scope: Vec<(Name, Means)>,
    /// The statements of the block that is being written.
    lines: Vec<String>,
    depth: usize,
    /// How many calls may still be written: a function is written with each.
    left: usize,
}

impl Writer<'_> {
    fn cannot(&mut self, what: impl Into<String>, at: Span) -> Option<String> {
        self.found.push(cannot(format!("an `.agent` program cannot say {}", what.into()), at));
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
                    let own = self.name(field);
                    if own != **field {
                        self.cannot(format!("an input of the name `{}`", clip(field)), at);
                    }
                    let ty = self.ty(ty, at).unwrap_or_default();
                    params.push(format!("{own}: {ty}"));
                    names.push((field.clone(), own));
                }
                self.scope.push((abs.param.clone(), Means::Inputs(names)));
                (params, None, self.value(abs.body))
            }
            _ if self.is_function(root) => {
                let x = self.name("input");
                (vec![format!("{x}: String")], Some(Type::Str), self.call(root, x, at))
            }
            // It takes nothing.
            _ => (Vec::new(), None, self.value(root)),
        };
        // The types of a term that cannot be written need not be known.
        let result = if self.found.is_empty() { self.result(given.as_ref()) } else { None };
        let result = result.and_then(|ty| self.ty(&ty, at));
        if result.is_none() && self.found.is_empty() {
            self.cannot("a result whose type is not known before the run", at);
        }
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
        let typing = check::types::check(self.code, input);
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
            Type::List(item) => format!("List[{}]", self.ty(item, at)?),
            Type::Option(item) => format!("Option[{}]", self.ty(item, at)?),
            Type::Record(fields) => {
                let mut out = Vec::new();
                for (name, ty) in fields.iter() {
                    if !is_name(name) {
                        return self.cannot(format!("a field of the name `{}`", clip(name)), at);
                    }
                    out.push(format!("{name}: {}", self.ty(ty, at)?));
                }
                format!("Obj{{{}}}", out.join(", "))
            }
            Type::Enum(e) => {
                let variants: Vec<String> = e.variants.iter().map(|v| v.to_string()).collect();
                if let Some((name, _)) = self.enums.iter().find(|(n, v)| **n == *e.name && *v == variants) {
                    return Some(name.clone());
                }
                let taken = |v: &String| !is_name(v) || self.enums.iter().any(|(_, all)| all.contains(v));
                if !is_name(&e.name) || variants.iter().any(taken) || !self.used.insert(e.name.to_string()) {
                    return self.cannot(format!("the enumeration `{}`", clip(&e.name)), at);
                }
                self.enums.push((e.name.to_string(), variants));
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
            return self.cannot(format!("more than {MOST_CALLS} calls"), at);
        }
        if let Some(stages) = code.stages(f) {
            return stages.into_iter().try_fold(x, |x, stage| self.call(stage, x, at));
        }
        if code.par_pair(f).is_some() {
            return self.cannot("a pair", code.span(f));
        }
        match code.term(f) {
            Term::Llm(prompt, params) => {
                let (task, agent) = self.task(*prompt, params, code.span(f))?;
                self.run(&task, &format!("text: {x}"), &format!(" by {agent}"), params.purpose.as_deref())
            }
            Term::Abs(abs) => {
                self.scope.push((abs.param.clone(), Means::Name(x)));
                let out = self.value(abs.body);
                self.scope.pop();
                out
            }
            Term::Var(name, _) => match self.means(name) {
                Some(Means::Function(f)) => self.call(f, x, at),
                _ => self.cannot("a function that is a value", code.span(f)),
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
                    return self.cannot("a call of a tool with a value as its arguments", at);
                };
                let args = format!("{}: {x}", only.name);
                let tool = self.tool(*id, &decl)?;
                self.run(&tool, &args, "", Some(&tool))
            }
            Term::Unknown(why) => self.cannot(format!("what is not known here: {}", clip(why)), code.span(f)),
            Term::Fix { .. } => self.cannot(
                "this loop: its agents begin with everything that was said so far in one text",
                code.span(f),
            ),
            Term::Mem(..) => self.cannot("this memory", code.span(f)),
            Term::Guard { .. } => self.cannot("a guard around a function", code.span(f)),
            _ => self.cannot("a function of this kind", code.span(f)),
        }
    }

    /// `let v = run … with {…} …;`
    fn run(&mut self, target: &str, args: &str, clauses: &str, like: Option<&str>) -> Option<String> {
        let v = self.name(&format!("{}_said", like.unwrap_or(target)));
        self.line(&format!("let {v} = run {target} with {{ {args} }}{clauses};"));
        Some(v)
    }

    /// The task and the agent of a question.
    fn task(&mut self, prompt: TermId, params: &ModelParams, at: Span) -> Option<(String, String)> {
        let code = self.code;
        let Term::Lit(Data::Str(prompt)) = code.term(prompt) else {
            self.cannot("instructions that are computed", code.span(prompt));
            return None;
        };
        let mut fields = vec![];
        if let Some(model) = &params.model {
            fields.push(format!("model: {}", text(model)));
        }
        if !prompt.is_empty() {
            fields.push(format!("prompt: {}", text(prompt)));
        }
        if let Some(t) = &params.temperature {
            fields.push(format!("temperature: {}", number(t)));
        }
        fields.push("tools: []".into());
        if params.max_tokens.is_some() {
            self.cannot("the most tokens of a reply", at);
        }
        for (key, _) in params.extra.iter().filter(|(n, _)| &**n != "agent") {
            self.cannot(format!("the setting `{}` of a model", clip(key)), at);
        }
        if !params.tools.is_empty() {
            self.cannot("tools that are offered outside of an agent's loop", at);
        }
        let result = params.result.clone().unwrap_or(Type::Str);
        let ty = self.ty(&result, at)?;
        if !matches!(result, Type::Str) && params.repair != 2 {
            self.cannot("how often an answer that does not fit is asked for again", at);
        }
        let fields = fields.join(", ");
        let agent = match self.agents.iter().find(|(_, f)| *f == fields) {
            Some((name, _)) => name.clone(),
            None => {
                let name = self.name(params.model.as_deref().unwrap_or("assistant"));
                self.agents.push((name.clone(), fields));
                name
            }
        };
        let task = self.name(params.purpose.as_deref().unwrap_or("answer"));
        self.decls.push(format!("task {task}(text: String) -> {ty} by agent {{ prompt \"{{text}}\" }}"));
        Some((task, agent))
    }

    /// The declaration of a tool with a signature.
    fn tool(&mut self, id: ToolId, decl: &ToolDecl) -> Option<String> {
        if let Some(name) = self.tools.get(&id) {
            return Some(name.clone());
        }
        let at = decl.span;
        if !is_name(&decl.name) || !self.used.insert(decl.name.to_string()) {
            return self.cannot(format!("a tool of the name `{}`", clip(&decl.name)), at);
        }
        if decl.approve || decl.policy.is_some() || decl.handler.is_some() {
            self.cannot("how this tool is carried out or allowed", at);
        }
        let control = match decl.effect == EffectClass::Write && decl.control == LabelSpec::BOTTOM {
            true => String::new(),
            false => required(&decl.control),
        };
        let mut params = Vec::new();
        for p in &decl.params {
            let requires = if p.bound == decl.control { String::new() } else { required(&p.bound) };
            params.push(format!("{}: {}{requires}", p.name, self.ty(&p.ty, at)?));
        }
        let class = match decl.effect {
            EffectClass::Pure => "pure",
            EffectClass::Read => "reads",
            EffectClass::Write => "writes",
        };
        let label = match &decl.label {
            LabelSpec::Axes { untrusted, secret } => {
                let untrusted = *untrusted && decl.effect != EffectClass::Read;
                format!(
                    "{}{}",
                    if untrusted { " untrusted" } else { "" },
                    if *secret { " secret" } else { "" }
                )
            }
            LabelSpec::Exact(_) => return self.cannot("a label of a certain lattice", at),
        };
        let result = self.ty(&decl.result, at)?;
        let about =
            decl.description.as_ref().map_or(String::new(), |d| format!("-- {}\n", d.replace('\n', "\n-- ")));
        self.decls.push(format!(
            "{about}tool {}({}) -> {result} {class}{label}{control} {{}}",
            decl.name,
            params.join(", ")
        ));
        self.tools.insert(id, decl.name.to_string());
        Some(decl.name.to_string())
    }

    // ----- values -----

    fn means(&self, name: &Name) -> Option<Means> {
        self.scope.iter().rev().find(|(n, _)| n == name).map(|(_, m)| m.clone())
    }

    /// A definition, which holds until the scope is cut back.
    fn bind(&mut self, name: &Name, value: TermId) -> Option<()> {
        let means = match self.code.term(value) {
            Term::Abs(_) | Term::Llm(..) | Term::Tool(_) => Means::Function(value),
            _ => {
                let value = self.value(value)?;
                if self.used.contains(&value) {
                    // It has a name already.
                    Means::Name(value)
                } else {
                    let own = self.name(name.trim_start_matches('$'));
                    self.line(&format!("let {own} = {value};"));
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
                _ => self.cannot("a function that is a value", at),
            },
            Term::Lit(data) => self.data(data, at),
            Term::Record(fields) => {
                let mut out = Vec::new();
                for (name, value) in fields {
                    if !is_name(name) {
                        return self.cannot(format!("a field of the name `{}`", clip(name)), at);
                    }
                    out.push(format!("{name}: {}", self.value(*value)?));
                }
                Some(format!("{{ {} }}", out.join(", ")))
            }
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
                        .or_else(|| self.cannot(format!("the input `{}`, which is none", clip(field)), at));
                }
                if !is_name(field) {
                    return self.cannot(format!("a field of the name `{}`", clip(field)), at);
                }
                Some(format!("{}.{field}", self.value(*of)?))
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
                    return self.run(&tool, &args.join(", "), "", Some(&tool));
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
            Term::Unknown(why) => self.cannot(format!("what is not known here: {}", clip(why)), at),
            Term::Case { .. } | Term::Classify(..) => {
                self.cannot("a choice by a model's word, with an error for other words", at)
            }
            Term::Pair(..) | Term::Fst(_) | Term::Snd(_) => self.cannot("a pair", at),
            Term::Mem(..) | Term::Recall(..) | Term::Remember(..) => self.cannot("this memory", at),
            Term::Send(..) | Term::Recv(_) | Term::Fork(_) | Term::Fresh(_) | Term::Clear => {
                self.cannot("a conversation step by step", at)
            }
            Term::Guard { .. } => self.cannot("this guard", at),
            Term::Choose(..) => self.cannot("a choice by chance", at),
            Term::Try { .. } | Term::Fail(_) | Term::Within(..) => self.cannot("this handling of errors", at),
            Term::Relabel(..)
            | Term::Test(..)
            | Term::Assert(..)
            | Term::Endorse(..)
            | Term::Declassify(..) => self.cannot("a label", at),
            Term::Check(..) => self.cannot("a check of a type", at),
            Term::Abs(_) | Term::Llm(..) | Term::Tool(_) | Term::Fix { .. } => {
                self.cannot("a function that is a value", at)
            }
            Term::Tag(..) => self.cannot("a tag", at),
            Term::With(..) => self.cannot("a record with one field set anew", at),
            Term::Each(..) => self.cannot("a function for each item of a list", at),
        }
    }

    fn prim(&mut self, prim: Prim, args: &[TermId], at: Span) -> Option<String> {
        if prim == Prim::Format {
            return self.format(args);
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
                    let value = self.value(*part)?;
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
                return self.cannot(
                    "a condition that asks for something only if it is needed",
                    self.code.span(other),
                );
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
        if !matches!(self.code.term(scrutinee), Term::Prim(Prim::Trim, _)) {
            return self.cannot("a choice between tags", self.code.span(scrutinee));
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

    /// Calls at the same time.
    fn parallel(&mut self, most: Option<u32>, branches: &[TermId], at: Span) -> Option<String> {
        let outer = std::mem::take(&mut self.lines);
        let mut names = Vec::new();
        self.depth += 1;
        for branch in branches {
            let before = self.lines.len();
            let value = self.value(*branch)?;
            // One call each, and nothing else, may stand there.
            if self.lines.len() != before + 1 || !self.lines[before].contains(&format!("let {value} = run "))
            {
                return self
                    .cannot("parts that run at the same time and are no calls", self.code.span(*branch));
            }
            names.push(value);
        }
        self.depth -= 1;
        let calls = std::mem::replace(&mut self.lines, outer);
        if names.is_empty() {
            return self.cannot("nothing that runs at the same time", at);
        }
        let most = most.map_or(String::new(), |n| format!(" max_concurrency {n}"));
        self.line(&format!("parallel{most} {{"));
        self.lines.extend(calls);
        self.line("} join;");
        Some(format!("[{}]", names.join(", ")))
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
                        return self.cannot(format!("a field of the name `{}`", clip(name)), at);
                    }
                    out.push(format!("{name}: {}", self.data(value, at)?));
                }
                format!("{{ {} }}", out.join(", "))
            }
            _ => return self.cannot("a pair or a tag", at),
        })
    }
}

/// The words for a bound, as far as there are some.
fn required(bound: &LabelSpec) -> String {
    match bound {
        LabelSpec::Axes { untrusted, secret } => {
            let word = |lacks: bool, word: &'static str| if lacks { word } else { "" };
            format!("{}{}", word(!untrusted, " requires trusted"), word(!secret, " requires public"))
        }
        LabelSpec::Exact(_) => String::new(),
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && ![
            "let", "if", "else", "while", "break", "continue", "try", "catch", "assert", "return",
            "parallel", "true", "false", "null",
        ]
        .contains(&name)
}

/// A text between quotes.
fn text(s: &str) -> String {
    format!("\"{}\"", escaped(s))
}

fn escaped(s: &str) -> String {
    let mut out = String::new();
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// A number; a fraction that has no finite decimals is a quotient.
fn number(n: &Num) -> String {
    let text = n.to_string();
    match text.split_once('/') {
        Some((a, b)) => format!("({a} / {b})"),
        None => text,
    }
}
