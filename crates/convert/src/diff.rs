//! First difference between a term and its reparsed conversion.

use core_ir::{Bound, Code, Data, ModelParams, Name, Recv, Term, TermId, ToolDecl};
use diagnostics::{Span, clip};

/// A difference, at a place of the original.
pub(crate) struct Difference {
    /// In words, as the end of a sentence.
    pub what: String,
    /// Where.
    pub at: Span,
}

/// The first difference between the normal forms of two terms.
pub(crate) fn first(a: &Code, b: &Code) -> Difference {
    let rules = optimize::laws();
    let (a, b) = (optimize::optimize(a, &rules).code, optimize::optimize(b, &rules).code);
    let mut walk = Walk { a: &a, b: &b, bound: Vec::new(), at: a.span(a.root()) };
    match walk.term(a.root(), b.root()) {
        Err(found) => found,
        // The laws bring both to one form except for what is not shown in terms.
        Ok(()) => Difference {
            what: "the equations do not show that the two are equal".into(),
            at: a.span(a.root()),
        },
    }
}

struct Walk<'c> {
    a: &'c Code,
    b: &'c Code,
    /// Names that are bound at the same time.
    bound: Vec<(Name, Name)>,
    /// The last place of the original, for terms that have none of their own.
    at: Span,
}

