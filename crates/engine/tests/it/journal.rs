//! What the journal says of a dispatch.

use std::sync::Arc;

use tenterhook::event::{PreToolUse, TurnStart};
use tenterhook::journal::{FORMAT_VERSION, JournalRecord, RunStatus};
use tenterhook::{
    Effect, Engine, EventKind, FileJournal, MemoryJournal, OnError, Origin, Permission,
};

use crate::{command, on_error, shell_call};

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
async fn a_call_that_goes_through_because_a_hook_failed_is_in_the_journal() {
    let journal = Arc::new(MemoryJournal::new());
    let engine = Engine::builder().journal(journal.clone()).build();
    engine.register(on_error(
        command(EventKind::PreToolUse, "guard", "exit 1"),
        OnError::Ignore,
    ));
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(shell_call("ls"))
        .await;
    assert_eq!(outcome.decision().reason(), None);
    let records = journal.take();
    let [JournalRecord::Run(run), JournalRecord::Dispatch(dispatch)] = &records[..] else {
        panic!("{records:?}")
    };
    assert!(run.let_through);
    assert_eq!(
        (run.status, run.cause.as_deref()),
        (RunStatus::Failed, Some("exited with status 1"))
    );
    assert!(dispatch.failures[0].let_through && !dispatch.stopped);
}

#[tokio::test]
async fn a_journal_file_holds_one_object_a_line_and_grows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/journal.jsonl");
    for _ in 0..2 {
        let journal = Arc::new(FileJournal::open(&path).unwrap());
        let engine = Engine::builder().journal(journal.clone()).build();
        engine.on(|_: &TurnStart| Effect::none().context("x"));
        let hooks = engine.dispatcher(Origin::default());
        for _ in 0..10 {
            drop(hooks.dispatch(TurnStart::default()).await);
        }
        journal.close().unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let records: Vec<JournalRecord> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records.len(), 40);
    assert!(
        text.lines().all(|line| line.starts_with(r#"{"record":""#)),
        "{text}"
    );
}

#[tokio::test]
async fn a_journal_that_cannot_be_opened_says_which() {
    let dir = tempfile::tempdir().unwrap();
    let error = FileJournal::open(dir.path()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot write the journal `{}`", dir.path().display())
    );
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

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_journal_that_cannot_be_written_is_told_to_the_user_and_tried_again() {
    let journal = Arc::new(FileJournal::open("/dev/full").unwrap());
    let engine = Engine::builder().journal(journal.clone()).build();
    engine.on(|_: &TurnStart| ());
    let hooks = engine.dispatcher(Origin::default());
    let mut notices = Vec::new();
    for _ in 0..1000 {
        notices.extend(
            hooks
                .dispatch(TurnStart::default())
                .await
                .notices()
                .to_vec(),
        );
        tokio::task::yield_now().await;
    }
    assert!(journal.close().is_err());
    notices.extend(tenterhook::JournalSink::take_problem(&*journal));
    let expected = "cannot write the journal `/dev/full`: ";
    assert!(
        notices.iter().any(|notice| notice.starts_with(expected)),
        "{notices:?}"
    );
}
