//! The result of applying the rules to a call, and how many calls the user's approval covers.

use tenterhook_protocol::JsonObject;

use crate::tool::Tool;

/// The result of applying the rules to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// A rule denies the call.
    Deny(String),
    /// A rule denies the call, because no one can tell what its command line runs.
    DenyUnread {
        /// The rule.
        rule: String,
        /// What the line hides, and what to write instead.
        reason: String,
    },
    /// A rule requires the user's approval.
    Ask(String),
    /// A rule allows the call.
    Allow,
    /// The user allowed it for the session.
    Granted,
    /// No rule matches, and the tool needs no approval.
    Harmless,
    /// No rule matches, and the tool needs approval.
    Unruled,
}

impl Ruling {
    /// Returns how many calls the user's approval covers if it is given for the session. If a rule asked, the approval
    /// covers only this input, because the rule asks again about any other.
    pub fn reach(&self, tool: &dyn Tool) -> Reach {
        if matches!(self, Self::Ask(_)) || tool.category() == "shell" {
            Reach::SameInput
        } else {
            Reach::WholeTool
        }
    }
}

/// How many calls an approval for the session covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Calls with exactly this input. Every other command line needs a new approval.
    SameInput,
    /// Every call to the tool that no rule asks about.
    WholeTool,
}

/// Describes which calls an approval of this call for the session covers.
pub fn suggestion(tool: &dyn Tool, input: &JsonObject, reach: Reach) -> String {
    let name = tool.name();
    if reach == Reach::WholeTool {
        return name.to_owned();
    }
    let telling = ["cmd", "path"]
        .into_iter()
        .find_map(|argument| Some((argument, input.get(argument)?.as_str()?)));
    match telling {
        Some((argument, value)) => format!("{name}({argument}={value})"),
        None => name.to_owned(),
    }
}
