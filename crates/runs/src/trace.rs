//! Trace of a run: a list of events that is identical whenever the replies are.
//!
//! Entry points: [`Recorder`]: give it every [`Event`] of a run, and take the lines at the end;
//! [`TraceStream`], which gives each line as soon as it is certain. `docs/traces.md` describes them.
//!
//! Invariant: a trace depends on the program, its input and the answers, and on nothing else: not on time,
//! not on the order in which answers arrive, not on the number of threads. Requests stand in the order of a
//! run whose branches are run one after another.
//! Invariant: no secret is in it, because none is in events and reports.

use crate::{Answered, Asked, Binding, Event, Explained, Importance, Redactor, RunReport, Tokens};
use core_ir::{Data, Num, Role, SetSize};
use diagnostics::{Sources, Span};
use machine::{Choice, Message, Messages, Reply, RequestId};
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

/// The version of the format, in the first line of every trace.
pub const VERSION: u32 = 1;

/// The phases of a step of an agent that works with tools, in their order. Source: seed 004 §4.
pub const PHASES: [&str; 7] = ["think", "parse", "route", "invoke", "observe", "update", "check"];

/// First line of a trace: the program that was run.
#[derive(Clone, Debug)]
pub struct Head {
    /// The file.
    pub program: String,
    /// The pipeline, test or agent.
    pub entry: String,
    /// Input of the run.
    pub input: Option<Data>,
}

/// Collects what happens.
#[derive(Debug, Default)]
pub struct Recorder {
    /// In the order of their places; the deepest have no place of their own, and stand in the order of their
    /// names.
    requests: BTreeMap<Key, OpenRequest>,
    places: BTreeMap<RequestId, Arc<[u32]>>,
    /// The last place before which no further request can stand.
    settled: Option<Arc<[u32]>>,
}

/// Where a request stands in a trace.
type Key = (Arc<[u32]>, RequestId);

#[derive(Debug)]
struct OpenRequest {
    id: RequestId,
    span: Span,
    channel: Data,
    what: Asked,
    why: Vec<Explained>,
    answer: Option<Answer>,
}

#[derive(Debug)]
struct Answer {
    what: Answered,
    tokens: Tokens,
    usd: Option<Num>,
    importance: Importance,
}

