//! Construction of terms from nodes, and reports of omitted parts, shared by front ends.

pub mod braces;

use crate::doc::{Entry, Node, NodeKind};
use crate::outline::LoopFacts;
use core_ir::{
    Bound, BoundOrigin, Builder, Data, ModelParams, Name, Prim, StoreConflict, Term, TermId, Type,
};
pub use diagnostics::clip;
use diagnostics::{Diagnostic, Level, Span, nearest};
use std::collections::{BTreeMap, BTreeSet};

/// Codes of the diagnostics of front ends.
pub mod codes {
    /// A value of the wrong kind.
    pub const WRONG_KIND: &str = "F001";
    /// A key that no version of the framework has.
    pub const UNKNOWN_KEY: &str = "F002";
    /// A key of the framework without a counterpart in the term.
    pub const UNUSED_KEY: &str = "F003";
    /// A name that nothing defines.
    pub const UNDEFINED: &str = "F004";
    /// Agents within one another without end, or more than can be compiled.
    pub const TOO_MUCH: &str = "F005";
    /// A file of a known format that defines nothing that runs.
    pub const NOTHING: &str = "F008";
    /// A construct of a known framework that is not compiled.
    pub const NOT_COMPILED: &str = "F009";
    /// An agent type that does not exist.
    pub const UNKNOWN_TYPE: &str = "F006";
    /// A name that is given twice.
    pub const DUPLICATE: &str = "F007";
}

/// The diagnostic for two declarations of one store.
pub fn store_conflict(conflict: &StoreConflict) -> Diagnostic {
    Diagnostic::error(codes::DUPLICATE, conflict.to_string(), conflict.second)
        .remark(conflict.first, "the first declaration is here")
        .help(StoreConflict::HELP)
}

/// A term that the arena refuses. Front ends bound their own depth, so only absurd input gets here.
pub fn not_built(error: &core_ir::BuildError, span: Span) -> Diagnostic {
    use core_ir::BuildError::*;
    let (message, at) = match error {
        TooDeep(s) => ("the agents are nested too deeply to be compiled".to_string(), *s),
        Unbound(n, s) => (format!("`{n}` is not bound"), *s),
        UnknownKey(n, s) => (format!("no store has the key `{n}`"), *s),
        NotAFunction(n, s) => (format!("`{n}` is not a function"), *s),
        Policy(n, s) => (format!("the policy of `{n}` asks models, tools or stores"), *s),
        Shared(s) => ("one part was compiled into two places".to_string(), *s),
        Stores(conflict) => return store_conflict(conflict),
    };
    Diagnostic::error(codes::TOO_MUCH, message, if at.end > at.start { at } else { span })
}

/// A key of a framework that has no counterpart in the term, and why that is so.
pub type Unused = (&'static str, &'static str);

/// Keys that are reported for one mapping at most, so that a data file costs little.
const MAX_KEYS: usize = 50;

/// The parameter that holds the values of placeholders.
pub const INPUTS: &str = "inputs";

/// The field of the inputs that holds the text for an agent that has named inputs, too.
const TEXT: &str = "input";

/// The function of the inputs around a term that uses them; the term itself if it uses none. A term that
/// takes a text gets it from the inputs as well, as `input`, unless it does not look at it: whoever runs the
/// unit gives all at once.
pub fn with_inputs(b: &mut Builder, inputs: &BTreeSet<String>, term: TermId, at: Span) -> TermId {
    with_typed_inputs(b, inputs, &BTreeMap::new(), term, at)
}

/// The same with the types of those inputs that are no texts.
pub fn with_typed_inputs(
    b: &mut Builder,
    inputs: &BTreeSet<String>,
    types: &BTreeMap<String, Type>,
    term: TermId,
    at: Span,
) -> TermId {
    if inputs.is_empty() {
        return term;
    }
    let mut fields: BTreeSet<Name> = inputs.iter().map(|n| Name::from(n.as_str())).collect();
    let body = match without_argument(b, term) {
        _ if !is_function(b, term) => term,
        Some(body) => body,
        None => {
            fields.insert(TEXT.into());
            let all = b.var(INPUTS, at);
            let text = b.add(Term::Field(all, TEXT.into()), at);
            b.app(term, text, at)
        }
    };
    let ty = |n: &Name| types.get(&**n).cloned().unwrap_or(Type::Str);
    let ty = Type::record(fields.iter().map(|n| (n.clone(), ty(n))).collect::<Vec<_>>());
    b.abs(INPUTS, Some(ty), body, at)
}

