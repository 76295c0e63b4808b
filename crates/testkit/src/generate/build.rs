//! From the trees of the generator to code.

use super::{Ast, Op, Program};
use core_ir::{
    Abs, AbsSugar, Branch, BuildError, Builder, Code, Data, Globals, IfSugar, LetSugar, ModelParams, Name,
    Num, Prim, Recv, Role, StoreId, Term, TermId, ToolId,
};
use diagnostics::{FileId, Span};
use std::sync::{Arc, LazyLock};

const AT: Span = Span { file: FileId(0), start: 0, end: 0 };

/// The names of fields.
pub(super) const FIELDS: [&str; 4] = ["a", "b", "c", "d"];
/// The names of tags.
pub(super) const TAGS: [&str; 4] = ["yes", "no", "maybe", "final"];

/// A small prelude: functions of one, two and three parameters, and two that call each other.
pub fn prelude() -> Arc<Globals> {
    static PRELUDE: LazyLock<Arc<Globals>> = LazyLock::new(|| Arc::new(make_prelude()));
    PRELUDE.clone()
}

/// Number of functions in the prelude.
pub(super) const PRELUDE: u8 = 5;

fn make_prelude() -> Globals {
    let mut b = Builder::new();
    let x = b.var("x", AT);
    let id = b.abs("x", None, x, AT);
    // twice = λf. λx. f (f x)
    let (f, g, x) = (b.var("f", AT), b.var("f", AT), b.var("x", AT));
    let inner = b.app(g, x, AT);
    let outer = b.app(f, inner, AT);
    let twice = b.abs("x", None, outer, AT);
    let twice = b.abs("f", None, twice, AT);
    // fix = λf. λx. f (λy. fix f y) x
    let (fix, f, y) = (b.var("fix", AT), b.var("f", AT), b.var("y", AT));
    let e = b.app(fix, f, AT);
    let e = b.app(e, y, AT);
    let this = b.abs("y", None, e, AT);
    let (f, x) = (b.var("f", AT), b.var("x", AT));
    let e = b.app(f, this, AT);
    let e = b.app(e, x, AT);
    let fix = b.abs("x", None, e, AT);
    let fix = b.abs("f", None, fix, AT);
    // even = λn. if n <= 0 then n == 0 else odd (n - 1), and the reverse
    let mut half = |other: &str, base: bool| {
        let num = |b: &mut Builder, n: i64| b.lit(Num::from(n), AT);
        let (n1, n2) = (b.var("n", AT), b.var("n", AT));
        let zero = num(&mut b, 0);
        let one = num(&mut b, 1);
        let test = b.add(Term::Prim(Prim::Le, vec![n1, zero]), AT);
        let less = b.add(Term::Prim(Prim::Sub, vec![n2, one]), AT);
        let other = b.var(other, AT);
        let again = b.app(other, less, AT);
        let base = b.lit(base, AT);
        let body = b.add(Term::If(test, base, again, IfSugar::Plain), AT);
        b.abs("n", None, body, AT)
    };
    let even = half("odd", true);
    let odd = half("even", false);
    let definitions = [("id", id), ("twice", twice), ("fix", fix), ("even", even), ("odd", odd)]
        .map(|(n, t)| (n.into(), t));
    b.finish_globals(definitions.into(), AT).expect("the definitions are closed functions")
}

/// Makes code of a tree. Generated code that uses a tool or declares a store is refused by whoever runs it.
pub(super) fn build(program: &Program, ast: &Ast) -> Result<Code, Vec<BuildError>> {
    let mut b = Builder::new();
    let tools: Vec<ToolId> = program.tools.iter().map(|t| b.tool(t.clone())).collect();
    let stores: Vec<StoreId> = program.stores.iter().map(|s| b.store(s.clone())).collect();
    let mut making = Making { b, program, tools, stores, scope: Vec::new(), keys: Vec::new() };
    let root = making.term(ast);
    making.b.finish(root, &prelude())
}

struct Making<'a> {
    b: Builder,
    program: &'a Program,
    tools: Vec<ToolId>,
    stores: Vec<StoreId>,
    scope: Vec<Name>,
    keys: Vec<Name>,
}

fn pick<T>(items: &[T], index: u8) -> Option<&T> {
    items.get(usize::from(index) % items.len().max(1))
}

fn field(index: u8) -> Name {
    FIELDS[usize::from(index) % FIELDS.len()].into()
}

/// The name of a parameter: that of a field, or of the parameter of the tool with one that is no field.
fn parameter(index: u8) -> Name {
    if usize::from(index) == FIELDS.len() { "x".into() } else { field(index) }
}

fn tag(index: u8) -> Name {
    TAGS[usize::from(index) % TAGS.len()].into()
}

