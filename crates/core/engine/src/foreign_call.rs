//! A tool call of another hook system, in its original form.
//!
//! `operation.rs` splits it into operations and applies the changes that hooks make to one of them.

use std::sync::Arc;

use tenterhook_protocol::JsonObject;

use crate::tools::{OwnCall, ToolInputError, ToolNames};

/// A tool call with the names of the system that made it, while hooks judge one of its operations.
#[derive(Debug, Clone)]
pub(crate) struct ForeignCall {
    tools: Arc<dyn ToolNames>,
    call: OwnCall,
    /// The number of operations that the call consists of.
    operations: usize,
    is_first: bool,
}

impl ForeignCall {
    /// Creates a call that consists of `operations` operations. `is_first` tells whether hooks
    /// judge the first one.
    pub(crate) fn new(
        tools: Arc<dyn ToolNames>,
        call: OwnCall,
        operations: usize,
        is_first: bool,
    ) -> Self {
        Self {
            tools,
            call,
            operations,
            is_first,
        }
    }

    /// Returns the name of the system that made the call.
    pub(crate) fn system(&self) -> &'static str {
        self.tools.system()
    }

    /// Returns the system's name of the tool.
    pub(crate) fn name(&self) -> &str {
        &self.call.name
    }

    /// Returns whether hooks are judging the first operation of the call.
    pub(crate) fn is_first(&self) -> bool {
        self.is_first
    }

    /// Returns a key that distinguishes the plan of this operation from others of the same
    /// canonical tool.
    pub(crate) fn key(&self) -> String {
        format!("{}\0{}\0{}", self.system(), self.name(), self.is_first)
    }

    /// Returns the arguments of the call after its canonical arguments have changed.
    pub(crate) fn with_input(
        &self,
        tool: &str,
        input: &JsonObject,
    ) -> Result<JsonObject, ToolInputError> {
        let refused = |problem: String| ToolInputError {
            system: self.system(),
            tool: self.call.name.clone(),
            problem,
        };
        if self.operations > 1 {
            let count = self.operations;
            let problem = format!(
                "the call consists of {count} operations, but hooks can only change a call with one operation"
            );
            return Err(refused(problem));
        }
        match self.tools.view(tool, input)? {
            Some(own) if own.name == self.call.name => Ok(own.input),
            _ => Err(refused(
                "hooks can judge this form of the call, but not change it".to_owned(),
            )),
        }
    }

    /// Returns the call in the form that hooks of `tools` see, if they see it as it was made.
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
