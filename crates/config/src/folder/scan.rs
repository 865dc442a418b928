//! What stands in folders, and which file of a name counts.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use tenterhook::{EventName, Layer};
use tenterhook_handlers::worker::Registered;
use tenterhook_process::is_executable;

use super::extension;
use super::pi::{self, Extension};
use super::place::Places;
use super::script::{self, Language};
use super::{Answer, FileState, FoundFile, HookFolder, Speaks, approved};
use crate::broken::{BrokenSource, Fault};
use crate::disabled::DisabledSources;
use crate::link::{dead_link, dead_target};
use crate::project::Project;
use crate::trust::{
    Approvals, DivergedHook, Ground, Item, ItemFile, Order, Trust, TrustState, add, below,
    check_interpreter, hex_digest, inside_copies, interpreter_version, mentioned,
    missing_interpreter, read_whole, sources_below, too_many_beside,
};

/// The most files of one folder that are looked at.
pub(super) const MOST_FILES: usize = 8_192;

/// A file that may become a hook.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) found: FoundFile,
    /// What is executed: the file, or the approved copy of it.
    pub(super) run: PathBuf,
    /// The SHA-256 of its bytes, and of those beside it where that needs no approval; empty where they were not read.
    pub(super) sha256: String,
    /// The SHA-256 of the sources beside it; empty where they were not read.
    pub(super) beside: String,
    /// What stands for the interpreter of a program that is a script; empty for others.
    pub(super) interpreter: String,
    /// What it is for the approvals, and what they say. For an approved version that is in force, this is what the project has now.
    pub(super) item: Option<(Item, TrustState)>,
    /// How the project differs from what was approved, and what that means.
    pub(super) diverged: Option<DivergedHook>,
    /// The event of an untrusted file, where an older version of it said so.
    pub(super) known_event: Option<EventName>,
    /// The language, if it is a script that a worker serves.
    pub(super) language: Option<Language>,
    /// It runs, or would if it could be loaded: it is not the project's, or something of its name was approved there.
    pub(super) is_in_force: bool,
    /// It shares its worker with no other file.
    pub(super) is_isolated: bool,
    /// What it registers beside hooks, if it is such a script.
    pub(super) registered: Registered,
    pub(super) project: Option<Project>,
    /// The folder of the sources that it may load.
    pub(super) sources: Option<PathBuf>,
    pub(super) step: Step,
}

/// How far a candidate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It could be run; nobody asked it yet.
    Waits,
    /// Its state is final.
    Settled,
}

impl Candidate {
    pub(super) fn project(&self) -> Option<&Project> {
        self.project.as_ref()
    }

    pub(super) fn settle(&mut self, state: FileState) {
        self.found.state = state;
        self.step = Step::Settled;
    }

    pub(super) fn fail(&mut self, fault: Fault) {
        let problem = fault.into_problem(&self.found.path);
        self.settle(FileState::Broken {
            problem: Box::new(problem),
        });
    }

    /// Returns the name that only one file of a system has.
    fn key(&self) -> Option<(Speaks, String)> {
        // What is managed is never taken away.
        let is_shadowed = self.found.layer != Layer::System && self.found.speaks.system().shadows;
        is_shadowed.then(|| (self.found.speaks, self.found.name.clone()))
    }
}

/// What was found.
#[derive(Debug)]
pub(super) struct Scanned {
    pub(super) candidates: Vec<Candidate>,
    pub(super) warnings: Vec<String>,
    /// Folders that are in force and cannot be read.
    pub(super) broken: Vec<BrokenSource>,
    /// Folders of the project that cannot be read and of which nothing was approved.
    pub(super) untrusted: Vec<BrokenSource>,
}

