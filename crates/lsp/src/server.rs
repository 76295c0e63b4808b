//! The answers to a client's messages.

use crate::analysis::{Analysis, Language, Nothing, Surroundings, analyse};
use crate::beside::{self, Same, Text};
use crate::configured;
use crate::names::{self, Kind, MAIN, Names, Occurrence};
use crate::text::{Lines, apply, path_of, uri_of};
use diagnostics::{Applicability, Diagnostic, Level, Span};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use syntax::agent::ast::{Item, Program};

const REQUEST_FAILED: i64 = -32803;
const INVALID_REQUEST: i64 = -32600;
const UNKNOWN_METHOD: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const NOT_INITIALIZED: i64 = -32002;

/// What the kinds of names are called in semantic tokens, in the order of their numbers.
const TOKEN_TYPES: [&str; 5] = ["type", "class", "function", "variable", "comment"];

/// Words of the language and what they do, for completion and hover.
const WORDS: &[(&str, &str)] = &[
    (
        "agent",
        "declares who carries out tasks: `tools`, `helpers`, `handoffs`, `model`, `prompt`, `max_steps`, `memory`, `budget`",
    ),
    ("assert", "fails the run, or is caught by `try`, unless the condition holds"),
    ("by", "which agent carries out the task"),
    ("endorse", "gives the value only if it is one of the constants, and trusts it"),
    ("enum", "declares a type by its variants, which are written as strings"),
    ("expect", "in a test: `call`, `no call` or `refused` and a tool"),
    ("final_tools", "those of an agent's tools whose result is the answer"),
    ("for", "a round for each item of a list"),
    ("guard", "a condition on a value; `retry n` makes it again"),
    ("handoffs", "agents or pipelines that may go on in an agent's place"),
    ("helpers", "agents or pipelines that an agent may ask"),
    ("join", "waits for all calls of a `parallel`"),
    ("match", "a case for each variant of an enum, or `_`"),
    ("max", "the most rounds of a `while`, after which it ends quietly"),
    ("max_concurrency", "how many calls are under way at a time"),
    ("mock", "in a test: what a tool gives instead of being called"),
    ("on_fail", "`abort`, or `use` of another value, if all attempts fail"),
    ("parallel", "calls at the same time, or `parallel for`: rounds at the same time"),
    ("pipeline", "declares a program: statements that end with `return`"),
    ("policy", "leaves what may reach this to `[policies.NAME]` of the policy file"),
    ("quarantine", "asks a model that sees nothing else, and gives a value of a type"),
    ("reads", "looks at the world: the result is untrusted"),
    ("requires", "`trusted` or `public`: refuses other data"),
    ("retries", "how often a failed call is made again; a timeout is not"),
    ("return", "ends the pipeline with a value"),
    ("secret", "labels data that not everybody may see"),
    ("settings", "what a model's server is told beside the fields that the language has"),
    ("system", "instructions of an agent for one task"),
    (
        "talk",
        "`conversation`, or `text`: each step asks anew, with one text that holds everything said so far",
    ),
    ("task", "declares work with a typed result, by an agent or by a handler"),
    ("test", "declares a test, which `entail test` runs"),
    ("timeout", "the seconds that each attempt has; then the work is cancelled"),
    ("tool", "declares what agents and pipelines may call"),
    ("try", "runs `catch` with the message if something inside fails"),
    ("untrusted", "labels data that may come from anyone"),
    ("use", "makes what another file declares part of the program"),
    ("while", "repeats as long as a condition holds; `max n` bounds it"),
    ("workflow", "declares stages and reviews, which become a pipeline"),
    ("writes", "changes the world: takes only trusted, public data unless it says what it `requires`"),
    ("else", ""),
    ("if", ""),
    ("let", ""),
    ("run", "calls a task or pipeline with named arguments"),
    ("stage", "a step of a workflow: an agent does a task"),
    ("review", "an agent checks a version, another revises it, `max_rounds` times at most"),
    ("type", "an abbreviation of a type"),
    ("String", "a text"),
    ("Number", "an exact number"),
    ("Bool", "`true` or `false`"),
    ("List", "`List[T]`"),
    ("Option", "`Option[T]`: perhaps `null`"),
    ("Obj", "`Obj{name: T, …}`: a record"),
    ("Any", "data whose shape only the run shows"),
];

