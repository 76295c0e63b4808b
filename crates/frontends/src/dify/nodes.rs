//! Terms for each kind of node.
//!
//! Source: langgenius/dify, `api/core/workflow/nodes`.

use super::outputs::started_with;
use super::{DifyLowering, model};
use crate::defaults;
use core_ir::{Branch, Data, IfSugar, Name, Num, Prim, Term, TermId, Type};
use diagnostics::Span;
use frontend_kit::doc::{Entry, Node};
use frontend_kit::emit::{Template, clip, codes, value_span};
use frontend_kit::graph::Env;
use frontend_kit::kit::{Action, Agent, Kit, first_text};
use frontend_kit::shape::{by_name, model_of};
use std::sync::Arc;

/// Settings that a knowledge search passes beside the question.
const KNOWLEDGE: &[&str] = &[
    "dataset_ids",
    "retrieval_mode",
    "multiple_retrieval_config",
    "single_retrieval_config",
    "metadata_filtering_mode",
    "metadata_filtering_conditions",
];
/// Settings that filter, sort and limit a list.
const LISTS: &[&str] = &["filter_by", "order_by", "limit", "extract_by"];

/// Settings of a node that are what they are; a switch that is off is left out.
fn constants(kit: &mut Kit<'_>, data: Node<'_>, keys: &[&'static str], at: Span) -> Vec<(Name, TermId)> {
    let mut out = Vec::new();
    for key in keys {
        let Some(value) = data.get(key).filter(|v| !v.is_null()) else { continue };
        if value.get("enabled").and_then(|e| e.as_bool()) == Some(false) {
            continue;
        }
        if let Some(value) = frontend_kit::emit::data(value, &mut 400) {
            out.push((Name::from(*key), kit.b.lit(value, at)));
        }
    }
    out
}

impl<'d> DifyLowering<'_, '_, 'd> {
    /// Lowers a node without its failure handling.
    pub(super) fn does(
        &mut self,
        kit: &mut Kit<'_>,
        node: usize,
        kind: &str,
        title: &str,
        env: &Env,
    ) -> TermId {
        let data = self.data(node);
        let at = data.head();
        match kind {
            "start" | "trigger-plugin" | "trigger-webhook" | "trigger-schedule" => {
                let mut fields: Vec<(Name, TermId)> = Vec::new();
                for v in data.get("variables").into_iter().flat_map(|v| v.items()) {
                    if let Some(name) = v.get("variable").and_then(|n| n.text())
                        && fields.iter().all(|(n, _)| &**n != name)
                    {
                        if let Some(ty) = started_with(v) {
                            kit.typed_input(name, ty);
                        }
                        let value = kit.input(name, v.head());
                        fields.push((name.into(), value));
                    }
                }
                // What a webhook is called with.
                for list in ["params", "headers", "body"] {
                    for v in data.get(list).into_iter().flat_map(|v| v.items()) {
                        if let Some(name) = v.get("name").and_then(|n| n.text())
                            && fields.iter().all(|(n, _)| &**n != name)
                        {
                            let value = kit.input(name, v.head());
                            fields.push((name.into(), value));
                        }
                    }
                }
                kit.b.add(Term::Record(fields), at)
            }
            "iteration-start" | "loop-start" | "if-else" | "loop-end" => {
                kit.b.add(Term::Record(Vec::new()), at)
            }
            "llm" => match structure(data) {
                Some(ty) => {
                    let value = self.oracle(kit, data, env, Some(ty), at);
                    let said = |kit: &mut Kit<'_>| kit.b.var("$said", at);
                    let (text, structured) = (said(kit), said(kit));
                    let text = kit.b.add(Term::Prim(Prim::ToJson, vec![text]), at);
                    let fields = vec![("text".into(), text), ("structured_output".into(), structured)];
                    let record = kit.b.add(Term::Record(fields), at);
                    kit.b.let_in(vec![("$said".into(), value)], record, at)
                }
                None => {
                    let text = self.oracle(kit, data, env, None, at);
                    self.record(kit, "text", text, at)
                }
            },
            "agent" => {
                let text = self.agent(kit, data, env, at);
                self.record(kit, "text", text, at)
            }
            "question-classifier" => {
                let (mut params, model_at) = model(kit, data);
                params.purpose = Some(title.into());
                let classes = data.get("classes").into_iter().flat_map(|c| c.items());
                let mut text = String::from("Classify the question. Reply with the id of one class.\n");
                for c in classes {
                    let part = |k: &str| c.get(k).and_then(|v| v.text()).unwrap_or("");
                    text.push_str(&format!("{}: {}\n", part("id"), part("name")));
                }
                if let Some((more, _)) = first_text(data, &["instruction", "instructions"]) {
                    text.push_str(more);
                }
                let prompt = self.text(kit, &text, env, None, at);
                let oracle = kit.b.add(Term::Llm(prompt, Arc::new(params)), model_at.unwrap_or(at));
                let query = self.selected(kit, data.get("query_variable_selector"), env, Data::str(""), at);
                let reply = kit.b.app(oracle, query, at);
                let said = |kit: &mut Kit<'_>| kit.b.var("$said", at);
                let names: Vec<(&str, &str)> = classes_of(data).collect();
                let (class, id, of) = (said(kit), said(kit), said(kit));
                let name = chosen(kit, &names, of, at);
                let fields =
                    vec![("class".into(), class), ("class_id".into(), id), ("class_name".into(), name)];
                let record = kit.b.add(Term::Record(fields), at);
                kit.b.let_in(vec![("$said".into(), reply)], record, at)
            }
            "parameter-extractor" => {
                let mut fields: Vec<(Name, Type, Data)> = Vec::new();
                for p in data.get("parameters").into_iter().flat_map(|p| p.items()) {
                    let Some(name) = p.get("name").and_then(|n| n.text()) else { continue };
                    let (ty, missing) = parameter(p.get("type").and_then(|t| t.text()).unwrap_or(""));
                    if fields.iter().all(|(n, ..)| &**n != name) {
                        fields.push((name.into(), ty, missing));
                    }
                }
                let (mut params, model_at) = model(kit, data);
                params.purpose = Some(title.into());
                let asked_for = fields.iter().map(|(n, ty, _)| (n.clone(), Type::option(ty.clone())));
                params.result = Some(Type::record(asked_for.collect::<Vec<_>>()));
                params.repair = 1;
                let text = first_text(data, &["instruction"]).map_or("Extract the parameters.", |(t, _)| t);
                let prompt = self.text(kit, text, env, None, at);
                let oracle = kit.b.add(Term::Llm(prompt, Arc::new(params)), model_at.unwrap_or(at));
                let query = self.selected(kit, data.get("query"), env, Data::str(""), at);
                let query = kit.b.add(Term::Prim(Prim::ToStr, vec![query]), at);
                let said = kit.b.app(oracle, query, at);
                // What was not found is empty.
                let mut found: Vec<(Name, TermId)> = Vec::new();
                for (name, _, missing) in fields {
                    let all = kit.b.var("$said", at);
                    let part = kit.b.add(Term::Field(all, name.clone()), at);
                    let (seen, value) = (kit.b.var("$part", at), kit.b.var("$part", at));
                    let test = kit.b.add(Term::Prim(Prim::IsNull, vec![seen]), at);
                    let missing = kit.b.lit(missing, at);
                    let value = kit.b.add(Term::If(test, missing, value, IfSugar::Plain), at);
                    let value = kit.b.let_in(vec![("$part".into(), part)], value, at);
                    found.push((name, value));
                }
                for (name, value) in [("__is_success", Data::Num(Num::ONE)), ("__reason", Data::str(""))] {
                    found.push((name.into(), kit.b.lit(value, at)));
                }
                let record = kit.b.add(Term::Record(found), at);
                kit.b.let_in(vec![("$said".into(), said)], record, at)
            }
            "code" => {
                let fields = self.variables(kit, data.get("variables"), env, at);
                self.tool(kit, &format!("code: {title}"), fields, at)
            }
            "tool" => {
                let name = data.get("tool_name").and_then(|n| n.text()).unwrap_or(title);
                let mut fields = self.parameters(kit, data.get("tool_parameters"), env, at);
                for e in data.get("tool_configurations").into_iter().flat_map(|c| c.entries()) {
                    let value = e.value.get("value").unwrap_or(e.value);
                    if fields.iter().all(|(n, _)| &**n != e.name()) && !value.is_null() {
                        let term = match value.as_str() {
                            Some(text) => self.text(kit, text, env, None, at),
                            None => {
                                kit.b.lit(frontend_kit::emit::data(value, &mut 400).unwrap_or(Data::Null), at)
                            }
                        };
                        fields.push((e.name().into(), term));
                    }
                }
                self.tool(kit, name, fields, at)
            }
            "datasource" => {
                let name = ["datasource_name", "provider_name"].iter().find_map(|k| data.get(k)?.text());
                let fields = self.parameters(kit, data.get("datasource_parameters"), env, at);
                self.tool(kit, &format!("datasource: {}", name.unwrap_or(title)), fields, at)
            }
            "knowledge-index" => {
                let chunks =
                    self.selected(kit, data.get("index_chunk_variable_selector"), env, Data::Null, at);
                self.tool(kit, "knowledge_index", vec![("chunks".into(), chunks)], at)
            }
            "human-input" => {
                // Whoever answers says which action it is, and fills in the form.
                let form = first_text(data, &["form_content"]);
                let (text, place) = form.map_or(("", at), |(t, e)| (t, value_span(&e)));
                let form = self.text(kit, text, env, None, place);
                let actions = data.get("user_actions").into_iter().flat_map(|a| a.items());
                let actions = actions.filter_map(|a| a.get("id")?.text()).map(Data::str).collect::<Vec<_>>();
                let actions = kit.b.lit(Data::list(actions), at);
                let fields = vec![("form".into(), form), ("actions".into(), actions)];
                self.tool(kit, &format!("human_input: {title}"), fields, at)
            }
            "http-request" => {
                let mut fields: Vec<(Name, TermId)> = Vec::new();
                for key in ["method", "url", "params", "headers"] {
                    if let Some((text, e)) = first_text(data, &[key]) {
                        let term = self.text(kit, text, env, None, value_span(&e));
                        fields.push((key.into(), term));
                    }
                }
                let body = data.at(&["body", "data"]);
                if let Some(text) = body.and_then(|b| b.text()) {
                    let term = self.text(kit, text, env, None, at);
                    fields.push(("body".into(), term));
                }
                // Of a form each part by its key; a body that is one text has no key.
                let mut parts: Vec<(Name, TermId)> = Vec::new();
                for part in body.into_iter().flat_map(|b| b.items()) {
                    let term = match part.get("value").and_then(|v| v.text()) {
                        Some(text) => self.text(kit, text, env, None, part.head()),
                        None => self.selected(kit, part.get("file"), env, Data::Null, part.head()),
                    };
                    let key = part.get("key").and_then(|k| k.text()).unwrap_or("");
                    if parts.iter().all(|(n, _)| &**n != key) {
                        parts.push((key.into(), term));
                    }
                }
                match &parts[..] {
                    [] => {}
                    [(key, only)] if key.is_empty() => fields.push(("body".into(), *only)),
                    _ => fields.push(("body".into(), kit.b.add(Term::Record(parts), at))),
                }
                if let Some(kind) = data.at(&["authorization", "config", "type"]).and_then(|t| t.text()) {
                    // The key itself is the environment's business.
                    fields.push(("authorization".into(), kit.text(kind, at)));
                }
                self.tool(kit, "http_request", fields, at)
            }
            "knowledge-retrieval" => {
                let query = self.selected(kit, data.get("query_variable_selector"), env, Data::str(""), at);
                let mut fields = vec![(Name::from("query"), query)];
                fields.extend(constants(kit, data, KNOWLEDGE, at));
                self.tool(kit, "knowledge_retrieval", fields, at)
            }
            "document-extractor" | "list-operator" => {
                let selector = data.get("variable_selector").or_else(|| data.get("variable"));
                let input = self.selected(kit, selector, env, Data::Null, at);
                let mut fields = vec![(Name::from("variable"), input)];
                fields.extend(constants(kit, data, LISTS, at));
                self.tool(kit, &kind.replace('-', "_"), fields, at)
            }
            "template-transform" => {
                let text = first_text(data, &["template"]);
                let (text, place) = text.map_or(("", at), |(t, e)| (t, value_span(&e)));
                let output = if text.contains("{%") {
                    // Jinja with statements: rendered by a tool, from the same variables.
                    let fields = self.variables(kit, data.get("variables"), env, at);
                    let rendered = self.tool(kit, &format!("template: {title}"), fields, place);
                    kit.b.add(Term::Prim(Prim::ToStr, vec![rendered]), place)
                } else {
                    self.text(kit, text, env, data.get("variables"), place)
                };
                self.record(kit, "output", output, at)
            }
            "answer" => {
                let (text, place) =
                    first_text(data, &["answer"]).map_or(("", at), |(t, e)| (t, value_span(&e)));
                let answer = self.text(kit, text, env, None, place);
                self.record(kit, "answer", answer, at)
            }
            "end" => {
                let fields = self.variables(kit, data.get("outputs"), env, at);
                kit.b.add(Term::Record(fields), at)
            }
            "variable-aggregator" | "variable-assigner" => {
                let grouped = data.at(&["advanced_settings", "group_enabled"]).and_then(|g| g.as_bool());
                if grouped != Some(true) {
                    let value = self.first_of(kit, data.get("variables"), env, at);
                    return self.record(kit, "output", value, at);
                }
                let mut fields: Vec<(Name, TermId)> = Vec::new();
                let groups = data.at(&["advanced_settings", "groups"]);
                for group in groups.into_iter().flat_map(|g| g.items()) {
                    let Some(name) = group.get("group_name").and_then(|n| n.text()) else { continue };
                    if fields.iter().all(|(n, _)| &**n != name) {
                        let value = self.first_of(kit, group.get("variables"), env, at);
                        fields.push((name.into(), self.record(kit, "output", value, at)));
                    }
                }
                kit.b.add(Term::Record(fields), at)
            }
            "assigner" => self.assign(kit, data, env, at),
            "iteration" => self.iteration(kit, node, env, at),
            "loop" => self.repetition(kit, node, env, at),
            other => kit.undecided(codes::NOT_COMPILED, format!("a node of type `{}`", clip(other)), at),
        }
    }

    fn oracle(
        &mut self,
        kit: &mut Kit<'_>,
        data: Node<'d>,
        env: &Env,
        result: Option<Type>,
        at: Span,
    ) -> TermId {
        let names = data.get("variables");
        let mut system = Template::new(at);
        let mut asked = Template::new(at);
        let (mut has_system, mut has_asked) = (false, false);
        let template = data.entry("prompt_template");
        let list: Vec<Node<'d>> = template
            .map(|e| if e.value.is_sequence() { e.value.items().collect() } else { vec![e.value] })
            .unwrap_or_default();
        for message in list {
            let Some((text, entry)) = first_text(message, &["text", "jinja2_text"]) else { continue };
            let place = value_span(&entry);
            let text = self.text(kit, text, env, names, place);
            match message.get("role").and_then(|r| r.text()) {
                Some("system") => {
                    if std::mem::replace(&mut has_system, true) {
                        system.text("\n");
                    }
                    system.term(text);
                }
                role => {
                    if std::mem::replace(&mut has_asked, true) {
                        asked.text("\n");
                    }
                    if role == Some("assistant") {
                        asked.text("[assistant] ");
                    }
                    asked.term(text);
                }
            }
        }
        // With a memory, what the user says is the last message.
        let query = data.at(&["memory", "query_prompt_template"]).and_then(|q| q.text());
        if let Some(query) = query.filter(|q| !q.is_empty()).or(data.get("memory").map(|_| "{{#sys.query#}}"))
        {
            if has_asked {
                asked.text("\n");
            }
            let query = self.text(kit, query, env, None, at);
            asked.term(query);
            has_asked = true;
        }
        // A single prompt is both the question and the instructions.
        let (prompt, input) = match (has_system, has_asked) {
            (true, true) => (system.build(&mut kit.b), asked.build(&mut kit.b)),
            (true, false) => (system.build(&mut kit.b), kit.text("", at)),
            (false, _) => (asked.build(&mut kit.b), kit.text("", at)),
        };
        let (mut params, model_at) = model(kit, data);
        params.result = result;
        params.purpose = data.get("title").and_then(|t| t.text()).map(Name::from);
        let oracle = kit.b.add(Term::Llm(prompt, Arc::new(params)), model_at.unwrap_or(at));
        kit.b.app(oracle, input, at)
    }

    fn agent(&mut self, kit: &mut Kit<'_>, data: Node<'d>, env: &Env, at: Span) -> TermId {
        let value = |key: &str| -> Option<Entry<'d>> { data.at(&["agent_parameters", key])?.entry("value") };
        let instruction = value("instruction").and_then(|e| Some((e.value.text()?, value_span(&e))));
        let prompt = match instruction {
            Some((text, place)) => self.text(kit, text, env, None, place),
            None => {
                // A strategy of a plug-in may have its own instructions.
                kit.unknown("the instructions of the agent's strategy", at)
            }
        };
        let (params, model_at) = model_of(kit, value("model"), &by_name);
        let mut actions = Vec::new();
        for tool in value("tools").into_iter().flat_map(|e| e.value.items()) {
            if tool.get("enabled").and_then(|e| e.as_bool()) != Some(false)
                && let Some((name, _)) =
                    first_text(tool, &["tool_name", "provider_show_name", "provider_name"])
            {
                actions.push(Action::tool(name, tool.head()));
            }
        }
        let bound = defaults::bound(&defaults::DIFY_ITERATIONS, kit.versions);
        let bound = bound.or_written(value("maximum_iterations").or(value("max_iterations")), kit.out);
        let name = data.get("title").and_then(|t| t.text()).unwrap_or("agent");
        let agent = Agent { name, head: at, prompt, params, model_at, actions, actions_at: None, bound };
        let term = kit.agent_with_request(agent, super::carried(data.get("agent_strategy_name")), None);
        let query = match value("query").and_then(|e| e.value.text()) {
            Some(query) => self.text(kit, query, env, None, at),
            None => kit.b.var("x", at),
        };
        kit.b.app(term, query, at)
    }
}

/// The classes of a question classifier: id and name.
pub(super) fn classes_of<'d>(data: Node<'d>) -> impl Iterator<Item = (&'d str, &'d str)> {
    let classes = data.get("classes").into_iter().flat_map(|c| c.items());
    classes.filter_map(|c| Some((c.get("id")?.text()?, c.get("name").and_then(|n| n.text()).unwrap_or(""))))
}

