//! Carries out installations and removals, one process at a time.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenterhook_files::{FileLock, hex_digest, lock_file, make_private, write_private};
use tenterhook_systems::host::HostAgent;

use crate::install_error::InstallError;
use crate::install_plan::plan_install;
use crate::machine::Machine;
use crate::plan::{InstallPlan, InstallScope, SettingsChange};
use crate::programs;
use crate::record;
use crate::removal_plan::plan_removal;
use crate::settings_file;
use crate::target::Target;

/// How long to wait for another process that installs.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Adds Tenterhook to the configuration of agents, and removes it. Holds a lock while it exists.
///
/// ```
/// use tenterhook_install::{InstallScope, Installer, Machine};
/// # let folder = tempfile::tempdir()?;
/// # let home = folder.path().to_owned();
/// # let (data, program) = (home.join("data"), home.join("tenterhook"));
/// # let Some(agent) = tenterhook_systems::HOSTS.first() else { return Ok(()) };
/// let machine = Machine {
///     home,
///     data,
///     program,
///     search_path: Vec::new(),
///     variables: Default::default(),
/// };
/// let installer = Installer::open(machine)?;
/// let plan = installer.plan_install(agent, &InstallScope::User, false)?;
/// for change in &plan.changes {
///     assert!(change.diff().contains("tenterhook-shim"));
/// }
/// installer.apply(&plan)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Installer {
    machine: Machine,
    _lock: FileLock,
}

impl Installer {
    /// Waits until no other process installs.
    ///
    /// # Errors
    /// Fails if the data folder cannot be written, or if another process takes longer than ten seconds.
    pub fn open(machine: Machine) -> Result<Self, InstallError> {
        let path = machine.data.join("install.lock");
        let lock = lock(&path)?;
        Ok(Self {
            machine,
            _lock: lock,
        })
    }

    /// Returns the folders in which this installer works.
    pub const fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Plans to add the entries that are missing. `approves` also records, for an agent that has such a record, that
    /// the person approved them.
    ///
    /// # Errors
    /// Fails if a file cannot be read, belongs to someone else or does not parse.
    pub fn plan_install(
        &self,
        host: &'static HostAgent,
        scope: &InstallScope,
        approves: bool,
    ) -> Result<InstallPlan, InstallError> {
        plan_install(&Target::new(&self.machine, host, scope)?, approves)
    }

    /// Plans to remove all entries.
    ///
    /// # Errors
    /// As for [`plan_install`](Self::plan_install).
    pub fn plan_removal(
        &self,
        host: &'static HostAgent,
        scope: &InstallScope,
    ) -> Result<InstallPlan, InstallError> {
        plan_removal(&Target::new(&self.machine, host, scope)?)
    }

    /// Changes the files of a plan. The originals are stored before the first change.
    ///
    /// # Errors
    /// Fails if a file was changed since the plan was made, or cannot be written. Files before it are changed.
    pub fn apply(&self, plan: &InstallPlan) -> Result<(), InstallError> {
        let target = Target::new(&self.machine, plan.host, &plan.scope)?;
        let folder = target.record_folder();
        if let Some(record) = &plan.record {
            for original in &plan.originals {
                let name = record::RecordFolder::name_of(original);
                folder.keep(&name, original)?;
            }
            folder.write(record)?;
        }
        for change in &plan.changes {
            self.keep_changed_file(plan, change)?;
            apply_change(change)?;
        }
        if plan.record.is_none() {
            for folder in &plan.folders {
                // It stays if someone put a file there.
                let _kept = fs::remove_dir(folder);
            }
            folder.remove()?;
        }
        Ok(())
    }

    /// Keeps a copy of a file that someone changed although it belonged to Tenterhook.
    fn keep_changed_file(
        &self,
        plan: &InstallPlan,
        change: &SettingsChange,
    ) -> Result<(), InstallError> {
        if !plan.kept.contains(&change.path) {
            return Ok(());
        }
        let bytes = change.before.as_deref().unwrap_or_default();
        let path = self.kept_copy(change);
        write_private(&path, bytes, 0o600).map_err(InstallError::write(&path))
    }

    /// Returns where [`apply`](Self::apply) keeps a copy of a changed file that it deletes.
    pub fn kept_copy(&self, change: &SettingsChange) -> PathBuf {
        let digest = hex_digest(change.before.as_deref().unwrap_or_default());
        let digest: String = digest.chars().take(8).collect();
        let name = change
            .path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        self.machine
            .data
            .join("install-kept")
            .join(format!("{digest}-{name}"))
    }

    /// Copies the running program and its shim into the data folder, for all agents. Replaces another version. Returns
    /// whether anything changed.
    ///
    /// # Errors
    /// Fails if a program cannot be copied, or if a copy does not start. Agents then run what they ran before.
    pub fn install_programs(&self) -> Result<bool, InstallError> {
        programs::install(&self.machine)
    }

    /// Returns whether agents start the small shim for each event. Without it, they start the whole program.
    pub fn has_small_shim(machine: &Machine) -> bool {
        programs::has_small_shim(machine)
    }

    /// Removes the programs that agents run if no agent uses them. Returns whether they were removed.
    ///
    /// # Errors
    /// Fails if a record cannot be read, or if a program cannot be removed.
    pub fn remove_unused_programs(&self) -> Result<bool, InstallError> {
        if !record::all(&self.machine.data)?.is_empty() {
            return Ok(false);
        }
        // The folder of records stays if it contains anything else.
        let _kept = fs::remove_dir(self.machine.data.join("install"));
        programs::remove(&self.machine)
    }
}

/// Changes one file, if it still has the content for which the change was planned.
fn apply_change(change: &SettingsChange) -> Result<(), InstallError> {
    let path = &change.path;
    if settings_file::read(path)? != change.before {
        return Err(InstallError::Refused {
            path: path.clone(),
            problem: "another program changed it at the same time",
            hint: "run the command again",
        });
    }
    match &change.after {
        Some(bytes) => {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(InstallError::write(folder))?;
            }
            settings_file::replace(path, bytes, change.mode)
        }
        None => fs::remove_file(path).map_err(InstallError::write(path)),
    }
}

fn lock(path: &Path) -> Result<FileLock, InstallError> {
    let lock = make_private(path.parent().unwrap_or(path))
        .and_then(|()| lock_file(path))
        .and_then(|file| FileLock::wait(file, LOCK_WAIT));
    lock.map_err(InstallError::write(path))?
        .ok_or_else(|| InstallError::Busy {
            path: path.to_owned(),
        })
}
