//! The agent's part in judging a tool call: its permission rules, its protected files, and the question to the user.
//! [`tenterhook_engine::tool_call`] defines the order of the gates.
//!
//! A change of a protected file needs the user's consent. No rule, mode or hook can answer instead, and a yes covers
//! only that one change. `pre_tool_use` receives every call that was not denied before it, even if a rule allows the
//! call.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tenterhook_engine::tool_call::{
    AskedBy, AskedToolCall, PermissionRuling, RuleVerdict, ToolCallHost, ToolCallQuestion,
    ToolCallView, UserAnswer,
};
use tenterhook_protocol::event::{WaitReason, WaitingForUser};
use tenterhook_protocol::{EventInfo, Failure, JsonObject};
use tenterhook_tools::permission::{Reach, Ruling, suggestion};
use tenterhook_tools::{ProtectedTarget, Tool, ToolFailure, WriteGuard, blocking};
use tokio::sync::MutexGuard;
use tokio_util::sync::CancellationToken;

use crate::frontend::{Approval, ApprovalRequest};
use crate::hooks::Hooks;
use crate::state::AgentState;

/// The agent as the host of one tool call.
pub(super) struct CallHost<'a> {
    pub(super) state: &'a AgentState,
    pub(super) agent: &'a str,
    pub(super) hooks: &'a Hooks,
    pub(super) cancel: &'a CancellationToken,
    /// The user follows another agent.
    pub(super) in_background: bool,
    /// The tool. A call to an unknown tool is never judged.
    pub(super) tool: Option<&'a Arc<dyn Tool>>,
    pub(super) agreement: Agreement,
}

/// The protected file that a call changes, and the user's consent to it.
#[derive(Default)]
pub(super) struct Agreement {
    /// The protected file that the newest judged arguments change.
    protected: Mutex<Option<PathBuf>>,
    /// The protected file whose change the user has agreed to.
    agreed: Mutex<Option<PathBuf>>,
}

impl ToolCallHost for CallHost<'_> {
    fn check_input(&self, call: ToolCallView<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let tool = self.tool.ok_or_else(|| no_tool(call.name))?;
        Ok(tool.check(call.input)?)
    }

    fn rule<'a>(&'a self, call: ToolCallView<'a>) -> BoxFuture<'a, RuleVerdict> {
        Box::pin(async move {
            match self.tool {
                Some(tool) => self.rule_for(&**tool, call.input).await,
                None => PermissionRuling::Deny(no_tool(call.name)).into(),
            }
        })
    }

    fn answers_yes(&self) -> bool {
        self.state.permissions.says_yes()
    }

    fn still_agreed(&self, _call: ToolCallView<'_>) -> bool {
        let protected = self.agreement.protected.lock();
        protected.is_none() || *protected == *self.agreement.agreed.lock()
    }

    fn category(&self, _call: ToolCallView<'_>) -> Option<String> {
        self.tool.map(|tool| tool.category().to_owned())
    }

    fn suggestions(&self, call: ToolCallView<'_>, question: &ToolCallQuestion) -> Vec<String> {
        let offered = self.tool.map(|tool| {
            let reach = reach_of_yes(question, &**tool);
            suggestion(&**tool, call.input, reach)
        });
        offered.into_iter().collect()
    }

    fn show(&self, event: &'static EventInfo, notices: &[String], failures: &[Failure]) {
        self.hooks.show(event.name, notices, failures);
    }
}

