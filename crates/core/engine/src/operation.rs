//! The operations of tool calls that another hook system made.
//!
//! A patch that changes three files consists of three operations. Hooks receive each operation as a
//! separate event with canonical names. The host's event keeps the call as it was made. Hooks of
//! the system that made the call see the original call, unless it is a single operation that they
//! know under the same name.

use std::sync::Arc;

use tenterhook_protocol::{AnyEvent, JsonObject, RewriteError};

use crate::event_ref::EventRef;
use crate::foreign_call::ForeignCall;
use crate::tools::{CanonicalCall, OwnCall, ToolInputError, ToolNames};
use crate::versions::{Change, Versions};

/// The operations of a call that another system made.
pub(crate) struct Operations {
    tools: Arc<dyn ToolNames>,
    /// The tool's name as the agent wrote it.
    written: String,
    call: OwnCall,
    pub(crate) calls: Vec<CanonicalCall>,
}

impl Operations {
    /// Reads the operations of an event's tool call. Returns `None` if the event is not about a
    /// tool call, or the call is already canonical.
    pub(crate) fn of(
        event: &dyn AnyEvent,
        tools: &Arc<dyn ToolNames>,
    ) -> Option<Result<Self, ToolInputError>> {
        let (written, input) = event.tool_call()?;
        let name = tools.spelling(written);
        let calls = match input.map(|input| tools.operations(name, input)) {
            Some(Ok(calls)) => calls?,
            Some(Err(error)) if event.info().can_stop() => return Some(Err(error)),
            // Observers see the call under its canonical name, as far as there is one.
            Some(Err(_)) | None => vec![CanonicalCall {
                tool: tools.canonical_name(name).to_owned(),
                input: input.cloned().unwrap_or_default(),
            }],
        };
        Some(Ok(Self {
            tools: Arc::clone(tools),
            written: written.to_owned(),
            call: OwnCall {
                name: name.to_owned(),
                input: input.cloned().unwrap_or_default(),
            },
            calls,
        }))
    }

    /// Returns the event of one operation. Changes that hooks make to it are made to the `whole`
    /// event.
    pub(crate) fn event<'a>(
        &self,
        position: usize,
        operation: &CanonicalCall,
        whole: &'a mut dyn Versions,
    ) -> (Arc<ForeignCall>, OperationVersions<'a>) {
        let foreign = Arc::new(ForeignCall::new(
            Arc::clone(&self.tools),
            self.call.clone(),
            self.calls.len(),
            position == 0,
        ));
        let mut event = whole.newest().event().boxed_clone();
        event.set_tool_call(operation.tool.clone(), operation.input.clone());
        let event = whole.newest().with_event(Arc::from(event));
        let versions = OperationVersions {
            event: event.of_call(Arc::clone(&foreign)),
            whole,
            written: self.written.clone(),
            foreign: Arc::clone(&foreign),
        };
        (foreign, versions)
    }
}

/// The event of one operation.
pub(crate) struct OperationVersions<'a> {
    event: EventRef,
    whole: &'a mut dyn Versions,
    /// The tool's name as the agent wrote it.
    written: String,
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
            event.set_tool_call(self.written.clone(), own.clone());
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
