//! The calls of a function that ask the world: in order, under the tests that they stand under.
//!
//! A call that only one side of a test makes is made on that side, if all that follows depends on the test,
//! too; otherwise it is made or not, and the function goes on.

use super::let_bindings::Place;
use super::model::Chain;
use super::node::{Graph, Mode};
use super::prompt::{Part, Vars, first_test};
use super::value::{BoundResult, Scope};
use super::{GraphReader, ReplyKind, Traced};
use core_ir::{Data, IfSugar, ModelParams, Name, Prim, Recv, Role, Term, TermId, ToolDecl, ToolId, Type};
use diagnostics::Span;
use frontend_kit::emit::{clip, codes, undecided};
use frontend_kit::kit::Kit;
use frontend_kit::outline::ToolRole;
use python::{Condition, ObjectId, PyKind, Value};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

impl GraphReader<'_, '_> {
    /// Calls of a traced function that ask the world, in order.
    pub(super) fn calls(&self, scope: &Scope, traced: &Traced) -> Vec<Call> {
        traced
            .trace
            .objects
            .iter()
            .filter_map(|id| Some(Call { id: *id, kind: self.effect(scope, *id)? }))
            .collect()
    }

    pub(super) fn effect(&self, scope: &Scope, id: ObjectId) -> Option<Effect> {
        let object = self.world.object(id);
        let at = object.span;
        if let Some((base, arg)) = self.asking(object) {
            let on = Value::new(PyKind::Object(base), at);
            let arg_value = arg.map(|a| a.value.clone());
            if self.chain(&on).is_some() {
                return self.asked(&on, arg_value.as_ref(), &mut Vec::new());
            }
            if self.inner_graph(&on).is_some() {
                return Some(Effect::Run(base, arg_value));
            }
            if self.is_prompt(&on) || self.rooted_in_state(scope, base) {
                return None;
            }
            if let Some(decl) = self.tool(&on) {
                let args = self.tool_args(&decl, arg_value.as_ref());
                return Some(Effect::Tool(decl.into(), args, ToolRole::Program));
            }
            return Some(Effect::Unknown(format!("the result of `{}`", clip(&object.callee))));
        }
        if let Some(base) = object.base {
            let this = Value::new(PyKind::Object(id), at);
            if self.model(&this).is_some() || self.inner_graph(&this).is_some() {
                return None;
            }
            let (_, method) = self.method_call(object)?;
            let root = self.root(base);
            let known = self.world.object(root);
            if self.rooted_in_state(scope, base) || is_quiet(&known.callee) || self.asking_root(base) {
                return None;
            }
            let method = method.rsplit('.').next().unwrap_or(method);
            if matches!(
                method,
                "append"
                    | "extend"
                    | "update"
                    | "add"
                    | "__setitem__"
                    | "get"
                    | "strip"
                    | "lower"
                    | "upper"
                    | "split"
                    | "format"
                    | "items"
                    | "keys"
                    | "values"
                    | "model_dump"
            ) || known.class.is_some()
            {
                return None;
            }
            let name = format!("{}_{method}", known.short());
            return Some(self.outside(&name, ToolRole::Program, id, at));
        }
        // `search.invoke(…)` of a function that is a tool.
        if let Some(first) = object.args.first()
            && let Some(function) = crate::py::function_of(&first.value)
            && (object.callee.ends_with(".invoke")
                || object.callee.ends_with(".ainvoke")
                || object.callee.ends_with(".run"))
        {
            let decl = self.tool(&Value::new(PyKind::Function(function), first.value.span))?;
            let args = self.tool_args(&decl, object.args.get(1).map(|a| &a.value));
            return Some(Effect::Tool(decl.into(), args, ToolRole::Program));
        }
        if object.class.is_some() || is_quiet(&object.callee) || !object.callee.contains('.') {
            return None;
        }
        if object.callee.ends_with("types.interrupt") {
            return Some(self.outside("interrupt", ToolRole::Person, id, at));
        }
        // What begins with a capital letter is a class: making an instance of it asks nobody.
        let class = object.short().chars().next().is_none_or(|c| c.is_uppercase());
        (!class && !object.callee.contains("[]"))
            .then(|| self.outside(object.short(), ToolRole::Program, id, at))
    }

    /// A model is asked, or one of several as tests say.
    fn asked(&self, on: &Value, arg: Option<&Value>, outcomes: &mut Vec<bool>) -> Option<Effect> {
        const MAX_TESTS: usize = 3;
        let mut chain = self.chain_within(on, outcomes)?;
        let next = chain.model.tests.get(outcomes.len()).cloned();
        let Some(test) = next.filter(|_| outcomes.len() < MAX_TESTS) else {
            chain.model.tests.drain(..outcomes.len());
            return Some(Effect::Ask(Box::new(chain), arg.cloned()));
        };
        let sides = [true, false].map(|holds| {
            outcomes.push(holds);
            let effect = self.asked(on, arg, outcomes);
            outcomes.pop();
            effect
        });
        let [Some(yes), Some(no)] = sides else { return None };
        Some(Effect::Either(test, Box::new([yes, no])))
    }

