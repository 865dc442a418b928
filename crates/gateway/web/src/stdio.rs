//! Frames on standard input and output, one a line.
//!
//! There is one client, the program that started the gateway, and it is the owner. The end of the input is not the end
//! of the connection: the answers to all messages are written first.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt as _, sink, stream};
use parking_lot::Mutex;
use tenterhook_jsonrpc::{FrameReader, Framing};
use tenterhook_protocol::event::SenderRole;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::io::StreamReader;
use tokio_util::sync::CancellationToken;
use tokio_util::sync::DropGuard;

use crate::client_frame::{ClientRefusal, MAX_CLIENT_FRAME};
use crate::connection::{ClientIdentity, Login, Received, Sent, Transport, serve};
use crate::frame_channel::FrameChannel;
use tenterhook_channel::channel::{
    Channel, ChannelCapabilities, ChannelError, DeliveryError, Inlet, MediaSink, Outgoing, Receipt,
};
use tenterhook_channel::chat::ChatRef;
use tenterhook_channel::frame::Frame;
use tenterhook_channel::message::MediaRef;

/// The user of messages that come through standard input.
const USER: &str = "local";
/// How many bytes are read or written at once.
const CHUNK: usize = 64 << 10;

type Input = Pin<Box<dyn AsyncRead + Send>>;
type Output = Pin<Box<dyn AsyncWrite + Send>>;

/// The channel of the program that started the gateway.
pub struct StdioChannel {
    channel: Arc<FrameChannel>,
    /// What the first run takes.
    streams: Mutex<Option<(Input, Output)>>,
    stop: CancellationToken,
    /// Cancelled when the input has ended. No one can answer questions after that.
    input_ended: CancellationToken,
    /// Cancelled when nothing that was written waits in this process any more.
    written: CancellationToken,
    /// Cancelled when everything is written after the end of the input, or after `stop`.
    ended: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl StdioChannel {
    /// Creates a channel over two streams.
    pub fn new(
        channel: Arc<FrameChannel>,
        input: impl AsyncRead + Send + 'static,
        output: impl AsyncWrite + Send + 'static,
    ) -> Self {
        let (stop, written) = (CancellationToken::new(), CancellationToken::new());
        written.cancel();
        Self {
            channel,
            streams: Mutex::new(Some((Box::pin(input), Box::pin(output)))),
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
            input_ended: CancellationToken::new(),
            written,
            ended: CancellationToken::new(),
        }
    }

    /// Creates a channel over standard input and output, in a runtime of Tokio's.
    ///
    /// # Errors
    ///
    /// Fails if the threads that read and write cannot be started.
    pub fn of_process(channel: Arc<FrameChannel>) -> io::Result<Self> {
        let (output, written) = stdout()?;
        Ok(Self {
            written,
            ..Self::new(channel, stdin()?, output)
        })
    }

    /// Writes what is left, and ends. The gateway calls it when nothing more will be sent.
    pub async fn close(&self) {
        self.stop.cancel();
        let has_begun = self.streams.lock().is_none();
        if has_begun {
            self.ended.cancelled().await;
        }
    }

    /// Starts the connection. It continues when a run ends, because turns are finished after that.
    fn connect(&self) {
        let Some((input, output)) = self.streams.lock().take() else {
            return;
        };
        let client = ClientIdentity {
            user: USER.to_owned(),
            role: SenderRole::Owner,
        };
        let (channel, stop) = (Arc::clone(&self.channel), self.stop.clone());
        let ended = self.ended.clone().drop_guard();
        let (input_ended, written) = (self.input_ended.clone(), self.written.clone());
        tokio::spawn(async move {
            let _ended = ended;
            let end_of_input = stream::once(async move {
                input_ended.cancel();
                Received::Alive
            });
            let incoming = lines(input).chain(end_of_input);
            let outgoing = sink::unfold(output, write_line);
            let login = Login::Known(client.into());
            serve(login, channel, Transport::Pipe, incoming, outgoing, stop).await;
            written.cancelled().await;
        });
    }
}

impl Channel for StdioChannel {
    fn capabilities(&self) -> ChannelCapabilities {
        self.channel.capabilities()
    }

    /// Returns when the input has ended, all turns are done, and their frames are written.
    fn run(
        &self,
        inlet: Inlet,
        stop: CancellationToken,
    ) -> BoxFuture<'_, Result<(), ChannelError>> {
        Box::pin(async move {
            self.connect();
            tokio::select! {
                result = self.channel.run(inlet, stop) => result,
                () = self.ended.cancelled() => Ok(()),
            }
        })
    }

