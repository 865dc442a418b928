use std::fs::OpenOptions;
use std::io::Write as _;

use tempfile::TempDir;
use tenterhook_protocol::Message;

use super::*;
use crate::sessions::entry_kind::MESSAGE;
use crate::sessions::file::FORMAT;
use crate::sessions::tail::SessionTail;

/// Returns the store of a project in a temporary folder.
fn project() -> (TempDir, SessionStore) {
    let dir = TempDir::new().unwrap();
    let sessions = SessionStore::of_project(dir.path(), Path::new("/work/my project"));
    (dir, sessions)
}

/// Stores a session with a question and its answer.
async fn stored(sessions: &SessionStore) -> Session {
    let mut session = Session::new("s".into());
    sessions.begin(&mut session);
    session.push(Message::user("one"));
    session.push(Message::assistant("two"));
    assert!(session.save().await.unwrap());
    session
}

fn path(sessions: &SessionStore) -> PathBuf {
    sessions.folder().join("s.jsonl")
}

fn add(sessions: &SessionStore, bytes: &[u8]) {
    let mut options = OpenOptions::new();
    let mut file = options.append(true).open(path(sessions)).unwrap();
    file.write_all(bytes).unwrap();
}

#[tokio::test]
async fn a_session_is_read_as_it_was_written() {
    let (_dir, sessions) = project();
    let mut session = stored(&sessions).await;
    let one = session.entries()[0].id.clone();
    session.label(&one, Some("start")).unwrap();
    session.go_to(Some(&one)).unwrap();
    session.push(Message::assistant("other"));
    assert!(session.save().await.unwrap());
    assert!(!session.save().await.unwrap());
    let read = sessions.read(session.id()).unwrap();
    assert_eq!((&read.session, read.unfinished_line), (&session, None));
    assert_eq!(read.cwd, Path::new("/work/my project"));
}

#[tokio::test]
async fn there_is_no_file_before_somebody_said_something() {
    let (_dir, sessions) = project();
    let mut session = Session::new("s".into());
    sessions.begin(&mut session);
    session.push_context("rules".to_owned());
    session.set_name("n");
    assert!(!session.save().await.unwrap());
    assert!(!sessions.folder().exists());
    session.push(Message::user("one"));
    assert!(session.save().await.unwrap());
    assert_eq!(sessions.newest().unwrap(), Some("s".into()));
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_may_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_dir, sessions) = project();
    let _session = stored(&sessions).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path(&sessions)), 0o600);
    assert_eq!(mode(sessions.folder()), 0o700);
}

#[tokio::test]
async fn one_process_writes_and_all_may_read() {
    let (_dir, sessions) = project();
    let session = stored(&sessions).await;
    let error = sessions.open(session.id()).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "the session in `{}` is in use by another process",
            path(&sessions).display()
        )
    );
    assert_eq!(sessions.read(session.id()).unwrap().session, session);
    drop(session);
    let opened = sessions.open(&"s".into()).unwrap();
    assert!(sessions.open(&"s".into()).is_err());
    let copy = opened.session.clone();
    drop(opened);
    assert!(sessions.open(copy.id()).is_ok());
}

#[tokio::test]
async fn what_was_not_written_to_its_end_is_cut_off_and_said() {
    let (_dir, sessions) = project();
    drop(stored(&sessions).await);
    let whole = fs::read(path(&sessions)).unwrap();
    let last = whole.trim_ascii_end().iter().rposition(|b| *b == b'\n');
    let start = last.unwrap() + 1;
    for end in start + 1..whole.len() - 1 {
        fs::write(path(&sessions), &whole[..end]).unwrap();
        let unfinished_line = Some(UnfinishedLine {
            line: 3,
            bytes: end - start,
        });
        assert_eq!(
            sessions.read(&"s".into()).unwrap().unfinished_line,
            unfinished_line
        );
        assert_eq!(fs::read(path(&sessions)).unwrap().len(), end);
        let opened = sessions.open(&"s".into()).unwrap();
        assert_eq!(
            (opened.unfinished_line, opened.session.entries().len()),
            (unfinished_line, 1)
        );
        assert_eq!(fs::read(path(&sessions)).unwrap(), whole[..start]);
    }
}

