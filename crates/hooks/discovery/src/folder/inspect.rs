//! Inspects one file of a folder: its kind, whether it may run, and whether it is approved.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use tenterhook_files::{hex_digest, read_whole};
use tenterhook_hookfile::{SourceProblem, has_extension, is_cases_file, misnamed_as_cases};
use tenterhook_process::is_executable;
use tenterhook_systems::SYSTEMS;
use tenterhook_trust::{
    ApprovalItem, ApprovalRecord, Approvals, ApprovedFiles, CoverageError, CoverageSearch,
    CoveredFile, FileMemory, Project, ProjectRoots, Trust, TrustState, add, below,
    check_interpreter, inside_copies, interpreter_version, mentioned, missing_interpreter,
    search_path_outside, too_many_files,
};

use super::candidate::{Candidate, INTERPRETERS, Step};
use super::extension_files::extension_name;
use super::found_file::{FileState, FoundFile};
use super::hook_folder::{HookFolder, is_in_force};
use super::language::{Language, is_isolated, misnamed};
use super::loadable_sources::{ExtensionSources, LoadableSources, digest_approved, digest_sources};
use super::script_imports::find_imports;

/// The size of the largest file that is read although it has another size than the approved one, in bytes.
const MAX_READ_CHANGED: u64 = 1 << 20;

/// Inspects a file, and reads it if it may become a hook.
pub(super) fn inspect_file(
    folder: &HookFolder,
    path: PathBuf,
    trust: &Trust,
    sources: &LoadableSources,
) -> Candidate {
    let mut candidate = classify_file(folder, path);
    candidate.is_in_force = is_in_force(folder, trust);
    if candidate.step == Step::Pending {
        read(&mut candidate, folder, trust, sources);
    }
    candidate
}

/// Inspects a file that the user names. A file that is not a hook is broken: the user expects its hooks.
pub(super) fn inspect_named_file(folder: &HookFolder, path: &Path, trust: &Trust) -> Candidate {
    // Anything may be next to a file that is named by itself, so no other file is read.
    let sources = LoadableSources::new(None, |_| false);
    let mut candidate = inspect_file(folder, path.to_owned(), trust, &sources);
    if let Some(programs) = folder.kind.extension_programs() {
        candidate.found.name = extension_name(folder, programs, &folder.dir, path);
    }
    // A program without a folder in its path would be looked up in `PATH`.
    candidate.run = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let is_hook = !matches!(
        candidate.found.state,
        FileState::NotExecutable | FileState::Disabled
    );
    if !is_hook {
        candidate.fail(SourceProblem::from("the file is not a hook").hint(
            "expected a hook file (`.yaml`, `.yml`, `.toml`, `.json`), a script (`.py`, `.js`, `.mjs`, `.ts` …) or an \
             executable",
        ));
    }
    candidate
}

