//! Finds the chats in which the gateway can ask an owner something, and the people that the questions are about.

use serde_json::Value;

use crate::running::Running;
use tenterhook_channel::approval_card::describe_sender;
use tenterhook_channel::chat::{ChannelId, ChatRef};
use tenterhook_channel::settings::{ChannelKind, ChannelSettings, Settings};
use tenterhook_protocol::event::SenderRole;

/// The maximum number of chats in which an owner is asked.
const MAX_PLACES: usize = 8;

/// Returns the chats in which an owner can be asked now.
pub(crate) async fn owners_places(running: &Running) -> Vec<ChatRef> {
    let settings = running.settings.current();
    let mut places: Vec<ChatRef> = settings.approvals_to.iter().cloned().collect();
    let is_own = |chat: &ChatRef| settings.is_owners_chat(&chat.channel, &chat.chat);
    // The chats with the newest messages first: one of them is on the screen.
    let recent = running.store.chats(MAX_PLACES * 8).await.ok();
    let recent: Vec<ChatRef> = recent
        .into_iter()
        .flatten()
        .map(|known| known.chat)
        .collect();
    let rank = |chat: &ChatRef| recent.iter().position(|known| known == chat);
    let mut watched = running.hub.watched_chats(MAX_PLACES * 32, is_own);
    // A chat without messages is new, so it is open as well.
    watched.sort_by_key(rank);
    places.extend(watched.into_iter().take(MAX_PLACES / 2));
    for channel in settings
        .channels
        .iter()
        .filter(|channel| channel.is_enabled)
    {
        if matches!(channel.kind, ChannelKind::Telegram(_)) {
            // The id of a direct chat is the id of its person.
            places.extend(channel.access.owners.iter().map(|owner| ChatRef {
                channel: channel.id.clone(),
                chat: owner.clone(),
                thread: None,
            }));
        }
    }
    places.extend(paired_owners(running, &settings).await);
    let mut different: Vec<ChatRef> = Vec::new();
    for place in places {
        if different.len() < MAX_PLACES && !different.contains(&place) {
            different.push(place);
        }
    }
    different
}

/// Returns who was given the code in the parameters of a request: the name, which anyone can choose, and the id.
pub(crate) async fn person_with_code(running: &Running, params: &Value) -> Option<String> {
    let text = |name: &str| params.get(name).and_then(Value::as_str);
    let channel = ChannelId::new(text("channel")?).ok()?;
    let request = running.pairings.waiting(&channel, text("code")?).await?;
    Some(describe_sender(request.name.as_deref(), &request.sender))
}

/// Returns the direct chats of owners who were admitted by a code, in channels whose direct chats have the ids of their
/// senders.
async fn paired_owners(running: &Running, settings: &Settings) -> Vec<ChatRef> {
    let Ok(channels) = running.pairings.list().await else {
        return Vec::new();
    };
    let mut chats = Vec::new();
    for (name, found) in channels {
        let mut known = settings.channels.iter();
        let is_telegram = |channel: &&ChannelSettings| {
            channel.is_enabled
                && channel.id.as_str() == name
                && matches!(channel.kind, ChannelKind::Telegram(_))
        };
        let (Some(channel), Ok(found)) = (known.find(is_telegram), found) else {
            continue;
        };
        let owners = found.admitted.into_iter();
        let owners = owners.filter(|sender| sender.role == SenderRole::Owner);
        chats.extend(owners.map(|sender| ChatRef {
            channel: channel.id.clone(),
            chat: sender.sender,
            thread: None,
        }));
    }
    chats
}
