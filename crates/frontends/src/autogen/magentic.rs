//! An orchestrator that keeps a ledger: what is known, what is to be done, and after each turn how far it is.
//!
//! | source | term |
//! |---|---|
//! | the task ledger | a conversation of its own: facts, then a plan; both are the first message that the members hear |
//! | the progress ledger | `recv` of a record; of a model without structured output a reply that is none is asked for again, ten times |
//! | `is_request_satisfied` | the loop ends |
//! | `next_speaker`, `instruction_or_question` | the instruction is said, then the member speaks |
//! | `max_stalls` | a counter in the state; when it is reached, facts and plan are written anew and the group chat begins with them |
//! | `max_turns` | the bound: AutoGen looks at progress once more than it says |
//! | the final answer | a question about the group chat, after the loop |
//! | a termination condition | a test after each member's turn, which ends without a final answer |
//!
//! Source: microsoft/autogen 0.7.5, `autogen_agentchat/teams/_group_chat/_magentic_one`; the prompts are its
//! words.

use super::GROUP_CHAT_BOUND;
use super::assistant_turn::python_format;
use super::group_chat::{self, Start, StateFields, appended, entry, heard, said_as, state};
use super::is_openai;
use super::model::{Orchestrator, Team};
use super::termination::holds;
use core_ir::{
    Bound, Branch, Catches, Data, IfSugar, ModelParams, Name, Num, Prim, Recv, Role, Term, TermId, Type,
};
use diagnostics::Span;
use frontend_kit::emit::{LoopBound, Template};
use frontend_kit::kit::Kit;
use std::sync::Arc;

/// Name of the orchestrator in the group chat.
const NAME: &str = "MagenticOneOrchestrator";
/// Maximal number of requests for one ledger.
const ATTEMPTS: u64 = 10;
const NO_LEDGER: &str = "Failed to parse ledger information after multiple retries.";
/// Default of `max_stalls` in AutoGen.
pub(super) const STALLS: u64 = 3;

