//! The engine from outside: runs are begun, answered, canceled and looked at over HTTP.
//!
//! Entry point: [`EngineClient::connect`], with the address of the engine's admin API.

use crate::error::Error;
use crate::manifest::{ANSWER, RUN};
use crate::questions;
use crate::worker::OUTCOME;
use reqwest::header::{ACCEPT, HeaderMap};
use reqwest::{Client, Method, StatusCode, Url};
use runtime::EngineQuestion;
use serde_json::{Value as Json, json};
use std::time::Duration;

/// Interval between two looks at a run that is waited for.
const LOOK: Duration = Duration::from_secs(2);

/// The engine.
#[derive(Clone, Debug)]
pub struct EngineClient {
    http: Client,
    admin: Url,
    ingress: Url,
}

/// A run, as the engine knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineRunInfo {
    /// Identifier of the invocation.
    pub invocation: String,
    /// The workflow.
    pub service: String,
    /// Name of the run.
    pub run: String,
    /// Its status, in the words of `entail runs`.
    pub status: &'static str,
    /// Reason of the last failure of an attempt that is not the end.
    pub held: Option<String>,
    /// Reason why it failed.
    pub failure: Option<String>,
    /// Start of the run, as the engine writes times.
    pub created: String,
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineStepInfo {
    /// Name of the step.
    pub name: String,
    /// Its record; `None` while there is none.
    pub record: Option<Json>,
}

/// End of a run that was waited for.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEnd {
    /// Its outcome, as `entail run --format json` writes it.
    Done(Json),
    /// It failed, with that outcome if it has one.
    Failed(String, Option<Json>),
    /// It goes on when somebody has seen to this.
    Held(String),
}

impl EngineClient {
    /// Connects to the engine with its admin API at this address.
    ///
    /// # Errors
    /// It is no address, or nothing answers there.
    pub async fn connect(engine: &str, ingress: Option<&str>) -> Result<EngineClient, Error> {
        let admin = runtime::http_url(engine, "the address of the engine")?;
        let http = runtime::http_client(&admin, Duration::from_secs(5), None, HeaderMap::new())?;
        let mut client = EngineClient { http, ingress: admin.clone(), admin };
        let version = client.admin(Method::GET, "version", None).await?;
        let told = version["ingress_endpoint"].as_str().unwrap_or_default();
        client.ingress = match ingress {
            Some(given) => runtime::http_url(given, "the address of the ingress")?,
            // The address that the server is told to have may be one of its own network.
            None => Url::parse(told).ok().and_then(|told| at_host(told, &client.admin)).ok_or_else(|| {
                Error::new("the engine does not say where its ingress is")
                    .with_help("name it with `--ingress URL`")
            })?,
        };
        Ok(client)
    }

