//! `entail repl`: terms of the calculus line by line, with definitions that are kept.
//!
//! Entry point: [`repl`]. [`Repl`] is what is kept; [`input`] reads lines and puts them together to inputs.
//!
//! Invariant: each input is a program of its own, put together from what is kept and what was typed, and is
//! read, checked and run by what reads, checks and runs programs everywhere; every place stays that of the
//! input or file it was typed in.
//! Invariant: no request to a model, tool or store is repeated: a definition that makes requests is kept as
//! its value.
//! Invariant: what is kept changes only by a definition that was accepted.

mod input;

use super::{cost as costs, run, say_problem, trace, worth_saying};
use crate::args::{ReplArgs, WorldArgs};
use crate::interrupt;
use crate::setup;
use crate::ui::{Exit, Ui};
use ::policy::Policy;
use analysis::types;
use core_ir::{Builder, Code, Data, EffectRow, Globals, Name, TermId, Type};
use diagnostics::{FileId, Sources, Span, has_errors};
use input::{Input, ParsedInput};
use machine::{Reified, ReifiedKind};
use runtime::Models;
use runtime::trace::{Head, Recorder};
use serde_json::json;
use session::load::{self, Kind, Options, Problem, read_text};
use session::view::Ran;
use session::{Session, policy};
use std::collections::HashSet;
use std::sync::Arc;
use syntax::lam::{Item, ItemKind, Part};

/// Commands of the session, each with its arguments and its description.
const COMMANDS: &[(&str, &str, &str)] = &[
    ("type", "TERM", "the type of a term"),
    ("effects", "TERM", "what evaluating it may do; for a function also what a call of it may do"),
    ("cost", "TERM", "what it may cost at most; for a function, a call of it"),
    ("label", "TERM", "the label of its value, after evaluating it"),
    ("trace", "TERM", "evaluates it and shows what happens"),
    (
        "load",
        "FILE",
        "reads a .lam file as if it were typed; pipelines and agents of other files become functions",
    ),
    ("list", "", "what is defined"),
    ("help", "", "this list"),
    ("quit", "", "leaves, as Ctrl-D does"),
];

/// Runs the command.
pub fn repl(ui: &Ui, args: &ReplArgs) -> Exit {
    if args.world.trace.is_some() {
        return ui.usage("a session has no trace of its own", Some("`:trace TERM` shows that of a term"));
    }
    let mut session = match Repl::new(ui, &args.world) {
        Ok(session) => session,
        Err(exit) => return exit,
    };
    let mut input = Input::open(ui);
    if input.is_terminal() {
        ui.note("Terms are evaluated, `let x = …` is kept; `:help` lists the commands, Ctrl-D leaves.");
    }
    let mut worst = Exit::Done;
    for file in &args.files {
        if session.load(ui, file) != Exit::Done {
            worst = Exit::Failed;
        }
        interrupt::over();
    }
    loop {
        match input.read(&session.names()) {
            ParsedInput::Text(text) => {
                let exit = session.input(ui, &text);
                interrupt::over();
                match exit {
                    None => break,
                    Some(Exit::Done) => {}
                    Some(_) => worst = Exit::Failed,
                }
            }
            ParsedInput::Wrong(message) => {
                ui.usage(&message, None);
                worst = Exit::Failed;
            }
            ParsedInput::End => break,
        }
    }
    // Somebody at a terminal has seen what failed; a script wants to know.
    if input.is_terminal() { Exit::Done } else { worst }
}

