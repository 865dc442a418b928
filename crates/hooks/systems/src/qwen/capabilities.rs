//! What Qwen Code does with the effects of hooks, as measured headless with version 0.24.4.

use crate::host::HostMode;
use crate::host::capability::HostEffect::{
    Allow, Ask, BlockPrompt, Context, Continue, Deny, DenyReason, ReplaceResult, Rewrite, StopRun,
};
use crate::host::capability::Support::{Dangerous, Honoured, Lost};
use crate::host::capability::{CapabilityRow, HostEffect, Support};

const fn row(event: &'static str, effect: HostEffect, support: Support) -> CapabilityRow {
    CapabilityRow::new(event, effect, support)
}

pub(super) static CAPABILITIES: &[CapabilityRow] = &[
    row("SessionStart", Context, Honoured),
    row("UserPromptSubmit", BlockPrompt, Honoured),
    row("UserPromptSubmit", Context, Honoured),
    row("PreToolUse", Deny, Honoured),
    row("PreToolUse", DenyReason, Honoured),
    row("PreToolUse", Ask, Lost)
        .in_mode(HostMode::Headless)
        .noted("no one can be asked"),
    row("PreToolUse", Ask, Honoured)
        .in_mode(HostMode::Interactive)
        .noted("as documented, not measured"),
    row("PreToolUse", Allow, Dangerous).noted("drops the denials of other hooks"),
    row("PreToolUse", Rewrite, Lost),
    row("PreToolUse", Context, Lost),
    row("PreToolUse", StopRun, Lost).noted("blocks the call only"),
    row("PostToolUse", Context, Honoured),
    row("PostToolUse", ReplaceResult, Lost),
    row("PostToolUseFailure", ReplaceResult, Lost),
    row("Stop", Continue, Honoured).noted("at most 7 times in a row"),
];
