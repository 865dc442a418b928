//! The hooks of the project and whether the user approved them, as far as every command needs to know.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenterhook::RegisteredHook;
use tenterhook_config::{
    Approvals, Brought, DivergedHook, Divergence, Item, TrustError, TrustState,
};

use crate::answers::Answers;
use crate::below;
use crate::data_dir::data_dir;
use crate::error::CliError;
use crate::exit::Exit;
use crate::hooks::warn;
use crate::interrupt::Interrupts;
use crate::output::{self, style, styled};
use crate::safe::safe_line;

/// How many hooks that do not run are named one by one.
const MOST_NAMED: usize = 5;

/// Returns the user's approvals as they count in a folder. Without a folder for them there are none, and nothing of a project
/// runs.
pub(crate) async fn known(start: &Path) -> Result<Option<Arc<Approvals>>, CliError> {
    let Some(dir) = data_dir() else {
        return Ok(None);
    };
    let approvals = Approvals::open_at(&dir, start).await;
    let approvals = approvals.map_err(|error| refused(&error))?;
    Ok(Some(Arc::new(approvals)))
}

/// Returns a working directory as the user's shell names it: a link on the way to it must not hide what was approved there.
pub(crate) fn named_dir(dir: &Path) -> PathBuf {
    let named = std::env::var_os("PWD").map(PathBuf::from);
    let is_same = |named: &PathBuf| {
        let (one, other) = (named.canonicalize(), dir.canonicalize());
        named.is_absolute() && one.is_ok_and(|one| other.is_ok_and(|other| one == other))
    };
    named.filter(is_same).unwrap_or_else(|| dir.to_owned())
}

/// Opens the user's approvals as they count in a folder.
pub(crate) async fn open(start: &Path) -> Result<Approvals, CliError> {
    let dir = data_dir().ok_or_else(|| {
        CliError::new(Exit::Failed, "there is no folder for what you approve")
            .hint("name one with `TENTERHOOK_DATA_DIR`")
    })?;
    let approvals = Approvals::open_at(&dir, start).await;
    approvals.map_err(|error| refused(&error))
}

/// Makes an error of approvals that cannot be used.
pub(crate) fn refused(error: &TrustError) -> CliError {
    let refused = CliError::of(Exit::Config, error);
    if let TrustError::Writable { path, .. } = error {
        let mode = if path.is_dir() { "700" } else { "600" };
        let path = path.display();
        return refused.hint(format!(
            "look at what was approved, then `chmod {mode} '{path}'`"
        ));
    }
    let is_useless = matches!(
        error,
        TrustError::NotOwned { .. } | TrustError::Invalid { .. }
    );
    if is_useless {
        return refused.hint("remove it, and approve again with `tenterhook trust`");
    }
    refused
}

/// Returns what a hook is called among all that a project brings.
pub(crate) fn name_of(item: &Item) -> String {
    safe_line(&format!("{} of {}", item.name, item.source.display()))
}

/// Warns of approved hooks that changed in the project or are gone: which of them are in force as approved, and
/// which deny.
pub(crate) fn warn_of_diverged(diverged: &[DivergedHook]) {
    let (in_force, denying): (Vec<_>, Vec<_>) =
        diverged.iter().partition(|hook| hook.denies.is_none());
    if !in_force.is_empty() {
        let names = list_of(
            in_force
                .iter()
                .map(|hook| format!("`{}` ({})", name_of_diverged(hook), what_happened(hook))),
        );
        warn(format_args!(
            "{} approved, not as the project has {} now: {names}",
            count_in_force(in_force.len()),
            if in_force.len() == 1 { "it" } else { "them" }
        ));
        hint(
            "look at the change with `tenterhook trust --show`; `tenterhook trust` approves it, `tenterhook trust --revoke NAME` ends the approval",
        );
    }
    let mut reasons: Vec<&str> = denying
        .iter()
        .filter_map(|hook| hook.denies.as_deref())
        .collect();
    reasons.dedup();
    for reason in reasons.iter().take(MOST_NAMED) {
        warn(format_args!("{}; its gates deny", safe_line(reason)));
    }
    if reasons.len() > MOST_NAMED {
        let more = reasons.len() - MOST_NAMED;
        warn(format_args!(
            "{more} more approved hooks cannot run, so their gates deny"
        ));
    }
}

fn count_in_force(number: usize) -> String {
    if number == 1 {
        "1 hook is in force as it was".to_owned()
    } else {
        format!("{number} hooks are in force as they were")
    }
}

/// Returns what an approved hook is called, and where it was approved from.
pub(crate) fn name_of_diverged(hook: &DivergedHook) -> String {
    let approved = &hook.approved;
    safe_line(&format!(
        "{} of {}",
        approved.name,
        approved.source.display()
    ))
}

