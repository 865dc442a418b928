//! Scans located folders for files that may become hooks.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tenterhook_files::read_whole;
use tenterhook_hookfile::link::{dead_link, dead_target};
use tenterhook_hookfile::{BrokenSource, SourceProblem, is_cases_file, misnamed_as_cases};
use tenterhook_systems::hook_folder::{
    FolderFiles, FolderKind, MAX_FILES, PackageSearch, ScriptPackage,
};
use tenterhook_trust::{CoverageBudget, ExtensionFolder, Trust, TrustState};

use super::candidate::{Candidate, Step};
use super::found_file::FileState;
use super::hook_folder::{HookFolder, is_in_force};
use super::inspect::{inspect_file, inspect_named_file};
use super::language::misnamed;
use super::load_problem::{too_many_files_in_folder, unreadable};
use super::loadable_sources::{ExtensionSources, LoadableSources};
use super::locate::LocatedFolders;
use super::restore::restore;
use super::scan_extensions::scan_extensions;
use crate::disabled::DisabledSources;

/// The total size of the `package.json` files of unapproved packages in one folder that are read, in bytes.
const MAX_DESCRIPTIONS: u64 = 4 << 20;
/// The size of the largest file of a project that is searched for the text of a script, in bytes.
const MAX_SEARCHED: u64 = 1 << 20;

/// The files of all folders, and the folders that cannot be read.
#[derive(Debug)]
pub(super) struct ScannedFolders {
    pub(super) candidates: Vec<Candidate>,
    pub(super) warnings: Vec<String>,
    /// Folders that should be in force but cannot be read.
    pub(super) broken: Vec<BrokenSource>,
    /// Folders of the project that cannot be read and have no approved files.
    pub(super) untrusted: Vec<BrokenSource>,
}

impl ScannedFolders {
    /// Returns the files to probe next, with their indexes: for each name without a hook so far, the first
    /// file whose state is not final.
    pub(super) fn next_to_probe(&mut self) -> Vec<(usize, &Candidate)> {
        let mut winners = HashMap::new();
        for candidate in &self.candidates {
            let is_in_force = candidate.found.state.is_in_force();
            if let (true, Some(key)) = (is_in_force, candidate.unique_name()) {
                winners
                    .entry(key)
                    .or_insert_with(|| candidate.found.path.clone());
            }
        }
        let mut seen = HashSet::new();
        let mut asked = Vec::new();
        for (index, candidate) in self.candidates.iter_mut().enumerate() {
            if candidate.step == Step::Final {
                continue;
            }
            let key = candidate.unique_name();
            if let Some(by) = key.as_ref().and_then(|key| winners.get(key)) {
                candidate.set_state(FileState::Shadowed { by: by.clone() });
            } else if key.is_none_or(|key| seen.insert(key)) {
                asked.push(index);
            }
        }
        let candidates = &self.candidates;
        asked
            .into_iter()
            .filter_map(|index| Some((index, candidates.get(index)?)))
            .collect()
    }

    /// Leaves out files that the command line also names, because naming a file approves it.
    fn shadow_named(&mut self) {
        let whole = |candidate: &Candidate| {
            let path = &candidate.found.path;
            fs::canonicalize(path).unwrap_or_else(|_| path.clone())
        };
        let mut named = HashMap::new();
        for (index, candidate) in self.candidates.iter().enumerate() {
            if candidate.found.is_named() {
                let first = (index, candidate.found.path.clone());
                named.entry(whole(candidate)).or_insert(first);
            }
        }
        if named.is_empty() {
            return;
        }
        for (index, candidate) in self.candidates.iter_mut().enumerate() {
            let whole = whole(candidate);
            // If a link replaced an approved file, it does not become the link's target.
            if candidate.diverged.is_some() && whole != candidate.found.path {
                continue;
            }
            let first = named.get(&whole);
            if let Some((_, by)) = first.filter(|(first, _)| *first != index) {
                // The file that the command line names needs no approval.
                candidate
                    .item
                    .take_if(|(_, state)| *state != TrustState::Trusted);
                candidate.set_state(FileState::Shadowed { by: by.clone() });
            }
        }
    }

