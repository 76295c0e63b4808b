//! Runs of a journal, shown from what was kept: without the files of the program, its policy and its world.
//!
//! Entry points: [`program`] is what a run keeps of its program; [`KeptRun::open`] reads a run, and
//! [`KeptRun::document`] is the run for a page or a trace, for everybody or for one reader ([`Reader`]).
//!
//! The program is run again with the answers of the journal ([`runtime::Journal::play`]), so labels, their
//! origins and refusals are those of the run, and there is one implementation of each.
//!
//! Invariant: what a document for a reader says passes the [`View`] of that reader, as everything does that
//! leaves a run. The input, the bound, remedies, times and what the run is asking for are left out: nothing
//! says which labels they have.

use crate::callers::{CallerEntry, Callers};
use crate::report::{as_diagnostic, as_json, refused_calls};
use crate::view::{View, WITHHELD, WITHHELD_MESSAGE};
use ::policy::Policy;
use analysis::cost::CostBound;
use core_ir::draw::Picture;
use core_ir::exchange::{self, data_from_json};
use core_ir::{Approve, Code, Data, LabelSpec, Lattice, LatticeKind, Name};
use diagnostics::{Sources, render};
use entries::machine_config;
use machine::{Config, Machine, RequestId};
use runtime::trace::{Head, Recorder, TraceStream, VERSION};
use runtime::{
    AnswerRecord, Decider, Journal, JournalError, JournalPlace, POLICY_TEXT, Played, Redactor, RunInfo,
    RunStatus, Usage,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// The version of the JSON of [`program`].
const FORMAT: u64 = 1;

/// The most bytes of the files that are kept with a program.
const MAX_SOURCES: usize = 8 << 20;

/// The program as a run keeps it: the code with its places, the files that they are in, and the path of the
/// policy, whose text is among the settings of the run. `None` if the files are too large to be kept.
pub fn program(code: &Code, policy: Option<&Policy>, sources: &Sources) -> Option<Arc<str>> {
    let core = exchange::to_json(code, sources);
    let path = |file: &Value| file.as_str().map(String::from);
    let text = |path: &str| sources.iter().find(|(_, s)| s.path == path).map_or("", |(_, s)| &*s.text);
    let files: Vec<String> = core["files"].as_array()?.iter().filter_map(path).collect();
    let rules = policy.and_then(|p| sources.get(p.file));
    if files.iter().map(|f| text(f).len()).sum::<usize>() > MAX_SOURCES {
        return None;
    }
    let texts: Vec<&str> = files.iter().map(|f| text(f)).collect();
    let kept = json!({
        "format": FORMAT, "entail": env!("CARGO_PKG_VERSION"), "core": core, "texts": texts,
        "policy": rules.map(|s| json!({"path": s.path})),
    });
    Some(kept.to_string().into())
}

/// A program for a page: its picture (`svg`, or the `error` why there is none), its most expensive path, and
/// its attack paths. `path` is that of its file.
pub fn pictured(picture: &Picture, bound: &CostBound, sources: &Sources, path: &str) -> Value {
    let mut program = drawn(picture);
    program["costPath"] = entries::bound::path(bound, sources);
    program["attacks"] = attacks(sources, path);
    program
}

fn drawn(picture: &Picture) -> Value {
    match entries::picture::svg(picture) {
        Ok(svg) => json!({"svg": svg, "error": null}),
        Err(error) => json!({"svg": null, "error": error}),
    }
}

/// The attack paths of a file among the sources: their picture, the `findings`, and a line with the counts.
/// Null for a file that an audit does not read.
#[cfg(feature = "frameworks")]
fn attacks(sources: &Sources, path: &str) -> Value {
    let given = |(_, s): (_, &diagnostics::Source)| audit::GivenFile {
        path: s.path.clone(),
        text: s.text.clone(),
        is_main: s.path == path,
    };
    let mut audit = audit::Audit::default();
    audit.project(sources.iter().map(given).collect(), |_| frontend_kit::Versions::default());
    if audit.programs.is_empty() {
        return Value::Null;
    }
    let found = audit.findings();
    let mut attacks = drawn(&audit.picture());
    attacks["findings"] = found.iter().map(|d| render::json(&audit.sources, d)).collect();
    attacks["summary"] = audit.summary(&found).into();
    attacks
}

/// This build has no front ends, so no file is read.
#[cfg(not(feature = "frameworks"))]
fn attacks(_: &Sources, _: &str) -> Value {
    Value::Null
}

/// The text of the policy of a run, from its settings; `None` for a run without a policy.
///
/// # Errors
/// The reason why it is not there.
pub(crate) fn policy_text(settings: &Value) -> Result<Option<&str>, &'static str> {
    match settings.get(POLICY_TEXT) {
        Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err("its policy was not kept, because there is a secret in it"),
        None => Err("its journal is of an earlier version, which kept no policy"),
    }
}

