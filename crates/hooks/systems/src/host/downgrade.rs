//! The rules that keep the answer to a host as strict as the hooks' verdict.

use tenterhook_engine::{Decision, HookId, StopKind};
use tenterhook_protocol::JsonObject;

use super::agent::HostAgent;
use super::answer::{Downgrade, HostAnswer};
use super::capability::{HostEffect, Support};
use super::denial::DenialText;
use super::event::{EventRole, HostEvent, HostInput, HostMode};
use super::verdict::HostVerdict;

impl HostAgent {
    /// Returns what the host does with an effect on one of its events. An effect that was not measured
    /// counts as lost. A row that was measured headless says nothing about a host with a person.
    pub fn support(&self, event: &str, mode: HostMode, effect: HostEffect) -> Support {
        let mut rows = self.capabilities.iter();
        let row = rows.find(|row| {
            row.event == event
                && row.effect == effect
                && row.mode.is_none_or(|measured| measured == mode)
        });
        row.map_or(Support::Lost, |row| row.support)
    }

    /// Returns the strongest answer to an event that the host honours, and the effects that it replaces.
    ///
    /// An effect that the host would lose is replaced by a stricter one: on a gate, a question and a
    /// rewrite become a denial. Where nothing stricter exists, the effect is left out.
    pub fn answer(
        &self,
        event: &HostEvent,
        input: &HostInput<'_>,
        mode: HostMode,
        verdict: HostVerdict,
    ) -> (HostAnswer, Vec<Downgrade>) {
        let mut answering = Answering {
            host: self,
            event,
            mode,
            verdict,
            downgrades: Vec::new(),
        };
        let is_lost = |effect| self.support(event.name, mode, effect) != Support::Honoured;
        for effect in STOPPING.iter().filter(|effect| is_lost(**effect)) {
            answering.replace(*effect);
        }
        answering.give_reason(!is_lost(HostEffect::DenyReason));
        for effect in DROPPED.iter().filter(|effect| is_lost(**effect)) {
            if self.support(event.name, mode, *effect) == Support::Dangerous || !is_stop(*effect) {
                answering.replace(*effect);
            } else {
                answering.warn_of_ignored_stop(*effect);
            }
        }
        // Each failed attempt removes one effect, so the loop ends.
        for _ in 0..=STOPPING.len() + DROPPED.len() {
            match (self.write)(event, input, &answering.verdict) {
                Ok(answer) => return (answer, answering.downgrades),
                Err(effect) => {
                    answering.replace(effect);
                    answering.give_reason(!is_lost(HostEffect::DenyReason));
                }
            }
        }
        (HostAnswer::default(), answering.downgrades)
    }

    /// Returns the answer for an event whose hooks could not be asked: a gate stops, and all other events
    /// continue as if there were no hooks.
    pub fn failure_answer(&self, event: &HostEvent, reason: &str) -> HostAnswer {
        if !event.role.is_gate() {
            return HostAnswer::default();
        }
        let input = HostInput {
            object: &JsonObject::new(),
            variables: &[],
        };
        let verdict = HostVerdict {
            decision: stop(reason.to_owned(), StopKind::Failed),
            ..HostVerdict::default()
        };
        let (answer, _) = self.answer(event, &input, HostMode::Interactive, verdict);
        answer
    }
}

/// Returns whether an effect stops what a gate announces.
const fn is_stop(effect: HostEffect) -> bool {
    matches!(effect, HostEffect::Deny | HostEffect::BlockPrompt)
}

/// The effects whose replacement on a gate is a stop.
const STOPPING: &[HostEffect] = &[
    HostEffect::Ask,
    HostEffect::Rewrite,
    HostEffect::RewritePrompt,
    HostEffect::StopRun,
];

/// The effects that are left out if the host does not honour them.
const DROPPED: &[HostEffect] = &[
    HostEffect::Allow,
    HostEffect::Context,
    HostEffect::ReplaceResult,
    HostEffect::Continue,
    HostEffect::Deny,
    HostEffect::BlockPrompt,
];

/// A verdict whose effects are being replaced by those that the host honours.
struct Answering<'a> {
    host: &'a HostAgent,
    event: &'a HostEvent,
    mode: HostMode,
    verdict: HostVerdict,
    downgrades: Vec<Downgrade>,
}

