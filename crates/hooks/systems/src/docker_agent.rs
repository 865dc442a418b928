//! The contract of docker-agent's hooks: what the exit status and the output of a hook mean.
//!
//! | exit status | stdout | effect |
//! |---|---|---|
//! | 0 | nothing | none |
//! | 0 | one JSON object | the effects of its keys |
//! | 0 | text that starts with `{` but is not one JSON object | failure |
//! | 0 | other text, with `strict_output` | failure |
//! | 0 | other text, on an event that takes plain text | context |
//! | 0 | other text, from a native hook on any other gate | failure |
//! | 0 | any other text | none |
//! | 2 | any | stops the operation with stderr as the reason |
//! | any other | any | failure |

mod answer;
pub(crate) mod captured;
pub(crate) mod contract;
mod dialect;
pub(crate) mod event;
mod message;
pub(crate) mod read;
pub(crate) mod skeleton;
mod tools;
pub(crate) mod write;

pub use self::dialect::DockerAgent;
pub use self::event::{DockerEvent, EVENTS};

use crate::system::HookSystem;

/// docker-agent. Its hooks are in agent files, so it has no folders.
pub static SYSTEM: HookSystem = HookSystem {
    name: "docker-agent",
    tools: &tools::TOOLS,
    forms: &[&captured::FORM],
    ..HookSystem::EMPTY
};
