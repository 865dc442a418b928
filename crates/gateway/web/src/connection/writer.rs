//! The half of a connection that writes: answers, and the frames of the chats that the client follows.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream, SelectAll};
use futures_util::{Sink, SinkExt as _, StreamExt as _};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::{Instant, Interval, interval_at, timeout};

use super::transport::{ConnectionEnd, Sent, Transport};
use crate::client_chat::ClientChatId;
use crate::client_frame::{ClientRefusal, ServerFrame, encode_chat_frame};
use crate::hub::{Followed, Follower, Hub};
use tenterhook_channel::chat::ChatRef;
use tenterhook_channel::store::StoreError;

/// What the other half wants written.
#[expect(clippy::large_enum_variant, reason = "few exist at a time")]
pub(super) enum Order {
    Answer(ServerFrame),
    Follow(FollowedChat, Follower),
    /// Earlier frames of a chat.
    History {
        of: FollowedChat,
        before: u64,
        limit: usize,
    },
}

/// A chat that the client follows.
#[derive(Debug, Clone)]
pub(super) struct FollowedChat {
    pub(super) id: ClientChatId,
    pub(super) chat: ChatRef,
}

/// The numbers of the last durable frames that were written, by chat.
#[derive(Debug, Default)]
pub(super) struct Progress {
    written: Mutex<BTreeMap<ChatRef, u64>>,
    changed: Notify,
}

impl Progress {
    pub(super) fn note(&self, chat: &ChatRef, seq: u64) {
        self.written.lock().insert(chat.clone(), seq);
        self.changed.notify_waiters();
    }

    pub(super) fn written(&self, chat: &ChatRef) -> Option<u64> {
        self.written.lock().get(chat).copied()
    }

    pub(super) fn all(&self) -> Vec<(ChatRef, u64)> {
        let written = self.written.lock();
        let pairs = written.iter().map(|(chat, seq)| (chat.clone(), *seq));
        pairs.collect()
    }

    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

type Event = (FollowedChat, Option<Followed>);

/// Writes one connection.
pub(super) struct Writer {
    transport: Transport,
    hub: Hub,
    orders: mpsc::Receiver<Order>,
    followed: SelectAll<BoxStream<'static, Event>>,
    /// One chat after the other reads stored frames.
    catching_up: Arc<Semaphore>,
    progress: Arc<Progress>,
}

impl Writer {
    pub(super) fn new(
        transport: Transport,
        hub: Hub,
        orders: mpsc::Receiver<Order>,
        progress: Arc<Progress>,
    ) -> Self {
        Self {
            transport,
            hub,
            orders,
            followed: SelectAll::new(),
            catching_up: Arc::new(Semaphore::new(1)),
            progress,
        }
    }

    /// Writes until the client has left or is too slow.
    pub(super) async fn run(&mut self, outgoing: &mut (impl Sink<Sent> + Unpin)) -> ConnectionEnd {
        let mut pings = self
            .transport
            .ping_interval()
            .map(|interval| interval_at(Instant::now() + interval, interval));
        loop {
            let written = tokio::select! {
                biased;
                Some(order) = self.orders.recv() => self.carry_out(order, outgoing).await,
                Some((chat, event)) = self.followed.next() => {
                    self.show(chat, event, outgoing).await
                }
                () = tick(pings.as_mut()) => write(self.transport, outgoing, Sent::Ping).await,
            };
            if let Err(end) = written {
                return end;
            }
        }
    }

    /// Writes the answers that are waiting, and says goodbye.
    pub(super) async fn finish(
        &mut self,
        end: ConnectionEnd,
        outgoing: &mut (impl Sink<Sent> + Unpin),
    ) -> Result<(), ConnectionEnd> {
        while let Ok(order) = self.orders.try_recv() {
            self.carry_out(order, outgoing).await?;
        }
        let (reason, _) = end.word_and_code();
        let bye = ServerFrame::Bye { reason }.encode();
        write(self.transport, outgoing, Sent::Text(bye)).await
    }

    async fn carry_out(
        &mut self,
        order: Order,
        outgoing: &mut (impl Sink<Sent> + Unpin),
    ) -> Result<(), ConnectionEnd> {
        match order {
            Order::Answer(answer) => {
                write(self.transport, outgoing, Sent::Text(answer.encode())).await
            }
            Order::Follow(chat, follower) => {
                self.follow(chat, follower);
                Ok(())
            }
            Order::History { of, before, limit } => {
                let page = self.hub.store().frames_before(&of.chat, before, limit);
                let page = page.await;
                let history = match page {
                    Ok(page) => ServerFrame::History {
                        chat: of.id,
                        frames: page.frames,
                        oldest: page.oldest,
                    },
                    Err(error) => ServerFrame::error(unreadable(&error), Some(of.id)),
                };
                write(self.transport, outgoing, Sent::Text(history.encode())).await
            }
        }
    }

    fn follow(&mut self, chat: FollowedChat, mut follower: Follower) {
        follower.take_turns(Arc::clone(&self.catching_up));
        let events = stream::unfold(Some(follower), move |follower| {
            let chat = chat.clone();
            async move {
                let mut follower = follower?;
                let event = follower.next().await;
                let rest = event.is_some().then_some(follower);
                Some(((chat, event), rest))
            }
        });
        self.followed.push(events.boxed());
    }

    async fn show(
        &mut self,
        chat: FollowedChat,
        event: Option<Followed>,
        outgoing: &mut (impl Sink<Sent> + Unpin),
    ) -> Result<(), ConnectionEnd> {
        let (text, seq) = match event {
            Some(Followed::Frame(frame)) => (encode_chat_frame(&chat.id, &frame), frame.seq),
            Some(Followed::Gap { from, to }) => {
                let chat = chat.id.clone();
                (ServerFrame::Gap { chat, from, to }.encode(), Some(to))
            }
            None if self.transport == Transport::Socket => return Err(ConnectionEnd::Slow),
            None => {
                let after = self.progress.written(&chat.chat);
                let again = self.hub.follow(chat.chat.clone(), after);
                self.follow(chat, again);
                return Ok(());
            }
        };
        write(self.transport, outgoing, Sent::Text(text)).await?;
        if let Some(seq) = seq {
            self.progress.note(&chat.chat, seq);
        }
        Ok(())
    }
}

/// The refusal of a request for something that the store cannot read.
pub(super) fn unreadable(error: &StoreError) -> ClientRefusal {
    ClientRefusal::new("store", format!("the store cannot be read: {error}"))
}

async fn tick(interval: Option<&mut Interval>) {
    match interval {
        Some(interval) => {
            interval.tick().await;
        }
        None => pending().await,
    }
}

/// Writes something, unless the client takes too long.
pub(super) async fn write(
    transport: Transport,
    outgoing: &mut (impl Sink<Sent> + Unpin),
    sent: Sent,
) -> Result<(), ConnectionEnd> {
    let writing = outgoing.send(sent);
    let written = match transport.write_timeout() {
        Some(limit) => timeout(limit, writing)
            .await
            .map_err(|_| ConnectionEnd::Slow)?,
        None => writing.await,
    };
    written.map_err(|_| ConnectionEnd::Left)
}
