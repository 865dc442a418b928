//! `tenterhook trust`: shows the project's hooks, approves them, and revokes approvals.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;
use tenterhook_discovery::FoundFile;
use tenterhook_engine::Layer;
use tenterhook_hookfile::BrokenSource;
use tenterhook_systems::SYSTEMS;
use tenterhook_trust::{ApprovalItem, Approvals, DivergedHook, ProjectHook, Trust, TrustState};

use crate::ancestry;
use crate::hook_args::{ConfigArgs, PlaceArgs};
use crate::notice::unanswered;
use clap::Parser;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::approval;
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::folder_guards::misspelt_tools;
use tenterhook_setup::hook_options::HookOptions;
use tenterhook_setup::hooks::{self, Hooks};
use tenterhook_setup::warning::{hint, show_warnings, warn};
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::line_source::LineSource;
use tenterhook_terminal::output;
use tenterhook_terminal::output::plural::count;
use tenterhook_terminal::trust_report::{self, ShownContents};

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook trust [OPTIONS] [HOOK]...")]
pub(crate) struct TrustArgs {
    /// The names of the hooks to approve without a question. Without names, you are asked about each hook.
    #[arg(value_name = "HOOK")]
    pub(crate) names: Vec<String>,

    #[command(flatten)]
    pub(crate) mode: TrustMode,

    /// Accept the approvals that were given in another folder or repository, so that their hooks run here instead of
    /// denying.
    #[arg(long, conflicts_with_all = ["show", "all", "revoke", "names"])]
    pub(crate) accept: bool,

    #[command(flatten)]
    pub(crate) place: PlaceArgs,

    #[command(flatten)]
    pub(crate) config: ConfigArgs,

    /// Print a single JSON object. To approve hooks, add `--all` or name them.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to do with the project's hooks instead of asking about each.
#[derive(Debug, Clone, Copy, Parser)]
pub(crate) struct TrustMode {
    /// Show the project's hooks and approve nothing.
    #[arg(long, conflicts_with_all = ["all", "revoke"])]
    pub(crate) show: bool,

    /// Approve every hook of the project without a question.
    #[arg(long, conflicts_with_all = ["revoke", "names"])]
    pub(crate) all: bool,

    /// Revoke the approvals of the named hooks, or all approvals of this project.
    #[arg(long)]
    pub(crate) revoke: bool,
}

impl TrustArgs {
    /// Returns the options for loading the hooks to show: the hooks of the layers only.
    pub(crate) fn options(&self) -> HookOptions {
        HookOptions {
            place: self.place.options(),
            config_dir: self.config.config_dir.clone(),
            ..HookOptions::default()
        }
    }
}

pub(crate) async fn trust(args: TrustArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    if args.mode.revoke {
        ancestry::require_user("revoke approvals")?;
    } else if !args.mode.show {
        ancestry::require_user("approve hooks")?;
    }
    let start = std::env::current_dir().map_err(|error| {
        CliError::new(Exit::Failed, "cannot find the working directory").cause(&error)
    })?;
    let options = args.options();
    let (services, _) = hooks::services(options.config_dir.as_deref())?;
    let token = interrupts.token();
    let hooks = hooks::load_quietly(&options, &start, services, Trust::Review, &token).await?;
    // What cannot be loaded cannot be approved either. An approval of the current version solves the
    // problems of an older approved one.
    let unusable = hooks.untrusted.iter().chain(&hooks.broken);
    for source in unusable.filter(|source| !source.is_outdated) {
        show_warnings(&source.problems);
    }
    let approvals = approval::open(&start).await?;
    if args.mode.revoke {
        return revoke(&args, approvals, &hooks, &start);
    }
    if args.accept {
        return accept(&args, approvals, &hooks.loaded.diverged).await;
    }
    let all = wanted(&hooks, &args.names)?;
    if args.mode.show {
        show_all(&all, &approvals, &hooks, args.json);
        return unusable_sources(&hooks).map_or(Ok(Exit::Done), Err);
    }
    check_unambiguous(&all, &args.names, &hooks.found)?;
    let exit = approve(&args, approvals, &all, &hooks, &start, interrupts).await?;
    match unusable_sources(&hooks) {
        Some(error) if args.names.is_empty() => Err(error),
        _ => Ok(exit),
    }
}

/// Returns an error if the project has sources that cannot be approved, or approved ones that cannot be loaded. Their
/// problems were shown.
fn unusable_sources(hooks: &Hooks) -> Option<CliError> {
    let is_approved =
        |source: &&BrokenSource| source.layer == Layer::Project && !source.is_outdated;
    let approved = hooks.broken.iter().filter(is_approved).count();
    let message = match (hooks.untrusted.len(), approved) {
        (0, 0) => return None,
        (0, approved) => format!(
            "{} of this project cannot be loaded, so `run` and `fire` refuse to start",
            count(approved, "approved source")
        ),
        (unapproved, _) => format!(
            "{} of this project cannot be approved",
            count(unapproved, "source")
        ),
    };
    let hint = "resolve the problems above, then run `tenterhook trust` again";
    Some(CliError::new(Exit::Config, message).hint(hint))
}

/// Returns whether `name` means this hook: its bare name, its name as it is shown or listed, or its path.
fn is_called(item: &ApprovalItem, name: &str, found: &[FoundFile]) -> bool {
    is_called_so((&item.project, &item.source, &item.name), name, found)
}

/// Returns whether `name` means a hook of a project. `own` is the project, the source relative to it, and the hook's
/// name.
fn is_called_so(own: (&Path, &Path, &str), name: &str, found: &[FoundFile]) -> bool {
    let (project, source, own) = own;
    let path = source.join(own);
    let listed = listed_name(&project.join(&path), found);
    name == own
        || listed == Some(name)
        || name == escape_line(&format!("{own} of {}", source.display()))
        || Path::new(name) == path
        || Path::new(name) == project.join(path)
}

/// Returns the name of a file of a folder as `list` prints it, such as `org/repo/name` for a plugin's hook.
fn listed_name<'a>(path: &Path, found: &'a [FoundFile]) -> Option<&'a str> {
    let file = found.iter().find(|file| file.path == path)?;
    Some(&file.name)
}