#[tokio::test]
async fn a_last_line_that_is_whole_but_for_its_end_is_kept() {
    let (_dir, sessions) = project();
    drop(stored(&sessions).await);
    let whole = fs::read(path(&sessions)).unwrap();
    fs::write(path(&sessions), &whole[..whole.len() - 1]).unwrap();
    let mut opened = sessions.open(&"s".into()).unwrap();
    assert_eq!(
        (opened.unfinished_line, opened.session.entries().len()),
        (None, 2)
    );
    opened.session.push(Message::user("three"));
    assert!(opened.session.save().await.unwrap());
    assert_eq!(sessions.read(&"s".into()).unwrap().session, opened.session);
}

#[tokio::test]
async fn a_session_goes_on_where_it_was() {
    let (_dir, sessions) = project();
    drop(stored(&sessions).await);
    let before = fs::read(path(&sessions)).unwrap();
    let mut opened = sessions.open(&"s".into()).unwrap();
    assert!(!opened.session.save().await.unwrap());
    assert_eq!(fs::read(path(&sessions)).unwrap(), before);
    let refused = opened.session.push(Message::user("refused"));
    opened.session.take_back(std::slice::from_ref(&refused));
    assert!(!opened.session.save().await.unwrap());
    let two = opened.session.leaf().unwrap().clone();
    opened.session.take_back(std::slice::from_ref(&two));
    assert!(opened.session.save().await.unwrap());
    let read = sessions.read(&"s".into()).unwrap().session;
    assert_eq!(read.messages(), [Message::user("one")]);
    assert_eq!(read.tree().len(), 2);
    let after = fs::read(path(&sessions)).unwrap();
    assert_eq!(after[..before.len()], before);
}

#[tokio::test]
async fn a_damaged_line_is_an_error_that_names_it() {
    let (_dir, sessions) = project();
    drop(stored(&sessions).await);
    let whole = fs::read_to_string(path(&sessions)).unwrap();
    let entry = |id: &str, parent: &str| {
        format!("{{\"id\":\"{id}\",\"parent_id\":\"{parent}\",\"kind\":\"{MESSAGE}\"}}\n")
    };
    for (added, expected) in [
        (
            "nonsense\n".to_owned(),
            "which is not a valid entry: expected ident",
        ),
        ("\n".to_owned(), "which is not a valid entry: EOF"),
        (
            entry("2", "2"),
            "which has the id `2`, expected a number above 2",
        ),
        (
            entry("3", "1"),
            "which names `1` as its parent, expected `2`, the leaf",
        ),
        (entry("x", "2"), "which has the id `x`"),
    ] {
        fs::write(path(&sessions), &whole).unwrap();
        add(&sessions, added.as_bytes());
        add(&sessions, entry("4", "3").as_bytes());
        let before = fs::read(path(&sessions)).unwrap();
        let error = sessions.open(&"s".into()).unwrap_err().to_string();
        let place = format!("`{}` is damaged in line 4, ", path(&sessions).display());
        assert!(error.starts_with(&(place + expected)), "{error}");
        assert_eq!(fs::read(path(&sessions)).unwrap(), before);
    }
}

#[tokio::test]
async fn a_file_that_is_no_session_or_of_another_version_is_refused() {
    let (_dir, sessions) = project();
    drop(stored(&sessions).await);
    let whole = fs::read_to_string(path(&sessions)).unwrap();
    let (first, _) = whole.split_once('\n').unwrap();
    for (text, expected) in [
        (String::new(), "has no format and version (EOF"),
        (
            "{}\n".to_owned(),
            "has no format and version (missing field `format`",
        ),
        (
            first.replace(FORMAT, "diary"),
            "has the format `diary`, expected `tenterhook-session`",
        ),
        (
            first.replace("\"version\":1", "\"version\":2,\"new\":1"),
            "has version 2, expected 1; ",
        ),
        (
            first.replace("cwd", "folder"),
            "is invalid: unknown field `folder`",
        ),
    ] {
        fs::write(path(&sessions), &text).unwrap();
        let error = sessions.open(&"s".into()).unwrap_err().to_string();
        let expected = format!("not a readable session: its first line {expected}");
        assert!(error.contains(&expected), "{error}");
        assert_eq!(fs::read_to_string(path(&sessions)).unwrap(), text);
    }
}

