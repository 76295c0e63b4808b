//! Tools, resources and prompts of servers that speak the Model Context Protocol (MCP).
//!
//! Entry point: [`Connections::call`]. A server is started, or connected to, when its first tool is called,
//! once for each run, and ended with the run; or once for several runs that share it
//! ([`Connections::sharing`]), unless its settings say `per_run`.
//!
//! Invariant: what a server sends is data: it is bounded in size, read as the declared type, and never
//! followed as an instruction. Servers may ask a person questions where one is there, and are told of the
//! folders that their settings name. They are offered nothing else (no sampling).
//! Invariant: a server's process gets no variable that holds a secret, except those that its settings name.

#![cfg_attr(not(feature = "mcp"), allow(dead_code))]

#[cfg(feature = "mcp")]
mod client;
#[cfg(feature = "mcp")]
mod host;
#[cfg(feature = "mcp")]
mod oauth;
mod pins;
#[cfg(feature = "mcp")]
mod result;
#[cfg(feature = "mcp")]
mod signature;

pub use pins::{
    ApprovedTool, ModelPin, ModulePin, PinState, Pins, ServerOffer, ServerTool, ToolHashes, file_hash,
    toml_problem,
};

use crate::tools::ToolLimits;
use core_ir::{Data, Name, Stated, ToolDecl};
use serde::Deserialize;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One `[mcp.NAME]` of `entail.toml`: a process that speaks MCP on its standard input and output, or an
/// address that speaks it over streamable HTTP.
///
/// ```toml
/// [mcp.files]
/// command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "."]
/// env = ["FILES_TOKEN"]                 # variables that hold secrets and that it gets all the same
///
/// [mcp.search]
/// url = "https://mcp.example.com/mcp"
/// key_env = "SEARCH_KEY"                # sent as `Authorization: Bearer …`
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpServer {
    /// The program and its arguments. No shell is involved.
    pub command: Option<Vec<String>>,
    /// Names of variables that it gets although they hold secrets.
    pub env: Vec<String>,
    /// The address.
    pub url: Option<String>,
    /// The variable that holds the key for the address, never the key.
    pub key_env: Option<String>,
    /// Authorization by OAuth, by a person who logs in once.
    pub oauth: Option<OauthSettings>,
    /// File of the tokens, for `oauth`.
    #[serde(skip)]
    pub token_file: Option<PathBuf>,
    /// Folders that it is told of. This gives it no access that it does not have.
    pub roots: Vec<PathBuf>,
    /// Seconds until it must be ready; 60 without it, enough for package runners that download first.
    pub start_timeout: Option<f64>,
    /// True if each run has a process or a session of its own, even where runs share servers: for servers
    /// that keep state.
    pub per_run: bool,
    /// The only revision to speak: `2026-07-28`, or `2025-11-25` (which lets the server choose an older one).
    /// Without it, the newest is tried first.
    pub protocol: Option<String>,
}

/// `oauth` of `[mcp.NAME]`. All of it may be absent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OauthSettings {
    /// The client that was registered for Entail. Without it, the authorization server is asked for one.
    pub client_id: Option<String>,
    /// The scopes to ask for. Without them, those that the server names.
    pub scopes: Vec<String>,
    /// Port of this machine to which the browser comes back; any without it.
    pub port: Option<u16>,
}

/// The label that a server says a result has: `ifc`, with `integrity` (`trusted`, another word, or a list of
/// those whom the result is from) and `confidentiality` (who may read it; `public` is everyone).
///
/// It can only raise the declared label, so a server gains nothing by lying; what is not understood counts as
/// the highest.
pub fn stated_label(ifc: &Json) -> Stated {
    if !ifc.is_object() {
        return Stated { sources: None, readers: Some(Vec::new()) };
    }
    let sources = match ifc.get("integrity") {
        None => Some(Vec::new()),
        Some(Json::String(word)) if word == "trusted" => Some(Vec::new()),
        Some(Json::Array(of)) => of.iter().map(|name| name.as_str().map(Name::from)).collect(),
        Some(_) => None,
    };
    let public = |reader: &Json| reader.as_str() == Some("public");
    let readers = match ifc.get("confidentiality") {
        None => None,
        Some(word) if public(word) => None,
        Some(Json::Array(readers)) if readers.iter().any(public) => None,
        // Who is named by something else than a name reads nothing.
        Some(Json::Array(readers)) => {
            Some(readers.iter().filter_map(|r| r.as_str().map(Name::from)).collect())
        }
        Some(_) => Some(Vec::new()),
    };
    Stated { sources, readers }
}

/// The revision that needs no handshake.
const NEWEST: &str = "2026-07-28";
/// The last revision with a handshake.
const BEFORE: &str = "2025-11-25";

impl McpServer {
    /// With relative folders taken to be in this one.
    #[must_use]
    pub fn within(mut self, dir: &Path) -> McpServer {
        self.roots.iter_mut().for_each(|root| *root = dir.join(&root));
        self
    }

