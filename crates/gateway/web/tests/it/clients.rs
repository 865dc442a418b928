//! Connections of clients, over streams in memory.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{sink, stream};
use serde_json::{Value, json};
use tenterhook_channel::approval_card::ApprovalCard;
use tenterhook_channel::channel::{Channel as _, MediaSink};
use tenterhook_channel::frame::Frame;
use tenterhook_channel::message::{ApprovalChoice, Control, IncomingPart, MediaKind};
use tenterhook_protocol::JsonObject;
use tenterhook_protocol::event::SenderRole;
use tenterhook_web::client_chat::{ClientChatId, place_of};
use tenterhook_web::client_frame::ClientRefusal;
use tenterhook_web::connection::{
    ClientIdentity, ConnectionEnd, Login, Received, Sent, Transport, serve,
};
use tenterhook_web::frame_channel::sender;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::echo_gateway::{EchoGateway, text_of};

struct Client {
    to_server: mpsc::Sender<Received>,
    from_server: mpsc::Receiver<Sent>,
    connection: JoinHandle<ConnectionEnd>,
    stop: CancellationToken,
}

fn known(user: &str, role: SenderRole) -> Login {
    let client = ClientIdentity {
        user: user.to_owned(),
        role,
    };
    Login::Known(client.into())
}

impl Client {
    fn connect(gateway: &EchoGateway, login: Login) -> Self {
        let (to_server, incoming) = mpsc::channel(64);
        let (outgoing, from_server) = mpsc::channel(64);
        let incoming = stream::unfold(incoming, |mut incoming| async move {
            let received = incoming.recv().await?;
            Some((received, incoming))
        });
        let outgoing = sink::unfold(outgoing, |outgoing, sent| async move {
            outgoing.send(sent).await.map(|()| outgoing)
        });
        let stop = CancellationToken::new();
        let (channel, stopped) = (Arc::clone(&gateway.channel), stop.clone());
        let connection = tokio::spawn(serve(
            login,
            channel,
            Transport::Socket,
            incoming,
            outgoing,
            stopped,
        ));
        Self {
            to_server,
            from_server,
            connection,
            stop,
        }
    }

    fn owner(gateway: &EchoGateway, user: &str) -> Self {
        Self::connect(gateway, known(user, SenderRole::Owner))
    }

    async fn send(&self, frame: Value) {
        let text = Received::Text(frame.to_string());
        self.to_server.send(text).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        loop {
            let next = timeout(Duration::from_secs(20), self.from_server.recv()).await;
            match next
                .expect("a frame arrives")
                .expect("the connection lives")
            {
                Sent::Text(text) => return serde_json::from_str(&text).unwrap(),
                Sent::Ping => {}
            }
        }
    }

    /// Reads until a frame of a type arrives, and returns it.
    async fn next_of(&mut self, word: &str) -> Value {
        loop {
            let frame = self.next().await;
            if frame["type"] == word {
                return frame;
            }
        }
    }

    async fn end(self) -> ConnectionEnd {
        let end = timeout(Duration::from_secs(20), self.connection).await;
        end.expect("the connection ends").unwrap()
    }
}

fn hello(chats: &Value) -> Value {
    json!({"type": "hello", "protocol": 1, "chats": chats})
}

fn message(chat: &str, id: &str, text: &str) -> Value {
    json!({"type": "message", "chat": chat, "message_id": id, "text": text})
}

