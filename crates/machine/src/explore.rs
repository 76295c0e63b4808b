//! Every course that a run can take, with its probability.
//!
//! Entry point: [`explore`]. It drives copies of a machine: where a request has several possible answers, each copy
//! goes on with one of them. Likelier courses are followed first, so what is left when a limit is reached is
//! the unlikely rest, and its probability is told.
//!
//! Invariant: the probabilities of the outcomes and of what is left add up to exactly one.
//! Invariant: the same machine and world give the same outcomes in the same order.
//!
//! Source: seed 000 §3 (probabilistic choice, the distribution monad); `docs/calculus.md` §4.

use crate::{Call, ErrorCode, Failure, Machine, Output, Reified, Response, Stop};
use core_ir::Num;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

/// A possible answer to a request, and the state of the world after it.
#[derive(Clone, Debug)]
pub struct Answer<S> {
    /// How likely it is. The probabilities of the answers to one request add up to one.
    pub probability: Num,
    /// The answer.
    pub response: Response,
    /// The world after it.
    pub world: S,
}

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most courses that are followed or kept for later.
    pub worlds: usize,
    /// The most steps of all machines together.
    pub fuel: u64,
}

/// How a run can end.
#[derive(Clone, Debug)]
pub struct Ending {
    /// How likely it is.
    pub probability: Num,
    /// In how many ways it is reached.
    pub ways: u64,
    /// The value with its labels, or the error.
    pub result: Result<Reified, Failure>,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// The endings, the likeliest first.
    pub endings: Vec<Ending>,
    /// The probability of everything that was not followed to its end; zero if nothing was left.
    pub open: Num,
    /// How many courses came to an end.
    pub worlds: usize,
}

struct Course<S> {
    probability: Num,
    /// Among equally likely ones the earlier goes first.
    number: usize,
    machine: Machine,
    world: S,
}

impl<S> PartialEq for Course<S> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<S> Eq for Course<S> {}

impl<S> PartialOrd for Course<S> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<S> Ord for Course<S> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.probability.cmp(&other.probability).then(other.number.cmp(&self.number))
    }
}

/// What a world may answer to a call, with what becomes of the world; or why it has no answer.
pub type Answers<'a, S> = dyn FnMut(&S, &Call) -> Result<Vec<Answer<S>>, String> + 'a;

