//! Watches folders for changes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use notify_debouncer_mini::notify::{RecommendedWatcher, RecursiveMode};
use notify_debouncer_mini::{DebounceEventResult, Debouncer, new_debouncer};
use tokio::sync::Notify;

/// How long to collect changes before reporting them.
const SILENCE: Duration = Duration::from_millis(100);
/// The largest number of paths that are watched.
const MAX: usize = 1_024;

/// A set of watched folders. Dropping it stops watching.
#[derive(Debug)]
pub(super) struct Watch {
    dirs: BTreeMap<PathBuf, RecursiveMode>,
    happened: Arc<Notify>,
    _debouncer: Debouncer<RecommendedWatcher>,
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
        let happened = Arc::new(Notify::new());
        let told = Arc::clone(&happened);
        let tell = move |_events: DebounceEventResult| told.notify_one();
        let mut debouncer = new_debouncer(SILENCE, tell).ok()?;
        for (dir, mode) in &dirs {
            // A folder that cannot be watched is still examined on the next reload.
            let _watched = debouncer.watcher().watch(dir, *mode);
        }
        Some(Self {
            dirs,
            happened,
            _debouncer: debouncer,
        })
    }

    pub(super) async fn changed(&self) {
        self.happened.notified().await;
    }
}
