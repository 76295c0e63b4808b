//! Prompts: messages with variables, and what fills them.

use super::let_bindings::Sharing;
use super::value::{Scope, message_role, role_of};
use super::{GraphReader, ReplyKind};
use crate::py::field;
use core_ir::{Prim, Role, Term, TermId};
use diagnostics::Span;
use frontend_kit::emit::{Template, braces, codes};
use frontend_kit::kit::Kit;
use python::{Object, Piece, PyKind, Value};
use std::rc::Rc;

impl GraphReader<'_, '_> {
    /// Role and content of a message that is an object, a dictionary or a pair.
    pub fn message_of(&self, value: &Value) -> Option<(Role, Value)> {
        match &value.kind {
            PyKind::Object(id) => {
                let object = self.world.object(*id);
                if object.base.is_some() || object.class.is_some() {
                    return None;
                }
                let role = match object.short() {
                    "ChatMessage" => {
                        role_of(field(object, None, "role").and_then(|g| self.world.str(g.value))?)?
                    }
                    _ => message_role(&object.callee)?,
                };
                let nothing = Value::new(PyKind::Str("".into()), object.span);
                Some((role, field(object, Some(0), "content").map_or(nothing, |g| g.value.clone())))
            }
            PyKind::Dict(id) => {
                let entries = &self.world.dict(*id).entries;
                let get = |key: &str| entries.iter().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v);
                let role =
                    get("role").or_else(|| get("type")).and_then(|v| self.world.str(v)).and_then(role_of)?;
                Some((role, get("content")?.clone()))
            }
            PyKind::List(id) => {
                let list = self.world.list(*id);
                let [role, content] = &list.items[..] else { return None };
                let role = self.world.str(role).and_then(role_of)?;
                Some((role, content.clone()))
            }
            _ => None,
        }
    }

    /// The parts of what a model is asked.
    pub fn parts(&self, scope: &Scope, value: &Value) -> Vec<Part> {
        let mut out = Vec::new();
        self.add_parts(scope, value, None, &mut out, 0);
        out
    }

    pub(super) fn add_parts(
        &self,
        scope: &Scope,
        value: &Value,
        vars: Option<&Vars>,
        out: &mut Vec<Part>,
        depth: usize,
    ) {
        const MAX_DEPTH: usize = 12;
        if depth > MAX_DEPTH || out.len() > 500 {
            return;
        }
        if self.is_conversation(scope, value) {
            out.push(Part::Conversation);
            return;
        }
        let said = |value: &Value| match vars {
            Some(vars) => MessageContent::Template(value.clone(), vars.clone()),
            None => MessageContent::Value(value.clone()),
        };
        // In a prompt that is a list, a text is what the user says; so is a text by itself.
        match &value.kind {
            PyKind::Str(_) | PyKind::Text(_) => {
                out.push(Part::Say(Role::User, said(value)));
                return;
            }
            PyKind::Dict(id) if self.message_of(value).is_none() => {
                // `{"messages": […]}`.
                let entries = &self.world.dict(*id).entries;
                match entries.iter().find(|(k, _)| k.as_str() == Some("messages")) {
                    Some((_, messages)) => self.add_parts(scope, messages, vars, out, depth + 1),
                    None => out.push(Part::Other(value.clone())),
                }
                return;
            }
            _ => {}
        }
        if let PyKind::List(id) = &value.kind
            && let [role, content] = &self.world.list(*id).items[..]
            && self.world.str(role) == Some("placeholder")
        {
            let name = self.world.str(content).unwrap_or("").trim_matches(['{', '}']).to_string();
            self.placeholder(scope, &name, vars, value, out, depth);
            return;
        }
        if let Some((role, content)) = self.message_of(value) {
            // Messages that are objects are no templates, but for their templates.
            let template = match self.world.object_of(value) {
                Some((_, o)) => {
                    o.short().ends_with("Template") || o.callee.ends_with("Template.from_template")
                }
                None => true,
            };
            let said = if template { said(&content) } else { MessageContent::Value(content) };
            out.push(Part::Say(role, said));
            return;
        }
        if let Some(items) = self.world.items(value) {
            for item in items {
                self.add_parts(scope, item, vars, out, depth + 1);
            }
            if let PyKind::List(id) = value.kind
                && self.world.list(id).open.is_some()
            {
                out.push(Part::Other(value.clone()));
            }
            return;
        }
        if let Some((test, yes, no)) = self.either_of(value) {
            let test_holds = self.without_instructions(scope, &test, 0);
            if let Some(holds) = test_holds {
                let side = if holds { yes } else { no };
                self.add_parts(scope, &side, vars, out, depth + 1);
                return;
            }
            let sides = [yes, no].map(|side| {
                let mut parts = Vec::new();
                self.add_parts(scope, &side, vars, &mut parts, depth + 1);
                parts
            });
            out.push(match sides.iter().flatten().any(|p| matches!(p, Part::Other(_))) {
                true => Part::Other(value.clone()),
                false => Part::Either(value.clone(), test, sides),
            });
            return;
        }
        if let Some((id, object)) = self.world.object_of(value) {
            if object.base.is_none() && matches!(&*object.callee, "+" | "[*]") {
                for arg in &object.args {
                    self.add_parts(scope, &arg.value, vars, out, depth + 1);
                }
                return;
            }
            if object.short() == "MessagesPlaceholder" {
                let name = field(object, Some(0), "variable_name")
                    .and_then(|g| self.world.str(g.value))
                    .unwrap_or("");
                self.placeholder(scope, name, vars, value, out, depth);
                return;
            }
            if let Some(template) = object.callee.strip_suffix("MessagePromptTemplate.from_template")
                && let (Some(content), Some(role)) =
                    (object.args.first(), message_role(&format!("{template}MessagePromptTemplate")))
            {
                out.push(Part::Say(role, said(&content.value)));
                return;
            }
            // `prompt.invoke({…})`, `prompt.format_messages(a=…)`.
            if let Some((base, method)) = self.method_call(object) {
                let prompt = Value::new(PyKind::Object(base), object.span);
                let vars = match method {
                    "invoke" | "ainvoke" | "format_prompt" | "aformat_prompt" | "format_messages"
                    | "format" | "aformat_messages" => Some(self.vars_of_call(object)),
                    "to_messages" | "to_string" => {
                        self.add_parts(scope, &prompt, vars, out, depth + 1);
                        return;
                    }
                    _ => None,
                };
                if let Some(vars) = vars
                    && self.prompt_parts(scope, &prompt, &vars, out, depth + 1)
                {
                    return;
                }
            }
            let _ = id;
        }
        // What a model said, said again.
        if let PyKind::Object(id) = value.kind
            && scope.held.get(&id).is_some_and(|h| h.kind == ReplyKind::Text)
            && depth > 0
        {
            out.push(Part::Say(Role::Assistant, MessageContent::Value(value.clone())));
            return;
        }
        if self.is_messages(scope, value, 0) {
            out.push(Part::Several(value.clone()));
            return;
        }
        // What is computed of texts is one.
        let text = self.world.object_of(value).is_some_and(|(_, o)| {
            o.callee.starts_with("str.") && !o.callee.ends_with("split") && !o.callee.ends_with("lines")
        });
        out.push(match text {
            true => Part::Say(Role::User, MessageContent::Value(value.clone())),
            false => Part::Other(value.clone()),
        });
    }

    /// Returns true if a value is a message of the conversation, or several of them.
    pub(super) fn is_messages(&self, scope: &Scope, value: &Value, depth: usize) -> bool {
        const MAX_DEPTH: usize = 6;
        if self.is_message(scope, value) {
            return true;
        }
        let Some((_, object)) = self.world.object_of(value).filter(|_| depth < MAX_DEPTH) else {
            return false;
        };
        match (&*object.callee, &object.args[..]) {
            // `[… for m in …]`: what is made of each is a message, or is one of them.
            ("[for]", [_, element, item, ..]) => {
                self.message_of(&item.value).is_some()
                    || self.same_object(&element.value, &item.value)
                        && self.is_messages(scope, &item.value, depth + 1)
                    || self.made_message(&item.value)
            }
            ("builtins.list" | "builtins.reversed" | "list.copy", [of]) => {
                self.is_messages(scope, &of.value, depth + 1)
            }
            // A part of the conversation.
            (callee, [key]) if callee.ends_with("[]") => {
                let slice = self.world.object_of(&key.value).is_some_and(|(_, o)| &*o.callee == "slice");
                slice
                    && self.owner(object, value.span).is_some_and(|of| {
                        self.is_conversation(scope, &of) || self.is_messages(scope, &of, depth + 1)
                    })
            }
            _ => false,
        }
    }

    /// Returns true if a value is a message in each of its alternatives.
    pub(super) fn made_message(&self, value: &Value) -> bool {
        match self.either_of(value) {
            Some((_, yes, no)) => {
                [yes, no].iter().all(|v| self.message_of(v).is_some() || self.made_message(v))
            }
            None => false,
        }
    }

    fn same_object(&self, a: &Value, b: &Value) -> bool {
        matches!((&a.kind, &b.kind), (PyKind::Object(a), PyKind::Object(b)) if a == b)
    }

    /// Returns the outcome of a test for instructions in a conversation to which nothing adds any:
    /// `isinstance(messages[0], SystemMessage)`.
    fn without_instructions(&self, scope: &Scope, test: &Value, depth: usize) -> Option<bool> {
        const MAX_DEPTH: usize = 8;
        if !scope.uninstructed || depth > MAX_DEPTH {
            return None;
        }
        let again = |value: &Value| self.without_instructions(scope, value, depth + 1);
        let system = |value: &Value| match self.known_list(value) {
            Some(classes) => classes.iter().all(|c| self.is_system(c)),
            None => self.is_system(value),
        };
        // Whoever asks a model has something to ask.
        if self.is_conversation(scope, test) {
            return Some(true);
        }
        let (_, object) = self.world.object_of(test)?;
        let args: Vec<&Value> = object.args.iter().map(|a| &a.value).collect();
        match (&*object.callee, &args[..]) {
            ("not", [of]) => again(of).map(|holds| !holds),
            ("and", all) => {
                let all: Vec<Option<bool>> = all.iter().map(|v| again(v)).collect();
                match all.contains(&Some(false)) {
                    true => Some(false),
                    false => all.iter().all(|v| *v == Some(true)).then_some(true),
                }
            }
            ("or", any) => {
                let any: Vec<Option<bool>> = any.iter().map(|v| again(v)).collect();
                match any.contains(&Some(true)) {
                    true => Some(true),
                    false => any.iter().all(|v| *v == Some(false)).then_some(false),
                }
            }
            ("builtins.any", [of]) => {
                let (_, each) = self.world.object_of(of)?;
                let [list, _, item] = &each.args[..] else { return None };
                let known = &*each.callee == "[for]" && self.is_conversation(scope, &list.value);
                known.then(|| again(&item.value))?.filter(|holds| !holds)
            }
            ("builtins.isinstance", [on, class]) if self.is_message(scope, on) && system(class) => {
                Some(false)
            }
            ("==", [on, said]) | ("!=", [on, said]) if said.as_str() == Some("system") => {
                let PyKind::Member(id, member) = &on.kind else { return None };
                let of = Value::new(PyKind::Object(*id), on.span);
                (&**member == "type" && self.is_message(scope, &of)).then_some(&*object.callee == "!=")
            }
            _ => None,
        }
    }

    fn is_system(&self, class: &Value) -> bool {
        self.world.name_of(class).is_some_and(|n| message_role(&n) == Some(Role::System))
    }

    pub(super) fn placeholder(
        &self,
        scope: &Scope,
        name: &str,
        vars: Option<&Vars>,
        value: &Value,
        out: &mut Vec<Part>,
        depth: usize,
    ) {
        match vars {
            Some(Vars::Values(values)) => {
                if let Some((_, messages)) = values.iter().find(|(n, _)| n == name) {
                    self.add_parts(scope, messages, None, out, depth + 1);
                }
            }
            Some(Vars::Of(state)) => {
                let whole = scope
                    .state
                    .as_ref()
                    .is_some_and(|(id, _)| matches!(state.kind, PyKind::Object(s) if s == *id));
                if self.is_conversation(scope, state) || whole && scope.messages.as_deref() == Some(name) {
                    out.push(Part::Conversation);
                } else if self.world.items(state).is_some() {
                    // Of a prompt with one variable, a list is its value.
                    self.add_parts(scope, state, None, out, depth + 1);
                } else {
                    out.push(Part::Other(value.clone()));
                }
            }
            // What was said before is empty at the beginning; a unit's own input is what the user says.
            Some(Vars::Inputs) if matches!(name, "messages" | "input") => {
                out.push(Part::Say(Role::User, MessageContent::Template(value.clone(), Vars::Inputs)))
            }
            Some(Vars::Inputs) => {}
            None => out.push(Part::Other(value.clone())),
        }
    }

    /// The variables that a call gives a prompt.
    pub fn vars_of_call(&self, object: &Object) -> Vars {
        let mut values: Vec<(String, Value)> = object
            .args
            .iter()
            .filter_map(|a| Some((a.name.as_ref()?.to_string(), a.value.clone())))
            .collect();
        match object.args.iter().find(|a| a.name.is_none()) {
            Some(arg) => match self.world.entries(&arg.value) {
                Some(entries) => {
                    values.extend(
                        entries.iter().filter_map(|(k, v)| Some((k.as_str()?.to_string(), v.clone()))),
                    );
                    Vars::Values(values)
                }
                None => Vars::Of(arg.value.clone()),
            },
            None => Vars::Values(values),
        }
    }

    /// Returns true if a value is a prompt template.
    pub fn is_prompt(&self, value: &Value) -> bool {
        self.world.object_of(value).is_some_and(|(_, o)| {
            let head = o.callee.trim_end_matches(".partial");
            [
                "PromptTemplate",
                "PromptTemplate.from_messages",
                "PromptTemplate.from_template",
                "PromptTemplate.from_role_strings",
            ]
            .iter()
            .any(|e| head.ends_with(e))
        })
    }

    /// Adds the messages of a prompt. False if it is none.
    pub fn prompt_parts(
        &self,
        scope: &Scope,
        prompt: &Value,
        vars: &Vars,
        out: &mut Vec<Part>,
        depth: usize,
    ) -> bool {
        if !self.is_prompt(prompt) || depth > 12 {
            return false;
        }
        let Some((_, object)) = self.world.object_of(prompt) else { return false };
        if let Some((base, "partial")) = self.method_call(object) {
            let more =
                object.args.iter().filter_map(|a| Some((a.name.as_ref()?.to_string(), a.value.clone())));
            let vars = match vars {
                Vars::Values(values) => Vars::Values(values.iter().cloned().chain(more).collect()),
                Vars::Of(_) | Vars::Inputs => vars.clone(),
            };
            return self.prompt_parts(
                scope,
                &Value::new(PyKind::Object(base), prompt.span),
                &vars,
                out,
                depth + 1,
            );
        }
        let content = field(object, Some(0), "messages").or_else(|| field(object, Some(0), "template"));
        let Some(content) = content else { return false };
        if object.callee.ends_with("from_messages") || object.callee.ends_with("ChatPromptTemplate") {
            self.add_parts(scope, content.value, Some(vars), out, depth + 1);
        } else {
            out.push(Part::Say(Role::User, MessageContent::Template(content.value.clone(), vars.clone())));
        }
        true
    }

    /// Lowers the content of a message.
    pub fn said(&self, kit: &mut Kit<'_>, scope: &Scope, said: &MessageContent) -> TermId {
        let (value, vars) = match said {
            MessageContent::Value(value) => return self.text(kit, scope, value),
            MessageContent::Computed(value, sharing) => {
                return self.text_of_function(kit, scope, value, sharing);
            }
            MessageContent::Template(value, vars) => (value, vars),
        };
        let at = value.span;
        let Some(pieces) = self.world.text_of(value) else {
            if matches!(vars, Vars::Inputs)
                && self.world.object_of(value).is_some_and(|(_, o)| o.short() == "MessagesPlaceholder")
            {
                return kit.b.var("x", at);
            }
            if matches!(vars, Vars::Inputs) && self.world.items(value).is_some() {
                return kit.b.var("x", at);
            }
            return self.text(kit, scope, value);
        };
        let mut template = Template::new(at);
        for piece in pieces {
            match piece {
                Piece::Hole(hole, _) => {
                    let term = self.expr(kit, scope, &hole);
                    template.term(term);
                }
                Piece::Text(text) => {
                    for part in braces::split(&text) {
                        match part {
                            braces::Piece::Text(t) => {
                                template.text(&t);
                            }
                            braces::Piece::Name(name) => {
                                let term = self.variable(kit, scope, vars, &name, at);
                                template.term(term);
                            }
                        }
                    }
                }
            }
        }
        let text = template.build(&mut kit.b);
        crate::py::written(kit, value, text)
    }

    /// A variable of a prompt.
    pub(super) fn variable(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        vars: &Vars,
        name: &str,
        at: Span,
    ) -> TermId {
        match vars {
            Vars::Inputs => kit.input(name, at),
            Vars::Values(values) => match values.iter().rev().find(|(n, _)| n == name) {
                Some((_, value)) => self.text(kit, scope, &value.clone()),
                None if scope.inputs => kit.input(name, at),
                None => {
                    kit.outline.missing(name, at);
                    kit.undecided(codes::NOT_COMPILED, format!("the placeholder `{name}` has no value"), at)
                }
            },
            Vars::Of(value) => match scope.state.as_ref() {
                Some((id, var)) if matches!(value.kind, PyKind::Object(s) if s == *id) => {
                    self.read(kit, &var.clone(), name, at)
                }
                // Of a prompt with one variable, a text is its value.
                _ => {
                    let value = self.expr(kit, scope, value);
                    if matches!(kit.b.term(value), Term::Lit(_) | Term::Prim(Prim::Format, _)) {
                        return value;
                    }
                    kit.b.add(Term::Field(value, name.into()), at)
                }
            },
        }
    }
}

