//! The names that other hook systems use for tools.
//!
//! The shell tool is `shell {cmd}` in Tenterhook, `bash {command}` in kodelet and `terminal {cmd}`
//! in Operator. A [`ToolNames`] translates between the canonical tools of the catalogue and the
//! tools of one hook system, in both directions. The implementations are in `tenterhook-systems`.

use std::fmt;

use tenterhook_protocol::{EventInfo, JsonObject};
use thiserror::Error;

/// The name of Tenterhook's own hook system, whose hooks see canonical tools.
pub const NATIVE_SYSTEM: &str = "native";

/// One operation of a tool call, with canonical names.
///
/// Most calls are a single operation. A patch that changes three files is three operations.
#[derive(Debug, Clone, PartialEq)]
pub struct CanonicalCall {
    /// The canonical name of the tool. A tool that is not in the catalogue keeps its name.
    pub tool: String,
    /// The arguments under their canonical names. An argument without a canonical name keeps its
    /// name.
    pub input: JsonObject,
}

/// A tool call with the names of one hook system.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnCall {
    /// The name of the tool in that system.
    pub name: String,
    /// The arguments under the names of that system.
    pub input: JsonObject,
}

/// A call that also is a call to the shell, because its tool runs a command line under another name.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandReading {
    /// The call as one to the canonical shell tool.
    pub call: CanonicalCall,
    /// Why an argument counts as a command line, if no table of tools says so.
    pub guess: Option<ShellGuess>,
}

/// The reason why a call to a tool that no table has is read as one to the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellGuess {
    /// The system that makes the call.
    pub system: &'static str,
    /// The reason, as a sentence without a full stop.
    pub because: String,
}

/// Translates between the tools of one hook system and the tools of the catalogue.
pub trait ToolNames: Send + Sync + fmt::Debug {
    /// Returns the name of the system.
    fn system(&self) -> &'static str;

    /// Returns the names by which a matcher of this system finds the canonical tool `tool`. The
    /// list is empty if the system does not have the tool. Its hooks then see the canonical name.
    fn names(&self, tool: &str) -> Vec<&'static str>;

    /// Returns the canonical name of a tool of this system. A tool that the system does not define,
    /// or that stands for several canonical tools, keeps its name.
    fn canonical_name<'a>(&self, name: &'a str) -> &'a str;

    /// Returns the system's spelling of a tool's name. An agent may accept a name in another letter case, and guards must
    /// then find the tool. A name that no tool has stays unchanged.
    fn spelling<'a>(&self, name: &'a str) -> &'a str {
        name
    }

    /// Returns the operations of a call that this system made, or `None` if the call is already
    /// canonical.
    ///
    /// # Errors
    /// Fails if the arguments are ambiguous or have no canonical form, such as a patch that cannot
    /// be parsed.
    fn operations(
        &self,
        name: &str,
        input: &JsonObject,
    ) -> Result<Option<Vec<CanonicalCall>>, ToolInputError>;

    /// Reads a call that runs a command line although its tool is not the one by which the system's
    /// hooks know the shell. Hooks for the shell judge it too. By default there are no such calls.
    fn command_of(&self, _name: &str, _input: &JsonObject) -> Option<CommandReading> {
        None
    }

    /// Translates arguments of the shell back that a hook wrote for a call that
    /// [runs a command line](Self::command_of). The hook may provide only some of them.
    ///
    /// # Errors
    /// Fails if the arguments of the tool have no place for them.
    fn command_input(
        &self,
        _name: &str,
        _input: &JsonObject,
        shell: &JsonObject,
    ) -> Result<JsonObject, ToolInputError> {
        Ok(shell.clone())
    }

    /// Returns an operation in the form that the system's hooks see, or `None` if they see it
    /// unchanged.
    ///
    /// # Errors
    /// Fails if an argument cannot be expressed in this system.
    fn view(&self, tool: &str, input: &JsonObject) -> Result<Option<OwnCall>, ToolInputError>;

    /// Translates arguments back that a hook wrote for the [view](Self::view) of `tool`. The hook
    /// may provide only some of the arguments.
    ///
    /// # Errors
    /// Fails if some arguments have no canonical form, or would select another tool.
    fn canonical_input(&self, tool: &str, own: &JsonObject) -> Result<JsonObject, ToolInputError>;
}

/// The error for arguments that cannot be translated between two hook systems.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot translate the arguments of {system}'s `{tool}`: {problem}")]
pub struct ToolInputError {
    /// The hook system.
    pub system: &'static str,
    /// The tool's name in that system.
    pub tool: String,
    /// What was found and what was expected.
    pub problem: String,
}

/// Returns whether a rewrite of this field changes the arguments of a tool call.
pub(crate) fn is_tool_input(info: &EventInfo, field: &str) -> bool {
    let mut rewrites = info.rewrites.iter();
    rewrites.any(|rewrite| rewrite.field == field && rewrite.target == "tool_input")
}
