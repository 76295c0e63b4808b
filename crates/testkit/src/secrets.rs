//! Noninterference, as a property of pairs of runs.
//!
//! Entry points: [`pair`] makes a program with two inputs, [`check`] runs it on both and says what an
//! observer learns that it must not. `docs/calculus.md` §3, §5; the theorems are those of
//! `proofs/Thm/Flow.v`.
//!
//! The inputs are labeled with one label; every observer to whom that does not flow must see the same of
//! both runs: result, error, conversation, and requests with their order. The world is the same function in
//! both runs, except where the label of an answer lies above the secret's: there the world itself is part of
//! the secret. In programs whose requests come in a determined order an answer depends also on the earlier
//! requests whose channels flow to its label, and on no others: that is all the theorem allows a world to
//! know. Whether an answer is late depends on those whose channels flow to the channel of the request, too.
//!
//! A model is an observer as well: what it is sent must be the same in both runs, unless its clearance admits
//! the secrets.
//!
//! Invariant: a run that goes on for ever, or ends of an error that the observer does not see, tells it no
//! more than what it had seen before (termination-insensitive).

use crate::drive::{self, InPlace, ParseWith, Shown};
use crate::generate::{
    Ast, Beside, Drawing, Op, Program, Rng, Script, Style, Ty, draw_parts, principals, random_program,
};
use crate::outcome::{Tree, TreeNode};
use crate::world::{self, Answer, Message, hash};
use core_ir::{
    Bound, Clearances, Data, Label, LabelSpec, Lattice, LatticeKind, ModelRoute, ModelRoutes, Name, Num,
    Pred, Prim,
};
use machine::{Call, Config, Deadlines, Machine, Output, Response};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// Steps of a run; more of them find no more.
const FUEL: u64 = 20_000;

/// The name of the run itself, as a branch.
const ROOT: u64 = 0;

/// The longest text of a run.
const MAX_TEXT: usize = 1 << 14;

/// Kinds of reclassification that a program may contain. With one of them noninterference holds for observers
/// that the other axis alone restricts (the insulated forms).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclassify {
    /// None: all observers.
    Nothing,
    /// `endorse`: observers to whom everything untrusted flows.
    Endorse,
    /// `declassify`: observers to whom everything secret flows.
    Declassify,
}

/// A program of some secrets, and two choices of them.
#[derive(Clone)]
pub struct Pair {
    /// The program, a function of a record of secrets.
    pub program: Program,
    /// The term under the binders of the secrets.
    body: Ast,
    /// The label of the secrets.
    pub secret: Data,
    /// The two records.
    pub inputs: [Data; 2],
    /// Reclassifications that the program may contain.
    pub reclassify: Reclassify,
    /// The models.
    pub models: Models,
}

/// The models of a pair: which of them may answer a call, and what each may see.
#[derive(Clone, Debug)]
pub struct Models {
    routes: ModelRoutes,
    clearances: Clearances<LabelSpec>,
    /// True if the driver compares conversations with clearances, and not the machine.
    driver_clears: bool,
}

/// Difference between two runs that an observer must not see.
#[derive(Clone, Debug)]
pub struct Leak {
    /// The label of the observer.
    pub observer: Data,
    /// Observation of one run, then of the other.
    pub seen: String,
}

/// Result of comparing a pair that does not leak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairSummary {
    /// Observers who must not tell the runs apart.
    pub observers: u32,
    /// Those of them who saw both runs end.
    pub both_ended: u32,
    /// Models whose clearance does not admit the secrets.
    pub models: u32,
    /// True if the runs differ for one who sees everything.
    pub differ: bool,
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = [&self.inputs[0], &self.inputs[1]].map(|d| d.to_json());
        writeln!(f, "secrets labeled {}: {a} or {b}; {:?}", self.secret.to_json(), self.reclassify)?;
        writeln!(f, "{:?}", self.models)?;
        write!(f, "{:?}", self.program)
    }
}

/// The types of the secrets, then those of what is public; all are variables of the program.
fn given() -> Vec<Ty> {
    let number = || Box::new(Ty::Num);
    let function = || Ty::Fun(Box::new((Ty::Num, Ty::Num)));
    let pair = || Ty::Pair(Box::new((Ty::Num, Ty::Num)));
    let asks = || Ty::Fun(Box::new((Ty::Str, Ty::Str)));
    vec![
        Ty::Num,
        Ty::Bool,
        Ty::Str,
        Ty::List(number()),
        Ty::Record(vec![Ty::Num]),
        Ty::Record(vec![Ty::Num]),
        pair(),
        pair(),
        function(),
        function(),
        Ty::List(number()),
        Ty::Tag,
        Ty::Tag,
        Ty::Num,
        // Fixpoints, guarded functions and oracles: what may be chosen among by a secret.
        function(),
        function(),
        function(),
        function(),
        asks(),
        asks(),
    ]
}

