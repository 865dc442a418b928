//! The channels of a gateway that runs. A reload changes them.

use std::sync::Arc;

use parking_lot::RwLock;
use tenterhook_channel::chat::ChannelId;

use crate::supervisor::Supervised;

/// The channels, in the order of the settings at the start. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct ChannelTable(Arc<RwLock<Vec<Arc<Supervised>>>>);

impl ChannelTable {
    pub(crate) fn all(&self) -> Vec<Arc<Supervised>> {
        self.0.read().clone()
    }

    pub(crate) fn ids(&self) -> Vec<ChannelId> {
        let channels = self.0.read();
        channels
            .iter()
            .map(|channel| channel.id().clone())
            .collect()
    }

    pub(crate) fn get(&self, id: &ChannelId) -> Option<Arc<Supervised>> {
        let channels = self.0.read();
        channels.iter().find(|channel| channel.id() == id).cloned()
    }

    /// Adds a channel, instead of the channel with the same id.
    pub(crate) fn insert(&self, channel: Arc<Supervised>) {
        let mut channels = self.0.write();
        match channels.iter_mut().find(|other| other.id() == channel.id()) {
            Some(other) => *other = channel,
            None => channels.push(channel),
        }
    }

    pub(crate) fn remove(&self, id: &ChannelId) {
        self.0.write().retain(|channel| channel.id() != id);
    }
}
