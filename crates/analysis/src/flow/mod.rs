//! Information flow before a run: which calls are allowed whatever happens, which never, and what the
//! others depend on.
//!
//! Entry points: [`analyze`] for what is known of each sink, [`findings`] for what is worth a diagnostic.
//! The term is evaluated over abstract labels; every label is known from below and from above, and what is
//! above names the places that it comes from.
//!
//! Invariant: a site that is called [`Verdict::Always`] is never refused at run time, one that is called
//! [`Verdict::Never`] never carried out, and a sink that no site names never reached, as long as the input is
//! public and trusted, and no tool states a label of its own when it answers (as MCP servers may): such
//! labels are known only then. What the analysis cannot tell [`Verdict::Depends`].
//! Invariant: nothing is decided here that the machine does not check again.
//!
//! Source: `docs/calculus.md` §8; the rules are those of §3, §5, §6 and §10.

pub mod codes;
mod eval;
mod report;
mod rules;
mod sinks;
mod taint;
mod terms;
mod value;

pub use report::{
    certain_refusal, findings, of_unknown, policy_warnings, refusal, site_json, to_json, to_text,
};
pub use rules::{IdleReason, IdleRule, RuleKey, idle_rules};
pub use taint::{Cause, Origin};

use core_ir::{
    AmongSource, AnswerSink, Approve, Code, Data, LabelSpec, Lattice, LatticeKind, ModelRoutes, Name, Plain,
    Principals, ToolDecl, ToolParam, Type,
};
use diagnostics::Span;
use eval::{Analysis, SiteState};
use std::collections::HashMap;
use std::sync::Arc;
use taint::{Taint, Taints};

/// Settings of a run that the analysis assumes.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The lattice of the run.
    pub lattice: LatticeKind,
    /// Names that its labels may have.
    pub principals: Principals,
    /// Tools of which a policy says what they do, whatever else is known of them.
    pub known: Vec<Name>,
    /// Clearance of models with no listed name: the data that they may see. `None` allows everything.
    pub clearance: Option<LabelSpec>,
    /// Clearances of the models with these names.
    pub clearances: Vec<(Name, LabelSpec)>,
    /// Which models may answer which calls. Without settings the default model is not known, and has the
    /// clearance of models that are not listed.
    pub routes: ModelRoutes,
    /// True if the value of the code is applied to an input.
    pub applied: bool,
    /// Bound and form of the answer.
    pub answer: AnswerSink,
    /// True if a part that could not be compiled gives some value that is public and trusted. Without it the
    /// run ends there, as runs do, and what follows is not reached.
    pub passes_unknown: bool,
}

/// Place where a flow can be refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sink {
    /// A call of a tool.
    Tool(Name),
    /// A question to a model; the empty name is the run's default model.
    Model(Name),
    /// Writing a key.
    Key(Name),
    /// Adding to the conversation.
    Send,
    /// Emptying the conversation.
    Clear,
    /// The answer of the run.
    Answer,
}

impl Sink {
    /// `the tool `send``, and so on.
    pub fn describe(&self) -> String {
        match self {
            Sink::Tool(name) => format!("the tool `{name}`"),
            Sink::Model(name) if name.is_empty() => "the model".into(),
            Sink::Model(name) => format!("the model `{name}`"),
            Sink::Key(name) => format!("the key `{name}`"),
            Sink::Send => "`send`".into(),
            Sink::Clear => "`clear`".into(),
            Sink::Answer => "the answer".into(),
        }
    }

    /// `tool`, `model`, `key`, `send`, `clear` or `answer`.
    pub fn kind(&self) -> &'static str {
        match self {
            Sink::Tool(_) => "tool",
            Sink::Model(_) => "model",
            Sink::Key(_) => "key",
            Sink::Send => "send",
            Sink::Clear => "clear",
            Sink::Answer => "answer",
        }
    }

    /// The name of the tool, model or key.
    pub fn name(&self) -> Option<&str> {
        match self {
            Sink::Tool(n) | Sink::Model(n) | Sink::Key(n) => Some(n),
            Sink::Send | Sink::Clear | Sink::Answer => None,
        }
    }
}

/// Value whose label is compared with a bound.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Checked {
    /// The program counter: whether the call is made at all.
    Control,
    /// An argument.
    Argument(Name),
    /// The conversation's content.
    Conversation,
    /// The value to remember.
    Value,
}

impl Checked {
    /// `the argument `to``, and so on.
    pub fn describe(&self) -> String {
        match self {
            Checked::Control => "whether it is called".into(),
            Checked::Argument(name) => format!("the argument `{name}`"),
            Checked::Conversation => "the conversation".into(),
            Checked::Value => "the value".into(),
        }
    }
}