impl Answering<'_> {
    /// Denies what a hook wants to ask a person about, if it does.
    fn deny_question(&mut self) {
        let Decision::Ask { reason, by } = &self.verdict.decision else {
            return;
        };
        let reason = match self.mode {
            HostMode::Headless => {
                format!("{reason} (a hook asks a person to decide, but no one can be asked)")
            }
            HostMode::Interactive => format!(
                "{reason} ({} cannot ask you from a hook, so this is denied; to allow it, change the hook, or do \
                 it yourself)",
                self.host.title
            ),
        };
        let by = by.clone();
        self.stop_instead(HostEffect::Ask, reason);
        if let Decision::Stop { by: slot, .. } = &mut self.verdict.decision {
            *slot = by;
        }
    }

    /// Replaces an effect that the host does not honour, if the verdict has it.
    fn replace(&mut self, effect: HostEffect) {
        let title = self.host.title;
        match effect {
            HostEffect::Ask => self.deny_question(),
            HostEffect::Rewrite => {
                if self.verdict.input.take().is_some() {
                    let reason = format!("a hook changed the arguments, which {title} cannot run");
                    self.stop_instead(effect, reason);
                }
            }
            HostEffect::RewritePrompt => {
                if self.verdict.prompt.take().is_some() {
                    let reason = format!("a hook changed the prompt, which {title} cannot send");
                    self.stop_instead(effect, reason);
                }
            }
            HostEffect::StopRun => {
                if let Some(reason) = self.verdict.stop_run.take() {
                    self.stop_instead(effect, reason);
                }
            }
            HostEffect::Allow => {
                if std::mem::take(&mut self.verdict.is_allowed)
                    && self.verdict.decision.is_proceed()
                {
                    self.report(
                        effect,
                        format!("{title} decides as if no hook had allowed it"),
                    );
                }
            }
            HostEffect::Context => {
                if !std::mem::take(&mut self.verdict.context).is_empty() {
                    self.report(effect, "the model does not see the text".to_owned());
                }
            }
            HostEffect::ReplaceResult => self.keep_result(),
            HostEffect::Continue => {
                if !std::mem::take(&mut self.verdict.follow_up).is_empty() {
                    self.report(effect, "the agent stops".to_owned());
                }
            }
            HostEffect::Deny | HostEffect::BlockPrompt | HostEffect::DenyReason => {
                self.cannot_stop(effect);
            }
        }
    }

    /// Stops what a gate announces, unless it is stopped already. Other events continue.
    fn stop_instead(&mut self, effect: HostEffect, reason: String) {
        let instead = match self.event.role {
            EventRole::ToolGate => "the call is denied",
            EventRole::PromptGate => "the prompt is blocked",
            EventRole::OtherGate => "the operation is stopped",
            EventRole::ToolResult | EventRole::Stop | EventRole::Observer => {
                self.verdict.decision = Decision::Proceed;
                return self.report(effect, "it has no effect".to_owned());
            }
        };
        if !matches!(self.verdict.decision, Decision::Stop { .. }) {
            self.verdict.decision = stop(reason, StopKind::Denied);
        }
        self.report(effect, instead.to_owned());
    }

    /// Lets the host show the tool's own result. If hooks wanted to hide it, the person must know.
    fn keep_result(&mut self) {
        if self.verdict.result.take().is_none() {
            return;
        }
        let title = self.host.title;
        let instead = "the model sees the tool's own result";
        self.report(HostEffect::ReplaceResult, instead.to_owned());
        if std::mem::take(&mut self.verdict.is_withheld) {
            self.verdict.notices.push(format!(
                "a hook withheld the result of a tool, but {title} cannot replace it: {instead}"
            ));
        }
    }

    /// Removes a stop that cannot be written, or that would make the host do something worse than to continue.
    fn cannot_stop(&mut self, effect: HostEffect) {
        if self.warn_of_ignored_stop(effect) {
            self.verdict.decision = Decision::Proceed;
        }
    }

    /// Reports a stop that the host ignores. It is written nevertheless, because another version of the host may
    /// follow it. Returns whether the verdict has such a stop.
    fn warn_of_ignored_stop(&mut self, effect: HostEffect) -> bool {
        let is_prompt = self.event.role == EventRole::PromptGate;
        if is_prompt != (effect == HostEffect::BlockPrompt) || effect == HostEffect::DenyReason {
            return false;
        }
        let Decision::Stop { reason, .. } = &self.verdict.decision else {
            return false;
        };
        let title = self.host.title;
        let notice = format!(
            "{title} ignores hooks that stop `{}`: {reason}",
            self.event.name
        );
        self.verdict.notices.push(notice);
        self.report(effect, format!("{title} continues"));
        true
    }

    /// Makes a stop the only effect of the verdict, because hosts differ in what they do with others next
    /// to it. The model sees added texts after the reason.
    fn give_reason(&mut self, is_shown: bool) {
        let Decision::Stop { reason, by, .. } = &mut self.verdict.decision else {
            return;
        };
        let context = std::mem::take(&mut self.verdict.context);
        if is_shown {
            for text in context {
                reason.push_str("\n\n");
                reason.push_str(&text);
            }
        }
        // Taken, because the reason is given again after each effect that cannot be written.
        let decided_by = self.verdict.decided_by.take();
        *reason = DenialText {
            reason,
            hook: by.as_ref().map(HookId::as_str),
            by: decided_by.as_ref(),
        }
        .to_string();
        self.verdict.is_allowed = false;
        self.verdict.input = None;
        self.verdict.prompt = None;
        if self.verdict.stop_run.take().is_some() {
            let instead = "only this operation is stopped".to_owned();
            self.report(HostEffect::StopRun, instead);
        }
    }

    fn report(&mut self, effect: HostEffect, instead: String) {
        self.downgrades.push(Downgrade { effect, instead });
    }
}

fn stop(reason: String, kind: StopKind) -> Decision {
    Decision::Stop {
        reason,
        by: None,
        kind,
    }
}

#[cfg(test)]
mod tests;
