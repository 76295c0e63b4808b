//! Agents with lists of tools, as several frameworks in Python have them: one lowering for all.
//!
//! | source | term |
//! |---|---|
//! | an agent without tools | `llm p θ` |
//! | an agent with tools | a conversation: `fresh (send[system] p; send x; fix[n] …)`, a turn for each reply |
//! | a function, or an object that represents a tool | a tool |
//! | an agent as a tool | an agent that is asked and answers, in a conversation of its own |
//! | a tool in whose body an agent is run | the agent is asked with the tool's arguments, then the tool is called |
//! | a handoff | the other agent goes on in the same conversation |
//!
//! Entry point: [`units`]. A framework says by [`AgentHost`] which objects are its agents, and what each is
//! given.

use crate::model_requests::ModelRequests;
use crate::py;
use core_ir::{
    Bound, EffectClass, LabelSpec, ModelParams, Name, Prim, Term, TermId, ToolDecl, ToolParam, Type,
};
use diagnostics::Span;
use frontend_kit::conversation::{CallEffect, Choice, Opening, Over, Speaker, conversation_from};
use frontend_kit::emit::{LoopBound, Template, codes, undecided};
use frontend_kit::kit::{Kit, Units};
use frontend_kit::outline::ToolRole;
use frontend_kit::project::{Compiled, File, UnitKind};
use python::{FunctionId, ObjectId, PyKind, Value, World};
use std::collections::{HashMap, HashSet};

/// Agents of one conversation.
const MAX_AGENTS: usize = 200;
/// Agents within one another.
const MAX_DEPTH: usize = 12;

/// A call that an agent may choose.
pub(crate) enum Offer {
    /// A tool, and who carries it out.
    Tool(ToolDecl, ToolRole),
    /// A tool in whose body these agents are run.
    Delegates(ToolDecl, Vec<ObjectId>),
    /// A function whose result is the answer.
    Finish(ToolDecl),
    /// Another agent, which is asked and answers.
    Agent(ToolDecl, ObjectId),
    /// Another agent, which goes on.
    HandOff(ToolDecl, ObjectId),
}

/// The text for a part that is not known.
pub(crate) struct Note {
    pub message: String,
    pub at: Span,
    /// True if the part may ask a model, so that the calls of the agent have no bound.
    pub uncounted: bool,
}

