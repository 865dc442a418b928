//! The gates before a tool: who may stop a call, and who may let it through.
//!
//! | step | stops the call | lets it through |
//! |---|---|---|
//! | `tool_input_transform` | block | – |
//! | a protected file | goes to the user whatever else is said; nobody there: deny | – |
//! | `tool_guard` | deny, block; ask sends it to the user whatever else is said | – |
//! | permission rules | a deny rule | an allow rule, a grant of the user, a harmless tool |
//! | `pre_tool_use` | deny, block; ask sends it to the user | allow, in the place of a question that no ask rule asks |
//! | `--yes` | – | in the place of a question that no hook asked for |
//! | `permission_request` | deny, block | allow, unless a guard asked or the file is protected |
//! | the user | no; also where nobody is there | yes |
//!
//! `pre_tool_use` hears of every call that nobody denied before it, also of one that a rule allows.
//! Arguments that a hook changed are checked against the tool again, and the guard and the rules judge
//! them once more. That judgement may deny or ask, never approve: of what the rules say of the first and
//! of the final arguments, the stricter counts.
//!
//! A call that is tried again passes all of it again but `tool_input_transform`, whose changes it has; arguments that
//! the user has agreed to are not asked for a second time.

use tenterhook_protocol::event::{
    ApprovalSource, DenialSource, DeniedBy, PermissionRequest, PreToolUse, ToolGuard,
    ToolInputTransform, WaitReason, WaitingForUser,
};
use tenterhook_protocol::{Decision, Event, GateEvent, HookId, JsonObject, Outcome};

use tokio::sync::MutexGuard;

use super::{Bench, Denied, Passage, Refusal, Stop, call_event};
use crate::frontend::{Approval, ApprovalRequest, AskedBy};
use crate::hooks::reason_or_none;
use crate::permission::{Reach, Ruling, suggestion};
use crate::protection::ProtectedTarget;
use crate::tool::{Tool, blocking};

/// The user has to be asked, whatever rules and `--yes` say.
struct Demand {
    reason: String,
    by: DemandedBy,
}

/// Why the user has to be asked.
enum DemandedBy {
    /// A hook demands it. Where it is a guard, no other hook's allow answers instead of the user.
    Hook {
        event: &'static str,
        hook: Option<HookId>,
    },
    /// The call changes a protected file. No hook answers instead of the user.
    Protection,
}

impl Demand {
    /// Makes the demand for a protected file, with what a guard says of the call.
    fn of_protection(found: &ProtectedTarget, guard: Option<Self>) -> Self {
        let reason = format!(
            "it changes {}, which only the user may change",
            found.description
        );
        Self {
            reason: match guard {
                Some(guard) => format!("{reason}; a hook asks, too: {}", guard.reason),
                None => reason,
            },
            by: DemandedBy::Protection,
        }
    }

    /// Says whether a hook of `permission_request` may answer instead of the user.
    fn may_hook_answer(&self) -> bool {
        match self.by {
            DemandedBy::Hook { event, .. } => event != ToolGuard::INFO.name,
            DemandedBy::Protection => false,
        }
    }
}

/// What is asked of the user.
struct Question {
    demand: Option<Demand>,
    /// The protected file that the call changes.
    protected: Option<ProtectedTarget>,
    ruling: Ruling,
    /// A hook changed the arguments since they were first judged.
    is_changed: bool,
    metadata: JsonObject,
}

