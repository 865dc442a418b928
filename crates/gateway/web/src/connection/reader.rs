//! The half of a connection that reads: it carries out the client's frames.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use tenterhook_protocol::event::SenderRole;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::transport::{ClientIdentity, ConnectionEnd, Received, Transport};
use super::writer::{FollowedChat, Order, Progress, unreadable};
use crate::client_chat::{ClientChatId, place_of};
use crate::client_frame::{
    ClientChat, ClientFrame, ClientMessage, ClientRefusal, PROTOCOL, ServerFrame,
};
use crate::frame_channel::{FrameChannel, sender};
use tenterhook_channel::channel::{Accepted, Inlet};
use tenterhook_channel::chat::ChatRef;
use tenterhook_channel::message::Control;
use tenterhook_channel::store::StoreError;

/// The maximum number of chats that a client follows.
const MAX_FOLLOWED: usize = 1024;
/// The maximum number of chats in `ready`.
const MAX_LISTED: usize = 200;
/// The maximum number of frames in an answer to `history`, and the default.
const MAX_HISTORY: usize = 200;
const DEFAULT_HISTORY: usize = 50;
/// How often it is checked whether the gateway is done with what came through a pipe.
const SETTLE_INTERVAL: Duration = Duration::from_millis(100);
/// A pipe is not read further while this many of its messages wait. It is half of what a conversation holds.
const MAX_UNFINISHED: usize = 32;
/// How many messages of a connection are recorded at the same time. They share waits for the disk.
const MAX_OFFERS: usize = 32;
/// How long the client of a pipe may read nothing before the rest is not written any more.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The half of a connection that reads.
pub(super) struct Reader {
    client: ClientIdentity,
    channel: Arc<FrameChannel>,
    transport: Transport,
    orders: mpsc::Sender<Order>,
    progress: Arc<Progress>,
    followed: BTreeSet<ClientChatId>,
    has_hello: bool,
    /// How many messages came through a pipe since few were known to wait.
    offered: usize,
    /// The messages that are being recorded. Each chat has at most one of them, so that its order is kept.
    offers: JoinSet<Offer>,
    offering: BTreeSet<ClientChatId>,
}

/// A message that was offered.
struct Offer {
    chat: ClientChatId,
    message_id: String,
    result: Result<Accepted, ClientRefusal>,
}

impl Reader {
    pub(super) fn new(
        client: ClientIdentity,
        channel: Arc<FrameChannel>,
        transport: Transport,
        orders: mpsc::Sender<Order>,
        progress: Arc<Progress>,
    ) -> Self {
        Self {
            client,
            channel,
            transport,
            orders,
            progress,
            followed: BTreeSet::new(),
            has_hello: false,
            offered: 0,
            offers: JoinSet::new(),
            offering: BTreeSet::new(),
        }
    }

    /// Reads until the client leaves or `stop` is cancelled. Over a pipe, it then waits until the client has everything.
    pub(super) async fn run(
        &mut self,
        hello: Option<ClientFrame>,
        incoming: &mut (impl Stream<Item = Received> + Unpin),
        stop: &CancellationToken,
    ) -> ConnectionEnd {
        let (is_pipe, read) = (
            self.transport == Transport::Pipe,
            self.read(hello, incoming),
        );
        let end = tokio::select! {
            end = read => end,
            () = stop.cancelled() => ConnectionEnd::Stopped,
        };
        if is_pipe {
            tokio::select! {
                () = self.wait_until_finished(1) => {}
                () = stop.cancelled() => {}
            }
            self.wait_until_written().await;
        }
        end
    }

