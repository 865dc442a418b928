//! Events of a session: where it is stored, and how it starts, forks, moves in its tree and ends.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event_macro::event;
use crate::field::IntoField;
use crate::field_info::field_values;
use crate::id::{EntryId, SessionId};
use crate::message::Message;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// Why a session starts.
    pub enum SessionSource {
        /// The program started.
        #[default] Startup = "startup",
        /// A stored session is resumed.
        Resume = "resume",
        /// The user asked for a new session.
        New = "new",
        /// The session was forked from another.
        Fork = "fork",
        /// The user cleared the session.
        Clear = "clear",
        /// The session continues after a compaction.
        Compact = "compact",
        /// Hooks or configuration were reloaded.
        Reload = "reload",
    }
}

wire_enum! {
    /// Why the host looks for resources.
    pub enum DiscoverReason {
        /// The program started.
        #[default] Startup = "startup",
        /// The configuration was reloaded.
        Reload = "reload",
    }
}

wire_enum! {
    /// What kind of session the user switches to.
    pub enum SwitchReason {
        /// A new session.
        #[default] New = "new",
        /// A stored session.
        Resume = "resume",
    }
}

wire_enum! {
    /// Where a fork cuts the conversation.
    pub enum ForkPosition {
        /// Before the entry: the fork does not include it.
        #[default] Before = "before",
        /// After the entry: the fork includes it.
        At = "at",
    }
}

wire_enum! {
    /// Why a session ends.
    pub enum SessionEndReason {
        /// The program exits.
        #[default] Quit = "quit",
        /// A new session replaces it.
        New = "new",
        /// A stored session replaces it.
        Resume = "resume",
        /// A fork replaces it.
        Fork = "fork",
        /// The configuration is being reloaded.
        Reload = "reload",
        /// The user cleared the session.
        Clear = "clear",
        /// An error ended the session.
        Error = "error",
    }
}

/// Reads the spelling in JSON. Hosts have reasons of their own, such as `done`: any other word counts as
/// [`Quit`](SessionEndReason::Quit).
///
/// ```
/// use tenterhook_protocol::event::{SessionEnd, SessionEndReason};
///
/// assert_eq!(SessionEnd::new("clear").reason, SessionEndReason::Clear);
/// assert_eq!(SessionEnd::new("done").reason, SessionEndReason::Quit);
/// ```
impl IntoField<SessionEndReason> for &str {
    fn into_field(self) -> SessionEndReason {
        let mut known = SessionEndReason::ALL.iter();
        known
            .find(|it| it.as_str() == self)
            .copied()
            .unwrap_or_default()
    }
}

/// One entry of a session's tree.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SessionEntry {
    /// The id of the entry.
    pub id: EntryId,
    /// The id of the entry before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<EntryId>,
    /// When the entry was created, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub time: Option<Timestamp>,
    /// The type of the entry: `message`, `compaction`, `context` …
    pub kind: String,
    /// The message, if the entry is a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// Other data of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// What a move within the session's tree is about to do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TreePreparation {
    /// The entry to move to.
    pub target_id: EntryId,
    /// The last entry of the branch that is left.
    pub old_leaf_id: Option<EntryId>,
    /// The last entry that both branches share.
    pub common_ancestor_id: Option<EntryId>,
    /// The entries that a summary of the branch would cover.
    pub entries_to_summarize: Vec<SessionEntry>,
    /// Whether the user requested a summary.
    pub user_wants_summary: bool,
    /// Instructions for the summary.
    pub custom_instructions: Option<String>,
    /// Whether these instructions replace the default ones.
    pub replace_instructions: bool,
    /// A label for the branch.
    pub label: Option<String>,
}

field_values! { Other: SessionEntry, TreePreparation; }

event! {
    /// Fires when the host determines the directory in which it stores sessions.
    SessionDirectoryResolve = "session_directory_resolve", Observer, Series
    {
        /// The directory that is used unless a hook changes it.
        default_directory: PathBuf,
    }
    rewrites {
        replace replace_directory => default_directory,
    }
}

