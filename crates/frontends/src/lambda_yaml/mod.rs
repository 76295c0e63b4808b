//! λA's own YAML: `type: simple | react | chain | router | parallel`, with `guard` and `memory` around
//! any of them.
//!
//! | key | term |
//! |---|---|
//! | `type: simple` | `llm p θ` |
//! | `type: react` | `fix[n] (λself. λx. let t = llm p θ x in case t of {…})`, a branch per tool |
//! | `type: chain` | `e1 >> … >> en` |
//! | `type: router` | `λx. case classify[…] (llm p θ x) of {label ⇒ e x, …}` |
//! | `type: parallel` | `e1 \| e2`, or `λx. par [e1 x, …]` for more |
//! | `guard` | `guard e P retry n` |
//! | `memory` | `mem e σ` |
//!
//! The reply of a model that is offered tools is a tag (`docs/calculus.md` §10). A tool's branch
//! calls the tool, adds what it observed to the state, and calls `self`. `terminate` is the
//! identity: it takes one argument, the answer, and gives it back. A reply without an action is a
//! thought: it joins the state, and the loop goes on. So the loop ends by `terminate` or by its bound.
//!
//! Source: seed 000 Listing 1, §2, §5.3, §6.

use core_ir::{
    Branch, Builder, Comparison, Data, EffectClass, Globals, KeyDecl, LabelSpec, Measure, ModelParams, Name,
    Num, Pred, Prim, StoreDecl, Term, TermId, ToolDecl, ToolId, ToolParam, Type,
};
use diagnostics::{Diagnostic, Span};
use frontend_kit::doc::{Document, Entry, Node, NodeId};
use frontend_kit::emit::{
    self, LoopBound, Template, Unused, clip, codes, near, report_keys, undecided, value_span, wrong_kind,
};
use frontend_kit::outline::Outline;
use frontend_kit::project::{AgentPlace, Compiled, Facts, File, Frontend, Project, Unit, UnitKind, Words};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The front end.
pub struct LambdaYaml;

/// Steps of a `react` agent that states none. The seed names no default; this is the bound of its Listing 1.
pub const DEFAULT_MAX_STEPS: u64 = 20;
const DEFAULT_ORIGIN: &str = "the default of 20 steps";
const TYPES: [&str; 5] = ["simple", "react", "chain", "router", "parallel"];
/// The tool that ends a loop.
const TERMINATE: &str = "terminate";
/// Agents of one file, counting each use of a shared one.
const MAX_AGENTS: usize = 2_000;
/// Agents within one another.
const MAX_DEPTH: usize = 24;

impl Frontend for LambdaYaml {
    fn name(&self) -> &'static str {
        "lambda"
    }

    fn detect(&self, file: &File) -> u8 {
        file.documents.iter().take(8).map(|d| likeness(d.root())).max().unwrap_or(0)
    }

    fn fields(&self) -> Vec<&'static str> {
        [COMMON, &["react", "mcp"]].concat()
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let mut compiled = Compiled {
            framework: self.name(),
            units: Vec::new(),
            facts: Facts {
                words: Words {
                    prompt: "say what the agent is to do: `systemPrompt`",
                    model: "name one: `model: {name: …}`",
                    bound: "state it: `react.maxSteps`",
                    exit: "add `terminate` to `mcp.localTools`",
                    ender: Some((&["mcp", "localTools"], TERMINATE)),
                    stated: Some(&["react", "maxSteps"]),
                    ..Words::default()
                },
                ..Facts::default()
            },
            diagnostics: Vec::new(),
        };
        let Some(file) = project.files.get(main) else { return compiled };
        let mut left = MAX_AGENTS;
        for document in file.documents.iter().filter(|d| likeness(d.root()) > 0) {
            lower_document(document, file, &mut left, &mut compiled);
        }
        compiled
    }
}

/// Returns the confidence, from 0 to 100, that a node is an agent of this format.
fn likeness(root: Node<'_>) -> u8 {
    let kind = root.get("type").and_then(|t| t.as_str());
    let has = |k: &str| root.get(k).is_some();
    let known = kind.is_some_and(|k| TYPES.contains(&k));
    match (known, has("agentId")) {
        (true, true) => 95,
        (true, false) if has("systemPrompt") || has("react") || has("mcp") || has("routes") => 90,
        // A misspelled type, or none.
        (false, true) if has("systemPrompt") || has("react") || has("mcp") => 80,
        _ => 0,
    }
}

