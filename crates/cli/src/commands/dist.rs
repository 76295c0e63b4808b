//! `entail eval --dist`: every result that a program can have, with its probability.
//!
//! Invariant: no real request is made. Models answer from a script, whose entries may be distributions.
//! Stores are initially empty, and only built-in tools answer.

use crate::args::EvalArgs;
use crate::ui::{Exit, Ui};
use core_ir::{Data, Num, Type};
use machine::explore::{Answer, Exploration, Limits, explore, sample};
use machine::{Call, Machine, Reply, Response};
use policy::Policy;
use runtime::{StillStores, Tools};
use serde_json::{Value, json};
use session::load::{Runnable, read_data, reason};
use session::{Session, machine_config};

/// Scripted replies of a model to one prompt.
struct Entry {
    purpose: Option<String>,
    part: Option<String>,
    repeat: bool,
    choices: Vec<(Num, Result<Reply, String>)>,
}

/// Events of one possible world.
#[derive(Clone, Default, PartialEq)]
struct PossibleWorld {
    used: Vec<bool>,
    stores: StillStores,
}

/// Runs the command.
pub fn dist(
    ui: &Ui,
    args: &EvalArgs,
    session: &Session,
    policy: Option<&Policy>,
    runnable: &Runnable,
) -> Exit {
    let input = match &runnable.input {
        None => None,
        Some(Type::Record(fields)) if fields.is_empty() => Some(Data::record([])),
        Some(ty) => {
            let help = "the distribution of a program without inputs can be computed; write a pipeline that gives them";
            return ui.usage(&format!("`{}` needs an input of type {ty}", runnable.name), Some(help));
        }
    };
    let script = match args.world.script.as_ref().map(|p| p.display().to_string()) {
        None => Vec::new(),
        Some(path) => match script(&path) {
            Ok(script) => script,
            Err(why) => {
                let help = "an entry is a reply, or an object with `reply` or `choices`: \
                            [{\"p\": \"1/3\", \"reply\": …}, …], whose probabilities add up to 1";
                return ui.usage(&format!("`{path}`: {why}"), Some(help));
            }
        },
    };
    let settings = &session.settings;
    let tools = settings.tools();
    let mut config = machine_config(args.world.fuel, policy);
    config.routes = settings.model_settings(args.world.model.as_deref()).routes(&settings.environment);
    let limits = Limits { worlds: args.max_worlds, fuel: config.fuel };
    let machine = Machine::new(runnable.code.clone(), input, config);
    let world = PossibleWorld { used: vec![false; script.len()], stores: StillStores::default() };
    let found = explore(machine, world, limits, &mut |world, call| answers(&script, &tools, world, call));
    match found {
        Ok(found) => show(ui, &found),
        Err(why) => {
            let help =
                "models answer from `--script`; only the results of built-in tools are known in advance";
            ui.usage(&format!("the distribution cannot be computed: {why}"), Some(help));
            Exit::Failed
        }
    }
}

fn script(path: &str) -> Result<Vec<Entry>, String> {
    let bytes = read_data(path).map_err(|e| reason(&e))?;
    let json: Value = serde_json::from_slice(&bytes).map_err(|e| format!("not JSON: {e}"))?;
    let Value::Array(items) = json else { return Err("it is not a JSON array of replies".into()) };
    items.iter().enumerate().map(|(i, e)| entry(e).map_err(|why| format!("entry {}: {why}", i + 1))).collect()
}

fn entry(item: &Value) -> Result<Entry, String> {
    let text = |key: &str| item[key].as_str().map(String::from);
    let choices = match item.get("choices") {
        Some(Value::Array(choices)) => {
            let mut all = Vec::new();
            let mut total = Num::ZERO;
            for choice in choices {
                let p = match &choice["p"] {
                    Value::String(s) => s.clone(),
                    other => other.to_string(),
                };
                let p: Num = p.parse().map_err(|_| format!("`{p}` is not a probability"))?;
                if p < Num::ZERO {
                    return Err(format!("{p} is not a probability"));
                }
                total = total.add(&p).map_err(|e| e.to_string())?;
                all.push((p, reply(choice)?));
            }
            if total != Num::ONE {
                return Err(format!("its probabilities add up to {total}, not 1"));
            }
            all
        }
        Some(_) => return Err("`choices` is not an array".into()),
        None => vec![(Num::ONE, reply(item)?)],
    };
    Ok(Entry { purpose: text("purpose"), part: text("match"), repeat: item["repeat"] == true, choices })
}

