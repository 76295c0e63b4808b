//! Effects of the bodies of Python functions.
//!
//! Entry points: [`of_function`], [`of_class`], [`of_call`]. The reader of Python evaluates the body with
//! unknown arguments and gives the calls that it makes. A table says what these do; arguments decide between
//! reading and writing, and who chooses an address.
//!
//! Invariant: a body of which all calls are known has the knowledge [`Knowledge::Known`], whatever the tool's
//! name promises.

use crate::effect::{Effect, Role};
use crate::fact::{Confidence, Evidence, Fact, Knowledge, ToolFacts};
use crate::model_calls::PROGRAMS;
use crate::registry;
use crate::written::{self, Entry};
use diagnostics::Span;
use python::{CallsMade, ClassId, FunctionId, Object, ObjectId, Piece, PyKind, Value, World};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

/// The table of calls as it is written.
struct Written {
    pure: Vec<String>,
    public_hosts: Vec<String>,
    search_hosts: Vec<String>,
    unpicklers: Vec<String>,
    http: Vec<String>,
    get: Vec<String>,
    sql: Vec<String>,
    method: Vec<WrittenCall>,
    chain: Vec<WrittenCall>,
    call: Vec<WrittenCall>,
    sdk: Vec<WrittenSdk>,
}

struct WrittenCall {
    names: Vec<String>,
    effects: Vec<String>,
}

struct WrittenSdk {
    roots: Vec<String>,
    /// The text that the root is given first, where that decides what it is a client of.
    service: Option<String>,
    reads: Vec<String>,
    writes: Vec<String>,
    /// Effects of writing by which others see what is written; without them those of `writes`.
    sends: Option<Vec<String>>,
}

impl Written {
    fn read() -> Result<Written, String> {
        written::read(include_str!("../data/calls.toml"), |file| {
            let call =
                |e: &mut Entry| Ok(WrittenCall { names: e.texts("names")?, effects: e.texts("effects")? });
            let sdk = |e: &mut Entry| {
                Ok(WrittenSdk {
                    roots: e.texts("roots")?,
                    service: e.optional_text("service")?,
                    reads: e.texts("reads")?,
                    writes: e.texts("writes")?,
                    sends: e.optional_texts("sends")?,
                })
            };
            Ok(Written {
                pure: file.texts("pure")?,
                public_hosts: file.texts("public_hosts")?,
                search_hosts: file.texts("search_hosts")?,
                unpicklers: file.texts("unpicklers")?,
                http: file.texts("http")?,
                get: file.texts("get")?,
                sql: file.texts("sql")?,
                method: file.entries("method", call)?,
                chain: file.entries("chain", call)?,
                call: file.entries("call", call)?,
                sdk: file.entries("sdk", sdk)?,
            })
        })
    }
}

/// Effects of the methods of a client.
struct Sdk {
    service: Option<String>,
    reads: Vec<Effect>,
    writes: Vec<Effect>,
    sends: Vec<Effect>,
}

/// The table of calls.
struct Table {
    pure: HashSet<String>,
    public_hosts: Vec<String>,
    search_hosts: Vec<String>,
    unpicklers: HashSet<String>,
    http: HashSet<String>,
    get: HashSet<String>,
    sql: HashSet<String>,
    methods: HashMap<String, Vec<Effect>>,
    chains: HashMap<String, Vec<Effect>>,
    calls: HashMap<String, Vec<Effect>>,
    sdks: HashMap<String, Vec<Sdk>>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        // INVARIANT: the table is part of the program and well-formed (test below).
        let written = Written::read().expect("the table of calls is well-formed");
        let calls = |all: Vec<WrittenCall>| {
            let one = |c: WrittenCall| {
                let effects = registry::effects(&c.effects);
                c.names.into_iter().map(move |n| (n, effects.clone())).collect::<Vec<_>>()
            };
            all.into_iter().flat_map(one).collect::<HashMap<_, _>>()
        };
        let mut sdks: HashMap<String, Vec<Sdk>> = HashMap::new();
        for s in written.sdk {
            for root in &s.roots {
                let (reads, writes) = (registry::effects(&s.reads), registry::effects(&s.writes));
                let sends = s.sends.as_ref().map_or_else(|| writes.clone(), |e| registry::effects(e));
                let sdk = Sdk { service: s.service.clone(), reads, writes, sends };
                sdks.entry(root.clone()).or_default().push(sdk);
            }
        }
        Table {
            pure: written.pure.into_iter().collect(),
            public_hosts: written.public_hosts,
            search_hosts: written.search_hosts,
            unpicklers: written.unpicklers.into_iter().collect(),
            http: written.http.into_iter().collect(),
            get: written.get.into_iter().collect(),
            sql: written.sql.into_iter().collect(),
            methods: calls(written.method),
            chains: calls(written.chain),
            calls: calls(written.call),
            sdks,
        }
    })
}

/// Methods of texts, lists, dictionaries and responses: where the object is not known, they still do nothing
/// that counts here. Those that clients of services have as well, such as `search`, are not among them.
const HARMLESS: &[&str] = &[
    "add",
    "append",
    "as_dict",
    "capitalize",
    "clear",
    "copy",
    "count",
    "date",
    "decode",
    "dict",
    "encode",
    "endswith",
    "extend",
    "find",
    "find_all",
    "format",
    "get",
    "get_text",
    "group",
    "groups",
    "head",
    "index",
    "isalnum",
    "isalpha",
    "isdigit",
    "isoformat",
    "items",
    "join",
    "json",
    "keys",
    "lower",
    "lstrip",
    "match",
    "mean",
    "model_dump",
    "model_dump_json",
    "pop",
    "popitem",
    "raise_for_status",
    "replace",
    "reverse",
    "round",
    "rstrip",
    "setdefault",
    "sort",
    "split",
    "splitlines",
    "startswith",
    "strftime",
    "strip",
    "sum",
    "text",
    "timestamp",
    "title",
    "to_dict",
    "to_json",
    "to_string",
    "total_seconds",
    "upper",
    "update",
    "values",
    "zfill",
];

/// Calls of a chain, such as `client.users().messages()`, that are followed to its beginning.
const MAX_CHAIN: usize = 16;

/// Names under which a class of tools has its body.
const METHODS: &[&str] =
    &["_run", "_arun", "forward", "run", "run_async", "execute", "invoke", "call", "__call__"];

/// Returns what the body of a function does.
pub(crate) fn of_function(world: &mut World<'_>, function: FunctionId) -> ToolFacts {
    let params = parameters(world, function);
    let made = calls(world, function);
    of_calls(world, &made, &params)
}

/// The calls that a function makes; those of a method on an instance that is made of unknown arguments.
pub(crate) fn calls(world: &mut World<'_>, function: FunctionId) -> CallsMade {
    let f = world.function(function);
    let method = f.class.map(|class| (class, f.name.clone()));
    method
        .and_then(|(class, name)| world.calls_of_method(class, &name))
        .unwrap_or_else(|| world.calls_of(function))
}

/// Returns what a call of something outside the project does, if that is known.
pub(crate) fn of_call(world: &World<'_>, id: ObjectId) -> Option<ToolFacts> {
    let object = world.object(id);
    let (effects, confidence) = classify(world, object, &[])?;
    let evidence = Evidence::Call { callee: object.callee.clone(), span: object.span };
    let fact = |effect| Fact { effect, evidence: evidence.clone(), confidence };
    Some(ToolFacts::of(effects.into_iter().map(fact).collect(), Knowledge::Known))
}

/// The fact by which a call brings in text of outsiders, if it does.
pub(crate) fn untrusted(world: &World<'_>, id: ObjectId) -> Option<Fact> {
    let facts = of_call(world, id)?;
    // A request that may send something to an address that is not known is one of a client of a service.
    let may_send = facts.has(Effect::ServiceWrite) && facts.has(Effect::PublicRead);
    facts.role(Role::Untrusted).filter(|_| !may_send).cloned()
}

/// Effects that a program lets an answer of a model have on others. What it keeps in files and databases of
/// its own is its purpose.
const ACTING: &[Effect] = &[
    Effect::Process,
    Effect::Code,
    Effect::MailSend,
    Effect::MessageSend,
    Effect::AccountWrite,
    Effect::Publish,
    Effect::Payment,
];

/// The part of a call that an answer has to decide so that it acts for outsiders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decided {
    /// Anything that the call is given.
    Any,
    /// The file, or the statement: what a program keeps in its own files and databases is its purpose.
    Target,
}

