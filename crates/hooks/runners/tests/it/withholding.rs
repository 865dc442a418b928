//! A hook that may redact a result and fails under `block` withholds the result, and its error does
//! not quote it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::json;
use tenterhook_engine::event::{
    BeforeLlmCall, Context, MessageEnd, PostToolUse, ProviderRequest, ToolResponseTransform,
};
use tenterhook_engine::journal::JournalRecord;
use tenterhook_engine::{
    Answer, AsyncHandler, Call, Effect, Engine, Event, EventClass, HandlerError, HookSpec,
    JsonObject, MemoryJournal, Message, OnError, Origin, Phase, ToolCall, ToolResult,
};

use crate::command::command;
use crate::{on_error, spec};

const SECRET: &str = "hunter2";

/// Prints the whole event on stderr and crashes, as a script with a traceback does.
const CRASH: &str = "cat >&2; exit 1";

fn details() -> JsonObject {
    JsonObject::from_iter([("stdout".to_owned(), SECRET.into())])
}

fn message() -> Message {
    Message::assistant(SECRET)
        .with_reasoning(SECRET.to_owned())
        .with_tool_calls(vec![ToolCall::new("", "", json!({ "key": SECRET }))])
}

fn response() -> ToolResponseTransform {
    ToolResponseTransform::new("shell").with_tool_response(SECRET.to_owned())
}

fn result() -> PostToolUse {
    PostToolUse::new("shell").with_result(
        ToolResult::text(SECRET)
            .with_details(details())
            .with_is_error(true),
    )
}

fn conversation() -> Context {
    Context::new(vec![Message::user("go"), message()])
}

fn call() -> BeforeLlmCall {
    BeforeLlmCall::new().with_messages(conversation().messages)
}

/// The results of a dispatch with one hook.
struct Seen<E> {
    event: Option<E>,
    is_stopped: bool,
    /// Everything but the event: outcome, failures, journal.
    told: String,
    /// What the hook's record says that it did.
    effect: String,
}

async fn dispatch<E: Event>(event: E, hook: HookSpec, strict: bool) -> Seen<E> {
    let journal = Arc::new(MemoryJournal::new());
    let engine = Engine::builder()
        .journal(journal.clone())
        .strict(strict)
        .build();
    let id = hook.id.clone();
    engine.register(hook);
    let outcome = engine.dispatcher(Origin::default()).dispatch(event).await;
    let records = journal.take();
    let run = records.iter().find_map(|record| {
        let JournalRecord::Run(run) = record else {
            return None;
        };
        (run.hook == id).then(|| run.effect.clone())
    });
    let event = outcome.rewritten().cloned();
    let any = outcome.into_any();
    let is_stopped = !E::INFO.decision(&any).is_proceed();
    Seen {
        event,
        is_stopped,
        told: format!("{any:?} {}", serde_json::to_string(&records).unwrap()),
        effect: run.unwrap(),
    }
}

/// A handler that fails after a turn of the runtime, with the secret in its message.
#[derive(Debug)]
struct Crash;

impl AsyncHandler for Crash {
    fn kind(&self) -> &'static str {
        "crash"
    }

    fn describe(&self) -> String {
        "crash".to_owned()
    }

    fn handle<'a>(&'a self, _call: &'a Call) -> BoxFuture<'a, Answer> {
        Box::pin(async {
            tokio::task::yield_now().await;
            Err(HandlerError::Other {
                problem: format!("cannot redact {SECRET}"),
            })
        })
    }
}

