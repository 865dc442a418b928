//! What is proven of each host, and how the result of a run is judged.

use serde::Serialize;
use tenterhook_engine::EventKind;
use tenterhook_systems::host::capability::{CapabilityRow, HostEffect, Support};
use tenterhook_systems::host::installation::FailsClosed;
use tenterhook_systems::host::{EventRole, HostAgent, HostEvent, HostMode};

use crate::canary::{self, CanaryHook};

/// One thing that is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofCase {
    /// The session start, the gate and the result event arrive, and a call that no hook stops runs.
    Events,
    /// A denial stops the tool.
    Deny,
    /// The model sees the reason of a denial.
    DenyReason,
    /// A person is asked about a call. In any case, the call does not run without an answer.
    Ask,
    /// The tool runs with the arguments of the hook.
    Rewrite,
    /// The model sees the texts that hooks add.
    Context,
    /// The model sees the result of the hook instead of the tool's.
    ReplaceResult,
    /// A prompt that a hook blocks does not reach the model.
    BlockPrompt,
    /// A hook keeps the agent working once, and the agent ends after it.
    Continue,
    /// A guard that crashes stops the tool.
    GuardCrashes,
    /// A guard that hangs stops the tool.
    GuardHangs,
    /// If the program that the host starts is killed, the tool is stopped.
    ShimKilled,
    /// If the program that the host starts is missing, the tool is stopped.
    ShimMissing,
    /// If the daemon is killed while it judges a call, the tool is stopped.
    DaemonKilled,
}

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum ProofResult {
    /// The host does what the hooks want.
    Holds,
    /// The host cannot do it, as its capability table says. Tenterhook does the safest thing that the host can.
    HostCannot {
        /// What the host does instead.
        why: String,
    },
    /// The result differs from the table, or a call ran that must not run.
    Fails {
        /// What was seen.
        what: String,
    },
}

impl ProofResult {
    fn cannot(why: impl Into<String>) -> Self {
        Self::HostCannot { why: why.into() }
    }

    pub(crate) fn fails(what: impl Into<String>) -> Self {
        Self::Fails { what: what.into() }
    }
}

/// What is broken before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sabotage {
    None,
    /// The shim kills itself.
    KillShim,
    /// The shim is deleted.
    DeleteShim,
}

/// One run of an agent, which shows one or several cases.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) hooks: &'static [CanaryHook],
    pub(crate) sabotage: Sabotage,
    /// How often the model requests the command.
    pub(crate) turns: usize,
    pub(crate) cases: &'static [ProofCase],
}

const fn scenario(hooks: &'static [CanaryHook], cases: &'static [ProofCase]) -> Scenario {
    Scenario {
        hooks,
        sabotage: Sabotage::None,
        turns: 1,
        cases,
    }
}

/// All runs of a proof. The first one shows that the agent works at all.
pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        // Some hosts do not wait for the result event of the last call.
        turns: 2,
        ..scenario(canary::WATCH, &[ProofCase::Events])
    },
    scenario(canary::DENY, &[ProofCase::Deny, ProofCase::DenyReason]),
    scenario(canary::ASK, &[ProofCase::Ask]),
    scenario(canary::REWRITE, &[ProofCase::Rewrite]),
    scenario(canary::ADD_CONTEXT, &[ProofCase::Context]),
    scenario(canary::REPLACE_RESULT, &[ProofCase::ReplaceResult]),
    scenario(canary::BLOCK_PROMPT, &[ProofCase::BlockPrompt]),
    scenario(canary::CONTINUE_ONCE, &[ProofCase::Continue]),
    scenario(canary::CRASH, &[ProofCase::GuardCrashes]),
    scenario(canary::HANG, &[ProofCase::GuardHangs]),
    Scenario {
        sabotage: Sabotage::KillShim,
        ..scenario(canary::DENY, &[ProofCase::ShimKilled])
    },
    Scenario {
        sabotage: Sabotage::DeleteShim,
        ..scenario(canary::DENY, &[ProofCase::ShimMissing])
    },
    scenario(canary::KILL_DAEMON, &[ProofCase::DaemonKilled]),
];

/// What a run left behind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observation {
    /// The command ran.
    pub(crate) has_run: bool,
    /// The rewritten command ran.
    pub(crate) has_run_rewritten: bool,
    /// The files that hooks left.
    pub(crate) traces: Vec<String>,
    /// How many answers of the model the agent requested in the conversation.
    pub(crate) turns: usize,
    /// The texts, among those that a case looks for, that the model was shown.
    pub(crate) shown: Vec<String>,
    /// The agent ran until the time limit.
    pub(crate) is_timed_out: bool,
}

impl Observation {
    fn has_trace(&self, name: &str) -> bool {
        self.traces.iter().any(|trace| trace == name)
    }

