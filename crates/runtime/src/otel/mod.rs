//! A run as traces and metrics of OpenTelemetry, sent by OTLP over HTTP.
//!
//! Entry point: [`Telemetry`]: give it every [`Event`] of a run, and send it at the end. [`Telemetry::live`]
//! sends requests as they end, too. Names follow the semantic conventions for generative AI (status
//! Development, as of their version 1.40): `invoke_agent`, `chat`, `execute_tool`, `gen_ai.usage.*`.
//!
//! The messages are declared here, as far as they are used, and encoded by `prost` and `serde`: the
//! protocol's own crate brings a client of many crates. The tests decode them with that crate's types.
//!
//! Invariant: what was said, and arguments and results of tools, are told on request only; secrets never,
//! because none is in events.

mod export;
mod message;
mod options;

pub use export::Delivered;
pub use message::OtlpProtocol;
pub use options::{ParentSpan, TelemetryEntry, TelemetryOptions};

use crate::histogram::{Histogram, TIME_BOUNDS};
use crate::provider::Tokens;
use crate::web;
use crate::{Answered, Asked, ConfigError, Event, Limits, RunReport};
use core_ir::{Data, Name, Num, Vendor};
use export::{Exporter, RunDelivery};
use machine::{Reply, RequestId};
use message::{
    AnyValue, ArrayValue, HistogramPoint, HistogramPoints, Item, KeyValue, Metric, NumberPoint, Points,
    Resource, Scalar, Scope, SpanEvent, SpanKind, SpanMessage, Status, StatusCode, Sum, Temporality,
};
use options::parent;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use runs::Refused;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The version of the conventions whose names are used.
const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.40.0";

/// Kinds of what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Spans,
    Metrics,
}

impl Signal {
    /// End of the path of requests.
    fn path(self) -> &'static str {
        match self {
            Signal::Spans => "traces",
            Signal::Metrics => "metrics",
        }
    }
}

/// Collects what happens in a run.
#[derive(Debug)]
pub struct Telemetry {
    options: TelemetryOptions,
    exporter: Arc<Exporter>,
    /// Counts of the items of this run.
    delivery: Arc<RunDelivery>,
    begun: SystemTime,
    /// Under way, and ended.
    open: HashMap<RequestId, Span>,
    ended: Vec<Span>,
    /// Invocations of agents in the order of their starts.
    agents: Vec<Agent>,
    /// The agent that is at work in a strand, by its place.
    at_work: HashMap<Vec<u32>, usize>,
    tokens: BTreeMap<(String, &'static str), Histogram>,
    times: BTreeMap<(Operation, String, String), Histogram>,
    /// Attributes of the run that are known before it begins.
    known: Vec<KeyValue>,
    /// Name of the run, if its requests are sent as they end.
    live: Option<String>,
}

#[derive(Debug)]
struct Span {
    id: RequestId,
    name: String,
    kind: SpanKind,
    begun: SystemTime,
    ended: SystemTime,
    attributes: Vec<KeyValue>,
    events: Vec<SpanEvent>,
    error: Option<String>,
    operation: Operation,
    /// The model or tool.
    target: String,
    /// The agent whose request it is.
    agent: Option<usize>,
}

/// Operation of the conventions, in the order of the names, in which metrics are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Approve,
    Chat,
    ExecuteTool,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Operation::Approve => "approve",
            Operation::Chat => "chat",
            Operation::ExecuteTool => "execute_tool",
        }
    }
}

/// One invocation of an agent: from its first question to its last answer. The machine knows no agents, only
/// questions that carry the name of one, so it is put together from those: the questions of one name in one
/// strand, as long as each has more to say than the one before.
#[derive(Debug)]
struct Agent {
    name: Name,
    /// The agent among whose requests it is.
    within: Option<usize>,
    begun: SystemTime,
    ended: SystemTime,
    /// Length of the last conversation.
    messages: usize,
    /// True once the model has given its final reply, unless it is asked again.
    answered: bool,
    tokens: Tokens,
    error: Option<String>,
}

