//! A gateway in this process, with a channel in memory and an agent that does nothing. Its messages are durable.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{self, BoxFuture};
use jiff::Timestamp;
use tenterhook_agent::{Agent, CancellationToken, Session};
use tenterhook_channel::channel::{
    Accepted, Channel, ChannelCapabilities, ChannelError, DeliveryError, Inlet, MediaSink,
    Outgoing, Receipt,
};
use tenterhook_channel::chat::{ChannelId, ChatRef, Sender};
use tenterhook_channel::frame::Frame;
use tenterhook_channel::message::{IncomingMessage, IncomingPart, MediaRef};
use tenterhook_channel::settings::{BusyMode, ChannelKind, ChannelSettings, Settings, TurnLimits};
use tenterhook_engine::event::UserInput;
use tenterhook_engine::{Effect, Engine};
use tenterhook_gateway::conversations::profile::{OpenRequest, Profile};
use tenterhook_gateway::gateway::{Gateway, GatewayConfig, GatewayEnd, OpeningState};
use tenterhook_protocol::SessionId;
use tenterhook_protocol::event::SenderRole;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::child;

/// How many messages of a chat may wait for their answers.
const WINDOW: usize = 32;

/// How long conversations stay in memory without work, and longer.
const IDLE: Duration = Duration::from_mins(12);

/// How often many chats write and become idle. The first half of the times fills what is used again.
const WAVES: usize = 6;

/// How long the end of conversations may take.
const ENDING: Duration = Duration::from_secs(2);

/// Opens agents whose input a hook handles, so that no model is asked and no session is kept.
struct NullProfile {
    engine: Engine,
    folder: std::path::PathBuf,
}

impl Profile for NullProfile {
    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn open(&self, request: OpenRequest) -> BoxFuture<'_, Result<Agent, String>> {
        let mut config = child::config(&self.folder);
        config.session = Some(Session::new(SessionId::generate()));
        config.frontend = request.frontend;
        let built = config.build(self.engine.clone());
        Box::pin(future::ready(built.map_err(|error| error.to_string())))
    }
}

/// A channel whose messages come from this process, and whose frames end in it.
struct MemoryChannel {
    inlet: watch::Sender<Option<Inlet>>,
    /// One permit for each message of a chat that may be sent.
    windows: Vec<Semaphore>,
    /// One permit for each message that is done.
    done: Semaphore,
}

fn message(channel: &ChannelId, chat: usize, number: usize) -> IncomingMessage {
    let id = format!("{chat}-{number}");
    IncomingMessage {
        dedupe: id.clone(),
        message_id: id,
        chat: ChatRef {
            channel: channel.clone(),
            chat: chat.to_string(),
            thread: None,
        },
        sender: Sender {
            id: "local".to_owned(),
            name: None,
            is_bot: false,
        },
        is_direct: true,
        is_addressed: true,
        parts: vec![IncomingPart::Text {
            text: "hi".to_owned(),
        }],
        reply_to: None,
        at: Timestamp::now(),
    }
}

impl Channel for MemoryChannel {
    fn capabilities(&self) -> ChannelCapabilities {
        ChannelCapabilities {
            speaks_frames: true,
            max_file: 0,
            audio_formats: &[],
        }
    }

    fn run(
        &self,
        inlet: Inlet,
        stop: CancellationToken,
    ) -> BoxFuture<'_, Result<(), ChannelError>> {
        let inlet = inlet.for_role(SenderRole::Owner);
        self.inlet.send_replace(Some(inlet));
        Box::pin(async move {
            stop.cancelled().await;
            Ok(())
        })
    }

    fn fetch<'a>(
        &'a self,
        _: &'a MediaRef,
        _: &'a mut MediaSink,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(future::ready(Ok(())))
    }

    fn send<'a>(&'a self, outgoing: &'a Outgoing) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        if matches!(outgoing.frame.frame, Frame::Done { .. }) {
            let chat: usize = outgoing.chat.chat.parse().unwrap();
            self.windows[chat].add_permits(1);
            self.done.add_permits(1);
        }
        Box::pin(future::ready(Ok(Receipt::default())))
    }

    fn live(&self, _: &ChatRef, _: &Frame) {}
}

