//! MCP servers that want a login: a resource server and an authorization server that speak the real protocol,
//! with faults.
#![cfg(all(unix, feature = "mcp"))]

use crate::mcp::{TestServer, handlers, one, tool};
use crate::support::program::{call, code};
use base64::Engine as _;
use core_ir::{Data, Type};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use machine::{Config, ErrorCode, Machine};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use runtime::{CancellationToken, Limits, McpServer, OauthSettings, Tools};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// State and faults of the servers.
#[derive(Default)]
struct Office {
    /// The base address.
    base: String,
    /// Access tokens that the resource server accepts.
    valid: HashSet<String>,
    refresh: HashSet<String>,
    /// Challenge of PKCE by code.
    codes: HashMap<String, String>,
    issued: usize,
    registered: usize,
    /// All requests: method, path, and what else counts.
    seen: Vec<String>,
    expires_in: u64,
    refuses: bool,
    /// Discovery is redirected to this address.
    elsewhere: Option<String>,
    /// The resource that the metadata name, if another one.
    resource: Option<String>,
    is_silent: bool,
}

type Shared = Arc<Mutex<Office>>;

fn reply(status: u16, body: &Json) -> Response<Full<Bytes>> {
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(Full::new(Bytes::from(body.to_string()))).unwrap()
}

fn tokens(office: &mut Office) -> Json {
    office.issued += 1;
    let (access, refresh) = (
        format!("at-planted-0zq7xw2rt9lm4kp8vb3nc{}", office.issued),
        format!("rt-planted-9xw2rt9lm4kp8vb3nc0zq{}", office.issued),
    );
    office.valid.insert(access.clone());
    office.refresh.insert(refresh.clone());
    json!({"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": office.expires_in})
}

