//! Finds, checks, approves and loads hook files and folders.
//!
//! | you have | call |
//! |---|---|
//! | one file that your user specifies | [`load_file`] |
//! | the text of a file | [`load_text`] |
//! | a session with a user and a project | [`discover`], with the user's [`Approvals`] |
//! | files that change during the session | [`FollowedSources::follow`] |
//!
//! Give the loaded hooks to a scope of your engine with [`Scoped::replace`](crate::Scoped::replace).
//!
//! # When a hook cannot be loaded
//!
//! A guard that cannot be loaded has failed. [`load_file`] then returns a [`LoadError`] and no
//! hooks. [`discover`] lists the file in [`DiscoveredHooks::broken`]. Do not continue without its
//! hooks unless your user agrees. A hook whose feature is disabled is also such an error:
//!
//! | hook | feature |
//! |---|---|
//! | `command`, an executable | `command` |
//! | a script, an extension | `workers` |
//! | `http`, the built-ins `http_post` and `unload` | `http` |
//! | `model` | `model` |

pub use tenterhook_discovery::*;
pub use tenterhook_hookfile::{
    BrokenSource, Environment, HookLine, LoadError, Position, Problem, Severity,
};
pub use tenterhook_runners::Services;
pub use tenterhook_systems::tools;
pub use tenterhook_trust::{
    ApprovalItem, Approvals, DivergedHook, Project, ProjectHook, Trust, TrustError, TrustState,
};
