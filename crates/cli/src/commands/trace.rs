//! `entail trace`: what happened in a run, from a file that `--trace` wrote, from a journal, or by running a
//! program; and what a guard decided, from the file that `entail guard --log` writes.
//!
//! A run of a journal is shown from what was kept: its program says again where it asked for the answers, and
//! under which labels.

use super::run::{InputArgs, Running, before_run, conclude, input, world};
use super::why;
use super::{choose, say_problem, worth_saying};
use crate::args::TraceArgs;
use crate::setup;
use crate::ui::{Exit, Ui};
use diagnostics::{Sources, render};
use entries::picture;
use runtime::trace::{Head, Recorder, VERSION};
use runtime::{Importance, Journal, JournalError, JournalPlace};
use serde_json::{Value, json};
use session::guard_log::GuardLog;
use session::kept::{self, KeptRun, Reader, RunDocument};
use session::load::{Kind, Loaded, read_data, replace_file};
use session::report::{as_diagnostic, as_json, refused_calls};
use session::{Approvals, JournalMode, JournalOptions, RunEvent, Session, machine_config};
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

/// The most columns of a line that shows a value.
const WIDTH: usize = 100;
/// The most columns of an error.
const MAX_ERROR: usize = 600;

/// The page of a run, made from `web/src/trace.html` by `scripts/site`. The lines of the run stand where the
/// marker does.
const PAGE: &str = include_str!("../../assets/trace.html");
const MARKER: &str = "%TRACE%";

/// A trace, with what is known of its run beside it.
struct Traced {
    lines: Vec<Value>,
    /// The exit status of the run.
    exit: Exit,
    /// The bound of the run, and its end in words; of a trace that was read they are not known.
    about: Value,
}

impl Traced {
    fn of_file(lines: Vec<Value>) -> Traced {
        Traced { lines, exit: Exit::Done, about: json!({"bound": null, "findings": []}) }
    }

    fn of_document(document: RunDocument) -> Traced {
        let RunDocument { about, lines, .. } = document;
        Traced { lines, exit: Exit::Done, about }
    }
}

/// Runs the command.
pub fn trace(ui: &Ui, args: &TraceArgs) -> Exit {
    #[cfg(feature = "engine")]
    if let Some(engine) = &args.engine {
        return super::engine::trace(ui, engine, &args.file);
    }
    if args.reader.is_some() && !is_run(args) {
        let help = "`entail run FILE --journal DIR` keeps runs; name one by the beginning of its identifier";
        return ui.usage("`--for` shows runs of a journal", Some(help));
    }
    let found = match () {
        () if is_guard_log(&args.file) => of_guard(ui, args),
        () if is_trace(&args.file) => read(ui, &args.file),
        () if is_run(args) => of_journal(ui, args),
        () => run(ui, args),
    };
    let Traced { lines, exit, about } = match found {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let shown = if let Some(file) = &args.html {
        page(ui, file, &lines, &about)
    } else if let (Some(value), true) = (&args.why, args.json || ui.is_json()) {
        why::found(ui, &lines, value).map(|found| found.iter().for_each(|w| ui.result(&w.to_string())))
    } else if args.json || ui.is_json() {
        lines.iter().for_each(|l| ui.result(&l.to_string()));
        Ok(())
    } else if let Some(n) = args.step {
        step(ui, &lines, n)
    } else if let Some(value) = &args.why {
        why::show(ui, &lines, value)
    } else if args.timeline {
        timeline(ui, &lines);
        Ok(())
    } else {
        show_all(ui, &lines, if args.all { Minor::Shown } else { Minor::Folded });
        Ok(())
    };
    match shown {
        Ok(()) => exit,
        Err(exit) => exit,
    }
}

/// Writes a run as a page that needs nothing else. Whatever is in a text of the run, the page shows it as
/// text: the lines stand in an element of data that no text can end, because no `<` is in it.
pub(super) fn write_page(out: &mut dyn Write, lines: &[Value], about: &Value) -> std::io::Result<()> {
    let (before, after) = PAGE.split_once(MARKER).unwrap_or((PAGE, ""));
    out.write_all(before.as_bytes())?;
    for line in std::iter::once(about).chain(lines) {
        writeln!(out, "{}", line.to_string().replace('<', "\\u003c"))?;
    }
    out.write_all(after.as_bytes())
}

/// Writes a run as a page into a file.
fn page(ui: &Ui, file: &Path, lines: &[Value], about: &Value) -> Result<(), Exit> {
    let mut text = Vec::new();
    let written = write_page(&mut text, lines, about).and_then(|()| replace_file(file, &text));
    written.map_err(|e| ui.cannot_write(file.display(), &e))?;
    ui.note(&format!("wrote `{}`", file.display()));
    Ok(())
}

/// Returns true if a file is a trace, by its extension or its first line.
fn is_trace(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|e| e == "jsonl")
        || read_data(path).is_ok_and(|bytes| bytes.starts_with(b"{\"event\":\"run\""))
}

