//! The repository that holds the snapshots of one work tree.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tenterhook_files::{FileLock, hex_digest, lock_file, make_private};
use tenterhook_process::CancellationToken;

use super::{
    Checkpoint, Held, Kind, MAX_CHECKPOINTS, MAX_NEW_FILE, MAX_SKIPPED, Modes, Note,
    RestoreOptions, Restored, SnapshotError, State,
};
use tenterhook_process::git::{Git, GitError, work_tree};

/// The prefix of the references that name checkpoints.
const REFS: &str = "refs/tenterhook/checkpoints/";
/// The pause between two attempts to take a lock.
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// Turns off every conversion that would change a file's content on its way in or out.
const ATTRIBUTES: &str = "* -text -eol -filter -ident -working-tree-encoding -diff -merge\n";

/// The snapshots of one work tree.
#[derive(Debug)]
pub struct Shadow {
    top: PathBuf,
    dir: PathBuf,
    /// The data folder.
    data: PathBuf,
    timeout: Duration,
    cancel: CancellationToken,
}

/// The plan of a restore.
struct Plan<'a> {
    /// The wanted state of the files.
    target: &'a Held,
    /// The last known state of the files. A file that differs from it was changed by someone else.
    since: Option<&'a Held>,
    /// The files that may change; `None` means all.
    only: Option<BTreeSet<PathBuf>>,
}

impl Plan<'_> {
    fn touches(&self, path: &Path) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(path))
    }
}

/// The commit message of a checkpoint, as JSON.
#[derive(Serialize, Deserialize)]
struct Message {
    #[serde(flatten)]
    note: Note,
    before: Held,
    after: Held,
    files: usize,
    #[serde(default)]
    skipped: Vec<String>,
}

impl Shadow {
    /// Opens the snapshots of the work tree that contains `dir`. They are stored in the data folder. Each operation on
    /// them ends within `timeout`, or when `cancel` is cancelled.
    ///
    /// # Errors
    /// Fails if `dir` is not in a work tree, or the repository cannot be created.
    pub async fn open(
        data_dir: &Path,
        dir: &Path,
        timeout: Duration,
        cancel: CancellationToken,
    ) -> Result<Self, SnapshotError> {
        let (data_dir, dir) = (data_dir.to_owned(), dir.to_owned());
        let (top, dir, data) = blocking(move || {
            let whole = fs::canonicalize(&dir).unwrap_or_else(|_| dir.clone());
            let top = work_tree(&whole).ok_or(SnapshotError::NoWorkTree { dir })?;
            let name = hex_digest(top.as_os_str().as_encoded_bytes());
            let dir = data_dir.join("snapshots").join(format!("{name}.git"));
            make_private(&dir).map_err(|error| SnapshotError::file(&dir, &error))?;
            let data = fs::canonicalize(&data_dir).unwrap_or(data_dir);
            Ok((top, dir, data))
        })
        .await?;
        let shadow = Self {
            top,
            dir,
            data,
            timeout,
            cancel,
        };
        shadow.prepare().await?;
        Ok(shadow)
    }

    /// Returns the top of the work tree.
    pub fn work_tree(&self) -> &Path {
        &self.top
    }

    async fn prepare(&self) -> Result<(), SnapshotError> {
        if self.dir.join("HEAD").exists() && self.dir.join("info/attributes").exists() {
            return Ok(());
        }
        let _lock = self.lock().await?;
        self.plain_git()
            .run(
                &self.dir,
                &["init", "--quiet", "--bare", "--template=", "."],
            )
            .await?;
        let info = self.dir.join("info");
        blocking(move || {
            let path = info.join("attributes");
            fs::create_dir_all(&info)
                .and_then(|()| fs::write(&path, ATTRIBUTES))
                .map_err(|error| SnapshotError::file(&path, &error))
        })
        .await
    }

