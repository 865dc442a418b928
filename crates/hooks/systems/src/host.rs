//! Coding agents that call Tenterhook from their own hook configuration.
//!
//! Such an agent is a *host*: it starts a small program for each of its events, hands it the event as
//! JSON, and follows the answer. A [`HostAgent`] describes one of them: its events and tools, how to
//! read its events, how to write answers, and what it does with each answer. [`HOSTS`](crate::HOSTS)
//! lists all of them, and all other crates read this list.
//!
//! A host honours only some effects. [`capability`] has the table of what was measured, and
//! [`HostAgent::answer`] replaces an effect that a host would lose by a stricter one.

mod agent;
pub mod answer;
pub mod capability;
pub mod denial;
mod downgrade;
mod event;
pub mod headless;
pub(crate) mod in_process;
pub mod installation;
mod lost_event;
pub mod verdict;

pub use self::agent::HostAgent;
pub use self::event::{EventRole, HostCall, HostEvent, HostInput, HostMode, HostedEvent};
pub use self::lost_event::LostEvent;
