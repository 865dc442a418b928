//! Limits the agent of a chat to what its channel may use.

use std::collections::BTreeSet;
use std::path::Path;

use tenterhook_agent::{AgentConfig, AgentRestrictions, FolderRestriction};
use tenterhook_channel::settings::Settings;
use tenterhook_gateway::conversations::profile::ToolAccess;
use tenterhook_hookfile::nearest;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_tools::{BACKGROUND_TOOLS, TRANSFER_TASK, Toolbox};

/// The gateway's own tools, which it adds to the tools of every agent.
const OF_GATEWAY: [&str; 1] = ["send"];

/// The tools that untrusted chats may use in the agent's directory, and for files that people sent.
const FILE_READERS: &[&str] = &["read_file"];

/// The tools that untrusted chats may use in the agent's directory only, because other chats sent files too.
const FOLDER_READERS: &[&str] = &["list_directory", "search"];

/// Limits an agent and its subagents. `own` are the tools without those that the gateway has added.
/// `media` is the folder with the files that people sent.
pub(super) fn limited(
    mut config: AgentConfig,
    own: &Toolbox,
    access: &ToolAccess,
    media: &Path,
) -> AgentConfig {
    if let Some(tools) = &mut config.tools {
        // The list of an agent file cannot know the gateway's tools.
        let added = config
            .toolbox
            .names()
            .filter(|name| own.get(name).is_none());
        tools.extend(added.map(str::to_owned));
    }
    if let Some(allowed) = &access.tools {
        // A subagent would otherwise have tools that its channel must not use.
        let subagents = config.agents.iter_mut().map(|agent| &mut agent.tools);
        for tools in subagents.chain([&mut config.tools]) {
            match tools {
                Some(tools) => tools.retain(|tool| allowed.contains(tool)),
                None => *tools = Some(allowed.clone()),
            }
        }
    }
    if access.is_untrusted {
        // None of the tools that only read uses the network. What scripts add does not count as reading.
        let restrictions = config.restrictions.get(&config.name);
        let mut restrictions =
            restrictions.map_or_else(AgentRestrictions::default, |own| (**own).clone());
        restrictions.read_only = true;
        // A stranger could otherwise read every file of this machine, such as keys.
        let readable = [(FILE_READERS, Some(media)), (FOLDER_READERS, None)];
        for (tools, more) in readable {
            restrictions.folders.push(FolderRestriction {
                tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
                allow: [Some(config.cwd.as_path()), more]
                    .into_iter()
                    .flatten()
                    .map(Path::to_owned)
                    .collect(),
                deny: Vec::new(),
            });
        }
        config.restrict(config.name.clone(), restrictions);
    }
    config
}

/// Checks the tools that the settings name.
pub(super) fn check(settings: &Settings, toolbox: &Toolbox) -> Result<(), CliError> {
    let known: BTreeSet<&str> = toolbox
        .names()
        .chain(OF_GATEWAY)
        .chain([TRANSFER_TASK])
        .chain(BACKGROUND_TOOLS)
        .collect();
    let mut problems = settings.channels.iter().flat_map(|channel| {
        let unknown = channel.tools.iter().flatten();
        let unknown = unknown.filter(|tool| !known.contains(tool.as_str()));
        unknown.map(|tool| {
            let near = nearest(tool, known.iter().copied());
            let near = near.map(|near| format!("; did you mean `{near}`?"));
            let near = near.unwrap_or_default();
            format!("channel `{}`: unknown tool `{tool}`{near}", channel.id)
        })
    });
    let Some(first) = problems.next() else {
        return Ok(());
    };
    let names: Vec<&str> = known.iter().copied().collect();
    let error = CliError {
        causes: problems.collect(),
        ..CliError::new(Exit::Config, first)
    };
    Err(error.hint(format!("available: `{}`", names.join("`, `"))))
}

#[cfg(test)]
mod tests {
    use tenterhook_agent::AgentSpec;

    use super::*;

    fn config() -> AgentConfig {
        let subagent = |name: &str, tools: Option<&[&str]>| AgentSpec {
            name: name.to_owned(),
            description: String::new(),
            instruction: String::new(),
            tools: tools.map(words),
        };
        AgentConfig {
            agents: vec![
                subagent("all", None),
                subagent("some", Some(&["shell", "search"])),
            ],
            ..AgentConfig::default()
        }
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_channel_limits_the_agent_and_its_subagents() {
        let access = ToolAccess {
            tools: Some(words(&["search", TRANSFER_TASK])),
            is_untrusted: false,
        };
        let limited = limited(config(), &Toolbox::standard(), &access, Path::new("/m"));
        let of_subagents = limited.agents.iter().map(|agent| agent.tools.clone());
        assert_eq!(limited.tools, access.tools);
        assert_eq!(
            of_subagents.collect::<Vec<_>>(),
            [access.tools.clone(), Some(words(&["search"]))]
        );
    }

    #[test]
    fn a_channel_adds_no_tool_that_the_agent_file_left_out() {
        let config = AgentConfig {
            tools: Some(words(&["search"])),
            ..config()
        };
        let access = ToolAccess {
            tools: Some(words(&["search", "shell"])),
            is_untrusted: false,
        };
        let limited = limited(config, &Toolbox::standard(), &access, Path::new("/m"));
        assert_eq!(limited.tools, Some(words(&["search"])));
    }

    #[test]
    fn the_gateways_tools_are_added_to_the_list_of_an_agent_file() {
        let own = Toolbox::default();
        let config = AgentConfig {
            tools: Some(words(&["search"])),
            ..config()
        };
        let limited = limited(config, &own, &ToolAccess::default(), Path::new("/m"));
        assert!(limited.tools.unwrap().contains(&"shell".to_owned()));
    }

    #[test]
    fn an_untrusted_channel_only_reads_its_own_files_and_keeps_the_agents_other_restrictions() {
        let mut config = config();
        let name = config.name.clone();
        let own = AgentRestrictions {
            max_iterations: Some(3),
            ..AgentRestrictions::default()
        };
        config.restrict(name.clone(), own);
        let access = ToolAccess {
            tools: None,
            is_untrusted: true,
        };
        let limited = limited(config, &Toolbox::standard(), &access, Path::new("/m"));
        let restrictions = &limited.restrictions[&name];
        assert!(restrictions.read_only);
        assert_eq!(restrictions.max_iterations, Some(3));
        let allowed = |tool: &str| {
            let mut folders = restrictions.folders.iter();
            let found = folders.find(|folder| folder.tools.contains(&tool.to_owned()));
            found.map(|folder| folder.allow.clone()).unwrap()
        };
        let cwd = limited.cwd.clone();
        assert_eq!(allowed("read_file"), [cwd.clone(), "/m".into()]);
        assert_eq!(allowed("search"), [cwd]);
    }
}
