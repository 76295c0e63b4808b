//! Questions to models, loops of agents and tools as declarations.

use super::words::{escaped, is_name, number, required, template, text};
use super::{Agent, Means, Writer};
use crate::text_loop::{ActionKind, TextLoop, text_loop};
use core_ir::{
    Bound, Code, Data, EffectClass, LabelSpec, ModelParams, Prim, Term, TermId, ToolDecl, ToolId, Type,
};
use diagnostics::{Span, clip};

/// A task that an agent carries out.
struct Job {
    task: String,
    agent: String,
    /// Arguments beside the text.
    args: Vec<String>,
}

impl<'c> Writer<'c> {
    /// A question to a model.
    pub(super) fn question(
        &mut self,
        prompt: TermId,
        params: &ModelParams,
        x: String,
        at: Span,
    ) -> Option<String> {
        if !params.tools.is_empty() {
            return self.cannot("tools that are offered outside of an agent's loop", at);
        }
        let result = params.result.clone().unwrap_or(Type::Str);
        let ty = self.ty(&result, at)?;
        if !matches!(result, Type::Str) && params.repair != 2 {
            let n = params.repair;
            self.cannot(format!("{n} repairs of a malformed reply: there are always 2"), at);
        }
        let fields = self.fields(params, at);
        let job = self.job(Some(prompt), params, fields, &ty)?;
        self.carry_out(&job, x, params, result)
    }

    fn carry_out(&mut self, job: &Job, x: String, params: &ModelParams, result: Type) -> Option<String> {
        let mut args = vec![format!("text: {x}")];
        args.extend(job.args.iter().cloned());
        let by = format!(" by {}", job.agent);
        self.run(&job.task, &args.join(", "), &by, params.purpose.as_deref(), result)
    }

    /// A loop on one text, given the text.
    pub(super) fn loop_on_text(&mut self, found: &TextLoop<'_>, x: String, at: Span) -> Option<String> {
        let fields = self.loop_fields(found, at)?;
        let job = self.job(found.prompt, found.params, fields, "String")?;
        self.carry_out(&job, x, found.params, Type::Str)
    }

    /// The task and the agent of a question. Instructions that are computed are the task's.
    fn job(
        &mut self,
        prompt: Option<TermId>,
        params: &ModelParams,
        mut fields: Vec<String>,
        ty: &str,
    ) -> Option<Job> {
        let mut job = Job { task: String::new(), agent: String::new(), args: Vec::new() };
        let (mut declared, mut system) = (vec!["text: String".to_string()], String::new());
        if let Some(prompt) = prompt {
            self.instructions(prompt, &mut fields, &mut job, &mut declared, &mut system)?;
        }
        job.agent = self.agent(params.model.as_deref(), fields, String::new());
        job.task = self.name(params.purpose.as_deref().unwrap_or("answer"));
        self.decls.push(format!(
            "task {}({}) -> {ty} by agent {{ {system}prompt \"{{text}}\" }}",
            job.task,
            declared.join(", ")
        ));
        Some(job)
    }

    /// The instructions of a question: those of the agent, or of the task.
    fn instructions(
        &mut self,
        prompt: TermId,
        fields: &mut Vec<String>,
        job: &mut Job,
        declared: &mut Vec<String>,
        system: &mut String,
    ) -> Option<()> {
        let code = self.code;
        let at = code.span(prompt);
        match code.term(prompt) {
            Term::Lit(Data::Str(own)) => {
                if !own.is_empty() {
                    fields.insert(0, format!("prompt: {}", template(own)));
                }
            }
            Term::Prim(Prim::Format, parts) => {
                system.push_str("system \"");
                for part in parts.clone() {
                    if let Term::Lit(Data::Str(own)) = code.term(part) {
                        system.push_str(&escaped(own).replace('{', "{{").replace('}', "}}"));
                        continue;
                    }
                    let own = self.name("part");
                    let known = self.types.get(&part).cloned().unwrap_or(Type::Dyn);
                    declared.push(format!("{own}: {}", self.ty(&known, at)?));
                    let value = self.value(part)?;
                    job.args.push(format!("{own}: {value}"));
                    system.push_str(&format!("{{{own}}}"));
                }
                system.push_str("\" ");
            }
            Term::Unknown(why) => {
                return self.cannot_give(format!("an unknown part: {}", clip(why)), at);
            }
            _ => {
                let known = self.types.get(&prompt).cloned().unwrap_or(Type::Dyn);
                if known != Type::Str {
                    return self.cannot_give("instructions that may not be a text".into(), at);
                }
                let own = self.name("instructions");
                let value = self.value(prompt)?;
                declared.push(format!("{own}: String"));
                job.args.push(format!("{own}: {value}"));
                system.push_str(&format!("system \"{{{own}}}\" "));
            }
        }
        Some(())
    }