struct Document {
    path: String,
    version: Value,
    text: Arc<str>,
    /// The files that were read for its findings.
    read: HashSet<String>,
}

/// A session with a client.
pub struct Server {
    around: Box<dyn Surroundings>,
    documents: HashMap<String, Document>,
    initialized: bool,
    shut_down: bool,
    exited: bool,
}

impl Default for Server {
    fn default() -> Server {
        Server::new()
    }
}

impl Server {
    /// Before anything was said, and with nothing around the documents.
    pub fn new() -> Server {
        Server::within(Box::new(Nothing))
    }

    /// A session about programs with settings, policies and configurations around them.
    pub fn within(around: Box<dyn Surroundings>) -> Server {
        Server { around, documents: HashMap::new(), initialized: false, shut_down: false, exited: false }
    }

    /// Whether the client has said `exit`.
    pub fn has_exited(&self) -> bool {
        self.exited
    }

    /// Whether the client has said `shutdown`.
    pub fn is_shut_down(&self) -> bool {
        self.shut_down
    }

    /// What is sent in return for a message: the answer of a request, findings after a change.
    ///
    /// # Examples
    /// ```
    /// use serde_json::json;
    /// let mut server = lsp::Server::new();
    /// server.handle(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}));
    /// let text = "pipeline p() -> String { return 1; }";
    /// let open = json!({"textDocument": {"uri": "file:///p.agent", "version": 1, "text": text}});
    /// let said = server.handle(&json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": open}));
    /// assert_eq!(said[0]["params"]["diagnostics"][0]["code"], "A050");
    /// ```
    pub fn handle(&mut self, message: &Value) -> Vec<Value> {
        let params = &message["params"];
        let Some(method) = message["method"].as_str() else {
            // The answer to a request of ours, of which there are none, is passed over.
            let answer = message.get("result").is_some() || message.get("error").is_some();
            return match answer {
                true => Vec::new(),
                false => vec![refusal(&message["id"], INVALID_REQUEST, "a message without a method")],
            };
        };
        match message.get("id") {
            None => self.notified(method, params),
            Some(id) => vec![match self.asked(method, params) {
                Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                Err((code, why)) => refusal(id, code, &why),
            }],
        }
    }

    fn notified(&mut self, method: &str, params: &Value) -> Vec<Value> {
        let uri = params["textDocument"]["uri"].as_str().unwrap_or("").to_string();
        match method {
            "exit" => self.exited = true,
            "textDocument/didOpen" => {
                let text = params["textDocument"]["text"].as_str().unwrap_or("").into();
                let version = params["textDocument"]["version"].clone();
                let document = Document { path: path_of(&uri), version, text, read: HashSet::new() };
                self.documents.insert(uri.clone(), document);
                return self.published_with_readers(&uri);
            }
            "textDocument/didChange" => {
                let Some(document) = self.documents.get_mut(&uri) else { return Vec::new() };
                let mut text = document.text.to_string();
                apply(&mut text, params["contentChanges"].as_array().map_or(&[], Vec::as_slice));
                document.text = text.into();
                document.version = params["textDocument"]["version"].clone();
                return self.published_with_readers(&uri);
            }
            // What lies on the disk has changed: whatever is open may import it.
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => {
                self.around.changed();
                let mut open: Vec<String> = self.documents.keys().cloned().collect();
                open.sort();
                return open.into_iter().flat_map(|uri| self.published(&uri)).collect();
            }
            "textDocument/didClose" => {
                let Some(closed) = self.documents.remove(&uri) else { return Vec::new() };
                let mut said = vec![publish(&uri, &Value::Null, Vec::new())];
                said.extend(self.readers(&closed.path).iter().flat_map(|uri| self.published(uri)));
                return said;
            }
            _ => {}
        }
        Vec::new()
    }

