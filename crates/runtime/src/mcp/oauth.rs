//! Authorization by OAuth 2.1 for servers at an address.
//!
//! Entry points: [`login`], by which a person authorizes Entail, and [`authorized`], the client of a
//! connection with the tokens of that. The protocol is that of the SDK: discovery of the authorization server
//! (RFC 9728, RFC 8414), registration, PKCE, the audience of tokens (RFC 8707), refresh.
//!
//! Invariant: tokens are in a file that only its owner can read, and go to no other address than the one that
//! they were given for. They are removed from results and messages of the server.

use super::McpServer;
use crate::{ConfigError, Redactor, Secret, web, write_private};
use diagnostics::clip_to as clip;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthClient, AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession,
    CredentialRefreshGuard, CredentialStore, StoredCredentials,
};
use serde_json::{Value as Json, json};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Time for a person to authorize.
const LOGIN: Duration = Duration::from_secs(300);

/// Time for discovery, and for the exchange of a code.
const EXCHANGE: Duration = Duration::from_secs(60);

/// Maximum bytes of the head of a request to the redirection address.
const MAX_HEAD: usize = 16 << 10;

/// Tokens in a file. It is written whole, or not at all.
#[derive(Clone, Debug)]
struct FileStore {
    file: PathBuf,
    /// The address that the tokens are for.
    url: String,
}

impl FileStore {
    fn of(server: &McpServer) -> Result<FileStore, ConfigError> {
        let file = server.token_file.clone();
        let file = file.ok_or_else(|| ConfigError::new("there is no folder for its tokens"))?;
        Ok(FileStore { file, url: server.url.clone().unwrap_or_default() })
    }

    fn read(&self) -> Result<Option<StoredCredentials>, String> {
        let failed = |why: &dyn std::fmt::Display| format!("`{}` can't be read: {why}", self.file.display());
        let text = match std::fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed(&e)),
        };
        #[cfg(unix)]
        {
            let about = std::fs::metadata(&self.file).map_err(|e| failed(&e))?;
            if std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o077 != 0 {
                return Err(failed(&"others than its owner can read it (help: log in again)"));
            }
        }
        // The text of the error could quote a token.
        let mut json: Json = serde_json::from_str(&text).map_err(|_| failed(&"it is damaged"))?;
        if json["url"] != *self.url {
            return Ok(None);
        }
        let stored = serde_json::from_value(json["credentials"].take());
        stored.map(Some).map_err(|_| failed(&"it is damaged"))
    }

    fn write(&self, credentials: &StoredCredentials) -> std::io::Result<()> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let text = json!({ "url": self.url, "credentials": credentials }).to_string();
        let new = self.file.with_extension("new");
        match std::fs::remove_file(&new) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        write_private(&new, &text)?;
        std::fs::rename(&new, &self.file)
    }

    /// Holds the file against refreshes by other processes.
    fn hold(&self) -> std::io::Result<File> {
        let file = File::options().create(true).append(true).open(self.file.with_extension("lock"))?;
        file.lock()?;
        Ok(file)
    }
}

type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T, AuthError>> + Send + 'a>>;

/// Does what waits for the disk.
fn aside<'a, T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Later<'a, T> {
    Box::pin(async move {
        let done = tokio::task::spawn_blocking(work).await.map_err(|e| e.to_string());
        done.and_then(|done| done).map_err(AuthError::CredentialStoreError)
    })
}

impl CredentialStore for FileStore {
    fn load<'a, 'b>(&'a self) -> Later<'b, Option<StoredCredentials>>
    where
        'a: 'b,
        Self: 'b,
    {
        let store = self.clone();
        aside(move || store.read())
    }

    fn save<'a, 'b>(&'a self, credentials: StoredCredentials) -> Later<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        let store = self.clone();
        aside(move || {
            let file = store.file.display().to_string();
            store.write(&credentials).map_err(|e| format!("`{file}` can't be written: {e}"))
        })
    }

    fn clear<'a, 'b>(&'a self) -> Later<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        let store = self.clone();
        aside(move || match std::fs::remove_file(&store.file) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e.to_string()),
            _ => Ok(()),
        })
    }

    fn acquire_refresh_guard<'a, 'b>(&'a self) -> Later<'b, Option<CredentialRefreshGuard>>
    where
        'a: 'b,
        Self: 'b,
    {
        let store = self.clone();
        aside(move || {
            let held = store.hold().map_err(|e| e.to_string())?;
            Ok(Some(CredentialRefreshGuard::new(held)))
        })
    }
}

/// The tokens of a server, as secrets.
pub(super) fn redactor(server: &McpServer) -> Redactor {
    let stored = FileStore::of(server).ok().and_then(|store| store.read().ok().flatten());
    let json = stored.and_then(|s| serde_json::to_value(s.token_response).ok()).unwrap_or_default();
    let tokens = ["access_token", "refresh_token", "id_token"].into_iter();
    Redactor::new(tokens.filter_map(|name| json.get(name)?.as_str().map(Secret::new)))
}

async fn manager(server: &McpServer) -> Result<AuthorizationManager, AuthError> {
    // The first to install one wins; any provider will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = server.url.as_deref().unwrap_or_default();
    let mut manager = AuthorizationManager::new(url).await?;
    let store = FileStore::of(server).map_err(|e| AuthError::CredentialStoreError(e.one_line()))?;
    manager.set_credential_store(store);
    Ok(manager)
}

