//! `entail engine` and `entail worker`: runs that an engine keeps.

mod runs;

pub(super) use runs::{approve, list, run, trace};

use super::run::{before_run, models};
use super::{say_problem, worth_saying};
use crate::args::{EngineAction, EngineArgs, UnfinishedArg, WorkerArgs};
use crate::interrupt::stopped;
use crate::setup;
use crate::ui::{Exit, Ui};
use ::engine::{EngineClient, Error, IdentityKeys, LocalServer, ServerState, Worker, WorkerOptions};
use diagnostics::Sources;
use runtime::{CancellationToken, Unfinished};
use serde_json::json;
use session::limits::approval_lifetime;
use session::load::Kind;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Says why the engine can't be used.
fn refuse(ui: &Ui, e: &Error) -> Exit {
    ui.usage(&e.message, e.help.as_deref())
}

/// Runs `entail engine`.
pub fn engine(ui: &Ui, args: &EngineArgs) -> Exit {
    let server = LocalServer::new(&args.dir);
    let shown = |state: &ServerState| match ui.is_json() {
        true => {
            ui.result(&json!({"engine": state.admin, "ingress": state.ingress, "pid": state.pid}).to_string())
        }
        false => ui.result(&state.admin),
    };
    match args.action {
        EngineAction::Start { port } => match server.start((port != 0).then_some(port)) {
            Ok(state) => {
                shown(&state);
                ui.note(&format!(
                    "the engine is Restate's server (license BSL 1.1), at work with its data in `{}`; `entail worker PROGRAM --engine {}` is next",
                    args.dir.display(),
                    state.admin
                ));
                Exit::Done
            }
            Err(e) => refuse(ui, &e),
        },
        EngineAction::Stop => match server.stop() {
            Ok(true) => {
                ui.note("the engine is stopped; its data stay");
                Exit::Done
            }
            Ok(false) => ui.usage("no engine of this directory runs", None),
            Err(e) => refuse(ui, &e),
        },
        EngineAction::Status => match server.status() {
            Some(state) => {
                shown(&state);
                Exit::Done
            }
            None => {
                ui.note("no engine of this directory runs; `entail engine start` starts one");
                Exit::Failed
            }
        },
    }
}

/// Runs `entail worker`.
pub fn worker(ui: &Ui, args: &WorkerArgs) -> Exit {
    let identity = match IdentityKeys::parse(&args.identity_key) {
        Ok(identity) => identity,
        Err(e) => return refuse(ui, &e),
    };
    if !args.listen.ip().is_loopback() && !identity.is_any() {
        let help = "name the engine's key with `--identity-key`, or listen on 127.0.0.1";
        return ui.usage(
            "other machines are listened to only with a key of the engine, because whoever calls a worker decides what it does",
            Some(help),
        );
    }
    if args.world.watch || args.world.trace.is_some() || args.world.log.is_some() {
        let help = "`--otlp` exports their traces, and `entail runs --engine` shows them";
        return ui.usage("a worker has many runs, so it can neither show nor write one", Some(help));
    }
    let worker = match prepared(ui, args, identity) {
        Ok(worker) => Arc::new(worker),
        Err(exit) => return exit,
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return ui.usage(&format!("cannot start the runtime: {e}"), None),
    };
    let exit = runtime.block_on(listen(ui, args, worker));
    runtime.shutdown_timeout(Duration::from_millis(200));
    exit
}

fn prepared(ui: &Ui, args: &WorkerArgs, identity: IdentityKeys) -> Result<Worker, Exit> {
    let session = setup::session(ui, &args.world)?;
    let mut sources = Sources::new();
    let mut all = Vec::new();
    for file in &args.files {
        let mut loaded =
            session.load(&mut sources, file).map_err(|problem| say_problem(ui, &sources, problem))?;
        ui.problems(&sources, &worth_saying(ui, std::mem::take(&mut loaded.found)));
        for runnable in &loaded.runnables {
            before_run(ui, &sources, &session, Kind::of(file), runnable, loaded.policy.as_ref())?;
        }
        all.push((file, loaded));
    }
    let limits = args.world.limits(&session.settings).map_err(|e| setup::refuse(ui, e))?;
    let codes: Vec<_> = all.iter().flat_map(|(_, l)| &l.runnables).map(|r| &*r.code).collect();
    let models = models(ui, &args.world, &session, &codes)?;
    let log = Ui::new(ui.args.clone());
    let options = WorkerOptions {
        models,
        limits,
        approvers: session.settings.approvers.clone(),
        lifetime: approval_lifetime(session.settings.limits.approval),
        unfinished: match args.unfinished {
            UnfinishedArg::Ask => Unfinished::Ask,
            UnfinishedArg::Retry => Unfinished::Retry,
            UnfinishedArg::Fail => Unfinished::Fail,
        },
        identity,
        log: Box::new(move |line| log.note(line)),
    };
    let mut worker = Worker::new(session, sources, options);
    for (file, loaded) in all {
        worker.add(file, loaded).map_err(|e| refuse(ui, &e))?;
    }
    if worker.names().next().is_none() {
        return Err(ui.usage("no program to run", Some("name programs that have pipelines")));
    }
    Ok(worker)
}

async fn listen(ui: &Ui, args: &WorkerArgs, worker: Arc<Worker>) -> Exit {
    let listener = match TcpListener::bind(args.listen).await {
        Ok(listener) => listener,
        Err(e) => {
            let message = format!("cannot listen on `{}`: {e}", args.listen);
            return ui.usage(&message, Some("choose another address with `--listen`"));
        }
    };
    let address = listener.local_addr().unwrap_or(args.listen);
    let stop = CancellationToken::new();
    tokio::spawn(stopped(stop.clone()));
    let names: Vec<String> = worker.names().map(String::from).collect();
    // The engine looks at the worker while it registers it.
    let served = tokio::spawn(worker.serve(listener, stop));
    let uri = args.advertise.clone().unwrap_or_else(|| format!("http://{address}"));
    if let Some(engine) = &args.engine {
        let registered = match EngineClient::connect(engine, None).await {
            Ok(client) => client.register(&uri).await,
            Err(e) => Err(e),
        };
        if let Err(e) = registered {
            return refuse(ui, &e);
        }
    }
    if ui.is_json() {
        ui.result(&json!({"listening": uri, "workflows": names}).to_string());
    } else {
        ui.note(&format!("listening on {uri} for {}", names.join(", ")));
    }
    let _ = served.await;
    Exit::Done
}
