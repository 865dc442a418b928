//! The contract of morphix's hooks: Python functions that get a context object. Their return values are
//! ignored.
//!
//! A worker receives the fields of the context object and creates it. The worker answers `null`. If a
//! handler of `on_before_tool` changed the arguments in place, it answers `{"parameters": {...}}`, and
//! the tool runs with these arguments.
//!
//! | morphix | event |
//! |---|---|
//! | `on_before_tool` | `pre_tool_use` |
//! | `on_after_tool` | `post_tool_use` of a call that succeeded |
//! | `on_tool_error` | `tool_error` |
//! | `on_permission_denied` | `permission_denied` |
//! | `on_token_budget_exceeded` | `token_budget_exceeded` |
//! | `on_tools_disabled` | `tools_disabled` |

mod captured;
mod dialect;
mod event;
mod tools;

pub use self::dialect::Morphix;
pub use self::event::{EVENTS, MorphixEvent};

use crate::hook_folder::{
    FolderBase, FolderFiles, FolderKind, FolderLocation, FolderPath, ScriptHooks, ScriptLanguage,
    Selection, SystemEvent, SystemEvents,
};
use crate::project_packages::ProjectPackages;
use crate::system::HookSystem;

/// The workspaces of a project, one of which is active.
pub static WORKSPACE: Selection = Selection {
    name: "workspace",
    option: "workspace",
    variable: "TENTERHOOK_WORKSPACE",
    collection: "workspaces",
    default: "main",
    below: "hooks",
    missing: |name, dir| {
        let dir = dir.display();
        format!("no project folder has a workspace `{name}`: `{dir}` does not exist")
    },
};

/// The packages of morphix. Its hooks run inside it, and may import any of its modules.
const PACKAGES: ProjectPackages = ProjectPackages {
    names: &["agents", "core"],
    provided: &[
        "agents",
        "agents.audit",
        "core.hooks",
        "core.hooks_registry",
    ],
};

/// The folders of morphix's hooks. Other projects use folders with the same names for other purposes.
pub static FOLDER: FolderKind = FolderKind {
    name: "morphix",
    system: "morphix",
    locations: &[
        FolderLocation {
            bases: &[FolderBase::Project],
            path: FolderPath::Fixed("core/hooks"),
        },
        FolderLocation {
            bases: &[FolderBase::Project],
            path: FolderPath::Selected(&WORKSPACE),
        },
    ],
    files: FolderFiles::Containing(b"hooks_registry"),
    scripts: Some(ScriptHooks {
        api: "morphix",
        extensions: &[("py", ScriptLanguage::Python)],
        private_prefixes: &['_', '.'],
        may_register_nothing: false,
        marks: &["hooks_registry"],
        project_packages: PACKAGES,
        events: SystemEvents {
            find: |name| {
                let event = Morphix::event(name)?;
                Some(SystemEvent::new(event.kind, Morphix::new()))
            },
            names: || EVENTS.iter().map(|event| event.name).collect(),
        },
    }),
    ..FolderKind::EMPTY
};

/// The hook system morphix.
pub static SYSTEM: HookSystem = HookSystem {
    name: "morphix",
    tools: &tools::TOOLS,
    forms: &[&captured::FORM],
    folders: &[&FOLDER],
    folder_rank: 20,
    project_marks: &["core/hooks", "workspaces"],
    ..HookSystem::EMPTY
};