fn is_function(b: &Builder, mut term: TermId) -> bool {
    while let Term::Mem(_, inner) = b.term(term) {
        term = *inner;
    }
    matches!(
        b.term(term),
        Term::Abs(_) | Term::Fix { .. } | Term::Llm(..) | Term::Guard { .. } | Term::Tool(_)
    )
}

/// The body of a λ that does not mention its parameter.
fn without_argument(b: &Builder, term: TermId) -> Option<TermId> {
    let Term::Abs(abs) = b.term(term) else { return None };
    let mut open = vec![abs.body];
    while let Some(id) = open.pop() {
        match b.term(id) {
            Term::Var(name, _) if *name == abs.param => return None,
            Term::Abs(inner) if inner.param == abs.param => {}
            inner => open.extend(inner.children()),
        }
    }
    Some(abs.body)
}

/// Reports the keys of a mapping that are not `used`: those of the framework with the reason, the
/// others with the nearest known key. All at level info.
pub fn report_keys(
    node: Node<'_>,
    used: &[&'static str],
    unused: &[Unused],
    what: &str,
    out: &mut Vec<Diagnostic>,
) {
    let mut reported = 0;
    for entry in node.entries() {
        let name = entry.name();
        if used.contains(&name) {
            continue;
        }
        reported += 1;
        if reported > MAX_KEYS {
            return;
        }
        let span = entry.key.span();
        let d = match unused.iter().find(|(k, _)| *k == name) {
            Some((_, why)) => {
                Diagnostic::info(codes::UNUSED_KEY, format!("`{}` is left out: {why}", clip(name)), span)
            }
            None => {
                let d = Diagnostic::info(
                    codes::UNKNOWN_KEY,
                    format!("`{}` is not a key of {what}", clip(name)),
                    span,
                );
                let all: Vec<&str> = used.iter().copied().chain(unused.iter().map(|(k, _)| *k)).collect();
                match near(name, all, out) {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None => d,
                }
            }
        };
        out.push(d);
    }
}

/// The name nearest to what was written, if one is near. Where very many names are known, or very much
/// was reported already, none is looked for: a slip in each name would cost their number squared.
pub fn near<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str, IntoIter: ExactSizeIterator>,
    reported: &[Diagnostic],
) -> Option<&'a str> {
    const MAX_NAMES: usize = 300;
    const MAX_REPORTS: usize = 200;
    let known = known.into_iter();
    if known.len() > MAX_NAMES || reported.len() > MAX_REPORTS {
        return None;
    }
    nearest(name, known)
}

/// A diagnostic about a value of the wrong kind.
pub fn wrong_kind(entry: &Entry<'_>, expected: &str) -> Diagnostic {
    Diagnostic::warn(
        codes::WRONG_KIND,
        format!("`{}` takes {expected}, found {}", clip(entry.name()), entry.value.kind().as_str()),
        value_span(entry),
    )
}

/// The value of an entry, or its key if the value is empty.
pub fn value_span(entry: &Entry<'_>) -> Span {
    let span = entry.value.span();
    if span.start == span.end { entry.key.span() } else { span }
}

/// The text of a scalar. Anything else is reported and reads as missing.
pub fn text<'d>(node: Node<'d>, key: &str, out: &mut Vec<Diagnostic>) -> Option<&'d str> {
    let entry = node.entry(key)?;
    match entry.value.text() {
        Some(t) => Some(t),
        None if entry.value.is_null() => None,
        None => {
            out.push(wrong_kind(&entry, "text"));
            None
        }
    }
}