    fn cannot_give<T>(&mut self, what: String, at: Span) -> Option<T> {
        self.cannot(what, at);
        None
    }

    /// The agent with these fields.
    fn agent(&mut self, like: Option<&str>, fields: Vec<String>, about: String) -> String {
        let fields = fields.join(", ");
        if let Some(known) = self.agents.iter().find(|a| a.fields == fields && a.about == about) {
            return known.name.clone();
        }
        let name = self.name(like.unwrap_or("assistant"));
        self.agents.push(Agent { name: name.clone(), fields, about });
        name
    }

    /// Returns the fields of an agent's declaration that configure its model.
    fn fields(&mut self, params: &ModelParams, at: Span) -> Vec<String> {
        let mut fields = self.model_fields(params, at);
        fields.push("tools: []".into());
        fields
    }

    fn model_fields(&mut self, params: &ModelParams, at: Span) -> Vec<String> {
        let mut fields = Vec::new();
        let mut models: Vec<&str> = params.model.as_deref().into_iter().collect();
        let others = params.fallbacks();
        if !models.is_empty() {
            models.extend(others);
        }
        match &models[..] {
            [] => {}
            [only] => fields.push(format!("model: {}", text(only))),
            all => {
                let all: Vec<String> = all.iter().map(|m| text(m)).collect();
                fields.push(format!("model: [{}]", all.join(", ")));
            }
        }
        if let Some(t) = &params.temperature {
            fields.push(format!("temperature: {}", number(t)));
        }
        if let Some(n) = params.max_tokens {
            fields.push(format!("max_tokens: {n}"));
        }
        let mut settings = Vec::new();
        for (key, value) in &params.extra {
            match &**key {
                "agent" => {}
                "fallback" if models.len() > 1 => {}
                "model" | "temperature" | "max_tokens" | "budget" | "fallback" => {
                    self.cannot(format!("the model setting `{key}` in addition to its own field"), at);
                }
                key => {
                    let name = if is_name(key) { key.to_string() } else { text(key) };
                    if let Some(value) = self.data(value, at) {
                        settings.push(format!("{name}: {value}"));
                    }
                }
            }
        }
        if !settings.is_empty() {
            fields.push(format!("settings: {{ {} }}", settings.join(", ")));
        }
        fields
    }

    /// Returns the fields of an agent's declaration for such a loop, except for its instructions.
    fn loop_fields(&mut self, found: &TextLoop<'_>, at: Span) -> Option<Vec<String>> {
        let mut fields = self.model_fields(found.params, at);
        fields.push(if found.one_action { "talk: actions" } else { "talk: text" }.into());
        fields.push(match found.bound {
            Bound::Finite(n) => format!("max_steps: {n}"),
            Bound::Infinite => "max_steps: unlimited".into(),
        });
        let (mut tools, mut last, mut helpers, mut handoffs) = (vec![], vec![], vec![], vec![]);
        // Fields stand in the order in which the first of their kind is offered.
        let mut order: Vec<&str> = Vec::new();
        for action in &found.actions {
            let decl = self.code.tool(action.id).clone();
            let kind = match action.kind {
                ActionKind::End => {
                    return self.cannot_give("a call that ends the loop with an error".into(), decl.span);
                }
                ActionKind::Call | ActionKind::Finish => {
                    let name = self.tool(action.id, &decl)?;
                    if matches!(action.kind, ActionKind::Finish) {
                        last.push(name.clone());
                    }
                    tools.push(name);
                    "tools"
                }
                ActionKind::Ask(f) => {
                    helpers.push(self.other(f, &decl)?);
                    "helpers"
                }
                ActionKind::HandOff(f) => {
                    handoffs.push(self.other(f, &decl)?);
                    "handoffs"
                }
            };
            if !order.contains(&kind) {
                order.push(kind);
            } else if order.last() != Some(&kind) {
                self.cannot("tools, agents and handoffs in mixed order", decl.span);
            }
        }
        if !order.contains(&"tools") {
            order.push("tools");
        }
        for kind in order {
            let names = match kind {
                "tools" => &tools,
                "helpers" => &helpers,
                _ => &handoffs,
            };
            fields.push(format!("{kind}: [{}]", names.join(", ")));
        }
        if !last.is_empty() {
            fields.push(format!("final_tools: [{}]", last.join(", ")));
        }
        Some(fields)
    }

