//! Settings and sessions of commands, out of their options.

#[cfg(feature = "frameworks")]
use crate::args::LevelArg;
use crate::args::{ApprovalsArg, JournalArgs, UnfinishedArg, WorldArgs};
use crate::ui::{Exit, Ui};
use runtime::{Approvers, ConfigError, JournalPlace, Limits, Unfinished};
#[cfg(feature = "frameworks")]
use session::lint::LeastLevel;
use session::{Approvals, JournalMode, JournalOptions, RunOptions, Session, Settings, SettingsError, limits};
use std::path::Path;

/// The settings that `--config` names, or the nearest `entail.toml` upwards.
///
/// # Errors
/// They can't be used, which the user has been told.
pub fn settings(ui: &Ui) -> Result<Settings, Exit> {
    Settings::read(ui.args.config.as_deref()).map_err(|e| refuse(ui, e))
}

/// The approvers of the settings.
///
/// # Errors
/// They can't be used, which the user has been told.
pub fn approvers(ui: &Ui) -> Result<Approvers, Exit> {
    session::settings::approvers(ui.args.config.as_deref()).map_err(|e| refuse(ui, e))
}

/// The session of a command that runs programs.
///
/// # Errors
/// The settings can't be used, which the user has been told.
pub fn session(ui: &Ui, world: &WorldArgs) -> Result<Session, Exit> {
    Ok(Session::new(settings(ui)?, world.options()))
}

/// The journal that `--journal` names: a directory, or a Postgres server.
///
/// # Errors
/// The address can't be used, which the user has been told.
pub fn journal(ui: &Ui, named: &Path) -> Result<JournalPlace, Exit> {
    let password = std::env::var("PGPASSWORD").ok().filter(|password| !password.is_empty());
    JournalPlace::named(named, password.as_deref()).map_err(|e| refuse(ui, session::Error::Journal(e)))
}

/// Tells the user that a request is wrong.
pub fn refuse(ui: &Ui, e: impl Into<session::Error>) -> Exit {
    let e = e.into();
    ui.usage(e.message(), e.help())
}

/// Tells the user that a model, tool or endpoint can't be used.
pub fn refuse_config(ui: &Ui, e: &ConfigError) -> Exit {
    ui.usage(&e.message, e.help.as_deref())
}

impl WorldArgs {
    /// Converts to the session's options.
    pub fn options(&self) -> RunOptions {
        RunOptions {
            model: self.model.clone(),
            script: self.script.clone(),
            policy: self.policy.clone(),
            seed: self.seed,
            fuel: self.fuel,
            explain_flow: self.explain_flow,
            python_tools: self.python_tools,
            run_refused: self.run_refused,
            otlp: self.otlp.clone(),
        }
    }

    /// Limits of a run: those of the command line, or else `[limits]` of the settings.
    ///
    /// # Errors
    /// An option or setting is no amount of money or no time.
    pub fn limits(&self, settings: &Settings) -> Result<Limits, SettingsError> {
        let mut all = limits::limits_of(&settings.limits)?;
        if let Some(text) = &self.max_usd {
            all.max_usd = Some(limits::money("--max-usd", text).map_err(SettingsError::new)?);
        }
        if let Some(seconds) = self.timeout {
            all.timeout = Some(limits::seconds("--timeout", seconds).map_err(SettingsError::new)?);
        }
        all.max_model_calls = self.max_calls.or(all.max_model_calls);
        all.max_tool_calls = self.max_tool_calls.or(all.max_tool_calls);
        all.max_tokens = self.max_tokens.or(all.max_tokens);
        Ok(all)
    }
}

impl JournalArgs {
    /// Converts to the session's options.
    ///
    /// # Errors
    /// The address of the journal can't be used, which the user has been told.
    pub fn options(&self, ui: &Ui) -> Result<JournalOptions, Exit> {
        let place = || journal(ui, self.journal.as_deref().unwrap_or(Path::new(".entail")));
        let mode = if let Some(file) = &self.record {
            JournalMode::Record(file.clone())
        } else if let Some(file) = &self.replay {
            JournalMode::Replay { place: file.into(), run: None }
        } else if let Some(run) = &self.resume {
            let unfinished = match self.unfinished {
                UnfinishedArg::Ask => Unfinished::Ask,
                UnfinishedArg::Retry => Unfinished::Retry,
                UnfinishedArg::Fail => Unfinished::Fail,
            };
            JournalMode::Resume {
                place: place()?,
                run: run.clone(),
                allow_changed: self.allow_changed,
                unfinished,
            }
        } else if self.journal.is_some() {
            JournalMode::Begin(place()?)
        } else {
            JournalMode::Off
        };
        let approvals = match self.approvals {
            ApprovalsArg::Wait => Approvals::Wait,
            ApprovalsArg::Leave => Approvals::Leave,
            ApprovalsArg::Refuse => Approvals::Refuse,
        };
        Ok(JournalOptions { mode, approvals })
    }
}

#[cfg(feature = "frameworks")]
impl LevelArg {
    /// Converts to the linter's level.
    pub fn least(self) -> LeastLevel {
        match self {
            LevelArg::Info => LeastLevel::Info,
            LevelArg::Unknown => LeastLevel::Unknown,
            LevelArg::Warn => LeastLevel::Warn,
            LevelArg::Error => LeastLevel::Error,
        }
    }
}
