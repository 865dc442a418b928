//! `tenterhook fire`: one event through the hooks.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook::journal::{RunRecord, RunStatus};
use tenterhook::{Decision, Dispatched, EventClass, HookId, MemoryJournal, Permission, StopKind};
use tenterhook_config::DivergedHook;
use tenterhook_dialects::form::ReadBack;

use crate::args::{FireArgs, LineArgs};
use crate::check::count;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::{self, Interrupts};
use crate::journal::{self, Tee};
use crate::output::{self, style, styled};
use crate::progress::Progress;
use crate::safe::{inset, safe_line};
use crate::{config_dir, hooks, input, timeline};

pub(crate) async fn fire(args: FireArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let name = input::event_name(&args.event)?;
    let (event_name, payload) = (name.clone(), args.payload);
    let read = move || {
        let object = input::object(&event_name, &payload)?;
        if payload.example {
            return input::in_form(&event_name, object, &payload).map(Input::Example);
        }
        input::event(&event_name, &object, &payload).map(Input::Event)
    };
    let read = match interrupt::blocking(interrupts, read).await? {
        Input::Event(read) => read,
        Input::Example(example) => {
            output::json(&example);
            return Ok(Exit::Done);
        }
    };
    let mut hook_args = args.hooks.clone();
    // The event says where it comes from, unless the call does.
    hook_args.place.workspace = hook_args.place.workspace.or(input::workspace(&read));
    let workspace = config_dir::workspace(&hook_args.place)?;
    let start = if read.origin.cwd.is_absolute() {
        read.origin.cwd.clone()
    } else {
        input::current_dir()?
    };
    let (services, _) = hooks::services(&args.hooks.config)?;
    let lines = LineArgs::default();
    let hooks = hooks::load(&hook_args, &lines, &start, services, interrupts).await?;
    let ReadBack {
        event,
        mut origin,
        tools,
    } = read;
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
        let dispatcher = match tools {
            Some(tools) => dispatcher.with_tools(tools),
            None => dispatcher,
        };
        dispatcher.dispatch_any(event).await
    };
    // A report says what happened, so nothing that can fail comes after it.
    journal::close(file.as_ref())?;
    let is_gate = dispatched.event.info().class == EventClass::Gate;
    if is_gate && interrupts.is_interrupted() {
        // Hooks that were cancelled may have been about to object.
        return Err(CliError::new(Exit::Interrupted, "interrupted"));
    }
    let runs = timeline::runs(runs.take());
    let fired = Fired {
        diverged: hooks.loaded.diverged,
        decision: decision_of(&dispatched),
        dispatched,
        runs,
    };
    if args.json {
        output::json(&fired.report()?);
    } else {
        fired.show();
    }
    fired.explain_to_host();
    Ok(if interrupts.is_interrupted() {
        Exit::Interrupted
    } else {
        fired.status()
    })
}

/// What the arguments ask for.
enum Input {
    /// Hooks run on this event.
    Event(ReadBack),
    /// This is printed.
    Example(Value),
}

/// An event that went through its hooks.
struct Fired {
    dispatched: Dispatched,
    decision: Decision,
    runs: Vec<RunRecord>,
    /// Approved hooks that changed in the project or are gone.
    diverged: Vec<DivergedHook>,
}

/// Returns the verdict of the hooks. Where a hook of a gate ends the run, the operation must not happen either: a host
/// that calls this program sees its exit status, and there is no run that could be ended later.
fn decision_of(dispatched: &Dispatched) -> Decision {
    let outcome = &dispatched.outcome;
    let info = dispatched.event.info();
    let decision = dispatched.decision();
    let is_stopped = matches!(decision, Decision::Stop { .. });
    match &outcome.stop_run {
        Some(reason) if info.class == EventClass::Gate && !is_stopped => Decision::Stop {
            reason: reason.clone(),
            by: outcome.run_stopped_by.clone(),
            kind: StopKind::RunEnded,
        },
        _ => decision,
    }
}

impl Fired {
    fn status(&self) -> Exit {
        let outcome = &self.dispatched.outcome;
        // An observer stops nothing by itself, but its hooks may end the run.
        match self.decision {
            Decision::Proceed if outcome.stop_run.is_none() => Exit::Done,
            Decision::Proceed | Decision::Ask { .. } | Decision::Stop { .. } => Exit::Stopped,
        }
    }

    fn name(&self) -> &str {
        self.dispatched.event.event().name()
    }

