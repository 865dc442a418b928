//! Reads the key `python` of a native command hook, which says how its Python script is run.

use tenterhook_process::{NotForkable, PythonScript};

use crate::declaration::HookAction;
use crate::fields::Fields;
use crate::report::Report;
use crate::source::Span;

/// The only value of the key.
pub(crate) const FORK_SERVER: &str = "fork-server";

/// Reads the key, and checks that the command is a script that a fork server can run.
pub(crate) fn read(
    report: &mut Report,
    fields: &Fields<'_>,
    action: &HookAction,
    action_span: Span,
) -> Option<PythonScript> {
    fields.choice(report, "python", &[(FORK_SERVER, ())])?;
    // Each of the two keys selects a different way to start the command.
    if let Some(other) = fields.entry("prewarm") {
        let message = "`prewarm` cannot be combined with `python`";
        report.add(
            report
                .problem(other.key_span, message)
                .allowed("either `python` or `prewarm`"),
        );
    }
    // If the action is not a command, `check_companions` has already reported the key.
    let error = match action.python_script()? {
        Ok(script) => return Some(script),
        Err(error) => error,
    };
    let problem = report
        .problem(action_span, error.to_string())
        .allowed("`python3`, flags such as `-I`, a script and its arguments, without shell syntax");
    let hint = if matches!(error, NotForkable::NotPython { .. }) {
        "name the interpreter, as in `python3 hook.py`"
    } else if matches!(error, NotForkable::ShellSyntax) {
        "set variables with `env`, or write the words as `argv`"
    } else {
        "remove `python: fork-server` to run the command as it is"
    };
    report.add(problem.hint(hint));
    None
}
