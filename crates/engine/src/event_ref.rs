//! One version of an event on its way through its hooks, with the JSON of it made at most once.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use serde_json::Value;
use tenterhook_protocol::{AnyEffect, AnyEvent, Envelope, EventInfo, JsonObject, Origin};

use crate::dialect::{Dialect, ReadError, Reply, WriteError};
use crate::operation::ForeignCall;
use crate::tools::{OwnCall, ToolInputError, ToolNames};

/// An event that handlers share: cheap to clone, never changed. A rewrite makes a new one.
#[derive(Clone)]
pub struct EventRef {
    inner: Arc<Inner>,
}

struct Inner {
    event: Arc<dyn AnyEvent>,
    envelope: Arc<Envelope>,
    payload: OnceLock<JsonObject>,
    encodings: Mutex<Vec<Encoding>>,
    /// The call that the event is an operation of, if another system made it.
    foreign: Option<Arc<ForeignCall>>,
}

/// A dialect's name and what it wrote.
type Encoding = (&'static str, Bytes);

impl fmt::Debug for EventRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.event.fmt(f)
    }
}

impl EventRef {
    /// Makes the first version of an event. The engine does it for every dispatch.
    pub fn new(event: Arc<dyn AnyEvent>, envelope: Arc<Envelope>) -> Self {
        Self::made(event, envelope, None)
    }

    fn made(
        event: Arc<dyn AnyEvent>,
        envelope: Arc<Envelope>,
        foreign: Option<Arc<ForeignCall>>,
    ) -> Self {
        let encodings = Mutex::new(Vec::new());
        Self {
            inner: Arc::new(Inner {
                event,
                envelope,
                payload: OnceLock::new(),
                encodings,
                foreign,
            }),
        }
    }

    /// Returns another version of the event, with the same envelope.
    pub(crate) fn with_event(&self, event: Arc<dyn AnyEvent>) -> Self {
        Self::made(
            event,
            Arc::clone(self.envelope()),
            self.inner.foreign.clone(),
        )
    }

    /// Returns the event as an operation of a call that another system made.
    pub(crate) fn of_call(&self, foreign: Arc<ForeignCall>) -> Self {
        let event = Arc::clone(&self.inner.event);
        Self::made(event, Arc::clone(self.envelope()), Some(foreign))
    }

    /// Returns the same event as if it came from elsewhere.
    #[must_use]
    pub fn with_origin(&self, origin: Arc<Origin>) -> Self {
        let envelope = self.envelope();
        // The stamp is made now, so that both have the same one.
        let _ = envelope.event_id();
        let mut envelope = (**envelope).clone();
        envelope.origin = origin;
        Self::made(
            Arc::clone(&self.inner.event),
            Arc::new(envelope),
            self.inner.foreign.clone(),
        )
    }

    /// Returns the event.
    pub fn event(&self) -> &dyn AnyEvent {
        &*self.inner.event
    }

    /// Returns the event as its own type, if it is an `E`.
    pub fn downcast<E: tenterhook_protocol::Event>(&self) -> Option<&E> {
        self.event().as_any().downcast_ref()
    }

    /// Returns the event's row of the catalogue.
    pub fn info(&self) -> &'static EventInfo {
        self.event().info()
    }

    /// Returns what is not payload.
    pub fn envelope(&self) -> &Arc<Envelope> {
        &self.inner.envelope
    }

    /// Returns the payload as JSON. It is made on the first call and then shared.
    ///
    /// # Errors
    /// When a value of the payload has no JSON form.
    pub fn payload(&self) -> Result<&JsonObject, WriteError> {
        if let Some(payload) = self.inner.payload.get() {
            return Ok(payload);
        }
        let payload = self.event().payload().map_err(WriteError::Payload)?;
        Ok(self.inner.payload.get_or_init(|| payload))
    }

    /// Returns the event as `dialect` writes it, with the tool names of the dialect's system. Each dialect writes it
    /// once.
    ///
    /// # Errors
    /// When the dialect cannot write it.
    pub fn encoded(&self, dialect: &dyn Dialect) -> Result<Bytes, WriteError> {
        let mut encodings = self
            .inner
            .encodings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bytes)) = encodings.iter().find(|(name, _)| *name == dialect.name()) {
            return Ok(bytes.clone());
        }
        let seen = dialect.tools().map(|tools| self.seen_by(tools));
        let seen = seen.transpose()?.flatten();
        let bytes = Bytes::from(dialect.write(seen.as_ref().unwrap_or(self))?);
        encodings.push((dialect.name(), bytes.clone()));
        Ok(bytes)
    }

    /// Returns the event with the tool call as hooks of another system see it, or `None` if they see it as it is.
    ///
    /// # Errors
    /// When the arguments have no form in that system.
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

    /// Reads the answer of a hook that got what [`encoded`](Self::encoded) returned. Changed arguments of a tool get
    /// their canonical names back.
    ///
    /// # Errors
    /// When the answer is not one of the dialect, or changes arguments in a way that cannot be translated.
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
                // The hook did say no. That the rest of its answer cannot be used does not turn it into a yes.
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
        let is_input = |field: &str| {
            let mut rewrites = self.info().rewrites.iter();
            rewrites.any(|rewrite| rewrite.field == field && rewrite.target == "tool_input")
        };
        let canonical = |(field, value): (&String, &Value)| {
            let own = value.as_object().filter(|_| is_input(field));
            let value = match own {
                Some(own) => tools.canonical_input(tool, own)?.into(),
                None => value.clone(),
            };
            Ok((field.clone(), value))
        };
        effect.rewrite.iter().map(canonical).collect()
    }

    /// Returns the event as one JSON object: envelope and payload side by side.
    ///
    /// # Errors
    /// When a value of the payload has no JSON form.
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
