//! Edges of calls, once all modules are read: into the project's functions, through models, and through what
//! is outside the project.

use super::{
    Act, CallFacts, Callee, Given, How, Key, MAX_ORIGINS, Made, MadeClass, Origin, Run, Site, Steps, Way,
};
use crate::body::{self, Decided};
use crate::model_calls;
use crate::words::words;
use diagnostics::Span;
use std::collections::BTreeSet;

/// Functions whose result holds nothing of the text that they are given.
const FORGETS: &[&str] =
    &["len", "isinstance", "bool", "int", "float", "hash", "id", "type", "hasattr", "print"];
/// Functions whose result has the parts of what they are given.
const KEEPS: &[&str] = &[
    "copy",
    "deepcopy",
    "dict",
    "list",
    "next",
    "iter",
    "sorted",
    "reversed",
    "tuple",
    "set",
    "filter",
    "gather",
    "as_completed",
    "model_copy",
    "model_dump",
    "Command",
    "Send",
    "create_task",
    "wait_for",
    "run_until_complete",
    "to_dict",
    "_asdict",
    "asdict",
    "run_coroutine_threadsafe",
    "enumerate",
    "zip",
];
/// Methods that test a text.
const TESTS: &[&str] = &["startswith", "endswith", "isdigit", "is_integer", "issubset", "isalpha"];
/// Methods by which a collection or a message takes something in.
const TAKES: &[&str] = &[
    "add",
    "add_alternative",
    "add_attachment",
    "add_header",
    "add_message",
    "add_messages",
    "append",
    "appendleft",
    "attach",
    "extend",
    "insert",
    "put",
    "put_nowait",
    "send_event",
    "send_message",
    "set",
    "set_content",
    "set_payload",
    "setdefault",
    "set_state",
    "update",
    "write",
    "writelines",
    "yield_output",
];
/// Methods that are of too many things to be told by their names.
const COMMON: &[&str] = &[
    "__init__", "add", "append", "call", "clear", "close", "connect", "copy", "delete", "execute", "extend",
    "get", "insert", "invoke", "items", "join", "keys", "list", "load", "open", "pop", "post", "put", "read",
    "remove", "run", "send", "set", "split", "start", "stop", "update", "values", "write",
];
/// Longer names are not split to their end.
const MAX_NAME: usize = 100;
/// Methods of one name that a call may be of.
const MAX_METHODS: usize = 4;

impl Steps {
    pub(super) fn comes_in(&mut self, origin: Origin, at: u32) {
        if self.origins.len() < MAX_ORIGINS {
            self.origins.push((origin, at));
        } else {
            self.cut = true;
        }
    }

    /// A function that is a step: it is given what the steps share, and its result becomes a part of that.
    pub(super) fn join(&mut self, function: &Callee, shared: u32, selects: bool) {
        for param in function.params.iter().skip(function.skip) {
            let local = self.node(Key::Local(function.at, param.clone()));
            let changed = self.node(Key::Changed(function.at, param.clone()));
            self.edge(shared, local, How::Copy, Way::Here);
            self.edge(changed, shared, How::Copy, Way::Here);
        }
        if !selects {
            let result = self.node(Key::Result(function.at));
            self.edge(result, shared, How::Copy, Way::Here);
        }
    }

    /// Adds the edges of all calls.
    pub(super) fn settle(&mut self) {
        let sites = std::mem::take(&mut self.sites);
        for (site, given) in sites.iter().filter_map(|s| Some((s, s.given.as_ref()?))) {
            self.give(site, given);
        }
        for site in &sites {
            let facts = self.facts.remove(&site.span);
            self.settle_call(site, facts.as_ref());
        }
        let routes = std::mem::take(&mut self.routes);
        for (graph, router, targets) in &routes.routers {
            let result = self.node(Key::Result(*router));
            let returned = routes.returned.get(router);
            let names: BTreeSet<&String> = targets.iter().chain(returned.into_iter().flatten()).collect();
            for name in names {
                let node = (*graph, name.clone());
                if routes.plain.contains(&node) {
                    continue;
                }
                for function in routes.nodes.get(&node).into_iter().flatten() {
                    let ran = self.node(Key::Ran(*function));
                    self.edge(result, ran, How::Compared, Way::Here);
                }
            }
        }
    }