/// Returns the named hooks, or all hooks if no names were given.
fn wanted<'a>(hooks: &'a Hooks, names: &[String]) -> Result<Vec<&'a ProjectHook>, CliError> {
    let (brought, found) = (&hooks.loaded.project_hooks, &hooks.found);
    let is_called = |item: &ApprovalItem, name: &str| is_called(item, name, found);
    if let Some(unknown) = names
        .iter()
        .find(|name| !brought.iter().any(|brought| is_called(&brought.item, name)))
    {
        let known: Vec<String> = brought
            .iter()
            .map(|brought| &brought.item)
            .map(|item| {
                let path = item.project.join(&item.source).join(&item.name);
                let name = listed_name(&path, found).unwrap_or(&item.name);
                format!("`{}`", escape_line(name))
            })
            .collect();
        let message = format!("this project has no hook `{unknown}`");
        let hint = if Path::new(unknown).is_file() {
            "this file is in no folder for hooks; move a hook file to `.tenterhook/hooks.yaml`, or a script into \
             `.tenterhook/hooks`"
                .to_owned()
        } else if known.is_empty() {
            let marks = SYSTEMS.iter().flat_map(|system| system.project_marks);
            let marks: Vec<String> = marks.map(|mark| format!("`{mark}`")).collect();
            format!(
                "this project has no hooks; Tenterhook looks for them in {}",
                marks.join(", ")
            )
        } else {
            format!("available: {}", known.join(", "))
        };
        return Err(CliError::new(Exit::Usage, message).hint(hint));
    }
    let is_wanted = |brought: &&ProjectHook| {
        let mut names = names.iter();
        names.len() == 0 || names.any(|name| is_called(&brought.item, name))
    };
    Ok(brought.iter().filter(is_wanted).collect())
}

/// Refuses to approve by a name that several hooks have, because the user may know of only one of them.
fn check_unambiguous(
    wanted: &[&ProjectHook],
    names: &[String],
    found: &[FoundFile],
) -> Result<(), CliError> {
    for name in names {
        let called: Vec<&ApprovalItem> = wanted
            .iter()
            .map(|brought| &brought.item)
            .filter(|item| is_called(item, name, found))
            .collect();
        if called.len() > 1 {
            let paths: Vec<String> = called
                .iter()
                .map(|item| item.project.join(&item.source).join(&item.name))
                .map(|path| format!("`{}`", escape_line(&path.display().to_string())))
                .collect();
            let message = format!("`{name}` is the name of {} hooks", called.len());
            return Err(CliError::new(Exit::Usage, message)
                .hint(format!("give the path of one: {}", paths.join(", "))));
        }
    }
    Ok(())
}

