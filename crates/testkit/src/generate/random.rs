//! Random programs. Most of what they do succeeds: terms are made for a type, and only now and then for
//! another.

use super::build::{FIELDS, PRELUDE, TAGS, role};
use super::maps::{in_maps, map_type, tree_type};
use super::{Ast, Op, Program, Reply};
use core_ir::{
    ASK_VERDICT, Among, AmongSource, AnswerSink, Approve, Bound, Builder, Catches, Code, Comparison, Data,
    EffectClass, EnumType, Globals, IfSugar, KeyDecl, LabelName, LabelSpec, Lattice, LatticeKind, Measure,
    ModelParams, Name, Num, PartLabel, PartPath, Pattern, Plain, Pred, Prim, Principal, Principals,
    ResultParts, Schema, SetStep, StoreDecl, Term, ToolDecl, ToolId, ToolParam, Type,
};
use diagnostics::{FileId, Span};
use std::sync::Arc;

/// Style of generated programs.
#[derive(Clone, Debug)]
pub struct Style {
    /// Approximate number of formers in a program.
    pub size: u32,
    /// Percentage of terms whose type does not fit.
    pub wild: u64,
    /// True if programs are well typed with few exceptions, so that hardly any use has a wrong or unknown
    /// type. Branches of a `par` may still write one key, guards may be impossible and indices out of range.
    pub typed: bool,
    /// True if there are parallel branches.
    pub parallel: bool,
    /// True if parallel branches run one at a time, so that the order of requests is determined.
    pub in_order: bool,
    /// True if there is `endorse`.
    pub endorse: bool,
    /// True if there is `declassify`.
    pub declassify: bool,
    /// True if some tools want approval, which endorses what is called and with what.
    pub approve: bool,
    /// True if some tools limit the calls that untrusted data decides. In branches that run at the same time
    /// none does: which call is the last depends on the order of responses.
    pub at_most: bool,
    /// True if some tools have sets that untrusted data may choose from, or want approval only where their
    /// bounds would refuse. A set is an endorsement.
    pub among: bool,
    /// True if some tools take plain text only (`plain`).
    pub plain: bool,
    /// True if some tools label parts of what they return, and programs look at them.
    pub parts: bool,
    /// True if some tools that want approval confirm their first argument.
    pub confirm: bool,
    /// True if programs look at the texts of errors and of messages that a run makes up, rather than
    /// only at their labels.
    pub messages: bool,
    /// The lattice, if it must be a certain one.
    pub lattice: Option<LatticeKind>,
    /// True if stores fail now and then.
    pub failing_stores: bool,
    /// True if tools label what they return, now and then.
    pub labeling: bool,
    /// True if some errors of models are permanent, and some `try`s let those pass.
    pub permanent: bool,
    /// True if calls are approved with other arguments, now and then.
    pub edits: bool,
    /// Variables that are in scope of the whole program (the first is the outermost). Programs use them
    /// often.
    pub given: Vec<Ty>,
    /// Number of them, from the first, on which programs base decisions.
    pub deciding: usize,
}

impl Default for Style {
    fn default() -> Style {
        Style {
            size: 40,
            wild: 2,
            typed: false,
            parallel: true,
            in_order: false,
            endorse: true,
            declassify: true,
            approve: true,
            at_most: true,
            among: true,
            plain: true,
            parts: false,
            confirm: true,
            messages: false,
            lattice: None,
            failing_stores: true,
            labeling: true,
            permanent: true,
            edits: true,
            given: Vec::new(),
            deciding: 1,
        }
    }
}

/// Random numbers that depend on the seed alone (SplitMix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A sequence of a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 if that is 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.draw() % n.max(1) as u64) as usize
    }

    /// True `percent` times in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.draw() % 100 < percent
    }

    /// One of the items, with its index.
    pub fn pick<'t, T>(&mut self, items: &'t [T]) -> Option<(usize, &'t T)> {
        let i = self.below(items.len());
        items.get(i).map(|item| (i, item))
    }

    fn byte(&mut self) -> u8 {
        self.draw() as u8
    }

    fn one<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}

/// The types that terms are made for.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // As `core_ir::Type`.
pub enum Ty {
    Null,
    Bool,
    Num,
    Str,
    List(Box<Ty>),
    /// A record with the fields `a`, `b`, … of these types.
    Record(Vec<Ty>),
    Pair(Box<(Ty, Ty)>),
    Fun(Box<(Ty, Ty)>),
    /// A tag with a number.
    Tag,
    /// A label of the run's lattice.
    Label,
}

impl Ty {
    /// Returns true if no value of it contains a function.
    fn is_data(&self) -> bool {
        match self {
            Ty::Fun(_) => false,
            Ty::List(t) => t.is_data(),
            Ty::Record(ts) => ts.iter().all(Ty::is_data),
            Ty::Pair(p) => p.0.is_data() && p.1.is_data(),
            _ => true,
        }
    }

    /// Returns true if [`check`] gives its very type.
    fn is_checked(&self) -> bool {
        match self {
            Ty::Fun(_) | Ty::Label | Ty::Tag => false,
            Ty::List(t) => t.is_checked(),
            Ty::Record(ts) => ts.iter().all(Ty::is_checked),
            Ty::Pair(p) => p.0.is_checked() && p.1.is_checked(),
            _ => true,
        }
    }
}

/// Data of a type, for answers of the world.
pub(super) fn data_of(rng: &mut Rng, ty: &Type) -> Data {
    data_within(rng, ty, 3)
}

/// The same, with values of recursive types at most that deep.
fn data_within(rng: &mut Rng, ty: &Type, depth: u32) -> Data {
    match ty {
        Type::Bool => Data::Bool(rng.chance(50)),
        Type::Num => number(rng),
        Type::Str => text(rng),
        Type::Null => Data::Null,
        // What is left of a recursive type has no parts.
        Type::List(_) if depth == 0 => Data::list([]),
        Type::List(t) => {
            let n = rng.below(3);
            Data::list((0..n).map(|_| data_within(rng, t, depth)).collect::<Vec<_>>())
        }
        Type::Option(_) if rng.chance(30) => Data::Null,
        Type::Option(t) => data_within(rng, t, depth),
        Type::Record(fields) => Data::record(
            fields.iter().map(|(n, t)| (n.clone(), data_within(rng, t, depth))).collect::<Vec<_>>(),
        ),
        Type::Map(of) => {
            let mut entries: Vec<(Name, Data)> = Vec::new();
            for _ in 0..rng.below(3) {
                if let Data::Str(key) = data_within(rng, &of.0, depth)
                    && !entries.iter().any(|(n, _)| **n == *key)
                {
                    entries.push((Name::from(&*key), data_within(rng, &of.1, depth)));
                }
            }
            Data::record(entries)
        }
        Type::Enum(e) => Data::str(&*rng.one(&e.variants)),
        Type::Variant(tags) => {
            let (n, t) = rng.one(tags);
            Data::Tag(n, Arc::new(data_within(rng, &t, depth)))
        }
        Type::Pair(p) => {
            let a = data_within(rng, &p.0, depth);
            Data::Pair(Arc::new((a, data_within(rng, &p.1, depth))))
        }
        Type::Refined(r) => data_within(rng, &r.0, depth),
        Type::Rec(r) => data_within(rng, &r.unfold(), depth.saturating_sub(1)),
        Type::Dyn | Type::Fun(_) | Type::Var(_) => match rng.below(4) {
            0 => number(rng),
            1 => text(rng),
            2 => Data::Bool(true),
            _ => Data::list([number(rng)]),
        },
    }
}

fn number(rng: &mut Rng) -> Data {
    let n = Num::from(rng.below(7) as i64 - 2);
    match rng.chance(8) {
        true => Data::Num(n.div(&Num::from(3)).unwrap_or(Num::ZERO)),
        false => Data::Num(n),
    }
}

fn text(rng: &mut Rng) -> Data {
    Data::str(rng.one(&["", "a", "yes", "no", "two @words", " Yes. ", "é\"\n", "maybe", "12"]))
}

pub(super) fn label(rng: &mut Rng, kind: LatticeKind) -> Data {
    let some = |rng: &mut Rng, names: &[&'static str]| {
        Data::list(names.iter().filter(|_| rng.chance(50)).map(|n| Data::str(*n)).collect::<Vec<_>>())
    };
    match kind.words() {
        words @ [_, ..] => some(rng, words),
        [] => {
            let sources = if rng.chance(10) { Data::str("*") } else { some(rng, &["web", "mail"]) };
            let readers = if rng.chance(50) { Data::str("*") } else { some(rng, &["ann", "bob"]) };
            match rng.below(4) {
                0 => Data::record([("sources".into(), sources)]),
                1 => Data::record([("readers".into(), readers)]),
                _ => Data::record([("sources".into(), sources), ("readers".into(), readers)]),
            }
        }
    }
}

/// A number as the end of a loop that is decided by its last argument, which has a label or is given. The
/// function of the loop may be in a variable, may have a label of its own, and may take an argument that it
/// needs or not.
fn counted_down(number: Ast, rng: &mut Rng, lattice: LatticeKind, style: &Style, inner: u8) -> Ast {
    let labeled = |rng: &mut Rng, e| node(Op::Relabel, [Ast::lit(label(rng, lattice)), e]);
    let small = |rng: &mut Rng| Ast::lit(Num::from(rng.below(4) as i64));
    let count = Ast::var(0);
    let less = node(Op::Prim(Prim::Lt), [count.clone(), Ast::lit(Num::from(rng.below(3) as i64))]);
    let next = node(Op::Prim(Prim::Sub), [count, Ast::lit(Num::ONE)]);
    let other =
        rng.chance(50).then(|| if rng.chance(50) { labeled(rng, number.clone()) } else { small(rng) });
    let (own, end) = match &other {
        None => (Ast::var(1), number),
        Some(_) => {
            let given = if rng.chance(50) { Ast::var(1) } else { small(rng) };
            (node(Op::App, [Ast::var(2), given]), if rng.chance(50) { Ast::var(1) } else { number })
        }
    };
    let mut functional = node(Op::Lam, [node(Op::If, [less, end, node(Op::App, [own, next])])]);
    for _ in 0..=usize::from(other.is_some()) {
        functional = node(Op::Lam, [functional]);
    }
    if rng.chance(20) {
        functional = labeled(rng, functional);
    }
    let bound = Op::Fix(Bound::Finite(1 + rng.below(5) as u64));
    let looped = match rng.chance(30) {
        true => node(Op::Let, [functional, node(bound, [Ast::var(0)])]),
        false => node(bound, [functional]),
    };
    let given = style.given.iter().take(style.deciding).position(|t| *t == Ty::Num);
    let begin = match given {
        // Behind the variable that holds the loop.
        Some(which) if rng.chance(50) => {
            let variable = style.given.len() - which + usize::from(inner);
            Ast::var(u8::try_from(variable).unwrap_or(u8::MAX))
        }
        _ => {
            let number = small(rng);
            labeled(rng, number)
        }
    };
    let function = match other {
        Some(other) => node(Op::App, [Ast::var(1), other]),
        None => Ast::var(1),
    };
    let call = node(Op::App, [function, Ast::var(0)]);
    node(Op::Let, [looped, node(Op::Let, [begin, call])])
}

/// A number that a function of three arguments gives, of which the last one has captured some of the others,
/// in any order. The function may get its arguments at once or one by one, and it or they may have labels.
fn of_three(number: Ast, rng: &mut Rng, lattice: LatticeKind) -> Ast {
    let labeled = |rng: &mut Rng, e| match rng.chance(40) {
        true => node(Op::Relabel, [Ast::lit(label(rng, lattice)), e]),
        false => e,
    };
    let (x, y) = (Ast::var(rng.below(3) as u8), Ast::var(rng.below(3) as u8));
    let body = match rng.below(4) {
        0 => x,
        1 => node(Op::If, [node(Op::Prim(Prim::Lt), [x.clone(), y.clone()]), y, x]),
        _ => node(Op::Prim(Prim::Sub), [x, y]),
    };
    let mut function = body;
    for _ in 0..3 {
        function = node(Op::Lam, [function]);
    }
    let mut args = [0, 1, 2].map(|_| match rng.chance(50) {
        true => number.clone(),
        false => Ast::lit(Num::from(rng.below(9) as i64)),
    });
    for arg in &mut args {
        *arg = labeled(rng, arg.clone());
    }
    // Held by a variable with this many arguments, which are literals.
    let held = rng.below(4);
    let mut call = labeled(rng, function);
    for (i, arg) in args.into_iter().enumerate() {
        if i == held {
            call = node(Op::Let, [call, labeled(rng, Ast::var(0))]);
        }
        call = node(Op::App, [call, arg]);
    }
    call
}

/// Sometimes a test of what decides in programs of this style, below `inner` binders.
pub(super) fn decision(rng: &mut Rng, style: &Style, inner: u8) -> Option<Ast> {
    let deciding = style.deciding.min(style.given.len());
    if deciding == 0 || !rng.chance(40) {
        return None;
    }
    let which = rng.below(deciding);
    let variable = style.given.len() - 1 - which + usize::from(inner);
    Some(test_of(Ast::var(u8::try_from(variable).unwrap_or(u8::MAX)), &style.given[which]))
}

