//! One run of an agent in a new sandbox, with hooks and with Tenterhook installed.

use std::fs;
use std::io;
use std::path::Path;

use crate::{InstallError, InstallScope, Installer, Machine};
use tenterhook_systems::host::HostAgent;

use crate::proof::canary;
use crate::proof::headless::{HeadlessError, HeadlessOutcome, PreparedAgent};
use crate::proof::installed_agent::InstalledAgent;
use crate::proof::sandbox::Sandbox;
use crate::proof::trial_script::TrialScript;

/// A run of an agent that has ended. Its sandbox exists as long as this value.
#[derive(Debug)]
pub struct Trial {
    /// The folders.
    pub sandbox: Sandbox,
    /// How the agent ended, and what its model was asked.
    pub outcome: HeadlessOutcome,
}

impl Trial {
    /// Returns whether the command that the model requested has run.
    pub fn has_run(&self) -> bool {
        self.sandbox.work().join(canary::RAN).exists()
    }
}

/// Why a trial could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The sandbox could not be set up.
    #[error("cannot set up the run: {0}")]
    Setup(#[from] io::Error),
    /// The agent could not be run.
    #[error("{}", with_cause(.0))]
    Run(#[from] HeadlessError),
    /// Tenterhook could not be installed in the sandbox.
    #[error("cannot install Tenterhook in the sandbox: {}", with_cause(.0))]
    Install(#[from] InstallError),
}

fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// What a trial consists of.
pub struct TrialPlan<'a> {
    /// The agent.
    pub agent: &'a InstalledAgent,
    /// The program `tenterhook`. The shim is next to it.
    pub tenterhook: &'a Path,
    /// What the model requests.
    pub script: TrialScript,
    /// Writes the hooks into the home folder of the sandbox.
    pub write_hooks: &'a (dyn Fn(&Sandbox) -> io::Result<()> + Sync),
    /// Changes the installation before the agent starts.
    pub change: &'a (dyn Fn(&Sandbox) -> io::Result<()> + Sync),
}

impl std::fmt::Debug for TrialPlan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrialPlan")
            .field("agent", &self.agent.host)
            .finish_non_exhaustive()
    }
}

impl TrialPlan<'_> {
    /// Runs the agent.
    ///
    /// # Errors
    /// Fails if the sandbox cannot be set up, or if the agent cannot be started.
    pub async fn run(&self) -> Result<Trial, TrialError> {
        let sandbox = Sandbox::create()?;
        let script = self.script.turns(self.agent.host, self.tenterhook);
        let prepared = PreparedAgent::prepare(self.agent, &sandbox, script).await?;
        fs::create_dir_all(sandbox.config())?;
        (self.write_hooks)(&sandbox)?;
        install(&sandbox, self.agent.host, self.tenterhook)?;
        (self.change)(&sandbox)?;
        let outcome = prepared.run().await?;
        Ok(Trial { sandbox, outcome })
    }
}

/// Adds Tenterhook to the configuration of the host in the sandbox.
fn install(
    sandbox: &Sandbox,
    host: &'static HostAgent,
    program: &Path,
) -> Result<(), InstallError> {
    let installer = Installer::open(Machine {
        home: sandbox.home(),
        data: sandbox.data(),
        program: program.to_owned(),
        search_path: Vec::new(),
        variables: std::collections::BTreeMap::new(),
    })?;
    installer.install_programs()?;
    let plan = installer.plan_install(host, &InstallScope::User, true)?;
    installer.apply(&plan)
}
