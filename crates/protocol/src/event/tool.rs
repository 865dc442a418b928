//! Tool calls, in the order in which one call passes these events.
//!
//! `tool_execution_start` → `tools_disabled` → `tool_input_transform` → `tool_guard` → permission rules →
//! `pre_tool_use` → (`permission_request` → the user) → token budget → the tool → `tool_response_transform` →
//! `post_tool_use` or `tool_error` → `tool_execution_end`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::JsonObject;
use crate::catalogue::event;
use crate::id::ToolUseId;
use crate::message::ToolResult;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// Who denied a tool call.
    pub enum DeniedBy {
        /// The user.
        #[default] User = "user",
        /// A permission rule.
        Rule = "rule",
        /// A hook.
        Hook = "hook",
    }
}

wire_enum! {
    /// What was decided of a tool call.
    pub enum ApprovalDecision {
        /// It runs.
        #[default] Allow = "allow",
        /// It does not run.
        Deny = "deny",
        /// The run was cancelled before a decision.
        Canceled = "canceled",
    }
}

wire_enum! {
    /// What let a tool call through.
    pub enum ApprovalSource {
        /// A permission rule allows it.
        #[default] Rule = "rule_allow",
        /// The user allowed calls like it for the session.
        Session = "session_allow",
        /// A hook of `pre_tool_use` allowed it.
        PreToolUseHook = "pre_tool_use_hook_allow",
        /// A hook of `permission_request` answered for the user.
        PermissionRequestHook = "permission_request_hook_allow",
        /// The agent runs with `--yes`.
        Yes = "mode_yes",
        /// The tool is read-only, and nothing asks for approval.
        ReadOnlyTool = "readonly_hint",
        /// The user allowed this call.
        User = "user_approved",
        /// The user allowed this call and calls like it for the session.
        UserForSession = "user_approved_session",
    }
}

wire_enum! {
    /// What denied a tool call.
    pub enum DenialSource {
        /// A hook of `tool_input_transform` blocked it, or left arguments that the tool does not accept.
        ToolInputTransformHook = "tool_input_transform_deny",
        /// A hook of `tool_guard` denied it.
        ToolGuardHook = "tool_guard_deny",
        /// A permission rule denies it.
        #[default] Rule = "rule_deny",
        /// A hook of `pre_tool_use` denied it, or left arguments that the tool does not accept.
        PreToolUseHook = "pre_tool_use_hook_deny",
        /// A hook of `permission_request` denied it, or left arguments that the tool does not accept.
        PermissionRequestHook = "permission_request_hook_deny",
        /// The user rejected it.
        User = "user_rejected",
        /// It needs approval, and no one can be asked.
        NonInteractive = "non_interactive_deny",
    }
}

/// What decided whether a tool call runs.
///
/// It is one word on the wire. A word that this version does not know, for example in the journal of a
/// newer one, stays readable as [`DecisionSource::Other`].
///
/// ```
/// use tenterhook_protocol::event::{DecisionSource, DenialSource};
/// let source = DecisionSource::from("rule_deny".to_owned());
/// assert_eq!(source, DecisionSource::Denied(DenialSource::Rule));
/// assert_eq!(source.as_str(), "rule_deny");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub enum DecisionSource {
    /// It let the call through.
    Allowed(ApprovalSource),
    /// It denied the call.
    Denied(DenialSource),
    /// The run was cancelled before a decision.
    Cancelled,
    /// A word of another host or version.
    Other(String),
}

/// How [`DecisionSource::Cancelled`] is spelt; hooks compare with it.
const CANCELLED: &str = "context_canceled";

impl DecisionSource {
    /// Returns the spelling on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Allowed(source) => source.as_str(),
            Self::Denied(source) => source.as_str(),
            Self::Cancelled => CANCELLED,
            Self::Other(word) => word,
        }
    }
}

