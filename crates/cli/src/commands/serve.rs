//! `entail serve`: pipelines over HTTP, and as an agent of the A2A protocol.

use super::server::{log, service};
use crate::args::{LogArg, ServeArgs};
use crate::interrupt::stopped;
use crate::setup;
use crate::ui::{Exit, Ui};
use ::serve::http::{HttpOptions, HttpServer};
use ::serve::ui::{UiOptions, UiServer};
use ::serve::{Error, Service, ServiceOptions};
use runtime::CancellationToken;
use serde_json::json;
use session::callers::{self, Callers};
use session::{RunOptions, Session};
use std::sync::Arc;
use std::time::Duration;

/// Runs the command.
pub fn serve(ui: &Ui, args: &ServeArgs) -> Exit {
    let session = match setup::session(ui, &args.world) {
        Ok(session) => session,
        Err(exit) => return exit,
    };
    if let Some(name) = &args.new_token {
        return new_token(ui, name);
    }
    let settings = &session.settings;
    let token = settings.environment.secret(&args.token_env);
    let callers = Callers::of(&settings.callers, &settings.serve, &settings.environment, token.as_ref());
    let callers = match callers {
        Ok(callers) => callers,
        Err(why) => return ui.usage(&why, None),
    };
    let timeouts = match settings.serve.timeouts() {
        Ok(timeouts) => timeouts,
        Err(why) => return ui.usage(&why, None),
    };
    for (name, why) in callers.guessable() {
        ui.note(&format!(
            "warning: the token of the caller `{name}` can be guessed: {why}; `entail serve --new-token {name}` makes another"
        ));
    }
    if callers.have_daily_limits() && args.journal.is_none() {
        ui.note("warning: without `--journal`, daily limits start over when the server restarts");
    }
    if !args.listen.ip().is_loopback() && !callers.has_credentials() {
        let help = format!(
            "set `{}` in the environment or in `.env`, add `[callers.NAME]` to `entail.toml`, or listen on 127.0.0.1",
            args.token_env
        );
        return ui.usage("other machines are listened to only with a token", Some(&help));
    }
    if args.world.watch || args.world.trace.is_some() {
        let help = "`--log json` logs the events of all runs, `--otlp` exports their traces";
        return ui
            .usage("a server has many runs, so it can neither show one nor write its trace", Some(help));
    }
    let journal = match args.journal.as_deref().map(|named| setup::journal(ui, named)).transpose() {
        Ok(journal) => journal,
        Err(exit) => return exit,
    };
    let page = match (args.ui, &journal, &args.journal) {
        (Some(port), Some(place), Some(named)) => match setup::settings(ui) {
            Ok(settings) => {
                let session = Session::new(settings, RunOptions::default());
                Some(super::ui::options(session, place.clone(), named.display().to_string(), port))
            }
            Err(exit) => return exit,
        },
        _ => None,
    };
    let service = service(ui, &args.world, &session, &args.files, |models, limits| ServiceOptions {
        models,
        limits,
        journal,
        max_runs: args.max_runs,
        callers,
        log: log(ui, args.world.log == Some(LogArg::Json)),
    });
    let service = match service {
        Ok(service) => Arc::new(service),
        Err(exit) => return exit,
    };
    if service.is_empty() {
        return ui.usage("no program to serve", Some("name programs that have pipelines"));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return ui.usage(&format!("cannot start the runtime: {e}"), None),
    };
    let exit = runtime.block_on(listen(ui, args, service, timeouts, page));
    runtime.shutdown_timeout(Duration::from_millis(200));
    exit
}

/// Prints a fresh token, once, and the lines of `entail.toml` that make it a caller's.
fn new_token(ui: &Ui, name: &str) -> Exit {
    let mut bytes = [0; 32];
    if let Err(e) = getrandom::fill(&mut bytes) {
        return ui.usage(&format!("the system provides no random numbers: {e}"), None);
    }
    let token = format!("entail-{}", runtime::hex(&bytes));
    let hash = runtime::hex(&callers::hash_of(&token));
    if ui.is_json() {
        ui.result(&json!({"caller": name, "token": token, "tokenSha256": hash}).to_string());
        return Exit::Done;
    }
    ui.result(&token);
    let key = diagnostics::toml_key(name);
    ui.note("The token is shown this once. Add to `entail.toml`, with the roles that it is for:");
    ui.note(&format!("\n[callers.{key}]\ntoken_sha256 = \"{hash}\"\nroles = [\"start\", \"watch\"]"));
    Exit::Done
}

async fn listen(
    ui: &Ui,
    args: &ServeArgs,
    service: Arc<Service>,
    (head_timeout, body_timeout): (Duration, Duration),
    page: Option<UiOptions>,
) -> Exit {
    let options = HttpOptions {
        listen: args.listen,
        public_url: args.public_url.clone(),
        max_body: args.max_body,
        max_connections: args.max_connections,
        head_timeout,
        body_timeout,
        resume: !args.no_resume,
        grace: Duration::from_secs_f64(args.grace.clamp(0.0, 86_400.0)),
    };
    let server = match HttpServer::bind(service, options).await {
        Ok(server) => server,
        Err(e) => return ui.usage(&e.to_string(), e.help()),
    };
    let page = match page {
        None => None,
        Some(options) => match UiServer::bind(options).await {
            Ok(page) => Some(page),
            Err(e @ Error::Listen { .. }) => {
                return ui
                    .usage(&e.to_string(), Some("choose another port with `--ui`, or 0 for a free one"));
            }
            Err(e) => return ui.usage(&e.to_string(), e.help()),
        },
    };
    let base = args.public_url.as_deref().unwrap_or(server.base());
    let link = page.as_ref().map(UiServer::link);
    if ui.is_json() {
        let mut said = json!({"listening": base});
        if let Some(link) = link {
            said["ui"] = link.into();
        }
        ui.result(&said.to_string());
    } else {
        ui.note(&format!("listening on {base}  (described by {base}/openapi.json)"));
        if let Some(link) = link {
            ui.note(super::ui::LINK);
            ui.result(&link);
        }
    }
    let stop = CancellationToken::new();
    tokio::spawn(stopped(stop.clone()));
    if let Some(page) = page {
        tokio::spawn(page.run(stop.clone()));
    }
    server.run(stop).await;
    Exit::Done
}
