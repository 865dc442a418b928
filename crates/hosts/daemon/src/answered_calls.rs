//! Tool events that a host sends twice, because two entries in its files start the shim.
//!
//! Hooks see such an event once. Both shims of a gate get the answer, because some hosts run the tool
//! if one of them has no opinion. Ids alone are not enough: some models count their calls anew in each
//! turn, and a program of the agent may use an id again. So the whole call must be the same, and it is
//! remembered only for a short time.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tenterhook_engine::{ToolCall, ToolUseId};
use tenterhook_systems::host::HostedEvent;
use tenterhook_systems::host::answer::HostAnswer;
use tokio::sync::OnceCell;

/// How many events of one session are remembered.
const MAX_EVENTS: usize = 16;
/// How long an answer is remembered. A host starts its entries at once or one after the other.
const MAX_AGE: Duration = Duration::from_secs(5);

/// The tool events of one session that were answered lately, or are being answered.
#[derive(Debug, Default)]
pub(crate) struct AnsweredCalls {
    events: Mutex<VecDeque<Arc<AnsweredCall>>>,
    hasher: RandomState,
}

/// A tool event and its answer.
#[derive(Debug)]
pub(crate) struct AnsweredCall {
    key: (&'static str, ToolUseId, u64),
    answer: OnceCell<(Instant, HostAnswer)>,
}

/// What to do with a tool event that has an id.
#[derive(Debug)]
pub(crate) enum Repetition {
    /// It arrives for the first time.
    First(Arc<AnsweredCall>),
    /// Another shim has sent it.
    Again(Arc<AnsweredCall>),
}

impl AnsweredCalls {
    /// Looks for a tool event, and remembers it. Returns `None` for an event without the id of a call.
    pub(crate) fn find(&self, name: &'static str, event: &HostedEvent) -> Option<Repetition> {
        let (call, result) = match event {
            HostedEvent::ToolCall(call) => (call, None),
            HostedEvent::ToolResult { call, result, .. } => (call, Some(result)),
            HostedEvent::Other(_) | HostedEvent::Repeated => return None,
        };
        let ToolCall { id, arguments, .. } = call;
        if id.as_str().is_empty() {
            return None;
        }
        let result = serde_json::to_string(&result).ok()?;
        let content = (&call.name, arguments.to_string(), result);
        let key = (name, id.clone(), self.hasher.hash_one(content));
        let mut events = self.events.lock();
        events.retain(|event| event.is_recent());
        if let Some(known) = events.iter().find(|event| event.key == key) {
            return Some(Repetition::Again(Arc::clone(known)));
        }
        if events.len() == MAX_EVENTS {
            events.pop_front();
        }
        let event = Arc::new(AnsweredCall {
            key,
            answer: OnceCell::new(),
        });
        events.push_back(Arc::clone(&event));
        Some(Repetition::First(event))
    }
}

impl AnsweredCall {
    /// Returns the answer. If another shim is waiting for it, waits too. If that shim gives up, or the
    /// hooks could not be asked, `ask` is called again.
    pub(crate) async fn answer(
        &self,
        ask: impl AsyncFnOnce() -> Result<HostAnswer, String>,
    ) -> Result<HostAnswer, String> {
        let ask = || async {
            let answer = ask().await?;
            Ok::<_, String>((Instant::now(), answer))
        };
        let (_, answer) = self.answer.get_or_try_init(ask).await?;
        Ok(answer.clone())
    }

    fn is_recent(&self) -> bool {
        let answered = self.answer.get();
        answered.is_none_or(|(at, _)| at.elapsed() < MAX_AGE)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::oneshot;

    use super::*;

    fn call(id: &str, cmd: &str) -> HostedEvent {
        HostedEvent::ToolCall(ToolCall::new(id, "Bash", json!({ "command": cmd })))
    }

    fn answer(text: &str) -> HostAnswer {
        HostAnswer {
            stdout: text.to_owned(),
            ..HostAnswer::default()
        }
    }

    #[tokio::test]
    async fn the_second_shim_waits_for_the_answer_of_the_first() {
        let calls = AnsweredCalls::default();
        let Some(Repetition::First(first)) = calls.find("PreToolUse", &call("1", "ls")) else {
            panic!("it is new");
        };
        let Some(Repetition::Again(second)) = calls.find("PreToolUse", &call("1", "ls")) else {
            panic!("it is known");
        };
        let (decide, decided) = oneshot::channel();
        let first = first.answer(async || Ok(answer(decided.await.unwrap())));
        let second = second.answer(async || panic!("asked twice"));
        let decide = async { decide.send("no").unwrap() };
        let (first, second, ()) = tokio::join!(first, second, decide);
        assert_eq!(first, Ok(answer("no")));
        assert_eq!(second, first);
    }

    #[tokio::test]
    async fn if_the_first_shim_gives_up_or_fails_the_second_one_asks() {
        let calls = AnsweredCalls::default();
        let Some(Repetition::First(first)) = calls.find("PreToolUse", &call("1", "ls")) else {
            panic!("it is new");
        };
        let cancelled = first.answer(async || std::future::pending().await);
        assert!(futures_util::FutureExt::now_or_never(cancelled).is_none());
        let failed = first.answer(async || Err("broken".to_owned())).await;
        assert_eq!(failed, Err("broken".to_owned()));
        assert_eq!(
            first.answer(async || Ok(answer("no"))).await,
            Ok(answer("no"))
        );
    }

    #[test]
    fn only_the_same_event_with_the_same_call_is_a_repetition() {
        let calls = AnsweredCalls::default();
        let is_new = |name, event: &HostedEvent| {
            matches!(calls.find(name, event), Some(Repetition::First(_)))
        };
        assert!(is_new("PreToolUse", &call("1", "ls")));
        assert!(is_new("PreToolUse", &call("1", "sudo ls")));
        assert!(is_new("PreToolUse", &call("2", "ls")));
        assert!(is_new("PermissionRequest", &call("1", "ls")));
        assert!(!is_new("PreToolUse", &call("1", "ls")));
        assert!(calls.find("PreToolUse", &call("", "ls")).is_none());
    }

    #[test]
    fn the_memory_is_bounded() {
        let calls = AnsweredCalls::default();
        for number in 0..100 {
            calls.find("PreToolUse", &call(&number.to_string(), "ls"));
        }
        assert_eq!(calls.events.lock().len(), MAX_EVENTS);
    }
}
