//! Accepts connections and reads requests, within limits.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tenterhook_channel::rate::AttemptSource;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::counted::{Counted, Counts};
use super::idle::{Activity, BusyBody, IdleConnections};
use super::state::{Peer, Place};

/// The maximum number of connections. For a further one, the oldest whose client has not shown a right token is closed.
const MAX_CONNECTIONS: usize = 400;

/// The maximum number of connections of one source whose clients have not shown a right token. All programs of this
/// machine share the loopback, and all users behind a proxy its address, so these have no limit of their own.
const MAX_OF_SOURCE: usize = 64;

/// The maximum size of the headers of a request.
const MAX_HEADERS: usize = 16 << 10;

/// The time to read the headers of a request, and the time that a connection may wait for its next request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a client may take nothing of what is sent to it.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);

/// How long to wait after the system has refused to accept a connection, for example because of too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// How long answers may take that are being given when the server stops.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves connections until `stop` is cancelled. `proxies` are the addresses that many clients share.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    proxies: &[IpAddr],
    stop: CancellationToken,
) {
    let shares = Shares::new(proxies);
    let (idle, places) = (
        IdleConnections::default(),
        Arc::new(Semaphore::new(MAX_CONNECTIONS)),
    );
    let tasks = TaskTracker::new();
    let now = CancellationToken::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &idle, &places) => accepted,
            () = stop.cancelled() => break,
        };
        let Some((stream, peer, permit)) = accepted else {
            continue;
        };
        // A connection of a source that has too many is closed.
        let Some(share) = shares.take(peer.ip()) else {
            continue;
        };
        let activity = idle.begin();
        let place = Place::new((permit, tasks.token()), share, &activity);
        let (router, stop, now) = (router.clone(), stop.clone(), now.clone());
        let tls = tls.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = serve_client(stream, tls, peer, (place, &activity), router, stop) => {}
                () = activity.closed_token().cancelled() => {}
                () = now.cancelled() => {}
            }
        });
    }
    drop(listener);
    tasks.close();
    if timeout(DRAIN, tasks.wait()).await.is_err() {
        now.cancel();
    }
}

/// Counts the connections of each source.
#[derive(Debug)]
struct Shares {
    unlimited: Vec<IpAddr>,
    open: Counts<AttemptSource>,
}

/// A connection that is counted. `None` for one of a source without a limit.
type Share = Option<Counted<AttemptSource>>;

impl Shares {
    fn new(proxies: &[IpAddr]) -> Self {
        let unlimited = proxies.iter().map(IpAddr::to_canonical);
        Self {
            unlimited: unlimited.collect(),
            open: Counts::new(MAX_OF_SOURCE),
        }
    }

    /// Counts a connection until the result is dropped. `None` if its source has too many.
    fn take(&self, peer: IpAddr) -> Option<Share> {
        let peer = peer.to_canonical();
        if peer.is_loopback() || self.unlimited.contains(&peer) {
            return Some(None);
        }
        self.open.take(peer.into()).map(Some)
    }
}

async fn accept(
    listener: &TcpListener,
    idle: &IdleConnections,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = idle.make_room(places).await?;
    if let Ok((stream, peer)) = listener.accept().await {
        return Some((stream, peer, permit));
    }
    sleep(ACCEPT_PAUSE).await;
    None
}

/// Serves a connection, over TLS if there is an acceptor.
async fn serve_client(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    peer: SocketAddr,
    place: (Place, &Arc<Activity>),
    router: Router,
    stop: CancellationToken,
) {
    // Frames are small, and each is meant to be seen at once.
    drop(stream.set_nodelay(true));
    let Some(tls) = tls else {
        return serve_connection(stream, peer, place, router, stop).await;
    };
    // A client that does not speak TLS, or does not finish, is closed.
    if let Ok(Ok(stream)) = timeout(HEADER_TIMEOUT, tls.accept(stream)).await {
        Box::pin(serve_connection(stream, peer, place, router, stop)).await;
    }
}

async fn serve_connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: SocketAddr,
    (place, activity): (Place, &Arc<Activity>),
    router: Router,
    stop: CancellationToken,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request
            .extensions_mut()
            .insert(Peer(peer.ip().to_canonical()));
        request.extensions_mut().insert(place.clone());
        let busy = activity.begin_request();
        let answer = router.call(request);
        async move {
            let answer = answer.await?;
            Ok::<_, Infallible>(answer.map(|body| BusyBody::new(body, busy)))
        }
    });
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_header_size(MAX_HEADERS);
    let connection = server.serve_connection(TokioIo::new(Patient::new(stream)), service);
    let mut connection = std::pin::pin!(connection.with_upgrades());
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = stop.cancelled() => None,
    };
    if ended.is_none() {
        connection.as_mut().graceful_shutdown();
        // A client that goes away is not an error of the server.
        drop(connection.await);
    }
}

/// A connection whose writes fail when the other end takes nothing for a while, so that a client that only pretends to
/// read does not hold a place for ever.
struct Patient<S> {
    stream: S,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    fn new(stream: S) -> Self {
        Self {
            stream,
            stalled: None,
        }
    }

    fn wait<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = &mut self.stalled;
        let timer = stalled.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wait(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.wait(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.wait(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.wait(shut, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    #[test]
    fn one_machine_cannot_take_all_places() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let shares = Shares::new(&[address("10.0.0.1")]);
        let take = |text: &str| shares.take(address(text));
        let mut held = Vec::new();
        for _ in 0..MAX_OF_SOURCE {
            held.push(take("2001:db8:1:2::1").unwrap());
        }
        assert!(take("2001:db8:1:2:ffff::9").is_none(), "the same network");
        for _ in 0..2 * MAX_OF_SOURCE {
            for shared in ["127.0.0.1", "::1", "::ffff:10.0.0.1"] {
                held.push(take(shared).unwrap());
            }
        }
        assert!(take("192.0.2.1").is_some());
        held.remove(0);
        held.push(take("2001:db8:1:2::1").unwrap());
        assert!(take("2001:db8:1:2::1").is_none());
        held.clear();
        assert!(take("2001:db8:1:2::1").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_fails_whose_other_end_reads_nothing() {
        let (_silent, ours) = tokio::io::duplex(10);
        let error = Patient::new(ours).write_all(&[0; 11]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