#[tokio::test]
async fn what_cannot_be_written_leaves_the_file_as_it_was_and_is_written_later() {
    let (_dir, sessions) = project();
    let mut session = stored(&sessions).await;
    let before = fs::read(path(&sessions)).unwrap();
    // The remains of a write that failed half way and could not be undone.
    add(&sessions, b"{\"id\":\"3\",\"par");
    session.push(Message::user("three"));
    assert!(session.save().await.unwrap());
    let after = fs::read(path(&sessions)).unwrap();
    assert_eq!(after[..before.len()], before);
    assert_eq!(sessions.read(&"s".into()).unwrap().session, session);
}

#[tokio::test]
async fn what_nobody_waited_for_is_written_once_and_what_is_taken_back_then_stays_in_the_tree() {
    let (_dir, sessions) = project();
    let mut session = stored(&sessions).await;
    for number in 0..20 {
        let newest = session.push(Message::user(format!("more {number}")));
        // Writing continues after its future is dropped.
        drop(futures_util::poll!(Box::pin(session.save())));
        if number % 3 == 0 {
            session.take_back(std::slice::from_ref(&newest));
        }
        if number % 5 == 0 {
            session.save().await.unwrap();
        }
    }
    session.save().await.unwrap();
    assert_eq!(sessions.read(&"s".into()).unwrap().session, session);
}

#[tokio::test]
async fn what_is_taken_back_leaves_a_file_that_can_be_read() {
    let (_dir, sessions) = project();
    let mut session = stored(&sessions).await;
    let view = session.share();
    for is_sent in [false, true] {
        let refused = session.push(Message::user("refused"));
        view.label(refused.clone(), Some("label".to_owned()))
            .unwrap();
        view.add_custom("state", &serde_json::json!(1));
        let more = session.push(Message::user("refused too"));
        if is_sent {
            session.save().await.unwrap();
        }
        session.take_back(&[refused, more]);
        session.save().await.unwrap();
        let mut read = sessions.read(&"s".into()).unwrap().session;
        // The contents of a view are not compared, but its presence is.
        read.share();
        assert_eq!(read, session);
        let refused = |message: &Message| message.content.starts_with("refused");
        assert!(!read.messages().iter().any(refused));
    }
}

#[tokio::test]
async fn a_copy_of_a_session_is_no_session() {
    let (_dir, sessions) = project();
    drop(stored(&sessions).await);
    fs::copy(path(&sessions), sessions.folder().join("t.jsonl")).unwrap();
    fs::copy(path(&sessions), sessions.folder().join("a.b.jsonl")).unwrap();
    for error in [
        sessions.read(&"t".into()).unwrap_err(),
        sessions.open(&"t".into()).unwrap_err(),
    ] {
        let expected = "its first line names the session `s`, but the file has another name";
        assert!(error.to_string().ends_with(expected), "{error}");
    }
    let listed = sessions.list().unwrap();
    let found: Vec<_> = listed
        .iter()
        .map(|one| (one.id.as_str(), one.overview.is_ok()))
        .collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found.contains(&("s", true)) && found.contains(&("t", false)),
        "{found:?}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn links_and_pipes_in_the_folder_do_no_harm() {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;
    let dir = TempDir::new().unwrap();
    let cwd = Path::new(std::ffi::OsStr::from_bytes(b"/work/\xff"));
    let sessions = SessionStore::of_project(dir.path(), cwd);
    fs::create_dir_all(sessions.folder()).unwrap();
    let own = dir.path().join("own");
    fs::write(&own, "keep").unwrap();
    symlink(&own, sessions.folder().join("s.jsonl.new")).unwrap();
    symlink("/dev/zero", sessions.folder().join("zero.jsonl")).unwrap();
    symlink("nowhere", sessions.folder().join("gone.jsonl")).unwrap();
    let session = stored(&sessions).await;
    assert_eq!(fs::read_to_string(own).unwrap(), "keep");
    let listed = sessions.list().unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    let read = sessions.read(session.id()).unwrap();
    assert_eq!(read.session, session);
    assert_eq!(read.cwd, Path::new("/work/\u{fffd}"));
}

