//! Budgets of a run, reserved before they are spent.
//!
//! Invariant: usage and reservations together never exceed a limit, whatever the number of calls in flight.
//! The exceptions are a model that exceeds its output limit, and a provider whose tokenizer makes more tokens
//! than bytes.

use crate::provider::{ModelCall, Price, Tokens, count};
use core_ir::{Data, ModelParams, Name, Num};
use runs::{Resource, Usage};
use std::collections::BTreeMap;
use std::time::Duration;

/// Limits of a run. `None` is no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls of models.
    pub max_model_calls: Option<u64>,
    /// Calls of tools.
    pub max_tool_calls: Option<u64>,
    /// Tokens, of prompts and replies together.
    pub max_tokens: Option<u64>,
    /// US dollars.
    pub max_usd: Option<Num>,
    /// Time.
    pub timeout: Option<Duration>,
    /// Maximum number of requests in flight, at least 1. Further requests wait.
    pub in_flight: usize,
}

impl Default for Limits {
    /// No limit but 64 requests at once.
    fn default() -> Limits {
        Limits {
            max_model_calls: None,
            max_tool_calls: None,
            max_tokens: None,
            max_usd: None,
            timeout: None,
            in_flight: 64,
        }
    }
}

/// Tokens of a reply if neither the source nor the limits say how many.
const USUAL_OUTPUT: u64 = 1024;

/// A reply is not worth asking for with less, unless the source says so.
const MIN_OUTPUT_TOKENS: u64 = 64;

/// Amounts reserved for a call in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reserve {
    tokens: u64,
    usd: Num,
    /// Reservation in the budget of the agent that makes the call.
    agent: Option<Box<(Name, Reserve)>>,
}

/// Decision whether a call may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may, with at most this number of tokens in the reply if that is limited.
    Go(Reserve, Option<u64>),
    /// Not now, but perhaps once a call in flight has used less than its reservation.
    Wait,
    /// Never.
    Stop(String),
}

/// Limits, borrowed or owned.
#[derive(Debug)]
enum LimitsSource<'a> {
    Theirs(&'a Limits),
    Own(Box<Limits>),
}

impl std::ops::Deref for LimitsSource<'_> {
    type Target = Limits;
    fn deref(&self) -> &Limits {
        match self {
            LimitsSource::Theirs(limits) => limits,
            LimitsSource::Own(limits) => limits,
        }
    }
}

#[derive(Debug)]
#[allow(
    clippy::box_collection,
    reason = "every run that waits has this, and mostly no agent has one of its own"
)]
pub(crate) struct Budget<'a> {
    limits: LimitsSource<'a>,
    pub(crate) usage: Usage,
    /// Tokens reserved for calls in flight.
    tokens: u64,
    usd: Num,
    under_way: u64,
    /// The budgets of agents that have one of their own.
    agents: Option<Box<BTreeMap<Name, Budget<'a>>>>,
    /// Exhausted resource when a call was refused for good, and the agent whose budget it was, if not the
    /// run's.
    used_up: Option<Box<(Resource, Option<Name>)>>,
}

impl<'a> Budget<'a> {
    /// Of these limits.
    pub(crate) fn of(limits: &'a Limits) -> Budget<'a> {
        Budget::within(LimitsSource::Theirs(limits))
    }

    fn new(limits: Limits) -> Budget<'a> {
        Budget::within(LimitsSource::Own(Box::new(limits)))
    }

