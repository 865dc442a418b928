//! What Claude Code does with the effects of hooks, as measured headless with version 2.1.330.

use crate::host::HostMode;
use crate::host::capability::HostEffect::{
    Allow, Ask, BlockPrompt, Context, Continue, Deny, DenyReason, ReplaceResult, Rewrite, StopRun,
};
use crate::host::capability::Support::{Honoured, Lost};
use crate::host::capability::{CapabilityRow, HostEffect, Support};

const fn row(event: &'static str, effect: HostEffect, support: Support) -> CapabilityRow {
    CapabilityRow::new(event, effect, support)
}

pub(super) static CAPABILITIES: &[CapabilityRow] = &[
    row("SessionStart", Context, Honoured),
    row("UserPromptSubmit", BlockPrompt, Honoured),
    row("UserPromptSubmit", DenyReason, Lost).noted("the person sees the reason"),
    row("UserPromptSubmit", Context, Honoured),
    row("PreToolUse", Deny, Honoured),
    row("PreToolUse", DenyReason, Honoured),
    row("PreToolUse", Ask, Lost)
        .in_mode(HostMode::Headless)
        .noted("no one can be asked"),
    row("PreToolUse", Ask, Honoured)
        .in_mode(HostMode::Interactive)
        .noted("as documented, not measured"),
    row("PreToolUse", Allow, Honoured),
    row("PreToolUse", Rewrite, Honoured).noted("with and without a decision"),
    row("PreToolUse", Context, Honoured)
        .noted("up to 10,000 characters; of longer texts, the model sees the beginning"),
    row("PreToolUse", StopRun, Honoured).noted("the tool runs, then the turn ends"),
    row("PermissionRequest", Deny, Honoured),
    row("PermissionRequest", DenyReason, Honoured),
    row("PermissionRequest", Allow, Honoured).noted("fires headless too since 2.1.330"),
    row("PermissionRequest", Rewrite, Honoured).noted("only with an approval; not measured"),
    row("PermissionRequest", Ask, Lost).in_mode(HostMode::Headless),
    row("PermissionRequest", Ask, Honoured)
        .in_mode(HostMode::Interactive)
        .noted("no answer: Claude Code asks"),
    row("PostToolUse", Context, Honoured),
    row("PostToolUse", ReplaceResult, Honoured).noted("in the form of the tool's own result"),
    row("PostToolUse", StopRun, Honoured).noted("as documented, not measured"),
    row("PostToolUseFailure", Context, Honoured),
    row("PostToolUseFailure", ReplaceResult, Lost),
    row("Stop", Continue, Honoured).noted("at most 8 times in a row"),
    row("SubagentStart", Context, Honoured).noted("as documented, not measured"),
    row("PreCompact", Deny, Honoured).noted("as documented, not measured"),
    row("SessionEnd", Context, Lost).noted("all hooks together have 1.5 seconds"),
];
