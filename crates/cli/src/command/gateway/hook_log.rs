//! Failed hooks in the log of the gateway.
//!
//! A hook that fails before or after a turn has no chat in which it could be shown, and a message that was let through
//! looks like any other.

use std::sync::Arc;
use std::time::Duration;

use tenterhook_engine::{EventRef, HookObserver, HookRun, HookVerdict, LeftOutHook};
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::warning::warn;
use tenterhook_terminal::output::script_output::without_secrets;

/// Warns about each hook that fails, and passes all runs on.
#[derive(Debug)]
pub(super) struct HookLog {
    /// The other observers.
    pub(super) observers: Vec<Arc<dyn HookObserver>>,
}

impl HookObserver for HookLog {
    fn hook_ended(&self, run: &HookRun<'_>, took: Duration, verdict: HookVerdict<'_>) {
        for observer in &self.observers {
            observer.hook_ended(run, took, verdict);
        }
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

    fn event_ended(&self, event: &EventRef, left_out: &[LeftOutHook<'_>]) {
        for observer in &self.observers {
            observer.event_ended(event, left_out);
        }
    }

    fn requests_details(&self) -> bool {
        let mut observers = self.observers.iter();
        observers.any(|observer| observer.requests_details())
    }
}
