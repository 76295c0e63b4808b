//! L027: a setting that the named model refuses.

use crate::{Check, Context, Rule};
use core_ir::{Data, ModelParams, Num, Recv, Term};
use diagnostics::{Diagnostic, Level, clip};

pub(super) static RULE: Rule = Rule {
    code: "L027",
    name: "refused-setting",
    level: Level::Warn,
    meaning: "θ of `llm p θ` has a setting that the model of θ is not defined for: each request fails, or the setting has no effect",
    docs: page!("../../../../docs/rules/L027-refused-setting.md"),
    check: Check::Term(check),
};

/// Models that sample in one way only: they refuse each of [`SAMPLING`] unless it has its default.
const FIXED_SAMPLING: &[&str] = &[
    "gpt-5",
    "gpt-5-codex",
    "gpt-5-mini",
    "gpt-5-nano",
    "gpt-5-pro",
    "o1",
    "o1-mini",
    "o1-preview",
    "o1-pro",
    "o3",
    "o3-deep-research",
    "o3-mini",
    "o3-pro",
    "o4-mini",
    "o4-mini-deep-research",
];

/// Settings of sampling beside the temperature, with their defaults.
const SAMPLING: &[(&str, i64)] = &[("top_p", 1), ("presence_penalty", 0), ("frequency_penalty", 0)];

/// Models that take a temperature or `top_p`, and refuse both together.
const ONE_OF_BOTH: &[&str] = &[
    "claude-haiku-4-5",
    "claude-opus-4-1",
    "claude-opus-4-5",
    "claude-opus-4-6",
    "claude-sonnet-4-5",
    "claude-sonnet-4-6",
];

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    if context.compiled.facts.filters_settings {
        return;
    }
    let code = context.code();
    for (id, term) in code.iter() {
        let (Term::Llm(_, params) | Term::Recv(Recv::Data(params))) = term else { continue };
        let Some(model) = params.model.as_deref().filter(|_| !params.waiting) else { continue };
        // OpenRouter leaves out what a model does not take.
        if model.starts_with("openrouter/") || model.starts_with("openrouter:") {
            continue;
        }
        if is_one_of(model, FIXED_SAMPLING) {
            let refused = refused_sampling(params);
            if !refused.is_empty() {
                let message = format!("`{}` refuses {}", clip(model), refused.join(" and "));
                out.push(
                    rule.finding(message, code.span(id)).help("remove it: this model has one way to sample"),
                );
            }
        } else if is_one_of(model, ONE_OF_BOTH)
            && params.temperature.is_some()
            && number(params, "top_p").is_some()
        {
            let message = format!("`{}` refuses a temperature together with `top_p`", clip(model));
            out.push(rule.finding(message, code.span(id)).help("keep one of them"));
        }
    }
}

/// Describes the settings of sampling that differ from their defaults.
fn refused_sampling(params: &ModelParams) -> Vec<String> {
    let temperature = params.temperature.as_ref().filter(|t| **t != Num::from(1));
    let others = SAMPLING
        .iter()
        .filter(|(name, default)| number(params, name).is_some_and(|value| *value != Num::from(*default)));
    temperature
        .map(|t| format!("a temperature of {t}"))
        .into_iter()
        .chain(others.map(|(n, _)| format!("`{n}`")))
        .collect()
}

/// A setting that is a number.
fn number<'p>(params: &'p ModelParams, name: &str) -> Option<&'p Num> {
    params.extra.iter().find(|(n, _)| &**n == name).and_then(|(_, value)| match value {
        Data::Num(value) => Some(value),
        _ => None,
    })
}

/// Tells whether a model is one of those named. The name may stand after a provider and before a date:
/// `openai/o3-mini-2025-01-31`, `eu.anthropic.claude-haiku-4-5-20251001-v1:0`.
fn is_one_of(model: &str, names: &[&str]) -> bool {
    let name = model.split('@').next().unwrap_or(model);
    let has_letters = |part: &&str| part.contains(|c: char| c.is_ascii_alphabetic());
    let name = name.rsplit(['/', ':']).find(has_letters).unwrap_or(name);
    let name = name.rsplit_once("anthropic.").map_or(name, |(_, name)| name);
    let is_version = |rest: &str| rest.is_empty() || rest.starts_with("-20") || rest == "-latest";
    names.iter().any(|n| name.strip_prefix(n).is_some_and(is_version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_known_by_their_names() {
        for model in [
            "o3-mini",
            "openai/o3-mini-2025-01-31",
            "openai:gpt-5",
            "o1-mini@OpenAI",
            "gpt-5-mini-2025-08-07",
        ] {
            assert!(is_one_of(model, FIXED_SAMPLING), "{model}");
        }
        // These take a temperature.
        for model in
            ["gpt-5-chat-latest", "gpt-5.4-mini", "gpt-4o-2024-08-06", "o3-mini-of-ours", "solo1", ""]
        {
            assert!(!is_one_of(model, FIXED_SAMPLING), "{model}");
        }
        for model in [
            "claude-sonnet-4-5-20250929",
            "global.anthropic.claude-haiku-4-5-20251001-v1:0",
            "claude-opus-4-1-latest",
        ] {
            assert!(is_one_of(model, ONE_OF_BOTH), "{model}");
        }
        assert!(!is_one_of("claude-3-7-sonnet-latest", ONE_OF_BOTH));
    }
}