/// The label of the input of a run, from its settings.
pub(crate) fn input_label(settings: &Value) -> LabelSpec {
    match settings.get("inputLabel") {
        None | Some(Value::Null) => LabelSpec::BOTTOM,
        Some(label) => data_from_json(label).map_or(LabelSpec::TOP, LabelSpec::Exact),
    }
}

/// The configuration of the machine of a run, from its settings and its policy.
pub(crate) fn config(settings: &Value, policy: Option<&Policy>) -> Config {
    let mut config = machine_config(settings["fuel"].as_u64(), policy);
    config.request = settings["request"].as_str().map(Arc::from);
    config.input = input_label(settings);
    config
}

/// A principal for whom a run is shown.
#[derive(Clone, Debug)]
pub struct Reader {
    /// Its name.
    pub name: String,
    /// The most that it may see.
    pub clearance: LabelSpec,
}

impl Reader {
    /// The principal of this name: a caller of the settings with its clearance, or a reader of the labels of
    /// the run, who may see what it is among the readers of.
    ///
    /// # Errors
    /// No principal has this name; in words for people.
    pub fn named(
        name: &str,
        callers: &BTreeMap<String, CallerEntry>,
        config: &Config,
    ) -> Result<Reader, String> {
        if callers.contains_key(name) {
            let clearance = Callers::reserved(callers, name)?.clearance;
            return Ok(Reader { name: name.into(), clearance });
        }
        let readers = &config.principals.readers;
        let people = config.principals.values.values().map(|p| &p.name);
        let is_known = readers.as_ref().is_none_or(|all| all.contains(name));
        if config.lattice == LatticeKind::SourcesReaders && (is_known || people.clone().any(|p| **p == *name))
        {
            let label = [("sources", Data::str("*")), ("readers", Data::list([Data::str(name)]))];
            let label = Data::record(label.map(|(n, d)| (Name::from(n), d)));
            return Ok(Reader { name: name.into(), clearance: LabelSpec::Exact(label) });
        }
        Err(format!(
            "`{}` is no `[callers.NAME]` of the settings, and no reader of the policy of the run",
            diagnostics::visible(name, 60)
        ))
    }
}

/// A run of a journal with its program.
pub struct KeptRun {
    /// The run.
    pub info: RunInfo,
    /// The program.
    pub code: Arc<Code>,
    /// The files of the program.
    pub sources: Sources,
    /// The configuration of its machine.
    pub config: Config,
    /// The input.
    pub input: Option<Data>,
    policy: Option<Policy>,
    /// Version of Entail that kept the program.
    version: String,
}

/// A run for a page or a trace.
#[derive(Clone, Debug)]
pub struct RunDocument {
    /// Facts beside the trace.
    pub about: Value,
    /// The lines of the trace.
    pub lines: Vec<Value>,
    /// Number of each request in the trace.
    pub numbers: HashMap<RequestId, usize>,
}

impl KeptRun {
    /// Reads a run by its identifier, or by a beginning of it. Returns `None` if its program was not kept.
    ///
    /// # Errors
    /// There is no such run, or the file is damaged, or the program can't be read by this version.
    pub fn open(place: &JournalPlace, run: &str) -> Result<Option<KeptRun>, JournalError> {
        let journal = Journal::existing(place)?;
        let info = journal.run(run)?;
        let Some(kept) = journal.kept_program(&info.id)? else { return Ok(None) };
        let settings = journal.settings(&info.id)?;
        let input = journal.input(&info.id)?;
        let unreadable = |what: &str| {
            let by = kept["entail"].as_str().unwrap_or("another version");
            JournalError {
                message: format!(
                    "the program of run `{}`, kept by Entail {by}, can't be read: {what}",
                    info.id
                ),
                help: Some("`entail runs show` needs no program".into()),
            }
        };
        if kept["format"] != FORMAT {
            return Err(unreadable("its format is of another version"));
        }
        let prelude = agentlang::calculus::prelude();
        let imported = exchange::from_json(&kept["core"], &prelude).map_err(|errors| {
            unreadable(&errors.first().map_or("it is damaged".into(), ToString::to_string))
        })?;
        let mut sources = Sources::new();
        for (i, path) in imported.files.iter().enumerate() {
            sources.add(&**path, kept["texts"][i].as_str().unwrap_or_default());
        }
        let policy = match policy_text(&settings).map_err(unreadable)? {
            None => None,
            Some(text) => {
                // A run can be resumed with a policy, and its program has been kept since it began.
                let file = sources.add(kept["policy"]["path"].as_str().unwrap_or("policy.toml"), text);
                Some(
                    Policy::parse_kept(file, text)
                        .map_err(|_| unreadable("its policy is of another version"))?,
                )
            }
        };
        let mut config = config(&settings, policy.as_ref());
        config.explain_flow = true;
        let version = kept["entail"].as_str().unwrap_or_default().to_string();
        Ok(Some(KeptRun { info, code: Arc::new(imported.code), sources, config, input, policy, version }))
    }