/// A client that sends the tokens of a server, and renews them.
///
/// # Errors
/// Nobody has logged in, or the authorization server can't be asked.
pub(super) async fn authorized(
    name: &str,
    server: &McpServer,
    http: reqwest::Client,
) -> Result<AuthClient<reqwest::Client>, ConfigError> {
    let login = |why: String| {
        ConfigError::new(why).with_help(format!("log in with `entail tools --login {}`", clip(name, 40)))
    };
    let mut manager = manager(server).await.map_err(|e| login(problem(server, &e)))?;
    match manager.initialize_from_store().await {
        Ok(true) => Ok(AuthClient::new(http, manager)),
        Ok(false) => Err(login("it requires a login".into())),
        Err(e) => Err(login(problem(server, &e))),
    }
}

/// A problem in words, without tokens.
fn problem(server: &McpServer, e: &AuthError) -> String {
    let mut text = e.to_string();
    let mut cause = std::error::Error::source(e);
    while let Some(of) = cause {
        text = format!("{text}: {of}");
        cause = of.source();
    }
    clip(&redactor(server).text(&text), 300)
}

/// Lets a person authorize Entail for a server: shows an address, waits until the person's browser comes back
/// to an address of this machine, and keeps the tokens. Nothing is opened.
///
/// # Errors
/// The server does not say who authorizes, the person refuses or takes too long, or the tokens can't be had
/// or kept.
pub(super) async fn login(
    server: &McpServer,
    show: &mut (dyn FnMut(&str) + Send),
) -> Result<PathBuf, String> {
    let settings = server.oauth.clone().unwrap_or_default();
    let listener = TcpListener::bind(("127.0.0.1", settings.port.unwrap_or(0))).await;
    let listener = listener.map_err(|e| format!("no address of this machine to come back to: {e}"))?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let redirect = format!("http://{address}/callback");
    let begin = async {
        let mut manager = manager(server).await?;
        let resolved = manager.resolve_metadata().await?;
        if !resolved.source.is_discovered() {
            return Err(AuthError::NoAuthorizationSupport);
        }
        manager.set_metadata(resolved.metadata);
        let mut request = AuthorizationRequest::new(&redirect).with_client_name("Entail");
        if let Some(id) = &settings.client_id {
            request = request.with_preregistered_client(id);
        }
        if !settings.scopes.is_empty() {
            request = request.with_scopes(settings.scopes.clone());
        }
        AuthorizationSession::new(manager, request).await.map_err(|(_, e)| e)
    };
    let late = |_| format!("the authorization server did not answer within {} s", EXCHANGE.as_secs());
    let session = timeout(EXCHANGE, begin).await.map_err(late)?.map_err(|e| problem(server, &e))?;
    let url =
        web::url(session.get_authorization_url(), "the address to authorize at").map_err(|e| e.one_line())?;
    let state = url.query_pairs().find(|(name, _)| name == "state").map(|(_, state)| state.into_owned());
    let state = state.ok_or("the address to authorize at has no state")?;
    show(url.as_str());
    let back = timeout(LOGIN, comes_back(&listener, &redirect, &state)).await;
    let back = back.map_err(|_| format!("nobody authorized within {} s", LOGIN.as_secs()))??;
    let exchanged = timeout(EXCHANGE, session.handle_callback_url(&back)).await.map_err(late)?;
    exchanged.map_err(|e| problem(server, &e))?;
    FileStore::of(server).map(|store| store.file).map_err(|e| e.one_line())
}

/// Waits for the browser that comes back with this state. Others are sent away.
async fn comes_back(listener: &TcpListener, redirect: &str, state: &str) -> Result<String, String> {
    loop {
        let (mut stream, _) = listener.accept().await.map_err(|e| e.to_string())?;
        let Ok(Some(target)) = timeout(Duration::from_secs(5), target(&mut stream)).await else { continue };
        let url = Url::parse(redirect).ok().and_then(|base| base.join(&target).ok());
        let ours = url.filter(|url| {
            url.path() == "/callback"
                && url.query_pairs().any(|(name, value)| name == "state" && value == *state)
        });
        let Some(url) = ours else {
            answer(&mut stream, "404 Not Found", "There is nothing here.").await;
            continue;
        };
        let of = |name: &str| url.query_pairs().find(|(n, _)| n == name).map(|(_, value)| value.into_owned());
        if let Some(error) = of("error") {
            answer(&mut stream, "200 OK", "Entail was not authorized. This page can be closed.").await;
            let why = of("error_description").map_or(error.clone(), |why| format!("{error}, {why}"));
            return Err(format!("it was not authorized: `{}`", clip(&why, 200)));
        }
        answer(&mut stream, "200 OK", "Entail is authorized. This page can be closed.").await;
        return Ok(url.to_string());
    }
}

/// The target of a GET request.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut chunk = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut chunk).await.ok().filter(|n| *n > 0)?;
        head.extend_from_slice(&chunk[..read]);
        if head.len() > MAX_HEAD {
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    let target = head.lines().next()?.strip_prefix("GET ")?.strip_suffix(" HTTP/1.1")?;
    target.starts_with('/').then(|| target.to_string())
}

async fn answer(stream: &mut TcpStream, status: &str, text: &str) {
    let head = "Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\nConnection: close";
    let answer = format!("HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {}\r\n\r\n{text}", text.len());
    // The browser may be gone; what it came with counts.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}