/// The parts of a tree, each written anew under the binders around it. The position of an index is left as it
/// is.
pub(super) fn rewritten(
    op: &Op,
    kids: Vec<Ast>,
    inner: u8,
    mut write: impl FnMut(Ast, u8) -> Ast,
) -> Vec<Ast> {
    let is_fixed = |i: usize| matches!(op, Op::Index) && i > 0;
    let kids = kids.into_iter().enumerate();
    kids.map(|(i, kid)| match is_fixed(i) {
        true => kid,
        false => write(kid, inner.saturating_add(bound(op, i))),
    })
    .collect()
}

/// The tree with some numbers and pairs written so that a machine may carry them out in place: by a function
/// of a number, which may have a label or be held by a variable, by an `if`, by a loop, and by the branches
/// of `f | g`.
fn at_hand(ast: Ast, rng: &mut Rng, lattice: LatticeKind, style: &Style, inner: u8) -> Ast {
    let Ast { op, kids } = ast;
    let kids = rewritten(&op, kids, inner, |kid, inner| at_hand(kid, rng, lattice, style, inner));
    match op {
        Op::Lit(Data::Num(_)) if rng.chance(50) => {
            let number = node(op, []);
            // Numbers of their own, so that the rest does not depend on them.
            let own = &mut Rng::new(rng.0.rotate_left(17));
            match own.below(100) {
                0..15 => return counted_down(number, own, lattice, style, inner),
                // What a tool makes of it, which gives a number mostly.
                15..20 => {
                    let list = node(Op::List, [node(Op::App, [node(Op::Tool(0), []), number])]);
                    return node(Op::Index, [list, Ast::lit(Num::ZERO)]);
                }
                20..30 => return of_three(number, own, lattice),
                _ => {}
            }
            let body = match rng.below(4) {
                0 => Ast::var(0),
                1 => node(
                    Op::If,
                    [node(Op::Prim(Prim::Lt), [Ast::var(0), number.clone()]), number.clone(), Ast::var(0)],
                ),
                _ => number.clone(),
            };
            let mut function = node(Op::Lam, [body]);
            if let Some(test) = decision(rng, style, inner) {
                function = node(Op::If, [test, function, node(Op::Lam, [Ast::lit(Num::from(7))])]);
            }
            match rng.below(4) {
                0 => node(Op::App, [function, number]),
                which => {
                    let labeled = match which {
                        1 => function,
                        _ => node(Op::Relabel, [Ast::lit(label(rng, lattice)), function]),
                    };
                    let call = node(Op::App, [Ast::var(0), number]);
                    let used = match rng.below(2) {
                        0 => call,
                        _ => node(Op::Prim(Prim::Add), [call, Ast::lit(Num::ZERO)]),
                    };
                    node(Op::Let, [labeled, used])
                }
            }
        }
        Op::Pair if style.parallel && kids.len() == 2 && rng.chance(50) => {
            let most = style.in_order.then_some(1);
            let part = |n: i64| node(Op::Index, [Ast::var(0), Ast::lit(Num::from(n))]);
            let own = &mut Rng::new(rng.0.rotate_left(17));
            if own.chance(50) {
                // By a function that a variable holds, which may have a label.
                let kids: Vec<Ast> = kids.into_iter().map(shifted).collect();
                let branches = node(Op::Par(most), kids);
                let mut function =
                    node(Op::Lam, [node(Op::Let, [branches, node(Op::Pair, [part(0), part(1)])])]);
                // The other function makes its pair as the rules say.
                if let Some(test) = decision(own, style, inner) {
                    let other = node(Op::Pair, [Ast::lit(Num::from(7)), Ast::lit(Num::from(8))]);
                    function = node(Op::If, [test, function, node(Op::Lam, [other])]);
                }
                if own.chance(50) {
                    function = node(Op::Relabel, [Ast::lit(label(own, lattice)), function]);
                }
                let call = node(Op::App, [Ast::var(0), Ast::lit(Num::from(own.below(4) as i64))]);
                return node(Op::Let, [function, node(Op::Let, [call, Ast::var(0)])]);
            }
            node(Op::Let, [node(Op::Par(most), kids), node(Op::Pair, [part(0), part(1)])])
        }
        op => node(op, kids),
    }
}

/// A random program.
pub(crate) fn program(rng: &mut Rng, style: &Style) -> Program {
    // The first lattice in half of the programs.
    let others = LatticeKind::ALL.len() - 1;
    let drawn = rng.below(2 * others);
    let lattice = style
        .lattice
        .unwrap_or_else(|| LatticeKind::ALL.get(drawn + 1).map_or(LatticeKind::default(), |(_, kind)| *kind));
    let mut tools = tools(rng, lattice, style.approve, style.at_most && (style.in_order || !style.parallel));
    if style.among {
        add_sets(rng, lattice, &mut tools, style.parts);
    }
    if style.plain {
        add_forms(rng, &mut tools);
    }
    if style.parts {
        add_parts(rng, lattice, &mut tools);
    }
    if style.parts {
        add_completing(rng, &mut tools);
        add_verdicts(rng, &mut tools, style.approve);
    }
    if style.parts && lattice == LatticeKind::SourcesReaders {
        add_includes(rng, &mut tools);
    }
    if style.approve && style.confirm {
        add_confirmations(rng, &mut tools);
    }
    // A model with tools replies with a tag, which is of no type that programs are made for.
    let offered = if style.typed { 0 } else { tools.len() };
    // After the others, whose places programs know.
    if style.among {
        add_listed(rng, lattice, &mut tools, style.parts);
    }
    let mut stores = stores(rng, lattice);
    let models = models(rng, offered);
    let focus = rng.chance(50).then(|| rng.draw() as usize);
    let generated_endorse = (style.endorse || style.declassify) && rng.chance(30);
    let of_tools = |wanted: bool| -> Vec<u8> {
        (0u8..).zip(&models).filter(|(_, m)| wanted != m.tools.is_empty()).map(|m| m.0).collect()
    };
    let (with_tools, without_tools) = (of_tools(true), of_tools(false));
    let mut making = Making {
        with_tools,
        without_tools,
        rng,
        style,
        lattice,
        scope: style.given.iter().cloned().chain(style.parts.then(mails)).collect(),
        depth: 0,
        keys: Vec::new(),
        in_code: false,
        forbidden: !style.typed && !generated_endorse,
        focus,
        free: false,
    };
    let ty = making.any_type(2);
    // Most programs have a store from the outset, or keys would hardly ever be used.
    let ast = match making.rng.chance(65) {
        // Before anything else has a label.
        _ if !style.typed && making.rng.chance(25) => making.bare_shape(&ty),
        true => making.with_store(&ty, style.size),
        false => making.term(&ty, style.size),
    };
    let ast = match style.parts {
        true => {
            let given = if making.rng.chance(80) { Ast::lit(Data::Null) } else { making.leaf(&Ty::Num) };
            node(Op::Let, [node(Op::App, [node(Op::Tool(MAILS), []), given]), ast])
        }
        false => ast,
    };
    making.in_code = true;
    making.keys.clear();
    making.scope.clear();
    let mut replies = Vec::new();
    for _ in 0..3 {
        let ty = making.any_type(1);
        let ast = match making.rng.below(100) {
            n if n < 25 && making.forbidden => making.reclassified_draw(),
            // No tool may be in such code, whatever else may be.
            25..30 if !style.typed => node(Op::App, [node(Op::Tool(0), []), making.leaf(&Ty::Num)]),
            _ => making.term(&ty, style.size / 4),
        };
        replies.push(Reply::Code(ast));
    }
    replies.push(Reply::Text("{\"a\": [1, 2.5, null]}".into()));
    replies.push(Reply::Text("this is (no code".into()));
    // A variable that another hides may be of its type or not.
    let shadowing = rng.chance(15) && !style.typed;
    let clearance = spec(rng, lattice, 80, 3);
    let seed = rng.draw();
    // Numbers of their own, so that the rest of a seed's program does not depend on it.
    let mut own = Rng::new(seed.rotate_left(32));
    limit(&mut stores, &mut Rng::new(seed.rotate_left(16)));
    if !style.typed && own.chance(10) {
        // No store may be declared in such code.
        let write = node(Op::Remember(own.byte()), [Ast::lit(Data::Num(Num::ONE))]);
        let uses = if own.chance(50) { write } else { node(Op::Recall(own.byte()), []) };
        replies[0] = Reply::Code(node(Op::Mem(own.byte()), [uses]));
    }
    let ast = if !style.typed && own.chance(25) { at_hand(ast, &mut own, lattice, style, 0) } else { ast };
    // The type analysis knows little of maps and of recursive types.
    let with_maps = own.chance(if style.typed { 4 } else { 15 });
    let ast = if with_maps { in_maps(ast, &mut own, lattice, style, 0) } else { ast };
    if with_maps
        && !style.typed
        && let Some(any) = tools.iter_mut().find(|t| *t.name == *"any")
    {
        any.result = if own.chance(50) { map_type() } else { tree_type() };
    }
    Program {
        ast,
        lattice,
        shadowing,
        clearance,
        generated_endorse,
        answer: AnswerSink::default(),
        messages: style.messages,
        failing_stores: style.failing_stores,
        labeling: style.labeling,
        permanent: style.permanent,
        edits: style.edits,
        tools,
        stores,
        models,
        replies,
        seed,
    }
}

pub(super) fn spec(rng: &mut Rng, lattice: LatticeKind, top: u64, bottom: u64) -> LabelSpec {
    match rng.draw() % 100 {
        n if n < top => LabelSpec::TOP,
        n if n < top + bottom => LabelSpec::BOTTOM,
        n if n % 3 == 0 => LabelSpec::Axes { untrusted: true, secret: false },
        n if n % 3 == 1 => LabelSpec::Axes { untrusted: false, secret: true },
        _ => LabelSpec::Exact(label(rng, lattice)),
    }
}

const NOWHERE: Span = Span { file: FileId(0), start: 0, end: 0 };

fn tools(rng: &mut Rng, lattice: LatticeKind, approve: bool, at_most: bool) -> Vec<ToolDecl> {
    // Numbers of their own, so that the rest does not depend on them.
    let mut counts = Rng::new(rng.0.rotate_left(23));
    let shapes = [
        ("double", vec![("x", Type::Num)], Type::Num),
        ("look", vec![("a", Type::Num), ("b", Type::Str)], Type::Str),
        ("check", vec![], Type::Bool),
        ("any", vec![("a", Type::Dyn)], Type::Dyn),
        (
            "many",
            vec![("a", Type::Num), ("b", Type::option(Type::Str))],
            Type::record([("a".into(), Type::Num), ("b".into(), Type::list(Type::Str))]),
        ),
        ("maybe", vec![("a", Type::option(Type::Num)), ("b", Type::option(Type::Str))], Type::Num),
    ];
    shapes
        .into_iter()
        .map(|(name, params, result)| {
            let policy = rng.chance(30).then(|| policy(rng, lattice, params.first().map_or("x", |p| p.0)));
            (name, params, result, policy)
        })
        .collect::<Vec<_>>()
        .into_iter()
        .map(|(name, params, result, policy)| {
            // What may be left out matters where little is admitted: one bound that admits all hides every
            // call.
            let (top, bottom) = if name == "maybe" { (15, 45) } else { (60, 10) };
            (name, params, result, policy, top, bottom)
        })
        .map(|(name, params, result, policy, top, bottom)| ToolDecl {
            params: params
                .into_iter()
                .map(|(n, ty)| ToolParam {
                    name: n.into(),
                    ty,
                    bound: spec(rng, lattice, top, bottom),
                    default: None,
                })
                .collect(),
            result,
            effect: EffectClass::Write,
            control: spec(rng, lattice, top, bottom),
            label: spec(rng, lattice, 5, 50),
            approve: if approve && rng.chance(40) { Approve::Always } else { Approve::Never },
            at_most: (at_most && counts.chance(20)).then(|| counts.below(3) as u64),
            policy,
            ..ToolDecl::unknown(name.into(), NOWHERE)
        })
        .collect()
}

/// Index of the tool that returns a list of records with labels for their parts.
const MAILS: u8 = 6;

/// The type of what it returns.
fn mails() -> Ty {
    Ty::List(Box::new(Ty::Record(vec![Ty::Num, Ty::Str, Ty::List(Box::new(Ty::Str))])))
}

/// The principals that texts of generated worlds name.
pub fn principals() -> Principals {
    let mut principals = Principals::default();
    for (value, name, trusted) in [("yes", "me", true), ("a", "web", false), ("no", "ann", false)] {
        principals.values.insert(value.into(), Principal { name: name.into(), trusted });
    }
    principals
}

/// Adds tools that label parts of what they return, and gives the others labels of parts, too.
fn add_parts(rng: &mut Rng, lattice: LatticeKind, tools: &mut Vec<ToolDecl>) {
    let mut rng = Rng::new(rng.0.rotate_left(13));
    let mail = Type::record([
        ("a".into(), Type::Num),
        ("b".into(), Type::Str),
        ("c".into(), Type::list(Type::Str)),
        ("d".into(), Type::option(Type::Str)),
    ]);
    let given =
        ToolParam { name: "a".into(), ty: Type::option(Type::Num), bound: LabelSpec::TOP, default: None };
    let tool = |name: &str, result: Type, label| ToolDecl {
        params: vec![given.clone()],
        result,
        effect: EffectClass::Read,
        control: LabelSpec::TOP,
        label,
        ..ToolDecl::unknown(name.into(), NOWHERE)
    };
    let labels = [spec(&mut rng, lattice, 2, 80), spec(&mut rng, lattice, 2, 80)];
    let [one, other] = labels;
    tools.push(tool("mails", Type::list(mail), one));
    tools.push(tool("pages", Type::Dyn, other));
    for tool in tools.iter_mut() {
        let (paths, most): (&[&str], _) = match &*tool.name {
            "mails" => {
                (&["", "[]", "[].a", "[].b", "[].c", "[].c[]", "[].d", "[]{*}", "[].e", "[].b", "[].c"], 6)
            }
            "pages" => (&["{*}", "{*}.a", "a", "a.b", "{*}{*}", "b[]", "[]", "{*}.b", "a{*}"], 5),
            "many" => (&["", "a", "b", "b[]", "{*}"], 3),
            "any" => (&["[]", "", "a"], 2),
            _ => continue,
        };
        let rules: Vec<PartLabel> =
            (0..rng.below(most + 1)).map(|_| part(&mut rng, lattice, paths)).collect();
        tool.parts = ResultParts::new(rules);
    }
}

