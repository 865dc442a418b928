//! Copies a session while its agent works.

use tenterhook_protocol::event::SessionEntry;
use tenterhook_protocol::{Role, SessionId};

use super::Session;
use crate::sessions::view::SessionView;

impl Session {
    /// Copies the branch that a view shows into a new session with this id. If the model's last answer has tool calls
    /// without results, the copy ends before that answer. Additions that are not stored yet are left out.
    pub fn copy_of(view: &SessionView, id: SessionId) -> Self {
        let entries = view.stored_entries();
        let end = open_answer(&entries).unwrap_or(entries.len());
        Self::of_entries(id, &view.id(), entries.into_iter().take(end))
    }
}

/// Returns the position of the model's last answer, if it has a tool call without a result.
fn open_answer(entries: &[SessionEntry]) -> Option<usize> {
    let mut answered = Vec::new();
    for (place, entry) in entries.iter().enumerate().rev() {
        let Some(message) = &entry.message else {
            continue;
        };
        match message.role {
            Role::Tool => answered.extend(&message.tool_call_id),
            Role::Assistant => {
                let mut calls = message.tool_calls.iter();
                return calls
                    .any(|call| !answered.contains(&&call.id))
                    .then_some(place);
            }
            Role::User => return None,
            Role::System | _ => {}
        }
    }
    None
}
