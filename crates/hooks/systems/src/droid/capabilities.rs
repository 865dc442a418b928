//! What Factory droid does with the effects of hooks, as measured headless with version 0.215.0.

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
    row("UserPromptSubmit", BlockPrompt, Lost)
        .in_mode(HostMode::Headless)
        .noted("the event never fires in `droid exec`"),
    row("UserPromptSubmit", BlockPrompt, Honoured)
        .in_mode(HostMode::Interactive)
        .noted("as documented, not measured"),
    row("UserPromptSubmit", Context, Lost).in_mode(HostMode::Headless),
    row("UserPromptSubmit", Context, Honoured)
        .in_mode(HostMode::Interactive)
        .noted("as documented, not measured"),
    row("PreToolUse", Deny, Honoured),
    row("PreToolUse", DenyReason, Honoured),
    row("PreToolUse", Ask, Dangerous).noted("the tool runs"),
    row("PreToolUse", Allow, Dangerous).noted("drops the denials of other hooks"),
    row("PreToolUse", Rewrite, Honoured),
    row("PreToolUse", Context, Lost),
    row("PreToolUse", StopRun, Honoured).noted("the tool does not run"),
    row("PostToolUse", Context, Honoured),
    row("PostToolUse", ReplaceResult, Lost),
    row("Stop", Continue, Honoured).noted("any number of times in a row"),
];
