//! Configurations as terms: what a step does, what is decided after it, and loops a step a turn.

use super::node::{GOTO, Mode, SENT};
use super::plan::{END, Reducer};
use super::pregel::{Decider, Machine, Next, Task};
use super::structured::{Steps, StructuredLowering, back_edges, distances, joins, reached_without};
use super::value::STATE;
use core_ir::{Bound, Branch, Data, IfSugar, Name, Num, Prim, Role, Term, TermId};
use diagnostics::Span;
use frontend_kit::emit::{LoopBound, clip, codes, undecided};
use frontend_kit::kit::Kit;
use python::PyKind;
use std::collections::{HashMap, HashSet};

/// The field that says which nodes are due.
const AT: &str = "$at";

impl Machine<'_, '_, '_, '_> {
    // ---- lowering ----

    pub(super) fn place(&self, config: usize) -> Span {
        let first = self.configs[config].0.active.iter().next();
        first.map_or(self.graph.plan.at, |t| self.graph.plan.nodes[t.node()].at)
    }

    pub(super) fn successors(&self, config: usize) -> Vec<Option<usize>> {
        let mut out = Vec::new();
        let mut todo: Vec<&Next> = self.configs[config].1.iter().collect();
        while let Some(next) = todo.pop() {
            match next {
                Next::To(to) => out.push(*to),
                Next::Decide { options, default, sent, .. } => {
                    todo.extend(options.iter().map(|(_, n)| n));
                    todo.extend(default.iter().chain(sent).map(|n| &**n));
                }
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    pub(super) fn lower(&mut self, kit: &mut Kit<'_>, limit: LoopBound) -> TermId {
        let n = self.configs.len();
        let out: Vec<Vec<Option<usize>>> = (0..n).map(|c| self.successors(c)).collect();
        let back = back_edges(&out);
        let headers: HashSet<usize> = back.iter().map(|(_, to)| *to).collect();
        let forward: Vec<Vec<usize>> = (0..n)
            .map(|c| out[c].iter().flatten().copied().filter(|to| !back.contains(&(c, *to))).collect())
            .collect();
        let (near, far) = distances(&forward, 0);
        let most = match limit.bound {
            Bound::Finite(n) => Some(n),
            Bound::Infinite => None,
        };
        let longest = far.iter().flatten().max().copied().unwrap_or(0) as u64;
        let mut lower = StructuredLowering {
            join: joins(&out, &back, &forward),
            machine: self,
            back: back.clone(),
            left: 4 * n + 40,
            header: None,
        };
        if headers.is_empty() && most.is_none_or(|n| longest < n) {
            if let Some(term) = lower.tail(kit, 0, None) {
                return term;
            }
        } else if let (1, Some(h)) = (headers.len(), headers.iter().next().copied()) {
            // How far it is to the cycle, and how long it is, if that is always the same. If it is not, the
            // least counts where the limit is only the framework's default: then there is no last round.
            let loose = limit.origin.is_some() || most.is_none();
            let prefix = near[h].filter(|p| far[h] == Some(*p) || loose);
            let (from_h, to_h) = distances(&forward, h);
            let lengths: Option<Vec<usize>> = back
                .iter()
                .map(|(from, _)| from_h[*from].filter(|d| to_h[*from] == Some(*d) || loose))
                .collect();
            let same = |l: &[usize]| l.windows(2).all(|w| w[0] == w[1]);
            let exact = lengths.as_ref().is_some_and(|l| same(l))
                && near[h] == far[h]
                && back.iter().all(|(f, _)| from_h[*f] == to_h[*f]);
            let length = lengths.filter(|l| same(l) || loose).and_then(|l| l.iter().min().copied());
            let around = reached_without(&forward, 0, h);
            let inside = back.iter().all(|(from, _)| !around[*from]);
            if let (Some(prefix), Some(length), true) = (prefix, length, inside) {
                let steps =
                    Steps { before: prefix.saturating_sub(1) as u64, round: length as u64 + 1, exact };
                lower.header = Some((h, limit, steps));
                if let Some(term) = lower.tail(kit, 0, None) {
                    return term;
                }
                let Some((_, limit, _)) = lower.header.take() else {
                    return kit.unknown("a graph", self.graph.plan.at);
                };
                return self.by_steps(kit, limit);
            }
        }
        self.by_steps(kit, limit)
    }

    /// Runs the tasks of a configuration and returns the bindings of the state.
    pub(super) fn run(&self, kit: &mut Kit<'_>, config: usize) -> Vec<(Name, TermId)> {
        let tasks: Vec<Task> = {
            // Updates are merged in the order of the nodes' names.
            let mut tasks: Vec<Task> = self.configs[config].0.active.iter().copied().collect();
            tasks.sort_by_key(|t| (matches!(t, Task::Each(_)), self.graph.plan.nodes[t.node()].name.clone()));
            tasks
        };
        let at = self.place(config);
        if let [Task::Node(node)] = tasks[..] {
            let state = self.reader.node(kit, self.graph, node, STATE, Mode::Alone);
            return vec![(STATE.into(), state)];
        }
        let mut sides = Vec::new();
        for task in &tasks {
            let place = self.graph.plan.nodes[task.node()].at;
            sides.push(match task {
                Task::Node(node) => self.reader.node(kit, self.graph, *node, STATE, Mode::Beside),
                Task::Each(node) => {
                    let item: Name = "$item".into();
                    let body = self.reader.node(kit, self.graph, *node, "$item", Mode::Beside);
                    let each = kit.b.abs(item, None, body, place);
                    let sent = self.reader.read(kit, &STATE.into(), SENT, place);
                    kit.b.add(Term::Each(None, each, sent), place)
                }
            });
        }
        let par = match sides.len() {
            1 => kit.b.add(Term::List(sides), at),
            _ => kit.b.add(Term::Par(None, sides), at),
        };
        self.clashes(kit, &tasks);
        let mut out: Vec<(Name, TermId)> = vec![("$all".into(), par)];
        for (i, task) in tasks.iter().enumerate() {
            self.merge(kit, i, *task, &mut out);
        }
        out
    }

    /// Notes keys without a reducer that several of these set.
    pub(super) fn clashes(&self, kit: &mut Kit<'_>, tasks: &[Task]) {
        let mut first: HashMap<String, Span> = HashMap::new();
        for task in tasks {
            let node = &self.graph.plan.nodes[task.node()];
            let writes = self.writes(node);
            for key in writes.keys.into_iter().filter(|_| writes.certain) {
                let last = self.graph.plan.channel(&key).is_some_and(|c| matches!(c.reducer, Reducer::Last));
                match first.get(&key) {
                    Some(at) if last => kit.outline.clash(&key, *at, node.at),
                    _ => {
                        first.insert(key, node.at);
                    }
                }
            }
        }
    }

    /// Merges the update of one of several nodes.
    pub(super) fn merge(&self, kit: &mut Kit<'_>, i: usize, task: Task, out: &mut Vec<(Name, TermId)>) {
        let plan = self.graph.plan;
        let node = &plan.nodes[task.node()];
        let at = node.at;
        let update = |kit: &mut Kit<'_>| {
            let (all, index) = (kit.b.var("$all", at), kit.b.lit(Num::from(i as i64), at));
            kit.b.add(Term::Index(all, index), at)
        };
        let Writes { keys, certain } = self.writes(node);
        for key in &keys {
            let Some(channel) = plan.channel(key) else { continue };
            let name: Name = key.as_str().into();
            if let Task::Each(_) = task {
                let term = self.merge_each(kit, i, key, &channel.reducer, at);
                out.push((STATE.into(), term));
                continue;
            }
            let u = update(kit);
            let new = kit.b.add(Term::Field(u, name.clone()), at);
            let old = self.reader.read(kit, &STATE.into(), key, at);
            let merged = self.reader.reduced(kit, &channel.reducer, old, new, at);
            let value = match certain {
                true => merged,
                false => {
                    let (u, text) = (update(kit), kit.text(key, at));
                    let has = kit.b.add(Term::Prim(Prim::Has, vec![u, text]), at);
                    let old = self.reader.read(kit, &STATE.into(), key, at);
                    kit.b.add(Term::If(has, merged, old, IfSugar::Plain), at)
                }
            };
            let s = kit.b.var(STATE, at);
            let s = kit.b.add(Term::With(s, name.clone(), value), at);
            out.push((STATE.into(), s));
            if matches!(channel.reducer, Reducer::Messages) && self.graph.has_conversation {
                // What was said beside is said in the conversation now.
                let said = if certain { self.said_by(node) } else { None };
                match said {
                    Some(count) => {
                        for j in 0..count {
                            let u = update(kit);
                            let list = kit.b.add(Term::Field(u, name.clone()), at);
                            let j = kit.b.lit(Num::from(j as i64), at);
                            let message = kit.b.add(Term::Index(list, j), at);
                            let content = kit.b.add(Term::Field(message, "content".into()), at);
                            out.push(("_".into(), kit.b.add(Term::Send(Role::Assistant, content), at)));
                        }
                    }
                    None => {
                        let message = format!(
                            "what `{}` adds to the conversation beside other nodes is not shown to models that are asked later",
                            clip(&node.name)
                        );
                        kit.out.push(undecided(codes::NOT_COMPILED, message, at));
                    }
                }
            }
        }
        if self.ways_of_node(task.node()).is_some() {
            let u = update(kit);
            let (u2, text) = (update(kit), kit.text(GOTO, at));
            let has = kit.b.add(Term::Prim(Prim::Has, vec![u2, text]), at);
            let to = kit.b.add(Term::Field(u, GOTO.into()), at);
            let nothing = kit.text("", at);
            let to = kit.b.add(Term::If(has, to, nothing, IfSugar::Plain), at);
            let s = kit.b.var(STATE, at);
            let field = format!("{GOTO}{}", task.node());
            out.push((STATE.into(), kit.b.add(Term::With(s, field.as_str().into(), to), at)));
        }
    }

    /// The updates of a node that ran once for each thing that was sent, merged.
    pub(super) fn merge_each(
        &self,
        kit: &mut Kit<'_>,
        i: usize,
        key: &str,
        reducer: &Reducer,
        at: Span,
    ) -> TermId {
        let (all, index) = (kit.b.var("$all", at), kit.b.lit(Num::from(i as i64), at));
        let updates = kit.b.add(Term::Index(all, index), at);
        let old = self.reader.read(kit, &STATE.into(), key, at);
        // One update after the other.
        let var = |kit: &mut Kit<'_>, n: &Name| kit.b.var(n.clone(), at);
        let value = match reducer {
            Reducer::Messages | Reducer::Add => {
                let p: Name = kit.b.fresh("p");
                let field = |kit: &mut Kit<'_>, name: &str| {
                    let p = kit.b.var(p.clone(), at);
                    kit.b.add(Term::Field(p, name.into()), at)
                };
                let r = field(kit, "rest");
                let length = kit.b.add(Term::Prim(Prim::Length, vec![r]), at);
                let zero = kit.b.lit(Num::from(0i64), at);
                let empty = kit.b.add(Term::Prim(Prim::Eq, vec![length, zero]), at);
                let r = field(kit, "rest");
                let zero = kit.b.lit(Num::from(0i64), at);
                let first = kit.b.add(Term::Index(r, zero), at);
                let new = kit.b.add(Term::Field(first, key.into()), at);
                let a = field(kit, "acc");
                let sum = kit.b.add(Term::Prim(Prim::Add, vec![a, new]), at);
                let (r, one, r2) = (field(kit, "rest"), kit.b.lit(Num::from(1i64), at), field(kit, "rest"));
                let length = kit.b.add(Term::Prim(Prim::Length, vec![r2]), at);
                let tail = kit.b.add(Term::Prim(Prim::Slice, vec![r, one, length]), at);
                let next = kit.b.add(Term::Record(vec![("acc".into(), sum), ("rest".into(), tail)]), at);
                let this = kit.b.var("self", at);
                let again = kit.b.app(this, next, at);
                let done = var(kit, &p);
                let body = kit.b.add(Term::If(empty, done, again, IfSugar::Plain), at);
                let step = kit.b.abs(p.clone(), None, body, at);
                let body = kit.b.abs("self", None, step, at);
                let most = Bound::Finite(MAX_FOLDED_UPDATES);
                let fix = kit.b.add(Term::Fix { bound: most, origin: None, body }, at);
                let first = kit.b.add(Term::Record(vec![("acc".into(), old), ("rest".into(), updates)]), at);
                let folded = kit.b.app(fix, first, at);
                kit.b.add(Term::Field(folded, "acc".into()), at)
            }
            _ => {
                let message =
                    format!("`{}` is set by several runs of a node at once, without a reducer", clip(key));
                kit.out.push(undecided(codes::NOT_COMPILED, message, at));
                let last = self.reader.nth_last(kit, updates, 1, at);
                let _ = old;
                kit.b.add(Term::Field(last, key.into()), at)
            }
        };
        let s = kit.b.var(STATE, at);
        kit.b.add(Term::With(s, key.into(), value), at)
    }

    /// The keys that a node writes, and whether it writes them on every way.
    fn writes(&self, node: &super::plan::Node) -> Writes {
        let messages = self.graph.plan.messages().map(str::to_string);
        if self.reader.tool_node(&node.value, self.graph).is_some() {
            return Writes { keys: messages.into_iter().collect(), certain: true };
        }
        if self.reader.inner_graph(&node.value).is_some() {
            return Writes {
                keys: self.graph.plan.channels.iter().map(|c| c.name.clone()).collect(),
                certain: false,
            };
        }
        let Some(traced) = self.reader.traced(&node.value) else {
            return Writes {
                keys: self.graph.plan.channels.iter().map(|c| c.name.clone()).collect(),
                certain: false,
            };
        };
        let mut written = Vec::new();
        let value = &traced.trace.value;
        self.reader.keys_written(value, &mut written);
        let mut keys: Vec<String> = written.into_iter().map(|(k, _)| k).collect();
        keys.sort();
        keys.dedup();
        Writes { keys, certain: matches!(value.kind, PyKind::Dict(_)) }
    }

    /// Returns the number of messages that a node adds, if it is constant.
    pub(super) fn said_by(&self, node: &super::plan::Node) -> Option<usize> {
        let traced = self.reader.traced(&node.value)?;
        let key = self.graph.plan.messages()?;
        let entries = self.reader.world.entries(&traced.trace.value)?;
        let value = &entries.iter().find(|(k, _)| k.as_str() == Some(key))?.1;
        match self.reader.world.items(value) {
            Some(items) => Some(items.len()),
            None => Some(1),
        }
    }

    /// Lowers a routing decision as a text, a tag, or a list of payloads.
    pub(super) fn choice(&self, kit: &mut Kit<'_>, what: Decider, config: Option<usize>) -> TermId {
        let plan = self.graph.plan;
        match what {
            Decider::Router(i) => {
                let router = &plan.routers[i];
                let at = router.at;
                if self.reader.is_tools_condition(&router.path) {
                    let (tools, end) = (kit.text("tools", at), kit.text(END, at));
                    if !self.graph.replies {
                        return end;
                    }
                    let reply = self.reader.read(kit, &STATE.into(), super::value::REPLY, at);
                    let branches = vec![Branch { tag: "final".into(), binder: None, body: end }];
                    return kit.b.add(Term::Case { scrutinee: reply, branches, default: Some(tools) }, at);
                }
                match self.reader.decision(kit, self.graph, &router.path, "route", at) {
                    Some(term) => term,
                    None => {
                        let why = format!(
                            "the branch taken is not known: {}",
                            self.reader.world.unknown_reason(&router.path)
                        );
                        kit.undecided(codes::NOT_COMPILED, why, at)
                    }
                }
            }
            Decider::Goto(node) => {
                let at = plan.nodes[node].at;
                let alone =
                    config.is_some_and(|c| self.configs[c].0.active.iter().eq([Task::Node(node)].iter()));
                let field = if alone { GOTO.to_string() } else { format!("{GOTO}{node}") };
                self.reader.read(kit, &STATE.into(), &field, at)
            }
        }
    }

    /// A step a turn.
    pub(super) fn by_steps(&self, kit: &mut Kit<'_>, limit: LoopBound) -> TermId {
        let at = self.graph.plan.at;
        let fix_at = limit.span.unwrap_or(at);
        let names = self.names();
        let mut branches = Vec::new();
        for c in 1..self.configs.len() {
            let place = self.place(c);
            let bindings = self.run(kit, c);
            let mut to = |kit: &mut Kit<'_>, next: Option<usize>| {
                let s = kit.b.var(STATE, place);
                let label = next.map_or(END, |n| names[n].as_str());
                let label = kit.text(label, place);
                let s = kit.b.add(Term::With(s, AT.into(), label), place);
                if next.is_none() {
                    return Some(s);
                }
                let this = kit.b.var("self", place);
                Some(kit.b.app(this, s, place))
            };
            let Some(next) = self.configs[c].1.clone() else { continue };
            let tail =
                self.decide(kit, &next, c, &mut to).unwrap_or_else(|| kit.unknown("the next node", place));
            let body = kit.b.let_in(bindings, tail, place);
            branches.push(Branch { tag: names[c].as_str().into(), binder: None, body });
        }
        let scrutinee = self.reader.read(kit, &STATE.into(), AT, at);
        let done = kit.b.var(STATE, at);
        let case = kit.b.add(Term::Case { scrutinee, branches, default: Some(done) }, at);
        let step = kit.b.abs(STATE, None, case, at);
        let body = kit.b.abs("self", None, step, at);
        let message = over(&limit.bound);
        let bound = match limit.bound {
            Bound::Finite(n) => Bound::Finite(n.saturating_sub(1)),
            Bound::Infinite => Bound::Infinite,
        };
        let fix = kit.fix(LoopBound { bound, ..limit }, body, fix_at);
        // Where it begins.
        let Some(next) = self.configs.first().and_then(|c| c.1.clone()) else {
            return kit.unknown("a graph without a beginning", at);
        };
        let mut to = |kit: &mut Kit<'_>, next: Option<usize>| {
            let s = kit.b.var(STATE, at);
            let label = kit.text(next.map_or(END, |n| names[n].as_str()), at);
            Some(kit.b.add(Term::With(s, AT.into(), label), at))
        };
        let first = self.decide(kit, &next, 0, &mut to).unwrap_or_else(|| kit.unknown("where it begins", at));
        let ran = kit.b.app(fix, first, at);
        let end = self.reader.read(kit, &STATE.into(), AT, at);
        let label = kit.text(END, at);
        let test = kit.b.add(Term::Prim(Prim::Eq, vec![end, label]), at);
        let s = kit.b.var(STATE, at);
        let failed = kit.text(&message, fix_at);
        let failed = kit.b.add(Term::Fail(failed), fix_at);
        let body = kit.b.add(Term::If(test, s, failed, IfSugar::Plain), at);
        kit.b.let_in(vec![(STATE.into(), ran)], body, at)
    }

    /// Names of configurations: of the nodes that are due.
    pub(super) fn names(&self) -> Vec<String> {
        let mut taken: HashSet<String> = HashSet::from([END.to_string()]);
        let mut out = Vec::new();
        for (i, (config, _)) in self.configs.iter().enumerate() {
            let names: Vec<&str> =
                config.active.iter().map(|t| self.graph.plan.nodes[t.node()].name.as_str()).collect();
            let mut name = names.join("+");
            if name.is_empty() || name.len() > 80 || !taken.insert(name.clone()) {
                name = format!("{name}_{i}");
                taken.insert(name.clone());
            }
            out.push(name);
        }
        out
    }

    /// A decision with what follows each way.
    pub(super) fn decide(
        &self,
        kit: &mut Kit<'_>,
        next: &Next,
        config: usize,
        to: &mut dyn FnMut(&mut Kit<'_>, Option<usize>) -> Option<TermId>,
    ) -> Option<TermId> {
        let (what, options, default, sent) = match next {
            Next::To(target) => return to(kit, *target),
            Next::Decide { what, options, default, sent } => (*what, options, default, sent),
        };
        let at = match what {
            Decider::Router(i) => self.graph.plan.routers[i].at,
            Decider::Goto(n) => self.graph.plan.nodes[n].at,
        };
        let case = NextCase { options, default: default.as_deref(), config, at };
        let mut choice = self.choice(kit, what, Some(config).filter(|c| *c != 0));
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        if let (Some(sent), Decider::Router(_)) = (sent, what) {
            // A list is what is sent.
            bindings.push(("$go".into(), choice));
            let go = kit.b.var("$go", at);
            let test = kit.b.add(Term::Prim(Prim::IsArray, vec![go]), at);
            let (s, go) = (kit.b.var(STATE, at), kit.b.var("$go", at));
            let with = kit.b.add(Term::With(s, SENT.into(), go), at);
            let body = self.decide(kit, sent, config, to)?;
            let mapped = kit.b.let_in(vec![(STATE.into(), with)], body, at);
            if options.is_empty() && default.is_none() {
                return Some(kit.b.let_in(bindings, mapped, at));
            }
            choice = kit.b.var("$go", at);
            let rest = self.case(kit, choice, case, to)?;
            let term = kit.b.add(Term::If(test, mapped, rest, IfSugar::Plain), at);
            return Some(kit.b.let_in(bindings, term, at));
        }
        if let (Some(sent), Decider::Goto(_), true) = (sent, what, options.is_empty()) {
            return self.decide(kit, sent, config, to);
        }
        self.case(kit, choice, case, to)
    }

    fn case(
        &self,
        kit: &mut Kit<'_>,
        choice: TermId,
        case: NextCase<'_>,
        to: &mut dyn FnMut(&mut Kit<'_>, Option<usize>) -> Option<TermId>,
    ) -> Option<TermId> {
        let NextCase { options, default, config, at } = case;
        // A text that is written: no decision.
        if let Term::Lit(Data::Str(label)) = kit.b.term(choice) {
            let label = label.to_string();
            if let Some((_, next)) = options.iter().find(|(l, _)| *l == label) {
                return self.decide(kit, next, config, to);
            }
        }
        // Of labels that stand once each, what follows them stands in their place.
        if let Some(labels) = labels_of(kit, choice) {
            let find = |label: &String| options.iter().find(|(l, _)| l == label).map(|(_, n)| n).or(default);
            let once = labels.iter().enumerate().all(|(i, l)| !labels[..i].contains(l));
            let ways: Option<Vec<&Next>> = labels.iter().map(find).collect();
            if let (true, Some(ways)) = (once, ways) {
                let mut ways = ways.into_iter();
                let mut follow = |kit: &mut Kit<'_>| match ways.next() {
                    Some(next) => self.decide(kit, next, config, to),
                    None => None,
                };
                return followed(kit, choice, &mut follow);
            }
        }
        let mut branches = Vec::new();
        for (label, next) in options {
            let body = self.decide(kit, next, config, to)?;
            branches.push(Branch { tag: label.as_str().into(), binder: None, body });
        }
        let default = match default {
            Some(next) => Some(self.decide(kit, next, config, to)?),
            None => None,
        };
        if branches.is_empty() {
            return default.or_else(|| to(kit, None));
        }
        // Whatever else is decided for is no node.
        let known =
            labels_of(kit, choice).is_some_and(|all| all.iter().all(|l| options.iter().any(|(o, _)| o == l)));
        let default = default.or_else(|| {
            let message = (!known).then(|| kit.text("this returns a value that is not a node", at))?;
            Some(kit.b.add(Term::Fail(message), at))
        });
        // Truth values are tags of their names here.
        let choice = kit.b.add(Term::Prim(Prim::ToStr, vec![choice]), at);
        let choice = match kit.b.term(choice) {
            Term::Prim(_, of) if self.is_label(kit, of[0]) => of[0],
            _ => choice,
        };
        Some(kit.b.add(Term::Case { scrutinee: choice, branches, default }, at))
    }

    /// Returns true if a term certainly evaluates to a text or a tag.
    pub(super) fn is_label(&self, kit: &Kit<'_>, term: TermId) -> bool {
        let mut todo = vec![term];
        while let Some(term) = todo.pop() {
            match kit.b.term(term) {
                Term::Lit(Data::Str(_)) | Term::Unknown(_) | Term::Field(..) => {}
                Term::If(_, a, b, _) => todo.extend([*a, *b]),
                Term::Let { body, .. } => todo.push(*body),
                Term::Case { branches, default, .. } => {
                    todo.extend(branches.iter().map(|b| b.body));
                    todo.extend(default);
                }
                _ => return false,
            }
        }
        true
    }
}

