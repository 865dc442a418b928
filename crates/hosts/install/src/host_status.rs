//! What is installed: the agents on the machine, their entries, and entries that run twice.

use std::fs;
use std::path::{Path, PathBuf};

use tenterhook_files::{hex_digest, readable_entries};
use tenterhook_systems::HOSTS;
use tenterhook_systems::host::HostAgent;

use crate::entry::LinePrefix;
use crate::install_error::InstallError;
use crate::install_plan::approvals;
use crate::machine::{Machine, SHIM};
use crate::off_switches::{SwitchedOff, switched_off};
use crate::plan::{ApprovalState, InstallScope};
use crate::record::{FileContent, Record};
use crate::settings_file::{read, text};
use crate::target::Target;
use crate::toml_settings;

/// The number of folders above a program that may contain its `package.json`.
const MAX_PACKAGE_DEPTH: usize = 6;
/// The number of files of a folder that are searched for entries.
const MAX_FOLDER_FILES: usize = 64;

/// What is installed for one agent.
#[derive(Debug)]
pub struct HostStatus {
    /// The agent.
    pub host: &'static HostAgent,
    /// Its program.
    pub program: Option<PathBuf>,
    /// Its version, if a file next to the program says so.
    pub version: Option<String>,
    /// Whether the program or the agent's own folder is on the machine.
    pub is_present: bool,
    /// Its configuration, for the user and for the project.
    pub places: Vec<PlaceStatus>,
    /// Files whose entries the agent runs in addition to its own configuration.
    pub repeated_by: Vec<PathBuf>,
    /// Settings with which the agent runs no hooks.
    pub switched_off: Vec<SwitchedOff>,
}

/// What is installed in one configuration.
#[derive(Debug)]
pub struct PlaceStatus {
    /// Whose configuration it is.
    pub scope: InstallScope,
    /// The file, or the folder of Tenterhook's own files.
    pub path: PathBuf,
    /// Whether the entries are there.
    pub state: PlaceState,
    /// The events without an entry, or the missing files.
    pub missing: Vec<String>,
    /// The events whose entry, or the files, that someone has changed.
    pub altered: Vec<String>,
    /// The events whose entry, or the files, that an older version of Tenterhook wrote.
    pub outdated: Vec<String>,
    /// Whether the agent knows that the person approved the entries.
    pub approval: ApprovalState,
    /// Copies of the shim in other folders that the file also names.
    pub other_shims: Vec<String>,
    /// Why the configuration cannot be read.
    pub problem: Option<InstallError>,
}

/// Whether the entries of Tenterhook are in a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceState {
    /// None is.
    Absent,
    /// None is, but the record of an installation says that they were written.
    Removed,
    /// All are, as the running version writes them.
    Complete,
    /// Some are missing, changed or outdated.
    Incomplete,
    /// The configuration cannot be read.
    Unreadable,
}

impl PlaceState {
    /// Returns the word for the state in JSON output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Removed => "removed",
            Self::Complete => "complete",
            Self::Incomplete => "incomplete",
            Self::Unreadable => "unreadable",
        }
    }
}

impl HostStatus {
    /// Inspects every agent, for the user and the project in a folder.
    pub fn all(machine: &Machine, project: &Path) -> Vec<Self> {
        let hosts = HOSTS.iter().copied();
        hosts
            .map(|host| Self::inspect(machine, host, project))
            .collect()
    }

    /// Inspects every agent that has entries but runs no hooks because of a setting.
    pub fn all_switched_off(machine: &Machine, project: &Path) -> Vec<Self> {
        let hosts = HOSTS.iter().copied();
        let hosts = hosts.filter(|host| {
            let targets = targets(machine, host, project);
            let files: Vec<PathBuf> = targets.into_iter().map(|target| target.base).collect();
            !switched_off(machine, host, project, &files).is_empty()
        });
        hosts
            .map(|host| Self::inspect(machine, host, project))
            .filter(Self::is_installed)
            .collect()
    }

    /// Inspects one agent, for the user and the project in a folder.
    pub fn inspect(machine: &Machine, host: &'static HostAgent, project: &Path) -> Self {
        let program = machine.find_program(host.programs);
        let mut places: Vec<PlaceStatus> = Vec::new();
        for target in targets(machine, host, project) {
            // In the home folder, both are the same file.
            if places.iter().all(|place| place.path != target.base) {
                places.push(PlaceStatus::inspect(&target));
            }
        }
        let files: Vec<PathBuf> = places.iter().map(|place| place.path.clone()).collect();
        Self {
            host,
            version: program.as_deref().and_then(package_version),
            is_present: program.is_some() || has_folder(machine, host),
            repeated_by: repeated_by(machine, host, project, &places),
            switched_off: switched_off(machine, host, project, &files),
            program,
            places,
        }
    }

