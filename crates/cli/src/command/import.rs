//! `tenterhook import`: run the hooks that were written for a coding agent, without a change.

use std::fs;
use std::path::{Path, PathBuf};

use crate::ancestry;
use crate::hook_args::ConfigArgs;
use clap::Parser;
use serde_json::{Value, json};
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::config_dir;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::hook_options::HookOptions;
use tenterhook_setup::hooks;
use tenterhook_setup::imports::{
    AddedImport, ImportSources, SettingsPlace, TrialResult, TriedHook, add_import, count_hooks,
    hook_file, try_hooks,
};
use tenterhook_setup::warning::warn;
use tenterhook_systems::settings_file::HookSettings;
use tenterhook_systems::{HookSystem, SYSTEMS};
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output;
use tenterhook_terminal::output::plural::count;
use tenterhook_trust::{TENTERHOOK, TrustState, resolved};

use crate::working_dir::current_dir;

/// Which hooks to import.
#[derive(Debug, Parser)]
pub(crate) struct ImportArgs {
    /// The coding agent whose hooks to import, for example `claude-code`.
    #[arg(value_name = "AGENT")]
    pub(crate) agent: String,

    /// Import the hooks of this project into its own hook file. They run after you approve them.
    #[arg(long)]
    pub(crate) project: bool,

    /// The file with the hooks, or the folder of a plugin. The default is the agent's usual file.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Run each of the hooks once with a harmless event, in a copy of this folder, and show which fail. The hooks of a
    /// project must be approved.
    #[arg(long = "try")]
    pub(crate) is_trial: bool,

    #[command(flatten)]
    pub(crate) config: ConfigArgs,

    /// Print a single JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to import, and where its entries go.
struct Import {
    sources: ImportSources,
    /// The project, if the files are its own.
    project: Option<PathBuf>,
    /// The path of the agent's usual file as it is written, if no other one is named.
    usual: Option<String>,
    hook_file: PathBuf,
}

pub(crate) async fn import(args: &ImportArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    ancestry::require_user("import hooks")?;
    let (system, settings) = system(&args.agent)?;
    let import = sources(settings, args)?;
    let mut hooks = 0;
    for (path, variables) in &import.sources.files {
        hooks += count_hooks(system, path, variables)?;
    }
    let mut changes = Vec::new();
    for (path, variables) in &import.sources.files {
        let added = AddedImport {
            written: import.written(path)?,
            variables: variables.clone(),
        };
        let is_changed = add_import(&import.hook_file, &added)?;
        changes.push((added.written, is_changed));
    }
    let tried = if args.is_trial {
        Some(try_imported(args, &import, interrupts).await?)
    } else {
        None
    };
    report(args, system, &import, hooks, &changes, tried.as_deref());
    let tried = tried.unwrap_or_default();
    let mut failed = tried
        .iter()
        .filter(|it| matches!(it.result, TrialResult::Failed(_)));
    Ok(if failed.next().is_some() {
        Exit::Config
    } else {
        Exit::Done
    })
}

fn system(name: &str) -> Result<(&'static HookSystem, &'static HookSettings), CliError> {
    let with_settings = || {
        let systems = SYSTEMS.iter();
        systems.filter_map(|system| Some((*system, system.settings?)))
    };
    let found = with_settings().find(|(system, _)| system.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = with_settings().map(|(system, _)| system.name).collect();
        CliError::new(Exit::Usage, format!("cannot import hooks of `{name}`"))
            .hint(format!("available: `{}`", names.join("`, `")))
    })
}

/// Finds the files to import.
fn sources(settings: &'static HookSettings, args: &ImportArgs) -> Result<Import, CliError> {
    let home = std::env::home_dir();
    if args.project {
        let project = absolute(Path::new("."))?;
        let named = args.file.as_deref().unwrap_or(Path::new(settings.project));
        let path = project.join(named);
        let path = if args.file.is_some() {
            absolute(&path)?
        } else {
            path
        };
        if !path.starts_with(&project) {
            let message = format!("`{}` is not a file of this project", named.display());
            return Err(CliError::new(Exit::Usage, message)
                .hint("leave out `--project` to import it for yourself"));
        }
        let place = SettingsPlace {
            file: &project.join(settings.project),
            home: home.as_deref(),
        };
        return Ok(Import {
            sources: ImportSources::find(settings, &path, place)?,
            usual: None,
            hook_file: hook_file(&project.join(TENTERHOOK)),
            project: Some(project),
        });
    }
    let no_folder = |what: &str| CliError::new(Exit::Config, format!("{what} is unknown"));
    let home = home.ok_or_else(|| no_folder("your home folder"))?;
    let own = home.join(settings.user);
    let path = match &args.file {
        Some(file) => absolute(file)?,
        None => own.clone(),
    };
    let place = SettingsPlace {
        file: &own,
        home: Some(&home),
    };
    let folder = config_dir::user(args.config.config_dir.as_deref())?;
    let folder = folder.ok_or_else(|| no_folder("your configuration folder"))?;
    Ok(Import {
        sources: ImportSources::find(settings, &path, place)?,
        project: None,
        usual: args.file.is_none().then(|| format!("~/{}", settings.user)),
        hook_file: hook_file(&folder),
    })
}

