//! Refuses commands that only the user may give. An agent must not approve, revoke, disable or enable the hooks that
//! guard it.

use tenterhook_tools::has_tenterhook_ancestor;

use crate::error::CliError;
use crate::exit::Exit;

/// Returns an error if a program that Tenterhook runs started this one. `action` names what only the user may do,
/// such as `disable hooks`.
pub fn require_user(action: &str) -> Result<(), CliError> {
    if !has_tenterhook_ancestor() {
        return Ok(());
    }
    let message = format!("a program that Tenterhook runs cannot {action}");
    Err(CliError::new(Exit::Usage, message).hint("run this command in your own terminal"))
}
