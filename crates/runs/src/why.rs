//! Origins of labels as plain data, for refusals, traces and approval questions.
//!
//! Entry point: [`Explained`]. Source: `docs/security.md`, provenance.
//!
//! Invariant: an explanation has names, labels and places, and no data; secrets of the environment are
//! removed from it.

use crate::Redactor;
use core_ir::{Chain, Data, Label, Lattice, Name};
use diagnostics::{Sources, Span};
use machine::{Machine, Part, Refusal, RequestId};
use serde_json::{Value as Json, json};

/// The label of something, and where each component of it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// What: an argument, `control`, `conversation`, `value`; a part of a result: `result.to`; a name.
    pub of: String,
    /// Its label.
    pub label: Data,
    /// Origins of the label. Empty unless the run explains flow (`Config::explain_flow`).
    pub chains: Vec<Chain>,
}

/// A name of the program, what it was bound to, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The definition.
    pub span: Span,
    /// The name, and the join of what it was bound to in the course of the run.
    pub value: Explained,
}

/// A flow that was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The part of the request that broke the bound.
    pub part: Part,
    /// The tool, model or key that has the bound.
    pub name: Option<Name>,
    /// Label of that part.
    pub value: Explained,
    /// The bound.
    pub bound: Data,
    /// True if its integrity was too low.
    pub integrity: bool,
    /// True if its secrecy was too high.
    pub secrecy: bool,
    /// True if a bound that admits the part admits untrusted data; true if it admits secret data.
    pub admits: (bool, bool),
}

/// Origins of the labels at the end of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Why {
    /// The labeled parts of the result, `result` itself first; or `error`.
    pub result: Vec<Explained>,
    /// The refused flow that the run ended with. Known of every run.
    pub refused: Option<Refused>,
    /// Calls of tools that were refused while the program went on, the loop of an agent for instance: the
    /// first few that differ.
    pub calls: Vec<RefusedCall>,
    /// Tools of which a policy function refused a call, whether the program went on or not.
    pub denied: Vec<Name>,
    /// Values of names that have a label.
    pub bindings: Vec<Binding>,
}

/// A call of a tool that was refused while the program went on.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedCall {
    /// Place in the program.
    pub span: Span,
    /// Reason of the first refusal.
    pub refused: Refused,
    /// Number of refusals.
    pub times: u64,
}

/// The most parts of a result that are explained.
const MAX_PARTS: usize = 200;

/// Explains the labels of one run.
pub struct Explainer<'a> {
    /// The lattice of the run.
    pub lattice: &'a Lattice,
    /// Takes secrets out of the explanations.
    pub redactor: &'a Redactor,
}

impl Explainer<'_> {
    /// Returns the origins of a label.
    pub fn chains(&self, label: Label) -> Vec<Chain> {
        let mut chains = self.lattice.why(label);
        for chain in &mut chains {
            chain.component = self.redactor.owned(std::mem::take(&mut chain.component));
            chain.words = self.redactor.owned(std::mem::take(&mut chain.words));
        }
        chains
    }

    /// Explains the label of something.
    pub fn explain(&self, of: impl Into<String>, label: Label) -> Explained {
        let data = self.redactor.data(&self.lattice.data_of(label));
        Explained { of: of.into(), label: data, chains: self.chains(label) }
    }

    /// Returns the labeled dependencies of a request.
    pub fn given(&self, given: &[(Part, Label)]) -> Vec<Explained> {
        let labeled = given.iter().filter(|(_, label)| *label != Label::BOTTOM);
        labeled.map(|(part, label)| self.explain(part.name(), *label)).collect()
    }
}

