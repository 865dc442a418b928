//! A tool call as a person writes it: under the names of any hook system.
//!
//! A program that makes a call knows its own system. A person who writes `bash {"command": "ls"}` may not, so this
//! module finds the system whose tool has these arguments.

use tenterhook_engine::{CanonicalCall, JsonObject, NATIVE_SYSTEM, ToolInputError, ToolNames as _};
use tenterhook_systems::tools::{
    CANONICAL_TOOLS, canonical_name, canonical_name_of_any, canonical_tool, table,
};
use tenterhook_systems::{HookSystem, SYSTEMS};

/// A call in the form in which it is sent to hooks.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedCall {
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub input: JsonObject,
    /// The system whose names the call still has, because it consists of several operations. `None` if the call is
    /// canonical.
    pub system: Option<&'static str>,
    /// What was translated, in one sentence for the person. `None` if the call is sent as it was written.
    pub note: Option<String>,
}

/// Why a call cannot be translated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NamedCallError {
    /// The arguments fit the tools of several systems, and these tools differ.
    #[error("`{tool}` with these arguments means different things in {}", listed(.systems))]
    Ambiguous {
        /// The name of the tool.
        tool: String,
        /// The systems, of which the caller has to choose one.
        systems: Vec<&'static str>,
    },
    /// The arguments cannot be translated.
    #[error(transparent)]
    Input(#[from] ToolInputError),
}

/// One meaning of a call.
struct Reading {
    /// The systems in which the call has this meaning.
    systems: Vec<&'static str>,
    operations: Vec<CanonicalCall>,
}

/// How well the arguments of a call fit a tool. A later value is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// A required argument is missing.
    Incomplete,
    /// Every required argument is there, and others that the tool does not have.
    Extended,
    /// Every argument is one of the tool's, and no required one is missing.
    Exact,
}

/// Translates a call that a person wrote to the canonical tools. `system` is the hook system that the person named.
/// Without it, the arguments decide which system's tool is meant. Our own tools come first. A tool that no system
/// knows is not translated.
///
/// ```
/// use serde_json::json;
/// use tenterhook_cases::named_call;
///
/// let input = json!({ "command": "ls" });
/// let call = named_call("bash", input.as_object().ok_or("not an object")?, None)?;
/// assert_eq!(call.tool, "shell");
/// assert_eq!(call.input["cmd"], "ls");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Fails if the call has different meanings in several systems, or its arguments cannot be translated.
pub fn named_call(
    tool: &str,
    input: &JsonObject,
    system: Option<&str>,
) -> Result<NamedCall, NamedCallError> {
    let sent_unchanged = |note| NamedCall {
        tool: tool.to_owned(),
        input: input.clone(),
        system: None,
        note,
    };
    let readings = match system.and_then(known_system) {
        Some(system) if system.name == NATIVE_SYSTEM => Vec::new(),
        Some(system) if !has_tool(system, tool) => {
            return Ok(sent_unchanged(Some(no_such_tool(system.name, tool))));
        }
        Some(system) => vec![Reading::of(system, tool, input)?],
        None => readings(tool, input)?,
    };
    let best = readings.iter().map(Reading::fit).max();
    let mut fitting = readings
        .into_iter()
        .filter(|reading| Some(reading.fit()) == best);
    let Some(reading) = fitting.next() else {
        return Ok(sent_unchanged(None));
    };
    // The meaning in our own agent comes first. It wins unless the arguments fit another system better.
    if reading.systems.contains(&NATIVE_SYSTEM) || reading.is_unchanged(tool, input) {
        return Ok(sent_unchanged(None));
    }
    let others: Vec<&'static str> = fitting
        .filter_map(|other| other.systems.first().copied())
        .collect();
    if !others.is_empty() {
        let first = reading.systems.into_iter().take(1);
        return Err(NamedCallError::Ambiguous {
            tool: tool.to_owned(),
            systems: first.chain(others).collect(),
        });
    }
    Ok(reading.into_call(tool, input))
}

