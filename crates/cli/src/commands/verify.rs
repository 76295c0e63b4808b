//! `entail verify`: checks recorded runs.

use super::plural;
use crate::args::VerifyArgs;
use crate::passphrase;
use crate::ui::{Exit, Ui};
use diagnostics::visible;
use runtime::{Approvers, Interpreter, InterpreterError, Journal, JournalError, JournalPlace, PublicKey};
use session::keyring::KeyringError;
use session::load::{reason, remedy};
use session::program::own_file;
use session::verify::{
    Check, Checked, Checker, MAX_BYTES, Openings, Receipt, ReceiptError, Record, Signer, Verdict,
    Verification, check,
};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// The most characters of a message.
const MAX_CHARS: usize = 400;

/// A reason why the command can't work.
struct Refused {
    message: String,
    help: Option<String>,
}

impl Refused {
    fn new(message: impl Into<String>, help: &str) -> Refused {
        Refused { message: message.into(), help: Some(help.to_string()) }
    }
}

impl From<JournalError> for Refused {
    fn from(e: JournalError) -> Refused {
        Refused { message: e.message, help: e.help }
    }
}

impl From<ReceiptError> for Refused {
    fn from(e: ReceiptError) -> Refused {
        Refused { message: e.message, help: e.help }
    }
}

impl From<KeyringError> for Refused {
    fn from(e: KeyringError) -> Refused {
        Refused { message: e.message, help: e.help }
    }
}

/// Runs `entail verify`.
pub fn verify(ui: &Ui, args: &VerifyArgs) -> Exit {
    let approvers = match crate::setup::approvers(ui) {
        Ok(approvers) => approvers,
        Err(exit) => return exit,
    };
    let checked = checking(args).and_then(|checking| match &args.run {
        Some(file) if is_receipt(file) => receipt(ui, args, file, &approvers, &checking),
        _ => {
            let place = match crate::setup::journal(ui, &args.journal) {
                Ok(place) => place.or_file(),
                Err(exit) => return Ok(exit),
            };
            runs(ui, args, &place, &approvers, &checking)
        }
    });
    match checked {
        Ok(exit) => exit,
        Err(why) => ui.usage(&why.message, why.help.as_deref()),
    }
}

/// Returns true if what is named can't be a run: identifiers are hexadecimal.
fn is_receipt(named: &str) -> bool {
    Path::new(named).is_file() || !named.chars().all(|c| c.is_ascii_hexdigit())
}

/// With what runs are checked.
struct Checking {
    interpreter: Result<Interpreter, InterpreterError>,
    limit: Duration,
}

/// The interpreter that is named, or the one beside this program if it is there.
fn checking(args: &VerifyArgs) -> Result<Checking, Refused> {
    let beside = own_file().unwrap_or_default();
    let interpreter = Interpreter::find(args.interpreter.as_deref(), &beside);
    if let (Err(why), Some(_)) = (&interpreter, &args.interpreter) {
        let help =
            "`scripts/interpreter` builds it; without `--interpreter`, the machine alone checks the run";
        return Err(Refused::new(why.to_string(), help));
    }
    Ok(Checking { interpreter, limit: Duration::from_secs(args.time_limit) })
}

impl Checking {
    fn check(&self, record: &Record) -> Checked {
        check(record, &self.interpreter, self.limit)
    }
}

/// Checks runs of a journal.
fn runs(
    ui: &Ui,
    args: &VerifyArgs,
    place: &JournalPlace,
    approvers: &Approvers,
    checking: &Checking,
) -> Result<Exit, Refused> {
    let journal = Journal::existing(place)?;
    let wanted = match &args.run {
        Some(run) => vec![journal.run(run)?.id],
        None => journal.runs()?.into_iter().map(|run| run.id).collect(),
    };
    let mut worst = Verdict::Verified;
    for run in &wanted {
        let record = Record::of(Journal::existing(place)?, run, approvers.clone())?;
        let checked = checking.check(&record);
        say(ui, &record, &checked.verification);
        worst = worst.max(checked.verification.verdict());
        if let Some(file) = &args.receipt {
            issue(ui, args, file, (&record, &checked), approvers)?;
        }
    }
    if checking.interpreter.is_err() && !wanted.is_empty() {
        ui.note("without the interpreter nothing is verified: `scripts/interpreter` builds it");
    }
    Ok(exit(args, worst))
}

fn exit(args: &VerifyArgs, verdict: Verdict) -> Exit {
    match verdict {
        Verdict::Refuted => Exit::Failed,
        Verdict::Unknown if args.strict => Exit::Failed,
        Verdict::Unknown | Verdict::Verified => Exit::Done,
    }
}

