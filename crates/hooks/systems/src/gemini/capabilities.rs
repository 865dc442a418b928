//! What Gemini CLI does with the effects of hooks, as measured headless with version 0.61.0.

use crate::host::capability::HostEffect::{
    Allow, Ask, BlockPrompt, Context, Continue, Deny, DenyReason, ReplaceResult, Rewrite, StopRun,
};
use crate::host::capability::Support::{Dangerous, Honoured, Lost};
use crate::host::capability::{BlindSpot, CapabilityRow, HostEffect, Support};

const fn row(event: &'static str, effect: HostEffect, support: Support) -> CapabilityRow {
    CapabilityRow::new(event, effect, support)
}

pub(super) static CAPABILITIES: &[CapabilityRow] = &[
    row("SessionStart", Context, Honoured),
    row("BeforeAgent", BlockPrompt, Honoured),
    row("BeforeAgent", DenyReason, Lost).noted("the person sees the reason"),
    row("BeforeAgent", Context, Honoured),
    row("BeforeTool", Deny, Honoured),
    row("BeforeTool", DenyReason, Honoured),
    row("BeforeTool", Ask, Dangerous)
        .noted("headless, it waits for ever; it does not say whether it is headless"),
    row("BeforeTool", Allow, Lost).noted("tools that need approval are not offered headless"),
    row("BeforeTool", Rewrite, Honoured)
        .noted("merged with the arguments, so no argument can be removed"),
    row("BeforeTool", Context, Lost),
    row("BeforeTool", StopRun, Honoured).noted("the tool does not run"),
    row("AfterTool", Context, Honoured)
        .noted("in the tag `<hook_context>`; `<` and `>` are escaped"),
    row("AfterTool", ReplaceResult, Honoured),
    row("AfterTool", StopRun, Honoured),
    row("AfterAgent", Continue, Honoured).noted("without a limit of its own"),
];

pub(super) static BLIND_SPOTS: &[BlindSpot] = &[BlindSpot {
    what: "`invoke_agent`: who calls, because the calls of a subagent look like calls of the main agent",
    instead: "deny `invoke_agent` if subagents may do less than the main agent",
}];