    fn settle_call(&mut self, site: &Site, facts: Option<&CallFacts>) {
        let callees = self.callees(site, facts);
        if !callees.is_empty() {
            callees.iter().for_each(|c| self.enter(site, c, true));
            return;
        }
        if let Some(class) = facts.and_then(|f| f.class.as_ref()) {
            if let Some(init) = &class.init {
                self.enter(site, init, false);
            }
            for (i, of) in site.by_position.iter().enumerate() {
                match class.fields.get(i).filter(|_| class.init.is_none()) {
                    Some(field) => self.field(class, field, of, site.result),
                    None => self.flow(of, site.result, How::Whole),
                }
            }
            for (name, of) in &site.by_keyword {
                match name {
                    Some(name) => self.field(class, name, of, site.result),
                    None => self.flow(of, site.result, How::Copy),
                }
            }
            return;
        }
        self.outside(site, facts);
    }

    /// A value becomes an attribute of an instance that is made.
    fn field(&mut self, class: &MadeClass, name: &str, from: &[u32], instance: u32) {
        let key = self.key(name);
        self.flow(from, instance, How::Store(key));
        if !class.is_data {
            let attribute = self.node(Key::Attribute(class.file, name.to_string()));
            self.flow(from, attribute, How::Copy);
        }
    }

    /// The project's functions that a call enters.
    fn callees(&self, site: &Site, facts: Option<&CallFacts>) -> Vec<Callee> {
        if let Some(entered) = self.entered.get(&site.span) {
            let known: Vec<Callee> =
                entered.iter().filter(|c| self.files.contains(&c.at.file)).cloned().collect();
            if !known.is_empty() {
                return known;
            }
        }
        if !site.callees.is_empty() {
            return site.callees.clone();
        }
        // The object is not known: the only methods of this name.
        let is_known = facts.is_some_and(|f| f.is_known || f.makes);
        if !site.is_method || site.is_own || is_known || COMMON.contains(&site.method.as_str()) {
            return Vec::new();
        }
        let all = self.methods.get(&site.method).into_iter().flatten();
        let fitting: Vec<Callee> = all.filter(|c| fits(site, c)).cloned().collect();
        if fitting.len() <= MAX_METHODS { fitting } else { Vec::new() }
    }

    fn all_args(site: &Site) -> Vec<u32> {
        let by_keyword = site.by_keyword.iter().flat_map(|(_, of)| of);
        site.by_position.iter().flatten().chain(by_keyword).copied().collect()
    }

