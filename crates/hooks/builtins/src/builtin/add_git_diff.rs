//! Tells the model what changed in the work tree.

use std::ffi::OsString;

use futures_util::future::BoxFuture;
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind};

use super::git_context::git_context;
use super::row::{Builtin, EventRunner};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "add_git_diff",
    events: &[EventKind::TurnStart],
    arguments: "`full`; without it, only the names and sizes of changes are shown",
    make: |setup| {
        let form = match setup.arguments {
            [] => &STAT,
            [word] if word == "full" => &FULL,
            [word] => return Err(format!("unknown argument `{word}`; expected `full`")),
            other => return Err(format!("takes one argument, found {}", other.len())),
        };
        Ok(Box::new(AddGitDiff {
            form,
            env: setup.env.to_vec(),
        }))
    },
};

/// How much of the changes the model sees.
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

impl EventRunner for AddGitDiff {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        let Form { heading, arguments } = self.form;
        Box::pin(git_context(call, &self.env, heading, arguments))
    }
}
