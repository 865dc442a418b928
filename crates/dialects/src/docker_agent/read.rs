//! Reading what a finished hook answered.
//!
//! | the hook says | where the event honours it | elsewhere |
//! |---|---|---|
//! | stop: exit 2, `continue: false`, `decision: block` | block; else `stop_run`; on `stop` a native hook's reason becomes a follow-up | a notice |
//! | `deny` or `ask` | that permission; where the event knows blocks only, a block | a notice |
//! | `allow` | that permission | nothing |
//! | a rewrite, a summary, context | done | a notice; under `strict_output` a failure |

use serde_json::{Value, json};
use tenterhook::{EventInfo, EventKind, ReadError, Reply};
use tenterhook_protocol::capability::Capability;
use tenterhook_protocol::{AnyEffect, EventClass, JsonObject, Permission, UniqueObject};

use super::Speaker;
use super::answer::{Answer, Decision};
use super::event::{row, takes_instructions, takes_plain_text};
use super::message::from_docker;
use crate::reply::{stderr_tail, too_long};

pub(super) fn read(
    speaker: Speaker,
    info: &EventInfo,
    reply: &Reply<'_>,
    strict: bool,
) -> Result<AnyEffect, ReadError> {
    let reader = Reader {
        speaker,
        info,
        strict,
    };
    match reply.status {
        0 => reader.stdout(reply),
        2 => {
            let mut effect = AnyEffect::default();
            reader.stop(
                &mut effect,
                vec![String::from_utf8_lossy(reply.stderr).trim().to_owned()],
                "exit status 2",
            );
            Ok(effect)
        }
        status => Err(ReadError::Status {
            status,
            stderr: stderr_tail(reply.stderr),
        }),
    }
}

struct Reader<'a> {
    speaker: Speaker,
    info: &'a EventInfo,
    strict: bool,
}

