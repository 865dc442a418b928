//! Which coding agents a command is about, and where their configuration is.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use tenterhook_install::{HostStatus, InstallError, InstallScope, Machine, is_present};
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::data_dir::data_dir;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::host_problems;
use tenterhook_setup::warning::{hint, warn};
use tenterhook_systems::HOSTS;
use tenterhook_systems::host::HostAgent;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_trust::repository_root;

use crate::working_dir::current_dir;

/// Which agents, and whose configuration.
#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// The agents.
    #[arg(value_name = "HOST", required_unless_present = "all", value_parser = PossibleValuesParser::new(names()))]
    hosts: Vec<String>,

    /// Every agent that is on this machine.
    #[arg(long, conflicts_with = "hosts")]
    pub(crate) all: bool,

    /// Change the configuration of the project in the working directory instead of your own.
    #[arg(long)]
    pub(crate) project: bool,
}

impl HostArgs {
    /// Returns the agents that the user named.
    pub(crate) fn named(&self) -> Vec<&'static HostAgent> {
        self.hosts
            .iter()
            .filter_map(|name| HostAgent::by_name(name))
            .collect()
    }

    /// Returns the agents that the user named, or all that are on the machine. With `--project`, agents without
    /// configuration in a project are left out of `--all`.
    pub(crate) fn chosen(&self, machine: &Machine) -> Result<Vec<&'static HostAgent>, CliError> {
        if !self.all {
            return Ok(self.named());
        }
        let is_chosen = |host: &&HostAgent| {
            let place = if self.project {
                &host.installation.project
            } else {
                &host.installation.user
            };
            place.is_some() && is_present(machine, host)
        };
        let found: Vec<&'static HostAgent> = HOSTS.iter().copied().filter(is_chosen).collect();
        if found.is_empty() {
            let message = "no coding agent was found in `PATH` or in your home folder";
            let hint = format!("name one; available: {}", names().join(", "));
            return Err(CliError::new(Exit::Failed, message).hint(hint));
        }
        Ok(found)
    }

    pub(crate) fn scope(&self) -> Result<InstallScope, CliError> {
        Ok(if self.project {
            InstallScope::Project(project_folder()?)
        } else {
            InstallScope::User
        })
    }
}

fn names() -> Vec<&'static str> {
    HOSTS.iter().map(|host| host.name).collect()
}

/// Returns the root of the repository, or the working directory outside of a repository.
pub(crate) fn project_folder() -> Result<PathBuf, CliError> {
    let start = current_dir()?;
    Ok(repository_root(&start).unwrap_or(&start).to_owned())
}

/// Returns the folders and variables that decide where configuration is.
pub(crate) fn machine() -> Result<Machine, CliError> {
    let data = data_dir().and_then(|data| Machine::of_process(&data));
    data.ok_or_else(|| {
        CliError::new(Exit::Failed, "cannot find your home folder")
            .hint("set `HOME` to an absolute path")
    })
}

/// Warns of settings with which an agent that calls Tenterhook runs no hooks. Returns these agents.
pub(crate) async fn warn_of_switched_off(
    interrupts: &Interrupts,
) -> Result<Vec<&'static HostAgent>, CliError> {
    let (machine, project) = (machine()?, project_folder()?);
    let look = move || Ok(HostStatus::all_switched_off(&machine, &project));
    let hosts = run_blocking(&interrupts.token(), look).await?;
    for problem in hosts.iter().flat_map(host_problems::switched_off) {
        warn(&problem.text);
        hint(&problem.next_step);
    }
    let is_off = |host: &&HostStatus| !host.switched_off.is_empty();
    Ok(hosts.iter().filter(is_off).map(|host| host.host).collect())
}

/// Returns the error of an installation, as this program shows it.
pub(crate) fn failed(error: &InstallError) -> CliError {
    let exit = match error {
        InstallError::Edit { .. } => Exit::Config,
        InstallError::NoPlace { .. } => Exit::Usage,
        InstallError::Read { .. }
        | InstallError::Write { .. }
        | InstallError::Refused { .. }
        | InstallError::Copy { .. }
        | InstallError::UnusableCopy { .. }
        | InstallError::Busy { .. } => Exit::Failed,
    };
    CliError::of(exit, error).hint(error.hint())
}
