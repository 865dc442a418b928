//! Settings that can be replaced while a gateway runs, and what a replacement changes.

use std::sync::Arc;

use parking_lot::RwLock;
use serde::Serialize;

use crate::chat::ChannelId;
use crate::settings::{ChannelKind, ChannelSettings, Settings};

/// The settings of a gateway that runs. Clones share them.
#[derive(Debug, Clone)]
pub struct LiveSettings(Arc<RwLock<Arc<Settings>>>);

impl From<Settings> for LiveSettings {
    fn from(settings: Settings) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(settings))))
    }
}

impl LiveSettings {
    /// Returns the settings that are in force. Someone who holds them does not see a later replacement.
    pub fn current(&self) -> Arc<Settings> {
        Arc::clone(&self.0.read())
    }

    /// Returns the settings of a channel.
    pub fn channel(&self, id: &ChannelId) -> Option<ChannelSettings> {
        let settings = self.current();
        let mut channels = settings.channels.iter();
        channels.find(|channel| channel.id == *id).cloned()
    }

    /// Puts other settings in force.
    pub fn replace(&self, settings: Settings) {
        *self.0.write() = Arc::new(settings);
    }
}

/// What other settings change in a gateway that runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SettingsChanges {
    /// Channels that are started.
    pub started: Vec<ChannelId>,
    /// Channels that are stopped.
    pub stopped: Vec<ChannelId>,
    /// Channels that are stopped and started with other settings.
    pub restarted: Vec<ChannelId>,
    /// Channels that stay connected and follow other rules.
    pub adjusted: Vec<ChannelId>,
    /// Keys whose changes apply only when the gateway is started again.
    pub needs_restart: Vec<String>,
}

impl SettingsChanges {
    /// Compares settings with those in force. Returns the settings to put in force, which keep the old values of keys
    /// that need a restart. `has_new_secret` returns whether the secret of a channel has changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use tenterhook_channel::live_settings::SettingsChanges;
    /// use tenterhook_channel::settings::{BusyMode, Settings};
    ///
    /// let old = Settings::default();
    /// let new = Settings { listen: None, busy: BusyMode::Collect, ..old.clone() };
    /// let (settings, changes) = SettingsChanges::between(&old, new, |_| false);
    /// assert_eq!(settings.listen, old.listen);
    /// assert_eq!(settings.busy, BusyMode::Collect);
    /// assert_eq!(changes.needs_restart, ["listen"]);
    /// ```
    pub fn between(
        old: &Settings,
        mut new: Settings,
        has_new_secret: impl Fn(&ChannelId) -> bool,
    ) -> (Settings, Self) {
        let mut changes = Self::default();
        keep_until_restart(old, &mut new, &mut changes.needs_restart);
        let known = old.secret_variables();
        let mut channels = Vec::new();
        for channel in new.channels {
            let mut before = old.channels.iter();
            let before = before.find(|before| before.id == channel.id);
            // Programs of the agent must not see the variable, which they already might.
            let variables = channel.kind.secret_variable();
            let is_late = variables.is_some_and(|variable| !known.contains(variable));
            let secret = (is_late, has_new_secret(&channel.id));
            channels.push(changes.channel(before, channel, secret));
        }
        for gone in &old.channels {
            if gone.is_enabled && !channels.iter().any(|channel| channel.id == gone.id) {
                let off = ChannelSettings {
                    is_enabled: false,
                    ..gone.clone()
                };
                let kept = changes.channel(Some(gone), off, (false, false));
                channels.extend(kept.is_enabled.then_some(kept));
            }
        }
        new.channels = channels;
        (new, changes)
    }

    /// Compares a channel, and returns its settings to put in force.
    fn channel(
        &mut self,
        before: Option<&ChannelSettings>,
        mut now: ChannelSettings,
        (is_late, has_new_secret): (bool, bool),
    ) -> ChannelSettings {
        let id = now.id.clone();
        match before.filter(|before| before.is_enabled) {
            None if !now.is_enabled => {}
            None if is_late || !now.kind.is_movable() => {
                self.needs_restart.push(format!("channels.{id}"));
                now.is_enabled = false;
            }
            None => self.started.push(id),
            Some(before) if !now.is_enabled && before.kind.is_movable() => self.stopped.push(id),
            Some(before)
                if now.is_enabled && is_same_connection(before, &now) && !has_new_secret =>
            {
                if *before != now {
                    self.adjusted.push(id);
                }
            }
            Some(before)
                if is_late
                    || !now.is_enabled
                    || !before.kind.is_movable()
                    || !now.kind.is_movable() =>
            {
                self.needs_restart.push(format!("channels.{id}"));
                return before.clone();
            }
            Some(_) => self.restarted.push(id),
        }
        now
    }
}