/// A decision between nodes by a label.
#[derive(Clone, Copy)]
struct NextCase<'w> {
    options: &'w [(String, Next)],
    default: Option<&'w Next>,
    /// The configuration of the run in which it is taken.
    config: usize,
    /// Place of the decision.
    at: Span,
}

/// The labels at the ends of a choice, in order; `None` if one is computed.
fn labels_of(kit: &Kit<'_>, choice: TermId) -> Option<Vec<String>> {
    const MAX_LABELS: usize = 64;
    let mut out = Vec::new();
    let mut todo = vec![choice];
    while let Some(term) = todo.pop() {
        match kit.b.term(term) {
            Term::Lit(Data::Str(label)) => out.push(label.to_string()),
            Term::If(_, a, b, IfSugar::Plain) => todo.extend([*b, *a]),
            Term::Let { body, .. } => todo.push(*body),
            Term::Case { branches, default, .. } => {
                todo.extend(default);
                todo.extend(branches.iter().rev().map(|b| b.body));
            }
            _ => return None,
        }
        if out.len() + todo.len() > MAX_LABELS {
            return None;
        }
    }
    Some(out)
}

/// A choice with what follows in place of its labels, which are asked for in order.
fn followed(
    kit: &mut Kit<'_>,
    choice: TermId,
    follow: &mut dyn FnMut(&mut Kit<'_>) -> Option<TermId>,
) -> Option<TermId> {
    let at = kit.b.span(choice);
    match kit.b.term(choice).clone() {
        Term::If(test, a, b, sugar) => {
            let (a, b) = stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
                let a = followed(kit, a, follow)?;
                Some((a, followed(kit, b, follow)?))
            })?;
            Some(kit.b.add(Term::If(test, a, b, sugar), at))
        }
        Term::Let { bindings, body, .. } => {
            let body = followed(kit, body, follow)?;
            Some(kit.b.let_in(bindings, body, at))
        }
        Term::Case { scrutinee, branches, default } => {
            let mut out = Vec::new();
            for branch in branches {
                out.push(Branch { body: followed(kit, branch.body, follow)?, ..branch });
            }
            let default = match default {
                Some(default) => Some(followed(kit, default, follow)?),
                None => None,
            };
            Some(kit.b.add(Term::Case { scrutinee, branches: out, default }, at))
        }
        _ => follow(kit),
    }
}

/// Updates that are folded at most.
const MAX_FOLDED_UPDATES: u64 = 10_000;

struct Writes {
    keys: Vec<String>,
    certain: bool,
}

/// Returns the error message of a run whose steps are used up.
pub(super) fn over(bound: &Bound) -> String {
    match bound {
        Bound::Finite(n) => format!("Recursion limit of {n} reached without hitting a stop condition"),
        Bound::Infinite => "Recursion limit reached without hitting a stop condition".into(),
    }
}