    pub(super) fn outside(&self, name: &str, role: ToolRole, id: ObjectId, at: Span) -> Effect {
        let object = self.world.object(id);
        let mut decl = ToolDecl::unknown(name.into(), at);
        let mut args: Vec<(Name, Value)> = Vec::new();
        for (i, arg) in object.args.iter().enumerate() {
            let name: Name = arg.name.as_deref().map_or_else(
                || if i == 0 { "input".into() } else { format!("arg{}", i + 1).into() },
                Name::from,
            );
            if args.iter().all(|(n, _)| *n != name) {
                args.push((name, arg.value.clone()));
            }
        }
        decl.params = args
            .iter()
            .map(|(n, _)| core_ir::ToolParam {
                name: n.clone(),
                ty: core_ir::Type::Dyn,
                bound: core_ir::LabelSpec::BOTTOM,
                default: None,
            })
            .collect();
        Effect::Tool(decl.into(), args, role)
    }

    pub(super) fn tool_args(&self, decl: &ToolDecl, arg: Option<&Value>) -> Vec<(Name, Value)> {
        let Some(arg) = arg else { return Vec::new() };
        match self.world.entries(arg) {
            Some(entries) => {
                entries.iter().filter_map(|(k, v)| Some((Name::from(k.as_str()?), v.clone()))).collect()
            }
            None => decl.params.first().map(|p| (p.name.clone(), arg.clone())).into_iter().collect(),
        }
    }

    pub(super) fn root(&self, id: ObjectId) -> ObjectId {
        let mut at = id;
        for _ in 0..40 {
            match self.world.object(at).base {
                Some(base) => at = base,
                None => break,
            }
        }
        at
    }

    /// Returns true if a value is a part of the state, or of the context that the framework passes beside it.
    pub(super) fn rooted_in_state(&self, scope: &Scope, id: ObjectId) -> bool {
        let root = self.root(id);
        scope.state.as_ref().is_some_and(|(s, _)| *s == root)
            || self.world.object(root).callee.starts_with("langgraph.")
            || self.world.object(id).callee.contains("element")
    }

    /// Returns true if an object is part of the result of a model, an agent or a tool.
    pub(super) fn asking_root(&self, id: ObjectId) -> bool {
        let mut at = id;
        for _ in 0..40 {
            let object = self.world.object(at);
            if self.asking(object).is_some() {
                return true;
            }
            match object.base {
                Some(base) => at = base,
                None => return false,
            }
        }
        false
    }

