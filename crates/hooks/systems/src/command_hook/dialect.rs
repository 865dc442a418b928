//! The dialect of hooks that read one JSON object on standard input.

use crate::tool_names::ToolTable;
use tenterhook_engine::event::PostToolUse;
use tenterhook_engine::{
    Dialect, EventClass, EventInfo, EventRef, OnError, Policy, ReadError, Reply, ToolNames,
    WriteError,
};
use tenterhook_protocol::{AnyEffect, JsonObject};

use super::condition::Condition;
use crate::escape::{EscapeStyle, escape};
use crate::reply::too_long;
use crate::settings_file::{Occurrences, SettingsEvent};

/// What differs between the systems.
#[derive(Debug)]
pub(crate) struct HookContract {
    /// The name of the dialect.
    pub(crate) name: &'static str,
    /// The name of the dialect for events that only have results of tools that failed, which are written
    /// in another form.
    pub(crate) name_of_failures: &'static str,
    pub(crate) tools: &'static ToolTable,
    /// Writes an event, whose tool call has the system's names.
    pub(crate) write: fn(&SettingsEvent, &EventRef) -> Result<JsonObject, WriteError>,
    /// Reads what a hook printed.
    pub(crate) read:
        fn(&SettingsEvent, &EventInfo, &Printed<'_>, bool) -> Result<AnyEffect, ReadError>,
    /// The variables that name the directory of the project.
    pub(crate) directory_variables: &'static [&'static str],
    /// The variables that name the session.
    pub(crate) session_variables: &'static [&'static str],
    /// Variables by which a hook recognises its agent, with their values.
    pub(crate) marks: &'static [(&'static str, &'static str)],
    /// Why a gate that fails denies.
    pub(crate) because: &'static str,
}

/// What a hook printed, and its exit status.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printed<'a> {
    pub(crate) status: i32,
    pub(crate) stdout: &'a str,
    pub(crate) stderr: &'a str,
}

/// The dialect of one hook.
#[derive(Debug)]
pub(crate) struct CommandHook {
    contract: &'static HookContract,
    event: &'static SettingsEvent,
    condition: Option<Condition>,
}

impl CommandHook {
    /// Creates the dialect of a hook on an event, with the condition in its key `if`.
    pub(crate) const fn new(
        contract: &'static HookContract,
        event: &'static SettingsEvent,
        condition: Option<Condition>,
    ) -> Self {
        Self {
            contract,
            event,
            condition,
        }
    }

    fn is_met(&self, event: &EventRef) -> bool {
        let Some(condition) = &self.condition else {
            return true;
        };
        // A call that the system cannot express fails when it is written.
        let Ok(seen) = event.seen_by(self.contract.tools) else {
            return true;
        };
        let seen = seen.as_ref().unwrap_or(event);
        match seen.event().tool_call() {
            Some((tool, Some(input))) => condition.may_be_met(tool, input),
            Some((tool, None)) => condition.may_be_met(tool, &JsonObject::new()),
            None => true,
        }
    }
}

impl Dialect for CommandHook {
    fn name(&self) -> &'static str {
        match self.event.occurrences {
            Occurrences::All | Occurrences::Succeeded => self.contract.name,
            Occurrences::Failed => self.contract.name_of_failures,
        }
    }

    fn has_event(&self, event: &EventRef) -> bool {
        let is_ours = event.downcast::<PostToolUse>().is_none_or(|result| {
            !result.blocked
                && match self.event.occurrences {
                    Occurrences::All => true,
                    Occurrences::Succeeded => !result.result.is_error,
                    Occurrences::Failed => result.result.is_error,
                }
        });
        is_ours && self.is_met(event)
    }

    fn write(&self, event: &EventRef) -> Result<Vec<u8>, WriteError> {
        if event.info().kind != self.event.kind {
            return Err(WriteError::NoSuchEvent {
                dialect: self.contract.name,
                event: event.event().name().to_owned(),
            });
        }
        let object = (self.contract.write)(self.event, event)?;
        let text = serde_json::to_string(&object).map_err(WriteError::Payload)?;
        Ok(escape(text, EscapeStyle::Plain))
    }

    fn read(
        &self,
        info: &EventInfo,
        reply: &Reply<'_>,
        strict: bool,
    ) -> Result<AnyEffect, ReadError> {
        let (status, stdout, stderr) = match *reply {
            Reply::Exited {
                stdout_omitted: omitted @ 1..,
                ..
            } => return Err(too_long(omitted)),
            Reply::Exited {
                status,
                stdout,
                stderr,
                ..
            } => (status, stdout, stderr),
            Reply::Returned { json: body } | Reply::Http { body } => (0, body, &b""[..]),
        };
        let stdout = std::str::from_utf8(stdout);
        let stdout = stdout.map_err(|_| ReadError::invalid("the answer is not UTF-8"))?;
        let printed = Printed {
            status,
            stdout: stdout.trim(),
            stderr: &String::from_utf8_lossy(stderr),
        };
        (self.contract.read)(self.event, info, &printed, strict)
    }

    fn variables(&self, event: &EventRef) -> Vec<(&'static str, String)> {
        let contract = self.contract;
        let origin = &event.envelope().origin;
        let named = |names: &'static [&'static str], value: &str| {
            let names = names.iter();
            names
                .map(|name| (*name, value.to_owned()))
                .collect::<Vec<_>>()
        };
        let mut variables = named(contract.directory_variables, &origin.cwd.to_string_lossy());
        variables.extend(named(
            contract.session_variables,
            origin.session_id.as_str(),
        ));
        let marks = contract.marks.iter();
        variables.extend(marks.map(|(name, value)| (*name, (*value).to_owned())));
        variables
    }

    fn tools(&self) -> Option<&dyn ToolNames> {
        Some(self.contract.tools)
    }

    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy {
        match (configured, info.class) {
            (Some(on_error), _) => Policy::new(on_error, "configured"),
            (None, EventClass::Gate) => {
                Policy::new(OnError::Block, self.contract.because).documented(OnError::Warn)
            }
            (None, EventClass::Observer) => {
                Policy::new(OnError::Warn, "hooks cannot stop this event")
            }
        }
    }
}
