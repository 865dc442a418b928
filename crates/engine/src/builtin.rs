//! Hooks that the engine brings along, each in a file of its own.
//!
//! A built-in takes the typed event, and arguments that are checked when it is loaded.

mod add_date;
mod add_environment_info;
mod add_prompt_files;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_protocol::{AnyEffect, EventKind};
use thiserror::Error;

use crate::event_ref::EventRef;
use crate::handler::{Answer, Call, Handler, HandlerError};

/// One built-in: its name, the events it is for, and how it is made from its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// The configured name.
    pub name: &'static str,
    /// The events that it has something to say to.
    pub events: &'static [EventKind],
    /// The arguments it takes, for messages.
    pub arguments: &'static str,
    make: Make,
}

/// Makes a built-in from its arguments, or says what is wrong with them.
type Make = fn(&[String]) -> Result<Box<dyn Run>, String>;

/// Every built-in, by name.
pub const BUILTINS: &[Builtin] = &[
    add_date::BUILTIN,
    add_environment_info::BUILTIN,
    add_prompt_files::BUILTIN,
];

/// What a built-in does with one event. It may read files, so it runs where blocking is allowed.
trait Run: Send + Sync {
    fn run(&self, event: &EventRef) -> Result<AnyEffect, HandlerError>;
}

/// A built-in that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuiltinError {
    /// There is none of that name.
    #[error("no builtin hook registered as `{name}`")]
    Unknown {
        /// What was given.
        name: String,
    },
    /// The arguments are not those that it takes.
    #[error("builtin `{name}`: {problem}")]
    Arguments {
        /// The built-in.
        name: String,
        /// What is wrong with them.
        problem: String,
    },
}

/// Makes the handler of a built-in.
///
/// # Errors
/// When there is no such built-in, or it does not take these arguments.
pub fn builtin(name: &str, arguments: &[String]) -> Result<Arc<dyn Handler>, BuiltinError> {
    let builtin = BUILTINS
        .iter()
        .find(|builtin| builtin.name == name)
        .ok_or_else(|| BuiltinError::Unknown {
            name: name.to_owned(),
        })?;
    let run = (builtin.make)(arguments).map_err(|problem| BuiltinError::Arguments {
        name: name.to_owned(),
        problem,
    })?;
    Ok(Arc::new(BuiltinHandler {
        name: builtin.name,
        arguments: arguments.to_vec(),
        run: Arc::from(run),
    }))
}

struct BuiltinHandler {
    name: &'static str,
    arguments: Vec<String>,
    run: Arc<dyn Run>,
}

impl fmt::Debug for BuiltinHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

impl Handler for BuiltinHandler {
    fn kind(&self) -> &'static str {
        "builtin"
    }

    fn describe(&self) -> String {
        let words: Vec<&str> = [self.name]
            .into_iter()
            .chain(self.arguments.iter().map(String::as_str))
            .collect();
        words.join(" ")
    }

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
        let (run, event) = (Arc::clone(&self.run), call.event.clone());
        Box::pin(async move {
            let joined = tokio::task::spawn_blocking(move || run.run(&event)).await;
            let panicked = |error: tokio::task::JoinError| HandlerError::Panicked {
                message: error.to_string(),
            };
            let effect = joined.map_err(panicked)??;
            Ok((!effect.is_empty()).then(|| Box::new(effect)))
        })
    }
}

/// Makes an effect of one text for the model.
fn context(text: String) -> AnyEffect {
    AnyEffect {
        context: vec![text],
        ..AnyEffect::default()
    }
}

/// Refuses arguments where none are taken.
fn takes_none(arguments: &[String]) -> Result<(), String> {
    if arguments.is_empty() {
        Ok(())
    } else {
        Err(format!("takes no arguments, found {}", arguments.len()))
    }
}

/// Returns the event's working directory; `None` where the host gave none.
fn directory(event: &EventRef) -> Option<&Path> {
    let dir = event.envelope().origin.cwd.as_path();
    (!dir.as_os_str().is_empty()).then_some(dir)
}
