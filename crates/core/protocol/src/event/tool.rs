//! Events of tool calls, in the order in which they fire for one call.
//!
//! `tool_execution_start` → `tools_disabled` → `tool_input_transform` → `tool_guard` → permission
//! rules → `pre_tool_use` → (`permission_request` → the user) → token budget → the tool →
//! `tool_response_transform` → (`tool_error` if it failed) → `post_tool_use` →
//! `tool_execution_end`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::JsonObject;
use crate::event_macro::event;
use crate::field::into_field;
use crate::field_info::field_values;
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
    /// What was decided about a tool call.
    pub enum ApprovalDecision {
        /// The call runs.
        #[default] Allow = "allow",
        /// The call does not run.
        Deny = "deny",
        /// The run was cancelled before a decision.
        Cancelled = "cancelled" reads "canceled",
    }
}

wire_enum! {
    /// What let a tool call through.
    pub enum ApprovalSource {
        /// A permission rule allowed it.
        #[default] Rule = "rule_allow",
        /// The user had allowed similar calls for the session.
        Session = "session_allow",
        /// A `pre_tool_use` hook allowed it.
        PreToolUseHook = "pre_tool_use_hook_allow",
        /// A `permission_request` hook answered for the user.
        PermissionRequestHook = "permission_request_hook_allow",
        /// The agent runs with `--yes`.
        Yes = "mode_yes",
        /// The tool is read-only, and nothing requires approval.
        ReadOnlyTool = "readonly_hint",
        /// The user allowed this call.
        User = "user_approved",
        /// The user allowed this call, and similar calls for the session.
        UserForSession = "user_approved_session",
    }
}

wire_enum! {
    /// What denied a tool call.
    pub enum DenialSource {
        /// A `tool_input_transform` hook blocked it, or left arguments that the tool does not
        /// accept.
        ToolInputTransformHook = "tool_input_transform_deny",
        /// A `tool_guard` hook denied it.
        ToolGuardHook = "tool_guard_deny",
        /// A permission rule denied it.
        #[default] Rule = "rule_deny",
        /// A `pre_tool_use` hook denied it, or left arguments that the tool does not accept.
        PreToolUseHook = "pre_tool_use_hook_deny",
        /// A `permission_request` hook denied it, or left arguments that the tool does not accept.
        PermissionRequestHook = "permission_request_hook_deny",
        /// The user rejected it.
        User = "user_rejected",
        /// It needs approval, and no one can be asked.
        NonInteractive = "non_interactive_deny",
    }
}

/// What decided whether a tool call runs.
///
/// It is a single word in JSON. A word that this version does not know, for example in the journal
/// of a newer version, is kept as [`DecisionSource::Other`].
///
/// ```
/// use tenterhook_protocol::event::{DecisionSource, DenialSource};
/// let source = DecisionSource::from("rule_deny".to_owned());
/// assert_eq!(source, DecisionSource::Denied(DenialSource::Rule));
/// assert_eq!(source.as_str(), "rule_deny");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub enum DecisionSource {
    /// It let the call through.
    Allowed(ApprovalSource),
    /// It denied the call.
    Denied(DenialSource),
    /// The run was cancelled before a decision.
    Cancelled,
    /// A word that another host or version uses.
    Other(String),
}

/// The spelling of [`DecisionSource::Cancelled`]. Hooks compare with it.
const CANCELLED: &str = "context_cancelled";

/// An older spelling that docker-agent also uses. It is read, but never written.
const CANCELED: &str = "context_canceled";

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

