//! What Cline does with the effects of hooks, as measured headless with version 3.0.65.

use crate::host::capability::HostEffect::{
    Allow, Ask, BlockPrompt, Context, Continue, Deny, DenyReason, ReplaceResult, Rewrite, StopRun,
};
use crate::host::capability::Support::{Honoured, Lost};
use crate::host::capability::{CapabilityRow, HostEffect, Support};

const fn row(event: &'static str, effect: HostEffect, support: Support) -> CapabilityRow {
    CapabilityRow::new(event, effect, support)
}

pub(super) static CAPABILITIES: &[CapabilityRow] = &[
    row("TaskStart", Context, Lost),
    row("UserPromptSubmit", BlockPrompt, Lost)
        .noted("does not fire headless, and Cline does not wait for it"),
    row("UserPromptSubmit", Context, Lost),
    row("PreToolUse", Deny, Honoured).noted("the turn ends"),
    row("PreToolUse", DenyReason, Lost)
        .noted("the turn ends before the model could see the reason"),
    row("PreToolUse", Ask, Lost).noted("`review` is ignored"),
    row("PreToolUse", Allow, Lost),
    row("PreToolUse", Rewrite, Honoured),
    row("PreToolUse", Context, Honoured),
    row("PostToolUse", Context, Honoured),
    row("PostToolUse", ReplaceResult, Lost),
    row("PostToolUse", StopRun, Honoured),
    row("TaskComplete", Continue, Lost),
];