    async fn read(
        &mut self,
        hello: Option<ClientFrame>,
        incoming: &mut (impl Stream<Item = Received> + Unpin),
    ) -> ConnectionEnd {
        if let Some(hello) = hello {
            self.handle(hello).await;
        }
        let end = loop {
            let next = async {
                match self.transport.max_silence() {
                    Some(limit) => timeout(limit, incoming.next()).await,
                    None => Ok(incoming.next().await),
                }
            };
            let received = tokio::select! {
                biased;
                Some(offer) = next_offer(&mut self.offers) => {
                    self.answer_offer(offer).await;
                    continue;
                }
                received = next => received,
            };
            match received {
                Ok(Some(Received::Text(text))) => match ClientFrame::parse(&text) {
                    Ok(frame) => self.handle(frame).await,
                    Err(refusal) => self.answer(ServerFrame::error(refusal, None)).await,
                },
                Ok(Some(Received::Malformed(refusal))) => {
                    self.answer(ServerFrame::error(refusal, None)).await;
                }
                Ok(Some(Received::Alive)) => {}
                Ok(Some(Received::Unreadable)) => break ConnectionEnd::Unreadable,
                Ok(None) => break ConnectionEnd::Left,
                Err(_) => break ConnectionEnd::Idle,
            }
        };
        self.finish_offers().await;
        end
    }

    async fn handle(&mut self, frame: ClientFrame) {
        let user = self.client.user.clone();
        if !matches!(frame, ClientFrame::Message(_)) {
            // A request to cancel must find the messages that were sent before it.
            self.finish_offers().await;
        }
        let (chat, handled) = match frame {
            ClientFrame::Hello {
                protocol, chats, ..
            } => (None, self.greet(protocol, chats).await),
            ClientFrame::Message(message) => {
                let (chat, id) = (message.chat.clone(), message.message_id.clone());
                let offered = self.offer(message).await;
                (
                    Some(chat),
                    offered.map_err(|refusal| refusal.of_message(&id)),
                )
            }
            ClientFrame::Cancel { chat } => {
                let control = Control::Cancel {
                    chat: chat.chat_of(self.channel.id(), &user),
                    sender: sender(&user),
                };
                (Some(chat.clone()), self.control(chat, control).await)
            }
            ClientFrame::Approve {
                nonce,
                choice,
                reason,
            } => {
                let build = |nonce, chat| Control::Approval {
                    nonce,
                    choice,
                    reason,
                    chat,
                    sender: sender(&user),
                };
                (None, self.resolve(nonce, build).await)
            }
            ClientFrame::Answer { nonce, text } => {
                let build = |nonce, chat| Control::Answer {
                    nonce,
                    text,
                    chat,
                    sender: sender(&user),
                };
                (None, self.resolve(nonce, build).await)
            }
            ClientFrame::History {
                chat,
                before,
                limit,
            } => {
                self.show_history(chat, before, limit).await;
                (None, Ok(()))
            }
            ClientFrame::Ack { .. } => (None, Ok(())),
            ClientFrame::Ping => {
                self.answer(ServerFrame::Pong).await;
                (None, Ok(()))
            }
        };
        if let Err(refusal) = handled {
            self.answer(ServerFrame::error(refusal, chat)).await;
        }
    }

    async fn greet(
        &mut self,
        protocol: u32,
        chats: BTreeMap<ClientChatId, u64>,
    ) -> Result<(), ClientRefusal> {
        if protocol != PROTOCOL {
            let text = format!("the protocol {protocol} is unknown; expected {PROTOCOL}");
            return Err(ClientRefusal::new("unknown_protocol", text));
        }
        if self.has_hello {
            return Err(ClientRefusal::new("bad_frame", "`hello` was sent already"));
        }
        self.has_hello = true;
        let (channel, user) = (self.channel.id(), &self.client.user);
        let store = self.channel.store();
        let known = store.chats_of(&place_of(channel, user), MAX_LISTED).await;
        let own = known
            .map_err(|error| unreadable(&error))?
            .into_iter()
            .filter_map(|known| {
                let id = ClientChatId::of(&known.chat, channel, user)?;
                Some(ClientChat {
                    id,
                    title: known.title,
                    last_seq: known.last_seq,
                    at: known.at,
                })
            });
        let ready = ServerFrame::Ready {
            protocol: PROTOCOL,
            user: user.clone(),
            role: self.client.role,
            chats: own.collect(),
            server_version: env!("CARGO_PKG_VERSION"),
        };
        self.answer(ready).await;
        for (id, last_seq) in chats {
            self.follow(id, Some(last_seq)).await?;
        }
        Ok(())
    }

