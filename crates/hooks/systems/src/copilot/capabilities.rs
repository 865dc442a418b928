//! What Copilot CLI does with the effects of hooks, as measured headless with version 1.0.102.

use crate::host::HostMode;
use crate::host::capability::HostEffect::{
    Allow, Ask, BlockPrompt, Context, Continue, Deny, DenyReason, ReplaceResult, Rewrite,
    RewritePrompt, StopRun,
};
use crate::host::capability::Support::{Honoured, Lost};
use crate::host::capability::{CapabilityRow, HostEffect, Support};

const fn row(event: &'static str, effect: HostEffect, support: Support) -> CapabilityRow {
    CapabilityRow::new(event, effect, support)
}

pub(super) static CAPABILITIES: &[CapabilityRow] = &[
    row("sessionStart", Context, Honoured),
    row("userPromptSubmitted", BlockPrompt, Honoured).noted("the program exits with 1"),
    row("userPromptSubmitted", Context, Honoured),
    row("userPromptSubmitted", RewritePrompt, Honoured),
    row("preToolUse", Deny, Honoured),
    row("preToolUse", DenyReason, Honoured),
    row("preToolUse", Ask, Lost)
        .in_mode(HostMode::Headless)
        .noted("no one can be asked"),
    row("preToolUse", Ask, Honoured)
        .in_mode(HostMode::Interactive)
        .noted("as documented, not measured"),
    row("preToolUse", Allow, Honoured),
    row("preToolUse", Rewrite, Honoured),
    row("preToolUse", Context, Honoured),
    row("preToolUse", StopRun, Lost).noted("the tool runs"),
    row("postToolUse", Context, Honoured),
    row("postToolUse", ReplaceResult, Honoured),
    row("postToolUseFailure", Context, Honoured).noted("as documented, not measured"),
    row("agentStop", Continue, Honoured).noted("at most 8 times in a row"),
    row("notification", Context, Honoured).noted("as documented, not measured"),
];
