//! Turns the output of git into context for the model.

use std::ffi::OsString;
use std::path::Path;

use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::AnyEffect;
use tenterhook_protocol::excerpt;

use super::row::{blocking, context, directory};
use tenterhook_process::git::{self, Git, GitError};

/// The maximum number of bytes of git's output that the model gets.
const GIT_LIMIT: usize = 4_096;

/// Returns git's output for the event's directory, after a heading. The effect is empty outside a work tree, without
/// git on the machine, and when git prints nothing.
pub(super) async fn git_context(
    call: &Call,
    env: &[(OsString, OsString)],
    heading: &str,
    arguments: &[&str],
) -> Result<AnyEffect, HandlerError> {
    let Some(dir) = directory(&call.event).map(Path::to_owned) else {
        return Ok(AnyEffect::default());
    };
    let looked_at = dir.clone();
    // With `GIT_DIR`, the hook names a repository itself, so the event's directory need not be in a work tree.
    let is_named = env.iter().any(|(name, _)| name == "GIT_DIR");
    if !is_named
        && blocking(move || git::work_tree(&looked_at))
            .await?
            .is_none()
    {
        return Ok(AnyEffect::default());
    }
    let git = Git::new(env.iter().cloned(), call.timeout, call.cancel.clone());
    let printed = match git.run(&dir, arguments).await {
        Ok(printed) => printed,
        Err(GitError::Missing) => return Ok(AnyEffect::default()),
        // A new repository without commits has nothing to show yet.
        Err(GitError::Failed { message, .. })
            if message.contains("does not have any commits yet") =>
        {
            return Ok(AnyEffect::default());
        }
        Err(error) => {
            return Err(HandlerError::Other {
                problem: error.to_string(),
            });
        }
    };
    let text = String::from_utf8_lossy(&printed);
    let text = text.trim();
    if text.is_empty() {
        return Ok(AnyEffect::default());
    }
    let shown = excerpt::head(text, GIT_LIMIT);
    let end = if shown.len() < text.len() {
        "\n... (truncated)"
    } else {
        ""
    };
    Ok(context(format!("{heading}:\n\n{shown}{end}")))
}
