//! Checks whether the programs of a command exist.

use std::path::PathBuf;

use tenterhook_hookfile::{HookAction, HookDeclaration, Report};
use tenterhook_process::{Command, ResolveError, Shell};
use tenterhook_shell::{plain_words, programs};
use tenterhook_trust::in_search_path;

use crate::options::LoadOptions;

/// Reports a command whose program, shell or interpreter is missing. For a missing program inside a shell
/// line there is only a warning, because the line may never run it.
pub(super) fn check_executable(
    report: &mut Report,
    options: &LoadOptions,
    declaration: &HookDeclaration,
    command: &Command,
    working_dir: Option<&PathBuf>,
) {
    let base = &options.directory;
    let dir = working_dir.map_or_else(|| base.clone(), |dir| base.join(dir));
    let hint = format!(
        "looked up with `{}` as the working directory of the event",
        base.display()
    );
    let span = declaration.action_span;
    // A line of plain words runs without a shell, but missing programs matter in it just the same.
    let is_plain_line =
        matches!(&declaration.action, HookAction::Line { line, .. } if plain_words(line).is_some());
    match command.clone().working_dir(dir.clone()).resolve() {
        Ok(_) => {}
        // The directory may be created before the event happens.
        Err(error @ ResolveError::NoWorkingDir { .. }) => {
            report.add(report.warning(span, error.to_string()).hint(hint));
            return;
        }
        Err(error) if is_plain_line => {
            report.add(report.warning(span, error.to_string()).hint(hint));
            return;
        }
        Err(error) => {
            report.add(report.problem(span, error.to_string()).hint(hint));
            return;
        }
    }
    if let HookAction::Line { shell, line } = &declaration.action
        && matches!(shell, Shell::Sh | Shell::Bash)
        && !declaration.env.iter().any(|(name, _)| name == "PATH")
    {
        // A guard such as `jq -e … && exit 2` silently allows everything if `jq` is not installed.
        let is_missing = |program: &String| in_search_path(program, &dir).is_none();
        for program in programs(line).into_iter().filter(is_missing) {
            let message = format!("program `{program}` was not found in `PATH`");
            let hint = format!(
                "install `{program}`; a shell continues without a missing program, so a guard that needs it may let everything through"
            );
            report.add(report.warning(span, message).hint(hint));
        }
    }
}
