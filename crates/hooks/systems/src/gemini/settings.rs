//! Gemini CLI's settings, in which people write hooks.

use std::time::Duration;

use tenterhook_engine::EventKind;

use super::dialect::dialect;
use crate::settings_file::KeyEffect::{Carried, Display};
use crate::settings_file::{HookSettings, MatcherStyle, SettingsEvent, SettingsKey};

pub(super) static SETTINGS: HookSettings = HookSettings {
    places: &[".gemini"],
    user: ".gemini/settings.json",
    project: ".gemini/settings.json",
    events: EVENTS,
    other_keys: &[],
    keys: KEYS,
    conditions: &[],
    plugin: None,
    switches_key: Some("hooksConfig"),
    has_groups: true,
    command_keys: &["command"],
    timeout_key: "timeout",
    timeout_unit: Duration::from_millis(1),
    default_timeout: Duration::from_mins(1),
    matchers: MatcherStyle::Part,
    dialect,
};

const fn on(name: &'static str, kind: EventKind) -> SettingsEvent {
    SettingsEvent::new(name, kind)
}

static EVENTS: &[SettingsEvent] = &[
    on("SessionStart", EventKind::SessionStart),
    on("BeforeAgent", EventKind::UserPromptSubmit).without_matcher(),
    on("BeforeModel", EventKind::BeforeLlmCall).without_matcher(),
    on("BeforeToolSelection", EventKind::ToolSelection).without_matcher(),
    on("BeforeTool", EventKind::PreToolUse),
    on("AfterTool", EventKind::PostToolUse),
    on("AfterModel", EventKind::AfterLlmCall).without_matcher(),
    on("AfterAgent", EventKind::Stop).without_matcher(),
    on("Notification", EventKind::Notification),
    on("PreCompress", EventKind::PreCompact),
    on("SessionEnd", EventKind::SessionEnd),
];

/// The keys of hooks and next to them.
static KEYS: &[SettingsKey] = &[
    SettingsKey::of_file("hooks", Carried),
    SettingsKey::of_file("hooksConfig", Carried),
    SettingsKey::of_group("matcher", Carried),
    SettingsKey::of_group("hooks", Carried),
    SettingsKey::of_group("sequential", Carried),
    SettingsKey::of_hook("type", Carried),
    SettingsKey::of_hook("name", Carried),
    SettingsKey::of_hook("command", Carried),
    SettingsKey::of_hook("timeout", Carried),
    SettingsKey::of_hook("env", Carried),
    SettingsKey::of_hook("description", Display),
];
