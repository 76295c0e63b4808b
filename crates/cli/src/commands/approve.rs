//! `entail approve`: answers the questions of a run that waits, from another terminal or after its process
//! has ended.

use crate::approve::{self, DECIDED, MAX_ARGUMENT_CHARS};
use crate::args::ApproveArgs;
use crate::passphrase;
use crate::ui::{Exit, Ui};
use core_ir::exchange::data_from_json;
use core_ir::{Data, Name};
use diagnostics::visible;
use runtime::{Approvers, Authority, Decision, Journal, JournalError, JournalPlace, SigningKey, Waiting};
use serde_json::{Value, json};
use session::report::waiting_json;
use std::fmt::Write as _;
use std::io::IsTerminal;

/// Runs `entail approve`.
pub fn approve(ui: &Ui, args: &ApproveArgs) -> Exit {
    if let Some(name) = &args.new_key {
        return new_key(ui, name.as_deref(), args.passphrase_stdin);
    }
    let approvers = match crate::setup::approvers(ui) {
        Ok(approvers) => approvers,
        Err(exit) => return exit,
    };
    #[cfg(feature = "engine")]
    if args.has_engine() {
        return super::engine::approve(ui, args, &approvers);
    }
    let place = match crate::setup::journal(ui, &args.journal) {
        Ok(place) => place.or_file(),
        Err(exit) => return exit,
    };
    match act(ui, args, &place, &approvers) {
        Ok(exit) => exit,
        Err(e) => ui.usage(&e.message, e.help.as_deref()),
    }
}

/// Makes a key, and shows what the settings need to know of it.
fn new_key(ui: &Ui, name: Option<&str>, from_stdin: bool) -> Exit {
    let name = name.map_or_else(approve::local_user, String::from);
    let (key, file) = match passphrase::create(&name, from_stdin) {
        Ok(made) => made,
        Err(problem) => return ui.usage(&problem.message, problem.help.as_deref()),
    };
    let Ok(public) = key.public() else { return ui.usage("the key has no public half", None) };
    let public = public.to_string();
    if ui.is_json() {
        ui.result(&json!({"name": name, "key": public, "file": file.display().to_string()}).to_string());
    } else {
        ui.note(&format!("the key is in `{}`; add these lines to `entail.toml`:", file.display()));
        ui.result(&format!("[approvers.{name}]\nkey = \"{public}\""));
    }
    Exit::Done
}

fn act(
    ui: &Ui,
    args: &ApproveArgs,
    place: &JournalPlace,
    approvers: &Approvers,
) -> Result<Exit, JournalError> {
    let mut journal = Journal::existing(place)?.with_approvers(approvers.clone());
    let run = journal.run(args.run.as_deref().unwrap_or_default())?.id;
    let waiting = journal.waiting(Some(&run))?;
    let edit = |w: &Waiting, edit: &Value| session::approvals::edited(place, w, edit);
    answer(ui, args, &run, waiting, approvers, edit, |w, decision, key| {
        journal.decide(&w.token, decision, &Authority::Key(key))
    })
}

