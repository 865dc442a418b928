//! Replaces results with a notice when a hook that may redact them has failed.
//!
//! The notice keeps only the parts of the old value without which the conversation would be
//! invalid: the role of a message, and the call that a tool message answers.

use serde_json::Value;

use crate::JsonObject;
use crate::content::ContentBlock;
use crate::message::{Message, Messages};

/// A value that a notice can replace.
pub(crate) trait Withhold {
    /// Replaces the value with `notice`, or clears it if the type cannot hold text.
    fn withhold(&mut self, notice: &str);
}

impl Withhold for String {
    fn withhold(&mut self, notice: &str) {
        notice.clone_into(self);
    }
}

impl Withhold for Vec<ContentBlock> {
    fn withhold(&mut self, notice: &str) {
        *self = vec![ContentBlock::text(notice)];
    }
}

impl Withhold for Option<JsonObject> {
    fn withhold(&mut self, _notice: &str) {
        *self = None;
    }
}

impl Withhold for Value {
    fn withhold(&mut self, notice: &str) {
        *self = Self::String(notice.to_owned());
    }
}

/// A withheld message requests no tool calls, because their arguments are part of the message.
impl Withhold for Message {
    fn withhold(&mut self, notice: &str) {
        *self = Self {
            role: self.role,
            tool_call_id: self.tool_call_id.take(),
            is_error: self.is_error,
            ..Self::text(self.role, notice)
        };
    }
}

/// A withheld conversation becomes one user message, which every model service accepts.
impl Withhold for Messages {
    fn withhold(&mut self, notice: &str) {
        *self = vec![Message::user(notice)].into();
    }
}
