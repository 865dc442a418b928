//! Restores approved files of a folder that the project changed or no longer has.
//!
//! They are loaded from their approved copies, at the position of the project's files.

use std::path::Path;

use tenterhook_trust::{
    ApprovalItem, ApprovalRecord, Approvals, DivergedHook, Divergence, Project, TrustState,
    displaced_reason, inside_copies, unrunnable_reason,
};

use super::candidate::Candidate;
use super::extension_files::extension_name;
use super::found_file::{FileState, FoundFile};
use super::hook_folder::HookFolder;
use super::inspect::check_own;
use super::language::Language;
use super::loadable_sources::digest_approved;

/// Replaces changed files of a folder with their approved versions, and adds the missing ones. The files
/// of the folder are the candidates from index `first` on.
pub(super) fn restore(
    folder: &HookFolder,
    approvals: &Approvals,
    candidates: &mut Vec<Candidate>,
    first: usize,
) {
    let Some(project) = &folder.project else {
        return;
    };
    for approved in approvals.approved(&project.dir) {
        let Some(own) = folder_of(folder, project, approved) else {
            continue;
        };
        let path = own.dir.join(&approved.name);
        let mut found = candidates.iter().skip(first);
        let place = found.position(|candidate| candidate.found.path == path);
        let place = place.map(|place| place + first);
        let now = place.and_then(|place| candidates.get_mut(place));
        let is_trusted = |candidate: &Candidate| {
            let state = candidate.item.as_ref().map(|(_, state)| *state);
            state == Some(TrustState::Trusted)
        };
        match now {
            Some(now) if is_trusted(now) => {}
            Some(now) => {
                let item = now.item.take();
                let divergence = if item.is_some() {
                    Divergence::Changed
                } else {
                    Divergence::Missing
                };
                *now = approved_candidate(&own, project, approvals, approved, divergence);
                now.item = item;
            }
            None => {
                let candidate =
                    approved_candidate(&own, project, approvals, approved, Divergence::Missing);
                let later = candidates.iter().skip(first);
                let before = later
                    .take_while(|other| other.found.path < candidate.found.path)
                    .count();
                candidates.insert(first + before, candidate);
            }
        }
    }
}

/// Returns the folder of an approved file, if it is this folder or the folder of one of its extensions.
fn folder_of(
    folder: &HookFolder,
    project: &Project,
    approved: &ApprovalRecord,
) -> Option<HookFolder> {
    let dir = project.dir.join(&approved.source);
    let is_own = dir == folder.dir;
    let is_of_extension =
        folder.kind.extension_programs().is_some() && dir.parent() == Some(&folder.dir);
    (is_own || is_of_extension).then(|| HookFolder {
        dir,
        ..folder.clone()
    })
}

/// Creates the candidate of an approved file.
fn approved_candidate(
    folder: &HookFolder,
    project: &Project,
    approvals: &Approvals,
    approved: &ApprovalRecord,
    divergence: Divergence,
) -> Candidate {
    let path = folder.dir.join(&approved.name);
    let name = match folder.kind.extension_programs() {
        Some(programs) => extension_name(folder, programs, &approved.source, &path),
        None => format!("{}{}", folder.prefix, approved.name),
    };
    let mut candidate = Candidate {
        project: Some(project.clone()),
        ..Candidate::new(FoundFile {
            path,
            name,
            layer: folder.layer,
            kind: folder.kind,
            state: FileState::Changed,
            version: String::new(),
        })
    };
    let objection = approvals.objection(&project.dir, approved);
    let (divergence, denies) = if let Some(problem) = objection {
        let reason = displaced_reason(&approved.name, &problem);
        (Divergence::OtherRepository, Some(reason))
    } else {
        let restored = approvals
            .restore(&project.dir, approved)
            .and_then(|item| load(&mut candidate, folder, project, approvals, approved, &item));
        let problem = restored.err();
        let reason = problem.map(|problem| unrunnable_reason(&approved.name, &problem));
        (divergence, reason)
    };
    if let Some(reason) = &denies {
        candidate.set_state(FileState::Denied {
            reason: reason.clone(),
        });
    }
    candidate.diverged = Some(DivergedHook::new(
        &project.dir,
        approved,
        divergence,
        denies,
    ));
    candidate
}

/// Makes a candidate run the approved copies. The error is the reason why it cannot.
fn load(
    candidate: &mut Candidate,
    folder: &HookFolder,
    project: &Project,
    approvals: &Approvals,
    approved: &ApprovalRecord,
    item: &ApprovalItem,
) -> Result<(), String> {
    let own = item.files.first();
    let own = own.ok_or("the record of the approval is damaged: it has no file")?;
    let is_program = own.is_executable && folder.kind.runs_executables();
    candidate.language =
        Language::of_script(folder.kind, &candidate.found.path).filter(|_| !is_program);
    if !is_program && candidate.language.is_none() {
        return Err("the approved file is neither an executable nor a script".to_owned());
    }
    check_own(candidate, own, &project.dir, &item.root)?;
    candidate.sha256.clone_from(&own.sha256);
    candidate.sources_sha256 = digest_approved(item);
    let copies = approvals.copies_of(&project.dir, approved);
    candidate.run = copies.join(inside_copies(Path::new(&own.path)));
    candidate.copies = Some(copies);
    Ok(())
}