/// Has a person answer the questions of a run, and passes each answer on. `edited` reads other arguments.
pub(super) fn answer(
    ui: &Ui,
    args: &ApproveArgs,
    run: &str,
    mut waiting: Vec<Waiting>,
    approvers: &Approvers,
    edited: impl Fn(&Waiting, &Value) -> Result<Decision, String>,
    mut decide: impl FnMut(&Waiting, &Decision, &SigningKey) -> Result<(), JournalError>,
) -> Result<Exit, JournalError> {
    if let Some(wanted) = &args.request {
        waiting.retain(|w| w.token.starts_with(wanted.as_str()));
    }
    if waiting.is_empty() {
        return Ok(ui.usage(
            &format!("nothing of run `{run}` waits for an answer"),
            Some("`entail runs show` shows what it asked"),
        ));
    }
    let person = std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !args.passphrase_stdin;
    if !args.yes && !args.deny && args.edit.is_none() && !person {
        for w in &waiting {
            ui.result(&if ui.is_json() { waiting_json(w).to_string() } else { shown(w) });
        }
        let help =
            "answer at a terminal, or with `--yes` (approve) or `--deny`; `--request` names one of several";
        return Ok(ui.usage("no terminal to answer at", Some(help)));
    }
    let one = if args.edit.is_some() { "--edit" } else { "--yes" };
    if (args.yes || args.edit.is_some()) && waiting.len() > 1 {
        for w in &waiting {
            ui.say(&shown(w));
        }
        let help = "name one with `--request`, or answer at a terminal";
        return Ok(ui.usage(&format!("several questions wait, and `{one}` approves one"), Some(help)));
    }
    // Before anybody is asked about it.
    let edit = match args.edit.as_deref().zip(waiting.first()).map(|(text, w)| {
        let edit = serde_json::from_str(text).map_err(|e| format!("the edit is not JSON: {e}"))?;
        edited(w, &edit)
    }) {
        None => None,
        Some(Ok(decision)) => Some(decision),
        Some(Err(why)) => {
            ui.say(&waiting.first().map_or_else(String::new, shown));
            let help = "`--edit` takes the arguments that change, as in '{\"amount\": 40}'";
            return Ok(ui.usage(&why, Some(help)));
        }
    };
    // Asked for once, when there is something to sign.
    let mut key: Option<SigningKey> = None;
    let mut left = 0;
    for w in &waiting {
        ui.say(&shown(w));
        if let Some(Decision::Edit(new)) = &edit {
            ui.say(&shown_edit(new));
        }
        let approved = edit.clone().unwrap_or(Decision::Approve);
        let decision = match (args.yes || !person, args.deny) {
            (_, true) => Decision::Deny(args.reason.clone()),
            (true, _) => approved,
            _ => match approve::ask_here("approve? [y/n] ") {
                Some(true) => approved,
                Some(false) => Decision::Deny(args.reason.clone()),
                None => {
                    ui.note("no answer was given: it waits on");
                    left += 1;
                    continue;
                }
            },
        };
        let key = match &key {
            Some(key) => key,
            None => match passphrase::unlock(approvers, args.as_name.as_deref(), args.passphrase_stdin) {
                Ok(opened) => key.insert(opened),
                Err(problem) => return Ok(ui.usage(&problem.message, problem.help.as_deref())),
            },
        };
        decide(w, &decision, key)?;
        let verdict = decision.verdict();
        if ui.is_json() {
            let said = json!({"run": w.run, "request": w.token, "verdict": verdict, "by": key.name()});
            ui.result(&said.to_string());
        } else {
            let is_edited = matches!(decision, Decision::Edit(_));
            ui.result(if is_edited { "approved with other arguments" } else { verdict });
        }
    }
    if left == waiting.len() {
        return Ok(Exit::Failed);
    }
    if !args.has_engine() {
        ui.note(&format!(
            "the run continues if its process is alive; otherwise resume it with `--resume {run}`"
        ));
    }
    Ok(Exit::Done)
}

/// The arguments that an approver writes, for people.
fn shown_edit(args: &[(Name, Data)]) -> String {
    let lines = args.iter().map(|(name, value)| {
        format!("\n  {} = {}", visible(name, MAX_ARGUMENT_CHARS), approve::shown(&value.to_json()))
    });
    format!("with other arguments:{}", lines.collect::<String>())
}

/// A question for people: the tool, and each argument with its label. It controls no terminal.
pub(super) fn shown(w: &Waiting) -> String {
    let mut text = format!(
        "waits for approval: `{}`  (request {})\n",
        visible(&w.tool, MAX_ARGUMENT_CHARS),
        &w.token[..8.min(w.token.len())]
    );
    for arg in w.args.as_array().into_iter().flatten() {
        let name = arg["name"].as_str().unwrap_or_default();
        let value = data_from_json(&arg["value"]).map_or_else(|_| arg["value"].clone(), |d| d.to_json());
        let label =
            data_from_json(&arg["label"]).map_or_else(|_| arg["label"].clone(), |d| d.to_json()).to_string();
        let label = if label == "[]" {
            String::new()
        } else {
            format!("  (label {})", visible(&label, MAX_ARGUMENT_CHARS))
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {} = {}{label}", visible(name, MAX_ARGUMENT_CHARS), approve::shown(&value));
    }
    if w.is_decided == Some(true) {
        text.push_str(DECIDED);
    }
    let _ = write!(
        text,
        "  asked {}, expires {}",
        runtime::utc(w.asked.div_euclid(1000)),
        runtime::utc(w.expires.div_euclid(1000))
    );
    text
}