fn reply(item: &Value) -> Result<Result<Reply, String>, String> {
    if let Value::String(text) = item {
        return Ok(Ok(Reply::Text(text.clone())));
    }
    match (item.get("reply"), item["tool"].as_str(), item["error"].as_str()) {
        (Some(Value::String(text)), _, _) => Ok(Ok(Reply::Text(text.clone()))),
        (Some(json), _, _) => Ok(Ok(Reply::Text(json.to_string()))),
        (None, Some(tool), _) => {
            let args = item.get("args").cloned().unwrap_or_else(|| json!({}));
            let args = Data::from_json(&args).map_err(|e| e.to_string())?;
            Ok(Ok(Reply::ToolCall { name: tool.into(), args }))
        }
        (None, None, Some(why)) => Ok(Err(why.to_string())),
        (None, None, None) => Err("it has neither `reply` nor `tool` nor `error`".into()),
    }
}

fn answers(
    script: &[Entry],
    tools: &Tools,
    world: &PossibleWorld,
    call: &Call,
) -> Result<Vec<Answer<PossibleWorld>>, String> {
    let certain =
        |response: Response, world: PossibleWorld| vec![Answer { probability: Num::ONE, response, world }];
    match call {
        Call::Sample { probability, .. } => Ok(sample(probability, world)),
        Call::Model { messages, params, .. } => {
            let purpose = params.as_ref().and_then(|p| p.purpose.as_deref());
            let last = messages.last().map_or("", |m| &m.content);
            let fits = |(e, used): &(&Entry, &bool)| {
                (!**used || e.repeat)
                    && e.purpose.as_deref().is_none_or(|p| purpose == Some(p))
                    && e.part.as_deref().is_none_or(|p| last.contains(p))
            };
            let all = || script.iter().zip(&world.used);
            let special = |(e, _): &(&Entry, &bool)| e.purpose.is_some() || e.part.is_some();
            let chosen = all()
                .position(|x| special(&x) && fits(&x))
                .or_else(|| all().position(|x| !special(&x) && fits(&x)));
            let Some(i) = chosen else {
                let shown = diagnostics::clip(last);
                return Err(format!("the script has no reply left for the question `{shown}`"));
            };
            let mut after = world.clone();
            after.used[i] = true;
            Ok(script[i]
                .choices
                .iter()
                .map(|(p, reply)| Answer {
                    probability: p.clone(),
                    response: Response::Model(reply.clone()),
                    world: after.clone(),
                })
                .collect())
        }
        Call::Recall { store, key } => {
            let mut after = world.clone();
            let value = after.stores.recall(store, *key);
            Ok(certain(Response::Recall(value), after))
        }
        Call::Remember { store, key, value } => {
            let mut after = world.clone();
            let done = after.stores.remember(store, *key, value.clone());
            Ok(certain(Response::Remember(done), after))
        }
        Call::Approve { tool, .. } => {
            Err(format!("the approval of a call of the tool `{}` is not known in advance", tool.name))
        }
        Call::Tool { tool, args } => match tools.at_once(tool, args.clone()) {
            Some(result) => Ok(certain(Response::Tool(result), world.clone())),
            None => Err(format!("the result of the tool `{}` is not known in advance", tool.name)),
        },
    }
}

