//! Approved files of a folder that changed in the project or are gone.
//!
//! They are loaded from the copies that were kept of them, at the place where they would be loaded from the project.

use std::path::Path;

use super::scan::{Candidate, check_own, digest_of};
use super::{FileState, FoundFile, HookFolder, Speaks, extension};
use crate::project::Project;
use crate::trust::{
    Approvals, Approved, DivergedHook, Divergence, Item, TrustState, displaced_reason,
    inside_copies, unrunnable_reason,
};

/// Replaces changed files of a folder with their approved versions, and adds those that are gone. The files of the folder
/// are those from the candidate `first` on.
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
                *now = candidate(&own, project, approvals, approved, divergence);
                now.item = item;
            }
            None => {
                let candidate = candidate(&own, project, approvals, approved, Divergence::Missing);
                let later = candidates.iter().skip(first);
                let before = later
                    .take_while(|other| other.found.path < candidate.found.path)
                    .count();
                candidates.insert(first + before, candidate);
            }
        }
    }
}

/// Returns the folder that an approved file stands in, if it is this one or that of one of its extensions.
fn folder_of(folder: &HookFolder, project: &Project, approved: &Approved) -> Option<HookFolder> {
    let dir = project.dir.join(&approved.source);
    let is_own = dir == folder.dir;
    let is_of_extension =
        folder.speaks == Speaks::KodeletExtension && dir.parent() == Some(&folder.dir);
    (is_own || is_of_extension).then(|| HookFolder {
        dir,
        ..folder.clone()
    })
}

/// Makes the candidate that an approved file is.
fn candidate(
    folder: &HookFolder,
    project: &Project,
    approvals: &Approvals,
    approved: &Approved,
    divergence: Divergence,
) -> Candidate {
    let path = folder.dir.join(&approved.name);
    let name = match folder.speaks {
        Speaks::KodeletExtension => extension::name_of(folder, &approved.source, &path),
        Speaks::Kodelet | Speaks::Tenterhook | Speaks::Operator | Speaks::Morphix | Speaks::Pi => {
            format!("{}{}", folder.prefix, approved.name)
        }
    };
    let mut candidate = Candidate {
        project: Some(project.clone()),
        ..Candidate::new(FoundFile {
            path,
            name,
            layer: folder.layer,
            speaks: folder.speaks,
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
        candidate.settle(FileState::Denied {
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

/// Makes a candidate run the approved copies. The error says why it cannot.
fn load(
    candidate: &mut Candidate,
    folder: &HookFolder,
    project: &Project,
    approvals: &Approvals,
    approved: &Approved,
    item: &Item,
) -> Result<(), String> {
    let own = item.files.first();
    let own = own.ok_or("the record of the approval has no file")?;
    let is_program = own.is_executable && folder.speaks.system().runs_executables;
    candidate.language = folder
        .speaks
        .language(&candidate.found.path)
        .filter(|_| !is_program);
    if !is_program && candidate.language.is_none() {
        return Err("the approved file is neither an executable nor a script".to_owned());
    }
    check_own(candidate, own, &project.dir, &item.root)?;
    candidate.sha256.clone_from(&own.sha256);
    candidate.beside = digest_of(item.files.iter().skip(1));
    let copies = approvals.copies_of(&project.dir, approved);
    candidate.run = copies.join(inside_copies(Path::new(&own.path)));
    Ok(())
}
