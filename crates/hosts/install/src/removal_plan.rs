//! Plans a removal: files become as they were, or lose exactly the entries of Tenterhook.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tenterhook_files::hex_digest;

use crate::edit_error::EditError;
use crate::entry::LinePrefix;
use crate::install_error::InstallError;
use crate::list_form::ListForm;
use crate::plan::{InstallPlan, SettingsChange};
use crate::record::{FileContent, FileRecord, Record, RecordFolder, RecordedApproval};
use crate::settings_file::{read, text};
use crate::target::Target;
use crate::toml_settings;

/// Plans the removal from a target.
pub(crate) fn plan_removal(target: &Target<'_>) -> Result<InstallPlan, InstallError> {
    let mut plan = InstallPlan::new(target.host, &target.scope);
    let folder = target.record_folder();
    let record = folder.read()?;
    // Without a record, for example because the data folder was deleted, entries are found by their command lines.
    let Some(Record { files, .. }) = record else {
        remove_unrecorded(target, &mut plan)?;
        return Ok(plan);
    };
    let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
    for file in &files {
        folders.extend(file.folders.iter().cloned());
        remove_file(target, &folder, file, &mut plan)?;
    }
    // The innermost folder first.
    plan.folders = folders.into_iter().rev().collect();
    Ok(plan)
}

/// Returns a text without the entries of Tenterhook.
pub(crate) fn without_ours(
    form: ListForm,
    text: &str,
    prefix: LinePrefix<'_>,
    created: &[Vec<String>],
) -> Result<String, EditError> {
    form.remove(text, prefix, &|_| true, created)
}

/// Removes a value by which an agent knows that an entry was approved, if it is still the one that was written.
pub(crate) fn without_approval(
    text: &str,
    approval: &RecordedApproval,
) -> Result<String, EditError> {
    let tables: Vec<&str> = approval.tables.iter().map(String::as_str).collect();
    if toml_settings::get(text, &tables, &approval.key)?.as_ref() != Some(&approval.value) {
        return Ok(text.to_owned());
    }
    toml_settings::unset(text, &tables, &approval.key)
}

fn remove_file(
    target: &Target<'_>,
    folder: &RecordFolder,
    file: &FileRecord,
    plan: &mut InstallPlan,
) -> Result<(), InstallError> {
    let path = &file.path;
    let Some(before) = read(path)? else {
        return Ok(());
    };
    let original = match &file.original {
        Some(name) => Some(folder.original(name)?),
        None => None,
    };
    let edit = || InstallError::edit(path);
    let after = if original.as_ref() == Some(&before) {
        return Ok(());
    } else if file.written == hex_digest(&before) {
        original
    } else {
        match &file.content {
            FileContent::Whole => {
                plan.kept.push(path.clone());
                None
            }
            FileContent::Approvals { values } => {
                let mut rest = text(path, &before)?.to_owned();
                for value in values {
                    rest = without_approval(&rest, value).map_err(edit())?;
                }
                let is_gone = rest.trim().is_empty() && original.is_none();
                (!is_gone).then(|| rest.into_bytes())
            }
            FileContent::Entries { created, .. } => {
                let Some((form, _)) = target.list() else {
                    return Ok(());
                };
                let current = text(path, &before)?;
                let rest = without_ours(form, current, LinePrefix(&target.prefix), created);
                let rest = rest.map_err(edit())?;
                let is_gone = is_blank(&rest) && original.is_none();
                (!is_gone).then(|| rest.into_bytes())
            }
        }
    };
    if let FileContent::Entries { entries, .. } = &file.content {
        plan.events = entries.keys().cloned().collect();
    }
    change(plan, file.path.clone(), before, after);
    Ok(())
}

fn remove_unrecorded(target: &Target<'_>, plan: &mut InstallPlan) -> Result<(), InstallError> {
    let Some((form, _)) = target.list() else {
        for (path, file) in target.own_files() {
            let before = read(&path)?;
            if let Some(before) = before.filter(|before| *before == file.text.as_bytes()) {
                change(plan, path, before, None);
            }
        }
        return Ok(());
    };
    let Some(before) = read(&target.base)? else {
        return Ok(());
    };
    let edit = || InstallError::edit(&target.base);
    let prefix = LinePrefix(&target.prefix);
    let current = text(&target.base, &before)?;
    let found = form.find(current, prefix).map_err(edit())?;
    plan.events = found.into_iter().map(|it| it.event).collect();
    let rest = without_ours(form, current, prefix, &[]).map_err(edit())?;
    change(plan, target.base.clone(), before, Some(rest.into_bytes()));
    Ok(())
}

/// Returns whether settings contain nothing.
pub(crate) fn is_blank(text: &str) -> bool {
    let rest: String = text
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '\u{feff}')
        .collect();
    rest.is_empty() || rest == "{}"
}

fn change(plan: &mut InstallPlan, path: PathBuf, before: Vec<u8>, after: Option<Vec<u8>>) {
    if after.as_ref() == Some(&before) {
        return;
    }
    plan.files.push(path.clone());
    plan.changes.push(SettingsChange {
        path,
        before: Some(before),
        after,
        mode: 0o600,
    });
}
