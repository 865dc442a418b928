//! Tells the model who it works for.

use futures_util::future::BoxFuture;
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind};

use super::row::{Builtin, EventRunner, blocking, context, takes_none};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "add_user_info",
    events: &[EventKind::SessionStart],
    arguments: "none",
    make: |setup| {
        takes_none(setup.arguments).map(|()| Box::new(AddUserInfo) as Box<dyn EventRunner>)
    },
};

struct AddUserInfo;

impl EventRunner for AddUserInfo {
    fn run<'a>(&'a self, _call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        Box::pin(async move {
            let text = blocking(|| {
                describe(
                    whoami::username().ok(),
                    whoami::realname().ok(),
                    whoami::hostname().ok(),
                )
            });
            Ok(text.await?.map(context).unwrap_or_default())
        })
    }
}

/// Formats what is known, one line each. A full name that only repeats the user name is left out.
fn describe(user: Option<String>, full: Option<String>, host: Option<String>) -> Option<String> {
    let full = full.filter(|full| user.as_ref() != Some(full));
    let lines: Vec<String> = [("User", user), ("Full name", full), ("Hostname", host)]
        .into_iter()
        .filter_map(|(label, value)| {
            let value = value.filter(|value| !value.trim().is_empty())?;
            Some(format!("{label}: {}", value.trim()))
        })
        .collect();
    (!lines.is_empty()).then(|| format!("Current user:\n\n{}", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_there_if_it_is_known() {
        let text = |value: &str| Some(value.to_owned());
        for (user, full, host, expected) in [
            (None, None, None, None),
            (
                text("ada"),
                text("Ada L."),
                text("box"),
                text("Current user:\n\nUser: ada\nFull name: Ada L.\nHostname: box"),
            ),
            (
                text("ada"),
                text("ada"),
                text("box"),
                text("Current user:\n\nUser: ada\nHostname: box"),
            ),
            (
                text("ada"),
                text(" "),
                None,
                text("Current user:\n\nUser: ada"),
            ),
        ] {
            assert_eq!(describe(user, full, host), expected);
        }
    }
}
