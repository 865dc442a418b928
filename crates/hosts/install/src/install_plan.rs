//! Plans an installation: which entries are missing, and what each file will contain.

use std::collections::BTreeMap;
use std::path::Path;

use tenterhook_files::hex_digest;
use tenterhook_systems::host::installation::{InstalledEntry, SelfApproval};

use crate::entry::{LinePrefix, NewEntry};
use crate::install_error::InstallError;
use crate::list_form::{EntryFn, ListForm};
use crate::plan::{ApprovalState, InstallPlan, SettingsChange};
use crate::record::{FileContent, FileRecord, Record, RecordFolder, RecordedApproval};
use crate::removal_plan::{is_blank, without_approval, without_ours};
use crate::settings_file::{missing_folders, read, text};
use crate::target::Target;
use crate::toml_settings;

/// Plans the installation into a target. `approves` records that the person approved the entries.
pub(crate) fn plan_install(
    target: &Target<'_>,
    approves: bool,
) -> Result<InstallPlan, InstallError> {
    let mut plan = InstallPlan::new(target.host, &target.scope);
    let old = target.record_folder().read()?;
    let mut record = Record::new(target.host.name, target.scope.project());
    let mut planned = Planned {
        target,
        old: old.as_ref(),
        folder: target.record_folder(),
        plan: &mut plan,
        record: &mut record,
    };
    match target.list() {
        Some((form, entry)) => {
            let text = planned.entries(form, entry)?;
            if let Some(approval) = target.host.installation.approval {
                planned.approval(approval, form, &text, approves)?;
            }
        }
        None => planned.own_files()?,
    }
    plan.record = Some(record);
    Ok(plan)
}

/// A file before and after the installation.
struct PlannedFile {
    before: Option<Vec<u8>>,
    after: Vec<u8>,
    /// The file without Tenterhook; `None` if it did not exist.
    original: Option<Vec<u8>>,
    content: FileContent,
    is_executable: bool,
}

/// A plan in progress.
struct Planned<'p, 't> {
    target: &'p Target<'t>,
    old: Option<&'p Record>,
    folder: RecordFolder,
    plan: &'p mut InstallPlan,
    record: &'p mut Record,
}

impl Planned<'_, '_> {
    /// Plans the entries among the entries of others. Returns the text that the file will have.
    fn entries(&mut self, form: ListForm, entry: EntryFn) -> Result<String, InstallError> {
        let path = self.target.base.clone();
        let edit = || InstallError::edit(&path);
        let prefix = LinePrefix(&self.target.prefix);
        let before = read(&path)?;
        let current = text(&path, before.as_deref().unwrap_or_default())?;
        let old = self.old.and_then(|record| record.file(&path));
        let (old_entries, mut created) = match old.map(|file| &file.content) {
            Some(FileContent::Entries { entries, created }) => (entries.clone(), created.clone()),
            _ => (BTreeMap::new(), Vec::new()),
        };
        let wanted = self.target.entries(entry);
        let found = form.find(current, prefix).map_err(edit())?;
        let mut replaced = Vec::new();
        let mut missing: Vec<NewEntry> = Vec::new();
        for wanted in &wanted {
            match found.iter().find(|it| it.event == wanted.event) {
                None => missing.push(wanted.clone()),
                Some(it) if it.value == wanted.value => {}
                Some(it) if old_entries.get(&it.event) == Some(&it.value) => {
                    replaced.push(wanted.event.clone());
                    missing.push(wanted.clone());
                }
                Some(it) => self.plan.altered.push(it.event.clone()),
            }
        }
        // Events that the agent no longer has.
        let is_wanted = |event: &str| wanted.iter().any(|it| it.event == event);
        let stale = found
            .iter()
            .filter(|it| !is_wanted(&it.event) && old_entries.get(&it.event) == Some(&it.value));
        replaced.extend(stale.map(|it| it.event.clone()));
        let selects = |event: &str| replaced.iter().any(|it| it == event);
        let changed = form
            .remove(current, prefix, &selects, &[])
            .map_err(edit())?;
        let changed = form.add(&changed, &missing).map_err(edit())?;
        self.check(form, &changed.text, &missing, &path)?;

        // The original lacks our entries, whatever others have changed since it was kept.
        let is_as_written = old.is_some_and(|file| file.written == hex_digest(current.as_bytes()));
        let original = match (old, before.as_deref()) {
            (Some(file), Some(_)) if is_as_written => match &file.original {
                Some(name) => Some(self.folder.original(name)?),
                None => None,
            },
            (_, Some(bytes)) if found.is_empty() => Some(bytes.to_vec()),
            (_, Some(_)) => {
                let rest = without_ours(form, current, prefix, &created).map_err(edit())?;
                let is_gone = is_blank(&rest) && old.is_some_and(|file| file.original.is_none());
                (!is_gone).then(|| rest.into_bytes())
            }
            (_, None) => None,
        };
        created.extend(changed.created);
        let mut entries = old_entries;
        entries.retain(|event, _| is_wanted(event));
        for wanted in wanted {
            if !self.plan.altered.contains(&wanted.event) {
                entries.insert(wanted.event, wanted.value);
            }
        }
        self.plan.events = missing.into_iter().map(|it| it.event).collect();
        let content = FileContent::Entries { entries, created };
        self.file(
            &path,
            PlannedFile {
                before,
                after: changed.text.clone().into_bytes(),
                original,
                content,
                is_executable: false,
            },
        );
        Ok(changed.text)
    }

