//! What the store promises: durable before it is said, numbered without gaps, one process.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::json;
use tempfile::TempDir;
use tenterhook_channel::chat::{ChannelId, ChatRef, Sender, SessionKey};
use tenterhook_channel::frame::{Frame, TurnStatus};
use tenterhook_channel::message::{IncomingMessage, IncomingPart};
use tenterhook_channel::store::{
    DocumentKind, InboxId, InboxState, QueueDepth, Recorded, Store, StoreError,
};
use tenterhook_protocol::SessionId;
use tenterhook_protocol::event::SenderRole;

/// The folder in which a process that a test starts opens the store.
const CHILD_FOLDER: &str = "TENTERHOOK_TEST_STORE";

fn chat(name: &str) -> ChatRef {
    ChatRef {
        channel: ChannelId::new("web").unwrap(),
        chat: name.to_owned(),
        thread: None,
    }
}

fn message(dedupe: &str) -> IncomingMessage {
    IncomingMessage {
        dedupe: dedupe.to_owned(),
        message_id: dedupe.to_owned(),
        chat: chat("a"),
        sender: Sender {
            id: "ann".to_owned(),
            name: None,
            is_bot: false,
        },
        is_direct: true,
        is_addressed: true,
        parts: vec![IncomingPart::Text {
            text: "hello".to_owned(),
        }],
        reply_to: None,
        at: "2026-01-01T00:00:00Z".parse().unwrap(),
    }
}

fn said(text: &str) -> Frame {
    Frame::Said {
        message_id: "m".to_owned(),
        sender: "ann".to_owned(),
        text: text.to_owned(),
        media: Vec::new(),
        is_transcript: false,
    }
}

fn done() -> Frame {
    Frame::Done {
        turn: "t".to_owned(),
        status: TurnStatus::Completed,
        usage: None,
    }
}

fn nothing() -> (Vec<InboxId>, InboxState) {
    (Vec::new(), InboxState::Answered)
}

async fn accept(store: &Store, dedupe: &str) -> Result<Recorded, StoreError> {
    let key = SessionKey("web/a".to_owned());
    store.accept(message(dedupe), SenderRole::Member, key).await
}

async fn accept_fresh(store: &Store, dedupe: &str) -> InboxId {
    let recorded = accept(store, dedupe).await.unwrap();
    let Recorded::Fresh(record) = recorded else {
        panic!("{dedupe}: {recorded:?}");
    };
    record.id
}

async fn append(store: &Store, chat: &ChatRef, frames: Vec<Frame>) -> Vec<u64> {
    let frames = store.append(chat, frames, nothing()).await.unwrap();
    frames.iter().map(|frame| frame.seq.unwrap()).collect()
}

async fn unsent(store: &Store) -> Vec<(String, Vec<u64>)> {
    let chats = store.unsent().await.unwrap();
    let chats = chats.into_iter();
    chats
        .map(|(chat, numbers)| (chat.to_string(), numbers))
        .collect()
}

// G45
#[tokio::test]
async fn a_repeated_message_is_a_duplicate_also_after_a_restart_and_after_it_was_answered() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let first = accept_fresh(&store, "1").await;
    let second = accept_fresh(&store, "2").await;
    assert!(first < second);
    assert_eq!(accept(&store, "1").await, Ok(Recorded::Duplicate));
    store
        .set_inbox_state(vec![first], InboxState::Answered)
        .await
        .unwrap();
    drop(store);

    let store = Store::open(folder.path()).unwrap();
    for dedupe in ["1", "2"] {
        assert_eq!(accept(&store, dedupe).await, Ok(Recorded::Duplicate));
        let channel = ChannelId::new("web").unwrap();
        assert_eq!(store.has_seen(&channel, dedupe).await, Ok(true));
        assert_eq!(store.has_seen(&channel, "3").await, Ok(false));
    }
    let mut elsewhere = message("1");
    elsewhere.chat.channel = ChannelId::new("http").unwrap();
    let key = SessionKey("http/a".to_owned());
    let recorded = store
        .accept(elsewhere, SenderRole::Guest, key)
        .await
        .unwrap();
    assert!(matches!(recorded, Recorded::Fresh(record) if record.id > second));
}

