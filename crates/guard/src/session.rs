//! The session: the label of the conversation, its tools, and what was asked of it.

use crate::decide::{
    self, Allowed, Decision, Outcome, Question, Refused, SetAnswer, SetRead, Start, Turn, Waiting,
};
use crate::handles::Handle;
use crate::program::{self, Programs, ToolSpec};
use core_ir::{Code, Data, Label, LabelSpec, Lattice, Name, PartPath, Stated};
use diagnostics::{Diagnostic, FileId, Span, clip};
use machine::{Call, CallCount, Config, ErrorCode, Failure, Machine, Output, Part, Refusal, Response};
use policy::Policy;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Steps of one turn. A call of a few hundred bytes takes about 20, a text one for each 16 bytes; the rest is
/// for functions of a policy.
const FUEL: u64 = 20_000_000;

/// The longest text of a result, and the most parts of one.
const MAX_TEXT: usize = 64 << 20;

/// The most values of the set `request`, and the longest of its texts.
const MAX_NAMED: usize = 4096;
const MAX_NAMED_TEXT: usize = 1024;

/// The most raises of the label that are told.
const MAX_RAISED: usize = 16;

/// Name of the client's model for `[models]` if it has none.
const MODEL: &str = "";

/// Options of a session.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Name of the client's model, for its clearance; without it the clearance of `"*"` holds.
    pub model: Option<Name>,
    /// True if nobody keeps the labels of what tools write ([`Session::memory`]): then results of tools that
    /// read it have the highest label.
    pub forgets: bool,
    /// Name of the model that questions about handles are put to, if there is one.
    pub quarantine: Option<Name>,
}

/// A raise of the label of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raised {
    /// Tool whose result it was.
    pub by: Name,
    /// The label from then on, as it is written.
    pub to: String,
}

/// Keys of a server's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// All keys.
    All,
    /// These keys.
    Some(Vec<String>),
}

/// Keys that a call writes and reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Keys that it writes.
    pub writes: Option<Keys>,
    /// Keys that it reads.
    pub reads: Option<Keys>,
}

/// The label of something that was written, as it outlives the session.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptLabel {
    /// Name of the lattice.
    pub lattice: String,
    /// The label.
    pub label: Data,
    /// Tools whose results had raised the label, the first first.
    pub raised_by: Vec<Name>,
}

/// Text between the name of a server and that of its tool.
pub const SERVER_SEPARATOR: &str = "__";

/// Facts about the names of a server's tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ServerNames {
    /// True if somebody approved the server: then a table for `send` is one for `mail__send`.
    is_approved: bool,
    /// True if all tools of the server were offered: then a table for another one is a slip.
    is_listed: bool,
}

/// One conversation of an assistant with its tools. A copy goes on by itself.
#[derive(Clone)]
pub struct Session {
    pub(crate) policy: Arc<Policy>,
    /// The policy with the names that tools have here.
    pub(crate) named: Arc<Policy>,
    model: Name,
    forgets: bool,
    quarantine: Option<Name>,
    tools: Vec<ToolSpec>,
    programs: Result<Programs, Vec<Diagnostic>>,
    pub(crate) lattice: Lattice,
    pub(crate) label: Label,
    raised: Vec<Raised>,
    /// Calls that untrusted data decided, of tools that limit their number.
    counted: Vec<(Name, u64)>,
    sets: BTreeMap<Name, SetAnswer>,
    /// The set `request`: values of arguments while the conversation was trusted and public, and tokens of
    /// what the user asked for.
    request: Vec<Data>,
    /// True if the programs have an older one.
    is_request_new: bool,
    /// The servers whose tools have names with that of the server before them; none if all tools are of one.
    servers: BTreeMap<String, ServerNames>,
    /// Values that the model has handles of.
    pub(crate) handles: Vec<Handle>,
    /// Number of handles of this conversation.
    pub(crate) handle_count: usize,
    /// Number of conversations before this one.
    pub(crate) conversation: u64,
    /// The configuration of the next turn, while the label and the counts stay.
    config: Option<Arc<Config>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("label", &self.label())
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// A session that has read nothing, with a policy and without tools.
    pub fn new(policy: Arc<Policy>, options: &SessionOptions) -> Session {
        let mut session = Session {
            lattice: Lattice::with_principals(policy.lattice, &policy.principals),
            model: options.model.clone().unwrap_or_else(|| MODEL.into()),
            forgets: options.forgets,
            quarantine: options.quarantine.clone(),
            named: policy.clone(),
            policy,
            tools: Vec::new(),
            programs: Err(Vec::new()),
            label: Label::BOTTOM,
            raised: Vec::new(),
            counted: Vec::new(),
            sets: BTreeMap::new(),
            request: Vec::new(),
            is_request_new: false,
            servers: BTreeMap::new(),
            handles: Vec::new(),
            handle_count: 0,
            conversation: 0,
            config: None,
        };
        session.build();
        session
    }