/// The bounds that the conventions give.
const TOKEN_BOUNDS: [f64; 14] = [
    1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0,
    16777216.0, 67108864.0,
];

/// A data point of a histogram.
fn point(histogram: &Histogram, attributes: Vec<KeyValue>, begun: u64, now: u64) -> HistogramPoint {
    HistogramPoint {
        start_time_unix_nano: begun,
        time_unix_nano: now,
        count: histogram.counts.iter().sum(),
        sum: Some(histogram.sum),
        bucket_counts: histogram.counts.to_vec(),
        explicit_bounds: histogram.bounds.to_vec(),
        attributes,
    }
}

impl Telemetry {
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// The endpoint is no URL, or a header can't be one.
    pub fn new(options: TelemetryOptions) -> Result<Telemetry, ConfigError> {
        let url = web::url(&options.endpoint, "the endpoint of OpenTelemetry")?;
        let mut headers = HeaderMap::new();
        for (name, value) in &options.headers {
            let bad =
                || ConfigError::new(format!("the header `{name}` in `OTEL_EXPORTER_OTLP_HEADERS` is none"));
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(value.expose()).map_err(|_| bad())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers.insert("content-type", HeaderValue::from_static(options.protocol.media_type()));
        let client = web::client(&url, Duration::from_secs(5), Some(options.timeout), headers)?;
        let resource = resource(&options);
        let exporter = Exporter::new(&options, client, resource);
        Ok(Telemetry::with(options, Arc::new(exporter)))
    }

    fn with(options: TelemetryOptions, exporter: Arc<Exporter>) -> Telemetry {
        Telemetry {
            options,
            exporter,
            delivery: Arc::default(),
            begun: SystemTime::now(),
            open: HashMap::new(),
            ended: Vec::new(),
            agents: Vec::new(),
            at_work: HashMap::new(),
            tokens: BTreeMap::new(),
            times: BTreeMap::new(),
            known: Vec::new(),
            live: None,
        }
    }

    /// Sends the requests of this run as they end. What remains for [`Telemetry::send`] are the run itself,
    /// its agents and the metrics.
    ///
    /// Needs a tokio runtime, which must outlive the runs that share the way to the collector. A run that is
    /// dropped before its end has sent what had ended.
    #[must_use]
    pub fn live(mut self, run: &str) -> Telemetry {
        self.exporter.start();
        self.live = Some(run.to_string());
        self
    }

    /// Tells the limits of the run, as attributes of its span.
    #[must_use]
    pub fn limited(mut self, limits: &Limits) -> Telemetry {
        let counts = [
            ("entail.limit.model_calls", limits.max_model_calls),
            ("entail.limit.tool_calls", limits.max_tool_calls),
            ("entail.limit.tokens", limits.max_tokens),
        ];
        self.known.extend(counts.into_iter().filter_map(|(key, n)| Some(int(key, n?))));
        let usd = limits.max_usd.as_ref().and_then(|n| n.to_json().as_f64());
        let seconds = limits.timeout.map(|t| t.as_secs_f64());
        let amounts = [("entail.limit.usd", usd), ("entail.limit.seconds", seconds)];
        self.known.extend(amounts.into_iter().filter_map(|(key, x)| Some(float(key, x?))));
        self
    }

    /// Tells the bound of the run, as attributes of its span. What has no bound is not told.
    #[must_use]
    pub fn bounded(mut self, bound: &RunBound) -> Telemetry {
        let counts = [
            ("entail.bound.model_calls", bound.model_calls),
            ("entail.bound.tool_calls", bound.tool_calls),
            ("entail.bound.input_tokens", bound.input_tokens),
            ("entail.bound.output_tokens", bound.output_tokens),
        ];
        self.known.extend(counts.into_iter().filter_map(|(key, n)| Some(int(key, n?))));
        self.known.extend(bound.usd.map(|usd| float("entail.bound.usd", usd)));
        self
    }

    /// Counts of all spans of the process so far, and of all metrics.
    pub fn delivered(&self) -> (Delivered, Delivered) {
        (self.exporter.spans(), self.exporter.metrics())
    }

    /// For another run, which goes to the same place; perhaps as a part of the span that a `traceparent`
    /// names.
    pub fn another(&self, name: String, traceparent: Option<&str>) -> Telemetry {
        let mut options = TelemetryOptions { name, ..self.options.clone() };
        if let Some(parent) = traceparent.and_then(parent) {
            options.parent = Some(parent);
        }
        Telemetry::with(options, self.exporter.clone())
    }

    /// Takes note of an event.
    pub fn note(&mut self, event: &Event) {
        let now = SystemTime::now();
        match event {
            Event::Asked { id, what, place, channel, answer, recorded, .. } => {
                let agent = self.agent(what, place, now);
                if let Some(mut span) = self.begin(*id, what, now) {
                    span.agent = agent;
                    for (key, label) in [("entail.label.channel", channel), ("entail.label.answer", answer)] {
                        span.attributes.push(text(key, &label.to_json().to_string()));
                    }
                    if *recorded {
                        span.attributes.push(truth("entail.recorded", true));
                    }
                    self.open.insert(*id, span);
                }
            }
            Event::Retry { id, number, wait, cause } => {
                if let Some(span) = self.open.get_mut(id) {
                    let attributes = vec![
                        int("entail.retry.number", u64::from(*number)),
                        float("entail.retry.wait", wait.as_secs_f64()),
                        text("error.message", cause),
                    ];
                    span.events.push(SpanEvent {
                        name: "retry".into(),
                        time_unix_nano: nanos(now),
                        attributes,
                    });
                }
            }
            Event::Growing { .. } | Event::Text { .. } => {}
            Event::Answered { id, what, tokens, usd, finish, .. } => {
                let Some(mut span) = self.open.remove(id) else { return };
                span.ended = now;
                if let Some(agent) = span.agent.and_then(|a| self.agents.get_mut(a)) {
                    agent.ended = now;
                    if span.operation == Operation::Chat {
                        agent.answered =
                            !matches!(what, Answered::Reply(Reply::ToolCall { .. } | Reply::ToolCalls(_)));
                        agent.tokens = agent.tokens.and(*tokens);
                        agent.error = match what {
                            Answered::Failed(why) | Answered::Stopped(why) => Some(why.clone()),
                            _ => None,
                        };
                    }
                }
                span.error = match what {
                    Answered::Failed(why) | Answered::Stopped(why) => Some(why.clone()),
                    Answered::Late => Some("the time limit has passed".into()),
                    _ => None,
                };
                if span.error.is_some() {
                    span.attributes
                        .push(text("error.type", if *what == Answered::Late { "timeout" } else { "_OTHER" }));
                }
                if span.operation == Operation::Approve {
                    let decided = match what {
                        Answered::Approved(_) => "approved",
                        Answered::Edited { .. } => "edited",
                        Answered::Failed(_) => "refused",
                        _ => "undecided",
                    };
                    span.attributes.push(text("entail.approval", decided));
                    if let Answered::Approved(Some(by)) | Answered::Edited { by: Some(by), .. } = what {
                        span.attributes.push(text("entail.approval.by", &by.name));
                        span.attributes.push(text("entail.approval.via", by.via.as_str()));
                    }
                }
                if span.operation == Operation::Chat {
                    self.chat(&mut span, *tokens, usd.as_ref());
                    if let Some(finish) = finish.as_str() {
                        let values = vec![AnyValue { value: Some(Scalar::Text(finish.into())) }];
                        let value = Scalar::Array(ArrayValue { values });
                        span.attributes.push(attribute("gen_ai.response.finish_reasons", value));
                    }
                }
                if self.options.content
                    && let Some(said) = said(what)
                {
                    let key = if span.operation == Operation::Chat {
                        "gen_ai.output.messages"
                    } else {
                        "gen_ai.tool.call.result"
                    };
                    span.attributes.push(text(key, &said.to_string()));
                }
                let time = now.duration_since(span.begun).unwrap_or_default().as_secs_f64();
                let error = if span.error.is_some() { "_OTHER" } else { "" };
                let key = (span.operation, span.target.clone(), error.to_string());
                self.times.entry(key).or_insert_with(|| Histogram::new(&TIME_BOUNDS)).add(time);
                self.end(span);
            }
        }
    }

    /// Sends a span that has ended, or keeps it until the run ends.
    fn end(&mut self, span: Span) {
        match &self.live {
            Some(run) => {
                let message = self.span_message(run, span);
                self.exporter.offer(Item::Span(message), &self.delivery);
            }
            None => self.ended.push(span),
        }
    }

    /// The agent whose request this is.
    fn agent(&mut self, what: &Asked, place: &[u32], now: SystemTime) -> Option<usize> {
        // Behind the place of the strand stand the number of the request in it and an end.
        let strand = &place[..place.len().saturating_sub(2)];
        // Where an agent calls tools, in its strand or in branches of it, they are its own; and so are the
        // agents that it calls.
        let around = |this: &Telemetry, most: usize| {
            let outer = (0..=most).rev().filter_map(|n| this.at_work.get(&strand[..n]).copied());
            outer.into_iter().find(|a| !this.agents[*a].answered)
        };
        match what {
            Asked::Model { agent: Some(name), messages, attempt, .. } => {
                if let Some(at) = self.at_work.get(strand).copied()
                    && let agent = &mut self.agents[at]
                    && agent.name == *name
                    && (messages.len() > agent.messages || *attempt > 0)
                {
                    (agent.messages, agent.answered) = (messages.len(), false);
                    return Some(at);
                }
                let within = strand.len().checked_sub(1).and_then(|most| around(self, most));
                let at = self.agents.len();
                self.agents.push(Agent {
                    name: name.clone(),
                    within,
                    begun: now,
                    ended: now,
                    messages: messages.len(),
                    answered: false,
                    tokens: Tokens::default(),
                    error: None,
                });
                self.at_work.insert(strand.to_vec(), at);
                Some(at)
            }
            Asked::Tool { .. } | Asked::Approve { .. } | Asked::Model { .. } => around(self, strand.len()),
            _ => None,
        }
    }

    fn begin(&self, id: RequestId, what: &Asked, now: SystemTime) -> Option<Span> {
        let content = self.options.content;
        let mut attributes = Vec::new();
        let (operation, target, kind) = match what {
            Asked::Model { model, purpose, agent, messages, attempt, .. } => {
                attributes.push(text("gen_ai.request.model", model));
                attributes.push(text("gen_ai.provider.name", provider(model)));
                for (key, value) in [("entail.purpose", purpose), ("gen_ai.agent.name", agent)] {
                    attributes.extend(value.as_ref().map(|v| text(key, v)));
                }
                if *attempt > 0 {
                    attributes.push(int("entail.repair", u64::from(*attempt)));
                }
                if content {
                    let messages: Vec<Json> = messages
                        .iter()
                        .map(|m| json!({"role": m.role.as_str(), "parts": [{"type": "text", "content": &*m.content}]}))
                        .collect();
                    attributes.push(text("gen_ai.input.messages", &Json::Array(messages).to_string()));
                }
                (Operation::Chat, model.clone(), SpanKind::Client)
            }
            Asked::Tool { name, args, .. } | Asked::Approve { name, args, .. } => {
                attributes.push(text("gen_ai.tool.name", name));
                attributes.push(text("gen_ai.tool.type", "function"));
                if content {
                    let args = Data::record(args.iter().cloned()).to_json();
                    attributes.push(text("gen_ai.tool.call.arguments", &args.to_string()));
                }
                let operation = match what {
                    Asked::Tool { .. } => Operation::ExecuteTool,
                    _ => Operation::Approve,
                };
                (operation, name.to_string(), SpanKind::Internal)
            }
            // Stores and samples are of this process.
            Asked::Recall { .. } | Asked::Remember { .. } | Asked::Sample { .. } => return None,
        };
        attributes.insert(0, text("gen_ai.operation.name", operation.as_str()));
        Some(Span {
            id,
            name: format!("{} {target}", operation.as_str()),
            kind,
            begun: now,
            ended: now,
            attributes,
            events: Vec::new(),
            error: None,
            operation,
            target,
            agent: None,
        })
    }

    fn chat(&mut self, span: &mut Span, tokens: Tokens, usd: Option<&Num>) {
        span.attributes.push(int("gen_ai.usage.input_tokens", tokens.input));
        span.attributes.push(int("gen_ai.usage.output_tokens", tokens.output));
        let cache = [("cache_read", tokens.cached), ("cache_creation", tokens.cache_write)];
        for (name, n) in cache.into_iter().filter(|(_, n)| *n > 0) {
            span.attributes.push(int(&format!("gen_ai.usage.{name}.input_tokens"), n));
        }
        if let Some(usd) = usd.and_then(|n| n.to_json().as_f64()) {
            span.attributes.push(float("entail.cost.usd", usd));
        }
        for (kind, n) in [("input", tokens.input), ("output", tokens.output)] {
            let all = self.tokens.entry((span.target.clone(), kind));
            all.or_insert_with(|| Histogram::new(&TOKEN_BOUNDS)).add(n as f64);
        }
    }

    /// Sends what has happened, and how the run ended. Waits for the collector, but not for longer than the
    /// options say.
    ///
    /// # Errors
    /// Not everything arrived; in words for people.
    pub async fn send(mut self, report: &RunReport) -> Result<(), String> {
        let now = SystemTime::now();
        self.exporter.start();
        // Requests canceled with the run end with it.
        for (_, mut span) in std::mem::take(&mut self.open) {
            if let Some(agent) = span.agent.and_then(|a| self.agents.get_mut(a)) {
                (agent.ended, agent.error) = (now, Some("the run ended".into()));
            }
            (span.ended, span.error) = (now, Some("the run ended".into()));
            self.end(span);
        }
        for span in self.traces(report, now) {
            self.exporter.offer(Item::Span(span), &self.delivery);
        }
        for metric in self.metrics(report, now) {
            self.exporter.offer(Item::Metric(metric), &self.delivery);
        }
        self.exporter.flush(&self.delivery, self.options.flush).await
    }

    /// The trace of a run.
    fn trace(&self, run: &str) -> Vec<u8> {
        match &self.options.parent {
            Some(parent) => parent.trace.to_vec(),
            None => identifier(&["trace", run], 16),
        }
    }

    /// A request of a run.
    fn span_message(&self, run: &str, s: Span) -> SpanMessage {
        let name = format!("{:x}.{}.{}", s.id.strand, s.id.number, s.operation.as_str());
        SpanMessage {
            trace_id: self.trace(run),
            span_id: identifier(&["span", run, &name], 8),
            parent_span_id: under(run, s.agent),
            name: s.name,
            kind: s.kind.into(),
            start_time_unix_nano: nanos(s.begun),
            end_time_unix_nano: nanos(s.ended),
            attributes: s.attributes,
            events: s.events,
            status: status(s.error.as_deref()),
        }
    }

    /// The spans that were not sent before: the run, and in it its agents and requests.
    fn traces(&mut self, report: &RunReport, now: SystemTime) -> Vec<SpanMessage> {
        let usage = &report.usage;
        let mut attributes = vec![
            text("gen_ai.operation.name", "invoke_agent"),
            text("gen_ai.agent.name", &self.options.name),
            text("gen_ai.conversation.id", &report.run),
            int("gen_ai.usage.input_tokens", usage.input_tokens),
            int("gen_ai.usage.output_tokens", usage.output_tokens),
            int("entail.model_calls", usage.model_calls),
            int("entail.tool_calls", usage.tool_calls),
        ];
        if let Some(usd) = usage.usd.as_ref().and_then(|n| n.to_json().as_f64()) {
            attributes.push(float("entail.cost.usd", usd));
        }
        attributes.push(text("entail.label", &report.label.to_json().to_string()));
        attributes.extend(self.known.iter().cloned());
        if let Err(failure) = &report.result {
            attributes.push(text("error.type", failure.code.as_str()));
        }
        // Refusals that the program caught, and the one that ended it.
        let caught = report.why.calls.iter().map(|call| (&call.refused, call.times));
        let refusals: Vec<SpanEvent> = caught
            .chain(report.why.refused.iter().map(|refused| (refused, 1)))
            .map(|(refused, times)| refusal(refused, times, now))
            .collect();
        attributes.push(int("entail.refusals", refusals.len() as u64));
        let why = report.result.as_ref().err().map(|f| report.records.text(&f.message));
        let run = SpanMessage {
            trace_id: self.trace(&report.run),
            span_id: under(&report.run, None),
            parent_span_id: self.options.parent.map(|p| p.span.to_vec()).unwrap_or_default(),
            name: format!("invoke_agent {}", self.options.name),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: nanos(self.begun),
            end_time_unix_nano: nanos(now),
            attributes,
            events: refusals,
            status: status(why.as_deref()),
        };
        let mut spans = vec![run];
        spans.extend(self.agents.iter().enumerate().map(|(n, a)| self.agent_message(&report.run, n, a)));
        let ended = std::mem::take(&mut self.ended);
        spans.extend(ended.into_iter().map(|s| self.span_message(&report.run, s)));
        spans
    }

    /// An agent of a run.
    fn agent_message(&self, run: &str, n: usize, a: &Agent) -> SpanMessage {
        let mut attributes = vec![
            text("gen_ai.operation.name", "invoke_agent"),
            text("gen_ai.agent.name", &a.name),
            text("gen_ai.conversation.id", run),
            int("gen_ai.usage.input_tokens", a.tokens.input),
            int("gen_ai.usage.output_tokens", a.tokens.output),
        ];
        if a.error.is_some() {
            attributes.push(text("error.type", "_OTHER"));
        }
        SpanMessage {
            trace_id: self.trace(run),
            span_id: under(run, Some(n)),
            parent_span_id: under(run, a.within),
            name: format!("invoke_agent {}", a.name),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: nanos(a.begun),
            end_time_unix_nano: nanos(a.ended),
            attributes,
            events: Vec::new(),
            status: status(a.error.as_deref()),
        }
    }

    fn metrics(&self, report: &RunReport, now: SystemTime) -> Vec<Metric> {
        let (begun, now) = (nanos(self.begun), nanos(now));
        let tokens = self
            .tokens
            .iter()
            .map(|((model, kind), h)| {
                let attributes = vec![
                    text("gen_ai.operation.name", "chat"),
                    text("gen_ai.provider.name", provider(model)),
                    text("gen_ai.request.model", model),
                    text("gen_ai.token.type", kind),
                ];
                point(h, attributes, begun, now)
            })
            .collect();
        let times = self
            .times
            .iter()
            .map(|((operation, target, error), h)| {
                let key =
                    if *operation == Operation::Chat { "gen_ai.request.model" } else { "gen_ai.tool.name" };
                let mut attributes =
                    vec![text("gen_ai.operation.name", operation.as_str()), text(key, target)];
                if !error.is_empty() {
                    attributes.push(text("error.type", error));
                }
                point(h, attributes, begun, now)
            })
            .collect();
        // Each run tells what it used, not what all have used.
        let aggregation_temporality = Temporality::Delta.into();
        let metric = |name: &str, unit: &str, points: Points| Metric {
            name: name.into(),
            unit: unit.into(),
            points: Some(points),
        };
        let histogram =
            |data_points| Points::Histogram(HistogramPoints { data_points, aggregation_temporality });
        let mut metrics = vec![
            metric("gen_ai.client.token.usage", "{token}", histogram(tokens)),
            metric("gen_ai.client.operation.duration", "s", histogram(times)),
        ];
        if let Some(usd) = report.usage.usd.as_ref().and_then(|n| n.to_json().as_f64()) {
            let point = NumberPoint {
                start_time_unix_nano: begun,
                time_unix_nano: now,
                as_double: Some(usd),
                attributes: vec![text("gen_ai.agent.name", &self.options.name)],
            };
            let sum = Sum { data_points: vec![point], aggregation_temporality, is_monotonic: true };
            metrics.push(metric("entail.cost", "{USD}", Points::Sum(sum)));
        }
        metrics
    }
}

/// The most that a run can use, whatever the models reply; `None` where no bound is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunBound {
    /// Calls of models.
    pub model_calls: Option<u64>,
    /// Calls of tools.
    pub tool_calls: Option<u64>,
    /// Tokens that models read.
    pub input_tokens: Option<u64>,
    /// Tokens that models write.
    pub output_tokens: Option<u64>,
    /// US dollars.
    pub usd: Option<f64>,
}

