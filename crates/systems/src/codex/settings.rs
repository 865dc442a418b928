//! Codex's `hooks.json` and the table `hooks` of its `config.toml`, in which people write hooks.

use std::time::Duration;

use tenterhook_engine::EventKind;

use super::dialect::dialect;
use crate::settings_file::{HookSettings, MatcherStyle, SettingsEvent};

pub(super) static SETTINGS: HookSettings = HookSettings {
    places: &[".codex"],
    user: ".codex/hooks.json",
    project: ".codex/hooks.json",
    events: EVENTS,
    // What the user has trusted.
    other_keys: &["state"],
    switches_key: None,
    has_groups: true,
    command_keys: &["command"],
    timeout_key: "timeout",
    timeout_unit: Duration::from_secs(1),
    default_timeout: Duration::from_mins(10),
    matchers: MatcherStyle::Part,
    dialect,
};

const fn on(name: &'static str, kind: EventKind) -> SettingsEvent {
    SettingsEvent::new(name, kind)
}

static EVENTS: &[SettingsEvent] = &[
    on("SessionStart", EventKind::SessionStart),
    on("UserPromptSubmit", EventKind::UserPromptSubmit).without_matcher(),
    on("PreToolUse", EventKind::PreToolUse),
    on("PermissionRequest", EventKind::PermissionRequest),
    on("PostToolUse", EventKind::PostToolUse),
    on("Stop", EventKind::Stop).without_matcher(),
    on("SubagentStart", EventKind::SubagentStart),
    on("SubagentStop", EventKind::SubagentStop),
    on("PreCompact", EventKind::PreCompact),
    on("PostCompact", EventKind::AfterCompaction),
    on("Interrupt", EventKind::Interrupt)
        .without_matcher()
        .within(3),
    on("SessionEnd", EventKind::SessionEnd).within(3),
];
