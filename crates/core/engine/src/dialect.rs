//! The interface of a wire format. The engine itself knows no format.

use std::fmt;

use tenterhook_protocol::{AnyEffect, EventInfo, JsonObject};

use crate::error::{ReadError, WriteError};
use crate::event_ref::EventRef;
use crate::policy::{OnError, Policy};
use crate::tools::ToolNames;

/// The wire format of one hook system. It only translates. How the answers of several hooks are
/// combined is decided elsewhere.
pub trait Dialect: Send + Sync + fmt::Debug {
    /// Returns the name of the dialect. Dialects with the same name write the same bytes.
    fn name(&self) -> &'static str;

    /// Writes an event for a hook. The engine calls it at most once for each version of an event.
    ///
    /// # Errors
    /// Fails if the dialect cannot express the event, or if a value cannot be represented in JSON.
    fn write(&self, event: &EventRef) -> Result<Vec<u8>, WriteError>;

    /// Returns whether this occurrence of an event exists in the hook system. If not, hooks of the
    /// dialect do not run.
    fn has_event(&self, _event: &EventRef) -> bool {
        true
    }

    /// Returns the keys that an event may be written with, each with the value that an omitted key
    /// stands for. `None`, the default, means that the keys are not known in advance.
    fn skeleton(&self, _info: &EventInfo) -> Option<JsonObject> {
        None
    }

    /// Reads the answer of a hook that has finished. With `strict`, it rejects mistakes that it
    /// would otherwise ignore.
    ///
    /// A dialect that cannot express an effect never replaces it with a weaker one.
    ///
    /// # Errors
    /// Fails if the answer is not valid in this dialect. The engine treats this as a failure of the
    /// hook.
    fn read(
        &self,
        info: &EventInfo,
        reply: &Reply<'_>,
        strict: bool,
    ) -> Result<AnyEffect, ReadError>;

    /// Reads the answer to one event. Override this if the meaning of an answer depends on the
    /// event, for example if the hook returns text that is inserted before existing text.
    ///
    /// # Errors
    /// Fails like [`read`](Self::read), which this method calls by default.
    fn read_answer(
        &self,
        event: &EventRef,
        reply: &Reply<'_>,
        strict: bool,
    ) -> Result<AnyEffect, ReadError> {
        self.read(event.info(), reply, strict)
    }

    /// Returns the environment variables that the hook system sets for a process that handles the event.
    fn variables(&self, _event: &EventRef) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Returns the tools of the hook system that uses this dialect. [`EventRef::encoded`] and
    /// [`EventRef::read_answer`] translate tool calls with them. With `None`, the default, hooks
    /// see canonical tools.
    fn tools(&self) -> Option<&dyn ToolNames> {
        None
    }

    /// Returns the name of the hook system if it runs all hooks of an event one after another, those
    /// that only observe too. With `None`, the default, hooks that only observe may overlap.
    fn sequence(&self) -> Option<&'static str> {
        None
    }

    /// Returns whether hooks of the system also run if an earlier hook has stopped the operation. They
    /// then only observe.
    fn hears_stops(&self) -> bool {
        false
    }

    /// Returns what happens on an event if a hook of this dialect fails.
    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy;
}

/// What a hook returned. There is one variant for each way to run a hook.
///
/// A hook that returned nothing, for example because it was killed, has failed and has no reply.
#[derive(Debug, Clone, Copy)]
pub enum Reply<'a> {
    /// A process exited by itself and in time.
    Exited {
        /// The exit status.
        status: i32,
        /// The standard output.
        stdout: &'a [u8],
        /// The standard error output.
        stderr: &'a [u8],
        /// The number of bytes that were removed from `stdout` because it was too long.
        stdout_omitted: u64,
    },
    /// A process that keeps running answered one call with JSON.
    Returned {
        /// The JSON text of the answer.
        json: &'a [u8],
    },
    /// An HTTP endpoint responded with a status that means that there is an answer.
    Http {
        /// The body of the response.
        body: &'a [u8],
    },
}