/// Number of secrets in [`given`].
const SECRETS: usize = 4;

/// `l: … >> λr. let x₀ = r.a in … let y₀ = 1 in … body`: the program itself sees only what is labeled.
fn closed(secret: &Data, body: &Ast) -> Ast {
    fn node<const N: usize>(op: Op, kids: [Ast; N]) -> Ast {
        Ast::new(op, kids)
    }
    let num = |n: i64| Ast::lit(Data::Num(Num::from(n)));
    let one = |op, kid| node(op, [kid]);
    let public = [
        one(Op::Record(vec![0]), num(1)),
        one(Op::Record(vec![0]), num(2)),
        node(Op::Pair, [num(1), num(2)]),
        node(Op::Pair, [num(3), num(0)]),
        one(Op::Lam, node(Op::Prim(Prim::Add), [Ast::var(0), num(1)])),
        one(Op::Lam, num(5)),
        node(Op::List, [num(1), num(2), num(3), num(4)]),
        one(Op::Tag(0), num(1)),
        one(Op::Tag(1), num(2)),
        num(1),
        one(Op::Fix(Bound::Finite(0)), num(1)),
        one(Op::Fix(Bound::Finite(2)), one(Op::Lam, one(Op::Lam, num(7)))),
        one(Op::Fix(Bound::Finite(2)), one(Op::Lam, node(Op::Let, [num(0), one(Op::Lam, num(8))]))),
        node(Op::Guard(Pred::True, 0), [one(Op::Lam, num(9))]),
        one(Op::Llm(0), Ast::lit("one")),
        one(Op::Llm(3), Ast::lit("two")),
    ];
    let secrets = (0..SECRETS as u8).map(|i| node(Op::Field(i), [Ast::var(i)]));
    let definitions: Vec<Ast> = secrets.chain(public).collect();
    let body = definitions.into_iter().rev().fold(body.clone(), |body, d| node(Op::Let, [d, body]));
    let labeled = one(Op::Lam, node(Op::Relabel, [Ast::lit(secret.clone()), Ast::var(0)]));
    node(Op::Compose, [labeled, one(Op::Lam, body)])
}

/// The pair of a number.
pub fn pair(seed: u64) -> Pair {
    pair_like(seed, |_| {})
}

/// The pair of a number, with programs of another style.
pub fn pair_like(seed: u64, change: impl FnOnce(&mut Style)) -> Pair {
    let mut rng = Rng::new(seed);
    let reclassify = match rng.below(8) {
        0 => Reclassify::Endorse,
        1 => Reclassify::Declassify,
        _ => Reclassify::Nothing,
    };
    let parallel = rng.below(4);
    let mut style = Style {
        size: [20, 40, 40, 70][rng.below(4)],
        wild: [1, 1, 2, 8][rng.below(4)],
        parallel: parallel < 2,
        in_order: parallel == 0,
        endorse: reclassify == Reclassify::Endorse,
        declassify: reclassify == Reclassify::Declassify,
        approve: reclassify == Reclassify::Endorse,
        among: reclassify == Reclassify::Endorse,
        messages: true,
        // In some, tools label parts of what they return.
        parts: seed % 4 == 3,
        given: given(),
        deciding: SECRETS,
        ..Style::default()
    };
    change(&mut style);
    let mut program = random_program(&mut rng, &style);
    let labels = labels(program.lattice);
    let mut lattice = Lattice::new(program.lattice);
    // A label that somebody must not see.
    let secret = loop {
        let Some((_, secret)) = rng.pick(&labels) else { unreachable!("there are labels") };
        let l = label(&mut lattice, secret);
        if labels.iter().any(|z| blind(&mut lattice, reclassify, l, z).is_some()) {
            break secret.clone();
        }
    };
    let mut input = || {
        let n = rng.below(4) as i64;
        let text = ["", "a", "yes", "no", "12"][rng.below(5)];
        let list = (0..rng.below(3)).map(|i| Data::Num(Num::from(i as i64))).collect::<Vec<_>>();
        Data::record([
            ("a".into(), Data::Num(Num::from(n))),
            ("b".into(), Data::Bool(rng.chance(50))),
            ("c".into(), Data::str(text)),
            ("d".into(), Data::list(list)),
        ])
    };
    let inputs = [input(), input()];
    let body = std::mem::replace(&mut program.ast, Ast::lit(Data::Null));
    program.ast = closed(&secret, &body);
    // Numbers of their own, so that the rest of a pair does not depend on them.
    let models = models(&mut Rng::new(seed.rotate_left(48)), &mut program, &labels);
    Pair { program, body, secret, inputs, reclassify, models }
}

