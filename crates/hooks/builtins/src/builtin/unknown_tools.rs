//! Asks about calls to tools that no table has and that carry a command line, or denies them.
//!
//! The engine decides which calls these are. It shows them to hooks for the shell.

use futures_util::future::{BoxFuture, ready};
use tenterhook_engine::{Call, HandlerError, ShellGuess};
use tenterhook_protocol::{AnyEffect, EventKind, Permission};

use super::row::{Builtin, EventRunner};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "unknown_tools",
    events: &[EventKind::PreToolUse, EventKind::ToolGuard],
    arguments: "`see`, `ask` or `deny`, optionally after the name of an agent: `claude-code=deny`",
    make: |setup| {
        let rules: Result<Vec<Rule>, String> = setup
            .arguments
            .iter()
            .map(|text| Rule::parse(text))
            .collect();
        let rules = rules?;
        if rules.is_empty() {
            return Err("expected `see`, `ask` or `deny`".to_owned());
        }
        Ok(Box::new(UnknownTools { rules }))
    },
};

/// What to do with the calls of one agent.
struct Rule {
    /// The agent. `None` stands for every agent without a rule of its own.
    agent: Option<String>,
    permission: Permission,
}

impl Rule {
    fn parse(text: &str) -> Result<Self, String> {
        let (agent, word) = match text.split_once('=') {
            Some((agent, word)) => (Some(agent.to_owned()), word),
            None => (None, text),
        };
        let permission = match word {
            "see" => Permission::None,
            "ask" => Permission::Ask,
            "deny" => Permission::Deny,
            _ => {
                return Err(format!(
                    "unknown value `{word}`; expected `see`, `ask` or `deny`"
                ));
            }
        };
        Ok(Self { agent, permission })
    }
}

struct UnknownTools {
    rules: Vec<Rule>,
}

impl UnknownTools {
    fn judge(&self, guess: &ShellGuess) -> AnyEffect {
        let of = |agent: Option<&str>| {
            let mut rules = self.rules.iter();
            rules.find(|rule| rule.agent.as_deref() == agent)
        };
        let mut effect = AnyEffect::default();
        if let Some(rule) = of(Some(guess.system)).or_else(|| of(None))
            && rule.permission != Permission::None
        {
            effect.set_permission(rule.permission, Some(guess.because.clone()));
        }
        effect
    }
}

impl EventRunner for UnknownTools {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        let guess = call.event.shell_guess();
        let effect = guess.map_or_else(AnyEffect::default, |guess| self.judge(guess));
        Box::pin(ready(Ok(effect)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permission(rules: &[&str], system: &'static str) -> Option<Permission> {
        let rules = rules
            .iter()
            .map(|text| Rule::parse(text).unwrap())
            .collect();
        let because = "no table has this tool".to_owned();
        let effect = UnknownTools { rules }.judge(&ShellGuess { system, because });
        effect.permission.map(|verdict| verdict.permission)
    }

    #[test]
    fn the_rule_of_the_agent_counts_before_the_rule_for_all() {
        let rules = ["ask", "codex=deny", "gemini=see"];
        assert_eq!(permission(&rules, "claude-code"), Some(Permission::Ask));
        assert_eq!(permission(&rules, "codex"), Some(Permission::Deny));
        assert_eq!(permission(&rules, "gemini"), None);
        assert_eq!(permission(&["codex=deny"], "gemini"), None);
    }

    #[test]
    fn an_argument_that_is_no_rule_is_refused() {
        for arguments in [
            vec![],
            vec!["no"],
            vec!["codex"],
            vec!["codex="],
            vec!["deny", "x=y"],
        ] {
            let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
            let setup = super::super::testing::setup(&arguments);
            assert!((BUILTIN.make)(&setup).is_err(), "{arguments:?}");
        }
    }
}