    fn asked(&mut self, method: &str, params: &Value) -> Result<Value, (i64, String)> {
        match method {
            "initialize" => {
                self.initialized = true;
                return Ok(capabilities());
            }
            "shutdown" => {
                self.shut_down = true;
                return Ok(Value::Null);
            }
            _ if !self.initialized => return Err((NOT_INITIALIZED, "say `initialize` first".into())),
            _ if self.shut_down => return Err((INVALID_REQUEST, "the server is shut down".into())),
            _ => {}
        }
        let known = [
            "textDocument/codeAction",
            "textDocument/completion",
            "textDocument/definition",
            "textDocument/documentHighlight",
            "textDocument/documentSymbol",
            "textDocument/formatting",
            "textDocument/hover",
            "textDocument/inlayHint",
            "textDocument/prepareRename",
            "textDocument/references",
            "textDocument/rename",
            "textDocument/semanticTokens/full",
        ];
        if !known.contains(&method) {
            return Err((UNKNOWN_METHOD, format!("there is no method `{method}`")));
        }
        let uri = params["textDocument"]["uri"].as_str().unwrap_or("");
        let Some(document) = self.documents.get(uri) else {
            return Err((INVALID_PARAMS, format!("`{uri}` is not open")));
        };
        let view = View::new(uri, document);
        let offset = view.lines.offset(&params["position"]);
        match method {
            "textDocument/codeAction" => Ok(self.repairs(&view, &params["range"])),
            "textDocument/formatting" => format(&view),
            "textDocument/hover" => Ok(self.hover(&view, offset)),
            "textDocument/inlayHint" => Ok(self.hints(&view)),
            "textDocument/completion" => match Language::of(&document.path) {
                Language::Config | Language::Python => {
                    Ok(configured::completion(&document.path, view.text, offset, || self.world(document)))
                }
                _ => Ok(completion(&view, offset)),
            },
            "textDocument/definition" => Ok(self.definition(&view, offset)),
            "textDocument/documentSymbol" => Ok(symbols(&view)),
            "textDocument/semanticTokens/full" => Ok(tokens(&view)),
            "textDocument/documentHighlight" => match self.across(&view, offset) {
                Some((_, same)) => {
                    let here = same.places.iter().filter(|p| p.file == 0);
                    Ok(here
                        .map(|p| json!({"range": view.lines.range(p.start as u32, p.end as u32)}))
                        .collect())
                }
                None => {
                    Ok(view.same(offset).into_iter().map(|o| json!({"range": view.range(o.span)})).collect())
                }
            },
            "textDocument/references" => {
                let with = params["context"]["includeDeclaration"].as_bool().unwrap_or(true);
                Ok(match self.across(&view, offset) {
                    Some((files, same)) => {
                        let all = same.places.iter().filter(|p| with || !p.declares);
                        all.map(|p| self.location(&files, p.file, p.start, p.end)).collect()
                    }
                    None => {
                        let all = view.same(offset).into_iter().filter(|o| with || !o.declares);
                        all.map(|o| view.location(o.span)).collect()
                    }
                })
            }
            "textDocument/prepareRename" => {
                if let Some((_, Same { name, places, here, fixed: None, .. })) = self.across(&view, offset) {
                    let at = &places[here];
                    let range = view.lines.range(at.start as u32, at.end as u32);
                    return Ok(json!({"range": range, "placeholder": name}));
                }
                match view.at(offset) {
                    Some(o) if o.kind != Kind::Policy => {
                        Ok(json!({"range": view.range(o.span), "placeholder": o.text}))
                    }
                    _ => Ok(Value::Null),
                }
            }
            _ => {
                let to = params["newName"].as_str().unwrap_or("");
                match self.across(&view, offset) {
                    Some((files, same)) => self.rename(&files, &same, to),
                    None => rename(&view, offset, to),
                }
            }
        }
    }

    /// The document, then the other files of its project; of what is open, the text that the editor has.
    fn world(&self, document: &Document) -> Vec<Text> {
        let mut files: Vec<Text> = vec![(document.path.clone(), document.text.clone())];
        let mut open: Vec<&Document> = self.documents.values().filter(|d| d.path != document.path).collect();
        open.sort_by(|a, b| a.path.cmp(&b.path));
        files.extend(open.into_iter().map(|d| (d.path.clone(), d.text.clone())));
        let known: HashSet<String> = files.iter().map(|(p, _)| p.clone()).collect();
        let more = self.around.files(Path::new(&document.path));
        files.extend(more.into_iter().filter(|(p, _)| !known.contains(p)));
        files
    }