/// Returns true if a file has decisions of a guard, by its first line.
fn is_guard_log(path: &str) -> bool {
    const ENOUGH: usize = 64 << 10;
    let is_text = |bytes: &[u8]| bytes.starts_with(b"{");
    read_data(path).is_ok_and(|bytes| {
        is_text(&bytes) && GuardLog::is_one(&String::from_utf8_lossy(&bytes[..bytes.len().min(ENOUGH)]))
    })
}

/// Shows a session of a guard: the one that is named, or the last one that was decided about.
fn of_guard(ui: &Ui, args: &TraceArgs) -> Result<Traced, Exit> {
    let bytes = read_data(&args.file).map_err(|e| ui.cannot_read(&args.file, &e))?;
    let log = GuardLog::read(&String::from_utf8_lossy(&bytes));
    if log.foreign > 0 {
        let lines = super::plural(log.foreign, "line");
        ui.note(&format!("{lines} of `{}` not read: no decisions of a guard", args.file));
    }
    let session = match &args.input {
        Some(name) => log.session(name).ok_or_else(|| {
            let known: Vec<&str> = log.sessions.iter().rev().take(8).map(|s| &*s.id).collect();
            let help = format!("the last ones are {}", known.join(", "));
            ui.usage(&format!("no session, or several, whose name begins with `{name}`"), Some(&help))
        })?,
        None => {
            let last = log.sessions.iter().max_by(|a, b| a.last.total_cmp(&b.last));
            let last = last.ok_or_else(|| ui.usage("the file has no decisions", None))?;
            let others = log.sessions.len() - 1;
            if others > 0 {
                let others = super::plural(others, "other session");
                ui.note(&format!("the last session of {others}; name one after the file"));
            }
            last
        }
    };
    Ok(Traced::of_document(session.document()))
}

/// Returns true if what is named can only be a run: identifiers are hexadecimal.
fn is_run(args: &TraceArgs) -> bool {
    args.file.chars().all(|c| c.is_ascii_hexdigit()) && !Path::new(&args.file).exists()
}

/// Shows a run of a journal from what was kept of it. That the run failed does not make showing it a failure.
fn of_journal(ui: &Ui, args: &TraceArgs) -> Result<Traced, Exit> {
    let place = setup::journal(ui, &args.journal)?.or_file();
    let refused = |e: JournalError| ui.usage(&e.message, e.help.as_deref());
    let Some(run) = KeptRun::open(&place, &args.file).map_err(refused)? else {
        return unkept(ui, args, &place);
    };
    let session = session_of(ui, args)?;
    let reader = args.reader.as_deref().map(|name| {
        let help = "`--for` takes a caller of `entail.toml`, or a reader that the policy names";
        let reader = Reader::named(name, &session.settings.callers, &run.config);
        reader.map_err(|why| ui.usage(&why, Some(help)))
    });
    let reader = reader.transpose()?;
    let bound = session.bound(&run.code, run.input.is_some());
    let mut document = run.document(&place, &bound, reader.as_ref()).map_err(refused)?;
    if args.html.is_some() && reader.is_none() {
        document.about["program"] = run.program(&bound);
    }
    if let Some(why) = document.about["differs"].as_str() {
        ui.note(&format!("warning: not all of the run can be shown by this version: {why}"));
    }
    Ok(Traced::of_document(document))
}