impl Recorder {
    /// Nothing has happened.
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// Takes note of an event.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::Asked { id, span, channel, place, what, why, .. } => {
                self.places.insert(*id, place.clone());
                if is_first_in_line(place) && self.settled.as_ref().is_none_or(|last| last < place) {
                    self.settled = Some(place.clone());
                }
                let asking = OpenRequest {
                    id: *id,
                    span: *span,
                    channel: channel.clone(),
                    what: what.clone(),
                    why: why.clone(),
                    answer: None,
                };
                self.requests.insert((place.clone(), *id), asking);
            }
            Event::Answered { id, what, tokens, usd, importance, .. } => {
                let place = self.places.get(id).cloned();
                if let Some(asking) = place.and_then(|p| self.requests.get_mut(&(p, *id))) {
                    asking.answer = Some(Answer {
                        what: what.clone(),
                        tokens: *tokens,
                        usd: usd.clone(),
                        importance: *importance,
                    });
                }
            }
            // Repetitions and growing replies are matters of time.
            Event::Retry { .. } | Event::Growing { .. } | Event::Text { .. } => {}
        }
    }

    /// Returns the answered model calls in the order of the trace, as entries of a script with the same
    /// answers. Equal questions are distinguished by their places, because their order may vary.
    pub fn script(&self) -> Json {
        let question = |asking: &OpenRequest| match &asking.what {
            Asked::Model { messages, purpose, .. } => {
                Some((purpose.clone(), messages.last().map(|m| m.content.clone()).unwrap_or_default()))
            }
            _ => None,
        };
        let mut alike: HashMap<_, usize> = HashMap::new();
        for q in self.requests.values().filter_map(question) {
            *alike.entry(q).or_default() += 1;
        }
        let entry = |((place, _), asking): (&(Arc<[u32]>, RequestId), &OpenRequest)| {
            let Asked::Model { messages, purpose, .. } = &asking.what else { return None };
            let mut entry = Map::new();
            if question(asking).and_then(|q| alike.get(&q)).is_some_and(|n| *n > 1) {
                entry.insert("place".into(), shown_place(place));
            }
            if let Some(purpose) = purpose {
                entry.insert("purpose".into(), purpose.to_string().into());
            }
            if let Some(last) = messages.last().filter(|m| !m.content.is_empty()) {
                entry.insert("match".into(), last.content.to_string().into());
            }
            match &asking.answer.as_ref()?.what {
                Answered::Reply(Reply::Text(text)) => entry.insert("reply".into(), text.clone().into()),
                Answered::Reply(Reply::ToolCall { name, args }) => {
                    entry.insert("tool".into(), name.to_string().into());
                    entry.insert("args".into(), args.to_json())
                }
                Answered::Reply(Reply::ToolCalls(several)) => entry.insert("tools".into(), calls(several)),
                Answered::Failed(why) => entry.insert("error".into(), why.clone().into()),
                _ => return None,
            };
            Some(Json::Object(entry))
        };
        self.requests.iter().filter_map(entry).collect()
    }

    /// Number of each request in the trace, from 1.
    pub fn numbers(&self) -> HashMap<RequestId, usize> {
        self.requests.values().enumerate().map(|(i, asking)| (asking.id, i + 1)).collect()
    }

    /// The lines of the trace, each a JSON object.
    pub fn lines(&self, head: &Head, sources: &Sources, report: &RunReport) -> Vec<Json> {
        let (mut telling, mut out) = (Telling::default(), vec![head.line()]);
        telling.advance(self, true, sources, &mut out);
        telling.end(sources, report, &mut out);
        for line in &mut out {
            report.records.json(line);
        }
        out
    }

    /// The request of the same branch that follows.
    fn next(&self, id: RequestId) -> Option<&OpenRequest> {
        let last = RequestId { strand: id.strand, number: u32::MAX };
        let (next, place) = self.places.range((Excluded(id), Included(last))).next()?;
        self.requests.get(&(place.clone(), *next))
    }

    /// Returns whether no further request can stand before this place.
    fn is_settled(&self, place: &[u32]) -> bool {
        self.settled.as_ref().is_some_and(|last| place <= &**last)
    }
}

/// The numbers of the place of a branch of a branch, as far as requests have them.
const MAX_PLACE_LEN: usize = 300;

/// Returns whether a request is made by the run itself, or by the first branch of the first branch, and so
/// on: all that stands before it has happened. Of other branches it is not known who is the first.
fn is_first_in_line(place: &[u32]) -> bool {
    // Of each branch: the requests before it, the number of its `parallel`, its own number there. The last
    // two numbers are those of the request.
    let branches = &place[..place.len().saturating_sub(2)];
    // The deepest have no place of their own.
    branches.len() < MAX_PLACE_LEN && branches.chunks(3).all(|branch| branch.get(2) == Some(&0))
}

impl Head {
    /// The first line of a trace.
    fn line(&self) -> Json {
        let input = self.input.as_ref().map(Data::to_json);
        json!({
            "event": "run", "version": VERSION, "program": self.program, "entry": self.entry, "input": input,
        })
    }
}

/// The trace of a run that goes on: its lines, as soon as nothing that may happen changes them.
///
/// Requests of parallel branches have to wait for those that stand before them.
#[derive(Debug, Default)]
pub struct TraceStream {
    recorder: Recorder,
    telling: Telling,
}

impl TraceStream {
    /// Begins a trace; gives its first line.
    pub fn begin(head: &Head, records: &Redactor) -> (TraceStream, Json) {
        let mut line = head.line();
        records.json(&mut line);
        (TraceStream::default(), line)
    }

