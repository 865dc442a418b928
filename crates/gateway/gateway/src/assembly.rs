//! Creates the channels that the settings name.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenterhook_adapters::program::ProgramChannel;
use tenterhook_adapters::telegram::{self, TelegramChannel};
use tenterhook_channel::channel::Channel;
use tenterhook_channel::chat::ChannelId;
use tenterhook_channel::media_folder::MediaFolder;
use tenterhook_channel::secret::HiddenSecret;
use tenterhook_channel::settings::{ChannelKind, ChannelSettings, Settings};
use tenterhook_channel::store::Store;
use tenterhook_web::frame_channel::{self, FrameChannel};
use tenterhook_web::hub::Hub;
use tenterhook_web::stdio::StdioChannel;
use tenterhook_web::webhook::WebhookChannel;

/// Returns the media types of audio that channels of a kind can send, the best first. A program says itself what it can
/// send, and no one hears an answer to a webhook.
pub fn audio_formats(kind: &ChannelKind) -> &'static [&'static str] {
    match kind {
        ChannelKind::Web | ChannelKind::Http | ChannelKind::Stdio => frame_channel::AUDIO_FORMATS,
        ChannelKind::Telegram(_) => telegram::AUDIO_FORMATS,
        ChannelKind::Command(_) | ChannelKind::Webhook(_) => &[],
    }
}

/// The channels of a gateway.
#[derive(Default)]
pub(crate) struct Assembled {
    /// All of them, with the words for their kinds, in the order of the settings.
    pub(crate) channels: Vec<(ChannelId, &'static str, Arc<dyn Channel>)>,
    /// The channel of the page.
    pub(crate) web: Option<Arc<FrameChannel>>,
    /// The channel of HTTP.
    pub(crate) http: Option<Arc<FrameChannel>>,
    /// The channels of webhooks.
    pub(crate) webhooks: Vec<Arc<WebhookChannel>>,
    /// The channel of standard input and output.
    pub(crate) stdio: Option<Arc<StdioChannel>>,
}

/// What channels are created with.
pub(crate) struct ChannelContext<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) store: &'a Store,
    pub(crate) media: &'a MediaFolder,
    pub(crate) secrets: &'a BTreeMap<ChannelId, HiddenSecret>,
    /// Channels that exist already.
    pub(crate) own: &'a BTreeMap<ChannelId, Arc<dyn Channel>>,
}

impl ChannelContext<'_> {
    fn secret(&self, channel: &ChannelId) -> Result<&str, String> {
        let secret = self.secrets.get(channel).map(HiddenSecret::expose);
        secret.ok_or_else(|| "it has no secret".to_owned())
    }
}

impl Assembled {
    /// Creates the enabled channels.
    ///
    /// # Errors
    ///
    /// Names the first channel that cannot be created, and the cause.
    pub(crate) fn of(settings: &Settings, with: &ChannelContext<'_>) -> Result<Self, String> {
        let mut assembled = Self::default();
        for channel in &settings.channels {
            if channel.is_enabled {
                let made = assembled.make(channel, with);
                let made = made.map_err(|cause| format!("channel `{}`: {cause}", channel.id))?;
                let word = channel.kind.word();
                assembled.channels.push((channel.id.clone(), word, made));
            }
        }
        Ok(assembled)
    }

    fn make(
        &mut self,
        settings: &ChannelSettings,
        with: &ChannelContext<'_>,
    ) -> Result<Arc<dyn Channel>, String> {
        let id = settings.id.clone();
        if let Some(own) = with.own.get(&id) {
            return Ok(Arc::clone(own));
        }
        let frames = || {
            let (hub, store) = (with.hub.clone(), with.store.clone());
            Arc::new(FrameChannel::new(
                id.clone(),
                hub,
                store,
                with.media.clone(),
            ))
        };
        Ok(match &settings.kind {
            ChannelKind::Web => Arc::clone(self.web.insert(frames())) as _,
            ChannelKind::Http => Arc::clone(self.http.insert(frames())) as _,
            ChannelKind::Stdio => {
                let made = StdioChannel::of_process(frames()).map_err(|error| error.to_string())?;
                Arc::clone(self.stdio.insert(Arc::new(made))) as _
            }
            ChannelKind::Webhook(webhook) => {
                let made = WebhookChannel::new(id.clone(), webhook, with.secret(&id)?);
                let made = Arc::new(made.map_err(|error| error.to_string())?);
                self.webhooks.push(Arc::clone(&made));
                made
            }
            ChannelKind::Telegram(telegram) => {
                let token = with.secret(&id)?.to_owned();
                let made = TelegramChannel::new(id, telegram, token, settings.show);
                let made = made.map_err(|error| error.to_string())?;
                let groups = settings.access.groups.iter();
                let listed = groups.flat_map(|groups| groups.allow.clone());
                Arc::new(made.with_groups(listed.collect()))
            }
            ChannelKind::Command(program) => Arc::new(ProgramChannel::new(id, program)),
        })
    }

    /// Returns all channels by their ids.
    pub(crate) fn by_id(&self) -> BTreeMap<ChannelId, Arc<dyn Channel>> {
        let channels = self.channels.iter();
        channels
            .map(|(id, _, channel)| (id.clone(), Arc::clone(channel)))
            .collect()
    }

    /// Returns whether a channel needs the server.
    pub(crate) fn needs_server(&self) -> bool {
        self.web.is_some() || self.http.is_some() || !self.webhooks.is_empty()
    }
}
