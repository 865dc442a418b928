//! Finds rules that can never match, so that you notice a misspelt rule before you rely on it.

use serde_json::Value;
use thiserror::Error;

use super::rule::Rule;
use super::rules::Permissions;
use crate::tool::Tool;
use crate::toolbox::Toolbox;

/// The reasons why no call can match a rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnmatchedRuleError {
    /// No tool has a matching name.
    #[error("the rule `{rule}` matches no tool, expected one of {}", quoted(known))]
    NoTool {
        /// The rule.
        rule: Rule,
        /// The tools that exist.
        known: Vec<String>,
        /// Whether it is a deny or ask rule, so that calls it was meant to restrict go through.
        restricts: bool,
    },
    /// No matching tool has such an argument.
    #[error(
        "the rule `{rule}` names the argument `{argument}`, which its tool does not have, expected one of {}",
        quoted(known)
    )]
    NoArgument {
        /// The rule.
        rule: Rule,
        /// The argument that the rule names.
        argument: String,
        /// The arguments of the tools that the rule matches.
        known: Vec<String>,
        /// Whether it is a deny or ask rule, so that calls it was meant to restrict go through.
        restricts: bool,
    },
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

impl Permissions {
    /// Returns the rules that match no call of any tool in `toolbox`, deny rules first. `also` names further tools
    /// whose arguments are not known.
    pub fn unmatched<'a>(
        &self,
        toolbox: &Toolbox,
        also: impl IntoIterator<Item = &'a str>,
    ) -> Vec<UnmatchedRuleError> {
        let also: Vec<&str> = also.into_iter().collect();
        let restricting = self.deny.iter().chain(&self.ask).map(|rule| (rule, true));
        let allowing = self.allow.iter().map(|rule| (rule, false));
        restricting
            .chain(allowing)
            .filter_map(|(rule, restricts)| rule.problem(toolbox, &also, restricts))
            .collect()
    }
}

impl Rule {
    fn problem(
        &self,
        toolbox: &Toolbox,
        also: &[&str],
        restricts: bool,
    ) -> Option<UnmatchedRuleError> {
        if also.iter().any(|name| self.tool.matches(name)) {
            return None;
        }
        let mut tools = toolbox
            .names()
            .filter(|name| self.tool.matches(name))
            .filter_map(|name| toolbox.get(name))
            .peekable();
        if tools.peek().is_none() {
            let known = toolbox.names().chain(also.iter().copied());
            return Some(UnmatchedRuleError::NoTool {
                rule: self.clone(),
                known: known.map(str::to_owned).collect(),
                restricts,
            });
        }
        let (argument, _) = self.argument.as_ref()?;
        let mut known: Vec<String> = Vec::new();
        for tool in tools {
            // A schema without properties does not tell which arguments the tool accepts.
            let names = arguments(&**tool)?;
            for name in names {
                if !known.contains(&name) {
                    known.push(name);
                }
            }
        }
        (!known.contains(argument)).then(|| UnmatchedRuleError::NoArgument {
            rule: self.clone(),
            argument: argument.clone(),
            known,
            restricts,
        })
    }
}

fn arguments(tool: &dyn Tool) -> Option<Vec<String>> {
    let schema = tool.schema();
    let properties = schema.get("properties").and_then(Value::as_object)?;
    Some(properties.keys().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(rules: &[&str]) -> Vec<String> {
        let permissions = rules.iter().fold(Permissions::new(), |permissions, rule| {
            permissions.deny(rule.parse().unwrap())
        });
        permissions
            .unmatched(&Toolbox::standard(), ["transfer_task"])
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn rules_that_can_match_are_no_problem() {
        let rules = [
            "shell",
            "*",
            "*_file",
            "shell(cmd=rm *)",
            "shell(cwd=/etc*)",
            "*(path=secret/*)",
            "search(glob=*.rs)",
            "transfer_task(agent=a)",
        ];
        assert_eq!(problems(&rules), Vec::<String>::new());
    }

    #[test]
    fn a_misspelt_rule_is_answered_with_what_exists() {
        assert_eq!(
            problems(&["shel(cmd=rm *)", "shell(command=rm *)", "read_file(file=a)"]),
            [
                "the rule `shel(cmd=rm *)` matches no tool, expected one of `shell`, `read_file`, `write_file`, \
                 `edit_file`, `list_directory`, `search`, `transfer_task`",
                "the rule `shell(command=rm *)` names the argument `command`, which its tool does not have, \
                 expected one of `cmd`, `cwd`, `timeout`",
                "the rule `read_file(file=a)` names the argument `file`, which its tool does not have, \
                 expected one of `path`, `offset`, `limit`",
            ]
        );
    }

    #[test]
    fn the_problems_name_the_rules_of_every_list() {
        let rule = |text: &str| text.parse::<Rule>().unwrap();
        let permissions = Permissions::new()
            .allow(rule("a"))
            .ask(rule("b"))
            .deny(rule("c"));
        let rules: Vec<String> = permissions
            .unmatched(&Toolbox::empty(), [])
            .into_iter()
            .filter_map(|problem| match problem {
                UnmatchedRuleError::NoTool { rule, .. } => Some(rule.to_string()),
                UnmatchedRuleError::NoArgument { .. } => None,
            })
            .collect();
        assert_eq!(rules, ["c", "b", "a"]);
    }
}
