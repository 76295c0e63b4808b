//! Flows: a graph of the methods of a class.

use super::code::is;
use super::source::CrewReader;
use crate::defaults;
use crate::model_requests::ModelRequests;
use crate::py;
use core_ir::{Name, TermId};
use frontend_kit::emit::{LoopBound, codes};
use frontend_kit::flow::{Flow, FlowNode, by_tool};
use frontend_kit::kit::Kit;
use python::{ClassId, FunctionId, ObjectId, PyKind, Value};
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextRange};
use std::collections::HashSet;

impl CrewReader<'_, '_> {
    /// A flow: its methods as a graph.
    pub fn flow(&self, kit: &mut Kit<'_>, class: ClassId, used: &mut HashSet<ObjectId>) -> TermId {
        let at = self.world.class(class).name_span;
        let methods: Vec<(String, FunctionId)> = self
            .world
            .class(class)
            .attrs
            .iter()
            .filter_map(|(n, v)| Some((n.to_string(), py::function_of(v)?)))
            .filter(|(_, f)| self.world.decorated(*f, &["start", "listen", "router"]))
            .collect();
        if methods.is_empty() {
            return kit.undecided(
                codes::NOT_COMPILED,
                "a flow without methods that start or listen".into(),
                at,
            );
        }
        let names: HashSet<&str> = methods.iter().map(|(n, _)| n.as_str()).collect();
        let mut edges: Vec<(String, String, Option<String>)> = Vec::new();
        let mut labels: Vec<(String, String)> = Vec::new();
        let routers: Vec<&str> = methods
            .iter()
            .filter(|(_, f)| self.world.decorated(*f, &["router"]))
            .map(|(n, _)| n.as_str())
            .collect();
        let given: HashSet<String> = methods
            .iter()
            .filter(|(n, _)| routers.contains(&n.as_str()))
            .flat_map(|(_, f)| self.labels_of(Some(*f)).unwrap_or_default())
            .collect();
        for (name, f) in &methods {
            for decorator in self.world.function(*f).decorators.iter() {
                for source in self.sources_of(decorator, 0) {
                    // A method that listens to its own name listens to a label; another's may be a label,
                    // too.
                    let own = source == *name;
                    if own || !names.contains(source.as_str()) || given.contains(&source) {
                        labels.push((source.clone(), name.clone()));
                    }
                    if !own && names.contains(source.as_str()) {
                        edges.push((source, name.clone(), None));
                    }
                }
            }
        }
        for router in &routers {
            let gives = self.labels_of(methods.iter().find(|(n, _)| n == router).map(|(_, f)| *f));
            for (label, to) in &labels {
                if gives.as_ref().is_none_or(|g| g.contains(label)) {
                    edges.push(((*router).to_string(), to.clone(), Some(label.clone())));
                }
            }
        }
        // A method that listens to nothing there is, and that code calls by itself, is run by that code.
        let by_hand = |name: &str, f: FunctionId| {
            !self.world.decorated(f, &["start"])
                && edges.iter().all(|(_, to, _)| to != name)
                && self.is_called(name, self.world.function(f).module)
        };
        let (called, methods): (Vec<_>, Vec<_>) = methods.iter().cloned().partition(|(n, f)| by_hand(n, *f));
        edges.retain(|(from, to, _)| !called.iter().any(|(n, _)| n == from || n == to));
        if methods.is_empty() {
            return kit.undecided(codes::NOT_COMPILED, "a flow that code carries out by itself".into(), at);
        }
        let mut started: Vec<Vec<ObjectId>> = vec![Vec::new(); methods.len()];
        let run: Vec<HashSet<FunctionId>> = methods.iter().map(|(_, f)| self.run_by(*f)).collect();
        for (_, object) in self.world.objects().filter(|(_, o)| o.short().starts_with("kickoff")) {
            for (method, run) in run.iter().enumerate() {
                if object.within.is_some_and(|f| run.contains(&f)) {
                    started[method].extend(object.base.filter(|b| is(self.world.object(*b), "Crew")));
                }
            }
        }
        let open: Vec<Option<&str>> = run.iter().map(|run| self.asks_openly(run)).collect();
        // A method of the name of a tool that a crew has is another tool.
        let taken: HashSet<Name> = started.iter().flatten().flat_map(|c| self.tool_names(*c)).collect();
        let asks = ModelRequests::new(self.world);
        let mut nodes = Vec::new();
        for (((name, f), started), open) in methods.iter().zip(started).zip(open) {
            let at = self.world.function(*f).name_span;
            let plain = started.is_empty();
            let mut node = match started[..] {
                _ if let Some(why) = open => {
                    FlowNode::new(name.as_str(), name.as_str(), at, move |kit, _| {
                        kit.undecided(codes::NOT_COMPILED, why.into(), at)
                    })
                }
                [] if asks.within(*f).is_some() => {
                    FlowNode::new(name.as_str(), name.as_str(), at, move |kit, _| {
                        let why = "what a method asks a model by itself";
                        kit.undecided(codes::NOT_COMPILED, why.into(), at)
                    })
                }
                [] => {
                    let own =
                        if taken.contains(name.as_str()) { format!("{name}_method") } else { name.clone() };
                    FlowNode::new(name.as_str(), name.as_str(), at, move |kit, x| by_tool(kit, &own, x, at))
                }
                _ => {
                    let term = {
                        let mut stages: Vec<TermId> = Vec::new();
                        for crew in &started {
                            let crew = self.made_crew(kit, *crew, used);
                            stages.push(self.crew(kit, &crew));
                        }
                        kit.sequence(stages, at)
                    };
                    let mut term = Some(term);
                    FlowNode::new(name.as_str(), name.as_str(), at, move |kit, x| match term.take() {
                        Some(function) => kit.b.app(function, x, at),
                        None => kit.unknown("the same crew again", at),
                    })
                }
            };
            if routers.contains(&name.as_str()) {
                let name = name.clone();
                // What the method gives is its label, if it is the method that is carried out.
                let labeled = plain && self.labels_of(Some(*f)).is_some();
                node = node.deciding(move |kit, value| match labeled {
                    true => value,
                    false => kit.unknown(&format!("the label that `{name}` returns"), at),
                });
            }
            nodes.push(node);
        }
        let starts = methods.iter().filter(|(_, f)| self.world.decorated(*f, &["start"]));
        let start: Vec<String> = starts.map(|(n, _)| n.clone()).collect();
        // A router is code, which may well count the turns.
        let bound = match routers.is_empty() {
            true => defaults::bound(&defaults::CREWAI_FLOW, kit.versions),
            false => LoopBound::unknown("a router decides whether the flow repeats"),
        };
        Flow { nodes, edges, start, triggers: false, bound, at }.lower(kit)
    }

