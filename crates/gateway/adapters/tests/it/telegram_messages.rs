//! Messages of Telegram that belong together or refer to others: albums, replies, forwards and edits.

use serde_json::{Value, json};
use tenterhook_channel::channel::Accepted;
use tenterhook_channel::message::{IncomingMessage, IncomingPart};

use crate::recording_intake::{RecordingIntake, until};
use crate::telegram::{connected, run, run_until};

/// A message of Ada in a direct chat.
fn from_ada(id: u32, more: &Value) -> Value {
    let mut message = json!({
        "message_id": id, "date": 1_700_000_000,
        "from": {"id": 42, "is_bot": false, "first_name": "Ada"},
        "chat": {"id": 42, "type": "private"},
    });
    let fields = message.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    message
}

fn photo(id: u32, album: &str, more: &Value) -> Value {
    let file = format!("photo-{id}");
    let mut fields = json!({"media_group_id": album, "photo": [
        {"file_id": file, "file_unique_id": file, "width": 9, "height": 9}]});
    let known = fields.as_object_mut().unwrap();
    known.extend(more.as_object().unwrap().clone());
    json!({"update_id": id, "message": from_ada(id, &fields)})
}

fn files_of(message: &IncomingMessage) -> Vec<&str> {
    let files = message.parts.iter().filter_map(|part| {
        let IncomingPart::Media(media) = part else {
            return None;
        };
        Some(media.reference.as_str())
    });
    files.collect()
}

#[tokio::test]
async fn an_album_is_one_message_also_if_its_parts_arrive_in_several_polls() {
    let (fake, channel) = connected().await;
    let intake = RecordingIntake::new();
    fake.add_text(10, "before");
    fake.add_update(photo(11, "a", &json!({"caption": "look"})));
    let late = async {
        // The first poll has returned without it.
        until("a poll", || !fake.calls("getUpdates").is_empty()).await;
        until("the message before", || intake.messages().len() == 1).await;
        fake.add_update(photo(12, "a", &json!({})));
        fake.add_update(photo(13, "b", &json!({})));
        fake.add_text(14, "after");
    };
    let taken = || intake.messages().len() >= 4;
    let (run, ()) = tokio::join!(run_until(&channel, &intake, "all messages", taken), late);
    run.unwrap();
    let messages = intake.messages();
    assert_eq!(intake.texts(), ["before", "look", "", "after"]);
    assert_eq!(files_of(&messages[1]), ["photo-11", "photo-12"]);
    assert_eq!(messages[1].dedupe, "7/11");
    assert_eq!(files_of(&messages[2]), ["photo-13"]);
    assert_eq!(intake.offset("7"), Some(15));
}

#[tokio::test]
async fn an_album_that_was_not_recorded_comes_again_as_a_whole() {
    let (fake, channel) = connected().await;
    let intake = RecordingIntake::new();
    intake.answer_next(vec![Accepted::Failed {
        cause: "the disk is full".to_owned(),
    }]);
    for id in [10, 11, 12] {
        fake.add_update(photo(id, "a", &json!({})));
    }
    let error = run(&channel, &intake).await;
    assert_eq!(error.code, "not_recorded");
    assert_eq!(intake.offset("7"), Some(10));
    let taken = || !intake.messages().is_empty();
    run_until(&channel, &intake, "the album", taken)
        .await
        .unwrap();
    let files = ["photo-10", "photo-11", "photo-12"];
    assert_eq!(files_of(&intake.messages()[0]), files);
}

#[tokio::test]
async fn replies_forwards_and_edits_say_what_they_refer_to() {
    let (fake, channel) = connected().await;
    let intake = RecordingIntake::new();
    let other = |id: u64, text: &str| {
        json!({"message_id": 3, "date": 1, "chat": {"id": 42, "type": "private"}, "text": text,
            "from": {"id": id, "is_bot": id == 7, "first_name": "Bob", "last_name": "B."}})
    };
    let long = "x".repeat(2_000);
    for (id, more) in [
        (
            10,
            json!({"text": "a", "reply_to_message": other(9, &long)}),
        ),
        (
            11,
            json!({"text": "b", "reply_to_message": other(7, "whole"),
            "quote": {"text": "part", "position": 0}}),
        ),
        (
            12,
            json!({"text": "/stop", "forward_origin":
            {"type": "user", "date": 1, "sender_user": {"id": 5, "is_bot": false, "first_name": "Eve"}}}),
        ),
        (
            13,
            json!({"text": "d", "forward_origin":
            {"type": "hidden_user", "date": 1, "sender_user_name": "Mallory"}}),
        ),
        (
            14,
            json!({"text": "e", "forward_origin":
            {"type": "channel", "date": 1, "message_id": 1, "chat": {"id": -1, "type": "channel", "title": "News"}}}),
        ),
    ] {
        fake.add_update(json!({"update_id": id, "message": from_ada(id, &more)}));
    }
    let photo = photo(1, "a", &json!({"caption": "new"}));
    fake.add_update(json!({"update_id": 15, "edited_message": photo["message"]}));
    let place = from_ada(2, &json!({"location": {"latitude": 1.0, "longitude": 1.0}}));
    fake.add_update(json!({"update_id": 16, "edited_message": place}));
    fake.add_text(17, "last");
    let taken = || intake.messages().len() >= 7;
    run_until(&channel, &intake, "all messages", taken)
        .await
        .unwrap();
    let messages = intake.messages();
    let references: Vec<_> = messages
        .iter()
        .map(|message| {
            let IncomingPart::Reference(other) = &message.parts[0] else {
                return String::new();
            };
            let from = other.from.as_deref().unwrap_or_default();
            let length = other.text.chars().count();
            format!("{} {from} {length}", other.kind.word())
        })
        .collect();
    let expected = [
        "reply Bob B. 1000",
        "reply you 4",
        "forward Eve 0",
        "forward Mallory 0",
        "forward News 0",
        "edit  0",
        "",
    ];
    assert_eq!(references, expected);
    assert_eq!(intake.texts(), ["a", "b", "/stop", "d", "e", "new", "last"]);
    assert!(files_of(&messages[5]).is_empty());
    assert!(intake.controls().is_empty());
}
