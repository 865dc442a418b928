//! The `tenterhook` command line.

#![forbid(unsafe_code)]

mod approval;
mod args;
mod check;
mod config_dir;
mod converse;
mod data_dir;
mod demo;
mod disable;
mod editor;
mod error;
mod exit;
mod explain;
mod extras;
mod feed;
mod fire;
mod fired;
mod hooks;
mod input;
mod interrupt;
mod journal;
mod list;
mod markdown;
mod matched;
mod models;
mod output;
mod progress;
mod recipe;
mod resources;
mod rules;
mod run;
mod safe;
mod sessions;
mod snapshot;
mod stdin;
mod table;
mod terminal;
mod timeline;
mod tree;
mod trust;
#[cfg(unix)]
mod worker;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;

use crate::args::{Args, Command};
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::Interrupts;

/// How long the tasks that are left at the end may take to be dropped.
const LAST_MOMENT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are asked for and go to stdout; anything else is a mistake in the call.
            let printed = error.print();
            if error.use_stderr() {
                return Exit::Usage.into();
            }
            output::keep(printed);
            return end(Ok(Exit::Done));
        }
    };
    args.color.apply();
    end(run(args.command))
}

/// Shows what went wrong and returns the exit status.
fn end(result: Result<Exit, CliError>) -> ExitCode {
    let written = output::finish()
        .map(|error| CliError::new(Exit::Failed, "cannot write to standard output").cause(&error));
    match (result, written) {
        (Ok(exit), None) => exit.into(),
        (Err(error), _) | (Ok(_), Some(error)) => {
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
        let interrupts = Interrupts::listen()?;
        let work = Box::pin(carry_out(command, &interrupts));
        tokio::select! {
            biased;
            exit = work => exit,
            // Dropping the work kills the process groups that it started and removes its temporary files.
            () = interrupts.given_up() => Ok(Exit::Interrupted),
        }
    });
    // Tasks have to be dropped before the program ends: their process groups die with them.
    runtime.shutdown_timeout(LAST_MOMENT);
    exit
}

async fn carry_out(command: Command, interrupts: &Interrupts) -> Result<Exit, CliError> {
    match command {
        Command::Demo(args) => demo::demo(args, interrupts).await,
        Command::Run(args) => Box::pin(run::run(*args, interrupts)).await,
        Command::Fire(args) => fire::fire(args, interrupts).await,
        Command::List(args) => list::list(args, interrupts).await,
        Command::Explain(args) => explain::explain(args, interrupts).await,
        Command::Trust(args) => trust::trust(args, interrupts).await,
        Command::Check(args) => check::check(args, interrupts).await,
        Command::Disable(args) => disable::disable(args, interrupts).await,
        Command::Enable(args) => disable::enable(args, interrupts).await,
        #[cfg(unix)]
        Command::Worker(args) => worker::worker(args, interrupts).await,
        Command::Snapshot(args) => snapshot::snapshot(args, interrupts).await,
        Command::Sessions(args) => sessions::sessions(&args),
    }
}