    /// Returns git without settings of the user, the machine or the work tree.
    fn plain_git(&self) -> Git {
        let names = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"];
        let nothing = names.map(|name| (OsString::from(name), OsString::from(null_device())));
        let author = [
            ("GIT_AUTHOR_NAME", "tenterhook"),
            ("GIT_AUTHOR_EMAIL", "tenterhook@localhost"),
            ("GIT_COMMITTER_NAME", "tenterhook"),
            ("GIT_COMMITTER_EMAIL", "tenterhook@localhost"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_CONFIG_COUNT", "0"),
        ];
        let author = author.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Git::new(
            nothing.into_iter().chain(author),
            self.timeout,
            self.cancel.clone(),
        )
    }

    /// Returns git with the snapshot repository and the files of the work tree.
    fn git(&self) -> Git {
        self.plain_git()
            .env("GIT_DIR", &self.dir)
            .env("GIT_WORK_TREE", &self.top)
            .env("GIT_INDEX_FILE", self.dir.join("index"))
            .env("GIT_OBJECT_DIRECTORY", self.dir.join("objects"))
            .env("GIT_COMMON_DIR", &self.dir)
    }

    /// Locks the repository. The operating system releases the lock when the process ends for any reason.
    async fn lock(&self) -> Result<FileLock, SnapshotError> {
        let path = self.dir.join("tenterhook.lock");
        let until = Instant::now() + self.timeout;
        let lock = loop {
            let lock = lock_file(&path).and_then(FileLock::try_lock);
            if let Some(lock) = lock.map_err(|error| SnapshotError::file(&path, &error))? {
                break lock;
            }
            if Instant::now() >= until {
                return Err(SnapshotError::Busy);
            }
            let pause = tokio::time::sleep(LOCK_PAUSE);
            if self.cancel.run_until_cancelled(pause).await.is_none() {
                return Err(SnapshotError::Busy);
            }
        };
        // A process that was killed while git wrote leaves git's lock behind. We hold our own lock, so no other process
        // can be using git's.
        let left = self.dir.join("index.lock");
        match fs::remove_file(&left) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(SnapshotError::file(&left, &error))
            }
            _ => Ok(lock),
        }
    }

    /// Records the current state of all files.
    ///
    /// # Errors
    /// Fails if git or the file system fails, or another process holds the repository for the whole timeout.
    pub async fn take(&self) -> Result<State, SnapshotError> {
        let _lock = self.lock().await?;
        self.take_locked().await
    }

    async fn take_locked(&self) -> Result<State, SnapshotError> {
        let git = self.git();
        self.copy_exclusions().await?;
        let list = |kind| ["ls-files", "-z", "--exclude-standard", kind];
        let new = git.run(&self.top, &list("--others")).await?;
        let changed = git.run(&self.top, &list("--modified")).await?;
        let mut skipped = Vec::new();
        let known = paths(&git.run(&self.top, &["ls-files", "-z"]).await?);
        let top = self.top.clone();
        let tracked = self.tracked().await?;
        let data = self.data.clone();
        let known_set: BTreeSet<PathBuf> = known.iter().cloned().collect();
        let fresh: BTreeSet<PathBuf> = paths(&new).into_iter().chain(tracked).collect();
        let (kept, left) = blocking(move || {
            // If the data folder is within the work tree, a snapshot must not contain itself.
            let fresh = fresh
                .into_iter()
                .filter(|path| !known_set.contains(path) && !top.join(path).starts_with(&data));
            Ok(fresh.partition::<Vec<_>, _>(|path| is_kept(&top.join(path))))
        })
        .await?;
        skipped.extend(left.iter().map(|path| path.to_string_lossy().into_owned()));
        let top = self.top.clone();
        let changed = paths(&changed);
        // If a folder has replaced a file, git needs an explicit removal of the file first.
        let (gone, changed) = blocking(move || {
            let is_folder = |path: &PathBuf| {
                fs::symlink_metadata(top.join(path)).is_ok_and(|found| found.is_dir())
            };
            Ok(changed.into_iter().partition::<Vec<_>, _>(is_folder))
        })
        .await?;
        let remove = ["update-index", "-z", "--force-remove", "--stdin"];
        git.feed(&self.top, &remove, &named(&gone)).await?;
        let update = [
            "update-index",
            "-z",
            "--add",
            "--remove",
            "--replace",
            "--stdin",
        ];
        let update_paths: Vec<PathBuf> = kept.into_iter().chain(changed).collect();
        git.feed(&self.top, &update, &named(&update_paths)).await?;
        let tree = one_line(&git.run(&self.top, &["write-tree"]).await?);
        let now = paths(&git.run(&self.top, &["ls-files", "-z"]).await?);
        let top = self.top.clone();
        let modes = blocking(move || Ok(unusual_modes(&top, &now))).await?;
        Ok(State {
            tree,
            modes,
            skipped,
        })
    }

    /// Returns the files that the user's repository tracks. They are included even if they match an ignore rule.
    async fn tracked(&self) -> Result<Vec<PathBuf>, SnapshotError> {
        let git = Git::new([], self.timeout, self.cancel.clone());
        match git.run(&self.top, &["ls-files", "-z"]).await {
            Ok(listed) => Ok(paths(&listed)),
            // If git refuses to read the repository, for example because of its owner, no files are added.
            Err(GitError::Failed { .. }) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Copies the exclusions of the user's repository (`.git/info/exclude`), so that they apply here too.
    async fn copy_exclusions(&self) -> Result<(), SnapshotError> {
        let (from, to) = (
            self.top.join(".git/info/exclude"),
            self.dir.join("info/exclude"),
        );
        blocking(move || {
            let own = fs::read(&from).unwrap_or_default();
            if fs::read(&to).is_ok_and(|known| known == own) {
                return Ok(());
            }
            fs::write(&to, own).map_err(|error| SnapshotError::file(&to, &error))
        })
        .await
    }

    /// Stores a change as a checkpoint and returns its number. Without a change, only a manual checkpoint is created.
    ///
    /// # Errors
    /// Fails if git fails, or another process holds the repository for the whole timeout.
    pub async fn keep(
        &self,
        before: &State,
        after: &State,
        note: Note,
    ) -> Result<Option<u64>, SnapshotError> {
        let _lock = self.lock().await?;
        self.keep_locked(before, after, note).await
    }

    async fn keep_locked(
        &self,
        before: &State,
        after: &State,
        note: Note,
    ) -> Result<Option<u64>, SnapshotError> {
        if before.is_same(after) && note.kind != Kind::Manual {
            return Ok(None);
        }
        let git = self.git();
        let changes = self.changes(&before.tree, &after.tree).await?;
        let mut files: BTreeSet<PathBuf> = changes.into_iter().map(|(_, path)| path).collect();
        files.extend(changed_modes(&before.modes, &after.modes).map(PathBuf::from));
        let held = |state: &State| Held {
            tree: state.tree.clone(),
            modes: state.modes.clone(),
        };
        let message = Message {
            note,
            before: held(before),
            after: held(after),
            files: files.len(),
            skipped: after.skipped.iter().take(MAX_SKIPPED).cloned().collect(),
        };
        let text =
            serde_json::to_vec(&message).map_err(|error| SnapshotError::Git(error.to_string()))?;
        let commit = |tree: String, parent: Option<String>, text: Vec<u8>| {
            let git = &git;
            async move {
                let mut arguments = vec!["commit-tree", &tree];
                arguments.extend(parent.iter().flat_map(|parent| ["-p", parent]));
                let made = git.feed(&self.top, &arguments, &text).await?;
                Ok::<_, SnapshotError>(one_line(&made))
            }
        };
        let base = commit(before.tree.clone(), None, b"before".to_vec()).await?;
        let made = commit(after.tree.clone(), Some(base), text).await?;
        let names = self.names().await?;
        let id = names.last().map_or(1, |last| last + 1);
        // The zeros require that the reference does not exist yet, so two processes cannot use the same number.
        let reference = format!("{REFS}{id:08}");
        git.run(
            &self.top,
            &["update-ref", &reference, &made, &"0".repeat(40)],
        )
        .await?;
        let surplus = (names.len() + 1).saturating_sub(MAX_CHECKPOINTS);
        for old in names.iter().take(surplus) {
            let reference = format!("{REFS}{old:08}");
            git.run(&self.top, &["update-ref", "-d", &reference])
                .await?;
        }
        Ok(Some(id))
    }

    /// Returns the numbers of all checkpoints, oldest first.
    async fn names(&self) -> Result<Vec<u64>, SnapshotError> {
        let arguments = ["for-each-ref", "--format=%(refname:lstrip=3)", REFS];
        let listed = self.git().run(&self.top, &arguments).await?;
        let listed = String::from_utf8_lossy(&listed);
        Ok(listed
            .lines()
            .filter_map(|name| name.parse().ok())
            .collect())
    }

    /// Returns all checkpoints, oldest first.
    ///
    /// # Errors
    /// Fails if git fails.
    pub async fn list(&self) -> Result<Vec<Checkpoint>, SnapshotError> {
        let format = "--format=%(refname:lstrip=3)%00%(committerdate:unix)%00%(contents)%01";
        let listed = self
            .git()
            .run(&self.top, &["for-each-ref", format, REFS])
            .await?;
        let listed = String::from_utf8_lossy(&listed);
        let mut checkpoints: Vec<Checkpoint> =
            listed.split('\u{1}').filter_map(read_checkpoint).collect();
        let undone: BTreeSet<u64> = checkpoints
            .iter()
            .flat_map(|checkpoint| checkpoint.note.undoes.iter().copied())
            .collect();
        for checkpoint in &mut checkpoints {
            checkpoint.is_undone = undone.contains(&checkpoint.id);
        }
        Ok(checkpoints)
    }

    /// Undoes the newest `count` changes of agents that are not undone yet. If files were changed later, it fails and
    /// lists them, unless [`RestoreOptions::force`] is set.
    ///
    /// # Errors
    /// Fails if there is nothing to undo, files were changed later, or git or the file system fails.
    pub async fn undo(&self, count: usize, how: RestoreOptions) -> Result<Restored, SnapshotError> {
        let list = self.list().await?;
        let agents = |checkpoint: &&Checkpoint| {
            matches!(checkpoint.note.kind, Kind::Turn | Kind::Tool) && !checkpoint.is_undone
        };
        let undone: Vec<&Checkpoint> = list.iter().rev().filter(agents).take(count).collect();
        let (Some(newest), Some(oldest)) = (undone.first(), undone.last()) else {
            return Err(SnapshotError::NothingToUndo);
        };
        let note = Note {
            kind: Kind::Undo,
            undoes: undone.iter().map(|checkpoint| checkpoint.id).collect(),
            ..Note::default()
        };
        let mut only = BTreeSet::new();
        for checkpoint in &undone {
            let Checkpoint { before, after, .. } = checkpoint;
            let changes = self.changes(&before.tree, &after.tree).await?;
            only.extend(changes.into_iter().map(|(_, path)| path));
            only.extend(changed_modes(&before.modes, &after.modes).map(PathBuf::from));
        }
        let plan = Plan {
            target: &oldest.before,
            since: (!how.force).then_some(&newest.after),
            only: Some(only),
        };
        self.restore(&plan, note, how.dry_run).await
    }

    /// Restores all files to the state before a checkpoint. For a manual checkpoint, that is the state it recorded.
    ///
    /// # Errors
    /// Fails if the checkpoint does not exist, files changed since the newest one, or git or the file system fails.
    pub async fn reset(&self, id: u64, how: RestoreOptions) -> Result<Restored, SnapshotError> {
        let list = self.list().await?;
        let found = list.iter().find(|checkpoint| checkpoint.id == id);
        let target = found.ok_or(SnapshotError::NoCheckpoint { id })?;
        let newest = list.last().map(|checkpoint| &checkpoint.after);
        let note = Note {
            kind: Kind::Reset,
            label: Some(format!("to {id}")),
            ..Note::default()
        };
        let plan = Plan {
            target: &target.before,
            since: newest.filter(|_| !how.force),
            only: None,
        };
        self.restore(&plan, note, how.dry_run).await
    }

    async fn restore(
        &self,
        plan: &Plan<'_>,
        note: Note,
        is_dry: bool,
    ) -> Result<Restored, SnapshotError> {
        let _lock = self.lock().await?;
        let now = self.take_locked().await?;
        let target = plan.target;
        let mut changes = self.changes(&now.tree, &target.tree).await?;
        changes.retain(|(_, path)| plan.touches(path));
        if let Some(since) = plan.since {
            self.refuse_changed(since, &now, &changes, plan).await?;
        }
        let mut restored = Restored::default();
        for (removed, path) in changes {
            if removed {
                restored.removed.push(path);
            } else {
                restored.written.push(path);
            }
        }
        let modes: Vec<(PathBuf, u32)> = self.modes_to_set(plan, &now.modes, &restored).await?;
        for (path, _) in &modes {
            if !restored.written.contains(path) && !restored.removed.contains(path) {
                restored.written.push(path.clone());
            }
        }
        if is_dry || (restored.written.is_empty() && restored.removed.is_empty()) {
            return Ok(restored);
        }
        self.apply(target, &restored, modes).await?;
        let after = self.take_locked().await?;
        restored.checkpoint = self.keep_locked(&now, &after, note).await?;
        Ok(restored)
    }

    /// Fails if a file that the restore would change differs from its last known state.
    async fn refuse_changed(
        &self,
        since: &Held,
        now: &State,
        changes: &[(bool, PathBuf)],
        plan: &Plan<'_>,
    ) -> Result<(), SnapshotError> {
        let touched: BTreeSet<&Path> = changes.iter().map(|(_, path)| path.as_path()).collect();
        let later = self.changes(&since.tree, &now.tree).await?;
        let mut paths: Vec<PathBuf> = later
            .into_iter()
            .map(|(_, path)| path)
            .filter(|path| touched.contains(path.as_path()))
            .collect();
        let modes: BTreeSet<&str> = changed_modes(&now.modes, &plan.target.modes)
            .filter(|path| plan.touches(Path::new(path)))
            .collect();
        let later = changed_modes(&since.modes, &now.modes).filter(|path| modes.contains(path));
        paths.extend(
            later
                .map(PathBuf::from)
                .filter(|path| !touched.contains(path.as_path())),
        );
        paths.dedup();
        if paths.is_empty() {
            Ok(())
        } else {
            Err(SnapshotError::Changed { paths })
        }
    }

    /// Returns the permission bits that git does not set.
    async fn modes_to_set(
        &self,
        plan: &Plan<'_>,
        now: &Modes,
        restored: &Restored,
    ) -> Result<Vec<(PathBuf, u32)>, SnapshotError> {
        let target = plan.target;
        let arguments = ["ls-tree", "-r", "-z", &target.tree];
        let listed = self.git().run(&self.top, &arguments).await?;
        let programs: BTreeSet<PathBuf> = listed
            .split(|byte| *byte == 0)
            .filter(|entry| entry.starts_with(b"100755"))
            .filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1))
            .map(path_of)
            .collect();
        let usual = |path: &Path| {
            if programs.contains(path) {
                0o755
            } else {
                0o644
            }
        };
        let wanted = |path: &str| target.modes.get(path).copied();
        let removed: BTreeSet<&Path> = restored.removed.iter().map(PathBuf::as_path).collect();
        let mut set: Vec<(PathBuf, u32)> = changed_modes(now, &target.modes)
            .filter(|path| !removed.contains(Path::new(path)) && plan.touches(Path::new(path)))
            .map(|path| {
                let mode = wanted(path).unwrap_or_else(|| usual(Path::new(path)));
                (PathBuf::from(path), mode)
            })
            .collect();
        for path in &restored.written {
            let mode = path.to_str().and_then(wanted);
            if let Some(mode) = mode
                && !set.iter().any(|(known, _)| known == path)
            {
                set.push((path.clone(), mode));
            }
        }
        Ok(set)
    }

    async fn apply(
        &self,
        target: &Held,
        restored: &Restored,
        modes: Vec<(PathBuf, u32)>,
    ) -> Result<(), SnapshotError> {
        let (top, removed) = (self.top.clone(), restored.removed.clone());
        blocking(move || removed.iter().try_for_each(|path| remove(&top, path))).await?;
        let index = self.dir.join("restore.index");
        let git = self.git().env("GIT_INDEX_FILE", &index);
        git.run(&self.top, &["read-tree", &target.tree]).await?;
        let written = named(&restored.written);
        let arguments = ["checkout-index", "--force", "--quiet", "-z", "--stdin"];
        git.feed(&self.top, &arguments, &written).await?;
        let top = self.top.clone();
        blocking(move || {
            let set = modes.iter().try_for_each(|(path, mode)| {
                let path = top.join(path);
                set_mode(&path, *mode).map_err(|error| SnapshotError::file(&path, &error))
            });
            set.and_then(|()| {
                fs::remove_file(&index).map_err(|error| SnapshotError::file(&index, &error))
            })
        })
        .await
    }

    /// Returns the paths that differ between two trees, each with whether the second tree lacks it.
    async fn changes(&self, from: &str, to: &str) -> Result<Vec<(bool, PathBuf)>, SnapshotError> {
        let arguments = [
            "diff-tree",
            "-r",
            "-z",
            "--no-renames",
            "--name-status",
            from,
            to,
        ];
        let listed = self.git().run(&self.top, &arguments).await?;
        let mut parts = listed
            .split(|byte| *byte == 0)
            .filter(|part| !part.is_empty());
        let mut changes = Vec::new();
        while let (Some(status), Some(path)) = (parts.next(), parts.next()) {
            changes.push((status == b"D", path_of(path)));
        }
        Ok(changes)
    }

    /// Lets git pack its objects. Objects that no checkpoint uses are removed after two weeks.
    ///
    /// # Errors
    /// Fails if git fails.
    pub async fn tidy(&self) -> Result<(), SnapshotError> {
        let _lock = self.lock().await?;
        // Without this setting, git would leave a background process behind.
        let arguments = ["-c", "gc.autoDetach=false", "gc", "--auto", "--quiet"];
        self.git().run(&self.top, &arguments).await?;
        Ok(())
    }
}

