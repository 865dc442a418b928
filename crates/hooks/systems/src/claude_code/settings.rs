//! Claude Code's settings, in which people write hooks.

use std::time::Duration;

use tenterhook_engine::EventKind;

use super::dialect::dialect;
use crate::settings_file::KeyEffect::{
    Carried, Display, Ignored, OfOtherType, Refused, RefusedWithHttp, Separate,
};
use crate::settings_file::{
    ConditionTool, HookSettings, MatcherStyle, Occurrences, PatternSubject, PluginHooks,
    SettingsEvent, SettingsKey,
};

pub(super) static SETTINGS: HookSettings = HookSettings {
    places: &[".claude"],
    user: ".claude/settings.json",
    project: ".claude/settings.json",
    events: EVENTS,
    other_keys: &[],
    keys: KEYS,
    conditions: CONDITIONS,
    plugin: Some(&PLUGIN),
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

static PLUGIN: PluginHooks = PluginHooks {
    manifest: ".claude-plugin/plugin.json",
    folder: "hooks",
    root_variables: &["CLAUDE_PLUGIN_ROOT"],
    data_variables: &["CLAUDE_PLUGIN_DATA"],
    data: ".claude/plugins/data",
    installed: ".claude/plugins/cache",
    option_prefix: "CLAUDE_PLUGIN_OPTION_",
};

/// Which argument the pattern of a permission rule is about, as measured with version 2.1.330. For other tools, Claude
/// Code never runs a hook whose rule has a pattern.
static CONDITIONS: &[ConditionTool] = &[
    ConditionTool::new("Bash", "command", PatternSubject::CommandLine),
    ConditionTool::new("PowerShell", "command", PatternSubject::CommandLine),
    ConditionTool::new("Monitor", "command", PatternSubject::CommandLine),
    ConditionTool::new("Read", "file_path", PatternSubject::Path),
    ConditionTool::new("Write", "file_path", PatternSubject::Path),
    ConditionTool::new("Edit", "file_path", PatternSubject::Path),
    ConditionTool::new("MultiEdit", "file_path", PatternSubject::Path),
    ConditionTool::new("NotebookEdit", "notebook_path", PatternSubject::Path),
    ConditionTool::new("Glob", "pattern", PatternSubject::Text),
    ConditionTool::new("Grep", "pattern", PatternSubject::Text),
    ConditionTool {
        name: "Agent",
        earlier: Some("Task"),
        argument: None,
    },
];

/// The keys of version 2.1.330.
static KEYS: &[SettingsKey] = &[
    SettingsKey::of_file("hooks", Carried),
    SettingsKey::of_file("env", Carried),
    SettingsKey::of_file("disableAllHooks", Carried),
    SettingsKey::of_file("$schema", Display),
    SettingsKey::of_file("description", Display),
    SettingsKey::of_file("allowManagedHooksOnly", Separate("hooks of other files")),
    SettingsKey::of_file(
        "enabledPlugins",
        Separate("hooks of plugins; import the file of each plugin"),
    ),
    SettingsKey::of_file(
        "pluginConfigs",
        Separate("options of plugins; `tenterhook import` copies the options of the plugin"),
    ),
    SettingsKey::of_file("allowedHttpHookUrls", RefusedWithHttp),
    SettingsKey::of_file("httpHookAllowedEnvVars", RefusedWithHttp),
    SettingsKey::of_file(
        "modules",
        Refused("modules of hooks run only inside Claude Code"),
    ),
    SettingsKey::of_group("matcher", Carried),
    SettingsKey::of_group("hooks", Carried),
    SettingsKey::of_group("description", Display),
    SettingsKey::of_group("id", Display),
    SettingsKey::of_hook("type", Carried),
    SettingsKey::of_hook("command", Carried),
    SettingsKey::of_hook("args", Carried),
    SettingsKey::of_hook("shell", Carried),
    SettingsKey::of_hook("if", Carried),
    SettingsKey::of_hook("timeout", Carried),
    SettingsKey::of_hook("onFailure", Carried),
    SettingsKey::of_hook("async", Carried),
    SettingsKey::of_hook("url", Carried),
    SettingsKey::of_hook("headers", Carried),
    SettingsKey::of_hook("allowedEnvVars", Carried),
    SettingsKey::of_hook("name", Display),
    SettingsKey::of_hook("description", Display),
    SettingsKey::of_hook("statusMessage", Display),
    SettingsKey::of_hook(
        "once",
        Ignored("it has no effect in a file of settings; the hook runs every time"),
    ),
    SettingsKey::of_hook(
        "asyncRewake",
        Ignored("it does not wake the agent; without `async`, the agent waits for the hook"),
    ),
    SettingsKey::of_hook("rewakeMessage", Ignored("hooks do not wake the agent")),
    SettingsKey::of_hook("rewakeSummary", Ignored("hooks do not wake the agent")),
    SettingsKey::of_hook("holdsTools", Ignored("the agent waits for the hook")),
    SettingsKey::of_hook("cloud", Ignored("the hook runs on this machine")),
    SettingsKey::of_hook("prompt", OfOtherType),
    SettingsKey::of_hook("model", OfOtherType),
    SettingsKey::of_hook("continueOnBlock", OfOtherType),
    SettingsKey::of_hook("server", OfOtherType),
    SettingsKey::of_hook("tool", OfOtherType),
    SettingsKey::of_hook("input", OfOtherType),
];