    /// The calls of one way, then what it gives.
    pub(super) fn level(
        &self,
        kit: &mut Kit<'_>,
        scope: Scope,
        level: Level<'_>,
        leaf: &mut Leaf<'_>,
    ) -> TermId {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
            if !kit.budget.begin_value() {
                return super::value::too_much(kit, level.value.span);
            }
            let term = self.level_inner(kit, scope, level, leaf);
            kit.budget.end_value();
            term
        })
    }

    fn level_inner(
        &self,
        kit: &mut Kit<'_>,
        mut scope: Scope,
        level: Level<'_>,
        leaf: &mut Leaf<'_>,
    ) -> TermId {
        let Level { calls, depth, value, ways } = level;
        let at = value.span;
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        let mut places = Places::default();
        places.open(&mut scope, 0);
        let mut tested = Tested::default();
        let mut loops: HashSet<ObjectId> = HashSet::new();
        for (i, call) in calls.iter().enumerate() {
            // What is named now stands after the calls before.
            if bindings.len() > places.last() {
                places.open(&mut scope, bindings.len());
            }
            let path = self.world.path(call.id);
            let place = self.world.object(call.id).span;
            match path.get(depth) {
                None => self.bind(kit, &mut scope, call, ways, &mut bindings),
                Some(Condition::Test(test, _)) => {
                    let rest = &calls[i..];
                    let one = rest.iter().all(|c| matches!(self.world.path(c.id).get(depth), Some(Condition::Test(t, _)) if same(t, test)));
                    let (yes, no) = self.sides(value, test);
                    if one {
                        let side = |wanted: bool| -> Vec<usize> {
                            let at = |c: &Call| matches!(self.world.path(c.id).get(depth), Some(Condition::Test(_, h)) if *h == wanted);
                            (i..calls.len()).filter(|n| at(&calls[*n])).collect()
                        };
                        let condition = self.test(kit, &scope, test);
                        let (of_yes, of_no) = (pick(calls, &side(true)), pick(calls, &side(false)));
                        let whole = self.split(value, test).is_none();
                        let mut side =
                            |kit: &mut Kit<'_>, here: &[Call], there: &[Call], value: &Value, holds: bool| {
                                // What needs a call of the other side is not given on this one: it raises.
                                let scope = scope.under(Condition::Test(test.clone(), holds));
                                if whole && here.is_empty() && self.needs(value, there, &scope.path) {
                                    return super::value::raised(kit, place);
                                }
                                self.level(kit, scope, level.inside(here, value), leaf)
                            };
                        let yes = side(kit, &of_yes, &of_no, &yes, true);
                        let no = side(kit, &of_no, &of_yes, &no, false);
                        let body = kit.b.add(Term::If(condition, yes, no, IfSugar::Plain), place);
                        return kit.b.let_in(places.with(bindings), body, at);
                    }
                    // What follows does not depend on the test: the call alone does.
                    let tests: Vec<(Value, bool)> = path[depth..]
                        .iter()
                        .map_while(|c| match c {
                            Condition::Test(t, holds) => Some((t.clone(), *holds)),
                            _ => None,
                        })
                        .collect();
                    let inside = depth + tests.len();
                    let element = match path.get(inside) {
                        None => None,
                        Some(Condition::Loop(element)) => Some(*element),
                        Some(_) => {
                            self.repeated(kit, &mut scope, call, place, &mut bindings);
                            continue;
                        }
                    };
                    if element.is_some_and(|e| !loops.insert(e)) {
                        continue;
                    }
                    let next = calls.get(i + 1).and_then(|c| self.world.path(c.id).get(depth..));
                    let tests_of = CallTests { tests: &tests, next: next.unwrap_or(&[]), at: place };
                    let condition = self.tested(kit, &scope, tests_of, &mut tested, &mut bindings);
                    if bindings.len() > places.last() {
                        places.open(&mut scope, bindings.len());
                    }
                    let mut inner = scope.clone();
                    inner.path.extend(path[depth..inside].iter().cloned());
                    let (mut within, mut made) = (Places::default(), Vec::new());
                    within.open(&mut inner, 0);
                    match element {
                        None => self.bind(kit, &mut inner, call, ways, &mut made),
                        Some(element) => {
                            let turns = self.turns(kit, &inner, element, &calls[i..], inside, ways);
                            made.push((kit.b.fresh("r"), turns));
                        }
                    }
                    if let Some(held) = inner.held.remove(&call.id) {
                        scope.held.insert(call.id, held);
                    }
                    let made = within.with(made);
                    if let Some((name, _)) = made.last().cloned() {
                        let body = kit.b.var(name.clone(), place);
                        let body = kit.b.let_in(made, body, place);
                        let nothing = kit.b.lit(Data::Null, place);
                        let nothing = kit.b.add(Term::Check("skipped".into(), Type::Dyn, nothing), place);
                        let either = kit.b.add(Term::If(condition, body, nothing, IfSugar::Plain), place);
                        bindings.push((name, either));
                    }
                }
                Some(Condition::Loop(element)) => {
                    if loops.insert(*element) {
                        let turns = self.turns(kit, &scope, *element, &calls[i..], depth, ways);
                        bindings.push((kit.b.fresh("r"), turns));
                    }
                }
                Some(Condition::Each(_)) if scope.held.contains_key(&call.id) => {}
                Some(Condition::Each(element)) if path.len() == depth + 1 => {
                    let of = |c: &&Call| match self.world.path(c.id).get(depth..) {
                        Some([Condition::Each(e)]) => e == element,
                        _ => false,
                    };
                    let all = calls[i..].iter().filter(of);
                    match self.loop_of(*element) {
                        Some(each) if scope.held.contains_key(&each) => {}
                        Some(each) if self.each(kit, &mut scope, each, all, ways.name, &mut bindings) => {}
                        _ => self.repeated(kit, &mut scope, call, place, &mut bindings),
                    }
                }
                Some(_) => self.repeated(kit, &mut scope, call, place, &mut bindings),
            }
        }
        if let PyKind::Object(id) = value.kind
            && let object = self.world.object(id)
            && object.base.is_none()
            && &*object.callee == "if"
            && let [test, yes, no] = &object.args[..]
        {
            if bindings.len() > places.last() {
                places.open(&mut scope, bindings.len());
            }
            let condition = self.test(kit, &scope, &test.value);
            let under = |holds: bool| scope.under(Condition::Test(test.value.clone(), holds));
            let yes = self.level(kit, under(true), level.inside(&[], &yes.value), leaf);
            let no = self.level(kit, under(false), level.inside(&[], &no.value), leaf);
            let body = kit.b.add(Term::If(condition, yes, no, IfSugar::Plain), at);
            return kit.b.let_in(places.with(bindings), body, at);
        }
        if bindings.len() > places.last() {
            places.open(&mut scope, bindings.len());
        }
        let body = leaf(kit, &scope, value);
        kit.b.let_in(places.with(bindings), body, at)
    }

    /// The turns of a loop over what is not known before the run: what its calls do, for each element.
    /// Nothing of what they give is looked at after the loop.
    fn turns(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        element: ObjectId,
        calls: &[Call],
        depth: usize,
        ways: &PathContext<'_>,
    ) -> TermId {
        let object = self.world.object(element);
        let at = object.span;
        let inside = calls.iter().filter(
            |c| matches!(self.world.path(c.id).get(depth), Some(Condition::Loop(e)) if *e == element),
        );
        let alone = |call: &Call| {
            let does = match self.is_apart(scope, call) {
                true => call.kind.clone(),
                false => Effect::Unknown("a call in a loop that depends on the conversation".into()),
            };
            Call { id: call.id, kind: does }
        };
        let inside: Vec<Call> = inside.map(alone).collect();
        let nothing = Value::new(PyKind::None, at);
        let list = object.args.first().map_or(&nothing, |a| &a.value);
        let kind = self.item_kind(scope, list);
        let list = match self.held_text(scope, list) {
            false => self.expr(kit, scope, list),
            true => {
                kit.undecided(codes::NOT_COMPILED, "the parts of a reply, as they come".into(), list.span)
            }
        };
        let var: Name = kit.b.fresh("each");
        let mut inner = scope.under(Condition::Loop(element));
        inner.held.insert(element, BoundResult { var: var.clone(), kind, live: false });
        let ways = PathContext { mode: Mode::Beside, value: &nothing, ..*ways };
        let mut leaf = |kit: &mut Kit<'_>, _: &Scope, _: &Value| kit.b.lit(Data::Null, at);
        let level = Level { calls: &inside, depth: depth + 1, value: &nothing, ways: &ways };
        let body = self.level(kit, inner, level, &mut leaf);
        let turn = kit.b.abs(var, None, body, at);
        kit.b.add(Term::Each(None, turn, list), at)
    }

    /// Returns true if a call may be made once per item: it doesn't need the conversation, and its action is
    /// known.
    fn is_apart(&self, scope: &Scope, call: &Call) -> bool {
        match &call.kind {
            Effect::Tool(..) => true,
            Effect::Ask(chain, arg) => {
                let parts = self.asked_with(scope, chain, call.id, arg.as_ref());
                !parts.iter().any(Part::has_conversation)
            }
            Effect::Run(..) | Effect::Either(..) | Effect::Unknown(_) => false,
        }
    }

    /// The comprehension that an element is of.
    fn loop_of(&self, element: ObjectId) -> Option<ObjectId> {
        let is = |o: &python::Object| {
            &*o.callee == "[for]"
                && matches!(o.args.get(1).map(|a| &a.value.kind), Some(PyKind::Object(e)) if *e == element)
        };
        self.world.objects().find(|(_, o)| is(o)).map(|(id, _)| id)
    }

    /// Binds a comprehension whose items are made by calls: all items at the same time. False if it is of
    /// another kind.
    fn each<'c>(
        &self,
        kit: &mut Kit<'_>,
        scope: &mut Scope,
        each: ObjectId,
        calls: impl Iterator<Item = &'c Call>,
        purpose: &str,
        out: &mut Vec<(Name, TermId)>,
    ) -> bool {
        let object = self.world.object(each);
        let at = object.span;
        let [of, element, item] = &object.args[..] else { return false };
        let PyKind::Object(id) = element.value.kind else { return false };
        let calls: Vec<&Call> = calls.collect();
        if !calls.iter().all(|c| self.is_apart(scope, c)) {
            return false;
        }
        let list = self.expr(kit, scope, &of.value);
        let var: Name = kit.b.fresh("each");
        let mut inner = scope.clone();
        let kind = self.item_kind(scope, &of.value);
        inner.held.insert(id, BoundResult { var: var.clone(), kind, live: false });
        inner.path.push(Condition::Each(id));
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        let mut places = Places::default();
        for call in calls {
            places.open(&mut inner, bindings.len());
            let (term, kind) = match &call.kind {
                Effect::Ask(chain, arg) => self.asked_apart(kit, &inner, chain, arg.as_ref(), purpose, call),
                Effect::Tool(decl, args, role) => {
                    let at = self.world.object(call.id).span;
                    let id = kit.declared_as((**decl).clone(), *role);
                    (self.tool_called(kit, &inner, id, args, at), ReplyKind::Data)
                }
                // INVARIANT: others were turned down above.
                Effect::Run(..) | Effect::Either(..) | Effect::Unknown(_) => continue,
            };
            let name = kit.b.fresh("r");
            bindings.push((name.clone(), term));
            inner.held.insert(call.id, BoundResult { var: name, kind, live: false });
        }
        places.open(&mut inner, bindings.len());
        let body = self.expr(kit, &inner, &item.value);
        // The items are replies themselves.
        if let PyKind::Object(reply) = item.value.kind
            && let Some(held) = inner.held.get(&reply)
        {
            scope.items.insert(each, held.kind);
        }
        let body = kit.b.let_in(places.with(bindings), body, at);
        let function = kit.b.abs(var, None, body, at);
        let all = kit.b.add(Term::Each(None, function, list), at);
        let name = kit.b.fresh("r");
        out.push((name.clone(), all));
        scope.held.insert(each, BoundResult { var: name, kind: ReplyKind::Data, live: false });
        true
    }

    /// A model asked in a conversation of its own, and what its reply is.
    fn asked_apart(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        chain: &Chain,
        arg: Option<&Value>,
        purpose: &str,
        call: &Call,
    ) -> (TermId, ReplyKind) {
        let at = self.world.object(call.id).span;
        let kind = self.kind_of(&chain.model, chain.json);
        let params = self.params(kit, &chain.model, purpose);
        let parts = self.asked_with(scope, chain, call.id, arg);
        let term = self.by_tests(kit, scope, &parts, at, 0, &mut |kit, parts| {
            self.ask_alone(kit, scope, parts, params.clone(), at)
        });
        match chain.json && kind == ReplyKind::Data && chain.model.schema.is_none() {
            true => (kit.b.add(Term::Prim(Prim::FromJson, vec![term]), at), kind),
            false => (term, kind),
        }
    }

    /// Something asked with what the tests in it decide.
    fn by_tests(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        parts: &[Part],
        at: Span,
        depth: usize,
        ask: &mut dyn FnMut(&mut Kit<'_>, &[Part]) -> TermId,
    ) -> TermId {
        // Each test doubles the size of the term.
        const MAX_TESTS: usize = 4;
        let Some((test, [yes, no])) = first_test(parts).filter(|_| depth < MAX_TESTS) else {
            return ask(kit, parts);
        };
        let test = self.test(kit, scope, test);
        let yes = self.by_tests(kit, scope, &yes, at, depth + 1, ask);
        let no = self.by_tests(kit, scope, &no, at, depth + 1, ask);
        kit.b.add(Term::If(test, yes, no, IfSugar::Plain), at)
    }

    /// A tool called with values.
    fn tool_called(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        id: ToolId,
        args: &[(Name, Value)],
        at: Span,
    ) -> TermId {
        let tool = kit.b.add(Term::Tool(id), at);
        let mut fields: Vec<(Name, TermId)> = Vec::new();
        for (name, value) in args {
            let term = self.expr(kit, scope, value);
            fields.push((name.clone(), term));
        }
        let record = kit.b.add(Term::Record(fields), at);
        kit.b.app(tool, record, at)
    }

    /// A call that happens more than once, or not certainly.
    pub(super) fn repeated(
        &self,
        kit: &mut Kit<'_>,
        scope: &mut Scope,
        call: &Call,
        at: Span,
        out: &mut Vec<(Name, TermId)>,
    ) {
        let why = "a call that is repeated, or made under a condition that is not followed";
        let term = kit.undecided(codes::NOT_COMPILED, why.into(), at);
        let var = kit.b.fresh("r");
        out.push((var.clone(), term));
        scope.held.insert(call.id, BoundResult { var, kind: ReplyKind::Data, live: false });
    }

    /// Returns the two alternatives of a value that a test decides.
    pub(super) fn sides(&self, value: &Value, test: &Value) -> (Value, Value) {
        self.split(value, test).unwrap_or_else(|| (value.clone(), value.clone()))
    }

    /// The two values that a test decides between.
    fn split(&self, value: &Value, test: &Value) -> Option<(Value, Value)> {
        let (t, yes, no) = self.either_of(value)?;
        same(&t, test).then_some((yes, no))
    }

    /// Returns true if a value under some tests is computed from the result of one of the calls.
    fn needs(&self, value: &Value, calls: &[Call], path: &[Condition]) -> bool {
        const MAX_STEPS: usize = 2_000;
        let mut seen: HashSet<ObjectId> = HashSet::new();
        let mut todo = vec![value.clone()];
        for _ in 0..MAX_STEPS {
            let Some(value) = todo.pop() else { return false };
            match &value.kind {
                PyKind::Object(id) | PyKind::Member(id, _) => {
                    if calls.iter().any(|c| c.id == *id) {
                        return true;
                    }
                    if seen.insert(*id) {
                        let object = self.world.object(*id);
                        if let ("if", None, [test, yes, no]) =
                            (&*object.callee, object.base, &object.args[..])
                            && let Some(holds) = super::let_bindings::known_test(path, &test.value)
                        {
                            todo.push(if holds { yes.value.clone() } else { no.value.clone() });
                            continue;
                        }
                        todo.extend(object.args.iter().map(|a| a.value.clone()));
                        todo.extend(object.base.map(|base| Value::new(PyKind::Object(base), value.span)));
                    }
                }
                PyKind::List(id) | PyKind::Either(id) => {
                    todo.extend(self.world.list(*id).items.iter().cloned())
                }
                PyKind::Dict(id) => todo.extend(self.world.dict(*id).entries.iter().map(|(_, v)| v.clone())),
                PyKind::Text(_) => {
                    todo.extend(self.world.text_of(&value).into_iter().flatten().filter_map(|piece| {
                        match piece {
                            python::Piece::Hole(hole, _) => Some(hole),
                            python::Piece::Text(_) => None,
                        }
                    }))
                }
                _ => {}
            }
        }
        false
    }

    pub(super) fn all_of(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        tests: &[(Value, bool)],
        at: Span,
    ) -> TermId {
        let mut all: Vec<TermId> = Vec::new();
        for (test, holds) in tests {
            let mut term = self.test(kit, scope, test);
            if !holds && !matches!(kit.b.term(term), Term::Unknown(_)) {
                term = kit.b.add(Term::Prim(Prim::Not, vec![term]), at);
            }
            all.push(term);
            // Nobody gets beyond a test that is not known.
            if matches!(kit.b.term(term), Term::Unknown(_)) {
                break;
            }
        }
        all_hold(kit, all, at)
    }

    /// Lowers the conjunction of a call's tests. A test that the next call is under, too, gets a name.
    fn tested(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        call: CallTests<'_>,
        known: &mut Tested,
        out: &mut Vec<(Name, TermId)>,
    ) -> TermId {
        let CallTests { tests, next, at } = call;
        let begins = |first: &[(Value, bool)]| {
            first.len() <= tests.len() && first.iter().zip(tests).all(|((a, p), (b, q))| p == q && same(a, b))
        };
        // What ended before is not looked at again.
        while known.0.last().is_some_and(|(first, _)| !begins(first)) {
            known.0.pop();
        }
        let (mut done, mut name) =
            known.0.last().map_or((0, None), |(first, name)| (first.len(), Some(name.clone())));
        let both = |((test, holds), other): &(&(Value, bool), &Condition)| matches!(other, Condition::Test(t, h) if h == holds && same(t, test));
        let shared = tests.iter().zip(next).take_while(both).count();
        let rest = |kit: &mut Kit<'_>, name: &Option<Name>, tests: &[(Value, bool)]| {
            let rest = (!tests.is_empty()).then(|| self.all_of(kit, scope, tests, at));
            let name = name.as_ref().map(|name| kit.b.var(name.clone(), at));
            all_hold(kit, name.into_iter().chain(rest).collect(), at)
        };
        if shared > done {
            let before = kit.budget.spent();
            let term = rest(kit, &name, &tests[done..shared]);
            let is_small = kit.budget.spent().saturating_sub(before) < SMALL_TEST;
            if matches!(kit.b.term(term), Term::Unknown(_)) || is_small && shared == tests.len() {
                return term;
            }
            if !is_small {
                let fresh: Name = kit.b.fresh("v");
                out.push((fresh.clone(), term));
                known.0.push((tests[..shared].to_vec(), fresh.clone()));
                (done, name) = (shared, Some(fresh));
            }
        }
        rest(kit, &name, &tests[done..])
    }

    /// Binds what a call gives.
    pub(super) fn bind(
        &self,
        kit: &mut Kit<'_>,
        scope: &mut Scope,
        call: &Call,
        ways: &PathContext<'_>,
        out: &mut Vec<(Name, TermId)>,
    ) {
        let at = self.world.object(call.id).span;
        let var = kit.b.fresh("r");
        let live = ways.mode == Mode::Alone
            && self.is_added(ways.value, call.id)
            && self.is_live(scope, call.id, &call.kind, ways);
        let (term, kind) = match self.one_kind(&call.kind) {
            true => self.done(kit, scope, &call.kind, CallSite { id: call.id, ways, live, at }, out),
            false => {
                let why = "the choice between models whose replies differ in kind";
                (kit.undecided(codes::NOT_COMPILED, why.into(), at), ReplyKind::Data)
            }
        };
        out.push((var.clone(), term));
        scope.held.insert(call.id, BoundResult { var, kind, live });
    }

    /// Returns the kind of the reply to a model call.
    fn reply_kind(&self, effect: &Effect) -> Option<ReplyKind> {
        match effect {
            Effect::Ask(chain, _) => Some(self.kind_of(&chain.model, chain.json)),
            Effect::Either(_, sides) => self.reply_kind(&sides[0]),
            _ => None,
        }
    }

    /// Returns true if the result has the same kind whatever the tests decide.
    fn one_kind(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Either(_, sides) => {
                sides.iter().all(|s| self.one_kind(s))
                    && self.reply_kind(&sides[0]) == self.reply_kind(&sides[1])
            }
            _ => true,
        }
    }

    /// Returns true if a model is called with the conversation itself.
    fn is_live(&self, scope: &Scope, id: ObjectId, effect: &Effect, ways: &PathContext<'_>) -> bool {
        match effect {
            Effect::Ask(chain, arg) => {
                let parts = self.asked_with(scope, chain, id, arg.as_ref());
                self.may_be_live(ways.graph, &parts, self.kind_of(&chain.model, chain.json))
            }
            Effect::Either(_, sides) => sides.iter().all(|s| self.is_live(scope, id, s, ways)),
            _ => false,
        }
    }

    /// Lowers a call: its action, and the value it returns.
    fn done(
        &self,
        kit: &mut Kit<'_>,
        scope: &mut Scope,
        effect: &Effect,
        site: CallSite<'_>,
        out: &mut Vec<(Name, TermId)>,
    ) -> (TermId, ReplyKind) {
        let CallSite { id, ways, at, .. } = site;
        match effect {
            Effect::Ask(chain, arg) => {
                let kind = self.kind_of(&chain.model, chain.json);
                let params = self.params(kit, &chain.model, ways.name);
                let parts = self.asked_with(scope, chain, id, arg.as_ref());
                let mut term = match first_test(&parts) {
                    None => self.ask(kit, scope, &parts, params, site, out),
                    Some(_) => self.by_tests(kit, scope, &parts, at, 0, &mut |kit, parts| {
                        let mut said = Vec::new();
                        let params = params.clone();
                        let term = self.ask(kit, scope, parts, params, site, &mut said);
                        kit.b.let_in(said, term, at)
                    }),
                };
                if chain.json && kind == ReplyKind::Data && chain.model.schema.is_none() {
                    term = kit.b.add(Term::Prim(Prim::FromJson, vec![term]), at);
                }
                (term, kind)
            }
            Effect::Run(id, arg) => self.run_inside(kit, scope, *id, arg.as_ref(), ways.graph.depth + 1, at),
            Effect::Tool(decl, args, role) => {
                let id = kit.declared_as((**decl).clone(), *role);
                (self.tool_called(kit, scope, id, args, at), ReplyKind::Data)
            }
            Effect::Either(test, sides) => {
                let condition = self.test(kit, scope, test);
                let mut kind = ReplyKind::Data;
                let [yes, no] = sides.each_ref().map(|side| {
                    let mut said = Vec::new();
                    let (term, gives) = self.done(kit, scope, side, site, &mut said);
                    kind = gives;
                    kit.b.let_in(said, term, at)
                });
                (kit.b.add(Term::If(condition, yes, no, IfSugar::Plain), at), kind)
            }
            Effect::Unknown(why) => (kit.undecided(codes::NOT_COMPILED, why.clone(), at), ReplyKind::Data),
        }
    }

    /// Returns true if a model may be called with the conversation itself, so with no message of its own.
    /// Tool calls are kept only there, so a model with tools is always called that way.
    pub(super) fn may_be_live(&self, graph: &Graph<'_>, parts: &[Part], kind: ReplyKind) -> bool {
        if let Some((_, sides)) = first_test(parts) {
            return sides.iter().all(|parts| self.may_be_live(graph, parts, kind));
        }
        let Some(middle) = parts.iter().position(|p| matches!(p, Part::Conversation)) else { return false };
        let said = graph.hoisted.is_some() && matches!(parts[..middle], [Part::Say(Role::System, _)]);
        middle + 1 == parts.len() && (middle == 0 || said || kind == ReplyKind::Calls)
    }

    /// Returns the input of a call of a chain's model: its argument, or else its keywords.
    pub fn asked_with(&self, scope: &Scope, chain: &Chain, call: ObjectId, arg: Option<&Value>) -> Vec<Part> {
        let Some(prompt) = &chain.prompt else {
            return arg.map_or(Vec::new(), |a| self.parts(scope, a));
        };
        let mut vars = match arg {
            None => self.vars_of_call(self.world.object(call)),
            Some(arg) => match self.world.entries(arg) {
                Some(entries) => Vars::Values(
                    entries.iter().filter_map(|(k, v)| Some((k.as_str()?.to_string(), v.clone()))).collect(),
                ),
                None => Vars::Of(arg.clone()),
            },
        };
        if !chain.given.is_empty() {
            // `RunnablePassthrough()` hands on what the chain is given.
            let given = chain.given.iter().map(|(name, value)| {
                let passed =
                    self.world.object_of(value).is_some_and(|(_, o)| o.short() == "RunnablePassthrough");
                let picked = self
                    .world
                    .object_of(value)
                    .filter(|(_, o)| o.short() == "itemgetter")
                    .and_then(|(_, o)| o.args.first()?.value.as_str().map(str::to_string));
                let inner = match (passed, picked, arg) {
                    (true, _, Some(arg)) => arg.clone(),
                    (_, Some(key), Some(arg)) => self
                        .world
                        .entries(arg)
                        .and_then(|e| e.iter().find(|(k, _)| k.as_str() == Some(&key)))
                        .map_or_else(|| value.clone(), |(_, v)| v.clone()),
                    _ => value.clone(),
                };
                (name.clone(), inner)
            });
            vars = Vars::Values(given.collect());
        }
        let mut parts = Vec::new();
        self.prompt_parts(scope, prompt, &vars, &mut parts, 0);
        parts
    }

    /// A model is asked. In the conversation of the graph, if that is what it is given.
    fn ask(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        parts: &[Part],
        params: ModelParams,
        site: CallSite<'_>,
        out: &mut Vec<(Name, TermId)>,
    ) -> TermId {
        let CallSite { ways: PathContext { graph, .. }, live, at, .. } = site;
        let Some(middle) = parts.iter().position(|p| matches!(p, Part::Conversation)) else {
            for part in parts {
                if let Part::Other(value) = part {
                    let message = format!(
                        "the input of this model is not known to be messages: {}",
                        self.world.unknown_reason(value)
                    );
                    kit.out.push(undecided(codes::NOT_COMPILED, message, value.span));
                }
            }
            return self.ask_alone(kit, scope, parts, params, at);
        };
        let (before, after) = (&parts[..middle], &parts[middle + 1..]);
        let before = match (&graph.hoisted, before) {
            (Some(_), [Part::Say(Role::System, _)]) => &[],
            _ => before,
        };
        let recv = |kit: &mut Kit<'_>| kit.b.add(Term::Recv(Recv::Data(Arc::new(params.clone()))), at);
        if live && after.is_empty() {
            out.extend(self.sends(kit, scope, before));
            return recv(kit);
        }
        let mut said = self.sends(kit, scope, before);
        // What is said before the conversation stands before it. Calls keep their form in the conversation
        // itself only.
        let again = (!before.is_empty() && !graph.replies).then_some(()).and(scope.state.as_ref());
        let term = match (again, &scope.messages) {
            (Some((_, state)), Some(key)) => {
                let list = self.read(kit, state, key, at);
                said.push(("_".into(), frontend_kit::lists::said_each(kit, list, at)));
                Term::Fresh
            }
            _ => Term::Fork,
        };
        said.extend(self.sends(kit, scope, after));
        let body = recv(kit);
        let body = kit.b.let_in(said, body, at);
        kit.b.add(term(body), at)
    }

    /// Returns true if the result of a call is appended to the conversation.
    pub(super) fn is_added(&self, value: &Value, id: ObjectId) -> bool {
        let mut todo = vec![value.clone()];
        let mut left = 400;
        while let Some(value) = todo.pop() {
            left -= 1;
            if left == 0 {
                return false;
            }
            match &value.kind {
                PyKind::Object(o) if *o == id => return true,
                PyKind::Object(o) => {
                    let object = self.world.object(*o);
                    if object.base.is_none() && matches!(object.short(), "if" | "+" | "[*]" | "Command") {
                        todo.extend(object.args.iter().map(|a| a.value.clone()));
                    }
                }
                PyKind::List(list) => todo.extend(self.world.list(*list).items.iter().cloned()),
                PyKind::Dict(dict) => {
                    let entries = &self.world.dict(*dict).entries;
                    todo.extend(entries.iter().filter(|(k, _)| k.as_str().is_some()).map(|(_, v)| v.clone()));
                }
                _ => {}
            }
        }
        false
    }
}

