//! Reads a file that is going to be imported.

use std::path::Path;

use tenterhook_hookfile::{Problem, Report, SourceText, read_imported, read_text};
use tenterhook_systems::HookSystem;

use crate::error::CliError;
use crate::exit::Exit;
use crate::warning::show_warnings;

/// Reads a file to import, shows its warnings, and returns the number of its hooks.
///
/// # Errors
/// Fails if the file cannot be read, has errors, or is not one of the system's files.
pub fn count_hooks(
    system: &HookSystem,
    path: &Path,
    variables: &[(String, String)],
) -> Result<usize, CliError> {
    let shown = path.display();
    let text = read_text(path).map_err(|problem| {
        CliError::new(
            Exit::Config,
            format!("cannot import `{shown}`: {}", problem.message),
        )
        .hint("name the file with the hooks: `--file FILE`")
    })?;
    let mut found = Report::new(SourceText::new(path, &text));
    let file = read_imported(&mut found, variables);
    if file.system != system.name {
        let message = format!("`{shown}` is not a file with hooks of `{}`", system.name);
        return Err(
            CliError::new(Exit::Config, message).hint(format!("it is a file of `{}`", file.system))
        );
    }
    let has_errors = found.has_errors();
    let problems = found.into_problems();
    if has_errors {
        let rendered = problems
            .iter()
            .map(|problem: &Problem| problem.render(false));
        return Err(CliError {
            causes: rendered.collect(),
            ..CliError::new(Exit::Config, format!("cannot import `{shown}`"))
        });
    }
    show_warnings(&problems);
    Ok(file.declarations.len())
}
