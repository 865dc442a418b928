//! Watches folders for changes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _, recommended_watcher};
use tokio::sync::watch;
use tokio::time::sleep;

/// How long to collect changes before reporting them.
const SILENCE: Duration = Duration::from_millis(100);
/// The largest number of paths that are watched.
const MAX: usize = 1_024;

/// A set of watched folders. Dropping it stops watching.
#[derive(Debug)]
pub(super) struct Watch {
    dirs: BTreeMap<PathBuf, RecursiveMode>,
    happened: watch::Receiver<()>,
    _watcher: RecommendedWatcher,
}

/// Returns a watch over these paths, and whether it is a new one. Returns no watch if this system cannot
/// watch folders.
pub(super) fn over(places: &[PathBuf], watch: Option<Watch>) -> (Option<Watch>, bool) {
    let dirs = dirs(places);
    match watch {
        Some(watch) if watch.dirs == dirs => (Some(watch), false),
        _ => (Watch::start(dirs), true),
    }
}

/// Returns the folders to watch, each with everything below it. For a file or a missing folder, returns
/// the nearest existing folder above it, without its subfolders.
fn dirs(places: &[PathBuf]) -> BTreeMap<PathBuf, RecursiveMode> {
    let mut dirs = BTreeMap::new();
    for place in places.iter().take(MAX) {
        if place.is_dir() {
            dirs.insert(place.clone(), RecursiveMode::Recursive);
        } else if let Some(parent) = place.ancestors().find(|dir| dir.is_dir()) {
            dirs.entry(parent.to_owned())
                .or_insert(RecursiveMode::NonRecursive);
        }
    }
    dirs
}

impl Watch {
    fn start(dirs: BTreeMap<PathBuf, RecursiveMode>) -> Option<Self> {
        let (sender, happened) = watch::channel(());
        let report = move |event: notify::Result<Event>| {
            if is_change(&event) {
                sender.send_replace(());
            }
        };
        let mut watcher = recommended_watcher(report).ok()?;
        for (dir, mode) in &dirs {
            // A folder that cannot be watched is still examined on the next reload.
            let _watched = watcher.watch(dir, *mode);
        }
        Some(Self {
            dirs,
            happened,
            _watcher: watcher,
        })
    }

    /// Waits until something changes. Changes in quick succession count as one.
    pub(super) async fn changed(&mut self) {
        if self.happened.changed().await.is_err() {
            // The system no longer reports changes.
            return std::future::pending().await;
        }
        sleep(SILENCE).await;
        self.happened.mark_unchanged();
    }
}

/// Returns whether an event may mean that a file has changed. Reading a file is an event too, and loading hooks
/// reads all of them. If reading counted, every reload would cause the next one. After an error, changes may
/// have been missed.
fn is_change(event: &notify::Result<Event>) -> bool {
    !matches!(event, Ok(event) if event.kind.is_access())
}