/// Shows a run whose program was not kept: with the files of the program, if they are here.
fn unkept(ui: &Ui, args: &TraceArgs, place: &JournalPlace) -> Result<Traced, Exit> {
    let refused = |e: JournalError| ui.usage(&e.message, e.help.as_deref());
    if args.reader.is_some() {
        let what = "the program of this run was not kept, so the labels of its data are not known";
        return Err(ui.usage(what, Some("runs that this version of `entail` begins keep their programs")));
    }
    let info = Journal::existing(place).and_then(|j| j.run(&args.file)).map_err(refused)?;
    // The name is the program's path and that of what was run; both may have spaces.
    let splits = info.name.match_indices(' ').map(|(i, _)| (&info.name[..i], &info.name[i + 1..]));
    let Some((path, entry)) = splits.rev().find(|(path, _)| Path::new(path).exists()) else {
        ui.note("the program of this run was not kept: labels and places are not known");
        return Ok(Traced::of_document(kept::without_program(place, &info.id).map_err(refused)?));
    };
    let input = Journal::existing(place).and_then(|j| j.input(&info.id)).map_err(refused)?;
    let mut sources = Sources::new();
    let session = session_of(ui, args)?;
    let Loaded { runnables, policy, .. } =
        session.load(&mut sources, path).map_err(|problem| say_problem(ui, &sources, problem))?;
    let runnable = choose(ui, path, &runnables, Some(entry))?;
    let head = Head { program: path.to_string(), entry: entry.to_string(), input };
    let mode = JournalMode::Replay { place: place.clone(), run: Some(info.id) };
    let journal = JournalOptions { mode, approvals: Approvals::Wait };
    let running = Running {
        session: &session,
        args: &args.world,
        code: &runnable.code,
        policy: policy.as_ref(),
        input: head.input.clone(),
        request: None,
        plan: None,
        journal: Some((journal, info.name.clone())),
        models: None,
        follows: None,
        limits: None,
        sources: None,
    };
    let traced = recorded(ui, args, running, &sources, &head)?;
    Ok(Traced { exit: Exit::Done, ..traced })
}

/// Shows a whole trace.
/// Treatment of steps of little importance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Minor {
    /// Several in a row are one line.
    Folded,
    /// They are shown as all others.
    Shown,
}

/// Fewest steps of little importance that are folded, as in the pages.
const MIN_FOLDED: usize = 3;

pub(super) fn show_all(ui: &Ui, lines: &[Value], minor: Minor) {
    let mut rest = lines;
    while let Some(first) = rest.first() {
        let steps = if minor == Minor::Folded { minor_steps(rest) } else { Vec::new() };
        if steps.len() >= MIN_FOLDED {
            folded(ui, &steps);
            rest = rest.get(steps.iter().map(|step| step.len()).sum()..).unwrap_or_default();
        } else {
            show(ui, first);
            rest = rest.get(1..).unwrap_or_default();
        }
    }
}

/// The steps of little importance that the lines begin with, each with its lines.
fn minor_steps(lines: &[Value]) -> Vec<&[Value]> {
    let (mut steps, mut rest) = (Vec::new(), lines);
    while let Some(first) = rest.first().filter(|line| text_of(line, "event") == "request") {
        let same = |line: &&Value| {
            line["n"] == first["n"] && matches!(text_of(line, "event"), "request" | "response" | "kept")
        };
        let (step, after) = rest.split_at(rest.iter().take_while(same).count());
        if !step.iter().any(|line| text_of(line, "importance") == Importance::MINOR) {
            break;
        }
        steps.push(step);
        rest = after;
    }
    steps
}

