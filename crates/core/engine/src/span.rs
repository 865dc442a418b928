//! Spans of `tracing`, if the feature `tracing` is enabled. Otherwise nothing here has any effect.
//!
//! | span | level | fields |
//! |---|---|---|
//! | `tenterhook.event` | debug | `event`, `session`, `sequence`, and at the end `outcome`, `duration_ms` |
//! | `tenterhook.hook` | debug | `hook`, `handler`, and at the end `outcome`, `duration_ms` |
//!
//! If a hook fails, an event with level `warn` is emitted. The target is always `tenterhook`.

#[cfg(not(feature = "tracing"))]
pub(crate) use self::off::{Span, warn_of_failure};
#[cfg(feature = "tracing")]
pub(crate) use self::on::{Span, warn_of_failure};

#[cfg(feature = "tracing")]
mod on {
    use std::time::Duration;

    use tenterhook_protocol::HookId;
    use tracing::Instrument as _;
    use tracing::field::Empty;
    use tracing::level_filters::LevelFilter;

    use crate::event_ref::EventRef;
    use crate::hook::HookSpec;

    /// A span, or nothing if no subscriber is interested.
    #[derive(Clone)]
    pub(crate) struct Span(tracing::Span);

    impl Span {
        /// Returns whether a subscriber may be interested in these spans. This only reads one word
        /// of memory.
        #[inline]
        pub(crate) fn is_enabled() -> bool {
            LevelFilter::DEBUG <= tracing::level_filters::STATIC_MAX_LEVEL
                && LevelFilter::DEBUG <= LevelFilter::current()
        }

        pub(crate) fn of_event(event: &EventRef) -> Self {
            let envelope = event.envelope();
            Self(tracing::debug_span!(
                target: "tenterhook",
                "tenterhook.event",
                event = event.event().name(),
                session = envelope.origin.session_id.as_str(),
                sequence = envelope.sequence,
                outcome = Empty,
                duration_ms = Empty,
            ))
        }

        pub(crate) fn of_hook(spec: &HookSpec) -> Self {
            Self(tracing::debug_span!(
                target: "tenterhook",
                "tenterhook.hook",
                hook = spec.id.as_str(),
                handler = spec.handling.kind(),
                outcome = Empty,
                duration_ms = Empty,
            ))
        }

        /// Records the outcome and the duration at the end of the span.
        pub(crate) fn end(&self, outcome: &'static str, took: Duration) {
            self.0.record("outcome", outcome);
            self.0.record("duration_ms", took.as_secs_f64() * 1e3);
        }

        /// Runs `future` within the span.
        pub(crate) fn cover<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
            future.instrument(self.0)
        }
    }

    /// Reports a hook that failed.
    #[cold]
    pub(crate) fn warn_of_failure(event: &'static str, hook: &HookId, cause: &str) {
        tracing::warn!(target: "tenterhook", event, hook = hook.as_str(), cause, "hook failed");
    }
}

#[cfg(not(feature = "tracing"))]
mod off {
    use std::time::Duration;

    use tenterhook_protocol::HookId;

    use crate::event_ref::EventRef;
    use crate::hook::HookSpec;

    /// A span that does nothing.
    #[derive(Clone)]
    pub(crate) struct Span;

    impl Span {
        pub(crate) const fn is_enabled() -> bool {
            false
        }

        pub(crate) const fn of_event(_event: &EventRef) -> Self {
            Self
        }

        pub(crate) const fn of_hook(_spec: &HookSpec) -> Self {
            Self
        }

        pub(crate) const fn end(&self, _outcome: &'static str, _took: Duration) {}

        pub(crate) fn cover<F: Future>(self, future: F) -> F {
            future
        }
    }

    pub(crate) const fn warn_of_failure(_event: &'static str, _hook: &HookId, _cause: &str) {}
}
