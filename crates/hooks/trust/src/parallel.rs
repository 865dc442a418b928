//! Runs blocking work on several threads.

use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle};

/// Applies `work` to every item, on at most one thread per core. Returns the results in the order of
/// the items.
///
/// The calling thread works too, so a system that allows no further thread only makes it slower.
pub(crate) fn map_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut parts = items.chunks(items.len().div_ceil(cores).max(1));
    let run = |part: &[T]| part.iter().map(&work).collect::<Vec<R>>();
    let own = parts.next().unwrap_or_default();
    thread::scope(|scope| {
        let start = |part| thread::Builder::new().spawn_scoped(scope, move || run(part));
        let others: Vec<_> = parts.map(|part| (part, start(part))).collect();
        let mut done = run(own);
        for (part, other) in others {
            done.extend(match other.map(ScopedJoinHandle::join) {
                Ok(theirs) => theirs.unwrap_or_else(|panic| resume_unwind(panic)),
                Err(_) => run(part),
            });
        }
        done
    })
}
