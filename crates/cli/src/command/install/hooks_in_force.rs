//! What is in force after an installation: which hooks, from which files, and whether they are approved.

use std::fmt::Display;

use serde_json::Value;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::error::CliError;
use tenterhook_setup::hook_list::{self, trust};
use tenterhook_setup::hook_options::HookOptions;
use tenterhook_setup::hooks::{self, Hooks};
use tenterhook_setup::warning::show_warnings;
use tenterhook_systems::host::HostAgent;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::table::{self, Cell, plain};
use tenterhook_terminal::output::{self, style};
use tenterhook_trust::Trust;

use crate::working_dir::current_dir;

/// The hooks that agents run in the working directory.
#[derive(Debug)]
pub(crate) struct HooksInForce {
    hooks: Hooks,
}

impl HooksInForce {
    /// Loads the hooks, as the daemon does for an agent in this folder. A single agent's own hooks are left out, because
    /// the agent runs them itself.
    pub(crate) async fn load(
        hosts: &[&'static HostAgent],
        interrupts: &Interrupts,
    ) -> Result<Self, CliError> {
        let options = HookOptions {
            host: match hosts {
                [host] => Some(host.name),
                _ => None,
            },
            ..HookOptions::default()
        };
        let (services, _models) = hooks::services(None)?;
        let (start, token) = (current_dir()?, interrupts.token());
        let load = hooks::load_quietly(&options, &start, services, Trust::Approved, &token);
        Ok(Self { hooks: load.await? })
    }

    /// Returns the hooks as `list --json` does.
    pub(crate) fn json(&self) -> Value {
        hook_list::listed(&self.hooks, false)
    }

    /// Shows the hooks after an installation in the agents `done`. The agents in `off` run no hooks because of a setting.
    /// If the folder has no hooks, it prints that nothing is guarded, and what to do next.
    pub(crate) fn show(&self, done: &[&HostAgent], off: &[&HostAgent]) {
        let (in_force, loaded) = (self.in_force(), &self.hooks.loaded);
        let broken = &self.hooks.broken;
        show_warnings(&loaded.warnings);
        for source in broken {
            show_warnings(&source.problems);
        }
        let waiting = loaded.project_hooks.iter();
        let waiting = waiting.filter(|hook| hook.is_withheld()).map(|hook| {
            row(
                &hook.item.name,
                hook.state.as_str(),
                hook.item.source.display(),
            )
        });
        let unapproved = self.hooks.untrusted.iter();
        let unapproved =
            unapproved.map(|source| row("", "cannot be loaded", source.path.display()));
        output::line("");
        let titles = |hosts: &[&HostAgent]| {
            let titles: Vec<&str> = hosts.iter().map(|host| host.title).collect();
            titles.join(", ")
        };
        let title = match off.len() {
            0 => "In force in this folder:".to_owned(),
            some if some == done.len() => {
                format!("Not in force, because {} runs no hooks:", titles(off))
            }
            _ => format!("In force in this folder, but not in {}:", titles(off)),
        };
        show_rows(&title, &in_force);
        show_rows(
            "Not in force, because you have not approved them (`tenterhook trust`):",
            &waiting.chain(unapproved).collect::<Vec<_>>(),
        );
        let broken_rows = broken
            .iter()
            .map(|source| row("", "", source.path.display()));
        show_rows(
            "Cannot be loaded, so gates deny (`tenterhook check`):",
            &broken_rows.collect::<Vec<_>>(),
        );
        if in_force.is_empty() && broken.is_empty() {
            output::line("Nothing is guarded yet: no hook is in force in this folder.");
            output::line(
                "To write a first guard for all your agents, run `tenterhook init --user`.",
            );
        }
    }

    /// Returns the name, the trust and the source of each hook. A hook for several events has one row.
    fn in_force(&self) -> Vec<[String; 3]> {
        let loaded = &self.hooks.loaded;
        let mut rows = Vec::new();
        for hook in hooks::engine(loaded, false, None).hooks() {
            let state = trust(&hook, &loaded.diverged);
            let row = row(hook.id.as_str(), state, hook.source.to_string());
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        rows
    }
}

fn row(name: &str, state: &str, source: impl Display) -> [String; 3] {
    [name.to_owned(), state.to_owned(), source.to_string()]
}

/// Shows a title and a table, unless the table is empty.
fn show_rows(title: &str, rows: &[[String; 3]]) {
    if rows.is_empty() {
        return;
    }
    output::line(title);
    let cells = |row: &[String; 3]| -> Vec<Cell> {
        let [name, state, source] = row.each_ref().map(|text| escape_line(text));
        vec![(name, style::NAME), plain(state), (source, style::QUIET)]
    };
    let rows: Vec<Vec<Cell>> = rows.iter().map(cells).collect();
    for line in table::lines(&rows) {
        output::line(format_args!("  {line}"));
    }
}
