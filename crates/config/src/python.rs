//! The key `python` of a native command hook: how its Python script is run.

use tenterhook_process::{NotForkable, Program, PythonScript};

use crate::draft::Action;
use crate::fields::Fields;
use crate::report::Report;
use crate::source::Span;

/// The one value that the key has.
pub(crate) const FORK_SERVER: &str = "fork-server";

/// What a hook beside the key cannot have: both say in their own way how the command is run.
const OTHER_WAYS: [&str; 2] = ["prewarm", "answer"];

/// Reads the key, and checks that the command is a script that a fork server can run.
pub(crate) fn read(
    report: &mut Report,
    fields: &Fields<'_>,
    action: &Action,
    action_span: Span,
) -> Option<PythonScript> {
    fields.choice(report, "python", &[(FORK_SERVER, ())])?;
    for other in OTHER_WAYS.iter().filter_map(|key| fields.entry(key)) {
        let message = format!("`{}` beside `python`", other.key);
        report.add(
            report
                .problem(other.key_span, message)
                .allowed("`python` alone, or `prewarm` and `answer`"),
        );
    }
    // Anything but a command is reported as a companion that has no meaning.
    let error = match script(action)? {
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

/// Returns the script that a command runs; `None` is no command.
pub(crate) fn script(action: &Action) -> Option<Result<PythonScript, NotForkable>> {
    let program = match action {
        Action::Line { shell, line } => Program::Shell {
            shell: *shell,
            line: line.clone(),
        },
        Action::Argv(argv) => Program::exec(argv),
        Action::Builtin { .. } | Action::Model(_) | Action::Http(_) => return None,
    };
    Some(PythonScript::of(&program))
}
