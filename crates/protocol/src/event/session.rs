//! The life of a session: where it lives, how it starts, forks, moves in its tree and ends.

use std::path::PathBuf;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalogue::event;
use crate::id::{EntryId, SessionId};
use crate::message::Message;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// Why a session starts.
    pub enum SessionSource {
        /// The program started.
        #[default] Startup = "startup",
        /// A stored session goes on.
        Resume = "resume",
        /// The user asked for a new session.
        New = "new",
        /// The session was forked from another.
        Fork = "fork",
        /// The user cleared the session.
        Clear = "clear",
        /// The session goes on after compaction.
        Compact = "compact",
        /// Hooks or configuration were loaded again.
        Reload = "reload",
    }
}

wire_enum! {
    /// Why resources are looked for.
    pub enum DiscoverReason {
        /// The program started.
        #[default] Startup = "startup",
        /// Configuration was loaded again.
        Reload = "reload",
    }
}

wire_enum! {
    /// What the user switches to.
    pub enum SwitchReason {
        /// A new session.
        #[default] New = "new",
        /// A stored session.
        Resume = "resume",
    }
}

wire_enum! {
    /// Where a fork is cut.
    pub enum ForkPosition {
        /// Before the entry.
        #[default] Before = "before",
        /// After the entry.
        At = "at",
    }
}

wire_enum! {
    /// Why a session ends.
    pub enum SessionEndReason {
        /// The program ends.
        #[default] Quit = "quit",
        /// A new session takes its place.
        New = "new",
        /// A stored session takes its place.
        Resume = "resume",
        /// A fork takes its place.
        Fork = "fork",
        /// Configuration is loaded again.
        Reload = "reload",
        /// The user cleared it.
        Clear = "clear",
        /// An error ended it.
        Error = "error",
    }
}

/// One entry of a session's tree.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionEntry {
    /// The entry.
    pub id: EntryId,
    /// The entry before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<EntryId>,
    /// When it was made, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub time: Option<Timestamp>,
    /// What it is: `message`, `compaction`, `context` …
    pub kind: String,
    /// The message, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// What else the entry holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// What a move in the session's tree is about to do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TreePreparation {
    /// The entry to go to.
    pub target_id: EntryId,
    /// The leaf that is left.
    pub old_leaf_id: Option<EntryId>,
    /// The last entry that both branches share.
    pub common_ancestor_id: Option<EntryId>,
    /// The entries that a branch summary would be made of.
    pub entries_to_summarize: Vec<SessionEntry>,
    /// The user asked for a summary.
    pub user_wants_summary: bool,
    /// Instructions for the summary.
    pub custom_instructions: Option<String>,
    /// The instructions take the place of the default ones.
    pub replace_instructions: bool,
    /// A label for the branch.
    pub label: Option<String>,
}

event! {
    /// The host looks for the folder that sessions are stored in.
    SessionDirectoryResolve = "session_directory_resolve", Observer, Series
    {
        /// Where sessions go unless a hook says otherwise.
        default_directory: PathBuf,
    }
    rewrites {
        replace replace_directory => default_directory,
    }
}

event! {
    /// A session began. Context stays in the session.
    SessionStart = "session_start", Observer, Parallel, subject source, honours [Context]
    {
        /// Why it starts.
        source: SessionSource,
        /// The session that this one takes the place of.
        previous_session: Option<SessionId>,
    }
}

event! {
    /// The host looks for skills, prompts and themes.
    ResourcesDiscover = "resources_discover", Observer, Parallel, subject reason
    {
        /// Why it looks.
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
    /// Another session is about to take this one's place.
    SessionBeforeSwitch = "session_before_switch", Gate, Series, subject reason, honours [Block]
    {
        /// What comes next.
        reason: SwitchReason,
        /// The session to go to, if it exists already.
        target_session: Option<SessionId>,
    }
}

event! {
    /// Another session took its place.
    SessionSwitch = "session_switch", Observer, Parallel, subject reason
    {
        /// What came next.
        reason: SwitchReason,
        /// The session that was left.
        previous_session: Option<SessionId>,
    }
}

event! {
    /// The session is about to be forked.
    SessionBeforeFork = "session_before_fork", Gate, Series, subject position, honours [Block]
    {
        /// The entry to fork at.
        entry_id: EntryId,
        /// Where the cut is.
        position: ForkPosition,
        /// The fork starts without the conversation before it.
        #[serde(default)]
        skip_conversation_restore: bool,
    }
    rewrites {
        replace skip_conversation_restore => skip_conversation_restore,
    }
}

event! {
    /// The session was forked.
    SessionFork = "session_fork", Observer, Parallel
    {
        /// The entry it was forked at.
        entry_id: EntryId,
        /// The session it was forked from.
        previous_session: Option<SessionId>,
    }
}

event! {
    /// The user is about to go to another entry of the session's tree.
    SessionBeforeTree = "session_before_tree", Gate, Series, honours [Block]
    {
        /// What is about to happen.
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
    /// The session went to another entry of its tree.
    SessionTree = "session_tree", Observer, Parallel
    {
        /// The leaf now.
        new_leaf_id: EntryId,
        /// The leaf before.
        old_leaf_id: Option<EntryId>,
        /// The entry that holds the branch summary.
        summary_entry: Option<SessionEntry>,
        /// The summary came from a hook.
        #[serde(default)]
        from_hook: bool,
    }
}

event! {
    /// The session's name changed.
    SessionInfoChange = "session_info_change", Observer, Parallel
    {
        /// The new name.
        name: String,
    }
}

event! {
    /// The session ends. Its hooks have ten seconds together unless configured otherwise.
    SessionEnd = "session_end", Observer, Parallel, subject reason
    {
        /// Why it ends.
        reason: SessionEndReason,
        /// The session that takes its place.
        target_session: Option<SessionId>,
    }
}