/// The default is the empty word: a payload that does not say what decided.
impl Default for DecisionSource {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl From<String> for DecisionSource {
    fn from(word: String) -> Self {
        if word == CANCELLED {
            return Self::Cancelled;
        }
        let allowed = ApprovalSource::ALL
            .iter()
            .find(|source| source.as_str() == word);
        if let Some(source) = allowed {
            return Self::Allowed(*source);
        }
        let denied = DenialSource::ALL
            .iter()
            .find(|source| source.as_str() == word);
        denied.map_or(Self::Other(word), |source| Self::Denied(*source))
    }
}

impl From<DecisionSource> for String {
    fn from(source: DecisionSource) -> Self {
        if let DecisionSource::Other(word) = source {
            return word;
        }
        source.as_str().to_owned()
    }
}

impl From<ApprovalSource> for DecisionSource {
    fn from(source: ApprovalSource) -> Self {
        Self::Allowed(source)
    }
}

impl From<DenialSource> for DecisionSource {
    fn from(source: DenialSource) -> Self {
        Self::Denied(source)
    }
}

impl fmt::Display for DecisionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

const fn first_attempt() -> u32 {
    1
}

event! {
    /// A tool is not available to this agent.
    ToolsDisabled = "tools_disabled", Observer, Parallel, subject tool_name
    {
        /// The tool's name.
        tool_name: String,
        /// The arguments.
        #[serde(default)]
        tool_input: JsonObject,
        /// The agent's role, where the host has roles.
        role: Option<String>,
    }
}

event! {
    /// The model asked for a tool call. Pairs with `tool_execution_end`.
    ToolExecutionStart = "tool_execution_start", Observer, Parallel, subject tool_name, call tool_use_id
    {
        /// The provider's id of the call.
        #[serde(default)]
        tool_use_id: ToolUseId,
        /// The tool's name.
        tool_name: String,
        /// The arguments.
        #[serde(default)]
        tool_input: JsonObject,
    }
}

event! {
    /// A running tool has a partial result.
    ToolExecutionUpdate = "tool_execution_update", Observer, Parallel, subject tool_name, call tool_use_id
    {
        /// The provider's id of the call.
        #[serde(default)]
        tool_use_id: ToolUseId,
        /// The tool's name.
        tool_name: String,
        /// What there is so far.
        partial_result: ToolResult,
    }
}

event! {
    /// A tool call is over, whether it ran or not.
    ToolExecutionEnd = "tool_execution_end", Observer, Parallel, subject tool_name, call tool_use_id
    {
        /// The provider's id of the call.
        #[serde(default)]
        tool_use_id: ToolUseId,
        /// The tool's name.
        tool_name: String,
        /// What the model gets.
        result: ToolResult,
        /// It failed or was denied.
        #[serde(default)]
        is_error: bool,
    }
}

event! {
    /// Arguments may be changed before anything judges them.
    ToolInputTransform = "tool_input_transform", Gate, Series, subject tool_name, call tool_use_id, honours [Block]
    {
        /// The provider's id of the call.
        #[serde(default)]
        tool_use_id: ToolUseId,
        /// The tool's name.
        tool_name: String,
        /// The arguments.
        #[serde(default)]
        tool_input: JsonObject,
        /// The agent's role, where the host has roles.
        role: Option<String>,
        /// Which attempt at this call it is, from 1.
        #[serde(default = "first_attempt")]
        attempt: u32,
        /// What kind of tool it is: `shell`, `filesystem`, `agent` …
        tool_category: Option<String>,
    }
    rewrites {
        merge patch_input => tool_input,
    }
}

event! {
    /// A guard that no rule, mode or `--yes` skips. It judges the final arguments.
    ToolGuard = "tool_guard", Gate, Parallel, subject tool_name, call tool_use_id, honours [Permission, Block]
    {
        /// The provider's id of the call.
        #[serde(default)]
        tool_use_id: ToolUseId,
        /// The tool's name.
        tool_name: String,
        /// The arguments.
        #[serde(default)]
        tool_input: JsonObject,
        /// The agent's role, where the host has roles.
        role: Option<String>,
        /// Which attempt at this call it is, from 1.
        #[serde(default = "first_attempt")]
        attempt: u32,
        /// What kind of tool it is: `shell`, `filesystem`, `agent` …
        tool_category: Option<String>,
    }
}

event! {
    /// A tool is about to run.
    PreToolUse = "pre_tool_use", Gate, Series, subject tool_name, call tool_use_id, honours [Permission, Block, Context, StopRun]
    {
        /// The provider's id of the call.
        #[serde(default)]
        tool_use_id: ToolUseId,
        /// The tool's name.
        tool_name: String,
        /// The arguments.
        #[serde(default)]
        tool_input: JsonObject,
        /// The agent's role, where the host has roles.
        role: Option<String>,
        /// Which attempt at this call it is, from 1.
        #[serde(default = "first_attempt")]
        attempt: u32,
        /// What kind of tool it is: `shell`, `filesystem`, `agent` …
        tool_category: Option<String>,
    }
    rewrites {
        merge patch_input => tool_input,
        replace replace_input => tool_input,
    }
}

event! {
    /// The user is about to be asked for approval.
    PermissionRequest = "permission_request", Gate, Series, subject tool_name, call tool_use_id, honours [Permission, Block]
    {
        /// The provider's id of the call.
        #[serde(default)]
        tool_use_id: ToolUseId,
        /// The tool's name.
        tool_name: String,
        /// The arguments.
        #[serde(default)]
        tool_input: JsonObject,
        /// The agent's role, where the host has roles.
        role: Option<String>,
        /// Which attempt at this call it is, from 1.
        #[serde(default = "first_attempt")]
        attempt: u32,
        /// What kind of tool it is: `shell`, `filesystem`, `agent` …
        tool_category: Option<String>,
        /// Rules that the user may be offered.
        #[serde(default)]
        suggestions: Vec<String>,
    }
    rewrites {
        merge patch_input => tool_input,
    }
}

event! {
    /// A tool call was denied.
    PermissionDenied = "permission_denied", Observer, Parallel, subject tool_name, call tool_use_id
    {
        /// The provider's id of the call.
        #[serde(default)]
        tool_use_id: ToolUseId,
        /// The tool's name.
        tool_name: String,
        /// The arguments.
        #[serde(default)]
        tool_input: JsonObject,
        /// The agent's role, where the host has roles.
        role: Option<String>,
        /// Which attempt at this call it is, from 1.
        #[serde(default = "first_attempt")]
        attempt: u32,
        /// What kind of tool it is: `shell`, `filesystem`, `agent` …
        tool_category: Option<String>,
        /// Why.
        #[serde(default)]
        reason: String,
        /// By whom.
        #[serde(default)]
        by: DeniedBy,
    }
}

event! {
    /// It is decided whether a tool call runs.
    ToolApprovalDecision = "tool_approval_decision", Observer, Parallel, subject tool_name, call tool_use_id
    {
        /// The provider's id of the call.
        #[serde(default)]
        tool_use_id: ToolUseId,
        /// The tool's name.
        tool_name: String,
        /// The arguments.
        #[serde(default)]
        tool_input: JsonObject,
        /// The agent's role, where the host has roles.
        role: Option<String>,
        /// Which attempt at this call it is, from 1.
        #[serde(default = "first_attempt")]
        attempt: u32,
        /// What kind of tool it is: `shell`, `filesystem`, `agent` …
        tool_category: Option<String>,
        /// What was decided.
        #[serde(default)]
        decision: ApprovalDecision,
        /// What decided: `rule_allow`, `pre_tool_use_hook_deny`, `user_approved` …
        #[serde(default)]
        source: DecisionSource,
    }
}

event! {
    /// The budget of tokens does not allow another tool call.
    TokenBudgetExceeded = "token_budget_exceeded", Observer, Parallel, subject tool_name
    {
        /// The tool's name.
        tool_name: String,
        /// The arguments.
        #[serde(default)]
        tool_input: JsonObject,
        /// The budget in tokens.
        budget: u64,
        /// The tokens used.
        used: u64,
    }
}

event! {
    /// The text of a result may be changed before anyone sees it.
    ToolResponseTransform = "tool_response_transform", Observer, Series, subject tool_name, call tool_use_id
    {
        /// The provider's id of the call.
        #[serde(default)]
        tool_use_id: ToolUseId,
        /// The tool's name.
        tool_name: String,
        /// The arguments.
        #[serde(default)]
        tool_input: JsonObject,
        /// The agent's role, where the host has roles.
        role: Option<String>,
        /// Which attempt at this call it is, from 1.
        #[serde(default = "first_attempt")]
        attempt: u32,
        /// What kind of tool it is: `shell`, `filesystem`, `agent` …
        tool_category: Option<String>,
        /// The text of the result.
        #[serde(default)]
        tool_response: String,
        /// The tool failed, or was denied.
        #[serde(default)]
        is_error: bool,
    }
    rewrites {
        result replace_response => tool_response,
    }
}

event! {
    /// A tool ran, or was denied (`blocked`).
    PostToolUse = "post_tool_use", Observer, Series, subject tool_name, call tool_use_id, honours [Context, StopRun]
    {
        /// The provider's id of the call.
        #[serde(default)]
        tool_use_id: ToolUseId,
        /// The tool's name.
        tool_name: String,
        /// The arguments.
        #[serde(default)]
        tool_input: JsonObject,
        /// The agent's role, where the host has roles.
        role: Option<String>,
        /// Which attempt at this call it is, from 1.
        #[serde(default = "first_attempt")]
        attempt: u32,
        /// What kind of tool it is: `shell`, `filesystem`, `agent` …
        tool_category: Option<String>,
        /// The result.
        #[serde(default)]
        result: ToolResult,
        /// How long this attempt took, in milliseconds.
        #[serde(default)]
        duration_ms: u64,
        /// How long all attempts took, in milliseconds.
        #[serde(default)]
        total_duration_ms: u64,
        /// The call was denied and did not run.
        #[serde(default)]
        blocked: bool,
    }
    rewrites {
        result replace_content => result.content,
        result replace_details => result.details,
        replace replace_is_error => result.is_error,
        replace replace_terminate => result.terminate,
    }
}

event! {
    /// A tool could not be run to an end.
    ToolError = "tool_error", Observer, Parallel, subject tool_name, call tool_use_id
    {
        /// The provider's id of the call.
        #[serde(default)]
        tool_use_id: ToolUseId,
        /// The tool's name.
        tool_name: String,
        /// The arguments.
        #[serde(default)]
        tool_input: JsonObject,
        /// The agent's role, where the host has roles.
        role: Option<String>,
        /// Which attempt at this call it is, from 1.
        #[serde(default = "first_attempt")]
        attempt: u32,
        /// What kind of tool it is: `shell`, `filesystem`, `agent` …
        tool_category: Option<String>,
        /// What went wrong.
        #[serde(default)]
        error: String,
        /// Another attempt follows.
        #[serde(default)]
        will_retry: bool,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_source_of_a_decision_is_read_as_it_is_written() {
        let allowed = ApprovalSource::ALL
            .iter()
            .map(|source| DecisionSource::from(*source));
        let denied = DenialSource::ALL
            .iter()
            .map(|source| DecisionSource::from(*source));
        for source in allowed.chain(denied).chain([DecisionSource::Cancelled]) {
            let wire = serde_json::to_value(&source).unwrap();
            assert_eq!(wire, source.as_str());
            assert_eq!(
                serde_json::from_value::<DecisionSource>(wire).unwrap(),
                source
            );
        }
    }

    #[test]
    fn an_unknown_source_of_a_decision_stays_readable() {
        let payload = json!({"tool_name": "shell", "source": "policy_server_deny"});
        let event: ToolApprovalDecision = serde_json::from_value(payload).unwrap();
        assert_eq!(
            event.source,
            DecisionSource::Other("policy_server_deny".to_owned())
        );
        assert_eq!(
            serde_json::to_value(&event).unwrap()["source"],
            "policy_server_deny"
        );
    }
}