/// Distinct names, each with the place it came from.
fn distinct(names: impl Iterator<Item = Name>) -> Vec<(Name, usize)> {
    let mut out: Vec<(Name, usize)> = Vec::new();
    for (i, n) in names.enumerate() {
        if !out.iter().any(|(m, _)| *m == n) {
            out.push((n, i));
        }
    }
    out
}

impl Making<'_> {
    fn add(&mut self, term: Term) -> TermId {
        self.b.add(term, AT)
    }

    fn null(&mut self) -> TermId {
        self.b.lit(Data::Null, AT)
    }

    /// A binder's name, by how many variables are in scope.
    fn binder(&self) -> Name {
        let depth = self.scope.len();
        if self.program.shadowing { ["x", "y", "z"][depth % 3].into() } else { format!("x{depth}").into() }
    }

    fn kid(&mut self, ast: &Ast, index: usize) -> TermId {
        match ast.kids.get(index) {
            Some(k) => self.term(k),
            None => self.null(),
        }
    }

    fn kids(&mut self, ast: &Ast) -> Vec<TermId> {
        ast.kids.iter().map(|k| self.term(k)).collect()
    }

    /// A subterm below a binder.
    fn under(&mut self, ast: &Ast, index: usize) -> (Name, TermId) {
        let name = self.binder();
        self.scope.push(name.clone());
        let body = self.kid(ast, index);
        self.scope.pop();
        (name, body)
    }

    fn model(&self, index: u8) -> Arc<ModelParams> {
        let mut params = pick(&self.program.models, index).cloned().unwrap_or_default();
        params.tools = params.tools.iter().filter_map(|t| self.tools.get(t.0 as usize).copied()).collect();
        Arc::new(params)
    }

    fn term(&mut self, ast: &Ast) -> TermId {
        let term = match &ast.op {
            Op::Var(index) => {
                let n = self.scope.len();
                return match n.checked_sub(1 + usize::from(*index) % n.max(1)) {
                    Some(i) => self.b.var(self.scope[i].clone(), AT),
                    None => self.null(),
                };
            }
            Op::Global(index) => match prelude().names().get(usize::from(index % PRELUDE)) {
                Some(name) => return self.b.var(name.clone(), AT),
                None => return self.null(),
            },
            Op::Lit(d) => Term::Lit(d.clone()),
            Op::Record(names) => {
                let mut fields = Vec::new();
                for (name, i) in distinct(names.iter().map(|n| field(*n))) {
                    fields.push((name, self.kid(ast, i)));
                }
                Term::Record(fields)
            }
            Op::Args(index, names) => {
                let Some(tool) = pick(&self.tools, *index).copied() else { return self.null() };
                let mut fields = Vec::new();
                for (name, i) in distinct(names.iter().map(|n| parameter(*n))) {
                    fields.push((name, self.kid(ast, i)));
                }
                Term::Args(tool, fields)
            }
            Op::List => Term::List(self.kids(ast)),
            Op::Lam => {
                let (param, body) = self.under(ast, 0);
                Term::Abs(Abs { param, ty: None, body, captures: Box::new([]), sugar: AbsSugar::Plain })
            }
            Op::App => Term::App(self.kid(ast, 0), self.kid(ast, 1)),
            Op::Let => {
                let first = self.kid(ast, 0);
                let (name, body) = self.under(ast, 1);
                return self.b.let_in(vec![(name, first)], body, AT);
            }
            Op::Field(n) => Term::Field(self.kid(ast, 0), field(*n)),
            Op::Index => Term::Index(self.kid(ast, 0), self.kid(ast, 1)),
            Op::With(n) => Term::With(self.kid(ast, 0), field(*n), self.kid(ast, 1)),
            Op::Prim(p) => {
                let operands = match p.arity() {
                    Some(n) => (0..n).map(|i| self.kid(ast, i)).collect(),
                    None => self.kids(ast),
                };
                Term::Prim(*p, operands)
            }
            Op::Pair => Term::Pair(self.kid(ast, 0), self.kid(ast, 1)),
            Op::Fst => Term::Fst(self.kid(ast, 0)),
            Op::Snd => Term::Snd(self.kid(ast, 0)),
            Op::Tag(t) => Term::Tag(tag(*t), ast.kids.first().map(|k| self.term(k))),
            Op::If => Term::If(self.kid(ast, 0), self.kid(ast, 1), self.kid(ast, 2), IfSugar::Plain),
            Op::And => {
                let (a, b) = (self.kid(ast, 0), self.kid(ast, 1));
                let no = self.b.lit(false, AT);
                Term::If(a, b, no, IfSugar::And)
            }
            Op::Or => {
                let (a, b) = (self.kid(ast, 0), self.kid(ast, 1));
                let yes = self.b.lit(true, AT);
                Term::If(a, yes, b, IfSugar::Or)
            }
            Op::Case(tags, default) => {
                let scrutinee = self.kid(ast, 0);
                let mut branches = Vec::new();
                for (name, i) in distinct(tags.iter().map(|t| tag(t.0))) {
                    let (binder, body) = match tags[i].1 {
                        true => {
                            let (name, body) = self.under(ast, 1 + i);
                            (Some(name), body)
                        }
                        false => (None, self.kid(ast, 1 + i)),
                    };
                    branches.push(Branch { tag: name, binder, body });
                }
                let default = default.then(|| self.kid(ast, 1 + tags.len()));
                Term::Case { scrutinee, branches, default }
            }
            Op::Classify(tags) => {
                let tags = distinct(tags.iter().map(|t| tag(*t))).into_iter().map(|(n, _)| n).collect();
                Term::Classify(tags, self.kid(ast, 0))
            }
            Op::Fix(bound) => Term::Fix { bound: *bound, origin: None, body: self.kid(ast, 0) },
            Op::Guard(pred, retry) => {
                Term::Guard { term: self.kid(ast, 0), pred: pred.clone(), retry: *retry }
            }
            Op::Mem(index) => {
                let Some(store) = pick(&self.stores, *index).copied() else { return self.kid(ast, 0) };
                let names: Vec<Name> =
                    self.program.stores[store.0 as usize].keys.iter().map(|k| k.name.clone()).collect();
                let before = self.keys.len();
                self.keys.extend(names);
                let body = self.kid(ast, 0);
                self.keys.truncate(before);
                Term::Mem(store, body)
            }
            Op::Recall(index) => match pick(&self.keys, *index) {
                Some(name) => Term::Recall(name.clone(), None),
                None => return self.null(),
            },
            Op::Remember(index) => {
                let value = self.kid(ast, 0);
                match pick(&self.keys, *index) {
                    Some(name) => Term::Remember(name.clone(), None, value),
                    None => return value,
                }
            }
            Op::Choose(p) => Term::Choose(p.clone(), self.kid(ast, 0), self.kid(ast, 1)),
            Op::Llm(index) => {
                let prompt = self.kid(ast, 0);
                Term::Llm(prompt, self.model(*index))
            }
            Op::Tool(index) => match pick(&self.tools, *index) {
                Some(tool) => Term::Tool(*tool),
                None => return self.null(),
            },
            Op::Send(role) => Term::Send(*role, self.kid(ast, 0)),
            Op::RecvCode => Term::Recv(Recv::Code),
            Op::RecvData(index) => Term::Recv(Recv::Data(self.model(*index))),
            Op::Ask => {
                let sent = self.kid(ast, 0);
                return self.b.ask(sent, AT);
            }
            Op::Fork => Term::Fork(self.kid(ast, 0)),
            Op::Fresh => Term::Fresh(self.kid(ast, 0)),
            Op::Clear => Term::Clear,
            Op::Relabel => Term::Relabel(self.kid(ast, 0), self.kid(ast, 1)),
            Op::Test => Term::Test(self.kid(ast, 0), self.kid(ast, 1)),
            Op::Assert => Term::Assert(self.kid(ast, 0), self.kid(ast, 1)),
            Op::Endorse => Term::Endorse(self.kid(ast, 0), self.kid(ast, 1)),
            Op::Declassify => Term::Declassify(self.kid(ast, 0), self.kid(ast, 1)),
            Op::Try(catches) => {
                let (label, body) = (self.kid(ast, 0), self.kid(ast, 1));
                let (name, mut handler) = self.under(ast, 2);
                if !self.program.messages {
                    let message = self.b.var(name.clone(), AT);
                    let seen = self.add(Term::Prim(Prim::IsStr, vec![message]));
                    let bindings = vec![(name.clone(), seen)];
                    handler = self.add(Term::Let { bindings, body: handler, sugar: LetSugar::Plain });
                }
                Term::Try { label, body, catches: *catches, name, handler }
            }
            Op::Fail => Term::Fail(self.kid(ast, 0)),
            Op::Within(n) => Term::Within(n.clone(), self.kid(ast, 0)),
            Op::Par(n) => Term::Par(*n, self.kids(ast)),
            Op::Each(n) => Term::Each(*n, self.kid(ast, 0), self.kid(ast, 1)),
            Op::Check(ty) => Term::Check("value".into(), ty.clone(), self.kid(ast, 0)),
            Op::Unknown => Term::Unknown("something".into()),
            Op::Compose => {
                let stages = self.kids(ast);
                return self.b.compose(stages, AT);
            }
            Op::ParPair => {
                let (left, right) = (self.kid(ast, 0), self.kid(ast, 1));
                return self.b.par_pair(left, right, AT);
            }
        };
        self.add(term)
    }
}

/// The role of a number.
pub(super) fn role(index: usize) -> Role {
    [Role::User, Role::System, Role::Assistant, Role::Tool][index % 4]
}
