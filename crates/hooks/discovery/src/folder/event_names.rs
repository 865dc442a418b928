//! Reads the names of events that executables and scripts declare.

use tenterhook_engine::EventKind;
use tenterhook_hookfile::{Fault, FaultPosition, nearest, one_of};
use tenterhook_systems::hook_folder::{FolderKind, SystemEvent};

/// Returns the event that an executable declares, or a fault if there is no such event.
pub(super) fn executable_event(kind: &FolderKind, declared: &str) -> Result<SystemEvent, Fault> {
    let Some(executables) = &kind.executables else {
        return Err("files in this folder are not executed".into());
    };
    (executables.events.find)(declared).ok_or_else(|| {
        let own = (executables.events.names)();
        let catalogue = EventKind::ALL.iter().map(|kind| kind.info().name);
        let catalogue = catalogue.filter(|_| executables.accepts_catalogue);
        let known = own.iter().copied().chain(catalogue);
        let also = if executables.accepts_catalogue {
            "an event of the catalogue, or "
        } else {
            ""
        };
        Fault {
            suggestion: nearest(declared, known).map(str::to_owned),
            allowed: Some(format!("{also}{}", one_of(own.iter().copied()))),
            position: FaultPosition::Quoted(declared.to_owned()),
            ..format!(
                "the file declares the unknown event `{}`",
                declared.escape_debug()
            )
            .into()
        }
    })
}

/// Returns the event that a script registers a hook for, or a fault if there is no such event.
#[cfg(feature = "workers")]
pub(super) fn script_event(kind: &FolderKind, name: &str) -> Result<SystemEvent, Fault> {
    let Some(scripts) = &kind.scripts else {
        return Err("files in this folder are not loaded as scripts".into());
    };
    (scripts.events.find)(name).ok_or_else(|| {
        let names = (scripts.events.names)();
        let suggestion = nearest(name, names.iter().copied()).map(str::to_owned);
        Fault {
            allowed: suggestion.is_none().then(|| one_of(names.iter().copied())),
            suggestion,
            position: FaultPosition::Quoted(name.to_owned()),
            ..format!("unknown event `{}` of {}", name.escape_debug(), scripts.api).into()
        }
    })
}
