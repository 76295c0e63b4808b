//! Labels of the parts of a tool's result.
//!
//! Source: `docs/calculus.md` §10, parts of a result.

use super::Strand;
use crate::Machine;
use crate::value::{Body, Tool, Value};
use core_ir::{Data, Label, LabelName, Name, PartLabel, PartRules, Stated, What};
use diagnostics::Span;

/// The answer that is stamped.
struct Stamp<'s> {
    s: &'s Strand,
    tool: &'s Tool,
    /// The labels that arguments name.
    places: &'s [(Name, Label)],
    span: Span,
}

/// The fields of a record, as far as they are stamped.
struct Fields<'d> {
    data: &'d [(Name, Data)],
    values: Vec<Option<Value>>,
}

impl Fields<'_> {
    fn position(&self, name: &Name) -> Option<usize> {
        self.data.iter().position(|(n, _)| n == name)
    }
}

impl Machine {
    /// The result of a tool, each part with its label. `label` is that of the result as a whole.
    pub(super) fn stamped(
        &mut self,
        s: &Strand,
        tool: &Tool,
        places: &[(Name, Label)],
        (label, span): (Label, Span),
        data: &Data,
    ) -> Value {
        let stamp = Stamp { s, tool, places, span };
        let rules = tool.decl.parts.root();
        let label = self.stamp(&stamp, label, rules.rule(), None);
        self.stamp_parts(&stamp, &rules, label, data)
    }

    /// The label of a part: that of what it is in, the one that its rule states, and of each value that the
    /// rule names, its own label and what it says. `record` has the fields that stand beside the part. A
    /// named field that is absent, or whose label depends on this part, says ⊤.
    fn stamp(
        &mut self,
        stamp: &Stamp<'_>,
        container: Label,
        rule: Option<&PartLabel>,
        record: Option<(&Name, &Fields<'_>)>,
    ) -> Label {
        let Some(rule) = rule else { return container };
        let mut label = self.lattice.resolve_or_top(&rule.label);
        let excepted = record.is_some_and(|(own, _)| rule.excepts(own));
        let mut readers = Vec::new();
        for (name, is_source) in
            rule.source.iter().map(|n| (n, true)).chain(rule.readers.iter().map(|n| (n, false)))
        {
            let field = match name {
                LabelName::Field(_) if excepted => continue,
                LabelName::Field(field) => field,
                LabelName::Argument(name) => {
                    let said = stamp.places.iter().find(|(n, _)| n == name).map(|(_, label)| *label);
                    let said = said.unwrap_or_else(|| self.lattice.top());
                    label = self.lattice.join(label, said);
                    continue;
                }
            };
            let beside = record.and_then(|(_, fields)| {
                let at = fields.position(field)?;
                Some((&fields.data[at].1, fields.values[at].as_ref()?))
            });
            let Some((data, value)) = beside else {
                label = self.lattice.top();
                continue;
            };
            // What it says is known to those who may see it.
            let own = value.deep_label(&mut self.lattice);
            label = self.lattice.join(label, own);
            if is_source {
                let said = self.config.principals.source(data);
                label = self.said(label, &said);
            } else {
                readers.extend(self.config.principals.readers(data));
            }
        }
        let names_readers = rule.readers.iter().any(|n| matches!(n, LabelName::Field(_)));
        if !excepted && names_readers {
            let said = Stated { sources: Some(Vec::new()), readers: Some(readers) };
            label = self.said(label, &said);
        }
        let tool = || What::Tool(stamp.tool.decl.name.clone());
        let label = self.answered_by(stamp.s, label, Label::BOTTOM, label, tool, stamp.span);
        self.lattice.join(container, label)
    }

    /// The label that each argument names which rules refer to: that of a place, ⊤ if it names none. One that
    /// only completes the call names none, for its own label is not that of the result.
    pub(super) fn places(&mut self, tool: &Tool, args: &[(Name, Data)]) -> Box<[(Name, Label)]> {
        let mut places: Vec<(Name, Label)> = Vec::new();
        for name in tool.decl.parts.iter().flat_map(|r| r.source.iter().chain(&r.readers)) {
            let LabelName::Argument(name) = name else { continue };
            if places.iter().any(|(n, _)| n == name) {
                continue;
            }
            let arg = args.iter().find(|(n, _)| n == name && !tool.decl.completes.contains(name));
            let label = arg.and_then(|(_, arg)| self.config.principals.place(&mut self.lattice, arg));
            places.push((name.clone(), label.unwrap_or_else(|| self.lattice.top())));
        }
        places.into()
    }

    /// The label of a failure, which may quote every part of the result: the labels that rules state and that
    /// arguments name, ⊤ for what fields name.
    pub(super) fn of_failure(&mut self, tool: &Tool, places: &[(Name, Label)], label: Label) -> Label {
        if tool.decl.parts.is_empty() {
            return label;
        }
        let mut label = self.lattice.join(label, tool.most);
        for (_, place) in places {
            label = self.lattice.join(label, *place);
        }
        label
    }

    /// Joins what a value says to a label.
    fn said(&mut self, label: Label, said: &Stated) -> Label {
        let said = self.lattice.in_terms(said);
        let said = self.lattice.resolve(&said);
        let said = said.unwrap_or_else(|| self.lattice.top());
        self.lattice.join(label, said)
    }

    /// A part that has the label `label`, with labels for its own parts. No deeper than the paths of rules.
    fn stamp_parts(&mut self, stamp: &Stamp<'_>, rules: &PartRules<'_>, label: Label, data: &Data) -> Value {
        if rules.is_empty() {
            return Value::literal(&mut self.lattice, label, data);
        }
        let body = match data {
            Data::List(items) => {
                let rules = rules.items();
                let item = self.stamp(stamp, label, rules.rule(), None);
                let items = items.iter().map(|d| self.stamp_parts(stamp, &rules, item, d));
                Body::List(items.collect::<Vec<_>>().into_iter().collect())
            }
            Data::Record(fields) => Body::Record(self.stamp_fields(stamp, rules, label, fields).into()),
            _ => return Value::literal(&mut self.lattice, label, data),
        };
        Value::node(&mut self.lattice, label, body)
    }

    /// The fields of a record, those first that the labels of others depend on.
    fn stamp_fields(
        &mut self,
        stamp: &Stamp<'_>,
        rules: &PartRules<'_>,
        label: Label,
        data: &[(Name, Data)],
    ) -> Vec<(Name, Value)> {
        let rules: Vec<PartRules<'_>> = data.iter().map(|(name, _)| rules.field(name)).collect();
        let mut fields = Fields { data, values: vec![None; data.len()] };
        let mut open = vec![false; data.len()];
        for first in 0..data.len() {
            let mut work = vec![first];
            while let Some(at) = work.last().copied() {
                if fields.values[at].is_some() {
                    work.pop();
                    continue;
                }
                open[at] = true;
                let (own, part) = &data[at];
                let rule = rules[at].rule();
                // A field that is open already depends on this one: it says ⊤ then.
                let mut on = rule.into_iter().flat_map(|r| r.fields(own)).filter_map(|n| fields.position(n));
                if let Some(next) = on.find(|i| fields.values[*i].is_none() && !open[*i]) {
                    work.push(next);
                    continue;
                }
                let label = self.stamp(stamp, label, rule, Some((own, &fields)));
                fields.values[at] = Some(self.stamp_parts(stamp, &rules[at], label, part));
                work.pop();
            }
        }
        let names = data.iter().map(|(name, _)| name.clone());
        // INVARIANT: each field was stamped above.
        names.zip(fields.values.into_iter().flatten()).collect()
    }
}
