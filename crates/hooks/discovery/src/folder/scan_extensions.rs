//! Scans a folder of kodelet's extensions.
//!
//! An extension is an executable `kodelet-extension-NAME`, or the first executable with this prefix in a
//! folder `NAME`.

use std::rc::Rc;

use tenterhook_hookfile::SourceProblem;
use tenterhook_systems::hook_folder::ExtensionPrograms;
use tenterhook_trust::{CoverageBudget, ExtensionFolder, Trust};

use super::candidate::Candidate;
use super::extension_files::{entries, find_program};
use super::hook_folder::{HookFolder, is_in_force};
use super::inspect::inspect_file;
use super::loadable_sources::{ExtensionSources, LoadableSources};

/// The files that were found in a folder of extensions.
#[derive(Debug, Default)]
pub(super) struct ScannedExtensions {
    pub(super) candidates: Vec<Candidate>,
    /// The folders of single extensions that cannot be read.
    pub(super) broken: Vec<(HookFolder, SourceProblem)>,
}

/// Scans a folder of extensions.
pub(super) fn scan_extensions(
    folder: &HookFolder,
    programs: &ExtensionPrograms,
    trust: &Trust,
) -> Result<ScannedExtensions, SourceProblem> {
    let mut scanned = ScannedExtensions::default();
    let mut found = Vec::new();
    for entry in entries(&folder.dir)? {
        let name = entry.file_name().to_string_lossy().into_owned();
        // A link to a folder counts as a folder.
        if entry.path().is_dir() {
            match entries(&entry.path()) {
                Ok(within) => {
                    let program = find_program(programs, &within);
                    found.extend(program.map(|path| (name, entry.path(), path)));
                }
                Err(problem) => {
                    let own = HookFolder {
                        dir: entry.path(),
                        ..folder.clone()
                    };
                    scanned.broken.push((own, problem));
                }
            }
        } else if let Some(own) = name.strip_prefix(programs.prefix) {
            found.push((own.to_owned(), folder.dir.clone(), entry.path()));
        }
    }
    let needs_approval = !is_in_force(folder, trust);
    // A single file may load the files next to it that do not belong to another extension.
    let others = found.iter().map(|(_, dir, path)| {
        let is_single = *dir == folder.dir;
        if is_single { path } else { dir }
    });
    let broken = scanned.broken.iter().map(|(own, _)| &own.dir);
    let others = others.chain(broken).cloned();
    let shared = Rc::new(ExtensionFolder::shared(folder.dir.clone(), others));
    let budget = Rc::<CoverageBudget>::default();
    for (name, dir, path) in found {
        let is_single = dir == folder.dir;
        let own = HookFolder {
            dir,
            ..folder.clone()
        };
        let sources = if needs_approval {
            let folder = if is_single {
                Rc::clone(&shared)
            } else {
                Rc::new(ExtensionFolder::own(own.dir.clone()))
            };
            LoadableSources::of_extension(ExtensionSources {
                folder,
                budget: Rc::clone(&budget),
            })
        } else {
            LoadableSources::of_folder(&own)
        };
        let mut candidate = inspect_file(&own, path, trust, &sources);
        candidate.found.name = format!("{}{name}", folder.prefix);
        scanned.candidates.push(candidate);
    }
    scanned
        .candidates
        .sort_by(|a, b| a.found.name.cmp(&b.found.name));
    Ok(scanned)
}