#[tokio::test]
async fn a_message_is_accepted_and_answered_in_the_chat_of_the_client() {
    let gateway = EchoGateway::start("web").await;
    let mut client = Client::connect(&gateway, known("ann", SenderRole::Member));
    client.send(hello(&json!({}))).await;
    let ready = client.next().await;
    assert_eq!(ready["type"], "ready");
    assert_eq!(ready["protocol"], 1);
    assert_eq!(ready["user"], "ann");
    assert_eq!(ready["role"], "member");
    assert_eq!(ready["chats"], json!([]));
    client.send(message("work", "m1", "hi")).await;
    let mut seen = Vec::new();
    while seen.last() != Some(&json!("done")) {
        let frame = client.next().await;
        assert_eq!(frame["chat"], "work", "{frame}");
        seen.push(frame["type"].clone());
    }
    let accepted = seen.iter().position(|word| word == "accepted");
    seen.remove(accepted.expect("it was accepted"));
    assert_eq!(seen, ["said", "start", "chunk", "end", "done"]);
    let (role, offered) = gateway.intake.offers.lock()[0].clone();
    assert_eq!(role, SenderRole::Member);
    assert_eq!(offered.chat.to_string(), "web:ann/work");
    assert_eq!(offered.sender.id, "ann");
    assert_eq!(offered.message_id, "m1");
    assert_eq!(text_of(&offered), "hi");
    client.send(message("work", "m1", "hi")).await;
    let again = client.next().await;
    assert_eq!(
        again,
        json!({"type": "accepted", "chat": "work", "message_id": "m1", "duplicate": true})
    );
}

#[tokio::test]
async fn a_client_sees_only_the_chats_of_its_user() {
    let gateway = EchoGateway::start("web").await;
    for user in ["ann", "bob"] {
        let mut client = Client::owner(&gateway, user);
        client.send(message("work", "m", user)).await;
        client.next_of("done").await;
    }
    let mut client = Client::owner(&gateway, "bob");
    client.send(hello(&json!({"work": 0}))).await;
    let ready = client.next().await;
    assert_eq!(ready["chats"].as_array().unwrap().len(), 1);
    assert_eq!(ready["chats"][0]["id"], "work");
    assert_eq!(ready["chats"][0]["title"], "bob");
    assert_eq!(ready["chats"][0]["last_seq"], 3);
    assert_eq!(client.next_of("said").await["text"], "bob");
    client.next_of("done").await;
    let history = json!({"type": "history", "chat": "work", "before": 3, "limit": 1});
    client.send(history).await;
    let history = client.next_of("history").await;
    assert_eq!(history["chat"], "work");
    assert_eq!(history["oldest"], 1);
    assert_eq!(history["frames"][0]["seq"], 2);
    assert_eq!(history["frames"][0]["text"], "bob");
}

#[tokio::test]
async fn frames_that_cannot_be_carried_out_get_an_error_and_do_not_end_the_connection() {
    let gateway = EchoGateway::start("web").await;
    let mut client = Client::owner(&gateway, "ann");
    let table = [
        (json!({"type": "start"}), "unknown_type"),
        (json!([1]), "bad_frame"),
        (json!({"type": "hello", "protocol": 2}), "unknown_protocol"),
        (message("a", "", "hi"), "bad_frame"),
        (message("a", "m 1", "hi"), "bad_frame"),
        (message("../a", "m", "hi"), "bad_frame"),
        (message("a", "m", ""), "empty"),
        (message("a", "m", "refuse"), "queue_full"),
        (message("a", "m", &"x".repeat((256 << 10) + 1)), "too_large"),
        (message("a", "m", &"x".repeat(1 << 20)), "too_large"),
        (
            json!({"type": "message", "chat": "a", "message_id": "m",
                   "parts": vec![json!({"media": "x"}); 11]}),
            "too_large",
        ),
        (
            json!({"type": "message", "chat": "a", "message_id": "m",
                   "parts": [{"media": "../../etc/passwd"}]}),
            "unknown_media",
        ),
        (
            json!({"type": "message", "chat": "a", "message_id": "m",
                   "parts": [{"media_type": "image/png", "data": "!"}]}),
            "bad_part",
        ),
        (
            json!({"type": "approve", "nonce": "n", "choice": "allow"}),
            "unknown_question",
        ),
    ];
    for (frame, code) in table {
        client.send(frame.clone()).await;
        let error = client.next().await;
        assert_eq!(error["type"], "error", "{error}");
        assert_eq!(error["code"], code, "{error}");
        if frame["message_id"] == "m" && error["code"] != "too_large" {
            assert_eq!(error["message_id"], "m", "{error}");
        }
    }
    client.send(json!({"type": "ping"})).await;
    assert_eq!(client.next().await, json!({"type": "pong"}));
    assert_eq!(gateway.intake.offers.lock().len(), 0);
}