/// Source of a prompt's variables.
#[derive(Clone)]
pub(super) enum Vars {
    /// Named values.
    Values(Vec<(String, Value)>),
    /// The keys of something.
    Of(Value),
    /// Inputs of the unit.
    Inputs,
}

/// Content of a message.
#[derive(Clone)]
pub(super) enum MessageContent {
    Value(Value),
    /// A text with `{name}`.
    Template(Value, Vars),
    /// A value computed by a function, with the values in it that get names.
    Computed(Value, Rc<Sharing>),
}

/// A part of what a model is asked.
#[derive(Clone)]
pub(super) enum Part {
    Say(Role, MessageContent),
    /// The whole conversation of the state.
    Conversation,
    /// Two alternatives: the value, the test, and the parts of either branch.
    Either(Value, Value, [Vec<Part>; 2]),
    /// Messages that are computed: each is said by whom it names.
    Several(Value),
    /// A value that may not be messages.
    Other(Value),
}

impl Part {
    /// Returns true if it is, or may be, the conversation of the state.
    pub fn has_conversation(&self) -> bool {
        match self {
            Part::Conversation => true,
            Part::Either(_, _, sides) => sides.iter().flatten().any(Part::has_conversation),
            Part::Say(..) | Part::Several(_) | Part::Other(_) => false,
        }
    }
}

/// The first test that decides the prompt, with the parts of the prompt on either side.
pub(super) fn first_test(parts: &[Part]) -> Option<(&Value, [Vec<Part>; 2])> {
    let place = parts.iter().position(|p| matches!(p, Part::Either(..)))?;
    let Part::Either(_, test, sides) = &parts[place] else { return None };
    let whole = |side: &Vec<Part>| [&parts[..place], side, &parts[place + 1..]].concat();
    Some((test, sides.each_ref().map(whole)))
}