    fn enter(&mut self, site: &Site, callee: &Callee, returns: bool) {
        let call = self.call_number(site.span);
        let way = Way::Enter(call);
        let params = &callee.params;
        if let Some(this) = params.first().filter(|_| callee.skip > 0 && site.is_method && returns) {
            let to = self.node(Key::Local(callee.at, this.clone()));
            site.on.iter().for_each(|from| self.edge(*from, to, How::Copy, way));
        }
        let plain = params
            .iter()
            .position(|p| Some(p) == callee.rest.as_ref() || Some(p) == callee.keywords.as_ref());
        for (i, of) in site.by_position.iter().enumerate() {
            let at = i + callee.skip;
            let by_position = params.get(at).filter(|_| plain.is_none_or(|end| at < end));
            let Some(param) = by_position.or(callee.rest.as_ref()) else { continue };
            let to = self.node(Key::Local(callee.at, param.clone()));
            let changed = self.node(Key::Changed(callee.at, param.clone()));
            let back = Key::Taken(Span { end: super::read::arg_number(site.span, i), ..site.span });
            let back = self.node(back);
            of.iter().for_each(|from| self.edge(*from, to, How::Copy, way));
            self.edge(changed, back, How::Copy, Way::Return(call));
        }
        for (name, of) in &site.by_keyword {
            match (name, &callee.keywords) {
                (Some(name), _) if params.contains(name) => {
                    let to = self.node(Key::Local(callee.at, name.clone()));
                    of.iter().for_each(|from| self.edge(*from, to, How::Copy, way));
                }
                (Some(name), Some(keywords)) => {
                    let key = self.key(name);
                    let to = self.node(Key::Local(callee.at, keywords.clone()));
                    of.iter().for_each(|from| self.edge(*from, to, How::Store(key), way));
                }
                (Some(_), None) => {}
                // `**given`: each parameter gets the part of its name.
                (None, keywords) => {
                    for param in params.iter().skip(callee.skip) {
                        let to = self.node(Key::Local(callee.at, param.clone()));
                        let how = match Some(param) == keywords.as_ref() {
                            true => How::Copy,
                            false => How::Load(self.key(param)),
                        };
                        of.iter().for_each(|from| self.edge(*from, to, how, way));
                    }
                }
            }
        }
        if returns {
            let of = self.node(Key::Result(callee.at));
            self.edge(of, site.result, How::Copy, Way::Return(call));
        }
        let ran = self.node(Key::Ran(callee.at));
        let outer = self.node(Key::Ran(site.scope));
        for test in site.tests.iter().chain([&outer]) {
            self.edge(*test, ran, How::Because, way);
        }
    }

    /// Functions are given to a graph, or to something that calls them.
    fn give(&mut self, site: &Site, given: &Given) {
        match given.graph {
            Some(graph) => {
                self.graphs.insert(graph);
                let shared = self.node(Key::Shared(graph));
                for function in &given.functions {
                    self.join(function, shared, given.selects);
                }
                for class in &given.classes {
                    let own = self.node(Key::Shared(*class));
                    self.edge(own, shared, How::Copy, Way::Here);
                    self.edge(shared, own, How::Copy, Way::Here);
                }
            }
            // `executor.submit(f, x)`
            None => {
                let call = self.call_number(site.span);
                let args = Self::all_args(site);
                for function in &given.functions {
                    for param in function.params.iter().skip(function.skip) {
                        let to = self.node(Key::Local(function.at, param.clone()));
                        args.iter().for_each(|from| self.edge(*from, to, How::Copy, Way::Enter(call)));
                    }
                    let of = self.node(Key::Result(function.at));
                    self.edge(of, site.result, How::Copy, Way::Return(call));
                }
            }
        }
    }

    /// A call of something outside the project, or of something that is not known.
    fn outside(&mut self, site: &Site, facts: Option<&CallFacts>) {
        let nothing = CallFacts::default();
        let is_known = facts.is_some_and(|f| f.objects > 0);
        let facts = facts.unwrap_or(&nothing);
        let args = Self::all_args(site);
        let method = site.method.as_str();
        if facts.runs || !is_known && site.is_method && asks_by_name(site) {
            self.run(site, facts, &args);
            return;
        }
        if TESTS.contains(&method) {
            self.flow(&site.on, site.result, How::Compared);
        } else if !FORGETS.contains(&method) {
            let how = if KEEPS.contains(&method) { How::Copy } else { How::Whole };
            self.flow(&args, site.result, how);
            self.flow(&site.on, site.result, how);
        }
        if site.is_method && TAKES.contains(&method) {
            let taken = self.node(Key::Taken(site.span));
            self.flow(&args, taken, How::Copy);
        }
        // `json.dump(answer, file)`
        if method == "dump"
            && let [first, _, ..] = &site.by_position[..]
        {
            let file =
                self.node(Key::Taken(Span { end: super::read::arg_number(site.span, 1), ..site.span }));
            self.flow(first, file, How::Copy);
        }
        if let Some(name) = &facts.file {
            let file = self.node(Key::File(site.folder.clone(), name.clone()));
            match method {
                "open" => {
                    self.edge(site.result, file, How::Copy, Way::Here);
                    self.edge(file, site.result, How::Copy, Way::Here);
                }
                "write_text" | "write_bytes" => self.flow(&args, file, How::Copy),
                _ => self.edge(file, site.result, How::Copy, Way::Here),
            }
        }
        let by_name = !is_known && site.is_method;
        let untrusted = || {
            let fact = by_name.then(|| body::untrusted_by_name(&site.chain, site.span)).flatten()?;
            Some(Origin { name: site.chain.clone(), span: site.span, fact })
        };
        if let Some(origin) = facts.origin.clone().or_else(untrusted) {
            self.comes_in(origin, site.result);
        }
        let acting = || {
            let (fact, decided) = by_name.then(|| body::acting_by_name(&site.chain, site.span)).flatten()?;
            Some((Origin { name: site.chain.clone(), span: site.span, fact }, decided))
        };
        if let Some((origin, decided)) = facts.act.clone().or_else(acting) {
            self.act(site, origin, decided, args.clone());
        }
        if facts.makes && !args.is_empty() {
            self.made.push(Made { span: site.span, args });
        }
    }

