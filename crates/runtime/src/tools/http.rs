//! Tools that are HTTP requests.

use super::ToolError;
use super::{Template, ToolLimits, as_json, as_text, result};
use crate::environment::is_secret_name;
use crate::web;
use crate::{ConfigError, ConfigErrorKind, Environment, Secret};
use core_ir::{Data, Name, Type};
use diagnostics::clip_to as clip;
use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::sync::OnceLock;
use std::time::Duration;

/// One client for each scheme, made when first needed: they keep connections.
#[derive(Debug, Default)]
pub(super) struct Clients {
    plain: OnceLock<reqwest::Client>,
    secure: OnceLock<reqwest::Client>,
}

impl Clients {
    pub(super) fn of(&self, url: &reqwest::Url) -> Result<&reqwest::Client, String> {
        let cell = if url.scheme() == "http" { &self.plain } else { &self.secure };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let made =
            web::client(url, Duration::from_secs(10), None, HeaderMap::new()).map_err(|e| e.one_line())?;
        Ok(cell.get_or_init(|| made))
    }
}

#[derive(Debug)]
pub(super) struct HttpTool {
    method: Method,
    url: Template,
    headers: Vec<(HeaderName, Template)>,
    /// The key, and the header that it is sent in.
    key: Option<(HeaderName, Secret)>,
    /// Indices of the parameters that are in no hole.
    rest: Vec<usize>,
    timeout: Option<Duration>,
}

impl HttpTool {
    /// `keys` has the variables that may hold its key, if it may have one.
    pub(super) fn read(
        about: &Data,
        params: &[&str],
        timeout: Option<Duration>,
        keys: Option<&Environment>,
    ) -> Result<HttpTool, ConfigError> {
        let Data::Record(fields) = about else {
            return Err(format!("`http` is {}, not a record", about.kind()).into());
        };
        if let Some((name, _)) = fields
            .iter()
            .find(|(n, _)| !matches!(&**n, "method" | "url" | "headers" | "key_env" | "key_header"))
        {
            return Err(format!("`http` has the unknown field `{}`", clip(name, 40)).into());
        }
        let text = |name: &str| about.field(name).and_then(Data::as_str);
        let method = match text("method").unwrap_or("GET").to_ascii_uppercase().as_str() {
            "GET" => Method::GET,
            "POST" => Method::POST,
            "PUT" => Method::PUT,
            "PATCH" => Method::PATCH,
            "DELETE" => Method::DELETE,
            other => {
                let other = clip(other, 20);
                return Err(
                    format!("the method `{other}` is not one of GET, POST, PUT, PATCH and DELETE").into()
                );
            }
        };
        let Some(source) = text("url") else { return Err("`http` has no `url`".into()) };
        let url = Template::read(source, params)?;
        // The host must be complete before the first hole, or data could choose where the others go.
        let before = url.before_holes();
        let after_scheme = before.split_once("://").map_or("", |(_, rest)| rest);
        if url.has_holes() && !after_scheme.contains(['/', '?']) {
            return Err("the host of its URL depends on an argument".into());
        }
        web::url(before, "its URL").map_err(|e| e.one_line())?;
        let mut headers = Vec::new();
        match about.field("headers") {
            None => {}
            Some(Data::Record(fields)) => {
                for (name, value) in fields.iter() {
                    let parsed = HeaderName::try_from(&**name)
                        .map_err(|_| format!("`{}` is not a header", clip(name, 40)))?;
                    let value =
                        value.as_str().ok_or_else(|| format!("the header `{name}` is not a string"))?;
                    headers.push((parsed, Template::read(value, params)?));
                }
            }
            Some(other) => return Err(format!("`headers` is {}, not a record", other.kind()).into()),
        }
        let key = key(about, keys)?;
        let used = |i: usize| url.uses(i) || headers.iter().any(|(_, t)| t.uses(i));
        let rest = (0..params.len()).filter(|i| !used(*i)).collect();
        Ok(HttpTool { method, url, headers, key, rest, timeout })
    }

