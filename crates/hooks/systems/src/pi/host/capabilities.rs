//! What pi does with the effects of hooks, as measured headless with version 0.87.1. Tenterhook's extension
//! carries them out.

use crate::host::HostMode;
use crate::host::capability::HostEffect::{
    Allow, Ask, BlockPrompt, Context, Continue, Deny, DenyReason, ReplaceResult, Rewrite,
    RewritePrompt,
};
use crate::host::capability::Support::{Honoured, Lost};
use crate::host::capability::{CapabilityRow, HostEffect, Support};

const fn row(event: &'static str, effect: HostEffect, support: Support) -> CapabilityRow {
    CapabilityRow::new(event, effect, support)
}

pub(super) static CAPABILITIES: &[CapabilityRow] = &[
    row("session_start", Context, Honoured).noted("added before the first run"),
    row("input", BlockPrompt, Honoured),
    row("input", DenyReason, Lost).noted("the person sees the reason"),
    row("input", RewritePrompt, Honoured),
    row("input", Context, Honoured).noted("added before the run"),
    row("tool_call", Deny, Honoured),
    row("tool_call", DenyReason, Honoured),
    row("tool_call", Ask, Lost)
        .in_mode(HostMode::Headless)
        .noted("no one can be asked"),
    row("tool_call", Ask, Honoured)
        .in_mode(HostMode::Interactive)
        .noted("measured in RPC mode"),
    row("tool_call", Allow, Honoured).noted("pi never asks"),
    row("tool_call", Rewrite, Honoured).noted("in place"),
    row("tool_call", Context, Lost),
    row("tool_result", Context, Honoured).noted("added to the result"),
    row("tool_result", ReplaceResult, Honoured),
    row("agent_end", Continue, Honoured).noted("without a limit of its own"),
];