impl Reader<'_> {
    fn stdout(&self, reply: &Reply<'_>) -> Result<AnyEffect, ReadError> {
        // What was cut out may have been a refusal, whatever is left on either side of it.
        if reply.stdout_omitted > 0 && (self.info.class == EventClass::Gate || self.info.can_stop())
        {
            return Err(too_long(reply));
        }
        let text = String::from_utf8_lossy(reply.stdout);
        let text = text.trim();
        let text = match self.speaker {
            // Some shells put a byte order mark before what they print.
            Speaker::Native => text.trim_start_matches('\u{feff}').trim_start(),
            Speaker::AgentFile | Speaker::Preempt => text,
        };
        if text.is_empty() {
            return Ok(AnyEffect::default());
        }
        if text.starts_with('{') {
            return self.object(text, reply);
        }
        if self.strict {
            return Err(ReadError::invalid(
                "plain text, where `strict_output` allows one JSON object or nothing",
            ));
        }
        let is_context = takes_plain_text(self.info.kind);
        if self.is_strict_gate() && !is_context {
            return Err(ReadError::invalid(
                "plain text, where a gate answers with one JSON object or nothing",
            ));
        }
        let context = if is_context {
            vec![text.to_owned()]
        } else {
            Vec::new()
        };
        Ok(AnyEffect {
            context,
            ..AnyEffect::default()
        })
    }

    fn object(&self, text: &str, reply: &Reply<'_>) -> Result<AnyEffect, ReadError> {
        if reply.stdout_omitted > 0 {
            return Err(too_long(reply));
        }
        if std::str::from_utf8(reply.stdout).is_err() {
            return Err(ReadError::invalid("the answer is not UTF-8"));
        }
        let mut objects = serde_json::Deserializer::from_str(text).into_iter::<UniqueObject>();
        let object = match objects.next() {
            Some(Ok(UniqueObject(object))) => object,
            Some(Err(error)) => return Err(ReadError::invalid(error.to_string())),
            None => return Ok(AnyEffect::default()),
        };
        let rest = text.get(objects.byte_offset()..).unwrap_or_default();
        if !rest.trim().is_empty() {
            return Err(ReadError::invalid(
                "hook output must contain a single JSON object",
            ));
        }
        let answer = Answer::parse(object)?;
        self.check(&answer)?;
        self.effect(answer)
    }

    /// Refuses what is not this event's, where it must not be passed over.
    fn check(&self, answer: &Answer) -> Result<(), ReadError> {
        if self.is_strict_gate() {
            answer.check_sense()?;
        }
        if !self.strict {
            return Ok(());
        }
        if let Some(key) = answer.unknown_keys.first() {
            return Err(ReadError::invalid(format!("unknown key `{key}`")));
        }
        if answer.suppress_output == Some(true) {
            return Err(self.unsupported("suppress_output"));
        }
        let public = (self.speaker == Speaker::Preempt).then_some("pre_tool_use");
        let names = [
            Some(self.info.name),
            row(self.info.kind).map(|row| row.name),
            public,
        ];
        match &answer.hook_event_name {
            Some(name) if !names.contains(&Some(name.as_str())) => {
                Err(ReadError::invalid(format!(
                    "`hook_event_name` is `{name}`, the event is `{}`",
                    self.info.name
                )))
            }
            _ => Ok(()),
        }
    }

    /// Says whether the answer is that of a native hook on a gate, where a slip of the pen must not pass for consent.
    fn is_strict_gate(&self) -> bool {
        self.info.class == EventClass::Gate && self.speaker == Speaker::Native
    }

    fn unsupported(&self, part: &str) -> ReadError {
        ReadError::invalid(format!("{} does not support {part}", self.info.name))
    }

    fn effect(&self, mut answer: Answer) -> Result<AnyEffect, ReadError> {
        let mut effect = self.canonical(answer.effect.take())?;
        effect.notices.extend(answer.system_message.take());
        self.stops(&mut effect, &answer)?;
        if let Some(Decision::Permission(permission)) = answer.decision {
            self.permission(&mut effect, permission, answer.reason.clone(), "decision")?;
        }
        if let Some(permission) = answer.permission {
            self.permission(
                &mut effect,
                permission,
                answer.permission_reason,
                "permission_decision",
            )?;
        }
        self.rewrite(
            &mut effect,
            "updated_input",
            "tool_input",
            answer.updated_input.map(Value::Object),
        )?;
        let messages = answer
            .updated_messages
            .as_ref()
            .map(|messages| from_docker("updated_messages", messages))
            .transpose()?;
        self.rewrite(&mut effect, "updated_messages", "messages", messages)?;
        self.tool_response(&mut effect, answer.updated_tool_response)?;
        self.context(&mut effect, answer.additional_context)?;
        self.instructions(&mut effect, answer.instruction_context)?;
        self.supply(&mut effect, answer.summary)?;
        self.metadata(&mut effect, answer.metadata)?;
        Ok(effect)
    }

    /// Returns the canonical effect of a native hook; elsewhere there is none.
    fn canonical(&self, effect: Option<AnyEffect>) -> Result<AnyEffect, ReadError> {
        match (effect, self.speaker) {
            (Some(effect), Speaker::Native) => Ok(effect),
            (Some(_), Speaker::AgentFile | Speaker::Preempt) if self.strict => {
                Err(ReadError::invalid("unknown key `effect`"))
            }
            (Some(_), Speaker::AgentFile | Speaker::Preempt) | (None, _) => {
                Ok(AnyEffect::default())
            }
        }
    }

    fn stops(&self, effect: &mut AnyEffect, answer: &Answer) -> Result<(), ReadError> {
        let mut reasons = Vec::new();
        let stopped = answer.proceed == Some(false);
        let blocked = answer.decision == Some(Decision::Block);
        if stopped {
            reasons.extend(answer.stop_reason.clone());
        }
        if blocked {
            reasons.extend(answer.reason.clone());
        }
        let key = if stopped { "continue" } else { "decision" };
        if (stopped || blocked) && self.strict && !self.info.can_stop() {
            return Err(self.unsupported(key));
        }
        if stopped || blocked {
            self.stop(effect, reasons, key);
        }
        Ok(())
    }

    /// Stops the operation in the way that the event knows.
    fn stop(&self, effect: &mut AnyEffect, mut reasons: Vec<String>, key: &str) {
        reasons.retain(|reason| !reason.is_empty());
        let reason = reasons.join("\n");
        if self.info.honours(Capability::Block) {
            effect.block = Some(reason);
        } else if self.info.honours(Capability::Permission) {
            effect.set_permission(Permission::Deny, Some(reason));
        } else if self.info.honours(Capability::StopRun) {
            effect.stop_run = Some(reason);
        } else if self.info.kind == EventKind::Stop && self.speaker == Speaker::Native {
            effect.follow_up.push(reason);
        } else {
            effect.notices.push(format!(
                "{}: {key} has no effect, the event cannot block",
                self.info.name
            ));
        }
    }

    fn permission(
        &self,
        effect: &mut AnyEffect,
        permission: Permission,
        reason: Option<String>,
        key: &str,
    ) -> Result<(), ReadError> {
        let honours_permission = self.info.honours(Capability::Permission);
        match permission {
            permission if honours_permission => {
                let stronger = effect
                    .permission
                    .as_ref()
                    .is_none_or(|verdict| permission > verdict.permission);
                if stronger {
                    effect.set_permission(permission, reason);
                }
            }
            Permission::Ask | Permission::Deny if self.info.can_stop() => {
                self.stop(effect, reason.into_iter().collect(), key);
            }
            _ if self.strict && self.speaker != Speaker::Native => {
                return Err(self.unsupported(key));
            }
            Permission::Ask | Permission::Deny => {
                self.stop(effect, reason.into_iter().collect(), key);
            }
            Permission::None | Permission::Allow => {}
        }
        Ok(())
    }

    fn rewrite(
        &self,
        effect: &mut AnyEffect,
        key: &str,
        field: &str,
        value: Option<Value>,
    ) -> Result<(), ReadError> {
        let Some(value) = value else { return Ok(()) };
        if self
            .info
            .rewrites
            .iter()
            .any(|rewrite| rewrite.field == field)
        {
            effect.rewrite.insert(field.to_owned(), value);
            return Ok(());
        }
        self.ignored(effect, key)
    }

    fn tool_response(&self, effect: &mut AnyEffect, text: Option<String>) -> Result<(), ReadError> {
        if self.info.kind == EventKind::PostToolUse && self.speaker == Speaker::Native {
            let content = text.map(|text| json!([{ "type": "text", "text": text }]));
            return self.rewrite(effect, "updated_tool_response", "content", content);
        }
        self.rewrite(
            effect,
            "updated_tool_response",
            "tool_response",
            text.map(Value::String),
        )
    }

    fn context(&self, effect: &mut AnyEffect, text: Option<String>) -> Result<(), ReadError> {
        match text {
            Some(text) if self.info.honours(Capability::Context) => {
                effect.context.push(text);
                Ok(())
            }
            Some(_) => self.ignored(effect, "additional_context"),
            None => Ok(()),
        }
    }

    fn instructions(
        &self,
        effect: &mut AnyEffect,
        texts: Option<Vec<String>>,
    ) -> Result<(), ReadError> {
        match texts {
            Some(texts) if takes_instructions(self.info.kind) => {
                effect.context.extend(texts);
                Ok(())
            }
            Some(_) => self.ignored(effect, "instruction_context"),
            None => Ok(()),
        }
    }

    fn supply(&self, effect: &mut AnyEffect, summary: Option<String>) -> Result<(), ReadError> {
        match summary {
            Some(summary) if self.info.kind == EventKind::BeforeCompaction => {
                effect.supply = (!summary.is_empty()).then_some(Value::String(summary));
                Ok(())
            }
            Some(_) => self.ignored(effect, "summary"),
            None => Ok(()),
        }
    }

    fn metadata(
        &self,
        effect: &mut AnyEffect,
        metadata: Option<JsonObject>,
    ) -> Result<(), ReadError> {
        match metadata {
            Some(metadata)
                if matches!(
                    self.info.kind,
                    EventKind::PermissionRequest | EventKind::ToolGuard
                ) =>
            {
                effect.metadata.extend(metadata);
                Ok(())
            }
            Some(_) if self.strict => Err(self.unsupported("metadata")),
            _ => Ok(()),
        }
    }

    /// Passes over a part of the answer that the event has no use for, and says so.
    fn ignored(&self, effect: &mut AnyEffect, key: &str) -> Result<(), ReadError> {
        if self.strict {
            return Err(self.unsupported(key));
        }
        effect.notices.push(format!(
            "{} does not support {key}; it was ignored",
            self.info.name
        ));
        Ok(())
    }
}
