//! Shows a tool call to hooks for the shell, if the tool runs a command line under a name of its own.
//!
//! Such a call has two names: the tool's and the shell's. The event keeps the call as it was made. A
//! hook for the shell receives a copy of the event in which the tool is the shell, and its changes go
//! back into the argument with the command line.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tenterhook_protocol::{AnyEffect, AnyEvent, JsonObject, Origin, Permission};

use crate::error::{HandlerError, ReadError};
use crate::handler::{Answer, AsyncHandler, Call, InlineAnswer, InlineFunction};
use crate::hook::{Handler, HookSpec};
use crate::plan::Hook;
use crate::tools::{CommandReading, ToolInputError, ToolNames, is_tool_input};

/// Reads the command line of an event's tool call, if the call also is one to the shell.
pub(crate) fn command_of(event: &dyn AnyEvent, tools: &dyn ToolNames) -> Option<CommandReading> {
    let (written, input) = event.tool_call()?;
    tools.command_of(tools.spelling(written), input?)
}

/// A handler of a hook for the shell, for calls that run a command line under another name.
#[derive(Debug)]
struct AsShell<H: ?Sized> {
    tools: Arc<dyn ToolNames>,
    handler: Arc<H>,
}

/// Returns the hook in a form that receives such calls as calls to the shell.
pub(crate) fn as_shell(hook: &Hook, tools: &Arc<dyn ToolNames>) -> Hook {
    let tools = Arc::clone(tools);
    let handling = match &hook.spec.handling {
        Handler::Inline(handler) => Handler::Inline(Arc::new(AsShell {
            tools,
            handler: Arc::clone(handler),
        })),
        Handler::Async(handler) => Handler::Async(Arc::new(AsShell {
            tools,
            handler: Arc::clone(handler),
        })),
    };
    Hook {
        spec: HookSpec {
            handling,
            ..hook.spec.clone()
        },
        scope: hook.scope.clone(),
        position: hook.position,
        strict: hook.strict,
        sequence: hook.sequence,
    }
}

impl<H: ?Sized> AsShell<H> {
    /// Returns the event with the call as one to the shell, and whether that is a guess. `None` if an
    /// earlier hook has removed the command line.
    fn seen(&self, event: &dyn AnyEvent) -> Option<(Box<dyn AnyEvent>, bool)> {
        let CommandReading { call, guess } = command_of(event, &*self.tools)?;
        let mut seen = event.boxed_clone();
        seen.set_tool_call(call.tool, call.input);
        Some((seen, guess.is_some()))
    }

    /// Returns an effect with the changed arguments of the tool instead of the shell's.
    fn own_effect(
        &self,
        event: &dyn AnyEvent,
        effect: Option<Box<AnyEffect>>,
        is_guess: bool,
    ) -> Result<Option<Box<AnyEffect>>, HandlerError> {
        let Some(mut effect) = effect else {
            return Ok(None);
        };
        // The tool may do more than run this command, so a hook that allows the command does not allow
        // the tool.
        effect
            .permission
            .take_if(|verdict| is_guess && verdict.permission == Permission::Allow);
        match self.own_rewrite(event, &effect.rewrite) {
            Ok(rewrite) => effect.rewrite = rewrite,
            // The hook did refuse. An error in the rest of its answer must not turn that into an
            // approval.
            Err(_) if effect.is_stop() => effect.rewrite.clear(),
            Err(error) => return Err(ReadError::from(error).into()),
        }
        Ok(Some(effect))
    }

    fn own_rewrite(
        &self,
        event: &dyn AnyEvent,
        rewrite: &JsonObject,
    ) -> Result<JsonObject, ToolInputError> {
        let Some((written, Some(input))) = event.tool_call() else {
            return Ok(rewrite.clone());
        };
        let name = self.tools.spelling(written);
        let own = |(field, value): (&String, &Value)| {
            let value = match value.as_object() {
                Some(shell) if is_tool_input(event.info(), field) => {
                    self.tools.command_input(name, input, shell)?.into()
                }
                _ => value.clone(),
            };
            Ok((field.clone(), value))
        };
        rewrite.iter().map(own).collect()
    }
}

impl InlineFunction for AsShell<dyn InlineFunction> {
    fn call(&self, event: &dyn AnyEvent, origin: &Origin) -> InlineAnswer {
        let Some((seen, is_guess)) = self.seen(event) else {
            return Ok(None);
        };
        let effect = self.handler.call(&*seen, origin)?;
        self.own_effect(event, effect, is_guess).map_err(Box::new)
    }
}

impl AsyncHandler for AsShell<dyn AsyncHandler> {
    fn kind(&self) -> &'static str {
        self.handler.kind()
    }

    fn describe(&self) -> String {
        self.handler.describe()
    }

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let Some((seen, is_guess)) = self.seen(call.event.event()) else {
                return Ok(None);
            };
            let shell = Call {
                event: call.event.with_event(Arc::from(seen)),
                ..call.clone()
            };
            let effect = self.handler.handle(&shell).await?;
            self.own_effect(call.event.event(), effect, is_guess)
        })
    }

    fn enforces_deadline(&self) -> bool {
        self.handler.enforces_deadline()
    }

    fn runs_on_own_task(&self) -> bool {
        self.handler.runs_on_own_task()
    }

    fn sequence(&self) -> Option<&'static str> {
        self.handler.sequence()
    }

    fn problem(&self) -> Option<String> {
        self.handler.problem()
    }
}
