//! Decides whether a sender may talk to the agent, and with which role.
//!
//! The decision has no side effects: a refused sender causes no download, no typing mark, no hook and no model call.
//! Ids are compared exactly, and names identify no one. A channel does not offer messages that its own account wrote.

use tenterhook_protocol::event::SenderRole;

use crate::chat::{MAX_FOREIGN_ID, Sender};
use crate::message::IncomingMessage;
use crate::settings::{AccessRules, ChannelKind, ChannelSettings, DirectPolicy, GroupRules};

/// The facts about a message that decide about its admission.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionFacts<'a> {
    /// The channel's id of the conversation.
    pub chat: &'a str,
    /// Who wrote the message.
    pub sender: &'a Sender,
    /// Whether the sender is alone with the agent.
    pub is_direct: bool,
    /// Whether the message is addressed to the agent.
    pub is_addressed: bool,
    /// The role of the sender's pairing. Leave it `None` if the pairings cannot be read: that admits no one.
    pub paired: Option<SenderRole>,
    /// The role of the token that the channel has checked, for the kinds `web` and `http`.
    pub authenticated: Option<SenderRole>,
}

impl<'a> AdmissionFacts<'a> {
    /// Returns the facts about a message of a sender who has neither a pairing nor a token.
    pub fn of(message: &'a IncomingMessage) -> Self {
        Self {
            chat: &message.chat.chat,
            sender: &message.sender,
            is_direct: message.is_direct,
            is_addressed: message.is_addressed,
            paired: None,
            authenticated: None,
        }
    }
}

/// The result of [`admit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// The sender may talk.
    Admitted(SenderRole),
    /// The message is ignored without a reply.
    Refused(AdmissionRefusal),
    /// The message is ignored, and the sender may be given a code to show to the owner.
    Pair,
}

/// Why a message was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionRefusal {
    /// The sender is not on a list that admits them.
    NotAdmitted,
    /// The channel takes no direct chats.
    DirectChatsOff,
    /// The group is not on the list of groups.
    GroupNotListed,
    /// The message is in a group and is not addressed to the agent.
    NotAddressed,
    /// The sender is a program that is not on the list of bots.
    Bot,
    /// The sender has no id, or one that is too long.
    NoIdentity,
}

impl AdmissionRefusal {
    /// Returns the word for counters and the journal.
    pub fn code(self) -> &'static str {
        match self {
            Self::NotAdmitted => "not_admitted",
            Self::DirectChatsOff => "direct_chats_off",
            Self::GroupNotListed => "group_not_listed",
            Self::NotAddressed => "not_addressed",
            Self::Bot => "bot",
            Self::NoIdentity => "no_identity",
        }
    }
}

/// Decides about a message of a channel.
///
/// | kind of channel | who decides |
/// |---|---|
/// | `web`, `http` | the token, which the channel has checked |
/// | `stdio` | no one: the person who started the program is the owner |
/// | `webhook` | the signature, which the channel has checked; the role is a setting |
/// | others | the [`AccessRules`] of the channel |
pub fn admit(channel: &ChannelSettings, facts: AdmissionFacts<'_>) -> Admission {
    if facts.sender.id.is_empty() || facts.sender.id.len() > MAX_FOREIGN_ID {
        return Admission::Refused(AdmissionRefusal::NoIdentity);
    }
    match &channel.kind {
        ChannelKind::Web | ChannelKind::Http => facts.authenticated.map_or(
            Admission::Refused(AdmissionRefusal::NotAdmitted),
            Admission::Admitted,
        ),
        ChannelKind::Stdio => Admission::Admitted(SenderRole::Owner),
        ChannelKind::Webhook(webhook) => Admission::Admitted(webhook.role),
        ChannelKind::Telegram(_) | ChannelKind::Command(_) => {
            admit_by_rules(&channel.access, facts)
        }
    }
}

/// Returns the role of a sender whose request is not a message, such as a tap on a button. Services do not always say
/// whether such a chat is direct, so it is direct unless it is a listed group. `None` if the sender would not be
/// admitted.
pub fn control_role(
    channel: &ChannelSettings,
    chat: &str,
    sender: &Sender,
    paired: Option<SenderRole>,
    authenticated: Option<SenderRole>,
) -> Option<SenderRole> {
    let facts = AdmissionFacts {
        chat,
        sender,
        is_direct: !channel.access.lists_group(chat),
        is_addressed: true,
        paired,
        authenticated,
    };
    match admit(channel, facts) {
        Admission::Admitted(role) => Some(role),
        Admission::Refused(_) | Admission::Pair => None,
    }
}

fn admit_by_rules(rules: &AccessRules, facts: AdmissionFacts<'_>) -> Admission {
    if facts.sender.is_bot && !lists(&rules.bots, &facts.sender.id) {
        return Admission::Refused(AdmissionRefusal::Bot);
    }
    if facts.is_direct {
        return admit_directly(rules, facts);
    }
    match &rules.groups {
        Some(groups) if lists(&groups.allow, facts.chat) => admit_in_group(rules, groups, facts),
        _ => Admission::Refused(AdmissionRefusal::GroupNotListed),
    }
}

fn admit_directly(rules: &AccessRules, facts: AdmissionFacts<'_>) -> Admission {
    if rules.direct == DirectPolicy::Off {
        return Admission::Refused(AdmissionRefusal::DirectChatsOff);
    }
    if let Some(role) = listed_role(&rules.owners, &rules.members, &facts.sender.id) {
        return Admission::Admitted(role);
    }
    match (rules.direct, facts.paired) {
        (DirectPolicy::Open, _) => Admission::Admitted(SenderRole::Guest),
        (DirectPolicy::Pairing, Some(role)) => Admission::Admitted(role),
        // A bot that is sent a code may answer it, and be sent another one, for ever.
        (DirectPolicy::Pairing, None) if !facts.sender.is_bot => Admission::Pair,
        _ => Admission::Refused(AdmissionRefusal::NotAdmitted),
    }
}

/// Admits in a listed group: a pairing and the list of members count in direct chats only.
fn admit_in_group(
    rules: &AccessRules,
    groups: &GroupRules,
    facts: AdmissionFacts<'_>,
) -> Admission {
    if groups.needs_mention && !facts.is_addressed {
        return Admission::Refused(AdmissionRefusal::NotAddressed);
    }
    let listed = groups.senders.as_deref();
    let role = listed_role(&rules.owners, listed.unwrap_or_default(), &facts.sender.id);
    match (role, listed) {
        (Some(role), _) => Admission::Admitted(role),
        (None, None) => Admission::Admitted(SenderRole::Guest),
        (None, Some(_)) => Admission::Refused(AdmissionRefusal::NotAdmitted),
    }
}

fn listed_role(owners: &[String], members: &[String], id: &str) -> Option<SenderRole> {
    if lists(owners, id) {
        Some(SenderRole::Owner)
    } else {
        lists(members, id).then_some(SenderRole::Member)
    }
}

fn lists(ids: &[String], id: &str) -> bool {
    ids.iter().any(|listed| listed == id)
}
