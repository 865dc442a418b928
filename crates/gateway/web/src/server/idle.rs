//! Connections that give way when all places are taken: first those without a request, then those whose clients have not
//! shown a right token. However slowly such clients send and read, they hold up no one who has one.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::client_places::ClientPlace;

/// The connections that can give way. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct IdleConnections(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Wakes the server, which may wait for a connection that it can close.
    added: Notify,
}

/// What a connection does for which it can be closed, in the order in which connections are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pastime {
    /// It waits for a request.
    Idle,
    /// It has a request of a client that is not known.
    Unknown,
}

/// The connections by what they do and since when.
#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    connections: BTreeMap<(Pastime, u64), CancellationToken>,
}

/// What a connection does.
#[derive(Debug)]
pub(super) struct Activity {
    idle: IdleConnections,
    closed: CancellationToken,
    state: Mutex<ActivityState>,
}

#[derive(Debug, Default)]
struct ActivityState {
    /// Its place among those that can give way.
    place: Option<(Pastime, u64)>,
    /// The client whose request is answered, if it is known.
    client: Option<ClientPlace>,
}

/// A request that is being answered. The connection is idle again when it is dropped.
#[derive(Debug)]
pub(super) struct Busy(Arc<Activity>);

impl IdleConnections {
    /// Notes a new connection, which has sent nothing yet.
    pub(super) fn begin(&self) -> Arc<Activity> {
        let activity = Activity {
            idle: self.clone(),
            closed: CancellationToken::new(),
            state: Mutex::default(),
        };
        activity.note(Some(Pastime::Idle), None);
        Arc::new(activity)
    }

    /// Waits for a free place. Meanwhile connections that can give way are closed, the oldest first.
    pub(super) async fn make_room(&self, places: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(places).try_acquire_owned() {
            return Some(permit);
        }
        let mut acquired = Box::pin(Arc::clone(places).acquire_owned());
        loop {
            let added = self.0.added.notified();
            if self.close_oldest() {
                return acquired.await.ok();
            }
            tokio::select! {
                permit = &mut acquired => return permit.ok(),
                () = added => {}
            }
        }
    }

    fn close_oldest(&self) -> bool {
        let oldest = self.0.waiting.lock().connections.pop_first();
        match oldest {
            Some((_, closed)) => {
                closed.cancel();
                true
            }
            None => false,
        }
    }
}

impl Activity {
    /// Returns what is cancelled when the connection has to give way.
    pub(super) fn closed_token(&self) -> &CancellationToken {
        &self.closed
    }

    /// Notes that a request has arrived.
    pub(super) fn begin_request(self: &Arc<Self>) -> Busy {
        self.note(Some(Pastime::Unknown), None);
        Busy(Arc::clone(self))
    }

    /// Notes that the client of the request has shown a right token. The connection does not give way until the request
    /// is answered.
    pub(super) fn identify(&self, client: ClientPlace) {
        self.note(None, Some(client));
    }

    fn note(&self, pastime: Option<Pastime>, client: Option<ClientPlace>) {
        let mut state = self.state.lock();
        let mut waiting = self.idle.0.waiting.lock();
        if let Some(place) = state.place.take() {
            waiting.connections.remove(&place);
        }
        if let Some(pastime) = pastime {
            let place = (pastime, waiting.next);
            waiting.next += 1;
            waiting.connections.insert(place, self.closed.clone());
            state.place = Some(place);
            self.idle.0.added.notify_one();
        }
        state.client = client;
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.note(None, None);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.note(Some(Pastime::Idle), None);
    }
}

/// The body of an answer. Its connection is busy until it is sent.
pub(super) struct BusyBody {
    body: Body,
    _busy: Busy,
}

impl BusyBody {
    pub(super) fn new(body: Body, busy: Busy) -> Self {
        Self { body, _busy: busy }
    }
}

impl HttpBody for BusyBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::client_places::ClientPlaces;
    use tenterhook_channel::token::Token;

    fn client() -> ClientPlace {
        let token = Token {
            id: "1".to_owned(),
            name: "phone".to_owned(),
            user: "ada".to_owned(),
            scopes: Vec::new(),
            created: jiff::Timestamp::UNIX_EPOCH,
            expires: None,
            last_used: None,
            cookie_port: None,
        };
        ClientPlaces::default().take(&token).unwrap()
    }

    #[tokio::test]
    async fn the_oldest_connection_without_a_request_gives_way_and_then_one_without_a_token() {
        let (idle, places) = (IdleConnections::default(), Arc::new(Semaphore::new(3)));
        let mut held = Vec::new();
        for _ in 0..3 {
            let permit = idle.make_room(&places).await.unwrap();
            held.push((permit, idle.begin()));
        }
        // The oldest one works, so the second one is the oldest that waits.
        let busy = held[0].1.begin_request();
        {
            let mut room = Box::pin(idle.make_room(&places));
            assert!(futures_util::poll!(&mut room).is_pending());
            let closed: Vec<bool> = held
                .iter()
                .map(|(_, one)| one.closed.is_cancelled())
                .collect();
            assert_eq!(closed, [false, true, false]);
            drop(held.remove(1));
            held.push((room.await.unwrap(), idle.begin()));
        }
        // Each has a request. The clients of the first two are known, so the third one gives way.
        held[0].1.identify(client());
        let second = held[1].1.begin_request();
        held[1].1.identify(client());
        let third = held[2].1.begin_request();
        let mut room = Box::pin(idle.make_room(&places));
        assert!(futures_util::poll!(&mut room).is_pending());
        assert!(held[2].1.closed.is_cancelled());
        drop((third, held.remove(2)));
        let permit = room.await.unwrap();
        // Room is made as soon as an answer is sent to a client that is known.
        let mut room = Box::pin(idle.make_room(&places));
        assert!(futures_util::poll!(&mut room).is_pending());
        drop(busy);
        assert!(futures_util::poll!(&mut room).is_pending());
        assert!(held[0].1.closed.is_cancelled());
        drop(held.remove(0));
        assert!(room.await.is_some());
        drop((second, held, permit));
        assert!(idle.0.waiting.lock().connections.is_empty());
    }
}