/// A command with what follows it, if the text is one. A beginning of its name is enough; the first in the
/// list is meant.
fn command(text: &str) -> Option<(&str, &str)> {
    let rest = text.trim_start().strip_prefix(':')?;
    let (word, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let name = COMMANDS.iter().find(|(name, ..)| !word.is_empty() && name.starts_with(word));
    Some((name.map_or(word, |(name, ..)| name), rest))
}

/// Definition or declaration that persists from input to input.
struct ReplItem {
    /// Name of the definition, or of the declared tool or store.
    name: Name,
    what: ReplItemKind,
}

enum ReplItemKind {
    /// A tool or store, or a function: what was typed, in the file.
    Text { file: FileId, text: Arc<str>, range: (usize, usize), declares: bool },
    /// A value, or the function that a pipeline is.
    Code(Arc<Code>),
}

impl ReplItem {
    fn part(&self) -> Part<'_> {
        match &self.what {
            ReplItemKind::Text { file, text, range, .. } => Part::Text(*file, text, *range),
            ReplItemKind::Code(code) => Part::Code(&self.name, code),
        }
    }

    fn declares(&self) -> bool {
        matches!(self.what, ReplItemKind::Text { declares: true, .. })
    }
}

/// State that persists from input to input.
struct Repl<'a> {
    session: Session,
    world: &'a WorldArgs,
    sources: Sources,
    policy: Option<Policy>,
    options: Options,
    /// Shared by all inputs, so that scripted replies are used up one after another.
    models: Models,
    kept: Vec<ReplItem>,
    inputs: usize,
}