    /// Returns true if a method of this name is called in a module, in one that it imports, or in one that
    /// imports it.
    fn is_called(&self, name: &str, of: usize) -> bool {
        let sources = self.world.sources();
        let concerned = |m: usize| self.world.is_evaluated(m) || sources.imported(m).contains(&of);
        (0..sources.len()).any(|m| sources.get(m).is_some_and(|s| s.calls(&[name])) && concerned(m))
    }

    /// The functions that a method runs, itself among them: those of the project that have the name of what
    /// is called.
    fn run_by(&self, method: FunctionId) -> HashSet<FunctionId> {
        const MAX_FUNCTIONS: usize = 200;
        let mut out = HashSet::from([method]);
        let mut todo = vec![method];
        while let Some(function) = todo.pop() {
            let calls = crate::scan::scan(self.world.function(function).body()).calls;
            let names: HashSet<&str> = calls.iter().filter_map(|c| called(c)).collect();
            for (id, function) in self.world.functions() {
                let is_own = !function.name.starts_with("kickoff") && !self.is_step(id);
                if is_own && names.contains(&*function.name) && out.len() < MAX_FUNCTIONS && out.insert(id) {
                    todo.push(id);
                }
            }
        }
        out
    }

    /// Returns true if a function is a step that the flow itself runs.
    fn is_step(&self, function: FunctionId) -> bool {
        self.world.decorated(function, &["start", "listen", "router"])
    }