/// Sends `event` to hooks that crash in every way, and checks that nothing of it is left.
async fn is_withheld<E: Event>(event: E) {
    let info = E::INFO;
    let crashing = [
        command(info.kind, "redactor", CRASH),
        command(info.kind, "redactor", "echo '{'; cat; exit 0"),
        spec(info.kind, "redactor", Arc::new(Crash)),
    ];
    for hook in crashing {
        for phase in [Phase::Transform, Phase::Main] {
            for (policy, strict) in [
                (OnError::Block, false),
                (OnError::Warn, true),
                (OnError::Ignore, true),
            ] {
                let hook = HookSpec {
                    phase,
                    ..on_error(hook.clone(), policy)
                };
                let case = format!(
                    "{} {phase:?} {policy:?} {}",
                    info.name,
                    hook.handling.describe()
                );
                let seen = dispatch(event.clone(), hook, strict).await;
                let event = format!("{:?}", seen.event.unwrap());
                assert!(
                    event.contains("[withheld: hook `redactor` failed: "),
                    "{case}: {event}"
                );
                assert!(!event.contains(SECRET), "{case}: {event}");
                assert!(!seen.told.contains(SECRET), "{case}: {}", seen.told);
                match info.class {
                    EventClass::Gate => assert!(seen.is_stopped, "{case}"),
                    EventClass::Observer => assert_eq!(seen.effect, "withhold", "{case}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn a_redactor_that_crashes_withholds_the_result() {
    is_withheld(response()).await;
    is_withheld(result()).await;
    is_withheld(MessageEnd::new(message())).await;
    is_withheld(conversation()).await;
    is_withheld(call()).await;
    is_withheld(ProviderRequest::new(json!({ "messages": [SECRET] }))).await;
}

#[tokio::test]
async fn a_hook_that_may_not_rewrite_or_need_not_be_waited_for_withholds_nothing() {
    for (phase, policy, strict) in [
        (Phase::Main, OnError::Warn, false),
        (Phase::Main, OnError::Ignore, false),
        (Phase::Guard, OnError::Block, true),
        (Phase::Observe, OnError::Block, true),
    ] {
        let hook = HookSpec {
            phase,
            ..on_error(
                command(ToolResponseTransform::INFO.kind, "h", CRASH),
                policy,
            )
        };
        let seen = dispatch(response(), hook, strict).await;
        assert_eq!(seen.event, None, "{phase:?} {policy:?}");
    }
}

#[tokio::test]
async fn a_redactor_that_runs_out_of_time_withholds_the_result() {
    let mut hook = on_error(
        command(PostToolUse::INFO.kind, "redactor", "sleep 60"),
        OnError::Block,
    );
    hook.timeout = std::time::Duration::from_millis(20);
    let seen = dispatch(result(), hook, false).await;
    let notice = "[withheld: hook `redactor` failed: timed out after 0.02s]";
    assert_eq!(seen.event.unwrap().result, ToolResult::error(notice));
}

#[tokio::test]
async fn a_function_that_panics_withholds_the_result_on_the_stack_too() {
    let engine = Engine::builder().strict(true).build();
    engine.on(
        |event: &ToolResponseTransform| -> Effect<ToolResponseTransform> {
            panic!("cannot redact {}", event.tool_response)
        },
    );
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(response())
        .await;
    assert_eq!(
        outcome.withheld_by().unwrap().as_str(),
        "function 1 on tool_response_transform"
    );
    let text = &outcome.rewritten().unwrap().tool_response;
    assert!(text.ends_with("failed: panicked]"), "{text}");
    assert!(!format!("{outcome:?}").contains(SECRET), "{outcome:?}");
}

#[tokio::test]
async fn a_later_hook_sees_the_notice_and_cannot_bring_the_result_back() {
    let engine = Engine::new();
    let kind = ToolResponseTransform::INFO.kind;
    engine.register(on_error(command(kind, "redactor", CRASH), OnError::Block));
    engine.on(|event: &ToolResponseTransform| {
        Effect::none().replace_response(event.tool_response.to_uppercase())
    });
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(response())
        .await;
    let text = &outcome.rewritten().unwrap().tool_response;
    assert_eq!(
        text,
        "[WITHHELD: HOOK `REDACTOR` FAILED: EXITED WITH STATUS 1]"
    );
}
