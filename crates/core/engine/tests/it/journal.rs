//! What the journal records about a dispatch.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::json;
use tenterhook_engine::event::PreToolUse;
use tenterhook_engine::journal::{
    DispatchRecord, FORMAT_VERSION, JournalRecord, RunStatus, RunStep,
};
use tenterhook_engine::{
    Answer, AnyEffect, AsyncHandler, Call, Decision, Effect, Engine, EventKind, Handler,
    MemoryJournal, Origin, Permission,
};

use crate::dispatching::answering;
use crate::{shell_call, spec};

#[tokio::test]
async fn a_dispatch_writes_a_record_for_every_hook_and_one_for_itself() {
    let journal = Arc::new(MemoryJournal::new());
    let engine = Engine::builder().journal(journal.clone()).build();
    engine.on(|_: &PreToolUse| Effect::allow());
    engine.on(|_: &PreToolUse| Effect::deny("no"));
    engine.on(|_: &PreToolUse| Effect::allow());
    drop(
        engine
            .dispatcher(Origin::default())
            .dispatch(shell_call("ls"))
            .await,
    );
    let records = journal.take();
    let runs: Vec<(RunStatus, &str, Option<&str>)> = records
        .iter()
        .filter_map(|record| {
            if let JournalRecord::Run(run) = record {
                Some(run)
            } else {
                None
            }
        })
        .map(|run| (run.status, run.effect.as_str(), run.cause.as_deref()))
        .collect();
    let ended = "`function 2 on pre_tool_use` ended the dispatch";
    let expected = [
        (RunStatus::Completed, "allow", None),
        (RunStatus::Completed, "deny", None),
        (RunStatus::Skipped, "none", Some(ended)),
    ];
    assert_eq!(runs, expected);
    let Some(JournalRecord::Dispatch(dispatch)) = records.last() else {
        panic!("no dispatch record")
    };
    assert_eq!(
        (dispatch.v, dispatch.hooks, dispatch.sequence),
        (FORMAT_VERSION, 3, 1)
    );
    assert_eq!(
        (dispatch.permission, dispatch.stopped),
        (Permission::Deny, true)
    );
    assert_eq!(
        (dispatch.subject.as_deref(), dispatch.reason.as_deref()),
        (Some("shell"), Some("no"))
    );
    assert_eq!(dispatch.tool_use_id.as_ref().unwrap().as_str(), "call_1");
}

#[tokio::test]
async fn a_dropped_dispatch_is_recorded_as_such() {
    let journal = Arc::new(MemoryJournal::new());
    let engine = Engine::builder().journal(journal.clone()).build();
    engine.on_async(|_: &PreToolUse| Box::pin(std::future::pending::<()>()));
    let hooks = engine.dispatcher(Origin::default());
    {
        let mut dispatch = std::pin::pin!(hooks.dispatch(shell_call("ls")));
        assert!(futures_util::poll!(dispatch.as_mut()).is_pending());
    }
    let records = journal.take();
    let [JournalRecord::Dispatch(dispatch)] = &records[..] else {
        panic!("{records:?}")
    };
    assert_eq!(
        dispatch.reason.as_deref(),
        Some("the host dropped the dispatch")
    );
}

#[tokio::test]
async fn what_a_host_adds_reaches_functions_and_the_journal() {
    let journal = Arc::new(MemoryJournal::new());
    let engine = Engine::builder().journal(journal.clone()).build();
    engine
        .hook("models")
        .on_from(|event: &PreToolUse, origin: &Origin| {
            match (event.extra.get("turn_id"), origin.extra.get("model")) {
                (Some(turn), Some(model)) => Effect::deny(format!("{turn} of {model}")),
                _ => Effect::none(),
            }
        });
    let origin = Origin::default().with_extra("model", "gpt-5");
    let outcome = engine
        .dispatcher(origin)
        .dispatch(shell_call("ls").with_extra("turn_id", 7))
        .await;
    assert_eq!(outcome.decision().reason(), Some("7 of \"gpt-5\""));
    let records = journal.take();
    let Some(JournalRecord::Dispatch(record)) = records.last() else {
        unreachable!("a dispatch ends with its record: {records:?}")
    };
    let text = serde_json::to_string(record).unwrap();
    assert!(text.contains(r#""extra":{"turn_id":7},"origin_extra":{"model":"gpt-5"}"#));
    assert_eq!(
        serde_json::from_str::<DispatchRecord>(&text).unwrap(),
        *record
    );
}

#[tokio::test]
async fn a_hook_that_rewrites_what_the_host_added_has_failed_and_denies() {
    let engine = Engine::new();
    let rewrite = json!({ "extra": { "turn_id": "forged" } });
    let effect = AnyEffect {
        rewrite: rewrite.as_object().cloned().unwrap(),
        ..AnyEffect::default()
    };
    engine.register(spec(EventKind::PreToolUse, "forger", answering(effect)));
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(shell_call("ls").with_extra("turn_id", 7))
        .await;
    assert!(matches!(outcome.decision(), Decision::Stop { .. }));
    assert!(outcome.rewritten().is_none());
}

/// A handler that measures a part of its work, and answers although something went wrong.
#[derive(Debug)]
struct Noting;

impl AsyncHandler for Noting {
    fn kind(&self) -> &'static str {
        "noting"
    }

    fn describe(&self) -> String {
        "noting".to_owned()
    }

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
        call.notes
            .add_step("transcription", Duration::from_millis(420));
        call.notes
            .add_problem(|| "one of two was not understood".to_owned());
        Box::pin(std::future::ready(Ok(None)))
    }
}

#[tokio::test]
async fn what_a_handler_notes_is_in_the_record_of_its_run() {
    let journal = Arc::new(MemoryJournal::new());
    let engine = Engine::builder().journal(journal.clone()).build();
    let handler = Handler::Async(Arc::new(Noting));
    engine.register(spec(EventKind::PreToolUse, "noting", handler));
    let hooks = engine.dispatcher(Origin::default());
    drop(hooks.dispatch(shell_call("ls")).await);
    let records = journal.take();
    let [JournalRecord::Run(run), _] = &records[..] else {
        panic!("{records:?}")
    };
    assert_eq!(
        run.steps,
        [RunStep::new("transcription", Duration::from_millis(420))]
    );
    assert_eq!(run.problems, ["one of two was not understood"]);
    assert_eq!(run.status, RunStatus::Completed);
}
