//! `tenterhook fire`: one event through the hooks.

use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook::journal::{RunRecord, RunStatus};
use tenterhook::{AnyOutcome, Decision, Dispatched, MemoryJournal};

use crate::args::{FireArgs, LineArgs};
use crate::check::count;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::{self, Interrupts};
use crate::journal::{self, Tee};
use crate::output::{self, style, styled};
use crate::progress::Progress;
use crate::safe::inset;
use crate::{config_dir, hooks, input, timeline};

pub(crate) async fn fire(args: FireArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let name = input::event_name(&args.event)?;
    let path = args.input.clone();
    let object = interrupt::blocking(interrupts, move || input::read(path.as_deref())).await?;
    let (services, _) = hooks::services(&args.hooks.config)?;
    let lines = LineArgs::default();
    let start = input::directory(&object);
    let mut hook_args = args.hooks.clone();
    // The event says where it comes from, unless the call does.
    hook_args.place.workspace = hook_args.place.workspace.or(input::workspace(&object));
    let workspace = config_dir::workspace(&hook_args.place)?;
    let hooks = hooks::load(&hook_args, &lines, &start, services, interrupts).await?;
    let (event, mut origin) = input::event(&name, object).map_err(|error| {
        if args.input.is_none() {
            error.hint(
                "give the event's payload with `--input FILE`, or `--input -` for standard input",
            )
        } else {
            error
        }
    })?;
    origin.workspace = workspace.map(|name| name.to_string()).or(origin.workspace);
    let runs = Arc::new(MemoryJournal::new());
    let file = journal::open(&args.journal)?;
    let mut tee = Tee {
        sinks: vec![runs.clone()],
    };
    let file_sink = file.clone().map(|file| journal::without_secrets(file));
    tee.sinks.extend(file_sink);
    let engine = hooks::engine(&hooks.loaded, args.hooks.strict, Some(Arc::new(tee)));
    let dispatched = {
        let _progress = Progress::start(format!("waiting for the hooks of {name}"));
        let dispatcher = engine.dispatcher(origin).with_cancel(interrupts.token());
        dispatcher.dispatch_any(event).await
    };
    let runs = timeline::runs(runs.take());
    if args.json {
        output::json(&report(&dispatched, &runs));
    } else {
        show(&dispatched, &runs);
    }
    journal::close(file.as_ref())?;
    if interrupts.is_interrupted() {
        return Ok(Exit::Interrupted);
    }
    let proceeds = dispatched.decision().is_proceed() && dispatched.outcome.stop_run.is_none();
    Ok(if proceeds { Exit::Done } else { Exit::Stopped })
}

fn reason(dispatched: &Dispatched) -> Option<String> {
    let outcome = &dispatched.outcome;
    let decided = dispatched.decision().reason().map(str::to_owned);
    decided
        .or_else(|| outcome.stop_run.clone())
        .or_else(|| outcome.permission_reason.clone())
}

fn report(dispatched: &Dispatched, runs: &[RunRecord]) -> Value {
    let outcome = &dispatched.outcome;
    let runs: Vec<Value> = runs
        .iter()
        .map(|run| {
            json!({
                "hook": run.hook,
                "handler": run.handler,
                "source": run.source,
                "status": run.status,
                "effect": run.effect,
                "reason": run.reason,
                "cause": run.cause,
                "let_through": run.let_through,
                "duration_ms": run.duration_ms,
            })
        })
        .collect();
    json!({
        "permission": outcome.permission,
        "blocked": matches!(dispatched.decision(), Decision::Stop { .. }) || outcome.stop_run.is_some(),
        "reason": reason(dispatched),
        "event": dispatched.event.to_json().unwrap_or_default(),
        "rewritten": outcome.rewritten,
        "context": outcome.context,
        "inject": outcome.inject,
        "follow_up": outcome.follow_up,
        "handled": outcome.handled,
        "supply": outcome.supply,
        "collect": outcome.collect,
        "notices": outcome.notices,
        "metadata": outcome.metadata,
        "failures": outcome.failures,
        "runs": runs,
    })
}

fn show(dispatched: &Dispatched, runs: &[RunRecord]) {
    let outcome = &dispatched.outcome;
    for line in timeline::run_lines(runs) {
        output::line(line);
    }
    let ran = runs
        .iter()
        .filter(|run| run.status != RunStatus::Skipped)
        .count();
    let name = dispatched.event.event().name();
    let (word, look) = verdict(outcome);
    let reason = reason(dispatched)
        .filter(|reason| !reason.is_empty())
        .map(|reason| format!(": {}", inset(&reason, 2)));
    output::line(format_args!(
        "{name} {}{} ({} ran)",
        styled(look, word),
        reason.unwrap_or_default(),
        count(ran, "hook")
    ));
    for field in &outcome.rewritten {
        let info = dispatched.event.info();
        let rewrite = info.rewrites.iter().find(|row| row.field == field);
        let target = rewrite.map_or(field.as_str(), |row| row.target);
        let mut parts = target.split('.');
        let payload = dispatched.event.payload().ok();
        let top = payload.zip(parts.next());
        let value = top
            .and_then(|(payload, part)| payload.get(part))
            .and_then(|value| parts.try_fold(value, |value, part| value.get(part)))
            .map(ToString::to_string);
        output::line(format_args!(
            "rewritten `{target}`: {}",
            value.unwrap_or_default()
        ));
    }
    for (label, texts) in [
        ("context", &outcome.context),
        ("follow-up", &outcome.follow_up),
        ("notice", &outcome.notices),
    ] {
        for text in texts {
            output::line(format_args!("{label}: {}", inset(text, 2)));
        }
    }
}

fn verdict(outcome: &AnyOutcome) -> (&'static str, anstyle::Style) {
    use tenterhook::Permission;
    match outcome.permission {
        Permission::Deny => ("denied", style::BAD),
        _ if outcome.block.is_some() => ("blocked", style::BAD),
        _ if outcome.stop_run.is_some() => ("stops the run", style::BAD),
        Permission::Ask => ("needs the user", style::CARE),
        Permission::Allow => ("allowed", style::GOOD),
        Permission::None => ("goes on", style::GOOD),
    }
}
