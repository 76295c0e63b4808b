//! Several models, of which the first that can answers.

use super::{Answer, FaultKind, ModelCall, ModelError, Price, Provider, Tokens, Work};
use crate::event::Progress;
use core_ir::Num;
use std::sync::Arc;
use std::time::Duration;

/// Chain of models. If a model fails because of its provider (no connection, a rejected key, an error, a
/// malformed response), the next one is called. A refused, filtered or truncated answer is an answer: another
/// model must not circumvent it.
pub(crate) struct Fallback {
    name: String,
    chain: Vec<Arc<dyn Provider>>,
}

impl Fallback {
    /// `chain` is not empty.
    pub(crate) fn new(chain: Vec<Arc<dyn Provider>>) -> Fallback {
        let names: Vec<&str> = chain.iter().map(|p| p.name()).collect();
        Fallback { name: names.join(", else "), chain }
    }

    async fn answer(self: Arc<Self>, call: ModelCall, progress: Progress) -> Answer {
        let (mut used, mut cost) = (Tokens::default(), Some(Num::ZERO));
        let mut reasons: Vec<String> = Vec::new();
        let mut kind: Option<FaultKind> = None;
        let most = self.chain.len();
        for (i, provider) in self.chain.iter().enumerate() {
            let mut answer = match provider.clone().ask(call.clone(), progress.clone()) {
                Work::Now(answer) => answer,
                Work::Later(answer) => answer.await,
            };
            used = used.and(answer.tokens);
            let one = match &answer.result {
                Ok(_) => provider.price().map(|p| p.of(answer.tokens)),
                Err(_) => crate::budget::cost(provider.price().as_ref(), answer.tokens),
            };
            cost = cost.zip(one).and_then(|(a, b)| a.add(&b).ok());
            let goes_on = answer.result.as_ref().is_err_and(|e| e.kind.is_of_the_provider());
            if !goes_on {
                answer.tokens = used;
                answer.by = Some((provider.name().to_string(), cost));
                return answer;
            }
            if let Err(e) = answer.result {
                if i + 1 < most {
                    let number = u32::try_from(i + 1).unwrap_or(u32::MAX);
                    progress.retry(number, Duration::ZERO, format!("{}: {}", provider.name(), e.message));
                }
                // The chain fails for good only if each of its models does.
                kind = kind.filter(|k| !k.is_permanent()).or(Some(e.kind));
                reasons.push(format!("{}: {e}", provider.name()));
            }
        }
        let what = format!("none of {most} models answered: {}", reasons.join("; "));
        let failed = Answer::failed(ModelError::of(kind.unwrap_or_default(), what));
        Answer { tokens: used, by: Some((self.name.clone(), cost)), ..failed }
    }
}

impl Provider for Fallback {
    fn name(&self) -> &str {
        &self.name
    }

    /// The highest price of each kind: what a budget has to keep back. A model whose price is not known could
    /// have any.
    fn price(&self) -> Option<Price> {
        let prices: Option<Vec<Price>> = self.chain.iter().map(|p| p.price()).collect();
        let special = |a: &Price, b: &Price, of: fn(&Price) -> Option<&Num>| {
            let either = of(a).is_some() || of(b).is_some();
            either.then(|| of(a).unwrap_or(&a.input).max(of(b).unwrap_or(&b.input)).clone())
        };
        prices?.into_iter().reduce(|a, b| Price {
            cached: special(&a, &b, |p| p.cached.as_ref()),
            cache_write: special(&a, &b, |p| p.cache_write.as_ref()),
            input: a.input.max(b.input),
            output: a.output.max(b.output),
        })
    }

    fn most_attempts(&self) -> u64 {
        self.chain.len() as u64
    }

    fn may_block(&self) -> bool {
        self.chain.iter().any(|p| p.may_block())
    }

    fn ask(self: Arc<Self>, call: ModelCall, progress: Progress) -> Work<Answer> {
        Work::Later(Box::pin(self.answer(call, progress)))
    }
}
