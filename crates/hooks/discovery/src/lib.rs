//! Finds the hooks of a session and makes them ready to run.
//!
//! [`discover`] is the only way from files to hooks, for the command line and for embedders. It reads the
//! hook files of every layer, searches the folders of every hook system, and asks scripts which hooks they
//! register. It returns the hooks in the order in which they run. [`Reloader`] follows the files during a
//! session.
//!
//! A load reports all mistakes of a file at once. A file with an error has no hooks at all, so that a typo
//! never leaves only half of the guards in force.
//!
//! The features `command`, `workers`, `http` and `model` decide which hooks can run. A hook that needs a
//! feature that was not compiled in is an error of its file, and the error names the feature.
//!
//! `tenterhook-hookfile` reads hook files. `tenterhook-trust` decides which project hooks may run.
//!
//! ```
//! use std::path::Path;
//! use tenterhook_engine::Layer;
//! use tenterhook_discovery::{LoadOptions, load_text};
//!
//! let text = "hooks:\n  - name: no-sudo\n    event: pre_tool_use\n    matcher: shell\n    command: cat\n";
//! let options = LoadOptions::of_process();
//! let loaded = load_text(Path::new("hooks.yaml"), text, Layer::Explicit, &options)?;
//! assert_eq!(loaded.specs[0].id.as_str(), "no-sudo");
//!
//! let error = load_text(Path::new("hooks.json"), r#"{"hoks": []}"#, Layer::Explicit, &options).unwrap_err();
//! assert_eq!(error.problems[0].suggestion.as_deref(), Some("hooks"));
//! # Ok::<(), tenterhook_hookfile::LoadError>(())
//! ```

#![forbid(unsafe_code)]

mod approved_copies;
mod build;
#[cfg(feature = "workers")]
mod corpus;
mod disabled;
mod discover;
mod folder;
mod layers;
mod load;
mod loaded;
mod manager;
mod options;
mod order;
mod project;
mod recipe;
mod reload;
mod runner_feature;
mod sources;
mod trigger;
mod unmatched;

#[cfg(feature = "workers")]
pub use corpus::{Corpus, CorpusEntry, load_corpus};
pub use disabled::{DisabledError, DisabledSources};
pub use discover::{DiscoveredHooks, FollowedSources, add_sources, discover, load_named};
#[cfg(feature = "workers")]
pub use folder::{Additions, FoundExtension, FoundScript};
pub use folder::{
    EXECUTABLE_TIMEOUT, FileState, FolderHooks, FolderSearch, FoundFile, FoundHook, HookFolder,
    LOAD_DEADLINE, is_script_or_program,
};
pub use layers::{HookFiles, Layers};
pub use load::{load_file, load_files, load_lines, load_text};
pub use loaded::{Loaded, LoadedFile};
pub use manager::{HookManager, ManagedHook};
pub use options::LoadOptions;
pub use recipe::{NoRecipe, Recipe, RecipePlace, find_recipe, is_own_recipe, load_recipe};
pub use reload::{Change, ChangeKind, FixedHooks, Reloaded, Reloader, StayReason};
pub use sources::Sources;
pub use tenterhook_systems::folder_name::{FolderName, NoFolderName};
pub use trigger::{Blocked, Conversation, Trigger};
pub use unmatched::{UnmatchedHook, misspelt_agents, unknown_tool, unmatched_hooks};