    /// The file and the entry point of the run.
    pub fn program_and_entry(&self) -> (String, String) {
        let splits = self.info.name.match_indices(' ');
        let mut splits = splits.map(|(i, _)| (&self.info.name[..i], &self.info.name[i + 1..]));
        let is_file = |path: &str| self.sources.iter().any(|(_, s)| s.path == path);
        let found = splits.clone().find(|(path, _)| is_file(path)).or_else(|| splits.next_back());
        let (path, entry) = found.unwrap_or((&self.info.name, ""));
        (path.into(), entry.into())
    }

    /// The run as it stands, with everything, or as far as a reader may see it.
    ///
    /// # Errors
    /// The journal can't be read.
    pub fn document(
        &self,
        place: &JournalPlace,
        bound: &CostBound,
        reader: Option<&Reader>,
    ) -> Result<RunDocument, JournalError> {
        let mut recorder = Recorder::new();
        let mut view = reader.map(|reader| {
            let output = self.policy.as_ref().map_or(LabelSpec::TOP, |p| p.output.clone());
            View::new(&self.config, &[&reader.clearance, &output])
        });
        let machine = Machine::new(self.code.clone(), self.input.clone(), self.config.clone());
        let played = Journal::existing(place)?.play(&self.info.id, machine, &mut |event| {
            match &mut view {
                None => recorder.note(&event),
                Some(view) => {
                    if let Some(event) = view.event(&event) {
                        recorder.note(&event);
                    }
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(match view {
            Some(view) => self.redacted(&recorder, &view, &played),
            None => self.whole(&recorder, &played, bound),
        })
    }

    /// The first lines of the trace of the whole run: `count` of them or a few more, or all that are certain
    /// before its end.
    ///
    /// # Errors
    /// The journal can't be read.
    pub fn first_lines(&self, place: &JournalPlace, count: usize) -> Result<Vec<Value>, JournalError> {
        let redactor = Redactor::default();
        let (mut stream, head) = TraceStream::begin(&self.head(self.input.clone()), &redactor);
        let mut lines = vec![head];
        let machine = Machine::new(self.code.clone(), self.input.clone(), self.config.clone());
        let played = Journal::existing(place)?.play(&self.info.id, machine, &mut |event| {
            lines.extend(stream.note(&event, &self.sources, &redactor));
            if lines.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(with_records(lines, stream.numbers(), &played.records))
    }

    /// Facts of a document beside its lines, before anything of the run is read: no findings and no bound.
    pub fn beginning(&self) -> Value {
        json!({"bound": null, "findings": [], "run": about(&self.info), "entail": self.version})
    }

    /// The program for a page, see [`pictured`].
    pub fn program(&self, bound: &CostBound) -> Value {
        let (policy, routes) = (self.policy.as_ref(), &self.config.routes);
        let picture = entries::picture::of_term(&self.code, policy, routes, self.input.is_some());
        pictured(&picture, bound, &self.sources, &self.program_and_entry().0)
    }

    fn head(&self, input: Option<Data>) -> Head {
        let (program, entry) = self.program_and_entry();
        Head { program, entry, input }
    }

    /// Everything.
    fn whole(&self, recorder: &Recorder, played: &Played, bound: &CostBound) -> RunDocument {
        let Played { report, is_over, records, differs } = played;
        let mut lines = recorder.lines(&self.head(self.input.clone()), &self.sources, report);
        let (code, policy) = (&*self.code, self.policy.as_ref());
        let mut found = refused_calls(report, code, policy);
        let has_failed = self.info.status == RunStatus::Failed;
        if let (Err(failure), true, true) = (&report.result, is_over, has_failed) {
            found.push(as_diagnostic(failure, report, code, policy));
        }
        if !is_over {
            lines.pop();
            lines.extend(end_of(&self.info, &report.usage));
        }
        let numbers = recorder.numbers();
        let lines = with_records(lines, &numbers, records);
        let findings: Vec<Value> = found.iter().map(|d| render::json(&self.sources, d)).collect();
        let mut about = self.beginning();
        about["bound"] = as_json(&self.sources, report, bound)["bound"].take();
        about["findings"] = findings.into();
        about["differs"] = json!(differs);
        RunDocument { about, lines, numbers }
    }

    /// The part that a reader may see.
    fn redacted(&self, recorder: &Recorder, view: &View, played: &Played) -> RunDocument {
        let outcome = if played.is_over { view.outcome(&played.report) } else { None };
        let mut lines = match &outcome {
            Some(report) => recorder.lines(&self.head(None), &self.sources, report),
            None => recorder.lines(&self.head(None), &self.sources, &played.report),
        };
        if outcome.is_none() {
            // The end and what is behind the last request are of the report that may not be shown.
            lines.retain(|line| !matches!(line["event"].as_str(), Some("value" | "end")));
            let error = json!({"code": WITHHELD, "message": WITHHELD_MESSAGE});
            lines.push(json!({"event": "end", "error": error, "label": null, "usage": usage(view.used())}));
        }
        let about = json!({"bound": null, "findings": [], "run": {"id": self.info.id}, "redacted": true});
        RunDocument { about, lines, numbers: recorder.numbers() }
    }
}

/// Facts about a run beside what happened in it.
fn about(info: &RunInfo) -> Value {
    json!({
        "id": info.id, "name": info.name, "created": info.created, "ended": info.ended,
        "status": info.status.as_str(), "parent": info.parent,
    })
}

/// The end of a run whose program did not end: a limit or an interruption.
fn end_of(info: &RunInfo, used: &Usage) -> Option<Value> {
    let outcome = info.outcome.as_ref()?;
    let mut line = json!({"event": "end", "label": null, "usage": usage(used)});
    match info.status {
        RunStatus::Running => return None,
        RunStatus::Done => line["result"] = outcome.clone(),
        RunStatus::Failed | RunStatus::Stopped => {
            line["error"] = json!({"code": outcome["error"], "message": outcome["message"]});
        }
    }
    Some(line)
}

/// Usage as the last line of a trace has it.
fn usage(u: &Usage) -> Value {
    json!({
        "modelCalls": u.model_calls, "toolCalls": u.tool_calls, "questions": u.questions,
        "inputTokens": u.input_tokens, "outputTokens": u.output_tokens,
        "usd": u.usd.as_ref().map(core_ir::Num::to_json), "unpriced": u.unpriced, "steps": null,
    })
}

/// Puts what the journal has of an answer behind its line.
fn with_records(
    lines: Vec<Value>,
    numbers: &HashMap<RequestId, usize>,
    records: &HashMap<RequestId, AnswerRecord>,
) -> Vec<Value> {
    let records: HashMap<usize, &AnswerRecord> =
        records.iter().filter_map(|(id, record)| Some((*numbers.get(id)?, record))).collect();
    let mut out = Vec::with_capacity(lines.len() + records.len());
    for line in lines {
        let n = line["n"].as_u64().and_then(|n| usize::try_from(n).ok());
        let record = n.filter(|_| line["event"] == "response").and_then(|n| Some((n, records.get(&n)?)));
        out.push(line);
        out.extend(record.map(|(n, r)| {
            let mut line = kept_line(n, r.step, (r.written, r.elapsed), r.by.as_ref());
            if let Some(retries) = &r.retries {
                line[RETRIES] = retries.to_json();
            }
            line
        }));
    }
    out
}

/// The field with the attempts that failed before an answer, in journals and in lines of traces.
const RETRIES: &str = "retries";

/// The line of what the journal has of an answer.
fn kept_line(n: usize, step: u64, (at, took): (Option<i64>, Duration), by: Option<&Decider>) -> Value {
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let mut line = json!({"event": "kept", "n": n, "step": step, "at": at, "ms": ms});
    if let Some(by) = by {
        line["by"] = json!({"name": by.name, "via": by.via.as_str()});
    }
    line
}

/// A run whose program was not kept: the requests and answers of the journal, without labels and places.
///
/// # Errors
/// There is no such run, or the file is damaged.
pub fn without_program(place: &JournalPlace, run: &str) -> Result<RunDocument, JournalError> {
    let journal = Journal::existing(place)?;
    let info = journal.run(run)?;
    let input = journal.input(&info.id)?.as_ref().map(Data::to_json);
    let (program, entry) = info.name.rsplit_once(' ').unwrap_or((&info.name, ""));
    let mut lines = vec![json!({
        "event": "run", "version": VERSION, "program": program, "entry": entry, "input": input,
    })];
    let mut used = Usage::default();
    let mut n = 0;
    journal.each_step(&info.id, &mut |step| {
        n += 1;
        let mut request = Map::new();
        request.insert("event".into(), "request".into());
        request.insert("n".into(), n.into());
        if let Value::Object(fields) = step.request {
            request.extend(fields);
        }
        match request.get("kind").and_then(Value::as_str) {
            Some("model") => {
                used.model_calls += 1;
                used.input_tokens = used.input_tokens.saturating_add(step.tokens.0);
                used.output_tokens = used.output_tokens.saturating_add(step.tokens.1);
                request.insert("model".into(), step.model.clone().into());
            }
            Some("tool") => used.tool_calls += 1,
            Some("approve") => used.questions += 1,
            _ => {}
        }
        lines.push(Value::Object(request));
        let Some(Value::Object(mut response)) = step.response else { return };
        if let Some(tool) = response.remove("call") {
            response.insert("tool".into(), tool);
        }
        let mut line = Map::new();
        line.insert("event".into(), "response".into());
        line.insert("n".into(), n.into());
        line.extend(response);
        let (by, retries) = (line.remove("by"), line.remove(RETRIES));
        lines.push(Value::Object(line));
        let mut kept = kept_line(n, step.step, (step.written, step.elapsed), None);
        if let Some(by) = by {
            kept["by"] = by;
        }
        if let Some(retries) = retries {
            kept[RETRIES] = retries;
        }
        lines.push(kept);
    })?;
    used.usd = None;
    lines.extend(end_of(&info, &used));
    let about = json!({"bound": null, "findings": [], "run": about(&info), "unlabeled": true});
    Ok(RunDocument { about, lines, numbers: HashMap::new() })
}

/// Why a call is asked about.
#[derive(Clone, Debug, PartialEq)]
pub enum AskedBecause {
    /// The policy wants approval of every call of the tool.
    Always,
    /// These parts of the call break the bound that the policy sets: arguments, or `control` for the decision
    /// to make the call.
    /// None of them, if the policy function of the tool leaves the call to a person.
    Refused(Vec<BrokenBound>),
    /// The tool isn't one of the program's.
    Unknown,
}

/// A part of a call whose label is above the bound of the tool.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokenBound {
    /// The argument, or `control`.
    pub part: String,
    /// Its label.
    pub label: Data,
    /// The bound.
    pub bound: Data,
}

impl KeptRun {
    /// Tells why a question is asked, from the tool and the labels of its arguments and of the decision to
    /// make the call.
    pub fn asked_because(&self, question: &runtime::Waiting, control: &Data) -> AskedBecause {
        let Some(tool) = self.code.tools.iter().find(|t| *t.name == *question.tool) else {
            return AskedBecause::Unknown;
        };
        if tool.approve == Approve::Always {
            return AskedBecause::Always;
        }
        let mut lattice = Lattice::with_principals(self.config.lattice, &self.config.principals);
        let mut broken = |part: &str, label: &Data, bound: &LabelSpec| {
            let label = lattice.label_of(label)?;
            let bound = lattice.resolve(bound)?;
            let breaks = !lattice.flows(label, bound);
            breaks.then(|| BrokenBound {
                part: part.into(),
                label: lattice.data_of(label),
                bound: lattice.data_of(bound),
            })
        };
        let args = question.args.as_array().map(Vec::as_slice).unwrap_or_default();
        let of_arg = |arg: &Value| {
            let param = tool.params.iter().find(|p| Some(&*p.name) == arg["name"].as_str())?;
            broken(&param.name, &data_from_json(&arg["label"]).ok()?, &param.bound)
        };
        let mut all: Vec<BrokenBound> = args.iter().filter_map(of_arg).collect();
        all.extend(broken("control", control, &tool.control));
        AskedBecause::Refused(all)
    }
}