    /// Describes the mistake in the entry, if there is one.
    pub(crate) fn problem(&self) -> Option<String> {
        let is_url = match (&self.command, &self.url) {
            (Some(words), None) if words.is_empty() => return Some("`command` names no program".into()),
            (Some(_), None) => false,
            (None, Some(url)) => match crate::web::url(url, "`url`") {
                Ok(_) => true,
                Err(e) => return Some(e.one_line()),
            },
            _ => return Some("it needs either `command` or `url`".into()),
        };
        if is_url && !self.env.is_empty() {
            return Some("`env` belongs to `command`".into());
        }
        if !is_url && self.key_env.is_some() {
            return Some(
                "`key_env` belongs to `url`; name the variables that a process gets in `env`".into(),
            );
        }
        if self.oauth.is_some() {
            if !is_url {
                return Some("`oauth` belongs to `url`".into());
            }
            if self.key_env.is_some() {
                return Some("it has both `oauth` and `key_env`".into());
            }
            let url = self.url.as_deref().and_then(|url| crate::web::url(url, "`url`").ok());
            if !url.is_some_and(|url| url.scheme() == "https" || crate::web::is_this_machine(&url)) {
                return Some("`oauth` needs an `https` address".into());
            }
        }
        if let Some(s) = self.start_timeout
            && !Duration::try_from_secs_f64(s).is_ok_and(|d| !d.is_zero())
        {
            return Some("`start_timeout` is not a positive number of seconds".into());
        }
        match self.protocol.as_deref() {
            None | Some(NEWEST | BEFORE) => None,
            Some(other) => Some(format!(
                "`protocol` is `{}`, neither `{NEWEST}` nor `{BEFORE}`",
                diagnostics::clip_to(other, 40)
            )),
        }
    }
}

/// Part of a server that a tool of a program uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerPart {
    /// Calls the tool of this name.
    Tool(String),
    /// Reads the resource of this URI.
    Resource(String),
    /// Gets the prompt of this name.
    Prompt(String),
}

impl ServerPart {
    /// Kind and name in messages.
    pub(crate) fn shown(&self) -> String {
        let (kind, name) = match self {
            ServerPart::Tool(name) => ("tool", name),
            ServerPart::Resource(uri) => ("resource", uri),
            ServerPart::Prompt(name) => ("prompt", name),
        };
        format!("{kind} `{}`", diagnostics::clip_to(name, 200))
    }
}

/// A call of a tool.
pub(crate) struct McpCall<'a> {
    pub(crate) server: &'a str,
    pub(crate) part: &'a ServerPart,
    pub(crate) decl: &'a ToolDecl,
    pub(crate) args: &'a [(Name, Data)],
    pub(crate) limit: Duration,
    pub(crate) limits: &'a ToolLimits,
    /// Names of variables that processes do not get.
    pub(crate) hidden: &'a [String],
    /// The idempotency key.
    pub(crate) key: Option<String>,
    /// Person who answers questions of the server.
    pub(crate) person: Option<std::sync::Arc<crate::elicit::Respondent>>,
}

#[cfg(feature = "mcp")]
pub(crate) use client::Connections;

/// Stands in for the client in builds without it.
#[cfg(not(feature = "mcp"))]
#[derive(Debug, Default)]
pub(crate) struct Connections;

#[cfg(not(feature = "mcp"))]
impl Connections {
    pub(crate) fn new(
        _: std::collections::BTreeMap<String, McpServer>,
        _: &crate::Environment,
    ) -> Connections {
        Connections
    }

    pub(crate) fn is_empty(&self) -> bool {
        true
    }

    pub(crate) fn afresh(&self) -> Connections {
        Connections
    }

    pub(crate) fn sharing(&self) -> Connections {
        Connections
    }

    pub(crate) async fn close_shared(&self) {}

    pub(crate) fn keys(&self) -> impl Iterator<Item = &crate::Secret> {
        std::iter::empty()
    }

    pub(crate) fn with_pins(&self, _: Pins) -> Connections {
        Connections
    }

    pub(crate) async fn login(
        &self,
        server: &str,
        _: &mut (dyn FnMut(&str) + Send),
    ) -> Result<PathBuf, String> {
        self.check(server).map(|()| PathBuf::new()).map_err(|e| e.one_line())
    }

    pub(crate) async fn list(
        &self,
        server: &str,
        _: &ToolLimits,
        _: &[String],
    ) -> Result<ServerOffer, String> {
        self.check(server).map(|()| ServerOffer::default()).map_err(|e| e.one_line())
    }

    pub(crate) fn check(&self, _: &str) -> Result<(), crate::ConfigError> {
        let error = crate::ConfigError::new("this build has no MCP client");
        Err(error.with_help("build with the feature `mcp`"))
    }

    pub(crate) fn program(&self, _: &str) -> Option<&str> {
        None
    }

    pub(crate) async fn call(&self, call: McpCall<'_>) -> crate::tools::ToolAnswer {
        self.check(call.server).map(|()| Data::Null).map_err(crate::tools::ToolError::from).into()
    }

    pub(crate) async fn close(&self, _: bool) {}
}