/// The fact by which a call acts, if it does, and what has to be decided. An answer to whoever sent a request
/// is no action.
pub(crate) fn acting(world: &World<'_>, id: ObjectId) -> Option<(Fact, Decided)> {
    let object = world.object(id);
    if answers_request(world, object) || marks_as_read(world, object) {
        return None;
    }
    let mut facts = of_call(world, id)?.facts;
    if !takes_statement(object) {
        facts.retain(|f| f.effect != Effect::DatabaseWrite);
    }
    acts(facts)
}

/// Returns true if the first argument of a call is a statement of SQL, and not a record.
fn takes_statement(object: &Object) -> bool {
    let beginning = object.callee.rsplit_once('.').map_or("", |(root, _)| root);
    let mut roots = std::iter::successors(Some(beginning), |r| r.rsplit_once('.').map(|(root, _)| root));
    roots.any(|root| table().sql.contains(root))
}

/// Returns true if a call only marks a mail as read: `store(number, "+FLAGS", "\\Seen")`,
/// `modify(id=number, body={"removeLabelIds": ["UNREAD"]})`.
fn marks_as_read(world: &World<'_>, object: &Object) -> bool {
    const MAX_VALUES: usize = 64;
    let mut marks = false;
    let mut todo: Vec<&Value> = object.args.iter().map(|a| &a.value).collect();
    for _ in 0..MAX_VALUES {
        let Some(value) = todo.pop() else { break };
        todo.extend(world.items(value).into_iter().flatten());
        todo.extend(world.entries(value).into_iter().flatten().flat_map(|(k, v)| [k, v]));
        match world.str(value).map(|t| t.trim_start_matches(['\\', '(']).trim_end_matches(')')) {
            Some("Seen" | "UNREAD" | "isRead" | "mark_seen") => marks = true,
            // Something else is changed, too.
            Some("Deleted" | "TRASH" | "INBOX" | "SPAM" | "addLabelIds") => return false,
            _ => {}
        }
    }
    marks
}

/// The same of a call by the names that lead to it, where the object is not known.
pub(crate) fn acting_by_name(chain: &str, span: Span) -> Option<(Fact, Decided)> {
    acts(facts_by_name(chain, span))
}

/// The fact by which a call brings in text of outsiders, by the names that lead to it.
pub(crate) fn untrusted_by_name(chain: &str, span: Span) -> Option<Fact> {
    facts_by_name(chain, span).into_iter().find(|f| f.effect.has(Role::Untrusted))
}

fn facts_by_name(chain: &str, span: Span) -> Vec<Fact> {
    let callee: Arc<str> = chain.into();
    let fact = |effect| Fact::likely_call(effect, callee.clone(), span);
    let last = chain.rsplit('.').next().unwrap_or(chain);
    let effects = of_chain(chain).or_else(|| table().methods.get(last).cloned());
    effects.into_iter().flatten().map(fact).collect()
}

fn acts(facts: Vec<Fact>) -> Option<(Fact, Decided)> {
    let decided = |effect| match effect {
        Effect::FileWrite | Effect::DatabaseWrite => Some(Decided::Target),
        effect => ACTING.contains(&effect).then_some(Decided::Any),
    };
    let mut all: Vec<(Fact, Decided)> =
        facts.into_iter().filter_map(|f| decided(f.effect).map(|d| (f, d))).collect();
    let first = all.iter().position(|(_, d)| *d == Decided::Any).unwrap_or(0);
    (!all.is_empty()).then(|| all.swap_remove(first))
}

/// Returns what a method of an object does that a tool is made of: `Tool(func=search.run)`.
pub(crate) fn of_member(world: &World<'_>, on: ObjectId, method: &str, span: Span) -> Option<ToolFacts> {
    let callee: Arc<str> = format!("{}.{method}", world.object(on).callee).into();
    let effects = match table().calls.get(&*callee) {
        Some(effects) => effects.clone(),
        None => registry::tool(&world.object(on).callee)?.effects.clone(),
    };
    let fact = |effect| Fact {
        effect,
        evidence: Evidence::Call { callee: callee.clone(), span },
        confidence: Confidence::Sure,
    };
    Some(ToolFacts::of(effects.into_iter().map(fact).collect(), Knowledge::Known))
}

/// Returns what the methods of a class of tools do; `None` if it has none. An instance, if it is known, has
/// what the program gave it.
pub(crate) fn of_class(world: &mut World<'_>, class: ClassId, this: Option<ObjectId>) -> Option<ToolFacts> {
    let mut out: Option<ToolFacts> = None;
    for method in METHODS {
        let own = world.class_lookup(class, method).and_then(|(v, _)| match v.kind {
            PyKind::Function(f) => Some(f),
            _ => None,
        });
        let Some(function) = own else { continue };
        let params = parameters(world, function);
        let made = match this {
            Some(this) => Some(world.calls_of_bound(this, function)),
            None => world.calls_of_method(class, method),
        };
        let Some(made) = made else { continue };
        let facts = of_calls(world, &made, &params);
        match &mut out {
            None => out = Some(facts),
            Some(all) => all.join(facts),
        }
    }
    out
}

/// Places of a function's parameters, which are those of the unknown values that represent the arguments.
fn parameters(world: &World<'_>, function: FunctionId) -> Vec<Span> {
    world.function(function).own_params().iter().map(|p| p.span).collect()
}

fn of_calls(world: &World<'_>, made: &CallsMade, params: &[Span]) -> ToolFacts {
    let mut out = ToolFacts::of(Vec::new(), Knowledge::Known);
    let add = |out: &mut ToolFacts, effects: Vec<Effect>, callee: Arc<str>, span, confidence| {
        for effect in effects {
            out.add(Fact { effect, evidence: Evidence::Call { callee: callee.clone(), span }, confidence });
        }
    };
    for id in &made.objects {
        let object = world.object(*id);
        if object.class.is_some() {
            continue;
        }
        match classify(world, object, params) {
            Some((effects, confidence)) => {
                add(&mut out, effects, object.callee.clone(), object.span, confidence);
            }
            // Of an object that is not known, the way to the method may tell the service.
            None => match of_chain(&object.callee) {
                Some(effects) => {
                    add(&mut out, effects, object.callee.clone(), object.span, Confidence::Likely)
                }
                None => out.unknown_calls.push((object.callee.clone(), object.span)),
            },
        }
    }
    for (chain, span) in &made.unresolved {
        let Some(chain) = chain else { continue };
        let name: Arc<str> = chain.rsplit('.').next().unwrap_or(chain).into();
        if let Some(effects) = of_chain(chain) {
            add(&mut out, effects, chain.clone(), *span, Confidence::Likely);
            continue;
        }
        match table().methods.get(&*name) {
            Some(effects) => add(&mut out, effects.clone(), name.clone(), *span, Confidence::Likely),
            None if HARMLESS.contains(&&*name) => {}
            None => out.unknown_calls.push((name.clone(), *span)),
        }
    }
    if !out.unknown_calls.is_empty() || made.cut {
        out.knowledge = out.in_part();
    }
    out
}

/// Effects of a call by the names that lead to it, where the object that they begin at is not known:
/// `users.messages.send` of Gmail's client, and what is done with its result.
fn of_chain(callee: &str) -> Option<Vec<Effect>> {
    let parts: Vec<&str> = callee.split('.').collect();
    (0..parts.len()).find_map(|from| {
        let after = (from + 1..=parts.len()).rev();
        after.into_iter().find_map(|to| {
            let effects = table().chains.get(&parts[from..to].join("."))?;
            // What is done with the result of a call does nothing more.
            Some(if to == parts.len() { effects.clone() } else { Vec::new() })
        })
    })
}

/// Returns true if a call is a method of data that a call gave: `client.get_item(…).get("Item")`.
fn is_of_result(world: &World<'_>, object: &Object) -> bool {
    let Some(base) = object.base.map(|b| world.object(b)) else { return false };
    let verb =
        base.short() == "execute" || base.short() == "json" || registry::is_read(base.short()).is_some();
    verb && base.base.is_some() && HARMLESS.contains(&object.short())
}