/// A call that asks the world.
#[derive(Clone)]
pub(super) enum Effect {
    Ask(Box<Chain>, Option<Value>),
    /// An agent or a graph is run.
    Run(ObjectId, Option<Value>),
    Tool(Box<ToolDecl>, Vec<(Name, Value)>, ToolRole),
    /// One or the other, as a test says.
    Either(Value, Box<[Effect; 2]>),
    /// It cannot be said how it is carried out.
    Unknown(String),
}

#[derive(Clone)]
pub(super) struct Call {
    pub(super) id: ObjectId,
    pub(super) kind: Effect,
}

/// Parts of a function that are the same on all paths through it.
pub(super) struct PathContext<'w> {
    pub(super) graph: &'w Graph<'w>,
    /// The node's name, for what models are asked.
    pub(super) name: &'w str,
    pub(super) mode: Mode,
    /// Return value of the function.
    pub(super) value: &'w Value,
}

/// Part of a function: the calls and the value on the paths that have the same conditions up to a depth.
#[derive(Clone, Copy)]
pub(super) struct Level<'w> {
    /// The calls on these paths, in order.
    pub(super) calls: &'w [Call],
    /// Number of conditions that the paths have in common.
    pub(super) depth: usize,
    /// Return value on these paths.
    pub(super) value: &'w Value,
    pub(super) ways: &'w PathContext<'w>,
}

