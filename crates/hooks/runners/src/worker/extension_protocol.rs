//! The parts of the extension protocol that depend on the hook system.

use serde_json::Value;

/// The parts of the extension protocol that depend on the hook system.
#[derive(Debug, Clone)]
pub struct ExtensionProtocol {
    /// The name of the system.
    pub system: &'static str,
    /// The version of the protocol.
    pub version: &'static str,
    /// The version of the system itself, which is sent to extensions.
    pub system_version: &'static str,
    /// The environment variable that names the directory of the agent.
    pub workspace_variable: &'static str,
    /// The request by which a tool reports its output so far.
    pub update_method: &'static str,
    /// The request by which a tool copies the conversation up to its own call.
    pub copy_method: &'static str,
    /// The events that an extension may subscribe to.
    pub events: Vec<&'static str>,
    /// The requests that ask the user something.
    pub questions: &'static [&'static str],
    /// Describes what the user interface supports. The argument is whether there is a user.
    pub capabilities: fn(bool) -> Value,
    /// Translates a request to the method and the parameters of the host's request; `None` if the host has no such
    /// request.
    pub host_request: HostRequest,
    /// Translates the host's answer to a request; `None` if there is no user.
    pub answer: fn(&str, &Value, Option<&Value>) -> Value,
    /// Answers a request for something that this program does not have; `None` if the method is unknown.
    pub refuse: fn(&str) -> Option<Value>,
}

/// Translates a request, given by its method and parameters, to a request of the host.
pub type HostRequest = fn(&str, &Value) -> Option<Result<(&'static str, Value), String>>;
