//! The differences between the protocols of workers and extensions.

use std::time::Duration;

use tenterhook_jsonrpc::Framing;

use super::calls::MODEL_CALL;

/// The properties in which the two protocols differ.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wire {
    pub(super) framing: Framing,
    /// The notification that a call was cancelled.
    pub(super) cancel: &'static str,
    /// The request by which a call reports its progress. `None` if it uses a notification.
    pub(super) update: Option<&'static str>,
    /// The requests that ask the user something or call a model: while one is open, its call does not time out.
    pub(super) questions: &'static [&'static str],
    /// Whether requests name their session. Otherwise a request belongs to the session of the call that it names.
    pub(super) names_sessions: bool,
    /// The request that only tools may make, while they run.
    pub(super) of_tools: Option<&'static str>,
    /// The request to end. Without it, a process that is no longer needed is killed.
    pub(super) end: Option<&'static str>,
    /// How long the process may keep working on a cancelled call. `None` means without limit.
    pub(super) max_overrun: Option<Duration>,
    /// Whether an answer without `result` and `error` means `null`.
    pub(super) may_leave_out_result: bool,
}

impl Wire {
    /// The protocol of workers, which `docs/reference/worker-protocol.md` describes.
    pub(super) const WORKER: Self = Self {
        framing: Framing::Lines,
        cancel: "$/cancel",
        update: None,
        questions: &[
            "ui/confirm",
            "ui/custom",
            "ui/editor",
            "ui/input",
            "ui/select",
            MODEL_CALL,
        ],
        names_sessions: true,
        of_tools: None,
        end: Some("shutdown"),
        max_overrun: Some(Duration::from_secs(2)),
        may_leave_out_result: false,
    };

    /// Returns the protocol of extensions. An extension may keep working on a cancelled call, so
    /// that one slow call does not end the others. `update` is the request by which a tool reports
    /// its progress, `questions` are the requests that ask the user something, and `of_tools` is the
    /// request that only tools may make.
    pub(super) const fn extension(
        update: &'static str,
        questions: &'static [&'static str],
        of_tools: &'static str,
    ) -> Self {
        Self {
            framing: Framing::ContentLength,
            cancel: "$/cancelRequest",
            update: Some(update),
            questions,
            names_sessions: false,
            of_tools: Some(of_tools),
            end: None,
            max_overrun: None,
            may_leave_out_result: true,
        }
    }
}
