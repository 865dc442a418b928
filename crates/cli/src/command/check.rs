//! `tenterhook check`: reports every problem of hook files at once.

mod refused_members;
mod unfired_events;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tenterhook_agent::Toolbox;
use tenterhook_discovery::{
    FolderSearch, Loaded, is_script_or_program, load_corpus, misspelt_agents, unmatched_hooks,
};
use tenterhook_hookfile::{BrokenSource, LoadError, Problem};
use tenterhook_systems::pi;
use tenterhook_trust::Trust;

use crate::command::host_args::warn_of_switched_off;
use crate::hook_args::{ConfigArgs, DeadlineArgs, PlaceArgs};
use crate::working_dir::current_dir;
use clap::Parser;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::approval;
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::config_dir;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::hook_options::HookOptions;
use tenterhook_setup::hooks;
use tenterhook_setup::warning::{show_warnings, warn};
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::plural::count;
use tenterhook_terminal::output::{self, style, styled};

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook check [OPTIONS] [FILE]...")]
pub(crate) struct CheckArgs {
    /// The hook files and scripts. Without any file or `--extension`, all hooks that are in force here are checked.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Load every hook file and extension below this folder, each by itself, and report which of them load. Their code
    /// runs.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["files", "extensions"])]
    pub(crate) corpus: Option<PathBuf>,

    /// A pi extension to load and check: a file, its folder, or a folder of extensions. May be repeated.
    #[arg(short = 'e', long = "extension", value_name = "PATH")]
    pub(crate) extensions: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) load: DeadlineArgs,

    #[command(flatten)]
    pub(crate) place: PlaceArgs,

    #[command(flatten)]
    pub(crate) config: ConfigArgs,

    /// Print a single JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

impl CheckArgs {
    /// Returns the options that load all hooks that are in force here.
    pub(crate) fn options(&self) -> HookOptions {
        HookOptions {
            place: self.place.options(),
            config_dir: self.config.config_dir.clone(),
            deadline: self.load.deadline(),
            ..HookOptions::default()
        }
    }
}

/// Tools that an agent has only if there are other agents to work with.
const FOR_AGENTS: &[&str] = &[
    "transfer_task",
    "run_background_agent",
    "list_background_agents",
    "view_background_agent",
    "stop_background_agent",
];

#[derive(Serialize)]
struct CheckReport<'a> {
    ok: bool,
    hooks: usize,
    events: usize,
    /// The errors and warnings of hook files.
    problems: Vec<&'a Problem>,
    /// The sources that cannot be loaded.
    broken: &'a [BrokenSource],
    /// The sources of the project that cannot be loaded and are not approved.
    untrusted: &'a [BrokenSource],
    /// Warnings about loaded hooks, such as a matcher that matches no tool.
    warnings: &'a [String],
    /// Events that have hooks, and that neither `tenterhook run` nor `tenterhook gateway run` fires.
    never_fired: Vec<&'static str>,
    /// The files that were not loaded because they are not approved.
    unchecked: Vec<Cow<'a, str>>,
    /// What the rules of hooks cover.
    coverage: Vec<HookCoverage>,
}

/// What the rules of a hook cover, and what they cannot see.
#[derive(Serialize)]
struct HookCoverage {
    hook: String,
    covers: Vec<String>,
}

impl HookCoverage {
    /// Returns the coverage of all hooks that have one.
    fn of(loaded: &Loaded) -> Vec<Self> {
        let specs = loaded.specs.iter();
        let coverage = specs.map(|spec| Self {
            hook: spec.id.to_string(),
            covers: spec.handling.coverage(),
        });
        coverage.filter(|hook| !hook.covers.is_empty()).collect()
    }

    /// Prints the coverage of all hooks that have one.
    fn show(loaded: &Loaded) {
        for hook in Self::of(loaded) {
            output::line(escape_line(&hook.hook));
            for line in &hook.covers {
                output::line(format_args!("  {}", escape_line(line)));
            }
        }
    }
}

/// The result of loading the hooks to check.
struct Checked {
    loaded: Loaded,
    broken: Vec<BrokenSource>,
    /// The sources of the project that cannot be loaded and are not approved.
    unapproved: Vec<BrokenSource>,
    /// The files that were checked, for the text output.
    files: Vec<PathBuf>,
    /// The tools of scripts and extensions.
    tools: Vec<String>,
    /// The files that were not loaded because they are not approved.
    unchecked: Vec<PathBuf>,
    /// Members of pi's interfaces that extensions use, and that have no effect or throw.
    refused: Vec<String>,
}

pub(crate) async fn check(args: CheckArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    if let Some(folder) = &args.corpus {
        return corpus(folder, &args, interrupts).await;
    }
    let checked = if checks_everything(&args)? {
        everything(&args, interrupts).await?
    } else {
        named(&args, interrupts).await?
    };
    show(&args, checked)
}