#[tokio::test]
async fn files_reach_the_gateway_if_they_belong_to_the_user() {
    let gateway = EchoGateway::start("web").await;
    let png = b"\x89PNG\r\n\x1a\n and more".to_vec();
    let (channel, media) = (&gateway.channel, gateway.channel.media());
    let owner = place_of(channel.id(), "ann");
    let name = Some("a.png".to_owned());
    let saved = media
        .save(png.clone(), MediaKind::Image, name, &owner)
        .await;
    let id = saved.unwrap().media.id;
    let message = |text: &str| {
        json!({
            "type": "message", "chat": "work", "message_id": "m", "text": text,
            "parts": [{"media": id}, {"media_type": "text/plain", "data": "aGVsbG8=", "name": "b"}],
        })
    };
    let mut bob = Client::owner(&gateway, "bob");
    bob.send(message("mine now")).await;
    assert_eq!(bob.next().await["code"], "unknown_media");
    let mut ann = Client::owner(&gateway, "ann");
    ann.send(message("see")).await;
    ann.next_of("done").await;
    let offered = gateway.intake.offers.lock()[0].1.clone();
    let [IncomingPart::Text { .. }, parts @ ..] = offered.parts.as_slice() else {
        panic!("the text comes first: {:?}", offered.parts);
    };
    let expected = [
        (MediaKind::Image, "a.png", png),
        (MediaKind::File, "b", b"hello".to_vec()),
    ];
    assert_eq!(parts.len(), expected.len());
    for (part, (kind, name, bytes)) in parts.iter().zip(expected) {
        let IncomingPart::Media(media) = part else {
            panic!("expected a file: {part:?}");
        };
        assert_eq!((media.kind, media.name.as_deref()), (kind, Some(name)));
        let mut sink = MediaSink::new(100);
        channel.fetch(media, &mut sink).await.unwrap();
        assert_eq!(sink.into_bytes(), bytes);
        let small = &mut MediaSink::new(3);
        let error = channel.fetch(media, small).await.unwrap_err();
        assert!(error.to_string().contains("larger than 3 bytes"), "{error}");
    }
}

#[tokio::test]
async fn a_message_is_refused_while_the_channel_does_not_run() {
    let gateway = EchoGateway::new("web");
    let mut client = Client::owner(&gateway, "ann");
    client.send(message("a", "m", "hi")).await;
    let error = client.next().await;
    assert_eq!(
        (&error["code"], &error["message_id"]),
        (&json!("unavailable"), &json!("m"))
    );
}

#[tokio::test]
async fn questions_are_answered_by_owners_in_the_chat_where_they_were_asked() {
    let gateway = EchoGateway::start("web").await;
    let mut owner = Client::owner(&gateway, "ann");
    let mut member = Client::connect(&gateway, known("ann", SenderRole::Member));
    for client in [&mut owner, &mut member] {
        client.send(hello(&json!({"work": 0, "other": 0}))).await;
        client.next_of("ready").await;
    }
    let id = ClientChatId::new("work").unwrap();
    let chat = id.chat_of(gateway.channel.id(), "ann");
    let question = Frame::Approve {
        nonce: "n1".to_owned(),
        call_id: "call_1".to_owned(),
        tool: "bash".to_owned(),
        args: Box::default(),
        card: Box::new(ApprovalCard::new(
            ("bash", &JsonObject::new()),
            ("ann", &chat),
            "the rule asks",
        )),
        choices: vec![ApprovalChoice::Allow],
        expires: i64::MAX,
    };
    assert!(gateway.channel.can_ask(&chat));
    gateway.channel.live(&chat, &question);
    let approve = json!({"type": "approve", "nonce": "n1", "choice": "deny", "reason": "no"});
    for client in [&mut member, &mut owner] {
        assert_eq!(client.next_of("approve").await["nonce"], "n1");
        client.send(approve.clone()).await;
    }
    assert_eq!(member.next().await["code"], "forbidden");
    assert_eq!(owner.next().await["text"], "noted");
    let controls = gateway.intake.controls.lock().clone();
    let expected = Control::Approval {
        nonce: "n1".to_owned(),
        choice: ApprovalChoice::Deny,
        reason: Some("no".to_owned()),
        chat,
        sender: sender("ann"),
    };
    assert_eq!(controls, [(SenderRole::Owner, expected)]);
}

