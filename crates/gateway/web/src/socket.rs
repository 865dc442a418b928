//! A WebSocket that carries a connection.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::client_frame::{ClientRefusal, MAX_CLIENT_FRAME};
use crate::connection::{ConnectionEnd, Login, Received, Sent, Transport, serve};
use crate::frame_channel::FrameChannel;

/// The subprotocol that clients request.
pub const SUBPROTOCOL: &str = "tenterhook.v1";
/// The maximum size of a message that is read. The connection is lost if one is larger, so those that are somewhat too
/// large are read and get an error.
const MAX_READ: usize = 2 * MAX_CLIENT_FRAME;
/// How long the end of a connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Sets the subprotocol and the limits of a WebSocket. The server calls it for each upgrade.
pub fn configure(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    upgrade
        .protocols([SUBPROTOCOL])
        .max_message_size(MAX_READ)
        .max_frame_size(MAX_READ)
}

/// Serves a client until it leaves, has to be disconnected, or `stop` is cancelled.
pub async fn serve_socket(
    socket: WebSocket,
    login: Login,
    channel: Arc<FrameChannel>,
    stop: CancellationToken,
) -> ConnectionEnd {
    let (mut sink, stream) = socket.split();
    let incoming = stream.map(|message| message.map_or(Received::Unreadable, received));
    let outgoing = (&mut sink).with(|sent| ready(Ok::<_, axum::Error>(message(sent))));
    let end = serve(login, channel, Transport::Socket, incoming, outgoing, stop).await;
    let (reason, code) = end.word_and_code();
    let close = Message::Close(Some(CloseFrame {
        code,
        reason: reason.into(),
    }));
    // A client that has left or does not read gets no goodbye.
    timeout(CLOSE_TIMEOUT, sink.send(close)).await.ok();
    end
}

fn received(message: Message) -> Received {
    match message {
        Message::Text(text) => Received::Text(text.as_str().to_owned()),
        Message::Binary(_) => {
            let text = "frames are sent as text, not as binary data";
            Received::Malformed(ClientRefusal::new("bad_frame", text))
        }
        // The server answers pings and closing by itself, and the stream ends after a close.
        Message::Ping(_) | Message::Pong(_) | Message::Close(_) => Received::Alive,
    }
}

fn message(sent: Sent) -> Message {
    match sent {
        Sent::Text(text) => Message::Text(text.into()),
        Sent::Ping => Message::Ping(Bytes::new()),
    }
}
