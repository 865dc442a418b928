use serde_json::{Value, json};
use tenterhook_protocol::event::SessionEntry;
use tenterhook_protocol::{EntryId, Message, Role, ToolCall};

use super::branch::CUT_OFF;
use super::conversation::SUMMARY_INTRODUCTION;
use super::*;
use crate::sessions::entry::{UnknownEntry, named};
use crate::sessions::entry_kind::{CUSTOM, LEAF, MESSAGE};
use crate::sessions::tokens::estimate_tokens;

fn texts(session: &Session) -> Vec<String> {
    session
        .messages()
        .into_iter()
        .map(|message| message.content)
        .collect()
}

#[test]
fn entries_form_a_chain() {
    let mut session = Session::new("s".into());
    session.push_context("rules".to_owned());
    session.push(Message::user("hello"));
    let parents: Vec<_> = session
        .entries()
        .iter()
        .map(|entry| entry.parent_id.as_ref().map(EntryId::as_str))
        .collect();
    assert_eq!(parents, [None, Some("1")]);
}

#[test]
fn a_summary_stands_for_older_messages_and_session_context_stays() {
    let mut session = Session::new("s".into());
    session.push_context("rules".to_owned());
    session.push(Message::user("one"));
    session.push(Message::assistant("two"));
    let kept = session.push(Message::user("three"));
    session.compact("short", Some(&kept), 9);
    session.push(Message::assistant("four"));
    let summary = format!("{SUMMARY_INTRODUCTION}short");
    assert_eq!(texts(&session), ["rules", &summary, "three", "four"]);
    session.compact("shorter", None, 9);
    assert_eq!(
        texts(&session),
        ["rules", &format!("{SUMMARY_INTRODUCTION}shorter")]
    );
}

#[test]
fn a_swapped_conversation_is_the_summary_and_what_the_user_said_since() {
    let mut session = Session::new("s".into());
    session.push_context("rules".to_owned());
    session.push(Message::user("one"));
    session.compact("short", None, 9);
    session.push(Message::user("two"));
    session.push(Message::assistant("all of it"));
    session.push(Message::user("and then?"));
    session.replace_conversation("all of it".to_owned(), 9);
    assert_eq!(texts(&session), ["rules", "all of it", "and then?"]);
    assert_eq!(
        session.last_message_of(Role::User).unwrap().content,
        "and then?"
    );
    session.push(Message::assistant("nothing"));
    assert_eq!(
        texts(&session),
        ["rules", "all of it", "and then?", "nothing"]
    );
}

#[test]
fn what_is_taken_back_is_gone_and_its_id_is_not_given_again() {
    let mut session = Session::new("s".into());
    session.push(Message::user("one"));
    let second = session.push(Message::user("two"));
    session.take_back(std::slice::from_ref(&second));
    session.take_back(&[second, "99".into()]);
    assert_eq!(texts(&session), ["one"]);
    assert_eq!(session.push(Message::user("three")).as_str(), "3");
}

#[test]
fn what_others_added_behind_what_is_taken_back_stays() {
    let mut session = Session::new("s".into());
    let view = session.share();
    session.push(Message::user("before"));
    let first = session.push(Message::user("one"));
    view.add_custom("state", &json!(1));
    let second = session.push(Message::user("two"));
    session.take_back(&[first, second]);
    assert_eq!(texts(&session), ["before"]);
    let kinds = |entries: &[SessionEntry]| -> Vec<String> {
        entries.iter().map(|entry| entry.kind.clone()).collect()
    };
    assert_eq!(kinds(session.entries()), [MESSAGE, CUSTOM]);
    assert_eq!(session.entries()[1].parent_id, Some("1".into()));
    assert_eq!(view.with_entries(kinds), [MESSAGE, CUSTOM]);
}

#[test]
fn tokens_are_estimated_by_length() {
    assert_eq!(
        estimate_tokens(&[Message::user("12345678"), Message::user("1")]),
        3
    );
}

#[test]
fn what_is_given_away_is_the_conversation_however_the_session_changes() {
    let mut session = Session::new("s".into());
    let check = |session: &Session| {
        assert_eq!(*session.shared_messages(), *session.messages());
    };
    check(&session);
    let first = session.push(Message::user("one"));
    check(&session);
    let given = session.shared_messages();
    session.push(Message::assistant("two"));
    check(&session);
    assert_eq!(given.len(), 1);
    session.push_context("known".to_owned());
    check(&session);
    session.replace_conversation("a summary".to_owned(), 10);
    check(&session);
    let last = session.push(Message::user("three"));
    check(&session);
    session.take_back(std::slice::from_ref(&last));
    check(&session);
    session.go_to(Some(&first)).unwrap();
    check(&session);
    session.push(Message::user("another branch"));
    check(&session);
}

#[test]
fn the_leaf_moves_in_the_tree_and_other_branches_stay() {
    let mut session = Session::new("s".into());
    session.push_context("rules".to_owned());
    let one = session.push(Message::user("one"));
    let two = session.push(Message::assistant("two"));
    session.compact("short", None, 9);
    session.go_to(Some(&one)).unwrap();
    assert_eq!(texts(&session), ["rules", "one"]);
    let other = session.push(Message::assistant("other"));
    assert_eq!(session.common_ancestor(&two), Some(one.clone()));
    let parents: Vec<_> = session
        .tree()
        .into_iter()
        .map(|entry| named(entry.parent_id.as_ref()))
        .collect();
    assert_eq!(parents, ["none", "`1`", "`2`", "`3`", "`2`"]);
    session.go_to(Some(&two)).unwrap();
    assert_eq!(texts(&session), ["rules", "one", "two"]);
    session.go_to(None).unwrap();
    assert_eq!(texts(&session), [""; 0]);
    session.go_to(Some(&other)).unwrap();
    assert_eq!(texts(&session), ["rules", "one", "other"]);
    assert_eq!(
        session.go_to(Some(&"99".into())),
        Err(UnknownEntry("99".into()))
    );
}