    pub(super) async fn call(
        &self,
        args: &[(Name, Data)],
        ty: &Type,
        limits: &ToolLimits,
        clients: &Clients,
        key: Option<String>,
    ) -> Result<Data, ToolError> {
        let text = self.url.fill(args, |part| {
            if matches!(&*part, "." | "..") {
                return Err("an argument of a URL can't be `.` or `..`".into());
            }
            Ok(runs::percent_encoded(&part))
        })?;
        let mut url = web::url(&text, "its URL").map_err(|e| e.one_line())?;
        let in_query = matches!(self.method, Method::GET | Method::DELETE);
        if in_query && !self.rest.is_empty() {
            let mut query = url.query_pairs_mut();
            for (name, value) in self.rest.iter().filter_map(|i| args.get(*i)) {
                if *value != Data::Null {
                    query.append_pair(name, &as_text(value));
                }
            }
        }
        let place = format!("`{} {}`", self.method, web::shown(&url));
        let mut request =
            clients.of(&url)?.request(self.method.clone(), url).header(ACCEPT, "application/json");
        for (name, template) in &self.headers {
            let value = template.fill(args, Ok)?;
            let value = HeaderValue::from_str(&value)
                .map_err(|_| format!("the header `{name}` would have characters that no header can have"))?;
            request = request.header(name, value);
        }
        if let Some((name, secret)) = &self.key {
            let said = match *name {
                AUTHORIZATION => format!("Bearer {}", secret.expose()),
                _ => secret.expose().to_string(),
            };
            let mut value = HeaderValue::from_str(&said)
                .map_err(|_| "its key has characters that no header can have".to_string())?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        if !in_query {
            request = request.header(CONTENT_TYPE, "application/json").body(as_json(args).to_string());
        }
        let limit = self.timeout.unwrap_or(limits.timeout);
        let exchange = async {
            let response = request.send().await.map_err(|e| format!("{place}: {}", web::cause(&e)))?;
            let status = response.status();
            let bytes = web::body(response, limits.max_output).await.map_err(|e| match e {
                web::BodyError::TooLarge => {
                    format!("{place}: the answer is larger than {} bytes", limits.max_output)
                }
                web::BodyError::Broken(e) => format!("{place}: {}", web::cause(&e)),
            })?;
            Ok::<_, String>((status, bytes))
        };
        let done = tokio::time::timeout(limit, exchange).await;
        let late = || ToolError::Late(format!("{place}: no answer within {} s", limit.as_secs_f64()));
        let (status, bytes) = done.map_err(|_| late())??;
        if !status.is_success() {
            let said = String::from_utf8_lossy(&bytes);
            return Err(format!("{place}: HTTP {}: `{}`", status.as_u16(), clip(&said, 300)).into());
        }
        result(&bytes, ty).map_err(|why| format!("{place}: {why}").into())
    }
}

/// The key that `key_env` names, and the header that `key_header` names.
fn key(about: &Data, keys: Option<&Environment>) -> Result<Option<(HeaderName, Secret)>, ConfigError> {
    let text = |field: &str| match about.field(field) {
        None => Ok(None),
        Some(Data::Str(text)) => Ok(Some(&**text)),
        Some(other) => Err(format!("`{field}` is {}, not a string", other.kind())),
    };
    let (variable, header) = match (text("key_env")?, text("key_header")?) {
        (Some(variable), header) => (variable, header.unwrap_or("authorization")),
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err("`key_header` has no `key_env`".into()),
    };
    let Some(environment) = keys else {
        return Err(
            "`key_env` is for `[handlers]` of `entail.toml`: a program does not choose where keys go".into(),
        );
    };
    let shown = clip(variable, 40);
    if !is_secret_name(variable) {
        // So that it is removed from all that is shown, and no process gets it.
        let error = ConfigError::new(format!("the variable `{shown}` has no name of a secret"));
        return Err(error.with_help("let it end in `_KEY`, `_TOKEN`, `_SECRET` or `_PASSWORD`"));
    }
    let name = HeaderName::try_from(header).map_err(|_| format!("`{}` is not a header", clip(header, 40)))?;
    match environment.secret(variable) {
        Some(secret) => Ok(Some((name, secret))),
        None => Err(ConfigError::new(format!("`{shown}` is not set"))
            .with_help("set it in the environment or in `.env`")
            .of_kind(ConfigErrorKind::NotSet(variable.to_string()))),
    }
}