impl Bench<'_> {
    /// Takes a call through every gate and returns what let it through.
    pub(super) async fn pass_gates(
        &self,
        passage: &mut Passage<'_>,
    ) -> Result<ApprovalSource, Refusal> {
        if passage.attempt == 1 {
            self.transform_input(passage).await?;
        }
        let mut question = self.judge(passage).await?;
        let before = passage.input.clone();
        let hook_approval = self.ask_pre_tool_use(passage, &mut question).await?;
        if passage.input != before {
            let again = self.judge(passage).await?;
            question = question.followed_by(again);
        }
        match question.answer_without_user(hook_approval, self.setup.permissions.says_yes()) {
            Some(source) => Ok(source),
            None => self.ask(passage, question).await,
        }
    }

    async fn transform_input(&self, passage: &mut Passage<'_>) -> Result<(), Refusal> {
        let outcome = self
            .hooks
            .fire(call_event!(ToolInputTransform, passage))
            .await;
        if let Some(demand) = self.verdict(&outcome, DenialSource::ToolInputTransformHook)? {
            let hook = match demand.by {
                DemandedBy::Hook { hook, .. } => hook,
                DemandedBy::Protection => None,
            };
            return Err(Refusal::Denied(Denied {
                by: DeniedBy::Hook,
                event: Some(ToolInputTransform::INFO.name),
                hook,
                reason: demand.reason,
                source: DenialSource::ToolInputTransformHook,
            }));
        }
        if let Some(event) = outcome.into_rewritten() {
            accept(
                passage,
                event.tool_input,
                ToolInputTransform::INFO.name,
                DenialSource::ToolInputTransformHook,
            )?;
        }
        Ok(())
    }

    /// Lets the guard and the rules judge the present arguments.
    async fn judge(&self, passage: &Passage<'_>) -> Result<Question, Refusal> {
        let outcome = self.hooks.fire(call_event!(ToolGuard, passage)).await;
        let demand = self.verdict(&outcome, DenialSource::ToolGuardHook)?;
        let protected = self.find_protected(passage).await?;
        let demand = match &protected {
            Some(found) => Some(Demand::of_protection(found, demand)),
            None => demand,
        };
        let ruling = self
            .setup
            .permissions
            .judge(&*passage.tool, &passage.input, self.cwd());
        if let Ruling::Deny(rule) = ruling {
            return Err(Refusal::Denied(Denied {
                by: DeniedBy::Rule,
                event: None,
                hook: None,
                reason: format!("the permission rule `{rule}` denies it"),
                source: DenialSource::Rule,
            }));
        }
        Ok(Question {
            demand,
            protected,
            ruling,
            is_changed: false,
            metadata: outcome.metadata().cloned().unwrap_or_default(),
        })
    }

    /// Returns the protected file that a call changes.
    async fn find_protected(
        &self,
        passage: &Passage<'_>,
    ) -> Result<Option<ProtectedTarget>, Refusal> {
        let Some(path) = passage.tool.changed_file(&passage.input) else {
            return Ok(None);
        };
        let (guard, path) = (self.write_guard(passage), self.cwd().join(path));
        let judged = blocking(move || Ok(guard.judge(&path))).await;
        judged.map_err(|failure| {
            Refusal::Denied(Denied {
                by: DeniedBy::Rule,
                event: None,
                hook: None,
                reason: format!("it is not known whether the file is protected: {failure}"),
                source: DenialSource::Rule,
            })
        })
    }

    async fn ask_pre_tool_use(
        &self,
        passage: &mut Passage<'_>,
        question: &mut Question,
    ) -> Result<Option<ApprovalSource>, Refusal> {
        let outcome = self.hooks.fire(call_event!(PreToolUse, passage)).await;
        for text in outcome.context() {
            // What was said of one attempt needs not be said of the next.
            if passage.attempt == 1 || !passage.contexts.contains(text) {
                passage.contexts.push(text.clone());
            }
        }
        if let Some(reason) = outcome.stop_run() {
            passage.stop = Some(Stop {
                event: PreToolUse::INFO.name,
                reason: reason_or_none(reason),
            });
        }
        let demand = self.verdict(&outcome, DenialSource::PreToolUseHook)?;
        let approval = outcome
            .is_allowed()
            .then_some(ApprovalSource::PreToolUseHook);
        fill(&mut question.metadata, outcome.metadata());
        question.demand = question.demand.take().or(demand);
        if let Some(event) = outcome.into_rewritten() {
            accept(
                passage,
                event.tool_input,
                PreToolUse::INFO.name,
                DenialSource::PreToolUseHook,
            )?;
        }
        Ok(approval)
    }

    /// Asks the hooks that may answer for the user, then the user.
    async fn ask(
        &self,
        passage: &mut Passage<'_>,
        mut question: Question,
    ) -> Result<ApprovalSource, Refusal> {
        if passage.approved.as_ref() == Some(&passage.input) && question.is_agreed(passage) {
            return Ok(ApprovalSource::User);
        }
        let reach = question.reach(&*passage.tool);
        let suggested = suggestion(&*passage.tool, &passage.input, reach);
        let event = call_event!(PermissionRequest, passage, suggestions: vec![suggested]);
        let outcome = self.hooks.fire(event).await;
        // A hook that asks here leaves the question to the user, who is asked next.
        let _ask = self.verdict(&outcome, DenialSource::PermissionRequestHook)?;
        let is_allowed = outcome.is_allowed();
        fill(&mut question.metadata, outcome.metadata());
        if let Some(event) = outcome.into_rewritten()
            && event.tool_input != passage.input
        {
            accept(
                passage,
                event.tool_input,
                PermissionRequest::INFO.name,
                DenialSource::PermissionRequestHook,
            )?;
            let again = self.judge(passage).await?;
            question = question.followed_by(again);
            let again = self.judge_by_pre_tool_use(passage).await?;
            question.demand = question.demand.or(again);
        }
        let may_answer = question.demand.as_ref().is_none_or(Demand::may_hook_answer);
        if is_allowed && may_answer {
            return Ok(ApprovalSource::PermissionRequestHook);
        }
        let source = self.ask_user(passage, &question).await?;
        passage.approved = Some(passage.input.clone());
        passage.agreed_target = question.protected.map(|found| found.target);
        Ok(source)
    }

    /// Lets the hooks of `pre_tool_use` judge arguments that a hook made after them. They may deny and ask, but not
    /// change the arguments once more: two hooks that undo each other's work would never end.
    async fn judge_by_pre_tool_use(
        &self,
        passage: &Passage<'_>,
    ) -> Result<Option<Demand>, Refusal> {
        let outcome = self.hooks.fire(call_event!(PreToolUse, passage)).await;
        let demand = self.verdict(&outcome, DenialSource::PreToolUseHook)?;
        match outcome.into_rewritten() {
            Some(event) if event.tool_input != passage.input => Err(Refusal::Denied(Denied {
                by: DeniedBy::Hook,
                event: Some(PreToolUse::INFO.name),
                hook: None,
                reason: "a hook changed arguments that a hook of permission_request had set"
                    .to_owned(),
                source: DenialSource::PreToolUseHook,
            })),
            _ => Ok(demand),
        }
    }

    async fn ask_user(
        &self,
        passage: &Passage<'_>,
        question: &Question,
    ) -> Result<ApprovalSource, Refusal> {
        let frontend = self.hooks.frontend();
        if !frontend.is_interactive() {
            return Err(Refusal::Denied(question.unanswered()));
        }
        let turn = self.cancel.run_until_cancelled(self.turn_to_ask());
        let Some(_one_at_a_time) = turn.await else {
            return Err(Refusal::Canceled);
        };
        // Another call's question may have been answered for the whole session meanwhile.
        let is_granted = || {
            let ruling = self
                .setup
                .permissions
                .judge(&*passage.tool, &passage.input, self.cwd());
            question.demand.is_none() && !question.is_changed && ruling == Ruling::Granted
        };
        if is_granted() {
            return Ok(ApprovalSource::Session);
        }
        let waiting = || WaitingForUser {
            reason: WaitReason::ToolApproval,
        };
        self.hooks.tell(waiting).await;
        let reach = question.reach(&*passage.tool);
        let suggested = suggestion(&*passage.tool, &passage.input, reach);
        let request = ApprovalRequest {
            agent: self.agent,
            tool: &passage.call.name,
            input: &passage.input,
            reason: question.reason(),
            by: question.asked_by(),
            metadata: &question.metadata,
            suggestion: &suggested,
        };
        let answer = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(Refusal::Canceled),
            answer = frontend.approve(request) => answer,
        };
        match answer {
            // A yes to the change of a protected file is about that one change.
            Approval::AllowSession if question.is_about_protection() => Ok(ApprovalSource::User),
            Approval::AllowOnce => Ok(ApprovalSource::User),
            Approval::AllowSession => {
                let permissions = &self.setup.permissions;
                permissions.grant(&*passage.tool, &passage.input, reach);
                Ok(ApprovalSource::UserForSession)
            }
            Approval::Deny { reason } => Err(Refusal::Denied(Denied {
                by: DeniedBy::User,
                event: None,
                hook: None,
                reason: reason.unwrap_or_default(),
                source: DenialSource::User,
            })),
        }
    }

    /// Waits until nobody else asks the user, and the user is there for who works in the background.
    async fn turn_to_ask(&self) -> MutexGuard<'_, ()> {
        loop {
            if self.in_background {
                self.setup.attention.given().await;
            }
            let turn = self.setup.question.lock().await;
            if !self.in_background || self.setup.attention.is_given() {
                return turn;
            }
        }
    }

    /// Returns what a hook demands of the user, or refuses the call if a hook stopped it or the run was cancelled:
    /// hooks that were cancelled with it did not judge.
    fn verdict<E: GateEvent>(
        &self,
        outcome: &Outcome<E>,
        source: DenialSource,
    ) -> Result<Option<Demand>, Refusal> {
        if self.cancel.is_cancelled() {
            return Err(Refusal::Canceled);
        }
        let event = E::INFO.name;
        match outcome.decision() {
            Decision::Proceed => Ok(None),
            Decision::Ask { reason, by } => Ok(Some(Demand {
                reason,
                by: DemandedBy::Hook { event, hook: by },
            })),
            Decision::Stop { reason, by, .. } => Err(Refusal::Denied(Denied {
                by: DeniedBy::Hook,
                event: Some(event),
                hook: by,
                reason,
                source,
            })),
        }
    }
}