    /// Adds a folder that cannot be read.
    fn fail(
        &mut self,
        folder: &HookFolder,
        problem: SourceProblem,
        trust: &Trust,
        disabled: &DisabledSources,
    ) {
        if disabled.contains(&folder.dir, folder.layer) {
            return;
        }
        let broken = BrokenSource::of(&folder.dir, folder.layer, folder.kind.system, problem);
        let sources = if is_in_force(folder, trust) {
            &mut self.broken
        } else {
            &mut self.untrusted
        };
        // One broken link can replace several folders.
        if sources.iter().all(|known| known.path != broken.path) {
            sources.push(broken);
        }
    }
}

/// Scans every folder. A folder that cannot be read does not affect the others.
pub(super) fn scan(
    places: LocatedFolders,
    trust: &Trust,
    disabled: &DisabledSources,
) -> ScannedFolders {
    let mut scanned = ScannedFolders {
        candidates: Vec::new(),
        warnings: places.warnings,
        broken: Vec::new(),
        untrusted: Vec::new(),
    };
    for (folder, problem) in places.broken {
        scanned.fail(&folder, problem, trust, disabled);
    }
    for folder in &places.folders {
        let first = scanned.candidates.len();
        if let Some(file) = &folder.file {
            let candidate = inspect_named_file(folder, file, trust);
            scanned.candidates.push(candidate);
        } else if let Some(link) = dead_link(&folder.dir).filter(|_| !folder.is_named()) {
            let problem = dead_target(&link);
            let link = HookFolder {
                dir: link,
                ..folder.clone()
            };
            scanned.fail(&link, problem, trust, disabled);
        } else if let Err(problem) = scan_folder(folder, trust, &mut scanned) {
            scanned.fail(folder, problem, trust, disabled);
        }
        if let Some(approvals) = trust.approvals() {
            restore(folder, approvals, &mut scanned.candidates, first);
        }
    }
    for candidate in &mut scanned.candidates {
        if disabled.contains(&candidate.found.path, candidate.found.layer) {
            candidate.set_state(FileState::TurnedOff);
        }
    }
    scanned.shadow_named();
    scanned
}

/// Files that may load the same sources.
struct Group {
    paths: Vec<PathBuf>,
    sources: LoadableSources,
}

fn scan_folder(
    folder: &HookFolder,
    trust: &Trust,
    scanned: &mut ScannedFolders,
) -> Result<(), SourceProblem> {
    let groups = match &folder.kind.files {
        FolderFiles::Extensions(programs) => {
            let found = scan_extensions(folder, programs, trust)?;
            for (broken, problem) in found.broken {
                scanned.fail(&broken, problem, trust, &DisabledSources::default());
            }
            scanned.candidates.extend(found.candidates);
            return Ok(());
        }
        FolderFiles::Packages(search) => packages(folder, search, trust)?,
        FolderFiles::All => plain_files(folder, |_| true)?,
        FolderFiles::Containing(text) => {
            plain_files(folder, |path| is_own_script(folder.kind, text, path))?
        }
    };
    for Group { paths, sources } in groups {
        let candidates = paths
            .into_iter()
            .map(|path| inspect_file(folder, path, trust, &sources));
        scanned.candidates.extend(candidates);
    }
    Ok(())
}

/// Returns the files directly in a folder, in the byte order of their names.
fn plain_files(
    folder: &HookFolder,
    is_own: impl Fn(&Path) -> bool,
) -> Result<Vec<Group>, SourceProblem> {
    let mut paths = Vec::new();
    for entry in tenterhook_files::entries(&folder.dir).map_err(|error| unreadable(&error))? {
        let entry = entry.map_err(|error| unreadable(&error))?;
        if paths.len() == MAX_FILES {
            return Err(too_many_files_in_folder());
        }
        let path = entry.path();
        // Like a folder, a link to a folder is not a hook.
        let is_folder = path.is_dir();
        let is_hook = if is_cases_file(&path) {
            misnamed_as_cases(&path).is_some()
        } else {
            is_own(&path)
        };
        if !is_folder && is_hook {
            paths.push(path);
        }
    }
    paths.sort();
    let sources = LoadableSources::of_folder(folder);
    Ok(vec![Group { paths, sources }])
}

