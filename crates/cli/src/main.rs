//! The `entail` command: a thin driver around the analyses, the machine and the runtime.
//!
//! Invariant: nothing but results goes to standard output.
//! Invariant: exit status 0, 1, 2 or 130, as [`ui::Exit`] has them.

mod approve;
mod args;
mod commands;
mod interrupt;
mod load;
mod packages;
mod picture;
mod policy;
mod progress;
mod settings;
mod ui;
mod watch;

use args::{Cli, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ui = ui::Ui::new(cli.output);
    if let Some(exit) = refuse_format(&ui, &cli.command) {
        return exit.into();
    }
    if matches!(
        cli.command,
        Command::Run(_) | Command::Eval(_) | Command::Test(_) | Command::Trace(_) | Command::Repl(_)
    ) {
        interrupt::listen();
    }
    let exit = match cli.command {
        Command::Run(args) => commands::run::run(&ui, &args),
        Command::Eval(args) => commands::run::eval(&ui, &args),
        Command::Repl(args) => commands::repl::repl(&ui, &args),
        Command::Check(args) => commands::check::check(&ui, &args),
        Command::Cost(args) => commands::cost::cost(&ui, &args),
        Command::Lint(args) => commands::lint::lint(&ui, &args),
        Command::Test(args) => commands::test::test(&ui, &args),
        Command::Trace(args) => commands::trace::trace(&ui, &args),
        Command::Fmt(args) => commands::fmt::fmt(&ui, &args),
        Command::Compile(args) => commands::compile::compile(&ui, &args),
        Command::Convert(args) => commands::convert::convert(&ui, &args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => commands::serve::serve(&ui, &args),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => commands::mcp::mcp(&ui, &args),
        Command::Tools(args) => commands::tools::tools(&ui, &args),
        Command::Approve(args) => commands::approve::approve(&ui, &args),
        Command::Runs(args) => commands::runs::runs(&ui, &args),
        Command::Lambda(args) => commands::lambda::lambda(&ui, &args),
        Command::Model(args) => commands::model::model(&ui, &args),
        Command::Explain(args) => commands::explain::explain(&ui, &args),
        Command::Lsp => commands::lsp::lsp(&ui),
        Command::Version => commands::version(&ui),
    };
    exit.into()
}

/// Formats other than text and JSON are for findings.
fn refuse_format(ui: &ui::Ui, command: &Command) -> Option<ui::Exit> {
    let name = match ui.args.format {
        args::Format::Text | args::Format::Json => return None,
        args::Format::Mermaid | args::Format::Dot | args::Format::Svg
            if matches!(command, Command::Compile(_)) =>
        {
            return None;
        }
        args::Format::Mermaid => "mermaid",
        args::Format::Dot => "dot",
        args::Format::Svg => "svg",
        args::Format::Sarif => "sarif",
        args::Format::Github => "github",
        args::Format::Markdown => "markdown",
        args::Format::Junit => "junit",
    };
    let fits = match command {
        Command::Lint(_) => {
            matches!(ui.args.format, args::Format::Sarif | args::Format::Github | args::Format::Markdown)
        }
        Command::Test(_) => ui.args.format == args::Format::Junit,
        _ => false,
    };
    if fits {
        return None;
    }
    Some(ui.usage(&format!("this command has no format `{name}`"), Some("use `text` or `json`")))
}
