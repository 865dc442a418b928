//! The exceptions of the user: where they are stored, and how they apply to an engine. `tenterhook allow` makes and
//! revokes them.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook_engine::{Engine, EngineBuilder, error_chain};
use tenterhook_protocol::escape::escape_line;
use tenterhook_trust::{DenialId, ExceptionStore, ExceptionTerm, ProjectExceptions, UserException};

use crate::data_dir::data_dir;
use crate::guard_problem::{GuardProblem, GuardProblemKind};
use crate::local_time::zone;

/// Returns a builder of an engine for agents that work in `start`. The exceptions of the user lift its denials.
pub fn builder(start: &Path) -> EngineBuilder {
    with(of_project(start))
}

/// Like [`builder`], but no tool runs, so exceptions that count once are not used up.
pub fn trial_builder(start: &Path) -> EngineBuilder {
    with(of_project(start).map(ProjectExceptions::as_trial))
}

/// Returns the exceptions of a project. Without a data folder, there are none.
fn of_project(start: &Path) -> Option<ProjectExceptions> {
    let store = ExceptionStore::open(&data_dir()?);
    Some(ProjectExceptions::of(store, start))
}

fn with(exceptions: Option<ProjectExceptions>) -> EngineBuilder {
    match exceptions {
        Some(exceptions) => Engine::builder().exceptions(Arc::new(exceptions)),
        None => Engine::builder(),
    }
}

/// The exceptions that are in force now, and why others are not.
#[derive(Debug, Default)]
pub struct ExceptionReport {
    found: Vec<(DenialId, UserException)>,
    problems: Vec<String>,
}

impl ExceptionReport {
    /// Reads the exceptions of the user. Blocks the thread.
    pub fn read() -> Self {
        let Some(dir) = data_dir() else {
            return Self::default();
        };
        let (found, problems) = ExceptionStore::open(&dir).in_force();
        Self {
            found,
            problems: problems.iter().map(|error| error_chain(error)).collect(),
        }
    }

    /// Returns whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && self.problems.is_empty()
    }

    /// Returns the exceptions that are not in force because they cannot be read.
    pub fn problems(&self) -> impl Iterator<Item = GuardProblem> {
        self.problems.iter().map(|problem| {
            let text = format!("an exception is not in force: {}", escape_line(problem));
            GuardProblem::new(
                GuardProblemKind::Exceptions,
                text,
                "tenterhook allow --list",
            )
        })
    }

    /// Returns the report as JSON.
    pub fn json(&self) -> Value {
        let found = self.found.iter();
        let found: Vec<Value> = found
            .map(|(id, exception)| json_of(id, exception))
            .collect();
        json!({ "in_force": found, "problems": self.problems })
    }

    /// Describes the exceptions that are in force, a line each. The lines are safe to print.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = String> {
        self.found.iter().map(|(id, exception)| {
            let call = &exception.call;
            escape_line(&format!(
                "{id}  `{}` lets a call of `{}` through in {}, {}",
                call.hook,
                call.tool,
                call.project.display(),
                term(exception)
            ))
        })
    }
}

/// Returns an exception as JSON.
pub fn json_of(id: &DenialId, exception: &UserException) -> Value {
    let call = &exception.call;
    json!({
        "id": id.as_str(),
        "hook": call.hook,
        "source": call.source,
        "event": call.event,
        "tool": call.tool,
        "input": call.input,
        "project": call.project,
        "once": exception.term == ExceptionTerm::Once,
        "given_at": exception.given_at,
        "expires_at": exception.expires_at(),
    })
}

/// Describes how long an exception is in force.
pub fn term(exception: &UserException) -> String {
    let how_often = match exception.term {
        ExceptionTerm::Once => "once, ",
        ExceptionTerm::Until(_) | ExceptionTerm::Project => "",
    };
    match exception.expires_at() {
        Some(end) => {
            let end = end.to_zoned(zone());
            format!("{how_often}until {}", end.strftime("%Y-%m-%d %H:%M"))
        }
        None => "until you revoke it".to_owned(),
    }
}
