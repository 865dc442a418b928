//! Connections without a request, which give way when all places are taken.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The connections without a request. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct IdleConnections(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Wakes the server, which may wait for a connection that it can close.
    added: Notify,
}

/// The connections by the order in which they became idle.
#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    connections: BTreeMap<u64, CancellationToken>,
}

/// What a connection does: it waits for a request, or is busy with one.
#[derive(Debug)]
pub(super) struct Activity {
    idle: IdleConnections,
    closed: CancellationToken,
    /// Its place among those that wait.
    number: Mutex<Option<u64>>,
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
            number: Mutex::default(),
        };
        activity.note_idle();
        Arc::new(activity)
    }

    /// Waits for a free place. Meanwhile connections that wait for a request are closed, the oldest first.
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
    /// Ends when the connection has to give way.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Notes that a request has arrived.
    pub(super) fn begin_request(self: &Arc<Self>) -> Busy {
        self.note_busy();
        Busy(Arc::clone(self))
    }

    fn note_idle(&self) {
        let mut waiting = self.idle.0.waiting.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.connections.insert(number, self.closed.clone());
        drop(waiting);
        *self.number.lock() = Some(number);
        self.idle.0.added.notify_one();
    }

    fn note_busy(&self) {
        if let Some(number) = self.number.lock().take() {
            self.idle.0.waiting.lock().connections.remove(&number);
        }
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.note_busy();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.note_idle();
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

    #[tokio::test]
    async fn the_oldest_connection_without_a_request_gives_way() {
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
        // Nothing waits for a request: room is made as soon as an answer is sent.
        let _second = held[1].1.begin_request();
        let _third = held[2].1.begin_request();
        let mut room = Box::pin(idle.make_room(&places));
        assert!(futures_util::poll!(&mut room).is_pending());
        drop(busy);
        assert!(futures_util::poll!(&mut room).is_pending());
        assert!(held[0].1.closed.is_cancelled());
        drop(held.remove(0));
        assert!(room.await.is_some());
        assert!(idle.0.waiting.lock().connections.is_empty());
    }
}
