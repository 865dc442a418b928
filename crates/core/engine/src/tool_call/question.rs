//! The question that a person is asked about a tool call, and the answer.

use tenterhook_protocol::event::{ApprovalSource, DenialSource, DeniedBy, ToolGuard};
use tenterhook_protocol::{Event, HookId, JsonObject, StopKind};

use super::ruling::{PermissionRuling, RuleVerdict};

/// Who requires that a person is asked about a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskedBy<'a> {
    /// A hook.
    Hook {
        /// The event of the hook.
        event: &'static str,
        /// The hook, if known.
        hook: Option<&'a str>,
    },
    /// A permission rule.
    Rule,
    /// The host, because only a person may agree to this call, for example if it changes a
    /// protected file. The answer only applies to this one call, so a yes for the session means a
    /// yes once.
    Protection,
    /// No one in particular: no rule allows the call.
    Default,
}

/// A person's answer to the question of whether a tool call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UserAnswer {
    /// The call may run.
    Allow,
    /// The call may run, and the host also allows similar calls for the rest of the session.
    AllowForSession,
    /// No one was asked, because the answer to an earlier call covers this one.
    AllowedBefore,
    /// The call may not run.
    Deny {
        /// The reason, if the person gave one. The model receives it.
        reason: Option<String>,
    },
    /// No one can be asked, so the call is denied.
    Unavailable,
    /// The run was cancelled before an answer came.
    Cancelled,
}

/// Why a tool call was denied.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCallDenial {
    /// Who denied it.
    pub by: DeniedBy,
    /// The event whose hook denied it, if a hook did.
    pub event: Option<&'static str>,
    /// The hook that denied it, if known.
    pub hook: Option<HookId>,
    /// The reason. Empty if a person gave none.
    pub reason: String,
    /// What decided, in the form that `tool_approval_decision` reports.
    pub source: DenialSource,
    /// How a hook stopped it. [`StopKind::Denied`] if no hook did.
    pub kind: StopKind,
}

impl ToolCallDenial {
    /// Creates a denial that does not come from a hook.
    pub(super) fn new(by: DeniedBy, source: DenialSource, reason: String) -> Self {
        Self {
            by,
            event: None,
            hook: None,
            reason,
            source,
            kind: StopKind::Denied,
        }
    }

    /// Creates the denial of a hook of `event`.
    pub(super) fn of_hook(event: &'static str, source: DenialSource, reason: String) -> Self {
        Self {
            event: Some(event),
            ..Self::new(DeniedBy::Hook, source, reason)
        }
    }

    /// Returns the message for the model. Why a hook failed is not in it: a model would work around the failure, and the
    /// cause can contain paths and output that are not meant for it.
    pub fn for_model(&self) -> String {
        if let (Some(event), StopKind::Failed) = (self.event, self.kind) {
            return format!(
                "The tool call was rejected because a {event} hook failed. The journal has the cause."
            );
        }
        let because = if self.reason.is_empty() {
            String::new()
        } else {
            format!(" Reason: {}", self.reason)
        };
        match self.event {
            Some(event) => format!("The tool call was rejected by a {event} hook.{because}"),
            None if self.source == DenialSource::User => {
                format!("The tool call was rejected by the user.{because}")
            }
            None => format!("The tool call was denied.{because}"),
        }
    }
}

/// A requirement that a person is asked, whatever rules and modes decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConsentDemand {
    pub(super) reason: String,
    pub(super) by: DemandedBy,
}

/// Who requires that a person is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DemandedBy {
    /// A hook. If it is a hook of `tool_guard`, no other hook can answer instead of the person.
    Hook {
        event: &'static str,
        hook: Option<HookId>,
    },
    /// The host. No hook can answer instead of the person.
    Host,
}

impl ConsentDemand {
    /// Creates the host's demand. Adds the reason of a guard, if one asks too.
    fn of_host(reason: String, guard: Option<Self>) -> Self {
        Self {
            reason: match guard {
                Some(guard) => format!("{reason}; a hook also asks: {}", guard.reason),
                None => reason,
            },
            by: DemandedBy::Host,
        }
    }

    /// Returns whether a hook of `permission_request` may answer instead of the person.
    fn may_hook_answer(&self) -> bool {
        match self.by {
            DemandedBy::Hook { event, .. } => event != ToolGuard::INFO.name,
            DemandedBy::Host => false,
        }
    }
}

/// Everything that is known when the host decides whether to ask a person about a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCallQuestion {
    demand: Option<ConsentDemand>,
    ruling: PermissionRuling,
    is_changed: bool,
    metadata: JsonObject,
}

impl ToolCallQuestion {
    /// Combines the answers of the guards and of the host for the same arguments.
    pub(super) fn new(
        guard: Option<ConsentDemand>,
        rules: RuleVerdict,
        metadata: Option<&JsonObject>,
    ) -> Self {
        Self {
            demand: match rules.consent {
                Some(reason) => Some(ConsentDemand::of_host(reason, guard)),
                None => guard,
            },
            ruling: rules.ruling,
            is_changed: false,
            metadata: metadata.cloned().unwrap_or_default(),
        }
    }

