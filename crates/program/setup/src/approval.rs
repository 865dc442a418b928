//! Opens the user's approvals, and reports project hooks that are not approved or that differ from their approved
//! versions. `command/trust.rs` approves and revokes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenterhook_engine::RegisteredHook;
use tenterhook_trust::{Approvals, DivergedHook, Divergence, ProjectHook, TrustError, TrustState};

use crate::data_dir::data_dir;
use crate::error::CliError;
use crate::exit::Exit;
use crate::warning::{hint, warn};
use tenterhook_protocol::escape::escape_line;

/// The maximum number of hooks that a warning names one by one.
const MAX_NAMED: usize = 5;

/// Returns the user's approvals as they apply in `start`. If there is no data folder, there are no approvals, and no
/// project hook runs.
pub async fn load_approvals(start: &Path) -> Result<Option<Arc<Approvals>>, CliError> {
    let Some(dir) = data_dir() else {
        return Ok(None);
    };
    let approvals = Approvals::open_at(&dir, start).await;
    let approvals = approvals.map_err(|error| refused(&error))?;
    Ok(Some(Arc::new(approvals)))
}

/// Returns a working directory as the user's shell names it, because a link in its path must not hide approvals that
/// were given there.
pub fn named_dir(dir: &Path) -> PathBuf {
    let named = std::env::var_os("PWD").map(PathBuf::from);
    let is_same = |named: &PathBuf| {
        let (one, other) = (named.canonicalize(), dir.canonicalize());
        named.is_absolute() && one.is_ok_and(|one| other.is_ok_and(|other| one == other))
    };
    named.filter(is_same).unwrap_or_else(|| dir.to_owned())
}

/// Opens the user's approvals as they apply in `start`.
pub async fn open(start: &Path) -> Result<Approvals, CliError> {
    let dir = data_dir().ok_or_else(|| {
        CliError::new(Exit::Failed, "cannot find a folder for your approvals")
            .hint("set `TENTERHOOK_DATA_DIR` to a folder")
    })?;
    let approvals = Approvals::open_at(&dir, start).await;
    approvals.map_err(|error| refused(&error))
}

/// Creates the error for approvals that cannot be used.
pub fn refused(error: &TrustError) -> CliError {
    let refused = CliError::of(Exit::Config, error);
    if let TrustError::Writable { path, .. } = error {
        let mode = if path.is_dir() { "700" } else { "600" };
        let path = path.display();
        return refused.hint(format!(
            "check what was approved, then run `chmod {mode} '{path}'`"
        ));
    }
    let is_useless = matches!(
        error,
        TrustError::NotOwned { .. } | TrustError::Invalid { .. }
    );
    if is_useless {
        return refused.hint("delete it, then approve your hooks again with `tenterhook trust`");
    }
    refused
}

/// Warns about approved hooks that changed in the project or are gone: which of them are in force as approved, and
/// which deny.
pub fn warn_of_diverged(diverged: &[DivergedHook]) {
    let (in_force, denying): (Vec<_>, Vec<_>) =
        diverged.iter().partition(|hook| hook.denies.is_none());
    if !in_force.is_empty() {
        let names = list_of(
            in_force
                .iter()
                .map(|hook| format!("`{}` ({})", hook.shown_name(), what_happened(hook))),
        );
        warn(format_args!("{}: {names}", count_in_force(in_force.len())));
        hint(
            "see the change with `tenterhook trust --show`; approve it with `tenterhook trust`, or revoke the approval \
             with `tenterhook trust --revoke NAME`",
        );
    }
    let mut reasons: Vec<&str> = denying
        .iter()
        .filter_map(|hook| hook.denies.as_deref())
        .collect();
    reasons.dedup();
    for reason in reasons.iter().take(MAX_NAMED) {
        warn(format_args!("{}; its gates deny", escape_line(reason)));
    }
    if reasons.len() > MAX_NAMED {
        let more = reasons.len() - MAX_NAMED;
        warn(format_args!(
            "{more} more approved hooks cannot run, so their gates deny"
        ));
    }
}