fn part(rng: &mut Rng, lattice: LatticeKind, paths: &[&str]) -> PartLabel {
    // INVARIANT: the paths above are paths.
    let path = PartPath::parse(rng.one(paths)).expect("a path");
    let names = |rng: &mut Rng| -> Box<[LabelName]> {
        let fields = ["b", "b", "c", "c", "d", "a", "e"];
        let name = |rng: &mut Rng| match rng.below(12) {
            0 => LabelName::Argument("a".into()),
            _ => LabelName::Field(rng.one(&fields).into()),
        };
        (0..=rng.below(2)).map(|_| name(rng)).collect()
    };
    let label = spec(rng, lattice, 5, 45);
    let source = if rng.chance(30) { names(rng) } else { Box::default() };
    let readers = if rng.chance(20) { names(rng) } else { Box::default() };
    PartLabel { path, label, source, readers }
}

/// Gives some tools sets, and some of those that want approval want it only where their bounds would refuse.
/// Programs call the reads of sets themselves, too.
fn add_sets(rng: &mut Rng, lattice: LatticeKind, tools: &mut [ToolDecl], parts: bool) {
    // Numbers of their own, so that the rest does not depend on them.
    let mut rng = Rng::new(rng.0.rotate_left(41));
    let reads = ["check", "maybe"];
    if rng.chance(50) {
        for tool in tools.iter_mut().filter(|t| reads.contains(&&*t.name)) {
            (tool.effect, tool.approve, tool.policy) = (EffectClass::Read, Approve::Never, None);
            tool.label = spec(&mut rng, lattice, 5, 80);
        }
    }
    for tool in tools.iter_mut() {
        if tool.approve.may_ask() && rng.chance(50) {
            tool.approve = Approve::IfRefused;
        }
        if tool.params.is_empty() || reads.contains(&&*tool.name) || rng.chance(40) {
            continue;
        }
        let mut sets = Vec::new();
        for _ in 0..=rng.below(2) {
            let source = match rng.below(4) {
                1 if parts => {
                    let values = [Data::Num(Num::from(1)), Data::str("a"), Data::str("no"), Data::Bool(true)];
                    AmongSource::Values(values[rng.below(3)..].into())
                }
                0 => AmongSource::Request,
                n => AmongSource::Tool(reads[n % 2].into()),
            };
            let path = |rng: &mut Rng| match rng.chance(20) {
                true if parts => match rng.below(3) {
                    0 => vec![SetStep::Values],
                    1 => vec![SetStep::Keys],
                    _ => vec![SetStep::Field("a".into())],
                },
                true => vec![SetStep::Field("a".into())],
                false => Vec::new(),
            };
            let several = tool.params.len() > 1 && rng.chance(25);
            let params = match several {
                true => tool.params.iter().map(|p| (p.name.clone(), path(&mut rng))).collect(),
                false => {
                    let at = rng.below(tool.params.len());
                    vec![(tool.params[at].name.clone(), path(&mut rng))]
                }
            };
            sets.push(Among { source, params });
        }
        tool.among = sets.into();
    }
}

/// Some sets are of a read that gives several items, with a part for each parameter. Programs hardly call it.
fn add_listed(rng: &mut Rng, lattice: LatticeKind, tools: &mut Vec<ToolDecl>, parts: bool) {
    // Numbers of their own, so that the rest does not depend on them.
    let mut rng = Rng::new(rng.0.rotate_left(7));
    if rng.chance(50) {
        return;
    }
    let fields = [("a".into(), Type::Num), ("b".into(), Type::Str)];
    for tool in tools.iter_mut().filter(|t| !t.among.is_empty()) {
        for among in tool.among.iter_mut() {
            if !rng.chance(70) {
                continue;
            }
            among.source = AmongSource::Tool("listed".into());
            for (param, path) in &mut among.params {
                *path = vec![match parts.then(|| rng.below(8)) {
                    Some(0) => SetStep::Values,
                    Some(1) => SetStep::Keys,
                    _ => SetStep::Field(if &**param == "b" { "b" } else { "a" }.into()),
                }];
            }
        }
    }
    let label = spec(&mut rng, lattice, 5, 80);
    let paths = ["", "[]", "[].a", "[].b", "[]{*}", "[].c"];
    let rules = (0..if parts { rng.below(4) } else { 0 }).map(|_| part(&mut rng, lattice, &paths));
    let rules = ResultParts::new(rules.collect::<Vec<_>>());
    tools.push(ToolDecl {
        effect: EffectClass::Read,
        label,
        control: LabelSpec::TOP,
        result: Type::list(Type::record(fields)),
        params: Vec::new(),
        parts: rules,
        ..ToolDecl::unknown("listed".into(), NOWHERE)
    });
}

/// Makes some of the tools that want approval confirmations.
fn add_confirmations(rng: &mut Rng, tools: &mut [ToolDecl]) {
    // Numbers of their own, so that the rest does not depend on them.
    let mut rng = Rng::new(rng.0.rotate_left(29));
    for tool in tools.iter_mut().filter(|t| t.approve.may_ask() && !t.can_be_a_set()) {
        // As `ToolDecl::confirmation`: it gives back its argument, and has no label of its own.
        let gives_its_argument = tool.params.first().is_some_and(|p| p.ty == tool.result);
        if rng.chance(30) && gives_its_argument {
            tool.confirms = true;
            tool.label = LabelSpec::BOTTOM;
        }
    }
}

/// Gives some parameters a form of untrusted text.
fn add_forms(rng: &mut Rng, tools: &mut [ToolDecl]) {
    // Numbers of their own, so that the rest does not depend on them.
    let mut rng = Rng::new(rng.0.rotate_left(11));
    for tool in tools.iter_mut() {
        let forms = tool.params.iter().filter(|_| rng.chance(30)).map(|p| (p.name.clone(), Plain::NoLinks));
        tool.plain = forms.collect();
    }
}

/// Some parameters only complete calls, or have a closed form.
fn add_completing(rng: &mut Rng, tools: &mut [ToolDecl]) {
    // Numbers of their own, so that the rest does not depend on them.
    let mut rng = Rng::new(rng.0.rotate_left(19));
    for tool in tools.iter_mut() {
        let names = |rng: &mut Rng, chance| -> Vec<Name> {
            tool.params.iter().filter(|_| rng.chance(chance)).map(|p| p.name.clone()).collect()
        };
        let (completes, forms) = (names(&mut rng, 20), names(&mut rng, 20));
        // INVARIANT: this is a regular expression.
        let form = Pattern::new("[0-9]+|[a-m]*").expect("a pattern");
        tool.completes = completes.into();
        tool.pattern = forms.into_iter().map(|name| (name, form.clone())).collect();
    }
}

/// Some policies refuse or fail whatever they get, and some leave calls to a person.
fn add_verdicts(rng: &mut Rng, tools: &mut [ToolDecl], approve: bool) {
    // Numbers of their own, so that the rest does not depend on them.
    let mut rng = Rng::new(rng.0.rotate_left(37));
    for tool in tools.iter_mut().filter(|t| t.policy.is_some()) {
        if rng.chance(60) {
            continue;
        }
        let mut b = Builder::new();
        let body = match rng.below(4) {
            0 if approve => b.add(Term::Tag(ASK_VERDICT.into(), None), NOWHERE),
            0 | 1 => b.lit(false, NOWHERE),
            2 => b.lit("why", NOWHERE),
            _ => {
                let why = b.lit("why", NOWHERE);
                b.add(Term::Fail(why), NOWHERE)
            }
        };
        let f = b.abs("a", None, body, NOWHERE);
        tool.policy = Some(Arc::new(b.finish(f, &Globals::none()).expect("a closed function")));
    }
}

/// For some parameters, another one names who must be among the readers.
fn add_includes(rng: &mut Rng, tools: &mut [ToolDecl]) {
    // Numbers of their own, so that the rest does not depend on them.
    let mut rng = Rng::new(rng.0.rotate_left(17));
    for tool in tools.iter_mut().filter(|t| !t.params.is_empty()) {
        if rng.chance(30) {
            let mut name = || tool.params[rng.below(tool.params.len())].name.clone();
            tool.includes = [(name(), [name()].into())].into();
        }
    }
}

/// A policy: it looks at a value or at a label, mostly of the parameter given, if it looks at anything.
fn policy(rng: &mut Rng, lattice: LatticeKind, first: &'static str) -> Arc<Code> {
    let mut b = Builder::new();
    let (parameter, part) = (rng.one(&[first, first, "b"]), rng.one(&["value", "label"]));
    let a = b.var("a", NOWHERE);
    let a = b.add(Term::Field(a, parameter.into()), NOWHERE);
    let a = b.add(Term::Field(a, part.into()), NOWHERE);
    let other = b.lit(if part == "label" { label(rng, lattice) } else { number(rng) }, NOWHERE);
    let differs = b.add(Term::Prim(Prim::Ne, vec![a, other]), NOWHERE);
    let body = match rng.below(9) {
        0 => b.lit(true, NOWHERE),
        // What it says has a label of its own.
        1 | 2 => {
            let l = b.lit(label(rng, lattice), NOWHERE);
            b.add(Term::Relabel(l, differs), NOWHERE)
        }
        3 | 4 => {
            let (l, yes) = (b.lit(label(rng, lattice), NOWHERE), b.lit(true, NOWHERE));
            b.add(Term::Relabel(l, yes), NOWHERE)
        }
        5 => {
            let (yes, why) = (b.lit(true, NOWHERE), b.lit("because", NOWHERE));
            b.add(Term::If(differs, yes, why, IfSugar::Plain), NOWHERE)
        }
        _ => differs,
    };
    let f = b.abs("a", None, body, NOWHERE);
    Arc::new(b.finish(f, &Globals::none()).expect("a closed function"))
}

fn stores(rng: &mut Rng, lattice: LatticeKind) -> Vec<StoreDecl> {
    let mut store = |name: &str, keys: Vec<(&str, Type, Option<Data>)>| StoreDecl {
        name: name.into(),
        keys: keys
            .into_iter()
            .map(|(n, ty, initial)| KeyDecl {
                name: n.into(),
                ty,
                label: spec(rng, lattice, 35, 25),
                initial,
            })
            .collect(),
        capacity: None,
        ttl: None,
        backend: None,
        span: NOWHERE,
    };
    vec![
        store(
            "main",
            vec![("n", Type::Num, Some(Data::Num(Num::ONE))), ("s", Type::Str, None), ("d", Type::Dyn, None)],
        ),
        store("other", vec![("n", Type::Num, None), ("l", Type::list(Type::Num), Some(Data::list([])))]),
    ]
}

/// Gives some stores a capacity, so small that entries are evicted, and a lifetime: none, or one that may end
/// before the run begins.
fn limit(stores: &mut [StoreDecl], rng: &mut Rng) {
    for store in stores {
        store.capacity = rng.chance(50).then(|| rng.below(3) as u64);
        store.ttl = rng.chance(50).then(|| if rng.chance(10) { 0 } else { 60 });
        // Several initial values are one after another in an account.
        for key in store.keys.iter_mut().filter(|key| key.initial.is_none()) {
            key.initial = rng.chance(30).then(|| data_of(rng, &key.ty));
        }
    }
}

fn models(rng: &mut Rng, tools: usize) -> Vec<ModelParams> {
    let results = [
        None,
        Some(Type::Num),
        Some(Type::Bool),
        Some(Type::Str),
        Some(Type::record([("a".into(), Type::Num), ("b".into(), Type::Str)])),
        Some(Type::list(Type::Num)),
        Some(Type::Enum(Arc::new(EnumType::new("E", vec!["yes".into(), "no".into(), "maybe".into()])))),
    ];
    results
        .into_iter()
        .map(|result| {
            let repair = rng.below(3) as u32;
            let tools: Vec<ToolId> = match rng.chance(25) {
                true => (0..tools).filter(|_| rng.chance(50)).map(|i| ToolId(i as u32)).collect(),
                false => Vec::new(),
            };
            let purpose = rng.chance(50).then(|| "a purpose".into());
            let waiting = !tools.is_empty() && rng.chance(30);
            ModelParams { result, repair, tools, waiting, purpose, ..ModelParams::default() }
        })
        .collect()
}

/// Maximum depth of generated terms.
const MAX_DEPTH: usize = 200;

struct Making<'a> {
    rng: &'a mut Rng,
    style: &'a Style,
    lattice: LatticeKind,
    /// The types of the variables in scope, outermost first.
    scope: Vec<Ty>,
    /// Nesting depth of the term being generated.
    depth: usize,
    /// The types of the keys in scope.
    keys: Vec<Ty>,
    /// True if this is code that a model gives.
    in_code: bool,
    /// True if such code contains, now and then, what it must not.
    forbidden: bool,
    /// The models that are offered tools, and the others.
    with_tools: Vec<u8>,
    without_tools: Vec<u8>,
    /// A number that represents a former: the one that this program has more often than others. Rare
    /// combinations become common in some programs that way.
    focus: Option<usize>,
    /// True if nobody uses the value of the next shape, so that it may be of any type.
    free: bool,
}

