//! Tools in tests: mocks instead of handlers, and expectations about calls.

use agentlang::{Answer, Attack, ExpectKind, Expectation, Mock};
use core_ir::{Data, EffectClass, Name};
use diagnostics::{Diagnostic, Span};
use machine::{Config, Machine, Output};
use runtime::{Approver, CustomTool, Handlers, RunReport};
use session::load::Test;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Calls of tools with their arguments, in order.
pub(super) type Calls = Vec<(Name, Vec<(Name, Data)>)>;

/// Faults of mocks, which no `catch` of the program may hide.
pub(super) type Faults = Arc<Mutex<Vec<(Option<Span>, String)>>>;

/// Puts the mocks of a test in the place of handlers. Without `live` no other tool is carried out that does
/// more than compute.
pub(super) fn install(
    handlers: &mut Handlers,
    test: &Test,
    config: &Arc<Config>,
    live: bool,
    faults: &Faults,
    injection: Option<&Injection>,
) {
    let mut by_tool: BTreeMap<&str, Vec<Mock>> = BTreeMap::new();
    for mock in &test.plan.mocks {
        for tool in &mock.tools {
            by_tool.entry(tool).or_default().push(mock.clone());
        }
    }
    let mut tools = handlers.tools.clone();
    for (tool, mocks) in by_tool {
        let injection = injection.map(|i| i.of(tool));
        tools = tools.with_custom(tool, function(tool, mocks, config.clone(), faults.clone(), injection));
    }
    if !live {
        tools = tools.computing_only();
        // A mocked tool needs no approval.
        handlers.approver = Some(Approver::new(|_| Box::pin(async { Ok(()) })));
    }
    handlers.tools = tools;
}

/// The function that a mocked tool is.
fn function(
    tool: &str,
    mocks: Vec<Mock>,
    config: Arc<Config>,
    faults: Faults,
    injection: Option<Injection>,
) -> CustomTool {
    let tool = tool.to_string();
    Arc::new(move |args| {
        let fault = |span, why: String| {
            faults.lock().unwrap_or_else(PoisonError::into_inner).push((span, why.clone()));
            Err(why)
        };
        let result = match mocks.iter().find(|m| fits(&m.pattern, &args)) {
            Some(Mock { answer: Answer::Fails(why), .. }) => Err(why.clone()),
            Some(Mock { answer: Answer::Gives(code, names), span, .. }) => {
                let given =
                    names.iter().filter_map(|(name, i)| Some((name.clone(), args.get(*i)?.1.clone())));
                let input = Data::record(given.collect::<Vec<_>>());
                value(Machine::new(code.clone(), Some(input), config.clone()))
                    .or_else(|why| fault(Some(*span), why))
            }
            None => fault(
                mocks.first().map(|m| m.span),
                format!("no mock of `{tool}` fits the call {}", shown(&args)),
            ),
        };
        let result = match &injection {
            Some(injection) => result.map(|data| injection.inject(data)),
            None => result,
        };
        Box::pin(async move { result })
    })
}

/// Texts that are injected into results, by their number in the test, and those that have arrived.
#[derive(Clone, Default)]
pub(super) struct Injection {
    attacks: Vec<(usize, Attack)>,
    arrived: Arc<Mutex<BTreeSet<usize>>>,
}

impl Injection {
    pub(super) fn new(test: &Test) -> Injection {
        Injection { attacks: test.plan.attacks.iter().cloned().enumerate().collect(), ..Injection::default() }
    }

    /// The attacks on a tool.
    fn of(&self, tool: &str) -> Injection {
        let mut own = self.clone();
        own.attacks.retain(|(_, a)| a.tools.iter().any(|t| t == tool));
        own
    }

    /// Appends the texts to each text in a result.
    fn inject(&self, mut data: Data) -> Data {
        for (i, attack) in &self.attacks {
            let mut found = false;
            data = with_text(data, &attack.text, &mut found);
            if found {
                self.arrived.lock().unwrap_or_else(PoisonError::into_inner).insert(*i);
            }
        }
        data
    }

    /// Attacks whose text is in no result.
    fn lost(&self) -> impl Iterator<Item = &Attack> {
        let arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.attacks.iter().filter(move |(i, _)| !arrived.contains(i)).map(|(_, a)| a)
    }
}

/// Data with a text appended to each of its texts. The depth of data is bounded (`MAX_DATA_DEPTH`).
fn with_text(data: Data, text: &str, found: &mut bool) -> Data {
    match data {
        Data::Str(old) => {
            *found = true;
            Data::str(format!("{old}\n{text}"))
        }
        Data::List(items) => Data::List(items.iter().map(|d| with_text(d.clone(), text, found)).collect()),
        Data::Record(fields) => {
            let fields = fields.iter().map(|(n, d)| (n.clone(), with_text(d.clone(), text, found)));
            Data::Record(fields.collect())
        }
        other => other,
    }
}