/// Returns whether everything that is in force here is to be checked: nothing is named, or only this directory.
fn checks_everything(args: &CheckArgs) -> Result<bool, CliError> {
    let here = fs::canonicalize(current_dir()?).ok();
    let is_here = |path: &Path| here.is_some() && fs::canonicalize(path).ok() == here;
    let named = args.files.iter().find(|file| file.is_dir());
    match (args.files.as_slice(), named) {
        ([], _) => Ok(args.extensions.is_empty()),
        ([only], Some(_)) if args.extensions.is_empty() && is_here(only) => Ok(true),
        (_, None) => Ok(false),
        (_, Some(folder)) => {
            let folder = escape_line(&folder.display().to_string());
            let message = format!("`{folder}` is a folder, expected a hook file or a script");
            Err(CliError::new(Exit::Usage, message).hint(format!(
                "to check all hooks that are in force there, run `cd '{folder}' && tenterhook check`"
            )))
        }
    }
}

/// Reports which files and extensions below a folder load.
async fn corpus(
    folder: &Path,
    args: &CheckArgs,
    interrupts: &Interrupts,
) -> Result<Exit, CliError> {
    let options = hooks::load_options(false, hooks::services(args.config.config_dir.as_deref())?.0);
    let loading = load_corpus(folder, &options, args.load.deadline());
    let loaded = interrupts.token().run_until_cancelled(loading).await;
    let loaded = loaded.ok_or_else(|| CliError::new(Exit::Interrupted, "interrupted"))?;
    let corpus = loaded.map_err(|error| {
        let folder = escape_line(&folder.display().to_string());
        CliError::new(Exit::Config, format!("cannot search `{folder}`")).cause(&error)
    })?;
    if args.json {
        output::json(&corpus);
    } else {
        for entry in &corpus.entries {
            output::line(escape_line(&entry.to_string()));
        }
        output::line(format_args!("{} of {} load.", corpus.loads, corpus.total));
    }
    let all_load = corpus.loads == corpus.total;
    Ok(if all_load { Exit::Done } else { Exit::Config })
}

/// Checks everything that is in force in this directory.
async fn everything(args: &CheckArgs, interrupts: &Interrupts) -> Result<Checked, CliError> {
    let start = current_dir()?;
    let (options, token) = (args.options(), interrupts.token());
    let services = hooks::services(options.config_dir.as_deref())?.0;
    let hooks = hooks::load_quietly(&options, &start, services, Trust::Approved, &token).await?;
    hooks.warn_of_disabled();
    approval::warn_of_diverged(&hooks.loaded.diverged);
    approval::warn_of_withheld(&hooks.loaded.project_hooks, false);
    warn_of_switched_off(interrupts).await?;
    let of_folders = hooks.found.iter().filter(|file| file.state.is_in_force());
    let files = hooks.loaded.files.iter().map(|file| file.path.clone());
    let unchecked = hooks.found.iter().filter(|file| file.needs_approval());
    let refused = refused_members::of(&hooks.found, &token).await?;
    Ok(Checked {
        unchecked: unchecked.map(|file| file.path.clone()).collect(),
        files: files
            .chain(of_folders.map(|file| file.path.clone()))
            .collect(),
        tools: hooks.extras.tool_names(),
        broken: hooks.broken,
        unapproved: hooks.untrusted,
        loaded: hooks.loaded,
        refused,
    })
}

/// Checks the files and extensions of the command line, and the hook files of the user and the machine.
async fn named(args: &CheckArgs, interrupts: &Interrupts) -> Result<Checked, CliError> {
    let search = FolderSearch::of_folders([])
        .lenient(true)
        .deadline(args.load.deadline())
        .packages(&pi::FOLDER, args.extensions.iter().cloned());
    let (scripts, files): (Vec<PathBuf>, Vec<PathBuf>) =
        (args.files.iter().cloned()).partition(|file| is_script_or_program(file));
    let search = scripts
        .iter()
        .fold(search, |search, file| search.file(file));
    let token = interrupts.token();
    let found = token.run_until_cancelled(search.discover()).await;
    let found = found.ok_or_else(|| CliError::new(Exit::Interrupted, "interrupted"))??;
    for warning in &found.warnings {
        warn(escape_line(warning));
    }
    let config_dir = args.config.config_dir.clone();
    let read = move || {
        let options = hooks::load_options(true, hooks::services(config_dir.as_deref())?.0);
        let layers = config_dir::layers(config_dir.as_deref(), None)?;
        let loaded = hooks::load_named(&files, &layers, &options)?;
        Ok((loaded, layers.hook_files(&options.trust)))
    };
    let (mut loaded, own) = run_blocking(&interrupts.token(), read).await?;
    loaded.specs.extend(found.specs);
    let mut broken = std::mem::take(&mut loaded.broken);
    broken.extend(found.broken);
    let own = own.into_iter().map(|(file, _)| file);
    let named = args.files.iter().chain(&args.extensions).cloned();
    let refused = refused_members::of(&found.files, &token).await?;
    let scripts = found.scripts.iter().flat_map(|script| &script.tools);
    Ok(Checked {
        tools: scripts.map(|tool| tool.name.clone()).collect(),
        files: own.chain(named).collect(),
        unchecked: Vec::new(),
        broken,
        unapproved: Vec::new(),
        loaded,
        refused,
    })
}