#[tokio::test]
async fn messages_that_are_not_finished_come_back_in_order_with_their_state() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let mut ids = Vec::new();
    for dedupe in ["1", "2", "3"] {
        ids.push(accept_fresh(&store, dedupe).await);
    }
    let set_state = |id, state| store.set_inbox_state(vec![id], state);
    set_state(ids[1], InboxState::Running).await.unwrap();
    set_state(ids[0], InboxState::Refused("full".to_owned()))
        .await
        .unwrap();
    set_state(ids[0], InboxState::Running).await.unwrap();
    set_state(InboxId(99), InboxState::Failed).await.unwrap();
    drop(store);

    let store = Store::open(folder.path()).unwrap();
    let found = store.unfinished().await.unwrap();
    let found: Vec<_> = found
        .into_iter()
        .map(|record| (record.message.dedupe, record.role, record.state))
        .collect();
    let expected = [("2", InboxState::Running), ("3", InboxState::Received)];
    let expected = expected.map(|(id, state)| (id.to_owned(), SenderRole::Member, state));
    assert_eq!(found, expected);
}

#[tokio::test]
async fn the_10_001st_waiting_message_is_not_recorded_until_another_is_finished() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let dedupes: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
    let recorded = join_all(dedupes.iter().map(|dedupe| accept(&store, dedupe))).await;
    assert!(
        recorded
            .iter()
            .all(|recorded| matches!(recorded, Ok(Recorded::Fresh(_))))
    );
    assert_eq!(accept(&store, "late").await, Ok(Recorded::Full));
    assert_eq!(accept(&store, "7").await, Ok(Recorded::Duplicate));
    store
        .set_inbox_state(vec![InboxId(1)], InboxState::Cancelled)
        .await
        .unwrap();
    accept_fresh(&store, "late").await;
}

#[tokio::test]
async fn frames_of_a_chat_are_numbered_without_gaps_also_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let names = ["a", "b"].map(chat);
    let appends = (0..100).map(|number| {
        let frames = vec![said("x"); 1 + number % 3];
        append(&store, &names[number % 2], frames)
    });
    join_all(appends).await;
    drop(store);

    let store = Store::open(folder.path()).unwrap();
    for name in &names {
        let page = store.frames_after(name, 0, usize::MAX).await.unwrap();
        let seqs: Vec<u64> = page.frames.iter().map(|frame| frame.seq.unwrap()).collect();
        let count = u64::try_from(seqs.len()).unwrap();
        assert_eq!(seqs, (1..=count).collect::<Vec<_>>());
        assert_eq!(append(&store, name, vec![done()]).await, [count + 1]);
    }
}

#[tokio::test]
async fn a_frame_that_is_not_durable_is_refused_alone_and_nothing_of_its_change_is_stored() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let id = accept_fresh(&store, "1").await;
    let notice = Frame::Notice {
        text: "psst".to_owned(),
    };
    let chats = [chat("a"), chat("b")];
    let wrong = store.append(
        &chats[0],
        vec![said("x"), notice],
        (vec![id], InboxState::Answered),
    );
    let (wrong, right) = tokio::join!(wrong, append(&store, &chats[1], vec![said("y")]));
    assert!(matches!(wrong, Err(StoreError::Invalid { cause }) if cause.contains("`web:a`")));
    assert_eq!(right, [1]);
    assert_eq!(store.unfinished().await.unwrap().len(), 1);
    assert_eq!(append(&store, &chats[0], vec![said("x")]).await, [1]);
}

#[tokio::test]
async fn frames_and_the_messages_they_answer_are_stored_together() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let id = accept_fresh(&store, "1").await;
    let update = (vec![id], InboxState::Answered);
    let stored = store
        .append(&chat("a"), vec![said("hi"), done()], update)
        .await
        .unwrap();
    assert_eq!(stored[1].frame, done());
    assert_eq!(store.unfinished().await.unwrap(), []);
    assert_eq!(unsent(&store).await, [("web:a".to_owned(), vec![1, 2])]);
}

#[tokio::test]
async fn a_frame_waits_until_it_was_sent_or_failed() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let place = chat("a");
    append(&store, &place, vec![said("1"), said("2"), said("3")]).await;
    for seq in [1, 3, 3] {
        store.note_left(&place, seq).await.unwrap();
    }
    drop(store);

    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.unsent().await.unwrap(), [(place.clone(), vec![2])]);
    let waiting = store.unsent_from(&place, 1, 8).await.unwrap();
    assert_eq!(waiting.len(), 1);
    assert_eq!((waiting[0].seq, &waiting[0].frame), (Some(2), &said("2")));
    assert_eq!(store.unsent_from(&place, 3, 8).await.unwrap(), []);
    store.note_left(&place, 2).await.unwrap();
    assert_eq!(unsent(&store).await, []);
}