impl Scanned {
    /// Returns the places of the files to ask next: of each name the first that is not settled, where none is a hook yet.
    pub(super) fn unasked(&mut self) -> Vec<(usize, &Candidate)> {
        let mut winners = HashMap::new();
        for candidate in &self.candidates {
            let is_in_force = candidate.found.state.is_in_force();
            if let (true, Some(key)) = (is_in_force, candidate.key()) {
                winners
                    .entry(key)
                    .or_insert_with(|| candidate.found.path.clone());
            }
        }
        let mut seen = HashSet::new();
        let mut asked = Vec::new();
        for (index, candidate) in self.candidates.iter_mut().enumerate() {
            if candidate.step == Step::Settled {
                continue;
            }
            let key = candidate.key();
            if let Some(by) = key.as_ref().and_then(|key| winners.get(key)) {
                candidate.settle(FileState::Shadowed { by: by.clone() });
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

    /// Leaves out what is named on the command line where it is found again: whoever names it answers for it.
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
            // An approved file that was replaced with a link is not the file that the link leads to.
            if candidate.diverged.is_some() && whole != candidate.found.path {
                continue;
            }
            let first = named.get(&whole);
            if let Some((_, by)) = first.filter(|(first, _)| *first != index) {
                // What is not approved needs no approval then.
                candidate
                    .item
                    .take_if(|(_, state)| *state != TrustState::Trusted);
                candidate.settle(FileState::Shadowed { by: by.clone() });
            }
        }
    }

    /// Takes the answers of files, by their places.
    pub(super) fn settle(&mut self, answers: Vec<(usize, Answer)>) {
        for (index, answer) in answers {
            let Some(candidate) = self.candidates.get_mut(index) else {
                continue;
            };
            let speaks = candidate.found.speaks;
            let state = answer.and_then(|declared| {
                if speaks == Speaks::KodeletExtension {
                    return extension::state(&declared);
                }
                // What a worker registers is an object; the name of an event is none.
                let is_object = speaks == Speaks::Tenterhook && declared.0.starts_with('{');
                if candidate.language.is_some() || is_object {
                    candidate.language.get_or_insert(Language::Program);
                    return script::state(candidate, &declared.0);
                }
                let (event, _) = speaks
                    .event(&declared.0)
                    .ok_or_else(|| speaks.unknown(&declared.0))?;
                Ok(FileState::Hook {
                    event,
                    declared: declared.0,
                })
            });
            match state {
                Ok(state) => candidate.settle(state),
                Err(fault) => candidate.fail(fault),
            }
        }
    }
}

/// Looks at every folder. A folder that cannot be read does not affect the others.
pub(super) fn scan(places: Places, trust: &Trust, disabled: &DisabledSources) -> Scanned {
    let mut scanned = Scanned {
        candidates: Vec::new(),
        warnings: places.warnings,
        broken: Vec::new(),
        untrusted: Vec::new(),
    };
    for (folder, fault) in places.broken {
        scanned.fail(&folder, fault, trust, disabled);
    }
    for folder in &places.folders {
        let first = scanned.candidates.len();
        if let Some(link) = dead_link(&folder.dir).filter(|_| !folder.is_named()) {
            let fault = dead_target(&link);
            let link = HookFolder {
                dir: link,
                ..folder.clone()
            };
            scanned.fail(&link, fault, trust, disabled);
        } else if let Err(fault) = scan_folder(folder, trust, &mut scanned) {
            scanned.fail(folder, fault, trust, disabled);
        }
        if let Some(approvals) = trust.approvals() {
            approved::restore(folder, approvals, &mut scanned.candidates, first);
        }
    }
    for candidate in &mut scanned.candidates {
        if disabled.contains(&candidate.found.path, candidate.found.layer) {
            candidate.settle(FileState::TurnedOff);
        }
    }
    scanned.shadow_named();
    scanned
}

impl Scanned {
    /// Notes a folder that cannot be read.
    pub(super) fn fail(
        &mut self,
        folder: &HookFolder,
        fault: Fault,
        trust: &Trust,
        disabled: &DisabledSources,
    ) {
        if disabled.contains(&folder.dir, folder.layer) {
            return;
        }
        let system = folder.speaks.as_str();
        let broken = BrokenSource::of(&folder.dir, folder.layer, system, fault);
        let sources = if is_in_force(folder, trust) {
            &mut self.broken
        } else {
            &mut self.untrusted
        };
        // One link may stand for several folders.
        if sources.iter().all(|known| known.path != broken.path) {
            sources.push(broken);
        }
    }
}

/// Says whether hooks of a folder run as they are there: what a project brings only does where it was approved, and what was
/// approved runs whatever the folder is now.
fn is_in_force(folder: &HookFolder, trust: &Trust) -> bool {
    folder.project.is_none() || trust.approvals().is_none()
}

/// Files of a folder that may load the same sources.
struct Group {
    paths: Vec<PathBuf>,
    beside: Beside,
}

fn scan_folder(folder: &HookFolder, trust: &Trust, scanned: &mut Scanned) -> Result<(), Fault> {
    let groups = match folder.speaks {
        Speaks::KodeletExtension => return extension::scan(folder, trust, scanned),
        Speaks::Pi => pi_extensions(folder)?,
        Speaks::Kodelet | Speaks::Tenterhook | Speaks::Operator | Speaks::Morphix => {
            plain_files(folder)?
        }
    };
    for Group { paths, beside } in groups {
        let candidates = paths
            .into_iter()
            .map(|path| look_at(folder, path, trust, &beside));
        scanned.candidates.extend(candidates);
    }
    Ok(())
}

/// Returns the files that stand in a folder, in the byte order of their names.
fn plain_files(folder: &HookFolder) -> Result<Vec<Group>, Fault> {
    let entries = match fs::read_dir(&folder.dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(&error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(&error))?;
        if paths.len() == MOST_FILES {
            return Err(too_many());
        }
        let path = entry.path();
        // A link to a folder is what the folder would be: not a hook.
        let is_folder = path.is_dir();
        if !is_folder && (folder.speaks != Speaks::Morphix || is_of_morphix(&path)) {
            paths.push(path);
        }
    }
    paths.sort();
    let beside = Beside::of_folder(folder);
    Ok(vec![Group { paths, beside }])
}

/// Makes the fault of a folder that is there and cannot be read.
pub(super) fn unreadable(error: &io::Error) -> Fault {
    Fault::from(format!("the folder cannot be read: {error}")).hint("make it readable")
}

/// Makes the fault of a folder that has so many files that some would be left out.
pub(super) fn too_many() -> Fault {
    Fault::from(format!("the folder has more than {MOST_FILES} files"))
        .hint("move other files away")
}

/// Returns the entries of pi's extensions. Each may load what stands in its own folder; one that is a file, what stands
/// beside it and is no extension.
fn pi_extensions(folder: &HookFolder) -> Result<Vec<Group>, Fault> {
    let found = if folder.is_named() {
        pi::named(&folder.dir)
    } else {
        pi::below(&folder.dir)
    };
    let found = match found {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound && !folder.is_named() => {
            return Ok(Vec::new());
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(error.to_string().into()),
        Err(error) => return Err(unreadable(&error)),
    };
    let own: Vec<&PathBuf> = found
        .iter()
        .flat_map(|extension| extension.folder.iter().chain(&extension.entries))
        .collect();
    let group = |extension: &Extension| {
        let paths = extension.entries.clone();
        let dir = extension.folder.as_deref();
        let beside = match dir {
            // One entry may load another.
            Some(dir) => Beside::new(Some(dir), |path| {
                paths.len() > 1 || !paths.iter().any(|entry| entry == path)
            }),
            // What a file that was named by itself has beside it is anything.
            None if folder.is_named() && own.len() == 1 => Beside::new(None, |_| true),
            None => Beside::new(Some(&folder.dir), |path| {
                !own.iter().any(|own| path.starts_with(own))
            }),
        };
        Group { paths, beside }
    };
    Ok(found.iter().map(group).collect())
}

/// Says whether a file is morphix's. Its folders have names that other projects use for something else.
fn is_of_morphix(path: &Path) -> bool {
    let morphix = Speaks::Morphix;
    (morphix.language(path).is_some() || morphix.misnamed(path).is_some())
        && read_whole(path)
            .is_ok_and(|(bytes, _)| memchr::memmem::find(&bytes, b"hooks_registry").is_some())
}

/// Looks at a file, and reads it where it may become a hook.
pub(super) fn look_at(
    folder: &HookFolder,
    path: PathBuf,
    trust: &Trust,
    beside: &Beside,
) -> Candidate {
    let mut candidate = look(folder, path);
    candidate.is_in_force = is_in_force(folder, trust);
    if candidate.step == Step::Waits {
        read(&mut candidate, folder, trust, beside);
    }
    candidate
}

/// Says whether a file is meant to be executed.
fn looks_like_program(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4).read_to_end(&mut start));
    read.is_err() || start.starts_with(b"#!") || start.starts_with(b"\x7fELF")
}

