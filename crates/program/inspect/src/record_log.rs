//! Journal records in memory, with a position for each. The oldest are dropped when there are too many.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::RwLock;
use tokio::sync::watch;

/// How much a [`RecordLog`] keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// The maximum number of records.
    pub records: usize,
    /// The maximum size of all records together, in bytes.
    pub bytes: usize,
}

impl LogLimits {
    /// The limits for records that arrive while the program runs.
    pub const LIVE: Self = Self {
        records: 100_000,
        bytes: 128 << 20,
    };
    /// The limits for records from files.
    pub const FILES: Self = Self {
        records: 500_000,
        bytes: 512 << 20,
    };
}

/// Journal records as lines of JSON, the oldest first. The position of a record is one higher than the position of the
/// record before it, and never changes.
#[derive(Debug)]
pub struct RecordLog {
    limits: LogLimits,
    /// The position of the first record ever.
    start: u64,
    kept: RwLock<KeptRecords>,
    /// The position of the newest record. Readers wait for it to change.
    newest: watch::Sender<u64>,
}

#[derive(Debug)]
struct KeptRecords {
    lines: VecDeque<Bytes>,
    bytes: usize,
    /// The position of the oldest record. While the log is empty, it is the position of the next record.
    first: u64,
    /// The number of lines that are not journal records.
    unreadable: u64,
    /// The number of records that were dropped because newer ones need their place.
    dropped: u64,
}

impl KeptRecords {
    fn next(&self) -> u64 {
        self.first.saturating_add(self.lines.len() as u64)
    }
}

/// Consecutive records of a [`RecordLog`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSlice {
    /// The records, the oldest first.
    pub lines: Vec<Bytes>,
    /// The position of the last record in `lines`. Without records, the position after which they were requested.
    pub position: u64,
    /// The position of the oldest record that the log keeps.
    pub first: u64,
    /// What is missing between the requested position and `lines`.
    pub gap: Option<RecordGap>,
}

/// Records that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordGap {
    /// The number of records. `None` if the position does not belong to this log, but to a program that ran before.
    pub missed: Option<u64>,
}

/// How many records a log keeps and has left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogCounts {
    /// The number of records that it keeps.
    pub kept: usize,
    /// The maximum number of records.
    pub limit: usize,
    /// The number of records that were dropped because newer ones needed their place.
    pub dropped: u64,
    /// The number of lines that are not journal records.
    pub unreadable: u64,
}

impl RecordLog {
    /// Creates an empty log whose first record gets the position `first`.
    pub fn new(limits: LogLimits, first: u64) -> Self {
        let first = first.max(1);
        Self {
            limits,
            start: first,
            kept: RwLock::new(KeptRecords {
                lines: VecDeque::new(),
                bytes: 0,
                first,
                unreadable: 0,
                dropped: 0,
            }),
            newest: watch::Sender::new(first - 1),
        }
    }

    /// Adds records, one line each. Readers see all of them at once.
    pub fn append(&self, lines: impl IntoIterator<Item = Bytes>) {
        let mut kept = self.kept.write();
        for line in lines {
            kept.bytes += line.len();
            kept.lines.push_back(line);
        }
        while kept.lines.len() > self.limits.records || kept.bytes > self.limits.bytes {
            let Some(oldest) = kept.lines.pop_front() else {
                break;
            };
            kept.bytes -= oldest.len();
            kept.first += 1;
            kept.dropped += 1;
        }
        // Within the lock, so that the newest position never goes back.
        self.newest.send_replace(kept.next() - 1);
    }

    /// Counts lines that are not journal records, and records that were dropped before they were added.
    pub(crate) fn count_left_out(&self, unreadable: u64, dropped: u64) {
        let mut kept = self.kept.write();
        kept.unreadable += unreadable;
        kept.dropped += dropped;
    }

    /// Returns at most `max` records after a position. `None` is the position before the oldest record that is kept.
    pub fn after(&self, position: Option<u64>, max: usize) -> RecordSlice {
        let kept = self.kept.read();
        let oldest = kept.first - 1;
        let requested = position.unwrap_or(oldest);
        let is_own = requested >= self.start - 1 && requested < kept.next();
        let gap = (!is_own || requested < oldest).then(|| RecordGap {
            missed: is_own.then(|| oldest - requested),
        });
        let start = if gap.is_some() { oldest } else { requested };
        let from = usize::try_from(start - oldest).unwrap_or(usize::MAX);
        let lines: Vec<Bytes> = kept.lines.iter().skip(from).take(max).cloned().collect();
        RecordSlice {
            position: start + lines.len() as u64,
            lines,
            first: kept.first,
            gap,
        }
    }

    /// Returns the position of the newest record ever.
    pub(crate) fn newest(&self) -> u64 {
        *self.newest.borrow()
    }

    /// Returns how many records the log keeps and has left out.
    pub fn counts(&self) -> LogCounts {
        let kept = self.kept.read();
        LogCounts {
            kept: kept.lines.len(),
            limit: self.limits.records,
            dropped: kept.dropped,
            unreadable: kept.unreadable,
        }
    }

    /// Returns a receiver that changes when records are added.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: LogLimits = LogLimits {
        records: 3,
        bytes: 10,
    };

    fn lines(texts: &[&'static str]) -> Vec<Bytes> {
        texts
            .iter()
            .map(|text| Bytes::from_static(text.as_bytes()))
            .collect()
    }

    #[test]
    fn records_keep_their_positions_when_older_ones_are_dropped() {
        let log = RecordLog::new(SMALL, 1);
        log.append(lines(&["a", "b"]));
        log.append(lines(&["c", "d", "e"]));
        let all = log.after(None, 10);
        assert_eq!(
            (all.lines, all.first, all.position),
            (lines(&["c", "d", "e"]), 3, 5)
        );
        let rest = log.after(Some(3), 1);
        assert_eq!((rest.lines, rest.position), (lines(&["d"]), 4));
        let none = log.after(Some(5), 10);
        assert!(none.lines.is_empty() && none.gap.is_none() && none.position == 5);
        assert_eq!(log.counts().dropped, 2);
    }

    #[test]
    fn large_records_make_room_too() {
        let log = RecordLog::new(SMALL, 1);
        log.append(lines(&["12345", "67890"]));
        log.append(lines(&["x"]));
        assert_eq!(log.after(None, 10).lines, lines(&["67890", "x"]));
        log.append(lines(&["more than ten bytes"]));
        assert_eq!(log.counts().kept, 0);
        assert_eq!(log.after(None, 10).first, 5);
    }

    // I7
    #[test]
    fn a_position_that_is_gone_or_of_another_log_is_a_gap() {
        let log = RecordLog::new(SMALL, 100);
        assert_eq!(log.after(Some(99), 1).gap, None);
        log.append(lines(&["a", "b", "c", "d"]));
        let other_log = Some(None);
        for (position, missed) in [
            (0, other_log),
            (98, other_log),
            (99, Some(Some(1))),
            (100, None),
            (103, None),
            (104, other_log),
        ] {
            let slice = log.after(Some(position), 1);
            assert_eq!(slice.gap.map(|gap| gap.missed), missed, "{position}");
            if missed.is_some() {
                assert_eq!((slice.lines, slice.position), (lines(&["b"]), 101));
            }
        }
    }
}
