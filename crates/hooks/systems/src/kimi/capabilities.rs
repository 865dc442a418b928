//! What Kimi Code does with the effects of hooks, as measured headless with version 2.1.0.

use crate::host::capability::HostEffect::{
    Allow, Ask, BlockPrompt, Context, Continue, Deny, DenyReason, ReplaceResult, Rewrite, StopRun,
};
use crate::host::capability::Support::{Dangerous, Honoured, Lost};
use crate::host::capability::{BlindSpot, CapabilityRow, HostEffect, Support};

const fn row(event: &'static str, effect: HostEffect, support: Support) -> CapabilityRow {
    CapabilityRow::new(event, effect, support)
}

pub(super) static CAPABILITIES: &[CapabilityRow] = &[
    row("UserPromptSubmit", BlockPrompt, Honoured).noted("by exit status 2"),
    row("UserPromptSubmit", Context, Honoured)
        .noted("the model sees everything that the hook prints"),
    row("PreToolUse", Deny, Honoured),
    row("PreToolUse", DenyReason, Honoured),
    row("PreToolUse", Ask, Dangerous).noted("the tool runs"),
    row("PreToolUse", Allow, Lost),
    row("PreToolUse", Rewrite, Lost),
    row("PreToolUse", Context, Lost),
    row("PreToolUse", StopRun, Lost).noted("the tool runs"),
    row("PostToolUse", Context, Lost),
    row("PostToolUse", ReplaceResult, Lost).noted("the result is not awaited"),
    row("SessionStart", Context, Lost),
    row("Stop", Continue, Honoured).noted("once, by exit status 2"),
];

pub(super) static BLIND_SPOTS: &[BlindSpot] = &[BlindSpot {
    what: "`Agent`: who calls, because the calls of a subagent look like calls of the main agent",
    instead: "deny `Agent` with a guard on the tool `task` if subagents may do less than the main agent",
}];
