//! Compaction: the conversation is replaced by a summary of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SessionEntry;
use crate::catalogue::event;
use crate::id::EntryId;
use crate::message::Message;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// Who asked for a compaction.
    pub enum CompactionSource {
        /// The user.
        #[default] Manual = "manual",
        /// The threshold was reached.
        Auto = "auto",
        /// The model refused a context that was too long.
        Overflow = "overflow",
        /// Tool results pushed the context past the threshold.
        ToolOverflow = "tool_overflow",
    }
}

wire_enum! {
    /// Why a compaction happens.
    pub enum CompactionReason {
        /// The threshold was reached.
        #[default] Threshold = "threshold",
        /// The model refused a context that was too long.
        Overflow = "overflow",
        /// The user asked.
        Manual = "manual",
    }
}

/// What a compaction is about to do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompactionPreparation {
    /// The messages that the summary will stand for.
    pub messages_to_summarize: Vec<Message>,
    /// The first entry that is kept as it is.
    pub first_kept_entry_id: Option<EntryId>,
    /// The context's size in tokens.
    pub tokens_before: u64,
    /// The summary of an earlier compaction.
    pub previous_summary: Option<String>,
}

event! {
    /// First step of every compaction. Context steers the summary.
    PreCompact = "pre_compact", Gate, Parallel, subject source, honours [Block, Context]
    {
        /// Who asked.
        source: CompactionSource,
        /// The user's instructions for the summary.
        custom_instructions: Option<String>,
    }
}

event! {
    /// Just before the summary is made. A hook may supply it.
    BeforeCompaction = "before_compaction", Gate, Series, subject reason, honours [Block]
    {
        /// What is about to happen.
        #[serde(default)]
        preparation: CompactionPreparation,
        /// The entries of the branch.
        #[serde(default)]
        branch_entries: Vec<SessionEntry>,
        /// The user's instructions for the summary.
        custom_instructions: Option<String>,
        /// Input tokens of the session.
        #[serde(default)]
        input_tokens: u64,
        /// Output tokens of the session.
        #[serde(default)]
        output_tokens: u64,
        /// The model's context window in tokens, if known.
        context_limit: Option<u64>,
        /// Why it happens.
        reason: CompactionReason,
    }
    supplies String
}

event! {
    /// The summary is being made.
    CompactionStart = "compaction_start", Observer, Parallel
    {
        /// The context's size in tokens.
        tokens_before: u64,
    }
}

event! {
    /// A summary took the conversation's place. Token counts are those of before.
    AfterCompaction = "after_compaction", Observer, Parallel, subject reason
    {
        /// The session entry that holds the summary.
        compaction_entry: Option<SessionEntry>,
        /// The summary.
        summary: String,
        /// The summary came from a hook.
        #[serde(default)]
        from_hook: bool,
        /// Why it happened.
        reason: CompactionReason,
        /// Input tokens before it.
        #[serde(default)]
        input_tokens: u64,
        /// Output tokens before it.
        #[serde(default)]
        output_tokens: u64,
        /// The model's context window in tokens, if known.
        context_limit: Option<u64>,
    }
}

event! {
    /// A compaction failed; the conversation is as it was.
    CompactionFailed = "compaction_failed", Observer, Parallel
    {
        /// What went wrong.
        error: String,
    }
}