impl Walk<'_> {
    fn differs(&self, what: String) -> Result<(), Difference> {
        Err(Difference { what, at: self.at })
    }

    fn term(&mut self, x: TermId, y: TermId) -> Result<(), Difference> {
        stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, || self.term_inner(x, y))
    }

    fn bind(&mut self, x: &Name, y: &Name) {
        self.bound.push((x.clone(), y.clone()));
    }

    fn term_inner(&mut self, x: TermId, y: TermId) -> Result<(), Difference> {
        let (a, b) = (self.a, self.b);
        let outer = std::mem::replace(&mut self.at, a.span(x));
        let before = self.bound.len();
        let (s, t) = (a.term(x), b.term(y));
        match (s, t) {
            (Term::Var(n, _), Term::Var(m, _)) => {
                let seen = |(l, r): &(Name, Name)| l == n || r == m;
                let same = match self.bound.iter().rev().find(|p| seen(p)) {
                    Some((l, r)) => l == n && r == m,
                    None => n == m,
                };
                if !same {
                    return self.differs(format!("another value would replace `{}`", clip(n)));
                }
            }
            (Term::Lit(d), Term::Lit(e)) if d != e => {
                return self.differs(format!("{} would become {}", shown(d), shown(e)));
            }
            (Term::Llm(_, p), Term::Llm(_, q)) => self.params(p, q)?,
            (Term::Recv(Recv::Data(p)), Term::Recv(Recv::Data(q))) => self.params(p, q)?,
            (Term::Tool(i), Term::Tool(j)) => self.tool(a.tool(*i), b.tool(*j))?,
            (Term::Fix { bound: m, origin: o, .. }, Term::Fix { bound: n, origin: p, .. }) => {
                if m != n {
                    let said = |bound: &Bound| match bound {
                        Bound::Finite(n) => n.to_string(),
                        Bound::Infinite => "none".into(),
                    };
                    return self.differs(format!("the loop bound {} would become {}", said(m), said(n)));
                }
                if o != p {
                    return self.differs("the origin of the loop bound would be lost".into());
                }
            }
            (Term::Check(what, ty, _), Term::Check(_, other, _)) if ty != other => {
                return self.differs(format!("{} would be checked to be {other}, not {ty}", clip(what)));
            }
            (_, Term::Check(what, ty, _)) if !matches!(s, Term::Check(..)) => {
                return self.differs(format!("{} would be checked to be {ty}", clip(what)));
            }
            (Term::Check(what, ty, _), _) if !matches!(t, Term::Check(..)) => {
                return self.differs(format!("{} would not be checked to be {ty}", clip(what)));
            }
            (Term::Abs(p), Term::Abs(q)) => self.bind(&p.param, &q.param),
            (Term::Let { bindings: p, body: l, .. }, Term::Let { bindings: q, body: r, .. }) => {
                for ((n, v), (m, w)) in p.iter().zip(q) {
                    self.term(*v, *w)?;
                    self.bind(n, m);
                }
                if let Some((n, v)) = p.get(q.len()) {
                    self.at = a.span(*v);
                    return self.differs(format!(
                        "the binding `{}`, {}, would be missing",
                        clip(n),
                        kind(a, a.term(*v))
                    ));
                }
                if let Some((m, w)) = q.get(p.len()) {
                    return self.differs(format!(
                        "there would be another binding `{}`, {}",
                        clip(m),
                        kind(b, b.term(*w))
                    ));
                }
                self.term(*l, *r)?;
                self.bound.truncate(before);
                self.at = outer;
                return Ok(());
            }
            (
                Term::Case { scrutinee: e, branches: p, default: d },
                Term::Case { scrutinee: f, branches: q, default: c },
            ) => {
                self.term(*e, *f)?;
                for branch in p {
                    let Some(other) = q.iter().find(|o| o.tag == branch.tag) else {
                        return self.differs(format!("the case `{}` would be missing", clip(&branch.tag)));
                    };
                    let unused: Name = "_".into();
                    let (n, m) =
                        (branch.binder.as_ref().unwrap_or(&unused), other.binder.as_ref().unwrap_or(&unused));
                    self.bind(n, m);
                    self.term(branch.body, other.body)?;
                    self.bound.truncate(before);
                }
                if let Some(more) = q.iter().find(|o| p.iter().all(|b| b.tag != o.tag)) {
                    return self.differs(format!("there would be another case `{}`", clip(&more.tag)));
                }
                match (d, c) {
                    (Some(d), Some(c)) => self.term(*d, *c)?,
                    (None, None) => {}
                    _ => return self.differs("the default case would differ".into()),
                }
                self.at = outer;
                return Ok(());
            }
            (
                Term::Try { name: n, label: k, body: p, handler: h, .. },
                Term::Try { name: m, label: l, body: q, handler: i, .. },
            ) => {
                self.term(*k, *l)?;
                self.term(*p, *q)?;
                self.bind(n, m);
                self.term(*h, *i)?;
                self.bound.truncate(before);
                self.at = outer;
                return Ok(());
            }
            (Term::Field(_, n), Term::Field(_, m)) if n != m => {
                return self.differs(format!("the field `{}` would become `{}`", clip(n), clip(m)));
            }
            (Term::Tag(n, _), Term::Tag(m, _)) if n != m => {
                return self.differs(format!("the tag `{}` would become `{}`", clip(n), clip(m)));
            }
            (Term::Prim(p, _), Term::Prim(q, _)) if p != q => {
                return self.differs(format!("`{}` would become `{}`", p.name(), q.name()));
            }
            (Term::Record(p), Term::Record(q)) | (Term::Args(_, p), Term::Args(_, q)) => {
                if let (Term::Args(i, _), Term::Args(j, _)) = (s, t) {
                    self.tool(a.tool(*i), b.tool(*j))?;
                }
                let (names, others): (Vec<&Name>, Vec<&Name>) =
                    (p.iter().map(|(n, _)| n).collect(), q.iter().map(|(n, _)| n).collect());
                if names != others {
                    return self
                        .differs("a record would have other fields or another order of fields".into());
                }
            }
            _ => {}
        }
        let (left, right) = (s.children(), t.children());
        if std::mem::discriminant(s) != std::mem::discriminant(t) || left.len() != right.len() {
            return self.differs(format!("{} would become {}", kind(a, s), kind(b, t)));
        }
        for (l, r) in left.into_iter().zip(right) {
            self.term(l, r)?;
        }
        self.bound.truncate(before);
        self.at = outer;
        Ok(())
    }

    fn params(&self, p: &ModelParams, q: &ModelParams) -> Result<(), Difference> {
        let what = match () {
            () if p.model != q.model => "the model",
            () if p.temperature != q.temperature => "the temperature",
            () if p.max_tokens != q.max_tokens => "the limit on tokens of a reply",
            () if p.result != q.result => "the type of a reply",
            () if p.repair != q.repair => "the number of repairs of a malformed reply",
            () if p.waiting != q.waiting => "the receipt of further calls of a reply",
            () if p.purpose != q.purpose => "the purpose of a model call",
            () if p.extra != q.extra => "the settings of a model",
            () => {
                for (i, j) in p.tools.iter().zip(&q.tools) {
                    self.tool(self.a.tool(*i), self.b.tool(*j))?;
                }
                if p.tools.len() == q.tools.len() {
                    return Ok(());
                }
                "the available tools"
            }
        };
        self.differs(format!("{what} would differ"))
    }

    fn tool(&self, p: &ToolDecl, q: &ToolDecl) -> Result<(), Difference> {
        let what = match () {
            () if p.name != q.name => {
                return self.differs(format!(
                    "the tool `{}` would replace `{}`",
                    clip(&q.name),
                    clip(&p.name)
                ));
            }
            () if p.params != q.params => "the parameters",
            () if p.result != q.result => "the result",
            () if p.description != q.description => "the description",
            () if p.delegated != q.delegated => "whose data may choose calls",
            () if p.handler != q.handler => "the handler",
            () if (p.effect, &p.control, &p.label) != (q.effect, &q.control, &q.label) => {
                "the effects and labels"
            }
            () if p.parts != q.parts => "the labels of parts of the result",
            () if (p.approve, p.confirms) != (q.approve, q.confirms) || p.policy != q.policy => {
                "the approval"
            }
            () if p.among != q.among => "the allowed values of an argument",
            () if (&p.pattern, &p.completes) != (&q.pattern, &q.completes) => {
                "the arguments that complete calls"
            }
            () if p.includes != q.includes => "who must be among the readers of the arguments",
            () if p.plain != q.plain => "the form of text in the arguments",
            () if p.at_most != q.at_most => "the number of calls",
            () => return Ok(()),
        };
        Err(Difference { what: format!("{what} of the tool `{}` would differ", clip(&p.name)), at: self.at })
    }
}

