//! Settings with which an agent runs no hooks, whatever is installed.

use std::path::{Path, PathBuf};

use tenterhook_systems::host::HostAgent;

use crate::json_settings;
use crate::machine::Machine;
use crate::settings_file::{read, text};
use crate::toml_settings;

/// A setting with which an agent runs no hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchedOff {
    /// The file.
    pub path: PathBuf,
    /// The key, with dots between its parts.
    pub key: String,
}

/// Returns the settings that switch the hooks of an agent off. `places` are the files with its hooks. A file
/// that cannot be read has none.
pub(crate) fn switched_off(
    machine: &Machine,
    host: &HostAgent,
    project: &Path,
    places: &[PathBuf],
) -> Vec<SwitchedOff> {
    let mut found: Vec<SwitchedOff> = Vec::new();
    for switch in host.installation.off_switches {
        let also_in = switch.also_in.iter();
        let also_in = also_in.flat_map(|path| {
            let name = Path::new(path).file_name().unwrap_or_default();
            let moved = places.iter().map(move |place| place.with_file_name(name));
            moved.chain([machine.home.join(path), project.join(path)])
        });
        for path in places.iter().cloned().chain(also_in) {
            let is_off = settings(&path).is_some_and(|settings| switch.is_off(&settings));
            let key = switch.keys.join(".");
            let off = SwitchedOff { path, key };
            if is_off && !found.contains(&off) {
                found.push(off);
            }
        }
    }
    found
}

fn settings(path: &Path) -> Option<serde_json::Value> {
    let bytes = read(path).ok()??;
    let text = text(path, &bytes).ok()?;
    if path
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        toml_settings::value(text).ok()
    } else {
        json_settings::value(text).ok()?
    }
}
