//! Hook files: parsing with positions, validation, and the hooks that come out of them.
//!
//! Two kinds of file are read, each as YAML, TOML or JSON: native hook files, and docker-agent's agent files,
//! which are told apart by their key `agents`. A load reports everything that is wrong with a file at once, each
//! [`Problem`] with its line and column, what was found, what is allowed and what may have been meant. A file
//! with an error gives no hooks at all, so that a typing mistake never leaves half of the guards in force.
//!
//! This crate does not look for files, does not decide which of them are trusted, and runs nothing.
//!
//! ```
//! use std::path::Path;
//! use tenterhook::Layer;
//! use tenterhook_config::{LoadOptions, load_text};
//!
//! let text = "hooks:\n  - name: no-sudo\n    event: pre_tool_use\n    matcher: shell\n    command: cat\n";
//! let options = LoadOptions::of_process();
//! let loaded = load_text(Path::new("hooks.yaml"), text, Layer::Project, &options)?;
//! assert_eq!(loaded.specs[0].id.as_str(), "no-sudo");
//!
//! let error = load_text(Path::new("hooks.json"), r#"{"hoks": []}"#, Layer::Project, &options).unwrap_err();
//! assert_eq!(error.problems[0].suggestion.as_deref(), Some("hooks"));
//! # Ok::<(), tenterhook_config::LoadError>(())
//! ```

#![forbid(unsafe_code)]

mod agent_file;
mod broken;
mod disabled;
mod draft;
mod environment;
mod fields;
mod folder;
mod folder_name;
mod http;
mod layers;
mod line;
mod link;
mod load;
mod manager;
mod model;
mod native;
mod problem;
mod programs;
mod project;
mod python;
mod recipe;
mod reload;
mod report;
mod source;
mod suggest;
mod timeout;
mod tree;
mod trigger;
mod trust;

pub use agent_file::{AgentDefinition, AgentFile, PermissionRules, Toolset, ToolsetKind};
pub use broken::BrokenSource;
pub use disabled::{DisabledError, DisabledSources};
pub use environment::Environment;
pub use folder::{
    Discovered, Discovery, EXECUTABLE_TIMEOUT, FileState, FoundExtension, FoundFile, FoundHook,
    FoundScript, HookFolder, LOAD_DEADLINE, Speaks,
};
pub use folder_name::{FolderName, NoFolderName};
pub use layers::{HookFiles, Layers};
pub use line::{HookLine, load_lines};
pub use load::{LoadOptions, Loaded, LoadedFile, load_file, load_files, load_text};
pub use manager::{HookManager, ManagedHook};
pub use problem::{LoadError, Problem, Severity};
pub use project::Project;
pub use recipe::{NoRecipe, Recipe, RecipePlace, find_recipe, load_recipe};
pub use reload::{Change, ChangeKind, FixedHooks, Reloaded, Reloader, Sources, StayReason};
pub use source::{Place, Span};
pub use trigger::{Blocked, Conversation, Trigger};
pub use trust::{
    Approvals, Approved, ApprovedFile, Brought, DivergedHook, Divergence, Item, ItemFile,
    RepositoryIdentity, Trust, TrustError, TrustState, displaced,
};
