//! What all conversations of a gateway share.

use std::sync::Arc;

use tenterhook_protocol::event::SenderRole;

use crate::conversations::approvals::OpenQuestions;
use crate::conversations::gateway_events::GatewayEvents;
use crate::conversations::profile::{LiveProfile, ToolAccess};
use tenterhook_channel::chat::{ChannelId, ChatRef};
use tenterhook_channel::current_role::CurrentRoles;
use tenterhook_channel::fair_places::FairPlaces;
use tenterhook_channel::live_settings::LiveSettings;
use tenterhook_channel::media_folder::MediaFolder;
use tenterhook_channel::publisher::Publisher;
use tenterhook_channel::settings::{BusyMode, ChannelSettings};
use tenterhook_channel::store::Store;

/// What all conversations of a gateway share.
pub struct ConversationParts {
    /// Opens agents.
    pub profile: LiveProfile,
    /// Keeps messages and sessions.
    pub store: Store,
    /// Shows frames.
    pub publisher: Arc<dyn Publisher>,
    /// The open questions.
    pub approvals: OpenQuestions,
    /// Sends the events that belong to no session.
    pub events: GatewayEvents,
    /// One place for each turn that may run. Its holder is the sender of the first message.
    pub turns: FairPlaces,
    /// How many messages hooks of `message_receive` may judge at the same time.
    pub receives: ReceiveLimits,
    /// Finds the roles that senders have now.
    pub roles: CurrentRoles,
    /// The settings.
    pub settings: LiveSettings,
    /// Keeps files.
    pub media: MediaFolder,
}

/// How many messages hooks may judge at the same time. Recordings count separately, because their text takes long, and
/// typed messages must not wait for it.
#[derive(Debug)]
pub struct ReceiveLimits {
    typed: FairPlaces,
    recorded: FairPlaces,
}

impl ReceiveLimits {
    /// Allows `max` typed messages and `max` recordings.
    pub fn new(max: usize) -> Self {
        Self {
            typed: FairPlaces::new(max),
            recorded: FairPlaces::new(max),
        }
    }

    pub(crate) fn of(&self, has_recording: bool) -> &FairPlaces {
        if has_recording {
            &self.recorded
        } else {
            &self.typed
        }
    }
}

impl std::fmt::Debug for ConversationParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConversationParts").finish_non_exhaustive()
    }
}

impl ConversationParts {
    /// Returns the settings of a channel.
    pub(crate) fn channel(&self, id: &ChannelId) -> Option<ChannelSettings> {
        self.settings.channel(id)
    }

    /// Returns what happens to messages of a chat while the agent works.
    pub(crate) fn busy_mode(&self, chat: &ChatRef) -> BusyMode {
        let own = self.channel(&chat.channel).and_then(|channel| channel.busy);
        own.unwrap_or_else(|| self.settings.current().busy)
    }

    /// Returns what a turn for such a sender may use. A channel without settings may only read.
    pub(crate) fn access(&self, chat: &ChatRef, role: SenderRole) -> ToolAccess {
        let channel = self.channel(&chat.channel);
        ToolAccess {
            is_untrusted: role == SenderRole::Guest
                || channel.as_ref().is_none_or(|channel| channel.is_untrusted),
            tools: channel.and_then(|channel| channel.tools),
        }
    }
}
