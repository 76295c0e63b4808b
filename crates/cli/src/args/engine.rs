//! Arguments of the commands around an engine.

use super::{UnfinishedArg, WorldArgs};
use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Options that name an engine.
#[derive(Debug, Clone, Default, Args)]
pub struct EngineOptions {
    /// The engine that keeps the runs, by the address of its admin API, such as `http://127.0.0.1:9070`.
    #[arg(long, value_name = "URL")]
    pub engine: Option<String>,
    /// The address at which the engine takes requests, if it is not at the host of `--engine`.
    #[arg(long, value_name = "URL", requires = "engine")]
    pub ingress: Option<String>,
}

/// Options of a run on an engine.
#[derive(Debug, Clone, Default, Args)]
pub struct EngineRunOptions {
    /// The engine.
    #[command(flatten)]
    pub engine: EngineOptions,
    /// Name of the run on the engine. If there is a run of this name, its result is waited for.
    #[arg(long = "run", value_name = "NAME", requires = "engine")]
    pub run_name: Option<String>,
    /// Begin the run on the engine, and do not wait for it.
    #[arg(long, requires = "engine")]
    pub detach: bool,
}

/// `entail worker`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail engine start
  entail worker article.agent --engine http://127.0.0.1:9070
  entail run article.agent --engine http://127.0.0.1:9070 bees")]
pub struct WorkerArgs {
    /// Programs and configurations; each entry point of them is a workflow of the engine.
    #[arg(required = true)]
    pub files: Vec<String>,
    /// The engine, by the address of its admin API. Without it, nothing is registered.
    #[arg(long, value_name = "URL")]
    pub engine: Option<String>,
    /// The address of this machine to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080")]
    pub listen: SocketAddr,
    /// The address at which the engine reaches the worker, if it is another one.
    #[arg(long, value_name = "URL")]
    pub advertise: Option<String>,
    /// A public key of the engine, as Restate logs it (`publickeyv1_…`). Requests that it has not signed are
    /// refused, and other addresses than those of this machine can be listened on.
    #[arg(long, value_name = "KEY")]
    pub identity_key: Vec<String>,
    /// Treatment of a tool call that was interrupted and may have changed the world.
    #[arg(long, value_enum, default_value_t = UnfinishedArg::Ask)]
    pub unfinished: UnfinishedArg,
    /// Options of the runs.
    #[command(flatten)]
    pub world: WorldArgs,
}

/// `entail engine`.
#[derive(Debug, Args)]
pub struct EngineArgs {
    /// Command to run.
    #[command(subcommand)]
    pub action: EngineAction,
    /// Directory of the server's data and log.
    #[arg(long, global = true, value_name = "DIR", default_value = ".entail/engine")]
    pub dir: PathBuf,
}

/// Subcommands of `entail engine`.
#[derive(Debug, Subcommand)]
pub enum EngineAction {
    /// Start a server on this machine, for development. It must be installed.
    Start {
        /// Port of its admin API; 0 is any free one.
        #[arg(long, value_name = "PORT", default_value_t = 9070)]
        port: u16,
    },
    /// Stop it.
    Stop,
    /// Show whether it runs, and where.
    Status,
}