    fn was_shown(&self, text: &str) -> bool {
        self.shown.iter().any(|shown| shown == text)
    }
}

/// Returns all texts that cases look for in the requests to the model.
pub(crate) fn marks() -> Vec<String> {
    let fixed = [
        canary::OUTPUT,
        canary::REASON,
        canary::REPLACEMENT,
        canary::FOLLOW_UP,
    ];
    let contexts = CONTEXT_EVENTS.map(|event| format!("{}{event}", canary::CONTEXT));
    fixed
        .map(str::to_owned)
        .into_iter()
        .chain(contexts)
        .collect()
}

const CONTEXT_EVENTS: [&str; 4] = [
    "session_start",
    "user_prompt_submit",
    "pre_tool_use",
    "post_tool_use",
];

/// Returns the event of the canary hook that a host's event calls.
fn hooked_event(event: &HostEvent) -> Option<&'static str> {
    match (event.role, event.kind) {
        (EventRole::ToolGate, EventKind::PreToolUse) => Some("pre_tool_use"),
        (EventRole::ToolResult, EventKind::PostToolUse) => Some("post_tool_use"),
        (EventRole::Stop, EventKind::Stop) => Some("stop"),
        (EventRole::PromptGate, _) => Some("user_prompt_submit"),
        (_, EventKind::SessionStart) => Some("session_start"),
        _ => None,
    }
}

impl ProofCase {
    /// Returns what the case shows, as a sentence without a full stop.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Events => "the session start, the gate and the result of a call reach the hooks",
            Self::Deny => "a denial stops the tool",
            Self::DenyReason => "the model sees the reason of a denial",
            Self::Ask => "a hook asks a person about a call",
            Self::Rewrite => "the tool runs with the arguments of a hook",
            Self::Context => "the model sees the texts that hooks add",
            Self::ReplaceResult => "the model sees the result of a hook instead of the tool's",
            Self::BlockPrompt => "a blocked prompt does not reach the model",
            Self::Continue => "a hook keeps the agent working once",
            Self::GuardCrashes => "a guard that crashes stops the tool",
            Self::GuardHangs => "a guard that hangs stops the tool",
            Self::ShimKilled => "if Tenterhook's program is killed, the tool does not run",
            Self::ShimMissing => "if Tenterhook's program is missing, the tool does not run",
            Self::DaemonKilled => "if the daemon is killed during a call, the tool does not run",
        }
    }

    /// Returns the effect that the case shows, and the role of the event.
    pub(crate) fn effect(self) -> Option<(HostEffect, Option<EventRole>)> {
        let (effect, role) = match self {
            Self::Deny => (HostEffect::Deny, EventRole::ToolGate),
            Self::DenyReason => (HostEffect::DenyReason, EventRole::ToolGate),
            Self::Ask => (HostEffect::Ask, EventRole::ToolGate),
            Self::Rewrite => (HostEffect::Rewrite, EventRole::ToolGate),
            Self::ReplaceResult => (HostEffect::ReplaceResult, EventRole::ToolResult),
            Self::BlockPrompt => (HostEffect::BlockPrompt, EventRole::PromptGate),
            Self::Continue => (HostEffect::Continue, EventRole::Stop),
            Self::Context => return Some((HostEffect::Context, None)),
            Self::Events
            | Self::GuardCrashes
            | Self::GuardHangs
            | Self::ShimKilled
            | Self::ShimMissing
            | Self::DaemonKilled => return None,
        };
        Some((effect, Some(role)))
    }

    /// Returns the rows of the host's table that apply to the case in a run without a person.
    pub fn rows(self, host: &HostAgent) -> Vec<&'static CapabilityRow> {
        let Some((effect, role)) = self.effect() else {
            return Vec::new();
        };
        let is_meant = |row: &&CapabilityRow| {
            row.effect == effect
                && row.mode != Some(HostMode::Interactive)
                && host.event(row.event).is_some_and(|event| {
                    hooked_event(event).is_some() && role.is_none_or(|role| event.role == role)
                })
        };
        host.capabilities.iter().filter(is_meant).collect()
    }

    /// Judges the result of a run.
    pub(crate) fn judge(self, host: &HostAgent, seen: &Observation) -> ProofResult {
        if seen.is_timed_out {
            return ProofResult::fails("the agent did not end within its time limit");
        }
        let rows = self.rows(host);
        let is_honoured = rows.iter().any(|row| row.support == Support::Honoured);
        let cannot = |instead: &str| {
            let notes: Vec<&str> = rows
                .iter()
                .map(|row| row.note)
                .filter(|note| !note.is_empty())
                .collect();
            let why = match (rows.is_empty(), notes.first()) {
                (true, _) => "the host offers no way to do it".to_owned(),
                (false, Some(note)) => (*note).to_owned(),
                (false, None) => "the host ignores it".to_owned(),
            };
            ProofResult::cannot(format!("{why}, so {instead}"))
        };
        match self {
            Self::Events => judge_events(host, seen),
            Self::Context => judge_context(host, &rows, seen),
            Self::BlockPrompt if seen.turns == 0 && !seen.has_run => ProofResult::Holds,
            Self::BlockPrompt if !is_honoured => cannot("the prompt is not blocked"),
            Self::BlockPrompt => ProofResult::fails("the prompt reached the model"),
            // Some hosts block the prompt already.
            Self::ShimMissing if seen.turns == 0 => ProofResult::Holds,
            _ if seen.turns == 0 => ProofResult::fails("the agent did not ask the model"),
            Self::ReplaceResult
                if seen.was_shown(canary::REPLACEMENT) && !seen.was_shown(canary::OUTPUT) =>
            {
                ProofResult::Holds
            }
            Self::ReplaceResult if !is_honoured => cannot("the model sees the result of the tool"),
            Self::ReplaceResult => ProofResult::fails("the model saw the result of the tool"),
            Self::Continue if !is_honoured => cannot("the agent ends"),
            Self::Continue => judge_continue(seen),
            Self::ShimKilled | Self::ShimMissing => judge_shim(host, seen),
            _ if seen.has_run => ProofResult::fails("the command ran"),
            _ if !seen.has_trace(canary::JUDGED) => {
                ProofResult::fails("the command did not run, but the guard was not asked either")
            }
            Self::DenyReason if seen.was_shown(canary::REASON) => ProofResult::Holds,
            Self::DenyReason if !is_honoured => cannot("it sees no reason"),
            Self::DenyReason => ProofResult::fails("the model was not shown the reason"),
            Self::Rewrite if seen.has_run_rewritten => ProofResult::Holds,
            Self::Ask | Self::Rewrite if !is_honoured => cannot("Tenterhook denies the call"),
            Self::Rewrite => ProofResult::fails("neither the command nor its replacement ran"),
            Self::Deny | Self::Ask | Self::GuardCrashes | Self::GuardHangs | Self::DaemonKilled => {
                ProofResult::Holds
            }
        }
    }
}

