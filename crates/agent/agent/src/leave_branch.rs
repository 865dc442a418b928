//! The options for leaving a branch of the conversation.

/// How a branch of the conversation is left. By default, the model sees nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaveBranch {
    /// Whether the model gets a summary of the branch.
    pub is_summarised: bool,
    /// Instructions for the summary.
    pub instructions: Option<String>,
    /// Whether the instructions replace the default ones instead of adding to them.
    pub replaces_instructions: bool,
    /// The label of the entry at which the conversation continues. Without a label, the entry keeps its own.
    pub label: Option<String>,
}

impl LeaveBranch {
    /// Returns the options with which the model gets a summary of the branch.
    pub fn summarised() -> Self {
        Self {
            is_summarised: true,
            ..Self::default()
        }
    }
}