    /// What stands at a place, if other files may name it too.
    fn across(&self, view: &View<'_>, offset: usize) -> Option<(Vec<Text>, Same)> {
        if view.at(offset).is_some_and(|o| matches!(o.kind, Kind::Variable(_) | Kind::Policy)) {
            return None;
        }
        let files = self.world(view.document);
        let same = beside::same(&files, offset)?;
        Some((files, same))
    }

    fn location(&self, files: &[Text], file: usize, start: usize, end: usize) -> Value {
        let Some((path, text)) = files.get(file) else { return Value::Null };
        json!({"uri": self.uri(path), "range": Lines::new(text).range(start as u32, end as u32)})
    }

    /// The address under which the editor knows a file.
    fn uri(&self, path: &str) -> String {
        let open = self.documents.iter().find(|(_, d)| d.path == path);
        open.map_or_else(|| uri_of(path), |(uri, _)| uri.clone())
    }

    fn definition(&self, view: &View<'_>, offset: usize) -> Value {
        if Language::of(&view.document.path) == Language::Agent {
            let files = self.world(view.document);
            if let Some(file) = beside::file_named(&files, offset) {
                return self.location(&files, file, 0, 0);
            }
        }
        let Some((files, same)) = self.across(view, offset) else {
            return view.declaration(offset).map_or(Value::Null, |o| view.location(o.span));
        };
        let declared = same.places.iter().filter(|p| p.declares);
        let mut all: Vec<Value> = declared.map(|p| self.location(&files, p.file, p.start, p.end)).collect();
        match all.len() {
            0 => Value::Null,
            1 => all.remove(0),
            _ => Value::Array(all),
        }
    }

    /// The changes that give what is named another name, in all files.
    fn rename(&self, files: &[Text], same: &Same, to: &str) -> Result<Value, (i64, String)> {
        if let Some(why) = &same.fixed {
            return Err((REQUEST_FAILED, why.clone()));
        }
        let word = is_identifier(to);
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
        let text = to.starts_with(char::is_alphabetic) && to.trim() == to && to.chars().all(plain);
        // What YAML would not read as a text.
        let other = ["true", "false", "null", "yes", "no", "on", "off"];
        let fits = word || text && !same.word;
        if !fits || other.contains(&to.to_ascii_lowercase().as_str()) {
            return Err((INVALID_PARAMS, format!("`{}` can't be a name here", diagnostics::clip(to))));
        }
        let mut changes = Map::new();
        for (i, (path, text)) in files.iter().enumerate() {
            let lines = Lines::new(text);
            let here = same.places.iter().filter(|p| p.file == i);
            let edits: Vec<Value> = here
                .map(|p| json!({"range": lines.range(p.start as u32, p.end as u32), "newText": to}))
                .collect();
            if !edits.is_empty() {
                changes.insert(self.uri(path), Value::Array(edits));
            }
        }
        Ok(json!({"changes": changes}))
    }

    /// What editors have of files that others import.
    fn open_files(&self) -> HashMap<PathBuf, Arc<str>> {
        let places = self.documents.values();
        places.filter_map(|d| Some((Path::new(&d.path).canonicalize().ok()?, d.text.clone()))).collect()
    }

    fn analysis(&self, document: &Document) -> Analysis {
        analyse(&document.path, &document.text, &self.open_files(), &*self.around)
    }

    /// The findings of a document, and those of the other ones that were read together with it.
    fn published_with_readers(&mut self, uri: &str) -> Vec<Value> {
        let mut said = self.published(uri);
        let path = self.documents.get(uri).map(|d| d.path.clone()).unwrap_or_default();
        for other in self.readers(&path).iter().filter(|other| *other != uri) {
            said.extend(self.published(other));
        }
        said
    }

    /// The open documents for whose findings a file was read, itself included, in the order of their names.
    fn readers(&self, path: &str) -> Vec<String> {
        let place = Path::new(path).canonicalize().map_or_else(|_| path.into(), |p| p.display().to_string());
        let of = self.documents.iter().filter(|(_, d)| d.read.contains(&place));
        let mut readers: Vec<String> = of.map(|(uri, _)| uri.clone()).collect();
        readers.sort();
        readers
    }

