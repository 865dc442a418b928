//! From arguments and files to an event and where it comes from.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tenterhook::{
    Envelope, EventId, EventName, EventRef, JsonObject, ParseEventNameError, UniqueObject, events,
};
use tenterhook_config::FolderName;
use tenterhook_dialects::example::{example, example_origin};
use tenterhook_dialects::form::{FORMS, Form, FormError, ReadBack, event_of_system, has_field};

use crate::args::PayloadArgs;
use crate::error::CliError;
use crate::exit::Exit;

/// The largest input that is read.
const INPUT_LIMIT: u64 = 64 << 20;

/// Reads an event's name, with a hint where it is unknown.
pub(crate) fn event_name(text: &str) -> Result<EventName, CliError> {
    text.parse().map_err(|error: ParseEventNameError| {
        let error = CliError::of(Exit::Usage, &error);
        let renamed = event_of_system(text).map(|kind| kind.info().name);
        let nearest = || {
            let text = snake_case(text);
            let score = |name: &str| strsim::jaro_winkler(&text, name);
            events()
                .map(|info| info.name)
                .max_by(|a, b| score(a).total_cmp(&score(b)))
                .filter(|name| score(name) > 0.8)
        };
        match renamed.or_else(nearest) {
            Some(name) => error.hint(format!("did you mean `{name}`?")),
            None => error.hint("user-defined events are named `x-<vendor>.<name>`"),
        }
    })
}

/// Returns `PreToolUse`, `preToolUse` and `pre-tool-use` as `pre_tool_use`.
fn snake_case(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    let mut was_lower = false;
    for character in text.chars().take(64) {
        if character.is_uppercase() && was_lower {
            name.push('_');
        }
        was_lower = character.is_lowercase() || character.is_numeric();
        if matches!(character, '-' | ' ') {
            name.push('_');
        } else {
            name.extend(character.to_lowercase());
        }
    }
    name
}

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
            error.hint("`--input` names a file; give the object on standard input with `--input -`")
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
            .hint("give the event's payload as an object, such as `{\"tool_name\": \"shell\"}`")
    })
}

/// Returns the working directory of this program.
pub(crate) fn current_dir() -> Result<PathBuf, CliError> {
    std::env::current_dir().map_err(|error| {
        CliError::new(Exit::Failed, "cannot determine the working directory").cause(&error)
    })
}

/// Makes the object that the arguments describe.
pub(crate) fn object(event: &EventName, args: &PayloadArgs) -> Result<JsonObject, CliError> {
    if args.from.is_some() && args.input.is_none() && !args.example {
        let message = "`--from` names the form of `--input` or `--example`, and there is neither";
        return Err(CliError::new(Exit::Usage, message).hint("leave `--from` out"));
    }
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
    let Some(tool) = &args.tool else {
        return Ok(object);
    };
    if !has_field(event.kind(), "tool_name") {
        return Err(
            CliError::new(Exit::Usage, format!("`{event}` is not an event of a tool"))
                .hint("leave `--tool` out"),
        );
    }
    object.insert("tool_name".to_owned(), tool.as_str().into());
    if !has_field(event.kind(), "tool_input") {
        if let Some((name, _)) = args.args.first() {
            let message = format!("`{event}` has no arguments of a tool, found `--arg {name}=`");
            return Err(CliError::new(Exit::Usage, message).hint("leave `--arg` out"));
        }
        return Ok(object);
    }
    let mut input = JsonObject::new();
    for (name, value) in &args.args {
        if input.insert(name.clone(), value.clone()).is_some() {
            let message = format!("`--arg {name}=` is there twice");
            return Err(CliError::new(Exit::Usage, message));
        }
    }
    object.insert("tool_input".to_owned(), input.into());
    Ok(object)
}

/// Reads the event of an object, in the form that the arguments name, or that its keys say.
pub(crate) fn event(
    name: &EventName,
    object: &JsonObject,
    args: &PayloadArgs,
) -> Result<ReadBack, CliError> {
    let form = match args.from.as_deref() {
        Some(from) if args.input.is_some() => Form::by_name(from),
        _ => None,
    };
    let read = form
        .map_or_else(|| Form::recognise(name, object), Ok)
        .and_then(|form| form.read(name, object));
    let mut read = read.map_err(|error| refusal(&error, args))?;
    if read.origin.cwd.as_os_str().is_empty() {
        read.origin.cwd = current_dir()?;
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
                    "give the event's payload with `--input FILE`, or `--input -` for standard input; `--example` \
                     prints one",
                );
            }
            let is_foreign = problem.starts_with("unknown field") && args.from.is_none();
            match fields.as_slice() {
                [] => refusal,
                _ if is_foreign => refusal.hint(format!(
                    "expected the fields {}, or the input of a hook: {}",
                    quoted(fields),
                    known_forms()
                )),
                fields => refusal.hint(format!("expected the fields {}", quoted(fields))),
            }
        }
        FormError::Ambiguous { .. } => refusal.hint(format!(
            "name the form with `--from`; without it, these keys decide: {}",
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

/// Returns every form with the keys that decide for it.
fn known_forms() -> String {
    let forms = FORMS
        .iter()
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

/// Returns an object in the form that the arguments name.
pub(crate) fn in_form(
    name: &EventName,
    object: JsonObject,
    args: &PayloadArgs,
) -> Result<Value, CliError> {
    let form = args.from.as_deref().and_then(Form::by_name);
    let read = event(name, &object, args)?;
    let Some(form) = form.filter(|form| form.name != "tenterhook") else {
        return Ok(Value::Object(object));
    };
    let Some(dialect) = form.dialect(name) else {
        // Says which events there are.
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

/// Returns the workspace that an event says it comes from, if it could be a folder's name.
pub(crate) fn workspace(read: &ReadBack) -> Option<FolderName> {
    read.origin.workspace.as_deref()?.parse().ok()
}
