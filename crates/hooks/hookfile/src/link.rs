//! Symbolic links to folders of hooks.
//!
//! A folder that does not exist has no hooks, which is fine. A link shows that hooks are expected
//! somewhere, so a link that does not point to a folder is a broken source.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::source_problem::SourceProblem;

/// Returns the dangling symbolic link that makes a path unreachable, if any. It is the path itself, or
/// the nearest parent that exists.
pub fn dead_link(path: &Path) -> Option<PathBuf> {
    let nearest = path
        .ancestors()
        .find_map(|path| Some((path, fs::symlink_metadata(path).ok()?)));
    let (nearest, metadata) = nearest?;
    (metadata.is_symlink() && fs::metadata(nearest).is_err()).then(|| nearest.to_owned())
}

/// Creates the problem for a symbolic link that does not point to a file or folder as it should.
pub fn dead_target(link: &Path) -> SourceProblem {
    let target = fs::read_link(link).unwrap_or_default();
    let problem = match fs::metadata(link) {
        Ok(_) => "which is not a folder".to_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => "which does not exist".to_owned(),
        Err(error) => format!("which cannot be found: {error}"),
    };
    let message = format!(
        "the symbolic link points to `{}`, {problem}",
        target.display()
    );
    SourceProblem::from(message).hint("restore the target, or remove the link")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_a_link_without_a_target_keeps_a_folder_from_being_found() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        fs::create_dir(path("folder")).unwrap();
        symlink("folder", path("good")).unwrap();
        symlink("nowhere", path("dead")).unwrap();
        symlink("dead", path("chain")).unwrap();
        symlink("loop", path("loop")).unwrap();
        for (below, link) in [
            ("absent/hooks", None),
            ("folder/hooks", None),
            ("good/hooks", None),
            ("dead", Some("dead")),
            ("dead/plugins/hooks", Some("dead")),
            ("chain/hooks", Some("chain")),
            ("loop", Some("loop")),
        ] {
            assert_eq!(dead_link(&path(below)), link.map(path), "{below}");
        }
    }
}
