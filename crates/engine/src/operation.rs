//! Calls that another hook system made, while hooks judge their operations.
//!
//! A patch that touches three files is three operations. Each is an event of its own for the hooks, under canonical
//! names; the host's event keeps the call as it was made. Hooks of the system that made the call see the call itself if
//! it is not one operation that they know under the same name.

use std::sync::Arc;

use tenterhook_protocol::{AnyEvent, JsonObject, RewriteError};

use crate::event_ref::EventRef;
use crate::tools::{CanonicalCall, OwnCall, ToolInputError, ToolNames};
use crate::versions::{Change, Versions};

/// A tool call under the names of the system that made it, while hooks judge one of its operations.
#[derive(Debug, Clone)]
pub(crate) struct ForeignCall {
    tools: Arc<dyn ToolNames>,
    call: OwnCall,
    /// How many operations the call is.
    operations: usize,
    is_first: bool,
}

impl ForeignCall {
    /// Returns the name of the system that made the call.
    pub(crate) fn system(&self) -> &'static str {
        self.tools.system()
    }

    /// Returns the system's name of the tool.
    pub(crate) fn name(&self) -> &str {
        &self.call.name
    }

    /// Returns whether hooks judge the first operation of the call.
    pub(crate) fn is_first(&self) -> bool {
        self.is_first
    }

    /// Returns what tells the plan of this operation from others of the same canonical tool.
    pub(crate) fn key(&self) -> String {
        format!("{}\0{}\0{}", self.system(), self.name(), self.is_first)
    }

    /// Returns the arguments of the call with other canonical ones.
    fn with_input(&self, tool: &str, input: &JsonObject) -> Result<JsonObject, ToolInputError> {
        let refused = |problem: String| ToolInputError {
            system: self.system(),
            tool: self.call.name.clone(),
            problem,
        };
        if self.operations > 1 {
            let count = self.operations;
            let problem = format!("the call is {count} operations, and a hook cannot change one");
            return Err(refused(problem));
        }
        match self.tools.view(tool, input)? {
            Some(own) if own.name == self.call.name => Ok(own.input),
            _ => Err(refused(
                "this form of the call can be judged, but not changed".to_owned(),
            )),
        }
    }

    /// Returns the call as hooks of `tools` see it, if they see it as it was made.
    pub(crate) fn seen_whole(
        &self,
        tools: &dyn ToolNames,
        tool: &str,
        input: &JsonObject,
    ) -> Option<&OwnCall> {
        let is_whole = tools.system() == self.system() && self.with_input(tool, input).is_err();
        is_whole.then_some(&self.call)
    }
}

/// The operations of a call that another system made.
pub(crate) struct Operations {
    tools: Arc<dyn ToolNames>,
    call: OwnCall,
    pub(crate) calls: Vec<CanonicalCall>,
}

impl Operations {
    /// Reads the operations of an event's tool call; `None` if it is about no such call, or canonical as it is.
    pub(crate) fn of(
        event: &dyn AnyEvent,
        tools: &Arc<dyn ToolNames>,
    ) -> Option<Result<Self, ToolInputError>> {
        let (name, input) = event.tool_call()?;
        let calls = match input.map(|input| tools.operations(name, input)) {
            Some(Ok(calls)) => calls?,
            Some(Err(error)) if event.info().can_stop() => return Some(Err(error)),
            // Who only watches sees the call under the canonical name, as far as there is one.
            Some(Err(_)) | None => vec![CanonicalCall {
                tool: tools.canonical_name(name).to_owned(),
                input: input.cloned().unwrap_or_default(),
            }],
        };
        Some(Ok(Self {
            tools: Arc::clone(tools),
            call: OwnCall {
                name: name.to_owned(),
                input: input.cloned().unwrap_or_default(),
            },
            calls,
        }))
    }

    /// Returns the event of one operation. What hooks change in it, they change in the `whole` event.
    pub(crate) fn event<'a>(
        &self,
        position: usize,
        operation: &CanonicalCall,
        whole: &'a mut dyn Versions,
    ) -> (Arc<ForeignCall>, OperationVersions<'a>) {
        let foreign = Arc::new(ForeignCall {
            tools: Arc::clone(&self.tools),
            call: self.call.clone(),
            operations: self.calls.len(),
            is_first: position == 0,
        });
        let mut event = whole.newest().event().boxed_clone();
        event.set_tool_call(operation.tool.clone(), operation.input.clone());
        let event = whole.newest().with_event(Arc::from(event));
        let versions = OperationVersions {
            event: event.of_call(Arc::clone(&foreign)),
            whole,
            foreign: Arc::clone(&foreign),
        };
        (foreign, versions)
    }
}

/// The event of one operation.
pub(crate) struct OperationVersions<'a> {
    event: EventRef,
    whole: &'a mut dyn Versions,
    foreign: Arc<ForeignCall>,
}

impl Versions for OperationVersions<'_> {
    fn newest(&self) -> &EventRef {
        &self.event
    }
}

impl Change for OperationVersions<'_> {
    fn change(
        &mut self,
        change: &dyn Fn(&mut dyn AnyEvent) -> Result<(), RewriteError>,
    ) -> Result<(), RewriteError> {
        let mut next = self.event.event().boxed_clone();
        change(&mut *next)?;
        let mut own = self.whole.newest().event().tool_call().and_then(input_of);
        if let Some(input) = next.tool_call().and_then(input_of)
            && self.event.event().tool_call().and_then(input_of).as_ref() != Some(&input)
        {
            let tool = next.tool_call().map_or("", |(tool, _)| tool);
            let input = self.foreign.with_input(tool, &input);
            own = Some(input.map_err(|error| RewriteError::ToolCall {
                problem: error.to_string(),
            })?);
        }
        let own = own.unwrap_or_default();
        self.whole.change(&|event| {
            change(event)?;
            event.set_tool_call(self.foreign.name().to_owned(), own.clone());
            Ok(())
        })?;
        self.event = self.event.with_event(Arc::from(next));
        Ok(())
    }

    fn withhold(&mut self, notice: &str) {
        let mut next = self.event.event().boxed_clone();
        next.withhold(notice);
        self.event = self.event.with_event(Arc::from(next));
        self.whole.withhold(notice);
    }
}

fn input_of((_, input): (&str, Option<&JsonObject>)) -> Option<JsonObject> {
    input.cloned()
}