fn show(ui: &Ui, found: &Exploration) -> Exit {
    for ending in &found.endings {
        let p = &ending.probability;
        if ui.is_json() {
            let mut line = json!({"probability": p.to_string(), "approximately": approximately(p).parse::<f64>().ok(), "ways": ending.ways});
            if let Some(o) = line.as_object_mut() {
                match &ending.result {
                    Ok(value) => {
                        let json = value.data().map_or_else(|| value.to_string().into(), |d| d.to_json());
                        o.insert("result".into(), json);
                        o.insert("shown".into(), value.to_string().into());
                    }
                    Err(f) => {
                        o.insert("error".into(), json!({"code": f.code.as_str(), "message": f.message}));
                    }
                }
            }
            ui.result(&line.to_string());
            continue;
        }
        let shown = match &ending.result {
            Ok(value) => value.to_string(),
            Err(f) => format!("error {}: {}", f.code.as_str(), f.message),
        };
        ui.result(&format!("{:<20} {shown}", probability(p)));
    }
    if found.open > Num::ZERO {
        let left = probability(&found.open);
        if ui.is_json() {
            ui.result(&json!({"open": found.open.to_string(), "worlds": found.worlds}).to_string());
        } else {
            ui.result(&format!("{left:<20} not followed to the end"));
        }
        ui.note(&format!(
            "{} courses were followed; the rest is beyond --max-worlds or --fuel, so each probability above is a lower bound",
            found.worlds
        ));
        return Exit::Failed;
    }
    Exit::Done
}

/// A longer fraction is shown as a decimal only.
const MAX_FRACTION_LEN: usize = 32;

/// A probability exactly, and as a decimal where that is something else.
fn probability(p: &Num) -> String {
    let exact = p.to_string();
    match exact.len() {
        length if length > MAX_FRACTION_LEN => format!("about {}", approximately(p)),
        _ if exact.contains('/') => format!("{exact} = {}", approximately(p)),
        _ => exact,
    }
}

/// A decimal with six digits, for reading.
fn approximately(p: &Num) -> String {
    let text = p.to_string();
    let (a, b) = text.split_once('/').unwrap_or((&text, "1"));
    let (Some((a, high)), Some((b, low))) = (leading(a), leading(b)) else { return "0".into() };
    let (mantissa, exponent) = if a < b { (a / b * 10.0, high - low - 1) } else { (a / b, high - low) };
    if exponent < -5 {
        return format!("{mantissa:.3}e{exponent}");
    }
    format!("{:.6}", mantissa * 10_f64.powi(exponent as i32))
}

/// The leading digits of a decimal, as a number from 1 to 10, and its power of ten; nothing for zero.
fn leading(decimal: &str) -> Option<(f64, i64)> {
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    let digits = format!("{whole}{fraction}");
    let first = digits.find(|c: char| matches!(c, '1'..='9'))?;
    let shown: String = digits[first..].chars().take(17).collect();
    let mantissa: f64 = format!("{}.{}", &shown[..1], &shown[1..]).parse().ok()?;
    Some((mantissa, whole.len() as i64 - 1 - first as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_read_at_a_glance_however_small() {
        let shown = |a: &str| probability(&a.parse().unwrap());
        assert_eq!(shown("0.25"), "0.25");
        assert_eq!(shown("5/12"), "5/12 = 0.416667");
        assert_eq!(shown("1/3000000"), "1/3000000 = 3.333e-7");
        // By squaring: a division for each factor reduces a fraction of thousands of digits each time.
        let power = |base: Num, exponent: u32| {
            let (mut product, mut square) = (Num::ONE, base);
            for bit in 0..u32::BITS - exponent.leading_zeros() {
                if exponent >> bit & 1 == 1 {
                    product = product.mul(&square).unwrap();
                }
                square = square.mul(&square).unwrap();
            }
            product
        };
        let p = Num::ONE.div(&power(Num::from(2), 4_000)).unwrap();
        assert_eq!(probability(&p), "about 7.586e-1205");
        let p = p.div(&power(Num::from(3), 12_000)).unwrap();
        assert!(probability(&p).starts_with("about ") && probability(&p).len() < 30, "{}", probability(&p));
    }
}
