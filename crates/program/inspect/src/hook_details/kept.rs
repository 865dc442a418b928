//! The newest dispatches, within limits.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tenterhook_engine::{EventRef, HookRun, LeftOutHook, RawExchange};

use super::payload;

/// The size of a step without its texts, in bytes. It is an estimate.
const STEP_SIZE: usize = 200;

/// The maximum number of steps of one dispatch that are kept.
const MAX_STEPS: usize = 1000;

/// The maximum number of hooks that did not take part in a dispatch and are kept.
const MAX_LEFT_OUT: usize = 200;

/// The size of one of them without its texts, in bytes. It is an estimate.
const LEFT_OUT_SIZE: usize = 80;

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct DetailLimits {
    /// The maximum number of dispatches.
    pub(super) dispatches: usize,
    /// The maximum size of all of them together, in bytes.
    pub(super) bytes: usize,
}

impl DetailLimits {
    pub(super) const DEFAULT: Self = Self {
        dispatches: 2000,
        bytes: 64 << 20,
    };
}

/// One hook run of a dispatch.
#[derive(Debug, Serialize)]
pub(super) struct StepDetails {
    hook: String,
    /// The matcher that selected the hook, or `*`.
    matcher: String,
    phase: &'static str,
    started_ms: f64,
    took_ms: f64,
    verdict: String,
    reason: Option<String>,
    raw: Option<RawAnswer>,
    /// The payload after the run, if the run changed it.
    after: Option<Box<RawValue>>,
}

/// What a hook received and returned.
#[derive(Debug, Serialize)]
struct RawAnswer {
    input_bytes: usize,
    stdout: String,
    stderr: String,
    exit: Option<String>,
    truncated: bool,
}

impl StepDetails {
    /// Notes what is known about a run without work.
    pub(super) fn new(
        run: &HookRun<'_>,
        took: Duration,
        (verdict, reason): (&str, Option<String>),
    ) -> Self {
        Self {
            hook: run.hook.as_str().to_owned(),
            matcher: run.matcher.to_string(),
            phase: run.phase.as_str(),
            started_ms: 0.0,
            took_ms: milliseconds(took),
            verdict: verdict.to_owned(),
            reason,
            raw: None,
            after: None,
        }
    }

    /// Adds payloads and outputs, and removes secrets.
    pub(super) fn complete(
        self,
        rewritten: Option<&EventRef>,
        exchange: Option<&RawExchange>,
    ) -> Self {
        Self {
            hook: payload::of_text(&self.hook),
            matcher: payload::of_text(&self.matcher),
            reason: self.reason.as_deref().map(payload::of_text),
            raw: exchange.map(RawAnswer::of),
            after: rewritten.and_then(payload::of_event),
            ..self
        }
    }

    fn size(&self) -> usize {
        let raw = self.raw.as_ref();
        let raw = raw.map_or(0, |raw| raw.stdout.len() + raw.stderr.len());
        let after = self.after.as_ref().map_or(0, |after| after.get().len());
        let reason = self.reason.as_ref().map_or(0, String::len);
        STEP_SIZE + self.hook.len() + self.matcher.len() + reason + raw + after
    }
}

impl RawAnswer {
    fn of(exchange: &RawExchange) -> Self {
        let (stdout, is_stdout_cut) = payload::of_output(&exchange.stdout);
        let (stderr, is_stderr_cut) = payload::of_output(&exchange.stderr);
        Self {
            input_bytes: exchange.input_bytes,
            stdout,
            stderr,
            exit: exchange.exit.clone(),
            truncated: exchange.is_truncated || is_stdout_cut || is_stderr_cut,
        }
    }
}

/// The hooks of an event that did not take part in a dispatch.
#[derive(Debug, Default, Serialize)]
pub(super) struct LeftOutDetails {
    hooks: Vec<HookDetail>,
    /// The number of further ones, which are not listed.
    more: usize,
}

#[derive(Debug, Serialize)]
struct HookDetail {
    hook: String,
    matcher: String,
    /// `matcher`, `scope` or `duplicate`.
    reason: &'static str,
}