/// A framework whose agents are objects with lists of tools.
pub(crate) trait AgentHost<'w> {
    fn world(&self) -> &World<'w>;
    fn is_agent(&self, id: ObjectId) -> bool;
    fn name(&self, id: ObjectId) -> String;
    /// The agent that answers first; a team has one.
    fn start(&self, id: ObjectId) -> ObjectId {
        id
    }
    /// The tools of an agent.
    fn offers(&self, id: ObjectId, notes: &mut Vec<Note>) -> Vec<Offer>;
    /// Functions that belong to an agent and are not among its arguments.
    fn functions(&self, id: ObjectId) -> Vec<FunctionId> {
        let _ = id;
        Vec::new()
    }
    /// A lower bound of the length of the instructions, for the budget.
    fn length(&self, id: ObjectId) -> usize;
    /// The instructions.
    fn prompt(&self, kit: &mut Kit<'_>, id: ObjectId) -> TermId;
    /// The model with its settings, and the place that names it. Arguments that are not read are reported.
    fn params(&self, kit: &mut Kit<'_>, id: ObjectId) -> (ModelParams, Option<Span>);
    /// The place that lists the tools.
    fn tools_at(&self, id: ObjectId) -> Option<Span>;
    /// The bound of a conversation that begins with an agent.
    fn bound(&self, kit: &Kit<'_>, id: ObjectId) -> LoopBound;
    /// The error when the bound is reached, or what the model is asked then, without tools.
    fn over(&self) -> (&'static str, bool);
    /// Adds the requests that the framework repeats because it does not take a reply.
    fn repeated(&self, kit: &mut Kit<'_>, id: ObjectId, term: TermId) -> TermId {
        let _ = (kit, id);
        term
    }
    /// Returns true if a call runs the agent that it is a method of.
    fn is_run(&self, method: &str) -> bool;
    /// Number of times that the program runs an agent.
    fn repeats(&self, id: ObjectId) -> Option<py::Runs> {
        let world = self.world();
        let runs = world.objects().filter(|(_, o)| o.base == Some(id) && self.is_run(o.short()));
        py::repeats(world, &runs.map(|(id, _)| id).collect::<Vec<_>>())
    }
    /// The list that tells apart agents which one expression makes.
    fn told_apart(&self, id: ObjectId) -> Option<Value> {
        let world = self.world();
        let object = world.object(id);
        let first = object.args.first().filter(|a| a.name.is_none() && world.items(&a.value).is_some());
        object.arg("tools").or(first).map(|a| a.value.clone())
    }
}

/// The agents of a file as units: those that are no parts of others, and what they are given.
pub(crate) fn units<'w>(mut units: Units, file: &File, host: &dyn AgentHost<'w>) -> Compiled {
    let world = host.world();
    let all: Vec<ObjectId> = world.objects().filter(|(id, _)| host.is_agent(*id)).map(|(id, _)| id).collect();
    let lowering = Lowering { host, places: places(world, &all) };
    let mut parts: HashSet<ObjectId> = HashSet::new();
    for id in &all {
        parts.extend(lowering.others(*id).into_iter().filter(|o| o != id));
    }
    let asks = ModelRequests::new(world);
    let mut covered: HashSet<ObjectId> = HashSet::new();
    let listed: HashMap<ObjectId, Value> =
        all.iter().filter_map(|id| Some((*id, host.told_apart(*id)?))).collect();
    let kept = py::distinct(&mut units, (world, file), all.iter().copied(), |id| listed.get(&id));
    // Agents that refer to each other in a cycle are parts of each other.
    let (roots, rest): (Vec<ObjectId>, Vec<ObjectId>) = all.iter().partition(|id| !parts.contains(id));
    for id in roots.into_iter().chain(rest) {
        let object = world.object(id);
        let is_here = py::made_in(object, file);
        if covered.contains(&id) || !py::made_here(world, id, file) {
            continue;
        }
        let reached = lowering.reached(id);
        covered.extend(&reached);
        // A function that is called several times makes the same agent each time, unless it is given another
        // module's tools.
        if is_here && !kept.contains(&id) {
            continue;
        }
        let kind = if reached.len() > 1 { UnitKind::Crew } else { UnitKind::Agent };
        units.add(&host.name(host.start(id)), kind, object.span, |kit| {
            let bound = host.bound(kit, id);
            let term = lowering.conversation(kit, host.start(id), bound, 0);
            py::counted(kit, term, host.repeats(id), || lowering.beside(&asks, &reached))
        });
    }
    let start = Span { file: file.id, start: 0, end: 0 };
    units.done(Some(start), "no agent is made here")
}

/// The place of each agent's definition. Agents that one expression makes get distinct places within it.
fn places(world: &World<'_>, all: &[ObjectId]) -> HashMap<ObjectId, Span> {
    let mut made: HashMap<Span, u32> = HashMap::new();
    let mut out = HashMap::new();
    for id in all {
        let span = world.object(*id).span;
        let count = made.entry(span).or_default();
        out.insert(*id, Span { start: span.start.saturating_add(*count).min(span.end), ..span });
        *count = count.saturating_add(1);
    }
    out
}

/// The declaration of an agent that is asked.
pub(crate) fn asked(name: &str, input: &str, description: Option<&str>, at: Span) -> ToolDecl {
    let mut decl = ToolDecl::unknown(name.into(), at);
    decl.description = description.map(Name::from);
    decl.params = vec![ToolParam { name: input.into(), ty: Type::Str, bound: LabelSpec::TOP, default: None }];
    decl.result = Type::Str;
    declared(decl)
}

/// The declaration of a handoff.
pub(crate) fn handoff(name: &str, description: &str, at: Span) -> ToolDecl {
    let mut decl = ToolDecl::unknown(name.into(), at);
    decl.description = Some(description.into());
    declared(decl)
}

/// A declaration of something that by itself does nothing to the world.
fn declared(mut decl: ToolDecl) -> ToolDecl {
    decl.effect = EffectClass::Pure;
    decl.control = LabelSpec::TOP;
    decl.label = LabelSpec::BOTTOM;
    decl
}

/// The handler of what a server carries out.
pub(crate) fn of_server(server: &str) -> core_ir::Data {
    core_ir::Data::record([(Name::from("mcp"), core_ir::Data::str(server))])
}

/// The declaration of one tool that represents all of a server.
pub(crate) fn server(name: &str, server: &str, at: Span, notes: &mut Vec<Note>) -> ToolDecl {
    let mut decl = ToolDecl::unknown(name.into(), at);
    decl.handler = Some(of_server(server));
    let message = "the tools of an MCP server are known when it runs; one tool represents all".to_string();
    notes.push(Note { message, at, uncounted: false });
    decl
}

/// The items of an argument of an agent that is a list. Notes if some of them are not known, and returns what
/// is no list.
pub(crate) fn listed<'v>(
    world: &'v World<'_>,
    value: &'v Value,
    what: &str,
    notes: &mut Vec<Note>,
) -> Result<&'v [Value], &'v Value> {
    let value = world.resolve_env(value);
    match value.kind {
        PyKind::None => Ok(&[]),
        PyKind::List(id) => {
            let list = world.list(id);
            if let Some(at) = list.open {
                let message = format!("some of the {what} are not known");
                notes.push(Note { message, at, uncounted: true });
            }
            Ok(&list.items)
        }
        _ => Err(value),
    }
}

/// The tools that an argument of an agent lists. Notes if some of them are not known.
pub(crate) fn tool_list(world: &World<'_>, value: &Value, notes: &mut Vec<Note>) -> Vec<Value> {
    if let Err(whole) = listed(world, value, "tools", notes)
        && matches!(whole.kind, PyKind::Unknown(_))
    {
        let message = format!("the tools are not known: {}", world.unknown_reason(whole));
        notes.push(Note { message, at: whole.span, uncounted: true });
    }
    py::tool_list(world, value)
}

/// A tool of which only the place is known, with its note.
pub(crate) fn unknown_tool(world: &World<'_>, value: &Value, nth: usize, notes: &mut Vec<Note>) -> ToolDecl {
    let outside = py::outside(value);
    if !py::is_rest(value) {
        let message = format!("a tool that is not known: {}", world.unknown_reason(value));
        notes.push(Note { message, at: value.span, uncounted: outside.is_none() });
    }
    let name = outside.unwrap_or_else(|| format!("unknown_{}", nth + 1));
    ToolDecl::unknown(name.into(), value.span)
}

/// The agents that each of some functions runs, itself or through functions of the project.
pub(crate) fn delegates(
    world: &mut World<'_>,
    functions: impl IntoIterator<Item = FunctionId>,
    is_run: impl Fn(&str) -> bool,
    is_agent: impl Fn(&World<'_>, ObjectId) -> bool,
) -> HashMap<FunctionId, Vec<ObjectId>> {
    let mut out = HashMap::new();
    for function in functions {
        let made = world.calls_of(function);
        let mut agents: Vec<ObjectId> = Vec::new();
        for id in made.objects {
            let call = world.object(id);
            if let Some(base) = call.base.filter(|b| is_run(call.short()) && is_agent(world, *b))
                && !agents.contains(&base)
            {
                agents.push(base);
            }
        }
        if !agents.is_empty() {
            out.insert(function, agents);
        }
    }
    out
}

struct Lowering<'h, 'w> {
    host: &'h dyn AgentHost<'w>,
    places: HashMap<ObjectId, Span>,
}

impl Lowering<'_, '_> {
    /// The agents that one asks or hands off to, and the members of a team.
    fn others(&self, id: ObjectId) -> Vec<ObjectId> {
        let start = self.host.start(id);
        let mut out = if start == id { Vec::new() } else { vec![start] };
        for offer in self.host.offers(start, &mut Vec::new()) {
            match offer {
                Offer::Tool(..) | Offer::Finish(_) => {}
                Offer::Delegates(_, agents) => out.extend(agents.iter().map(|a| self.host.start(*a))),
                Offer::Agent(_, agent) | Offer::HandOff(_, agent) => out.push(self.host.start(agent)),
            }
        }
        out
    }

    fn reached(&self, id: ObjectId) -> Vec<ObjectId> {
        let mut seen = vec![id];
        let mut at = 0;
        while let Some(next) = seen.get(at).copied() {
            at += 1;
            for other in self.others(next) {
                if seen.len() < MAX_AGENTS && !seen.contains(&other) {
                    seen.push(other);
                }
            }
        }
        // A team is none of the agents.
        let start = self.host.start(id);
        seen.retain(|o| *o != id || start == id);
        seen
    }

    /// Reason for model calls beside the turns of some agents: functions that they are given.
    fn beside(
        &self,
        asks: &ModelRequests<'_, '_>,
        agents: &[ObjectId],
    ) -> Option<crate::model_requests::Uncounted> {
        let world = self.host.world();
        agents.iter().find_map(|id| {
            let object = world.object(*id);
            let args = object.args.iter().map(|a| &a.value).chain(object.attrs.iter().map(|(_, v)| v));
            let added = object.calls.iter().flat_map(|call| &world.object(call.result).args);
            let class = object.class.map(|c| Value::new(PyKind::Class(c), object.span));
            let functions = self.host.functions(*id).into_iter();
            let functions: Vec<Value> =
                functions.map(|f| Value::new(PyKind::Function(f), world.function(f).span)).collect();
            let all = args.chain(added.map(|a| &a.value)).chain(&class).chain(&functions);
            asks.beside(all, &|id| self.host.is_agent(id))
        })
    }

    /// A conversation that begins with an agent, of a text.
    fn conversation(&self, kit: &mut Kit<'_>, start: ObjectId, bound: LoopBound, depth: usize) -> TermId {
        let head = self.host.world().object(start).span;
        let mut order = vec![start];
        let mut given: Vec<(Vec<Offer>, Vec<Note>)> = Vec::new();
        let mut copies: HashMap<ObjectId, usize> = HashMap::from([(start, 1)]);
        while let Some(id) = order.get(given.len()).copied() {
            let mut notes = Vec::new();
            let offers = self.host.offers(id, &mut notes);
            for offer in &offers {
                let Offer::HandOff(_, to) = offer else { continue };
                *copies.entry(*to).or_default() += 1;
                if !order.contains(to) && order.len() < MAX_AGENTS {
                    order.push(*to);
                }
            }
            given.push((offers, notes));
        }
        let mut opened = 0;
        let mut speakers = Vec::new();
        for (id, (offers, notes)) in order.iter().zip(given) {
            let count = copies.get(id).copied().unwrap_or(1).max(1);
            let span = self.host.world().object(*id).span;
            let place = self.places.get(id).copied().unwrap_or(span);
            let length = self.host.length(*id).saturating_mul(count);
            match kit.open(&self.host.name(*id), place, span, length) {
                Ok(()) => opened += 1,
                Err(unknown) if *id == start => {
                    (0..opened).for_each(|_| kit.close());
                    return unknown;
                }
                Err(_) => {}
            }
            for note in notes {
                match note.uncounted {
                    true => kit.left_out(note.message, note.at),
                    false => kit.out.push(undecided(codes::NOT_COMPILED, note.message, note.at)),
                }
            }
            let (mut params, model_at) = self.host.params(kit, *id);
            params.purpose.get_or_insert_with(|| Name::from(self.host.name(*id)));
            let prompts = (0..count).map(|_| self.host.prompt(kit, *id)).collect();
            let choices: Vec<Choice> =
                offers.into_iter().filter_map(|o| self.choice(kit, o, &order, depth)).collect();
            speakers.push(Speaker {
                name: self.host.name(*id),
                head: span,
                prompts,
                params,
                model_at: model_at.unwrap_or(span),
                choices,
                choices_at: self.host.tools_at(*id),
            });
        }
        (0..opened).for_each(|_| kit.close());
        let (message, is_asked) = self.host.over();
        let over = match speakers.first().filter(|_| is_asked) {
            Some(first) => Over::AskedFor(message, Box::new(first.params.clone())),
            None => Over::Fails(message),
        };
        // Without anything to call, a reply of another form is asked for again within the same bound.
        if let ([only], Bound::Finite(n)) = (&mut speakers[..], bound.bound)
            && only.choices.is_empty()
            && only.params.result.is_some()
        {
            only.params.repair = u32::try_from(n.saturating_sub(1)).unwrap_or(u32::MAX);
        }
        let term = conversation_from(kit, Opening::Text, speakers, bound, over, head);
        self.host.repeated(kit, start, term)
    }

    fn choice(&self, kit: &mut Kit<'_>, offer: Offer, order: &[ObjectId], depth: usize) -> Option<Choice> {
        Some(match offer {
            Offer::Tool(decl, role) => Choice { role, ..Choice::new(decl, CallEffect::Call) },
            Offer::Finish(decl) => Choice::new(decl, CallEffect::Finish),
            Offer::Agent(decl, agent) => {
                let term = self.within(kit, agent, depth, decl.span);
                Choice::new(decl, CallEffect::Ask(term))
            }
            Offer::HandOff(decl, to) => {
                let said = format!("Handed off to {}.", self.host.name(to));
                let to = order.iter().position(|o| *o == to)?;
                Choice::new(decl, CallEffect::Switch(to, said))
            }
            Offer::Delegates(decl, agents) => {
                let at = decl.span;
                let mut shown = Template::new(at);
                for agent in agents {
                    let answers = self.within(kit, agent, depth, at);
                    // What it is asked is made of the tool's arguments, if there are any.
                    let asked = match decl.params.is_empty() {
                        true => kit.text("", at),
                        false => {
                            let a = kit.b.var("a", at);
                            kit.b.add(Term::Prim(Prim::ToStr, vec![a]), at)
                        }
                    };
                    let answer = kit.b.app(answers, asked, at);
                    shown.term(answer);
                    shown.text("\n");
                }
                let id = kit.declared_as(decl.clone(), ToolRole::Program);
                let tool = kit.b.add(Term::Tool(id), at);
                let a = match decl.params.is_empty() {
                    true => kit.b.add(Term::Record(Vec::new()), at),
                    false => kit.b.var("a", at),
                };
                let result = kit.b.app(tool, a, at);
                let result = kit.b.add(Term::Prim(Prim::ToStr, vec![result]), at);
                shown.term(result);
                let shown = shown.build(&mut kit.b);
                Choice::new(decl, CallEffect::Show(shown))
            }
        })
    }

    /// An agent within another.
    fn within(&self, kit: &mut Kit<'_>, agent: ObjectId, depth: usize, at: Span) -> TermId {
        if depth >= MAX_DEPTH {
            return kit.unknown("an agent beyond the limit", at);
        }
        let bound = self.host.bound(kit, agent);
        self.conversation(kit, self.host.start(agent), bound, depth + 1)
    }
}

/// Functions that are decorated with a method of an object, `@agent.tool`: with the name of the method, and
/// its call, if it is called.
pub(crate) type Decorated = HashMap<ObjectId, Vec<(FunctionId, String, Option<ObjectId>)>>;

/// The functions that are decorated so, by the object.
pub(crate) fn decorated(world: &World<'_>) -> Decorated {
    let mut places: HashSet<(ObjectId, Span)> = HashSet::new();
    let mut out = Decorated::new();
    for (function, f) in world.functions() {
        for decorator in f.decorators.iter() {
            let (on, method, call) = match &decorator.kind {
                PyKind::Member(on, name) => (*on, name.to_string(), None),
                PyKind::Object(call) => match world.object(*call).base {
                    Some(on) => (on, world.object(*call).short().to_string(), Some(*call)),
                    None => continue,
                },
                _ => continue,
            };
            if places.insert((on, f.name_span)) {
                out.entry(on).or_default().push((function, method, call));
            }
        }
    }
    out
}
