//! The search path without the folders of a project, in which an agent can put programs.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What is searched when every entry leads into a project. An empty search path would mean the working folder.
const STANDARD: &str = "/usr/bin:/bin";

/// Returns the search path without what is below these folders, and without relative entries, which lead into the
/// working folder. `None`: it has neither.
pub(super) fn outside(roots: &[&Path]) -> Option<OsString> {
    let search = std::env::var_os("PATH")?;
    without(&search, roots)
}

fn without(search: &OsStr, roots: &[&Path]) -> Option<OsString> {
    let is_below = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    let is_outside = |entry: &PathBuf| {
        let found = std::fs::canonicalize(entry);
        entry.is_absolute() && !is_below(entry) && !found.is_ok_and(|found| is_below(&found))
    };
    let all: Vec<PathBuf> = std::env::split_paths(search).collect();
    let kept: Vec<&PathBuf> = all.iter().filter(|entry| is_outside(entry)).collect();
    if kept.len() == all.len() {
        return None;
    }
    let joined = std::env::join_paths(kept).ok();
    Some(
        joined
            .filter(|it| !it.is_empty())
            .unwrap_or_else(|| STANDARD.into()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_project_and_relative_ones_are_left_out() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let root = home.join("p");
        std::fs::create_dir_all(root.join("bin")).unwrap();
        let link = home.join("link");
        std::os::unix::fs::symlink(root.join("bin"), &link).unwrap();
        let (bin, link) = (root.join("bin"), link.display().to_string());
        let bin = bin.display();
        for (search, expected) in [
            (format!("{bin}:/usr/bin"), Some("/usr/bin")),
            (format!("/usr/bin:{link}:/bin"), Some("/usr/bin:/bin")),
            ("bin:/usr/bin:.".to_owned(), Some("/usr/bin")),
            (":/usr/bin".to_owned(), Some("/usr/bin")),
            (format!("{bin}"), Some(STANDARD)),
            ("bin:.".to_owned(), Some(STANDARD)),
            ("/usr/bin:/bin".to_owned(), None),
        ] {
            let found = without(search.as_ref(), &[&root]);
            assert_eq!(found, expected.map(OsString::from), "{search}");
        }
    }
}
