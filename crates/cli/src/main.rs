//! The `tenterhook` command line.

#![forbid(unsafe_code)]

mod answers;
mod approval;
mod args;
mod below;
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
mod fire_call;
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
mod protected;
mod recipe;
mod resources;
mod rules;
mod run;
mod runtime;
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

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;

use crate::args::{Args, Command};
use crate::error::CliError;
use crate::exit::Exit;
use crate::fire_call::FireCall;
use crate::interrupt::Interrupts;

/// How long the tasks that are left at the end may take to be dropped.
const LAST_MOMENT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let mut fire = FireCall::of_words(words.iter().skip(1).map(OsString::as_os_str));
    let result = match Args::try_parse_from(&words) {
        Ok(args) => {
            args.color.apply();
            fire = FireCall::of_command(&args.command);
            guarded(fire, || run(args.command))
        }
        Err(error) if error.use_stderr() => Err(CliError::usage(error)),
        // Help and version are asked for and go to stdout.
        Err(help) => {
            output::keep(help.print());
            Ok(Exit::Done)
        }
    };
    end(result, fire).into()
}

/// Runs a command. A panic of a call that waits for a decision is an error: the status of a panic lets other agents run
/// the tool.
fn guarded(
    fire: Option<FireCall>,
    run: impl FnOnce() -> Result<Exit, CliError>,
) -> Result<Exit, CliError> {
    if !fire.is_some_and(FireCall::is_gate) {
        return run();
    }
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        Err(CliError::new(Exit::Failed, "tenterhook panicked")
            .hint("this is a bug; please report it with the message above"))
    })
}

/// Shows what went wrong and returns the exit status.
fn end(result: Result<Exit, CliError>, fire: Option<FireCall>) -> Exit {
    if let (Err(error), Some(fire)) = (&result, fire) {
        fire.report(error);
    }
    let written = output::finish()
        .map(|error| CliError::new(Exit::Failed, "cannot write to standard output").cause(&error));
    let exit = match (result, written) {
        (Ok(exit), None) => exit,
        (Err(error), _) | (Ok(_), Some(error)) => {
            output::error(&error);
            error.exit
        }
    };
    fire.map_or(exit, |fire| fire.status(exit))
}

fn run(command: Command) -> Result<Exit, CliError> {
    let runtime = runtime::start()?;
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
    tenterhook_process::end_guard();
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

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_panic_of_fire_on_a_gate_exits_2() {
        let words = ["fire", "pre_tool_use"].map(OsStr::new);
        let fire = FireCall::of_words(words.into_iter());
        let result = guarded(fire, || panic!("a panic that this test makes"));
        assert_eq!(end(result, fire), Exit::Stopped);
    }
}