    async fn admin(&self, method: Method, path: &str, body: Option<Json>) -> Result<Json, Error> {
        let url = join(&self.admin, path)?;
        let mut request = self.http.request(method, url).header(ACCEPT, "application/json");
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.timeout(Duration::from_secs(60)).send().await;
        let response = response.map_err(|e| self.unreachable(&e))?;
        let status = response.status();
        let text = response.text().await.map_err(|e| self.unreachable(&e))?;
        if !status.is_success() {
            return Err(Error::new(format!("the engine refused: {}", said(&text, status))));
        }
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    fn unreachable(&self, e: &reqwest::Error) -> Error {
        let message = format!("cannot reach the engine at `{}`: {}", self.admin, runtime::http_cause(e));
        Error::new(message).with_help("`entail engine start` starts one on this machine for development")
    }

    /// Registers a worker that listens at this address.
    ///
    /// # Errors
    /// The engine can't reach it, or refuses it.
    pub async fn register(&self, worker: &str) -> Result<(), Error> {
        self.admin(Method::POST, "deployments", Some(json!({"uri": worker, "force": true}))).await.map(|_| ())
    }

    /// Begins a run of a workflow; with a name that a run has, that run is meant.
    ///
    /// # Errors
    /// The engine refuses it, or knows no such workflow.
    pub async fn start(&self, service: &str, run: &str, input: Option<String>) -> Result<(), Error> {
        let url = join(&self.ingress, &format!("{service}/{}/{RUN}/send", encoded(run)))?;
        let mut request = self.http.post(url);
        if let Some(input) = input {
            request = request.header("content-type", "application/json").body(input);
        }
        let response = request.send().await.map_err(|e| self.unreachable(&e))?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let text = response.text().await.unwrap_or_default();
        let e = Error::new(format!("the engine did not begin the run: {}", said(&text, status)));
        Err(match status {
            StatusCode::NOT_FOUND => {
                e.with_help("`entail worker PROGRAM --engine URL` registers the program")
            }
            _ => e,
        })
    }

    /// Waits for the end of a run.
    ///
    /// # Errors
    /// The engine can't be reached.
    pub async fn wait(&self, service: &str, run: &str) -> Result<RunEnd, Error> {
        let url = join(&self.ingress, &format!("restate/workflow/{service}/{}/attach", encoded(run)))?;
        let mut held = 0;
        loop {
            let attached = self.http.get(url.clone()).timeout(LOOK).send().await;
            match attached {
                Ok(response) => {
                    let status = response.status();
                    let text = response.text().await.map_err(|e| self.unreachable(&e))?;
                    if status.is_success() {
                        return Ok(RunEnd::Done(serde_json::from_str(&text).unwrap_or(Json::String(text))));
                    }
                    match self.find(service, run).await?.map(|info| info.status) {
                        Some("failed") => {
                            let outcome = self.state(service, run, OUTCOME).await?;
                            let outcome = outcome.and_then(|text| serde_json::from_str(&text).ok());
                            return Ok(RunEnd::Failed(said(&text, status), outcome));
                        }
                        // It was there when the wait began.
                        None => return Err(Error::new(format!("the engine has no run `{run}` any more"))),
                        Some(_) => tokio::time::sleep(LOOK).await,
                    }
                }
                Err(e) if e.is_timeout() => {}
                // A server that is starting again.
                Err(_) => tokio::time::sleep(LOOK).await,
            }
            // An attempt that was cut off is tried again by itself; one that is held says so each time.
            match self.find(service, run).await.ok().flatten() {
                Some(EngineRunInfo { status: "held", held: Some(why), .. }) => {
                    held += 1;
                    if held > 1 {
                        return Ok(RunEnd::Held(why));
                    }
                }
                _ => held = 0,
            }
        }
    }

    /// The rows of a query of the engine's introspection.
    async fn query(&self, query: &str) -> Result<Vec<Json>, Error> {
        let answer = self.admin(Method::POST, "query", Some(json!({ "query": query }))).await?;
        Ok(answer["rows"].as_array().cloned().unwrap_or_default())
    }

    async fn find(&self, service: &str, run: &str) -> Result<Option<EngineRunInfo>, Error> {
        let filter =
            format!("target_service_name = {} AND target_service_key = {}", quoted(service), quoted(run));
        Ok(self.select(&filter).await?.into_iter().next())
    }

    async fn select(&self, filter: &str) -> Result<Vec<EngineRunInfo>, Error> {
        let query = format!(
            "SELECT id, target_service_name, target_service_key, status, completion_result, completion_failure, last_failure, created_at FROM sys_invocation WHERE target_service_name LIKE 'entail.%' AND target_handler_name = '{RUN}' AND {filter} ORDER BY created_at DESC"
        );
        Ok(self.query(&query).await?.iter().map(info).collect())
    }

    /// The runs of programs, the newest first; of one name, if one is given.
    ///
    /// # Errors
    /// The engine can't be reached.
    pub async fn runs(&self, run: Option<&str>) -> Result<Vec<EngineRunInfo>, Error> {
        let filter = run.map_or("TRUE".to_string(), |run| format!("target_service_key = {}", quoted(run)));
        self.select(&filter).await
    }

    /// The steps of a run, in their order.
    ///
    /// # Errors
    /// The engine can't be reached.
    pub async fn steps(&self, run: &EngineRunInfo) -> Result<Vec<EngineStepInfo>, Error> {
        let query = format!(
            "SELECT index, entry_type, name, entry_json FROM sys_journal WHERE id = {} ORDER BY index",
            quoted(&run.invocation)
        );
        Ok(steps(&self.query(&query).await?))
    }

    /// The questions that runs ask; those of one run, if it is given.
    ///
    /// # Errors
    /// The engine can't be reached.
    pub async fn questions(&self, run: Option<&str>) -> Result<Vec<(String, EngineQuestion)>, Error> {
        let of = run.map_or(String::new(), |run| format!(" AND service_key = {}", quoted(run)));
        let query = format!(
            "SELECT service_name, value_utf8 FROM state WHERE service_name LIKE 'entail.%' AND key LIKE '{}%'{of}",
            questions::PREFIX
        );
        let read = |row: &Json| {
            let question = questions::read(row["value_utf8"].as_str()?)?;
            Some((row["service_name"].as_str()?.to_string(), question))
        };
        Ok(self.query(&query).await?.iter().filter_map(read).collect())
    }

    async fn state(&self, service: &str, run: &str, key: &str) -> Result<Option<String>, Error> {
        let query = format!(
            "SELECT value_utf8 FROM state WHERE service_name = {} AND service_key = {} AND key = {}",
            quoted(service),
            quoted(run),
            quoted(key)
        );
        let rows = self.query(&query).await?;
        Ok(rows.first().and_then(|row| row["value_utf8"].as_str()).map(String::from))
    }

    /// Passes a signed answer on to the run that asks.
    ///
    /// # Errors
    /// The question waits no more, or the answer counts for nothing.
    pub async fn answer(&self, service: &str, run: &str, answer: String) -> Result<(), Error> {
        let url = join(&self.ingress, &format!("{service}/{}/{ANSWER}", encoded(run)))?;
        let request = self.http.post(url).header("content-type", "application/json").body(answer);
        let response = request.send().await.map_err(|e| self.unreachable(&e))?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        Err(Error::new(said(&response.text().await.unwrap_or_default(), status)))
    }

    /// Cancels a run.
    ///
    /// # Errors
    /// The engine refuses.
    pub async fn cancel(&self, run: &EngineRunInfo) -> Result<(), Error> {
        self.admin(Method::PATCH, &format!("invocations/{}/cancel", run.invocation), None).await.map(|_| ())
    }
}

/// A run out of a row of the engine.
fn info(row: &Json) -> EngineRunInfo {
    let text = |name: &str| row[name].as_str().unwrap_or_default().to_string();
    let present = |name: &str| row[name].as_str().filter(|text| !text.is_empty()).map(String::from);
    let status = match (text("status").as_str(), text("completion_result").as_str()) {
        ("completed", "success") => "done",
        ("completed", _) => "failed",
        ("suspended", _) => "waiting",
        ("backing-off" | "paused", _) => "held",
        _ => "running",
    };
    EngineRunInfo {
        invocation: text("id"),
        service: text("target_service_name"),
        run: text("target_service_key"),
        status,
        held: present("last_failure").filter(|_| status == "held"),
        failure: present("completion_failure"),
        created: text("created_at"),
    }
}

/// The steps out of the rows of a journal: each with the record that completes it.
fn steps(rows: &[Json]) -> Vec<EngineStepInfo> {
    let mut steps: Vec<(u64, EngineStepInfo)> = Vec::new();
    for row in rows {
        let entry: Json =
            row["entry_json"].as_str().and_then(|t| serde_json::from_str(t).ok()).unwrap_or_default();
        if let Some(run) = entry.pointer("/Command/Run") {
            let name = run["name"].as_str().unwrap_or_default().to_string();
            let id = run["completion_id"].as_u64().unwrap_or_default();
            steps.push((id, EngineStepInfo { name, record: None }));
        }
        if let Some(run) = entry.pointer("/Notification/Completion/Run") {
            let id = run["completion_id"].as_u64().unwrap_or_default();
            let record = run.pointer("/result/Success").map(record);
            if let Some((_, step)) = steps.iter_mut().find(|(of, _)| *of == id) {
                step.record = record;
            }
        }
    }
    steps.into_iter().map(|(_, step)| step).collect()
}

/// A record, which the engine shows as a list of bytes.
fn record(bytes: &Json) -> Json {
    let byte = |b: &Json| b.as_u64().and_then(|b| u8::try_from(b).ok());
    let bytes: Vec<u8> = bytes.as_array().into_iter().flatten().filter_map(byte).collect();
    serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into())
}

/// An address of the engine's, at the host that it was reached at.
fn at_host(mut told: Url, reached: &Url) -> Option<Url> {
    told.set_host(reached.host_str()).ok()?;
    Some(told)
}

fn join(base: &Url, path: &str) -> Result<Url, Error> {
    let base = base.as_str().trim_end_matches('/');
    Url::parse(&format!("{base}/{path}")).map_err(|e| Error::new(format!("no address: {e}")))
}

/// A part of a path.
fn encoded(part: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~".contains(&b);
    part.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// A text in a query.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Message of the engine about a failure.
fn said(text: &str, status: StatusCode) -> String {
    let json: Json = serde_json::from_str(text).unwrap_or_default();
    let message = json["message"].as_str().map(String::from);
    diagnostics::clip_to(&message.unwrap_or_else(|| format!("{status} {text}")), 2000)
}
