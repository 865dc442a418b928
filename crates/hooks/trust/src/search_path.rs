//! The search path for programs, and the same path without a project's folders, to which an agent
//! can write.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::project::{Project, resolved};

/// Used when no entry is left, because an empty search path would mean the working folder.
const STANDARD: &str = "/usr/bin:/bin";

/// Returns the search path without entries inside these folders and without relative entries, which
/// would lead into the working folder. Returns `None` if it has neither.
pub(crate) fn outside(roots: &[&Path]) -> Option<OsString> {
    without(&std::env::var_os("PATH")?, roots, &[])
}

/// Returns the search path for the scripts of a user who works in `directory`. It has no relative entries, no
/// entries inside the project, and none where one of `programs` is a link into the project. Returns `None` if
/// the search path has none of these.
///
/// The project is the repository of the folder, or the folder itself. If it contains the user's home, it is
/// not left out, because the user's own programs are there.
pub fn search_path_in(directory: &Path, programs: &[&str]) -> Option<OsString> {
    let project = Project::of(directory);
    let home = std::env::home_dir().map(|home| resolved(&home));
    let is_home = home.is_some_and(|home| home.starts_with(&project.root));
    let roots = [project.root.as_path()];
    let roots = if is_home { &[][..] } else { &roots };
    without(&std::env::var_os("PATH")?, roots, programs)
}

/// Returns the search path for the approved scripts of a project, which has no entries inside of it, as in
/// [`search_path_in`].
pub fn search_path_outside(project: &Project, programs: &[&str]) -> Option<OsString> {
    let roots: [&Path; 2] = [&project.root, &project.dir];
    without(&std::env::var_os("PATH")?, &roots, programs)
}

fn without(search: &OsStr, roots: &[&Path], programs: &[&str]) -> Option<OsString> {
    let is_below = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    let leads_below = |path: &Path| std::fs::canonicalize(path).is_ok_and(|it| is_below(&it));
    let is_outside = |entry: &PathBuf| {
        let mut programs = programs.iter().map(|program| entry.join(program));
        entry.is_absolute()
            && !is_below(entry)
            && !leads_below(entry)
            && !programs.any(|program| leads_below(&program))
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

/// Returns the file that a program's name leads to, by the search path or relative to `dir`.
pub fn in_search_path(name: &str, dir: &Path) -> Option<PathBuf> {
    find_program(name, dir, None)
}

/// Like [`in_search_path`], with another search path than this process has.
pub fn find_program(name: &str, dir: &Path, search: Option<&OsStr>) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(dir.join(name));
    }
    let search = match search {
        Some(search) => search.to_owned(),
        None => std::env::var_os("PATH")?,
    };
    std::env::split_paths(&search)
        .map(|place| dir.join(place).join(name))
        .find(|path| path.is_file())
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
        let planted = home.join("planted");
        std::fs::create_dir(&planted).unwrap();
        std::fs::write(root.join("bin/node"), "").unwrap();
        std::os::unix::fs::symlink(root.join("bin/node"), planted.join("node")).unwrap();
        let planted = planted.display();
        let (bin, link) = (root.join("bin"), link.display().to_string());
        let bin = bin.display();
        for (search, expected) in [
            (format!("{bin}:/usr/bin"), Some("/usr/bin")),
            (format!("/usr/bin:{link}:/bin"), Some("/usr/bin:/bin")),
            ("bin:/usr/bin:.".to_owned(), Some("/usr/bin")),
            (":/usr/bin".to_owned(), Some("/usr/bin")),
            (format!("{bin}"), Some(STANDARD)),
            (format!("{planted}:/usr/bin"), Some("/usr/bin")),
            ("bin:.".to_owned(), Some(STANDARD)),
            ("/usr/bin:/bin".to_owned(), None),
        ] {
            let found = without(search.as_ref(), &[&root], &["node"]);
            assert_eq!(found, expected.map(OsString::from), "{search}");
        }
    }
}