/// Translates the name of a tool, for events that carry no arguments.
pub fn named_tool(tool: &str, system: Option<&str>) -> NamedCall {
    let named = |tool: &str, note| NamedCall {
        tool: tool.to_owned(),
        input: JsonObject::new(),
        system: None,
        note,
    };
    let canonical = match system.and_then(known_system) {
        Some(system) if system.name != NATIVE_SYSTEM && !has_tool(system, tool) => {
            return named(tool, Some(no_such_tool(system.name, tool)));
        }
        Some(system) => canonical_name(system.name, tool),
        None if canonical_tool(tool).is_some() => tool,
        None => canonical_name_of_any(tool),
    };
    let systems = systems_with(tool)
        .filter(|system| canonical_name(system.name, tool) == canonical)
        .map(|system| system.name);
    let note = (canonical != tool).then(|| {
        let systems: Vec<&str> = systems.collect();
        format!(
            "{}; sending `{canonical}`",
            origin(tool, canonical, &systems)
        )
    });
    named(canonical, note)
}

/// Returns every meaning of a call, our own first. Systems in which it means the same share one entry.
fn readings(tool: &str, input: &JsonObject) -> Result<Vec<Reading>, ToolInputError> {
    let mut readings: Vec<Reading> = Vec::new();
    if canonical_tool(tool).is_some() {
        readings.push(Reading::own(tool, input));
    }
    let mut refused = None;
    for system in systems_with(tool) {
        match Reading::of(system, tool, input) {
            Err(error) => refused = refused.or(Some(error)),
            Ok(reading) => {
                let mut known = readings.iter_mut();
                match known.find(|known| known.operations == reading.operations) {
                    Some(known) => known.systems.extend(reading.systems),
                    None => readings.push(reading),
                }
            }
        }
    }
    match refused {
        Some(error) if readings.is_empty() => Err(error),
        _ => Ok(readings),
    }
}

impl Reading {
    /// Returns the meaning of a call of our own agent.
    fn own(tool: &str, input: &JsonObject) -> Self {
        let operations = table(NATIVE_SYSTEM).map(|table| table.operations(tool, input));
        let operations = operations.and_then(|operations| operations.ok().flatten());
        Self {
            systems: vec![NATIVE_SYSTEM],
            operations: operations.unwrap_or_else(|| unchanged(tool, input)),
        }
    }

    /// Returns the meaning of a call in another system.
    fn of(system: &HookSystem, tool: &str, input: &JsonObject) -> Result<Self, ToolInputError> {
        let operations = system.tools.operations(tool, input)?;
        Ok(Self {
            systems: vec![system.name],
            operations: operations.unwrap_or_else(|| unchanged(tool, input)),
        })
    }

    fn is_unchanged(&self, tool: &str, input: &JsonObject) -> bool {
        self.operations == unchanged(tool, input)
    }

    fn fit(&self) -> Fit {
        let fits = self.operations.iter().map(fit);
        fits.min().unwrap_or(Fit::Incomplete)
    }

    fn into_call(mut self, tool: &str, input: &JsonObject) -> NamedCall {
        let count = self.operations.len();
        if let Some(CanonicalCall {
            tool: canonical,
            input,
        }) = self.operations.pop().filter(|_| count == 1)
        {
            let origin = origin(tool, &canonical, &self.systems);
            let note = format!("{origin}; sending {}", described(&canonical, &input));
            return NamedCall {
                tool: canonical,
                input,
                system: None,
                note: Some(note),
            };
        }
        let system = self.systems.first().copied();
        let owner = system.unwrap_or_default();
        NamedCall {
            tool: tool.to_owned(),
            input: input.clone(),
            system,
            note: Some(format!(
                "this `{tool}` of {owner} consists of {count} operations; hooks judge each of them"
            )),
        }
    }
}