/// The strings of a list; a single string counts as a list of one. Anything else is reported.
pub fn names<'d>(entry: &Entry<'d>, out: &mut Vec<Diagnostic>) -> Vec<(&'d str, Node<'d>)> {
    let node = entry.value;
    match node.kind() {
        NodeKind::Null => Vec::new(),
        NodeKind::Sequence => {
            let mut names = Vec::new();
            for item in node.items() {
                match item.text().or_else(|| item.get("name").and_then(|n| n.text())) {
                    Some(t) => names.push((t, item)),
                    None => out.push(Diagnostic::warn(
                        codes::WRONG_KIND,
                        format!(
                            "`{}` takes a list of names, found {} in it",
                            clip(entry.name()),
                            item.kind().as_str()
                        ),
                        item.head(),
                    )),
                }
            }
            names
        }
        NodeKind::Mapping => {
            out.push(wrong_kind(entry, "a list of names"));
            Vec::new()
        }
        _ => node.text().map(|t| (t, node)).into_iter().collect(),
    }
}

/// Tools of one agent at most. Each is a branch of the agent's dispatch.
pub const MAX_TOOLS: usize = 5_000;

/// Reports that an agent has more than [`MAX_TOOLS`].
pub fn too_many_tools(at: Span) -> Diagnostic {
    Diagnostic::error(codes::TOO_MUCH, format!("more than {MAX_TOOLS} tools: the others are left out"), at)
}

/// Returns true if a text is a placeholder that the environment or a template engine fills in.
pub fn is_placeholder(text: &str) -> bool {
    let t = text.trim();
    (t.starts_with("${") && t.ends_with('}'))
        || (t.starts_with("{{") && t.ends_with("}}"))
        || (t.starts_with('$') && t.len() > 1)
}

/// Bound of a loop, written or default, with its origin.
#[derive(Clone)]
pub struct LoopBound {
    /// The bound.
    pub bound: Bound,
    /// `None` if it is written.
    pub origin: Option<BoundOrigin>,
    /// The place that says so, if one does.
    pub span: Option<Span>,
    /// Facts about the loop that its term does not state.
    pub facts: LoopFacts,
}

impl LoopBound {
    /// A bound that is written, at this place if it has one of its own.
    pub fn written(bound: Bound, span: Option<Span>) -> LoopBound {
        LoopBound { bound, origin: None, span, facts: LoopFacts::default() }
    }

    /// A bound that is not written, with where it comes from.
    pub fn unwritten(bound: Bound, origin: BoundOrigin) -> LoopBound {
        LoopBound { origin: Some(origin), ..LoopBound::written(bound, None) }
    }

    /// A bound that is a default, of which the text says whose.
    pub fn by_default(n: u64, origin: &str) -> LoopBound {
        LoopBound::unwritten(Bound::Finite(n), BoundOrigin::Default(origin.into()))
    }

    /// No bound at all, because of what `why` says.
    pub fn none(why: &str) -> LoopBound {
        LoopBound::unwritten(Bound::Infinite, BoundOrigin::Unlimited(why.into()))
    }

    /// A bound that exists or does not, which nobody here can know.
    pub fn unknown(why: &str) -> LoopBound {
        LoopBound::unwritten(Bound::Infinite, BoundOrigin::Unknown(why.into()))
    }

    /// Makes the bound for calls beside those of the term whose number isn't known. A loop of one iteration
    /// with this bound doesn't limit them.
    pub fn uncounted(why: &str) -> LoopBound {
        LoopBound::unwritten(Bound::Infinite, BoundOrigin::Uncounted(why.into()))
    }

    /// Makes the bound for runs that the term has once. A loop of one iteration with this bound costs as much
    /// as all of them.
    pub fn repeated(n: u64, why: &str) -> LoopBound {
        LoopBound::unwritten(Bound::Finite(n), BoundOrigin::Repeated(why.into()))
    }

    /// Returns the bound of an entry if it has a value, else this one.
    #[must_use]
    pub fn or_written(self, entry: Option<Entry<'_>>, out: &mut Vec<Diagnostic>) -> LoopBound {
        match entry.filter(|e| !e.value.is_null()) {
            // What is no number is reported, and the default holds.
            Some(e) => {
                let span = Some(value_span(&e));
                let facts = self.facts;
                LoopBound { facts, ..written_bound(&e, out).unwrap_or(LoopBound { span, ..self }) }
            }
            None => self,
        }
    }
}

