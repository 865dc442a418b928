//! `tenterhook completions`: prints a completion script for a shell.

use clap_complete::Shell;
use tenterhook_terminal::output;

use tenterhook_setup::exit::Exit;

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell that the script is for.
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Prints the completion script of `program`.
pub(crate) fn completions(args: &CompletionsArgs, mut program: clap::Command) -> Exit {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, name, &mut script);
    output::text(String::from_utf8_lossy(&script));
    Exit::Done
}
