//! Events of compaction, which replaces a conversation by a summary of it.

use serde::{Deserialize, Serialize};

use super::SessionEntry;
use crate::event_macro::event;
use crate::field_info::field_values;
use crate::id::EntryId;
use crate::message::Message;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// Who requested a compaction.
    pub enum CompactionSource {
        /// The user.
        #[default] Manual = "manual",
        /// The host, because the context reached the threshold.
        Auto = "auto",
        /// The host, because the model rejected a context that was too long.
        Overflow = "overflow",
        /// The host, because tool results pushed the context past the threshold.
        ToolOverflow = "tool_overflow",
    }
}

wire_enum! {
    /// Why a compaction happens.
    pub enum CompactionReason {
        /// The context reached the threshold.
        #[default] Threshold = "threshold",
        /// The model rejected a context that was too long.
        Overflow = "overflow",
        /// The user requested it.
        Manual = "manual",
    }
}

/// What a compaction is about to do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CompactionPreparation {
    /// The messages that the summary will replace.
    pub messages_to_summarize: Vec<Message>,
    /// The first entry that is kept unchanged.
    pub first_kept_entry_id: Option<EntryId>,
    /// The size of the context, in tokens.
    pub tokens_before: u64,
    /// The summary of the previous compaction, if there was one.
    pub previous_summary: Option<String>,
}

field_values! { Other: CompactionPreparation; }

event! {
    /// Fires as the first step of every compaction. Added context guides the summary.
    PreCompact = "pre_compact", Gate, Parallel, subject source, honours [Block, Context]
    {
        /// Who requested the compaction.
        source: CompactionSource,
        /// The user's instructions for the summary.
        custom_instructions (with_custom_instructions): Option<String>,
    }
}

event! {
    /// Fires just before the summary is written. A hook may supply the summary.
    BeforeCompaction = "before_compaction", Gate, Series, subject reason, honours [Block]
    {
        /// What the compaction is about to do.
        #[serde(default)]
        preparation (with_preparation): CompactionPreparation,
        /// The entries of the current branch of the session.
        #[serde(default)]
        branch_entries (with_branch_entries): Vec<SessionEntry>,
        /// The user's instructions for the summary.
        custom_instructions (with_custom_instructions): Option<String>,
        /// Input tokens that the session has used.
        #[serde(default)]
        input_tokens (with_input_tokens): u64,
        /// Output tokens that the session has used.
        #[serde(default)]
        output_tokens (with_output_tokens): u64,
        /// The size of the model's context window in tokens, if known.
        context_limit (with_context_limit): Option<u64>,
        /// Why the compaction happens.
        reason: CompactionReason,
    }
    supplies String
}

event! {
    /// Fires when the host starts to write the summary.
    CompactionStart = "compaction_start", Observer, Parallel
    {
        /// The size of the context, in tokens.
        tokens_before: u64,
    }
}

event! {
    /// Fires when a summary has replaced the conversation. The token counts are from before the
    /// compaction.
    AfterCompaction = "after_compaction", Observer, Parallel, subject reason
    {
        /// The session entry that holds the summary.
        compaction_entry (with_compaction_entry): Option<SessionEntry>,
        /// The summary.
        summary: String,
        /// Whether a hook supplied the summary.
        #[serde(default)]
        from_hook (with_from_hook): bool,
        /// Why the compaction happened.
        reason: CompactionReason,
        /// Input tokens that the session had used before the compaction.
        #[serde(default)]
        input_tokens (with_input_tokens): u64,
        /// Output tokens that the session had used before the compaction.
        #[serde(default)]
        output_tokens (with_output_tokens): u64,
        /// The size of the model's context window in tokens, if known.
        context_limit (with_context_limit): Option<u64>,
    }
}

event! {
    /// Fires when a compaction has failed. The conversation is unchanged.
    CompactionFailed = "compaction_failed", Observer, Parallel
    {
        /// What went wrong.
        error: String,
    }
}