/// Follows every course. `answers` gives the possible answers of a world to a request.
///
/// # Errors
/// What `answers` says, if it does not know the answers to a request; or that the probability of an ending cannot be
/// computed exactly within the limits of numbers.
///
/// # Examples
/// A choice has two endings:
/// ```
/// use core_ir::{Builder, Globals, Num, Term};
/// use diagnostics::{FileId, Span};
/// use machine::explore::{Limits, explore, sample};
/// use machine::{Call, Config, Machine};
///
/// let at = Span { file: FileId(0), start: 0, end: 0 };
/// let mut b = Builder::new();
/// let sides = [b.lit("heads", at), b.lit("tails", at)];
/// let third = Num::from(1).div(&Num::from(3)).unwrap();
/// let toss = b.add(Term::Choose(third.clone(), sides[0], sides[1]), at);
/// let code = b.finish(toss, &Globals::none()).unwrap();
///
/// let machine = Machine::new(code.into(), None, Config::default());
/// let limits = Limits { worlds: 100, fuel: 1_000 };
/// let found = explore(machine, (), limits, &mut |(), call| match call {
///     Call::Sample { probability, .. } => Ok(sample(probability, &())),
///     _ => Err("only samples".into()),
/// }).unwrap();
/// assert_eq!(found.endings[0].result.as_ref().unwrap().to_string(), r#""tails""#);
/// assert_eq!(found.endings[1].probability, third);
/// assert_eq!(found.open, Num::ZERO);
/// ```
pub fn explore<S: Clone>(
    machine: Machine,
    world: S,
    limits: Limits,
    answers: &mut Answers<'_, S>,
) -> Result<Exploration, String> {
    let mut courses = BinaryHeap::new();
    courses.push(Course { probability: Num::ONE, number: 0, machine, world });
    let (mut begun, mut ended, mut spent) = (1, 0, 0u64);
    let mut open = Num::ZERO;
    let mut endings: Vec<Ending> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    while let Some(mut course) = courses.pop() {
        let used = course.machine.fuel_used();
        let goes_on = loop {
            if spent + (course.machine.fuel_used() - used) > limits.fuel {
                open = sum(&open, &course.probability)?;
                break false;
            }
            match course.machine.poll() {
                Output::Working => {}
                Output::Waiting => {
                    // INVARIANT: each request is answered before the next poll; should one not be, the run ends.
                    let message = "it waits for nothing".into();
                    course.machine.cancel(Stop { code: ErrorCode::Cancelled, message });
                }
                Output::Done(result) => {
                    ended += 1;
                    let result = result.map(|v| course.machine.reify(&v));
                    let key = match &result {
                        Ok(value) => format!("v{value}"),
                        Err(f) => {
                            format!(
                                "{} {} {:?}",
                                f.code.as_str(),
                                f.message,
                                course.machine.lattice().data_of(f.label)
                            )
                        }
                    };
                    match known.get(&key).and_then(|i| endings.get_mut(*i)) {
                        Some(ending) => {
                            ending.probability = sum(&ending.probability, &course.probability)?;
                            ending.ways += 1;
                        }
                        None => {
                            known.insert(key, endings.len());
                            let probability = course.probability.clone();
                            endings.push(Ending { probability, ways: 1, result });
                        }
                    }
                    break false;
                }
                Output::Request(id, request) => {
                    let mut possible = answers(&course.world, &request.call)?;
                    possible.retain(|a| a.probability > Num::ZERO);
                    let Some(last) = possible.pop() else {
                        return Err("a request has no possible answer".into());
                    };
                    // Without room for the other courses, or for the digits of their probabilities, this one
                    // is not followed either: the limits may stop a run that would go on for ever.
                    let room = possible.is_empty() || ended + courses.len() + possible.len() < limits.worlds;
                    let part = |p: &Num| course.probability.mul(p).ok();
                    let parts: Option<Vec<Num>> =
                        possible.iter().chain([&last]).map(|a| part(&a.probability)).collect();
                    let Some(mut parts) = parts.filter(|_| room) else {
                        open = sum(&open, &course.probability)?;
                        break false;
                    };
                    course.probability = parts.pop().unwrap_or(Num::ZERO);
                    for (answer, probability) in possible.into_iter().zip(parts) {
                        let mut machine = course.machine.clone();
                        machine.handle(id, answer.response);
                        begun += 1;
                        courses.push(Course { probability, number: begun, machine, world: answer.world });
                    }
                    course.world = last.world;
                    course.machine.handle(id, last.response);
                    // The likeliest course goes on.
                    if courses.peek().is_some_and(|c| c.probability > course.probability) {
                        break true;
                    }
                }
            }
        };
        spent += course.machine.fuel_used() - used;
        if goes_on {
            courses.push(course);
        }
    }
    endings.sort_by(|a, b| b.probability.cmp(&a.probability));
    Ok(Exploration { endings, open, worlds: ended })
}

/// The two answers to a sample.
pub fn sample<S: Clone>(probability: &Num, world: &S) -> Vec<Answer<S>> {
    let no = Num::ONE.sub(probability).unwrap_or(Num::ZERO);
    let answer =
        |p: &Num, b| Answer { probability: p.clone(), response: Response::Sample(b), world: world.clone() };
    vec![answer(probability, true), answer(&no, false)]
}

const INEXACT: &str = "a probability is too long a fraction to be computed exactly";

fn sum(a: &Num, b: &Num) -> Result<Num, String> {
    a.add(b).map_err(|_| INEXACT.to_string())
}