/// A refusal as an event of a span.
fn refusal(refused: &Refused, times: u64, now: SystemTime) -> SpanEvent {
    let mut attributes = vec![
        text("entail.refusal.part", &refused.part.describe()),
        text("entail.refusal.label", &refused.value.label.to_json().to_string()),
        text("entail.refusal.bound", &refused.bound.to_json().to_string()),
        int("entail.refusal.times", times),
    ];
    attributes.extend(refused.name.as_ref().map(|name| text("entail.refusal.name", name)));
    SpanEvent { name: "refusal".into(), time_unix_nano: nanos(now), attributes }
}

fn resource(options: &TelemetryOptions) -> Resource {
    let attributes = vec![
        text("service.name", &options.service),
        text("service.version", env!("CARGO_PKG_VERSION")),
        text("telemetry.sdk.name", "entail"),
        text("telemetry.sdk.language", "rust"),
    ];
    Resource { attributes }
}

/// The span of an agent of a run, or of the run itself.
fn under(run: &str, agent: Option<usize>) -> Vec<u8> {
    match agent {
        Some(n) => identifier(&["agent", run, &n.to_string()], 8),
        None => identifier(&["run", run], 8),
    }
}

/// Returns the answer's content, if it has any.
fn said(what: &Answered) -> Option<Json> {
    let call =
        |name: &str, args: &Data| json!({"type": "tool_call", "name": name, "arguments": args.to_json()});
    let message = |parts: Vec<Json>| json!([{"role": "assistant", "parts": parts}]);
    match what {
        Answered::Reply(Reply::Text(t)) => Some(message(vec![json!({"type": "text", "content": t})])),
        Answered::Reply(Reply::ToolCall { name, args }) => Some(message(vec![call(name, args)])),
        Answered::Reply(Reply::ToolCalls(calls)) => {
            Some(message(calls.iter().map(|(n, a)| call(n, a)).collect()))
        }
        Answered::Data(data) => Some(data.to_json()),
        _ => None,
    }
}