    /// Adds tools, or replaces those of the same names.
    pub fn offer(&mut self, tools: impl IntoIterator<Item = ToolSpec>) {
        let mut changed = false;
        for tool in tools {
            match self.tools.iter_mut().find(|t| t.name == tool.name) {
                Some(known) if *known == tool => {}
                Some(known) => (*known, changed) = (tool, true),
                None => {
                    self.tools.push(tool);
                    changed = true;
                }
            }
        }
        if changed {
            self.build();
        }
    }

    /// Adds a server whose tools are offered as `SERVER__TOOL`, and so named by the policy.
    ///
    /// If somebody approved the server, the policy may name them without the server. Of another server such a
    /// table says nothing: whoever writes the server chooses the names of its tools.
    pub fn add_server(&mut self, server: &str, is_approved: bool) {
        self.servers.insert(server.into(), ServerNames { is_approved, is_listed: false });
        self.build();
    }

    /// Takes note that a server has offered all of its tools. From then on a table of the policy for a tool
    /// that it does not have is a problem, if it looks like a slip for one that it has.
    pub fn close_server(&mut self, server: &str) {
        if let Some(names) = self.servers.get_mut(server).filter(|names| !names.is_listed) {
            names.is_listed = true;
            self.build();
        }
    }

    /// Returns whether a tool of the name was offered.
    pub fn knows(&self, tool: &str) -> bool {
        self.tools.iter().any(|t| *t.name == *tool)
    }

    /// Nothing is known of what the conversation has read: its label is the highest from now on.
    pub fn assume_highest(&mut self, by: &str) {
        self.label = self.lattice.top();
        self.config = None;
        self.raised.push(Raised { by: by.into(), to: self.lattice.show(self.label) });
    }

    /// Problems of the policy with the tools that were offered. While there is one, no call is allowed.
    pub fn problems(&self) -> &[Diagnostic] {
        self.programs.as_ref().err().map_or(&[], Vec::as_slice)
    }

    /// The tools as the policy declares them, and the policy with the names that they have here, for whoever
    /// checks its rules.
    ///
    /// # Errors
    /// The policy does not fit the tools.
    pub fn declared(&self) -> Result<(Code, Arc<Policy>), Vec<Diagnostic>> {
        let at = Span { file: FileId(0), start: 0, end: 0 };
        Ok((program::declared(&self.tools, &self.named, at)?, self.named.clone()))
    }

    /// The label of the conversation, as it is written.
    pub fn label(&self) -> String {
        self.lattice.show(self.label)
    }

    /// The raises of the label, the first first: the first few.
    pub fn raised(&self) -> &[Raised] {
        &self.raised
    }

    /// Takes note of what the user asks for, in the user's own words: its tokens may be chosen where the
    /// policy says `request`.
    pub fn user_asks(&mut self, text: &str) {
        self.take_up_handles(text);
        self.name_values(core_ir::among::tokens(&Data::str(text)));
    }

    /// Adds to the set `request`. What it has no room for is not in it.
    fn name_values(&mut self, values: impl IntoIterator<Item = Data>) {
        for value in values {
            let is_short = value.as_str().is_none_or(|text| text.len() <= MAX_NAMED_TEXT);
            if is_short && self.request.len() < MAX_NAMED && !self.request.contains(&value) {
                self.request.push(value);
                self.is_request_new = true;
            }
        }
    }

