//! Budgets of a day that all servers with one journal share.
//!
//! Entry points: [`Journal::shared_day`] and [`Journal::change_shared_day`].
//!
//! Invariant: a change counts only if nobody else has changed the day since it was read. So what is granted
//! of a day never exceeds it, whatever the number of servers.

use super::db::{DbError, Row, Statement};
use super::{Journal, JournalError, signed, whole};
use core_ir::Num;

/// Use of a caller's day: what was used, and what was granted to runs that have not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct DayUse {
    /// Calls of models.
    pub calls: u64,
    /// Tokens of prompts and replies.
    pub tokens: u64,
    /// US dollars.
    pub usd: Num,
}

/// Use of a day as a journal has it.
#[derive(Clone, Debug)]
pub struct SharedDay {
    /// The use; `None` if no server has granted anything of the day.
    pub used: Option<DayUse>,
    version: i64,
}

fn read(row: &Row<'_>) -> Result<SharedDay, DbError> {
    let usd = row.get::<String>(2)?.parse().map_err(|_| DbError::damaged())?;
    let used = DayUse { calls: whole(row.get(0)?), tokens: whole(row.get(1)?), usd };
    Ok(SharedDay { used: Some(used), version: row.get(3)? })
}

impl Journal {
    /// Use of a caller's day, in days since 1970; `None` if no server of another host has this journal.
    ///
    /// # Errors
    /// The journal can't be read.
    pub fn shared_day(&self, caller: &str, day: i64) -> Result<Option<SharedDay>, JournalError> {
        if self.takeover_interval().is_none() {
            return Ok(None);
        }
        let query = "SELECT calls, tokens, usd, version FROM budgets WHERE caller = ?1 AND day = ?2";
        let found = self.db.first(&Statement::new(query).with(caller).with(day), read);
        let found = found.map_err(|e| self.failed(&e))?;
        Ok(Some(found.unwrap_or(SharedDay { used: None, version: 0 })))
    }

    /// Changes the use of a caller's day, unless it is not what was read any more: then the result is false.
    ///
    /// # Errors
    /// The journal can't be written.
    pub fn change_shared_day(
        &self,
        caller: &str,
        day: i64,
        from: &SharedDay,
        to: &DayUse,
    ) -> Result<bool, JournalError> {
        let change = match from.version {
            0 => {
                "INSERT INTO budgets (caller, day, calls, tokens, usd, version)
                 SELECT ?1, ?2, ?3, ?4, ?5, ?6 + 1 ON CONFLICT DO NOTHING"
            }
            _ => {
                "UPDATE budgets SET calls = ?3, tokens = ?4, usd = ?5, version = version + 1
                 WHERE caller = ?1 AND day = ?2 AND version = ?6"
            }
        };
        let change = Statement::new(change).with(caller).with(day);
        let change = change.with(signed(to.calls)).with(signed(to.tokens)).with(to.usd.to_string());
        let changed = self.db.write(None, &[change.with(from.version)]).map_err(|e| self.failed(&e))?;
        Ok(changed > 0)
    }
}
