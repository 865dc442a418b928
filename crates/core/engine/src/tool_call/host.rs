//! The interface that a host implements to take part in a tool call.

use std::error::Error;

use futures_util::future::{BoxFuture, ready};
use tenterhook_protocol::{EventInfo, Failure, JsonObject, ToolUseId};

use super::question::ToolCallQuestion;
use super::ruling::{PermissionRuling, RuleVerdict};

/// A tool call with its current arguments.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ToolCallView<'a> {
    /// The provider's id of the call.
    pub id: &'a ToolUseId,
    /// The tool's name.
    pub name: &'a str,
    /// The arguments, including all changes that hooks have made so far.
    pub input: &'a JsonObject,
    /// The number of this attempt at the call, starting at 1.
    pub attempt: u32,
}

/// The host's part in the decision about a tool call. Every method has a default, so that `()` is a
/// host without rules and checks.
///
/// This host asks about every call, except for calls that only read:
///
/// ```
/// use std::pin::Pin;
/// use tenterhook_engine::tool_call::{PermissionRuling, RuleVerdict, ToolCallHost, ToolCallView};
///
/// struct Careful;
///
/// impl ToolCallHost for Careful {
///     fn rule<'a>(
///         &'a self,
///         call: ToolCallView<'a>,
///     ) -> Pin<Box<dyn Future<Output = RuleVerdict> + Send + 'a>> {
///         Box::pin(async move {
///             match call.name {
///                 "read_file" => PermissionRuling::Harmless.into(),
///                 _ => PermissionRuling::Unruled.into(),
///             }
///         })
///     }
/// }
/// ```
pub trait ToolCallHost: Sync {
    /// Checks the arguments after each change by a hook. An error refuses the call. Its text
    /// continues the sentence "the hook left …". By default, all arguments are accepted.
    ///
    /// # Errors
    /// Fails if the tool does not accept the arguments.
    fn check_input(&self, _call: ToolCallView<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    /// Returns the ruling of the host's permission rules on the call. Called after `tool_guard`,
    /// and again if a later hook changes the arguments. By default, the call is allowed, so that
    /// only hooks decide. `tool_approval_decision` then reports `rule_allow`.
    fn rule<'a>(&'a self, _call: ToolCallView<'a>) -> BoxFuture<'a, RuleVerdict> {
        Box::pin(ready(PermissionRuling::Allow.into()))
    }

    /// Returns whether the host runs in a mode that answers yes to the questions of its own rules.
    /// Such a mode never answers the question of a hook. The default is `false`.
    fn answers_yes(&self) -> bool {
        false
    }

    /// Returns whether a person's yes to the same arguments, given for an earlier attempt at the
    /// call, still holds. A host that requires [consent](RuleVerdict::consent) compares what the
    /// consent is about, such as the file that a path leads to now. The default is `false`, so the
    /// person is asked again.
    fn still_agreed(&self, _call: ToolCallView<'_>) -> bool {
        false
    }

    /// Returns the kind of the tool for hooks, such as `shell`, `filesystem` or `agent`. By default
    /// `None`.
    fn category(&self, _call: ToolCallView<'_>) -> Option<String> {
        None
    }

    /// Returns values for the `extra` of the call's events, such as `turn_id`. By default there are
    /// none.
    fn extra(&self, _call: ToolCallView<'_>) -> JsonObject {
        JsonObject::new()
    }

    /// Returns rules that the person may be offered with the question. Hooks of
    /// `permission_request` see them. By default there are none.
    fn suggestions(&self, _call: ToolCallView<'_>, _question: &ToolCallQuestion) -> Vec<String> {
        Vec::new()
    }

    /// Shows what hooks report to a person: notices, and the hooks that failed. Called after each
    /// event that has any of these. By default nothing is shown.
    fn show(&self, _event: &'static EventInfo, _notices: &[String], _failures: &[Failure]) {}
}

impl ToolCallHost for () {}