    /// Decides a call, as if the model's reply were this call.
    pub fn call(&mut self, tool: &str, args: &Data) -> Decision {
        // While the conversation is trusted and public, no set is looked at.
        if self.is_request_new && self.label != Label::BOTTOM {
            self.build();
        }
        let handles = self.handles_in(args);
        if let Some(unknown) = handles.iter().find(|name| self.handle(name).is_none()) {
            let message = format!("there is no handle `{}`", clip(unknown));
            return Decision::Refused(self.refused(tool.into(), message, String::new(), None));
        }
        match &self.programs {
            Ok(_) if !handles.is_empty() => self.call_with(tool, args, &handles),
            Ok(programs) => {
                let code = programs.checked.clone();
                self.turn(&code, tool, args, false)
            }
            Err(found) => {
                let why = found.first().map_or("it can't be read", |d| &d.message);
                let message = format!("the policy does not fit the tools: {why}");
                Decision::Refused(self.refused(tool.into(), message, "Correct the policy".into(), None))
            }
        }
    }

    /// Decides a call whose arguments name handles.
    fn call_with(&mut self, tool: &str, args: &Data, handles: &[Name]) -> Decision {
        let known = handles.iter().filter_map(|name| self.handle(name));
        let keys: Vec<(Name, LabelSpec)> = known.map(|h| (h.name.clone(), h.label.clone())).collect();
        let at = Span { file: FileId(0), start: 0, end: 0 };
        let args = match self.tools.iter().find(|t| *t.name == *tool) {
            Some(spec) => complete(spec, args),
            None => args.clone(),
        };
        let call = program::HandleCall { tool, args: &args, keys: &keys };
        match program::with_handles(&self.tools, &self.named, &self.request, &call, at) {
            Ok(code) => self.turn(&Arc::new(code), tool, &args, true),
            // INVARIANT: the policy fits these tools, and handles are no tools.
            Err(_) => unreachable!("a policy that fits the tools"),
        }
    }

    /// A call that was made although nothing decided about it: of a session that only observes, or a message
    /// that a server sent unasked. Its result has the label that the policy says.
    pub fn admit(&mut self, tool: &str, args: &Data) -> Option<Allowed> {
        let code = self.programs.as_ref().ok()?.open.clone();
        match self.turn(&code, tool, args, false) {
            Decision::Allowed(allowed) => Some(allowed),
            _ => None,
        }
    }

    /// Takes note of the result of a call before the client gets it, or of the message of its failure;
    /// `stated` is the label that the result itself states. The label of the conversation is raised.
    pub fn finish(
        &mut self,
        call: Allowed,
        result: Result<Data, String>,
        stated: Option<LabelSpec>,
    ) -> Outcome {
        let response = match stated {
            Some(label) => Response::LabeledTool(result, label),
            None => Response::Tool(result),
        };
        let (mut machine, Start { tool, .. }) = call.turn.handle(response);
        match run(&mut machine) {
            Output::Done(Ok(_)) => {
                let label = machine.conversation().0;
                self.raise(&machine, label, &tool);
            }
            Output::Done(Err(failure)) => {
                self.raise(&machine, failure.label, &tool);
                // The server's own error is a result like any other. Of another one nothing is known but its
                // label.
                if failure.code != ErrorCode::Tool {
                    return Outcome::Withheld(self.failed(&machine, tool, &failure));
                }
            }
            Output::Request(..) | Output::Working | Output::Waiting => {
                let message = format!("the result of `{tool}` could not be labeled");
                let top = self.lattice.top();
                self.label = self.lattice.join(self.label, top);
                self.config = None;
                return Outcome::Withheld(self.refused(tool, message, String::new(), None));
            }
        }
        match self.shown(&tool) {
            Ok(()) => Outcome::Delivered,
            Err(refused) => Outcome::Withheld(*refused),
        }
    }

    /// Takes the answer of a person to a question: approval, or the reason against it.
    pub fn answer(&mut self, question: Question, answer: Result<(), String>) -> Decision {
        let turn = question.turn;
        if turn.start.config.counted == self.counted {
            let (machine, start) = turn.handle(Response::Approve(answer));
            return self.decided(machine, start);
        }
        match self.begin_again(turn.start) {
            Decision::Asks(question) => {
                let (machine, start) = question.turn.handle(Response::Approve(answer));
                self.decided(machine, start)
            }
            decision => decision,
        }
    }

