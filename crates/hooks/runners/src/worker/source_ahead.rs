//! Reads scripts in TypeScript and removes their types before a worker needs them. A worker for JavaScript takes longer
//! to start than this takes for many scripts.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tokio::sync::oneshot;

use super::load_request::ReadSource;
use super::script::{self, Script};

/// The size of the largest script that is read in advance, in bytes. A worker reads larger ones itself.
const MAX_SOURCE: u64 = 1 << 20;

/// How many bytes of code wait for the worker at most, over all scripts.
const MAX_WAITING: usize = 32 << 20;

/// A source that is being read. An error means that the worker has to read it, and to report what is wrong with it.
type Reading = oneshot::Receiver<ReadSource>;

/// Reads the sources of scripts on a thread of its own, in their order. `None` means that a script is not read.
pub(super) fn read_ahead(scripts: &[Script]) -> Vec<Option<Reading>> {
    let mut wanted = Vec::new();
    let sources = scripts
        .iter()
        .map(|script| {
            is_typed(&script.path).then(|| {
                let (sender, source) = oneshot::channel();
                wanted.push((script.path.clone(), sender));
                source
            })
        })
        .collect();
    if !wanted.is_empty() {
        let work = move || {
            let mut total = 0;
            for (path, sender) in wanted {
                // No one waits for it if the load was given up.
                if sender.is_closed() || total > MAX_WAITING {
                    return;
                }
                if let Some(source) = read(&path) {
                    total += source.code.len();
                    let _unused = sender.send(source);
                }
            }
        };
        // Without the thread, the worker reads the scripts.
        drop(script::strip_thread(work));
    }
    sources
}

fn is_typed(path: &Path) -> bool {
    let extension = path.extension().and_then(|it| it.to_str());
    cfg!(feature = "typescript") && extension.is_some_and(|it| ["ts", "mts", "cts"].contains(&it))
}

fn read(path: &Path) -> Option<ReadSource> {
    let path = fs::canonicalize(path).ok()?;
    let metadata = fs::metadata(&path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_SOURCE {
        return None;
    }
    let text = fs::read_to_string(&path).ok()?;
    let text = match text.strip_prefix("#!") {
        Some(rest) => format!("//{rest}"),
        None => text,
    };
    let code = script::strip_types(path.to_str()?, &text).ok()?;
    Some(ReadSource {
        code,
        version: version(&metadata),
    })
}

/// Returns the state of a file as `loader.mjs` computes it.
fn version(metadata: &fs::Metadata) -> String {
    let nanoseconds =
        |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    format!(
        "{},{},{},{}",
        metadata.ino(),
        metadata.len(),
        nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
    )
}
