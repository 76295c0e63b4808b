//! Requests that are answered where they stand: stores in this process, built-in tools and samples.
//!
//! Entry point: `Immediate`, for [`Machine::poll_with`](machine::Machine::poll_with). The events are those of
//! other requests.
//!
//! Invariant: a request answered here has the same answer as in the driver. The driver handles requests with
//! a journal, a time limit, an earlier waiting request or an exhausted budget.

use crate::budget::Budget;
use crate::driver::Handlers;
use crate::partial::ProgressLog;
use crate::tools::seconds_now;
use crate::{Redactor, Stores};
use core_ir::{Data, Num, StoreDecl, ToolDecl};
use machine::{Answers, Args, Asked};
use runs::{Answered, Asked as What, Event, Finish, Importance, Tokens, is_labeled, key_name, sample};
use std::sync::Arc;
use tokio::time::Instant;

/// The parts of a driver that answer at once.
pub(crate) struct Immediate<'d, 'a> {
    pub(crate) handlers: &'d Handlers,
    pub(crate) stores: &'d Stores,
    pub(crate) budget: &'d mut Budget<'a>,
    pub(crate) progressed: &'d mut ProgressLog,
    pub(crate) events: &'d mut (dyn FnMut(Event) + Send),
    /// True if a tool call may start now.
    pub(crate) free: bool,
}

impl Immediate<'_, '_> {
    fn asks(&mut self, asked: &Asked<'_>, what: What) -> (Instant, Importance) {
        let importance = Importance::of_request(&what, is_labeled([asked.channel, asked.answer]));
        let channel = asked.lattice.data_of(asked.channel);
        let answer = asked.lattice.data_of(asked.answer);
        // Runs that explain flow use the driver, so there are no explanations here.
        let why = Vec::new();
        let (id, span, place) = (asked.id(), asked.span, asked.place().path());
        self.emit(Event::Asked { id, span, channel, answer, place, what, why, recorded: false, importance });
        (Instant::now(), importance)
    }

    fn answers(&mut self, asked: &Asked<'_>, what: Answered, (begun, importance): (Instant, Importance)) {
        let importance = importance.answered(&what);
        let (tokens, finish) = (Tokens::default(), Finish::Other);
        self.emit(Event::Answered {
            id: asked.id(),
            what,
            tokens,
            usd: None,
            finish,
            elapsed: begun.elapsed(),
            stated: None,
            importance,
        });
    }

    fn redactor(&self) -> &Redactor {
        self.handlers.models.redactor()
    }

    fn emit(&mut self, event: Event) {
        self.progressed.note(&event);
        (self.events)(event);
    }

    /// Returns true if a store can be used without waiting.
    fn is_here(&self, asked: &Asked<'_>, store: &StoreDecl) -> bool {
        asked.deadlines().is_empty() && self.stores.is_in_process(store)
    }
}

impl Answers for Immediate<'_, '_> {
    fn tool(
        &mut self,
        asked: &Asked<'_>,
        tool: &Arc<ToolDecl>,
        args: Args<'_>,
    ) -> Option<Result<Data, String>> {
        if !self.free || !asked.deadlines().is_empty() {
            return None;
        }
        let builtin = self.handlers.tools.builtin(tool)?;
        if !self.budget.admits_tool_call() {
            return None;
        }
        let shown = args.iter().map(|(name, value)| (name.clone(), self.redactor().data(value))).collect();
        let begun =
            self.asks(asked, What::Tool { name: tool.name.clone(), args: shown, choices: Vec::new() });
        // It was asked whether that is within the budget.
        let _ = self.budget.tool_call();
        let result = builtin.call(&args.to_vec(), seconds_now());
        let result = result.map(|data| self.redactor().data(&data)).map_err(|e| self.redactor().owned(e));
        let what = match &result {
            Ok(data) => Answered::Data(data.clone()),
            Err(e) => Answered::Failed(e.clone()),
        };
        self.answers(asked, what, begun);
        Some(result)
    }

    fn recall(
        &mut self,
        asked: &Asked<'_>,
        store: &Arc<StoreDecl>,
        key: u32,
    ) -> Option<Result<Option<Data>, String>> {
        if !self.is_here(asked, store) {
            return None;
        }
        let begun = self.asks(asked, What::Recall { store: store.name.clone(), key: key_name(store, key) });
        let result = self.stores.recall(store, key);
        let what = match &result {
            Ok(Some(data)) => Answered::Data(self.redactor().data(data)),
            Ok(None) => Answered::Nothing,
            Err(e) => Answered::Failed(e.clone()),
        };
        self.answers(asked, what, begun);
        Some(result)
    }

    fn remember(
        &mut self,
        asked: &Asked<'_>,
        store: &Arc<StoreDecl>,
        key: u32,
        value: &Data,
    ) -> Option<Result<(), String>> {
        if !self.is_here(asked, store) {
            return None;
        }
        let shown = self.redactor().data(value);
        let name = key_name(store, key);
        let begun = self.asks(asked, What::Remember { store: store.name.clone(), key: name, value: shown });
        let result = self.stores.remember(store, key, value.clone());
        let what = result.clone().map_or_else(Answered::Failed, |()| Answered::Nothing);
        self.answers(asked, what, begun);
        Some(result)
    }

    fn sample(&mut self, asked: &Asked<'_>, probability: &Num, draw: u64) -> Option<bool> {
        if !asked.deadlines().is_empty() {
            return None;
        }
        let begun = self.asks(asked, What::Sample { probability: probability.clone() });
        let sample = sample(self.handlers.seed, draw, probability);
        self.answers(asked, Answered::Sample(sample), begun);
        Some(sample)
    }
}