/// Returns how well the arguments of one operation fit its canonical tool.
fn fit(call: &CanonicalCall) -> Fit {
    let Some(tool) = CANONICAL_TOOLS.iter().find(|tool| tool.name == call.tool) else {
        return Fit::Incomplete;
    };
    let mut arguments = tool.arguments.iter();
    if !arguments.all(|name| name.ends_with('?') || call.input.contains_key(*name)) {
        return Fit::Incomplete;
    }
    let is_known = |key: &String| {
        let mut arguments = tool.arguments.iter();
        arguments.any(|name| name.trim_end_matches('?') == key)
    };
    if call.input.keys().all(is_known) {
        Fit::Exact
    } else {
        Fit::Extended
    }
}

/// Returns the other systems that have a tool with this name.
fn systems_with(tool: &str) -> impl Iterator<Item = &'static HookSystem> {
    let systems = SYSTEMS.iter().copied();
    systems.filter(move |system| system.name != NATIVE_SYSTEM && has_tool(system, tool))
}

fn known_system(name: &str) -> Option<&'static HookSystem> {
    SYSTEMS.iter().copied().find(|system| system.name == name)
}

fn has_tool(system: &HookSystem, tool: &str) -> bool {
    system.tools.rows.iter().any(|row| row.name == tool)
}

fn unchanged(tool: &str, input: &JsonObject) -> Vec<CanonicalCall> {
    vec![CanonicalCall {
        tool: tool.to_owned(),
        input: input.clone(),
    }]
}

fn no_such_tool(system: &str, tool: &str) -> String {
    format!("{system} has no built-in tool `{tool}`, so the call is sent unchanged")
}

/// Describes in which systems a call has this name or these arguments.
fn origin(tool: &str, canonical: &str, systems: &[&str]) -> String {
    let systems = listed(systems);
    if tool == canonical {
        format!("these are the arguments that `{tool}` has in {systems}")
    } else {
        format!("`{tool}` is the name of `{canonical}` in {systems}")
    }
}

/// Describes a call by the names of its arguments. The values may be long, and the person knows them.
fn described(tool: &str, input: &JsonObject) -> String {
    let names: Vec<String> = input.keys().map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        format!("`{tool}`")
    } else {
        format!("`{tool}` with {}", listed(&names))
    }
}