fn shown(d: &Data) -> String {
    match d {
        Data::Str(s) => format!("the text `{}`", clip(s)),
        other => format!("`{}`", clip(&other.to_json().to_string())),
    }
}

/// Returns the kind of a term, in a word or two.
fn kind(code: &Code, term: &Term) -> &'static str {
    match term {
        Term::Var(..) => "a variable",
        Term::Lit(_) => "a constant",
        Term::Record(_) => "a record",
        Term::Args(..) => "the arguments of a planned call",
        Term::List(_) => "a list",
        Term::Abs(_) => "a function",
        Term::App(f, _) => match code.term(*f) {
            Term::Llm(..) => "a model call",
            Term::Tool(_) => "a tool call",
            Term::Fix { .. } => "a loop",
            _ => "a call",
        },
        Term::Let { .. } => "a definition",
        Term::Field(..) | Term::Index(..) => "a field or item of a value",
        Term::With(..) => "a record update",
        Term::Prim(..) => "a computed value",
        Term::Pair(..) | Term::Fst(_) | Term::Snd(_) => "a pair",
        Term::Tag(..) => "a tag",
        Term::If(..) | Term::Case { .. } | Term::Classify(..) => "a choice",
        Term::Fix { .. } => "a loop",
        Term::Guard { .. } => "a guard",
        Term::Mem(..) | Term::Recall(..) | Term::Remember(..) => "a memory",
        Term::Choose(..) => "a random choice",
        Term::Llm(..) => "a model",
        Term::Tool(_) => "a tool",
        Term::Send(..) | Term::Recv(_) | Term::Fork(_) | Term::Fresh(_) | Term::Clear => {
            "a step of a conversation"
        }
        Term::Relabel(..) | Term::Test(..) | Term::Assert(..) | Term::Endorse(..) | Term::Declassify(..) => {
            "a label"
        }
        Term::Try { .. } | Term::Fail(_) | Term::Within(..) => "the handling of an error",
        Term::Par(..) | Term::Each(..) => "parallel parts",
        Term::Check(..) => "a check",
        Term::Unknown(_) => "an unknown part",
    }
}
