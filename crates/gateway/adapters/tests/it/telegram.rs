//! The Telegram channel against a fake of the service.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenterhook_adapters::telegram::TelegramChannel;
use tenterhook_channel::approval_card::ApprovalCard;
use tenterhook_channel::channel::{
    Accepted, Channel, ChannelError, DeliveryError, MediaSink, Outgoing, Receipt,
};
use tenterhook_channel::chat::{ChannelId, ChatRef};
use tenterhook_channel::frame::{ChatFrame, Chunk, EndReason, Frame, Media, TurnStatus};
use tenterhook_channel::message::{ApprovalChoice, Control, MediaKind, MediaRef};
use tenterhook_channel::settings::{SecretSource, Show, TelegramSettings};
use tokio_util::sync::CancellationToken;

use crate::fake_telegram::{FakeTelegram, OTHER_TOKEN, TOKEN};
use crate::recording_intake::{RecordingIntake, until};

fn channel_at(address: &str, token: &str) -> TelegramChannel {
    let settings = TelegramSettings {
        token: SecretSource::Environment("UNUSED".to_owned()),
        api_base: address.to_owned(),
    };
    let show = Show {
        tools: true,
        thinking: false,
        stream: Some(Duration::from_secs(1)),
    };
    let id = ChannelId::new("tg").unwrap();
    TelegramChannel::new(id, &settings, token.to_owned(), show)
        .unwrap()
        .with_poll_timeout(Duration::from_secs(1))
}

pub(crate) async fn connected() -> (FakeTelegram, TelegramChannel) {
    let fake = FakeTelegram::start().await;
    let channel = channel_at(&fake.address, TOKEN);
    (fake, channel)
}

/// Runs a channel until a condition holds, and stops it.
pub(crate) async fn run_until(
    channel: &TelegramChannel,
    intake: &Arc<RecordingIntake>,
    what: &str,
    holds: impl FnMut() -> bool,
) -> Result<(), ChannelError> {
    let stop = CancellationToken::new();
    let run = channel.run(intake.inlet("tg"), stop.clone());
    let stopping = async {
        until(what, holds).await;
        stop.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        result = run => result,
        () = stopping => unreachable!(),
    }
}

pub(crate) async fn run(channel: &TelegramChannel, intake: &Arc<RecordingIntake>) -> ChannelError {
    let run = channel.run(intake.inlet("tg"), CancellationToken::new());
    tokio::time::timeout(Duration::from_secs(20), run)
        .await
        .unwrap()
        .unwrap_err()
}

fn chat() -> ChatRef {
    ChatRef {
        channel: ChannelId::new("tg").unwrap(),
        chat: "42".to_owned(),
        thread: None,
    }
}

fn end(text: &str) -> Frame {
    Frame::End {
        turn: "t".to_owned(),
        text: text.to_owned(),
        is_final: true,
        reason: EndReason::Stop,
    }
}

fn outgoing(seq: u64, frame: Frame) -> Outgoing {
    Outgoing {
        chat: chat(),
        frame: ChatFrame {
            seq: Some(seq),
            frame,
        },
        file: None,
        attempt: 0,
    }
}

async fn send(channel: &TelegramChannel, frame: Frame) -> Result<Receipt, DeliveryError> {
    channel.send(&outgoing(1, frame)).await
}

