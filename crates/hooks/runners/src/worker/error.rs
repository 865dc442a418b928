//! Why a worker gave no answer.

/// Why a worker gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The worker could not be started, or its first answer was wrong.
    #[error("worker `{worker}` could not be started: {problem}")]
    Start {
        /// The worker.
        worker: String,
        /// Why.
        problem: String,
    },
    /// The worker ended, or was killed because of an error.
    #[error("worker `{worker}` ended: {problem}")]
    Ended {
        /// The worker.
        worker: String,
        /// Why.
        problem: String,
    },
    /// The worker failed too often, so it is not restarted for a while.
    #[error(
        "worker `{worker}` failed {failures} times in a row; it can start again in {seconds} s; last problem: {problem}"
    )]
    Broken {
        /// The worker.
        worker: String,
        /// How often it failed in a row.
        failures: u32,
        /// The time until it can be started again, in seconds.
        seconds: u64,
        /// The reason of the last failure.
        problem: String,
    },
    /// The call failed: the worker answered with an error or an unreadable answer, or its script
    /// cannot be called.
    #[error("{message}")]
    Call {
        /// The message for people.
        message: String,
    },
    /// The script has lost what it prepared when the session began, so it was not called.
    #[error("{message}")]
    NotReady {
        /// The message for people.
        message: String,
    },
    /// The deadline passed.
    #[error("timed out")]
    TimedOut,
    /// The call was cancelled.
    #[error("cancelled")]
    Cancelled,
}