impl<'w> Level<'w> {
    /// The paths one condition further.
    fn inside(self, calls: &'w [Call], value: &'w Value) -> Level<'w> {
        Level { calls, depth: self.depth + 1, value, ..self }
    }
}

/// The tests that a call is under.
#[derive(Clone, Copy)]
struct CallTests<'w> {
    /// The tests, and whether each holds.
    tests: &'w [(Value, bool)],
    /// Conditions of the next call.
    next: &'w [Condition],
    /// Place of the call.
    at: Span,
}

/// A call in a function.
#[derive(Clone, Copy)]
struct CallSite<'w> {
    id: ObjectId,
    ways: &'w PathContext<'w>,
    /// True if a model is called with the conversation itself.
    live: bool,
    at: Span,
}

/// Lowers the conjunction of tests, evaluated in order.
fn all_hold(kit: &mut Kit<'_>, tests: Vec<TermId>, at: Span) -> TermId {
    let mut tests = tests.into_iter().rev();
    let Some(mut all) = tests.next() else { return kit.b.lit(Data::Bool(true), at) };
    for test in tests {
        let no = kit.b.lit(Data::Bool(false), at);
        all = kit.b.add(Term::If(test, all, no, IfSugar::And), at);
    }
    all
}

/// Expressions of tests that are no worth a name.
const SMALL_TEST: usize = 10;

