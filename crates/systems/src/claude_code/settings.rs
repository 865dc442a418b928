//! Claude Code's settings, in which people write hooks.

use std::time::Duration;

use tenterhook_engine::EventKind;

use super::dialect::dialect;
use crate::settings_file::{HookSettings, MatcherStyle, Occurrences, SettingsEvent};

pub(super) static SETTINGS: HookSettings = HookSettings {
    places: &[".claude"],
    user: ".claude/settings.json",
    project: ".claude/settings.json",
    events: EVENTS,
    other_keys: &[],
    switches_key: None,
    has_groups: true,
    command_keys: &["command"],
    timeout_key: "timeout",
    timeout_unit: Duration::from_secs(1),
    default_timeout: Duration::from_mins(10),
    matchers: MatcherStyle::NamesOrPart,
    dialect,
};

const fn on(name: &'static str, kind: EventKind) -> SettingsEvent {
    SettingsEvent::new(name, kind)
}

static EVENTS: &[SettingsEvent] = &[
    on("SessionStart", EventKind::SessionStart),
    on("Setup", EventKind::Setup),
    on("InstructionsLoaded", EventKind::InstructionsLoaded),
    on("UserPromptSubmit", EventKind::UserPromptSubmit)
        .without_matcher()
        .within(30),
    on("UserPromptExpansion", EventKind::PromptExpansion),
    on("MessageDisplay", EventKind::MessageDisplay)
        .without_matcher()
        .within(10),
    on("PreToolUse", EventKind::PreToolUse),
    on("PermissionRequest", EventKind::PermissionRequest),
    on("PostToolUse", EventKind::PostToolUse).only(Occurrences::Succeeded),
    on("PostToolUseFailure", EventKind::PostToolUse).only(Occurrences::Failed),
    on("PostToolBatch", EventKind::ToolBatchEnd).without_matcher(),
    on("PermissionDenied", EventKind::PermissionDenied),
    on("Notification", EventKind::Notification),
    on("SubagentStart", EventKind::SubagentStart),
    on("SubagentStop", EventKind::SubagentStop),
    on("TaskCreated", EventKind::TaskCreated).without_matcher(),
    on("TaskCompleted", EventKind::TaskCompleted).without_matcher(),
    on("TeammateIdle", EventKind::TeammateIdle).without_matcher(),
    on("Stop", EventKind::Stop).without_matcher(),
    on("StopFailure", EventKind::AgentError),
    on("ConfigChange", EventKind::ConfigChange),
    on("CwdChanged", EventKind::CwdChange).without_matcher(),
    on("DirectoryAdded", EventKind::DirectoryAdded),
    on("FileChanged", EventKind::FileChange),
    on("WorktreeCreate", EventKind::WorktreeCreate).without_matcher(),
    on("WorktreeRemove", EventKind::WorktreeRemove).without_matcher(),
    on("PreCompact", EventKind::PreCompact),
    on("PostCompact", EventKind::AfterCompaction),
    on("PreModelSwitch", EventKind::PreModelSwitch).within(30),
    on("PostModelSwitch", EventKind::PostModelSwitch).within(30),
    on("SessionEnd", EventKind::SessionEnd).within(60),
    on("Elicitation", EventKind::Elicitation),
    on("ElicitationResult", EventKind::ElicitationResult),
];
