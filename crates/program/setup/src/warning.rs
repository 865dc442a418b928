//! Notices for the person at the program. The program decides how they are shown.

use std::fmt::Display;
use std::sync::OnceLock;

use tenterhook_hookfile::Problem;

/// What the person at the program should know, although the work continues. Texts are safe to print.
#[derive(Debug, Clone, Copy)]
pub enum Notice<'a> {
    /// Something that may not be what the person wants.
    Warning(&'a str),
    /// What the person can do next.
    Hint(&'a str),
    /// A fact that explains what follows.
    Note(&'a str),
    /// A problem in a file, which does not prevent loading.
    Problem(&'a Problem),
    /// A line that a script printed. It may have control characters and secrets.
    Output {
        /// The name of the script's worker.
        worker: &'a str,
        /// The line.
        line: &'a str,
    },
}

/// How notices are shown.
static SHOW: OnceLock<fn(Notice<'_>)> = OnceLock::new();

/// Sets how notices are shown in this process. Only the first call has an effect. Without it, they are not shown.
pub fn show_with(show: fn(Notice<'_>)) {
    SHOW.get_or_init(|| show);
}

pub(crate) fn show(notice: Notice<'_>) {
    if let Some(show) = SHOW.get() {
        show(notice);
    }
}

/// Shows a warning.
pub fn warn(text: impl Display) {
    show(Notice::Warning(&text.to_string()));
}

/// Shows a line that a script printed.
pub fn show_output(worker: &str, line: &str) {
    show(Notice::Output { worker, line });
}

/// Shows problems that do not prevent loading.
pub fn show_warnings(warnings: &[Problem]) {
    for problem in warnings {
        show(Notice::Problem(problem));
    }
}

/// Shows what the user can do next.
pub fn hint(text: &str) {
    show(Notice::Hint(text));
}