fn lower_document(document: &Document, file: &File, left: &mut usize, compiled: &mut Compiled) {
    let root = document.root();
    let mut lower = LambdaLowering {
        b: Builder::new(),
        out: &mut compiled.diagnostics,
        defined: defined_agents(root),
        agents: Vec::new(),
        tools: HashMap::new(),
        open: Vec::new(),
        left,
        overflow: false,
        stores: 0,
    };
    let term = lower.agent(root, None);
    let LambdaLowering { b, agents, .. } = lower;
    let name = agents.first().map_or_else(|| file_stem(&file.path).to_string(), |a| a.name.clone());
    match b.finish(term, &Globals::none()) {
        Ok(code) => compiled.units.push(Unit {
            name,
            kind: UnitKind::Agent,
            code: Arc::new(code),
            span: root.head(),
            agents,
            outline: Outline::default(),
        }),
        Err(errors) => {
            compiled.diagnostics.extend(errors.into_iter().take(1).map(|e| emit::not_built(&e, root.head())))
        }
    }
}

fn file_stem(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

const CHILD_LISTS: [&str; 5] = ["agents", "steps", "chain", "branches", "subAgents"];

/// Agents that can be named: those under `subAgents` or `agents`, by key, `agentId` or `name`.
fn defined_agents<'d>(root: Node<'d>) -> HashMap<&'d str, Node<'d>> {
    let mut defined = HashMap::new();
    for key in CHILD_LISTS {
        let Some(node) = root.get(key) else { continue };
        for entry in node.entries() {
            defined.entry(entry.key.text().unwrap_or("")).or_insert(entry.value);
        }
        for item in node.items() {
            if let Some(name) = agent_name(item) {
                defined.entry(name).or_insert(item);
            }
        }
    }
    defined
}

fn agent_name<'d>(node: Node<'d>) -> Option<&'d str> {
    ["agentId", "name", "id"].iter().find_map(|k| node.get(k)?.text())
}

struct LambdaLowering<'d, 'o> {
    b: Builder,
    out: &'o mut Vec<Diagnostic>,
    defined: HashMap<&'d str, Node<'d>>,
    agents: Vec<AgentPlace>,
    tools: HashMap<String, ToolId>,
    /// The agents around the current place: to recognize one that contains itself.
    open: Vec<NodeId>,
    /// Agents that may still be compiled.
    left: &'o mut usize,
    overflow: bool,
    stores: usize,
}

const COMMON: &[&str] =
    &["agentId", "name", "id", "type", "description", "model", "systemPrompt", "guard", "memory"];
const UNUSED: &[Unused] = &[
    ("version", "it changes nothing about what the agent does"),
    ("tags", "they change nothing about what the agent does"),
    ("rag", "retrieval is not compiled yet"),
    ("description", "it changes nothing about what the agent does"),
];