impl MemoryChannel {
    /// Sends messages to each of some chats. Returns after all turns have ended.
    async fn exchange(self: &Arc<Self>, chats: Range<usize>, messages: usize) {
        let mut inlet = self.inlet.subscribe();
        let inlet = inlet.wait_for(Option::is_some).await.unwrap().clone();
        let inlet = inlet.unwrap();
        let all = u32::try_from(chats.len() * messages).unwrap();
        for chat in chats {
            let (channel, inlet) = (Arc::clone(self), inlet.clone());
            tokio::spawn(async move {
                for number in 0..messages {
                    channel.windows[chat].acquire().await.unwrap().forget();
                    let offered = inlet.offer(message(inlet.channel(), chat, number)).await;
                    assert_eq!(offered, Accepted::Recorded);
                }
            });
        }
        self.done.acquire_many(all).await.unwrap().forget();
    }
}

/// A gateway that runs in this process.
struct MemoryGateway {
    channel: Arc<MemoryChannel>,
    stop: CancellationToken,
    running: JoinHandle<GatewayEnd>,
}

impl MemoryGateway {
    async fn start(folder: &Path, chats: usize) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let engine = Engine::new();
        engine.on(|_: &UserInput| Effect::<UserInput>::handled());
        let id = ChannelId::new("memory").unwrap();
        let channel = Arc::new(MemoryChannel {
            inlet: watch::Sender::new(None),
            windows: (0..chats).map(|_| Semaphore::new(WINDOW)).collect(),
            done: Semaphore::new(0),
        });
        let settings = Settings {
            listen: None,
            // Senders of this kind are not slowed down.
            channels: vec![ChannelSettings::new(id.clone(), ChannelKind::Stdio)],
            busy: BusyMode::FollowUp,
            turns: TurnLimits {
                max: chats,
                ..TurnLimits::default()
            },
            ..Settings::default()
        };
        let gateway = Gateway::start(GatewayConfig {
            settings,
            profile: Arc::new(NullProfile {
                engine,
                folder: folder.to_owned(),
            }),
            state: OpeningState::begin(folder.join("state")),
            observer: Arc::new(|_| ()),
            stdio: false,
            own_channels: BTreeMap::from([(id, Arc::clone(&channel) as Arc<dyn Channel>)]),
            inspector: None,
            reloads_from: None,
        });
        let stop = CancellationToken::new();
        let running = gateway.await.unwrap();
        let running = running.run(stop.clone(), CancellationToken::new());
        Self {
            channel,
            stop,
            running: tokio::spawn(running),
        }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.running.await.unwrap();
    }
}

/// Returns the messages per second of a new gateway.
pub(crate) fn rate(folder: &Path, messages: usize, chats: usize) -> f64 {
    child::runtime().block_on(async {
        let gateway = MemoryGateway::start(folder, chats).await;
        let began = Instant::now();
        gateway.channel.exchange(0..chats, messages / chats).await;
        let took = began.elapsed();
        gateway.stop().await;
        super::number(messages / chats * chats) / took.as_secs_f64()
    })
}

/// What a chat keeps that has been idle for a while, in bytes.
pub(crate) struct IdleChat {
    pub(crate) memory: f64,
    /// In the file of the store.
    pub(crate) stored: f64,
}

/// Returns by how much this process grows for each further idle chat. Memory that earlier chats have freed is used again,
/// so only what is kept counts.
pub(crate) fn idle_chat(folder: &Path, chats: usize) -> IdleChat {
    // The clock of such a runtime can be moved.
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap().block_on(async {
        let gateway = MemoryGateway::start(folder, WAVES * chats).await;
        let mut sizes = Vec::new();
        for wave in 0..WAVES {
            let chats = wave * chats..(wave + 1) * chats;
            gateway.channel.exchange(chats, 1).await;
            tokio::time::pause();
            tokio::time::advance(IDLE).await;
            tokio::time::resume();
            tokio::time::sleep(ENDING).await;
            let file = std::fs::metadata(folder.join("state/gateway.redb")).unwrap();
            let memory = child::resident(std::process::id());
            sizes.push((memory, f64::from(u32::try_from(file.len()).unwrap())));
        }
        gateway.stop().await;
        let (first, last) = (sizes[WAVES / 2 - 1], sizes[WAVES - 1]);
        let more = super::number(WAVES / 2 * chats);
        IdleChat {
            memory: (last.0 - first.0) / more,
            stored: (last.1 - first.1) / more,
        }
    })
}