/// Guesses the provider from the name of a model.
fn provider(model: &str) -> &'static str {
    match model {
        "scripted" | "recorded" => "entail",
        _ => Vendor::of_model(model).map_or("_OTHER", |vendor| vendor.telemetry),
    }
}

fn scope() -> Scope {
    Scope { name: "entail".into(), version: env!("CARGO_PKG_VERSION").into() }
}

fn status(error: Option<&str>) -> Option<Status> {
    Some(match error {
        None => Status::default(),
        Some(why) => Status { code: StatusCode::Error.into(), message: diagnostics::clip_to(why, 500) },
    })
}

fn attribute(key: &str, value: Scalar) -> KeyValue {
    KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value) }) }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Scalar::Text(value.into()))
}

fn truth(key: &str, value: bool) -> KeyValue {
    attribute(key, Scalar::Bool(value))
}

fn int(key: &str, value: u64) -> KeyValue {
    attribute(key, Scalar::Int(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn float(key: &str, value: f64) -> KeyValue {
    attribute(key, Scalar::Double(value))
}

/// Nanoseconds since 1970, which are enough until 2554.
fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// An identifier of this many bytes, at most 32, that depends on these parts.
fn identifier(parts: &[&str], bytes: usize) -> Vec<u8> {
    Sha256::digest(parts.join("/").as_bytes())[..bytes].to_vec()
}