    /// Reason why the number of a method's model calls is not known: it starts a crew again and again, or
    /// asks by itself.
    fn asks_openly(&self, run: &HashSet<FunctionId>) -> Option<&'static str> {
        const MODELS: &[&str] = &[
            "LLM",
            "Agent",
            "LiteAgent",
            "ChatOpenAI",
            "ChatAnthropic",
            "OpenAI",
            "AsyncOpenAI",
            "Anthropic",
        ];
        let within = |o: &python::Object| o.within.is_some_and(|f| run.contains(&f));
        for (_, object) in self.world.objects().filter(|(_, o)| within(o)) {
            let mut root = object.base;
            while let Some(above) = root.and_then(|id| self.world.object(id).base) {
                root = Some(above);
            }
            let of_model = root.is_some_and(|id| MODELS.contains(&self.world.object(id).short()));
            if of_model || object.callee.starts_with("litellm.") {
                return Some("what a method asks a model by itself");
            }
            if object.short().starts_with("kickoff_for_each") {
                return Some("a crew that is started for each of several inputs");
            }
        }
        for function in run {
            let function = self.world.function(*function);
            let mut starts = Starts::default();
            function.body().iter().for_each(|s| starts.visit_stmt(s));
            for (range, repeated) in starts.found {
                let start = u32::from(range.start());
                let there = |o: &python::Object| {
                    o.span.file == function.span.file
                        && o.span.start == start
                        && o.short().starts_with("kickoff")
                };
                let count = self.world.objects().filter(|(_, o)| there(o)).count();
                // A loop over what is known was followed turn by turn.
                if count == 0 || repeated && count == 1 {
                    return Some("how often a crew is started");
                }
            }
        }
        None
    }

    /// Returns the methods or labels that a decorator listens to.
    fn sources_of(&self, decorator: &Value, depth: usize) -> Vec<String> {
        let Some((_, object)) = self.world.object_of(decorator) else { return Vec::new() };
        if depth > 8 || !matches!(object.short(), "start" | "listen" | "router" | "or_" | "and_") {
            return Vec::new();
        }
        let mut out = Vec::new();
        for arg in &object.args {
            match &arg.value.kind {
                PyKind::Str(s) => out.push(s.to_string()),
                PyKind::Function(f) | PyKind::Bound(_, f) => {
                    out.push(self.world.function(*f).name.to_string())
                }
                PyKind::Object(_) => out.extend(self.sources_of(&arg.value, depth + 1)),
                _ => {}
            }
        }
        out
    }

    /// The labels that a router returns, if all are written: in its annotation, or at each `return`.
    fn labels_of(&self, function: Option<FunctionId>) -> Option<Vec<String>> {
        let function = self.world.function(function?);
        let annotated = function.returns.as_ref().and_then(|returns| {
            let (_, object) = self.world.object_of(returns)?;
            let literal = object.callee.ends_with("Literal[]");
            let labels = literal.then(|| object.args.iter().map(|a| a.value.as_str().map(str::to_string)));
            labels?.collect::<Option<Vec<_>>>()
        });
        annotated.or_else(|| crate::scan::texts_given(function.body()))
    }
}

/// The name of what is called, without what it is a member of.
fn called(call: &ExprCall) -> Option<&str> {
    match &*call.func {
        Expr::Name(n) => Some(n.id.as_str()),
        Expr::Attribute(a) => Some(a.attr.as_str()),
        _ => None,
    }
}

/// Finds the starts of crews, and whether they are in a loop. Nested functions are searched, too.
#[derive(Default)]
struct Starts {
    loops: usize,
    found: Vec<(TextRange, bool)>,
}

impl<'a> SourceOrderVisitor<'a> for Starts {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let in_loop = usize::from(matches!(stmt, Stmt::For(_) | Stmt::While(_)));
        self.loops += in_loop;
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_stmt(self, stmt));
        self.loops -= in_loop;
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        let many = matches!(
            expr,
            Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_) | Expr::Generator(_) | Expr::Lambda(_)
        );
        if let Expr::Call(call) = expr
            && let Expr::Attribute(a) = &*call.func
            && a.attr.starts_with("kickoff")
        {
            self.found.push((call.range(), self.loops > 0));
        }
        self.loops += usize::from(many);
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_expr(self, expr));
        self.loops -= usize::from(many);
    }
}