    fn within(limits: LimitsSource<'a>) -> Budget<'a> {
        Budget {
            limits,
            usage: Usage::default(),
            tokens: 0,
            usd: Num::ZERO,
            under_way: 0,
            agents: None,
            used_up: None,
        }
    }

    /// Returns the exhausted resource when a call was refused for good, and the agent whose budget it was, if
    /// not the run's.
    pub(crate) fn used_up(&self) -> Option<(Resource, Option<Name>)> {
        self.used_up.as_deref().cloned()
    }

    /// Returns true if the limits admit one more tool call.
    pub(crate) fn admits_tool_call(&self) -> bool {
        self.limits.max_tool_calls.is_none_or(|most| self.usage.tool_calls < most)
    }

    /// Counts a tool call, if there may be one.
    pub(crate) fn tool_call(&mut self) -> Result<(), String> {
        match self.limits.max_tool_calls {
            Some(most) if self.usage.tool_calls >= most => {
                self.used_up = Some(Box::new((Resource::ToolCalls, None)));
                Err(reached(most, "tool call"))
            }
            _ => {
                self.usage.tool_calls += 1;
                Ok(())
            }
        }
    }

    /// Counts a question for approval.
    pub(crate) fn question(&mut self) {
        self.usage.questions += 1;
    }

    /// Counts a call of a tool that a journal has answered.
    pub(crate) fn replayed_tool(&mut self) {
        self.usage.tool_calls += 1;
    }

    /// Counts a call of a model that a journal has answered, with what it used then.
    pub(crate) fn replayed_model(
        &mut self,
        params: Option<&ModelParams>,
        model: &str,
        tokens: Tokens,
        usd: Option<&Num>,
    ) {
        if let Some((agent, limits)) = params.and_then(own_budget) {
            let own = self.agents.get_or_insert_default().entry(agent).or_insert_with(|| Budget::new(limits));
            own.replayed_model(None, model, tokens, usd);
        }
        let usage = &mut self.usage;
        usage.model_calls += 1;
        usage.input_tokens = usage.input_tokens.saturating_add(tokens.input);
        usage.output_tokens = usage.output_tokens.saturating_add(tokens.output);
        usage.charge(model, usd);
    }

    /// Reserves what a model call may use at most, of the run's budget and of that of the agent that asks.
    /// `attempts` is how often it may be charged.
    pub(crate) fn model_call(
        &mut self,
        call: &ModelCall,
        model: &str,
        price: Option<&Price>,
        attempts: u64,
    ) -> Verdict {
        let own = call.params.as_deref().and_then(own_budget);
        let Some((agent, limits)) = own else { return self.own_call(call, model, price, attempts) };
        let own =
            self.agents.get_or_insert_default().entry(agent.clone()).or_insert_with(|| Budget::new(limits));
        let (reserve, own_most) = match own.own_call(call, model, price, attempts) {
            Verdict::Go(reserve, most) => (reserve, most),
            Verdict::Wait => return Verdict::Wait,
            Verdict::Stop(why) => {
                self.used_up = own.used_up.as_ref().map(|used| Box::new((used.0, Some(agent.clone()))));
                return Verdict::Stop(format!("agent `{agent}`: {why}"));
            }
        };
        match self.own_call(call, model, price, attempts) {
            Verdict::Go(mut all, most) => {
                all.agent = Some(Box::new((agent, reserve)));
                Verdict::Go(all, most.into_iter().chain(own_most).min())
            }
            refused => {
                if let Some(own) = self.agents.as_mut().and_then(|a| a.get_mut(&agent)) {
                    own.release(&reserve);
                    own.usage.model_calls -= 1;
                }
                refused
            }
        }
    }

    fn own_call(&mut self, call: &ModelCall, model: &str, price: Option<&Price>, attempts: u64) -> Verdict {
        let attempts = attempts.max(1);
        if let Some(most) = self.limits.max_model_calls
            && self.usage.model_calls >= most
        {
            self.used_up = Some(Box::new((Resource::ModelCalls, None)));
            return Verdict::Stop(reached(most, "model call"));
        }
        let limited = self.limits.max_tokens.is_some() || self.limits.max_usd.is_some();
        let mut reserve = Reserve { tokens: 0, usd: Num::ZERO, agent: None };
        let mut most_output = None;
        if limited {
            let own = call.params.as_ref().and_then(|p| p.max_tokens);
            let wanted = own.unwrap_or(USUAL_OUTPUT);
            // The limit that the source states must be available in full.
            let least = own.unwrap_or(MIN_OUTPUT_TOKENS);
            let input = call.input_bound();
            let mut output = wanted;
            let mut short = None;
            if let Some(most) = self.limits.max_tokens {
                let used = self
                    .usage
                    .input_tokens
                    .saturating_add(self.usage.output_tokens)
                    .saturating_add(self.tokens);
                let left = most.saturating_sub(used) / attempts;
                output = output.min(left.saturating_sub(input));
                if left < input.saturating_add(least) {
                    self.used_up = Some(Box::new((Resource::Tokens, None)));
                    short = Some(format!(
                        "{left} tokens are left of the limit of {most}; the next call may need {}",
                        input.saturating_add(least)
                    ));
                }
            }
            if let Some(most) = &self.limits.max_usd {
                let Some(price) = price else {
                    self.used_up = Some(Box::new((Resource::Usd, None)));
                    return Verdict::Stop(format!(
                        "the limit of {most} US dollars can't be enforced: the price of `{model}` is unknown; set it in `[models.\"{model}\"]`, or set a limit of calls or tokens instead"
                    ));
                };
                let spent = self.usage.usd.clone().unwrap_or(Num::ZERO);
                let left = minus(&minus(most, &spent), &self.usd);
                let left = left.div(&count(attempts)).unwrap_or(Num::ZERO);
                let need = price.most(input, least);
                if left < need {
                    self.used_up = Some(Box::new((Resource::Usd, None)));
                    short = Some(format!(
                        "{} US dollars are left of the limit of {most}; the next call may cost {}",
                        left.to_json(),
                        need.to_json()
                    ));
                }
                output = output.min(affordable(&left, price, input));
            }
            if let Some(why) = short {
                return if self.under_way > 0 { Verdict::Wait } else { Verdict::Stop(why) };
            }
            reserve = Reserve {
                tokens: input.saturating_add(output).saturating_mul(attempts),
                usd: price
                    .and_then(|p| p.most(input, output).mul(&count(attempts)).ok())
                    .unwrap_or(Num::ZERO),
                agent: None,
            };
            most_output = Some(output);
        }
        self.usage.model_calls += 1;
        self.under_way += 1;
        self.tokens = self.tokens.saturating_add(reserve.tokens);
        self.usd = plus(&self.usd, &reserve.usd);
        Verdict::Go(reserve, most_output)
    }

    /// Gives back what was reserved.
    fn release(&mut self, reserve: &Reserve) {
        self.under_way = self.under_way.saturating_sub(1);
        self.tokens = self.tokens.saturating_sub(reserve.tokens);
        self.usd = minus(&self.usd, &reserve.usd);
    }

    /// Replaces what was reserved by what a model used and what that cost, if it is known; gives the cost.
    pub(crate) fn settle(
        &mut self,
        reserve: &Reserve,
        model: &str,
        tokens: Tokens,
        cost: Option<Num>,
    ) -> Option<Num> {
        if let Some((agent, own)) = reserve.agent.as_deref()
            && let Some(budget) = self.agents.as_mut().and_then(|a| a.get_mut(agent))
        {
            budget.settle(own, model, tokens, cost.clone());
        }
        self.release(reserve);
        self.usage.input_tokens = self.usage.input_tokens.saturating_add(tokens.input);
        self.usage.output_tokens = self.usage.output_tokens.saturating_add(tokens.output);
        self.usage.charge(model, cost.as_ref());
        cost
    }
}

/// Returns the price of tokens. No tokens cost nothing, even at an unknown price.
pub(crate) fn cost(price: Option<&Price>, tokens: Tokens) -> Option<Num> {
    match price {
        Some(price) => Some(price.of(tokens)),
        None => (tokens == Tokens::default()).then_some(Num::ZERO),
    }
}

/// Returns the most that a request can cost that was given up, of which it is not known what a cache had.
pub(crate) fn most_cost(price: Option<&Price>, tokens: Tokens) -> Option<Num> {
    match price {
        Some(price) => Some(price.most(tokens.input, tokens.output)),
        None => cost(None, tokens),
    }
}

/// The budget that the declaration of an agent gives it, which its calls carry.
fn own_budget(params: &ModelParams) -> Option<(Name, Limits)> {
    let extra = &params.extra;
    let value = |name: &str| extra.iter().find(|(n, _)| &**n == name).map(|(_, d)| d);
    let (Some(Data::Str(agent)), Some(Data::Record(limits))) = (value("agent"), value("budget")) else {
        return None;
    };
    let number = |name: &str| {
        limits.iter().find(|(n, _)| &**n == name).and_then(|(_, d)| match d {
            Data::Num(n) => Some(n.clone()),
            _ => None,
        })
    };
    let max_model_calls = number("calls").and_then(|n| n.to_usize()).map(|n| n as u64);
    Some((Name::from(&**agent), Limits { max_model_calls, max_usd: number("usd"), ..Limits::default() }))
}

/// The message when a number of calls is used up.
fn reached(most: u64, what: &str) -> String {
    let plural = if most == 1 { "" } else { "s" };
    format!("the limit of {most} {what}{plural} is reached")
}

// Sums of money are far below the limits of numbers, so these never fail.
fn plus(a: &Num, b: &Num) -> Num {
    a.add(b).unwrap_or_else(|_| a.clone())
}

fn minus(a: &Num, b: &Num) -> Num {
    a.sub(b).unwrap_or_else(|_| a.clone())
}

/// Returns the number of output tokens that can be paid after the prompt.
fn affordable(left: &Num, price: &Price, input: u64) -> u64 {
    if price.output <= Num::ZERO {
        return u64::MAX;
    }
    let rest = minus(left, &price.most(input, 0));
    let tokens = rest.mul(&count(1_000_000)).and_then(|n| n.div(&price.output)).unwrap_or(Num::ZERO).floor();
    tokens.to_i64().map_or(0, |n| u64::try_from(n).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::Role;
    use machine::Message;
    use std::sync::Arc;

    fn call(text: &str) -> ModelCall {
        ModelCall {
            messages: vec![Message { role: Role::User, content: text.into(), call: None }].into(),
            params: None,
            tools: Vec::new(),
            max_output: None,
            attempt: 0,
            place: Arc::default(),
            said: Arc::default(),
        }
    }

    fn dollars(text: &str) -> Num {
        text.parse().unwrap()
    }

    /// A request that is given up may have been written to a cache, which costs more than the rest.
    #[test]
    fn an_abandoned_request_costs_the_dearest() {
        let dollars = |text: &str| text.parse::<Num>().unwrap();
        let special =
            |write: Option<Num>| Price { cache_write: write, ..Price::new(dollars("4"), dollars("8")) };
        let tokens = Tokens::new(1_000_000, 0);
        assert_eq!(most_cost(Some(&special(None)), tokens), Some(dollars("4")));
        assert_eq!(most_cost(Some(&special(Some(dollars("5")))), tokens), Some(dollars("5")));
        assert_eq!(most_cost(None, tokens), None);
        assert_eq!(most_cost(None, Tokens::default()), Some(Num::ZERO));
    }

    #[test]
    fn calls_are_counted_when_they_begin() {
        let mut b =
            Budget::new(Limits { max_model_calls: Some(1), max_tool_calls: Some(1), ..Limits::default() });
        assert!(matches!(b.model_call(&call("x"), "m", None, 1), Verdict::Go(..)));
        assert_eq!(
            b.model_call(&call("x"), "m", None, 1),
            Verdict::Stop("the limit of 1 model call is reached".into())
        );
        assert_eq!(b.tool_call(), Ok(()));
        assert_eq!(b.tool_call(), Err("the limit of 1 tool call is reached".into()));
    }

    #[test]
    fn money_is_reserved_for_the_worst_and_settled_exactly() {
        let price = Price::new(dollars("1"), dollars("4"));
        let mut b = Budget::new(Limits { max_usd: Some(dollars("0.01")), ..Limits::default() });
        let bound = call("hello").input_bound();
        let mut held = Vec::new();
        // Each call may cost bound + 4·1024 millionths of a dollar; the last is given what is left.
        while let Verdict::Go(reserve, most) = b.model_call(&call("hello"), "m", Some(&price), 1) {
            held.push((reserve, most));
        }
        assert_eq!(b.model_call(&call("hello"), "m", Some(&price), 1), Verdict::Wait);
        assert!(b.usd <= dollars("0.01"), "{}", b.usd);
        assert_eq!(held.len(), 3);
        assert_eq!(held[0].1, Some(1024));
        let left = 10_000 - 2 * (bound + 4 * 1024);
        assert_eq!(held[2].1, Some((left - bound) / 4));
        for (r, _) in &held {
            b.settle(r, "m", Tokens::new(3, 2), Some(price.of(Tokens::new(3, 2))));
        }
        assert_eq!(b.usage.usd, Some(dollars("0.000033")));
        assert_eq!((b.tokens, b.usd.clone(), b.under_way), (0, Num::ZERO, 0));
        assert!(matches!(b.model_call(&call("hello"), "m", Some(&price), 1), Verdict::Go(..)));
    }

    #[test]
    fn an_agent_has_a_budget_of_its_own_within_that_of_the_run() {
        let asks = |agent: &str, calls: i64| {
            let limits = Data::record([("calls".into(), Data::Num(calls.into()))]);
            let extra = vec![("agent".into(), Data::str(agent)), ("budget".into(), limits)];
            let params = core_ir::ModelParams { extra, ..core_ir::ModelParams::default() };
            ModelCall { params: Some(Arc::new(params)), ..call("x") }
        };
        let mut b = Budget::new(Limits { max_model_calls: Some(3), ..Limits::default() });
        let Verdict::Go(first, _) = b.model_call(&asks("a", 1), "m", None, 1) else { panic!("within both") };
        assert_eq!(
            b.model_call(&asks("a", 1), "m", None, 1),
            Verdict::Stop("agent `a`: the limit of 1 model call is reached".into())
        );
        assert!(matches!(b.model_call(&asks("b", 2), "m", None, 1), Verdict::Go(..)));
        assert!(matches!(b.model_call(&call("x"), "m", None, 1), Verdict::Go(..)));
        // A refusal by the run's budget is not counted against the agent.
        assert_eq!(
            b.model_call(&asks("b", 2), "m", None, 1),
            Verdict::Stop("the limit of 3 model calls is reached".into())
        );
        assert_eq!(b.agents.as_ref().unwrap()["b"].usage.model_calls, 1);
        b.settle(&first, "m", Tokens::new(5, 1), None);
        assert_eq!(
            (b.agents.as_ref().unwrap()["a"].usage.input_tokens, b.agents.as_ref().unwrap()["a"].under_way),
            (5, 0)
        );
        assert_eq!((b.usage.model_calls, b.usage.input_tokens, b.under_way), (3, 5, 2));
    }

    #[test]
    fn a_limit_that_can_never_be_met_stops() {
        let mut b = Budget::new(Limits { max_tokens: Some(100), ..Limits::default() });
        assert!(
            matches!(b.model_call(&call("hello"), "m", None, 1), Verdict::Stop(m) if m.starts_with("100 tokens are left"))
        );
        let mut b = Budget::new(Limits { max_usd: Some(dollars("1")), ..Limits::default() });
        assert!(
            matches!(b.model_call(&call("x"), "m", None, 1), Verdict::Stop(m) if m.contains("price of `m` is unknown"))
        );
    }

    #[test]
    fn an_unknown_price_makes_the_sum_unknown() {
        let mut b = Budget::new(Limits::default());
        let Verdict::Go(r, _) = b.model_call(&call("x"), "m", None, 1) else { panic!("no limits") };
        assert_eq!(b.settle(&r, "m", Tokens::new(1, 1), None), None);
        assert_eq!((b.usage.usd.clone(), b.usage.input_tokens), (None, 1));
        assert_eq!(b.usage.unpriced, ["m"]);
    }
}
