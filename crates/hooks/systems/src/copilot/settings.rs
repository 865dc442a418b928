//! Copilot CLI's files of hooks.

use std::time::Duration;

use tenterhook_engine::EventKind;

use super::dialect::dialect;
use crate::settings_file::KeyEffect::{Carried, Display, OfOtherType, Refused};
use crate::settings_file::{HookSettings, MatcherStyle, Occurrences, SettingsEvent, SettingsKey};

pub(super) static SETTINGS: HookSettings = HookSettings {
    places: &[".copilot", ".github"],
    user: ".copilot/hooks/hooks.json",
    project: ".github/hooks/hooks.json",
    events: EVENTS,
    other_keys: &[],
    keys: KEYS,
    conditions: &[],
    plugin: None,
    switches_key: None,
    has_groups: false,
    command_keys: if cfg!(windows) {
        &["powershell", "command"]
    } else {
        &["bash", "command"]
    },
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

/// The keys of hooks and next to them.
static KEYS: &[SettingsKey] = &[
    SettingsKey::of_file("hooks", Carried),
    SettingsKey::of_file("version", Display),
    SettingsKey::of_file("disableAllHooks", Carried),
    SettingsKey::of_hook("type", Carried),
    SettingsKey::of_hook("matcher", Carried),
    SettingsKey::of_hook("bash", Carried),
    SettingsKey::of_hook("powershell", Carried),
    SettingsKey::of_hook("command", Carried),
    SettingsKey::of_hook("exec", Carried),
    SettingsKey::of_hook("args", Carried),
    SettingsKey::of_hook("cwd", Carried),
    SettingsKey::of_hook("env", Carried),
    SettingsKey::of_hook("timeoutSec", Carried),
    SettingsKey::of_hook("url", Carried),
    SettingsKey::of_hook("headers", Carried),
    SettingsKey::of_hook("allowedEnvVars", Carried),
    SettingsKey::of_hook("description", Display),
    SettingsKey::of_hook("comment", Display),
    SettingsKey::of_hook("windows", Refused("commands for one platform are not read")),
    SettingsKey::of_hook("linux", Refused("commands for one platform are not read")),
    SettingsKey::of_hook("osx", Refused("commands for one platform are not read")),
    SettingsKey::of_hook("prompt", OfOtherType),
];
