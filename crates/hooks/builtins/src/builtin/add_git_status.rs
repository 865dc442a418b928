//! Tells the model the git status of the work tree.

use std::ffi::OsString;

use futures_util::future::BoxFuture;
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind};

use super::git_context::git_context;
use super::row::{Builtin, EventRunner, takes_none};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "add_git_status",
    events: &[EventKind::TurnStart],
    arguments: "none",
    make: |setup| {
        takes_none(setup.arguments)?;
        Ok(Box::new(AddGitStatus {
            env: setup.env.to_vec(),
        }))
    },
};

struct AddGitStatus {
    env: Vec<(OsString, OsString)>,
}

impl EventRunner for AddGitStatus {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        let arguments = &["status", "--short", "--branch"];
        Box::pin(git_context(
            call,
            &self.env,
            "Current git status",
            arguments,
        ))
    }
}
