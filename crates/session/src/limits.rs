//! Limits of runs, from the numbers of settings and options.

use crate::error::SettingsError;
use crate::settings::LimitsEntry;
use core_ir::Num;
use runtime::{Limits, Usage};
use std::time::Duration;

/// `[limits]` of the settings.
///
/// # Errors
/// A number that is no amount of money or no time, in words for people.
pub fn limits_of(file: &LimitsEntry) -> Result<Limits, SettingsError> {
    Ok(Limits {
        max_model_calls: file.calls,
        max_tool_calls: file.tool_calls,
        max_tokens: file.tokens,
        // The shortest decimal that denotes the float is what was written.
        max_usd: file.usd.map(|x| money("usd", &x.to_string())).transpose().map_err(SettingsError::new)?,
        timeout: file.timeout.map(|s| seconds("timeout", s)).transpose().map_err(SettingsError::new)?,
        ..Limits::default()
    })
}

/// Reads an amount of US dollars, the value of this option or setting.
///
/// # Errors
/// The text is not an amount of money, with the reason.
pub fn money(option: &str, text: &str) -> Result<Num, String> {
    let amount = text.parse::<Num>().ok().filter(|n| *n >= Num::ZERO);
    amount.ok_or_else(|| format!("`{option} {text}`: not an amount of money"))
}

/// Reads a time in seconds, the value of this option or setting.
///
/// # Errors
/// It is not positive, in words for people.
pub fn seconds(option: &str, seconds: f64) -> Result<Duration, String> {
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|d| *d > Duration::ZERO);
    time.ok_or_else(|| format!("`{option} {seconds}`: not a positive number of seconds"))
}

/// Time for which a question whether a tool may be called can be answered; a week if nothing is set.
pub fn approval_lifetime(seconds: Option<f64>) -> Duration {
    /// A week.
    const USUAL: f64 = 7.0 * 86_400.0;
    Duration::try_from_secs_f64(seconds.unwrap_or(USUAL)).unwrap_or(Duration::MAX)
}

/// Takes what was used, and the time that it took, off the limits of what follows.
pub fn spend(limits: &mut Limits, usage: &Usage, elapsed: Duration) {
    limits.timeout = limits.timeout.map(|most| most.saturating_sub(elapsed));
    let less = |most: &mut Option<u64>, used: u64| *most = most.map(|most| most.saturating_sub(used));
    less(&mut limits.max_model_calls, usage.model_calls);
    less(&mut limits.max_tool_calls, usage.tool_calls);
    less(&mut limits.max_tokens, usage.input_tokens.saturating_add(usage.output_tokens));
    if let (Some(most), Some(used)) = (&limits.max_usd, &usage.usd) {
        let zero = Num::from(0);
        limits.max_usd = Some(most.sub(used).ok().filter(|left| *left > zero).unwrap_or(zero));
    }
}

/// Sum of two usages.
pub fn sum(a: &Usage, b: &Usage) -> Usage {
    let mut unpriced = a.unpriced.clone();
    unpriced.extend(b.unpriced.iter().filter(|m| !a.unpriced.contains(m)).cloned());
    Usage {
        model_calls: a.model_calls + b.model_calls,
        tool_calls: a.tool_calls + b.tool_calls,
        questions: a.questions + b.questions,
        input_tokens: a.input_tokens.saturating_add(b.input_tokens),
        output_tokens: a.output_tokens.saturating_add(b.output_tokens),
        usd: a.usd.as_ref().zip(b.usd.as_ref()).and_then(|(a, b)| a.add(b).ok()),
        unpriced,
    }
}
