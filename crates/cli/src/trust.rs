//! `tenterhook trust`: look at the hooks of the project, approve them, take approvals back.

mod show;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;
use tenterhook_config::{Approvals, Brought, DivergedHook, Item, Loaded, TrustState};

use crate::answers::Answers;
use crate::approval::{self, name_of};
use crate::args::{LineArgs, TrustArgs};
use crate::below;
use crate::check::count;
use crate::error::CliError;
use crate::exit::Exit;
use crate::hooks::{self, Hooks};
use crate::interrupt::{self, Interrupts};
use crate::output::{self, style, styled};
use crate::safe::safe_line;

pub(crate) async fn trust(args: TrustArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    if args.mode.revoke {
        below::refuse("revoke approvals")?;
    } else if !args.mode.show {
        below::refuse("approve hooks")?;
    }
    let start = std::env::current_dir().map_err(|error| {
        CliError::new(Exit::Failed, "cannot find the working directory").cause(&error)
    })?;
    let hook_args = args.hook_args();
    let (services, _) = hooks::services(&hook_args.config)?;
    let lines = LineArgs::default();
    let hooks = hooks::load_quietly(&hook_args, &lines, &start, services, interrupts).await?;
    // What cannot be loaded cannot be approved either.
    for source in hooks.untrusted.iter().chain(&hooks.broken) {
        hooks::show_warnings(&source.problems);
    }
    let approvals = approval::open(&start).await?;
    if args.mode.revoke {
        return revoke(&args, approvals, &hooks.loaded, &start);
    }
    if args.accept {
        return accept(&args, approvals, &hooks.loaded.diverged).await;
    }
    let all = wanted(&hooks.loaded.brought, &args.names)?;
    if args.mode.show {
        show_all(&all, &approvals, &hooks, args.json);
        return Ok(Exit::Done);
    }
    check_unambiguous(&all, &args.names)?;
    approve(&args, approvals, &all, &hooks, interrupts).await
}

/// Says whether a hook is called so: by its name alone, as it is shown, or by its path.
fn is_called(item: &Item, name: &str) -> bool {
    let path = item.source.join(&item.name);
    name == item.name
        || name == name_of(item)
        || Path::new(name) == path
        || Path::new(name) == item.project.join(path)
}

/// Returns what was named; without names that is everything.
fn wanted<'a>(brought: &'a [Brought], names: &[String]) -> Result<Vec<&'a Brought>, CliError> {
    if let Some(unknown) = names
        .iter()
        .find(|name| !brought.iter().any(|brought| is_called(&brought.item, name)))
    {
        let known: Vec<String> = brought
            .iter()
            .map(|brought| format!("`{}`", safe_line(&brought.item.name)))
            .collect();
        let message = format!("this project brings no hook `{unknown}`");
        let hint = if known.is_empty() {
            "it brings none; hooks are looked for in `.tenterhook`, `.kodelet` and `.operator`"
                .to_owned()
        } else {
            format!("it brings {}", known.join(", "))
        };
        return Err(CliError::new(Exit::Usage, message).hint(hint));
    }
    let is_wanted = |brought: &&Brought| {
        let mut names = names.iter();
        names.len() == 0 || names.any(|name| is_called(&brought.item, name))
    };
    Ok(brought.iter().filter(is_wanted).collect())
}

/// Refuses to approve by a name that several hooks have: whoever says it may know of one only.
fn check_unambiguous(wanted: &[&Brought], names: &[String]) -> Result<(), CliError> {
    for name in names {
        let called: Vec<&Item> = wanted
            .iter()
            .map(|brought| &brought.item)
            .filter(|item| is_called(item, name))
            .collect();
        if called.len() > 1 {
            let paths: Vec<String> = called
                .iter()
                .map(|item| item.project.join(&item.source).join(&item.name))
                .map(|path| format!("`{}`", safe_line(&path.display().to_string())))
                .collect();
            let message = format!("`{name}` is the name of {} hooks", called.len());
            return Err(CliError::new(Exit::Usage, message)
                .hint(format!("name one by its path: {}", paths.join(", "))));
        }
    }
    Ok(())
}

