//! L001: an oracle without instructions.

use crate::{Check, Context, Rule};
use core_ir::{Code, Data, Name, Recv, Role, Term, TermId};
use diagnostics::{Diagnostic, Level};
use frontend_kit::Blank;
use std::collections::{HashMap, HashSet};

pub(super) static RULE: Rule = Rule {
    code: "L001",
    name: "empty-prompt",
    level: Level::Error,
    meaning: "`llm \"\" θ` maps an input to whatever the model answers: the program does not state its task",
    docs: page!("../../../../docs/rules/L001-empty-prompt.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let from = out.len();
    find(rule, context, out);
    // The agents of a format without a known framework may have further instructions.
    if context.compiled.facts.any_reader {
        for d in &mut out[from..] {
            d.level = Level::Unknown;
            d.help.push("which program reads this is not known: it may have instructions of its own".into());
        }
    }
}

fn find(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    let help = context.compiled.facts.words.prompt;
    let named: HashMap<&Name, TermId> = code
        .iter()
        .filter_map(|(_, t)| match t {
            Term::Let { bindings, .. } => Some(bindings.iter().map(|(name, value)| (name, *value))),
            _ => None,
        })
        .flatten()
        .collect();
    // A model that is given a text of the source is told what to do.
    let told: HashSet<TermId> = code
        .iter()
        .filter_map(|(_, t)| match t {
            Term::App(f, x) if is_written(code, *x) || is_named_and_written(code, &named, *x) => {
                match code.term(*f) {
                    Term::Llm(prompt, _) => Some(*prompt),
                    _ => None,
                }
            }
            _ => None,
        })
        .collect();
    // A template without words of its own may receive its instructions from the filled-in values.
    let filled: HashSet<TermId> = code
        .iter()
        .filter_map(|(_, t)| match t {
            Term::App(f, x) if is_filled(code, &named, *x) => match code.term(*f) {
                Term::Llm(prompt, _) => Some(*prompt),
                _ => None,
            },
            _ => None,
        })
        .collect();
    let replying = replying(code);
    for (id, term) in code.iter() {
        match term {
            Term::Llm(prompt, _) | Term::Send(Role::System, prompt) => {
                if let Term::Lit(Data::Str(text)) = code.term(*prompt)
                    && text.trim().is_empty()
                    && !told.contains(prompt)
                {
                    let mut d = rule.finding("the prompt is empty", code.span(*prompt)).help(help);
                    if filled.contains(prompt) {
                        d.level = Level::Unknown;
                        d.help.push(
                            "the template consists of placeholders: their values may hold the instructions"
                                .into(),
                        );
                    }
                    let blank = context.unit.outline.blank.get(prompt);
                    out.push(unless_given(context, d, blank));
                }
            }
            Term::Fresh(all) if is_uninstructed(code, *all, &replying) => {
                let all = code.span(id);
                // No message is made of an empty text, but the text is where it is.
                let blank = context.unit.outline.blank.get(&id);
                let d = match blank {
                    Some(blank) => rule.finding("the instructions are empty", blank.at),
                    None => rule.finding("there are no instructions", all),
                };
                out.push(unless_given(context, d.help(help), blank));
            }
            _ => {}
        }
    }
}

/// Leaves missing instructions open in code, where they may be given elsewhere. Only an empty text that is
/// written is certain.
fn unless_given(context: &Context<'_>, d: Diagnostic, blank: Option<&Blank>) -> Diagnostic {
    match blank {
        Some(Blank { certain: true, .. }) => d,
        _ => context.unless_code(d, "they may come with the first message, or be set elsewhere in the code"),
    }
}

/// Returns whether a conversation has replies and no system message. Conversations within it count
/// separately. A user message in a branch that a reply selects is too late to be an instruction.
fn is_uninstructed(code: &Code, all: TermId, replying: &[bool]) -> bool {
    let mut replies = false;
    let mut next = vec![(all, false)];
    let mut seen = HashSet::new();
    while let Some((id, late)) = next.pop() {
        if !seen.insert(id) {
            continue;
        }
        match code.term(id) {
            Term::Send(Role::System, _) => return false,
            Term::Send(Role::User, text) if !late && is_written(code, *text) => return false,
            Term::Fresh(_) => continue,
            Term::Recv(Recv::Data(params)) => replies |= !params.waiting,
            Term::Case { scrutinee, branches, default } => {
                let after = late || replying[scrutinee.0 as usize];
                next.push((*scrutinee, late));
                next.extend(branches.iter().map(|b| b.body).chain(*default).map(|body| (body, after)));
                continue;
            }
            _ => {}
        }
        next.extend(code.term(id).children().into_iter().map(|child| (child, late)));
    }
    replies
}

/// For each term: whether a model replies within it, in the conversation that it stands in.
fn replying(code: &Code) -> Vec<bool> {
    let mut found = vec![false; code.len()];
    // Children stand before their parents.
    for (id, term) in code.iter() {
        found[id.0 as usize] = match term {
            Term::Recv(Recv::Data(params)) => !params.waiting,
            Term::Fresh(_) => false,
            _ => term.children().iter().any(|c| found[c.0 as usize]),
        };
    }
    found
}

/// Returns true if a text is bound to a name and written: the template of a graph's earlier node.
fn is_named_and_written(code: &Code, named: &HashMap<&Name, TermId>, text: TermId) -> bool {
    matches!(code.term(text), Term::Var(name, _) if named.get(name).is_some_and(|value| is_written(code, *value)))
}

/// Returns true if a text is a template of several parts.
fn is_filled(code: &Code, named: &HashMap<&Name, TermId>, text: TermId) -> bool {
    match code.term(text) {
        Term::Prim(core_ir::Prim::Format, parts) => {
            parts.iter().filter(|p| !matches!(code.term(**p), Term::Lit(_))).count() > 1
        }
        Term::Var(name, _) => named.get(name).is_some_and(|v| {
            matches!(code.term(*v), Term::Prim(core_ir::Prim::Format, _)) && is_filled(code, named, *v)
        }),
        _ => false,
    }
}

/// Returns true if a text is written in the source, at least some words of it.
fn is_written(code: &Code, text: TermId) -> bool {
    let words =
        |id: &TermId| matches!(code.term(*id), Term::Lit(Data::Str(t)) if t.split_whitespace().count() > 1);
    match code.term(text) {
        Term::Prim(core_ir::Prim::Format, parts) => parts.iter().any(words),
        _ => words(&text),
    }
}
