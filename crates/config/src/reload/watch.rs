//! Tells when something happens below folders.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use notify_debouncer_mini::notify::{RecommendedWatcher, RecursiveMode};
use notify_debouncer_mini::{DebounceEventResult, Debouncer, new_debouncer};
use tokio::sync::Notify;

/// How long what happens is gathered before it is told.
const SILENCE: Duration = Duration::from_millis(100);
/// The most folders that are watched.
const MOST: usize = 1_024;

/// Folders that are watched. Dropping it ends that.
#[derive(Debug)]
pub(super) struct Watch {
    dirs: BTreeMap<PathBuf, RecursiveMode>,
    happened: Arc<Notify>,
    _debouncer: Debouncer<RecommendedWatcher>,
}

/// Returns a watch over these places, and whether it is another one. `None` is a system that cannot do that.
pub(super) fn over(places: &[PathBuf], watch: Option<Watch>) -> (Option<Watch>, bool) {
    let dirs = dirs(places);
    match watch {
        Some(watch) if watch.dirs == dirs => (Some(watch), false),
        _ => (Watch::start(dirs), true),
    }
}

/// Returns what is watched: folders and what is below them. In the place of a file, and of a folder that is not there, the
/// nearest folder above is watched, without what is below it.
fn dirs(places: &[PathBuf]) -> BTreeMap<PathBuf, RecursiveMode> {
    let mut dirs = BTreeMap::new();
    for place in places.iter().take(MOST) {
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
            // What cannot be watched is looked at with the next reload all the same.
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
