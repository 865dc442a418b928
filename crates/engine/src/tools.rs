//! How hooks of one system name the tools of another.
//!
//! The shell tool is `shell {cmd}` here, `bash {command}` in kodelet and `terminal {cmd}` in Operator. A
//! [`ToolNames`] translates between the canonical tools of the catalogue and the tools of one hook system, in both
//! directions. The engine knows no system: `tenterhook-dialects` has the implementations.

use std::fmt;

use tenterhook_protocol::JsonObject;
use thiserror::Error;

/// The name of our own hook system, whose hooks see canonical tools.
pub const NATIVE_SYSTEM: &str = "native";

/// One operation of a tool call, in canonical terms.
///
/// A call is usually one operation. A patch that touches three files is three.
#[derive(Debug, Clone, PartialEq)]
pub struct CanonicalCall {
    /// The canonical name of the tool. A tool that is not in the catalogue keeps its own.
    pub tool: String,
    /// The arguments by their canonical names. An argument without a canonical name keeps its own.
    pub input: JsonObject,
}

/// A tool call under the names of one hook system.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnCall {
    /// The name of the tool in that system.
    pub name: String,
    /// The arguments by the names of that system.
    pub input: JsonObject,
}

/// The tools of one hook system and what they are called in the catalogue.
pub trait ToolNames: Send + Sync + fmt::Debug {
    /// Returns the name of the system.
    fn system(&self) -> &'static str;

    /// Returns the names under which a matcher of this system finds the canonical tool `tool`. The list is empty if
    /// the system does not have the tool; its hooks then see the canonical name.
    fn names(&self, tool: &str) -> Vec<&'static str>;

    /// Returns the canonical name of a tool of this system. A tool that is not built into it, or that stands for several
    /// canonical tools, keeps its name.
    fn canonical_name<'a>(&self, name: &'a str) -> &'a str;

    /// Returns the operations of a call that this system made, or `None` if the call is canonical as it is.
    ///
    /// # Errors
    /// When the arguments are ambiguous or have no canonical form, such as a patch that cannot be parsed.
    fn operations(
        &self,
        name: &str,
        input: &JsonObject,
    ) -> Result<Option<Vec<CanonicalCall>>, ToolInputError>;

    /// Returns an operation as the system's hooks see it, or `None` if they see it as it is.
    ///
    /// # Errors
    /// When an argument has no form in this system.
    fn view(&self, tool: &str, input: &JsonObject) -> Result<Option<OwnCall>, ToolInputError>;

    /// Translates arguments that a hook wrote for the [view](Self::view) of `tool` back. A hook may give some of the
    /// arguments only.
    ///
    /// # Errors
    /// When a part of them has no canonical form, or would make it another tool.
    fn canonical_input(&self, tool: &str, own: &JsonObject) -> Result<JsonObject, ToolInputError>;
}

/// Arguments that cannot be translated between two hook systems.
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
