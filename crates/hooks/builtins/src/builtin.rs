//! The built-in handlers, each in its own file.
//!
//! A built-in receives the typed event. Its arguments are checked when the hook is loaded.

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
mod git_context;
#[cfg(feature = "http")]
mod http_post;
mod limit_large_tool_results;
mod max_iterations;
#[cfg(not(feature = "http"))]
mod no_http;
mod redact_secrets;
mod row;
mod safer_shell;
mod shell_call;
mod shown_answer;
mod snapshot;
#[cfg(feature = "http")]
mod stt;
#[cfg(test)]
mod testing;
#[cfg(feature = "http")]
mod tts;
mod unknown_tools;
#[cfg(feature = "http")]
mod unload;
#[cfg(feature = "http")]
mod voice_arguments;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_engine::{Answer, AsyncHandler, Call, OnError, Policy};
#[cfg(feature = "http")]
use tenterhook_voice::{SttSettings, TtsSettings, VoiceError};
use thiserror::Error;

use self::row::EventRunner;

pub use self::row::{Builtin, BuiltinConfig};
#[cfg(feature = "http")]
pub(crate) use self::voice_arguments::MARGIN;
#[cfg(feature = "http")]
pub use self::voice_arguments::OnVoiceFailure;

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
    #[cfg(feature = "http")]
    http_post::BUILTIN,
    #[cfg(not(feature = "http"))]
    no_http::HTTP_POST,
    limit_large_tool_results::BUILTIN,
    max_iterations::BUILTIN,
    redact_secrets::BUILTIN,
    safer_shell::BUILTIN,
    snapshot::BUILTIN,
    #[cfg(feature = "http")]
    stt::BUILTIN,
    #[cfg(not(feature = "http"))]
    no_http::STT,
    #[cfg(feature = "http")]
    tts::BUILTIN,
    #[cfg(not(feature = "http"))]
    no_http::TTS,
    unknown_tools::BUILTIN,
    #[cfg(feature = "http")]
    unload::BUILTIN,
    #[cfg(not(feature = "http"))]
    no_http::UNLOAD,
];

/// The built-ins whose failure policy is the same on every event, whatever their hook system's default is.
const POLICIES: &[(&str, Policy)] = &[
    (
        "redact_secrets",
        Policy::new(
            OnError::Block,
            "text that could not be redacted is withheld",
        ),
    ),
    (
        "snapshot",
        Policy::new(OnError::Warn, "the built-in only observes"),
    ),
    (
        "stt",
        Policy::new(OnError::Warn, "a failure never drops a text"),
    ),
    (
        "tts",
        Policy::new(OnError::Warn, "a failure never drops a text"),
    ),
];

/// Returns the failure policy of a built-in that does not follow its hook system's default. A policy in the hook's
/// configuration takes precedence.
pub fn default_policy(name: &str) -> Option<Policy> {
    let policy = POLICIES.iter().find(|(builtin, _)| *builtin == name);
    policy.map(|(_, policy)| *policy)
}

/// The reasons why a built-in cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuiltinError {
    /// No built-in has that name.
    #[error("unknown built-in `{name}`")]
    Unknown {
        /// The configured name.
        name: String,
    },
    /// The built-in does not accept these arguments.
    #[error("builtin `{name}`: {problem}")]
    Arguments {
        /// The built-in's name.
        name: String,
        /// What is wrong with the arguments.
        problem: String,
    },
}

/// Creates the handler of a built-in.
///
/// # Errors
/// Fails if there is no such built-in, or it does not accept these arguments.
pub fn builtin(
    name: &str,
    config: &BuiltinConfig<'_>,
) -> Result<Arc<dyn AsyncHandler>, BuiltinError> {
    let builtin = BUILTINS
        .iter()
        .find(|builtin| builtin.name == name)
        .ok_or_else(|| BuiltinError::Unknown {
            name: name.to_owned(),
        })?;
    let run = (builtin.make)(config).map_err(|problem| BuiltinError::Arguments {
        name: name.to_owned(),
        problem,
    })?;
    Ok(Arc::new(BuiltinHandler {
        name: builtin.name,
        arguments: config.arguments.to_vec(),
        working_dir: config.working_dir.map(Path::to_owned),
        run,
    }))
}

/// Creates the handler of `stt` from settings instead of arguments.
#[cfg(feature = "http")]
pub(crate) fn stt_handler(
    settings: SttSettings,
    on_failure: OnVoiceFailure,
) -> Result<Arc<dyn AsyncHandler>, VoiceError> {
    let run = stt::Stt::new(settings, Some(on_failure))?;
    Ok(without_arguments("stt", Box::new(run)))
}

/// Creates the handler of `tts` from settings instead of arguments.
#[cfg(feature = "http")]
pub(crate) fn tts_handler(
    settings: TtsSettings,
    on_failure: OnVoiceFailure,
) -> Result<Arc<dyn AsyncHandler>, VoiceError> {
    let run = tts::Tts::new(settings, Some(on_failure))?;
    Ok(without_arguments("tts", Box::new(run)))
}

#[cfg(feature = "http")]
fn without_arguments(name: &'static str, run: Box<dyn EventRunner>) -> Arc<dyn AsyncHandler> {
    Arc::new(BuiltinHandler {
        name,
        arguments: Vec::new(),
        working_dir: None,
        run,
    })
}

struct BuiltinHandler {
    name: &'static str,
    arguments: Vec<String>,
    working_dir: Option<PathBuf>,
    run: Box<dyn EventRunner>,
}

impl BuiltinHandler {
    /// Returns the call with the configured directory instead of the event's, if one is configured.
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

impl AsyncHandler for BuiltinHandler {
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
            call.exchange.fill(|| shown_answer::of_effect(&effect));
            Ok((!effect.is_empty()).then(|| Box::new(effect)))
        })
    }

    fn coverage(&self) -> Vec<String> {
        self.run.coverage()
    }
}
