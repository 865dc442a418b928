//! Reads the settings and the hooks again while the gateway runs, and applies what has changed.
//!
//! Everything is checked as a whole first: if anything is wrong, everything stays as it was. Channels that have not
//! changed keep their connections.
//!
//! The hooks are replaced as a whole, too. The gateway's own events and chats in which no turn runs have the new ones
//! from then on. A turn that runs keeps the ones that it began with.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tenterhook_channel::channel::Channel;
use tenterhook_channel::chat::ChannelId;
use tenterhook_channel::live_settings::SettingsChanges;
use tenterhook_channel::settings::Settings;
use tenterhook_protocol::journal::HookChanges;

use crate::assembly::{Assembled, ChannelContext};
use crate::gateway_notice::GatewayNotice;
use crate::reload_result::LastReload;
pub use crate::reload_result::{
    LoadedAgain, OtherHooks, ReloadChanges, ReloadRequester, ReloadSource,
};
use crate::running::Running;
use crate::secrets::read_channel_secrets;

/// Reloads the settings and the hooks of a gateway that runs.
#[derive(Clone)]
pub struct Reloads(pub(crate) Arc<Running>);

impl fmt::Debug for Reloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reloads")
    }
}

impl Reloads {
    /// Reads the settings and the hooks again and applies what has changed. The observer receives the result, too. A
    /// reload that has begun ends even if its caller does not wait for it.
    ///
    /// # Errors
    ///
    /// Describes what is wrong. Then the gateway keeps the old settings and hooks.
    pub async fn reload(&self, requester: ReloadRequester) -> Result<ReloadChanges, String> {
        let running = Arc::clone(&self.0);
        let reloading = tokio::spawn(async move {
            let _one_at_a_time = running.changing.lock().await;
            let result = running.apply_changes(requester).await;
            *running.last_reload.lock() = Some(LastReload::of(&result));
            (running.observer)(match &result {
                Ok(changes) => GatewayNotice::Reloaded(Box::new(changes.clone())),
                Err(problem) => GatewayNotice::Failure(format!(
                    "nothing was reloaded, the old settings and hooks stay in force: {problem}"
                )),
            });
            result
        });
        let done = reloading.await;
        done.unwrap_or_else(
            |_| Err("the reload failed because of a bug in this program".to_owned()),
        )
    }
}

impl Running {
    async fn apply_changes(
        self: &Arc<Self>,
        requester: ReloadRequester,
    ) -> Result<ReloadChanges, String> {
        if self.intake.is_closed.load(Ordering::Acquire) {
            return Err("the gateway stops".to_owned());
        }
        let source = self.reloads_from.as_ref();
        let source = source.ok_or("this gateway cannot read its settings again")?;
        let LoadedAgain {
            mut settings,
            hooks,
            notes,
        } = source.load(requester).await?;
        if self.stdio.is_some() {
            settings = settings.with_stdio().map_err(|error| error.to_string())?;
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
        let mut changes = ReloadChanges {
            settings: changes,
            notes,
            ..ReloadChanges::default()
        };
        if let Some(hooks) = hooks {
            changes.turns_with_old_hooks = self.router.running_turns();
            changes.hooks = self.replace_hooks(hooks);
        }
        self.end_channels(&changes.settings).await;
        self.begin_channels(made).await;
        Ok(changes)
    }

    /// Puts other hooks in force, for the gateway's own events and for chats.
    fn replace_hooks(&self, hooks: OtherHooks) -> HookChanges {
        self.events.use_hooks_of(hooks.profile.engine());
        self.router.replace_profile(hooks.profile);
        (hooks.in_force)();
        hooks.changes
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
            // The observer shows why a hook blocked it.
            let _blocked = self.begin_channel(&id, kind, channel).await;
        }
    }

    /// Asks hooks about a channel, and starts it if it may connect. The caller holds `changing`.
    ///
    /// # Errors
    ///
    /// Returns the reason of the hook that blocked it.
    async fn begin_channel(
        self: &Arc<Self>,
        id: &ChannelId,
        kind: &'static str,
        channel: Arc<dyn Channel>,
    ) -> Result<(), String> {
        let supervised = self.supervised(id, kind, Arc::clone(&channel));
        self.channels.insert(Arc::clone(&supervised));
        self.outbox.set_channel(id, Some(channel));
        match self.events.connecting(id, kind, None).await {
            Ok(()) => {
                self.start_channel(&supervised);
                Ok(())
            }
            Err(reason) => {
                supervised.block(reason.clone());
                Err(reason)
            }
        }
    }

    /// Restarts a channel. One that a hook blocked, or that has ended, begins anew: hooks are asked again.
    ///
    /// # Errors
    ///
    /// Describes why the channel cannot be restarted.
    pub(crate) async fn restart_channel(self: &Arc<Self>, name: &str) -> Result<Value, String> {
        let _one_at_a_time = self.changing.lock().await;
        if self.intake.is_closed.load(Ordering::Acquire) {
            return Err("the gateway stops".to_owned());
        }
        let find = || {
            let channels = self.channels.all();
            channels.into_iter().find(|it| it.id().as_str() == name)
        };
        let unknown = || format!("the gateway has no channel `{name}`");
        let channel = find().ok_or_else(unknown)?;
        if !channel.restart() {
            let (id, kind) = (channel.id().clone(), channel.status().kind);
            let begun = self.begin_channel(&id, kind, channel.channel()).await;
            begun.map_err(|reason| format!("a hook blocked the channel `{name}`: {reason}"))?;
        }
        find().map(|it| json!(it.status())).ok_or_else(unknown)
    }
}
