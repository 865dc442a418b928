//! Compares the page on the architecture with the repository.

use std::path::Path;

/// Returns a message for each crate that the page does not describe, and for each file that it names but
/// that does not exist.
pub(crate) fn problems<'a>(
    page: &str,
    root: &Path,
    crates: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let is_missing = |name: &&str| !page.contains(&format!("\n- `{name}`: "));
    let mut problems: Vec<String> = crates
        .filter(is_missing)
        .map(|name| format!("the page has no paragraph on the crate `{name}`"))
        .collect();
    let words = page.split('`').skip(1).step_by(2);
    let files = words.filter(|word| word.starts_with("crates/") || word.starts_with("xtask/"));
    let missing = files.filter(|file| !root.join(file).exists());
    problems.extend(missing.map(|file| format!("the page names `{file}`, which does not exist")));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_without_a_paragraph_and_files_that_are_gone_are_faults() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("crates/a/src")).unwrap();
        let page = "\n- `a`: is in `crates/a/src/`, not in `crates/a/lib.rs`.\n";
        assert_eq!(
            problems(page, root.path(), ["a", "b"].into_iter()),
            [
                "the page has no paragraph on the crate `b`",
                "the page names `crates/a/lib.rs`, which does not exist"
            ]
        );
    }
}
