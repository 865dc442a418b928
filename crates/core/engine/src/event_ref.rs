//! One version of an event during a dispatch. Its JSON is created at most once.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tenterhook_protocol::{AnyEvent, Envelope, EventInfo, JsonObject, Origin};
use tenterhook_shell::{Reading, read};

use crate::error::WriteError;
use crate::foreign_call::ForeignCall;
use crate::tools::{OwnCall, ShellGuess, ToolInputError, ToolNames};

/// An event that handlers share. It is cheap to clone and never changes. A rewrite creates a new
/// one.
#[derive(Clone)]
pub struct EventRef {
    inner: Arc<Inner>,
}

struct Inner {
    event: Arc<dyn AnyEvent>,
    envelope: Arc<Envelope>,
    payload: OnceLock<JsonObject>,
    /// The command line of the event, as the first handler read it.
    reading: OnceLock<Arc<Reading>>,
    encodings: Mutex<Vec<Encoding>>,
    /// The call that this event is an operation of, if another hook system made the call.
    foreign: Option<Arc<ForeignCall>>,
    /// Why the event's call is read as one to the shell, if no table of tools says so.
    guess: Option<Arc<ShellGuess>>,
}

/// The name of a dialect and the bytes that it wrote.
type Encoding = (&'static str, Bytes);

impl fmt::Debug for EventRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.event.fmt(f)
    }
}

impl EventRef {
    /// Creates the first version of an event. The engine does this for every dispatch.
    pub fn new(event: Arc<dyn AnyEvent>, envelope: Arc<Envelope>) -> Self {
        Self::made(event, envelope, None, None)
    }

    fn made(
        event: Arc<dyn AnyEvent>,
        envelope: Arc<Envelope>,
        foreign: Option<Arc<ForeignCall>>,
        guess: Option<Arc<ShellGuess>>,
    ) -> Self {
        let encodings = Mutex::new(Vec::new());
        Self {
            inner: Arc::new(Inner {
                event,
                envelope,
                payload: OnceLock::new(),
                reading: OnceLock::new(),
                encodings,
                foreign,
                guess,
            }),
        }
    }

    /// Returns another version of the event, with the same envelope.
    pub(crate) fn with_event(&self, event: Arc<dyn AnyEvent>) -> Self {
        Self::made(
            event,
            Arc::clone(self.envelope()),
            self.inner.foreign.clone(),
            self.inner.guess.clone(),
        )
    }

    /// Returns the event as one operation of a call that another hook system made.
    pub(crate) fn of_call(&self, foreign: Arc<ForeignCall>) -> Self {
        let event = Arc::clone(&self.inner.event);
        Self::made(event, Arc::clone(self.envelope()), Some(foreign), None)
    }

    /// Returns the event with the reason why its call is read as one to the shell.
    pub(crate) fn guessed(&self, guess: Arc<ShellGuess>) -> Self {
        let event = Arc::clone(&self.inner.event);
        Self::made(event, Arc::clone(self.envelope()), None, Some(guess))
    }

    /// Returns why the event's tool call is read as one to the shell, if no table of tools says so.
    pub fn shell_guess(&self) -> Option<&ShellGuess> {
        self.inner.guess.as_deref()
    }

    /// Returns the same event with another origin.
    #[must_use]
    pub fn with_origin(&self, origin: Arc<Origin>) -> Self {
        let envelope = self.envelope();
        // Create the id and the time now, so that both events have the same ones.
        let _ = envelope.event_id();
        let mut envelope = (**envelope).clone();
        envelope.origin = origin;
        Self::made(
            Arc::clone(&self.inner.event),
            Arc::new(envelope),
            self.inner.foreign.clone(),
            self.inner.guess.clone(),
        )
    }

    /// Returns the event.
    pub fn event(&self) -> &dyn AnyEvent {
        &*self.inner.event
    }

    /// Returns the event as `E`, if it has this type.
    pub fn downcast<E: tenterhook_protocol::Event>(&self) -> Option<&E> {
        self.event().as_any().downcast_ref()
    }

