//! Tells the model what git says of the work tree.

use std::ffi::OsString;

use futures_util::future::BoxFuture;
use tenterhook::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind};

use super::{Builtin, Run, git_context, takes_none};

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

impl Run for AddGitStatus {
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
