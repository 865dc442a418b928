//! Events that hooks wait for, although no command of Tenterhook fires them.

use std::collections::BTreeSet;

use tenterhook_discovery::Loaded;
use tenterhook_engine::{EventName, events};
use tenterhook_terminal::reference::is_fired_by_gateway;

/// Returns the events that have hooks, and that neither `tenterhook run` nor `tenterhook gateway run` fires. User-defined events
/// are left out, because their author knows which program fires them.
pub(crate) fn never_fired(loaded: &Loaded) -> Vec<&'static str> {
    let hooked: BTreeSet<&str> = loaded
        .specs
        .iter()
        .filter_map(|spec| spec.event.as_ref())
        .map(EventName::as_str)
        .collect();
    let never = events().filter(|info| !is_fired_by_gateway(info.kind));
    never
        .map(|info| info.name)
        .filter(|name| hooked.contains(name))
        .collect()
}