fn show_all(all: &[&ProjectHook], approvals: &Approvals, hooks: &Hooks, is_json: bool) {
    let diverged = &hooks.loaded.diverged;
    if is_json {
        let hooks: Vec<_> = all
            .iter()
            .map(|brought| trust_report::json(brought, approvals))
            .collect();
        output::json(&json!({ "hooks": hooks, "diverged": diverged }));
        return;
    }
    if all.is_empty() && diverged.is_empty() {
        output::line(nothing_brought(diverged));
        return;
    }
    let mut shown = ShownContents::new();
    for brought in all {
        trust_report::show(brought, approvals, &hooks.found, &mut shown);
    }
    let is_elsewhere = |hook: &&DivergedHook| {
        let item = |brought: &ProjectHook| {
            let item = &brought.item;
            item.source == hook.approved.source && item.name == hook.approved.name
        };
        !hooks.loaded.project_hooks.iter().any(item)
    };
    let missing: Vec<&DivergedHook> = diverged.iter().filter(is_elsewhere).collect();
    for hook in &missing {
        trust_report::show_missing(hook);
    }
    let of = |state: TrustState| all.iter().filter(|brought| brought.state == state).count();
    let others = [
        (of(TrustState::Displaced), "displaced"),
        (missing.len(), "approved but missing"),
    ];
    let others = others.iter().filter(|(number, _)| *number > 0);
    let others: Vec<String> = others
        .map(|(number, what)| format!(", {number} {what}"))
        .collect();
    let others = others.concat();
    output::line(format_args!(
        "{} of this project: {} trusted, {} untrusted, {} changed{others}.",
        count(all.len(), "hook"),
        of(TrustState::Trusted),
        of(TrustState::Untrusted),
        of(TrustState::Changed)
    ));
    if of(TrustState::Trusted) < all.len() {
        hint(
            "approve them one by one with `tenterhook trust`, or all with `tenterhook trust --all`",
        );
    }
}

async fn approve(
    args: &TrustArgs,
    mut approvals: Approvals,
    all: &[&ProjectHook],
    hooks: &Hooks,
    start: &Path,
    interrupts: &Interrupts,
) -> Result<Exit, CliError> {
    let (trusted, open): (Vec<&ProjectHook>, Vec<&ProjectHook>) = all
        .iter()
        .copied()
        .partition(|brought| brought.state == TrustState::Trusted);
    // An approval that an older version wrote may lack what it needs to stay in force without the project's files.
    let trusted: Vec<ApprovalItem> = trusted.iter().map(|it| it.item.clone()).collect();
    approvals.identify(&trusted).await;
    let complete = move || {
        let completed = approvals.approve(&trusted);
        completed.map_err(|error| approval::refused(&error))?;
        Ok(approvals)
    };
    let mut approvals = run_blocking(&interrupts.token(), complete).await?;
    if open.is_empty() {
        output::line(match all.len() {
            // The error at the end says what to do.
            0 if !hooks.untrusted.is_empty() => return Ok(Exit::Done),
            0 => nothing_brought(&hooks.loaded.diverged),
            _ => format!("Nothing to approve: {} trusted.", count(all.len(), "hook")),
        });
        return Ok(Exit::Done);
    }
    let mut approved: Vec<ApprovalItem> = Vec::new();
    let answers = LineSource::plain();
    let mut shown = ShownContents::new();
    for brought in &open {
        if !args.json {
            trust_report::show(brought, &approvals, &hooks.found, &mut shown);
        }
        if args.mode.all
            || !args.names.is_empty()
            || ask(&brought.item, &answers, interrupts).await?
        {
            approved.push(brought.item.clone());
        }
    }
    let items = approved.clone();
    approvals.identify(&items).await;
    let write = move || {
        let written = approvals.approve(&items);
        written.map_err(|error| approval::refused(&error))
    };
    run_blocking(&interrupts.token(), write).await?;
    let broken = load_approved(args, &approved, start, interrupts).await?;
    if args.json {
        let names: Vec<&str> = approved.iter().map(|item| item.name.as_str()).collect();
        let left = open.len() - approved.len();
        output::json(&json!({ "approved": names, "left": left, "broken": broken }));
    } else {
        let rest = match open.len() - approved.len() {
            0 => String::new(),
            left => format!("; {left} not approved"),
        };
        output::line(format_args!(
            "Approved {}{rest}.",
            count(approved.len(), "hook")
        ));
    }
    for source in &broken {
        show_warnings(&source.problems);
        warn(format_args!(
            "`{}` is approved but cannot be loaded, so `run` and `fire` refuse to start",
            escape_line(&source.path.display().to_string())
        ));
    }
    if broken.is_empty() {
        return Ok(Exit::Done);
    }
    hint("fix the file, then approve it again with `tenterhook trust`");
    Ok(Exit::Config)
}

/// Loads the hooks with the new approvals, warns of those that never run, and returns the approved sources that cannot
/// be loaded. Nothing runs a script before it is approved, so its mistakes are only found now.
async fn load_approved(
    args: &TrustArgs,
    approved: &[ApprovalItem],
    start: &Path,
    interrupts: &Interrupts,
) -> Result<Vec<BrokenSource>, CliError> {
    if approved.is_empty() {
        return Ok(Vec::new());
    }
    let (options, token) = (args.options(), interrupts.token());
    let (services, _) = hooks::services(options.config_dir.as_deref())?;
    let hooks = hooks::load_quietly(&options, start, services, Trust::Approved, &token).await?;
    for line in misspelt_tools(&hooks.loaded.specs) {
        warn(line);
    }
    let is_approved = |source: &BrokenSource| approved.iter().any(|it| it.is_from(&source.path));
    Ok(hooks.broken.into_iter().filter(is_approved).collect())
}