/// Takes arguments that a hook made, if they are still the tool's.
fn accept(
    passage: &mut Passage<'_>,
    input: JsonObject,
    event: &'static str,
    source: DenialSource,
) -> Result<(), Refusal> {
    if let Err(error) = passage.tool.check(&input) {
        return Err(Refusal::Denied(Denied {
            by: DeniedBy::Hook,
            event: Some(event),
            hook: None,
            reason: format!("the hook left {error}"),
            source,
        }));
    }
    passage.input = input;
    Ok(())
}

/// Adds what is not there yet: a guard's words about a call weigh more than those of hooks behind it.
fn fill(metadata: &mut JsonObject, more: Option<&JsonObject>) {
    for (key, value) in more.into_iter().flatten() {
        metadata.entry(key).or_insert_with(|| value.clone());
    }
}

impl Question {
    /// Joins what was said of the first arguments and of the final ones. A demand stays; the rules'
    /// stricter word counts.
    fn followed_by(self, again: Self) -> Self {
        let demand = match (self.demand, again.demand) {
            (_, Some(demand)) | (Some(demand), None) => Some(demand),
            (None, None) => None,
        };
        let mut metadata = again.metadata;
        fill(&mut metadata, Some(&self.metadata));
        Self {
            demand,
            protected: again.protected,
            ruling: self.ruling.stricter(again.ruling),
            is_changed: true,
            metadata,
        }
    }

