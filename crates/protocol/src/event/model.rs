//! The user's choice of a model. Neither event fires when nothing changes.

use crate::catalogue::event;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// How a model was chosen.
    pub enum ModelSelectSource {
        /// By name.
        #[default] Set = "set",
        /// The next of a list.
        Cycle = "cycle",
        /// With a stored session.
        Restore = "restore",
    }
}

event! {
    /// Another model is in use.
    ModelSelect = "model_select", Observer, Parallel, subject model
    {
        /// `provider/model` now.
        model: String,
        /// `provider/model` before.
        previous_model: Option<String>,
        /// How it was chosen.
        #[serde(default)]
        source: ModelSelectSource,
    }
}

event! {
    /// Another thinking level is in use.
    ThinkingLevelSelect = "thinking_level_select", Observer, Parallel, subject level
    {
        /// The level now.
        level: String,
        /// The level before.
        previous_level: Option<String>,
    }
}
