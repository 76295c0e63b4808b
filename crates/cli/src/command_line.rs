//! The `entail` command: a thin driver around the analyses, the machine and the runtime.
//!
//! Entry point: [`command_line`].
//!
//! Invariant: nothing but results goes to standard output.
//! Invariant: exit status 0, 1, 2, or 130 and its like after a signal, as [`ui::Exit`] has them.

#[cfg(feature = "mcp")]
use crate::args::PolicyAction;
use crate::args::{Cli, Command};
use crate::{commands, interrupt, ui};
use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use std::ffi::OsString;
use std::sync::OnceLock;

/// Command that starts this program: the executable, and the arguments before all others.
static SELF: OnceLock<Vec<OsString>> = OnceLock::new();

/// Runs the program `entail`: executes the command in `args`, whose first item is the program's name, and
/// returns the exit status: 0, 1, 2, or 128 plus the number of a signal.
///
/// It writes to standard output and standard error, and takes Ctrl-C and its like over for commands that run
/// programs; it is for the process whose whole purpose it is.
pub fn command_line(args: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(mut e) => {
            name_feature(&mut e);
            let lost = e.print().is_err_and(|e| e.kind() != std::io::ErrorKind::BrokenPipe);
            return u8::try_from(e.exit_code()).unwrap_or(2).max(lost.into());
        }
    };
    let ui = ui::Ui::new(cli.output);
    if runs_programs(&cli.command) {
        interrupt::listen();
    }
    carry_out(&ui, cli.command).status()
}

/// Returns true if Ctrl-C ends a run of this command instead of the process.
fn runs_programs(command: &Command) -> bool {
    match command {
        #[cfg(feature = "plans")]
        Command::Plan(_) => true,
        #[cfg(feature = "mcp")]
        Command::Guard(args) => args.action.is_none(),
        Command::Tools(args) => args.test.is_some() || args.discover.is_some() || args.approve.is_some(),
        #[cfg(feature = "mcp")]
        Command::Policy(args) => matches!(&args.action, PolicyAction::Check(check) if check.discover),
        Command::Lock(_) => true,
        Command::Run(_) | Command::Eval(_) | Command::Test(_) | Command::Trace(_) | Command::Repl(_) => true,
        _ => false,
    }
}

/// Runs the program like [`command_line`], where it is started by another command than its own file, such as
/// `python -m entail`.
#[doc(hidden)]
pub fn command_line_of(program: Vec<OsString>, args: impl IntoIterator<Item = OsString>) -> u8 {
    // Whoever calls it twice is the same program twice.
    let _ = SELF.set(program);
    command_line(args)
}

/// A command with its results as JSON, an object each, instead of on standard output; what would go to
/// standard error is left out. For commands that only look: `lint`, `check`, `cost`, `explain`, `compile`,
/// `tools`, `version`.
#[doc(hidden)]
pub fn command(args: &[&str]) -> (u8, Vec<serde_json::Value>) {
    let words = ["entail", "--format", "json", "--quiet"].into_iter().chain(args.iter().copied());
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(e) => {
            let text = e.render().to_string();
            let message = text.lines().next().unwrap_or("").trim_start_matches("error: ");
            return (2, vec![serde_json::json!({"error": {"code": "usage", "message": message}})]);
        }
    };
    let ui = ui::Ui::capturing(cli.output);
    let exit = carry_out(&ui, cli.command);
    let lines = ui.captured();
    (exit.status(), lines.iter().filter_map(|l| serde_json::from_str(l).ok()).collect())
}

/// Returns the command that starts this program again.
#[cfg(feature = "mcp")]
pub fn this_program() -> std::io::Result<(std::path::PathBuf, Vec<OsString>)> {
    if let Some([program, args @ ..]) = SELF.get().map(Vec::as_slice) {
        return Ok((program.into(), args.to_vec()));
    }
    Ok((std::env::current_exe()?, Vec::new()))
}

