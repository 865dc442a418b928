//! Tests of snapshots with real work trees.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenterhook_builtins::snapshot::{Kind, RestoreOptions, Shadow, SnapshotError};
use tenterhook_engine::event::{PostToolUse, PreToolUse, SessionEnd, TurnEnd, TurnStart};
use tenterhook_process::CancellationToken;

use crate::work_tree::{WorkTree, call};

const SAFE: RestoreOptions = RestoreOptions {
    force: false,
    dry_run: false,
};
const DRY: RestoreOptions = RestoreOptions {
    dry_run: true,
    ..SAFE
};
const FORCED: RestoreOptions = RestoreOptions {
    force: true,
    ..SAFE
};

/// Returns the content or link target, and the permission bits, of everything below a folder.
type Files = BTreeMap<PathBuf, (Vec<u8>, u32)>;

fn files(dir: &Path) -> Files {
    let mut found = Files::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let mode = metadata.permissions().mode();
            let content = if metadata.is_symlink() {
                fs::read_link(&path)
                    .unwrap()
                    .into_os_string()
                    .as_bytes()
                    .to_vec()
            } else if metadata.is_dir() {
                folders.push(path);
                continue;
            } else {
                fs::read(&path).unwrap()
            };
            found.insert(path.strip_prefix(dir).unwrap().to_owned(), (content, mode));
        }
    }
    found
}

/// Returns the user's files without the repository's.
fn work_files(tree: &WorkTree) -> Files {
    let mut found = files(&tree.path());
    found.retain(|path, _| !path.starts_with(".git"));
    found
}

async fn shadow(tree: &WorkTree) -> Shadow {
    open(tree, &tree.path()).await.unwrap()
}

async fn open(tree: &WorkTree, dir: &Path) -> Result<Shadow, SnapshotError> {
    let timeout = Duration::from_mins(1);
    Shadow::open(&tree.data(), dir, timeout, CancellationToken::new()).await
}

async fn turn(tree: &WorkTree, change: impl FnOnce()) {
    let snapshot = tree.handler("snapshot", &[]);
    snapshot
        .handle(&call(TurnStart::default(), &tree.path()))
        .await
        .unwrap();
    change();
    snapshot
        .handle(&call(TurnEnd::default(), &tree.path()))
        .await
        .unwrap();
}

/// Changes, removes, renames, adds, and turns one kind of file into another.
fn change_everything(tree: &WorkTree, odd_name: &Path) {
    for number in 0..1_000 {
        let path = tree
            .path()
            .join(format!("dir{}/file{number}.txt", number % 10));
        match number % 4 {
            0 => fs::write(&path, "changed").unwrap(),
            1 => fs::remove_file(&path).unwrap(),
            2 => fs::rename(&path, path.with_extension("moved")).unwrap(),
            _ => fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap(),
        }
    }
    fs::remove_dir_all(tree.path().join("dir3")).unwrap();
    tree.write("dir3", "a file where a folder was");
    tree.write("new/deep/file", "new");
    fs::remove_file(tree.path().join("link")).unwrap();
    tree.write("link", "no link");
    fs::remove_file(odd_name).unwrap();
    tree.write("with space\nand line.txt", "changed");
    tree.write("private", "leaked");
    fs::set_permissions(
        tree.path().join("private"),
        fs::Permissions::from_mode(0o644),
    )
    .unwrap();
    fs::set_permissions(
        tree.path().join("program"),
        fs::Permissions::from_mode(0o644),
    )
    .unwrap();
    tree.write("untracked.bin", "changed");
}