/// Static verdict on a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No run refuses it.
    Always,
    /// Every run that comes there refuses it.
    Never,
    /// Neither is known.
    Depends,
}

impl Verdict {
    /// `always`, `never` or `depends`.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Always => "always",
            Verdict::Never => "never",
            Verdict::Depends => "depends",
        }
    }

    fn of(always: bool, never: bool) -> Verdict {
        match (always, never) {
            (true, _) => Verdict::Always,
            (_, true) => Verdict::Never,
            _ => Verdict::Depends,
        }
    }
}

/// A taint with the label that it brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Origin of the label.
    pub origin: Origin,
    /// Its label.
    pub label: Data,
    /// True if the source breaks the bound.
    pub breaks: bool,
    /// True if the source is untrusted.
    pub untrusted: bool,
    /// True if the source is not public.
    pub secret: bool,
}

/// One bound of a sink, with what may reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Value that is compared with the bound.
    pub what: Checked,
    /// The bound.
    pub bound: Data,
    /// True if it is a constant of the program, whose label is that of the branch in which it stands.
    pub constant: bool,
    /// The most that the label may be.
    pub most: Data,
    /// Static verdict.
    pub verdict: Verdict,
    /// True if the verdict [`Verdict::Always`] assumes that the input is public and trusted.
    pub rests_on_input: bool,
    /// Origins of the label.
    pub sources: Vec<Source>,
}

/// Choice that untrusted data may make at a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The parameter; `None` for the answer.
    pub param: Option<Name>,
    /// The values to choose from.
    pub among: Choices,
    /// Form that a text must have.
    pub plain: Option<Plain>,
    /// Regular expression that the argument must match as a whole.
    pub pattern: Option<Name>,
}

/// Values that an attacker may choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choices {
    /// A number of values.
    Values(u64),
    /// Any number.
    Number,
    /// Any text.
    Text,
    /// Anything.
    Any,
    /// The values of these sets.
    Sets(Vec<AmongSource>),
}

impl Chosen {
    /// The choice of an argument: anything of its type if its bound admits it, and else what its sets have.
    fn of(decl: &ToolDecl, param: &ToolParam, admitted: bool, in_sets: bool) -> Option<Chosen> {
        // What a read is asked for changes nothing.
        if decl.effect != core_ir::EffectClass::Write {
            return None;
        }
        let form = decl.plain.iter().find(|(n, _)| *n == param.name).map(|(_, form)| *form);
        let pattern =
            decl.pattern.iter().find(|(n, _)| *n == param.name).map(|(_, p)| Name::from(p.as_str()));
        let about = |among, plain| {
            // Of a value in a set the form says nothing new.
            let pattern = pattern.filter(|_| !matches!(among, Choices::Sets(_) | Choices::Values(_)));
            Some(Chosen { param: Some(param.name.clone()), among, plain, pattern })
        };
        if admitted {
            let among = Choices::of(&param.ty);
            let plain = form.filter(|_| matches!(among, Choices::Text | Choices::Any));
            return about(among, plain);
        }
        if !in_sets {
            return None;
        }
        let sets = decl.among.iter().filter(|a| a.params.iter().any(|(n, _)| *n == param.name));
        about(Choices::Sets(sets.map(|a| a.source.clone()).collect()), None)
    }

    /// `an attacker may choose …`, as a sentence.
    ///
    /// # Examples
    /// ```
    /// use analysis::flow::{Choices, Chosen};
    /// use core_ir::Plain;
    /// let plain = Some(Plain::NoLinks);
    /// let body = Chosen { param: Some("body".into()), among: Choices::Text, plain, pattern: None };
    /// let said = body.describe();
    /// assert_eq!(said, "an attacker may choose `body`: any text without links, addresses and numbers");
    /// ```
    pub fn describe(&self) -> String {
        let what = self.param.as_ref().map_or_else(|| "the answer".into(), |name| format!("`{name}`"));
        let from = match &self.among {
            Choices::Values(n) => format!("one of {n}"),
            Choices::Number => "any number".into(),
            Choices::Text => "any text".into(),
            Choices::Any => "anything".into(),
            Choices::Sets(sets) => {
                let one = |set: &AmongSource| match set {
                    AmongSource::Request => "the tokens of the request".to_string(),
                    AmongSource::Sites => "the addresses of the sites that the request names".to_string(),
                    AmongSource::Below(place) => format!("what is below `{place}`"),
                    AmongSource::Values(values) => format!("{} that the policy states", values.len()),
                    AmongSource::Tool(name) => format!("what `{name}` gave before the run"),
                };
                let all: Vec<String> = sets.iter().map(one).collect();
                format!("one of {}", all.join(", or of "))
            }
        };
        let without = match self.plain {
            Some(Plain::NoLinks) => " without links, addresses and numbers",
            None => "",
        };
        let form =
            self.pattern.as_ref().map_or_else(String::new, |pattern| format!(" that matches `{pattern}`"));
        format!("an attacker may choose {what}: {from}{without}{form}")
    }
}