/// Explains the end of a run.
pub(crate) fn at_the_end(
    machine: &mut Machine,
    redactor: &Redactor,
    result: &Result<machine::Value, machine::Failure>,
) -> Why {
    let mut why = Why::default();
    match result {
        Ok(value) if machine.lattice().keeps_origins() => {
            let parts = machine.labeled_parts(value, MAX_PARTS);
            let explainer = Explainer { lattice: machine.lattice(), redactor };
            why.result = parts
                .into_iter()
                .map(|(way, label)| explainer.explain(format!("result{way}"), label))
                .collect();
        }
        Ok(_) => {}
        Err(failure) => {
            why.refused = failure.refusal.as_deref().map(|r| refused(machine, redactor, r));
            if machine.lattice().keeps_origins() && failure.label != Label::BOTTOM {
                let explainer = Explainer { lattice: machine.lattice(), redactor };
                why.result = vec![explainer.explain("error", failure.label)];
            }
        }
    }
    let last = result.as_ref().err().and_then(|f| Some((f.span, f.refusal.as_ref()?.name.clone())));
    // The error's explanation is part of the error.
    let went_on = machine.refused_calls().iter().filter_map(|c| {
        let times = c.times - u64::from(last == Some((c.span, c.refusal.name.clone())));
        (times > 0).then(|| RefusedCall {
            span: c.span,
            refused: refused(machine, redactor, &c.refusal),
            times,
        })
    });
    why.calls = went_on.collect();
    why.denied = machine.denied_tools().to_vec();
    let bindings: Vec<_> =
        machine.bindings().map(|(name, span, label)| (name.clone(), span, label)).collect();
    let explainer = Explainer { lattice: machine.lattice(), redactor };
    let binding =
        |(name, span, label): (Name, Span, Label)| Binding { span, value: explainer.explain(&*name, label) };
    why.bindings = bindings.into_iter().map(binding).collect();
    why
}

fn refused(machine: &Machine, redactor: &Redactor, refusal: &Refusal) -> Refused {
    let Refusal { part, name, label, bound } = refusal;
    let mut lattice = machine.lattice().clone();
    let integrity = lattice.reclassify(*label, *bound);
    let secrecy = lattice.reclassify(*bound, *label);
    let explainer = Explainer { lattice: machine.lattice(), redactor };
    Refused {
        part: part.clone(),
        name: name.clone(),
        value: explainer.explain(part.name(), *label),
        bound: redactor.data(&machine.lattice().data_of(*bound)),
        integrity: !lattice.flows(integrity, *bound),
        secrecy: !lattice.flows(secrecy, *bound),
        admits: {
            let both = lattice.join(*label, *bound);
            let [i, s] =
                [(both, Label::BOTTOM), (Label::BOTTOM, both)].map(|(i, s)| lattice.reclassify(i, s));
            (i != Label::BOTTOM, s != Label::BOTTOM)
        },
    }
}

impl Explained {
    /// The object of traces. `number` gives the number of a request in the trace.
    pub fn to_json(&self, sources: &Sources, number: &dyn Fn(RequestId) -> Option<usize>) -> Json {
        json!({"of": self.of, "label": self.label.to_json(), "from": chains(&self.chains, sources, number)})
    }
}

impl Refused {
    /// The object of traces and of `--format json`.
    pub fn to_json(&self, sources: &Sources, number: &dyn Fn(RequestId) -> Option<usize>) -> Json {
        json!({
            "of": self.part.name(), "name": self.name.as_deref(), "label": self.value.label.to_json(),
            "bound": self.bound.to_json(), "from": chains(&self.value.chains, sources, number),
        })
    }
}

fn chains(chains: &[Chain], sources: &Sources, number: &dyn Fn(RequestId) -> Option<usize>) -> Json {
    let hop = |hop: &core_ir::Hop| {
        let mut step = serde_json::Map::new();
        step.insert("step".into(), hop.what.kind().into());
        if let Some(name) = hop.what.name() {
            step.insert("name".into(), name.into());
        }
        if let Some(n) = hop.request.and_then(|(strand, n)| number(RequestId { strand, number: n })) {
            step.insert("n".into(), n.into());
        }
        crate::trace::place_json(sources, hop.span, &mut step);
        step.insert("says".into(), hop.what.describe().into());
        Json::Object(step)
    };
    let chain = |chain: &Chain| {
        let ways: Vec<Json> = chain.ways.iter().map(|way| way.iter().map(hop).collect()).collect();
        json!({"component": chain.component, "says": chain.words, "ways": ways, "more": chain.more})
    };
    chains.iter().map(chain).collect()
}