/// Classifies a file as far as possible without reading it.
fn classify_file(folder: &HookFolder, path: PathBuf) -> Candidate {
    let file_name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let is_hidden = file_name.starts_with(b".");
    let runs_executables = folder.kind.runs_executables();
    let broken = |problem: SourceProblem| FileState::Broken {
        problem: Box::new(problem.into_problem(&path)),
    };
    let mut language = None;
    let state = if file_name.ends_with(b".disable") {
        Some(FileState::Disabled)
    } else {
        match fs::metadata(&path) {
            // Editors create such links as locks, next to the files that are open.
            Err(error) if error.kind() == ErrorKind::NotFound && is_hidden => {
                Some(FileState::NotExecutable)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let message = match fs::symlink_metadata(&path) {
                    Ok(_) => "the symbolic link points to a missing file",
                    Err(_) if folder.file.is_some() => "the file does not exist",
                    Err(_) => "the file does not exist, but `package.json` lists it",
                };
                Some(broken(message.into()))
            }
            Err(error) => Some(broken(error.to_string().into())),
            Ok(metadata) if metadata.is_dir() => {
                Some(broken("it is a folder, expected a file".into()))
            }
            Ok(metadata) if !metadata.is_file() => Some(broken("not a regular file".into())),
            Ok(_) if is_cases_file(&path) && !is_hidden => {
                Some(misnamed_as_cases(&path).map_or(FileState::NotExecutable, broken))
            }
            Ok(_) if is_executable(&path) && runs_executables => None,
            Ok(_) => {
                language = Language::of_script(folder.kind, &path);
                let is_program = || {
                    let is_private = file_name.starts_with(b"_") || is_hidden;
                    runs_executables && !is_private && looks_like_program(&path)
                };
                match language {
                    Some(_) => None,
                    None if is_program() => Some(broken(not_executable())),
                    None => Some(match misnamed(folder.kind, &path) {
                        Some(problem) => broken(problem),
                        None => FileState::NotExecutable,
                    }),
                }
            }
        }
    };
    let step = if state.is_some() {
        Step::Final
    } else {
        Step::Pending
    };
    let source_folder = folder.sources_of(&path);
    let found = FoundFile {
        name: format!("{}{}", folder.prefix, folder.name_of(&path)),
        layer: folder.layer,
        kind: folder.kind,
        state: state.unwrap_or(FileState::Untrusted),
        version: String::new(),
        path,
    };
    Candidate {
        source_folder,
        language,
        project: folder.project.clone(),
        step,
        ..Candidate::new(found)
    }
}

/// Returns whether a file is meant to be executed. A file that cannot be read may be.
fn looks_like_program(path: &Path) -> bool {
    starts_like_program(path).unwrap_or(true)
}

fn starts_like_program(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut start)?;
    Ok(start.starts_with(b"#!") || start.starts_with(b"\x7fELF"))
}

/// Returns whether a file that the user names is a script or a program, not a hook file: by its name, or else by
/// its first bytes.
pub fn is_script_or_program(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    let kinds = SYSTEMS.iter().flat_map(|system| system.folders);
    let scripts = kinds.filter_map(|kind| kind.scripts.as_ref());
    let mut extensions = scripts.flat_map(|scripts| scripts.extensions);
    // A pipe is not opened, because that could block.
    let is_program = || path.is_file() && starts_like_program(path).unwrap_or(false);
    extensions.any(|(known, _)| *known == extension) || (!has_extension(path) && is_program())
}

fn not_executable() -> SourceProblem {
    let message = "the file is a program but is not executable";
    SourceProblem::from(message)
        .hint("run `chmod +x` on the file; a file that is not a hook belongs in another folder")
}

/// Reads a file. A file of a project also needs an approval.
fn read(candidate: &mut Candidate, folder: &HookFolder, trust: &Trust, sources: &LoadableSources) {
    let read = match (&folder.project, trust.approvals()) {
        (Some(project), Some(approvals)) => {
            let is_review = trust.reads_unapproved();
            read_project_file(candidate, folder, project, approvals, sources, is_review)
        }
        _ => read_trusted(candidate, folder, sources).map_err(SourceProblem::from),
    };
    if let Err(problem) = read {
        candidate.fail(problem);
    }
}

/// Reads a file that needs no approval, and the sources that a script may load, because the hooks that a
/// script registers also depend on them.
fn read_trusted(
    candidate: &mut Candidate,
    folder: &HookFolder,
    sources: &LoadableSources,
) -> Result<(), String> {
    let (bytes, _) =
        read_whole(&candidate.run).map_err(|error| format!("it cannot be read: {error}"))?;
    candidate.sha256 = hex_digest(&bytes);
    if candidate.language.is_none() {
        candidate.interpreter = interpreter_version(&bytes, &folder.dir);
        return check_program(&bytes, &folder.dir);
    }
    candidate.is_isolated = is_isolated(&bytes);
    candidate.sources_sha256 = sources.digest(&folder.dir)?;
    let all = [candidate.sha256.as_str(), &candidate.sources_sha256];
    candidate.sha256 = hex_digest(all.concat().as_bytes());
    Ok(())
}