    /// Takes note of an event; gives the lines that are certain now.
    pub fn note(&mut self, event: &Event, sources: &Sources, records: &Redactor) -> Vec<Json> {
        self.recorder.note(event);
        let mut out = Vec::new();
        self.telling.advance(&self.recorder, false, sources, &mut out);
        self.telling.forget(&mut self.recorder);
        out.iter_mut().for_each(|line| records.json(line));
        out
    }

    /// Number of each request whose line was given, from 1.
    pub fn numbers(&self) -> &HashMap<RequestId, usize> {
        &self.telling.numbers
    }

    /// Gives the remaining lines.
    pub fn end(mut self, sources: &Sources, report: &RunReport) -> Vec<Json> {
        let mut out = Vec::new();
        self.telling.advance(&self.recorder, true, sources, &mut out);
        self.telling.end(sources, report, &mut out);
        out.iter_mut().for_each(|line| report.records.json(line));
        out
    }
}

/// How far a trace is told.
#[derive(Debug, Default)]
struct Telling {
    /// Number of each request that was told, from 1.
    numbers: HashMap<RequestId, usize>,
    branches: HashMap<u64, BranchTold>,
    /// The request that is told, or was told last.
    at: Option<(Key, Told)>,
}

/// Parts of what is told of a request, in their order.
#[derive(Clone, Debug, PartialEq)]
enum Told {
    /// The request, and the step of an agent that it carries out.
    Request(Option<(String, u64)>),
    /// Its answer, too.
    Answer(Option<(String, u64)>),
    /// All, also what the agent does with the answer.
    All,
}

/// The state of a branch, as far as it was told.
#[derive(Debug, Default)]
struct BranchTold {
    /// The conversation.
    said: Messages,
    /// The agent that thought last, its step, and the number of calls that it asked for.
    thought: Option<(String, u64, u64)>,
    /// Calls of tools since.
    calls: u64,
}

impl Telling {
    /// Tells what is certain: all of it, if the run has ended.
    fn advance(&mut self, recorder: &Recorder, ended: bool, sources: &Sources, out: &mut Vec<Json>) {
        loop {
            let following = match self.at.take() {
                None => recorder.requests.first_key_value(),
                Some((key, told)) => {
                    let Some(asking) = recorder.requests.get(&key) else {
                        // It was forgotten, so all of it was told.
                        let next = recorder.requests.range::<Key, _>((Excluded(&key), Unbounded)).next();
                        self.at = Some((key, Told::All));
                        match next.filter(|(key, _)| ended || recorder.is_settled(&key.0)) {
                            Some((key, asking)) => self.request(key, asking, sources, out),
                            None => return,
                        }
                        continue;
                    };
                    let told = self.rest(recorder, asking, told, ended, out);
                    let is_all = told == Told::All;
                    let next = recorder.requests.range::<Key, _>((Excluded(&key), Unbounded)).next();
                    self.at = Some((key, told));
                    if !is_all {
                        return;
                    }
                    next
                }
            };
            match following.filter(|(key, _)| ended || recorder.is_settled(&key.0)) {
                Some((key, asking)) => self.request(key, asking, sources, out),
                None => return,
            }
        }
    }

    /// Gives up what was told and is not needed for what follows.
    fn forget(&mut self, recorder: &mut Recorder) {
        let Some((key, told)) = &self.at else { return };
        while let Some(first) = recorder.requests.first_entry()
            && (first.key() < key || (first.key() == key && *told == Told::All))
        {
            recorder.places.remove(&first.key().1);
            first.remove();
        }
    }

