//! Compares hooks of a project's hook file with their approvals, and makes them run approved copies.

use std::path::{Path, PathBuf};

use tenterhook_engine::Layer;
use tenterhook_hookfile::{Environment, HookDeclaration, Report};

use crate::approved_declaration::ApprovedDeclaration;
use crate::copy_map::CopyMap;
use crate::definition_text::definition_text;
use crate::hook_order::HookOrder;
use crate::item::ApprovalItem;
use crate::mentions::mentioned;
use crate::named_files::NamedFiles;
use crate::project::Project;
use crate::project_hook::ProjectHook;
use crate::project_roots::ProjectRoots;
use crate::record::ApprovalRecord;
use crate::search_path;
use crate::state::TrustState;
use crate::store::Approvals;

/// A project hook that was compared with its approval.
#[derive(Debug)]
pub struct JudgedHook {
    /// The hook, and whether it may run.
    pub hook: ProjectHook,
    /// The declaration that runs the approved copies of its files, if the hook is trusted.
    pub approved: Option<ApprovedDeclaration>,
}

/// Compares a hook of a project's hook file with its approval. The file is the source of the report. The files of a
/// hook without an approval are only read for a review.
/// Returns `None` if the hook cannot be compared; the report then has the reason.
pub fn judge(
    report: &mut Report,
    environment: &Environment,
    approvals: &Approvals,
    is_review: bool,
    order: HookOrder,
    declaration: &HookDeclaration,
) -> Option<JudgedHook> {
    let (project, source) = Project::of_file(report.source().path());
    let name = declaration.name().unwrap_or_default();
    let unread = ApprovalItem {
        source: source.clone(),
        name: name.to_owned(),
        definition: definition_text(declaration),
        files: Vec::new(),
        covered: Vec::new(),
        events: declaration.event_names(),
        unread: Vec::new(),
        hook_text: None,
        named: Vec::new(),
        project: project.dir.clone(),
        root: project.root.clone(),
        order,
        unread_version: Some(String::new()),
    };
    let before = approvals.find(&project.dir, &source, name);
    if !is_review && before.is_none() {
        return Some(JudgedHook {
            hook: ProjectHook::new(unread, TrustState::Untrusted, declaration.event_names()),
            approved: None,
        });
    }
    let dir = project.dir.join(working_dir(environment, declaration));
    let roots = ProjectRoots {
        dir: &dir,
        project: &project.dir,
        root: &project.root,
    };
    let mut files = NamedFiles::of(&declaration.action, &declaration.env, roots);
    let read = match files.read(roots) {
        Ok(read) => read,
        Err(problem) => {
            let span = declaration.action_span;
            report.add(report.problem(span, problem));
            return None;
        }
    };
    let memory = approvals.memory(&project.dir, &source, name);
    let before = before.filter(|_| !is_review);
    let known = before.and_then(|before| approvals.approved_files(before, &read).ok());
    // A folder with another file than the approved ones is not read before a review.
    let (covered, unread_version) = match files.cover(&read, roots, &memory, known.as_ref()) {
        Ok(covered) => (covered, None),
        Err(differs) => (Vec::new(), Some(differs.to_string())),
    };
    let mut item = ApprovalItem {
        files: read,
        covered,
        unread: std::mem::take(&mut files.unread),
        hook_text: Some(report.source().shared_text()),
        named: files.words.clone(),
        unread_version,
        ..unread
    };
    let state = approvals.state(&item);
    let mut approved = None;
    if state == TrustState::Trusted {
        let copies = match approvals.keep_copies(&item, &memory) {
            Ok(copies) => copies,
            Err(error) => {
                let span = declaration.span;
                let problem = report.problem(span, tenterhook_engine::error_chain(&error));
                report
                    .add(problem.hint("the hook runs only from the approved copies of its files"));
                return None;
            }
        };
        let copies = CopyMap {
            roots,
            copies: &copies,
        };
        approved = Some(with_copies(declaration.clone(), &files, &copies));
    } else {
        item.unread.extend(notes(&item, declaration, roots));
    }
    Some(JudgedHook {
        hook: ProjectHook::new(item, state, declaration.event_names()),
        approved,
    })
}

/// Returns notes about what can change without a new approval, apart from what the command names.
fn notes(
    item: &ApprovalItem,
    declaration: &HookDeclaration,
    roots: ProjectRoots<'_>,
) -> Vec<String> {
    let mut notes = mentioned(item, roots);
    if declaration.is_command() && search_path::outside(&[roots.root]).is_some() {
        let note = "your `PATH` contains folders of the project; the hook runs without them";
        notes.push(note.to_owned());
    }
    if item.order == HookOrder::Moved {
        let note = "its position among the hooks of its file has changed since the approval";
        notes.push(note.to_owned());
    }
    notes
}

/// Makes a declaration run the approved copies of its files.
fn with_copies(
    mut declaration: HookDeclaration,
    files: &NamedFiles,
    copies: &CopyMap<'_>,
) -> ApprovedDeclaration {
    let original_command = declaration.action.text();
    copies.apply(files, &mut declaration.action, &mut declaration.env);
    leave_project_out(&mut declaration, copies.roots.root);
    if declaration.python.is_some() {
        declaration.python = declaration.action.python_script().and_then(Result::ok);
    }
    ApprovedDeclaration::new(declaration, Layer::Project, original_command)
}

/// Makes a command find its programs outside of the project. Files that it names in the project run
/// from approved copies. Other programs in folders of `PATH` that are inside the project were never
/// approved.
fn leave_project_out(declaration: &mut HookDeclaration, root: &Path) {
    if !declaration.is_command() || declaration.env.iter().any(|(name, _)| name == "PATH") {
        return;
    }
    if let Some(search) = search_path::outside(&[root]) {
        let search = search.to_string_lossy().into_owned();
        declaration.env.push(("PATH".to_owned(), search));
    }
}

fn working_dir(environment: &Environment, declaration: &HookDeclaration) -> PathBuf {
    let dir = declaration.working_dir.as_ref();
    let expanded = dir.map(|(dir, _)| environment.expand_path(dir));
    expanded.unwrap_or_default()
}

/// Makes a declaration, which was read from the approved copy of its hook file, run the approved
/// copies of its files.
///
/// # Errors
/// Returns the reason if the declaration is not what was approved, or if the hook cannot run from
/// copies alone.
pub fn restore(
    approvals: &Approvals,
    project: &Path,
    approved: &ApprovalRecord,
    declaration: HookDeclaration,
) -> Result<ApprovedDeclaration, String> {
    let item = approvals.restore(project, approved)?;
    let roots = ProjectRoots {
        dir: project,
        project,
        root: &item.root,
    };
    let files = NamedFiles::of_approval(item.named.clone());
    if let Some(path) = files.without_copy(&item.files, project) {
        return Err(format!(
            "its command reads `{}` from the project, not from an approved copy",
            path.display()
        ));
    }
    let restored = ApprovalItem {
        definition: definition_text(&declaration),
        ..item.clone()
    };
    if restored.digest() != approved.digest {
        return Err("its definition no longer has the meaning that was approved".to_owned());
    }
    let copies = CopyMap {
        roots,
        copies: &approvals.copies_of(project, approved),
    };
    Ok(with_copies(declaration, &files, &copies))
}