/// Names of models; the last two are one model.
const MODELS: [&str; 4] = ["large", "small", "own", "openai/own"];

/// Models with clearances, which the program's calls name or get by default and as a fallback.
fn models(rng: &mut Rng, program: &mut Program, labels: &[Data]) -> Models {
    let clearances = Clearances { default: program.clearance.clone(), named: Vec::new() };
    let mut models = Models { routes: ModelRoutes::default(), clearances, driver_clears: rng.chance(50) };
    if rng.chance(50) {
        return models;
    }
    let name = |rng: &mut Rng| Name::from(MODELS[rng.below(MODELS.len())]);
    for listed in MODELS {
        if rng.chance(60) {
            let clearance = match rng.pick(labels) {
                Some((_, label)) if rng.chance(70) => LabelSpec::Exact(label.clone()),
                _ => LabelSpec::TOP,
            };
            models.clearances.named.push((listed.into(), clearance));
        }
        if rng.chance(30) {
            // An entry says the other names of its model itself.
            let aliases = if listed == "openai/own" { vec!["own".into()] } else { Vec::new() };
            let fallback = (0..rng.below(3)).map(|_| name(rng)).collect();
            models.routes.entries.insert(listed.into(), ModelRoute { aliases, fallback });
        }
    }
    models.routes.default = (0..rng.below(3)).map(|_| name(rng)).collect();
    models.routes.forced = rng.chance(10).then(|| name(rng));
    for params in &mut program.models {
        params.model = rng.chance(60).then(|| name(rng));
        if rng.chance(20) {
            params.extra.push(("fallback".into(), Data::str(&*name(rng))));
        }
    }
    models
}

/// Every label that programs of a lattice speak of.
fn labels(kind: LatticeKind) -> Vec<Data> {
    let subsets = |names: &[&'static str]| -> Vec<Data> {
        (0..1usize << names.len())
            .map(|set| {
                Data::list((0..names.len()).filter(|i| set >> i & 1 == 1).map(|i| Data::str(names[i])))
            })
            .collect()
    };
    match kind.words() {
        words @ [_, ..] => {
            // Two lists of words may say the same.
            let mut lattice = Lattice::new(kind);
            let mut met = Vec::new();
            let mut all = subsets(words);
            all.retain(|data| {
                let label = label(&mut lattice, data);
                !met.contains(&label) && {
                    met.push(label);
                    true
                }
            });
            all
        }
        [] => {
            let or_all = |mut names: Vec<Data>| {
                names.push(Data::str("*"));
                names
            };
            let (sources, readers) = (or_all(subsets(&["web", "mail"])), or_all(subsets(&["ann", "bob"])));
            let both = |s: &Data, r: &Data| {
                Data::record([("sources".into(), s.clone()), ("readers".into(), r.clone())])
            };
            sources.iter().flat_map(|s| readers.iter().map(move |r| both(s, r))).collect()
        }
    }
}

fn label(lattice: &mut Lattice, data: &Data) -> Label {
    // INVARIANT: called with labels of `labels`, and of runs in the same lattice.
    lattice.label_of(data).expect("a label of the run's lattice")
}

/// The label of an observer who must not see what is labeled `secret`, if the property speaks of it.
fn blind(lattice: &mut Lattice, reclassify: Reclassify, secret: Label, observer: &Data) -> Option<Label> {
    let z = label(lattice, observer);
    let top = lattice.top();
    let insulated = match reclassify {
        Reclassify::Nothing => true,
        Reclassify::Endorse => lattice.reclassify(top, z) == z,
        Reclassify::Declassify => lattice.reclassify(z, top) == z,
    };
    (insulated && !lattice.flows(secret, z)).then_some(z)
}

/// Request of a run.
struct ObservedRequest {
    /// All that is visible to whoever sees the channel.
    text: String,
    channel: Label,
    /// By which branch: its name, which depends on nothing that happens above it.
    strand: u64,
    /// The models that were sent it, each under all its names.
    sent: Vec<Name>,
}

/// Observable parts of a run.
struct ObservedRun {
    end: End,
    conversation: (Label, Vec<Message>),
    asked: Vec<ObservedRequest>,
}

