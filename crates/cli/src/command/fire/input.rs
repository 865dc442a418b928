//! Turns arguments and files into an event and its origin.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tenterhook_cases::{NamedCallError, named_call, named_tool};
use tenterhook_discovery::{FolderName, unknown_tool};
use tenterhook_engine::{Envelope, EventId, EventName, EventRef, JsonObject, UniqueObject};
use tenterhook_protocol::escape::escape_line;
use tenterhook_systems::example::{example, example_origin};
use tenterhook_systems::form::{Form, FormError, ReadBack, forms, host_of_form};
use tenterhook_systems::tools;
use tenterhook_terminal::output;

use crate::command::fire::args::PayloadArgs;
use crate::working_dir::current_dir;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::warning::warn;

/// The largest input that is read, in bytes.
const INPUT_LIMIT: u64 = 64 << 20;

/// Reads the JSON object of a file or of stdin.
fn read(path: &Path) -> Result<JsonObject, CliError> {
    let name = if path == Path::new("-") {
        "stdin".to_owned()
    } else {
        format!("`{}`", path.display())
    };
    let unreadable = |error: std::io::Error| {
        let is_object = path.to_string_lossy().trim_start().starts_with('{');
        let error = CliError::new(Exit::Failed, format!("cannot read {name}")).cause(&error);
        if is_object {
            error.hint("`--input` takes a file name; to pass the object on stdin, use `--input -`")
        } else {
            error
        }
    };
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin()
            .take(INPUT_LIMIT)
            .read_to_string(&mut text)
            .map_err(unreadable)?;
    } else {
        let file = std::fs::File::open(path).map_err(unreadable)?;
        file.take(INPUT_LIMIT)
            .read_to_string(&mut text)
            .map_err(unreadable)?;
    }
    let object: Result<UniqueObject, _> = serde_json::from_str(&text);
    object.map(|UniqueObject(object)| object).map_err(|error| {
        CliError::new(Exit::Config, format!("{name} is not a JSON object"))
            .cause(&error)
            .hint("pass the event's payload as an object, such as `{\"tool_name\": \"shell\"}`")
    })
}

/// The object that the arguments describe.
pub(crate) struct Payload {
    object: JsonObject,
    /// The hook system whose names the tool call has, if they are not ours.
    system: Option<&'static str>,
}

/// Refuses `--from` without anything that has the names of a system.
fn check_from(args: &PayloadArgs, system: Option<&str>) -> Result<(), CliError> {
    if args.from.is_some() && args.input.is_none() && args.tool.is_none() && !args.example {
        let message = "`--from` needs `--input`, `--tool` or `--example`";
        return Err(CliError::new(Exit::Usage, message).hint("remove `--from`"));
    }
    if let Some(host) = args.from.as_deref().and_then(host_of_form)
        && args.input.is_none()
        && (args.example || system.is_none())
    {
        let message = format!("`--from {}` needs `--input`", host.name);
        let hint = "pass an event that the agent sent to a hook";
        return Err(CliError::new(Exit::Usage, message).hint(hint));
    }
    Ok(())
}

/// Returns the arguments of a tool, each of which may be given once.
fn tool_input(arguments: &[(String, Value)]) -> Result<JsonObject, CliError> {
    let mut input = JsonObject::new();
    for (name, value) in arguments {
        if input.insert(name.clone(), value.clone()).is_some() {
            let message = format!("`--arg {name}=` appears twice");
            return Err(CliError::new(Exit::Usage, message));
        }
    }
    Ok(input)
}

/// Makes the object that the arguments describe.
pub(crate) fn payload(event: &EventName, args: &PayloadArgs) -> Result<Payload, CliError> {
    let system = args.from.as_deref().and_then(system_of_from);
    check_from(args, system)?;
    let mut object = match &args.input {
        Some(path) => read(path)?,
        None if args.example => {
            let mut object = example_origin();
            object.extend(example(event));
            let cwd = current_dir()?.to_string_lossy().into_owned();
            object.insert("cwd".to_owned(), cwd.into());
            object
        }
        None => JsonObject::new(),
    };
    if let Some(agent) = &args.agent {
        object.insert("agent".to_owned(), agent.as_str().into());
    }
    let mut payload = Payload {
        object,
        system: None,
    };
    let Some(tool) = &args.tool else {
        return Ok(payload);
    };
    if !event.info().has_field("tool_name") {
        return Err(
            CliError::new(Exit::Usage, format!("`{event}` is not a tool event"))
                .hint("remove `--tool`"),
        );
    }
    // For an example, `--from` is the form of the output, and the call may be written in any other.
    let from = system
        .filter(|system| !args.example || tools::rows(system).iter().any(|row| row.name == tool));
    let has_input = event.info().has_field("tool_input");
    if let Some((name, _)) = args.args.first().filter(|_| !has_input) {
        let message = format!("`{event}` has no tool arguments, found `--arg {name}=`");
        return Err(CliError::new(Exit::Usage, message).hint("remove `--arg`"));
    }
    let call = if has_input {
        let input = tool_input(&args.args)?;
        named_call(tool, &input, from).map_err(|error| untranslated(&error, tool))?
    } else {
        named_tool(tool, from)
    };
    if args.example && call.system.is_some() {
        let message = format!("an example has one operation, and this `{tool}` has several");
        return Err(CliError::new(Exit::Usage, message).hint("change the call to one operation"));
    }
    if let Some(note) = &call.note {
        output::note(format_args!("note: {}", escape_line(note)));
    }
    if let Some(warning) = unknown_tool(&call.tool) {
        warn(escape_line(&warning));
    }
    payload.system = call.system;
    payload
        .object
        .insert("tool_name".to_owned(), call.tool.into());
    if has_input {
        payload
            .object
            .insert("tool_input".to_owned(), call.input.into());
    }
    Ok(payload)
}

