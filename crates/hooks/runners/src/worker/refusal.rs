//! The errors that a script receives instead of an answer.

use tenterhook_jsonrpc::RpcError;

/// The message for an unknown method.
const NO_METHOD: &str = "the host has no such method";

/// Why a request of a script is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The method does not exist.
    #[error("{NO_METHOD}")]
    NoMethod,
    /// The request failed, with the reason.
    #[error("{0}")]
    Failed(String),
    /// The request is invalid, with the reason.
    #[error("{0}")]
    Invalid(String),
    /// This program does not offer what was requested, with the reason.
    #[error("{0}")]
    Unavailable(String),
}

impl Refusal {
    /// Makes a refusal for something that needs a session.
    pub fn no_session(method: &str) -> Self {
        Self::Failed(format!(
            "`{method}` needs a session, but there is no session"
        ))
    }

    /// Returns the error that the script receives.
    pub(super) fn to_error(&self) -> RpcError {
        let message = self.to_string();
        match self {
            Self::NoMethod => RpcError::unknown_method(&message),
            Self::Invalid(_) => RpcError::invalid_params(&message),
            Self::Failed(_) => RpcError::failed(&message),
            Self::Unavailable(_) => RpcError::unavailable(&message),
        }
    }
}
