//! Finds the program and the name of an extension among the files of a folder.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use tenterhook_hookfile::{SourceProblem, is_cases_file, misnamed_as_cases};
use tenterhook_process::is_executable;
use tenterhook_systems::hook_folder::{ExtensionPrograms, MAX_FILES};

use super::hook_folder::HookFolder;
use super::load_problem::{too_many_files_in_folder, unreadable};

/// Returns the name of an extension: the name of its folder, or else the file's name without the prefix.
pub(super) fn extension_name(
    folder: &HookFolder,
    programs: &ExtensionPrograms,
    source: &Path,
    path: &Path,
) -> String {
    let is_alone = source.file_name().is_some_and(|name| name == "extensions");
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let name = if is_alone {
        file.strip_prefix(programs.prefix)
            .unwrap_or(&file)
            .to_owned()
    } else {
        let dir = source.file_name().unwrap_or_default();
        dir.to_string_lossy().into_owned()
    };
    format!("{}{name}", folder.prefix)
}

/// Returns the entries of a folder, in the byte order of the names.
pub(super) fn entries(dir: &Path) -> Result<Vec<DirEntry>, SourceProblem> {
    let entries = tenterhook_files::entries(dir);
    let entries = entries.and_then(|entries| entries.take(MAX_FILES + 1).collect());
    let mut entries: Vec<DirEntry> = entries.map_err(|error| unreadable(&error))?;
    if entries.len() > MAX_FILES {
        return Err(too_many_files_in_folder());
    }
    entries.retain(|entry| {
        let path = entry.path();
        !is_cases_file(&path) || misnamed_as_cases(&path).is_some()
    });
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}

/// Returns the executable of an extension in its folder. If the folder has no executable, returns the first file with
/// the name of an extension.
pub(super) fn find_program(programs: &ExtensionPrograms, within: &[DirEntry]) -> Option<PathBuf> {
    let named = || {
        let paths = within.iter().map(DirEntry::path);
        paths.filter(|path| has_prefix(programs, path) && !path.is_dir())
    };
    named()
        .find(|path| is_executable(path))
        .or_else(|| named().next())
}

/// Returns whether a file has the name of an extension.
pub(super) fn has_prefix(programs: &ExtensionPrograms, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes()
        .starts_with(programs.prefix.as_bytes())
}