#[tokio::test]
async fn the_queues_say_how_much_waits_in_each_chat_and_since_when() {
    let store = Store::in_memory().unwrap();
    assert_eq!(store.queues().await.unwrap(), []);
    let first = accept_fresh(&store, "1").await;
    accept_fresh(&store, "2").await;
    let began = Timestamp::now().as_millisecond();
    append(&store, &chat("b"), vec![said("1"), said("2"), said("3")]).await;
    store.note_left(&chat("b"), 1).await.unwrap();
    let waiting = store.queues().await.unwrap();
    let [received, answered] = waiting.as_slice() else {
        panic!("{waiting:?}");
    };
    let at = message("1").at.as_millisecond();
    assert_eq!(received.chat, chat("a"));
    assert_eq!(
        (received.inbox.waiting, received.inbox.oldest),
        (2, Some(at))
    );
    assert_eq!(received.outbox, QueueDepth::default());
    assert_eq!(answered.chat, chat("b"));
    assert_eq!(answered.outbox.waiting, 2);
    // The store counts whole milliseconds.
    assert!(answered.outbox.oldest.unwrap() >= began);
    store
        .set_inbox_state(vec![first], InboxState::Answered)
        .await
        .unwrap();
    assert_eq!(store.queues().await.unwrap()[0].inbox.waiting, 1);
}

#[tokio::test]
async fn a_chat_keeps_its_newest_1_000_frames_and_all_that_have_not_left() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let place = chat("a");
    append(&store, &place, vec![said("x"); 1_200]).await;
    let page = store.frames_after(&place, 0, 2).await.unwrap();
    assert_eq!((page.oldest, page.frames.len()), (1, 2));

    let leave = |seqs: std::ops::Range<u64>| {
        let marks = seqs.map(|seq| store.note_left(&place, seq));
        join_all(marks)
    };
    leave(1..101).await;
    leave(102..1_201).await;
    append(&store, &place, vec![done()]).await;
    let page = store.frames_after(&place, 0, 1).await.unwrap();
    assert_eq!((page.oldest, page.frames[0].seq), (101, Some(101)));

    leave(101..102).await;
    append(&store, &place, vec![done()]).await;
    let page = store.frames_after(&place, 0, usize::MAX).await.unwrap();
    assert_eq!((page.oldest, page.frames.len()), (203, 1_000));
}

#[tokio::test]
async fn a_page_of_long_frames_is_not_larger_than_a_mebibyte() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let (place, long) = (chat("a"), said(&"x".repeat(300 << 10)));
    append(&store, &place, vec![long; 5]).await;
    append(&store, &place, vec![said(&"x".repeat(2 << 20))]).await;
    let seqs = |page: &tenterhook_channel::store::FramePage| {
        let seqs = page.frames.iter().map(|frame| frame.seq.unwrap());
        (seqs.collect::<Vec<u64>>(), page.has_more)
    };
    let after = async |seq| seqs(&store.frames_after(&place, seq, 200).await.unwrap());
    assert_eq!(after(0).await, (vec![1, 2, 3], true));
    assert_eq!(after(3).await, (vec![4, 5], true));
    assert_eq!(after(5).await, (vec![6], false));
    let before = async |seq| seqs(&store.frames_before(&place, seq, 200).await.unwrap());
    assert_eq!(before(u64::MAX).await, (vec![6], true));
    assert_eq!(before(6).await, (vec![3, 4, 5], true));
    assert_eq!(before(3).await, (vec![1, 2], false));
}

