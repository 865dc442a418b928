//! Webhooks: signed requests of another service, each of which becomes a message.
//!
//! The server hands a request to [`WebhookChannel::receive`]. Answers of the agent go nowhere; a hook or a tool can
//! carry them on.

mod event_filter;
mod replay;
mod signature;
mod template;

use std::fmt;
use std::time::SystemTime;

use axum::http::HeaderMap;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use self::event_filter::EventFilter;
use self::replay::{Arrival, RecentDeliveries};
use self::signature::{SignatureKey, seconds_of};
use self::template::MessageTemplate;
use tenterhook_channel::channel::{
    Accepted, Channel, ChannelCapabilities, ChannelError, DeliveryError, Inlet, MediaSink,
    Outgoing, Receipt,
};
use tenterhook_channel::chat::{ChannelId, ChatRef, MAX_FOREIGN_ID, Sender};
use tenterhook_channel::frame::Frame;
use tenterhook_channel::message::{IncomingMessage, IncomingPart, MediaRef};
use tenterhook_channel::settings::WebhookSettings;

pub use self::template::InvalidTemplate;

/// The maximum size of a request's body in bytes.
pub const MAX_WEBHOOK_BODY: usize = 256 << 10;

/// The sender of all messages of webhooks.
const SENDER: &str = "webhook";

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookOutcome {
    /// The message is durable.
    Recorded,
    /// The same delivery was recorded before, or the same signed request arrived with another id.
    Duplicate,
    /// The event is not among those that become messages, or the template produced an empty text.
    Ignored,
    /// The signature is missing or wrong, or the request is too old. It is not said which.
    Unauthorized,
    /// The body is not JSON, or the template fails for it.
    Invalid(String),
    /// The gateway does not take the message.
    Refused(&'static str),
    /// The message cannot be recorded now.
    Unavailable,
}

/// A channel of kind `webhook`.
pub struct WebhookChannel {
    id: ChannelId,
    chat: ChatRef,
    key: SignatureKey,
    recent: RecentDeliveries,
    delivery_header: String,
    events: EventFilter,
    template: MessageTemplate,
    /// Since when requests are remembered.
    since: SystemTime,
    inlet: Mutex<Option<Inlet>>,
}

impl fmt::Debug for WebhookChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookChannel")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl WebhookChannel {
    /// Creates a channel. `secret` is the key of the signatures.
    ///
    /// # Errors
    ///
    /// Fails if the template cannot be parsed.
    pub fn new(
        id: ChannelId,
        settings: &WebhookSettings,
        secret: &str,
    ) -> Result<Self, InvalidTemplate> {
        Ok(Self {
            chat: ChatRef {
                channel: id.clone(),
                chat: settings.chat.clone(),
                thread: None,
            },
            key: SignatureKey::new(settings, secret),
            recent: RecentDeliveries::default(),
            delivery_header: settings.delivery_header.clone(),
            events: EventFilter::new(settings),
            template: MessageTemplate::parse(&settings.template)?,
            since: SystemTime::now(),
            inlet: Mutex::new(None),
            id,
        })
    }

    /// Returns the channel's id, which is the name in the address `/v1/webhooks/{name}`.
    pub fn id(&self) -> &ChannelId {
        &self.id
    }

    /// Checks a request and offers its message.
    pub async fn receive(&self, headers: &HeaderMap, body: &[u8]) -> WebhookOutcome {
        if !self.key.is_signed(headers, body, SystemTime::now()) {
            return WebhookOutcome::Unauthorized;
        }
        if !self.events.admits(headers, body) {
            return WebhookOutcome::Ignored;
        }
        let text = match self.template.render(body) {
            Ok(text) if text.trim().is_empty() => return WebhookOutcome::Ignored,
            Ok(text) => text,
            Err(cause) => return WebhookOutcome::Invalid(cause),
        };
        let inlet = self.inlet.lock().clone();
        let Some(inlet) = inlet else {
            return WebhookOutcome::Unavailable;
        };
        let digest = self.key.digest(headers, body);
        let delivery = headers
            .get(&self.delivery_header)
            .and_then(|value| value.to_str().ok())
            .filter(|id| !id.is_empty() && id.len() <= MAX_FOREIGN_ID);
        let id = delivery.unwrap_or(&digest);
        // The id is not signed, so anyone who has seen a request can send it again with another id. A request without a time
        // is therefore known by what is signed.
        let Some(time) = self.key.time(headers) else {
            return outcome_of(&inlet.offer(self.message(&digest, id, text)).await);
        };
        // One with a time cannot be sent again later, and is known by its id, because its service repeats it with a new
        // time. Meanwhile its signature counts once. What an earlier process took is not known here.
        if time <= seconds_of(self.since) {
            return WebhookOutcome::Unavailable;
        }
        let first = match self.recent.begin(&digest) {
            Arrival::First(first) => first,
            // The service must not take it for delivered.
            Arrival::Pending => return WebhookOutcome::Unavailable,
            Arrival::Known => return WebhookOutcome::Duplicate,
        };
        let dedupe = delivery.unwrap_or(&digest);
        let outcome = outcome_of(&inlet.offer(self.message(dedupe, id, text)).await);
        if matches!(
            outcome,
            WebhookOutcome::Recorded | WebhookOutcome::Duplicate
        ) {
            first.keep();
        }
        outcome
    }

    fn message(&self, dedupe: &str, id: &str, text: String) -> IncomingMessage {
        IncomingMessage {
            dedupe: dedupe.to_owned(),
            message_id: id.to_owned(),
            chat: self.chat.clone(),
            sender: Sender {
                id: SENDER.to_owned(),
                name: None,
                is_bot: false,
            },
            is_direct: true,
            is_addressed: true,
            parts: vec![IncomingPart::Text { text }],
            reply_to: None,
            at: Timestamp::now(),
        }
    }
}

fn outcome_of(accepted: &Accepted) -> WebhookOutcome {
    match accepted {
        Accepted::Recorded => WebhookOutcome::Recorded,
        Accepted::Duplicate => WebhookOutcome::Duplicate,
        Accepted::Refused { code, .. } => WebhookOutcome::Refused(code),
        Accepted::Failed { .. } => WebhookOutcome::Unavailable,
    }
}

impl Channel for WebhookChannel {
    fn capabilities(&self) -> ChannelCapabilities {
        ChannelCapabilities {
            speaks_frames: false,
            max_file: 0,
            audio_formats: &[],
        }
    }

    fn run(
        &self,
        inlet: Inlet,
        stop: CancellationToken,
    ) -> BoxFuture<'_, Result<(), ChannelError>> {
        Box::pin(async move {
            inlet.alive();
            *self.inlet.lock() = Some(inlet);
            // Dropping the future also ends the intake.
            let _closed = CloseOnDrop(&self.inlet);
            stop.cancelled().await;
            Ok(())
        })
    }

    fn fetch<'a>(
        &'a self,
        _media: &'a MediaRef,
        _into: &'a mut MediaSink,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        let error = ChannelError::new("no_files", "messages of a webhook have no files");
        Box::pin(async { Err(error) })
    }

    fn send<'a>(&'a self, _: &'a Outgoing) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        Box::pin(async { Ok(Receipt::default()) })
    }

    fn sends(&self, _frame: &Frame) -> bool {
        false
    }

    fn live(&self, _chat: &ChatRef, _frame: &Frame) {}

    fn can_ask(&self, _chat: &ChatRef) -> bool {
        false
    }
}

struct CloseOnDrop<'a>(&'a Mutex<Option<Inlet>>);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}
