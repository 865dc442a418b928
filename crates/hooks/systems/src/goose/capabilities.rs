//! What goose does with the effects of hooks, as measured headless with version 1.52.0.

use crate::host::capability::HostEffect::{
    Allow, Ask, BlockPrompt, Context, Continue, Deny, DenyReason, ReplaceResult, Rewrite,
};
use crate::host::capability::Support::{Honoured, Lost};
use crate::host::capability::{BlindSpot, CapabilityRow, HostEffect, Support};

const fn row(event: &'static str, effect: HostEffect, support: Support) -> CapabilityRow {
    CapabilityRow::new(event, effect, support)
}

pub(super) static CAPABILITIES: &[CapabilityRow] = &[
    row("SessionStart", Context, Lost),
    row("UserPromptSubmit", BlockPrompt, Lost),
    row("UserPromptSubmit", Context, Lost),
    row("PreToolUse", Deny, Honoured).noted("ignored by version 1.34 and earlier"),
    row("PreToolUse", DenyReason, Honoured),
    row("PreToolUse", Ask, Lost).noted("there is no such answer"),
    row("PreToolUse", Allow, Lost),
    row("PreToolUse", Rewrite, Lost),
    row("PreToolUse", Context, Lost),
    row("PostToolUse", Context, Lost).noted("hooks do not see the result either"),
    row("PostToolUse", ReplaceResult, Lost),
    row("PostToolUseFailure", Context, Lost),
    row("PostToolUseFailure", ReplaceResult, Lost),
    row("Stop", Continue, Honoured).noted("at most 8 times in a row"),
];

pub(super) static BLIND_SPOTS: &[BlindSpot] = &[
    BlindSpot {
        what: "`delegate`: all calls of the subagent",
        instead: "deny `delegate` with a guard on the tool `task`",
    },
    BlindSpot {
        what: "`execute_typescript`: all calls of the script",
        instead: "set `enabled: false` for the extension `code_execution` in `config.yaml`",
    },
];
