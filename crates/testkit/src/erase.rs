//! A program without its labels: what it would do if nobody watched.
//!
//! For demonstrations and tests only. No command of the toolchain can do this: a label that is not there
//! cannot be put back, so a switch for it would be the hole that everything else is there to close.

use core_ir::{Builder, Code, Data, LabelSpec, Term, TermId};
use std::collections::HashMap;

/// The same program with every label literal of `l : e`, `try[l]`, `endorse` and the like replaced by ⊥, and
/// with signatures and stores that admit everything and label nothing. Labels that the program computes stay.
///
/// # Panics
/// Never on code that was made by a builder: what was resolved is resolved again.
pub fn erased(code: &Code) -> Code {
    let mut b = Builder::new();
    let mut new: HashMap<TermId, TermId> = HashMap::new();
    for (id, term) in code.iter() {
        let span = code.span(id);
        let label = match term {
            Term::Relabel(l, _) | Term::Test(l, _) | Term::Endorse(l, _) | Term::Declassify(l, _) => Some(*l),
            Term::Try { label, .. } => Some(*label),
            _ => None,
        };
        if let Some(label) = label.filter(|l| matches!(code.term(*l), Term::Lit(_) | Term::List(_))) {
            let bottom = b.lit(Data::list([]), code.span(label));
            new.insert(label, bottom);
        }
        // INVARIANT: children stand before their parents.
        let term = term.clone().map_children(&mut |child| new[&child]);
        let at = b.add(term, span);
        new.insert(id, at);
    }
    for tool in &code.tools {
        let mut decl = core_ir::ToolDecl::clone(tool);
        decl.control = LabelSpec::TOP;
        decl.label = LabelSpec::BOTTOM;
        for p in &mut decl.params {
            p.bound = LabelSpec::TOP;
        }
        b.tool(decl);
    }
    for store in &code.stores {
        let mut decl = core_ir::StoreDecl::clone(store);
        for key in &mut decl.keys {
            key.label = LabelSpec::BOTTOM;
        }
        b.store(decl);
    }
    b.finish(new[&code.root()], code.globals()).expect("code that was resolved before")
}