/// Returns what a call does; `None` if that is not known.
fn classify(world: &World<'_>, object: &Object, params: &[Span]) -> Option<(Vec<Effect>, Confidence)> {
    let table = table();
    let callee = object.callee.trim_end_matches("[]");
    let sure = |effects: Vec<Effect>| Some((effects, Confidence::Sure));
    if callee == "builtins.open" || callee.ends_with("pathlib.Path.open") {
        return sure(opened(world, object, params));
    }
    if table.unpicklers.contains(callee)
        && object.args.first().is_some_and(|a| is_own_file(world, &a.value, params))
    {
        return sure(Vec::new());
    }
    if let Some(effects) = table.calls.get(callee) {
        if effects[..] == [Effect::Process] && starts_one_program(world, object, params) {
            return of_command(world, object).map(|effects| (effects, Confidence::Sure));
        }
        // `uid("fetch", …)` of IMAP.
        if callee.ends_with(".uid")
            && let Some(command) = object.args.first().and_then(|a| world.str(&a.value))
        {
            let reads =
                matches!(command.to_ascii_lowercase().as_str(), "fetch" | "search" | "sort" | "thread");
            return sure(vec![if reads { Effect::MailRead } else { Effect::AccountWrite }]);
        }
        if matches!(effects[..], [Effect::MailSend | Effect::MessageSend])
            && has_fixed_recipients(world, object, params)
        {
            return sure(vec![Effect::ServiceWrite]);
        }
        if RUNS_CODE.contains(&callee) && has_no_builtins(world, object) {
            return sure(vec![Effect::ConfinedCode]);
        }
        let no_file = || is_settings(world, object, params) || is_of_memory(world, object);
        if effects[..] == [Effect::FileRead] && no_file() {
            return sure(Vec::new());
        }
        if effects[..] == [Effect::FileWrite] && changes_temporary(world, object) {
            return sure(Vec::new());
        }
        // A folder of the program's own.
        if MAKES_FOLDER.contains(&callee) && !is_chosen(world, object, params) {
            return sure(Vec::new());
        }
        return sure(effects.clone());
    }
    if table.get.contains(callee) {
        return sure(gets(world, object, object.arg_at(0, "url").map(|a| &a.value), params));
    }
    let parts: Vec<&str> = callee.split('.').collect();
    let method = parts.last().copied().unwrap_or_default();
    for end in (1..parts.len()).rev() {
        let root = parts[..end].join(".");
        if table.http.contains(&root) && end + 1 == parts.len() {
            match method {
                "get" | "head" | "options" | "stream" | "ws_connect" => {
                    let at = usize::from(method == "stream");
                    let url = object.arg_at(at, "url").map(|a| &a.value);
                    return sure(gets(world, object, url, params));
                }
                "post" | "put" | "patch" | "delete" => {
                    let url = object.arg_at(0, "url").map(|a| &a.value);
                    return sure(sends(world, object, url, params));
                }
                "request" | "send" => {
                    let url = object.arg_at(1, "url").map(|a| &a.value);
                    let verb = object.arg_at(0, "method").and_then(|a| world.str(&a.value));
                    let effects = match verb.map(str::to_ascii_uppercase).as_deref() {
                        Some("GET" | "HEAD" | "OPTIONS") => gets(world, object, url, params),
                        _ => [gets(world, object, url, params), sends(world, object, url, params)].concat(),
                    };
                    return sure(effects);
                }
                _ => {}
            }
        }
        if table.sql.contains(&root)
            && matches!(
                method,
                "execute"
                    | "executemany"
                    | "executescript"
                    | "query"
                    | "sql"
                    | "fetch"
                    | "fetchrow"
                    | "fetchval"
                    | "scalars"
                    | "scalar"
                    | "exec"
                    | "exec_driver_sql"
            )
        {
            return sure(asked_in_sql(world, object, method, params));
        }
        if let Some(sdk) = table.sdks.get(&root).and_then(|all| of_service(world, object, &root, all))
            && end < parts.len()
        {
            if is_of_result(world, object) {
                return sure(Vec::new());
            }
            // Whoever is invited gets what is in the invitation.
            if registry::is_read(method) != Some(true) && invites(world, object, params) {
                return sure([&sdk.writes[..], &[Effect::MailSend]].concat());
            }
            if registry::sends(method) && has_fixed_recipients(world, object, params) {
                return sure(vec![Effect::ServiceWrite]);
            }
            return Some(match registry::is_read(method) {
                Some(true) => (sdk.reads.clone(), Confidence::Sure),
                // `service.messages().send(…).execute()` does what was prepared.
                Some(false) if method == "execute" && end + 1 < parts.len() => (Vec::new(), Confidence::Sure),
                Some(false) if registry::sends(method) => (sdk.sends.clone(), Confidence::Sure),
                Some(false) => (sdk.writes.clone(), Confidence::Sure),
                // A step on the way to a method: `client.chat`.
                None => (Vec::new(), Confidence::Likely),
            });
        }
    }
    let known = (1..=parts.len()).any(|end| table.pure.contains(&parts[..end].join(".")));
    let made = table.http.contains(callee) || table.sql.contains(callee) || table.sdks.contains_key(callee);
    let makes = |names: &HashMap<String, Vec<Effect>>| {
        names.keys().any(|n| n.strip_prefix(callee).is_some_and(|rest| rest.starts_with('.')))
    };
    if known || made || makes(&table.calls) {
        return sure(Vec::new());
    }
    // A tool of a framework that the body calls: `DuckDuckGoSearchRun().run(query)`.
    if let Some(documented) = registry::tool(callee) {
        let runs = object.base.is_none() && !method.starts_with(|c: char| c.is_ascii_uppercase());
        return sure(if runs { documented.effects.clone() } else { Vec::new() });
    }
    // What is done with the result of a known call: `requests.get(…).json()`.
    let base = object.base.map(|b| world.object(b))?;
    if RUNS_TOOL.contains(&method)
        && let Some(documented) = registry::tool(&base.callee)
    {
        return sure(documented.effects.clone());
    }
    classify(world, base, params).map(|_| (Vec::new(), Confidence::Sure))
}

/// Calls whose second argument is the file that they write.
const COPIES: &[&str] = &["copy", "copy2", "copyfile", "copytree", "move", "rename", "replace"];

/// Returns true if the file that a call changes is a temporary one: `os.unlink(file.name)`.
fn changes_temporary(world: &World<'_>, object: &Object) -> bool {
    let copies = COPIES.contains(&object.short());
    let changed = match (object.base, copies) {
        (Some(base), false) => return is_temporary(world, &Value::new(PyKind::Object(base), object.span)),
        (Some(_), true) => object.args.first(),
        (None, _) => object.args.get(usize::from(copies)),
    };
    changed.is_some_and(|a| is_temporary(world, &a.value))
}

/// Returns true if a value is the path of a temporary file or folder that the program makes, or a path in
/// such a folder.
fn is_temporary(world: &World<'_>, value: &Value) -> bool {
    const MAX_VALUES: usize = 64;
    let mut todo: Vec<Value> = vec![value.clone()];
    for _ in 0..MAX_VALUES {
        let Some(value) = todo.pop() else { return false };
        match &value.kind {
            PyKind::Object(id) | PyKind::Member(id, _) => {
                let object = world.object(*id);
                if object.package() == "tempfile" {
                    return true;
                }
                todo.extend(object.args.first().map(|a| a.value.clone()));
                todo.extend(object.base.map(|b| Value::new(PyKind::Object(b), object.span)));
            }
            // The beginning of a path says where it is.
            PyKind::Text(_) => match world.text_of(&value).unwrap_or_default().into_iter().next() {
                Some(Piece::Hole(hole, _)) => todo.push(hole),
                _ => return false,
            },
            PyKind::Either(id) => {
                let all = &world.list(*id).items;
                return !all.is_empty()
                    && all.iter().filter(|v| !v.is_none()).all(|v| match v.kind {
                        PyKind::Either(_) => false,
                        _ => is_temporary(world, v),
                    });
            }
            _ => return false,
        }
    }
    false
}

/// Calls that run a text as code, with the names that they are given.
const RUNS_CODE: &[&str] = &["builtins.exec", "builtins.eval"];

/// Returns true if code that a call runs has no built-in functions, so neither `open` nor `import`:
/// `eval(text, {"__builtins__": {}})`.
fn has_no_builtins(world: &World<'_>, object: &Object) -> bool {
    let names = object.arg_at(1, "globals").and_then(|a| world.entries(&a.value)).unwrap_or(&[]);
    let builtins = names.iter().find(|(key, _)| key.as_str() == Some("__builtins__")).map(|(_, v)| v);
    builtins.is_some_and(|v| v.is_none() || has_only_safe_names(world, v))
}