/// Shows steps of little importance as one line.
fn folded(ui: &Ui, steps: &[&[Value]]) {
    let requests: Vec<&Value> = steps.iter().filter_map(|step| step.first()).collect();
    let mut names: Vec<String> = Vec::new();
    for request in &requests {
        let name = match text_of(request, "kind") {
            "sample" => "sample".to_string(),
            kind => format!("{kind} {}.{}", text_of(request, "store"), text_of(request, "key")),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let numbers = (requests.first().map(|r| &r["n"]), requests.last().map(|r| &r["n"]));
    let (Some(from), Some(to)) = numbers else { return };
    let more = if names.len() > MAX_NAMES { ", …" } else { "" };
    names.truncate(MAX_NAMES);
    let names = format!("{}{more}", names.join(", "));
    let text = format!("{from} to {to}: {} minor requests ({names})", steps.len());
    ui.result(&format!("      {}", short(&text.into(), 6)));
}

/// The most names of a line of folded steps.
const MAX_NAMES: usize = 3;

/// Reads a trace. That the run failed does not make showing it a failure.
fn read(ui: &Ui, path: &str) -> Result<Traced, Exit> {
    let bytes = read_data(path).map_err(|e| ui.cannot_read(path, &e))?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let line: Value = serde_json::from_str(line)
            .map_err(|e| ui.usage(&format!("`{path}`, line {}: not JSON: {e}", i + 1), None))?;
        lines.push(line);
    }
    let head = lines.first().filter(|l| text_of(l, "event") == "run");
    let help = "traces are written by `entail run FILE --trace TRACE`";
    match head.map(|l| &l["version"]) {
        Some(v) if *v == VERSION => {
            if !lines.iter().any(|l| text_of(l, "event") == "end") {
                ui.note("this trace has no end: the run goes on, or its process was killed");
            }
            Ok(Traced::of_file(lines))
        }
        Some(v) => Err(ui.usage(&format!("`{path}` is a trace of version {v}, not {VERSION}"), None)),
        None => Err(ui.usage(&format!("`{path}` is not a trace"), Some(help))),
    }
}

/// Runs a program; gives its trace and the exit status of the run.
fn run(ui: &Ui, args: &TraceArgs) -> Result<Traced, Exit> {
    let mut sources = Sources::new();
    let session = session_of(ui, args)?;
    let Loaded { runnables: all, found, policy, .. } =
        session.load(&mut sources, &args.file).map_err(|problem| say_problem(ui, &sources, problem))?;
    if !ui.is_json() {
        ui.problems(&sources, &worth_saying(ui, found));
    }
    let runnable = choose(ui, &args.file, &all, args.pipeline.as_deref())?;
    let input = match (Kind::of(&args.file), &args.input) {
        (Kind::Lam | Kind::Plan, None) => None,
        _ => {
            let given = InputArgs {
                command: format!("trace {}", args.file),
                given: args.input.as_ref(),
                option: None,
            };
            input(ui, given, runnable)?
        }
    };
    before_run(ui, &sources, &session, Kind::of(&args.file), runnable, policy.as_ref())?;
    let head = Head { program: args.file.clone(), entry: runnable.name.clone(), input };
    let running = Running {
        session: &session,
        args: &args.world,
        code: &runnable.code,
        policy: policy.as_ref(),
        input: head.input.clone(),
        request: None,
        plan: None,
        journal: None,
        models: None,
        follows: None,
        limits: None,
        sources: None,
    };
    recorded(ui, args, running, &sources, &head)
}

/// The session of a run that is traced.
fn session_of(ui: &Ui, args: &TraceArgs) -> Result<Session, Exit> {
    let mut session = setup::session(ui, &args.world)?;
    session.options.explain_flow |= args.why.is_some() || args.html.is_some();
    Ok(session)
}

/// Runs or replays what can be run; gives its trace and the exit status of the run.
fn recorded(
    ui: &Ui,
    args: &TraceArgs,
    running: Running<'_>,
    sources: &Sources,
    head: &Head,
) -> Result<Traced, Exit> {
    let bound = running.session.bound(running.code, head.input.is_some());
    let mut recorder = Recorder::new();
    let mut watch = |event: RunEvent<'_>| recorder.note(event.kept);
    let (code, policy) = (running.code, running.policy);
    let (report, _) = world(ui, running, &mut watch)?;
    let mut found = refused_calls(&report, code, policy);
    if let Err(failure) = &report.result {
        found.push(as_diagnostic(failure, &report, code, policy));
    }
    let findings: Vec<Value> = found.iter().map(|d| render::json(sources, d)).collect();
    let mut about = json!({"bound": as_json(sources, &report, &bound)["bound"], "findings": findings});
    if args.html.is_some() {
        let routes = machine_config(None, policy).routes;
        let picture = picture::of_term(code, policy, &routes, head.input.is_some());
        about["program"] = kept::pictured(&picture, &bound, sources, &head.program);
    }
    report.records.json(&mut about);
    let lines = recorder.lines(head, sources, &report);
    Ok(Traced { lines, exit: conclude(ui, &report, &bound), about })
}

pub(super) fn text_of<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or("")
}

