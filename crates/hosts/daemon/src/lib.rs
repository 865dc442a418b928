//! The daemon that runs the hooks of coding agents.
//!
//! A coding agent (a *host*) starts the shim (`tenterhook-shim`) for each of its events. The shim
//! forwards the event to this daemon, which has the hooks loaded:
//!
//! 1. `listener` accepts the connection, and `connection` reads the request.
//! 2. `host_event` reads the event with the host's [`HostAgent`](tenterhook_systems::host::HostAgent).
//! 3. `projects` returns the hooks of the session, and loads them if the session is new.
//! 4. `judgement` sends the event through the hooks, and the host's `HostAgent` writes the answer.
//!
//! There is one daemon for each user. It starts on demand, and it ends when no host has called it for a
//! while. A session keeps the hooks that it started with until the user runs `tenterhook reload`.
//!
//! If anything fails, gates deny and other events continue. Works on Unix only.

#![cfg(unix)]
#![forbid(unsafe_code)]

mod answered_calls;
mod connection;
mod continuation;
mod counters;
mod daemon_problems;
mod daily_journal;
mod fingerprint;
mod host_event;
mod host_processes;
mod judgement;
mod listener;
mod outdated_hooks;
mod project;
mod projects;
mod query;
mod requests;
mod running_program;
mod session_starts;
mod shared_daemon;

pub use self::daemon_problems::of_daemon;
pub use self::daily_journal::DaemonJournal;
pub use self::listener::{DaemonEnd, DaemonError, DaemonOptions, serve};
pub use self::outdated_hooks::OutdatedHooks;
pub use self::query::{QueryError, query, reload, start, stop};
pub use self::requests::{BrokenHooks, DaemonStatus, ProjectStatus, ReloadedProject};
