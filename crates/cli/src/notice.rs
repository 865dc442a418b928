//! Prints errors, warnings, problems and hints on stderr.

use tenterhook_setup::error::CliError;
use tenterhook_setup::warning::Notice;
use tenterhook_terminal::line_source::AskError;
use tenterhook_terminal::output::script_output::script_line;
use tenterhook_terminal::output::{self, style, styled};

use tenterhook_setup::exit::Exit;

/// Shows a notice.
pub(crate) fn show(notice: Notice<'_>) {
    match notice {
        Notice::Warning(text) => {
            output::note(format_args!("{} {text}", styled(style::CARE, "warning:")));
        }
        Notice::Hint(text) => {
            output::note(format_args!("{} {text}", styled(style::NAME, "hint:")));
        }
        Notice::Note(text) => output::note(format_args!("note: {text}")),
        Notice::Problem(problem) => output::note(problem.render(output::is_coloured())),
        Notice::Output { worker, line } => output::note(script_line(worker, line)),
    }
}

/// Prints an error, its causes and its hint.
pub(crate) fn show_error(error: &CliError) {
    if let Some(usage) = &error.usage {
        output::note(usage.trim_end());
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

/// Creates the error for arguments that cannot be parsed.
pub(crate) fn usage_error(usage: &clap::Error) -> CliError {
    let usage = usage.render();
    let text = usage.to_string();
    let first = text.lines().next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(first);
    CliError {
        usage: Some(usage.ansi().to_string()),
        ..CliError::new(Exit::Usage, message)
    }
}

/// Creates the error for a question that was not answered. `unchanged` names what was not done.
pub(crate) fn unanswered(error: &AskError, unchanged: &str) -> CliError {
    match error {
        AskError::Interrupted => {
            CliError::new(Exit::Interrupted, format!("interrupted; {unchanged}"))
        }
        AskError::Read(_) => CliError::of(Exit::Failed, error),
    }
}