    /// A helper or target of a handoff, as an agent or a pipeline, with its name.
    fn other(&mut self, f: TermId, decl: &ToolDecl) -> Option<String> {
        stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, || self.other_inner(f, decl))
    }

    fn other_inner(&mut self, f: TermId, decl: &ToolDecl) -> Option<String> {
        let code = self.code;
        let at = code.span(f);
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return self.cannot("an agent this large", at);
        }
        let plain = ToolDecl {
            description: decl.description.clone(),
            span: decl.span,
            params: vec![core_ir::ToolParam {
                name: "input".into(),
                ty: Type::Str,
                bound: LabelSpec::TOP,
                default: None,
            }],
            result: Type::Str,
            effect: EffectClass::Pure,
            control: LabelSpec::TOP,
            label: LabelSpec::BOTTOM,
            ..ToolDecl::unknown(decl.name.clone(), decl.span)
        };
        if plain != *decl {
            return self.cannot(
                format!("the parameters of the agent `{}`: it takes a single text", clip(&decl.name)),
                decl.span,
            );
        }
        let about = self.about(decl)?;
        let function = match code.term(f) {
            Term::Var(name, _) => match self.means(name) {
                Some(Means::Function(f)) => f,
                _ => f,
            },
            _ => f,
        };
        let own = |code: &Code, prompt: Option<TermId>| match prompt.map(|p| code.term(p)) {
            None => Some(String::new()),
            Some(Term::Lit(Data::Str(s))) => Some(s.to_string()),
            Some(_) => None,
        };
        let name = match (code.term(function), text_loop(code, function)) {
            (Term::Llm(prompt, params), _)
                if params.tools.is_empty()
                    && matches!(params.result, None | Some(Type::Str))
                    && own(code, Some(*prompt)).is_some() =>
            {
                let mut fields = self.fields(params, at);
                instructed(&mut fields, own(code, Some(*prompt)));
                self.agent(Some(&decl.name), fields, about)
            }
            (_, Some(found)) if own(code, found.prompt).is_some() => {
                let mut fields = self.loop_fields(&found, at)?;
                instructed(&mut fields, own(code, found.prompt));
                self.agent(Some(&decl.name), fields, about)
            }
            (Term::Unknown(why), _) => {
                return self.cannot(format!("an unknown part: {}", clip(why)), at);
            }
            _ => {
                let x = self.name("input");
                self.known.insert(x.clone(), Type::Str);
                let mut read = Vec::new();
                self.reads(function, &mut Vec::new(), &mut read);
                if !read.is_empty() {
                    let what = format!("values that the agent `{}` uses besides its input", clip(&decl.name));
                    return self.cannot(what, at);
                }
                let params = [format!("{x}: String")];
                let name = self.sub_pipeline(&decl.name, &params, &Type::Str, at, |w| {
                    let value = w.call(function, x, at)?;
                    Some(value)
                })?;
                if !about.is_empty()
                    && let Some(written) = self.pipelines.last_mut()
                {
                    written.insert_str(0, &about);
                }
                name
            }
        };
        let same = *name == *decl.name;
        Some(if same { name } else { format!("{name} as {}", text(&decl.name)) })
    }

    /// The comment that is the description of a tool.
    fn about(&mut self, decl: &ToolDecl) -> Option<String> {
        let Some(d) = &decl.description else { return Some(String::new()) };
        // Lines of a comment are one text without what is around it.
        let lines: Vec<&str> = d.split('\n').collect();
        let plain = lines.len() == 1 && d.trim() == &**d && !d.is_empty() && !d.chars().any(char::is_control);
        if plain {
            return Some(format!("-- {d}\n"));
        }
        self.cannot(format!("the description of `{}`, which has several lines", clip(&decl.name)), decl.span)
    }

    /// The declaration of a tool with a signature.
    pub(super) fn tool(&mut self, id: ToolId, decl: &ToolDecl) -> Option<String> {
        if let Some(name) = self.tools.get(&id) {
            return Some(name.clone());
        }
        let at = decl.span;
        if &*decl.name == "final" || decl.name.is_empty() {
            return self.cannot(format!("a tool named `{}`", clip(&decl.name)), at);
        }
        let plain = is_name(&decl.name) && self.used.insert(decl.name.to_string());
        let name = if plain { decl.name.to_string() } else { self.name(&decl.name) };
        let called = if plain { String::new() } else { format!(" as {}", text(&decl.name)) };
        let bounded = decl.delegated.is_some()
            || decl.confirms
            || decl.at_most.is_some()
            || !decl.among.is_empty()
            || !decl.plain.is_empty();
        if decl.approve.may_ask() || decl.policy.is_some() || bounded {
            self.cannot(format!("the approval and limits of `{}`", clip(&decl.name)), at);
        }
        if !decl.parts.is_empty() {
            self.cannot(format!("the labels of parts of what `{}` returns", clip(&decl.name)), at);
        }
        let body = match &decl.handler {
            None => "{}".to_string(),
            Some(handler) => match body(handler) {
                Some(body) => format!("{{ {body} }}"),
                None => {
                    let what = format!(
                        "the handler of `{}`: {}",
                        clip(&decl.name),
                        clip(&handler.to_json().to_string())
                    );
                    return self.cannot(what, at);
                }
            },
        };
        let control = match decl.effect == EffectClass::Write && decl.control == LabelSpec::BOTTOM {
            true => String::new(),
            false => required(&decl.control),
        };
        let mut params = Vec::new();
        for p in &decl.params {
            if !is_name(&p.name) {
                return self.cannot(format!("a parameter named `{}`", clip(&p.name)), at);
            }
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
            LabelSpec::Exact(_) => return self.cannot("a label of a specific lattice", at),
        };
        let result = self.ty(&decl.result, at)?;
        let about = self.about(decl)?;
        self.decls.push(format!(
            "{about}tool {name}({}) -> {result}{called} {class}{label}{control} {body}",
            params.join(", ")
        ));
        self.tools.insert(id, name.clone());
        Some(name)
    }
}

