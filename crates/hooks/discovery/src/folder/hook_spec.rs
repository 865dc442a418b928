//! Builds the parts that all hooks of folders share.

#[cfg(feature = "command")]
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "workers")]
use tenterhook_engine::HookId;
use tenterhook_engine::Source;
#[cfg(feature = "command")]
use tenterhook_engine::{AsyncHandler, EventName, HookSpec, Policy};

use super::found_file::FoundFile;
#[cfg(feature = "workers")]
use super::found_file::FoundHook;

/// The documented default timeout of one run of an executable.
pub const EXECUTABLE_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn source(found: &FoundFile) -> Source {
    Source {
        layer: found.layer,
        path: Some(found.path.clone()),
        line: None,
    }
}

#[cfg(feature = "command")]
pub(super) fn spec(
    found: &FoundFile,
    event: EventName,
    handler: Arc<dyn AsyncHandler>,
    policy: Policy,
) -> HookSpec {
    HookSpec {
        order_within_layer: found.kind.order_within_layer,
        timeout: EXECUTABLE_TIMEOUT,
        policy,
        source: source(found),
        ..HookSpec::new(event, found.name.as_str(), handler)
    }
}

/// Returns the id of one hook of a file with several hooks.
#[cfg(feature = "workers")]
pub(super) fn hook_id(file: &str, hooks: &[FoundHook], place: usize) -> HookId {
    let own = hooks.get(place);
    let name = own.map_or("", |hook| hook.name.as_str());
    let same = hooks.iter().take(place).filter(|earlier| {
        own.is_some_and(|hook| earlier.name == hook.name && earlier.event == hook.event)
    });
    HookId::new(match same.count() {
        0 => format!("{file}:{name}"),
        count => format!("{file}:{name}#{}", count + 1),
    })
}