/// Returns the system whose tools `--from` names.
fn system_of_from(from: &str) -> Option<&'static str> {
    let of_host = || tools::systems().find(|system| *system == from);
    tools::system_of_form(from).or_else(of_host)
}

/// Explains why a tool call cannot be translated to our tools.
fn untranslated(error: &NamedCallError, tool: &str) -> CliError {
    let refusal = CliError::of(Exit::Usage, error);
    match error {
        NamedCallError::Ambiguous { systems, .. } => {
            let choices: Vec<String> = systems
                .iter()
                .map(|name| format!("--from {name}"))
                .collect();
            refusal.hint(format!("choose the system: {}", quoted(&choices)))
        }
        NamedCallError::Input(_) | _ => {
            refusal.hint(format!("`tenterhook tools {tool}` shows the arguments"))
        }
    }
}

/// Reads an object as an event, in the form of `--from`, or else in the form that its keys show.
pub(crate) fn event(
    name: &EventName,
    payload: &Payload,
    args: &PayloadArgs,
) -> Result<ReadBack, CliError> {
    let object = &payload.object;
    let from = args.from.as_deref().filter(|_| args.input.is_some());
    let read = if let Some(host) = from.and_then(host_of_form) {
        host.read_back(name, object)
    } else {
        from.and_then(Form::by_name)
            .map_or_else(|| Form::recognise(name, object), Ok)
            .and_then(|form| form.read(name, object))
    };
    let mut read = read.map_err(|error| refusal(&error, args))?;
    if read.origin.cwd.as_os_str().is_empty() {
        read.origin.cwd = current_dir()?;
    }
    if let Some(tools) = payload.system.and_then(tools::of) {
        read.tools = Some(tools);
    }
    Ok(read)
}

/// Explains why an object is not an event.
fn refusal(error: &FormError, args: &PayloadArgs) -> CliError {
    let refusal = CliError::of(Exit::Config, error);
    match error {
        FormError::Invalid {
            problem, fields, ..
        } => {
            let is_made = args.input.is_none();
            let refusal = CliError {
                causes: vec![problem.clone()],
                ..refusal
            };
            if is_made {
                return refusal.hint(
                    "pass the event's payload with `--input FILE`, or on stdin with `--input -`; `--example` prints an \
                     example",
                );
            }
            let is_foreign = problem.starts_with("unknown field") && args.from.is_none();
            match fields.as_slice() {
                [] => refusal,
                _ if is_foreign => refusal.hint(format!(
                    "expected the fields {}, or an event in the form of a hook system: {}",
                    quoted(fields),
                    known_forms()
                )),
                fields => refusal.hint(format!("expected the fields {}", quoted(fields))),
            }
        }
        FormError::Ambiguous { .. } => refusal.hint(format!(
            "name the form with `--from`; without it, these keys select it: {}",
            known_forms()
        )),
        FormError::NoSuchEvent { available, .. } => {
            refusal.hint(format!("available: {}", quoted(available)))
        }
        FormError::OtherEvent { .. } => {
            refusal.hint("fire the event that the input names, or name its form with `--from`")
        }
        _ => refusal,
    }
}

/// Returns every form with the keys by which it is recognised.
fn known_forms() -> String {
    let forms = forms()
        .filter(|form| !form.deciding_keys().is_empty())
        .map(|form| format!("{} ({})", form.name, form.deciding_keys()));
    forms.collect::<Vec<_>>().join(", ")
}

fn quoted(names: &[impl AsRef<str>]) -> String {
    let quoted: Vec<String> = names
        .iter()
        .map(|name| format!("`{}`", name.as_ref()))
        .collect();
    quoted.join(", ")
}

/// Returns an object in the form of `--from`.
pub(crate) fn in_form(
    name: &EventName,
    payload: Payload,
    args: &PayloadArgs,
) -> Result<Value, CliError> {
    let form = args.from.as_deref().and_then(Form::by_name);
    let read = event(name, &payload, args)?;
    let Some(form) = form.filter(|form| form.name != "tenterhook") else {
        return Ok(Value::Object(payload.object));
    };
    let Some(dialect) = form.dialect(name) else {
        // The error of `read` lists the events that this form has.
        let error = form.read(name, &JsonObject::new());
        return Err(error.map_or_else(
            |error| refusal(&error, args),
            |_| CliError::new(Exit::Config, format!("{} cannot write `{name}`", form.name)),
        ));
    };
    let envelope = Envelope::stamped(
        Arc::new(read.origin),
        1,
        EventId::generate(),
        jiff::Timestamp::now(),
    );
    let event = EventRef::new(Arc::from(read.event), Arc::new(envelope));
    let written = event
        .encoded(&*dialect)
        .map_err(|error| CliError::of(Exit::Failed, &error))?;
    serde_json::from_slice(&written)
        .map_err(|error| CliError::new(Exit::Failed, "the example is not JSON").cause(&error))
}

/// Returns the workspace that an event names as its origin, if it is a valid folder name.
pub(crate) fn workspace(read: &ReadBack) -> Option<FolderName> {
    read.origin.workspace.as_deref()?.parse().ok()
}
