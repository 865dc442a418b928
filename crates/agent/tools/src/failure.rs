//! The errors of tools, in words that the model can act on.

use std::io::ErrorKind;
use std::path::Path;

use tenterhook_protocol::ToolResult;
use thiserror::Error;

/// The error for arguments that a tool does not accept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid arguments for `{tool}`: {problem}")]
pub struct InvalidInput {
    /// The tool's name.
    pub tool: String,
    /// What is wrong with the arguments.
    pub problem: String,
}

/// The error of a tool call: the result for the model, and whether the same call would fail again.
///
/// ```
/// use tenterhook_tools::ToolFailure;
/// assert!(!ToolFailure::new("the service is busy").is_permanent_failure());
/// assert!(ToolFailure::permanent("there is no issue 12").is_permanent_failure());
/// ```
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{}", .result.joined_text())]
pub struct ToolFailure {
    result: Box<ToolResult>,
    is_permanent: bool,
}

impl From<InvalidInput> for ToolFailure {
    fn from(error: InvalidInput) -> Self {
        Self::permanent(error.to_string())
    }
}

impl ToolFailure {
    /// Creates a failure that may not happen again on another attempt.
    pub fn new(text: impl Into<String>) -> Self {
        Self::with_result(ToolResult::error(text))
    }

    /// Creates a failure that the same call would cause again, so it is not retried.
    pub fn permanent(text: impl Into<String>) -> Self {
        Self::new(text).permanently()
    }

    /// Creates a failure that has more than text, such as `details`. The result is marked as an error.
    pub fn with_result(result: ToolResult) -> Self {
        let result = result.with_is_error(true);
        Self {
            result: Box::new(result),
            is_permanent: false,
        }
    }

    /// Marks the failure as one that the same call would cause again.
    #[must_use]
    pub fn permanently(self) -> Self {
        Self {
            is_permanent: true,
            ..self
        }
    }

    /// Returns whether the same call would fail again, so that it is not retried.
    pub fn is_permanent_failure(&self) -> bool {
        self.is_permanent
    }

    /// Returns the result for the model.
    pub fn into_result(self) -> ToolResult {
        *self.result
    }

    pub(crate) fn io(action: &str, path: &Path, error: &std::io::Error) -> Self {
        let failure = Self::new(format!("cannot {action} `{}`: {error}", path.display()));
        let is_permanent = matches!(
            error.kind(),
            ErrorKind::NotFound
                | ErrorKind::PermissionDenied
                | ErrorKind::NotADirectory
                | ErrorKind::IsADirectory
                | ErrorKind::ReadOnlyFilesystem
                | ErrorKind::InvalidFilename
                | ErrorKind::InvalidData
        );
        if is_permanent {
            failure.permanently()
        } else {
            failure
        }
    }

    pub(crate) fn no_file(action: &str, path: &Path) -> Self {
        Self::permanent(format!(
            "cannot {action} `{}`: it is not a regular file",
            path.display()
        ))
    }
}
