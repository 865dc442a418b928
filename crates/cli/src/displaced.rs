//! Asks about approvals that were given in another folder or repository.

use std::collections::BTreeSet;
use std::path::Path;

use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::approval::{named_dir, open, refused};
use tenterhook_setup::error::CliError;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::line_source::LineSource;
use tenterhook_terminal::output;
use tenterhook_trust::DivergedHook;

use crate::ancestry;
use crate::notice::unanswered;

/// What the user chose to do with approvals that were given in another folder or repository.
enum Choice {
    Keep,
    Accept,
    Revoke,
}

/// Asks what to do with approvals that were given in another folder or repository, once for each group of them.
/// Returns whether the hooks must be loaded again.
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
    if groups.is_empty() || !ancestry::may_ask_user() {
        return Ok(false);
    }
    let mut approvals = open(&named_dir(start)).await?;
    let mut choices = Vec::new();
    {
        let answers = LineSource::plain();
        for (project, here) in groups {
            if approvals.is_kept(project, here) {
                continue;
            }
            let Some(choice) = ask(project, here, &answers, interrupts).await? else {
                break;
            };
            choices.push((project, here, choice));
        }
    }
    let is_settled = choices
        .iter()
        .any(|(_, _, choice)| !matches!(choice, Choice::Keep));
    if is_settled {
        ancestry::require_user("accept or revoke approvals")?;
    }
    for (project, here, choice) in choices {
        match choice {
            Choice::Keep => approvals
                .keep(project, here)
                .map_err(|error| refused(&error))?,
            Choice::Accept => {
                let accepted = approvals.accept(project, here).await;
                accepted.map_err(|error| refused(&error))?;
            }
            Choice::Revoke => {
                let revoked = approvals.revoke(project, |_| true);
                revoked.map_err(|error| refused(&error))?;
            }
        }
    }
    Ok(is_settled)
}

/// Asks about one group of approvals. Returns `None` at the end of stdin, because that is not an answer.
async fn ask(
    project: &Path,
    here: &Path,
    answers: &LineSource,
    interrupts: &Interrupts,
) -> Result<Option<Choice>, CliError> {
    let shown = |path: &Path| escape_line(&path.display().to_string());
    let what = if project == here {
        "another repository is there now".to_owned()
    } else {
        format!("`{}` is another copy of that repository", shown(here))
    };
    output::line(format_args!(
        "Hooks were approved in `{}`, but {what}. Until you decide, their gates deny here.",
        shown(project)
    ));
    let question = "[k]eep denying here, [a]ccept these approvals here, or [r]evoke them? [K/a/r] ";
    let answer = answers.ask(question, interrupts).await;
    let answer = answer.map_err(|error| unanswered(&error, "nothing was changed"))?;
    Ok(answer.map(|answer| match answer.to_lowercase().as_str() {
        "a" | "accept" => Choice::Accept,
        "r" | "revoke" => Choice::Revoke,
        _ => Choice::Keep,
    }))
}
