//! The gates before a tool: which of them may stop a call, and which may approve it. The table is
//! in the parent module.

use tenterhook_protocol::event::{
    ApprovalDecision, ApprovalSource, DecisionSource, DenialSource, DeniedBy, PermissionDenied,
    PermissionRequest, PreToolUse, ToolGuard, ToolInputTransform,
};
use tenterhook_protocol::{Decision, Event, GateEvent, JsonObject, Outcome};

use super::in_flight::{InFlight, RunStop, call_event};
use super::question::{ConsentDemand, DemandedBy, ToolCallDenial, ToolCallQuestion, UserAnswer};
use super::ruling::PermissionRuling;

/// Why a call does not pass the gates.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It was denied.
    Denied(Box<ToolCallDenial>),
    /// The run was cancelled before a decision.
    Cancelled,
}

impl From<ToolCallDenial> for Refusal {
    fn from(denial: ToolCallDenial) -> Self {
        Self::Denied(Box::new(denial))
    }
}

/// The result of the gates for a call that was not stopped.
pub(super) enum GateResult {
    /// It may run.
    Approved(ApprovalSource),
    /// A person has to be asked.
    Question(ToolCallQuestion),
}

impl InFlight<'_> {
    /// Sends the call through every gate, up to the question for a person.
    pub(super) async fn pass_gates(&mut self) -> Result<GateResult, Refusal> {
        if self.attempt == 1 {
            self.transform_input().await?;
        }
        let mut question = self.judge().await?;
        let before = self.input.clone();
        let hook_approval = self.ask_pre_tool_use(&mut question).await?;
        if self.input != before {
            question = question.followed_by(self.judge().await?);
        }
        match question.answer_without_user(hook_approval, self.host.answers_yes()) {
            Some(source) => Ok(GateResult::Approved(source)),
            None => self.request_permission(question).await,
        }
    }

    async fn transform_input(&mut self) -> Result<(), Refusal> {
        let source = DenialSource::ToolInputTransformHook;
        let outcome = self.fire(call_event!(ToolInputTransform, self)).await;
        if let Some(demand) = self.verdict(&outcome, source)? {
            let mut denial =
                ToolCallDenial::of_hook(ToolInputTransform::INFO.name, source, demand.reason);
            if let DemandedBy::Hook { hook, .. } = demand.by {
                denial.hook = hook;
            }
            return Err(denial.into());
        }
        if let Some(event) = outcome.into_rewritten() {
            self.accept_rewrite(event.tool_input, ToolInputTransform::INFO.name, source)?;
        }
        Ok(())
    }

    /// Lets the guard and the host's rules judge the current arguments.
    async fn judge(&self) -> Result<ToolCallQuestion, Refusal> {
        let outcome = self.fire(call_event!(ToolGuard, self)).await;
        let guard = self.verdict(&outcome, DenialSource::ToolGuardHook)?;
        let rules = self.host.rule(self.view()).await;
        if let PermissionRuling::Deny(reason) = rules.ruling {
            let denial = ToolCallDenial::new(DeniedBy::Rule, DenialSource::Rule, reason);
            return Err(denial.into());
        }
        Ok(ToolCallQuestion::new(guard, rules, outcome.metadata()))
    }

    /// Returns the approval of a `pre_tool_use` hook, if one allows the call.
    async fn ask_pre_tool_use(
        &mut self,
        question: &mut ToolCallQuestion,
    ) -> Result<Option<ApprovalSource>, Refusal> {
        let source = DenialSource::PreToolUseHook;
        let outcome = self.fire(call_event!(PreToolUse, self)).await;
        for text in outcome.context() {
            // A retry must not repeat the context that an earlier attempt already added.
            if self.attempt == 1 || !self.contexts.contains(text) {
                self.contexts.push(text.clone());
            }
        }
        if let Some(reason) = outcome.stop_run() {
            self.stop = Some(RunStop::new(PreToolUse::INFO.name, reason));
        }
        let demand = self.verdict(&outcome, source)?;
        let approval = outcome
            .is_allowed()
            .then_some(ApprovalSource::PreToolUseHook);
        question.add_metadata(outcome.metadata());
        question.add_demand(demand);
        if let Some(event) = outcome.into_rewritten() {
            self.accept_rewrite(event.tool_input, PreToolUse::INFO.name, source)?;
        }
        Ok(approval)
    }

    /// Asks the hooks that may answer instead of a person.
    async fn request_permission(
        &mut self,
        mut question: ToolCallQuestion,
    ) -> Result<GateResult, Refusal> {
        if self.approved.as_ref() == Some(&self.input) && self.host.still_agreed(self.view()) {
            return Ok(GateResult::Approved(ApprovalSource::User));
        }
        let source = DenialSource::PermissionRequestHook;
        let suggestions = || self.host.suggestions(self.view(), &question);
        let event = call_event!(PermissionRequest, self, with_suggestions(suggestions()));
        let outcome = self.fire(event).await;
        // If a hook asks here, the decision is left to the person, who is asked next.
        let _ask = self.verdict(&outcome, source)?;
        let is_allowed = outcome.is_allowed();
        question.add_metadata(outcome.metadata());
        if let Some(event) = outcome.into_rewritten()
            && event.tool_input != self.input
        {
            self.accept_rewrite(event.tool_input, PermissionRequest::INFO.name, source)?;
            question = question.followed_by(self.judge().await?);
            question.add_demand(self.judge_by_pre_tool_use().await?);
        }
        if is_allowed && question.may_hook_answer() {
            return Ok(GateResult::Approved(ApprovalSource::PermissionRequestHook));
        }
        Ok(GateResult::Question(question))
    }

    /// Lets the hooks of `pre_tool_use` judge arguments that a later hook has changed. They may
    /// deny and ask, but not change the arguments again: two hooks that undo each other's changes
    /// would never finish.
    async fn judge_by_pre_tool_use(&self) -> Result<Option<ConsentDemand>, Refusal> {
        let source = DenialSource::PreToolUseHook;
        let outcome = self.fire(call_event!(PreToolUse, self)).await;
        let demand = self.verdict(&outcome, source)?;
        match outcome.into_rewritten() {
            Some(event) if event.tool_input != self.input => {
                let reason =
                    "a hook changed arguments that a permission_request hook had set".to_owned();
                Err(ToolCallDenial::of_hook(PreToolUse::INFO.name, source, reason).into())
            }
            _ => Ok(demand),
        }
    }

    /// Applies a person's answer.
    pub(super) fn apply_answer(
        &mut self,
        question: &ToolCallQuestion,
        answer: UserAnswer,
    ) -> Result<ApprovalSource, Refusal> {
        let source = match answer {
            UserAnswer::Allow => ApprovalSource::User,
            UserAnswer::AllowForSession => ApprovalSource::UserForSession,
            // The earlier yes answered a question of the rules, and was about other arguments.
            UserAnswer::AllowedBefore if question.is_new() => {
                return Err(question.unanswered().into());
            }
            UserAnswer::AllowedBefore => ApprovalSource::Session,
            UserAnswer::Cancelled => return Err(Refusal::Cancelled),
            UserAnswer::Unavailable => return Err(question.unanswered().into()),
            UserAnswer::Deny { reason } => {
                let reason = reason.unwrap_or_default();
                return Err(ToolCallDenial::new(DeniedBy::User, DenialSource::User, reason).into());
            }
        };
        self.approved = Some(self.input.clone());
        Ok(source)
    }

    /// Reports why the call does not run.
    pub(super) async fn announce_refusal(&self, refusal: &Refusal) {
        match refusal {
            Refusal::Denied(denial) => {
                self.announce_decision(ApprovalDecision::Deny, denial.source)
                    .await;
                let event = call_event!(
                    PermissionDenied,
                    self,
                    with_reason(denial.reason.clone()),
                    with_by(denial.by)
                );
                self.announce(event).await;
            }
            Refusal::Cancelled => {
                self.announce_decision(ApprovalDecision::Cancelled, DecisionSource::Cancelled)
                    .await;
            }
        }
    }

    /// Returns the question that a hook asks a person, if any. Refuses the call if a hook stopped
    /// it, or if the run was cancelled: hooks that were cancelled with it did not judge.
    fn verdict<E: GateEvent>(
        &self,
        outcome: &Outcome<E>,
        source: DenialSource,
    ) -> Result<Option<ConsentDemand>, Refusal> {
        if self.is_cancelled() {
            return Err(Refusal::Cancelled);
        }
        let event = E::INFO.name;
        match outcome.decision() {
            Decision::Proceed => Ok(None),
            Decision::Ask { reason, by } => Ok(Some(ConsentDemand {
                reason,
                by: DemandedBy::Hook { event, hook: by },
            })),
            Decision::Stop { reason, by, kind } => Err(ToolCallDenial {
                hook: by,
                kind,
                ..ToolCallDenial::of_hook(event, source, reason)
            }
            .into()),
        }
    }

    /// Accepts arguments that a hook has changed, if the host considers them valid.
    fn accept_rewrite(
        &mut self,
        input: JsonObject,
        event: &'static str,
        source: DenialSource,
    ) -> Result<(), Refusal> {
        if let Err(error) = self.host.check_input(self.view_with(&input)) {
            let reason = format!("the hook left {error}");
            return Err(ToolCallDenial::of_hook(event, source, reason).into());
        }
        self.input = input;
        Ok(())
    }
}