/// Looks up the approval of a project's file, and reads the file if it has one. In a review, also reads files
/// without an approval.
fn read_project_file(
    candidate: &mut Candidate,
    folder: &HookFolder,
    project: &Project,
    approvals: &Approvals,
    sources: &LoadableSources,
    is_review: bool,
) -> Result<(), SourceProblem> {
    let path = candidate.found.path.clone();
    let mut item = new_item(candidate, folder, project);
    let approved = approvals.find(&project.dir, &item.source, &item.name);
    let compared = approved.filter(|_| !is_review);
    if !is_review {
        let now = fs::metadata(&path).map_err(|error| error.to_string())?;
        let own = approved.and_then(|approved| approved.files.first());
        let may_be_read =
            |own: &CoveredFile| now.len() <= MAX_READ_CHANGED || own.size == now.len();
        if !own.is_some_and(may_be_read) {
            return leave_unread(candidate, item, approvals);
        }
    }
    add(&mut item.files, &path, &project.dir)?;
    let own = item.files.first().ok_or("it cannot be read")?;
    let known = compared.map(|approved| files_as_approved(own, approved, approvals));
    if let Some(None) = known {
        return leave_unread(candidate, item, approvals);
    }
    let note = check_own(candidate, own, &project.dir, &project.root)?;
    item.unread.extend(note);
    if sources.has_too_many {
        item.unread.push(too_many_files(&folder.dir));
    }
    candidate.sha256.clone_from(&own.sha256);
    let memory = approvals.memory(&project.dir, &item.source, &item.name);
    let known = known.flatten();
    if !add_others(candidate, &mut item, sources, known.as_ref(), &memory)? {
        return leave_unread(candidate, item, approvals);
    }
    let state = approvals.state(&item);
    if state == TrustState::Trusted {
        let copies = approvals
            .keep_copies(&item, &memory)
            .map_err(|error| tenterhook_engine::error_chain(&error))?;
        let own = below(&path, &project.dir);
        candidate.run = copies.join(inside_copies(Path::new(&own)));
        candidate.copies = Some(copies);
        candidate.is_in_force = true;
    } else if is_review {
        let roots = ProjectRoots {
            dir: &project.dir,
            project: &project.dir,
            root: &project.root,
        };
        item.unread.extend(mentioned(&item, roots));
    }
    set_trust_state(candidate, state);
    candidate.item = Some((item, state));
    Ok(())
}

/// Returns the item of a file that was not read yet.
fn new_item(candidate: &Candidate, folder: &HookFolder, project: &Project) -> ApprovalItem {
    let path = &candidate.found.path;
    let source = PathBuf::from(below(&folder.dir, &project.dir));
    ApprovalItem {
        definition: definition(candidate, folder, &below(path, &project.dir)),
        ..ApprovalItem::new(project, source, folder.name_of(path))
    }
}

/// Returns the approved files, if the file itself is as approved. Without their list, the approval denies when it is
/// restored.
fn files_as_approved(
    own: &CoveredFile,
    approved: &ApprovalRecord,
    approvals: &Approvals,
) -> Option<ApprovedFiles> {
    let before = approved.files.first()?;
    if before.sha256 != own.sha256 {
        return None;
    }
    approvals
        .approved_files(approved, std::slice::from_ref(own))
        .ok()
}

/// Adds the other files that a hook may load. Returns false if they are known to differ from the approved ones.
fn add_others(
    candidate: &mut Candidate,
    item: &mut ApprovalItem,
    sources: &LoadableSources,
    known: Option<&ApprovedFiles>,
    memory: &FileMemory,
) -> Result<bool, SourceProblem> {
    let Some(ExtensionSources { folder, budget }) = &sources.extension else {
        let own = item.files.first().map(|file| file.path.clone());
        let others = sources.files(&item.project)?.iter();
        let others = others.filter(|file| Some(&file.path) != own.as_ref());
        item.files.extend(others.cloned());
        if let Some(scripts) = &candidate.found.kind.scripts {
            let texts = item.files.iter().map(|file| &*file.bytes);
            let imported = scripts.project_packages.imported(&item.project, texts);
            for path in imported.map_err(|error| error.to_string())? {
                add(&mut item.files, &path, &item.project)?;
            }
        }
        candidate.sources_sha256 = digest_approved(item);
        return Ok(true);
    };
    let search = CoverageSearch {
        project: &item.project,
        folder,
        entry: &candidate.found.path,
        memory,
        imports: find_imports,
        approved: known,
        budget,
    };
    match search.run() {
        Ok(covered) => {
            candidate.sources_sha256 = digest_sources(&covered);
            item.covered = covered;
            Ok(true)
        }
        Err(CoverageError::Differs { .. }) => Ok(false),
        Err(error) => Err(SourceProblem::from(error.to_string()).hint(error.hint())),
    }
}