    /// Returns the hook that asks or stops, and why.
    fn objection(&self) -> Option<(Option<&HookId>, &str)> {
        match &self.decision {
            Decision::Proceed => None,
            Decision::Ask { reason, by } | Decision::Stop { reason, by, .. } => {
                Some((by.as_ref(), reason))
            }
        }
    }

    /// Writes why the operation does not proceed to standard error, which is what other agents show. On a terminal the
    /// verdict is there already.
    fn explain_to_host(&self) {
        let is_shown = io::stdout().is_terminal() && io::stderr().is_terminal();
        if self.objection().is_some() && !is_shown {
            output::note(format_args!("{}: {}", self.name(), self.verdict().0));
        }
    }

    /// Says what was decided, by whom and why.
    fn verdict(&self) -> (String, anstyle::Style) {
        let outcome = &self.dispatched.outcome;
        let (text, look) = match &self.decision {
            Decision::Ask { by, .. } => {
                let hook = by
                    .as_ref()
                    .map(|hook| format!("`{}`", safe_line(hook.as_str())));
                (
                    format!("{} asks", hook.as_deref().unwrap_or("a hook")),
                    style::CARE,
                )
            }
            Decision::Stop { by, .. } => {
                let by = by
                    .as_ref()
                    .map(|hook| format!(" by `{}`", safe_line(hook.as_str())));
                (format!("stopped{}", by.unwrap_or_default()), style::BAD)
            }
            Decision::Proceed if outcome.stop_run.is_some() => {
                ("the run ends".to_owned(), style::BAD)
            }
            Decision::Proceed if outcome.permission == Permission::Allow => {
                ("allowed".to_owned(), style::GOOD)
            }
            Decision::Proceed => ("not stopped".to_owned(), style::GOOD),
        };
        let reason = self.objection().map(|(_, reason)| reason);
        let reason = reason
            .or(outcome.stop_run.as_deref())
            .or(outcome.permission_reason.as_deref())
            .filter(|reason| !reason.is_empty());
        let reason = reason.map(|reason| format!(": {}", inset(reason, 2)));
        (format!("{text}{}", reason.unwrap_or_default()), look)
    }

    fn report(&self) -> Result<Value, CliError> {
        let outcome = &self.dispatched.outcome;
        let event = self.dispatched.event.to_json().map_err(|error| {
            CliError::of(Exit::Failed, &error).hint("leave `--json` out to see the decision")
        })?;
        let run = |run: &RunRecord| {
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
        };
        let runs: Vec<Value> = self.runs.iter().map(run).collect();
        let (decision, kind) = match &self.decision {
            Decision::Proceed => ("proceed", None),
            Decision::Ask { .. } => ("ask", None),
            Decision::Stop { kind, .. } => ("stop", Some(kind)),
        };
        let (by, reason) = self.objection().unzip();
        Ok(json!({
            "decision": decision,
            "reason": reason.or(outcome.stop_run.as_deref()).or(outcome.permission_reason.as_deref()),
            "by": by.flatten(),
            "kind": kind,
            "error": null,
            "permission": outcome.permission,
            "blocked": decision == "stop" || outcome.stop_run.is_some(),
            "event": event,
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
            "diverged": self.diverged,
        }))
    }

    fn show(&self) {
        for line in timeline::run_lines(&self.runs) {
            output::line(line);
        }
        let outcome = &self.dispatched.outcome;
        let name = self.name();
        let (verdict, look) = self.verdict();
        output::line(format_args!(
            "{name}: {}{}",
            styled(look, verdict),
            self.how_many()
        ));
        for field in &outcome.rewritten {
            self.show_rewritten(field);
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

    /// Says how many hooks ran, or how to find out why none did.
    fn how_many(&self) -> String {
        let name = self.name();
        let ran = self
            .runs
            .iter()
            .filter(|run| run.status != RunStatus::Skipped)
            .count();
        if self.runs.is_empty() {
            format!("; no hook matched (`tenterhook explain {name}` shows why)")
        } else {
            format!(" ({} ran)", count(ran, "hook"))
        }
    }

    fn show_rewritten(&self, field: &str) {
        let event = &self.dispatched.event;
        let rewrite = event.info().rewrites.iter().find(|row| row.field == field);
        let target = rewrite.map_or(field, |row| row.target);
        let mut parts = target.split('.');
        let payload = event.payload().ok();
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
}