    /// Returns whether there are entries in any configuration.
    pub fn is_installed(&self) -> bool {
        self.places
            .iter()
            .any(|place| matches!(place.state, PlaceState::Complete | PlaceState::Incomplete))
    }

    /// Returns whether there are entries, or whether that cannot be determined.
    pub fn is_touched(&self) -> bool {
        self.places
            .iter()
            .any(|place| place.state != PlaceState::Absent)
    }

    /// Returns whether the agent is newer than the version whose behaviour was measured. An unknown version is not.
    pub fn is_newer_than_measured(&self) -> bool {
        let numbers = |version: &str| -> Vec<u64> {
            let parts = version.split(['.', '-', '+']);
            parts.map_while(|part| part.parse().ok()).collect()
        };
        let version = self.version.as_deref();
        version.is_some_and(|version| numbers(version) > numbers(self.host.measured_version))
    }

    /// Returns whether the agent runs the same hooks twice for an event.
    pub fn fires_twice(&self) -> bool {
        !self.repeated_by.is_empty()
    }
}

/// Returns the configuration of an agent, for the user and for a project.
fn targets<'m>(machine: &'m Machine, host: &'static HostAgent, project: &Path) -> Vec<Target<'m>> {
    let scopes = [
        InstallScope::User,
        InstallScope::Project(project.to_owned()),
    ];
    let targets = scopes.iter();
    targets
        .filter_map(|scope| Target::new(machine, host, scope).ok())
        .collect()
}

/// Returns whether an agent is on the machine: its program, or a folder that only it creates.
pub fn is_present(machine: &Machine, host: &HostAgent) -> bool {
    machine.find_program(host.programs).is_some() || has_folder(machine, host)
}

fn has_folder(machine: &Machine, host: &HostAgent) -> bool {
    let mut folders = host.installation.folders.iter();
    folders.any(|folder| machine.home.join(folder).is_dir())
}

impl PlaceStatus {
    fn inspect(target: &Target<'_>) -> Self {
        let mut status = Self {
            scope: target.scope.clone(),
            path: target.base.clone(),
            state: PlaceState::Absent,
            missing: Vec::new(),
            altered: Vec::new(),
            outdated: Vec::new(),
            approval: ApprovalState::NotNeeded,
            other_shims: Vec::new(),
            problem: None,
        };
        match status.look(target) {
            Ok((0, false)) => {}
            Ok((0, true)) => status.state = PlaceState::Removed,
            Ok(_) => {
                let problems = [&status.missing, &status.altered, &status.outdated];
                let is_complete = problems.iter().all(|list| list.is_empty());
                status.state = if is_complete {
                    PlaceState::Complete
                } else {
                    PlaceState::Incomplete
                };
            }
            Err(error) => {
                status.state = PlaceState::Unreadable;
                status.problem = Some(error);
            }
        }
        if status.state == PlaceState::Absent {
            status.missing.clear();
        }
        status
    }

    /// Compares the files that belong to Tenterhook alone, as [`look`](Self::look) does.
    fn look_at_own_files(
        &mut self,
        target: &Target<'_>,
        record: Option<&Record>,
    ) -> Result<(usize, bool), InstallError> {
        let (mut count, mut is_recorded) = (0, false);
        for (path, file) in target.own_files() {
            let name = path.file_name().unwrap_or_default();
            let name = name.to_string_lossy().into_owned();
            let as_written = record.and_then(|record| record.file(&path));
            let as_written = as_written.map(|file| file.written.as_str());
            is_recorded |= as_written.is_some();
            match read(&path)? {
                None => self.missing.push(name),
                Some(bytes) if bytes == file.text.as_bytes() => count += 1,
                Some(bytes) if as_written == Some(&hex_digest(&bytes)) => {
                    count += 1;
                    self.outdated.push(name);
                }
                // A file of someone else is not an installation.
                Some(_) if as_written.is_none() => self.missing.push(name),
                Some(_) => {
                    count += 1;
                    self.altered.push(name);
                }
            }
        }
        Ok((count, is_recorded))
    }