#[tokio::test]
async fn a_thousand_changed_files_come_back_to_the_byte_and_the_users_repository_is_not_touched() {
    let tree = WorkTree::new();
    for number in 0..1_000 {
        tree.write(
            &format!("dir{}/file{number}.txt", number % 10),
            &format!("content\r\n{number}\n"),
        );
    }
    tree.write(".gitignore", "ignored/\n");
    tree.write(
        ".gitattributes",
        "* text=auto eol=lf\n*.txt filter=evil ident\n",
    );
    tree.write("with space\nand line.txt", "odd");
    tree.write("empty", "");
    tree.write("program", "#!/bin/sh\n");
    tree.write("private", "mine");
    tree.write("untracked.bin", "\0\u{1}binary\r\n");
    let odd_name = tree.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs::write(&odd_name, "latin").unwrap();
    symlink("empty", tree.path().join("link")).unwrap();
    let program = tree.path().join("program");
    let mode = fs::metadata(&program).unwrap().permissions().mode();
    // Whoever may read it may run it, as git creates it with the umask of the test.
    let mode = mode | (mode & 0o444) >> 2;
    fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
    fs::set_permissions(
        tree.path().join("private"),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    tree.git(&["add", "dir0", "dir1", "program", "link", "private"]);
    tree.git(&["commit", "--quiet", "-m", "some"]);
    tree.git(&["config", "core.autocrlf", "true"]);
    tree.git(&["config", "filter.evil.smudge", "touch .git/ran"]);
    tree.git(&["config", "filter.evil.clean", "touch .git/ran"]);
    tree.write("ignored/cache", "left alone");
    let (before, repository) = (work_files(&tree), files(&tree.path().join(".git")));

    turn(&tree, || change_everything(&tree, &odd_name)).await;

    assert_ne!(work_files(&tree), before);
    let shadow = shadow(&tree).await;
    let dry = shadow.undo(1, DRY).await.unwrap();
    assert_ne!(work_files(&tree), before);
    let restored = shadow.undo(1, SAFE).await.unwrap();
    assert_eq!(
        (&restored.written, &restored.removed),
        (&dry.written, &dry.removed)
    );
    assert!(restored.written.len() > 1_000, "{}", restored.written.len());
    let after = work_files(&tree);
    let differing: Vec<_> = before
        .iter()
        .filter(|(path, file)| after.get(*path) != Some(file))
        .map(|(path, _)| path)
        .collect();
    assert!(differing.is_empty(), "{differing:?}");
    assert_eq!(after.len(), before.len());
    assert!(!tree.path().join("new").exists());
    assert_eq!(files(&tree.path().join(".git")), repository);

    // The change that the undo made is a checkpoint too.
    shadow
        .reset(restored.checkpoint.unwrap(), SAFE)
        .await
        .unwrap();
    assert_eq!(
        fs::read_to_string(tree.path().join("private")).unwrap(),
        "leaked"
    );
}

#[tokio::test]
async fn a_link_that_comes_back_does_not_change_the_permissions_of_a_file_elsewhere() {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let set_mode = |path: &Path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    let (tree, elsewhere) = (WorkTree::new(), tempfile::tempdir().unwrap());
    let (key, link) = (elsewhere.path().join("key"), tree.path().join("link"));
    fs::write(&key, "secret").unwrap();
    set_mode(&key);
    symlink(&key, &link).unwrap();
    turn(&tree, || {
        fs::remove_file(&link).unwrap();
        tree.write("link", "no link");
        set_mode(&link);
    })
    .await;
    shadow(&tree).await.undo(1, SAFE).await.unwrap();
    assert_eq!(fs::read_link(&link).unwrap(), key);
    assert_eq!(mode(&key), 0o600);
}

#[tokio::test]
async fn several_turns_are_taken_back_one_by_one_or_together() {
    let tree = WorkTree::new();
    for text in ["one", "two", "three"] {
        turn(&tree, || tree.write("a", text)).await;
    }
    turn(&tree, || ()).await;
    let shadow = shadow(&tree).await;
    let list = shadow.list().await.unwrap();
    let ids: Vec<u64> = list.iter().map(|checkpoint| checkpoint.id).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(
        (list[0].files, list[0].note.session.as_deref()),
        (1, Some("s1"))
    );
    let read = || fs::read_to_string(tree.path().join("a")).ok();
    shadow.undo(1, SAFE).await.unwrap();
    assert_eq!(read().as_deref(), Some("two"));
    shadow.undo(2, SAFE).await.unwrap();
    assert_eq!(read(), None);
    assert!(matches!(
        shadow.undo(1, SAFE).await,
        Err(SnapshotError::NothingToUndo)
    ));
    let list = shadow.list().await.unwrap();
    let undone: Vec<bool> = list.iter().map(|checkpoint| checkpoint.is_undone).collect();
    assert_eq!(undone, [true, true, true, false, false]);
    shadow.reset(3, SAFE).await.unwrap();
    assert_eq!(read().as_deref(), Some("two"));
    assert!(matches!(
        shadow.reset(99, SAFE).await,
        Err(SnapshotError::NoCheckpoint { id: 99 })
    ));
}

#[tokio::test]
async fn what_the_user_changed_since_is_not_overwritten_unasked() {
    let tree = WorkTree::new();
    tree.write("a", "before");
    turn(&tree, || tree.write("a", "by the agent")).await;
    tree.write("a", "by the user");
    tree.write("b", "by the user too");
    let shadow = shadow(&tree).await;
    let Err(SnapshotError::Changed { paths }) = shadow.undo(1, SAFE).await else {
        panic!("the user's change was not seen");
    };
    assert_eq!(paths, [PathBuf::from("a")]);
    shadow.undo(1, FORCED).await.unwrap();
    assert_eq!(fs::read_to_string(tree.path().join("a")).unwrap(), "before");
    assert_eq!(
        fs::read_to_string(tree.path().join("b")).unwrap(),
        "by the user too"
    );
}

#[tokio::test]
async fn a_tool_call_has_a_checkpoint_of_its_own_that_outlives_the_session() {
    let tree = WorkTree::new();
    let snapshot = tree.handler("snapshot", &[]);
    let begun = PreToolUse::new("shell").with_tool_use_id("call_1");
    let ended = PostToolUse::new("shell").with_tool_use_id("call_1");
    snapshot.handle(&call(begun, &tree.path())).await.unwrap();
    tree.write("made", "by a tool");
    snapshot.handle(&call(ended, &tree.path())).await.unwrap();
    snapshot
        .handle(&call(SessionEnd::default(), &tree.path()))
        .await
        .unwrap();
    let shadow = shadow(&tree).await;
    let list = shadow.list().await.unwrap();
    assert_eq!(
        (list[0].note.kind, list[0].note.label.as_deref()),
        (Kind::Tool, Some("shell"))
    );
    shadow.undo(1, SAFE).await.unwrap();
    assert!(!tree.path().join("made").exists());
}

#[tokio::test]
async fn what_cannot_be_kept_is_said() {
    let tree = WorkTree::new();
    turn(&tree, || {
        fs::write(tree.path().join("large"), vec![0; 3 << 20]).unwrap();
        tree.write("small", "x");
        tree.write("nested/.git/HEAD", "ref: refs/heads/main\n");
    })
    .await;
    let list = shadow(&tree).await.list().await.unwrap();
    assert!(
        list[0].skipped.contains(&"large".to_owned()),
        "{:?}",
        list[0]
    );
    shadow(&tree).await.undo(1, SAFE).await.unwrap();
    assert!(tree.path().join("large").exists());
    assert!(!tree.path().join("small").exists());
}

#[tokio::test]
async fn sessions_at_the_same_time_and_what_a_killed_one_left_do_not_disturb() {
    let tree = WorkTree::new();
    tree.write("a", "x");
    let first = shadow(&tree).await;
    let shadow_dir = fs::read_dir(tree.data().join("snapshots"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    fs::write(shadow_dir.path().join("index.lock"), "").unwrap();
    let second = shadow(&tree).await;
    let states = futures_util::future::join_all((0..8).map(|number| {
        let shadow = if number % 2 == 0 { &first } else { &second };
        shadow.take()
    }))
    .await;
    let states: Vec<_> = states.into_iter().map(Result::unwrap).collect();
    assert!(states.iter().all(|state| state.is_same(&states[0])));
}

#[tokio::test]
async fn a_folder_that_is_no_work_tree_is_left_alone() {
    let tree = WorkTree::bare();
    turn(&tree, || tree.write("a", "x")).await;
    assert!(!tree.data().exists());
    assert!(matches!(
        open(&tree, &tree.path()).await,
        Err(SnapshotError::NoWorkTree { .. })
    ));
}

#[tokio::test]
async fn a_folder_for_data_within_the_work_tree_does_not_hold_itself() {
    let tree = WorkTree::new();
    tree.write("a", "x");
    let data = tree.path().join(".data");
    let timeout = Duration::from_mins(1);
    let shadow = Shadow::open(&data, &tree.path(), timeout, CancellationToken::new())
        .await
        .unwrap();
    let first = shadow.take().await.unwrap();
    let second = shadow.take().await.unwrap();
    assert!(first.is_same(&second));
    assert_eq!(first.skipped, [""; 0]);
}
