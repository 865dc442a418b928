//! A channel that is a program. It speaks JSON-RPC 2.0 on its standard input and output, one message a line.
//!
//! The program runs while [`Channel::run`] does. If it ends or stops answering, `run` fails, and the gateway calls it
//! again later. The protocol is described in `docs/reference/channel-protocol.md`.

pub mod check;
mod connection;
mod protocol;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::future::{BoxFuture, Either, FutureExt as _, select};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tenterhook_process::{Command, Companion, CompanionPipes, Program};
use tokio_util::sync::CancellationToken;

use self::connection::{CallError, Connection};
use self::protocol::{InitializeResult, PROTOCOL, SendResult};
use tenterhook_channel::channel::{
    Channel, ChannelCapabilities, ChannelError, DeliveryError, Inlet, MediaSink, Outgoing, Receipt,
};
use tenterhook_channel::chat::{ChannelId, ChatRef};
use tenterhook_channel::frame::Frame;
use tenterhook_channel::message::MediaRef;
use tenterhook_channel::settings::CommandSettings;

/// How long the program may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long it may take to send a frame.
const SEND_TIMEOUT: Duration = Duration::from_mins(1);
/// How long it may take to fetch a file.
const FETCH_TIMEOUT: Duration = Duration::from_mins(3);
/// How often it is asked whether it lives, and how long it may take to answer.
const PING: Duration = Duration::from_secs(30);
/// How long it may take to end.
const GRACE: Duration = Duration::from_secs(5);
/// How long its standard error is read after it ended.
const LAST_OUTPUT: Duration = Duration::from_millis(200);
/// The maximum size of a file in bytes.
const MAX_FILE: u64 = 20 << 20;
/// The media types of audio that a program gets if it plays audio.
const AUDIO: &[&str] = &["audio/ogg", "audio/mpeg", "audio/wav"];

/// A channel that is a program.
#[derive(Debug)]
pub struct ProgramChannel {
    id: ChannelId,
    argv: Vec<String>,
    ping: Duration,
    slot: Mutex<Slot>,
}

/// The program that runs now, and what the last one could do.
#[derive(Debug)]
struct Slot {
    connection: Option<Arc<Connection>>,
    capabilities: ChannelCapabilities,
}

/// Takes the connection out of the slot when `run` ends or is dropped.
struct Running<'a>(&'a ProgramChannel, Arc<Connection>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.slot.lock().connection = None;
        self.1.close();
    }
}

impl ProgramChannel {
    /// Creates the channel. The program is not started yet.
    pub fn new(id: ChannelId, settings: &CommandSettings) -> Self {
        let capabilities = ChannelCapabilities {
            speaks_frames: false,
            max_file: MAX_FILE,
            audio_formats: &[],
        };
        Self {
            id,
            argv: settings.argv.clone(),
            ping: PING,
            slot: Mutex::new(Slot {
                connection: None,
                capabilities,
            }),
        }
    }

    /// Sets how often the program is asked whether it lives, and how long it may take to answer. The default is 30
    /// seconds.
    #[must_use]
    pub fn with_ping(self, ping: Duration) -> Self {
        Self { ping, ..self }
    }

    async fn serve(&self, inlet: &Inlet, stop: &CancellationToken) -> Result<(), ChannelError> {
        let command = Command::new(Program::exec(&self.argv));
        let (child, pipes) = Companion::start(&command).map_err(|error| {
            let cause = tenterhook_engine::error_chain(&error);
            ChannelError::new("start", format!("cannot start the program: {cause}"))
        })?;
        let CompanionPipes {
            stdin,
            stdout,
            stderr,
        } = pipes;
        let (connection, outgoing) = Connection::new(self.id.clone());
        let connection = Arc::new(connection);
        let running = Running(self, Arc::clone(&connection));
        let exchange = async {
            let mut pumps = Box::pin(async {
                tokio::select! {
                    () = connection.write(outgoing, stdin) => {}
                    () = connection.read(stdout) => {}
                    () = connection.answer(inlet) => {}
                }
            });
            let result = tokio::select! {
                biased;
                () = stop.cancelled() => {
                    connection.shut_down();
                    // The program may finish what it does. It is killed below otherwise.
                    tokio::time::timeout(GRACE, &mut pumps).await.ok();
                    Ok(())
                }
                lost = self.supervise(inlet, &connection) => Err(Some(lost)),
                () = &mut pumps => Err(None),
            };
            drop((running, pumps));
            let grace = if matches!(result, Err(Some(_))) {
                Duration::ZERO
            } else {
                GRACE
            };
            (result, child.end(grace).await)
        };
        let (result, end) = match select(pin!(exchange), pin!(connection.listen(stderr))).await {
            Either::Left((ended, listening)) => {
                // What the program wrote before it ended may not be read yet. A child of it can keep the pipe open.
                tokio::time::timeout(LAST_OUTPUT, listening).await.ok();
                ended
            }
            Either::Right(((), exchange)) => exchange.await,
        };
        result.map_err(|lost| {
            lost.unwrap_or_else(|| ChannelError::new("ended", connection.problem(end)))
        })
    }

