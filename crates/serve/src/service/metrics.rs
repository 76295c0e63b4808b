//! Numbers of a server for a monitoring system, in the text format of Prometheus.
//!
//! Entry points: [`Metrics`], which counts, and [`Metrics::run`] for the events of one run.
//!
//! Invariant: what is counted of a run is what its operator may see: events that the policy withholds are
//! not. Invariant: the number of series is bounded. Names of models and tools beyond [`MAX_TARGETS`] count as
//! `other`.

use core_ir::Num;
use machine::RequestId;
use runtime::{Answered, Asked, Delivered, Event, Histogram, TIME_BOUNDS, Tokens};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The media type of the format.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The most names of models and tools that have series of their own.
const MAX_TARGETS: usize = 200;

/// Upper bounds of the durations of runs, in seconds.
const RUN_BOUNDS: [f64; 14] =
    [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0];

/// A series: the values of its labels, in the order of their names.
type Series = Vec<Arc<str>>;

/// Counters of one name: the name, what it is, the names of its labels, and its series.
type Family<'a> = (&'a str, &'a str, &'a [&'a str], &'a BTreeMap<Series, u64>);

/// Counters of a server.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    begun: BTreeMap<Series, u64>,
    ended: BTreeMap<Series, u64>,
    run_seconds: BTreeMap<Series, Histogram>,
    requests: BTreeMap<Series, u64>,
    request_seconds: BTreeMap<Series, Histogram>,
    tokens: BTreeMap<Series, u64>,
    usd: BTreeMap<Series, f64>,
    retries: BTreeMap<Series, u64>,
    refusals: BTreeMap<Series, u64>,
    approvals: BTreeMap<Series, u64>,
    http: BTreeMap<Series, u64>,
    /// Names of models and tools that have series of their own.
    targets: BTreeMap<Arc<str>, ()>,
}

impl Counts {
    /// The name of a model or tool, as it is counted.
    fn target(&mut self, name: &str) -> Arc<str> {
        if let Some((known, ())) = self.targets.get_key_value(name) {
            return known.clone();
        }
        if self.targets.len() >= MAX_TARGETS {
            return "other".into();
        }
        let name: Arc<str> = diagnostics::clip_to(name, 120).into();
        self.targets.insert(name.clone(), ());
        name
    }
}

fn count(family: &mut BTreeMap<Series, u64>, series: Series, n: u64) {
    let total = family.entry(series).or_default();
    *total = total.saturating_add(n);
}

/// How things stand when the numbers are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gauges {
    /// Runs at work.
    pub(crate) running: usize,
    /// Runs that wait for an approval.
    pub(crate) waiting: usize,
    /// The most runs that may be at work.
    pub(crate) most: usize,
    /// Questions in the journal that wait for an answer; `None` if that is not known.
    pub(crate) questions: Option<usize>,
    /// Runs that have ended and of which traces are on their way.
    pub(crate) sending: usize,
    /// Counts of spans and of metrics; `None` without a collector.
    pub(crate) telemetry: Option<(Delivered, Delivered)>,
}

impl Metrics {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        // A panic leaves a counter that is one too low.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run of a pipeline begins.
    pub(crate) fn run(self: &Arc<Self>, pipeline: &str) -> RunMetrics {
        let pipeline: Arc<str> = pipeline.into();
        count(&mut self.lock().begun, vec![pipeline.clone()], 1);
        RunMetrics { metrics: self.clone(), pipeline, open: HashMap::new() }
    }

    /// A request was answered over HTTP. `route` is its pattern, of which there are few.
    pub(crate) fn answered(&self, method: &str, route: &str, status: u16) {
        let series = vec![method.into(), route.into(), status.to_string().into()];
        count(&mut self.lock().http, series, 1);
    }

