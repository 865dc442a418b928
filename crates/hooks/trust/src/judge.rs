//! Compares hooks of a project's hook file with their approvals, and makes them run approved copies.

use std::fmt::Write as _;
use std::path::Path;

use tenterhook_engine::Layer;
use tenterhook_hookfile::{Environment, HookAction, HookDeclaration, Report};

use crate::copy_map::replace_with_copies;
use crate::item::{ApprovalItem, HookOrder};
use crate::mentions::mentioned;
use crate::named_files::{NamedFiles, without_copy};
use crate::project::{Project, ProjectRoots};
use crate::project_hook::{ProjectHook, TrustState};
use crate::record::ApprovalRecord;
use crate::search_path;
use crate::store::Approvals;
use crate::trust::ApprovedDeclaration;

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
        definition: definition_text(declaration),
        events: declaration.event_names(),
        order,
        unread_version: Some(String::new()),
        ..ApprovalItem::new(&project, source.clone(), name.to_owned())
    };
    let before = approvals.find(&project.dir, &source, name);
    if !is_review && before.is_none() {
        return Some(JudgedHook {
            hook: ProjectHook::new(unread, TrustState::Untrusted, declaration.event_names()),
            approved: None,
        });
    }
    let dir = declaration.working_dir.as_ref();
    let dir = dir.map(|(dir, _)| project.dir.join(environment.expand_path(dir)));
    let dir = dir.unwrap_or_else(|| project.dir.clone());
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
        unread: files.unread,
        hook_text: Some(report.source().shared_text()),
        named: files.words,
        unread_version,
        ..unread
    };
    let state = approvals.state(&item);
    let mut approved = None;
    if state == TrustState::Trusted {
        let copies = approvals.keep_copies(&item, &memory);
        let copies = copies.map_err(|error| tenterhook_engine::error_chain(&error));
        match copies.and_then(|copies| with_copies(declaration.clone(), &item, &copies)) {
            Ok(declaration) => approved = Some(declaration),
            Err(problem) => {
                let problem = report.problem(declaration.span, problem);
                report
                    .add(problem.hint("the hook runs only from the approved copies of its files"));
                return None;
            }
        }
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
        notes
            .push("your `PATH` contains folders of the project; the hook runs without them".into());
    }
    if item.order == HookOrder::Moved {
        notes
            .push("its position among the hooks of its file has changed since the approval".into());
    }
    notes
}

/// Makes a declaration run the approved copies of its files.
fn with_copies(
    mut declaration: HookDeclaration,
    item: &ApprovalItem,
    copies: &Path,
) -> Result<ApprovedDeclaration, String> {
    let original_command = declaration.action.text();
    let (action, env) = (&mut declaration.action, &mut declaration.env);
    replace_with_copies(&item.named, &item.project, copies, action, env)?;
    leave_project_out(&mut declaration, &item.root);
    Ok(ApprovedDeclaration::new(
        declaration,
        Layer::Project,
        original_command,
    ))
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
    if let Some(path) = without_copy(&item) {
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
    with_copies(declaration, &item, &approvals.copies_of(project, approved))
}

/// Returns the whole definition of a hook, one line per setting.
fn definition_text(declaration: &HookDeclaration) -> String {
    let mut text = String::new();
    let mut line = |key: &str, value: &str| {
        // Nothing is trimmed, because an invisible space can make it a different command.
        for (place, part) in value.split('\n').enumerate() {
            // Writing to a `String` cannot fail.
            let _ = match (place, part) {
                (0, _) => writeln!(text, "{key}: {part}"),
                (_, "") => writeln!(text),
                (_, _) => writeln!(text, "  {part}"),
            };
        }
    };
    let events: Vec<&str> = declaration
        .events
        .iter()
        .map(|event| event.name.as_str())
        .collect();
    line("event", &events.join(", "));
    line("matcher", &declaration.matcher.to_string());
    if let Some(timeout) = declaration.timeout {
        line("timeout", &format!("{} s", timeout.as_secs_f64()));
    }
    let known = ["event", "matcher", "timeout"];
    let fields = declaration.definition.fields();
    for (key, value) in fields.filter(|(key, _)| !known.contains(key)) {
        let key = if key == "file" { "contract" } else { key };
        match value.as_str() {
            Some(value) => line(key, value),
            None => line(key, &value.to_string()),
        }
    }
    match &declaration.action {
        // The name in the file may be an alias.
        HookAction::Model(model) => line("asks", &model.model),
        HookAction::Http(http) => {
            for header in &http.headers {
                line(&format!("header {}", header.name), &header.value);
            }
        }
        HookAction::Line { .. } | HookAction::Argv(_) | HookAction::Builtin { .. } => {}
    }
    text
}