    /// Nobody is there to be asked.
    pub fn unattended(&mut self, question: Question) -> Decision {
        let (machine, start) = question.turn.handle(Response::Unattended);
        self.decided(machine, start)
    }

    /// Takes the result of a set, which stays the same for the whole session.
    pub fn read(
        &mut self,
        read: SetRead,
        result: Result<Data, String>,
        stated: Option<LabelSpec>,
    ) -> Decision {
        let label = stated.unwrap_or(LabelSpec::BOTTOM);
        self.sets.entry(read.set.clone()).or_insert(SetAnswer { result, label });
        self.begin_again(read.turn.start)
    }

    fn build(&mut self) {
        let at = Span { file: FileId(0), start: 0, end: 0 };
        self.named = self.named_policy();
        self.programs = Programs::new(&self.tools, &self.named, &self.model, &self.request, at);
        self.is_request_new = false;
    }

    /// The policy with the names that the tools of this session have.
    fn named_policy(&self) -> Arc<Policy> {
        let kept = |policy: Policy| Arc::new(if self.forgets { policy } else { policy.keeping() });
        if self.servers.is_empty() {
            return kept(Policy::clone(&self.policy));
        }
        let is_offered: HashSet<&str> = self.tools.iter().map(|t| &*t.name).collect();
        // Tables for tools that a server does not have are kept, so that slips are found.
        let of_listed = |name: &str| {
            name.split_once(SERVER_SEPARATOR)
                .is_some_and(|(server, _)| self.servers.get(server).is_some_and(|s| s.is_listed))
        };
        let slips = self.policy.tool_names().filter(|n| !is_offered.contains(n) && of_listed(n));
        let offered = self.tools.iter().filter_map(|t| self.table(&t.name));
        kept(self.policy.prefixed(offered.chain(slips.map(|n| (n, "")))))
    }