enum End {
    Value(Tree),
    Error { code: &'static str, message: String, label: Label, strand: u64 },
    Never,
}

/// The labels of the two runs in one lattice. A run numbers labels as it meets them.
struct Common {
    lattice: Lattice,
    known: HashMap<Label, Label>,
}

impl Common {
    fn of(&mut self, lattice: &Lattice, l: Label) -> Label {
        if lattice.kind() != LatticeKind::SourcesReaders {
            return l;
        }
        if let Some(known) = self.known.get(&l) {
            return *known;
        }
        let here = label(&mut self.lattice, &lattice.data_of(l));
        self.known.insert(l, here);
        here
    }
}

impl Pair {
    /// The configuration of the runs. The program, which is this pair's, reads what models reply as code.
    pub fn config(&self, program: &Arc<Program>) -> Config {
        let parser = program.clone();
        Config {
            principals: principals(),
            lattice: program.lattice,
            fuel: FUEL,
            max_text: MAX_TEXT,
            max_frames: FUEL as usize,
            parser: Some(Arc::new(ParseWith(move |text: &str| parser.parse(text)))),
            clearance: program.clearance.clone(),
            clearances: self.models.clearances.named.clone(),
            routes: self.models.routes.clone(),
            explain_flow: false,
            note_branches: false,
            generated_endorse: program.generated_endorse,
            answer: program.answer.clone(),
            request: None,
            input: LabelSpec::BOTTOM,
            counted: Vec::new(),
            strand: 0,
        }
    }

    /// The labels of the observers who must not tell the runs apart.
    pub fn observers(&self) -> Vec<Data> {
        let mut lattice = Lattice::new(self.program.lattice);
        let secret = label(&mut lattice, &self.secret);
        let mut all = labels(self.program.lattice);
        all.retain(|z| blind(&mut lattice, self.reclassify, secret, z).is_some());
        all
    }
}

/// Runs a pair's program on one of its inputs.
fn run(pair: &Pair, program: &Arc<Program>, which: usize, lattice: &mut Lattice) -> ObservedRun {
    let code = pair.program.code();
    let config = pair.config(program);
    let secret = label(lattice, &pair.secret);
    let mut common = Common { lattice: lattice.clone(), known: HashMap::new() };
    let mut world = Script::new(program);
    // What an earlier run kept; under a secret's label it is part of the secret.
    for store in &program.stores {
        for key in &store.keys {
            let at = common.lattice.resolve(&key.label).unwrap_or_default();
            if common.lattice.flows(secret, at) {
                world.begin(store, key, which as u64);
            } else if program.seed.is_multiple_of(3) {
                world.begin(store, key, 2);
            }
        }
    }
    let ordered = !program.is_parallel();
    let mut machine = Machine::new(code, Some(pair.inputs[which].clone()), config);
    if pair.models.driver_clears {
        machine.leave_clearance_to_driver();
    }
    let (sent, asked) = (Vec::new(), Vec::new());
    let around = ObservedWorld { program, secret, which, ordered, common, world, sent, asked };
    let mut shown = InPlace::new(around);
    let result = loop {
        match machine.poll_with(&mut shown) {
            Output::Request(id, request) => {
                let response = match shown.left.take() {
                    Some(left) => left,
                    None => {
                        let number = match &request.call {
                            Call::Sample { draw, .. } => Some(*draw),
                            _ => request.call_id,
                        };
                        let (channel, limits) = (request.channel, &request.deadlines);
                        let named = (id.strand, number);
                        match pair.models.sent(&machine, &request) {
                            Ok(sent) => {
                                shown.to.sent = sent;
                                shown.to.answer_to(&request.call, channel, limits, named, machine.lattice())
                            }
                            Err(uncleared) => uncleared,
                        }
                    }
                };
                machine.handle(id, response);
            }
            Output::Working => {}
            Output::Waiting => unreachable!("every request was answered"),
            Output::Done(result) => break result,
        }
    };
    let ObservedWorld { mut common, asked, .. } = shown.to;
    let end = match result {
        Ok(v) => End::Value(drive::tree(machine.reify(&v))),
        Err(e) if e.code.is_final() => End::Never,
        Err(e) => {
            let label = common.of(machine.lattice(), e.label);
            End::Error { code: e.code.as_str(), label, strand: e.strand, message: e.message }
        }
    };
    let (l, messages) = machine.conversation();
    let conversation = (common.of(machine.lattice(), l), messages.iter().map(drive::message).collect());
    *lattice = common.lattice;
    ObservedRun { end, conversation, asked }
}

impl Models {
    /// The models that are sent a request, in their order, each under all its names. The last one answers,
    /// those before it fail.
    ///
    /// # Errors
    /// The response to a conversation that none of them may see.
    fn sent(&self, machine: &Machine, request: &machine::Request) -> Result<Vec<Name>, Response> {
        let Call::Model { params, attempt, .. } = &request.call else { return Ok(Vec::new()) };
        let all = self.routes.candidates(params.as_deref());
        let mut may = all.clone();
        may.retain(|model| machine.may_see(model, request.channel));
        if may.is_empty() {
            assert!(self.driver_clears, "a request that no model may see");
            return Err(Response::Uncleared(all));
        }
        may.truncate(1 + *attempt as usize % 2);
        Ok(may.iter().flat_map(|model| model.names().cloned()).collect())
    }