    /// Compares the configuration with what the running version writes. Returns the number of entries or files, and
    /// whether a record says that there should be any.
    fn look(&mut self, target: &Target<'_>) -> Result<(usize, bool), InstallError> {
        let record = target.record_folder().read()?;
        let recorded = |path: &Path| record.as_ref().and_then(|record| record.file(path));
        let Some((form, entry)) = target.list() else {
            return self.look_at_own_files(target, record.as_ref());
        };
        let bytes = read(&target.base)?.unwrap_or_default();
        let current = text(&target.base, &bytes)?;
        self.other_shims = other_shims(current, &target.machine.shim());
        let found = form.find(current, LinePrefix(&target.prefix));
        let found = found.map_err(InstallError::edit(&target.base))?;
        let entries = match recorded(&target.base).map(|file| &file.content) {
            Some(FileContent::Entries { entries, .. }) => Some(entries),
            _ => None,
        };
        for wanted in target.entries(entry) {
            let as_written = entries.and_then(|entries| entries.get(&wanted.event));
            match found.iter().find(|it| it.event == wanted.event) {
                None => self.missing.push(wanted.event),
                Some(it) if it.value == wanted.value => {}
                Some(it) if Some(&it.value) == as_written => self.outdated.push(wanted.event),
                Some(_) => self.altered.push(wanted.event),
            }
        }
        if let Some(approval) = target
            .host
            .installation
            .approval
            .filter(|_| !found.is_empty())
        {
            let path = target.machine.path(approval.path, approval.variable);
            let bytes = read(&path)?.unwrap_or_default();
            let settings = text(&path, &bytes)?;
            self.approval = ApprovalState::Recorded;
            for it in approvals(target, approval, form, current)? {
                let tables: Vec<&str> = it.tables.iter().map(String::as_str).collect();
                let value = toml_settings::get(settings, &tables, &it.key);
                if value.map_err(InstallError::edit(&path))?.as_ref() != Some(&it.value) {
                    self.approval = ApprovalState::Missing;
                }
            }
        }
        Ok((found.len(), entries.is_some()))
    }
}

/// Returns the paths of other copies of the shim in a text of settings.
fn other_shims(text: &str, own: &Path) -> Vec<String> {
    let own = own.display().to_string();
    let mut others: Vec<String> = Vec::new();
    let ending = format!("/{SHIM}");
    for (end, _) in text.match_indices(&ending) {
        let before = text.get(..end).unwrap_or("");
        let start = before.rfind(['"', '\'', '\n']).map_or(0, |quote| quote + 1);
        let path = format!("{}{ending}", before.get(start..).unwrap_or("").trim());
        if path != own && !others.contains(&path) {
            others.push(path);
        }
    }
    others
}

/// Returns the files whose entries an agent runs in addition to its first configuration with entries.
fn repeated_by(
    machine: &Machine,
    host: &HostAgent,
    project: &Path,
    places: &[PlaceStatus],
) -> Vec<PathBuf> {
    let is_installed =
        |place: &&PlaceStatus| matches!(place.state, PlaceState::Complete | PlaceState::Incomplete);
    let mut installed = places.iter().filter(is_installed);
    if installed.next().is_none() {
        return Vec::new();
    }
    let mut repeated: Vec<PathBuf> = installed.map(|place| place.path.clone()).collect();
    for path in host.installation.also_reads {
        for base in [&machine.home, project] {
            let path = base.join(path);
            if places.iter().all(|place| place.path != path)
                && names_shim(&path)
                && !repeated.contains(&path)
            {
                repeated.push(path);
            }
        }
    }
    repeated
}

/// Returns whether a file, or a file of a folder, names the shim.
fn names_shim(path: &Path) -> bool {
    let has_name = |path: &Path| {
        let bytes = read(path).ok().flatten().unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(&format!("/{SHIM}"))
    };
    if !path.is_dir() {
        return has_name(path);
    }
    let entries = readable_entries(path);
    entries
        .take(MAX_FOLDER_FILES)
        .any(|entry| has_name(&entry.path()))
}

/// Returns the version of a program from the nearest `package.json` above it.
fn package_version(program: &Path) -> Option<String> {
    let program = fs::canonicalize(program).ok()?;
    let mut folders = program.ancestors().skip(1).take(MAX_PACKAGE_DEPTH);
    folders.find_map(|folder| {
        let bytes = read(&folder.join("package.json")).ok()??;
        let package: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        Some(package.get("version")?.as_str()?.to_owned())
    })
}