impl<'a> Repl<'a> {
    fn new(ui: &Ui, world: &'a WorldArgs) -> Result<Repl<'a>, Exit> {
        let session = setup::session(ui, world)?;
        let options = session.settings.loading(world.policy.as_deref());
        let mut sources = Sources::new();
        let policy = policy::read(&mut sources, options.policy.as_deref())
            .map_err(|problem| say_problem(ui, &sources, problem))?;
        // Created before any program is loaded, so that scripted replies continue from program to program.
        let models = session.any_models().map_err(|e| setup::refuse_config(ui, &e))?;
        Ok(Repl { session, world, sources, policy, options, models, kept: Vec::new(), inputs: 0 })
    }

    /// Returns the names in scope.
    fn names(&self) -> Vec<String> {
        self.kept.iter().filter(|k| !k.declares()).map(|k| k.name.to_string()).collect()
    }

    /// Does what an input says; nothing if it says to leave.
    fn input(&mut self, ui: &Ui, text: &str) -> Option<Exit> {
        let Some((name, rest)) = command(text) else { return Some(self.typed(ui, text)) };
        let exit = match name {
            "quit" => return None,
            "help" => {
                for (name, takes, does) in COMMANDS {
                    ui.result(&format!("  {:<15} {does}", format!(":{name} {takes}")));
                }
                Exit::Done
            }
            "list" => {
                self.list(ui);
                Exit::Done
            }
            "load" if rest.trim().is_empty() => {
                ui.usage("`:load` takes a file", Some("for example: `:load examples/triage.agent`"))
            }
            "load" => self.load(ui, rest.trim()),
            name if COMMANDS.iter().any(|(n, ..)| *n == name) => self.ask(ui, name, rest),
            name => {
                let near = diagnostics::nearest(name, COMMANDS.iter().map(|(n, ..)| *n));
                let help = near.map(|n| format!("did you mean `:{n}`?"));
                let help = help.unwrap_or_else(|| "`:help` lists the commands".into());
                ui.usage(&format!("unknown command `:{}`", diagnostics::clip(name)), Some(&help))
            }
        };
        Some(exit)
    }

    /// Adds what was typed to the sources.
    fn source(&mut self, text: &str) -> (FileId, Arc<str>) {
        self.inputs += 1;
        let text: Arc<str> = text.into();
        (self.sources.add(format!("<input {}>", self.inputs), text.clone()), text)
    }

    fn typed(&mut self, ui: &Ui, text: &str) -> Exit {
        let (file, text) = self.source(text);
        self.items(ui, file, &text)
    }

    /// Takes the items of a text one after another, up to the first that fails.
    fn items(&mut self, ui: &Ui, file: FileId, text: &Arc<str>) -> Exit {
        let items = match syntax::lam::items(file, text) {
            Ok(items) => items,
            Err(found) => return say_problem(ui, &self.sources, Problem::Wrong(found)),
        };
        for item in items {
            let exit = self.item(ui, file, text, item);
            if exit != Exit::Done {
                return exit;
            }
        }
        Exit::Done
    }

    fn item(&mut self, ui: &Ui, file: FileId, text: &Arc<str>, item: Item) -> Exit {
        let range = (item.range.start, item.range.end);
        let keep = |name: Name, declares| ReplItem {
            name,
            what: ReplItemKind::Text { file, text: text.clone(), range, declares },
        };
        let name = match item.kind {
            // The term that uses it will be checked with it.
            ItemKind::Declaration(name) => {
                self.kept.retain(|k| !k.declares() || k.name != name);
                self.kept.push(keep(name, true));
                return Exit::Done;
            }
            ItemKind::Term => None,
            ItemKind::Definition(name) => Some(name),
        };
        let code = match self.compile(ui, file, text, range) {
            Ok(code) => code,
            Err(exit) => return exit,
        };
        let (report, exit) = match self.evaluate(ui, &code, None) {
            Ok(done) => done,
            Err(exit) => return exit,
        };
        let (Some(name), Ok(value)) = (name, &report.result) else {
            run::show_result(
                ui,
                &self.sources,
                &report,
                &self.session.bound(&code, false),
                (&code, self.policy.as_ref()),
                Reified::to_string,
            );
            return exit;
        };
        let span = self.sources.span(file, range.0, range.1);
        let kept = match constant(value, span) {
            Some(code) => ReplItem { name, what: ReplItemKind::Code(Arc::new(code)) },
            None if asks_nothing(&code) => keep(name, false),
            None => {
                let message = format!("`{name}` is a function that was made by asking, which cannot be kept");
                return ui.usage(
                    &message,
                    Some("define the requested value first, and then the function that uses it"),
                );
            }
        };
        self.kept.push(kept);
        exit
    }

    /// The program of a range of a text: with what is kept and may be needed, and the policy.
    fn compile(&self, ui: &Ui, file: FileId, text: &str, range: (usize, usize)) -> Result<Arc<Code>, Exit> {
        let mut needed: HashSet<&str> = words(text, range);
        let mut parts = vec![Part::Text(file, text, range)];
        for kept in self.kept.iter().rev() {
            let plain = kept.name.chars().all(core_ir::print::identifier_part);
            if !kept.declares() && plain && !needed.contains(&*kept.name) {
                continue;
            }
            if let ReplItemKind::Text { text, range, .. } = &kept.what {
                needed.extend(words(text, *range));
            }
            parts.push(kept.part());
        }
        parts.reverse();
        let parsed = agentlang::calculus::compile_parts(&parts);
        let wrong = |found| Err(say_problem(ui, &self.sources, Problem::Wrong(found)));
        let Some(code) = parsed.code else { return wrong(parsed.diagnostics) };
        if has_errors(&parsed.diagnostics) {
            return wrong(parsed.diagnostics);
        }
        if !ui.is_json() {
            ui.problems(&self.sources, &worth_saying(ui, parsed.diagnostics));
        }
        let mut code = Arc::new(code);
        if let Some(policy) = &self.policy {
            policy::apply(policy, &[], std::iter::once(&mut code))
                .map_err(|problem| say_problem(ui, &self.sources, problem))?;
        }
        Ok(code)
    }

    /// Runs a program; what happens is noted by the recorder.
    fn evaluate(
        &self,
        ui: &Ui,
        code: &Arc<Code>,
        recorder: Option<&mut Recorder>,
    ) -> Result<(Ran, Exit), Exit> {
        // A term without requests needs no handlers.
        if !asks_nothing(code) {
            run::can_answer(ui, self.world, &self.models, code)?;
        }
        let mut recorder = recorder;
        let mut watch = |event: session::RunEvent<'_>| {
            if let Some(recorder) = &mut recorder {
                recorder.note(event.kept);
            }
        };
        let running = run::Running {
            session: &self.session,
            args: self.world,
            code,
            policy: self.policy.as_ref(),
            input: None,
            request: None,
            plan: None,
            journal: None,
            models: Some(&self.models),
            follows: None,
            limits: None,
            sources: None,
        };
        let (report, _) = run::world(ui, running, &mut watch)?;
        let exit = run::conclude(ui, &report, &self.session.bound(code, false));
        Ok((report, exit))
    }

