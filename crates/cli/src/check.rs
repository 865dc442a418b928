//! `tenterhook check`: every problem of hook files at once.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;
use tenterhook_config::{BrokenSource, Discovery, LoadError, Loaded, Problem};

use crate::args::{CheckArgs, LineArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::{self, Interrupts};
use crate::output::{self, style, styled};
use crate::safe::safe_line;
use crate::{config_dir, fired, hooks, matched};

#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    hooks: usize,
    events: usize,
    /// What is wrong with hook files, and what they should be checked for.
    problems: Vec<&'a Problem>,
    /// The sources that cannot be loaded.
    broken: &'a [BrokenSource],
    /// What else deserves a look.
    warnings: &'a [String],
    /// Events that hooks wait for and `tenterhook run` never fires.
    never_fired: Vec<&'static str>,
}

/// What was checked.
struct Checked {
    loaded: Loaded,
    broken: Vec<BrokenSource>,
    /// The files that were looked at, for people.
    files: Vec<PathBuf>,
    /// The tools of scripts and extensions.
    tools: Vec<String>,
}

pub(crate) async fn check(args: CheckArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let checked = if args.files.is_empty() && args.extensions.is_empty() {
        everything(&args, interrupts).await?
    } else {
        named(&args, interrupts).await?
    };
    show(&args, checked)
}

/// Checks everything that is in force in this directory.
async fn everything(args: &CheckArgs, interrupts: &Interrupts) -> Result<Checked, CliError> {
    let start = std::env::current_dir().map_err(|error| {
        CliError::new(Exit::Failed, "cannot find the working directory").cause(&error)
    })?;
    let (hook_args, lines) = (args.hook_args(), LineArgs::default());
    let services = hooks::services(&args.config)?.0;
    let hooks = hooks::load_and_warn(&hook_args, &lines, &start, services, interrupts).await?;
    let of_folders = hooks.found.iter().filter(|file| file.state.is_in_force());
    let files = hooks.loaded.files.iter().map(|file| file.path.clone());
    Ok(Checked {
        files: files
            .chain(of_folders.map(|file| file.path.clone()))
            .collect(),
        tools: hooks.extras.tool_names(),
        broken: hooks.broken,
        loaded: Loaded {
            // They were shown already.
            warnings: if args.json {
                hooks.loaded.warnings
            } else {
                Vec::new()
            },
            ..hooks.loaded
        },
    })
}

/// Checks what the call names, and the hook files of the user and the machine.
async fn named(args: &CheckArgs, interrupts: &Interrupts) -> Result<Checked, CliError> {
    let search = Discovery::of_folders([])
        .lenient(true)
        .deadline(args.load.deadline())
        .extensions(args.extensions.iter().cloned());
    let token = interrupts.token();
    let found = token.run_until_cancelled(search.discover()).await;
    let found = found.ok_or_else(|| CliError::new(Exit::Interrupted, "interrupted"))??;
    for warning in &found.warnings {
        hooks::warn(safe_line(warning));
    }
    let (files, config) = (args.files.clone(), args.config.clone());
    let read = move || {
        let options = hooks::options(true, hooks::services(&config)?.0);
        let layers = config_dir::layers(&config, None)?;
        let loaded = hooks::load_named(&files, &layers, &options)?;
        Ok((loaded, layers.hook_files(&options.trust)))
    };
    let (mut loaded, own) = interrupt::blocking(interrupts, read).await?;
    loaded.specs.extend(found.specs);
    let mut broken = std::mem::take(&mut loaded.broken);
    broken.extend(found.broken);
    let own = own.into_iter().map(|(file, _)| file);
    let named = args.files.iter().chain(&args.extensions).cloned();
    let scripts = found.scripts.iter().flat_map(|script| &script.tools);
    Ok(Checked {
        tools: scripts.map(|tool| tool.name.clone()).collect(),
        files: own.chain(named).collect(),
        broken,
        loaded,
    })
}

fn show(args: &CheckArgs, checked: Checked) -> Result<Exit, CliError> {
    let Checked {
        loaded,
        broken,
        files,
        tools,
    } = checked;
    let (hooks, events) = (loaded.specs.len(), events(&loaded));
    let never_fired = fired::never_fired(&loaded);
    let mut warnings = matched::unmatched(&loaded.specs, &tools);
    warnings.extend(matched::misspelt_agents(&loaded.specs));
    if args.json {
        let of_broken = broken.iter().flat_map(|source| &source.problems);
        output::json(&Report {
            ok: broken.is_empty(),
            hooks,
            events,
            problems: loaded.warnings.iter().chain(of_broken).collect(),
            broken: &broken,
            warnings: &warnings,
            never_fired,
        });
        return Ok(if broken.is_empty() {
            Exit::Done
        } else {
            Exit::Config
        });
    }
    hooks::show_warnings(&loaded.warnings);
    for warning in &warnings {
        hooks::warn(safe_line(warning));
    }
    for event in &never_fired {
        hooks::warn(format_args!(
            "`tenterhook run` never fires `{event}`; its hooks wait for a program that does"
        ));
    }
    if !broken.is_empty() {
        return Err(if args.files.is_empty() && args.extensions.is_empty() {
            CliError::broken(broken)
        } else {
            CliError::from(LoadError::from(broken))
        });
    }
    let files: Vec<String> = files
        .iter()
        .map(|file| format!("`{}`", safe_line(&file.display().to_string())))
        .collect();
    let files = match files.as_slice() {
        [] => "nothing is in force here".to_owned(),
        files => files.join(", "),
    };
    let (hooks, events) = (count(hooks, "hook"), count(events, "event"));
    let verdict = match loaded.warnings.len() + warnings.len() + never_fired.len() {
        0 => "no problems".to_owned(),
        warnings => count(warnings, "warning"),
    };
    output::line(format_args!(
        "{} {files}: {hooks} for {events}, {verdict}.",
        styled(style::GOOD, "ok:"),
    ));
    Ok(Exit::Done)
}

fn events(loaded: &Loaded) -> usize {
    loaded
        .specs
        .iter()
        .filter_map(|spec| spec.event.as_ref())
        .collect::<BTreeSet<_>>()
        .len()
}

/// Returns a number with its noun.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}
