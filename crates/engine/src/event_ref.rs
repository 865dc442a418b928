//! One version of an event on its way through its hooks, with the JSON of it made at most once.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use serde_json::Value;
use tenterhook_protocol::{AnyEvent, Envelope, EventInfo, JsonObject, Origin};

use crate::dialect::{Dialect, WriteError};

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
        let encodings = Mutex::new(Vec::new());
        Self {
            inner: Arc::new(Inner {
                event,
                envelope,
                payload: OnceLock::new(),
                encodings,
            }),
        }
    }

    /// Returns another version of the event, with the same envelope.
    pub(crate) fn with_event(&self, event: Arc<dyn AnyEvent>) -> Self {
        Self::new(event, Arc::clone(self.envelope()))
    }

    /// Returns the same event as if it came from elsewhere.
    #[must_use]
    pub fn with_origin(&self, origin: Arc<Origin>) -> Self {
        let envelope = self.envelope();
        // The stamp is made now, so that both have the same one.
        let _ = envelope.event_id();
        let mut envelope = (**envelope).clone();
        envelope.origin = origin;
        Self::new(Arc::clone(&self.inner.event), Arc::new(envelope))
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

    /// Returns the event as `dialect` writes it. Each dialect writes it once.
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
        let bytes = Bytes::from(dialect.write(self)?);
        encodings.push((dialect.name(), bytes.clone()));
        Ok(bytes)
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