    fn published(&mut self, uri: &str) -> Vec<Value> {
        let Some(document) = self.documents.get(uri) else { return Vec::new() };
        let analysis = self.analysis(document);
        let read = analysis.sources.iter().skip(1).map(|(_, s)| s.path.clone()).collect();
        let view = View::new(uri, document);
        let here = analysis.found.iter().filter(|d| d.span.is_none_or(|s| s.file == MAIN));
        let shown = here.map(|d| finding(&view, &analysis, d)).collect();
        let said = vec![publish(uri, &document.version, shown)];
        if let Some(document) = self.documents.get_mut(uri) {
            document.read = read;
        }
        said
    }

    /// The fixes of the findings that touch a range.
    fn repairs(&self, view: &View<'_>, range: &Value) -> Value {
        let (from, to) = (view.lines.offset(&range["start"]), view.lines.offset(&range["end"]));
        let analysis = self.analysis(view.document);
        let mut out = Vec::new();
        for d in &analysis.found {
            let (Some(span), Some(fix)) = (d.span, &d.fix) else { continue };
            let touches = span.file == MAIN && span.start as usize <= to && from <= span.end as usize;
            if !touches || fix.span.file != MAIN || fix.applicability == Applicability::DisplayOnly {
                continue;
            }
            let title = match d.help.first() {
                Some(help) => format!("{} ({help})", action(&fix.replacement)),
                None => action(&fix.replacement),
            };
            let edit = json!({"range": view.range(fix.span), "newText": fix.replacement});
            let mut changes = Map::new();
            changes.insert(view.uri.to_string(), json!([edit]));
            out.push(json!({
                "title": title,
                "kind": "quickfix",
                "isPreferred": fix.applicability == Applicability::Safe,
                "diagnostics": [finding(view, &analysis, d)],
                "edit": {"changes": changes},
            }));
        }
        Value::Array(out)
    }

    fn hover(&self, view: &View<'_>, offset: usize) -> Value {
        let markdown = |text: String, span: Option<Span>| {
            let mut hover = json!({"contents": {"kind": "markdown", "value": text}});
            if let Some(span) = span {
                hover["range"] = view.range(span);
            }
            hover
        };
        let findings = self.analysis(view.document);
        if let Some(text) = configured::hover(&view.document.path, view.text, offset) {
            let inside = |s: Span| s.file == MAIN && (s.start as usize..=s.end as usize).contains(&offset);
            let found = findings.found.iter().filter(|d| d.span.is_some_and(inside));
            let found = found.filter_map(|d| Some(format!("**{}** {}\n\n{}", d.code, d.message, d.meaning?)));
            let all: Vec<String> = std::iter::once(text).chain(found).collect();
            return markdown(all.join("\n\n"), None);
        }
        if let Some(here) = view.at(offset) {
            let Some(declared) = view.declaration(offset) else { return Value::Null };
            let mut text = format!("```agent\n{}\n```", view.header(declared));
            if let Some(bound) =
                findings.bounds().into_iter().find(|b| here.kind == Kind::Callable && b.name == here.text)
            {
                text.push_str(&format!("\n\nA run makes {}.", bound.text));
            }
            return markdown(text, Some(here.span));
        }
        let word = word_at(view.text, offset);
        if Language::of(&view.document.path) == Language::Agent
            && let Some((name, meaning)) = WORDS.iter().find(|(w, m)| *w == word && !m.is_empty())
        {
            return markdown(format!("`{name}`: {meaning}"), None);
        }
        // In other files, what is found here says what the field means in the calculus.
        let inside = |s: Span| s.file == MAIN && (s.start as usize..=s.end as usize).contains(&offset);
        let found = findings.found.iter().find(|d| d.span.is_some_and(inside));
        match found.and_then(|d| Some((d, d.meaning?))) {
            Some((d, meaning)) => markdown(format!("**{}** {}\n\n{meaning}", d.code, d.message), d.span),
            None => Value::Null,
        }
    }

