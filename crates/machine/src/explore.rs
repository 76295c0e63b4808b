//! Every course that a run can take, with its probability.
//!
//! Entry point: [`explore`]. It drives copies of a machine: where a request has several possible answers,
//! each copy continues with one of them. All courses are followed request by request, and those that reach
//! the same state continue as one: a hundred tosses that are added up as they fall are a few thousand
//! courses, not 2¹⁰⁰. When the courses become more than the limit admits, the likelier are followed first, so
//! what is left is the unlikely rest, and its probability is told.
//!
//! Invariant: the probabilities of the outcomes and of what is left add up to exactly one.
//! Invariant: the same machine and world give the same outcomes in the same order.
//!
//! Source: seed 000 §3 (probabilistic choice, the distribution monad); `docs/calculus.md` §4.

use crate::{Call, Failure, Machine, Output, Reified, Response, Stop, StopReason};
use core_ir::Num;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

/// A possible answer to a request, and the state of the world after it.
#[derive(Clone, Debug)]
pub struct Answer<S> {
    /// Probability. Those of the answers to one request add up to one.
    pub probability: Num,
    /// The answer.
    pub response: Response,
    /// The world after it.
    pub world: S,
}

/// Limits of an exploration.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most courses that are followed or kept for later.
    pub worlds: usize,
    /// The most steps of all machines together.
    pub fuel: u64,
}

/// A possible end of a run.
#[derive(Clone, Debug)]
pub struct Ending {
    /// Probability.
    pub probability: Num,
    /// In how many ways it is reached.
    pub ways: u64,
    /// The value with its labels, or the error.
    pub result: Result<Reified, Failure>,
}

/// The result of an exploration.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// The endings, the likeliest first.
    pub endings: Vec<Ending>,
    /// The probability of everything that was not followed to its end; zero if nothing was left.
    pub open: Num,
    /// Number of courses that came to an end, those that went on as one counted each.
    pub worlds: u64,
    /// Number of courses that were followed to an end.
    pub followed: usize,
}

/// A course whose probability is a longer fraction than this is too unlikely to be followed: a loop that may
/// go on for ever would be followed further and further, with ever longer fractions.
const MAX_BITS: u64 = 4_096;

struct Course<S> {
    probability: Num,
    /// Number of courses that it represents.
    ways: u64,
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

/// The possible answers of a world to a call, with the world after each, or the reason that it has none.
pub type Answers<'a, S> = dyn FnMut(&S, &Call) -> Result<Vec<Answer<S>>, String> + 'a;

/// Follows every course. `answers` gives the possible answers of a world to a request.
///
/// # Errors
/// The error of `answers`, if it does not know the answers to a request; or that the probability of an ending
/// cannot be computed exactly within the limits of numbers.
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
pub fn explore<S: Clone + PartialEq>(
    machine: Machine,
    world: S,
    limits: Limits,
    answers: &mut Answers<'_, S>,
) -> Result<Exploration, String> {
    let found = Found { endings: Vec::new(), known: HashMap::new(), open: Num::ZERO, worlds: 0, followed: 0 };
    let mut all = Explorer { limits, found, begun: 1, spent: 0, answers };
    let first = Course { probability: Num::ONE, ways: 1, number: 0, machine, world };
    let mut later = BinaryHeap::new();
    // All courses have been answered as often in a layer.
    let mut layer = vec![first];
    while !layer.is_empty() {
        let (mut next, mut same) = (Vec::new(), HashMap::new());
        let mut rest = layer.into_iter();
        while let Some(course) = rest.next() {
            let kept = rest.len() + next.len() + later.len();
            // Half of the room is for going on with the likelier ones when there are too many.
            if kept > limits.worlds / 2 {
                later.push(course);
                continue;
            }
            let room = limits.worlds.saturating_sub(all.found.followed + kept);
            match all.follow(course, room, limits.fuel / 64)? {
                Followed::Ended => {}
                Followed::Branches(branches) => {
                    for branch in branches {
                        merge(branch, &mut next, &mut same)?;
                    }
                }
                Followed::Unfinished(course) => later.push(*course),
            }
        }
        layer = next;
    }
    while let Some(course) = later.pop() {
        let room = limits.worlds.saturating_sub(all.found.followed + later.len());
        match all.follow(course, room, limits.fuel)? {
            Followed::Ended => {}
            Followed::Branches(branches) => later.extend(branches),
            Followed::Unfinished(course) => all.found.leave(&course)?,
        }
    }
    let Found { mut endings, open, worlds, followed, .. } = all.found;
    endings.sort_by(|a, b| b.probability.cmp(&a.probability));
    Ok(Exploration { endings, open, worlds, followed })
}

/// Adds a course to those of a layer: to one in the same state, if there is one.
fn merge<S: PartialEq>(
    course: Course<S>,
    layer: &mut Vec<Course<S>>,
    same: &mut HashMap<Vec<u8>, Vec<usize>>,
) -> Result<(), String> {
    if let Some(print) = course.machine.fingerprint() {
        let known = same.entry(print).or_default();
        let twin = known.iter().copied().find(|i| layer[*i].world == course.world);
        if let Some(twin) = twin.and_then(|i| layer.get_mut(i)) {
            twin.probability = sum(&twin.probability, &course.probability)?;
            twin.ways = twin.ways.saturating_add(course.ways);
            return Ok(());
        }
        known.push(layer.len());
    }
    layer.push(course);
    Ok(())
}

/// The result of following a course to its next request.
enum Followed<S> {
    /// It has ended, or is left.
    Ended,
    /// Each with one of the answers.
    Branches(Vec<Course<S>>),
    /// There was no room for its branches, or it took too long.
    Unfinished(Box<Course<S>>),
}

/// The endings found so far.
struct Found {
    endings: Vec<Ending>,
    known: HashMap<String, usize>,
    open: Num,
    worlds: u64,
    followed: usize,
}

impl Found {
    /// A course is not followed any further.
    fn leave<S>(&mut self, course: &Course<S>) -> Result<(), String> {
        self.open = sum(&self.open, &course.probability)?;
        Ok(())
    }