    /// Returns whether both are the same version of the event.
    pub(crate) fn is_same_version(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns the event's row of the catalogue.
    pub fn info(&self) -> &'static EventInfo {
        self.event().info()
    }

    /// Returns the envelope: the part of the event that is not payload.
    pub fn envelope(&self) -> &Arc<Envelope> {
        &self.inner.envelope
    }

    /// Returns the reading of the event's command line. It is made by the first call and then shared, so that all rules
    /// judge the same commands. A handler that takes another text for the command line gets a reading of its own.
    pub fn reading(&self, line: &str) -> Arc<Reading> {
        let shared = self.inner.reading.get_or_init(|| Arc::new(read(line)));
        if shared.lines.first().is_some_and(|first| first == line) {
            Arc::clone(shared)
        } else {
            Arc::new(read(line))
        }
    }

    /// Returns the payload as JSON. It is created by the first call and then shared.
    ///
    /// # Errors
    /// Fails if a value of the payload cannot be represented in JSON.
    pub fn payload(&self) -> Result<&JsonObject, WriteError> {
        if let Some(payload) = self.inner.payload.get() {
            return Ok(payload);
        }
        let payload = self.event().payload().map_err(WriteError::Payload)?;
        Ok(self.inner.payload.get_or_init(|| payload))
    }

    /// Returns the event as the dialect of this name writes it. `write` is called once for each
    /// name.
    pub(crate) fn encoded_once<F>(
        &self,
        dialect: &'static str,
        write: F,
    ) -> Result<Bytes, WriteError>
    where
        F: FnOnce() -> Result<Vec<u8>, WriteError>,
    {
        let mut encodings = self.inner.encodings.lock();
        if let Some((_, bytes)) = encodings.iter().find(|(name, _)| *name == dialect) {
            return Ok(bytes.clone());
        }
        let bytes = Bytes::from(write()?);
        encodings.push((dialect, bytes.clone()));
        Ok(bytes)
    }

    /// Returns the event with its tool call in the form that hooks of another system see, or `None`
    /// if that form is the same.
    ///
    /// # Errors
    /// Fails if the arguments cannot be expressed in that system.
    pub fn seen_by(&self, tools: &dyn ToolNames) -> Result<Option<Self>, ToolInputError> {
        let Some((tool, input)) = self.event().tool_call() else {
            return Ok(None);
        };
        let given = input.cloned().unwrap_or_default();
        let whole = self.inner.foreign.as_deref();
        let seen = match (
            whole.and_then(|call| call.seen_whole(tools, tool, &given)),
            input,
        ) {
            (Some(call), _) => Some(call.clone()),
            (None, Some(input)) => tools.view(tool, input)?,
            (None, None) => tools.names(tool).first().map(|name| OwnCall {
                name: (*name).to_owned(),
                input: JsonObject::new(),
            }),
        };
        let Some(OwnCall { name, input }) = seen else {
            return Ok(None);
        };
        let mut event = self.event().boxed_clone();
        event.set_tool_call(name, input);
        Ok(Some(self.with_event(Arc::from(event))))
    }

    /// Returns the event as one JSON object that contains both the envelope and the payload.
    ///
    /// # Errors
    /// Fails if a value of the payload cannot be represented in JSON.
    pub fn to_json(&self) -> Result<Value, WriteError> {
        let envelope = self.envelope();
        let mut object = JsonObject::new();
        object.insert("event".to_owned(), self.event().name().into());
        object.insert(
            "event_id".to_owned(),
            envelope.event_id().to_string().into(),
        );
        object.insert("sequence".to_owned(), envelope.sequence.into());
        object.insert(
            "timestamp".to_owned(),
            envelope.timestamp().to_string().into(),
        );
        if let Value::Object(origin) =
            serde_json::to_value(&*envelope.origin).map_err(WriteError::Payload)?
        {
            object.extend(origin);
        }
        object.extend(self.payload()?.clone());
        Ok(Value::Object(object))
    }
}