    /// Says whether the user has agreed to the change of the protected file, if it is one.
    fn is_agreed(&self, passage: &Passage<'_>) -> bool {
        let target = self.protected.as_ref().map(|found| &found.target);
        target.is_none_or(|target| passage.agreed_target.as_ref() == Some(target))
    }

    fn is_about_protection(&self) -> bool {
        let by = self.demand.as_ref().map(|demand| &demand.by);
        matches!(by, Some(DemandedBy::Protection))
    }

    /// Returns how far a yes of the user for the session reaches.
    fn reach(&self, tool: &dyn Tool) -> Reach {
        if self.is_about_protection() {
            Reach::SameInput
        } else {
            self.ruling.reach(tool)
        }
    }

    /// Returns what lets the call through without a question.
    fn answer_without_user(
        &self,
        hook_approval: Option<ApprovalSource>,
        says_yes: bool,
    ) -> Option<ApprovalSource> {
        if self.demand.is_some() {
            return None;
        }
        match self.ruling {
            Ruling::Allow => Some(ApprovalSource::Rule),
            Ruling::Granted => Some(ApprovalSource::Session),
            Ruling::Harmless | Ruling::Unruled if hook_approval.is_some() => hook_approval,
            Ruling::Harmless | Ruling::Unruled | Ruling::Ask(_) if says_yes => {
                Some(ApprovalSource::Yes)
            }
            Ruling::Harmless => Some(ApprovalSource::ReadOnlyTool),
            Ruling::Deny(_) | Ruling::Ask(_) | Ruling::Unruled => None,
        }
    }

    /// Returns why it is asked.
    fn reason(&self) -> Option<&str> {
        match (&self.demand, &self.ruling) {
            (Some(demand), _) => Some(&demand.reason),
            (None, Ruling::Ask(rule)) => Some(rule),
            (None, _) => None,
        }
    }

    fn asked_by(&self) -> AskedBy<'_> {
        match (&self.demand, &self.ruling) {
            (Some(demand), _) => match &demand.by {
                DemandedBy::Hook { event, hook } => AskedBy::Hook {
                    event,
                    hook: hook.as_ref().map(HookId::as_str),
                },
                DemandedBy::Protection => AskedBy::Protection,
            },
            (None, Ruling::Ask(_)) => AskedBy::Rule,
            (None, _) => AskedBy::Default,
        }
    }

    /// Returns the denial of a question that nobody can answer.
    fn unanswered(&self) -> Denied {
        let reason = match self.reason() {
            Some(reason) => format!("it needs approval ({reason}) and nobody is there to give it"),
            None => "it needs approval and nobody is there to give it".to_owned(),
        };
        Denied {
            by: match (&self.demand, &self.ruling) {
                (Some(_), _) if self.is_about_protection() => DeniedBy::User,
                (Some(_), _) => DeniedBy::Hook,
                (None, Ruling::Ask(_) | Ruling::Deny(_)) => DeniedBy::Rule,
                // Without a rule the answer is the user's, and a user who is away says no.
                (None, _) => DeniedBy::User,
            },
            event: None,
            hook: None,
            reason,
            source: DenialSource::NonInteractive,
        }
    }
}