/// Reads the bound of a loop from an entry; a value that is no whole number is reported.
pub fn loop_bound(
    entry: Option<Entry<'_>>,
    default: u64,
    default_origin: &str,
    out: &mut Vec<Diagnostic>,
) -> LoopBound {
    let by_default = |span| LoopBound { span, ..LoopBound::by_default(default, default_origin) };
    let Some(entry) = entry else { return by_default(None) };
    written_bound(&entry, out).unwrap_or_else(|| by_default(Some(value_span(&entry))))
}

/// The bound that an entry states; `None` if it is empty or no whole number, which is reported.
fn written_bound(entry: &Entry<'_>, out: &mut Vec<Diagnostic>) -> Option<LoopBound> {
    let span = Some(value_span(entry));
    let value = entry.value;
    if value.is_null() {
        return None;
    }
    // `"20"` is accepted: environment substitution makes strings of numbers.
    if let Some(n) = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok()) {
        return Some(LoopBound::written(Bound::Finite(n), span));
    }
    match value.as_str() {
        Some(t) if is_placeholder(t) => {
            let origin = format!("`{}`, which is known only when it runs", clip(t.trim()));
            let origin = BoundOrigin::Default(origin.into());
            Some(LoopBound { span, ..LoopBound::unwritten(Bound::Infinite, origin) })
        }
        _ => {
            let found =
                value.text().map_or_else(|| value.kind().as_str().to_string(), |t| format!("`{}`", clip(t)));
            out.push(Diagnostic::error(
                codes::WRONG_KIND,
                format!("`{}` takes a whole number that is not negative, found {found}", clip(entry.name())),
                value_span(entry),
            ));
            None
        }
    }
}

/// Model parameters from `model: name` or `model: {name: …, temperature: …, …}`. `names` are the
/// keys that may hold the model's name. Returns the place that names the model, if one does.
pub fn model(
    entry: Option<Entry<'_>>,
    names: &[&str],
    out: &mut Vec<Diagnostic>,
) -> (ModelParams, Option<Span>) {
    let mut params = ModelParams::default();
    let Some(entry) = entry else { return (params, None) };
    let node = entry.value;
    if let Some(name) = node.text() {
        params.model = Some(name.trim()).filter(|n| !n.is_empty()).map(Name::from);
        return (params, Some(value_span(&entry)));
    }
    if node.is_null() {
        return (params, Some(entry.key.span()));
    }
    if !node.is_mapping() {
        out.push(wrong_kind(&entry, "a name, or a mapping with a name"));
        return (params, Some(entry.key.span()));
    }
    let mut span = entry.key.span();
    for e in node.entries() {
        let key = e.name();
        if names.contains(&key) {
            match e.value.text() {
                Some(name) => {
                    params.model = Some(name.trim()).filter(|n| !n.is_empty()).map(Name::from);
                    span = value_span(&e);
                }
                None if e.value.is_null() => span = e.key.span(),
                None => out.push(wrong_kind(&e, "text")),
            }
            continue;
        }
        match key {
            "temperature" => match e.value.as_num() {
                Some(n) => params.temperature = Some(n),
                None if e.value.is_null() || e.value.as_str().is_some_and(is_placeholder) => {}
                None => out.push(wrong_kind(&e, "a number")),
            },
            "maxTokens" | "max_tokens" => match e.value.as_u64() {
                Some(n) => params.max_tokens = Some(n),
                None if e.value.is_null() || e.value.as_str().is_some_and(is_placeholder) => {}
                None => out.push(wrong_kind(&e, "a whole number")),
            },
            _ => {
                if let Some(data) = data(e.value, &mut 400) {
                    params.extra.push((Name::from(key), data));
                }
            }
        }
    }
    (params, Some(span))
}