    /// Clearance of each model, by its name.
    fn by_name(&self) -> impl Iterator<Item = (Name, &LabelSpec)> {
        let Clearances { default, named } = &self.clearances;
        let listed = |name: &str| named.iter().any(|(n, _)| **n == *name);
        // These have no other name that may be listed.
        let others = ["large", "small"].into_iter().filter(move |name| !listed(name));
        let others = others.map(move |name| (Name::from(name), default));
        named.iter().map(|(name, clearance)| (name.clone(), clearance)).chain(others)
    }
}

/// The world of one of the two runs.
struct ObservedWorld<'p> {
    program: &'p Program,
    secret: Label,
    which: usize,
    /// True if its requests come in a determined order.
    ordered: bool,
    common: Common,
    world: Script,
    /// The models that are sent the next request.
    sent: Vec<Name>,
    asked: Vec<ObservedRequest>,
}

impl Shown for ObservedWorld<'_> {
    /// Half of the requests are answered where they stand.
    fn answer(&mut self, asked: &machine::Asked<'_>, call: &Call) -> Option<Response> {
        let id = asked.id();
        let number = match call {
            Call::Sample { draw, .. } => Some(*draw),
            Call::Tool { tool, .. } => asked.call_id(tool),
            _ => None,
        };
        let named = (id.strand, number);
        (self.program.seed ^ u64::from(id.number))
            .is_multiple_of(2)
            .then(|| self.answer_to(call, asked.channel, asked.deadlines(), named, asked.lattice))
    }
}

impl ObservedWorld<'_> {
    fn answer_to(
        &mut self,
        of: &Call,
        channel: Label,
        deadlines: &Deadlines,
        (strand, number): (u64, Option<u64>),
        lattice: &Lattice,
    ) -> Response {
        let call = drive::call(of);
        let channel = self.common.of(lattice, channel);
        let mut text = format!("{call:?}");
        // Which draw it is may be seen, and the idempotency key.
        if let Some(number) = number {
            text += &format!(" {number}");
        }
        let sent = std::mem::take(&mut self.sent);
        for model in &sent {
            text += &format!(" to {model}");
        }
        let limits: Vec<_> = deadlines.iter().collect();
        for limit in &limits {
            text += &format!(" within {} of {}", limit.seconds, limit.scope);
        }
        // What a call returns doesn't depend on arguments that only complete it.
        let mut told = call.clone();
        if let (Call::Tool { tool, .. }, world::Call::Tool { args, .. }) = (of, &mut told) {
            let spared = args.iter_mut().filter(|(name, _)| tool.completes.contains(name));
            spared.for_each(|(_, data)| *data = Data::Null);
        }
        let told_text = format!("{told:?}{}", &text[format!("{call:?}").len()..]);
        let ObservedWorld { program, secret, which, ordered, common, world, asked, .. } = self;
        let answered_at = match of {
            Call::Tool { tool, .. } | Call::Approve { tool, .. } => {
                let l = common.lattice.resolve(&tool.label);
                l.unwrap_or_else(|| common.lattice.top())
            }
            _ => channel,
        };
        let kept_at = match of {
            Call::Recall { store, key } => {
                let key = &store.keys[*key as usize];
                let at = common.lattice.resolve(&key.label).unwrap_or_default();
                Some((format!("{} {}", store.name, key.name), at))
            }
            _ => None,
        };
        // What those know of a question who know no more than flows to all of these labels.
        let known = |asks: &str, to: &[Label]| {
            let flows = |l| to.iter().all(|to| common.lattice.flows(l, *to));
            let mut key = hash(program.seed, asks);
            if *ordered {
                key = asked.iter().filter(|a| flows(a.channel)).fold(key, |key, a| hash(key, &a.text));
            }
            if flows(*secret) { hash(key, if *which == 0 { "one" } else { "other" }) } else { key }
        };
        // Whether a store has given something up is known to those who know what may be kept under the key's
        // label, however hidden it is that somebody asks: nothing of the question itself decides it.
        let forgotten = kept_at
            .is_some_and(|(name, at)| *ordered && Rng::new(known(&name, &[at])).chance(Script::FORGETS));
        let mut late = Rng::new(known(&text, &[channel, answered_at]));
        let answer = if !limits.is_empty() && late.chance(20) {
            Answer::Late(late.below(limits.len()) as u32)
        } else if forgotten {
            Answer::Found(None)
        } else {
            // A store holds what it was given.
            let to = match of {
                // Who sees the call sees what was decided.
                Call::Approve { .. } => known(&text, &[channel, answered_at]),
                _ => known(&told_text, &[answered_at]),
            };
            let answer = world.respond(&told, &mut Rng::new(to));
            match of {
                Call::Tool { tool, .. } if !tool.parts.is_empty() => {
                    let known = |lattice: &Lattice, asks: &str, to: Label| {
                        known_to(lattice, (*ordered, *which, *secret), program.seed, asked, asks, to)
                    };
                    by_parts(tool, answered_at, answer, &told_text, &common.lattice, &known)
                }
                _ => answer,
            }
        };
        asked.push(ObservedRequest { text, channel, strand, sent });
        drive::response(&call, answer)
    }
}

