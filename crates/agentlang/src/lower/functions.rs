//! Expressions that only compute: calls of `fn`s, functions that are arguments, and `if` and `match` with a
//! value.

use super::SurfaceLowering;
use super::statements::ArmBranches;
use super::taint::Taint;
use super::variables::Held;
use crate::decls::{CallableKind, Param, Signature};
use crate::functions::{self, MapOperation, Operation};
use core_ir::{Bound, Data, IfSugar, Name, Num, Prim, Term, TermId};
use diagnostics::Span;
use syntax::agent::ast::{self, Expr, ExprKind, ValueArm};

impl SurfaceLowering<'_> {
    /// Binds a name inside of an expression. The variable has another name where the source name means
    /// something outside.
    pub(super) fn local(&mut self, source: &str, taint: Taint, length: Option<u64>) -> Name {
        let name = self.inner_name(source);
        let shadows = self.scope.names.contains_key(source);
        let held = Held { name: name.clone(), taint: taint.join(self.pc), shadows, length, declared: None };
        self.scope.set(source, Some(held));
        name
    }

    /// A value whose type only the run shows, checked.
    pub(super) fn sure(&mut self, value: TermId, at: Span, what: &str) -> TermId {
        match self.c.facts.unsure.get(&at) {
            Some(ty) => self.b.add(Term::Check(what.into(), ty.clone(), value), at),
            None => value,
        }
    }

    /// An argument of a call, checked if it goes to a pipeline or `fn` and its type is not certain.
    pub(super) fn argument(&mut self, s: &Signature, param: &str, e: &Expr) -> TermId {
        let value = self.expr(e);
        match s.kind {
            CallableKind::Function | CallableKind::Pipeline => {
                self.sure(value, e.span, &format!("the argument `{param}` of `{}`", s.name.text))
            }
            _ => value,
        }
    }

    /// Adds the defaults of the parameters that a call leaves out.
    pub(super) fn fill(&mut self, s: &Signature, fields: &mut Vec<(Name, TermId)>) {
        for p in &s.params {
            if let Some(e) = &p.default
                && !fields.iter().any(|(n, _)| **n == *p.name.text)
            {
                let value = self.default_of(p, e);
                fields.push((p.name.text.as_str().into(), value));
            }
        }
    }

    /// The default of a parameter, which sees no variables.
    pub(super) fn default_of(&mut self, p: &Param, e: &Expr) -> TermId {
        self.without_variables(e, &format!("the default of `{}`", p.name.text))
    }

    /// An expression that sees no variables; `what` names it if its value is not of its type.
    pub(super) fn without_variables(&mut self, e: &Expr, what: &str) -> TermId {
        let names = std::mem::take(&mut self.scope.names);
        let value = self.expr(e);
        let value = self.sure(value, e.span, what);
        self.scope.names = names;
        value
    }

    /// The call of a `fn`.
    pub(super) fn call_function(&mut self, s: &Signature, args: &[Expr], at: Span) -> TermId {
        let given = args.iter().fold(Taint::NONE, |t, e| t.join(self.taint(e)));
        let function = self.pipeline_function(s, given, None);
        let mut fields: Vec<(Name, TermId)> = s
            .params
            .iter()
            .zip(args)
            .map(|(p, e)| (Name::from(p.name.text.as_str()), self.argument(s, &p.name.text, e)))
            .collect();
        self.fill(s, &mut fields);
        let args = self.b.add(Term::Record(fields), at);
        let function = self.b.var(function, at);
        self.b.app(function, args, at)
    }

    /// A function that is an argument, applied to these variables.
    fn applied(&mut self, f: &Expr, values: &[Name], taint: Taint) -> TermId {
        let mut inner = f;
        while let ExprKind::Paren(e) = &inner.kind {
            inner = e;
        }
        let at = inner.span;
        match &inner.kind {
            ExprKind::Lambda(params, body) => {
                let mark = self.scope.journal.len();
                let mut bindings = Vec::new();
                for (p, value) in params.iter().zip(values) {
                    let value = self.b.var(value.clone(), p.span);
                    bindings.push((self.local(&p.text, taint, None), value));
                }
                let body = self.expr(body);
                self.scope.undo(mark);
                self.b.let_in(bindings, body, at)
            }
            ExprKind::Var(name) => {
                let operands: Vec<TermId> = values.iter().map(|v| self.b.var(v.clone(), at)).collect();
                match (self.c.decls.function(name), functions::named(name)) {
                    (Some(s), _) => {
                        let function = self.pipeline_function(s, taint, None);
                        let names = s.params.iter().map(|p| Name::from(p.name.text.as_str()));
                        let mut fields: Vec<(Name, TermId)> = names.zip(operands).collect();
                        self.fill(s, &mut fields);
                        let args = self.b.add(Term::Record(fields), at);
                        let args = self.sure(args, f.span, &format!("the arguments of `{name}`"));
                        let function = self.b.var(function, at);
                        self.b.app(function, args, at)
                    }
                    (None, Some(b)) => self.operation(b.operation, operands, at),
                    (None, None) => self.b.add(Term::Unknown(name.as_str().into()), at),
                }
            }
            // Not in a program that was accepted.
            _ => self.b.add(Term::Unknown("function".into()), at),
        }
    }

    /// `each[1] (λitem. f item) list`
    fn mapped(&mut self, list: &Name, f: &Expr, taint: Taint, at: Span) -> TermId {
        let item = self.b.fresh("item");
        let body = self.applied(f, std::slice::from_ref(&item), taint);
        let function = self.b.abs(item, None, body, f.span);
        let list = self.b.var(list.clone(), at);
        self.b.add(Term::Each(Some(1), function, list), at)
    }

    /// A function of lists that takes a function. It is applied to all items first.
    pub(super) fn higher(&mut self, name: &str, args: &[Expr], at: Span) -> TermId {
        let taint = args.iter().fold(Taint::NONE, |t, e| t.join(self.taint(e)));
        let (list, f) = match (name, args) {
            ("fold", [list, start, f]) => return self.fold(list, start, f, taint, at),
            (_, [list, f]) => (list, f),
            _ => return self.b.add(Term::Unknown(name.into()), at),
        };
        let items = self.b.fresh("items");
        let value = self.expr(list);
        let given = self.mapped(&items, f, taint, at);
        let of_list = |lower: &mut Self, operation: &'static str| {
            let all = lower.b.var(items.clone(), list.span);
            lower.operation(Operation::Named(operation), vec![all, given], at)
        };
        let term = match name {
            "map" => given,
            "filter" => of_list(self, "agent.filter"),
            "sort_by" => of_list(self, "agent.sort_by"),
            "group_by" => of_list(self, "agent.group_by"),
            "find" => {
                let found = of_list(self, "agent.filter");
                self.first(found, at)
            }
            "count" => {
                let found = of_list(self, "agent.filter");
                self.b.add(Term::Prim(Prim::Length, vec![found]), at)
            }
            // Whether one, or not all, of the answers is so.
            _ => {
                let all = name == "all";
                let answer = self.b.lit(!all, at);
                let one = self.b.add(Term::Prim(Prim::Contains, vec![given, answer]), at);
                if all { self.b.add(Term::Prim(Prim::Not, vec![one]), at) } else { one }
            }
        };
        self.b.let_in(vec![(items, value)], term, at)
    }

    /// An operation on a map, which the core has as a record. What it looks at of the map besides the value
    /// that it gives are the keys, so values keep their labels.
    pub(super) fn map_operation(&mut self, of: MapOperation, operands: Vec<TermId>, at: Span) -> TermId {
        let given = operands.len();
        let names: Vec<Name> = ["map", "key", "default"].map(|n| self.b.fresh(n)).into();
        let var = |lower: &mut Self, i: usize| lower.b.var(names[i].clone(), at);
        let value = |lower: &mut Self| {
            let (map, key) = (var(lower, 0), var(lower, 1));
            lower.b.add(Term::Index(map, key), at)
        };
        let result = match of {
            MapOperation::Get => {
                let operands = vec![var(self, 0), var(self, 1)];
                let has = self.b.add(Term::Prim(Prim::Has, operands), at);
                let found = value(self);
                let absent = match given {
                    3.. => var(self, 2),
                    _ => self.b.lit(Data::Null, at),
                };
                self.b.add(Term::If(has, found, absent, IfSugar::Plain), at)
            }
            MapOperation::Values | MapOperation::Items => {
                let mut body = value(self);
                if of == MapOperation::Items {
                    let key = var(self, 1);
                    body = self.b.add(Term::Record(vec![("key".into(), key), ("value".into(), body)]), at);
                }
                let function = self.b.abs(names[1].clone(), None, body, at);
                let map = var(self, 0);
                let keys = self.b.add(Term::Prim(Prim::Keys, vec![map]), at);
                self.b.add(Term::Each(Some(1), function, keys), at)
            }
        };
        self.b.let_in(names.iter().cloned().zip(operands).collect(), result, at)
    }

    /// The first item of a list, or null.
    fn first(&mut self, list: TermId, at: Span) -> TermId {
        let found = self.b.fresh("found");
        let all = self.b.var(found.clone(), at);
        let length = self.b.add(Term::Prim(Prim::Length, vec![all]), at);
        let zero = self.b.lit(Num::ZERO, at);
        let none = self.b.add(Term::Prim(Prim::Eq, vec![length, zero]), at);
        let null = self.b.lit(Data::Null, at);
        let (all, zero) = (self.b.var(found.clone(), at), self.b.lit(Num::ZERO, at));
        let first = self.b.add(Term::Index(all, zero), at);
        let choice = self.b.add(Term::If(none, null, first, IfSugar::Plain), at);
        self.b.let_in(vec![(found, list)], choice, at)
    }

    /// `(fix[n] (λagain. λstate. if index < length items then again {value: f value item, index: index + 1}
    /// else state)) {value: start, index: 0}`, of which the value is taken. The list bounds the rounds, as in
    /// `for`.
    fn fold(&mut self, list: &Expr, start: &Expr, f: &Expr, taint: Taint, at: Span) -> TermId {
        let (bound, origin) = match self.length(list) {
            // The last round gives the state.
            Some(n) => (Bound::Finite(n.max(1)), None),
            None => (Bound::Infinite, Some(self.length_of(list.span))),
        };
        let [items, again, state, so_far, item] =
            ["items", "again", "state", "so_far", "item"].map(|n| self.b.fresh(n));
        let all = self.expr(list);
        let first = self.expr(start);
        let field = |lower: &mut Self, name: &str| {
            let of = lower.b.var(state.clone(), at);
            lower.b.add(Term::Field(of, name.into()), at)
        };
        let value = field(self, "value");
        let index = field(self, "index");
        let of = self.b.var(items.clone(), at);
        let one = self.b.add(Term::Index(of, index), at);
        let next = self.applied(f, &[so_far.clone(), item.clone()], taint);
        let next = self.b.let_in(vec![(so_far, value), (item, one)], next, at);
        let (index, step) = (field(self, "index"), self.b.lit(Num::ONE, at));
        let after = self.b.add(Term::Prim(Prim::Add, vec![index, step]), at);
        let round = self.b.add(Term::Record(vec![("value".into(), next), ("index".into(), after)]), at);
        let repeat = self.b.var(again.clone(), at);
        let round = self.b.app(repeat, round, at);
        let index = field(self, "index");
        let of = self.b.var(items.clone(), at);
        let length = self.b.add(Term::Prim(Prim::Length, vec![of]), at);
        let more = self.b.add(Term::Prim(Prim::Lt, vec![index, length]), at);
        let done = self.b.var(state.clone(), at);
        let body = self.b.add(Term::If(more, round, done, IfSugar::Plain), at);
        let body = self.b.abs(state, None, body, at);
        let body = self.b.abs(again, None, body, at);
        let fix = self.b.add(Term::Fix { bound, origin, body }, at);
        let zero = self.b.lit(Num::ZERO, at);
        let begin = self.b.add(Term::Record(vec![("value".into(), first), ("index".into(), zero)]), at);
        let last = self.b.app(fix, begin, at);
        let result = self.b.add(Term::Field(last, "value".into()), at);
        self.b.let_in(vec![(items, all)], result, at)
    }

    /// `if c { a } else { b }` with a value.
    pub(super) fn if_value(
        &mut self,
        bound: Option<&ast::Name>,
        condition: &Expr,
        then: &Expr,
        other: &Expr,
        at: Span,
    ) -> TermId {
        let pc = self.pc;
        let taint = self.taint(condition);
        let value = self.expr(condition);
        self.pc = pc.join(taint);
        let Some(name) = bound else {
            let (then, other) = (self.expr(then), self.expr(other));
            self.pc = pc;
            let choice = self.b.add(Term::If(value, then, other, IfSugar::Plain), at);
            return self.branching(choice, at, [(0, 0), (1, 1)]);
        };
        let option = self.b.fresh("option");
        let seen = self.b.var(option.clone(), condition.span);
        let absent = self.b.add(Term::Prim(Prim::IsNull, vec![seen]), condition.span);
        let other = self.expr(other);
        let inside = self.b.var(option.clone(), name.span);
        let mark = self.scope.journal.len();
        let held = self.local(&name.text, taint, None);
        let then = self.expr(then);
        self.scope.undo(mark);
        self.pc = pc;
        let then = self.b.let_in(vec![(held, inside)], then, at);
        let choice = self.b.add(Term::If(absent, other, then, IfSugar::Plain), at);
        let choice = self.branching(choice, at, [(0, 1), (1, 0)]);
        self.b.let_in(vec![(option, value)], choice, at)
    }

    /// `match e { a => x, _ => y }` with a value.
    pub(super) fn match_value(&mut self, of: &Expr, arms: &[ValueArm], at: Span) -> TermId {
        let pc = self.pc;
        let scrutinee = self.scrutinee(of);
        let taint = self.taint(of);
        self.pc = pc.join(taint);
        let (mut branches, mut shared, mut default) = (Vec::new(), Vec::new(), None);
        let mut taken = ArmBranches::default();
        for arm in arms {
            if default.is_some() {
                break;
            }
            let payload = self.b.fresh("payload");
            let fields = self.fields_of(&arm.pattern, &payload);
            let mark = self.scope.journal.len();
            let mut bindings = Vec::new();
            for (f, (_, value)) in arm.pattern.fields.iter().zip(fields) {
                bindings.push((self.local(&f.name.text, taint, None), value));
            }
            let body = self.expr(&arm.value);
            self.scope.undo(mark);
            let body = self.b.let_in(bindings, body, arm.value.span);
            match arm.pattern.variants.is_empty() {
                true => default = Some(body),
                false => {
                    shared.extend(self.arm(of, &arm.pattern, payload, body, arm.value.span, &mut branches));
                }
            }
            taken.arm(branches.len(), default.is_some());
        }
        self.pc = pc;
        let choice = self.choice(of, scrutinee, branches, default, at);
        let choice = self.branching(choice, at, taken.0);
        self.b.let_in(shared, choice, at)
    }
}
