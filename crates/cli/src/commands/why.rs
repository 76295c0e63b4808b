//! Origins of labels that `entail trace --why` names, in words.

use super::trace::{place, text_of};
use crate::ui::{Exit, Ui};
use serde_json::Value;
use session::refusal::MAX_STEPS;

/// Finds a value in a trace: a name, a part of the result, the error, a request or one of its arguments.
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
        ui.result(&format!("{}{of} is labeled {}{at}", text_of(&part, "of"), part["label"]));
        if !part["bound"].is_null() {
            ui.result(&format!("  it broke the bound {}", part["bound"]));
        }
        for chain in part["from"].as_array().into_iter().flatten() {
            ui.result(&format!("  {} {}", text_of(chain, "component"), text_of(chain, "says")));
            let ways: Vec<&Vec<Value>> =
                chain["ways"].as_array().into_iter().flatten().filter_map(Value::as_array).collect();
            if ways.is_empty() {
                ui.result("    because of a declaration");
            }
            for way in &ways {
                for (i, hop) in way.iter().enumerate() {
                    if i == MAX_STEPS && way.len() > 2 * MAX_STEPS {
                        ui.result(&format!("      … {} steps more", way.len() - 2 * MAX_STEPS));
                    }
                    if i >= MAX_STEPS && i + MAX_STEPS < way.len() {
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