/// Describes a project without hooks, and the approvals that exist for it nevertheless.
fn nothing_brought(diverged: &[DivergedHook]) -> String {
    let nothing = "This project has no hooks";
    let is_displaced = diverged.iter().any(DivergedHook::is_displaced);
    match (diverged.len(), is_displaced) {
        (0, _) => format!("{nothing}. To write a first guard, run `tenterhook init`."),
        (number, true) => format!(
            "{nothing} to approve. Found {} of another folder or repository: accept with `tenterhook trust --accept`, \
             or revoke with `tenterhook trust --revoke`.",
            count(number, "approval")
        ),
        (number, false) => format!(
            "{nothing} to approve. Approved before and still in force: {}. To end that, run \
             `tenterhook trust --revoke`.",
            count(number, "hook")
        ),
    }
}

async fn ask(
    item: &ApprovalItem,
    answers: &LineSource,
    interrupts: &Interrupts,
) -> Result<bool, CliError> {
    let question = format!("Approve `{}`? [y/N] ", item.shown_name());
    let unchanged = "nothing was approved";
    let answer = answers.confirm(&question, interrupts).await;
    let answer = answer.map_err(|error| unanswered(&error, unchanged))?;
    answer.ok_or_else(|| {
        if let LineSource::Stdin(_) = answers {
            output::line("");
        }
        CliError::new(
            Exit::Usage,
            "stdin ended before an answer; nothing was approved",
        )
        .hint("approve all hooks with `--all`, or name the hooks to approve")
    })
}

/// Binds approvals that were given in another folder or repository to this one.
async fn accept(
    args: &TrustArgs,
    mut approvals: Approvals,
    diverged: &[DivergedHook],
) -> Result<Exit, CliError> {
    let displaced = diverged.iter().filter(|hook| hook.is_displaced());
    let groups: BTreeSet<(&Path, &Path)> = displaced
        .map(|hook| (hook.project.as_path(), hook.here()))
        .collect();
    if groups.is_empty() {
        return Err(CliError::new(
            Exit::Usage,
            "no approval to accept: none was given in another folder or repository",
        )
        .hint("list the approved hooks with `tenterhook trust --show`"));
    }
    let mut accepted = 0;
    for (project, here) in groups {
        let moved = approvals.accept(project, here).await;
        accepted += moved.map_err(|error| approval::refused(&error))?;
    }
    if args.json {
        output::json(&json!({ "accepted": accepted }));
    } else {
        output::line(format_args!(
            "Accepted {} here.",
            count(accepted, "approval")
        ));
    }
    Ok(Exit::Done)
}

fn revoke(
    args: &TrustArgs,
    mut approvals: Approvals,
    hooks: &Hooks,
    start: &Path,
) -> Result<Exit, CliError> {
    let loaded = &hooks.loaded;
    let brought = loaded.project_hooks.iter();
    let mut projects: Vec<_> = brought
        .map(|brought| brought.item.project.clone())
        .collect();
    // An approved hook may have left the project since, or be in another folder.
    projects.extend(loaded.diverged.iter().map(|hook| hook.project.clone()));
    projects.extend(start.ancestors().map(Path::to_owned));
    projects.sort();
    projects.dedup();
    let approved = projects.iter().flat_map(|dir| approvals.approved(dir));
    let known: Vec<String> = approved.map(|it| escape_line(&it.name)).collect();
    let mut revoked = 0;
    for project in projects {
        revoked += approvals
            .revoke(&project, |approved| {
                let mut names = args.names.iter();
                let is_called = |name: &String| {
                    let own = (&*project, &*approved.source, &*approved.name);
                    is_called_so(own, name, &hooks.found)
                };
                names.len() == 0 || names.any(is_called)
            })
            .map_err(|error| approval::refused(&error))?;
    }
    if revoked == 0 && !args.names.is_empty() {
        let message = format!(
            "no approved hook has the name `{}`",
            args.names.join("` or `")
        );
        let hint = match known.as_slice() {
            [] => "no hooks are approved here".to_owned(),
            known => format!("approved here: `{}`", known.join("`, `")),
        };
        return Err(CliError::new(Exit::Usage, escape_line(&message)).hint(hint));
    }
    if args.json {
        output::json(&json!({ "revoked": revoked }));
    } else {
        output::line(format_args!("Revoked {}.", count(revoked, "approval")));
    }
    Ok(Exit::Done)
}