impl CallHost<'_> {
    /// Returns the guard through which the call's tool opens files for writing.
    pub(super) fn write_guard(&self) -> WriteGuard {
        let files = Arc::clone(&self.state.config.protected_files);
        WriteGuard::new(files, self.agreement.agreed.lock().clone())
    }

    async fn rule_for(&self, tool: &dyn Tool, input: &JsonObject) -> RuleVerdict {
        let protected = match self.find_protected(tool, input).await {
            Ok(protected) => protected,
            Err(failure) => {
                let reason = format!("cannot determine whether the file is protected: {failure}");
                return PermissionRuling::Deny(reason).into();
            }
        };
        let verdict = RuleVerdict::from(self.ruling(tool, input));
        let (verdict, target) = match protected {
            Some(found) => {
                let what = found.description;
                let reason = format!("it changes {what}, which only the user may change");
                (verdict.with_consent(reason), Some(found.target))
            }
            None => (verdict, None),
        };
        *self.agreement.protected.lock() = target;
        verdict
    }

    /// Returns the protected file that a call changes.
    async fn find_protected(
        &self,
        tool: &dyn Tool,
        input: &JsonObject,
    ) -> Result<Option<ProtectedTarget>, ToolFailure> {
        let Some(path) = tool.changed_file(input) else {
            return Ok(None);
        };
        let (guard, path) = (self.write_guard(), self.state.config.cwd.join(path));
        blocking(move || Ok(guard.judge(&path))).await
    }

    fn ruling(&self, tool: &dyn Tool, input: &JsonObject) -> PermissionRuling {
        let permissions = &self.state.permissions;
        match permissions.judge(tool, input, &self.state.config.cwd) {
            Ruling::Deny(rule) => {
                PermissionRuling::Deny(format!("the permission rule `{rule}` denies it"))
            }
            Ruling::DenyUnread { rule, reason } => PermissionRuling::Deny(format!(
                "the permission rule `{rule}` may deny it: {reason}"
            )),
            Ruling::Ask(rule) => PermissionRuling::Ask(rule),
            Ruling::Allow => PermissionRuling::Allow,
            Ruling::Granted => PermissionRuling::Granted,
            Ruling::Harmless => PermissionRuling::Harmless,
            Ruling::Unruled => PermissionRuling::Unruled,
        }
    }

    /// Asks the user, and remembers the consent to change a protected file.
    pub(super) async fn ask_user(&self, asked: &AskedToolCall<'_>, tool: &dyn Tool) -> UserAnswer {
        let answer = self.answer_of_user(asked, tool).await;
        if matches!(
            answer,
            UserAnswer::Allow | UserAnswer::AllowForSession | UserAnswer::AllowedBefore
        ) {
            let target = self.agreement.protected.lock().clone();
            *self.agreement.agreed.lock() = target;
        }
        answer
    }

    /// Returns whether the user has meanwhile answered another call's question for the whole session.
    fn was_answered(
        &self,
        question: &ToolCallQuestion,
        tool: &dyn Tool,
        input: &JsonObject,
    ) -> bool {
        matches!(question.asked_by(), AskedBy::Rule | AskedBy::Default)
            && !question.is_changed()
            && self.ruling(tool, input) == PermissionRuling::Granted
    }

    async fn answer_of_user(&self, asked: &AskedToolCall<'_>, tool: &dyn Tool) -> UserAnswer {
        let question = asked.question();
        let frontend = self.hooks.frontend();
        if !frontend.is_interactive() {
            return UserAnswer::Unavailable;
        }
        let turn = self.cancel.run_until_cancelled(self.wait_for_turn_to_ask());
        let Some(_one_at_a_time) = turn.await else {
            return UserAnswer::Cancelled;
        };
        let input = asked.call().input;
        if self.was_answered(question, tool, input) {
            return UserAnswer::AllowedBefore;
        }
        let waiting = || WaitingForUser::new().with_reason(WaitReason::ToolApproval);
        self.hooks.announce(waiting).await;
        let reach = reach_of_yes(question, tool);
        let suggested = suggestion(tool, input, reach);
        let request = ApprovalRequest {
            agent: self.agent,
            call: asked.call().id,
            tool: asked.call().name,
            input,
            reason: question.reason(),
            by: question.asked_by(),
            metadata: question.metadata(),
            suggestion: &suggested,
        };
        let answer = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return UserAnswer::Cancelled,
            answer = frontend.approve(request) => answer,
        };
        match answer {
            // Consent to change a protected file covers only that one change.
            Approval::AllowSession if question.asked_by() == AskedBy::Protection => {
                UserAnswer::Allow
            }
            Approval::AllowOnce => UserAnswer::Allow,
            Approval::AllowSession => {
                self.state.permissions.grant(tool, input, reach);
                UserAnswer::AllowForSession
            }
            Approval::Deny { reason } => UserAnswer::Deny { reason },
            Approval::Unavailable => UserAnswer::Unavailable,
        }
    }

    /// Waits until no other question is open. A background agent also waits until the user follows.
    async fn wait_for_turn_to_ask(&self) -> MutexGuard<'_, ()> {
        loop {
            if self.in_background {
                self.state.attention.given().await;
            }
            let turn = self.state.question.lock().await;
            if !self.in_background || self.state.attention.is_given() {
                return turn;
            }
        }
    }
}

/// Returns which later calls the user also allows by answering yes for the session.
fn reach_of_yes(question: &ToolCallQuestion, tool: &dyn Tool) -> Reach {
    if question.asked_by() == AskedBy::Protection {
        return Reach::SameInput;
    }
    let ruling = if let PermissionRuling::Ask(rule) = question.ruling() {
        Ruling::Ask(rule.clone())
    } else {
        Ruling::Unruled
    };
    ruling.reach(tool)
}

/// Returns why a call to an unknown tool is denied.
fn no_tool(name: &str) -> String {
    format!("unknown tool `{name}`")
}