fn not_executable(path: &Path) -> Fault {
    let message = "the file is a program and may not be executed";
    Fault::from(message).hint(format!(
        "run `chmod +x '{}'`; a file that is not a hook belongs in another folder",
        path.display()
    ))
}

/// Says what can be said of a file without reading it.
fn look(folder: &HookFolder, path: PathBuf) -> Candidate {
    let file_name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let is_hidden = file_name.starts_with(b".");
    let runs_executables = folder.speaks.system().runs_executables;
    let broken = |fault: Fault| FileState::Broken {
        problem: Box::new(fault.into_problem(&path)),
    };
    let mut language = None;
    let state = if file_name.ends_with(b".disable") {
        Some(FileState::Disabled)
    } else {
        match fs::metadata(&path) {
            // Editors leave such links beside the files that they have open.
            Err(error) if error.kind() == ErrorKind::NotFound && is_hidden => {
                Some(FileState::NotExecutable)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let message = match fs::symlink_metadata(&path) {
                    Ok(_) => "the link leads nowhere",
                    Err(_) => "the file does not exist, and `package.json` lists it",
                };
                Some(broken(message.into()))
            }
            Err(error) => Some(broken(error.to_string().into())),
            Ok(metadata) if !metadata.is_file() => Some(broken("not a regular file".into())),
            Ok(_) if is_executable(&path) && runs_executables => None,
            Ok(_) => {
                language = folder.speaks.language(&path);
                let is_program = || {
                    let is_private = file_name.starts_with(b"_") || is_hidden;
                    runs_executables && !is_private && looks_like_program(&path)
                };
                match language {
                    Some(_) => None,
                    None if is_program() => Some(broken(not_executable(&path))),
                    None => Some(match folder.speaks.misnamed(&path) {
                        Some(fault) => broken(fault),
                        None => FileState::NotExecutable,
                    }),
                }
            }
        }
    };
    let step = if state.is_some() {
        Step::Settled
    } else {
        Step::Waits
    };
    let sources = folder.sources_of(&path);
    let found = FoundFile {
        name: format!("{}{}", folder.prefix, folder.name_of(&path)),
        layer: folder.layer,
        speaks: folder.speaks,
        state: state.unwrap_or(FileState::Untrusted),
        version: String::new(),
        path,
    };
    Candidate {
        sources,
        language,
        project: folder.project.clone(),
        step,
        ..Candidate::new(found)
    }
}

