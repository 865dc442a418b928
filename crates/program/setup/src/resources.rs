//! Lists where `tenterhook run` looks for prompt templates and skills.

use std::path::PathBuf;

use tenterhook_agent::ResourcePlaces;
use tenterhook_agent::resource::{ResourcePlace, ResourceSource};

use crate::agent_options::AgentOptions;
use crate::config_dir;
use crate::error::CliError;

/// The folders of a project that may contain them.
const OF_PROJECT: [&str; 2] = [".tenterhook", ".pi"];

/// The folder of pi in the user's home directory.
const OF_PI: &str = ".pi/agent";

/// Returns the places for an agent, the innermost folders first.
pub fn places(options: &AgentOptions) -> Result<ResourcePlaces, CliError> {
    let layers = config_dir::layers(options.hooks.config_dir.as_deref(), Some(&options.cwd))?;
    let home = layers.home.as_ref().map(|home| home.join(OF_PI));
    let of_user = [layers.user.clone(), home, layers.system.clone()];
    // The model reads skills by their paths, relative to the agent's directory. That may not be the directory of this
    // program, so the paths must be absolute.
    let of_user = of_user.into_iter().flatten();
    let of_user = of_user.map(|folder| std::path::absolute(&folder).unwrap_or(folder));
    let mut folders: Vec<(PathBuf, ResourceSource)> = of_user
        .map(|folder| (folder, ResourceSource::User))
        .collect();
    for project in layers.projects().into_iter().rev() {
        let source = ResourceSource::Project {
            root: project.root.clone(),
        };
        let below = OF_PROJECT.map(|name| (project.dir.join(name), source.clone()));
        folders.extend(below);
    }
    let places = |kind: &str| {
        let places = folders.iter().map(|(folder, source)| ResourcePlace {
            path: folder.join(kind),
            source: source.clone(),
        });
        places.collect()
    };
    Ok(ResourcePlaces {
        prompts: places("prompts"),
        skills: places("skills"),
    })
}