fn texts(calls: &[Value]) -> Vec<&str> {
    calls
        .iter()
        .map(|call| call["text"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn the_offset_moves_only_over_updates_that_were_recorded() {
    let (fake, channel) = connected().await;
    let intake = RecordingIntake::new();
    for (id, text) in [(10, "one"), (11, "two"), (12, "three")] {
        fake.add_text(id, text);
    }
    let polled = || fake.calls("getUpdates").len() >= 2;
    run_until(&channel, &intake, "a second poll", polled)
        .await
        .unwrap();
    assert_eq!(intake.texts(), ["one", "two", "three"]);
    assert_eq!(intake.messages()[0].dedupe, "7/10");
    let polls = fake.calls("getUpdates");
    assert_eq!(polls[0].get("offset"), None);
    assert_eq!(
        polls[0]["allowed_updates"],
        json!(["message", "edited_message", "callback_query"])
    );
    assert_eq!(polls[1]["offset"], 13);
    assert_eq!(intake.offset("7"), Some(13));
    assert!(intake.alive() > 0);
}

#[tokio::test]
async fn an_offset_that_cannot_be_read_is_an_error_and_no_poll_begins() {
    let (fake, channel) = connected().await;
    let intake = RecordingIntake::new();
    intake.damage_offsets();
    let error = run(&channel, &intake).await;
    assert_eq!(error.code, "offset");
    assert!(fake.calls("getUpdates").is_empty());
}

#[tokio::test]
async fn a_turn_can_be_stopped_while_messages_cannot_be_recorded() {
    let (fake, channel) = connected().await;
    let intake = RecordingIntake::new();
    let cause = "the gateway stops".to_owned();
    intake.answer_next(vec![Accepted::Failed { cause }]);
    fake.add_text(10, "one");
    fake.add_text(11, "/stop");
    assert_eq!(run(&channel, &intake).await.code, "not_recorded");
    assert_eq!(intake.offset("7"), Some(10));
    assert!(matches!(intake.controls()[..], [Control::Cancel { .. }]));
}

#[tokio::test]
async fn a_group_that_becomes_a_supergroup_stays_the_same_chat() {
    let (fake, channel) = connected().await;
    let intake = RecordingIntake::new();
    let message = |update: u32, chat: i64, more: Value| {
        let mut message = json!({
            "message_id": update, "date": 1,
            "from": {"id": 42, "is_bot": false, "first_name": "Ada"},
            "chat": {"id": chat, "type": "supergroup"},
        });
        let message_fields = message.as_object_mut().unwrap();
        message_fields.extend(more.as_object().unwrap().clone());
        json!({ "update_id": update, "message": message })
    };
    fake.add_update(message(1, -5, json!({"migrate_to_chat_id": -1007})));
    fake.add_update(message(2, -1007, json!({"migrate_from_chat_id": -5})));
    fake.add_update(message(3, -1007, json!({"text": "hi"})));
    let heard = || intake.texts() == ["hi"] && intake.offset("7") == Some(4);
    run_until(&channel, &intake, "the message", heard)
        .await
        .unwrap();
    assert_eq!(intake.messages()[0].chat.chat, "-5");

    // After a restart, too, unless the settings have the new id by now.
    let listed = channel_at(&fake.address, TOKEN).with_groups(vec!["-1007".to_owned()]);
    for (update, channel, expected) in [
        (4, channel_at(&fake.address, TOKEN), "-5"),
        (5, listed, "-1007"),
    ] {
        let other = RecordingIntake::new();
        other.inlet("tg").set_offset("group/-1007", -5).await;
        fake.add_update(message(update, -1007, json!({"text": "again"})));
        let heard = || !other.messages().is_empty();
        run_until(&channel, &other, "the next message", heard)
            .await
            .unwrap();
        assert_eq!(other.messages()[0].chat.chat, expected);
    }
}

#[tokio::test]
async fn an_answer_follows_its_group_to_its_new_id() {
    let (fake, channel) = connected().await;
    fake.move_group(42, -1007);
    for text in ["one", "two"] {
        send(&channel, end(text)).await.unwrap();
    }
    let calls = fake.calls("sendMessage");
    let chats: Vec<_> = calls.iter().map(|call| call["chat_id"].clone()).collect();
    assert_eq!(chats, [json!(42), json!(-1007), json!(-1007)]);
}

// G42
#[tokio::test]
async fn an_update_that_was_not_recorded_is_asked_for_again() {
    let (fake, channel) = connected().await;
    let intake = RecordingIntake::new();
    fake.add_text(10, "one");
    fake.add_text(11, "two");
    let failed = Accepted::Failed {
        cause: "the disk is full".to_owned(),
    };
    intake.answer_next(vec![failed, Accepted::Recorded]);
    let error = run(&channel, &intake).await;
    assert_eq!(error.code, "not_recorded");
    assert_eq!(intake.offset("7"), Some(11));
    let heard = || !intake.messages().is_empty();
    run_until(&channel, &intake, "the second message", heard)
        .await
        .unwrap();
    assert_eq!(intake.texts(), ["two"]);
}

#[tokio::test]
async fn a_chat_does_not_wait_for_one_whose_update_was_not_recorded() {
    let (fake, channel) = connected().await;
    let intake = RecordingIntake::new();
    fake.add_text(10, "one");
    fake.add_update(json!({"update_id": 11, "message": {
        "message_id": 11, "date": 1_700_000_000, "text": "other",
        "from": {"id": 43, "is_bot": false, "first_name": "Bob"},
        "chat": {"id": 43, "type": "private", "first_name": "Bob"},
    }}));
    fake.add_text(12, "two");
    intake.answer_next(vec![Accepted::Failed {
        cause: "the disk is full".to_owned(),
    }]);
    let error = run(&channel, &intake).await;
    assert_eq!(error.code, "not_recorded");
    assert_eq!(intake.texts(), ["other"]);
    assert_eq!(intake.offset("7"), Some(10));
    let heard = || intake.messages().len() == 3;
    run_until(&channel, &intake, "the messages of the first chat", heard)
        .await
        .unwrap();
    assert_eq!(intake.texts(), ["other", "one", "two"]);
}

// G49
#[tokio::test]
async fn another_bot_begins_with_an_offset_of_its_own() {
    let (fake, channel) = connected().await;
    let intake = RecordingIntake::new();
    fake.add_text(5_000, "to the first");
    let moved = || intake.offset("7") == Some(5_001);
    run_until(&channel, &intake, "the offset", moved)
        .await
        .unwrap();
    let other = channel_at(&fake.address, OTHER_TOKEN);
    fake.add_text_for(OTHER_TOKEN, 3, "to the second");
    let heard = || intake.texts().len() == 2;
    run_until(&other, &intake, "the low number", heard)
        .await
        .unwrap();
    assert_eq!(intake.messages()[1].dedupe, "8/3");
}

#[tokio::test]
async fn a_bot_whose_numbers_begin_again_is_heard() {
    let (fake, channel) = connected().await;
    let intake = RecordingIntake::new();
    fake.add_text(5_000, "before the quiet week");
    let mut is_added = false;
    let heard = || {
        // The poll without updates was answered, and the next one has begun.
        if !is_added && fake.calls("getUpdates").len() == 3 {
            is_added = true;
            fake.add_text(3, "after it");
        }
        intake.texts().len() == 2
    };
    run_until(&channel, &intake, "the low number", heard)
        .await
        .unwrap();
}

// G52
#[tokio::test]
async fn a_poll_that_hangs_is_abandoned_after_twice_its_timeout() {
    let (fake, channel) = connected().await;
    let intake = RecordingIntake::new();
    fake.hang(true);
    let began = std::time::Instant::now();
    let error = run(&channel, &intake).await;
    assert_eq!(error.code, "connection", "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(4));
    fake.hang(false);
    fake.add_text(10, "one");
    let heard = || !intake.messages().is_empty();
    run_until(&channel, &intake, "the message", heard)
        .await
        .unwrap();
    assert_eq!(intake.texts(), ["one"]);
}

// G53, G54
#[tokio::test]
async fn a_wrong_token_and_a_second_poller_are_different_errors() {
    let (fake, channel) = connected().await;
    let intake = RecordingIntake::new();
    fake.refuse(
        "getUpdates",
        409,
        "Conflict: terminated by other getUpdates request",
    );
    let error = run(&channel, &intake).await;
    assert_eq!(error.code, "conflict");
    let wrong = channel_at(&fake.address, "9:wrong-token");
    let error = run(&wrong, &intake).await;
    assert_eq!(error.code, "unauthorized");
    assert!(!error.cause.contains("wrong-token"));
}

// G82
#[tokio::test]
async fn no_error_contains_the_token_or_the_address() {
    let (fake, channel) = connected().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let unreachable = channel_at(&closed, TOKEN);
    let intake = RecordingIntake::new();
    fake.refuse(
        "sendMessage",
        403,
        "Forbidden at /bot7:secret-Token_1/sendMessage",
    );
    let media = MediaRef {
        kind: MediaKind::File,
        reference: "x".to_owned(),
        name: None,
        duration_ms: None,
    };
    let mut sink = MediaSink::new(10);
    let errors = [
        run(&unreachable, &intake).await.to_string(),
        send(&unreachable, end("x")).await.unwrap_err().to_string(),
        unreachable
            .fetch(&media, &mut sink)
            .await
            .unwrap_err()
            .to_string(),
        send(&channel, end("x")).await.unwrap_err().to_string(),
        format!("{unreachable:?}"),
    ];
    for error in errors {
        assert!(!error.contains("secret-Token"), "{error}");
        assert!(!error.contains(&closed), "{error}");
    }
}

// G46, G47
#[tokio::test]
async fn errors_say_whether_and_when_to_send_again() {
    let (fake, channel) = connected().await;
    fake.refuse_for("sendMessage", 429, "Too Many Requests", Some(2));
    let after = Some(Duration::from_secs(2));
    let error = send(&channel, end("x")).await.unwrap_err();
    assert!(matches!(error, DeliveryError::Retry { after: found, .. } if found == after));
    fake.refuse("sendMessage", 502, "Bad Gateway");
    let error = send(&channel, end("x")).await.unwrap_err();
    assert!(matches!(error, DeliveryError::Retry { after: None, .. }));
    fake.refuse("sendMessage", 403, "Forbidden: bot was blocked by the user");
    let error = send(&channel, end("x")).await.unwrap_err();
    let DeliveryError::Permanent { cause } = error else {
        panic!("{error:?}");
    };
    assert!(cause.contains("bot was blocked by the user"), "{cause}");
    assert_eq!(
        send(&channel, end("x")).await.unwrap().message_ids,
        ["1001"]
    );
}

// G48
#[tokio::test]
async fn a_text_whose_markup_is_refused_is_sent_as_plain_text() {
    let (fake, channel) = connected().await;
    fake.refuse("sendMessage", 400, "Bad Request: can't parse entities");
    send(&channel, end("a **b** <c>")).await.unwrap();
    let calls = fake.calls("sendMessage");
    assert_eq!(texts(&calls), ["a <b>b</b> &lt;c&gt;", "a **b** <c>"]);
    assert_eq!(calls[0]["parse_mode"], "HTML");
    assert_eq!(calls[1].get("parse_mode"), None);
}

// G55
#[tokio::test]
async fn a_long_answer_becomes_messages_that_telegram_accepts() {
    let (fake, channel) = connected().await;
    let code = "let grin = \"😀\";\n".repeat(300);
    let text = format!(
        "Intro 👍.\n\n```rust\n{code}```\n\n{}",
        "One more 🎈. ".repeat(400)
    );
    assert!(text.encode_utf16().count() > 10_000);
    let receipt = send(&channel, end(&text)).await.unwrap();
    let calls = fake.calls("sendMessage");
    assert!(calls.len() > 2 && receipt.message_ids.len() == calls.len());
    for text in texts(&calls) {
        assert_eq!(
            text.matches("<code").count(),
            text.matches("</code>").count()
        );
    }
    let all = texts(&calls).concat();
    assert_eq!(all.matches("let grin = &quot;😀&quot;;").count(), 300);
    assert_eq!(all.matches("One more 🎈.").count(), 400);
}

#[tokio::test]
async fn an_answer_that_failed_in_the_middle_goes_on_there() {
    let (fake, channel) = connected().await;
    // The first piece is sent, the second one is refused once.
    fake.refuse_for("sendDocument", 429, "Too Many Requests", Some(1));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("0f");
    std::fs::write(&path, b"hello").unwrap();
    let mut outgoing = outgoing(
        3,
        Frame::Message {
            turn: None,
            text: "long text. ".repeat(200),
            media: Some(Media {
                kind: MediaKind::File,
                id: "0f".to_owned(),
                media_type: "text/plain".to_owned(),
                name: "notes.txt".to_owned(),
                size: 5,
            }),
            reply_to: Some("9".to_owned()),
        },
    );
    outgoing.file = Some(path);
    assert!(channel.send(&outgoing).await.is_err());
    fake.refuse_for("sendMessage", 429, "Too Many Requests", Some(1));
    assert!(channel.send(&outgoing).await.is_err());
    let receipt = channel.send(&outgoing).await.unwrap();
    assert_eq!(receipt.message_ids, ["1001", "1002"]);
    let files = fake.calls("sendDocument");
    assert_eq!(files.len(), 2);
    assert_eq!(files[1]["document"], "notes.txt (5)");
    assert!(
        files[1]["reply_parameters"]
            .as_str()
            .unwrap()
            .contains("\"message_id\":9")
    );
    assert_eq!(fake.calls("sendMessage").len(), 2);
}

#[tokio::test]
async fn a_file_that_is_refused_in_its_own_form_is_sent_as_a_document() {
    let (fake, channel) = connected().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("0f");
    std::fs::write(&path, b"x").unwrap();
    let of = |kind, media_type: &str| {
        let mut outgoing = outgoing(
            1,
            Frame::Message {
                turn: None,
                text: "look".to_owned(),
                media: Some(Media {
                    kind,
                    id: "0f".to_owned(),
                    media_type: media_type.to_owned(),
                    name: "x".to_owned(),
                    size: 1,
                }),
                reply_to: None,
            },
        );
        outgoing.file = Some(path.clone());
        outgoing
    };
    fake.refuse("sendPhoto", 400, "Bad Request: PHOTO_INVALID_DIMENSIONS");
    for outgoing in [
        of(MediaKind::Image, "image/png"),
        of(MediaKind::Audio, "audio/ogg"),
        of(MediaKind::Audio, "audio/wav"),
        of(MediaKind::Image, "image/svg+xml"),
    ] {
        channel.send(&outgoing).await.unwrap();
    }
    let calls = fake.visible();
    let methods: Vec<&str> = calls.iter().map(|call| call.method.as_str()).collect();
    let expected = [
        "sendPhoto",
        "sendDocument",
        "sendVoice",
        "sendAudio",
        "sendDocument",
    ];
    assert_eq!(methods, expected);
    assert!(calls.iter().all(|call| call.params["caption"] == "look"));
}

// G57
#[tokio::test]
async fn a_topic_is_a_thread_of_its_own_in_both_directions() {
    let (fake, channel) = connected().await;
    let intake = RecordingIntake::new();
    for (id, thread) in [(1, 5), (2, 6)] {
        fake.add_update(json!({"update_id": id, "message": {
            "message_id": id, "date": 1, "text": "hi",
            "message_thread_id": thread, "is_topic_message": true,
            "from": {"id": 42, "is_bot": false, "first_name": "Ada"},
            "chat": {"id": -100, "type": "supergroup", "title": "G", "is_forum": true},
        }}));
    }
    let heard = || intake.messages().len() == 2;
    run_until(&channel, &intake, "both messages", heard)
        .await
        .unwrap();
    let chats: Vec<_> = intake
        .messages()
        .into_iter()
        .map(|message| message.chat)
        .collect();
    assert_ne!(chats[0], chats[1]);
    let mut outgoing = outgoing(1, end("x"));
    outgoing.chat = chats[1].clone();
    channel.send(&outgoing).await.unwrap();
    let call = &fake.calls("sendMessage")[0];
    assert_eq!(
        (&call["chat_id"], &call["message_thread_id"]),
        (&json!(-100), &json!(6))
    );
}

#[tokio::test]
async fn a_refused_sender_gets_the_notice_and_silence_is_silence() {
    let (fake, channel) = connected().await;
    let intake = RecordingIntake::new();
    let refused = |notice: Option<&str>| Accepted::Refused {
        code: "not_admitted",
        notice: notice.map(str::to_owned),
    };
    intake.answer_next(vec![refused(Some("Your code is 12345678.")), refused(None)]);
    fake.add_text(1, "one");
    fake.add_text(2, "two");
    let told = || !fake.calls("sendMessage").is_empty();
    run_until(&channel, &intake, "the notice", told)
        .await
        .unwrap();
    assert_eq!(
        texts(&fake.calls("sendMessage")),
        ["Your code is 12345678."]
    );
    assert_eq!(intake.offset("7"), Some(3));
}

fn card(command: &str) -> ApprovalCard {
    let args = json!({"cmd": command}).as_object().unwrap().clone();
    ApprovalCard::new(("shell", &args), ("Ada (42)", &chat()), "it deletes")
}

#[tokio::test]
async fn a_question_has_buttons_until_it_is_answered() {
    let (fake, channel) = connected().await;
    let intake = RecordingIntake::new();
    let nonce = "0123456789abcdef0123456789abcdef".to_owned();
    let question = Frame::Approve {
        nonce: nonce.clone(),
        call_id: "call_1".to_owned(),
        tool: "shell".to_owned(),
        args: Box::default(),
        card: Box::new(card("rm <x>\n\u{202e}y")),
        choices: vec![ApprovalChoice::Allow, ApprovalChoice::Deny],
        expires: 0,
    };
    send(&channel, question).await.unwrap();
    let asked = &fake.calls("sendMessage")[0];
    let text = asked["text"].as_str().unwrap();
    assert!(text.starts_with("🔐 rm <x>\\n\\u{202e}y\n"), "{text}");
    assert!(
        text.ends_with("Asked by: Ada (42)\nChat: tg:42\nWhy: it deletes"),
        "{text}"
    );
    let keyboard = asked["reply_markup"]["inline_keyboard"].as_array().unwrap();
    let data: Vec<_> = keyboard
        .iter()
        .map(|row| &row[0]["callback_data"])
        .collect();
    assert_eq!(
        data,
        [&json!(format!("a:{nonce}")), &json!(format!("d:{nonce}"))]
    );
    fake.add_update(json!({"update_id": 1, "callback_query": {
        "id": "q", "chat_instance": "c", "data": data[1],
        "from": {"id": 42, "is_bot": false, "first_name": "Ada"},
        "message": {"message_id": 1001, "date": 1, "chat": {"id": 42, "type": "private"}},
    }}));
    fake.add_text(2, "/stop");
    let noted = || intake.controls().len() == 2 && !fake.calls("answerCallbackQuery").is_empty();
    run_until(&channel, &intake, "both requests", noted)
        .await
        .unwrap();
    let controls = intake.controls();
    let deny = ApprovalChoice::Deny;
    assert!(matches!(&controls[0], Control::Approval { choice, .. } if *choice == deny));
    assert!(matches!(&controls[1], Control::Cancel { sender, .. } if sender.id == "42"));
    assert_eq!(fake.calls("answerCallbackQuery")[0]["text"], "noted");
    let resolved = Frame::Resolved {
        nonce,
        outcome: "denied".to_owned(),
        by: Some("Ada".to_owned()),
    };
    channel.live(&chat(), &resolved);
    until("the edit", || !fake.calls("editMessageText").is_empty()).await;
    let edit = &fake.calls("editMessageText")[0];
    assert!(edit["text"].as_str().unwrap().ends_with("→ denied by Ada"));
    assert_eq!(edit.get("reply_markup"), None);
}

#[tokio::test]
async fn a_call_is_shown_as_a_whole_or_not_asked_about() {
    let (fake, channel) = connected().await;
    let question = |length: usize| Frame::Approve {
        nonce: "0f".to_owned(),
        call_id: "call_1".to_owned(),
        tool: "shell".to_owned(),
        args: Box::default(),
        card: Box::new(card(&"x".repeat(length))),
        choices: vec![ApprovalChoice::Allow, ApprovalChoice::Deny],
        expires: 0,
    };
    send(&channel, question(9_000)).await.unwrap();
    let calls = fake.calls("sendMessage");
    assert_eq!(texts(&calls).concat().matches('x').count(), 9_000);
    let with_buttons: Vec<bool> = calls
        .iter()
        .map(|call| !call["reply_markup"].is_null())
        .collect();
    assert_eq!(with_buttons, [false, false, true]);
    let error = send(&channel, question(90_000)).await.unwrap_err();
    assert!(matches!(error, DeliveryError::Permanent { .. }));
    assert_eq!(fake.calls("sendMessage").len(), 3);
}

#[tokio::test]
async fn the_preview_becomes_the_answer_and_the_tool_status_goes() {
    let (fake, channel) = connected().await;
    let live = |chunk: Chunk| {
        let turn = "t".to_owned();
        let replace = false;
        channel.live(
            &chat(),
            &Frame::Chunk {
                turn,
                chunk,
                replace,
            },
        );
    };
    let start = Frame::Start {
        turn: "t".to_owned(),
        in_reply_to: vec!["1".to_owned()],
    };
    channel.live(&chat(), &start);
    live(Chunk::ToolStart {
        id: "1".to_owned(),
        name: "search".to_owned(),
        args: serde_json::Map::new(),
    });
    until("the tool status", || !fake.calls("sendMessage").is_empty()).await;
    let text = |text: &str| Chunk::Text {
        text: text.to_owned(),
    };
    live(text("The answer"));
    until("the preview", || fake.calls("sendMessage").len() == 2).await;
    live(text(" is **42**."));
    send(&channel, end("The answer is **42**.")).await.unwrap();
    let done = Frame::Done {
        turn: "t".to_owned(),
        status: TurnStatus::Completed,
        usage: None,
    };
    send(&channel, done).await.unwrap();
    let shown: Vec<String> = fake
        .visible()
        .iter()
        .map(|call| {
            let id = call.params["message_id"].as_i64().unwrap_or_default();
            format!(
                "{} {id} {}",
                call.method,
                call.params["text"].as_str().unwrap_or_default()
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            "sendMessage 0 ⚙️ search…",
            "deleteMessage 1001 ",
            "sendMessage 0 The answer",
            "editMessageText 1002 The answer is <b>42</b>.",
        ]
    );
    assert!(!fake.calls("sendChatAction").is_empty());
}

// G80
#[tokio::test]
async fn a_file_is_counted_while_it_arrives_and_comes_from_nowhere_else() {
    let (fake, channel) = connected().await;
    fake.add_file("documents/a b.txt", b"hello".to_vec());
    fake.add_file("large", vec![0; 1 << 20]);
    let fetch = async |reference: &str| {
        let media = MediaRef {
            kind: MediaKind::File,
            reference: reference.to_owned(),
            name: Some("../../x".to_owned()),
            duration_ms: None,
        };
        let mut sink = MediaSink::new(200 << 10);
        let fetched = channel.fetch(&media, &mut sink).await;
        fetched.map(|()| sink.into_bytes())
    };
    assert_eq!(fetch("documents/a b.txt").await.unwrap(), b"hello");
    assert_eq!(fetch("large").await.unwrap_err().code, "too_large");
    for path in ["../../etc/passwd", "/etc/passwd", "moved", "missing"] {
        let error = fetch(path).await.unwrap_err();
        assert_eq!(error.code, "download", "{path}: {error}");
    }
}

#[tokio::test]
async fn what_a_chat_does_not_show_is_sent_as_nothing() {
    let (fake, channel) = connected().await;
    let said = Frame::Said {
        message_id: "1".to_owned(),
        sender: "42".to_owned(),
        text: "x".to_owned(),
        media: Vec::new(),
        is_transcript: false,
    };
    assert_eq!(send(&channel, said).await, Ok(Receipt::default()));
    assert_eq!(send(&channel, end("")).await, Ok(Receipt::default()));
    assert!(fake.visible().is_empty());
    let error = Frame::Error {
        turn: None,
        message_id: None,
        code: "rejected".to_owned(),
        text: "not <here>".to_owned(),
        retry: None,
    };
    send(&channel, error).await.unwrap();
    assert_eq!(texts(&fake.calls("sendMessage")), ["⛔ not <here>"]);
}

#[tokio::test]
async fn an_answer_is_kept_while_the_token_is_refused() {
    let (fake, channel) = connected().await;
    fake.refuse("sendMessage", 401, "Unauthorized");
    let refused = send(&channel, end("hello")).await;
    assert!(
        matches!(refused, Err(DeliveryError::Retry { .. })),
        "{refused:?}"
    );
    send(&channel, end("hello")).await.unwrap();
    assert_eq!(texts(&fake.calls("sendMessage")), ["hello", "hello"]);
}
