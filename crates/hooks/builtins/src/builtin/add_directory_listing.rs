//! Tells the model which files are in the working directory.

use std::path::Path;

use futures_util::future::BoxFuture;
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind};

use super::row::{Builtin, EventRunner, blocking, context, directory, takes_none};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "add_directory_listing",
    events: &[EventKind::SessionStart],
    arguments: "none",
    make: |setup| {
        takes_none(setup.arguments).map(|()| Box::new(AddDirectoryListing) as Box<dyn EventRunner>)
    },
};

/// The maximum number of entries that are listed.
const MAX: usize = 100;

struct AddDirectoryListing;

impl EventRunner for AddDirectoryListing {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        Box::pin(async move {
            let Some(dir) = directory(&call.event).map(Path::to_owned) else {
                return Ok(AnyEffect::default());
            };
            let listing = blocking(move || list(&dir)).await?;
            Ok(listing.map(context).unwrap_or_default())
        })
    }
}

/// Returns the entries in byte order, without those whose names begin with a dot. A directory that is empty or
/// unreadable has no listing.
fn list(dir: &Path) -> Option<String> {
    let entries = std::fs::read_dir(dir).ok()?.filter_map(Result::ok);
    let shown = entries.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let slash = if is_dir { "/" } else { "" };
        (!name.starts_with('.')).then(|| format!("{name}{slash}"))
    });
    let mut names: Vec<String> = shown.collect();
    if names.is_empty() {
        return None;
    }
    names.sort_unstable();
    let mut lines = vec![
        format!("Top-level entries in {}:", dir.display()),
        String::new(),
    ];
    lines.extend(names.iter().take(MAX).map(|name| format!("- {name}")));
    if names.len() > MAX {
        lines.push(format!("... and {} more", names.len() - MAX));
    }
    Some(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_sorted_with_the_slash_of_folders_and_without_dot_files() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["b", "a", ".git"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        for file in ["a.txt", "a-b", "Z", ".env"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let expected = format!(
            "Top-level entries in {}:\n\n- Z\n- a-b\n- a.txt\n- a/\n- b/",
            dir.path().display()
        );
        assert_eq!(list(dir.path()), Some(expected));
    }

    #[test]
    fn a_hundred_entries_are_listed_and_the_others_counted() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(list(dir.path()), None);
        assert_eq!(list(&dir.path().join("missing")), None);
        for number in 0..103 {
            std::fs::write(dir.path().join(format!("{number:03}")), "").unwrap();
        }
        let listing = list(dir.path()).unwrap();
        assert!(
            listing.ends_with("- 098\n- 099\n... and 3 more"),
            "{listing}"
        );
    }
}
