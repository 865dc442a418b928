//! The kinds of entries that a session knows. Scripts and hooks may add entries of other kinds.

/// The kind of an entry that contains a message.
pub const MESSAGE: &str = "message";

/// The kind of an entry with context from hooks at the start of the session. Compaction keeps it.
pub const CONTEXT: &str = "context";

/// The kind of an entry with the summary of the entries before it.
pub const COMPACTION: &str = "compaction";

/// The kind of an entry with the summary of a branch that the conversation left.
pub const BRANCH_SUMMARY: &str = "branch_summary";

/// The kind of an entry for a command that the user ran. The model sees it if it has a message.
pub const USER_BASH: &str = "user_bash";

/// The kind of an entry that records the choice of a model: `model` is its id, `name` is the name that was chosen.
pub const MODEL_CHANGE: &str = "model_change";

/// The kind of an entry that records the choice of a thinking level.
pub const THINKING_LEVEL_CHANGE: &str = "thinking_level_change";

/// The kind of an entry in which a script stores its own data.
pub const CUSTOM: &str = "custom";

/// The kind of a record outside the tree for a move of the leaf.
pub const LEAF: &str = "leaf";

/// The kind of a record outside the tree that gives another entry a label.
pub const LABEL: &str = "label";

/// The kind of a record outside the tree that names the session.
pub const NAME: &str = "name";
