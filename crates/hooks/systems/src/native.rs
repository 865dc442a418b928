//! Our own hook system: docker-agent's contract, extended with every event of the catalogue and with
//! canonical effects.
//!
//! Native hooks see canonical tools. Their folders are `.tenterhook/hooks` in a project, and `hooks` in
//! the configuration folders of the user and the machine. An executable there may also declare one of
//! kodelet's events. It is then called with kodelet's contract.

mod captured;
mod dialect;
pub(crate) mod recorded;

pub use self::dialect::Native;

use std::str::FromStr as _;

use crate::tool_names::{AGENT_TOOLS, ToolTable};
use tenterhook_engine::{EventKind, EventName, NATIVE_SYSTEM};

use crate::hook_folder::{
    ExecutableHooks, FolderBase, FolderKind, FolderLocation, FolderPath, ScriptHooks,
    ScriptLanguage, SystemEvent, SystemEvents,
};
use crate::kodelet;
use crate::project_packages::ProjectPackages;
use crate::system::HookSystem;

/// The folder in a project that contains its native hooks.
pub const PROJECT_FOLDER: &str = ".tenterhook";

/// The folders of native executables and scripts.
pub static FOLDER: FolderKind = FolderKind {
    name: "tenterhook",
    system: "tenterhook",
    locations: &[
        FolderLocation {
            bases: &[FolderBase::Machine, FolderBase::User],
            path: FolderPath::Fixed("hooks"),
        },
        FolderLocation {
            bases: &[FolderBase::Project],
            path: FolderPath::Fixed(".tenterhook/hooks"),
        },
    ],
    executables: Some(ExecutableHooks {
        events: SystemEvents {
            find: executable_event,
            names: kodelet::event_names,
        },
        accepts_catalogue: true,
        may_be_workers: true,
    }),
    scripts: Some(ScriptHooks {
        api: "tenterhook",
        extensions: &[
            ("py", ScriptLanguage::Python),
            ("js", ScriptLanguage::JavaScript),
            ("mjs", ScriptLanguage::JavaScript),
            ("cjs", ScriptLanguage::JavaScript),
            ("ts", ScriptLanguage::JavaScript),
            ("mts", ScriptLanguage::JavaScript),
        ],
        private_prefixes: &['_', '.'],
        may_register_nothing: false,
        marks: &[],
        project_packages: ProjectPackages::NONE,
        events: SystemEvents {
            find: |name| {
                let event = EventName::from_str(name).ok()?;
                Some(SystemEvent::new(event, Native::new()))
            },
            names: || EventKind::ALL.iter().map(|kind| kind.info().name).collect(),
        },
    }),
    has_unique_names: true,
    is_next_to_hook_files: true,
    ..FolderKind::EMPTY
};

/// Our own hook system.
pub static SYSTEM: HookSystem = HookSystem {
    name: NATIVE_SYSTEM,
    tools: &TOOLS,
    forms: &[&recorded::FORM, &captured::FORM],
    folders: &[&FOLDER],
    project_marks: &[PROJECT_FOLDER],
    ..HookSystem::EMPTY
};

pub(crate) static TOOLS: ToolTable = ToolTable::new(NATIVE_SYSTEM, AGENT_TOOLS);

/// Returns the event with the name that an executable declares: an event of the catalogue, or else one of
/// kodelet.
fn executable_event(name: &str) -> Option<SystemEvent> {
    match EventKind::ALL.iter().find(|kind| kind.info().name == name) {
        Some(kind) => Some(SystemEvent::new(*kind, Native::new())),
        None => kodelet::declared_event(name),
    }
}
