//! Prints errors, warnings, problems and hints on stderr.

use std::fmt::Display;

use tenterhook_hookfile::Problem;

use crate::error::CliError;
use tenterhook_terminal::output::{self, style, styled};

/// Shows a warning on one line.
pub fn warn(text: impl Display) {
    output::note(format_args!("{} {text}", styled(style::CARE, "warning:")));
}

/// Shows problems that do not prevent loading.
pub fn show_warnings(warnings: &[Problem]) {
    for problem in warnings {
        output::note(problem.render(output::is_coloured()));
    }
}

/// Shows what the user can do next.
pub fn hint(text: &str) {
    output::note(format_args!("{} {text}", styled(style::NAME, "hint:")));
}

/// Prints an error, its causes and its hint.
pub fn show_error(error: &CliError) {
    if let Some(usage) = &error.usage {
        usage.print().ok();
        return;
    }
    let load = error.load.as_ref().filter(|_| error.causes.is_empty());
    if let Some(load) = load {
        output::note(load.render(output::is_coloured()));
    }
    // A single problem is the whole message, so a line that counts it would only repeat its file.
    if load.is_none_or(|load| load.problems.len() > 1) {
        output::note(format_args!(
            "{}{} {}",
            if load.is_some() { "\n" } else { "" },
            styled(style::BAD, "error:"),
            error.message
        ));
    }
    for cause in &error.causes {
        output::note(format_args!("  caused by: {cause}"));
    }
    if let Some(hint) = &error.hint {
        output::note(format_args!("{} {hint}", styled(style::NAME, "hint:")));
    }
}