#[tokio::test]
async fn a_client_without_login_has_to_begin_with_a_valid_token() {
    let gateway = EchoGateway::start("web").await;
    let by_token = || {
        Login::ByToken(Box::new(|token| {
            Box::pin(async move {
                let client = ClientIdentity {
                    user: "ann".to_owned(),
                    role: SenderRole::Owner,
                };
                let wrong = || ClientRefusal::new("unauthorized", "the token is not valid");
                (token == "good").then(|| client.into()).ok_or_else(wrong)
            })
        }))
    };
    let mut good = Client::connect(&gateway, by_token());
    good.send(json!({"type": "hello", "token": "good"})).await;
    assert_eq!(good.next().await["user"], "ann");
    for first in [
        json!({"type": "hello", "token": "bad"}),
        json!({"type": "hello"}),
        message("a", "m", "hi"),
    ] {
        let mut bad = Client::connect(&gateway, by_token());
        bad.send(first).await;
        assert_eq!(bad.next().await["code"], "unauthorized");
        assert_eq!(
            bad.next().await,
            json!({"type": "bye", "reason": "unauthorized"})
        );
        assert_eq!(bad.end().await, ConnectionEnd::Unauthorized);
    }
    assert_eq!(gateway.intake.offers.lock().len(), 0);
    tokio::time::pause();
    let begin = Instant::now();
    let silent = Client::connect(&gateway, by_token());
    assert_eq!(silent.end().await, ConnectionEnd::Unauthorized);
    assert_eq!(begin.elapsed().as_secs(), 5);
}

#[tokio::test]
async fn a_client_is_told_when_the_gateway_stops() {
    let gateway = EchoGateway::start("web").await;
    let mut client = Client::owner(&gateway, "ann");
    client.send(hello(&json!({}))).await;
    client.next_of("ready").await;
    client.stop.cancel();
    assert_eq!(
        client.next().await,
        json!({"type": "bye", "reason": "shutdown"})
    );
    assert_eq!(client.end().await, ConnectionEnd::Stopped);
}

#[tokio::test]
async fn a_client_that_gives_no_sign_of_life_is_disconnected() {
    let gateway = EchoGateway::start("web").await;
    tokio::time::pause();
    let mut client = Client::owner(&gateway, "ann");
    let begin = Instant::now();
    for _ in 0..3 {
        assert_eq!(client.from_server.recv().await, Some(Sent::Ping));
        client.to_server.send(Received::Alive).await.unwrap();
    }
    assert_eq!(client.connection.await.unwrap(), ConnectionEnd::Idle);
    assert_eq!(begin.elapsed().as_secs(), 120);
}

// G60
#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected_and_holds_up_no_one() {
    let gateway = EchoGateway::start("web").await;
    let mut reading = Client::owner(&gateway, "ann");
    reading.send(hello(&json!({"work": 0}))).await;
    reading.next_of("ready").await;
    // This connection accepts nothing.
    let stuck = sink::unfold((), |(), _: Sent| std::future::pending::<Result<(), ()>>());
    let (to_server, incoming) = mpsc::channel(64);
    let incoming = stream::unfold(
        incoming,
        |mut incoming: mpsc::Receiver<Received>| async move {
            let received = incoming.recv().await?;
            Some((received, incoming))
        },
    );
    let hello = Received::Text(hello(&json!({"work": 0})).to_string());
    to_server.send(hello).await.unwrap();
    let login = known("ann", SenderRole::Owner);
    let channel = Arc::clone(&gateway.channel);
    let stop = CancellationToken::new();
    let slow = tokio::spawn(serve(
        login,
        channel,
        Transport::Socket,
        incoming,
        stuck,
        stop,
    ));
    for number in 0..20 {
        reading
            .send(message("work", &number.to_string(), "hi"))
            .await;
        reading.next_of("done").await;
    }
    assert!(!slow.is_finished());
    tokio::time::pause();
    assert_eq!(slow.await.unwrap(), ConnectionEnd::Slow);
}