impl LeftOutDetails {
    /// Copies the names of the first hooks.
    pub(super) fn of(left_out: &[LeftOutHook<'_>]) -> Self {
        let hooks = left_out.iter().take(MAX_LEFT_OUT).map(|left| HookDetail {
            hook: left.hook.as_str().to_owned(),
            matcher: left.matcher.to_string(),
            reason: left.reason.as_str(),
        });
        Self {
            hooks: hooks.collect(),
            more: left_out.len().saturating_sub(MAX_LEFT_OUT),
        }
    }

    /// Removes secrets.
    pub(super) fn complete(mut self) -> Self {
        for hook in &mut self.hooks {
            hook.hook = payload::of_text(&hook.hook);
            hook.matcher = payload::of_text(&hook.matcher);
        }
        self
    }

    fn size(&self) -> usize {
        let sizes = self.hooks.iter();
        let sizes = sizes.map(|hook| LEFT_OUT_SIZE + hook.hook.len() + hook.matcher.len());
        sizes.sum()
    }
}

#[derive(Debug)]
struct DispatchDetails {
    event: String,
    original: Option<Box<RawValue>>,
    last: Option<Box<RawValue>>,
    left_out: LeftOutDetails,
    steps: Vec<(Instant, StepDetails)>,
    bytes: usize,
}

/// The details as the page reads them.
#[derive(Serialize)]
struct ShownDetails<'a> {
    event_id: &'a str,
    event: &'a str,
    original: Option<&'a RawValue>,
    steps: Vec<&'a StepDetails>,
    r#final: Option<&'a RawValue>,
    left_out: &'a LeftOutDetails,
    /// A command line that sends the event again. `None` if its payload is not kept.
    fire: Option<String>,
}

/// The newest dispatches. The oldest are dropped when there are too many.
pub(super) struct KeptDetails {
    limits: DetailLimits,
    by_id: BTreeMap<String, DispatchDetails>,
    /// The ids, the oldest first.
    order: VecDeque<String>,
    /// The ids of the dispatches that were dropped last. Their next steps do not see the original payload.
    dropped: VecDeque<String>,
    bytes: usize,
}