    fn ended<S>(&mut self, course: &Course<S>, result: Result<crate::Value, Failure>) -> Result<(), String> {
        self.followed += 1;
        self.worlds = self.worlds.saturating_add(course.ways);
        let result = result.map(|v| course.machine.reify(&v));
        let key = match &result {
            Ok(value) => format!("v{value}"),
            Err(f) => {
                format!("{} {} {:?}", f.code.as_str(), f.message, course.machine.lattice().data_of(f.label))
            }
        };
        match self.known.get(&key).and_then(|i| self.endings.get_mut(*i)) {
            Some(ending) => {
                ending.probability = sum(&ending.probability, &course.probability)?;
                ending.ways = ending.ways.saturating_add(course.ways);
            }
            None => {
                self.known.insert(key, self.endings.len());
                let (probability, ways) = (course.probability.clone(), course.ways);
                self.endings.push(Ending { probability, ways, result });
            }
        }
        Ok(())
    }
}

struct Explorer<'a, 'b, S> {
    limits: Limits,
    found: Found,
    begun: usize,
    spent: u64,
    answers: &'a mut Answers<'b, S>,
}

impl<S: Clone> Explorer<'_, '_, S> {
    /// Follows a course to its next request with several answers, with at most `fuel` steps.
    fn follow(&mut self, mut course: Course<S>, room: usize, fuel: u64) -> Result<Followed<S>, String> {
        let begun_with = course.machine.fuel_used();
        let followed = loop {
            let used = course.machine.fuel_used() - begun_with;
            if self.spent + used > self.limits.fuel {
                self.found.leave(&course)?;
                break Followed::Ended;
            }
            if used > fuel {
                self.spent += used;
                return Ok(Followed::Unfinished(Box::new(course)));
            }
            match course.machine.poll() {
                Output::Working => {}
                Output::Waiting => {
                    // INVARIANT: each request is answered before the next poll; should one not be, the run
                    // ends.
                    let message = "it waits for nothing".into();
                    course.machine.cancel(Stop { reason: StopReason::Interrupted, message });
                }
                Output::Done(result) => {
                    self.found.ended(&course, result)?;
                    break Followed::Ended;
                }
                Output::Request(id, request) => {
                    let mut possible = (self.answers)(&course.world, &request.call)?;
                    possible.retain(|a| a.probability > Num::ZERO);
                    if possible.is_empty() {
                        return Err("a request has no possible answer".into());
                    }
                    // Without room for the other courses, or for the digits of their probabilities, this one
                    // is not followed either: the limits may stop a run that would go on for ever.
                    let part = |p: &Num| course.probability.mul(p).ok().filter(|p| p.bits() <= MAX_BITS);
                    let parts: Option<Vec<Num>> = possible.iter().map(|a| part(&a.probability)).collect();
                    let Some(parts) = parts.filter(|_| possible.len() == 1 || possible.len() <= room) else {
                        self.found.leave(&course)?;
                        break Followed::Ended;
                    };
                    let used = course.machine.fuel_used() - begun_with;
                    self.spent += used;
                    let mut branches = Vec::with_capacity(possible.len());
                    let last = possible.pop();
                    for (answer, probability) in possible.into_iter().zip(&parts) {
                        let mut machine = course.machine.clone();
                        machine.handle(id, answer.response);
                        self.begun += 1;
                        let (probability, number) = (probability.clone(), self.begun);
                        let (ways, world) = (course.ways, answer.world);
                        branches.push(Course { probability, ways, number, machine, world });
                    }
                    if let (Some(last), Some(probability)) = (last, parts.into_iter().next_back()) {
                        course.machine.handle(id, last.response);
                        (course.probability, course.world) = (probability, last.world);
                        branches.push(course);
                    }
                    return Ok(Followed::Branches(branches));
                }
            }
        };
        self.spent += course.machine.fuel_used() - begun_with;
        Ok(followed)
    }
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
