//! The interception points of morphix.

use tenterhook_engine::EventKind;

/// An interception point of morphix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MorphixEvent {
    /// morphix's name for the event.
    pub name: &'static str,
    /// The event of the catalogue.
    pub kind: EventKind,
}

const fn point(name: &'static str, kind: EventKind) -> MorphixEvent {
    MorphixEvent { name, kind }
}

/// The interception points of morphix.
pub const EVENTS: &[MorphixEvent] = &[
    point("on_before_tool", EventKind::PreToolUse),
    point("on_after_tool", EventKind::PostToolUse),
    point("on_tool_error", EventKind::ToolError),
    point("on_permission_denied", EventKind::PermissionDenied),
    point("on_token_budget_exceeded", EventKind::TokenBudgetExceeded),
    point("on_tools_disabled", EventKind::ToolsDisabled),
];