/// Prompt for the facts.
const FACTS: &str = "Below I will present you a request. Before we begin addressing the request, please answer the following pre-survey to the best of your ability. Keep in mind that you are Ken Jennings-level with trivia, and Mensa-level with puzzles, so there should be a deep well to draw from.\n\nHere is the request:\n\n{task}\n\nHere is the pre-survey:\n\n    1. Please list any specific facts or figures that are GIVEN in the request itself. It is possible that there are none.\n    2. Please list any facts that may need to be looked up, and WHERE SPECIFICALLY they might be found. In some cases, authoritative sources are mentioned in the request itself.\n    3. Please list any facts that may need to be derived (e.g., via logical deduction, simulation, or computation)\n    4. Please list any facts that are recalled from memory, hunches, well-reasoned guesses, etc.\n\nWhen answering this survey, keep in mind that \"facts\" will typically be specific names, dates, statistics, etc. Your answer should use headings:\n\n    1. GIVEN OR VERIFIED FACTS\n    2. FACTS TO LOOK UP\n    3. FACTS TO DERIVE\n    4. EDUCATED GUESSES\n\nDO NOT include any other headings or sections in your response. DO NOT list next steps or plans until asked to do so.\n";
/// Prompt for the plan.
const PLAN: &str = "Fantastic. To address this request we have assembled the following team:\n\n{team}\n\nBased on the team composition, and known and unknown facts, please devise a short bullet-point plan for addressing the original request. Remember, there is no requirement to involve all team members -- a team member's particular expertise may not be needed for this task.";
/// Broadcast of the facts and the plan to all members.
const LEDGER: &str = "\nWe are working to address the following user request:\n\n{task}\n\n\nTo answer this request we have assembled the following team:\n\n{team}\n\n\nHere is an initial fact sheet to consider:\n\n{facts}\n\n\nHere is the plan to follow as best as possible:\n\n{plan}\n";
/// Prompt for the progress ledger: how far the task is, and who speaks next.
const PROGRESS: &str = "\nRecall we are working on the following request:\n\n{task}\n\nAnd we have assembled the following team:\n\n{team}\n\nTo make progress on the request, please answer the following questions, including necessary reasoning:\n\n    - Is the request fully satisfied? (True if complete, or False if the original request has yet to be SUCCESSFULLY and FULLY addressed)\n    - Are we in a loop where we are repeating the same requests and / or getting the same responses as before? Loops can span multiple turns, and can include repeated actions like scrolling up or down more than a handful of times.\n    - Are we making forward progress? (True if just starting, or recent messages are adding value. False if recent messages show evidence of being stuck in a loop or if there is evidence of significant barriers to success such as the inability to read from a required file)\n    - Who should speak next? (select from: {names})\n    - What instruction or question would you give this team member? (Phrase as if speaking directly to them, and include any specific information they may need)\n\nPlease output an answer in pure JSON format according to the following schema. The JSON object must be parsable as-is. DO NOT OUTPUT ANYTHING OTHER THAN JSON, AND DO NOT DEVIATE FROM THIS SCHEMA:\n\n    {{\n       \"is_request_satisfied\": {{\n            \"reason\": string,\n            \"answer\": boolean\n        }},\n        \"is_in_loop\": {{\n            \"reason\": string,\n            \"answer\": boolean\n        }},\n        \"is_progress_being_made\": {{\n            \"reason\": string,\n            \"answer\": boolean\n        }},\n        \"next_speaker\": {{\n            \"reason\": string,\n            \"answer\": string (select from: {names})\n        }},\n        \"instruction_or_question\": {{\n            \"reason\": string,\n            \"answer\": string\n        }}\n    }}\n";
/// Prompt that updates the facts after a stall.
const NEW_FACTS: &str = "As a reminder, we are working to solve the following task:\n\n{task}\n\nIt's clear we aren't making as much progress as we would like, but we may have learned something new. Please rewrite the following fact sheet, updating it to include anything new we have learned that may be helpful. Example edits can include (but are not limited to) adding new guesses, moving educated guesses to verified facts if appropriate, etc. Updates may be made to any section of the fact sheet, and more than one section of the fact sheet can be edited. This is an especially good time to update educated guesses, so please at least add or update one educated guess or hunch, and explain your reasoning.\n\nHere is the old fact sheet:\n\n{facts}\n";
/// Prompt that updates the plan after a stall.
const NEW_PLAN: &str = "Please briefly explain what went wrong on this last run (the root cause of the failure), and then come up with a new plan that takes steps and/or includes hints to overcome prior challenges and especially avoids repeating the same mistakes. As before, the new plan should be concise, be expressed in bullet-point form, and consider the following team composition (do not involve any other outside people since we cannot contact anyone else):\n\n{team}\n";
/// The answer to whoever asked.
const FINAL: &str = "\nWe are working on the following task:\n{task}\n\nWe have completed the task.\n\nThe above messages contain the conversation that took place to complete the task.\n\nBased on the information gathered, provide the final answer to the original request.\nThe answer should be phrased as if you were speaking to the user.\n";

/// Returns true if a prompt for the final answer is AutoGen's default.
pub(super) fn is_own(text: &str) -> bool {
    text == FINAL
}

/// Returns the maximal number of progress checks.
pub(super) fn rounds(team: &Team) -> LoopBound {
    let own = &team.bound;
    let bound = match own.bound {
        Bound::Finite(n) => Bound::Finite(n.saturating_add(1)),
        Bound::Infinite => Bound::Infinite,
    };
    LoopBound { bound, ..own.clone() }
}

struct MagenticLowering<'k, 'a, 't> {
    kit: &'k mut Kit<'a>,
    team: &'t Team,
    o: &'t Orchestrator,
    needs: StateFields,
    at: Span,
    /// The members, a line each.
    roles: String,
    /// Their names.
    names: String,
    /// True if all messages are kept, for an enclosing group chat.
    nested: bool,
}

