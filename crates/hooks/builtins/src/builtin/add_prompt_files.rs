//! Gives the model instruction files: for each name, the nearest file at or above the working directory, then the
//! user's own. With a depth, it also lists the files of these names in subfolders.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_engine::{Call, HandlerError};
use tenterhook_files::readable_entries;
use tenterhook_protocol::{AnyEffect, EventKind};

use super::row::{Builtin, EventRunner, blocking, context, directory};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "add_prompt_files",
    events: &[EventKind::TurnStart],
    arguments: "file names, and `--depth=N` to list files up to N folders below",
    make: |setup| {
        Ok(Box::new(AddPromptFiles(Arc::new(Wanted::read(
            setup.arguments,
        )?))))
    },
};

/// The maximum number of bytes of one file that the model gets. Context must stay bounded.
const FILE_LIMIT: usize = 256 << 10;

/// The largest depth that can be configured.
const MAX_DEPTH: usize = 16;
/// The maximum number of directory entries that one search reads.
const SEARCH_LIMIT: usize = 20_000;
/// The maximum number of files that are listed.
const LISTED: usize = 100;

struct AddPromptFiles(Arc<Wanted>);

/// The parsed arguments.
#[derive(Debug, PartialEq)]
struct Wanted {
    names: Vec<String>,
    /// How many levels of subfolders are searched; 0 searches none.
    depth: usize,
}

impl Wanted {
    fn read(arguments: &[String]) -> Result<Self, String> {
        let mut wanted = Self {
            names: Vec::new(),
            depth: 0,
        };
        for argument in arguments {
            if let Some(depth) = argument.strip_prefix("--depth=") {
                let depth = depth.parse().ok();
                wanted.depth = depth
                    .filter(|depth| (1..=MAX_DEPTH).contains(depth))
                    .ok_or_else(|| {
                        format!("invalid `{argument}`; expected a depth from 1 to {MAX_DEPTH}")
                    })?;
            } else if argument.is_empty() || argument.starts_with('-') {
                return Err(format!("`{argument}` is not a file name"));
            } else {
                wanted.names.push(argument.clone());
            }
        }
        Ok(wanted)
    }
}

impl EventRunner for AddPromptFiles {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        Box::pin(async move {
            let Some(dir) = directory(&call.event).map(Path::to_owned) else {
                return Ok(AnyEffect::default());
            };
            let wanted = Arc::clone(&self.0);
            blocking(move || give(&dir, &wanted)).await
        })
    }
}

/// Reads every file that exists.
fn give(dir: &Path, wanted: &Wanted) -> AnyEffect {
    let home = std::env::home_dir();
    let texts: Vec<String> = wanted
        .names
        .iter()
        .flat_map(|name| paths(dir, home.as_deref(), name))
        .filter_map(|path| {
            let text = read(&path)?;
            Some(format!("Instructions from: {}\n{text}", path.display()))
        })
        .chain(listing(dir, wanted))
        .collect();
    if texts.is_empty() {
        AnyEffect::default()
    } else {
        context(texts.join("\n\n"))
    }
}

/// Returns the nearest file called `name` at or above `dir`, and the one in the user's home if it is another file.
fn paths(dir: &Path, home: Option<&Path>, name: &str) -> Vec<PathBuf> {
    let nearest = dir
        .ancestors()
        .map(|ancestor| ancestor.join(name))
        .find(|path| path.is_file());
    let own = home
        .map(|home| home.join(name))
        .filter(|path| path.is_file() && nearest.as_ref() != Some(path));
    nearest.into_iter().chain(own).collect()
}