#[tokio::test]
async fn the_chats_of_one_person_are_found_however_many_others_have() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path()).unwrap();
    append(&store, &chat("ada/work"), vec![said("mine")]).await;
    for name in ["bob/1", "bob/2", "adam/1", "ad/a", "ada", "ada\"/x"] {
        append(&store, &chat(name), vec![said("other")]).await;
    }
    append(&store, &chat("ada/home"), vec![said("mine")]).await;
    let own = store.chats_of(&chat("ada/"), 3).await.unwrap();
    let names: Vec<&str> = own.iter().map(|own| own.chat.chat.as_str()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.contains(&"ada/work") && names.contains(&"ada/home"));
    assert_eq!(store.chats_of(&chat("ada/"), 1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_message_that_is_forgotten_can_be_sent_again() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let Ok(Recorded::Fresh(record)) = accept(&store, "1").await else {
        panic!("the message is new");
    };
    store.forget(record.id).await.unwrap();
    assert!(store.unfinished().await.unwrap().is_empty());
    assert!(matches!(accept(&store, "1").await, Ok(Recorded::Fresh(_))));
}

#[tokio::test]
async fn pages_of_frames_go_forwards_and_backwards() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let place = chat("a");
    append(&store, &place, vec![said("x"); 10]).await;
    append(&store, &chat("a\",\"b"), vec![said("other")]).await;
    let seqs = |page: tenterhook_channel::store::FramePage| {
        assert_eq!(page.oldest, 1);
        let seqs = page.frames.iter().map(|frame| frame.seq.unwrap());
        seqs.collect::<Vec<u64>>()
    };
    for (after, limit, expected) in [
        (0, 3, vec![1, 2, 3]),
        (8, 3, vec![9, 10]),
        (10, 3, vec![]),
        (u64::MAX, 3, vec![]),
    ] {
        let page = store.frames_after(&place, after, limit).await.unwrap();
        assert_eq!(seqs(page), expected, "after {after}");
    }
    for (before, limit, expected) in [
        (u64::MAX, 3, vec![8, 9, 10]),
        (3, 3, vec![1, 2]),
        (1, 3, vec![]),
        (0, 3, vec![]),
    ] {
        let page = store.frames_before(&place, before, limit).await.unwrap();
        assert_eq!(seqs(page), expected, "before {before}");
    }
    let none = store.frames_after(&chat("none"), 0, 5).await.unwrap();
    assert_eq!((none.frames, none.oldest), (vec![], 0));
}

#[tokio::test]
async fn chats_are_listed_by_time_with_the_beginning_of_their_first_message() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let mut thread = chat("a");
    thread.thread = Some("7".to_owned());
    append(&store, &chat("a"), vec![done()]).await;
    let long = format!("{}\n\u{7} äöü {}", "word ".repeat(3), "x".repeat(200));
    append(&store, &chat("a"), vec![said(&long)]).await;
    append(&store, &chat("a"), vec![said("later")]).await;
    append(&store, &thread, vec![said("in a thread")]).await;
    let chats = store.chats(10).await.unwrap();
    assert!(chats[0].at >= chats[1].at);
    let of = |wanted: &ChatRef| chats.iter().find(|found| found.chat == *wanted).unwrap();
    let titled = of(&chat("a"));
    assert_eq!(titled.last_seq, 3);
    assert!(titled.title.starts_with("word word word äöü xxx"));
    assert_eq!(titled.title.chars().count(), 80);
    assert_eq!(of(&thread).title, "in a thread");
    assert_eq!(store.chats(1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn sessions_and_documents_survive_a_restart_until_they_are_removed() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let key = SessionKey("web/a".to_owned());
    assert_eq!(store.session(&key).await.unwrap(), None);
    let session = SessionId::from("s1");
    store
        .set_session(&key, Some(session.clone()))
        .await
        .unwrap();
    for (kind, id) in [
        (DocumentKind::Token, "b"),
        (DocumentKind::Token, "a"),
        (DocumentKind::Pairing, "z"),
        (DocumentKind::Offset, "z"),
    ] {
        let value = json!({ "of": id });
        store.set_document(kind, id, Some(value)).await.unwrap();
    }
    drop(store);

    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.session(&key).await.unwrap(), Some(session));
    store.set_session(&key, None).await.unwrap();
    assert_eq!(store.session(&key).await.unwrap(), None);
    let tokens = store.documents(DocumentKind::Token).await.unwrap();
    let expected = ["a", "b"].map(|id| (id.to_owned(), json!({ "of": id })));
    assert_eq!(tokens, expected);
    store
        .set_document(DocumentKind::Token, "a", None)
        .await
        .unwrap();
    let found = store.document(DocumentKind::Token, "a").await.unwrap();
    assert_eq!(found, None);
    let offset = store.document(DocumentKind::Offset, "z").await.unwrap();
    assert_eq!(offset, Some(json!({ "of": "z" })));
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let outer = TempDir::new().unwrap();
    let folder = outer.path().join("state/gateway");
    let store = Store::open(&folder).unwrap();
    accept_fresh(&store, "1").await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for file in ["gateway.redb", "gateway.lock"] {
        assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
    }
}

/// Starts this test binary again, with one test that acts on the store in `folder`.
fn child(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture"])
        .env(CHILD_FOLDER, folder)
        .stdout(Stdio::piped());
    command
}

