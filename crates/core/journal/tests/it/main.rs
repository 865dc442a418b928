//! Tests of journals in files.

use std::sync::Arc;

use tenterhook_engine::event::TurnStart;
use tenterhook_engine::journal::JournalRecord;
use tenterhook_engine::{Effect, Engine, Origin};
use tenterhook_journal::FileJournal;

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
    notices.extend(tenterhook_engine::JournalSink::take_problem(&*journal));
    let expected = "cannot write the journal `/dev/full`: ";
    assert!(
        notices.iter().any(|notice| notice.starts_with(expected)),
        "{notices:?}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_journal_that_is_moved_away_begins_a_new_file_and_loses_no_record() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let journal = Arc::new(FileJournal::open(&path).unwrap());
    let engine = Engine::builder().journal(journal.clone()).build();
    engine.on(|_: &TurnStart| ());
    let hooks = engine.dispatcher(Origin::default());
    let lines = |path: &std::path::Path| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().count()
    };
    let mut moved = Vec::new();
    for round in 0..5 {
        for _ in 0..20 {
            drop(hooks.dispatch(TurnStart::default()).await);
        }
        while lines(&path) == 0 {
            tokio::task::yield_now().await;
        }
        moved.push(dir.path().join(format!("journal.jsonl.{round}")));
        std::fs::rename(&path, &moved[round]).unwrap();
    }
    drop(hooks.dispatch(TurnStart::default()).await);
    journal.close().unwrap();
    let kept: usize = moved.iter().map(|path| lines(path)).sum();
    assert_eq!(kept + lines(&path), 2 * 101);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