/// Joins words with commas and `and`.
pub fn listed(words: &[impl AsRef<str>]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tenterhook_systems::tools::system_of_form;

    use super::*;

    fn object(value: &Value) -> JsonObject {
        value.as_object().unwrap().clone()
    }

    /// A call as a person writes it, the system that the person names, the call that is sent, and a part of the note.
    const WRITTEN: &str = r#"[
["bash", {"command": "ls"}, null, "shell", {"cmd": "ls"}, "`bash` is the name of `shell` in kodelet, pi and copilot; sending `shell` with `cmd`"],
["bash", {"command": "ls", "description": "list"}, null, "shell", {"cmd": "ls", "description": "list"}, "in kodelet, pi and copilot"],
["bash", {"command": "ls"}, "pi", "shell", {"cmd": "ls"}, "in pi"],
["bash", {}, null, "shell", {}, "sending `shell`"],
["terminal", {"cmd": "ls"}, null, "shell", {"cmd": "ls"}, "in operator"],
["bash_manager", {"command": "ls"}, null, "shell", {"cmd": "ls"}, "in morphix"],
["file_read", {"file_path": "a", "line_limit": 2}, null, "read_file", {"path": "a", "limit": 2}, "sending `read_file` with `path` and `limit`"],
["file_manager", {"action": "delete", "path": "a"}, null, "delete_file", {"path": "a"}, "in morphix"],
["read", {"path": "a"}, null, "read_file", {"path": "a"}, "in operator and pi"],
["read", {"path": "a", "offset": 3}, "operator", "read_file", {"path": "a", "offset": 4}, "in operator"],
["read", {"path": "a", "offset": 3}, "pi", "read_file", {"path": "a", "offset": 3}, "in pi"],
["shell", {"command": "ls"}, null, "shell", {"cmd": "ls"}, "these are the arguments that `shell` has in docker-agent"],
["read_file", {"path": "a", "start_line": 3}, null, "read_file", {"path": "a", "offset": 3}, "in operator"],
["subagent", {"question": "why"}, null, "task", {"prompt": "why"}, "in kodelet"],
["terminal", {"cmd": "ls"}, "kodelet", "terminal", {"cmd": "ls"}, "kodelet has no built-in tool `terminal`"],
["shell", {"cmd": "ls"}, null, "shell", {"cmd": "ls"}, null],
["shell", {"cmd": "ls", "command": "rm"}, null, "shell", {"cmd": "ls", "command": "rm"}, null],
["bash", {"command": "ls"}, "native", "bash", {"command": "ls"}, null],
["transfer_task", {"task": "t", "agent": "a"}, null, "transfer_task", {"task": "t", "agent": "a"}, null],
["x_deploy", {"command": "ls"}, null, "x_deploy", {"command": "ls"}, null]
]"#;

    /// A tool, its arguments, the system that the person names, the tool that is sent, its arguments, and the note.
    type Written = (String, Value, Option<String>, String, Value, Option<String>);

    #[test]
    fn a_call_that_a_person_writes_is_translated_from_the_system_whose_arguments_fit() {
        let table: Vec<Written> = serde_json::from_str(WRITTEN).unwrap();
        for (tool, input, system, sent, arguments, note) in table {
            let call = named_call(&tool, &object(&input), system.as_deref()).unwrap();
            assert_eq!(
                (&call.tool, &json!(call.input)),
                (&sent, &arguments),
                "{tool} {input}"
            );
            assert_eq!(call.system, None);
            match note {
                None => assert_eq!(call.note, None, "{tool} {input}"),
                Some(part) => assert!(call.note.as_ref().unwrap().contains(&part), "{call:?}"),
            }
        }
    }

    #[test]
    fn a_call_of_several_operations_keeps_the_names_of_its_system() {
        let patch = "*** Begin Patch\n*** Delete File: a\n*** Delete File: b\n*** End Patch";
        let call = named_call("apply_patch", &object(&json!({ "input": patch })), None).unwrap();
        assert_eq!(
            (call.tool.as_str(), call.system),
            ("apply_patch", Some("kodelet"))
        );
        assert!(call.note.unwrap().contains("2 operations"));
    }

    #[test]
    fn a_call_with_several_meanings_names_the_systems_to_choose_from() {
        let input = object(&json!({ "path": "a", "offset": 3 }));
        let error = named_call("read", &input, None).unwrap_err();
        let NamedCallError::Ambiguous { systems, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(systems, &["operator", "pi"]);
        let message = error.to_string();
        assert_eq!(
            message,
            "`read` with these arguments means different things in operator and pi"
        );
        // Each of them is a value of `--from`.
        for system in systems {
            assert_eq!(system_of_form(system), Some(*system));
        }
        let error =
            named_call("apply_patch", &object(&json!({ "input": "rm" })), None).unwrap_err();
        assert!(
            error.to_string().contains("kodelet's `apply_patch`"),
            "{error}"
        );
    }

    #[test]
    fn a_name_alone_is_translated_if_it_has_one_meaning() {
        for (tool, system, expected) in [
            ("bash", None, "shell"),
            ("bash", Some("pi"), "shell"),
            ("file_manager", None, "file_manager"),
            ("shell", None, "shell"),
            ("transfer_task", None, "transfer_task"),
            ("terminal", Some("kodelet"), "terminal"),
        ] {
            assert_eq!(named_tool(tool, system).tool, expected, "{tool}");
        }
    }
}
