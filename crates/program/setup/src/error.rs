//! An error as the command line shows it: what failed, why, and what to do next.

use std::error::Error;

use tenterhook_hookfile::{BrokenSource, LoadError};

use crate::exit::Exit;
use tenterhook_protocol::escape::escape_line;

/// An error with its causes, a hint and the exit status.
#[derive(Debug)]
pub struct CliError {
    /// The exit status.
    pub exit: Exit,
    /// What failed.
    pub message: String,
    /// Why, the nearest cause first.
    pub causes: Vec<String>,
    /// What the user can do next.
    pub hint: Option<String>,
    /// The sources that cannot be loaded. Their problems are shown with the affected lines.
    pub load: Option<Box<LoadError>>,
    /// The whole text of an error in the arguments, as the argument parser prints it on a terminal with colours.
    pub usage: Option<String>,
}

impl CliError {
    /// Creates an error without causes and without a hint.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            causes: Vec::new(),
            hint: None,
            load: None,
            usage: None,
        }
    }

    /// Returns the message and its causes on one line.
    pub fn in_one_line(&self) -> String {
        let parts: Vec<&str> = [&self.message]
            .into_iter()
            .chain(&self.causes)
            .map(String::as_str)
            .collect();
        parts.join(": ")
    }

    /// Creates an error with the message and the causes of another error.
    pub fn of(exit: Exit, error: &dyn Error) -> Self {
        let this = Self::new(exit, error.to_string());
        match error.source() {
            Some(cause) => this.cause(cause),
            None => this,
        }
    }

    /// Adds an error and its own causes as causes.
    #[must_use]
    pub fn cause(mut self, error: &dyn Error) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            self.causes.push(error.to_string());
            cause = error.source();
        }
        self
    }

    /// Adds what the user can do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl CliError {
    /// Creates the error of a command that refuses to run because sources cannot be loaded. The hint says what to do
    /// about each.
    pub fn broken(broken: Vec<BrokenSource>) -> Self {
        let error = LoadError::from(broken);
        let remedies = error.remedies();
        let lines: Vec<String> = remedies.iter().map(|line| escape_line(line)).collect();
        Self {
            hint: (!lines.is_empty()).then(|| lines.join("\n      ")),
            ..Self::from(error)
        }
    }
}

impl From<LoadError> for CliError {
    fn from(load: LoadError) -> Self {
        // An unreadable file has no lines to show.
        if let [problem] = load.problems.as_slice()
            && let Some(cause) = &problem.cause
        {
            let message = format!("cannot read the hook file `{}`", problem.path.display());
            let hint = if problem.path.exists() {
                "let your account read the file"
            } else {
                "correct the path; without one, the hook files of this folder are used, and `tenterhook list` prints \
                 them"
            };
            return Self {
                causes: vec![cause.clone()],
                hint: Some(hint.to_owned()),
                load: Some(Box::new(load.clone())),
                ..Self::new(Exit::Config, message)
            };
        }
        Self {
            load: Some(Box::new(load.clone())),
            ..Self::new(Exit::Config, load.to_string())
        }
    }
}
