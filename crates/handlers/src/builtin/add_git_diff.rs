//! Tells the model what changed in the work tree.

use std::ffi::OsString;

use futures_util::future::BoxFuture;
use tenterhook::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind};

use super::{Builtin, Run, git_context};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "add_git_diff",
    events: &[EventKind::TurnStart],
    arguments: "`full`, or none for the names and sizes of changes",
    make: |setup| {
        let form = match setup.arguments {
            [] => &STAT,
            [word] if word == "full" => &FULL,
            [word] => return Err(format!("`{word}` is not `full`")),
            other => return Err(format!("takes one argument, found {}", other.len())),
        };
        Ok(Box::new(AddGitDiff {
            form,
            env: setup.env.to_vec(),
        }))
    },
};

/// How much of the changes is told.
struct Form {
    heading: &'static str,
    arguments: &'static [&'static str],
}

const STAT: Form = Form {
    heading: "Current working-tree diff (stat)",
    arguments: &["diff", "--no-ext-diff", "--no-textconv", "--stat"],
};

const FULL: Form = Form {
    heading: "Current working-tree diff",
    arguments: &["diff", "--no-ext-diff", "--no-textconv"],
};

struct AddGitDiff {
    form: &'static Form,
    env: Vec<(OsString, OsString)>,
}

impl Run for AddGitDiff {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        let Form { heading, arguments } = self.form;
        Box::pin(git_context(call, &self.env, heading, arguments))
    }
}