    /// Follows a chat, unless the client does already. `None` begins after the last durable frame.
    async fn follow(&mut self, id: ClientChatId, after: Option<u64>) -> Result<(), ClientRefusal> {
        if self.followed.contains(&id) {
            return Ok(());
        }
        if self.followed.len() >= MAX_FOLLOWED {
            let text = format!("a connection follows at most {MAX_FOLLOWED} chats; open another");
            return Err(ClientRefusal::new("too_many_chats", text));
        }
        let chat = id.chat_of(self.channel.id(), &self.client.user);
        let after = match after {
            Some(after) => after,
            None => self
                .last_seq(&chat)
                .await
                .map_err(|error| unreadable(&error))?,
        };
        let follower = self.channel.hub().follow(chat.clone(), Some(after));
        self.progress.note(&chat, after);
        self.followed.insert(id.clone());
        self.order(Order::Follow(FollowedChat { id, chat }, follower))
            .await;
        Ok(())
    }

    async fn last_seq(&self, chat: &ChatRef) -> Result<u64, StoreError> {
        let page = self.channel.store().frames_before(chat, u64::MAX, 1).await;
        Ok(page?.frames.last().and_then(|last| last.seq).unwrap_or(0))
    }

    /// Begins to offer a message. Further ones can be read while it is recorded.
    async fn offer(&mut self, message: ClientMessage) -> Result<(), ClientRefusal> {
        let (chat, message_id) = (message.chat.clone(), message.message_id.clone());
        let inlet = self.inlet().await?;
        // Before the message is offered, so that the first frames of its turn are not missed.
        self.follow(chat.clone(), None).await?;
        if self.transport == Transport::Pipe {
            self.make_room().await;
        }
        while self.offers.len() >= MAX_OFFERS || self.offering.contains(&chat) {
            let Some(offer) = next_offer(&mut self.offers).await else {
                break;
            };
            self.answer_offer(offer).await;
        }
        self.offering.insert(chat.clone());
        let (channel, user) = (Arc::clone(&self.channel), self.client.user.clone());
        self.offers.spawn(async move {
            Offer {
                result: channel.offer(&user, message, &inlet).await,
                chat,
                message_id,
            }
        });
        Ok(())
    }

    async fn finish_offers(&mut self) {
        while let Some(offer) = next_offer(&mut self.offers).await {
            self.answer_offer(offer).await;
        }
    }

    async fn answer_offer(&mut self, offer: Offer) {
        let Offer {
            chat,
            message_id,
            result,
        } = offer;
        self.offering.remove(&chat);
        let duplicate = result == Ok(Accepted::Duplicate);
        let refused = match result {
            Ok(Accepted::Recorded | Accepted::Duplicate) => None,
            Ok(Accepted::Refused { code, notice }) => {
                let text = notice.unwrap_or_else(|| "the message was not accepted".to_owned());
                Some(ClientRefusal::new(code, text))
            }
            Ok(Accepted::Failed { cause }) => {
                let text = format!("the message could not be stored: {cause}; send it again later");
                Some(ClientRefusal::new("not_stored", text))
            }
            Err(refusal) => Some(refusal),
        };
        let answer = match refused {
            Some(refusal) => ServerFrame::error(refusal.of_message(&message_id), Some(chat)),
            None => ServerFrame::Accepted {
                chat,
                message_id,
                duplicate,
            },
        };
        self.answer(answer).await;
    }

    /// Returns where messages go. What comes through a pipe waits until the channel runs.
    async fn inlet(&self) -> Result<Inlet, ClientRefusal> {
        let inlet = match self.transport {
            Transport::Socket => self.channel.inlet(),
            Transport::Pipe => self.channel.wait_for_inlet().await,
        };
        let text = "the gateway takes no messages now; send it again later";
        inlet
            .map(|inlet| inlet.for_role(self.client.role))
            .ok_or_else(|| ClientRefusal::new("unavailable", text))
    }

