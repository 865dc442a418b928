//! An error as the command line shows it: what, why, and what to do.

use std::error::Error;

use tenterhook::Layer;
use tenterhook_config::{BrokenSource, LoadError};

use crate::exit::Exit;
use crate::safe::safe_line;

/// What went wrong.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    pub(crate) causes: Vec<String>,
    pub(crate) hint: Option<String>,
    /// The sources that cannot be loaded, with their problems, which are shown with their lines.
    pub(crate) load: Option<LoadError>,
    /// The arguments are wrong: shown as the parser of arguments shows it.
    pub(crate) usage: Option<clap::Error>,
}

impl CliError {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            causes: Vec::new(),
            hint: None,
            load: None,
            usage: None,
        }
    }

    /// Makes an error of arguments that cannot be parsed.
    pub(crate) fn usage(usage: clap::Error) -> Self {
        let text = usage.render().to_string();
        let first = text.lines().next().unwrap_or_default();
        let message = first.strip_prefix("error: ").unwrap_or(first);
        Self {
            usage: Some(usage),
            ..Self::new(Exit::Usage, message)
        }
    }

    /// Returns the message and its causes in one line.
    pub(crate) fn in_one_line(&self) -> String {
        let parts: Vec<&str> = [&self.message]
            .into_iter()
            .chain(&self.causes)
            .map(String::as_str)
            .collect();
        parts.join(": ")
    }

    /// Makes an error of another one: its message and its causes.
    pub(crate) fn of(exit: Exit, error: &dyn Error) -> Self {
        let this = Self::new(exit, error.to_string());
        match error.source() {
            Some(cause) => this.cause(cause),
            None => this,
        }
    }

    /// Adds an error and its causes.
    pub(crate) fn cause(mut self, error: &dyn Error) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            self.causes.push(error.to_string());
            cause = error.source();
        }
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl CliError {
    /// Makes the error of a call that refuses to go on without sources that cannot be loaded, with the ways out.
    pub(crate) fn broken(broken: Vec<BrokenSource>) -> Self {
        let hint = ways_out(&broken);
        Self {
            hint,
            ..Self::from(LoadError::from(broken))
        }
    }
}

impl From<LoadError> for CliError {
    fn from(load: LoadError) -> Self {
        // A file that cannot even be read has no lines to show.
        if let [problem] = load.problems.as_slice()
            && let Some(cause) = &problem.cause
        {
            let message = format!("cannot read the hook file `{}`", problem.path.display());
            return Self {
                causes: vec![cause.clone()],
                load: Some(load.clone()),
                ..Self::new(Exit::Config, message)
            };
        }
        Self {
            load: Some(load.clone()),
            ..Self::new(Exit::Config, load.to_string())
        }
    }
}

/// Returns what the user can do about sources that cannot be loaded.
fn ways_out(broken: &[BrokenSource]) -> Option<String> {
    let of = |layers: &[Layer]| -> Vec<String> {
        let sources = broken
            .iter()
            .filter(|source| layers.contains(&source.layer));
        let paths = sources.map(|source| safe_line(&source.path.display().to_string()));
        paths.collect()
    };
    let own = match of(&[Layer::User, Layer::Project]).as_slice() {
        [] => None,
        [path] => Some(format!(
            "fix `{path}`, or go on without its hooks: `tenterhook disable '{path}'`"
        )),
        _ => Some(
            "fix these files, or go on without the hooks of one: `tenterhook disable PATH`"
                .to_owned(),
        ),
    };
    let named = match of(&[Layer::Explicit, Layer::Code]).as_slice() {
        [] => None,
        paths => Some(format!(
            "fix `{}`, or leave it out of the call",
            paths.join("`, `")
        )),
    };
    let managed = match of(&[Layer::System]).as_slice() {
        [] => None,
        paths => Some(format!(
            "ask the administrator of this machine to fix `{}`",
            paths.join("`, `")
        )),
    };
    let lines: Vec<String> = own.into_iter().chain(named).chain(managed).collect();
    (!lines.is_empty()).then(|| lines.join("\n      "))
}