fn show_all(all: &[&Brought], approvals: &Approvals, hooks: &Hooks, is_json: bool) {
    let diverged = &hooks.loaded.diverged;
    if is_json {
        let hooks: Vec<_> = all
            .iter()
            .map(|brought| show::json(brought, approvals))
            .collect();
        output::json(&json!({ "hooks": hooks, "diverged": diverged }));
        return;
    }
    for brought in all {
        show::show(brought, approvals, &hooks.found);
    }
    let is_elsewhere = |hook: &&DivergedHook| {
        let item = |brought: &Brought| {
            let item = &brought.item;
            item.source == hook.approved.source && item.name == hook.approved.name
        };
        !hooks.loaded.brought.iter().any(item)
    };
    let missing: Vec<&DivergedHook> = diverged.iter().filter(is_elsewhere).collect();
    for hook in &missing {
        show::show_missing(hook);
    }
    let of = |state: TrustState| all.iter().filter(|brought| brought.state == state).count();
    let others = [
        (of(TrustState::Displaced), "displaced"),
        (missing.len(), "approved and not there"),
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
    all: &[&Brought],
    hooks: &Hooks,
    interrupts: &Interrupts,
) -> Result<Exit, CliError> {
    let (trusted, open): (Vec<&Brought>, Vec<&Brought>) = all
        .iter()
        .copied()
        .partition(|brought| brought.state == TrustState::Trusted);
    // An approval of an older version gets what it lacks to stay in force without the project's files.
    let trusted: Vec<Item> = trusted.iter().map(|it| it.item.clone()).collect();
    approvals.identify(&trusted).await;
    let complete = move || {
        let completed = approvals.approve(&trusted);
        completed.map_err(|error| approval::refused(&error))?;
        Ok(approvals)
    };
    let mut approvals = interrupt::blocking(interrupts, complete).await?;
    if open.is_empty() {
        output::line(match all.len() {
            0 => "This project brings no hooks.".to_owned(),
            _ => format!("Nothing to approve: {} trusted.", count(all.len(), "hook")),
        });
        return Ok(Exit::Done);
    }
    let mut approved: Vec<Item> = Vec::new();
    let answers = Answers::plain();
    for brought in &open {
        if !args.json {
            show::show(brought, &approvals, &hooks.found);
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
    interrupt::blocking(interrupts, write).await?;
    if args.json {
        let names: Vec<&str> = approved.iter().map(|item| item.name.as_str()).collect();
        output::json(&json!({ "approved": names, "left": open.len() - approved.len() }));
    } else {
        output::line(format_args!(
            "{} {} approved; {} left as it was.",
            styled(style::GOOD, "ok:"),
            count(approved.len(), "hook"),
            open.len() - approved.len()
        ));
    }
    Ok(Exit::Done)
}

async fn ask(item: &Item, answers: &Answers, interrupts: &Interrupts) -> Result<bool, CliError> {
    let question = format!("Approve `{}`? [y/N] ", name_of(item));
    let unchanged = "nothing was approved";
    let answer = answers.confirm(&question, unchanged, interrupts).await?;
    answer.ok_or_else(|| {
        if let Answers::Lines(_) = answers {
            output::line("");
        }
        CliError::new(Exit::Usage, "nobody answers; nothing was approved")
            .hint("approve everything that was shown with `--all`, or name the hooks")
    })
}

/// Binds approvals that were given in another folder or another repository to where the work is.
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
            "no approval here is for another folder or another repository",
        )
        .hint("see what is approved with `tenterhook trust --show`"));
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
    loaded: &Loaded,
    start: &Path,
) -> Result<Exit, CliError> {
    let brought = loaded.brought.iter();
    let mut projects: Vec<_> = brought
        .map(|brought| brought.item.project.clone())
        .collect();
    // What was approved may be gone from the project by now, or be in another folder.
    projects.extend(loaded.diverged.iter().map(|hook| hook.project.clone()));
    projects.extend(start.ancestors().map(Path::to_owned));
    projects.sort();
    projects.dedup();
    let mut revoked = 0;
    for project in projects {
        revoked += approvals
            .revoke(&project, |approved| {
                args.names.is_empty() || args.names.contains(&approved.name)
            })
            .map_err(|error| approval::refused(&error))?;
    }
    if revoked == 0 && !args.names.is_empty() {
        return Err(
            CliError::new(Exit::Usage, "none of these hooks is approved here")
                .hint("see what is with `tenterhook trust --show`"),
        );
    }
    if args.json {
        output::json(&json!({ "revoked": revoked }));
    } else {
        output::line(format_args!(
            "{} {} taken back.",
            styled(style::GOOD, "ok:"),
            count(revoked, "approval")
        ));
    }
    Ok(Exit::Done)
}

fn hint(text: &str) {
    output::note(format_args!("{} {text}", styled(style::NAME, "hint:")));
}
