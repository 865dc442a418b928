//! What a subscriber of `tracing` receives.

use std::fmt::{Debug, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tenterhook_engine::event::{PreToolUse, TurnStart};
use tenterhook_engine::{AnyEffect, Effect, Engine, EventKind, Handler, Origin};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::{Slow, shell_call, spec};

/// Keeps one line for each span and event.
#[derive(Clone)]
struct Recorder {
    level: Level,
    next: Arc<AtomicU64>,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    fn new(level: Level) -> Self {
        Self {
            level,
            next: Arc::default(),
            lines: Arc::default(),
        }
    }

    fn note(&self, start: String, write: impl FnOnce(&mut Fields)) {
        let mut fields = Fields(start);
        write(&mut fields);
        self.lines.lock().push(fields.0);
    }
}

/// Writes fields one after another, without times.
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() != "duration_ms" {
            write!(self.0, " {}={value:?}", field.name()).unwrap();
        }
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "tenterhook" && *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(self.level.into())
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let start = format!("{id} {}", attributes.metadata().name());
        self.note(start, |fields| attributes.record(fields));
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut fields = Fields(span.into_u64().to_string());
        values.record(&mut fields);
        if fields.0.contains('=') {
            self.lines.lock().push(fields.0);
        }
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let start = event.metadata().level().to_string();
        self.note(start, |fields| event.record(fields));
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

fn origin() -> Origin {
    Origin::new("s1", ".")
}

/// Returns an engine with a hook that allows tool calls and one that waits and fails.
fn engine() -> Engine {
    let engine = Engine::new();
    engine.hook("allows").on(|_: &PreToolUse| Effect::allow());
    let broken = Slow {
        turns: 1,
        answer: Err::<AnyEffect, _>("broke".to_owned()),
    };
    let handler = Handler::Async(Arc::new(broken));
    engine.register(spec(EventKind::PreToolUse, "broken", handler));
    engine
}

/// Creates a recorder that is active on this thread until the guard is dropped.
///
/// `tracing` caches, for each place in the code, whether any subscriber is interested. It fills the
/// cache when any thread first passes the place, and refreshes it when a subscriber is created. So
/// every place must be passed before the recorder is created.
async fn record(level: Level) -> (Recorder, DefaultGuard) {
    {
        let _guard = set_default(Recorder::new(Level::TRACE));
        let hooks = engine().dispatcher(origin());
        let outcome = hooks.dispatch(shell_call("ls")).await;
        assert!(!outcome.decision().is_proceed());
    }
    let recorder = Recorder::new(level);
    let guard = set_default(recorder.clone());
    (recorder, guard)
}

#[tokio::test]
async fn each_event_with_hooks_and_each_run_is_a_span() {
    let (recorder, _guard) = record(Level::DEBUG).await;
    let hooks = engine().dispatcher(origin());
    let _nothing = hooks.dispatch(TurnStart::default()).await;
    let outcome = hooks.dispatch(shell_call("ls")).await;
    assert!(!outcome.decision().is_proceed());
    let expected = [
        r#"1 tenterhook.event event="pre_tool_use" session="s1" sequence=1"#,
        r#"2 tenterhook.hook hook="allows" handler="function""#,
        r#"2 outcome="allow""#,
        r#"3 tenterhook.hook hook="broken" handler="slow""#,
        r#"WARN message=hook failed event="pre_tool_use" hook="broken" cause="broke""#,
        r#"3 outcome="failed""#,
        r#"1 outcome="stop""#,
    ];
    assert_eq!(*recorder.lines.lock(), expected);
}

#[tokio::test]
async fn a_subscriber_of_warnings_hears_of_failures_only() {
    let (recorder, _guard) = record(Level::WARN).await;
    let outcome = engine()
        .dispatcher(origin())
        .dispatch(shell_call("ls"))
        .await;
    assert!(!outcome.decision().is_proceed());
    let expected = r#"WARN message=hook failed event="pre_tool_use" hook="broken" cause="broke""#;
    assert_eq!(*recorder.lines.lock(), [expected]);
}
