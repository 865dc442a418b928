//! Reads the answer of a finished hook.
//!
//! | the hook answers | if the event honours it | otherwise |
//! |---|---|---|
//! | stop: exit 2, `continue: false`, `decision: block` | block, or else `stop_run`; on `stop`, the reason of a native hook becomes a follow-up | a notice |
//! | `deny` or `ask` | this permission, or a block if the event can only block | a notice |
//! | `allow` | this permission | nothing |
//! | a rewrite, a summary, context | the rewrite, summary or context | a notice, or a failure with `strict_output` |

use serde_json::{Value, json};
use tenterhook_engine::{EventInfo, EventKind, ReadError, Reply};
use tenterhook_protocol::capability::Capability;
use tenterhook_protocol::{AnyEffect, EventClass, JsonObject, Permission, UniqueObject};

use super::answer::{Answer, Decision};
use super::contract::Contract;
use super::event::{row, takes_instructions, takes_plain_text};
use super::message::from_docker;
use crate::reply::{stderr_tail, too_long};

pub(crate) fn read(
    contract: &Contract,
    info: &EventInfo,
    reply: &Reply<'_>,
    strict: bool,
) -> Result<AnyEffect, ReadError> {
    let reader = Reader {
        contract,
        info,
        strict,
    };
    match *reply {
        Reply::Exited {
            status: 0,
            stdout,
            stdout_omitted,
            ..
        } => reader.text(stdout, stdout_omitted),
        Reply::Exited {
            status: 2, stderr, ..
        } => {
            let mut effect = AnyEffect::default();
            reader.stop(
                &mut effect,
                vec![String::from_utf8_lossy(stderr).trim().to_owned()],
                "exit status 2",
            );
            Ok(effect)
        }
        Reply::Exited { status, stderr, .. } => Err(ReadError::Status {
            status,
            stderr: stderr_tail(stderr),
        }),
        Reply::Returned { json } => reader.text(json, 0),
        Reply::Http { body } => reader.text(body, 0),
    }
}

struct Reader<'a> {
    contract: &'a Contract,
    info: &'a EventInfo,
    strict: bool,
}

impl Reader<'_> {
    /// Reads an answer. `omitted` is the number of bytes that are missing because the answer was too long.
    fn text(&self, answer: &[u8], omitted: u64) -> Result<AnyEffect, ReadError> {
        // The missing bytes may have contained a refusal.
        if omitted > 0 && (self.info.class == EventClass::Gate || self.info.can_stop()) {
            return Err(too_long(omitted));
        }
        let text = String::from_utf8_lossy(answer);
        let text = text.trim();
        let text = if self.contract.is_extended() {
            // Some shells print a byte order mark before their output.
            text.trim_start_matches('\u{feff}').trim_start()
        } else {
            text
        };
        if text.is_empty() {
            return Ok(AnyEffect::default());
        }
        if text.starts_with('{') {
            if omitted > 0 {
                return Err(too_long(omitted));
            }
            if std::str::from_utf8(answer).is_err() {
                return Err(ReadError::invalid("the answer is not UTF-8"));
            }
            return self.object(text);
        }
        if self.strict {
            return Err(ReadError::invalid(
                "the answer is plain text, but `strict_output` requires one JSON object or no output",
            ));
        }
        let is_context = takes_plain_text(self.info.kind);
        if self.is_strict_gate() && !is_context {
            return Err(ReadError::invalid(
                "the answer is plain text, but a gate expects one JSON object or no output",
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

    fn object(&self, text: &str) -> Result<AnyEffect, ReadError> {
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

    /// Refuses an answer with parts that do not belong to the event, if it would be unsafe to ignore them.
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
        let public = self.contract.shown_as.and_then(row).map(|row| row.name);
        let names = [
            Some(self.info.name),
            row(self.info.kind).map(|row| row.name),
            public,
        ];
        match &answer.hook_event_name {
            Some(name) if !names.contains(&Some(name.as_str())) => {
                Err(ReadError::invalid(format!(
                    "`hook_event_name` is `{name}`, but the event is `{}`",
                    self.info.name
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the answer is from a native hook on a gate. In such an answer, a typing error
    /// must not count as consent.
    fn is_strict_gate(&self) -> bool {
        self.info.class == EventClass::Gate && self.contract.is_extended()
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

    /// Returns the canonical effect of a native hook. Hooks of docker-agent cannot answer with one.
    fn canonical(&self, effect: Option<AnyEffect>) -> Result<AnyEffect, ReadError> {
        match effect {
            Some(effect) if self.contract.is_extended() => Ok(effect),
            Some(_) if self.strict => Err(ReadError::invalid("unknown key `effect`")),
            Some(_) | None => Ok(AnyEffect::default()),
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

    /// Stops the operation in the way that the event supports.
    fn stop(&self, effect: &mut AnyEffect, mut reasons: Vec<String>, key: &str) {
        reasons.retain(|reason| !reason.is_empty());
        let reason = reasons.join("\n");
        if self.info.honours(Capability::Block) {
            effect.block = Some(reason);
        } else if self.info.honours(Capability::Permission) {
            effect.set_permission(Permission::Deny, Some(reason));
        } else if self.info.honours(Capability::StopRun) {
            effect.stop_run = Some(reason);
        } else if self.info.kind == EventKind::Stop && self.contract.is_extended() {
            effect.follow_up.push(reason);
        } else {
            effect.notices.push(format!(
                "{}: {key} has no effect because the event cannot block",
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
            _ if self.strict && !self.contract.is_extended() => {
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
        if self.info.kind == EventKind::PostToolUse && self.contract.is_extended() {
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

    /// Ignores a part of the answer that the event does not support, and adds a notice about it. In
    /// strict mode, it is an error instead.
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
