//! The `tenterhook` command line.

#![forbid(unsafe_code)]

mod agent_args;
mod ancestry;
mod args;
mod command;
mod command_names;
mod conversation;
mod displaced;
mod event_name;
mod fire_call;
mod hook_args;
mod inspector_page;
mod journal_args;
mod notice;
#[cfg(unix)]
mod passphrase;
mod session_dir_args;
mod working_dir;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory as _, Parser as _};

use crate::args::{Args, Command};
use crate::command::{
    allow, check, completions, demo, disable, events, explain, fire, import, init, inspect,
    install, list, man, run, sessions, snapshot, status, test, tools, trust, uninstall,
};
#[cfg(unix)]
use crate::command::{daemon, doctor, gateway, protect, reload, worker};
use crate::command_names::{suggest_command, with_real_name};
use crate::fire_call::FireCall;
use crate::notice::usage_error;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::warning;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output;

/// How long the program waits at its end for remaining tasks to be dropped.
const LAST_MOMENT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    #[cfg(unix)]
    if tenterhook_shim::is_started_as_shim() {
        return tenterhook_shim::run();
    }
    warning::show_with(notice::show);
    let words: Vec<OsString> = with_real_name(std::env::args_os().collect());
    let (result, fire) = match Args::try_parse_from(&words) {
        Ok(args) => {
            args.color.apply();
            let fire = FireCall::of_command(&args.command);
            #[cfg(unix)]
            if matches!(args.command, Command::Daemon(_)) {
                daemon::accept_signals();
            }
            (
                run_catching_panics(fire, || run_command(args.command)),
                fire,
            )
        }
        Err(error) => {
            // `of_words` builds the argument parser a second time, so only arguments that cannot be parsed pay for
            // it.
            let fire = FireCall::of_words(words.iter().skip(1).map(OsString::as_os_str));
            (show_usage(error, &words), fire)
        }
    };
    finish(result, fire).into()
}

/// Prints help and the version on stdout. Anything else is a usage error.
fn show_usage(error: clap::Error, words: &[OsString]) -> Result<Exit, CliError> {
    if error.use_stderr() {
        return Err(usage_error(&suggest_command(error, words)));
    }
    output::keep(error.print());
    Ok(Exit::Done)
}

/// Runs a command. A panic while a host waits for the decision of a gate becomes an error, because other agents let
/// the tool run on the exit status of a panic.
fn run_catching_panics(
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

/// Shows an error, if there is one, and returns the exit status.
fn finish(result: Result<Exit, CliError>, fire: Option<FireCall>) -> Exit {
    if let (Err(error), Some(fire)) = (&result, fire) {
        fire.report(error);
    }
    let written = output::finish()
        .map(|error| CliError::new(Exit::Failed, "cannot write to standard output").cause(&error));
    let exit = match (result, written) {
        (Ok(exit), None) => exit,
        (Err(error), _) | (Ok(_), Some(error)) => {
            notice::show_error(&error);
            error.exit
        }
    };
    fire.map_or(exit, |fire| fire.status(exit))
}

fn run_command(command: Command) -> Result<Exit, CliError> {
    let runtime = tenterhook_setup::runtime::start()?;
    let exit = runtime.block_on(async {
        let interrupts = Interrupts::listen().map_err(|error| {
            CliError::new(Exit::Failed, "cannot listen for signals").cause(&error)
        })?;
        let work = Box::pin(dispatch(command, &interrupts));
        tokio::select! {
            biased;
            exit = work => exit,
            // Dropping the work kills the process groups that it started and removes its temporary files.
            () = interrupts.given_up() => Ok(Exit::Interrupted),
        }
    });
    // Tasks must be dropped before the program ends, because that kills the process groups that they started.
    runtime.shutdown_timeout(LAST_MOMENT);
    tenterhook_process::end_guard();
    exit
}

async fn dispatch(command: Command, interrupts: &Interrupts) -> Result<Exit, CliError> {
    match command {
        Command::Demo(args) => demo::demo(args, interrupts).await,
        Command::Init(args) => init::init(&args),
        Command::Test(args) => test::test(args, interrupts).await,
        Command::Run(args) => Box::pin(run::run(*args, interrupts)).await,
        #[cfg(unix)]
        Command::Gateway(args) => Box::pin(gateway::gateway(args, interrupts)).await,
        Command::Inspect(args) => Box::pin(inspect::inspect(args, interrupts)).await,
        Command::Fire(args) => fire::fire(args, interrupts).await,
        Command::List(args) => list::list(args, interrupts).await,
        Command::Explain(args) => explain::explain(args, interrupts).await,
        Command::Events(args) => events::events(&args),
        Command::Tools(args) => tools::tools(&args),
        Command::Trust(args) => trust::trust(args, interrupts).await,
        Command::Allow(args) => allow::allow(args, interrupts).await,
        Command::Check(args) => check::check(args, interrupts).await,
        Command::Import(args) => import::import(&args, interrupts).await,
        Command::Disable(args) => disable::disable(args, interrupts).await,
        Command::Enable(args) => disable::enable(args, interrupts).await,
        Command::Install(args) => install::install(args, interrupts).await,
        Command::Uninstall(args) => uninstall::uninstall(args, interrupts).await,
        Command::Status(args) => status::status(args, interrupts).await,
        #[cfg(unix)]
        Command::Doctor(args) => doctor::doctor(args, interrupts).await,
        #[cfg(unix)]
        Command::Daemon(args) => Box::pin(daemon::daemon(args, interrupts)).await,
        #[cfg(unix)]
        Command::Protect(args) => protect::protect(&args),
        #[cfg(unix)]
        Command::Reload(args) => reload::reload(args, interrupts).await,
        #[cfg(unix)]
        Command::Worker(args) => worker::worker(args, interrupts).await,
        Command::Snapshot(args) => snapshot::snapshot(args, interrupts).await,
        Command::Sessions(args) => sessions::sessions(&args),
        Command::Completions(args) => Ok(completions::completions(&args, Args::command())),
        Command::Man(args) => man::man(&args, Args::command()),
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
        let result = run_catching_panics(fire, || panic!("a panic that this test makes"));
        assert_eq!(finish(result, fire), Exit::Stopped);
    }
}
