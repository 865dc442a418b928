//! What a project brings, readable: all of what is new, the difference of what changed.

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use tenterhook::Layer;
use tenterhook_config::{
    Approvals, Approved, Brought, DivergedHook, FileState, FoundFile, Item, ItemFile, TrustState,
};

use crate::approval::{name_of, name_of_diverged};
use crate::output::{self, style, styled};
use crate::safe::{reveal, safe_line};

/// The longest file that is shown as text, in bytes.
const LONGEST: usize = 256 << 10;
/// Unchanged lines around a change.
const AROUND: usize = 3;

/// Prints one hook.
pub(super) fn show(brought: &Brought, approvals: &Approvals, found: &[FoundFile]) {
    let look = match brought.state {
        TrustState::Trusted => style::GOOD,
        TrustState::Untrusted | TrustState::Changed | TrustState::Displaced => style::CARE,
    };
    let in_force = if brought.is_approved_in_force {
        ", the approved version is in force"
    } else {
        ""
    };
    output::line(format_args!(
        "{}  {}{in_force}",
        styled(style::STRONG, name_of(&brought.item)),
        styled(look, brought.state.as_str())
    ));
    let item = &brought.item;
    let before = approvals.before(item);
    difference(
        before.map(|before| before.definition.as_str()),
        &item.definition,
        "  ",
    );
    for note in &item.unread {
        output::line(format_args!(
            "  {} {}",
            styled(style::CARE, "care:"),
            safe_line(note)
        ));
    }
    for by in shadows(brought, found) {
        output::line(format_args!(
            "  {} it takes the place of {by}",
            styled(style::CARE, "care:")
        ));
    }
    if brought.state != TrustState::Trusted {
        for file in &item.files {
            show_file(file, item, before, approvals);
        }
        for gone in before.into_iter().flat_map(|before| &before.files) {
            if !item.files.iter().any(|file| file.path == gone.path) {
                output::line(format_args!(
                    "  {} {}",
                    safe_line(&gone.path.display().to_string()),
                    styled(style::BAD, "no longer named")
                ));
            }
        }
    }
    output::line("");
}

/// Prints an approved hook that the project does not have.
pub(super) fn show_missing(hook: &DivergedHook) {
    let state = match &hook.denies {
        None => "not in the project, the approved version is in force".to_owned(),
        Some(reason) => safe_line(reason),
    };
    output::line(format_args!(
        "{}  {}",
        styled(style::STRONG, name_of_diverged(hook)),
        styled(style::CARE, state)
    ));
    difference(None, &hook.approved.definition, "  ");
    output::line("");
}

/// Returns the hooks of other layers that do not run where this one does.
fn shadows(brought: &Brought, found: &[FoundFile]) -> Vec<String> {
    let item = &brought.item;
    let path = item.project.join(&item.source).join(&item.name);
    let Some(own) = found.iter().find(|file| file.path == path) else {
        return Vec::new();
    };
    let is_shadowed = |file: &&FoundFile| {
        let is_shadowed = matches!(file.state, FileState::Shadowed { .. });
        let counts = is_shadowed || file.state.is_in_force();
        counts && file.layer == Layer::User && file.name == own.name && file.speaks == own.speaks
    };
    let shadowed = found.iter().filter(is_shadowed);
    shadowed
        .map(|file| safe_line(&file.path.display().to_string()))
        .collect()
}

fn show_file(file: &ItemFile, item: &Item, before: Option<&Approved>, approvals: &Approvals) {
    let path = safe_line(&file.path.display().to_string());
    let target = if file.target == item.project.join(&file.path) {
        String::new()
    } else {
        format!(" -> {}", safe_line(&file.target.display().to_string()))
    };
    let known = before.and_then(|before| before.files.iter().find(|known| known.path == file.path));
    let is_same =
        known.is_some_and(|known| known.sha256 == file.sha256 && known.target == file.target);
    let what = match known {
        Some(known) if is_same => match (known.is_executable, file.is_executable) {
            (false, true) => "same bytes, now executable",
            (true, false) => "same bytes, no longer executable",
            (true, true) | (false, false) => "unchanged",
        },
        Some(_) => "changed",
        None => "new",
    };
    let digest = file.sha256.get(..12).unwrap_or_default();
    output::line(format_args!(
        "  {path}{target}  {what}, {} bytes, sha256 {digest}…",
        file.bytes.len()
    ));
    if is_same {
        return;
    }
    let old = before.and_then(|before| approvals.approved_bytes(&item.project, before, &file.path));
    match (text(&file.bytes), old.as_deref().map(text)) {
        (Some(new), Some(Some(old))) => difference(Some(old), new, "    "),
        (Some(new), _) => difference(None, new, "    "),
        (None, _) => output::line("    not text, or longer than 256 KiB: it is not shown"),
    }
}

/// Returns bytes as text, if they are and a person could read all of it.
fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    (bytes.len() <= LONGEST && !text.contains('\0')).then_some(text)
}

/// Prints the lines that are different, or all of a text that nobody has seen.
fn difference(old: Option<&str>, new: &str, indent: &str) {
    let Some(old) = old else {
        for line in new.split_terminator('\n') {
            output::line(format_args!("{indent}{}", reveal(line)));
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
            let line = reveal(change.value().trim_end_matches('\n'));
            output::line(format_args!(
                "{indent}{}",
                styled(look, format_args!("{sign} {line}"))
            ));
        }
    }
}

/// Returns one hook for programs.
pub(super) fn json(brought: &Brought, approvals: &Approvals) -> Value {
    let item = &brought.item;
    let files: Vec<Value> = item
        .files
        .iter()
        .map(|file| {
            json!({
                "path": file.path.display().to_string(),
                "target": file.target.display().to_string(),
                "sha256": file.sha256,
                "executable": file.is_executable,
            })
        })
        .collect();
    json!({
        "name": item.name,
        "source": item.source.display().to_string(),
        "project": item.project.display().to_string(),
        "state": brought.state,
        "approved_in_force": brought.is_approved_in_force,
        "events": brought.events,
        "definition": item.definition,
        "files": files,
        "unread": item.unread,
        "digest": item.digest(),
        "approved_at": approvals.before(item).map(|approved| approved.approved_at.to_string()),
    })
}
