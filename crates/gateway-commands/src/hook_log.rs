//! Failed hooks in the log of the gateway.
//!
//! A hook that fails before or after a turn has no chat in which it could be shown, and a message that was let through
//! looks like any other.

use std::time::Duration;

use tenterhook_engine::{HookObserver, HookRun, HookVerdict};
use tenterhook_setup::warning::warn;
use tenterhook_terminal::output::escape::escape_line;
use tenterhook_terminal::output::script_output::without_secrets;

/// Warns about each hook that fails.
#[derive(Debug)]
pub(super) struct HookLog;

impl HookObserver for HookLog {
    fn hook_ended(&self, run: &HookRun<'_>, _took: Duration, verdict: HookVerdict<'_>) {
        if let HookVerdict::Failed { cause } | HookVerdict::TimedOut { cause } = verdict {
            let event = run.event.event().name();
            let hook = escape_line(run.hook.as_str());
            let cause = without_secrets(cause);
            warn(format_args!(
                "{event}: hook `{hook}` failed: {}",
                escape_line(&cause)
            ));
        }
    }
}