/// Leaves a file without an approval, or one that differs from its approval, unread. Its metadata stands for its
/// content, so that a session notices a change.
fn leave_unread(
    candidate: &mut Candidate,
    mut item: ApprovalItem,
    approvals: &Approvals,
) -> Result<(), SourceProblem> {
    let metadata = fs::metadata(&candidate.found.path).map_err(|error| error.to_string())?;
    let modified = metadata.modified().map_err(|error| error.to_string())?;
    item.unread_version = Some(format!("{} {modified:?}", metadata.len()));
    item.files.clear();
    item.covered.clear();
    let state = approvals.state(&item);
    set_trust_state(candidate, state);
    candidate.item = Some((item, state));
    Ok(())
}

fn set_trust_state(candidate: &mut Candidate, state: TrustState) {
    match state {
        TrustState::Trusted => {}
        TrustState::Untrusted => candidate.set_state(FileState::Untrusted),
        // The approved version is restored later.
        TrustState::Changed | TrustState::Displaced => candidate.set_state(FileState::Changed),
    }
}

/// Returns the definition that the user approves.
fn definition(candidate: &Candidate, folder: &HookFolder, shown: &str) -> String {
    let (kind, events) = match candidate.language {
        None if folder.kind.extension_programs().is_some() => (
            "extension",
            "events, tools and commands: those that it registers when it is started",
        ),
        None => (
            "executable",
            "event: the one that it declares when it is asked",
        ),
        Some(_) => (
            "script",
            "events: those that it registers when it is loaded",
        ),
    };
    format!("{kind}: {shown}\n{events}\n")
}

/// Refuses a file whose `#!` line runs anything that is not approved. Returns a note if its interpreter
/// may load more than the file.
pub(super) fn check_own(
    candidate: &mut Candidate,
    own: &CoveredFile,
    dir: &Path,
    root: &Path,
) -> Result<Option<String>, String> {
    let project = Project {
        dir: dir.to_owned(),
        root: root.to_owned(),
    };
    let search = search_path_outside(&project, &INTERPRETERS);
    let search = search.as_deref();
    match candidate.language {
        None => {
            let note = check_interpreter(&own.bytes, dir, root, search)?;
            check_program(&own.bytes, dir)?;
            candidate.interpreter = interpreter_version(&own.bytes, dir);
            Ok(note)
        }
        Some(language) => {
            candidate.is_isolated = is_isolated(&own.bytes);
            let interpreter = language.interpreter().unwrap_or_default();
            let line = format!("#!/usr/bin/env {interpreter}\n");
            check_interpreter(line.as_bytes(), dir, root, search)
        }
    }
}

/// Refuses text without a `#!` line, because a shell would run its content as commands. Also refuses a
/// script whose interpreter is missing.
fn check_program(bytes: &[u8], dir: &Path) -> Result<(), String> {
    let start = bytes.get(..bytes.len().min(512)).unwrap_or_default();
    if !start.starts_with(b"#!") && !start.contains(&0) {
        return Err(
            "the file is executable, but it is neither a program nor a script with a `#!` line; \
             add the line, or run `chmod -x` if nothing should execute the file"
                .to_owned(),
        );
    }
    match missing_interpreter(start, dir) {
        Some(name) => Err(format!(
            "its interpreter `{}` was not found; install it, or correct the `#!` line",
            name.escape_debug()
        )),
        None => Ok(()),
    }
}
