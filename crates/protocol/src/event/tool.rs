//! Tool calls, in the order in which one call passes these events.
//!
//! `tool_execution_start` → `tools_disabled` → `tool_input_transform` → `tool_guard` → permission rules →
//! `pre_tool_use` → (`permission_request` → the user) → token budget → the tool → `tool_response_transform` →
//! `post_tool_use` or `tool_error` → `tool_execution_end`.

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
        source: String,
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
        replace replace_response => tool_response,
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
        replace replace_content => result.content,
        replace replace_details => result.details,
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