    /// Tells a request.
    fn request(&mut self, key: &Key, asking: &OpenRequest, sources: &Sources, out: &mut Vec<Json>) {
        let (place, id) = key;
        let n = self.numbers.len() + 1;
        self.numbers.insert(*id, n);
        let branch = self.branches.entry(id.strand).or_default();
        let mut carried_out = None;
        match &asking.what {
            Asked::Approve { .. } => {}
            // A tool call that carries out what the agent asked for.
            Asked::Tool { name, .. } => {
                carried_out = branch.thought.as_ref().and_then(|(agent, k, asked)| {
                    (branch.calls < *asked).then(|| (agent.clone(), k + branch.calls))
                });
                branch.calls += 1;
                if let Some((agent, k)) = &carried_out {
                    out.push(phase(n, "invoke", *k, agent, object(json!({"tool": &**name}))));
                }
            }
            _ => (branch.thought, branch.calls) = (None, 0),
        }
        if let Some((agent, k)) = step(asking) {
            out.push(phase(n, "think", k, &agent, Map::new()));
        }
        let mut line = request(n, place, asking, sources, &mut branch.said);
        if !asking.why.is_empty() {
            let number = |id: RequestId| self.numbers.get(&id).copied();
            line["why"] = asking.why.iter().map(|w| w.to_json(sources, &number)).collect();
        }
        out.push(line);
        self.at = Some((key.clone(), Told::Request(carried_out)));
    }

    /// Tells the rest of a request, as far as it is certain.
    fn rest(
        &mut self,
        recorder: &Recorder,
        asking: &OpenRequest,
        mut told: Told,
        ended: bool,
        out: &mut Vec<Json>,
    ) -> Told {
        let Some(given) = &asking.answer else {
            return if ended { Told::All } else { told };
        };
        let answer = &given.what;
        let n = self.numbers.get(&asking.id).copied().unwrap_or_default();
        let looping = step(asking);
        if let Told::Request(carried_out) = told {
            out.push(response(n, given, matches!(asking.what, Asked::Model { .. })));
            out.extend(endorsement(n, asking, answer));
            if let (Some((agent, k)), Some(branch)) = (&looping, self.branches.get_mut(&asking.id.strand)) {
                let asked = match answer {
                    Answered::Reply(Reply::ToolCall { .. }) => 1,
                    Answered::Reply(Reply::ToolCalls(calls)) => calls.len() as u64,
                    _ => 0,
                };
                branch.thought = Some((agent.clone(), *k, asked));
            }
            // A time limit ends the loop, a budget the run: the agent is not shown that.
            let is_end = matches!(answer, Answered::Late | Answered::Stopped(_));
            told = Told::Answer(carried_out.filter(|_| !is_end));
        }
        let Told::Answer(carried_out) = &told else { return told };
        let next = recorder.next(asking.id);
        if next.is_none() && !ended && (looping.is_some() || carried_out.is_some()) {
            return told;
        }
        if let Some((agent, k)) = &looping {
            thought(n, asking, (agent, *k), next, out);
        }
        if let Some((agent, k)) = carried_out {
            let ok = !matches!(answer, Answered::Failed(_));
            observed(n, ok, (agent, *k), next, out);
        }
        Told::All
    }

    /// Tells the end of the run.
    fn end(&self, sources: &Sources, report: &RunReport, out: &mut Vec<Json>) {
        let number = |id: RequestId| self.numbers.get(&id).copied();
        for Binding { span, value } in &report.why.bindings {
            let mut line =
                object(json!({"event": "value", "name": value.of, "label": value.label.to_json()}));
            place_json(sources, *span, &mut line);
            line.insert("from".into(), value.to_json(sources, &number)["from"].take());
            out.push(Json::Object(line));
        }
        let mut end = end(sources, report);
        if let Some(refused) = &report.why.refused {
            end["error"]["refused"] = refused.to_json(sources, &number);
        }
        if !report.why.result.is_empty() {
            end["why"] = report.why.result.iter().map(|w| w.to_json(sources, &number)).collect();
        }
        out.push(end);
    }
}

/// A phase of a step of an agent.
fn phase(n: usize, phase: &str, step: u64, agent: &str, mut more: Map<String, Json>) -> Json {
    let mut line = Map::new();
    line.insert("event".into(), "phase".into());
    line.insert("n".into(), n.into());
    line.insert("phase".into(), phase.into());
    line.insert("agent".into(), agent.into());
    line.insert("step".into(), step.into());
    line.append(&mut more);
    Json::Object(line)
}