impl<'d> LambdaLowering<'d, '_> {
    fn unknown(&mut self, why: &str, span: Span) -> TermId {
        self.b.add(Term::Unknown(why.into()), span)
    }

    /// An agent, or the name of one.
    fn child(&mut self, node: Node<'d>) -> TermId {
        let Some(name) = node.text() else {
            if node.is_mapping() {
                // `{agent: name}` is a name too.
                if let Some(entry) = node.entry("agent").filter(|_| node.get("type").is_none()) {
                    return self.child(entry.value);
                }
                return self.agent(node, None);
            }
            self.out.push(Diagnostic::error(
                codes::WRONG_KIND,
                format!("expected an agent or the name of one, found {}", node.kind().as_str()),
                node.head(),
            ));
            return self.unknown("an agent", node.span());
        };
        match self.defined.get(name) {
            Some(agent) if agent.is_mapping() => self.agent(*agent, Some(name)),
            _ => {
                let d = Diagnostic::error(
                    codes::UNDEFINED,
                    format!("no agent is called `{}`", clip(name)),
                    node.span(),
                );
                self.out.push(match near(name, self.defined.keys().copied(), self.out) {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None => d.help("define it under `subAgents`, or write it here in full"),
                });
                self.unknown(name, node.span())
            }
        }
    }

    fn agent(&mut self, node: Node<'d>, called: Option<&'d str>) -> TermId {
        let head = node.head();
        if self.open.contains(&node.id()) {
            self.out.push(
                Diagnostic::error(codes::TOO_MUCH, "this agent contains itself", head)
                    .help("a loop is written as `type: react` with `maxSteps`"),
            );
            return self.unknown("an agent within itself", head);
        }
        if self.open.len() >= MAX_DEPTH || *self.left == 0 {
            // One report is enough, or a bomb of aliases would be answered by a bomb of reports.
            if !std::mem::replace(&mut self.overflow, true) {
                self.out.push(Diagnostic::error(
                    codes::TOO_MUCH,
                    format!("more than {MAX_AGENTS} agents, or more than {MAX_DEPTH} within one another"),
                    head,
                ));
            }
            return self.unknown("an agent beyond the limit", head);
        }
        *self.left -= 1;
        self.open.push(node.id());
        let name = called.or_else(|| agent_name(node)).unwrap_or("");
        if !name.is_empty() {
            self.agents.push(AgentPlace { name: name.to_string(), span: node.definition() });
        }
        let term = self.by_type(node);
        let term = self.guarded(node, term);
        let term = self.remembering(node, term);
        self.open.pop();
        term
    }

    fn by_type(&mut self, node: Node<'d>) -> TermId {
        let entry = node.entry("type");
        let kind = entry.and_then(|e| e.value.as_str());
        // The keys of the agent say what it is if its type does not.
        let guess = || {
            if node.get("react").is_some() || node.get("mcp").is_some() {
                "react"
            } else if node.get("routes").is_some() {
                "router"
            } else {
                "simple"
            }
        };
        let (kind, used): (&str, &[&'static str]) = match kind.unwrap_or_else(guess) {
            "react" => ("react", &["react", "mcp", "tools"]),
            "chain" => ("chain", &CHILD_LISTS),
            "router" => ("router", &["routes", "default", "defaultRoute", "agents", "subAgents"]),
            "parallel" => ("parallel", &CHILD_LISTS),
            "simple" => ("simple", &["agents", "subAgents"]),
            other => {
                // INVARIANT: guesses are among the known types, so the entry exists here.
                let span = entry.map_or(node.head(), |e| value_span(&e));
                let d = Diagnostic::error(
                    codes::UNKNOWN_TYPE,
                    format!("unknown agent type `{}`", clip(other)),
                    span,
                );
                self.out.push(match near(other, TYPES, self.out) {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None => d.help("the types are `simple`, `react`, `chain`, `router` and `parallel`"),
                });
                return self.unknown("an agent of unknown type", span);
            }
        };
        let all: Vec<&'static str> = COMMON.iter().chain(used).copied().collect();
        let elsewhere: &[Unused] = match kind {
            "simple" => &[
                ("mcp", "only `type: react` calls tools"),
                ("tools", "only `type: react` calls tools"),
                ("react", "only `type: react` has a loop"),
            ],
            _ => &[],
        };
        let unused: Vec<Unused> = UNUSED.iter().chain(elsewhere).copied().collect();
        report_keys(node, &all, &unused, &format!("an agent of type `{kind}`"), self.out);
        match kind {
            "react" => self.react(node),
            "chain" => self.chain(node),
            "router" => self.router(node),
            "parallel" => self.parallel(node),
            _ => {
                let (params, at) = self.model(node);
                self.llm(node, params, at)
            }
        }
    }

    fn model(&mut self, node: Node<'d>) -> (ModelParams, Option<Span>) {
        emit::model(node.entry("model"), &["name", "model"], self.out)
    }

    /// `llm p θ`. The prompt's place is its value, the oracle's that of the model's name; what is
    /// missing is at the head of the agent.
    fn llm(&mut self, node: Node<'d>, mut params: ModelParams, model_at: Option<Span>) -> TermId {
        let head = node.head();
        let prompt = emit::text(node, "systemPrompt", self.out).unwrap_or("");
        let prompt_at = node.entry("systemPrompt").map_or(head, |e| value_span(&e));
        params.purpose =
            self.agents.last().filter(|a| a.span == node.definition()).map(|a| Name::from(a.name.as_str()));
        let prompt = self.b.lit(Data::str(prompt), prompt_at);
        self.b.add(Term::Llm(prompt, Arc::new(params)), model_at.unwrap_or(head))
    }

    fn react(&mut self, node: Node<'d>) -> TermId {
        let head = node.head();
        let react = node.entry("react");
        if let Some(e) = react.filter(|e| !e.value.is_mapping() && !e.value.is_null()) {
            self.out.push(wrong_kind(&e, "a mapping with `maxSteps`"));
        }
        if let Some(e) = react {
            report_keys(e.value, &["maxSteps", "max_steps", "isTerminationMsg"], &[], "`react`", self.out);
        }
        let steps = react.and_then(|e| e.value.entry("maxSteps").or_else(|| e.value.entry("max_steps")));
        let bound = emit::loop_bound(steps, DEFAULT_MAX_STEPS, DEFAULT_ORIGIN, self.out);
        let fix_at = bound
            .span
            .or(react.map(|e| e.key.span()))
            .or(node.entry("type").map(|e| value_span(&e)))
            .unwrap_or(head);

        let (names, tools_at) = self.tool_names(node);
        let (mut params, model_at) = self.model(node);
        let mut branches: Vec<(Name, TermId)> = Vec::new();
        for (name, server, at) in &names {
            let tool = self.tool(name, server.as_deref(), *at);
            params.tools.push(tool);
            let body = if name == TERMINATE { self.terminate(*at) } else { self.act(name, tool, node, *at) };
            branches.push((Name::from(name.as_str()), body));
        }
        let stop = react
            .and_then(|e| e.value.entry("isTerminationMsg"))
            .and_then(|e| e.value.text().map(|t| (t, value_span(&e))))
            .filter(|(t, _)| !t.is_empty());
        let think = self.llm(node, params, model_at);
        let oracle_at = self.b.span(think);
        let x = self.b.var("x", oracle_at);
        let think = self.b.app(think, x, oracle_at);

        if branches.is_empty() {
            // The reply of a model without tools is text, hence a thought.
            let thought = self.thought("t", stop, tools_at);
            let body = self.b.let_in(vec![("t".into(), think)], thought, head);
            return self.fixpoint(body, bound, head, fix_at);
        }
        let thought = self.thought("a", stop, tools_at);
        let t = self.b.var("t", tools_at);
        let branches = branches
            .into_iter()
            .map(|(tag, body)| Branch { tag, binder: Some("a".into()), body })
            .chain([Branch { tag: "final".into(), binder: Some("a".into()), body: thought }])
            .collect();
        let case = self.b.add(Term::Case { scrutinee: t, branches, default: None }, tools_at);
        let body = self.b.let_in(vec![("t".into(), think)], case, head);
        self.fixpoint(body, bound, head, fix_at)
    }

    /// `fix[n] (λself. λx. body)`.
    fn fixpoint(&mut self, body: TermId, bound: LoopBound, at: Span, fix_at: Span) -> TermId {
        let step = self.b.abs("x", Some(Type::Str), body, at);
        let body = self.b.abs("self", None, step, at);
        self.b.add(Term::Fix { bound: bound.bound, origin: bound.origin, body }, fix_at)
    }

    /// The tools of an agent: name, server, place. And the place where tools are listed.
    fn tool_names(&mut self, node: Node<'d>) -> (Vec<(String, Option<String>, Span)>, Span) {
        let mut tools: Vec<(String, Option<String>, Span)> = Vec::new();
        let mut seen: HashSet<String> = HashSet::new();
        let mut full = false;
        let mut place = None;
        let mut add = |name: &str, server: Option<&str>, item: Node<'d>, out: &mut Vec<Diagnostic>| {
            if tools.len() >= emit::MAX_TOOLS {
                if !std::mem::replace(&mut full, true) {
                    out.push(emit::too_many_tools(item.span()));
                }
                return;
            }
            if name == "final" || !seen.insert(name.to_string()) {
                out.push(
                    Diagnostic::warn(
                        codes::DUPLICATE,
                        format!("there is a tool `{}` already, this one is left out", clip(name)),
                        item.span(),
                    )
                    .help("a model calls a tool by its name, so each name must be unique"),
                );
                return;
            }
            tools.push((name.to_string(), server.map(str::to_string), item.span()));
        };
        if let Some(mcp) = node.entry("mcp") {
            place = Some(mcp.key.span());
            if !mcp.value.is_mapping() && !mcp.value.is_null() {
                self.out.push(wrong_kind(&mcp, "a mapping with `onlineTool` and `localTools`"));
            }
            report_keys(mcp.value, &["onlineTool", "onlineTools", "localTools"], &[], "`mcp`", self.out);
            for key in ["onlineTool", "onlineTools"] {
                let Some(online) = mcp.value.entry(key) else { continue };
                if online.value.is_mapping() {
                    for server in online.value.entries() {
                        for (name, item) in emit::names(&server, self.out) {
                            add(name, Some(server.name()), item, self.out);
                        }
                    }
                } else {
                    for (name, item) in emit::names(&online, self.out) {
                        add(name, None, item, self.out);
                    }
                }
            }
            if let Some(local) = mcp.value.entry("localTools") {
                place = Some(value_span(&local));
                for (name, item) in emit::names(&local, self.out) {
                    add(name, None, item, self.out);
                }
            }
        }
        if let Some(list) = node.entry("tools") {
            place = place.or(Some(value_span(&list)));
            for (name, item) in emit::names(&list, self.out) {
                add(name, None, item, self.out);
            }
        }
        let fallback = node.entry("type").map_or(node.head(), |e| value_span(&e));
        (tools, place.unwrap_or(fallback))
    }

    fn tool(&mut self, name: &str, server: Option<&str>, at: Span) -> ToolId {
        let key = format!("{}\0{name}", server.unwrap_or(""));
        if let Some(id) = self.tools.get(&key) {
            return *id;
        }
        let mut decl = ToolDecl::unknown(name.into(), at);
        if name == TERMINATE {
            decl.params = vec![ToolParam {
                name: "answer".into(),
                ty: Type::Str,
                bound: LabelSpec::TOP,
                default: None,
            }];
            decl.result = Type::Str;
            decl.effect = EffectClass::Pure;
            decl.control = LabelSpec::TOP;
            decl.label = LabelSpec::BOTTOM;
            decl.description = Some("ends the task with the final answer".into());
        }
        if let Some(server) = server {
            decl.handler = Some(Data::record([(Name::from("mcp"), Data::str(server))]));
        }
        let id = self.b.tool(decl);
        self.tools.insert(key, id);
        id
    }

    /// The identity on the answer.
    fn terminate(&mut self, at: Span) -> TermId {
        let a = self.b.var("a", at);
        self.b.add(Term::Field(a, "answer".into()), at)
    }

    /// Invoke, observe, update, and on.
    fn act(&mut self, name: &str, tool: ToolId, node: Node<'d>, at: Span) -> TermId {
        let f = self.b.add(Term::Tool(tool), at);
        let a = self.b.var("a", at);
        let call = self.b.app(f, a, at);
        let (x, o) = (self.b.var("x", at), self.b.var("o", at));
        let mut state = Template::new(at);
        state.term(x).text(&format!("\n[{name}] ")).term(o);
        let state = state.build(&mut self.b);
        let mut bindings = vec![(Name::from("o"), call)];
        let next = if node.get("memory").is_some_and(|m| !m.is_null()) {
            bindings.push(("s".into(), state));
            let s = self.b.var("s", at);
            let update = self.b.add(Term::Remember(STATE.into(), None, s), at);
            bindings.push(("_".into(), update));
            self.b.var("s", at)
        } else {
            state
        };
        let this = self.b.var("self", at);
        let again = self.b.app(this, next, at);
        self.b.let_in(bindings, again, at)
    }

    /// A reply without an action, in the variable `reply`: one more thought, unless it holds the text
    /// that ends the loop.
    fn thought(&mut self, reply: &str, stop: Option<(&str, Span)>, at: Span) -> TermId {
        let (x, a) = (self.b.var("x", at), self.b.var(reply, at));
        let mut state = Template::new(at);
        state.term(x).text("\n").term(a);
        let state = state.build(&mut self.b);
        let this = self.b.var("self", at);
        let again = self.b.app(this, state, at);
        let Some((stop, stop_at)) = stop else { return again };
        let (a, needle) = (self.b.var(reply, stop_at), self.b.lit(Data::str(stop), stop_at));
        let test = self.b.add(Term::Prim(Prim::Contains, vec![a, needle]), stop_at);
        let answer = self.b.var(reply, stop_at);
        self.b.add(Term::If(test, answer, again, core_ir::IfSugar::Plain), stop_at)
    }

    /// The children of a chain or a parallel agent, with the place of their list.
    fn children(&mut self, node: Node<'d>) -> (Vec<TermId>, Span) {
        let keys: &[&str] = if node.get("type").and_then(|t| t.as_str()) == Some("chain") {
            &["steps", "chain", "agents", "subAgents"]
        } else {
            &["branches", "agents", "subAgents"]
        };
        let Some(entry) = keys.iter().find_map(|k| node.entry(k)) else {
            let at = node.entry("type").map_or(node.head(), |e| value_span(&e));
            return (Vec::new(), at);
        };
        let list = entry.value;
        let mut parts: Vec<TermId> = list.items().map(|n| self.child(n)).collect();
        parts.extend(list.entries().map(|e| self.agent_entry(&e)));
        (parts, value_span(&entry))
    }

    /// An agent under its name.
    fn agent_entry(&mut self, entry: &Entry<'d>) -> TermId {
        if entry.value.is_mapping() {
            self.agent(entry.value, entry.key.text())
        } else {
            self.child(entry.value)
        }
    }

    fn chain(&mut self, node: Node<'d>) -> TermId {
        let (mut parts, at) = self.children(node);
        match parts.len() {
            0 => {
                let x = self.b.var("x", at);
                self.b.abs("x", Some(Type::Str), x, at)
            }
            1 => parts.remove(0),
            _ => self.b.compose(parts, at),
        }
    }

    fn parallel(&mut self, node: Node<'d>) -> TermId {
        let (parts, at) = self.children(node);
        match parts[..] {
            [a, b] => self.b.par_pair(a, b, at),
            _ => {
                let sides = parts
                    .into_iter()
                    .map(|part| {
                        let at = self.b.span(part);
                        let x = self.b.var("x", at);
                        self.b.app(part, x, at)
                    })
                    .collect();
                let par = self.b.add(Term::Par(None, sides), at);
                self.b.abs("x", Some(Type::Str), par, at)
            }
        }
    }

    fn router(&mut self, node: Node<'d>) -> TermId {
        let head = node.head();
        let routes = node.entry("routes");
        let at = routes.map_or(node.entry("type").map_or(head, |e| value_span(&e)), |e| value_span(&e));
        let mut labeled: Vec<(&'d str, TermId)> = Vec::new();
        let mut default = None;
        for route in routes.into_iter().flat_map(|e| e.value.entries()) {
            let term = self.agent_entry(&route);
            match route.key.text().unwrap_or("") {
                "default" | "_" => default = Some(term),
                label => labeled.push((label, term)),
            }
        }
        let mut seen: HashSet<&str> = HashSet::new();
        for item in routes.into_iter().flat_map(|e| e.value.items()) {
            let label = ["label", "when", "route", "name"].iter().find_map(|k| item.get(k)?.text());
            let Some(label) = label else {
                self.out.push(Diagnostic::error(codes::WRONG_KIND, "a route without a `label`", item.head()));
                continue;
            };
            if !seen.insert(label) {
                self.out.push(Diagnostic::warn(
                    codes::DUPLICATE,
                    format!("there is a route `{}` already, this one is never taken", clip(label)),
                    item.head(),
                ));
                continue;
            }
            let term = match item.entry("agent") {
                Some(e) => self.child(e.value),
                None => self.agent(item, None),
            };
            match label {
                "default" | "_" => default = Some(term),
                _ => labeled.push((label, term)),
            }
        }
        if let Some(e) = ["default", "defaultRoute"].iter().find_map(|k| node.entry(k)) {
            // The name of a route counts as well as that of an agent.
            let again = e.value.text().and_then(|t| routes?.value.get(t));
            default = Some(match again {
                Some(route) if route.is_mapping() => self.agent(route, e.value.text()),
                Some(route) => self.child(route),
                None => self.child(e.value),
            });
        }
        let (params, model_at) = self.model(node);
        let oracle = self.llm(node, params, model_at);
        let oracle_at = self.b.span(oracle);
        let x = self.b.var("x", oracle_at);
        let reply = self.b.app(oracle, x, oracle_at);
        let label = if default.is_some() {
            self.b.add(Term::Prim(Prim::Trim, vec![reply]), at)
        } else {
            let tags = labeled.iter().map(|(l, _)| Name::from(*l)).collect();
            self.b.add(Term::Classify(tags, reply), at)
        };
        let applied = |lower: &mut Self, term: TermId| {
            let at = lower.b.span(term);
            let x = lower.b.var("x", at);
            lower.b.app(term, x, at)
        };
        let branches = labeled
            .into_iter()
            .map(|(l, term)| Branch { tag: l.into(), binder: None, body: applied(self, term) })
            .collect();
        let default = default.map(|term| applied(self, term));
        let case = self.b.add(Term::Case { scrutinee: label, branches, default }, at);
        self.b.abs("x", Some(Type::Str), case, head)
    }

    fn guarded(&mut self, node: Node<'d>, term: TermId) -> TermId {
        let Some(entry) = node.entry("guard").filter(|e| !e.value.is_null()) else { return term };
        if !entry.value.is_mapping() {
            self.out.push(wrong_kind(&entry, "a mapping such as `{words: 3, retry: 2}`"));
            return term;
        }
        let mut preds: Vec<Pred> = Vec::new();
        let mut retry = 0;
        for e in entry.value.entries() {
            let number = |out: &mut Vec<Diagnostic>| {
                let n = e.value.as_num();
                if n.is_none() {
                    out.push(wrong_kind(&e, "a number"));
                }
                n
            };
            let mut compare = |measure, comparison, out: &mut Vec<Diagnostic>| {
                preds.extend(number(out).map(|n| Pred::Compare(measure, comparison, n)));
            };
            match e.name() {
                "minLength" => compare(Measure::Length, Comparison::Ge, self.out),
                "maxLength" => compare(Measure::Length, Comparison::Le, self.out),
                "words" => compare(Measure::Words, Comparison::Eq, self.out),
                "minWords" => compare(Measure::Words, Comparison::Ge, self.out),
                "maxWords" => compare(Measure::Words, Comparison::Le, self.out),
                "notEmpty" => {
                    if e.value.as_bool() == Some(true) {
                        preds.push(Pred::Compare(Measure::Length, Comparison::Gt, Num::ZERO));
                    }
                }
                "matches" | "contains" => match e.value.text() {
                    Some(t) if e.name() == "matches" => preds.push(Pred::Matches(t.into())),
                    Some(t) => preds.push(Pred::Contains(t.into())),
                    None => self.out.push(wrong_kind(&e, "text")),
                },
                "oneOf" => {
                    let options = emit::names(&e, self.out).into_iter().map(|(t, _)| Data::str(t)).collect();
                    preds.push(Pred::OneOf(options));
                }
                "retry" | "retries" | "maxRetries" => {
                    match e.value.as_u64().and_then(|n| u32::try_from(n).ok()) {
                        Some(n) => retry = n,
                        None => self.out.push(wrong_kind(&e, "a whole number")),
                    }
                }
                other => self.out.push(undecided(
                    codes::UNKNOWN_KEY,
                    format!(
                        "the condition `{}` of this guard is not understood, and not checked",
                        clip(other)
                    ),
                    e.key.span(),
                )),
            }
        }
        let pred = preds.into_iter().reduce(|a, b| Pred::And(Arc::new((a, b)))).unwrap_or(Pred::True);
        self.b.add(Term::Guard { term, pred, retry }, entry.key.span())
    }

    fn remembering(&mut self, node: Node<'d>, term: TermId) -> TermId {
        let Some(entry) = node.entry("memory").filter(|e| !e.value.is_null()) else { return term };
        let at = entry.key.span();
        if !entry.value.is_mapping() && entry.value.text().is_none() {
            self.out.push(wrong_kind(&entry, "a mapping such as `{strategy: redis, size: 20, ttl: 7200}`"));
        }
        let whole = |key: &str, out: &mut Vec<Diagnostic>| {
            let e = entry.value.entry(key)?;
            let n = e.value.as_u64();
            if n.is_none() && !e.value.is_null() && !e.value.as_str().is_some_and(emit::is_placeholder) {
                out.push(wrong_kind(&e, "a whole number"));
            }
            n
        };
        let (capacity, ttl) = (whole("size", self.out), whole("ttl", self.out));
        let backend = entry.value.text().or_else(|| entry.value.get("strategy")?.text()).map(Name::from);
        report_keys(entry.value, &["strategy", "size", "ttl"], &[], "`memory`", self.out);
        self.stores += 1;
        let name = match agent_name(node) {
            Some(name) => Name::from(name),
            None => Name::from(format!("memory{}", self.stores)),
        };
        // What tools returned is part of the state, so it may come from anyone.
        let label = LabelSpec::Axes { untrusted: true, secret: false };
        let keys = vec![KeyDecl { name: STATE.into(), ty: Type::Str, label, initial: None }];
        let store = self.b.store(StoreDecl { name, keys, capacity, ttl, backend, span: at });
        self.b.add(Term::Mem(store, term), at)
    }
}

/// The key under which an agent's memory keeps its state.
const STATE: &str = "state";
