//! Converts events for hooks of a dialect, and their answers back.
//!
//! The dialect writes and reads. Tool names are translated here, so that no dialect has to do it.

use bytes::Bytes;
use serde_json::Value;
use tenterhook_protocol::{AnyEffect, JsonObject};

use crate::dialect::{Dialect, Reply};
use crate::error::{ReadError, WriteError};
use crate::event_ref::EventRef;
use crate::tools::{ToolInputError, ToolNames, is_tool_input};

impl EventRef {
    /// Returns the event as `dialect` writes it, with the tool names of the dialect's hook system.
    /// Each dialect writes an event only once.
    ///
    /// # Errors
    /// Fails if the dialect cannot write the event.
    pub fn encoded(&self, dialect: &dyn Dialect) -> Result<Bytes, WriteError> {
        self.encoded_once(dialect.name(), || {
            let seen = dialect.tools().map(|tools| self.seen_by(tools));
            let seen = seen.transpose()?.flatten();
            dialect.write(seen.as_ref().unwrap_or(self))
        })
    }

    /// Reads the answer of a hook that received the bytes of [`encoded`](Self::encoded). Translates
    /// changed tool arguments back to their canonical names.
    ///
    /// # Errors
    /// Fails if the answer is not valid in the dialect, or if its changed arguments cannot be
    /// translated.
    pub fn read_answer(
        &self,
        dialect: &dyn Dialect,
        reply: &Reply<'_>,
        strict: bool,
    ) -> Result<AnyEffect, ReadError> {
        let mut effect = dialect.read_answer(self, reply, strict)?;
        if let (Some(tools), Some((tool, _))) = (dialect.tools(), self.event().tool_call()) {
            match self.canonical_rewrite(tools, tool, &effect) {
                Ok(rewrite) => effect.rewrite = rewrite,
                // The hook did refuse. An error in the rest of its answer must not turn that into
                // an approval.
                Err(_) if effect.is_stop() => effect.rewrite.clear(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(effect)
    }

    fn canonical_rewrite(
        &self,
        tools: &dyn ToolNames,
        tool: &str,
        effect: &AnyEffect,
    ) -> Result<JsonObject, ToolInputError> {
        let canonical = |(field, value): (&String, &Value)| {
            let own = value.as_object();
            let own = own.filter(|_| is_tool_input(self.info(), field));
            let value = match own {
                Some(own) => tools.canonical_input(tool, own)?.into(),
                None => value.clone(),
            };
            Ok((field.clone(), value))
        };
        effect.rewrite.iter().map(canonical).collect()
    }
}