fn node(op: Op, kids: impl IntoIterator<Item = Ast>) -> Ast {
    Ast::new(op, kids)
}

/// A term that was made for outside of one binder, inside of it.
fn shifted(e: Ast) -> Ast {
    deeper(e, 1)
}

/// Returns the number of variables that a former binds in its subterm `i`.
pub(super) fn bound(op: &Op, i: usize) -> u8 {
    match op {
        Op::Lam => 1,
        Op::Let if i == 1 => 1,
        Op::Try(_) if i == 2 => 1,
        Op::Case(tags, _) if i > 0 && tags.get(i - 1).is_some_and(|t| t.1) => 1,
        _ => 0,
    }
}

/// Returns a condition on a given variable.
fn test_of(variable: Ast, ty: &Ty) -> Ast {
    let prim = |p, other| node(Op::Prim(p), [variable.clone(), other]);
    match ty {
        Ty::Bool => variable,
        Ty::Num => prim(Prim::Gt, Ast::lit(Data::Num(Num::ONE))),
        Ty::Str => prim(Prim::Eq, Ast::lit(Data::str(""))),
        _ => prim(Prim::Eq, Ast::lit(Data::list([]))),
    }
}

/// The same below `by` more binders.
pub(super) fn deeper(e: Ast, by: u8) -> Ast {
    fn go(e: Ast, by: u8, own: u8) -> Ast {
        let op = match e.op {
            Op::Var(i) if i >= own => Op::Var(i.saturating_add(by)),
            op => op,
        };
        let kids = e.kids.into_iter().enumerate().map(|(i, k)| go(k, by, own + bound(&op, i))).collect();
        Ast { op, kids }
    }
    go(e, by, 0)
}

/// `λself. f` as `λself. let … in f`: not the usual form of a function of which there is a fixpoint.
fn indirectly(functional: Ast) -> Ast {
    match (functional.op, functional.kids.into_iter().next()) {
        (Op::Lam, Some(inner)) => node(Op::Lam, [node(Op::Let, [Ast::lit(Data::Null), shifted(inner)])]),
        (op, kid) => node(op, kid),
    }
}