/// Lists the wanted files below `dir`, upper folders first. Hidden folders and links to folders are skipped.
fn listing(dir: &Path, wanted: &Wanted) -> Option<String> {
    let mut found = Vec::new();
    let mut entries_left = SEARCH_LIMIT;
    let mut folders = VecDeque::from([(dir.to_owned(), 0)]);
    while let Some((folder, depth)) = folders.pop_front() {
        let mut below = Vec::new();
        for entry in readable_entries(&folder) {
            if entries_left == 0 {
                break;
            }
            entries_left -= 1;
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                below.push(entry.path());
            }
        }
        below.sort_unstable();
        if depth > 0 {
            let named = wanted.names.iter().map(|name| folder.join(name));
            found.extend(named.filter(|path| path.is_file()));
        }
        if depth < wanted.depth {
            folders.extend(below.into_iter().map(|folder| (folder, depth + 1)));
        }
    }
    if found.is_empty() {
        return None;
    }
    let more = found.len().saturating_sub(LISTED);
    let lines = found
        .iter()
        .take(LISTED)
        .map(|path| format!("- {}", path.strip_prefix(dir).unwrap_or(path).display()));
    let rest = (more > 0).then(|| format!("... and {more} more"));
    let lines: Vec<String> = lines.chain(rest).collect();
    Some(format!(
        "Prompt files below {}:\n\n{}",
        dir.display(),
        lines.join("\n")
    ))
}

/// Reads a file up to the limit. An unreadable file is skipped, because a prompt file protects nothing.
fn read(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    std::io::Read::read_to_end(
        &mut std::io::Read::take(file, FILE_LIMIT as u64),
        &mut bytes,
    )
    .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_file_comes_before_the_one_at_home() {
        let root = tempfile::tempdir().unwrap();
        let (home, dir) = (root.path().join("home"), root.path().join("project/src"));
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(&dir).unwrap();
        let (own, above) = (home.join("GUIDE.md"), root.path().join("project/GUIDE.md"));
        std::fs::write(&own, "own").unwrap();
        assert_eq!(
            paths(&dir, Some(&home), "GUIDE.md"),
            std::slice::from_ref(&own)
        );
        std::fs::write(&above, "above").unwrap();
        assert_eq!(paths(&dir, Some(&home), "GUIDE.md"), [above.clone(), own]);
        assert_eq!(
            paths(&dir, Some(&root.path().join("project")), "GUIDE.md"),
            [above]
        );
        assert!(paths(&dir, Some(&home), "MISSING.md").is_empty());
    }

    #[test]
    fn files_below_are_named_as_deep_as_asked() {
        let root = tempfile::tempdir().unwrap();
        for path in [
            "a/b/c/GUIDE.md",
            "a/GUIDE.md",
            "z/GUIDE.md",
            ".git/GUIDE.md",
            "GUIDE.md",
        ] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "secret").unwrap();
        }
        let list = |depth: usize| {
            let names = vec!["GUIDE.md".to_owned()];
            listing(root.path(), &Wanted { names, depth })
        };
        let heading = format!("Prompt files below {}:\n\n", root.path().display());
        assert_eq!(list(0), None);
        assert_eq!(
            list(2),
            Some(format!("{heading}- a/GUIDE.md\n- z/GUIDE.md"))
        );
        let all = format!("{heading}- a/GUIDE.md\n- z/GUIDE.md\n- a/b/c/GUIDE.md");
        assert_eq!(list(3), Some(all));
    }

    #[test]
    fn a_long_listing_is_cut() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..LISTED + 2 {
            let folder = root.path().join(format!("d{number:03}"));
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("GUIDE.md"), "").unwrap();
        }
        let names = vec!["GUIDE.md".to_owned()];
        let text = listing(root.path(), &Wanted { names, depth: 1 }).unwrap();
        assert!(
            text.ends_with("\n- d099/GUIDE.md\n... and 2 more"),
            "{text}"
        );
    }

    #[test]
    fn arguments_are_names_and_one_depth() {
        let read = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
            Wanted::read(&arguments)
        };
        let wanted = read(&["A.md", "--depth=2"]).unwrap();
        assert_eq!(
            (wanted.names.as_slice(), wanted.depth),
            (&["A.md".to_owned()][..], 2)
        );
        for (argument, problem) in [
            (
                "--depth=0",
                "invalid `--depth=0`; expected a depth from 1 to 16",
            ),
            (
                "--depth=17",
                "invalid `--depth=17`; expected a depth from 1 to 16",
            ),
            (
                "--depth=x",
                "invalid `--depth=x`; expected a depth from 1 to 16",
            ),
            ("--deep", "`--deep` is not a file name"),
            ("", "`` is not a file name"),
        ] {
            assert_eq!(read(&[argument]), Err(problem.to_owned()));
        }
    }
}