fn count_in_force(number: usize) -> String {
    if number == 1 {
        "1 approved hook differs from the project; its approved version is in force".to_owned()
    } else {
        format!(
            "{number} approved hooks differ from the project; their approved versions are in force"
        )
    }
}

/// Returns how the project differs from an approved hook, in a few words.
pub const fn what_happened(hook: &DivergedHook) -> &'static str {
    match hook.divergence {
        Divergence::Changed => "its files changed",
        Divergence::Moved => "moved in its file",
        Divergence::Missing => "removed, renamed or broken",
        Divergence::OtherRepository => "another repository",
        Divergence::OtherFolder { .. } => "another folder",
    }
}

/// Describes an approved hook that changed in the project or is gone.
pub fn state_of(hook: &RegisteredHook, diverged: &[DivergedHook]) -> Option<&'static str> {
    let is_of = |approved: &&DivergedHook| {
        let source = approved.source();
        let path = hook.source.path.as_deref();
        let name = &approved.approved.name;
        let is_of_file = path == Some(&source) && hook.id.as_str() == name;
        is_of_file || path == Some(&source.join(name))
    };
    let approved = diverged.iter().find(is_of)?;
    Some(match (&approved.denies, &approved.divergence) {
        (Some(_), _) => "approved, cannot run",
        (None, Divergence::Missing) => "approved, file missing",
        (None, _) => "approved, file changed",
    })
}

/// Lists names, at most [`MAX_NAMED`] of them.
fn list_of(names: impl ExactSizeIterator<Item = String>) -> String {
    let all = names.len();
    let list = names.take(MAX_NAMED).collect::<Vec<_>>().join(", ");
    if all > MAX_NAMED {
        format!("{list} and {} more", all - MAX_NAMED)
    } else {
        list
    }
}

/// Returns the hooks that do not run because no version of them was ever approved.
pub fn unapproved(brought: &[ProjectHook]) -> Vec<&ProjectHook> {
    // `warn_of_diverged` reports approved hooks, whether they run or deny.
    let is_new = |brought: &&ProjectHook| brought.state == TrustState::Untrusted;
    brought.iter().filter(is_new).collect()
}

/// Says how many hooks are not approved. `None` if there are none.
pub fn count_unapproved(unapproved: &[&ProjectHook]) -> Option<String> {
    match unapproved.len() {
        0 => None,
        1 => Some("1 hook of this project is not approved".to_owned()),
        number => Some(format!("{number} hooks of this project are not approved")),
    }
}

/// Lists the names of hooks with their sources.
pub fn names_of(hooks: &[&ProjectHook]) -> String {
    list_of(
        hooks
            .iter()
            .map(|hook| format!("`{}`", hook.item.shown_name())),
    )
}

/// Warns about project hooks that do not run because they are not approved.
pub fn warn_of_withheld(brought: &[ProjectHook], denies: bool) {
    let withheld = unapproved(brought);
    let Some(count) = count_unapproved(&withheld) else {
        return;
    };
    let verb = if withheld.len() == 1 { "does" } else { "do" };
    let gates = if denies && withheld.iter().any(|brought| brought.is_gate()) {
        "; operations that untrusted hooks may guard are denied"
    } else {
        ""
    };
    let names = names_of(&withheld);
    warn(format_args!("{count} and {verb} not run: {names}{gates}"));
    hint("review them with `tenterhook trust --show`");
}

/// Warns after an event about project hooks that had no part in the decision, because they are not approved.
pub fn warn_of_unasked(brought: &[ProjectHook]) {
    let withheld = unapproved(brought);
    let what = match withheld.len() {
        0 => return,
        1 => "1 hook is".to_owned(),
        number => format!("{number} hooks are"),
    };
    let names = names_of(&withheld);
    warn(format_args!("{what} not approved and did not run: {names}"));
    hint("review with `tenterhook trust --show`");
}
