//! Expressions of a function in which agents are run, as terms.

use super::block::Env;
use super::function::{Frame, FunctionLowering, LAST_RESULT, MESSAGES, ValueKind, called, core};
use crate::defaults;
use crate::langgraph::is_quiet;
use crate::py::{self, field};
use crate::scan::{awaited, dotted};
use core_ir::{Data, IfSugar, LabelSpec, Name, Num, Prim, Term, TermId, ToolDecl, ToolParam, Type};
use diagnostics::Span;
use frontend_kit::emit::{Template, clip, codes};
use frontend_kit::kit::{Kit, plain};
use python::{FunctionId, PyKind, Value};
use ruff_python_ast::{
    BoolOp, CmpOp, Comprehension, Expr, ExprCall, InterpolatedStringElement, Number, Operator, UnaryOp,
};
use ruff_text_size::Ranged;
use std::collections::{BTreeSet, HashMap};

/// Functions within one another at most.
const MAX_DEPTH: usize = 8;

impl<'w> FunctionLowering<'_, 'w> {
    pub(super) fn written(&self, f: &Frame<'_>, of: &impl Ranged) -> String {
        let text = self.reader.world.sources().get(f.module).and_then(|s| {
            let range = of.range();
            s.text.get(range.start().into()..range.end().into())
        });
        clip(text.unwrap_or("")).to_string()
    }

    /// Returns true if the type of an exception, or each of several, is what a guardrail raises.
    pub(super) fn is_guardrail_error(&self, f: &Frame<'w>, of: &Expr) -> bool {
        if let Expr::Tuple(types) = of {
            return !types.elts.is_empty()
                && types.elts.iter().all(|t| !t.is_tuple_expr() && self.is_guardrail_error(f, t));
        }
        let known = self.fixed(f, of).and_then(|v| self.reader.world.name_of(&v)).map(|n| n.to_string());
        let name = known.or_else(|| dotted(of));
        name.is_some_and(|n| n.ends_with("GuardrailTripwireTriggered"))
    }

    pub(super) fn not_known(&self, kit: &mut Kit<'_>, f: &Frame<'_>, of: &impl Ranged) -> TermId {
        let why = format!("what `{}` is", self.written(f, of));
        kit.undecided(codes::NOT_COMPILED, why, self.at(f, of))
    }

    /// An expression as a term.
    pub(super) fn value(&self, kit: &mut Kit<'_>, f: &Frame<'w>, env: &mut Env, expr: &Expr) -> TermId {
        if !kit.budget.begin_value() {
            let at = self.at(f, expr);
            return kit.undecided(
                codes::NOT_COMPILED,
                "this function takes more than is compiled".into(),
                at,
            );
        }
        let term =
            stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || self.value_inner(kit, f, env, awaited(expr)));
        kit.budget.end_value();
        term
    }

    fn value_inner(&self, kit: &mut Kit<'_>, f: &Frame<'w>, env: &mut Env, expr: &Expr) -> TermId {
        let at = self.at(f, expr);
        match expr {
            Expr::NoneLiteral(_) => kit.b.lit(Data::Null, at),
            Expr::BooleanLiteral(b) => kit.b.lit(Data::Bool(b.value), at),
            Expr::NumberLiteral(n) => match &n.value {
                Number::Int(i) if i.as_i64().is_some() => kit.b.lit(Num::from(i.as_i64().unwrap_or(0)), at),
                Number::Float(x) if x.is_finite() => match x.to_string().parse::<Num>() {
                    Ok(n) => kit.b.lit(n, at),
                    Err(_) => self.not_known(kit, f, expr),
                },
                _ => self.not_known(kit, f, expr),
            },
            Expr::StringLiteral(s) => kit.text(s.value.to_str(), at),
            Expr::FString(s) => {
                let mut text = Template::new(at);
                for part in s.value.iter() {
                    match part {
                        ruff_python_ast::FStringPart::Literal(l) => {
                            text.text(&l.value);
                        }
                        ruff_python_ast::FStringPart::FString(s) => {
                            for piece in s.elements.iter() {
                                match piece {
                                    InterpolatedStringElement::Literal(l) => {
                                        text.text(&l.value);
                                    }
                                    InterpolatedStringElement::Interpolation(i) => {
                                        let hole = self.value(kit, f, env, &i.expression);
                                        text.term(hole);
                                    }
                                }
                            }
                        }
                    }
                }
                text.build(&mut kit.b)
            }
            Expr::Name(_) => self.name(kit, f, env, expr, at),
            Expr::Attribute(a) => {
                if dotted(expr).is_some_and(|n| env.contains(&n)) || self.is_outer(f, env, expr) {
                    return self.name(kit, f, env, expr, at);
                }
                let of = self.value(kit, f, env, &a.value);
                match (self.is(f, &a.value), a.attr.as_str()) {
                    (ValueKind::RunResult(_), "final_output") => of,
                    (ValueKind::RunResult(_), _) => self.not_known(kit, f, expr),
                    _ if matches!(kit.b.term(of), Term::Unknown(_)) => of,
                    // The text of a member of an enumeration.
                    (_, "value") => of,
                    (_, name) => kit.b.add(Term::Field(of, name.into()), at),
                }
            }
            Expr::Subscript(s) => {
                let of = self.value(kit, f, env, &s.value);
                match &*s.slice {
                    Expr::Slice(range) if range.step.is_none() => {
                        let from = match &range.lower {
                            Some(lower) => self.value(kit, f, env, lower),
                            None => kit.b.lit(Num::from(0i64), at),
                        };
                        let to = match &range.upper {
                            Some(upper) => self.value(kit, f, env, upper),
                            None => kit.b.add(Term::Prim(Prim::Length, vec![of]), at),
                        };
                        // A name is used twice here, nothing else may be.
                        match kit.b.term(of) {
                            Term::Var(..) => kit.b.add(Term::Prim(Prim::Slice, vec![of, from, to]), at),
                            _ => self.not_known(kit, f, expr),
                        }
                    }
                    Expr::Slice(_) => self.not_known(kit, f, expr),
                    Expr::UnaryOp(u) if u.op == UnaryOp::USub => self.not_known(kit, f, expr),
                    index => {
                        let index = self.value(kit, f, env, index);
                        kit.b.add(Term::Index(of, index), at)
                    }
                }
            }
            Expr::BoolOp(_) | Expr::Compare(_) => self.test(kit, f, env, expr),
            Expr::UnaryOp(u) => match u.op {
                UnaryOp::Not => self.test(kit, f, env, expr),
                UnaryOp::USub => {
                    let of = self.value(kit, f, env, &u.operand);
                    kit.b.add(Term::Prim(Prim::Neg, vec![of]), at)
                }
                _ => self.not_known(kit, f, expr),
            },
            Expr::BinOp(b) => {
                let prim = match b.op {
                    Operator::Add => Prim::Add,
                    Operator::Sub => Prim::Sub,
                    Operator::Mult => Prim::Mul,
                    // `folder / "name"` is a path.
                    Operator::Div
                        if ![&b.left, &b.right].iter().any(|e| self.is(f, e) == ValueKind::Text) =>
                    {
                        Prim::Div
                    }
                    _ => return self.not_known(kit, f, expr),
                };
                let (left, right) = (self.value(kit, f, env, &b.left), self.value(kit, f, env, &b.right));
                kit.b.add(Term::Prim(prim, vec![left, right]), at)
            }
            Expr::If(i) => {
                let test = self.test(kit, f, env, &i.test);
                let (yes, no) = (self.value(kit, f, env, &i.body), self.value(kit, f, env, &i.orelse));
                kit.b.add(Term::If(test, yes, no, IfSugar::Plain), at)
            }
            Expr::List(l) => self.list(kit, f, env, &l.elts, expr),
            Expr::Tuple(l) => self.list(kit, f, env, &l.elts, expr),
            Expr::Dict(d) => {
                let mut fields: Vec<(Name, TermId)> = Vec::new();
                for item in &d.items {
                    let Some(Expr::StringLiteral(key)) = &item.key else {
                        return self.not_known(kit, f, expr);
                    };
                    let name = Name::from(key.value.to_str());
                    let value = self.value(kit, f, env, &item.value);
                    fields.retain(|(n, _)| *n != name);
                    fields.push((name, value));
                }
                kit.b.add(Term::Record(fields), at)
            }
            Expr::ListComp(c) => self.each(kit, f, env, &c.elt, &c.generators, expr),
            Expr::Generator(c) => self.each(kit, f, env, &c.elt, &c.generators, expr),
            Expr::Call(call) => self.call(kit, f, env, call, expr),
            Expr::Starred(_)
            | Expr::Lambda(_)
            | Expr::Named(_)
            | Expr::Set(_)
            | Expr::SetComp(_)
            | Expr::DictComp(_) => self.not_known(kit, f, expr),
            _ => self.not_known(kit, f, expr),
        }
    }

    /// Returns true if a name is known outside of the function, as one of a module is.
    fn is_outer(&self, f: &Frame<'w>, env: &Env, expr: &Expr) -> bool {
        let root = dotted(expr).and_then(|n| n.split('.').next().map(str::to_string));
        root.is_some_and(|r| !env.contains(&r)) && self.fixed(f, expr).is_some()
    }

    fn name(&self, kit: &mut Kit<'_>, f: &Frame<'w>, env: &Env, expr: &Expr, at: Span) -> TermId {
        if let Some(name) = dotted(expr).filter(|n| env.contains(n)) {
            return kit.b.var(core(&name), at);
        }
        let Some(value) = self.fixed(f, expr) else { return self.not_known(kit, f, expr) };
        if let Some(data) = py::data(self.reader.world, &value) {
            return kit.b.lit(data, at);
        }
        match value.kind {
            PyKind::Text(_) => py::text(kit, self.reader.world, &value, plain),
            _ => self.not_known(kit, f, expr),
        }
    }

    fn list(&self, kit: &mut Kit<'_>, f: &Frame<'w>, env: &mut Env, items: &[Expr], of: &Expr) -> TermId {
        if items.iter().any(Expr::is_starred_expr) {
            return match items {
                [Expr::Starred(one)] => self.value(kit, f, env, &one.value),
                _ => self.not_known(kit, f, of),
            };
        }
        let items = items.iter().map(|i| self.value(kit, f, env, i)).collect();
        kit.b.add(Term::List(items), self.at(f, of))
    }

    /// `[e for x in xs]`: all at the same time.
    fn each(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        env: &mut Env,
        item: &Expr,
        of: &[Comprehension],
        all: &Expr,
    ) -> TermId {
        let at = self.at(f, all);
        let [one] = of else { return self.not_known(kit, f, all) };
        let Some(name) = dotted(&one.target).filter(|_| one.ifs.is_empty()) else {
            return self.not_known(kit, f, all);
        };
        let list = self.value(kit, f, env, &one.iter);
        let mut inner = env.clone();
        inner.insert(name.clone());
        // What the items are is not noted among the names of the function.
        let is = self.is(f, &one.iter).item();
        let narrowed;
        let f = match is {
            ValueKind::Data => f,
            _ => {
                narrowed = self.narrowed(f, &name, is);
                &narrowed
            }
        };
        let body = self.value(kit, f, &mut inner, item);
        let function = kit.b.abs(core(&name), None, body, at);
        kit.b.add(Term::Each(None, function, list), at)
    }

    /// The same function, where a name is something else.
    fn narrowed(&self, f: &Frame<'w>, name: &str, is: ValueKind) -> Frame<'w> {
        let mut kinds = f.kinds.clone();
        kinds.insert(name.to_string(), is);
        Frame {
            function: f.function,
            module: f.module,
            body: f.body,
            fixed: f.fixed.clone(),
            locals: f.locals.clone(),
            kinds,
            reads: Vec::new(),
            gives: f.gives,
            may_say_nothing: f.may_say_nothing,
            histories: f.histories,
            depth: f.depth,
        }
    }

    // ---- tests ----

    /// Lowers the truth value of an expression.
    pub(super) fn test(&self, kit: &mut Kit<'_>, f: &Frame<'w>, env: &mut Env, expr: &Expr) -> TermId {
        stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || self.test_inner(kit, f, env, awaited(expr)))
    }

    fn test_inner(&self, kit: &mut Kit<'_>, f: &Frame<'w>, env: &mut Env, expr: &Expr) -> TermId {
        let at = self.at(f, expr);
        let not = |kit: &mut Kit<'_>, term| kit.b.add(Term::Prim(Prim::Not, vec![term]), at);
        match expr {
            Expr::BoolOp(b) => {
                let and = b.op == BoolOp::And;
                let tests: Vec<TermId> = b.values.iter().map(|v| self.test(kit, f, env, v)).collect();
                let mut tests = tests.into_iter().rev();
                let Some(mut term) = tests.next() else { return kit.b.lit(Data::Bool(and), at) };
                for test in tests {
                    let other = kit.b.lit(Data::Bool(!and), at);
                    term = match and {
                        true => kit.b.add(Term::If(test, term, other, IfSugar::And), at),
                        false => kit.b.add(Term::If(test, other, term, IfSugar::Or), at),
                    };
                }
                term
            }
            Expr::UnaryOp(u) if u.op == UnaryOp::Not => {
                let of = self.test(kit, f, env, &u.operand);
                not(kit, of)
            }
            Expr::Compare(c) => {
                let ([op], [right]) = (&c.ops[..], &c.comparators[..]) else {
                    return self.not_known(kit, f, expr);
                };
                let (left, right) = (&*c.left, right);
                if matches!(op, CmpOp::Is | CmpOp::IsNot | CmpOp::Eq | CmpOp::NotEq)
                    && (left.is_none_literal_expr() || right.is_none_literal_expr())
                {
                    let of = self.value(kit, f, env, if left.is_none_literal_expr() { right } else { left });
                    let null = kit.b.add(Term::Prim(Prim::IsNull, vec![of]), at);
                    return if matches!(op, CmpOp::Is | CmpOp::Eq) { null } else { not(kit, null) };
                }
                let (a, b) = (self.value(kit, f, env, left), self.value(kit, f, env, right));
                let prim = match op {
                    CmpOp::Eq | CmpOp::Is => Prim::Eq,
                    CmpOp::NotEq | CmpOp::IsNot => Prim::Ne,
                    CmpOp::Lt => Prim::Lt,
                    CmpOp::LtE => Prim::Le,
                    CmpOp::Gt => Prim::Gt,
                    CmpOp::GtE => Prim::Ge,
                    CmpOp::In => return kit.b.add(Term::Prim(Prim::Contains, vec![b, a]), at),
                    CmpOp::NotIn => {
                        let found = kit.b.add(Term::Prim(Prim::Contains, vec![b, a]), at);
                        return not(kit, found);
                    }
                };
                kit.b.add(Term::Prim(prim, vec![a, b]), at)
            }
            Expr::BooleanLiteral(b) => kit.b.lit(Data::Bool(b.value), at),
            _ => {
                let term = self.value(kit, f, env, expr);
                match kit.b.term(term) {
                    Term::Unknown(_) | Term::Lit(Data::Bool(_)) => term,
                    _ => crate::langgraph::truthy(kit, term, at),
                }
            }
        }
    }

    // ---- calls ----

    /// Returns true if a call runs an agent or has an effect. Printing and pure computation have none.
    pub(super) fn is_act(&self, f: &Frame<'w>, call: &ExprCall) -> bool {
        if self.run_at(f, call).is_some() {
            return true;
        }
        if let Some(function) = self.callee(f, call) {
            return self.runs_in_function(function) || !self.only_shows(function);
        }
        let world = self.reader.world;
        let made = self.made.get(&self.at(f, call)).map(|id| world.object(*id));
        if called(call) == "input" && matches!(&*call.func, Expr::Name(_)) {
            return true;
        }
        made.is_some_and(|o| {
            o.class.is_none()
                && !is_quiet(&o.callee)
                && o.package() != "agents"
                && o.callee.contains('.')
                && !o.short().chars().next().is_none_or(char::is_uppercase)
                && !SHOWN.contains(&o.short())
        })
    }

    fn call(&self, kit: &mut Kit<'_>, f: &Frame<'w>, env: &mut Env, call: &ExprCall, expr: &Expr) -> TermId {
        let at = self.at(f, call);
        let args = &call.arguments.args[..];
        if self.run_at(f, call).is_some() {
            let messages = self.hears_messages(f, call);
            let input = self.input(kit, f, env, call, messages);
            return self.run_of(kit, f, call, input, messages);
        }
        if let Some(function) = self.callee(f, call) {
            return match self.runs_in_function(function) {
                true => self.entered(kit, f, env, call, function),
                false => self.tool(kit, f, env, call, Some(function)),
            };
        }
        match (&*call.func, called(call), args) {
            (_, "gather", args) if !args.is_empty() => match args {
                [Expr::Starred(list)] => self.value(kit, f, env, &list.value),
                _ if args.iter().any(Expr::is_starred_expr) => self.not_known(kit, f, expr),
                _ => {
                    let sides = args.iter().map(|a| self.value(kit, f, env, a)).collect();
                    kit.b.add(Term::Par(None, sides), at)
                }
            },
            (
                Expr::Attribute(_),
                "create_task" | "ensure_future" | "wait_for" | "as_completed" | "run",
                [of, ..],
            ) if self.made.get(&at).is_none_or(|id| self.reader.world.object(*id).package() == "asyncio") => {
                self.value(kit, f, env, of)
            }
            (Expr::Name(_), "input", _) => {
                if Self::asks_first(env) {
                    return kit.b.var("x", at);
                }
                let mut decl = ToolDecl::unknown("input".into(), at);
                decl.result = Type::Str;
                let prompt = args.first().map(|p| self.value(kit, f, env, p));
                let fields = prompt.map(|p| (Name::from("prompt"), p)).into_iter().collect();
                self.called_with(kit, decl, fields, at)
            }
            (Expr::Name(_), "str", [of]) => self.prim(kit, f, env, Prim::ToStr, of, at),
            (Expr::Name(_), "len", [of]) => self.prim(kit, f, env, Prim::Length, of, at),
            (Expr::Name(_), "list" | "tuple" | "dict", [of]) => self.value(kit, f, env, of),
            (Expr::Name(_), "int" | "float", [of]) => {
                let text = self.prim(kit, f, env, Prim::ToStr, of, at);
                kit.b.add(Term::Prim(Prim::ToNum, vec![text]), at)
            }
            (Expr::Attribute(a), method, args) => {
                self.method(kit, f, env, (&a.value, method, args), call, expr)
            }
            _ => self.other(kit, f, env, call, expr),
        }
    }

    fn prim(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        env: &mut Env,
        prim: Prim,
        of: &Expr,
        at: Span,
    ) -> TermId {
        let of = self.value(kit, f, env, of);
        kit.b.add(Term::Prim(prim, vec![of]), at)
    }

    fn method(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        env: &mut Env,
        (on, method, args): (&Expr, &str, &[Expr]),
        call: &ExprCall,
        expr: &Expr,
    ) -> TermId {
        let at = self.at(f, call);
        let is = self.is(f, on);
        match (method, args) {
            ("final_output_as", [_, ..]) => self.value(kit, f, env, on),
            ("to_input_list", []) if dotted(on).is_some_and(|n| env.contains(&format!("{n}{MESSAGES}"))) => {
                let name = dotted(on).unwrap_or_default();
                kit.b.var(core(&format!("{name}{MESSAGES}")), at)
            }
            // `ItemHelpers.text_message_outputs(result.new_items)`: the text of what was given.
            (
                "text_message_outputs" | "text_message_output" | "extract_last_content",
                [Expr::Attribute(items)],
            ) => self.prim(kit, f, env, Prim::ToStr, &items.value, at),
            ("loads", [of]) if dotted(on).as_deref() == Some("json") => {
                self.prim(kit, f, env, Prim::FromJson, of, at)
            }
            ("dumps", [of]) if dotted(on).as_deref() == Some("json") => {
                self.prim(kit, f, env, Prim::ToJson, of, at)
            }
            ("strip", []) => self.prim(kit, f, env, Prim::Trim, on, at),
            ("lower" | "casefold", []) => self.prim(kit, f, env, Prim::Lower, on, at),
            ("upper", []) => self.prim(kit, f, env, Prim::Upper, on, at),
            ("model_dump" | "dict" | "copy", []) if is != ValueKind::RunResult(true) => {
                self.value(kit, f, env, on)
            }
            ("model_dump_json" | "json", _) if args.is_empty() => {
                self.prim(kit, f, env, Prim::ToJson, on, at)
            }
            ("join", [list]) => {
                let (list, between) = (self.value(kit, f, env, list), self.value(kit, f, env, on));
                kit.b.add(Term::Prim(Prim::Join, vec![list, between]), at)
            }
            ("split", [by]) => {
                let (on, by) = (self.value(kit, f, env, on), self.value(kit, f, env, by));
                kit.b.add(Term::Prim(Prim::Split, vec![on, by]), at)
            }
            _ => self.other(kit, f, env, call, expr),
        }
    }

    /// Lowers a call of something outside the project: a constructor of fields, or a tool.
    fn other(&self, kit: &mut Kit<'_>, f: &Frame<'w>, env: &mut Env, call: &ExprCall, expr: &Expr) -> TermId {
        let world = self.reader.world;
        let made = self.made.get(&self.at(f, call)).map(|id| world.object(*id));
        let model = made.and_then(|o| o.class).is_some_and(|c| self.is_model(c));
        if model && call.arguments.args.is_empty() && call.arguments.keywords.iter().all(|k| k.arg.is_some())
        {
            let mut fields: Vec<(Name, TermId)> = Vec::new();
            for keyword in &call.arguments.keywords {
                let name = Name::from(keyword.arg.as_ref().map_or("", |n| n.as_str()));
                fields.push((name, self.value(kit, f, env, &keyword.value)));
            }
            return kit.b.add(Term::Record(fields), self.at(f, call));
        }
        // What asks for the time or for chance.
        let asked = self.fixed(f, expr).and_then(|v| py::ambient(kit, world, &v));
        if let Some(asked) = asked {
            return asked;
        }
        match self.is_act(f, call) {
            true => self.tool(kit, f, env, call, None),
            false => self.not_known(kit, f, expr),
        }
    }

    /// A call of something that is not compiled: a tool of its name.
    fn tool(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        env: &mut Env,
        call: &ExprCall,
        function: Option<FunctionId>,
    ) -> TermId {
        let at = self.at(f, call);
        let name = called(call);
        let name = if name.is_empty() { "call" } else { name };
        let mut decl = match function {
            Some(function) => py::signature(self.reader.world, function, name, at, |_, _| false),
            None => ToolDecl::unknown(name.into(), at),
        };
        let known: Vec<Name> = decl.params.iter().map(|p| p.name.clone()).collect();
        decl.result = Type::Dyn;
        let mut fields: Vec<(Name, TermId)> = Vec::new();
        for (i, arg) in call.arguments.args.iter().enumerate() {
            let name = known.get(i).cloned().unwrap_or_else(|| match i {
                0 => "input".into(),
                i => format!("arg{}", i + 1).into(),
            });
            let value = self.value(kit, f, env, arg);
            fields.push((name, value));
        }
        for keyword in &call.arguments.keywords {
            let Some(name) = &keyword.arg else { continue };
            let value = self.value(kit, f, env, &keyword.value);
            fields.retain(|(n, _)| **n != *name.as_str());
            fields.push((name.as_str().into(), value));
        }
        self.called_with(kit, decl, fields, at)
    }

    fn called_with(
        &self,
        kit: &mut Kit<'_>,
        mut decl: ToolDecl,
        fields: Vec<(Name, TermId)>,
        at: Span,
    ) -> TermId {
        let param = |(n, _): &(Name, TermId)| ToolParam {
            name: n.clone(),
            ty: Type::Dyn,
            bound: LabelSpec::BOTTOM,
            default: None,
        };
        decl.params = fields.iter().map(param).collect();
        let id = kit.declared(decl);
        let tool = kit.b.add(Term::Tool(id), at);
        let args = kit.b.add(Term::Record(fields), at);
        kit.b.app(tool, args, at)
    }

    /// A function of the project in which an agent is run, where it is called.
    fn entered(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        env: &mut Env,
        call: &ExprCall,
        function: FunctionId,
    ) -> TermId {
        let at = self.at(f, call);
        let place = self.reader.world.function(function).span;
        if f.depth >= MAX_DEPTH {
            return kit.undecided(
                codes::NOT_COMPILED,
                "functions within one another beyond the limit".into(),
                at,
            );
        }
        if kit.is_open(place) {
            return kit.undecided(codes::NOT_COMPILED, "a function that calls itself".into(), at);
        }
        let params = self.reader.world.function(function).own_params();
        let mut fixed: HashMap<String, Value> = HashMap::new();
        let mut given: Vec<(Name, TermId, String)> = Vec::new();
        let mut names: BTreeSet<String> = BTreeSet::new();
        for (i, param) in params.iter().enumerate() {
            let name = param.name.to_string();
            let written = call.arguments.find_argument_value(&param.name, i);
            let held = written.and_then(dotted).is_some_and(|n| env.contains(&n));
            let thing = written.filter(|_| !held).and_then(|e| self.fixed(f, e)).filter(|v| self.is_thing(v));
            if let Some(value) = thing {
                fixed.insert(name, value);
                continue;
            }
            let term = match (written, param.default.as_ref().and_then(|d| py::data(self.reader.world, d))) {
                (Some(written), _) => self.value(kit, f, env, written),
                (None, Some(data)) => kit.b.lit(data, param.span),
                (None, None) => continue,
            };
            // A name that is given under its own name stays what it is.
            let same = matches!(kit.b.term(term), Term::Var(n, _) if *n == core(&name));
            names.insert(name.clone());
            if !same {
                given.push((kit.b.fresh("a"), term, name));
            }
        }
        let inner = self.frame(function, fixed, f.depth + 1);
        if env.contains(super::function::ASKED) {
            names.insert(super::function::ASKED.into());
            env.remove(super::function::ASKED);
        }
        kit.enter(place);
        let body = self.block(kit, &inner, names, inner.body, &super::block::Rest::End);
        kit.close();
        // What is given is computed before a name of the function represents anything.
        let mut said: Vec<(Name, TermId)> =
            given.iter().map(|(held, term, _)| (held.clone(), *term)).collect();
        for (held, _, name) in given {
            let held = kit.b.var(held, at);
            said.push((core(&name), held));
        }
        kit.b.let_in(said, body, at)
    }

    // ---- runs ----

    fn hears_messages(&self, f: &Frame<'w>, call: &ExprCall) -> bool {
        call.arguments.find_argument_value("input", 1).is_some_and(|e| self.is(f, e) == ValueKind::Messages)
    }

    /// Lowers the input of an agent.
    fn input(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        env: &mut Env,
        call: &ExprCall,
        messages: bool,
    ) -> TermId {
        let at = self.at(f, call);
        let Some(written) = call.arguments.find_argument_value("input", 1) else {
            return kit.undecided(codes::NOT_COMPILED, "the input of the agent".into(), at);
        };
        let value = self.value(kit, f, env, written);
        match messages
            || self.is(f, written) == ValueKind::Text
            || matches!(kit.b.term(value), Term::Unknown(_))
        {
            true => value,
            false => match kit.b.term(value) {
                Term::Var(name, _) if &**name == "x" => value,
                _ => kit.b.add(Term::Prim(Prim::ToStr, vec![value]), at),
            },
        }
    }

    fn run_of(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        call: &ExprCall,
        input: TermId,
        messages: bool,
    ) -> TermId {
        let at = self.at(f, call);
        let Some(agent) = self.agent(f, call) else {
            let message = "which agent is run".to_string();
            return kit.undecided(codes::NOT_COMPILED, message, at);
        };
        let run = self.run_at(f, call).and_then(<[_]>::first).map(|id| self.reader.world.object(*id));
        let default = defaults::bound(&defaults::OPENAI_AGENTS_TURNS, kit.versions);
        let bound = py::bound(self.reader.world, run.and_then(|o| field(o, None, "max_turns")), default);
        let function = match messages {
            true => self.reader.run_on_messages(kit, agent, bound),
            false => self.reader.run(kit, agent, bound, 0),
        };
        kit.b.app(function, input, at)
    }

    /// A run whose messages are looked at afterwards.
    pub(super) fn heard(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        env: &mut Env,
        call: &ExprCall,
        name: &str,
        said: &mut Vec<(Name, TermId)>,
    ) {
        let at = self.at(f, call);
        let messages = self.hears_messages(f, call);
        let input = self.input(kit, f, env, call, messages);
        let given = kit.b.fresh("given");
        said.push((given.clone(), input));
        let input = kit.b.var(given.clone(), at);
        let output = self.run_of(kit, f, call, input, messages);
        said.push((core(name), output));
        env.insert(name.to_string());
        let message = |kit: &mut Kit<'_>, role: &str, content: TermId| {
            let role = kit.text(role, at);
            let fields = vec![("role".into(), role), ("content".into(), content)];
            kit.b.add(Term::Record(fields), at)
        };
        let given = kit.b.var(given, at);
        let before = match messages {
            true => given,
            false => {
                let one = message(kit, "user", given);
                kit.b.add(Term::List(vec![one]), at)
            }
        };
        let output = kit.b.var(core(name), at);
        let output = kit.b.add(Term::Prim(Prim::ToStr, vec![output]), at);
        let answer = message(kit, "assistant", output);
        let all = kit.b.add(Term::Prim(Prim::Append, vec![before, answer]), at);
        let list = format!("{name}{MESSAGES}");
        said.push((core(&list), all));
        env.insert(list);
        let last = kit.b.var(core(name), at);
        said.push((LAST_RESULT.into(), last));
        env.insert(LAST_RESULT.into());
    }
}

/// Methods that only show something.
const SHOWN: &[&str] = &[
    "print",
    "info",
    "debug",
    "warning",
    "error",
    "exception",
    "update_item",
    "mark_item_done",
    "end",
    "write",
    "flush",
    "sleep",
];
