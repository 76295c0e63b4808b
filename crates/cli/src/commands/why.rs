//! Where labels come from, in words: of a refusal, and of what `entail trace --why` names.

use super::trace::{place, text_of};
use crate::ui::{Exit, Ui};
use diagnostics::Diagnostic;
use runtime::Refused;
use serde_json::Value;

/// The most steps of a way that are shown, from each end.
const MOST_STEPS: usize = 8;

/// The steps of a refused value, at their places.
pub(super) fn remarks(mut d: Diagnostic, refused: &Refused) -> Diagnostic {
    for chain in &refused.value.chains {
        // The shortest way; `entail trace --why error` shows the others.
        let Some(way) = chain.ways.first() else { continue };
        for (i, hop) in way.iter().enumerate().filter(|(i, _)| *i < MOST_STEPS || i + MOST_STEPS >= way.len())
        {
            let that = if i == 0 {
                format!("{} {}", refused.part.describe(), chain.words)
            } else {
                "before that".into()
            };
            d = d.remark(hop.span, format!("({}) {that}: {}", i + 1, hop.what.describe()));
        }
    }
    d
}

/// What would make a refused flow lawful, the best first.
pub(super) fn lawful(refused: &Refused) -> Vec<String> {
    use machine::Part;
    let raise = |what: &str, words: &str| {
        format!("raise the bound, if that is right for `{what}` everywhere: {words}")
    };
    let word = match refused.admits {
        (true, true) => "any",
        (true, false) => "untrusted",
        _ => "secret",
    };
    let name = refused.name.as_deref();
    let mut ways: Vec<String> = Vec::new();
    match (&refused.part, name) {
        (Part::Argument(arg), Some(tool)) => {
            if refused.integrity {
                ways.push(format!("take `{arg}` from what is trusted, or out of untrusted text as one of a few values (`endorse … in […] else …`)"));
                ways.push(format!(
                    "ask a person before each call: `approve = true` under `[tools.{tool}]` of a policy"
                ));
            }
            if refused.secrecy {
                ways.push(format!("leave what is secret out of `{arg}`, or `declassify` what may be known"));
            }
            ways.push(raise(tool, &format!("`bounds = {{ {arg} = \"{word}\" }}` under `[tools.{tool}]`")));
        }
        (Part::Control, Some(tool)) => {
            ways.push("decide it by what is trusted and public: take the decision before the untrusted text is read, or in a conversation that has not read it".into());
            if refused.integrity {
                ways.push(format!(
                    "ask a person before each call: `approve = true` under `[tools.{tool}]` of a policy"
                ));
            }
            ways.push(raise(tool, &format!("`control = \"{word}\"` under `[tools.{tool}]`")));
        }
        (Part::Control, None) => {
            ways.push(
                "speak in a conversation of its own (`fork`, `fresh`), of which only the answer is kept"
                    .into(),
            );
        }
        (Part::Conversation, model) => {
            ways.push("ask a model that may see it, or leave what is secret out of the conversation".into());
            if let Some(model) = model {
                ways.push(format!(
                    "raise what it may see: `clearance = \"{word}\"` under `[models.{model}]` of a policy"
                ));
            }
        }
        (Part::Value, Some(key)) => {
            ways.push(format!(
                "declare the key `{key}` with that label, so that what is read from it has it again"
            ));
        }
        (Part::Verdict, Some(tool)) => {
            ways.push(format!("let the policy of `{tool}` look at what those who see the call may know"));
        }
        (Part::Value, None) => {
            if refused.integrity {
                ways.push(
                    "look at what is trusted, or have a person or a check vouch for it (`endorse`)".into(),
                );
            }
            if refused.secrecy {
                ways.push("leave what is secret out of it, or `declassify` what may be known".into());
            }
            ways.push("assert a label that this may have".into());
        }
        (Part::Argument(_) | Part::Verdict, None) => {}
    }
    let said =
        |(i, way): (usize, String)| format!("{} {way}", if i == 0 { "to make it lawful," } else { "or" });
    ways.into_iter().enumerate().map(said).collect()
}