/// Knowledge of those who see no more of a question than flows to a label, as in
/// [`ObservedWorld::answer_to`].
fn known_to(
    lattice: &Lattice,
    (ordered, which, secret): (bool, usize, Label),
    seed: u64,
    asked: &[ObservedRequest],
    asks: &str,
    to: Label,
) -> u64 {
    let mut key = hash(seed, asks);
    if ordered {
        key = asked.iter().filter(|a| lattice.flows(a.channel, to)).fold(key, |key, a| hash(key, &a.text));
    }
    if lattice.flows(secret, to) { hash(key, if which == 0 { "one" } else { "other" }) } else { key }
}

/// The answer of a tool that labels parts of its result: what is at a part depends on what is known at its
/// label. Whether it fails is known at `label`, why it does is known where all parts are.
fn by_parts(
    tool: &core_ir::ToolDecl,
    label: Label,
    answer: Answer,
    text: &str,
    lattice: &Lattice,
    known: &dyn Fn(&Lattice, &str, Label) -> u64,
) -> Answer {
    let mut lattice = lattice.clone();
    let drawn = |lattice: Lattice, label| {
        let mut drawing = ByLabel { lattice, text, known };
        let root = drawing.label(&label, &tool.parts.root(), None, &[]);
        draw_parts(&mut drawing, &tool.parts.root(), &tool.result, "", root).0
    };
    match answer {
        Answer::Data(data) if tool.result.check(&data).is_ok() => Answer::Data(drawn(lattice, label)),
        Answer::Labeled(_, own) => {
            let said = lattice.resolve(&own).unwrap_or_else(|| lattice.top());
            let label = lattice.join(label, said);
            Answer::Labeled(drawn(lattice, label), own)
        }
        Answer::Failed(why) => {
            let most = tool.parts.iter().fold(label, |most, rule| {
                let stated = if rule.is_stated() { lattice.resolve(&rule.label) } else { None };
                let stated = stated.unwrap_or_else(|| lattice.top());
                lattice.join(most, stated)
            });
            Answer::Failed(format!("{why} {}", known(&lattice, text, most) % 4))
        }
        other => other,
    }
}

/// Results whose parts are drawn from what is known at their labels.
struct ByLabel<'k> {
    lattice: Lattice,
    text: &'k str,
    known: &'k dyn Fn(&Lattice, &str, Label) -> u64,
}

impl Drawing for ByLabel<'_> {
    type Label = Label;

    fn rng(&mut self, path: &str, label: &Label) -> Rng {
        Rng::new((self.known)(&self.lattice, &format!("{} at {path}", self.text), *label))
    }

    fn label(
        &mut self,
        container: &Label,
        rules: &core_ir::PartRules<'_>,
        own: Option<&Name>,
        beside: &Beside<Label>,
    ) -> Label {
        let Some(rule) = rules.rule() else { return *container };
        let stated = self.lattice.resolve(&rule.label).unwrap_or_else(|| self.lattice.top());
        let mut label = self.lattice.join(*container, stated);
        if rule.is_stated() || own.is_some_and(|own| rule.excepts(own)) {
            return label;
        }
        let names = rule.source.iter().map(|n| (n, true)).chain(rule.readers.iter().map(|n| (n, false)));
        let (known, mut readers) = (principals(), Vec::new());
        for (name, is_source) in names {
            let found = beside.iter().find_map(|(n, found)| {
                found.as_ref().filter(|_| *name == core_ir::LabelName::Field(n.clone()))
            });
            let said = match found {
                None => self.lattice.top(),
                Some((data, deep)) => {
                    label = self.lattice.join(label, *deep);
                    let said = known.source(data);
                    readers.extend(if is_source { Vec::new() } else { known.readers(data) });
                    let said = if is_source { self.lattice.in_terms(&said) } else { LabelSpec::BOTTOM };
                    self.lattice.resolve(&said).unwrap_or_else(|| self.lattice.top())
                }
            };
            label = self.lattice.join(label, said);
        }
        if !rule.readers.is_empty() {
            let said = core_ir::Stated { sources: Some(Vec::new()), readers: Some(readers) };
            let said = self.lattice.in_terms(&said);
            let said = self.lattice.resolve(&said).unwrap_or_else(|| self.lattice.top());
            label = self.lattice.join(label, said);
        }
        label
    }

    fn join(&mut self, a: &Label, b: &Label) -> Label {
        self.lattice.join(*a, *b)
    }
}

