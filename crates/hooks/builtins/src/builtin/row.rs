//! The type of a table row that describes a built-in, and helpers that several built-ins use.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_engine::{Call, Dialect, EventName, EventRef, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind};
use tenterhook_runners::Services;

/// A built-in: its name, its events, and how to create it from its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// The name in hook files.
    pub name: &'static str,
    /// The events on which the built-in does something.
    pub events: &'static [EventKind],
    /// The arguments that it accepts, in words for messages.
    pub arguments: &'static str,
    pub(super) make: Make,
}

/// Creates a built-in from its configuration, or returns what is wrong with its arguments.
pub(super) type Make = fn(&BuiltinConfig<'_>) -> Result<Box<dyn EventRunner>, String>;

/// The configuration of a built-in.
#[derive(Debug, Clone, Copy)]
pub struct BuiltinConfig<'a> {
    /// The arguments, as written.
    pub arguments: &'a [String],
    /// Variables for the programs that the built-in starts. They override the variables of this process.
    pub env: &'a [(OsString, OsString)],
    /// The directory to use instead of the event's. A relative path is resolved against the event's directory.
    pub working_dir: Option<&'a Path>,
    /// The services of the host program that the built-in may use.
    pub services: &'a Services,
    /// The events for which the hook is registered.
    pub events: &'a [EventName],
    /// The dialect of the file that configures the hook, which names the fields of events.
    pub dialect: &'a Arc<dyn Dialect>,
}

/// Runs a built-in on one event.
///
/// It must not block: work that reads files goes through [`blocking`].
pub(super) trait EventRunner: Send + Sync {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>>;

    /// Returns what the built-in covers and what it cannot see, a sentence each.
    fn coverage(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Runs work that may wait for the disk on a thread where blocking is allowed.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, HandlerError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| HandlerError::Panicked {
            message: error.to_string(),
        })
}

/// Creates an effect that adds one piece of text for the model.
pub(super) fn context(text: String) -> AnyEffect {
    AnyEffect {
        context: vec![text],
        ..AnyEffect::default()
    }
}

/// Refuses any arguments, for built-ins that accept none.
pub(super) fn takes_none(arguments: &[String]) -> Result<(), String> {
    if arguments.is_empty() {
        Ok(())
    } else {
        Err(format!("takes no arguments, found {}", arguments.len()))
    }
}

/// Reads the only argument, a whole number from 1. Without an argument, returns `default` if there is one.
pub(super) fn count(arguments: &[String], default: Option<u32>) -> Result<u32, String> {
    match (arguments, default) {
        ([], Some(default)) => Ok(default),
        ([written], _) => match written.trim().parse() {
            Ok(count) if count > 0 => Ok(count),
            _ => Err(format!(
                "invalid number `{written}`; expected a whole number from 1"
            )),
        },
        _ => Err(format!("takes one argument, found {}", arguments.len())),
    }
}

/// Returns the event's working directory; `None` if the host set none.
pub(super) fn directory(event: &EventRef) -> Option<&Path> {
    let dir = event.envelope().origin.cwd.as_path();
    (!dir.as_os_str().is_empty()).then_some(dir)
}
