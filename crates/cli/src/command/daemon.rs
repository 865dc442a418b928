//! `tenterhook daemon`: the process that runs the hooks of coding agents.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use nix::sys::signal::SigSet;
use serde_json::json;
use tenterhook_daemon::{DaemonEnd, DaemonJournal, DaemonOptions, DaemonStatus, serve};
use tenterhook_shim::place::DaemonPlace;
use tokio_util::sync::CancellationToken;

use crate::ancestry;
use crate::journal_args::JournalArgs;
use crate::working_dir::current_dir;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output;

/// Options of `tenterhook daemon`.
#[derive(Debug, Parser)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub(crate) struct DaemonArgs {
    /// Run in this process, with its environment, until it is interrupted.
    #[arg(long)]
    foreground: bool,

    /// End the daemon after the events that it is handling. The next event starts a new one.
    #[arg(long, conflicts_with = "foreground")]
    stop: bool,

    /// End when no event has arrived for this long and no coding agent runs.
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = idle_time)]
    idle_exit: Duration,

    /// Listen on this socket. Only for tests and for several daemons of one user.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Leave the terminal of the process that started this one.
    #[arg(long, hide = true, requires = "foreground")]
    detach: bool,

    #[command(flatten)]
    journal: JournalArgs,

    /// Print a single JSON object.
    #[arg(long)]
    json: bool,
}

/// Accepts all signals. A shim blocks some before it starts the daemon, and hooks would inherit that. Must be
/// called before any thread is started.
pub(crate) fn accept_signals() {
    // If it fails, the daemon still ends when it is idle.
    SigSet::empty().thread_set_mask().ok();
}

pub(crate) async fn daemon(args: DaemonArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let place = place(args.socket.clone())?;
    if args.stop {
        ancestry::require_user("stop the daemon")?;
        return stop(&args, place, interrupts).await;
    }
    if args.foreground {
        return run_here(args, place, interrupts).await;
    }
    let directory = current_dir()?;
    let start = move || tenterhook_daemon::start(&place, &directory).map_err(failed);
    let status = run_blocking(&interrupts.token(), start).await?;
    show(&args, &status);
    Ok(Exit::Done)
}

/// Returns where the daemon listens.
pub(crate) fn place(socket: Option<PathBuf>) -> Result<DaemonPlace, CliError> {
    let place = DaemonPlace::of_user().map_err(|error| CliError::of(Exit::Failed, &error))?;
    Ok(match socket {
        Some(socket) => place.with_socket(socket),
        None => place,
    })
}

/// Creates the error for a daemon that does not do what it should.
pub(crate) fn failed(error: impl Display) -> CliError {
    CliError::new(Exit::Failed, error.to_string())
        .hint("run `tenterhook daemon --foreground` to see what it does")
}

async fn run_here(
    args: DaemonArgs,
    place: DaemonPlace,
    interrupts: &Interrupts,
) -> Result<Exit, CliError> {
    if args.detach {
        // Fails only if the process leads a group, and then it has left the terminal already.
        rustix::process::setsid().ok();
        tenterhook_process::guard_session();
    }
    let journal = match (args.journal.no_journal, args.journal.journal) {
        (true, _) => DaemonJournal::Off,
        (false, Some(path)) => DaemonJournal::File(path),
        (false, None) => DaemonJournal::Daily,
    };
    let socket = place.socket.clone();
    let options = DaemonOptions {
        place,
        idle_exit: args.idle_exit,
        journal,
        program: program(),
    };
    let stop = CancellationToken::new();
    let interrupted = interrupts.token();
    let serving = serve(options, stop.clone());
    tokio::pin!(serving);
    let served = tokio::select! {
        biased;
        served = &mut serving => served,
        () = interrupted.cancelled() => {
            stop.cancel();
            serving.await
        }
    };
    let end = served.map_err(|error| CliError::of(Exit::Failed, &error))?;
    if end == DaemonEnd::AlreadyRunning && !args.detach {
        let socket = escape_line(&socket.display().to_string());
        let message = format!("another daemon listens on `{socket}`");
        return Err(
            CliError::new(Exit::Locked, message).hint("run `tenterhook daemon --stop` first")
        );
    }
    Ok(Exit::Done)
}

/// Returns the path of the program by which it was started, because a link may later lead to a new version.
fn program() -> Option<PathBuf> {
    let named = std::env::args_os().next().map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute());
    named.or_else(|| std::env::current_exe().ok())
}

async fn stop(
    args: &DaemonArgs,
    place: DaemonPlace,
    interrupts: &Interrupts,
) -> Result<Exit, CliError> {
    let stop = move || tenterhook_daemon::stop(&place).map_err(failed);
    let was_running = run_blocking(&interrupts.token(), stop).await?;
    if args.json {
        output::json(&json!({ "was_running": was_running }));
    } else if was_running {
        output::line("The daemon ends after the events that it is handling.");
    } else {
        output::line("No daemon runs.");
    }
    Ok(Exit::Done)
}

fn show(args: &DaemonArgs, status: &DaemonStatus) {
    if args.json {
        output::json(&json!(status));
        return;
    }
    let socket = escape_line(&status.socket.display().to_string());
    output::line(format_args!(
        "The daemon runs as process {} and listens on `{socket}`.",
        status.process
    ));
}

/// Reads a time such as `90s`, `30m` or `2h`.
fn idle_time(text: &str) -> Result<Duration, String> {
    let unit = text.find(|it: char| it.is_ascii_alphabetic());
    let split = unit.and_then(|at| text.split_at_checked(at));
    let seconds = split.and_then(|(number, unit)| {
        let number: u64 = number.parse().ok()?;
        let factor = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return None,
        };
        number.checked_mul(factor)
    });
    let seconds = seconds.filter(|seconds| (1..=30 * 24 * 3600).contains(seconds));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| "expected a time such as `90s`, `30m` or `2h`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_time_has_a_unit() {
        assert_eq!(idle_time("30m"), Ok(Duration::from_mins(30)));
        assert_eq!(idle_time("1s"), Ok(Duration::from_secs(1)));
        for wrong in [
            "30",
            "0s",
            "m",
            "1d",
            "-1s",
            "99999999999999999999h",
            "1000000h",
        ] {
            assert!(idle_time(wrong).is_err(), "{wrong}");
        }
    }
}
