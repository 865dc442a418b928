//! Where an event comes from: an agent, and the agents that delegated the task to it.

use std::sync::Arc;

use tenterhook_protocol::{EventClass, EventInfo, Origin};

/// The origin of an event and its ancestors. There is always an origin.
#[derive(Debug, Clone)]
pub(crate) struct Lineage {
    origin: Arc<Origin>,
    /// The agents that delegated the task to the origin, nearest first.
    parents: Arc<[Arc<Origin>]>,
}

impl Lineage {
    pub(crate) fn new(origin: Origin) -> Self {
        Self {
            origin: Arc::new(origin),
            parents: Arc::new([]),
        }
    }

    /// Returns the lineage of a subagent of this origin.
    pub(crate) fn child(&self, origin: Origin) -> Self {
        let parents = [Arc::clone(&self.origin)]
            .into_iter()
            .chain(self.parents.iter().cloned())
            .collect();
        Self {
            origin: Arc::new(origin),
            parents,
        }
    }

    /// Returns the same ancestors with another origin.
    pub(crate) fn with_origin(&self, origin: Origin) -> Self {
        Self {
            origin: Arc::new(origin),
            parents: Arc::clone(&self.parents),
        }
    }

    pub(crate) fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// Returns the origins whose hooks apply to an event of this kind. Gates of a parent also judge
    /// its subagents, so that no one can escape a guard by delegating. Observers only receive
    /// events of their own agent.
    pub(crate) fn reach(&self, info: &EventInfo) -> impl Iterator<Item = &Origin> {
        let parents = match info.class {
            EventClass::Gate => &*self.parents,
            EventClass::Observer => &[],
        };
        std::iter::once(&*self.origin).chain(parents.iter().map(|origin| &**origin))
    }
}