impl KeptDetails {
    pub(super) fn new(limits: DetailLimits) -> Self {
        Self {
            limits,
            by_id: BTreeMap::new(),
            order: VecDeque::new(),
            dropped: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Adds a run that began at some time. `event` is what its hook saw.
    pub(super) fn add(&mut self, event: &EventRef, began: Instant, step: StepDetails) {
        let id = event.envelope().event_id().to_string();
        if !self.by_id.contains_key(&id) {
            let original = if self.dropped.contains(&id) {
                payload::dropped()
            } else {
                payload::of_event(event)
            };
            let bytes = original.as_ref().map_or(0, |payload| payload.get().len());
            let details = DispatchDetails {
                event: event.event().name().to_owned(),
                original,
                last: None,
                left_out: LeftOutDetails::default(),
                steps: Vec::new(),
                bytes,
            };
            self.bytes += bytes;
            self.order.push_back(id.clone());
            self.by_id.insert(id.clone(), details);
        }
        if let Some(details) = self.by_id.get_mut(&id)
            && details.steps.len() < MAX_STEPS
        {
            let size = step.size();
            details.bytes += size;
            self.bytes += size;
            details.steps.push((began, step));
        }
        self.make_room();
    }

    /// Notes the payload after all runs, and which hooks did not take part.
    pub(super) fn end(&mut self, event: &EventRef, left_out: LeftOutDetails) {
        let id = event.envelope().event_id().to_string();
        let Some(details) = self.by_id.get_mut(&id) else {
            return;
        };
        let last = payload::of_event(event);
        let size = last.as_ref().map_or(0, |payload| payload.get().len()) + left_out.size();
        details.bytes += size;
        self.bytes += size;
        details.last = last;
        details.left_out = left_out;
        self.make_room();
    }

    fn make_room(&mut self) {
        while self.order.len() > self.limits.dispatches || self.bytes > self.limits.bytes {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            if let Some(details) = self.by_id.remove(&oldest) {
                self.bytes -= details.bytes;
            }
            if self.dropped.len() >= self.limits.dispatches {
                self.dropped.pop_front();
            }
            self.dropped.push_back(oldest);
        }
    }

    /// Returns the details of a dispatch as JSON.
    pub(super) fn find(&mut self, id: &str) -> Option<Box<RawValue>> {
        let details = self.by_id.get_mut(id)?;
        details.steps.sort_by_key(|(began, _)| *began);
        let first = details.steps.first().map(|(began, _)| *began);
        for (began, step) in &mut details.steps {
            let after_first = first.map(|first| began.saturating_duration_since(first));
            step.started_ms = milliseconds(after_first.unwrap_or_default());
        }
        let original = details.original.as_deref();
        to_raw_value(&ShownDetails {
            event_id: id,
            event: &details.event,
            original,
            steps: details.steps.iter().map(|(_, step)| step).collect(),
            r#final: details.last.as_deref(),
            left_out: &details.left_out,
            fire: original
                .filter(|payload| !payload::is_note(payload))
                .map(|payload| fire_line(&details.event, payload)),
        })
        .ok()
    }
}

/// Returns a command line that sends the event again. The payload is one word in POSIX shells and in PowerShell, where
/// curly quotes end a word, too. In JSON they occur only within texts.
fn fire_line(event: &str, payload: &RawValue) -> String {
    let mut escaped = String::with_capacity(payload.get().len());
    for character in payload.get().chars() {
        match character {
            '\'' | '\u{2018}'..='\u{201b}' => {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "\\u{:04x}", u32::from(character));
            }
            _ => escaped.push(character),
        }
    }
    let payload = escaped;
    format!("printf '%s' '{payload}' | tenterhook fire {event} --input -")
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;
    use tenterhook_engine::event::PreToolUse;
    use tenterhook_engine::{Envelope, Origin};

    use super::*;

    fn event(tool: &str) -> EventRef {
        let envelope = Envelope::new(Arc::new(Origin::default()), 1);
        EventRef::new(Arc::new(PreToolUse::new(tool)), Arc::new(envelope))
    }

    fn step() -> StepDetails {
        StepDetails {
            hook: "guard".to_owned(),
            matcher: "*".to_owned(),
            phase: "main",
            started_ms: 0.0,
            took_ms: 1.0,
            verdict: "none".to_owned(),
            reason: None,
            raw: None,
            after: None,
        }
    }

    fn is_kept(kept: &mut KeptDetails, event: &EventRef) -> bool {
        let id = event.envelope().event_id().to_string();
        kept.find(&id).is_some()
    }

    #[test]
    fn the_oldest_dispatches_make_room() {
        let mut kept = KeptDetails::new(DetailLimits {
            dispatches: 2,
            bytes: 100_000,
        });
        let events = [event("a"), event("b"), event("c")];
        for event in &events {
            kept.add(event, Instant::now(), step());
            kept.end(event, LeftOutDetails::default());
        }
        let kept_now = events.each_ref().map(|event| is_kept(&mut kept, event));
        assert_eq!(kept_now, [false, true, true]);
        let large = event(&"x".repeat(100_000));
        kept.add(&large, Instant::now(), step());
        assert!(!is_kept(&mut kept, &large) && kept.bytes == 0);
    }

    /// Redacting a payload takes much longer than reading its size.
    #[test]
    fn a_payload_that_is_too_large_is_not_copied() {
        let mut kept = KeptDetails::new(DetailLimits::DEFAULT);
        let huge = event(&"x".repeat(5 << 20));
        kept.add(&huge, Instant::now(), step());
        let id = huge.envelope().event_id().to_string();
        let shown = kept.find(&id).unwrap();
        assert!(shown.get().len() < 1000 && shown.get().contains("is not kept"));
    }

    #[test]
    fn a_later_version_is_not_shown_as_the_original_of_a_dropped_dispatch() {
        let mut kept = KeptDetails::new(DetailLimits {
            dispatches: 1,
            bytes: 100_000,
        });
        let (first, second) = (event("a"), event("b"));
        for event in [&first, &second, &first] {
            kept.add(event, Instant::now(), step());
        }
        let id = first.envelope().event_id().to_string();
        let shown = serde_json::to_value(kept.find(&id).unwrap()).unwrap();
        let note = "the payload before the first hooks is no longer kept";
        assert_eq!(shown["original"]["note"], note);
        assert_eq!(shown["fire"], Value::Null);
        assert!(kept.dropped.len() <= 1);
    }

    #[test]
    fn no_quote_of_a_payload_ends_its_word_in_any_shell() {
        let text = "it's '; calc; \u{2018}x\u{2019}\u{201a}\u{201b} \u{201c}";
        let json = serde_json::json!({ "text": text }).to_string();
        let line = fire_line("message_receive", &RawValue::from_string(json).unwrap());
        let rest = line.strip_prefix("printf '%s' '").unwrap();
        let (payload, rest) = rest.split_once('\'').unwrap();
        assert_eq!(rest, " | tenterhook fire message_receive --input -");
        assert!(!payload.contains(['\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}']));
        let read: Value = serde_json::from_str(payload).unwrap();
        assert_eq!(read["text"], text);
    }

    #[test]
    fn secrets_are_removed_before_an_output_is_cut() {
        let token = format!("ghp_{}", "1x9QzP3vW7kB5nR2mT8yL4cF6dH0sJgA1x9Q");
        let mut exchange = RawExchange::new(10, token.as_bytes());
        let padded = format!("{}{token}", "x ".repeat(32 * 1024 - 5));
        exchange = exchange.of_process("exit status 1", padded.as_bytes(), false);
        let shown = serde_json::to_value(RawAnswer::of(&exchange)).unwrap();
        assert!(!shown.to_string().contains("1x9Q"), "{}", shown["stdout"]);
        assert_eq!(shown["truncated"], Value::Bool(true));
    }
}