impl From<GitError> for SnapshotError {
    fn from(error: GitError) -> Self {
        Self::Git(error.to_string())
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SnapshotError> + Send + 'static,
) -> Result<T, SnapshotError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(SnapshotError::Git(error.to_string())))
}

fn null_device() -> &'static str {
    if cfg!(windows) { "NUL" } else { "/dev/null" }
}

fn one_line(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim().to_owned()
}

/// Writes paths as git's `-z` options read them, each with a zero byte at the end.
fn named(paths: &[PathBuf]) -> Vec<u8> {
    let names = paths.iter().map(|path| path.as_os_str().as_encoded_bytes());
    names.flat_map(|name| [name, b"\0"].concat()).collect()
}

fn paths(listed: &[u8]) -> Vec<PathBuf> {
    let named = listed
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    named.map(path_of).collect()
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::os::unix::ffi::OsStrExt::from_bytes(bytes) as &OsStr)
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::new(&*String::from_utf8_lossy(bytes)))
}

/// Reports whether a new file is included: a link, or a regular file within the size limit. If git lists a folder as
/// one name, it is a nested repository and is left out.
fn is_kept(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_symlink() || (found.is_file() && found.len() <= MAX_NEW_FILE))
}

fn changed_modes<'a>(from: &'a Modes, to: &'a Modes) -> impl Iterator<Item = &'a str> {
    let names: BTreeSet<&str> = from.keys().chain(to.keys()).map(String::as_str).collect();
    names
        .into_iter()
        .filter(|name| from.get(*name) != to.get(*name))
}

