//! The model and the thinking level that a branch records.

use serde_json::{Value, json};
use tenterhook_protocol::event::SessionEntry;

use crate::sessions::entry_kind::{MODEL_CHANGE, THINKING_LEVEL_CHANGE};

/// A recorded choice of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedModel {
    /// The name with which the user chose it.
    pub name: String,
    /// Its id, `provider/model`.
    pub id: String,
}

/// The latest choices that a branch records. `None` means that nothing was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedSelection {
    /// The model.
    pub model: Option<RecordedModel>,
    /// The thinking level, as written in the entry.
    pub thinking_level: Option<String>,
}

impl RecordedSelection {
    /// Returns the latest choices that the entries of a branch record.
    pub fn of(branch: &[SessionEntry]) -> Self {
        let newest = |kind: &str| {
            let entry = branch.iter().rev().find(|entry| entry.kind == kind)?;
            entry.data.as_ref()
        };
        let text = |data: &Value, key: &str| Some(data.get(key)?.as_str()?.to_owned());
        let model = newest(MODEL_CHANGE).and_then(|data| {
            Some(RecordedModel {
                name: text(data, "name")?,
                id: text(data, "model")?,
            })
        });
        Self {
            model,
            thinking_level: newest(THINKING_LEVEL_CHANGE).and_then(|data| text(data, "level")),
        }
    }
}

/// Returns the data of an entry that records the choice of a model.
pub fn model_change(id: &str, name: &str) -> Value {
    json!({ "model": id, "name": name })
}

/// Returns the data of an entry that records the choice of a thinking level.
pub fn thinking_level_change(level: &str) -> Value {
    json!({ "level": level })
}