/// Returns true if all names of a dictionary are known and none of them leads to files, modules or other
/// code.
fn has_only_safe_names(world: &World<'_>, value: &Value) -> bool {
    const LEAD_OUT: &[&str] = &["__import__", "breakpoint", "compile", "eval", "exec", "input", "open"];
    let PyKind::Dict(id) = world.resolve_env(value).kind else { return false };
    let dict = world.dict(id);
    let is_safe = |key: &Value| key.as_str().is_some_and(|name| !LEAD_OUT.contains(&name));
    dict.open.is_none() && dict.entries.iter().all(|(key, _)| is_safe(key))
}

/// Calls that make a folder.
const MAKES_FOLDER: &[&str] = &["os.makedirs", "os.mkdir", "pathlib.Path.mkdir"];

/// Returns true if an argument of a call, or what it is a method of, is made of the tool's parameters.
fn is_chosen(world: &World<'_>, object: &Object, params: &[Span]) -> bool {
    let base = object.base.map(|b| Value::new(PyKind::Object(b), object.span));
    object.args.iter().map(|a| &a.value).chain(&base).any(|v| is_made_of(world, v, params))
}

/// Returns true if a value is made of the tool's parameters.
fn is_made_of(world: &World<'_>, value: &Value, params: &[Span]) -> bool {
    const MAX_VALUES: usize = 64;
    let mut todo: Vec<Value> = vec![value.clone()];
    for _ in 0..MAX_VALUES {
        let Some(value) = todo.pop() else { return false };
        if value.is_default || params.contains(&value.span) {
            return true;
        }
        match &value.kind {
            PyKind::Object(id) | PyKind::Member(id, _) => {
                let object = world.object(*id);
                todo.extend(object.args.iter().map(|a| a.value.clone()));
                todo.extend(object.base.map(|b| Value::new(PyKind::Object(b), object.span)));
            }
            PyKind::Text(_) => {
                todo.extend(world.text_of(&value).unwrap_or_default().into_iter().filter_map(|p| match p {
                    Piece::Hole(hole, _) => Some(hole),
                    Piece::Text(_) => None,
                }));
            }
            PyKind::List(id) | PyKind::Either(id) => todo.extend(world.list(*id).items.iter().cloned()),
            // It may be computed of anything.
            PyKind::Unknown(_) => return true,
            _ => {}
        }
    }
    true
}

/// Methods by which a body calls a tool of a framework.
const RUNS_TOOL: &[&str] = &[
    "__call__",
    "run",
    "arun",
    "_run",
    "_arun",
    "invoke",
    "ainvoke",
    "call",
    "forward",
    "execute",
    "results",
    "load",
    "aload",
    "lazy_load",
    "load_data",
];

/// The client among those with this root that a call is made on, as the text says that the root is given.
fn of_service<'t>(world: &World<'_>, object: &Object, root: &str, all: &'t [Sdk]) -> Option<&'t Sdk> {
    let bases = std::iter::successors(Some(object), |o| o.base.map(|b| world.object(b)));
    let made = bases.take(MAX_CHAIN).find(|o| *o.callee == *root);
    let service = made.and_then(|o| world.str(&o.args.first()?.value));
    let named = all.iter().find(|s| s.service.is_some() && s.service.as_deref() == service);
    named.or_else(|| all.iter().find(|s| s.service.is_none()))
}

/// The party that chooses the address of a request.
enum Address {
    /// The service at this host, or at one that the environment names, whatever the arguments are.
    Fixed(String),
    /// Whoever calls the tool.
    Caller,
    /// A value that is not known.
    Unknown,
}

fn address(world: &World<'_>, object: &Object, url: Option<&Value>, params: &[Span]) -> Address {
    let Some(url) = url else { return Address::Unknown };
    if url.is_default {
        return Address::Caller;
    }
    match world.text_of(url).as_deref() {
        Some([Piece::Text(first), rest @ ..]) => match first.split_once("://") {
            Some((_, after)) if rest.is_empty() || after.contains(['/', '?', '#']) => {
                let host = after.split(['/', '?', '#']).next().unwrap_or(after);
                Address::Fixed(host.to_string())
            }
            Some(_) => Address::Caller,
            // Relative to the address of the client.
            None => match object.base.map(|b| world.object(b)).and_then(|b| b.arg("base_url")) {
                Some(base) => address(world, object, Some(&base.value), params),
                None => Address::Unknown,
            },
        },
        // Whoever runs the program chooses the service.
        Some([Piece::Hole(value, _), ..]) if matches!(value.kind, PyKind::Env(_)) => {
            Address::Fixed(String::new())
        }
        // An address that the program adds its own path to is that of a service.
        Some([Piece::Hole(value, _), Piece::Text(path), ..]) if path.starts_with(['/', ':']) => {
            match of_value(value, params) {
                Address::Unknown => Address::Fixed(String::new()),
                other => other,
            }
        }
        Some([Piece::Hole(value, _), ..]) => of_value(value, params),
        _ => of_value(url, params),
    }
}

/// A value whose text is not known: an argument, a default of one, or something else.
fn of_value(value: &Value, params: &[Span]) -> Address {
    if value.is_default || params.contains(&value.span) { Address::Caller } else { Address::Unknown }
}

fn gets(world: &World<'_>, object: &Object, url: Option<&Value>, params: &[Span]) -> Vec<Effect> {
    match address(world, object, url, params) {
        Address::Fixed(host) if is_public(&host) || is_below(&host, &table().search_hosts) => {
            vec![Effect::PublicRead]
        }
        Address::Fixed(_) => vec![Effect::ServiceRead],
        Address::Caller => vec![Effect::PublicRead, Effect::AddressRequest],
        Address::Unknown => vec![Effect::PublicRead],
    }
}

fn sends(world: &World<'_>, object: &Object, url: Option<&Value>, params: &[Span]) -> Vec<Effect> {
    match address(world, object, url, params) {
        Address::Fixed(host) if is_below(&host, &table().search_hosts) => vec![Effect::PublicRead],
        Address::Fixed(host) if is_public(&host) => vec![Effect::Publish],
        Address::Fixed(_) | Address::Unknown => vec![Effect::ServiceWrite],
        Address::Caller => vec![Effect::AddressRequest, Effect::ServiceWrite],
    }
}

/// The host of an address, if the text fixes it: `api.example.org` of `https://api.example.org/{city}`.
pub(crate) fn fixed_host(url: &str) -> Option<&str> {
    let (_, after) = url.split_once("://")?;
    let host = after.split(['/', '?', '#']).next()?;
    (!host.is_empty() && !host.contains(['{', '$', '<'])).then_some(host)
}

pub(crate) fn is_public(host: &str) -> bool {
    is_below(host, &table().public_hosts)
}

/// Returns true if a host is one of these, or a part of one.
fn is_below(host: &str, hosts: &[String]) -> bool {
    let host = host.rsplit('@').next().unwrap_or(host).split(':').next().unwrap_or(host);
    let below = |h: &String| host.strip_suffix(h.as_str()).is_some_and(|r| r.is_empty() || r.ends_with('.'));
    hosts.iter().any(below)
}

/// Effects of opening a file: the mode decides.
fn opened(world: &World<'_>, object: &Object, params: &[Span]) -> Vec<Effect> {
    let method = object.base.is_some();
    let mode = object.arg_at(usize::from(!method), "mode").and_then(|a| world.str(&a.value)).unwrap_or("r");
    let path = object.arg_at(0, "file").filter(|_| !method).map(|a| &a.value);
    if path.is_some_and(|p| is_temporary(world, p)) || method && changes_temporary(world, object) {
        return Vec::new();
    }
    let writes = mode.contains(['w', 'a', 'x', '+']);
    if !writes {
        return if is_settings(world, object, params) { Vec::new() } else { vec![Effect::FileRead] };
    }
    // A file of the program's own keeps what is written to it, and is no other file.
    let own = |v: &Value| {
        let named = file_name(world, v, params, 0).is_some();
        is_fixed(world, v, params) || named && !is_made_of(world, v, params)
    };
    let fixed = !method && object.arg_at(0, "file").is_some_and(|a| own(&a.value));
    let write = if fixed { Effect::MemoryWrite } else { Effect::FileWrite };
    if mode.contains(['r', '+']) { vec![Effect::FileRead, write] } else { vec![write] }
}

