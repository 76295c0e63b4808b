//! `entail run --watch`: a run as it happens.
//!
//! On a terminal a line for each step, the text of replies as it grows, and at the bottom what is spent of
//! the limits. Elsewhere lines only. Everything goes to standard error.

use crate::ui::Ui;
use core_ir::Num;
use diagnostics::visible;
use machine::{Reply, RequestId};
use runtime::{Answered, Asked, Event, Limits, Usage};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Columns of a line where no terminal says how many it has.
const USUAL: usize = 110;

/// The view of a run.
pub struct Watch<'a> {
    ui: &'a Ui,
    limits: Limits,
    usage: Usage,
    begun: Instant,
    live: bool,
    steps: u64,
    /// Open requests: the number, the step and its description.
    open: HashMap<RequestId, (u64, Step, String)>,
    drawn: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Model,
    Tool,
    Other,
}

impl<'a> Watch<'a> {
    /// A view, if one is wanted.
    pub fn new(ui: &'a Ui, wanted: bool, limits: &Limits) -> Option<Watch<'a>> {
        wanted.then(|| Watch {
            ui,
            limits: limits.clone(),
            usage: Usage::default(),
            begun: Instant::now(),
            live: ui.is_live(),
            steps: 0,
            open: HashMap::new(),
            drawn: None,
        })
    }

    /// Shows an event; nothing is drawn over a question that stands at the terminal.
    pub fn show(&mut self, event: &Event, asking: bool) {
        match event {
            Event::Asked { id, what, .. } => {
                let (step, line) = match what {
                    Asked::Model { model, purpose, agent, attempt, .. } => {
                        let who = agent.as_ref().or(purpose.as_ref());
                        let who = who.map_or(String::new(), |w| format!(" for `{w}`"));
                        let again = if *attempt > 0 { format!(", repair {attempt}") } else { String::new() };
                        (Step::Model, format!("model {model}{who}{again}"))
                    }
                    Asked::Tool { name, args, .. } => {
                        let args: Vec<String> =
                            args.iter().map(|(n, d)| format!("{n}: {}", d.to_json())).collect();
                        (Step::Tool, format!("tool {name}({})", args.join(", ")))
                    }
                    Asked::Approve { name, .. } => (Step::Other, format!("approval of `{name}`")),
                    Asked::Recall { store, key } => (Step::Other, format!("recall {store}.{key}")),
                    Asked::Remember { store, key, .. } => (Step::Other, format!("remember {store}.{key}")),
                    Asked::Sample { .. } => return,
                };
                self.steps += 1;
                self.open.insert(*id, (self.steps, step, String::new()));
                self.line(&self.fit(&format!("{:>3}  ", self.steps), &line, ""), asking);
            }
            Event::Retry { id, number, wait, cause } => {
                let n = self.open.get_mut(id).map_or(0, |(n, _, text)| {
                    text.clear();
                    *n
                });
                let head = format!("{n:>3}  ~ again in {:.1} s ({number}): ", wait.as_secs_f64());
                let line = self.fit(&head, cause, "");
                self.line(&line, asking);
            }
            Event::Text { id, text } => {
                if let Some((_, _, so_far)) = self.open.get_mut(id) {
                    so_far.push_str(text);
                }
                // As often as the eye sees it.
                if self.live && !asking && self.drawn.is_none_or(|d| d.elapsed() > Duration::from_millis(60))
                {
                    self.bottom();
                }
            }
            Event::Growing { .. } => {}
            Event::Answered { id, what, tokens, usd, elapsed, .. } => {
                let Some((n, step, _)) = self.open.remove(id) else { return };
                match step {
                    Step::Model => self.usage.model_calls += 1,
                    Step::Tool => self.usage.tool_calls += 1,
                    Step::Other => {}
                }
                self.usage.input_tokens += tokens.input;
                self.usage.output_tokens += tokens.output;
                if step == Step::Model {
                    let sum = self.usage.usd.as_ref().zip(usd.as_ref()).and_then(|(a, b)| a.add(b).ok());
                    self.usage.usd = sum;
                }
                let said = match what {
                    Answered::Reply(Reply::Text(text)) => text.clone(),
                    Answered::Reply(Reply::ToolCall { name, args }) => {
                        format!("calls {name}({})", args.to_json())
                    }
                    Answered::Reply(Reply::ToolCalls(calls)) => {
                        let names: Vec<&str> = calls.iter().map(|(n, _)| &**n).collect();
                        format!("calls {}", names.join(", "))
                    }
                    Answered::Data(data) => data.to_json().to_string(),
                    Answered::Nothing => "done".into(),
                    Answered::Approved(_) => "approved".into(),
                    Answered::Edited { args, .. } => {
                        let args = args.iter().map(|(n, d)| format!("{n} = {}", d.to_json()));
                        format!("approved with {}", args.collect::<Vec<_>>().join(", "))
                    }
                    Answered::Sample(_) => return,
                    Answered::Failed(why) => format!("failed: {why}"),
                    Answered::Stopped(why) => format!("stopped: {why}"),
                    Answered::Late => "too late".into(),
                    Answered::Withheld => "withheld".into(),
                };
                let took = format!("  ({} ms)", elapsed.as_millis());
                self.line(&self.fit(&format!("{n:>3}  → "), &said, &took), asking);
            }
        }
    }

    /// Clears the bottom line, and says what was spent where there was none.
    pub fn end(self) {
        if self.live {
            self.ui.status("");
        } else {
            self.ui.say(&self.spent());
        }
    }

    /// A text on one line between two others, cut to what fits.
    fn fit(&self, head: &str, text: &str, tail: &str) -> String {
        let columns = if self.live { self.ui.columns().saturating_sub(1) } else { USUAL };
        let room = columns.saturating_sub(head.chars().count() + tail.chars().count()).max(20);
        let words: Vec<&str> = text.split_whitespace().take(room).collect();
        // Escaped first: what is escaped is longer.
        let shown = visible(&words.join(" "), 4 * room);
        match shown.chars().count() > room {
            true => format!("{head}{}…{tail}", shown.chars().take(room - 1).collect::<String>()),
            false => format!("{head}{shown}{tail}"),
        }
    }

    fn line(&mut self, text: &str, asking: bool) {
        if asking {
            return;
        }
        if self.live {
            self.ui.status(&format!("{text}\n"));
            self.bottom();
        } else {
            self.ui.say(text);
        }
    }

    /// Redraws the bottom lines: the budget spent and the end of the streamed text.
    fn bottom(&mut self) {
        self.drawn = Some(Instant::now());
        let growing = self.open.values().filter(|(_, _, t)| !t.is_empty()).max_by_key(|(n, ..)| *n);
        let tail = growing.map_or(String::new(), |(_, _, text)| {
            let skip = text.chars().count().saturating_sub(40);
            let tail: String = text.chars().skip(skip).collect();
            format!("  «{}»", visible(&tail.replace('\n', " "), 80))
        });
        // A line that wraps to the next row could not be overwritten.
        let line = format!("{}{tail}", self.spent());
        self.ui.status(&line.chars().take(self.ui.columns().saturating_sub(1)).collect::<String>());
    }

    fn spent(&self) -> String {
        let of = |n: u64, most: Option<u64>| most.map_or(n.to_string(), |m| format!("{n}/{m}"));
        let calls = |what: &str, n: u64, most: Option<u64>| {
            let s = if most.unwrap_or(n) == 1 { "" } else { "s" };
            format!("{} {what} call{s}", of(n, most))
        };
        let tokens = self.usage.input_tokens + self.usage.output_tokens;
        let mut parts = vec![
            calls("model", self.usage.model_calls, self.limits.max_model_calls),
            calls("tool", self.usage.tool_calls, self.limits.max_tool_calls),
            format!("{} tokens", of(tokens, self.limits.max_tokens)),
        ];
        let dollars = |n: &Num| n.to_json().to_string();
        parts.push(match (&self.usage.usd, &self.limits.max_usd) {
            (Some(usd), Some(most)) => format!("${}/{}", dollars(usd), dollars(most)),
            (Some(usd), None) => format!("${}", dollars(usd)),
            (None, _) => session::report::unpriced(&self.usage),
        });
        let limit = self.limits.timeout.map_or(String::new(), |t| format!("/{:.0}", t.as_secs_f64()));
        parts.push(format!("{:.0}{limit} s", self.begun.elapsed().as_secs_f64()));
        parts.join(" · ")
    }
}