impl ObservedRun {
    /// Returns true if the run may have ended with an error that a `par` does not delay: the other branches
    /// stop at an arbitrary point (§10).
    fn is_cut_off(&self) -> bool {
        matches!(self.end, End::Error { label, .. } if label != Label::BOTTOM)
    }
}

/// The end of a run, as far as an observer's view of the branches' requests depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// True if the observer cannot tell it from a run that goes on.
    pub silent: bool,
    /// The branch whose error may have ended the run at once, without waiting for the others.
    pub cut_off_by: Option<u64>,
}

/// Returns a branch whose requests tell two runs apart: the requests that an observer sees, by branch.
///
/// A run that ends silently may do so anywhere, but until then the observer has seen the same of each branch.
/// How far the other branches got when an error cut them off is a matter of time (`docs/calculus.md`, `par`),
/// and nothing else is: what is around them had waited for them, and the branch that failed in both runs had
/// asked the same.
pub fn differing_branch<T: PartialEq>(seen: [&BTreeMap<u64, Vec<T>>; 2], ends: [Ending; 2]) -> Option<u64> {
    let same_branch = ends[0].cut_off_by == ends[1].cut_off_by;
    let mut strands = seen[0].keys().chain(seen[1].keys());
    let differs = |strand: &&u64| {
        let [x, y] = seen.map(|s| s.get(*strand).map_or(&[][..], Vec::as_slice));
        let stopped = |end: Ending| {
            let failed = |by: u64| same_branch && by == **strand;
            end.silent || **strand != ROOT && end.cut_off_by.is_some_and(|by| !failed(by))
        };
        !(x == y || stopped(ends[0]) && y.starts_with(x) || stopped(ends[1]) && x.starts_with(y))
    };
    strands.find(differs).copied()
}

/// Someone who looks at two runs.
struct Observer<'a> {
    lattice: &'a mut Lattice,
    at: Label,
}

impl Observer<'_> {
    fn sees(&self, l: Label) -> bool {
        self.lattice.flows(l, self.at)
    }

    fn sees_data(&mut self, l: &Data) -> bool {
        let l = label(self.lattice, l);
        self.sees(l)
    }

    /// Returns the requests that the observer sees: in their order, or, where the order of branches varies,
    /// in the order of each branch. With a name, the requests sent to that model.
    fn trace<'r>(
        &self,
        run: &'r ObservedRun,
        ordered: bool,
        model: Option<&Name>,
    ) -> BTreeMap<u64, Vec<(&'r str, Label)>> {
        let mut seen: BTreeMap<u64, Vec<_>> = BTreeMap::new();
        let shown = |a: &&ObservedRequest| match model {
            None => self.sees(a.channel),
            Some(name) => a.sent.contains(name),
        };
        for a in run.asked.iter().filter(shown) {
            seen.entry(if ordered { ROOT } else { a.strand }).or_default().push((&*a.text, a.channel));
        }
        seen
    }

    fn silent(&self, run: &ObservedRun) -> bool {
        match &run.end {
            End::Value(_) => false,
            End::Error { label, .. } => !self.sees(*label),
            End::Never => true,
        }
    }

    fn same(&mut self, a: &Tree, b: &Tree) -> bool {
        match (self.sees_data(&a.label), self.sees_data(&b.label)) {
            (false, false) => true,
            (true, true) if a.label == b.label => match (&a.node, &b.node) {
                (TreeNode::Scalar(a), TreeNode::Scalar(b)) => a == b,
                (TreeNode::List(a), TreeNode::List(b)) => {
                    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same(a, b))
                }
                (TreeNode::Record(a), TreeNode::Record(b)) => {
                    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && self.same(&a.1, &b.1))
                }
                (TreeNode::Args(f, a), TreeNode::Args(g, b)) => {
                    f == g
                        && a.len() == b.len()
                        && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && self.same(&a.1, &b.1))
                }
                (TreeNode::Pair(a), TreeNode::Pair(b)) => self.same(&a.0, &b.0) && self.same(&a.1, &b.1),
                (TreeNode::Tag(m, a), TreeNode::Tag(n, b)) => m == n && self.same(a, b),
                (TreeNode::Function(_), TreeNode::Function(_)) => true,
                _ => false,
            },
            _ => false,
        }
    }

    /// Describes the difference between the requests of two runs, or those sent to the named model.
    fn asked_apart(
        &self,
        one: &ObservedRun,
        other: &ObservedRun,
        ordered: bool,
        model: Option<&Name>,
    ) -> Option<String> {
        let (a, b) = (self.trace(one, ordered, model), self.trace(other, ordered, model));
        let ends = [one, other].map(|run| Ending {
            silent: self.silent(run),
            cut_off_by: match run.end {
                End::Error { strand, .. } if !ordered && run.is_cut_off() => Some(strand),
                _ => None,
            },
        });
        let strand = differing_branch([&a, &b], ends)?;
        let [x, y] = [&a, &b].map(|seen| seen.get(&strand).map_or(&[][..], Vec::as_slice));
        Some(format!("asked {x:?}, or {y:?}"))
    }

    /// Describes the difference between two runs, if there is one.
    fn tells_apart(&mut self, one: &ObservedRun, other: &ObservedRun, ordered: bool) -> Option<String> {
        if let Some(difference) = self.asked_apart(one, other, ordered, None) {
            return Some(difference);
        }
        let silent = (self.silent(one), self.silent(other));
        if silent != (false, false) {
            return None;
        }
        match (&one.end, &other.end) {
            (End::Value(x), End::Value(y)) if self.same(x, y) => {}
            // Which of the errors of several branches ends the run is a matter of time, too, if it ends at
            // once.
            (End::Error { strand: s, .. }, End::Error { strand: t, .. })
                if s != t && !ordered && one.is_cut_off() && other.is_cut_off() => {}
            (
                End::Error { code: c, message: m, label: l, .. },
                End::Error { code: d, message: n, label: k, .. },
            ) if c == d && m == n && l == k => {}
            (x, y) => return Some(format!("{x}, or {y}")),
        }
        let (c, d) = (&one.conversation, &other.conversation);
        ((self.sees(c.0) || self.sees(d.0)) && c != d).then(|| format!("said {c:?}, or {d:?}"))
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Value(tree) => write!(f, "{tree}"),
            End::Error { code, message, .. } => write!(f, "error {code}: {message}"),
            End::Never => f.write_str("no end"),
        }
    }
}

