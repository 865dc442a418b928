//! The keys that the reference agent sets in [`Message::extra`](crate::Message::extra).
//!
//! They tell what a message is and where it comes from. They are stored with the message, and hooks see them, but they
//! are not sent to models. Other hosts may set the same keys.

/// The kind of a user message that the user did not type: [`EXTENSION`], [`COMPACTION_SUMMARY`],
/// [`BRANCH_SUMMARY`] or [`USER_BASH`].
pub const KIND: &str = "kind";

/// The [`KIND`] of a message that an extension sent. It may have [`CUSTOM_TYPE`], [`DISPLAY`] and [`DETAILS`].
pub const EXTENSION: &str = "extension";

/// The [`KIND`] of the summary that replaces a conversation. It has [`SUMMARY`] and [`TOKENS_BEFORE`].
pub const COMPACTION_SUMMARY: &str = "compaction_summary";

/// The [`KIND`] of the summary of a branch that the conversation left. It has [`SUMMARY`] and [`FROM_ENTRY`].
pub const BRANCH_SUMMARY: &str = "branch_summary";

/// The [`KIND`] of a command that the user ran. It has [`COMMAND`], [`OUTPUT`], [`EXIT_CODE`], [`CANCELLED`] and
/// [`TRUNCATED`].
pub const USER_BASH: &str = "user_bash";

/// The name that an extension gives to its kind of messages.
pub const CUSTOM_TYPE: &str = "custom_type";

/// Whether the user sees a message of an extension. The model always does.
pub const DISPLAY: &str = "display";

/// Structured data of a tool result or of an extension's message.
pub const DETAILS: &str = "details";

/// The text of a summary, without its introduction.
pub const SUMMARY: &str = "summary";

/// The context's size before a compaction, in tokens.
pub const TOKENS_BEFORE: &str = "tokens_before";

/// The entry after which the conversation continues with a branch summary.
pub const FROM_ENTRY: &str = "from_entry";

/// The command line that the user ran.
pub const COMMAND: &str = "command";

/// The output of the user's command.
pub const OUTPUT: &str = "output";

/// The exit status of the user's command.
pub const EXIT_CODE: &str = "exit_code";

/// Whether the user's command was cancelled.
pub const CANCELLED: &str = "cancelled";

/// Whether the output of the user's command was shortened.
pub const TRUNCATED: &str = "truncated";

/// The tool that a tool result comes from.
pub const TOOL_NAME: &str = "tool_name";

/// The model that wrote an answer, as `provider/model`.
pub const MODEL: &str = "model";

/// The token counts of the call that returned an answer.
pub const USAGE: &str = "usage";

/// The price of the call that returned an answer, in US dollars.
pub const COST: &str = "cost";

/// All keys.
pub const KEYS: [&str; 16] = [
    KIND,
    CUSTOM_TYPE,
    DISPLAY,
    DETAILS,
    SUMMARY,
    TOKENS_BEFORE,
    FROM_ENTRY,
    COMMAND,
    OUTPUT,
    EXIT_CODE,
    CANCELLED,
    TRUNCATED,
    TOOL_NAME,
    MODEL,
    USAGE,
    COST,
];

/// The keys whose values repeat what a message says. A hook that replaces the content of a message also removes them,
/// unless it sets them itself.
pub const REPEATS_CONTENT: [&str; 4] = [DETAILS, SUMMARY, COMMAND, OUTPUT];