/// The phases after an agent has thought; `next` is what its branch asks next.
fn thought(
    n: usize,
    asking: &OpenRequest,
    (agent, k): (&str, u64),
    next: Option<&OpenRequest>,
    out: &mut Vec<Json>,
) {
    let again = next.is_some_and(|x| matches!(x.what, Asked::Model { attempt, .. } if attempt > 0));
    out.push(phase(n, "parse", k, agent, object(json!({"ok": !again && routed(asking).is_some()}))));
    let Some(route) = routed(asking).filter(|_| !again) else { return };
    out.push(phase(n, "route", k, agent, object(json!({"to": route.to_string()}))));
    match (&route, next.map(|x| &x.what)) {
        (Route::Final, _) => out.push(phase(n, "check", k, agent, object(json!({"again": false})))),
        // The rest is written where the tool is called.
        (Route::Tool(_), Some(Asked::Tool { .. } | Asked::Approve { .. })) => {}
        // It was refused before it was called; the agent is shown why.
        (Route::Tool(name), _) => {
            out.push(phase(n, "invoke", k, agent, object(json!({"tool": name, "refused": true}))));
            observed(n, false, (agent, k), next, out);
        }
    }
}

/// The phases after a tool was called for an agent.
fn observed(n: usize, ok: bool, (agent, k): (&str, u64), next: Option<&OpenRequest>, out: &mut Vec<Json>) {
    let seen = next.and_then(shown);
    out.push(phase(n, "observe", k, agent, object(json!({"ok": ok, "shown": seen}))));
    out.push(phase(n, "update", k, agent, Map::new()));
    let again = next.is_some_and(|x| step(x).is_some_and(|(_, m)| m > k));
    out.push(phase(n, "check", k, agent, object(json!({"again": again}))));
}

fn calls(several: &[(core_ir::Name, Data)]) -> Json {
    several.iter().map(|(name, args)| json!({"tool": &**name, "args": args.to_json()})).collect()
}

fn object(json: Json) -> Map<String, Json> {
    match json {
        Json::Object(o) => o,
        _ => Map::new(),
    }
}

/// The agent and the step of its loop, if a request is its thinking: one with tools to choose from.
fn step(asking: &OpenRequest) -> Option<(String, u64)> {
    let Asked::Model { agent: Some(agent), tools, messages, .. } = &asking.what else { return None };
    if tools.is_empty() {
        return None;
    }
    // Each step before has ended with what a tool gave.
    let done = messages.size().results as u64;
    Some((agent.to_string(), done + 1))
}

/// Destination of the reply to a waiting agent.
#[derive(Debug)]
enum Route {
    Final,
    Tool(String),
}

impl std::fmt::Display for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Route::Final => f.write_str("final"),
            Route::Tool(name) => f.write_str(name),
        }
    }
}

fn routed(asking: &OpenRequest) -> Option<Route> {
    match &asking.answer.as_ref()?.what {
        Answered::Reply(Reply::Text(_)) => Some(Route::Final),
        Answered::Reply(Reply::ToolCall { name, .. }) => Some(Route::Tool(name.to_string())),
        Answered::Reply(Reply::ToolCalls(calls)) => {
            calls.first().map(|(name, _)| Route::Tool(name.to_string()))
        }
        _ => None,
    }
}

/// Returns the part of a tool's result that the agent receives.
fn shown(next: &OpenRequest) -> Option<String> {
    let Asked::Model { messages, .. } = &next.what else { return None };
    messages.newest_first().find(|m| m.role == Role::Tool).map(|m| m.content.to_string())
}

/// A place without the number that is the same for all requests of one.
fn shown_place(place: &[u32]) -> Json {
    json!(place.split_last().map_or(place, |(_, place)| place))
}

pub(crate) fn place_json(sources: &Sources, span: Span, line: &mut Map<String, Json>) {
    if let Some(source) = sources.get(span.file) {
        let at = source.line_column(span.start);
        line.insert("path".into(), source.path.clone().into());
        line.insert("line".into(), at.line.into());
        line.insert("column".into(), at.column.into());
    }
}

