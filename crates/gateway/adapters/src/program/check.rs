//! Checks whether a program speaks the channel protocol. Each step of the conversation states what it expects.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Serialize;
use serde_json::{Value, json};
use tenterhook_channel::channel::{Accepted, Inlet, Intake};
use tenterhook_channel::chat::{ChannelId, ChatRef};
use tenterhook_channel::message::{Control, IncomingMessage};
use tenterhook_process::{Command, Companion, CompanionPipes, End, Program};
use tenterhook_protocol::event::SenderRole;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::connection::{CallError, Connection};
use super::protocol::{InitializeResult, PROTOCOL, SendResult};

/// How long one step may take.
const STEP: Duration = Duration::from_secs(10);
/// How long to wait for a message that the program may offer.
const OFFER: Duration = Duration::from_secs(5);
/// How long the program may take to end.
const GRACE: Duration = Duration::from_secs(5);
/// The chat to send to if neither the caller nor the program names one.
const CHAT: &str = "check";
/// The keys of `capabilities`.
const CAPABILITIES: [&str; 4] = ["is_idempotent", "speaks_frames", "plays_audio", "max_file"];

/// One step of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChannelCheckStep {
    /// What the program should do.
    pub what: &'static str,
    /// What is wrong, or `None` if the step passed.
    pub problem: Option<String>,
    /// What else is worth knowing.
    pub note: Option<String>,
}

/// Starts a program and talks to it from its start to its end. `chat` is where frames are sent. Returns early if a step
/// fails that all later steps need.
pub async fn check(argv: &[String], chat: Option<&str>) -> Vec<ChannelCheckStep> {
    let mut steps = Steps::default();
    let command = Command::new(Program::exec(argv));
    let (child, pipes) = match Companion::start(&command) {
        Ok(started) => started,
        Err(error) => {
            let cause = tenterhook_engine::error_chain(&error);
            steps.add("it starts", Err(cause));
            return steps.0;
        }
    };
    let CompanionPipes {
        stdin,
        stdout,
        stderr,
    } = pipes;
    let id = match ChannelId::new(CHAT) {
        Ok(id) => id,
        Err(error) => {
            steps.add("it starts", Err(error.to_string()));
            return steps.0;
        }
    };
    steps.add("it starts", Ok(None));
    let (connection, outgoing) = Connection::new(id.clone());
    let (offered, first) = watch::channel(None);
    let inlet = Inlet::new(
        id.clone(),
        Arc::new(FirstMessage(offered)),
        CancellationToken::new(),
    );
    let ended = CancellationToken::new();
    let pumps = async {
        tokio::select! {
            () = connection.write(outgoing, stdin) => {}
            () = connection.read(stdout) => {}
            () = connection.listen(stderr) => {}
            () = connection.answer(&inlet) => {}
        }
        connection.close();
        ended.cancel();
        std::future::pending::<()>().await;
    };
    let dialogue = Dialogue {
        connection: &connection,
        first,
        chat,
    };
    let is_over = tokio::select! {
        is_over = async {
            dialogue.hold(&mut steps).await;
            connection.shut_down();
            timeout(GRACE, ended.cancelled()).await.is_ok()
        } => is_over,
        () = pumps => true,
    };
    let end = child
        .end(if is_over { GRACE } else { Duration::ZERO })
        .await;
    let late = || Err(format!("it still runs {} seconds later", GRACE.as_secs()));
    let result = match end {
        _ if !is_over => late(),
        End::Exited(0) => Ok(None),
        End::Exited(_) => Ok(Some(connection.problem(end))),
        End::Signaled(_) | End::TimedOut { .. } | End::Cancelled { .. } => {
            Err(connection.problem(end))
        }
    };
    steps.add("it ends after `shutdown`", result);
    let mistake = connection.mistake().map_or(Ok(None), Err);
    steps.add("all its messages are valid", mistake);
    steps.0
}

#[derive(Default)]
struct Steps(Vec<ChannelCheckStep>);

impl Steps {
    /// Adds a step with what is worth knowing, or what is wrong.
    fn add(&mut self, what: &'static str, result: Result<Option<String>, String>) {
        let (note, problem) = match result {
            Ok(note) => (note, None),
            Err(problem) => (None, Some(problem)),
        };
        self.0.push(ChannelCheckStep {
            what,
            problem,
            note,
        });
    }
}

/// The conversation with a running program.
struct Dialogue<'a> {
    connection: &'a Connection,
    first: watch::Receiver<Option<ChatRef>>,
    chat: Option<&'a str>,
}