/// Signs what was checked of a run.
fn issue(
    ui: &Ui,
    args: &VerifyArgs,
    file: &Path,
    (record, checked): (&Record, &Checked),
    approvers: &Approvers,
) -> Result<(), Refused> {
    if checked.verification.verdict() == Verdict::Refuted {
        ui.note("something is wrong with the run, so there is no receipt of it");
        return Ok(());
    }
    let clearance =
        match &args.clearance {
            Some(text) => Some(session::callers::clearance(text).map_err(|why| {
                Refused::new(why, "write a label such as `untrusted`, or as JSON: `[\"U\"]`")
            })?),
            None => None,
        };
    let key = passphrase::unlock(approvers, args.as_name.as_deref(), args.passphrase_stdin)?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let signer = Signer { key: &key, at: now.as_secs() };
    let course = checked.course.as_ref().map(|(replay, config)| (replay, config));
    let (receipt, openings) =
        Receipt::issue(record, &checked.verification, course, clearance.as_ref(), &signer)?;
    write_new(file, &receipt.to_string())?;
    ui.note(&format!("wrote `{}`, signed by `{}`", file.display(), receipt.signer));
    match (&args.openings, openings) {
        (Some(file), Some(openings)) => {
            write_new(file, &openings.to_string())?;
            ui.note(&format!("wrote `{}`: it has everything that the receipt does not show", file.display()));
        }
        (Some(_), None) => ui.note("the receipt shows everything, so there are no openings"),
        (None, _) => {}
    }
    Ok(())
}

/// Writes a file that is not there yet, and that only its owner can read.
fn write_new(file: &Path, text: &str) -> Result<(), Refused> {
    runtime::write_private(file, text).map_err(|e| {
        let message = format!("cannot write `{}`: {}", file.display(), reason(&e));
        Refused { message, help: remedy(&e).map(String::from) }
    })
}

/// Reads a file that may be large, and is refused if it is larger than any receipt.
fn read_bounded(file: &Path) -> Result<String, Refused> {
    let mut text = String::new();
    let read = File::open(file).and_then(|f| f.take(MAX_BYTES + 1).read_to_string(&mut text));
    let (problem, help) = match read {
        Ok(_) if text.len() as u64 <= MAX_BYTES => return Ok(text),
        Ok(_) => (format!("it has more than {} MiB", MAX_BYTES >> 20), None),
        Err(e) => (reason(&e), remedy(&e).map(String::from)),
    };
    Err(Refused { message: format!("cannot read `{}`: {problem}", file.display()), help })
}

/// Checks a receipt.
fn receipt(
    ui: &Ui,
    args: &VerifyArgs,
    file: &str,
    approvers: &Approvers,
    checking: &Checking,
) -> Result<Exit, Refused> {
    if args.receipt.is_some() {
        return Err(Refused::new(format!("`{file}` is a receipt already"), "name a run of the journal"));
    }
    let receipt = Receipt::parse(&read_bounded(Path::new(file))?).map_err(|e| Refused {
        message: format!("`{}` can't be used: {}", visible(file, 200), e.message),
        help: e.help.or_else(|| Some("name a run of the journal, or the file of a receipt".into())),
    })?;
    let named = match &args.key {
        Some(text) => Some(text.parse::<PublicKey>().map_err(|e| {
            Refused::new(
                format!("`{}` can't be used: {e}", visible(text, 80)),
                "take the key of whoever signed it",
            )
        })?),
        None => approvers.name_of(&receipt.key).map(|_| receipt.key),
    };
    let openings = match &args.openings {
        Some(file) => Some(Openings::parse(&read_bounded(file)?)?),
        None => None,
    };
    let (record, signed) = receipt.record(openings.as_ref(), named.as_ref(), approvers.clone())?;
    let mut verification = checking.check(&record).verification;
    verification.prepend(signed);
    say(ui, &record, &verification);
    Ok(exit(args, verification.verdict()))
}

/// Writes what was checked of a run.
fn say(ui: &Ui, record: &Record, verification: &Verification) {
    if ui.is_json() {
        let mut object = verification.to_json();
        object["run"] = record.run.as_str().into();
        object["name"] = record.name.as_str().into();
        return ui.result(&object.to_string());
    }
    let verdict = verification.verdict().as_str();
    ui.result(&format!("{}  {verdict}  {}", record.run, visible(&record.name, MAX_CHARS)));
    for c in &verification.checks {
        ui.result(&format!("  {:<12}{}", c.by.as_str(), checked(c)));
    }
    for (by, f) in &verification.findings {
        ui.result(&format!("  {}{}: {}", at(f.step), by.as_str(), visible(&f.message, MAX_CHARS)));
    }
    for u in &verification.unchecked {
        ui.result(&format!(
            "  {}{} does not check: {}",
            at(u.step),
            u.by.as_str(),
            visible(&u.what, MAX_CHARS)
        ));
    }
}

fn at(step: Option<u64>) -> String {
    step.map_or_else(String::new, |step| format!("step {step}: "))
}

/// The result of one check.
fn checked(check: &Check) -> String {
    let word = match (check.by, check.verdict) {
        (Checker::Signature, Verdict::Verified) => "of the key that is known",
        (Checker::Signature, Verdict::Unknown) => "of a key that is not known",
        (Checker::Signature, Verdict::Refuted) => "wrong",
        (Checker::Record, Verdict::Verified) => "intact",
        (Checker::Record, _) => "not what was written",
        (_, Verdict::Verified) => "the same",
        (_, Verdict::Unknown) => "unknown",
        (_, Verdict::Refuted) => "another run",
    };
    if matches!(check.by, Checker::Record | Checker::Signature) || check.verdict == Verdict::Refuted {
        return word.to_string();
    }
    let end = if check.end { " and the end" } else { "" };
    format!("{word} ({}{end} compared)", plural(check.requests, "request"))
}
