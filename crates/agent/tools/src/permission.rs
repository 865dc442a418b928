//! Permission rules: which calls run without a question, which need the user's approval, and which never run.
//!
//! Rules judge a call by the tool's name and one argument. Deny beats ask, and ask beats allow. If no rule matches,
//! read-only tools run, and the user is asked about all others. This module does not know hooks. The agent combines
//! their decisions with the rules'.

mod argument;
mod location;
mod rule;
mod rules;
mod ruling;
#[cfg(test)]
mod tests;
mod unmatched;

pub(crate) use self::argument::is_command_allowed;
pub use self::rule::{InvalidRule, Rule};
pub use self::rules::Permissions;
pub use self::ruling::{Reach, Ruling, suggestion};
pub use self::unmatched::UnmatchedRuleError;
