//! One client that speaks frames, over a WebSocket or over standard input and output.
//!
//! Two halves work at the same time: one reads frames and offers messages to the gateway, the other writes answers and
//! the frames of the chats that the client follows. Between them is a bounded queue, so a client that sends without
//! reading is not read any more.

mod reader;
mod transport;
mod writer;

use std::fmt;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{Sink, Stream, StreamExt as _};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::reader::Reader;
pub use self::transport::{ClientIdentity, ConnectionEnd, Received, Sent, Transport};
use self::writer::{Order, Progress, Writer};
use crate::client_frame::{ClientFrame, ClientRefusal, ServerFrame};
use crate::frame_channel::FrameChannel;

/// The maximum number of answers that wait to be written.
const MAX_ANSWERS: usize = 16;
/// How long a client may take to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the goodbye may take.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(5);
/// Checks an access token. It is called once. What it holds is dropped when the client has logged in or failed to. The error
/// describes for the client why it cannot log in.
pub type CheckToken =
    Box<dyn FnOnce(String) -> BoxFuture<'static, Result<LoggedIn, ClientRefusal>> + Send>;

/// A client with a token.
pub struct LoggedIn {
    /// Who it is.
    pub client: ClientIdentity,
    /// Ends when the token does not count any more. The connection then ends, too.
    pub token_ended: BoxFuture<'static, ()>,
    /// Held as long as the connection lasts, for example because it is counted.
    pub place: Option<Box<dyn Send + Sync>>,
}

impl fmt::Debug for LoggedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LoggedIn").field(&self.client).finish()
    }
}

impl From<ClientIdentity> for LoggedIn {
    /// Describes a client that needs no token.
    fn from(client: ClientIdentity) -> Self {
        Self {
            client,
            token_ended: Box::pin(pending()),
            place: None,
        }
    }
}

/// How it is known who a client is.
pub enum Login {
    /// It is known already.
    Known(LoggedIn),
    /// The client's first frame is a `hello` with a token.
    ByToken(CheckToken),
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(client) => f.debug_tuple("Known").field(client).finish(),
            Self::ByToken(_) => f.write_str("ByToken"),
        }
    }
}

/// Serves one client until it leaves, has to be disconnected, loses its token, or `stop` is cancelled. Over a pipe, a client that has
/// left is still sent the answers to its messages.
pub async fn serve(
    login: Login,
    channel: Arc<FrameChannel>,
    transport: Transport,
    incoming: impl Stream<Item = Received> + Send,
    outgoing: impl Sink<Sent> + Send,
    stop: CancellationToken,
) -> ConnectionEnd {
    let (mut incoming, mut outgoing) = (pin!(incoming), pin!(outgoing));
    let progress = Arc::new(Progress::default());
    let (orders, for_writer) = mpsc::channel(MAX_ANSWERS);
    let mut writer = Writer::new(
        transport,
        channel.hub().clone(),
        for_writer,
        Arc::clone(&progress),
    );
    let end = match log_in(login, &mut incoming).await {
        Ok((logged_in, hello)) => {
            let mut reader = Reader::new(logged_in.client, channel, transport, orders, progress);
            tokio::select! {
                end = writer.run(&mut outgoing) => end,
                end = reader.run(hello, &mut incoming, &stop) => end,
                () = logged_in.token_ended => ConnectionEnd::Unauthorized,
            }
        }
        Err(refusal) => {
            let refused = Order::Answer(ServerFrame::error(refusal, None));
            orders.send(refused).await.ok();
            ConnectionEnd::Unauthorized
        }
    };
    if end != ConnectionEnd::Left || transport == Transport::Pipe {
        let goodbye = writer.finish(end, &mut outgoing);
        // The client may not read any more, and then it does not matter.
        timeout(GOODBYE_TIMEOUT, goodbye).await.ok();
    }
    end
}

/// Returns who the client is, and its `hello` if that was needed to know it.
async fn log_in(
    login: Login,
    incoming: &mut (impl Stream<Item = Received> + Unpin),
) -> Result<(LoggedIn, Option<ClientFrame>), ClientRefusal> {
    let check = match login {
        Login::Known(known) => return Ok((known, None)),
        Login::ByToken(check) => check,
    };
    let unauthorized = |text| ClientRefusal::new("unauthorized", text);
    let first_text = async {
        loop {
            match incoming.next().await {
                Some(Received::Text(text)) => return Some(text),
                Some(Received::Alive) => {}
                Some(Received::Malformed(_) | Received::Unreadable) | None => return None,
            }
        }
    };
    let first = timeout(LOGIN_TIMEOUT, first_text).await.ok().flatten();
    let first = first.ok_or_else(|| unauthorized("no `hello` with a token arrived"))?;
    let mut hello = ClientFrame::parse(&first)?;
    let token = if let ClientFrame::Hello { token, .. } = &mut hello {
        token.take()
    } else {
        None
    };
    let token =
        token.ok_or_else(|| unauthorized("the first frame must be `hello` with `token`"))?;
    Ok((check(token).await?, Some(hello)))
}
