//! `tenterhook protect`: sets the passphrase that commands which only the user may give ask for.

use crate::ancestry;
use crate::passphrase::Passphrase;
use clap::Parser;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::output;

/// Options of `tenterhook protect`.
#[derive(Debug, Parser)]
pub(crate) struct ProtectArgs {
    /// Replace the passphrase. Asks for the old one first.
    #[arg(long, conflicts_with = "remove")]
    change: bool,

    /// Remove the passphrase. Asks for it first.
    #[arg(long)]
    remove: bool,
}

pub(crate) fn protect(args: &ProtectArgs) -> Result<Exit, CliError> {
    let refused = |message: &str, hint: &str| CliError::new(Exit::Usage, message).hint(hint);
    match (Passphrase::find()?, args.change || args.remove) {
        (Some(_), false) => {
            let hint = "replace it with `tenterhook protect --change`";
            return Err(refused("a passphrase is already set", hint));
        }
        (None, true) => {
            let hint = "set one with `tenterhook protect`";
            return Err(refused("no passphrase is set", hint));
        }
        (Some(passphrase), true) if args.remove => {
            ancestry::require_user("remove the passphrase")?;
            passphrase.remove()?;
            output::line("Removed the passphrase.");
        }
        (Some(_), true) => {
            ancestry::require_user("change the passphrase")?;
            Passphrase::set()?;
            output::line("Changed the passphrase.");
        }
        (None, false) => {
            ancestry::require_user("set a passphrase")?;
            Passphrase::set()?;
            output::line(
                "Set the passphrase. Commands that change which hooks are in force ask for it from now on.",
            );
        }
    }
    Ok(Exit::Done)
}
