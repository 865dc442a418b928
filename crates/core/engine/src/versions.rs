//! An event while hooks rewrite it. Each rewrite creates a new version, so that the versions that
//! hooks saw earlier do not change.

use std::sync::Arc;

use tenterhook_protocol::{AnyEvent, Envelope, Event, JsonObject, RewriteError};

use crate::event_ref::EventRef;
use crate::tools::ShellGuess;

/// The changes that an answer can make to an event.
pub(crate) trait Change {
    /// Creates a new version by calling `change`. If it fails, the newest version is unchanged.
    fn change(
        &mut self,
        change: &dyn Fn(&mut dyn AnyEvent) -> Result<(), RewriteError>,
    ) -> Result<(), RewriteError>;

    /// Creates a new version with every field of `rewrite` changed. If a field is rejected, the
    /// newest version is unchanged.
    fn rewrite(&mut self, rewrite: &JsonObject) -> Result<(), RewriteError> {
        self.change(&|event| apply(event, rewrite))
    }

    /// Creates a new version in which `notice` replaces the event's result.
    fn withhold(&mut self, notice: &str);
}

/// The event of one dispatch.
pub(crate) trait Versions: Change + Send {
    /// Returns the newest version.
    fn newest(&self) -> &EventRef;
}

/// An event to which no hook keeps a reference. It is changed in place.
pub(crate) struct InPlace<'a, E>(pub(crate) &'a mut E);

impl<E: Event> Change for InPlace<'_, E> {
    fn change(
        &mut self,
        change: &dyn Fn(&mut dyn AnyEvent) -> Result<(), RewriteError>,
    ) -> Result<(), RewriteError> {
        let mut next = self.0.clone();
        change(&mut next)?;
        *self.0 = next;
        Ok(())
    }

    fn withhold(&mut self, notice: &str) {
        self.0.withhold(notice);
    }
}

/// An event whose type the dispatch knows. Rewrites do not change the type.
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

    /// Notes why the event's call is read as one to the shell.
    pub(crate) fn guess(&mut self, guess: Option<ShellGuess>) {
        if let Some(guess) = guess {
            self.shared = self.shared.guessed(Arc::new(guess));
        }
    }

    /// Returns the newest version.
    pub(crate) fn into_event(self) -> E {
        drop(self.shared);
        Arc::unwrap_or_clone(self.event)
    }
}

impl<E: Event> TypedVersions<E> {
    fn put(&mut self, next: E) {
        self.event = Arc::new(next);
        self.shared = self.shared.with_event(Arc::clone(&self.event) as _);
    }
}

impl<E: Event> Versions for TypedVersions<E> {
    fn newest(&self) -> &EventRef {
        &self.shared
    }
}

impl<E: Event> Change for TypedVersions<E> {
    fn change(
        &mut self,
        change: &dyn Fn(&mut dyn AnyEvent) -> Result<(), RewriteError>,
    ) -> Result<(), RewriteError> {
        let mut next = (*self.event).clone();
        change(&mut next)?;
        self.put(next);
        Ok(())
    }

    fn withhold(&mut self, notice: &str) {
        let mut next = (*self.event).clone();
        next.withhold(notice);
        self.put(next);
    }
}

/// An event whose type is only known at run time.
pub(crate) struct AnyVersions(EventRef);

impl AnyVersions {
    pub(crate) fn new(event: Box<dyn AnyEvent>, envelope: Envelope) -> Self {
        Self(EventRef::new(Arc::from(event), Arc::new(envelope)))
    }

    /// Notes why the event's call is read as one to the shell.
    pub(crate) fn guess(&mut self, guess: Option<ShellGuess>) {
        if let Some(guess) = guess {
            self.0 = self.0.guessed(Arc::new(guess));
        }
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
}

impl Change for AnyVersions {
    fn change(
        &mut self,
        change: &dyn Fn(&mut dyn AnyEvent) -> Result<(), RewriteError>,
    ) -> Result<(), RewriteError> {
        let mut next = self.0.event().boxed_clone();
        change(&mut *next)?;
        self.0 = self.0.with_event(Arc::from(next));
        Ok(())
    }

    fn withhold(&mut self, notice: &str) {
        let mut next = self.0.event().boxed_clone();
        next.withhold(notice);
        self.0 = self.0.with_event(Arc::from(next));
    }
}

/// Changes every field of `rewrite`, and then the fields that follow from them.
fn apply(event: &mut dyn AnyEvent, rewrite: &JsonObject) -> Result<(), RewriteError> {
    rewrite
        .iter()
        .try_for_each(|(field, value)| event.rewrite(field, value.clone()))?;
    event.update_derived_fields(rewrite);
    Ok(())
}
