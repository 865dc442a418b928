//! Where `tenterhook run` looks for prompt templates and skills.

use std::path::{Path, PathBuf};

use tenterhook_agent::ResourcePlaces;
use tenterhook_agent::resource::{Bringer, Place};

use crate::args::ConfigArgs;
use crate::config_dir;
use crate::error::CliError;

/// The folders of a project that have them.
const OF_PROJECT: [&str; 2] = [".tenterhook", ".pi"];

/// The folder of a home that has those of pi.
const OF_PI: &str = ".pi/agent";

/// Returns the places for an agent that works in `start`, those of the folders further in first.
pub(crate) fn places(args: &ConfigArgs, start: &Path) -> Result<ResourcePlaces, CliError> {
    let layers = config_dir::layers(args, Some(start))?;
    let home = layers.home.as_ref().map(|home| home.join(OF_PI));
    let of_user = [layers.user.clone(), home, layers.system.clone()];
    // The model reads skills by their paths, from the agent's directory on: it is not where the program was started.
    let of_user = of_user.into_iter().flatten();
    let of_user = of_user.map(|folder| std::path::absolute(&folder).unwrap_or(folder));
    let mut folders: Vec<(PathBuf, Bringer)> =
        of_user.map(|folder| (folder, Bringer::User)).collect();
    for project in layers.projects().into_iter().rev() {
        let bringer = Bringer::Project {
            root: project.root.clone(),
        };
        let below = OF_PROJECT.map(|name| (project.dir.join(name), bringer.clone()));
        folders.extend(below);
    }
    let places = |kind: &str| {
        let places = folders.iter().map(|(folder, bringer)| Place {
            path: folder.join(kind),
            bringer: bringer.clone(),
        });
        places.collect()
    };
    Ok(ResourcePlaces {
        prompts: places("prompts"),
        skills: places("skills"),
    })
}