/// Adds an agent's instructions, unless there are none.
fn instructed(fields: &mut Vec<String>, prompt: Option<String>) {
    if let Some(prompt) = prompt.filter(|p| !p.is_empty()) {
        fields.insert(0, format!("prompt: {}", template(&prompt)));
    }
}

/// Returns the handler of a tool as the body of a declaration. Templates in a handler stay templates.
fn body(handler: &Data) -> Option<String> {
    let Data::Record(fields) = handler else { return None };
    let [(kind, about)] = &fields[..] else { return None };
    let quoted = |s: &str| format!("\"{}\"", escaped(s));
    match (&**kind, about) {
        ("builtin", Data::Str(name)) => Some(format!("builtin {}", quoted(name))),
        ("mcp", Data::Str(server)) => Some(format!("mcp {}", quoted(server))),
        ("mcp", Data::Record(of)) if of.len() == 2 => {
            let (server, tool) = (about.field("server")?.as_str()?, about.field("tool")?.as_str()?);
            Some(format!("mcp {} {}", quoted(server), quoted(tool)))
        }
        ("exec", Data::List(words)) if !words.is_empty() => {
            let words: Option<Vec<String>> = words.iter().map(|w| w.as_str().map(quoted)).collect();
            Some(format!("exec {}", words?.join(" ")))
        }
        ("http", Data::Record(of)) if of.len() == 2 => {
            let (method, url) = (about.field("method")?.as_str()?, about.field("url")?.as_str()?);
            is_name(method).then(|| format!("http {method} {}", quoted(url)))
        }
        _ => None,
    }
}
