//! Shows a project's hooks to a person: a new hook in full, a changed hook as a diff.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use tenterhook_discovery::{FileState, FoundFile};
use tenterhook_engine::Layer;
use tenterhook_trust::{
    Approvals, DivergedHook, FileChange, ItemChanges, PackageChange, ProjectHook, TrustState,
};

use crate::output::plural::count;
use crate::output::{self, style, styled};
use tenterhook_protocol::escape::{escape_invisible, escape_line};

/// The largest file that is shown as text, in bytes.
const MAX_SHOWN_FILE: usize = 256 << 10;
/// The maximum number of changed files of a package that are named.
const MAX_NAMED: usize = 20;
/// How many unchanged lines are shown around a change.
const AROUND: usize = 3;

/// The contents that were shown. Hooks with scripts in the same folder have the same files.
pub type ShownContents = BTreeSet<(PathBuf, String)>;

/// Prints one hook, and the contents of its files that were not `shown` before.
pub fn show(
    project_hook: &ProjectHook,
    approvals: &Approvals,
    found: &[FoundFile],
    shown: &mut ShownContents,
) {
    let look = match project_hook.state {
        TrustState::Trusted => style::GOOD,
        TrustState::Untrusted | TrustState::Changed | TrustState::Displaced => style::CARE,
    };
    let in_force = if project_hook.is_approved_in_force {
        "; the approved version is in force"
    } else {
        ""
    };
    output::line(format_args!(
        "{}  {}{in_force}",
        styled(style::STRONG, project_hook.item.shown_name()),
        styled(look, project_hook.state.as_str())
    ));
    let item = &project_hook.item;
    match approvals.before(item) {
        Some(before) => difference(Some(&before.definition), &item.definition, "  "),
        None => show_definition(&item.name, &item.definition),
    }
    for note in &item.unread {
        output::line(format_args!(
            "  {} {}",
            styled(style::CARE, "warning:"),
            escape_line(note)
        ));
    }
    for by in shadows(project_hook, found) {
        output::line(format_args!(
            "  {} it replaces {by}",
            styled(style::CARE, "warning:")
        ));
    }
    if project_hook.state != TrustState::Trusted {
        show_files(&ItemChanges::of(item, approvals), shown);
    }
    output::line("");
}

/// Prints an approved hook that is not in the project.
pub fn show_missing(hook: &DivergedHook) {
    let state = match &hook.denies {
        None => "not in the project; the approved version is in force".to_owned(),
        Some(reason) => escape_line(reason),
    };
    output::line(format_args!(
        "{}  {}",
        styled(style::STRONG, hook.shown_name()),
        styled(style::CARE, state)
    ));
    show_definition(&hook.approved.name, &hook.approved.definition);
    output::line("");
}

/// What a hook can reach, by how the setting begins that says what it runs. The first row that fits counts.
const REACH: [(&str, &str); 10] = [
    ("type: builtin", OWN_CODE),
    ("builtin: ", OWN_CODE),
    ("http: ", ADDRESS),
    ("url: ", ADDRESS),
    (
        "asks: ",
        "it sends its prompt, with data of each event, to this model",
    ),
    ("command: ", USER_RIGHTS),
    ("argv: ", USER_RIGHTS),
    ("script: ", USER_RIGHTS),
    ("executable: ", USER_RIGHTS),
    ("extension: ", USER_RIGHTS),
];
const OWN_CODE: &str = "it is part of Tenterhook and runs no code of this project";
const ADDRESS: &str = "it sends each event that it matches to this address";
const USER_RIGHTS: &str =
    "it runs with your rights: it can read and change your files and use the network";

/// Settings that say nothing if they have these values.
const DEFAULTS: [&str; 4] = [
    "contract: native",
    "phase: main",
    "priority: 0",
    "shell: sh",
];

/// Prints what a hook runs, when, and what it can reach. Settings follow unless they have their default value.
fn show_definition(name: &str, definition: &str) {
    // The other lines of a setting are indented or empty.
    let mut settings: Vec<Vec<&str>> = Vec::new();
    for line in definition.split_terminator('\n') {
        match settings.last_mut() {
            Some(setting) if line.is_empty() || line.starts_with(' ') => setting.push(line),
            _ => settings.push(vec![line]),
        }
    }
    let own_name = format!("name: {name}");
    settings.retain(|setting| {
        let [line] = setting.as_slice() else {
            return true;
        };
        *line != own_name && !DEFAULTS.contains(line)
    });
    let begins = |setting: &Vec<&str>, start: &str| {
        let first = setting.first();
        first.is_some_and(|line| line.starts_with(start))
    };
    let mut rows = REACH.iter();
    let reach = rows.find(|(start, _)| settings.iter().any(|setting| begins(setting, start)));
    // What it runs comes first.
    settings.sort_by_key(|setting| !REACH.iter().any(|(start, _)| begins(setting, start)));
    for line in settings.iter().flatten() {
        output::line(format_args!("  {}", escape_invisible(line)));
    }
    if let Some((_, reach)) = reach {
        output::line(format_args!(
            "  {}",
            styled(style::CARE, format_args!("reach: {reach}"))
        ));
    }
}