/// What a trace says of a value: a name, a part of the result, the error, a request or an argument of one.
pub(super) fn found(ui: &Ui, lines: &[Value], value: &str) -> Result<Vec<Value>, Exit> {
    let mut out: Vec<Value> = Vec::new();
    let mut known: Vec<String> = Vec::new();
    for line in lines {
        match text_of(line, "event") {
            "request" => {
                let n = line["n"].to_string();
                for part in line["why"].as_array().into_iter().flatten() {
                    let own = format!("{n}.{}", text_of(part, "of"));
                    if value == n || value == own {
                        let mut part = part.clone();
                        part["of"] = own.clone().into();
                        out.push(part);
                    }
                    known.push(own);
                }
                if value == n && line["why"].is_null() {
                    ui.result(&format!("request {n} depends on nothing that has a label"));
                    return Ok(out);
                }
            }
            "value" => {
                if value == text_of(line, "name") {
                    let mut line = line.clone();
                    line["of"] = value.into();
                    out.push(line);
                }
                known.push(text_of(line, "name").to_string());
            }
            "end" => {
                for part in line["why"].as_array().into_iter().flatten() {
                    if value == text_of(part, "of") {
                        out.push(part.clone());
                    }
                    known.push(text_of(part, "of").to_string());
                }
                let refused = &line["error"]["refused"];
                if !refused.is_null() {
                    if value == "error" {
                        out.push(refused.clone());
                    }
                    known.push("error".into());
                }
            }
            _ => {}
        }
    }
    if !out.is_empty() {
        return Ok(out);
    }
    known.dedup();
    let help = match &known[..] {
        [] => {
            "nothing in this run has a label, or the trace was written without `--explain-flow`".to_string()
        }
        _ => {
            let more = if known.len() > 20 { " and more" } else { "" };
            format!("there is: {}{more}", known.iter().take(20).cloned().collect::<Vec<_>>().join(", "))
        }
    };
    Err(ui.usage(&format!("nothing called `{value}` has a label in this run"), Some(&help)))
}

/// Shows where the label of a value comes from.
pub(super) fn show(ui: &Ui, lines: &[Value], value: &str) -> Result<(), Exit> {
    for part in found(ui, lines, value)? {
        let at = place(&part);
        let at = if at.is_empty() { String::new() } else { format!("  {at}") };
        let name = part["name"].as_str().filter(|n| *n != text_of(&part, "of"));
        let of = name.map_or(String::new(), |n| format!(" of `{n}`"));
        ui.result(&format!("{}{of} is labelled {}{at}", text_of(&part, "of"), part["label"]));
        if !part["bound"].is_null() {
            ui.result(&format!("  it broke the bound {}", part["bound"]));
        }
        for chain in part["from"].as_array().into_iter().flatten() {
            ui.result(&format!("  {} {}", text_of(chain, "component"), text_of(chain, "says")));
            let ways: Vec<&Vec<Value>> =
                chain["ways"].as_array().into_iter().flatten().filter_map(Value::as_array).collect();
            if ways.is_empty() {
                ui.result("    because a declaration says so");
            }
            for way in &ways {
                for (i, hop) in way.iter().enumerate() {
                    if i == MOST_STEPS && way.len() > 2 * MOST_STEPS {
                        ui.result(&format!("      … {} steps more", way.len() - 2 * MOST_STEPS));
                    }
                    if i >= MOST_STEPS && i + MOST_STEPS < way.len() {
                        continue;
                    }
                    let lead = if i == 0 { "  " } else { "<-" };
                    let request = hop["n"].as_u64().map_or(String::new(), |n| format!(" (request {n})"));
                    let text = format!("    {lead} {}{request}", text_of(hop, "says"));
                    ui.result(&format!("{text:<72}  {}", place(hop)));
                }
            }
            if chain["more"] == true {
                ui.result("    and others");
            }
        }
    }
    Ok(())
}
