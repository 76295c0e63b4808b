//! The `entail` command: a thin driver around the analyses, the machine and the runtime.
//!
//! Invariant: nothing but results goes to standard output.
//! Invariant: exit status 0, 1, 2 or 130, as [`ui::Exit`] has them.

mod args;
mod commands;
mod load;
mod settings;
mod ui;

use args::{Cli, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ui = ui::Ui::new(cli.output);
    let exit = match cli.command {
        Command::Run(args) => commands::run::run(&ui, &args),
        Command::Eval(args) => commands::run::eval(&ui, &args),
        Command::Check(args) => commands::check::check(&ui, &args),
        Command::Lint(args) => commands::lint::lint(&ui, &args),
        Command::Fmt(args) => commands::fmt::fmt(&ui, &args),
        Command::Compile(args) => commands::compile::compile(&ui, &args),
        Command::Model(args) => commands::model::model(&ui, &args),
        Command::Explain(args) => commands::explain::explain(&ui, &args),
        Command::Version => commands::version(&ui),
    };
    exit.into()
}
