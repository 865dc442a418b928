//! Tests of the built-ins that run git.

use std::fs;

use crate::work_tree::WorkTree;

#[tokio::test]
async fn outside_a_work_tree_there_is_nothing_to_tell() {
    let tree = WorkTree::bare();
    for name in ["add_git_status", "add_git_diff", "add_recent_commits"] {
        assert_eq!(
            tree.context(name, &[], &tree.path()).await.unwrap(),
            None,
            "{name}"
        );
    }
}

#[tokio::test]
async fn the_status_names_branch_and_untracked_files() {
    let tree = WorkTree::new();
    tree.write("sub/new.txt", "x");
    let expected = "Current git status:\n\n## No commits yet on main\n?? sub/";
    for dir in [tree.path(), tree.path().join("sub")] {
        let text = tree.context("add_git_status", &[], &dir).await.unwrap();
        let expected = expected.replace("sub/", if dir.ends_with("sub") { "./" } else { "sub/" });
        assert_eq!(text.as_deref(), Some(expected.as_str()));
    }
}

#[tokio::test]
async fn the_diff_is_a_summary_or_whole_and_nothing_for_a_clean_tree() {
    let tree = WorkTree::new();
    tree.write("a.txt", "one\n");
    tree.commit("first");
    let diff = async |arguments: &[&str]| {
        tree.context("add_git_diff", arguments, &tree.path())
            .await
            .unwrap()
    };
    assert_eq!(diff(&[]).await, None);
    tree.write("a.txt", "two\n");
    let summary = diff(&[]).await.unwrap();
    assert!(
        summary.starts_with("Current working-tree diff (stat):\n\na.txt | 2 +-"),
        "{summary}"
    );
    let full = diff(&["full"]).await.unwrap();
    assert!(
        full.starts_with("Current working-tree diff:\n\ndiff --git"),
        "{full}"
    );
    assert!(full.ends_with("-one\n+two"), "{full}");
}

#[tokio::test]
async fn a_long_diff_is_cut_at_a_whole_character() {
    let tree = WorkTree::new();
    tree.write("a.txt", "");
    tree.commit("first");
    tree.write("a.txt", &"é".repeat(6_000));
    let full = tree
        .context("add_git_diff", &["full"], &tree.path())
        .await
        .unwrap()
        .unwrap();
    let (heading, body) = full.split_once(":\n\n").unwrap();
    assert_eq!(heading, "Current working-tree diff");
    let kept = body.strip_suffix("\n... (truncated)").unwrap();
    assert!((4_095..=4_096).contains(&kept.len()), "{}", kept.len());
}

#[tokio::test]
async fn commits_are_told_newest_first_and_as_many_as_asked_for() {
    let tree = WorkTree::new();
    let told = async |arguments: &[&str]| {
        tree.context("add_recent_commits", arguments, &tree.path())
            .await
            .unwrap()
    };
    assert_eq!(told(&[]).await, None);
    for number in 1..=12 {
        tree.commit(&format!("change {number}"));
    }
    let ten = told(&[]).await.unwrap();
    assert!(ten.starts_with("Recent commits:\n\n"), "{ten}");
    assert_eq!(ten.lines().count(), 12);
    assert!(ten.lines().nth(2).unwrap().ends_with("change 12"));
    assert_eq!(told(&["2"]).await.unwrap().lines().count(), 4);
}

#[cfg(unix)]
#[tokio::test]
async fn a_repository_starts_no_program_of_its_own() {
    use std::os::unix::fs::PermissionsExt as _;
    let tree = WorkTree::new();
    tree.write("a.txt", "one\n");
    tree.write(".gitattributes", "*.txt diff=evil\n");
    tree.commit("first");
    tree.write("a.txt", "two\n");
    let (program, trace) = (
        tree.path().join(".git/evil"),
        tree.path().join(".git/trace"),
    );
    fs::write(
        &program,
        format!("#!/bin/sh\necho ran >> {}\ncat \"$1\"\n", trace.display()),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    for key in [
        "core.fsmonitor",
        "diff.external",
        "core.pager",
        "diff.evil.textconv",
        "diff.evil.command",
    ] {
        tree.git(&["config", key, program]);
    }
    for (name, arguments) in [
        ("add_git_status", &[][..]),
        ("add_git_diff", &[]),
        ("add_git_diff", &["full"]),
        ("add_recent_commits", &[]),
    ] {
        let text = tree.context(name, arguments, &tree.path()).await.unwrap();
        assert!(text.is_some(), "{name}");
    }
    assert!(!trace.exists(), "{}", fs::read_to_string(&trace).unwrap());
}