/// A node as data; `None` if it has more nodes than `budget` (aliases can make it grow without end).
pub fn data(node: Node<'_>, budget: &mut usize) -> Option<Data> {
    // Recursion is bounded by the loader's depth limit for what is written, and by the budget for
    // what aliases make of it.
    *budget = budget.checked_sub(1)?;
    Some(match node.kind() {
        NodeKind::Null => Data::Null,
        NodeKind::Bool => Data::Bool(node.as_bool()?),
        NodeKind::Number => match node.as_num() {
            Some(n) => Data::Num(n),
            None => Data::str(node.text()?),
        },
        NodeKind::String => Data::str(node.as_str()?),
        NodeKind::Sequence => Data::list(node.items().map(|n| data(n, budget)).collect::<Option<Vec<_>>>()?),
        NodeKind::Mapping => {
            let fields = node.entries().map(|e| Some((Name::from(e.name()), data(e.value, budget)?)));
            Data::record(fields.collect::<Option<Vec<_>>>()?)
        }
    })
}

/// A part of a text: as it is, or the name in a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'t> {
    /// Text.
    Text(&'t str),
    /// The name in `{name}`.
    Hole(&'t str),
}

/// Splits a text at its `{name}` placeholders. Braces around anything but a name are text.
pub fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(open) = text[at..].find('{') {
        let open = at + open;
        at = open + 1;
        let Some(len) = text[at..].find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))
        else {
            break;
        };
        let name = &text[at..at + len];
        let first = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        if !first || !text[at + len..].starts_with('}') {
            continue;
        }
        if open > start {
            parts.push(Part::Text(&text[start..open]));
        }
        parts.push(Part::Hole(name));
        at += len + 1;
        start = at;
    }
    if start < text.len() || parts.is_empty() {
        parts.push(Part::Text(&text[start..]));
    }
    parts
}

/// Pieces of text and terms as one string: a literal if there are no terms in it, else an
/// interpolation.
pub struct Template {
    pieces: Vec<Result<String, TermId>>,
    span: Span,
}

impl Template {
    /// An empty text that came from `span`.
    pub fn new(span: Span) -> Self {
        Template { pieces: Vec::new(), span }
    }

    /// Adds text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        match self.pieces.last_mut() {
            Some(Ok(last)) => last.push_str(text),
            _ => self.pieces.push(Ok(text.to_string())),
        }
        self
    }

    /// Adds the value of a term.
    pub fn term(&mut self, term: TermId) -> &mut Self {
        self.pieces.push(Err(term));
        self
    }

    /// The term.
    pub fn build(self, b: &mut Builder) -> TermId {
        let span = self.span;
        // Texts that meet are one text, and an interpolation within is spliced in.
        let mut pieces: Vec<Result<String, TermId>> = Vec::new();
        let mut put = |piece: Result<String, TermId>| match (pieces.last_mut(), piece) {
            (Some(Ok(last)), Ok(t)) => last.push_str(&t),
            (_, Ok(t)) if t.is_empty() => {}
            (_, piece) => pieces.push(piece),
        };
        for piece in self.pieces {
            let parts = match &piece {
                Err(term) => match b.term(*term) {
                    Term::Prim(Prim::Format, operands) => operands.clone(),
                    _ => vec![*term],
                },
                Ok(_) => Vec::new(),
            };
            match piece {
                Ok(text) => put(Ok(text)),
                Err(_) => parts.into_iter().for_each(|part| match b.term(part) {
                    Term::Lit(Data::Str(text)) => put(Ok(text.to_string())),
                    _ => put(Err(part)),
                }),
            }
        }
        let mut operands: Vec<TermId> = Vec::new();
        for piece in pieces {
            operands.push(match piece {
                Ok(t) => b.lit(Data::str(t), span),
                Err(term) => term,
            });
        }
        match operands[..] {
            [] => b.lit(Data::str(""), span),
            [one] if matches!(b.term(one), Term::Lit(_)) => one,
            _ => b.add(Term::Prim(Prim::Format, operands), span),
        }
    }
}

/// Reports something undecided: the analysis neither finds a defect nor vouches for its absence.
pub fn undecided(code: &'static str, message: impl Into<String>, span: Span) -> Diagnostic {
    Diagnostic::new(Level::Unknown, code, message, span)
}