/// The answer of the authorization server; `None` for requests to the resource.
fn authorization(
    office: &Shared,
    request: &hyper::http::request::Parts,
    body: &str,
) -> Option<Response<Full<Bytes>>> {
    let mut office = office.lock().unwrap();
    let (path, base) = (request.uri.path().to_string(), office.base.clone());
    if path == "/mcp" {
        return None;
    }
    office.seen.push(format!("{} {path}", request.method));
    let query = |text: &str| -> HashMap<String, String> {
        let url = reqwest::Url::parse(&format!("http://x/?{text}")).unwrap();
        url.query_pairs().into_owned().collect()
    };
    Some(match &*path {
        "/.well-known/oauth-protected-resource/mcp" | "/.well-known/oauth-authorization-server"
            if office.elsewhere.is_some() =>
        {
            let to = office.elsewhere.clone().unwrap();
            Response::builder().status(302).header("location", to).body(Full::default()).unwrap()
        }
        "/.well-known/oauth-protected-resource/mcp" => {
            let resource = office.resource.clone().unwrap_or_else(|| format!("{base}/mcp"));
            reply(200, &json!({"resource": resource, "authorization_servers": [base]}))
        }
        "/.well-known/oauth-authorization-server" => reply(
            200,
            &json!({
                "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            }),
        ),
        "/register" => {
            office.registered += 1;
            let asked: Json = serde_json::from_str(body).unwrap();
            let redirects = asked["redirect_uris"].clone();
            reply(201, &json!({"client_id": "client-1", "redirect_uris": redirects}))
        }
        "/authorize" => {
            let asked = query(request.uri.query().unwrap_or_default());
            assert_eq!((&*asked["code_challenge_method"], &*asked["response_type"]), ("S256", "code"));
            assert_eq!(asked["resource"], format!("{base}/mcp"));
            let client = asked["client_id"].clone();
            office.seen.push(format!("client {client}"));
            let code = format!("code-planted-{}", office.codes.len());
            office.codes.insert(code.clone(), asked["code_challenge"].clone());
            let (back, state) = (&asked["redirect_uri"], &asked["state"]);
            let back = match office.refuses {
                true => format!("{back}?error=access_denied&state={state}"),
                false => format!("{back}?code={code}&state={state}"),
            };
            Response::builder().status(302).header("location", back).body(Full::default()).unwrap()
        }
        "/token" => {
            let asked = query(body);
            assert_eq!(asked["resource"], format!("{base}/mcp"));
            office.seen.push(format!("grant {}", asked["grant_type"]));
            let is_good = match &*asked["grant_type"] {
                "authorization_code" => {
                    let challenge = office.codes.remove(&asked["code"]);
                    let digest = Sha256::digest(asked["code_verifier"].as_bytes());
                    challenge == Some(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(digest))
                }
                // A refresh token counts once.
                _ => office.refresh.remove(&asked["refresh_token"]) && !office.refuses,
            };
            match is_good {
                true => reply(200, &tokens(&mut office)),
                false => reply(
                    400,
                    &json!({"error": "invalid_grant", "error_description": asked.get("refresh_token")}),
                ),
            }
        }
        _ => reply(404, &json!({})),
    })
}

struct World {
    office: Shared,
    task: tokio::task::JoinHandle<()>,
    dir: tempfile::TempDir,
}

impl Drop for World {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl World {
    async fn start() -> World {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let office = Arc::new(Mutex::new(Office { base, expires_in: 3600, ..Office::default() }));
        let service = StreamableHttpService::new(
            || Ok(TestServer::default()),
            Arc::<LocalSessionManager>::default(),
            StreamableHttpServerConfig::default(),
        );
        let shared = office.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (service, office) = (service.clone(), shared.clone());
                let answer = hyper::service::service_fn(move |request: Request<Incoming>| {
                    let (service, office) = (service.clone(), office.clone());
                    async move {
                        if office.lock().unwrap().is_silent {
                            tokio::time::sleep(Duration::from_secs(600)).await;
                        }
                        let (parts, body) = request.into_parts();
                        let body = body.collect().await.unwrap().to_bytes();
                        let text = String::from_utf8_lossy(&body).into_owned();
                        if let Some(reply) = authorization(&office, &parts, &text) {
                            return Ok::<_, std::convert::Infallible>(reply.map(|b| b.boxed()));
                        }
                        let token = parts.headers.get("authorization").and_then(|v| v.to_str().ok());
                        let token =
                            token.and_then(|t| t.strip_prefix("Bearer ")).unwrap_or_default().to_string();
                        let (is_good, base) = {
                            let office = office.lock().unwrap();
                            (office.valid.contains(&token), office.base.clone())
                        };
                        if !is_good {
                            let metadata = format!("{base}/.well-known/oauth-protected-resource/mcp");
                            let challenge =
                                format!("Bearer error=\"invalid_token\", resource_metadata=\"{metadata}\"");
                            let reply = Response::builder().status(401).header("www-authenticate", challenge);
                            return Ok(reply.body(Full::<Bytes>::default().boxed()).unwrap());
                        }
                        let request = Request::from_parts(parts, Full::new(body));
                        Ok(service.handle(request).await)
                    }
                });
                let stream = hyper_util::rt::TokioIo::new(stream);
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(stream, answer));
            }
        });
        World { office, task, dir: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> std::path::PathBuf {
        self.dir.path().join("entail/mcp/s.json")
    }

    fn server(&self) -> McpServer {
        McpServer {
            url: Some(format!("{}/mcp", self.office.lock().unwrap().base)),
            oauth: Some(OauthSettings::default()),
            token_file: Some(self.file()),
            ..McpServer::default()
        }
    }

    /// Logs in; the browser goes where it is sent.
    async fn login(&self, server: McpServer) -> Result<(), String> {
        let tools = one(server);
        let mut show = |url: &str| {
            let url = url.to_string();
            tokio::spawn(async move {
                // A page that guesses is not the one that comes back.
                let back = reqwest::Url::parse(&url).unwrap();
                let back = back.query_pairs().find(|(n, _)| n == "redirect_uri").unwrap().1.into_owned();
                let wrong = reqwest::get(format!("{back}?code=x&state=guessed")).await.unwrap();
                assert_eq!(wrong.status(), 404);
                reqwest::get(url).await.unwrap();
            });
        };
        tools.login("s", &mut show).await.map(|file| assert_eq!(file, self.file()))
    }

    fn seen(&self, what: &str) -> usize {
        self.office.lock().unwrap().seen.iter().filter(|seen| *seen == what).count()
    }
}

/// The text of a tool that repeats what it is told.
async fn echo(tools: Tools, text: &str) -> Result<String, (ErrorCode, String)> {
    let text = text.to_string();
    let code = code(|b| {
        let echo = tool("echo", &[("text", Type::Str)], Type::Str);
        call(b, echo, vec![("text".into(), Data::str(text))])
    });
    let machine = Machine::new(code, None, Config::default());
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let mut events = Vec::new();
    let handlers = handlers(tools);
    let report =
        runtime::run(machine, &handlers, &limits, &cancel, &mut |e| events.push(format!("{e:?}"))).await;
    match report.result {
        Ok(value) => Ok(value.data().unwrap().as_str().unwrap().to_string()),
        Err(f) => {
            assert!(!format!("{f:?} {events:?}").contains("planted"), "{f:?} {events:?}");
            Err((f.code, f.message))
        }
    }
}

#[tokio::test]
async fn a_person_logs_in_once() {
    let world = World::start().await;
    let (code, e) = echo(one(world.server()), "hi").await.unwrap_err();
    assert!(code == ErrorCode::Configuration && e.contains("log in with `entail tools --login s`"), "{e}");
    world.login(world.server()).await.unwrap();
    assert_eq!(world.office.lock().unwrap().registered, 1);
    let mode = std::fs::metadata(world.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for _ in 0..2 {
        assert_eq!(echo(one(world.server()), "hi").await, Ok("hi".into()));
    }
    assert_eq!((world.seen("grant authorization_code"), world.seen("grant refresh_token")), (1, 0));
    // A server that repeats its tokens.
    let said =
        echo(one(world.server()), "at-planted-0zq7xw2rt9lm4kp8vb3nc1 and rt-planted-9xw2rt9lm4kp8vb3nc0zq1")
            .await
            .unwrap();
    assert_eq!(said, "[redacted] and [redacted]");
    // A client that was registered before.
    let oauth = OauthSettings { client_id: Some("mine".into()), ..OauthSettings::default() };
    world.login(McpServer { oauth: Some(oauth), ..world.server() }).await.unwrap();
    let registered = world.office.lock().unwrap().registered;
    assert_eq!((registered, world.seen("client mine")), (1, 1));
}

#[tokio::test]
async fn tokens_are_renewed_once_and_not_for_ever() {
    let world = World::start().await;
    world.office.lock().unwrap().expires_in = 0;
    world.login(world.server()).await.unwrap();
    world.office.lock().unwrap().expires_in = 3600;
    // An expired token.
    assert_eq!(echo(one(world.server()), "hi").await, Ok("hi".into()));
    assert_eq!(world.seen("grant refresh_token"), 1);
    // A revoked one, which only the server knows.
    world.office.lock().unwrap().valid.clear();
    assert_eq!(echo(one(world.server()), "hi").await, Ok("hi".into()));
    assert_eq!(world.seen("grant refresh_token"), 2);
    // Nothing to be renewed.
    {
        let mut office = world.office.lock().unwrap();
        office.valid.clear();
        office.refuses = true;
    }
    let (_, e) = echo(one(world.server()), "hi").await.unwrap_err();
    assert!(e.contains("log in again with `entail tools --login`"), "{e}");
    assert_eq!(world.seen("grant refresh_token"), 3);
}

#[tokio::test]
async fn tokens_go_to_the_address_that_they_are_for() {
    let world = World::start().await;
    world.login(world.server()).await.unwrap();
    let other = World::start().await;
    let server = McpServer { token_file: Some(world.file()), ..other.server() };
    let (_, e) = echo(one(server), "hi").await.unwrap_err();
    assert!(e.contains("it requires a login"), "{e}");
    assert_eq!(other.seen("grant refresh_token"), 0);
    // Nobody else may have read them.
    std::fs::set_permissions(world.file(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let (_, e) = echo(one(world.server()), "hi").await.unwrap_err();
    assert!(e.contains("others than its owner can read it"), "{e}");
    std::fs::set_permissions(world.file(), std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(world.file(), "at-planted").unwrap();
    let (_, e) = echo(one(world.server()), "hi").await.unwrap_err();
    assert!(e.contains("it is damaged"), "{e}");
}

#[tokio::test]
async fn logins_that_fail_say_why() {
    let world = World::start().await;
    world.office.lock().unwrap().refuses = true;
    let e = world.login(world.server()).await.unwrap_err();
    assert_eq!(e, "MCP server `s`: it was not authorized: `access_denied`");
    // Tokens would be for another server.
    let world = World::start().await;
    world.office.lock().unwrap().resource = Some("https://other.example.com/mcp".into());
    let e = world.login(world.server()).await.unwrap_err();
    assert!(e.starts_with("MCP server `s`: ") && !world.file().exists(), "{e}");
    // Discovery leads to another host.
    let world = World::start().await;
    let other = World::start().await;
    let elsewhere = format!("{}/.well-known/oauth-authorization-server", other.office.lock().unwrap().base);
    world.office.lock().unwrap().elsewhere = Some(elsewhere);
    let e = world.login(world.server()).await.unwrap_err();
    assert!(e.starts_with("MCP server `s`: "), "{e}");
    assert_eq!(other.office.lock().unwrap().seen, Vec::<String>::new());
    // A server that wants no login.
    let plain = McpServer { oauth: None, ..world.server() };
    let e = world.login(plain).await.unwrap_err();
    assert!(e.contains("has no `oauth` (help: add `oauth = {}`"), "{e}");
    // One that says nothing.
    let world = World::start().await;
    world.login(world.server()).await.unwrap();
    world.office.lock().unwrap().is_silent = true;
    let slow = McpServer { start_timeout: Some(0.5), ..world.server() };
    let (_, e) = echo(one(slow), "hi").await.unwrap_err();
    assert!(e.contains("it was not ready within 0.5 s"), "{e}");
}

#[test]
fn settings_of_a_login_are_checked() {
    let problem = |server: McpServer| {
        let server = McpServer { oauth: Some(OauthSettings::default()), ..server };
        one(server).check_server("s").unwrap_err().one_line()
    };
    let url = |url: &str| McpServer { url: Some(url.into()), ..McpServer::default() };
    assert!(problem(url("http://example.com/mcp")).contains("`oauth` needs an `https` address"));
    let keyed = McpServer { key_env: Some("PLANTED_KEY".into()), ..url("https://example.com/mcp") };
    assert!(problem(keyed).contains("it has both `oauth` and `key_env`"));
    let program = McpServer { command: Some(vec!["x".into()]), ..McpServer::default() };
    assert!(problem(program).contains("`oauth` belongs to `url`"));
}