/// Lowers the choice of the class that a reply names. Dify takes the first if a reply names none.
pub(super) fn chosen(kit: &mut Kit<'_>, classes: &[(&str, &str)], reply: TermId, at: Span) -> TermId {
    let mut branches: Vec<Branch> = Vec::new();
    for (id, gives) in classes {
        if branches.iter().all(|b| &*b.tag != *id) {
            let body = kit.text(gives, at);
            branches.push(Branch { tag: (*id).into(), binder: None, body });
        }
    }
    let first = kit.text(classes.first().map_or("", |c| c.1), at);
    let scrutinee = kit.b.add(Term::Prim(Prim::Trim, vec![reply]), at);
    kit.b.add(Term::Case { scrutinee, branches, default: Some(first) }, at)
}

/// The type of an extracted parameter, and what represents one that was not found.
pub(super) fn parameter(kind: &str) -> (Type, Data) {
    let list = |item| (Type::list(item), Data::list(Vec::new()));
    match kind {
        "number" => (Type::Num, Data::Num(Num::ZERO)),
        "bool" | "boolean" => (Type::Bool, Data::Bool(false)),
        "array[string]" => list(Type::Str),
        "array[number]" => list(Type::Num),
        kind if kind.starts_with("array") => list(Type::Dyn),
        _ => (Type::Str, Data::str("")),
    }
}

/// The type of the structured output of a model, if it has one.
pub(super) fn structure(data: Node<'_>) -> Option<Type> {
    data.get("structured_output_enabled").and_then(|e| e.as_bool()).filter(|on| *on)?;
    Some(
        data.at(&["structured_output", "schema"]).map_or(Type::Dyn, |s| frontend_kit::shape::of_schema(s, 0)),
    )
}
