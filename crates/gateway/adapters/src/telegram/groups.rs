//! Groups that Telegram has moved: a group that becomes a supergroup gets another id.
//!
//! The gateway continues with the first id, so that the group keeps its session and its place in the settings. If the
//! settings list the new id, it counts from then on. Messages to a group that has moved are sent to its new id by
//! [`Api`](super::api::Api).

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::bot_api::{Update, UpdateContent};
use tenterhook_channel::channel::{ChannelError, Inlet};

/// How many ids of groups are kept in memory. Others are read from the store each time.
const MAX_KNOWN: usize = 1_000;

/// The groups whose messages were received.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// The ids in the settings.
    listed: Vec<String>,
    /// The ids under which the gateway knows groups.
    known: Mutex<BTreeMap<i64, i64>>,
}

/// A group that has another id now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Move {
    from: i64,
    to: i64,
}

impl Groups {
    pub(super) fn new(listed: Vec<String>) -> Self {
        Self {
            listed,
            known: Mutex::default(),
        }
    }

    /// Notes a move that an update reports, and gives the update the id under which the gateway knows its group.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read or written.
    pub(super) async fn trace(
        &self,
        inlet: &Inlet,
        update: &mut Update,
    ) -> Result<(), ChannelError> {
        if let Some(moved) = move_of(update) {
            self.note(inlet, moved).await?;
        }
        if let Some(id) = group_id(update) {
            *id = self.first_id(inlet, *id).await?;
        }
        Ok(())
    }

    async fn note(&self, inlet: &Inlet, Move { from, to }: Move) -> Result<(), ChannelError> {
        let first = self.first_id(inlet, from).await?;
        if first != to && !inlet.set_offset(&key(to), first).await {
            let cause = "cannot store the new id of a group".to_owned();
            return Err(ChannelError::new("not_recorded", cause));
        }
        self.known.lock().remove(&to);
        Ok(())
    }

    async fn first_id(&self, inlet: &Inlet, id: i64) -> Result<i64, ChannelError> {
        if self.listed.contains(&id.to_string()) {
            return Ok(id);
        }
        let known = self.known.lock().get(&id).copied();
        if let Some(first) = known {
            return Ok(first);
        }
        let first = inlet.offset(&key(id)).await?.unwrap_or(id);
        let mut known = self.known.lock();
        if known.len() < MAX_KNOWN {
            known.insert(id, first);
        }
        Ok(first)
    }
}

/// Returns the name under which the first id of a group is stored.
fn key(id: i64) -> String {
    format!("group/{id}")
}

fn move_of(update: &Update) -> Option<Move> {
    let UpdateContent::Message(message) = &update.content else {
        return None;
    };
    let id = message.chat.id;
    let forwards = message.migrate_to_chat_id.map(|to| Move { from: id, to });
    forwards.or_else(|| {
        message
            .migrate_from_chat_id
            .map(|from| Move { from, to: id })
    })
}

/// Returns the id of an update's chat, if it is a group. Direct chats have positive ids.
fn group_id(update: &mut Update) -> Option<&mut i64> {
    let message = match &mut update.content {
        UpdateContent::Message(message) | UpdateContent::Edited(message) => message,
        UpdateContent::CallbackQuery(query) => query.message.as_mut()?,
        UpdateContent::Other => return None,
    };
    let id = &mut message.chat.id;
    (*id < 0).then_some(id)
}