    /// The bounds of pipelines, behind their heads.
    fn hints(&self, view: &View<'_>) -> Value {
        let analysis = self.analysis(view.document);
        let bounds = analysis.bounds();
        let hint = |item: &Item| {
            let (name, _, _) = names::title(item);
            let end = match item {
                Item::Pipeline(p) => p.result.span.end,
                Item::Workflow(w) => w.result.span.end,
                _ => return None,
            };
            let bound = bounds.iter().find(|b| b.name == name)?;
            let position = view.lines.position(end as usize);
            Some(json!({"position": position, "label": bound.text, "paddingLeft": true}))
        };
        let mut hints: Vec<Value> = view.program.iter().flat_map(|p| &p.items).filter_map(hint).collect();
        for (at, ty) in analysis.variables() {
            const TYPE: u32 = 1;
            let position = view.lines.position(at.end as usize);
            hints.push(json!({"position": position, "label": format!(": {ty}"), "kind": TYPE}));
        }
        Value::Array(hints)
    }
}

/// A document with what is read from it.
struct View<'a> {
    uri: &'a str,
    document: &'a Document,
    text: &'a str,
    lines: Lines<'a>,
    program: Option<Program>,
    names: Option<Names>,
}

impl<'a> View<'a> {
    fn new(uri: &'a str, document: &'a Document) -> View<'a> {
        let text = &*document.text;
        let agent = Language::of(&document.path) == Language::Agent;
        let program = agent.then(|| syntax::agent::parse(MAIN, text).0);
        let names = program.as_ref().map(Names::of);
        View { uri, document, text, lines: Lines::new(text), program, names }
    }

    fn range(&self, span: Span) -> Value {
        self.lines.range(span.start, span.end)
    }

    fn location(&self, span: Span) -> Value {
        json!({"uri": self.uri, "range": self.range(span)})
    }

    fn at(&self, offset: usize) -> Option<&Occurrence> {
        self.names.as_ref()?.at(offset)
    }

    fn same(&self, offset: usize) -> Vec<&Occurrence> {
        match (&self.names, self.at(offset)) {
            (Some(names), Some(here)) => names.same(here).collect(),
            _ => Vec::new(),
        }
    }

    fn declaration(&self, offset: usize) -> Option<&Occurrence> {
        let here = self.at(offset)?;
        self.names.as_ref()?.declaration(here)
    }

    /// The head of what a name declares: up to its body, or the line of a variable.
    fn header(&self, declared: &Occurrence) -> String {
        const LONGEST: usize = 400;
        let item = self.program.as_ref().and_then(|p| names::item_at(p, declared.span.start as usize));
        let span = match (declared.kind, item) {
            (Kind::Variable(_), _) | (_, None) => {
                let (line, _) = self.lines.place(declared.span.start as usize);
                return self.text.lines().nth(line).map_or(String::new(), |l| diagnostics::clip(l.trim()));
            }
            (_, Some((_, Item::Pipeline(p)))) => Span { end: p.result.span.end, ..p.span },
            (_, Some((_, Item::Workflow(w)))) => Span { end: w.result.span.end, ..w.span },
            (_, Some((_, Item::Tool(c) | Item::Task(c)))) => Span { end: c.body.span.start, ..c.span },
            (_, Some((_, item))) => names::span_of(item),
        };
        let text = self.text.get(span.start as usize..span.end as usize).unwrap_or("").trim();
        text.chars().take(LONGEST).collect()
    }
}

fn refusal(id: &Value, code: i64, why: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}})
}

fn publish(uri: &str, version: &Value, findings: Vec<Value>) -> Value {
    let mut params = json!({"uri": uri, "diagnostics": findings});
    if version.is_number() {
        params["version"] = version.clone();
    }
    json!({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params})
}

fn capabilities() -> Value {
    json!({
        "capabilities": {
            "positionEncoding": "utf-16",
            "textDocumentSync": {"openClose": true, "change": 2, "save": true},
            "codeActionProvider": {"codeActionKinds": ["quickfix"]},
            "completionProvider": {},
            "definitionProvider": true,
            "documentFormattingProvider": true,
            "documentHighlightProvider": true,
            "documentSymbolProvider": true,
            "hoverProvider": true,
            "inlayHintProvider": true,
            "referencesProvider": true,
            "renameProvider": {"prepareProvider": true},
            "semanticTokensProvider": {
                "legend": {"tokenTypes": TOKEN_TYPES, "tokenModifiers": ["declaration"]},
                "full": true,
            },
        },
        "serverInfo": {"name": "entail", "version": env!("CARGO_PKG_VERSION")},
    })
}