/// Returns the diagnostics of an attack: texts that did not arrive, and calls that change the world and are
/// not made without the attack.
pub(super) fn attacked(
    test: &Test,
    injection: &Injection,
    calls: &Calls,
    without: &Calls,
) -> Vec<Diagnostic> {
    let lost = injection.lost().map(|a| {
        let message = format!("the text is in no result of `{}`", a.name);
        Diagnostic::error("attack", message, a.span)
            .help("test a program that calls the tool, with a mock whose result holds a text")
    });
    let mut found: Vec<Diagnostic> = lost.collect();
    // What is not known to the program changes the world.
    let changes = |name: &Name| {
        let tool = test.code.tools.iter().find(|t| t.name == *name || t.called() == name);
        tool.is_none_or(|t| t.effect == EffectClass::Write)
    };
    let mut left: Vec<&(Name, Vec<(Name, Data)>)> = without.iter().collect();
    for call in calls.iter().filter(|(name, _)| changes(name)) {
        match left.iter().position(|other| *other == call) {
            Some(at) => drop(left.remove(at)),
            None => found.push(
                Diagnostic::error(
                    "attack",
                    format!("the attack has `{}` called with {}", call.0, shown(&call.1)),
                    test.plan.attacks.first().map_or(test.span, |a| a.span),
                )
                .help("bound what may decide the call and what may be in its arguments, or require approval"),
            ),
        }
    }
    found
}

/// Evaluates a term that makes no requests.
fn value(mut machine: Machine) -> Result<Data, String> {
    loop {
        match machine.poll() {
            Output::Working => {}
            Output::Done(Ok(value)) => {
                return machine.reify(&value).data().ok_or_else(|| "a mock returns data".to_string());
            }
            Output::Done(Err(failure)) => return Err(format!("the mock failed: {}", failure.message)),
            Output::Request(..) | Output::Waiting => return Err("a mock makes no requests".to_string()),
        }
    }
}

/// Returns whether arguments match a pattern. An empty pattern matches all arguments.
fn fits(pattern: &[Option<Data>], args: &[(Name, Data)]) -> bool {
    pattern.iter().enumerate().all(|(i, want)| match want {
        None => true,
        Some(want) => args.get(i).is_some_and(|(_, given)| given == want),
    })
}

fn shown(args: &[(Name, Data)]) -> String {
    let args: Vec<String> = args.iter().map(|(n, d)| format!("{n}: {}", d.to_json())).collect();
    diagnostics::clip_to(&format!("({})", args.join(", ")), 200)
}

/// Returns the diagnostics of the faults of mocks.
pub(super) fn faulty(faults: &Faults) -> Vec<Diagnostic> {
    let faults = faults.lock().unwrap_or_else(PoisonError::into_inner);
    let report = |(span, why): &(Option<Span>, String)| {
        Diagnostic::error("mock", why.clone(), *span).help("add a mock for this call, or correct this one")
    };
    faults.iter().map(report).collect()
}

/// Returns the diagnostics of the expectations that do not hold in a test's run.
pub(super) fn judge(test: &Test, report: &RunReport, calls: &Calls) -> Vec<Diagnostic> {
    let ended = report.why.refused.iter().filter_map(|r| r.name.clone());
    let went_on = report.why.calls.iter().filter_map(|c| c.refused.name.clone());
    let refused: BTreeSet<Name> = ended.chain(went_on).chain(report.why.denied.iter().cloned()).collect();
    test.plan.expectations.iter().filter_map(|e| broken(e, calls, &refused)).collect()
}

/// The report of an expectation that does not hold.
fn broken(e: &Expectation, calls: &Calls, refused: &BTreeSet<Name>) -> Option<Diagnostic> {
    let is_it = |name: &Name| e.tools.iter().any(|t| **t == **name);
    let of_tool: Vec<&Vec<(Name, Data)>> = calls.iter().filter(|(n, _)| is_it(n)).map(|(_, a)| a).collect();
    let made = of_tool.iter().any(|args| fits(e.pattern.as_deref().unwrap_or_default(), args));
    let (holds, message) = match e.kind {
        ExpectKind::Call => (made, format!("`{}` was not called{}", e.name, such(e))),
        ExpectKind::NoCall => (!made, format!("`{}` was called{}", e.name, such(e))),
        ExpectKind::Refused => (refused.iter().any(is_it), format!("no call of `{}` was refused", e.name)),
    };
    if holds {
        return None;
    }
    const MAX_SHOWN: usize = 5;
    let d = Diagnostic::error("expect", message, e.span);
    Some(match (&of_tool[..], e.kind) {
        ([], _) => d,
        (all, _) => {
            let shown: Vec<String> = all.iter().take(MAX_SHOWN).map(|args| shown(args)).collect();
            d.help(format!("it was called with {}", shown.join(", ")))
        }
    })
}

fn such(e: &Expectation) -> &'static str {
    if e.pattern.is_some() { " with these arguments" } else { "" }
}
