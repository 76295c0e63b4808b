//! Values that pass from one stage of a chain to the next.

use super::prompt::{MessageContent, Model, Prompt};
use core_ir::{Branch, Catches, Data, ModelParams, Name, Prim, Role, Term, TermId};
use diagnostics::Span;
use frontend_kit::emit::{Template, braces, codes};
use frontend_kit::kit::{self, Kit};
use std::rc::Rc;

/// Input of a stage.
#[derive(Clone)]
pub(super) enum StageInput<'d> {
    /// Input of the unit: a text, or its named inputs.
    Inputs,
    /// One of the unit's named inputs.
    Input(String),
    /// A text, in a variable.
    Text(Name),
    /// Data, in a variable.
    Data(Name),
    /// The reply of a model that is offered tools, in a variable, with their names.
    Calls(Name, Vec<Name>),
    /// Named values; over the unit's inputs, or nothing else.
    Named(Vec<(String, StageInput<'d>)>, bool),
    /// A prompt with what fills it: nobody was asked yet.
    Asked(Rc<(Prompt<'d>, StageInput<'d>)>),
}

impl<'d> StageInput<'d> {
    pub fn asked(prompt: Prompt<'d>, given: StageInput<'d>) -> StageInput<'d> {
        StageInput::Asked(Rc::new((prompt, given)))
    }

    /// The named values that are there, and whether the unit's inputs are, too.
    pub fn named(self) -> (Vec<(String, StageInput<'d>)>, bool) {
        match self {
            StageInput::Named(fields, inputs) => (fields, inputs),
            StageInput::Inputs => (Vec::new(), true),
            _ => (Vec::new(), false),
        }
    }
}

/// The terms of a chain while it is read: what was computed so far, in variables.
pub(super) struct Flow<'k, 'o> {
    pub kit: &'k mut Kit<'o>,
    lets: Vec<(Name, TermId)>,
    count: usize,
    /// The place of the whole.
    at: Span,
}

impl<'k, 'o> Flow<'k, 'o> {
    pub fn new(kit: &'k mut Kit<'o>, at: Span) -> Self {
        Flow { kit, lets: Vec::new(), count: 0, at }
    }

    /// A variable that holds a value.
    pub fn bind(&mut self, hint: &str, term: TermId) -> Name {
        if let Term::Var(name, _) = self.kit.b.term(term) {
            return name.clone();
        }
        self.count += 1;
        let name = Name::from(format!("${hint}{}", self.count));
        self.lets.push((name.clone(), term));
        name
    }

    /// Lowers a part as a term with its own variables. `None` if it computes nothing.
    pub fn aside<'d>(
        &mut self,
        part: impl FnOnce(&mut Self) -> StageInput<'d>,
    ) -> (StageInput<'d>, Vec<(Name, TermId)>) {
        let outer = std::mem::take(&mut self.lets);
        let given = part(self);
        (given, std::mem::replace(&mut self.lets, outer))
    }

    /// Joins what [`Flow::aside`] computed.
    pub fn rejoin(&mut self, lets: Vec<(Name, TermId)>) {
        self.lets.extend(lets);
    }

    /// A term with variables around it; the value of the last variable needs no name.
    pub fn within(&mut self, mut lets: Vec<(Name, TermId)>, mut term: TermId) -> TermId {
        if let (Term::Var(name, _), Some((last, value))) = (self.kit.b.term(term), lets.last())
            && name == last
        {
            term = *value;
            lets.pop();
        }
        if lets.is_empty() { term } else { self.kit.b.let_in(lets, term, self.at) }
    }

    /// The whole, with its result.
    pub fn done(mut self, given: StageInput<'_>, at: Span) -> TermId {
        // Several outputs are a record, one is its text.
        let result = match &given {
            StageInput::Named(fields, _) if fields.len() > 1 => self.record(fields, at),
            given => self.text(given, at),
        };
        let lets = std::mem::take(&mut self.lets);
        self.within(lets, result)
    }

    /// A value as a text.
    pub fn text(&mut self, given: &StageInput<'_>, at: Span) -> TermId {
        match given {
            StageInput::Inputs => self.kit.b.var("x", at),
            StageInput::Input(name) => self.kit.input(name, at),
            StageInput::Text(name) => self.kit.b.var(name.clone(), at),
            StageInput::Data(name) => {
                let value = self.kit.b.var(name.clone(), at);
                self.kit.b.add(Term::Prim(Prim::ToStr, vec![value]), at)
            }
            StageInput::Calls(name, tools) => {
                // A call is shown as its arguments: whoever runs the chain carries it out.
                let scrutinee = self.kit.b.var(name.clone(), at);
                let mut branches: Vec<Branch> = Vec::new();
                for tool in tools {
                    let args = self.kit.b.var("a", at);
                    let body = self.kit.b.add(Term::Prim(Prim::ToJson, vec![args]), at);
                    branches.push(Branch { tag: tool.clone(), binder: Some("a".into()), body });
                }
                let body = self.kit.b.var("a", at);
                branches.push(Branch { tag: "final".into(), binder: Some("a".into()), body });
                self.kit.b.add(Term::Case { scrutinee, branches, default: None }, at)
            }
            StageInput::Named(fields, _) => {
                // Of a single output it is the text.
                if let [(_, one)] = &fields[..] {
                    return self.text(one, at);
                }
                let record = self.record(fields, at);
                self.kit.b.add(Term::Prim(Prim::ToJson, vec![record]), at)
            }
            StageInput::Asked(prompt) => {
                let said = self.messages(&prompt.0, &prompt.1);
                let mut template = Template::new(at);
                for (i, (_, term, _)) in said.into_iter().enumerate() {
                    if i > 0 {
                        template.text("\n");
                    }
                    template.term(term);
                }
                template.build(&mut self.kit.b)
            }
        }
    }

    fn record(&mut self, fields: &[(String, StageInput<'_>)], at: Span) -> TermId {
        let mut out: Vec<(Name, TermId)> = Vec::new();
        for (name, given) in fields {
            let name = Name::from(name.as_str());
            if !out.iter().any(|(n, _)| *n == name) {
                let value = match given {
                    StageInput::Data(v) => self.kit.b.var(v.clone(), at),
                    StageInput::Named(fields, _) => self.record(fields, at),
                    // Of named inputs, all that is given is a record of them.
                    StageInput::Inputs if self.kit.inputs().next().is_some() => self.inputs(at),
                    given => self.text(given, at),
                };
                out.push((name, value));
            }
        }
        self.kit.b.add(Term::Record(out), at)
    }

    /// The unit's named inputs, as far as they are used.
    fn inputs(&mut self, at: Span) -> TermId {
        let names: Vec<String> = self.kit.inputs().map(str::to_string).collect();
        let fields = names.iter().map(|n| (Name::from(n.as_str()), self.kit.input(n, at))).collect();
        self.kit.b.add(Term::Record(fields), at)
    }

    /// A value under a name, as text. `only`: the prompt has no other variable.
    pub fn variable(&mut self, given: &StageInput<'_>, name: &str, only: bool, at: Span) -> TermId {
        match given {
            StageInput::Inputs => self.kit.input(name, at),
            StageInput::Named(fields, inputs) => match fields.iter().rev().find(|(n, _)| n == name) {
                Some((_, value)) => self.text(value, at),
                None if *inputs => self.kit.input(name, at),
                None => {
                    self.kit.outline.missing(name, at);
                    self.kit.undecided(
                        codes::NOT_COMPILED,
                        format!("the placeholder `{name}` has no value"),
                        at,
                    )
                }
            },
            StageInput::Data(value) => {
                let value = self.kit.b.var(value.clone(), at);
                self.kit.b.add(Term::Field(value, name.into()), at)
            }
            // Of a prompt with one variable, a text is its value.
            given if only => self.text(given, at),
            _ => self.kit.undecided(codes::NOT_COMPILED, format!("the source of `{name}`"), at),
        }
    }

    /// The messages of a prompt, with its variables filled in.
    pub fn messages(&mut self, prompt: &Prompt<'_>, given: &StageInput<'_>) -> Vec<(Role, TermId, Span)> {
        let names = prompt.variables();
        let only = names.len() < 2;
        let mut out = Vec::new();
        for message in &prompt.messages {
            let (role, at) = (message.role, message.at);
            let term = match &message.said {
                MessageContent::Literal(text) => self.kit.text(text, at),
                MessageContent::Template(text, format) => {
                    let mut template = Template::new(at);
                    for piece in format.split(text) {
                        match piece {
                            braces::Piece::Text(text) => {
                                template.text(&text);
                            }
                            braces::Piece::Name(name) => {
                                let term = match prompt.partial.iter().find(|(n, _)| *n == name) {
                                    Some((_, value)) => self.kit.text(value, at),
                                    None => self.variable(given, &name, only, at),
                                };
                                template.term(term);
                            }
                        }
                    }
                    template.build(&mut self.kit.b)
                }
                MessageContent::Unknown(why) => self.kit.unknown(why, at),
                MessageContent::Placeholder(name) => match given {
                    StageInput::Named(fields, _) if fields.iter().any(|(n, _)| n == name) => {
                        self.variable(given, name, only, at)
                    }
                    // What was said before is empty at the beginning.
                    StageInput::Inputs | StageInput::Named(_, true)
                        if matches!(name.as_str(), "messages" | "input") =>
                    {
                        self.kit.b.var("x", at)
                    }
                    StageInput::Text(_) if only => self.text(given, at),
                    _ => continue,
                },
            };
            out.push((role, term, at));
        }
        out
    }

    /// A model is asked: what its reply is.
    pub fn ask<'d>(&mut self, given: StageInput<'d>, model: Model, at: Span) -> StageInput<'d> {
        let said = match &given {
            StageInput::Asked(prompt) => self.messages(&prompt.0, &prompt.1),
            other => vec![(Role::User, self.text(other, at), at)],
        };
        let Model { params, tools, at } = model;
        let term = kit::ask(self.kit, said, params, at);
        let name = self.bind("reply", term);
        if tools.is_empty() { StageInput::Text(name) } else { StageInput::Calls(name, tools) }
    }

    /// Asks a model that is not named, if nobody was asked yet.
    pub fn answered<'d>(&mut self, given: StageInput<'d>, at: Span) -> StageInput<'d> {
        match given {
            StageInput::Asked(_) => {
                let params = ModelParams { purpose: Some("prompt".into()), ..ModelParams::default() };
                self.ask(given, Model { params, tools: Vec::new(), at }, at)
            }
            other => other,
        }
    }

    /// One side, or if it fails the other.
    pub fn or_else(&mut self, body: TermId, handler: TermId, at: Span) -> TermId {
        let label = self.kit.b.lit(Data::list(["U", "S"].map(Data::str).to_vec()), at);
        self.kit.b.add(Term::Try { label, body, catches: Catches::All, name: "$why".into(), handler }, at)
    }
}
