//! The shell that runs docker-agent's commands.

use tenterhook_process::{Command, Program, Shell};

/// Returns `bash` if it is installed, and `sh` otherwise.
///
/// Hooks in docker-agent's documentation pass the event to another program with `echo "$INPUT"`. In some
/// versions of `sh`, `echo` turns `\n` inside a JSON string into a line break. The program then cannot
/// read the event, and a guard finds nothing to deny. The `echo` of `bash` leaves the text unchanged.
pub(crate) fn documented_shell() -> Shell {
    let bash = Program::Shell {
        shell: Shell::Bash,
        line: ":;".to_owned(),
    };
    match Command::new(bash).resolve() {
        Ok(_) => Shell::Bash,
        Err(_) => Shell::Sh,
    }
}