    fn act(&mut self, site: &Site, origin: Origin, decided: Decided, args: Vec<u32>) {
        let target = match (site.by_position.first(), decided) {
            // `Path(name).write_text(answer)`
            _ if decided == Decided::Target
                && matches!(site.method.as_str(), "write_text" | "write_bytes" | "unlink") =>
            {
                site.on.clone()
            }
            (Some(first), _) => first.clone(),
            (None, _) => site.by_keyword.first().map(|(_, of)| of.clone()).unwrap_or_default(),
        };
        let ran = self.node(Key::Ran(site.scope));
        let tests = site.tests.iter().copied().chain([ran]).collect();
        self.acts.push(Act { origin, decided, args, target, tests });
    }

    fn run(&mut self, site: &Site, facts: &CallFacts, args: &[u32]) {
        let index = self.runs.len() as u32;
        let asks = How::Asks(index);
        for from in args.iter().chain(&site.on) {
            self.edge(*from, site.result, asks, Way::Here);
        }
        // A graph of the program's own steps is given its first state, and gives back its last one.
        if let Some(graph) = facts.graph.filter(|g| self.graphs.contains(g)) {
            let shared = self.node(Key::Shared(graph));
            self.flow(args, shared, How::Copy);
            self.edge(shared, site.result, How::Copy, Way::Here);
        }
        self.runs.push(Run { span: site.span, agents: facts.agents.clone(), result: site.result });
    }
}

/// Returns true if a function takes the arguments of a call.
fn fits(site: &Site, callee: &Callee) -> bool {
    let own = callee.params.iter().skip(callee.skip);
    let is_named =
        |name: &String| callee.params.contains(name) || callee.params.iter().any(|p| p == "kwargs");
    site.by_position.len() <= own.count() && site.by_keyword.iter().flat_map(|(name, _)| name).all(is_named)
}

/// Returns true if the names that lead to a call of something unknown are those by which models are asked.
fn asks_by_name(site: &Site) -> bool {
    const UNCLEAR: &[&str] = &["ask", "batch", "call", "generate", "predict", "run", "stream"];
    const MODELS: &[&str] = &["agent", "assistant", "chain", "crew", "gpt", "llm", "lm", "model"];
    let method = site.method.as_str();
    let on_model = || {
        let mut parts = site.chain.rsplit('.').skip(1);
        parts.any(|p| words(p, MAX_NAME).iter().any(|w| MODELS.contains(&w.as_str())))
    };
    model_calls::ALWAYS.contains(&method)
        || model_calls::LIKELY.contains(&method) && (!UNCLEAR.contains(&method) || on_model())
        || model_calls::PATHS.iter().any(|p| site.chain.ends_with(p))
}
