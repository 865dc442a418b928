//! `tenterhook check`: every problem of hook files at once.

use std::collections::BTreeSet;

use serde::Serialize;
use tenterhook::HookSpec;
use tenterhook_config::{Discovery, Loaded, Problem};

use crate::args::CheckArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::{self, Interrupts};
use crate::output::{self, style, styled};
use crate::safe::safe_line;
use crate::{config_dir, fired, hooks};

#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    hooks: usize,
    events: usize,
    problems: &'a [Problem],
    /// Events that hooks wait for and `tenterhook run` never fires.
    never_fired: Vec<&'static str>,
}

pub(crate) async fn check(args: CheckArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let extensions = if args.extensions.is_empty() {
        Vec::new()
    } else {
        let search = Discovery::of_folders([]).extensions(args.extensions.clone());
        let token = interrupts.token();
        let found = token.run_until_cancelled(search.discover()).await;
        let found = found.ok_or_else(|| CliError::new(Exit::Interrupted, "interrupted"))?;
        // An extension that was named and is none is a mistake, not something to be passed over.
        if let Some(problem) = found.unreadable.iter().chain(&found.warnings).next() {
            return Err(CliError::new(Exit::Config, safe_line(problem)));
        }
        found.specs
    };
    interrupt::blocking(interrupts, move || check_files(&args, extensions)).await
}

fn check_files(args: &CheckArgs, extensions: Vec<HookSpec>) -> Result<Exit, CliError> {
    let options = hooks::options(false, hooks::services(&args.config)?.0);
    let layers = config_dir::layers(&args.config, None)?;
    let mut loaded = match hooks::load_named(&args.files, &layers, &options) {
        Ok(loaded) => loaded,
        Err(CliError {
            load: Some(load), ..
        }) if args.json => {
            output::json(&Report {
                ok: false,
                hooks: 0,
                events: 0,
                problems: &load.problems,
                never_fired: Vec::new(),
            });
            return Ok(Exit::Config);
        }
        Err(error) => return Err(error),
    };
    loaded.specs.extend(extensions);
    let (hooks, events) = (loaded.specs.len(), events(&loaded));
    let never_fired = fired::never_fired(&loaded);
    if args.json {
        output::json(&Report {
            ok: true,
            hooks,
            events,
            problems: &loaded.warnings,
            never_fired,
        });
        return Ok(Exit::Done);
    }
    hooks::show_warnings(&loaded.warnings);
    for event in &never_fired {
        hooks::warn(format_args!(
            "`tenterhook run` never fires `{event}`; its hooks wait for a program that does"
        ));
    }
    let own = layers.hook_files().unwrap_or_default();
    let own = own.iter().map(|(file, _)| file);
    let files: Vec<String> = own
        .chain(&args.files)
        .chain(&args.extensions)
        .map(|file| format!("`{}`", file.display()))
        .collect();
    let (hooks, events) = (count(hooks, "hook"), count(events, "event"));
    let verdict = match loaded.warnings.len() + never_fired.len() {
        0 => "no problems".to_owned(),
        warnings => count(warnings, "warning"),
    };
    output::line(format_args!(
        "{} {}: {hooks} for {events}, {verdict}.",
        styled(style::GOOD, "ok:"),
        files.join(", ")
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
