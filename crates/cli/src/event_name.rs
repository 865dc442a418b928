//! Reads the name of an event as the user writes it, with a hint if it is misspelt.

use tenterhook_engine::{EventName, ParseEventNameError, events};
use tenterhook_hookfile::nearest;
use tenterhook_systems::form::{SystemEventName, system_event_names};
use tenterhook_terminal::reference::find_event;

use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;

/// Reads an event's name. The error for an unknown name has a hint.
pub(crate) fn parse_event_name(text: &str) -> Result<EventName, CliError> {
    text.parse().map_err(|error: ParseEventNameError| {
        let error = CliError::of(Exit::Usage, &error);
        match suggestion(text) {
            Some(name) => error.hint(format!("did you mean {name}?")),
            None => error.hint(
                "`tenterhook events` lists all events; your own are named `x-<vendor>.<name>`",
            ),
        }
    })
}

/// Returns the event that has this name in another system, or else the most similar name of any system.
fn suggestion(text: &str) -> Option<String> {
    if let Some(found) = find_event(text).first() {
        return Some(format!("`{}`", found.kind.info().name));
    }
    let others: Vec<SystemEventName> = system_event_names().collect();
    let own = events().map(|info| info.name);
    let name = nearest(text, own.chain(others.iter().map(|row| row.name.as_str())))?;
    if events().any(|info| info.name == name) {
        return Some(format!("`{name}`"));
    }
    let row = others.iter().find(|row| row.name == name)?;
    let event = row.kind.info().name;
    Some(format!("`{event}`, which is `{name}` in {}", row.system))
}
