//! Copilot CLI's files of hooks.

use std::time::Duration;

use tenterhook_engine::EventKind;

use super::dialect::dialect;
use crate::settings_file::{HookSettings, MatcherStyle, Occurrences, SettingsEvent};

pub(super) static SETTINGS: HookSettings = HookSettings {
    places: &[".copilot", ".github"],
    user: ".copilot/hooks/hooks.json",
    project: ".github/hooks/hooks.json",
    events: EVENTS,
    other_keys: &[],
    switches_key: None,
    has_groups: false,
    command_keys: &["bash", "command"],
    timeout_key: "timeoutSec",
    timeout_unit: Duration::from_secs(1),
    default_timeout: Duration::from_secs(30),
    matchers: MatcherStyle::Whole,
    dialect,
};

const fn on(name: &'static str, kind: EventKind) -> SettingsEvent {
    SettingsEvent::new(name, kind)
}

static EVENTS: &[SettingsEvent] = &[
    on("sessionStart", EventKind::SessionStart).without_matcher(),
    on("userPromptSubmitted", EventKind::UserPromptSubmit).without_matcher(),
    on("preToolUse", EventKind::PreToolUse),
    on("postToolUse", EventKind::PostToolUse).only(Occurrences::Succeeded),
    on("postToolUseFailure", EventKind::PostToolUse)
        .only(Occurrences::Failed)
        .without_matcher(),
    on("agentStop", EventKind::Stop).without_matcher(),
    on("subagentStart", EventKind::SubagentStart),
    on("subagentStop", EventKind::SubagentStop).without_matcher(),
    on("errorOccurred", EventKind::AgentError).without_matcher(),
    on("preCompact", EventKind::PreCompact),
    on("notification", EventKind::Notification),
    on("sessionEnd", EventKind::SessionEnd).without_matcher(),
];
