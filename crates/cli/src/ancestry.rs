//! Refuses commands that only the user may give. An agent must not approve, revoke, disable or enable the hooks that
//! guard it.
//!
//! If the user has set a passphrase, it decides. Otherwise the ancestors of the process decide, which a program can hide.

#[cfg(unix)]
use std::io::ErrorKind;
#[cfg(unix)]
use std::path::{Path, PathBuf};

#[cfg(unix)]
use tenterhook_tools::{ProcessId, inherited_values, is_below};
use tenterhook_tools::{TenterhookAncestry, tenterhook_ancestry};

#[cfg(unix)]
use tenterhook_shim::place::DaemonPlace;

use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;

#[cfg(unix)]
use crate::passphrase::Passphrase;

/// The environment variable with the folder for the files of running programs.
#[cfg(unix)]
const RUNTIME_VARIABLE: &str = "XDG_RUNTIME_DIR";

/// Returns an error unless the user gave this command: asks for the passphrase if there is one, and otherwise checks
/// that no program which Tenterhook runs started this one. `action` names what only the user may do, such as `disable
/// hooks`.
pub(crate) fn require_user(action: &str) -> Result<(), CliError> {
    #[cfg(unix)]
    if let Some(passphrase) = Passphrase::find()? {
        return passphrase.require(action);
    }
    check_ancestors(action)
}

/// Does the same as [`require_user`], and returns the passphrase, if there is one, for a program that checks it too.
pub(crate) fn proof_of_user(action: &str) -> Result<Option<String>, CliError> {
    #[cfg(unix)]
    if let Some(passphrase) = Passphrase::find()? {
        return passphrase.ask(action).map(Some);
    }
    check_ancestors(action).map(|()| None)
}

/// Returns whether the user may be asked what to do. Before the answer has an effect, [`require_user`] decides.
pub(crate) fn may_ask_user() -> bool {
    #[cfg(unix)]
    if !matches!(Passphrase::find(), Ok(None)) {
        return true;
    }
    check_ancestors("answer").is_ok()
}

/// Returns an error if a program that Tenterhook runs started this one.
fn check_ancestors(action: &str) -> Result<(), CliError> {
    let (who, hint) = match tenterhook_ancestry() {
        TenterhookAncestry::Yes => ("a program that Tenterhook runs", OWN_TERMINAL.to_owned()),
        TenterhookAncestry::Possible(id) => ("a program that Tenterhook runs", hint_for_job(id)),
        TenterhookAncestry::No if is_below_host()? => (
            "a program that a coding agent runs",
            OWN_TERMINAL.to_owned(),
        ),
        TenterhookAncestry::No => return Ok(()),
    };
    let message = format!("{who} cannot {action}");
    Err(CliError::new(Exit::Usage, message).hint(hint))
}

/// What to do instead, for people.
const OWN_TERMINAL: &str = "run this command in your own terminal";

/// Returns what to do if a job of a service manager runs while Tenterhook works: its processes look like those that
/// programs of the agent leave behind.
fn hint_for_job(process: u32) -> String {
    format!(
        "{OWN_TERMINAL}; a job without a terminal looks like a program of the Tenterhook that runs as process \
         {process}, so it has to run while that one is stopped"
    )
}

/// Returns whether a coding agent that calls Tenterhook's daemon started this process.
#[cfg(unix)]
fn is_below_host() -> Result<bool, CliError> {
    Ok(is_below(std::process::id(), &known_hosts()?))
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "on Unix it reads files")]
fn is_below_host() -> Result<bool, CliError> {
    Ok(false)
}

/// Returns the coding agents that the daemons of this user have seen. The lists outlive the daemons.
///
/// A program of an agent decides about its own environment, so the lists are also searched where the
/// environments of its ancestors lead, and for all folders of the user.
#[cfg(unix)]
fn known_hosts() -> Result<Vec<ProcessId>, CliError> {
    let mut runtimes = inherited_values(std::process::id(), RUNTIME_VARIABLE);
    runtimes.extend(std::env::var_os(RUNTIME_VARIABLE));
    let lists = DaemonPlace::lists_of_hosts(runtimes.into_iter().map(PathBuf::from));
    let mut known = Vec::new();
    for list in lists {
        match std::fs::read_to_string(&list) {
            // Someone may have deleted the file in the meantime.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(&list, &error.to_string())),
            Ok(text) => {
                let processes: Option<Vec<_>> = ProcessId::read_list(&text);
                let processes =
                    processes.ok_or_else(|| unreadable(&list, "a line is not a process"))?;
                known.extend(processes);
            }
        }
    }
    Ok(known)
}

/// Creates the error for a list that cannot be read. Any agent could be above this process then.
#[cfg(unix)]
fn unreadable(list: &Path, problem: &str) -> CliError {
    let list = list.display();
    let message = format!("cannot read the list of agents that run, `{list}`: {problem}");
    CliError::new(Exit::Failed, message).hint("end your agents and delete the file")
}
