//! `tenterhook worker`: whether a program can serve hooks.

use serde_json::json;
use tenterhook_handlers::worker::{Step, check};
use tenterhook_process::{Command, Program};

use crate::args::{WorkerArgs, WorkerCommand};
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::{self, style, styled};
use crate::progress::Progress;
use crate::safe::inset;

pub(crate) async fn worker(args: WorkerArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let WorkerCommand::Check {
        script,
        api,
        json,
        command,
    } = args.command;
    let script = std::path::absolute(&script).unwrap_or(script);
    if !script.is_file() {
        let message = format!("`{}` is no file", script.display());
        return Err(CliError::new(Exit::Usage, message)
            .hint("name a script that the worker can load with `--script FILE`"));
    }
    let program = Command::new(Program::exec(&command));
    let steps = {
        let _progress = Progress::start(format!("speaking with `{}`", command.join(" ")));
        let token = interrupts.token();
        token
            .run_until_cancelled(check(&program, &script, &api))
            .await
            .ok_or_else(|| CliError::new(Exit::Interrupted, "interrupted"))?
    };
    let wrong = steps.iter().filter(|step| step.problem.is_some()).count();
    if json {
        output::json(&json!({ "ok": wrong == 0, "steps": steps }));
    } else {
        show(&steps, wrong);
    }
    Ok(if wrong == 0 { Exit::Done } else { Exit::Config })
}

fn show(steps: &[Step], wrong: usize) {
    for step in steps {
        match &step.problem {
            None => output::line(format_args!(
                "{} {}",
                styled(style::GOOD, "ok   "),
                step.what
            )),
            Some(problem) => output::line(format_args!(
                "{} {}: {}",
                styled(style::BAD, "wrong"),
                step.what,
                inset(problem, 6)
            )),
        }
    }
    output::line(format_args!(
        "{} of {} steps are as `docs/worker-protocol.md` says.",
        steps.len() - wrong,
        steps.len()
    ));
}
