//! The versions of agents that `tenterhook doctor --prove` has shown to follow hooks on this machine.
//!
//! An agent that is newer than the version that was measured for this release is a problem only until it is proven.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tenterhook_files::{read_whole, write_private};

use crate::data_dir::data_dir;
use crate::error::CliError;
use crate::exit::Exit;

/// The file in the data folder.
const FILE: &str = "proven.json";

/// The last version of each agent that was proven.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProvenVersions(BTreeMap<String, String>);

impl ProvenVersions {
    /// Reads the list. Blocks the thread. A list that cannot be read is empty, so that newer agents are reported.
    pub fn read() -> Self {
        let read = || {
            let (bytes, _) = read_whole(&path()?).ok()?;
            serde_json::from_slice(&bytes).ok()
        };
        read().map_or_else(Self::default, Self)
    }

    /// Returns whether this version of an agent was proven.
    pub fn has(&self, host: &str, version: &str) -> bool {
        self.0.get(host).is_some_and(|proven| proven == version)
    }

    /// Adds a version, and writes the list. Blocks the thread.
    ///
    /// # Errors
    /// Fails if the list cannot be written.
    pub fn add(&mut self, host: &str, version: &str) -> Result<(), CliError> {
        let Some(path) = path() else {
            return Ok(());
        };
        self.0.insert(host.to_owned(), version.to_owned());
        let failed = |error: &dyn std::error::Error| {
            CliError::new(Exit::Failed, format!("cannot write `{}`", path.display())).cause(error)
        };
        let json = serde_json::to_vec(&self.0).map_err(|error| failed(&error))?;
        write_private(&path, &json, 0o600).map_err(|error| failed(&error))
    }
}

fn path() -> Option<PathBuf> {
    Some(data_dir()?.join(FILE))
}