    /// The name of the table that the policy has for a tool, and what stands before that in the tool's name.
    fn table<'s>(&'s self, tool: &'s str) -> Option<(&'s str, &'s str)> {
        let has = |name: &str| self.policy.tool_names().any(|n| n == name);
        if has(tool) {
            return Some((tool, ""));
        }
        let (server, bare) = tool.split_once(SERVER_SEPARATOR)?;
        let is_approved = self.servers.get(server)?.is_approved;
        (is_approved && has(bare)).then(|| (bare, &tool[..tool.len() - bare.len()]))
    }

    /// The configuration of a turn: the policy's, with the conversation so far as the input.
    pub(crate) fn config(&mut self) -> Arc<Config> {
        if let Some(config) = &self.config {
            return config.clone();
        }
        let policy = &self.policy;
        let mut config = Config {
            lattice: policy.lattice,
            principals: policy.principals.clone(),
            clearance: policy.clearance.clone(),
            clearances: policy.clearances.clone(),
            fuel: FUEL,
            max_text: MAX_TEXT,
            // The call itself must not count as the request of the user.
            request: Some("".into()),
            input: LabelSpec::Exact(self.lattice.data_of(self.label)),
            counted: self.counted.clone(),
            ..Config::default()
        };
        // Whoever is shown results is the client's model: both clearances hold for it.
        if policy.output != LabelSpec::TOP {
            if !config.clearances.iter().any(|(n, _)| *n == self.model) {
                config.clearances.push((self.model.clone(), policy.clearance.clone()));
            }
            config.clearances.push((self.model.clone(), policy.output.clone()));
        }
        let config = Arc::new(config);
        self.config = Some(config.clone());
        config
    }

    fn turn(&mut self, code: &Arc<Code>, tool: &str, args: &Data, has_handles: bool) -> Decision {
        let Some(spec) = self.tools.iter().find(|t| *t.name == *tool) else {
            let message = format!("there is no tool `{}`", clip(tool));
            return Decision::Refused(self.refused(tool.into(), message, String::new(), None));
        };
        let name = spec.name.clone();
        let args = if has_handles { args.clone() } else { complete(spec, args) };
        let input = Data::Tag(name.clone(), Arc::new(args));
        let config = self.config();
        self.begin(Start { code: code.clone(), input, config, tool: name, has_handles })
    }

    fn begin(&mut self, start: Start) -> Decision {
        let machine = Machine::new(start.code.clone(), Some(start.input.clone()), start.config.clone());
        self.decided(machine, start)
    }

    /// Takes a turn again, with the label of its time. Calls that were made meanwhile count.
    fn begin_again(&mut self, start: Start) -> Decision {
        let config = Config { counted: self.counted.clone(), ..Config::clone(&start.config) };
        self.begin(Start { config: config.into(), ..start })
    }

    /// Continues a turn until it needs something that is not known here.
    fn decided(&mut self, mut machine: Machine, start: Start) -> Decision {
        loop {
            match run(&mut machine) {
                // The calls so far are those of the session, not of an earlier attempt: none is repeated.
                Output::Request(id, request) if request.counts == CallCount::Repeated => {
                    machine.no_further(id);
                }
                Output::Request(id, request) => match request.call {
                    Call::Tool { tool: set, .. } if machine.is_for_set(id) => {
                        if let Some(SetAnswer { result, label }) = self.sets.get(&set.name) {
                            machine.handle(id, Response::LabeledTool(result.clone(), label.clone()));
                            continue;
                        }
                        let turn = Turn { machine: Box::new(Waiting { machine, id }), start };
                        return Decision::Reads(SetRead { turn, set: set.name.clone() });
                    }
                    Call::Tool { .. } => {
                        let turn = Turn { machine: Box::new(Waiting { machine, id }), start };
                        return self.allowed(turn);
                    }
                    Call::Approve { args, labels, control, .. } => {
                        let is_decided = machine.lattice().clone().is_untrusted(control);
                        let show = |l: &Label| machine.lattice().show(*l);
                        let args = args.into_iter().zip(&labels[..]).map(|((n, d), l)| (n, d, show(l)));
                        let args = args.collect();
                        let turn = Turn { machine: Box::new(Waiting { machine, id }), start };
                        return Decision::Asks(Question { turn, args, is_decided });
                    }
                    Call::Recall { store, key } => {
                        let name = &store.keys[key as usize].name;
                        // A call of an earlier conversation keeps its handles.
                        let value = self.handles.iter().find(|h| h.name == *name).map(|h| h.value.clone());
                        machine.handle(id, Response::Recall(Ok(value)));
                    }
                    // INVARIANT: the program of a turn asks no model, writes no key and takes no sample.
                    _ => unreachable!("a request that the program of a turn doesn't make"),
                },
                Output::Done(Err(failure)) => {
                    self.raise(&machine, failure.label, &start.tool);
                    return Decision::Refused(self.failed(&machine, start.tool, &failure));
                }
                // INVARIANT: the program of a turn ends after a call of a tool, and every other request is
                // answered above.
                Output::Done(Ok(_)) | Output::Working | Output::Waiting => {
                    unreachable!("a turn that ends without a call")
                }
            }
        }
    }

    /// A call that nothing refuses is made if its result, whatever it is, may be shown to the model.
    fn allowed(&mut self, turn: Turn) -> Decision {
        if !self.everything_is_shown() && !self.may_keep(&turn.start) {
            let (mut machine, Start { tool, .. }) = turn.clone().handle(Response::Tool(Ok(Data::Null)));
            let label = match run(&mut machine) {
                Output::Done(Ok(_)) => machine.conversation().0,
                Output::Done(Err(failure)) => failure.label,
                _ => Label::BOTTOM,
            };
            let at = self.here(&machine, label);
            let at = self.lattice.join(self.label, at);
            if let Err(refused) = self.shown_at(at, &tool) {
                return Decision::Refused(*refused);
            }
        }
        self.counted = turn.machine.machine.counted_calls().to_vec();
        self.config = None;
        // What the assistant named before it had read anything else is its user's word.
        if self.label == Label::BOTTOM && self.has_request_set() {
            let Data::Tag(_, args) = &turn.start.input else { unreachable!("the input of a turn is a call") };
            self.name_values(scalars(args));
        }
        Decision::Allowed(Allowed { turn })
    }

    /// Returns whether a set of the policy is made of the request.
    fn has_request_set(&self) -> bool {
        let Ok(programs) = &self.programs else { return false };
        programs.asks_request
    }

    fn everything_is_shown(&self) -> bool {
        let all = [&self.policy.clearance, &self.policy.output];
        all.into_iter().all(|l| *l == LabelSpec::TOP) && self.policy.clearances.is_empty()
    }

    /// Refuses a conversation that the model may not be shown: the rule of `recv`.
    fn shown(&mut self, tool: &Name) -> Result<(), Box<Refused>> {
        if self.everything_is_shown() { Ok(()) } else { self.shown_at(self.label, tool) }
    }

    fn shown_at(&mut self, label: Label, tool: &Name) -> Result<(), Box<Refused>> {
        let Ok(programs) = &self.programs else { return Ok(()) };
        let code = programs.shown.clone();
        match self.showing(code, label) {
            (machine, Some(failure)) => Err(self.failed(&machine, tool.clone(), &failure).into()),
            _ => Ok(()),
        }
    }

    /// Runs a program that shows a model something of this label; gives why the model may not see it.
    fn showing(&mut self, code: Arc<Code>, label: Label) -> (Machine, Option<Failure>) {
        let config = self.config();
        let config =
            Config { input: LabelSpec::Exact(self.lattice.data_of(label)), ..Config::clone(&config) };
        let mut machine = Machine::new(code, Some(Data::Null), config);
        match run(&mut machine) {
            Output::Done(Err(failure)) => (machine, Some(failure)),
            _ => (machine, None),
        }
    }

    /// Refuses to show the client's model something of this label beside the conversation.
    pub(crate) fn may_open(&mut self, label: Label, tool: &Name) -> Result<(), Box<Refused>> {
        if self.everything_is_shown() { Ok(()) } else { self.shown_at(label, tool) }
    }

    /// Returns whether another model may be shown something of this label.
    pub(crate) fn may_model_see(&mut self, model: &Name, label: Label) -> bool {
        let at = Span { file: FileId(0), start: 0, end: 0 };
        self.everything_is_shown() || self.showing(program::shown(model, at).into(), label).1.is_none()
    }

    /// The model that questions about handles are put to.
    pub(crate) fn quarantine(&self) -> Option<&Name> {
        self.quarantine.as_ref()
    }

    /// The label of a machine in the lattice of the session.
    fn here(&mut self, machine: &Machine, label: Label) -> Label {
        let data = machine.lattice().data_of(label);
        self.lattice.label_of(&data).unwrap_or_else(|| self.lattice.top())
    }

    pub(crate) fn raise(&mut self, machine: &Machine, label: Label, by: &Name) {
        let label = self.here(machine, label);
        if self.lattice.flows(label, self.label) {
            return;
        }
        self.label = self.lattice.join(self.label, label);
        self.config = None;
        self.note_raise(by.clone());
    }

    fn note_raise(&mut self, by: Name) {
        if self.raised.len() < MAX_RAISED {
            self.raised.push(Raised { by, to: self.lattice.show(self.label) });
        }
    }

    fn failed(&self, machine: &Machine, tool: Name, failure: &Failure) -> Refused {
        let refusal = failure.refusal.as_deref();
        let remedy = match failure.code {
            ErrorCode::Type | ErrorCode::NoBranch => "Call it with the arguments of its schema".into(),
            ErrorCode::Budget => "Whoever keeps the policy decides how often it may be called".into(),
            _ if failure.unattended => "A person must approve it, and this client can't ask one".to_string(),
            ErrorCode::Tool => "Go on without it".into(),
            _ => {
                let of = |r: &Refusal| self.differs(machine, r);
                let differs = refusal.map_or((false, false), of);
                let named = self.table(&tool).map(|(name, _)| name);
                decide::remedy(&tool, refusal, differs, named)
            }
        };
        let broke = refusal.map(|r| decide::broke(machine, r));
        let message = match refusal.map(|r| &r.part) {
            Some(Part::Conversation) => format!("`{tool}`: {}", failure.message),
            _ => failure.message.clone(),
        };
        self.refused(tool, message, remedy, broke)
    }

    /// Which of integrity and secrecy a refused label breaks.
    fn differs(&self, machine: &Machine, refusal: &Refusal) -> (bool, bool) {
        let mut lattice = machine.lattice().clone();
        let integrity = lattice.reclassify(refusal.label, refusal.bound);
        let secrecy = lattice.reclassify(refusal.bound, refusal.label);
        (!lattice.flows(integrity, refusal.bound), !lattice.flows(secrecy, refusal.bound))
    }

    fn refused(
        &self,
        tool: Name,
        message: String,
        remedy: String,
        broke: Option<(String, String, String)>,
    ) -> Refused {
        let raised_by = self.raised.iter().map(|r| r.by.clone()).collect();
        Refused { tool, message, remedy, broke, label: self.label(), raised_by }
    }

    /// A refusal for a reason that no rule of the machine gives.
    pub fn refuse(&self, tool: &str, why: &str) -> Refused {
        self.refused(tool.into(), why.into(), String::new(), None)
    }

    /// Removes a tool.
    pub fn withdraw(&mut self, tool: &str) {
        if self.knows(tool) {
            self.tools.retain(|t| *t.name != *tool);
            self.build();
        }
    }

    /// Returns whether parts of the tool's results have labels of their own.
    pub fn has_parts(&self, tool: &str) -> bool {
        let Ok(programs) = &self.programs else { return false };
        programs.open.tools.iter().any(|t| *t.name == *tool && !t.parts.is_empty())
    }

    /// The tools that the policy names.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.policy.tool_names()
    }

    /// Returns whether the policy has a table for the tool.
    pub fn is_named(&self, tool: &str) -> bool {
        self.table(tool).is_some()
    }

    /// Keys that a call reads and writes of the memory of its server.
    pub fn memory(&self, tool: &str, args: &Data) -> MemoryUse {
        let says = self.named.memory(tool);
        let of =
            |key: Option<&policy::MemoryKey>| key.map(|key| key.keys(args).map_or(Keys::All, Keys::Some));
        MemoryUse {
            writes: of(says.and_then(|m| m.writes.as_ref())),
            reads: of(says.and_then(|m| m.reads.as_ref())),
        }
    }

    /// The label of what the session writes now with these arguments, to be kept; `None` if it is trusted and
    /// public.
    pub fn to_keep(&mut self, args: &Data) -> Option<KeptLabel> {
        let mut label = self.label;
        let mut raised_by: Vec<Name> = self.raised.iter().map(|r| r.by.clone()).collect();
        for name in self.handles_in(args) {
            let Some(handle) = self.handles.iter().find(|h| h.name == name) else { continue };
            raised_by.push(handle.by.clone());
            let of_handle = self.lattice.resolve_or_top(&handle.label);
            label = self.lattice.join(label, of_handle);
        }
        (label != Label::BOTTOM).then(|| KeptLabel {
            lattice: self.lattice.kind().name().into(),
            label: self.lattice.data_of(label),
            raised_by,
        })
    }

    /// The label that a result states, joined with those of what it was read from. A label of another lattice
    /// counts as the highest.
    pub fn joined(&mut self, stated: Option<LabelSpec>, kept: &[KeptLabel]) -> Option<LabelSpec> {
        if kept.is_empty() {
            return stated;
        }
        let mut all = stated.map_or(Label::BOTTOM, |s| self.lattice.resolve_or_top(&s));
        for kept in kept {
            let is_same = kept.lattice == self.lattice.kind().name();
            let label = self.lattice.label_of(&kept.label).filter(|_| is_same);
            let label = label.unwrap_or_else(|| self.lattice.top());
            all = self.lattice.join(all, label);
        }
        Some(LabelSpec::Exact(self.lattice.data_of(all)))
    }

    /// The calls that untrusted data decided, of tools that limit their number.
    pub(crate) fn counted(&self) -> &[(Name, u64)] {
        &self.counted
    }

    /// The label of the conversation as data.
    pub(crate) fn label_data(&self) -> Data {
        self.lattice.data_of(self.label)
    }

    /// The highest label that the policy gives results of the tool, if it says one.
    pub(crate) fn result_of(&self, tool: &str) -> Option<LabelSpec> {
        self.policy.result_of(tool, &[])
    }

    /// Takes over the sets that a copy has read.
    pub(crate) fn keep_sets(&mut self, copy: Session) {
        self.sets = copy.sets;
    }

    /// Takes over the label of a copy, which is at least as high.
    pub(crate) fn adopt(&mut self, copy: &Session) {
        self.label = copy.label;
        self.raised.clone_from(&copy.raised);
        self.lattice = copy.lattice.clone();
        self.config = None;
    }

    /// Raises the label to the highest there is.
    pub(crate) fn raise_to_top(&mut self, by: &str) {
        self.label = self.lattice.top();
        self.config = None;
        self.note_raise(by.into());
    }

    /// Joins the state of another session; false, without any change, if the label is none of this lattice.
    pub(crate) fn join_saved(&mut self, label: &Data, raised: Vec<Raised>, counted: &[(Name, u64)]) -> bool {
        let Some(label) = self.lattice.label_of(label) else { return false };
        self.label = self.lattice.join(self.label, label);
        for raised in raised {
            if self.raised.len() < MAX_RAISED && !self.raised.contains(&raised) {
                self.raised.push(raised);
            }
        }
        for (tool, count) in counted {
            match self.counted.iter_mut().find(|(name, _)| name == tool) {
                Some((_, known)) => *known = (*known).max(*count),
                None => self.counted.push((tool.clone(), *count)),
            }
        }
        self.config = None;
        true
    }

    /// A session of the same policy and tools that has read nothing.
    #[must_use]
    pub fn fresh(&self) -> Session {
        let aside = |handle: &Handle| Handle { is_aside: true, ..handle.clone() };
        Session {
            handles: self.handles.iter().map(aside).collect(),
            handle_count: 0,
            conversation: self.conversation + 1,
            label: Label::BOTTOM,
            raised: Vec::new(),
            counted: Vec::new(),
            sets: BTreeMap::new(),
            request: Vec::new(),
            is_request_new: true,
            config: None,
            ..self.clone()
        }
    }

    /// Lists of the tool's result of which items are left out, each with the floor.
    pub(crate) fn filter(&self, tool: &str) -> impl Iterator<Item = (&PartPath, &LabelSpec)> {
        self.named.filter(tool)
    }

    /// A copy whose label is that of another copy, joined with a floor.
    pub(crate) fn joined_label(&self, other: &Session, floor: &LabelSpec) -> Session {
        let mut out = other.clone();
        let floor = out.lattice.resolve(floor).unwrap_or_default();
        out.label = out.lattice.join(out.label, floor);
        out
    }

    /// Returns whether the label is at most that of another copy.
    pub(crate) fn is_within(&self, most: &Session) -> bool {
        let mut lattice = self.lattice.clone();
        let most = lattice.label_of(&most.label_data());
        most.is_some_and(|most| lattice.flows(self.label, most))
    }

    /// The label that a result states of itself, in the terms of this session.
    pub fn stated(&self, stated: &Stated) -> LabelSpec {
        self.lattice.in_terms(stated)
    }
}

