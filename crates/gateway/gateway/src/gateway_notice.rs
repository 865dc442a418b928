//! What the gateway reports to the person who runs it.

use std::sync::Arc;

use tenterhook_channel::chat::ChannelId;

use crate::reload_result::ReloadChanges;
use crate::supervisor::ChannelStatus;

/// Something that the person who runs the gateway may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GatewayNotice {
    /// A channel's state changed.
    Channel(ChannelStatus),
    /// A channel's message was refused. At most one such notice a second is given.
    Refused {
        /// The channel.
        channel: ChannelId,
        /// The sender: the name, which anyone can choose, and the id, which the owner of the gateway needs to admit them.
        sender: String,
        /// A word for the reason.
        code: &'static str,
    },
    /// The settings and the hooks were reloaded.
    Reloaded(Box<ReloadChanges>),
    /// Something failed.
    Failure(String),
    /// The gateway begins to stop, for whatever reason.
    Stopping,
}

/// Receives notices. It must not block.
pub type Observer = Arc<dyn Fn(GatewayNotice) + Send + Sync>;