/// Names of what the calls before stood under: the first tests of each.
#[derive(Default)]
struct Tested(Vec<(Vec<(Value, bool)>, Name)>);

/// Places for names within a sequence of bindings.
#[derive(Default)]
struct Places {
    /// With how much is bound before.
    all: Vec<(usize, Rc<Place>)>,
}

impl Places {
    fn open(&mut self, scope: &mut Scope, before: usize) {
        if let Some((inner, place)) = scope.opened() {
            *scope = inner;
            self.all.push((before, place));
        }
    }

    /// Returns the number of bindings before the last place.
    fn last(&self) -> usize {
        self.all.last().map_or(usize::MAX, |(before, _)| *before)
    }

    /// Returns the bindings together with the names that were given.
    fn with(&self, bindings: Vec<(Name, TermId)>) -> Vec<(Name, TermId)> {
        let mut out: Vec<(Name, TermId)> = Vec::with_capacity(bindings.len());
        let mut places = self.all.iter().peekable();
        for (i, binding) in bindings.into_iter().enumerate() {
            while let Some((_, place)) = places.next_if(|(before, _)| *before <= i) {
                out.extend(place.made());
            }
            out.push(binding);
        }
        places.for_each(|(_, place)| out.extend(place.made()));
        out
    }
}

fn pick(calls: &[Call], which: &[usize]) -> Vec<Call> {
    which.iter().filter_map(|i| calls.get(*i).cloned()).collect()
}

