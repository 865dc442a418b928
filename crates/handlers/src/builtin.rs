//! Hooks that come along, each in a file of its own.
//!
//! A built-in takes the typed event, and arguments that are checked when it is loaded.

mod add_context;
mod add_date;
mod add_directory_listing;
mod add_environment_info;
mod add_git_diff;
mod add_git_status;
mod add_prompt_files;
mod add_recent_commits;
mod add_user_info;
mod cache_response;
mod deny_commands;
mod http_post;
mod limit_large_tool_results;
mod max_iterations;
mod redact_secrets;
mod safer_shell;
mod shell_call;
mod snapshot;
mod unload;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook::{
    Answer, Call, Dialect, EventName, EventRef, Handler, HandlerError, OnError, Policy,
};
use tenterhook_process::cut;
use tenterhook_protocol::{AnyEffect, EventKind};
use thiserror::Error;

use crate::git::{self, Git, GitError};
use crate::services::Services;

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

/// Makes a built-in from how it is configured, or says what is wrong with its arguments.
type Make = fn(&Setup<'_>) -> Result<Box<dyn Run>, String>;

/// Every built-in, by name.
pub const BUILTINS: &[Builtin] = &[
    add_context::BUILTIN,
    add_date::BUILTIN,
    add_directory_listing::BUILTIN,
    add_environment_info::BUILTIN,
    add_git_diff::BUILTIN,
    add_git_status::BUILTIN,
    add_prompt_files::BUILTIN,
    add_recent_commits::BUILTIN,
    add_user_info::BUILTIN,
    cache_response::BUILTIN,
    deny_commands::BUILTIN,
    http_post::BUILTIN,
    limit_large_tool_results::BUILTIN,
    max_iterations::BUILTIN,
    redact_secrets::BUILTIN,
    safer_shell::BUILTIN,
    snapshot::BUILTIN,
    unload::BUILTIN,
];

/// The built-ins with a failure policy of their own, on every event and whatever their hook system's default is.
const POLICIES: &[(&str, Policy)] = &[
    (
        "redact_secrets",
        Policy::new(OnError::Block, "what could not be redacted is withheld"),
    ),
    (
        "snapshot",
        Policy::new(OnError::Warn, "the built-in only watches"),
    ),
];

/// Returns the failure policy of a built-in that does not follow its hook system's default. What the configuration says
/// outranks it.
pub fn default_policy(name: &str) -> Option<Policy> {
    let policy = POLICIES.iter().find(|(builtin, _)| *builtin == name);
    policy.map(|(_, policy)| *policy)
}

/// How a built-in is configured.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// Its arguments, as written.
    pub arguments: &'a [String],
    /// Variables for the programs that it starts, over those of this process.
    pub env: &'a [(OsString, OsString)],
    /// The directory that it looks at instead of the event's; a relative one is below the event's.
    pub working_dir: Option<&'a Path>,
    /// What it may use of the program that it runs in.
    pub services: &'a Services,
    /// The events that it is for.
    pub events: &'a [EventName],
    /// The contract of the file that it is configured in, which names the keys of events.
    pub dialect: &'a Arc<dyn Dialect>,
}

/// What a built-in does with one event.
///
/// It must not block: what reads files goes through [`blocking`].
trait Run: Send + Sync {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>>;
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
pub fn builtin(name: &str, setup: &Setup<'_>) -> Result<Arc<dyn Handler>, BuiltinError> {
    let builtin = BUILTINS
        .iter()
        .find(|builtin| builtin.name == name)
        .ok_or_else(|| BuiltinError::Unknown {
            name: name.to_owned(),
        })?;
    let run = (builtin.make)(setup).map_err(|problem| BuiltinError::Arguments {
        name: name.to_owned(),
        problem,
    })?;
    Ok(Arc::new(BuiltinHandler {
        name: builtin.name,
        arguments: setup.arguments.to_vec(),
        working_dir: setup.working_dir.map(Path::to_owned),
        run,
    }))
}

struct BuiltinHandler {
    name: &'static str,
    arguments: Vec<String>,
    working_dir: Option<PathBuf>,
    run: Box<dyn Run>,
}

impl BuiltinHandler {
    /// Returns the call with the configured directory in place of the event's.
    fn placed(&self, call: &Call) -> Option<Call> {
        let dir = self.working_dir.as_ref()?;
        let mut origin = (*call.event.envelope().origin).clone();
        origin.cwd = origin.cwd.join(dir);
        Some(Call {
            event: call.event.with_origin(Arc::new(origin)),
            ..call.clone()
        })
    }
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
        Box::pin(async move {
            let placed = self.placed(call);
            let effect = self.run.run(placed.as_ref().unwrap_or(call)).await?;
            Ok((!effect.is_empty()).then(|| Box::new(effect)))
        })
    }
}

/// Runs what may wait for the disk where waiting is allowed.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, HandlerError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| HandlerError::Panicked {
            message: error.to_string(),
        })
}

/// The most bytes that the model gets of what git prints.
const GIT_LIMIT: usize = 4_096;

/// Returns what git prints about the event's directory, after a heading. `None` is a directory in no work tree, a
/// machine without git, and nothing printed.
async fn git_context(
    call: &Call,
    env: &[(OsString, OsString)],
    heading: &str,
    arguments: &[&str],
) -> Result<AnyEffect, HandlerError> {
    let Some(dir) = directory(&call.event).map(Path::to_owned) else {
        return Ok(AnyEffect::default());
    };
    let looked_at = dir.clone();
    // A hook whose variables name a repository looks at that one.
    let is_named = env.iter().any(|(name, _)| name == "GIT_DIR");
    if !is_named
        && blocking(move || git::work_tree(&looked_at))
            .await?
            .is_none()
    {
        return Ok(AnyEffect::default());
    }
    let git = Git::new(env.iter().cloned(), call.timeout, call.cancel.clone());
    let printed = match git.run(&dir, arguments).await {
        Ok(printed) => printed,
        Err(GitError::Missing) => return Ok(AnyEffect::default()),
        // A repository that was just made has nothing to tell yet.
        Err(GitError::Failed { message, .. })
            if message.contains("does not have any commits yet") =>
        {
            return Ok(AnyEffect::default());
        }
        Err(error) => {
            return Err(HandlerError::Other {
                problem: error.to_string(),
            });
        }
    };
    let text = String::from_utf8_lossy(&printed);
    let text = text.trim();
    if text.is_empty() {
        return Ok(AnyEffect::default());
    }
    let shown = cut::head(text, GIT_LIMIT);
    let end = if shown.len() < text.len() {
        "\n... (truncated)"
    } else {
        ""
    };
    Ok(context(format!("{heading}:\n\n{shown}{end}")))
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

#[cfg(test)]
mod testing {
    use std::sync::{Arc, LazyLock};

    use tenterhook::Dialect;
    use tenterhook_dialects::docker_agent::DockerAgent;

    use super::{Services, Setup};

    static SERVICES: LazyLock<Services> = LazyLock::new(Services::default);
    static DIALECT: LazyLock<Arc<dyn Dialect>> = LazyLock::new(DockerAgent::native);

    /// Returns a setup of nothing but arguments.
    pub(super) fn setup(arguments: &[String]) -> Setup<'_> {
        Setup {
            arguments,
            env: &[],
            working_dir: None,
            services: &SERVICES,
            events: &[],
            dialect: &DIALECT,
        }
    }
}
