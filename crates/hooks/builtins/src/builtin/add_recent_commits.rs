//! Tells the model the newest commits.

use std::ffi::OsString;

use futures_util::future::BoxFuture;
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind};

use super::git_context::git_context;
use super::row::{Builtin, EventRunner};

/// How many commits the model sees unless the hook sets a number.
const COUNT: u32 = 10;

pub(super) const BUILTIN: Builtin = Builtin {
    name: "add_recent_commits",
    events: &[EventKind::SessionStart],
    arguments: "the number of commits, a whole number from 1 (default: 10)",
    make: |setup| {
        let count = match setup.arguments {
            [] => COUNT,
            [count] => match count.trim().parse() {
                Ok(count) if count > 0 => count,
                _ => {
                    return Err(format!(
                        "invalid number `{count}`; expected a whole number from 1"
                    ));
                }
            },
            other => return Err(format!("takes one argument, found {}", other.len())),
        };
        Ok(Box::new(AddRecentCommits {
            count: count.to_string(),
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
