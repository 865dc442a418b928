//! The gateway's own events: its start and end, its channels, and failures outside of any session.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use tenterhook_engine::{Dispatcher, Engine};
use tenterhook_protocol::event::{
    ChannelConnect, ChannelDisconnect, ChannelDisconnectReason, GatewayError, GatewayStart,
    GatewayStop, GatewayStopReason,
};
use tenterhook_protocol::{Decision, Origin, SessionId};

use tenterhook_channel::chat::{ChannelId, ChatRef};

/// Sends the gateway's own events to hooks. Clones share the sequence of events and the hooks.
#[derive(Debug, Clone)]
pub struct GatewayEvents {
    dispatcher: Arc<RwLock<Dispatcher>>,
}

/// Something that failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GatewayFailure {
    /// A word for the kind of failure, such as `conflict`.
    pub code: String,
    /// What went wrong. It contains no address and no token.
    pub error: String,
    /// The conversation in which it happened.
    pub chat: Option<ChatRef>,
    /// The message that was affected.
    pub message_id: Option<String>,
    /// Whether the gateway will try again.
    pub will_retry: bool,
}

impl GatewayEvents {
    /// Creates the dispatcher of a gateway whose agents work in `cwd`.
    pub fn new(engine: &Engine, cwd: impl Into<PathBuf>) -> Self {
        let origin = Origin::new(SessionId::generate(), cwd.into());
        Self {
            dispatcher: Arc::new(RwLock::new(engine.dispatcher(origin))),
        }
    }

    /// Returns the dispatcher, for events that belong to no session.
    pub fn dispatcher(&self) -> Dispatcher {
        self.dispatcher.read().clone()
    }

    /// Sends later events to the hooks of another engine.
    pub fn use_hooks_of(&self, engine: &Engine) {
        let mut dispatcher = self.dispatcher.write();
        *dispatcher = engine.dispatcher_after(&dispatcher);
    }

    /// Announces that the gateway has started.
    pub async fn started(&self, channels: &[ChannelId]) {
        let build = || GatewayStart::new(names(channels));
        let _observed = self.dispatcher().dispatch_with(build).await;
    }

    /// Announces that the gateway will stop.
    pub async fn stopping(&self, channels: &[ChannelId], reason: GatewayStopReason) {
        let build = || GatewayStop::new(names(channels)).with_reason(reason);
        let _observed = self.dispatcher().dispatch_with(build).await;
    }

    /// Asks hooks whether a channel may connect.
    ///
    /// # Errors
    ///
    /// Returns the reason if a hook blocks the channel.
    pub async fn connecting(
        &self,
        channel: &ChannelId,
        kind: &str,
        account: Option<String>,
    ) -> Result<(), String> {
        let build = || {
            ChannelConnect::new(channel.as_str())
                .with_kind(kind)
                .with_account(account)
        };
        match self.dispatcher().dispatch_with(build).await.decision() {
            Decision::Proceed => Ok(()),
            Decision::Ask { reason, .. } | Decision::Stop { reason, .. } => Err(reason),
        }
    }

    /// Announces that a channel has disconnected.
    pub async fn disconnected(&self, channel: &ChannelId, reason: ChannelDisconnectReason) {
        let build = || ChannelDisconnect::new(channel.as_str()).with_reason(reason);
        let _observed = self.dispatcher().dispatch_with(build).await;
    }

    /// Announces a failure.
    pub async fn failed(&self, channel: &ChannelId, failure: GatewayFailure) {
        report_failure(&self.dispatcher(), channel, failure).await;
    }
}

/// Sends a failure to the hooks of a session, or of the gateway.
pub(crate) async fn report_failure(
    dispatcher: &Dispatcher,
    channel: &ChannelId,
    failure: GatewayFailure,
) {
    let build = || {
        GatewayError::new(channel.as_str(), failure.error)
            .with_chat_id(failure.chat.map(|chat| chat.chat))
            .with_message_id(failure.message_id)
            .with_code(Some(failure.code).filter(|code| !code.is_empty()))
            .with_will_retry(failure.will_retry)
    };
    let _observed = dispatcher.dispatch_with(build).await;
}

fn names(channels: &[ChannelId]) -> Vec<String> {
    channels
        .iter()
        .map(|channel| channel.as_str().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tenterhook_engine::Effect;

    use super::*;

    #[tokio::test]
    async fn a_hook_can_block_a_channel_and_sees_every_event() {
        let engine = Engine::new();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&seen);
        let _subscribed =
            engine.subscribe(move |event| log.lock().push(event.event().name().to_owned()));
        let _blocking = engine.on(|event: &ChannelConnect| match event.channel_id.as_str() {
            "tg" => Effect::block("no telegram"),
            _ => Effect::none(),
        });
        let events = GatewayEvents::new(&engine, "/");
        let (web, tg) = (
            ChannelId::new("web").unwrap(),
            ChannelId::new("tg").unwrap(),
        );
        assert_eq!(events.connecting(&web, "web", None).await, Ok(()));
        let blocked = events.connecting(&tg, "telegram", None).await;
        assert_eq!(blocked, Err("no telegram".to_owned()));
        events.started(std::slice::from_ref(&web)).await;
        events.failed(&web, GatewayFailure::default()).await;
        events
            .stopping(std::slice::from_ref(&web), GatewayStopReason::Shutdown)
            .await;
        events
            .disconnected(&web, ChannelDisconnectReason::Shutdown)
            .await;
        let expected = [
            "channel_connect",
            "channel_connect",
            "gateway_start",
            "gateway_error",
            "gateway_stop",
            "channel_disconnect",
        ];
        assert_eq!(*seen.lock(), expected);
    }
}
