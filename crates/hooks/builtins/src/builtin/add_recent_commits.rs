//! Tells the model the newest commits.

use std::ffi::OsString;

use futures_util::future::BoxFuture;
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind};

use super::git_context::git_context;
use super::row::{Builtin, EventRunner, count};

/// How many commits the model sees unless the hook sets a number.
const COUNT: u32 = 10;

pub(super) const BUILTIN: Builtin = Builtin {
    name: "add_recent_commits",
    events: &[EventKind::SessionStart],
    arguments: "the number of commits, a whole number from 1 (default: 10)",
    make: |setup| {
        Ok(Box::new(AddRecentCommits {
            count: count(setup.arguments, Some(COUNT))?.to_string(),
            env: setup.env.to_vec(),
        }))
    },
};

struct AddRecentCommits {
    count: String,
    env: Vec<(OsString, OsString)>,
}

impl EventRunner for AddRecentCommits {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        Box::pin(async move {
            let arguments = ["log", "--oneline", "--no-decorate", "-n", &self.count];
            git_context(call, &self.env, "Recent commits", &arguments).await
        })
    }
}