/// A value on one line, cut to what fits after `used` columns.
fn short(value: &Value, used: usize) -> String {
    cut(value, WIDTH.saturating_sub(used))
}

/// A value on one line of at most `room` columns.
fn cut(value: &Value, room: usize) -> String {
    let text = match value {
        Value::String(s) => s.split_whitespace().collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    };
    let most = room.max(20);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

pub(super) fn place(line: &Value) -> String {
    match (line["path"].as_str(), line["line"].as_u64(), line["column"].as_u64()) {
        (Some(path), Some(l), Some(c)) => format!("{path}:{l}:{c}"),
        _ => String::new(),
    }
}

/// Describes a request in one line.
fn asked(line: &Value) -> String {
    match text_of(line, "kind") {
        "model" => {
            let purpose = line["purpose"].as_str().map_or(String::new(), |p| format!(" for `{p}`"));
            let again = line["attempt"].as_u64().map_or(String::new(), |n| format!(", repair {n}"));
            format!("model {}{purpose}{again}", text_of(line, "model"))
        }
        kind @ ("tool" | "approve") if line["args"].is_null() => format!("{kind} {}", text_of(line, "tool")),
        kind @ ("tool" | "approve") => format!("{kind} {} {}", text_of(line, "tool"), line["args"]),
        "recall" => format!("recall {}.{}", text_of(line, "store"), text_of(line, "key")),
        "remember" => {
            format!("remember {}.{} = {}", text_of(line, "store"), text_of(line, "key"), line["value"])
        }
        "sample" => format!("sample, true with probability {}", line["probability"]),
        other => format!("{other} {}", text_of(line, "tool")).trim_end().to_string(),
    }
}

/// Returns the answer to a request, without its tokens.
fn answered(line: &Value) -> (String, Value) {
    for key in ["error", "stopped"] {
        if !line[key].is_null() {
            return (format!("{key}: "), line[key].clone());
        }
    }
    if line["late"] == true {
        return ("too late".into(), Value::from(""));
    }
    match (
        line.get("tool"),
        line.get("reply").or(line.get("calls")).or(line.get("data")).or(line.get("sample")),
    ) {
        (Some(tool), _) => (format!("calls {} ", tool.as_str().unwrap_or("")), line["args"].clone()),
        (None, Some(value)) => (String::new(), value.clone()),
        (None, None) => (String::new(), Value::Null),
    }
}

fn show(ui: &Ui, line: &Value) {
    match text_of(line, "event") {
        "run" => {
            let input = if line["input"].is_null() { String::new() } else { short(&line["input"], 10) };
            ui.result(&format!("{}: {} {input}", text_of(line, "program"), text_of(line, "entry")));
        }
        "request" => {
            let n = line["n"].as_u64().unwrap_or(0);
            let deep = line["place"].as_array().map_or(0, |p| p.len() / 3);
            let lane = "| ".repeat(deep);
            let what = asked(line);
            let channel = if line["channel"] == serde_json::json!([]) {
                String::new()
            } else {
                format!("  channel {}", line["channel"])
            };
            let head = format!("{n:>4}  {lane}{}", short(&what.into(), 40));
            ui.result(&format!("{head:<58}  {}{channel}", place(line)));
            for choice in line["choices"].as_array().into_iter().flatten() {
                let params = choice["params"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let params: Vec<String> = params.map(|p| format!("`{p}`")).collect();
                let which = params.join(" and ");
                let below = choice["below"].as_array().map(|places| {
                    let places = places.iter().filter_map(Value::as_str);
                    format!("any below {}", places.collect::<Vec<_>>().join(" or "))
                });
                let from = below.unwrap_or_else(|| format!("one of {}", choice["of"]));
                ui.result(&format!("      {lane}  an attacker may choose {which}: {from}"));
            }
            for message in line["messages"].as_array().into_iter().flatten() {
                let role = text_of(message, "role");
                let said = message.get("content").cloned().unwrap_or_else(|| {
                    format!("calls {} {}", text_of(message, "tool"), message["args"]).into()
                });
                let said = short(&said, 20 + lane.len());
                ui.result(&format!("      {lane}  {} {said}", ui.styled("36", &format!("{role}:"))));
            }
        }
        "response" => {
            let (how, value) = answered(line);
            let tokens = match (line["inputTokens"].as_u64(), line["outputTokens"].as_u64()) {
                (Some(i), Some(o)) => format!("   ({i} tokens in, {o} out)"),
                _ => String::new(),
            };
            // Why something failed is worth several lines of the terminal.
            let room = match line["error"].is_string() {
                true => MAX_ERROR,
                false => WIDTH.saturating_sub(10 + how.len() + tokens.len()),
            };
            ui.result(&format!("      <- {how}{}{tokens}", cut(&value, room)));
        }
        "endorsement" => {
            let labeled: Vec<String> = line["args"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|arg| arg["label"] != serde_json::json!([]))
                .map(|arg| format!("{} {}", text_of(arg, "name"), arg["label"]))
                .collect();
            let what = if labeled.is_empty() { "nothing with a label".into() } else { labeled.join(", ") };
            let by = match (line["by"]["name"].as_str(), line["by"]["via"].as_str()) {
                (Some(name), Some(via)) => format!(", by {} ({via})", diagnostics::visible(name, 60)),
                _ => String::new(),
            };
            ui.result(&format!(
                "      {}: {}{by}",
                ui.styled("1", "endorsed for this call"),
                short(&what.into(), 30 + by.len())
            ));
        }
        "phase" => {
            let phase = text_of(line, "phase");
            let detail = match phase {
                "think" => {
                    let heading = format!("{}, step {}", text_of(line, "agent"), line["step"]);
                    return ui.result(&format!("  {}", ui.styled("1", &format!("{heading}: think"))));
                }
                "parse" => if line["ok"] == true { "" } else { ": it does not decode" }.to_string(),
                "route" => format!(": {}", text_of(line, "to")),
                "invoke" if line["refused"] == true => {
                    format!(": {} is refused", text_of(line, "tool"))
                }
                "invoke" => format!(": {}", text_of(line, "tool")),
                "observe" => {
                    let how = if line["ok"] == true { "" } else { "error, " };
                    let seen = short(&line["shown"], 30);
                    if line["shown"].is_null() { String::new() } else { format!(": {how}{seen}") }
                }
                "check" => if line["again"] == true { ": another step" } else { ": the end" }.to_string(),
                _ => String::new(),
            };
            ui.result(&format!("      {}{detail}", ui.styled("1", phase)));
        }
        "end" => {
            let label = if line["label"] == serde_json::json!([]) {
                String::new()
            } else {
                format!("  label {}", line["label"])
            };
            match line.get("error") {
                Some(error) => {
                    let place = place(error);
                    ui.result(&format!(
                        "error {}: {}{label}  {place}",
                        text_of(error, "code"),
                        short(&error["message"], 30)
                    ));
                }
                None => ui.result(&format!("result {}{label}", short(&line["result"], 8))),
            }
            let u = &line["usage"];
            ui.result(&format!(
                "{}, {}, {} tokens in, {} out, {} of the machine",
                counted(&u["modelCalls"], "model call"),
                counted(&u["toolCalls"], "tool call"),
                u["inputTokens"],
                u["outputTokens"],
                counted(&u["steps"], "step")
            ));
        }
        // What only a journal knows is for pages.
        "kept" => {}
        "replan" => {
            let place = line["line"].as_u64().map_or(String::new(), |n| format!(" in line {n}"));
            let calls = line["made"].as_array().map_or(0, Vec::len);
            let calls = match calls {
                0 => String::new(),
                n => format!(", and {}", super::plural(n, "call")),
            };
            let bits = session::report::shown_bits(line["bits"].as_f64().unwrap_or(0.0));
            ui.result(&format!("the planner is told {}{place}{calls}: {bits}", text_of(line, "code")));
        }
        _ => ui.result(&line.to_string()),
    }
}

fn counted(n: &Value, what: &str) -> String {
    super::plural(n.as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0), what)
}

/// Everything about one request, nothing cut.
fn step(ui: &Ui, lines: &[Value], n: usize) -> Result<(), Exit> {
    let about: Vec<&Value> = lines.iter().filter(|l| l["n"].as_u64() == Some(n as u64)).collect();
    let all = lines.iter().filter(|l| text_of(l, "event") == "request").count();
    if about.is_empty() {
        return Err(ui.usage(&format!("unknown request {n}"), Some(&format!("the run made {all}"))));
    }
    for line in about {
        match text_of(line, "event") {
            "request" => {
                ui.result(&format!("request {n}: {}", asked(line)));
                ui.result(&format!("  at {}, channel {}", place(line), line["channel"]));
                if let Some(tools) = line["tools"].as_array() {
                    let names: Vec<&str> = tools.iter().filter_map(Value::as_str).collect();
                    ui.result(&format!("  tools offered: {}", names.join(", ")));
                }
                if let Some(earlier) = line["earlier"].as_u64() {
                    ui.result(&format!("  after {earlier} earlier messages"));
                }
                for message in line["messages"].as_array().into_iter().flatten() {
                    let said = message["content"]
                        .as_str()
                        .map(String::from)
                        .unwrap_or_else(|| format!("calls {} {}", text_of(message, "tool"), message["args"]));
                    ui.result(&format!("  {}:", text_of(message, "role")));
                    said.lines().for_each(|l| ui.result(&format!("    {l}")));
                }
            }
            "response" => {
                let (how, value) = answered(line);
                let text = value.as_str().map_or_else(|| value.to_string(), String::from);
                ui.result(&format!("response: {how}{text}"));
            }
            _ => show(ui, line),
        }
    }
    Ok(())
}

/// A request in logical time: it begins when everything that it had to wait for has been answered.
struct Span<'a> {
    line: &'a Value,
    begin: usize,
}

