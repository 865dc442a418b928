//! An error as the command line shows it: what, why, and what to do.

use std::error::Error;

use tenterhook_config::LoadError;

use crate::exit::Exit;

/// What went wrong.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    pub(crate) causes: Vec<String>,
    pub(crate) hint: Option<String>,
    /// The problems of hook files, shown with their source lines.
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