// G7
#[tokio::test]
async fn a_second_process_cannot_open_the_store() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path()).unwrap();
    accept_fresh(&store, "1").await;
    let again = Store::open(folder.path()).map(drop);
    assert_eq!(again, Err(StoreError::Locked));
    let mut other = child("store::child_opens_the_store", folder.path());
    let output = other.output().unwrap();
    let output = String::from_utf8_lossy(&output.stdout);
    assert!(output.contains("opened: Err(Locked)"), "{output}");
    drop(store);
    let output = other.output().unwrap();
    let output = String::from_utf8_lossy(&output.stdout);
    assert!(output.contains("opened: Ok"), "{output}");
}

#[test]
fn child_opens_the_store() {
    if let Some(folder) = std::env::var_os(CHILD_FOLDER) {
        println!("\nopened: {:?}", Store::open(folder.as_ref()));
    }
}

// G41 and G42, the part of the store
#[tokio::test]
async fn what_was_confirmed_is_there_after_kill_9_and_numbers_have_no_gaps() {
    let folder = TempDir::new().unwrap();
    let mut accepted = Vec::new();
    let mut answered = Vec::new();
    for round in 0..6 {
        let mut process = child("store::child_writes_until_it_is_killed", folder.path())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut count = 0;
        for line in output.lines() {
            let line = line.unwrap();
            let mut words = line.split(' ');
            match (words.next(), words.next()) {
                (Some("accepted"), Some(dedupe)) => accepted.push(dedupe.to_owned()),
                (Some("answered"), Some(dedupe)) => answered.push(dedupe.to_owned()),
                _ => continue,
            }
            count += 1;
            if count == 20 + round * 17 {
                process.kill().unwrap();
            }
        }
        process.wait().unwrap();

        let store = Store::open(folder.path()).unwrap();
        for dedupe in &accepted {
            let again = accept(&store, dedupe).await;
            assert_eq!(again, Ok(Recorded::Duplicate), "{dedupe}");
        }
        let waiting = store.unfinished().await.unwrap();
        let is_waiting = |dedupe: &str| waiting.iter().any(|found| found.message.dedupe == dedupe);
        let mut frames = 0;
        for summary in store.chats(100).await.unwrap() {
            let page = store.frames_after(&summary.chat, 0, 5_000).await.unwrap();
            let seqs: Vec<u64> = page.frames.iter().map(|frame| frame.seq.unwrap()).collect();
            let expected: Vec<u64> = (page.oldest..=summary.last_seq).collect();
            assert_eq!(seqs, expected, "{}", summary.chat);
            // A message is answered if, and only if, its frames are there.
            for frame in page.frames {
                if let Frame::Said { message_id, .. } = frame.frame {
                    assert!(!is_waiting(&message_id), "{message_id}");
                    frames += 1;
                }
            }
        }
        assert!(frames >= answered.len(), "{frames} of {}", answered.len());
        assert!(answered.iter().all(|dedupe| !is_waiting(dedupe)));
    }
    assert!(accepted.len() > 100 && answered.len() > 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(CHILD_FOLDER) else {
        return;
    };
    println!();
    let store = Store::open(folder.as_ref()).unwrap();
    let process = std::process::id();
    let workers = (0..8).map(|worker| {
        let store = store.clone();
        tokio::spawn(async move {
            let place = chat(&worker.to_string());
            for number in 0..10_000 {
                let dedupe = format!("{process}-{worker}-{number}");
                let id = accept_fresh(&store, &dedupe).await;
                println!("accepted {dedupe}");
                let mut heard = said("x");
                if let Frame::Said { message_id, .. } = &mut heard {
                    message_id.clone_from(&dedupe);
                }
                let update = (vec![id], InboxState::Answered);
                let stored = store.append(&place, vec![heard, done()], update).await;
                println!("answered {dedupe}");
                let seq = stored.unwrap()[0].seq.unwrap();
                store.note_left(&place, seq).await.unwrap();
            }
        })
    });
    join_all(workers).await;
}

#[tokio::test]
async fn a_database_that_was_cut_is_called_damaged_and_the_disk_is_not_blamed() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    accept(&store, "1").await.unwrap();
    drop(store);
    let path = folder.path().join("gateway.redb");
    let whole = std::fs::read(&path).unwrap();
    for kept in [1, 100, 4096, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..kept]).unwrap();
        let Err(StoreError::Io { cause }) = Store::open(folder.path()).map(drop) else {
            panic!("a store of {kept} of {} bytes was opened", whole.len());
        };
        assert!(cause.contains("the file is damaged"), "{kept}: {cause}");
        assert!(!cause.contains("free space"), "{kept}: {cause}");
    }
}
