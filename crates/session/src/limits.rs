//! Limits of runs, from the numbers of settings and options.

use crate::error::SettingsError;
use crate::settings::LimitsEntry;
use core_ir::Num;
use runtime::Limits;
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
