//! Checks whether a program can be a channel.

use serde_json::json;
use tenterhook_adapters::program::check::{self, ChannelCheckStep};
use tenterhook_protocol::escape::{escape_indented, escape_line};
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::progress::ProgressLine;
use tenterhook_terminal::output::{self, style, styled};

use crate::command::gateway::args::ChannelCheckArgs;

pub(super) async fn check(
    args: ChannelCheckArgs,
    interrupts: &Interrupts,
) -> Result<Exit, CliError> {
    let steps = {
        let _progress = ProgressLine::start(format!("checking `{}`", args.command.join(" ")));
        let token = interrupts.token();
        token
            .run_until_cancelled(check::check(&args.command, args.chat.as_deref()))
            .await
            .ok_or_else(|| CliError::new(Exit::Interrupted, "interrupted"))?
    };
    let wrong = steps.iter().filter(|step| step.problem.is_some()).count();
    if args.json {
        output::json(&json!({ "ok": wrong == 0, "steps": steps }));
    } else {
        steps.iter().for_each(show);
        output::line(format_args!(
            "{} of {} steps conform to `docs/reference/channel-protocol.md`.",
            steps.len() - wrong,
            steps.len()
        ));
    }
    Ok(if wrong == 0 { Exit::Done } else { Exit::Config })
}

fn show(step: &ChannelCheckStep) {
    if let Some(problem) = &step.problem {
        output::line(format_args!(
            "{} {}: {}",
            styled(style::BAD, "wrong"),
            step.what,
            escape_indented(problem, 6)
        ));
        return;
    }
    let note = step.note.as_deref().map(escape_line);
    let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
    output::line(format_args!(
        "{} {}{note}",
        styled(style::GOOD, "ok   "),
        step.what
    ));
}