impl Making<'_> {
    /// A number below `n`, the one that this program prefers more often than others.
    fn former(&mut self, n: usize) -> usize {
        match self.focus {
            Some(focus) if self.rng.chance(30) => focus % n,
            _ => self.rng.below(n),
        }
    }

    fn any_type(&mut self, depth: usize) -> Ty {
        if !self.style.given.is_empty()
            && self.rng.chance(30)
            && let Some((_, ty)) = self.rng.pick(&self.scope)
        {
            return ty.clone();
        }
        match self.rng.below(if depth == 0 { 8 } else { 14 }) {
            0..3 => Ty::Num,
            3 | 4 => Ty::Bool,
            5 => Ty::Str,
            6 => Ty::Tag,
            7 => Ty::Null,
            8 | 9 => Ty::List(Box::new(self.any_type(depth - 1))),
            10 => {
                let n = self.rng.below(3) + 1;
                Ty::Record((0..n).map(|_| self.any_type(depth - 1)).collect())
            }
            11 => Ty::Pair(Box::new((self.any_type(depth - 1), self.any_type(depth - 1)))),
            12 => Ty::Fun(Box::new((self.any_type(depth - 1), self.any_type(depth - 1)))),
            _ => Ty::Label,
        }
    }

    /// A type of values that can be compared.
    fn comparable(&mut self) -> Ty {
        loop {
            let ty = self.any_type(1);
            if !self.style.typed || ty.is_data() {
                return ty;
            }
        }
    }

    /// Splits a budget into `n` parts.
    fn split(&mut self, size: u32, n: u32) -> u32 {
        let each = size.saturating_sub(1) / n.max(1);
        // Uneven shares make deep terms.
        if self.rng.chance(30) { each + each / 2 } else { each }
    }

    /// A variable of the type.
    fn variable(&mut self, ty: &Ty) -> Option<Ast> {
        let n = self.scope.len();
        let fitting: Vec<usize> = (0..n).filter(|i| self.scope[*i] == *ty).collect();
        let (_, i) = self.rng.pick(&fitting)?;
        u8::try_from(n - 1 - i).ok().map(Ast::var)
    }

    /// A smallest term of the type.
    fn leaf(&mut self, ty: &Ty) -> Ast {
        if self.rng.chance(60)
            && let Some(v) = self.variable(ty)
        {
            return v;
        }
        match ty {
            Ty::Null => Ast::lit(Data::Null),
            Ty::Bool => Ast::lit(self.rng.chance(50)),
            Ty::Num => Ast::lit(number(self.rng)),
            Ty::Str => Ast::lit(text(self.rng)),
            Ty::Label => Ast::lit(label(self.rng, self.lattice)),
            Ty::List(_) if self.rng.chance(20) => node(Op::List, []),
            Ty::List(t) => node(Op::List, [self.leaf(t)]),
            Ty::Record(ts) => {
                let kids: Vec<Ast> = ts.iter().map(|t| self.leaf(t)).collect();
                node(Op::Record((0..ts.len() as u8).collect()), kids)
            }
            Ty::Pair(p) => node(Op::Pair, [self.leaf(&p.0), self.leaf(&p.1)]),
            Ty::Tag => match !self.style.typed && self.rng.chance(30) {
                true => node(Op::Tag(self.rng.byte() % 3), []),
                false => node(Op::Tag(self.rng.byte() % 3), [Ast::lit(number(self.rng))]),
            },
            Ty::Fun(f) => {
                if self.rng.chance(25)
                    && let Some(global) = self.global(f)
                {
                    return global;
                }
                self.scope.push(f.0.clone());
                let body = self.leaf(&f.1);
                self.scope.pop();
                node(Op::Lam, [body])
            }
        }
    }

    /// A function of the prelude.
    fn global(&mut self, f: &(Ty, Ty)) -> Option<Ast> {
        match f {
            (Ty::Num, Ty::Bool) => Some(node(Op::Global(3 + self.rng.byte() % 2), [])),
            (a, b) if a == b => Some(node(Op::Global(0), [])),
            _ => None,
        }
    }

    /// A term below a variable of a type.
    fn under(&mut self, var: Ty, ty: &Ty, size: u32) -> Ast {
        self.scope.push(var);
        let body = self.term(ty, size);
        self.scope.pop();
        body
    }

    /// A term that is evaluated for what it does.
    fn effect(&mut self, size: u32) -> Ast {
        let sub = self.split(size, 1);
        match self.former(10) {
            0..3 => {
                let ty = self.any_type(1);
                let sent = self.term(&ty, sub);
                let r = if self.rng.chance(80) { 0 } else { self.rng.below(4) };
                node(Op::Send(role(r)), [sent])
            }
            3 => node(Op::Clear, []),
            4 => {
                let sub = self.split(size, 2);
                let l = self.label(sub);
                let ty = self.any_type(1);
                let e = self.term(&ty, sub);
                node(Op::Assert, [l, e])
            }
            5..8 if !self.keys.is_empty() => {
                let i = self.rng.below(self.keys.len());
                let ty = self.keys[i].clone();
                let e = self.term(&ty, sub);
                node(Op::Remember(i as u8), [e])
            }
            8 => self.received(),
            _ => {
                let ty = self.any_type(1);
                self.term(&ty, sub)
            }
        }
    }

    /// A model's reply, as it comes.
    fn received(&mut self) -> Ast {
        match self.rng.below(3) {
            _ if self.style.typed => node(Op::RecvData(self.rng.byte() % 7), []),
            0 => node(Op::RecvCode, []),
            1 => {
                let text = self.leaf(&Ty::Str);
                node(Op::Ask, [text])
            }
            _ => node(Op::RecvData(self.rng.byte() % 7), []),
        }
    }

    /// A term that gives a label: mostly a literal, sometimes computed, sometimes none.
    fn label(&mut self, size: u32) -> Ast {
        match self.rng.below(30) {
            0 if !self.style.typed => Ast::lit(Data::str("U")),
            3 | 4 => {
                let of = Ast::lit(label(self.rng, self.lattice));
                node(Op::Relabel, [of, Ast::lit(label(self.rng, self.lattice))])
            }
            1 | 2 if size > 4 => self.term(&Ty::Label, size),
            5 => {
                let one = Ast::lit(label(self.rng, self.lattice));
                match self.test_of_given() {
                    Some(test) => node(Op::If, [test, one, Ast::lit(label(self.rng, self.lattice))]),
                    None => one,
                }
            }
            _ => Ast::lit(label(self.rng, self.lattice)),
        }
    }

    fn predicate(&mut self, ty: &Ty) -> Pred {
        let compare = [Comparison::Lt, Comparison::Ge, Comparison::Eq, Comparison::Ne];
        let c = self.rng.one(&compare);
        let n = Num::from(self.rng.below(3) as i64);
        let p = match ty {
            Ty::Num => Pred::Compare(Measure::Value, c, n),
            Ty::Str if self.rng.chance(30) => Pred::Contains("a".into()),
            Ty::Str if self.rng.chance(30) => Pred::Compare(Measure::Words, c, n),
            Ty::Str if self.rng.chance(30) => Pred::Matches("^[a-z]+$".into()),
            Ty::Str | Ty::List(_) | Ty::Record(_) if self.rng.chance(70) => {
                Pred::Compare(Measure::Length, c, n)
            }
            Ty::Record(_) => Pred::Field("a".into(), Arc::new(Pred::True)),
            Ty::List(t) if self.rng.chance(50) => Pred::Some(Arc::new(self.predicate(t))),
            Ty::List(t) => Pred::Every(Arc::new(self.predicate(t))),
            Ty::Bool => Pred::OneOf([Data::Bool(true)].into()),
            _ => Pred::True,
        };
        match self.rng.below(8) {
            0 => Pred::True,
            1 => Pred::Not(Arc::new(p)),
            2 => Pred::Or(Arc::new((p.clone(), Pred::Not(Arc::new(p))))),
            3 => self.schema(ty),
            _ => p,
        }
    }

    /// A JSON Schema about values of the type.
    fn schema(&mut self, ty: &Ty) -> Pred {
        let n = Data::Num(Num::from(self.rng.below(3) as i64));
        let (kind, about) = match ty {
            Ty::Num => (self.rng.one(&["number", "integer"]), "minimum"),
            Ty::Str => ("string", "minLength"),
            Ty::List(_) => ("array", "minItems"),
            Ty::Record(_) => ("object", "maxProperties"),
            _ => return Pred::True,
        };
        let fields = [("type".into(), Data::str(kind)), (about.into(), n)];
        match Schema::new(&Data::record(fields)) {
            Ok(schema) => Pred::Schema(Arc::new(schema)),
            Err(_) => Pred::True,
        }
    }

    /// A term of about that size, mostly of the type.
    fn term(&mut self, wanted: &Ty, size: u32) -> Ast {
        // Shares may be larger than what they are shares of, so that some terms are deep: one in a hundred
        // thousand beyond all measure.
        if self.depth >= MAX_DEPTH {
            return self.leaf(wanted);
        }
        self.depth += 1;
        let made = self.term_within(wanted, size);
        self.depth -= 1;
        made
    }

    fn term_within(&mut self, wanted: &Ty, size: u32) -> Ast {
        let other;
        let mut ty = wanted;
        if !self.style.typed && self.rng.chance(self.style.wild) {
            other = self.any_type(2);
            ty = &other;
        }
        if size <= 1 {
            return self.leaf(ty);
        }
        if self.rng.chance(10)
            && let Some(v) = self.variable(ty)
        {
            return v;
        }
        if self.rng.chance(4)
            && let Some(chosen) = self.chosen(ty)
        {
            return chosen;
        }
        if self.rng.chance(10)
            && let Some(test) = self.test_of_given()
        {
            let two = self.split(size, 2);
            let yes = self.term(ty, two);
            return node(Op::If, [test, yes, self.term(ty, two)]);
        }
        if !self.style.typed && self.rng.chance(6) {
            return self.shape(ty, size);
        }
        if self.rng.chance(45) { self.particular(ty, size) } else { self.general(ty, size) }
    }

    /// A shape that is the whole program: mostly with little around it, so that what it shows is not lost on
    /// the way, and as often as not with a store.
    fn bare_shape(&mut self, ty: &Ty) -> Ast {
        let (ty, size) = match self.rng.chance(60) {
            true => (&Ty::Num, 1 + self.rng.below(6) as u32),
            false => (ty, self.style.size),
        };
        let shape = |this: &mut Self| {
            this.free = true;
            this.shape(ty, size)
        };
        if self.rng.chance(50) { self.in_store(shape) } else { shape(self) }
    }

    /// Generates the continuation of a step that is interesting itself, below a variable for its value. Half
    /// of the time the continuation is almost empty, because code that fails or drops its input would hide
    /// the step.
    fn rest(&mut self, var: Ty, ty: &Ty, size: u32) -> Ast {
        let size = if self.rng.chance(50) { 1 } else { size };
        self.under(var, ty, size)
    }

    /// Generates the continuation of a value whose label matters, so that the label becomes visible: a test
    /// of the value, or, where any type is allowed, the value as the result or beside it.
    fn seen(&mut self, made: Ast, free: bool, of: Ty, ty: &Ty, size: u32) -> Ast {
        let (tested, mut rest) = (self.label(1), self.rest(of, ty, size));
        match self.rng.below(4) {
            0 if free => return made,
            1 if free => rest = node(Op::List, [Ast::var(0), rest]),
            0 | 2 => {
                let other = shifted(self.leaf(ty));
                rest = node(Op::If, [node(Op::Test, [shifted(tested), Ast::var(0)]), rest, other]);
            }
            _ => {}
        }
        node(Op::Let, [made, rest])
    }

    /// Combinations of formers in which a rule of labels decides, and which would be rare otherwise.
    fn shape(&mut self, ty: &Ty, size: u32) -> Ast {
        let free = std::mem::take(&mut self.free);
        let (one, two, three) = (self.split(size, 1), self.split(size, 2), self.split(size, 3));
        match self.former(23) {
            // Whether a value has a label depends on a secret.
            0 => self.doubtful(ty, one),
            // So does that of the conversation; then something else is to be done with it.
            1 => {
                let said = match self.test_of_given() {
                    Some(test) if self.rng.chance(40) => {
                        node(Op::If, [test, self.leaf(&Ty::Num), self.leaf(&Ty::Num)])
                    }
                    _ => self.doubtful(&Ty::Num, 1),
                };
                let l = self.label(1);
                let touch = match self.rng.below(3) {
                    0 => node(Op::Clear, []),
                    1 => self.received(),
                    _ => node(Op::Send(role(0)), [self.leaf(&Ty::Num)]),
                };
                // Or in a copy of it.
                let touch = match self.rng.below(4) {
                    0 => node(Op::Fork, [self.received()]),
                    1 if self.style.parallel => node(Op::Par(self.most()), [self.received()]),
                    _ => node(Op::Relabel, [l, touch]),
                };
                let rest = self.rest(Ty::Null, ty, two);
                let second = node(Op::Let, [touch, rest]);
                let both = shifted(second);
                node(Op::Let, [node(Op::Send(role(0)), [said]), both])
            }
            // A function that has another label than its parts is applied.
            2 => {
                let param = if self.rng.chance(60) { Ty::Num } else { self.any_type(0) };
                let of = Ty::Fun(Box::new((param.clone(), ty.clone())));
                let f = match self.rng.below(10) {
                    // Of each kind of function.
                    0 | 1 if !self.in_code => node(Op::Tool(self.rng.one(&[0, 3])), []),
                    2 | 3 => node(Op::Llm(self.rng.one(&[0, 3])), [self.leaf(&Ty::Str)]),
                    4 | 5 => {
                        let number = Ast::lit(number(self.rng));
                        let functional = node(Op::Lam, [node(Op::Lam, [number])]);
                        let indirect = self.rng.chance(60);
                        let of = if indirect { indirectly(functional) } else { functional };
                        node(Op::Fix(Bound::Finite(2)), [of])
                    }
                    _ => self.particular(&of, two),
                };
                let f = match self.test_of_given() {
                    Some(test) if self.rng.chance(50) => {
                        // The functions are made where it does not matter which is chosen.
                        let other = shifted(self.leaf(&of));
                        let chosen = node(Op::If, [deeper(test, 2), Ast::var(1), Ast::var(0)]);
                        node(Op::Let, [f, node(Op::Let, [other, chosen])])
                    }
                    _ => {
                        let l = shifted(self.label(1));
                        node(Op::Let, [f, node(Op::Relabel, [l, Ast::var(0)])])
                    }
                };
                if self.rng.chance(50) {
                    // By its name, with what needs no evaluation.
                    let argument = shifted(self.leaf(&param));
                    return node(Op::Let, [f, node(Op::App, [Ast::var(0), argument])]);
                }
                node(Op::App, [f, self.term(&param, two)])
            }
            // A guard decides by a part of a value.
            3 => {
                let numbers = Ty::List(Box::new(Ty::Num));
                let (list, p) = match self.test_of_given() {
                    // A further attempt may draw another number.
                    Some(test) if self.rng.chance(50) => {
                        let (half, one) = (Num::ONE.div(&Num::from(2)), Ast::lit(Data::Num(Num::ONE)));
                        let drawn = [Ast::lit(Data::Num(Num::ZERO)), one.clone()];
                        let drawn = node(Op::Choose(half.unwrap_or(Num::ONE)), drawn);
                        let part = node(Op::If, [deeper(test, 1), Ast::var(0), one]);
                        let each = Pred::Compare(Measure::Value, Comparison::Ge, Num::ONE);
                        (node(Op::Let, [drawn, node(Op::List, [part])]), Pred::Every(Arc::new(each)))
                    }
                    Some(test) => {
                        let part = node(Op::If, [test, self.leaf(&Ty::Num), self.leaf(&Ty::Num)]);
                        (node(Op::List, [part, self.leaf(&Ty::Num)]), self.predicate(&numbers))
                    }
                    None => {
                        let part = self.doubtful(&Ty::Num, 1);
                        (node(Op::List, [part, self.leaf(&Ty::Num)]), self.predicate(&numbers))
                    }
                };
                let retry = 1 + self.rng.below(2) as u32;
                let guarded = node(Op::Guard(p, retry), [list]);
                let l = shifted(self.label(1));
                let test = node(Op::Test, [l, Ast::var(0)]);
                let rest = self.rest(Ty::List(Box::new(Ty::Num)), ty, two);
                let other = shifted(self.leaf(ty));
                node(Op::Let, [guarded, node(Op::If, [test, rest, other])])
            }
            // A branch fails before it does something else.
            4 if self.style.parallel => {
                let fail = node(Op::Fail, [self.leaf(&Ty::Num)]);
                let c = match self.test_of_given() {
                    Some(test) => test,
                    None => self.term(&Ty::Bool, three),
                };
                let first = node(Op::If, [c, fail, Ast::lit(Data::Null)]);
                let then = self.asking(three);
                let one = node(Op::Let, [first, shifted(then)]);
                let other = self.asking(three);
                let all = node(Op::Par(self.most()), [one, other]);
                let rest = self.rest(Ty::Null, ty, three);
                node(Op::Let, [all, rest])
            }
            // Branches that draw, after such that only sometimes are.
            5 if self.style.parallel => {
                let draw = |this: &mut Self| {
                    let (a, b) = (this.leaf(&Ty::Num), this.leaf(&Ty::Num));
                    let drawn = node(Op::Choose(Num::ONE.div(&Num::from(3)).unwrap_or(Num::ONE)), [a, b]);
                    let n = this.most();
                    node(Op::Par(n), [drawn])
                };
                let c = match self.test_of_given() {
                    Some(test) => test,
                    None => self.term(&Ty::Bool, three),
                };
                let first = node(Op::If, [c, draw(self), Ast::lit(Data::Null)]);
                let second = shifted(draw(self));
                let rest = self.rest(Ty::Null, ty, two);
                let rest = shifted(rest);
                node(Op::Let, [first, node(Op::Let, [second, rest])])
            }
            // A label inside of an argument.
            6 if !self.in_code => {
                let part = self.doubtful(&Ty::Num, 1);
                let call = node(Op::App, [node(Op::Tool(3), []), node(Op::List, [part])]);
                let rest = self.rest(Ty::Null, ty, two);
                node(Op::Let, [call, rest])
            }
            // A loop that goes all the way to its bound.
            7 => {
                let n = 1 + self.rng.below(3) as u64;
                let next = node(Op::Prim(Prim::Add), [Ast::var(0), Ast::lit(Data::Num(Num::ONE))]);
                let body = node(Op::App, [Ast::var(1), next]);
                let body = match self.rng.below(3) {
                    0 => node(Op::Let, [self.asking(3), shifted(body)]),
                    _ => body,
                };
                let looped = node(Op::Fix(Bound::Finite(n)), [node(Op::Lam, [node(Op::Lam, [body])])]);
                let count = node(Op::App, [looped, self.leaf(&Ty::Num)]);
                let rest = self.rest(Ty::Num, ty, two);
                node(Op::Let, [count, rest])
            }
            // A threshold is one label or another.
            8 => {
                let (one, other) = (self.label(1), self.label(1));
                let threshold = match self.test_of_given() {
                    Some(test) if self.rng.chance(40) => node(Op::If, [test, one, other]),
                    _ => one,
                };
                let value = match self.rng.below(4) {
                    0 => self.leaf(&Ty::Num),
                    1 => node(Op::List, [self.doubtful(&Ty::Num, 1)]),
                    _ => self.doubtful(&Ty::Num, 1),
                };
                let checked = node(Op::Assert, [threshold, value]);
                let rest = self.rest(Ty::Num, ty, two);
                node(Op::Let, [checked, rest])
            }
            // What a model's code gives.
            9 if !self.in_code => {
                let code = node(Op::RecvCode, []);
                if self.rng.chance(50) { node(Op::Fail, [code]) } else { code }
            }
            // Something secret is called with.
            10 if !self.in_code && self.style.deciding > 0 => {
                let secret = match self.scope.first() {
                    Some(Ty::Num) => u8::try_from(self.scope.len() - 1).ok().map(Ast::var),
                    _ => None,
                };
                let argument = match secret {
                    Some(secret) => secret,
                    None => self.leaf(&Ty::Num),
                };
                let tool = self.rng.one(&[0, 3]);
                let call = node(Op::App, [node(Op::Tool(tool), []), argument]);
                let rest = self.rest(Ty::Num, ty, two);
                node(Op::Let, [call, rest])
            }
            // An answer that may be late or an error that is permanent, and a handler that must not take it.
            11 => {
                let top = Ast::lit(self.top());
                let (mut asked, mut catches) = (self.asking(3), Catches::NotTimeout);
                if self.style.permanent && self.rng.chance(50) {
                    let said = node(Op::App, [node(Op::Llm(0), [Ast::lit("one")]), Ast::lit("two")]);
                    asked = node(Op::Let, [said, Ast::lit(Data::Num(Num::ONE))]);
                    catches = self.rng.one(&[Catches::NotPermanent, Catches::Transient]);
                }
                let caught = [top, asked, Ast::lit(Data::Num(Num::ZERO))];
                let caught = node(Op::Try(catches), caught);
                let mut limited = node(Op::Within(Num::ONE), [caught]);
                // After another limit, which only sometimes is.
                if self.rng.chance(50)
                    && let Some(test) = self.test_of_given()
                {
                    let other = node(Op::Within(Num::ONE), [self.leaf(&Ty::Num)]);
                    let other = node(Op::If, [test, other, Ast::lit(Data::Null)]);
                    limited = node(Op::Let, [other, shifted(limited)]);
                }
                let rest = self.rest(Ty::Num, ty, two);
                node(Op::Let, [limited, rest])
            }
            // A model is asked for something else before all of its calls were taken.
            12 if !self.with_tools.is_empty() => {
                let mut received = |of: &[u8]| match self.rng.pick(of) {
                    Some((_, m)) => node(Op::RecvData(*m), []),
                    None => node(Op::RecvCode, []),
                };
                let first = received(&self.with_tools);
                let other = received(&self.without_tools);
                let again = received(&self.with_tools);
                let rest = deeper(self.rest(Ty::Null, ty, two), 2);
                node(Op::Let, [first, node(Op::Let, [other, node(Op::Let, [again, rest])])])
            }
            // A function is made where something raised the program counter, and applied where that is over.
            13 => {
                let l = self.label(1);
                let (made, result) = match self.rng.chance(40) {
                    true => (node(Op::Llm(self.rng.byte() % 7), [self.prompt()]), Ty::Str),
                    false => {
                        let of = Ty::Fun(Box::new((Ty::Num, ty.clone())));
                        (self.particular(&of, two), ty.clone())
                    }
                };
                let called = node(Op::App, [node(Op::Relabel, [l, made]), self.leaf(&Ty::Num)]);
                if result == *ty {
                    return called;
                }
                let rest = self.under(result, ty, two);
                node(Op::Let, [called, rest])
            }
            // What a key may hold in one case and not in another.
            14 if !self.keys.is_empty() => {
                let i = self.rng.below(self.keys.len());
                let of = self.keys[i].clone();
                let kept = node(Op::Remember(i as u8), [self.doubtful(&of, 1)]);
                let rest = self.rest(Ty::Null, ty, two);
                node(Op::Let, [kept, rest])
            }
            // Order, where both sides are equal.
            15 => {
                let of = match self.rng.below(3) {
                    0 => self.leaf(&Ty::Num),
                    1 => self.leaf(&Ty::Str),
                    _ => Ast::lit(Data::Num(Num::ONE.div(&Num::from(3)).unwrap_or(Num::ONE))),
                };
                let p = self.rng.one(&[Prim::Lt, Prim::Le, Prim::Gt, Prim::Ge]);
                let compared = node(Op::Let, [of, node(Op::Prim(p), [Ast::var(0), Ast::var(0)])]);
                match ty {
                    Ty::Bool => compared,
                    _ => {
                        let yes = self.term(ty, two);
                        node(Op::If, [compared, yes, self.term(ty, two)])
                    }
                }
            }
            // Arguments that are given or left out.
            16 if !self.in_code && self.rng.chance(40) => self.planned(ty, two),
            16 if !self.in_code => {
                let given = node(Op::Record(vec![0]), [self.leaf(&Ty::Num)]);
                let none = node(Op::Record(vec![]), []);
                let args = match self.test_of_given() {
                    Some(test) => node(Op::If, [test, none, given]),
                    None => {
                        node(Op::Relabel, [self.label(1), if self.rng.chance(50) { none } else { given }])
                    }
                };
                // Or one of two records that were made before.
                let made = self.chosen(&Ty::Record(vec![Ty::Num]));
                let (tool, args) = match made {
                    Some(made) if self.rng.chance(40) => (self.rng.one(&[4, 5]), made),
                    _ => (5, args),
                };
                let call = node(Op::App, [node(Op::Tool(tool), []), args]);
                let rest = self.rest(Ty::Num, ty, two);
                node(Op::Let, [call, rest])
            }
            // What is no data, or no list, by a decision: where that is needed.
            17 => {
                let what = |this: &mut Self, other: Ast| {
                    let number = this.leaf(&Ty::Num);
                    match this.test_of_given() {
                        Some(test) => node(Op::If, [test, other, number]),
                        None => node(Op::Relabel, [this.label(1), other]),
                    }
                };
                let function = node(Op::Lam, [Ast::lit(Data::Null)]);
                let used = match self.rng.below(4) {
                    0 => node(Op::Send(role(0)), [what(self, function)]),
                    1 if !self.keys.is_empty() => node(Op::Remember(self.rng.byte()), [what(self, function)]),
                    2 => {
                        let list = node(Op::List, [self.leaf(&Ty::Num)]);
                        let one = node(Op::Lam, [Ast::var(0)]);
                        node(Op::Each(self.most_of_each()), [one, what(self, list)])
                    }
                    _ => node(Op::App, [node(Op::Llm(0), [Ast::lit("")]), what(self, function)]),
                };
                let rest = self.rest(Ty::Null, ty, two);
                node(Op::Let, [used, rest])
            }
            // Something for each item of a list that has a label of its own, which its items have not.
            18 if self.style.parallel => {
                let third = Num::ONE.div(&Num::from(3)).unwrap_or(Num::ONE);
                let zero = || Ast::lit(Data::Num(Num::ZERO));
                let f = match self.rng.below(4) {
                    0 | 1 if !self.in_code => node(Op::Tool(self.rng.one(&[0, 3])), []),
                    2 => node(Op::Fix(Bound::Finite(0)), [Ast::lit(Data::Null)]),
                    _ => node(Op::Lam, [node(Op::Choose(third), [Ast::var(0), zero()])]),
                };
                let items = |this: &mut Self| {
                    let n = this.rng.below(3);
                    node(Op::List, (0..n).map(|_| this.leaf(&Ty::Num)).collect::<Vec<_>>())
                };
                let (one, other) = (items(self), shifted(items(self)));
                let list = match self.test_of_given() {
                    Some(test) => node(Op::If, [deeper(test, 2), Ast::var(1), Ast::var(0)]),
                    None => node(Op::Relabel, [deeper(self.label(1), 2), Ast::var(1)]),
                };
                let list = node(Op::Let, [one, node(Op::Let, [other, list])]);
                let all = node(Op::Each(self.most()), [f, list]);
                let rest = self.rest(Ty::List(Box::new(Ty::Num)), ty, two);
                node(Op::Let, [all, rest])
            }
            // What a function has captured keeps its label where that of the function is taken away.
            19 if self.style.endorse || self.style.declassify => {
                let again = node(Op::App, [Ast::var(2), Ast::var(0)]);
                let functional = node(Op::Lam, [node(Op::Lam, [node(Op::Lam, [again])])]);
                let functional = if self.rng.chance(50) { indirectly(functional) } else { functional };
                let (of, to) = (self.label(1), self.label(1));
                let looped = node(Op::Fix(Bound::Finite(2)), [functional]);
                let looped = node(Op::Let, [looped, node(Op::Relabel, [shifted(of), Ast::var(0)])]);
                let op = if self.style.endorse { Op::Endorse } else { Op::Declassify };
                let made = node(op, [to, node(Op::App, [looped, self.leaf(&Ty::Num)])]);
                let tested = node(Op::Prim(Prim::IsFn), [made]);
                self.seen(tested, free, Ty::Bool, ty, two)
            }
            // Something is made or done under a raised program counter, and looked at where that is over.
            20 | 21 => {
                let record = node(Op::Record(vec![0]), [self.leaf(&Ty::Num)]);
                let constant = shifted(node(Op::Lam, [Ast::lit(number(self.rng))]));
                self.scope.extend([Ty::Record(vec![Ty::Num]), Ty::Fun(Box::new((Ty::Num, Ty::Num)))]);
                let made = match self.rng.below(5) {
                    0 => node(Op::Field(0), [Ast::var(1)]),
                    1 => node(Op::App, [Ast::var(0), self.leaf(&Ty::Num)]),
                    _ => self.made(),
                };
                let made = match self.test_of_given() {
                    Some(test) if self.rng.chance(60) => node(Op::If, [test, made, Ast::lit(Data::Null)]),
                    _ => node(Op::Relabel, [self.label(1), made]),
                };
                let looked_at = self.seen(made, free, Ty::Null, ty, two);
                self.scope.truncate(self.scope.len() - 2);
                node(Op::Let, [record, node(Op::Let, [constant, looked_at])])
            }
            // A further attempt of a guard asks models, and so does what comes after the guard.
            22 => {
                let half = Num::ONE.div(&Num::from(2)).unwrap_or(Num::ONE);
                let drawn = [Num::ZERO, Num::ONE].map(|n| Ast::lit(Data::Num(n)));
                let (first, second) = (self.received(), shifted(self.received()));
                let attempt = node(Op::Let, [first, node(Op::Let, [second, node(Op::Choose(half), drawn)])]);
                let p = Pred::Compare(Measure::Value, Comparison::Ge, Num::ONE);
                let guarded = node(Op::Guard(p, 1 + self.rng.below(2) as u32), [attempt]);
                let after = shifted(self.received());
                let rest = shifted(self.rest(Ty::Null, ty, two));
                node(Op::Let, [guarded, node(Op::Let, [after, rest])])
            }
            _ => self.general(ty, size),
        }
    }

    /// A prompt: now and then by a decision, or what is none.
    fn prompt(&mut self) -> Ast {
        let text = self.leaf(&Ty::Str);
        match (self.rng.below(5), self.test_of_given()) {
            (0, Some(test)) => node(Op::If, [test, text, self.leaf(&Ty::Str)]),
            (1, Some(test)) => node(Op::If, [test, text, self.leaf(&Ty::Num)]),
            _ => text,
        }
    }

    /// Generates the concurrency limit of an `each`; one if no parallel branches are wanted.
    fn most_of_each(&mut self) -> Option<u32> {
        if self.style.parallel { self.most() } else { Some(1) }
    }

    /// Generates a value whose only label is the program counter's.
    fn made(&mut self) -> Ast {
        let function = node(Op::Lam, [node(Op::Lam, [Ast::var(0)])]);
        match self.rng.below(15) {
            0 => node(Op::Fresh, [node(Op::Send(role(0)), [self.leaf(&Ty::Num)])]),
            1 => node(Op::Fresh, [node(Op::Clear, [])]),
            2 => node(Op::Assert, [Ast::lit(self.top()), self.leaf(&Ty::Num)]),
            3 | 13 if !self.keys.is_empty() => {
                let i = self.rng.below(self.keys.len());
                let of = self.keys[i].clone();
                node(Op::Remember(i as u8), [self.leaf(&of)])
            }
            4 if self.style.parallel => node(Op::Par(self.most()), []),
            // These only compute.
            14 if self.style.parallel => {
                node(Op::Par(self.most()), [self.leaf(&Ty::Num), self.leaf(&Ty::Num)])
            }
            5 | 6 if self.style.parallel => node(Op::Each(self.most()), [function, node(Op::List, [])]),
            7 => node(Op::Llm(0), [self.leaf(&Ty::Str)]),
            8 => node(Op::Fix(Bound::Finite(2)), [function]),
            9 if !self.in_code => node(Op::Tool(self.rng.byte()), []),
            10 => node(Op::Fresh, [node(Op::RecvCode, [])]),
            11 => node(Op::Record(vec![]), []),
            // Called with all arguments at once, of which the innermost function captures two.
            12 => {
                let all = node(Op::List, [Ast::var(2), Ast::var(1), Ast::var(0)]);
                let three = node(Op::Lam, [node(Op::Lam, [node(Op::Lam, [all])])]);
                (0..3).fold(three, |f, _| node(Op::App, [f, Ast::lit(number(self.rng))]))
            }
            _ => function,
        }
    }

    /// The highest label.
    fn top(&self) -> Data {
        let mut lattice = Lattice::new(self.lattice);
        let top = lattice.top();
        lattice.data_of(top)
    }

    /// A draw under a label that the code takes away, which it must not.
    fn reclassified_draw(&mut self) -> Ast {
        let (half, one) = (Num::ONE.div(&Num::from(2)).unwrap_or(Num::ONE), Ast::lit(Data::Num(Num::ONE)));
        let drawn = node(Op::Choose(half), [Ast::lit(Data::Num(Num::ZERO)), one]);
        let of = Ast::lit(label(self.rng, self.lattice));
        let to = Ast::lit(label(self.rng, self.lattice));
        let op = if self.rng.chance(50) { Op::Endorse } else { Op::Declassify };
        node(op, [to, node(Op::Relabel, [of, drawn])])
    }

    /// A term whose label, or the label of a part, is another one by a decision.
    fn doubtful(&mut self, ty: &Ty, size: u32) -> Ast {
        let l = self.label(1);
        let e = self.term(ty, size);
        let labeled = node(Op::Relabel, [l, e.clone()]);
        match self.test_of_given() {
            Some(test) => node(Op::If, [test, labeled, e]),
            None => labeled,
        }
    }

    /// Generates a request.
    fn asking(&mut self, size: u32) -> Ast {
        match self.rng.below(3) {
            0 if !self.in_code => node(Op::App, [node(Op::Tool(0), []), self.term(&Ty::Num, size)]),
            1 if !self.keys.is_empty() => node(Op::Recall(self.rng.byte()), []),
            _ => {
                let half = Num::ONE.div(&Num::from(3)).unwrap_or(Num::ONE);
                node(Op::Choose(half), [self.leaf(&Ty::Num), self.leaf(&Ty::Num)])
            }
        }
    }

    /// `mem` with one of the two stores around a term.
    fn with_store(&mut self, ty: &Ty, size: u32) -> Ast {
        self.in_store(|this| this.term(ty, size.saturating_sub(1)))
    }

    /// The same around what is made with its keys in scope.
    fn in_store(&mut self, inside: impl FnOnce(&mut Self) -> Ast) -> Ast {
        let which = self.rng.byte() % 2;
        let before = self.keys.len();
        self.keys.extend(match which {
            0 => vec![Ty::Num, Ty::Str, Ty::List(Box::new(Ty::Num))],
            _ => vec![Ty::Num, Ty::List(Box::new(Ty::Num))],
        });
        let e = inside(self);
        self.keys.truncate(before);
        node(Op::Mem(which), [e])
    }

    /// A truth value that depends on one of the deciding variables, if there are any.
    fn test_of_given(&mut self) -> Option<Ast> {
        let most = self.style.deciding.min(self.style.given.len());
        if self.in_code || most == 0 {
            return None;
        }
        let which = self.rng.below(most);
        let variable = Ast::var(u8::try_from(self.scope.len().checked_sub(1 + which)?).ok()?);
        Some(test_of(variable, self.style.given.get(which)?))
    }

    /// One of two variables, or of two parts of a value that was made before, by a decision.
    fn chosen(&mut self, ty: &Ty) -> Option<Ast> {
        let test = self.test_of_given()?;
        if self.rng.chance(30) {
            let kids = [self.leaf(ty), self.leaf(ty)];
            let of = |part: Op| node(part, [Ast::var(2)]);
            let (whole, one, other) = match self.rng.below(3) {
                // The position in a variable, too: a literal has the label of the place where it stands.
                0 => {
                    let item = |at: u8| node(Op::Index, [Ast::var(2), Ast::var(at)]);
                    (Op::List, item(1), item(0))
                }
                1 => (Op::Pair, of(Op::Fst), of(Op::Snd)),
                _ => (Op::Record(vec![0, 1]), of(Op::Field(0)), of(Op::Field(1))),
            };
            let test = shifted(shifted(shifted(test)));
            let position = |at: i64, rest| node(Op::Let, [Ast::lit(Num::from(at)), rest]);
            let taken = position(0, position(1, node(Op::If, [test, one, other])));
            return Some(node(Op::Let, [node(whole, kids), taken]));
        }
        let one = match ty {
            Ty::Fun(f) if self.rng.chance(30) => self.global(f)?,
            _ => self.variable(ty)?,
        };
        let other = if self.rng.chance(70) { self.variable(ty)? } else { self.leaf(ty) };
        Some(node(Op::If, [test, one, other]))
    }

    /// A planned call: arguments made here, and a call with them under another label, whose result is seen.
    /// Or what looks like one: a record with the same parts, what a primitive gave back, the arguments of
    /// another tool, or with a part missing.
    fn planned(&mut self, ty: &Ty, size: u32) -> Ast {
        // The result of the first and the last is a number.
        // One of the others takes any value.
        let tool =
            if self.style.typed { self.rng.one(&[0, 5]) } else { self.rng.one(&[0, 1, 2, 3, 3, 3, 3, 4, 5]) };
        let mut names = match tool {
            0 => vec![4],
            2 => vec![],
            3 => vec![0],
            _ => vec![0, 1],
        };
        let mut parts: Vec<Ast> = names
            .iter()
            .map(|name| match name {
                1 => self.leaf(&Ty::Str),
                // Its label is not the label of what is in it.
                _ if tool == 3 && self.rng.chance(70) => node(Op::List, [self.doubtful(&Ty::Num, 1)]),
                _ if self.rng.chance(40) => self.doubtful(&Ty::Num, 1),
                _ => self.leaf(&Ty::Num),
            })
            .collect();
        // One part may be left out, and so may be as missing as the other tool's.
        if !names.is_empty() && self.rng.chance(if self.style.typed { 0 } else { 12 }) {
            let which = self.rng.below(names.len());
            names.remove(which);
            parts.remove(which);
        }
        let for_tool = if !self.style.typed && self.rng.chance(6) { self.rng.byte() % 6 } else { tool };
        let alike = self.rng.chance(25) && tool != 0;
        let op = if alike { Op::Record(names) } else { Op::Args(for_tool, names) };
        let made = node(op, parts);
        // Under the binder of the arguments.
        let mut given = Ast::var(0);
        if !self.style.typed && self.rng.chance(10) {
            let list = node(Op::List, [given.clone()]);
            given = match self.rng.below(4) {
                0 => node(Op::Prim(Prim::Flatten), [given]),
                1 => {
                    let more = node(Op::Prim(Prim::Append), [node(Op::List, []), given]);
                    node(Op::Index, [more, Ast::lit(Num::ZERO)])
                }
                2 => {
                    let more = node(Op::Prim(Prim::Add), [list, node(Op::List, [])]);
                    node(Op::Index, [more, Ast::lit(Num::ZERO)])
                }
                _ => node(Op::Index, [list, Ast::lit(Num::ZERO)]),
            };
        }
        let control = match self.test_of_given() {
            // Whether the call happens, or with which arguments, is a decision.
            Some(test) if self.rng.chance(70) => {
                let test = shifted(test);
                let call = |given| node(Op::App, [node(Op::Tool(tool), []), given]);
                match self.rng.below(3) {
                    0 => Some(node(Op::If, [test, call(given.clone()), Ast::lit(Num::ZERO)])),
                    1 => Some(call(node(Op::If, [test, given.clone(), given.clone()]))),
                    _ => {
                        let l = shifted(self.label(1));
                        let other = node(Op::Relabel, [l, given.clone()]);
                        Some(call(node(Op::If, [test, given.clone(), other])))
                    }
                }
            }
            _ => None,
        };
        let call = control.unwrap_or_else(|| {
            let l = shifted(self.label(1));
            let read =
                if self.rng.chance(60) { node(Op::Relabel, [l, given.clone()]) } else { given.clone() };
            node(Op::App, [node(Op::Tool(tool), []), read])
        });
        // A refusal is an error, whose label is seen where it is caught.
        let call = match self.rng.chance(40) {
            true => {
                let l = shifted(self.label(1));
                // So is a call that is made then.
                let handler = match !self.in_code && self.rng.chance(30) {
                    true => node(Op::App, [node(Op::Tool(0), []), Ast::lit(Num::ONE)]),
                    false => Ast::lit(Num::ONE),
                };
                node(Op::Try(Catches::All), [l, call, handler])
            }
            false => call,
        };
        let called = node(Op::Let, [made, call]);
        let rest = self.rest(if matches!(tool, 0 | 5) { Ty::Num } else { Ty::Null }, ty, size);
        node(Op::Let, [called, rest])
    }

    /// A former that fits every type.
    fn general(&mut self, ty: &Ty, size: u32) -> Ast {
        let (one, two, three) = (self.split(size, 1), self.split(size, 2), self.split(size, 3));
        if self.in_code && self.forbidden && self.rng.chance(3) {
            let e = self.term(ty, one);
            let l = self.label(1);
            return match self.rng.below(4) {
                0 => node(Op::Endorse, [l, e]),
                1 => node(Op::Declassify, [l, e]),
                2 => node(Op::App, [node(Op::Tool(self.rng.byte() % 6), []), e]),
                _ => node(Op::RecvData(self.rng.byte() % 7), []),
            };
        }
        match self.former(46) {
            0..3 => {
                let c = self.term(&Ty::Bool, three);
                let a = self.term(ty, three);
                node(Op::If, [c, a, self.term(ty, three)])
            }
            3..6 => {
                let bound = self.any_type(2);
                let first = self.term(&bound, two);
                let body = self.under(bound, ty, two);
                node(Op::Let, [first, body])
            }
            // Something happens first.
            6..10 => {
                let mut first = self.effect(two);
                if self.style.typed {
                    first = node(Op::Let, [first, Ast::lit(Data::Null)]);
                }
                let body = self.under(Ty::Null, ty, two);
                node(Op::Let, [first, body])
            }
            10..13 => {
                let param = self.any_type(1);
                let f = self.term(&Ty::Fun(Box::new((param.clone(), ty.clone()))), two);
                node(Op::App, [f, self.term(&param, two)])
            }
            13 => {
                let a = self.any_type(1);
                let fields = [ty.clone(), a];
                let e = self.term(&Ty::Record(fields.to_vec()), one);
                node(Op::Field(0), [e])
            }
            14 => {
                let e = self.term(&Ty::List(Box::new(ty.clone())), two);
                let mut i = match self.variable(&Ty::Num) {
                    Some(v) if self.rng.chance(40) => v,
                    _ => Ast::lit(Data::Num(Num::from(self.rng.below(5) as i64 / 4))),
                };
                if self.rng.chance(30) {
                    let l = self.label(1);
                    i = node(Op::Relabel, [l, i]);
                }
                node(Op::Index, [e, i])
            }
            15 => {
                let e = self.term(&Ty::Record(vec![ty.clone()]), two);
                node(Op::Index, [e, Ast::lit(Data::str("a"))])
            }
            16 => {
                let a = self.any_type(1);
                let e = self.term(&Ty::Pair(Box::new((ty.clone(), a))), one);
                node(Op::Fst, [e])
            }
            17 => {
                let a = self.any_type(1);
                let e = self.term(&Ty::Pair(Box::new((a, ty.clone()))), one);
                node(Op::Snd, [e])
            }
            18..20 => {
                let kind = if self.rng.chance(80) { Ty::Tag } else { Ty::Str };
                // A string has no payload.
                let payload = if self.style.typed && kind == Ty::Str { Ty::Null } else { Ty::Num };
                let scrutinee = self.term(&kind, three);
                let mut tags = Vec::new();
                let mut kids = vec![scrutinee];
                for t in 0..3u8 {
                    if self.rng.chance(66) {
                        let binds = self.rng.chance(60);
                        tags.push((t, binds));
                        kids.push(match binds {
                            true => self.under(payload.clone(), ty, three),
                            false => self.term(ty, three),
                        });
                    }
                }
                // A string may be anything.
                let open = tags.len() < 3 || kind == Ty::Str;
                let default = self.style.typed && open || self.rng.chance(80);
                if default {
                    kids.push(self.term(ty, three));
                }
                node(Op::Case(tags, default), kids)
            }
            20..22 => {
                let p = self.predicate(ty);
                let retry = self.rng.below(3) as u32;
                node(Op::Guard(p, retry), [self.term(ty, one)])
            }
            22 => {
                let p = self.rng.one(&[Num::ZERO, Num::ONE, Num::ONE.div(&Num::from(3)).unwrap_or(Num::ONE)]);
                let a = self.term(ty, two);
                node(Op::Choose(p), [a, self.term(ty, two)])
            }
            23 if !self.in_code => self.with_store(ty, size),
            24 => self.term(ty, one),
            25 => node(Op::Fork, [self.term(ty, one)]),
            26 => node(Op::Fresh, [self.term(ty, one)]),
            27..30 => {
                let l = self.label(two);
                node(Op::Relabel, [l, self.term(ty, one)])
            }
            30 if self.style.endorse => {
                let l = self.label(two);
                node(Op::Endorse, [l, self.term(ty, one)])
            }
            31 if self.style.declassify => {
                let l = self.label(two);
                node(Op::Declassify, [l, self.term(ty, one)])
            }
            32..36 => {
                let l = self.label(two);
                let body = if self.rng.chance(40) { self.failing(ty, two) } else { self.term(ty, two) };
                let handler = self.handler(ty, two);
                let draw = self.rng.draw();
                let some = [Catches::NotTimeout, Catches::NotPermanent, Catches::Transient];
                let catches = match draw % 100 {
                    ..75 => Catches::All,
                    _ if self.style.permanent => some[(draw / 100 % 3) as usize],
                    _ => Catches::NotTimeout,
                };
                node(Op::Try(catches), [l, body, handler])
            }
            36 if self.style.parallel => {
                let a = self.any_type(1);
                let first = self.term(ty, three);
                let rest = self.term(&a, three);
                let n = self.most();
                let all = if self.rng.below(2) == 0 {
                    node(Op::Par(n), [first, rest])
                } else {
                    let f = self.term(&Ty::Fun(Box::new((a.clone(), ty.clone()))), three);
                    let second = self.term(&a, three);
                    node(Op::Each(n), [f, node(Op::List, [rest, second])])
                };
                node(Op::Index, [all, Ast::lit(Data::Num(Num::ZERO))])
            }
            // Generated code, if it happens to fit.
            37 | 38 if !self.style.typed => {
                let answer = self.received();
                let rest = self.term(ty, two);
                let value = node(Op::Index, [Ast::var(0), Ast::lit(Data::Num(Num::ONE))]);
                let ok = node(Op::Index, [Ast::var(0), Ast::lit(Data::Num(Num::ZERO))]);
                let effect = node(Op::Let, [value, rest]);
                let fallback = self.leaf(ty);
                node(Op::Let, [answer, node(Op::If, [ok, effect, fallback])])
            }
            39 => {
                let f = node(Op::Global(2 % PRELUDE), []);
                let param = self.any_type(0);
                let step = self.recursive(&param, ty, two);
                node(Op::App, [node(Op::App, [f, step]), self.term(&param, two)])
            }
            40 if !self.style.typed || ty.is_checked() => {
                let e = self.term(ty, one);
                node(Op::Check(check(ty)), [e])
            }
            41 if !self.style.typed && self.rng.chance(15) => node(Op::Unknown, []),
            42 if self.rng.chance(50) => self.failing(ty, one),
            43 | 44 => {
                let seconds = Num::from(self.rng.below(3) as i64);
                node(Op::Within(seconds), [self.term(ty, one)])
            }
            _ => node(Op::Prim(Prim::Flatten), [self.term(ty, one)]),
        }
    }

    /// Generates the concurrency limit of a `par`.
    fn most(&mut self) -> Option<u32> {
        let most = [None, Some(0), Some(1), Some(2)][self.rng.below(4)];
        if self.style.in_order { Some(most.map_or(1, |n| n.min(1))) } else { most }
    }

    /// A term that is likely to fail.
    fn failing(&mut self, ty: &Ty, size: u32) -> Ast {
        let (one, two) = (self.split(size, 1), self.split(size, 2));
        let reason = self.any_type(0);
        let fail = node(Op::Fail, [self.term(&reason, one)]);
        let c = self.term(&Ty::Bool, two);
        node(Op::If, [c, fail, self.term(ty, two)])
    }

    /// The same, sometimes with a label on the whole that its parts do not have.
    fn raised(&mut self, e: Ast) -> Ast {
        if self.rng.chance(70) {
            return e;
        }
        let l = shifted(self.label(1));
        node(Op::Let, [e, node(Op::Relabel, [l, Ast::var(0)])])
    }

    /// Generates a handler of an error, below a variable for its message.
    fn handler(&mut self, ty: &Ty, size: u32) -> Ast {
        let seen = if self.style.messages { Ty::Str } else { Ty::Bool };
        self.under(seen, ty, size)
    }

    /// `λself. λx. …`, which calls itself sometimes.
    fn recursive(&mut self, param: &Ty, result: &Ty, size: u32) -> Ast {
        let function = Ty::Fun(Box::new((param.clone(), result.clone())));
        self.scope.push(function);
        let body = self.under(param.clone(), result, size);
        self.scope.pop();
        node(Op::Lam, [node(Op::Lam, [body])])
    }

    /// A former of the type.
    fn particular(&mut self, ty: &Ty, size: u32) -> Ast {
        let (one, two, three) = (self.split(size, 1), self.split(size, 2), self.split(size, 3));
        match ty {
            Ty::Null => self.leaf(ty),
            Ty::Label => match self.rng.below(3) {
                0 => {
                    let c = self.term(&Ty::Bool, two);
                    let (a, b) = (self.leaf(ty), self.leaf(ty));
                    node(Op::If, [c, a, b])
                }
                1 => {
                    let (l, e) = (self.leaf(ty), self.leaf(ty));
                    node(Op::Relabel, [l, e])
                }
                _ => self.leaf(ty),
            },
            Ty::Bool => match self.former(14) {
                0 => {
                    let t = self.comparable();
                    let a = self.term(&t, two);
                    node(Op::Prim(self.rng.one(&[Prim::Eq, Prim::Ne])), [a, self.term(&t, two)])
                }
                1 | 2 => {
                    let t = if self.rng.chance(80) { Ty::Num } else { Ty::Str };
                    let a = self.term(&t, two);
                    let p = self.rng.one(&[Prim::Lt, Prim::Le, Prim::Gt, Prim::Ge]);
                    node(Op::Prim(p), [a, self.term(&t, two)])
                }
                3 => node(Op::Prim(Prim::Not), [self.term(ty, one)]),
                4 | 5 => {
                    let op = if self.rng.chance(50) { Op::And } else { Op::Or };
                    let a = self.term(ty, two);
                    node(op, [a, self.term(ty, two)])
                }
                6..9 => {
                    let t = self.any_type(1);
                    let l = self.label(two);
                    node(Op::Test, [l, self.term(&t, two)])
                }
                9 => {
                    let t = self.any_type(1);
                    let p = self.rng.one(&[
                        Prim::IsFn,
                        Prim::IsArray,
                        Prim::IsRecord,
                        Prim::IsStr,
                        Prim::IsNum,
                        Prim::IsBool,
                        Prim::IsNull,
                    ]);
                    node(Op::Prim(p), [self.term(&t, one)])
                }
                10 => {
                    let a = self.term(&Ty::Str, two);
                    node(Op::Prim(Prim::Contains), [a, self.term(&Ty::Str, two)])
                }
                11 => {
                    let a = self.term(&Ty::Record(vec![Ty::Num]), two);
                    let name = self.rng.one(&FIELDS);
                    node(Op::Prim(Prim::Has), [a, Ast::lit(Data::str(name))])
                }
                12 if !self.in_code => node(Op::App, [node(Op::Tool(2), []), Ast::lit(Data::Null)]),
                _ => self.leaf(ty),
            },
            Ty::Num => match self.former(14) {
                0..5 => {
                    let p = self.rng.one(&[Prim::Add, Prim::Add, Prim::Sub, Prim::Mul, Prim::Div, Prim::Rem]);
                    let a = self.term(ty, two);
                    node(Op::Prim(p), [a, self.term(ty, two)])
                }
                5 => node(Op::Prim(Prim::Neg), [self.term(ty, one)]),
                6 => {
                    let t = self.rng.one(&[Ty::Str, Ty::List(Box::new(Ty::Num)), Ty::Record(vec![Ty::Num])]);
                    node(Op::Prim(Prim::Length), [self.term(&t, one)])
                }
                7 => node(
                    Op::Prim(Prim::ToNum),
                    [Ast::lit(Data::str(self.rng.one(&["12", "1/3", "x", " 4 "])))],
                ),
                8 if !self.in_code => node(Op::App, [node(Op::Tool(0), []), self.term(ty, one)]),
                9 if !self.in_code => match self.rng.below(3) {
                    0 => node(Op::App, [node(Op::Tool(0), []), self.term(ty, one)]),
                    1 => {
                        // It takes data, and its one argument by name if that is a record with a field of the
                        // name.
                        let t = match self.comparable() {
                            Ty::Record(_) if self.style.typed => Ty::Num,
                            t => t,
                        };
                        node(Op::App, [node(Op::Tool(3), []), self.term(&t, one)])
                    }
                    // Every argument is optional.
                    _ => {
                        let args = |this: &mut Self| match this.rng.below(4) {
                            0 => node(Op::Record(vec![]), []),
                            1 => node(Op::Record(vec![0]), [this.term(ty, three)]),
                            2 => node(Op::Record(vec![1]), [this.term(&Ty::Str, three)]),
                            _ => node(Op::Record(vec![0, 1]), [this.term(ty, three), this.leaf(&Ty::Str)]),
                        };
                        let mut given = args(self);
                        if self.rng.chance(30)
                            && let Some(test) = self.test_of_given()
                        {
                            given = node(Op::If, [test, given, args(self)]);
                        }
                        let given = self.raised(given);
                        node(Op::App, [node(Op::Tool(5), []), given])
                    }
                },
                10 if !self.in_code => {
                    // The second argument is optional.
                    let a = self.term(ty, two);
                    let args = match self.rng.chance(70) {
                        true => node(Op::Record(vec![0, 1]), [a, self.term(&Ty::Str, two)]),
                        false => node(Op::Record(vec![0]), [a]),
                    };
                    let args = self.raised(args);
                    node(Op::Field(0), [node(Op::App, [node(Op::Tool(4), []), args])])
                }
                11 => {
                    let i = self.keys.iter().position(|k| k == ty);
                    self.recalled(ty, i)
                }
                12 => {
                    let prompt = self.term(&Ty::Str, two);
                    let llm = node(Op::Llm(1), [prompt]);
                    node(Op::App, [llm, self.term(&Ty::Str, two)])
                }
                _ => self.leaf(ty),
            },
            Ty::Str => match self.former(14) {
                0 | 1 => {
                    let parts = self.rng.below(3) + 1;
                    let kids: Vec<Ast> = (0..parts)
                        .map(|_| {
                            let t = self.any_type(1);
                            self.term(&t, three)
                        })
                        .collect();
                    node(Op::Prim(Prim::Format), kids)
                }
                2 => {
                    let a = self.term(ty, two);
                    node(Op::Prim(Prim::Add), [a, self.term(ty, two)])
                }
                3 => {
                    let t = self.comparable();
                    let p = self.rng.one(&[Prim::ToStr, Prim::ToJson]);
                    node(Op::Prim(p), [self.term(&t, one)])
                }
                4 => {
                    let p = self.rng.one(&[Prim::Lower, Prim::Upper, Prim::Trim]);
                    node(Op::Prim(p), [self.term(ty, one)])
                }
                5 => {
                    let a = self.term(&Ty::List(Box::new(Ty::Str)), two);
                    node(Op::Prim(Prim::Join), [a, self.leaf(ty)])
                }
                6 => {
                    let (i, j) = (self.rng.below(3) as i64, self.rng.below(4) as i64);
                    let a = self.term(ty, one);
                    let at = |n: i64| Ast::lit(Data::Num(Num::from(n)));
                    node(Op::Prim(Prim::Slice), [a, at(i), at(j)])
                }
                7 if !self.in_code => {
                    let a = self.term(&Ty::Num, two);
                    let args = node(Op::Record(vec![0, 1]), [a, self.term(ty, two)]);
                    let args = self.raised(args);
                    node(Op::App, [node(Op::Tool(1), []), args])
                }
                8 => {
                    let i = self.keys.iter().position(|k| k == ty);
                    self.recalled(ty, i)
                }
                9 | 10 => {
                    let model = self.rng.one(&[0, 3, 6]);
                    let prompt = self.term(ty, two);
                    let t = self.any_type(1);
                    node(Op::App, [node(Op::Llm(model), [prompt]), self.term(&t, two)])
                }
                11 => node(Op::RecvData(self.rng.one(&[0, 3, 6])), []),
                _ => self.leaf(ty),
            },
            Ty::List(t) => match self.former(8) {
                0..3 => {
                    let n = self.rng.below(4) as u32;
                    let each = self.split(size, n.max(1));
                    let kids: Vec<Ast> = (0..n).map(|_| self.term(t, each)).collect();
                    node(Op::List, kids)
                }
                3 => {
                    let a = self.term(ty, two);
                    node(Op::Prim(Prim::Append), [a, self.term(t, two)])
                }
                4 => {
                    let a = self.term(ty, two);
                    node(Op::Prim(Prim::Add), [a, self.term(ty, two)])
                }
                5 if **t == Ty::Num => {
                    let n = self.rng.below(5) as i64;
                    let a = self.leaf(&Ty::Num);
                    node(Op::Prim(Prim::Range), [a, Ast::lit(Data::Num(Num::from(n)))])
                }
                5 if **t == Ty::Str => {
                    let a = self.term(&Ty::Str, one);
                    node(Op::Prim(Prim::Split), [a, Ast::lit(Data::str(self.rng.one(&[" ", "a", "é"])))])
                }
                6 if self.style.parallel => {
                    let n = self.rng.below(3) as u32 + 1;
                    let each = self.split(size, n);
                    let kids: Vec<Ast> = (0..n).map(|_| self.term(t, each)).collect();
                    node(Op::Par(self.most()), kids)
                }
                _ => {
                    let (i, j) = (self.rng.below(2) as i64, self.rng.below(4) as i64);
                    let at = |n: i64| Ast::lit(Data::Num(Num::from(n)));
                    let a = self.term(ty, one);
                    node(Op::Prim(Prim::Slice), [a, at(i), at(j)])
                }
            },
            Ty::Record(ts) => match self.former(5) {
                0 => {
                    let i = self.rng.below(ts.len().max(1));
                    let a = self.term(ty, two);
                    let t = ts.get(i).cloned().unwrap_or(Ty::Null);
                    node(Op::With(i as u8), [a, self.term(&t, two)])
                }
                1 if !self.style.typed => {
                    let text = self.rng.one(&["{\"a\": 1, \"b\": [true]}", "{\"a\": \"x\"}", "not json"]);
                    node(Op::Prim(Prim::FromJson), [Ast::lit(Data::str(text))])
                }
                _ => {
                    let each = self.split(size, ts.len() as u32);
                    let kids: Vec<Ast> = ts.iter().map(|t| self.term(t, each)).collect();
                    node(Op::Record((0..ts.len() as u8).collect()), kids)
                }
            },
            Ty::Pair(p) => {
                let a = self.term(&p.0, two);
                node(Op::Pair, [a, self.term(&p.1, two)])
            }
            Ty::Tag => match self.rng.below(4) {
                // A tag without payload, and one that a text became, has the payload null.
                _ if self.style.typed => node(Op::Tag(self.rng.byte() % 3), [self.term(&Ty::Num, one)]),
                0 => node(Op::Tag(self.rng.byte() % 3), []),
                1 if self.rng.chance(40) => node(Op::Classify(vec![0, 1, 2]), [self.term(ty, one)]),
                1 => node(Op::Classify(vec![0, 1, 2]), [self.term(&Ty::Str, one)]),
                _ => node(Op::Tag(self.rng.byte() % 3), [self.term(&Ty::Num, one)]),
            },
            Ty::Fun(f) => match self.former(12) {
                0..5 => {
                    let body = self.under(f.0.clone(), &f.1, one);
                    node(Op::Lam, [body])
                }
                5 | 6 => {
                    let bound = match self.rng.below(5) {
                        0 => Bound::Infinite,
                        // When its bound is reached it gives back its argument.
                        _ if self.style.typed && f.0 != f.1 => Bound::Infinite,
                        n => Bound::Finite(n as u64 - 1),
                    };
                    let functional = self.recursive(&f.0, &f.1, one);
                    let indirect = !self.style.typed && self.rng.chance(30);
                    node(Op::Fix(bound), [if indirect { indirectly(functional) } else { functional }])
                }
                7 => {
                    let between = self.any_type(1);
                    let first = self.term(&Ty::Fun(Box::new((f.0.clone(), between.clone()))), two);
                    let second = self.term(&Ty::Fun(Box::new((between, f.1.clone()))), two);
                    node(Op::Compose, [first, second])
                }
                8 => {
                    let p = self.predicate(&f.1);
                    let retry = self.rng.below(2) as u32;
                    node(Op::Guard(p, retry), [self.term(ty, one)])
                }
                9 if f.0 == f.1 => {
                    let g = self.term(ty, one);
                    node(Op::App, [node(Op::Global(1), []), g])
                }
                9 if f.0 == Ty::Num && f.1 == Ty::Bool => node(Op::Global(3 + self.rng.byte() % 2), []),
                10 => match (&f.1, self.style.parallel && !self.style.in_order) {
                    (Ty::Pair(p), true) => {
                        let left = self.term(&Ty::Fun(Box::new((f.0.clone(), p.0.clone()))), two);
                        let right = self.term(&Ty::Fun(Box::new((f.0.clone(), p.1.clone()))), two);
                        node(Op::ParPair, [left, right])
                    }
                    (Ty::Str, _) => {
                        let prompt = self.term(&Ty::Str, one);
                        node(Op::Llm(0), [prompt])
                    }
                    // It takes a number, whatever is wanted.
                    (Ty::Num, _) if !self.in_code && (!self.style.typed || f.0 == Ty::Num) => {
                        node(Op::Tool(0), [])
                    }
                    _ => self.leaf(ty),
                },
                _ => self.leaf(ty),
            },
        }
    }

    /// Generates the value of a store's key, or a leaf if there is no such key.
    fn recalled(&mut self, ty: &Ty, key: Option<usize>) -> Ast {
        let Some(i) = key else { return self.leaf(ty) };
        let recall = node(Op::Recall(i as u8), []);
        if !self.style.typed && self.rng.chance(30) {
            return recall;
        }
        let missing = node(Op::Prim(Prim::IsNull), [Ast::var(0)]);
        // Where it is missing the variable is null.
        self.scope.push(if self.style.typed { Ty::Null } else { ty.clone() });
        let default = self.leaf(ty);
        self.scope.pop();
        node(Op::Let, [recall, node(Op::If, [missing, default, Ast::var(0)])])
    }
}

/// The type that a term is checked against.
fn check(ty: &Ty) -> Type {
    match ty {
        Ty::Null => Type::Null,
        Ty::Bool => Type::Bool,
        Ty::Num => Type::Num,
        Ty::Str => Type::Str,
        Ty::List(t) => Type::list(check(t)),
        Ty::Record(ts) => Type::record(FIELDS.iter().zip(ts).map(|(n, t)| (Name::from(*n), check(t)))),
        Ty::Pair(p) => Type::Pair(Arc::new((check(&p.0), check(&p.1)))),
        Ty::Tag => Type::Variant(TAGS.iter().map(|t| (Name::from(*t), Type::option(Type::Num))).collect()),
        Ty::Fun(_) | Ty::Label => Type::Dyn,
    }
}