    /// All numbers.
    pub(crate) fn text(&self, gauges: Gauges) -> String {
        let counts = self.lock();
        let mut out = Text(String::new());
        out.head("entail_build_info", "gauge", "Version of the server.");
        out.line("entail_build_info", &["version"], &[env!("CARGO_PKG_VERSION").into()], None, "1");
        let runs = [("running", gauges.running), ("waiting", gauges.waiting)];
        out.head("entail_runs", "gauge", "Runs that have begun and not ended, by state.");
        for (state, n) in runs {
            out.line("entail_runs", &["state"], &[state.into()], None, &n.to_string());
        }
        out.gauge("entail_runs_limit", "Most runs at work at once.", gauges.most);
        if let Some(questions) = gauges.questions {
            out.gauge("entail_approvals_pending", "Calls that wait for an approval.", questions);
        }
        out.gauge("entail_telemetry_pending", "Ended runs whose traces are on their way.", gauges.sending);
        if let Some((spans, metrics)) = gauges.telemetry {
            let name = "entail_telemetry_items_total";
            out.head(name, "counter", "What became of spans and metrics for the collector.");
            for (signal, of) in [("spans", spans), ("metrics", metrics)] {
                let outcomes = [
                    ("sent", of.sent),
                    ("rejected", of.rejected),
                    ("failed", of.failed),
                    ("dropped", of.dropped),
                ];
                for (outcome, n) in outcomes {
                    let series = [signal.into(), outcome.into()];
                    out.line(name, &["signal", "outcome"], &series, None, &n.to_string());
                }
            }
        }
        let pipeline = &["pipeline"][..];
        let call = &["gen_ai_operation_name", "target", "status"][..];
        let of_model = &["gen_ai_request_model"][..];
        let families: [Family<'_>; 8] = [
            ("entail_runs_started_total", "Runs that have begun, or were resumed.", pipeline, &counts.begun),
            (
                "entail_runs_ended_total",
                "Runs that have ended, by outcome.",
                &["pipeline", "outcome"],
                &counts.ended,
            ),
            ("entail_requests_total", "Requests to models and tools.", call, &counts.requests),
            (
                "entail_retries_total",
                "Requests that were sent again after a failure.",
                &["target"],
                &counts.retries,
            ),
            (
                "entail_tokens_total",
                "Tokens of models.",
                &["gen_ai_request_model", "gen_ai_token_type"],
                &counts.tokens,
            ),
            (
                "entail_refusals_total",
                "Calls that a flow rule refused, by tool.",
                &["pipeline", "tool"],
                &counts.refusals,
            ),
            (
                "entail_approvals_total",
                "Questions to people, by decision.",
                &["tool", "decision"],
                &counts.approvals,
            ),
            (
                "entail_http_requests_total",
                "Requests over HTTP.",
                &["method", "route", "status"],
                &counts.http,
            ),
        ];
        for (name, help, labels, family) in families {
            out.head(name, "counter", help);
            for (series, n) in family {
                out.line(name, labels, series, None, &n.to_string());
            }
        }
        out.head(
            "entail_cost_usd_total",
            "counter",
            "Price of model calls in US dollars, where it is known.",
        );
        for (series, usd) in &counts.usd {
            out.line("entail_cost_usd_total", of_model, series, None, &usd.to_string());
        }
        out.histogram(
            "entail_run_duration_seconds",
            "Time from the start to the end of runs.",
            pipeline,
            &counts.run_seconds,
        );
        out.histogram(
            "gen_ai_client_operation_duration_seconds",
            "Time of requests to models and tools.",
            &["gen_ai_operation_name", "target"],
            &counts.request_seconds,
        );
        out.0
    }
}

/// The text that is written.
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: usize) {
        self.head(name, "gauge", help);
        self.line(name, &[], &[], None, &value.to_string());
    }

    fn line(
        &mut self,
        name: &str,
        labels: &[&str],
        series: &[Arc<str>],
        more: Option<(&str, String)>,
        value: &str,
    ) {
        self.0.push_str(name);
        let mut first = true;
        let pairs = labels.iter().zip(series).map(|(label, value)| (*label, value.to_string()));
        for (label, value) in pairs.chain(more) {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{value}\"", if first { '{' } else { ',' });
            first = false;
        }
        self.0.push_str(if first { " " } else { "} " });
        self.0.push_str(value);
        self.0.push('\n');
    }

    fn histogram(&mut self, name: &str, help: &str, labels: &[&str], family: &BTreeMap<Series, Histogram>) {
        self.head(name, "histogram", help);
        for (series, histogram) in family {
            let mut below = 0;
            let bounds = histogram.bounds.iter().map(f64::to_string).chain(["+Inf".to_string()]);
            for (bound, n) in bounds.zip(&histogram.counts) {
                below += n;
                let bucket = format!("{name}_bucket");
                self.line(&bucket, labels, series, Some(("le", bound)), &below.to_string());
            }
            self.line(&format!("{name}_sum"), labels, series, None, &histogram.sum.to_string());
            self.line(&format!("{name}_count"), labels, series, None, &below.to_string());
        }
    }
}

/// The numbers of one run.
pub(crate) struct RunMetrics {
    metrics: Arc<Metrics>,
    pipeline: Arc<str>,
    open: HashMap<RequestId, (&'static str, Arc<str>)>,
}

impl RunMetrics {
    /// Counts an event that the operator may see. What a journal had already was counted before.
    pub(crate) fn note(&mut self, event: &Event) {
        match event {
            Event::Asked { id, what, recorded: false, .. } => {
                let (operation, name): (_, &str) = match what {
                    Asked::Model { model, .. } => ("chat", model),
                    Asked::Tool { name, .. } => ("execute_tool", name),
                    Asked::Approve { name, .. } => ("approve", name),
                    _ => return,
                };
                let target = self.metrics.lock().target(name);
                self.open.insert(*id, (operation, target));
            }
            Event::Retry { id, .. } => {
                if let Some((_, target)) = self.open.get(id) {
                    count(&mut self.metrics.lock().retries, vec![target.clone()], 1);
                }
            }
            Event::Answered { id, what, tokens, usd, elapsed, .. } => {
                let Some((operation, target)) = self.open.remove(id) else { return };
                self.answered((operation, target), what, *tokens, usd.as_ref(), *elapsed);
            }
            _ => {}
        }
    }