/// Returns the entry files of packages. An entry may load the files of its own folder. An entry that is a
/// single file may load the files next to it that do not belong to a package.
fn packages(
    folder: &HookFolder,
    search: &PackageSearch,
    trust: &Trust,
) -> Result<Vec<Group>, SourceProblem> {
    let needs_approval = !is_in_force(folder, trust);
    let left = Cell::new(needs_approval.then_some(MAX_DESCRIPTIONS));
    let read = |path: &Path| read_description(path, &left);
    let found = if folder.is_named() {
        (search.named)(&folder.dir, &read)
    } else {
        (search.in_folder)(&folder.dir, &read)
    };
    let found = match found {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound && !folder.is_named() => {
            return Ok(Vec::new());
        }
        Err(error) if error.raw_os_error().is_some() && error.kind() == ErrorKind::NotFound => {
            return Err("there is no such file or folder".into());
        }
        // The search of a system says what is missing in a folder.
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(error.to_string().into()),
        Err(error) => return Err(unreadable(&error)),
    };
    let own: Vec<&PathBuf> = found
        .iter()
        .flat_map(|package| package.folder.iter().chain(&package.entries))
        .collect();
    // Only packages that a single file imports are part of it.
    let left_out = own.iter().copied().cloned();
    let left_out = left_out.chain([folder.dir.join("node_modules")]);
    let shared = Rc::new(ExtensionFolder::shared(folder.dir.clone(), left_out));
    let budget = Rc::<CoverageBudget>::default();
    let extension = |folder: Rc<ExtensionFolder>| {
        let budget = Rc::clone(&budget);
        LoadableSources::of_extension(ExtensionSources { folder, budget })
    };
    let group = |package: &ScriptPackage| {
        let paths = package.entries.clone();
        let dir = package.folder.as_deref();
        let sources = match dir {
            Some(dir) if needs_approval => extension(Rc::new(ExtensionFolder::own(dir.to_owned()))),
            None if needs_approval => extension(Rc::clone(&shared)),
            // One entry may load another.
            Some(dir) => LoadableSources::new(Some(dir), |path| {
                paths.len() > 1 || !paths.iter().any(|entry| entry == path)
            }),
            // Unrelated files may be next to a file that was named by itself.
            None if folder.is_named() && own.len() == 1 => LoadableSources::new(None, |_| true),
            None => LoadableSources::new(Some(&folder.dir), |path| {
                !own.iter().any(|own| path.starts_with(own))
            }),
        };
        Group { paths, sources }
    };
    Ok(found.iter().map(group).collect())
}

/// Reads the description of a package, if its size is not above what is `left`. An unapproved description must not
/// cost much time. Without it, approved extensions run from their copies.
fn read_description(path: &Path, left: &Cell<Option<u64>>) -> io::Result<Vec<u8>> {
    if let Some(bytes) = left.get() {
        let rest = bytes.checked_sub(fs::metadata(path)?.len());
        let too_large = || io::Error::other("the descriptions of the packages are too large");
        left.set(Some(rest.ok_or_else(too_large)?));
    }
    read_whole(path).map(|(bytes, _)| bytes)
}

/// Returns whether a file is a script of the system, or would be with another extension. Decides by text
/// that such scripts contain. A large file counts as one, because reading it would take long.
fn is_own_script(kind: &FolderKind, text: &[u8], path: &Path) -> bool {
    (kind.language(path).is_some() || misnamed(kind, path).is_some())
        && (fs::metadata(path).is_ok_and(|metadata| metadata.len() > MAX_SEARCHED)
            || read_whole(path)
                .is_ok_and(|(bytes, _)| memchr::memmem::find(&bytes, text).is_some()))
}
