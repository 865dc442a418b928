//! Reads the names of events that executables and scripts declare.

use tenterhook_engine::EventKind;
use tenterhook_hookfile::{ProblemPosition, SourceProblem, nearest, one_of};
use tenterhook_systems::hook_folder::{FolderKind, SystemEvent};

/// Returns the event that an executable declares, or a problem if there is no such event.
pub(super) fn executable_event(
    kind: &FolderKind,
    declared: &str,
) -> Result<SystemEvent, SourceProblem> {
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
        SourceProblem {
            suggestion: nearest(declared, known).map(str::to_owned),
            allowed: Some(format!("{also}{}", one_of(own.iter().copied()))),
            position: ProblemPosition::Quoted(declared.to_owned()),
            ..format!(
                "the file declares the unknown event `{}`",
                declared.escape_debug()
            )
            .into()
        }
    })
}

/// Returns the event that a script registers a hook for, or a problem if there is no such event.
#[cfg(feature = "workers")]
pub(super) fn script_event(kind: &FolderKind, name: &str) -> Result<SystemEvent, SourceProblem> {
    let Some(scripts) = &kind.scripts else {
        return Err("files in this folder are not loaded as scripts".into());
    };
    (scripts.events.find)(name).ok_or_else(|| {
        let names = (scripts.events.names)();
        let suggestion = nearest(name, names.iter().copied()).map(str::to_owned);
        SourceProblem {
            allowed: suggestion.is_none().then(|| one_of(names.iter().copied())),
            suggestion,
            position: ProblemPosition::Quoted(name.to_owned()),
            ..format!("unknown event `{}` of {}", name.escape_debug(), scripts.api).into()
        }
    })
}
