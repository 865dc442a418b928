//! `tenterhook worker`: checks whether a program can serve hooks.

use serde_json::json;
use tenterhook_process::{Command, Program};
use tenterhook_runners::worker::{CheckStep, check};

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use tenterhook_protocol::escape::escape_indented;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::progress::ProgressLine;
use tenterhook_terminal::output::{self, style, styled};

#[cfg(unix)]
#[derive(Debug, Parser)]
pub(crate) struct WorkerArgs {
    #[command(subcommand)]
    pub(crate) command: WorkerCommand,
}

#[cfg(unix)]
#[derive(Debug, Subcommand)]
pub(crate) enum WorkerCommand {
    /// Check whether a program implements the worker protocol.
    Check {
        /// A script that the worker loads, with at least one hook.
        #[arg(long, value_name = "FILE")]
        script: PathBuf,

        /// The hook system of the script's hooks.
        #[arg(long, value_name = "NAME", default_value = "tenterhook")]
        api: String,

        /// Print a single JSON object.
        #[arg(long)]
        json: bool,

        /// The worker program and its arguments.
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
}

pub(crate) async fn worker(args: WorkerArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let WorkerCommand::Check {
        script,
        api,
        json,
        command,
    } = args.command;
    let script = std::path::absolute(&script).unwrap_or(script);
    if !script.is_file() {
        let message = format!("`{}` is not a regular file", script.display());
        return Err(CliError::new(Exit::Usage, message)
            .hint("name a script that the worker can load with `--script FILE`"));
    }
    let program = Command::new(Program::exec(&command));
    let steps = {
        let _progress = ProgressLine::start(format!("checking `{}`", command.join(" ")));
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

fn show(steps: &[CheckStep], wrong: usize) {
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
                escape_indented(problem, 6)
            )),
        }
    }
    output::line(format_args!(
        "{} of {} steps conform to `docs/reference/worker-protocol.md`.",
        steps.len() - wrong,
        steps.len()
    ));
}
