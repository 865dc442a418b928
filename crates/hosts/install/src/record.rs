//! What was installed: the files as they were before, and what was written.
//!
//! Each installation has a folder in Tenterhook's data folder with `record.json` and the original files. Both are
//! written before the first change, so an interrupted installation can be undone.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenterhook_files::{hex_digest, read_whole, readable_entries, write_private};
use tenterhook_trust::check_owner;

use crate::install_error::InstallError;

/// The name of the record in its folder.
const FILE: &str = "record.json";
/// The version of the record's format.
const VERSION: u32 = 1;

/// An installation: one agent, for the user or one project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    version: u32,
    pub(crate) host: String,
    /// The folder of the project; `None` for the user's configuration.
    pub(crate) project: Option<PathBuf>,
    pub(crate) files: Vec<FileRecord>,
}

/// A file that the installation changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileRecord {
    pub(crate) path: PathBuf,
    pub(crate) content: FileContent,
    /// The name of the original in the record's folder. `None` means that the file did not exist.
    pub(crate) original: Option<String>,
    /// The digest of what was written.
    pub(crate) written: String,
    /// The folders that were created for the file, the outermost first.
    pub(crate) folders: Vec<PathBuf>,
}

/// What Tenterhook has in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum FileContent {
    /// Entries among the entries of others.
    Entries {
        /// The entry of each event.
        entries: BTreeMap<String, Value>,
        /// The objects and lists that were added for them.
        created: Vec<Vec<String>>,
    },
    /// All of it.
    Whole,
    /// Values by which the agent knows that the entries were approved.
    Approvals {
        /// The values.
        values: Vec<RecordedApproval>,
    },
}

/// A value by which the agent knows that an entry was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedApproval {
    pub(crate) tables: Vec<String>,
    pub(crate) key: String,
    pub(crate) value: String,
}

impl Record {
    pub(crate) fn new(host: &str, project: Option<&Path>) -> Self {
        Self {
            version: VERSION,
            host: host.to_owned(),
            project: project.map(Path::to_owned),
            files: Vec::new(),
        }
    }

    pub(crate) fn file(&self, path: &Path) -> Option<&FileRecord> {
        self.files.iter().find(|file| file.path == path)
    }
}

/// The folder of a record.
#[derive(Debug, Clone)]
pub(crate) struct RecordFolder {
    path: PathBuf,
}

impl RecordFolder {
    /// Returns the folder for one agent, for the user or one project.
    pub(crate) fn new(data: &Path, host: &str, project: Option<&Path>) -> Self {
        let scope = match project {
            None => "user".to_owned(),
            Some(project) => {
                let digest = hex_digest(project.as_os_str().as_encoded_bytes());
                format!("project-{}", digest.chars().take(16).collect::<String>())
            }
        };
        let path = data.join("install").join(host).join(scope);
        Self { path }
    }

    /// Reads the record. `None` means that nothing was installed.
    pub(crate) fn read(&self) -> Result<Option<Record>, InstallError> {
        let path = self.path.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let read = || -> io::Result<Record> {
            check_owner(&path).map_err(io::Error::other)?;
            let (bytes, _) = read_whole(&path)?;
            let record: Record = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
            if record.version != VERSION {
                let problem = format!("version {}, expected {VERSION}", record.version);
                return Err(io::Error::other(problem));
            }
            Ok(record)
        };
        read().map(Some).map_err(InstallError::read(&path))
    }

    /// Returns the name of an original.
    pub(crate) fn name_of(original: &[u8]) -> String {
        let digest = hex_digest(original);
        format!("original-{}", digest.chars().take(16).collect::<String>())
    }

    /// Stores an original, or the last version of a file that is removed.
    pub(crate) fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), InstallError> {
        self.store(name, bytes)
    }

    /// Returns an original.
    pub(crate) fn original(&self, name: &str) -> Result<Vec<u8>, InstallError> {
        let path = self.path.join(name);
        let (bytes, _) = read_whole(&path).map_err(InstallError::read(&path))?;
        Ok(bytes)
    }

    /// Writes the record, and removes originals that it does not name.
    pub(crate) fn write(&self, record: &Record) -> Result<(), InstallError> {
        let path = self.path.join(FILE);
        let bytes = serde_json::to_vec_pretty(record).map_err(io::Error::other);
        let bytes = bytes.map_err(InstallError::write(&path))?;
        self.store(FILE, &bytes)?;
        let names: Vec<&str> = record
            .files
            .iter()
            .filter_map(|it| it.original.as_deref())
            .collect();
        for entry in readable_entries(&self.path) {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("original-") && !names.contains(&name.as_ref()) {
                // One that stays is only wasted space.
                let _gone = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    /// Removes the record and its originals.
    pub(crate) fn remove(&self) -> Result<(), InstallError> {
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(InstallError::write(&self.path)(error));
            }
            _ => {}
        }
        if let Some(host) = self.path.parent() {
            // It stays if another installation of the agent is in it.
            let _kept = fs::remove_dir(host);
        }
        Ok(())
    }

    fn store(&self, name: &str, bytes: &[u8]) -> Result<(), InstallError> {
        let path = self.path.join(name);
        write_private(&path, bytes, 0o600).map_err(InstallError::write(&path))
    }
}

/// Returns every record in the data folder. A damaged one is an error.
pub(crate) fn all(data: &Path) -> Result<Vec<Record>, InstallError> {
    let folder = data.join("install");
    let mut records = Vec::new();
    for host in readable_entries(&folder) {
        for scope in readable_entries(&host.path()) {
            let folder = RecordFolder { path: scope.path() };
            records.extend(folder.read()?);
        }
    }
    records.sort_by(|a: &Record, b| (&a.host, &a.project).cmp(&(&b.host, &b.project)));
    Ok(records)
}