/// A text that the program writes out.
fn is_fixed(world: &World<'_>, value: &Value, params: &[Span]) -> bool {
    world.str(value).is_some() && !value.is_default && !params.contains(&value.span)
}

/// A file with a name that the program writes out, by its name or open.
fn is_own_file(world: &World<'_>, value: &Value, params: &[Span]) -> bool {
    match value.kind {
        PyKind::Object(id) => {
            let opened = world.object(id);
            let named = opened.arg_at(0, "file").is_some_and(|a| is_fixed(world, &a.value, params));
            &*opened.callee == "builtins.open" && named
        }
        _ => is_fixed(world, value, params),
    }
}

/// Effects of a statement of SQL: its first word decides, if it is known.
fn asked_in_sql(world: &World<'_>, object: &Object, method: &str, params: &[Span]) -> Vec<Effect> {
    let Some(given) = object.args.first() else { return vec![Effect::DatabaseRead] };
    let mut value = &given.value;
    // A script of the program's own lays out its tables.
    if method == "executescript" && !value.is_default && !params.contains(&value.span) {
        return Vec::new();
    }
    // `text("SELECT …")` of SQLAlchemy.
    if let PyKind::Object(id) = value.kind
        && let Some(inner) = world.object(id).args.first()
    {
        value = &inner.value;
    }
    let first = match world.text_of(value).as_deref() {
        Some([Piece::Text(text), ..]) => text.split_whitespace().next().map(str::to_ascii_uppercase),
        _ => None,
    };
    match first.as_deref() {
        Some("SELECT" | "SHOW" | "DESCRIBE" | "EXPLAIN" | "PRAGMA" | "MATCH" | "VALUES") => {
            vec![Effect::DatabaseRead]
        }
        // A table that is made if it is not there is the program's own.
        Some("CREATE") if is_fixed(world, value, params) => Vec::new(),
        Some(
            "INSERT" | "UPDATE" | "DELETE" | "DROP" | "ALTER" | "CREATE" | "TRUNCATE" | "REPLACE" | "MERGE"
            | "GRANT" | "UPSERT",
        ) => vec![Effect::DatabaseWrite],
        _ => vec![Effect::DatabaseRead, Effect::DatabaseWrite],
    }
}

/// Programs that run, or fetch, what their arguments say.
const INTERPRETERS: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "cmd",
    "cmd.exe",
    "powershell",
    "pwsh",
    "python",
    "python3",
    "node",
    "deno",
    "ruby",
    "perl",
    "php",
    "npx",
    "npm",
    "pip",
    "pip3",
    "uv",
    "uvx",
    "docker",
    "podman",
    "kubectl",
    "ssh",
    "sudo",
    "env",
    "xargs",
    "osascript",
    "terraform",
    "make",
    "curl",
    "wget",
];

/// Options, first of all, with which an interpreter looks at the syntax of a file and does not run it.
const CHECKS: &[(&str, &str)] = &[
    ("node", "--check"),
    ("node", "-c"),
    ("bash", "-n"),
    ("sh", "-n"),
    ("ruby", "-c"),
    ("perl", "-c"),
    ("php", "-l"),
];

/// Returns true if a call starts a program that is written out, or that the program has found, with arguments
/// in a list: `subprocess.run(["ffmpeg", "-i", path])`. What that program does is not known.
fn starts_one_program(world: &World<'_>, object: &Object, params: &[Span]) -> bool {
    let in_shell = object.arg("shell").is_some_and(|a| !matches!(a.value.kind, PyKind::Bool(false)));
    let Some(first) = object.arg_at(0, "args").and_then(|a| world.items(&a.value)?.first()) else {
        return false;
    };
    if in_shell || first.is_default || params.contains(&first.span) {
        return false;
    }
    match world.str(first) {
        Some(program) => {
            let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
            let option = object.arg_at(0, "args").and_then(|a| world.str(world.items(&a.value)?.get(1)?));
            let checks = CHECKS.iter().any(|(n, o)| *n == name && option == Some(o));
            !INTERPRETERS.contains(&name) || checks
        }
        None => world.name_of(first).is_none_or(|n| &*n != "sys.executable"),
    }
}

/// Effects of a program that is written out with what it is to do: `["gh", "issue", "comment", number]`.
fn of_command(world: &World<'_>, object: &Object) -> Option<Vec<Effect>> {
    let words = world.items(&object.arg_at(0, "args")?.value)?;
    let word = |i: usize| words.get(i).and_then(|w| world.str(w));
    let has = |any: &[&str]| words.iter().filter_map(|w| world.str(w)).any(|w| any.contains(&w));
    match (word(0)?, word(1)?, word(2)) {
        ("gh", "issue" | "pr" | "release" | "discussion", Some(verb)) => match verb {
            "view" | "list" | "diff" | "status" => Some(vec![Effect::PublicRead]),
            "comment" | "create" | "edit" | "close" | "reopen" | "merge" | "review" | "delete" | "upload" => {
                Some(vec![Effect::Publish])
            }
            _ => None,
        },
        ("gh", "api", _) => {
            let sends =
                has(&["POST", "PATCH", "PUT", "DELETE", "-f", "-F", "--field", "--raw-field", "--input"]);
            Some(vec![if sends { Effect::Publish } else { Effect::PublicRead }])
        }
        ("git", "push", _) => Some(vec![Effect::Publish]),
        _ => None,
    }
}

/// Returns true if a call starts a program that asks a model: `subprocess.run(["claude", "-p", prompt])`.
pub(crate) fn starts_model(world: &World<'_>, object: &Object) -> bool {
    let starts = table().calls.get(&*object.callee).is_some_and(|e| e[..] == [Effect::Process]);
    let first = || world.items(&object.arg_at(0, "args")?.value)?.first().and_then(|w| world.str(w));
    let name = |program: &str| program.rsplit(['/', '\\']).next().unwrap_or(program).to_string();
    starts && first().is_some_and(|p| PROGRAMS.contains(&name(p).as_str()))
}

/// Variables of the environment with the path of a file that says what started the program.
const EVENT_FILES: &[&str] = &["GITHUB_EVENT_PATH"];

/// Returns true if a call opens the file that says what started the program, such as an issue of anyone.
pub(crate) fn opens_event(world: &World<'_>, object: &Object) -> bool {
    let opens = matches!(&*object.callee, "builtins.open" | "pathlib.Path");
    let path = object.args.first().map(|a| &a.value);
    let env = |v: &Value| match v.kind {
        PyKind::Env(id) => world.env(id).name.clone(),
        _ => None,
    };
    opens && path.and_then(env).is_some_and(|name| EVENT_FILES.contains(&&*name))
}

/// Keys and arguments that say who gets a mail or a message.
const RECIPIENTS: &[&str] =
    &["to", "To", "to_addrs", "to_emails", "recipients", "recipient", "channel", "channel_id", "chat_id"];

/// Returns true if a mail or a message goes to those that the program or its settings write out:
/// `sendmail(from, ["me@example.org"], text)`, `message["To"] = os.environ["TEAM"]`.
fn has_fixed_recipients(world: &World<'_>, object: &Object, params: &[Span]) -> bool {
    let fixed = |v: &Value| match v.kind {
        PyKind::Env(_) => true,
        _ => is_fixed(world, v, params),
    };
    let all_fixed = |to: &Value| match world.items(to) {
        Some(items) => !items.is_empty() && items.iter().all(fixed),
        None => fixed(to),
    };
    let by_position = (object.short() == "sendmail").then(|| object.arg_at(1, "to_addrs")).flatten();
    let by_name = RECIPIENTS.iter().find_map(|key| object.arg(key));
    if let Some(to) = by_position.or(by_name) {
        return all_fixed(&to.value);
    }
    // What is sent says it: a dictionary, or a message with headers.
    object.args.iter().any(|given| {
        let in_dict = world.entries(&given.value).and_then(|all| {
            all.iter().find(|(k, _)| k.as_str().is_some_and(|k| RECIPIENTS.contains(&k))).map(|(_, v)| v)
        });
        let headers = world.object_of(&given.value).map(|(_, message)| &message.calls);
        let in_header = headers.into_iter().flatten().rev().find_map(|call| {
            let set = world.object(call.result);
            let [key, to] = &set.args[..] else { return None };
            (&*call.name == "__setitem__" && key.value.as_str() == Some("To")).then_some(&to.value)
        });
        in_dict.or(in_header).is_some_and(all_fixed)
    })
}