    /// Combines the results for the first arguments and for the final ones. A demand is kept, and
    /// the stricter ruling counts.
    pub(super) fn followed_by(self, again: Self) -> Self {
        let mut joined = Self {
            demand: again.demand.or(self.demand),
            ruling: self.ruling.stricter(again.ruling),
            is_changed: true,
            metadata: again.metadata,
        };
        joined.add_metadata(Some(&self.metadata));
        joined
    }

    /// Returns whether an earlier answer cannot count, because a hook or the host requires a
    /// person's consent to this call, or because hooks changed its arguments.
    pub(super) fn is_new(&self) -> bool {
        self.demand.is_some() || self.is_changed
    }

    /// Adds the demand of a later hook, unless there is one already.
    pub(super) fn add_demand(&mut self, demand: Option<ConsentDemand>) {
        self.demand = self.demand.take().or(demand);
    }

    /// Adds keys that do not exist yet, so that a guard's annotations win over later ones.
    pub(super) fn add_metadata(&mut self, more: Option<&JsonObject>) {
        for (key, value) in more.into_iter().flatten() {
            self.metadata.entry(key).or_insert_with(|| value.clone());
        }
    }

    /// Returns what approves the call without a question, if anything does.
    pub(super) fn answer_without_user(
        &self,
        hook_approval: Option<ApprovalSource>,
        answers_yes: bool,
    ) -> Option<ApprovalSource> {
        if self.demand.is_some() {
            return None;
        }
        match self.ruling {
            PermissionRuling::Allow => Some(ApprovalSource::Rule),
            PermissionRuling::Granted => Some(ApprovalSource::Session),
            PermissionRuling::Harmless | PermissionRuling::Unruled if hook_approval.is_some() => {
                hook_approval
            }
            PermissionRuling::Harmless | PermissionRuling::Unruled | PermissionRuling::Ask(_)
                if answers_yes =>
            {
                Some(ApprovalSource::Yes)
            }
            PermissionRuling::Harmless => Some(ApprovalSource::ReadOnlyTool),
            PermissionRuling::Deny(_) | PermissionRuling::Ask(_) | PermissionRuling::Unruled => {
                None
            }
        }
    }

    /// Returns whether a hook of `permission_request` may answer instead of the person.
    pub(super) fn may_hook_answer(&self) -> bool {
        self.demand
            .as_ref()
            .is_none_or(ConsentDemand::may_hook_answer)
    }

    /// Returns the denial of a question that no one can answer.
    pub(super) fn unanswered(&self) -> ToolCallDenial {
        let reason = match self.reason() {
            Some(reason) => format!("it needs approval ({reason}) and no one is there to give it"),
            None => "it needs approval and no one is there to give it".to_owned(),
        };
        let by = match (&self.demand, &self.ruling) {
            (Some(demand), _) if demand.by == DemandedBy::Host => DeniedBy::User,
            (Some(_), _) => DeniedBy::Hook,
            (None, PermissionRuling::Ask(_) | PermissionRuling::Deny(_)) => DeniedBy::Rule,
            // Without a rule, the person decides, and a person who is not there denies.
            (None, _) => DeniedBy::User,
        };
        ToolCallDenial::new(by, DenialSource::NonInteractive, reason)
    }

    /// Returns the hook that asks, if known.
    pub(super) fn asking_hook(&self) -> Option<&HookId> {
        match &self.demand.as_ref()?.by {
            DemandedBy::Hook { hook, .. } => hook.as_ref(),
            DemandedBy::Host => None,
        }
    }

    /// Returns why a person is asked: the reason of a hook, of the host or of a rule, if there is
    /// one.
    pub fn reason(&self) -> Option<&str> {
        match (&self.demand, &self.ruling) {
            (Some(demand), _) => Some(&demand.reason),
            (None, PermissionRuling::Ask(rule)) => Some(rule),
            (None, _) => None,
        }
    }

    /// Returns who requires that a person is asked.
    pub fn asked_by(&self) -> AskedBy<'_> {
        match (&self.demand, &self.ruling) {
            (Some(demand), _) => match &demand.by {
                DemandedBy::Hook { event, hook } => AskedBy::Hook {
                    event,
                    hook: hook.as_ref().map(HookId::as_str),
                },
                DemandedBy::Host => AskedBy::Protection,
            },
            (None, PermissionRuling::Ask(_)) => AskedBy::Rule,
            (None, _) => AskedBy::Default,
        }
    }

    /// Returns the ruling of the host's rules. If hooks changed the arguments, it is the stricter
    /// of the rulings on the first and on the final arguments.
    pub fn ruling(&self) -> &PermissionRuling {
        &self.ruling
    }

    /// Returns whether hooks changed the arguments after the rules first judged them.
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Returns the annotations that hooks add to the question.
    pub fn metadata(&self) -> &JsonObject {
        &self.metadata
    }
}
