//! The role that the sender of an earlier message has now.
//!
//! Work can follow a message long after it was admitted. By then the owner may have removed the sender, or changed what
//! the sender may do.

use tenterhook_protocol::event::SenderRole;
use thiserror::Error;

use crate::admission::{Admission, AdmissionFacts, AdmissionRefusal, admit};
use crate::chat::ChannelId;
use crate::live_settings::LiveSettings;
use crate::message::IncomingMessage;
use crate::pairing::{PairingError, Pairings};
use crate::token::{DEFAULT_USER, Tokens};

/// Finds the current roles of senders in the settings, the pairings and the tokens. Clones share them.
#[derive(Debug, Clone)]
pub struct CurrentRoles {
    settings: LiveSettings,
    pairings: Pairings,
    tokens: Option<Tokens>,
}

/// Why a sender may no longer talk to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CurrentRoleError {
    /// The channel was removed or switched off.
    #[error("the channel `{channel}` is not in use any more")]
    NoChannel {
        /// The channel.
        channel: ChannelId,
    },
    /// The sender is no longer admitted.
    #[error("the sender may no longer talk to the agent ({})", .refusal.code())]
    Refused {
        /// Why.
        refusal: AdmissionRefusal,
    },
    /// It is unknown whether the sender is admitted.
    #[error("the role of the sender is unknown: {0}")]
    Unknown(#[from] PairingError),
}

impl CurrentRoles {
    /// Finds roles without tokens: only the default user is admitted in channels of the kinds `web` and `http`.
    pub fn new(settings: LiveSettings, pairings: Pairings) -> Self {
        Self {
            settings,
            pairings,
            tokens: None,
        }
    }

    /// Finds the roles of senders with tokens too.
    #[must_use]
    pub fn with_tokens(self, tokens: Tokens) -> Self {
        Self {
            tokens: Some(tokens),
            ..self
        }
    }

    /// Returns a role that was given to the sender of a message, or the sender's current role if that is smaller.
    ///
    /// # Errors
    ///
    /// Fails if the sender would not be admitted.
    pub async fn at_most(
        &self,
        role: SenderRole,
        message: &IncomingMessage,
    ) -> Result<SenderRole, CurrentRoleError> {
        let current = self.of(message).await?;
        Ok(if rank(current) < rank(role) {
            current
        } else {
            role
        })
    }

    /// Returns the role of a user of the page or of HTTP. The default user runs the gateway and can log in at any time, so
    /// the end of a login does not remove this user.
    fn authenticated(&self, user: &str) -> Option<SenderRole> {
        if user == DEFAULT_USER {
            return Some(SenderRole::Owner);
        }
        self.tokens.as_ref().and_then(|tokens| tokens.role_of(user))
    }

    /// Returns the role that the sender of a message would have if the message arrived now, addressed to the agent.
    ///
    /// # Errors
    ///
    /// Fails if the sender would not be admitted.
    pub async fn of(&self, message: &IncomingMessage) -> Result<SenderRole, CurrentRoleError> {
        let (id, sender) = (&message.chat.channel, &message.sender.id);
        let channel = self.settings.channel(id).filter(|it| it.is_enabled);
        let channel = channel.ok_or_else(|| CurrentRoleError::NoChannel {
            channel: id.clone(),
        })?;
        let facts = AdmissionFacts {
            // The rule about mentions is for new messages, and not for what a person may do.
            is_addressed: true,
            authenticated: self.authenticated(sender),
            ..AdmissionFacts::of(message)
        };
        let paired = match admit(&channel, facts) {
            Admission::Admitted(role) => return Ok(role),
            Admission::Refused(refusal) => return Err(CurrentRoleError::Refused { refusal }),
            Admission::Pair => self.pairings.role(id, sender).await?,
        };
        paired.ok_or(CurrentRoleError::Refused {
            refusal: AdmissionRefusal::NotAdmitted,
        })
    }
}

/// Returns how much a role may do. A larger number means more.
pub fn rank(role: SenderRole) -> u8 {
    if role == SenderRole::Owner {
        2
    } else {
        u8::from(role == SenderRole::Member)
    }
}