/// Keeps the old values of keys that need a restart, and adds the names of those that differ to `later`.
fn keep_until_restart(old: &Settings, new: &mut Settings, later: &mut Vec<String>) {
    keep(&mut new.listen, &old.listen, "listen", later);
    keep(&mut new.is_public, &old.is_public, "public", later);
    keep(&mut new.hosts, &old.hosts, "hosts", later);
    keep(&mut new.origins, &old.origins, "origins", later);
    let (proxies, known) = (&mut new.trusted_proxies, &old.trusted_proxies);
    keep(proxies, known, "trusted_proxies", later);
    keep(&mut new.tls, &old.tls, "tls", later);
    keep(&mut new.inspect, &old.inspect, "inspect", later);
    keep(&mut new.keep_env, &old.keep_env, "keep_env", later);
    keep(&mut new.stt, &old.stt, "stt", later);
    keep(&mut new.tts, &old.tts, "tts", later);
    keep(&mut new.turns, &old.turns, "turns", later);
    let (approvals, known) = (&mut new.approvals_to, &old.approvals_to);
    keep(approvals, known, "approvals_to", later);
}

/// Keeps the old value of a key that a gateway that runs cannot change.
fn keep<T: Clone + PartialEq>(new: &mut T, old: &T, key: &str, needs_restart: &mut Vec<String>) {
    if new != old {
        new.clone_from(old);
        needs_restart.push(key.to_owned());
    }
}

impl ChannelKind {
    /// Returns whether a gateway that runs can start and stop such a channel. The others belong to its server or to its
    /// standard input.
    fn is_movable(&self) -> bool {
        matches!(self, Self::Telegram(_) | Self::Command(_))
    }
}

/// Returns whether a connected channel can follow other settings as it is.
fn is_same_connection(one: &ChannelSettings, other: &ChannelSettings) -> bool {
    let listed = |channel: &ChannelSettings| {
        let groups = channel.access.groups.as_ref();
        groups
            .map(|groups| groups.allow.clone())
            .unwrap_or_default()
    };
    let is_telegram = matches!(one.kind, ChannelKind::Telegram(_));
    one.kind == other.kind
        && (!is_telegram || (one.show == other.show && listed(one) == listed(other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{CommandSettings, SecretSource, TelegramSettings};

    fn channel(id: &str, kind: ChannelKind) -> ChannelSettings {
        ChannelSettings::new(ChannelId::new(id).unwrap(), kind)
    }

    fn program(id: &str, argv: &str) -> ChannelSettings {
        let argv = vec![argv.to_owned()];
        channel(id, ChannelKind::Command(CommandSettings { argv }))
    }

    fn bot(id: &str, variable: &str) -> ChannelSettings {
        let token = SecretSource::Environment(variable.to_owned());
        let api_base = String::new();
        channel(
            id,
            ChannelKind::Telegram(TelegramSettings { token, api_base }),
        )
    }

    fn settings(channels: impl IntoIterator<Item = ChannelSettings>) -> Settings {
        Settings {
            channels: channels.into_iter().collect(),
            ..Settings::default()
        }
    }

    fn names(ids: &[ChannelId]) -> Vec<&str> {
        ids.iter().map(ChannelId::as_str).collect()
    }

    #[test]
    fn the_channels_that_differ_are_named() {
        let old = settings([
            program("same", "a"),
            program("rules", "a"),
            program("argv", "a"),
            program("gone", "a"),
            bot("secret", "TOKEN"),
        ]);
        let mut rules = program("rules", "a");
        rules.is_untrusted = true;
        let new = settings([
            program("same", "a"),
            rules,
            program("argv", "b"),
            program("new", "a"),
            bot("secret", "TOKEN"),
        ]);
        let (merged, changes) =
            SettingsChanges::between(&old, new.clone(), |id| id.as_str() == "secret");
        assert_eq!(merged, new);
        assert_eq!(names(&changes.started), ["new"]);
        assert_eq!(names(&changes.stopped), ["gone"]);
        assert_eq!(names(&changes.restarted), ["argv", "secret"]);
        assert_eq!(names(&changes.adjusted), ["rules"]);
        assert_eq!(changes.needs_restart, [""; 0]);
    }

    #[test]
    fn a_key_that_needs_a_restart_keeps_its_value() {
        let web = || channel("web", ChannelKind::Web);
        let old = settings([web(), bot("tg", "TOKEN")]);
        let mut new = settings([
            channel("http", ChannelKind::Http),
            bot("tg", "OTHER_TOKEN"),
            bot("second", "OTHER_TOKEN"),
        ]);
        new.turns.max = 1;
        new.hosts.push("example.org".to_owned());
        let (merged, changes) = SettingsChanges::between(&old, new, |_| false);
        let keys = [
            "hosts",
            "turns",
            "channels.http",
            "channels.tg",
            "channels.second",
            "channels.web",
        ];
        assert_eq!(changes.needs_restart, keys);
        let enabled = merged.channels.iter().filter(|channel| channel.is_enabled);
        assert!(enabled.eq([&bot("tg", "TOKEN"), &web()]));
        assert_eq!((merged.turns, merged.hosts), (old.turns, old.hosts));
    }

    #[test]
    fn equal_settings_change_nothing() {
        let old = settings([channel("web", ChannelKind::Web), program("a", "x")]);
        let (merged, changes) = SettingsChanges::between(&old, old.clone(), |_| false);
        assert_eq!((merged, changes), (old, SettingsChanges::default()));
    }
}
