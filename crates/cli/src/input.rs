//! From a JSON object to an event and where it comes from.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenterhook::{
    AnyEvent, EventName, JsonObject, Origin, ParseEventNameError, events, parse_event, schema,
};
use tenterhook_config::FolderName;
use tenterhook_dialects::docker_agent::DockerAgent;

use crate::error::CliError;
use crate::exit::Exit;

/// Keys that say where an event comes from.
const ORIGIN_KEYS: &[&str] = &[
    "session_id",
    "cwd",
    "agent",
    "invoked_by",
    "workspace",
    "recipe",
];
/// Keys that a recorded event has and a new one gets afresh.
const STAMP_KEYS: &[&str] = &["event", "event_id", "sequence", "timestamp"];
/// The largest input that is read.
const INPUT_LIMIT: u64 = 64 << 20;

/// Reads an event's name, with a hint where it is none.
pub(crate) fn event_name(text: &str) -> Result<EventName, CliError> {
    text.parse().map_err(|error: ParseEventNameError| {
        let error = CliError::of(Exit::Usage, &error);
        let renamed = DockerAgent::event(text).map(|event| event.kind.info().name);
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
pub(crate) fn read(path: Option<&Path>) -> Result<JsonObject, CliError> {
    let Some(path) = path else {
        return Ok(JsonObject::new());
    };
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
    serde_json::from_str(&text).map_err(|error| {
        CliError::new(Exit::Config, format!("{name} is no JSON object"))
            .cause(&error)
            .hint("give the event's payload as an object, such as `{\"tool_name\": \"shell\"}`")
    })
}

/// Returns the directory that an event says it comes from, else that of this process.
pub(crate) fn directory(object: &JsonObject) -> PathBuf {
    let named = object.get("cwd").and_then(Value::as_str).map(PathBuf::from);
    named
        .filter(|dir| dir.is_absolute())
        .unwrap_or_else(|| std::env::current_dir().unwrap_or_default())
}

/// Returns the workspace that an event says it comes from, if it could be a folder's name.
pub(crate) fn workspace(object: &JsonObject) -> Option<FolderName> {
    object.get("workspace")?.as_str()?.parse().ok()
}

/// Makes the event and its origin of an object that holds both.
pub(crate) fn event(
    name: &EventName,
    mut object: JsonObject,
) -> Result<(Box<dyn AnyEvent>, Origin), CliError> {
    let schema = schema::schema();
    let pointer = format!("/events/{}/payload/properties", name.info().name);
    let has_field = |key: &str| {
        schema
            .pointer(&pointer)
            .is_some_and(|fields| fields.get(key).is_some())
    };
    let mut origin = JsonObject::new();
    for key in ORIGIN_KEYS {
        // A field of the payload may have the name of one of these, and then is both.
        let value = if has_field(key) {
            object.get(*key).cloned()
        } else {
            object.shift_remove(*key)
        };
        origin.extend(value.map(|value| ((*key).to_owned(), value)));
    }
    if let Some(agent @ Value::String(_)) = origin.get_mut("agent") {
        let name = agent.take();
        *agent = json!({ "name": name });
    }
    for key in STAMP_KEYS.iter().filter(|key| !has_field(key)) {
        object.shift_remove(*key);
    }
    let wrong = |cause: String| CliError {
        causes: vec![cause],
        ..CliError::new(Exit::Config, format!("the input is no `{name}` event"))
            .hint(format!("its fields are {}", fields(&schema, &pointer)))
    };
    let mut origin: Origin = parse(&origin, serde_json::from_value).map_err(wrong)?;
    if origin.cwd.as_os_str().is_empty() {
        origin.cwd = std::env::current_dir().unwrap_or_default();
    }
    let event = parse(&object, |object| parse_event(name, object)).map_err(wrong)?;
    Ok((event, origin))
}

/// Reads an object; the error names the key whose value is wrong.
fn parse<T>(
    object: &JsonObject,
    read: impl Fn(Value) -> Result<T, serde_json::Error>,
) -> Result<T, String> {
    let error = match read(Value::Object(object.clone())) {
        Ok(read) => return Ok(read),
        Err(error) => error.to_string(),
    };
    if ["unknown field", "missing field"]
        .iter()
        .any(|start| error.starts_with(start))
    {
        return Err(error);
    }
    // The message does not say where the value stands: it is below the key without which there is another one.
    let is_culprit = |key: &&String| {
        let mut others = object.clone();
        others.shift_remove(*key);
        read(Value::Object(others)).map_or_else(|other| other.to_string() != error, |_| true)
    };
    Err(match object.keys().find(is_culprit) {
        Some(key) => format!("`{key}`: {error}"),
        None => error,
    })
}

fn fields(schema: &Value, pointer: &str) -> String {
    let fields = schema.pointer(pointer).and_then(Value::as_object);
    let names: Vec<String> = fields
        .into_iter()
        .flatten()
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if names.is_empty() {
        "open".to_owned()
    } else {
        names.join(", ")
    }
}