impl Import {
    /// Returns a path as it is written in the hook file.
    fn written(&self, path: &Path) -> Result<String, CliError> {
        if let Some(usual) = &self.usual {
            return Ok(usual.clone());
        }
        let Some(project) = &self.project else {
            return Ok(path.display().to_string());
        };
        let below = path.strip_prefix(project).map_err(|_| {
            let message = format!("`{}` is not a file of this project", path.display());
            CliError::new(Exit::Usage, message)
        })?;
        Ok(format!("../{}", below.display()))
    }
}

fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    let found = fs::canonicalize(path);
    found.map_err(|error| {
        let message = format!("cannot find `{}`", path.display());
        CliError::new(Exit::Config, message).cause(&error)
    })
}

/// Runs each imported hook that is in force once.
async fn try_imported(
    args: &ImportArgs,
    import: &Import,
    interrupts: &Interrupts,
) -> Result<Vec<TriedHook>, CliError> {
    let options = HookOptions {
        config_dir: args.config.config_dir.clone(),
        ..HookOptions::default()
    };
    let (folder, token) = (current_dir()?, interrupts.token());
    let (services, _) = hooks::services(options.config_dir.as_deref())?;
    let loaded = hooks::load(&options, &folder, services, &token).await?;
    let mut specs = loaded.loaded.specs;
    let files = &import.sources.files;
    let is_imported = |path: &Path| {
        files
            .iter()
            .any(|(file, _)| resolved(file) == resolved(path))
    };
    specs.retain(|spec| spec.source.path.as_deref().is_some_and(is_imported));
    let project_hooks = loaded.loaded.project_hooks.iter();
    let unapproved = project_hooks
        .filter(|hook| hook.state != TrustState::Trusted)
        .filter(|hook| is_imported(&hook.item.project.join(&hook.item.source)))
        .count();
    if unapproved > 0 {
        let message = format!(
            "{} not approved, so they were not tried",
            count(unapproved, "hook")
        );
        return Err(CliError::new(Exit::Config, message)
            .hint("run `tenterhook trust`, then the same command again"));
    }
    let tried = token
        .run_until_cancelled(try_hooks(specs, &folder, &token))
        .await;
    tried.ok_or_else(|| CliError::new(Exit::Interrupted, "interrupted"))?
}

/// Shows what changed in the hook file.
fn show_changes(import: &Import, changes: &[(String, bool)]) {
    let hook_file = import.hook_file.display();
    for (written, is_changed) in changes {
        if *is_changed {
            output::line(format!("Added `{written}` to `import` in `{hook_file}`."));
        } else {
            output::line(format!("`{hook_file}` already imports `{written}`."));
        }
    }
    for (_, variables) in &import.sources.files {
        let names = variables.iter().map(|(name, _)| format!("`{name}`"));
        let names: Vec<String> = names.collect();
        if !names.is_empty() {
            output::line(format!(
                "Its hooks get these variables: {}",
                names.join(", ")
            ));
        }
    }
}

fn report(
    args: &ImportArgs,
    system: &HookSystem,
    import: &Import,
    hooks: usize,
    changes: &[(String, bool)],
    tried: Option<&[TriedHook]>,
) {
    if args.json {
        let files = import.sources.files.iter().map(|(path, _)| path);
        let mut object = json!({
            "agent": system.name,
            "files": files.collect::<Vec<&PathBuf>>(),
            "hook_file": import.hook_file,
            "hooks": hooks,
            "changed": changes.iter().any(|(_, is_changed)| *is_changed),
            "notes": import.sources.notes,
        });
        if let (Some(tried), Some(object)) = (tried, object.as_object_mut()) {
            let tried: Vec<Value> = tried.iter().map(tried_json).collect();
            object.insert("tried".to_owned(), tried.into());
        }
        output::line(object);
        return;
    }
    show_changes(import, changes);
    for note in &import.sources.notes {
        warn(escape_line(note));
    }
    output::line(format!(
        "Found {}. `tenterhook list` shows them.",
        count(hooks, "hook")
    ));
    if let Some(tried) = tried {
        for hook in tried {
            output::line(escape_line(&tried_line(hook)));
        }
    } else if args.project {
        output::line("They run after you approve them: `tenterhook trust`");
    }
}

fn tried_line(hook: &TriedHook) -> String {
    let name = &hook.name;
    match &hook.result {
        TrialResult::Answered => format!("ok       {name}"),
        TrialResult::Failed(why) => format!("fails    {name}: {why}"),
        TrialResult::NotRun(why) => format!("not run  {name}: {why}"),
    }
}

fn tried_json(hook: &TriedHook) -> Value {
    let (result, problem) = match &hook.result {
        TrialResult::Answered => ("ok", None),
        TrialResult::Failed(why) => ("failed", Some(why)),
        TrialResult::NotRun(why) => ("not_run", Some(why)),
    };
    json!({ "hook": hook.name, "result": result, "problem": problem })
}
