//! Finds hooks in folders: executables, scripts and extensions.
//!
//! A search has five steps, each in modules that know only the steps before it:
//!
//! 1. `locate` finds the folders of the layers. The systems declare the paths.
//! 2. `scan` and `inspect` list and read their files; `restore` adds approved files that changed or are gone.
//! 3. `probe` asks each file which hooks it has: executables, workers of scripts, and processes of extensions.
//! 4. `declared_state` turns the output into the state of the file.
//! 5. `assemble` builds the hooks.
//!
//! An executable declares its event itself. With the argument `hook` it prints the name of one event, and
//! with the argument `run` it answers one event. In `.kodelet` folders, names and wire format are
//! kodelet's. In `.tenterhook/hooks` and the user's `hooks` folder, an executable may also name any event
//! of the catalogue, and answers like the commands of hook files.
//!
//! A file in `.tenterhook/hooks`, or in the `hooks` folder of the user or the machine, is a script if it
//! is not executable and ends in `.py`, `.js`, `.mjs`, `.cjs`, `.ts` or `.mts`. It registers hooks through
//! the module `tenterhook`, and one worker per language serves all scripts. A file whose name begins with
//! `_` is not a script.
//!
//! An executable `kodelet-extension-NAME` in a folder `extensions` is a kodelet extension: one process
//! that registers hooks, tools and commands.
//!
//! Folders in order of precedence:
//!
//! | folder | a hook's name |
//! |---|---|
//! | the system's `hooks` | `file` |
//! | `~/.operator/profiles/profile/hooks` | `profile/file` |
//! | `.tenterhook/hooks` of the project | `file` |
//! | `.operator/hooks` of the project | `file` |
//! | `core/hooks` of the project | `file` |
//! | `workspaces/workspace/hooks` of the project | `workspace/file` |
//! | `.pi/extensions` of the project | `file`, `folder/file` |
//! | `.kodelet/hooks` of the project | `file` |
//! | `.kodelet/plugins/org@repo/hooks` of the project | `org/repo/file` |
//! | `.kodelet/extensions`, and `.kodelet/plugins/org@repo/extensions`, of the project | `name`, `org@repo/name` |
//! | `hooks` of the user's configuration folder | `file` |
//! | `~/.pi/agent/extensions` | `file`, `folder/file` |
//! | `~/.kodelet/hooks` | `file` |
//! | `~/.kodelet/plugins/org@repo/hooks` | `org/repo/file` |
//! | `~/.kodelet/extensions`, and `~/.kodelet/plugins/org@repo/extensions` | `name`, `org@repo/name` |
//!
//! Within a folder, files are ordered by the bytes of their names. If several files of one system have
//! the same name, the first that works is the hook, and it shadows the others. Files of Operator, morphix
//! and pi have an order of loading instead, and are never shadowed. A broken, disabled or untrusted file
//! shadows no other, and the machine's hooks are never shadowed.
//!
//! Hooks of `hooks` folders run with the hooks of their layer. Hooks of kodelet and pi run in the order
//! above, after the project's hooks.

#[cfg(feature = "workers")]
mod additions;
mod assemble;
mod candidate;
mod declared_state;
mod event_names;
mod extension_files;
#[cfg(feature = "workers")]
mod extension_hooks;
#[cfg(feature = "workers")]
mod extension_processes;
mod folder_hooks;
mod found_file;
mod hook_folder;
mod hook_spec;
mod inspect;
mod language;
mod load_problem;
mod loadable_sources;
mod locate;
mod probe;
mod probe_cache;
mod probe_output;
#[cfg_attr(not(feature = "workers"), path = "folder/no_processes.rs")]
mod processes;
#[cfg(feature = "workers")]
mod registered_state;
mod restore;
mod scan;
mod scan_extensions;
#[cfg(feature = "workers")]
mod script_hooks;
mod script_imports;
#[cfg(feature = "workers")]
mod script_version;
#[cfg(feature = "workers")]
mod script_workers;
mod search;

#[cfg(feature = "workers")]
pub use self::additions::Additions;
pub use self::folder_hooks::FolderHooks;
#[cfg(feature = "workers")]
pub use self::folder_hooks::{FoundExtension, FoundScript};
pub use self::found_file::{FileState, FoundFile, FoundHook};
pub use self::hook_folder::HookFolder;
pub use self::hook_spec::EXECUTABLE_TIMEOUT;
pub use self::inspect::is_script_or_program;
pub use self::search::{FolderSearch, LOAD_DEADLINE};