    /// Answers a question about a term.
    fn ask(&mut self, ui: &Ui, name: &str, term: &str) -> Exit {
        if term.trim().is_empty() {
            return ui
                .usage(&format!("`:{name}` takes a term"), Some(&format!("for example: `:{name} 1 + 1`")));
        }
        let (file, text) = self.source(term);
        match syntax::lam::items(file, &text) {
            Ok(items) if matches!(&items[..], [Item { kind: ItemKind::Term, .. }]) => {}
            Ok(_) => {
                return ui.usage(
                    &format!("`:{name}` takes one term"),
                    Some("write each definition on a line of its own"),
                );
            }
            Err(found) => return say_problem(ui, &self.sources, Problem::Wrong(found)),
        }
        let code = match self.compile(ui, file, &text, (0, text.len())) {
            Ok(code) => code,
            Err(exit) => return exit,
        };
        match name {
            "label" | "trace" => self.observe(ui, name, &text, &code),
            _ => self.analyze(ui, name, &code),
        }
    }

    /// Prints the static analyses of a term.
    fn analyze(&self, ui: &Ui, name: &str, code: &Arc<Code>) -> Exit {
        let typing = types::check(code, None);
        let failed = has_errors(&typing.diagnostics);
        ui.problems(&self.sources, &worth_saying(ui, typing.diagnostics));
        let latent = if let Type::Fun(f) = &typing.ty { Some(f.1.clone()) } else { None };
        // A function costs what a call of it does.
        let bound = || self.session.bound(code, latent.is_some());
        match (name, ui.is_json()) {
            ("type", false) => ui.result(&typing.ty.to_string()),
            ("type", true) => ui.result(&json!({"type": typing.ty.to_string()}).to_string()),
            ("effects", false) => {
                let call = latent.map_or(String::new(), |e| format!("; a call: {e}"));
                ui.result(&format!("{}{call}", typing.effects));
            }
            ("effects", true) => {
                let call = latent.map(|e| e.to_string());
                ui.result(&json!({"effects": typing.effects.to_string(), "call": call}).to_string());
            }
            (_, false) => costs::table(&bound(), &self.sources).iter().for_each(|line| ui.result(line)),
            (_, true) => ui.result(&session::bound::figures(&bound(), &self.sources).to_string()),
        }
        if failed { Exit::Failed } else { Exit::Done }
    }

    /// Runs a term and prints what was observed.
    fn observe(&self, ui: &Ui, name: &str, text: &str, code: &Arc<Code>) -> Exit {
        let mut recorder = Recorder::new();
        let (report, exit) = match self.evaluate(ui, code, Some(&mut recorder)) {
            Ok(done) => done,
            Err(exit) => return exit,
        };
        if name == "label" {
            match &report.result {
                Ok(_) if ui.is_json() => ui.result(&json!({"label": report.label.to_json()}).to_string()),
                Ok(_) => ui.result(&report.label.to_json().to_string()),
                Err(_) => {
                    let bound = self.session.bound(code, false);
                    run::show_result(
                        ui,
                        &self.sources,
                        &report,
                        &bound,
                        (code, self.policy.as_ref()),
                        Reified::to_string,
                    );
                }
            }
            return exit;
        }
        let entry = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let head = Head { program: format!("<input {}>", self.inputs), entry, input: None };
        let lines = recorder.lines(&head, &self.sources, &report);
        if ui.is_json() {
            lines.iter().for_each(|l| ui.result(&l.to_string()));
        } else {
            trace::show_all(ui, &lines, trace::Minor::Shown);
        }
        exit
    }

