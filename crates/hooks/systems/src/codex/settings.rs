//! Codex's `hooks.json` and the table `hooks` of its `config.toml`, in which people write hooks.

use std::time::Duration;

use tenterhook_engine::EventKind;

use super::dialect::dialect;
use crate::settings_file::KeyEffect::{Carried, Display, Ignored, OfOtherType};
use crate::settings_file::{HookSettings, MatcherStyle, PluginHooks, SettingsEvent, SettingsKey};

pub(super) static SETTINGS: HookSettings = HookSettings {
    places: &[".codex"],
    user: ".codex/hooks.json",
    project: ".codex/hooks.json",
    events: EVENTS,
    // What the user has trusted.
    other_keys: &["state"],
    keys: KEYS,
    conditions: &[],
    plugin: Some(&PLUGIN),
    switches_key: None,
    has_groups: true,
    command_keys: if cfg!(windows) {
        &["commandWindows", "command"]
    } else {
        &["command"]
    },
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

static PLUGIN: PluginHooks = PluginHooks {
    manifest: ".codex-plugin/plugin.json",
    folder: "hooks",
    root_variables: &["PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT"],
    data_variables: &["PLUGIN_DATA", "CLAUDE_PLUGIN_DATA"],
    data: ".codex/plugins/data",
    installed: ".codex/plugins/cache",
    option_prefix: "",
};

/// The keys of hooks and next to them.
static KEYS: &[SettingsKey] = &[
    SettingsKey::of_file("hooks", Carried),
    SettingsKey::of_file("description", Display),
    SettingsKey::of_group("matcher", Carried),
    SettingsKey::of_group("hooks", Carried),
    SettingsKey::of_hook("type", Carried),
    SettingsKey::of_hook("command", Carried),
    SettingsKey::of_hook("commandWindows", Carried),
    SettingsKey::of_hook("args", Carried),
    SettingsKey::of_hook("timeout", Carried),
    SettingsKey::of_hook("async", Carried),
    SettingsKey::of_hook("statusMessage", Display),
    SettingsKey::of_hook(
        "additionalContextLimit",
        Ignored("the whole context is passed on"),
    ),
    SettingsKey::of_hook("prompt", OfOtherType),
    SettingsKey::of_hook("model", OfOtherType),
    SettingsKey::of_hook("server", OfOtherType),
    SettingsKey::of_hook("tool", OfOtherType),
    SettingsKey::of_hook("input", OfOtherType),
];
