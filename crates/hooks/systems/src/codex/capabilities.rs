//! What Codex does with the effects of hooks, as measured headless with version 0.169.0.

use crate::host::capability::HostEffect::{
    Allow, Ask, BlockPrompt, Context, Continue, Deny, DenyReason, ReplaceResult, Rewrite, StopRun,
};
use crate::host::capability::Support::{Dangerous, Honoured};
use crate::host::capability::{BlindSpot, CapabilityRow, HostEffect, Support};

const fn row(event: &'static str, effect: HostEffect, support: Support) -> CapabilityRow {
    CapabilityRow::new(event, effect, support)
}

pub(super) static CAPABILITIES: &[CapabilityRow] = &[
    row("SessionStart", Context, Honoured),
    row("SessionStart", StopRun, Honoured),
    row("UserPromptSubmit", BlockPrompt, Honoured),
    row("UserPromptSubmit", Context, Honoured),
    row("UserPromptSubmit", StopRun, Honoured),
    row("PreToolUse", Deny, Honoured),
    row("PreToolUse", DenyReason, Honoured),
    row("PreToolUse", Ask, Dangerous).noted("the answer is dropped and the tool runs"),
    row("PreToolUse", Allow, Honoured)
        .noted("only together with changed arguments; alone, the answer is dropped"),
    row("PreToolUse", Rewrite, Honoured).noted("only together with an approval"),
    row("PreToolUse", Context, Honoured),
    row("PreToolUse", StopRun, Dangerous).noted("the answer is dropped and the tool runs"),
    row("PermissionRequest", Deny, Honoured)
        .noted("as documented, not measured; never fires in `codex exec`"),
    row("PermissionRequest", DenyReason, Honoured).noted("as documented, not measured"),
    row("PermissionRequest", Allow, Honoured).noted("as documented, not measured"),
    row("PermissionRequest", Ask, Honoured).noted("no answer: Codex asks"),
    row("PostToolUse", Context, Honoured),
    row("PostToolUse", ReplaceResult, Honoured).noted("a block replaces the result by its reason"),
    row("PostToolUse", StopRun, Dangerous).noted("replaces the result instead"),
    row("Stop", Continue, Honoured).noted("any number of times in a row"),
    row("SubagentStart", Context, Honoured).noted("as documented, not measured"),
    row("PreCompact", Deny, Honoured).noted("as documented, not measured"),
];

pub(super) static BLIND_SPOTS: &[BlindSpot] = &[
    BlindSpot {
        what: "`write_stdin`: what the model types into a running program, such as a shell",
        instead: "set `unified_exec_tty = false` under `[features]` in `config.toml`, so that programs have no input",
    },
    BlindSpot {
        what: "code mode: a script cannot get a changed result; it gets an error whose text is the changed result",
        instead: "set `code_mode = false` under `[features]`, and choose a model without code mode",
    },
];
