//! Loads the recipe of a run, and makes its prompt.

use std::path::Path;
use std::time::Duration;

use tenterhook_discovery::{
    LoadOptions, Recipe, RecipePlace, find_recipe, is_own_recipe, load_recipe,
};
use tenterhook_process::{Command, End, HeldPipe, Limits, Program};
use tenterhook_runners::Services;
use tenterhook_runners::recipe::RecipeHandlers;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::command::run::args::RunArgs;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::config_dir;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::hooks;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output;

/// The longest prompt of a recipe, in bytes.
const MAX_PROMPT: usize = 4 << 20;

/// How long a command of a recipe may run.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// Loads the recipe that the command line names, if any. With `--no-hooks`, only the recipe's prompt and tools are
/// used.
pub(crate) fn load(args: &RunArgs, services: Services) -> Result<Option<Recipe>, CliError> {
    let Some(name) = &args.work.recipe else {
        return Ok(None);
    };
    let layers = config_dir::layers(
        args.agent.hooks.config.config_dir.as_deref(),
        Some(&args.agent.cwd),
    )?;
    let place = find_recipe(name, &layers).map_err(|error| {
        let known = error.known.join(", ");
        CliError::of(Exit::Usage, &error).hint(format!("available: {known}"))
    })?;
    let options: LoadOptions = hooks::load_options(false, services);
    if let RecipePlace::File(path) = &place
        && layers
            .projects()
            .iter()
            .any(|project| path.starts_with(&project.dir))
    {
        output::note(format_args!(
            "This recipe belongs to the project: {}",
            escape_line(&path.display().to_string())
        ));
    }
    let mut recipe = load_recipe(name, &place, &RecipeHandlers::default(), &options)?;
    if args.work.no_hooks {
        recipe.hooks.clear();
    }
    let may_run = args.work.recipe_commands || is_own_recipe(&place, &layers);
    if recipe.prompt.runs_commands() && !may_run {
        let message =
            format!("the recipe `{name}` runs commands, and it is not in your own folders");
        let hint = "read its `{{bash …}}`, then add `--recipe-commands`";
        return Err(CliError::new(Exit::Usage, message).hint(hint));
    }
    Ok(Some(recipe))
}

/// Returns the prompt: the recipe's, followed by the user's own.
pub(crate) async fn prompt(
    recipe: Option<Recipe>,
    args: &RunArgs,
    interrupts: &Interrupts,
) -> Result<Option<String>, CliError> {
    let own = args.prompt.as_deref();
    let Some(recipe) = recipe else {
        return Ok(own.map(str::to_owned));
    };
    let mut arguments = recipe.defaults;
    arguments.extend(args.work.recipe_arguments.iter().cloned());
    let (template, cwd) = (recipe.prompt, args.agent.cwd.clone());
    let (runtime, cancel) = (Handle::current(), interrupts.token());
    let name = recipe.name;
    // A template is rendered at once, so its commands run on a thread that may wait for them.
    let text = run_blocking(&interrupts.token(), move || {
        let rendered = template.render(&arguments, MAX_PROMPT, move |words| {
            runtime.block_on(output_of(words, &cwd, &cancel))
        });
        rendered.map_err(|error| CliError::new(Exit::Config, format!("recipe `{name}`: {error}")))
    })
    .await?;
    Ok(Some(match own {
        Some(own) => format!("{text}\n\n{own}"),
        None => text,
    }))
}

/// Runs a command of a recipe. Returns its output, also if it fails, without line ends after it.
async fn output_of(words: &[String], cwd: &Path, cancel: &CancellationToken) -> String {
    let limits = Limits {
        timeout: COMMAND_TIMEOUT,
        held_pipe: HeldPipe::Drain(Duration::from_millis(500)),
        ..Limits::default()
    };
    let command = Command::new(Program::exec(words)).working_dir(cwd.to_owned());
    let problem = match command.run(b"", &limits, cancel).await {
        Ok(finished) if matches!(finished.end, End::TimedOut { .. }) => {
            format!("no answer within {} seconds", COMMAND_TIMEOUT.as_secs())
        }
        Ok(finished) => {
            let text = format!("{}{}", finished.stdout.text(), finished.stderr.text());
            return text.trim_end_matches(['\n', '\r']).to_owned();
        }
        Err(error) => error.to_string(),
    };
    format!("[ERROR executing command '{}': {problem}]", words.join(" "))
}
