//! `tenterhook man`: writes the manual pages of the program and its subcommands.

use std::fs;
use std::path::PathBuf;

use tenterhook_protocol::escape::escape_line;
use tenterhook_terminal::output;

use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;

#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// The folder for the pages, for example `~/.local/share/man/man1`. It is created if it does not exist.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Writes a page for `program` and for each of its subcommands.
pub(crate) fn man(args: &ManArgs, program: clap::Command) -> Result<Exit, CliError> {
    let dir = args.dir.display().to_string();
    let failed = |error: std::io::Error| {
        let message = format!("cannot write manual pages into `{}`", escape_line(&dir));
        CliError::new(Exit::Failed, message)
            .cause(&error)
            .hint("name a folder that you may write to; it is created if it does not exist")
    };
    fs::create_dir_all(&args.dir).map_err(failed)?;
    clap_mangen::generate_to(program, &args.dir).map_err(failed)?;
    output::line(format!(
        "Wrote the manual pages to `{}`.",
        escape_line(&dir)
    ));
    Ok(Exit::Done)
}