impl Candidate {
    /// Makes the candidate of a file of which nothing was read yet.
    pub(super) fn new(found: FoundFile) -> Self {
        Self {
            run: found.path.clone(),
            found,
            sha256: String::new(),
            beside: String::new(),
            interpreter: String::new(),
            item: None,
            diverged: None,
            known_event: None,
            language: None,
            is_in_force: true,
            is_isolated: false,
            registered: Registered::default(),
            project: None,
            sources: None,
            step: Step::Waits,
        }
    }
}

/// Reads a file, and asks the approvals where a project brings it.
fn read(candidate: &mut Candidate, folder: &HookFolder, trust: &Trust, beside: &Beside) {
    let read = match (&folder.project, trust.approvals()) {
        (Some(project), Some(approvals)) => {
            read_brought(candidate, folder, project, approvals, beside)
        }
        _ => read_trusted(candidate, folder, beside),
    };
    if let Err(problem) = read {
        candidate.fail(problem.into());
    }
}

/// Reads a file that needs no approval. What a script declares depends on the sources beside it too.
fn read_trusted(
    candidate: &mut Candidate,
    folder: &HookFolder,
    beside: &Beside,
) -> Result<(), String> {
    let (bytes, _) =
        read_whole(&candidate.run).map_err(|error| format!("it cannot be read: {error}"))?;
    candidate.sha256 = hex_digest(&bytes);
    if candidate.language.is_none() {
        candidate.interpreter = interpreter_version(&bytes, &folder.dir);
        return check_program(&bytes, &folder.dir);
    }
    candidate.is_isolated = script::is_isolated(&bytes);
    candidate.beside = beside.digest(&folder.dir)?;
    let all = [candidate.sha256.as_str(), &candidate.beside];
    candidate.sha256 = hex_digest(all.concat().as_bytes());
    Ok(())
}