/// Runs a pair and looks at it as every observer to whom the secrets' label does not flow.
///
/// # Errors
/// An observer that can tell the runs apart.
pub fn check(pair: &Pair) -> Result<PairSummary, Leak> {
    let mut lattice = Lattice::new(pair.program.lattice);
    let program = Arc::new(pair.program.clone());
    let [one, other] = [0, 1].map(|which| run(pair, &program, which, &mut lattice));
    let ordered = !pair.program.is_parallel();
    let secret = label(&mut lattice, &pair.secret);
    let mut seen = PairSummary::default();
    for z in pair.observers() {
        let at = label(&mut lattice, &z);
        let mut observer = Observer { lattice: &mut lattice, at };
        if let Some(difference) = observer.tells_apart(&one, &other, ordered) {
            return Err(Leak { observer: z, seen: difference });
        }
        seen.observers += 1;
        seen.both_ended += u32::from(!observer.silent(&one) && !observer.silent(&other));
    }
    for (name, clearance) in pair.models.by_name() {
        // INVARIANT: clearances are labels of the program's lattice.
        let may_see = lattice.resolve(clearance).expect("a label of the lattice");
        let data = lattice.data_of(may_see);
        let Some(at) = blind(&mut lattice, pair.reclassify, secret, &data) else { continue };
        let observer = Observer { lattice: &mut lattice, at };
        if let Some(difference) = observer.asked_apart(&one, &other, ordered, Some(&name)) {
            return Err(Leak { observer: Data::str(&*name), seen: difference });
        }
        seen.models += 1;
    }
    let at = lattice.top();
    seen.differ = Observer { lattice: &mut lattice, at }.tells_apart(&one, &other, ordered).is_some();
    Ok(seen)
}

/// The smallest pair found by cutting away from one that leaks, with its leak. At most `left` candidates
/// are tried.
pub fn shrink(mut pair: Pair, mut leak: Leak, mut left: u64) -> (Pair, Leak) {
    let mut candidate = 0;
    while left > 0 {
        left -= 1;
        let small = pair.program.with(pair.body.clone());
        let Some(smaller) = small.smaller(candidate) else { break };
        candidate += 1;
        let body = smaller.ast.clone();
        let program = smaller.with(closed(&pair.secret, &body));
        let next = Pair { program, body, ..pair.clone() };
        if let Err(found) = check(&next) {
            (pair, leak, candidate) = (next, found, 0);
        }
    }
    (pair, leak)
}