/// Commands with the feature that each needs, and whether this build has it.
const OPTIONAL_COMMANDS: [(&str, &str, bool); 10] = [
    ("audit", "frameworks", cfg!(feature = "frameworks")),
    ("convert", "frameworks", cfg!(feature = "frameworks")),
    ("engine", "engine", cfg!(feature = "engine")),
    ("guard", "mcp", cfg!(feature = "mcp")),
    ("lint", "frameworks", cfg!(feature = "frameworks")),
    ("lsp", "lsp", cfg!(feature = "lsp")),
    ("mcp", "mcp", cfg!(feature = "mcp")),
    ("plan", "plans", cfg!(feature = "plans")),
    ("serve", "serve", cfg!(feature = "serve")),
    ("worker", "engine", cfg!(feature = "engine")),
];

/// Tells which feature is missing if the command or the option exists in other builds only.
fn name_feature(error: &mut clap::Error) {
    let feature_missing = |feature: &str| {
        let help =
            format!("this program was built without `{feature}`; build it with `--features {feature}`");
        ContextValue::StyledStrs(vec![help.into()])
    };
    if let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg)
        && given == "--engine"
        && !cfg!(feature = "engine")
    {
        error.insert(ContextKind::Suggested, feature_missing("engine"));
        error.remove(ContextKind::SuggestedArg);
        return;
    }
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else { return };
    let absent = |(command, _, is_present): &&(&str, &str, bool)| command == given && !is_present;
    if let Some((_, feature, _)) = OPTIONAL_COMMANDS.iter().find(absent) {
        error.insert(ContextKind::Suggested, feature_missing(feature));
        error.remove(ContextKind::SuggestedSubcommand);
    }
}

fn carry_out(ui: &ui::Ui, command: Command) -> ui::Exit {
    match command {
        Command::Run(args) => commands::run::run(ui, &args),
        Command::Eval(args) => commands::run::eval(ui, &args),
        #[cfg(feature = "plans")]
        Command::Plan(args) => commands::plan::plan(ui, &args),
        Command::Repl(args) => commands::repl::repl(ui, &args),
        Command::Check(args) => commands::check::check(ui, &args),
        Command::Cost(args) => commands::cost::cost(ui, &args),
        Command::Prices(args) => commands::prices::prices(ui, &args),
        #[cfg(feature = "frameworks")]
        Command::Lint(args) => commands::lint::lint(ui, &args),
        #[cfg(feature = "frameworks")]
        Command::Audit(args) => commands::audit::audit(ui, &args),
        Command::Test(args) => commands::test::test(ui, &args),
        Command::Trace(args) => commands::trace::trace(ui, &args),
        Command::Fmt(args) => commands::fmt::fmt(ui, &args),
        Command::Compile(args) => commands::compile::compile(ui, &args),
        #[cfg(feature = "frameworks")]
        Command::Convert(args) => commands::convert::convert(ui, &args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => commands::serve::serve(ui, &args),
        #[cfg(feature = "engine")]
        Command::Worker(args) => commands::engine::worker(ui, &args),
        #[cfg(feature = "engine")]
        Command::Engine(args) => commands::engine::engine(ui, &args),
        #[cfg(feature = "serve")]
        Command::Ui(args) => commands::ui::ui(ui, &args),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => commands::mcp::mcp(ui, &args),
        #[cfg(feature = "mcp")]
        Command::Guard(args) => commands::guard::guard(ui, &args),
        Command::Tools(args) => commands::tools::tools(ui, &args),
        Command::Lock(args) => commands::lock::lock(ui, &args),
        Command::Policy(args) => commands::policy::policy(ui, &args),
        Command::Approve(args) => commands::approve::approve(ui, &args),
        Command::Runs(args) => commands::runs::runs(ui, &args),
        Command::Verify(args) => commands::verify::verify(ui, &args),
        Command::Lambda(args) => commands::lambda::lambda(ui, &args),
        Command::Model(args) => commands::model::model(ui, &args),
        Command::Explain(args) => commands::explain::explain(ui, &args),
        #[cfg(feature = "lsp")]
        Command::Lsp => commands::lsp::lsp(ui),
        Command::Version => commands::version(ui),
    }
}