/// Returns true if two tests are the same.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (&a.kind, &b.kind) {
        (PyKind::Object(a), PyKind::Object(b)) => a == b,
        (PyKind::Member(a, m), PyKind::Member(b, n)) => a == b && m == n,
        (PyKind::Unknown(_), PyKind::Unknown(_)) => a.span == b.span,
        _ => false,
    }
}

/// Returns true if a callee has no effect: a builtin of Python, or a constructor of values.
pub(crate) fn is_quiet(callee: &str) -> bool {
    const QUIET: &[&str] = &[
        "builtins",
        "typing",
        "typing_extensions",
        "logging",
        "json",
        "re",
        "math",
        "datetime",
        "time",
        "uuid",
        "copy",
        "os",
        "sys",
        "enum",
        "dataclasses",
        "functools",
        "itertools",
        "collections",
        "operator",
        "textwrap",
        "string",
        "random",
        "pydantic",
        "langchain",
        "langchain_core",
        "langgraph",
        "pprint",
        "rich",
        "loguru",
        "warnings",
        "traceback",
        "pathlib",
        "asyncio",
        "decimal",
        "structlog",
        "langsmith",
        "inspect",
        "types",
        "hashlib",
        "base64",
        "html",
        "urllib",
        "IPython",
        "str",
        "list",
        "dict",
    ];
    let head = callee.split('.').next().unwrap_or(callee);
    let logger = callee.contains("getLogger") || callee.contains("logger");
    logger
        || ((QUIET.contains(&head) || head.starts_with("langchain_")) && !callee.ends_with("types.interrupt"))
}

/// Does something with a leaf of the tree of decisions that a function is.
pub(super) type Leaf<'l> = dyn FnMut(&mut Kit<'_>, &Scope, &Value) -> TermId + 'l;