fn read_brought(
    candidate: &mut Candidate,
    folder: &HookFolder,
    project: &Project,
    approvals: &Approvals,
    beside: &Beside,
) -> Result<(), String> {
    let path = candidate.found.path.clone();
    let mut files = Vec::new();
    add(&mut files, &path, &project.dir)?;
    let own = files.first().ok_or("it cannot be read")?;
    let mut unread: Vec<String> = Vec::new();
    unread.extend(check_own(candidate, own, &project.dir, &project.root)?);
    if beside.is_too_much {
        unread.push(too_many_beside(&folder.dir));
    }
    candidate.sha256.clone_from(&own.sha256);
    candidate.beside = beside.digest(&project.dir)?;
    let own = files.first().map(|file| file.path.clone());
    let others = beside.files(&project.dir)?.iter();
    files.extend(
        others
            .filter(|file| Some(&file.path) != own.as_ref())
            .cloned(),
    );
    let shown = below(&path, &project.dir);
    let mut item = Item {
        project: project.dir.clone(),
        root: project.root.clone(),
        hook_text: None,
        named: Vec::new(),
        source: below(&folder.dir, &project.dir).into(),
        name: folder.name_of(&path),
        definition: match candidate.language {
            None if folder.speaks == Speaks::KodeletExtension => {
                format!(
                    "extension: {shown}\nevents, tools and commands: those that it registers when it is started\n"
                )
            }
            None => {
                format!("executable: {shown}\nevent: the one that it declares when it is asked\n")
            }
            Some(_) => {
                format!("script: {shown}\nevents: those that it registers when it is loaded\n")
            }
        },
        files,
        order: Order::default(),
        events: Vec::new(),
        unread,
    };
    let state = approvals.state(&item);
    if state != TrustState::Trusted {
        let ground = Ground {
            dir: &project.dir,
            project: &project.dir,
            root: &project.root,
        };
        item.unread.extend(mentioned(&item.files, ground));
    }
    match state {
        TrustState::Trusted => {
            let copies = approvals
                .keep_copies(&item)
                .map_err(|error| tenterhook::error_chain(&error))?;
            candidate.run = copies.join(inside_copies(Path::new(&shown)));
            candidate.is_in_force = true;
        }
        TrustState::Untrusted => candidate.settle(FileState::Untrusted),
        // What was approved takes its place.
        TrustState::Changed | TrustState::Displaced => candidate.settle(FileState::Changed),
    }
    candidate.item = Some((item, state));
    Ok(())
}