/// Returns what may be a mistake although the files are valid. `tools` are the tools of scripts.
fn warnings(loaded: &Loaded, tools: &[String]) -> Vec<String> {
    let standard = Toolbox::standard();
    let others = FOR_AGENTS.iter().copied();
    let own: Vec<&str> = standard
        .names()
        .chain(others)
        .chain(tools.iter().map(String::as_str))
        .collect();
    let unmatched = unmatched_hooks(&loaded.specs, &own);
    let mut warnings: Vec<String> = unmatched.iter().map(ToString::to_string).collect();
    warnings.extend(misspelt_agents(&loaded.specs));
    let empty = loaded.files_without_hooks();
    warnings.extend(empty.map(|file| format!("`{}` has no hooks", file.display())));
    warnings
}

fn show(args: &CheckArgs, checked: Checked) -> Result<Exit, CliError> {
    let Checked {
        loaded,
        broken,
        unapproved,
        files,
        tools,
        unchecked,
        refused,
    } = checked;
    let (hooks, events) = (loaded.specs.len(), events(&loaded));
    let never_fired = unfired_events::never_fired(&loaded);
    let mut warnings = warnings(&loaded, &tools);
    warnings.extend(refused);
    if args.json {
        let all_broken = broken.iter().chain(&unapproved);
        let of_broken = all_broken.flat_map(|source| &source.problems);
        let is_ok = broken.is_empty() && unapproved.is_empty();
        output::json(&CheckReport {
            ok: is_ok,
            hooks,
            events,
            problems: loaded.warnings.iter().chain(of_broken).collect(),
            broken: &broken,
            untrusted: &unapproved,
            warnings: &warnings,
            never_fired,
            unchecked: unchecked
                .iter()
                .map(|file| file.to_string_lossy())
                .collect(),
            coverage: HookCoverage::of(&loaded),
        });
        return Ok(if is_ok { Exit::Done } else { Exit::Config });
    }
    show_warnings(&loaded.warnings);
    for warning in &warnings {
        warn(escape_line(warning));
    }
    for event in &never_fired {
        warn(format_args!(
            "Tenterhook never fires `{event}`; its hooks run only in a program that does"
        ));
    }
    refuse_broken(args, broken, &unapproved)?;
    let files = shown_files(&files);
    HookCoverage::show(&loaded);
    let (hooks, events) = (count(hooks, "hook"), count(events, "event"));
    let verdict = match loaded.warnings.len() + warnings.len() + never_fired.len() {
        0 => "no problems".to_owned(),
        warnings => count(warnings, "warning"),
    };
    let unapproved = approval::unapproved(&loaded.project_hooks).len();
    let not_approved = match unapproved.saturating_sub(unchecked.len()) {
        0 => String::new(),
        1 => "; 1 hook is not in force, because it is not approved".to_owned(),
        hooks => format!("; {hooks} hooks are not in force, because they are not approved"),
    };
    let unchecked = match unchecked.len() {
        0 => String::new(),
        1 => "; 1 file was not checked, because it is not approved".to_owned(),
        files => format!("; {files} files were not checked, because they are not approved"),
    };
    output::line(format_args!(
        "{} {files}: {hooks} for {events}, {verdict}{unchecked}{not_approved}.",
        styled(style::GOOD, "ok:"),
    ));
    Ok(Exit::Done)
}

/// Fails if a source cannot be loaded, also if it is not approved.
fn refuse_broken(
    args: &CheckArgs,
    broken: Vec<BrokenSource>,
    unapproved: &[BrokenSource],
) -> Result<(), CliError> {
    for source in unapproved {
        show_warnings(&source.problems);
        warn(format_args!(
            "the current version of `{}` is not approved, so it is not in force",
            escape_line(&source.path.display().to_string())
        ));
    }
    if broken.is_empty() && unapproved.is_empty() {
        return Ok(());
    }
    if broken.is_empty() {
        let message = format!("{} cannot be loaded", count(unapproved.len(), "source"));
        let hint = "repair it, then approve its hooks with `tenterhook trust`";
        return Err(CliError::new(Exit::Config, message).hint(hint));
    }
    Err(if args.files.is_empty() && args.extensions.is_empty() {
        CliError::broken(broken)
    } else {
        CliError::from(LoadError::from(broken))
    })
}

fn shown_files(files: &[PathBuf]) -> String {
    if files.is_empty() {
        return "no hook files are in force here".to_owned();
    }
    let files = files.iter();
    let shown = files.map(|file| format!("`{}`", escape_line(&file.display().to_string())));
    shown.collect::<Vec<_>>().join(", ")
}

fn events(loaded: &Loaded) -> usize {
    loaded
        .specs
        .iter()
        .filter_map(|spec| spec.event.as_ref())
        .collect::<BTreeSet<_>>()
        .len()
}