/// The state in which the group chat ends: `text` is what was said last, `log` all that was said before and
/// in it.
pub(super) fn lower(
    kit: &mut Kit<'_>,
    team: &Team,
    o: &Orchestrator,
    start: Start,
    nested: bool,
    rich: bool,
) -> TermId {
    let at = o.model_at.unwrap_or(team.at);
    let role = |m: &super::model::Member| {
        let line = format!("{}: {}", m.name, m.description.shown());
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let roles = team.members.iter().map(role).collect::<Vec<_>>().join("\n");
    let names = team.members.iter().map(|m| m.name.as_str()).collect::<Vec<_>>().join(", ");
    let task = match start {
        Start::Task => kit.b.var("x", at),
        Start::Log => group_chat::last(kit, at),
    };
    let needs = StateFields::of(team, nested, rich);
    let mut lower = MagenticLowering { kit, team, o, needs, at, roles, names, nested };
    let ran = lower.run();
    let result = lower.result();
    let kit = lower.kit;
    kit.b.let_in(vec![("$task".into(), task), ("$end".into(), ran)], result, at)
}

impl MagenticLowering<'_, '_, '_> {
    fn var(&mut self, name: &str) -> TermId {
        self.kit.b.var(name, self.at)
    }

    fn field(&mut self, of: &str, name: &str) -> TermId {
        let of = self.var(of);
        self.kit.b.add(Term::Field(of, name.into()), self.at)
    }

    fn prim(&mut self, prim: Prim, args: Vec<TermId>) -> TermId {
        self.kit.b.add(Term::Prim(prim, args), self.at)
    }

    /// A prompt with its placeholders filled in.
    fn filled(&mut self, prompt: &str) -> TermId {
        let mut out = Template::new(self.at);
        for part in python_format(prompt) {
            match part.as_ref().map_err(String::as_str) {
                Ok(text) => {
                    out.text(text);
                }
                Err("team") => {
                    out.text(&self.roles);
                }
                Err("names") => {
                    out.text(&self.names);
                }
                Err(name) => {
                    let value = self.kit.b.var(format!("${name}"), self.at);
                    out.term(value);
                }
            }
        }
        out.build(&mut self.kit.b)
    }

    fn says(&mut self, prompt: &str) -> (Name, TermId) {
        let text = self.filled(prompt);
        ("_".into(), self.kit.b.add(Term::Send(Role::User, text), self.at))
    }

    fn asks(&mut self, result: Option<Type>) -> TermId {
        let params = ModelParams { purpose: Some(NAME.into()), repair: 0, result, ..self.o.params.clone() };
        self.kit.b.add(Term::Recv(Recv::Data(Arc::new(params))), self.at)
    }

    /// The group chat so far, as it knows it.
    fn hears(&mut self, of: &str) -> (Name, TermId) {
        let log = self.field(of, "log");
        heard(self.kit, NAME, log, self.at)
    }

    /// `{facts: …, plan: …}`, asked for one after the other in a conversation of its own.
    fn planned(&mut self, mut said: Vec<(Name, TermId)>, facts: &str, plan: &str) -> TermId {
        said.push(self.says(facts));
        said.push(("$facts".into(), self.asks(None)));
        said.push(self.says(plan));
        said.push(("$plan".into(), self.asks(None)));
        let (facts, plan) = (self.var("$facts"), self.var("$plan"));
        let both =
            self.kit.b.add(Term::Record(vec![("facts".into(), facts), ("plan".into(), plan)]), self.at);
        let body = self.kit.b.let_in(said, both, self.at);
        self.kit.b.add(Term::Fresh(body), self.at)
    }

    /// The message that begins the group chat, from `$facts` and `$plan`.
    fn ledger(&mut self) -> TermId {
        let text = self.filled(LEDGER);
        entry(self.kit, NAME, said_as(self.needs.rich), text, self.at)
    }

    /// Binds `$facts` and `$plan` to those of a record, and `$first` to the message.
    fn unpacked(&mut self, of: &str) -> Vec<(Name, TermId)> {
        let (facts, plan) = (self.field(of, "facts"), self.field(of, "plan"));
        let mut out: Vec<(Name, TermId)> = vec![("$facts".into(), facts), ("$plan".into(), plan)];
        let first = self.ledger();
        out.push(("$first".into(), first));
        out
    }

    /// `$s` with a field set anew.
    fn set(&mut self, field: &str, value: TermId) -> (Name, TermId) {
        let s = self.var("$s");
        ("$s".into(), self.kit.b.add(Term::With(s, field.into(), value), self.at))
    }

    /// Adds messages to all that was said, where that is kept.
    fn kept(&mut self, more: TermId) -> Option<(Name, TermId)> {
        if !self.nested {
            return None;
        }
        let all = state(self.kit, "all", self.at);
        let all = self.prim(Prim::Add, vec![all, more]);
        Some(self.set("all", all))
    }

    fn fail(&mut self) -> TermId {
        let message = self.kit.text(NO_LEDGER, self.at);
        self.kit.b.add(Term::Fail(message), self.at)
    }

    /// The facts, the plan and the loop.
    fn run(&mut self) -> TermId {
        let at = self.at;
        let mut latches: Vec<(Name, TermId)> = Vec::new();
        // Only which there are counts here; each member's branch has its own.
        if let Some(ends) = &self.team.ends {
            holds(self.kit, ends, &self.needs, &mut latches);
        }
        let step = self.step();
        let step = self.kit.b.abs("$s", None, step, at);
        let step = self.kit.b.abs("self", None, step, at);
        let mut bound = rounds(self.team);
        bound.facts.bounded = Some(GROUP_CHAT_BOUND);
        let fix_at = bound.span.unwrap_or(at);
        let fix = self.kit.fix(bound, step, fix_at);
        let ledger = self.planned(Vec::new(), FACTS, PLAN);
        let mut bindings: Vec<(Name, TermId)> = vec![("$ledger".into(), ledger)];
        bindings.extend(self.unpacked("$ledger"));
        let first = self.var("$first");
        let log = self.kit.b.add(Term::List(vec![first]), at);
        let (facts, plan) = (self.var("$facts"), self.var("$plan"));
        let (text, no) = (self.var("$task"), self.kit.b.lit(Data::Bool(false), at));
        let zero = self.kit.b.lit(Num::from(0), at);
        let mut fields: Vec<(Name, TermId)> = vec![
            ("text".into(), text),
            ("log".into(), log),
            ("facts".into(), facts),
            ("plan".into(), plan),
            ("stalls".into(), zero),
            ("over".into(), no),
        ];
        for (needed, field, value) in
            [(self.needs.by, "by", NAME), (self.needs.to, "to", ""), (self.needs.kind, "kind", "text")]
        {
            if needed {
                fields.push((field.into(), self.kit.text(value, at)));
            }
        }
        if self.needs.count {
            fields.push(("count".into(), self.kit.b.lit(Num::from(0), at)));
        }
        if self.nested {
            let first = self.var("$first");
            fields.push(("all".into(), self.kit.b.add(Term::List(vec![first]), at)));
        }
        for (name, _) in &latches {
            fields.push((name.clone(), self.kit.b.lit(Data::Bool(false), at)));
        }
        let begin = self.kit.b.add(Term::Record(fields), at);
        let ran = self.kit.b.app(fix, begin, at);
        self.kit.b.let_in(bindings, ran, at)
    }

    /// The progress ledger, in a conversation of its own; a reply that is none is asked for again.
    fn progress(&mut self) -> TermId {
        let at = self.at;
        let answer = |ty: Type| Type::record([("reason".into(), Type::Str), ("answer".into(), ty)]);
        let ledger = Type::record([
            (Name::from("is_request_satisfied"), answer(Type::Bool)),
            ("is_in_loop".into(), answer(Type::Bool)),
            ("is_progress_being_made".into(), answer(Type::Bool)),
            ("next_speaker".into(), answer(Type::Str)),
            ("instruction_or_question".into(), answer(Type::Str)),
        ]);
        let said = vec![self.hears("$s"), self.says(PROGRESS)];
        let reply = self.asks(Some(ledger));
        let body = self.kit.b.let_in(said, reply, at);
        let body = self.kit.b.add(Term::Fresh(body), at);
        // A client that asks for the structure fails if the reply does not have it.
        if self.o.params.model.as_ref().is_some_and(|m| is_openai(m)) {
            return body;
        }
        let told = self.kit.b.add(Term::Tag("told".into(), Some(body)), at);
        let (this, again) = (self.var("self"), self.kit.b.add(Term::Tag("again".into(), None), at));
        let handler = self.kit.b.app(this, again, at);
        // What went wrong with data of a higher label is an error of the run.
        let label = self.kit.b.lit(Data::list(Vec::new()), at);
        let step = self.kit.b.add(
            Term::Try { label, body: told, catches: Catches::Transient, name: "$why".into(), handler },
            at,
        );
        let step = self.kit.b.abs("$r", None, step, at);
        let step = self.kit.b.abs("self", None, step, at);
        // How often AutoGen tries is its own business.
        let fix = self.kit.b.add(Term::Fix { bound: Bound::Finite(ATTEMPTS), origin: None, body: step }, at);
        let again = self.kit.b.add(Term::Tag("again".into(), None), at);
        let ran = self.kit.b.app(fix, again, at);
        let (p, fail) = (self.var("$p"), self.fail());
        let branches = vec![
            Branch { tag: "told".into(), binder: Some("$p".into()), body: p },
            Branch { tag: "again".into(), binder: None, body: fail },
        ];
        self.kit.b.add(Term::Case { scrutinee: ran, branches, default: None }, at)
    }

    /// The answer to a question of the progress ledger.
    fn answer(&mut self, question: &str) -> TermId {
        let of = self.field("$p", question);
        self.kit.b.add(Term::Field(of, "answer".into()), self.at)
    }

    /// A look at progress and what follows from it.
    fn step(&mut self) -> TermId {
        let at = self.at;
        let progress = self.progress();
        let turn = self.turn();
        let replan = self.replan();
        let (stalls, most) = (
            self.var("$stalls"),
            self.kit.b.lit(Num::from(i64::try_from(self.o.stalls).unwrap_or(i64::MAX)), at),
        );
        let stalled = self.prim(Prim::Ge, vec![stalls, most]);
        let next = self.kit.b.add(Term::If(stalled, replan, turn, IfSugar::Plain), at);
        let stalls = self.stalls();
        let next = self.kit.b.let_in(vec![("$stalls".into(), stalls)], next, at);
        // Of one member the name is not asked.
        let next = match self.team.members.len() {
            1 => next,
            _ => {
                let names = self.team.members.iter().map(|m| Data::str(m.name.as_str())).collect::<Vec<_>>();
                let (names, who) = (self.kit.b.lit(Data::list(names), at), self.answer("next_speaker"));
                let known = self.prim(Prim::Contains, vec![names, who]);
                let fail = self.fail();
                self.kit.b.add(Term::If(known, next, fail, IfSugar::Plain), at)
            }
        };
        let (done, s) = (self.answer("is_request_satisfied"), self.var("$s"));
        let next = self.kit.b.add(Term::If(done, s, next, IfSugar::Plain), at);
        self.kit.b.let_in(vec![("$p".into(), progress)], next, at)
    }

    /// One more where nothing moves or all repeats itself, else one less.
    fn stalls(&mut self) -> TermId {
        let at = self.at;
        let one = |l: &mut Self| l.kit.b.lit(Num::ONE, at);
        let more = |l: &mut Self| {
            let (n, one) = (state(l.kit, "stalls", at), one(l));
            l.prim(Prim::Add, vec![n, one])
        };
        let (n, first) = (state(self.kit, "stalls", at), one(self));
        let some = self.prim(Prim::Ge, vec![n, first]);
        let (n, first) = (state(self.kit, "stalls", at), one(self));
        let less = self.prim(Prim::Sub, vec![n, first]);
        let zero = self.kit.b.lit(Num::from(0), at);
        let less = self.kit.b.add(Term::If(some, less, zero, IfSugar::Plain), at);
        let (in_loop, up) = (self.answer("is_in_loop"), more(self));
        let rest = self.kit.b.add(Term::If(in_loop, up, less, IfSugar::Plain), at);
        let (moves, up) = (self.answer("is_progress_being_made"), more(self));
        self.kit.b.add(Term::If(moves, rest, up, IfSugar::Plain), at)
    }

    /// Facts and plan anew, with which the group chat begins again. The stalls are not forgotten.
    fn replan(&mut self) -> TermId {
        let at = self.at;
        let (facts, said) = (state(self.kit, "facts", at), vec![self.hears("$s")]);
        let ledger = self.planned(said, NEW_FACTS, NEW_PLAN);
        let mut bindings: Vec<(Name, TermId)> = vec![("$facts".into(), facts), ("$ledger".into(), ledger)];
        bindings.extend(self.unpacked("$ledger"));
        let first = self.var("$first");
        let log = self.kit.b.add(Term::List(vec![first]), at);
        bindings.push(self.set("log", log));
        for (field, value) in [("facts", "$facts"), ("plan", "$plan"), ("stalls", "$stalls")] {
            let value = self.var(value);
            bindings.push(self.set(field, value));
        }
        let first = self.var("$first");
        let more = self.kit.b.add(Term::List(vec![first]), at);
        bindings.extend(self.kept(more));
        let (this, s) = (self.var("self"), self.var("$s"));
        let again = self.kit.b.app(this, s, at);
        self.kit.b.let_in(bindings, again, at)
    }

    /// The instruction, and whoever it is for.
    fn turn(&mut self) -> TermId {
        let at = self.at;
        let stalls = self.var("$stalls");
        let mut bindings = vec![self.set("stalls", stalls)];
        let text = self.answer("instruction_or_question");
        let log = state(self.kit, "log", at);
        let log = appended(self.kit, log, NAME, said_as(self.needs.rich), text, at);
        bindings.push(self.set("log", log));
        if self.nested {
            let text = self.answer("instruction_or_question");
            let said = entry(self.kit, NAME, said_as(self.needs.rich), text, at);
            let more = self.kit.b.add(Term::List(vec![said]), at);
            bindings.extend(self.kept(more));
        }
        let mut branches: Vec<Branch> = Vec::new();
        for i in 0..self.team.members.len() {
            let name = &self.team.members[i].name;
            if self.team.members[..i].iter().any(|m| m.name == *name) {
                continue;
            }
            let body = self.member(i);
            branches.push(Branch { tag: name.as_str().into(), binder: None, body });
        }
        let next = match branches.len() {
            1 => branches.remove(0).body,
            _ => {
                let (scrutinee, nobody) = (self.answer("next_speaker"), self.fail());
                self.kit.b.add(Term::Case { scrutinee, branches, default: Some(nobody) }, at)
            }
        };
        self.kit.b.let_in(bindings, next, at)
    }

    /// A member's turn, and the group chat from there unless it is over.
    fn member(&mut self, i: usize) -> TermId {
        let m = &self.team.members[i];
        let at = m.head;
        let records = self.needs.records(self.team);
        let said = match group_chat::open(self.kit, m) {
            Ok(()) => {
                let said = group_chat::speaks(self.kit, self.team, i, &self.needs, records);
                self.kit.close();
                said
            }
            Err(unknown) => unknown,
        };
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        if records {
            bindings.push(("$t".into(), said));
            let y = self.field("$t", "text");
            bindings.push(("y".into(), y));
        } else {
            bindings.push(("y".into(), said));
        }
        if self.nested {
            let before = state(self.kit, "log", at);
            bindings.push(("$before".into(), self.prim(Prim::Length, vec![before])));
        }
        let y = self.var("y");
        bindings.push(self.set("text", y));
        let log = if self.needs.many || self.needs.rich {
            self.field("$t", "log")
        } else {
            let (log, y) = (state(self.kit, "log", at), self.var("y"));
            appended(self.kit, log, &m.name, "", y, at)
        };
        bindings.push(self.set("log", log));
        if self.nested {
            let (log, from, of) =
                (state(self.kit, "log", at), self.var("$before"), state(self.kit, "log", at));
            let to = self.prim(Prim::Length, vec![of]);
            let more = self.prim(Prim::Slice, vec![log, from, to]);
            bindings.extend(self.kept(more));
        }
        if self.needs.by {
            let by = self.kit.text(&m.name, at);
            bindings.push(self.set("by", by));
        }
        for (needed, field) in [(self.needs.to, "to"), (self.needs.kind, "kind")] {
            if needed {
                let value = self.field("$t", field);
                bindings.push(self.set(field, value));
            }
        }
        if self.needs.count {
            let (count, one) = (state(self.kit, "count", at), self.kit.b.lit(Num::ONE, at));
            let count = self.prim(Prim::Add, vec![count, one]);
            bindings.push(self.set("count", count));
        }
        let mut latches: Vec<(Name, TermId)> = Vec::new();
        let over = self.team.ends.as_ref().and_then(|e| holds(self.kit, e, &self.needs, &mut latches));
        let kept: Vec<Name> = latches.iter().map(|(n, _)| n.clone()).collect();
        bindings.extend(latches);
        let (this, s) = (self.var("self"), self.var("$s"));
        let again = self.kit.b.app(this, s, at);
        let next = match over {
            None => again,
            Some(over) => {
                bindings.push(("$over".into(), over));
                for name in &kept {
                    let value = self.var(name);
                    bindings.push(self.set(name, value));
                }
                let (over, s) = (self.var("$over"), self.var("$s"));
                let yes = self.kit.b.lit(Data::Bool(true), at);
                let ended = self.kit.b.add(Term::With(s, "over".into(), yes), at);
                self.kit.b.add(Term::If(over, ended, again, IfSugar::Plain), at)
            }
        };
        self.kit.b.let_in(bindings, next, at)
    }

    /// Lowers the result of the group chat: the last message if a condition ended it, else the final answer,
    /// which is made from `$end`.
    fn result(&mut self) -> TermId {
        let at = self.at;
        let mut said = vec![self.hears("$end")];
        match &self.o.answer {
            None => said.push(self.says(FINAL)),
            Some(words) => {
                let text = words.build(self.kit);
                said.push(("_".into(), self.kit.b.add(Term::Send(Role::User, text), at)));
            }
        }
        let reply = self.asks(None);
        let body = self.kit.b.let_in(said, reply, at);
        let asked = self.kit.b.add(Term::Fresh(body), at);
        let over = self.field("$end", "over");
        let last = self.field("$end", "text");
        if !self.nested {
            let text = self.kit.b.add(Term::If(over, last, asked, IfSugar::Plain), at);
            return self.kit.b.add(Term::Record(vec![("text".into(), text)]), at);
        }
        let logged = |l: &mut Self, more: Option<TermId>| {
            let (before, all) = (l.var("$log"), l.field("$end", "all"));
            let log = l.prim(Prim::Add, vec![before, all]);
            match more {
                None => log,
                Some(text) => appended(l.kit, log, NAME, said_as(l.needs.rich), text, at),
            }
        };
        let log = logged(self, None);
        let ended = self.kit.b.add(Term::Record(vec![("text".into(), last), ("log".into(), log)]), at);
        let (text, of) = (self.var("$answer"), self.var("$answer"));
        let log = logged(self, Some(of));
        let answered = self.kit.b.add(Term::Record(vec![("text".into(), text), ("log".into(), log)]), at);
        let answered = self.kit.b.let_in(vec![("$answer".into(), asked)], answered, at);
        self.kit.b.add(Term::If(over, ended, answered, IfSugar::Plain), at)
    }
}
