//! Authentication: the browser that was given the link, from the page of this server.

use super::{Refusal, body_json};
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use runtime::hex;
use session::callers::hash_of;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sessions and the token that opens the first one.
pub(super) struct Door {
    address: SocketAddr,
    state: Mutex<Sessions>,
}

/// Hashes, so that comparing takes no time that tells of a token.
struct Sessions {
    /// The token of the link; `None` once it was exchanged.
    link: Option<[u8; 32]>,
    session: Option<[u8; 32]>,
}

/// A token that nobody can guess.
///
/// # Errors
/// The system provides no random numbers; in words for people.
pub(super) fn fresh() -> Result<String, String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| e.to_string())?;
    Ok(hex(&bytes))
}

impl Door {
    pub(super) fn new(address: SocketAddr, token: &str) -> Door {
        let sessions = Sessions { link: Some(hash_of(token)), session: None };
        Door { address, state: Mutex::new(sessions) }
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        // A panic while it was held leaves a session that is there or not.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Name of the cookie. Cookies don't belong to a port, so servers of several journals have their own.
    fn cookie(&self) -> String {
        format!("entail_ui_{}", self.address.port())
    }

    /// The value of the session's cookie in a request.
    fn presented(&self, headers: &HeaderMap) -> Option<String> {
        let name = self.cookie();
        let all = headers.get_all(header::COOKIE).iter().filter_map(|v| v.to_str().ok());
        let mut pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(n, _)| *n == name).map(|(_, value)| value.to_string())
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let presented = self.presented(headers).map(|value| hash_of(&value));
        presented.is_some() && presented == self.lock().session
    }

    /// Why a request is not of this server's own page, if it isn't.
    fn foreign(&self, method: &Method, headers: &HeaderMap) -> Option<&'static str> {
        let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok());
        let port = self.address.port();
        let hosts = [self.address.to_string(), format!("localhost:{port}")];
        let Some(host) = text("host").filter(|host| hosts.iter().any(|h| h == host)) else {
            return Some("the request names another host");
        };
        if headers.get_all(header::HOST).iter().count() != 1 {
            return Some("the request names several hosts");
        }
        let site = text("sec-fetch-site");
        if site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
            return Some("the request comes from another page");
        }
        match text("origin") {
            Some(origin) if origin != format!("http://{host}") => Some("the request comes from another page"),
            None if !matches!(*method, Method::GET | Method::HEAD) => Some("the request names no page"),
            _ => None,
        }
    }
}

/// Lets in requests that name this server and come from its own page.
pub(super) async fn own(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    match door.foreign(request.method(), request.headers()) {
        Some(why) => Refusal::Foreign(why).into_response(),
        None => next.run(request).await,
    }
}

/// Lets in the session.
pub(super) async fn admitted(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    match door.admits(request.headers()) {
        true => next.run(request).await,
        false => Refusal::NoSession.into_response(),
    }
}

/// Exchanges the token of the link for the cookie of a session, once.
pub(super) async fn open(
    State(door): State<Arc<Door>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let body = body_json(&headers, &body)?;
    let token = body["token"].as_str().unwrap_or_default();
    let session = fresh().map_err(|why| Refusal::Forbidden(why, None))?;
    let mut sessions = door.lock();
    if sessions.link.is_none() || sessions.link != Some(hash_of(token)) {
        return Err(Refusal::NoSession);
    }
    sessions.link = None;
    sessions.session = Some(hash_of(&session));
    let cookie = format!("{}={session}; Path=/; HttpOnly; SameSite=Strict", door.cookie());
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

/// Ends the session.
pub(super) async fn close(State(door): State<Arc<Door>>, headers: HeaderMap) -> Result<Response, Refusal> {
    if !door.admits(&headers) {
        return Err(Refusal::NoSession);
    }
    door.lock().session = None;
    let cookie = format!("{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0", door.cookie());
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(n, v)| (header::HeaderName::from_static(n), v.parse().unwrap())).collect()
    }

    #[test]
    fn requests_of_other_pages_and_hosts_are_foreign() {
        let door = Door::new("127.0.0.1:4100".parse().unwrap(), "t");
        let foreign = |method: Method, pairs: &[(&'static str, &str)]| door.foreign(&method, &headers(pairs));
        let own = ("host", "127.0.0.1:4100");
        assert_eq!(foreign(Method::GET, &[own]), None);
        assert_eq!(foreign(Method::GET, &[("host", "localhost:4100")]), None);
        assert_eq!(foreign(Method::POST, &[own, ("origin", "http://127.0.0.1:4100")]), None);
        for host in ["evil.example:4100", "127.0.0.1", "127.0.0.1:80", "evil.example", "localhost:4101"] {
            assert!(foreign(Method::GET, &[("host", host)]).is_some(), "{host}");
        }
        assert!(foreign(Method::GET, &[]).is_some());
        for origin in ["http://evil.example", "null", "http://localhost:4100", "https://127.0.0.1:4100"] {
            assert!(foreign(Method::POST, &[own, ("origin", origin)]).is_some(), "{origin}");
        }
        assert!(foreign(Method::POST, &[own]).is_some());
        for site in ["cross-site", "same-site"] {
            assert!(foreign(Method::GET, &[own, ("sec-fetch-site", site)]).is_some(), "{site}");
        }
    }

    #[test]
    fn a_session_is_known_by_its_cookie_alone() {
        let door = Door::new("127.0.0.1:4100".parse().unwrap(), "t");
        assert!(!door.admits(&headers(&[])));
        door.lock().session = Some(hash_of("s"));
        assert!(door.admits(&headers(&[("cookie", "a=b; entail_ui_4100=s")])));
        for cookie in ["entail_ui_4100=t", "entail_ui_4101=s", "entail_ui_4100=", "s"] {
            assert!(!door.admits(&headers(&[("cookie", cookie)])), "{cookie}");
        }
    }
}
