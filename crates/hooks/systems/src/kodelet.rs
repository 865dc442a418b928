//! The contract of kodelet's hooks: executables that print their event when called with `hook`, and
//! answer it when called with `run`.
//!
//! | exit status | stdout | effect |
//! |---|---|---|
//! | 0 | nothing, or only white space | none |
//! | 0 | `null` or `{}` | none |
//! | 0 | one JSON object | the effects of its keys, see below |
//! | 0 | anything else: text, an array, an object with text around it, a duplicate key | failure |
//! | any other | any | failure |
//!
//! | event | key | effect |
//! |---|---|---|
//! | `user_message_send`, `before_tool_call` | `blocked: true`, `reason` | stops the operation; other keys are ignored |
//! | `before_tool_call` | `input`, an object | replaces the arguments of the tool |
//! | `after_tool_call` | `output`, a tool result | replaces the result, also for the model |
//! | `agent_stop` | `follow_up_messages` | user messages that keep the agent running; messages without text are dropped |
//! | any | `null` as a value | the key counts as absent |
//! | any | a key of another event, or an unknown key | none; a failure with `strict_output` |
//! | any | a known key in different case, such as `BLOCKED` | failure |

pub(crate) mod captured;
mod dialect;
mod event;
pub mod extension;
pub(crate) mod output;
mod read;
pub(crate) mod tools;
pub(crate) mod write;

pub use self::dialect::Kodelet;
pub use self::event::{EVENTS, KodeletEvent};

use crate::tool_names::Packing;
use tenterhook_engine::Layer;

use crate::hook_folder::{
    ExecutableHooks, ExtensionPrograms, ExtensionUi, FolderBase, FolderFiles, FolderKind,
    FolderLocation, FolderPath, SystemEvent, SystemEvents,
};
use crate::system::HookSystem;

/// The folder with kodelet's hooks, extensions and recipes, in a project or in a home directory.
pub const FOLDER: &str = ".kodelet";
/// The folder of plugins. Each plugin has a folder `ORG@REPO` in it.
pub const PLUGINS: &str = ".kodelet/plugins";
const BASES: &[FolderBase] = &[FolderBase::Project, FolderBase::Home];

/// Returns the canonical tools that a tool of kodelet stands for. Any other name stands for itself.
pub fn tool_names(name: &str) -> Vec<String> {
    let names: &[&str] = match tools::TOOLS.rows.iter().find(|row| row.name == name) {
        Some(row) if matches!(row.packing, Packing::Envelope(_)) => {
            &["write_file", "edit_file", "delete_file"]
        }
        Some(row) => &[row.tool],
        None => &[name],
    };
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The folders of kodelet's hooks.
pub static HOOK_FOLDER: FolderKind = FolderKind {
    name: "kodelet",
    system: "kodelet",
    locations: &[
        FolderLocation {
            bases: BASES,
            path: FolderPath::Fixed(".kodelet/hooks"),
        },
        FolderLocation {
            bases: BASES,
            path: FolderPath::Each {
                collection: PLUGINS,
                below: "hooks",
                prefix: |plugin| format!("{}/", plugin.replacen('@', "/", 1)),
            },
        },
    ],
    executables: Some(ExecutableHooks {
        events: SystemEvents {
            find: declared_event,
            names: event_names,
        },
        accepts_catalogue: false,
        may_be_workers: false,
    }),
    has_unique_names: true,
    order_within_layer: Some(Layer::Project),
    ..FolderKind::EMPTY
};

/// The folders of kodelet's extensions.
pub static EXTENSION_FOLDER: FolderKind = FolderKind {
    name: "kodelet_extension",
    system: "kodelet",
    locations: &[
        FolderLocation {
            bases: BASES,
            path: FolderPath::Fixed(".kodelet/extensions"),
        },
        FolderLocation {
            bases: BASES,
            path: FolderPath::Each {
                collection: PLUGINS,
                below: "extensions",
                prefix: |plugin| format!("{plugin}/"),
            },
        },
    ],
    files: FolderFiles::Extensions(ExtensionPrograms {
        prefix: "kodelet-extension-",
        events: SystemEvents {
            find: |name| {
                let event = extension::KodeletExtension::event(name)?;
                let dialect = extension::KodeletExtension::new();
                Some(SystemEvent::new(event.kind, dialect))
            },
            names: || extension::EVENTS.iter().map(|event| event.name).collect(),
        },
        protocol_version: "2026-05-30",
        // kodelet itself reports this value, so extensions that check the version expect it.
        system_version: "dev",
        workspace_variable: "KODELET_EXTENSION_WORKSPACE_CWD",
        update_method: "kodelet.tool.update",
        copy_method: "kodelet.conversation.fork",
        user_interface: ExtensionUi {
            questions: extension::ui::QUESTIONS,
            capabilities: extension::ui::capabilities,
            host_request: extension::ui::host_request,
            answer: extension::ui::answer,
        },
        refuse: extension::refuse,
    }),
    has_unique_names: true,
    order_within_layer: Some(Layer::Project),
    ..FolderKind::EMPTY
};

/// The hook system kodelet.
pub static SYSTEM: HookSystem = HookSystem {
    name: "kodelet",
    tools: &tools::TOOLS,
    forms: &[&captured::FORM, &extension::FORM],
    folders: &[&HOOK_FOLDER, &EXTENSION_FOLDER],
    folder_rank: 40,
    project_marks: &[FOLDER],
    ..HookSystem::EMPTY
};

/// Returns the event with the name that an executable declares.
pub(crate) fn declared_event(name: &str) -> Option<SystemEvent> {
    let event = Kodelet::event(name)?;
    Some(SystemEvent::new(event.kind, Kodelet::new()))
}

/// Returns the names of the events that executables may declare.
pub(crate) fn event_names() -> Vec<&'static str> {
    EVENTS.iter().map(|event| event.name).collect()
}
