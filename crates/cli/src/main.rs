//! The `tenterhook` command line.

#![forbid(unsafe_code)]

mod args;
mod check;
mod demo;
mod error;
mod exit;
mod fire;
mod hooks;
mod input;
mod journal;
mod list;
mod output;
mod progress;
mod run;
mod table;
mod terminal;
mod timeline;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Args, Command};
use crate::error::CliError;
use crate::exit::Exit;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are asked for and go to stdout; anything else is a mistake in the call.
            let exit = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            };
            error.print().ok();
            return exit.into();
        }
    };
    args.color.apply();
    match run(args.command) {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::error(&error);
            error.exit.into()
        }
    }
}

fn run(command: Command) -> Result<Exit, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            CliError::new(Exit::Failed, "cannot start the async runtime").cause(&error)
        })?;
    let exit = runtime.block_on(async {
        match command {
            Command::Demo(args) => demo::demo(args).await,
            Command::Run(args) => run::run(*args).await,
            Command::Fire(args) => fire::fire(args).await,
            Command::List(args) => list::list(&args),
            Command::Check(args) => check::check(&args),
        }
    });
    // A thread that waits for a line of stdin must not keep the program from ending.
    runtime.shutdown_background();
    exit
}
