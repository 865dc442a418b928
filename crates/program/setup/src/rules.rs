//! What an agent may use: the tools and permission rules of agent files, and the rules of the command line.

use std::path::PathBuf;

use tenterhook_agent::{
    Agent, AgentRestrictions, FolderRestriction, Permissions, Rule, Toolbox, UnmatchedRuleError,
};
use tenterhook_discovery::Loaded;
use tenterhook_hookfile::{AgentDefinition, Toolset, ToolsetKind};
use tenterhook_systems::tools;
use tenterhook_tools::ToolRetry;

use crate::agent_options::AgentOptions;
use crate::error::CliError;
use crate::exit::Exit;
use crate::warning::warn;

/// The tool that gives a task to another agent.
const TRANSFER: &str = "transfer_task";

/// A tool of a toolset.
#[derive(Debug, Clone, Copy)]
struct SetTool {
    name: &'static str,
    is_read_only: bool,
}

const fn reads(name: &'static str) -> SetTool {
    SetTool {
        name,
        is_read_only: true,
    }
}

const fn changes(name: &'static str) -> SetTool {
    SetTool {
        name,
        is_read_only: false,
    }
}

/// Returns the tools of a toolset.
fn tools_of(kind: ToolsetKind) -> &'static [SetTool] {
    match kind {
        ToolsetKind::Shell => &const { [changes("shell")] },
        ToolsetKind::Filesystem => {
            &const {
                [
                    reads("read_file"),
                    changes("write_file"),
                    changes("edit_file"),
                    reads("list_directory"),
                    reads("search"),
                ]
            }
        }
        ToolsetKind::BackgroundAgents => {
            &const {
                [
                    changes("run_background_agent"),
                    reads("list_background_agents"),
                    reads("view_background_agent"),
                    changes("stop_background_agent"),
                ]
            }
        }
    }
}

/// Returns the names of the tools that an agent has from a toolset.
fn names(toolset: &Toolset) -> Vec<String> {
    let is_wanted = |tool: &&SetTool| {
        let only = toolset.only.as_ref();
        only.is_none_or(|only| only.iter().any(|wanted| wanted == tool.name))
            && (tool.is_read_only || !toolset.read_only)
    };
    let tools = tools_of(toolset.kind).iter().filter(is_wanted);
    tools.map(|tool| tool.name.to_owned()).collect()
}

/// Returns the tools of an agent, or `None` if it may use all. `may_delegate` adds the tool that gives tasks to other
/// agents.
pub fn tools(agent: &AgentDefinition, may_delegate: bool) -> Option<Vec<String>> {
    let toolsets = agent.toolsets.as_ref()?;
    let mut tools: Vec<String> = toolsets.iter().flat_map(names).collect();
    tools.extend(may_delegate.then(|| TRANSFER.to_owned()));
    Some(tools)
}

/// Returns the restrictions of an agent's tools.
pub fn restrictions(agent: &AgentDefinition) -> Result<AgentRestrictions, CliError> {
    let restricts =
        |toolset: &&Toolset| !toolset.allow_list.is_empty() || !toolset.deny_list.is_empty();
    let toolsets = agent.toolsets.iter().flatten().filter(restricts);
    let folders = toolsets.map(|toolset| {
        Ok(FolderRestriction {
            tools: names(toolset),
            allow: folders(&toolset.allow_list)?,
            deny: folders(&toolset.deny_list)?,
        })
    });
    Ok(AgentRestrictions {
        read_only: agent.read_only,
        folders: folders.collect::<Result<_, CliError>>()?,
        commands: None,
        max_iterations: agent.max_iterations,
        repeated_calls: agent.max_consecutive_tool_calls,
    })
}

/// Returns folders of an agent file as paths. A leading `~` is the user's home directory.
fn folders(written: &[String]) -> Result<Vec<PathBuf>, CliError> {
    let path = |text: &String| {
        let below = match text.strip_prefix('~') {
            Some("") => Some(""),
            Some(rest) => rest.strip_prefix('/'),
            None => None,
        };
        let Some(below) = below else {
            return Ok(PathBuf::from(text));
        };
        let home = std::env::home_dir().ok_or_else(|| {
            let message = format!("cannot resolve `{text}`: the home directory is unknown");
            CliError::new(Exit::Config, message).hint("set `HOME`, or write the full path")
        })?;
        Ok(home.join(below))
    };
    written.iter().map(path).collect()
}