/// The request that a web framework handles, where it is a name of the framework.
pub(crate) const REQUESTS: &[&str] = &["bottle.request", "flask.request", "quart.request", "sanic.request"];

/// Returns true if a message goes to an address that the request in hand says:
/// `messages.create(body=answer, to=request.form["From"])`.
fn answers_request(world: &World<'_>, object: &Object) -> bool {
    let Some(to) = RECIPIENTS.iter().find_map(|key| object.arg(key)) else { return false };
    let mut at = to.value.clone();
    for _ in 0..MAX_CHAIN {
        if world.name_of(&at).is_some_and(|name| {
            REQUESTS
                .iter()
                .any(|r| name.strip_prefix(r).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
        }) {
            return true;
        }
        let (PyKind::Object(id) | PyKind::Member(id, _)) = at.kind else { return false };
        let object = world.object(id);
        if REQUESTS.iter().any(|r| object.callee.starts_with(r)) {
            return true;
        }
        // `normalize(request.form["From"])`, a function of the program.
        let next = object.base.map(|b| Value::new(PyKind::Object(b), at.span));
        let Some(next) = next.or_else(|| object.args.first().map(|a| a.value.clone())) else { return false };
        at = next;
    }
    false
}

/// Returns true if guests of an event are among the arguments, and not only those that the program writes
/// out.
fn invites(world: &World<'_>, object: &Object, params: &[Span]) -> bool {
    let guests = |value: &Value| {
        let all = world.entries(value)?;
        all.iter().find(|(k, _)| k.as_str() == Some("attendees")).map(|(_, v)| v.clone())
    };
    let fixed = |v: &Value| {
        let one = world.entries(v).and_then(|e| e.first()).map(|(_, v)| v);
        is_fixed(world, one.unwrap_or(v), params)
    };
    object.args.iter().filter_map(|a| guests(&a.value)).any(|to| match world.items(&to) {
        Some(items) => items.is_empty() || !items.iter().all(fixed),
        None => !fixed(&to),
    })
}

/// Ends of the names of files that hold settings, instructions or keys of the program itself.
const SETTINGS: &[&str] =
    &[".yaml", ".yml", ".toml", ".ini", ".cfg", ".env", ".pickle", ".pkl", ".jinja", ".j2", ".prompt"];
/// Words of the names of such files.
const SETTINGS_WORDS: &[&str] = &[
    "config",
    "configuration",
    "credentials",
    "instruction",
    "instructions",
    "prompt",
    "prompts",
    "schema",
    "secrets",
    "settings",
    "system",
    "template",
    "token",
    "tokens",
];

/// Returns true if a file that is read is named by the program and holds settings by its name: what it says
/// is no data of users.
fn is_settings(world: &World<'_>, object: &Object, params: &[Span]) -> bool {
    let path = object.args.first().map(|a| &a.value).or_else(|| {
        let base = world.object(object.base?);
        base.args.last().map(|a| &a.value)
    });
    if path.is_some_and(|p| has_digest_name(world, p)) {
        return true;
    }
    let named = object.args.first().and_then(|a| file_name(world, &a.value, params, 0)).or_else(|| {
        let base = world.object(object.base?);
        file_name(world, &base.args.last()?.value, params, 0)
    });
    let Some(name) = named else { return false };
    let name = name.to_ascii_lowercase();
    SETTINGS.iter().any(|end| name.ends_with(end))
        || crate::words::words(&name, 200).iter().any(|w| SETTINGS_WORDS.contains(&w.as_str()))
}

/// Returns true if a call reads bytes that the program has, and no file: `fitz.open(stream=page)`,
/// `PdfReader(io.BytesIO(page))`.
fn is_of_memory(world: &World<'_>, object: &Object) -> bool {
    let made = |v: &Value| {
        let made = world.object_of(v).map(|(_, o)| o);
        made.is_some_and(|o| matches!(&*o.callee, "io.BytesIO" | "io.StringIO"))
    };
    let opened = |o: &Object| o.arg("stream").is_some() || o.args.first().is_some_and(|a| made(&a.value));
    // An item of what is opened is read of it.
    std::iter::successors(Some(object), |o| o.base.map(|b| world.object(b))).take(MAX_CHAIN).any(opened)
}

/// Returns true if the last part of a path is named by a digest: what the program keeps under it is its own,
/// and nobody selects another file by what is digested.
fn has_digest_name(world: &World<'_>, path: &Value) -> bool {
    let is_digest = |v: &Value| {
        let first = world.object_of(v).map(|(_, o)| o);
        let mut chain = std::iter::successors(first, |o| o.base.map(|b| world.object(b))).take(MAX_CHAIN);
        chain.any(|o| o.callee.starts_with("hashlib."))
    };
    let last = match world.object_of(path) {
        Some((_, object)) if !is_digest(path) => object.args.last().map(|a| &a.value),
        _ => Some(path),
    };
    let Some(last) = last else { return false };
    is_digest(last)
        || world.text_of(last).is_some_and(|pieces| {
            let name = pieces.iter().rev().take_while(|p| !matches!(p, Piece::Text(t) if t.contains('/')));
            let digests = name.filter(|p| matches!(p, Piece::Hole(v, _) if is_digest(v)));
            digests.count() > 0
        })
}

/// The last part of the name of a file, if the program writes it out: `a.yaml` of
/// `os.path.join(FOLDER, "a.yaml")`.
fn file_name(world: &World<'_>, value: &Value, params: &[Span], depth: usize) -> Option<String> {
    const MAX_DEPTH: usize = 4;
    if depth > MAX_DEPTH || value.is_default || params.contains(&value.span) {
        return None;
    }
    if let Some((_, object)) = world.object_of(value) {
        let joins =
            matches!(object.short(), "join" | "Path" | "joinpath" | "PurePath" | "resolve" | "abspath" | "/");
        return joins.then(|| file_name(world, &object.args.last()?.value, params, depth + 1)).flatten();
    }
    let pieces = world.text_of(value)?;
    if pieces.iter().any(|p| matches!(p, Piece::Hole(v, _) if v.is_default || params.contains(&v.span))) {
        return None;
    }
    match pieces.last()? {
        Piece::Text(text) => text.rsplit(['/', '\\']).next().map(str::to_string),
        Piece::Hole(..) => None,
    }
}

/// Name of the file that a call opens, reads or writes, if the program writes it out in full.
pub(crate) fn own_file(world: &World<'_>, object: &Object) -> Option<String> {
    let path = match &*object.callee {
        "builtins.open" | "io.open" | "aiofiles.open" | "codecs.open" => {
            object.arg_at(0, "file")?.value.clone()
        }
        callee if callee.starts_with("pathlib.Path") && FILE_METHODS.contains(&object.short()) => {
            Value::new(PyKind::Object(object.base?), object.span)
        }
        _ => return None,
    };
    let name = file_name(world, &path, &[], 0)?;
    // `f"{number}.json"` names many files.
    let is_whole = match world.text_of(&path).as_deref() {
        Some([Piece::Hole(..), .., Piece::Text(end)]) => end.contains(['/', '\\']),
        _ => true,
    };
    (is_whole && !name.is_empty()).then_some(name)
}

/// Methods of a path that open, read or write its file.
const FILE_METHODS: &[&str] = &["open", "read_text", "read_bytes", "write_text", "write_bytes"];

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostics::FileId;
    use python::{Limits, Sources};

    fn facts(text: &str) -> ToolFacts {
        let mut sources = Sources::new();
        let main = sources.add(FileId(0), "m.py", text.into());
        let mut world = World::new(&sources, Limits::default());
        world.run(main);
        world.explore(main);
        let f = world.functions().find(|(_, f)| &*f.name == "tool").unwrap().0;
        of_function(&mut world, f)
    }

    #[track_caller]
    fn check(text: &str, knowledge: Knowledge, expected: &[Effect]) {
        let facts = facts(text);
        let mut found: Vec<Effect> = facts.facts.iter().map(|f| f.effect).collect();
        found.sort();
        assert_eq!((found.as_slice(), facts.knowledge), (expected, knowledge), "{text}\n{facts:?}");
    }

    #[test]
    fn the_table_is_well_formed() {
        assert!(table().calls.len() > 100);
        assert!(table().calls.values().chain(table().methods.values()).all(|e| !e.is_empty()));
    }

    #[test]
    fn who_chooses_the_address_decides() {
        use Effect::*;
        let known = Knowledge::Known;
        check(
            "import requests\ndef tool(url):\n    return requests.get(url).text",
            known,
            &[PublicRead, AddressRequest],
        );
        check(
            "import requests\nBASE = 'https://api.example.org/v1'\ndef tool(city):\n    return requests.get(f'{BASE}/w?q={city}').json()",
            known,
            &[ServiceRead],
        );
        check(
            "import requests\ndef tool(n):\n    return requests.get(f'https://api.github.com/repos/a/b/issues/{n}').json()['body']",
            known,
            &[PublicRead],
        );
        check(
            "import requests\ndef tool(host):\n    return requests.get('https://' + host).text",
            known,
            &[PublicRead, AddressRequest],
        );
        check(
            "import httpx\nasync def tool(url: str = 'https://example.org'):\n    async with httpx.AsyncClient() as c:\n        r = await c.get(url)\n        return r.text",
            known,
            &[PublicRead, AddressRequest],
        );
        check(
            "import httpx\ndef tool(x):\n    with httpx.Client(base_url='https://bank.example.org') as c:\n        c.post('/pay', json={'x': x})",
            known,
            &[ServiceWrite],
        );
    }

    #[test]
    fn a_default_decides_nothing() {
        use Effect::*;
        for test in ["if command is None:", "if not command:", "if command == 'x':"] {
            for default in ["None", "''", "'x'"] {
                let text = format!(
                    "import os\ndef tool(command: str = {default}):\n    {test}\n        return '?'\n    return os.system(command)"
                );
                check(&text, Knowledge::Known, &[Process]);
            }
        }
        check(
            "import os\ndef helper(go=False):\n    if go:\n        os.system('x')\ndef tool(x=1):\n    helper()",
            Knowledge::Known,
            &[],
        );
    }

    #[test]
    fn search_services_read_whatever_the_verb_is() {
        use Effect::*;
        for call in [
            "requests.post('https://google.serper.dev/search', json={'q': q})",
            "requests.request('POST', 'https://google.serper.dev/search', json={'q': q})",
        ] {
            check(
                &format!("import requests\ndef tool(q):\n    return {call}.json()"),
                Knowledge::Known,
                &[PublicRead],
            );
        }
        check(
            "import requests\ndef tool(q):\n    requests.post('https://api.twitter.com/2/tweets', json={'text': q})",
            Knowledge::Known,
            &[Publish],
        );
    }

    #[test]
    fn clients_of_google_are_told_apart_by_their_service() {
        use Effect::*;
        let with = |service: &str, call: &str| {
            format!(
                "from googleapiclient.discovery import build\ndef client():\n    return build('{service}', 'v1')\ndef tool(x):\n    return client().{call}.execute()"
            )
        };
        for (service, call, expected) in [
            ("gmail", "users().messages().list(userId='me')", &[MailRead][..]),
            ("gmail", "users().messages().send(userId='me', body=x)", &[MailSend]),
            ("gmail", "users().messages().modify(userId='me', id=x)", &[AccountWrite]),
            ("calendar", "events().insert(calendarId='primary', body=x)", &[AccountWrite]),
            ("calendar", "events().list(calendarId='primary')", &[PublicRead, AccountRead]),
            ("sheets", "spreadsheets().values().get(range=x)", &[AccountRead]),
            ("drive", "permissions().create(fileId=x, body={})", &[Publish]),
            ("youtube", "search().list(q=x)", &[PublicRead]),
        ] {
            check(&with(service, call), Knowledge::Known, expected);
        }
    }

    #[test]
    fn mailboxes_are_read_and_changed() {
        use Effect::*;
        let with = |call: &str| {
            format!(
                "from imap_tools import MailBox\ndef tool(x):\n    with MailBox('h').login('u', 'p') as box:\n        return {call}"
            )
        };
        check(&with("[m.text for m in box.fetch()]"), Knowledge::Known, &[MailRead]);
        check(&with("box.delete([x])"), Knowledge::Known, &[AccountWrite]);
        check(
            "import imaplib\ndef tool(n):\n    box = imaplib.IMAP4_SSL('h')\n    box.store(n, '+FLAGS', 'x')\n    box.expunge()",
            Knowledge::Known,
            &[AccountWrite],
        );
    }

    /// The quickstart of Google's client keeps its token so.
    #[test]
    fn an_object_is_unpickled_as_code_unless_the_program_names_its_file() {
        use Effect::*;
        let with = |name: &str| {
            format!(
                "import pickle\ndef tool(path):\n    with open({name}, 'rb') as f:\n        return pickle.load(f)"
            )
        };
        check(&with("'token.pickle'"), Knowledge::Known, &[]);
        check(&with("path"), Knowledge::Known, &[FileRead, Code]);
    }

    #[test]
    fn reading_a_result_is_no_call_of_the_client() {
        use Effect::*;
        check(
            "import requests\ndef tool(city):\n    r = requests.get(f'https://api.example.org/w?q={city}').json()\n    return r['main'].get('temp') or r.get('x')",
            Knowledge::Known,
            &[ServiceRead],
        );
        check(
            "from googleapiclient.discovery import build\ndef tool(x):\n    made = build('calendar', 'v3').events().insert(calendarId='primary', body={'summary': x}).execute()\n    return made.get('htmlLink')",
            Knowledge::Known,
            &[AccountWrite],
        );
    }

    #[test]
    fn the_way_to_a_method_tells_the_service() {
        use Effect::*;
        let with = |call: &str| {
            format!("def tool(ctx, x):\n    service = ctx.deps.service\n    return service.{call}.execute()")
        };
        check(&with("users().messages().list(userId='me')"), Knowledge::Partly, &[MailRead]);
        check(&with("users().messages().send(userId='me', body=x)"), Knowledge::Partly, &[MailSend]);
        check(&with("users().drafts().create(userId='me', body=x)"), Knowledge::Partly, &[AccountWrite]);
        check(&with("things().messages().send(body=x)"), Knowledge::Unknown, &[]);
    }

    #[test]
    fn annotations_tell_clients_that_are_passed_in() {
        use Effect::*;
        check(
            "import httpx\nfrom dataclasses import dataclass\nfrom pydantic_ai import RunContext\n@dataclass\nclass Deps:\n    client: httpx.AsyncClient\nasync def tool(ctx: RunContext[Deps], url: str):\n    return (await ctx.deps.client.get(url)).text",
            Knowledge::Known,
            &[PublicRead, AddressRequest],
        );
        check(
            "from tavily import TavilyClient\ndef tool(client: TavilyClient, q: str):\n    return client.search(q)",
            Knowledge::Known,
            &[PublicRead],
        );
    }

    #[test]
    fn a_dataclass_is_made_to_its_end() {
        check(
            "import subprocess\nfrom dataclasses import dataclass\nclass Shell:\n    def go(self, c):\n        return subprocess.run(c, shell=True)\n@dataclass\nclass Job:\n    c: str\n    def __post_init__(self):\n        self.shell = Shell()\n    def run(self):\n        return self.shell.go(self.c)\ndef tool(c):\n    return Job(c).run()",
            Knowledge::Known,
            &[Effect::Process],
        );
    }

    #[test]
    fn files_and_folders_of_the_program_are_its_own() {
        use Effect::*;
        let with = |body: &str| {
            format!("import os, sqlite3\nHERE = os.path.dirname(__file__)\ndef tool(x):\n    {body}")
        };
        check(&with("os.makedirs(os.path.join(HERE, 'data'), exist_ok=True)"), Knowledge::Known, &[]);
        check(&with("os.makedirs(os.path.join(HERE, x))"), Knowledge::Known, &[FileWrite]);
        check(&with("open(os.path.join(HERE, 'log.md'), 'a').write(x)"), Knowledge::Known, &[MemoryWrite]);
        check(&with("open(os.path.join(HERE, x), 'a').write('1')"), Knowledge::Known, &[FileWrite]);
        check(
            &with("sqlite3.connect('a.db').executescript(open('schema.sql').read())"),
            Knowledge::Known,
            &[],
        );
        check(
            &with("sqlite3.connect('a.db').execute('CREATE TABLE IF NOT EXISTS a (n)')"),
            Knowledge::Known,
            &[],
        );
        check(
            &with("sqlite3.connect('a.db').executescript(x)"),
            Knowledge::Known,
            &[DatabaseRead, DatabaseWrite],
        );
    }

    /// A cache plays no role in an attack, and says nothing about the rest.
    #[test]
    fn an_effect_that_does_not_count_makes_nothing_known() {
        check(
            "from elsewhere import go\ndef tool(x):\n    open('cache', 'w').write('1')\n    return go(x)",
            Knowledge::Unknown,
            &[Effect::MemoryWrite],
        );
    }

    #[test]
    fn helpers_are_followed() {
        use Effect::*;
        check(
            "import subprocess as sp\nclass Box:\n    def run(self, c):\n        return sp.run(c, shell=True)\nbox = Box()\ndef helper(c):\n    return box.run(c)\ndef tool(c):\n    return helper(c)",
            Knowledge::Known,
            &[Process],
        );
        check(
            "def load(p):\n    with open(p) as f:\n        return f.read()\ndef tool(p):\n    try:\n        return load(p)\n    except OSError as e:\n        return str(e)",
            Knowledge::Known,
            &[FileRead],
        );
    }

    #[test]
    fn statements_of_sql_are_told_apart() {
        use Effect::*;
        let with = |sql: &str| {
            format!(
                "import sqlite3\ndef tool(n):\n    c = sqlite3.connect('a.db').cursor()\n    c.execute({sql}, (n,))\n    return c.fetchall()"
            )
        };
        check(&with("'SELECT * FROM a WHERE n = ?'"), Knowledge::Known, &[DatabaseRead]);
        check(&with("'DELETE FROM a WHERE n = ?'"), Knowledge::Known, &[DatabaseWrite]);
        check(&with("n"), Knowledge::Known, &[DatabaseRead, DatabaseWrite]);
    }

    #[test]
    fn a_body_that_does_nothing_is_known_and_one_with_unknown_calls_is_not() {
        check(
            "NAMES = {'a': 1}\ndef tool(text: str):\n    return NAMES.get(text.strip().lower(), 0)",
            Knowledge::Known,
            &[],
        );
        check("from elsewhere import go\ndef tool(x):\n    return go(x)", Knowledge::Unknown, &[]);
        check("def tool(x):\n    return mail(x)", Knowledge::Unknown, &[]);
        check(
            "import os\nfrom elsewhere import go\ndef tool(x):\n    go(x)\n    os.remove(x)",
            Knowledge::Partly,
            &[Effect::FileWrite],
        );
    }

    #[test]
    fn files_of_the_program_are_told_from_files_that_are_chosen() {
        check(
            "def tool(x):\n    with open('log.txt', 'a') as f:\n        f.write(x)",
            Knowledge::Known,
            &[Effect::MemoryWrite],
        );
        check(
            "def tool(p, x):\n    with open(p, 'w') as f:\n        f.write(x)",
            Knowledge::Known,
            &[Effect::FileWrite],
        );
    }

    #[test]
    fn mail_to_addresses_that_are_written_out_is_no_way_out() {
        let with = |to: &str| {
            format!(
                "import smtplib\ndef tool(to, text):\n    with smtplib.SMTP('h') as s:\n        s.sendmail('me@example.org', {to}, text)"
            )
        };
        check(&with("to"), Knowledge::Known, &[Effect::MailSend]);
        check(&with("['team@example.org']"), Knowledge::Known, &[Effect::ServiceWrite]);
    }

    #[test]
    fn a_program_that_is_written_out_runs_no_command_of_the_caller() {
        use Effect::*;
        let with = |call: &str| format!("import subprocess\ndef tool(x):\n    return subprocess.run({call})");
        check(&with("['ffmpeg', '-i', x]"), Knowledge::Unknown, &[]);
        for call in ["x, shell=True", "x", "['bash', '-c', x]", "[x, '-v']", "['pip', 'install', x]"] {
            check(&with(call), Knowledge::Known, &[Process]);
        }
    }

    #[test]
    fn temporary_files_of_the_program_are_no_files_of_the_user() {
        check(
            "import os, tempfile\ndef tool(text):\n    with tempfile.NamedTemporaryFile(\"w\", delete=False) as t:\n        \
             t.write(text)\n        path = t.name\n    os.unlink(path)\n",
            Knowledge::Known,
            &[],
        );
        check(
            "import os, tempfile\nfrom pathlib import Path\ndef tool(text):\n    folder = tempfile.mkdtemp()\n    \
             with open(os.path.join(folder, \"a.py\"), \"w\") as t:\n        t.write(text)\n    \
             Path(folder, \"b\").write_text(text)\n",
            Knowledge::Known,
            &[],
        );
        // What is moved to a place that is chosen is there.
        check(
            "import os, tempfile\ndef tool(text, to):\n    fd, path = tempfile.mkstemp()\n    os.replace(path, to)\n",
            Knowledge::Known,
            &[Effect::FileWrite],
        );
    }

    #[test]
    fn settings_of_the_program_are_no_private_data() {
        use Effect::*;
        let with = |name: &str| {
            format!("import os\nHERE = os.getcwd()\ndef tool(p):\n    return open({name}).read()")
        };
        for name in ["'config.yaml'", "os.path.join(HERE, 'prompts', 'system_prompt.txt')", "'token.json'"] {
            check(&with(name), Knowledge::Known, &[]);
        }
        for name in ["'diary.txt'", "p", "p + '.yaml'"] {
            check(&with(name), Knowledge::Known, &[FileRead]);
        }
    }

    #[test]
    fn bytes_of_the_program_are_no_file() {
        use Effect::*;
        let with = |read: &str| {
            format!(
                "import fitz, io, requests\nfrom pypdf import PdfReader\ndef tool(url):\n    page = requests.get(url).content\n    {read}\n    return 1"
            )
        };
        for read in [
            "fitz.open(stream=page, filetype='pdf')",
            "fitz.open(stream=page)[0]",
            "PdfReader(io.BytesIO(page))",
        ] {
            check(&with(read), Knowledge::Known, &[PublicRead, AddressRequest]);
        }
        for read in ["fitz.open(url)", "PdfReader(url)"] {
            check(&with(read), Knowledge::Known, &[PublicRead, AddressRequest, FileRead]);
        }
    }

    #[test]
    fn files_named_by_a_digest_are_the_programs_own() {
        use Effect::*;
        let with = |path: &str| {
            format!(
                "import hashlib, os\ndef key(s):\n    return hashlib.sha1(s.encode()).hexdigest()\ndef tool(url):\n    name = key(url)\n    return {path}"
            )
        };
        for path in ["open(f'cache/{name}.json').read()", "open(os.path.join('cache', name)).read()"] {
            check(&with(path), Knowledge::Known, &[]);
        }
        for path in ["open(f'{name}/{url}').read()", "open(url).read()"] {
            check(&with(path), Knowledge::Known, &[FileRead]);
        }
    }

    #[test]
    fn guests_of_an_event_get_what_it_says() {
        use Effect::*;
        let with = |guests: &str| {
            format!(
                "from googleapiclient.discovery import build\ndef tool(title, who):\n    \
                 event = {{'summary': title, 'attendees': {guests}}}\n    \
                 return build('calendar', 'v3').events().insert(calendarId='primary', body=event).execute()"
            )
        };
        check(&with("[{'email': w} for w in who]"), Knowledge::Known, &[MailSend, AccountWrite]);
        check(&with("[{'email': who}]"), Knowledge::Known, &[MailSend, AccountWrite]);
        check(&with("[{'email': 'me@example.org'}]"), Knowledge::Known, &[AccountWrite]);
    }

    #[test]
    fn who_runs_the_program_chooses_its_services_and_recipients() {
        use Effect::*;
        check(
            "import os, requests\ndef tool(n):\n    return requests.get(f\"{os.environ['API']}/orders/{n}\").json()",
            Knowledge::Known,
            &[ServiceRead],
        );
        check(
            "import os, smtplib\nfrom email.message import EmailMessage\ndef tool(text):\n    m = EmailMessage()\n    \
             m['To'] = os.environ['TEAM']\n    m.set_content(text)\n    \
             with smtplib.SMTP('h') as s:\n        s.send_message(m)",
            Knowledge::Known,
            &[ServiceWrite],
        );
    }

    #[test]
    fn a_tool_of_a_framework_that_a_body_calls_counts() {
        check(
            "from langchain_community.tools import DuckDuckGoSearchRun\ndef tool(q):\n    return DuckDuckGoSearchRun().run(q)",
            Knowledge::Known,
            &[Effect::PublicRead],
        );
    }
}