    /// Checks that the agent will read the entries in the changed text.
    fn check(
        &self,
        form: ListForm,
        changed: &str,
        added: &[NewEntry],
        path: &Path,
    ) -> Result<(), InstallError> {
        let prefix = LinePrefix(&self.target.prefix);
        let found = form
            .find(changed, prefix)
            .map_err(InstallError::edit(path))?;
        let is_there = |entry: &NewEntry| {
            found
                .iter()
                .any(|it| it.event == entry.event && it.value == entry.value)
        };
        if added.iter().all(is_there) {
            return Ok(());
        }
        Err(InstallError::edit(path)(crate::EditError::Unsafe {
            what: "the entries from being added",
        }))
    }

    /// Plans the files that belong to Tenterhook alone.
    fn own_files(&mut self) -> Result<(), InstallError> {
        for (path, file) in self.target.own_files() {
            let before = read(&path)?;
            let after = file.text.into_bytes();
            let old = self.old.and_then(|record| record.file(&path));
            let is_ours = before.as_ref().is_none_or(|bytes| {
                *bytes == after || old.is_some_and(|old| old.written == hex_digest(bytes))
            });
            if !is_ours {
                let (problem, hint) = if old.is_some() {
                    (
                        "it was changed after Tenterhook wrote it",
                        "uninstall first; that keeps a copy",
                    )
                } else {
                    (
                        "it belongs to someone else, and Tenterhook needs this name",
                        "move it away",
                    )
                };
                return Err(InstallError::Refused {
                    path,
                    problem,
                    hint,
                });
            }
            if before.as_ref() != Some(&after) {
                self.plan.events = self
                    .target
                    .host
                    .events
                    .iter()
                    .map(|it| it.name.to_owned())
                    .collect();
            }
            self.file(
                &path,
                PlannedFile {
                    before,
                    after,
                    original: None,
                    content: FileContent::Whole,
                    is_executable: file.is_executable,
                },
            );
        }
        Ok(())
    }

    /// Plans the values by which the agent knows that the person approved the entries in `hooks`.
    fn approval(
        &mut self,
        approval: &SelfApproval,
        form: ListForm,
        hooks: &str,
        approves: bool,
    ) -> Result<(), InstallError> {
        let machine = self.target.machine;
        let path = machine.path(approval.path, approval.variable);
        let values = approvals(self.target, approval, form, hooks)?;
        let before = read(&path)?;
        let current = text(&path, before.as_deref().unwrap_or_default())?;
        let edit = || InstallError::edit(&path);
        let old = self.old.and_then(|record| record.file(&path));
        let old_values = match old.map(|file| &file.content) {
            Some(FileContent::Approvals { values }) => values.as_slice(),
            _ => &[],
        };
        let mut changed = current.to_owned();
        for stale in old_values.iter().filter(|it| !values.contains(it)) {
            changed = without_approval(&changed, stale).map_err(edit())?;
        }
        let mut is_missing = false;
        for it in &values {
            let tables: Vec<&str> = it.tables.iter().map(String::as_str).collect();
            if approves {
                changed =
                    toml_settings::set(&changed, &tables, &it.key, &it.value).map_err(edit())?;
            } else {
                let value = toml_settings::get(&changed, &tables, &it.key).map_err(edit())?;
                is_missing |= value.as_ref() != Some(&it.value);
            }
        }
        self.plan.approval = if is_missing {
            ApprovalState::Missing
        } else {
            ApprovalState::Recorded
        };
        if !approves && old.is_none() {
            return Ok(());
        }
        let is_as_written = old.is_some_and(|file| file.written == hex_digest(current.as_bytes()));
        let original = match (old.filter(|_| is_as_written), before.as_deref()) {
            (Some(file), _) => match &file.original {
                Some(name) => Some(self.folder.original(name)?),
                None => None,
            },
            (None, Some(_)) => {
                let mut rest = current.to_owned();
                for value in old_values {
                    rest = without_approval(&rest, value).map_err(edit())?;
                }
                Some(rest.into_bytes())
            }
            (None, None) => None,
        };
        let values = if approves {
            values
        } else {
            let kept = old_values.iter().filter(|it| values.contains(it));
            kept.cloned().collect()
        };
        let content = FileContent::Approvals { values };
        self.file(
            &path,
            PlannedFile {
                before,
                after: changed.into_bytes(),
                original,
                content,
                is_executable: false,
            },
        );
        Ok(())
    }

    fn file(&mut self, path: &Path, file: PlannedFile) {
        let old = self.old.and_then(|record| record.file(path));
        let mut folders = old.map_or_else(Vec::new, |old| old.folders.clone());
        folders.extend(missing_folders(path));
        if !matches!(file.content, FileContent::Approvals { .. }) {
            self.plan.files.push(path.to_owned());
        }
        self.record.files.push(FileRecord {
            path: path.to_owned(),
            content: file.content,
            original: file.original.as_deref().map(RecordFolder::name_of),
            written: hex_digest(&file.after),
            folders,
        });
        self.plan.originals.extend(file.original);
        if file.before.as_ref() != Some(&file.after) {
            self.plan.changes.push(SettingsChange {
                path: path.to_owned(),
                before: file.before,
                after: Some(file.after),
                mode: self.target.mode(file.is_executable),
            });
        }
    }
}

/// Returns the values that approve the entries of a text.
pub(crate) fn approvals(
    target: &Target<'_>,
    approval: &SelfApproval,
    form: ListForm,
    hooks: &str,
) -> Result<Vec<RecordedApproval>, InstallError> {
    let found = form.find(hooks, LinePrefix(&target.prefix));
    let found = found.map_err(InstallError::edit(&target.base))?;
    let file = target.base.display().to_string();
    let values = found.iter().map(|it| {
        let value = (approval.value)(&InstalledEntry {
            file: &file,
            list: &it.list,
            index: it.index,
            element: &it.value,
        });
        RecordedApproval {
            tables: value.tables,
            key: value.key.to_owned(),
            value: value.value,
        }
    });
    Ok(values.collect())
}