/// Returns the user's own hooks that do not run because this one replaces them.
fn shadows(project_hook: &ProjectHook, found: &[FoundFile]) -> Vec<String> {
    let item = &project_hook.item;
    let path = item.project.join(&item.source).join(&item.name);
    let Some(own) = found.iter().find(|file| file.path == path) else {
        return Vec::new();
    };
    let is_shadowed = |file: &&FoundFile| {
        let is_shadowed = matches!(file.state, FileState::Shadowed { .. });
        let counts = is_shadowed || file.state.is_in_force();
        counts && file.layer == Layer::User && file.name == own.name && file.kind == own.kind
    };
    let shadowed = found.iter().filter(is_shadowed);
    shadowed
        .map(|file| escape_line(&file.path.display().to_string()))
        .collect()
}

fn show_files(changes: &ItemChanges, shown: &mut ShownContents) {
    for file in &changes.files {
        // A difference also depends on what was approved for this hook, so only whole files are left out.
        let is_whole = file.change == "new";
        let is_new = shown.insert((file.path.clone(), file.sha256.clone()));
        show_file(file, is_new || !is_whole);
    }
    for package in &changes.packages {
        show_package(package);
    }
    for gone in &changes.gone {
        let path = escape_line(&gone.display().to_string());
        let what = styled(style::BAD, "no longer part of the hook");
        output::line(format_args!("  {path} {what}"));
    }
}

fn show_file(file: &FileChange, is_new: bool) {
    let path = escape_line(&file.path.display().to_string());
    let target = file.target.as_ref().map_or_else(String::new, |target| {
        format!(" -> {}", escape_line(&target.display().to_string()))
    });
    let size = bytes(file.size);
    output::line(format_args!("  {path}{target}  {}, {size}", file.change));
    if file.is_same {
        return;
    }
    if !is_new {
        output::line("    shown above");
        return;
    }
    let (old, new) = (file.old_bytes(), file.new_bytes(MAX_SHOWN_FILE));
    match (new.as_deref().and_then(text), old.as_deref().map(text)) {
        (Some(new), Some(Some(old))) => difference(Some(old), new, "    "),
        (Some(new), _) => difference(None, new, "    "),
        (None, _) => {
            output::line("    not shown, because it is not text or is larger than 256 KiB");
        }
    }
}

/// Prints one line for a package, and the names of its changed files. Its content is too long to be read here.
fn show_package(package: &PackageChange) {
    let what = package.change();
    let folder = escape_line(&package.folder.display().to_string());
    let files = count(package.files, "file");
    output::line(format_args!(
        "  {folder}  {files}, {}, {what}",
        bytes(package.size)
    ));
    if package.is_new() {
        return;
    }
    for file in package.changed.iter().take(MAX_NAMED) {
        output::line(format_args!(
            "    {}",
            escape_line(&file.display().to_string())
        ));
    }
    if let Some(more @ 1..) = package.changed.len().checked_sub(MAX_NAMED) {
        output::line(format_args!("    and {more} more"));
    }
}

fn bytes(size: impl TryInto<usize>) -> String {
    count(size.try_into().unwrap_or(usize::MAX), "byte")
}

/// Returns bytes as text, if they are text that a person could read in full.
fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    (bytes.len() <= MAX_SHOWN_FILE && !text.contains('\0')).then_some(text)
}

/// Prints the lines that differ, or the whole text if there is no old one.
fn difference(old: Option<&str>, new: &str, indent: &str) {
    let Some(old) = old else {
        for line in new.split_terminator('\n') {
            output::line(format_args!("{indent}{}", escape_invisible(line)));
        }
        return;
    };
    if old == new {
        return;
    }
    let diff = TextDiff::from_lines(old, new);
    for group in diff.grouped_ops(AROUND) {
        for change in group
            .iter()
            .flat_map(|operation| diff.iter_changes(operation))
        {
            let (sign, look) = match change.tag() {
                ChangeTag::Delete => ("-", style::BAD),
                ChangeTag::Insert => ("+", style::GOOD),
                ChangeTag::Equal => (" ", style::QUIET),
            };
            let line = escape_invisible(change.value().trim_end_matches('\n'));
            output::line(format_args!(
                "{indent}{}",
                styled(look, format_args!("{sign} {line}"))
            ));
        }
    }
}

/// Returns one hook as JSON.
pub fn json(project_hook: &ProjectHook, approvals: &Approvals) -> Value {
    let item = &project_hook.item;
    let files: Vec<_> = item.listed_files().collect();
    json!({
        "name": item.name,
        "source": item.source.display().to_string(),
        "project": item.project.display().to_string(),
        "state": project_hook.state,
        "approved_in_force": project_hook.is_approved_in_force,
        "events": project_hook.events,
        "definition": item.definition,
        "files": files,
        "unread": item.unread,
        "digest": item.digest(),
        "approved_at": approvals.before(item).map(|approved| approved.approved_at.to_string()),
    })
}