/// The default is the empty string: the payload does not say what decided.
impl Default for DecisionSource {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl From<String> for DecisionSource {
    fn from(word: String) -> Self {
        if word == CANCELLED || word == CANCELED {
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

into_field! { DecisionSource: ApprovalSource, DenialSource; }
field_values! { Other: DecisionSource; }

impl fmt::Display for DecisionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

const fn first_attempt() -> u32 {
    1
}

/// Declares an event of a tool call. The fields that such events share are defined once, here. Each
/// event lists the shared fields that it has, or `attempt` for all of them. The tool's name is
/// always the subject.
macro_rules! tool_event {
    (
        $(#[$meta:meta])*
        $name:ident = $text:literal, $class:ident, $run:ident, shared attempt $($rest:tt)*
    ) => {
        tool_event! {
            $(#[$meta])*
            $name = $text, $class, $run,
            shared [tool_use_id tool_name tool_input role attempt tool_category] $($rest)*
        }
    };
    (
        $(#[$meta:meta])*
        $name:ident = $text:literal, $class:ident, $run:ident, shared [tool_use_id $($shared:ident)*]
        $(, honours $honoured:tt)? { $($own:tt)* } $($rest:tt)*
    ) => {
        tool_event! {
            @add [$(#[$meta])* $name = $text, $class, $run, subject tool_name, call tool_use_id, not before_model $(, honours $honoured)?]
            [] [tool_use_id $($shared)*] [$($own)*] [$($rest)*]
        }
    };
    (
        $(#[$meta:meta])*
        $name:ident = $text:literal, $class:ident, $run:ident, shared [tool_name $($shared:ident)*]
        $(, honours $honoured:tt)? { $($own:tt)* } $($rest:tt)*
    ) => {
        tool_event! {
            @add [$(#[$meta])* $name = $text, $class, $run, subject tool_name $(, honours $honoured)?]
            [] [tool_name $($shared)*] [$($own)*] [$($rest)*]
        }
    };
    (@add $head:tt [$($done:tt)*] [tool_use_id $($next:ident)*] $own:tt $rest:tt) => {
        tool_event! {
            @add $head [
                $($done)*
                /// The provider's id of the tool call.
                #[serde(default)]
                tool_use_id (with_tool_use_id): ToolUseId,
            ] [$($next)*] $own $rest
        }
    };
    (@add $head:tt [$($done:tt)*] [tool_name $($next:ident)*] $own:tt $rest:tt) => {
        tool_event! {
            @add $head [
                $($done)*
                /// The tool's name.
                tool_name: String,
            ] [$($next)*] $own $rest
        }
    };
    (@add $head:tt [$($done:tt)*] [tool_input $($next:ident)*] $own:tt $rest:tt) => {
        tool_event! {
            @add $head [
                $($done)*
                /// The arguments of the tool call.
                #[serde(default)]
                tool_input (with_tool_input): JsonObject,
            ] [$($next)*] $own $rest
        }
    };
    (@add $head:tt [$($done:tt)*] [role $($next:ident)*] $own:tt $rest:tt) => {
        tool_event! {
            @add $head [
                $($done)*
                /// The agent's role, if the host has roles.
                role (with_role): Option<String>,
            ] [$($next)*] $own $rest
        }
    };
    (@add $head:tt [$($done:tt)*] [attempt $($next:ident)*] $own:tt $rest:tt) => {
        tool_event! {
            @add $head [
                $($done)*
                /// The number of this attempt at the call, starting at 1.
                #[serde(default = "first_attempt")]
                attempt (with_attempt): u32 = 1,
            ] [$($next)*] $own $rest
        }
    };
    (@add $head:tt [$($done:tt)*] [tool_category $($next:ident)*] $own:tt $rest:tt) => {
        tool_event! {
            @add $head [
                $($done)*
                /// The kind of tool: `shell`, `filesystem`, `agent` …
                tool_category (with_tool_category): Option<String>,
            ] [$($next)*] $own $rest
        }
    };
    (@add [$($head:tt)*] [$($done:tt)*] [] [$($own:tt)*] [$($rest:tt)*]) => {
        event! {
            $($head)*
            { $($done)* $($own)* }
            $($rest)*
        }
    };
}

tool_event! {
    /// Fires when the model asks for a tool that is not available to this agent.
    ToolsDisabled = "tools_disabled", Observer, Parallel, shared [tool_name tool_input role]
    {}
}

tool_event! {
    /// Fires when the model has asked for a tool call. `tool_execution_end` follows for the same
    /// call.
    ToolExecutionStart = "tool_execution_start", Observer, Parallel, shared [tool_use_id tool_name tool_input]
    {}
}

tool_event! {
    /// Fires when a running tool reports a partial result.
    ToolExecutionUpdate = "tool_execution_update", Observer, Parallel, shared [tool_use_id tool_name]
    {
        /// The result so far.
        partial_result: ToolResult,
    }
}

tool_event! {
    /// Fires when a tool call is over, whether it ran or not.
    ToolExecutionEnd = "tool_execution_end", Observer, Parallel, shared [tool_use_id tool_name]
    {
        /// The result that the model receives.
        result: ToolResult,
        /// Whether the call failed or was denied.
        #[serde(default)]
        is_error (with_is_error): bool,
    }
}

tool_event! {
    /// Fires before anything judges a tool call. Hooks can change the arguments.
    ToolInputTransform = "tool_input_transform", Gate, Series, shared attempt, honours [Block]
    {}
    rewrites {
        merge patch_input => tool_input,
    }
}

tool_event! {
    /// Fires before a tool may run, with the final arguments. No permission rule, mode or `--yes`
    /// skips these hooks.
    ToolGuard = "tool_guard", Gate, Parallel, shared attempt, honours [Permission, Block]
    {}
}

tool_event! {
    /// Fires before a tool runs.
    PreToolUse = "pre_tool_use", Gate, Series, shared attempt, honours [Permission, Block, Context, StopRun]
    {}
    rewrites {
        merge patch_input => tool_input,
        replace replace_input => tool_input,
    }
}

tool_event! {
    /// Fires before the user is asked for approval. A hook can answer for the user.
    PermissionRequest = "permission_request", Gate, Series, shared attempt, honours [Permission, Block]
    {
        /// Permission rules that the host may offer to the user.
        #[serde(default)]
        suggestions (with_suggestions): Vec<String>,
    }
    rewrites {
        merge patch_input => tool_input,
    }
}

tool_event! {
    /// Fires when a tool call was denied.
    PermissionDenied = "permission_denied", Observer, Parallel, shared attempt
    {
        /// Why the call was denied.
        #[serde(default)]
        reason (with_reason): String,
        /// Who denied the call.
        #[serde(default)]
        by (with_by): DeniedBy,
    }
}

tool_event! {
    /// Fires when it is decided whether a tool call runs.
    ToolApprovalDecision = "tool_approval_decision", Observer, Parallel, shared attempt
    {
        /// What was decided.
        #[serde(default)]
        decision (with_decision): ApprovalDecision,
        /// What decided: `rule_allow`, `pre_tool_use_hook_deny`, `user_approved` …
        #[serde(default)]
        source (with_source): DecisionSource,
    }
}

tool_event! {
    /// Fires when the token budget does not allow another tool call.
    TokenBudgetExceeded = "token_budget_exceeded", Observer, Parallel, shared [tool_name tool_input]
    {
        /// The budget, in tokens.
        budget: u64,
        /// The tokens used so far.
        used: u64,
    }
}

tool_event! {
    /// Fires when a tool has returned or its call was denied. Hooks can change the text of the
    /// result before anyone sees it.
    ToolResponseTransform = "tool_response_transform", Observer, Series, shared attempt
    {
        /// The text of the result.
        #[serde(default)]
        tool_response (with_tool_response): String,
        /// Whether the tool failed or the call was denied.
        #[serde(default)]
        is_error (with_is_error): bool,
    }
    rewrites {
        result replace_response => tool_response,
    }
}

tool_event! {
    /// Fires after a tool ran, or after its call was denied (`blocked`).
    PostToolUse = "post_tool_use", Observer, Series, shared attempt, honours [Context, StopRun]
    {
        /// The result of the call.
        #[serde(default)]
        result (with_result): ToolResult,
        /// How long this attempt took, in milliseconds.
        #[serde(default)]
        duration_ms (with_duration_ms): u64,
        /// How long all attempts took, in milliseconds.
        #[serde(default)]
        total_duration_ms (with_total_duration_ms): u64,
        /// Whether the call was denied and did not run.
        #[serde(default)]
        blocked (with_blocked): bool,
    }
    rewrites {
        result replace_content => result.content,
        result replace_details => result.details,
        replace replace_is_error => result.is_error,
        replace replace_terminate => result.terminate,
    }
}

tool_event! {
    /// Fires when an attempt to run a tool has failed, before `post_tool_use`.
    ToolError = "tool_error", Observer, Parallel, shared attempt
    {
        /// What went wrong.
        #[serde(default)]
        error (with_error): String,
        /// Whether another attempt follows.
        #[serde(default)]
        will_retry (with_will_retry): bool,
    }
}