fn request(n: usize, place: &[u32], asking: &OpenRequest, sources: &Sources, said: &mut Messages) -> Json {
    let mut line = Map::new();
    line.insert("event".into(), "request".into());
    line.insert("n".into(), n.into());
    // The last number only sorts a request behind the branches before it.
    line.insert("place".into(), shown_place(place));
    let mut put = |key: &str, value: Json| line.insert(key.into(), value);
    match &asking.what {
        Asked::Model { model, purpose, agent, messages, tools, attempt, .. } => {
            put("kind", "model".into());
            put("model", model.clone().into());
            if let Some(purpose) = purpose {
                put("purpose", purpose.to_string().into());
            }
            if let Some(agent) = agent {
                put("agent", agent.to_string().into());
            }
            if !tools.is_empty() {
                put("tools", tools.iter().map(ToString::to_string).collect());
            }
            if *attempt > 0 {
                put("attempt", (*attempt).into());
            }
            let earlier = std::mem::replace(said, messages.clone());
            let same = earlier.equal_at_front(messages);
            if same > 0 {
                put("earlier", same.into());
            }
            put("messages", messages.skip(same).map(message).collect());
        }
        Asked::Tool { name, args, .. } | Asked::Approve { name, args, .. } => {
            let asks = matches!(asking.what, Asked::Approve { .. });
            put("kind", if asks { "approve".into() } else { "tool".into() });
            put("tool", name.to_string().into());
            put("args", Data::record(args.iter().cloned()).to_json());
            if let Asked::Tool { choices, .. } = &asking.what
                && !choices.is_empty()
            {
                put("choices", choices.iter().map(choice_json).collect());
            }
        }
        Asked::Recall { store, key } => {
            put("kind", "recall".into());
            put("store", store.to_string().into());
            put("key", key.to_string().into());
        }
        Asked::Remember { store, key, value } => {
            put("kind", "remember".into());
            put("store", store.to_string().into());
            put("key", key.to_string().into());
            put("value", value.to_json());
        }
        Asked::Sample { probability } => {
            put("kind", "sample".into());
            put("probability", probability.to_json());
        }
    }
    put("channel", asking.channel.to_json());
    place_json(sources, asking.span, &mut line);
    Json::Object(line)
}

fn message(m: &Message) -> Json {
    match &m.call {
        Some(call) => json!({"role": m.role.as_str(), "tool": &*call.0, "args": call.1.to_json()}),
        None => json!({"role": m.role.as_str(), "content": &*m.content}),
    }
}

fn response(n: usize, answer: &Answer, model: bool) -> Json {
    let mut line = object(json!({"event": "response", "n": n}));
    let Answer { what, tokens, usd, importance } = answer;
    let (key, value) = match what {
        Answered::Reply(Reply::Text(text)) => ("reply", text.clone().into()),
        Answered::Reply(Reply::ToolCall { name, args }) => {
            line.insert("tool".into(), name.to_string().into());
            ("args", args.to_json())
        }
        Answered::Reply(Reply::ToolCalls(several)) => ("calls", calls(several)),
        Answered::Data(data) => ("data", data.to_json()),
        Answered::Edited { args, .. } => {
            ("edit", Json::Object(args.iter().map(|(n, d)| (n.to_string(), d.to_json())).collect()))
        }
        Answered::Nothing | Answered::Approved(_) => ("data", Json::Null),
        Answered::Sample(b) => ("sample", (*b).into()),
        Answered::Failed(why) => ("error", why.clone().into()),
        Answered::Stopped(why) => ("stopped", why.clone().into()),
        Answered::Late => ("late", true.into()),
        Answered::Withheld => ("withheld", true.into()),
    };
    line.insert(key.into(), value);
    if model {
        line.insert("inputTokens".into(), tokens.input.into());
        line.insert("outputTokens".into(), tokens.output.into());
        if let Some(usd) = usd {
            line.insert("usd".into(), usd.to_json());
        }
    }
    if importance.is_minor() {
        line.insert("importance".into(), Importance::MINOR.into());
    }
    Json::Object(line)
}

