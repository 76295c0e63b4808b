//! Results of tools that have labels for their parts.

use super::random::{Rng, data_of};
use core_ir::{Data, Name, PartRules, Type};

/// Fields of a record that a rule names, each with its data and all labels in it; `None` if it is not there.
pub(crate) type Beside<L> = [(Name, Option<(Data, L)>)];

/// Source of the parts of a result: for each part, numbers of its own.
pub(crate) trait Drawing {
    /// The label of a part.
    type Label: Clone;

    /// The numbers for what is at a path: a scalar, how many items, which fields.
    fn rng(&mut self, path: &str, label: &Self::Label) -> Rng;

    /// The label of a part in a container. `beside` gives the fields of the same record that the rule names.
    fn label(
        &mut self,
        container: &Self::Label,
        rules: &PartRules<'_>,
        own: Option<&Name>,
        beside: &Beside<Self::Label>,
    ) -> Self::Label;

    /// The join of two labels.
    fn join(&mut self, a: &Self::Label, b: &Self::Label) -> Self::Label;
}

/// Names of fields of records of no type.
const NAMES: [&str; 4] = ["a", "b", "c", "e"];

/// A result with the join of all labels in it. Now and then fields are absent, lists empty, and parts of
/// another type.
pub(crate) fn draw_parts<D: Drawing>(
    drawing: &mut D,
    rules: &PartRules<'_>,
    ty: &Type,
    path: &str,
    label: D::Label,
) -> (Data, D::Label) {
    let mut rng = drawing.rng(path, &label);
    if rng.chance(1) {
        return (Data::Bool(true), label);
    }
    match ty {
        Type::List(item) => items(drawing, rules, item, path, label, rng.below(4)),
        Type::Option(_) if rng.chance(20) => (Data::Null, label),
        Type::Option(inner) => draw_parts(drawing, rules, inner, path, label),
        Type::Record(fields) => {
            let there = |(_, t): &&(Name, Type)| !matches!(t, Type::Option(_)) || rng.chance(60);
            let fields: Vec<(Name, Type)> = fields.iter().filter(there).cloned().collect();
            record(drawing, rules, &fields, path, label)
        }
        Type::Dyn if path.len() < 12 => match rng.below(6) {
            0 => items(drawing, rules, ty, path, label, rng.below(3)),
            1..=3 => {
                let names = NAMES.into_iter().filter(|_| rng.chance(60));
                let fields: Vec<(Name, Type)> = names.map(|n| (n.into(), Type::Dyn)).collect();
                record(drawing, rules, &fields, path, label)
            }
            4 => (data_of(&mut rng, &Type::Str), label),
            _ => (data_of(&mut rng, &Type::Num), label),
        },
        Type::Dyn => (data_of(&mut rng, &Type::Str), label),
        ty => (data_of(&mut rng, ty), label),
    }
}

fn items<D: Drawing>(
    drawing: &mut D,
    rules: &PartRules<'_>,
    ty: &Type,
    path: &str,
    label: D::Label,
    count: usize,
) -> (Data, D::Label) {
    let rules = rules.items();
    let at = drawing.label(&label, &rules, None, &[]);
    let (mut all, mut deep) = (Vec::new(), label);
    for i in 0..count {
        let (item, inside) = draw_parts(drawing, &rules, ty, &format!("{path}[{i}]"), at.clone());
        deep = drawing.join(&deep, &inside);
        all.push(item);
    }
    (Data::list(all), deep)
}

/// The fields of a record while they are drawn.
struct Fields<'a, L> {
    rules: &'a PartRules<'a>,
    fields: &'a [(Name, Type)],
    /// Path of the record, and its label.
    path: &'a str,
    label: &'a L,
    /// Fields that are waited for, so that a cycle of dependencies ends.
    begun: Vec<Name>,
    done: Vec<(Name, (Data, L))>,
}

/// A record. The fields that the label of another depends on are drawn before it.
fn record<D: Drawing>(
    drawing: &mut D,
    rules: &PartRules<'_>,
    fields: &[(Name, Type)],
    path: &str,
    label: D::Label,
) -> (Data, D::Label) {
    let mut all = Fields { rules, fields, path, label: &label, begun: Vec::new(), done: Vec::new() };
    for (name, _) in fields {
        all.begun = vec![name.clone()];
        all.draw(drawing, name);
    }
    let done = all.done;
    let mut deep = label;
    for (_, (_, inside)) in &done {
        deep = drawing.join(&deep, inside);
    }
    let data = fields.iter().filter_map(|(name, _)| {
        let (_, (data, _)) = done.iter().find(|(n, _)| n == name)?;
        Some((name.clone(), data.clone()))
    });
    (Data::record(data), deep)
}

impl<L: Clone> Fields<'_, L> {
    fn draw<D: Drawing<Label = L>>(&mut self, drawing: &mut D, name: &Name) {
        if self.done.iter().any(|(n, _)| n == name) {
            return;
        }
        let Some((_, ty)) = self.fields.iter().find(|(n, _)| n == name) else { return };
        let rules = self.rules.field(name);
        let named: Vec<Name> = rules.rule().map_or(Vec::new(), |rule| rule.fields(name).cloned().collect());
        for on in &named {
            if !self.begun.contains(on) {
                self.begun.push(on.clone());
                self.draw(drawing, on);
                self.begun.pop();
            }
        }
        let beside: Vec<_> = named
            .into_iter()
            .map(|on| {
                let found = self.done.iter().find(|(n, _)| *n == on).map(|(_, found)| found.clone());
                (on, found)
            })
            .collect();
        let at = drawing.label(self.label, &rules, Some(name), &beside);
        let drawn = draw_parts(drawing, &rules, ty, &format!("{}.{name}", self.path), at);
        self.done.push((name.clone(), drawn));
    }
}