    fn fetch<'a>(
        &'a self,
        media: &'a MediaRef,
        into: &'a mut MediaSink,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        self.channel.fetch(media, into)
    }

    fn send<'a>(&'a self, outgoing: &'a Outgoing) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        self.channel.send(outgoing)
    }

    fn live(&self, chat: &ChatRef, frame: &Frame) {
        self.channel.live(chat, frame);
    }

    fn can_ask(&self, chat: &ChatRef) -> bool {
        !self.input_ended.is_cancelled() && self.channel.can_ask(chat)
    }
}

impl fmt::Debug for StdioChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioChannel")
            .field("channel", &self.channel)
            .finish_non_exhaustive()
    }
}

async fn write_line(mut output: Output, sent: Sent) -> io::Result<Output> {
    if let Sent::Text(mut line) = sent {
        line.push('\n');
        output.write_all(line.as_bytes()).await?;
        output.flush().await?;
    }
    Ok(output)
}

struct Lines {
    input: Input,
    frames: FrameReader,
    has_ended: bool,
}

fn lines(input: Input) -> impl Stream<Item = Received> + Send {
    let lines = Lines {
        input,
        frames: FrameReader::new(Framing::Lines, CHUNK, MAX_CLIENT_FRAME),
        has_ended: false,
    };
    stream::unfold(lines, |mut lines| async move {
        let received = lines.next().await?;
        Some((received, lines))
    })
}

impl Lines {
    async fn next(&mut self) -> Option<Received> {
        while !self.has_ended {
            match self.frames.next_frame() {
                Ok(Some(line)) if is_blank(&line) => {}
                Ok(Some(line)) => return Some(received(&line)),
                Ok(None) => {
                    let read = self.input.read_buf(self.frames.room(CHUNK)).await;
                    self.has_ended = matches!(read, Ok(0) | Err(_));
                }
                Err(error) => {
                    let text = format!("{error}; upload large files");
                    return Some(Received::Malformed(ClientRefusal::new("too_large", text)));
                }
            }
        }
        let rest = self.frames.take_rest()?;
        (!is_blank(&rest)).then(|| received(&rest))
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

fn received(line: &[u8]) -> Received {
    match std::str::from_utf8(line) {
        Ok(text) => Received::Text(text.to_owned()),
        Err(_) => Received::Malformed(ClientRefusal::new("bad_json", "the line is not UTF-8")),
    }
}

/// Writes standard output in a thread of its own: Tokio's would hand each line to another thread, and wait for it, twice. The
/// token is cancelled when the thread has ended: after the output is dropped, or when no one reads any more.
fn stdout() -> io::Result<(impl AsyncWrite + Send + 'static, CancellationToken)> {
    let (output, mut lines) = tokio::io::duplex(CHUNK);
    let written = CancellationToken::new();
    let (runtime, ended) = (Handle::current(), written.clone().drop_guard());
    std::thread::Builder::new()
        .name("stdout".to_owned())
        .spawn(move || {
            let _ended = ended;
            let mut chunk = Vec::with_capacity(CHUNK);
            while let Ok(1..) = runtime.block_on(lines.read_buf(&mut chunk)) {
                let mut stdout = io::stdout().lock();
                let shown = stdout.write_all(&chunk).and_then(|()| stdout.flush());
                if shown.is_err() {
                    return;
                }
                chunk.clear();
            }
        })?;
    Ok((output, written))
}

/// Reads standard input in a thread of its own: a pending read of Tokio's would keep the program from ending.
fn stdin() -> io::Result<impl AsyncRead + Send + 'static> {
    let (chunks, incoming) = mpsc::channel::<io::Result<Bytes>>(2);
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let mut chunk = vec![0; CHUNK];
            loop {
                let read = match io::stdin().lock().read(&mut chunk) {
                    Ok(0) => return,
                    Ok(count) => Ok(Bytes::copy_from_slice(
                        chunk.get(..count).unwrap_or_default(),
                    )),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let has_failed = read.is_err();
                if chunks.blocking_send(read).is_err() || has_failed {
                    return;
                }
            }
        })?;
    let incoming = stream::unfold(incoming, |mut incoming| async move {
        let chunk = incoming.recv().await?;
        Some((chunk, incoming))
    });
    Ok(StreamReader::new(Box::pin(incoming)))
}