/// Returns the rules of the agent files and of the command line.
pub fn permissions(options: &AgentOptions, loaded: &Loaded) -> Result<Permissions, CliError> {
    let files = || loaded.agent_files.iter().map(|file| &file.permissions);
    let allow = parse(files().flat_map(|rules| &rules.allow))?;
    let ask = parse(files().flat_map(|rules| &rules.ask))?;
    let deny = parse(files().flat_map(|rules| &rules.deny))?;
    let all = |own: &[Rule], of_files: Vec<Rule>| of_files.into_iter().chain(own.to_vec());
    let permissions = Permissions::new();
    let permissions = all(&options.allow, allow).fold(permissions, Permissions::allow);
    let permissions = all(&options.ask, ask).fold(permissions, Permissions::ask);
    Ok(all(&options.deny, deny).fold(permissions, Permissions::deny))
}

fn parse<'a>(rules: impl Iterator<Item = &'a String>) -> Result<Vec<Rule>, CliError> {
    rules
        .map(|rule| {
            rule.parse()
                .map_err(|error| CliError::of(Exit::Config, &error))
        })
        .collect()
}

/// Sets how often a tool may run for one call.
pub fn attempts(options: &AgentOptions, toolbox: Toolbox) -> Result<Toolbox, CliError> {
    options
        .attempts
        .iter()
        .try_fold(toolbox, |toolbox, (tool, attempts)| {
            if toolbox.get(tool).is_none() {
                let names: Vec<&str> = toolbox.names().collect();
                let message = format!("`--attempts`: unknown tool `{tool}`");
                let hint = format!("available: `{}`", names.join("`, `"));
                return Err(CliError::new(Exit::Usage, message).hint(hint));
            }
            Ok(toolbox.retry(tool, ToolRetry::up_to(*attempts)))
        })
}

/// Checks for rules that no call can match.
///
/// Such a rule is an error if it should restrict something, and if it is on the command line or means a tool that
/// this agent has under another name or with other arguments. Any other such rule is a warning, because a tool that
/// the agent does not have cannot be called.
pub fn check(options: &AgentOptions, agent: &Agent) -> Result<(), CliError> {
    for problem in agent.unmatched_rules() {
        let is_among = |rules: &[Rule]| match &problem {
            UnmatchedRuleError::NoTool { rule, .. }
            | UnmatchedRuleError::NoArgument { rule, .. } => rules.contains(rule),
            _ => false,
        };
        if is_among(&options.deny) || is_among(&options.ask) {
            return Err(CliError::of(Exit::Usage, &problem));
        }
        if is_meant_for_a_tool(&problem) {
            return Err(CliError::of(Exit::Config, &problem)
                .hint("use the names of this agent's tools and arguments, or remove the rule"));
        }
        warn(&problem);
    }
    Ok(())
}

/// Returns whether a rule restricts nothing although the agent has the tool that it means.
fn is_meant_for_a_tool(problem: &UnmatchedRuleError) -> bool {
    match problem {
        UnmatchedRuleError::NoArgument { restricts, .. } => *restricts,
        UnmatchedRuleError::NoTool {
            rule,
            known,
            restricts,
        } => {
            let text = rule.to_string();
            let tool = text.split('(').next().unwrap_or(&text);
            let names = tools::native().names(tool);
            let is_here = |name: &str| known.iter().any(|known| known == name);
            let is_alias = names.into_iter().any(is_here);
            *restricts && (is_alias || known.iter().any(|known| known.eq_ignore_ascii_case(tool)))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sets_have_every_tool_for_files_and_commands() {
        let mut known: Vec<String> = Toolbox::standard().names().map(str::to_owned).collect();
        let tools = [ToolsetKind::Shell, ToolsetKind::Filesystem]
            .into_iter()
            .flat_map(tools_of);
        let mut named: Vec<&str> = tools.clone().map(|tool| tool.name).collect();
        known.sort();
        named.sort_unstable();
        assert_eq!(known, named);
        for tool in tools {
            let toolbox = Toolbox::standard();
            let own = toolbox.get(tool.name).unwrap().is_read_only();
            assert_eq!(own, tool.is_read_only, "{}", tool.name);
        }
    }
}