event! {
    /// Fires when a session has begun. Added context stays in the session.
    SessionStart = "session_start", Observer, Parallel, subject source, honours [Context]
    {
        /// Why the session starts.
        source: SessionSource,
        /// The session that this one replaces.
        previous_session (with_previous_session): Option<SessionId>,
    }
}

event! {
    /// Fires when the host looks for skills, prompts and themes.
    ResourcesDiscover = "resources_discover", Observer, Parallel, subject reason
    {
        /// Why the host looks for resources.
        reason: DiscoverReason,
    }
    collects {
        /// A folder or file of skills.
        skill_path, skill_paths(Vec<PathBuf>),
        /// A folder or file of prompt templates.
        prompt_path, prompt_paths(Vec<PathBuf>),
        /// A folder or file of themes.
        theme_path, theme_paths(Vec<PathBuf>),
    }
}

event! {
    /// Fires before another session replaces this one.
    SessionBeforeSwitch = "session_before_switch", Gate, Series, subject reason, honours [Block]
    {
        /// What kind of session comes next.
        reason: SwitchReason,
        /// The session to switch to, if it already exists.
        target_session (with_target_session): Option<SessionId>,
    }
}

event! {
    /// Fires when another session has replaced this one.
    SessionSwitch = "session_switch", Observer, Parallel, subject reason
    {
        /// What kind of session came next.
        reason: SwitchReason,
        /// The session that was left.
        previous_session (with_previous_session): Option<SessionId>,
    }
}

event! {
    /// Fires before the session is forked.
    SessionBeforeFork = "session_before_fork", Gate, Series, subject position, honours [Block]
    {
        /// The entry to fork at.
        entry_id: EntryId,
        /// Whether the fork is cut before or after the entry.
        position: ForkPosition,
        /// Whether the fork starts without the earlier conversation.
        #[serde(default)]
        skip_conversation_restore (with_skip_conversation_restore): bool,
    }
    rewrites {
        replace skip_conversation_restore => skip_conversation_restore,
    }
}

event! {
    /// Fires when the session has been forked.
    SessionFork = "session_fork", Observer, Parallel
    {
        /// The entry at which the session was forked.
        entry_id: EntryId,
        /// The session that was forked.
        previous_session (with_previous_session): Option<SessionId>,
    }
}

event! {
    /// Fires before the user moves to another entry of the session's tree.
    SessionBeforeTree = "session_before_tree", Gate, Series, honours [Block]
    {
        /// What the move is about to do.
        preparation: TreePreparation,
    }
    rewrites {
        replace custom_instructions => preparation.custom_instructions,
        replace replace_instructions => preparation.replace_instructions,
        replace label => preparation.label,
    }
    supplies String
}

event! {
    /// Fires when the session has moved to another entry of its tree.
    SessionTree = "session_tree", Observer, Parallel
    {
        /// The last entry of the branch that is current now.
        new_leaf_id: EntryId,
        /// The last entry of the branch that was left.
        old_leaf_id (with_old_leaf_id): Option<EntryId>,
        /// The entry that holds the summary of the branch that was left.
        summary_entry (with_summary_entry): Option<SessionEntry>,
        /// Whether a hook supplied the summary.
        #[serde(default)]
        from_hook (with_from_hook): bool,
    }
}

event! {
    /// Fires when the session's name has changed.
    SessionInfoChange = "session_info_change", Observer, Parallel
    {
        /// The new name.
        name: String,
    }
}

event! {
    /// Fires when the session ends. By default, all its hooks together have ten seconds.
    SessionEnd = "session_end", Observer, Parallel, subject reason
    {
        /// Why the session ends.
        reason: SessionEndReason,
        /// The session that replaces it.
        target_session (with_target_session): Option<SessionId>,
    }
}