    async fn control(&self, chat: ClientChatId, control: Control) -> Result<(), ClientRefusal> {
        if let Some(text) = self.inlet().await?.control(control).await {
            self.answer(ServerFrame::Notice { chat, text }).await;
        }
        Ok(())
    }

    /// Answers a question of a chat that the client follows.
    async fn resolve(
        &self,
        nonce: String,
        build: impl FnOnce(String, ChatRef) -> Control,
    ) -> Result<(), ClientRefusal> {
        if self.client.role != SenderRole::Owner {
            let text = "only owners answer questions; use a token with the scope `approve`";
            return Err(ClientRefusal::new("forbidden", text));
        }
        let (channel, user) = (self.channel.id(), &self.client.user);
        let asking = self.followed.iter().find_map(|id| {
            let chat = id.chat_of(channel, user);
            let is_open = self.channel.hub().asks(&chat, &nonce);
            is_open.then(|| (id.clone(), chat))
        });
        let Some((id, chat)) = asking else {
            let text = "the question is over, or was not asked in a chat that you follow";
            return Err(ClientRefusal::new("unknown_question", text));
        };
        self.control(id, build(nonce, chat)).await
    }

    /// Orders earlier frames. They are read when they are written, so that a client that does not read holds none.
    async fn show_history(&self, id: ClientChatId, before: Option<u64>, limit: Option<usize>) {
        let chat = id.chat_of(self.channel.id(), &self.client.user);
        self.order(Order::History {
            of: FollowedChat { id, chat },
            before: before.unwrap_or(u64::MAX),
            limit: limit.unwrap_or(DEFAULT_HISTORY).clamp(1, MAX_HISTORY),
        })
        .await;
    }

    async fn answer(&self, answer: ServerFrame) {
        self.order(Order::Answer(answer)).await;
    }

    async fn order(&self, order: Order) {
        // The other half is gone only if the connection ends.
        self.orders.send(order).await.ok();
    }

    /// Waits if many messages of the pipe wait already, so that the pipe fills up and its writer waits.
    async fn make_room(&mut self) {
        if self.offered >= MAX_UNFINISHED {
            self.wait_until_finished(MAX_UNFINISHED).await;
            self.offered = 0;
        }
        self.offered += 1;
    }

    /// Waits until fewer than `few` messages of the channel wait or are being answered.
    async fn wait_until_finished(&self, few: usize) {
        loop {
            let Ok(unfinished) = self.channel.store().unfinished().await else {
                return;
            };
            let own = |id| id == self.channel.id();
            let own = unfinished
                .iter()
                .filter(|record| own(&record.message.chat.channel));
            if own.count() < few {
                return;
            }
            self.wait_for_change().await;
        }
    }

    /// Waits until the last durable frames of all followed chats were written, as long as the client reads.
    async fn wait_until_written(&self) {
        let mut written = self.progress.all();
        let mut since = Instant::now();
        for (chat, _) in self.progress.all() {
            while let Ok(last) = self.last_seq(&chat).await {
                if self.progress.written(&chat) >= Some(last) {
                    break;
                }
                self.wait_for_change().await;
                let now_written = self.progress.all();
                if now_written != written {
                    (written, since) = (now_written, Instant::now());
                } else if since.elapsed() >= STOP_TIMEOUT {
                    return;
                }
            }
        }
    }

    async fn wait_for_change(&self) {
        tokio::select! {
            () = self.progress.changed() => {}
            () = sleep(SETTLE_INTERVAL) => {}
        }
    }
}

/// Returns the next message that was recorded or refused. A panic ends the connection, as one of the reader would.
async fn next_offer(offers: &mut JoinSet<Offer>) -> Option<Offer> {
    match offers.join_next().await?.map_err(JoinError::try_into_panic) {
        Ok(offer) => Some(offer),
        Err(Ok(panic)) => resume_unwind(panic),
        Err(Err(_cancelled)) => None,
    }
}
