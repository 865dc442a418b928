//! `tenterhook fire`: sends one event through the hooks and shows the decision.

pub(crate) mod args;
mod input;

use std::sync::Arc;

use serde_json::Value;
use tenterhook_engine::{EventClass, EventName, MemoryJournal};
use tenterhook_systems::form::ReadBack;

use crate::command::fire::args::{FireArgs, PayloadArgs};
use crate::command::host_args::warn_of_switched_off;
use crate::event_name::parse_event_name;
use crate::working_dir::current_dir;
use tenterhook_setup::approval;
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::config_dir;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exceptions;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::extensions::{self, PrintingHost};
use tenterhook_setup::hooks;
use tenterhook_setup::journal::{self, FanOutSink};
use tenterhook_terminal::fire_report::FireReport;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output;
use tenterhook_terminal::output::progress::ProgressLine;
use tenterhook_terminal::timeline;

pub(crate) async fn fire(args: FireArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let name = parse_event_name(&args.event)?;
    let explanation = explanation(&args, &name);
    let (event_name, payload) = (name.clone(), args.payload);
    let read = move || FireInput::read(&event_name, &payload);
    let read = match run_blocking(&interrupts.token(), read).await? {
        FireInput::Event(read) => read,
        FireInput::Example(example) => {
            output::json(&example);
            return Ok(Exit::Done);
        }
    };
    let mut options = args.hooks.options();
    options.script.clone_from(&args.script);
    // A workspace on the command line takes precedence over the event's.
    options.place.workspace = options.place.workspace.or(input::workspace(&read));
    let workspace = config_dir::workspace(&options.place)?;
    // An agent changes its folder while it works in a project, so the folder of the event does not name the project.
    let start = current_dir()?;
    let (services, _) = hooks::services(args.hooks.config.config_dir.as_deref())?;
    let (output, services) = extensions::recorded(Arc::new(PrintingHost::default()), services);
    let token = interrupts.token();
    let hooks = hooks::load_for_event(&options, &start, services, &token).await?;
    hooks.refuse_broken(options.lenient)?;
    let ReadBack {
        event,
        mut origin,
        tools,
    } = read;
    origin.workspace = workspace.map(|name| name.to_string()).or(origin.workspace);
    let runs = Arc::new(MemoryJournal::new());
    let file = args.journal.open()?;
    output.record_in(file.clone().map(|file| file as _));
    let mut tee = FanOutSink {
        sinks: vec![runs.clone()],
    };
    tee.sinks.extend(file.clone().map(|file| file as _));
    let builder = exceptions::trial_builder(&start);
    let strict = args.hooks.strict;
    let engine = hooks::engine_of(builder, &hooks.loaded, strict, Some(Arc::new(tee)));
    let dispatched = {
        let _progress = ProgressLine::start(format!("waiting for the hooks of {name}"));
        let dispatcher = engine.dispatcher(origin).with_cancel(interrupts.token());
        let dispatcher = match tools {
            Some(tools) => dispatcher.with_tools(tools),
            None => dispatcher,
        };
        dispatcher.dispatch_any(event).await
    };
    // The journal is closed before the report: once the report is printed, nothing may fail and contradict it.
    journal::close(file.as_ref())?;
    let is_gate = dispatched.event.info().class == EventClass::Gate;
    if is_gate && interrupts.is_interrupted() {
        // A cancelled hook may have been about to deny the operation.
        return Err(CliError::new(Exit::Interrupted, "interrupted"));
    }
    let runs = timeline::runs(runs.take());
    let diverged = serde_json::json!(hooks.loaded.diverged);
    let fired = FireReport::new(dispatched, runs, explanation, diverged);
    if args.json {
        let report = fired.to_json().map_err(|error| {
            CliError::of(Exit::Failed, &error).hint("run without `--json` to see the decision")
        })?;
        output::json(&report);
    } else {
        fired.show();
    }
    approval::warn_of_unasked(&hooks.loaded.project_hooks);
    // The verdict is known, and no look at the settings of agents may change it.
    warn_of_switched_off(interrupts).await.ok();
    fired.explain_to_host();
    Ok(if interrupts.is_interrupted() {
        Exit::Interrupted
    } else if fired.may_proceed() {
        Exit::Done
    } else {
        Exit::Stopped
    })
}

/// What the command line requests.
enum FireInput {
    /// An event to send through the hooks.
    Event(ReadBack),
    /// An example payload to print.
    Example(Value),
}

impl FireInput {
    fn read(event: &EventName, payload: &PayloadArgs) -> Result<Self, CliError> {
        let made = input::payload(event, payload)?;
        if payload.example {
            return input::in_form(event, made, payload).map(Self::Example);
        }
        input::event(event, &made, payload).map(Self::Event)
    }
}

/// Returns the command that shows which hooks match a call like this one. It leaves out values that would need
/// quotes in a shell.
fn explanation(args: &FireArgs, event: &EventName) -> String {
    let script = args.script.as_ref().and_then(|path| path.to_str());
    let options = [
        ("script", script),
        ("agent", args.payload.agent.as_deref()),
        ("tool", args.payload.tool.as_deref()),
    ];
    let mut command = format!("tenterhook explain {event}");
    for (option, value) in options {
        let is_word = |value: &&str| {
            value
                .chars()
                .all(|it| it.is_alphanumeric() || "_-./".contains(it))
        };
        if let Some(value) = value.filter(is_word) {
            command = format!("{command} --{option} {value}");
        }
    }
    command
}