/// An approval endorses the arguments of one call: a person vouches for them, which `endorse` of the program
/// does elsewhere.
fn endorsement(n: usize, asking: &OpenRequest, answer: &Answered) -> Option<Json> {
    let Asked::Approve { name, args, labels } = &asking.what else { return None };
    let (by, edited) = match answer {
        Answered::Approved(by) => (by, &[][..]),
        Answered::Edited { by, args } => (by, &args[..]),
        _ => return None,
    };
    // What the approver wrote needs nobody to vouch for it.
    let own = args.iter().zip(labels).filter(|((arg, _), _)| !edited.iter().any(|(n, _)| n == arg));
    let args: Vec<Json> =
        own.map(|((arg, _), label)| json!({"name": &**arg, "label": label.to_json()})).collect();
    let mut line = json!({"event": "endorsement", "n": n, "tool": &**name, "args": args});
    if let Some(by) = by {
        line["by"] = json!({"name": by.name, "via": by.via.as_str()});
    }
    Some(line)
}

fn end(sources: &Sources, report: &RunReport) -> Json {
    let mut line = object(json!({"event": "end"}));
    match &report.result {
        Ok(value) => {
            // A function has no JSON; it is shown as text.
            let result = value.data().map_or_else(|| Json::from(value.to_string()), |d| d.to_json());
            line.insert("result".into(), result);
        }
        Err(failure) => {
            let mut error = object(json!({"code": failure.code.as_str(), "message": failure.message}));
            place_json(sources, failure.span, &mut error);
            line.insert("error".into(), error.into());
        }
    }
    line.insert("label".into(), report.label.to_json());
    let u = &report.usage;
    line.insert(
        "usage".into(),
        json!({
            "modelCalls": u.model_calls, "toolCalls": u.tool_calls, "questions": u.questions, "inputTokens": u.input_tokens,
            "outputTokens": u.output_tokens, "usd": u.usd.as_ref().map(Num::to_json),
            "unpriced": u.unpriced, "steps": report.fuel,
        }),
    );
    Json::Object(line)
}

/// A choice that untrusted data had, as traces have it: the `params`, and the number `of` values or the
/// places `below` which they are.
pub fn choice_json(choice: &Choice) -> Json {
    let params: Vec<&str> = choice.params.iter().map(|n| &**n).collect();
    match &choice.of {
        SetSize::Values(n) => json!({"params": params, "of": n}),
        SetSize::Below(places) => {
            let below: Vec<String> = places.iter().map(ToString::to_string).collect();
            json!({"params": params, "below": below})
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Script, run_script};
    use core_ir::{Builder, Globals};
    use diagnostics::FileId;
    use machine::{Config, Machine};

    /// A report of a run that did nothing.
    fn nothing() -> RunReport {
        let mut b = Builder::new();
        let root = b.lit("x", Span { file: FileId(0), start: 0, end: 0 });
        let code = b.finish(root, &Globals::none()).unwrap();
        let machine = Machine::new(Arc::new(code), None, Config::default());
        run_script(machine, &mut Script::parse("[]", "s").unwrap(), 0, &mut |_| {})
    }

    /// The lines of a run of many calls of tools by no agent. Each was compared with all before it.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "what is tested is how long it takes")]
    fn a_trace_of_many_calls_takes_time_in_proportion() {
        let mut recorder = Recorder::new();
        for number in 0..60_000 {
            recorder.note(&Event::Asked {
                id: RequestId { strand: 0, number },
                span: Span { file: FileId(0), start: 0, end: 0 },
                channel: Data::list([]),
                answer: Data::list([]),
                place: Arc::from([number]),
                what: Asked::Tool { name: "page".into(), args: Vec::new(), choices: Vec::new() },
                why: Vec::new(),
                recorded: false,
                importance: Importance::Normal,
            });
        }
        let head = Head { program: "p.agent".into(), entry: "p".into(), input: None };
        let report = nothing();
        let start = std::time::Instant::now();
        let lines = recorder.lines(&head, &Sources::new(), &report);
        assert_eq!(lines.len(), 60_002);
        // It took minutes.
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }
}