    fn answered(
        &self,
        (operation, target): (&'static str, Arc<str>),
        what: &Answered,
        tokens: Tokens,
        usd: Option<&Num>,
        elapsed: Duration,
    ) {
        let mut counts = self.metrics.lock();
        let status = match what {
            Answered::Failed(_) => "error",
            Answered::Late => "late",
            Answered::Stopped(_) => "stopped",
            Answered::Withheld => "withheld",
            _ => "ok",
        };
        if operation == "approve" {
            let decision = match what {
                Answered::Approved(_) => "approved",
                Answered::Edited { .. } => "edited",
                Answered::Failed(_) => "denied",
                _ => "none",
            };
            return count(&mut counts.approvals, vec![target, decision.into()], 1);
        }
        count(&mut counts.requests, vec![operation.into(), target.clone(), status.into()], 1);
        let series = vec![operation.into(), target.clone()];
        let histogram = counts.request_seconds.entry(series).or_insert_with(|| Histogram::new(&TIME_BOUNDS));
        histogram.add(elapsed.as_secs_f64());
        for (kind, n) in [("input", tokens.input), ("output", tokens.output)] {
            if operation == "chat" && n > 0 {
                count(&mut counts.tokens, vec![target.clone(), kind.into()], n);
            }
        }
        if let Some(usd) = usd.and_then(|usd| usd.to_string().parse::<f64>().ok()) {
            *counts.usd.entry(vec![target]).or_default() += usd;
        }
    }

    /// The run has ended with what the operator is told; `status` is its word.
    pub(crate) fn ended(self, status: &'static str, outcome: &Value) {
        let mut counts = self.metrics.lock();
        // Those that the program caught, and the one that ended it.
        let caught = outcome["refusedCalls"].as_array().into_iter().flatten();
        let last = Some(&outcome["error"]["refused"]).filter(|refused| refused.is_object());
        for refused in caught.chain(last) {
            let tool = counts.target(refused["name"].as_str().unwrap_or("none"));
            let times = refused["times"].as_u64().unwrap_or(1);
            count(&mut counts.refusals, vec![self.pipeline.clone(), tool], times);
        }
        count(&mut counts.ended, vec![self.pipeline.clone(), status.into()], 1);
        if let Some(ms) = outcome["ms"].as_f64() {
            let series = vec![self.pipeline.clone()];
            let histogram = counts.run_seconds.entry(series).or_insert_with(|| Histogram::new(&RUN_BOUNDS));
            histogram.add(ms / 1000.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gauges() -> Gauges {
        Gauges { running: 1, waiting: 2, most: 64, questions: Some(2), sending: 0, telemetry: None }
    }

    #[test]
    fn labels_are_escaped_and_series_are_bounded() {
        let metrics = Arc::new(Metrics::default());
        let run = metrics.run("p");
        for n in 0..2 * MAX_TARGETS {
            let target = metrics.lock().target(&format!("tool {n} \"\\\n"));
            let what = Answered::Nothing;
            run.answered(("execute_tool", target), &what, Tokens::default(), None, Duration::ZERO);
        }
        let text = metrics.text(gauges());
        let series = text.lines().filter(|l| l.starts_with("entail_requests_total{")).count();
        assert_eq!(series, MAX_TARGETS + 1);
        assert!(text.contains(r#"target="tool 0 \"\\",status="ok"} 1"#), "{text}");
        assert!(text.contains(&format!("target=\"other\",status=\"ok\"}} {MAX_TARGETS}")), "{text}");
    }

    #[test]
    fn buckets_of_a_histogram_count_what_is_below_them() {
        let mut histogram = Histogram::new(&TIME_BOUNDS);
        [0.005, 0.02, 0.021, 1000.0].into_iter().for_each(|x| histogram.add(x));
        let mut text = Text(String::new());
        text.histogram("t", "Times.", &["of"], &BTreeMap::from([(vec![Arc::from("x")], histogram)]));
        for line in [
            "# TYPE t histogram",
            r#"t_bucket{of="x",le="0.01"} 1"#,
            r#"t_bucket{of="x",le="0.02"} 2"#,
            r#"t_bucket{of="x",le="0.04"} 3"#,
            r#"t_bucket{of="x",le="81.92"} 3"#,
            r#"t_bucket{of="x",le="+Inf"} 4"#,
            r#"t_sum{of="x"} 1000.046"#,
            r#"t_count{of="x"} 4"#,
        ] {
            assert!(text.0.lines().any(|l| l == line), "{line}: {}", text.0);
        }
    }
}