fn finding(view: &View<'_>, analysis: &Analysis, d: &Diagnostic) -> Value {
    let severity = match d.level {
        Level::Error => 1,
        Level::Warn => 2,
        _ => 3,
    };
    let mut message = d.message.clone();
    for help in &d.help {
        message.push_str(&format!("\nhelp: {help}"));
    }
    let related: Vec<Value> = d
        .remarks
        .iter()
        .filter_map(|r| {
            let location = match r.span.file {
                MAIN => view.location(r.span),
                other => {
                    let source = analysis.sources.get(other)?;
                    let range = Lines::new(&source.text).range(r.span.start, r.span.end);
                    json!({"uri": uri_of(&source.path), "range": range})
                }
            };
            Some(json!({"location": location, "message": r.text}))
        })
        .collect();
    let start = Span { file: MAIN, start: 0, end: 0 };
    json!({
        "range": view.range(d.span.unwrap_or(start)),
        "severity": severity,
        "code": d.code,
        "source": "entail",
        "message": message,
        "relatedInformation": related,
    })
}

/// What a repair does, in two words.
fn action(replacement: &str) -> String {
    match replacement.trim() {
        "" => "remove it".into(),
        text => format!("write `{}`", diagnostics::clip_to(text, 40)),
    }
}

fn format(view: &View<'_>) -> Result<Value, (i64, String)> {
    let formatted = match Language::of(&view.document.path) {
        Language::Agent => syntax::format::agent(MAIN, view.text),
        Language::Lam => syntax::format::lam(MAIN, view.text),
        Language::Config | Language::Python => return Ok(Value::Null),
    };
    match formatted {
        Ok(text) if text == view.text => Ok(json!([])),
        Ok(text) => Ok(json!([{"range": view.lines.range(0, view.text.len() as u32), "newText": text}])),
        Err(_) => Err((REQUEST_FAILED, "a file with errors is not formatted".into())),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word_at(text: &str, offset: usize) -> &str {
    let (before, after) = text.split_at_checked(offset).unwrap_or((text, ""));
    let start =
        before.rfind(|c| !is_word(c)).map_or(0, |i| i + before[i..].chars().next().map_or(1, char::len_utf8));
    let end = offset + after.find(|c| !is_word(c)).unwrap_or(after.len());
    text.get(start..end).unwrap_or("")
}

fn completion(view: &View<'_>, offset: usize) -> Value {
    const KEYWORD: u32 = 14;
    const FUNCTION: u32 = 3;
    const FIELD: u32 = 5;
    let (Some(names), Some(program)) = (&view.names, &view.program) else { return json!([]) };
    // What stands before the word that is being written decides what it can be.
    let before = view.text.get(..offset).unwrap_or("").trim_end_matches(is_word);
    let item = names::item_at(program, offset).map(|(i, _)| i);
    let wanted = |k: Kind| match k {
        Kind::Variable(of) => Some(of) == item,
        _ => true,
    };
    let of_kind = |only: &dyn Fn(Kind) -> bool| {
        let mut seen: Vec<(&str, u32)> = Vec::new();
        for o in names.all.iter().filter(|o| o.declares && wanted(o.kind) && only(o.kind)) {
            let number = match o.kind {
                Kind::Type => 22,
                Kind::Agent => 7,
                Kind::Tool | Kind::Callable | Kind::Policy => FUNCTION,
                Kind::Variable(_) => 6,
            };
            if !seen.contains(&(o.text.as_str(), number)) {
                seen.push((&o.text, number));
            }
        }
        seen
    };
    let trimmed = before.trim_end();
    let items: Vec<(&str, u32)> = if before.ends_with('.') {
        names.fields.iter().map(|f| (f.as_str(), FIELD)).collect()
    } else if trimmed.ends_with(" by") {
        of_kind(&|k| k == Kind::Agent)
    } else if trimmed.rfind("tools:").is_some_and(|i| !trimmed[i..].contains(']')) {
        of_kind(&|k| k == Kind::Tool)
    } else if trimmed.ends_with(" run") {
        of_kind(&|k| matches!(k, Kind::Callable | Kind::Tool))
    } else if trimmed.ends_with("->") {
        let built_in = ["String", "Number", "Bool", "List", "Option", "Obj", "Any"].map(|t| (t, KEYWORD));
        of_kind(&|k| k == Kind::Type).into_iter().chain(built_in).collect()
    } else {
        let words = WORDS.iter().map(|(w, _)| (*w, KEYWORD));
        of_kind(&|_| true)
            .into_iter()
            .chain(frontend::surface::function_names().map(|f| (f, FUNCTION)))
            .chain(words)
            .collect()
    };
    let meaning = |label: &str| WORDS.iter().find(|(w, m)| *w == label && !m.is_empty()).map(|(_, m)| *m);
    items
        .into_iter()
        .map(|(label, kind)| {
            let mut item = json!({"label": label, "kind": kind});
            if let Some(detail) = meaning(label).filter(|_| kind == KEYWORD) {
                item["detail"] = detail.into();
            }
            item
        })
        .collect()
}

fn symbols(view: &View<'_>) -> Value {
    let items = view.program.iter().flat_map(|p| &p.items);
    items
        .map(|item| {
            let (name, span, kind) = names::title(item);
            let whole = names::span_of(item);
            let name = if name.is_empty() { "?".into() } else { name };
            json!({"name": name, "kind": kind, "range": view.range(whole), "selectionRange": view.range(span)})
        })
        .collect()
}

fn tokens(view: &View<'_>) -> Value {
    let mut places: Vec<(Span, usize, bool)> = Vec::new();
    for o in view.names.iter().flat_map(|n| &n.all) {
        let token = match o.kind {
            Kind::Type => 0,
            Kind::Agent => 1,
            Kind::Tool | Kind::Callable | Kind::Policy => 2,
            Kind::Variable(_) => 3,
        };
        places.push((o.span, token, o.declares));
    }
    places.extend(view.program.iter().flat_map(|p| &p.comments).map(|c| (c.span, 4, false)));
    places.sort_by_key(|(s, ..)| s.start);
    let (mut data, mut last, mut end) = (Vec::new(), (0, 0), 0);
    for (span, token, declares) in places {
        // What an abbreviation repeats stands at one place.
        if span.start < end || span.end <= span.start {
            continue;
        }
        let (line, column) = view.lines.place(span.start as usize);
        let (last_line, last_column) = view.lines.place(span.end as usize);
        if last_line != line {
            continue;
        }
        let first = if line == last.0 { column - last.1 } else { column };
        data.extend([line - last.0, first, last_column - column, token, usize::from(declares)]);
        (last, end) = ((line, column), span.end);
    }
    json!({"data": data})
}

/// Whether a text can be a name in a program.
fn is_identifier(to: &str) -> bool {
    const RESERVED: [&str; 14] = [
        "let", "if", "else", "while", "break", "continue", "try", "catch", "assert", "return", "parallel",
        "true", "false", "null",
    ];
    let starts = to.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && to.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !RESERVED.contains(&to)
}

fn rename(view: &View<'_>, offset: usize, to: &str) -> Result<Value, (i64, String)> {
    let Some(here) = view.at(offset).filter(|o| o.kind != Kind::Policy) else {
        return Err((REQUEST_FAILED, "nothing here has a name that can be changed".into()));
    };
    if !is_identifier(to) {
        return Err((INVALID_PARAMS, format!("`{}` can't be a name", diagnostics::clip(to))));
    }
    let taken =
        view.names.as_ref().is_some_and(|n| n.all.iter().any(|o| o.kind == here.kind && o.text == to));
    if taken {
        return Err((REQUEST_FAILED, format!("`{to}` is a name here already")));
    }
    let edits: Vec<Value> =
        view.same(offset).iter().map(|o| json!({"range": view.range(o.span), "newText": to})).collect();
    let mut changes = Map::new();
    changes.insert(view.uri.to_string(), Value::Array(edits));
    Ok(json!({"changes": changes}))
}