impl Choices {
    /// The values of a type.
    pub fn of(ty: &Type) -> Choices {
        match ty {
            Type::Bool => Choices::Values(2),
            Type::Null => Choices::Values(1),
            Type::Enum(e) => Choices::Values(e.variants.len() as u64),
            Type::Num => Choices::Number,
            Type::Str => Choices::Text,
            Type::Option(inner) => match Choices::of(inner) {
                Choices::Values(n) => Choices::Values(n.saturating_add(1)),
                other => other,
            },
            Type::Refined(r) => Choices::of(&r.0),
            _ => Choices::Any,
        }
    }
}

/// Place of a request to the world, or of an access to a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Where.
    pub span: Span,
    /// What.
    pub sink: Sink,
    /// Static verdict.
    pub verdict: Verdict,
    /// Its bounds.
    pub checks: Vec<Check>,
    /// True if the effect is visible outside: a tool that changes the world.
    pub outward: bool,
    /// True if no signature or policy says what the tool does.
    pub unknown: bool,
    /// Further decision that may refuse the call, whatever the labels are: a policy function or a person.
    pub asks: Option<&'static str>,
    /// Calls of a run that untrusted data may decide, if they are limited.
    pub at_most: Option<u64>,
    /// Arguments of a tool that changes the world, or the answer, that untrusted data may choose, as far as
    /// it is admitted.
    pub chosen: Vec<Chosen>,
    /// Models of a chain that may not see every conversation that gets here, with their clearances: others of
    /// the chain answer then.
    pub passed_over: Vec<(Name, Data)>,
}

/// An `endorse` or `declassify`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reclassification {
    /// Where.
    pub span: Span,
    /// True if it may lower a label.
    pub lowers: bool,
    /// True if the lowered label is visible in the result, in spite of the program counter.
    pub shows: bool,
}

/// A `try` that some error may pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Where.
    pub span: Span,
    /// The part of the error's label that the label of the `try` lacks.
    pub lacks: Data,
    /// Origins of that part.
    pub sources: Vec<Source>,
}

/// A set of `among` that can admit nothing: its label does not flow to the bound, or it can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleSet {
    /// The tool that has it.
    pub tool: Name,
    /// Place of the tool.
    pub span: Span,
    /// The parameter.
    pub param: Name,
    /// The label of the set, and the bound that it would have to flow to; `None` if the set can't be read.
    pub labels: Option<(Data, Data)>,
}

/// A label of a part of a tool's result that is below the label of what the part is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoveredPart {
    /// The tool.
    pub tool: Name,
    /// Place of the tool.
    pub span: Span,
    /// The part.
    pub path: String,
    /// The label that is stated, and that of what the part is in.
    pub labels: (Data, Data),
}