    /// Loads a file.
    fn load(&mut self, ui: &Ui, path: &str) -> Exit {
        if Kind::of(path) == Kind::Lam {
            return match read_text(&mut self.sources, path) {
                Ok((file, text)) => self.items(ui, file, &text),
                Err(problem) => say_problem(ui, &self.sources, problem),
            };
        }
        let loaded = match load::load(&mut self.sources, path, &self.options) {
            Ok(loaded) => loaded,
            Err(problem) => return say_problem(ui, &self.sources, problem),
        };
        if !ui.is_json() {
            ui.problems(&self.sources, &worth_saying(ui, loaded.found));
        }
        if loaded.runnables.is_empty() {
            return ui.usage(&format!("`{path}` has nothing that can be run"), None);
        }
        for r in loaded.runnables {
            let ty = types::check(&r.code, None).ty;
            ui.note(&format!("{}: {ty}", core_ir::print::variable(&r.name)));
            self.kept.push(ReplItem { name: r.name.as_str().into(), what: ReplItemKind::Code(r.code) });
        }
        Exit::Done
    }

    fn list(&self, ui: &Ui) {
        let mut seen = HashSet::new();
        let newest = self.kept.iter().rev().filter(|k| seen.insert((k.declares(), &k.name)));
        for kept in newest.collect::<Vec<_>>().into_iter().rev() {
            let text = match &kept.what {
                ReplItemKind::Text { text, range, .. } => {
                    text.get(range.0..range.1).unwrap_or("").to_string()
                }
                ReplItemKind::Code(code) => {
                    let term = core_ir::print_term(code, code.root());
                    format!("let {} = {}", core_ir::print::variable(&kept.name), diagnostics::clip(&term))
                }
            };
            ui.result(&text);
        }
    }
}

/// The words that stand anywhere in a text, of which its names are some.
fn words(text: &str, range: (usize, usize)) -> HashSet<&str> {
    let text = text.get(range.0..range.1).unwrap_or(text);
    text.split(|c| !core_ir::print::identifier_part(c)).filter(|w| !w.is_empty()).collect()
}

/// Returns true if evaluating a term makes no requests.
fn asks_nothing(code: &Arc<Code>) -> bool {
    let typing = types::check(code, None);
    typing.complete && typing.effects == EffectRow::pure()
}

/// The term of a value, with its labels; nothing if there is a function in it, or too much of it.
fn constant(value: &Reified, at: Span) -> Option<Code> {
    let mut b = Builder::new();
    let root = built(&mut b, value, at)?;
    b.finish(root, &Globals::none()).ok()
}

/// Values that are shown are at most [`core_ir::MAX_DATA_DEPTH`] deep.
fn built(b: &mut Builder, value: &Reified, at: Span) -> Option<TermId> {
    use core_ir::Term;
    let term = match &value.kind {
        ReifiedKind::Scalar(d) => b.lit(d.clone(), at),
        ReifiedKind::List(items) => {
            let items = items.iter().map(|v| built(b, v, at)).collect::<Option<_>>()?;
            b.add(Term::List(items), at)
        }
        // Arguments of a planned call are not kept from line to line, as tools are not: the record is.
        ReifiedKind::Record(fields) | ReifiedKind::Args(_, fields) => {
            let fields =
                fields.iter().map(|(n, v)| Some((n.clone(), built(b, v, at)?))).collect::<Option<_>>()?;
            b.add(Term::Record(fields), at)
        }
        ReifiedKind::Pair(p) => {
            let (left, right) = (built(b, &p.0, at)?, built(b, &p.1, at)?);
            b.add(Term::Pair(left, right), at)
        }
        ReifiedKind::Tag(name, v) => {
            let inner = built(b, v, at)?;
            b.add(Term::Tag(name.clone(), Some(inner)), at)
        }
        ReifiedKind::Function(_) | ReifiedKind::TooDeep => return None,
    };
    if value.is_bottom {
        return Some(term);
    }
    let label = b.lit(Data::clone(&value.label), at);
    Some(b.add(Term::Relabel(label, term), at))
}
