//! Closed terms of every form, made from a sequence of choices, so that a failing one shrinks.

pub mod agent_text;

use core_ir::{
    Among, AmongSource, Approve, Bound, BoundOrigin, Branch, Builder, Catches, Code, Comparison, Data,
    Delegated, Effect, EffectClass, EffectRow, EnumType, Globals, IfSugar, KeyDecl, LabelName, LabelSpec,
    LetSugar, Measure, ModelParams, Name, Num, PartLabel, PartPath, PathStep, Pattern, Plain, Pred, Prim,
    RecType, Recv, Region, ResultParts, Role, SetStep, StoreDecl, StoreId, Term, TermId, ToolDecl, ToolId,
    ToolParam, Type,
};
use diagnostics::{FileId, Span};
use std::collections::BTreeSet;
use std::sync::Arc;

const AT: Span = Span { file: FileId(0), start: 0, end: 0 };

const NAMES: &[&str] = &[
    "x",
    "y",
    "case",
    "a b",
    "é",
    "_",
    "in",
    "$v1",
    "$case",
    "",
    "1x",
    "λ",
    "say \"hi\"",
    "{",
    "retry",
    "read",
    "store",
    "fix",
    "list",
    "model",
    "any",
    "length",
    "then",
    "secret",
    "capacity",
    "\n",
    "$",
    "'",
    "\\",
];

const TEXTS: &[&str] = &[
    "",
    "plain",
    "includes",
    "pattern",
    "completes",
    "two words",
    "a {hole}",
    "\"quoted\"",
    "line\nbreak",
    "it's",
    "\\n",
    "{\"a\": 'b'}",
    "λ ≫ ⊕",
    "\u{0}\u{1b}\u{202e}",
    "# no comment",
    "`tag",
    "}",
    "^[a-z]{3}$",
    "\r\n\t",
];

/// The number of term forms that [`Gen::term`] chooses from; each appears in the generated terms.
pub const FORMS: u8 = 47;

pub struct Gen<'a> {
    choices: std::slice::Iter<'a, u8>,
    b: Builder,
    scope: Vec<Name>,
    keys: Vec<Name>,
    tools: u32,
    stores: Vec<StoreDecl>,
    depth: u32,
}

/// The term that a sequence of choices represents.
pub fn code(choices: &[u8]) -> Code {
    let mut g = Gen {
        choices: choices.iter(),
        b: Builder::new(),
        scope: Vec::new(),
        keys: Vec::new(),
        tools: 0,
        stores: Vec::new(),
        depth: 0,
    };
    for _ in 0..g.pick(3) {
        g.tool();
    }
    for _ in 0..g.pick(3) {
        g.store();
    }
    let root = g.term();
    g.b.finish(root, &Globals::none()).expect("generated terms are closed")
}

