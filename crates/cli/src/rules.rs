//! What an agent may use: the tools and permission rules of agent files and of the command line.

use tenterhook_agent::tool::ToolRetry;
use tenterhook_agent::{Agent, Permissions, Rule, RuleProblem, Toolbox};
use tenterhook_config::{AgentDefinition, Loaded, Toolset, ToolsetKind};

use crate::args::RunArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::hooks;

/// The tool that gives a task to another agent.
const TRANSFER: &str = "transfer_task";

/// Returns the names of the tools of a set.
fn names(kind: ToolsetKind) -> &'static [&'static str] {
    match kind {
        ToolsetKind::Shell => &["shell"],
        ToolsetKind::Filesystem => &[
            "read_file",
            "write_file",
            "edit_file",
            "list_directory",
            "search",
        ],
        ToolsetKind::BackgroundAgents => &[
            "run_background_agent",
            "list_background_agents",
            "view_background_agent",
            "stop_background_agent",
        ],
    }
}

/// Returns the tools of an agent; `None` is all. `may_delegate` adds the one that gives tasks to other agents.
pub(crate) fn tools(agent: &AgentDefinition, may_delegate: bool) -> Option<Vec<String>> {
    let toolsets = agent.toolsets.as_ref()?;
    let of = |toolset: &Toolset| {
        let is_wanted = |name: &&str| {
            let only = toolset.only.as_ref();
            only.is_none_or(|only| only.iter().any(|wanted| wanted == name))
        };
        let names = names(toolset.kind).iter().copied().filter(is_wanted);
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut tools: Vec<String> = toolsets.iter().flat_map(of).collect();
    tools.extend(may_delegate.then(|| TRANSFER.to_owned()));
    Some(tools)
}

/// Returns the rules of the agent files and of the command line.
pub(crate) fn permissions(args: &RunArgs, loaded: &Loaded) -> Result<Permissions, CliError> {
    let files = || loaded.agent_files.iter().map(|file| &file.permissions);
    let allow = parse(files().flat_map(|rules| &rules.allow))?;
    let ask = parse(files().flat_map(|rules| &rules.ask))?;
    let deny = parse(files().flat_map(|rules| &rules.deny))?;
    let all = |own: &[Rule], of_files: Vec<Rule>| of_files.into_iter().chain(own.to_vec());
    let permissions = Permissions::new().yes(args.yes);
    let permissions = all(&args.allow, allow).fold(permissions, Permissions::allow);
    let permissions = all(&args.ask, ask).fold(permissions, Permissions::ask);
    Ok(all(&args.deny, deny).fold(permissions, Permissions::deny))
}

fn parse<'a>(rules: impl Iterator<Item = &'a String>) -> Result<Vec<Rule>, CliError> {
    rules
        .map(|rule| {
            rule.parse()
                .map_err(|error| CliError::of(Exit::Config, &error))
        })
        .collect()
}

/// Sets how often tools are run for one call.
pub(crate) fn attempts(args: &RunArgs, toolbox: Toolbox) -> Result<Toolbox, CliError> {
    args.attempts
        .iter()
        .try_fold(toolbox, |toolbox, (tool, attempts)| {
            if toolbox.get(tool).is_none() {
                let names: Vec<&str> = toolbox.names().collect();
                let message =
                    format!("`--attempts`: there is no tool `{tool}` that could be run again");
                let hint = format!("there are `{}`", names.join("`, `"));
                return Err(CliError::new(Exit::Usage, message).hint(hint));
            }
            Ok(toolbox.retry(tool, ToolRetry::up_to(*attempts)))
        })
}

/// Looks for rules that no call can match. One that should restrict something and does not is refused, where the
/// call of the program has it; any other is worth a warning.
pub(crate) fn check(args: &RunArgs, agent: &Agent) -> Result<(), CliError> {
    for problem in agent.unmatched_rules() {
        let is_among = |rules: &[Rule]| match &problem {
            RuleProblem::NoTool { rule, .. } | RuleProblem::NoArgument { rule, .. } => {
                rules.contains(rule)
            }
            _ => false,
        };
        if is_among(&args.deny) || is_among(&args.ask) {
            return Err(CliError::of(Exit::Usage, &problem));
        }
        hooks::warn(&problem);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sets_have_every_tool_for_files_and_commands() {
        let mut known: Vec<String> = Toolbox::standard().names().map(str::to_owned).collect();
        let mut named: Vec<&str> = [ToolsetKind::Shell, ToolsetKind::Filesystem]
            .into_iter()
            .flat_map(names)
            .copied()
            .collect();
        known.sort();
        named.sort_unstable();
        assert_eq!(known, named);
    }
}