fn judge_events(host: &HostAgent, seen: &Observation) -> ProofResult {
    if !seen.has_run {
        let what = if seen.turns == 0 {
            "the agent did not ask the model"
        } else {
            "the command did not run, although no hook stopped it"
        };
        return ProofResult::fails(what);
    }
    let expected = ["session_start", "pre_tool_use", "post_tool_use"];
    let is_announced = |name: &&str| {
        host.events
            .iter()
            .any(|event| hooked_event(event) == Some(*name))
    };
    let missing: Vec<&str> = expected
        .into_iter()
        .filter(is_announced)
        .filter(|name| !seen.has_trace(name))
        .collect();
    if missing.is_empty() {
        ProofResult::Holds
    } else {
        ProofResult::fails(format!("no hook was called for {}", missing.join(", ")))
    }
}

fn judge_context(host: &HostAgent, rows: &[&CapabilityRow], seen: &Observation) -> ProofResult {
    let mut missing = Vec::new();
    let mut is_shown = false;
    for row in rows.iter().filter(|row| row.support == Support::Honoured) {
        let event = host.event(row.event).and_then(hooked_event);
        if event.is_some_and(|event| seen.was_shown(&format!("{}{event}", canary::CONTEXT))) {
            is_shown = true;
        } else {
            missing.push(row.event);
        }
    }
    if !missing.is_empty() {
        return ProofResult::fails(format!(
            "the model was not shown the text of {}",
            missing.join(", ")
        ));
    }
    if is_shown {
        return ProofResult::Holds;
    }
    let note = rows
        .iter()
        .map(|row| row.note)
        .find(|note| !note.is_empty());
    let why = note.unwrap_or("the host passes no text to the model");
    ProofResult::cannot(format!(
        "{why}, so Tenterhook drops the text and reports it"
    ))
}

fn judge_continue(seen: &Observation) -> ProofResult {
    // The tool call, the text after it, and one more text.
    let expected = 3;
    if !seen.was_shown(canary::FOLLOW_UP) {
        ProofResult::fails("the agent ended, although a hook wanted it to continue")
    } else if seen.turns > expected {
        ProofResult::fails(format!("the agent continued {} times", seen.turns - 2))
    } else {
        ProofResult::Holds
    }
}

fn judge_shim(host: &HostAgent, seen: &Observation) -> ProofResult {
    match host.installation.fails_closed {
        _ if !seen.has_run => ProofResult::Holds,
        FailsClosed::Never(why) => ProofResult::cannot(why),
        FailsClosed::Always | FailsClosed::ByKey(_) => ProofResult::fails("the command ran"),
    }
}