/// The arguments of a call with a field for each parameter. One that is left out is `null`, so that nothing
/// else can be taken for it.
fn complete(spec: &ToolSpec, args: &Data) -> Data {
    match (&spec.params, args) {
        (Some(params), Data::Record(fields)) => {
            let missing = params.iter().filter(|p| args.field(&p.name).is_none());
            let missing = missing.map(|p| (p.name.clone(), Data::Null));
            Data::record(fields.iter().cloned().chain(missing))
        }
        (Some(params), _) => Data::record(params.iter().map(|p| (p.name.clone(), Data::Null))),
        (None, _) => Data::record([("input".into(), args.clone())]),
    }
}

/// The texts and numbers in a value.
fn scalars(data: &Data) -> Vec<Data> {
    let (mut found, mut rest) = (Vec::new(), vec![data]);
    while let Some(data) = rest.pop() {
        match data {
            Data::Str(_) | Data::Num(_) => found.push(data.clone()),
            Data::List(items) => rest.extend(items.iter()),
            Data::Record(fields) => rest.extend(fields.iter().map(|(_, value)| value)),
            Data::Pair(both) => rest.extend([&both.0, &both.1]),
            Data::Tag(_, value) => rest.push(value),
            Data::Null | Data::Bool(_) => {}
        }
    }
    found
}

/// Works until something is needed.
pub(crate) fn run(machine: &mut Machine) -> Output {
    loop {
        match machine.poll() {
            Output::Working => {}
            output => return output,
        }
    }
}
