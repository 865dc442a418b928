//! The rules of an agent, and the calls that the user allowed for the session.

use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tenterhook_protocol::JsonObject;
use tenterhook_systems::tool_names::FoundCommand;

use super::argument::{JudgedCall, Restriction};
use super::rule::Rule;
use super::ruling::{Reach, Ruling};
use crate::tool::Tool;

/// The name and the category of the shell tool.
const SHELL: &str = "shell";

/// The rules of an agent, and the calls that the user allowed for the session. Clones share the allowed calls.
#[derive(Debug, Clone, Default)]
pub struct Permissions {
    pub(super) allow: Vec<Rule>,
    pub(super) ask: Vec<Rule>,
    pub(super) deny: Vec<Rule>,
    says_yes: bool,
    grants: Arc<Mutex<Vec<Grant>>>,
}

/// Calls that the user allowed for the session.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grant {
    tool: String,
    /// The input; `None` means any.
    input: Option<JsonObject>,
}

impl Permissions {
    /// Creates permissions without rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the same rules for a new session, in which the user has allowed nothing yet.
    #[must_use]
    pub fn for_new_session(&self) -> Self {
        Self {
            grants: Arc::default(),
            ..self.clone()
        }
    }

    /// Adds a rule for calls that run without a question.
    #[must_use]
    pub fn allow(mut self, rule: Rule) -> Self {
        self.allow.push(rule);
        self
    }

    /// Adds a rule for calls that need the user's approval.
    #[must_use]
    pub fn ask(mut self, rule: Rule) -> Self {
        self.ask.push(rule);
        self
    }

    /// Adds a rule for calls that never run.
    #[must_use]
    pub fn deny(mut self, rule: Rule) -> Self {
        self.deny.push(rule);
        self
    }

    /// Answers yes to every question that a rule, or the lack of one, would cause. Deny rules and hooks
    /// still apply.
    #[must_use]
    pub fn yes(mut self, says_yes: bool) -> Self {
        self.says_yes = says_yes;
        self
    }

    /// Returns whether every question of a rule is answered with yes automatically.
    pub fn says_yes(&self) -> bool {
        self.says_yes
    }

    /// Applies the rules to a call to `tool` in the folder `cwd`. This looks at the disk.
    pub fn judge(&self, tool: &dyn Tool, input: &JsonObject, cwd: &Path) -> Ruling {
        let call = JudgedCall {
            name: tool.name(),
            category: tool.category(),
            input,
            cwd,
        };
        let shell_input = command_input(tool, input);
        let as_shell = shell_input.as_ref().map(|input| JudgedCall {
            name: SHELL,
            category: SHELL,
            input,
            cwd,
        });
        let restricting = |rules: &[Rule]| {
            let mut covering = rules.iter().filter_map(|rule| {
                let mut calls = std::iter::once(&call).chain(&as_shell);
                let restriction = calls.find_map(|call| rule.restricts(call))?;
                Some((rule.to_string(), restriction))
            });
            covering.next()
        };
        if let Some((rule, restriction)) = restricting(&self.deny) {
            match restriction {
                Restriction::Matches => Ruling::Deny(rule),
                Restriction::Unread(reason) => Ruling::DenyUnread { rule, reason },
            }
        } else if self.is_granted(tool, Some(input)) {
            Ruling::Granted
        } else if let Some((rule, _)) = restricting(&self.ask) {
            Ruling::Ask(rule)
        } else if self.is_granted(tool, None) {
            Ruling::Granted
        } else if self.allow.iter().any(|rule| rule.allows(&call)) {
            Ruling::Allow
        } else if tool.wants_approval() {
            Ruling::Unruled
        } else {
            Ruling::Harmless
        }
    }

    /// Allows this call for the session, and with a larger `reach` also others like it.
    pub fn grant(&self, tool: &dyn Tool, input: &JsonObject, reach: Reach) {
        let inputs = match reach {
            Reach::SameInput => vec![Some(input.clone())],
            Reach::WholeTool => vec![Some(input.clone()), None],
        };
        let mut grants = self.grants();
        for input in inputs {
            let grant = Grant {
                tool: tool.name().to_owned(),
                input,
            };
            if !grants.contains(&grant) {
                grants.push(grant);
            }
        }
    }

    fn is_granted(&self, tool: &dyn Tool, input: Option<&JsonObject>) -> bool {
        self.grants()
            .iter()
            .any(|grant| grant.tool == tool.name() && grant.input.as_ref() == input)
    }

    fn grants(&self) -> MutexGuard<'_, Vec<Grant>> {
        self.grants.lock()
    }
}

/// Returns the arguments of the shell, if a tool with another name runs a command line. Rules that restrict the shell
/// restrict it too. An argument for which the tool's schema lists all values is not a command line.
fn command_input(tool: &dyn Tool, input: &JsonObject) -> Option<JsonObject> {
    if tool.category() == SHELL {
        return None;
    }
    let schema = tool.schema();
    let properties = schema.get("properties");
    let is_free = |key: &str| {
        let values = properties.and_then(|all| all.get(key)?.get("enum"));
        values.is_none()
    };
    let free = input.iter().filter(|(key, _)| is_free(key));
    let free = free
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let found = FoundCommand::find(tool.name(), &free)?;
    Some(found.shell_input(input))
}
