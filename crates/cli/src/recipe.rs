//! The recipe of a run.

use tenterhook_config::{LoadOptions, Recipe, RecipePlace, find_recipe, load_recipe};
use tenterhook_handlers::Services;
use tenterhook_handlers::recipe::RecipeHandlers;

use crate::args::RunArgs;
use crate::config_dir;
use crate::error::CliError;
use crate::exit::Exit;
use crate::hooks;
use crate::output;
use crate::safe::safe_line;

/// Loads the recipe of a call, if it names one. Without hooks a recipe is a prompt and tools.
pub(crate) fn load(args: &RunArgs, services: Services) -> Result<Option<Recipe>, CliError> {
    let Some(name) = &args.work.recipe else {
        return Ok(None);
    };
    let layers = config_dir::layers(&args.hooks.config, Some(&args.cwd))?;
    let place = find_recipe(name, &layers).map_err(|error| {
        let known = error.known.join(", ");
        CliError::of(Exit::Usage, &error).hint(format!("there are: {known}"))
    })?;
    let options: LoadOptions = hooks::options(false, services);
    if let RecipePlace::File(path) = &place
        && layers
            .projects()
            .iter()
            .any(|project| path.starts_with(&project.dir))
    {
        output::note(format_args!(
            "The recipe is this project's: {}",
            safe_line(&path.display().to_string())
        ));
    }
    let mut recipe = load_recipe(&place, &RecipeHandlers::default(), &options)?;
    if args.work.no_hooks {
        recipe.hooks.clear();
    }
    Ok(Some(recipe))
}

/// Returns what the agent is asked: the recipe's prompt, and what the user adds to it.
pub(crate) fn prompt(recipe: Option<&Recipe>, own: Option<&str>) -> Option<String> {
    match (recipe, own) {
        (Some(recipe), Some(own)) => Some(format!("{}\n\n{own}", recipe.prompt)),
        (Some(recipe), None) => Some(recipe.prompt.clone()),
        (None, own) => own.map(str::to_owned),
    }
}
