//! The contract of pi's extensions: JavaScript or TypeScript functions that get an event object and may
//! return a result object.
//!
//! A worker receives the event's `type` and fields and creates the event object. It answers `null`, or
//! `{"result": …, "changed": {…}}` with the value that the handler returned and the event fields that it
//! changed in place.
//!
//! | result of | field | effect |
//! |---|---|---|
//! | `tool_call` | `block`, `reason` | stops the call |
//! | `tool_call` | `event.input`, changed in place | replaces the arguments of the tool; guards judge them again |
//! | `tool_result` | `content`, `details`, `isError` | change the result; later handlers see the changed result |
//! | `input` | `action: transform` with `text`, `images` | changes the input |
//! | `input` | `action: handled` | ends the processing of the input |
//! | `before_agent_start` | `systemPrompt` | replaces the system prompt |
//! | `before_agent_start` | `message` | adds a message |
//! | `context` | `messages`, returned or changed in place | replaces the messages for this call of the model |
//! | `before_provider_request` | any value except null | replaces the request |
//! | `message_end` | `message` | replaces the message |
//! | `session_before_switch`, `session_before_fork`, `session_before_compact`, `session_before_tree` | `cancel` | stops the operation |
//! | `session_before_fork` | `skipConversationRestore` | changes the fork |
//! | `session_before_compact` | `compaction.summary` | supplies the summary |
//! | `session_before_tree` | `summary.summary` | supplies the summary |
//! | `session_before_tree` | `customInstructions`, `replaceInstructions`, `label` | change the preparation |
//! | `user_bash` | `result` | replaces the result; the command does not run |
//! | `resources_discover` | `skillPaths`, `promptPaths`, `themePaths` | adds these paths to the search |
//! | `session_directory` | `sessionDir` | replaces the directory |
//! | any of these | a value that is not an object | failure |
//! | any other event | anything | none |

mod captured;
mod dialect;
mod event;
mod field_readers;
mod field_writers;
mod host;
pub mod members;
mod message;
mod packages;
mod read;
mod tool;
mod tools;

pub use self::dialect::Pi;
pub use self::event::{EVENTS, PiEvent};
pub use self::field_writers::entry;
pub use self::host::HOST;
pub use self::tool::{
    name as tool_name, own_name as own_tool_name, replaced as replaced_tool, replaced_input,
};

use tenterhook_engine::Layer;

use crate::hook_folder::{
    FolderBase, FolderFiles, FolderKind, FolderLocation, FolderPath, PackageSearch, ScriptHooks,
    ScriptLanguage, SystemEvent, SystemEvents,
};
use crate::native::Native;
use crate::project_packages::ProjectPackages;
use crate::system::HookSystem;

/// The folders of pi's extensions.
pub static FOLDER: FolderKind = FolderKind {
    name: "pi",
    system: "pi",
    locations: &[
        FolderLocation {
            bases: &[FolderBase::Project],
            path: FolderPath::Fixed(".pi/extensions"),
        },
        FolderLocation {
            bases: &[FolderBase::Home],
            path: FolderPath::Fixed(".pi/agent/extensions"),
        },
    ],
    files: FolderFiles::Packages(PackageSearch {
        in_folder: packages::in_folder,
        named: packages::named,
    }),
    scripts: Some(ScriptHooks {
        api: "pi",
        extensions: &[
            ("ts", ScriptLanguage::JavaScript),
            ("mts", ScriptLanguage::JavaScript),
            ("js", ScriptLanguage::JavaScript),
            ("mjs", ScriptLanguage::JavaScript),
            ("cjs", ScriptLanguage::JavaScript),
        ],
        private_prefixes: &[],
        may_register_nothing: true,
        marks: &["pi-coding-agent", "ExtensionAPI"],
        project_packages: ProjectPackages::NONE,
        events: SystemEvents {
            find: declared_event,
            names: || EVENTS.iter().map(|event| event.name).collect(),
        },
    }),
    order_within_layer: Some(Layer::Project),
    ..FolderKind::EMPTY
};

/// The hook system pi.
pub static SYSTEM: HookSystem = HookSystem {
    name: "pi",
    tools: &tools::TOOLS,
    forms: &[&captured::FORM],
    folders: &[&FOLDER],
    folder_rank: 30,
    project_marks: &[".pi"],
    ..HookSystem::EMPTY
};

/// Returns the event with the name that a script declares. An event of a later version of pi is accepted
/// with a warning, but never fires.
fn declared_event(name: &str) -> Option<SystemEvent> {
    if let Some(event) = Pi::event(name) {
        return Some(SystemEvent::new(event.kind, event.dialect()));
    }
    let event = Pi::is_later_event(name).then(|| format!("x-pi.{name}").parse());
    Some(SystemEvent {
        event: event?.ok()?,
        dialect: Native::new(),
        warning: Some(format!(
            "`{name}` is an event of a later version of pi, which Tenterhook never fires"
        )),
    })
}
