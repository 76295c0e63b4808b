//! Requests of servers to their client: questions to a person, and the folders that they may know of.
//!
//! Invariant: a request is answered only while exactly one call is open on the connection. Otherwise nobody
//! could tell whose call it belongs to, and whom to ask.

// Roots are deprecated since 2026-07-28, and servers still ask for them.
#![allow(deprecated)]

use crate::ConfigError;
use crate::elicit::{ElicitationAnswer, ElicitationKind, Respondent};
use crate::tools::ToolError;
use core_ir::LabelSpec;
use diagnostics::clip_to as clip;
use rmcp::ErrorData;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorCode, FormElicitationCapability,
    InputRequest, InputRequests, InputResponses, ListRootsResult, Root, RootsCapabilities,
    UrlElicitationCapability,
};
use rmcp::service::{RequestContext, RoleClient};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of questions that a server may ask in one call.
pub(super) const MAX_QUESTIONS: usize = 10;

/// Maximum number of requests of a server that the result of one round of a call may have.
const MAX_REQUESTS: usize = 32;

const NO_SAMPLING: &str = "it asks for a completion of a model (sampling), which this client refuses";

/// The capabilities that a server is told of.
pub(super) fn capabilities(has_roots: bool, asks: bool) -> ClientCapabilities {
    let mut capabilities = ClientCapabilities::default();
    capabilities.roots = has_roots.then(RootsCapabilities::default);
    capabilities.elicitation = asks.then(|| {
        ElicitationCapability::new()
            .with_form(FormElicitationCapability::new())
            .with_url(UrlElicitationCapability::new())
    });
    capabilities
}

/// Folders as servers are told of them.
pub(super) fn roots(folders: &[PathBuf]) -> Result<Vec<Root>, ToolError> {
    let root = |folder: &PathBuf| {
        let no_folder = |why: &str| {
            let message = format!("its root `{}` {why}", clip(&folder.to_string_lossy(), 200));
            ToolError::from(ConfigError::new(message).with_help("name folders that are there in `roots`"))
        };
        let path =
            folder.canonicalize().ok().filter(|p| p.is_dir()).ok_or_else(|| no_folder("is no folder"))?;
        let url = reqwest::Url::from_directory_path(&path).map_err(|()| no_folder("has no address"))?;
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
        let root = Root::new(url.as_str().trim_end_matches('/'));
        Ok(match name {
            Some(name) => root.with_name(name),
            None => root,
        })
    };
    folders.iter().map(root).collect()
}

/// The client's side of a connection.
#[derive(Debug)]
pub(super) struct Host {
    /// Name of the server.
    pub(super) server: String,
    pub(super) config: ClientConfig,
    /// Addresses of the folders that the server may know of.
    pub(super) roots: Vec<Root>,
    pub(super) open: Arc<OpenCalls>,
}

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(self.roots.clone()))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        if let Some(call) = self.open.only() {
            call.note(NO_SAMPLING.into());
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "this client does not offer sampling", None))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(call) = self.open.only() else {
            let why = "a question is answered only while exactly one call is open";
            return Err(ErrorData::new(ErrorCode::INVALID_REQUEST, why, None));
        };
        tokio::select! {
            answer = call.elicit(&self.server, request) => Ok(answer),
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }
}

/// Calls that are open on a connection.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(Mutex<(u64, BTreeMap<u64, Arc<OpenCall>>)>);

impl OpenCalls {
    /// Opens a call, until the result is dropped.
    pub(super) fn begin(self: &Arc<Self>, person: Option<Arc<Respondent>>) -> CallGuard {
        let call = Arc::new(OpenCall {
            person,
            turn: Default::default(),
            state: Mutex::default(),
            ended: CancellationToken::new(),
        });
        let mut open = lock(&self.0);
        open.0 += 1;
        let number = open.0;
        open.1.insert(number, call.clone());
        CallGuard { calls: self.clone(), number, call }
    }

    /// The open call, if there is exactly one.
    fn only(&self) -> Option<Arc<OpenCall>> {
        let open = lock(&self.0);
        open.1.values().next().filter(|_| open.1.len() == 1).cloned()
    }
}

/// Keeps a call open.
pub(super) struct CallGuard {
    calls: Arc<OpenCalls>,
    number: u64,
    pub(super) call: Arc<OpenCall>,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        lock(&self.calls.0).1.remove(&self.number);
        self.call.ended.cancel();
    }
}

/// A call of a server's tool that has no result yet.
#[derive(Debug)]
pub(super) struct OpenCall {
    person: Option<Arc<Respondent>>,
    /// Questions of one call come one after another.
    turn: tokio::sync::Mutex<()>,
    state: Mutex<CallState>,
    ended: CancellationToken,
}

#[derive(Debug, Default)]
struct CallState {
    questions: usize,
    /// Reasons why requests of the server were refused.
    refused: Vec<String>,
    /// Label of what the person answered.
    person: Option<LabelSpec>,
    /// Time for which the server waited for a person.
    waited: Duration,
    waits_since: Option<Instant>,
}

impl OpenCall {
    /// Label of what the person answered, if anything.
    pub(super) fn person(&self) -> Option<LabelSpec> {
        lock(&self.state).person.clone()
    }