/// Refuses a file whose interpreter nobody approved. Returns a note about an interpreter that may run more than the file.
pub(super) fn check_own(
    candidate: &mut Candidate,
    own: &ItemFile,
    dir: &Path,
    root: &Path,
) -> Result<Option<String>, String> {
    match candidate.language {
        None => {
            let note = check_interpreter(&own.bytes, dir, root)?;
            check_program(&own.bytes, dir)?;
            candidate.interpreter = interpreter_version(&own.bytes, dir);
            Ok(note)
        }
        Some(language) => {
            candidate.is_isolated = script::is_isolated(&own.bytes);
            let interpreter = language.interpreter().unwrap_or_default();
            let line = format!("#!/usr/bin/env {interpreter}\n");
            check_interpreter(line.as_bytes(), dir, root)
        }
    }
}

/// Refuses text without a `#!` line, since a shell would run whatever it holds, and a script whose interpreter is missing.
fn check_program(bytes: &[u8], dir: &Path) -> Result<(), String> {
    let start = bytes.get(..bytes.len().min(512)).unwrap_or_default();
    if !start.starts_with(b"#!") && !start.contains(&0) {
        return Err("neither a program nor a script with a `#!` line".to_owned());
    }
    match missing_interpreter(start, dir) {
        Some(name) => Err(format!(
            "its interpreter `{}` was not found",
            name.escape_debug()
        )),
        None => Ok(()),
    }
}

/// The sources beside executables, which they may load: read once for a folder, and only when a project's file needs them.
#[derive(Debug)]
pub(super) struct Beside {
    sources: Vec<PathBuf>,
    is_too_much: bool,
    files: OnceCell<Result<Vec<ItemFile>, String>>,
}

impl Beside {
    /// Looks at what stands beside the hooks of a folder.
    pub(super) fn of_folder(folder: &HookFolder) -> Self {
        let is_needed = folder.project.is_some()
            || !matches!(folder.speaks, Speaks::Kodelet | Speaks::KodeletExtension);
        let is_hook = |path: &Path| match folder.speaks {
            Speaks::KodeletExtension => extension::is_named_so(path),
            Speaks::Kodelet
            | Speaks::Tenterhook
            | Speaks::Operator
            | Speaks::Morphix
            | Speaks::Pi => is_executable(path) || folder.speaks.language(path).is_some(),
        };
        let is_own = |path: &Path| path.parent() == Some(&folder.dir) && is_hook(path);
        Self::new(is_needed.then_some(&folder.dir), |path| !is_own(path))
    }

    /// Looks at what stands in a folder and below it.
    fn new(dir: Option<&Path>, is_wanted: impl Fn(&Path) -> bool) -> Self {
        let sources = dir.map(|dir| sources_below(dir, is_wanted));
        Self {
            is_too_much: matches!(sources, Some(None)),
            sources: sources.flatten().unwrap_or_default(),
            files: OnceCell::new(),
        }
    }

    /// Returns what stands for all of the sources: other ones have another digest.
    fn digest(&self, base: &Path) -> Result<String, String> {
        Ok(digest_of(self.files(base)?))
    }

    /// Returns the sources, named below a folder.
    fn files(&self, base: &Path) -> Result<&[ItemFile], String> {
        let files = self.files.get_or_init(|| {
            let mut files = Vec::new();
            for path in &self.sources {
                add(&mut files, path, base)?;
            }
            Ok(files)
        });
        files.as_deref().map_err(Clone::clone)
    }
}

/// Returns what stands for the sources next to a file.
pub(super) fn digest_of<'a>(files: impl IntoIterator<Item = &'a ItemFile>) -> String {
    let mut text = String::new();
    for file in files {
        text.push_str(&file.sha256);
        text.push_str(&file.path.to_string_lossy());
    }
    hex_digest(text.as_bytes())
}