#[test]
fn a_branch_that_is_cut_off_from_results_of_tools_gets_others() {
    let mut session = Session::new("s".into());
    session.push(Message::user("one"));
    let call = |id: &str| ToolCall::new(id, "", Value::Null);
    let asked = session.push(Message::assistant("").with_tool_calls(vec![call("a"), call("b")]));
    let first = session.push(Message::tool("a".into(), "done", false));
    let both = session.push(Message::tool("b".into(), "done", false));
    for (leaf, expected) in [
        (&asked, ["one", "", CUT_OFF, CUT_OFF]),
        (&first, ["one", "", "done", CUT_OFF]),
        (&both, ["one", "", "done", "done"]),
    ] {
        session.go_to(Some(leaf)).unwrap();
        assert_eq!(texts(&session), expected);
        let fork = session.fork("f".into(), Some(leaf)).unwrap();
        assert_eq!(texts(&fork), expected);
    }
}

#[test]
fn a_fork_has_the_path_to_its_entry_and_an_id_of_its_own() {
    let mut session = Session::new("s".into());
    session.push(Message::user("one"));
    let two = session.push(Message::assistant("two"));
    session.push(Message::user("three"));
    let mut fork = session.fork("f".into(), Some(&two)).unwrap();
    assert_eq!(texts(&fork), ["one", "two"]);
    assert_eq!(fork.forked_from(), Some(session.id()));
    assert_eq!(fork.push(Message::user("four")).as_str(), "3");
    assert_eq!(texts(&session), ["one", "two", "three"]);
}

#[test]
fn the_newest_label_of_an_entry_is_its_label() {
    let mut session = Session::new("s".into());
    let one = session.push(Message::user("one"));
    let two = session.push(Message::user("two"));
    session.label(&one, Some("first")).unwrap();
    session.label(&one, Some("start")).unwrap();
    session.label(&two, Some("gone")).unwrap();
    session.label(&two, None).unwrap();
    assert_eq!(
        session.labels(),
        BTreeMap::from([(one, "start".to_owned())])
    );
}

#[test]
fn entries_are_taken_as_they_were_made_and_no_others() {
    let mut session = Session::new("s".into());
    let one = session.push(Message::user("one"));
    session.push(Message::assistant("two"));
    session.label(&one, Some("start")).unwrap();
    session.go_to(Some(&one)).unwrap();
    session.push(Message::assistant("other"));
    let mut read = Session::new("s".into());
    for entry in session.since(0) {
        read.append_stored(entry.clone()).unwrap();
    }
    assert_eq!(read, session);
    let entry = |id: &str, parent: Option<&str>, kind: &str, target: Value| SessionEntry {
        id: id.into(),
        parent_id: parent.map(EntryId::from),
        kind: kind.to_owned(),
        data: Some(json!({ "entry": target })),
        ..SessionEntry::default()
    };
    for (entry, expected) in [
        (
            entry("x", Some("5"), MESSAGE, Value::Null),
            "has the id `x`, expected a number above 5",
        ),
        (
            entry("5", Some("5"), MESSAGE, Value::Null),
            "has the id `5`, expected a number above 5",
        ),
        (
            entry("06", Some("5"), MESSAGE, Value::Null),
            "has the id `06`, expected a number above 5",
        ),
        (
            entry("6", Some("2"), MESSAGE, Value::Null),
            "names `2` as its parent, expected `5`, the leaf",
        ),
        (
            entry("6", None, MESSAGE, Value::Null),
            "names none as its parent, expected `5`, the leaf",
        ),
        (
            entry("6", None, LEAF, "9".into()),
            "refers to `9`, which is not an earlier entry",
        ),
        (
            entry("6", None, LEAF, "4".into()),
            "refers to `4`, which is not an earlier entry",
        ),
        (
            entry("6", None, LABEL, Value::Null),
            "refers to none, which is not an earlier entry",
        ),
    ] {
        assert_eq!(read.append_stored(entry).unwrap_err().to_string(), expected);
    }
    assert_eq!(read, session);
}

#[test]
fn a_copy_ends_before_an_answer_whose_calls_are_open() {
    let call = |id: &str| ToolCall::new(id, "", Value::Null);
    let mut session = Session::new("s".into());
    let view = session.share();
    let copied = || texts(&Session::copy_of(&view, "copy".into()));
    session.push(Message::user("one"));
    assert_eq!(copied(), ["one"]);
    session.push(Message::assistant("two").with_tool_calls(vec![call("a"), call("b")]));
    assert_eq!(copied(), ["one"]);
    session.push(Message::tool("a".into(), "done", false));
    assert_eq!(copied(), ["one"]);
    session.push(Message::tool("b".into(), "done", false));
    assert_eq!(copied(), ["one", "two", "done", "done"]);
    let copy = Session::copy_of(&view, "copy".into());
    assert_eq!(copy.forked_from(), Some(&"s".into()));
    assert_eq!(copy.id(), &"copy".into());
}