    /// A failure, with the reasons why requests of the server were refused.
    pub(super) fn explain(&self, why: String) -> String {
        let refused = &lock(&self.state).refused;
        if refused.is_empty() { why } else { format!("{why}; {}", refused.join("; ")) }
    }

    pub(super) fn note(&self, why: String) {
        let mut state = lock(&self.state);
        if !state.refused.contains(&why) && state.refused.len() < MAX_QUESTIONS {
            state.refused.push(why);
        }
    }

    /// Waits until the call has taken this long, without the time for which it waited for a person.
    pub(super) async fn too_long(&self, limit: Duration) {
        let begun = Instant::now();
        loop {
            let waited = {
                let state = lock(&self.state);
                state.waited + state.waits_since.map_or(Duration::ZERO, |since| since.elapsed())
            };
            let left = limit.saturating_sub(begun.elapsed().saturating_sub(waited));
            if left.is_zero() {
                return;
            }
            // While a person is asked, none of it is used up.
            tokio::time::sleep(left.max(Duration::from_millis(1))).await;
        }
    }

    /// Puts a question of the server to the person.
    pub(super) async fn elicit(&self, server: &str, request: ElicitRequestParams) -> ElicitResult {
        let (action, content) = self.ask(server, request).await;
        let mut result = ElicitResult::new(action);
        result.content = content;
        result
    }

    async fn ask(&self, server: &str, request: ElicitRequestParams) -> (ElicitationAction, Option<Json>) {
        let (message, asks) = read(request);
        let refused = |why: &str| self.note(format!("its question `{}`: {why}", clip(&message, 200)));
        {
            let mut state = lock(&self.state);
            state.questions += 1;
            if state.questions > MAX_QUESTIONS {
                drop(state);
                self.note(format!("it asked more than {MAX_QUESTIONS} questions"));
                return (ElicitationAction::Cancel, None);
            }
        }
        let asks = match asks {
            Ok(asks) => asks,
            Err(why) => {
                refused(&why);
                return (ElicitationAction::Decline, None);
            }
        };
        let Some(person) = &self.person else {
            refused(crate::approve::NOBODY_ANSWERS);
            return (ElicitationAction::Decline, None);
        };
        let is_url = matches!(asks, ElicitationKind::Url(_));
        let answer = {
            let _turn = self.turn.lock().await;
            let _waiting = Waiting::begin(&self.state);
            tokio::select! {
                answer = person.ask(server, &message, asks) => answer,
                () = self.ended.cancelled() => ElicitationAnswer::Cancel("the call has ended".into()),
            }
        };
        match answer {
            ElicitationAnswer::Accept { content, label } => {
                let mut state = lock(&self.state);
                // All answers of a call are of the same person.
                state.person = Some(match state.person.take() {
                    Some(known) if known != label => LabelSpec::TOP,
                    _ => label,
                });
                (ElicitationAction::Accept, (!is_url).then_some(Json::Object(content)))
            }
            ElicitationAnswer::Decline(why) => {
                refused(&why);
                (ElicitationAction::Decline, None)
            }
            ElicitationAnswer::Cancel(why) => {
                refused(&why);
                (ElicitationAction::Cancel, None)
            }
        }
    }

    /// Answers the requests that a server makes instead of giving the result of a call.
    ///
    /// # Errors
    /// The server asks for something that it doesn't get, or for too much.
    pub(super) async fn fulfill(
        &self,
        host: &Host,
        requests: Option<InputRequests>,
    ) -> Result<Option<InputResponses>, String> {
        let requests = requests.unwrap_or_default();
        if requests.len() > MAX_REQUESTS {
            return Err(format!("it makes more than {MAX_REQUESTS} requests at once"));
        }
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let response = match request {
                InputRequest::Elicitation(request) => {
                    serde_json::to_value(self.elicit(&host.server, request.params).await)
                }
                InputRequest::ListRoots(_) => serde_json::to_value(ListRootsResult::new(host.roots.clone())),
                InputRequest::CreateMessage(_) => return Err(NO_SAMPLING.into()),
                _ => return Err("it makes a request that this client does not know".into()),
            };
            responses.insert(key, response.map_err(|e| e.to_string())?);
        }
        Ok((!responses.is_empty()).then_some(responses))
    }
}

/// The message of a question, and the kind of its answer, or the reason why it can't be asked.
fn read(request: ElicitRequestParams) -> (String, Result<ElicitationKind, String>) {
    match request {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let order = requested_schema.property_order.clone().unwrap_or_default();
            let schema = serde_json::to_value(requested_schema).map_err(|e| e.to_string());
            (message, schema.and_then(|schema| ElicitationKind::form(&schema, &order)))
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            (message, ElicitationKind::url(&url))
        }
        _ => (String::new(), Err("it is of a kind that this client does not know".into())),
    }
}

/// Counts the time for which a server waits for a person.
struct Waiting<'a>(&'a Mutex<CallState>);

impl Waiting<'_> {
    fn begin(state: &Mutex<CallState>) -> Waiting<'_> {
        lock(state).waits_since = Some(Instant::now());
        Waiting(state)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = lock(self.0);
        if let Some(since) = state.waits_since.take() {
            state.waited += since.elapsed();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while it was held leaves nothing half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
