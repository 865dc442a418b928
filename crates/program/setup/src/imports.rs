//! Imports the hooks that were written for a coding agent: finds the files of a plugin and its variables, adds an
//! entry to a hook file, and tries the hooks.

mod count;
mod hook_file;
mod plugin;
mod trial;

pub use self::count::count_hooks;
pub use self::hook_file::{AddedImport, add_import, hook_file};
pub use self::plugin::{ImportSources, SettingsPlace};
pub use self::trial::{TrialResult, TriedHook, try_hooks};