impl Gen<'_> {
    /// A number below `n`; zero when the choices run out.
    fn pick(&mut self, n: usize) -> usize {
        self.choices.next().map_or(0, |c| usize::from(*c) % n)
    }

    fn flag(&mut self) -> bool {
        self.pick(2) == 1
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        let i = self.pick(all.len());
        all[i].clone()
    }

    fn name(&mut self) -> Name {
        self.of(NAMES).into()
    }

    fn enumeration(&mut self) -> EnumType {
        let plain = EnumType::new(self.name(), self.names(3));
        let descriptions: Vec<Option<Name>> =
            plain.variants.iter().map(|_| (self.pick(3) == 0).then(|| self.name())).collect();
        plain.described(descriptions)
    }

    fn names(&mut self, most: usize) -> Vec<Name> {
        let mut out: Vec<Name> = Vec::new();
        for _ in 0..self.pick(most + 1) {
            let n = self.name();
            if !out.contains(&n) {
                out.push(n);
            }
        }
        out
    }

    fn text(&mut self) -> Arc<str> {
        self.of(TEXTS).into()
    }

    fn num(&mut self) -> Num {
        let n = Num::from(self.pick(256) as i64 - 100);
        match self.pick(4) {
            0 => n,
            1 => n.div(&Num::from(10)).unwrap(),
            2 => n.div(&Num::from(3)).unwrap(),
            _ => n.mul(&Num::from(i64::MAX)).unwrap(),
        }
    }

    fn probability(&mut self) -> Num {
        Num::from(self.pick(8) as i64).div(&Num::from(7)).unwrap()
    }

    fn some<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.flag() { Some(f(self)) } else { None }
    }

    fn many<T>(&mut self, most: usize, mut f: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.pick(most + 1)).map(|_| f(self)).collect()
    }

    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.depth += 1;
        let out = f(self);
        self.depth -= 1;
        out
    }

    fn data(&mut self) -> Data {
        let forms = if self.depth > 8 { 4 } else { 8 };
        self.nested(|g| match g.pick(forms) {
            0 => Data::Null,
            1 => Data::Bool(g.flag()),
            2 => Data::Num(g.num()),
            3 => Data::Str(g.text()),
            4 => Data::list(g.many(3, Self::data)),
            5 => {
                let names = g.names(3);
                Data::record(names.into_iter().map(|n| (n, g.data())).collect::<Vec<_>>())
            }
            6 => Data::Pair(Arc::new((g.data(), g.data()))),
            _ => Data::Tag(g.name(), Arc::new(g.data())),
        })
    }

    fn ty(&mut self) -> Type {
        let forms = if self.depth > 8 { 5 } else { 15 };
        self.nested(|g| match g.pick(forms) {
            0 => Type::Dyn,
            1 => Type::Str,
            2 => Type::Num,
            3 => Type::Bool,
            4 => Type::Null,
            5 => Type::list(g.ty()),
            6 => Type::option(g.ty()),
            7 => {
                let names = g.names(3);
                Type::record(names.into_iter().map(|n| (n, g.ty())).collect::<Vec<_>>())
            }
            8 => Type::Enum(Arc::new(g.enumeration())),
            9 => {
                let names = g.names(3);
                Type::Variant(names.into_iter().map(|n| (n, g.ty())).collect())
            }
            10 => Type::Pair(Arc::new((g.ty(), g.ty()))),
            11 => {
                let (a, row, b) = (g.ty(), g.effects(), g.ty());
                Type::fun(a, row, b)
            }
            12 => Type::map(g.ty(), g.ty()),
            13 => {
                let names = g.names(3);
                let one = |g: &mut Self| Type::option(Type::Var(names[g.pick(names.len())].clone()));
                let bodies: Vec<(Name, Type)> = names
                    .iter()
                    .map(|n| (n.clone(), Type::record([("of".into(), one(g)), ("x".into(), Type::Num)])))
                    .collect();
                let ty = names.first().and_then(|n| RecType::new(n.clone(), bodies.into()));
                ty.map_or(Type::Null, |ty| Type::Rec(Arc::new(ty)))
            }
            _ => Type::Refined(Arc::new((g.ty(), g.pred()))),
        })
    }

    fn effects(&mut self) -> EffectRow {
        if self.flag() {
            return EffectRow::pure();
        }
        if self.flag() {
            return EffectRow::Any;
        }
        let set: BTreeSet<Effect> = self
            .many(3, |g| match g.pick(5) {
                0 => Effect::Llm(g.name()),
                1 => Effect::Tool(g.name()),
                2 => Effect::State(g.name()),
                3 => Effect::Sample,
                _ => Effect::Conversation,
            })
            .into_iter()
            .collect();
        EffectRow::Only(set)
    }

    fn pred(&mut self) -> Pred {
        let forms = if self.depth > 8 { 6 } else { 12 };
        self.nested(|g| match g.pick(forms) {
            0 => Pred::True,
            1 => {
                let measure = g.of(&[Measure::Length, Measure::Words, Measure::Value]);
                let comparison = g.of(&[
                    Comparison::Lt,
                    Comparison::Le,
                    Comparison::Gt,
                    Comparison::Ge,
                    Comparison::Eq,
                    Comparison::Ne,
                ]);
                Pred::Compare(measure, comparison, g.num())
            }
            2 => Pred::Matches(g.text()),
            3 => Pred::Contains(g.text()),
            4 => Pred::OneOf(g.many(3, Self::data).into()),
            5 => {
                let n = Data::Num(Num::from(g.pick(5) as i64));
                let items = Data::record([("enum".into(), Data::list(g.many(3, Self::data)))]);
                let schema = Data::record([("minimum".into(), n), ("items".into(), items)]);
                Pred::Schema(Arc::new(core_ir::Schema::new(&schema).expect("a schema")))
            }
            6 => Pred::Field(g.name(), Arc::new(g.pred())),
            7 => Pred::Every(Arc::new(g.pred())),
            8 => Pred::Some(Arc::new(g.pred())),
            9 => Pred::And(Arc::new((g.pred(), g.pred()))),
            10 => Pred::Or(Arc::new((g.pred(), g.pred()))),
            _ => Pred::Not(Arc::new(g.pred())),
        })
    }

    fn label(&mut self) -> LabelSpec {
        match self.pick(3) {
            0 => LabelSpec::Axes { untrusted: self.flag(), secret: self.flag() },
            1 => LabelSpec::Exact(Data::list([Data::str("U")])),
            _ => LabelSpec::Exact(self.data()),
        }
    }

    /// A function of a record, closed.
    fn policy(&mut self) -> Arc<Code> {
        let mut b = Builder::new();
        let a = b.var("a", AT);
        let name = self.name();
        let field = b.add(Term::Field(a, name), AT);
        let data = b.lit(self.data(), AT);
        let body = b.add(Term::Prim(Prim::Eq, vec![field, data]), AT);
        let f = b.abs("a", None, body, AT);
        Arc::new(b.finish(f, &Globals::none()).expect("closed"))
    }

    fn tool(&mut self) {
        let name = Name::from(format!("{}{}", self.name(), self.tools));
        let params = self.names(3);
        let decl = ToolDecl {
            name,
            params: params
                .into_iter()
                .map(|name| ToolParam { name, ty: self.ty(), bound: self.label(), default: None })
                .collect(),
            result: self.ty(),
            effect: self.of(&[EffectClass::Write, EffectClass::Read, EffectClass::Pure]),
            control: self.label(),
            label: self.label(),
            parts: self.parts(),
            description: self.some(|g| Name::from(&*g.text())),
            handler: self.some(Self::data),
            approve: self.of(&[Approve::Never, Approve::IfRefused, Approve::Always]),
            delegated: self.some(|g| Arc::new(Delegated { tool: g.name(), to: g.names(2).into() })),
            confirms: self.flag(),
            among: self.among(),
            plain: self.some(|g| (g.name(), Plain::NoLinks)).into_iter().collect(),
            pattern: self
                .some(|g| (g.name(), Pattern::new("[0-9]{6}").expect("a pattern")))
                .into_iter()
                .collect(),
            completes: self.names(2).into(),
            includes: self.some(|g| (g.name(), [g.name()].into())).into_iter().collect(),
            at_most: self.some(|g| g.pick(9) as u64),
            policy: self.some(Self::policy),
            span: AT,
        };
        self.b.tool(decl);
        self.tools += 1;
    }

    fn parts(&mut self) -> ResultParts {
        let rules = self.pick(9).saturating_sub(5);
        let rules: Vec<PartLabel> = (0..rules)
            .map(|_| {
                let steps = self.pick(4);
                let steps: Vec<PathStep> = (0..steps)
                    .map(|_| match self.pick(4) {
                        0 => PathStep::Items,
                        1 => PathStep::Values,
                        _ => PathStep::Field(self.name()),
                    })
                    .collect();
                let path = PartPath::new(steps).expect("few steps");
                let label_names = |g: &mut Self| {
                    let names = g.names(2);
                    let all = names.into_iter().filter(|n| !n.is_empty());
                    all.map(|n| if g.flag() { LabelName::Field(n) } else { LabelName::Argument(n) }).collect()
                };
                PartLabel { path, label: self.label(), source: label_names(self), readers: label_names(self) }
            })
            .collect();
        ResultParts::new(rules)
    }

    fn set_path(&mut self) -> Vec<SetStep> {
        let names = self.names(2);
        let path = names.into_iter().map(|n| if self.flag() { SetStep::Field(n) } else { SetStep::Values });
        let path: Vec<SetStep> = path.collect();
        path.into_iter().chain(self.flag().then_some(SetStep::Keys)).collect()
    }

    fn among(&mut self) -> Box<[Among]> {
        let sets = self.pick(9).saturating_sub(6);
        (0..sets)
            .map(|_| {
                let source = match self.pick(5) {
                    0 => AmongSource::Request,
                    1 => AmongSource::Sites,
                    2 => AmongSource::Values((0..self.pick(3)).map(|_| self.data()).collect()),
                    3 => AmongSource::Below(Region::new("/down loads/").expect("a place")),
                    _ => AmongSource::Tool(self.name()),
                };
                let names = self.names(2);
                let mut params: Vec<_> = names.into_iter().map(|n| (n, self.set_path())).collect();
                if params.is_empty() {
                    params.push(("x".into(), Vec::new()));
                }
                Among { source, params }
            })
            .collect()
    }

    fn store(&mut self) -> StoreId {
        // A name has one declaration; the same again is that one.
        if let Some(decl) = self.stores.last().cloned()
            && self.pick(8) == 1
        {
            self.stores.push(decl.clone());
            return self.b.store(decl);
        }
        let names = self.names(3);
        let decl = StoreDecl {
            name: format!("{}{}", self.name(), self.stores.len()).into(),
            keys: names
                .into_iter()
                .map(|name| KeyDecl {
                    name,
                    ty: self.ty(),
                    label: self.label(),
                    initial: self.some(Self::data),
                })
                .collect(),
            capacity: self.some(|g| g.pick(100) as u64),
            ttl: self.some(|g| g.pick(100) as u64),
            backend: self.some(|g| Name::from(&*g.text())),
            span: AT,
        };
        self.stores.push(decl.clone());
        self.b.store(decl)
    }

    fn params(&mut self) -> Arc<ModelParams> {
        let names = self.names(2);
        Arc::new(ModelParams {
            model: self.some(|g| Name::from(&*g.text())),
            temperature: self.some(Self::num),
            max_tokens: self.some(|g| g.pick(100) as u64),
            result: self.some(Self::ty),
            repair: self.pick(4) as u32,
            tools: if self.tools == 0 {
                Vec::new()
            } else {
                self.many(2, |g| ToolId(g.pick(g.tools as usize) as u32))
            },
            waiting: self.pick(2) == 1,
            purpose: self.some(|g| Name::from(&*g.text())),
            extra: names.into_iter().map(|n| (n, self.data())).collect(),
        })
    }

    /// A term in whose scope the names are bound.
    fn under(&mut self, names: &[Name]) -> TermId {
        let n = self.scope.len();
        self.scope.extend_from_slice(names);
        let id = self.term();
        self.scope.truncate(n);
        id
    }

    fn terms(&mut self, most: usize) -> Vec<TermId> {
        self.many(most, Self::term)
    }

    fn term(&mut self) -> TermId {
        let forms = if self.depth > 7 { 4 } else { usize::from(FORMS) };
        self.nested(|g| {
            let form = g.pick(forms);
            g.form(form)
        })
    }

    fn form(&mut self, form: usize) -> TermId {
        let term = match form {
            0 => Term::Lit(self.data()),
            1 if !self.scope.is_empty() => {
                let scope = self.scope.clone();
                let name = self.of(&scope);
                return self.b.var(name, AT);
            }
            1 => Term::Clear,
            2 => Term::Recv(Recv::Code),
            3 => Term::Tag(self.name(), None),
            4 => {
                let names = self.names(3);
                Term::Record(names.into_iter().map(|n| (n, self.term())).collect())
            }
            5 => Term::List(self.terms(3)),
            6 => {
                let (param, ty) = (self.name(), self.some(Self::ty));
                let body = self.under(std::slice::from_ref(&param));
                return self.b.abs(param, ty, body, AT);
            }
            7 => {
                let stages = self.many(3, |g| g.stage()).into_iter().collect::<Vec<_>>();
                return self.b.compose(stages, AT);
            }
            8 => {
                let (a, b) = (self.term(), self.term());
                return self.b.par_pair(a, b, AT);
            }
            9 => Term::App(self.term(), self.term()),
            10 => {
                let n = self.scope.len();
                let mut bindings = Vec::new();
                for _ in 0..1 + self.pick(3) {
                    let name = self.name();
                    let e = self.term();
                    self.scope.push(name.clone());
                    bindings.push((name, e));
                }
                let body = self.term();
                self.scope.truncate(n);
                Term::Let { bindings, body, sugar: LetSugar::Plain }
            }
            11 => {
                let e = self.term();
                return self.b.ask(e, AT);
            }
            12 => Term::Field(self.term(), self.name()),
            13 => Term::Index(self.term(), self.term()),
            14 => Term::With(self.term(), self.name(), self.term()),
            15 => {
                let all: Vec<Prim> = Prim::ALL.iter().map(|r| r.0).collect();
                let p = self.of(&all);
                let n = match p.arity() {
                    Some(n) => n,
                    None => self.pick(4),
                };
                Term::Prim(p, (0..n).map(|_| self.term()).collect())
            }
            16 => {
                let p = self.of(&[
                    Prim::Add,
                    Prim::Sub,
                    Prim::Mul,
                    Prim::Div,
                    Prim::Rem,
                    Prim::Eq,
                    Prim::Ne,
                    Prim::Lt,
                    Prim::Le,
                    Prim::Gt,
                    Prim::Ge,
                ]);
                Term::Prim(p, vec![self.term(), self.term()])
            }
            17 => Term::Prim(self.of(&[Prim::Neg, Prim::Not]), vec![self.term()]),
            18 => {
                let parts = self.many(4, |g| {
                    if g.flag() {
                        let text = g.text();
                        g.b.lit(Data::Str(text), AT)
                    } else {
                        g.term()
                    }
                });
                Term::Prim(Prim::Format, parts)
            }
            19 => Term::Pair(self.term(), self.term()),
            20 => Term::Fst(self.term()),
            21 => Term::Snd(self.term()),
            22 => Term::Tag(self.name(), Some(self.term())),
            23 => Term::If(self.term(), self.term(), self.term(), IfSugar::Plain),
            24 => {
                let (a, b) = (self.term(), self.term());
                let no = self.b.lit(false, AT);
                Term::If(a, b, no, IfSugar::And)
            }
            25 => {
                let (a, yes, b) = (self.term(), self.b.lit(true, AT), self.term());
                Term::If(a, yes, b, IfSugar::Or)
            }
            26 => {
                let scrutinee = self.term();
                let tags = self.names(3);
                let branches = tags
                    .into_iter()
                    .map(|tag| {
                        let binder = self.some(Self::name);
                        let body = self.under(binder.as_slice());
                        Branch { tag, binder, body }
                    })
                    .collect();
                Term::Case { scrutinee, branches, default: self.some(Self::term) }
            }
            27 => Term::Classify(self.names(3), self.term()),
            28 => Term::Fix {
                bound: if self.flag() { Bound::Infinite } else { Bound::Finite(self.pick(100) as u64) },
                origin: self.some(|g| BoundOrigin::from(&*g.text())),
                body: self.term(),
            },
            29 => Term::Guard { term: self.term(), pred: self.pred(), retry: self.pick(3) as u32 },
            30 => {
                let id = if self.stores.is_empty() || self.flag() {
                    self.store()
                } else {
                    StoreId(self.pick(self.stores.len()) as u32)
                };
                let before = self.keys.len();
                let keys: Vec<Name> =
                    self.stores[id.0 as usize].keys.iter().map(|k| k.name.clone()).collect();
                self.keys.extend(keys);
                let e = self.term();
                self.keys.truncate(before);
                Term::Mem(id, e)
            }
            31 if !self.keys.is_empty() => {
                let keys = self.keys.clone();
                Term::Recall(self.of(&keys), None)
            }
            32 if !self.keys.is_empty() => {
                let keys = self.keys.clone();
                Term::Remember(self.of(&keys), None, self.term())
            }
            31 | 32 => Term::Clear,
            33 => Term::Choose(self.probability(), self.term(), self.term()),
            34 => Term::Llm(self.term(), self.params()),
            35 if self.tools > 0 => {
                let tool = ToolId(self.pick(self.tools as usize) as u32);
                if self.flag() {
                    let names = self.names(3);
                    Term::Args(tool, names.into_iter().map(|n| (n, self.term())).collect())
                } else {
                    Term::Tool(tool)
                }
            }
            35 => Term::Clear,
            36 => {
                let role = self.of(&[Role::User, Role::System, Role::Assistant, Role::Tool]);
                Term::Send(role, self.term())
            }
            37 => Term::Recv(Recv::Data(self.params())),
            38 => Term::Fork(self.term()),
            39 => Term::Fresh(self.term()),
            40 => {
                let make =
                    self.of(&[Term::Relabel, Term::Test, Term::Assert, Term::Endorse, Term::Declassify]);
                make(self.term(), self.term())
            }
            41 => {
                let (label, body, name) = (self.term(), self.term(), self.name());
                let handler = self.under(std::slice::from_ref(&name));
                let catches = self.of(&Catches::WORDS).0;
                Term::Try { label, body, catches, name, handler }
            }
            42 => Term::Fail(self.term()),
            43 => Term::Par(self.some(|g| g.pick(9) as u32), self.terms(3)),
            44 => Term::Check(self.name(), self.ty(), self.term()),
            45 => Term::Within(Num::from(self.pick(9) as i64).div(&Num::from(7)).unwrap(), self.term()),
            46 => Term::Each(self.some(|g| g.pick(9) as u32), self.term(), self.term()),
            _ => Term::Unknown(Name::from(&*self.text())),
        };
        self.b.add(term, AT)
    }

    /// A stage: what is itself a composition would be spliced in.
    fn stage(&mut self) -> TermId {
        self.term()
    }
}
