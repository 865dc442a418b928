//! Translates tool calls to and from pi's names: in messages, whose form is specific to pi, and for extensions that
//! replace a tool. The engine translates tool events.

use serde_json::Value;
use tenterhook_engine::{ToolInputError, ToolNames};
use tenterhook_protocol::JsonObject;

use super::tools::TOOLS;

/// Returns pi's name for a tool. A tool that pi does not have keeps its name.
pub fn name(own: &str) -> &str {
    let names = TOOLS.names(own);
    names.first().copied().unwrap_or(own)
}

/// Returns the canonical name for a tool of pi. A tool that is not built into pi keeps its name.
pub fn own_name(theirs: &str) -> &str {
    TOOLS.canonical_name(theirs)
}

/// Returns the canonical tool that an extension replaces when it registers a tool with this name, and the canonical
/// arguments that the extension can receive. `None` if it is not the name of a tool that is built into pi.
pub fn replaced(theirs: &str) -> Option<(&'static str, Vec<&'static str>)> {
    let row = TOOLS.rows.iter().find(|row| row.name == theirs)?;
    let is_built_in = TOOLS.names(row.tool).contains(&theirs);
    let arguments = TOOLS.arguments(row.tool).filter(|_| is_built_in)?;
    Some((row.tool, arguments))
}

/// Returns the arguments of a call in pi's form, for an extension that replaces the canonical tool `tool`. `schema` is
/// the schema of the extension's tool: until March 2026, pi's `edit` had one replacement in two arguments, later a list.
///
/// # Errors
/// Fails if pi's tool cannot express the call.
pub fn replaced_input(
    tool: &str,
    input: &JsonObject,
    schema: &Value,
) -> Result<JsonObject, ToolInputError> {
    let view = TOOLS.view(tool, input)?;
    let mut own = view.map_or_else(|| input.clone(), |view| view.input);
    let properties = schema.get("properties");
    let takes = |key: &str| properties.is_some_and(|known| known.get(key).is_some());
    if takes("oldText")
        && !takes("edits")
        && let Some(Value::Array(edits)) = own.get("edits")
        && let [Value::Object(edit)] = edits.as_slice()
    {
        let edit = edit.clone();
        own.remove("edits");
        own.extend(edit);
    }
    Ok(own)
}

/// Returns the name and the arguments of a call in pi's form. A call that pi cannot express stays
/// unchanged, because a message only shows the call and does not run it.
pub(super) fn written(own: &str, input: &Value) -> (String, Value) {
    let object = input.as_object();
    let view = object.and_then(|input| TOOLS.view(own, input).ok()?);
    view.map_or_else(
        || (own.to_owned(), input.clone()),
        |view| (view.name, view.input.into()),
    )
}

/// Returns the canonical name and arguments of a call in pi's form. A call that corresponds to several
/// operations stays unchanged.
pub(super) fn read(theirs: &str, input: JsonObject) -> (String, JsonObject) {
    let operations = TOOLS.operations(theirs, &input).ok().flatten();
    match <[_; 1]>::try_from(operations.unwrap_or_default()) {
        Ok([operation]) => (operation.tool, operation.input),
        Err(_) => (theirs.to_owned(), input),
    }
}
