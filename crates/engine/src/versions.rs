//! An event while hooks rewrite it: each rewrite makes a new version, and what hooks saw before stays as it was.

use std::sync::Arc;

use tenterhook_protocol::{AnyEvent, Envelope, Event, JsonObject, RewriteError};

use crate::event_ref::EventRef;

/// The event of one dispatch.
pub(crate) trait Versions: Send {
    /// Returns the newest version.
    fn newest(&self) -> &EventRef;

    /// Makes a new version that `change` has changed. After an error the newest version is what it was.
    fn change(
        &mut self,
        change: &dyn Fn(&mut dyn AnyEvent) -> Result<(), RewriteError>,
    ) -> Result<(), RewriteError>;

    /// Makes a new version with every field of `rewrite` changed. After an error the newest version is what it was.
    fn rewrite(&mut self, rewrite: &JsonObject) -> Result<(), RewriteError> {
        self.change(&|event| apply(event, rewrite))
    }
}

/// An event whose type the dispatch knows. It keeps that type, whatever is rewritten.
pub(crate) struct TypedVersions<E> {
    event: Arc<E>,
    shared: EventRef,
}

impl<E: Event> TypedVersions<E> {
    pub(crate) fn new(event: E, envelope: Envelope) -> Self {
        let event = Arc::new(event);
        let shared = EventRef::new(Arc::clone(&event) as _, Arc::new(envelope));
        Self { event, shared }
    }

    /// Returns the newest version.
    pub(crate) fn into_event(self) -> E {
        drop(self.shared);
        Arc::unwrap_or_clone(self.event)
    }
}

impl<E: Event> Versions for TypedVersions<E> {
    fn newest(&self) -> &EventRef {
        &self.shared
    }

    fn change(
        &mut self,
        change: &dyn Fn(&mut dyn AnyEvent) -> Result<(), RewriteError>,
    ) -> Result<(), RewriteError> {
        let mut next = (*self.event).clone();
        change(&mut next)?;
        self.event = Arc::new(next);
        self.shared = self.shared.with_event(Arc::clone(&self.event) as _);
        Ok(())
    }
}

/// An event whose type is known at run time only.
pub(crate) struct AnyVersions(EventRef);

impl AnyVersions {
    pub(crate) fn new(event: Box<dyn AnyEvent>, envelope: Envelope) -> Self {
        Self(EventRef::new(Arc::from(event), Arc::new(envelope)))
    }

    /// Returns the newest version.
    pub(crate) fn into_event(self) -> EventRef {
        self.0
    }
}

impl Versions for AnyVersions {
    fn newest(&self) -> &EventRef {
        &self.0
    }

    fn change(
        &mut self,
        change: &dyn Fn(&mut dyn AnyEvent) -> Result<(), RewriteError>,
    ) -> Result<(), RewriteError> {
        let mut next = self.0.event().boxed_clone();
        change(&mut *next)?;
        self.0 = self.0.with_event(Arc::from(next));
        Ok(())
    }
}

/// Changes every field of `rewrite`.
pub(crate) fn apply(event: &mut dyn AnyEvent, rewrite: &JsonObject) -> Result<(), RewriteError> {
    rewrite
        .iter()
        .try_for_each(|(field, value)| event.rewrite(field, value.clone()))
}