fn timeline(ui: &Ui, lines: &[Value]) {
    let mut spans: Vec<Span> = Vec::new();
    // The end of the last request of each place.
    let mut ends: HashMap<Vec<u64>, usize> = HashMap::new();
    for line in lines.iter().filter(|l| text_of(l, "event") == "request") {
        let place: Vec<u64> =
            line["place"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        let begin = ends.iter().filter(|(p, _)| !beside(p, &place)).map(|(_, end)| *end).max().unwrap_or(0);
        // It begins after those of its own place.
        ends.insert(place, begin + 1);
        spans.push(Span { line, begin });
    }
    let end = spans.iter().map(|s| s.begin + 1).max().unwrap_or(0);
    // Of long runs several steps share a column.
    let width = (end * 6).min(BARS);
    let column = |step: usize| step * width / end.max(1);
    ui.result(&format!("{}, at most {end} of them one after another", super::plural(spans.len(), "request")));
    for span in &spans {
        let n = span.line["n"].as_u64().unwrap_or(0);
        let from = column(span.begin);
        let bar = format!("{}{}", " ".repeat(from), "=".repeat((column(span.begin + 1) - from).max(1)));
        let what = short(&asked(span.line).into(), WIDTH.saturating_sub(80) + width + 8);
        ui.result(&format!("{n:>4} |{bar:<width$}| {what}"));
    }
}

/// The columns of the bars of a timeline; what is beside them fits a usual terminal.
const BARS: usize = 36;

/// Returns true if two requests are of different branches of one `par`.
fn beside(a: &[u64], b: &[u64]) -> bool {
    for (x, y) in a.chunks(3).zip(b.chunks(3)) {
        match (x, y) {
            ([i, j, p], [k, l, q]) if i == k && j == l => {
                if p != q {
                    return true;
                }
            }
            _ => return false,
        }
    }
    false
}
