//! Reads the settings again while the gateway runs, and applies what has changed.
//!
//! The settings are checked as a whole first: if anything is wrong, everything stays as it was. Channels that have not
//! changed keep their connections.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use tenterhook_channel::channel::Channel;
use tenterhook_channel::chat::ChannelId;
use tenterhook_channel::live_settings::SettingsChanges;
use tenterhook_channel::settings::Settings;

use crate::assembly::{Assembled, ChannelContext};
use crate::gateway_notice::GatewayNotice;
use crate::reload_result::LastReload;
pub use crate::reload_result::SettingsReader;
use crate::running::Running;
use crate::secrets::read_channel_secrets;

/// Reloads the settings of a gateway that runs.
#[derive(Clone)]
pub struct Reloads(pub(crate) Arc<Running>);

impl fmt::Debug for Reloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reloads")
    }
}

impl Reloads {
    /// Reads the settings again and applies what has changed. The observer receives the result, too.
    ///
    /// # Errors
    ///
    /// Describes what is wrong with the settings. Then the gateway keeps the old ones.
    pub async fn reload(&self) -> Result<SettingsChanges, String> {
        let running = &self.0;
        let _one_at_a_time = running.changing.lock().await;
        let result = running.apply_settings().await;
        *running.last_reload.lock() = Some(LastReload::of(&result));
        (running.observer)(match &result {
            Ok(changes) => GatewayNotice::Reloaded(changes.clone()),
            Err(problem) => GatewayNotice::Failure(format!(
                "the settings were not reloaded, the old ones stay in force: {problem}"
            )),
        });
        result
    }
}

impl Running {
    async fn apply_settings(self: &Arc<Self>) -> Result<SettingsChanges, String> {
        if self.intake.is_closed.load(Ordering::Acquire) {
            return Err("the gateway stops".to_owned());
        }
        let reader = self.reader.clone();
        let reader = reader.ok_or("this gateway cannot read its settings again")?;
        let read = tokio::task::spawn_blocking(move || reader()).await;
        let mut settings = read.map_err(|_| "the settings cannot be read".to_owned())??;
        if self.stdio.is_some() {
            settings = settings.with_stdio()?;
        }
        let secrets = read_channel_secrets(&Arc::new(settings.clone()), &self.tokens)
            .await
            .map_err(|error| error.to_string())?;
        let current = self.settings.current();
        let (settings, changes) = {
            let known = self.secrets.lock();
            let is_new = |id: &ChannelId| secrets.get(id) != known.get(id);
            SettingsChanges::between(&current, settings, is_new)
        };
        let is_made =
            |id: &ChannelId| changes.started.contains(id) || changes.restarted.contains(id);
        let made = Settings {
            channels: settings
                .channels
                .iter()
                .filter(|channel| is_made(&channel.id))
                .cloned()
                .collect(),
            ..settings.clone()
        };
        let context = ChannelContext {
            hub: &self.hub,
            store: &self.store,
            media: &self.media,
            secrets: &secrets,
            own: &self.own_channels,
        };
        let made = Assembled::of(&made, &context)?;
        // From here on, nothing can fail.
        let needed = settings
            .channels
            .iter()
            .filter(|channel| channel.is_enabled);
        let needed: Vec<ChannelId> = needed.map(|channel| channel.id.clone()).collect();
        self.settings.replace(settings);
        *self.secrets.lock() = secrets
            .into_iter()
            .filter(|(id, _)| needed.contains(id))
            .collect();
        self.end_channels(&changes).await;
        self.begin_channels(made).await;
        Ok(changes)
    }

    /// Ends the channels that are stopped or restarted.
    async fn end_channels(&self, changes: &SettingsChanges) {
        let ended = changes.stopped.iter().chain(&changes.restarted);
        let ended: Vec<_> = ended.filter_map(|id| self.channels.get(id)).collect();
        join_all(ended.iter().map(|channel| channel.remove())).await;
        for id in &changes.stopped {
            self.channels.remove(id);
            self.outbox.set_channel(id, None);
        }
        let announced = ended.iter().filter_map(|channel| {
            let reason = channel.disconnect_reason()?;
            Some(self.events.disconnected(channel.id(), reason))
        });
        join_all(announced).await;
    }

    /// Asks hooks about new channels, and starts those that may connect.
    async fn begin_channels(self: &Arc<Self>, made: Assembled) {
        for (id, kind, channel) in made.channels {
            let shared: Arc<dyn Channel> = Arc::clone(&channel);
            let supervised = self.supervised(&id, kind, channel);
            self.channels.insert(Arc::clone(&supervised));
            self.outbox.set_channel(&id, Some(shared));
            match self.events.connecting(&id, kind, None).await {
                Ok(()) => self.start_channel(&supervised),
                Err(reason) => supervised.block(reason),
            }
        }
    }
}
