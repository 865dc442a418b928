//! What opencode does with the effects of hooks, as measured headless with version 1.18.33. Tenterhook's
//! plugin carries them out.

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
    row("session.created", Context, Honoured).noted("added to the system prompt"),
    row("chat.message", BlockPrompt, Honoured).noted("the run ends with status 1"),
    row("chat.message", DenyReason, Lost).noted("the person sees the reason"),
    row("chat.message", RewritePrompt, Honoured),
    row("chat.message", Context, Honoured).noted("added to the message"),
    row("tool.execute.before", Deny, Honoured),
    row("tool.execute.before", DenyReason, Honoured),
    row("tool.execute.before", Ask, Lost).noted("the event `permission.ask` never fires"),
    row("tool.execute.before", Allow, Lost),
    row("tool.execute.before", Rewrite, Honoured).noted("key by key; a new object is ignored"),
    row("tool.execute.before", Context, Lost),
    row("tool.execute.after", Context, Honoured).noted("added to the result"),
    row("tool.execute.after", ReplaceResult, Honoured),
    row("session.idle", Continue, Lost).noted("a new prompt does not prolong `opencode run`"),
];