/// Result of the flow analysis of a program.
#[derive(Clone, Debug)]
pub struct FlowReport {
    /// The sinks that a run may reach.
    pub sites: Vec<Site>,
    /// Every `endorse` and `declassify` that it may reach.
    pub reclassifications: Vec<Reclassification>,
    /// Every `try` that an error may pass.
    pub passed: Vec<Passed>,
    /// Sets of `among` that can admit nothing.
    pub idle_sets: Vec<IdleSet>,
    /// Labels of parts of results that have no effect.
    pub covered: Vec<CoveredPart>,
    /// The most that the labels in the result may be; `None` if no run has a result.
    pub result: Option<Data>,
    /// Where the labels in the result come from.
    pub result_sources: Vec<Source>,
    /// The most that the label of an error may be; `None` if no run fails.
    pub error: Option<Data>,
    /// Parts that are not known, with their places. A run that reaches one ends there, unless
    /// `passes_unknown` says otherwise.
    pub unknown: Vec<(Span, Name)>,
    /// Place and reason where the analysis gave up; then nothing else is known.
    pub gave_up: Option<(Span, &'static str)>,
}

/// Decision about untrusted text at a sink with a form (`plain`).
const PLAIN: &str = "the form of untrusted text (`plain`)";

/// Decision about an argument with a closed form (`pattern`).
const PATTERN: &str = "the form of the argument (`pattern`)";

/// Decision about who gets an argument (`readers`).
const READERS: &str = "who may read what is sent (`readers`)";

/// Analyzes the flows of a program.
///
/// # Examples
/// ```
/// use analysis::flow::{Options, Verdict, analyze};
/// use core_ir::{Builder, Data, Globals, Term, ToolDecl};
/// use diagnostics::{FileId, Span};
/// let at = Span { file: FileId(0), start: 0, end: 0 };
/// let mut b = Builder::new();
/// // `tool[send] (["S"]: "x")`: nothing is known of the tool, so it takes public data only.
/// let send = b.tool(ToolDecl::unknown("send".into(), at));
/// let (label, text) = (b.lit(Data::list([Data::str("S")]), at), b.lit("x", at));
/// let secret = b.add(Term::Relabel(label, text), at);
/// let tool = b.add(Term::Tool(send), at);
/// let call = b.app(tool, secret, at);
/// let code = b.finish(call, &Globals::none()).unwrap();
/// let report = analyze(&code.into(), &Options::default());
/// assert_eq!(report.sites[0].verdict, Verdict::Never);
/// ```
pub fn analyze(code: &Arc<Code>, options: &Options) -> FlowReport {
    let taints = Taints::new(Lattice::with_principals(options.lattice, &options.principals));
    let mut a = Analysis::new(code, taints, options);
    let end = a.run(options.applied);
    if let Some(value) = end.result.as_ref().filter(|_| a.gave_up.is_none()) {
        a.answer(code, &options.answer, value);
    }
    let gave_up = a.gave_up;
    let sites = std::mem::take(&mut a.sites);
    let result = end.result.map(|v| v.deep(&mut a.taints));
    let mut report = FlowReport {
        sites: Vec::new(),
        reclassifications: Vec::new(),
        passed: Vec::new(),
        idle_sets: idle_sets(&mut a.taints.lattice, code),
        covered: covered(&mut a.taints.lattice, code),
        result: result.map(|label| shown(&a.taints, label)),
        result_sources: result.map_or_else(Vec::new, |label| sources(&mut a.taints, label, None)),
        error: end.error.map(|e| shown(&a.taints, e.label.hi)),
        unknown: std::mem::take(&mut a.unknown).into_iter().collect(),
        gave_up,
    };
    if gave_up.is_some() {
        return report;
    }
    let tools: HashMap<&Name, &Arc<ToolDecl>> = code.tools.iter().rev().map(|t| (&t.name, t)).collect();
    for ((span, sink), state) in sites {
        let decl = match &sink {
            Sink::Tool(name) => tools.get(name),
            _ => None,
        };
        let outward = decl.is_some_and(|t| t.effect == core_ir::EffectClass::Write);
        let unknown = decl.is_some_and(|t| t.is_unspecified() && !options.known.contains(&t.name));
        let site = site(&mut a.taints, span, sink, &state);
        let asks = decl.and_then(|t| match (&t.policy, state.asked) {
            (None, true) if t.approve == Approve::IfRefused => {
                Some("a person (only where the bounds would refuse)")
            }
            (Some(_), true) => Some("its policy function and a person"),
            (Some(_), false) => Some("its policy function"),
            (None, true) => Some("a person"),
            (None, false) => None,
        });
        let asks = asks.or(state.plain.then_some(PLAIN)).or(state.pattern.then_some(PATTERN));
        let asks = asks.or(state.readers.then_some(READERS));
        let at_most = decl.and_then(|t| t.at_most);
        report.sites.push(Site { outward, unknown, asks, at_most, ..site });
    }
    // Sets are read before the first step, whatever the program does.
    for read in code.set_reads() {
        let (span, sink) = (read.span, Sink::Tool(read.name.clone()));
        let unknown = read.is_unspecified() && !options.known.contains(&read.name);
        let (verdict, checks, passed_over) = (Verdict::Always, Vec::new(), Vec::new());
        report.sites.push(Site {
            span,
            sink,
            verdict,
            checks,
            outward: false,
            unknown,
            asks: None,
            at_most: None,
            chosen: Vec::new(),
            passed_over,
        });
    }
    for (span, state) in std::mem::take(&mut a.reclassified) {
        report.reclassifications.push(Reclassification { span, lowers: state.lowers, shows: state.shows });
    }
    for (span, state) in std::mem::take(&mut a.tries) {
        // Only what the label as it is written lacks whatever the program counter is.
        if state.given.is_some() && state.escapes && state.needed != Taint::NONE {
            let lacks = shown(&a.taints, state.needed);
            let sources = sources(&mut a.taints, state.needed, None);
            report.passed.push(Passed { span, lacks, sources });
        }
    }
    report
}

/// The sets of a program's tools that can admit nothing because of their label, and the labels of parts that
/// have no effect.
pub fn idle_labels(code: &Code, options: &Options) -> (Vec<IdleSet>, Vec<CoveredPart>) {
    let mut lattice = Lattice::with_principals(options.lattice, &options.principals);
    (idle_sets(&mut lattice, code), covered(&mut lattice, code))
}

/// The sets whose label does not flow to the bound, or that can't be read.
fn idle_sets(lattice: &mut Lattice, code: &Code) -> Vec<IdleSet> {
    let mut found = Vec::new();
    for (decl, among) in code.tools.iter().flat_map(|t| t.among.iter().map(move |a| (t, a))) {
        let label = sinks::set_label(lattice, code, among);
        for (param, _) in &among.params {
            let bound = sinks::bound_of(lattice, decl, param);
            if label.is_some_and(|label| lattice.flows(label, bound)) {
                continue;
            }
            let labels = label.map(|label| (lattice.data_of(label), lattice.data_of(bound)));
            found.push(IdleSet { tool: decl.name.clone(), span: decl.span, param: param.clone(), labels });
        }
    }
    found
}

/// The labels of parts that have no effect.
fn covered(lattice: &mut Lattice, code: &Code) -> Vec<CoveredPart> {
    let mut found = Vec::new();
    for decl in &code.tools {
        for (rule, containers) in decl.parts.stated() {
            let whole = containers.into_iter().chain([Some(&decl.label)]);
            let whole: Option<Vec<_>> = whole.map(|spec| lattice.resolve(spec?)).collect();
            let (Some(whole), Some(own)) = (whole, lattice.resolve(&rule.label)) else { continue };
            let whole = whole.into_iter().fold(core_ir::Label::BOTTOM, |l, label| lattice.join(l, label));
            if lattice.flows(own, whole) && !lattice.flows(whole, own) {
                found.push(CoveredPart {
                    tool: decl.name.clone(),
                    span: decl.span,
                    path: rule.path.to_string(),
                    labels: (lattice.data_of(own), lattice.data_of(whole)),
                });
            }
        }
    }
    found
}

fn shown(taints: &Taints, t: Taint) -> Data {
    taints.lattice.data_of(taints.label(t))
}

fn sources(taints: &mut Taints, t: Taint, bound: Option<core_ir::Label>) -> Vec<Source> {
    let all: Vec<(Origin, core_ir::Label)> = taints.origins(t).map(|(o, l)| (o.clone(), l)).collect();
    let bottom = core_ir::Label::BOTTOM;
    let lattice = &mut taints.lattice;
    let mut out: Vec<Source> = all
        .into_iter()
        .map(|(origin, label)| Source {
            breaks: origin.cause != Cause::Input && bound.is_some_and(|b| !lattice.flows(label, b)),
            untrusted: lattice.reclassify(label, bottom) != bottom,
            secret: lattice.reclassify(bottom, label) != bottom,
            label: lattice.data_of(label),
            origin,
        })
        .collect();
    out.sort_by_key(|s| (!s.breaks, !s.origin.is_data(), s.origin.span));
    out
}

fn site(taints: &mut Taints, span: Span, sink: Sink, state: &SiteState) -> Site {
    let checks = state
        .checks
        .iter()
        .map(|c| Check {
            what: c.what.clone(),
            bound: taints.lattice.data_of(c.bound),
            constant: c.constant,
            most: shown(taints, c.found.hi),
            verdict: Verdict::of(c.always, c.never),
            rests_on_input: !taints.lattice.flows(taints.label_with_input(c.found.hi), c.bound)
                && taints.surely_flows(c.found, c.bound),
            sources: sources(taints, c.found.hi, Some(c.bound)),
        })
        .collect();
    let verdict = Verdict::of(state.always, state.never);
    let passed_over =
        state.passed_over.iter().map(|(name, l)| (name.clone(), taints.lattice.data_of(*l))).collect();
    let mut chosen = state.chosen.clone();
    for (choice, values) in state.literals.iter().filter(|(_, values)| values.len() > 1) {
        if !chosen.iter().any(|c| c.param == choice.param) {
            let among = Choices::Values(values.len() as u64);
            chosen.push(Chosen { among, plain: None, pattern: None, ..choice.clone() });
        }
    }
    let (outward, unknown, asks, at_most) = (false, false, None, None);
    Site { span, sink, verdict, checks, outward, unknown, asks, at_most, chosen, passed_over }
}
