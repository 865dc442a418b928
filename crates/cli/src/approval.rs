//! What the project brings and whether the user approved it, as far as every command needs to know.

use std::sync::Arc;

use tenterhook_config::{Approvals, Brought, Gone, Item, TrustError, TrustState};

use crate::data_dir::data_dir;
use crate::error::CliError;
use crate::exit::Exit;
use crate::hooks::warn;
use crate::output::{self, style, styled};
use crate::safe::safe_line;

/// How many hooks that do not run are named one by one.
const MOST_NAMED: usize = 5;

/// Returns the user's approvals. Without a folder for them there are none, and nothing of a project runs.
pub(crate) fn known() -> Result<Option<Arc<Approvals>>, CliError> {
    let Some(dir) = data_dir() else {
        return Ok(None);
    };
    let approvals = Approvals::open(&dir).map_err(|error| refused(&error))?;
    Ok(Some(Arc::new(approvals)))
}

/// Opens the user's approvals.
pub(crate) fn open() -> Result<Approvals, CliError> {
    let dir = data_dir().ok_or_else(|| {
        CliError::new(Exit::Failed, "there is no folder for what you approve")
            .hint("name one with `TENTERHOOK_DATA_DIR`")
    })?;
    Approvals::open(&dir).map_err(|error| refused(&error))
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

/// Says which approved hooks the project does not bring any more.
pub(crate) fn tell_gone(gone: &[Gone]) {
    for Gone { approved, .. } in gone {
        let source = approved.source.display();
        let name = safe_line(&format!("{} of {source}", approved.name));
        warn(format_args!(
            "`{name}` was approved in this project and is gone: removed, renamed, not executable or broken"
        ));
    }
    if !gone.is_empty() {
        output::note(format_args!(
            "{} take the approval back with `tenterhook trust --revoke NAME`",
            styled(style::NAME, "hint:")
        ));
    }
}

/// Says which hooks of the project do not run.
pub(crate) fn tell(brought: &[Brought], denies: bool) {
    let is_withheld = |brought: &&Brought| brought.state != TrustState::Trusted;
    let withheld: Vec<&Brought> = brought.iter().filter(is_withheld).collect();
    if withheld.is_empty() {
        return;
    }
    let named = withheld
        .iter()
        .take(MOST_NAMED)
        .map(|brought| format!("`{}` ({})", name_of(&brought.item), brought.state.as_str()));
    let mut list = named.collect::<Vec<_>>().join(", ");
    if withheld.len() > MOST_NAMED {
        list = format!("{list} and {} more", withheld.len() - MOST_NAMED);
    }
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
    output::note(format_args!(
        "{} look at them with `tenterhook trust --show`",
        styled(style::NAME, "hint:")
    ));
}