/// Returns how the project differs from an approved hook, in two or three words.
pub(crate) const fn what_happened(hook: &DivergedHook) -> &'static str {
    match hook.divergence {
        Divergence::Changed => "its files changed",
        Divergence::Moved => "moved in its file",
        Divergence::Missing => "removed, renamed or broken",
        Divergence::OtherRepository => "another repository",
        Divergence::OtherFolder { .. } => "another folder",
    }
}

/// Describes an approved hook that changed in the project or is gone.
pub(crate) fn state_of(hook: &RegisteredHook, diverged: &[DivergedHook]) -> Option<&'static str> {
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

fn hint(text: &str) {
    output::note(format_args!("{} {text}", styled(style::NAME, "hint:")));
}

/// Lists names, at most [`MOST_NAMED`] of them.
fn list_of(names: impl ExactSizeIterator<Item = String>) -> String {
    let all = names.len();
    let list = names.take(MOST_NAMED).collect::<Vec<_>>().join(", ");
    if all > MOST_NAMED {
        format!("{list} and {} more", all - MOST_NAMED)
    } else {
        list
    }
}

/// Warns of hooks of the project that do not run.
pub(crate) fn warn_of_withheld(brought: &[Brought], denies: bool) {
    // What was approved is reported as such, whether it runs or denies.
    let is_new = |brought: &&Brought| brought.state == TrustState::Untrusted;
    let withheld: Vec<&Brought> = brought.iter().filter(is_new).collect();
    if withheld.is_empty() {
        return;
    }
    let list = list_of(
        withheld
            .iter()
            .map(|brought| format!("`{}` ({})", name_of(&brought.item), brought.state.as_str())),
    );
    let verb = if withheld.len() == 1 {
        "1 hook of this project does not run".to_owned()
    } else {
        format!("{} hooks of this project do not run", withheld.len())
    };
    let gates = if denies && withheld.iter().any(|brought| brought.is_gate()) {
        "; what they may guard is denied"
    } else {
        ""
    };
    warn(format_args!("{verb}: {list}{gates}"));
    hint("look at them with `tenterhook trust --show`");
}

/// What the user chose to do with approvals that do not fit where the work is.
enum Choice {
    Keep,
    Accept,
    Revoke,
}

/// Asks what to do with approvals that do not fit where the work is: each group once, then never again. Says whether the hooks
/// have to be loaded again.
pub(crate) async fn settle_displaced(
    diverged: &[DivergedHook],
    start: &Path,
    interrupts: &Interrupts,
) -> Result<bool, CliError> {
    let displaced = diverged.iter().filter(|hook| hook.is_displaced());
    let groups: BTreeSet<(&Path, &Path)> = displaced
        .map(|hook| (hook.project.as_path(), hook.here()))
        .collect();
    // The shell of an agent must not answer for the user.
    if groups.is_empty() || below::refuse("accept approvals").is_err() {
        return Ok(false);
    }
    let mut approvals = open(&named_dir(start)).await?;
    let mut is_settled = false;
    let answers = Answers::plain();
    for (project, here) in groups {
        if approvals.is_kept(project, here) {
            continue;
        }
        let Some(choice) = ask(project, here, &answers, interrupts).await? else {
            break;
        };
        match choice {
            Choice::Keep => approvals
                .keep(project, here)
                .map_err(|error| refused(&error))?,
            Choice::Accept => {
                let accepted = approvals.accept(project, here).await;
                accepted.map_err(|error| refused(&error))?;
                is_settled = true;
            }
            Choice::Revoke => {
                let revoked = approvals.revoke(project, |_| true);
                revoked.map_err(|error| refused(&error))?;
                is_settled = true;
            }
        }
    }
    Ok(is_settled)
}

/// Asks about one group of approvals. `None` is the end of standard input, which is no answer.
async fn ask(
    project: &Path,
    here: &Path,
    answers: &Answers,
    interrupts: &Interrupts,
) -> Result<Option<Choice>, CliError> {
    let shown = |path: &Path| safe_line(&path.display().to_string());
    let what = if project == here {
        "another repository is there now".to_owned()
    } else {
        format!("`{}` is another copy of that repository", shown(here))
    };
    output::line(format_args!(
        "Hooks were approved in `{}`, and {what}. Until this is settled their gates deny here.",
        shown(project)
    ));
    let question = "[k]eep denying here, [a]ccept these approvals here, or [r]evoke them? [K/a/r] ";
    let answer = answers
        .ask(question, "nothing was changed", interrupts)
        .await?;
    Ok(answer.map(|answer| match answer.to_lowercase().as_str() {
        "a" | "accept" => Choice::Accept,
        "r" | "revoke" => Choice::Revoke,
        _ => Choice::Keep,
    }))
}
