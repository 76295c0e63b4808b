//! Approval of calls that wait, with other arguments.
//!
//! Entry point: [`edited`], for every door through which an approver answers.
//!
//! Invariant: an approver learns at once what the tool's parameters don't take. What decides is the run: it
//! checks the call with the new arguments as it has checked it with its own.

use crate::kept::KeptRun;
use core_ir::exchange::data_from_json;
use core_ir::{Data, Name, ToolDecl};
use diagnostics::visible;
use runtime::{Decision, JournalPlace, Waiting};
use serde_json::Value;

/// The most characters of a name in a message.
const MAX_NAME: usize = 100;

/// The decision to approve a call with other arguments: `edit` is an object with those that are other ones.
/// Arguments that are as they were are none; without others the call is approved as it is.
///
/// # Errors
/// In words for people: `edit` is no object, the tool has no such parameter, or a value has not the type of
/// its parameter. Or the types are not known, because the program of the run was not kept.
pub fn edited(place: &JournalPlace, question: &Waiting, edit: &Value) -> Result<Decision, String> {
    let kept = KeptRun::open(place, &question.run).map_err(|e| e.message)?;
    let tool = kept.as_ref().and_then(|kept| declaration(kept, question));
    let Some(tool) = tool else {
        return Err(
            "the arguments can't be edited: the program of the run was not kept, so their types are \
                    not known"
                .into(),
        );
    };
    decision(question, edit, |name, data| {
        let param = tool.params.iter().find(|p| p.name == *name);
        Ok(param.map(|param| param.ty.check(data)).transpose()?.is_some())
    })
}

/// The same where the program is somewhere else: the run alone compares types.
///
/// # Errors
/// In words for people: `edit` is no object, or the call has no such argument.
pub fn edited_of_names(question: &Waiting, edit: &Value) -> Result<Decision, String> {
    decision(question, edit, |name, _| Ok(asked(question, name).is_some()))
}

/// `takes` says whether the tool has a parameter of a name, and why it doesn't take a value.
fn decision(
    question: &Waiting,
    edit: &Value,
    takes: impl Fn(&Name, &Data) -> Result<bool, (String, String)>,
) -> Result<Decision, String> {
    let Some(fields) = edit.as_object() else {
        return Err("the edit is not a JSON object of arguments".into());
    };
    let mut args = Vec::new();
    for (name, json) in fields {
        let (shown, name) = (visible(name, MAX_NAME), Name::from(name.as_str()));
        let data = Data::from_json(json).map_err(|e| format!("the argument `{shown}`: {e}"))?;
        if !takes(&name, &data).map_err(|(path, cause)| format!("the argument `{shown}`: {path}: {cause}"))? {
            return Err(format!("`{}` has no parameter `{shown}`", visible(&question.tool, MAX_NAME)));
        }
        if asked(question, &name).as_ref() != Some(&data) {
            args.push((name, data));
        }
    }
    Ok(if args.is_empty() { Decision::Approve } else { Decision::Edit(args) })
}

/// The declaration of the tool that a question is about.
pub fn declaration<'k>(kept: &'k KeptRun, question: &Waiting) -> Option<&'k ToolDecl> {
    kept.code.tools.iter().find(|t| *t.name == *question.tool).map(|t| &**t)
}

/// The argument that a question is about, as the approver sees it.
fn asked(question: &Waiting, name: &str) -> Option<Data> {
    let args = question.args.as_array()?;
    let arg = args.iter().find(|arg| arg["name"].as_str() == Some(name))?;
    data_from_json(&arg["value"]).ok()
}
