//! The contract of Operator's hook files: Python functions that get an event object and may return a
//! result object.
//!
//! A worker receives the event's `type` and fields and creates the event object. It answers with the
//! result object in the form `{"class": "ToolCallEventResult", "fields": {...}}`, or with `null`.
//!
//! | result of | field | effect |
//! |---|---|---|
//! | `tool_call` | `block`, `reason` | stops the call |
//! | `tool_call` | `params` | replaces all arguments of the tool |
//! | `tool_result` | `content`, `is_error`, `terminate` | change the result; later handlers see the changed result |
//! | `context` | `messages` | replaces the messages; later handlers see the new ones |
//! | `before_agent_start` | `system_prompt` | replaces the prompt, even if it is empty |
//! | `session_before_switch`, `session_before_fork`, `session_before_compact`, `session_before_tree` | `cancel` | stops the operation |
//! | `session_before_compact` | `compaction` | supplies the summary |
//! | `session_before_tree` | `summary` | supplies the summary |
//! | `session_before_tree` | `custom_instructions`, `replace_instructions`, `label` | change the preparation |
//! | `input` | `action: transform` with `text` | changes the text |
//! | `input` | `action: handled` | ends the processing of the input |
//! | `message:receive` | `action: transform` with `parts` or `text` | changes the message |
//! | `message:receive` | `action: reject` with `reason` | drops the message |
//! | `message:send` | `parts` | sends these parts in addition |
//! | `message_end` | `message` | replaces the message |
//! | `channel:connect` | `allow: false`, `reason` | refuses the channel |
//! | `resources_discover` | `skill_paths`, `prompt_paths`, `theme_paths` | adds these paths to the search |
//! | any of these | an object of a different class | failure |
//! | any other event | anything | none |

mod captured;
mod dialect;
mod event;
mod field_readers;
mod field_writers;
mod gateway_settings;
mod part;
mod read;
mod tools;

pub use self::dialect::Operator;
pub use self::event::{EVENTS, OperatorEvent};

use crate::hook_folder::{
    FolderBase, FolderKind, FolderLocation, FolderPath, ScriptHooks, ScriptLanguage, Selection,
    SystemEvent, SystemEvents,
};
use crate::project_packages::ProjectPackages;
use crate::system::{GatewaySettings, HookSystem};

/// The profiles of a user, one of which is active.
pub static PROFILE: Selection = Selection {
    name: "profile",
    option: "operator-profile",
    variable: "OPERATOR_PROFILE",
    collection: ".operator/profiles",
    default: "default",
    below: "hooks",
    missing: |name, dir| {
        let dir = dir.display();
        format!("Operator has no profile `{name}`: `{dir}` does not exist")
    },
};

/// The packages of Operator, under the names of each of its versions.
const PACKAGES: ProjectPackages = ProjectPackages {
    names: &["operator_use", "program"],
    provided: &[
        "operator_use.bus",
        "operator_use.bus.types",
        "operator_use.hooks",
        "operator_use.hooks.service",
        "operator_use.hooks.types",
        "operator_use.subagent.types",
        "operator_use.program.bus",
        "operator_use.program.bus.types",
        "operator_use.program.hooks",
        "operator_use.program.hooks.service",
        "operator_use.program.hooks.types",
        "operator_use.program.subagent.types",
        "program.bus",
        "program.bus.types",
        "program.hooks",
        "program.hooks.service",
        "program.hooks.types",
        "program.subagent.types",
    ],
};

/// The folders of Operator's hook files.
pub static FOLDER: FolderKind = FolderKind {
    name: "operator",
    system: "operator",
    locations: &[
        FolderLocation {
            bases: &[FolderBase::HomeBeforeProjects],
            path: FolderPath::Selected(&PROFILE),
        },
        FolderLocation {
            bases: &[FolderBase::Project],
            path: FolderPath::Fixed(".operator/hooks"),
        },
    ],
    scripts: Some(ScriptHooks {
        api: "operator",
        extensions: &[("py", ScriptLanguage::Python)],
        private_prefixes: &['_', '.'],
        may_register_nothing: false,
        marks: &["operator_use"],
        project_packages: PACKAGES,
        events: SystemEvents {
            find: |name| {
                let event = Operator::event(name)?;
                Some(SystemEvent::new(event.kind, event.dialect()))
            },
            names: || EVENTS.iter().map(|event| event.name).collect(),
        },
    }),
    ..FolderKind::EMPTY
};

/// The hook system Operator.
pub static SYSTEM: HookSystem = HookSystem {
    name: "operator",
    tools: &tools::TOOLS,
    forms: &[&captured::FORM],
    folders: &[&FOLDER],
    folder_rank: 10,
    project_marks: &[".operator"],
    gateway_settings: Some(&GatewaySettings {
        example: "~/.operator/settings.json",
        import: gateway_settings::import,
    }),
    ..HookSystem::EMPTY
};
