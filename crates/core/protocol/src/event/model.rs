//! Events of the user's choice of a model. Neither fires when nothing changes.

use crate::event_macro::event;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// How a model was chosen.
    pub enum ModelSelectSource {
        /// The user named it.
        #[default] Set = "set",
        /// The user switched to the next model of a list.
        Cycle = "cycle",
        /// It was restored with a stored session.
        Restore = "restore",
    }
}

event! {
    /// Fires when another model has been selected.
    ModelSelect = "model_select", Observer, Parallel, subject model
    {
        /// The model now, as `provider/model`.
        model: String,
        /// The model before, as `provider/model`.
        previous_model (with_previous_model): Option<String>,
        /// How the model was chosen.
        #[serde(default)]
        source (with_source): ModelSelectSource,
    }
}

event! {
    /// Fires when another thinking level has been selected.
    ThinkingLevelSelect = "thinking_level_select", Observer, Parallel, subject level
    {
        /// The level now.
        level: String,
        /// The level before.
        previous_level (with_previous_level): Option<String>,
    }
}