#[cfg(unix)]
fn unusual_modes(top: &Path, paths: &[PathBuf]) -> Modes {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &PathBuf| {
        let found = fs::symlink_metadata(top.join(path)).ok()?;
        let mode = found.permissions().mode() & 0o7777;
        let is_usual = matches!(mode, 0o644 | 0o755 | 0o664 | 0o775);
        (found.is_file() && !is_usual).then(|| Some((path.to_str()?.to_owned(), mode)))?
    };
    paths.iter().filter_map(mode).collect()
}

#[cfg(not(unix))]
fn unusual_modes(_top: &Path, _paths: &[PathBuf]) -> Modes {
    Modes::new()
}

/// Sets the permissions of a file. A link has none of its own: the file that it leads to would get them.
#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if fs::symlink_metadata(path)?.is_symlink() {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// Removes a file and the parent folders that become empty.
fn remove(top: &Path, path: &Path) -> Result<(), SnapshotError> {
    let whole = top.join(path);
    match fs::remove_file(&whole) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(SnapshotError::file(&whole, &error));
        }
        _ => {}
    }
    for above in path.ancestors().skip(1) {
        if above.as_os_str().is_empty() || fs::remove_dir(top.join(above)).is_err() {
            break;
        }
    }
    Ok(())
}

fn read_checkpoint(text: &str) -> Option<Checkpoint> {
    let mut parts = text.trim_start().splitn(3, '\0');
    let id = parts.next()?.parse().ok()?;
    let time = parts.next()?.parse().ok()?;
    let message: Message = serde_json::from_str(parts.next()?.trim()).ok()?;
    Some(Checkpoint {
        id,
        note: message.note,
        time,
        files: message.files,
        skipped: message.skipped,
        is_undone: false,
        before: message.before,
        after: message.after,
    })
}
