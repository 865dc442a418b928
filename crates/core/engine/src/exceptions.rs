//! Denials that the user lifts because they were wrong. The engine knows neither how a user does that nor where the
//! exceptions are stored.

use std::fmt;

use futures_util::future::BoxFuture;
use tenterhook_protocol::{
    AnyEffect, AnyOutcome, Decision, EventInfo, HookId, JsonObject, Permission,
};

use crate::event_ref::EventRef;
use crate::fold::fold;
use crate::hook::{HookSpec, Source};

/// A tool call that a hook denied. A failure of the hook is not a denial.
#[derive(Debug, Clone, PartialEq)]
pub struct HookDenial {
    /// The hook that denied.
    pub hook: HookId,
    /// Where that hook is defined.
    pub source: Source,
    /// The hook system of that hook.
    pub system: &'static str,
    /// The event of the hook.
    pub event: String,
    /// The tool, as the hook saw it before the names of its own system.
    pub tool: String,
    /// The arguments, including the changes of the hooks that ran before.
    pub input: JsonObject,
    /// The hook's reason.
    pub reason: Option<String>,
}

impl HookDenial {
    /// Returns the denial of a hook whose effect stops `event`, if the event is a tool call. An event without the
    /// arguments has none, because an exception would then be for every call of the tool.
    pub(crate) fn of(spec: &HookSpec, event: &EventRef, stop: &AnyEffect) -> Option<Self> {
        let (tool, input) = event.event().tool_call()?;
        let input = input?.clone();
        let verdict = stop.permission.as_ref();
        Some(Self {
            hook: spec.id.clone(),
            source: spec.source.clone(),
            system: spec.system(),
            event: event.event().name().to_owned(),
            tool: tool.to_owned(),
            input,
            reason: verdict
                .and_then(|verdict| verdict.reason.clone())
                .or_else(|| stop.block.clone()),
        })
    }
}

/// What the exceptions of the user mean for a denial.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DenialRuling {
    /// The exception that lifts the denial. `None` means that the denial stands.
    pub exception: Option<Exception>,
    /// What the user can do if a denial that stands was wrong: the end of a sentence that begins with
    /// "the user can".
    pub remedy: Option<String>,
    /// Why an exception for this call is not in force. The user sees it.
    pub problem: Option<String>,
}

/// An exception of the user that lifts a denial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// Identifies the exception for [`Exceptions::use_up`].
    pub key: String,
    /// With which command the user made it, and when. The journal has it.
    pub origin: String,
}

/// The exceptions of the user. The engine asks only after a hook has denied a tool call.
pub trait Exceptions: fmt::Debug + Send + Sync {
    /// Decides whether a denial stands. Does not use up an exception.
    fn rule(&self, denial: HookDenial) -> BoxFuture<'_, DenialRuling>;

    /// Uses an exception, because nothing else stops the call. Returns whether it was still in force.
    /// If an exception counts once, this returns true to one caller only.
    fn use_up<'a>(&'a self, exception: &'a Exception) -> BoxFuture<'a, bool>;
}

/// The denials of one call that exceptions lift, if nothing else stops the call.
#[derive(Debug, Default)]
pub(crate) struct LiftedDenials(Vec<LiftedDenial>);

/// A denial that an exception lifts.
#[derive(Debug)]
pub(crate) struct LiftedDenial {
    pub(crate) hook: HookId,
    /// The part of the hook's effect that is not applied.
    pub(crate) stop: AnyEffect,
    pub(crate) exception: Exception,
    /// What the user can do if the exception is not in force any more.
    pub(crate) remedy: Option<String>,
}

impl LiftedDenials {
    pub(crate) fn add(&mut self, denial: LiftedDenial) {
        self.0.push(denial);
    }

    /// Uses up the exceptions, unless something else stops the call: an exception that counts once must
    /// not be lost to a call that does not run. A denial whose exception is gone stands. Returns the hooks
    /// of such denials.
    pub(crate) async fn use_up(
        &mut self,
        exceptions: &dyn Exceptions,
        info: &EventInfo,
        outcome: &mut AnyOutcome,
    ) -> Vec<HookId> {
        let mut standing = Vec::new();
        let mut used: Vec<String> = Vec::new();
        for denial in std::mem::take(&mut self.0) {
            if matches!(info.decision(outcome), Decision::Stop { .. }) {
                break;
            }
            // Operations of one call can be equal.
            if used.contains(&denial.exception.key) {
                continue;
            }
            if exceptions.use_up(&denial.exception).await {
                used.push(denial.exception.key);
            } else {
                fold(outcome, &denial.hook, denial.stop);
                outcome.remedy = denial.remedy;
                standing.push(denial.hook);
            }
        }
        standing
    }
}

/// Removes the denial from an effect. An approval in the same effect is removed too, because the hook did
/// not mean to let the call through.
pub(crate) fn lift(effect: &mut AnyEffect) {
    effect.block = None;
    let permission = effect.permission.take();
    effect.permission = permission.filter(|verdict| verdict.permission == Permission::Ask);
}
