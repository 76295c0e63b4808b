//! HTTP helpers shared by the model client and HTTP tools.

use crate::ConfigError;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use std::error::Error as _;
use std::time::{Duration, SystemTime};

/// An `http` or `https` URL; `what` it is, for the message.
///
/// # Errors
/// It is not one, or contains a user or a password.
pub fn url(text: &str, what: &str) -> Result<Url, ConfigError> {
    // The text is not quoted: it may contain a password.
    let bad = |why: String| {
        ConfigError::new(format!("{what} {why}")).with_help("write it like `https://api.example.com/v1`")
    };
    let url = Url::parse(text.trim()).map_err(|e| bad(format!("is not a URL: {e}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(bad(format!("has the scheme `{}` instead of `https` or `http`", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("contains a user or a password, which would show in messages".into()));
    }
    Ok(url)
}

/// A URL without query and fragment, for messages.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// A client for one origin. It follows no redirect, so that keys and data go nowhere else.
///
/// # Errors
/// Connections can't be set up: there are no root certificates.
pub fn client(
    url: &Url,
    connect_timeout: Duration,
    read_timeout: Option<Duration>,
    headers: HeaderMap,
) -> Result<reqwest::Client, ConfigError> {
    // The first to install one wins; any provider will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("entail/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(connect_timeout);
    if let Some(limit) = read_timeout {
        builder = builder.read_timeout(limit);
    }
    if is_this_machine(url) {
        // A proxy's loopback is another machine's.
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // Saves loading the system's root certificates, which may not even be there.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|e| {
        ConfigError::new(format!("cannot set up connections to `{}`: {}", shown(url), cause(&e)))
            .with_help("for `https`, root certificates must be installed (the package `ca-certificates`)")
    })
}

pub(crate) fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// The variable that names a proxy for an address; `NO_PROXY` may except it all the same.
pub(crate) fn proxy_variable(url: &Url) -> Option<&'static str> {
    let of_the_scheme: [&str; 2] =
        if url.scheme() == "https" { ["HTTPS_PROXY", "https_proxy"] } else { ["HTTP_PROXY", "http_proxy"] };
    let mut all = of_the_scheme.into_iter().chain(["ALL_PROXY", "all_proxy"]);
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    if is_this_machine(url) { None } else { all.find(is_set) }
}

/// Describes a connection error, innermost cause last, without the URL, which may contain a password.
pub fn cause(e: &reqwest::Error) -> String {
    let mut causes: Vec<String> = Vec::new();
    let mut at = e.source();
    while let Some(e) = at {
        let text = e.to_string();
        // `client error (Connect)` says nothing that is not said already.
        if !text.starts_with("client error (") && causes.last().is_none_or(|last| !last.ends_with(&text)) {
            causes.push(text);
        }
        at = e.source();
    }
    let what = if e.is_connect() && e.is_timeout() {
        "no connection in time"
    } else if e.is_timeout() {
        "no answer in time"
    } else if e.is_connect() {
        "no connection"
    } else if e.is_body() || e.is_decode() {
        "the answer broke off"
    } else if e.is_builder() {
        "the request can't be made"
    } else {
        "the connection broke"
    };
    if causes.is_empty() { what.into() } else { format!("{what}: {}", causes.join(": ")) }
}

/// The media type, without parameters.
pub(crate) fn content_type(response: &reqwest::Response) -> Option<String> {
    let value = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    Some(diagnostics::clip_to(value.split(';').next().unwrap_or_default(), 60))
}

/// Returns the delay that the server requests, stated in seconds or as a date.
pub(crate) fn retry_after(response: &reqwest::Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim();
    match value.parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => {
            let when = httpdate::parse_http_date(value).ok()?;
            Some(when.duration_since(SystemTime::now()).unwrap_or(Duration::ZERO))
        }
    }
}

pub(crate) enum BodyError {
    TooLarge,
    Broken(reqwest::Error),
}

/// The body, if it has no more than `most` bytes; not more than that is read.
pub(crate) async fn body(mut response: reqwest::Response, most: usize) -> Result<Vec<u8>, BodyError> {
    if response.content_length().is_some_and(|n| n > most as u64) {
        return Err(BodyError::TooLarge);
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(BodyError::Broken)? {
        if bytes.len() + chunk.len() > most {
            return Err(BodyError::TooLarge);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