impl Dialogue<'_> {
    async fn hold(mut self, steps: &mut Steps) {
        let hello = json!({ "channel": CHAT, "protocol": PROTOCOL });
        let capabilities = match self.ask("initialize", &hello).await {
            Ok(answer) => read_capabilities(&answer),
            Err(error) => Err(error.to_string()),
        };
        let is_idempotent = capabilities.clone().ok();
        let shown = capabilities.map(|is_idempotent| {
            (!is_idempotent).then(|| "after a crash, a frame may be shown twice".to_owned())
        });
        steps.add("it answers `initialize` with its capabilities", shown);
        let Some(is_idempotent) = is_idempotent else {
            return;
        };
        let offered = timeout(OFFER, self.first.wait_for(Option::is_some)).await;
        let offered = offered.ok().and_then(|found| found.ok()?.clone());
        let note = offered.is_none().then(|| {
            format!(
                "it offered none within {} seconds, so this was not checked",
                OFFER.as_secs()
            )
        });
        steps.add("its first message is valid", Ok(note));
        self.check_sending(steps, offered, is_idempotent).await;
        let fetched = self
            .ask("fetch", &json!({ "reference": "no-such-file" }))
            .await;
        let refused = |answer: Result<Value, CallError>| match answer {
            Err(CallError::Refused(_)) => Ok(None),
            Err(error @ CallError::Lost { .. }) => Err(error.to_string()),
            Ok(value) => Err(format!("expected an error, found {}", shortened(&value))),
        };
        steps.add(
            "it answers `fetch` of an unknown file with an error",
            refused(fetched),
        );
        let unknown = self.ask("no/such/method", &json!({})).await;
        steps.add(
            "it answers an unknown method with an error",
            refused(unknown),
        );
        let alive = self.alive().await;
        steps.add("it answers `ping`", alive);
    }

    async fn check_sending(
        &self,
        steps: &mut Steps,
        offered: Option<ChatRef>,
        is_idempotent: bool,
    ) {
        let chat = match (self.chat, &offered) {
            (None, Some(offered)) => match &offered.thread {
                Some(thread) => json!({ "chat": offered.chat, "thread": thread }),
                None => json!({ "chat": offered.chat }),
            },
            (named, _) => json!({ "chat": named.unwrap_or(CHAT) }),
        };
        let frame = json!({ "seq": 1, "type": "message", "text": "A test of the channel.",
            "turn": null, "media": null, "reply_to": null });
        let mut params = json!({ "chat": chat, "key": "check:1", "frame": frame, "attempt": 0 });
        let first = self.send(&params).await;
        let ids = first.as_ref().ok().and_then(|sent| sent.clone().ok());
        steps.add("it answers `send`", noted(first));
        if let Some(params) = params.as_object_mut() {
            params.insert("attempt".to_owned(), json!(1));
        }
        let again = self.send(&params).await;
        let again = match (ids, again) {
            (Some(ids), Ok(Ok(again))) if is_idempotent && ids != again => Err(format!(
                "`is_idempotent` is true, so expected the `message_ids` of the first time, {ids:?}; found {again:?}"
            )),
            (_, again) => noted(again),
        };
        steps.add("it answers `send` with the same `key` again", again);
        let frame = json!({ "type": "chunk", "turn": "check", "kind": "text", "text": "…" });
        self.connection
            .notify("live", &json!({ "chat": chat, "frame": frame }));
        let alive = self.alive().await;
        steps.add("it continues after `live`", alive);
    }

    /// Sends a frame. The inner error is one that the program may answer with.
    async fn send(&self, params: &Value) -> Result<Result<Vec<String>, String>, String> {
        match self.ask("send", params).await {
            Ok(answer) => match serde_json::from_value::<SendResult>(answer) {
                Ok(sent) => Ok(Ok(sent.message_ids)),
                Err(error) => Err(format!("the result is not valid: {error}")),
            },
            Err(error @ CallError::Refused(_)) => Ok(Err(error.to_string())),
            Err(error @ CallError::Lost { .. }) => Err(error.to_string()),
        }
    }

    /// Asks whether the program lives. An error is an answer too.
    async fn alive(&self) -> Result<Option<String>, String> {
        match self.ask("ping", &json!({})).await {
            Ok(_) | Err(CallError::Refused(_)) => Ok(None),
            Err(error @ CallError::Lost { .. }) => Err(error.to_string()),
        }
    }

    async fn ask(&self, method: &'static str, params: &Value) -> Result<Value, CallError> {
        self.connection.call(method, params, STEP).await
    }
}

/// Returns whether sending twice shows a frame once.
fn read_capabilities(answer: &Value) -> Result<bool, String> {
    let read: InitializeResult = serde_json::from_value(answer.clone())
        .map_err(|error| format!("the result is not valid: {error}"))?;
    let given = answer.get("capabilities").and_then(Value::as_object);
    let mut keys = given.into_iter().flat_map(serde_json::Map::keys);
    if let Some(unknown) = keys.find(|key| !CAPABILITIES.contains(&key.as_str())) {
        let unknown = unknown.escape_debug();
        return Err(format!(
            "unknown capability `{unknown}`; expected `{}`",
            CAPABILITIES.join("`, `")
        ));
    }
    Ok(read.capabilities.is_idempotent)
}

fn noted(sent: Result<Result<Vec<String>, String>, String>) -> Result<Option<String>, String> {
    sent.map(Result::err)
}

fn shortened(value: &Value) -> String {
    value.to_string().chars().take(100).collect()
}

/// Keeps the chat of the first message.
struct FirstMessage(watch::Sender<Option<ChatRef>>);

impl Intake for FirstMessage {
    fn offer<'a>(
        &'a self,
        _: &'a ChannelId,
        _: Option<SenderRole>,
        message: IncomingMessage,
    ) -> BoxFuture<'a, Accepted> {
        self.0.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert(message.chat);
            is_first
        });
        // The program keeps the message, and offers it again to the gateway.
        let cause = "this is only a check".to_owned();
        std::future::ready(Accepted::Failed { cause }).boxed()
    }

    fn control<'a>(
        &'a self,
        _: &'a ChannelId,
        _: Option<SenderRole>,
        _: Control,
    ) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }

    fn is_alive(&self, _: &ChannelId) {}

    fn offset<'a>(
        &'a self,
        _: &'a ChannelId,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<i64>, String>> {
        std::future::ready(Ok(None)).boxed()
    }

    fn set_offset<'a>(&'a self, _: &'a ChannelId, _: &'a str, _: i64) -> BoxFuture<'a, bool> {
        std::future::ready(false).boxed()
    }
}