    /// Introduces the gateway, and then asks again and again whether the program lives. Returns when it does not.
    async fn supervise(&self, inlet: &Inlet, connection: &Arc<Connection>) -> ChannelError {
        let hello = json!({ "channel": self.id, "protocol": PROTOCOL });
        let started = connection.call("initialize", &hello, START_TIMEOUT).await;
        let started = started.and_then(|value| {
            serde_json::from_value::<InitializeResult>(value)
                .map_err(|error| CallError::invalid(&error))
        });
        let capabilities = match started {
            Ok(started) => started.capabilities,
            Err(error) => return ChannelError::new("start", error.to_string()),
        };
        {
            let mut slot = self.slot.lock();
            slot.connection = Some(Arc::clone(connection));
            slot.capabilities = ChannelCapabilities {
                // Its clients cannot read the store, so each frame waits until the program has it.
                speaks_frames: false,
                max_file: capabilities.max_file.unwrap_or(MAX_FILE).min(MAX_FILE),
                audio_formats: if capabilities.plays_audio { AUDIO } else { &[] },
            };
        }
        loop {
            inlet.alive();
            tokio::time::sleep(self.ping).await;
            // A program that does not know `ping` answers with an error, and so it lives.
            if let Err(error @ CallError::Lost { .. }) =
                connection.call("ping", &json!({}), self.ping).await
            {
                return ChannelError::new("silent", error.to_string());
            }
        }
    }

    fn connection(&self) -> Option<Arc<Connection>> {
        self.slot.lock().connection.clone()
    }

    async fn call(
        &self,
        method: &'static str,
        params: &Value,
        timeout: Duration,
    ) -> Result<Value, CallError> {
        match self.connection() {
            Some(connection) => connection.call(method, params, timeout).await,
            None => Err(CallError::Lost {
                cause: "the program is not running".to_owned(),
            }),
        }
    }
}

/// Returns a chat as the program knows it.
fn chat_value(chat: &ChatRef) -> Value {
    match &chat.thread {
        Some(thread) => json!({ "chat": chat.chat, "thread": thread }),
        None => json!({ "chat": chat.chat }),
    }
}

impl Channel for ProgramChannel {
    fn capabilities(&self) -> ChannelCapabilities {
        self.slot.lock().capabilities
    }

    fn alive_interval(&self) -> Option<Duration> {
        Some(self.ping)
    }

    fn run(
        &self,
        inlet: Inlet,
        stop: CancellationToken,
    ) -> BoxFuture<'_, Result<(), ChannelError>> {
        async move { self.serve(&inlet, &stop).await }.boxed()
    }

    fn fetch<'a>(
        &'a self,
        media: &'a MediaRef,
        into: &'a mut MediaSink,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        async move {
            let params = json!({ "reference": media.reference });
            let fetched = self.call("fetch", &params, FETCH_TIMEOUT).await;
            let failed = |cause: String| ChannelError::new("download", cause);
            let fetched = fetched.map_err(|error| failed(error.to_string()))?;
            let data = fetched.get("data").and_then(Value::as_str);
            let bytes = data
                .and_then(|data| BASE64_STANDARD.decode(data).ok())
                .ok_or_else(|| failed("the program did not return `data` in base64".to_owned()))?;
            into.write(&bytes)
                .map_err(|error| ChannelError::new("too_large", error.to_string()))
        }
        .boxed()
    }

    fn send<'a>(&'a self, outgoing: &'a Outgoing) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        async move {
            let mut params = json!({
                "chat": chat_value(&outgoing.chat),
                "key": outgoing.key(),
                "frame": outgoing.frame,
                "attempt": outgoing.attempt,
            });
            if let (Some(file), Some(params)) = (&outgoing.file, params.as_object_mut()) {
                params.insert("file".to_owned(), json!(file));
            }
            let sent = self.call("send", &params, SEND_TIMEOUT).await?;
            let sent: SendResult =
                serde_json::from_value(sent).map_err(|error| CallError::invalid(&error))?;
            Ok(Receipt {
                message_ids: sent.message_ids,
            })
        }
        .boxed()
    }

    fn live(&self, chat: &ChatRef, frame: &Frame) {
        if let Some(connection) = self.connection() {
            connection.notify("live", &json!({ "chat": chat_value(chat), "frame": frame }));
        }
    }

    fn can_ask(&self, _chat: &ChatRef) -> bool {
        self.connection().is_some()
    }
}
