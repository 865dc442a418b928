//! What Mistral Vibe does with the effects of hooks, as measured headless with version 3.0.2.

use crate::host::capability::HostEffect::{
    Allow, Ask, Context, Continue, Deny, DenyReason, ReplaceResult, Rewrite,
};
use crate::host::capability::Support::{Honoured, Lost};
use crate::host::capability::{CapabilityRow, HostEffect, Support};

const fn row(event: &'static str, effect: HostEffect, support: Support) -> CapabilityRow {
    CapabilityRow::new(event, effect, support)
}

pub(super) static CAPABILITIES: &[CapabilityRow] = &[
    row("pre_tool", Deny, Honoured),
    row("pre_tool", DenyReason, Honoured),
    row("pre_tool", Ask, Lost).noted("there is no such answer"),
    row("pre_tool", Allow, Lost),
    row("pre_tool", Rewrite, Honoured).noted("with and without a decision"),
    row("pre_tool", Context, Lost),
    row("post_tool", Context, Honoured),
    row("post_tool", ReplaceResult, Honoured),
    row("post_agent", Continue, Honoured).noted("at most 3 times in a row"),
];
