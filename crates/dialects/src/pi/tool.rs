//! Tool calls in messages, under pi's names. The engine translates the events of tools; messages are pi's own form.

use serde_json::Value;
use tenterhook::ToolNames;
use tenterhook_protocol::JsonObject;

use crate::tools;

fn table() -> Option<&'static dyn ToolNames> {
    tools::of_dialect("pi")
}

/// Returns pi's name of a tool. A tool that pi does not have keeps its name.
pub fn name(own: &str) -> &str {
    let names = table().map(|table| table.names(own)).unwrap_or_default();
    names.first().copied().unwrap_or(own)
}

/// Returns the canonical name of a tool of pi. A tool that is not built into pi keeps its name.
pub fn own_name(theirs: &str) -> &str {
    tools::canonical_name("pi", theirs)
}

/// Returns the name and the arguments of a call as pi writes them. Arguments that pi cannot express stay as they are,
/// because a message only shows what was called.
pub(super) fn written(own: &str, input: &Value) -> (String, Value) {
    let object = input.as_object();
    let view = object.and_then(|input| table()?.view(own, input).ok()?);
    view.map_or_else(
        || (own.to_owned(), input.clone()),
        |view| (view.name, view.input.into()),
    )
}

/// Returns the name and the arguments of a call that pi wrote. A call that is several operations here stays as it is.
pub(super) fn read(theirs: &str, input: JsonObject) -> (String, JsonObject) {
    let operations = tools::canonical("pi", theirs, &input).unwrap_or_default();
    match <[_; 1]>::try_from(operations) {
        Ok([operation]) => (operation.tool, operation.input),
        Err(_) => (theirs.to_owned(), input),
    }
}