#[tokio::test]
async fn an_id_is_no_way_out_of_the_folder() {
    let (_dir, sessions) = project();
    for id in ["../s", "/s", "a/b", "..", "a.b", ""] {
        let mut session = Session::new(id.into());
        sessions.begin(&mut session);
        session.push(Message::assistant("hi"));
        assert!(session.save().await.unwrap());
        assert_eq!(sessions.read(session.id()).unwrap().session, session);
    }
    assert_eq!(fs::read_dir(sessions.folder()).unwrap().count(), 6);
}

#[tokio::test]
async fn a_session_is_found_by_the_beginning_of_its_id() {
    let (_dir, sessions) = project();
    for id in ["abc", "abd", "ab"] {
        let mut session = Session::new(id.into());
        sessions.begin(&mut session);
        session.push(Message::assistant("hi"));
        session.save().await.unwrap();
    }
    assert_eq!(sessions.find("abc").unwrap(), "abc".into());
    assert_eq!(sessions.find("ab").unwrap(), "ab".into());
    for (id, expected) in [
        ("a", "several sessions begin with `a`: `ab`, `abc`, `abd`"),
        ("x", "there is no session `x` in "),
        ("", "there is no session `` in "),
        ("../abc", "there is no session `../abc` in "),
    ] {
        let error = sessions.find(id).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(sessions.read(&"../abc".into()).is_err());
    let listed = sessions.list().unwrap();
    assert_eq!(listed[0].id, "ab".into());
    assert_eq!(listed[0].overview.as_ref().unwrap().messages, 1);
}

/// Saves one more message without waiting for the disk. Returns the tail with which a program keeps it.
async fn deferred(session: &mut Session, text: &str) -> SessionTail {
    let tail = session.defer_sync();
    session.push(Message::user(text));
    assert!(session.save().await.unwrap());
    tail.unkept().unwrap()
}

#[tokio::test]
async fn a_loss_of_power_cannot_take_away_what_the_tail_has() {
    let (_folder, sessions) = project();
    let mut session = stored(&sessions).await;
    let path = path(&sessions);
    let synced = fs::metadata(&path).unwrap().len();
    deferred(&mut session, "two").await;
    let tail = deferred(&mut session, "three").await;
    let expected = sessions.read(session.id()).unwrap().session;
    assert_eq!(expected.messages().len(), session.messages().len());
    drop(session);
    let whole = fs::read(&path).unwrap();
    let len = u64::try_from(whole.len()).unwrap();
    for kept in (synced..=len).step_by(31).chain([len - 1, len]) {
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(kept).unwrap();
        tail.restore().unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole, "{kept} bytes were kept");
    }
}

#[tokio::test]
async fn a_file_that_goes_on_in_another_way_or_was_removed_is_not_changed() {
    let (_folder, sessions) = project();
    let mut session = stored(&sessions).await;
    let path = path(&sessions);
    let synced = fs::read(&path).unwrap();
    let tail = deferred(&mut session, "two").await;
    let id = session.id().clone();
    assert!(matches!(tail.restore(), Err(SessionError::InUse { .. })));
    drop(session);
    fs::write(&path, &synced).unwrap();
    let mut other = sessions.open(&id).unwrap().session;
    other.push(Message::user("another second message"));
    other.save().await.unwrap();
    drop(other);
    let before = fs::read(&path).unwrap();
    tail.restore().unwrap();
    assert_eq!(fs::read(&path).unwrap(), before);

    fs::write(&path, synced.get(1..).unwrap()).unwrap();
    let error = tail.restore().unwrap_err();
    assert!(matches!(error, SessionError::File { .. }), "{error}");
    fs::remove_file(&path).unwrap();
    tail.restore().unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn a_tail_is_small_and_empty_once_the_file_is_synchronised() {
    let (_folder, sessions) = project();
    let mut session = stored(&sessions).await;
    let tail = deferred(&mut session, "two").await;
    let shared = session.defer_sync();
    shared.note_kept(&tail);
    assert_eq!(shared.unkept(), None);
    session.push(Message::user("x".repeat(5_000)));
    session.save().await.unwrap();
    assert_eq!(shared.unkept(), None);
    let tail = deferred(&mut session, "three").await;
    assert_ne!(shared.unkept(), None);
    session.sync().await.unwrap();
    assert_eq!(shared.unkept(), None);
    drop(session);
    let whole = fs::read(path(&sessions)).unwrap();
    tail.restore().unwrap();
    assert_eq!(fs::read(path(&sessions)).unwrap(), whole);
}
